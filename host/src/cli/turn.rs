//! Whose turn it is: one run at a time on a tree. Here a run gets its name, the state folder, its place in the row of
//! those that want to verify the same tree, and the records.

use super::args::Verify;
use super::error::CliError;
use super::prepare;
use super::printer::Printer;
use super::take::Budget;
use crate::model::{Digest, RunId};
use crate::native::Supervisor;
use crate::report::escape;
use crate::store::{self, Label, Lease, PlaceError, State, Store, StoreError, TreeLock, Tried};
use crate::subject::{Over, Workspace};
use crate::system;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often it is asked whether anybody still waits.
const SLICE: Duration = Duration::from_millis(50);

/// A run that wants to verify a tree.
pub(super) struct Turn<'n> {
    pub(super) budget: Budget,
    pub(super) place: Own<'n>,
    pub(super) options: &'n Verify,
    /// None where nothing will be run.
    pub(super) supervisor: Option<&'n Supervisor>,
    pub(super) printer: &'n Printer,
    pub(super) waiting: &'n dyn Fn(),
    entered: bool,
    /// Whether it was stopped while it waited.
    stopped: bool,
}

/// What a run has for itself while it is its turn.
pub(super) struct Own<'n> {
    pub(super) run: RunId,
    pub(super) state: Option<State>,
    pub(super) lease: Option<Lease>,
    pub(super) store: Option<Store<'n>>,
    /// Why nothing can be recorded.
    pub(super) trouble: Option<String>,
}

/// When it was its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// At once, or before.
    Now,
    /// After another run, of which the tree may be another one now.
    Late,
}

impl<'n> Turn<'n> {
    pub(super) fn new(
        budget: Budget,
        options: &'n Verify,
        supervisor: Option<&'n Supervisor>,
        printer: &'n Printer,
        waiting: &'n dyn Fn(),
    ) -> Result<Self, CliError> {
        let run = store::new_run_id().map_err(|error| CliError::trouble(format!("cannot name the run: {error}")))?;
        let place = Own { run, state: None, lease: None, store: None, trouble: None };
        Ok(Self { budget, place, options, supervisor, printer, waiting, entered: false, stopped: false })
    }

    /// Waits until no other run verifies this tree, before it is looked at; a plan waits for nobody. Where nothing was ever
    /// recorded, nothing is made yet: a run that is refused leaves nothing behind.
    pub(super) fn enter(&mut self, workspace: &Workspace) -> Result<Entered, CliError> {
        if self.entered || self.options.plan || nothing_yet(workspace) {
            return Ok(Entered::Now);
        }
        self.enter_now(workspace)
    }

    /// The same where the tree was looked at already: if it is late, that has to be done again.
    pub(super) fn enter_at_last(&mut self, workspace: &Workspace) -> Result<Entered, CliError> {
        if self.entered {
            return Ok(Entered::Now);
        }
        // Whoever made it meanwhile may have come and gone.
        let first = nothing_yet(workspace);
        let entered = self.enter_now(workspace)?;
        Ok(if first { entered } else { Entered::Late })
    }

    fn enter_now(&mut self, workspace: &Workspace) -> Result<Entered, CliError> {
        self.entered = true;
        let common = workspace.repository.as_ref().map(|repository| repository.common.as_path());
        let locked = State::make(&workspace.root, common)
            .and_then(|state| TreeLock::of(&state, &workspace.root).map(|lock| (state, lock)));
        let (state, lock) = match locked {
            Ok(locked) => locked,
            Err(error @ (PlaceError::NotAFolder(_) | PlaceError::NotAFile(_))) => return Err(error.into()),
            // What cannot be recorded is shown all the same.
            Err(error @ (PlaceError::Make { .. } | PlaceError::Unreadable(_))) => {
                self.place.trouble = Some(error.to_string());
                return Ok(Entered::Now);
            }
        };
        let (lease, entered) = match lock.attempt() {
            Tried::Held(lease) => (lease, Entered::Now),
            Tried::Busy(lock) => (self.wait(lock, "is going on in this tree, and one runs at a time")?, Entered::Late),
        };
        if entered == Entered::Late {
            self.budget.restart();
        }
        if let Some(error) = lease.unsupported() {
            let place = state.path().display();
            self.printer.note(&format!("note: locks do not work in {place} ({error}): nothing keeps another run of this tree from running now, and one that is killed leaves no trace"));
        }
        self.records(&state, &lease)?;
        self.place.state = Some(state);
        self.place.lease = Some(lease);
        Ok(entered)
    }

    /// Opens the records while it can still be said that they cannot be used, and adds the run before if it ended without
    /// doing so.
    fn records(&mut self, state: &State, lease: &Lease) -> Result<(), CliError> {
        let label = self.label();
        let opened = Store::open(state, self.waiting).and_then(|store| {
            if let Some(record) = lease.abandoned() {
                store.record_abandoned(state, &record)?;
            }
            Ok(store)
        });
        match opened {
            Ok(store) => {
                if let Some(aside) = store.set_aside() {
                    let aside = aside.display();
                    self.printer.note(&format!("warning: the records were damaged or not made by Probity; they are set aside as {aside}, and new ones begin"));
                }
                self.place.store = Some(store);
            }
            Err(error @ (StoreError::Place(_) | StoreError::Newer { .. } | StoreError::Held(_))) => {
                return Err(error.into());
            }
            Err(error) => self.place.trouble = Some(error.to_string()),
        }
        if let Err(error) = lease.label(&label) {
            self.place.trouble.get_or_insert(format!("cannot write below {}: {error}", state.path().display()));
        }
        Ok(())
    }

    fn wait(&mut self, lock: TreeLock, what: &str) -> Result<Lease, CliError> {
        let owner = lock.owner().map_or_else(|| "another run".to_owned(), |label| named(&label));
        if self.options.no_wait {
            return Err(
                CliError::usage(format!("{owner} {what}")).hint("wait until it has ended, or leave out `--no-wait`")
            );
        }
        self.printer.note(&format!("waiting for {owner} to end: it {what}"));
        self.printer.status(Some("waiting"));
        let lease = self.patiently(&lock.wait());
        self.printer.status(None);
        lease.ok_or_else(|| {
            self.stopped = true;
            CliError::trouble(format!("interrupted while waiting for {owner}; nothing ran and nothing is recorded"))
        })
    }

    /// None where somebody said stop.
    fn patiently(&self, lease: &Receiver<Lease>) -> Option<Lease> {
        loop {
            match lease.recv_timeout(SLICE) {
                Ok(lease) => return Some(lease),
                Err(RecvTimeoutError::Timeout) if self.budget.patience.over() != Some(Over::Stopped) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Sees to it that nobody else finds out the answer to the same question, in whichever worktree: for as long as the lease
    /// is there, where locks work. Late after somebody else did: their record may answer it.
    pub(super) fn alone(&mut self, identity: &Digest) -> Result<(Entered, Option<Lease>), CliError> {
        let Some(state) = self.place.state.as_ref().filter(|_| self.place.trouble.is_none()) else {
            return Ok((Entered::Now, None));
        };
        let lock = match TreeLock::of_identity(state, identity)?.attempt() {
            Tried::Held(lease) => {
                // Nobody is misled by one that cannot be written.
                let _ = lease.label(&self.label());
                return Ok((Entered::Now, Some(lease)));
            }
            Tried::Busy(lock) => lock,
        };
        self.wait(lock, "verifies the same in another worktree")?;
        self.budget.restart();
        Ok((Entered::Late, None))
    }

    fn label(&self) -> Label {
        Label {
            run: self.place.run.clone(),
            pid: std::process::id(),
            host: system::host_name(),
            started: self.budget.started.clone(),
        }
    }

    /// What is to be said of an error that may only have come since time was up.
    pub(super) fn judge(&self, error: CliError) -> CliError {
        if self.stopped { error } else { self.budget.judge(error) }
    }
}

/// Whether there is no state folder. What is wrong with one is said when it is made.
fn nothing_yet(workspace: &Workspace) -> bool {
    matches!(State::look(&prepare::state_folder(workspace)), Ok(None))
}

/// Says once that somebody else holds the records.
pub(super) fn waiting(printer: &Printer) -> impl Fn() + '_ {
    let told = Cell::new(false);
    move || {
        if !told.replace(true) {
            printer.note("waiting for another program that holds the records");
        }
    }
}

/// A run that is going on, for people.
pub(super) fn named(label: &Label) -> String {
    let (host, started) = (escape(&label.host), escape(&label.started));
    format!("run {} (process {} on {host}, since {started})", label.run, label.pid)
}

/// Says that there may be more in the records than is shown.
pub(super) fn newer(store: Option<&Store<'_>>, printer: &Printer) {
    if store.is_some_and(Store::is_newer) {
        printer.note("note: a newer Probity wrote these records; what it added is not shown");
    }
}
