//! A revision: what a commit holds, straight from git's objects and without a checkout.
//!
//! Whoever reads gets what the commit's id stands for or an error: each object is hashed and compared with its id.

use super::collect::{self, absent};
use super::entry::{Entry, Kind, StatKey};
use super::git::{Batch, Committed, GitError, Indexed, Repository};
use super::id::ObjectId;
use super::look::{Hashed, hash};
use super::snapshot::{Snapshot, Workspace};
use super::trees::{self, AHEAD, LONGEST};
use crate::model::Digest;
use std::ffi::OsStr;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The most bytes of an object that are kept as they are; beyond it they go to a temporary file.
const IN_MEMORY: u64 = 16 << 20;

/// What a commit, or the index, holds at and below the root of a workspace.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The commit, as `sha1:…` or `sha256:…`; of the index the one that is checked out. None before the first one.
    pub commit: Option<String>,
    /// Whether it differs from that commit, as an index may.
    pub dirty: bool,
    /// Sorted bytewise by path, relative to the root; each with its size, submodules without one.
    pub entries: Vec<Committed>,
    /// Paths of an index that a commit of it would not have.
    pub intended: Vec<Vec<u8>>,
}

impl Revision {
    /// The entries to whose path `wanted` says yes.
    pub fn named(self, wanted: impl Fn(&[u8]) -> bool) -> Vec<Committed> {
        self.entries.into_iter().filter(|entry| wanted(&entry.path)).collect()
    }

    /// The entry at `path`.
    pub fn entry(&self, path: &[u8]) -> Option<&Committed> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok().map(|index| &self.entries[index])
    }
}

/// What kind of entry git's mode stands for.
pub fn kind_of_mode(mode: u32) -> Kind {
    match mode {
        0o120_000 => Kind::Symlink,
        0o160_000 => Kind::LeftOut,
        mode if mode & 0o100 != 0 => Kind::Executable,
        _ => Kind::File,
    }
}

impl Workspace {
    /// What a commit, as `sha1:…` or `sha256:…`, holds at and below the root. None outside version control.
    pub fn revision(&self, commit: &str) -> Result<Option<Revision>, GitError> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let id = ObjectId::of_commit(commit).ok_or_else(|| GitError::NoObject(commit.to_owned()))?;
        let entries = self.sized(repository, trees::committed(repository, id)?)?;
        Ok(Some(Revision { commit: Some(commit.to_owned()), dirty: false, entries, intended: Vec::new() }))
    }

    /// What an index holds at and below the root: what a commit of it would. `named` is the value of `GIT_INDEX_FILE`,
    /// where there is one. None outside version control.
    pub fn staged(&self, named: Option<&OsStr>) -> Result<Option<Revision>, GitError> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let index = named.map(|named| repository.named_index(named)).transpose()?;
        let one = |Indexed { path, mode, id, skipped: _ }: Indexed| match id {
            Some(id) => Ok(Committed { path, mode, id, size: None }),
            None => Err(GitError::Unmerged(String::from_utf8_lossy(&path).into_owned())),
        };
        let mut listed = repository.indexed(index.as_deref())?.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let mut entries = self.sized(repository, listed)?;
        let mut intended = Vec::new();
        // What is only meant to be added is an empty file as the index lists it.
        if entries.iter().any(|entry| entry.size == Some(0)) {
            let all = repository.intended(index.as_deref())?;
            intended.extend(all.iter().filter_map(|path| self.inside(path)));
            entries.retain(|entry| intended.binary_search(&entry.path).is_err());
        }
        let commit = repository.commit.clone();
        let committed = commit.as_deref().map(|commit| self.revision(commit)).transpose()?.flatten();
        let dirty = committed.is_none_or(|committed| committed.entries != entries);
        Ok(Some(Revision { commit, dirty, entries, intended }))
    }

    /// Where a path of the repository is below the root. None for what is elsewhere.
    fn inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        collect::inside(&self.below, path).map(<[u8]>::to_vec)
    }

    /// What of these is at and below the root, with its size.
    fn sized(&self, repository: &Repository, listed: Vec<Committed>) -> Result<Vec<Committed>, GitError> {
        let inside = |entry: Committed| Some(Committed { path: self.inside(&entry.path)?, ..entry });
        let mut entries: Vec<Committed> = listed.into_iter().filter_map(inside).collect();
        let sized = || |entry: &&mut Committed| kind_of_mode(entry.mode) != Kind::LeftOut;
        let ids: Vec<ObjectId> = entries.iter_mut().filter(sized()).map(|entry| entry.id).collect();
        let known = repository.sizes(&ids)?;
        entries.iter_mut().filter(sized()).zip(known).for_each(|(entry, size)| entry.size = size);
        Ok(entries)
    }

    /// The subject that a revision is: as a checkout of it without its submodules would be, with nothing converted.
    pub fn snapshot_of(&self, revision: &Revision) -> Result<Snapshot, GitError> {
        let none = || GitError::NoObject(revision.commit.clone().unwrap_or_default());
        let repository = self.repository.as_ref().ok_or_else(none)?;
        let mut batch = repository.batch()?;
        let of_contents = |entry: &&Committed| kind_of_mode(entry.mode) != Kind::LeftOut;
        let (mut asked, mut coming) = (0, revision.entries.iter().filter(of_contents));
        let mut entries = Vec::with_capacity(revision.entries.len());
        for committed in &revision.entries {
            let kind = kind_of_mode(committed.mode);
            let mut one = Entry {
                path: committed.path.clone(),
                kind,
                size: 0,
                digest: Digest::of(b""),
                tracked: true,
                text: Vec::new(),
                pieces: None,
                blob: Some(committed.id),
                id: Some(committed.id),
                converted: None,
                stat: StatKey::default(),
            };
            if kind == Kind::LeftOut {
                let contents = absent(committed.mode, committed.id);
                (one.size, one.digest) = (contents.len() as u64, Digest::of(&contents));
            } else {
                while asked < AHEAD {
                    let Some(next) = coming.next() else { break };
                    batch.ask(next.id)?;
                    asked += 1;
                }
                asked -= 1;
                if kind == Kind::Symlink {
                    one.text = link(&mut batch, committed.id)?;
                    (one.size, one.digest) = (one.text.len() as u64, Digest::of(&one.text));
                } else {
                    let hashed = batch.answer("blob", committed.id, |size, contents| hash(contents, size, None))?;
                    let Hashed { size, digest, pieces, id: _ } = hashed;
                    (one.size, one.digest, one.pieces) = (size, digest, pieces);
                }
            }
            entries.push(one.into());
        }
        let taken = SystemTime::UNIX_EPOCH;
        let snapshot = Snapshot::new(entries, revision.commit.clone(), Some(revision.dirty), taken);
        Ok(Snapshot { revision: true, ..snapshot })
    }
}

/// The text of a link: no longer than a file system takes.
fn link(batch: &mut Batch, id: ObjectId) -> Result<Vec<u8>, GitError> {
    let text = batch.answer("blob", id, |_, contents| {
        let mut text = Vec::new();
        contents.take(LONGEST as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    })?;
    if text.len() > LONGEST {
        let why = format!("is a link of more than {LONGEST} bytes");
        return Err(GitError::Tree { id: id.to_string(), why });
    }
    Ok(text)
}

fn bytes(batch: &mut Batch, id: ObjectId) -> Result<Vec<u8>, GitError> {
    batch.answer("blob", id, |_, contents| {
        let mut bytes = Vec::new();
        contents.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// The objects of a repository, read when they are needed.
#[derive(Debug)]
pub struct Objects {
    repository: Repository,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    batch: Option<Batch>,
    /// A large object that was read last, checked: its pieces are asked for one after the other.
    large: Option<(ObjectId, std::fs::File)>,
}

impl Objects {
    /// Starts nothing yet.
    pub fn new(repository: &Repository) -> Self {
        Self { repository: repository.clone(), open: Mutex::default() }
    }

    /// A blob, whole.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>, GitError> {
        self.with(id, |batch| bytes(batch, id))
    }

    /// The text of a link: no longer than a file system takes.
    pub fn link(&self, id: ObjectId) -> Result<Vec<u8>, GitError> {
        self.with(id, |batch| link(batch, id))
    }

    /// `len` bytes at `offset` of a blob. None where it is shorter.
    pub fn part(&self, id: ObjectId, offset: u64, len: usize) -> Result<Option<Vec<u8>>, GitError> {
        use std::os::unix::fs::FileExt as _;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = open.large.as_ref().filter(|(kept, _)| *kept == id);
        if kept.is_none() {
            drop(open);
            let read = self.with(id, |batch| {
                batch.answer("blob", id, |size, contents| {
                    if size <= IN_MEMORY {
                        let mut bytes = Vec::new();
                        contents.read_to_end(&mut bytes)?;
                        return Ok(Ok(bytes));
                    }
                    let mut file = tempfile::tempfile()?;
                    std::io::copy(contents, &mut file)?;
                    Ok(Err(file))
                })
            })?;
            let file = match read {
                Ok(bytes) => {
                    let from = usize::try_from(offset).unwrap_or(usize::MAX);
                    return Ok(from.checked_add(len).and_then(|to| bytes.get(from..to)).map(<[u8]>::to_vec));
                }
                Err(file) => file,
            };
            open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.large = Some((id, file));
        }
        let Some((_, file)) = &open.large else { return Ok(None) };
        if file.metadata()?.len() < offset.saturating_add(len as u64) {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }

    fn with<R>(&self, id: ObjectId, take: impl FnOnce(&mut Batch) -> Result<R, GitError>) -> Result<R, GitError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = match open.batch.take() {
            Some(batch) => batch,
            None => self.repository.batch()?,
        };
        batch.ask(id)?;
        // A process whose answer was not taken to its end is of no use to the next question.
        let taken = take(&mut batch)?;
        open.batch = Some(batch);
        Ok(taken)
    }
}
