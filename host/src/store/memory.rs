//! Bytes that save the next run time, one file for each tree: sealed, so that what comes back is what this user put there
//! about this very folder.
//!
//! Losing it costs time and nothing else. Whatever is wrong with it, from a planted link to a full disk, is no error:
//! what cannot be believed is not there, and what cannot be written is not kept.

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What a file begins with, and what its seal is made for. Another layout gets another number.
const MAGIC: &str = "probity 2026-12-03 memory of a tree v3\n";

/// The largest file: half a million entries. A tree of more is read again each time.
const MAX_FILE: u64 = 128 << 20;

/// The most files in one state folder. Worktrees of a repository share it; beyond these the oldest go.
const MAX_FILES: usize = 32;

const PREFIX: &str = "tree-";

/// What is known of files outside of trees, one for each state folder.
#[derive(Debug)]
pub struct FileMemory(TreeMemory);

impl FileMemory {
    /// Kept in the state folder `state`, which may not be there yet.
    pub fn new(state: PathBuf, key: &[u8; 32]) -> Self {
        let seal = blake3::Hasher::new_keyed(&blake3::derive_key("probity 2026-12-03 memory of files v1", key));
        Self(TreeMemory { state, name: "files".to_owned(), seal })
    }

    /// What was kept last. None if there is nothing that can be believed.
    pub fn recall(&self) -> Option<Vec<u8>> {
        self.0.recall()
    }

    /// Keeps these bytes, if that can be done.
    pub fn keep(&self, contents: &[u8]) {
        self.0.keep(contents);
    }
}

/// The memory of one tree.
#[derive(Debug)]
pub struct TreeMemory {
    state: PathBuf,
    name: String,
    seal: blake3::Hasher,
}

impl TreeMemory {
    /// Of the folder `root`, which is there, kept in the state folder `state`, which may not be there yet.
    pub fn new(state: PathBuf, root: &Path, key: &[u8; 32]) -> io::Result<Self> {
        let metadata = root.metadata()?;
        let path = root.as_os_str().as_bytes();
        let name = format!("{PREFIX}{}", &blake3::hash(path).to_hex()[..16]);
        // Bound to the path and to the folder itself: another one at this path is another tree.
        let mut seal = blake3::Hasher::new_keyed(&blake3::derive_key(MAGIC, key));
        seal.update(&metadata.dev().to_le_bytes()).update(&metadata.ino().to_le_bytes());
        seal.update(&(path.len() as u64).to_le_bytes()).update(path);
        Ok(Self { state, name, seal })
    }

    /// What was kept last. None if there is nothing that can be believed.
    pub fn recall(&self) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self.folder().ok()?, &self.name, flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > MAX_FILE {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        let (seal, contents) = bytes.strip_prefix(MAGIC.as_bytes())?.split_first_chunk::<32>()?;
        // Comparing hashes takes the same time wherever they differ.
        if self.sealed(contents) != *seal {
            tracing::debug!(name = self.name, "the memory of the tree is damaged or not ours");
            return None;
        }
        bytes.drain(..MAGIC.len() + 32);
        Some(bytes)
    }

    /// Keeps these bytes, if that can be done. A reader sees all of them or none.
    pub fn keep(&self, contents: &[u8]) {
        if let Err(error) = self.write(contents) {
            tracing::debug!(name = self.name, %error, "the memory of the tree cannot be kept");
        }
    }

    fn write(&self, contents: &[u8]) -> io::Result<()> {
        if contents.len() as u64 + 4096 > MAX_FILE {
            return Err(io::Error::other("it is too large"));
        }
        let folder = self.folder()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        // Under another name first, which nobody else has; and by the folder's handle, whatever its path leads to.
        let new = format!(".new-{:016x}", u64::from_le_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file
            .write_all(MAGIC.as_bytes())
            .and_then(|()| file.write_all(self.sealed(contents).as_bytes()))
            .and_then(|()| file.write_all(contents))
            // No sync: half of it after a crash is seen by the seal.
            .and_then(|()| Ok(renameat(&folder, &new, &folder, &self.name)?));
        if written.is_err() {
            let _ = unlinkat(&folder, &new, AtFlags::empty());
        }
        written?;
        self.tidy(&folder)
    }

    /// Removes the oldest beyond [`MAX_FILES`], never the own one.
    fn tidy(&self, folder: &OwnedFd) -> io::Result<()> {
        let mut others = Vec::new();
        for entry in rustix::fs::Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(PREFIX) && name != self.name {
                let stat = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                others.push((stat.st_mtime, name));
            }
        }
        others.sort();
        let excess = (others.len() + 1).saturating_sub(MAX_FILES);
        for (_, name) in others.iter().take(excess) {
            unlinkat(folder, name, AtFlags::empty())?;
        }
        Ok(())
    }

    fn folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.state, flags, Mode::empty())?)
    }

    fn sealed(&self, contents: &[u8]) -> blake3::Hash {
        self.seal.clone().update(contents).finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, TreeMemory) {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["state", "root"] {
            fs::create_dir(temp.path().join(folder)).unwrap();
        }
        let memory = of(temp.path(), "root", 7);
        (temp, memory)
    }

    fn of(temp: &Path, root: &str, key: u8) -> TreeMemory {
        TreeMemory::new(temp.join("state"), &temp.join(root), &[key; 32]).unwrap()
    }

    fn path(memory: &TreeMemory) -> PathBuf {
        memory.state.join(&memory.name)
    }

    #[test]
    fn what_was_kept_comes_back_to_the_same_user_and_the_same_folder_only() {
        let (temp, memory) = place();
        assert_eq!(memory.recall(), None);
        memory.keep(b"one");
        memory.keep(b"two");
        assert_eq!(memory.recall().unwrap(), b"two");
        assert_eq!(fs::read_dir(&memory.state).unwrap().count(), 1, "nothing half-made is left");
        assert_eq!(of(temp.path(), "root", 8).recall(), None, "another key");
        fs::create_dir(temp.path().join("other")).unwrap();
        let other = of(temp.path(), "other", 7);
        fs::copy(path(&memory), path(&other)).unwrap();
        assert_eq!(other.recall(), None, "another path");
        fs::rename(temp.path().join("root"), temp.path().join("aside")).unwrap();
        fs::create_dir(temp.path().join("root")).unwrap();
        assert_eq!(of(temp.path(), "root", 7).recall(), None, "another folder");
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let (_temp, memory) = place();
        memory.keep(b"contents");
        let whole = fs::read(path(&memory)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(path(&memory), &bytes).unwrap();
            assert_eq!(memory.recall(), None, "byte {at}");
            fs::write(path(&memory), &whole[..at]).unwrap();
            assert_eq!(memory.recall(), None, "cut at {at}");
        }
    }

    #[test]
    fn no_link_is_followed_and_nothing_waits() {
        let (temp, memory) = place();
        let secret = temp.path().join("secret");
        memory.keep(b"x");
        fs::rename(path(&memory), &secret).unwrap();
        symlink(&secret, path(&memory)).unwrap();
        assert_eq!(memory.recall(), None);
        memory.keep(b"y");
        assert_eq!(memory.recall().unwrap(), b"y", "the link was replaced");
        assert!(fs::read(&secret).unwrap().ends_with(b"x"));

        fs::remove_file(path(&memory)).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path(&memory), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(memory.recall(), None);
        fs::rename(temp.path().join("state"), temp.path().join("elsewhere")).unwrap();
        symlink(temp.path().join("elsewhere"), temp.path().join("state")).unwrap();
        memory.keep(b"z");
        assert_eq!(memory.recall(), None, "a link in place of the folder");
    }

    #[test]
    fn the_oldest_of_many_go() {
        let (temp, memory) = place();
        for at in 0..MAX_FILES + 5 {
            fs::write(temp.path().join(format!("state/{PREFIX}{at}")), "").unwrap();
        }
        memory.keep(b"x");
        assert_eq!(fs::read_dir(&memory.state).unwrap().count(), MAX_FILES);
        assert!(memory.recall().is_some());
    }
}
