//! The specification: which one a record is about, how often it was changed until then, and whether that is still it.

use crate::support::{Project, Ran};
use serde_json::{Value, json};

const CONFIG: &str =
    "[verify]\ncommands = [[\"true\"]]\n[spec]\npaths = [\"SPEC.md\", \"spec/**\", \"!spec/drafts/**\"]\n";

fn commit(project: &Project, message: &str) {
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", message]);
}

/// A project with a specification of version 1.
fn project() -> Project {
    let project = Project::with(CONFIG);
    project.write("SPEC.md", "must").write("spec/a", "and").write("spec/drafts/b", "perhaps").committed();
    project
}

fn version(document: &Value) -> Value {
    document["record"]["spec_version"].clone()
}

fn exactly(number: u64) -> Value {
    json!({ "number": number, "at_least": false })
}

fn digest(document: &Value) -> Value {
    document["record"]["verdict"]["subject"]["spec"]["digest"].clone()
}

fn document(ran: Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn the_version_counts_the_commits_that_touch_it() {
    let project = project();
    let (code, first) = project.verify();
    assert_eq!((code, version(&first)), (0, exactly(1)));
    project.write("code", "x").write("spec/drafts/b", "surely");
    commit(&project, "not the specification");
    let (_, second) = project.verify();
    assert_eq!((version(&second), digest(&second)), (exactly(1), digest(&first)));
    // Contents, mode, place, and what is there: each is a change.
    let path = project.path("SPEC.md");
    std::fs::write(&path, "may").unwrap();
    commit(&project, "contents");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    commit(&project, "mode");
    project.write("spec/deep/er/c", "also");
    commit(&project, "a new file");
    std::fs::rename(project.path("spec/deep"), project.path("spec/deeper")).unwrap();
    commit(&project, "moved");
    let (_, fifth) = project.verify();
    assert_eq!(version(&fifth), exactly(5));
    assert_ne!(digest(&fifth), digest(&first));
    let shown = project.run(&["show"]).exits(0).stdout;
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("spec ")).collect();
    assert!(matches!(lines[..], [line] if line.contains(" version 5, blake3:")), "once: {shown}");
    // Undone is changed once more, and the same specification as then.
    for step in ["HEAD", "HEAD~2", "HEAD~4", "HEAD~6"] {
        project.git(&["revert", "--no-edit", step]);
    }
    let (_, last) = project.verify();
    assert_eq!((version(&last), digest(&last)), (exactly(9), digest(&first)));
    let again = document(project.run(&["verify", "--rev", "HEAD~4", "--json"]));
    assert_eq!((version(&again), digest(&again)), (exactly(5), digest(&fifth)), "a revision has its own");
}

#[test]
fn a_merge_counts_once_and_the_commits_of_the_branch_do_not() {
    let project = project();
    project.git(&["checkout", "-q", "-b", "other"]);
    for text in ["1", "2", "3"] {
        project.write("SPEC.md", text);
        commit(&project, text);
    }
    project.git(&["checkout", "-q", "main"]);
    project.git(&["merge", "-q", "--no-ff", "-m", "merge", "other"]);
    assert_eq!(version(&project.verify().1), exactly(2));
}

#[test]
fn a_project_below_the_top_has_the_version_of_its_own_files() {
    let project = Project::new();
    project.write("deep/project/probity.toml", CONFIG).write("deep/project/SPEC.md", "must").write("SPEC.md", "other");
    project.write("deep/project/spec/a", "and").committed();
    project.write("SPEC.md", "changed").write("spec/a", "also").write("deep/spec/a", "also");
    commit(&project, "others");
    let verify = || document(project.run(&["-C", "deep/project", "verify", "--json"]));
    assert_eq!(version(&verify()), exactly(1));
    project.write("deep/project/spec/a", "changed");
    commit(&project, "its own");
    assert_eq!(version(&verify()), exactly(2));
}

#[test]
fn a_shallow_clone_says_that_there_may_be_more() {
    let project = project();
    for text in ["1", "2", "3"] {
        project.write("SPEC.md", text);
        commit(&project, text);
        project.write("code", text);
        commit(&project, "code");
    }
    let (_, whole) = project.verify();
    assert_eq!(version(&whole), exactly(4));
    let url = format!("file://{}", project.root().display());
    for (depth, number) in [("1", 1), ("3", 2), ("5", 3), ("100", 4)] {
        let clone = format!("../clone-{depth}");
        project.git(&["clone", "-q", "--depth", depth, &url, &clone]);
        let ran = project.run(&["-C", &clone, "verify", "--json"]).exits(0);
        let of = document(ran);
        assert_eq!(version(&of), json!({ "number": number, "at_least": depth != "100" }), "{depth}");
        assert_eq!(digest(&of), digest(&whole));
    }
    let said = project.run(&["-C", "../clone-3", "show"]).exits(0).stdout;
    assert!(said.contains("held against the specification: version 2 or later\n"), "{said}");
}

#[test]
fn a_record_for_another_specification_is_shown_as_stale() {
    let project = project();
    project.run(&["verify"]).exits(0);
    project.write("probity.toml", CONFIG.replace("true", "false"));
    commit(&project, "red");
    project.run(&["verify"]).exits(1);
    let log = || document(project.run(&["log", "--json"]).exits(0));
    let stale =
        |log: &Value| log["runs"].as_array().unwrap().iter().map(|run| run["stale"].clone()).collect::<Vec<_>>();
    assert_eq!(stale(&log()), [false, false]);
    let before = project.run(&["show"]).exits(0).stdout;
    assert!(!before.contains("stale"), "{before}");
    project.write("SPEC.md", "changed");
    assert_eq!(stale(&log()), [false, false], "what is not committed is no specification yet");
    commit(&project, "changed");
    assert_eq!(stale(&log()), [true, true]);
    assert_eq!(log()["runs"][1]["outcome"], "passed", "the record is what it was");
    let ran = project.run(&["log"]).exits(0);
    insta::assert_snapshot!(ran.shown());
    let green = log()["runs"][1]["run"].as_str().unwrap().to_owned();
    let shown = project.run(&["show", &green]).exits(0).stdout;
    assert!(
        shown.ends_with("\nstale: this is about another specification than the one that is committed now\n"),
        "{shown}"
    );
    assert_eq!(document(project.run(&["show", &green, "--json"]).exits(0))["stale"], true);
    project.run(&["verify"]).exits(1);
    assert_eq!(stale(&log()), [false, true, true]);
}

#[test]
fn records_are_shown_where_nobody_can_say_which_specification_holds() {
    let project = project();
    project.run(&["verify"]).exits(0);
    project.write("probity.toml", "[spec\n");
    let ran = project.run(&["log", "--json"]).exits(0);
    assert!(ran.stderr.contains("whether the specification has changed since is not known"), "{}", ran.stderr);
    assert_eq!(document(ran)["runs"][0]["stale"], Value::Null);
    project.write("probity.toml", "[verify]\ncommands = [[\"true\"]]\n");
    let (code, without) = project.verify();
    assert_eq!(code, 0);
    assert_eq!((version(&without), &without["record"]["verdict"]["subject"]["spec"]), (Value::Null, &Value::Null));
    let ran = project.run(&["show", "--json"]).exits(0);
    assert_eq!(ran.stderr, "");
    assert_eq!(document(ran)["stale"], Value::Null);
}
