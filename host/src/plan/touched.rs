//! What changed since the base, as the question of a check: does it concern me, and which of my files?

use super::Base;
use crate::model::ChangeKind;
use crate::subject::{Kind, Snapshot};
use std::collections::BTreeSet;

/// Paths that changed since the base: those that are there, and those that no longer are.
pub(super) struct Touched<'a> {
    here: BTreeSet<&'a str>,
    gone: BTreeSet<&'a str>,
    /// Submodules: what is gone in one has no path of its own.
    inside: BTreeSet<&'a str>,
}

impl<'a> Touched<'a> {
    /// The paths of all differences.
    pub(super) fn of(base: &'a Base, snapshot: &Snapshot) -> Self {
        let mut touched = Self { here: BTreeSet::new(), gone: BTreeSet::new(), inside: BTreeSet::new() };
        for change in &base.changes.list {
            if snapshot.entry(change.path.as_bytes()).is_some_and(|entry| entry.kind == Kind::Submodule) {
                touched.inside.insert(&change.path);
            }
            let into = if change.kind == ChangeKind::Deleted { &mut touched.gone } else { &mut touched.here };
            into.insert(&change.path);
            touched.gone.extend(change.previous_path.as_deref());
        }
        touched
    }

    /// Of files in scope those that changed. All of them where a path in scope is gone: what is left may rest on it.
    /// None where nothing in scope changed.
    pub(super) fn narrow<T>(
        &self,
        files: Vec<T>,
        path: impl Fn(&T) -> &str,
        in_scope: impl Fn(&str) -> bool,
    ) -> Option<Vec<T>> {
        if self.gone.iter().any(|path| in_scope(path)) {
            return Some(files);
        }
        let inside = |path: &str| path.match_indices('/').any(|(at, _)| self.inside.contains(&path[..at]));
        let here = |path: &str| self.here.contains(path) || (!self.inside.is_empty() && inside(path));
        let changed: Vec<T> = files.into_iter().filter(|file| here(path(file))).collect();
        (!changed.is_empty()).then_some(changed)
    }
}
