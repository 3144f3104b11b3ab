//! Logic checks: from a unit to what its pack is shown, and from what came back to an outcome.

use super::{Done, Runner, Stopped};
use crate::guest::{CheckResult, Job, Limits, Pack};
use crate::model::{
    Change, CheckInfo, CheckOutcome, Class, Context, Digest, Encoder, Entry, ErrorKind, Mount, Observation, RecordRow,
    Refusal, Report, Row, Scope, Severity, SkipReason, observations_digest,
};
use crate::native::Stop;
use crate::plan::{Dark, Grant, SaidBy, Unit, Work};
use crate::system::clock;
use crate::worker::{CONTRACT_VERSION, View, engine_id};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

impl Runner<'_> {
    pub(super) fn logic(&mut self, unit: &Unit, done: &[(Row, RecordRow)]) -> (CheckOutcome, Done) {
        let Work::Logic { pack, check, config, files, changes, dark, grant, limits, said_by, severities, baseline } =
            &unit.work
        else {
            return trouble(ErrorKind::Host, "it is no logic check");
        };
        if let Some(message) = Dark::message(dark) {
            return trouble(ErrorKind::Host, &message);
        }
        // A check that does not look at the subject, but at evidence or a claim, is about no files of it.
        if files.is_empty() && !unit.allow_empty && (check.scope == Scope::File || grant.has(Mount::Tree)) {
            return (CheckOutcome::Skipped(SkipReason::NoMatchingFiles), Done::default());
        }
        let Some(pack) = self.shared.around.packs.get(pack) else {
            return trouble(ErrorKind::Host, "its pack was not loaded");
        };
        let view = match self.view(unit, grant, done) {
            Ok(view) => view,
            Err(error) => return trouble(ErrorKind::Host, &error),
        };
        let own = unit.timeout.map(|timeout| clock::now() + timeout);
        let deadline = [own, self.shared.deadline].into_iter().flatten().min();
        let timeout = unit.timeout;
        let asked = Asked { pack, check, config, grant, limits, said_by, severities, timeout, deadline };
        let about = Question { files, digest: unit.row.files, changes: changes.as_deref(), view: &view };
        let Answer { result, mut done, mut observed } = self.ask(&asked, &about);
        let outcome = match result {
            Ok(mut report) => {
                let known = match baseline {
                    Some(baseline) => {
                        self.mark_known(&asked, files, baseline, &mut report.findings, (&mut done, &mut observed))
                    }
                    None => Ok(()),
                };
                known.map_or_else(
                    |outcome| outcome,
                    |()| {
                        let outcome = judged(&report, self.shared.fail_on);
                        done.report = report;
                        outcome
                    },
                )
            }
            Err(outcome) => outcome,
        };
        done.observed = Some(observations_digest(&observed));
        done.class = Some(class(&observed));
        (outcome, done)
    }

    /// Runs a check. What became of it where it did not judge, and why, is in the answer.
    pub(super) fn ask(&mut self, asked: &Asked<'_>, about: &Question<'_>) -> Answer {
        let Asked { pack, check, config, grant, limits, said_by, severities, timeout, deadline } = *asked;
        let key = key(pack.digest, check, config, grant, limits, about.view);
        let key = match check.scope {
            // Each file adds itself, so that one file more changes nothing for the others.
            Scope::File => key,
            Scope::Tree => {
                let mut encoder = Encoder::new();
                encoder.digest(&key).digest(&about.digest.unwrap_or(key));
                encoder.finish(Context::Key)
            }
        };
        let cancelled = AtomicBool::new(false);
        let job = Job {
            check,
            config,
            files: about.files,
            changes: about.changes,
            view: about.view,
            limits,
            key: &key,
            deadline,
            cancelled: Some(&cancelled),
        };
        let moved = self.shared.sources.moved().len();
        let run = self.until_done(&cancelled, || pack.run_check(&job));
        let walls = run.walls.map(|walls| walls.words().to_owned());
        let mut done = Done { fuel: run.fuel, walls, ..Done::default() };
        let result = match run.result {
            CheckResult::Report(mut report) => {
                weigh(&mut report, severities);
                Ok(report)
            }
            CheckResult::Refused(refusal) => {
                let (outcome, message) = refused(refusal);
                done.message = Some(message);
                Err(outcome)
            }
            CheckResult::TimedOut => {
                if self.shared.deadline.is_some_and(|budget| budget <= clock::now()) {
                    self.out_of_budget(&mut done);
                } else {
                    let limit = timeout.unwrap_or(limits.wall).min(limits.wall);
                    let source = match timeout {
                        Some(own) if own <= limits.wall => "that is the `timeout` of this check".to_owned(),
                        _ => source("wall", said_by),
                    };
                    done.message = Some(format!("it did not end within {limit:?}\nhelp: {source}"));
                }
                Err(CheckOutcome::TimedOut)
            }
            CheckResult::Cancelled => {
                self.stopped = Some(Stopped::Signal);
                Err(CheckOutcome::Interrupted)
            }
            CheckResult::Error(error) => {
                let source = limit_of(error.kind, &error.message, limits).map(|name| source(name, said_by));
                let source = source.map(|source| format!("\nhelp: {source}")).unwrap_or_default();
                done.message = Some(error.message + &source);
                done.stderr = Some(error.stderr).filter(|text| !text.is_empty());
                let moved = error.kind == ErrorKind::Host && self.shared.sources.moved().len() > moved;
                Err(CheckOutcome::Error(if moved { ErrorKind::Moved } else { error.kind }))
            }
        };
        Answer { result, done, observed: run.observed }
    }
}

/// A check, whatever it is asked about.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) pack: &'a Pack,
    pub(super) check: &'a CheckInfo,
    pub(super) config: &'a str,
    pub(super) grant: &'a Grant,
    pub(super) limits: &'a Limits,
    /// Who says each of the limits.
    pub(super) said_by: &'a BTreeMap<&'static str, SaidBy>,
    pub(super) severities: &'a BTreeMap<String, Option<Severity>>,
    /// The time it has, and until when.
    pub(super) timeout: Option<Duration>,
    pub(super) deadline: Option<Instant>,
}

/// What a check is asked about.
pub(super) struct Question<'a> {
    pub(super) files: &'a [Entry],
    /// Of the files and what changed.
    pub(super) digest: Option<Digest>,
    pub(super) changes: Option<&'a [Change]>,
    pub(super) view: &'a View,
}

/// What came of a question.
pub(super) struct Answer {
    /// What it found, with the weight that the project gives it; or what it is that it did not judge.
    pub(super) result: Result<Report, CheckOutcome>,
    /// The rest, but for what was observed.
    pub(super) done: Done,
    pub(super) observed: Vec<Observation>,
}

impl Runner<'_> {
    /// Does some work on a thread of its own, and sets `cancelled` when a signal comes meanwhile.
    fn until_done<R: Send>(&self, cancelled: &AtomicBool, work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let told = Told(self.stops.0.clone());
            let thread = scope.spawn(move || {
                let _told = told;
                work()
            });
            loop {
                match self.stops.1.recv() {
                    Ok(Stop::Interrupted) => cancelled.store(true, Ordering::Relaxed),
                    Ok(Stop::Ended(0)) | Err(_) => break,
                    Ok(Stop::Ended(_) | Stop::Asked) => {}
                }
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The limit that an error is about: that of its kind whose value the message has. Other bounds of the same kind are
/// nobody's to set.
fn limit_of(kind: ErrorKind, message: &str, limits: &Limits) -> Option<&'static str> {
    let all = [
        (ErrorKind::OutOfFuel, "fuel", limits.fuel),
        (ErrorKind::OutOfMemory, "memory", limits.memory),
        (ErrorKind::OutputLimit, "findings", limits.findings),
        (ErrorKind::OutputLimit, "output", limits.output),
        (ErrorKind::HandleLimit, "handles", limits.handles),
    ];
    let said = |number: u64| message.split(|c: char| !c.is_ascii_digit()).any(|word| word == number.to_string());
    all.into_iter().find(|(of, _, number)| *of == kind && said(*number)).map(|(_, name, _)| name)
}

/// Who says a limit, and so who could say another one.
fn source(name: &'static str, said_by: &BTreeMap<&'static str, SaidBy>) -> String {
    match said_by.get(name).copied().unwrap_or(SaidBy::BuiltIn) {
        SaidBy::Check => format!("that is `{name}` in the `limits` of this check"),
        SaidBy::User => format!("that is `{name}` in `[limits]` of the user's file"),
        SaidBy::BuiltIn => format!("that is the built-in limit; `{name}` in the `limits` of this check sets another"),
    }
}

/// Everything that a check's result depends on beside the files it is called about and what it observes. Its randomness
/// comes from this and nothing else.
fn key(pack: Digest, check: &CheckInfo, config: &str, grant: &Grant, limits: &Limits, view: &View) -> Digest {
    let mut encoder = Encoder::new();
    encoder.text(CONTRACT_VERSION).text(engine_id()).digest(&pack).text(&check.id).text(config);
    encoder.integer(check.scope as u64).digest(&grant.digest());
    let mounts = view.mount_list();
    encoder.integer(mounts.len() as u64);
    for mount in mounts {
        encoder.text(mount.name());
    }
    // How long it may take decides whether there is a result, and never which.
    let Limits { fuel, init_fuel, memory, output, findings, handles, wall: _ } = limits;
    for limit in [fuel, init_fuel, memory, output, findings, handles] {
        encoder.integer(*limit);
    }
    encoder.finish(Context::Key)
}

/// Tells the runner that a thread has ended, however it did. No process has the id 0.
struct Told(Sender<Stop>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(Stop::Ended(0));
    }
}

/// The weakest of what was observed: who wants to derive the result again needs the evidence or the claim it was shown.
fn class(observed: &[Observation]) -> Class {
    let weak = |one: &Observation| match one.mount {
        Mount::Evidence | Mount::Claim => true,
        Mount::Tree | Mount::Base | Mount::Spec => false,
    };
    if observed.iter().any(weak) { Class::Derived } else { Class::Hermetic }
}

/// Gives findings the weight that the project gives their rules.
fn weigh(report: &mut Report, severities: &BTreeMap<String, Option<Severity>>) {
    report.findings.retain_mut(|finding| match severities.get(&finding.rule) {
        None => true,
        Some(Some(severity)) => {
            finding.severity = *severity;
            true
        }
        Some(None) => false,
    });
    // Their order has the severity in it.
    report.findings.sort();
}

/// The host decides: any finding that weighs so much fails the check, unless it is known.
fn judged(report: &Report, fail_on: Severity) -> CheckOutcome {
    if report.findings.iter().any(|finding| !finding.known && finding.severity >= fail_on) {
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

pub(super) fn trouble(kind: ErrorKind, message: &str) -> (CheckOutcome, Done) {
    (CheckOutcome::Error(kind), Done { message: Some(message.to_owned()), ..Done::default() })
}
