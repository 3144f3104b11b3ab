//! The configuration as values: everything here has been checked, as far as it can be without packs and subject.

use super::{ConfigError, Diagnostic, Globs, Invalid, Layer, Source, TestsOf};
use crate::model::{CapabilityName, CheckId, Mount, PackName, Probe, ScenarioName, Severity};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// A configuration without a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where it comes from. All spans are byte ranges of its text, but those of checks of another layer.
    pub source: Source,
    /// What is left out of the subject, of what version control does not track.
    pub exclude: Option<Globs>,
    /// The packs, by name.
    pub packs: BTreeMap<PackName, Pack>,
    /// All checks in declared order: those of `[verify]`, then `[checks.*]` as they stand in the file.
    pub checks: Vec<Check>,
    /// All scenarios, `default` among them, as they stand in the file; a `default` that is not written comes first.
    pub scenarios: Vec<Scenario>,
    /// The capabilities, by name.
    pub capabilities: BTreeMap<CapabilityName, Capability>,
    /// The specification, where the file names one.
    pub spec: Option<Spec>,
    /// Names of variables whose values nobody is to see: all that either file marks, sorted.
    pub marked: Vec<String>,
}

impl Config {
    /// The check with this id.
    pub fn check(&self, id: &CheckId) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == *id)
    }

    /// The scenario with this name.
    pub fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name.as_str() == name)
    }

    /// The error for mistakes that were found later, such as an option that the check's schema refuses.
    pub fn invalid(&self, diagnostics: Vec<Diagnostic>) -> ConfigError {
        Invalid { source: self.source.clone(), diagnostics }.into()
    }
}

/// A pack that checks may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// Its name.
    pub name: PackName,
    /// Where the name is written.
    pub span: Range<usize>,
    /// Where the pack is.
    pub source: PackSource,
    /// Where `source` is written.
    pub source_span: Range<usize>,
    /// What its checks may read at most. A mount that is not here is not granted.
    pub allow: BTreeMap<Mount, Globs>,
    /// Where `allow` is written.
    pub allow_span: Range<usize>,
}

/// A fact about this machine that checks may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: CapabilityName,
    /// Where the name is written.
    pub span: Range<usize>,
    /// How it is found out.
    pub probe: Probe,
}

/// Where a pack is. Paths are relative to the folder of the configuration, `/`-separated, and without `.` and `..`;
/// that folder itself is `.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackSource {
    /// A folder with the sources of a pack.
    Path(String),
    /// A component.
    File(String),
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its id.
    pub id: CheckId,
    /// Where it is declared: the name of its table, or a command of `[verify]`.
    pub span: Range<usize>,
    /// The file that declares it, whose text the place is in.
    pub layer: Layer,
    /// The checks that come before it, whose results a check of a pack may read: each once, never in a circle.
    pub after: Vec<CheckId>,
    /// Whether it may run beside others that may. Never for a check of a pack.
    pub parallel: bool,
    /// The capabilities that it needs, of [`Config::capabilities`], each once. None for a check of a pack, which sees
    /// nothing of this machine.
    pub needs: Vec<CapabilityName>,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// Whether its red decides the run.
    pub blocking: bool,
    /// The files it is about. None for a command that is about the whole tree, and for a check of a pack that is about
    /// all that the pack says.
    pub files: Option<Globs>,
    /// Whether it runs all the same where no file is in its scope.
    pub allow_empty: bool,
    /// When it is among those to run; always where nothing is written.
    pub when: When,
    /// What it does.
    pub body: Body,
}

/// What a check does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Runs a program.
    Command(Command),
    /// Calls a check of a pack.
    Logic(Box<Logic>),
}

/// A program to run, without any shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments: at least one, the first not empty, none with a NUL.
    pub argv: Vec<String>,
    /// Names and values to add to the environment, in the order of the file, each name once.
    pub env: Vec<(String, String)>,
    /// Names of variables to pass on, each once.
    pub pass_env: Vec<String>,
    /// Which tests files have, for `{tests}` among the arguments.
    pub tests: Vec<TestsOf>,
    /// Names of variables that are passed on and whose values nobody is to see, each once. None is set by any `env`.
    pub secrets: Vec<String>,
    /// Exit codes, from 1, that mean that something is missing here; each once.
    pub gap_exit: Vec<u8>,
    /// Whether the whole environment is passed on, as it is for the commands of `[verify]`.
    pub inherit_env: bool,
    /// Whether it runs in a copy of the subject.
    pub isolate: bool,
    /// What its evidence rests on beside the subject.
    pub evidence: Evident,
}

/// What the answer of a command depends on that is no part of the subject, as far as the configuration says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evident {
    /// Commands whose output tells one state of the tools from another.
    pub fingerprint: Vec<Vec<String>>,
    /// Ignored files that it needs.
    pub ambient: Option<Globs>,
    /// Whether it is a command of `[verify]`, which inherits the environment without being asked.
    pub short_form: bool,
}

/// A check of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logic {
    /// The pack, one of [`Config::packs`].
    pub pack: PackName,
    /// The check's name in the pack. Whether the pack has it shows when the pack is described.
    pub check: String,
    /// Where `use` is written.
    pub use_span: Range<usize>,
    /// What its rules weigh, in place of what the pack says; no weight at all for what is switched off. Whether it has
    /// such rules shows when the pack is described.
    pub severities: BTreeMap<String, Option<Severity>>,
    /// Where each of them is written.
    pub severity_spans: BTreeMap<String, Range<usize>>,
    /// Where it is written that only findings that are new against the base fail it. None where all of them do.
    pub baseline: Option<Range<usize>>,
    /// Its options. Numbers are finite. Not yet compared with the check's schema.
    pub config: Map<String, Value>,
    /// Where `config` is written.
    pub config_span: Option<Range<usize>>,
    /// Where each value within `config` is written, by JSON pointer; the whole is the empty pointer.
    pub config_spans: BTreeMap<String, Range<usize>>,
    /// What it may use.
    pub limits: Limits,
    /// Where `limits` is written.
    pub limits_span: Option<Range<usize>>,
}

/// When a check is among those to run: where all conditions hold that are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When {
    /// In one of these scenarios.
    pub scenarios: Option<Vec<ScenarioName>>,
    /// On a branch whose name one of these matches.
    pub branches: Option<Globs>,
    /// Where a path that these match changed since the base; without a base, where there is one.
    pub paths: Option<Globs>,
    /// Where all of these, of [`Config::capabilities`], are there.
    pub capabilities: Vec<CapabilityName>,
}

/// Limits that a configuration sets, each more than zero; the defaults hold where it is silent. In the user's file, the
/// most that a check may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of each call.
    pub fuel: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// How long a call may take.
    pub wall: Option<Duration>,
    /// Bytes of output of a call.
    pub output: Option<u64>,
    /// Findings of a call.
    pub findings: Option<u64>,
    /// Handles that a call holds at once.
    pub handles: Option<u64>,
}

/// The specification: files that must be as they were committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Which files.
    pub paths: Globs,
    /// Where `paths` is written.
    pub span: Range<usize>,
}

/// A named list of checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: ScenarioName,
    /// Where it is declared. For a `default` that is not written, where the first of its checks is.
    pub span: Range<usize>,
    /// Ids of [`Config::checks`], at least one, each once, in declared order.
    pub checks: Vec<CheckId>,
    /// Whether the first red ends it.
    pub fail_fast: bool,
    /// The least that fails a check.
    pub fail_on: Severity,
    /// The budget of the whole run.
    pub timeout: Option<Duration>,
    /// How many commands may run side by side: 1 to [`MAX_JOBS`](super::MAX_JOBS).
    pub jobs: u8,
    /// The revision that the subject is compared with, where there is one.
    pub base: Option<String>,
    /// Where `base` is written.
    pub base_span: Option<Range<usize>>,
    /// How old a record that commands are part of may be to answer for another run.
    pub max_age: Duration,
}
