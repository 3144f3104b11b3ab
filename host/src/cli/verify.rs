//! `probity verify`.

use super::args::{Demand, Verify};
use super::error::CliError;
use super::printer::Printer;
use super::take::{Budget, Taken, take};
use super::turn::{self, Entered, Own, Turn};
use super::{baseline, prepare};
use crate::config::User;
use crate::guest::Host;
use crate::model::{CheckId, CheckKind, Event, Record, RecordRow, RunId, RunOutcome};
use crate::native::{Cut, Stop, Supervisor};
use crate::plan::{self, About, Work};
use crate::report::Human;
use crate::run::{self, Surroundings};
use crate::store::{self, Lease, Logs, State, Store, StoreError};
use crate::subject::Patience;
use crate::system::{self, clock};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// The last lines of a failed command's output that a report shows.
const TAIL_LINES: usize = 20;

/// How much of the end of a log is looked at for them.
const TAIL_BYTES: u64 = 16 << 10;

pub(super) fn verify(folder: &Path, options: &Verify, printer: &Printer) -> Result<u8, CliError> {
    let budget = Budget::default();
    // From here on Ctrl-C ends the run in order, whatever it is at.
    let supervisor = prepare::supervisor()?;
    let _supervised = Supervised(Arc::clone(&supervisor));
    let stops = listen(&budget.patience, &supervisor)?;
    let waiting = turn::waiting(printer);
    let mut turn = Turn::new(budget, options, printer, &waiting)?;
    let host = prepare::host()?;
    let user = prepare::user(printer)?;
    loop {
        if let Some(code) = attempt(folder, options, &user, &host, &supervisor, &stops, &mut turn, printer)? {
            return Ok(code);
        }
    }
}

/// Verifies the tree as it is now. None where another run of it was waited for after it had been looked at.
fn attempt(
    folder: &Path,
    options: &Verify,
    user: &User,
    host: &Host,
    supervisor: &Arc<Supervisor>,
    stops: &(Sender<Stop>, Receiver<Stop>),
    turn: &mut Turn<'_>,
    printer: &Printer,
) -> Result<Option<u8>, CliError> {
    let taken = take(folder, options, user, turn, printer).map_err(|error| turn.judge(error))?;
    let Taken { project, workspace, snapshot } = &taken;
    let secrets = prepare::secrets(&project.config);
    printer.keep(secrets.clone());
    if snapshot.entries.is_empty() {
        printer.note("note: the subject is empty: nothing here is tracked, and everything is ignored");
    }
    let scenario = prepare::scenario(&project.config, &options.scenario)?;
    let mut request = prepare::request(scenario, options)?;
    // A reason is kept and shown as it is given.
    request.not_applicable = request.not_applicable.map(|reason| printer.concealed(&reason));
    prepare::within_ceilings(project, scenario, user, printer)?;
    let spec = taken.spec().map_err(|error| turn.judge(error))?;
    let base = taken.base(scenario, options, printer).map_err(|error| turn.judge(error))?;
    if request.changed && base.is_none() {
        let hint = if workspace.repository.is_some() {
            "name one with `--base origin/main`, or as `base` of the scenario"
        } else {
            "there is no repository here: run it in one, or leave `--changed` out"
        };
        return Err(CliError::usage("`--changed` compares with a base, and there is none").hint(hint));
    }
    let branch = taken.branch()?;
    let looked = clock::now();
    let about = About {
        snapshot,
        base: base.as_ref(),
        branch: branch.as_deref(),
        capabilities: None,
        ceilings: user.limits,
        key: system::key(),
    };
    let chosen = prepare::chosen(&project.config, scenario, about, &request);
    baseline::with_base(project, scenario, &chosen, base.as_ref(), printer)?;
    if options.plan {
        return Ok(Some(super::plan::show(&taken, scenario, about, &request, options.json, printer)));
    }
    let probes = prepare::probes(workspace, supervisor);
    for (name, probe) in prepare::conditions(&project.config, &chosen, about) {
        let cut = Cut { deadline: turn.budget.patience.deadline(), stops: (&stops.0, &stops.1) };
        probes.capability(name, probe, cut);
    }
    let known = probes.known();
    let about = About { capabilities: Some(&known), ..about };
    let chosen = prepare::chosen(&project.config, scenario, about, &request);
    if options.walls == Demand::Strict || user.strict_walls {
        prepare::all_walls(&chosen, host)?;
    }
    let packs = prepare::packs(&taken, &chosen, host, printer)?;
    let resolved = prepare::resolve(project, &chosen, &packs, printer)?;
    let plan = plan::plan(&project.config, scenario, about, &request, &resolved, prepare::environment);
    if turn.enter_at_last(workspace)? == Entered::Late {
        return Ok(None);
    }
    if plan.units.iter().any(|unit| matches!(unit.work, Work::Command { .. })) {
        supervisor.start();
    }
    for name in secrets.too_short() {
        printer
            .note(&format!("note: the value of {name} is too short to be found in output, so it is not kept secret"));
    }
    let mut place = Place::open(&mut turn.place)?;
    let budget = &turn.budget;
    if let (None, Some(bytes), Some(memory)) = (&place.trouble, snapshot.remember(), prepare::memory(workspace)) {
        memory.keep(&bytes);
    }
    let looked = clock::now() - looked;
    let limit = plan.timeout.and_then(|timeout| budget.clock.checked_add(timeout)?.checked_add(looked));
    budget.patience.until(limit);
    let around = Surroundings {
        run: place.run.clone(),
        workspace,
        snapshot,
        base: base.as_ref(),
        spec: spec.as_ref(),
        claim: None,
        packs: &packs,
        capabilities: &probes,
        supervisor,
        logs: &place.logs,
        engine: format!("probity {}, {}", env!("CARGO_PKG_VERSION"), crate::worker::engine_id()),
        host: system::host_name(),
        secrets,
        staged: options.staged,
        started: budget.started.clone(),
        clock: budget.began,
    };
    place.begin(&run::begun(&plan, &around));
    let mut running = Vec::new();
    let record = run::execute(&plan, &around, (&stops.0, &stops.1), &mut |event| {
        if !options.json {
            show(event, &mut running, &place, printer);
        }
    })?;
    // It ends while the record is written.
    supervisor.leave();
    let (record, trouble) = place.publish(record, turn.waiting);
    let finished = Event::RunFinished { record: Box::new(record) };
    let Event::RunFinished { record } = &finished else { return Ok(Some(70)) };
    if options.json {
        printer.json(&document(record, trouble.is_none())?);
    } else {
        show(&finished, &mut running, &place, printer);
    }
    if let Some(trouble) = trouble {
        printer.error(&trouble);
    }
    Ok(Some(record.verdict.outcome.exit_code()))
}

/// Sees to it that the supervisor has ended when this process does, however that comes.
struct Supervised(Arc<Supervisor>);

impl Drop for Supervised {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts to listen for signals. Each one asks the run to stop: the first in order, the second at once, and the third
/// ends this process where it is. A pause is one of all that runs.
fn listen(patience: &Patience, supervisor: &Arc<Supervisor>) -> Result<(Sender<Stop>, Receiver<Stop>), CliError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM, SIGTSTP])
        .map_err(|error| CliError::trouble(format!("cannot listen for signals: {error}")))?;
    let (stop, patience, supervisor) = (sender.clone(), patience.clone(), Arc::clone(supervisor));
    std::thread::spawn(move || {
        let mut count = 0;
        for signal in signals.forever() {
            if signal == SIGTSTP {
                // In this order: time that is told stands still for as long as anything may.
                clock::pause();
                supervisor.pause();
                // This returns when somebody lets the process go on.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
                supervisor.resume();
                clock::resume();
                continue;
            }
            count += 1;
            patience.stop();
            let _ = stop.send(Stop::Interrupted);
            if count > 2 {
                let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
            }
        }
    });
    Ok((sender, receiver))
}

/// Where this run keeps what it makes.
struct Place<'n> {
    state: State,
    run: RunId,
    logs: Logs,
    store: Option<Store<'n>>,
    lease: Option<Lease>,
    /// Why it cannot be the state folder: then nothing is recorded.
    trouble: Option<String>,
    /// Holds a folder that goes with this process.
    _temporary: Option<tempfile::TempDir>,
}

impl<'n> Place<'n> {
    /// The state folder; where that cannot be used, a temporary one, so that the run is still shown.
    fn open(own: &mut Own<'n>) -> Result<Self, CliError> {
        let (run, store, lease) = (own.run.clone(), own.store.take(), own.lease.take());
        let trouble = match (own.state.take(), own.trouble.take()) {
            (Some(state), None) => match Logs::create(&state, &run) {
                Ok(logs) => return Ok(Self { state, run, logs, store, lease, trouble: None, _temporary: None }),
                Err(error) => format!("cannot write below {}: {error}", state.path().display()),
            },
            (_, trouble) => trouble.unwrap_or_default(),
        };
        let none =
            |error: &dyn Display| CliError::trouble(format!("{trouble}; and there is no temporary folder: {error}"));
        let temporary = tempfile::tempdir().map_err(|error| none(&error))?;
        let state = State::at(temporary.path()).map_err(|error| none(&error))?;
        let logs = Logs::create(&state, &run).map_err(|error| none(&error))?;
        Ok(Self { state, run, logs, store, lease, trouble: Some(trouble), _temporary: Some(temporary) })
    }

    /// Says that the run has begun, so that it is known of even if nothing else comes of it. Where that cannot be written,
    /// neither can what comes of it, and that is told.
    fn begin(&self, record: &Record) {
        if let (None, Some(lease)) = (&self.trouble, &self.lease)
            && let Err(error) = lease.begin(record)
        {
            tracing::warn!(%error, "if this run is killed, nobody will see that it was there");
        }
    }

    /// Makes the record visible, last of all. One that cannot be recorded is no verdict: its outcome is `error`.
    fn publish(&mut self, mut record: Record, waiting: &dyn Fn()) -> (Record, Option<CliError>) {
        let logs = record.rows.iter().filter_map(|row| Some((&row.id, row.log.as_ref()?)));
        let recorded = match &self.trouble {
            Some(trouble) => Err(trouble.clone()),
            None => self
                .logs
                .combine(logs)
                .and_then(|()| self.logs.in_place())
                .map_err(|error| format!("cannot write verify.log: {error}"))
                .and_then(|()| self.record(&record, waiting).map_err(|error| error.to_string())),
        };
        match recorded {
            Ok(()) => {
                if let Some(lease) = self.lease.take() {
                    lease.finish();
                }
                (record, None)
            }
            Err(why) => {
                record.verdict.outcome = record.verdict.outcome.min(RunOutcome::Error);
                record.verdict_digest = None;
                (
                    record,
                    Some(CliError::trouble(format!("the verdict could not be recorded, so it does not count: {why}"))),
                )
            }
        }
    }

    fn record(&self, record: &Record, waiting: &dyn Fn()) -> Result<(), StoreError> {
        if let Some(store) = self.store.as_ref().filter(|store| store.is_in_place(&self.state)) {
            match store.record(&self.state, record) {
                // It was whole when the run began: the next one to open it sets it aside.
                Err(StoreError::Damaged(_) | StoreError::Foreign(_)) => {}
                recorded => return recorded,
            }
        }
        Store::open(&self.state, waiting)?.record(&self.state, record)
    }
}

/// Shows an event to a person. `running` has the checks that have started and of which nothing was told yet.
fn show(event: &Event, running: &mut Vec<CheckId>, place: &Place<'_>, printer: &Printer) {
    match event {
        Event::CheckStarted { id, kind: CheckKind::Command | CheckKind::Logic } => running.push(id.clone()),
        Event::CheckFinished { row, .. } => running.retain(|id| *id != row.id),
        Event::RunStarted { .. } | Event::RunFinished { .. } => {}
    }
    let names: Vec<&str> = running.iter().map(CheckId::as_str).collect();
    printer.status(Some(names.join(", ")).filter(|names| !names.is_empty()).as_deref());
    // A value that had colours inside is whole once they are gone.
    let tail = |record: &_| tail(&place.state, &place.run, record).map(|tail| printer.concealed(&tail));
    let text = Human::new(printer.style(), place.run.clone()).text(event, tail);
    if !text.is_empty() {
        printer.out(&text);
    }
}

/// The last lines of what a check wrote.
pub(super) fn tail(state: &State, run: &RunId, record: &RecordRow) -> Option<String> {
    let log = record.log.as_ref()?;
    let bytes = store::read_tail(state, run, &record.id, TAIL_BYTES).ok()?;
    let text = crate::report::without_codes(&String::from_utf8_lossy(&bytes));
    // Unless it is all there is, it begins in the middle of a line.
    let lines: Vec<&str> = text.lines().skip(usize::from(log.size > TAIL_BYTES)).collect();
    let shown = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if shown.is_empty() {
        return None;
    }
    let all = lines.len() == shown.len() && log.size <= TAIL_BYTES;
    let before = format!("… (the end of it; `probity show {run} --check {} --log` has all)\n", record.id);
    Some(if all { String::new() } else { before } + &shown.join("\n"))
}

/// The record as one JSON document.
pub(super) fn document(record: &Record, recorded: bool) -> Result<serde_json::Value, CliError> {
    let digest = record.digest().map_err(|error| CliError::trouble(error.to_string()))?;
    let document = serde_json::json!({
        "schema": "probity/record/1",
        "exit_code": record.verdict.outcome.exit_code(),
        "recorded": recorded,
        "record_digest": digest,
        "record": record,
    });
    Ok(document)
}
