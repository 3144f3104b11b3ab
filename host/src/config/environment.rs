//! Entries of an environment: `NAME=value`, and names alone.

use super::diagnostic::{Diagnostic, quote};
use super::reader::{At, Span};
use std::collections::BTreeMap;

/// Splits entries, and reports those that are none and names that are set twice.
pub(super) fn entries(items: &[At<String>], diagnostics: &mut Vec<Diagnostic>) -> Vec<(String, String)> {
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
pub(super) fn names(items: &[At<String>], diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut names = Vec::new();
    for item in items {
        let name = item.value.as_str();
        if let Some((name, _)) = name.split_once('=') {
            let diagnostic = Diagnostic::new(item.span.clone(), "`pass-env` takes names, not values");
            diagnostics.push(diagnostic.help(format!("write {} here, or set the value in `env`", quote(name))));
        } else if let Some(mistake) = name_mistake(name, &item.span) {
            diagnostics.push(mistake);
        } else if unique(name, "passed", &item.span, &mut seen, diagnostics) {
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
