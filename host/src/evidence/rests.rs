//! Whether a record may answer for other runs: it says of itself why not.

use crate::model::{CheckOutcome, EnvironmentMode, ErrorKind, Record, RunOutcome, Withheld};
use crate::plan::{Plan, Work};

/// The trust class of what is made where strangers decide what runs.
pub const QUARANTINE: &str = "quarantine";

/// Why a record answers for no other run. `unknown` is what could not be found out before the run, and `has_key` whether it
/// can be sealed.
pub fn withheld(record: &Record, plan: &Plan, unknown: &[Withheld], has_key: bool) -> Vec<Withheld> {
    let verdict = &record.verdict;
    let mut all = Vec::new();
    match verdict.outcome {
        RunOutcome::Passed | RunOutcome::Failed => {}
        RunOutcome::NotApplicable => all.push(Withheld::NotApplicable),
        outcome => all.push(Withheld::Outcome { outcome }),
    }
    if verdict.is_scoped() {
        all.push(Withheld::Scoped);
    }
    match record.dirty {
        Some(false) => {}
        Some(true) => all.push(Withheld::Dirty),
        None => all.push(Withheld::NoCommit),
    }
    if !record.touched.is_empty() {
        all.push(Withheld::Touched);
    }
    let commands = plan.units.iter().filter_map(|unit| match &unit.work {
        Work::Command { passed, evidence, .. } => Some((&unit.id, passed.mode, evidence.short_form)),
        Work::Logic { .. } | Work::Nothing(_) => None,
    });
    let commands: Vec<_> = commands.collect();
    if !record.open.is_empty() && !commands.is_empty() {
        all.push(Withheld::Open);
    }
    for row in &verdict.rows {
        if row.outcome == CheckOutcome::Error(ErrorKind::Gap) {
            all.push(Withheld::Gap { check: row.id.clone() });
        }
    }
    for (check, mode, short_form) in commands {
        if mode == EnvironmentMode::Inherited && !short_form {
            all.push(Withheld::Inherits { check: check.clone() });
        }
    }
    if record.trust.as_deref() == Some(QUARANTINE) {
        all.push(Withheld::Quarantine);
    }
    if !has_key {
        all.push(Withheld::NoKey);
    }
    all.extend(unknown.iter().cloned());
    all
}
