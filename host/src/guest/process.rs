//! A worker process, as its parent sees it: started, asked, listened to, and killed.
//!
//! Whatever it says may be an attacker's: frames are capped, and a worker that dies or says what nobody asked for is
//! believed in nothing.

use crate::worker::{Ask, FRAME_HEADER, FrameKind, LoadError, Say, Walls, frame_header, write_bytes, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// How much of a pipe is read at once. A build for fuzzing clears room byte by byte and counts each.
const CHUNK: usize = if cfg!(fuzzing) { 1 << 10 } else { 256 << 10 };

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

/// When to stop waiting.
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
    input: ChildStdin,
    output: ChildStdout,
    inbox: Inbox,
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
        Ok(Self { child, input, output, inbox: Inbox::default() })
    }

    /// Starts one that runs guests of compiled code, and waits until its walls stand.
    pub(super) fn load(program: &Path, code: &[u8]) -> Result<(Self, Walls), LoadError> {
        let trouble = |error: &dyn std::fmt::Display| LoadError::Engine(format!("a worker cannot be started: {error}"));
        let mut worker = Self::start(program).map_err(|error| trouble(&error))?;
        let asked = worker.ask(&Ask::Load).and_then(|()| worker.give(code));
        asked.map_err(|error| trouble(&error))?;
        match worker.hear(Patience { deadline: Some(Instant::now() + Duration::from_mins(1)), cancelled: None }) {
            Ok(Say::Loaded(Ok(walls))) => Ok((worker, walls)),
            Ok(Say::Loaded(Err(error))) => Err(error),
            Ok(_) => Err(trouble(&"it answers out of turn")),
            Err(lost) => Err(trouble(&lost)),
        }
    }

    /// Asks something.
    pub(super) fn ask(&mut self, ask: &Ask) -> io::Result<()> {
        write_message(&mut self.input, ask)
    }

    /// Gives bytes.
    pub(super) fn give(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_bytes(&mut self.input, bytes)?;
        self.input.flush()
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
        let Self { child, output, inbox, .. } = self;
        what(inbox, &mut |room| {
            wait(output, patience)?;
            match output.read(room) {
                Ok(0) => Err(Lost::Died(ending(child))),
                Ok(read) => Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                Err(error) => Err(Lost::Died(error.to_string())),
            }
        })
    }
}

/// What was read of a worker's words and is not used yet: a part of the buffer, which is kept from one reading to the
/// next, since to clear so much room each time would take longer than most messages do.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    unused: Range<usize>,
}

impl Inbox {
    /// The next frame, which must be a message. `more` waits, fills some of the room it is given and says how much.
    pub(super) fn message(&mut self, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<Say, Lost> {
        match self.frame(more)? {
            (FrameKind::Message, bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| Lost::Died("it says what is not understood".to_owned()))
            }
            (FrameKind::Bytes, _) => Err(Lost::Died("it sends what was not asked for".to_owned())),
        }
    }

    /// The next frame, which must be bytes; as [`Self::message`].
    fn bytes(&mut self, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<Vec<u8>, Lost> {
        match self.frame(more)? {
            (FrameKind::Bytes, bytes) => Ok(bytes),
            (FrameKind::Message, _) => Err(Lost::Died("it speaks out of turn".to_owned())),
        }
    }

    /// The next frame; as [`Self::message`].
    pub(super) fn frame(
        &mut self,
        more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>,
    ) -> Result<(FrameKind, Vec<u8>), Lost> {
        let mut first = [0; FRAME_HEADER];
        first.copy_from_slice(&self.take(FRAME_HEADER, more)?);
        let Some((kind, length)) = frame_header(first) else {
            return Err(Lost::Died("it says what is not understood".to_owned()));
        };
        Ok((kind, self.take(length, more)?))
    }

    /// Exactly so many bytes. Room is made as they come: a length alone costs nothing.
    fn take(&mut self, count: usize, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<Vec<u8>, Lost> {
        while self.unused.len() < count {
            if self.unused.start > 0 {
                self.buffer.copy_within(self.unused.clone(), 0);
                self.unused = 0..self.unused.len();
            }
            if self.buffer.len() < self.unused.end + CHUNK {
                self.buffer.resize(self.unused.end + CHUNK, 0);
            }
            self.unused.end += more(&mut self.buffer[self.unused.end..])?;
        }
        let bytes = self.buffer[self.unused.start..self.unused.start + count].to_vec();
        self.unused.start += count;
        Ok(bytes)
    }
}

/// Waits until there is something to read.
fn wait(output: &ChildStdout, patience: Patience<'_>) -> Result<(), Lost> {
    loop {
        if patience.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(Lost::Cancelled);
        }
        let left = patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(Lost::TimedOut);
        }
        let pause = left.unwrap_or(LOOK).min(LOOK);
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        let mut fds = [PollFd::new(output, PollFlags::IN)];
        match poll(&mut fds, Some(&pause)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(Lost::Died(error.to_string())),
        }
    }
}

/// How a worker ended, in words. One that has only closed its output is ended here: nobody would wait for it in vain.
/// How a process ended stays as it is if it is killed after that.
fn ending(child: &mut Child) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let _ = child.kill();
    match child.wait() {
        Ok(status) => match status.signal() {
            Some(signal) => format!("it was ended by signal {signal}"),
            None => format!("it ended with exit code {}", status.code().unwrap_or(-1)),
        },
        Err(error) => error.to_string(),
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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

    #[test]
    fn a_worker_that_closes_its_output_and_goes_on_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        for (what, said) in
            [("exec 1>&-; while :; do :; done", "it was ended by signal 9"), ("exit 3", "it ended with exit code 3")]
        {
            let program = folder.path().join("worker");
            std::fs::write(&program, format!("#!/bin/sh\n{what}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let mut worker = Worker::start(&program).unwrap();
            let heard = worker.hear(Patience { deadline: None, cancelled: None });
            assert_eq!(heard.unwrap_err().to_string(), said);
        }
    }
}
