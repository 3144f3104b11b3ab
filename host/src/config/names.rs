//! Names of checks, packs and scenarios, as people write them.

use super::diagnostic::{Diagnostic, quote};
use super::reader::At;
use crate::model::IdError;
use std::str::FromStr;

/// Reads a name, and reports one that is not in the alphabet of names together with one that is.
pub(super) fn id<T: FromStr<Err = IdError>>(
    what: &str,
    name: &At<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<T> {
    let error = match name.value.parse() {
        Ok(id) => return Some(id),
        Err(error) => error,
    };
    let title = format!("{} cannot be the name of a {what}", quote(&name.value));
    let diagnostic = Diagnostic::new(name.span.clone(), title).label(format!("a name {error}"));
    let similar = similar(&name.value);
    diagnostics.push(match similar.parse::<T>() {
        Ok(_) => diagnostic.help(format!("write for example `{similar}`")),
        Err(_) => diagnostic,
    });
    None
}

fn similar(name: &str) -> String {
    let mapped = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    mapped.take(64).collect::<String>().trim_matches('-').to_owned()
}
