//! `limits` of a check and `[limits]` of the user's file: what is written, and what it means.
//!
//! Must not know the limits that hold where nothing is written: those are the engine's.

use super::Limits;
use super::diagnostic::Diagnostic;
use super::reader::{At, Keys, Reader, Silent, Span, entries, wrong};
use super::resolve::duration;
use super::size::parse_size;
use toml::Spanned;
use toml::de::DeValue;

/// `limits` of a check, and `[limits]` of the user's file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileLimits {
    pub(super) fuel: Option<At<i64>>,
    pub(super) memory: Option<At<FileSize>>,
    pub(super) wall: Option<At<String>>,
    pub(super) output: Option<At<FileSize>>,
    pub(super) findings: Option<At<i64>>,
    pub(super) handles: Option<At<i64>>,
}

impl Silent for FileLimits {}

/// A number of bytes, as a number or as a text with a unit.
#[derive(Debug, Clone)]
pub(super) enum FileSize {
    Bytes(i64),
    Text(String),
}

const LIMITS: Keys = Keys {
    table: "`limits`",
    known: &["fuel", "memory", "wall", "output", "findings", "handles"],
    later: &[],
    elsewhere: &[],
};

pub(super) fn read(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<FileLimits>> {
    let DeValue::Table(table) = value.get_ref() else {
        let diagnostic = wrong(name, "a table", value.get_ref(), value.span());
        reader.report(diagnostic.help("write for example `limits = { fuel = 1_000_000_000, memory = \"64MiB\" }`"));
        return None;
    };
    let mut limits = FileLimits::default();
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "fuel" => limits.fuel = count(reader, name, value),
            name @ "findings" => limits.findings = count(reader, name, value),
            name @ "handles" => limits.handles = count(reader, name, value),
            name @ "memory" => limits.memory = read_size(reader, name, value),
            name @ "output" => limits.output = read_size(reader, name, value),
            name @ "wall" => {
                let wall = reader.string(name, value, Some("write for example `wall = \"1m\"`"));
                limits.wall = wall.filter(|wall| !wall.value.is_empty());
            }
            _ => reader.unknown(key, &LIMITS),
        }
    }
    Some(At { value: limits, span: value.span() })
}

fn count(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<i64>> {
    match value.get_ref() {
        DeValue::Integer(number) => reader.integer(name, number, value.span()),
        other => {
            reader.report(wrong(name, "an integer", other, value.span()));
            None
        }
    }
}

fn read_size(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<FileSize>> {
    let span = value.span();
    match value.get_ref() {
        DeValue::Integer(number) => {
            let bytes = reader.integer(name, number, span)?;
            Some(At { value: FileSize::Bytes(bytes.value), span: bytes.span })
        }
        // An empty text says nothing.
        DeValue::String(text) if text.is_empty() => None,
        DeValue::String(text) => Some(At { value: FileSize::Text(text.as_ref().to_owned()), span }),
        other => {
            let diagnostic = wrong(name, "a size or an integer", other, span);
            reader.report(diagnostic.help(format!("write for example `{name} = \"64MiB\"`")));
            None
        }
    }
}

pub(super) fn resolve(file: &FileLimits, diagnostics: &mut Vec<Diagnostic>) -> Limits {
    let mut count = |name, value: &Option<At<i64>>| {
        value.as_ref().and_then(|value| positive(name, value.value, &value.span, diagnostics))
    };
    let (fuel, findings, handles) =
        (count("fuel", &file.fuel), count("findings", &file.findings), count("handles", &file.handles));
    let wall = file.wall.as_ref().and_then(|wall| duration(wall, diagnostics));
    let (memory, output) =
        (size("memory", file.memory.as_ref(), diagnostics), size("output", file.output.as_ref(), diagnostics));
    Limits { fuel, memory, wall, output, findings, handles }
}

fn size(name: &str, size: Option<&At<FileSize>>, diagnostics: &mut Vec<Diagnostic>) -> Option<u64> {
    let size = size?;
    match &size.value {
        FileSize::Bytes(bytes) => positive(name, *bytes, &size.span, diagnostics),
        FileSize::Text(text) => match parse_size(text) {
            Ok(0) => positive(name, 0, &size.span, diagnostics),
            Ok(bytes) => Some(bytes),
            Err(error) => {
                diagnostics.push(Diagnostic::new(size.span.clone(), error.to_string()).help(error.help()));
                None
            }
        },
    }
}

fn positive(name: &str, value: i64, span: &Span, diagnostics: &mut Vec<Diagnostic>) -> Option<u64> {
    let value = u64::try_from(value).ok().filter(|value| *value > 0);
    if value.is_none() {
        let diagnostic = Diagnostic::new(span.clone(), format!("`{name}` must be more than zero"));
        diagnostics.push(diagnostic.help("leave it out to have the default"));
    }
    value
}
