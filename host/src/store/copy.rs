//! A copy of a database, for who may only read it.

use super::place::{DATABASE, State};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// How often a database is copied that is written to meanwhile.
const COPIES: usize = 5;

/// A copy of the database as it was at one moment.
pub(super) fn copy(state: &State) -> io::Result<tempfile::TempDir> {
    let files = || -> io::Result<Vec<(&str, File, Metadata)>> {
        let mut files = Vec::new();
        // Beside the file itself what was not put into it yet, or is to be taken back.
        for name in [DATABASE[0], DATABASE[1], DATABASE[3]] {
            if let Some(file) = state.file(name)? {
                let metadata = file.metadata()?;
                files.push((name, file, metadata));
            }
        }
        Ok(files)
    };
    let when = |files: &[(&str, File, Metadata)]| -> Vec<_> {
        files.iter().map(|(name, _, is)| (name.to_string(), is.ino(), is.len(), is.mtime(), is.mtime_nsec())).collect()
    };
    for _ in 0..COPIES {
        let folder = tempfile::tempdir()?;
        let mut before = files()?;
        for (name, from, _) in &mut before {
            io::copy(from, &mut File::create(folder.path().join(name))?)?;
        }
        if when(&before) == when(&files()?) {
            return Ok(folder);
        }
    }
    Err(io::Error::other("it changes faster than it can be copied"))
}
