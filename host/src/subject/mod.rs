//! The subject: what is verified, taken from a working tree as it lies there.
//!
//! Must not: change anything in the tree, follow a link, open what is no regular file, or execute
//! anything that a repository says. Git is reached through [`git`] and nowhere else.

pub mod beneath;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod git;
mod pieces;
mod snapshot;

pub use pieces::Pieces;
pub use snapshot::{Entry, Kind, Snapshot, SnapshotError, Workspace};
