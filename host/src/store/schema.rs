//! The schema of the database, and whether a database has it to the letter: in one that somebody else made, what is
//! written may turn into something else.

use rusqlite::Connection;

/// The version of the schema.
pub(super) const SCHEMA: u32 = 3;

/// Each step takes the schema from the version of its index to the next one. Steps are only ever added.
pub(super) const MIGRATIONS: [&str; SCHEMA as usize] = [
    "
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
",
    // What retention asks for after each run, in a page or two beside the records. Of older ones nobody knows how large
    // their logs are, and none counts as scoped: too much is kept rather than too little.
    "
    CREATE TABLE kept (
        seq INTEGER PRIMARY KEY,
        started TEXT NOT NULL,
        scenario TEXT NOT NULL,
        verdict INTEGER NOT NULL,
        scoped INTEGER NOT NULL,
        log_bytes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO kept SELECT seq, started, scenario, verdict_digest IS NOT NULL, 0, 0 FROM run;
",
    // What makes a record evidence. Those of before this was kept answer for nothing.
    "
    CREATE TABLE evidence (
        seq INTEGER PRIMARY KEY,
        identity TEXT NOT NULL,
        preimage BLOB NOT NULL,
        seal BLOB NOT NULL
    ) STRICT;
",
];

/// What a database is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kin {
    /// Nothing is in it yet.
    Empty,
    /// It has the schema of this version to the letter.
    Ours(u32),
    /// It has a table of runs and a later version.
    Newer(u32),
    /// Somebody else made it, or changed it.
    Foreign,
}

/// What a database is, by what is in it. It is not changed.
pub(super) fn kin(connection: &Connection) -> rusqlite::Result<Kin> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let schema = schema(connection)?;
    let Ok(found) = u32::try_from(found) else { return Ok(Kin::Foreign) };
    if found == 0 {
        return Ok(if schema.is_empty() { Kin::Empty } else { Kin::Foreign });
    }
    if found > SCHEMA {
        let runs = schema.iter().any(|line| line.starts_with("table run "));
        return Ok(if runs { Kin::Newer(found) } else { Kin::Foreign });
    }
    Ok(if schema == *ours(found)? { Kin::Ours(found) } else { Kin::Foreign })
}

fn schema(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
    connection.prepare(all)?.query_map([], |row| row.get(0))?.collect()
}

/// What the steps up to a version make, sorted.
fn ours(version: u32) -> rusqlite::Result<Vec<String>> {
    // Making it takes as long as all the rest of opening a database. What these lines are is what its test says.
    if version == SCHEMA {
        let table = |step: usize, name: &str| {
            let text = MIGRATIONS[step].split(';').find(|text| text.contains(&format!(" {name} ")));
            text.unwrap_or_default().trim().to_owned()
        };
        return Ok(vec![
            format!("index run_verdict {}", table(0, "run_verdict")),
            "index sqlite_autoindex_run_1 ".to_owned(),
            format!("table evidence {}", table(2, "evidence")),
            format!("table kept {}", table(1, "kept")),
            format!("table run {}", table(0, "run")),
        ]);
    }
    made(version)
}

fn made(version: u32) -> rusqlite::Result<Vec<String>> {
    let memory = Connection::open_in_memory()?;
    MIGRATIONS.iter().take(version as usize).try_for_each(|step| memory.execute_batch(step))?;
    schema(&memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_against_a_database_is_what_the_steps_make() {
        assert_eq!(ours(SCHEMA).unwrap(), made(SCHEMA).unwrap());
        assert_eq!(ours(1).unwrap(), made(1).unwrap());
        assert_ne!(ours(1).unwrap(), ours(SCHEMA).unwrap());
    }
}
