//! What is in the scope of a check and cannot be judged: it cannot be read, or cannot be named to who judges.
//!
//! A check that was never shown a part of what it is about says nothing of it, so it is no green.

use crate::subject::{Entry, Kind};
use std::fmt;

/// What cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dark {
    /// Its path; bytes that are no text are escaped.
    pub path: String,
    /// Why not.
    pub why: Why,
}

/// Why something cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// This user cannot read it.
    Unreadable,
    /// Its name is not UTF-8.
    Name,
    /// It is a pipe, a socket or a device.
    Special,
}

impl Dark {
    /// The entry, if it is in scope and cannot be judged. What is in a folder that cannot be listed, nobody knows: it may
    /// be in scope.
    pub(super) fn of(
        entry: &Entry,
        in_scope: impl Fn(&[u8]) -> bool,
        may_be_below: impl Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        let text = std::str::from_utf8(&entry.path);
        let why = match (entry.kind, text) {
            (Kind::Unreadable, _) => Why::Unreadable,
            (Kind::Special, _) => Why::Special,
            // Nothing of it is here, so nothing is hidden.
            (Kind::LeftOut, _) | (_, Ok(_)) => return None,
            (_, Err(_)) => Why::Name,
        };
        let concerned = if entry.is_folder() { may_be_below(&entry.path) } else { in_scope(&entry.path) };
        let path = || text.map_or_else(|_| entry.path.escape_ascii().to_string(), str::to_owned);
        concerned.then(|| Self { path: path(), why })
    }

    /// What is to be said of them. None where there is nothing.
    pub fn message(all: &[Self]) -> Option<String> {
        /// Paths that are named.
        const FEW: usize = 5;
        let first = all.iter().map(|dark| dark.why).min()?;
        let paths: Vec<&str> = all.iter().filter(|dark| dark.why == first).map(|dark| dark.path.as_str()).collect();
        let shown: Vec<String> = paths.iter().take(FEW).map(|path| format!("`{path}`")).collect();
        let more = if paths.len() > FEW { format!(" and {} more", paths.len() - FEW) } else { String::new() };
        Some(format!("{}{more} {first}, or leave it out with `files`", shown.join(", ")))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "cannot be read\nhelp: give this user read access",
            Self::Name => "cannot be named to the check, since that is no UTF-8\nhelp: rename it",
            Self::Special => "is no file, but a pipe, a socket or a device\nhelp: remove it",
        })
    }
}
