//! Whether the walls hold: each way across is tried by a worker of the ordinary kind, behind all walls, behind each one
//! by itself, and behind none.
//!
//! Must not: take a worker's word where there is something to look at.

use super::process::{Lost, Worker};
use super::{ANSWER_TIME, Host, LoadError, Place, Walls, patience};
use crate::worker::{Ask, CANARY, Crossed, Crossing, Say, Target};
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

/// What came of trying one thing.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What was tried.
    pub crossing: Crossing,
    /// Behind all walls that this system has.
    pub behind_all: Saw,
    /// Behind Landlock alone. None where that does not stand.
    pub behind_landlock: Option<Saw>,
    /// Behind seccomp alone. None where that does not stand.
    pub behind_seccomp: Option<Saw>,
    /// Behind neither.
    pub behind_none: Saw,
}

/// What was seen of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saw {
    /// It did not get through; how that was.
    Held(String),
    /// It got through; what was seen.
    Open(String),
}

impl Saw {
    /// Whether it did not get through.
    pub fn held(&self) -> bool {
        matches!(self, Self::Held(_))
    }
}

impl Tried {
    /// Whether it is how the process is started that holds this, and no wall.
    pub fn is_start(&self) -> bool {
        meant(self.crossing) == (false, false)
    }

    /// Whether everything that should hold this held: all walls together, and each wall that is meant for it by itself.
    pub fn holds(&self) -> bool {
        let (landlock, seccomp) = meant(self.crossing);
        let alone = |meant: bool, saw: &Option<Saw>| !meant || saw.as_ref().is_none_or(Saw::held);
        self.behind_all.held() && alone(landlock, &self.behind_landlock) && alone(seccomp, &self.behind_seccomp)
    }
}

/// Which walls are there against this, each enough by itself: Landlock, seccomp. Where neither is, it is how the
/// process is started that holds it.
fn meant(crossing: Crossing) -> (bool, bool) {
    match crossing {
        Crossing::ReadFile
        | Crossing::WriteFile
        | Crossing::CreateFile
        | Crossing::ConnectTcp
        | Crossing::ConnectAbstract
        | Crossing::Exec
        | Crossing::Signal
        | Crossing::ReadMemory
        | Crossing::Trace
        // Either wall asks for this and sees to it.
        | Crossing::Privileges => (true, true),
        Crossing::Stat
        | Crossing::ReadLink
        | Crossing::Socket
        | Crossing::ConnectUnix
        | Crossing::Thread
        | Crossing::Fork
        | Crossing::SignalByPipe
        | Crossing::MapCode
        | Crossing::ProtectCode => (false, true),
        Crossing::Dumpable | Crossing::DumpCore | Crossing::Descriptors | Crossing::Environment => (false, false),
    }
}

/// What the walls are, and what came of trying to cross them.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Those that stand.
    pub walls: Walls,
    /// In the order of [`Crossing::ALL`].
    pub tried: Vec<Tried>,
}

impl Host {
    /// Which walls stand around guests on this system.
    pub fn walls(&self) -> Result<Walls, LoadError> {
        let (mut worker, walls) = self.locked(Walls::ALL, None, &Target::default())?;
        match worker.finish(patience(ANSWER_TIME)) {
            Ok(()) => Ok(walls),
            Err(lost) => Err(LoadError::Engine(format!("a worker did not end well behind its walls: {lost}"))),
        }
    }

    /// Tries to cross them in every way.
    pub fn try_walls(&self) -> Result<Trial, LoadError> {
        let walls = self.walls()?;
        let set = Set::new().map_err(|error| LoadError::Engine(format!("the trial cannot be set up: {error}")))?;
        let only = |landlock, seccomp| Walls { landlock, seccomp };
        let one = |crossing| -> Result<Tried, LoadError> {
            Ok(Tried {
                crossing,
                behind_all: self.attempt(&set, walls, crossing)?,
                behind_landlock: walls.landlock.then(|| self.attempt(&set, only(true, false), crossing)).transpose()?,
                behind_seccomp: walls.seccomp.then(|| self.attempt(&set, only(false, true), crossing)).transpose()?,
                behind_none: self.attempt(&set, only(false, false), crossing)?,
            })
        };
        let tried = Crossing::ALL.into_iter().map(one).collect::<Result<_, _>>()?;
        Ok(Trial { walls, tried })
    }

    fn program(&self) -> &Path {
        match &self.place {
            Place::Workers(program) => program,
            // There is no such program.
            #[cfg(test)]
            Place::Here => Path::new(""),
        }
    }

    /// One worker behind these walls, as far as they can be had.
    fn locked(&self, walls: Walls, crossing: Option<Crossing>, target: &Target) -> Result<(Worker, Walls), LoadError> {
        let trouble = |error: &dyn std::fmt::Display| LoadError::Engine(format!("a worker cannot be started: {error}"));
        let mut worker = Worker::start(self.program()).map_err(|error| trouble(&error))?;
        let ask = Ask::Try { walls, crossing, target: target.clone() };
        let patience = patience(ANSWER_TIME);
        worker.ask(&ask, patience).map_err(|error| trouble(&error))?;
        match worker.hear(patience) {
            Ok(Say::Loaded(Ok(walls))) => Ok((worker, walls)),
            Ok(Say::Loaded(Err(error))) => Err(error),
            Ok(_) => Err(trouble(&"it answers out of turn")),
            Err(lost) => Err(trouble(&lost)),
        }
    }

    fn attempt(&self, set: &Set, walls: Walls, crossing: Crossing) -> Result<Saw, LoadError> {
        let (mut worker, stand) = self.locked(walls, Some(crossing), &set.target)?;
        if stand != walls {
            return Ok(Saw::Open(format!("its walls are {} where they were {}", stand.words(), walls.words())));
        }
        let said = worker.hear(patience(ANSWER_TIME));
        let saw = match said {
            Ok(Say::Crossed(Crossed::Refused(how))) => Saw::Held(how),
            Ok(Say::Crossed(Crossed::Open(what))) => Saw::Open(what),
            Ok(_) => Saw::Open("it answers out of turn".to_owned()),
            Err(lost @ (Lost::TimedOut | Lost::Cancelled)) => Saw::Open(lost.to_string()),
            Err(Lost::Died(why)) => ended(&mut worker, crossing, why),
        };
        // It ends before its traces are looked for: what it does last counts too.
        drop(worker);
        let traces = set.traces().map_err(|error| LoadError::Engine(format!("the trial went wrong: {error}")))?;
        Ok(traces.map_or(saw, Saw::Open))
    }
}

/// What it means that a worker ended without an answer.
fn ended(worker: &mut Worker, crossing: Crossing, why: String) -> Saw {
    let Ok(status) = worker.status() else { return Saw::Open(why) };
    if status.core_dumped() {
        return Saw::Open("its memory was written to disk".to_owned());
    }
    let kill = rustix::process::Signal::SYS.as_raw();
    let quit = rustix::process::Signal::QUIT.as_raw();
    match status.signal() {
        Some(signal) if signal == kill => Saw::Held("killed".to_owned()),
        Some(signal) if signal == quit && crossing == Crossing::DumpCore => Saw::Held("no core dump".to_owned()),
        Some(_) | None => Saw::Open(why),
    }
}

/// What is tried on.
struct Set {
    target: Target,
    folder: tempfile::TempDir,
    port: TcpListener,
    sockets: [UnixListener; 2],
    /// Open in every process that is started meanwhile, as what a shell or an editor left open is.
    _inherited: File,
}

/// What a worker reads where this process's memory is open to it.
static IN_MEMORY: [u8; CANARY.len()] = CANARY;

impl Set {
    fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("probity-trial-").tempdir()?;
        let port = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        port.set_nonblocking(true)?;
        let target = Target {
            folder: folder.path().to_owned(),
            port: port.local_addr()?.port(),
            process: std::process::id(),
            memory: (&raw const IN_MEMORY).addr() as u64,
        };
        fs::write(target.file(), CANARY)?;
        std::os::unix::fs::symlink("file", target.link())?;
        let sockets = [UnixListener::bind(target.socket())?, named(folder.path())?];
        for socket in &sockets {
            socket.set_nonblocking(true)?;
        }
        let inherited = File::create(folder.path().join("inherited"))?;
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty())?;
        Ok(Self { target, folder, port, sockets, _inherited: inherited })
    }

    /// What an attempt left behind, which is taken away.
    fn traces(&self) -> io::Result<Option<String>> {
        let made = self.target.made();
        if made.symlink_metadata().is_ok() {
            fs::remove_file(&made)?;
            return Ok(Some("it left a file behind".to_owned()));
        }
        if fs::read(self.target.file())? != CANARY {
            fs::write(self.target.file(), CANARY)?;
            return Ok(Some("it wrote to the file".to_owned()));
        }
        if fs::metadata(self.folder.path().join("inherited"))?.len() > 0 {
            fs::write(self.folder.path().join("inherited"), "")?;
            return Ok(Some("it wrote to what was inherited".to_owned()));
        }
        if self.port.accept().is_ok() || self.sockets.iter().any(|socket| socket.accept().is_ok()) {
            return Ok(Some("it connected".to_owned()));
        }
        Ok(None)
    }
}

/// A socket whose name is the path of a folder, which is nobody else's.
#[cfg(target_os = "linux")]
fn named(folder: &Path) -> io::Result<UnixListener> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(folder.as_os_str().as_bytes())?)
}

#[cfg(not(target_os = "linux"))]
fn named(folder: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(folder.join("named"))
}
