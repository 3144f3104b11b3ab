//! Serving the contents of what checks may see: opened here, checked from the very bytes that are handed over, so that
//! whoever reads sees the tree that the verdict names or nothing.

use crate::model::Digest;
use crate::subject::beneath::Root;
use crate::subject::git::Repository;
use crate::subject::{Entry, ObjectId, Objects, Snapshot};
use crate::worker::{Contents, ContentsError};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the contents of a subject come from, for all checks of a run.
#[derive(Debug)]
pub struct Sources {
    place: Place,
    objects: Option<Objects>,
    entries: Vec<Arc<Entry>>,
    moved: Mutex<BTreeSet<String>>,
}

/// Where the subject is.
#[derive(Debug)]
enum Place {
    Folder(Root),
    /// In git's objects only.
    Revision,
}

/// Where the contents of a file come from that is not the subject's.
#[derive(Debug)]
pub(super) enum Origin {
    /// From git's objects, by id.
    Object(ObjectId),
    /// From a folder outside the subject, where it must be as it was when it was looked at.
    File(Arc<Root>, Arc<Entry>),
    /// They are here.
    Bytes(Vec<u8>, Digest),
}

impl Sources {
    /// The contents of `snapshot`, which was taken of the folder `root`, or of a revision of `repository`.
    pub fn new(snapshot: &Snapshot, root: &Path, repository: Option<&Repository>) -> io::Result<Self> {
        let place = if snapshot.revision { Place::Revision } else { Place::Folder(Root::open(root)?) };
        let entries = snapshot.entries.clone();
        Ok(Self { place, objects: repository.map(Objects::new), entries, moved: Mutex::default() })
    }

    /// The paths whose contents were asked for and were no longer what the snapshot says, sorted.
    pub fn moved(&self) -> Vec<String> {
        // A set that is only added to is whole even after a panic.
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// `len` bytes at `offset` of an entry of the subject.
    pub fn read(&self, entry: &Entry, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        let read = match &self.place {
            Place::Folder(root) => checked(root, entry, offset, len),
            Place::Revision => {
                let none = || ContentsError::Failed("there is no object".to_owned());
                return self.object(entry.blob.ok_or_else(none)?, offset, len);
            }
        };
        if let Ok(Some(bytes)) = read {
            return Ok(bytes);
        }
        // Gone, replaced by something else, or of another length: it is not what it was.
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        Err(ContentsError::Changed(path))
    }

    /// `len` bytes at `offset` of one of git's objects.
    pub(super) fn object(&self, id: ObjectId, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        let objects =
            self.objects.as_ref().ok_or_else(|| ContentsError::Failed("there is no repository".to_owned()))?;
        let part = objects.part(id, offset, len).map_err(|error| ContentsError::Failed(error.to_string()))?;
        part.ok_or_else(|| ContentsError::Failed(format!("the object {id} is shorter than its tree says")))
    }
}

/// The contents of everything that one check may see. A key below the number of the subject's entries is the place among
/// these; what else there is comes behind them.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) sources: Arc<Sources>,
    pub(super) others: Vec<Origin>,
}

impl Mounted {
    /// The key of the next file that is added to `others`.
    pub(super) fn next_key(&self) -> u32 {
        // Trees of more than four thousand million files were not listed to begin with.
        u32::try_from(self.sources.entries.len() + self.others.len()).unwrap_or(u32::MAX)
    }

    fn other(&self, key: u32) -> Option<&Origin> {
        self.others.get((key as usize).checked_sub(self.sources.entries.len())?)
    }
}

impl Contents for Mounted {
    fn read(&self, key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        if let Some(entry) = self.sources.entries.get(key as usize) {
            return self.sources.read(entry, offset, len);
        }
        match self.other(key) {
            Some(Origin::Object(id)) => self.sources.object(*id, offset, len),
            Some(Origin::File(root, entry)) => match checked(root, entry, offset, len) {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) | Err(_) => {
                    Err(ContentsError::Failed(format!("`{}` changed", String::from_utf8_lossy(&entry.path))))
                }
            },
            Some(Origin::Bytes(bytes, _)) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let part = from.checked_add(len).and_then(|to| bytes.get(from..to));
                part.map(<[u8]>::to_vec).ok_or_else(|| ContentsError::Failed("out of range".to_owned()))
            }
            None => Err(ContentsError::Failed("no such file".to_owned())),
        }
    }

    fn identity(&self, key: u32) -> String {
        if let Some(entry) = self.sources.entries.get(key as usize) {
            return entry.digest.to_string();
        }
        match self.other(key) {
            Some(Origin::Object(id)) => id.named(),
            Some(Origin::File(_, entry)) => entry.digest.to_string(),
            Some(Origin::Bytes(_, digest)) => digest.to_string(),
            None => String::new(),
        }
    }
}

/// `len` bytes at `offset` of a file below `root`. None where it is not what the entry says.
fn checked(root: &Root, entry: &Entry, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
    let file = root.file(&entry.path)?;
    if file.metadata()?.len() != entry.size {
        return Ok(None);
    }
    let whole = offset == 0 && len as u64 == entry.size;
    if whole {
        let bytes = exactly(&file, 0, len)?;
        return Ok((Digest::of(&bytes) == entry.digest).then_some(bytes));
    }
    let Some(pieces) = &entry.pieces else {
        // Small files are always asked for whole by the view; this is for whoever does not.
        let bytes = exactly(&file, 0, usize::try_from(entry.size).map_err(io::Error::other)?)?;
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let part = bytes.get(from..from.saturating_add(len)).map(<[u8]>::to_vec);
        return Ok(part.filter(|_| Digest::of(&bytes) == entry.digest));
    };
    pieces.read(offset, len, |start, len| exactly(&file, start, len), entry.size)
}

fn exactly(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
