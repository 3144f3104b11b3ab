//! One call of a guest: what is asked, who answers, what is handed over meanwhile, and what of the answer is believed.

use super::process::{Lost, Worker};
use super::run::Job;
use super::validate::Judge;
use super::{CheckResult, GuestError, Limits, Node, View, What};
use crate::model::{ErrorKind, Observation, Place, Refusal, Report, Request};
use crate::worker::{Ask, Called, ContentsError, Piece, Say, caps, observations};
use std::collections::{HashMap, HashSet};

/// A file up to this size is sent with the question or ahead of it; of a larger one the pieces that are read are asked
/// for.
const INLINE: u64 = 256 << 10;

/// The most bytes that a worker asks for at once.
const LARGEST: usize = 2 << 20;

/// How many files, and how many bytes, go with an answer ahead of being asked for. One question and one answer for
/// each file cost 74 µs, 32 files at a time below 3.
const AHEAD: usize = 32;
const AHEAD_BYTES: u64 = 512 << 10;

/// One call, before it is made.
pub(super) struct Question {
    pub(super) request: Request,
    pub(super) view: View,
    pub(super) nodes: Vec<Node>,
    pub(super) seed: [u8; 32],
    /// The file it is about, where it is about one.
    pub(super) about: Option<String>,
}

impl Question {
    /// The files that go with the question: those of a question about one file, unless they are large.
    fn inline(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let nodes = if self.about.is_some() { &self.nodes[..] } else { &[] };
        nodes.iter().filter_map(|node| match node.what {
            What::File { size, key, .. } if size <= INLINE => Some((key, usize::try_from(size).ok()?)),
            What::File { .. } | What::Symlink { .. } | What::Directory => None,
        })
    }

    /// Roughly how many bytes it has.
    pub(super) fn weight(&self) -> usize {
        1024 + self.inline().map(|(_, size)| size).sum::<usize>()
    }
}

/// A call that has ended and been judged.
pub(super) struct Call {
    pub(super) result: Result<Result<Report, Refusal>, GuestError>,
    pub(super) fuel: Option<u64>,
    pub(super) stderr: String,
    pub(super) observed: Vec<Observation>,
}

/// Why a check was not carried out to its end.
pub(super) enum Stop {
    Error(GuestError),
    TimedOut,
    Cancelled,
}

impl Stop {
    pub(super) fn lost(why: &dyn std::fmt::Display) -> Self {
        let message = format!("its worker gave no answer, so nothing it said counts: {why}");
        Self::Error(GuestError::new(ErrorKind::Host, message))
    }

    pub(super) fn result(self) -> CheckResult {
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
pub(super) enum Seat<'a> {
    Remote(&'a mut Worker),
    #[cfg(test)]
    Here(&'a crate::worker::Program, &'a crate::worker::BigStack),
}

impl Seat<'_> {
    pub(super) fn is_remote(&self) -> bool {
        match self {
            Self::Remote(_) => true,
            #[cfg(test)]
            Self::Here(..) => false,
        }
    }

    /// Sends a question ahead.
    pub(super) fn ask(&mut self, job: &Job<'_>, question: &Question) -> Result<(), Stop> {
        let worker = match self {
            Self::Remote(worker) => worker,
            #[cfg(test)]
            Self::Here(..) => return Ok(()),
        };
        let (mut inline, mut bytes) = (Vec::new(), Vec::new());
        for (key, size) in question.inline() {
            // Contents that cannot be had are left for the worker to ask for: then they are gone when they are needed.
            if let Ok(contents) = job.view.contents().read(key, 0, size) {
                inline.push(Piece { key, len: size });
                bytes.extend_from_slice(&contents);
            }
        }
        let empty = inline.is_empty();
        let ask = Ask::Call {
            call: worker.next_call(),
            files: question.request.files.clone(),
            changes: question.request.changes.clone(),
            mounts: job.view.mount_list(),
            nodes: question.nodes.clone(),
            seed: question.seed,
            inline,
        };
        let patience = job.patience();
        worker.ask(&ask, patience)?;
        if empty { Ok(()) } else { Ok(worker.give(&bytes, patience)?) }
    }

    /// Waits for the answer to the oldest question that has none, serving what it asks to read meanwhile.
    pub(super) fn answer(&mut self, job: &Job<'_>, question: Question) -> Result<Answered, Stop> {
        match self {
            Self::Remote(worker) => {
                let patience = job.patience();
                let mut served = Served::new(&question);
                loop {
                    match worker.hear(patience)? {
                        Say::Called(call, called) if worker.is_due(call) => {
                            return Ok(Answered { called: *called, question, given: Some(served.given) });
                        }
                        Say::Need { key, offset, len } => served.serve(worker, job, key, offset, len)?,
                        _ => return Err(Stop::lost(&"it answers out of turn")),
                    }
                }
            }
            #[cfg(test)]
            Self::Here(program, stack) => {
                let called = program.run(stack, &question.request, question.view.clone(), job.limits, &question.seed);
                Ok(Answered { called, question, given: None })
            }
        }
    }
}

/// What a worker was given to read for one call, and what it may be given.
struct Served {
    /// The sizes of the files that this call was granted, by key.
    granted: HashMap<u32, u64>,
    given: HashSet<u32>,
    /// The files it was asked about, in their order: a check reads them one after the other more often than not.
    order: Vec<u32>,
    /// The place of the next file in that order.
    next: usize,
}

impl Served {
    fn new(question: &Question) -> Self {
        let files = question.nodes.iter().filter_map(|node| match node.what {
            What::File { size, key, .. } => Some((key, size)),
            What::Symlink { .. } | What::Directory => None,
        });
        let granted = files.collect();
        let key = |path: &str| match question.view.node(crate::model::Mount::Tree, path)?.what {
            What::File { size, key, .. } if size <= INLINE => Some(key),
            What::File { .. } | What::Symlink { .. } | What::Directory => None,
        };
        let order = match question.about {
            Some(_) => Vec::new(),
            None => question.request.files.iter().filter_map(|file| key(&file.path)).collect(),
        };
        Self { granted, given: question.inline().map(|(key, _)| key).collect(), order, next: 0 }
    }

    /// Gives a worker what it asks to read, only of files that this call was granted and only within them; and what it
    /// will ask for next, as far as its order is the expected one.
    fn serve(&mut self, worker: &mut Worker, job: &Job<'_>, key: u32, offset: u64, len: usize) -> Result<(), Stop> {
        let end = offset.checked_add(len as u64);
        let granted = self.granted.get(&key).is_some_and(|size| end.is_some_and(|end| end <= *size) && len <= LARGEST);
        if !granted {
            return Err(Stop::lost(&"it asked for what it was not granted"));
        }
        let contents = job.view.contents();
        let patience = job.patience();
        match contents.read(key, offset, len) {
            Ok(mut bytes) => {
                self.given.insert(key);
                let mut ahead = Vec::new();
                for key in self.expected(key) {
                    let Some(size) = self.granted.get(&key).and_then(|size| usize::try_from(*size).ok()) else { break };
                    // What cannot be had is left to be asked for when it is needed.
                    let Ok(more) = contents.read(key, 0, size) else { break };
                    self.given.insert(key);
                    self.next += 1;
                    bytes.extend_from_slice(&more);
                    ahead.push(Piece { key, len: size });
                }
                worker.ask(&Ask::Here { len, ahead }, patience)?;
                worker.give(&bytes, patience)?;
            }
            Err(ContentsError::Changed(path) | ContentsError::Failed(path)) => {
                worker.ask(&Ask::Gone { path }, patience)?;
            }
        }
        Ok(())
    }

    /// The files that will be asked for after this one: none where it is not the one that was expected.
    fn expected(&mut self, key: u32) -> Vec<u32> {
        let expected = self.order.get(self.next) == Some(&key);
        if !expected {
            // Where it goes on from here, it is known again.
            if let Some(at) = self.order.iter().position(|one| *one == key) {
                self.next = at + 1;
            }
            return Vec::new();
        }
        self.next += 1;
        let mut bytes = 0;
        let fits = |key: &&u32| {
            bytes += self.granted.get(*key).copied().unwrap_or(u64::MAX);
            bytes <= AHEAD_BYTES
        };
        self.order[self.next..].iter().take(AHEAD).take_while(fits).copied().collect()
    }
}

/// A call that has ended, with what was asked.
pub(super) struct Answered {
    called: Called,
    question: Question,
    /// The files of which contents were handed over, by key. None where the guest ran in this process.
    given: Option<HashSet<u32>>,
}

/// Whether what a worker says is within the bounds that it should have held its guest to.
fn fits(called: &Called, limits: &Limits) -> bool {
    // A byte that is no text becomes a character of three.
    let output = |text: &str| text.len() as u64 <= limits.output.saturating_mul(3);
    output(&called.stderr)
        && match &called.result {
            Ok(Ok(report)) => caps::report(report, limits.findings).is_ok(),
            Ok(Err(refusal)) => caps::refusal(refusal).is_ok(),
            Err(error) => error.message.len() <= caps::PAGE_BYTES && output(&error.stderr),
        }
}

/// Holds a report against the contract, and what the guest is said to have learned against what it was given. A finding
/// without a place is about the file that the call is about.
pub(super) fn judged(judge: &Judge<'_>, job: &Job<'_>, answered: Answered) -> Result<Call, Stop> {
    let Answered { called, question, given } = answered;
    if !fits(&called, job.limits) {
        return Err(Stop::lost(&"it says more than any guest may"));
    }
    let Called { result, fuel, stderr, observed } = called;
    let given = |key| given.as_ref().is_none_or(|given| given.contains(&key));
    let observed = observations(&question.view, &observed, given).map_err(|error| Stop::lost(&error))?;
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
    Ok(Call { fuel: fuel.filter(|_| result.is_ok()), result, stderr, observed })
}
