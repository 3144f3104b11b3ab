//! The one loop that owns a run: starts checks, each on a thread of its own, hears of their ends and of signals, and tells
//! what happens.
//!
//! Checks that ran side by side are told in declared order, so that what is shown while a run goes on is what its record
//! says: whether a check counts is certain once all before it have ended.

use super::order::Order;
use super::watch::{LOOK, Output, Watch};
use super::{Done, Runner, Shared, Stopped, finished, milliseconds};
use crate::model::{CheckOutcome, Event, RecordRow, Row, Seen, SkipReason};
use crate::native::Stop;
use crate::plan::{Plan, Work};
use crate::subject::Over;
use crate::system::clock;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// Carries out all checks of a plan: what became of each, in declared order, and why the run was stopped if it was.
pub(super) fn dispatch(
    plan: &Plan,
    shared: &Shared<'_>,
    stops: (&Sender<Stop>, &Receiver<Stop>),
    sink: &mut dyn FnMut(&Event),
) -> (Vec<(Row, RecordRow)>, Option<Stopped>) {
    std::thread::scope(|scope| {
        let mut course = Course {
            plan,
            shared,
            order: Order::new(plan),
            wake: stops.0,
            ends: channel(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            rows: Vec::with_capacity(plan.units.len()),
            stopped: None,
        };
        loop {
            for stop in stops.1.try_iter() {
                course.hear(stop, sink);
            }
            course.tell(sink);
            while let Some(place) = course.next(sink) {
                sink(&Event::CheckStarted { id: plan.units[place].id.clone(), kind: plan.units[place].work.kind() });
                course.start(place, scope);
            }
            if course.running.is_empty() {
                course.tell(sink);
                return (course.rows, course.stopped);
            }
            match course.wait(stops.1) {
                Ok(stop) => course.hear(stop, sink),
                Err(RecvTimeoutError::Timeout) => course.look(sink),
                // A sender is held here, so there is always somebody to hear from; a stop is the safe reading.
                Err(RecvTimeoutError::Disconnected) => course.hear(Stop::Interrupted, sink),
            }
        }
    })
}

struct Course<'scope, 'env> {
    plan: &'env Plan,
    shared: &'env Shared<'env>,
    order: Order,
    /// Where signals come from: what ends a check comes there too, so that there is one place to wait at.
    wake: &'env Sender<Stop>,
    /// The places of checks that have ended.
    ends: (Sender<usize>, Receiver<usize>),
    running: BTreeMap<usize, Running<'scope, 'env>>,
    /// What became of checks whose turn to be told has not come.
    ended: BTreeMap<usize, Ended>,
    /// What was told.
    rows: Vec<(Row, RecordRow)>,
    stopped: Option<Stopped>,
}

struct Running<'scope, 'env> {
    stop: Sender<Stop>,
    thread: ScopedJoinHandle<'scope, Ended>,
    watch: Watch<'env>,
}

/// What became of a check that was started.
struct Ended {
    outcome: CheckOutcome,
    done: Done,
    elapsed: Duration,
    /// Why it was ended, where that is not about itself.
    stopped: Option<Stopped>,
}

impl<'scope, 'env: 'scope> Course<'scope, 'env> {
    /// The next check to start, unless it is time to stop.
    fn next(&mut self, sink: &mut dyn FnMut(&Event)) -> Option<usize> {
        let place = self.order.next()?;
        match self.shared.around.workspace.patience.over() {
            Some(Over::Stopped) => self.stop(Stopped::Signal, sink),
            Some(Over::Late) => self.stop(Stopped::Budget, sink),
            None => {}
        }
        self.stopped.is_none().then_some(place)
    }

    fn start(&mut self, place: usize, scope: &'scope Scope<'scope, 'env>) {
        let (plan, shared) = (self.plan, self.shared);
        let unit = &plan.units[place];
        // What a check of a pack may read has been told: nothing runs beside it.
        let earlier = match &unit.work {
            Work::Logic { .. } => self.rows.iter().filter(|(row, _)| unit.after.contains(&row.id)).cloned().collect(),
            Work::Command { .. } | Work::Nothing(_) => Vec::new(),
        };
        let stops = channel();
        let stop = stops.0.clone();
        let end = End { place, ends: self.ends.0.clone(), wake: self.wake.clone() };
        let output = Output::default();
        let live = Some(&shared.secrets).filter(|_| shared.around.live);
        let watch = Watch::new(&unit.id, unit.timeout, output.clone(), live);
        let started_ms = milliseconds(clock::now().saturating_duration_since(shared.around.clock));
        let thread = scope.spawn(move || {
            let _end = end;
            let began = clock::now();
            let mut runner = Runner { shared, stops, stopped: None, output };
            let (outcome, done) = runner.carry_out(unit, &earlier);
            let done = Done { started_ms: Some(started_ms), ..done };
            Ended { outcome, done, elapsed: clock::now().saturating_duration_since(began), stopped: runner.stopped }
        });
        self.order.start(place);
        self.running.insert(place, Running { stop, thread, watch });
    }

    /// Waits until there is something to hear, or it is time to look at what runs.
    fn wait(&self, stops: &Receiver<Stop>) -> Result<Stop, RecvTimeoutError> {
        let now = clock::now();
        let slow = self.running.values().filter_map(|running| running.watch.due()).min();
        let live = self.shared.around.live.then(|| now + LOOK);
        match [slow, live].into_iter().flatten().min() {
            Some(due) => stops.recv_timeout(due.saturating_duration_since(now)),
            None => stops.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Tells what there is to be told of what goes on.
    fn look(&mut self, sink: &mut dyn FnMut(&Event)) {
        for running in self.running.values_mut() {
            running.watch.news(false).iter().for_each(&mut *sink);
            running.watch.slow().iter().for_each(&mut *sink);
        }
    }

    fn hear(&mut self, stop: Stop, sink: &mut dyn FnMut(&Event)) {
        match stop {
            Stop::Interrupted => {
                self.stop(Stopped::Signal, sink);
                self.running.values().for_each(Running::stop);
            }
            Stop::Asked => {
                let checks = self.running.values().map(|running| running.watch.busy(&self.shared.secrets)).collect();
                sink(&Event::Running { checks });
            }
            // Of a check, or of a process that somebody waited for before.
            Stop::Ended(_) => {
                while let Ok(place) = self.ends.1.try_recv() {
                    self.end(place, sink);
                }
            }
        }
    }

    fn end(&mut self, place: usize, sink: &mut dyn FnMut(&Event)) {
        let Some(mut running) = self.running.remove(&place) else { return };
        running.watch.news(true).iter().for_each(&mut *sink);
        let ended = running.thread.join().unwrap_or_else(|panic| {
            // The others would be waited for, however long they take.
            self.running.values().for_each(Running::stop);
            resume_unwind(panic)
        });
        let elapsed_ms = milliseconds(ended.elapsed);
        sink(&Event::CheckEnded { id: self.plan.units[place].id.clone(), elapsed_ms });
        let before = self.order.first_red();
        match ended.stopped {
            // Where it counts no more, it was ended for that.
            Some(why) if before.is_none_or(|first| place < first) => self.stop(why, sink),
            Some(_) | None => {}
        }
        self.order.end(place, ended.outcome.is_red() && ended.stopped.is_none());
        if let Some(first) = self.order.first_red().filter(|first| Some(*first) != before) {
            // Those behind the one before have been asked to end; asked again, they would have no time for it.
            let rest = self.running.range(first + 1..before.unwrap_or(usize::MAX));
            rest.for_each(|(_, running)| running.stop());
        }
        self.ended.insert(place, ended);
    }

    fn stop(&mut self, why: Stopped, sink: &mut dyn FnMut(&Event)) {
        if self.stopped == Some(Stopped::Signal) || self.stopped == Some(why) {
            return;
        }
        self.stopped = Some(why);
        sink(&Event::Stopping { why: why.told() });
    }

    /// Tells what became of the next checks in declared order, as far as that is certain.
    fn tell(&mut self, sink: &mut dyn FnMut(&Event)) {
        while let Some(unit) = self.plan.units.get(self.rows.len()) {
            let place = self.rows.len();
            if self.running.contains_key(&place) {
                return;
            }
            // All before it have ended, so that no other can take its place.
            let red = self.order.first_red().filter(|red| *red < place);
            let (row, record) = match (unit.row.deselected, red, self.ended.remove(&place), self.stopped) {
                (Some(why), _, _, _) => {
                    let message = unit.note.as_deref().map(|note| self.shared.secrets.conceal(note));
                    let done = Done { message, ..Done::default() };
                    finished(unit, CheckOutcome::NotSelected(why), done, Duration::ZERO)
                }
                (None, Some(red), ended, _) => {
                    let outcome = CheckOutcome::Skipped(SkipReason::AfterFailure(self.plan.units[red].id.clone()));
                    let elapsed = ended.as_ref().map_or(Duration::ZERO, |ended| ended.elapsed);
                    finished(unit, outcome, ended.map(outside).unwrap_or_default(), elapsed)
                }
                (None, None, Some(ended), _) => finished(unit, ended.outcome, ended.done, ended.elapsed),
                (None, None, None, Some(stopped)) => {
                    finished(unit, CheckOutcome::Skipped(stopped.skip()), Done::default(), Duration::ZERO)
                }
                (None, None, None, None) => return,
            };
            sink(&Event::CheckFinished { row: Box::new(row.clone()), record: Box::new(record.clone()) });
            self.rows.push((row, record));
        }
    }
}

impl Running<'_, '_> {
    /// Asks it to end.
    fn stop(&self) {
        let _ = self.stop.send(Stop::Interrupted);
    }
}

/// What was seen of a check that does not count.
fn outside(ended: Ended) -> Done {
    let Ended { outcome, mut done, .. } = ended;
    let report = std::mem::take(&mut done.report);
    let seen = Seen { outcome, findings: report.findings, stats: report.stats };
    Done { seen: Some(seen), class: None, ..done }
}

/// Tells of a thread's end, however it ends.
struct End {
    place: usize,
    ends: Sender<usize>,
    wake: Sender<Stop>,
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.ends.send(self.place);
        let _ = self.wake.send(Stop::Ended(0));
    }
}
