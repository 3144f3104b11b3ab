//! Reading below one folder.
//!
//! Each call into the host costs a check time, for every file of a tree: where the size of a file is known from the
//! request, reading it takes one call to open it and one for every 64 KiB, and none to ask for its size or its end.
//!
//! Invariant: a path never leaves its mount. In the component the host sees to that; natively this module does, so that
//! a check that would be refused there fails in its own tests too.

use std::ffi::OsStr;
use std::fs::{self, File, FileType};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use crate::{Entry, Refusal};

/// A read-only folder. Paths in it are relative, `/`-separated UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct Mount<'a> {
    root: Option<&'a Path>,
}

impl<'a> Mount<'a> {
    /// The folder at `root`.
    pub fn at(root: &'a Path) -> Self {
        Self { root: Some(root) }
    }

    /// A mount with nothing in it, not even its root.
    pub fn absent() -> Self {
        Self { root: None }
    }

    /// Where a path is for `std::fs`. The empty path is the mount itself. A path that is absolute, or has a component
    /// that is empty, `.` or `..`, is refused.
    pub fn path(&self, path: &str) -> Result<PathBuf, ReadFailed> {
        let Some(root) = self.root else {
            return Err(ReadFailed::new(path, io::ErrorKind::NotFound.into()));
        };
        let mut joined = root.to_path_buf();
        if path.is_empty() {
            return Ok(joined);
        }
        for component in path.split('/') {
            if matches!(component, "" | "." | "..") {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a plain path relative to its mount");
                return Err(ReadFailed::new(path, error));
            }
            joined.push(component);
        }
        Ok(joined)
    }

    /// Whether there is anything at a path, a symbolic link included.
    pub fn exists(&self, path: &str) -> bool {
        self.file_type(path).is_ok()
    }

    /// What is at a path; of a symbolic link, the link itself.
    pub fn file_type(&self, path: &str) -> Result<FileType, ReadFailed> {
        fs::symlink_metadata(self.path(path)?)
            .map(|metadata| metadata.file_type())
            .map_err(|error| ReadFailed::new(path, error))
    }

    /// Reads all of a file whose size is not known. Where there is an [`Entry`], [`Mount::read_entry`] is cheaper.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ReadFailed> {
        fs::read(self.path(path)?).map_err(|error| ReadFailed::new(path, error))
    }

    /// Reads all of a file that must be UTF-8.
    pub fn read_to_string(&self, path: &str) -> Result<String, ReadFailed> {
        fs::read_to_string(self.path(path)?).map_err(|error| ReadFailed::new(path, error))
    }

    /// Reads all of an entry into memory. For contents that may be large, [`Mount::open`] reads piece by piece.
    pub fn read_entry(&self, entry: &Entry) -> Result<Vec<u8>, ReadFailed> {
        let mut reader = self.open(entry)?;
        // A native caller may say any size, so memory follows what is really there.
        let mut contents = Vec::new();
        loop {
            let start = contents.len();
            contents.resize(start + reader.next_len(), 0);
            let filled = reader.fill(&mut contents[start..])?;
            contents.truncate(start + filled);
            if reader.is_at_end() {
                return Ok(contents);
            }
        }
    }

    /// Opens an entry for reading piece by piece.
    pub fn open(&self, entry: &Entry) -> Result<Reader, ReadFailed> {
        let file = File::open(self.path(&entry.path)?).map_err(|error| ReadFailed::new(&entry.path, error))?;
        Ok(Reader { file, path: entry.path.clone(), size: entry.size, position: 0 })
    }

    /// The paths of everything below a folder (the empty path is the mount itself) that is not a folder, sorted
    /// bytewise. Symbolic links are listed and never followed.
    pub fn walk(&self, folder: &str) -> Result<Vec<String>, ReadFailed> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let failed = |error| ReadFailed::new(&folder, error);
            for child in fs::read_dir(self.path(&folder)?).map_err(failed)? {
                let child = child.map_err(failed)?;
                let name = child.file_name().into_string().map_err(|name| failed(not_utf8(&name)))?;
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if child.file_type().map_err(failed)?.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path);
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

pub(crate) fn not_utf8(name: &OsStr) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the name {:?} is not UTF-8", name.to_string_lossy()))
}

/// An open file of known size. It reads up to that size and not beyond.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: String,
    size: u64,
    position: u64,
}

impl Reader {
    /// A good size for a buffer: what is left, and at most this.
    pub const CHUNK: usize = 64 * 1024;

    /// How long a buffer for the next piece should be: [`Reader::CHUNK`], or less where less is left.
    pub fn next_len(&self) -> usize {
        let left = self.size.saturating_sub(self.position);
        usize::try_from(left).map_or(Self::CHUNK, |left| left.min(Self::CHUNK))
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.position >= self.size
    }

    /// Offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to an offset.
    pub fn seek(&mut self, offset: u64) -> Result<(), ReadFailed> {
        self.file.seek(SeekFrom::Start(offset)).map_err(|error| ReadFailed::new(&self.path, error))?;
        self.position = offset;
        Ok(())
    }

    /// Fills the buffer as far as the file goes, and says how far. Less than all of it means that the file has ended.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadFailed> {
        let mut filled = 0;
        while filled < buffer.len() && !self.is_at_end() {
            match self.file.read(&mut buffer[filled..]) {
                // The file is shorter than it was said to be. Only a native caller can be so wrong.
                Ok(0) => self.size = self.position,
                Ok(read) => {
                    filled += read;
                    self.position += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadFailed::new(&self.path, error)),
            }
        }
        Ok(filled)
    }
}

/// Something could not be read. As a [`Refusal`] it is an internal failure, so `?` does the right thing in a check.
#[derive(Debug)]
pub struct ReadFailed {
    path: String,
    source: io::Error,
}

impl ReadFailed {
    fn new(path: &str, source: io::Error) -> Self {
        Self { path: path.to_owned(), source }
    }

    /// The path, relative to its mount.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why, as far as one can tell apart. A file that was not granted is `NotFound`.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for ReadFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {:?}: {}", self.path, self.source)
    }
}

impl error::Error for ReadFailed {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<ReadFailed> for Refusal {
    fn from(failed: ReadFailed) -> Self {
        Self::Internal(format!("failed to {failed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn entry(path: &str, size: u64) -> Entry {
        Entry { path: path.to_owned(), kind: Kind::File, size, tracked: true, base_path: None }
    }

    #[test]
    fn a_path_cannot_leave_its_mount() {
        let mount = Mount::at(Path::new("/tree"));
        for path in ["/etc/passwd", "..", "a/../../b", "a//b", "./a", "a/"] {
            let refused = mount.path(path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(mount.path("a/..b").unwrap(), Path::new("/tree/a/..b"));
        assert_eq!(mount.path("").unwrap(), Path::new("/tree"));
    }

    #[test]
    fn an_absent_mount_has_nothing() {
        assert!(!Mount::absent().exists(""));
        let failed = Mount::absent().read("a").unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::NotFound);
        assert_eq!(Refusal::from(failed), Refusal::Internal("failed to read \"a\": entity not found".to_owned()));
    }

    #[test]
    fn a_walk_is_sorted_bytewise_by_the_whole_path() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a/b", "a-b", "a.c", "a/Z/x", "b\nc"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mount = Mount::at(folder.path());
        assert_eq!(mount.walk("").unwrap(), ["a-b", "a.c", "a/Z/x", "a/b", "b\nc"]);
        assert_eq!(mount.walk("a").unwrap(), ["a/Z/x", "a/b"]);
        assert!(mount.walk("missing").is_err());
    }

    #[test]
    fn an_entry_is_read_to_the_size_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let contents: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        fs::write(folder.path().join("big"), &contents).unwrap();
        let mount = Mount::at(folder.path());
        let read = |size| mount.read_entry(&entry("big", size)).unwrap();
        assert_eq!(read(200_000), contents);
        assert_eq!(read(70_000), contents[..70_000]);
        assert_eq!(read(0), b"");
        // A size that is not true must not end in a wait, an allocation or a panic.
        assert_eq!(read(u64::MAX), contents);
    }

    #[test]
    fn a_reader_goes_where_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "0123456789").unwrap();
        let mut reader = Mount::at(folder.path()).open(&entry("file", 10)).unwrap();
        let mut buffer = [0; 4];
        reader.seek(8).unwrap();
        assert_eq!(reader.fill(&mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"89");
        assert!(reader.is_at_end());
    }
}
