//! Trying to cross the walls from behind them: what `probity doctor` has a worker do, so that a wall is not only said to
//! stand.
//!
//! Must not: be reached by a guest, or do anything that harms where a wall is missing. What is tried is aimed at things
//! that the parent made for it.

use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// One thing that a guest which has broken out of the engine would try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// Open a file to read it.
    ReadFile,
    /// Open a file to write to it.
    WriteFile,
    /// Make a file.
    CreateFile,
    /// Ask for a file's size and times.
    Stat,
    /// Read where a link leads.
    ReadLink,
    /// Make a socket.
    Socket,
    /// Connect to a port.
    ConnectTcp,
    /// Connect to a socket that has a path.
    ConnectUnix,
    /// Connect to a socket that has a name and no path.
    ConnectAbstract,
    /// Start a thread.
    Thread,
    /// Start a process.
    Fork,
    /// Become another program.
    Exec,
    /// Send a signal to the parent.
    Signal,
    /// Have a pipe send signals to the parent.
    SignalByPipe,
    /// Read the parent's memory.
    ReadMemory,
    /// Trace the parent.
    Trace,
    /// Map memory that can be executed.
    MapCode,
    /// Turn memory into code.
    ProtectCode,
    /// Gain privileges through a program that has them.
    Privileges,
    /// Be looked into, and dumped, as other processes of the user can be.
    Dumpable,
    /// Leave its memory on disk when it dies.
    DumpCore,
    /// Write to a descriptor that the parent inherited.
    Descriptors,
    /// Read the parent's environment.
    Environment,
}

/// What the parent made to be tried on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// A folder with what the functions below name. Its path is also the name of an abstract socket.
    pub folder: PathBuf,
    /// A port of this machine that is listened to.
    pub port: u16,
    /// The parent.
    pub process: u32,
    /// Where in the parent's memory [`CANARY`] is.
    pub memory: u64,
}

impl Target {
    /// A file that holds [`CANARY`].
    pub fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    /// A link.
    pub fn link(&self) -> PathBuf {
        self.folder.join("link")
    }

    /// A socket that is listened to.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// What is not there, and is if the walls have been crossed.
    pub fn made(&self) -> PathBuf {
        self.folder.join("made")
    }
}

/// What is read where reading is tried.
pub const CANARY: [u8; 16] = *b"a canary to read";

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Crossed {
    /// It was refused, and how.
    Refused(String),
    /// It went through, and what was seen.
    Open(String),
}

impl Crossing {
    /// Everything that is tried.
    pub const ALL: [Self; 23] = [
        Self::ReadFile,
        Self::WriteFile,
        Self::CreateFile,
        Self::Stat,
        Self::ReadLink,
        Self::Socket,
        Self::ConnectTcp,
        Self::ConnectUnix,
        Self::ConnectAbstract,
        Self::Thread,
        Self::Fork,
        Self::Exec,
        Self::Signal,
        Self::SignalByPipe,
        Self::ReadMemory,
        Self::Trace,
        Self::MapCode,
        Self::ProtectCode,
        Self::Privileges,
        Self::Dumpable,
        Self::DumpCore,
        Self::Descriptors,
        Self::Environment,
    ];

    /// In words: `read a file`.
    pub fn words(self) -> &'static str {
        match self {
            Self::ReadFile => "open a file to read it",
            Self::WriteFile => "open a file to write to it",
            Self::CreateFile => "make a file",
            Self::Stat => "ask about a file",
            Self::ReadLink => "read a link",
            Self::Socket => "make a socket",
            Self::ConnectTcp => "connect to a port",
            Self::ConnectUnix => "connect to a socket with a path",
            Self::ConnectAbstract => "connect to a socket with a name",
            Self::Thread => "start a thread",
            Self::Fork => "start a process",
            Self::Exec => "become another program",
            Self::Signal => "signal the parent",
            Self::SignalByPipe => "have a pipe signal the parent",
            Self::ReadMemory => "read the parent's memory",
            Self::Trace => "trace the parent",
            Self::MapCode => "map memory as code",
            Self::ProtectCode => "turn memory into code",
            Self::Privileges => "gain privileges",
            Self::Dumpable => "be looked into by others",
            Self::DumpCore => "leave its memory on disk",
            Self::Descriptors => "write to what was inherited",
            Self::Environment => "read the parent's environment",
        }
    }
}

/// What can only be looked at before the walls stand: the descriptors that are open when everything has been loaded.
pub(super) fn open_descriptors() -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let mut open: Vec<(i32, String)> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            // The folder that is being read is gone when it has been.
            let what = fs::read_link(entry.path()).ok().filter(|what| !what.ends_with("fd"))?;
            Some((number, what.to_string_lossy().into_owned()))
        })
        .collect();
    open.sort_unstable();
    open
}

/// Tries it. Does not return where a wall kills.
pub(super) fn cross(crossing: Crossing, target: &Target, seen: &[(i32, String)]) -> Crossed {
    match tried(crossing, target, seen) {
        Ok(what) => Crossed::Open(what),
        Err(error) => Crossed::Refused(error.to_string()),
    }
}

fn tried(crossing: Crossing, target: &Target, seen: &[(i32, String)]) -> io::Result<String> {
    match crossing {
        Crossing::ReadFile => fs::read(target.file()).map(|bytes| format!("{} bytes", bytes.len())),
        Crossing::WriteFile => OpenOptions::new().append(true).open(target.file()).map(|_| String::new()),
        Crossing::CreateFile => File::create(target.made()).map(|_| String::new()),
        Crossing::Stat => fs::metadata(target.file()).map(|metadata| format!("{} bytes", metadata.len())),
        Crossing::ReadLink => fs::read_link(target.link()).map(|to| to.display().to_string()),
        Crossing::Environment => environment(),
        Crossing::Thread => std::thread::Builder::new().spawn(|| ()).map(|_| String::new()),
        Crossing::ConnectTcp => {
            std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, target.port)).map(|_| String::new())
        }
        Crossing::ConnectUnix => std::os::unix::net::UnixStream::connect(target.socket()).map(|_| String::new()),
        Crossing::Descriptors => descriptors(seen),
        Crossing::Socket => std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).map(|_| String::new()),
        Crossing::ConnectAbstract
        | Crossing::Fork
        | Crossing::Exec
        | Crossing::Signal
        | Crossing::SignalByPipe
        | Crossing::ReadMemory
        | Crossing::Trace
        | Crossing::MapCode
        | Crossing::ProtectCode
        | Crossing::Privileges
        | Crossing::Dumpable
        | Crossing::DumpCore => calls::tried(crossing, target),
    }
}

/// The parent gives a worker no environment but what its memory allocator needs.
fn environment() -> io::Result<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let others: Vec<String> = names.filter(|name| name != "MALLOC_ARENA_MAX").collect();
    if others.is_empty() { Err(io::Error::other("it is empty")) } else { Ok(others.join(", ")) }
}

/// Writes to every descriptor but the pipes: those that were seen, and others in case that looking was forbidden.
fn descriptors(seen: &[(i32, String)]) -> io::Result<String> {
    use std::os::fd::BorrowedFd;
    let written: Vec<String> = (3..256)
        .filter(|number| {
            #[expect(unsafe_code, reason = "whether the descriptor is open is what is tried")]
            // SAFETY: where it is not open the call says so; where it is, nobody closes it meanwhile.
            let descriptor = unsafe { BorrowedFd::borrow_raw(*number) };
            rustix::io::write(descriptor, b"\n").is_ok()
        })
        .map(|number| number.to_string())
        .collect();
    if !written.is_empty() {
        return Ok(format!("wrote to {}", written.join(", ")));
    }
    let open: Vec<String> = seen.iter().map(|(number, what)| format!("{number} {}", kind(Path::new(what)))).collect();
    Err(io::Error::other(format!("open are {}", open.join(", "))))
}

/// What a descriptor is, without the numbers that differ from run to run.
fn kind(what: &Path) -> String {
    let text = what.to_string_lossy();
    let mut parts = text.split(['/', ':']).filter(|part| !part.is_empty());
    match (text.starts_with('/'), parts.clone().next(), parts.next_back()) {
        (true, Some("proc"), Some(last)) => format!("/proc/self/{last}"),
        (false, Some(first), _) => first.to_owned(),
        _ => text.into_owned(),
    }
}

/// What needs the system's calls as they are.
#[cfg(target_os = "linux")]
mod calls {
    #![expect(unsafe_code, reason = "these calls have no safe form; each stands with why it does no harm")]

    use super::{CANARY, Crossing, Target};
    use std::ffi::CString;
    use std::io;
    use std::os::unix::ffi::OsStrExt as _;

    /// The result of a call: an error where it is negative.
    fn checked(result: i64) -> io::Result<String> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(String::new()) }
    }

    pub(super) fn tried(crossing: Crossing, target: &Target) -> io::Result<String> {
        let parent = target.process.cast_signed();
        match crossing {
            Crossing::ConnectAbstract => {
                use std::os::linux::net::SocketAddrExt as _;
                use std::os::unix::net::{SocketAddr, UnixStream};
                let name = SocketAddr::from_abstract_name(target.folder.as_os_str().as_bytes())?;
                UnixStream::connect_addr(&name).map(|_| String::new())
            }
            Crossing::Fork => fork(),
            Crossing::Exec => exec(target),
            // A signal that is ignored unless somebody waits for it.
            // SAFETY: takes no memory.
            Crossing::Signal => checked(unsafe { libc::kill(parent, libc::SIGURG) }.into()),
            // SAFETY: takes no memory; the pipe belongs to this process.
            Crossing::SignalByPipe => checked(unsafe { libc::fcntl(0, libc::F_SETOWN, parent) }.into()),
            Crossing::ReadMemory => read_memory(target),
            // The parent is not stopped by this, and let go when this process ends.
            // SAFETY: takes no memory.
            Crossing::Trace => checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, parent, 0, 0) }),
            Crossing::MapCode => map(libc::PROT_READ | libc::PROT_EXEC).map(|_| String::new()),
            Crossing::ProtectCode => {
                let at = map(libc::PROT_READ | libc::PROT_WRITE)?;
                // SAFETY: the page was mapped a line above and nothing else is in it.
                checked(unsafe { libc::mprotect(at, PAGE, libc::PROT_READ | libc::PROT_EXEC) }.into())
            }
            // SAFETY: takes no memory.
            Crossing::Privileges => match unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } {
                1 => Err(io::Error::other("no new privileges")),
                other => checked(other.into()),
            },
            // SAFETY: takes no memory.
            Crossing::Dumpable => match unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) } {
                0 => Err(io::Error::other("not dumpable")),
                other => checked(other.into()),
            },
            Crossing::DumpCore => {
                if rustix::process::getrlimit(rustix::process::Resource::Core).maximum != Some(0) {
                    return Ok("there may be core dumps".to_owned());
                }
                // A signal that leaves one and that the engine does not take for a guest's trap, to this very thread.
                // Who starts Probity in the background of a shell has it ignored, or blocks it, for all that follow.
                // SAFETY: takes no memory but the set of this function. What it leaves behind is for the parent to see.
                unsafe {
                    let mut quit = std::mem::zeroed();
                    libc::sigemptyset(&raw mut quit);
                    libc::sigaddset(&raw mut quit, libc::SIGQUIT);
                    libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const quit, std::ptr::null_mut());
                    libc::signal(libc::SIGQUIT, libc::SIG_DFL);
                    libc::raise(libc::SIGQUIT);
                }
                Ok("it lives".to_owned())
            }
            // Tried elsewhere. Were one forgotten there, it would not be said to be held.
            Crossing::ReadFile
            | Crossing::WriteFile
            | Crossing::CreateFile
            | Crossing::Stat
            | Crossing::ReadLink
            | Crossing::Socket
            | Crossing::ConnectTcp
            | Crossing::ConnectUnix
            | Crossing::Thread
            | Crossing::Descriptors
            | Crossing::Environment => Ok("it was not tried".to_owned()),
        }
    }

    /// One page, on all systems that there are.
    const PAGE: usize = 64 << 10;

    fn map(protection: i32) -> io::Result<*mut libc::c_void> {
        // SAFETY: asks for memory of its own wherever there is room.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) }
    }

    fn fork() -> io::Result<String> {
        // SAFETY: the child does nothing but end, which is allowed whatever other threads were at.
        match unsafe { libc::fork() } {
            0 => unsafe { libc::_exit(0) },
            child => checked(child.into()),
        }
    }

    fn exec(target: &Target) -> io::Result<String> {
        let made = target.made();
        let words = [&b"/bin/sh"[..], b"-c", b": > \"$0\"", made.as_os_str().as_bytes()].map(CString::new);
        let words = words.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // SAFETY: the texts and the list of them live until the call returns, and both end as it wants.
        checked(unsafe { libc::execv(pointers[0], pointers.as_ptr()) }.into())
    }

    fn read_memory(target: &Target) -> io::Result<String> {
        let mut here = [0_u8; CANARY.len()];
        let local = libc::iovec { iov_base: here.as_mut_ptr().cast(), iov_len: here.len() };
        // An address of the other process; where it is none there, the call says so.
        let there = usize::try_from(target.memory).map_err(io::Error::other)? as *mut libc::c_void;
        let remote = libc::iovec { iov_base: there, iov_len: here.len() };
        let process = target.process.cast_signed();
        // SAFETY: both lists have one entry, and the local one is a buffer of this function.
        let read = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
        checked(read as i64)?;
        Ok(if here == CANARY { "the canary".to_owned() } else { "something".to_owned() })
    }
}

/// Elsewhere none of these is forbidden, and that is known without trying.
#[cfg(not(target_os = "linux"))]
mod calls {
    pub(super) fn tried(_: super::Crossing, _: &super::Target) -> std::io::Result<String> {
        Ok("not tried: this system has no walls".to_owned())
    }
}
