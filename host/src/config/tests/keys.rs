//! What is said about keys that do not exist, and about values of the wrong kind.

use super::{messages, titles};

#[test]
fn unknown_keys_come_with_a_suggestion_or_the_known_ones() {
    let text = r#"
[check.a]
x = 1
[verify]
shell = true
[packs.p]
sorce = "file:a.wasm"
[checks.a]
fail-fast = true
[scenarios.s]
fail_fast = true
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: unknown key `check`
     --> probity.toml:2:2
      |
    2 | [check.a]
      |  ^^^^^ not a key of the file's top level
      |
      = help: did you mean `checks`?

    error: unknown key `shell`
     --> probity.toml:5:1
      |
    5 | shell = true
      | ^^^^^ not a key of `[verify]`
      |
      = help: the keys of `[verify]` are `commands`, `timeout`, `env`, `secrets`, `jobs` and `audit`

    error: pack `p` has no `source`
     --> probity.toml:6:8
      |
    6 | [packs.p]
      |        ^
      |
      = help: add `source = "path:FOLDER"` for the sources of a pack, or `source = "file:PACK.wasm"`

    error: pack `p` has no `allow`
     --> probity.toml:6:8
      |
    6 | [packs.p]
      |        ^ it may read nothing
      |
      = help: add what its checks may read: `allow = ["tree:**"]` is the whole tree

    error: unknown key `sorce`
     --> probity.toml:7:1
      |
    7 | sorce = "file:a.wasm"
      | ^^^^^ not a key of `[packs.NAME]`
      |
      = help: did you mean `source`?

    error: check `a` does nothing
     --> probity.toml:8:9
      |
    8 | [checks.a]
      |         ^
      |
      = help: add `command = ["program", "argument"]` or `use = "pack/check"`

    error: unknown key `fail-fast`
     --> probity.toml:9:1
      |
    9 | fail-fast = true
      | ^^^^^^^^^ not a key of `[checks.NAME]`
      |
      = help: the keys of `[checks.NAME]` are `command`, `use`, `after`, `parallel`, `needs`, `timeout`, `blocking`, `env`, `pass-env`, `inherit-env`, `secrets`, `gap-exit`, `fingerprint`, `ambient`, `isolate`, `files`, `allow-empty`, `when`, `tests`, `severities`, `baseline`, `config` and `limits`

    error: scenario `s` has no checks
      --> probity.toml:10:12
       |
    10 | [scenarios.s]
       |            ^
       |
       = help: add `checks = ["NAME"]` with the names of its checks, in order

    error: unknown key `fail_fast`
      --> probity.toml:11:1
       |
    11 | fail_fast = true
       | ^^^^^^^^^ not a key of `[scenarios.NAME]`
       |
       = help: did you mean `fail-fast`?
    "#);
}

#[test]
fn what_is_to_come_is_named_as_such() {
    let text = r#"
[capabilities.docker]
probe = ["docker", "info"]
[verify]
commands = [["x", "{files}"]]
audit = true
base = "main"
[packs.p]
source = "bundled:hygiene"
[packs.q]
source = "oci://registry/name:tag"
allow = ["tree:**"]
[checks.a]
command = ["ruff", "check", "{files}"]
files = ["**/*.py"]
[scenarios.s]
checks = ["a"]
when = "x"
[user]
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: `{files}` needs `files`
     --> probity.toml:5:19
      |
    5 | commands = [["x", "{files}"]]
      |                   ^^^^^^^^^
      |
      = help: say which files: add `files = ["src/**"]` to a check in `[checks.NAME]`

    error: `audit` is not supported yet
     --> probity.toml:6:9
      |
    6 | audit = true
      |         ^^^^ nothing would audit
      |
      = help: remove it or write `audit = false`; only commands and packs are run so far

    error: `base` is not supported yet
     --> probity.toml:7:1
      |
    7 | base = "main"
      | ^^^^ in `[verify]`
      |
      = help: remove it; until then, checks judge the whole tree

    error: a `bundled:` pack is not supported yet
     --> probity.toml:9:10
      |
    9 | source = "bundled:hygiene"
      |          ^^^^^^^^^^^^^^^^^
      |
      = help: write `path:FOLDER` for the sources of a pack, or `file:PACK.wasm` for a component

    error: an `oci:` pack is not supported yet
      --> probity.toml:11:10
       |
    11 | source = "oci://registry/name:tag"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: fetch the component, commit it, and write `file:PACK.wasm`

    error: `when` is not supported yet
      --> probity.toml:18:1
       |
    18 | when = "x"
       | ^^^^ in `[scenarios.NAME]`
       |
       = help: remove it; name the scenario on the command line where it is wanted

    error: `user` is not supported yet
      --> probity.toml:19:2
       |
    19 | [user]
       |  ^^^^ in the file's top level
       |
       = help: remove it; until then, all settings are those of this file
    "#);
}

#[test]
fn everything_to_come_says_what_to_do_until_then() {
    for (table, keys) in [
        ("", &["user", "agent", "prompts", "trust"][..]),
        ("[verify]", &["base", "when", "fail-fast", "prompts"]),
        ("[packs.p]", &["digest"]),
        ("[checks.a]", &["review", "base"]),
        ("[scenarios.s]", &["when"]),
    ] {
        for key in keys {
            let shown = messages(&format!("{table}\n{key} = 1\n"));
            assert!(shown.contains(&format!("error: `{key}` is not supported yet\n")), "{shown}");
            assert!(shown.contains("= help: "), "{shown}");
        }
    }
}

#[test]
fn what_the_user_alone_may_say_is_refused_with_its_place() {
    insta::assert_snapshot!(messages("walls = \"strict\"\n[limits]\nfuel = 9\n[checks.a]\ncommand = [\"x\"]\n"));
}

#[test]
fn every_key_refuses_the_wrong_kind_of_value() {
    let frames = [
        (
            "[verify]",
            &[
                ("commands", "a list of lists of strings"),
                ("timeout", "a string"),
                ("env", "a list of strings"),
                ("secrets", "a list of strings"),
                ("jobs", "an integer"),
                ("audit", "`true` or `false`"),
            ][..],
        ),
        ("[packs.p]", &[("source", "a string"), ("allow", "a list of strings")]),
        (
            "[checks.c]",
            &[
                ("command", "a list of strings"),
                ("use", "a string"),
                ("after", "a list of strings"),
                ("parallel", "`true` or `false`"),
                ("timeout", "a string"),
                ("blocking", "`true` or `false`"),
                ("env", "a list of strings"),
                ("pass-env", "a list of strings"),
                ("inherit-env", "`true` or `false`"),
                ("secrets", "a list of strings"),
                ("files", "a list of strings"),
                ("config", "a table"),
                ("limits", "a table"),
                ("limits.fuel", "an integer"),
                ("limits.memory", "a size or an integer"),
                ("limits.wall", "a string"),
                ("limits.output", "a size or an integer"),
                ("limits.findings", "an integer"),
                ("limits.handles", "an integer"),
            ],
        ),
        (
            "[scenarios.s]",
            &[
                ("checks", "a list of strings"),
                ("fail-fast", "`true` or `false`"),
                ("timeout", "a string"),
                ("jobs", "an integer"),
                ("base", "a string"),
            ],
        ),
        (
            "",
            &[
                ("verify", "a table"),
                ("packs", "tables named `[packs.NAME]`"),
                ("checks", "tables named `[checks.NAME]`"),
                ("scenarios", "tables named `[scenarios.NAME]`"),
                ("spec", "a table"),
            ],
        ),
        ("[spec]", &[("paths", "a list of strings")]),
    ];
    let values = [
        ("\"text\"", "a string", "a string"),
        ("7", "an integer", "an integer"),
        ("1.5", "a float", "a float"),
        ("true", "a boolean", "`true` or `false`"),
        ("2026-12-01", "a date or time", "a date or time"),
        ("[7]", "a list", "a list"),
        ("[{}]", "a list of tables", "a list"),
        ("{}", "a table", "a table"),
    ];
    for (table, keys) in frames {
        for (key, expected) in keys {
            for (value, found, kind) in values {
                let name = key.rsplit('.').next().unwrap();
                let fits = expected.contains(kind) || (*expected == "a size or an integer" && kind == "a string");
                let table_fits = expected.starts_with("tables") && value == "{}";
                let list_fits = expected.starts_with("a list") && value.starts_with('[');
                let titles = titles(&format!("{table}\n{key} = {value}\n"));
                let wanted = format!("`{name}`: expected {expected}, found {found}");
                if list_fits {
                    // The list is right, and its item is not.
                    let item = if value == "[7]" { "an integer" } else { "a table" };
                    let text = if name == "commands" { "a list of strings" } else { "a string" };
                    assert!(
                        titles.contains(&format!("`{name}`: expected {text}, found {item}")),
                        "{key} {value}: {titles:?}"
                    );
                } else if fits || table_fits {
                    assert!(!titles.iter().any(|title| title.contains("expected")), "{key} {value}: {titles:?}");
                } else {
                    assert!(titles.contains(&wanted), "{key} {value}: {titles:?}");
                }
            }
        }
    }
    assert_eq!(titles("[checks]\na = 1"), ["`a`: expected a table, found an integer"]);
    assert_eq!(
        titles("[[checks]]\ncommand = []"),
        ["`checks`: expected tables named `[checks.NAME]`, found a list of tables"]
    );
}

#[test]
fn a_wrong_value_does_not_lead_to_further_messages() {
    let text = r#"
[verify]
commands = 1
[packs]
p = "file:x.wasm"
[checks]
a = ["x"]
[checks.Bad_Name]
use = "p/c"
[checks.c]
command = 1
[scenarios.s]
checks = ["verify-1", "a", "Bad_Name", "c"]
"#;
    assert_eq!(
        titles(text),
        [
            "`commands`: expected a list of lists of strings, found an integer",
            "`p`: expected a table, found a string",
            "`a`: expected a table, found a list",
            "`Bad_Name` cannot be the name of a check",
            "`command`: expected a list of strings, found an integer",
        ]
    );
}
