//! Serving the contents of the subject: opened here, checked against the snapshot from the very bytes that are
//! handed over, so that whoever reads sees the tree that the verdict names or nothing.

use crate::model::Digest;
use crate::subject::beneath::Root;
use crate::subject::{Entry, Snapshot};
use crate::worker::{Contents, ContentsError};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The contents of one snapshot. A file's key is its place among the entries.
#[derive(Debug)]
pub struct TreeContents {
    root: Root,
    entries: Arc<[Entry]>,
    moved: Mutex<BTreeSet<String>>,
}

impl TreeContents {
    /// The contents of `snapshot`, which was taken of the folder `root`.
    pub fn new(snapshot: &Snapshot, root: &Path) -> io::Result<Self> {
        let entries = snapshot.entries.clone().into();
        Ok(Self { root: Root::open(root)?, entries, moved: Mutex::default() })
    }

    /// The paths whose contents were asked for and were no longer what the snapshot says, sorted.
    pub fn moved(&self) -> Vec<String> {
        // A set that is only added to is whole even after a panic.
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn checked(&self, entry: &Entry, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        let file = self.root.file(&entry.path)?;
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
}

impl Contents for TreeContents {
    fn read(&self, key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        let entry = self.entries.get(key as usize).ok_or_else(|| ContentsError::Failed("no such file".to_owned()))?;
        if let Ok(Some(bytes)) = self.checked(entry, offset, len) {
            return Ok(bytes);
        }
        // Gone, replaced by something else, or of another length: it is not what it was.
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        Err(ContentsError::Changed(path))
    }

    fn identity(&self, key: u32) -> String {
        self.entries.get(key as usize).map_or_else(String::new, |entry| entry.digest.to_string())
    }
}

fn exactly(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
