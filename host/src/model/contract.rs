//! The contract with packs, as plain values: the same shapes as `guest-sdk/wit/check.wit`.
//!
//! A value that came from a pack is capped and well-formed once it is one of these, and still untrusted.

use super::{Encoder, Finding, Severity};
use serde::{Deserialize, Serialize};

/// A read-only directory that a check may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mount {
    /// The subject.
    Tree,
    /// What the subject is compared with.
    Base,
    /// Results and output of earlier checks.
    Evidence,
    /// What an author claims.
    Claim,
    /// The committed specification.
    Spec,
}

impl Mount {
    /// All mounts, in the order of their guest paths' declaration.
    pub const ALL: [Self; 5] = [Self::Tree, Self::Base, Self::Evidence, Self::Claim, Self::Spec];

    /// The name without a slash: `tree`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Base => "base",
            Self::Evidence => "evidence",
            Self::Claim => "claim",
            Self::Spec => "spec",
        }
    }
}

/// Something a check asks to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Where.
    pub mount: Mount,
    /// Which paths below it; a leading `!` excludes, the last match wins.
    pub globs: Vec<String>,
    /// One sentence for the person who grants it.
    pub why: String,
}

/// How often a check is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Once for each file.
    File,
    /// Once.
    Tree,
}

/// A kind of finding that a check can make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique within the check.
    pub id: String,
    /// One sentence.
    pub summary: String,
    /// Its usual severity.
    pub severity: Severity,
    /// Markdown.
    pub explain: String,
}

/// One check of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInfo {
    /// Unique within the pack.
    pub id: String,
    /// A short name for people.
    pub title: String,
    /// Markdown.
    pub explain: String,
    /// How often it is called.
    pub scope: Scope,
    /// The files it is about, as globs.
    pub files: Vec<String>,
    /// What it asks to read.
    pub needs: Vec<Need>,
    /// Whether it wants to know what changed.
    pub wants_changes: bool,
    /// Everything it can report.
    pub rules: Vec<Rule>,
    /// A JSON Schema, as text.
    pub config_schema: Option<String>,
}

/// What a pack says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackInfo {
    /// Its own name.
    pub name: String,
    /// A semantic version.
    pub version: String,
    /// One sentence.
    pub summary: String,
    /// An SPDX expression.
    pub license: Option<String>,
    /// At least one.
    pub checks: Vec<CheckInfo>,
}

impl PackInfo {
    /// The check with this id.
    pub fn check(&self, id: &str) -> Option<&CheckInfo> {
        self.checks.iter().find(|check| check.id == id)
    }
}

/// The kind of an entry, as a pack sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file with its executable bit set.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A repository inside the subject.
    Submodule,
}

/// One entry in scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to `/tree`, `/`-separated.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes.
    pub size: u64,
    /// Whether version control knows it.
    pub tracked: bool,
    /// Its path below `/base`.
    pub base_path: Option<String>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Not in the base.
    Added,
    /// Different.
    Modified,
    /// Not in the subject.
    Deleted,
    /// In the base under another path.
    Renamed,
}

/// One difference between base and subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path in the subject, or of a deleted file in the base.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// Of a renamed file, its path in the base.
    pub previous_path: Option<String>,
}

impl Entry {
    /// Appends all that a check is told of it.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.text(&self.path).integer(self.kind as u64).integer(self.size).integer(self.tracked.into());
        encode_option(encoder, self.base_path.as_deref());
    }
}

impl Change {
    /// The paths that it is about: in the subject, and in the base where that is another.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.path.as_str()), self.previous_path.as_deref()].into_iter().flatten()
    }

    /// Appends all that a check is told of what changed.
    pub fn encode_all(changes: Option<&[Self]>, encoder: &mut Encoder) {
        encoder.integer(changes.is_some().into());
        let changes = changes.unwrap_or_default();
        encoder.integer(changes.len() as u64);
        for change in changes {
            encoder.text(&change.path).integer(change.kind as u64);
            encode_option(encoder, change.previous_path.as_deref());
        }
    }
}

fn encode_option(encoder: &mut Encoder, text: Option<&str>) {
    match text {
        Some(text) => encoder.integer(1).text(text),
        None => encoder.integer(0),
    };
}

/// What a check is asked to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The id of the check within its pack.
    pub check: String,
    /// A JSON object in canonical form.
    pub config: String,
    /// Sorted bytewise by path.
    pub files: Vec<Entry>,
    /// Sorted bytewise by path.
    pub changes: Option<Vec<Change>>,
}

/// What a check found: findings in their total order, stats sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was observed.
    pub findings: Vec<Finding>,
    /// Named counts.
    pub stats: Vec<(String, u64)>,
}

/// Why a check did not judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", content = "message", rename_all = "kebab-case")]
pub enum Refusal {
    /// Nothing here for it.
    NotApplicable(String),
    /// Only a person can give what it needs.
    NeedsContext(String),
    /// Something is missing in this place.
    EnvironmentGap(String),
    /// A configuration that makes no sense.
    InvalidConfig(String),
    /// It failed and noticed.
    Internal(String),
}
