//! The snapshot: path, kind and content digest of every entry, taken once, in one order.
//!
//! Contents are hashed from the very bytes that are read; times and inode numbers only decide whether an
//! entry has to be read again, and never get into a digest.

use super::beneath::{self, Root};
use super::git::{Committed, GitError, Listing, Repository};
use super::pieces::{PIECE, Pieces, piece};
use crate::model::{Context, Digest, Encoder, hex};
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a walk outside version control reads to know what to leave out.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Where a subject is taken from.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder that is verified, absolute: the one with the configuration.
    pub root: PathBuf,
    /// The repository it belongs to.
    pub repository: Option<Repository>,
    /// Where the root is below the top of the repository.
    below: Vec<u8>,
}

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its contents are its text.
    Symlink,
    /// A repository inside; its contents are the commit it is at.
    Submodule,
    /// Tracked, and left out of this working tree: a sparse checkout, a submodule that was not initialised.
    LeftOut,
    /// There, and not readable for this user.
    Unreadable,
    /// A FIFO, a socket or a device.
    Special,
}

impl Kind {
    /// The byte that stands for it in the digest of a tree.
    fn code(self) -> u64 {
        match self {
            Self::File => 1,
            Self::Executable => 2,
            Self::Symlink => 3,
            Self::Submodule => 4,
            Self::LeftOut => 5,
            Self::Unreadable => 6,
            Self::Special => 7,
        }
    }
}

/// One entry of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root, `/`-separated, in the bytes of the file system.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Bytes of its contents.
    pub size: u64,
    /// Of its contents.
    pub digest: Digest,
    /// Whether version control knows it.
    pub tracked: bool,
    /// A link's text; empty for everything else.
    pub text: Vec<u8>,
    /// Of a file in more than one piece: what each is, to check a part of it alone.
    pub pieces: Option<Pieces>,
    /// Git's id of its contents as they lie there, where the commit has something to compare them with.
    id: Option<String>,
    stat: StatKey,
}

/// A subject, taken.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Sorted bytewise by path.
    pub entries: Vec<Entry>,
    /// The digest of all entries.
    pub tree: Digest,
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// Whether the entries differ from that commit. None outside version control.
    pub dirty: Option<bool>,
    taken: SystemTime,
}

/// Why no snapshot could be taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Git could not say what belongs to the tree.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The tree could not be walked.
    #[error("cannot walk the tree: {0}\nhelp: give this user access to it, or leave it out with a `.gitignore`")]
    Walk(#[from] ignore::Error),
    /// Something could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// What, relative to the root.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What shows, without reading it, that a file was not touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct StatKey {
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
    mode: u32,
}

impl StatKey {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the widths of these fields differ between systems"
    )]
    fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// Whether the entry could have been written again without these times moving: coarse clocks tick every
    /// ten milliseconds, some file systems every two seconds.
    fn is_fresh(&self, taken: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { Duration::from_secs(2) } else { Duration::from_millis(20) };
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
            return true;
        };
        UNIX_EPOCH + Duration::new(seconds, nanoseconds) + tick >= taken
    }
}

/// A path that belongs to the subject, before it was looked at.
struct Candidate {
    path: Vec<u8>,
    tracked: bool,
    left_out: bool,
    /// Of a repository inside: what it is at.
    commit: Option<String>,
    committed: Option<Committed>,
}

impl Workspace {
    /// The workspace of a folder, which must be absolute.
    pub fn of(root: &Path) -> Result<Self, GitError> {
        let repository = Repository::discover(root)?;
        let real = root.canonicalize().map_err(GitError::Io)?;
        let below = repository.as_ref().and_then(|repository| real.strip_prefix(&repository.top).ok());
        let below = below.map(|below| below.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        Ok(Self { root: root.to_owned(), repository, below })
    }

    /// Takes the subject. Entries of `previous` that were not touched since are not read again.
    pub fn snapshot(&self, previous: Option<&Snapshot>) -> Result<Snapshot, SnapshotError> {
        let taken = SystemTime::now();
        let mut candidates = Vec::new();
        let mut dirty = false;
        if let Some(repository) = &self.repository {
            collect(repository, &self.below, b"", &mut candidates, &mut dirty)?;
        } else {
            walk(&self.root, b"", true, &mut candidates)?;
        }
        candidates.sort_by(|a, b| a.path.cmp(&b.path));
        let known: HashMap<&[u8], &Entry> = previous
            .iter()
            .flat_map(|snapshot| snapshot.entries.iter().filter(|entry| !entry.stat.is_fresh(snapshot.taken)))
            .map(|entry| (entry.path.as_slice(), entry))
            .collect();
        let looked = look_at_all(&self.root, &candidates, &known)?;
        let mut entries = Vec::with_capacity(candidates.len());
        for (candidate, looked) in candidates.into_iter().zip(looked) {
            let Some((entry, clean)) = looked else {
                // Deleted in the working tree: not part of the subject, and a difference to the commit.
                dirty |= candidate.committed.is_some();
                continue;
            };
            dirty |= !clean;
            entries.push(entry);
        }
        let tree = tree_digest(&entries);
        let commit = self.repository.as_ref().and_then(|repository| repository.commit.clone());
        let dirty = self.repository.is_some().then_some(dirty);
        Ok(Snapshot { entries, tree, commit, dirty, taken })
    }
}

impl Snapshot {
    /// The entry at `path`.
    pub fn entry(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok().map(|index| &self.entries[index])
    }

    /// Whether anything lies below `path`.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let start = [path, b"/"].concat();
        let first = self.entries.partition_point(|entry| entry.path < start);
        self.entries.get(first).is_some_and(|entry| entry.path.starts_with(&start))
    }

    /// Paths that no pack gets to see: those that are not UTF-8, and FIFOs, sockets and devices. Sorted.
    pub fn hidden(&self) -> Vec<String> {
        let hidden = |entry: &&Entry| entry.kind == Kind::Special || std::str::from_utf8(&entry.path).is_err();
        self.entries.iter().filter(hidden).map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect()
    }

    /// The paths that differ between two snapshots of one folder, sorted.
    pub fn moved(&self, later: &Self) -> Vec<String> {
        let same = |a: &Entry, b: &Entry| a.kind == b.kind && a.digest == b.digest && a.tracked == b.tracked;
        let mut all: BTreeMap<&[u8], (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
        for entry in &self.entries {
            all.entry(&entry.path).or_default().0 = Some(entry);
        }
        for entry in &later.entries {
            all.entry(&entry.path).or_default().1 = Some(entry);
        }
        let moved = |(path, pair): (&[u8], (Option<&Entry>, Option<&Entry>))| match pair {
            (Some(a), Some(b)) if same(a, b) => None,
            _ => Some(String::from_utf8_lossy(path).into_owned()),
        };
        all.into_iter().filter_map(moved).collect()
    }
}

/// The digest of a tree: the number of entries, then for each, in order, its path, the code of its kind and
/// the digest of its contents. Neither size nor `tracked` is in it: both follow from what is.
fn tree_digest(entries: &[Entry]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(entries.len() as u64);
    for entry in entries {
        encoder.bytes(&entry.path).integer(entry.kind.code()).digest(&entry.digest);
    }
    encoder.finish(Context::Tree)
}

/// Adds what belongs to a repository: what it tracks, what it neither tracks nor ignores, and the same of every
/// repository inside. `below` is the part of it that is verified, `at` is where it stands in the subject.
fn collect(
    repository: &Repository,
    below: &[u8],
    at: &[u8],
    into: &mut Vec<Candidate>,
    dirty: &mut bool,
) -> Result<(), SnapshotError> {
    let (listing, committed) = std::thread::scope(|scope| {
        let committed = scope.spawn(|| repository.committed());
        let listing = repository.list();
        // A panic of the thread is a bug, and is shown as one.
        let committed = committed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (listing, committed)
    });
    let Listing { tracked, untracked } = listing?;
    let mut committed: HashMap<Vec<u8>, Committed> =
        committed?.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
    let relative = |path: &[u8]| {
        let inside = if below.is_empty() { Some(path) } else { path.strip_prefix(below)?.strip_prefix(b"/") };
        inside.map(|inside| join(at, inside))
    };
    for entry in tracked {
        let committed = committed.remove(&entry.path);
        let Some(path) = relative(&entry.path) else { continue };
        if entry.mode == 0o160_000 {
            nested(repository, &entry.path, path, true, entry.skipped, committed, into, dirty)?;
        } else {
            into.push(Candidate { path, tracked: true, left_out: entry.skipped, commit: None, committed });
        }
    }
    // What the commit has and the index has not was removed.
    *dirty |= committed.keys().any(|path| relative(path).is_some());
    for path in untracked {
        *dirty |= relative(&path).is_some();
        let Some(inside) = relative(&path) else { continue };
        if let Some(folder) = path.strip_suffix(b"/") {
            let inside = inside.strip_suffix(b"/").unwrap_or(&inside).to_vec();
            nested(repository, folder, inside, false, false, None, into, dirty)?;
        } else {
            into.push(Candidate { path: inside, tracked: false, left_out: false, commit: None, committed: None });
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one recursion of `collect`, with what it already knows")]
fn nested(
    outer: &Repository,
    folder: &[u8],
    path: Vec<u8>,
    tracked: bool,
    skipped: bool,
    committed: Option<Committed>,
    into: &mut Vec<Candidate>,
    dirty: &mut bool,
) -> Result<(), SnapshotError> {
    let inner = if skipped { None } else { outer.inner(folder)? };
    let commit = inner.as_ref().map(|inner| inner.commit.clone().unwrap_or_default());
    let left_out = inner.is_none();
    if let Some(inner) = inner {
        collect(&inner, b"", &path, into, dirty)?;
    } else {
        // Git looks no further where a submodule should be; commands see what was put there all the same.
        let before = into.len();
        walk(&outer.top.join(std::ffi::OsStr::from_bytes(folder)), &path, false, into)?;
        *dirty |= into.len() > before;
    }
    into.push(Candidate { path, tracked, left_out, commit, committed });
    Ok(())
}

fn join(at: &[u8], inside: &[u8]) -> Vec<u8> {
    if at.is_empty() { inside.to_vec() } else { [at, b"/", inside].concat() }
}

/// Adds every file of a folder outside version control, less what ignore files in it leave out if they are `heeded`.
/// Nothing where there is no folder. `at` is where it stands in the subject.
fn walk(folder: &Path, at: &[u8], heeded: bool, into: &mut Vec<Candidate>) -> Result<(), SnapshotError> {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    // Reading a FIFO of that name would wait for ever, and a device may have no end.
    let unreadable = Arc::new(OnceLock::new());
    let fits = {
        let unreadable = Arc::clone(&unreadable);
        move |folder: &Path| {
            let strange = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
            let mut read = IGNORE_FILES.iter().filter(|_| heeded).map(|name| folder.join(name));
            read.find(strange).is_none_or(|path| unreadable.set(path).is_err())
        }
    };
    let within = at.is_empty();
    if fits(folder) {
        let walker = ignore::WalkBuilder::new(folder)
            .standard_filters(heeded)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false)
            .follow_links(false)
            // Probity's own state is never part of a subject, and neither is what git keeps of a repository.
            .filter_entry(move |entry| {
                let own =
                    entry.file_name() == ".git" || (within && entry.depth() == 1 && entry.file_name() == ".probity");
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.depth() == 0 || (!own && (!is_folder || fits(entry.path())))
            })
            .build();
        for entry in walker {
            let entry = entry?;
            if entry.depth() == 0 || entry.file_type().is_some_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).as_os_str().as_bytes();
            let path = join(at, path);
            into.push(Candidate { path, tracked: false, left_out: false, commit: None, committed: None });
        }
    }
    let Some(path) = unreadable.get() else { return Ok(()) };
    let path = path.strip_prefix(folder).unwrap_or(path).as_os_str().as_bytes();
    let path = String::from_utf8_lossy(&join(at, path)).into_owned();
    Err(SnapshotError::Read { path, source: io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file") })
}

/// The entry as it is, and whether it is as the commit has it. None where there is nothing at that path.
type Looked = Option<(Entry, bool)>;

fn look_at_all(
    root: &Path,
    candidates: &[Candidate],
    known: &HashMap<&[u8], &Entry>,
) -> Result<Vec<Looked>, SnapshotError> {
    let open = Root::open(root).map_err(|source| SnapshotError::Read { path: ".".to_owned(), source })?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    let share = candidates.len().div_ceil(threads).max(1);
    let parts: Vec<Result<Vec<Looked>, SnapshotError>> = std::thread::scope(|scope| {
        let look = |part| {
            let open = &open;
            scope.spawn(move || Looker { root: open, folder: None, known }.look_at(part))
        };
        let threads: Vec<_> = candidates.chunks(share).map(look).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut looked = Vec::with_capacity(candidates.len());
    for part in parts {
        looked.extend(part?);
    }
    Ok(looked)
}

struct Looker<'a> {
    root: &'a Root,
    /// The folder of the last entry: neighbours share it, and opening it by handle keeps links out.
    folder: Option<(Vec<u8>, Option<OwnedFd>)>,
    known: &'a HashMap<&'a [u8], &'a Entry>,
}

impl Looker<'_> {
    fn look_at(mut self, candidates: &[Candidate]) -> Result<Vec<Looked>, SnapshotError> {
        candidates
            .iter()
            .map(|candidate| {
                self.look(candidate).map_err(|source| SnapshotError::Read {
                    path: String::from_utf8_lossy(&candidate.path).into_owned(),
                    source,
                })
            })
            .collect()
    }

    fn look(&mut self, candidate: &Candidate) -> io::Result<Looked> {
        if let Some(commit) = &candidate.commit {
            let clean = candidate.committed.as_ref().is_some_and(|c| commit.ends_with(&format!(":{}", c.id)));
            return Ok(Some((entry(candidate, Kind::Submodule, commit.as_bytes(), StatKey::default()), clean)));
        }
        let cut = candidate.path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) =
            cut.map_or((&b""[..], &candidate.path[..]), |at| (&candidate.path[..at], &candidate.path[at + 1..]));
        if self.folder.as_ref().is_none_or(|(path, _)| path != folder) {
            let opened = match self.root.folder(folder) {
                Ok(opened) => Some(opened),
                Err(error) if is_absence(&error) => None,
                Err(error) => return Err(error),
            };
            self.folder = Some((folder.to_vec(), opened));
        }
        let stat = match self.folder.as_ref().and_then(|(_, opened)| opened.as_ref()) {
            Some(opened) => match beneath::stat(opened, name) {
                Ok(stat) => Some((opened, stat)),
                Err(error) if is_absence(&error) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let Some((opened, stat)) = stat else {
            let left_out = || (entry(candidate, Kind::LeftOut, b"", StatKey::default()), true);
            return Ok(candidate.left_out.then(left_out));
        };
        let key = StatKey::of(&stat);
        let committed = candidate.committed.as_ref();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let kind = if stat.st_mode & 0o100 == 0 { Kind::File } else { Kind::Executable };
                let mode = if kind == Kind::Executable { 0o100_755 } else { 0o100_644 };
                let clean = |id: Option<&String>| committed.is_some_and(|c| c.mode == mode && Some(&c.id) == id);
                let untouched = |known: &&&Entry| known.stat == key && known.id.is_some() == committed.is_some();
                if let Some(known) = self.known.get(candidate.path.as_slice()).filter(untouched) {
                    let entry = Entry { tracked: candidate.tracked, ..(*known).clone() };
                    let clean = clean(entry.id.as_ref());
                    return Ok(Some((entry, clean)));
                }
                match beneath::file_in(opened, name) {
                    Ok(file) => {
                        let Hashed { size, digest, pieces, id } = hash(file, key.size, committed)?;
                        let clean = clean(id.as_ref());
                        let path = candidate.path.clone();
                        let tracked = candidate.tracked;
                        let entry =
                            Entry { path, kind, size, digest, tracked, text: Vec::new(), pieces, id, stat: key };
                        Ok(Some((entry, clean)))
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        Ok(Some((entry(candidate, Kind::Unreadable, b"", key), false)))
                    }
                    Err(error) => Err(error),
                }
            }
            FileType::Symlink => {
                let text = beneath::link_in(opened, name)?;
                let clean = committed.is_some_and(|c| c.mode == 0o120_000 && blob_id(&c.id, &text) == c.id);
                Ok(Some((entry(candidate, Kind::Symlink, &text, key), clean)))
            }
            // A tracked file whose place a folder took is gone; what the folder holds is listed by itself. The folder
            // of a submodule that was not initialised is left out.
            FileType::Directory => {
                let left_out = || (entry(candidate, Kind::LeftOut, b"", StatKey::default()), true);
                Ok(candidate.left_out.then(left_out))
            }
            _ => Ok(Some((entry(candidate, Kind::Special, b"", key), false))),
        }
    }
}

fn entry(candidate: &Candidate, kind: Kind, contents: &[u8], stat: StatKey) -> Entry {
    let (path, tracked) = (candidate.path.clone(), candidate.tracked);
    let text = if kind == Kind::Symlink { contents.to_vec() } else { Vec::new() };
    let (size, digest) = (contents.len() as u64, Digest::of(contents));
    Entry { path, kind, size, digest, tracked, text, pieces: None, id: None, stat }
}

/// Nothing is there, or what is there on the way is no folder (a link or a file took its place).
fn is_absence(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP))
}

struct Hashed {
    size: u64,
    digest: Digest,
    pieces: Option<Pieces>,
    id: Option<String>,
}

/// Size, digest and, where there is one to compare with, git's id of a file's contents, from one reading.
fn hash(file: File, expected: i64, committed: Option<&Committed>) -> io::Result<Hashed> {
    let expected = u64::try_from(expected).unwrap_or(0);
    let mut blob = committed.map(|committed| Blob::new(&committed.id, expected));
    // One byte more than expected, so that the end of a small file is seen without a larger buffer.
    let capacity = usize::try_from(expected.saturating_add(1).min(PIECE)).unwrap_or(0);
    let mut reader = file.take(PIECE);
    let mut bytes = Vec::with_capacity(capacity);
    let mut first = None;
    let mut values = Vec::new();
    let mut size = 0;
    loop {
        bytes.clear();
        reader.set_limit(PIECE);
        let count = reader.read_to_end(&mut bytes)? as u64;
        if count == 0 && first.is_some() {
            break;
        }
        if let Some(blob) = &mut blob {
            blob.update(&bytes);
        }
        // The values of inner pieces are needed only where there is a second piece, which most files have not.
        match &first {
            None => first = Some((Digest::of(&bytes), (count == PIECE).then(|| piece(0, &bytes)))),
            Some((_, value)) => {
                values.extend(if values.is_empty() { *value } else { None });
                values.push(piece(size, &bytes));
            }
        }
        size += count;
        if count < PIECE {
            break;
        }
    }
    let pieces = Pieces::new(values);
    let whole = first.map(|(digest, _)| digest);
    let digest = pieces.as_ref().map(|pieces| Digest::from_hash(pieces.root())).or(whole);
    Ok(Hashed { size, digest: digest.unwrap_or_else(|| Digest::of(b"")), pieces, id: blob.map(Blob::finish) })
}

fn blob_id(like: &str, contents: &[u8]) -> String {
    let mut blob = Blob::new(like, contents.len() as u64);
    blob.update(contents);
    blob.finish()
}

/// Git's id of a file: the hash of a header with its size, and its contents.
enum Blob {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Blob {
    /// For an id of the same kind as `like`, in hexadecimal.
    fn new(like: &str, size: u64) -> Self {
        use sha1::Digest as _;
        let header = format!("blob {size}\0");
        if like.len() == 64 {
            Self::Sha256(sha2::Sha256::new_with_prefix(header))
        } else {
            Self::Sha1(sha1::Sha1::new_with_prefix(header))
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        use sha1::Digest as _;
        match self {
            Self::Sha1(hash) => hash.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> String {
        use sha1::Digest as _;
        match self {
            Self::Sha1(hash) => hex(&hash.finalize()),
            Self::Sha256(hash) => hex(&hash.finalize()),
        }
    }
}
