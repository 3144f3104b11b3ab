//! What is said about wrong files as a whole.

use super::messages;

#[test]
fn all_mistakes_are_reported_at_once_in_file_order() {
    let text = r#"
[scenarios.pr]
checks = ["fmt", "tset"]

[checks.test]
command = "cargo test"
tiemout = "5m"

[checks.fmt]
command = ["cargo", "fmt"]
timeout = 30

[verify]
env = 7
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: there is no check `tset`
     --> probity.toml:3:18
      |
    3 | checks = ["fmt", "tset"]
      |                  ^^^^^^
      |
      = help: did you mean `test`?

    error: `command`: expected a list of strings, found a string
     --> probity.toml:6:11
      |
    6 | command = "cargo test"
      |           ^^^^^^^^^^^^ this is a string
      |
      = help: write `command = ["cargo", "test"]`: Probity never uses a shell, so each argument is a string of its own

    error: unknown key `tiemout`
     --> probity.toml:7:1
      |
    7 | tiemout = "5m"
      | ^^^^^^^ not a key of `[checks.NAME]`
      |
      = help: did you mean `timeout`?

    error: `timeout`: expected a string, found an integer
      --> probity.toml:11:11
       |
    11 | timeout = 30
       |           ^^ this is an integer
       |
       = help: write a number with its unit, for example `timeout = "30s"` or `timeout = "5m"`

    error: `env`: expected a list of strings, found an integer
      --> probity.toml:14:7
       |
    14 | env = 7
       |       ^ this is an integer
       |
       = help: write for example `env = ["NAME=value"]`
    "#);
}

#[test]
fn mistakes_of_the_grammar_keep_their_place() {
    insta::assert_snapshot!(messages("[verify]\ncommands = [[\"a\"]\ntimeout = \"1m\"\n"), @r#"
    error: not valid TOML: missing comma between array elements, expected `,`
     --> probity.toml:3:1
      |
    3 | timeout = "1m"
      | ^
      |
      = help: before this, a bracket or a quote may have been left open
    "#);
    insta::assert_snapshot!(messages("[verify]\naudit = no\ntimeout = 5m\n"), @r#"
    error: not valid TOML: `no` is not a value
     --> probity.toml:2:9
      |
    2 | audit = no
      |         ^^
      |
      = help: strings are written in quotes, and the booleans are `true` and `false`

    error: not valid TOML: `5m` is not a value
     --> probity.toml:3:11
      |
    3 | timeout = 5m
      |           ^^
      |
      = help: strings are written in quotes, and the booleans are `true` and `false`
    "#);
    insta::assert_snapshot!(messages("[checks.a]\ncommand = [\"x\"]\n[checks.a]\ncommand = [\"y\"]\n"), @r#"
    error: `a` is written twice
     --> probity.toml:3:9
      |
    3 | [checks.a]
      |         ^ not the first in its table
      |
      = help: a key or table can be written once; join the two
    "#);
}

#[test]
fn names_are_from_a_closed_alphabet() {
    let text = r#"
[packs."../x"]
source = "path:x"
allow = ["tree:**"]
[checks.My_Check]
command = ["x"]
[scenarios."é"]
checks = ["My_Check"]
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: `../x` cannot be the name of a pack
     --> probity.toml:2:8
      |
    2 | [packs."../x"]
      |        ^^^^^^ a name may only have lower-case letters, digits and `-`, not `.`
      |
      = help: write for example `x`

    error: `My_Check` cannot be the name of a check
     --> probity.toml:5:9
      |
    5 | [checks.My_Check]
      |         ^^^^^^^^ a name may only have lower-case letters, digits and `-`, not `M`
      |
      = help: write for example `my-check`

    error: `é` cannot be the name of a scenario
     --> probity.toml:7:12
      |
    7 | [scenarios."é"]
      |            ^^^ a name may only have lower-case letters, digits and `-`, not `é`
    "#);
}

#[test]
fn a_file_without_checks_comes_with_an_example() {
    for text in
        ["", "# nothing\n", "[verify]\ncommands = []\n", "[packs.p]\nsource = \"path:p\"\nallow = [\"tree:**\"]\n"]
    {
        insta::allow_duplicates! { insta::assert_snapshot!(messages(text), @r#"
        error: there are no checks
        --> probity.toml
         = help: say what to run, for example:

                 [verify]
                 commands = [["cargo", "build"], ["cargo", "test"]]
        "#); }
    }
}

#[test]
fn places_are_right_in_files_from_windows() {
    let text = "[verify]\r\ncommands = [[\"é漢\", 1]]\t# x\r\n\ttimeout = 3\r\n";
    insta::assert_snapshot!(messages(text), @r#"
    error: `commands`: expected a string, found an integer
     --> probity.toml:2:20
      |
    2 | commands = [["é漢", 1]]    # x
      |                     ^ this is an integer

    error: `timeout`: expected a string, found an integer
     --> probity.toml:3:12
      |
    3 |     timeout = 3
      |               ^ this is an integer
      |
      = help: write a number with its unit, for example `timeout = "30s"` or `timeout = "5m"`
    "#);
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let text = "[checks.\"\\u001b[31m\u{9b}x\"]\ncommand = [\"\u{202e}\", \"{files}\"] # \u{9b}2J\nb\u{1b}[0m = 1\n";
    let shown = messages(text);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()) && !shown.contains('\u{202e}'), "{shown:?}");
    let valid = "[checks.\"\\u001b[31m\u{9b}x\"]\ncommand = [\"\u{202e}\", \"{files}\"] # \u{9b}2J\n";
    insta::assert_snapshot!(messages(valid), @r#"
    error: `\u{1b}[31m\u{9b}x` cannot be the name of a check
     --> probity.toml:1:9
      |
    1 | [checks."\u001b[31m\u{9b}x"]
      |         ^^^^^^^^^^^^^^^^^^^ a name may only have lower-case letters, digits and `-`, not `\u{1b}`
      |
      = help: write for example `31m-x`

    error: `{files}` needs `files`
     --> probity.toml:2:24
      |
    2 | command = ["\u{202e}", "{files}"] # \u{9b}2J
      |                        ^^^^^^^^^
      |
      = help: say which files: add `files = ["src/**"]` to a check in `[checks.NAME]`
    "#);
}

#[test]
fn a_file_full_of_mistakes_takes_no_time() {
    let names = (0..30_000).map(|n| format!("\"unknown-check-{n}\"")).collect::<Vec<_>>().join(",");
    let checks = (0..5_000).map(|n| format!("[checks.known-{n}]\ncommand = [\"x\"]\n")).collect::<Vec<_>>().concat();
    let shown = messages(&format!("{checks}[scenarios.s]\nchecks = [{names}]"));
    assert!(shown.ends_with("error: 29950 more mistakes are not shown\n"));
    let shown = messages(&format!("{}\n", "x = 1\n".repeat(100_000)));
    assert!(shown.len() < 100_000);
    let long = "x".repeat(500_000);
    for text in [
        format!("\"{long}\" = 1"),
        format!("[verify]\ncommands = \"{long}\"\ntimeout = \"1{long}\"\nenv = [\"{long}\"]"),
        format!("[packs.p]\nsource = \"{long}\"\nallow = [\"{long}:x\", \"tree:{long}\"]"),
        format!("[checks.a]\nuse = \"a/{long}\""),
    ] {
        let shown = messages(&text);
        assert!(shown.len() < 10_000, "{}", shown.len());
    }
}

#[test]
fn what_is_left_out_of_the_subject_is_globs_as_elsewhere() {
    let text = "[subject]\nexclude = [\"/data\", 3]\nexclud = []\n\n[verify]\ncommands = [[\"true\"]]\n";
    insta::assert_snapshot!(messages(text), @r#"
    error: `exclude`: expected a string, found an integer
     --> probity.toml:2:21
      |
    2 | exclude = ["/data", 3]
      |                     ^ this is an integer

    error: unknown key `exclud`
     --> probity.toml:3:1
      |
    3 | exclud = []
      | ^^^^^^ not a key of `[subject]`
      |
      = help: did you mean `exclude`?
    "#);
    let text = "[subject]\nexclude = [\"data/\", \"a{\"]\n\n[verify]\ncommands = [[\"true\"]]\n";
    insta::assert_snapshot!(messages(text), @r#"
    error: the glob `data/` matches nothing
     --> probity.toml:2:12
      |
    2 | exclude = ["data/", "a{"]
      |            ^^^^^^^ paths of files do not end with `/`; write `folder/**` for all that is in a folder
      |
      = help: globs are about paths from the root of what is verified: write for example `src/**` or `*.md`

    error: the glob `a{` is not valid
     --> probity.toml:2:21
      |
    2 | exclude = ["data/", "a{"]
      |                     ^^^^ unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
      |
      = help: `[a-z]` is one of some characters, `{js,ts}` one of some words; a `\` before such a sign means the sign itself
    "#);
    let text = "subject = [\"data/**\"]\n\n[verify]\ncommands = [[\"true\"]]\n";
    insta::assert_snapshot!(messages(text), @r#"
    error: `subject`: expected a table, found a list
     --> probity.toml:1:11
      |
    1 | subject = ["data/**"]
      |           ^^^^^^^^^^^ this is a list
      |
      = help: write `[subject]`
    "#);
    let text = "[subject]\nexclude = [\"!data/**\"]\n\n[verify]\ncommands = [[\"true\"]]\n";
    insta::assert_snapshot!(messages(text), @r#"
    error: the globs match nothing: all of them exclude
     --> probity.toml:2:12
      |
    2 | exclude = ["!data/**"]
      |            ^^^^^^^^^^
      |
      = help: put `"**"` first to mean everything else
    "#);
}
