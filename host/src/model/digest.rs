//! Digests: BLAKE3, in text `blake3:` and 64 hexadecimal digits.
//!
//! Contents of files, components and logs are hashed plainly, so anyone can check them with `b3sum`.
//! Everything that has a structure is hashed in `derive_key` mode under a context of its own: no file can
//! have the digest of a tree, and no two kinds of things can be taken for each other.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A BLAKE3 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: it must be `blake3:` and 64 hexadecimal digits in lower case")]
pub struct DigestError(String);

/// What a structure is, when it is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A tree of files.
    Tree,
    /// The definition of one check: everything about it that is decided before the run.
    Definition,
    /// The value of a variable that a command is passed, after the user's key.
    Variable,
    /// The definition of a command together with what it is passed of the environment.
    Passed,
    /// The files a check is about.
    Files,
    /// A verdict in canonical form.
    Verdict,
    /// A record in canonical form.
    Record,
    /// The name of a compiled component in the cache.
    Artefact,
    /// The sources a pack is built from.
    Sources,
    /// What a guest's randomness comes from.
    Seed,
    /// What a logic check may read.
    Grant,
    /// Everything a logic check's result depends on beside what it observed.
    Key,
    /// What git says of the names in a working tree.
    Names,
    /// The names and kinds in a folder, as a guest lists them.
    Listing,
    /// What a logic check observed.
    Observations,
    /// The files of a specification.
    Specification,
    /// The text of the lines that a finding is at.
    Lines,
    /// Everything that two runs share of which one may answer for the other.
    Identity,
    /// What an identity has of ignored files.
    Ambient,
}

impl Context {
    /// The context string of BLAKE3's `derive_key`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "probity 2026-12-01 tree v1",
            Self::Definition => "probity 2026-12-01 check definition v1",
            Self::Variable => "probity 2026-12-02 value of a variable v1",
            Self::Passed => "probity 2026-12-02 command with its environment v1",
            Self::Files => "probity 2026-12-01 files in scope v1",
            Self::Verdict => "probity 2026-12-01 verdict v1",
            Self::Record => "probity 2026-12-01 record v1",
            Self::Artefact => "probity 2026-12-01 compiled component v1",
            Self::Seed => "probity 2026-12-01 guest seed v1",
            Self::Sources => "probity 2026-12-01 pack sources v1",
            Self::Grant => "probity 2026-12-01 grant v1",
            Self::Key => "probity 2026-12-01 logic check key v1",
            Self::Names => "probity 2026-12-03 names of a working tree v1",
            Self::Listing => "probity 2026-12-01 listing of a folder v1",
            Self::Observations => "probity 2026-12-01 observations v1",
            Self::Specification => "probity 2026-12-01 specification v1",
            Self::Identity => "probity 2026-12-03 identity v1",
            Self::Ambient => "probity 2026-12-03 ignored files v1",
            Self::Lines => "probity 2026-12-02 lines of a finding v1",
        }
    }
}

impl Digest {
    /// The plain digest of some contents.
    pub fn of(contents: &[u8]) -> Self {
        Self(*blake3::hash(contents).as_bytes())
    }

    /// The plain digest of everything that `reader` gives.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// A plain digest that was computed piece by piece.
    pub fn from_hash(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }

    /// The digest of an encoding, under a context.
    pub fn derived(context: Context, encoding: &[u8]) -> Self {
        Self(blake3::derive_key(context.as_str(), encoding))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits, without the prefix.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError(text.to_owned());
        let hex = text.strip_prefix("blake3:").ok_or_else(error)?;
        // Only one spelling: `from_hex` would also take upper case.
        if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(error());
        }
        let hash = blake3::Hash::from_hex(hex).map_err(|_| error())?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// Bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS[usize::from(nibble)];
    let mut text = Vec::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    // Digits only.
    String::from_utf8(text).unwrap_or_default()
}

/// Writes the bytes that a structure is hashed as: integers are 64-bit little-endian, and every text,
/// byte string and list is preceded by its length, so that no two structures have the same bytes.
#[derive(Debug, Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// An empty encoding.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an integer; also the length of a list, before its items.
    pub fn integer(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a byte string, after its length.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.integer(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Appends a text, after its length in bytes.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Appends a digest.
    pub fn digest(&mut self, value: &Digest) -> &mut Self {
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Hashes what was written.
    pub fn finish(&self, context: Context) -> Digest {
        Digest::derived(context, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
        assert!(digest.to_string().replace('a', "A").parse::<Digest>().is_err());
        assert!("6437b3".parse::<Digest>().is_err());
    }

    #[test]
    fn moving_a_byte_between_fields_changes_the_digest() {
        let digest = |a: &str, b: &str| Encoder::new().text(a).text(b).finish(Context::Files);
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
    }

    #[test]
    fn the_same_bytes_under_two_contexts_are_two_things() {
        assert_ne!(Encoder::new().finish(Context::Tree), Encoder::new().finish(Context::Files));
        assert_ne!(Encoder::new().finish(Context::Tree), Digest::of(b""));
    }
}
