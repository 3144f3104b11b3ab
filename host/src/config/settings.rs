//! What holds, value by value, and where each comes from: a file with its line, or what stands where nothing is
//! written.
//!
//! The values of variables are left out here, since what is shown of a configuration comes from here and they may be
//! secret. Must not judge anything: it is given a configuration without a mistake.

use super::keys::{Default, Key, Kind, PROJECT, Table, USER};
use super::reader::{Span, entries, to_i64};
use super::resolve::DEFAULT;
use super::{Body, Config, Layer, Limits, User, capability};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One value that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name, with the names of the tables around it: `checks.fmt.timeout`.
    pub key: String,
    /// What it is. Of variables only the names.
    pub value: Value,
    /// Whether the values of variables were left out.
    pub names_only: bool,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, from 1.
    Line(Layer, usize),
    /// Nobody says otherwise.
    Default,
}

/// All that holds: what the project's file says, with what the user's file says beneath it, and what follows from that;
/// then what only the user's file says. `engine` has the limits of a check of a pack for which neither says anything.
pub fn settings(config: &Config, user: &User, engine: &Limits) -> Vec<Setting> {
    let user_text = user.source.as_ref().map_or("", |source| source.text.as_str());
    let mut listing = Listing::new(user_text, Layer::User);
    listing.top(&USER);
    let (mut beneath, mut ceilings): (Vec<_>, Vec<_>) =
        listing.settings.into_iter().partition(|setting| setting.key.starts_with("verify."));
    // Defaults are those of the project, where neither says anything.
    beneath.retain(|setting| setting.origin != Origin::Default);
    let limits = missing_limits(engine, user, &ceilings);
    let mut project = Listing { limits, beneath, ..Listing::new(&config.source.text, Layer::Project) };
    project.top(&PROJECT);
    project.derived(config, user_text);
    project.settings.append(&mut ceilings);
    project.settings
}

/// What holds for each limit that a check does not set: the engine's, or the user's where that is less.
fn missing_limits(engine: &Limits, user: &User, ceilings: &[Setting]) -> Vec<Setting> {
    let count = |limit: Option<u64>| limit.map(|limit| (u128::from(limit), json!(limit)));
    let size = |limit: Option<u64>| limit.map(|limit| (u128::from(limit), json!(size(limit))));
    let time = |limit: Option<Duration>| limit.map(|limit| (limit.as_nanos(), json!(duration(limit))));
    let most = &user.limits;
    let mut missing = Vec::new();
    for (name, own, most) in [
        ("fuel", count(engine.fuel), count(most.fuel)),
        ("memory", size(engine.memory), size(most.memory)),
        ("wall", time(engine.wall), time(most.wall)),
        ("output", size(engine.output), size(most.output)),
        ("findings", count(engine.findings), count(most.findings)),
        ("handles", count(engine.handles), count(most.handles)),
    ] {
        let Some((own, value)) = own else { continue };
        let written = ceilings.iter().find(|ceiling| ceiling.key == format!("limits.{name}"));
        let (value, origin) = match (most, written) {
            (Some((most, value)), Some(written)) if most < own => (value, written.origin),
            _ => (value, Origin::Default),
        };
        missing.push(Setting::new(name.to_owned(), value, origin));
    }
    missing
}

impl Setting {
    fn new(key: String, value: Value, origin: Origin) -> Self {
        Self { key, value, names_only: false, origin }
    }
}

struct Listing<'a> {
    text: &'a str,
    layer: Layer,
    /// Where each line begins.
    lines: Vec<usize>,
    /// What holds for limits that are not written.
    limits: Vec<Setting>,
    /// What another file says where this one says nothing.
    beneath: Vec<Setting>,
    settings: Vec<Setting>,
    /// The tables under a name that are written: `checks.fmt`.
    tables: BTreeSet<String>,
}

impl<'a> Listing<'a> {
    fn new(text: &'a str, layer: Layer) -> Self {
        let (limits, beneath, settings) = (Vec::new(), Vec::new(), Vec::new());
        Self { text, layer, lines: starts(text), limits, beneath, settings, tables: BTreeSet::new() }
    }

    fn top(&mut self, keys: &Table) {
        // It has been read before, so there are no mistakes.
        let (table, _) = DeTable::parse_recoverable(self.text);
        self.table("", table.get_ref(), keys);
    }

    /// What a table says, and what its other keys are then, in the order of the keys.
    fn table(&mut self, path: &str, table: &DeTable<'_>, keys: &Table) {
        let written = entries(table);
        let find = |name: &str| written.iter().find(|(key, value)| key.get_ref().as_ref() == name && !is_empty(value));
        for key in keys.keys {
            let name = format!("{path}{}", key.name);
            match find(key.name) {
                Some((place, value)) => self.written(&name, key, &place.span(), value),
                None if key.with.is_none_or(|other| find(other).is_some()) => self.unwritten(&name, key),
                None => {}
            }
        }
    }

    fn written(&mut self, name: &str, key: &Key, place: &Span, value: &Spanned<DeValue<'_>>) {
        match (key.kind, value.get_ref()) {
            (Kind::Table(keys), DeValue::Table(table)) => self.table(&format!("{name}."), table, keys),
            (Kind::Named(keys), DeValue::Table(tables)) => {
                for (item, value) in entries(tables) {
                    if let DeValue::Table(table) = value.get_ref() {
                        let path = format!("{name}.{}", item.get_ref());
                        self.table(&format!("{path}."), table, keys);
                        self.tables.insert(path);
                    }
                }
            }
            (kind, value) => {
                let names_only = matches!(kind, Kind::Variables);
                let value = if names_only { names(value) } else { json(value) };
                let setting = Setting::new(name.to_owned(), value, self.at(place));
                self.settings.push(Setting { names_only, ..setting });
            }
        }
    }

    fn unwritten(&mut self, name: &str, key: &Key) {
        if let Some(setting) = self.beneath.iter().find(|setting| setting.key == name) {
            return self.settings.push(setting.clone());
        }
        let below = format!("{name}.");
        match (key.kind, key.default) {
            (Kind::Table(keys), _) if self.beneath.iter().any(|setting| setting.key.starts_with(&below)) => {
                self.table(&below, &DeTable::new(), keys);
            }
            // A table that belongs to another key is there with that key, and has what its own keys are then.
            (Kind::Table(keys), _) if key.with.is_some() => self.table(&format!("{name}."), &DeTable::new(), keys),
            (_, Default::Json(text)) => {
                let value = serde_json::from_str(text).unwrap_or_default();
                self.settings.push(Setting::new(name.to_owned(), value, Origin::Default));
            }
            (_, Default::Engine) => {
                let limit = self.limits.iter().find(|limit| limit.key == key.name).cloned();
                self.settings.extend(limit.map(|limit| Setting { key: name.to_owned(), ..limit }));
            }
            (_, Default::Nothing) => {}
        }
    }

    /// What follows from what is written elsewhere: checks and a scenario without tables of their own.
    fn derived(&mut self, config: &Config, user: &str) {
        let user = starts(user);
        for check in &config.checks {
            let path = format!("checks.{}", check.id);
            if let Body::Command(command) = &check.body
                && !self.tables.contains(&path)
            {
                let lines = match check.layer {
                    Layer::Project => &self.lines,
                    Layer::User => &user,
                };
                let origin = Origin::Line(check.layer, line(lines, &check.span));
                self.push(format!("{path}.command"), json!(command.argv), origin);
                self.push(format!("{path}.blocking"), json!(check.blocking), Origin::Default);
                self.push(format!("{path}.inherit-env"), json!(command.inherit_env), Origin::Default);
            }
        }
        for capability in config.capabilities.values() {
            let key = format!("capabilities.{}.timeout", capability.name);
            let written = self.settings.iter().any(|setting| setting.key == key);
            if let Some(timeout) = capability::waits(&capability.probe).filter(|_| !written) {
                self.push(key, json!(duration(timeout)), Origin::Default);
            }
        }
        for scenario in &config.scenarios {
            let path = format!("scenarios.{}", scenario.name);
            if !self.tables.contains(&path) {
                let checks: Vec<&str> = scenario.checks.iter().map(crate::model::CheckId::as_str).collect();
                self.push(format!("{path}.checks"), json!(checks), Origin::Default);
                self.push(format!("{path}.fail-fast"), json!(scenario.fail_fast), Origin::Default);
            }
            if scenario.name.as_str() != DEFAULT {
                continue;
            }
            // Where it has none of its own, what `[verify]` says holds, from whichever file.
            let verify = |name: &str| self.settings.iter().find(|setting| setting.key == format!("verify.{name}"));
            let budget = verify("timeout").filter(|_| scenario.timeout.is_some()).cloned();
            let jobs = verify("jobs").cloned();
            let jobs = jobs.unwrap_or_else(|| Setting::new(String::new(), json!(scenario.jobs), Origin::Default));
            for (name, beneath) in [("timeout", budget), ("jobs", Some(jobs))] {
                let key = format!("{path}.{name}");
                let own = self.settings.iter().position(|setting| setting.key == key);
                match (own, beneath) {
                    (Some(own), Some(beneath)) if matches!(self.settings[own].origin, Origin::Default) => {
                        self.settings[own] = Setting { key, ..beneath };
                    }
                    (None, Some(beneath)) => self.settings.push(Setting { key, ..beneath }),
                    _ => {}
                }
            }
        }
    }

    fn push(&mut self, key: String, value: Value, origin: Origin) {
        self.settings.push(Setting::new(key, value, origin));
    }

    fn at(&self, span: &Span) -> Origin {
        Origin::Line(self.layer, line(&self.lines, span))
    }
}

/// Where each line of a text begins.
fn starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The line of a place, from 1.
fn line(starts: &[usize], span: &Span) -> usize {
    starts.partition_point(|start| *start <= span.start)
}

/// Whether it says nothing, so that its key is not set.
fn is_empty(value: &Spanned<DeValue<'_>>) -> bool {
    let value = value.get_ref();
    value.as_str().is_some_and(str::is_empty) || value.as_array().is_some_and(|items| items.is_empty())
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(to_i64(number)),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().ok()),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let fields = entries(table).into_iter();
            Value::Object(
                fields.map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect::<Map<_, _>>(),
            )
        }
    }
}

/// The names of `NAME=value`.
fn names(value: &DeValue<'_>) -> Value {
    let items = value.as_array().into_iter().flatten().filter_map(|item| item.get_ref().as_str());
    items.map(|item| item.split('=').next().unwrap_or_default()).collect()
}

/// Bytes in the largest unit that has no rest, as they may be written.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    whole.map_or_else(|| format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// A time in the largest unit that has no rest, as it may be written.
fn duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(scale, _)| nanos > 0 && nanos.is_multiple_of(*scale));
    whole.map_or_else(|| format!("{nanos}ns"), |(scale, unit)| format!("{}{unit}", nanos / scale))
}

#[cfg(test)]
mod tests {
    use super::super::duration::parse_duration;
    use super::super::size::parse_size;
    use super::*;

    #[test]
    fn what_is_shown_may_be_written() {
        for bytes in [1, 1023, 1024, 1536, 512 << 20, 3 << 30, u64::MAX] {
            assert_eq!(parse_size(&size(bytes)), Ok(bytes));
        }
        for nanos in [1, 999, 1_000, 1_500_000, 60_000_000_000, 90_000_000_000, 7_200_000_000_000, 3_600_000_000_001] {
            let time = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&duration(time)), Ok(time));
        }
        assert_eq!((size(512 << 20).as_str(), duration(Duration::from_mins(5)).as_str()), ("512MiB", "5m"));
    }
}
