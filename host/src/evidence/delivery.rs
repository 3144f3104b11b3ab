//! The stored record of a commit, a tree and a scenario, handed over as it is: nothing is run for it, and nothing is decided
//! anew but whether it is still about what is there.

use super::answer::is_here;
use crate::model::{Capability, CapabilityName, Input, Record, Withheld};
use crate::store::{Deposit, State, Store, StoreError, Trust, logs_hold};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The scenario.
    pub scenario: &'a str,
    /// The digest of the tree.
    pub tree: crate::model::Digest,
    /// The commit it is based on.
    pub commit: Option<&'a str>,
    /// The commit that it would be compared with.
    pub base: Option<&'a str>,
    /// The digest of the specification.
    pub spec: Option<crate::model::Digest>,
    /// The tree's path and the host's name, as records have them.
    pub place: (&'a str, &'a str),
    /// The key that rows are sealed with.
    pub key: &'a [u8; 32],
    /// What the user disowned.
    pub trust: &'a Trust,
}

/// What there is.
#[derive(Debug)]
pub enum Delivery {
    /// It is about what is there.
    Current(Box<Record>),
    /// It is about something else by now, and answers for nothing any more.
    Stale(Box<Record>, Vec<Input>),
    /// There is none.
    Missing,
}

/// The newest record that fits, which is taken back where something moved.
pub fn delivery(store: &Store<'_>, state: &State, wanted: &Wanted<'_>) -> Result<Delivery, StoreError> {
    let deposits = store.deposits(wanted.scenario)?;
    let fits = |deposit: &Deposit| {
        let record = store.get(deposit.run.as_str()).ok()?;
        let subject = &record.verdict.subject;
        let fits = subject.tree == wanted.tree && subject.commit.as_deref() == wanted.commit;
        (fits && deposit.is_sealed(&record, wanted.key) && logs_hold(state, &record).is_ok()).then_some(record)
    };
    // What says something here comes before what somebody else's place came to.
    let mut elsewhere = None;
    let here = deposits.iter().filter_map(fits).find_map(|record| {
        if says_something_at(&record, wanted.place) {
            return Some(record);
        }
        elsewhere.get_or_insert(record);
        None
    });
    let Some(record) = here.or(elsewhere) else { return Ok(Delivery::Missing) };
    let moved = moved(store, &record, wanted)?;
    if moved.is_empty() {
        return Ok(Delivery::Current(Box::new(record)));
    }
    store.retire(&record.run)?;
    Ok(Delivery::Stale(Box::new(record), moved))
}

/// Whether a record says something at a place: what is green and held back from nobody does so everywhere.
fn says_something_at(record: &Record, place: (&str, &str)) -> bool {
    let reserved = |withheld: &Withheld| !matches!(withheld, Withheld::NotApplicable);
    (record.verdict.outcome.is_green() && !record.withheld.iter().any(reserved)) || is_here(record, place)
}

fn moved(store: &Store<'_>, record: &Record, wanted: &Wanted<'_>) -> Result<Vec<Input>, StoreError> {
    let mut moved = Vec::new();
    let mut differ = |name: &str, then: Option<String>, now: Option<String>| {
        if then != now {
            moved.push(Input { name: name.to_owned(), then, now });
        }
    };
    let subject = &record.verdict.subject;
    differ("base", subject.base.clone(), wanted.base.map(str::to_owned));
    differ("spec", subject.spec.map(|spec| spec.digest.to_string()), wanted.spec.map(|spec| spec.to_string()));
    if !says_something_at(record, wanted.place) {
        let place = |(tree, host): (&str, &str)| Some(format!("{tree} on {host}"));
        differ("place", place((&record.tree, &record.host)), place(wanted.place));
    }
    let known = last_probed(store, wanted.place.1, record.capabilities.iter().map(|then| &then.name).collect())?;
    for then in &record.capabilities {
        let now = known.get(&then.name).map_or(then.state, |(now, _)| now.state);
        differ(&format!("capability {}", then.name), Some(then.state.to_string()), Some(now.to_string()));
    }
    if wanted.trust.disowns(record) {
        differ("trust", None, Some("disowned".to_owned()));
    }
    Ok(moved)
}

/// What was found out last of each of these capabilities on this host, and when. Records are read as long as one is not known.
pub fn last_probed(
    store: &Store<'_>,
    host: &str,
    mut wanted: BTreeSet<&CapabilityName>,
) -> Result<BTreeMap<CapabilityName, (Capability, String)>, StoreError> {
    let mut known = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(known);
    }
    for run in store.names()?.iter().rev() {
        let Ok(record) = store.get(run) else { continue };
        for capability in record.capabilities.iter().filter(|_| record.host == host) {
            if wanted.remove(&capability.name) {
                known.insert(capability.name.clone(), (capability.clone(), record.started.clone()));
            }
        }
        if wanted.is_empty() {
            break;
        }
    }
    Ok(known)
}
