//! A worker process, as its parent sees it: started, asked, listened to, and killed.
//!
//! Whatever it says may be an attacker's: frames are capped, and a worker that dies or says what nobody asked for is
//! believed in nothing.

use crate::worker::{Ask, FRAME_HEADER, FrameKind, LoadError, Say, Walls, frame_header, write_bytes, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// How much of a pipe is read at once.
const CHUNK: usize = 256 << 10;

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
    walls: Walls,
    /// What was read and not yet used.
    buffer: Vec<u8>,
    used: usize,
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
        Ok(Self { child, input, output, walls: Walls::default(), buffer: Vec::new(), used: 0 })
    }

    /// Starts one that runs guests of compiled code, and waits until its walls stand.
    pub(super) fn load(program: &Path, code: &[u8]) -> Result<Self, LoadError> {
        let trouble = |error: &dyn std::fmt::Display| LoadError::Engine(format!("a worker cannot be started: {error}"));
        let mut worker = Self::start(program).map_err(|error| trouble(&error))?;
        let asked = worker.ask(&Ask::Load).and_then(|()| worker.give(code));
        asked.map_err(|error| trouble(&error))?;
        match worker.hear(Patience { deadline: Some(Instant::now() + Duration::from_mins(1)), cancelled: None }) {
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
        match self.frame(patience)? {
            (FrameKind::Message, bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| Lost::Died("it says what is not understood".to_owned()))
            }
            (FrameKind::Bytes, _) => Err(Lost::Died("it sends what was not asked for".to_owned())),
        }
    }

    /// Waits for bytes.
    pub(super) fn bytes(&mut self, patience: Patience<'_>) -> Result<Vec<u8>, Lost> {
        match self.frame(patience)? {
            (FrameKind::Bytes, bytes) => Ok(bytes),
            (FrameKind::Message, _) => Err(Lost::Died("it speaks out of turn".to_owned())),
        }
    }

    fn frame(&mut self, patience: Patience<'_>) -> Result<(FrameKind, Vec<u8>), Lost> {
        let mut first = [0; FRAME_HEADER];
        first.copy_from_slice(&self.take(FRAME_HEADER, patience)?);
        let Some((kind, length)) = frame_header(first) else {
            return Err(Lost::Died("it says what is not understood".to_owned()));
        };
        Ok((kind, self.take(length, patience)?))
    }

    fn take(&mut self, count: usize, patience: Patience<'_>) -> Result<Vec<u8>, Lost> {
        while self.buffer.len() - self.used < count {
            self.wait(patience)?;
            if self.used > 0 {
                self.buffer.drain(..self.used);
                self.used = 0;
            }
            let before = self.buffer.len();
            self.buffer.resize(before + CHUNK, 0);
            let read = self.output.read(&mut self.buffer[before..]);
            self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(Lost::Died(self.ending())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Lost::Died(error.to_string())),
            }
        }
        let bytes = self.buffer[self.used..self.used + count].to_vec();
        self.used += count;
        Ok(bytes)
    }

    /// Waits until there is something to read.
    fn wait(&self, patience: Patience<'_>) -> Result<(), Lost> {
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
            let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut fds, Some(&pause)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Lost::Died(error.to_string())),
            }
        }
    }

    /// How it ended, in words.
    fn ending(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        match self.child.wait() {
            Ok(status) => match status.signal() {
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

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimedOut => f.write_str("it took too long"),
            Self::Cancelled => f.write_str("it was called off"),
            Self::Died(why) => f.write_str(why),
        }
    }
}
