//! Logs: `logs/<run>/<check>.log`, one file a check, and `logs/<run>/verify.log`, all of them in declared order.
//!
//! Files are made and read by the handle of the run's folder, which is opened as one: what a command puts in its place is
//! never written to, and what it puts in a file's place is no log.

use super::place::{State, id, names, open_folder};
use crate::model::{CheckId, Concealer, Digest, Log, RunId, Secrets};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// The logs of one run.
#[derive(Debug)]
pub struct Logs {
    state: PathBuf,
    run: RunId,
    folder: OwnedFd,
    /// What puts logs on disk, while the next check runs and the tree is looked at again.
    settling: Mutex<Vec<io::Result<JoinHandle<io::Result<()>>>>>,
}

impl Logs {
    /// Makes the folder of a run's logs.
    pub fn create(state: &State, run: &RunId) -> io::Result<Self> {
        let logs = open_folder(state.folder(), "logs")?;
        rustix::fs::mkdirat(&logs, run.as_str(), Mode::RWXU)?;
        let folder = open_folder(&logs, run.as_str())?;
        Ok(Self { state: state.path().to_owned(), run: run.clone(), folder, settling: Mutex::default() })
    }

    /// The folder they are in.
    pub fn folder(&self) -> PathBuf {
        self.state.join("logs").join(self.run.as_str())
    }

    /// Fails where something else took the place of the folder that was made, or of one above it: what is kept would not
    /// be found there.
    pub fn in_place(&self) -> io::Result<()> {
        let gone = |error: io::Error| io::Error::other(format!("the folder of its logs is no longer there: {error}"));
        let state = open_folder(rustix::fs::CWD, &self.state).map_err(|error| gone(error.into()))?;
        let now = folder_of(state, self.run.as_str()).map_err(gone)?;
        if id(&rustix::fs::fstat(&now)?) == id(&rustix::fs::fstat(&self.folder)?) {
            Ok(())
        } else {
            Err(io::Error::other("another folder took the place of the one for its logs"))
        }
    }

    /// The name of a check's log in that folder.
    pub fn name(&self, check: &CheckId) -> String {
        format!("{check}.log")
    }

    fn relative(&self, name: &str) -> String {
        format!("logs/{}/{name}.log", self.run)
    }

    /// A new file for the output of a check, to be appended to. Where there are secrets it has no name, so that whatever
    /// ends this process leaves none of them behind.
    pub fn start(&self, check: &CheckId, secrets: &Secrets) -> io::Result<File> {
        self.in_place()?;
        if secrets.is_empty() {
            return self.named(check.as_str());
        }
        let file = tempfile::tempfile_in(self.folder())?;
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(file)
    }

    fn named(&self, name: &str) -> io::Result<File> {
        self.new_file(&format!("{name}.log"), OFlags::APPEND)
    }

    fn new_file(&self, name: &str, how: OFlags) -> io::Result<File> {
        let flags = how | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Writes a list of files for a check beside its log, and returns its path.
    pub fn list(&self, check: &CheckId, contents: &[u8]) -> io::Result<String> {
        let name = format!("{check}.files");
        self.new_file(&name, OFlags::APPEND)?.write_all(contents)?;
        let path = self.folder().join(name);
        path.into_os_string().into_string().map_err(|_| io::Error::other("the path of the state folder is no text"))
    }

    /// What became of a file that was started: its size and digest, without any secret. By its handle, since a command may
    /// have put something else in its place. That it is on disk is certain once all has settled.
    pub fn finish(&self, check: &CheckId, mut file: File, secrets: &Secrets) -> io::Result<Log> {
        if !secrets.is_empty() {
            let mut kept = self.named(check.as_str())?;
            // What a straggler writes meanwhile is not part of it, however much that is.
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(0))?;
            conceal(file.take(size), &mut kept, secrets)?;
            file = kept;
        }
        let written = file.try_clone()?;
        self.meanwhile(move || written.sync_data());
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        Ok(Log { path: self.relative(check.as_str()), size, digest: Digest::of_reader(file.take(size))? })
    }

    /// Begins to write `verify.log`: what each of these logs was when its check had ended, under a line with the check's
    /// name. It is made of files that are kept, so it is not waited for until it is on disk.
    pub fn combine<'a>(&self, logs: impl Iterator<Item = (&'a CheckId, &'a Log)>) {
        let logs: Vec<(CheckId, u64)> = logs.map(|(check, log)| (check.clone(), log.size)).collect();
        // Not to be appended to, so that the kernel can copy from file to file.
        let files = self.new_file("verify.log", OFlags::empty()).and_then(|file| Ok((file, self.folder.try_clone()?)));
        self.meanwhile(move || {
            let (mut combined, folder) = files?;
            for (check, size) in logs {
                let Ok(part) = open(&folder, check.as_str()) else { continue };
                writeln!(combined, "==> {check} <==")?;
                io::copy(&mut part.take(size), &mut combined)?;
                writeln!(combined)?;
            }
            Ok(())
        });
    }

    /// Waits until all logs that are finished are on disk, and `verify.log` is written.
    pub fn settle(&self) -> io::Result<()> {
        let settling = std::mem::take(&mut *self.settling.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in settling {
            thread?.join().map_err(|_| io::Error::other("a thread died that puts logs on disk"))??;
        }
        Ok(())
    }

    fn meanwhile(&self, task: impl FnOnce() -> io::Result<()> + Send + 'static) {
        let thread = std::thread::Builder::new().spawn(task);
        self.settling.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }
}

/// Copies output without the values of secrets.
fn conceal(mut from: impl io::Read, into: &mut File, secrets: &Secrets) -> io::Result<()> {
    let mut concealer = Concealer::new(secrets);
    let mut piece = vec![0; 64 << 10];
    let mut out = Vec::new();
    loop {
        let count = match from.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 {
            concealer.finish(&mut out);
            return into.write_all(&out);
        }
        concealer.push(&piece[..count], &mut out);
        into.write_all(&out)?;
        out.clear();
    }
}

/// The folder of a run's logs, opened as one, with all above it in the state folder.
pub(super) fn folder_of(state: impl AsFd, run: &str) -> io::Result<OwnedFd> {
    Ok(open_folder(open_folder(state, "logs")?, run)?)
}

/// Opens a log of a run for reading: a regular file, and no link, whatever was put in its place.
fn open(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, format!("{name}.log"), flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn open_of(state: &State, run: &RunId, name: &str) -> io::Result<File> {
    open(folder_of(state.folder(), run.as_str())?, name)
}

/// The output of a check of a run, to be read, if it is still what the record says. Its place follows from the names,
/// whatever the record may claim. All of it is never in memory: it may be larger than that.
pub fn open_log(state: &State, run: &RunId, check: &CheckId, log: &Log) -> io::Result<impl io::Read + use<>> {
    let mut file = open_of(state, run, check.as_str())?;
    let same = file.metadata()?.len() == log.size && Digest::of_reader(&file)? == log.digest;
    if !same {
        return Err(io::Error::other("it was changed after the run: its digest does not match"));
    }
    file.rewind()?;
    Ok(file.take(log.size))
}

/// All output of a run in declared order, to be read, which no record vouches for.
pub fn open_combined(state: &State, run: &RunId) -> io::Result<impl io::Read + use<>> {
    open_of(state, run, "verify")
}

/// The last `count` bytes of the output of a check.
pub fn read_tail(state: &State, run: &RunId, check: &CheckId, count: u64) -> io::Result<Vec<u8>> {
    let mut file = open_of(state, run, check.as_str())?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(count)))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How many bytes the files of a run's folder have, as far as anybody can say.
pub(super) fn size(state: &State, run: &str) -> u64 {
    let Ok(folder) = folder_of(state.folder(), run) else { return 0 };
    let sizes = names(&folder).unwrap_or_default().into_iter().filter_map(|name| {
        let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        u64::try_from(stat.st_size).ok().filter(|_| regular)
    });
    sizes.fold(0, u64::saturating_add)
}

/// Removes the folder of a run's logs. That it is not there is what was wanted.
pub(super) fn remove(state: &State, run: &str) -> io::Result<()> {
    // What a database that somebody prepared calls a run may lead anywhere; under such a name there never were any.
    if run.parse::<RunId>().is_err() {
        return Ok(());
    }
    remove_entry(open_folder(state.folder(), "logs")?, &state.path().join("logs"), run)
}

/// Removes what is in a folder under a name: a link as a link, a folder with all that is in it.
pub(super) fn remove_entry(parent: impl AsFd, path: &Path, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        // Of a folder; which of the two words is said differs between systems.
        Err(rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => match std::fs::remove_dir_all(path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
        Err(error) => Err(error.into()),
    }
}

/// Whether the combined log of a run is there, as a file.
pub(super) fn has_combined(state: &State, run: &str) -> io::Result<()> {
    open(folder_of(state.folder(), run)?, "verify").map(|_| ())
}
