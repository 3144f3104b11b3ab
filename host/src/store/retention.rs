//! How long runs are kept: what goes when a run was recorded. Pure: rows in, names out.
//!
//! Nothing here asks the clock: how old a run is, is measured from the runs after it. So neither a clock that jumps nor a
//! project that rests for a year removes anything.

use std::collections::BTreeSet;

/// The most runs that are kept.
pub const MAX_RUNS: usize = 100;

/// How many days older than all of the ten newest runs a run may be.
pub const MAX_DAYS: i64 = 30;

/// The newest runs, whose times tell what now is. A clock has to be wrong for so many runs in a row to do harm.
const FRESH: usize = 10;

/// The most bytes of logs.
pub const MAX_LOG_BYTES: u64 = 1_000_000_000;

/// What retention knows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) seq: i64,
    pub(super) started: String,
    pub(super) scenario: String,
    pub(super) verdict: bool,
    pub(super) scoped: bool,
    pub(super) log_bytes: u64,
}

/// Why a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is too old.
    Age,
    /// There are too many newer ones.
    Count,
    /// The logs are too large.
    Size,
}

impl Why {
    /// For people.
    pub fn words(self) -> String {
        match self {
            Self::Age => format!("more than {MAX_DAYS} days older than the {FRESH} newest runs"),
            Self::Count => format!("more than {MAX_RUNS} runs are kept"),
            Self::Size => format!("the logs have more than {} GB", MAX_LOG_BYTES / 1_000_000_000),
        }
    }
}

/// Which of these runs go, in the order in which they were recorded, which is the order they come in.
pub(super) fn goes(runs: &[Kept]) -> Vec<(&Kept, Why)> {
    let protected = protected(runs);
    let mut gone: Vec<(&Kept, Why)> = Vec::new();
    let mut left = runs.len();
    let mut bytes = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.log_bytes));
    let since = cutoff(runs);
    let is_old = |run: &Kept| since.is_some_and(|since| time(run).is_some_and(|started| started < since));
    // Whatever comes after a run that is young enough is young too, whatever its clock said.
    let mut aged = true;
    for run in runs {
        aged &= is_old(run);
        let why = if aged {
            Why::Age
        } else if left > MAX_RUNS {
            Why::Count
        } else if bytes > MAX_LOG_BYTES {
            Why::Size
        } else {
            break;
        };
        if !protected.contains(&run.seq) {
            gone.push((run, why));
            left -= 1;
            bytes = bytes.saturating_sub(run.log_bytes);
        }
    }
    gone
}

/// What never goes: the newest run, and of each scenario the last one of which nothing was left out, and the last such
/// one with a verdict. What served evidence rests on will be asked for here too.
fn protected(runs: &[Kept]) -> BTreeSet<i64> {
    let mut protected: BTreeSet<i64> = runs.last().map(|run| run.seq).into_iter().collect();
    let mut seen = BTreeSet::new();
    for run in runs.iter().rev().filter(|run| !run.scoped) {
        let first = seen.insert((&run.scenario, false));
        if first | (run.verdict && seen.insert((&run.scenario, true))) {
            protected.insert(run.seq);
        }
    }
    protected
}

/// Before when a run is too old. None while there are too few runs to tell.
fn cutoff(runs: &[Kept]) -> Option<jiff::Timestamp> {
    let fresh = runs.len().checked_sub(FRESH).and_then(|old| runs.get(old..))?;
    let oldest = fresh.iter().map(time).min().flatten()?;
    oldest.checked_sub(jiff::SignedDuration::from_hours(24 * MAX_DAYS)).ok()
}

/// None of a time that is none, which is before all others.
fn time(run: &Kept) -> Option<jiff::Timestamp> {
    run.started.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of one scenario, a day apart each, with ten bytes of logs.
    fn days(starts: impl IntoIterator<Item = i64>) -> Vec<Kept> {
        let at = |day| jiff::Timestamp::from_second(1_700_000_000 + day * 86_400).unwrap().to_string();
        let one = |(seq, day): (usize, i64)| Kept {
            seq: i64::try_from(seq).unwrap(),
            started: at(day),
            scenario: "default".to_owned(),
            verdict: true,
            scoped: false,
            log_bytes: 10,
        };
        starts.into_iter().enumerate().map(one).collect()
    }

    fn gone(runs: &[Kept]) -> Vec<(i64, Why)> {
        goes(runs).into_iter().map(|(run, why)| (run.seq, why)).collect()
    }

    #[test]
    fn what_is_older_than_the_newest_by_a_month_goes() {
        assert_eq!(gone(&days(0..40)), []);
        assert_eq!(gone(&days(0..41)), [(0, Why::Age)]);
        assert_eq!(gone(&days((0..3).chain(100..120))), [(0, Why::Age), (1, Why::Age), (2, Why::Age)]);
    }

    #[test]
    fn a_project_that_rested_keeps_what_it_has() {
        assert_eq!(gone(&days((0..20).chain(1000..1009))), []);
    }

    #[test]
    fn a_clock_that_jumped_removes_nothing() {
        for jumped in [-10_000, 10_000] {
            for at in 0..30 {
                let mut starts: Vec<i64> = (0..30).collect();
                starts[at] = jumped;
                // One that claims to be ancient goes as what it claims, once all that came after it is certain.
                let expected: &[_] = if jumped < 0 && at == 0 { &[(0, Why::Age)] } else { &[] };
                assert_eq!(gone(&days(starts)), expected, "{jumped} at {at}");
            }
        }
        let mut unreadable = days(0..60);
        unreadable[55].started = "yesterday".to_owned();
        assert_eq!(gone(&unreadable), []);
    }

    #[test]
    fn the_oldest_go_beyond_the_most() {
        assert_eq!(gone(&days(std::iter::repeat_n(0, MAX_RUNS))), []);
        assert_eq!(gone(&days(std::iter::repeat_n(0, MAX_RUNS + 2))), [(0, Why::Count), (1, Why::Count)]);
    }

    #[test]
    fn logs_that_are_too_large_go_with_their_runs() {
        let mut runs = days([0, 0, 0, 0]);
        runs[1].log_bytes = MAX_LOG_BYTES;
        assert_eq!(gone(&runs), [(0, Why::Size), (1, Why::Size)]);
        // The newest stays, however large.
        let mut runs = days([0, 0]);
        runs[1].log_bytes = u64::MAX;
        assert_eq!(gone(&runs), [(0, Why::Size)]);
    }

    #[test]
    fn the_last_full_run_of_a_scenario_stays() {
        let mut runs = days(std::iter::repeat_n(0, MAX_RUNS + 10));
        runs[0].scenario = "release".to_owned();
        // Of these the first is the last one with a verdict, and the third the last one that is full.
        for (seq, verdict, scoped) in [(1, true, false), (2, false, false), (3, false, false), (4, true, true)] {
            runs[seq].scenario = "nightly".to_owned();
            (runs[seq].verdict, runs[seq].scoped) = (verdict, scoped);
        }
        let gone: Vec<i64> = gone(&runs).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(gone, [2, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
