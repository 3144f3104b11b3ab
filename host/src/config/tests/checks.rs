//! What is said about wrong checks and scenarios.

use super::messages;

#[test]
fn a_shell_line_comes_with_the_list_to_write() {
    insta::assert_snapshot!(messages("[verify]\ncommands = \"go build ./...\"\n"), @r#"
    error: `commands`: expected a list of lists of strings, found a string
     --> probity.toml:2:12
      |
    2 | commands = "go build ./..."
      |            ^^^^^^^^^^^^^^^^ this is a string
      |
      = help: write `commands = [["go", "build", "./..."]]`: Probity never uses a shell, so each argument is a string of its own
    "#);
    insta::assert_snapshot!(messages("[verify]\ncommands = [\"go\", \"build\"]\n"), @r#"
    error: `commands`: expected a list of lists of strings, found a list of strings
     --> probity.toml:2:12
      |
    2 | commands = ["go", "build"]
      |            ^^^^^^^^^^^^^^^ this is a list of strings
      |
      = help: write `commands = [["go", "build"]]`: Probity never uses a shell, so each argument is a string of its own
    "#);
    insta::assert_snapshot!(messages("[verify]\ncommands = [\"go build\", \"go test\"]\n"), @r#"
    error: `commands`: expected a list of lists of strings, found a list of strings
     --> probity.toml:2:12
      |
    2 | commands = ["go build", "go test"]
      |            ^^^^^^^^^^^^^^^^^^^^^^^ this is a list of strings
      |
      = help: write `commands = [["go", "build"], ["go", "test"]]`: Probity never uses a shell, so each argument is a string of its own
    "#);
    insta::assert_snapshot!(messages("[verify]\ncommands = [[\"go\"], \"a | b\"]\n"), @r#"
    error: `commands`: expected a list of strings, found a string
     --> probity.toml:2:21
      |
    2 | commands = [["go"], "a | b"]
      |                     ^^^^^^^ this is a string
      |
      = help: write `["program", "argument"]`: Probity never uses a shell, so each argument is a string of its own
    "#);
}

#[test]
fn a_check_does_one_thing() {
    let text = r#"
[checks.a]
[checks.b]
command = ["x"]
use = "p/c"
[checks.c]
command = []
[checks.d]
command = ["", "a\u0000"]
config = {}
limits = {}
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: check `a` does nothing
     --> probity.toml:2:9
      |
    2 | [checks.a]
      |         ^
      |
      = help: add `command = ["program", "argument"]` or `use = "pack/check"`

    error: check `b` has both a `command` and a `use`
     --> probity.toml:5:1
      |
    4 | command = ["x"]
      | ------- and this
    5 | use = "p/c"
      | ^^^
      |
      = help: make two checks of it

    error: check `c` does nothing
     --> probity.toml:6:9
      |
    6 | [checks.c]
      |         ^
      |
      = help: add `command = ["program", "argument"]` or `use = "pack/check"`

    error: the name of the program is empty
     --> probity.toml:9:12
      |
    9 | command = ["", "a\u0000"]
      |            ^^
      |
      = help: write the program first, then its arguments

    error: the argument has a NUL character
     --> probity.toml:9:16
      |
    9 | command = ["", "a\u0000"]
      |                ^^^^^^^^^
      |
      = help: no program can receive one

    error: `config` has no meaning for a command
      --> probity.toml:10:1
       |
    10 | config = {}
       | ^^^^^^ only checks with `use` have it
       |
       = help: pass options as arguments, or through `env`

    error: `limits` has no meaning for a command
      --> probity.toml:11:1
       |
    11 | limits = {}
       | ^^^^^^ only checks with `use` have it
       |
       = help: set `timeout` to bound a command
    "#);
}

#[test]
fn each_kind_of_check_has_keys_of_its_own() {
    let text = r#"
[packs.pack]
source = "path:p"
allow = ["tree:**"]
[checks.e]
use = "pakc/c"
env = ["A=b"]
pass-env = ["A"]
inherit-env = false
[checks.f]
use = "pack"
[checks.g]
use = "other/c"
[checks.h]
command = ["x"]
pass-env = ["A"]
inherit-env = true
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: there is no pack `pakc`
     --> probity.toml:6:7
      |
    6 | use = "pakc/c"
      |       ^^^^^^^^
      |
      = help: did you mean `pack/c`?

    error: `env` has no meaning for a check of a pack
     --> probity.toml:7:1
      |
    7 | env = ["A=b"]
      | ^^^ only checks with `command` have it
      |
      = help: remove it: a pack sees no environment, and its options are in `config`

    error: `pass-env` has no meaning for a check of a pack
     --> probity.toml:8:1
      |
    8 | pass-env = ["A"]
      | ^^^^^^^^ only checks with `command` have it
      |
      = help: remove it: a pack sees no environment, and its options are in `config`

    error: `inherit-env` has no meaning for a check of a pack
     --> probity.toml:9:1
      |
    9 | inherit-env = false
      | ^^^^^^^^^^^ only checks with `command` have it
      |
      = help: remove it: a pack sees no environment, and its options are in `config`

    error: `pack` does not name a check of a pack
      --> probity.toml:11:7
       |
    11 | use = "pack"
       |       ^^^^^^
       |
       = help: write `use = "pack/check"`

    error: there is no pack `other`
      --> probity.toml:13:7
       |
    13 | use = "other/c"
       |       ^^^^^^^^^
       |
       = help: the packs are `pack`

    error: `pass-env` has no effect with `inherit-env = true`
      --> probity.toml:16:1
       |
    16 | pass-env = ["A"]
       | ^^^^^^^^
    17 | inherit-env = true
       |               ---- everything is passed
       |
       = help: remove one of them
    "#);
}

#[test]
fn a_baseline_is_for_checks_of_packs() {
    let text = "[checks.a]\ncommand = [\"x\"]\nbaseline = true\n\
        [scenarios.s]\nchecks = [\"a\"]\nbase = \"main\"\nbaseline = true\n";
    insta::assert_snapshot!(messages(text), @r"
    error: `baseline` has no meaning for a command
     --> probity.toml:3:1
      |
    3 | baseline = true
      | ^^^^^^^^ only checks with `use` have it
      |
      = help: remove it: a command is not run on the base, so all that it finds counts

    error: `baseline` does not belong here
     --> probity.toml:7:1
      |
    7 | baseline = true
      | ^^^^^^^^ in `[scenarios.NAME]`
      |
      = help: set it for a check of a pack, in `[checks.NAME]`; the `base` is the scenario's
    ");
}

#[test]
fn options_of_logic_checks_are_checked() {
    let text = r#"
[packs.p]
source = "path:p"
allow = ["tree:**"]
[checks.a]
use = "p/c"
files = ["!x", "!y"]
limits = { fuel = 0, memory = "64MB", cpu = 1 }
config = { when = 2026-12-01, big = [1, inf, nan], huge = 9223372036854775808 }
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: the globs match nothing: all of them exclude
     --> probity.toml:7:10
      |
    7 | files = ["!x", "!y"]
      |          ^^^^^^^^^^
      |
      = help: put `"**"` first to mean everything else

    error: `fuel` must be more than zero
     --> probity.toml:8:19
      |
    8 | limits = { fuel = 0, memory = "64MB", cpu = 1 }
      |                   ^
      |
      = help: leave it out to have the default

    error: `MB` is not a unit of size
     --> probity.toml:8:31
      |
    8 | limits = { fuel = 0, memory = "64MB", cpu = 1 }
      |                               ^^^^^^
      |
      = help: `MB` is read as thousands by some and as powers of two by others; write `MiB`

    error: unknown key `cpu`
     --> probity.toml:8:39
      |
    8 | limits = { fuel = 0, memory = "64MB", cpu = 1 }
      |                                       ^^^ not a key of `limits`
      |
      = help: the keys of `limits` are `fuel`, `memory`, `wall`, `output`, `findings` and `handles`

    error: `when`: options cannot be dates or times
     --> probity.toml:9:19
      |
    9 | config = { when = 2026-12-01, big = [1, inf, nan], huge = 9223372036854775808 }
      |                   ^^^^^^^^^^ JSON has no dates
      |
      = help: options reach a check as JSON; write a string

    error: `big`: the number is not finite
     --> probity.toml:9:41
      |
    9 | config = { when = 2026-12-01, big = [1, inf, nan], huge = 9223372036854775808 }
      |                                         ^^^ JSON has no such number
      |
      = help: options reach a check as JSON; write a finite number or a string

    error: `big`: the number is not finite
     --> probity.toml:9:46
      |
    9 | config = { when = 2026-12-01, big = [1, inf, nan], huge = 9223372036854775808 }
      |                                              ^^^ JSON has no such number
      |
      = help: options reach a check as JSON; write a finite number or a string

    error: `huge`: the number is too large
     --> probity.toml:9:59
      |
    9 | config = { when = 2026-12-01, big = [1, inf, nan], huge = 9223372036854775808 }
      |                                                           ^^^^^^^^^^^^^^^^^^^
      |
      = help: integers have 64 bits, from -2^63 to 2^63-1
    "#);
}

#[test]
fn scope_and_limits_of_logic_checks_mean_something() {
    let text = r#"
[packs.p]
source = "path:p"
allow = ["tree:**"]
[checks.b]
use = "p/c"
limits = { fuel = 99999999999999999999, memory = "64" }
[checks.c]
use = "p/c"
files = ["src/", "a"]
limits = { fuel = -1, memory = "0B" }
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: `fuel`: the number is too large
     --> probity.toml:7:19
      |
    7 | limits = { fuel = 99999999999999999999, memory = "64" }
      |                   ^^^^^^^^^^^^^^^^^^^^
      |
      = help: integers have 64 bits, from -2^63 to 2^63-1

    error: `64` has no unit
     --> probity.toml:7:50
      |
    7 | limits = { fuel = 99999999999999999999, memory = "64" }
      |                                                  ^^^^
      |
      = help: write the unit, for example `"64MiB"`

    error: the glob `src/` matches nothing
      --> probity.toml:10:10
       |
    10 | files = ["src/", "a"]
       |          ^^^^^^ paths of files do not end with `/`; write `folder/**` for all that is in a folder
       |
       = help: globs are about paths from the root of what is verified: write for example `src/**` or `*.md`

    error: `fuel` must be more than zero
      --> probity.toml:11:19
       |
    11 | limits = { fuel = -1, memory = "0B" }
       |                   ^^
       |
       = help: leave it out to have the default

    error: `memory` must be more than zero
      --> probity.toml:11:32
       |
    11 | limits = { fuel = -1, memory = "0B" }
       |                                ^^^^
       |
       = help: leave it out to have the default
    "#);
}

#[test]
fn environments_have_names_and_values() {
    let text = r#"
[verify]
env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
commands = [["x"]]
[checks.a]
command = ["x"]
pass-env = ["A", "A=1", "é", "A"]
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: `B` sets no variable
     --> probity.toml:3:15
      |
    3 | env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
      |               ^^^ there is no `=`
      |
      = help: write `"NAME=value"`

    error: `` is not a name of a variable
     --> probity.toml:3:20
      |
    3 | env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
      |                    ^^^^
      |
      = help: names have letters, digits and `_`, and do not start with a digit

    error: `1A` is not a name of a variable
     --> probity.toml:3:26
      |
    3 | env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
      |                          ^^^^^^
      |
      = help: names have letters, digits and `_`, and do not start with a digit

    error: `A` is set twice
     --> probity.toml:3:34
      |
    3 | env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
      |        ----- set here first      ^^^^^
      |
      = help: remove one of them

    error: the value of `C` has a NUL character
     --> probity.toml:3:41
      |
    3 | env = ["A=1", "B", "=x", "1A=x", "A=2", "C=a\u0000b"]
      |                                         ^^^^^^^^^^^^
      |
      = help: no program can receive one

    error: `pass-env` takes names, not values
     --> probity.toml:7:18
      |
    7 | pass-env = ["A", "A=1", "é", "A"]
      |                  ^^^^^
      |
      = help: write `A` here, or set the value in `env`

    error: `é` is not a name of a variable
     --> probity.toml:7:25
      |
    7 | pass-env = ["A", "A=1", "é", "A"]
      |                         ^^^
      |
      = help: names have letters, digits and `_`, and do not start with a digit

    error: `A` is passed twice
     --> probity.toml:7:30
      |
    7 | pass-env = ["A", "A=1", "é", "A"]
      |             ---              ^^^
      |             |
      |             passed here first
      |
      = help: remove one of them
    "#);
}

#[test]
fn durations_come_with_what_to_write() {
    let text = r#"
[verify]
commands = [["x"]]
timeout = "-5m"
[checks.a]
command = ["x"]
timeout = "30"
[scenarios.s]
checks = ["a"]
timeout = "1d"
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: a duration cannot be negative
     --> probity.toml:4:11
      |
    4 | timeout = "-5m"
      |           ^^^^^
      |
      = help: leave the key out to set no limit

    error: `30` has no unit
     --> probity.toml:7:11
      |
    7 | timeout = "30"
      |           ^^^^
      |
      = help: write the unit, for example `30s` for seconds or `30m` for minutes

    error: `d` is not a unit of time
      --> probity.toml:10:11
       |
    10 | timeout = "1d"
       |           ^^^^
       |
       = help: write days in hours: `24h` is one day
    "#);
}

#[test]
fn scenarios_name_checks_that_exist_once_each() {
    let text = r#"
[verify]
commands = [["x"]]
timeout = "5m"
[checks.verify-1]
command = ["x"]
[checks.lint]
command = ["x"]
[scenarios.a]
checks = ["lnit", "lint", "lint", "deploy"]
[scenarios.b]
checks = []
[scenarios.default]
fail-fast = true
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: the `timeout` of `[verify]` has no effect
      --> probity.toml:4:11
       |
     4 | timeout = "5m"
       |           ^^^^ this is about the scenario `default`
    ...
    13 | [scenarios.default]
       |            ------- which is written here
       |
       = help: move it to `[scenarios.default]`

    error: `verify-1` is the name of a command of `[verify]`
     --> probity.toml:5:9
      |
    3 | commands = [["x"]]
      |             ----- of this one
    4 | timeout = "5m"
    5 | [checks.verify-1]
      |         ^^^^^^^^
      |
      = help: give the check another name

    error: there is no check `lnit`
      --> probity.toml:10:11
       |
    10 | checks = ["lnit", "lint", "lint", "deploy"]
       |           ^^^^^^
       |
       = help: did you mean `lint`?

    error: `lint` is named twice
      --> probity.toml:10:27
       |
    10 | checks = ["lnit", "lint", "lint", "deploy"]
       |                   ------  ^^^^^^
       |                   |
       |                   here first
       |
       = help: a check runs once; remove one of them

    error: there is no check `deploy`
      --> probity.toml:10:35
       |
    10 | checks = ["lnit", "lint", "lint", "deploy"]
       |                                   ^^^^^^^^
       |
       = help: the checks are `verify-1`, `verify-1` and `lint`

    error: scenario `b` has no checks
      --> probity.toml:11:12
       |
    11 | [scenarios.b]
       |            ^
       |
       = help: add `checks = ["NAME"]` with the names of its checks, in order

    error: scenario `default` has no checks
      --> probity.toml:13:12
       |
    13 | [scenarios.default]
       |            ^^^^^^^
       |
       = help: add `checks = ["NAME"]` with the names of its checks, in order
    "#);
}

#[test]
fn the_name_of_the_file_with_all_output_is_no_name_of_a_check() {
    let said = messages("[checks.verify]\ncommand = [\"true\"]\n[checks.verify-all]\ncommand = [\"true\"]\n");
    assert!(
        said.contains("`verify` cannot be the name of a check") && said.contains("help: write for example"),
        "{said}"
    );
    assert!(said.contains(":1:9"), "with its place: {said}");
}
