//! What people are told who look for the first time: where a limit comes from, what was meant, what a list leaves out.

use crate::support::Project;
use crate::support::guests::Guest;

const TWO: &str = "[checks.fmt]\ncommand = [\"true\"]\n[checks.test]\ncommand = [\"true\"]\nafter = [\"fmt\"]\n\
    [checks.slow]\ncommand = [\"true\"]\nafter = [\"test\", \"fmt\"]\n[scenarios.default]\nchecks = [\"fmt\", \"test\"]\n\
    [scenarios.nightly]\nchecks = [\"slow\", \"fmt\"]\n[checks.idle]\ncommand = [\"true\"]\n";

fn help(project: &Project, arguments: &[&str]) -> String {
    let said = project.run(arguments).exits(2).stderr;
    said.lines().find_map(|line| line.strip_prefix("help: ")).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn a_check_in_the_place_of_a_scenario_is_told_as_one() {
    let project = Project::with(TWO);
    assert_eq!(help(&project, &["verify", "fmt"]), "`fmt` is a check: `probity verify --only fmt` runs it alone");
    assert_eq!(
        help(&project, &["verify", "slow"]),
        "`slow` is a check: `probity verify nightly --only slow` runs it alone"
    );
    assert_eq!(
        help(&project, &["verify", "idle"]),
        "`idle` is a check that no scenario has: name it in `checks` of one"
    );
    assert_eq!(
        help(&project, &["verify", "nihgtly"]),
        "did you mean `nightly`? the configuration has default, nightly"
    );
    assert_eq!(help(&project, &["verify", "other"]), "the configuration has default, nightly");
}

#[test]
fn a_plan_says_which_checks_nothing_comes_after() {
    let project = Project::with(TWO);
    insta::assert_snapshot!(project.run(&["verify", "nightly", "--plan"]).exits(0).stdout, @r"
    scenario nightly: 2 of 2 checks would run
      run      fmt                      `true`
      run      slow                     `true`; its `after` names `test`, which this scenario does not have
    ");
    let json = project.run(&["verify", "nightly", "--plan", "--json"]).exits(0).stdout;
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["checks"][1]["after_absent"], serde_json::json!(["test"]));
    assert_eq!(document["checks"][0]["after_absent"], serde_json::json!([]));
}

#[test]
fn who_says_a_limit_is_told_where_it_is_met() {
    let endless = Guest { on_run: "(loop $l br $l)".into(), ..Guest::default() };
    let said = |limits: &str, user: &str| {
        let project = Project::with(&format!(
            "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.look]\nuse = \"p/look\"\n{limits}\n"
        ));
        project.component("p.wasm", &endless.text()).write("../home/.config/probity/config.toml", user);
        let stdout = project.run(&["verify"]).exits(1).stdout;
        stdout
            .lines()
            .find_map(|line| line.trim().strip_prefix("help: "))
            .unwrap_or_else(|| panic!("{stdout}"))
            .to_owned()
    };
    let few = "[limits]\nfuel = 1000\n";
    assert_eq!(said("limits = { fuel = 999 }", few), "that is `fuel` in the `limits` of this check");
    assert_eq!(said("", few), "that is `fuel` in `[limits]` of the user's file");
    assert_eq!(said("timeout = \"50ms\"", ""), "that is the `timeout` of this check");
    assert_eq!(said("limits = { wall = \"50ms\" }", ""), "that is `wall` in the `limits` of this check");
    assert_eq!(said("", "[limits]\nwall = \"50ms\"\n"), "that is `wall` in `[limits]` of the user's file");
}

#[test]
fn a_run_of_what_changed_is_marked_and_takes_the_place_of_no_full_one() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    project.committed();
    project.run(&["verify"]).exits(0);
    let last = |project: &Project| -> serde_json::Value {
        serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap()
    };
    let full = last(&project)["record"]["run"].as_str().unwrap().to_owned();
    assert!(!project.run(&["log"]).exits(0).stdout.contains("changed only"));
    project.write("other", "");
    let ran = project.run(&["verify", "--changed", "--base", "HEAD"]).exits(0).stdout;
    let mark = "changed only: this is about what changed since sha1:";
    assert!(ran.contains(mark), "{ran}");
    let shown = project.run(&["show"]).exits(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("last full")).unwrap();
    assert!(shown.contains(mark) && line.contains(&full) && line.contains("about what changed"), "{shown}");
    assert_eq!(last(&project)["last_full"]["run"], full.as_str());
    assert_eq!(last(&project)["last_full"]["changed_only"], false);
    assert!(project.run(&["log", "-n", "1"]).exits(0).stdout.trim_end().ends_with("  changed only"));
    let log: serde_json::Value = serde_json::from_str(&project.run(&["log", "--json"]).exits(0).stdout).unwrap();
    assert_eq!((&log["runs"][0]["changed_only"], &log["runs"][1]["changed_only"]), (&true.into(), &false.into()));
}

#[test]
fn a_scoped_run_takes_the_place_of_no_full_one() {
    let project = Project::with(TWO);
    project.run(&["verify", "--only", "fmt"]).exits(3);
    let none = project.run(&["show"]).exits(0).stdout;
    assert!(none.contains("\nlast full  none of this scenario is recorded\n"), "{none}");
    project.run(&["verify"]).exits(0);
    project.run(&["verify", "nightly"]).exits(0);
    let log = project.run(&["log"]).exits(0).stdout;
    let full = log.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let shown = project.run(&["show"]).exits(0).stdout;
    assert!(!shown.contains("last full"), "a full run is the last one itself: {shown}");
    for scoped in [&["verify", "--only", "fmt"][..], &["verify", "--skip", "fmt"]] {
        project.run(scoped).exits(3);
        let shown = project.run(&["show"]).exits(0).stdout;
        let line = shown.lines().find(|line| line.starts_with("last full  ")).unwrap();
        assert!(line.starts_with(&format!("last full  {full}, passed, ")), "{line}");
        let json: serde_json::Value = serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap();
        assert_eq!(json["last_full"]["run"], full.as_str());
        assert_eq!(json["last_full"]["scoped"], false);
    }
    // It is still there, as it was.
    project.run(&["show", &full]).exits(0);
}

#[test]
fn a_tree_that_differs_from_its_commit_is_told_wherever_the_run_is() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    let dirty = |stdout: &str| stdout.lines().find(|line| line.starts_with("dirty: ")).map(str::to_owned);
    assert_eq!(dirty(&project.run(&["verify"]).exits(0).stdout), None, "there is no commit to differ from");
    let log = project.run(&["log"]).exits(0).stdout;
    assert!(log.contains(" default          -                "), "{log}");
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    project.git(&["init", "-q"]);
    let first = project.run(&["verify"]).exits(0).stdout;
    assert_eq!(dirty(&first).unwrap(), "dirty: nothing is committed yet, so this is about the working tree alone");
    project.committed();
    assert_eq!(dirty(&project.run(&["verify"]).exits(0).stdout), None);
    project.write("new", "");
    let differs = "dirty: the working tree differs from its commit, so this says nothing of the commit";
    assert_eq!(dirty(&project.run(&["verify"]).exits(0).stdout).unwrap(), differs);
    assert_eq!(dirty(&project.run(&["show"]).exits(0).stdout).unwrap(), differs);
    let commit = &project.git(&["rev-parse", "HEAD"])[..10];
    let log = project.run(&["log"]).exits(0).stdout;
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains(&format!(" {commit} dirty ")), "{log}");
    assert!(lines[1].contains(&format!(" {commit}       ")), "{log}");
    assert!(lines[2].contains(" - dirty "), "{log}");
    let json: serde_json::Value = serde_json::from_str(&project.run(&["log", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(json["runs"][0]["dirty"], true);
    assert_eq!(json["runs"][0]["commit"], format!("sha1:{}", project.git(&["rev-parse", "HEAD"])));
}

#[test]
fn lists_say_how_much_they_leave_out() {
    let make = "i=0; while [ $i -lt 130 ]; do : > f$i; i=$((i+1)); done";
    let project = Project::with(&format!("[verify]\ncommands = [[\"sh\", \"-c\", \"{make}\"]]\n"));
    let ran = project.run(&["verify"]).exits(1).stdout;
    assert!(ran.contains("\n    … and 120 more\n"), "{ran}");
    let again = project.run(&["show"]).exits(0).stdout;
    assert!(again.contains("\n    … and 120 more\n"), "{again}");
    let json: serde_json::Value = serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(json["record"]["moved"].as_array().unwrap().len(), 100);
    assert_eq!(json["record"]["unnamed"]["moved"], 30);

    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"seq 30; exit 1\"]]\n");
    let ran = project.run(&["verify"]).exits(1).stdout;
    let lines: Vec<&str> = ran.lines().filter(|line| line.starts_with("    | ")).collect();
    assert_eq!((lines.len(), lines[1], lines[20]), (21, "    | 11", "    | 30"));
    let told = lines[0].starts_with("    | … (the end of it; `probity show ");
    assert!(told && lines[0].ends_with(" --check verify-1 --log` has all)"), "{ran}");
}

#[test]
fn what_packs_do_not_see_comes_with_the_reason() {
    use std::os::unix::ffi::OsStrExt as _;
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    std::fs::write(project.root().join(std::ffi::OsStr::from_bytes(b"lat\xe9")), "").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, project.path("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let shown = project.run(&["verify"]).exits(0).stdout;
    let list = "packs do not see these:\n    lat\u{fffd} (its name is not UTF-8)\n    pipe (is no file, but a pipe, a socket or a device)\n";
    assert!(shown.contains(list), "{shown}");
}
