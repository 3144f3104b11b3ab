//! Where the state is: in the folder that all worktrees of a repository share, else below the tree.

use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::path::{Path, PathBuf};

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Something else than a folder is there.
    #[error("{} is not a folder of its own, so nothing is kept there\nhelp: a link or a file took its place: move it away", .0.display())]
    NotAFolder(PathBuf),
    /// It cannot be made.
    #[error("cannot make {}: {source}\nhelp: Probity keeps its records there, so it needs to write to it", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Where the state folder is or would be: `<common>/probity`, or `<root>/.probity` outside version control.
pub fn state_path(root: &Path, common: Option<&Path>) -> PathBuf {
    common.map_or_else(|| root.join(".probity"), |common| common.join("probity"))
}

/// The state folder, made when it is not there.
pub fn state_folder(root: &Path, common: Option<&Path>) -> Result<PathBuf, PlaceError> {
    let folder = state_path(root, common);
    make(&folder)?;
    make(&folder.join("logs"))?;
    if common.is_none() {
        // If the tree becomes a repository one day, this is no part of it. That it cannot be written is no trouble.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(ignore) = rustix::fs::open(folder.join(".gitignore"), flags, Mode::RUSR | Mode::WUSR) {
            let _ = rustix::io::write(&ignore, b"*\n");
        }
    }
    Ok(folder)
}

/// Makes a folder for this user only, and refuses whatever else is there: a link planted in its place would have
/// us write elsewhere.
fn make(path: &Path) -> Result<(), PlaceError> {
    let failed = |source: rustix::io::Errno| PlaceError::Make { path: path.to_owned(), source: source.into() };
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(failed(error)),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(folder) => {
            let stat = rustix::fs::fstat(&folder).map_err(failed)?;
            let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if folder { Ok(()) } else { Err(PlaceError::NotAFolder(path.to_owned())) }
        }
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => Err(PlaceError::NotAFolder(path.to_owned())),
        Err(error) => Err(failed(error)),
    }
}
