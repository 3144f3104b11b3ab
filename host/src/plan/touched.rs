//! What changed since the base, as the question of a check: does it concern me, and which of my files?

use super::Base;
use crate::model::Change;
use crate::subject::{Kind, Snapshot};
use std::collections::BTreeSet;

/// What decides how git's objects become files.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// What changed since the base.
pub(super) struct Touched<'a> {
    /// Every path at which something is different or may be, also where nothing is any more.
    paths: BTreeSet<&'a [u8]>,
    /// Those of them below which anything may be different and nobody can say what: a submodule that moved, differs from its
    /// commit or is gone, a folder that cannot be listed.
    dark: BTreeSet<&'a [u8]>,
}

/// What a check is about.
pub(super) struct Reach<'a> {
    /// Whether it is about a path.
    pub(super) matches: &'a dyn Fn(&[u8]) -> bool,
    /// Whether it may be about something below a path.
    pub(super) may_match_below: &'a dyn Fn(&[u8]) -> bool,
    /// The tests of one of its files.
    pub(super) tests: &'a dyn Fn(&str) -> Vec<String>,
}

impl<'a> Touched<'a> {
    /// All that differs.
    pub(super) fn of(base: &'a Base, snapshot: &'a Snapshot) -> Self {
        let changed = base.changes.list.iter().flat_map(Change::names).map(str::as_bytes);
        let mut paths: BTreeSet<&[u8]> = changed.chain(base.changes.unnamed.iter().map(Vec::as_slice)).collect();
        let holds_others = |path: &[u8]| {
            let here = snapshot.entry(path).is_some_and(|entry| matches!(entry.kind, Kind::Submodule | Kind::LeftOut));
            here || base.revision.entry(path).is_some_and(|before| before.mode == 0o160_000)
        };
        let mut dark: BTreeSet<&[u8]> = paths.iter().copied().filter(|path| holds_others(path)).collect();
        // What cannot be read may be anything.
        for entry in snapshot.iter().filter(|entry| matches!(entry.kind, Kind::Unreadable | Kind::Special)) {
            paths.insert(&entry.path);
            if entry.is_folder() {
                dark.insert(&entry.path);
            }
        }
        // Under other attributes the same object is other bytes in the tree, and git calls both unchanged.
        let folder = |path: &&'a [u8]| path.strip_suffix(ATTRIBUTES).filter(|at| matches!(at, [] | [.., b'/']));
        let folders: Vec<&[u8]> = paths.iter().filter_map(folder).collect();
        for folder in folders {
            let start = snapshot.entries.partition_point(|entry| entry.path.as_slice() < folder);
            let below = snapshot.entries[start..].iter().take_while(|entry| entry.path.starts_with(folder));
            paths.extend(below.filter(|entry| is_file(entry.kind)).map(|entry| entry.path.as_slice()));
        }
        Self { paths, dark }
    }

    /// Whether nothing at all is different.
    pub(super) fn is_nothing(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether something changed at a path that `matches`, or may have below one that `may_match_below`.
    pub(super) fn any(&self, matches: impl Fn(&[u8]) -> bool, may_match_below: impl Fn(&[u8]) -> bool) -> bool {
        self.paths.iter().any(|path| matches(path)) || self.dark.iter().any(|path| may_match_below(path))
    }

    /// Of files in scope, sorted bytewise by path, those that changed or whose test did. All of them where something changed
    /// that is none of them (it is gone, became a link, is left out here, lies in a submodule): what is left may rest on it.
    /// None where nothing in scope changed.
    pub(super) fn narrow<T>(&self, files: Vec<T>, path: impl Fn(&T) -> &str, reach: &Reach<'_>) -> Option<Vec<T>> {
        let is_one = |changed: &[u8]| files.binary_search_by(|file| path(file).as_bytes().cmp(changed)).is_ok();
        if self.any(|changed| (reach.matches)(changed) && !is_one(changed), reach.may_match_below) {
            return Some(files);
        }
        let here = |path: &str| self.paths.contains(path.as_bytes());
        let changed = |file: &T| here(path(file)) || (reach.tests)(path(file)).iter().any(|test| here(test));
        let changed: Vec<T> = files.into_iter().filter(changed).collect();
        (!changed.is_empty()).then_some(changed)
    }

    /// Whether something at or around this path changed that has no contents there now which a command could be given.
    pub(super) fn took_away(&self, path: &str, snapshot: &Snapshot) -> bool {
        let path = path.as_bytes();
        let above = |at: usize| path[at] == b'/' && self.dark.contains(&path[..at]);
        (self.paths.contains(path) && !snapshot.entry(path).is_some_and(|entry| is_file(entry.kind)))
            || (!self.dark.is_empty() && (0..path.len()).any(above))
    }
}

/// Whether it is a file that can be named to a command.
pub(super) fn is_file(kind: Kind) -> bool {
    matches!(kind, Kind::File | Kind::Executable)
}
