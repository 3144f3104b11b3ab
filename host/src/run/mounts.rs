//! What a check is shown: the mounts it was granted, each with what the grant leaves of it.
//!
//! `/tree` is the subject, `/base` what it is compared with, `/spec` the specification as it was committed, `/evidence`
//! results and output of the checks it comes after, `/claim` a folder that the caller gives. A mount that there is no
//! source for, or that was not granted, is not there.

use super::sources::{Mounted, Origin};
use super::{Runner, Surroundings};
use crate::model::{CheckId, Digest, Entry, EntryKind, Log, Mount, RecordRow, Row, to_canonical};
use crate::plan::{Grant, Unit, seen};
use crate::subject::beneath::Root;
use crate::subject::{Committed, Kind, Objects, Snapshot, kind_of_mode, look_at};
use crate::worker::{TreeBuilder, View};
use std::path::Path;
use std::sync::Arc;

/// A folder that a caller gives, as it lay there when it was looked at.
#[derive(Debug)]
pub struct Claim {
    root: Arc<Root>,
    entries: Vec<crate::subject::Entry>,
}

impl Claim {
    /// Looks at every file in `folder`.
    pub fn new(folder: &Path) -> Result<Self, crate::subject::SnapshotError> {
        let failed = |source| crate::subject::SnapshotError::Read { path: folder.display().to_string(), source };
        let root = Arc::new(Root::open(folder).map_err(failed)?);
        Ok(Self { root, entries: Snapshot::of_folder(folder)?.entries })
    }
}

impl Runner<'_> {
    /// Everything that the check may see.
    pub(super) fn view(&self, unit: &Unit, grant: &Grant, done: &[(Row, RecordRow)]) -> Result<View, String> {
        let mut shown = Shown {
            grant,
            tree: TreeBuilder::new(),
            contents: Mounted { sources: Arc::clone(&self.shared.sources), others: Vec::new() },
        };
        shown.subject(self.shared.around.snapshot);
        let objects = self.shared.around.workspace.repository.as_ref().map(Objects::new);
        if let (Some(base), Some(objects)) = (self.shared.around.base, &objects) {
            shown.committed(Mount::Base, &base.revision.entries, objects)?;
        }
        if let (Some(spec), Some(objects)) = (self.shared.around.spec, &objects) {
            shown.committed(Mount::Spec, &spec.files, objects)?;
        }
        if let Some(claim) = self.shared.around.claim {
            shown.folder(Mount::Claim, &claim.root, &claim.entries);
        }
        if !unit.after.is_empty() && shown.mount(Mount::Evidence) {
            for (row, record) in done.iter().filter(|(row, _)| unit.after.contains(&row.id)) {
                shown.evidence(row, record.log.as_ref(), self.shared.around)?;
            }
        }
        let tree = shown.tree.build().map_err(|error| error.to_string())?;
        Ok(View::new(Arc::new(tree), Arc::new(shown.contents)))
    }
}

struct Shown<'a> {
    grant: &'a Grant,
    tree: TreeBuilder,
    contents: Mounted,
}

impl Shown<'_> {
    /// Makes a mount, if the check may see anything on it.
    fn mount(&mut self, mount: Mount) -> bool {
        let has = self.grant.has(mount);
        if has {
            self.tree.mount(mount);
        }
        has
    }

    fn file(&mut self, mount: Mount, path: &str, size: u64, executable: bool, origin: Origin) {
        let key = self.contents.next_key();
        self.contents.others.push(origin);
        self.tree.file(mount, path, size, executable, key);
    }

    fn subject(&mut self, snapshot: &Snapshot) {
        if !self.mount(Mount::Tree) {
            return;
        }
        for (key, entry) in snapshot.entries.iter().enumerate() {
            let Some(Entry { path, kind, size, .. }) = seen(entry) else { continue };
            if !self.grant.covers(Mount::Tree, &path) {
                continue;
            }
            // As many as a snapshot can have.
            let key = u32::try_from(key).unwrap_or(u32::MAX);
            match kind {
                EntryKind::File => self.tree.file(Mount::Tree, path, size, false, key),
                EntryKind::Executable => self.tree.file(Mount::Tree, path, size, true, key),
                EntryKind::Symlink => self.tree.symlink(Mount::Tree, path, entry.text.clone()),
                // A repository that was checked out is there by what is in it.
                EntryKind::Submodule if snapshot.has_below(&entry.path) => &mut self.tree,
                EntryKind::Submodule => self.tree.directory(Mount::Tree, path),
            };
        }
    }

    fn committed(&mut self, mount: Mount, entries: &[Committed], objects: &Objects) -> Result<(), String> {
        if !self.mount(mount) {
            return Ok(());
        }
        for entry in entries {
            let Ok(path) = std::str::from_utf8(&entry.path) else { continue };
            if !self.grant.covers(mount, path) {
                continue;
            }
            let kind = kind_of_mode(entry.mode);
            match kind {
                Kind::Symlink => {
                    let text = objects.blob(&entry.id).map_err(|error| error.to_string())?;
                    self.tree.symlink(mount, path, text);
                }
                Kind::File | Kind::Executable => {
                    let origin = Origin::Object(entry.id.clone());
                    let missing = || format!("git has no object {}\nhelp: fetch what this clone is missing", entry.id);
                    self.file(mount, path, entry.size.ok_or_else(missing)?, kind == Kind::Executable, origin);
                }
                Kind::Submodule | Kind::LeftOut | Kind::Unreadable | Kind::Special => {
                    self.tree.directory(mount, path);
                }
            }
        }
        Ok(())
    }

    fn folder(&mut self, mount: Mount, root: &Arc<Root>, entries: &[crate::subject::Entry]) {
        if !self.mount(mount) {
            return;
        }
        for entry in entries {
            let Some(Entry { path, kind, size, .. }) = seen(entry) else { continue };
            if !self.grant.covers(mount, &path) {
                continue;
            }
            match kind {
                EntryKind::File | EntryKind::Executable => {
                    let origin = Origin::File(Arc::clone(root), Box::new(entry.clone()));
                    self.file(mount, &path, size, kind == EntryKind::Executable, origin);
                }
                EntryKind::Symlink => {
                    self.tree.symlink(mount, path, entry.text.clone());
                }
                EntryKind::Submodule => {
                    self.tree.directory(mount, path);
                }
            }
        }
    }

    /// The result of a check in its canonical form, without times; and of a command what it wrote.
    fn evidence(&mut self, row: &Row, log: Option<&Log>, around: &Surroundings<'_>) -> Result<(), String> {
        let (result, output) = (evidence_path(&row.id, "result.json"), evidence_path(&row.id, "output"));
        if self.grant.covers(Mount::Evidence, &result) {
            let bytes = to_canonical(row).map_err(|error| error.to_string())?;
            let digest = Digest::of(&bytes);
            self.file(Mount::Evidence, &result, bytes.len() as u64, false, Origin::Bytes(bytes, digest));
        }
        if let Some(log) = log.filter(|_| self.grant.covers(Mount::Evidence, &output)) {
            let failed = |error: std::io::Error| format!("cannot read the output of {}: {error}", row.id);
            let root = Arc::new(Root::open(&around.logs.folder()).map_err(failed)?);
            let entry = look_at(&root, around.logs.name(&row.id).as_bytes()).map_err(failed)?;
            // A command may have written to it since.
            let entry = entry.filter(|entry| entry.digest == log.digest);
            let entry = entry.ok_or_else(|| format!("the output of {} was changed after it ended", row.id))?;
            self.file(Mount::Evidence, &output, entry.size, false, Origin::File(root, Box::new(entry)));
        }
        Ok(())
    }
}

fn evidence_path(id: &CheckId, name: &str) -> String {
    format!("{id}/{name}")
}
