//! One check, run: once for the tree, or once for each file with the results put together in path order.

use super::validate::Judge;
use super::{GuestError, Limits, Pack, View};
use crate::model::{Change, CheckInfo, Entry, ErrorKind, Finding, Place, Refusal, Report, Request, Scope};
use crate::worker::{BigStack, Called, on_big_stack, on_big_stacks};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that the findings of one check may have over all files. Each call is bounded on its own, and ten thousand of
/// them at their bound would still be more than a machine holds.
const MAX_REPORT_BYTES: u64 = 64 << 20;

/// What the lists and numbers of a finding weigh beside its texts.
const FINDING_BYTES: u64 = 128;

/// The largest count, as JSON can hold it.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// What a check is to judge, and with what.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The check.
    pub check: &'a CheckInfo,
    /// Its configuration: canonical JSON, validated.
    pub config: &'a str,
    /// The entries in scope, sorted bytewise by path.
    pub files: &'a [Entry],
    /// What changed, for a check that wants to know.
    pub changes: Option<&'a [Change]>,
    /// What it may see.
    pub view: &'a View,
    /// What each call may use.
    pub limits: &'a Limits,
    /// Where randomness comes from: must depend on nothing but the check's inputs.
    pub seed: &'a [u8; 32],
}

/// What became of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// It judged.
    Report(Report),
    /// It did not judge, and said so.
    Refused(Refusal),
    /// It could not be run to its end.
    Error(GuestError),
}

/// One run of a check.
#[derive(Debug, Clone)]
pub struct CheckRun {
    /// What became of it.
    pub result: CheckResult,
    /// Fuel used, summed over its calls. None unless every call returned.
    pub fuel: Option<u64>,
    /// What the guest wrote to its outputs: of an error, in the call that failed; otherwise of all calls, bounded.
    pub stderr: String,
}

impl Pack {
    /// Runs one of this pack's checks.
    pub fn run_check(&self, job: &Job<'_>) -> CheckRun {
        let run = match job.check.scope {
            Scope::Tree => on_big_stack(|stack| self.run_tree(stack, job)),
            Scope::File => self.run_files(job),
        };
        run.unwrap_or_else(|error| {
            let error = GuestError::new(ErrorKind::Host, format!("no thread can be started: {error}"));
            CheckRun { result: CheckResult::Error(error), fuel: None, stderr: String::new() }
        })
    }

    fn run_tree(&self, stack: &BigStack, job: &Job<'_>) -> CheckRun {
        let request = Request {
            check: job.check.id.clone(),
            config: job.config.to_owned(),
            files: job.files.to_vec(),
            changes: job.changes.map(<[Change]>::to_vec),
        };
        let call = self.call(stack, job, &Judge::new(job.check), &request, job.view, job.seed, None);
        let result = match call.result {
            Ok(Ok(report)) => CheckResult::Report(report),
            Ok(Err(refusal)) => CheckResult::Refused(refusal),
            Err(error) => CheckResult::Error(error),
        };
        CheckRun { result, fuel: call.fuel, stderr: call.stderr }
    }

    /// One call, its report judged. A finding without a place is about the file `about`, if the call is about one.
    #[expect(clippy::too_many_arguments, reason = "the parts of one call, each of its own kind")]
    fn call(
        &self,
        stack: &BigStack,
        job: &Job<'_>,
        judge: &Judge<'_>,
        request: &Request,
        view: &View,
        seed: &[u8; 32],
        about: Option<&str>,
    ) -> Called {
        let called = self.program.run(stack, request, view.clone(), job.limits, seed);
        let Called { result, fuel, stderr } = called;
        let result = match result {
            Ok(Ok(mut report)) => {
                if let Some(path) = about {
                    let place = || Place { path: path.to_owned(), start: None, end: None };
                    report.findings.iter_mut().for_each(|finding| {
                        finding.place.get_or_insert_with(place);
                    });
                }
                judge.report(report, request, view).map(Ok).map_err(|message| GuestError {
                    kind: ErrorKind::BadResult,
                    message: format!("what it returned breaks the contract: {message}"),
                    stderr: stderr.clone(),
                })
            }
            other => other,
        };
        Called { fuel: fuel.filter(|_| result.is_ok()), result, stderr }
    }

    fn run_files(&self, job: &Job<'_>) -> std::io::Result<CheckRun> {
        let judge = Judge::new(job.check);
        let progress = Progress::new(job.files.len());
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(job.files.len()).max(1);
        let calls = on_big_stacks(threads, |stack| {
            let mut calls = Vec::new();
            while let Some(index) = progress.next() {
                let call = self.run_file(stack, job, &judge, &job.files[index]);
                progress.done(index, &call);
                calls.push((index, call));
            }
            calls
        })?;
        let mut calls: Vec<_> = calls.into_iter().flatten().collect();
        calls.sort_unstable_by_key(|(index, _)| *index);
        Ok(merge(job, calls))
    }

    fn run_file(&self, stack: &BigStack, job: &Job<'_>, judge: &Judge<'_>, file: &Entry) -> Called {
        let changes = job
            .changes
            .map(|changes| changes.iter().filter(|change| change.path == file.path).cloned().collect::<Vec<_>>());
        let request =
            Request { check: job.check.id.clone(), config: job.config.to_owned(), files: vec![file.clone()], changes };
        let view = job.view.narrowed(&file.path, file.base_path.as_deref());
        let seed = blake3::keyed_hash(job.seed, file.path.as_bytes());
        self.call(stack, job, judge, &request, &view, seed.as_bytes(), Some(&file.path))
    }
}

/// Which file is next, and where to stop. Files are handed out in order, so every file before the one that decides has
/// been handed out when it is found to, and is run to its end: the result does not depend on who was faster.
struct Progress {
    next: AtomicUsize,
    stop: AtomicUsize,
    bytes: AtomicU64,
}

impl Progress {
    fn new(count: usize) -> Self {
        Self { next: AtomicUsize::new(0), stop: AtomicUsize::new(count), bytes: AtomicU64::new(0) }
    }

    fn next(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.stop.load(Ordering::Relaxed)).then_some(index)
    }

    fn done(&self, index: usize, call: &Called) {
        let bytes = match &call.result {
            Ok(Ok(report)) => report.findings.iter().map(weight).sum(),
            Ok(Err(Refusal::NotApplicable(_))) => 0,
            Ok(Err(_)) | Err(_) => {
                self.stop.fetch_min(index + 1, Ordering::Relaxed);
                0
            }
        };
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if total > MAX_REPORT_BYTES {
            // The bound is passed by files that have been handed out, so none after them can matter.
            self.stop.fetch_min(self.next.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn weight(finding: &Finding) -> u64 {
    let place = finding.place.as_ref().map_or(0, |place| place.path.len());
    let edits: usize = finding.edits.iter().map(|edit| edit.path.len() + edit.replacement.0.len()).sum();
    let texts = finding.message.len() + finding.help.as_ref().map_or(0, String::len) + place + edits;
    FINDING_BYTES * (1 + finding.edits.len() as u64) + texts as u64
}

/// Puts the results of files together, in path order; the first that decides otherwise is the result.
fn merge(job: &Job<'_>, calls: Vec<(usize, Called)>) -> CheckRun {
    let mut report = Report::default();
    let mut stats: BTreeMap<String, u64> = BTreeMap::new();
    let (mut judged, mut not_applicable) = (false, None);
    let (mut fuel, mut stderr, mut bytes) = (Some(0_u64), String::new(), 0_u64);
    for (index, call) in calls {
        let path = &job.files[index].path;
        let error = |error: GuestError| CheckRun {
            stderr: error.stderr.clone(),
            result: CheckResult::Error(error.on(path)),
            fuel: None,
        };
        match call.result {
            Ok(Ok(one)) => {
                judged = true;
                bytes = bytes.saturating_add(one.findings.iter().map(weight).sum());
                if bytes > MAX_REPORT_BYTES {
                    let message = format!("its findings on all files have more than {MAX_REPORT_BYTES} bytes");
                    return error(GuestError::new(ErrorKind::OutputLimit, message));
                }
                report.findings.extend(one.findings);
                for (name, value) in one.stats {
                    let sum = stats.entry(name).or_default();
                    *sum = sum.saturating_add(value);
                    if *sum > MAX_INTEGER {
                        let message = "its counts on all files add up to more than can be kept";
                        return error(GuestError::new(ErrorKind::BadResult, message));
                    }
                }
            }
            Ok(Err(refusal @ Refusal::NotApplicable(_))) => {
                not_applicable.get_or_insert(refusal);
            }
            Ok(Err(refusal)) => {
                return CheckRun { result: CheckResult::Refused(refusal), fuel: None, stderr: call.stderr };
            }
            Err(failed) => return error(failed),
        }
        fuel = fuel.zip(call.fuel).map(|(sum, fuel)| sum.saturating_add(fuel));
        let room = usize::try_from(job.limits.output).unwrap_or(usize::MAX).saturating_sub(stderr.len());
        stderr.extend(call.stderr.chars().take(room));
    }
    report.findings.sort_unstable();
    report.stats = stats.into_iter().collect();
    let result = match not_applicable {
        Some(refusal) if !judged => CheckResult::Refused(refusal),
        _ => CheckResult::Report(report),
    };
    CheckRun { result, fuel, stderr }
}
