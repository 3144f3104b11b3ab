//! The snapshot: path, kind and content digest of every entry, taken once, in one order.

use super::beneath::Root;
use super::collect::{Collected, Exclude, Names, Source};
use super::difference;
use super::entry::{Entry, Kind, tree_digest};
use super::error::SnapshotError;
use super::git::{GitError, Repository};
use super::look::{self, look_at_all};
use super::memory::{Known, Memory, Trees};
use super::patience::Patience;
use crate::model::{Digest, Remark};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

/// Where a subject is taken from.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder that is verified, absolute: the one with the configuration.
    pub root: PathBuf,
    /// The repository it belongs to.
    pub repository: Option<Repository>,
    /// Where the root is below the top of the repository.
    pub(super) below: Vec<u8>,
    exclude: Exclude,
    /// How long looking at it may take.
    pub patience: Patience,
}

/// A subject, taken.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Sorted bytewise by path.
    pub entries: Vec<Arc<Entry>>,
    /// The digest of all entries.
    pub tree: Digest,
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// Whether the entries differ from that commit. None outside version control.
    pub dirty: Option<bool>,
    /// Whether it is a revision of the repository, whose contents are git's objects and not the working tree's files.
    pub revision: bool,
    /// What may be as the commit has it, though nobody can say so without running what a repository says: each with the
    /// reason. It counts as changed.
    pub unproven: Vec<Remark>,
    /// The repositories inside that differ from their own commits, or hold one that does.
    pub(super) dirty_inside: BTreeSet<Vec<u8>>,
    /// The trees of the commits that are checked out.
    pub(super) trees: Trees,
    /// Whether something had to be read for it that was not known before.
    pub(super) learnt: bool,
    pub(super) taken: SystemTime,
}

impl Workspace {
    /// The workspace of a folder, which must be absolute. Whatever is asked of it ends with an error once patience is
    /// over.
    pub fn of(root: &Path, patience: &Patience) -> Result<Self, GitError> {
        let repository = Repository::discover(root, patience)?;
        let real = root.canonicalize().map_err(GitError::Io)?;
        let below = repository.as_ref().and_then(|repository| real.strip_prefix(&repository.top).ok());
        let below = below.map(|below| below.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        Ok(Self { root: root.to_owned(), repository, below, exclude: Exclude::default(), patience: patience.clone() })
    }

    /// Where a path that is relative to the root is in the repository. None outside of one.
    pub fn path_in_repository(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.repository.as_ref()?;
        Some(if self.below.is_empty() { path.to_vec() } else { [&self.below, &b"/"[..], path].concat() })
    }

    /// The same without what is not tracked and whose path, relative to the root, `exclude` says yes to. What is tracked
    /// cannot be left out, and neither can a path that is no text.
    #[must_use]
    pub fn excluding(self, exclude: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { exclude: Exclude(Some(Arc::new(exclude))), ..self }
    }

    /// Takes the subject. Files of `previous` that were not touched since are not read again.
    pub fn snapshot(&self, previous: Option<&Snapshot>) -> Result<Snapshot, SnapshotError> {
        std::thread::scope(|scope| {
            let names = self.repository.as_ref().map(|repository| scope.spawn(|| repository.list()));
            self.take(previous.map_or_else(Known::nothing, Snapshot::known), names)
        })
    }

    /// Takes the subject. Files that are remembered and were not touched since are not read again. `recall` is asked while
    /// git lists names.
    pub fn snapshot_with(&self, recall: impl FnOnce() -> Option<Memory>) -> Result<Snapshot, SnapshotError> {
        std::thread::scope(|scope| {
            let names = self.repository.as_ref().map(|repository| scope.spawn(|| repository.list()));
            let memory = recall();
            self.take(memory.as_ref().map_or_else(Known::nothing, Memory::known), names)
        })
    }

    fn take(&self, known: Known<'_>, names: Option<Names<'_>>) -> Result<Snapshot, SnapshotError> {
        let clock = Instant::now();
        let taken = SystemTime::now();
        let learnt = AtomicBool::new(false);
        let mut collected = Collected::new(known, &self.exclude, &self.patience);
        let root = Root::open(&self.root).map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
        let untouched = std::thread::scope(|scope| -> Result<_, SnapshotError> {
            let untouched = scope.spawn(|| look::untouched(&root, known));
            match &self.repository {
                Some(repository) => collected.repository(repository, &self.below, b"", names)?,
                None => collected.folder(&self.root, b"", true)?,
            }
            // A panic of the thread is a bug, and is shown as one.
            Ok(untouched.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        let known = known.seen(&untouched);
        collected.candidates.sort_by(|a, b| a.path.cmp(&b.path));
        let mut looked = look_at_all(&root, &collected.candidates, known, &learnt, &self.patience)?;
        let unproven = difference::settle(&root, &collected, &mut looked, &learnt)?;
        let mut dirty = std::mem::take(&mut collected.dirty);
        let mut entries = Vec::with_capacity(looked.len());
        for (candidate, looked) in collected.candidates.iter().zip(looked) {
            let Some(entry) = looked else {
                // Deleted in the working tree: not part of the subject, and a difference to the commit.
                dirty.extend(candidate.committed.as_ref().map(|_| candidate.source));
                continue;
            };
            if !difference::is_clean(candidate, &entry) {
                dirty.insert(candidate.source);
            }
            entries.push(entry);
        }
        let commit = self.repository.as_ref().and_then(|repository| repository.commit.clone());
        // Before the first commit everything differs from it, also where that is nothing.
        let differs = commit.is_none() || !dirty.is_empty();
        let snapshot = Snapshot::new(entries, commit, self.repository.is_some().then_some(differs), taken);
        let dirty: Vec<&[u8]> = dirty.iter().filter_map(|at| Some(collected.sources.get(*at)?.at.as_slice())).collect();
        let within =
            |at: &[u8], outer: &[u8]| at.strip_prefix(outer).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        let differs = |outer: &&Source| !outer.at.is_empty() && dirty.iter().any(|at| within(at, &outer.at));
        let dirty_inside = collected.sources.iter().filter(differs).map(|source| source.at.clone()).collect();
        let learnt = learnt.into_inner() || known.trees.is_none_or(|known| !known.keys().eq(collected.trees.keys()));
        tracing::debug!(entries = snapshot.entries.len(), learnt, elapsed = ?clock.elapsed(), "snapshot");
        Ok(Snapshot { unproven, dirty_inside, trees: collected.trees, learnt, ..snapshot })
    }
}

impl Snapshot {
    /// A subject of these entries, which are sorted bytewise by path. `taken` is when the first of them was looked at.
    pub(super) fn new(
        entries: Vec<Arc<Entry>>,
        commit: Option<String>,
        dirty: Option<bool>,
        taken: SystemTime,
    ) -> Self {
        Self {
            tree: tree_digest(&entries),
            entries,
            commit,
            dirty,
            revision: false,
            unproven: Vec::new(),
            dirty_inside: BTreeSet::new(),
            trees: Trees::new(),
            learnt: false,
            taken,
        }
    }

    /// The same where a file says what is verified and is ignored: no commit has it. Outside version control nothing is
    /// said of a commit.
    #[must_use]
    pub fn judged_by_another(mut self, file: &str) -> Self {
        if self.dirty.is_some() {
            self.dirty = Some(true);
            let why = "git ignores it, and it says what is verified";
            self.unproven.push(Remark { path: file.to_owned(), why: why.to_owned() });
            self.unproven.sort();
        }
        self
    }

    fn known(&self) -> Known<'_> {
        Known::new(&self.entries, &self.trees, self.taken)
    }

    /// Every file of a folder that is no subject: nothing in it is ignored.
    pub fn of_folder(folder: &Path) -> Result<Self, SnapshotError> {
        let taken = SystemTime::now();
        let open = Root::open(folder).map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
        let (exclude, learnt, patience) = (Exclude::default(), AtomicBool::new(false), &Patience::default());
        let mut collected = Collected::new(Known::nothing(), &exclude, patience);
        collected.folder(folder, b"", false)?;
        collected.candidates.sort_by(|a, b| a.path.cmp(&b.path));
        let looked = look_at_all(&open, &collected.candidates, Known::nothing(), &learnt, patience)?;
        Ok(Self::new(looked.into_iter().flatten().collect(), None, None, taken))
    }

    /// Its entries, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(AsRef::as_ref)
    }

    /// The entry at `path`.
    pub fn entry(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok().map(|index| &*self.entries[index])
    }

    /// Whether anything lies below `path`.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let start = [path, b"/"].concat();
        let first = self.entries.partition_point(|entry| entry.path < start);
        self.entries.get(first).is_some_and(|entry| entry.path.starts_with(&start))
    }

    /// Paths that no pack gets to see, each with the reason: those that are not UTF-8, and FIFOs, sockets and devices.
    /// Sorted.
    pub fn hidden(&self) -> Vec<Remark> {
        let one = |entry: &Arc<Entry>| {
            let why = match (entry.kind, std::str::from_utf8(&entry.path)) {
                (Kind::Special, _) => "is no file, but a pipe, a socket or a device",
                (_, Err(_)) => "its name is not UTF-8",
                (_, Ok(_)) => return None,
            };
            Some(Remark { path: String::from_utf8_lossy(&entry.path).into_owned(), why: why.to_owned() })
        };
        self.entries.iter().filter_map(one).collect()
    }

    /// The paths that differ between two snapshots of one folder, sorted.
    pub fn moved(&self, later: &Self) -> Vec<String> {
        let same = |a: &Entry, b: &Entry| a.kind == b.kind && a.digest == b.digest && a.tracked == b.tracked;
        let mut all: BTreeMap<&[u8], (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
        for entry in &self.entries {
            all.entry(&entry.path).or_default().0 = Some(entry);
        }
        for entry in &later.entries {
            all.entry(&entry.path).or_default().1 = Some(entry);
        }
        let moved = |(path, pair): (&[u8], (Option<&Entry>, Option<&Entry>))| match pair {
            (Some(a), Some(b)) if same(a, b) => None,
            _ => Some(String::from_utf8_lossy(path).into_owned()),
        };
        all.into_iter().filter_map(moved).collect()
    }
}
