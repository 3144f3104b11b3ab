//! What correct files mean.

use super::{good, messages, titles};
use crate::config::{Body, Check, Command, Config, Evident, Globs, Limits, Logic, PackSource};
use crate::model::Mount;
use serde_json::json;
use std::time::Duration;

fn ids<T: AsRef<[U]>, U: std::fmt::Display>(ids: T) -> Vec<String> {
    ids.as_ref().iter().map(ToString::to_string).collect()
}

fn declared(config: &Config) -> Vec<String> {
    config.checks.iter().map(|check| check.id.to_string()).collect()
}

#[track_caller]
fn command(check: &Check) -> &Command {
    match &check.body {
        Body::Command(command) => command,
        Body::Logic(_) => panic!("not a command"),
    }
}

#[track_caller]
fn logic(check: &Check) -> &Logic {
    match &check.body {
        Body::Logic(logic) => logic,
        Body::Command(_) => panic!("not logic"),
    }
}

const SHORT: &str = r#"
[verify]
commands = [["go", "build", "./..."], ["go", "test", "./..."]]
timeout = "30m"                # hard limit for the whole run; Go duration syntax
env = ["CGO_ENABLED=0"]        # extra environment for verify commands
audit = false
"#;

#[test]
fn the_short_form_is_a_scenario() {
    let config = good(SHORT);
    assert_eq!(declared(&config), ["verify-1", "verify-2"]);
    let first = &config.checks[0];
    assert_eq!(&SHORT[first.span.clone()], r#"["go", "build", "./..."]"#);
    assert_eq!((first.timeout, first.blocking), (None, true));
    let expected = Command {
        argv: vec!["go".to_owned(), "build".to_owned(), "./...".to_owned()],
        env: vec![("CGO_ENABLED".to_owned(), "0".to_owned())],
        pass_env: Vec::new(),
        tests: Vec::new(),
        secrets: Vec::new(),
        gap_exit: Vec::new(),
        inherit_env: true,
        isolate: false,
        evidence: Evident { short_form: true, ..Evident::default() },
    };
    assert_eq!(command(first), &expected);
    assert_eq!(config.scenarios.len(), 1);
    let scenario = config.scenario("default").unwrap();
    assert_eq!(ids(&scenario.checks), ["verify-1", "verify-2"]);
    assert_eq!((scenario.fail_fast, scenario.timeout), (true, Some(Duration::from_mins(30))));
}

#[test]
fn an_empty_value_of_verify_is_not_set() {
    let config = good("[verify]\ncommands = [[\"true\"]]\ntimeout = \"\"\nenv = []\n");
    assert_eq!(config.scenarios[0].timeout, None);
    let config = good("[verify]\ncommands = []\n[checks.a]\ncommand = [\"true\"]\n");
    assert_eq!(declared(&config), ["a"]);
}

#[test]
fn checks_keep_the_order_of_the_file() {
    let config = good(
        r#"
        [checks.zebra]
        command = ["a"]
        [checks.ant]
        command = ["b"]
        [verify]
        commands = [["c"]]
        timeout = "1m"
        [checks.mule]
        command = ["d"]
        "#,
    );
    assert_eq!(declared(&config), ["verify-1", "zebra", "ant", "mule"]);
    let default = config.scenario("default").unwrap();
    assert_eq!(ids(&default.checks), ["verify-1", "zebra", "ant", "mule"]);
    assert_eq!(default.timeout, Some(Duration::from_mins(1)));
    let inline = good("checks.b.command = [\"x\"]\nchecks.a = { command = [\"y\"] }\n");
    assert_eq!(declared(&inline), ["b", "a"]);
}

#[test]
fn a_command_has_what_is_declared() {
    let config = good(
        r#"
        [checks.a]
        command = ["cargo", "test", ""]
        timeout = "2m"
        blocking = false
        env = ["A=1", "B=", "C=x=y"]
        pass-env = ["_TOKEN", "HOME2"]
        [checks.b]
        command = ["x"]
        inherit-env = true
        "#,
    );
    let a = &config.checks[0];
    assert_eq!((a.timeout, a.blocking), (Some(Duration::from_mins(2)), false));
    assert_eq!(command(a).argv, ["cargo", "test", ""]);
    let env: Vec<_> = command(a).env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "1"), ("B", ""), ("C", "x=y")]);
    assert_eq!(command(a).pass_env, ["_TOKEN", "HOME2"]);
    assert!(!command(a).inherit_env);
    assert!(command(&config.checks[1]).inherit_env);
}

const LOGIC: &str = r#"
[packs.hygiene]
source = "path:checks/./hygiene/"
allow = ["tree:**", "spec:*.md", "tree:!secrets/**"]

[packs.other]
source = "file:packs/other.wasm"
allow = ["tree:**"]

[checks.whitespace]
use = "hygiene/trailing-whitespace"
files = ["**", "!vendor/**"]
limits = { fuel = 1_000_000, memory = "64MiB" }

[checks.whitespace.config]
markdown-linebreak = true
"a/b~c" = [1, -0x10, 1.5, "x", { deep = false }]
"#;

#[test]
fn a_logic_check_has_what_is_declared() {
    let mut config = good(LOGIC.replace("-0x10", "0x10").as_str());
    let pack = &config.packs[&"hygiene".parse().unwrap()];
    assert_eq!(pack.source, PackSource::Path("checks/hygiene".to_owned()));
    assert_eq!(pack.allow[&Mount::Tree], Globs::new(&["**", "!secrets/**"]).unwrap());
    assert_eq!(pack.allow[&Mount::Spec], Globs::new(&["*.md"]).unwrap());
    assert_eq!(pack.allow.len(), 2);
    let other = config.packs.remove(&"other".parse().unwrap()).unwrap();
    assert_eq!(other.source, PackSource::File("packs/other.wasm".to_owned()));
    assert_eq!(other.allow.len(), 1);

    let text = &config.source.text;
    let logic = logic(&config.checks[0]);
    assert_eq!((logic.pack.as_str(), logic.check.as_str()), ("hygiene", "trailing-whitespace"));
    assert_eq!(&text[logic.use_span.clone()], "\"hygiene/trailing-whitespace\"");
    assert_eq!(config.checks[0].files, Some(Globs::new(&["**", "!vendor/**"]).unwrap()));
    assert_eq!(logic.limits, Limits { fuel: Some(1_000_000), memory: Some(64 << 20), ..Limits::default() });
    let expected = json!({"markdown-linebreak": true, "a/b~c": [1, 16, 1.5, "x", {"deep": false}]});
    assert_eq!(json!(logic.config), expected);
    let spans: Vec<_> =
        logic.config_spans.iter().map(|(pointer, span)| (pointer.as_str(), &text[span.clone()])).collect();
    let expected = [
        ("", "[checks.whitespace.config]"),
        ("/a~1b~0c", r#"[1, 0x10, 1.5, "x", { deep = false }]"#),
        ("/a~1b~0c/0", "1"),
        ("/a~1b~0c/1", "0x10"),
        ("/a~1b~0c/2", "1.5"),
        ("/a~1b~0c/3", "\"x\""),
        ("/a~1b~0c/4", "{ deep = false }"),
        ("/a~1b~0c/4/deep", "false"),
        ("/markdown-linebreak", "true"),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn a_logic_check_needs_no_more_than_its_name() {
    let config = good(
        "[packs.p]\nsource = \"path:.\"\nallow = [\"tree:**\"]\n[checks.a]\nuse = \"p/c\"\n[checks.b]\nuse = \"p/c\"\nlimits.memory = 1024",
    );
    let logic_a = logic(&config.checks[0]);
    assert_eq!((&config.checks[0].files, &logic_a.config_span, logic_a.config.len()), (&None, &None, 0));
    assert_eq!(logic_a.limits, Limits::default());
    assert_eq!(logic(&config.checks[1]).limits.memory, Some(1024));
    assert_eq!(config.packs[&"p".parse().unwrap()].source, PackSource::Path(".".to_owned()));
}

#[test]
fn scenarios_name_checks_of_both_forms() {
    let config = good(
        r#"
        [verify]
        commands = [["a"], ["b"]]
        [checks.c]
        command = ["c"]
        [scenarios.pr]
        checks = ["c", "verify-2"]
        fail-fast = false
        timeout = "20m"
        "#,
    );
    assert_eq!(config.scenarios.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["default", "pr"]);
    let pr = config.scenario("pr").unwrap();
    assert_eq!(ids(&pr.checks), ["c", "verify-2"]);
    assert_eq!((pr.fail_fast, pr.timeout), (false, Some(Duration::from_mins(20))));
    assert_eq!(config.check(&pr.checks[0]).unwrap().id.as_str(), "c");
    assert!(config.scenario("none").is_none());
}

#[test]
fn a_default_that_is_written_is_the_default() {
    let config =
        good("[verify]\ncommands = [[\"a\"]]\n[checks.b]\ncommand = [\"b\"]\n[scenarios.default]\nchecks = [\"b\"]\n");
    assert_eq!(config.scenarios.len(), 1);
    assert_eq!(ids(&config.scenario("default").unwrap().checks), ["b"]);
}

#[test]
fn line_ends_and_indentation_do_not_matter() {
    let windows = good(&SHORT.replace('\n', "\r\n").replace("audit", "\taudit"));
    assert_eq!(windows.scenarios[0].checks, good(SHORT).scenarios[0].checks);
}

#[test]
fn later_stages_report_against_the_same_text() {
    use crate::config::{Colour, Diagnostic};
    let config = good(LOGIC.replace("-0x10", "0x10").as_str());
    let span = logic(&config.checks[0]).config_spans["/markdown-linebreak"].clone();
    let mistake = Diagnostic::new(span, "`markdown-linebreak`: expected a string").label("from the check's schema");
    insta::assert_snapshot!(config.invalid(vec![mistake]).render(Colour::Off), @r#"
    error: `markdown-linebreak`: expected a string
      --> probity.toml:16:22
       |
    16 | markdown-linebreak = true
       |                      ^^^^ from the check's schema
    "#);
}

#[test]
fn a_file_that_would_swell_is_refused() {
    let deep = format!("[checks.a.config]\n{} = [{}]", vec!["k".repeat(2000); 60].join("."), "1,".repeat(1000));
    assert_eq!(titles(&format!("{deep}\n[checks.b]\ncommand = [\"x\"]"))[0], "`config`: there are too many options");
}

#[test]
fn nesting_has_an_end() {
    for text in [
        format!("{}=1", vec!["a"; 100_000].join(".")),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("[checks.a.config]\nx = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
    ] {
        assert!(!titles(&text).is_empty());
    }
}

#[test]
fn checks_that_wait_for_each_other_are_told_once() {
    let check = |id: &str, after: &str| format!("[checks.{id}]\ncommand = [\"x\"]\nafter = [{after}]\n");
    let three = check("a", "\"c\"") + &check("b", "\"a\"") + &check("c", "\"b\"") + &check("d", "\"a\"");
    insta::assert_snapshot!(messages(&three));
    assert_eq!(titles(&check("a", "\"a\"")), ["check `a` waits for itself"]);
    assert_eq!(titles(&check("a", "\"b\"")), ["there is no check `b`"]);
    assert_eq!(titles(&(check("a", "\"b\", \"b\"") + &check("b", ""))), ["`b` is named twice"]);
    let config = good(&(check("a", "\"b\", \"c\"") + &check("b", "\"c\"") + &check("c", "")));
    assert_eq!(config.checks[0].after.len(), 2);
}

#[test]
fn base_and_specification() {
    let with = |more: &str| format!("[checks.a]\ncommand = [\"x\"]\n[scenarios.s]\nchecks = [\"a\"]\n{more}");
    assert_eq!(good(&with("base = \"origin/main\"")).scenario("s").unwrap().base.as_deref(), Some("origin/main"));
    assert_eq!(good(&with("base = \"\"")).scenario("s").unwrap().base, None);
    assert_eq!(titles(&with("base = \"--output=x\"")), ["`--output=x` names no revision"]);
    assert!(good(&with("[spec]\npaths = [\"SPEC.md\"]")).spec.unwrap().paths.matches("SPEC.md"));
    assert_eq!(titles(&with("[spec]\npaths = []")), ["`[spec]` has no `paths`"], "what is empty is not set");
    assert_eq!(titles(&with("[spec]")), ["`[spec]` has no `paths`"]);
    assert_eq!(titles(&with("[spec]\npaths = [\"/a\"]")).len(), 1);
    assert_eq!(titles(&with("[spec]\nfiles = []")), ["`[spec]` has no `paths`", "unknown key `files`"]);
}
