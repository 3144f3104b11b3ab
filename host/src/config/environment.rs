//! Entries of an environment: `NAME=value`, and names alone; and names whose values are secret.

use super::User;
use super::diagnostic::{Diagnostic, quote};
use super::file::File;
use super::reader::{At, Field, Reader, Span, get};
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What Probity itself sets for each command.
const OURS: &str = "PROBITY_RESULT";

/// The names that are marked secret: anywhere in the file, each with a place where it is, and in the user's file.
pub(super) struct Marked<'a>(BTreeMap<&'a str, Option<&'a Span>>);

impl<'a> Marked<'a> {
    pub(super) fn new(file: &'a File, user: &'a [String]) -> Self {
        let lists = file.checks.iter().map(|check| &check.secrets).chain([&file.verify.secrets]);
        let items = lists.filter_map(|list| get(list.as_ref())).flat_map(|list| &list.value);
        let beneath = user.iter().map(|name| (name.as_str(), None));
        Self(beneath.chain(items.map(|item| (item.value.as_str(), Some(&item.span)))).collect())
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    /// Refuses variables that the user's file sets and the project marks.
    pub(super) fn refuse(&self, env: &[(String, String)], user: &User, diagnostics: &mut Vec<Diagnostic>) {
        let file = user.source.as_ref().map_or("its place", |source| source.name.as_str());
        for (name, _) in env {
            let Some(Some(place)) = self.0.get(name.as_str()) else { continue };
            let title = format!("the value of {} is secret, and the user's file says it", quote(name));
            let help = format!(
                "remove it from `env` of `[verify]` in {}, and set the variable where Probity is started",
                quote(file)
            );
            diagnostics.push(Diagnostic::new((*place).clone(), title).label("marked secret here").help(help));
        }
    }
}

/// The text with the values overwritten that it sets for variables that it or the user's file marks as secret, so that no
/// message about it can show one. Every place stays where it is.
pub(super) fn without_secrets(mut text: String, marked: &[String]) -> String {
    for (name, span) in secret_entries(&text, marked) {
        let Some(written) = text.get(span.clone()) else { continue };
        // Where the name is written with escapes, all of it is hidden.
        let name = format!("{name}=");
        let shown = written.find(&name).map_or(0, |at| at + name.len());
        let stays = |c: char| "\r\n\"'".contains(c);
        let hidden: String =
            written[shown..].chars().map(|c| if stays(c) { c.into() } else { "*".repeat(c.len_utf8()) }).collect();
        text.replace_range(span.start + shown..span.end, &hidden);
    }
    text
}

/// The names and places of all `NAME=value` whose values are secret, in a text that has mistakes: as much as can be is
/// read of it, and what is of the wrong kind is passed over.
fn secret_entries(text: &str, beneath: &[String]) -> Vec<(String, Span)> {
    let (table, _) = DeTable::parse_recoverable(text);
    let table = table.get_ref();
    let checks = table.get("checks").and_then(|checks| checks.get_ref().as_table());
    let tables = checks.into_iter().flat_map(|checks| checks.values()).chain(table.get("verify"));
    let tables: Vec<&DeTable<'_>> = tables.filter_map(|table| table.get_ref().as_table()).collect();
    let items = |key: &str| {
        let lists = tables.iter().filter_map(|table| table.get(key)?.get_ref().as_array());
        lists.flatten().filter_map(|item| Some((item.get_ref().as_str()?, item.span()))).collect::<Vec<_>>()
    };
    let secrets = items("secrets");
    let marked = secrets.iter().map(|(name, _)| *name).chain(beneath.iter().map(String::as_str));
    let marked: BTreeSet<&str> = marked.collect();
    let set = items("env").into_iter().filter_map(|(item, span)| Some((item.split_once('=')?.0.to_owned(), span)));
    let set = set.filter(|(name, _)| marked.contains(name.as_str()));
    // Whoever takes `secrets` for `env` has written a value too.
    let taken = secrets.iter().filter_map(|(item, span)| Some((item.split_once('=')?.0.to_owned(), span.clone())));
    set.chain(taken).collect()
}

/// The value of `env`.
pub(super) fn read(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<Vec<At<String>>>> {
    reader.strings(name, value, Some("write for example `env = [\"NAME=value\"]`"))
}

/// The value of `secrets`.
pub(super) fn read_secrets(
    reader: &mut Reader,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<At<Vec<At<String>>>> {
    reader.strings(name, value, Some("write for example `secrets = [\"TOKEN\"]`"))
}

/// The names of variables whose values are secret.
pub(super) fn secrets(field: Option<&Field<Vec<At<String>>>>, diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    get(field).map_or_else(Vec::new, |list| names("secrets", &list.value, diagnostics))
}

/// Splits entries, and reports those that are none, names that are set twice, and values that should be secret.
pub(super) fn entries(
    items: &[At<String>],
    marked: &Marked<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(String, String)> {
    let mut seen = BTreeMap::new();
    let mut entries = Vec::new();
    for item in items {
        let Some((name, value)) = item.value.split_once('=') else {
            let diagnostic = Diagnostic::new(item.span.clone(), format!("{} sets no variable", quote(&item.value)));
            diagnostics.push(diagnostic.label("there is no `=`").help("write `\"NAME=value\"`"));
            continue;
        };
        if let Some(mistake) = name_mistake(name, &item.span) {
            diagnostics.push(mistake);
        } else if let Some(place) = marked.0.get(name) {
            let title = format!("the value of {} is secret, and the file says it", quote(name));
            let diagnostic = Diagnostic::new(item.span.clone(), title);
            let diagnostic = match place {
                Some(place) => diagnostic.also((*place).clone(), "marked secret here"),
                None => diagnostic.label("marked secret in the user's file"),
            };
            let help = "set the variable where Probity is started, and give it another value: this one may be known";
            diagnostics.push(diagnostic.help(help));
        } else if value.contains('\0') {
            let title = format!("the value of {} has a NUL character", quote(name));
            diagnostics.push(Diagnostic::new(item.span.clone(), title).help("no program can receive one"));
        } else if unique(name, "set", &item.span, &mut seen, diagnostics) {
            entries.push((name.to_owned(), value.to_owned()));
        }
    }
    entries
}

/// Reports texts that are no names, and names that are given twice.
pub(super) fn names(key: &str, items: &[At<String>], diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut names = Vec::new();
    for item in items {
        let name = item.value.as_str();
        if let Some((name, _)) = name.split_once('=') {
            let diagnostic = Diagnostic::new(item.span.clone(), format!("`{key}` takes names, not values"));
            diagnostics.push(match key {
                "secrets" => diagnostic.help("write the name alone, and set the variable where Probity is started"),
                _ => diagnostic.help(format!("write {} here, or set the value in `env`", quote(name))),
            });
        } else if let Some(mistake) = name_mistake(name, &item.span) {
            diagnostics.push(mistake);
        } else if unique(name, if key == "secrets" { "marked" } else { "passed" }, &item.span, &mut seen, diagnostics) {
            names.push(name.to_owned());
        }
    }
    names
}

fn name_mistake(name: &str, span: &Span) -> Option<Diagnostic> {
    let mut chars = name.chars();
    let good = chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && chars.all(|c| c == '_' || c.is_ascii_alphanumeric());
    let mistake = || {
        Diagnostic::new(span.clone(), format!("{} is not a name of a variable", quote(name)))
            .help("names have letters, digits and `_`, and do not start with a digit")
    };
    if good && name == OURS {
        let diagnostic = Diagnostic::new(span.clone(), format!("{} is set by Probity", quote(name)));
        return Some(diagnostic.help("remove it: each command has a file of its own to write its result to"));
    }
    (!good).then(mistake)
}

fn unique<'a>(
    name: &'a str,
    verb: &str,
    span: &Span,
    seen: &mut BTreeMap<&'a str, Span>,
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    if let Some(first) = seen.get(name) {
        let diagnostic = Diagnostic::new(span.clone(), format!("{} is {verb} twice", quote(name)));
        diagnostics.push(diagnostic.also(first.clone(), format!("{verb} here first")).help("remove one of them"));
        return false;
    }
    seen.insert(name, span.clone());
    true
}
