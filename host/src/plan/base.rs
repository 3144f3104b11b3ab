//! What the subject is compared with; and the same as a tree of its own, for a check that is run on it too.
//!
//! Must not read contents.

use super::{Grant, files_digest, seen};
use crate::model::{Change, Digest, Entry, EntryKind, Mount, NamedBase, Scope};
use crate::subject::{Changes, Committed, Kind, Revision, Snapshot, kind_of_mode};
use std::collections::BTreeSet;

/// What the subject is compared with.
#[derive(Debug)]
pub struct Base {
    /// What was named, of which the base is where the subject's history left it.
    pub named: NamedBase,
    /// The base itself.
    pub revision: Revision,
    /// What differs.
    pub changes: Changes,
}

/// An entry of the base.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// The subject still has it as it was: the place among its entries.
    Here(usize, &'a crate::subject::Entry),
    /// Git has it.
    There(&'a Committed),
}

/// What a check with a baseline is asked about the base.
#[derive(Debug)]
pub struct Baseline {
    /// The files of the base in its scope, sorted bytewise by path; for a check of each file those that are files of the
    /// subject in its scope too, perhaps under another name.
    pub files: Vec<Entry>,
    /// Their digest.
    pub digest: Digest,
}

impl Base {
    /// The base as it would lie here. What differs comes from git; all else is the subject's own, so that it is the same
    /// in both also where git converts contents, and where git has none, as within submodules.
    pub fn tree<'a>(&'a self, snapshot: &'a Snapshot) -> Vec<Before<'a>> {
        let here = snapshot.entries.iter().enumerate().filter(|(_, entry)| {
            std::str::from_utf8(&entry.path).is_ok_and(|path| !self.changes.differs(path)) && seen(entry).is_some()
        });
        let names: BTreeSet<&str> = self.changes.list.iter().flat_map(Change::names).collect();
        let there = names.into_iter().filter_map(|path| self.revision.entry(path.as_bytes()));
        let there = there.filter(|entry| kind_of_mode(entry.mode) != Kind::LeftOut);
        here.map(|(key, entry)| Before::Here(key, entry)).chain(there.map(Before::There)).collect()
    }

    /// Where a path of the subject is in the base, and whether it is as it was. None where it is new.
    pub fn before(&self, path: &str) -> Option<(String, bool)> {
        if !self.changes.differs(path) {
            return Some((path.to_owned(), true));
        }
        let before = self.changes.base_path(&self.revision, path)?;
        // What has another name has the very contents; the others are those that differ.
        let same = before != path;
        Some((before, same))
    }

    /// The entry with the path it has in the base, if the check may know of that.
    pub(super) fn beside(&self, entry: Entry, grant: &Grant) -> Entry {
        let path = self.changes.base_path(&self.revision, &entry.path);
        Entry { base_path: path.filter(|path| grant.covers(Mount::Base, path)), ..entry }
    }

    /// What a check is asked about the base that is asked about `files` of the subject. The base is compared with itself.
    pub(super) fn baseline(
        &self,
        snapshot: &Snapshot,
        (scope, files): (Scope, &[Entry]),
        grant: &Grant,
        wants_changes: bool,
        in_scope: impl Fn(&str) -> bool,
    ) -> Baseline {
        let wanted: Option<BTreeSet<String>> = match scope {
            Scope::Tree => None,
            Scope::File => Some(files.iter().filter_map(|file| Some(self.before(&file.path)?.0)).collect()),
        };
        let wanted = |path: &str| wanted.as_ref().is_none_or(|wanted| wanted.contains(path)) && in_scope(path);
        let entries = self.tree(snapshot).into_iter().filter_map(Before::entry).filter(|entry| wanted(&entry.path));
        // No path of the base is one that something else was renamed to, so each is beside itself.
        let mut files: Vec<Entry> = entries.map(|entry| self.beside(entry, grant)).collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let digest = files_digest(&files, wants_changes.then_some(&[]));
        Baseline { files, digest }
    }
}

impl Before<'_> {
    /// The entry as a pack sees it.
    fn entry(self) -> Option<Entry> {
        let committed = match self {
            Self::Here(_, entry) => return seen(entry),
            Self::There(committed) => committed,
        };
        let kind = match kind_of_mode(committed.mode) {
            Kind::File => EntryKind::File,
            Kind::Executable => EntryKind::Executable,
            Kind::Symlink => EntryKind::Symlink,
            Kind::Submodule | Kind::LeftOut | Kind::Unreadable | Kind::Special => return None,
        };
        let path = String::from_utf8(committed.path.clone()).ok()?;
        // An object that this clone is missing is told when the check is to be shown it.
        Some(Entry { path, kind, size: committed.size.unwrap_or(0), tracked: true, base_path: None })
    }
}
