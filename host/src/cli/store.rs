//! `probity store check` and `probity store gc`.

use super::args::Gc;
use super::error::CliError;
use super::printer::Printer;
use super::{prepare, turn};
use crate::report::escape;
use crate::store;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn check(folder: &Path, printer: &Printer) -> Result<u8, CliError> {
    let Some(state) = prepare::state_to_read(folder)? else { return Ok(nothing(printer)) };
    let checked = store::check(&state, &turn::waiting(printer))?;
    let mut text = String::new();
    for fault in &checked.faults {
        // Writing into a string does not fail, here and below.
        let _ = writeln!(text, "{}", escape(fault));
    }
    let clean = checked.faults.is_empty();
    if clean {
        let _ = writeln!(
            text,
            "{} and {} are as they were recorded",
            count(checked.records, "record"),
            count(checked.logs, "log")
        );
    }
    printer.out(&text);
    for left in &checked.left_over {
        printer.note(&format!("note: {}: {}; `probity store gc` removes it", escape(&left.path), left.why));
    }
    aside(&checked.aside, printer);
    if !clean {
        printer.note("help: a record or log that was changed stays as it is and is shown as that");
    }
    Ok(u8::from(!clean))
}

pub(super) fn gc(folder: &Path, options: &Gc, printer: &Printer) -> Result<u8, CliError> {
    let Some(state) = prepare::state_to_read(folder)? else { return Ok(nothing(printer)) };
    let tidied = store::tidy(&state, options.dry_run, &turn::waiting(printer))?;
    let mut text = String::new();
    for run in &tidied.runs {
        let (id, started, outcome) = (escape(&run.run), escape(&run.started), escape(&run.outcome));
        let (scenario, why) = (escape(&run.scenario), run.why.words());
        let _ = writeln!(text, "run {id}  {started}  {outcome:<14} {scenario}  {} bytes of logs: {why}", run.log_bytes);
    }
    for left in &tidied.left_over {
        let _ = writeln!(text, "{}: {}", escape(&left.path), left.why);
    }
    let (runs, left) = (count(tidied.runs.len(), "run"), count(tidied.left_over.len(), "left-over"));
    let verb = if options.dry_run { "would go" } else { "gone" };
    let _ = writeln!(text, "{runs} and {left} {verb}");
    printer.out(&text);
    aside(&tidied.aside, printer);
    if tidied.failed.is_empty() {
        return Ok(0);
    }
    Err(CliError::trouble(format!("not everything could be removed: {}", tidied.failed.join("; ")))
        .hint("give this user write access to it, or remove it by hand"))
}

fn nothing(printer: &Printer) -> u8 {
    printer.note("no runs are recorded here yet: `probity verify` makes the first");
    0
}

fn aside(names: &[String], printer: &Printer) {
    for name in names {
        printer.note(&format!("note: {name} was set aside, since it was damaged or not made by Probity; logs that no record is of stay as long as it does. Remove it when you have looked at it"));
    }
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
