//! One run at a time on a tree: a kernel lock on a file in the state folder that is never removed, since whoever waits
//! for one that was removed waits for nothing.
//!
//! The kernel alone decides who has it, and lets go when the process that had it is gone, whatever became of that. What
//! is written in the file only says who that is or was: see [`super::begun`].

use super::begun::{Begun, Label};
use super::place::{PlaceError, State};
use crate::model::{Digest, Record};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What the names of lock files begin with. One per tree, however many worktrees share the state folder.
pub(super) const PREFIX: &str = "lock-";

/// How often, and how long apart, a lock is tried that nobody waits for: who looks whether a run is dead holds it for a
/// moment.
const TRIES: u32 = 20;
const APART: Duration = Duration::from_millis(5);

/// The lock of a tree, which somebody may have.
#[derive(Debug)]
pub struct TreeLock {
    file: File,
}

/// The lock of a tree, held until this is gone.
#[derive(Debug)]
pub struct Lease {
    file: File,
    /// Why nobody can hold it: then runs go side by side, and nobody can tell the dead from the living.
    unsupported: Option<Errno>,
}

/// What became of trying.
#[derive(Debug)]
pub enum Tried {
    /// It is held.
    Held(Lease),
    /// Somebody else has it.
    Busy(TreeLock),
}

impl TreeLock {
    /// The lock of the tree at `root`.
    pub fn of(state: &State, root: &Path) -> Result<Self, PlaceError> {
        Self::named(state, &format!("{PREFIX}{}", &blake3::hash(root.as_os_str().as_bytes()).to_hex()[..16]))
    }

    /// The lock of an identity: whoever has it finds out what the answer is, in whichever worktree. There are so few that
    /// their files may stay; two that share one wait for each other without need.
    pub fn of_identity(state: &State, identity: &Digest) -> Result<Self, PlaceError> {
        Self::named(state, &format!("flight-{:02x}", identity.as_bytes()[0]))
    }

    fn named(state: &State, name: &str) -> Result<Self, PlaceError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(state.folder(), name, flags, Mode::RUSR | Mode::WUSR);
        let path = || state.path().join(name);
        let file = File::from(file.map_err(|error| match error {
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => PlaceError::NotAFile(path()),
            error => PlaceError::Make { path: path(), source: error.into() },
        })?);
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if regular { Ok(Self { file }) } else { Err(PlaceError::NotAFile(path())) }
    }

    /// Takes it if nobody has it.
    pub fn attempt(self) -> Tried {
        for _ in 0..TRIES {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Tried::Held(Lease { file: self.file, unsupported: None }),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(APART),
                Err(Errno::INTR) => {}
                Err(error) => return Tried::Held(Lease { file: self.file, unsupported: Some(error) }),
            }
        }
        Tried::Busy(self)
    }

    /// Who has it, as far as they have said so.
    pub fn owner(&self) -> Option<Label> {
        Begun::read(&self.file)?.label
    }

    /// Waits for it, on a thread of its own. Whoever takes the receiver away does not want it any more.
    pub fn wait(self) -> Receiver<Lease> {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let unsupported = loop {
                match flock(&self.file, FlockOperation::LockExclusive) {
                    Ok(()) => break None,
                    Err(Errno::INTR) => {}
                    Err(error) => break Some(error),
                }
            };
            let _ = sender.send(Lease { file: self.file, unsupported });
        });
        receiver
    }
}

impl Lease {
    /// Why there is no lock here: what the system says of it.
    pub fn unsupported(&self) -> Option<io::Error> {
        self.unsupported.map(Into::into)
    }

    /// The run that had it before and left without a word: it ended before it could record anything. Nobody can say so
    /// where there are no locks.
    pub fn abandoned(&self) -> Option<Record> {
        if self.unsupported.is_some() { None } else { Begun::read(&self.file)?.record }
    }

    /// Says who has it.
    pub fn label(&self, label: &Label) -> io::Result<()> {
        if self.unsupported.is_some() {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.file.write_all_at(&label.line(), 0)
    }

    /// Says what would be recorded of the run if this process were gone from one moment to the next.
    pub fn begin(&self, record: &Record) -> io::Result<()> {
        if self.unsupported.is_some() {
            return Ok(());
        }
        let mut bytes = serde_json::to_vec(record)?;
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, self.file.metadata()?.len())
    }

    /// The run has ended in order, and what is to be kept of it is kept.
    pub fn finish(self) {
        if self.unsupported.is_none() {
            // What stays is told from what was recorded by the run's name.
            let _ = self.file.set_len(0);
        }
    }
}
