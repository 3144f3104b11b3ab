//! Where a run keeps what it makes, and how that becomes its record.

use super::error::CliError;
use super::turn::Own;
use crate::model::{Record, RunId, RunOutcome};
use crate::store::{Lease, Logs, Sealing, State, Store, StoreError};
use std::cell::RefCell;
use std::fmt::Display;

/// Where this run keeps what it makes.
pub(super) struct Place<'n> {
    pub(super) state: State,
    pub(super) run: RunId,
    pub(super) logs: Logs,
    store: Option<Store<'n>>,
    /// Given back as soon as all is kept.
    lease: RefCell<Option<Lease>>,
    /// Why it cannot be the state folder: then nothing is recorded.
    pub(super) trouble: Option<String>,
    /// Holds a folder that goes with this process.
    _temporary: Option<tempfile::TempDir>,
}

impl<'n> Place<'n> {
    /// The state folder; where that cannot be used, a temporary one, so that the run is still shown.
    pub(super) fn open(own: &mut Own<'n>) -> Result<Self, CliError> {
        let (run, store, lease) = (own.run.clone(), own.store.take(), RefCell::new(own.lease.take()));
        let trouble = match (own.state.take(), own.trouble.take()) {
            (Some(state), None) => match Logs::create(&state, &run) {
                Ok(logs) => return Ok(Self { state, run, logs, store, lease, trouble: None, _temporary: None }),
                Err(error) => format!("cannot write below {}: {error}", state.path().display()),
            },
            (_, trouble) => trouble.unwrap_or_default(),
        };
        let none =
            |error: &dyn Display| CliError::trouble(format!("{trouble}; and there is no temporary folder: {error}"));
        let temporary = tempfile::tempdir().map_err(|error| none(&error))?;
        let state = State::at(temporary.path()).map_err(|error| none(&error))?;
        let logs = Logs::create(&state, &run).map_err(|error| none(&error))?;
        Ok(Self { state, run, logs, store, lease, trouble: Some(trouble), _temporary: Some(temporary) })
    }

    /// Says that the run has begun, so that it is known of even if nothing else comes of it. Where that cannot be written,
    /// neither can what comes of it, and that is told.
    pub(super) fn begin(&self, record: &Record) {
        if let (None, Some(lease)) = (&self.trouble, self.lease.borrow().as_ref())
            && let Err(error) = lease.begin(record)
        {
            tracing::warn!(%error, "if this run is killed, nobody will see that it was there");
        }
    }

    /// Makes the record visible, last of all. One that cannot be recorded is no verdict: its outcome is `error`.
    pub(super) fn publish(
        &self,
        mut record: Record,
        sealing: Option<Sealing<'_>>,
        waiting: &dyn Fn(),
    ) -> (Record, Option<CliError>) {
        let recorded = match &self.trouble {
            Some(trouble) => Err(trouble.clone()),
            None => self
                .logs
                .settle()
                .and_then(|()| self.logs.in_place())
                .map_err(|error| format!("cannot write the logs: {error}"))
                .and_then(|()| self.record(&record, sealing, waiting).map_err(|error| error.to_string())),
        };
        match recorded {
            Ok(()) => {
                if let Some(lease) = self.lease.take() {
                    lease.finish();
                }
                (record, None)
            }
            Err(why) => {
                record.verdict.outcome = record.verdict.outcome.min(RunOutcome::Error);
                record.verdict_digest = None;
                (
                    record,
                    Some(CliError::trouble(format!("the verdict could not be recorded, so it does not count: {why}"))),
                )
            }
        }
    }

    fn record(&self, record: &Record, sealing: Option<Sealing<'_>>, waiting: &dyn Fn()) -> Result<(), StoreError> {
        if let Some(store) = self.store.as_ref().filter(|store| store.is_in_place(&self.state)) {
            match store.record(&self.state, record, sealing) {
                // It was whole when the run began: the next one to open it sets it aside.
                Err(StoreError::Damaged(_) | StoreError::Foreign(_)) => {}
                recorded => return recorded,
            }
        }
        Store::open(&self.state, waiting)?.record(&self.state, record, sealing)
    }
}
