//! Whether a record answers for a run that is asked for, and if none does, why.
//!
//! Whatever cannot be proven is a miss with a reason. A row is no proof by itself: its MAC, the record's digest and the digests
//! of all logs are held against what is there, each time.

use super::identity::differences;
use crate::model::{Because, Class, Digest, Record, Reuse, RunId, RunOutcome};
use crate::store::{Deposit, State, Store, StoreError, Trust, logs_hold};
use std::time::Duration;

/// The most inputs that are named of those that differ.
const MAX_INPUTS: usize = 20;

/// The most reasons that are kept.
const MAX_REASONS: usize = 8;

/// The most earlier failures that are named.
const MAX_FAILURES: usize = 10;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The identity.
    pub identity: Digest,
    /// Its bytes.
    pub preimage: &'a [u8],
    /// The scenario.
    pub scenario: &'a str,
    /// The tree's path and the host's name, as records have them.
    pub place: (&'a str, &'a str),
    /// The key that rows are sealed with.
    pub key: &'a [u8; 32],
    /// What the user disowned.
    pub trust: &'a Trust,
    /// How old a record that commands are part of may be.
    pub max_age: Duration,
    /// Now: RFC 3339.
    pub now: &'a str,
    /// Whether a failure is to be tried again.
    pub retry_failed: bool,
    /// What a record says of walls around packs where all stood, if nothing less is asked for.
    pub walls: Option<&'a str>,
}

/// What there is to say to it.
#[derive(Debug)]
pub enum Answer {
    /// This record answers.
    Serve(Box<Record>, Reuse),
    /// None does: the reason that came nearest comes first.
    Run(Vec<Because>),
}

/// Whether a record of the store answers.
pub fn answer(store: &Store<'_>, state: &State, asking: &Asking<'_>) -> Result<Answer, StoreError> {
    let deposits = store.deposits(asking.scenario)?;
    let same: Vec<&Deposit> = deposits.iter().filter(|deposit| deposit.identity == asking.identity).collect();
    let mut reasons = Vec::new();
    for deposit in &same {
        match judge(store, state, deposit, asking) {
            Judged::Answers(record) => {
                let failures = failures(&same, deposit, asking);
                let reuse = Reuse {
                    identity: asking.identity,
                    started: record.started.clone(),
                    tree: record.tree.clone(),
                    host: record.host.clone(),
                    failed: record.verdict.outcome == RunOutcome::Failed,
                    age_s: age(&record.started, asking.now).unwrap_or(0),
                    here: is_here(&record, asking.place),
                    shared_record: store.path().to_string_lossy().into_owned(),
                    failures,
                };
                return Ok(Answer::Serve(record, reuse));
            }
            Judged::Ends(because) => {
                reasons.insert(0, because);
                break;
            }
            Judged::Passes(because) => reasons.push(because),
        }
    }
    if reasons.is_empty() {
        reasons.push(compared(store, &deposits, asking));
    }
    reasons.truncate(MAX_REASONS);
    Ok(Answer::Run(reasons))
}

/// What one record of the same identity says.
enum Judged {
    Answers(Box<Record>),
    /// It says nothing, and no older one is asked.
    Ends(Because),
    /// It says nothing; an older one may.
    Passes(Because),
}

fn judge(store: &Store<'_>, state: &State, deposit: &Deposit, asking: &Asking<'_>) -> Judged {
    let run = || deposit.run.clone();
    let record = match store.get(deposit.run.as_str()) {
        Ok(record) => record,
        Err(error) => return Judged::Passes(Because::Damaged { run: run(), message: error.to_string() }),
    };
    if !deposit.is_sealed(&record, asking.key) {
        return Judged::Passes(Because::Foreign { run: run() });
    }
    if asking.trust.disowns(&record) {
        return Judged::Passes(Because::Disowned { run: run() });
    }
    let here = is_here(&record, asking.place);
    match record.verdict.outcome {
        // It says nothing of the subject.
        RunOutcome::Interrupted => {
            return Judged::Passes(Because::NoAnswer { run: run(), outcome: RunOutcome::Interrupted });
        }
        RunOutcome::Passed | RunOutcome::Failed => {}
        outcome => return Judged::Ends(Because::NoAnswer { run: run(), outcome }),
    }
    if let Some(withheld) = record.withheld.first() {
        return Judged::Ends(Because::Withheld { run: run(), withheld: withheld.clone() });
    }
    let behind = |row: &crate::model::RecordRow| {
        asking.walls.is_none_or(|all| row.walls.as_deref().is_none_or(|walls| walls == all))
    };
    if !record.rows.iter().all(behind) {
        return Judged::Ends(Because::Walls { run: run() });
    }
    let failed = record.verdict.outcome == RunOutcome::Failed;
    if failed && !here {
        return Judged::Ends(Because::FailedElsewhere { run: run() });
    }
    if failed && asking.retry_failed {
        return Judged::Ends(Because::Retry { run: run() });
    }
    if record.verdict.rows.iter().any(|row| row.class == Class::Observed) {
        let most_s = asking.max_age.as_secs();
        match age(&record.started, asking.now) {
            None => return Judged::Ends(Because::Future { run: run() }),
            Some(age_s) if age_s > most_s => return Judged::Ends(Because::Old { run: run(), age_s, most_s }),
            Some(_) => {}
        }
    }
    match logs_hold(state, &record) {
        Ok(()) => Judged::Answers(Box::new(record)),
        Err(message) => Judged::Passes(Because::Damaged { run: run(), message }),
    }
}

/// Runs of the identity that failed, other than this one.
fn failures(same: &[&Deposit], served: &Deposit, asking: &Asking<'_>) -> Vec<RunId> {
    let failed = |deposit: &&&Deposit| {
        deposit.run != served.run
            && deposit.outcome == RunOutcome::Failed.word()
            && !asking.trust.disowns_run(&deposit.run)
    };
    same.iter().filter(failed).map(|deposit| deposit.run.clone()).take(MAX_FAILURES).collect()
}

/// What is other than in the last run of the scenario, at this place if there is one here.
fn compared(store: &Store<'_>, deposits: &[Deposit], asking: &Asking<'_>) -> Because {
    let here = |deposit: &&Deposit| store.get(deposit.run.as_str()).is_ok_and(|record| is_here(&record, asking.place));
    let Some(last) = deposits.iter().find(here).or(deposits.first()) else { return Because::First };
    let Some(mut inputs) = differences(&last.preimage, asking.preimage) else {
        return Because::Damaged { run: last.run.clone(), message: "its identity cannot be read".to_owned() };
    };
    let more = inputs.len().saturating_sub(MAX_INPUTS) as u64;
    inputs.truncate(MAX_INPUTS);
    Because::Changed { run: last.run.clone(), inputs, more }
}

pub(super) fn is_here(record: &Record, (tree, host): (&str, &str)) -> bool {
    record.tree == tree && record.host == host
}

/// Seconds from one time to the other. None where it would be less than nothing, or one is no time.
pub fn age(from: &str, to: &str) -> Option<u64> {
    let (from, to): (jiff::Timestamp, jiff::Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    u64::try_from(to.duration_since(from).as_secs()).ok().filter(|_| to >= from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_less_than_nothing() {
        let now = "2026-12-03T10:00:00.000Z";
        assert_eq!(age("2026-12-03T09:59:00.000Z", now), Some(60));
        assert_eq!(age(now, now), Some(0));
        for from in ["2026-12-03T10:00:00.001Z", "2999-01-01T00:00:00Z", "yesterday", ""] {
            assert_eq!(age(from, now), None, "{from}");
        }
    }
}
