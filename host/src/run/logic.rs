//! Logic checks: from a unit to what its pack is shown, and from what came back to an outcome.

use super::{Done, Runner};
use crate::guest::{CheckResult, Job};
use crate::model::{
    CheckOutcome, Context, Encoder, Entry, EntryKind, ErrorKind, Mount, Refusal, Report, Severity, SkipReason,
};
use crate::plan::{Grant, Unit, Work, seen};
use crate::subject::Snapshot;
use crate::worker::{Contents, Tree, TreeBuilder, TreeError, View};
use std::sync::Arc;

impl Runner<'_> {
    pub(super) fn logic(&mut self, unit: &Unit) -> (CheckOutcome, Done) {
        let Work::Logic { pack, check, config, files, grant, limits } = &unit.work else {
            return trouble(ErrorKind::Host, "it is no logic check");
        };
        if files.is_empty() {
            return (CheckOutcome::Skipped(SkipReason::NoMatchingFiles), Done::default());
        }
        let Some(pack) = self.around.packs.get(pack) else {
            return trouble(ErrorKind::Host, "its pack was not loaded");
        };
        let tree = match tree(self.around.snapshot, grant) {
            Ok(tree) => tree,
            Err(error) => return trouble(ErrorKind::Host, &error.to_string()),
        };
        let contents: Arc<dyn Contents> = self.contents.clone();
        let view = View::new(Arc::new(tree), contents);
        let mut seed = Encoder::new();
        seed.digest(&unit.row.definition);
        seed.digest(&unit.row.files.unwrap_or(unit.row.definition));
        let seed = *seed.finish(Context::Seed).as_bytes();
        let job = Job { check, config, files, changes: None, view: &view, limits, seed: &seed };
        let run = pack.run_check(&job);
        let mut done = Done { fuel: run.fuel, ..Done::default() };
        let outcome = match run.result {
            CheckResult::Report(report) => {
                let outcome = judged(&report);
                done.report = report;
                outcome
            }
            CheckResult::Refused(refusal) => {
                let (outcome, message) = refused(refusal);
                done.message = Some(message);
                outcome
            }
            CheckResult::Error(error) => {
                done.message = Some(error.message);
                done.stderr = Some(error.stderr).filter(|text| !text.is_empty());
                CheckOutcome::Error(error.kind)
            }
        };
        (outcome, done)
    }
}

/// The host decides: any error fails the check.
fn judged(report: &Report) -> CheckOutcome {
    if report.findings.iter().any(|finding| finding.severity == Severity::Error) {
        CheckOutcome::Failed
    } else {
        CheckOutcome::Passed
    }
}

fn refused(refusal: Refusal) -> (CheckOutcome, String) {
    match refusal {
        Refusal::NotApplicable(message) => (CheckOutcome::Skipped(SkipReason::NotApplicable), message),
        Refusal::NeedsContext(message) => (CheckOutcome::Error(ErrorKind::NeedsContext), message),
        Refusal::EnvironmentGap(message) => (CheckOutcome::Error(ErrorKind::Gap), message),
        Refusal::InvalidConfig(message) => (CheckOutcome::Error(ErrorKind::InvalidConfig), message),
        Refusal::Internal(message) => (CheckOutcome::Error(ErrorKind::Internal), message),
    }
}

fn trouble(kind: ErrorKind, message: &str) -> (CheckOutcome, Done) {
    (CheckOutcome::Error(kind), Done { message: Some(message.to_owned()), ..Done::default() })
}

/// What a grant leaves of a snapshot.
fn tree(snapshot: &Snapshot, grant: &Grant) -> Result<Tree, TreeError> {
    let mut tree = TreeBuilder::new();
    tree.mount(Mount::Tree);
    for (key, entry) in snapshot.entries.iter().enumerate() {
        let Some(Entry { path, kind, size, .. }) = seen(entry) else { continue };
        if !grant.covers(Mount::Tree, &path) {
            continue;
        }
        // A tree of more than four thousand million files was not listed to begin with.
        let key = u32::try_from(key).unwrap_or(u32::MAX);
        match kind {
            EntryKind::File => tree.file(Mount::Tree, path, size, false, key),
            EntryKind::Executable => tree.file(Mount::Tree, path, size, true, key),
            EntryKind::Symlink => tree.symlink(Mount::Tree, path, entry.text.clone()),
            EntryKind::Submodule => tree.directory(Mount::Tree, path),
        };
    }
    tree.build()
}
