//! The processes below one: which there are, and signals to them.
//!
//! Linux only: elsewhere there are none to be found, and nothing takes in what has left its parent.

use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet};

/// How often is looked again for what has come meanwhile: each look finds what those started that were not reached before.
const LOOKS: usize = 10;

/// A process below another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// As it was when it was looked at.
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it was started: with the id this is one process and no other.
    pub(super) started: u64,
    /// What it calls itself, in whatever bytes.
    pub(super) name: Vec<u8>,
    /// It has ended, and its parent has not heard of it.
    pub(super) gone: bool,
}

/// All processes below one, but for some and what is below these.
pub(super) fn below(top: Pid, but: &BTreeSet<i32>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        if !but.contains(&process.pid.as_raw_pid()) {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&top.as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        if let Some(more) = children.remove(&process.pid.as_raw_pid()) {
            found.extend(more);
        }
        next += 1;
    }
    found
}

/// Signals everything below a process that `wanted` chooses, also what comes while this goes on. Says what was there.
pub(super) fn signal_all(
    top: Pid,
    but: &BTreeSet<i32>,
    signal: Signal,
    wanted: impl Fn(&Process) -> bool,
) -> Vec<Process> {
    let mut reached: Vec<Process> = Vec::new();
    for _ in 0..LOOKS {
        let mut found = below(top, but);
        found.retain(|found| !found.gone && !reached.iter().any(|known| known.is(found)));
        if found.is_empty() {
            break;
        }
        for process in &found {
            if wanted(process) {
                process.signal(top, signal);
            }
        }
        reached.append(&mut found);
    }
    reached
}

impl Process {
    /// Whether this is the same process, whatever it calls itself now.
    fn is(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// Sends it a signal, if it is still there. `top` is the process that asks.
    #[cfg(target_os = "linux")]
    fn signal(&self, top: Pid, signal: Signal) {
        use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
        if self.parent == top.as_raw_pid() {
            // Nobody but us takes its id away from it.
            let _ = kill_process(self.pid, signal);
            return;
        }
        // Its parent may do that at any moment, and then the id may be that of a stranger: so it is held first, and looked
        // at again.
        let held = pidfd_open(self.pid, PidfdFlags::empty());
        if !read(self.pid).is_some_and(|now| now.is(self)) {
            return;
        }
        let _ = match held {
            Ok(held) => pidfd_send_signal(held, signal),
            // Before Linux 5.3 nothing can be held.
            Err(rustix::io::Errno::NOSYS) => kill_process(self.pid, signal),
            Err(error) => Err(error),
        };
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _: Pid, _: Signal) {}
}

#[cfg(target_os = "linux")]
fn all() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
}

#[cfg(not(target_os = "linux"))]
fn all() -> impl Iterator<Item = Process> {
    std::iter::empty()
}

#[cfg(target_os = "linux")]
fn read(pid: Pid) -> Option<Process> {
    parse(&std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
}

/// A line of `/proc/PID/stat`. The name in it may have any bytes, brackets and blanks too.
#[cfg(any(test, target_os = "linux"))]
fn parse(line: &[u8]) -> Option<Process> {
    let (open, close) = (line.iter().position(|byte| *byte == b'(')?, line.iter().rposition(|byte| *byte == b')')?);
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let name = line.get(open + 1..close)?.to_vec();
    let fields: Vec<&str> = std::str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace().collect();
    Some(Process {
        pid: Pid::from_raw(pid)?,
        gone: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_it_calls_itself() {
        let rest = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 2000";
        for name in ["sh", "a b", ") Z 1 1", "((", "\u{fffd}\n)"] {
            let process = parse(format!("42 ({name}) {rest}\n").as_bytes()).unwrap();
            assert_eq!((process.pid.as_raw_pid(), process.parent, process.group, process.started), (42, 7, 8, 12345));
            assert_eq!((process.name.as_slice(), process.gone), (name.as_bytes(), false));
        }
        assert_eq!(parse([b"42 (\xff) ".as_slice(), rest.as_bytes()].concat().as_slice()).unwrap().name, b"\xff");
        assert!(parse(format!("42 (x) {}", rest.replacen('S', "Z", 1)).as_bytes()).unwrap().gone);
        for broken in ["", "42", "42 (sh", "42 )sh( S", "x (sh) S 7 8", "42 (sh) S 7 8", "0 (sh) S 7 8"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_below_a_process_is_found_and_what_is_below_others_is_not() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sh -c 'sleep 600 & echo ready; wait' & wait"]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
        let pid = Pid::from_child(&shell);
        let me = rustix::process::getpid();
        // A process that was just made has its parent's name until it has become the program.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let found = loop {
            let found = below(pid, &BTreeSet::new());
            if found.iter().any(|process| process.name == b"sleep") {
                break found;
            }
            assert!(std::time::Instant::now() < until, "{found:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert!(below(me, &BTreeSet::new()).iter().any(|process| process.name == b"sleep"));
        assert!(
            !below(me, &BTreeSet::from([pid.as_raw_pid()])).iter().any(|process| process.parent == pid.as_raw_pid())
        );
        signal_all(pid, &BTreeSet::new(), Signal::KILL, |_| true);
        shell.wait().unwrap();
        // Only the end of a child is waited for; the others have been killed too, and take a moment to be gone.
        while !found.iter().all(|process| read(process.pid).is_none_or(|now| now.gone || !now.is(process))) {
            assert!(std::time::Instant::now() < until, "{found:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
