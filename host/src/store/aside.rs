//! Sets a database aside that is damaged or not ours: it gets another name, and nothing of it is lost.

use super::place::{DATABASE, State};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, flock, renameat_with, statat};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// What the name of a database ends with that was set aside, before its number.
pub(super) const MARK: &str = ".aside-";

/// Beyond so many somebody has to look at why.
const MAX: u32 = 100;

/// Moves the database out of the way, if it is still to be moved once nobody else is at it; says where to.
pub(super) fn set_aside(state: &State, still: impl Fn() -> bool) -> io::Result<Option<PathBuf>> {
    // Two that find it damaged at once must not move the new one away that the first makes. Never removed, as all locks.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(state.folder(), "aside-lock", flags, Mode::RUSR | Mode::WUSR)?;
    // Where locks do not work, the names still keep anything from being written over.
    let _ = rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive));
    if !still() {
        return Ok(None);
    }
    let taken = |name: &str| statat(state.folder(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let new = |number: u32| format!("{}{MARK}{number}", DATABASE[0]);
    let number =
        (1..MAX).find(|number| !DATABASE.iter().any(|name| taken(&name.replacen(DATABASE[0], &new(*number), 1))));
    let number =
        number.ok_or_else(|| io::Error::other("too many were set aside already: look at them and remove them"))?;
    // The file itself goes last: what would stay beside a new one would be taken for its own and played back into it.
    for name in DATABASE.iter().rev() {
        let to = name.replacen(DATABASE[0], &new(number), 1);
        match renameat_with(state.folder(), *name, state.folder(), &to, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Not on every file system; nobody else takes these names while the lock is held.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match rustix::fs::renameat(state.folder(), *name, state.folder(), &to) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(state.path().join(new(number))))
}
