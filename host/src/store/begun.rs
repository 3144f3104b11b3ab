//! Runs that have begun: each says so in the lock file of its tree, with what is to be recorded of it if nobody else
//! comes to record it. Such a record is `interrupted` and has no verdict, so it is never green, whoever wrote it.
//!
//! No sync: a process that is killed leaves what it wrote; a machine that goes down may lose it, and with it that there
//! was a run.

use super::database::Store;
use super::lock::PREFIX;
use super::place::State;
use crate::model::{CheckOutcome, Record, RunId, RunOutcome};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read as _;

/// The most that is read of a lock file. A plan of ten thousand checks has two megabytes.
const MAX_BYTES: u64 = 64 << 20;

/// Who has a lock. For people: it proves nothing, since process ids differ between containers and are used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The run.
    pub run: RunId,
    /// The process.
    pub pid: u32,
    /// Where the process is.
    pub host: String,
    /// Since when: RFC 3339.
    pub started: String,
}

impl Label {
    pub(super) fn line(&self) -> Vec<u8> {
        // Texts and a number always have a form.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// What a lock file says.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) label: Option<Label>,
    pub(super) record: Option<Record>,
}

impl Begun {
    /// None where it says nothing.
    pub(super) fn read(file: &File) -> Option<Self> {
        if file.metadata().ok()?.len() == 0 {
            return None;
        }
        let mut text = String::new();
        let mut start = file;
        std::io::Seek::rewind(&mut start).ok()?;
        start.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        let label = lines.next().and_then(|line| serde_json::from_str(line).ok());
        let record = lines.next().and_then(|line| serde_json::from_str(line).ok()).filter(harmless);
        Some(Self { label, record })
    }
}

/// Whether it says of a run only that it was interrupted.
fn harmless(record: &Record) -> bool {
    record.abandoned
        && record.verdict_digest.is_none()
        && record.verdict.outcome == RunOutcome::Interrupted
        && record.verdict.rows.iter().all(|row| {
            matches!(row.outcome, CheckOutcome::Interrupted | CheckOutcome::NotSelected(_)) && row.findings.is_empty()
        })
        && record.rows.iter().all(|row| row.log.is_none())
}

/// What the lock files of all trees say. Nothing is waited for.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Runs that are going on.
    pub(super) alive: Vec<Label>,
    /// What is to be recorded of those that ended before they could record anything themselves.
    pub(super) dead: Vec<Record>,
    /// Whether some lock is held by a run of which nothing is known, or nobody can say whether one is.
    pub(super) unknown: bool,
}

impl Census {
    pub(super) fn take(state: &State) -> Self {
        let mut census = Self::default();
        let Ok(names) = state.names(PREFIX) else { return Self { unknown: true, ..census } };
        for name in names {
            let file = state.file(&name).ok().flatten();
            let regular = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
            let Some(file) = file.filter(regular) else {
                census.unknown = true;
                continue;
            };
            // Read while it is held, so that it is not about to be changed. Whoever wants it waits for a moment.
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => census.dead.extend(Begun::read(&file).and_then(|begun| begun.record)),
                Err(_) => match Begun::read(&file).and_then(|begun| begun.label) {
                    Some(label) => census.alive.push(label),
                    None => census.unknown = true,
                },
            }
        }
        census
    }
}

/// For whoever is about to look: records the runs that ended before they could do so themselves, and says which ones are
/// going on. Where the former cannot be done, nothing is shown of them.
pub fn settle(state: &State) -> Vec<Label> {
    let Census { alive, dead, .. } = Census::take(state);
    if !dead.is_empty() {
        let store = Store::open(state, &|| {});
        let recorded = store.and_then(|store| dead.iter().try_for_each(|record| store.record_abandoned(state, record)));
        if let Err(error) = recorded {
            tracing::debug!(%error, "runs that were killed cannot be recorded");
        }
    }
    alive
}
