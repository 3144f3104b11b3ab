//! Baselines: a check that judges is run on the base too, and what it finds there fails nothing here.
//!
//! Must not take anything for known that the check did not report on the base, or take a base that could not be judged
//! for one without findings.

use super::known::{Side, mark};
use super::logic::{Answer, Asked, Question};
use super::{Done, Runner};
use crate::model::{CheckOutcome, Entry, ErrorKind, Finding, Mount, Observation, Scope, SkipReason};
use crate::plan::{Base, Baseline};
use crate::subject::{Kind, kind_of_mode};
use std::collections::BTreeSet;

/// The most bytes of a file whose lines are compared, of either side. One file is held at a time. What is found at lines
/// of a larger one is new, unless the file is as it was.
const COMPARED_BYTES: u64 = 16 << 20;

impl Runner<'_> {
    /// Marks the findings that the base has too. `around` is what is known of the check, and gets what its run on the base
    /// adds. An error is what becomes of the check where that run did not judge.
    pub(super) fn mark_known(
        &mut self,
        asked: &Asked<'_>,
        files: &[Entry],
        baseline: &Baseline,
        findings: &mut [Finding],
        around: (&mut Done, &mut Vec<Observation>),
    ) -> Result<(), CheckOutcome> {
        let Some(base) = self.shared.around.base else {
            around.0.message = Some("there is no base to have a baseline".to_owned());
            return Err(CheckOutcome::Error(ErrorKind::Host));
        };
        let files = match asked.check.scope {
            Scope::Tree if findings.is_empty() => return Ok(()),
            Scope::Tree => baseline.files.clone(),
            Scope::File => left_to_ask(base, files, baseline, findings),
        };
        if files.is_empty() {
            return Ok(());
        }
        let failed = |outcome, message: &str, done: &mut Done| {
            let commit = base.revision.commit.as_deref().unwrap_or_default();
            let help = "help: only what it finds there can be known; without `baseline` all that it finds counts";
            done.message = Some(format!("run on the base {commit}: {message}\n{help}"));
            Err(outcome)
        };
        let (done, observed) = around;
        let view = match self.view_of_base(base, asked.grant) {
            Ok(view) => view,
            Err(error) => return failed(CheckOutcome::Error(ErrorKind::Host), &error, done),
        };
        let changes = asked.check.wants_changes.then_some(&[][..]);
        let about = Question { files: &files, digest: Some(baseline.digest), changes, view: &view };
        let Answer { result, done: there, observed: more } = self.ask(asked, &about);
        done.fuel = done.fuel.zip(there.fuel).map(|(here, there)| here.saturating_add(there));
        add(observed, more);
        let of_base = match result {
            Ok(report) => report.findings,
            // There was nothing for it to judge, and so nothing for it to find.
            Err(CheckOutcome::Skipped(SkipReason::NotApplicable)) => Vec::new(),
            Err(outcome) => {
                done.stderr = there.stderr;
                return failed(outcome, there.message.as_deref().unwrap_or("it did not judge"), done);
            }
        };
        let moved = self.shared.sources.moved().len();
        let here = |path: &str| self.contents_here(path);
        let there = |path: &str| self.contents_there(base, path);
        let subject = Side { path: &|path| base.before(path), contents: &here };
        let unchanged = |path: &str| Some((path.to_owned(), !base.changes.differs(path)));
        let marked = mark(findings, &subject, &of_base, &Side { path: &unchanged, contents: &there });
        marked.or_else(|error| {
            let moved = self.shared.sources.moved().len() > moved;
            let kind = if moved { ErrorKind::Moved } else { ErrorKind::Host };
            failed(CheckOutcome::Error(kind), &error, done)
        })
    }

    /// The contents of a file of the subject whose lines are to be compared.
    fn contents_here(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let entry = self.shared.around.snapshot.entry(path.as_bytes());
        let file = entry.filter(|entry| matches!(entry.kind, Kind::File | Kind::Executable));
        let Some(entry) = file.filter(|entry| entry.size <= COMPARED_BYTES) else { return Ok(None) };
        let read = self.shared.sources.read(entry, 0, length(entry.size));
        read.map(Some).map_err(|error| error.to_string())
    }

    /// The same of the base.
    fn contents_there(&self, base: &Base, path: &str) -> Result<Option<Vec<u8>>, String> {
        let entry = base.revision.entry(path.as_bytes());
        let entry = entry.filter(|entry| matches!(kind_of_mode(entry.mode), Kind::File | Kind::Executable));
        let sized = entry.and_then(|entry| Some((entry, entry.size?))).filter(|(_, size)| *size <= COMPARED_BYTES);
        let Some((entry, size)) = sized else { return Ok(None) };
        let read = self.shared.sources.object(entry.id, 0, length(size));
        read.map(Some).map_err(|error| error.to_string())
    }
}

/// No more than is compared.
fn length(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// The files of the base that a check of each file has to be asked about, and marks what is known without asking: a file
/// that is as it was would be the very same question, and have the same answer.
fn left_to_ask(base: &Base, files: &[Entry], baseline: &Baseline, findings: &mut [Finding]) -> Vec<Entry> {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut all = false;
    for finding in findings {
        let path = finding.place.as_ref().map(|place| place.path.as_str());
        let of_file = |path: &&str| files.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok();
        match path.filter(of_file).map(|path| (path, base.before(path))) {
            // What is about a folder may come from any file in it.
            None => all = true,
            Some((_, None)) => {}
            Some((path, Some((before, same)))) if same && before == path => finding.known = true,
            Some((_, Some((before, _)))) => {
                wanted.insert(before);
            }
        }
    }
    baseline.files.iter().filter(|file| all || wanted.contains(&file.path)).cloned().collect()
}

/// Adds what was observed on the base: the tree that was looked at there is the base of this check.
fn add(observed: &mut Vec<Observation>, more: Vec<Observation>) {
    observed.extend(more.into_iter().map(|one| match one.mount {
        Mount::Tree => Observation { mount: Mount::Base, ..one },
        Mount::Base | Mount::Spec | Mount::Evidence | Mount::Claim => one,
    }));
    observed.sort_unstable();
    observed.dedup();
}
