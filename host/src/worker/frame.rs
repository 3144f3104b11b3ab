//! Frames: how parent and worker talk over a pair of pipes.
//!
//! A frame is one byte that says what it holds (`J` a message in JSON, `B` plain bytes), the length of that as 32 bits
//! little-endian, and then that. Both sides cap what they accept before they make room for it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// The longest message: a report with all findings at their caps is bounded by the guest's own memory, and one beyond
/// this is of no use to anyone.
pub(super) const MAX_MESSAGE: usize = 128 << 20;

/// The most plain bytes in one frame: compiled code of the largest pack.
pub const MAX_BYTES: usize = 1 << 30;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message.
    Message,
    /// Bytes.
    Bytes,
}

/// The first bytes of a frame.
pub const HEADER: usize = 5;

/// What a header says: what follows, and how long it is. None where it is no header or beyond what is accepted.
pub fn header(bytes: [u8; HEADER]) -> Option<(Kind, usize)> {
    let [kind, length @ ..] = bytes;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    match kind {
        b'J' if length <= MAX_MESSAGE => Some((Kind::Message, length)),
        b'B' if length <= MAX_BYTES => Some((Kind::Bytes, length)),
        _ => None,
    }
}

/// Writes a message.
pub fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    write(out, b'J', &serde_json::to_vec(message)?)
}

/// Writes plain bytes.
pub fn write_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    write(out, b'B', bytes)
}

fn write(out: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes();
    out.write_all(&[kind, length[0], length[1], length[2], length[3]])?;
    out.write_all(bytes)
}

/// Reads a frame, waiting for it.
pub(super) fn read(input: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut first = [0; HEADER];
    input.read_exact(&mut first)?;
    let (kind, length) = header(first).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut bytes = Vec::new();
    // Room is made as it comes: a length alone costs nothing.
    input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() == length { Ok((kind, bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Reads a frame that must be a message.
pub(super) fn read_message<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    match read(input)? {
        (Kind::Message, bytes) => Ok(serde_json::from_slice(&bytes)?),
        (Kind::Bytes, _) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut pipe = Vec::new();
        write_message(&mut pipe, &"hello").unwrap();
        write_bytes(&mut pipe, b"\0\xff").unwrap();
        let mut input = pipe.as_slice();
        assert_eq!(read_message::<String>(&mut input).unwrap(), "hello");
        assert_eq!(read(&mut input).unwrap(), (Kind::Bytes, b"\0\xff".to_vec()));
        assert!(read(&mut input).is_err());
    }

    #[test]
    fn a_frame_that_is_none_is_an_error_and_costs_no_memory() {
        for bad in [&b"X\0\0\0\0"[..], b"J\xff\xff\xff\xff", b"B\xff\xff\xff\x3f", b"J\x05\0\0\0ab", b"J\x01"] {
            assert!(read(&mut &bad[..]).is_err(), "{bad:?}");
        }
    }
}
