//! Reading of single values, with their places. A value of the wrong kind is reported here and is then absent.
//!
//! The tree is walked by hand, and not by serde, which stops at the first mistake.

use super::diagnostic::{Diagnostic, quote};
use super::suggest::did_you_mean;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

/// A place: bytes of the text.
pub(super) type Span = Range<usize>;

/// A value and where it is written.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// A key that is written, and its value. A value that is absent has been reported.
#[derive(Debug, Clone)]
pub(super) struct Field<T> {
    pub(super) key: Span,
    pub(super) value: Option<At<T>>,
}

/// What can be written and say nothing: an empty text or list means that its key is not set.
pub(super) trait Silent {
    /// Whether it says nothing. A table or a flag always says something.
    fn is_silent(&self) -> bool {
        false
    }
}

impl Silent for String {
    fn is_silent(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Silent for Vec<T> {
    fn is_silent(&self) -> bool {
        self.is_empty()
    }
}

impl Silent for bool {}

impl Silent for i64 {}

/// A key that is written. One whose value says nothing is as if it were not: there is no other place where that is
/// decided.
pub(super) fn field<T: Silent>(key: &Spanned<DeString<'_>>, value: Option<At<T>>) -> Option<Field<T>> {
    let silent = value.as_ref().is_some_and(|at| at.value.is_silent());
    (!silent).then(|| Field { key: key.span(), value })
}

/// Gives the value of a key, where it is written and has no mistake.
pub(super) fn get<T>(field: Option<&Field<T>>) -> Option<&At<T>> {
    field.and_then(|field| field.value.as_ref())
}

/// The keys of one kind of table.
pub(super) struct Keys {
    /// How people know the table: `[verify]`.
    pub(super) table: &'static str,
    /// The keys it has.
    pub(super) known: &'static [&'static str],
    /// The keys it will have, each with what to do until then.
    pub(super) later: &'static [(&'static str, &'static str)],
    /// Keys that another place has, each with what to do.
    pub(super) elsewhere: &'static [(&'static str, &'static str)],
}

/// A key of a table and its value.
pub(super) type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// The entries of a table, in the order of the file.
pub(super) fn entries<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Collects mistakes while values are read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a key that has no meaning here.
    pub(super) fn unknown(&mut self, key: &Spanned<DeString<'_>>, keys: &Keys) {
        let name = key.get_ref().as_ref();
        let table = keys.table;
        let diagnostic = if let Some((_, instead)) = keys.later.iter().find(|(later, _)| *later == name) {
            unsupported(key.span(), &format!("`{name}`")).label(format!("in {table}")).help(*instead)
        } else if let Some((_, place)) = keys.elsewhere.iter().find(|(other, _)| *other == name) {
            Diagnostic::new(key.span(), format!("`{name}` does not belong here"))
                .label(format!("in {table}"))
                .help(*place)
        } else {
            let unknown = Diagnostic::new(key.span(), format!("unknown key {}", quote(name)));
            let unknown = unknown.label(format!("not a key of {table}"));
            match did_you_mean(name, keys.known.iter().copied()) {
                Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
                None => unknown.help(format!("the keys of {table} are {}", list(keys.known))),
            }
        };
        self.report(diagnostic);
    }

    pub(super) fn string(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        help: Option<&str>,
    ) -> Option<At<String>> {
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text.as_ref().to_owned(), span: value.span() }),
            other => {
                let diagnostic = wrong(name, "a string", other, value.span());
                self.report(with_help(diagnostic, help));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<bool>> {
        match value.get_ref() {
            DeValue::Boolean(value_of) => Some(At { value: *value_of, span: value.span() }),
            other => {
                let help = format!("write `{name} = true` or `{name} = false`");
                self.report(wrong(name, "`true` or `false`", other, value.span()).help(help));
                None
            }
        }
    }

    pub(super) fn integer(&mut self, name: &str, number: &DeInteger<'_>, span: Span) -> Option<At<i64>> {
        if let Some(value) = to_i64(number) {
            return Some(At { value, span });
        }
        self.report(too_large(name, span));
        None
    }

    /// A list of strings. Each item of another kind is reported, and the whole is then absent.
    pub(super) fn strings(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        help: Option<&str>,
    ) -> Option<At<Vec<At<String>>>> {
        let DeValue::Array(items) = value.get_ref() else {
            let diagnostic = wrong(name, "a list of strings", value.get_ref(), value.span());
            self.report(with_help(diagnostic, help));
            return None;
        };
        // Collected first, so that each wrong item is reported and not only the first.
        let items: Vec<_> = items.iter().map(|item| self.string(name, item, None)).collect();
        Some(At { value: items.into_iter().collect::<Option<_>>()?, span: value.span() })
    }

    /// A list of integers. Each item of another kind is reported, and the whole is then absent.
    pub(super) fn integers(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        help: &str,
    ) -> Option<At<Vec<At<i64>>>> {
        let DeValue::Array(items) = value.get_ref() else {
            self.report(wrong(name, "a list of integers", value.get_ref(), value.span()).help(help));
            return None;
        };
        let one = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Integer(number) => self.integer(name, number, item.span()),
            other => {
                self.report(wrong(name, "an integer", other, item.span()).help(help));
                None
            }
        };
        // Collected first, so that each wrong item is reported and not only the first.
        let items: Vec<_> = items.iter().map(one).collect();
        Some(At { value: items.into_iter().collect::<Option<_>>()?, span: value.span() })
    }

    /// The tables within a table, in the order of the file: `[checks.NAME]`. What is no table is reported, and its
    /// name is added to `unreadable`.
    pub(super) fn tables<'a, 'i>(
        &mut self,
        name: &str,
        value: &'a Spanned<DeValue<'i>>,
        unreadable: &mut BTreeSet<String>,
    ) -> Vec<(At<String>, &'a DeTable<'i>)> {
        let DeValue::Table(table) = value.get_ref() else {
            let diagnostic = wrong(name, &format!("tables named `[{name}.NAME]`"), value.get_ref(), value.span());
            self.report(diagnostic);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (key, value) in entries(table) {
            let item = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(table) => tables.push((At { value: item.to_owned(), span: key.span() }, table)),
                other => {
                    unreadable.insert(item.to_owned());
                    let diagnostic = wrong(item, "a table", other, value.span());
                    self.report(diagnostic.help(format!("write a table `[{name}.NAME]` with keys of its own")));
                }
            }
        }
        tables
    }
}

/// The mistake of something that is to come.
pub(super) fn unsupported(span: Span, what: &str) -> Diagnostic {
    Diagnostic::new(span, format!("{what} is not supported yet"))
}

/// The mistake of a value that is of another kind than it must be.
pub(super) fn wrong(name: &str, expected: &str, found: &DeValue<'_>, span: Span) -> Diagnostic {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => "a list of tables",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    Diagnostic::new(span, format!("{}: expected {expected}, found {found}", quote(name)))
        .label(format!("this is {found}"))
}

pub(super) fn too_large(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(span, format!("{}: the number is too large", quote(name)))
        .help("integers have 64 bits, from -2^63 to 2^63-1")
}

/// The value of an integer in any of TOML's bases.
pub(super) fn to_i64(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn with_help(diagnostic: Diagnostic, help: Option<&str>) -> Diagnostic {
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// Names for a sentence: `a`, `b` and `c`.
pub(super) fn list<S: AsRef<str>>(names: &[S]) -> String {
    // A sentence with more names than this is not read.
    const MOST: usize = 24;
    let quoted: Vec<String> = names.iter().take(MOST).map(|name| quote(name.as_ref())).collect();
    match quoted.as_slice() {
        all if names.len() > MOST => format!("{} and {} more", all.join(", "), names.len() - MOST),
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
