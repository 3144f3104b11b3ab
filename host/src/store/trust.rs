//! What the user disowned, beside the user's key: outside of every repository and cache, so that no restored store brings back
//! what was taken back.

use crate::model::{Digest, Record, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

const NAME: &str = "disowned.json";

/// The most that is read of it.
const MAX_BYTES: u64 = 16 << 20;

/// What no record may rest on that is served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// Raised to disown all that was recorded before: it is part of every identity.
    #[serde(default)]
    pub epoch: u64,
    /// Components of packs.
    #[serde(default)]
    pub packs: BTreeSet<Digest>,
    /// Engines, as records name them.
    #[serde(default)]
    pub engines: BTreeSet<String>,
    /// Runs.
    #[serde(default)]
    pub runs: BTreeSet<RunId>,
}

impl Trust {
    /// What is kept in the folder of the user's key. Nothing is disowned where nothing was said.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let file = match File::open(folder.join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    }

    /// Keeps it: all of it or nothing, and on disk.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        file.write_all(&bytes)?;
        file.as_file().sync_all()?;
        file.persist(folder.join(NAME))?;
        Ok(())
    }

    /// Whether a record rests on something of it.
    pub fn disowns(&self, record: &Record) -> bool {
        self.disowns_run(&record.run)
            || self.engines.contains(&record.engine)
            || record.packs.iter().any(|pack| self.packs.contains(&pack.digest))
    }

    /// Whether a run is disowned by its name.
    pub fn disowns_run(&self, run: &RunId) -> bool {
        self.runs.contains(run)
    }
}
