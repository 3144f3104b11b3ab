//! Evidence beside records: of each run its identity, and a seal that only this user's key makes.
//!
//! Must not: decide what is served. Whoever asks gets rows, and what proves them.

use super::database::Store;
use super::error::StoreError;
use super::logs;
use super::place::State;
use crate::model::{Digest, Encoder, Record, RunId};
use rusqlite::Transaction;
use rusqlite::params;

/// What the seal of a row is made for. Another layout gets another number.
const SEAL: &str = "probity 2026-12-03 evidence row v1";

/// What is kept of a run beside its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// The run.
    pub run: RunId,
    /// The outcome's word, as lists have it.
    pub outcome: String,
    /// The digest of the preimage, as the row has it.
    pub identity: Digest,
    /// What the identity is the digest of.
    pub preimage: Vec<u8>,
    seal: Vec<u8>,
}

/// What makes a record evidence: its identity's bytes and the key that seals them.
#[derive(Debug, Clone, Copy)]
pub struct Sealing<'a> {
    /// What the identity is the digest of.
    pub preimage: &'a [u8],
    /// The user's.
    pub key: &'a [u8; 32],
}

impl Deposit {
    /// Whether this user's key sealed the row, this identity and this very record together.
    pub fn is_sealed(&self, record: &Record, key: &[u8; 32]) -> bool {
        let Ok(digest) = record.digest() else { return false };
        let bound = record.run == self.run && record.identity == Some(self.identity);
        let Ok(found) = <[u8; 32]>::try_from(self.seal.as_slice()) else { return false };
        // Comparing hashes takes the same time wherever they differ.
        bound && seal(key, &self.identity, &self.preimage, &digest) == blake3::Hash::from_bytes(found)
    }
}

fn seal(key: &[u8; 32], identity: &Digest, preimage: &[u8], record: &Digest) -> blake3::Hash {
    let mut encoder = Encoder::new();
    encoder.digest(identity).bytes(preimage).digest(record);
    let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key(SEAL, key));
    hasher.update(encoder.as_bytes());
    hasher.finalize()
}

/// Writes the row of a record that was just inserted. Says how many rows that are.
pub(super) fn insert(transaction: &Transaction<'_>, record: &Record, sealing: Sealing<'_>) -> rusqlite::Result<usize> {
    let (Some(identity), Ok(digest)) = (record.identity, record.digest()) else { return Ok(0) };
    transaction.execute(
        "INSERT INTO evidence (seq, identity, preimage, seal) SELECT seq, ?2, ?3, ?4 FROM run WHERE id = ?1",
        params![
            record.run.as_str(),
            identity.to_string(),
            sealing.preimage,
            seal(sealing.key, &identity, sealing.preimage, &digest).as_bytes(),
        ],
    )
}

impl Store<'_> {
    /// What is kept of the runs of a scenario, the newest first.
    pub fn deposits(&self, scenario: &str) -> Result<Vec<Deposit>, StoreError> {
        // One of before this was kept has none, and is only looked at.
        if self.schema_version() < 3 {
            return Ok(Vec::new());
        }
        let rows: Vec<Option<Deposit>> = self.attempt(|connection| {
            let query = "SELECT run.id, run.outcome, identity, preimage, seal FROM evidence JOIN run USING (seq)
                WHERE run.scenario = ?1 ORDER BY seq DESC";
            let read = |row: &rusqlite::Row<'_>| {
                let (run, identity): (String, String) = (row.get(0)?, row.get(2)?);
                let (outcome, preimage, seal) = (row.get(1)?, row.get(3)?, row.get(4)?);
                let one = |run, identity| Deposit { run, outcome, identity, preimage, seal };
                // What has no name of a run or no digest is none of ours.
                Ok(run.parse().ok().zip(identity.parse().ok()).map(|(run, identity)| one(run, identity)))
            };
            connection.prepare(query)?.query_map([scenario], read)?.collect()
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Takes evidence back: the run is still on record, and answers for nothing any more.
    pub fn retire(&self, run: &RunId) -> Result<(), StoreError> {
        self.attempt(|connection| {
            let query = "DELETE FROM evidence WHERE seq = (SELECT seq FROM run WHERE id = ?1)";
            connection.execute(query, [run.as_str()]).map(|_| ())
        })
    }
}

/// Whether every log of a record is what the record says.
pub fn logs_hold(state: &State, record: &Record) -> Result<(), String> {
    for row in &record.rows {
        if let Some(log) = &row.log {
            logs::open_log(state, &record.run, &row.id, log).map_err(|error| format!("{}: {error}", log.path))?;
        }
    }
    Ok(())
}
