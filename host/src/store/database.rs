//! The database: one row for each run, written in one transaction when everything it rests on is on disk.

use super::aside::set_aside;
use super::copy::copy;
use super::error::{PATIENCE, StoreError, explain};
use super::evidence::{self, Sealing};
use super::journal::Journal;
use super::logs;
use super::place::State;
use super::retention::{self, Kept, Why};
use super::schema::{Kin, MIGRATIONS, SCHEMA, kin};
use crate::model::{Digest, Record, RunId, hex, to_canonical};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long SQLite waits before somebody is told that it does.
const UNTOLD: Duration = Duration::from_millis(500);

/// How long it rests where it did not wait: there are kinds of being busy that it does not wait for.
const REST: Duration = Duration::from_millis(5);

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

/// Which runs to list; what is none is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this scenario.
    pub scenario: Option<String>,
    /// That came to this.
    pub outcome: Option<String>,
    /// That began at this time or later: RFC 3339 in UTC, or the beginning of one.
    pub since: Option<String>,
    /// In the folder with this path.
    pub tree: Option<String>,
}

impl Filter {
    /// Whether all are asked for.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self { scenario: None, outcome: None, since: None, tree: None })
    }
}

/// Whether a run was only about what changed since a base.
const CHANGED_ONLY: &str = "ifnull(json_extract(whole, '$.verdict.changed_only'), 0)";

/// The database of one repository.
pub struct Store<'n> {
    connection: Connection,
    path: PathBuf,
    /// Which file it is.
    id: Option<(u64, u64)>,
    /// Where what was found in its place was put.
    aside: Option<PathBuf>,
    /// The version of one that is newer than this program.
    newer: Option<u32>,
    /// The version of one that is not.
    version: u32,
    /// Says that somebody else is waited for.
    waiting: &'n dyn Fn(),
    /// Holds what is read in its place. The connection comes first, so that it is closed before this goes.
    _copy: Option<tempfile::TempDir>,
}

/// What went when a run was recorded, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The run.
    pub run: String,
    /// When it began.
    pub started: String,
    /// Its scenario.
    pub scenario: String,
    /// The outcome's word.
    pub outcome: String,
    /// Why it goes.
    pub why: Why,
    /// Bytes of its logs.
    pub log_bytes: u64,
}

impl<'n> Store<'n> {
    /// Opens the database of a state folder to write to it; makes it, and brings an older one up to date. One that is
    /// damaged or not ours is set aside, and a newer one is refused. `waiting` says that another program is waited for.
    pub fn open(state: &State, waiting: &'n dyn Fn()) -> Result<Self, StoreError> {
        match Self::ready(state, waiting) {
            Err(StoreError::Damaged(path) | StoreError::Foreign(path)) => {
                let still = || {
                    let again = Self::ready(state, waiting);
                    matches!(again, Err(StoreError::Damaged(_) | StoreError::Foreign(_)))
                };
                let aside = set_aside(state, still).map_err(|source| StoreError::SetAside { path, source })?;
                Ok(Self { aside, ..Self::ready(state, waiting)? })
            }
            other => other,
        }
    }

    fn ready(state: &State, waiting: &'n dyn Fn()) -> Result<Self, StoreError> {
        let mut store =
            Self::connect(state, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE, waiting)?;
        // Nothing in it is changed before it is known to be ours.
        let found = match store.attempt(kin)? {
            Kin::Empty => 0,
            Kin::Ours(found) => found,
            Kin::Newer(found) => return Err(store.too_new(found)),
            Kin::Foreign => return Err(StoreError::Foreign(store.path)),
        };
        let journal = Journal::of(state);
        store.attempt(|connection| {
            connection.pragma_update(None, "journal_mode", journal.name())?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
            connection.pragma_update(None, "synchronous", "full")
        })?;
        if found < SCHEMA {
            store.migrate()?;
        }
        store.version = SCHEMA;
        store.id = state.database_id();
        Ok(store)
    }

    /// Opens it to look only. None where there is none yet. A newer one is read as far as that goes.
    pub fn read(state: &State, waiting: &'n dyn Fn()) -> Result<Option<Self>, StoreError> {
        match Self::look(state, waiting) {
            // To read a log ahead takes memory that is shared through a file beside it. Who cannot make that reads a copy.
            Err(refused @ (StoreError::ReadOnly(_) | StoreError::Full(_))) => {
                let path = state.database()?;
                let copied = copy(state).map_err(|error| {
                    tracing::debug!(%error, "the database cannot be copied");
                    refused
                })?;
                let read =
                    State::at(copied.path()).map_err(StoreError::from).and_then(|copy| Self::look(&copy, waiting));
                Ok(read?.map(|store| Self { path, _copy: Some(copied), ..store }))
            }
            read => read,
        }
    }

    fn look(state: &State, waiting: &'n dyn Fn()) -> Result<Option<Self>, StoreError> {
        let path = state.database()?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) => return Err(super::PlaceError::Unreadable(path).into()),
        }
        let mut store = Self::connect(state, OpenFlags::SQLITE_OPEN_READ_WRITE, waiting)
            .or_else(|_| Self::connect(state, OpenFlags::SQLITE_OPEN_READ_ONLY, waiting))?;
        store.attempt(|connection| connection.pragma_update(None, "query_only", true))?;
        match store.attempt(kin)? {
            // An empty file is a database that nothing was written to yet.
            Kin::Empty => return Ok(None),
            // What is not in an older one yet is not asked for.
            Kin::Ours(found) => store.version = found,
            Kin::Newer(found) => store.newer = Some(found),
            Kin::Foreign => return Err(StoreError::Foreign(store.path)),
        }
        Ok(Some(store))
    }

    fn connect(state: &State, flags: OpenFlags, waiting: &'n dyn Fn()) -> Result<Self, StoreError> {
        let path = state.database()?;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| explain(&path, error))?;
        let store = Self { connection, path, id: None, aside: None, newer: None, version: 0, waiting, _copy: None };
        store.attempt(|connection| {
            connection.busy_timeout(UNTOLD)?;
            // A database that somebody prepared must not run code of its own through ours.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            // What is beside one that turns out not to be ours stays as it is.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(())
        })?;
        Ok(store)
    }

    /// Tries until nobody else is at it, or patience ends. An action that is busy has changed nothing.
    pub(super) fn attempt<T>(&self, action: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let clock = Instant::now();
        loop {
            let error = match action(&self.connection) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let busy = matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
            if !busy || clock.elapsed() >= PATIENCE {
                let error = explain(&self.path, error);
                return Err(match (self.newer, error) {
                    (Some(found), StoreError::Sqlite { .. }) => self.too_new(found),
                    (_, error) => error,
                });
            }
            if clock.elapsed() >= UNTOLD {
                (self.waiting)();
            }
            std::thread::sleep(REST);
        }
    }

    fn too_new(&self, found: u32) -> StoreError {
        StoreError::Newer { path: self.path.clone(), found, known: SCHEMA }
    }

    fn migrate(&self) -> Result<(), StoreError> {
        self.attempt(|connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            // Another process may have been here between the look and the lock.
            let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            for step in MIGRATIONS.iter().skip(found as usize) {
                transaction.execute_batch(step)?;
            }
            transaction.pragma_update(None, "user_version", SCHEMA.max(found))?;
            transaction.commit()
        })
    }

    /// Where the database was put that was found in its place, if one was that is damaged or not ours.
    pub fn set_aside(&self) -> Option<&Path> {
        self.aside.as_deref()
    }

    /// The version of its schema; 0 of a newer one.
    pub(super) fn schema_version(&self) -> u32 {
        self.version
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was written by a newer Probity, so that there may be more in it than is shown.
    pub fn is_newer(&self) -> bool {
        self.newer.is_some()
    }

    /// Whether the file that was opened is still the one that others would open.
    pub fn is_in_place(&self, state: &State) -> bool {
        self.id.is_some() && self.id == state.database_id()
    }

    /// Records a run: all of it, in one transaction, and what is not kept any longer goes with it. Then its logs go.
    /// With a sealing, the record is evidence.
    pub fn record(&self, state: &State, record: &Record, sealing: Option<Sealing<'_>>) -> Result<(), StoreError> {
        for run in self.insert(record, sealing, logs::size(state, record.run.as_str()))? {
            // What stays is found as left over.
            if let Err(error) = logs::remove(state, &run.run) {
                tracing::debug!(run = run.run, %error, "logs cannot be removed");
            }
        }
        Ok(())
    }

    /// Records a run that ended before it could do so itself, if nobody else did.
    pub fn record_abandoned(&self, state: &State, record: &Record) -> Result<(), StoreError> {
        if self.has(record.run.as_str())? {
            return Ok(());
        }
        match self.record(state, record, None) {
            // Two may do so at once: the second finds the name taken, which is what it wanted.
            Err(StoreError::Sqlite { source, .. })
                if source.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
            {
                Ok(())
            }
            recorded => recorded,
        }
    }

    /// Whether there is a record of the run with exactly this name.
    pub(super) fn has(&self, run: &str) -> Result<bool, StoreError> {
        self.attempt(|connection| connection.prepare("SELECT 1 FROM run WHERE id = ?1")?.exists([run]))
    }

    fn insert(&self, record: &Record, sealing: Option<Sealing<'_>>, log_bytes: u64) -> Result<Vec<Gone>, StoreError> {
        let bytes = to_canonical(record)?;
        let digest = record.digest()?.to_string();
        let gone = self.attempt(|connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let inserted_run = transaction.execute(
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
            )?;
            // Of no run at all: this one would be taken for older than they are, and would go at once.
            let seq = transaction.last_insert_rowid();
            transaction.execute("DELETE FROM kept WHERE seq >= ?1", [seq])?;
            transaction.execute("DELETE FROM evidence WHERE seq >= ?1", [seq])?;
            let inserted = inserted_run + transaction.execute(
                "INSERT INTO kept (seq, started, scenario, verdict, scoped, log_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    seq,
                    record.started,
                    record.verdict.scenario.as_str(),
                    record.verdict_digest.is_some(),
                    record.verdict.is_scoped(),
                    i64::try_from(log_bytes).unwrap_or(i64::MAX),
                ],
            )?;
            let sealed = sealing.map_or(Ok(1), |sealing| evidence::insert(&transaction, record, sealing))?;
            // A table that somebody else made may swallow rows.
            if inserted + sealed != 3 {
                return Ok(None);
            }
            let gone = expire(&transaction)?;
            transaction.commit()?;
            Ok(Some(gone))
        })?;
        gone.ok_or_else(|| StoreError::Damaged(self.path.clone()))
    }

    /// What is not kept any longer, without removing it.
    pub(super) fn expiring(&self) -> Result<Vec<Gone>, StoreError> {
        Ok(self.attempt(expiring)?.into_iter().filter_map(|(_, gone)| gone).collect())
    }

    /// Removes what is not kept any longer. The logs of it are still to be removed.
    pub(super) fn expire(&self) -> Result<Vec<Gone>, StoreError> {
        self.attempt(|connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let gone = expire(&transaction)?;
            transaction.commit()?;
            Ok(gone)
        })
    }

    /// The names of all runs, the oldest first.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        self.attempt(|connection| {
            connection.prepare("SELECT id FROM run ORDER BY seq")?.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Where what is kept beside a record, for lists, is not what the record says.
    pub(super) fn beside(&self, record: &Record) -> Result<Option<String>, StoreError> {
        let found: Option<(String, String, String, Option<String>)> = self.attempt(|connection| {
            let query = "SELECT started, scenario, outcome, verdict_digest FROM run WHERE id = ?1";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            connection.query_row(query, [record.run.as_str()], row).optional()
        })?;
        let says = (
            record.started.clone(),
            record.verdict.scenario.as_str().to_owned(),
            record.verdict.outcome.word().to_owned(),
            record.verdict_digest.map(|digest| digest.to_string()),
        );
        Ok(found
            .filter(|found| *found != says)
            .map(|_| "lists show another start, scenario, outcome or verdict".to_owned()))
    }

    /// What SQLite finds wrong with the file.
    pub(super) fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut found: Vec<String> = self.attempt(|connection| {
            connection.prepare("PRAGMA integrity_check")?.query_map([], |row| row.get(0))?.collect()
        })?;
        found.retain(|line| line != "ok");
        Ok(found)
    }

    /// The newest runs first, at most `limit`.
    pub fn list(&self, limit: u32, filter: &Filter) -> Result<Vec<Summary>, StoreError> {
        let Filter { scenario, outcome, since, tree } = filter;
        let condition =
            "(?2 IS NULL OR scenario = ?2) AND (?3 IS NULL OR outcome = ?3) AND (?4 IS NULL OR started >= ?4)
            AND (?5 IS NULL OR json_extract(whole, '$.tree') = ?5)";
        self.summaries(condition, params![limit, scenario, outcome, since, tree])
    }

    /// The newest run of a scenario, if a tree is given of that one, of which nothing was left out by whoever asked for
    /// it. A scoped run, or one of only what changed, never takes its place, however much newer it is.
    pub fn last_full(&self, scenario: &str, tree: Option<Digest>) -> Result<Option<Summary>, StoreError> {
        let full = format!(
            "scenario = ?2 AND whole IS NOT NULL AND NOT {SCOPED} AND NOT {CHANGED_ONLY}
            AND (?3 IS NULL OR json_extract(whole, '$.verdict.subject.tree') = ?3)"
        );
        let tree = tree.map(|tree| tree.to_string());
        Ok(self.summaries(&full, params![1, scenario, tree])?.into_iter().next())
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

/// What is not kept any longer.
fn expiring(connection: &Connection) -> rusqlite::Result<Vec<(i64, Option<Gone>)>> {
    let query = "SELECT seq, started, scenario, verdict, scoped, log_bytes FROM kept ORDER BY seq";
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Kept {
            seq: row.get(0)?,
            started: row.get(1)?,
            scenario: row.get(2)?,
            verdict: row.get(3)?,
            scoped: row.get(4)?,
            log_bytes: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
        })
    };
    let kept: Vec<Kept> = connection.prepare(query)?.query_map([], row)?.collect::<rusqlite::Result<_>>()?;
    let gone = |(kept, why): (&Kept, Why)| {
        let query = "SELECT id, started, scenario, outcome FROM run WHERE seq = ?1";
        let log_bytes = kept.log_bytes;
        let gone = connection.query_row(query, [kept.seq], |row| {
            let (run, started, scenario, outcome) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Gone { run, started, scenario, outcome, why, log_bytes })
        });
        Ok((kept.seq, gone.optional()?))
    };
    retention::goes(&kept).into_iter().map(gone).collect()
}

fn expire(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<Gone>> {
    let gone = expiring(transaction)?;
    for (seq, _) in &gone {
        transaction.execute("DELETE FROM run WHERE seq = ?1", [seq])?;
        transaction.execute("DELETE FROM kept WHERE seq = ?1", [seq])?;
        transaction.execute("DELETE FROM evidence WHERE seq = ?1", [seq])?;
    }
    Ok(gone.into_iter().filter_map(|(_, gone)| gone).collect())
}

/// A new name for a run: 48 random bits.
pub fn new_run_id() -> io::Result<RunId> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    hex(&bytes).parse().map_err(io::Error::other)
}
