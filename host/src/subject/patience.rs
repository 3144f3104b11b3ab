//! How long whoever asked is willing to wait: until a moment, and until somebody says stop. Shared by everything that
//! can take long before and after checks run.

use crate::system::clock;
use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Patience, of which clones are one. It is endless until something is said.
#[derive(Debug, Clone, Default)]
pub struct Patience(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: AtomicBool,
    until: Mutex<Option<Instant>>,
}

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Somebody said stop.
    Stopped,
    /// The moment has come.
    Late,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "it was interrupted",
            Self::Late => "the time of the whole run was used up",
        })
    }
}

impl std::error::Error for Over {}

impl Patience {
    /// Says stop.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Sets the moment, in place of any other.
    pub fn until(&self, moment: Option<Instant>) {
        *self.0.until.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }

    /// The moment, where one was set.
    pub fn deadline(&self) -> Option<Instant> {
        *self.0.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over, and why.
    pub fn over(&self) -> Option<Over> {
        if self.0.stopped.load(Ordering::Relaxed) {
            return Some(Over::Stopped);
        }
        self.deadline().is_some_and(|until| until <= clock::now()).then_some(Over::Late)
    }

    /// Reads as long as it lasts.
    pub(super) fn reading<R>(&self, inner: R) -> Patiently<R> {
        Patiently { inner, patience: self.clone() }
    }

    /// An error once it is over, which no reader takes for one to try again after.
    pub(super) fn check(&self) -> io::Result<()> {
        self.over().map_or(Ok(()), |over| Err(io::Error::other(over)))
    }
}

/// A reader that fails once patience is over.
pub(super) struct Patiently<R> {
    inner: R,
    patience: Patience,
}

impl<R: Read> Read for Patiently<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patience.check()?;
        self.inner.read(buffer)
    }
}
