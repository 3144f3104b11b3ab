//! What one snapshot leaves for the next, as bytes: for each file that was read what showed that it was not touched and
//! what was found in it, and for each commit its tree.
//!
//! Values only: whoever keeps the bytes makes sure that they come back as they were. Bytes that do not read are no
//! memory at all. Entries that could have been written again without a trace are never kept.

use super::conversion::{Encoding, Ends, Rules};
use super::entry::{Converted, Entry, Kind, StatKey};
use super::git::Committed;
use super::id::ObjectId;
use super::pieces::Pieces;
use super::snapshot::Snapshot;
use crate::model::Digest;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The trees of commits, by commit. What a commit's id stands for never changes.
pub(super) type Trees = BTreeMap<String, Arc<[Committed]>>;

/// What makes a whole snapshot the same as an earlier one, where none of its files was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    /// Of all that git says which decides what belongs to it.
    pub(super) said: Digest,
    /// The digest of all entries.
    pub(super) tree: Digest,
    /// Whether it differs from its commit.
    pub(super) dirty: bool,
}

/// What is known from an earlier snapshot of the same folder.
#[derive(Debug)]
pub struct Memory {
    /// Sorted bytewise by path.
    entries: Vec<Arc<Entry>>,
    trees: Trees,
    /// Where the entries are all there were.
    whole: Option<Whole>,
    taken: SystemTime,
}

/// What a new snapshot looks things up in.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    entries: &'a [Arc<Entry>],
    pub(super) trees: Option<&'a Trees>,
    pub(super) whole: Option<&'a Whole>,
    taken: SystemTime,
    /// Which of the entries show no sign of having been touched, as far as that was looked at.
    untouched: &'a [bool],
}

impl<'a> Known<'a> {
    pub(super) fn nothing() -> Self {
        Self { entries: &[], trees: None, whole: None, taken: UNIX_EPOCH, untouched: &[] }
    }

    pub(super) fn new(
        entries: &'a [Arc<Entry>],
        trees: &'a Trees,
        whole: Option<&'a Whole>,
        taken: SystemTime,
    ) -> Self {
        Self { entries, trees: Some(trees), whole, taken, untouched: &[] }
    }

    /// The whole snapshot once more, where not one of its entries was touched. Whether there are others is for the caller
    /// to know.
    pub(super) fn as_it_was(&self, untouched: &[bool], taken: SystemTime, commit: Option<String>) -> Option<Snapshot> {
        let Whole { tree, dirty, .. } = self.whole?;
        let same = untouched.iter().all(|same| *same) && !self.entries.iter().any(|e| e.stat.is_fresh(self.taken));
        same.then(|| Snapshot {
            trees: self.trees.cloned().unwrap_or_default(),
            whole: self.whole.cloned(),
            ..Snapshot::of_tree(self.entries.to_vec(), *tree, commit, Some(*dirty), taken)
        })
    }

    /// The entry that was at this path, if it could not have been written again without its times moving.
    pub(super) fn get(&self, path: &[u8]) -> Option<&'a Arc<Entry>> {
        self.entries.get(self.find(path)?).filter(|entry| !entry.stat.is_fresh(self.taken))
    }

    /// The same, if it was seen to be untouched.
    pub(super) fn untouched(&self, path: &[u8]) -> Option<&'a Arc<Entry>> {
        if self.untouched.is_empty() {
            return None;
        }
        let at = self.find(path).filter(|at| self.untouched.get(*at) == Some(&true))?;
        self.entries.get(at).filter(|entry| !entry.stat.is_fresh(self.taken))
    }

    fn find(&self, path: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()
    }

    /// All that is known, sorted bytewise by path.
    pub(super) fn entries(&self) -> &'a [Arc<Entry>] {
        self.entries
    }

    /// The same with what was seen of its entries, one for each.
    pub(super) fn seen(self, untouched: &'a [bool]) -> Self {
        Self { untouched, ..self }
    }
}

impl Memory {
    pub(super) fn known(&self) -> Known<'_> {
        Known::new(&self.entries, &self.trees, self.whole.as_ref(), self.taken)
    }

    /// Reads what [`Snapshot::remember`] gave.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let taken = UNIX_EPOCH.checked_add(Duration::new(reader.u64()?, reader.u32()?))?;
        let mut entries = Vec::new();
        for _ in 0..reader.u32()? {
            entries.push(Arc::new(reader.entry()?));
        }
        let mut trees = Trees::new();
        for _ in 0..reader.u32()? {
            let commit = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
            let mut tree = Vec::new();
            for _ in 0..reader.u32()? {
                tree.push(Committed {
                    path: reader.bytes()?.to_vec(),
                    mode: reader.u32()?,
                    id: reader.id()?,
                    size: None,
                });
            }
            trees.insert(commit, tree.into());
        }
        let whole = if reader.flag()? {
            let [said, tree] = [reader.digest()?, reader.digest()?];
            Some(Whole { said, tree, dirty: reader.flag()? })
        } else {
            None
        };
        reader.0.is_empty().then_some(Self { entries, trees, whole, taken })
    }
}

impl Snapshot {
    /// What the next snapshot of the same folder can rely on. None where nothing was learnt that the last one did not
    /// know, or where it cannot be written down.
    pub fn remember(&self) -> Option<Vec<u8>> {
        let taken = self.taken.duration_since(UNIX_EPOCH).ok().filter(|_| self.learnt)?;
        let mut writer = Writer(Vec::with_capacity(self.entries.len() * 160));
        writer.u64(taken.as_secs());
        writer.u32(taken.subsec_nanos());
        let kept = |entry: &&Arc<Entry>| {
            matches!(entry.kind, Kind::File | Kind::Executable | Kind::Symlink)
                && u64::try_from(entry.stat.size) == Ok(entry.size)
                && !entry.stat.is_fresh(self.taken)
        };
        let kept: Vec<&Arc<Entry>> = self.entries.iter().filter(kept).collect();
        let whole = self.whole.as_ref().filter(|_| kept.len() == self.entries.len());
        writer.count(kept.len())?;
        for entry in kept {
            writer.entry(entry)?;
        }
        writer.count(self.trees.len())?;
        for (commit, tree) in &self.trees {
            writer.bytes(commit.as_bytes())?;
            writer.count(tree.len())?;
            for entry in tree.iter() {
                writer.bytes(&entry.path)?;
                writer.u32(entry.mode);
                writer.id(entry.id);
            }
        }
        writer.0.push(whole.is_some().into());
        if let Some(Whole { said, tree, dirty }) = whole {
            writer.0.extend(said.as_bytes());
            writer.0.extend(tree.as_bytes());
            writer.0.push((*dirty).into());
        }
        Some(writer.0)
    }
}

/// Integers are little-endian, and what has a length is preceded by it.
struct Writer(Vec<u8>);

impl Writer {
    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn count(&mut self, count: usize) -> Option<()> {
        self.u32(u32::try_from(count).ok()?);
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.count(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Some(())
    }

    fn id(&mut self, id: ObjectId) {
        self.0.push(if id.is_sha256() { 32 } else { 20 });
        self.0.extend_from_slice(id.as_bytes());
    }

    fn entry(&mut self, entry: &Entry) -> Option<()> {
        self.bytes(&entry.path)?;
        let StatKey { size, modified, changed, inode, device, mode } = entry.stat;
        for value in [size, modified.0, modified.1, changed.0, changed.1] {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
        self.u64(inode);
        self.u64(device);
        self.u32(mode);
        if entry.kind == Kind::Symlink {
            self.bytes(&entry.text)?;
        }
        self.0.extend_from_slice(entry.digest.as_bytes());
        for id in [entry.id, entry.blob] {
            self.0.push(id.is_some().into());
            if let Some(id) = id {
                self.id(id);
            }
        }
        self.0.push(entry.tracked.into());
        match &entry.converted {
            Some(converted) => self.converted(converted),
            None => self.0.push(0),
        }
        let pieces = entry.pieces.as_ref().map_or(&[][..], Pieces::values);
        self.count(pieces.len())?;
        self.0.extend(pieces.as_flattened());
        Some(())
    }

    fn converted(&mut self, converted: &Converted) {
        match &converted.rules {
            Rules::Builtin { ends, ident, encoding } => {
                let ends = match ends {
                    Ends::Kept => 0,
                    Ends::Text => 1,
                    Ends::Guessed => 2,
                };
                let encoding = match encoding {
                    None => 0,
                    Some(Encoding::Utf16) => 1,
                    Some(Encoding::Utf16Le) => 2,
                    Some(Encoding::Utf16Be) => 3,
                };
                self.0.extend([1, ends, u8::from(*ident), encoding]);
            }
            Rules::Lfs => self.0.push(2),
            // It costs nothing to find out again.
            Rules::Unknown(_) => {
                return self.0.push(0);
            }
        }
        self.id(converted.blob);
        self.0.push(converted.same.into());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        self.u8().map(|byte| byte == 1)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u32()?).ok()?;
        self.take(count)
    }

    fn digest(&mut self) -> Option<Digest> {
        self.array().map(|bytes: [u8; 32]| Digest::from_hash(bytes.into()))
    }

    fn id(&mut self) -> Option<ObjectId> {
        let count = self.u8()?;
        ObjectId::new(self.take(count.into())?)
    }

    fn entry(&mut self) -> Option<Entry> {
        let path = self.bytes()?.to_vec();
        let size = self.i64()?;
        let (modified, changed) = ((self.i64()?, self.i64()?), (self.i64()?, self.i64()?));
        let (inode, device, mode) = (self.u64()?, self.u64()?, self.u32()?);
        let stat = StatKey { size, modified, changed, inode, device, mode };
        let kind = stat.kind_of_entry();
        let text = if kind == Kind::Symlink { self.bytes()?.to_vec() } else { Vec::new() };
        let digest = self.digest()?;
        let id = if self.flag()? { Some(self.id()?) } else { None };
        let blob = if self.flag()? { Some(self.id()?) } else { None };
        let tracked = self.flag()?;
        let converted = match self.u8()? {
            0 => None,
            kind => Some(Box::new(self.converted(kind)?)),
        };
        let count = usize::try_from(self.u32()?).ok()?;
        let pieces = self.take(count.checked_mul(32)?)?.as_chunks().0.to_vec();
        Some(Entry {
            path,
            kind,
            size: u64::try_from(size).ok()?,
            digest,
            tracked,
            text,
            pieces: Pieces::new(pieces),
            blob,
            id,
            converted,
            stat,
        })
    }

    fn converted(&mut self, kind: u8) -> Option<Converted> {
        let rules = match kind {
            1 => {
                let ends = match self.u8()? {
                    0 => Ends::Kept,
                    1 => Ends::Text,
                    2 => Ends::Guessed,
                    _ => return None,
                };
                let ident = self.flag()?;
                let encoding = match self.u8()? {
                    0 => None,
                    1 => Some(Encoding::Utf16),
                    2 => Some(Encoding::Utf16Le),
                    3 => Some(Encoding::Utf16Be),
                    _ => return None,
                };
                Rules::Builtin { ends, ident, encoding }
            }
            2 => Rules::Lfs,
            _ => return None,
        };
        Some(Converted { rules, blob: self.id()?, same: self.flag()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let stat = |changed| StatKey {
            size: 3 << 20,
            modified: (5, 6),
            changed: (changed, 7),
            inode: u64::MAX,
            device: 9,
            mode: 0o100_644,
        };
        let entry = |path: &[u8], changed, rules: Option<Rules>| Entry {
            path: path.to_vec(),
            kind: Kind::File,
            size: 3 << 20,
            digest: Digest::of(path),
            tracked: true,
            text: Vec::new(),
            pieces: Pieces::new(vec![[1; 32], [2; 32], [3; 32]]),
            blob: Some(ObjectId::example(0xab)),
            id: Some(ObjectId::example(0xab)),
            converted: rules.map(|rules| Box::new(Converted { rules, blob: ObjectId::example(0xcd), same: true })),
            stat: stat(changed),
        };
        let builtin = Rules::Builtin { ends: Ends::Guessed, ident: true, encoding: Some(Encoding::Utf16Be) };
        let entries =
            vec![entry(b"a\xff\n", 100, Some(builtin)), entry(b"b", 100, Some(Rules::Lfs)), entry(b"c", 1000, None)];
        let taken = UNIX_EPOCH + Duration::new(1000, 8_000_000);
        let tree =
            [Committed { path: b"x y".to_vec(), mode: 0o120_000, id: ObjectId::new(&[0xef; 32]).unwrap(), size: None }];
        let trees = [("sha256:00".to_owned(), tree.into())].into();
        Snapshot {
            trees,
            learnt: true,
            ..Snapshot::new(entries.into_iter().map(Arc::new).collect(), None, None, taken)
        }
    }

    #[test]
    fn what_is_remembered_is_what_was() {
        let snapshot = snapshot();
        let memory = Memory::read(&snapshot.remember().unwrap()).unwrap();
        assert_eq!(memory.trees, snapshot.trees);
        let known = memory.known();
        for entry in &snapshot.entries[..2] {
            assert_eq!(known.get(&entry.path), Some(entry));
        }
        assert_eq!(memory.entries.len(), 2, "what was touched in the last tick is not kept");
        assert_eq!(Snapshot { learnt: false, ..snapshot }.remember(), None);
    }

    #[test]
    fn an_unchanged_tree_is_not_read_again_and_a_changed_file_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let workspace = crate::subject::Workspace::of(folder.path(), &crate::subject::Patience::default()).unwrap();
        let first = workspace.snapshot(None).unwrap();
        let mut memory = first.remember().unwrap();
        // Until the clock has moved on, what was just written is read again.
        let until = SystemTime::now() + Duration::from_secs(10);
        let again = loop {
            let again = workspace.snapshot_with(|| Memory::read(&memory)).unwrap();
            let Some(more) = again.remember() else { break again };
            memory = more;
            assert!(SystemTime::now() < until, "it is read each time");
        };
        assert_eq!(again.entries, first.entries);
        std::fs::write(folder.path().join("b"), "c").unwrap();
        let changed = workspace.snapshot_with(|| Memory::read(&memory)).unwrap();
        assert_eq!(changed.moved(&first), ["b"]);
        assert_eq!(changed.entries[1].digest, Digest::of(b"c"));
    }

    #[test]
    fn bytes_that_do_not_read_are_no_memory() {
        let whole = snapshot().remember().unwrap();
        for at in 0..whole.len() {
            assert!(Memory::read(&whole[..at]).is_none(), "cut at {at}");
        }
        assert!(Memory::read(&[&whole[..], b"x"].concat()).is_none());
    }
}
