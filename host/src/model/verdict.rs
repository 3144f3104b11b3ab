//! The verdict and the record.
//!
//! A verdict is what was found: subject, plan and rows, and nothing that differs between two runs that
//! found the same (no time, place, log or engine). A record is a verdict with everything around it. Each
//! has a digest of its own: comparing two runs compares verdicts, checking a store checks records.

use super::{
    Because, CanonicalError, Capability, CheckId, CheckOutcome, Class, Context, Deselected, Digest, Finding, PackName,
    Reaped, RunId, RunOutcome, ScenarioName, Severity, Withheld, to_canonical,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of a verdict, as its `schema` says.
pub const VERDICT_SCHEMA: &str = "probity/verdict/1";

/// How a check is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// A native command.
    Command,
    /// A component in a sandbox.
    Logic,
}

impl CheckKind {
    /// `command` or `logic`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Logic => "logic",
        }
    }
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The digest of the tree.
    pub tree: Digest,
    /// The commit it is based on, as `sha1:…` or `sha256:…`. None outside version control.
    pub commit: Option<String>,
    /// The commit that it was compared with, where there was one.
    pub base: Option<String>,
    /// The specification that it was held against. Absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Spec>,
}

/// A specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Of its files as they were committed.
    pub digest: Digest,
}

/// How often a specification was changed until a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecVersion {
    /// The number of commits, on the line of first parents, that touch one of its files.
    pub number: u64,
    /// Whether there may be more: the line could not be followed to its beginning, as in a shallow clone.
    pub at_least: bool,
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}{}", self.number, if self.at_least { " or later" } else { "" })
    }
}

/// One check of the plan: what was decided about it before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The check.
    pub id: CheckId,
    /// Why it is not among those to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deselected: Option<Deselected>,
    /// The digest of its definition. None where it is not among those to run.
    pub definition: Option<Digest>,
    /// The digest of the files in its scope. None for a command that is about no files in particular.
    pub files: Option<Digest>,
    /// Whether only findings that are new against the base fail it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
}

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The check.
    pub id: CheckId,
    /// How it was carried out.
    pub kind: CheckKind,
    /// How it can be checked again.
    pub class: Class,
    /// Whether its red decides the run.
    pub blocking: bool,
    /// What became of it.
    pub outcome: CheckOutcome,
    /// In their total order.
    pub findings: Vec<Finding>,
    /// Sorted by name.
    pub stats: Vec<(String, u64)>,
    /// The engine, where the outcome depends on it: errors about resources.
    pub engine: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// [`VERDICT_SCHEMA`].
    pub schema: String,
    /// On what.
    pub subject: Subject,
    /// Under which scenario.
    pub scenario: ScenarioName,
    /// Whether the first red ends it.
    pub fail_fast: bool,
    /// The least that fails a check.
    pub fail_on: Severity,
    /// Whether only what something changed for since the base was to run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_only: bool,
    /// Why the scenario does not apply to the subject, as a person declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_applicable: Option<String>,
    /// By which checks, in declared order.
    pub plan: Vec<PlanRow>,
    /// What it adds up to.
    pub outcome: RunOutcome,
    /// In declared order.
    pub rows: Vec<Row>,
}

impl Verdict {
    /// Whether less ran than the scenario asks for, because it was asked for so: such a run gates nothing.
    pub fn is_scoped(&self) -> bool {
        self.plan.iter().any(|row| row.deselected.is_some_and(Deselected::is_scoped))
    }

    /// Whether it says nothing of some of what its scenario is about, because it was asked for so: it takes the place of no
    /// full record.
    pub fn is_part(&self) -> bool {
        self.is_scoped() || self.changed_only
    }

    /// The digest of the canonical form.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Ok(Digest::derived(Context::Verdict, &to_canonical(self)?))
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// The output of a check, kept in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Relative to the state folder, `/`-separated.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Of its contents.
    pub digest: Digest,
}

/// How much of the environment a command sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentMode {
    /// All of it, and what the configuration adds.
    Inherited,
    /// What programs need, and what the configuration names.
    Declared,
}

impl EnvironmentMode {
    /// `inherited` or `declared`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inherited => "inherited",
            Self::Declared => "declared",
        }
    }
}

/// What a command was passed of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// How much of it.
    pub mode: EnvironmentMode,
    /// The digest of the check's definition together with each name and the keyed digest of its value: two runs of one
    /// user with the same one ran the same command in the same environment. None where the user's key cannot be kept,
    /// since without it whoever reads a record could try values until one fits.
    pub definition: Option<Digest>,
}

/// What surrounds one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRow {
    /// The check.
    pub id: CheckId,
    /// When it was started, milliseconds from the beginning of the run. Absent for a check that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// From start to end, milliseconds; 0 for a check that did not run.
    pub duration_ms: u64,
    /// How a command's process ended.
    pub exit: Option<Exit>,
    /// For people: why it is an error, what was skipped, which signal.
    pub message: Option<String>,
    /// What a command was passed of the environment. Absent for what was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Passed>,
    /// What had to be ended with a command. Absent where that was nothing.
    #[serde(default, skip_serializing_if = "Reaped::is_empty")]
    pub reaped: Reaped,
    /// A command's combined output.
    pub log: Option<Log>,
    /// What a guest wrote to its standard error, bounded; kept for errors only.
    pub stderr: Option<String>,
    /// Fuel a guest used, summed over its calls; none unless every call returned.
    pub fuel: Option<u64>,
    /// The walls around the processes that a guest ran in: `landlock, seccomp`, or what of these stood, or `none`.
    pub walls: Option<String>,
    /// The digest of what a guest learned of its files, in all its calls. Two runs with the same one saw the same.
    pub observed: Option<Digest>,
    /// What was seen of a check that ran beside the red one that it counts as skipped after. Absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

/// What was seen of a check and is no part of the verdict, since what of it there is depends on when others ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// What became of it; interrupted where it was ended, as it counted no more.
    pub outcome: CheckOutcome,
    /// In their total order.
    pub findings: Vec<Finding>,
    /// Sorted by name.
    pub stats: Vec<(String, u64)>,
}

/// Something that is to be known about a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Remark {
    /// Relative to the root, as far as it is text.
    pub path: String,
    /// For people.
    pub why: String,
}

/// How many paths a record does not name, of each of its lists that names the first hundred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unnamed {
    /// Of `open`.
    pub open: u64,
    /// Of `unproven`.
    pub unproven: u64,
    /// Of `moved`.
    pub moved: u64,
    /// Of `hidden`.
    pub hidden: u64,
    /// Of `touched`. Absent where all are named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub touched: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Unnamed {
    /// Whether all are named.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What was named as the base, and what it was then. The verdict has the commit that was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedBase {
    /// As it was given: a branch, a tag, a commit.
    pub name: String,
    /// The commit that it named, as `sha1:…` or `sha256:…`.
    pub commit: String,
}

/// A pack that judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedPack {
    /// Its name in the configuration.
    pub name: PackName,
    /// What it says its version is.
    pub version: String,
    /// Of its component.
    pub digest: Digest,
}

/// How much of its scenario a run is about. Numbers of checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// That the scenario has.
    pub scenario: u64,
    /// Of these: that were to run.
    pub selected: u64,
    /// Of these: that ran to an outcome of their own, and were not skipped or cut short.
    pub executed: u64,
}

impl Coverage {
    /// Of these rows.
    pub fn of(rows: &[Row]) -> Self {
        let count = |which: fn(&CheckOutcome) -> bool| rows.iter().filter(|row| which(&row.outcome)).count() as u64;
        Self {
            scenario: rows.len() as u64,
            selected: count(|outcome| !matches!(outcome, CheckOutcome::NotSelected(_))),
            executed: count(|outcome| match outcome {
                CheckOutcome::Passed | CheckOutcome::Failed | CheckOutcome::Error(_) | CheckOutcome::TimedOut => true,
                CheckOutcome::NotSelected(_) | CheckOutcome::Skipped(_) | CheckOutcome::Interrupted => false,
            }),
        }
    }
}

/// A verdict with everything around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// The verdict.
    pub verdict: Verdict,
    /// Its digest. None where a signal or the budget ended the run: what was found is then no verdict.
    pub verdict_digest: Option<Digest>,
    /// When it began: RFC 3339, UTC, milliseconds.
    pub started: String,
    /// From start to end, milliseconds.
    pub duration_ms: u64,
    /// Where: the tree's absolute path, as far as it is text.
    pub tree: String,
    /// Where: the host's name.
    pub host: String,
    /// Whether what was verified, the working tree or the index, differed from the commit. None outside version control.
    pub dirty: Option<bool>,
    /// Whether it was the index. Absent where it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    /// What was named as the base. Absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<NamedBase>,
    /// The version of the specification, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_version: Option<SpecVersion>,
    /// Where the subject is open: links that lead out of the tree, and what this user cannot read or list; at most the
    /// first hundred. Absent where it is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Remark>,
    /// Of a dirty tree: paths that may be as the commit has them, though nobody can say so without running what the
    /// repository says; at most the first hundred. Absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<Remark>,
    /// Paths that moved while the run went on, sorted; at most the first hundred.
    pub moved: Vec<String>,
    /// Paths that were written while the run went on and are what they were, sorted; at most the first hundred. Absent where
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<String>,
    /// Paths that packs did not get to see, each with the reason; at most the first hundred.
    pub hidden: Vec<Remark>,
    /// How many more there are of these, beyond the first hundred. Absent where all are named.
    #[serde(default, skip_serializing_if = "Unnamed::is_none")]
    pub unnamed: Unnamed,
    /// The packs that its checks are of, sorted by name.
    pub packs: Vec<UsedPack>,
    /// What was found out about this machine, sorted by name: only what a check needed. Absent where that is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// How many commands might run side by side. Absent where one ran after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u8>,
    /// Whether the process of this run ended before it could record anything, so that others did with what it said at its
    /// beginning. How long it ran and what became of its checks is not known then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// How much of its scenario it is about. Absent from records of before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// The digest of everything that a run shares with others that it may answer for. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Digest>,
    /// Why it answers for no other run. Absent where it may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
    /// Why no record answered in its place: the one that came nearest first. Absent from records of before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Because>,
    /// Whose word it is, where it is not this user's alone: `ci:NAME` or `quarantine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
    /// Which Probity and which engine.
    pub engine: String,
    /// In declared order, one for each row of the verdict.
    pub rows: Vec<RecordRow>,
}

impl Record {
    /// The digest of the canonical form.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Ok(Digest::derived(Context::Record, &to_canonical(self)?))
    }
}
