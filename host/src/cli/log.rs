//! `probity log`.

use super::args::Log;
use super::error::CliError;
use super::printer::Printer;
use super::{current, prepare, turn};
use crate::config::quote;
use crate::model::RunOutcome;
use crate::report::escape;
use crate::store::{self, Filter, Summary};
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn log(folder: &Path, options: &Log, printer: &Printer) -> Result<u8, CliError> {
    let waiting = turn::waiting(printer);
    let filter = filter(folder, options)?;
    let state = prepare::state_to_read(folder)?;
    let alive = state.as_ref().map(store::settle).unwrap_or_default();
    let store = prepare::records(state.as_ref(), &waiting)?;
    let runs = match &store {
        Some(store) => store.list(options.count, &filter)?,
        None => Vec::new(),
    };
    turn::newer(store.as_ref(), printer);
    let now = if runs.iter().any(|run| run.spec.is_some()) { current::specification(folder, printer) } else { None };
    let now = now.map(|digest| digest.to_string());
    let outdated = |run: &Summary| Some(now.as_ref()? != run.spec.as_ref()?);
    if options.json {
        let with = |run: &Summary| {
            let mut document = serde_json::json!(run);
            document["stale"] = serde_json::json!(outdated(run));
            document
        };
        let runs: Vec<_> = runs.iter().map(with).collect();
        printer.json(&serde_json::json!({ "schema": "probity/log/1", "going_on": alive, "runs": runs }));
        return Ok(0);
    }
    let mut text = String::new();
    if !alive.is_empty() {
        text.push_str("going on\n");
        for label in &alive {
            let _ = writeln!(text, "{}", turn::named(label));
        }
        text.push_str("\nverified\n");
    }
    if runs.is_empty() {
        printer.note(if filter.is_empty() {
            "no runs are recorded here yet: `probity verify` makes the first"
        } else {
            "no run is recorded here that is asked for"
        });
    }
    for run in runs {
        let digest = run.verdict_digest.as_deref().unwrap_or("no verdict");
        let digest = digest.get(.."blake3:".len() + 12).unwrap_or(digest);
        let mut notes = String::new();
        match &run.not_applicable {
            Some(reason) => notes = format!("  declared: {}", escape(reason)),
            None if run.scoped => notes.push_str("  scoped"),
            None => {}
        }
        if run.changed_only {
            notes.push_str("  changed only");
        }
        let outcome = if outdated(&run) == Some(true) {
            let _ = write!(notes, "  {} for another specification", escape(&run.outcome));
            read_later(&run.outcome)
        } else {
            &run.outcome
        };
        let _ = writeln!(
            text,
            "{}  {}  {:<14} {:<16} {:<16} {}{notes}",
            escape(&run.run),
            escape(&run.started),
            escape(outcome),
            escape(&run.scenario),
            commit(run.commit.as_deref(), run.dirty),
            escape(digest)
        );
    }
    printer.out(&text);
    Ok(0)
}

/// Which runs are asked for.
fn filter(folder: &Path, options: &Log) -> Result<Filter, CliError> {
    let words = RunOutcome::ALL.map(RunOutcome::word);
    if let Some(word) = options.outcome.as_deref().filter(|word| !words.contains(word)) {
        return Err(CliError::usage(format!("there is no outcome {}", quote(word)))
            .hint(&format!("it is one of {}", words.join(", "))));
    }
    // Times are compared as text, which is right of what begins as they do.
    let form = "0000-00-00T00:00:00.000Z";
    let fits = |(c, form): (char, char)| if form == '0' { c.is_ascii_digit() } else { c == form };
    if let Some(time) = options.since.as_deref()
        && !((4..=form.len()).contains(&time.len()) && time.chars().zip(form.chars()).all(fits))
    {
        return Err(CliError::usage(format!("{} is no day and no time", quote(time)))
            .hint("write a day, or a time in UTC, such as `2026-01-31` or `2026-01-31T09:30`"));
    }
    Ok(Filter {
        scenario: options.scenario.clone(),
        outcome: options.outcome.clone(),
        since: options.since.clone(),
        tree: options.here.then(|| prepare::tree_place(folder)).transpose()?,
    })
}

/// What a record that is for another specification is shown as: what counted then does not count now, and what did not
/// count is what it was.
fn read_later(outcome: &str) -> &str {
    let known = serde_json::from_value::<RunOutcome>(serde_json::json!(outcome));
    known.map_or(outcome, |outcome| outcome.min(RunOutcome::Stale).word())
}

/// A commit by its first digits, and whether the tree was another one.
fn commit(commit: Option<&str>, dirty: Option<bool>) -> String {
    /// Digits of a commit: not as many as a run has, so that one is not taken for the other.
    const DIGITS: usize = 10;
    let id = commit.map(|commit| commit.split_once(':').map_or(commit, |(_, id)| id));
    let id = id.map_or("-".to_owned(), |id| escape(id.get(..DIGITS).unwrap_or(id)));
    if dirty == Some(true) { format!("{id} dirty") } else { id }
}
