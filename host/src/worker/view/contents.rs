//! Contents of files: asked for in large pieces, handed out in small ones.

use super::tree::Kind;
use super::{NodeId, Observed, Sight, View};

/// The most bytes one read gives. It is a fixed number, so that how often a guest has to ask does not depend on how
/// the bytes arrive, and small enough for a guest's buffers.
pub(in crate::worker) const READ_MAX: u64 = 64 << 10;

/// How much of a file is asked for at once: all of a usual file, and a verifiable piece of a large one.
const CHUNK: u64 = 1 << 20;

/// How many pieces are kept: comparing two files piece by piece must not fetch each piece again and again.
const KEPT: usize = 4;

/// Where the bytes of files come from. In a locked worker they come through a pipe.
pub trait Contents: Send + Sync {
    /// Exactly `len` bytes, from `offset` on, of the file that was added under `key`. The range lies within the size
    /// that the tree says.
    fn read(&self, key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError>;

    /// A digest or an id of the whole contents, with the name of its algorithm: what a result that rests on them
    /// depends on. Asked for on the parent's side only.
    fn identity(&self, key: u32) -> String;
}

/// Why there are no contents. Always this machine's trouble, never the guest's: the call ends, and the guest does not
/// get to see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The file is not what it was when the tree was taken.
    #[error("`{0}` changed while it was being verified")]
    Changed(String),
    /// Something else.
    #[error("contents cannot be read: {0}")]
    Failed(String),
}

/// The contents of a view without files.
#[derive(Debug)]
pub(super) struct Nothing;

impl Contents for Nothing {
    fn read(&self, _key: u32, _offset: u64, _len: usize) -> Result<Vec<u8>, ContentsError> {
        Err(ContentsError::Failed("there are no files".to_owned()))
    }

    fn identity(&self, _key: u32) -> String {
        String::new()
    }
}

/// The pieces of files that a call has fetched last, newest first.
#[derive(Debug, Default)]
pub(in crate::worker) struct Chunks(Vec<Chunk>);

#[derive(Debug)]
struct Chunk {
    file: NodeId,
    start: u64,
    bytes: Vec<u8>,
}

/// Some bytes of a file, and what getting them cost.
#[derive(Debug)]
pub(in crate::worker) struct Piece<'a> {
    pub(in crate::worker) bytes: &'a [u8],
    /// Bytes that had to be fetched for it.
    pub(in crate::worker) fetched: u64,
    /// Whether the file ends here.
    pub(in crate::worker) end: bool,
}

impl Chunks {
    /// The bytes of `file` at `offset`: exactly the least of `len`, [`READ_MAX`] and what is left.
    pub(in crate::worker) fn read(
        &mut self,
        view: &View,
        observed: &mut Observed,
        file: NodeId,
        offset: u64,
        len: u64,
    ) -> Result<Piece<'_>, ContentsError> {
        let Kind::File { size, key, .. } = view.tree().kind(file) else {
            return Err(ContentsError::Failed("not a file".to_owned()));
        };
        let end = offset.saturating_add(len.min(READ_MAX)).min(size);
        if offset >= end {
            // Where the file ends is all that shows.
            observed.see(file, Sight::SIZE);
            return Ok(Piece { bytes: &[], fetched: 0, end: offset >= size });
        }
        observed.see(file, Sight::CONTENTS);
        // A piece that crosses a chunk's edge must come whole too: the guest sees no edges.
        let start = offset / CHUNK * CHUNK;
        let stop = if end > start + CHUNK { end } else { (start + CHUNK).min(size) };
        let fetched = self.bring_forward(view, file, key, start, stop)?;
        let chunk = &self.0[0];
        let from = index(offset - chunk.start);
        Ok(Piece { bytes: &chunk.bytes[from..from + index(end - offset)], fetched, end: end == size })
    }

    /// Makes the first chunk one that covers `start..stop` of the file. Returns how much was fetched.
    fn bring_forward(
        &mut self,
        view: &View,
        file: NodeId,
        key: u32,
        start: u64,
        stop: u64,
    ) -> Result<u64, ContentsError> {
        let covers = |chunk: &Chunk| {
            chunk.file == file && chunk.start == start && chunk.start + chunk.bytes.len() as u64 >= stop
        };
        if let Some(at) = self.0.iter().position(covers) {
            self.0[..=at].rotate_right(1);
            return Ok(0);
        }
        let bytes = view.contents().read(key, start, index(stop - start))?;
        if bytes.len() as u64 != stop - start {
            return Err(ContentsError::Changed(view.tree().name(file).to_owned()));
        }
        self.0.truncate(KEPT - 1);
        self.0.insert(0, Chunk { file, start, bytes });
        Ok(stop - start)
    }
}

/// A length that is at most a chunk and a read, so it fits on every machine.
fn index(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
