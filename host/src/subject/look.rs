//! Looking at what belongs to a subject: what each entry is, and what is in it.
//!
//! Contents are hashed from the very bytes that are read. An entry that shows no sign of having been touched since it
//! was last read is not read again.

use super::beneath::{self, Root};
use super::blob::{ObjectHash, blob_id};
use super::collect::{Candidate, Held};
use super::entry::{Entry, Kind, StatKey};
use super::error::SnapshotError;
use super::id::ObjectId;
use super::memory::Known;
use super::patience::Patience;
use super::pieces::{PIECE, Pieces, piece};
use crate::model::Digest;
use rustix::fs::{FileType, Stat};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// The entry as it is. None where there is nothing at that path.
pub(super) type Looked = Option<Arc<Entry>>;

/// What came of a thread. A panic of it is a bug, and is shown as one.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(super) fn look_at_all(
    root: &Root,
    candidates: &[Candidate],
    known: Known<'_>,
    learnt: &AtomicBool,
    patience: &Patience,
) -> Result<Vec<Looked>, SnapshotError> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    let share = candidates.len().div_ceil(threads).max(1);
    let parts: Vec<Result<Vec<Looked>, SnapshotError>> = std::thread::scope(|scope| {
        let look = |part| scope.spawn(move || Looker { root, folder: None, known, learnt, patience }.look_at(part));
        let threads: Vec<_> = candidates.chunks(share).map(look).collect();
        threads.into_iter().map(joined).collect()
    });
    let mut looked = Vec::with_capacity(candidates.len());
    for part in parts {
        looked.extend(part?);
    }
    Ok(looked)
}

/// Which of the known files show no sign of having been touched: one answer for each, in their order. It needs no names
/// from git, and can be asked while git is asked for them.
pub(super) fn untouched(root: &Root, known: Known<'_>) -> Vec<bool> {
    let entries = known.entries();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    let share = entries.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let look = |part: &[Arc<Entry>]| -> Vec<bool> {
            let learnt = AtomicBool::new(false);
            let mut looker = Looker { root, folder: None, known, learnt: &learnt, patience: &Patience::default() };
            let same =
                |entry: &Arc<Entry>| looker.stat(&entry.path).is_ok_and(|(_, stat)| StatKey::of(&stat) == entry.stat);
            part.iter().map(same).collect()
        };
        let threads: Vec<_> = entries.chunks(share).map(|part| scope.spawn(move || look(part))).collect();
        threads.into_iter().flat_map(joined).collect()
    })
}

/// The file at `path` below `root`, outside of any subject. None where there is none.
pub fn look_at(root: &Root, path: &[u8]) -> io::Result<Looked> {
    let candidate = Candidate::untracked(path.to_vec());
    let (learnt, patience) = (&AtomicBool::new(false), &Patience::default());
    Looker { root, folder: None, known: Known::nothing(), learnt, patience }.look(&candidate)
}

struct Looker<'a> {
    root: &'a Root,
    /// The folder of the last entry: neighbours share it, and opening it by handle keeps links out.
    folder: Option<(Vec<u8>, io::Result<OwnedFd>)>,
    known: Known<'a>,
    learnt: &'a AtomicBool,
    patience: &'a Patience,
}

impl Looker<'_> {
    fn look_at(mut self, candidates: &[Candidate]) -> Result<Vec<Looked>, SnapshotError> {
        candidates
            .iter()
            .map(|candidate| {
                self.patience.check().and_then(|()| self.look(candidate)).map_err(|source| SnapshotError::Read {
                    path: String::from_utf8_lossy(&candidate.path).into_owned(),
                    source,
                })
            })
            .collect()
    }

    /// What is at a path, and its folder.
    fn stat(&mut self, path: &[u8]) -> io::Result<(&OwnedFd, Stat)> {
        let (folder, name) = split(path);
        if self.folder.as_ref().is_none_or(|(path, _)| path != folder) {
            self.folder = Some((folder.to_vec(), self.root.folder(folder)));
        }
        match self.folder.as_ref().map(|(_, opened)| opened.as_ref()) {
            Some(Ok(opened)) => beneath::stat(opened, name).map(|stat| (opened, stat)),
            Some(Err(error)) => Err(again(error)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn look(&mut self, candidate: &Candidate) -> io::Result<Looked> {
        if let Some(commit) = &candidate.commit {
            return Ok(Some(entry(candidate, Kind::Submodule, commit.as_bytes(), StatKey::default()).into()));
        }
        if let Some(known) = self.known.untouched(&candidate.path).filter(|_| !candidate.unlisted)
            && let Some(entry) = remembered(candidate, known)
        {
            return Ok(Some(entry));
        }
        let (root, known, learnt) = (self.root, self.known, self.learnt);
        let name = split(&candidate.path).1;
        let (opened, stat) = match self.stat(&candidate.path) {
            Ok(found) => found,
            Err(error) if is_absence(&error) => {
                return Ok(candidate.left_out.then(|| absent(candidate).into()));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Some(entry(candidate, Kind::Unreadable, b"", StatKey::default()).into()));
            }
            Err(error) => return Err(error),
        };
        let key = StatKey::of(&stat);
        let committed = candidate.committed;
        if candidate.unlisted {
            // Whoever says so may be wrong.
            let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            let unlisted = folder && root.folder(&candidate.path).as_ref().is_err_and(denied);
            return Ok(unlisted.then(|| entry(candidate, Kind::Unreadable, b"", key).into()));
        }
        let entry = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let known = known.get(&candidate.path).filter(|known| known.stat == key);
                if let Some(entry) = known.and_then(|known| remembered(candidate, known)) {
                    return Ok(Some(entry));
                }
                learnt.store(true, Ordering::Relaxed);
                match beneath::file_in(opened, name) {
                    Ok(file) => {
                        // Another file than the one that was looked at is not known by what was seen of that one.
                        let key = if StatKey::of(&rustix::fs::fstat(&file)?) == key { key } else { StatKey::default() };
                        let expected = u64::try_from(stat.st_size).unwrap_or(0);
                        let Hashed { size, digest, pieces, id } =
                            hash(self.patience.reading(file), expected, committed)?;
                        let blob = committed.map(|c| c.id).filter(|blob| id == Some(*blob));
                        let kind = StatKey::of(&stat).kind();
                        Entry { size, digest, pieces, blob, id, ..entry(candidate, kind, b"", key) }
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        entry(candidate, Kind::Unreadable, b"", key)
                    }
                    Err(error) => return Err(error),
                }
            }
            FileType::Symlink => {
                let text = beneath::link_in(opened, name)?;
                let blob = committed.map(|c| c.id).filter(|id| blob_id(*id, &text) == *id);
                Entry { blob, ..entry(candidate, Kind::Symlink, &text, key) }
            }
            // A tracked file whose place a folder took is gone; what the folder holds is listed by itself. The folder
            // of a submodule that was not initialised is left out.
            FileType::Directory => {
                return Ok(candidate.left_out.then(|| absent(candidate).into()));
            }
            special => entry(candidate, Kind::Special, special_contents(special, &stat).as_bytes(), key),
        };
        Ok(Some(entry.into()))
    }
}

/// The entry that is known of a file whose signs are all as they were. None where git's id of it is needed and not known,
/// or the reverse.
fn remembered(candidate: &Candidate, known: &Arc<Entry>) -> Looked {
    let committed = candidate.committed;
    let alike = match (&known.id, committed) {
        (Some(id), Some(committed)) => id.is_sha256() == committed.id.is_sha256(),
        (None, None) => true,
        _ => false,
    };
    if !alike || !matches!(known.kind, Kind::File | Kind::Executable) {
        return None;
    }
    let blob = committed.map(|c| c.id).filter(|blob| known.id == Some(*blob));
    let (tracked, kind) = (candidate.tracked, known.stat.kind());
    if (known.tracked, known.kind, known.blob) == (tracked, kind, blob) {
        return Some(Arc::clone(known));
    }
    Some(Arc::new(Entry { kind, tracked, blob, ..Entry::clone(known) }))
}

/// A path's folder and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]))
}

/// The entry of what is tracked and left out here.
fn absent(candidate: &Candidate) -> Entry {
    let id = candidate.absent.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    Entry { id: ObjectId::parse(id), ..entry(candidate, Kind::LeftOut, &candidate.absent, StatKey::default()) }
}

fn entry(candidate: &Candidate, kind: Kind, contents: &[u8], stat: StatKey) -> Entry {
    let (path, tracked) = (candidate.path.clone(), candidate.tracked);
    let text = if kind == Kind::Symlink { contents.to_vec() } else { Vec::new() };
    let (size, digest) = (contents.len() as u64, Digest::of(contents));
    Entry { path, kind, size, digest, tracked, text, pieces: None, blob: None, id: None, converted: None, stat }
}

/// What stands for the contents of what has none to read: its kind, and of a device which one it is.
fn special_contents(kind: FileType, stat: &Stat) -> String {
    let device = || format!("{}:{}", rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    match kind {
        FileType::Fifo => "fifo".to_owned(),
        FileType::Socket => "socket".to_owned(),
        FileType::CharacterDevice => format!("char {}", device()),
        FileType::BlockDevice => format!("block {}", device()),
        _ => "unknown".to_owned(),
    }
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Nothing is there, or what is there on the way is no folder (a link or a file took its place).
fn is_absence(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP))
}

pub(super) struct Hashed {
    pub(super) size: u64,
    pub(super) digest: Digest,
    pub(super) pieces: Option<Pieces>,
    pub(super) id: Option<ObjectId>,
}

/// Size, digest and, where there is one to compare with, git's id of a file's contents, from one reading.
pub(super) fn hash(contents: impl Read, expected: u64, committed: Option<Held>) -> io::Result<Hashed> {
    let mut blob = committed.map(|committed| ObjectHash::new(committed.id, "blob", expected));
    // One byte more than expected, so that the end of a small file is seen without a larger buffer.
    let capacity = usize::try_from(expected.saturating_add(1).min(PIECE)).unwrap_or(0);
    let mut reader = contents.take(PIECE);
    let mut bytes = Vec::with_capacity(capacity);
    let mut first = None;
    let mut values = Vec::new();
    let mut size = 0;
    loop {
        bytes.clear();
        reader.set_limit(PIECE);
        let count = reader.read_to_end(&mut bytes)? as u64;
        if count == 0 && first.is_some() {
            break;
        }
        if let Some(blob) = &mut blob {
            blob.update(&bytes);
        }
        // The values of inner pieces are needed only where there is a second piece, which most files have not.
        match &first {
            None => first = Some((Digest::of(&bytes), (count == PIECE).then(|| piece(0, &bytes)))),
            Some((_, value)) => {
                values.extend(if values.is_empty() { *value } else { None });
                values.push(piece(size, &bytes));
            }
        }
        size += count;
        if count < PIECE {
            break;
        }
    }
    let pieces = Pieces::new(values);
    let whole = first.map(|(digest, _)| digest);
    let digest = pieces.as_ref().map(|pieces| Digest::from_hash(pieces.root())).or(whole);
    Ok(Hashed { size, digest: digest.unwrap_or_else(|| Digest::of(b"")), pieces, id: blob.map(ObjectHash::finish) })
}
