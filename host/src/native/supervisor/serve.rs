//! The supervisor: a process of one thread that starts a keeper for each command, by copying itself.
//!
//! It is the parent of all keepers and the last to take in what loses its parent: what a keeper that was killed leaves
//! behind, it kills. When its socket to Probity closes it waits until all keepers have ended everything, and ends.
//!
//! Must not: start a thread, or read an order. What it is sent is a letter and two descriptors.

use super::keeper::{KILLED, drain, keep};
use super::tree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, setsid, wait};
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSliceMut, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked for what a keeper that was killed left behind, until nothing is.
const AGAIN: Duration = Duration::from_millis(20);

/// Serves on standard input until that closes.
pub fn supervise() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Keepers must not have it: Probity is to see the end of this process and of no other.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // What is pressed at the terminal is for Probity alone.
    let _ = setsid();
    take_in_orphans()?;
    // Whoever asks for an end asks Probity.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let (ended, wake) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    let wakes = signal_hook::low_level::pipe::register(SIGCHLD, wake)?;
    let (lifeline, held) = io::pipe()?;
    Supervisor { socket, ended, wakes, lifeline, held, keepers: BTreeSet::new(), sweeping: None }.serve()
}

/// Makes this process the one that what is below it comes to when it loses its parent.
pub(super) fn take_in_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // Whoever ends all processes with the name of Probity ends Probity, and the rest follows in order.
        let _ = rustix::thread::set_name(c"supervise");
    }
    Ok(())
}

struct Supervisor {
    socket: UnixStream,
    /// Wakes when a child has ended.
    ended: UnixStream,
    /// By which it does.
    wakes: SigId,
    /// What keepers watch: its other end is `held` here and nowhere else.
    lifeline: PipeReader,
    held: PipeWriter,
    /// By their ids.
    keepers: BTreeSet<i32>,
    /// Until when what a killed keeper left is killed.
    sweeping: Option<Instant>,
}

impl Supervisor {
    fn serve(mut self) -> io::Result<()> {
        loop {
            self.wait(true)?;
            // Before anything new is started, so that nothing else can be meant.
            self.reap();
            let (socket, log) = match receive(&self.socket) {
                Ok(Received::Command(socket, log)) => (socket, log),
                Ok(Received::Nothing) => continue,
                Ok(Received::End) | Err(_) => break,
            };
            #[expect(unsafe_code, reason = "starting this program anew takes ten times as long as copying it")]
            // SAFETY: this process has one thread, so that the copy has all that its memory speaks of.
            let keeper = unsafe { libc::fork() };
            if keeper == 0 {
                // By these Probity sees that the supervisor is gone, and so do keepers.
                drop(self.socket);
                drop(self.held);
                signal_hook::low_level::unregister(self.wakes);
                let kept = keep(socket.into(), log, &self.lifeline);
                // A copy must not go on as what it is a copy of.
                std::process::exit(i32::from(!matches!(kept, Ok(true))));
            }
            // Where there is none, Probity hears of it when the other end of its socket closes.
            if keeper > 0 {
                self.keepers.insert(keeper);
            }
        }
        // Keepers have seen that too, Probity has the other ends of their sockets; or see it now, if a command stopped them.
        for keeper in self.keepers.iter().filter_map(|keeper| Pid::from_raw(*keeper)) {
            let _ = kill_process(keeper, Signal::CONT);
        }
        let until = Instant::now() + 2 * KILLED;
        while self.reap() {
            if Instant::now() >= until {
                // Also the keepers: one that was stopped cannot do what it is there for.
                self.keepers.clear();
                self.sweeping.get_or_insert_with(|| Instant::now() + KILLED);
            }
            if Instant::now() >= until + KILLED {
                break;
            }
            self.wait(false)?;
        }
        Ok(())
    }

    /// Waits until there is something to do.
    fn wait(&mut self, listening: bool) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        if listening {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        let again = Timespec { tv_sec: 0, tv_nsec: AGAIN.subsec_nanos().into() };
        let timeout = if self.sweeping.is_some() || !listening { Some(&again) } else { None };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drain(&self.ended);
        Ok(())
    }

    /// Takes leave of what has ended, and kills what a keeper left that did not end well. Says whether there is a child.
    fn reap(&mut self) -> bool {
        let some = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.keepers.remove(&pid.as_raw_pid()) && status.exit_status() != Some(0) {
                        self.sweeping = Some(Instant::now() + KILLED);
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if let Some(until) = self.sweeping {
            // Every child that is no keeper has lost one.
            let found = tree::signal_all(getpid(), &self.keepers, Signal::KILL, |_| true);
            if found.is_empty() || Instant::now() >= until {
                self.sweeping = None;
            }
        }
        some
    }
}

enum Received {
    Command(OwnedFd, OwnedFd),
    Nothing,
    End,
}

/// Takes the next letter, if one is there, with the descriptors that come with it.
fn receive(socket: &UnixStream) -> io::Result<Received> {
    let mut letter = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT;
    #[cfg(target_os = "linux")]
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = match recvmsg(socket, &mut [IoSliceMut::new(&mut letter)], &mut control, flags) {
        Ok(received) => received.bytes,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Received::Nothing),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    if received == 0 {
        return Ok(Received::End);
    }
    #[cfg(not(target_os = "linux"))]
    for descriptor in &descriptors {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    let mut descriptors = descriptors.into_iter();
    match (descriptors.next(), descriptors.next()) {
        (Some(socket), Some(log)) => Ok(Received::Command(socket, log)),
        _ => Ok(Received::Nothing),
    }
}
