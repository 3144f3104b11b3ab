//! A worker process, as its parent sees it: started, asked, listened to, and killed.
//!
//! Whatever it says may be an attacker's: frames are capped, and a worker that dies or says what nobody asked for is
//! believed in nothing.

use super::inbox::Inbox;
use crate::worker::{Ask, LoadError, Say, Walls, write_bytes, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

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
        Ok(Self { child, input, output, walls: Walls::default(), inbox: Inbox::default(), asked: 0, answered: 0 })
    }

    /// Starts one that runs guests of compiled code, and waits until its walls stand.
    pub(super) fn load(program: &Path, code: &[u8]) -> Result<Self, LoadError> {
        let trouble = |error: &dyn std::fmt::Display| LoadError::Engine(format!("a worker cannot be started: {error}"));
        let mut worker = Self::start(program).map_err(|error| trouble(&error))?;
        let patience = Patience { deadline: Some(Instant::now() + Duration::from_mins(1)), cancelled: None };
        let asked = worker.ask(&Ask::Load, patience).and_then(|()| worker.give(code, patience));
        asked.map_err(|error| trouble(&error))?;
        match worker.hear(patience) {
            Ok(Say::Loaded(Ok(walls))) => {
                worker.walls = walls;
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

    /// Asks something.
    pub(super) fn ask(&mut self, ask: &Ask, patience: Patience<'_>) -> Result<(), Lost> {
        self.send(patience, |pipe| write_message(pipe, ask))
    }

    /// Gives bytes.
    pub(super) fn give(&mut self, bytes: &[u8], patience: Patience<'_>) -> Result<(), Lost> {
        self.send(patience, |pipe| write_bytes(pipe, bytes))
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

    fn send(
        &mut self,
        patience: Patience<'_>,
        write: impl FnOnce(&mut Listener<'_>) -> io::Result<()>,
    ) -> Result<(), Lost> {
        let mut pipe = Listener { worker: self, patience, lost: None };
        let written = write(&mut pipe);
        let lost = pipe.lost.take();
        written.map_err(|error| lost.unwrap_or_else(|| Lost::Died(error.to_string())))
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
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
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

/// A worker that is being written to.
struct Listener<'a> {
    worker: &'a mut Worker,
    patience: Patience<'a>,
    /// Why it cannot be.
    lost: Option<Lost>,
}

impl Listener<'_> {
    /// Waits until the worker takes more. What it says meanwhile is taken in: it may be waiting for that itself, and
    /// neither would ever go on.
    fn make_room(&mut self) -> Result<(), Lost> {
        let Worker { input, output, inbox, .. } = &mut *self.worker;
        let Some(input) = input else { return Ok(()) };
        let mut pipes = [PollFd::new(input, PollFlags::OUT), PollFd::new(output, PollFlags::IN)];
        self.patience.until(&mut pipes)?;
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
        if closed { Err(Lost::Died(self.worker.ending())) } else { filled }
    }
}

impl io::Write for Listener<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let input = self.worker.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            let lost = match input.write(bytes) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.make_room() {
                    Ok(()) => continue,
                    Err(lost) => lost,
                },
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Lost::Died(self.worker.ending()),
                Err(error) => Lost::Died(error.to_string()),
            };
            self.lost = Some(lost);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
        let patience = Patience { deadline: Some(Instant::now() + Duration::from_mins(1)), cancelled: None };
        worker.give(&vec![0; 3 << 20], patience).unwrap_or_else(|error| panic!("{error}"));
        let heard = worker.hear(patience);
        assert_eq!(heard.unwrap_err().to_string(), "it says what is not understood");
    }

    #[test]
    fn a_worker_that_closes_its_output_is_ended_whoever_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker(folder.path(), "exec 1>&-; while :; do :; done");
        let patience = Patience { deadline: Some(Instant::now() + Duration::from_mins(1)), cancelled: None };
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
