//! Reading files of a folder that may be hostile: regular files only, no links, nothing that waits, nothing large.

use crate::subject::beneath::Root;
use std::io::{ErrorKind, Read as _};

/// Bytes of a file that is looked at. Manifests are written by hand, and what is larger is none.
const MOST: u64 = 1 << 20;

/// A file by its name.
pub(super) enum Looked {
    /// There is none.
    Absent,
    /// Its text.
    Text(String),
    /// There is one that is not read, and why.
    Unusable(String),
}

/// The text of a file of the folder itself.
pub(super) fn read(root: &Root, name: &str) -> Looked {
    let file = match root.file(name.as_bytes()) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Looked::Absent,
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Looked::Unusable("it is a link".to_owned());
        }
        Err(error) => return Looked::Unusable(error.to_string()),
    };
    let mut bytes = Vec::new();
    // One byte more than is read tells a file that is too large from one that just fits.
    if let Err(error) = file.take(MOST + 1).read_to_end(&mut bytes) {
        return Looked::Unusable(error.to_string());
    }
    if bytes.len() as u64 > MOST {
        return Looked::Unusable(format!("it is larger than {} KiB", MOST / 1024));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Looked::Text(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(_) => Looked::Unusable("it is not UTF-8 text".to_owned()),
    }
}

/// Whether the folder has a regular file of this name.
pub(super) fn has(root: &Root, name: &str) -> bool {
    root.file(name.as_bytes()).is_ok()
}
