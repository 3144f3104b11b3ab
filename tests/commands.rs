//! Command checks: how they run, end, and are told.

use crate::support::{Project, Ran, alive, around, eventually, row};
use serde_json::json;
use std::fs;
use std::process::Stdio;

#[test]
fn a_green_and_a_red_command() {
    let project = Project::with(
        "[verify]\ncommands = [[\"true\"], [\"sh\", \"-c\", \"echo to stdout; echo to stderr >&2; exit 3\"], [\"true\"]]\n",
    );
    let ran = project.run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn checks_after_the_first_red_one_are_skipped_unless_told_otherwise() {
    let config = |fail_fast: bool| {
        format!(
            "[checks.a]\ncommand = [\"false\"]\nblocking = false\n[checks.b]\ncommand = [\"false\"]\n[checks.c]\ncommand = [\"true\"]\n\
             [scenarios.default]\nchecks = [\"a\", \"b\", \"c\"]\nfail-fast = {fail_fast}\n"
        )
    };
    let (code, document) = Project::with(&config(true)).verify();
    assert_eq!(code, 1);
    assert_eq!(row(&document, "a")["outcome"], "failed");
    assert_eq!(row(&document, "b")["outcome"], "failed");
    assert_eq!(row(&document, "c")["outcome"], serde_json::json!({"skipped": {"after_failure": "b"}}));
    let (code, document) = Project::with(&config(false)).verify();
    assert_eq!(code, 1);
    assert_eq!(row(&document, "c")["outcome"], "passed");
}

#[test]
fn the_red_of_a_check_that_does_not_block_is_shown_and_decides_nothing() {
    let project =
        Project::with("[checks.a]\ncommand = [\"false\"]\nblocking = false\n[checks.b]\ncommand = [\"true\"]\n");
    let ran = project.run(&["verify"]).exits(0);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_command_runs_at_the_root_from_wherever_it_was_asked_for() {
    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"pwd; test -f probity.toml\"]]\n");
    project.write("deep/er/file", "");
    let mut command = project.command(&["verify"]);
    command.current_dir(project.path("deep/er"));
    project.ran(command).exits(0);
    project.run(&["-C", "deep/er", "verify"]).exits(0);
    project.run(&["-C", "nowhere", "verify"]).exits(2);
    let log = project.run(&["show", "--log"]).exits(0);
    assert_eq!(log.stdout, "==> verify-1 <==\n[DIR]/project\n\n");
}

#[test]
fn a_command_is_never_a_shell_line() {
    let project = Project::with("[verify]\ncommands = [[\"echo\", \"$HOME; `id` && *\"]]\n");
    project.run(&["verify"]).exits(0);
    let log = project.run(&["show", "--log", "--check", "verify-1"]).exits(0);
    assert_eq!(log.stdout, "$HOME; `id` && *\n");
}

#[test]
fn short_form_commands_inherit_the_environment_and_checks_get_a_declared_one() {
    let project = Project::with(
        "[verify]\ncommands = [[\"env\"]]\nenv = [\"ADDED=1\"]\n\
         [checks.declared]\ncommand = [\"env\"]\nenv = [\"ADDED=2\"]\npass-env = [\"PASSED\"]\n\
         [checks.inherits]\ncommand = [\"env\"]\ninherit-env = true\n",
    );
    let mut command = project.command(&["verify"]);
    command.env("SECRET", "s").env("PASSED", "p").env("GIT_DIR", "/elsewhere").env("TZ", "Mars/Base");
    project.ran(command).exits(0);
    let environment = |id: &str| {
        let text = project.run(&["show", "--log", "--check", id]).exits(0).stdout;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let has = |id: &str, line: &str| environment(id).iter().any(|have| have == line);
    assert!(has("verify-1", "SECRET=s") && has("verify-1", "ADDED=1") && has("verify-1", "TZ=Mars/Base"));
    assert!(has("inherits", "SECRET=s") && !has("inherits", "GIT_DIR=/elsewhere"));
    let declared: Vec<String> = environment("declared")
        .into_iter()
        .filter(|line| !["PATH=", "HOME=", "PROBITY_RESULT="].iter().any(|name| line.starts_with(name)))
        .collect();
    assert_eq!(declared, ["ADDED=2", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PASSED=p", "TZ=UTC"]);
}

#[test]
fn a_command_that_cannot_be_started_is_an_error_of_its_check() {
    let project = Project::with(
        "[checks.missing]\ncommand = [\"no-such-program-here\"]\n[checks.forbidden]\ncommand = [\"./data\"]\n\
         [checks.fine]\ncommand = [\"true\"]\n[scenarios.default]\nchecks = [\"missing\", \"forbidden\", \"fine\"]\nfail-fast = false\n",
    );
    project.write("data", "no program");
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(document["record"]["verdict"]["outcome"], "error");
    assert_eq!(row(&document, "missing")["outcome"], serde_json::json!({"error": "not_found"}));
    assert_eq!(row(&document, "forbidden")["outcome"], serde_json::json!({"error": "not_found"}));
    assert_eq!(row(&document, "fine")["outcome"], "passed");
    let message = around(&document, "missing")["message"].as_str().unwrap();
    assert!(message.contains("no such program") && message.contains("PATH is "), "{message}");
    assert!(around(&document, "forbidden")["message"].as_str().unwrap().contains("may not be executed"));
}

#[test]
fn a_timeout_ends_everything_the_command_started() {
    let project = Project::with(
        "[checks.hangs]\ncommand = [\"./hang\"]\ntimeout = \"300ms\"\n[checks.later]\ncommand = [\"true\"]\n",
    );
    project.script("hang", "trap '' TERM\nsleep 600 &\necho $! > pids\necho $$ >> pids\necho started\nsleep 600");
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(document["record"]["verdict"]["outcome"], "timed_out");
    assert_eq!(row(&document, "hangs")["outcome"], "timed_out");
    assert_eq!(around(&document, "hangs")["exit"], serde_json::json!({"signal": 9}));
    assert_eq!(row(&document, "later")["outcome"], serde_json::json!({"skipped": {"after_failure": "hangs"}}));
    for pid in fs::read_to_string(project.path("pids")).unwrap().lines() {
        eventually("the end of what the command started", || !alive(pid));
    }
    let log = project.run(&["show", "--log", "--check", "hangs"]).exits(0);
    assert_eq!(log.stdout, "started\n");
}

#[test]
fn what_a_command_leaves_behind_in_its_group_ends_with_it() {
    let project = Project::with("[verify]\ncommands = [[\"./leave\"]]\n");
    project.script("leave", "sleep 600 &\necho $! > pid").write(".gitignore", "/pid\n");
    project.run(&["verify"]).exits(0);
    let pid = fs::read_to_string(project.path("pid")).unwrap();
    eventually("the end of the straggler", || !alive(&pid));
}

#[test]
fn output_ends_with_its_command_whoever_goes_on_writing() {
    let project = Project::with("[verify]\ncommands = [[\"./leave\"]]\n");
    let flood = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec yes' &\nwhile [ ! -e pid ]; do sleep 0.01; done";
    project.script("leave", flood).write(".gitignore", "/pid*\n");
    let (code, document) = project.verify();
    assert_eq!(code, 0);
    assert!(!alive(&fs::read_to_string(project.path("pid")).unwrap()));
    let size = around(&document, "verify-1")["log"]["size"].as_u64().unwrap();
    let folder = project.path(&format!(".probity/logs/{}", document["record"]["run"].as_str().unwrap()));
    assert_eq!(fs::metadata(folder.join("verify-1.log")).unwrap().len(), size, "nothing is left that could write");
    let combined = fs::metadata(folder.join("verify.log")).unwrap().len();
    assert_eq!(combined, "==> verify-1 <==\n".len() as u64 + size + 1);
}

#[test]
fn the_budget_of_the_run_ends_it_and_leaves_no_verdict() {
    let project = Project::with("[verify]\ncommands = [[\"sleep\", \"600\"], [\"true\"]]\ntimeout = \"300ms\"\n");
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(document["record"]["verdict"]["outcome"], "timed_out");
    assert_eq!(document["record"]["verdict_digest"], serde_json::Value::Null);
    assert_eq!(row(&document, "verify-1")["outcome"], "timed_out");
}

#[test]
fn a_signal_interrupts_the_command_and_the_run_is_recorded_so() {
    for signal in ["INT", "TERM"] {
        let project = Project::with("[verify]\ncommands = [[\"./hang\"], [\"true\"]]\n");
        project.script("hang", "echo $$ > pid.new; mv pid.new pid; exec sleep 600");
        let child = project.command(&["verify"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("the start of the command", || project.path("pid").exists());
        let killed = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
        let pid = fs::read_to_string(project.path("pid")).unwrap();
        eventually("the end of the command", || !alive(&pid));
        let ran = project.run(&["log"]).exits(0);
        assert!(ran.stdout.contains("interrupted") && ran.stdout.contains("no verdict"), "{}", ran.stdout);
    }
}

#[test]
fn output_that_is_not_text_is_kept_as_it_is_and_shown_without_harm() {
    let project = Project::with("[verify]\ncommands = [[\"./noise\"]]\n");
    project.script("noise", "printf 'caf\\351 \\033[31mred\\033[0m \\000 \\342\\200\\256reversed\\nlast\\n'; exit 1");
    let ran: Ran = project.run(&["verify"]).exits(1);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'), "{:?}", ran.stdout);
    insta::assert_snapshot!(ran.shown());
    let log = project.run(&["show", "--log", "--check", "verify-1"]).exits(0);
    assert_eq!(log.raw.stdout, b"caf\xe9 \x1b[31mred\x1b[0m \x00 \xe2\x80\xaereversed\nlast\n");
}

#[test]
fn a_long_output_is_kept_whole_and_shown_in_part() {
    let project = Project::with("[verify]\ncommands = [[\"./talk\"]]\n");
    project.script("talk", "i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done; exit 1");
    let ran = project.run(&["verify"]).exits(1);
    assert!(ran.stdout.contains("line 19999") && !ran.stdout.contains("line 19979\n"), "{}", ran.stdout);
    let log = project.run(&["show", "--log", "--check", "verify-1"]).exits(0);
    assert_eq!(log.stdout.lines().count(), 20000);
}

#[test]
fn a_file_that_a_command_changes_makes_the_run_stale_and_is_named() {
    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"echo more >> file; echo new > new\"]]\n");
    project.write("file", "x\n").committed();
    let ran = project.run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn an_ignored_file_may_change() {
    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"mkdir -p target; date > target/out\"]]\n");
    project.write(".gitignore", "/target\n").committed();
    project.run(&["verify"]).exits(0);
}

#[test]
fn what_was_not_started_when_the_run_ended_is_skipped_and_says_why() {
    let project =
        Project::with("[verify]\ncommands = [[\"sleep\", \"600\"], [\"true\"], [\"true\"]]\ntimeout = \"300ms\"\n");
    let (code, document) = project.verify();
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &json!("timed_out")));
    assert_eq!(row(&document, "verify-1")["outcome"], "timed_out");
    for id in ["verify-2", "verify-3"] {
        assert_eq!(row(&document, id)["outcome"], json!({"skipped": "time_up"}));
    }
    let shown = project.run(&["show"]).exits(0).stdout;
    assert!(shown.contains("1 timed_out, 2 skipped in"), "{shown}");
    assert_eq!(shown.matches("the time of the whole run was used up\n").count(), 3, "{shown}");
}

#[test]
fn a_program_that_may_not_be_executed_comes_with_what_to_do() {
    let project = Project::with("[checks.c]\ncommand = [\"./tool\"]\n");
    project.write("tool", "#!/bin/sh\ntrue\n");
    let shown = project.run(&["verify"]).exits(1).stdout;
    assert!(
        shown.contains("cannot start `./tool`: it may not be executed\n    help: make it executable (`chmod +x`)"),
        "{shown}"
    );
}
