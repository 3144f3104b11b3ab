//! Workers of one pack that are done with a check and wait for another one: starting a process costs as much as judging
//! a hundred files.
//!
//! A worker serves one grant in its life. One that has seen none yet may take any.

use super::process::Worker;
use crate::model::Digest;
use std::sync::{Mutex, PoisonError};

/// The most that wait. Each holds the memory that its last guest touched.
const MOST: usize = 8;

/// The workers that wait, each with the grant it has seen.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<Vec<(Option<Digest>, Worker)>>);

impl Idle {
    /// A worker that has seen nothing but this grant.
    pub(super) fn take(&self, grant: Option<Digest>) -> Option<Worker> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = |wanted: Option<Digest>| waiting.iter().position(|(seen, _)| *seen == wanted);
        let at = fitting(grant).or_else(|| fitting(None))?;
        Some(waiting.swap_remove(at).1)
    }

    /// Keeps a worker that has done all that it was asked.
    pub(super) fn put(&self, grant: Option<Digest>, worker: Worker) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST {
            waiting.push((grant, worker));
        }
    }
}
