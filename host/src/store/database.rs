//! The database: one row for each run, written in one transaction when everything it rests on is on disk.

use crate::model::{CanonicalError, Record, RunId, hex, to_canonical};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a writer waits for another one. A transaction is a few milliseconds long; whoever holds the database
/// for longer is stuck or is no Probity.
const PATIENCE: Duration = Duration::from_secs(5);

/// The version of the schema.
const SCHEMA: u32 = 1;

/// Each step takes the schema from the version of its index to the next one. Steps are only ever added.
const MIGRATIONS: [&str; SCHEMA as usize] = ["
    CREATE TABLE run (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        started TEXT NOT NULL,
        scenario TEXT NOT NULL,
        outcome TEXT NOT NULL,
        verdict_digest TEXT,
        record_digest TEXT NOT NULL,
        record BLOB NOT NULL
    ) STRICT;
    CREATE INDEX run_verdict ON run (verdict_digest);
"];

/// Why the store cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It was written by a later version.
    #[error("{} was written by a newer Probity (schema {found}, this one knows {known})\nhelp: update Probity; nothing in it was touched", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Somebody else holds it.
    #[error("{} has been locked by another process for {} seconds\nhelp: end the program that holds it, then try again", .0.display(), PATIENCE.as_secs())]
    Locked(PathBuf),
    /// It may not be written to.
    #[error("{} cannot be written to\nhelp: give this user write access to the file and its folder", .0.display())]
    ReadOnly(PathBuf),
    /// It may not even be looked at.
    #[error("{} cannot be read by this user\nhelp: it belongs to whoever ran `probity verify` here first", .0.display())]
    Unreadable(PathBuf),
    /// It is no database of ours.
    #[error("{} is damaged or is no database\nhelp: move it away to start a new one; its logs stay readable", .0.display())]
    Damaged(PathBuf),
    /// The disk is full.
    #[error("no space is left for {}\nhelp: free some space; what is recorded is still there", .0.display())]
    Full(PathBuf),
    /// Anything else that SQLite says.
    #[error("cannot use {}: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What it says.
        #[source]
        source: rusqlite::Error,
    },
    /// A record has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A stored record does not read.
    #[error("the record of run {run} cannot be read: {source}")]
    Record {
        /// The run.
        run: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A stored record is not what was recorded.
    #[error("the record of run {0} was changed after it was written: its digest does not match")]
    Changed(String),
    /// No run has this name.
    #[error("there is no run `{0}`\nhelp: `probity log` lists the recorded runs")]
    NoRun(String),
    /// Several runs begin so.
    #[error("`{0}` is the beginning of several runs\nhelp: give more of its digits")]
    Ambiguous(String),
}

/// What a list of runs shows.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Summary {
    /// The run.
    pub run: String,
    /// RFC 3339.
    pub started: String,
    /// The scenario.
    pub scenario: String,
    /// The outcome's word.
    pub outcome: String,
    /// Of its verdict.
    pub verdict_digest: Option<String>,
    /// Whether less ran than the scenario asks for, so that it is no gate.
    pub scoped: bool,
    /// Whether it was only about what changed since a base.
    pub changed_only: bool,
    /// Why the scenario does not apply, where a person declared so.
    pub not_applicable: Option<String>,
    /// The digest of the specification that it was held against, where there was one.
    pub spec: Option<String>,
    /// The commit of what was verified, where there was one.
    pub commit: Option<String>,
    /// Whether it differed from that. None outside version control.
    pub dirty: Option<bool>,
}

/// Whether less ran than the scenario asks for: of a record that is in `whole`, or is damaged.
const SCOPED: &str = "(whole IS NOT NULL AND EXISTS (
    SELECT 1 FROM json_each(whole, '$.verdict.plan')
    WHERE json_extract(value, '$.deselected') IN ('revision', 'only', 'skip')))";

/// Whether a run was only about what changed since a base.
const CHANGED_ONLY: &str = "ifnull(json_extract(whole, '$.verdict.changed_only'), 0)";

/// The database of one repository.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the database of a state folder to write to it; makes it, and brings an older one up to date.
    pub fn open(state: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut store = Self::connect(state, flags)?;
        store.attempt(|connection| {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")
        })?;
        store.migrate()?;
        store.refuse_foreign()?;
        Ok(store)
    }

    /// Opens it to look only. None where there is none yet.
    pub fn read(state: &Path) -> Result<Option<Self>, StoreError> {
        let path = state.join("state.db");
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) => return Err(StoreError::Unreadable(path)),
        }
        let store = Self::connect(state, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| Self::connect(state, OpenFlags::SQLITE_OPEN_READ_ONLY))?;
        let found = store.version()?;
        store.refuse_newer(found)?;
        // An empty file is a database that nothing was written to yet.
        if found == 0 {
            return Ok(None);
        }
        store.refuse_foreign()?;
        Ok(Some(store))
    }

    fn connect(state: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let path = state.join("state.db");
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| explain(&path, error))?;
        let store = Self { connection, path };
        store.attempt(|connection| {
            connection.busy_timeout(PATIENCE)?;
            // A database that somebody prepared must not run code of its own through ours.
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            connection.pragma_update(None, "foreign_keys", true)
        })?;
        Ok(store)
    }

    fn attempt<T>(&self, action: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        action(&self.connection).map_err(|error| explain(&self.path, error))
    }

    fn version(&self) -> Result<u32, StoreError> {
        self.attempt(|connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0)))
    }

    fn refuse_newer(&self, found: u32) -> Result<(), StoreError> {
        if found > SCHEMA {
            return Err(StoreError::Newer { path: self.path.clone(), found, known: SCHEMA });
        }
        Ok(())
    }

    /// Refuses a database whose schema is not ours to the letter: whoever made it may have it keep or show what they like.
    fn refuse_foreign(&self) -> Result<(), StoreError> {
        let schema = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let all = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
            connection.prepare(all)?.query_map([], |row| row.get(0))?.collect()
        };
        let ours = Connection::open_in_memory()
            .and_then(|memory| {
                MIGRATIONS.iter().try_for_each(|step| memory.execute_batch(step))?;
                schema(&memory)
            })
            .map_err(|error| explain(&self.path, error))?;
        if self.attempt(schema)? == ours { Ok(()) } else { Err(StoreError::Damaged(self.path.clone())) }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let found = self.version()?;
        self.refuse_newer(found)?;
        if found == SCHEMA {
            return Ok(());
        }
        let path = self.path.clone();
        let explain = |error| explain(&path, error);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        // Another process may have been here between the look and the lock.
        let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(explain)?;
        for step in MIGRATIONS.iter().skip(found as usize) {
            transaction.execute_batch(step).map_err(explain)?;
        }
        transaction.pragma_update(None, "user_version", SCHEMA).map_err(explain)?;
        transaction.commit().map_err(explain)
    }

    /// Records a run: all of it, in one transaction.
    pub fn record(&mut self, record: &Record) -> Result<(), StoreError> {
        let bytes = to_canonical(record)?;
        let digest = record.digest()?.to_string();
        let inserted = self.attempt(|connection| {
            connection.execute(
                "INSERT INTO run (id, started, scenario, outcome, verdict_digest, record_digest, record)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    record.run.as_str(),
                    record.started,
                    record.verdict.scenario.as_str(),
                    record.verdict.outcome.word(),
                    record.verdict_digest.map(|digest| digest.to_string()),
                    digest,
                    bytes,
                ],
            )
        })?;
        // A table that somebody else made may swallow rows.
        if inserted == 1 { Ok(()) } else { Err(StoreError::Damaged(self.path.clone())) }
    }

    /// The newest runs first, at most `limit`.
    pub fn list(&self, limit: u32) -> Result<Vec<Summary>, StoreError> {
        self.summaries("true", params![limit])
    }

    /// The newest run of a scenario of which nothing was left out by whoever asked for it. A scoped run, or one of only what
    /// changed, never takes its place, however much newer it is.
    pub fn last_full(&self, scenario: &str) -> Result<Option<Summary>, StoreError> {
        let full = format!("scenario = ?2 AND whole IS NOT NULL AND NOT {SCOPED} AND NOT {CHANGED_ONLY}");
        Ok(self.summaries(&full, params![1, scenario])?.into_iter().next())
    }

    /// Those of which the condition holds, the newest first; the first of the values says how many at most.
    fn summaries(&self, condition: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Summary>, StoreError> {
        self.attempt(|connection| {
            // A record that is damaged is listed by what is beside it.
            let query = format!(
                "SELECT id, started, scenario, outcome, verdict_digest, {SCOPED},
                    json_extract(whole, '$.verdict.not_applicable'), json_extract(whole, '$.verdict.subject.spec.digest'),
                    json_extract(whole, '$.verdict.subject.commit'), json_extract(whole, '$.dirty'), {CHANGED_ONLY}
                FROM (SELECT *, iif(json_valid(CAST(record AS TEXT)), CAST(record AS TEXT), NULL) AS whole FROM run)
                WHERE {condition} ORDER BY seq DESC LIMIT ?1"
            );
            connection
                .prepare(&query)?
                .query_map(values, |row| {
                    Ok(Summary {
                        run: row.get(0)?,
                        started: row.get(1)?,
                        scenario: row.get(2)?,
                        outcome: row.get(3)?,
                        verdict_digest: row.get(4)?,
                        scoped: row.get(5)?,
                        not_applicable: row.get(6)?,
                        spec: row.get(7)?,
                        commit: row.get(8)?,
                        dirty: row.get(9)?,
                        changed_only: row.get(10)?,
                    })
                })?
                .collect()
        })
    }

    /// The record of the run whose name is `name` or begins so; `latest` is the newest one.
    pub fn get(&self, name: &str) -> Result<Record, StoreError> {
        let found: Vec<(String, String, Vec<u8>)> = self.attempt(|connection| {
            let columns = "SELECT id, record_digest, record FROM run";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            if name == "latest" {
                let query = format!("{columns} ORDER BY seq DESC LIMIT 1");
                return Ok(connection.query_row(&query, [], read).optional()?.into_iter().collect());
            }
            let query = format!("{columns} WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2");
            connection.prepare(&query)?.query_map([name], read)?.collect()
        })?;
        let [(run, digest, bytes)] = &found[..] else {
            let error = if found.is_empty() || name.is_empty() { StoreError::NoRun } else { StoreError::Ambiguous };
            return Err(error(name.to_owned()));
        };
        let record: Record =
            serde_json::from_slice(bytes).map_err(|source| StoreError::Record { run: run.clone(), source })?;
        if record.digest()?.to_string() != *digest || to_canonical(&record)? != *bytes {
            return Err(StoreError::Changed(run.clone()));
        }
        Ok(record)
    }
}

fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(path),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => StoreError::ReadOnly(path),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged(path),
        Some(ErrorCode::DiskFull) => StoreError::Full(path),
        _ => StoreError::Sqlite { path, source: error },
    }
}

/// A new name for a run: 48 random bits.
pub fn new_run_id() -> std::io::Result<RunId> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    hex(&bytes).parse().map_err(std::io::Error::other)
}
