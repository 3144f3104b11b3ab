//! The JSON Schema (draft 2020-12) of the files, for editors.
//!
//! It says of each key what it holds and whether it may be there. It may take more than the reader does, which knows
//! what values mean, and must never refuse what the reader takes.

use super::keys::{Default, Kind, PROJECT, Table, USER};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// `probity.toml`.
    Project,
    /// The user's file.
    User,
}

/// A time as Go writes it. What is empty is not set.
const DURATION: &str = "^(\\+?(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h))+)?$";

const SIZE: &str = "^([0-9]+ ?(B|KiB|MiB|GiB))?$";

/// What names of packs, checks and scenarios are made of.
const NAME: &str = "^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$";

/// The schema of a file.
pub fn schema(layer: Layer) -> Value {
    let (title, top) = match layer {
        Layer::Project => ("probity.toml", &PROJECT),
        Layer::User => ("The user's file of Probity", &USER),
    };
    let mut schema = table(top);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    Value::Object(schema)
}

fn table(table: &Table) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut together: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for key in table.keys {
        let mut value = kind(key.kind);
        value.insert("description".to_owned(), json!(key.about));
        // What is no JSON is a slip in a table of constants, which a test finds.
        if let Default::Json(text) = key.default
            && let Ok(default) = serde_json::from_str(text)
        {
            value.insert("default".to_owned(), default);
        }
        if table.required.contains(&key.name) {
            value.insert(if matches!(key.kind, Kind::Text) { "minLength" } else { "minItems" }.to_owned(), json!(1));
        }
        properties.insert(key.name.to_owned(), Value::Object(value));
        if let Some(other) = key.with {
            together.entry(other).or_default().push(set(key.name));
        }
    }
    let mut schema = object(json!({
        "type": "object",
        "description": table.about,
        "properties": properties,
        "additionalProperties": false,
    }));
    if !table.required.is_empty() {
        schema.insert("required".to_owned(), json!(table.required));
    }
    if !together.is_empty() {
        let together = together.into_iter().map(|(other, keys)| json!({ "if": { "anyOf": keys }, "then": set(other) }));
        schema.insert("allOf".to_owned(), together.collect());
    }
    if !table.one_of.is_empty() {
        schema.insert("oneOf".to_owned(), table.one_of.iter().map(|name| set(name)).collect());
    }
    schema
}

/// That a key is set: written, and not empty.
fn set(name: &str) -> Value {
    json!({ "required": [name], "properties": { name: { "not": { "enum": ["", []] } } } })
}

fn kind(kind: Kind) -> Map<String, Value> {
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    object(match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "enum": words.iter().chain(&[""]).collect::<Vec<_>>() }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count => json!({ "type": "integer", "minimum": 1 }),
        Kind::UpTo(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Kind::Size => json!({ "type": ["integer", "string"], "minimum": 1, "pattern": SIZE }),
        Kind::Duration => json!({ "type": "string", "pattern": DURATION }),
        Kind::Texts | Kind::Command => texts(),
        Kind::Codes => json!({ "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 255 } }),
        Kind::Variables => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*=" } })
        }
        Kind::Commands => {
            json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" }, "minItems": 1 } })
        }
        Kind::Pairs => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Words(words) => {
            json!({ "type": "object", "additionalProperties": { "enum": words.iter().chain(&[""]).collect::<Vec<_>>() } })
        }
        Kind::Options => json!({ "type": "object" }),
        Kind::Table(keys) => return table(keys),
        Kind::Named(keys) => json!({
            "type": "object",
            "propertyNames": { "pattern": NAME },
            "additionalProperties": table(keys),
        }),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
