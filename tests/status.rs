//! `probity status`: whether this very tree is verified. And `log`, which lists what there is.

use crate::support::guests::Guest;
use crate::support::{Project, Ran, redacted};
use serde_json::{Value, json};
use std::fs;

const CONFIG: &str = "[checks.one]\ncommand = [\"sh\", \"./one\"]\n\n[checks.two]\ncommand = [\"true\"]\n\n\
     [scenarios.default]\nchecks = [\"one\", \"two\"]\n\n[scenarios.other]\nchecks = [\"two\"]\n";

/// One whose first check passes as long as nothing lies beside the tree.
fn project() -> Project {
    let project = Project::with(CONFIG);
    project.write("one", "test ! -e ../red").write("a", "a\n").committed();
    project
}

fn not(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("verified: no, ") && ran.stdout.contains(why), "{}", ran.stdout);
}

#[test]
fn a_tree_is_verified_by_the_newest_full_run_of_that_very_tree() {
    let project = project();
    let status = || project.run(&["status"]);
    not(&status(), "no full run of the scenario default is recorded\nwould run: one, two\n");
    project.run(&["verify"]).exits(0);
    insta::assert_snapshot!("verified", redacted(&status().exits(0).stdout));
    project.write("a", "b\n");
    insta::assert_snapshot!("another_tree", redacted(&status().exits(1).stdout));
    project.write("a", "a\n");
    status().exits(0);
    not(&project.run(&["status", "other"]), "no full run of the scenario other is recorded\nwould run: two\n");
    // A part of it takes no place.
    project.run(&["verify", "--only", "two"]).exits(3);
    status().exits(0);
    fs::write(project.outside().join("red"), "").unwrap();
    project.run(&["verify", "--fresh"]).exits(1);
    not(&status(), "of this tree came to: failed\nwould run: one, two\n");
    project.run(&["verify", "--na", "only words"]).exits(0);
    assert!(status().exits(0).stdout.starts_with("verified: declared not applicable (only words), scenario default,"));
    assert_eq!(project.run(&["status", "nothing"]).exits(2).stdout, "");
}

#[test]
fn what_is_not_in_the_tree_counts_where_it_is_a_part_of_what_was_asked() {
    let project = Project::with(
        "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n\n[checks.look]\nuse = \"p/look\"\n\n\
         [checks.c]\ncommand = [\"true\"]\npass-env = [\"MODE\"]\n\n[scenarios.default]\nchecks = [\"look\", \"c\"]\nbase = \"start\"\n\n\
         [spec]\npaths = [\"SPEC\"]\n",
    );
    project.write(".gitignore", "p.wasm\n").write("SPEC", "one\n").component("p.wasm", &Guest::default().text());
    project.committed();
    project.git(&["branch", "-f", "start"]);
    let status = |mode: &str| {
        let mut command = project.command(&["status"]);
        command.env("MODE", mode);
        project.ran(command)
    };
    let verify = || {
        let mut command = project.command(&["verify"]);
        command.env("MODE", "one");
        project.ran(command).exits(0)
    };
    verify();
    status("one").exits(0);
    not(&status("two"), "rested on is other by now: checks.c.command.environment.MODE");
    project.component("p.wasm", &Guest { on_run: "nop".into(), ..Guest::default() }.text());
    not(&status("one"), "check look is another one than in run ");
    fs::remove_file(project.path("p.wasm")).unwrap();
    not(&status("one"), "is not there as it was then");
    project.component("p.wasm", &Guest::default().text());
    status("one").exits(0);
    // A commit that changes no file moves the base.
    project.git(&["commit", "-q", "--allow-empty", "-m", "next"]);
    not(&status("one"), "rested on is other by now: commit");
    verify();
    project.git(&["branch", "-f", "start"]);
    not(&status("one"), "was compared with another base");
    verify();
    status("one").exits(0);
    // What verification refuses, this does too.
    project.write("SPEC", "two\n");
    assert!(status("one").exits(2).stderr.contains("the specification is not as it was committed"));
}

#[test]
fn nothing_of_the_configuration_is_run_for_it() {
    let project = Project::with(
        "[capabilities.probed]\nprobe = [\"sh\", \"./probe\"]\n\n[checks.c]\ncommand = [\"sh\", \"./run\"]\n\
         when = { capabilities = [\"probed\"] }\n",
    );
    project.write("probe", "echo probe >> ../ran").write("run", "echo run >> ../ran");
    let status = || project.run(&["status"]);
    not(&status(), "would run: c\n");
    assert!(!project.outside().join("ran").exists());
    project.run(&["verify"]).exits(0);
    let ran = || fs::read_to_string(project.outside().join("ran")).unwrap();
    let before = ran();
    status().exits(0);
    assert_eq!((before.as_str(), ran()), ("probe\nrun\n", before.clone()));
}

#[test]
fn programs_get_the_same() {
    let project = project();
    let document = |ran: Ran| serde_json::from_str::<Value>(&ran.stdout).unwrap();
    let before = document(project.run(&["status", "--json"]).exits(1));
    assert_eq!(
        (&before["verified"], &before["run"], &before["would_run"]),
        (&json!(false), &Value::Null, &json!(["one", "two"]))
    );
    assert_eq!(before["why"], "no full run of the scenario default is recorded");
    let (_, run) = project.verify();
    let after = document(project.run(&["status", "--json"]).exits(0));
    assert_eq!((&after["verified"], &after["why"], &after["would_run"]), (&json!(true), &Value::Null, &json!([])));
    for (name, value) in [
        ("run", &run["record"]["run"]),
        ("started", &run["record"]["started"]),
        ("verdict_digest", &run["record"]["verdict_digest"]),
        ("outcome", &run["record"]["verdict"]["outcome"]),
        ("tree", &run["record"]["verdict"]["subject"]["tree"]),
        ("schema", &json!("probity/status/1")),
    ] {
        assert_eq!(&after[name], value, "{name}");
    }
}

#[test]
fn a_list_has_what_is_asked_for() {
    let project = project();
    project.run(&["verify"]).exits(0);
    project.run(&["verify", "other"]).exits(0);
    fs::write(project.outside().join("red"), "").unwrap();
    project.run(&["verify", "--fresh"]).exits(1);
    // The same repository in another working tree.
    project.git(&["worktree", "add", "-q", "../elsewhere"]);
    let elsewhere = project.outside().join("elsewhere");
    let at = |arguments: &[&str]| project.run(&[&["-C", elsewhere.to_str().unwrap()], arguments].concat());
    at(&["verify", "other", "--fresh"]).exits(0);
    let count = |ran: Ran| ran.exits(0).stdout.lines().count();
    for (arguments, expected) in [
        (&[][..], 4),
        (&["--scenario", "other"], 2),
        (&["--outcome", "failed"], 1),
        (&["--outcome", "passed", "--scenario", "default"], 1),
        (&["--outcome", "stale"], 0),
        (&["--here"], 3),
        (&["--since", "2020-01-31"], 4),
        (&["--since", "2999-01-31T09:30"], 0),
        (&["--here", "-n", "2"], 2),
    ] {
        assert_eq!(count(project.run(&[&["log"], arguments].concat())), expected, "{arguments:?}");
    }
    assert_eq!(count(at(&["log", "--here"])), 1);
    for arguments in
        [&["--outcome", "green"][..], &["--since", "yesterday"], &["--since", "2020-1-1"], &["--since", ""]]
    {
        let ran = project.run(&[&["log"], arguments].concat()).exits(2);
        assert!(ran.stderr.contains("help: "), "{}", ran.stderr);
    }
    let none = project.run(&["log", "--outcome", "stale"]).exits(0);
    assert_eq!(none.stderr, "no run is recorded here that is asked for\n");
}
