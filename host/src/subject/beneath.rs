//! Opening things below a folder, whatever somebody does to the tree meanwhile: no link is followed at
//! any step, nothing above the folder is reached, and opening never waits (a FIFO would).

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Flags for reading: without `NONBLOCK` the open of a FIFO waits for a writer, and a terminal could become
/// the controlling one.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY);

/// A folder that is open, and below which things are opened.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// Opens the folder itself; links in its own path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?))
    }

    /// Opens the folder at `path`, relative and `/`-separated; empty for the root itself.
    pub fn folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        resolve(self.0.as_fd(), path, DIRECTORY)
    }

    /// Opens the regular file at `path`, relative and `/`-separated, for reading.
    pub fn file(&self, path: &[u8]) -> io::Result<File> {
        regular(resolve(self.0.as_fd(), path, READ)?)
    }
}

/// What `name` in `folder` is, itself and not what it may point to.
pub fn stat(folder: impl AsFd, name: &[u8]) -> io::Result<Stat> {
    Ok(statat(folder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Opens the regular file `name` in `folder` for reading.
pub fn file_in(folder: impl AsFd, name: &[u8]) -> io::Result<File> {
    regular(openat(folder, OsStr::from_bytes(name), READ, Mode::empty())?)
}

/// The text of the link `name` in `folder`.
pub fn link_in(folder: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(folder, OsStr::from_bytes(name), Vec::new())?.into_bytes())
}

/// Whatever was opened, only a regular file is read: devices have no end, and sockets no contents.
fn regular(fd: OwnedFd) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::RegularFile {
        Ok(File::from(fd))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

fn resolve(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    if path.is_empty() {
        return Ok(openat(root, c".", flags, Mode::empty())?);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), how) {
            // An old kernel has no such call, and a sandbox around us may forbid it.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            other => return Ok(other?),
        }
    }
    by_steps(root, path, flags)
}

/// The same without `openat2`: each folder on the way is opened by itself, as what it is and not what it links to.
fn by_steps(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut folder: Option<OwnedFd> = None;
    let mut steps = path.split(|byte| *byte == b'/').peekable();
    while let Some(step) = steps.next() {
        if step.is_empty() || step == b"." || step == b".." {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not plain"));
        }
        let from = folder.as_ref().map_or(root, AsFd::as_fd);
        let flags = if steps.peek().is_some() { DIRECTORY } else { flags };
        folder = Some(openat(from, OsStr::from_bytes(step), flags, Mode::empty())?);
    }
    folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_but_regular_files_below_the_root_opens() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/file"), "x").unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        symlink("a", root.join("folder-link")).unwrap();
        symlink("a/file", root.join("file-link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let open = Root::open(&root).unwrap();
        assert!(open.file(b"a/file").is_ok());
        let refused: [&[u8]; 9] = [
            b"folder-link/file",
            b"file-link",
            b"up/secret",
            b"../secret",
            b"/etc/passwd",
            b"fifo",
            b"socket",
            b"a",
            b"none",
        ];
        for path in refused {
            assert!(open.file(path).is_err(), "{}", String::from_utf8_lossy(path));
            let stepped = by_steps(open.0.as_fd(), path, READ).and_then(regular);
            assert!(stepped.is_err(), "{}", String::from_utf8_lossy(path));
        }
        assert!(by_steps(open.0.as_fd(), b"a/file", READ).is_ok());
        assert!(open.folder(b"folder-link").is_err());
        assert!(open.folder(b"").is_ok());
    }
}
