//! What belongs to a subject by name: in a repository what git tracks and what it neither tracks nor ignores, outside
//! of one every file that no ignore file leaves out. Nothing is looked at here.

use super::error::SnapshotError;
use super::git::{Committed, Listing, Repository};
use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a walk outside version control reads to know what to leave out.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// A path that belongs to the subject, before it was looked at.
pub(super) struct Candidate {
    pub(super) path: Vec<u8>,
    pub(super) tracked: bool,
    pub(super) left_out: bool,
    /// Of a repository inside: what it is at.
    pub(super) commit: Option<String>,
    pub(super) committed: Option<Committed>,
}

/// Adds what belongs to a repository: what it tracks, what it neither tracks nor ignores, and the same of every
/// repository inside. `below` is the part of it that is verified, `at` is where it stands in the subject.
pub(super) fn collect(
    repository: &Repository,
    below: &[u8],
    at: &[u8],
    into: &mut Vec<Candidate>,
    dirty: &mut bool,
) -> Result<(), SnapshotError> {
    let (listing, committed) = std::thread::scope(|scope| {
        let committed = scope.spawn(|| repository.committed());
        let listing = repository.list();
        // A panic of the thread is a bug, and is shown as one.
        let committed = committed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (listing, committed)
    });
    let Listing { tracked, untracked } = listing?;
    let mut committed: HashMap<Vec<u8>, Committed> =
        committed?.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
    let relative = |path: &[u8]| {
        let inside = if below.is_empty() { Some(path) } else { path.strip_prefix(below)?.strip_prefix(b"/") };
        inside.map(|inside| join(at, inside))
    };
    for entry in tracked {
        let committed = committed.remove(&entry.path);
        let Some(path) = relative(&entry.path) else { continue };
        if entry.mode == 0o160_000 {
            nested(repository, &entry.path, path, true, entry.skipped, committed, into, dirty)?;
        } else {
            into.push(Candidate { path, tracked: true, left_out: entry.skipped, commit: None, committed });
        }
    }
    // What the commit has and the index has not was removed.
    *dirty |= committed.keys().any(|path| relative(path).is_some());
    for path in untracked {
        *dirty |= relative(&path).is_some();
        let Some(inside) = relative(&path) else { continue };
        if let Some(folder) = path.strip_suffix(b"/") {
            let inside = inside.strip_suffix(b"/").unwrap_or(&inside).to_vec();
            nested(repository, folder, inside, false, false, None, into, dirty)?;
        } else {
            into.push(Candidate { path: inside, tracked: false, left_out: false, commit: None, committed: None });
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one recursion of `collect`, with what it already knows")]
fn nested(
    outer: &Repository,
    folder: &[u8],
    path: Vec<u8>,
    tracked: bool,
    skipped: bool,
    committed: Option<Committed>,
    into: &mut Vec<Candidate>,
    dirty: &mut bool,
) -> Result<(), SnapshotError> {
    let inner = if skipped { None } else { outer.inner(folder)? };
    let commit = inner.as_ref().map(|inner| inner.commit.clone().unwrap_or_default());
    let left_out = inner.is_none();
    if let Some(inner) = inner {
        collect(&inner, b"", &path, into, dirty)?;
    } else {
        // Git looks no further where a submodule should be; commands see what was put there all the same.
        let before = into.len();
        walk(&outer.top.join(std::ffi::OsStr::from_bytes(folder)), &path, false, into)?;
        *dirty |= into.len() > before;
    }
    into.push(Candidate { path, tracked, left_out, commit, committed });
    Ok(())
}

fn join(at: &[u8], inside: &[u8]) -> Vec<u8> {
    if at.is_empty() { inside.to_vec() } else { [at, b"/", inside].concat() }
}

/// Adds every file of a folder outside version control, less what ignore files in it leave out if they are `heeded`.
/// Nothing where there is no folder. `at` is where it stands in the subject.
pub(super) fn walk(folder: &Path, at: &[u8], heeded: bool, into: &mut Vec<Candidate>) -> Result<(), SnapshotError> {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    // Reading a FIFO of that name would wait for ever, and a device may have no end.
    let unreadable = Arc::new(OnceLock::new());
    let fits = {
        let unreadable = Arc::clone(&unreadable);
        move |folder: &Path| {
            let strange = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
            let mut read = IGNORE_FILES.iter().filter(|_| heeded).map(|name| folder.join(name));
            read.find(strange).is_none_or(|path| unreadable.set(path).is_err())
        }
    };
    let within = at.is_empty();
    if fits(folder) {
        let walker = ignore::WalkBuilder::new(folder)
            .standard_filters(heeded)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false)
            .follow_links(false)
            // Probity's own state is never part of a subject, and neither is what git keeps of a repository.
            .filter_entry(move |entry| {
                let own =
                    entry.file_name() == ".git" || (within && entry.depth() == 1 && entry.file_name() == ".probity");
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.depth() == 0 || (!own && (!is_folder || fits(entry.path())))
            })
            .build();
        for entry in walker {
            let entry = entry?;
            if entry.depth() == 0 || entry.file_type().is_some_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).as_os_str().as_bytes();
            let path = join(at, path);
            into.push(Candidate { path, tracked: false, left_out: false, commit: None, committed: None });
        }
    }
    let Some(path) = unreadable.get() else { return Ok(()) };
    let path = path.strip_prefix(folder).unwrap_or(path).as_os_str().as_bytes();
    let path = String::from_utf8_lossy(&join(at, path)).into_owned();
    Err(SnapshotError::Read { path, source: io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file") })
}
