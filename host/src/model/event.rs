//! Events: what a run says while it goes on, in order. Everything visible is made from these or from a
//! stored record.

use super::{CheckId, CheckKind, Record, RecordRow, Reuse, Row, RunId, ScenarioName};
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The plan stands; checks will start.
    RunStarted {
        /// The run.
        run: RunId,
        /// What it verifies against.
        scenario: ScenarioName,
        /// In declared order.
        checks: Vec<CheckId>,
    },
    /// A check has started.
    CheckStarted {
        /// The check.
        id: CheckId,
        /// How it is carried out.
        kind: CheckKind,
    },
    /// A command wrote something. Said only where somebody wants to see it at once.
    CheckOutput {
        /// The check.
        id: CheckId,
        /// Whole lines as far as it wrote such, as text, without any secret.
        text: String,
        /// Bytes before them that are left out, since they came faster than anybody could look at.
        skipped: u64,
    },
    /// A check takes long, and goes on.
    CheckSlow {
        /// The check.
        id: CheckId,
        /// Since its start, milliseconds.
        elapsed_ms: u64,
        /// When it will be ended, from its start. Null where it may take as long as the run.
        timeout_ms: Option<u64>,
    },
    /// Somebody asked what goes on.
    Running {
        /// What runs now, in declared order.
        checks: Vec<Busy>,
    },
    /// All that runs was asked to end.
    Stopping {
        /// For what.
        why: Stopping,
    },
    /// A check has ended. What became of it is said once that is certain, when all before it have ended.
    CheckEnded {
        /// The check.
        id: CheckId,
        /// Since its start, milliseconds.
        elapsed_ms: u64,
    },
    /// What became of a check, whether it was started or not. Of those that ran side by side too, this is said in declared order.
    CheckFinished {
        /// What became of it.
        row: Box<Row>,
        /// And around it.
        record: Box<RecordRow>,
    },
    /// Nothing was run: the record that is told answers.
    RunReused {
        /// The run that made it.
        run: RunId,
        /// What is to be known of that.
        reuse: Box<Reuse>,
    },
    /// Everything has ended, and what was found is recorded if it can be.
    RunFinished {
        /// The whole record.
        record: Box<Record>,
        /// Whether it was kept. One that was not is no verdict.
        recorded: bool,
    },
}

/// A check that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// The check.
    pub id: CheckId,
    /// Since its start, milliseconds.
    pub elapsed_ms: u64,
    /// The end of what a command wrote so far, as text, without any secret. Absent where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// A person or the system asked for it.
    Signal,
    /// The time of the whole run is used up.
    Budget,
}

impl Record {
    /// What its run said, as far as that is kept: what it started with, of each check in declared order that it was
    /// started and what became of it, and what it came to.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let start = Event::RunStarted {
            run: self.run.clone(),
            scenario: self.verdict.scenario.clone(),
            checks: self.verdict.rows.iter().map(|row| row.id.clone()).collect(),
        };
        let checks = self.verdict.rows.iter().zip(&self.rows).flat_map(|(row, record)| {
            let id = &row.id;
            let ran = record.started_ms.map(|_| {
                let started = Event::CheckStarted { id: id.clone(), kind: row.kind };
                [started, Event::CheckEnded { id: id.clone(), elapsed_ms: record.duration_ms }]
            });
            let finished = Event::CheckFinished { row: Box::new(row.clone()), record: Box::new(record.clone()) };
            ran.into_iter().flatten().chain([finished])
        });
        let end = Event::RunFinished { record: Box::new(self.clone()), recorded: true };
        std::iter::once(start).chain(checks).chain([end])
    }
}
