//! `probity verify`.

use super::args::{Demand, Verify};
use super::asked::{Asked, ask};
use super::deliver::deliver;
use super::error::CliError;
use super::place::Place;
use super::printer::Printer;
use super::question::{self, Question, Sealed};
use super::shown::Shown;
use super::signals::{Supervised, listen};
use super::take::{Budget, Taken};
use super::turn::{self, Entered, Turn};
use super::why::explained;
use super::{baseline, prepare, rest};
use crate::config::User;
use crate::evidence::{self, Answer, Fingerprints, Tools};
use crate::guest::{Host, Walls};
use crate::model::{Because, Event, Record, Reuse, Withheld};
use crate::native::{Cut, Stop, Supervisor};
use crate::plan::{self, About, Plan, Unit, Work};
use crate::report::deselected;
use crate::run::{self, Surroundings};
use crate::store::{Lease, State};
use crate::system::{self, clock};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

pub(super) fn verify(folder: &Path, options: &Verify, live: bool, printer: &Printer) -> Result<u8, CliError> {
    prepare::operator()?;
    if options.deliver_cached {
        return deliver(folder, options, &prepare::user(printer)?, printer);
    }
    let budget = Budget::default();
    printer.until(&budget.patience);
    // From here on Ctrl-C ends the run in order, whatever it is at.
    let supervisor = prepare::supervisor()?;
    let _supervised = Supervised(Arc::clone(&supervisor));
    let stops = listen(&budget.patience, &supervisor)?;
    let waiting = turn::waiting(printer);
    let mut turn = Turn::new(budget, options, Some(&supervisor), printer, &waiting)?;
    let session = Session {
        folder,
        options,
        live,
        printer,
        host: prepare::host()?,
        user: prepare::user(printer)?,
        supervisor: &supervisor,
        stops,
    };
    loop {
        if let Some(code) = session.attempt(&mut turn)? {
            return Ok(code);
        }
    }
}

/// What stays as it is while a run waits for its turn.
struct Session<'a> {
    folder: &'a Path,
    options: &'a Verify,
    /// Whether output is shown as it comes.
    live: bool,
    printer: &'a Printer,
    host: Host,
    user: User,
    supervisor: &'a Arc<Supervisor>,
    stops: (Sender<Stop>, Receiver<Stop>),
}

/// Whether a record answered.
enum Answered {
    /// One did: with this exit code.
    Served(u8),
    /// Somebody else found out the same meanwhile, so everything is looked at again.
    Late,
    /// None did, and why. Nobody else finds out the same until the lease is gone.
    Not(Vec<Because>, Option<Lease>),
}

impl Session<'_> {
    /// Verifies the tree as it is now. None where another run of it was waited for after it had been looked at.
    fn attempt(&self, turn: &mut Turn<'_>) -> Result<Option<u8>, CliError> {
        let Self { folder, options, live, printer, host, user, supervisor, stops } = self;
        let asked = ask(folder, user, turn)?;
        let Asked { taken, request, base, spec, secrets, .. } = &asked;
        let Taken { project, workspace, snapshot } = taken;
        let scenario = asked.scenario(options)?;
        let looked = clock::now();
        let about = asked.about(user);
        let chosen = prepare::chosen(&project.config, scenario, about, request);
        baseline::with_base(project, scenario, &chosen, base.as_ref(), printer)?;
        if options.plan {
            let state = State::look(&prepare::state_folder(workspace))?;
            let store = prepare::records(state.as_ref(), turn.waiting)?;
            let asked_of = chosen.iter().flat_map(|check| check.when.capabilities.iter().chain(&check.needs));
            let asked_of = asked_of.collect();
            let believed = store.map_or_else(|| Ok(Vec::new()), |store| rest::believed(&store, asked_of))?;
            return Ok(Some(super::plan::show(taken, scenario, about, request, options.json, &believed, printer)));
        }
        let probes = prepare::probes(workspace, supervisor);
        for (name, probe) in prepare::conditions(&project.config, &chosen, about) {
            let cut = Cut { deadline: turn.budget.patience.deadline(), stops: (&stops.0, &stops.1) };
            probes.capability(name, probe, cut);
        }
        let known = probes.known();
        let about = About { capabilities: Some(&known), ..about };
        let chosen = prepare::chosen(&project.config, scenario, about, request);
        if self.strict() {
            prepare::all_walls(&chosen, host)?;
        }
        let packs = prepare::packs(taken, &chosen, host, true, printer)?;
        let resolved = prepare::resolve(project, &chosen, &packs, printer)?;
        let plan = plan::plan(&project.config, scenario, about, request, &resolved, prepare::environment);
        let cut = Cut { deadline: turn.budget.patience.deadline(), stops: (&stops.0, &stops.1) };
        for (name, probe) in plan.units.iter().flat_map(|unit| &unit.needs) {
            probes.capability(name, probe, cut);
        }
        let memory = question::files(&asked);
        let tools = Tools { snapshot, root: &workspace.root, memory: memory.as_ref() };
        let tools = (&tools, Fingerprints { supervisor, cut });
        if turn.enter_at_last(workspace)? == Entered::Late {
            return Ok(None);
        }
        if let (None, Some(bytes), Some(memory)) =
            (&turn.place.trouble, snapshot.remember(), prepare::memory(workspace))
        {
            memory.keep(&bytes);
        }
        let known = probes.known();
        let question = Question::new(&asked, &plan, tools, &known)?;
        let (because, _flight) = match self.answered(&question, &asked, &plan, turn)? {
            Answered::Served(code) => return Ok(Some(code)),
            Answered::Late => return Ok(None),
            Answered::Not(because, flight) => (because, flight),
        };
        if plan.units.iter().any(|unit| matches!(unit.work, Work::Command { .. })) {
            supervisor.start();
        }
        for name in secrets.too_short() {
            printer.note(&format!(
                "note: the value of {name} is too short to be found in output, so it is not kept secret"
            ));
        }
        let place = Place::open(&mut turn.place)?;
        let budget = &turn.budget;
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
            identity: question.sealed.as_ref().map(|sealed| sealed.identity),
            because,
            trust: system::trust_class(),
            engine: question::engine(),
            host: system::host_name(),
            secrets: secrets.clone(),
            staged: options.staged,
            live: *live,
            started: budget.started.clone(),
            clock: budget.began,
        };
        Ok(Some(self.carry_out(
            &plan,
            &around,
            &place,
            &|| question.moved(&asked, &plan, tools, &known),
            &question,
            turn.waiting,
        )?))
    }

    /// Has a record answer if one does. If none does, nobody else finds the answer out until the lease is gone.
    fn answered(
        &self,
        question: &Question,
        asked: &Asked,
        plan: &Plan,
        turn: &mut Turn<'_>,
    ) -> Result<Answered, CliError> {
        let walls = self.strict().then(|| Walls::ALL.words());
        let mut flight = None;
        loop {
            let store = turn.place.store.as_ref();
            let because = match question.answer(asked, plan, store, turn, walls)? {
                Answer::Serve(record, reuse) => return self.serve(&record, &reuse, turn).map(Answered::Served),
                Answer::Run(because) => because,
            };
            let Some(sealed) = question.sealed.as_ref().filter(|_| flight.is_none() && !Question::is_alone(&because))
            else {
                return Ok(Answered::Not(because, flight.flatten()));
            };
            match turn.alone(&sealed.identity)? {
                (Entered::Late, _) => return Ok(Answered::Late),
                // Whoever had it before may have found the answer since the records were asked.
                (Entered::Now, lease) => flight = Some(lease),
            }
        }
    }

    /// Whether all walls are asked for.
    fn strict(&self) -> bool {
        self.options.walls == Demand::Strict || self.user.strict_walls
    }

    /// Runs what was planned, records it, and tells of it: with which exit code.
    fn carry_out(
        &self,
        plan: &Plan,
        around: &Surroundings<'_>,
        place: &Place<'_>,
        moved: &dyn Fn() -> Result<Option<Withheld>, CliError>,
        question: &Question,
        waiting: &dyn Fn(),
    ) -> Result<u8, CliError> {
        let Self { options, printer, supervisor, stops, .. } = self;
        place.begin(&run::begun(plan, around));
        let mut shown = Shown::new(options.format(), &place.run, &place.state, Some(around.clock), printer);
        let mut told = Ok(());
        let mut record = run::execute(plan, around, (&stops.0, &stops.1), &mut |event| {
            if told.is_ok() {
                told = shown.hear(event);
            }
        })?;
        told?;
        record.withheld = evidence::withheld(&record, plan, &question.unknown, question.sealed.is_some());
        if record.withheld.is_empty() {
            record.withheld.extend(moved()?);
        }
        // It ends while the record is written.
        supervisor.leave();
        let sealing = question.sealed.as_ref().map(Sealed::sealing);
        let (record, trouble) = place.publish(record, sealing, waiting);
        let code = record.verdict.outcome.exit_code();
        shown.hear(&Event::RunFinished { record: Box::new(record), recorded: trouble.is_none() })?;
        if let Some(trouble) = trouble {
            printer.error(&trouble);
        }
        if options.explain {
            for unit in &plan.units {
                self.explain(unit, &around.because);
            }
        }
        Ok(code)
    }

    fn explain(&self, unit: &Unit, because: &[Because]) {
        let lines = match unit.row.deselected {
            Some(why) => vec![format!("it did not run: {}", deselected(why))],
            None => explained(because, &unit.id),
        };
        for line in lines {
            self.printer.note(&format!("why {}: {line}", unit.id));
        }
    }

    /// Shows a record in place of a run: with its exit code.
    fn serve(&self, record: &Record, reuse: &Reuse, turn: &Turn<'_>) -> Result<u8, CliError> {
        let Self { options, printer, .. } = self;
        let Some(state) = &turn.place.state else { return Err(CliError::trouble("the records are gone")) };
        let mut shown = Shown::new(options.format(), &record.run, state, None, printer);
        for event in record.events() {
            if let Event::RunFinished { .. } = event {
                shown.hear(&Event::RunReused { run: record.run.clone(), reuse: Box::new(reuse.clone()) })?;
            }
            shown.hear(&event)?;
        }
        if options.explain {
            printer.note(&format!("each check: run {} has the same identity, {}", record.run, reuse.identity));
        }
        Ok(record.verdict.outcome.exit_code())
    }
}
