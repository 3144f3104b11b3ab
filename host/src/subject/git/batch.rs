//! Reading objects by their ids, many with one process: `cat-file --batch`.

use super::super::blob::ObjectHash;
use super::super::id::ObjectId;
use super::super::patience::Patience;
use super::{GitError, SLICE, TIME_LIMIT, shown};
use crate::system::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const COMMAND: &str = "cat-file";

/// The longest line that goes before an object: an id, a kind and a size.
const LONGEST: u64 = 256;

/// The process. It ends when this goes.
#[derive(Debug)]
pub(in crate::subject) struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<Patient>,
}

/// Its output, waited for no longer than for any other answer of git.
#[derive(Debug)]
struct Patient {
    output: ChildStdout,
    patience: Patience,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let started = clock::now();
        let slice = Timespec { tv_sec: 0, tv_nsec: SLICE.subsec_nanos().into() };
        loop {
            self.patience.check()?;
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&slice)) {
                Ok(0) if clock::now() - started >= TIME_LIMIT => return Err(io::ErrorKind::TimedOut.into()),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.output.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Batch {
    pub(super) fn start(mut git: Command, patience: &Patience) -> Result<Self, GitError> {
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = git.spawn().map_err(GitError::Missing)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(GitError::Io(io::Error::other("git has no pipes")));
        };
        tracing::debug!(command = COMMAND, "git");
        Ok(Self {
            child,
            input,
            output: BufReader::with_capacity(256 << 10, Patient { output, patience: patience.clone() }),
        })
    }

    /// Asks for an object. Some dozens may be asked for before the first answer is taken.
    pub(in crate::subject) fn ask(&mut self, id: ObjectId) -> Result<(), GitError> {
        // One write, so that git does not wake for half a line.
        Ok(self.input.write_all(format!("{id}\n").as_bytes())?)
    }

    /// Takes the next answer, which must be the object `id` of this kind, and gives its size and its contents to `take`,
    /// which must not ask for another. What it leaves is read all the same, since the whole is hashed: git itself does
    /// not compare an object with its id.
    pub(in crate::subject) fn answer<R>(
        &mut self,
        kind: &str,
        id: ObjectId,
        take: impl FnOnce(u64, &mut dyn Read) -> io::Result<R>,
    ) -> Result<R, GitError> {
        let mut line = Vec::new();
        self.output.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(late)?;
        let size = std::str::from_utf8(&line)
            .ok()
            .and_then(|line| {
                line.strip_prefix(&id.to_string())?.strip_prefix(' ')?.strip_prefix(kind)?.strip_prefix(' ')
            })
            .and_then(|size| size.strip_suffix('\n')?.parse::<u64>().ok());
        let Some(size) = size else {
            let missing = line == format!("{id} missing\n").as_bytes();
            return Err(if missing { GitError::NoObject(id.to_string()) } else { unexpected(&line) });
        };
        let mut hashed = Hashed { inner: self.output.by_ref().take(size), hash: ObjectHash::new(id, kind, size) };
        let taken = take(size, &mut hashed).map_err(late)?;
        io::copy(&mut hashed, &mut io::sink()).map_err(late)?;
        let (left, found) = (hashed.inner.limit(), hashed.hash.finish());
        let mut end = [0];
        self.output.read_exact(&mut end).map_err(late)?;
        if left > 0 || end != *b"\n" || found != id {
            return Err(GitError::NotTheObject(id.to_string()));
        }
        Ok(taken)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // It would end by itself with its input; that it does is not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unexpected(line: &[u8]) -> GitError {
    GitError::Answer { command: COMMAND, message: shown(line) }
}

fn late(error: io::Error) -> GitError {
    if error.kind() == io::ErrorKind::TimedOut { GitError::TimedOut { command: COMMAND } } else { GitError::Io(error) }
}

/// Hashes what is read.
struct Hashed<R> {
    inner: R,
    hash: ObjectHash,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
