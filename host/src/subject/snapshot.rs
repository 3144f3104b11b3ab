//! The snapshot: path, kind and content digest of every entry, taken once, in one order.

use super::beneath::Root;
use super::collect::{Collected, Exclude, Source, join};
use super::difference;
use super::entry::{Entry, Kind, tree_digest};
use super::error::SnapshotError;
use super::git::{GitError, Names, Repository};
use super::look::{self, joined, look_at_all};
use super::memory::{Known, Memory, Trees, Whole};
use super::patience::Patience;
use crate::model::{Context, Digest, Encoder, Remark};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
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
    /// What says, while no file is touched, that another snapshot would be this one.
    pub(super) whole: Option<Whole>,
    /// Whether there is something in it that was not known before.
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
        Some(join(&self.below, path))
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
            let names = self.repository.as_ref().map(|repository| scope.spawn(|| repository.names()));
            self.take(previous.map_or_else(Known::nothing, Snapshot::known), names)
        })
    }

    /// Takes the subject. Files that are remembered and were not touched since are not read again. `recall` is asked while
    /// git lists names.
    pub fn snapshot_with(&self, recall: impl FnOnce() -> Option<Memory>) -> Result<Snapshot, SnapshotError> {
        std::thread::scope(|scope| {
            let names = self.repository.as_ref().map(|repository| scope.spawn(|| repository.names()));
            let memory = recall();
            self.take(memory.as_ref().map_or_else(Known::nothing, Memory::known), names)
        })
    }

    fn take(&self, known: Known<'_>, names: Option<Listed<'_>>) -> Result<Snapshot, SnapshotError> {
        let clock = Instant::now();
        let taken = SystemTime::now();
        let root = Root::open(&self.root).map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
        let snapshot = std::thread::scope(|scope| {
            let looking = scope.spawn(|| look::untouched(&root, known));
            let names = names.map(joined).transpose()?;
            let said = names.as_ref().and_then(|names| self.saying(names));
            if said.is_none() || said != known.whole.map(|whole| whole.said) {
                let collected = self.collect(known, names)?;
                return self.assemble(&root, collected, known.seen(&joined(looking)), said, taken);
            }
            let untouched = joined(looking);
            match known.as_it_was(&untouched, taken, self.commit()) {
                Some(snapshot) => Ok(snapshot),
                None => self.assemble(&root, self.collect(known, names)?, known.seen(&untouched), said, taken),
            }
        })?;
        let Snapshot { entries, learnt, .. } = &snapshot;
        tracing::debug!(entries = entries.len(), learnt, elapsed = ?clock.elapsed(), "snapshot");
        Ok(snapshot)
    }

    /// The snapshot of what belongs to the subject. `said` is what decided that, where nothing else did.
    fn assemble(
        &self,
        root: &Root,
        mut collected: Collected<'_>,
        known: Known<'_>,
        said: Option<Digest>,
        taken: SystemTime,
    ) -> Result<Snapshot, SnapshotError> {
        let learnt = AtomicBool::new(false);
        collected.candidates.sort_by(|a, b| a.path.cmp(&b.path));
        let mut looked = look_at_all(root, &collected.candidates, known, &learnt, &self.patience)?;
        let settled = difference::settle(root, &collected, &mut looked, &learnt)?;
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
        let commit = self.commit();
        // Before the first commit everything differs from it, also where that is nothing.
        let differs = commit.is_none() || !dirty.is_empty();
        let snapshot = Snapshot::new(entries, commit, self.repository.is_some().then_some(differs), taken);
        let plain = |entry: &Entry| matches!(entry.kind, Kind::File | Kind::Executable | Kind::Symlink);
        // Where names and files alone made it what it is: a name that has no file can get one while no other is touched.
        let whole = collected.sources.len() == 1
            && !settled.asked
            && snapshot.entries.len() == collected.candidates.len()
            && snapshot.iter().all(plain);
        let whole = said.filter(|_| whole).map(|said| Whole { said, tree: snapshot.tree, dirty: differs });
        let dirty: Vec<&[u8]> = dirty.iter().filter_map(|at| Some(collected.sources.get(*at)?.at.as_slice())).collect();
        let within =
            |at: &[u8], outer: &[u8]| at.strip_prefix(outer).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        let differs = |outer: &&Source| !outer.at.is_empty() && dirty.iter().any(|at| within(at, &outer.at));
        let dirty_inside = collected.sources.iter().filter(differs).map(|source| source.at.clone()).collect();
        let learnt = learnt.into_inner()
            || known.trees.is_none_or(|known| !known.keys().eq(collected.trees.keys()))
            || (whole.is_some() && whole.as_ref() != known.whole);
        let unproven = settled.unproven;
        Ok(Snapshot { unproven, dirty_inside, trees: collected.trees, whole, learnt, ..snapshot })
    }

    fn collect<'a>(&'a self, known: Known<'a>, names: Option<Names>) -> Result<Collected<'a>, SnapshotError> {
        let mut collected = Collected::new(known, &self.exclude, &self.patience);
        match &self.repository {
            Some(repository) => collected.repository(repository, &self.below, b"", names)?,
            None => collected.folder(&self.root, b"", true)?,
        }
        Ok(collected)
    }

    fn commit(&self) -> Option<String> {
        self.repository.as_ref().and_then(|repository| repository.commit.clone())
    }

    /// Everything that decides which entries there are and what the commit has of them: what git says of the names, what it
    /// is asked about, and the commit. None where something else does too.
    fn saying(&self, names: &Names) -> Option<Digest> {
        if self.exclude.0.is_some() || !names.unlisted.is_empty() {
            return None;
        }
        let mut encoder = Encoder::new();
        encoder.bytes(&self.below).text(self.repository.as_ref()?.commit.as_deref().unwrap_or_default());
        encoder.bytes(&names.output);
        Some(encoder.finish(Context::Names))
    }
}

/// Git, listing the names of a repository meanwhile.
type Listed<'scope> = ScopedJoinHandle<'scope, Result<Names, GitError>>;

impl Snapshot {
    /// A subject of these entries, which are sorted bytewise by path. `taken` is when the first of them was looked at.
    pub(super) fn new(
        entries: Vec<Arc<Entry>>,
        commit: Option<String>,
        dirty: Option<bool>,
        taken: SystemTime,
    ) -> Self {
        let tree = tree_digest(&entries);
        Self::of_tree(entries, tree, commit, dirty, taken)
    }

    /// The same, whose digest is known.
    pub(super) fn of_tree(
        entries: Vec<Arc<Entry>>,
        tree: Digest,
        commit: Option<String>,
        dirty: Option<bool>,
        taken: SystemTime,
    ) -> Self {
        Self {
            tree,
            entries,
            commit,
            dirty,
            revision: false,
            unproven: Vec::new(),
            dirty_inside: BTreeSet::new(),
            trees: Trees::new(),
            whole: None,
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
        Known::new(&self.entries, &self.trees, self.whole.as_ref(), self.taken)
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

    /// The paths that another snapshot of the folder, taken later with this one at hand, has as they were although they were
    /// written: to the same, or to something else and back. Sorted.
    pub fn touched(&self, later: &Self) -> Vec<String> {
        let touched = later.entries.iter().filter(|after| {
            let before = self.entries.binary_search_by(|entry| entry.path.cmp(&after.path)).ok();
            before.map(|at| &self.entries[at]).is_some_and(|before| {
                !Arc::ptr_eq(before, after)
                    && before.digest == after.digest
                    && before.kind == after.kind
                    && before.stat != after.stat
            })
        });
        touched.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect()
    }

    /// The paths that differ between two snapshots of one folder, sorted.
    pub fn moved(&self, later: &Self) -> Vec<String> {
        let same = |a: &Entry, b: &Entry| a.kind == b.kind && a.digest == b.digest && a.tracked == b.tracked;
        let mut moved = Vec::new();
        let mut name = |entry: &Entry| moved.push(String::from_utf8_lossy(&entry.path).into_owned());
        let (mut before, mut after) = (self.entries.iter().peekable(), later.entries.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return moved,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.path.cmp(&other.path),
            };
            let one = before.next_if(|_| order != Ordering::Greater);
            let other = after.next_if(|_| order != Ordering::Less);
            match (one, other) {
                // What was not touched is the very same.
                (Some(one), Some(other)) if Arc::ptr_eq(one, other) || same(one, other) => {}
                (Some(gone), _) => name(gone),
                (None, Some(new)) => name(new),
                (None, None) => return moved,
            }
        }
    }
}
