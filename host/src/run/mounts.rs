//! What a check is shown: the mounts it was granted, each with what the grant leaves of it.
//!
//! `/tree` is the subject, `/base` what it is compared with, `/spec` the specification as it was committed, `/evidence`
//! results and output of the checks it comes after, `/claim` a folder that the caller gives. A mount that there is no
//! source for, or that was not granted, is not there.

use super::sources::{Mounted, Origin};
use super::{Runner, Surroundings};
use crate::model::{CheckId, Digest, Entry, EntryKind, Log, Mount, RecordRow, Row, to_canonical};
use crate::plan::{Base, Before, Grant, Unit, seen};
use crate::subject::beneath::Root;
use crate::subject::{Committed, Kind, Objects, Snapshot, kind_of_mode, look_at};
use crate::worker::{TreeBuilder, View};
use std::path::Path;
use std::sync::Arc;

/// A folder that a caller gives, as it lay there when it was looked at.
#[derive(Debug)]
pub struct Claim {
    root: Arc<Root>,
    entries: Vec<Arc<crate::subject::Entry>>,
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
        let mut shown = self.shown(grant);
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
        shown.view()
    }

    /// Everything that a check may see which is run on the base: that is its subject, and what it is compared with.
    pub(super) fn view_of_base(&self, base: &Base, grant: &Grant) -> Result<View, String> {
        let mut shown = self.shown(grant);
        let repository = self.shared.around.workspace.repository.as_ref().ok_or("there is no repository")?;
        let objects = Objects::new(repository);
        shown.before(base, self.shared.around.snapshot, &objects)?;
        shown.committed(Mount::Base, &base.revision.entries, &objects)?;
        if let Some(spec) = self.shared.around.spec {
            shown.committed(Mount::Spec, &spec.files, &objects)?;
        }
        shown.view()
    }

    fn shown<'a>(&self, grant: &'a Grant) -> Shown<'a> {
        let contents = Mounted { sources: Arc::clone(&self.shared.sources), others: Vec::new() };
        Shown { grant, tree: TreeBuilder::new(), contents }
    }
}

struct Shown<'a> {
    grant: &'a Grant,
    tree: TreeBuilder,
    contents: Mounted,
}

impl Shown<'_> {
    fn view(self) -> Result<View, String> {
        let tree = self.tree.build().map_err(|error| error.to_string())?;
        Ok(View::new(Arc::new(tree), Arc::new(self.contents)))
    }

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
            self.own(key, entry, snapshot);
        }
    }

    /// An entry of the subject, by its place among all of them.
    fn own(&mut self, key: usize, entry: &crate::subject::Entry, snapshot: &Snapshot) {
        let Some(Entry { path, kind, size, .. }) = seen(entry) else { return };
        if !self.grant.covers(Mount::Tree, &path) {
            return;
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

    /// The base in the place of the subject.
    fn before(&mut self, base: &Base, snapshot: &Snapshot, objects: &Objects) -> Result<(), String> {
        if self.mount(Mount::Tree) {
            for entry in base.tree(snapshot) {
                match entry {
                    Before::Here(key, entry) => self.own(key, entry, snapshot),
                    Before::There(entry) => self.held(Mount::Tree, entry, objects)?,
                }
            }
        }
        Ok(())
    }

    fn committed(&mut self, mount: Mount, entries: &[Committed], objects: &Objects) -> Result<(), String> {
        if !self.mount(mount) {
            return Ok(());
        }
        entries.iter().try_for_each(|entry| self.held(mount, entry, objects))
    }

    /// An entry as git has it.
    fn held(&mut self, mount: Mount, entry: &Committed, objects: &Objects) -> Result<(), String> {
        let Ok(path) = std::str::from_utf8(&entry.path) else { return Ok(()) };
        if !self.grant.covers(mount, path) {
            return Ok(());
        }
        let kind = kind_of_mode(entry.mode);
        match kind {
            Kind::Symlink => {
                let text = objects.link(entry.id);
                let text = text.map_err(|error| format!("`{}` of a commit: {error}", path.escape_debug()))?;
                self.tree.symlink(mount, path, text);
            }
            Kind::File | Kind::Executable => {
                let origin = Origin::Object(entry.id);
                let missing = || format!("git has no object {}\nhelp: fetch what this clone is missing", entry.id);
                self.file(mount, path, entry.size.ok_or_else(missing)?, kind == Kind::Executable, origin);
            }
            Kind::Submodule | Kind::LeftOut | Kind::Unreadable | Kind::Special => {
                self.tree.directory(mount, path);
            }
        }
        Ok(())
    }

    fn folder(&mut self, mount: Mount, root: &Arc<Root>, entries: &[Arc<crate::subject::Entry>]) {
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
                    let origin = Origin::File(Arc::clone(root), Arc::clone(entry));
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
            self.file(Mount::Evidence, &output, entry.size, false, Origin::File(root, entry));
        }
        Ok(())
    }
}

fn evidence_path(id: &CheckId, name: &str) -> String {
    format!("{id}/{name}")
}
