//! Compiled code on disk, so that a pack is compiled once for each user and not once for each run.
//!
//! It is machine code that will be executed, so the folder must be this user's and nobody else's to write. A file is
//! written under another name and renamed, so a reader sees all of it or none, and it begins with a keyed hash of its
//! name and the rest: damage is noticed, and so is code that somebody without the key put there, say with a restored
//! cache. Losing the cache costs time: trouble here becomes a warning and never an error.

use crate::model::{Context, Digest, Encoder};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What a file begins with. Another layout gets another number; files with other beginnings are made again.
const MAGIC: &[u8; 20] = b"probity artefact 02\n";

/// Magic and keyed hash.
const HEADER: usize = MAGIC.len() + 32;

/// The largest file that is read back: compiled code of the largest component has been seen to be three times as large.
const MAX_FILE: u64 = 1 << 30;

/// A folder of compiled code.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    key: [u8; 32],
}

/// The name of a component's compiled code: made of the component and of everything that the code depends on.
pub(super) fn name(component: &Digest, compatibility: &str) -> String {
    let mut encoder = Encoder::new();
    // With the layout in the name, files of an older one are passed over and not called damaged.
    encoder.digest(component).text(compatibility).bytes(MAGIC);
    format!("{}.code", encoder.finish(Context::Artefact).hex())
}

impl Cache {
    pub(super) fn new(folder: PathBuf, key: [u8; 32]) -> Self {
        Self { folder, key }
    }

    /// The code under this name; none if there is none that can be trusted.
    pub(super) fn get(&self, name: &str, warnings: &mut Vec<String>) -> Option<Vec<u8>> {
        match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            _ => {}
        }
        if let Err(error) = check_folder(&self.folder) {
            warnings.push(format!("the cache of compiled code {} is not used: {error}", self.folder.display()));
            return None;
        }
        let path = self.folder.join(name);
        match self.read(name, &path) {
            Ok(Some(code)) => Some(code),
            Ok(None) => {
                warnings.push(format!("compiled code {} is damaged or not ours, and is made again", path.display()));
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                warnings.push(format!("compiled code {} cannot be read: {error}", path.display()));
                None
            }
        }
    }

    /// Keeps code under this name, if it can.
    pub(super) fn put(&self, name: &str, code: &[u8], warnings: &mut Vec<String>) {
        if let Err(error) = self.write(name, code) {
            let folder = self.folder.display();
            let warning = format!("compiled code cannot be kept in {folder}, so each run compiles again: {error}");
            // That the folder itself is unfit has been said when it was read.
            if !warnings.iter().any(|said| said.contains("is not used")) {
                warnings.push(warning);
            }
        }
    }

    fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        create_folder(&self.folder)?;
        check_folder(&self.folder)?;
        // Made with mode 0600 under a random name.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(self.mac(name, code).as_bytes())?;
        file.write_all(code)?;
        // Without this a crash of the machine could leave the new name with no contents.
        file.as_file().sync_all()?;
        file.persist(self.folder.join(name)).map_err(|error| error.error)?;
        Ok(())
    }

    /// What is in the file; none if it is not what was written.
    fn read(&self, name: &str, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let file = open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > MAX_FILE {
            return Ok(None);
        }
        check_owner(&metadata)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes)?;
        let Some((header, code)) = bytes.split_at_checked(HEADER) else { return Ok(None) };
        // Comparing hashes takes the same time wherever they differ.
        let known = header[..MAGIC.len()] == *MAGIC
            && <[u8; 32]>::try_from(&header[MAGIC.len()..]).is_ok_and(|mac| self.mac(name, code) == mac);
        if !known {
            return Ok(None);
        }
        bytes.drain(..HEADER);
        Ok(Some(bytes))
    }

    /// What vouches for some code under a name.
    fn mac(&self, name: &str, code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(code);
        hasher.finalize()
    }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    // The flags of the system are what this call takes, as a number.
    fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Whether the folder is one that only this user can have written to.
fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("it is not a folder, or a link to one"));
    }
    check_owner(&metadata)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
        return Err(io::Error::other("others can look into it: its mode must be 700"));
    }
    Ok(())
}

#[cfg(unix)]
fn check_owner(metadata: &fs::Metadata) -> io::Result<()> {
    if std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(io::Error::other("it belongs to another user"))
    }
}

#[cfg(not(unix))]
fn check_owner(_metadata: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::new(temp.path().join("a/code"), [7; 32]);
        (temp, cache)
    }

    fn get(cache: &Cache) -> (Option<Vec<u8>>, usize) {
        let mut warnings = Vec::new();
        (cache.get("x.code", &mut warnings), warnings.len())
    }

    fn put(cache: &Cache, code: &[u8]) -> Vec<String> {
        let mut warnings = Vec::new();
        cache.put("x.code", code, &mut warnings);
        warnings
    }

    #[test]
    fn what_was_put_is_got() {
        let (_temp, cache) = cache();
        assert_eq!(get(&cache), (None, 0));
        assert!(put(&cache, b"code").is_empty());
        assert_eq!(get(&cache), (Some(b"code".to_vec()), 0));
        assert!(put(&cache, b"other").is_empty());
        assert_eq!(get(&cache), (Some(b"other".to_vec()), 0));
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), 1, "nothing half-made is left");
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let (_temp, cache) = cache();
        put(&cache, b"code");
        let path = cache.folder.join("x.code");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(get(&cache), (None, 1), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(get(&cache), (None, 1), "cut at {at}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(get(&cache).1, 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_reach_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let (temp, cache) = cache();
        put(&cache, b"code");
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(get(&cache), (None, 1));
        assert_eq!(put(&cache, b"code").len(), 1);
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(get(&cache).1, 0);
        let link = Cache::new(temp.path().join("link"), [7; 32]);
        std::os::unix::fs::symlink(&cache.folder, &link.folder).unwrap();
        assert_eq!(get(&link), (None, 1));
        // And a link in place of a file is not followed.
        let elsewhere = temp.path().join("elsewhere");
        fs::rename(cache.folder.join("x.code"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, cache.folder.join("x.code")).unwrap();
        assert_eq!(get(&cache), (None, 1));
    }

    #[test]
    fn a_folder_that_cannot_be_is_a_warning() {
        let (temp, _) = cache();
        fs::write(temp.path().join("file"), "").unwrap();
        let cache = Cache::new(temp.path().join("file/code"), [7; 32]);
        assert!(get(&cache).0.is_none());
        assert_eq!(put(&cache, b"code").len(), 1);
    }

    #[test]
    fn names_differ_by_component_and_engine() {
        let names =
            [name(&Digest::of(b"a"), "engine"), name(&Digest::of(b"b"), "engine"), name(&Digest::of(b"a"), "other")];
        assert!(names[0] != names[1] && names[0] != names[2] && names[1] != names[2]);
    }
}
