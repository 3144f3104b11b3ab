//! The folders of a subject while commands run: what a second look at files cannot see. A folder that was swapped and put
//! back leaves its files as they were, and a file that came and went leaves none.
//!
//! On Linux the kernel tells which names come and go (inotify). Where it does not, a folder in which something came or went
//! counts as touched, whatever that was.
//!
//! Against accidents and ordinary tools: a store through a mapping, a mount put over a folder, and a clock that was set back
//! leave no trace here.

use super::beneath::{Root, stat};
use super::entry::StatKey;
use super::snapshot::{Snapshot, Workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The most names that are asked about; what is more counts.
const MAX_ASKED: usize = 10_000;

/// Folders that are looked after.
#[derive(Debug)]
pub struct Watch {
    folders: BTreeMap<Vec<u8>, StatKey>,
    names: Option<Names>,
}

/// What happened meanwhile: paths, sorted. Those of folders end with a slash.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Folders that are others than they were, or were for a while.
    pub moved: Vec<String>,
    /// What came and went, or may have.
    pub touched: Vec<String>,
}

impl Watch {
    /// From here on, the folders that hold entries of the subject.
    pub fn start(workspace: &Workspace, snapshot: &Snapshot) -> Self {
        let mut folders: BTreeSet<&[u8]> = BTreeSet::from([&b""[..]]);
        for entry in snapshot.iter() {
            let mut path = entry.path.as_slice();
            while let Some(at) = path.iter().rposition(|byte| *byte == b'/') {
                path = &path[..at];
                if !folders.insert(path) {
                    break;
                }
            }
        }
        let root = &workspace.root;
        let Ok(base) = open(root) else {
            return Self { folders: BTreeMap::new(), names: None };
        };
        let clock = std::time::Instant::now();
        // Names first: what happens between the two is seen twice rather than not at all.
        let names = Names::start(root, folders.iter().copied());
        let folders = folders.into_iter().filter_map(|path| Some((path.to_vec(), times(&base, path)?))).collect();
        let watch = Self { folders, names };
        tracing::debug!(folders = watch.folders.len(), names = watch.names.is_some(), elapsed = ?clock.elapsed(), "watching");
        watch
    }

    /// What happened until now. `later` is the subject as it is.
    pub fn end(self, workspace: &Workspace, before: &Snapshot, later: &Snapshot) -> Happened {
        let mut happened = Happened::default();
        let Ok(base) = open(&workspace.root) else { return happened };
        let shown = |path: &[u8]| format!("{}/", String::from_utf8_lossy(if path.is_empty() { b"." } else { path }));
        let told = self.names.and_then(Names::end);
        let mut stirred = Vec::new();
        for (path, then) in &self.folders {
            match times(&base, path) {
                // One that is gone took what it held along, and that is seen.
                None => {}
                Some(now) if now == *then => {}
                Some(now) if (now.inode, now.device) != (then.inode, then.device) || now.modified == then.modified => {
                    happened.moved.push(shown(path));
                }
                Some(_) => stirred.push(path),
            }
        }
        match told {
            Some(names) => happened.touched = came_and_went(workspace, names, before, later),
            // Nobody says what that was.
            None => happened.touched = stirred.into_iter().map(|path| shown(path)).collect(),
        }
        happened
    }
}

/// The names that neither snapshot has, and that would be part of the subject if they were there.
fn came_and_went(workspace: &Workspace, names: BTreeSet<Vec<u8>>, before: &Snapshot, later: &Snapshot) -> Vec<String> {
    let own = |path: &[u8]| path.split(|byte| *byte == b'/').any(|part| matches!(part, b".git" | b".probity"));
    let is_there = |snapshot: &Snapshot, path: &[u8]| match path.strip_suffix(b"/") {
        Some(folder) => snapshot.has_below(folder) || snapshot.entry(folder).is_some(),
        None => snapshot.entry(path).is_some(),
    };
    let names = names.into_iter().filter(|path| !own(path) && !is_there(before, path) && !is_there(later, path));
    // A folder that came and stayed holds nothing of the subject, or that is seen.
    let names = names.filter(|path| !workspace.root.join(OsStr::from_bytes(path)).is_dir());
    let mut names: Vec<Vec<u8>> = names.collect();
    if let Some(repository) = &workspace.repository
        && (1..=MAX_ASKED).contains(&names.len())
    {
        let inside: Vec<Vec<u8>> = names.iter().filter_map(|path| workspace.path_in_repository(path)).collect();
        // Where git does not say, they count.
        if let Ok(ignored) = repository.ignored(&inside) {
            names.retain(|path| workspace.path_in_repository(path).is_none_or(|inside| !ignored.contains(&inside)));
        }
    }
    names.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

fn open(root: &Path) -> io::Result<OwnedFd> {
    Root::open(root)?.folder(b"")
}

fn times(base: &OwnedFd, path: &[u8]) -> Option<StatKey> {
    stat(base, if path.is_empty() { b"." } else { path }).ok().map(|stat| StatKey::of(&stat))
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Names {
    kernel: OwnedFd,
    folders: std::collections::HashMap<i32, Vec<u8>>,
}

#[cfg(target_os = "linux")]
impl Names {
    /// None where not all of these folders can be watched.
    fn start<'a>(root: &Path, folders: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let kernel = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let events = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        let flags = events | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        let mut watched = std::collections::HashMap::new();
        for folder in folders {
            match add_watch(&kernel, root.join(OsStr::from_bytes(folder)), flags) {
                Ok(watch) => {
                    watched.insert(watch, folder.to_vec());
                }
                // What is no folder any more is seen by what it held.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(error) => {
                    tracing::debug!(%error, "folders cannot be watched");
                    return None;
                }
            }
        }
        Some(Self { kernel, folders: watched })
    }

    /// The names that came or went; those of folders end with a slash. None where there were too many to tell.
    fn end(self) -> Option<BTreeSet<Vec<u8>>> {
        let names = self.names();
        // The kernel takes its time to take watches down, and nobody has to wait for that.
        std::thread::spawn(move || drop(self.kernel));
        names
    }

    fn names(&self) -> Option<BTreeSet<Vec<u8>>> {
        use rustix::fs::inotify::{ReadFlags, Reader};
        let mut buffer = [std::mem::MaybeUninit::uninit(); 8 << 10];
        let mut reader = Reader::new(&self.kernel, &mut buffer);
        let mut names = BTreeSet::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::WOULDBLOCK) => return Some(names),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return None;
            }
            if let (Some(folder), Some(name)) = (self.folders.get(&event.wd()), event.file_name()) {
                let between: &[u8] = if folder.is_empty() { b"" } else { b"/" };
                let after: &[u8] = if event.events().contains(ReadFlags::ISDIR) { b"/" } else { b"" };
                names.insert([folder, between, name.to_bytes(), after].concat());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct Names;

#[cfg(not(target_os = "linux"))]
impl Names {
    fn start<'a>(_: &Path, _: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        None
    }

    fn end(self) -> Option<BTreeSet<Vec<u8>>> {
        None
    }
}
