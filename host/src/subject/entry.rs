//! Entries: what a subject is made of, and the digest of all of them.
//!
//! Values only. Times and inode numbers are kept beside an entry to tell whether it has to be read again, and never
//! get into a digest.

use super::blob::blob_id;
use super::conversion::Rules;
use super::id::ObjectId;
use super::pieces::Pieces;
use crate::model::{Context, Digest, Encoder};
use rustix::fs::{FileType, Stat};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its contents are its text.
    Symlink,
    /// A repository inside; its contents are the commit it is at.
    Submodule,
    /// Tracked, and left out of this working tree: a sparse checkout, a submodule that was not initialised.
    LeftOut,
    /// There, and not readable for this user.
    Unreadable,
    /// A FIFO, a socket or a device.
    Special,
}

impl Kind {
    /// The byte that stands for it in the digest of a tree.
    fn code(self) -> u64 {
        match self {
            Self::File => 1,
            Self::Executable => 2,
            Self::Symlink => 3,
            Self::Submodule => 4,
            Self::LeftOut => 5,
            Self::Unreadable => 6,
            Self::Special => 7,
        }
    }
}

/// One entry of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root, `/`-separated, in the bytes of the file system.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Bytes of its contents.
    pub size: u64,
    /// Of its contents.
    pub digest: Digest,
    /// Whether version control knows it.
    pub tracked: bool,
    /// A link's text; empty for everything else.
    pub text: Vec<u8>,
    /// Of a file in more than one piece: what each is, to check a part of it alone.
    pub pieces: Option<Pieces>,
    /// The blob of the commit that these contents are the working form of: they are that blob's, or git makes that blob
    /// of them. None where that was not shown. The mode is another matter.
    pub blob: Option<ObjectId>,
    /// Git's id of its contents as they lie there, where the commit has something to compare them with.
    pub(super) id: Option<ObjectId>,
    /// What git would make of the contents, where that was worked out.
    pub(super) converted: Option<Box<Converted>>,
    pub(super) stat: StatKey,
}

impl Entry {
    /// Whether it is a folder, which is an entry only where it cannot be listed.
    pub fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.stat.mode as _) == FileType::Directory
    }

    /// Git's id of the object that the contents are, or that git would make of them; where it is known. `like` is an id of
    /// the same algorithm.
    pub fn git_id(&self, like: ObjectId) -> Option<ObjectId> {
        match self.kind {
            Kind::Symlink => Some(blob_id(like, &self.text)),
            _ => self.blob.or(self.id),
        }
    }
}

/// That git, under these rules, makes this blob of some contents, or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Converted {
    pub(super) rules: Rules,
    pub(super) blob: ObjectId,
    pub(super) same: bool,
}

/// What shows, without reading it, that a file was not touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StatKey {
    pub(super) size: i64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
    pub(super) inode: u64,
    pub(super) device: u64,
    pub(super) mode: u32,
}

impl StatKey {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the widths of these fields differ between systems"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// What kind of entry it is of: a link, or what kind of file.
    pub(super) fn kind_of_entry(&self) -> Kind {
        if FileType::from_raw_mode(self.mode as _) == FileType::Symlink { Kind::Symlink } else { self.kind() }
    }

    /// What kind of file it is: one that its owner may execute, or not.
    pub(super) fn kind(&self) -> Kind {
        if self.mode & 0o100 == 0 { Kind::File } else { Kind::Executable }
    }

    /// Whether the entry could have been written again without these times moving: coarse clocks tick every
    /// ten milliseconds, some file systems every two seconds.
    pub(super) fn is_fresh(&self, taken: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { Duration::from_secs(2) } else { Duration::from_millis(20) };
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
            return true;
        };
        UNIX_EPOCH + Duration::new(seconds, nanoseconds) + tick >= taken
    }
}

/// The digest of a tree: the number of entries, then for each, in order, its path, the code of its kind and
/// the digest of its contents. Neither size nor `tracked` is in it: both follow from what is.
pub(super) fn tree_digest(entries: &[Arc<Entry>]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(entries.len() as u64);
    for entry in entries {
        encoder.bytes(&entry.path).integer(entry.kind.code()).digest(&entry.digest);
    }
    encoder.finish(Context::Tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &serde_json::Value) -> Vec<u8> {
        let digits = hex.as_str().unwrap();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn another_program_works_out_the_same_digests_from_the_documentation() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/vectors/tree.json")).unwrap();
        for vector in vectors.as_array().unwrap() {
            let entries = vector["entries"].as_array().unwrap().iter().map(|entry| {
                Arc::new(Entry {
                    path: bytes(&entry["path"]),
                    kind: match entry["kind"].as_str().unwrap() {
                        "file" => Kind::File,
                        "executable" => Kind::Executable,
                        "link" => Kind::Symlink,
                        "submodule" => Kind::Submodule,
                        "left-out" => Kind::LeftOut,
                        "unreadable" => Kind::Unreadable,
                        "special" => Kind::Special,
                        other => panic!("{other}"),
                    },
                    size: 0,
                    digest: Digest::of(&bytes(&entry["contents"])),
                    tracked: false,
                    text: Vec::new(),
                    pieces: None,
                    blob: None,
                    id: None,
                    converted: None,
                    stat: StatKey::default(),
                })
            });
            let digest = tree_digest(&entries.collect::<Vec<_>>()).to_string();
            assert_eq!(digest, vector["digest"].as_str().unwrap(), "{}", vector["name"]);
        }
    }
}
