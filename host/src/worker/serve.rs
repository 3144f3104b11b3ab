//! What the child process does: answers its parent, one question at a time, until the pipe closes.
//!
//! It opens nothing and is told everything. Before any guest byte runs it locks itself up.

use super::crossing::{self, Crossed, Crossing, Target};
use super::frame;
use super::lockdown::{self, Walls};
use super::view::{Contents, ContentsError, TreeBuilder, View};
use super::{
    BigStack, Called, Engine, GuestError, Inspection, Limits, LoadError, Program, SchemaError, check_schema, compile,
    inspect, on_big_stack, validate_config,
};
use crate::model::{Bytes, Change, Entry, Mount, PackInfo, Request};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, BufWriter, Stdin, Stdout, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One thing a guest may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// On which mount.
    pub mount: Mount,
    /// Relative to it.
    pub path: String,
    /// What it is.
    pub what: What,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A file: its size, whether it is executable, and the key to its contents.
    File {
        /// Bytes.
        size: u64,
        /// The executable bit.
        executable: bool,
        /// What [`Contents::read`] gets.
        key: u32,
    },
    /// A link.
    Symlink {
        /// Its text.
        text: Bytes,
    },
    /// An empty folder: a submodule.
    Directory,
}

/// A file that is handed over before it is asked for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Piece {
    /// Which.
    pub key: u32,
    /// All its bytes.
    pub len: usize,
}

/// What the parent asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Look at a component, which follows as bytes, and compile it.
    Compile,
    /// Load compiled code, which follows as bytes, and lock up.
    Load,
    /// Lock up with these walls as a process for guests does, and try to cross them: a trial, for which there is no guest.
    Try {
        /// Which walls, so that each can be tried by itself.
        walls: Walls,
        /// What to try; nothing where only the walls are asked for.
        crossing: Option<Crossing>,
        /// On what.
        target: Target,
    },
    /// Say what the pack holds.
    Describe {
        /// What that may use.
        limits: Limits,
    },
    /// Hold a configuration against a schema.
    Validate {
        /// The schema, a pack's text.
        schema: String,
        /// The configuration.
        config: serde_json::Value,
    },
    /// What all calls from here on have in common.
    Job {
        /// The check.
        check: String,
        /// Canonical JSON.
        config: String,
        /// What each call may use.
        limits: Limits,
    },
    /// Run the check once.
    Call {
        /// Its number, which is in the answer.
        call: u64,
        /// What it is about.
        files: Vec<Entry>,
        /// What changed.
        changes: Option<Vec<Change>>,
        /// The mounts that are there, even if nothing is in them.
        mounts: Vec<Mount>,
        /// All that it may see.
        nodes: Vec<Node>,
        /// Where its randomness comes from.
        seed: [u8; 32],
        /// The files whose whole contents follow as bytes, one behind the other; nothing follows where there are none.
        inline: Vec<Piece>,
    },
    /// Contents that were asked for follow as bytes, and behind them other files, whole.
    Here {
        /// Bytes of what was asked for.
        len: usize,
        /// The files behind them.
        ahead: Vec<Piece>,
    },
    /// Contents that were asked for cannot be had.
    Gone {
        /// The file.
        path: String,
    },
}

/// What the worker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Say {
    /// The component was looked at and compiled; the code follows as bytes.
    Compiled(Result<Inspection, LoadError>),
    /// The code is loaded and the walls stand.
    Loaded(Result<Walls, LoadError>),
    /// What came of trying to cross the walls, where the process lived to tell.
    Crossed(Crossed),
    /// What the pack holds, within the caps; each schema can be used.
    Described(Result<PackInfo, LoadError>),
    /// What is wrong with a configuration.
    Validated(Vec<SchemaError>),
    /// Contents are needed to go on.
    Need {
        /// The file.
        key: u32,
        /// From where.
        offset: u64,
        /// How many bytes.
        len: usize,
    },
    /// The call of this number has ended.
    Called(u64, Box<Called>),
}

/// Serves the parent over standard input and output until they close.
pub fn serve() -> io::Result<()> {
    lockdown::close_inherited();
    let pipes = Arc::new(Pipes(Mutex::new(Streams {
        input: BufReader::with_capacity(256 << 10, io::stdin()),
        output: BufWriter::with_capacity(64 << 10, io::stdout()),
        flushed: Instant::now(),
        ahead: VecDeque::new(),
    })));
    match pipes.hear()? {
        (Ask::Compile, component) => compile_one(&pipes, &component),
        (Ask::Load, code) => {
            behind_walls(&pipes, Walls::ALL, || load(&code), |program, stack| serve_pack(&pipes, stack, &program))
        }
        (Ask::Try { walls, crossing, target }, _) => {
            let load = || Engine::new().map(|engine| (engine, crossing::open_descriptors()));
            let mut loaded = None;
            behind_walls(&pipes, walls, load, |made, _| {
                loaded = Some(made);
                Ok(())
            })?;
            // On the first thread: every other one has at least the walls that this one has, and a guest that has broken
            // out has all threads.
            match (loaded, crossing) {
                (Some((_engine, open)), Some(crossing)) => {
                    pipes.say(&Say::Crossed(crossing::cross(crossing, &target, &open)))
                }
                (None, _) | (_, None) => Ok(()),
            }
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn compile_one(pipes: &Pipes, component: &[u8]) -> io::Result<()> {
    lockdown::compiler();
    let compiled = inspect(component).and_then(|inspection| Ok((inspection, compile(&Engine::new()?, component)?)));
    match compiled {
        Ok((inspection, code)) => {
            pipes.say(&Say::Compiled(Ok(inspection)))?;
            pipes.give(&code)
        }
        Err(error) => pipes.say(&Say::Compiled(Err(error))),
    }
}

/// Code from the parent.
fn load(code: &[u8]) -> Result<Program, LoadError> {
    let engine = Engine::new()?;
    #[expect(unsafe_code, reason = "compiled code from the parent, which made or checked it")]
    // SAFETY: the parent sends only what `compile` returned, either a moment ago or out of its cache with a valid
    // MAC; the pipe leads to nobody else.
    unsafe {
        Program::load(&engine, code)
    }
}

/// Loads what is needed, locks this process up, says so, and goes on behind the walls.
fn behind_walls<T: Send>(
    pipes: &Pipes,
    walls: Walls,
    load: impl FnOnce() -> Result<T, LoadError>,
    work: impl FnOnce(T, &BigStack) -> io::Result<()> + Send,
) -> io::Result<()> {
    let loaded = match load() {
        Ok(loaded) => loaded,
        Err(error) => return pipes.say(&Say::Loaded(Err(error))),
    };
    // No thread is there that Landlock would leave out; starting one is among what seccomp forbids.
    let half = lockdown::first(walls);
    on_big_stack(|stack| {
        watch()?;
        pipes.say(&Say::Loaded(Ok(half.second())))?;
        work(loaded, stack)
    })?
}

fn serve_pack(pipes: &Arc<Pipes>, stack: &BigStack, program: &Program) -> io::Result<()> {
    let mut job = None;
    loop {
        let (ask, bytes) = match pipes.hear() {
            Ok(ask) => ask,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        match ask {
            Ask::Describe { limits } => pipes.say(&Say::Described(describe(program, stack, &limits)))?,
            Ask::Validate { schema, config } => {
                pipes.say(&Say::Validated(validate_config(&schema, &config).err().unwrap_or_default()))?;
            }
            Ask::Job { check, config, limits } => job = Some((check, config, limits)),
            Ask::Call { call, files, changes, mounts, nodes, seed, inline } => {
                let Some((check, config, limits)) = &job else { return Err(io::ErrorKind::InvalidData.into()) };
                let contents = Remote { pipes: Arc::clone(pipes), kept: Mutex::new(Kept::default()) };
                contents.kept(|kept| kept.add(&inline, &bytes));
                let request = Request { check: check.clone(), config: config.clone(), files, changes };
                let called = match view(&mounts, nodes, contents) {
                    Ok(view) => program.run(stack, &request, view, limits, &seed),
                    Err(error) => Called {
                        result: Err(GuestError::new(crate::model::ErrorKind::Host, error)),
                        fuel: None,
                        stderr: String::new(),
                        observed: Vec::new(),
                    },
                };
                pipes.say(&Say::Called(call, Box::new(called)))?;
            }
            Ask::Compile | Ask::Load | Ask::Try { .. } | Ask::Here { .. } | Ask::Gone { .. } => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Ends this process when the parent is gone: a guest that is busy would not notice.
#[cfg(unix)]
fn watch() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let (started, starts) = std::sync::mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        // Past here this thread only waits, which the walls allow.
        let _ = started.send(());
        loop {
            let stdin = io::stdin();
            // That the other end was closed is told whatever is asked for.
            let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
            if poll(&mut fds, None).is_ok() && fds[0].revents().contains(PollFlags::HUP) {
                #[expect(clippy::exit, reason = "nobody is left to tell")]
                std::process::exit(0);
            }
        }
    })?;
    starts.recv().map_err(io::Error::other)
}

pub(crate) fn describe(program: &Program, stack: &BigStack, limits: &Limits) -> Result<PackInfo, LoadError> {
    let info = program.describe(stack, limits).map_err(LoadError::Describe)?;
    for check in &info.checks {
        if let Some(schema) = &check.config_schema {
            let wrong = |error| LoadError::Info(format!("check `{}`: its schema {error}", check.id.escape_debug()));
            check_schema(schema).map_err(wrong)?;
        }
    }
    Ok(info)
}

/// The view of these nodes.
fn view(mounts: &[Mount], nodes: Vec<Node>, contents: Remote) -> Result<View, String> {
    let mut tree = TreeBuilder::new();
    for mount in mounts {
        tree.mount(*mount);
    }
    for Node { mount, path, what } in nodes {
        match what {
            What::File { size, executable, key } => tree.file(mount, path, size, executable, key),
            What::Symlink { text } => tree.symlink(mount, path, text.0),
            What::Directory => tree.directory(mount, path),
        };
    }
    let tree = tree.build().map_err(|error| error.to_string())?;
    Ok(View::new(Arc::new(tree), Arc::new(contents)))
}

/// How long a result may wait for others, at most: the parent measures by it how long the next one takes.
const DELAY: Duration = Duration::from_millis(10);

/// The pipes to the parent.
struct Pipes(Mutex<Streams>);

struct Streams {
    input: BufReader<Stdin>,
    output: BufWriter<Stdout>,
    flushed: Instant,
    /// Questions that came while contents were waited for, since the parent asks ahead; with the contents that came
    /// with them.
    ahead: VecDeque<(Ask, Vec<u8>)>,
}

impl Streams {
    /// The next message, with the bytes that belong to it.
    fn next(&mut self) -> io::Result<(Ask, Vec<u8>)> {
        let ask = frame::read_message(&mut self.input)?;
        let bytes = match ask {
            Ask::Call { ref inline, .. } if inline.is_empty() => Vec::new(),
            Ask::Compile | Ask::Load | Ask::Here { .. } | Ask::Call { .. } => match frame::read(&mut self.input)? {
                (frame::Kind::Bytes, bytes) => bytes,
                (frame::Kind::Message, _) => return Err(io::ErrorKind::InvalidData.into()),
            },
            Ask::Try { .. } | Ask::Describe { .. } | Ask::Validate { .. } | Ask::Job { .. } | Ask::Gone { .. } => {
                Vec::new()
            }
        };
        Ok((ask, bytes))
    }
}

impl Pipes {
    fn with<R>(&self, use_it: impl FnOnce(&mut Streams) -> R) -> R {
        // One thread talks; a panic while it does ends the process.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next question, with the bytes that belong to it.
    fn hear(&self) -> io::Result<(Ask, Vec<u8>)> {
        self.with(|streams| streams.ahead.pop_front().map_or_else(|| streams.next(), Ok))
    }

    /// The contents that were asked for, and what came behind them; questions that come first are kept for later.
    fn contents(&self) -> io::Result<Result<Handed, String>> {
        self.with(|streams| {
            loop {
                match streams.next()? {
                    (Ask::Here { len, ahead }, bytes) => return Ok(Ok((len, ahead, bytes))),
                    (Ask::Gone { path }, _) => return Ok(Err(path)),
                    other => streams.ahead.push_back(other),
                }
            }
        })
    }

    fn say(&self, say: &Say) -> io::Result<()> {
        self.with(|streams| {
            frame::write_message(&mut streams.output, say)?;
            // Results can wait for each other while there are more questions at hand: each writing wakes the parent.
            let more = !streams.ahead.is_empty() || !streams.input.buffer().is_empty();
            if more && matches!(say, Say::Called(..)) && streams.flushed.elapsed() < DELAY {
                return Ok(());
            }
            streams.flushed = Instant::now();
            streams.output.flush()
        })
    }

    fn give(&self, bytes: &[u8]) -> io::Result<()> {
        self.with(|streams| {
            frame::write_bytes(&mut streams.output, bytes)?;
            streams.output.flush()
        })
    }
}

/// How many bytes were asked for, which files lie behind them, and all of these bytes.
type Handed = (usize, Vec<Piece>, Vec<u8>);

/// Contents over the pipe: what came before it was asked for, or what is asked for now.
struct Remote {
    pipes: Arc<Pipes>,
    kept: Mutex<Kept>,
}

/// The most bytes of files that are kept for when they will be read. A check that reads in another order than expected
/// asks again.
const KEPT_BYTES: usize = 4 << 20;

/// Files that came before they were asked for.
#[derive(Default)]
struct Kept {
    files: HashMap<u32, Vec<u8>>,
    bytes: usize,
}

impl Kept {
    /// Keeps these files, whose bytes lie one behind the other. What is missing will be asked for.
    fn add(&mut self, pieces: &[Piece], mut bytes: &[u8]) {
        if self.bytes + bytes.len() > KEPT_BYTES {
            *self = Self::default();
        }
        for piece in pieces {
            let Some((one, rest)) = bytes.split_at_checked(piece.len) else { return };
            bytes = rest;
            self.bytes += one.len();
            if let Some(before) = self.files.insert(piece.key, one.to_vec()) {
                self.bytes -= before.len();
            }
        }
    }
}

impl Remote {
    fn kept<R>(&self, use_it: impl FnOnce(&mut Kept) -> R) -> R {
        // One thread reads; a panic while it does ends the process.
        use_it(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Contents for Remote {
    fn read(&self, key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = |bytes: &Vec<u8>| bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec);
        if let Some(bytes) = self.kept(|kept| kept.files.get(&key).and_then(part)) {
            return Ok(bytes);
        }
        let failed = |error: io::Error| ContentsError::Failed(error.to_string());
        self.pipes.say(&Say::Need { key, offset, len }).map_err(failed)?;
        let (asked, ahead, mut bytes) = self.pipes.contents().map_err(failed)?.map_err(ContentsError::Changed)?;
        if let Some(more) = bytes.get(asked..) {
            self.kept(|kept| kept.add(&ahead, more));
        }
        bytes.truncate(asked);
        Ok(bytes)
    }

    fn identity(&self, _key: u32) -> String {
        String::new()
    }
}
