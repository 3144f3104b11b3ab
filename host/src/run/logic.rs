//! Logic checks: from a unit to what its pack is shown, and from what came back to an outcome.

use super::{Done, Runner, Stopped};
use crate::guest::{CheckResult, Job, Limits};
use crate::model::{
    CheckInfo, CheckOutcome, Class, Context, Digest, Encoder, ErrorKind, Mount, Observation, RecordRow, Refusal,
    Report, Row, Scope, Severity, SkipReason, observations_digest,
};
use crate::native::Stop;
use crate::plan::{Grant, SaidBy, Unit, Work};
use crate::worker::{CONTRACT_VERSION, View, engine_id};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

impl Runner<'_> {
    pub(super) fn logic(&mut self, unit: &Unit, done: &[(Row, RecordRow)]) -> (CheckOutcome, Done) {
        let Work::Logic { pack, check, config, files, changes, unreadable, grant, limits, said_by, severities } =
            &unit.work
        else {
            return trouble(ErrorKind::Host, "it is no logic check");
        };
        if !unreadable.is_empty() {
            let shown: Vec<String> = unreadable.iter().take(5).map(|path| format!("`{path}`")).collect();
            let more = if unreadable.len() > 5 { format!(" and {} more", unreadable.len() - 5) } else { String::new() };
            let message = format!(
                "{}{more} cannot be read\nhelp: give this user read access, or leave it out with `files`",
                shown.join(", ")
            );
            return trouble(ErrorKind::Host, &message);
        }
        // A check that does not look at the subject, but at evidence or a claim, is about no files of it.
        if files.is_empty() && !unit.allow_empty && (check.scope == Scope::File || grant.has(Mount::Tree)) {
            return (CheckOutcome::Skipped(SkipReason::NoMatchingFiles), Done::default());
        }
        let Some(pack) = self.around.packs.get(pack) else {
            return trouble(ErrorKind::Host, "its pack was not loaded");
        };
        let view = match self.view(unit, grant, done) {
            Ok(view) => view,
            Err(error) => return trouble(ErrorKind::Host, &error),
        };
        let key = key(pack.digest, check, config, grant, limits, &view);
        let key = match check.scope {
            // Each file adds itself, so that one file more changes nothing for the others.
            Scope::File => key,
            Scope::Tree => {
                let mut encoder = Encoder::new();
                encoder.digest(&key).digest(&unit.row.files.unwrap_or(key));
                encoder.finish(Context::Key)
            }
        };
        let own = unit.timeout.map(|timeout| Instant::now() + timeout);
        let deadline = [own, self.deadline].into_iter().flatten().min();
        let cancelled = AtomicBool::new(false);
        let job = Job {
            check,
            config,
            files,
            changes: changes.as_deref(),
            view: &view,
            limits,
            key: &key,
            deadline,
            cancelled: Some(&cancelled),
        };
        let moved = self.sources.moved().len();
        let run = self.until_done(&cancelled, || pack.run_check(&job));
        let walls = run.walls.map(|walls| walls.words().to_owned());
        let observed = Some(observations_digest(&run.observed));
        let mut done = Done { fuel: run.fuel, walls, observed, class: Some(class(&run.observed)), ..Done::default() };
        let outcome = match run.result {
            CheckResult::Report(mut report) => {
                weigh(&mut report, severities);
                let outcome = judged(&report, self.fail_on);
                done.report = report;
                outcome
            }
            CheckResult::Refused(refusal) => {
                let (outcome, message) = refused(refusal);
                done.message = Some(message);
                outcome
            }
            CheckResult::TimedOut => {
                if self.deadline.is_some_and(|budget| budget <= Instant::now()) {
                    self.stopped = Some(Stopped::Budget);
                    done.message = Some("the time of the whole run was used up".to_owned());
                } else {
                    let limit = unit.timeout.unwrap_or(limits.wall).min(limits.wall);
                    let source = match unit.timeout {
                        Some(own) if own <= limits.wall => "that is the `timeout` of this check".to_owned(),
                        _ => source("wall", said_by),
                    };
                    done.message = Some(format!("it did not end within {limit:?}\nhelp: {source}"));
                }
                CheckOutcome::TimedOut
            }
            CheckResult::Cancelled => {
                self.stopped = Some(Stopped::Signal);
                CheckOutcome::Interrupted
            }
            CheckResult::Error(error) => {
                let source = limit_of(error.kind, &error.message, limits).map(|name| source(name, said_by));
                let source = source.map(|source| format!("\nhelp: {source}")).unwrap_or_default();
                done.message = Some(error.message + &source);
                done.stderr = Some(error.stderr).filter(|text| !text.is_empty());
                let moved = error.kind == ErrorKind::Host && self.sources.moved().len() > moved;
                CheckOutcome::Error(if moved { ErrorKind::Moved } else { error.kind })
            }
        };
        (outcome, done)
    }
}

impl Runner<'_> {
    /// Does some work on a thread of its own, and sets `cancelled` when a signal comes meanwhile.
    fn until_done<R: Send>(&self, cancelled: &AtomicBool, work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let told = Told(self.around.stops.0.clone());
            let thread = scope.spawn(move || {
                let _told = told;
                work()
            });
            loop {
                match self.around.stops.1.recv() {
                    Ok(Stop::Interrupted) => cancelled.store(true, Ordering::Relaxed),
                    Ok(Stop::Ended(0)) | Err(_) => break,
                    Ok(Stop::Ended(_)) => {}
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

/// The host decides: any finding that weighs so much fails the check.
fn judged(report: &Report, fail_on: Severity) -> CheckOutcome {
    if report.findings.iter().any(|finding| finding.severity >= fail_on) {
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
