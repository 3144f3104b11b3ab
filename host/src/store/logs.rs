//! Logs: `logs/<run>/<check>.log`, one file a check, and `logs/<run>/verify.log`, all of them in declared order.

use crate::model::{CheckId, Concealer, Digest, Log, RunId, Secrets};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The logs of one run.
#[derive(Debug)]
pub struct Logs {
    state: PathBuf,
    run: RunId,
}

impl Logs {
    /// Makes the folder of a run's logs.
    pub fn create(state: &Path, run: &RunId) -> io::Result<Self> {
        std::fs::create_dir(state.join("logs").join(run.as_str()))?;
        Ok(Self { state: state.to_owned(), run: run.clone() })
    }

    /// The folder they are in.
    pub fn folder(&self) -> PathBuf {
        self.state.join("logs").join(self.run.as_str())
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
        if secrets.is_empty() {
            return self.named(check);
        }
        let file = tempfile::tempfile_in(self.folder())?;
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::APPEND)?;
        Ok(file)
    }

    fn named(&self, check: &CheckId) -> io::Result<File> {
        let path = self.state.join(self.relative(check.as_str()));
        OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
    }

    /// Writes a list of files for a check beside its log, and returns its path.
    pub fn list(&self, check: &CheckId, contents: &[u8]) -> io::Result<String> {
        let path = self.folder().join(format!("{check}.files"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(contents)?;
        path.into_os_string().into_string().map_err(|_| io::Error::other("the path of the state folder is no text"))
    }

    /// What became of a file that was started: its size and digest, once it is on disk without any secret. By its handle,
    /// since a command may have put something else in its place.
    pub fn finish(&self, check: &CheckId, mut file: File, secrets: &Secrets) -> io::Result<Log> {
        if !secrets.is_empty() {
            let mut kept = self.named(check)?;
            // What a straggler writes meanwhile is not part of it, however much that is.
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(0))?;
            conceal(file.take(size), &mut kept, secrets)?;
            file = kept;
        }
        file.sync_data()?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        Ok(Log { path: self.relative(check.as_str()), size, digest: Digest::of_reader(file.take(size))? })
    }

    /// Writes `verify.log`: what each of these logs was when its check had ended, under a line with the check's name.
    pub fn combine<'a>(&self, logs: impl Iterator<Item = (&'a CheckId, &'a Log)>) -> io::Result<()> {
        let path = self.state.join(self.relative("verify"));
        let mut combined = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        for (check, log) in logs {
            let Ok(part) = open(&self.state, &self.run, check.as_str()) else { continue };
            writeln!(combined, "==> {check} <==")?;
            io::copy(&mut part.take(log.size), &mut combined)?;
            writeln!(combined)?;
        }
        combined.sync_data()
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

/// Opens a log of a run for reading: a regular file, and no link, whatever was put in its place.
fn open(state: &Path, run: &RunId, name: &str) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let path = state.join("logs").join(run.as_str()).join(format!("{name}.log"));
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The output of a check of a run, if it is still what the record says. Its place follows from the names, whatever the
/// record may claim.
pub fn read_log(state: &Path, run: &RunId, check: &CheckId, log: &Log) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than it should have tells that it grew.
    open(state, run, check.as_str())?.take(log.size.saturating_add(1)).read_to_end(&mut bytes)?;
    if Digest::of(&bytes) == log.digest {
        Ok(bytes)
    } else {
        Err(io::Error::other("it was changed after the run: its digest does not match"))
    }
}

/// All output of a run in declared order, which no record vouches for.
pub fn read_combined(state: &Path, run: &RunId) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(state, run, "verify")?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last `count` bytes of the output of a check.
pub fn read_tail(state: &Path, run: &RunId, check: &CheckId, count: u64) -> io::Result<Vec<u8>> {
    let mut file = open(state, run, check.as_str())?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(count)))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}
