//! Which journal the database keeps, by the file system that it is on.

use super::place::State;

/// How changes are made so that all of one is there or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    /// A log ahead of the file. All that use it share memory, so all of them have to be on one machine.
    Wal,
    /// What was there before, in a file beside it, as long as a change is made. It works wherever locks do.
    Rollback,
}

impl Journal {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Wal => "wal",
            Self::Rollback => "delete",
        }
    }

    /// For a state folder. Where nobody can say, what works in more places.
    pub(super) fn of(state: &State) -> Self {
        #[cfg(target_os = "linux")]
        let local = rustix::fs::fstatfs(state.folder()).is_ok_and(|found| is_local(magic(&found)));
        #[cfg(not(target_os = "linux"))]
        let local = {
            let _ = state;
            false
        };
        if local { Self::Wal } else { Self::Rollback }
    }
}

/// The number of a file system's kind; 32 bits of it, in a field whose width and sign differ between systems.
#[cfg(target_os = "linux")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers have 32 bits")]
fn magic(found: &rustix::fs::StatFs) -> u32 {
    found.f_type as u32
}

/// Kinds of file systems that this machine alone writes to, by their numbers in `linux/magic.h`. All others, known (NFS,
/// SMB, 9p, FUSE) or not, may be written to by a machine that shares no memory with this one.
#[cfg(target_os = "linux")]
fn is_local(magic: u32) -> bool {
    const LOCAL: [u32; 14] = [
        0x0000_EF53, // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683E, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58F6, // ramfs
        0x794C_7630, // overlayfs
        0xF2F5_2010, // f2fs
        0x2FC1_2FC1, // zfs
        0xCA45_1A4E, // bcachefs
        0x3153_464A, // jfs
        0x5265_4973, // reiserfs
        0x0000_3434, // nilfs2
        0x0000_4D44, // vfat
        0x2011_BAB0, // exfat
    ];
    LOCAL.contains(&magic)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_asked_for_on_local_file_systems_only() {
        for (name, magic) in [("ext4", 0xEF53), ("tmpfs", 0x0102_1994), ("overlayfs", 0x794C_7630)] {
            assert!(is_local(magic), "{name}");
        }
        let elsewhere = [
            ("nfs", 0x6969),
            ("cifs", 0xFF53_4D42),
            ("smb2", 0xFE53_4D42),
            ("smb", 0x517B),
            ("9p", 0x0102_1997),
            ("fuse", 0x6573_5546),
            ("virtiofs, which is fuse", 0x6573_5546),
            ("ceph", 0x00C3_6400),
            ("afs", 0x5346_414F),
            ("gfs2", 0x0116_1970),
            ("one that nobody knows", 1),
        ];
        for (name, magic) in elsewhere {
            assert!(!is_local(magic), "{name}");
        }
    }
}
