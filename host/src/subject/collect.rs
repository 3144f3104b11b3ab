//! What belongs to a subject by name: in a repository what git tracks and what it neither tracks nor ignores, outside
//! of one every file that no ignore file leaves out. Nothing is looked at here.

use super::error::SnapshotError;
use super::git::{Listing, Names, Repository};
use super::id::ObjectId;
use super::look::joined;
use super::memory::{Known, Trees};
use super::patience::Patience;
use super::trees;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a walk outside version control reads to know what to leave out.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// What a commit has at a path.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) mode: u32,
    pub(super) id: ObjectId,
}

/// A path that belongs to the subject, before it was looked at.
pub(super) struct Candidate {
    pub(super) path: Vec<u8>,
    pub(super) tracked: bool,
    pub(super) left_out: bool,
    /// A folder that could not be listed.
    pub(super) unlisted: bool,
    /// Of a repository inside: what it is at.
    pub(super) commit: Option<String>,
    /// Of what the commit has: how it has it.
    pub(super) committed: Option<Held>,
    /// The mode in the index of what is tracked.
    pub(super) indexed: Option<u32>,
    /// Of what is left out: what the index says is in it, as mode and id.
    pub(super) absent: Vec<u8>,
    /// Which of the sources tracks it.
    pub(super) source: usize,
}

impl Candidate {
    pub(super) fn untracked(path: Vec<u8>) -> Self {
        Self {
            path,
            tracked: false,
            left_out: false,
            unlisted: false,
            commit: None,
            committed: None,
            indexed: None,
            absent: Vec::new(),
            source: 0,
        }
    }

    fn unlisted(path: Vec<u8>) -> Self {
        Self { unlisted: true, ..Self::untracked(path) }
    }
}

/// The path of what this user may not list, if that is what the error is about.
fn forbidden(error: &ignore::Error) -> Option<&Path> {
    let ignore::Error::WithPath { path, err } = error else {
        return if let ignore::Error::WithDepth { err, .. } = error { forbidden(err) } else { None };
    };
    let denied = err.io_error().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    denied.then_some(path)
}

/// What is left out of a subject, of what nobody tracks.
#[derive(Clone, Default)]
pub(super) struct Exclude(pub(super) Option<Arc<Predicate>>);

type Predicate = dyn Fn(&str) -> bool + Send + Sync;

impl Exclude {
    fn covers(&self, path: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|exclude| std::str::from_utf8(path).is_ok_and(|path| exclude(path)))
    }
}

impl fmt::Debug for Exclude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Exclude(…)" } else { "Exclude" })
    }
}

/// A repository that entries come from.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) repository: Repository,
    /// The part of it that is verified.
    below: Vec<u8>,
    /// Where it stands in the subject.
    pub(super) at: Vec<u8>,
}

impl Source {
    /// Where a path of the repository is in the subject. None for what is not in the part that is verified.
    fn to_subject(&self, path: &[u8]) -> Option<Vec<u8>> {
        inside(&self.below, path).map(|inside| join(&self.at, inside))
    }

    /// Where an entry of the subject that comes from here is in the repository.
    pub(super) fn to_repository(&self, path: &[u8]) -> Vec<u8> {
        let inside = if self.at.is_empty() { path } else { path.get(self.at.len() + 1..).unwrap_or_default() };
        join(&self.below, inside)
    }
}

/// What belongs to a subject.
pub(super) struct Collected<'a> {
    known: Known<'a>,
    exclude: &'a Exclude,
    patience: &'a Patience,
    pub(super) candidates: Vec<Candidate>,
    pub(super) sources: Vec<Source>,
    /// The trees of the commits that are checked out.
    pub(super) trees: Trees,
    /// The sources that names and the index alone show to differ from their commits.
    pub(super) dirty: BTreeSet<usize>,
}

impl<'a> Collected<'a> {
    /// Nothing yet.
    pub(super) fn new(known: Known<'a>, exclude: &'a Exclude, patience: &'a Patience) -> Self {
        let (candidates, sources) = (Vec::new(), Vec::new());
        Self { known, exclude, patience, candidates, sources, trees: Trees::new(), dirty: BTreeSet::new() }
    }

    /// Adds what belongs to a repository: what it tracks, what it neither tracks nor ignores, and the same of every
    /// repository inside. `below` is the part of it that is verified, `at` is where it stands in the subject.
    /// `names` is what git says of it, where it was asked already.
    pub(super) fn repository(
        &mut self,
        repository: &Repository,
        below: &[u8],
        at: &[u8],
        names: Option<Names>,
    ) -> Result<(), SnapshotError> {
        let list = || names.map_or_else(|| repository.list(), Names::listing);
        let commit = repository.commit.as_deref().unwrap_or_default();
        let known = self.known.trees.and_then(|trees| trees.get(commit)).cloned();
        let (listing, tree) = match known {
            Some(tree) => (list()?, tree),
            None => std::thread::scope(|scope| -> Result<_, SnapshotError> {
                let tree = scope.spawn(|| match ObjectId::of_commit(commit) {
                    Some(id) => trees::committed(repository, id),
                    None => Ok(Vec::new()),
                });
                let listing = list();
                let tree = joined(tree);
                Ok((listing?, tree?.into()))
            })?,
        };
        self.trees.insert(commit.to_owned(), Arc::clone(&tree));
        let Listing { mut tracked, untracked, unlisted } = listing;
        // Git lists in this order; that it does is not relied on.
        tracked.sort_by(|a, b| a.path.cmp(&b.path));
        let mut committed = tree.iter().peekable();
        let (source, mut differs) = (self.sources.len(), false);
        let here = Source { repository: repository.clone(), below: below.to_vec(), at: at.to_vec() };
        self.sources.push(here.clone());
        for entry in tracked {
            // What the commit has and the index has not was removed.
            while let Some(removed) = committed.next_if(|committed| committed.path < entry.path) {
                differs |= here.to_subject(&removed.path).is_some();
            }
            let committed = committed.next_if(|committed| committed.path == entry.path);
            let committed = committed.map(|committed| Held { mode: committed.mode, id: committed.id });
            let Some(path) = here.to_subject(&entry.path) else { continue };
            // What is staged would be committed, whatever lies in the working tree.
            let staged = |committed: Held| entry.id != Some(committed.id) || entry.mode != committed.mode;
            differs |= committed.is_none_or(staged);
            let (left_out, indexed) = (entry.skipped, Some(entry.mode));
            let absent = match entry.id {
                Some(id) if left_out || entry.mode == 0o160_000 => absent(entry.mode, id),
                _ => Vec::new(),
            };
            let candidate =
                Candidate { tracked: true, left_out, committed, indexed, absent, source, ..Candidate::untracked(path) };
            if entry.mode == 0o160_000 {
                self.nested(repository, &entry.path, candidate)?;
            } else {
                self.candidates.push(candidate);
            }
        }
        differs |= committed.any(|removed| here.to_subject(&removed.path).is_some());
        let unlisted = unlisted.into_iter().filter_map(|path| here.to_subject(&path)).map(Candidate::unlisted);
        self.candidates.extend(unlisted.filter(|candidate| !self.exclude.covers(&candidate.path)));
        for path in untracked {
            let Some(mut inside) = here.to_subject(&path) else { continue };
            inside.truncate(inside.strip_suffix(b"/").unwrap_or(&inside).len());
            if self.exclude.covers(&inside) {
                continue;
            }
            differs = true;
            let candidate = Candidate { source, ..Candidate::untracked(inside) };
            if let Some(folder) = path.strip_suffix(b"/") {
                self.nested(repository, folder, candidate)?;
            } else {
                self.candidates.push(candidate);
            }
        }
        if differs {
            self.dirty.insert(source);
        }
        Ok(())
    }

    /// Adds the repository that is in `folder` of another one, and what belongs to it.
    fn nested(&mut self, outer: &Repository, folder: &[u8], candidate: Candidate) -> Result<(), SnapshotError> {
        let inner = if candidate.left_out { None } else { outer.inner(folder)? };
        let commit = inner.as_ref().map(|inner| inner.commit.clone().unwrap_or_default());
        let left_out = inner.is_none();
        if let Some(inner) = inner {
            self.repository(&inner, b"", &candidate.path, None)?;
        } else {
            // Git looks no further where a submodule should be; commands see what was put there all the same.
            let before = self.candidates.len();
            self.folder(&outer.top.join(OsStr::from_bytes(folder)), &candidate.path, false)?;
            if self.candidates.len() > before {
                self.dirty.insert(candidate.source);
            }
        }
        self.candidates.push(Candidate { left_out, commit, ..candidate });
        Ok(())
    }
}

/// What stands for the contents of what git tracks and is not here: the mode and the id it is tracked with.
pub(super) fn absent(mode: u32, id: ObjectId) -> Vec<u8> {
    format!("{mode:o} {id}").into_bytes()
}

/// Where a path of a repository is below one of its folders. None for what is elsewhere; nothing is the top itself.
pub(super) fn inside<'p>(below: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    if below.is_empty() { Some(path) } else { path.strip_prefix(below)?.strip_prefix(b"/") }
}

/// The reverse.
pub(super) fn join(at: &[u8], inside: &[u8]) -> Vec<u8> {
    if at.is_empty() { inside.to_vec() } else { [at, b"/", inside].concat() }
}

impl Collected<'_> {
    /// Adds every file of a folder outside version control, less what ignore files in it leave out if they are `heeded`.
    /// Nothing where there is no folder. `at` is where it stands in the subject.
    pub(super) fn folder(&mut self, folder: &Path, at: &[u8], heeded: bool) -> Result<(), SnapshotError> {
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
                    let own = entry.file_name() == ".git"
                        || (within && entry.depth() == 1 && entry.file_name() == ".probity");
                    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                    entry.depth() == 0 || (!own && (!is_folder || fits(entry.path())))
                })
                .build();
            for entry in walker {
                self.patience.check().map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
                let inside = |path: &Path| join(at, path.strip_prefix(folder).unwrap_or(path).as_os_str().as_bytes());
                let found = match entry {
                    Ok(entry) if entry.depth() == 0 || entry.file_type().is_some_and(|kind| kind.is_dir()) => continue,
                    Ok(entry) => Candidate::untracked(inside(entry.path())),
                    Err(error) => match forbidden(&error) {
                        // The root itself is needed.
                        Some(path) if !within || path != folder => Candidate::unlisted(inside(path)),
                        _ => return Err(error.into()),
                    },
                };
                if !self.exclude.covers(&found.path) {
                    self.candidates.push(found);
                }
            }
        }
        let Some(path) = unreadable.get() else { return Ok(()) };
        let path = path.strip_prefix(folder).unwrap_or(path).as_os_str().as_bytes();
        let path = String::from_utf8_lossy(&join(at, path)).into_owned();
        Err(SnapshotError::Read {
            path,
            source: io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"),
        })
    }
}
