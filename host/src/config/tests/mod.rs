//! Tests of the module as a whole: a text in, a configuration or messages out.

mod capabilities;
mod checks;
mod empty;
mod jobs;
mod keys;
mod kinds;
mod layers;
mod loading;
mod meaning;
mod messages;
mod packs;
mod schema;
mod secrets;
mod settings;

use super::{Body, Colour, Config, User, parse};

/// The messages for a text, or `ok`.
fn messages(text: &str) -> String {
    match parse("probity.toml", text.as_bytes(), &User::default()) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.render(Colour::Off),
    }
}

/// The titles of the messages for a text.
fn titles(text: &str) -> Vec<String> {
    let shown = messages(text);
    shown.lines().filter_map(|line| line.strip_prefix("error: ").map(str::to_owned)).collect()
}

#[track_caller]
fn good(text: &str) -> Config {
    parse("probity.toml", text.as_bytes(), &User::default())
        .unwrap_or_else(|error| panic!("{}", error.render(Colour::Off)))
}
