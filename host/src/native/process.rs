//! One process: started, waited for, and ended with everything in its group.

use super::Environment;
use crate::model::Exit;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// What is to be run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program and its arguments; never empty.
    pub argv: &'a [String],
    /// The working directory.
    pub folder: &'a PathBuf,
    /// All that it sees of the environment.
    pub environment: &'a Environment,
    /// Where its output goes, both streams as they come.
    pub log: File,
    /// When it has to be done.
    pub deadline: Option<Instant>,
    /// How long it may take to end once it was asked to.
    pub grace: Duration,
}

/// What stops a job from outside, or tells that its process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person or the system asked Probity to stop, or what runs counts no more.
    Interrupted,
    /// The process with this id has ended.
    Ended(i32),
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
}

/// Runs a job to its end. `stops` receives what ends it early, and `sender` leads there: the wait for the
/// process is a thread of its own that reports there too, so one place decides what happened first.
pub fn run(job: Job<'_>, sender: &Sender<Stop>, stops: &Receiver<Stop>) -> Ending {
    let mut command = Command::new(&job.argv[0]);
    command.args(&job.argv[1..]).current_dir(job.folder).env_clear().envs(job.environment).process_group(0);
    command.stdin(Stdio::null());
    let errors = match job.log.try_clone() {
        Ok(errors) => errors,
        Err(error) => return Ending::NotStarted(error),
    };
    command.stdout(job.log).stderr(errors);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ending::NotStarted(error),
    };
    // The parent's copies of the log must go, and `command` holds them.
    drop(command);
    let id = child.id().cast_signed();
    let Some(pid) = Pid::from_raw(id) else {
        return Ending::NotStarted(io::Error::other("the process has no id"));
    };
    let waiter = sender.clone();
    std::thread::spawn(move || {
        // Waiting without reaping keeps the id taken: nobody else can get it before the group was swept.
        while matches!(
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT),
            Err(rustix::io::Errno::INTR)
        ) {}
        let _ = waiter.send(Stop::Ended(id));
    });
    let first = wait(stops, id, job.deadline);
    if first != Some(Stop::Ended(id)) {
        let _ = kill_process_group(pid, Signal::TERM);
        // A process that is stopped acts on nothing before it goes on.
        let _ = kill_process_group(pid, Signal::CONT);
        // Asked again, it ends at once.
        let _ = wait(stops, id, Some(Instant::now() + job.grace));
    }
    // Also after a normal end: what it left behind in its group must not outlive the check.
    let _ = kill_process_group(pid, Signal::KILL);
    let exit = match child.wait() {
        Ok(status) => status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code),
        Err(error) => return Ending::NotStarted(error),
    };
    match first {
        Some(Stop::Ended(_)) => Ending::Exited(exit),
        Some(Stop::Interrupted) => Ending::Interrupted(exit),
        None => Ending::TimedOut(exit),
    }
}

/// What came first: the end of the process, an interrupt, or (none) the deadline.
pub(super) fn wait(stops: &Receiver<Stop>, id: i32, deadline: Option<Instant>) -> Option<Stop> {
    loop {
        let received = match deadline {
            Some(deadline) => stops.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => stops.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(Stop::Ended(other)) if other != id => {}
            Ok(stop) => return Some(stop),
            Err(RecvTimeoutError::Timeout) => return None,
            // We hold a sender ourselves, so this cannot be; a stop is the safe reading.
            Err(RecvTimeoutError::Disconnected) => return Some(Stop::Interrupted),
        }
    }
}
