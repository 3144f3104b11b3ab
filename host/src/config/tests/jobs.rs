//! How many commands may run side by side, and which.

use super::super::MAX_JOBS;
use super::{good, messages};

#[test]
fn one_after_the_other_unless_a_scenario_says_otherwise() {
    let jobs = |text: &str| good(text).scenario("default").unwrap().jobs;
    assert_eq!(jobs("[verify]\ncommands = [[\"a\"]]\n"), 1);
    assert_eq!(jobs("[verify]\njobs = 4\n[checks.a]\ncommand = [\"a\"]\n"), 4);
    let scenario =
        |jobs: u8| format!("[checks.a]\ncommand = [\"a\"]\n[scenarios.s]\nchecks = [\"a\"]\njobs = {jobs}\n");
    let config = good(&scenario(MAX_JOBS));
    let of = |name: &str| config.scenario(name).unwrap().jobs;
    assert_eq!((of("s"), of("default")), (MAX_JOBS, 1), "each scenario speaks for itself");
}

#[test]
fn a_command_runs_beside_others_only_where_that_is_said() {
    let config = good(
        "[verify]\ncommands = [[\"a\"]]\n[checks.a]\ncommand = [\"a\"]\n\
         [checks.b]\ncommand = [\"b\"]\nparallel = true\n[checks.c]\ncommand = [\"c\"]\nparallel = false\n",
    );
    let parallel: Vec<bool> = config.checks.iter().map(|check| check.parallel).collect();
    assert_eq!(parallel, [false, false, true, false]);
}

#[test]
fn numbers_and_places_without_a_meaning_come_with_what_to_write() {
    let text = r#"
[verify]
commands = [["a"]]
jobs = 0
[packs.p]
source = "file:p.wasm"
allow = ["tree:**"]
[checks.b]
use = "p/b"
parallel = true
[scenarios.default]
checks = ["verify-1", "b"]
jobs = 65
[scenarios.less]
checks = ["b"]
jobs = -1
[scenarios.text]
checks = ["b"]
jobs = "4"
"#;
    insta::assert_snapshot!(messages(text));
}
