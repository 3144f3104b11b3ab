//! Commands and all they start, in the hands of a process that outlives whatever ends Probity.
//!
//! Probity starts one supervisor for a run, which is this program again (`probity supervise`, which is not for people), and
//! sends it one end of a socket and a log for each command. The supervisor makes a copy of itself for it, the keeper, to
//! whom Probity then speaks directly. Each keeper takes in what its own command leaves behind, so that commands side by
//! side are told apart, and each of the three that loses another one ends what is below it. `docs/architecture.md` says
//! what happens when which of them is killed.
//!
//! Must not: decide when a command's time is up.

mod frame;
mod keeper;
mod serve;
mod tree;

pub use serve::supervise;

pub(in crate::native) use frame::{Order, Report};

use frame::{END, KILL, PAUSE, RESUME};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long after its grace a keeper says at the latest what became of a command: it kills, and waits for what it killed.
pub(super) const LAST: Duration = Duration::from_secs(10);

/// How long a supervisor may take to end when all commands have: it has nothing to do any more.
const FAREWELL: Duration = Duration::from_secs(2);

/// The supervisor of a run, started when it is first needed.
#[derive(Debug)]
pub struct Supervisor {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Process>,
    /// The sockets of keepers, for what all of them are told.
    keepers: BTreeMap<u64, UnixStream>,
    last: u64,
    paused: bool,
}

#[derive(Debug)]
struct Process {
    child: Child,
    socket: UnixStream,
}

impl Supervisor {
    /// None is running yet. `program` is Probity's own file.
    pub fn new(program: PathBuf) -> Self {
        Self { program, state: Mutex::default() }
    }

    /// Starts it ahead of need, so that nobody has to wait for it. Whoever needs it hears of an error.
    pub fn start(&self) {
        let _ = self.state().start(&self.program);
    }

    /// Lets it go: nothing is started any more, and it ends as soon as all has.
    pub fn leave(&self) {
        if let Some(process) = &self.state().process {
            let _ = process.socket.shutdown(Shutdown::Write);
        }
    }

    /// Lets it go, and waits until it has: by then nobody uses this program's file any more.
    pub fn end(&self) {
        let process = self.state().process.take();
        // Nobody else has to wait for that.
        drop(process);
    }

    /// Pauses everything that runs. It is done before this process can be stopped itself, or soon after.
    pub fn pause(&self) {
        let mut state = self.state();
        state.paused = true;
        state.tell(PAUSE);
    }

    /// Lets everything go on.
    pub fn resume(&self) {
        let mut state = self.state();
        state.paused = false;
        state.tell(RESUME);
    }

    /// Has a command started.
    pub(super) fn keep(&self, order: &Order, log: impl AsFd) -> io::Result<Kept<'_>> {
        // Held until the order is sent: who is paused is either among the keepers or knows that it is.
        let mut state = self.state();
        let socket = state.start(&self.program)?;
        let (mut ours, theirs) = UnixStream::pair()?;
        let descriptors = [theirs.as_fd(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(socket, &[IoSlice::new(b"J")], &mut control, SendFlags::empty())?;
        drop(theirs);
        // One that does not listen must not hold up whoever asks.
        ours.set_write_timeout(Some(LAST))?;
        order.write(&mut ours)?;
        if state.paused {
            ours.write_all(&[PAUSE])?;
        }
        state.last += 1;
        let id = state.last;
        state.keepers.insert(id, ours.try_clone()?);
        Ok(Kept { supervisor: self, id, socket: ours })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn start(&mut self, program: &Path) -> io::Result<&UnixStream> {
        if self.process.is_none() {
            self.process = Some(Process::start(program)?);
        }
        match &self.process {
            Some(process) => Ok(&process.socket),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn tell(&self, letter: u8) {
        for mut socket in self.keepers.values() {
            // One that has just ended is told in vain.
            let _ = socket.write_all(&[letter]);
        }
    }
}

impl Process {
    fn start(program: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = command(program);
        command.current_dir("/").stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()?, socket })
    }
}

#[cfg(not(test))]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("supervise").env_clear();
    command
}

/// In unit tests this program is their harness, and one of the tests stands for the subcommand.
#[cfg(test)]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", tests::SUPERVISES, "--test-threads=1"]).env_clear().env(tests::SUPERVISES, "1");
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        // A command may have stopped it: then it would stay, and hear of nothing.
        let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
        let _ = self.socket.set_read_timeout(Some(FAREWELL));
        // It says nothing, so this is its end. One that takes longer has something to end that does not, and goes on with
        // that by itself.
        if let Ok(0) = self.socket.read(&mut [0]) {
            let _ = self.child.wait();
        }
    }
}

/// A command that was started, or could not be. Everything of it is killed when this goes.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    supervisor: &'a Supervisor,
    id: u64,
    socket: UnixStream,
}

impl Kept<'_> {
    /// Asks everything to end.
    pub(super) fn end(&self) {
        let _ = (&self.socket).write_all(&[END]);
    }

    /// Kills everything.
    pub(super) fn kill(&self) {
        let _ = (&self.socket).write_all(&[KILL]);
    }

    /// What is told of its end, by itself.
    pub(super) fn end_of(&self) -> io::Result<impl FnOnce() -> io::Result<Report> + Send + 'static> {
        let mut socket = self.socket.try_clone()?;
        Ok(move || Report::read(&mut socket))
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.supervisor.state().keepers.remove(&self.id);
        // Whoever else has it open.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The name of the test that stands for the subcommand, and of the variable that it goes by.
    pub(super) const SUPERVISES: &str = "native::supervisor::tests::supervises_where_it_is_asked_to";

    /// A supervisor for unit tests.
    pub(in crate::native) fn supervisor() -> Supervisor {
        Supervisor::new(std::env::current_exe().unwrap())
    }

    #[test]
    fn supervises_where_it_is_asked_to() {
        if std::env::var_os(SUPERVISES).is_some() {
            supervise().unwrap();
        }
    }
}
