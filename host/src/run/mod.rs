//! The runner: carries out a plan and says what happens as a stream of events.
//!
//! Must not: print, write to the store, or decide what a pack's words mean beyond the contract.
//!
//! Checks run one after the other in declared order, so the first red one in that order is known when it happens.

mod logic;
mod mounts;
mod needs;
mod results;
mod sources;

pub use mounts::Claim;
pub use sources::Sources;

use crate::guest::Pack;
use crate::model::{
    CheckId, CheckKind, CheckOutcome, Class, Digest, ErrorKind, Event, Exit, PackName, Passed, Record, RecordRow, Row,
    RunId, RunOutcome, Secrets, Severity, SkipReason, Spec, Subject, Unnamed, UsedPack, VERDICT_SCHEMA, Verdict,
};
use crate::native::{self, Ending, Environment, Job, Probes, RESULT_VARIABLE, ResultFile, Stop};
use crate::plan::{Base, Plan, Unit, Work};
use crate::store::Logs;
use crate::subject::{Over, Snapshot, SnapshotError, Specification, Workspace};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The most paths of one kind that a record names.
const MAX_NAMED: usize = 100;

/// Everything a run needs besides its plan.
pub struct Surroundings<'a> {
    /// The run's name.
    pub run: RunId,
    /// Where the tree is.
    pub workspace: &'a Workspace,
    /// The tree as it was when the plan was made.
    pub snapshot: &'a Snapshot,
    /// What it is compared with, where there is such a thing.
    pub base: Option<&'a Base>,
    /// The specification as it was committed, where there is one.
    pub spec: Option<&'a Specification>,
    /// What an author claims, for whoever asks about that.
    pub claim: Option<&'a Claim>,
    /// The packs, by their names in the configuration.
    pub packs: &'a BTreeMap<PackName, Pack>,
    /// What is known of this machine, and how more is found out.
    pub capabilities: &'a Probes,
    /// Where output goes.
    pub logs: &'a Logs,
    /// What stops a run: signals are sent here from outside.
    pub stops: (Sender<Stop>, Receiver<Stop>),
    /// Probity's version and the engine's.
    pub engine: String,
    /// This host's name.
    pub host: String,
    /// When it all began, with looking at the tree: RFC 3339, UTC, milliseconds.
    pub started: String,
    /// The same, to measure from.
    pub clock: Instant,
}

/// Carries out a plan to its end, and tells `sink` what happens.
pub fn execute(plan: &Plan, around: &Surroundings<'_>, sink: &mut dyn FnMut(&Event)) -> Result<Record, SnapshotError> {
    let started = around.started.clone();
    let clock = around.clock;
    let sources = Sources::new(around.snapshot, &around.workspace.root, around.workspace.repository.as_ref())
        .map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
    let mut runner = Runner {
        around,
        deadline: around.workspace.patience.deadline(),
        sources: Arc::new(sources),
        secrets: plan.secrets(),
        stopped: None,
        fail_on: plan.fail_on,
    };
    sink(&Event::RunStarted {
        run: around.run.clone(),
        scenario: plan.scenario.clone(),
        checks: plan.units.iter().map(|unit| unit.id.clone()).collect(),
    });
    let mut done: Vec<(Row, RecordRow)> = Vec::new();
    let mut first_red: Option<CheckId> = None;
    for unit in &plan.units {
        let (row, record) = match (&first_red, runner.stopped, unit.row.deselected) {
            (_, _, Some(why)) => finished(unit, CheckOutcome::NotSelected(why), Done::default(), Duration::ZERO),
            (_, Some(stopped), None) => finished(unit, stopped.outcome(), Done::default(), Duration::ZERO),
            (Some(id), None, None) => {
                let outcome = CheckOutcome::Skipped(SkipReason::AfterFailure(id.clone()));
                finished(unit, outcome, Done::default(), Duration::ZERO)
            }
            (None, None, None) => {
                sink(&Event::CheckStarted { id: unit.id.clone(), kind: unit.work.kind() });
                let clock = Instant::now();
                let (outcome, how) = runner.carry_out(unit, &done);
                finished(unit, outcome, how, clock.elapsed())
            }
        };
        if plan.fail_fast && row.blocking && row.outcome.is_red() && first_red.is_none() {
            first_red = Some(unit.id.clone());
        }
        sink(&Event::CheckFinished { row: Box::new(row.clone()), record: Box::new(record.clone()) });
        done.push((row, record));
    }
    let (rows, records): (Vec<Row>, Vec<RecordRow>) = done.into_iter().unzip();
    let mut moved = moved(plan, &mut runner, around)?;
    let mut outcome = RunOutcome::of(&rows);
    if plan.not_applicable.is_some() {
        outcome = RunOutcome::NotApplicable;
    }
    match runner.stopped {
        Some(Stopped::Signal) => outcome = outcome.min(RunOutcome::Interrupted),
        Some(Stopped::Budget) => outcome = outcome.min(RunOutcome::TimedOut),
        None => {}
    }
    if !moved.is_empty() {
        outcome = outcome.min(RunOutcome::Stale);
    }
    let verdict = Verdict {
        schema: VERDICT_SCHEMA.to_owned(),
        subject: Subject {
            tree: around.snapshot.tree,
            commit: around.snapshot.commit.clone(),
            base: around.base.and_then(|base| base.revision.commit.clone()),
            spec: around.spec.map(|spec| Spec { digest: spec.digest }),
        },
        scenario: plan.scenario.clone(),
        fail_fast: plan.fail_fast,
        fail_on: plan.fail_on,
        changed_only: plan.changed_only,
        not_applicable: plan.not_applicable.clone(),
        plan: plan.units.iter().map(|unit| unit.row.clone()).collect(),
        outcome,
        rows,
    };
    let mut unnamed = Unnamed::default();
    let (mut open, mut hidden) = (around.snapshot.open(), around.snapshot.hidden());
    let mut unproven = around.snapshot.unproven.clone();
    cut(&mut moved, &mut unnamed.moved);
    cut(&mut open, &mut unnamed.open);
    cut(&mut unproven, &mut unnamed.unproven);
    cut(&mut hidden, &mut unnamed.hidden);
    Ok(Record {
        run: around.run.clone(),
        // What a signal or the budget cut short depends on when it came: it is no verdict that two runs could share.
        // Integers and texts only, each capped, so the canonical form exists.
        verdict_digest: if runner.stopped.is_none() { verdict.digest().ok() } else { None },
        verdict,
        started,
        duration_ms: milliseconds(clock.elapsed()),
        tree: around.workspace.root.to_string_lossy().into_owned(),
        host: around.host.clone(),
        dirty: around.snapshot.dirty,
        spec_version: around.spec.map(|spec| spec.version),
        open,
        unproven,
        moved,
        hidden,
        unnamed,
        packs: around.packs.iter().map(|(name, pack)| used(name, pack)).collect(),
        capabilities: around.capabilities.known(),
        engine: around.engine.clone(),
        rows: records,
    })
}

/// What moved under the run. Where no command ran, every byte that was used was checked against the digest that
/// the verdict names, and a look is not needed.
fn moved(plan: &Plan, runner: &mut Runner<'_>, around: &Surroundings<'_>) -> Result<Vec<String>, SnapshotError> {
    let mut moved = runner.sources.moved();
    let commands = plan.units.iter().any(|unit| matches!(unit.work, Work::Command { .. }));
    // A run that was stopped is no verdict on anything, whatever moved.
    if commands && !around.snapshot.revision && !runner.interrupted() && runner.stopped.is_none() {
        match (around.workspace.snapshot(Some(around.snapshot)), around.workspace.patience.over()) {
            (Ok(later), _) => moved.extend(around.snapshot.moved(&later)),
            (Err(_), Some(Over::Stopped)) => runner.stopped = Some(Stopped::Signal),
            (Err(_), Some(Over::Late)) => runner.stopped = Some(Stopped::Budget),
            (Err(error), None) => return Err(error),
        }
    }
    moved.sort();
    moved.dedup();
    // A command can make a file of any name.
    moved = moved.iter().map(|path| runner.secrets.conceal(path)).collect();
    Ok(moved)
}

/// Shortens a list to what a record names, and says how many more there are.
fn cut<T>(list: &mut Vec<T>, more: &mut u64) {
    *more = list.len().saturating_sub(MAX_NAMED) as u64;
    list.truncate(MAX_NAMED);
}

/// Why nothing more is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Signal,
    Budget,
}

impl Stopped {
    fn outcome(self) -> CheckOutcome {
        match self {
            Self::Signal => CheckOutcome::Interrupted,
            Self::Budget => CheckOutcome::TimedOut,
        }
    }
}

/// What is known of a check besides its outcome.
#[derive(Debug, Default)]
struct Done {
    report: crate::model::Report,
    exit: Option<Exit>,
    environment: Option<Passed>,
    message: Option<String>,
    log: Option<crate::model::Log>,
    stderr: Option<String>,
    fuel: Option<u64>,
    walls: Option<String>,
    observed: Option<Digest>,
    class: Option<Class>,
}

fn finished(unit: &Unit, outcome: CheckOutcome, done: Done, elapsed: Duration) -> (Row, RecordRow) {
    let kind = unit.work.kind();
    let class = done.class.unwrap_or(match kind {
        CheckKind::Command => Class::Observed,
        CheckKind::Logic => Class::Hermetic,
    });
    // How much fuel or memory something takes is the engine's doing.
    let engine = match outcome {
        CheckOutcome::Error(
            ErrorKind::OutOfFuel | ErrorKind::OutOfMemory | ErrorKind::StackOverflow | ErrorKind::HandleLimit,
        ) => Some(crate::worker::engine_id().to_owned()),
        _ => None,
    };
    let row = Row {
        id: unit.id.clone(),
        kind,
        class,
        blocking: unit.blocking,
        outcome,
        findings: done.report.findings,
        stats: done.report.stats,
        engine,
    };
    let record = RecordRow {
        id: unit.id.clone(),
        duration_ms: milliseconds(elapsed),
        exit: done.exit,
        message: done.message,
        environment: done.environment,
        log: done.log,
        stderr: done.stderr,
        fuel: done.fuel,
        walls: done.walls,
        observed: done.observed,
    };
    (row, record)
}

fn used(name: &PackName, pack: &Pack) -> UsedPack {
    UsedPack { name: name.clone(), version: pack.info.version.clone(), digest: pack.digest }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

struct Runner<'a> {
    around: &'a Surroundings<'a>,
    deadline: Option<Instant>,
    sources: Arc<Sources>,
    /// Values that nobody is to see.
    secrets: Secrets,
    stopped: Option<Stopped>,
    /// The least that fails a check.
    fail_on: Severity,
}

impl Runner<'_> {
    fn carry_out(&mut self, unit: &Unit, done: &[(Row, RecordRow)]) -> (CheckOutcome, Done) {
        if self.interrupted() {
            return (Stopped::Signal.outcome(), Done::default());
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.stopped = Some(Stopped::Budget);
            return (Stopped::Budget.outcome(), Done::default());
        }
        match &unit.work {
            Work::Command { files: Some(files), .. } if files.is_empty() && !unit.allow_empty => {
                (CheckOutcome::Skipped(SkipReason::NoMatchingFiles), Done::default())
            }
            Work::Command { .. } => {
                let (outcome, mut done) = self.lacking(unit).unwrap_or_else(|| self.command(unit));
                results::conceal(&self.secrets, &mut done);
                (outcome, done)
            }
            Work::Logic { .. } => self.logic(unit, done),
            // It was not among those to run, and was not asked.
            Work::Nothing(_) => (CheckOutcome::Error(ErrorKind::Host), Done::default()),
        }
    }

    /// Whether a signal came while nothing was waiting for one.
    fn interrupted(&mut self) -> bool {
        while let Ok(stop) = self.around.stops.1.try_recv() {
            if stop == Stop::Interrupted {
                self.stopped = Some(Stopped::Signal);
            }
        }
        if self.around.workspace.patience.over() == Some(Over::Stopped) {
            self.stopped = Some(Stopped::Signal);
        }
        self.stopped == Some(Stopped::Signal)
    }

    fn command(&mut self, unit: &Unit) -> (CheckOutcome, Done) {
        let host = |message: String| {
            (CheckOutcome::Error(ErrorKind::Host), Done { message: Some(message), ..Done::default() })
        };
        let Work::Command { argv, environment, files, passed, gap_exit, .. } = &unit.work else {
            return host("it is no command".to_owned());
        };
        let files = files.as_deref().unwrap_or_default();
        let log = match self.around.logs.start(&unit.id, &self.secrets) {
            Ok(log) => log,
            Err(error) => return host(format!("cannot make its log file: {error}")),
        };
        let kept = match log.try_clone() {
            Ok(kept) => kept,
            Err(error) => return host(format!("cannot keep its output: {error}")),
        };
        let own = unit.timeout.map(|timeout| Instant::now() + timeout);
        let deadline = [own, self.deadline].into_iter().flatten().min();
        let folder = &self.around.workspace.root;
        let list = match self.listed(unit, argv, files) {
            Ok(list) => list,
            Err(error) => return host(format!("cannot write the list of its files: {error}")),
        };
        let mut ending = Ending::Exited(Exit::Code(0));
        let mut judged = Vec::new();
        for argv in native::files::calls(argv, files, &list) {
            let log = match log.try_clone() {
                Ok(log) => log,
                Err(error) => return host(format!("cannot keep its output: {error}")),
            };
            let result = match ResultFile::new(&self.around.logs.folder()) {
                Ok(result) => result,
                Err(error) => return host(format!("cannot make a folder for its result: {error}")),
            };
            let mut environment = environment.clone();
            environment.insert(RESULT_VARIABLE.into(), result.path().into());
            let job = Job { argv: &argv, folder, environment: &environment, log, deadline, grace: GRACE };
            ending = native::run(job, &self.around.stops.0, &self.around.stops.1);
            let Ending::Exited(exit) = ending else { break };
            let mut one = Done { exit: Some(exit), ..Done::default() };
            let outcome = results::judge(exit, gap_exit, result.read(), self.around.snapshot, self.fail_on, &mut one);
            judged.push((outcome, one));
        }
        drop(log);
        let log = match self.around.logs.finish(&unit.id, kept, &self.secrets) {
            Ok(log) => log,
            Err(error) => return host(format!("cannot keep its output: {error}")),
        };
        let mut done = Done { log: Some(log), environment: Some(passed.clone()), ..Done::default() };
        let outcome = match ending {
            Ending::Exited(_) => results::together(judged, &mut done),
            Ending::TimedOut(exit) => {
                done.exit = Some(exit);
                if own.is_none_or(|own| self.deadline.is_some_and(|budget| budget < own)) {
                    self.stopped = Some(Stopped::Budget);
                    done.message = Some("the time of the whole run was used up".to_owned());
                } else {
                    let limit = unit.timeout.unwrap_or_default();
                    done.message = Some(format!("it did not end within its timeout of {limit:?}"));
                }
                CheckOutcome::TimedOut
            }
            Ending::Interrupted(exit) => {
                done.exit = Some(exit);
                self.stopped = Some(Stopped::Signal);
                CheckOutcome::Interrupted
            }
            Ending::NotStarted(error) => {
                done.log = None;
                done.environment = None;
                let kind = match error.kind() {
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => ErrorKind::NotFound,
                    _ => ErrorKind::Host,
                };
                done.message = Some(not_started(&argv[0], environment, &error));
                CheckOutcome::Error(kind)
            }
        };
        (outcome, done)
    }
}

impl Runner<'_> {
    /// The path of a file that lists the files of a command, beside its log. Empty where the command asks for none.
    fn listed(&self, unit: &Unit, argv: &[String], files: &[String]) -> std::io::Result<String> {
        if !native::files::wants_list(argv) {
            return Ok(String::new());
        }
        self.around.logs.list(&unit.id, &native::files::list(files))
    }
}

fn not_started(program: &str, environment: &Environment, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        _ => error.to_string(),
    };
    let path = environment.get(std::ffi::OsStr::new("PATH")).map(|path| path.to_string_lossy()).unwrap_or_default();
    let looked = if program.contains('/') { String::new() } else { format!("; PATH is {path}") };
    format!(
        "cannot start `{program}`: {why}{looked}\nhelp: install it, or correct `command`; a command is a list of words and never a shell line"
    )
}
