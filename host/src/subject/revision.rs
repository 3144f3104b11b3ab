//! A revision: what a commit holds, straight from git's objects and without a checkout.
//!
//! Whoever reads gets what the commit's id stands for or an error: each object is hashed and compared with its id, and
//! the listing is put back together into the trees that the commit names.

use super::blob::object_id;
use super::entry::{Entry, Kind, StatKey};
use super::git::{Batch, Committed, GitError, Repository};
use super::look::{Hashed, hash};
use super::snapshot::{Snapshot, Workspace};
use crate::model::Digest;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How many objects are asked for before the first answer is taken: their lines fit in the pipe to git many times over.
const AHEAD: usize = 64;

/// The most bytes of an object that are kept as they are; beyond it they go to a temporary file.
const IN_MEMORY: u64 = 16 << 20;

/// What a commit holds at and below the root of a workspace.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The commit, as `sha1:…` or `sha256:…`.
    pub commit: String,
    /// Sorted bytewise by path, relative to the root; each with its size, submodules without one.
    pub entries: Vec<Committed>,
}

impl Revision {
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
        let id = commit.split_once(':').map_or(commit, |(_, id)| id);
        let listed = repository.tree(id)?;
        let named = Objects::new(repository).commit_tree(id)?;
        if root_tree(&listed, &named) != named {
            return Err(GitError::NotTheObject(named));
        }
        let inside = |mut entry: Committed| {
            if !self.below.is_empty() {
                entry.path = entry.path.strip_prefix(&self.below[..])?.strip_prefix(b"/")?.to_vec();
            }
            Some(entry)
        };
        let mut entries: Vec<Committed> = listed.into_iter().filter_map(inside).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(Revision { commit: commit.to_owned(), entries }))
    }

    /// The subject that a revision is: as a checkout of it without its submodules would be, with nothing converted.
    pub fn snapshot_of(&self, revision: &Revision) -> Result<Snapshot, GitError> {
        let Some(repository) = &self.repository else { return Err(GitError::NoObject(revision.commit.clone())) };
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
                blob: Some(committed.id.clone()),
                id: Some(committed.id.clone()),
                converted: None,
                stat: StatKey::default(),
            };
            if kind != Kind::LeftOut {
                while asked < AHEAD {
                    let Some(next) = coming.next() else { break };
                    batch.ask(&next.id)?;
                    asked += 1;
                }
                asked -= 1;
                if kind == Kind::Symlink {
                    one.text = bytes(&mut batch, &committed.id)?;
                    (one.size, one.digest) = (one.text.len() as u64, Digest::of(&one.text));
                } else {
                    let hashed = batch.answer("blob", &committed.id, |size, contents| hash(contents, size, None))?;
                    let Hashed { size, digest, pieces, id: _ } = hashed;
                    (one.size, one.digest, one.pieces) = (size, digest, pieces);
                }
            }
            entries.push(one);
        }
        let taken = SystemTime::UNIX_EPOCH;
        let snapshot = Snapshot::new(entries, Some(revision.commit.clone()), Some(false), taken);
        Ok(Snapshot { revision: true, ..snapshot })
    }
}

/// The id of the root tree that these entries make. `like` is an id of the same algorithm.
fn root_tree(listed: &[Committed], like: &str) -> String {
    // Folders that are open, the outermost first: what goes before the name of the next, and the tree so far.
    let mut open: Vec<(Vec<u8>, Vec<u8>)> = vec![(Vec::new(), Vec::new())];
    let close = |open: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        let Some((path, tree)) = open.pop() else { return };
        let Some((_, around)) = open.last_mut() else { return };
        let folder = path.strip_suffix(b"/").unwrap_or(&path);
        let name = folder.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        line(around, 0o40_000, name, &object_id(like, "tree", &tree));
    };
    // Git lists depth first, in its own order of names, which is the order of the lines of each tree.
    for entry in listed {
        while open.len() > 1 && open.last().is_some_and(|(path, _)| !entry.path.starts_with(path)) {
            close(&mut open);
        }
        let mut at = open.last().map_or(0, |(path, _)| path.len());
        while let Some(next) = entry.path[at..].iter().position(|byte| *byte == b'/') {
            at += next + 1;
            open.push((entry.path[..at].to_vec(), Vec::new()));
        }
        if let Some((_, tree)) = open.last_mut() {
            line(tree, entry.mode, &entry.path[at..], &entry.id);
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    object_id(like, "tree", &open.pop().map(|(_, tree)| tree).unwrap_or_default())
}

fn line(tree: &mut Vec<u8>, mode: u32, name: &[u8], id: &str) {
    tree.extend_from_slice(format!("{mode:o} ").as_bytes());
    tree.extend_from_slice(name);
    tree.push(0);
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
    // An id has an even number of digits, each below 16.
    tree.extend(id.as_bytes().chunks(2).map(|pair| {
        let value = digit(pair[0]) << 4 | pair.get(1).map_or(0, |low| digit(*low));
        u8::try_from(value).unwrap_or(0)
    }));
}

fn bytes(batch: &mut Batch, id: &str) -> Result<Vec<u8>, GitError> {
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
    large: Option<(String, std::fs::File)>,
}

impl Objects {
    /// Starts nothing yet.
    pub fn new(repository: &Repository) -> Self {
        Self { repository: repository.clone(), open: Mutex::default() }
    }

    /// The id of the tree that a commit names.
    fn commit_tree(&self, commit: &str) -> Result<String, GitError> {
        let text = self.with(commit, |batch| {
            batch.answer("commit", commit, |_, contents| {
                let mut text = Vec::new();
                contents.take(1 << 10).read_to_end(&mut text)?;
                Ok(text)
            })
        })?;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let tree = line.strip_prefix(b"tree ").and_then(|id| String::from_utf8(id.to_vec()).ok());
        tree.ok_or_else(|| GitError::NotTheObject(commit.to_owned()))
    }

    /// A blob, whole.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        self.with(id, |batch| bytes(batch, id))
    }

    /// `len` bytes at `offset` of a blob. None where it is shorter.
    pub fn part(&self, id: &str, offset: u64, len: usize) -> Result<Option<Vec<u8>>, GitError> {
        use std::os::unix::fs::FileExt as _;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = open.large.as_ref().filter(|(kept, _)| kept == id);
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
            open.large = Some((id.to_owned(), file));
        }
        let Some((_, file)) = &open.large else { return Ok(None) };
        if file.metadata()?.len() < offset.saturating_add(len as u64) {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }

    fn with<R>(&self, id: &str, take: impl FnOnce(&mut Batch) -> Result<R, GitError>) -> Result<R, GitError> {
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
