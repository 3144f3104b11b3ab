//! Large files in pieces: the values of a file's BLAKE3 tree at each mebibyte, so that a piece can be checked without
//! reading the rest, against a digest that is still the plain one of the whole file.

use blake3::hazmat::{ChainingValue, HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use std::io;
use std::sync::Arc;

/// The size of a piece. A power of two, as BLAKE3's tree wants it.
pub(super) const PIECE: u64 = 1 << 20;

/// What each piece of a file is, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces(Arc<[ChainingValue]>);

impl Pieces {
    /// The pieces, of which there are at least two: a file in one piece has no inner values.
    pub(super) fn new(values: Vec<ChainingValue>) -> Option<Self> {
        (values.len() >= 2).then(|| Self(values.into()))
    }

    /// The values, in order.
    pub(super) fn values(&self) -> &[ChainingValue] {
        &self.0
    }

    /// The digest of the whole file.
    pub(super) fn root(&self) -> blake3::Hash {
        let (left, right) = halves(&self.0);
        merge_subtrees_root(&merged(left), &merged(right), Mode::Hash)
    }

    /// `len` bytes at `offset`, which lie within the file. `fetch` gives exactly so many bytes of it. None where a
    /// piece is not what it was.
    pub fn read(
        &self,
        offset: u64,
        len: usize,
        mut fetch: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
        size: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut out = Vec::with_capacity(len);
        let end = offset + len as u64;
        let mut start = offset / PIECE * PIECE;
        while start < end {
            let stop = (start + PIECE).min(size);
            let bytes = fetch(start, usize::try_from(stop - start).map_err(io::Error::other)?)?;
            let value = usize::try_from(start / PIECE).ok().and_then(|index| self.0.get(index));
            if value.is_none_or(|value| piece(start, &bytes) != *value) {
                return Ok(None);
            }
            let (from, to) = (offset.max(start) - start, end.min(stop) - start);
            // Both are at most a piece.
            #[expect(clippy::cast_possible_truncation, reason = "a piece is a mebibyte")]
            out.extend_from_slice(&bytes[from as usize..to as usize]);
            start = stop;
        }
        Ok(Some(out))
    }
}

/// The value of the piece that begins at `offset`.
pub(super) fn piece(offset: u64, bytes: &[u8]) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The left half of a tree has the largest power of two that leaves something for the right.
fn halves(values: &[ChainingValue]) -> (&[ChainingValue], &[ChainingValue]) {
    values.split_at(values.len().next_power_of_two() / 2)
}

fn merged(values: &[ChainingValue]) -> ChainingValue {
    if let [one] = values {
        return *one;
    }
    let (left, right) = halves(values);
    merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the sizes are small")]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_file_add_up_to_its_plain_digest() {
        for size in [PIECE + 77, 2 * PIECE, 3 * PIECE - 1, 3 * PIECE, 4 * PIECE, 5 * PIECE + 77, 9 * PIECE] {
            let bytes: Vec<u8> = (0..size).map(|at| ((at * 31) >> 3) as u8).collect();
            let values = bytes.chunks(PIECE as usize).enumerate().map(|(at, bytes)| piece(at as u64 * PIECE, bytes));
            let pieces = Pieces::new(values.collect()).unwrap();
            assert_eq!(pieces.root(), blake3::hash(&bytes), "{size}");
            let fetch = |start: u64, len: usize| Ok(bytes[start as usize..start as usize + len].to_vec());
            let across = pieces.read(PIECE - 5, 10, fetch, size).unwrap().unwrap();
            assert_eq!(across, bytes[PIECE as usize - 5..PIECE as usize + 5]);
            let mut changed = bytes.clone();
            changed[PIECE as usize + 1] ^= 1;
            let fetch = |start: u64, len: usize| Ok(changed[start as usize..start as usize + len].to_vec());
            assert_eq!(pieces.read(PIECE, 10, fetch, size).unwrap(), None);
            assert!(pieces.read(0, 10, fetch, size).unwrap().is_some());
        }
    }
}
