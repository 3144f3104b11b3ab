//! What runs and on what: scoped runs, changed files, conditions, declarations, and plans that execute nothing.

use crate::support::{Project, Ran, around, row};
use serde_json::{Value, json};
use std::fs;

const THREE: &str =
    "[checks.a]\ncommand = [\"true\"]\n[checks.b]\ncommand = [\"false\"]\n[checks.c]\ncommand = [\"true\"]\n";

fn json(project: &Project, arguments: &[&str]) -> Value {
    let ran = project.run(&[&["verify", "--json"], arguments].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr))
}

/// The arguments that a command was called with, a list for each call: it appends them to `calls`, each ended by a NUL.
const TELL: &str =
    "for one in \"$@\"; do printf '%s\\0' \"$one\" >> \"$HOME/calls\"; done; printf '\\n\\0' >> \"$HOME/calls\"";

fn calls(project: &Project) -> Vec<Vec<String>> {
    let path = project.outside().join("home/calls");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    let calls = text.split("\n\0").filter(|call| !call.is_empty());
    calls.map(|call| call.split_terminator('\0').map(str::to_owned).collect()).collect()
}

#[test]
fn a_scoped_run_is_for_looking_closer_and_no_gate() {
    let project = Project::with(THREE);
    let scoped = project.run(&["verify", "--only", "a,c"]).exits(3);
    insta::assert_snapshot!(scoped.shown());
    let document = json(&project, &["--skip", "b"]);
    assert_eq!(document["exit_code"], 3);
    assert_eq!(document["record"]["verdict"]["outcome"], "partial");
    assert_eq!(row(&document, "b")["outcome"], json!({"not_selected": "skip"}));
    assert_eq!(document["record"]["verdict"]["plan"][1]["deselected"], "skip");
    // A red one is a failure like any other.
    let document = json(&project, &["--only", "b"]);
    assert_eq!((&document["exit_code"], &document["record"]["verdict"]["outcome"]), (&json!(1), &json!("failed")));
    assert!(project.run(&["show"]).exits(0).stdout.contains("scoped: less ran"));
    let log = project.run(&["log"]).exits(0).stdout;
    assert!(log.lines().all(|line| line.ends_with("  scoped")) && log.contains("failed"), "{log}");
    project.run(&["verify"]).exits(1);
    assert!(!project.run(&["log", "-n", "1"]).exits(0).stdout.contains("scoped"));
    // Nothing left is nothing verified; that it is no concern of the scenario is no answer to that.
    assert_eq!(json(&project, &["--skip", "a,b,c"])["record"]["verdict"]["outcome"], "empty");
    let ran = project.run(&["verify", "--skip", "a,b,c"]).exits(2);
    assert!(ran.stdout.contains("nothing was verified") && !ran.stdout.contains("--na"), "{}", ran.stdout);
}

#[test]
fn a_red_check_that_is_looked_at_alone_is_a_failure_though_it_does_not_block() {
    let project = Project::with(
        "[checks.a]\ncommand = [\"false\"]\nblocking = false\n[checks.b]\ncommand = [\"true\"]\n\
         [checks.gone]\ncommand = [\"./no-such\"]\nblocking = false\n",
    );
    for (arguments, code, outcome) in [
        (&["--only", "a"][..], 1, "failed"),
        (&["--skip", "b"], 1, "error"),
        (&["--only", "gone"], 1, "error"),
        (&["--only", "a,b"], 3, "partial"),
        (&[], 0, "passed"),
    ] {
        let document = json(&project, arguments);
        let found = (&document["exit_code"], &document["record"]["verdict"]["outcome"]);
        assert_eq!(found, (&json!(code), &json!(outcome)), "{arguments:?}");
    }
    let ran = project.run(&["verify", "--only", "a"]).exits(1);
    assert!(!ran.stdout.contains("--na") && !ran.stdout.contains("nothing was verified"), "{}", ran.stdout);
}

#[test]
fn a_chain_of_thousands_of_checks_is_put_in_order_at_once_and_more_than_that_is_refused() {
    let chain = |length: usize| {
        let one = |at: usize| {
            let after = if at + 1 < length { format!("after = [\"c{}\"]\n", at + 1) } else { String::new() };
            format!("[checks.c{at}]\ncommand = [\"true\"]\n{after}")
        };
        (0..length).map(one).collect::<String>()
    };
    let project = Project::with(&chain(4000));
    let clock = std::time::Instant::now();
    let plan: Value = serde_json::from_str(&project.run(&["verify", "--plan", "--json"]).exits(0).stdout).unwrap();
    // Looking for each check among all that wait takes minutes.
    assert!(clock.elapsed().as_secs() < 30, "{:?}", clock.elapsed());
    let order = plan["checks"].as_array().unwrap().iter().map(|check| check["id"].as_str().unwrap().to_owned());
    assert!(order.eq((0..4000).rev().map(|at| format!("c{at}"))));
    let commands = vec!["[\"true\"]"; 10_001].join(",");
    let ran = project.write("probity.toml", format!("[verify]\ncommands = [{commands}]\n")).run(&["verify"]).exits(2);
    assert!(ran.stderr.contains("10001 checks are more than 10000"), "{}", ran.stderr);
}

#[test]
fn an_unknown_check_is_told_with_those_that_are() {
    let project = Project::with(&format!("{THREE}[scenarios.pr]\nchecks = [\"a\", \"b\"]\n"));
    insta::assert_snapshot!(project.run(&["verify", "--only", "aa,b"]).exits(2).stderr, @r"
    error: there is no check `aa` in the scenario `default`
    help: did you mean `a`? it has a, b, c
    ");
    insta::assert_snapshot!(project.run(&["verify", "pr", "--skip", "c"]).exits(2).stderr, @r"
    error: there is no check `c` in the scenario `pr`
    help: it has a, b
    ");
    assert!(project.run(&["verify", "--only", ""]).exits(2).stderr.contains("there is no check"));
    assert!(project.run(&["verify", "--only", "a", "--skip", "b"]).exits(2).stderr.contains("cannot be used with"));
    assert!(!project.path(".probity").exists(), "nothing ran");
}

#[test]
fn a_pack_that_is_not_asked_for_is_not_loaded() {
    let config = format!(
        "{THREE}[packs.p]\nsource = \"file:none.wasm\"\nallow = [\"tree:**\"]\n[checks.logic]\nuse = \"p/x\"\n"
    );
    let project = Project::with(&config);
    project.run(&["verify"]).exits(2);
    project.run(&["verify", "--only", "a"]).exits(3);
}

fn files(arguments: &str) -> Project {
    let config =
        format!("[checks.look]\ncommand = [\"./tell\", {arguments}]\nfiles = [\"**\", \"!tell\", \"!*.toml\"]\n");
    let project = Project::with(&config);
    project.script("tell", TELL);
    project
}

#[test]
fn files_are_arguments_of_their_own_whatever_their_names() {
    let project = files("\"-x\", \"{files}\", \"end\"");
    let names = ["-rf", "a b", "c\nd", "it's", "q\"uote", "sub/-x", "ü"];
    for name in names {
        project.write(name, "x");
    }
    std::os::unix::fs::symlink("a b", project.path("link")).unwrap();
    project.run(&["verify"]).exits(0);
    let expected = ["-x", "./-rf", "a b", "c\nd", "it's", "q\"uote", "sub/-x", "./ü", "end"];
    assert_eq!(calls(&project), [expected]);
}

#[test]
fn no_name_of_a_file_switches_a_command_off() {
    // Each of the last names would mean something else to the program: an assignment, a pattern that excludes.
    let project = Project::with(
        "[checks.awk]\ncommand = [\"awk\", \"/BAD/ { bad = 1 } END { exit bad }\", \"{files}\"]\nfiles = [\"*=*\"]\n\
         [checks.grep]\ncommand = [\"sh\", \"-c\", '! git grep -q BAD -- \"$@\"', \"x\", \"{files}\"]\nfiles = [\"*.txt\"]\n\
         [scenarios.default]\nchecks = [\"awk\", \"grep\"]\nfail-fast = false\n",
    );
    project.write("v=1.in", "BAD\n").write("a.txt", "BAD\n").write(":!a.txt", "good\n").committed();
    let document = json(&project, &[]);
    assert_eq!(
        (&row(&document, "awk")["outcome"], &row(&document, "grep")["outcome"]),
        (&json!("failed"), &json!("failed"))
    );
}

#[test]
fn a_list_of_files_is_a_file_with_a_nul_after_each() {
    let project = files("\"--from={files0}\"");
    project.write("a b", "x").write("c\nd", "x");
    project.script("tell", "cat -- \"${1#--from=}\"");
    project.run(&["verify"]).exits(0);
    let log = project.run(&["show", "--log", "--check", "look"]).exits(0);
    assert_eq!(log.raw.stdout, b"a b\0c\nd\0");
}

#[test]
fn three_thousand_files_take_as_many_calls_as_they_need_and_the_first_red_decides() {
    let project = files("\"{files}\"");
    for at in 0..3000 {
        project.write(&format!("{}/{at:04}", "long".repeat(40)), "");
    }
    project.run(&["verify"]).exits(0);
    let made = calls(&project);
    assert!(made.len() > 1 && made.iter().map(Vec::len).sum::<usize>() == 3000, "{}", made.len());
    project.script("tell", &format!("{TELL}\ncase \"$1\" in *0000) exit 7;; esac"));
    let document = json(&project, &[]);
    assert_eq!(row(&document, "look")["outcome"], "failed");
    assert_eq!(around(&document, "look")["exit"], json!({"code": 7}));
    assert_eq!(calls(&project).len(), made.len(), "the others are heard all the same");
}

#[test]
fn files_that_are_named_many_times_over_take_more_calls() {
    let project = files(&["\"{files}\""; 9].join(", "));
    for at in 0..1500 {
        project.write(&format!("{}/{at:04}", "long".repeat(40)), "");
    }
    project.run(&["verify"]).exits(0);
    let made = calls(&project);
    assert!(made.len() > 8 && made.iter().map(Vec::len).sum::<usize>() == 9 * 1500, "{}", made.len());
}

#[test]
fn arguments_that_no_system_takes_are_told_as_what_they_are() {
    let project = Project::with(&format!("[checks.a]\ncommand = [\"true\", \"{}\"]\n", "x".repeat(900 << 10)));
    let document = json(&project, &[]);
    assert_eq!(row(&document, "a")["outcome"], json!({"error": "host"}));
    let message = around(&document, "a")["message"].as_str().unwrap();
    assert!(message.contains("than this system takes at once\nhelp: have the files listed"), "{message}");
}

#[test]
fn no_file_in_scope_is_nothing_verified_unless_that_is_allowed() {
    let config =
        |extra: &str| format!("[checks.look]\ncommand = [\"true\", \"{{files}}\"]\nfiles = [\"*.py\"]\n{extra}");
    let project = Project::with(&config(""));
    let ran = project.run(&["verify"]).exits(2);
    assert!(ran.stdout.contains("no matching files") && ran.stdout.contains("nothing was verified"), "{}", ran.stdout);
    project.write("probity.toml", config("allow-empty = true\n")).run(&["verify"]).exits(0);
    project.write("probity.toml", config("[checks.other]\ncommand = [\"true\"]\n")).run(&["verify"]).exits(0);
}

/// A committed project with a check of Python files, one of documents and one of everything.
fn parts() -> Project {
    let tell = |name: &str, files: &str| {
        format!("[checks.{name}]\ncommand = [\"./tell\", \"{name}\", \"{{files}}\"]\nfiles = [{files}]\n")
    };
    let all = "[checks.all]\ncommand = [\"./tell\", \"all\"]\n";
    let project = Project::with(&format!("{}{}{all}", tell("py", "\"**/*.py\""), tell("docs", "\"docs/**\"")));
    project.script("tell", TELL).write("a.py", "1").write("b.py", "1").write("docs/x", "1").write("c.py", "1");
    project.committed();
    project
}

#[test]
fn only_what_changed_is_looked_at() {
    let project = parts();
    let changed = ["verify", "--changed", "--base", "HEAD"];
    let run = || -> (Ran, Vec<Vec<String>>) { (project.run(&changed), calls(&project)) };
    project.write("b.py", "2").write("new.py", "2");
    let (ran, made) = run();
    ran.exits(0);
    assert_eq!(made, [vec!["py", "b.py", "new.py"], vec!["all"]]);
    let document = json(&project, &["--changed", "--base", "HEAD"]);
    assert_eq!(row(&document, "docs")["outcome"], json!({"not_selected": "unchanged"}));
    assert_eq!(document["record"]["verdict"]["changed_only"], true);
    calls(&project);
    // What is left may rest on what is gone.
    fs::remove_file(project.path("a.py")).unwrap();
    assert_eq!(run().1[0], ["py", "b.py", "c.py", "new.py"]);
    // Moved into scope is changed, moved out of it is gone.
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "more"]);
    project.write("docs/y", "a text of some length\n").git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "y"]);
    fs::rename(project.path("docs/y"), project.path("y.py")).unwrap();
    assert_eq!(run().1, [vec!["py", "y.py"], vec!["docs", "docs/x"], vec!["all"]]);
}

#[test]
fn a_command_of_tests_gets_those_of_the_files() {
    let project = Project::with(
        "[checks.spec]\ncommand = [\"./tell\", \"{tests}\"]\nfiles = [\"src/**\", \"test/**\"]\n\
         tests = { \"src/{path}.ts\" = \"test/{path}.spec.ts\" }\n",
    );
    project.script("tell", TELL).write("src/a.ts", "1").write("src/deep/b.ts", "1").write("src/untested.ts", "1");
    project.write("test/a.spec.ts", "1").write("test/deep/b.spec.ts", "1").write("test/help.ts", "1").committed();
    let run = |code: i32| {
        project.run(&["verify", "--changed", "--base", "HEAD"]).exits(code);
        calls(&project)
    };
    project.run(&["verify"]).exits(0);
    assert_eq!(calls(&project), [["test/a.spec.ts", "test/deep/b.spec.ts"]]);
    project.write("src/deep/b.ts", "2").write("src/untested.ts", "2");
    assert_eq!(run(0), [["test/deep/b.spec.ts"]]);
    project.write("test/a.spec.ts", "2");
    assert_eq!(run(0), [["test/a.spec.ts", "test/deep/b.spec.ts"]], "a test is its own");
    project.committed();
    project.write("src/untested.ts", "3");
    assert_eq!(run(2), [[""; 0]; 0], "no test is nothing verified");
}

#[test]
fn placeholders_without_what_they_stand_for_are_told() {
    let project = Project::with(
        "[checks.a]\ncommand = [\"x\", \"{files}\"]\n[checks.b]\ncommand = [\"x\", \"a{files}\"]\nfiles = [\"**\"]\n\
         [checks.c]\ncommand = [\"x\", \"{tests}\"]\nfiles = [\"**\"]\n\
         [checks.d]\ncommand = [\"x\"]\ntests = { \"a\" = \"b\" }\nfiles = [\"**\"]\n\
         [checks.e]\ncommand = [\"x\"]\nallow-empty = true\nwhen.scenarios = [\"defalt\"]\n",
    );
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).stderr);
}

#[test]
fn nothing_changed_is_nothing_verified_and_says_what_to_do() {
    let project = parts();
    let text = fs::read_to_string(project.path("probity.toml")).unwrap();
    project.write("probity.toml", text.split("[checks.all]").next().unwrap()).committed();
    let ran = project.run(&["verify", "--changed", "--base", "HEAD"]).exits(2);
    insta::assert_snapshot!(ran.shown());
    insta::assert_snapshot!(project.run(&["verify", "--changed"]).exits(2).stderr, @r"
    error: `--changed` compares with a base, and there is none
    help: name one with `--base origin/main`, or as `base` of the scenario
    ");
}

#[test]
fn where_nothing_at_all_changed_a_check_of_everything_has_no_matching_change_either() {
    let project = parts();
    let changed = ["--changed", "--base", "HEAD"];
    let document = json(&project, &changed);
    assert_eq!((&document["exit_code"], &document["record"]["verdict"]["outcome"]), (&json!(2), &json!("empty")));
    assert_eq!(row(&document, "all")["outcome"], json!({"not_selected": "unchanged"}));
    assert!(project.run(&[&["verify"], &changed[..]].concat()).exits(2).stdout.contains("--na"));
    // Whatever changed is part of everything.
    project.write("other", "");
    let document = json(&project, &changed);
    assert_eq!((&document["exit_code"], &row(&document, "all")["outcome"]), (&json!(0), &json!("passed")));
    assert_eq!(row(&document, "py")["outcome"], json!({"not_selected": "unchanged"}));
}

#[test]
fn conditions_say_why_a_check_is_left_out() {
    let project = Project::with(
        "[checks.always]\ncommand = [\"true\"]\n\
         [checks.nightly]\ncommand = [\"true\"]\nwhen.scenarios = [\"nightly\"]\n\
         [checks.main]\ncommand = [\"true\"]\nwhen.branches = [\"main\", \"release/*\"]\n\
         [checks.docs]\ncommand = [\"true\"]\nwhen.paths = [\"docs/**\"]\n\
         [checks.both]\ncommand = [\"true\"]\nwhen = { scenarios = [\"nightly\"], paths = [\"docs/**\"] }\n\
         [scenarios.default]\nchecks = [\"always\", \"nightly\", \"main\", \"docs\", \"both\"]\n\
         [scenarios.nightly]\nchecks = [\"nightly\", \"both\"]\n",
    );
    project.committed();
    insta::assert_snapshot!(project.run(&["verify"]).exits(0).shown());
    let why = |id: &str, arguments: &[&str]| row(&json(&project, arguments), id)["outcome"].clone();
    assert_eq!(why("nightly", &["nightly"]), "passed");
    project.write("docs/a", "x").git(&["checkout", "-q", "-b", "work"]);
    assert_eq!(why("main", &[]), json!({"not_selected": "other_branch"}));
    assert_eq!(why("docs", &[]), "passed", "without a base, where there is one");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "docs"]);
    assert_eq!(why("docs", &["--base", "HEAD"]), json!({"not_selected": "no_such_path"}));
    assert_eq!(why("docs", &["--base", "main"]), "passed");
    assert_eq!(why("both", &["nightly"]), "passed");
    project.git(&["checkout", "-q", "-b", "release/1"]);
    assert_eq!(why("main", &[]), "passed");
    project.git(&["checkout", "-q", "--detach"]);
    assert_eq!(why("main", &[]), json!({"not_selected": "other_branch"}));
}

#[test]
fn what_was_named_as_the_base_is_recorded_beside_what_was_compared_with() {
    let project = Project::with(&format!("{THREE}[scenarios.default]\nchecks = [\"a\"]\nbase = \"main\"\n"));
    project.committed().git(&["checkout", "-q", "-b", "work"]);
    let base = project.git(&["rev-parse", "HEAD"]);
    project.git(&["checkout", "-q", "main"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "on"]);
    let main = project.git(&["rev-parse", "HEAD"]);
    project.git(&["checkout", "-q", "work"]);
    let first = json(&project, &[]);
    assert_eq!(first["record"]["base"], json!({"name": "main", "commit": format!("sha1:{main}")}));
    assert_eq!(first["record"]["verdict"]["subject"]["base"], json!(format!("sha1:{base}")));
    let shown = project.run(&["show"]).exits(0).stdout;
    let line = format!("sha1:{base}, where main (sha1:{main}) begins to differ\n");
    assert!(shown.contains(&line), "{shown}");
    // Where it is compared with the same commit, what led there is no part of the verdict.
    let second = json(&project, &["--base", "HEAD", "--fresh"]);
    assert_eq!(second["record"]["base"]["name"], "HEAD");
    assert_eq!(second["record"]["verdict_digest"], first["record"]["verdict_digest"]);
    assert_eq!(json(&Project::with(THREE), &[])["record"].get("base"), None);
}

#[test]
fn output_of_what_did_not_run_is_told_for_what_it_is() {
    let project = Project::with(
        "[checks.a]\ncommand = [\"true\"]\n[checks.b]\ncommand = [\"./no-such\"]\n[checks.c]\ncommand = [\"true\"]\n\
         when.branches = [\"x\"]\n[scenarios.default]\nchecks = [\"a\", \"b\", \"c\"]\nfail-fast = false\n",
    );
    project.run(&["verify", "--skip", "a"]).exits(1);
    for (id, why) in
        [("a", "was not among those to run"), ("b", "was not started"), ("c", "was not among those to run")]
    {
        let ran = project.run(&["show", "--check", id, "--log"]).exits(2);
        assert!(ran.stderr.contains(&format!("check `{id}` {why}, so it has no output")), "{}", ran.stderr);
    }
}

#[test]
fn a_run_that_no_condition_selects_is_empty() {
    let config = "[checks.a]\ncommand = [\"true\"]\nwhen.branches = [\"none\"]\n";
    Project::with(config).committed().run(&["verify"]).exits(2);
}

#[test]
fn a_declaration_runs_nothing_and_is_seen_everywhere() {
    let project = Project::with("[checks.a]\ncommand = [\"./never\"]\n");
    project.script("never", "touch ran");
    insta::assert_snapshot!(project.run(&["verify", "--na", " only words changed "]).exits(0).shown());
    assert!(!project.path("ran").exists());
    let log = project.run(&["log"]).exits(0).stdout;
    assert!(log.contains("not_applicable") && log.contains("declared: only words changed"), "{log}");
    assert!(project.run(&["show"]).exits(0).stdout.contains("declared not applicable: only words changed"));
    let record: Value = serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(record["record"]["verdict"]["not_applicable"], "only words changed");
    let unseen = ["\u{200b}", "\u{2800}", "\u{3164}\u{115f}", "\u{ad}\u{feff}", "--- !", "\u{301}"];
    for bad in ["", "  ", "a\nb", &"x".repeat(501)].into_iter().chain(unseen) {
        project.run(&["verify", "--na", bad]).exits(2);
    }
    assert!(project.run(&["verify", "--na", "x", "--only", "a"]).exits(2).stderr.contains("cannot be used with"));
}

#[test]
fn a_plan_executes_nothing() {
    let project = parts();
    let text = fs::read_to_string(project.path("probity.toml")).unwrap();
    let logic = "[packs.p]\nsource = \"path:none\"\nallow = [\"tree:**\"]\n[checks.logic]\nuse = \"p/x\"\n";
    project.write("probity.toml", format!("{text}{logic}")).committed();
    project.write("b.py", "2");
    let plan = project.run(&["verify", "--plan", "--changed", "--base", "HEAD", "--skip", "all"]).exits(0);
    insta::assert_snapshot!(plan.shown());
    let ran = project.run(&["verify", "--plan", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["schema"], "probity/plan/1");
    assert_eq!(document["checks"][0]["files"], json!(["a.py", "b.py", "c.py"]));
    assert_eq!(calls(&project), Vec::<Vec<String>>::new());
    assert!(!project.path(".git/probity/state.db").exists());
}

#[test]
fn a_plan_says_of_what_cannot_be_judged_what_the_run_says() {
    let project = Project::with("[checks.c]\ncommand = [\"true\", \"{files}\"]\nfiles = [\"src/**\"]\n");
    project.write("src/a", "");
    assert!(std::process::Command::new("mkfifo").arg(project.path("src/pipe")).status().unwrap().success());
    let why = "`src/pipe` is no file, but a pipe, a socket or a device";
    let plan = project.run(&["verify", "--plan"]).exits(0).stdout;
    assert!(
        plan.starts_with("scenario default: 0 of 1 checks would run\n") && plan.contains("  error    c "),
        "{plan}"
    );
    assert!(plan.contains(why), "{plan}");
    let json = project.run(&["verify", "--plan", "--json"]).exits(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["checks"][0]["error"].as_str().unwrap().starts_with(why));
    assert!(project.run(&["verify"]).exits(1).stdout.contains(why));
}
