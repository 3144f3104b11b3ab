//! What differs between a base and a subject, path by path.
//!
//! A file counts as unchanged if its bytes are those of the base's object, or are what git makes of them here. A file
//! is renamed if exactly one file that is gone has the very contents that exactly one file that is new has.

use super::blob::blob_id;
use super::entry::{Entry, Kind};
use super::git::Committed;
use super::revision::{Revision, kind_of_mode};
use super::snapshot::Snapshot;
use crate::model::{Change, ChangeKind};
use std::collections::{BTreeMap, BTreeSet};

/// What became of the base's files, sorted bytewise by path. Paths that are not UTF-8 are left out, since nobody who
/// asks could be told of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Each difference once.
    pub list: Vec<Change>,
    /// Of each renamed file, its path in the base.
    renamed: BTreeMap<String, String>,
}

impl Changes {
    /// The differences. `read` gives the contents of an entry of the subject, where they can be had; it is asked only
    /// for files whose id git did not tell and whose size is that of a file to compare with.
    pub fn between(base: &Revision, subject: &Snapshot, read: impl Fn(&Entry) -> Option<Vec<u8>>) -> Self {
        let id = |entry: &Entry, like: &str| {
            entry.git_id(like).or_else(|| read(entry).map(|contents| blob_id(like, &contents)))
        };
        let of_contents = |kind: Kind| matches!(kind, Kind::File | Kind::Executable | Kind::Symlink);
        let mut all: BTreeMap<&str, (Option<&Committed>, Option<&Entry>)> = BTreeMap::new();
        for entry in base.entries.iter().filter(|entry| of_contents(kind_of_mode(entry.mode))) {
            let Ok(path) = std::str::from_utf8(&entry.path) else { continue };
            all.entry(path).or_default().0 = Some(entry);
        }
        for entry in &subject.entries {
            let Ok(path) = std::str::from_utf8(&entry.path) else { continue };
            // What a sparse checkout left out is where it was.
            if entry.kind == Kind::LeftOut {
                all.remove(path);
            } else if of_contents(entry.kind) {
                all.entry(path).or_default().1 = Some(entry);
            }
        }
        let (mut gone, mut new, mut list) = (Vec::new(), Vec::new(), Vec::new());
        let change = |path: &str, kind| Change { path: path.to_owned(), kind, previous_path: None };
        for (path, pair) in all {
            match pair {
                (Some(before), None) => gone.push((path, before)),
                (None, Some(entry)) => new.push((path, entry)),
                (Some(before), Some(entry)) => {
                    let same_kind = kind_of_mode(before.mode) == entry.kind;
                    let may_be = entry.git_id(&before.id).is_some() || before.size == Some(entry.size);
                    if !(same_kind && may_be && id(entry, &before.id).as_deref() == Some(&before.id)) {
                        list.push(change(path, ChangeKind::Modified));
                    }
                }
                (None, None) => {}
            }
        }
        let renamed = renames(&gone, &new, id);
        let previous: BTreeSet<&str> = renamed.values().map(String::as_str).collect();
        list.extend(
            gone.iter().filter(|(path, _)| !previous.contains(path)).map(|(path, _)| change(path, ChangeKind::Deleted)),
        );
        list.extend(new.iter().map(|(path, _)| match renamed.get(*path) {
            Some(before) => Change { previous_path: Some(before.clone()), ..change(path, ChangeKind::Renamed) },
            None => change(path, ChangeKind::Added),
        }));
        list.sort_by(|a, b| a.path.cmp(&b.path));
        Self { list, renamed }
    }

    /// The path that a file of the subject has in the base. None where it is new.
    pub fn base_path(&self, base: &Revision, path: &str) -> Option<String> {
        let there =
            |path: &str| base.entry(path.as_bytes()).is_some_and(|entry| kind_of_mode(entry.mode) != Kind::LeftOut);
        self.renamed.get(path).cloned().or_else(|| there(path).then(|| path.to_owned()))
    }
}

fn renames(
    gone: &[(&str, &Committed)],
    new: &[(&str, &Entry)],
    id: impl Fn(&Entry, &str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut before: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, entry) in gone.iter().filter(|(_, entry)| entry.size != Some(0)) {
        before.entry(&entry.id).or_default().push(path);
    }
    let sizes: BTreeSet<Option<u64>> = gone.iter().map(|(_, entry)| entry.size).collect();
    let mut after: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let Some((_, like)) = gone.first() else { return BTreeMap::new() };
    for (path, entry) in new {
        if entry.git_id(&like.id).is_none() && !sizes.contains(&Some(entry.size)) {
            continue;
        }
        if let Some(id) = id(entry, &like.id).filter(|id| before.contains_key(id.as_str())) {
            after.entry(id).or_default().push(path);
        }
    }
    let one = |(id, paths): (String, Vec<&str>)| match (&paths[..], &before[id.as_str()][..]) {
        ([now], [was]) => Some(((*now).to_owned(), (*was).to_owned())),
        _ => None,
    };
    after.into_iter().filter_map(one).collect()
}
