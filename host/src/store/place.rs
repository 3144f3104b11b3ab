//! Where the state is: in the folder that all worktrees of a repository share, else below the tree.
//!
//! Must not: follow a link. What is kept is written to a folder that was opened as one, and to files in it that are
//! files: a link in their place would have us write elsewhere.

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The database, and what SQLite keeps beside it.
pub(super) const DATABASE: [&str; 4] = ["state.db", "state.db-wal", "state.db-shm", "state.db-journal"];

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Something else than a folder is there.
    #[error("{} is not a folder of its own, so nothing is kept there\nhelp: a link or a file took its place: move it away", .0.display())]
    NotAFolder(PathBuf),
    /// Something else than a file is there.
    #[error("{} is not a file of its own, so nothing is kept there\nhelp: a link or something else took its place: move it away", .0.display())]
    NotAFile(PathBuf),
    /// It cannot be made.
    #[error("cannot make {}: {source}\nhelp: Probity keeps its records there, so it needs to write to it", path.display())]
    Make {
        /// The folder, or a file in it.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It may not even be looked at.
    #[error("{} cannot be read by this user\nhelp: it belongs to whoever ran `probity verify` here first", .0.display())]
    Unreadable(PathBuf),
}

/// Where the state folder is or would be: `<common>/probity`, or `<root>/.probity` outside version control.
pub fn state_path(root: &Path, common: Option<&Path>) -> PathBuf {
    common.map_or_else(|| root.join(".probity"), |common| common.join("probity"))
}

/// The state folder, held open.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    folder: OwnedFd,
}

impl State {
    /// The state folder of a tree, made when it is not there.
    pub fn make(root: &Path, common: Option<&Path>) -> Result<Self, PlaceError> {
        let path = state_path(root, common);
        let state = Self::at(&path)?;
        if common.is_none() {
            // If the tree becomes a repository one day, this is no part of it. That it cannot be written is no trouble.
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(ignore) = rustix::fs::openat(&state.folder, ".gitignore", flags, Mode::RUSR | Mode::WUSR) {
                let _ = rustix::io::write(&ignore, b"*\n");
            }
        }
        Ok(state)
    }

    /// This folder as a state folder, made when it is not there.
    pub fn at(path: &Path) -> Result<Self, PlaceError> {
        let failed = |path: PathBuf, error: Errno| match error {
            Errno::LOOP | Errno::NOTDIR => PlaceError::NotAFolder(path),
            error => PlaceError::Make { path, source: error.into() },
        };
        made(rustix::fs::mkdir(path, Mode::RWXU)).map_err(|error| failed(path.to_owned(), error))?;
        let folder = open_folder(rustix::fs::CWD, path).map_err(|error| failed(path.to_owned(), error))?;
        let state = Self { path: path.to_owned(), folder };
        let logs = || path.join("logs");
        made(rustix::fs::mkdirat(&state.folder, "logs", Mode::RWXU)).map_err(|error| failed(logs(), error))?;
        open_folder(&state.folder, "logs").map_err(|error| failed(logs(), error))?;
        Ok(state)
    }

    /// A state folder to look at. None where there is none yet.
    pub fn look(path: &Path) -> Result<Option<Self>, PlaceError> {
        match open_folder(rustix::fs::CWD, path) {
            Ok(folder) => Ok(Some(Self { path: path.to_owned(), folder })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(PlaceError::NotAFolder(path.to_owned())),
            Err(_) => Err(PlaceError::Unreadable(path.to_owned())),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> impl AsFd + '_ {
        self.folder.as_fd()
    }

    /// Refuses whatever else than files took the places of the database's files.
    pub(super) fn database(&self) -> Result<PathBuf, PlaceError> {
        for name in DATABASE {
            match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                    return Err(PlaceError::NotAFile(self.path.join(name)));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(_) => return Err(PlaceError::Unreadable(self.path.join(name))),
            }
        }
        Ok(self.path.join(DATABASE[0]))
    }

    /// A file in it to read. None where there is none.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Which file is the database at this moment, by device and inode.
    pub(super) fn database_id(&self) -> Option<(u64, u64)> {
        // By its path: it is by its path that others find it.
        let stat = rustix::fs::lstat(self.path.join(DATABASE[0])).ok()?;
        Some(id(&stat))
    }

    /// The names in the state folder that begin so.
    pub(super) fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        Ok(names(&self.folder)?.into_iter().filter(|name| name.starts_with(prefix)).collect())
    }
}

/// What was to be made may be there already; what it is shows when it is opened.
fn made(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

/// Opens a folder that is one, and no link to one.
pub(super) fn open_folder(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Device and inode.
#[expect(clippy::unnecessary_cast, reason = "their width differs between systems")]
pub(super) fn id(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// What is in a folder, sorted. A name that is no text is none of ours, and comes as far as it is text.
pub(super) fn names(folder: impl AsFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
