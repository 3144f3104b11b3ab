//! A check's configuration against the JSON Schema that its pack gives.
//!
//! A schema is a program by a stranger. It may not refer to anything outside itself, its patterns run in linear time,
//! and how much work it can ask for is estimated before it runs.

use super::error::clean;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The largest schema, as text. Real ones have a few kilobytes.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// How deep a schema or a configuration may nest. Validation recurses along both.
const MAX_DEPTH: usize = 64;

/// How many schemas may apply to one value, references followed. Two references to each other's doubles need thirty
/// lines for a billion.
const MAX_APPLIED: u64 = 4096;

/// Errors reported for one configuration.
const MAX_ERRORS: usize = 20;

/// Bytes a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What is wrong with a configuration, or with the schema itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaError {
    /// Where in the configuration, as a JSON pointer; empty for all of it.
    pub pointer: String,
    /// What is wrong, in plain words.
    pub message: String,
    /// The key that is not known, where that is what is wrong.
    pub unknown_key: Option<String>,
    /// Where a key is not known: the keys that are, sorted.
    pub known_keys: Vec<String>,
}

impl SchemaError {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let (pointer, message) = (pointer.into(), message.into());
        Self { pointer, message, unknown_key: None, known_keys: Vec::new() }
    }
}

/// Checks `config` against `schema`, the text of a JSON Schema.
pub fn validate_config(schema: &str, config: &Value) -> Result<(), Vec<SchemaError>> {
    let (schema, validator) =
        prepare(schema).map_err(|message| vec![SchemaError::new("", format!("the pack's schema {message}"))])?;
    if depth(config) > MAX_DEPTH {
        return Err(vec![SchemaError::new("", format!("it nests deeper than {MAX_DEPTH} levels"))]);
    }
    let errors: Vec<_> =
        validator.iter_errors(config).take(MAX_ERRORS).flat_map(|error| in_words(&schema, &error)).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that `schema` is one that configurations can be checked against. What is wrong begins with a verb.
pub fn check_schema(schema: &str) -> Result<(), String> {
    prepare(schema).map(|_| ())
}

fn prepare(schema: &str) -> Result<(Value, Validator), String> {
    if schema.len() > MAX_SCHEMA_BYTES {
        return Err(format!("has {} bytes, and may have {MAX_SCHEMA_BYTES}", schema.len()));
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| format!("is not JSON: {error}"))?;
    if depth(&schema) > MAX_DEPTH {
        return Err(format!("nests deeper than {MAX_DEPTH} levels"));
    }
    check_references(&schema)?;
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES))
        .build(&schema)
        .map_err(|error| format!("is not valid: {}", clean(&error.to_string(), 300)))?;
    Ok((schema, validator))
}

fn depth(value: &Value) -> usize {
    // The parser stops at 128 levels, so this recursion ends.
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Refuses references that leave the schema, that depend on how they were reached, or that make too much work.
fn check_references(schema: &Value) -> Result<(), String> {
    let mut weights = Weights { schema, known: HashMap::new() };
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => {
                if fields.contains_key("$dynamicRef") || fields.contains_key("$recursiveRef") {
                    return Err("uses `$dynamicRef` or `$recursiveRef`, which are not taken".to_owned());
                }
                if weights.of_fields(fields)? > MAX_APPLIED {
                    return Err("applies too many schemas to one value".to_owned());
                }
                pending.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

/// How many schemas apply to a value that a schema applies to.
struct Weights<'a> {
    schema: &'a Value,
    /// By reference; none while it is being worked out, so a circle is found.
    known: HashMap<&'a str, Option<u64>>,
}

impl<'a> Weights<'a> {
    fn of(&mut self, schema: &'a Value) -> Result<u64, String> {
        schema.as_object().map_or(Ok(1), |fields| self.of_fields(fields))
    }

    fn of_fields(&mut self, fields: &'a Map<String, Value>) -> Result<u64, String> {
        let mut weight = 1_u64;
        for (key, value) in fields {
            let part = match (key.as_str(), value) {
                ("$ref", Value::String(reference)) => self.of_reference(reference)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                    items.iter().try_fold(0_u64, |sum, item| Ok::<_, String>(sum.saturating_add(self.of(item)?)))?
                }
                ("not" | "if" | "then" | "else", value) => self.of(value)?,
                ("dependentSchemas" | "dependencies", Value::Object(map)) => {
                    map.values().try_fold(0_u64, |sum, item| Ok::<_, String>(sum.saturating_add(self.of(item)?)))?
                }
                _ => 0,
            };
            weight = weight.saturating_add(part);
        }
        Ok(weight)
    }

    fn of_reference(&mut self, reference: &'a str) -> Result<u64, String> {
        if !reference.starts_with('#') {
            return Err(format!("refers to `{}`: only references within it are taken", clean(reference, 100)));
        }
        match self.known.get(reference) {
            Some(Some(weight)) => return Ok(*weight),
            Some(None) => return Err(format!("refers to `{}` in a circle", clean(reference, 100))),
            None => {}
        }
        self.known.insert(reference, None);
        // A reference to an anchor or through escapes is not followed here; what it leads to is one schema of those
        // that are weighed one by one, and the compiler of the schema finds out whether it exists.
        let schema = self.schema;
        let weight = match schema.pointer(&reference[1..]) {
            Some(target) => self.of(target)?,
            None if reference.contains('/') => {
                return Err(format!("refers to `{}`, which it does not have", clean(reference, 100)));
            }
            None => return Err(format!("refers to `{}`: use a path such as `#/$defs/name`", clean(reference, 100))),
        };
        self.known.insert(reference, Some(weight));
        Ok(weight)
    }
}

fn in_words(schema: &Value, error: &ValidationError<'_>) -> Vec<SchemaError> {
    let pointer = error.instance_path().as_str().to_owned();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known_keys = known_keys(schema, error.schema_path().as_str());
            let of_key = |key: &String| SchemaError {
                pointer: pointer.clone(),
                message: format!("`{}` is not a key that this check knows", clean(key, 100)),
                unknown_key: Some(key.clone()),
                known_keys: known_keys.clone(),
            };
            unexpected.iter().take(MAX_ERRORS).map(of_key).collect()
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            vec![SchemaError::new(pointer, "it has none of the forms that this check takes")]
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            vec![SchemaError::new(pointer, "it has more than one of the forms that this check takes one of")]
        }
        ValidationErrorKind::FalseSchema => vec![SchemaError::new(pointer, "nothing is allowed here")],
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            vec![SchemaError::new(pointer, format!("`{}` is missing", clean(&name, 100)))]
        }
        _ => vec![SchemaError::new(pointer, clean(&error.to_string(), 300))],
    }
}

/// The keys beside an `additionalProperties` at this place of the schema.
fn known_keys(schema: &Value, schema_path: &str) -> Vec<String> {
    let parent = schema_path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties = schema.pointer(parent).and_then(|schema| schema.get("properties"));
    let mut keys: Vec<_> =
        properties.and_then(Value::as_object).map(|map| map.keys().cloned().collect()).unwrap_or_default();
    keys.sort();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(schema: &Value, config: &Value) -> Vec<String> {
        let errors = validate_config(&schema.to_string(), config).err().unwrap_or_default();
        errors.into_iter().map(|error| format!("{}: {}", error.pointer, error.message)).collect()
    }

    #[test]
    fn mistakes_are_named_where_they_are() {
        let schema = json!({
            "type": "object",
            "properties": {"max": {"type": "integer"}, "mode": {"enum": ["a", "b"]}},
            "required": ["max"],
            "additionalProperties": false,
        });
        assert!(messages(&schema, &json!({"max": 3})).is_empty());
        assert_eq!(messages(&schema, &json!({"mode": "a"})), [": `max` is missing"]);
        assert_eq!(messages(&schema, &json!({"max": "x"})), ["/max: \"x\" is not of type \"integer\""]);
        let errors = validate_config(&schema.to_string(), &json!({"max": 1, "mxa": 2})).unwrap_err();
        assert_eq!(errors[0].unknown_key.as_deref(), Some("mxa"));
        assert_eq!(errors[0].known_keys, ["max", "mode"]);
    }

    #[test]
    fn unknown_keys_behind_a_reference_know_their_neighbours() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "object", "properties": {"b": {}}, "additionalProperties": false}},
        });
        let errors = validate_config(&schema.to_string(), &json!({"a": {"c": 1}})).unwrap_err();
        assert_eq!((errors[0].pointer.as_str(), errors[0].known_keys.as_slice()), ("/a", ["b".to_owned()].as_slice()));
    }

    #[test]
    fn a_schema_gets_nothing_from_outside() {
        for reference in ["http://example.com/s.json", "file:///etc/passwd", "other.json", "https://json-schema.org/x"]
        {
            let found = messages(&json!({"properties": {"a": {"$ref": reference}}}), &json!({"a": 1}));
            assert!(found[0].contains("only references within it"), "{found:?}");
        }
        let found = messages(&json!({"$schema": "http://example.com/meta", "type": "object"}), &json!({}));
        assert!(found.len() <= 1, "whatever it means, nothing was fetched: {found:?}");
    }

    #[test]
    fn a_schema_cannot_keep_the_host_busy() {
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        assert!(messages(&circle, &json!({}))[0].contains("circle"));
        let itself = json!({"$ref": "#"});
        assert!(messages(&itself, &json!({}))[0].contains("circle"));
        let mut doubling = json!({"$ref": "#/$defs/0", "$defs": {"40": {"type": "string"}}});
        for n in 0..40 {
            let next = format!("#/$defs/{}", n + 1);
            doubling["$defs"][n.to_string()] = json!({"anyOf": [{"$ref": next}, {"$ref": next}]});
        }
        assert!(messages(&doubling, &json!({}))[0].contains("too many"));
        let backtracking = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let long = format!("{}b", "a".repeat(100_000));
        assert_eq!(messages(&backtracking, &json!({"a": long})).len(), 1);
        let huge = json!({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}});
        assert!(messages(&huge, &json!({"a": "b"}))[0].contains("not valid"));
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let large = format!("{{\"description\": \"{}\"}}", "x".repeat(MAX_SCHEMA_BYTES));
        assert!(validate_config(&large, &json!({})).unwrap_err()[0].message.contains("bytes"));
        let deep = format!("{}{}", "{\"not\":".repeat(100), "{}".to_owned() + &"}".repeat(100));
        assert!(validate_config(&deep, &json!({})).unwrap_err()[0].message.contains("deeper"));
        assert!(validate_config("{", &json!({})).unwrap_err()[0].message.contains("not JSON"));
        let mut config = json!(1);
        for _ in 0..70 {
            config = json!([config]);
        }
        assert!(validate_config("{}", &config).unwrap_err()[0].message.contains("deeper"));
    }

    #[test]
    fn trees_may_refer_to_themselves() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": false});
        assert!(messages(&tree, &json!({"child": {"child": {}}})).is_empty());
        assert_eq!(messages(&tree, &json!({"child": {"x": {}}})).len(), 1);
    }
}
