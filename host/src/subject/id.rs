//! Git's ids of objects, as the bytes they stand for: a tree has tens of thousands of them, each held many times over.

use crate::model::hex;
use std::fmt;

/// The id of an object of git: of SHA-1 or of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Of SHA-1 the first twenty, and zeros.
    bytes: [u8; 32],
    length: u8,
}

impl ObjectId {
    /// The id that these bytes are. None where they are neither twenty nor thirty-two.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut all = [0; 32];
        let length = u8::try_from(bytes.len()).ok().filter(|length| matches!(length, 20 | 32))?;
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { bytes: all, length })
    }

    /// The id that is written so: forty or sixty-four hexadecimal digits in lower case.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (pairs, rest) = text.as_chunks::<2>();
        if !matches!(pairs.len(), 20 | 32) || !rest.is_empty() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Self::new(&bytes[..pairs.len()])
    }

    /// The id in a name like `sha1:…` or `sha256:…`.
    pub fn of_commit(name: &str) -> Option<Self> {
        Self::parse(name.split_once(':')?.1.as_bytes())
    }

    /// The same with its algorithm, as `sha1:…` or `sha256:…`.
    pub fn named(&self) -> String {
        format!("{}:{self}", if self.is_sha256() { "sha256" } else { "sha1" })
    }

    /// Its bytes: twenty or thirty-two.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether it is of SHA-256.
    pub fn is_sha256(&self) -> bool {
        self.length == 32
    }
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.as_bytes()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
impl ObjectId {
    /// One that is as good as any other.
    pub(super) fn example(byte: u8) -> Self {
        Self::new(&[byte; 20]).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_it_is_written_as() {
        for text in ["0123456789abcdef0123456789abcdef01234567".to_owned(), "f0".repeat(32)] {
            let id = ObjectId::parse(text.as_bytes()).unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(ObjectId::new(id.as_bytes()), Some(id));
            assert_eq!(ObjectId::of_commit(&id.named()), Some(id));
        }
        let short = ObjectId::parse("00".repeat(20).as_bytes()).unwrap();
        assert_ne!(short, ObjectId::parse("00".repeat(32).as_bytes()).unwrap(), "the algorithms have different ids");
    }

    #[test]
    fn what_is_no_id_is_none() {
        for bad in [String::new(), "0".repeat(39), "0".repeat(41), "A0".repeat(20), "g0".repeat(20), "00".repeat(21)] {
            assert_eq!(ObjectId::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
