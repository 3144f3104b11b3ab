//! Workers of one pack that have only looked at options so far, and wait for a check: starting a process costs as much as
//! judging a hundred files.
//!
//! One that has run a check never comes here: if it turned out to be in other hands, all that it ever said would have to
//! be taken back.

use super::process::Worker;
use std::sync::{Mutex, PoisonError};

/// The workers that wait: at most one for each that looked at options at the same time.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<Vec<Worker>>);

impl Idle {
    /// One of them.
    pub(super) fn take(&self) -> Option<Worker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps one.
    pub(super) fn put(&self, worker: Worker) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}
