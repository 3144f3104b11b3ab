//! Git's id of the contents of a file.

use crate::model::hex;
use sha1::Digest as _;

/// The id of contents that are at hand, of the same kind as `like`.
pub(super) fn blob_id(like: &str, contents: &[u8]) -> String {
    let mut blob = Blob::new(like, contents.len() as u64);
    blob.update(contents);
    blob.finish()
}

/// Git's id of a file as it is made: the hash of a header with its size, and its contents.
pub(super) enum Blob {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Blob {
    /// For an id of the same kind as `like`, in hexadecimal.
    pub(super) fn new(like: &str, size: u64) -> Self {
        let header = format!("blob {size}\0");
        if like.len() == 64 {
            Self::Sha256(sha2::Sha256::new_with_prefix(header))
        } else {
            Self::Sha1(sha1::Sha1::new_with_prefix(header))
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hash) => hash.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    pub(super) fn finish(self) -> String {
        match self {
            Self::Sha1(hash) => hex(&hash.finalize()),
            Self::Sha256(hash) => hex(&hash.finalize()),
        }
    }
}
