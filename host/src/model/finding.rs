//! Findings: one observation each, with a total order, so that a report has one form.

use super::Bytes;
use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth a look.
    Warning,
    /// Fails the check.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A point in a text file: line and column from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// From 1; lines end with LF.
    pub line: u32,
    /// From 1; Unicode scalar values, or bytes where the line is not UTF-8.
    pub column: u32,
}

/// Where a finding is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// A path in the subject.
    pub path: String,
    /// Its first character.
    pub start: Option<Position>,
    /// The character after its last one.
    pub end: Option<Position>,
}

/// A proposed change: a byte range of a file as it was read, and what to put there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edit {
    /// A path in the subject.
    pub path: String,
    /// First byte to replace.
    pub start: u64,
    /// After the last byte to replace.
    pub end: u64,
    /// What to put there.
    pub replacement: Bytes,
}

/// One observation. Ordered by place first, so that a sorted report reads from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// Where it is.
    pub place: Option<Place>,
    /// One of the check's rules.
    pub rule: String,
    /// How much it weighs.
    pub severity: Severity,
    /// One sentence, as the pack wrote it: whoever shows it escapes control characters.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Edits that together resolve it.
    pub edits: Vec<Edit>,
    /// Whether the base has it too, for a check with a baseline: then it fails nothing. It is the host that says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
}
