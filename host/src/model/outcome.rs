//! Outcomes: the closed vocabulary of what became of a check and of a run.
//!
//! Only `passed` (and a declared `not_applicable`) is green. How a result came about (served, repeated,
//! scoped) is never a word of its own here.

use super::{CheckId, Row};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a row can be checked again: the weakest of what the check observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Anyone with the tree and the pack can derive it again, byte for byte.
    Hermetic,
    /// Anyone with the exported evidence can.
    Derived,
    /// What happened here, under a declared environment.
    Observed,
    /// A judgement.
    Advisory,
}

/// What kind of trouble kept a check from judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The program of a command does not exist or may not be executed.
    NotFound,
    /// The guest trapped: a panic, an access out of bounds, a division by zero.
    Trap,
    /// The guest called `exit`.
    Exit,
    /// The guest used up its fuel.
    OutOfFuel,
    /// The guest asked for more memory than its limit.
    OutOfMemory,
    /// The guest wrote or returned more than its limit.
    OutputLimit,
    /// The guest held more handles than its limit.
    HandleLimit,
    /// The guest recursed beyond the stack. Where exactly depends on the engine, so it is never kept as a result.
    StackOverflow,
    /// What the guest returned breaks the contract.
    BadResult,
    /// The check says that something is missing in this place.
    Gap,
    /// The check says that it needs something only a person can give.
    NeedsContext,
    /// The check refuses its configuration.
    InvalidConfig,
    /// The check says that it failed.
    Internal,
    /// A file that it read is not what it was when the subject was taken.
    Moved,
    /// Trouble of this machine or of Probity: nothing was learnt about the subject.
    Host,
}

impl ErrorKind {
    /// Whether the same inputs lead to the same error under the same engine and limits.
    pub fn deterministic(self) -> bool {
        match self {
            Self::Trap
            | Self::Exit
            | Self::OutOfFuel
            | Self::OutOfMemory
            | Self::OutputLimit
            | Self::HandleLimit
            | Self::BadResult
            | Self::NeedsContext
            | Self::InvalidConfig
            | Self::Internal => true,
            Self::NotFound | Self::StackOverflow | Self::Gap | Self::Moved | Self::Host => false,
        }
    }
}

/// Why a check did not run or did not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// An earlier check was red and the scenario fails fast.
    AfterFailure(CheckId),
    /// No file of the subject is in its scope.
    NoMatchingFiles,
    /// The check found nothing here for it to judge.
    NotApplicable,
    /// The time of the whole run was used up before its turn came.
    TimeUp,
    /// A signal ended the run before its turn came.
    Interrupted,
    /// All of its rules are switched off.
    RulesOff,
}

/// Why a check was not among those to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deselected {
    /// The subject is a revision, which lies in no folder that a command could run in.
    Revision,
    /// Others were named as the only ones.
    Only,
    /// It was named as one to leave out.
    Skip,
    /// It is for other scenarios.
    OtherScenario,
    /// It is for other branches.
    OtherBranch,
    /// It is for changes of paths of which none changed.
    NoSuchPath,
    /// It is for machines that have what this one has not, or of which nobody can say whether it has it.
    NoCapability,
    /// Nothing changed that it is about.
    Unchanged,
    /// A person declared that the scenario does not apply.
    NotApplicable,
}

impl Deselected {
    /// Whether the run is less than its scenario asks for, so that its green is none.
    pub fn is_scoped(self) -> bool {
        match self {
            Self::Revision | Self::Only | Self::Skip => true,
            Self::OtherScenario
            | Self::OtherBranch
            | Self::NoSuchPath
            | Self::NoCapability
            | Self::Unchanged
            | Self::NotApplicable => false,
        }
    }
}

/// What became of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It judged, and nothing is wrong.
    Passed,
    /// It judged, and something is wrong.
    Failed,
    /// It could not judge.
    Error(ErrorKind),
    /// It was stopped at its timeout.
    TimedOut,
    /// It was stopped by a person or a signal.
    Interrupted,
    /// It did not run, or what it was asked about is not there.
    Skipped(SkipReason),
    /// It was not among those to run.
    NotSelected(Deselected),
}

impl CheckOutcome {
    /// One word: `passed`, `failed`, `error`, `timed_out`, `interrupted`, `skipped`, `not_selected`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Error(_) => "error",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
            Self::Skipped(_) => "skipped",
            Self::NotSelected(_) => "not_selected",
        }
    }

    /// Whether a blocking check with this outcome stops a scenario that fails fast.
    pub fn is_red(&self) -> bool {
        match self {
            Self::Failed | Self::Error(_) | Self::TimedOut | Self::Interrupted => true,
            Self::Passed | Self::Skipped(_) | Self::NotSelected(_) => false,
        }
    }
}

/// What became of a run, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Stopped by a person or a signal.
    Interrupted,
    /// A check or the run reached its timeout.
    TimedOut,
    /// A check could not judge, or the verdict could not be recorded.
    Error,
    /// A check failed.
    Failed,
    /// The subject moved under the run.
    Stale,
    /// Nothing was verified.
    Empty,
    /// What ran was green, and it was not everything.
    Partial,
    /// Declared by a person.
    NotApplicable,
    /// Everything ran, and nothing is wrong.
    Passed,
}

impl RunOutcome {
    /// All that there are, in order of precedence.
    pub const ALL: [Self; 9] = [
        Self::Interrupted,
        Self::TimedOut,
        Self::Error,
        Self::Failed,
        Self::Stale,
        Self::Empty,
        Self::Partial,
        Self::NotApplicable,
        Self::Passed,
    ];

    /// The word that people and files see.
    pub fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed_out",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Stale => "stale",
            Self::Empty => "empty",
            Self::Partial => "partial",
            Self::NotApplicable => "not_applicable",
            Self::Passed => "passed",
        }
    }

    /// The exit code of a run that ended so.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Passed | Self::NotApplicable => 0,
            Self::Interrupted | Self::TimedOut | Self::Error | Self::Failed | Self::Stale => 1,
            Self::Empty => 2,
            Self::Partial => 3,
        }
    }

    /// Whether it lets anything through.
    pub fn is_green(self) -> bool {
        self.exit_code() == 0
    }

    /// What the rows of a run add up to. The red of a check that does not block is a concern: it decides
    /// nothing, and it is no pass either; it decides where it is all there is of a run of a part.
    pub fn of(rows: &[Row]) -> Self {
        let red = |row: &Row| match &row.outcome {
            CheckOutcome::TimedOut => Some(Self::TimedOut),
            CheckOutcome::Error(_) => Some(Self::Error),
            CheckOutcome::Failed => Some(Self::Failed),
            CheckOutcome::Interrupted
            | CheckOutcome::Passed
            | CheckOutcome::Skipped(_)
            | CheckOutcome::NotSelected(_) => None,
        };
        let of_row = |row: &Row| match &row.outcome {
            CheckOutcome::Interrupted => Some(Self::Interrupted),
            CheckOutcome::Error(ErrorKind::Moved) => Some(Self::Stale),
            CheckOutcome::Passed => Some(Self::Passed),
            _ => red(row).filter(|_| row.blocking),
        };
        let outcome = rows.iter().filter_map(of_row).min().unwrap_or(Self::Empty);
        let scoped = |row: &Row| matches!(row.outcome, CheckOutcome::NotSelected(why) if why.is_scoped());
        match outcome {
            Self::Passed if rows.iter().any(scoped) => Self::Partial,
            // Who looks closer at a check that does not block asks about that very check.
            Self::Empty if rows.iter().any(scoped) => rows.iter().filter_map(red).min().unwrap_or(Self::Empty),
            outcome => outcome,
        }
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CheckKind;

    fn row(outcome: CheckOutcome, blocking: bool) -> Row {
        Row {
            id: "a".parse().unwrap(),
            kind: CheckKind::Command,
            class: Class::Observed,
            blocking,
            outcome,
            findings: Vec::new(),
            stats: Vec::new(),
            engine: None,
        }
    }

    #[test]
    fn the_worst_blocking_row_decides() {
        use CheckOutcome as C;
        let skipped = || row(C::Skipped(SkipReason::NoMatchingFiles), true);
        let cases = [
            (vec![], RunOutcome::Empty),
            (vec![skipped()], RunOutcome::Empty),
            (vec![skipped(), row(C::Passed, true)], RunOutcome::Passed),
            (vec![row(C::Failed, false)], RunOutcome::Empty),
            (vec![row(C::NotSelected(Deselected::Only), true), row(C::Passed, true)], RunOutcome::Partial),
            (vec![row(C::NotSelected(Deselected::Skip), true), row(C::Failed, true)], RunOutcome::Failed),
            (vec![row(C::NotSelected(Deselected::Skip), true)], RunOutcome::Empty),
            (vec![row(C::NotSelected(Deselected::Unchanged), true), row(C::Passed, true)], RunOutcome::Passed),
            (vec![row(C::NotSelected(Deselected::Unchanged), true)], RunOutcome::Empty),
            (vec![row(C::NotSelected(Deselected::OtherBranch), true)], RunOutcome::Empty),
            (vec![row(C::Failed, false), row(C::Passed, false)], RunOutcome::Passed),
            (vec![row(C::Passed, true), row(C::Failed, true)], RunOutcome::Failed),
            (vec![row(C::Failed, true), row(C::Error(ErrorKind::Trap), true)], RunOutcome::Error),
            (vec![row(C::Error(ErrorKind::Trap), true), row(C::TimedOut, true)], RunOutcome::TimedOut),
            (vec![row(C::TimedOut, true), row(C::Interrupted, false)], RunOutcome::Interrupted),
        ];
        for (rows, expected) in cases {
            assert_eq!(RunOutcome::of(&rows), expected, "{rows:?}");
        }
    }

    #[test]
    fn one_green() {
        use RunOutcome as R;
        let all = [
            (R::Interrupted, 1),
            (R::TimedOut, 1),
            (R::Error, 1),
            (R::Failed, 1),
            (R::Stale, 1),
            (R::Empty, 2),
            (R::Partial, 3),
            (R::NotApplicable, 0),
            (R::Passed, 0),
        ];
        for (outcome, code) in all {
            assert_eq!(outcome.exit_code(), code, "{outcome}");
        }
        assert!(all.is_sorted_by_key(|(outcome, _)| *outcome), "precedence is the order of declaration");
    }
}
