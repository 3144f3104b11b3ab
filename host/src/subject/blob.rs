//! Git's id of the contents of a file, and of other objects.

use super::id::ObjectId;
use sha1::Digest as _;

/// The id of contents that are at hand, of the same kind as `like`.
pub(super) fn blob_id(like: ObjectId, contents: &[u8]) -> ObjectId {
    let mut hash = ObjectHash::new(like, "blob", contents.len() as u64);
    hash.update(contents);
    hash.finish()
}

/// Git's id of an object as it is made: the hash of a header with its kind and size, and its contents.
pub(super) enum ObjectHash {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl ObjectHash {
    /// For an id of the same algorithm as `like`.
    pub(super) fn new(like: ObjectId, kind: &str, size: u64) -> Self {
        let header = format!("{kind} {size}\0");
        if like.is_sha256() {
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

    pub(super) fn finish(self) -> ObjectId {
        let id = match self {
            Self::Sha1(hash) => ObjectId::new(&hash.finalize()),
            Self::Sha256(hash) => ObjectId::new(&hash.finalize()),
        };
        // These are the lengths that ids have.
        id.unwrap_or_else(|| unreachable!("a hash of another length"))
    }
}
