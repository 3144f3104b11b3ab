//! A private copy of the subject for one command: made from the very bytes that the verdict names, never by git, which would
//! run what the repository says.
//!
//! What is in it is what was verified, whatever happens to the tree meanwhile; what the command writes goes with it.

use super::sources::Sources;
use crate::subject::{Entry, Kind, Patience, Snapshot};
use crate::worker::ContentsError;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How much of a file is copied at once: a piece that can be checked alone.
const PIECE: u64 = 1 << 20;

/// A copy, which goes when this does.
#[derive(Debug)]
pub(super) struct Copy(Option<tempfile::TempDir>);

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoCopy {
    /// A file is not what it was when the subject was taken.
    Moved(String),
    /// There was no time left, or a signal came.
    Stopped,
    /// Trouble of this machine.
    Failed(String),
}

impl Copy {
    /// Copies the subject to where temporary files are.
    pub(super) fn make(snapshot: &Snapshot, sources: &Sources, patience: &Patience) -> Result<Self, NoCopy> {
        let failed = |path: &Path, error: io::Error| NoCopy::Failed(format!("{}: {error}", path.display()));
        let temporary = tempfile::Builder::new().prefix("probity-copy-").tempdir();
        let copy = Self(Some(temporary.map_err(|error| failed(&std::env::temp_dir(), error))?));
        let root = copy.path();
        let place = |entry: &Entry| root.join(OsStr::from_bytes(&entry.path));
        // Links come last, so that nothing is written through one.
        let (links, others): (Vec<&Entry>, Vec<&Entry>) =
            snapshot.iter().partition(|entry| entry.kind == Kind::Symlink);
        let mut last: Option<PathBuf> = None;
        for entry in others.into_iter().chain(links) {
            if patience.over().is_some() {
                return Err(NoCopy::Stopped);
            }
            let path = place(entry);
            let folder = path.parent().unwrap_or(&root);
            // Entries of one folder come one after the other.
            if last.as_deref() != Some(folder) {
                DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(|error| failed(folder, error))?;
                last = Some(folder.to_owned());
            }
            let made = match entry.kind {
                Kind::File => file(entry, &path, 0o644, sources)?,
                Kind::Executable => file(entry, &path, 0o755, sources)?,
                Kind::Symlink => std::os::unix::fs::symlink(OsStr::from_bytes(&entry.text), &path),
                Kind::Submodule => DirBuilder::new().recursive(true).mode(0o755).create(&path),
                // What nobody can read or what is not here is not there either.
                Kind::LeftOut | Kind::Unreadable | Kind::Special => Ok(()),
            };
            made.map_err(|error| failed(&path, error))?;
        }
        Ok(copy)
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        // It is there until this goes.
        self.0.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let Some(folder) = self.0.take() else { return };
        let path = folder.keep();
        if fs::remove_dir_all(&path).is_err() {
            // A command may have taken from itself, and so from this user, what it needs to remove something.
            open_up(&path);
            if let Err(error) = fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "the copy of an isolated command stays");
            }
        }
    }
}

/// Makes every folder below writable for its owner. No link is followed.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

fn file(entry: &Entry, path: &Path, mode: u32, sources: &Sources) -> Result<io::Result<()>, NoCopy> {
    let mut into = match File::options().write(true).create_new(true).mode(mode).open(path) {
        Ok(into) => into,
        Err(error) => return Ok(Err(error)),
    };
    let mut offset = 0;
    while offset < entry.size || (offset == 0 && entry.size == 0) {
        let len = PIECE.min(entry.size - offset);
        // No more than a piece.
        let bytes =
            sources.read(entry, offset, usize::try_from(len).unwrap_or(usize::MAX)).map_err(|error| match error {
                ContentsError::Changed(path) => NoCopy::Moved(path),
                ContentsError::Failed(why) => NoCopy::Failed(why),
            })?;
        if let Err(error) = into.write_all(&bytes) {
            return Ok(Err(error));
        }
        offset += len;
        if entry.size == 0 {
            break;
        }
    }
    Ok(Ok(()))
}
