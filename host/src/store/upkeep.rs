//! Keeping the store in order: what is no longer kept goes, what was left over goes, and what is wrong is said.
//!
//! Must not: remove what it does not know, what a run that is going on may be writing to, or a database that was set aside.

use super::aside::MARK;
use super::begun::{Census, settle};
use super::database::{Gone, Store};
use super::error::StoreError;
use super::logs;
use super::place::{DATABASE, State, names, open_folder};
use crate::model::Record;
use rustix::fs::{AtFlags, FileType};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

/// How long what might belong to a run that nobody can name is left alone, and half a memory of a tree.
const ALONE: Duration = Duration::from_hours(24);

/// Something in the state folder that no record and no run that is going on accounts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOver {
    /// Relative to the state folder.
    pub path: String,
    /// For people.
    pub why: &'static str,
}

/// What tidying came to.
#[derive(Debug, Default)]
pub struct Tidied {
    /// Runs that are not kept any longer.
    pub runs: Vec<Gone>,
    /// What was left over.
    pub left_over: Vec<LeftOver>,
    /// What could not be removed, with the reason.
    pub failed: Vec<String>,
    /// Databases that were set aside, which are only for people to remove.
    pub aside: Vec<String>,
}

/// What is found wrong, one line each, and how much was looked at.
#[derive(Debug, Default)]
pub struct Checked {
    /// For people.
    pub faults: Vec<String>,
    /// What nothing accounts for, as a run leaves it that was killed. It takes nothing from what is recorded.
    pub left_over: Vec<LeftOver>,
    /// How many records there are.
    pub records: usize,
    /// How many logs.
    pub logs: usize,
    /// Databases that were set aside.
    pub aside: Vec<String>,
}

/// Removes what is not kept any longer and what was left over, or only says what that is.
pub fn tidy(state: &State, dry: bool, waiting: &dyn Fn()) -> Result<Tidied, StoreError> {
    settle(state);
    let mut tidied = Tidied { aside: aside(state), ..Tidied::default() };
    let store = if dry { Store::read(state, waiting)? } else { Some(Store::open(state, waiting)?) };
    // Found before anything goes: logs of what goes now are no left-overs.
    tidied.left_over = left_over(state, store.as_ref())?;
    if let Some(store) = store {
        tidied.runs = if dry { store.expiring()? } else { store.expire()? };
    }
    if dry {
        return Ok(tidied);
    }
    for run in &tidied.runs {
        if let Err(error) = logs::remove(state, &run.run) {
            tidied.failed.push(format!("logs/{}: {error}", run.run));
        }
    }
    let mut gone = Vec::new();
    for left in std::mem::take(&mut tidied.left_over) {
        match remove(state, &left.path) {
            Ok(()) => gone.push(left),
            Err(error) => tidied.failed.push(format!("{}: {error}", left.path)),
        }
    }
    tidied.left_over = gone;
    Ok(tidied)
}

fn remove(state: &State, path: &str) -> io::Result<()> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let mut folder = open_folder(state.folder(), ".")?;
    let mut above = state.path().to_owned();
    for part in parts {
        folder = open_folder(&folder, part)?;
        above.push(part);
    }
    logs::remove_entry(folder, &above, name)
}

/// Holds everything in the store against what it should be.
pub fn check(state: &State, waiting: &dyn Fn()) -> Result<Checked, StoreError> {
    settle(state);
    let mut checked = Checked { aside: aside(state), ..Checked::default() };
    let store = match Store::read(state, waiting) {
        Ok(store) => store,
        Err(error @ (StoreError::Damaged(_) | StoreError::Foreign(_))) => {
            checked.faults.push(first_line(&error));
            return Ok(checked);
        }
        Err(error) => return Err(error),
    };
    checked.left_over = left_over(state, store.as_ref())?;
    let Some(store) = store else { return Ok(checked) };
    checked.faults.extend(store.integrity()?.into_iter().map(|line| format!("{}: {line}", DATABASE[0])));
    for run in store.names()? {
        match store.get(&run) {
            Ok(record) => {
                checked.records += 1;
                let mut faults = faults(state, &record, &mut checked.logs);
                faults.extend(store.beside(&record)?);
                if record.run.as_str() != run {
                    faults.push(format!("its record is that of run {}", record.run));
                }
                // What went while this was at it had every right to go.
                if !faults.is_empty() && store.has(&run)? {
                    checked.faults.extend(faults.into_iter().map(|fault| format!("run {run}: {fault}")));
                }
            }
            Err(StoreError::NoRun(_)) => {}
            Err(error @ (StoreError::Record { .. } | StoreError::Changed(_))) => {
                checked.faults.push(first_line(&error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(checked)
}

fn first_line(error: &StoreError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// What is wrong with a record by itself, and with its logs.
fn faults(state: &State, record: &Record, count: &mut usize) -> Vec<String> {
    let mut faults = Vec::new();
    let outcome = record.verdict.outcome;
    match (record.verdict_digest, record.verdict.digest()) {
        (Some(said), Ok(is)) if said != is => {
            faults.push("the digest of its verdict is that of another one".to_owned());
        }
        (Some(_), Err(error)) => faults.push(format!("its verdict has no canonical form: {error}")),
        (None, _) if outcome.exit_code() == 0 => faults.push(format!("it is {outcome} and has no verdict")),
        _ => {}
    }
    let mut any = false;
    for row in &record.rows {
        let Some(log) = &row.log else { continue };
        (any, *count) = (true, *count + 1);
        if let Err(error) = logs::open_log(state, &record.run, &row.id, log) {
            faults.push(format!("{}: {error}", log.path));
        }
    }
    if any && let Err(error) = logs::has_combined(state, record.run.as_str()) {
        faults.push(format!("logs/{}/verify.log: {error}", record.run));
    }
    faults
}

/// Databases that were set aside.
fn aside(state: &State) -> Vec<String> {
    let prefix = format!("{}{MARK}", DATABASE[0]);
    let mut found = state.names(&prefix).unwrap_or_default();
    found.retain(|name| name[prefix.len()..].bytes().all(|byte| byte.is_ascii_digit()));
    found
}

/// What nothing accounts for. In this order a run that begins or ends meanwhile is none of it: it says that it is there
/// before it makes a folder, and is recorded before it stops saying so.
fn left_over(state: &State, store: Option<&Store<'_>>) -> Result<Vec<LeftOver>, StoreError> {
    let mut found = Vec::new();
    let Ok(folder) = open_folder(state.folder(), "logs") else { return Ok(found) };
    let entries = names(&folder).unwrap_or_default();
    let census = Census::take(state);
    let recorded: BTreeSet<String> = store.map(Store::names).transpose()?.unwrap_or_default().into_iter().collect();
    let set_aside = !aside(state).is_empty();
    for name in entries {
        let alive = census.alive.iter().any(|label| label.run.as_str() == name);
        let path = format!("logs/{name}");
        if alive {
            continue;
        }
        let Ok(inside) = open_folder(&folder, name.as_str()) else {
            found.push(LeftOver { path, why: "this is no folder of logs" });
            continue;
        };
        if !recorded.contains(&name) {
            // Logs that a database which was set aside may speak of are not for us to remove.
            if !set_aside && (!census.unknown || rests(&inside)) {
                found.push(LeftOver { path, why: "no run is recorded that these logs are of" });
            }
            continue;
        }
        for entry in names(&inside).unwrap_or_default() {
            let file = rustix::fs::statat(&inside, entry.as_str(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory);
            let known = entry.strip_suffix(".log").or_else(|| entry.strip_suffix(".files"));
            if !(file && known.is_some()) {
                found.push(LeftOver { path: format!("{path}/{entry}"), why: "a run left this and is gone" });
            }
        }
    }
    for name in state.names(".new-").unwrap_or_default() {
        let stat = rustix::fs::statat(state.folder(), name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| rested(&stat)) {
            found.push(LeftOver { path: name, why: "this is half of what was to be kept of a tree" });
        }
    }
    Ok(found)
}

fn rests(folder: &std::os::fd::OwnedFd) -> bool {
    rustix::fs::fstat(folder).is_ok_and(|stat| rested(&stat))
}

/// Whether something was not changed for so long that nobody is at it.
fn rested(stat: &rustix::fs::Stat) -> bool {
    let changed = u64::try_from(stat.st_mtime).unwrap_or(0);
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .is_ok_and(|now| now.as_secs().saturating_sub(changed) > ALONE.as_secs())
}
