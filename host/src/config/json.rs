//! A table of options as JSON, with the place of each value.

use super::diagnostic::{Diagnostic, quote};
use super::reader::{At, Reader, Silent, Span, entries, to_i64, too_large, wrong};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeFloat, DeTable, DeValue};

/// Options, and where each is written: by JSON pointer.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) values: Map<String, Value>,
    pub(super) spans: BTreeMap<String, Span>,
}

// No options at all are the options of a check, too.
impl Silent for Options {}

/// Bytes of all pointers together. Each repeats the names above it, so that a small file could ask for gigabytes;
/// options that people write take a thousandth of this.
const MAX_POINTERS: usize = 4 * 1024 * 1024;

/// Reads the value of `config`.
pub(super) fn options(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<Options>> {
    let DeValue::Table(table) = value.get_ref() else {
        let diagnostic = wrong(name, "a table", value.get_ref(), value.span());
        reader.report(diagnostic.help(format!("write `{name} = {{ key = value }}`")));
        return None;
    };
    let mut walk = Walk { reader, spans: BTreeMap::from([(String::new(), value.span())]), left: MAX_POINTERS };
    let values = walk.object("", table);
    if walk.left == 0 {
        let diagnostic = Diagnostic::new(value.span(), format!("{}: there are too many options", quote(name)));
        walk.reader.report(diagnostic.help("keep data in a file of the tree, which the check can read"));
        return None;
    }
    let spans = walk.spans;
    Some(At { value: Options { values: values?, spans }, span: value.span() })
}

struct Walk<'a> {
    reader: &'a mut Reader,
    spans: BTreeMap<String, Span>,
    /// What is left of [`MAX_POINTERS`]; at zero nothing more is read.
    left: usize,
}

impl Walk<'_> {
    /// The parser bounds how deep tables and lists are nested, and with them this recursion.
    fn object(&mut self, pointer: &str, table: &DeTable<'_>) -> Option<Map<String, Value>> {
        let mut fields = Some(Map::new());
        for (key, value) in entries(table) {
            let name = key.get_ref().as_ref();
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (self.value(name, pointer, value), &mut fields) {
                (Some(value), Some(fields)) => {
                    fields.insert(name.to_owned(), value);
                }
                // Reading goes on, so that every mistake is reported.
                _ => fields = None,
            }
        }
        fields
    }

    fn array(&mut self, name: &str, pointer: &str, items: &[Spanned<DeValue<'_>>]) -> Option<Vec<Value>> {
        let items = items.iter().enumerate();
        let items: Vec<_> = items.map(|(index, item)| self.value(name, format!("{pointer}/{index}"), item)).collect();
        items.into_iter().collect()
    }

    fn value(&mut self, name: &str, pointer: String, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        self.left = self.left.saturating_sub(pointer.len());
        if self.left == 0 {
            return None;
        }
        let span = value.span();
        let json = match value.get_ref() {
            DeValue::String(text) => Ok(Value::String(text.as_ref().to_owned())),
            DeValue::Boolean(value) => Ok(Value::Bool(*value)),
            DeValue::Integer(number) => {
                to_i64(number).map(|number| Value::Number(number.into())).ok_or_else(|| too_large(name, span.clone()))
            }
            DeValue::Float(float) => finite(float).map(Value::Number).ok_or_else(|| {
                Diagnostic::new(span.clone(), format!("{}: the number is not finite", quote(name)))
                    .label("JSON has no such number")
                    .help("options reach a check as JSON; write a finite number or a string")
            }),
            DeValue::Datetime(_) => {
                Err(Diagnostic::new(span.clone(), format!("{}: options cannot be dates or times", quote(name)))
                    .label("JSON has no dates")
                    .help("options reach a check as JSON; write a string"))
            }
            DeValue::Array(items) => Ok(Value::Array(self.array(name, &pointer, items)?)),
            DeValue::Table(table) => Ok(Value::Object(self.object(&pointer, table)?)),
        };
        self.spans.insert(pointer, span);
        json.map_err(|mistake| self.reader.report(mistake)).ok()
    }
}

fn finite(float: &DeFloat<'_>) -> Option<Number> {
    Number::from_f64(float.as_str().parse().ok()?)
}
