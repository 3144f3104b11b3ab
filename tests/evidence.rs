//! When a record answers for a run: the whole of `docs/evidence.md`, through the real binary. Every command here leaves a
//! line beside the project each time it runs, so that what was served is told from what ran.

use crate::support::{Project, Ran, eventually, redacted, signal};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository with a command that counts its runs and then does this.
fn project(body: &str) -> Project {
    configured(&check(body, ""))
}

fn check(body: &str, more: &str) -> String {
    format!("[checks.c]\ncommand = [\"sh\", \"-c\", '''{}''']\n{more}", counting(body))
}

fn counting(body: &str) -> String {
    format!("echo run >> \"$(git rev-parse --git-common-dir)/../../ran\"\n{body}")
}

fn configured(config: &str) -> Project {
    let project = Project::with(config);
    project.write(".gitignore", "ignored/\n").write("file", "1\n").committed();
    project
}

/// How often commands of it ran.
fn runs(project: &Project) -> usize {
    fs::read_to_string(project.outside().join("ran")).unwrap_or_default().lines().count()
}

fn commit(project: &Project) {
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "next"]);
}

/// The binary in another folder.
fn elsewhere(project: &Project, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = project.command(arguments);
    command.current_dir(folder);
    command
}

fn worktree(project: &Project, name: &str) -> PathBuf {
    let path = project.outside().join(name);
    project.git(&["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    path
}

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
}

/// Whether the run that is shown was served.
fn served(ran: &Ran) -> bool {
    document(ran).get("reused").is_some()
}

/// Why the run that is shown was carried out: the first word.
fn because(ran: &Ran) -> Value {
    document(ran)["record"]["because"][0]["why"].clone()
}

/// Asserts that the next run is carried out, for this reason, and the one after that is served if `then` says so.
#[track_caller]
fn runs_anew(project: &Project, why: &str) -> Value {
    let before = runs(project);
    let ran = project.run(&["verify", "--json"]);
    assert!(!served(&ran) && runs(project) > before, "{}", ran.stdout);
    assert_eq!(because(&ran), why, "{:#}", document(&ran)["record"]["because"]);
    document(&ran)["record"]["because"][0].clone()
}

#[track_caller]
fn is_served(project: &Project) -> Value {
    let before = runs(project);
    let ran = project.run(&["verify", "--json"]);
    assert!(served(&ran), "{:#}", document(&ran)["record"]);
    assert_eq!(runs(project), before);
    document(&ran)
}

/// The names of the inputs that differed.
fn inputs(because: &Value) -> Vec<String> {
    let inputs = because["inputs"].as_array().unwrap();
    inputs.iter().map(|input| input["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pass_is_served_and_everybody_sees_that() {
    let project = project("true");
    let first = project.run(&["verify"]).exits(0);
    assert!(!first.stdout.contains("reused"), "{}", first.stdout);
    insta::assert_snapshot!("served", project.run(&["verify"]).exits(0).shown());
    let here = is_served(&project);
    assert_eq!((&here["reused"]["here"], &here["reused"]["failures"]), (&json!(true), &json!([])));
    // From any worktree, with the place that made it.
    let other = worktree(&project, "other");
    let there = project.ran(elsewhere(&project, &other, &["verify", "--json"])).exits(0);
    assert!(served(&there));
    let there = document(&there);
    assert_eq!(there["reused"]["here"], false);
    assert_eq!(there["reused"]["tree"], "[DIR]/project");
    assert!(there["reused"]["shared_record"].as_str().unwrap().ends_with("/project/.git/probity/state.db"));
    assert_eq!(runs(&project), 1);
    // What is served is no run: nothing is recorded of it.
    assert_eq!(project.run(&["log"]).stdout.lines().count(), 1);
    let lines = project.run(&["verify", "--format", "jsonl"]).exits(0).stdout;
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect();
    assert_eq!(events.last().unwrap(), "run_finished");
    assert!(events.contains(&json!("run_reused")), "{events:?}");
}

#[test]
fn fresh_always_runs() {
    let project = project("true");
    runs_anew(&project, "first");
    let ran = project.run(&["verify", "--fresh", "--json"]).exits(0);
    assert_eq!((because(&ran), runs(&project)), (json!("fresh"), 2));
    is_served(&project);
}

#[test]
fn a_failure_is_served_where_it_was_made_only_and_says_how_to_try_again() {
    let project = project("test -e ../good");
    runs_anew(&project, "first");
    insta::assert_snapshot!("failure_served", project.run(&["verify"]).exits(1).shown());
    assert_eq!(runs(&project), 1);
    // Elsewhere it is found out anew: there it may pass, and that is evidence with a past.
    let other = worktree(&project, "other");
    fs::write(project.outside().join("good"), "").unwrap();
    let there = project.ran(elsewhere(&project, &other, &["verify", "--json"])).exits(0);
    assert_eq!((because(&there), runs(&project)), (json!("failed_elsewhere"), 2));
    let here = is_served(&project);
    assert_eq!(here["reused"]["failures"].as_array().unwrap().len(), 1);
    // A failure at another place is never taken over, also where something passed before it.
    fs::remove_file(project.outside().join("good")).unwrap();
    project.ran(elsewhere(&project, &other, &["verify", "--fresh"])).exits(1);
    runs_anew(&project, "failed_elsewhere");
    // Asked for, it is tried again at its own place.
    fs::write(project.outside().join("good"), "").unwrap();
    let again = project.run(&["verify", "--retry-failed", "--json"]).exits(0);
    assert_eq!(because(&again), "retry");
    is_served(&project);
}

#[test]
fn what_came_to_no_answer_is_never_served() {
    for (body, more, why) in [
        ("kill -9 $$", "", "failed"),
        ("exit 75", "gap-exit = [75]\n", "no_answer"),
        ("sleep 60", "timeout = \"100ms\"\n", "no_answer"),
    ] {
        let project = configured(&check(body, more));
        project.run(&["verify"]).exits(1);
        if why != "failed" {
            runs_anew(&project, why);
        }
    }
}

#[test]
fn each_input_that_moves_makes_a_run_of_its_own_and_is_named() {
    let config = |body: &str, more: &str| check(body, more);
    let project = configured(&config(
        "true",
        "pass-env = [\"FLAG\"]\nambient = [\"ignored/*.env\"]\nfingerprint = [[\"cat\", \"../tool\"]]\n",
    ));
    fs::write(project.outside().join("tool"), "1").unwrap();
    project.write("ignored/a.env", "1").write("ignored/other", "1");
    runs_anew(&project, "first");
    is_served(&project);

    // A tool.
    fs::write(project.outside().join("tool"), "2").unwrap();
    assert_eq!(inputs(&runs_anew(&project, "changed")), ["checks.c.command.fingerprints"]);
    is_served(&project);
    // An ignored file that it says it needs, and one that it does not.
    project.write("ignored/other", "2");
    is_served(&project);
    project.write("ignored/a.env", "2");
    assert_eq!(inputs(&runs_anew(&project, "changed")), ["checks.c.command.ambient"]);
    // A variable that it sees, and one that it does not.
    let with = |name: &str| {
        let mut command = project.command(&["verify", "--json"]);
        command.env(name, "bad");
        project.ran(command)
    };
    assert!(served(&with("UNSEEN")));
    let flipped = with("FLAG");
    assert_eq!(inputs(&document(&flipped)["record"]["because"][0]), ["checks.c.command.environment.FLAG"]);
    assert!(served(&with("FLAG")));
    is_served(&project);
    // The program itself, wherever it is found first.
    let tools = project.outside().join("tools");
    fs::create_dir(&tools).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let elsewhere = || {
        let mut command = project.command(&["verify", "--json"]);
        command.env("PATH", &path);
        project.ran(command)
    };
    elsewhere();
    assert!(served(&elsewhere()));
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), tools.join("sh")).unwrap();
    assert!(served(&elsewhere()), "it is the very same program");
    let mut other = fs::read(tools.join("sh")).unwrap();
    other.push(0);
    fs::write(tools.join("sh"), other).unwrap();
    assert_eq!(inputs(&document(&elsewhere())["record"]["because"][0]), ["checks.c.command.program"]);
    // The command, and with it the tree that has the configuration.
    project.write("probity.toml", config("true; true", ""));
    commit(&project);
    let named = inputs(&runs_anew(&project, "changed"));
    for name in ["tree", "commit", "checks.c.definition"] {
        assert!(named.contains(&name.to_owned()), "{named:?}");
    }
    // A commit alone.
    is_served(&project);
    commit(&project);
    assert_eq!(inputs(&runs_anew(&project, "changed")), ["commit"]);
}

#[test]
fn the_short_form_s_environment_counts_but_for_what_differs_from_shell_to_shell() {
    let project = configured(&format!("[verify]\ncommands = [[\"sh\", \"-c\", '''{}''']]\n", counting("true")));
    runs_anew(&project, "first");
    for name in ["SHLVL", "OLDPWD", "TERM", "SSH_TTY", "TMUX_PANE"] {
        let mut command = project.command(&["verify", "--json"]);
        command.env(name, "another");
        assert!(served(&project.ran(command)), "{name}");
    }
    // Git puts its own folder in front of the search path of hooks.
    let mut hook = project.command(&["verify", "--json"]);
    hook.env("GIT_EXEC_PATH", "/nowhere/git-core");
    hook.env("PATH", format!("/nowhere/git-core:{}", std::env::var("PATH").unwrap()));
    assert!(served(&project.ran(hook)));
    let mut command = project.command(&["verify", "--json"]);
    command.env("CFLAGS", "-O0");
    let ran = project.ran(command);
    assert_eq!(inputs(&document(&ran)["record"]["because"][0]), ["checks.verify-1.command.environment.CFLAGS"]);
}

#[test]
fn a_fingerprint_that_fails_makes_nothing_that_is_served() {
    let project = configured(&check("true", "fingerprint = [[\"sh\", \"-c\", \"exit 3\"]]\n"));
    for _ in 0..2 {
        let because = runs_anew(&project, "alone");
        assert_eq!(because["withheld"]["why"], "unidentified");
    }
    let shown = project.run(&["verify"]).exits(0).shown();
    assert!(
        shown.contains(
            "it answers for no other run: of c it is not known what it rests on: `sh -c exit 3` ended with 3"
        ),
        "{shown}"
    );
}

#[test]
fn who_inherits_the_environment_is_served_nothing() {
    let project = configured(&check("true", "inherit-env = true\n"));
    runs_anew(&project, "first");
    assert_eq!(runs_anew(&project, "withheld")["withheld"], json!({ "why": "inherits", "check": "c" }));
}

#[test]
fn what_it_rests_on_must_not_change_while_it_goes_on() {
    for (what, change) in [
        ("fingerprints", "echo 2 > ../tool"),
        ("ambient", "echo 2 > ignored/a"),
        ("program", "printf ' ' >> ../bin/judge"),
    ] {
        let project = Project::new();
        let change = format!("test ! -e ../change || {change}");
        let more = "fingerprint = [[\"cat\", \"../tool\"]]\nambient = [\"ignored/**\"]\n";
        project.write("probity.toml", check(&change, more).replace("\"sh\", \"-c\"", "\"../bin/judge\", \"-c\""));
        fs::create_dir(project.outside().join("bin")).unwrap();
        project.script("../bin/judge", "exec sh \"$@\"\n#");
        fs::write(project.outside().join("tool"), "1").unwrap();
        project.write(".gitignore", "ignored/\n").write("ignored/a", "1").committed();
        runs_anew(&project, "first");
        is_served(&project);
        fs::write(project.outside().join("change"), "").unwrap();
        let ran = project.run(&["verify", "--fresh", "--json"]).exits(0);
        assert_eq!(
            document(&ran)["record"]["withheld"],
            json!([{ "why": "inputs", "inputs": [format!("checks.c.command.{what}")] }]),
            "{what}"
        );
        fs::remove_file(project.outside().join("change")).unwrap();
        runs_anew(&project, "changed");
    }
}

#[test]
fn an_edit_during_the_run_is_stale_and_one_that_is_taken_back_is_touched() {
    let project = project("test ! -e ../edit || sh ../edit");
    let edit = |script: &str| fs::write(project.outside().join("edit"), script).unwrap();
    edit("echo 2 > file");
    let ran = project.run(&["verify", "--json"]).exits(1);
    assert_eq!(document(&ran)["record"]["verdict"]["outcome"], "stale");
    fs::write(project.path("file"), "1\n").unwrap();

    for (what, script) in [
        ("edit and back", "cp -p file ../kept; echo 2 > file; cp -p ../kept file"),
        ("the same bytes", "cat file > ../kept; cat ../kept > file"),
        ("replaced by the same", "cp file new; mv new file"),
        ("created and removed", "echo 1 > came; rm came"),
        ("a folder created and removed", "mkdir came; echo 1 > came/file; rm -r came"),
    ] {
        edit(script);
        let ran = project.run(&["verify", "--fresh", "--json"]).exits(0);
        let record = &document(&ran)["record"];
        assert_eq!(record["withheld"], json!([{ "why": "touched" }]), "{what}: {record:#}");
        assert!(!record["touched"].as_array().unwrap().is_empty(), "{what}");
        assert_eq!(runs_anew(&project, "withheld")["withheld"]["why"], "touched", "{what}");
    }
    // What git ignores may come and go.
    edit("mkdir -p ignored; echo 1 > ignored/x; rm -r ignored");
    project.run(&["verify", "--fresh"]).exits(0);
    is_served(&project);
    edit("echo 1 > came; rm came");
    insta::assert_snapshot!("touched", project.run(&["verify", "--fresh"]).exits(0).shown());
}

#[test]
fn a_folder_that_was_swapped_and_put_back_is_seen() {
    let project = project(
        "test ! -e ../swap || { mv folder aside; mkdir folder; cp ../other folder/file; rm -r folder; mv aside folder; }",
    );
    project.write("folder/file", "good\n");
    fs::write(project.outside().join("other"), "bad\n").unwrap();
    commit(&project);
    fs::write(project.outside().join("swap"), "").unwrap();
    let ran = project.run(&["verify", "--json"]).exits(1);
    let record = &document(&ran)["record"];
    assert_eq!((&record["verdict"]["outcome"], &record["moved"]), (&json!("stale"), &json!(["folder/"])), "{record:#}");
}

#[test]
fn a_dirty_tree_publishes_nothing_and_is_verified_all_the_same() {
    let project = project("true");
    project.write("file", "2\n");
    for _ in 0..2 {
        assert_eq!(runs_anew(&project, "alone")["withheld"]["why"], "dirty");
    }
    project.run(&["status"]).exits(0);
    // Git's own view of it is not asked.
    project.git(&["update-index", "--assume-unchanged", "file"]);
    assert_eq!(runs_anew(&project, "alone")["withheld"]["why"], "dirty");
    project.git(&["update-index", "--no-assume-unchanged", "file"]);
    project.write("file", "1\n");
    runs_anew(&project, "changed");
    is_served(&project);
    // The index differs, and nothing else does.
    project.git(&["update-index", "--chmod=+x", "file"]);
    assert_eq!(runs_anew(&project, "alone")["withheld"]["why"], "dirty");
    project.git(&["reset", "-q"]);
    is_served(&project);
}

#[test]
fn an_edit_in_a_submodule_is_an_edit() {
    let project = project("true");
    project.write("inner/file", "1\n").committed_at("inner");
    project.git(&["add", "inner"]);
    project.write(".gitmodules", "[submodule \"inner\"]\n\tpath = inner\n\turl = ../inner\n\tignore = all\n");
    commit(&project);
    runs_anew(&project, "first");
    is_served(&project);
    project.write("inner/file", "2\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(runs_anew(&project, "alone")["withheld"]["why"], "dirty");
}

#[test]
fn a_check_that_was_not_selected_did_not_pass() {
    let config = format!(
        "{}\n[checks.e2e]\ncommand = [\"sh\", \"-c\", '''{}''']\nwhen = {{ branches = [\"main\"] }}\n",
        check("true", ""),
        counting("echo e2e >> ../../e2e 2> /dev/null; true")
    );
    let project = configured(&config);
    project.git(&["switch", "-q", "-c", "feature"]);
    runs_anew(&project, "first");
    is_served(&project);
    // The same tree and commit on another branch.
    project.git(&["switch", "-q", "main"]);
    assert_eq!(inputs(&runs_anew(&project, "changed"))[..1], ["checks.e2e.command"], "it runs on this branch");
    project.git(&["switch", "-q", "feature"]);
    is_served(&project);
}

#[test]
fn no_verify_is_answered_from_a_part() {
    let config = format!(
        "{}\n[checks.d]\ncommand = [\"true\"]\nfiles = [\"docs/**\"]\n[scenarios.default]\nchecks = [\"c\", \"d\"]\nbase = \"HEAD~1\"\n",
        check("true", "")
    );
    let project = configured(&config);
    project.write("docs/a", "1");
    commit(&project);
    project.write("file", "2\n");
    commit(&project);
    project.run(&["verify", "--only", "c"]).exits(3);
    runs_anew(&project, "changed");
    is_served(&project);
    // A part is not answered from the whole either.
    let before = runs(&project);
    project.run(&["verify", "--only", "c"]).exits(3);
    assert_eq!(runs(&project), before + 1);
    // What changed only says nothing of the rest, and answers for the same question.
    project.run(&["verify", "--changed"]).exits(0);
    let again = project.run(&["verify", "--changed", "--json"]).exits(0);
    assert!(served(&again));
    project.run(&["verify", "--fresh"]).exits(0);
    is_served(&project);
    project.run(&["verify", "--na", "nothing to judge"]).exits(0);
    is_served(&project);
}

#[test]
fn what_a_killed_run_leaves_is_no_evidence() {
    for name in ["TERM", "KILL"] {
        let project = project("test -e ../go || { echo > ../started; sleep 60; }");
        let mut child = project.command(&["verify"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the command runs", || project.outside().join("started").exists());
        signal(name, &child.id().to_string());
        child.wait().unwrap();
        fs::write(project.outside().join("go"), "").unwrap();
        let before = runs(&project);
        let ran = project.run(&["verify", "--json"]).exits(0);
        assert!(!served(&ran) && runs(&project) == before + 1, "{name}");
        is_served(&project);
    }
}

#[test]
fn an_empty_set_is_never_evidence() {
    let project = configured(&check("true", "files = [\"none/**\"]\n"));
    for _ in 0..2 {
        let ran = project.run(&["verify", "--json"]).exits(2);
        assert!(!served(&ran));
    }
}

#[test]
fn a_capability_is_part_of_the_question_in_both_directions() {
    let config = format!(
        "{}when = {{ capabilities = [\"thing\"] }}\n[checks.always]\ncommand = [\"true\"]\n[capabilities.thing]\nprobe = [\"test\", \"-e\", \"../thing\"]\n",
        check("true", "")
    );
    let project = configured(&config);
    let thing = project.outside().join("thing");
    // A green for want of it is never served to a host that has it.
    project.run(&["verify"]).exits(0);
    assert_eq!(runs(&project), 0);
    fs::write(&thing, "").unwrap();
    let named = runs_anew(&project, "changed");
    let of = named["inputs"].as_array().unwrap().iter().find(|input| input["name"] == "capabilities.thing").unwrap();
    assert_eq!((&of["then"], &of["now"]), (&json!("absent"), &json!("present")));
    is_served(&project);
    // And the reverse: without it the record from before answers, which was made without it too.
    fs::remove_file(&thing).unwrap();
    let served = is_served(&project);
    assert_eq!(served["record"]["capabilities"][0]["state"], "absent");
}

#[test]
fn a_gap_that_a_check_reports_is_no_input_and_no_evidence() {
    let gap = "echo '{\"class\": \"env_gap\", \"message\": \"no docker\"}' > $PROBITY_RESULT; exit 1";
    let config = format!("{}blocking = false\n[checks.d]\ncommand = [\"true\"]\n", check(gap, ""));
    let project = configured(&config);
    let shown = project.run(&["verify"]).exits(0).shown();
    assert!(shown.contains("it answers for no other run: something was missing here for c"), "{shown}");
    assert_eq!(runs_anew(&project, "withheld")["withheld"], json!({ "why": "gap", "check": "c" }));
}

#[test]
fn commands_say_nothing_for_ever() {
    let project =
        configured(&format!("{}[scenarios.default]\nchecks = [\"c\"]\nmax-age = \"1s\"\n", check("true", "")));
    runs_anew(&project, "first");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let because = runs_anew(&project, "old");
    assert_eq!(because["most_s"], 1);
}

#[test]
fn one_identity_is_found_out_once_however_many_ask() {
    for count in [2, 8] {
        let project = project("sleep 1");
        let other = worktree(&project, "other");
        // What would be made by the first is there, so that all of them wait for it.
        project.run(&["verify", "--na", "so that there is a store"]).exits(0);
        let before = runs(&project);
        let start = |at: usize| {
            let folder = if at.is_multiple_of(2) { project.root() } else { other.clone() };
            let mut command = elsewhere(&project, &folder, &["verify", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..count).map(start).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(runs(&project), before + 1, "{count} processes");
    }
}

#[test]
fn who_waits_for_the_same_is_told_and_a_dead_owner_is_found_out() {
    let project = project("test -e ../go || { echo > ../started; sleep 60; }");
    let other = worktree(&project, "other");
    project.run(&["verify", "--na", "so that there is a store"]).exits(0);
    let mut first = project.command(&["verify"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the command runs", || project.outside().join("started").exists());
    let refused = project.ran(elsewhere(&project, &other, &["verify", "--no-wait"])).exits(2);
    assert!(refused.stderr.contains("verifies the same in another worktree"), "{}", refused.stderr);
    let second =
        elsewhere(&project, &other, &["verify"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fs::write(project.outside().join("go"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal("KILL", &first.id().to_string());
    first.wait().unwrap();
    let output = second.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("waiting for run ") && told.contains("verifies the same in another worktree"), "{told}");
    assert_eq!(runs(&project), 2);
}

#[test]
fn an_isolated_command_sees_what_is_verified_and_changes_nothing() {
    let body = "test ! -e .git && test -L link && test -x tool && echo 2 > file && echo 3 > new && mkdir -p shut/in && echo > shut/in/x && chmod 500 shut/in";
    let config = format!("[checks.c]\ncommand = [\"sh\", \"-c\", '''echo run >> {{ran}}\n{body}''']\nisolate = true\n");
    let project = Project::new();
    let ran = project.outside().join("ran");
    project.write("probity.toml", config.replace("{ran}", ran.to_str().unwrap())).write("file", "1\n");
    project.script("tool", "true");
    std::os::unix::fs::symlink("file", project.path("link")).unwrap();
    project
        .write("large", vec![7_u8; 3 << 20])
        .write("empty", "")
        .write(".gitignore", "ignored\n")
        .write("ignored", "x");
    project.committed();
    runs_anew(&project, "first");
    is_served(&project);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "1\n");
    assert!(!project.path("new").exists());
    let left = fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
    let mine = left.filter(|name| name.to_str().unwrap().starts_with("probity-copy-"));
    assert_eq!(mine.count(), 0);
}

#[test]
fn what_is_not_this_user_s_is_shown_and_never_served() {
    // Another user's key: as in a store that was brought along.
    let project = project("true");
    runs_anew(&project, "first");
    is_served(&project);
    let mut foreign = project.command(&["verify", "--json"]);
    foreign.env("XDG_STATE_HOME", project.outside().join("state"));
    let ran = project.ran(foreign);
    // Another key makes other digests of variables too, so it is another question from the start.
    assert!(!served(&ran) && runs(&project) == 2);
    let database = || rusqlite::Connection::open(project.path(".git/probity/state.db")).unwrap();
    // A failure that is made a pass, with all digests made anew but the seal.
    project.write("file", "2\n").write("probity.toml", check("false", ""));
    commit(&project);
    project.run(&["verify"]).exits(1);
    let forge = |change: &dyn Fn(&mut Value)| {
        let (seq, bytes): (i64, Vec<u8>) = database()
            .query_row("SELECT seq, record FROM run ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let mut record: Value = serde_json::from_slice(&bytes).unwrap();
        change(&mut record);
        let record: probity::model::Record = serde_json::from_value(record).unwrap();
        let bytes = probity::model::to_canonical(&record).unwrap();
        let digest = record.digest().unwrap().to_string();
        let statement = "UPDATE run SET outcome = 'passed', record = ?1, record_digest = ?2 WHERE seq = ?3";
        database().execute(statement, rusqlite::params![bytes, digest, seq]).unwrap();
    };
    forge(&|record| {
        record["verdict"]["outcome"] = json!("passed");
        record["verdict"]["rows"][0]["outcome"] = json!("passed");
    });
    project.run(&["show"]).exits(0);
    assert_eq!(runs_anew(&project, "foreign")["why"], "foreign");
    // A seal of one row under another.
    database().execute_batch("UPDATE evidence SET seal = (SELECT seal FROM evidence ORDER BY seq LIMIT 1)").unwrap();
    assert_eq!(runs_anew(&project, "foreign")["why"], "foreign");
}

#[test]
fn a_row_is_no_proof_of_what_it_rests_on() {
    let project = project("echo said");
    for spoil in ["echo more >> LOG", "rm LOG", "rm LOG; ln -s /etc/passwd LOG"] {
        project.run(&["verify", "--fresh"]).exits(0);
        is_served(&project);
        let run = project.run(&["log", "-n", "1"]).stdout.split(' ').next().unwrap().to_owned();
        let log = project.path(&format!(".git/probity/logs/{run}/c.log"));
        let script = spoil.replace("LOG", log.to_str().unwrap());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        // An older one may be whole.
        let ran = project.run(&["verify", "--json"]).exits(0);
        assert_ne!(document(&ran)["record"]["run"], run, "{spoil}");
        fs::remove_dir_all(project.path(".git/probity")).unwrap();
    }
    // A trigger, and a link in the place of the state folder.
    project.run(&["verify"]).exits(0);
    let database = rusqlite::Connection::open(project.path(".git/probity/state.db")).unwrap();
    database
        .execute_batch("CREATE TRIGGER t AFTER INSERT ON run BEGIN UPDATE run SET outcome = 'passed'; END")
        .unwrap();
    drop(database);
    let before = runs(&project);
    let ran = project.run(&["verify", "--json"]).exits(0);
    assert!(!served(&ran) && runs(&project) == before + 1 && ran.stderr.contains("set aside"), "{}", ran.stderr);
    fs::rename(project.path(".git/probity"), project.outside().join("moved")).unwrap();
    std::os::unix::fs::symlink(project.outside().join("moved"), project.path(".git/probity")).unwrap();
    project.run(&["verify"]).exits(2);
    assert_eq!(runs(&project), before + 1);
}

#[test]
fn what_is_disowned_is_served_nowhere_and_no_old_store_brings_it_back() {
    let project = project("true");
    let state = project.outside().join("state");
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("XDG_STATE_HOME", &state);
        project.ran(command)
    };
    let again = || served(&run(&["verify", "--json"]).exits(0));
    assert!(!again() && again());
    let kept = project.outside().join("kept");
    let copy =
        |from: &Path, to: &Path| assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    copy(&project.path(".git/probity"), &kept);
    assert!(run(&["store", "disown", "--run", "latest"]).exits(0).stdout.starts_with("disowned: run "));
    assert!(!again() && again());
    fs::remove_dir_all(project.path(".git/probity")).unwrap();
    copy(&kept, &project.path(".git/probity"));
    let ran = run(&["verify", "--json"]);
    assert_eq!(because(&ran), "disowned");
    for what in [&["--engine", "this"][..], &["--all"]] {
        // An engine stays disowned, so that this one answers nothing any more.
        run(&[&["store", "disown"], what].concat()).exits(0);
        assert!(!again(), "{what:?}");
    }
    assert!(!again(), "the engine is disowned still");
    fs::write(state.join("probity/disowned.json"), "{").unwrap();
    assert!(run(&["verify"]).exits(2).stderr.contains("what was disowned cannot be read"));
    assert_eq!(run(&["store", "disown"]).code, Some(2));
}

#[test]
fn a_key_can_come_from_a_secret_that_commands_do_not_see_and_quarantine_is_read_only() {
    let body = "test -z \"$PROBITY_KEY\" && ! env | grep -q 0123456789abcdef";
    let project = configured(
        &check(body, "pass-env = [\"PROBITY_KEY\", \"PROBITY_TRUST\"]\n").replace(", \"PROBITY_TRUST\"", ""),
    );
    let key = "0123456789abcdef".repeat(4);
    let run = |key: &str, trust: &str| {
        let mut command = project.command(&["verify", "--json"]);
        command.env("PROBITY_KEY", key).env("PROBITY_TRUST", trust);
        project.ran(command)
    };
    // What strangers decide is kept for nobody, not even for themselves.
    for _ in 0..2 {
        let ran = run(&key, "quarantine").exits(0);
        assert!(!served(&ran));
        assert_eq!(document(&ran)["record"]["withheld"], json!([{ "why": "quarantine" }]));
    }
    assert!(!served(&run(&key, "ci:main").exits(0)));
    assert!(served(&run(&key, "ci:main").exits(0)) && served(&run(&key, "quarantine").exits(0)));
    assert!(!served(&run(&"f".repeat(64), "ci:main").exits(0)), "another key");
    for (key, trust) in [("short", ""), (key.as_str(), "ci:"), (key.as_str(), "me")] {
        run(key, trust).exits(2);
    }
}

#[test]
fn a_stored_record_is_delivered_as_it_is_and_nothing_is_executed() {
    let config = format!(
        "{}when = {{ capabilities = [\"thing\"] }}\n[checks.d]\ncommand = [\"true\"]\n[capabilities.thing]\nprobe = [\"sh\", \"-c\", \"echo >> ../probed; test -e ../thing\"]\n\n         [scenarios.default]\nchecks = [\"c\", \"d\"]\nbase = \"start\"\n[scenarios.other]\nchecks = [\"d\"]\n",
        check("test ! -e ../red", "")
    );
    let project = configured(&config);
    project.git(&["branch", "start"]);
    let deliver = |arguments: &[&str], code: i32, state: &str| {
        let before = (runs(&project), fs::read_to_string(project.outside().join("probed")).unwrap_or_default());
        let ran = project.run(&[&["verify", "--deliver-cached"], arguments].concat()).exits(code);
        assert!(ran.stderr.starts_with(&format!("PROBITY_CACHE_STATE={state}\n")), "{}", ran.stderr);
        let after = (runs(&project), fs::read_to_string(project.outside().join("probed")).unwrap_or_default());
        assert_eq!(before, after, "nothing is executed");
        ran
    };
    deliver(&[], 1, "missing");
    project.run(&["verify", "other"]).exits(0);
    deliver(&[], 1, "missing");
    deliver(&["other"], 0, "current");
    fs::write(project.outside().join("thing"), "").unwrap();
    project.run(&["verify"]).exits(0);
    let current = deliver(&["--json"], 0, "current");
    assert_eq!((&document(&current)["cache_state"], &document(&current)["exit_code"]), (&json!("current"), &json!(0)));
    insta::assert_snapshot!("delivered", deliver(&[], 0, "current").shown());
    // A capability that moved, as a later run found out.
    fs::remove_file(project.outside().join("thing")).unwrap();
    project.run(&["verify", "--only", "d"]).exits(3);
    deliver(&[], 1, "current");
    project.git(&["commit", "-q", "--allow-empty", "-m", "next"]);
    deliver(&[], 1, "missing");
    project.run(&["verify"]).exits(0);
    // The base moved: said once, and then it is gone.
    project.git(&["branch", "-f", "start"]);
    insta::assert_snapshot!("delivery_stale", deliver(&[], 5, "stale-identity").shown());
    deliver(&[], 1, "missing");
    deliver(&["other"], 1, "missing");
    // What is not green is at its own place only.
    fs::write(project.outside().join("thing"), "").unwrap();
    fs::write(project.outside().join("red"), "").unwrap();
    project.run(&["verify"]).exits(1);
    deliver(&[], 1, "current");
    let other = worktree(&project, "other");
    let there = project.ran(elsewhere(&project, &other, &["verify", "--deliver-cached", "--json"])).exits(5);
    assert_eq!(document(&there)["moved"][0]["name"], "place");
    project.run(&["verify", "--na", "only words"]).exits(0);
    deliver(&[], 0, "current");
    // What is held back is for its own place only, green or not, and takes no other one's place.
    project.write("untracked", "").run(&["verify", "--fresh"]).exits(1);
    fs::remove_file(project.outside().join("red")).unwrap();
    project.run(&["verify"]).exits(0);
    deliver(&[], 0, "current");
    // What it rests on is looked at.
    let run = project.run(&["log", "-n", "1"]).stdout.split(' ').next().unwrap().to_owned();
    fs::write(project.path(&format!(".git/probity/logs/{run}/c.log")), "other").unwrap();
    assert!(!project.run(&["verify", "--deliver-cached"]).stdout.contains(&run));
    let plan = project.run(&["verify", "--plan"]).exits(0).stdout;
    assert!(plan.contains("capability thing: present, as probed 0 s ago\n") || plan.contains("s ago\n"), "{plan}");
}

#[test]
fn each_check_says_why_it_ran_or_did_not() {
    let config = format!("{}\n[checks.d]\ncommand = [\"true\"]\npass-env = [\"FLAG\"]\n", check("true", ""));
    let project = configured(&config);
    assert_eq!(project.run(&["why", "c"]).exits(0).stdout, "c would run:\n    no such run is recorded\n");
    insta::assert_snapshot!("explained_first", project.run(&["verify", "--explain"]).exits(0).shown());
    insta::assert_snapshot!("explained_served", project.run(&["verify", "--explain"]).exits(0).shown());
    insta::assert_snapshot!("why_served", redacted(&project.run(&["why", "c"]).exits(0).stdout));
    let with = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("FLAG", "other");
        redacted(&project.ran(command).exits(0).stdout)
    };
    insta::assert_snapshot!("why_changed", with(&["why", "d"]));
    insta::assert_snapshot!("why_other_check", with(&["why", "c"]));
    let before = runs(&project);
    let json = document(&project.run(&["why", "c", "--json"]).exits(0));
    assert_eq!((&json["because"], json["served"]["reuse"]["here"].as_bool()), (&json!([]), Some(true)));
    assert_eq!(runs(&project), before);
    let wrong = project.run(&["why", "x"]).exits(2);
    assert!(wrong.stderr.contains("it has c, d"), "{}", wrong.stderr);
}

/// A generator of numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the command's answer rests on in one of the worktrees.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    file: u64,
    ambient: u64,
}

/// What it rests on everywhere.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    flag: u64,
    tool: u64,
    thing: bool,
}

/// Whatever is done to trees, tools, environment, store and running processes, no run is answered other than it would come to:
/// an oracle that never reuses anything says what that is. `PROBITY_MODEL_STEPS` and `PROBITY_MODEL_SEED` make it longer and
/// another one.
#[test]
fn no_served_verdict_differs_from_a_fresh_one() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|said| said.parse().ok()).unwrap_or(default);
    let (steps, seed) = (number("PROBITY_MODEL_STEPS", 250), number("PROBITY_MODEL_SEED", 7));
    let body = "test -e ../hang && { echo > ../hangs; sleep 60; }\n\
        extra=0; test -e ../thing && extra=1\n\
        test $(( ($(cat file) + $(cat ambient) + FLAG + $(cat ../tool) + extra) % 3 )) != 0";
    let config = format!(
        "{}needs = [\"shell\"]\n[checks.extra]\ncommand = [\"true\"]\nwhen = {{ capabilities = [\"thing\"] }}\n\
         [capabilities.thing]\nprobe = [\"test\", \"-e\", \"../thing\"]\n[capabilities.shell]\nprogram = \"sh\"\n",
        check(body, "pass-env = [\"FLAG\"]\nambient = [\"ambient\"]\nfingerprint = [[\"cat\", \"../tool\"]]\n")
    );
    let project = Project::with(&config);
    project.write(".gitignore", "ambient\n").write("file", "0").committed();
    let folders = [project.root(), worktree(&project, "other")];
    let outside = project.outside();
    let git = |place: usize, arguments: &[&str]| {
        project.git(&[&["-C", folders[place].to_str().unwrap()], arguments].concat());
    };
    let set = |path: PathBuf, value: u64| fs::write(path, value.to_string()).unwrap();
    let (mut places, mut around) = ([Place::default(); 2], Around::default());
    set(outside.join("tool"), 0);
    folders.iter().for_each(|folder| set(folder.join("ambient"), 0));
    let (mut dice, mut answered, mut ran) = (Dice(seed), 0, 0);
    for step in 0..steps {
        let at = usize::try_from(dice.roll(2)).unwrap();
        let (folder, value) = (&folders[at], dice.roll(3));
        match dice.roll(12) {
            0 => {
                places[at].file = value;
                set(folder.join("file"), value);
            }
            1 => {
                git(at, &["add", "-A"]);
                git(at, &["commit", "-q", "--allow-empty", "-m", "x"]);
            }
            // To the commit of the other one, which has its committed file.
            2 => {
                git(at, &["reset", "-q", "--hard"]);
                let other = project.git(&["-C", folders[1 - at].to_str().unwrap(), "rev-parse", "HEAD"]);
                git(at, &["checkout", "-q", "--detach", &other]);
                places[at].file = fs::read_to_string(folder.join("file")).unwrap().parse().unwrap();
            }
            3 => {
                places[at].ambient = value;
                set(folder.join("ambient"), value);
            }
            4 => around.flag = value,
            5 => {
                around.tool = value;
                set(outside.join("tool"), value);
            }
            6 => {
                around.thing = !around.thing;
                if around.thing {
                    set(outside.join("thing"), 0)
                } else {
                    fs::remove_file(outside.join("thing")).unwrap()
                }
            }
            7 if value == 0 => {
                project.run(&["store", "gc"]).exits(0);
            }
            8 if value == 0 => {
                set(outside.join("hang"), 0);
                let mut command = elsewhere(&project, folder, &["verify", "--fresh"]);
                command.env("FLAG", around.flag.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
                let mut child = command.spawn().unwrap();
                eventually("it hangs", || outside.join("hangs").exists());
                signal("KILL", &child.id().to_string());
                child.wait().unwrap();
                fs::remove_file(outside.join("hang")).unwrap();
                fs::remove_file(outside.join("hangs")).unwrap();
            }
            _ => {
                let more = match dice.roll(8) {
                    0 => &["--fresh"][..],
                    1 => &["--retry-failed"],
                    2 => &["--only", "extra"],
                    _ => &[],
                };
                let mut command = elsewhere(&project, folder, &[&["verify", "--json"], more].concat());
                command.env("FLAG", around.flag.to_string());
                let shown = project.ran(command);
                let Place { file, ambient } = places[at];
                let sum = file + ambient + around.flag + around.tool + u64::from(around.thing);
                let expected = if more.contains(&"--only") {
                    // Of a check that is not for this machine nothing is left.
                    if around.thing { 3 } else { 2 }
                } else {
                    i32::from(sum.is_multiple_of(3))
                };
                assert_eq!(
                    shown.code,
                    Some(expected),
                    "step {step} of seed {seed}: {around:?} {:?}\n{}{}",
                    places[at],
                    shown.stdout,
                    shown.stderr
                );
                let was_served = served(&shown);
                answered += u64::from(was_served);
                ran += u64::from(!was_served);
                if was_served {
                    let selected = document(&shown)["record"]["coverage"]["selected"].clone();
                    assert_eq!(selected, 1 + u64::from(around.thing), "step {step} of seed {seed}");
                }
            }
        }
    }
    assert!(answered > steps / 50 && ran > steps / 50, "{answered} were served and {ran} ran: it says nothing");
    project.run(&["store", "check"]);
}
