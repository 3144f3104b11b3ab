//! What of the tree differs from its commit, as git would say it: contents that git would turn into the commit's blob
//! are that blob's, and an executable bit that the repository does not go by is that of the index.
//!
//! Git is asked only about entries that differ as they lie there, so a tree without such entries costs nothing.

use super::beneath::Root;
use super::collect::{Candidate, Collected, Source};
use super::conversion::{MAX_CONVERTED, Rules, lfs_pointer};
use super::entry::{Converted, Entry, Kind};
use super::error::SnapshotError;
use super::id::ObjectId;
use super::look::Looked;
use super::patience::Patience;
use crate::model::{Digest, Remark};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;

/// What came of entries that differ as they lie there.
pub(super) struct Settled {
    /// Whether there are any, so that git's configuration and attributes have a say.
    pub(super) asked: bool,
    /// What could not be worked out, with the reason.
    pub(super) unproven: Vec<Remark>,
}

/// Works out, for what differs as it lies there, whether it differs for git, and puts that into the entries.
pub(super) fn settle(
    root: &Root,
    collected: &Collected<'_>,
    looked: &mut [Looked],
    learnt: &AtomicBool,
) -> Result<Settled, SnapshotError> {
    let mut unproven = Vec::new();
    let mut differ: Vec<Vec<usize>> = collected.sources.iter().map(|_| Vec::new()).collect();
    for (at, (candidate, entry)) in collected.candidates.iter().zip(looked.iter()).enumerate() {
        if let (Some(entry), Some(list)) = (entry, differ.get_mut(candidate.source))
            && candidate.indexed.is_some()
            && (other_bit(candidate, entry) || other_contents(candidate, entry))
        {
            list.push(at);
        }
    }
    let asked = differ.iter().any(|differ| !differ.is_empty());
    for (source, differ) in collected.sources.iter().zip(differ) {
        if !differ.is_empty() {
            unproven.extend(settle_one(root, source, collected, &differ, looked, learnt)?);
        }
    }
    Ok(Settled { asked, unproven })
}

/// Whether an entry is as the commit has it. True for what a sparse checkout left out.
pub(super) fn is_clean(candidate: &Candidate, entry: &Entry) -> bool {
    let Some(committed) = &candidate.committed else { return false };
    let same = entry.blob.is_some();
    match entry.kind {
        Kind::File => same && committed.mode != EXECUTABLE && committed.mode != LINK,
        Kind::Executable => same && committed.mode == EXECUTABLE,
        Kind::Symlink => same && committed.mode == LINK,
        Kind::Submodule => candidate.commit.as_ref().is_some_and(|at| *at == committed.id.named()),
        Kind::LeftOut => true,
        Kind::Unreadable | Kind::Special => false,
    }
}

fn other_bit(candidate: &Candidate, entry: &Entry) -> bool {
    match entry.kind {
        Kind::File => candidate.indexed == Some(EXECUTABLE),
        Kind::Executable => candidate.indexed.is_some_and(|mode| mode != EXECUTABLE),
        Kind::Symlink | Kind::Submodule | Kind::LeftOut | Kind::Unreadable | Kind::Special => false,
    }
}

fn other_contents(candidate: &Candidate, entry: &Entry) -> bool {
    let file = matches!(entry.kind, Kind::File | Kind::Executable);
    file && entry.blob.is_none() && candidate.committed.as_ref().is_some_and(|committed| committed.mode != LINK)
}

fn settle_one(
    root: &Root,
    source: &Source,
    collected: &Collected<'_>,
    differ: &[usize],
    looked: &mut [Looked],
    learnt: &AtomicBool,
) -> Result<Vec<Remark>, SnapshotError> {
    let mut remarks = Vec::new();
    let settings = source.repository.settings()?;
    let mut contents = Vec::new();
    for at in differ {
        let (candidate, Some(entry)) = (&collected.candidates[*at], &mut looked[*at]) else { continue };
        if !settings.file_mode && other_bit(candidate, entry) {
            Arc::make_mut(entry).kind =
                if candidate.indexed == Some(EXECUTABLE) { Kind::Executable } else { Kind::File };
        }
        if other_contents(candidate, entry) {
            contents.push((*at, source.to_repository(&entry.path)));
        }
    }
    if contents.is_empty() {
        return Ok(remarks);
    }
    if let Some(path) = endless(source, contents.iter().map(|(_, path)| path.as_slice())) {
        let path = String::from_utf8_lossy(&path).into_owned();
        let why = "it is no file, so no attributes can be read and whatever differs counts as changed".to_owned();
        return Ok(vec![Remark { path, why }]);
    }
    let paths: Vec<&[u8]> = contents.iter().map(|(_, path)| path.as_slice()).collect();
    let rules = source.repository.attributes(&paths)?;
    for ((at, path), values) in contents.iter().zip(rules) {
        let read = |source| SnapshotError::Read { path: String::from_utf8_lossy(path).into_owned(), source };
        source.repository.patience.check().map_err(read)?;
        let (Some(committed), Some(entry)) = (collected.candidates[*at].committed, &mut looked[*at]) else { continue };
        let values = values.each_ref().map(Vec::as_slice);
        let rules = Rules::of(&values, settings);
        if rules.keep_all() {
            continue;
        }
        let known = entry.converted.as_ref().filter(|known| known.rules == rules && known.blob == committed.id);
        let same = if let Some(known) = known {
            known.same
        } else {
            learnt.store(true, Ordering::Relaxed);
            makes(root, entry, &rules, committed.id, &source.repository.patience)
        };
        let why = match &rules {
            Rules::Unknown(why) => Some(why.clone()),
            Rules::Builtin { .. } if entry.size > MAX_CONVERTED => Some("it is too large to be converted".to_owned()),
            Rules::Builtin { .. } | Rules::Lfs => None,
        };
        remarks.extend(why.map(|why| remark(&entry.path, &why)));
        let entry = Arc::make_mut(entry);
        entry.blob = same.then_some(committed.id);
        entry.converted = Some(Box::new(Converted { rules, blob: committed.id, same }));
    }
    Ok(remarks)
}

/// What git would open to know the attributes of these paths and might never come to the end of: it waits at a FIFO.
fn endless<'a>(source: &Source, paths: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut folders = BTreeSet::from([&b""[..]]);
    for path in paths {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
        folders.extend(ends.map(|end| &path[..end]));
    }
    let strange = |path: &Vec<u8>| {
        let found = source.repository.top.join(OsStr::from_bytes(path)).symlink_metadata();
        found.is_ok_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink())
    };
    folders.into_iter().map(|folder| [folder, b".gitattributes"].concat()).find(strange)
}

fn remark(path: &[u8], why: &str) -> Remark {
    Remark { path: String::from_utf8_lossy(path).into_owned(), why: format!("{why}, so it counts as changed") }
}

/// Whether git makes that blob of the contents, which are read again: those that have the entry's digest, or none.
fn makes(root: &Root, entry: &Entry, rules: &Rules, id: ObjectId, patience: &Patience) -> bool {
    let made = match rules {
        Rules::Builtin { .. } if entry.size > MAX_CONVERTED => Ok(false),
        Rules::Builtin { .. } => contents(root, entry).map(|bytes| bytes.is_some_and(|bytes| rules.makes(&bytes, id))),
        Rules::Lfs => pointer(root, entry, patience)
            .map(|pointer| pointer.is_some_and(|pointer| super::blob::blob_id(id, pointer.as_bytes()) == id)),
        Rules::Unknown(_) => Ok(false),
    };
    // What cannot be read again has moved, and what moved is not as the commit has it.
    made.unwrap_or(false)
}

fn contents(root: &Root, entry: &Entry) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    root.file(&entry.path)?.take(entry.size.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((Digest::of(&bytes) == entry.digest).then_some(bytes))
}

fn pointer(root: &Root, entry: &Entry, patience: &Patience) -> io::Result<Option<String>> {
    use sha2::Digest as _;
    let mut file = patience.reading(root.file(&entry.path)?).take(entry.size.saturating_add(1));
    let mut buffer = vec![0; 1 << 16];
    let (mut sha, mut whole, mut size) = (sha2::Sha256::new(), blake3::Hasher::new(), 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        sha.update(&buffer[..count]);
        whole.update(&buffer[..count]);
        size += count as u64;
    }
    let same = Digest::from_hash(whole.finalize()) == entry.digest;
    Ok(same.then(|| lfs_pointer(&sha.finalize(), size)))
}
