//! Commands side by side: what overlaps, what does not, and that nothing that is judged, kept or shown depends on when
//! they end.
//!
//! Commands wait for each other through pipes with names, which lie beside the project: where one would not run beside
//! the other, it would wait for ever.

use crate::support::{Project, alive, around, eventually, row};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// A check of each of these, `NAME command`, all of them marked, in a scenario with this above it.
fn project(scenario: &str, checks: &[(&str, &str)]) -> Project {
    let names: Vec<&str> = checks.iter().map(|(name, _)| *name).collect();
    let mut config = format!("[scenarios.default]\nchecks = {names:?}\n{scenario}\n");
    for (name, script) in checks {
        config.push_str(&format!("[checks.{name}]\ncommand = [\"sh\", \"-c\", {script:?}]\nparallel = true\n"));
    }
    Project::with(&config)
}

/// Pipes beside the project.
fn pipes(project: &Project, names: &[&str]) {
    for name in names {
        assert!(Command::new("mkfifo").arg(project.outside().join(name)).status().unwrap().success());
    }
}

fn verify(project: &Project, arguments: &[&str]) -> (i32, Value) {
    let ran = project.run(&[&["verify", "--json"], arguments].concat());
    let document = serde_json::from_str(&ran.stdout);
    (ran.code.unwrap(), document.unwrap_or_else(|error| panic!("{error}: {}\n{}", ran.stdout, ran.stderr)))
}

fn verdict(document: &Value) -> &str {
    document["record"]["verdict_digest"].as_str().unwrap_or_else(|| panic!("no verdict: {document:#}"))
}

/// Says that it is there, and waits for the other to say so.
const MEET: [(&str, &str); 2] = [
    ("one", "echo > ../one; read there < ../other; echo one"),
    ("other", "read there < ../one; echo > ../other; echo other"),
];

#[test]
fn marked_commands_run_beside_each_other() {
    let scenario = project("jobs = 2", &MEET);
    pipes(&scenario, &["one", "other"]);
    let (code, document) = verify(&scenario, &[]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["record"]["jobs"], 2);
    let option = project("", &MEET);
    pipes(&option, &["one", "other"]);
    assert_eq!(verify(&option, &["--jobs", "2"]).0, 0);
    let short = Project::with(
        &fs::read_to_string(option.path("probity.toml"))
            .unwrap()
            .replace("[scenarios.default]\nchecks = [\"one\", \"other\"]", "[verify]\njobs = 2"),
    );
    pipes(&short, &["one", "other"]);
    assert_eq!(verify(&short, &[]).0, 0);
}

#[test]
fn no_more_run_side_by_side_than_may_and_an_unmarked_one_alone() {
    // Each takes what is there once, and is red where another has it.
    let alone = "mkdir ../taken && echo >> ../marks && rmdir ../taken";
    let checks: Vec<(String, &str)> = (0..8).map(|n| (format!("c{n}"), alone)).collect();
    let checks: Vec<(&str, &str)> = checks.iter().map(|(name, script)| (name.as_str(), *script)).collect();
    let project = project("jobs = 8", &checks);
    let (code, document) = verify(&project, &["-j", "1"]);
    assert_eq!((code, &document["record"]["jobs"]), (0, &Value::Null), "{document:#}");
    let unmarked = fs::read_to_string(project.path("probity.toml")).unwrap().replace("parallel = true\n", "");
    project.write("probity.toml", unmarked);
    assert_eq!(verify(&project, &[]).0, 0);
    assert_eq!(fs::read_to_string(project.outside().join("marks")).unwrap(), "\n".repeat(16));
    for (jobs, why) in [("0", "0 is not in 1..=64"), ("65", "65 is not in 1..=64"), ("x", "invalid digit")] {
        let ran = project.run(&["verify", "--jobs", jobs]).exits(2);
        assert!(ran.stderr.contains("'--jobs <N>'") && ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[test]
fn a_check_starts_when_those_have_ended_that_it_comes_after() {
    let project = project(
        "jobs = 4",
        &[
            ("first", "echo > ../one; read there < ../other; echo > ../done"),
            ("later", "test -e ../done"),
            // It does not wait with the one before it.
            ("beside", "read there < ../one; echo > ../other"),
        ],
    );
    let config = fs::read_to_string(project.path("probity.toml")).unwrap();
    project.write("probity.toml", config.replace("[checks.later]\n", "[checks.later]\nafter = [\"first\"]\n"));
    pipes(&project, &["one", "other"]);
    let (code, document) = verify(&project, &[]);
    assert_eq!(code, 0, "{document:#}");
}

/// `early` ends only once `witness` has been ended, and `red` turns red only once `late` has ended, since it is then that
/// there is room for `witness`.
const RED: [(&str, &str); 4] = [
    ("early", "read end < ../held; echo early"),
    ("red", "read start < ../started; echo red; exit 3"),
    ("late", "echo late"),
    ("witness", "echo witness; exec 3> ../held; echo > ../started; exec sleep 600"),
];

#[test]
fn checks_before_the_first_red_one_run_to_their_end_and_those_after_it_count_for_nothing() {
    let project = project("jobs = 3", &RED);
    pipes(&project, &["held", "started"]);
    let (code, document) = verify(&project, &[]);
    assert_eq!(code, 1);
    assert_eq!(document["record"]["verdict"]["outcome"], "failed");
    assert_eq!(row(&document, "early")["outcome"], "passed");
    assert_eq!(row(&document, "red")["outcome"], "failed");
    for (name, outcome) in [("late", "passed"), ("witness", "interrupted")] {
        assert_eq!(row(&document, name)["outcome"], json!({"skipped": {"after_failure": "red"}}));
        assert_eq!(around(&document, name)["seen"], json!({"outcome": outcome, "findings": [], "stats": []}));
    }
    assert_eq!(around(&document, "witness")["exit"], json!({"signal": 15}));
    assert_eq!(around(&document, "early")["seen"], Value::Null);
    // What was seen is kept.
    let log = project.run(&["show", "--log"]).exits(0).stdout;
    let parts = ["early", "red", "late", "witness"].map(|name| format!("==> {name} <==\n{name}\n\n"));
    assert_eq!(log, parts.concat());
    assert_eq!(project.run(&["show", "--log", "--check", "late"]).exits(0).stdout, "late\n");
    // And shown, now and later.
    let ran = project.run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
    let shown = project.run(&["show"]).exits(0).stdout;
    assert!(shown.ends_with(&ran.stdout), "{shown}");
}

#[test]
fn an_earlier_red_one_takes_the_place_of_a_later_one() {
    let checks = [
        ("first", "read end < ../held; exit 4"),
        ("second", "read start < ../started; exit 5"),
        ("third", "exec 3> ../held; echo > ../started; exec sleep 600"),
    ];
    let project = project("jobs = 3", &checks);
    pipes(&project, &["held", "started"]);
    let (_, document) = verify(&project, &[]);
    assert_eq!(row(&document, "first")["outcome"], "failed");
    for (name, outcome) in [("second", "failed"), ("third", "interrupted")] {
        assert_eq!(row(&document, name)["outcome"], json!({"skipped": {"after_failure": "first"}}));
        assert_eq!(around(&document, name)["seen"]["outcome"], outcome);
    }
    assert_eq!(around(&document, "second")["exit"], json!({"code": 5}));
}

#[test]
fn what_was_found_by_a_check_that_does_not_count_is_no_part_of_the_verdict_and_is_shown() {
    let found = r#"{"message": "so many", "findings": [{"rule": "r", "severity": "error", "message": "found"}]}"#;
    let late = format!("read start < ../started; printf '%s' '{found}' > $PROBITY_RESULT; echo said; exit 1");
    let checks = [
        ("red", "read end < ../held; exit 1"),
        ("late", late.as_str()),
        // It is ended once the one before it is red.
        ("witness", "exec 3> ../held; echo > ../started; exec sleep 600"),
    ];
    let project = project("jobs = 3", &checks);
    pipes(&project, &["held", "started"]);
    let ran = project.run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
    let (_, document) = verify(&project, &[]);
    assert_eq!(row(&document, "late")["findings"], json!([]));
    assert_eq!(around(&document, "late")["seen"]["findings"][0]["message"], "found");
    assert_eq!(around(&document, "late")["message"], "so many");
}

#[test]
fn the_verdict_is_the_same_however_many_run_side_by_side() {
    // Each of these is the place of the red one, and with four of them none waits for another.
    for (fail_fast, red) in [(true, Some(0)), (true, Some(1)), (true, Some(3)), (true, None), (false, Some(1))] {
        let names = ["a", "b", "c", "d"];
        let script = |place: usize| if red == Some(place) { "exit 1" } else { "exit 0" };
        let checks: Vec<(&str, &str)> = names.iter().enumerate().map(|(n, name)| (*name, script(n))).collect();
        let project = project(&format!("fail-fast = {fail_fast}"), &checks);
        let digests: Vec<String> = ["1", "2", "4", "64"]
            .iter()
            .map(|jobs| verdict(&verify(&project, &["--jobs", jobs]).1).to_owned())
            .collect();
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{red:?}: {digests:?}");
    }
}

#[test]
fn the_verdict_is_the_same_whether_later_checks_have_ended_or_never_started() {
    let checks = [("red", "test ! -e ../wait || read start < ../started; exit 1"), ("late", "true"), RED[3]];
    let project = project("", &checks);
    pipes(&project, &["started", "held"]);
    let alone = verify(&project, &["--jobs", "1"]).1;
    assert_eq!(around(&alone, "late")["seen"], Value::Null);
    fs::write(project.outside().join("wait"), "").unwrap();
    // `witness` opens the pipe for writing, and would wait for a reader.
    let mut reader = Command::new("cat").arg(project.outside().join("held")).spawn().unwrap();
    let beside = verify(&project, &["--jobs", "2"]).1;
    assert_eq!(around(&beside, "late")["seen"]["outcome"], "passed");
    assert!(reader.wait().unwrap().success());
    assert_eq!(verdict(&alone), verdict(&beside));
    assert_eq!(alone["record"]["verdict"], beside["record"]["verdict"]);
}

#[test]
fn a_mark_is_no_part_of_what_a_check_is() {
    let marked = Project::with("[checks.a]\ncommand = [\"true\"]\nparallel = true\n");
    let unmarked = Project::with("[checks.a]\ncommand = [\"true\"]\n");
    let definition = |project: &Project| project.verify().1["record"]["verdict"]["plan"][0]["definition"].clone();
    assert_eq!(definition(&marked), definition(&unmarked));
    let plan = marked.run(&["verify", "--plan", "--jobs", "3"]).exits(0).stdout;
    assert!(plan.contains("up to 3 side by side") && plan.contains("`true` (parallel)"), "{plan}");
    let plan: Value = serde_json::from_str(&unmarked.run(&["verify", "--plan", "--json"]).exits(0).stdout).unwrap();
    assert_eq!((&plan["jobs"], &plan["checks"][0]["parallel"]), (&json!(1), &json!(false)));
}

#[test]
fn what_is_told_and_kept_is_in_declared_order() {
    // The first one ends last.
    let checks = [
        ("first", "read second < ../second; echo first"),
        ("second", "read third < ../third; echo second; echo > ../second"),
        ("third", "echo third; echo > ../third"),
    ];
    let project = project("jobs = 3", &checks);
    pipes(&project, &["second", "third"]);
    let ran = project.run(&["verify"]).exits(0);
    let names: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).take(3).collect();
    assert_eq!(names, ["first", "second", "third"]);
    let log = project.run(&["show", "--log"]).exits(0).stdout;
    assert_eq!(log, "==> first <==\nfirst\n\n==> second <==\nsecond\n\n==> third <==\nthird\n\n");
}

/// Three checks that hang with a child, whom nothing but a kill ends, each with a file of its processes.
fn hanging(scenario: &str) -> Project {
    let hang = |name: &str| {
        format!("trap '' TERM; sleep 600 & echo $! $$ > ../{name}.new; mv ../{name}.new ../{name}; wait; sleep 600")
    };
    let [a, b, c] = ["a", "b", "c"].map(hang);
    project(scenario, &[("a", &a), ("b", &b), ("c", &c)])
}

/// The processes of all three.
fn processes(project: &Project) -> Vec<String> {
    let of = |name: &&str| fs::read_to_string(project.outside().join(name)).unwrap_or_default();
    ["a", "b", "c"].iter().map(of).collect::<String>().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_signal_ends_all_that_run() {
    for signal in ["INT", "TERM"] {
        let project = hanging("jobs = 3");
        let child =
            project.command(&["verify", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("the start of all commands", || processes(&project).len() == 6);
        let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["record"]["verdict"]["outcome"], "interrupted");
        assert_eq!(document["record"]["verdict_digest"], Value::Null);
        for name in ["a", "b", "c"] {
            assert_eq!(row(&document, name)["outcome"], "interrupted");
            assert_eq!(around(&document, name)["exit"], json!({"signal": 9}));
        }
        for id in processes(&project) {
            eventually("the end of what they started", || !alive(&id));
        }
    }
}

#[test]
fn the_budget_of_the_run_ends_all_that_run() {
    let project = hanging("jobs = 2\ntimeout = \"1s\"");
    let (code, document) = verify(&project, &[]);
    assert_eq!(code, 1);
    assert_eq!(document["record"]["verdict"]["outcome"], "timed_out");
    assert_eq!(document["record"]["verdict_digest"], Value::Null);
    for name in ["a", "b"] {
        assert_eq!(row(&document, name)["outcome"], "timed_out");
    }
    assert_eq!(row(&document, "c")["outcome"], json!({"skipped": "time_up"}));
    assert!(!project.outside().join("c").exists(), "there was no room for a third");
    for id in processes(&project) {
        eventually("the end of what they started", || !alive(&id));
    }
}

#[test]
fn the_timeout_of_a_check_ends_it_and_nothing_beside_it() {
    let checks = [("hangs", "exec 3> ../held; exec sleep 600"), ("goes-on", "read end < ../held; true")];
    let project = project("jobs = 2\nfail-fast = false", &checks);
    let config = fs::read_to_string(project.path("probity.toml")).unwrap();
    project.write("probity.toml", config.replace("[checks.hangs]\n", "[checks.hangs]\ntimeout = \"300ms\"\n"));
    pipes(&project, &["held"]);
    let (_, document) = verify(&project, &[]);
    assert_eq!(row(&document, "hangs")["outcome"], "timed_out");
    assert_eq!(row(&document, "goes-on")["outcome"], "passed");
    assert!(document["record"]["verdict_digest"].is_string(), "it is about the check and not about the run");
}

#[test]
fn what_runs_beside_a_red_one_is_ended_with_all_it_started() {
    let project = hanging("jobs = 4");
    let config = fs::read_to_string(project.path("probity.toml")).unwrap();
    let red = "[checks.red]\ncommand = [\"./red\"]\nparallel = true\n";
    project.write("probity.toml", config.replace("[\"a\"", "[\"red\", \"a\"") + red);
    project.script("red", "until [ -e ../a ] && [ -e ../b ] && [ -e ../c ]; do sleep 0.01; done; exit 1");
    let (code, document) = verify(&project, &[]);
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &json!("failed")));
    assert!(document["record"]["verdict_digest"].is_string());
    for name in ["a", "b", "c"] {
        assert_eq!(row(&document, name)["outcome"], json!({"skipped": {"after_failure": "red"}}));
        assert_eq!(around(&document, name)["exit"], json!({"signal": 9}), "it had time to end, and did not");
    }
    assert_eq!(processes(&project).len(), 6);
    for id in processes(&project) {
        eventually("the end of what they started", || !alive(&id));
    }
}
