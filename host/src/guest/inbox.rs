//! What a worker has said and nobody has used yet, cut into frames.

use super::process::Lost;
use crate::worker::{FRAME_HEADER, FRAME_MOST, FrameKind, Say, frame_header};
use std::ops::Range;

/// How much of a pipe is read at once. A build for fuzzing clears room byte by byte and counts each.
const CHUNK: usize = if cfg!(fuzzing) { 1 << 10 } else { 256 << 10 };

/// The most that waits to be used: the longest frame, and what came with its end.
const MOST: usize = FRAME_MOST + CHUNK;

/// What was read of a worker's words and is not used yet: a part of the buffer, which is kept from one reading to the
/// next, since to clear so much room each time would take longer than most messages do.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    unused: Range<usize>,
}

impl Inbox {
    /// The next frame, which must be a message. `more` waits, fills some of the room it is given and says how much.
    pub(super) fn message(&mut self, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<Say, Lost> {
        match self.frame(more)? {
            (FrameKind::Message, bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| Lost::Died("it says what is not understood".to_owned()))
            }
            (FrameKind::Bytes, _) => Err(Lost::Died("it sends what was not asked for".to_owned())),
        }
    }

    /// The next frame, which must be bytes; as [`Self::message`].
    pub(super) fn bytes(&mut self, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<Vec<u8>, Lost> {
        match self.frame(more)? {
            (FrameKind::Bytes, bytes) => Ok(bytes),
            (FrameKind::Message, _) => Err(Lost::Died("it speaks out of turn".to_owned())),
        }
    }

    /// The next frame; as [`Self::message`].
    pub(super) fn frame(
        &mut self,
        more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>,
    ) -> Result<(FrameKind, Vec<u8>), Lost> {
        let mut first = [0; FRAME_HEADER];
        first.copy_from_slice(&self.take(FRAME_HEADER, more)?);
        let Some((kind, length)) = frame_header(first) else {
            return Err(Lost::Died("it says what is not understood".to_owned()));
        };
        Ok((kind, self.take(length, more)?))
    }

    /// Reads some more, without using it.
    pub(super) fn fill(&mut self, more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>) -> Result<(), Lost> {
        if self.unused.len() > MOST {
            return Err(Lost::Died("it says more than anybody asked".to_owned()));
        }
        if self.unused.start > 0 {
            self.buffer.copy_within(self.unused.clone(), 0);
            self.unused = 0..self.unused.len();
        }
        if self.buffer.len() < self.unused.end + CHUNK {
            self.buffer.resize(self.unused.end + CHUNK, 0);
        }
        self.unused.end += more(&mut self.buffer[self.unused.end..])?;
        Ok(())
    }

    /// Whether everything was used.
    pub(super) fn is_empty(&self) -> bool {
        self.unused.is_empty()
    }

    /// Exactly so many bytes. Room is made as they come: a length alone costs nothing.
    pub(super) fn take(
        &mut self,
        count: usize,
        more: &mut dyn FnMut(&mut [u8]) -> Result<usize, Lost>,
    ) -> Result<Vec<u8>, Lost> {
        while self.unused.len() < count {
            self.fill(more)?;
        }
        let bytes = self.buffer[self.unused.start..self.unused.start + count].to_vec();
        self.unused.start += count;
        Ok(bytes)
    }
}
