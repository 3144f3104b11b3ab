//! Events: what a run says while it goes on, in order. Everything visible is made from these or from a
//! stored record.

use super::{CheckId, CheckKind, Record, RecordRow, Row, RunId, ScenarioName};
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
    /// A check has ended, or will not start. Of those that ran side by side too, this is said in declared order.
    CheckFinished {
        /// What became of it.
        row: Box<Row>,
        /// And around it.
        record: Box<RecordRow>,
    },
    /// Everything has ended.
    RunFinished {
        /// The whole record.
        record: Box<Record>,
    },
}
