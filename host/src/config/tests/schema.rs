//! The schemas are what is checked in, and they are true: what the reader takes is in them, and the reverse.

use super::super::keys::{Default, Key, Kind, PROJECT, Table, USER};
use super::super::{Layer, User, load_user, parse, schema};
use super::good;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(super) fn validator(layer: Layer) -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema(layer)).unwrap()
}

/// A text as what a schema judges.
pub(super) fn json(text: &str) -> serde_json::Value {
    toml::from_str(text).unwrap()
}

/// A kind of table, and where one of it is.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) layer: Layer,
    /// Dotted keys of the table; empty for the top level.
    pub(super) path: Vec<&'static str>,
    pub(super) table: &'static Table,
}

impl Place {
    /// A text with one key in this table.
    pub(super) fn with(&self, key: &str, value: &str) -> String {
        let header = if self.path.is_empty() { String::new() } else { format!("[{}]\n", self.path.join(".")) };
        format!("{header}{key} = {value}\n")
    }

    /// The mistakes of a text of this file.
    pub(super) fn mistakes(&self, text: &str) -> Result<(), crate::config::ConfigError> {
        match self.layer {
            Layer::Project => parse("probity.toml", text.as_bytes(), &User::default()).map(drop),
            Layer::User => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("config.toml");
                std::fs::write(&path, text).unwrap();
                load_user(&path, "config.toml").map(drop)
            }
        }
    }

    fn knows(&self, key: &str) -> bool {
        match self.mistakes(&self.with(key, "7")) {
            Ok(()) => true,
            Err(error) => {
                let shown = error.render(crate::config::Colour::Off);
                let unknown = format!("error: unknown key `{key}`\n");
                let later = format!("error: `{key}` is not supported yet\n");
                let elsewhere = format!("error: `{key}` does not belong here\n");
                ![unknown, later, elsewhere].iter().any(|title| shown.contains(title))
            }
        }
    }
}

/// Every kind of table of both files.
pub(super) fn places() -> Vec<Place> {
    fn walk(layer: Layer, path: &[&'static str], table: &'static Table, places: &mut Vec<Place>) {
        places.push(Place { layer, path: path.to_vec(), table });
        for Key { name, kind, .. } in table.keys {
            match kind {
                Kind::Table(inner) => walk(layer, &[path, &[*name]].concat(), inner, places),
                Kind::Named(inner) => walk(layer, &[path, &[*name, "x"]].concat(), inner, places),
                _ => {}
            }
        }
    }
    let mut places = Vec::new();
    walk(Layer::Project, &[], &PROJECT, &mut places);
    walk(Layer::User, &[], &USER, &mut places);
    places
}

/// The sources of the reader.
fn sources() -> String {
    let mut files: Vec<_> =
        std::fs::read_dir(source("src/config")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.retain(|path| path.file_name().is_some_and(|name| name != "keys.rs" && name != "schema.rs"));
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// What stands in quotes in a text.
fn words(text: &str) -> BTreeSet<&str> {
    let word = |text: &&str| !text.is_empty() && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    text.split('"').filter(word).collect()
}

#[test]
fn what_is_checked_in_is_what_is_generated() {
    for (layer, path) in [(Layer::Project, "../docs/probity.schema.json"), (Layer::User, "../docs/user.schema.json")] {
        let generated = format!("{:#}\n", schema(layer));
        let kept = std::fs::read_to_string(source(path)).unwrap_or_default();
        let option = if layer == Layer::Project { "--schema" } else { "--schema=user" };
        assert!(kept == generated, "write it anew: `probity config {option} > {}`", path.trim_start_matches("../"));
    }
}

#[test]
fn the_schemas_are_schemas() {
    for layer in [Layer::Project, Layer::User] {
        assert!(jsonschema::draft202012::meta::is_valid(&schema(layer)));
    }
}

#[test]
fn the_lists_of_known_keys_are_those_of_the_schema() {
    let sources = sources();
    let mut lists: Vec<BTreeSet<&str>> = Vec::new();
    for (start, found) in sources.match_indices("known: &[") {
        let rest = &sources[start + found.len()..];
        lists.push(words(&rest[..rest.find(']').unwrap()]));
    }
    assert!(lists.len() >= 8, "{lists:?}");
    let tables: Vec<BTreeSet<&str>> =
        places().iter().map(|place| place.table.keys.iter().map(|key| key.name).collect()).collect();
    for list in &lists {
        assert!(tables.contains(list), "no table of config/keys.rs has the keys {list:?}");
    }
    for table in &tables {
        assert!(lists.contains(table), "no list of known keys in the reader is {table:?}");
    }
}

#[test]
fn the_reader_takes_each_key_of_the_schema_and_no_other() {
    let sources = sources();
    let words = words(&sources);
    for place in places() {
        let known: BTreeSet<&str> = place.table.keys.iter().map(|key| key.name).collect();
        for word in words.union(&known) {
            assert_eq!(place.knows(word), known.contains(word), "`{word}` in `[{}]`", place.path.join("."));
        }
    }
}

#[test]
fn what_the_schema_asks_for_the_reader_asks_for() {
    // A table with nothing in it, or with one thing too many, is refused by both.
    let asks = |table: &Table| !table.required.is_empty() || !table.one_of.is_empty();
    for place in places().iter().filter(|place| asks(place.table)) {
        let empty = format!("[{}]\n", place.path.join("."));
        assert!(place.mistakes(&empty).is_err(), "{empty}");
        assert!(!validator(place.layer).is_valid(&json(&empty)), "{empty}");
    }
    let both = "[checks.x]\ncommand = [\"a\"]\nuse = \"p/c\"\n";
    let alone =
        "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.x]\nuse = \"p/c\"\nenv = [\"A=b\"]\n";
    for text in [both, alone] {
        assert!(parse("probity.toml", text.as_bytes(), &User::default()).is_err(), "{text}");
        assert!(!validator(Layer::Project).is_valid(&json(text)), "{text}");
    }
}

#[test]
fn what_is_said_to_hold_where_nothing_is_written_does() {
    for place in places().iter().filter(|place| place.layer == Layer::Project) {
        for key in place.table.keys {
            let Default::Json(default) = key.default else { continue };
            assert!(serde_json::from_str::<serde_json::Value>(default).is_ok(), "{default}");
            let frame = match place.path.as_slice() {
                ["scenarios", "x"] => "[checks.a]\ncommand = [\"a\"]\n[scenarios.x]\nchecks = [\"a\"]\n",
                ["checks", "x"] if key.with == Some("use") => {
                    "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.x]\nuse = \"p/c\"\n"
                }
                ["checks", "x"] => "[checks.x]\ncommand = [\"a\"]\n",
                ["verify"] => "[verify]\ncommands = [[\"a\"]]\n",
                other => panic!("say here how a text ends that has only what must be in {other:?}"),
            };
            let mut without = good(frame);
            let written = good(&format!("{frame}{} = {default}\n", key.name));
            without.source = written.source.clone();
            assert_eq!(without, written, "{}", key.name);
        }
    }
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    let documents = std::fs::read_to_string(source("../docs/configuration.md")).unwrap();
    let mut texts: Vec<&str> =
        documents.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let own = std::fs::read_to_string(source("../probity.toml")).unwrap();
    texts.push(&own);
    texts.extend([
        "[verify]\ntimeout = \"\"\ncommands = []\nenv = [\"A=\"]\n",
        "[checks.a]\ncommand = [\"a\"]\ntimeout = \"1h2m3s4ms5us6\u{b5}s7\u{3bc}s8ns\"\n[checks.b]\ncommand = [\"a\"]\ntimeout = \"+.5s\"\n",
        "[checks.a]\nuse = \"p/c\"\nlimits = { memory = 7, output = \"1 GiB\", wall = \"5.s\" }\nconfig = { a = [1.5] }\n",
    ]);
    for text in texts {
        let errors: Vec<String> =
            validator(Layer::Project).iter_errors(&json(text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{text}\n{errors:?}");
    }
    for text in ["", "walls = \"\"", "walls = \"strict\"\n[limits]\nmemory = \"1MiB\"\nfuel = 9\n"] {
        assert!(validator(Layer::User).is_valid(&json(text)), "{text}");
    }
}

#[test]
fn what_is_unknown_or_of_the_wrong_kind_the_schema_refuses() {
    for text in
        ["verfy = 1", "[checks.A]\ncommand = [\"a\"]", "[checks.a]\ncommand = []", "[checks.a]\ncommand = \"a\""]
    {
        assert!(!validator(Layer::Project).is_valid(&json(text)), "{text}");
    }
    for text in ["walls = \"loose\"", "[limits]\nfuel = 0", "[limits]\nwall = \"5\"", "[limits]\nmemory = \"5MB\""] {
        assert!(!validator(Layer::User).is_valid(&json(text)), "{text}");
    }
}
