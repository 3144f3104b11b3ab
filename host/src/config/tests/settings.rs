//! What holds, and where it comes from.

use super::good;
use crate::config::{Config, Layer, Limits, Origin, User, load_user, settings};
use std::time::Duration;

/// Limits of the engine.
const ENGINE: Limits = Limits {
    fuel: Some(100),
    memory: Some(1 << 20),
    wall: Some(Duration::from_secs(90)),
    output: Some(1000),
    findings: Some(7),
    handles: Some(8),
};

pub(super) fn user(text: &str) -> User {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    load_user(&path, "config.toml").unwrap()
}

pub(super) fn shown(config: &Config, user: &User) -> String {
    let rows = settings(config, user, &ENGINE).into_iter().map(|setting| {
        let origin = match setting.origin {
            Origin::Line(Layer::Project, line) => format!("project:{line}"),
            Origin::Line(Layer::User, line) => format!("user:{line}"),
            Origin::Default => "default".to_owned(),
        };
        let names = if setting.names_only { "  names only" } else { "" };
        format!("{origin:<10}  {} {}{names}\n", setting.key, setting.value)
    });
    rows.collect()
}

#[test]
fn each_value_has_the_line_that_says_it() {
    let config = good(
        r#"[verify]
commands = [
    ["cargo", "build"],
    ["cargo", "test"],
]
timeout = "30m"
env = ["TOKEN=secret", "EMPTY="]
jobs = 2

[checks.fmt]
command = ["cargo", "fmt"]
env = ["A=b=c"]
blocking = false

[packs.p]
allow = ["tree:**"]
source = "file:p.wasm"

[checks.look]
use = "p/look"
config = { deep = { list = [1, 0x10, 1_000], "odd key" = 1_0.5 } }
[checks.look.limits]
fuel = 9

[subject]
exclude = []
"#,
    );
    let shown = shown(&config, &User::default());
    assert!(!shown.contains("secret") && !shown.contains("b=c"), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn what_the_user_allows_holds_where_it_is_less() {
    let config = good(
        r#"[packs.p]
source = "file:p.wasm"
allow = ["tree:**"]
[checks.a]
use = "p/a"
limits = { memory = "1KiB" }
[checks.b]
command = ["b"]
[scenarios.default]
checks = ["a"]
"#,
    );
    let user = user("walls = \"strict\"\n\n[limits]\nfuel = 50\nmemory = \"2MiB\"\nwall = \"1m\"\n");
    insta::assert_snapshot!(shown(&config, &user));
}

#[test]
fn every_limit_has_a_default_that_is_shown() {
    let config = good("[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.a]\nuse = \"p/a\"\n");
    let shown = settings(&config, &User::default(), &ENGINE);
    let schema = crate::config::schema(Layer::User);
    for name in schema["properties"]["limits"]["properties"].as_object().unwrap().keys() {
        let key = format!("checks.a.limits.{name}");
        assert!(shown.iter().any(|setting| setting.key == key), "{key}");
    }
}

#[test]
fn a_large_file_is_listed_in_no_time() {
    let check = |n: usize| format!("[checks.c{n}]\ncommand = [\"x\"]\n");
    let config = good(&(0..10_000).map(check).collect::<String>());
    assert_eq!(settings(&config, &User::default(), &ENGINE).len(), 60_003);
}
