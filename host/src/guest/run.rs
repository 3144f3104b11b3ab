//! One check, run: once for the tree, or once for each file with the results put together in path order.

use super::call::{Call, Question, Seat, Stop, judged};
use super::merge::{Progress, merge};
use super::process::{Patience, Worker};
use super::validate::Judge;
use super::{GuestError, Limits, LoadError, Pack, Place as Seats, View, Walls};
use crate::model::{
    Change, CheckInfo, Context, Digest, Encoder, Entry, ErrorKind, Mount, Observation, Refusal, Report, Request, Scope,
};
use crate::system::clock;
use crate::worker::Ask;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
    /// Everything the result depends on beside the files it is called about and what it observes: where randomness comes
    /// from.
    pub key: &'a Digest,
    /// When it has to be done, beside the wall of each call.
    pub deadline: Option<Instant>,
    /// Set from outside when nobody wants the result any more.
    pub cancelled: Option<&'a AtomicBool>,
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
    /// It was stopped at its deadline or at the wall of a call.
    TimedOut,
    /// It was called off.
    Cancelled,
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
    /// The walls that stood around its processes. None where none was started.
    pub walls: Option<Walls>,
    /// What the check learned of its files, in all of its calls: sorted, each once. Empty where it was lost or ended
    /// early.
    pub observed: Vec<Observation>,
}

impl CheckRun {
    pub(super) fn without(result: CheckResult) -> Self {
        Self { result, fuel: None, stderr: String::new(), walls: None, observed: Vec::new() }
    }
}

/// How many files go ahead of the answer about the first of them: while the worker judges one, the next ones are on
/// their way.
const AHEAD: usize = 32;

/// How many bytes of contents go ahead. Below what a pipe takes, so that giving never waits for a worker that waits for
/// its answer to be taken.
const AHEAD_BYTES: usize = 512 << 10;

impl Pack {
    /// Runs one of this pack's checks.
    pub fn run_check(&self, job: &Job<'_>) -> CheckRun {
        let walls = Mutex::new(None);
        let run = match job.check.scope {
            Scope::Tree => self.run_tree(job, &walls),
            Scope::File => self.run_files(job, &walls),
        };
        let mut run = run.unwrap_or_else(|stop| CheckRun::without(stop.result()));
        run.walls = *walls.lock().unwrap_or_else(PoisonError::into_inner);
        run
    }

    fn run_tree(&self, job: &Job<'_>, walls: &Mutex<Option<Walls>>) -> Result<CheckRun, Stop> {
        let question = Question {
            request: job.request(job.files.to_vec(), job.changes.map(<[Change]>::to_vec)),
            view: job.view.clone(),
            nodes: Vec::new(),
            seed: *Encoder::new().digest(job.key).finish(Context::Seed).as_bytes(),
            about: None,
        };
        let judge = Judge::new(job.check);
        let call = self.seated(job, walls, |seat| {
            let nodes = if seat.is_remote() { job.view.nodes() } else { Vec::new() };
            let question = Question { nodes, ..question };
            seat.ask(job, &question)?;
            judged(&judge, job, seat.answer(job, question)?)
        })?;
        let result = match call.result {
            Ok(Ok(report)) => CheckResult::Report(report),
            Ok(Err(refusal)) => CheckResult::Refused(refusal),
            Err(error) => CheckResult::Error(error),
        };
        let (fuel, stderr, observed) = (call.fuel, call.stderr, call.observed);
        Ok(CheckRun { fuel, stderr, observed, ..CheckRun::without(result) })
    }

    fn run_files(&self, job: &Job<'_>, walls: &Mutex<Option<Walls>>) -> Result<CheckRun, Stop> {
        let judge = Judge::new(job.check);
        let progress = Progress::new(job.files.len());
        // A worker takes about as long to start as it takes to judge a hundred files.
        let threads =
            std::thread::available_parallelism().map_or(1, usize::from).min(job.files.len().div_ceil(64)).max(1);
        let serve = || {
            self.seated(job, walls, |seat| {
                let mut calls = Vec::new();
                let mut waiting: VecDeque<(usize, Question)> = VecDeque::new();
                let mut ahead = 0;
                loop {
                    while waiting.len() < AHEAD && ahead < AHEAD_BYTES {
                        let Some(index) = progress.next() else { break };
                        let question = job.about(&job.files[index]);
                        seat.ask(job, &question)?;
                        ahead += question.weight();
                        waiting.push_back((index, question));
                    }
                    let Some((index, question)) = waiting.pop_front() else { return Ok(calls) };
                    ahead -= question.weight();
                    let call = judged(&judge, job, seat.answer(job, question)?)?;
                    progress.done(index, &call);
                    calls.push((index, call));
                }
            })
        };
        let served: Vec<Result<Vec<(usize, Call)>, Stop>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(serve)).collect();
            let mut served = vec![serve()];
            served.extend(
                others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            );
            served
        });
        let mut calls = Vec::with_capacity(job.files.len());
        for one in served {
            calls.extend(one?);
        }
        calls.sort_unstable_by_key(|(index, _)| *index);
        Ok(merge(job, calls))
    }

    /// Does some work with a place where calls are carried out.
    fn seated<R: Send>(
        &self,
        job: &Job<'_>,
        walls: &Mutex<Option<Walls>>,
        work: impl FnOnce(&mut Seat<'_>) -> Result<R, Stop> + Send,
    ) -> Result<R, Stop> {
        match &self.place {
            Seats::Workers(program) => {
                let failed = |error: LoadError| Stop::Error(GuestError::new(ErrorKind::Host, error.to_string()));
                let idle = self.idle.take();
                let mut worker = idle.map_or_else(|| Worker::load(program, &self.code), Ok).map_err(failed)?;
                // All are processes of one program on one machine, so the walls of one are those of all.
                walls.lock().unwrap_or_else(PoisonError::into_inner).replace(worker.walls());
                let (check, config, limits) = (job.check.id.clone(), job.config.to_owned(), job.limits.clone());
                worker.ask(&Ask::Job { check, config, limits }, job.patience())?;
                let made = work(&mut Seat::Remote(&mut worker))?;
                // One that does not end as it should is believed in nothing.
                worker.finish(job.patience())?;
                Ok(made)
            }
            #[cfg(test)]
            Seats::Here => {
                let _ = walls;
                let engine = crate::worker::Engine::new().unwrap();
                let program = super::tests::program(&engine, &self.code).unwrap();
                crate::worker::on_big_stack(|stack| work(&mut Seat::Here(&program, stack))).unwrap()
            }
        }
    }
}

impl Job<'_> {
    fn request(&self, files: Vec<Entry>, changes: Option<Vec<Change>>) -> Request {
        Request { check: self.check.id.clone(), config: self.config.to_owned(), files, changes }
    }

    /// The question about one file, which sees nothing else.
    fn about(&self, file: &Entry) -> Question {
        let changes = self
            .changes
            .map(|changes| changes.iter().filter(|change| change.path == file.path).cloned().collect::<Vec<_>>());
        let at = |mount| if mount == Mount::Base { file.base_path.as_deref() } else { Some(file.path.as_str()) };
        let nodes = Mount::ALL.into_iter().filter_map(|mount| self.view.node(mount, at(mount)?)).collect();
        Question {
            seed: self.seed_of(file, changes.as_deref()),
            request: self.request(vec![file.clone()], changes),
            view: self.view.narrowed(&file.path, file.base_path.as_deref()),
            nodes,
            about: Some(file.path.clone()),
        }
    }

    /// Where the randomness of a call about one file comes from: all that the call is told.
    fn seed_of(&self, file: &Entry, changes: Option<&[Change]>) -> [u8; 32] {
        let mut encoder = Encoder::new();
        encoder.digest(self.key);
        file.encode(&mut encoder);
        Change::encode_all(changes, &mut encoder);
        *encoder.finish(Context::Seed).as_bytes()
    }

    /// Until when one call may take.
    pub(super) fn patience(&self) -> Patience<'_> {
        let wall = clock::now() + self.limits.wall;
        Patience {
            deadline: Some(self.deadline.map_or(wall, |deadline| deadline.min(wall))),
            cancelled: self.cancelled,
        }
    }
}
