//! An empty text or list means that nothing was said: for each key of both files that holds one, from the tables that the
//! schemas come from, it is as if the key were not written.

use super::super::keys::Kind;
use super::super::{Colour, Config, ConfigError, Layer, Limits, User, load_user, parse, settings};
use super::messages;
use super::schema::{Place, json, places, validator};

/// What is above every table here, so that what it may name is there and something is verified.
const ABOVE: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.other]\ncommand = [\"o\"]\n";

/// Keys that stand beside the empty one: lists of lines, without that for the key itself.
fn beside(path: &[&str]) -> &'static [&'static [&'static str]] {
    match path {
        ["verify"] => &[&[], &["commands = [[\"c\"]]", "env = [\"A=b\"]", "timeout = \"1m\""]],
        ["packs", "x"] => &[&[], &["source = \"file:x.wasm\"", "allow = [\"tree:**\"]"]],
        ["checks", "x"] => &[&[], &["command = [\"c\"]"], &["use = \"p/c\""], &["command = [\"c\"]", "use = \"p/c\""]],
        ["scenarios", "x"] => &[&[], &["checks = [\"other\"]", "base = \"main\""]],
        ["capabilities", "x"] => &[&[], &["probe = [\"c\"]"], &["program = \"c\""], &["os = \"linux\""]],
        ["spec"] => &[&[], &["paths = [\"SPEC.md\"]"]],
        [] | ["subject" | "limits"] | ["checks", "x", "limits" | "when"] => &[&[]],
        other => panic!("say here what stands beside a key of {other:?}"),
    }
}

/// A text whose last table is that of the place, and has these lines.
fn text(place: &Place, lines: &[&str]) -> String {
    let mut text = String::new();
    if place.layer == Layer::Project {
        text.push_str(ABOVE);
        if let ["checks", "x", _] = place.path[..] {
            text.push_str("[checks.x]\nuse = \"p/c\"\n");
        }
    }
    if !place.path.is_empty() {
        text.push_str(&format!("[{}]\n", place.path.join(".")));
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// All that a text means, or all that is wrong with it, and what `probity config` shows of it.
fn meaning(layer: Layer, text: &str) -> String {
    let nothing = Limits::default();
    let meant: Result<(Config, User), ConfigError> = match layer {
        Layer::Project => {
            parse("probity.toml", text.as_bytes(), &User::default()).map(|config| (config, User::default()))
        }
        Layer::User => {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config.toml");
            std::fs::write(&path, text).unwrap();
            let user = load_user(&path, "config.toml");
            user.map(|user| (parse("probity.toml", ABOVE.as_bytes(), &user).unwrap(), user))
        }
    };
    match meant {
        Ok((mut config, mut user)) => {
            let shown = settings(&config, &user, &nothing);
            config.source.text.clear();
            user.source = None;
            format!("{config:?}\n{user:?}\n{shown:?}")
        }
        // The places are compared with the mistakes; the lines that are shown around them may have the empty value.
        Err(ConfigError::Invalid(invalid)) => format!("{:#?}", invalid.diagnostics),
        Err(other) => panic!("{text}\n{}", other.render(Colour::Off)),
    }
}

#[test]
fn an_empty_value_of_any_key_is_as_if_the_key_were_not_written() {
    let mut keys = 0;
    for place in places() {
        for key in place.table.keys {
            let empty = match key.kind {
                Kind::Text | Kind::Word(_) | Kind::Size | Kind::Duration => "\"\"",
                Kind::Texts | Kind::Codes | Kind::Variables | Kind::Command | Kind::Commands => "[]",
                Kind::Flag
                | Kind::Count
                | Kind::UpTo(_)
                | Kind::Pairs
                | Kind::Words(_)
                | Kind::Options
                | Kind::Table(_)
                | Kind::Named(_) => continue,
            };
            keys += 1;
            let written = format!("{} = {empty}", key.name);
            for lines in beside(&place.path) {
                let own = format!("{} = ", key.name);
                let mut lines: Vec<&str> = lines.iter().copied().filter(|line| !line.starts_with(&own)).collect();
                let without = text(&place, &lines);
                lines.push(&written);
                let with = text(&place, &lines);
                assert_eq!(meaning(place.layer, &with), meaning(place.layer, &without), "{with}");
                let valid = |text: &str| validator(place.layer).is_valid(&json(text));
                assert_eq!(valid(&with), valid(&without), "the schema: {with}");
            }
        }
    }
    assert!(keys > 35, "{keys} keys are few");
}

#[test]
fn an_empty_value_by_name_says_nothing_either() {
    let text = |severities: &str| {
        format!("{ABOVE}[checks.x]\nuse = \"p/c\"\nseverities = {{ a = \"off\"{severities} }}\n").replace("  ", " ")
    };
    let meant = |text: &str| {
        let config = parse("probity.toml", text.as_bytes(), &User::default()).unwrap();
        format!("{:?}", config.checks.last().unwrap().body)
    };
    assert_eq!(meant(&text(", b = \"\"")), meant(&text("")));
    assert!(validator(Layer::Project).is_valid(&json(&text(", b = \"\""))));
}

#[test]
fn what_is_missing_since_it_is_empty_is_told_as_what_is_missing() {
    insta::assert_snapshot!(messages(
        "[checks.a]\ncommand = []\ntimeout = \"\"\n[scenarios.s]\nchecks = []\n[packs.p]\nsource = \"\"\nallow = []\n[spec]\npaths = []\n"
    ));
}
