//! What can go wrong with the store, for people: what, where, and what to do.

use super::place::PlaceError;
use crate::model::CanonicalError;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the database is waited for. A transaction is a few milliseconds long; whoever holds it for longer is stuck or
/// is no Probity.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Why the store cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its place is taken.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// It was written by a later version.
    #[error("{} was written by a newer Probity (schema {found}, this one knows {known})\nhelp: update Probity; nothing in it was touched", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Somebody else holds it.
    #[error("another program has held {} for {} seconds\nhelp: end the program that holds it (`fuser -v` on the file names it), then try again", .0.display(), PATIENCE.as_secs())]
    Held(PathBuf),
    /// It may not be written to.
    #[error("{} cannot be written to\nhelp: give this user write access to the file and its folder", .0.display())]
    ReadOnly(PathBuf),
    /// It is no database.
    #[error("{} is damaged or is no database\nhelp: the next `probity verify` sets it aside and starts a new one; its logs stay readable", .0.display())]
    Damaged(PathBuf),
    /// It is a database, and none of ours.
    #[error("{} is not as Probity made it: somebody changed its schema\nhelp: the next `probity verify` sets it aside and starts a new one; its logs stay readable", .0.display())]
    Foreign(PathBuf),
    /// It could not be moved out of the way.
    #[error("{} is damaged or not ours, and cannot be set aside: {source}\nhelp: move it away to start a new one", path.display())]
    SetAside {
        /// The database.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space is left for {}\nhelp: free some space; what is recorded is still there", .0.display())]
    Full(PathBuf),
    /// Anything else that SQLite says.
    #[error("cannot use {}: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What it says.
        #[source]
        source: rusqlite::Error,
    },
    /// A record has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A stored record does not read.
    #[error("the record of run {run} cannot be read: {source}")]
    Record {
        /// The run.
        run: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A stored record is not what was recorded.
    #[error("the record of run {0} was changed after it was written: its digest does not match")]
    Changed(String),
    /// No run has this name.
    #[error("there is no run `{0}`\nhelp: `probity log` lists the recorded runs")]
    NoRun(String),
    /// Several runs begin so.
    #[error("`{0}` is the beginning of several runs\nhelp: give more of its digits")]
    Ambiguous(String),
}

pub(super) fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Held(path),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => StoreError::ReadOnly(path),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged(path),
        Some(ErrorCode::DiskFull) => StoreError::Full(path),
        // Also to read it takes some: for the memory that is shared through a file beside it.
        _ if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE) => {
            StoreError::Full(path)
        }
        _ => StoreError::Sqlite { path, source: error },
    }
}
