//! One command: handed over to the supervisor, waited for, and ended with everything it started.

use super::Environment;
use super::supervisor::{Kept, LAST, Order, Report, Supervisor};
use crate::model::{Exit, Reaped};
use crate::system::clock;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What is to be run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program and its arguments; never empty.
    pub argv: &'a [String],
    /// The working directory.
    pub folder: &'a Path,
    /// All that it sees of the environment.
    pub environment: &'a Environment,
    /// Where its output goes, both streams as they come.
    pub log: File,
    /// When it has to be done, by [`clock`].
    pub deadline: Option<Instant>,
    /// How long it may take to end once it was asked to.
    pub grace: Duration,
}

/// What is heard while a job runs: what stops it, and that something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person or the system asked Probity to stop, or what runs counts no more.
    Interrupted,
    /// A person asked what goes on. Ends nothing.
    Asked,
    /// What has this number has ended. Nothing that is waited for has the number 0.
    Ended(u64),
}

/// How a job ended.
#[derive(Debug)]
pub enum Ending {
    /// By itself.
    Exited(Exit),
    /// It was stopped at its deadline.
    TimedOut(Exit),
    /// It was stopped before its time.
    Interrupted(Exit),
    /// It was never started.
    NotStarted(io::Error),
    /// Nobody can say, or something that it started goes on; and why.
    Lost(String),
}

/// Runs a job to its end, and says which programs had to be ended with it. `stops` receives what ends it early, and
/// `sender` leads there: the wait for its end is a thread of its own that reports there too, so one place decides what
/// happened first.
pub fn run(job: Job<'_>, supervisor: &Supervisor, sender: &Sender<Stop>, stops: &Receiver<Stop>) -> (Ending, Reaped) {
    let order = Order {
        argv: job.argv.iter().map(Into::into).collect(),
        folder: job.folder.to_owned(),
        environment: job.environment.clone(),
        grace: job.grace,
    };
    let kept = match supervisor.keep(&order, &job.log) {
        Ok(kept) => kept,
        // What the system says of an order that no system takes.
        Err(error) if error.raw_os_error() == Some(libc::E2BIG) => {
            return (Ending::NotStarted(error), Reaped::default());
        }
        Err(error) => return (Ending::Lost(format!("its supervisor cannot be reached: {error}")), Reaped::default()),
    };
    // The command has it now.
    drop(job.log);
    match watch(&kept, job.deadline, job.grace, sender, stops) {
        (_, Err(why)) => (Ending::Lost(why), Reaped::default()),
        (_, Ok(Report::NotStarted(error))) => {
            (Ending::NotStarted(io::Error::from_raw_os_error(error)), Reaped::default())
        }
        (first, Ok(Report::Ended(ended))) => {
            let reaped = Reaped::of(ended.reaped, ended.unnamed);
            let ending = match first {
                _ if ended.left > 0 => {
                    let count = ended.left;
                    Ending::Lost(format!("{count} of the processes that it started could not be ended"))
                }
                Some(Stop::Interrupted) => Ending::Interrupted(ended.exit),
                None if ended.asked => Ending::TimedOut(ended.exit),
                // Time that what it left behind took to end is none of its own.
                Some(Stop::Ended(_) | Stop::Asked) | None => Ending::Exited(ended.exit),
            };
            (ending, reaped)
        }
    }
}

/// Waits for the end of a job, and asks for it in its time. What came first is in the answer.
fn watch(
    kept: &Kept<'_>,
    deadline: Option<Instant>,
    grace: Duration,
    sender: &Sender<Stop>,
    stops: &Receiver<Stop>,
) -> (Option<Stop>, Result<Report, String>) {
    let id = ticket();
    let (told, report) = channel();
    let end = match kept.end_of() {
        Ok(end) => end,
        Err(error) => return (None, Err(format!("its end cannot be waited for: {error}"))),
    };
    let ended = sender.clone();
    std::thread::spawn(move || {
        let _ = told.send(end());
        let _ = ended.send(Stop::Ended(id));
    });
    let first = wait(stops, id, deadline);
    if first != Some(Stop::Ended(id)) {
        kept.end();
        // Asked again, it ends at once.
        if wait(stops, id, Some(clock::now() + grace + LAST)) == Some(Stop::Interrupted) {
            kept.kill();
            let until = Some(clock::now() + LAST);
            while wait(stops, id, until) == Some(Stop::Interrupted) {}
        }
    }
    let report = match report.try_recv() {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(_)) => Err("what watches over it was killed; all that it started was killed too".to_owned()),
        Err(_) => Err("what watches over it does not answer".to_owned()),
    };
    (first, report)
}

/// A number for something that is waited for.
pub(super) fn ticket() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// What came first: the end of what is waited for, an interrupt, or (none) the deadline.
pub(super) fn wait(stops: &Receiver<Stop>, id: u64, deadline: Option<Instant>) -> Option<Stop> {
    loop {
        let received = match deadline {
            Some(deadline) => stops.recv_timeout(deadline.saturating_duration_since(clock::now())),
            None => stops.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(Stop::Asked) => {}
            Ok(Stop::Ended(other)) if other != id => {}
            Ok(stop) => return Some(stop),
            // There may have been a pause, which does not count.
            Err(RecvTimeoutError::Timeout) if deadline.is_none_or(|deadline| deadline > clock::now()) => {}
            Err(RecvTimeoutError::Timeout) => return None,
            // We hold a sender ourselves, so this cannot be; a stop is the safe reading.
            Err(RecvTimeoutError::Disconnected) => return Some(Stop::Interrupted),
        }
    }
}
