//! A keeper: the process that one command is a child of, and everything the command starts is below.
//!
//! It ends when nothing is left below it, and not before. Whatever loses its parent becomes its child, also what has left
//! group and session, so that a look at its own children says whether anything is left.
//!
//! Must not: read what the command prints, or decide when its time is up. That is Probity's; but when Probity or the
//! supervisor is gone, it ends everything by itself.

use super::frame::{self, Ended, MAX_NAME, MAX_NAMES, Order, Report};
use super::tree::{self, Process};
use crate::model::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, setsid, wait};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a command leaves behind may be about to end by itself, as the last part of a pipe is: only what is there after
/// this is asked to.
const SETTLE: Duration = Duration::from_millis(50);

/// How long what was killed may take to be gone. What takes longer hangs in the kernel, or is another user's.
pub(super) const KILLED: Duration = Duration::from_secs(5);

/// How often is looked for what is left while it is being killed.
const AGAIN: Duration = Duration::from_millis(20);

/// Starts the command that is ordered through `socket` and stays until nothing of it is left. The end of `lifeline` says
/// that the supervisor is gone. Whether all has ended well is the answer.
pub(super) fn keep(socket: UnixStream, log: OwnedFd, lifeline: &PipeReader) -> io::Result<bool> {
    super::serve::take_in_orphans()?;
    let (ended, wake) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake)?;
    let mut socket = socket;
    let order = Order::read(&mut socket)?;
    let main = match start(&order, log) {
        Ok(main) => main,
        Err(error) => {
            let error = error.raw_os_error().unwrap_or(libc::EINVAL);
            Report::NotStarted(error).write(&mut socket)?;
            return Ok(true);
        }
    };
    let mut keeper = Keeper {
        me: getpid(),
        main,
        grace: order.grace,
        exit: None,
        asked: false,
        phase: Phase::Running,
        paused: None,
        abandoned: false,
        reaped: BTreeMap::new(),
    };
    let left = keeper.watch(&mut socket, lifeline, &ended)?;
    if !keeper.abandoned {
        keeper.report(left).write(&mut socket)?;
    }
    Ok(left == 0)
}

/// Starts the command in a session of its own: there is no terminal that it could wait for or be stopped by, and keys that
/// are pressed there reach Probity alone.
fn start(order: &Order, log: OwnedFd) -> io::Result<Pid> {
    let [program, arguments @ ..] = order.argv.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&order.folder).env_clear().envs(&order.environment);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    #[cfg(target_os = "linux")]
    let keeper = getpid();
    let first = move || {
        setsid()?;
        // What a shell has ignored for a job in the background is ignored by all that it starts: a command would see how
        // Probity was started.
        for signal in 1..32 {
            #[expect(unsafe_code, reason = "there is no other form of it")]
            // SAFETY: it touches no memory, and may be called between fork and exec. What cannot be set is as it should be.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        // Should the keeper be killed, at least the command itself is at once. It may have been killed already.
        #[cfg(target_os = "linux")]
        {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(keeper) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "nothing else runs in the new process before the program does")]
    // SAFETY: it makes a few system calls and touches no memory of others.
    unsafe {
        command.pre_exec(first);
    }
    let child = command.spawn()?;
    Ok(Pid::from_child(&child))
}

struct Keeper {
    me: Pid,
    /// The command itself.
    main: Pid,
    grace: Duration,
    /// How the command ended.
    exit: Option<Exit>,
    /// Whether it was asked to before.
    asked: bool,
    phase: Phase,
    /// Since when everything is paused: what is paused cannot end in time.
    paused: Option<Instant>,
    /// Nobody is left to report to.
    abandoned: bool,
    /// What was there beside the command when it was ended, by id and start.
    reaped: BTreeMap<(i32, u64), Vec<u8>>,
}

enum Phase {
    /// The command runs.
    Running,
    /// It has ended by itself, and so may what it left.
    Settling(Instant),
    /// Everything was asked to end until then.
    Asked(Instant),
    /// Everything is being killed.
    Killing { again: Instant, until: Instant },
}

impl Keeper {
    /// Waits until nothing is left, or nothing can be done about it: says how many processes those are.
    fn watch(&mut self, socket: &mut UnixStream, lifeline: &PipeReader, ended: &UnixStream) -> io::Result<u32> {
        loop {
            let some = self.reap();
            if !some {
                return Ok(0);
            }
            let now = Instant::now();
            match self.phase {
                Phase::Running if self.exit.is_some() => self.phase = Phase::Settling(now + SETTLE),
                Phase::Settling(until) if now >= until && self.paused.is_none() => self.end(),
                Phase::Asked(until) if now >= until && self.paused.is_none() => self.kill(),
                Phase::Killing { until, .. } if now >= until => return Ok(self.left()),
                Phase::Killing { again, until } if now >= again => {
                    self.strike();
                    self.phase = Phase::Killing { again: Instant::now() + AGAIN, until };
                }
                Phase::Running | Phase::Settling(_) | Phase::Asked(_) | Phase::Killing { .. } => {}
            }
            let mut fds = vec![PollFd::new(ended, PollFlags::IN)];
            if !self.abandoned {
                fds.extend([PollFd::new(lifeline, PollFlags::empty()), PollFd::new(socket, PollFlags::IN)]);
            }
            let timeout = self.next().map(|next| {
                let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
            });
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let gone = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
            let (orphaned, spoken) = (gone(fds.get(1)), gone(fds.get(2)));
            drain(ended);
            // What has ended by now did so before it was asked.
            if (orphaned || spoken) && !self.reap() {
                return Ok(0);
            }
            if orphaned {
                self.abandon();
            } else if spoken {
                self.listen(socket);
            }
        }
    }

    /// When something has to be done, whoever speaks.
    fn next(&self) -> Option<Instant> {
        match self.phase {
            Phase::Settling(until) | Phase::Asked(until) if self.paused.is_none() => Some(until),
            Phase::Killing { again, .. } => Some(again),
            // What has ended is about to be settled.
            Phase::Running if self.exit.is_some() => Some(Instant::now()),
            Phase::Running | Phase::Settling(_) | Phase::Asked(_) => None,
        }
    }

    fn listen(&mut self, socket: &mut UnixStream) {
        let mut said = [0; 16];
        match socket.read(&mut said) {
            Ok(count @ 1..) => said[..count].iter().for_each(|letter| self.obey(*letter)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => self.abandon(),
        }
    }

    fn obey(&mut self, letter: u8) {
        match letter {
            frame::END if matches!(self.phase, Phase::Running | Phase::Settling(_)) => self.end(),
            frame::KILL => self.kill(),
            frame::PAUSE => {
                self.paused.get_or_insert_with(Instant::now);
                self.send(Signal::STOP);
            }
            frame::RESUME => {
                self.send(Signal::CONT);
                let pause = self.paused.take().map_or(Duration::ZERO, |since| since.elapsed());
                if let Phase::Settling(until) | Phase::Asked(until) = &mut self.phase {
                    *until += pause;
                }
            }
            // Nobody else has the other end of this socket.
            _ => {}
        }
    }

    /// Takes leave of what has ended. Says whether anything is left.
    fn reap(&mut self) -> bool {
        #[cfg(not(target_os = "linux"))]
        self.end_group();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => {
                    self.exit = status.exit_status().map(Exit::Code);
                    self.exit = self.exit.or_else(|| status.terminating_signal().map(Exit::Signal));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Where orphans come to nobody, the group is all that is known of what a command leaves behind; and that only until
    /// the command's own id is free.
    #[cfg(not(target_os = "linux"))]
    fn end_group(&self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.exit.is_none() && matches!(waitid(WaitId::Pid(self.main), ended), Ok(Some(_))) {
            let _ = kill_process_group(self.main, Signal::KILL);
        }
    }

    /// Asks everything to end.
    fn end(&mut self) {
        self.asked = self.exit.is_none();
        let found = self.send(Signal::TERM);
        self.note(found);
        // What is stopped acts on nothing before it goes on.
        self.send(Signal::CONT);
        self.phase = Phase::Asked(Instant::now() + self.grace);
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.asked |= self.exit.is_none();
            self.strike();
            self.phase = Phase::Killing { again: Instant::now() + AGAIN, until: Instant::now() + KILLED };
        }
    }

    fn strike(&mut self) {
        let found = self.send(Signal::KILL);
        self.note(found);
    }

    /// Signals everything: the command's group at the same moment, the others one by one. Says what was there.
    fn send(&self, signal: Signal) -> Vec<Process> {
        // Once the command has ended its id may be that of another group.
        let group = self.exit.is_none().then(|| self.main.as_raw_pid());
        if group.is_some() {
            let _ = kill_process_group(self.main, signal);
        }
        tree::signal_all(self.me, &BTreeSet::new(), signal, |process| Some(process.group) != group)
    }

    fn abandon(&mut self) {
        self.abandoned = true;
        self.kill();
    }

    fn note(&mut self, found: Vec<Process>) {
        for Process { pid, started, name, .. } in found {
            if pid != self.main {
                self.reaped.entry((pid.as_raw_pid(), started)).or_insert(name);
            }
        }
    }

    fn left(&self) -> u32 {
        let left = tree::below(self.me, &BTreeSet::new()).iter().filter(|process| !process.gone).count();
        // Whoever cannot be seen is there all the same.
        u32::try_from(left).unwrap_or(u32::MAX).max(1)
    }

    fn report(&self, left: u32) -> Report {
        let mut counts: BTreeMap<&[u8], u32> = BTreeMap::new();
        for name in self.reaped.values() {
            *counts.entry(&name[..name.len().min(MAX_NAME)]).or_default() += 1;
        }
        let unnamed = counts.values().skip(MAX_NAMES).sum();
        let reaped = counts.into_iter().take(MAX_NAMES).map(|(name, count)| (name.to_vec(), count)).collect();
        let exit = self.exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw()));
        Report::Ended(Ended { exit, asked: self.asked, reaped, unnamed, left })
    }
}

/// Empties a socket that only wakes.
pub(super) fn drain(mut socket: &UnixStream) {
    while let Ok(1..) = socket.read(&mut [0; 64]) {}
}
