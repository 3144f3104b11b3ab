//! What is shown of a run, whether it goes on or is stored: a consumer of its events.

use super::args::Format;
use super::error::CliError;
use super::printer::Printer;
use crate::model::{CheckKind, Event, Record, RecordRow, Reuse, RunId};
use crate::report::{self, Human};
use crate::store::{self, State};
use crate::system::clock;
use std::time::Instant;

/// The last lines of a failed command's output that a report shows.
const TAIL_LINES: usize = 20;

/// How much of the end of a log is looked at for them.
const TAIL_BYTES: u64 = 16 << 10;

/// Shows events in one form.
pub(super) struct Shown<'a> {
    format: Format,
    human: Human,
    run: RunId,
    state: &'a State,
    /// When the run began; none of a stored one.
    began: Option<Instant>,
    printer: &'a Printer,
    /// What runs now, in the order of their starts.
    running: Vec<(String, Instant)>,
    done: usize,
    all: usize,
    /// What is to be known of a record that answers in place of a run.
    reuse: Option<Reuse>,
}

impl<'a> Shown<'a> {
    /// Of a run whose output is below `state`.
    pub(super) fn new(
        format: Format,
        run: &RunId,
        state: &'a State,
        began: Option<Instant>,
        printer: &'a Printer,
    ) -> Self {
        let human = Human::new(printer.style(), run.clone());
        Self {
            format,
            human,
            run: run.clone(),
            state,
            began,
            printer,
            running: Vec::new(),
            done: 0,
            all: 0,
            reuse: None,
        }
    }

    /// Takes the next event.
    pub(super) fn hear(&mut self, event: &Event) -> Result<(), CliError> {
        self.progress(event);
        let printer = self.printer;
        match self.format {
            Format::Human => {
                // A value that had colours inside is whole once they are gone.
                let tail = |record: &_| tail(self.state, &self.run, record).map(|tail| printer.concealed(&tail));
                let text = self.human.text(event, tail);
                if !text.is_empty() {
                    printer.out(&text);
                }
            }
            Format::Json => {
                if let Event::RunFinished { record, recorded } = event {
                    printer.json(&document(record, *recorded, self.reuse.as_ref())?);
                }
            }
            Format::Jsonl => {
                let elapsed = self.began.map(|began| clock::now().saturating_duration_since(began).as_millis());
                let at = elapsed.map(|at| u64::try_from(at).unwrap_or(u64::MAX));
                let line = report::line(event, at).map_err(|error| CliError::trouble(error.to_string()))?;
                printer.json_line(&line);
            }
        }
        // Whoever reads the lines knows already.
        if let (Format::Human | Format::Json, Some(note)) = (self.format, self.human.note(event)) {
            printer.note(note.trim_end_matches('\n'));
        }
        Ok(())
    }

    fn progress(&mut self, event: &Event) {
        match event {
            Event::RunStarted { checks, .. } => self.all = checks.len(),
            Event::CheckStarted { id, kind: CheckKind::Command | CheckKind::Logic } => {
                self.running.push((id.to_string(), clock::now()));
            }
            Event::CheckEnded { id, .. } => self.running.retain(|(running, _)| running != id.as_str()),
            Event::CheckFinished { .. } => self.done += 1,
            Event::RunFinished { .. } => return self.printer.status(None),
            Event::RunReused { reuse, .. } => self.reuse = Some((**reuse).clone()),
            Event::CheckOutput { .. } | Event::CheckSlow { .. } | Event::Running { .. } | Event::Stopping { .. } => {
                return;
            }
        }
        if self.began.is_some() {
            self.printer.progress(self.done, self.all, &self.running);
        }
    }
}

/// The last lines of what a check wrote.
pub(super) fn tail(state: &State, run: &RunId, record: &RecordRow) -> Option<String> {
    let log = record.log.as_ref()?;
    let bytes = store::read_tail(state, run, &record.id, TAIL_BYTES).ok()?;
    let text = report::without_codes(&String::from_utf8_lossy(&bytes));
    let mut lines: Vec<&str> = text.lines().collect();
    // Unless it is all there is, it begins in the middle of a line, which may be all that it has.
    if log.size > TAIL_BYTES && lines.len() > 1 {
        lines.remove(0);
    }
    let shown = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if shown.is_empty() {
        return None;
    }
    let all = lines.len() == shown.len() && log.size <= TAIL_BYTES;
    let before = format!("… (the end of it; `probity show {run} --check {} --log` has all)\n", record.id);
    Some(if all { String::new() } else { before } + &shown.join("\n"))
}

/// The record as one JSON document.
/// `reuse` is what is to be known where it answers in place of a run.
pub(super) fn document(record: &Record, recorded: bool, reuse: Option<&Reuse>) -> Result<serde_json::Value, CliError> {
    let digest = record.digest().map_err(|error| CliError::trouble(error.to_string()))?;
    let mut document = serde_json::json!({
        "schema": "probity/record/1",
        "exit_code": record.verdict.outcome.exit_code(),
        "recorded": recorded,
        "record_digest": digest,
        "record": record,
    });
    if let Some(reuse) = reuse {
        document["reused"] = serde_json::json!(reuse);
    }
    Ok(document)
}
