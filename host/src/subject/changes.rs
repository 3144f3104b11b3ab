//! What differs between a base and a subject, path by path.
//!
//! A file counts as unchanged if its bytes are those of the base's object, or are what git makes of them here. A file
//! is renamed if exactly one file that is gone has the very contents that exactly one file that is new has. Of a
//! submodule the base has no more than a commit: it counts as modified if it is at another one or differs from that, and
//! so does everything in it, or what differs in it.

use super::blob::blob_id;
use super::collect::absent;
use super::entry::{Entry, Kind};
use super::git::Committed;
use super::id::ObjectId;
use super::revision::{Revision, kind_of_mode};
use super::snapshot::Snapshot;
use crate::model::{Change, ChangeKind, Digest};
use std::collections::{BTreeMap, BTreeSet};

/// What became of the base's files, sorted bytewise by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Each difference once. Paths that are not UTF-8 are left out, since nobody who asks could be told of them.
    pub list: Vec<Change>,
    /// Those paths: something is different at each of them.
    pub unnamed: Vec<Vec<u8>>,
    /// Of each renamed file, its path in the base.
    renamed: BTreeMap<String, String>,
}

impl Changes {
    /// The differences. `read` gives the contents of an entry of the subject, where they can be had; it is asked only
    /// for files whose id git did not tell and whose size is that of a file to compare with.
    pub fn between(base: &Revision, subject: &Snapshot, read: impl Fn(&Entry) -> Option<Vec<u8>>) -> Self {
        let id = |entry: &Entry, like: ObjectId| {
            entry.git_id(like).or_else(|| read(entry).map(|contents| blob_id(like, &contents)))
        };
        let mut all: BTreeMap<&[u8], (Option<&Committed>, Option<&Entry>)> = BTreeMap::new();
        for entry in &base.entries {
            all.entry(&entry.path).or_default().0 = Some(entry);
        }
        for entry in subject.entries.iter().filter(|entry| !matches!(entry.kind, Kind::Unreadable | Kind::Special)) {
            all.entry(&entry.path).or_default().1 = Some(entry);
        }
        let inside = Inside::of(base, subject);
        let (mut gone, mut new, mut modified) = (Vec::new(), Vec::new(), Vec::new());
        for (path, pair) in all {
            match pair {
                (Some(before), None) => gone.push((path, before)),
                (None, Some(entry)) => match inside.submodule(path) {
                    None => new.push((path, entry)),
                    Some(Submodule::Moved) => modified.push(path),
                    // What its own commit has is as it was, and so are repositories inside that did not move.
                    Some(Submodule::Stayed) if entry.blob.is_none() && entry.kind != Kind::Submodule => {
                        modified.push(path);
                    }
                    Some(Submodule::Stayed) => {}
                },
                (Some(before), Some(entry)) => {
                    let same = match entry.kind {
                        Kind::LeftOut => entry.digest == Digest::of(&absent(before.mode, before.id)),
                        Kind::Submodule => stayed(before, entry) && !subject.dirty_inside.contains(&entry.path),
                        kind => {
                            let may_be = entry.git_id(before.id).is_some() || before.size == Some(entry.size);
                            kind_of_mode(before.mode) == kind && may_be && id(entry, before.id) == Some(before.id)
                        }
                    };
                    if !same {
                        modified.push(path);
                    }
                }
                (None, None) => {}
            }
        }
        let text = |path: &&[u8]| std::str::from_utf8(path).is_ok();
        let paths = gone.iter().map(|(path, _)| *path).chain(new.iter().map(|(path, _)| *path));
        let mut unnamed: Vec<Vec<u8>> =
            paths.chain(modified.iter().copied()).filter(|path| !text(path)).map(<[u8]>::to_vec).collect();
        unnamed.sort();
        let (gone, new, modified) =
            (texts(gone), texts(new), texts(modified.into_iter().map(|path| (path, ())).collect()));
        let renamed = renames(&gone, &new, id);
        let previous: BTreeSet<&str> = renamed.values().map(String::as_str).collect();
        let change = |path: &str, kind| Change { path: path.to_owned(), kind, previous_path: None };
        let mut list: Vec<Change> = modified.iter().map(|(path, ())| change(path, ChangeKind::Modified)).collect();
        list.extend(
            gone.iter().filter(|(path, _)| !previous.contains(path)).map(|(path, _)| change(path, ChangeKind::Deleted)),
        );
        list.extend(new.iter().map(|(path, _)| match renamed.get(*path) {
            Some(before) => Change { previous_path: Some(before.clone()), ..change(path, ChangeKind::Renamed) },
            None => change(path, ChangeKind::Added),
        }));
        list.sort_by(|a, b| a.path.cmp(&b.path));
        Self { list, unnamed, renamed }
    }

    /// Whether there is a difference at this very path.
    pub fn differs(&self, path: &str) -> bool {
        self.list.binary_search_by(|change| change.path.as_str().cmp(path)).is_ok()
    }

    /// The path that a file of the subject has in the base. None where it is new.
    pub fn base_path(&self, base: &Revision, path: &str) -> Option<String> {
        let there =
            |path: &str| base.entry(path.as_bytes()).is_some_and(|entry| kind_of_mode(entry.mode) != Kind::LeftOut);
        self.renamed.get(path).cloned().or_else(|| there(path).then(|| path.to_owned()))
    }
}

/// Those whose path is a text.
fn texts<T>(all: Vec<(&[u8], T)>) -> Vec<(&str, T)> {
    all.into_iter().filter_map(|(path, it)| Some((std::str::from_utf8(path).ok()?, it))).collect()
}

/// What became of a submodule that the base has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Submodule {
    /// It is at the same commit, whatever else differs in it.
    Stayed,
    /// It is at another one.
    Moved,
}

/// Whether a submodule is at the commit that the base has it at.
fn stayed(before: &Committed, entry: &Entry) -> bool {
    before.mode == 0o160_000 && entry.digest == Digest::of(before.id.named().as_bytes())
}

/// The submodules that a base and a subject share, and what is nested in them. Of a repository in a submodule the base says
/// nothing: it moved if something in the submodule did.
struct Inside<'a>(BTreeMap<&'a [u8], Submodule>);

impl<'a> Inside<'a> {
    fn of(base: &Revision, subject: &'a Snapshot) -> Self {
        let mut inside = Self(BTreeMap::new());
        // In this order what holds comes before what is held.
        for entry in subject.entries.iter().filter(|entry| entry.kind == Kind::Submodule) {
            let path = entry.path.as_slice();
            let same = match base.entry(&entry.path).filter(|before| before.mode == 0o160_000) {
                Some(before) => stayed(before, entry),
                None => match inside.holder(path) {
                    Some((holder, state)) => state == Submodule::Stayed && !subject.dirty_inside.contains(holder),
                    None => continue,
                },
            };
            inside.0.insert(path, if same { Submodule::Stayed } else { Submodule::Moved });
        }
        inside
    }

    /// The innermost one that holds this path.
    fn holder(&self, path: &[u8]) -> Option<(&[u8], Submodule)> {
        if self.0.is_empty() {
            return None;
        }
        let above = |at: usize| self.0.get_key_value(&path[..at]).map(|(path, state)| (*path, *state));
        (0..path.len()).rev().filter(|at| path[*at] == b'/').find_map(above)
    }

    /// What became of the innermost one that is or holds this path.
    fn submodule(&self, path: &[u8]) -> Option<Submodule> {
        self.0.get(path).copied().or_else(|| self.holder(path).map(|(_, state)| state))
    }
}

fn renames(
    gone: &[(&str, &Committed)],
    new: &[(&str, &Entry)],
    id: impl Fn(&Entry, ObjectId) -> Option<ObjectId>,
) -> BTreeMap<String, String> {
    let mut before: BTreeMap<ObjectId, Vec<&str>> = BTreeMap::new();
    let is_file = |entry: &Committed| kind_of_mode(entry.mode) != Kind::LeftOut && entry.size != Some(0);
    for (path, entry) in gone.iter().filter(|(_, entry)| is_file(entry)) {
        before.entry(entry.id).or_default().push(path);
    }
    let sizes: BTreeSet<Option<u64>> = gone.iter().map(|(_, entry)| entry.size).collect();
    let mut after: BTreeMap<ObjectId, Vec<&str>> = BTreeMap::new();
    let Some((_, like)) = gone.first() else { return BTreeMap::new() };
    for (path, entry) in new.iter().filter(|(_, entry)| entry.kind != Kind::Submodule) {
        if entry.git_id(like.id).is_none() && !sizes.contains(&Some(entry.size)) {
            continue;
        }
        if let Some(id) = id(entry, like.id).filter(|id| before.contains_key(id)) {
            after.entry(id).or_default().push(path);
        }
    }
    let one = |(id, paths): (ObjectId, Vec<&str>)| match (&paths[..], &before[&id][..]) {
        ([now], [was]) => Some(((*now).to_owned(), (*was).to_owned())),
        _ => None,
    };
    after.into_iter().filter_map(one).collect()
}
