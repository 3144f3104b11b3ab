//! `probity show`.

use super::args::Show;
use super::error::CliError;
use super::printer::Printer;
use super::shown::{document, tail};
use super::{current, prepare, turn};
use crate::model::{CheckKind, CheckOutcome, Coverage, Record, RecordRow, Row, SkipReason};
use crate::report::{Human, escape};
use crate::store::{self, Label, State, Store, StoreError, open_combined, open_log};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// What is said of a record that no longer counts for the specification.
const OLD: &str = "stale: this is about another specification than the one that is committed now\n";

pub(super) fn show(folder: &Path, options: &Show, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    let (state, store, record) = stored(folder, &options.run, &waiting, printer)?;
    let row = options.check.as_deref().map(|id| one(&record, id)).transpose()?;
    if options.log {
        let unreadable = |error: io::Error| CliError::trouble(format!("the log cannot be read: {error}"));
        match row {
            Some((row, around)) => match &around.log {
                Some(log) => open_log(&state, &record.run, &around.id, log).and_then(|log| printer.out_foreign(log)),
                None => return Err(no_output(record.abandoned, row, around)),
            },
            None => open_combined(&state, &record.run).and_then(|log| printer.out_foreign(log)),
        }
        .map_err(unreadable)?;
        return Ok(0);
    }
    let spec = record.verdict.subject.spec;
    let outdated = spec.and_then(|spec| Some(current::specification(folder, printer)? != spec.digest));
    if options.json {
        let mut document = document(&record, true, None)?;
        document["stale"] = serde_json::json!(outdated);
        if record.verdict.is_part() {
            document["last_full"] = serde_json::json!(store.last_full(record.verdict.scenario.as_str(), None)?);
        }
        printer.json(&document);
        return Ok(0);
    }
    let human = Human::new(printer.style(), record.run.clone());
    let tail = |around: &RecordRow| tail(&state, &record.run, around);
    let text = if let Some((row, around)) = row {
        human.with_all_findings().alone(row, around, tail) + &around_check(around)
    } else {
        let events = record.events().map(|event| human.text(&event, tail));
        header(&record, &store)? + &events.collect::<String>()
    };
    let text = if outdated == Some(true) { text + OLD } else { text };
    printer.out(&text);
    Ok(0)
}

/// A recorded run by its name or the beginning of it, with where it is.
pub(super) fn stored<'n>(
    folder: &Path,
    run: &str,
    waiting: &'n dyn Fn(),
    printer: &Printer,
) -> Result<(State, Store<'n>, Record), CliError> {
    let none = || StoreError::NoRun(run.to_owned());
    let state = prepare::state_to_read(folder)?.ok_or_else(none)?;
    let alive = store::settle(&state);
    let store = Store::read(&state, waiting)?;
    let record = store.as_ref().map_or_else(|| Err(none()), |store| store.get(run));
    let record = record.map_err(|error| match (&error, alive.iter().find(|label| is_named(label, run))) {
        (StoreError::NoRun(_), Some(label)) => {
            CliError::usage(format!("{} is still going on", turn::named(label))).hint("look again when it has ended")
        }
        _ => error.into(),
    })?;
    let store = store.ok_or_else(none)?;
    turn::newer(Some(&store), printer);
    Ok((state, store, record))
}

fn is_named(label: &Label, name: &str) -> bool {
    !name.is_empty() && label.run.as_str().starts_with(name)
}

fn one<'a>(record: &'a Record, id: &str) -> Result<(&'a Row, &'a RecordRow), CliError> {
    let mut rows = record.verdict.rows.iter().zip(&record.rows);
    rows.find(|(row, _)| row.id.as_str() == id).ok_or_else(|| {
        let known: Vec<&str> = record.verdict.rows.iter().map(|row| row.id.as_str()).collect();
        CliError::usage(format!("run {} has no check `{id}`", record.run)).hint(&format!("it has {}", known.join(", ")))
    })
}

fn no_output(abandoned: bool, row: &Row, around: &RecordRow) -> CliError {
    let why = match &row.outcome {
        CheckOutcome::Interrupted if abandoned => "was cut short with all of its run".to_owned(),
        CheckOutcome::Skipped(SkipReason::AfterFailure(id)) => format!("was skipped after `{id}`"),
        CheckOutcome::Skipped(_) => "was skipped".to_owned(),
        CheckOutcome::NotSelected(_) => "was not among those to run".to_owned(),
        _ if row.kind == CheckKind::Logic => "is no command".to_owned(),
        _ => "was not started".to_owned(),
    };
    CliError::usage(format!("check `{}` {why}, so it has no output in this run", around.id))
        .hint("`probity show --check` has what it found")
}

fn header(record: &Record, store: &Store<'_>) -> Result<String, CliError> {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {}", escape(value));
    };
    line("run", record.run.as_str());
    line("started", &record.started);
    line("scenario", record.verdict.scenario.as_str());
    if record.abandoned {
        line("ended", "nobody knows when: its process ended without recording it");
    }
    line("tree", &format!("{} ({})", record.verdict.subject.tree, record.tree));
    let dirty = match (record.dirty, record.staged) {
        (Some(true), true) => ", and the index, which was verified, differs from it",
        (Some(true), false) => ", and the working tree differs from it",
        (Some(false) | None, _) => "",
    };
    line("commit", &record.verdict.subject.commit.as_ref().map_or("none".to_owned(), |id| format!("{id}{dirty}")));
    if let Some(base) = &record.verdict.subject.base {
        let from =
            record.base.as_ref().map(|named| format!(", where {} ({}) begins to differ", named.name, named.commit));
        line("base", &format!("{base}{}", from.unwrap_or_default()));
    }
    if let Some(spec) = &record.verdict.subject.spec {
        let version = record.spec_version.map(|version| format!("{version}, ")).unwrap_or_default();
        line("spec", &format!("{version}{}", spec.digest));
    }
    if let Some(Coverage { scenario, selected, executed }) = record.coverage {
        line("coverage", &format!("{scenario} checks in the scenario, {selected} selected, {executed} executed"));
    }
    for pack in &record.packs {
        line("pack", &format!("{} {}, {}", pack.name, pack.version, pack.digest));
    }
    if record.verdict.is_part() {
        // Whoever asks for the newest run may have meant the newest one that is a gate.
        let part = if record.verdict.is_scoped() { "scoped" } else { "about what changed" };
        let full = store.last_full(record.verdict.scenario.as_str(), None)?.map_or_else(
            || "none of this scenario is recorded".to_owned(),
            |full| {
                format!(
                    "{}, {}, {} (this run is {part}, and takes no place of it)",
                    full.run, full.outcome, full.started
                )
            },
        );
        line("last full", &full);
    }
    line("host", &record.host);
    line("engine", &record.engine);
    text.push('\n');
    Ok(text)
}

/// What only a look at one check shows.
fn around_check(around: &RecordRow) -> String {
    let mut text = String::new();
    if let Some(fuel) = around.fuel {
        let _ = writeln!(text, "    fuel {fuel}");
    }
    if let Some(passed) = &around.environment {
        let compared = passed.definition.map(|digest| format!(", {digest}")).unwrap_or_default();
        let _ = writeln!(text, "    environment {}{compared}", passed.mode.name());
    }
    if let Some(stderr) = &around.stderr {
        for line in stderr.lines() {
            let _ = writeln!(text, "    stderr | {}", escape(line));
        }
    }
    if let Some(log) = &around.log {
        let _ = writeln!(text, "    output: {} bytes, {}, in {}", log.size, log.digest, escape(&log.path));
    }
    text
}
