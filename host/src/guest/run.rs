//! One check, run: once for the tree, or once for each file with the results put together in path order.

use super::process::{Lost, Patience, Worker};
use super::validate::Judge;
use super::{GuestError, Limits, LoadError, Node, Pack, Place as Seats, View, Walls, What};
use crate::model::{Change, CheckInfo, Entry, ErrorKind, Finding, Mount, Place, Refusal, Report, Request, Scope};
use crate::worker::{Ask, Called, ContentsError, Say};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
}

impl CheckRun {
    fn without(result: CheckResult) -> Self {
        Self { result, fuel: None, stderr: String::new(), walls: None }
    }
}

/// How many files go ahead of the answer about the first of them: while the worker judges one, the next ones are on
/// their way.
const AHEAD: usize = 32;

/// How many bytes of contents go ahead. Below what a pipe takes, so that giving never waits for a worker that waits for
/// its answer to be taken.
const AHEAD_BYTES: usize = 512 << 10;

/// A file up to this size is sent with the question; of a larger one the pieces that are read are asked for.
const INLINE: u64 = 256 << 10;

/// The most bytes that a worker asks for at once.
const PIECE: usize = 2 << 20;

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
            seed: *job.seed,
            about: None,
        };
        let judge = Judge::new(job.check);
        let called = self.seated(job, walls, |seat| {
            let nodes = if seat.is_remote() { job.view.nodes() } else { Vec::new() };
            let question = Question { nodes, ..question };
            seat.ask(job, &question)?;
            seat.answer(job, question)
        })?;
        let call = judged(&judge, called);
        let result = match call.result {
            Ok(Ok(report)) => CheckResult::Report(report),
            Ok(Err(refusal)) => CheckResult::Refused(refusal),
            Err(error) => CheckResult::Error(error),
        };
        Ok(CheckRun { fuel: call.fuel, stderr: call.stderr, ..CheckRun::without(result) })
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
                    let call = judged(&judge, seat.answer(job, question)?);
                    progress.done(index, &call);
                    calls.push((index, call));
                }
            })
        };
        let served: Vec<Result<Vec<(usize, Called)>, Stop>> = std::thread::scope(|scope| {
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
                let (mut worker, stand) = Worker::load(program, &self.code).map_err(failed)?;
                // All are processes of one program on one machine, so the walls of one are those of all.
                walls.lock().unwrap_or_else(PoisonError::into_inner).replace(stand);
                let (check, config, limits) = (job.check.id.clone(), job.config.to_owned(), job.limits.clone());
                worker.ask(&Ask::Job { check, config, limits }, job.patience())?;
                let mut seat = Seat::Remote(worker);
                let made = work(&mut seat)?;
                seat.leave(job)?;
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
        let base = file.base_path.as_deref().and_then(|path| self.view.node(Mount::Base, path));
        Question {
            request: self.request(vec![file.clone()], changes),
            view: self.view.narrowed(&file.path, file.base_path.as_deref()),
            nodes: self.view.node(Mount::Tree, &file.path).into_iter().chain(base).collect(),
            seed: *blake3::keyed_hash(self.seed, file.path.as_bytes()).as_bytes(),
            about: Some(file.path.clone()),
        }
    }

    /// Until when one call may take.
    fn patience(&self) -> Patience<'_> {
        let wall = Instant::now() + self.limits.wall;
        Patience {
            deadline: Some(self.deadline.map_or(wall, |deadline| deadline.min(wall))),
            cancelled: self.cancelled,
        }
    }
}

/// One call, before it is made.
struct Question {
    request: Request,
    view: View,
    nodes: Vec<Node>,
    seed: [u8; 32],
    /// The file it is about, where it is about one.
    about: Option<String>,
}

impl Question {
    /// The one file that goes with the question: key and size.
    fn inline(&self) -> Option<(u32, usize)> {
        match self.nodes[..] {
            [Node { what: What::File { size, key, .. }, .. }] if size <= INLINE && self.about.is_some() => {
                Some((key, usize::try_from(size).ok()?))
            }
            _ => None,
        }
    }

    fn weight(&self) -> usize {
        1024 + self.inline().map_or(0, |(_, size)| size)
    }

    /// The size of a file that it may read, by key.
    fn size_of(&self, key: u32) -> Option<u64> {
        self.nodes.iter().find_map(|node| match node.what {
            What::File { size, key: granted, .. } if granted == key => Some(size),
            _ => None,
        })
    }
}

/// Why a check was not carried out to its end.
enum Stop {
    Error(GuestError),
    TimedOut,
    Cancelled,
}

impl Stop {
    fn lost(why: &dyn std::fmt::Display) -> Self {
        let message = format!("its worker gave no answer, so nothing it said counts: {why}");
        Self::Error(GuestError::new(ErrorKind::Host, message))
    }

    fn result(self) -> CheckResult {
        match self {
            Self::Error(error) => CheckResult::Error(error),
            Self::TimedOut => CheckResult::TimedOut,
            Self::Cancelled => CheckResult::Cancelled,
        }
    }
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::TimedOut => Self::TimedOut,
            Lost::Cancelled => Self::Cancelled,
            Lost::Died(why) => Self::lost(&why),
        }
    }
}

/// Where calls are carried out.
enum Seat<'a> {
    Remote(Worker),
    #[cfg(test)]
    Here(&'a crate::worker::Program, &'a crate::worker::BigStack),
    #[cfg(not(test))]
    #[expect(dead_code, reason = "the lifetime belongs to what only tests have")]
    Never(std::convert::Infallible, std::marker::PhantomData<&'a ()>),
}

impl Seat<'_> {
    fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Sends a question ahead.
    fn ask(&mut self, job: &Job<'_>, question: &Question) -> Result<(), Stop> {
        let Self::Remote(worker) = self else { return Ok(()) };
        // Contents that cannot be had are left for the worker to ask for: then they are gone when they are needed.
        let inline =
            question.inline().and_then(|(key, size)| Some((key, job.view.contents().read(key, 0, size).ok()?)));
        let ask = Ask::Call {
            call: worker.next_call(),
            files: question.request.files.clone(),
            changes: question.request.changes.clone(),
            mounts: job.view.mount_list(),
            nodes: question.nodes.clone(),
            seed: question.seed,
            inline: inline.as_ref().map(|(key, _)| *key),
        };
        let patience = job.patience();
        worker.ask(&ask, patience)?;
        inline.map_or(Ok(()), |(_, bytes)| Ok(worker.give(&bytes, patience)?))
    }

    /// When all has been answered: a worker that does not end as it should is believed in nothing.
    fn leave(&mut self, job: &Job<'_>) -> Result<(), Stop> {
        match self {
            Self::Remote(worker) => Ok(worker.finish(job.patience())?),
            #[cfg(test)]
            Self::Here(..) => Ok(()),
            #[cfg(not(test))]
            Self::Never(never, _) => match *never {},
        }
    }

    /// Waits for the answer to the oldest question that has none, serving what it asks to read meanwhile.
    fn answer(&mut self, job: &Job<'_>, question: Question) -> Result<Answered, Stop> {
        let called = match self {
            Self::Remote(worker) => {
                let patience = job.patience();
                loop {
                    match worker.hear(patience)? {
                        Say::Called(call, called) if worker.is_due(call) => break *called,
                        Say::Need { key, offset, len } => serve(worker, job, &question, key, offset, len)?,
                        _ => return Err(Stop::lost(&"it answers out of turn")),
                    }
                }
            }
            #[cfg(test)]
            Self::Here(program, stack) => {
                program.run(stack, &question.request, question.view.clone(), job.limits, &question.seed)
            }
            #[cfg(not(test))]
            Self::Never(never, _) => match *never {},
        };
        Ok(Answered { called, question })
    }
}

/// Gives a worker what it asks to read: only of files that this call was granted, and only within them.
fn serve(
    worker: &mut Worker,
    job: &Job<'_>,
    question: &Question,
    key: u32,
    offset: u64,
    len: usize,
) -> Result<(), Stop> {
    let end = offset.checked_add(len as u64);
    let granted = question.size_of(key).is_some_and(|size| end.is_some_and(|end| end <= size) && len <= PIECE);
    if !granted {
        return Err(Stop::lost(&"it asked for what it was not granted"));
    }
    let patience = job.patience();
    match job.view.contents().read(key, offset, len) {
        Ok(bytes) => worker.ask(&Ask::Here, patience).and_then(|()| worker.give(&bytes, patience))?,
        Err(ContentsError::Changed(path) | ContentsError::Failed(path)) => worker.ask(&Ask::Gone { path }, patience)?,
    }
    Ok(())
}

/// A call that has ended, with what was asked.
struct Answered {
    called: Called,
    question: Question,
}

/// Holds a report against the contract. A finding without a place is about the file that the call is about.
fn judged(judge: &Judge<'_>, answered: Answered) -> Called {
    let Answered { called: Called { result, fuel, stderr }, question } = answered;
    let result = match result {
        Ok(Ok(mut report)) => {
            if let Some(path) = &question.about {
                let place = || Place { path: path.clone(), start: None, end: None };
                report.findings.iter_mut().for_each(|finding| {
                    finding.place.get_or_insert_with(place);
                });
            }
            judge.report(report, &question.request, &question.view).map(Ok).map_err(|message| GuestError {
                kind: ErrorKind::BadResult,
                message: format!("what it returned breaks the contract: {message}"),
                stderr: stderr.clone(),
            })
        }
        other => other,
    };
    Called { fuel: fuel.filter(|_| result.is_ok()), result, stderr }
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
