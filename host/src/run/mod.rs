//! The runner: carries out a plan and says what happens as a stream of events.
//!
//! Must not: print, write to the store, or decide what a pack's words mean beyond the contract.
//!
//! One loop owns a run (`dispatcher`), and what is started when is decided apart from it (`order`).

mod baseline;
mod command;
mod dispatcher;
mod isolate;
mod known;
mod logic;
mod mounts;
mod needs;
mod order;
mod results;
mod sources;
mod watch;

pub use mounts::Claim;
pub use sources::Sources;

use crate::guest::Pack;
use crate::model::{
    Because, CheckInfo, CheckKind, CheckOutcome, Class, Coverage, Digest, ErrorKind, Event, Exit, NamedBase, PackName,
    Passed, Reaped, Record, RecordRow, Row, RunId, RunOutcome, Secrets, Seen, Severity, SkipReason, Spec, Stopping,
    Subject, Unnamed, UsedPack, VERDICT_SCHEMA, Verdict,
};
use crate::native::{Probes, Stop, Supervisor};
use crate::plan::{Base, Dark, Plan, Unit, Work};
use crate::store::Logs;
use crate::subject::{Over, Snapshot, SnapshotError, Specification, Watch, Workspace};
use crate::system::clock;
use dispatcher::dispatch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

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
    /// What watches over commands.
    pub supervisor: &'a Supervisor,
    /// Where output goes.
    pub logs: &'a Logs,
    /// Probity's version and the engine's.
    pub engine: String,
    /// This host's name.
    pub host: String,
    /// The values that nobody is to see.
    pub secrets: Secrets,
    /// Whether the subject is an index.
    pub staged: bool,
    /// Whether output is told as it comes.
    pub live: bool,
    /// The digest of the run's identity, where that is known.
    pub identity: Option<Digest>,
    /// Why no record answers in its place.
    pub because: Vec<Because>,
    /// Whose word it is, where it is not this user's alone.
    pub trust: Option<String>,
    /// When it all began, with looking at the tree: RFC 3339, UTC, milliseconds.
    pub started: String,
    /// The same, to measure from.
    pub clock: Instant,
}

/// Carries out a plan to its end, and tells `sink` what happens.
///
/// `stops` leads from whoever hears signals; it is there that ends of checks are told too.
pub fn execute(
    plan: &Plan,
    around: &Surroundings<'_>,
    stops: (&Sender<Stop>, &Receiver<Stop>),
    sink: &mut dyn FnMut(&Event),
) -> Result<Record, SnapshotError> {
    let sources = Sources::new(around.snapshot, &around.workspace.root, around.workspace.repository.as_ref())
        .map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
    let shared = Shared {
        around,
        deadline: around.workspace.patience.deadline(),
        sources: Arc::new(sources),
        secrets: around.secrets.clone(),
        fail_on: plan.fail_on,
    };
    sink(&Event::RunStarted {
        run: around.run.clone(),
        scenario: plan.scenario.clone(),
        checks: plan.units.iter().map(|unit| unit.id.clone()).collect(),
    });
    let looked_after = commands(plan) && !around.snapshot.revision;
    let watch = looked_after.then(|| Watch::start(around.workspace, around.snapshot));
    let (done, mut stopped) = dispatch(plan, &shared, stops, sink);
    let (rows, records): (Vec<Row>, Vec<RecordRow>) = done.into_iter().unzip();
    // Nothing is written to any of them any more, and they get on disk while the tree is looked at.
    around.logs.combine(records.iter().filter_map(|row| Some((&row.id, row.log.as_ref()?))));
    let (moved, touched) = moved(&shared, watch, &mut stopped);
    let mut outcome = RunOutcome::of(&rows);
    if plan.not_applicable.is_some() {
        outcome = RunOutcome::NotApplicable;
    }
    match stopped {
        Some(Stopped::Signal) => outcome = outcome.min(RunOutcome::Interrupted),
        Some(Stopped::Budget) => outcome = outcome.min(RunOutcome::TimedOut),
        None => {}
    }
    if !moved.is_empty() {
        outcome = outcome.min(RunOutcome::Stale);
    }
    let closing = Closing {
        rows,
        records,
        outcome,
        moved,
        touched,
        whole: stopped.is_none(),
        duration: clock::now().saturating_duration_since(around.clock),
    };
    Ok(record(plan, around, closing))
}

/// What a run would be recorded as if its process were gone from one moment to the next: interrupted, and no verdict.
pub fn begun(plan: &Plan, around: &Surroundings<'_>) -> Record {
    let row = |unit: &Unit| {
        let outcome = unit.row.deselected.map_or(CheckOutcome::Interrupted, CheckOutcome::NotSelected);
        finished(unit, outcome, Done::default(), Duration::ZERO)
    };
    let (rows, records) = plan.units.iter().map(row).unzip();
    let outcome = RunOutcome::Interrupted;
    let (moved, touched) = (Vec::new(), Vec::new());
    let closing = Closing { rows, records, outcome, moved, touched, whole: false, duration: Duration::ZERO };
    Record { abandoned: true, ..record(plan, around, closing) }
}

/// What a run came to.
struct Closing {
    rows: Vec<Row>,
    records: Vec<RecordRow>,
    outcome: RunOutcome,
    moved: Vec<String>,
    touched: Vec<String>,
    /// Whether neither a signal nor the budget ended it.
    whole: bool,
    duration: Duration,
}

fn record(plan: &Plan, around: &Surroundings<'_>, closing: Closing) -> Record {
    let Closing { rows, records, outcome, mut moved, mut touched, whole, duration } = closing;
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
    cut(&mut touched, &mut unnamed.touched);
    let (mut open, mut hidden) = (around.snapshot.open(), around.snapshot.hidden());
    let mut unproven = around.snapshot.unproven.clone();
    let conceal = |text: &mut String| *text = around.secrets.conceal(text);
    for remark in open.iter_mut().chain(&mut hidden).chain(&mut unproven) {
        conceal(&mut remark.path);
        conceal(&mut remark.why);
    }
    let mut capabilities = around.capabilities.known();
    capabilities.iter_mut().filter_map(|capability| capability.why.as_mut()).for_each(conceal);
    cut(&mut moved, &mut unnamed.moved);
    cut(&mut open, &mut unnamed.open);
    cut(&mut unproven, &mut unnamed.unproven);
    cut(&mut hidden, &mut unnamed.hidden);
    Record {
        run: around.run.clone(),
        // What a signal or the budget cut short depends on when it came: it is no verdict that two runs could share.
        // Integers and texts only, each capped, so the canonical form exists.
        verdict_digest: if whole { verdict.digest().ok() } else { None },
        coverage: Some(Coverage::of(&verdict.rows)),
        verdict,
        started: around.started.clone(),
        duration_ms: milliseconds(duration),
        tree: around.workspace.root.to_string_lossy().into_owned(),
        host: around.host.clone(),
        dirty: around.snapshot.dirty,
        staged: around.staged,
        base: around.base.map(|base| NamedBase {
            name: around.secrets.conceal(&base.named.name),
            commit: base.named.commit.clone(),
        }),
        spec_version: around.spec.map(|spec| spec.version),
        open,
        unproven,
        moved,
        touched,
        hidden,
        unnamed,
        packs: around.packs.iter().map(|(name, pack)| used(name, pack)).collect(),
        capabilities,
        jobs: Some(plan.jobs).filter(|jobs| *jobs > 1),
        abandoned: false,
        identity: around.identity,
        // Said when all is known.
        withheld: Vec::new(),
        because: around.because.clone(),
        trust: around.trust.clone(),
        engine: around.engine.clone(),
        rows: records,
    }
}

/// Whether commands are to run in the tree itself. Those in a copy see what was verified, whatever becomes of the tree.
fn commands(plan: &Plan) -> bool {
    plan.units.iter().any(|unit| matches!(unit.work, Work::Command { isolate: false, .. }))
}

/// What moved under the run, and what was written though it is what it was. Where no command ran (nothing is watched then),
/// every byte that was used was checked against the digest that the verdict names, and a look is not needed.
fn moved(shared: &Shared<'_>, watch: Option<Watch>, stopped: &mut Option<Stopped>) -> (Vec<String>, Vec<String>) {
    let Surroundings { snapshot, workspace, .. } = shared.around;
    let mut moved = shared.sources.moved();
    let mut touched = Vec::new();
    if workspace.patience.over() == Some(Over::Stopped) {
        *stopped = Some(Stopped::Signal);
    }
    // A run that was stopped is no verdict on anything, whatever moved.
    if let (Some(watch), true) = (watch, stopped.is_none()) {
        match (workspace.snapshot(Some(snapshot)), workspace.patience.over()) {
            (Ok(later), _) => {
                let happened = watch.end(workspace, snapshot, &later);
                moved.extend(snapshot.moved(&later).into_iter().chain(happened.moved));
                touched.extend(snapshot.touched(&later).into_iter().chain(happened.touched));
            }
            (Err(_), Some(Over::Stopped)) => *stopped = Some(Stopped::Signal),
            (Err(_), Some(Over::Late)) => *stopped = Some(Stopped::Budget),
            // What cannot be looked at again is not what was verified.
            (Err(error), None) => {
                tracing::debug!(%error, "the subject cannot be looked at again");
                moved.push(".".to_owned());
            }
        }
    }
    moved.sort();
    moved.dedup();
    // A command can make a file of any name.
    moved = moved.iter().map(|path| shared.secrets.conceal(path)).collect();
    touched.sort();
    touched.dedup();
    touched = touched.iter().map(|path| shared.secrets.conceal(path)).collect();
    (moved, touched)
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
    fn told(self) -> Stopping {
        match self {
            Self::Signal => Stopping::Signal,
            Self::Budget => Stopping::Budget,
        }
    }

    fn outcome(self) -> CheckOutcome {
        match self {
            Self::Signal => CheckOutcome::Interrupted,
            Self::Budget => CheckOutcome::TimedOut,
        }
    }

    /// Why a check was not started at all.
    fn skip(self) -> SkipReason {
        match self {
            Self::Signal => SkipReason::Interrupted,
            Self::Budget => SkipReason::TimeUp,
        }
    }
}

/// What is known of a check besides its outcome.
#[derive(Debug, Default)]
struct Done {
    /// From the beginning of the run.
    started_ms: Option<u64>,
    report: crate::model::Report,
    exit: Option<Exit>,
    environment: Option<Passed>,
    message: Option<String>,
    reaped: Reaped,
    log: Option<crate::model::Log>,
    stderr: Option<String>,
    fuel: Option<u64>,
    walls: Option<String>,
    observed: Option<Digest>,
    class: Option<Class>,
    /// Of a check that does not count.
    seen: Option<Seen>,
}

/// Whether every rule of a check is switched off, so that it could find nothing that counts.
fn all_off(check: &CheckInfo, severities: &BTreeMap<String, Option<Severity>>) -> bool {
    !check.rules.is_empty() && check.rules.iter().all(|rule| severities.get(&rule.id) == Some(&None))
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
        started_ms: done.started_ms,
        duration_ms: milliseconds(elapsed),
        exit: done.exit,
        message: done.message,
        environment: done.environment,
        reaped: done.reaped,
        log: done.log,
        stderr: done.stderr,
        fuel: done.fuel,
        walls: done.walls,
        observed: done.observed,
        seen: done.seen,
    };
    (row, record)
}

fn used(name: &PackName, pack: &Pack) -> UsedPack {
    UsedPack { name: name.clone(), version: pack.info.version.clone(), digest: pack.digest }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What all checks of a run share.
struct Shared<'a> {
    around: &'a Surroundings<'a>,
    deadline: Option<Instant>,
    sources: Arc<Sources>,
    /// Values that nobody is to see.
    secrets: Secrets,
    /// The least that fails a check.
    fail_on: Severity,
}

/// Carries out one check.
struct Runner<'a> {
    shared: &'a Shared<'a>,
    /// What ends this check before its time, and where its processes tell of their ends.
    stops: (Sender<Stop>, Receiver<Stop>),
    /// Why it was ended, where that is not about itself.
    stopped: Option<Stopped>,
    /// Where what it writes can be read meanwhile.
    output: watch::Output,
}

impl Runner<'_> {
    fn carry_out(&mut self, unit: &Unit, done: &[(Row, RecordRow)]) -> (CheckOutcome, Done) {
        match &unit.work {
            Work::Command { dark, .. } if !dark.is_empty() => {
                let mut done = Done { message: Dark::message(dark), ..Done::default() };
                results::conceal(&self.shared.secrets, &mut done);
                (CheckOutcome::Error(ErrorKind::Host), done)
            }
            Work::Command { files: Some(files), .. } if files.is_empty() && !unit.allow_empty => {
                (CheckOutcome::Skipped(SkipReason::NoMatchingFiles), Done::default())
            }
            Work::Logic { check, severities, .. } if all_off(check, severities) => {
                (CheckOutcome::Skipped(SkipReason::RulesOff), Done::default())
            }
            Work::Command { .. } => {
                let (outcome, mut done) = self.lacking(unit).unwrap_or_else(|| self.command(unit));
                results::conceal(&self.shared.secrets, &mut done);
                (outcome, done)
            }
            Work::Logic { .. } => self.logic(unit, done),
            // It was not among those to run, and was not asked.
            Work::Nothing(_) => (CheckOutcome::Error(ErrorKind::Host), Done::default()),
        }
    }

    /// The time of the whole run is used up: nothing more is started. Says so of this check.
    fn out_of_budget(&mut self, done: &mut Done) {
        self.stopped = Some(Stopped::Budget);
        done.message = Some("the time of the whole run was used up".to_owned());
    }

    /// Whether a signal came while nothing was waiting for one.
    fn interrupted(&mut self) -> bool {
        let over = self.shared.around.workspace.patience.over() == Some(Over::Stopped);
        if self.stops.1.try_iter().any(|stop| stop == Stop::Interrupted) || over {
            self.stopped = Some(Stopped::Signal);
        }
        self.stopped == Some(Stopped::Signal)
    }
}
