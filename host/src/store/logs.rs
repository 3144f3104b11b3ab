//! Logs: `logs/<run>/<check>.log`, one file a check, and `logs/<run>/verify.log`, all of them in declared order.

use crate::model::{CheckId, Digest, Log, RunId};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
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

    fn relative(&self, name: &str) -> String {
        format!("logs/{}/{name}.log", self.run)
    }

    /// A new file for the output of a check, to be appended to.
    pub fn start(&self, check: &CheckId) -> io::Result<File> {
        let path = self.state.join(self.relative(check.as_str()));
        OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
    }

    /// What became of the file: its size and digest, once it is on disk.
    pub fn finish(&self, check: &CheckId) -> io::Result<Log> {
        let path = self.relative(check.as_str());
        let file = File::open(self.state.join(&path))?;
        file.sync_data()?;
        let size = file.metadata()?.len();
        Ok(Log { path, size, digest: Digest::of_reader(file)? })
    }

    /// Writes `verify.log`: each check that left a log, under a line with its name.
    pub fn combine(&self, checks: &[CheckId]) -> io::Result<()> {
        let path = self.state.join(self.relative("verify"));
        let mut combined = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        for check in checks {
            let Ok(mut part) = File::open(self.state.join(self.relative(check.as_str()))) else { continue };
            writeln!(combined, "==> {check} <==")?;
            io::copy(&mut part, &mut combined)?;
            writeln!(combined)?;
        }
        combined.sync_data()
    }
}

/// The contents of a log that a record names.
pub fn read_log(state: &Path, log: &Log) -> io::Result<Vec<u8>> {
    std::fs::read(state.join(&log.path))
}
