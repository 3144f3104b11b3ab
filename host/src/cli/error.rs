//! What goes wrong before there is a verdict. The kind alone decides the exit code.

use crate::config::{Colour, ConfigError};
use crate::store::{PlaceError, StoreError};
use crate::subject::SnapshotError;
use crate::subject::git::GitError;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The person's: arguments, configuration, something to install.
    Usage,
    /// This machine's: what was asked for could not be done.
    Trouble,
}

/// An error on its way to a person.
#[derive(Debug)]
pub(super) struct CliError {
    kind: Kind,
    message: String,
    /// A finished text with places and carets, shown in place of the message.
    rendered: bool,
}

impl CliError {
    /// The person has to change something: exit code 2.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), rendered: false }
    }

    /// Something did not work: exit code 1.
    pub(super) fn trouble(message: impl Into<String>) -> Self {
        Self { kind: Kind::Trouble, message: message.into(), rendered: false }
    }

    /// Adds what to do about it.
    pub(super) fn hint(mut self, hint: &str) -> Self {
        self.message.push_str("\nhelp: ");
        self.message.push_str(hint);
        self
    }

    /// Mistakes of the configuration, each with its place.
    pub(super) fn config(error: &ConfigError, colour: Colour) -> Self {
        Self { kind: Kind::Usage, message: error.render(colour), rendered: true }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn is_rendered(&self) -> bool {
        self.rendered
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Usage => 2,
            Kind::Trouble => 1,
        }
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Place(place) => place.into(),
            StoreError::NoRun(_) | StoreError::Ambiguous(_) | StoreError::Newer { .. } => {
                Self::usage(error.to_string())
            }
            StoreError::Held(_)
            | StoreError::ReadOnly(_)
            | StoreError::Damaged(_)
            | StoreError::Foreign(_)
            | StoreError::SetAside { .. }
            | StoreError::Full(_)
            | StoreError::Sqlite { .. }
            | StoreError::Canonical(_)
            | StoreError::Record { .. }
            | StoreError::Changed(_) => Self::trouble(error.to_string()),
        }
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::NotAFolder(_) | PlaceError::NotAFile(_) => Self::usage(error.to_string()),
            PlaceError::Make { .. } | PlaceError::Unreadable(_) => Self::trouble(error.to_string()),
        }
    }
}
