//! The subject: what is verified, taken from a working tree as it lies there.
//!
//! Must not: change anything in the tree, follow a link, open what is no regular file, or execute
//! anything that a repository says. Git is reached through [`git`] and nowhere else.

pub mod beneath;
mod blob;
mod changes;
mod collect;
mod conversion;
mod difference;
mod entry;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod git;
mod history;
mod id;
mod look;
mod memory;
mod open;
mod patience;
mod pieces;
mod revision;
mod snapshot;
mod specification;
mod trees;
mod watch;

pub use changes::Changes;
pub use entry::{Entry, Kind};
pub use error::SnapshotError;
pub use git::Committed;
pub use id::ObjectId;
pub use look::look_at;
pub use memory::Memory;
pub use patience::{Over, Patience};
pub use pieces::Pieces;
pub use revision::{Objects, Revision, kind_of_mode};
pub use snapshot::{Snapshot, Workspace};
pub use specification::{Specification, spec_digest};
pub use watch::{Happened, Watch};

#[cfg(test)]
mod unchanged;
