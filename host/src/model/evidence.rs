//! What is said of evidence: why a run answers for no other, why it was carried out although others are recorded, and
//! what is told of one that is served.

use super::{CheckId, RunId, RunOutcome};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a record answers for no other run than its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Withheld {
    /// Without the user's key nobody could tell it from a forged one.
    NoKey,
    /// It was made where strangers decide what runs.
    Quarantine,
    /// Less ran than the scenario asks for, because it was asked for so.
    Scoped,
    /// A person declared that the scenario does not apply.
    NotApplicable,
    /// What was verified is not what a commit has.
    Dirty,
    /// What was verified is under no version control, so there is no commit that it is what has.
    NoCommit,
    /// Files were written while it went on, though they are what they were.
    Touched,
    /// Commands can follow links to what is no part of the subject, or meet what nobody could read.
    Open,
    /// Something was missing here for this check.
    Gap {
        /// The check.
        check: CheckId,
    },
    /// This check inherits an environment of which nobody says what matters.
    Inherits {
        /// The check.
        check: CheckId,
    },
    /// What tells one state of this check's tools from another could not be found out.
    Unidentified {
        /// The check.
        check: CheckId,
        /// For people.
        message: String,
    },
    /// What it rests on beside the subject changed while it went on.
    Inputs {
        /// Which: names of inputs, at most ten.
        inputs: Vec<String>,
    },
    /// What it came to answers nothing.
    Outcome {
        /// That.
        outcome: RunOutcome,
    },
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey => f.write_str("the user's key cannot be kept or is open to others"),
            Self::Quarantine => f.write_str("it was made in quarantine"),
            Self::Scoped => f.write_str("less ran than the scenario asks for"),
            Self::NotApplicable => f.write_str("it was declared not applicable"),
            Self::Dirty => f.write_str("what was verified is not what the commit has"),
            Self::NoCommit => f.write_str("what was verified is in no repository"),
            Self::Touched => f.write_str("files of the subject were written while it went on"),
            Self::Open => f.write_str("the subject is open, and commands ran on it"),
            Self::Gap { check } => write!(f, "something was missing here for {check}"),
            Self::Inherits { check } => {
                write!(f, "{check} inherits the whole environment (`inherit-env = true`)")
            }
            Self::Unidentified { check, message } => {
                write!(f, "of {check} it is not known what it rests on: {message}")
            }
            Self::Inputs { inputs } => write!(f, "this changed while it went on: {}", inputs.join(", ")),
            Self::Outcome { outcome } => write!(f, "it came to: {}", outcome.word()),
        }
    }
}

/// An input that is another one than it was. Values that may be secret are digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Which: `tree`, `base`, `checks.lint.environment.PATH`.
    pub name: String,
    /// What it was. Absent where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
    /// What it is. Absent where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// Why a run was carried out, and no record answered in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Because {
    /// It was asked for anew.
    Fresh,
    /// A failure was to be tried again.
    Retry {
        /// The run that failed.
        run: RunId,
    },
    /// Its own kind never answers, and is never answered for.
    Alone {
        /// Which kind that is.
        withheld: Withheld,
    },
    /// Nothing is recorded that could.
    First,
    /// What it is about is another thing than in the last such run.
    Changed {
        /// That run.
        run: RunId,
        /// What differs, at most twenty.
        inputs: Vec<Input>,
        /// How many more differ.
        more: u64,
    },
    /// That record is too old for what commands say.
    Old {
        /// The run.
        run: RunId,
        /// Its age, seconds.
        age_s: u64,
        /// The most that it may be, seconds.
        most_s: u64,
    },
    /// That record says that it is from the future, so nobody knows how old it is.
    Future {
        /// The run.
        run: RunId,
    },
    /// It failed at another place, which nobody takes over.
    FailedElsewhere {
        /// The run.
        run: RunId,
    },
    /// That run came to no answer.
    NoAnswer {
        /// The run.
        run: RunId,
        /// What it came to.
        outcome: RunOutcome,
    },
    /// That run answers for no other.
    Withheld {
        /// The run.
        run: RunId,
        /// Why.
        withheld: Withheld,
    },
    /// All walls are asked for, and its packs ran without one.
    Walls {
        /// The run.
        run: RunId,
    },
    /// That record was not made under this user's key.
    Foreign {
        /// The run.
        run: RunId,
    },
    /// That record rests on what was disowned.
    Disowned {
        /// The run.
        run: RunId,
    },
    /// That record, or what it rests on, is damaged.
    Damaged {
        /// The run.
        run: RunId,
        /// For people.
        message: String,
    },
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh => f.write_str("it was asked for with `--fresh`"),
            Self::Retry { run } => write!(f, "it was asked for with `--retry-failed`, and run {run} failed"),
            Self::Alone { withheld } => write!(f, "such a run is never answered by another: {withheld}"),
            Self::First => f.write_str("no such run is recorded"),
            Self::Changed { run, inputs, more } => {
                let names: Vec<&str> = inputs.iter().take(3).map(|input| input.name.as_str()).collect();
                let rest = inputs.len() as u64 - names.len() as u64 + more;
                write!(f, "since run {run}, other than then: {}", names.join(", "))?;
                if rest > 0 { write!(f, " and {rest} more") } else { Ok(()) }
            }
            Self::Old { run, age_s, most_s } => {
                write!(f, "run {run} is {} old, and may be {}", spoken(*age_s), spoken(*most_s))
            }
            Self::Future { run } => write!(f, "run {run} is dated in the future"),
            Self::FailedElsewhere { run } => write!(f, "run {run} failed at another place, and may pass here"),
            Self::NoAnswer { run, outcome } => write!(f, "run {run} came to: {}", outcome.word()),
            Self::Withheld { run, withheld } => write!(f, "run {run} answers for no other: {withheld}"),
            Self::Walls { run } => write!(f, "packs of run {run} ran without all walls, which are asked for"),
            Self::Foreign { run } => write!(f, "run {run} was not recorded under this user's key"),
            Self::Disowned { run } => write!(f, "run {run} rests on what was disowned"),
            Self::Damaged { run, message } => write!(f, "run {run} is damaged: {message}"),
        }
    }
}

/// Seconds as a person says them: the two largest units.
pub fn spoken(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// What is told of a record that is served in place of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse {
    /// The identity that both have.
    pub identity: super::Digest,
    /// When it was made: RFC 3339.
    pub started: String,
    /// Where: the tree's path.
    pub tree: String,
    /// Where: the host's name.
    pub host: String,
    /// Whether it failed, so that it may be tried again.
    pub failed: bool,
    /// How old the record is, seconds.
    pub age_s: u64,
    /// Whether it was made in this very tree on this host.
    pub here: bool,
    /// The file that has the record: its path.
    pub shared_record: String,
    /// Runs of the same identity that failed, the newest first; at most ten.
    pub failures: Vec<RunId>,
}
