//! Every wrong kind of value for every key, from the tables that the schemas come from: a mistake with its line and what
//! to do, never a panic and never silence.

use super::super::keys::{Key, Kind};
use super::super::{Colour, ConfigError, Diagnostic, Layer};
use super::schema::{Place, json, places, validator};
use std::collections::BTreeSet;

const DATE: &str = "2026-12-01";

/// A value of each kind that TOML has, and lists of each.
const VALUES: [&str; 9] =
    ["\"text\"", "7", "1.5", "true", DATE, "[7]", "[\"text\", [\"text\"]]", "[{}]", "{ zzz = 7 }"];

/// Whether a value is of the kind that a key holds, though its meaning may be wrong.
fn fits(kind: Kind, value: &str) -> bool {
    let string = value.starts_with('"');
    match kind {
        Kind::Text | Kind::Word(_) | Kind::Duration => string,
        Kind::Flag => value == "true",
        Kind::Count | Kind::UpTo(_) => value == "7",
        Kind::Size => string || value == "7",
        Kind::Options => value.starts_with('{'),
        Kind::Codes => value == "[7]",
        // No list above is one of these, and no table has a key that these know.
        Kind::Texts
        | Kind::Variables
        | Kind::Command
        | Kind::Commands
        | Kind::Pairs
        | Kind::Words(_)
        | Kind::Table(_)
        | Kind::Named(_) => false,
    }
}

fn wrong() -> Vec<(Place, &'static Key, &'static str)> {
    let mut wrong = Vec::new();
    for place in places() {
        for key in place.table.keys {
            for value in VALUES.iter().filter(|value| !fits(key.kind, value)) {
                wrong.push((place.clone(), key, *value));
            }
        }
    }
    wrong
}

/// The mistakes of a text that must have some, each with its line.
fn mistakes(place: &Place, text: &str) -> Vec<(usize, Diagnostic)> {
    let invalid = match place.mistakes(text) {
        Err(ConfigError::Invalid(invalid)) => invalid,
        Err(other) => panic!("{text}\n{other}"),
        Ok(()) => panic!("accepted: {text}"),
    };
    assert!(!invalid.render(Colour::Off).is_empty());
    let line = |diagnostic: &Diagnostic| {
        let start = diagnostic.span.as_ref().unwrap_or_else(|| panic!("{}: no place", diagnostic.title)).start;
        text[..start].matches('\n').count() + 1
    };
    invalid.diagnostics.iter().map(|diagnostic| (line(diagnostic), diagnostic.clone())).collect()
}

#[test]
fn every_wrong_kind_of_value_is_a_mistake_with_its_place() {
    let mut shown = String::new();
    let (mut before, mut helped) = (String::new(), String::new());
    for (place, key, value) in wrong() {
        let text = place.with(key.name, value);
        // What is missing beside the key is told too, at the header above it; here it is about the value.
        let of_key = text.lines().count();
        let about = mistakes(&place, &text).into_iter().filter(|(line, _)| *line == of_key);
        let path: Vec<&str> = place.path.iter().copied().chain([key.name]).collect();
        let file = if place.layer == Layer::User { "user's file: " } else { "" };
        let name = format!("{file}{}", path.join("."));
        if name != before {
            shown.push_str(&format!("{name}\n"));
            helped = String::new();
        }
        before = name;
        let start = shown.len();
        for (line, diagnostic) in about {
            shown.push_str(&format!("  {value:<20}  line {line}: {}\n", diagnostic.title));
            // Where it is the same as for the value above, it is not repeated here.
            let help = diagnostic.help.iter().fold(String::new(), |all, help| all + "    help: " + help + "\n");
            if help != helped {
                shown.push_str(&help);
                helped = help;
            }
        }
        assert!(shown.len() > start, "nothing is said of the value: {text}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn the_schemas_refuse_every_wrong_kind_of_value() {
    // JSON has no dates.
    for (place, key, value) in wrong().into_iter().filter(|(_, _, value)| *value != DATE) {
        let text = place.with(key.name, value);
        let valid = validator(place.layer);
        let names = place.path.iter().chain([&key.name]);
        let pointer = names.fold(String::new(), |above, name| above + "/" + name);
        // Other mistakes, such as a key that is missing beside it, are at other places.
        let instance = json(&text);
        let mut errors = valid.iter_errors(&instance);
        assert!(errors.any(|error| error.instance_path().to_string().starts_with(&pointer)), "{text}");
    }
}

#[test]
fn a_value_of_the_right_kind_is_not_told_to_be_of_another() {
    for place in places() {
        for key in place.table.keys {
            for value in VALUES.iter().filter(|value| fits(key.kind, value)) {
                if let Err(error) = place.mistakes(&place.with(key.name, value)) {
                    let shown = error.render(Colour::Off);
                    assert!(!shown.contains("expected"), "{} = {value}\n{shown}", key.name);
                }
            }
        }
    }
}

#[test]
fn all_wrong_kinds_at_once_are_all_told() {
    let at = |place: &Place, name: &str, value: &str| {
        let path: Vec<&str> = place.path.iter().copied().chain([name]).collect();
        format!("{} = {value}\n", path.join("."))
    };
    for layer in [Layer::Project, Layer::User] {
        let places: Vec<Place> = places().into_iter().filter(|place| place.layer == layer).collect();
        let mut text = String::new();
        for place in &places {
            for key in place.table.keys.iter().filter(|key| !matches!(key.kind, Kind::Table(_) | Kind::Named(_))) {
                text.push_str(&at(place, key.name, DATE));
            }
        }
        let lines: BTreeSet<usize> = mistakes(&places[0], &text).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines.len(), text.lines().count(), "{text}");
    }
}
