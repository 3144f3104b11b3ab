//! What can keep a subject from being taken.

use super::git::GitError;
use std::io;

/// Why no snapshot could be taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Git could not say what belongs to the tree.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The tree could not be walked.
    #[error("cannot walk the tree: {0}\nhelp: give this user access to it, or leave it out with a `.gitignore`")]
    Walk(#[from] ignore::Error),
    /// Something could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// What, relative to the root.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}
