//! A worker process, as its parent sees it: started, asked, listened to, and killed.
//!
//! Whatever it says may be an attacker's: frames are capped, and a worker that dies or says what nobody asked for is
//! believed in nothing.

use super::inbox::Inbox;
use crate::system::clock;
use crate::worker::{Ask, LoadError, Say, Walls, write_bytes, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// What is sent at once at the latest: half of what a pipe takes.
const MUCH: usize = 512 << 10;

/// How long a process may take to end when it has closed its pipe: by then it has given back all its memory.
const END: Duration = Duration::from_secs(3);

/// Why a worker gave no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// It took too long.
    TimedOut,
    /// Nobody wants the answer any more.
    Cancelled,
    /// It ended, or what it said was not understood.
    Died(String),
}

/// When to stop waiting, for what it says or for it to listen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience<'a> {
    /// At this time.
    pub(super) deadline: Option<Instant>,
    /// Or when this is set.
    pub(super) cancelled: Option<&'a AtomicBool>,
}

/// One process. It ends when this goes.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    /// None once it was told to end.
    input: Option<ChildStdin>,
    output: ChildStdout,
    walls: Walls,
    inbox: Inbox,
    /// What was asked and given and is not sent yet: each writing wakes the worker, and many can go together.
    unsent: Vec<u8>,
    /// Calls that it was asked for, and calls that it has answered.
    asked: u64,
    answered: u64,
}

impl Worker {
    /// Starts one: this very program, with nothing of our environment and no descriptor but the pipes.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("worker").env_clear().current_dir("/");
        // With an arena for each thread, glibc opens a file below /proc before it gives memory back, and a worker that
        // opens anything is killed.
        command.env("MALLOC_ARENA_MAX", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a worker has no pipes"));
        };
        // More room than the default 64 KiB lets files go ahead of the answers; without it things are slower.
        #[cfg(target_os = "linux")]
        for pipe in [rustix::fd::AsFd::as_fd(&input), rustix::fd::AsFd::as_fd(&output)] {
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
        }
        // One that does not listen must not hold up whoever asks.
        fcntl_setfl(&input, OFlags::NONBLOCK)?;
        let input = Some(input);
        Ok(Self {
            child,
            input,
            output,
            walls: Walls::default(),
            inbox: Inbox::default(),
            unsent: Vec::new(),
            asked: 0,
            answered: 0,
        })
    }

    /// Starts one that runs guests of compiled code, and waits until its walls stand.
    pub(super) fn load(program: &Path, code: &[u8]) -> Result<Self, LoadError> {
        let trouble = |error: &dyn std::fmt::Display| LoadError::Engine(format!("a worker cannot be started: {error}"));
        let began = Instant::now();
        let mut worker = Self::start(program).map_err(|error| trouble(&error))?;
        let patience = Patience { deadline: Some(clock::now() + Duration::from_mins(1)), cancelled: None };
        let asked = worker.ask(&Ask::Load, patience).and_then(|()| worker.give(code, patience));
        asked.map_err(|error| trouble(&error))?;
        match worker.hear(patience) {
            Ok(Say::Loaded(Ok(walls))) => {
                worker.walls = walls;
                tracing::debug!(code = code.len(), elapsed = ?began.elapsed(), "worker ready");
                Ok(worker)
            }
            Ok(Say::Loaded(Err(error))) => Err(error),
            Ok(_) => Err(trouble(&"it answers out of turn")),
            Err(lost) => Err(trouble(&lost)),
        }
    }

    /// The walls around it. None stand before compiled code was loaded.
    pub(super) fn walls(&self) -> Walls {
        self.walls
    }

    /// Asks something. It is sent at the latest when something is waited for.
    pub(super) fn ask(&mut self, ask: &Ask, patience: Patience<'_>) -> Result<(), Lost> {
        write_message(&mut self.unsent, ask).map_err(|error| Lost::Died(error.to_string()))?;
        self.send_if_much(patience)
    }

    /// Gives bytes. They are sent at the latest when something is waited for.
    pub(super) fn give(&mut self, bytes: &[u8], patience: Patience<'_>) -> Result<(), Lost> {
        write_bytes(&mut self.unsent, bytes).map_err(|error| Lost::Died(error.to_string()))?;
        self.send_if_much(patience)
    }

    fn send_if_much(&mut self, patience: Patience<'_>) -> Result<(), Lost> {
        if self.unsent.len() < MUCH { Ok(()) } else { self.send(patience) }
    }

    /// The number of the next call.
    pub(super) fn next_call(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Whether an answer is the one that is due: calls are answered once, and in the order they were asked for.
    pub(super) fn is_due(&mut self, call: u64) -> bool {
        let due = self.answered < self.asked && call == self.answered + 1;
        self.answered += u64::from(due);
        due
    }

    /// Sends what was asked and given so far.
    fn send(&mut self, patience: Patience<'_>) -> Result<(), Lost> {
        let unsent = std::mem::take(&mut self.unsent);
        let mut left = &unsent[..];
        while !left.is_empty() {
            let Some(input) = &mut self.input else { return Err(Lost::Died("it was let go".to_owned())) };
            match input.write(left) {
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.make_room(patience)?,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(Lost::Died(self.ending())),
                Err(error) => return Err(Lost::Died(error.to_string())),
            }
        }
        self.unsent = unsent;
        self.unsent.clear();
        // What was large once need not be kept.
        self.unsent.shrink_to(MUCH);
        Ok(())
    }

    /// Waits until the worker takes more. What it says meanwhile is taken in: it may be waiting for that itself, and
    /// neither would ever go on.
    fn make_room(&mut self, patience: Patience<'_>) -> Result<(), Lost> {
        let Self { input, output, inbox, .. } = self;
        let Some(input) = input else { return Ok(()) };
        let mut pipes = [PollFd::new(input, PollFlags::OUT), PollFd::new(output, PollFlags::IN)];
        patience.until(&mut pipes)?;
        if !pipes[1].revents().intersects(PollFlags::IN | PollFlags::HUP) {
            return Ok(());
        }
        let mut closed = false;
        let filled = inbox.fill(&mut |room| match output.read(room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            read => {
                closed = matches!(read, Ok(0));
                read.map_err(|error| Lost::Died(error.to_string()))
            }
        });
        if closed { Err(Lost::Died(self.ending())) } else { filled }
    }

    /// Waits for what it says.
    pub(super) fn hear(&mut self, patience: Patience<'_>) -> Result<Say, Lost> {
        self.receive(patience, Inbox::message)
    }

    /// Waits for bytes.
    pub(super) fn bytes(&mut self, patience: Patience<'_>) -> Result<Vec<u8>, Lost> {
        self.receive(patience, Inbox::bytes)
    }

    fn receive<T>(
        &mut self,
        patience: Patience<'_>,
        what: impl FnOnce(&mut Inbox, &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<T, Lost>,
    ) -> Result<T, Lost> {
        if self.inbox.is_empty() {
            self.send(patience)?;
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        let received = what(&mut inbox, &mut |room| {
            patience.until(&mut [PollFd::new(&self.output, PollFlags::IN)])?;
            match self.output.read(room) {
                Ok(0) => Err(Lost::Died(self.ending())),
                Ok(read) => Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                Err(error) => Err(Lost::Died(error.to_string())),
            }
        });
        self.inbox = inbox;
        received
    }

    /// Lets it go when nothing more is wanted of it, and waits until it has. One that says anything still, or that ends
    /// otherwise than it should, is not to be believed in what it said before.
    pub(super) fn finish(&mut self, patience: Patience<'_>) -> Result<(), Lost> {
        self.send(patience)?;
        // Closing the pipe is how it is told.
        self.input = None;
        match self.receive(patience, |inbox, more| inbox.take(1, more)) {
            Ok(_) => Err(Lost::Died("it says more than it was asked".to_owned())),
            Err(Lost::Died(why)) => match self.status() {
                Ok(status) if status.success() && self.inbox.is_empty() => Ok(()),
                Ok(_) | Err(_) => Err(Lost::Died(why)),
            },
            Err(lost @ (Lost::TimedOut | Lost::Cancelled)) => Err(lost),
        }
    }

    /// How it ended, once it has closed its pipe. One that closed it and goes on is killed.
    pub(super) fn status(&mut self) -> io::Result<ExitStatus> {
        let until = Instant::now() + END;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.child.kill()?;
        self.child.wait()
    }

    /// How it ended, in words.
    fn ending(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        match self.status() {
            Ok(status) => match status.signal() {
                Some(signal) if signal == rustix::process::Signal::SYS.as_raw() => {
                    format!("it was ended by signal {signal}, for a system call that its walls forbid")
                }
                Some(signal) => format!("it was ended by signal {signal}"),
                None => format!("it ended with exit code {}", status.code().unwrap_or(-1)),
            },
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Patience<'_> {
    /// Waits until one of these is ready.
    fn until(self, pipes: &mut [PollFd<'_>]) -> Result<(), Lost> {
        loop {
            if self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
                return Err(Lost::Cancelled);
            }
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
            if left == Some(Duration::ZERO) {
                return Err(Lost::TimedOut);
            }
            let pause = left.unwrap_or(LOOK).min(LOOK);
            let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
            match poll(pipes, Some(&pause)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Lost::Died(error.to_string())),
            }
        }
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimedOut => f.write_str("it took too long"),
            Self::Cancelled => f.write_str("it was called off"),
            Self::Died(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn worker(folder: &Path, what: &str) -> Worker {
        let program = folder.join("worker");
        std::fs::write(&program, format!("#!/bin/sh\n{what}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Worker::start(&program).unwrap()
    }

    #[test]
    fn a_worker_that_speaks_while_it_is_spoken_to_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut worker = worker(folder.path(), &format!("PATH='{path}'; head -c 3000000 /dev/zero; cat > /dev/null"));
        let patience = Patience { deadline: Some(clock::now() + Duration::from_mins(1)), cancelled: None };
        worker.give(&vec![0; 3 << 20], patience).unwrap_or_else(|error| panic!("{error}"));
        let heard = worker.hear(patience);
        assert_eq!(heard.unwrap_err().to_string(), "it says what is not understood");
    }

    #[test]
    fn a_worker_that_closes_its_output_is_ended_whoever_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker(folder.path(), "exec 1>&-; while :; do :; done");
        let patience = Patience { deadline: Some(clock::now() + Duration::from_mins(1)), cancelled: None };
        let given = worker.give(&vec![0; 3 << 20], patience);
        assert_eq!(given.unwrap_err().to_string(), "it was ended by signal 9");
    }

    #[test]
    fn a_worker_that_closes_its_output_and_goes_on_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        for (what, said) in
            [("exec 1>&-; while :; do :; done", "it was ended by signal 9"), ("exit 3", "it ended with exit code 3")]
        {
            let mut worker = worker(folder.path(), what);
            let heard = worker.hear(Patience { deadline: None, cancelled: None });
            assert_eq!(heard.unwrap_err().to_string(), said);
        }
    }
}
