//! The results of a check's calls, put together in path order, whoever was faster.

use super::call::Call;
use super::run::Job;
use super::{CheckResult, CheckRun, GuestError};
use crate::model::{ErrorKind, Finding, Observation, Refusal, Report};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that the findings of one check may have over all files. Each call is bounded on its own, and ten thousand of
/// them at their bound would still be more than a machine holds.
const MAX_REPORT_BYTES: u64 = 64 << 20;

/// What the lists and numbers of a finding weigh beside its texts.
const FINDING_BYTES: u64 = 128;

/// The largest count, as JSON can hold it.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Which file is next, and where to stop. Files are handed out in order, so every file before the one that decides has
/// been handed out when it is found to, and is run to its end: the result does not depend on who was faster.
pub(super) struct Progress {
    next: AtomicUsize,
    stop: AtomicUsize,
    bytes: AtomicU64,
}

impl Progress {
    pub(super) fn new(count: usize) -> Self {
        Self { next: AtomicUsize::new(0), stop: AtomicUsize::new(count), bytes: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.stop.load(Ordering::Relaxed)).then_some(index)
    }

    pub(super) fn done(&self, index: usize, call: &Call) {
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
pub(super) fn merge(job: &Job<'_>, calls: Vec<(usize, Call)>) -> CheckRun {
    let mut observed = Vec::new();
    let mut run = combine(job, calls, &mut observed);
    observed.sort_unstable();
    observed.dedup();
    run.observed = observed;
    run
}

fn combine(job: &Job<'_>, calls: Vec<(usize, Call)>, observed: &mut Vec<Observation>) -> CheckRun {
    let mut report = Report::default();
    let mut stats: BTreeMap<String, u64> = BTreeMap::new();
    let (mut judged, mut not_applicable) = (false, None);
    let (mut fuel, mut stderr, mut bytes) = (Some(0_u64), String::new(), 0_u64);
    for (index, call) in calls {
        let path = &job.files[index].path;
        observed.extend(call.observed);
        let error = |error: GuestError| CheckRun {
            stderr: error.stderr.clone(),
            ..CheckRun::without(CheckResult::Error(error.on(path)))
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
                return CheckRun { stderr: call.stderr, ..CheckRun::without(CheckResult::Refused(refusal)) };
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
    CheckRun { fuel, stderr, ..CheckRun::without(result) }
}
