//! `probity log`.

use super::args::Log;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use crate::report::escape;
use crate::store::Store;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn log(folder: &Path, options: &Log, printer: &Printer) -> Result<u8, CliError> {
    let state = prepare::state_to_read(folder)?;
    let runs = match Store::read(&state)? {
        Some(store) => store.list(options.count)?,
        None => Vec::new(),
    };
    if options.json {
        let document = serde_json::json!({ "schema": "probity/log/1", "runs": runs });
        printer.json(&document);
        return Ok(0);
    }
    if runs.is_empty() {
        printer.note("no runs are recorded here yet: `probity verify` makes the first");
        return Ok(0);
    }
    let mut text = String::new();
    for run in runs {
        let digest = run.verdict_digest.as_deref().unwrap_or("no verdict");
        let digest = digest.get(.."blake3:".len() + 12).unwrap_or(digest);
        let note = match &run.not_applicable {
            Some(reason) => format!("  declared: {}", escape(reason)),
            None if run.scoped => "  scoped".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{}  {}  {:<14} {:<16} {:<18} {}{note}",
            escape(&run.run),
            escape(&run.started),
            escape(&run.outcome),
            escape(&run.scenario),
            commit(run.commit.as_deref(), run.dirty),
            escape(digest)
        );
    }
    printer.out(&text);
    Ok(0)
}

/// A commit by its first digits, and whether the tree was another one.
fn commit(commit: Option<&str>, dirty: Option<bool>) -> String {
    /// Digits of a commit: more than git shows, since a list is searched and not read.
    const DIGITS: usize = 12;
    let id = commit.map(|commit| commit.split_once(':').map_or(commit, |(_, id)| id));
    let id = id.map_or("-".to_owned(), |id| escape(id.get(..DIGITS).unwrap_or(id)));
    if dirty == Some(true) { format!("{id} dirty") } else { id }
}
