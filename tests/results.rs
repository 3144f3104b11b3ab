//! What commands say of themselves: `$PROBITY_RESULT` and `gap-exit`.

use crate::support::{Project, around, row};
use serde_json::json;
use std::fs;

/// One check `c` that runs `./say`.
fn project(keys: &str, script: &str) -> Project {
    let project = Project::with(&format!("[checks.c]\ncommand = [\"./say\"]\n{keys}\n"));
    project.script("say", script);
    project
}

/// The exit code of the run, and outcome and message of the check.
fn told(keys: &str, script: &str) -> (i32, serde_json::Value, String) {
    let (code, document) = project(keys, script).verify();
    let message = around(&document, "c")["message"].as_str().unwrap_or_default().to_owned();
    (code, row(&document, "c")["outcome"].clone(), message)
}

fn write(text: &str, exit: u8) -> String {
    format!("cat > \"$PROBITY_RESULT\" <<'END'\n{text}\nEND\nexit {exit}")
}

#[test]
fn what_a_command_writes_explains_or_worsens_its_result() {
    let gap = r#"{"class": "env_gap", "message": "docker is not running"}"#;
    let context = r#"{"class": "needs_context", "message": "which cluster?"}"#;
    let nothing = r#"{"class": "not_applicable", "message": "no charts here"}"#;
    let error = r#"{"findings": [{"rule": "r", "severity": "error", "message": "m"}]}"#;
    let warning = r#"{"findings": [{"rule": "r", "severity": "warning", "message": "m"}]}"#;
    let message = r#"{"message": "three of nine"}"#;
    for (text, exit, code, outcome, said) in [
        (gap, 0, 1, json!({"error": "gap"}), "docker is not running"),
        (gap, 1, 1, json!({"error": "gap"}), "docker is not running"),
        (context, 0, 1, json!({"error": "needs_context"}), "which cluster?"),
        (context, 2, 1, json!({"error": "needs_context"}), "which cluster?"),
        (nothing, 0, 2, json!({"skipped": "not_applicable"}), "no charts here"),
        (nothing, 1, 1, json!("failed"), "no charts here"),
        (error, 0, 1, json!("failed"), ""),
        (warning, 0, 0, json!("passed"), ""),
        (warning, 1, 1, json!("failed"), ""),
        (message, 1, 1, json!("failed"), "three of nine"),
        (message, 0, 0, json!("passed"), "three of nine"),
        ("{}", 0, 0, json!("passed"), ""),
    ] {
        assert_eq!(told("", &write(text, exit)), (code, outcome, said.to_owned()), "{text} exit {exit}");
    }
}

#[test]
fn findings_and_counts_are_recorded_in_their_one_form_and_shown() {
    let text = r#"{"message": "1 of 3 failed", "stats": {"tests": 3, "failures": 1}, "findings": [
        {"rule": "E2", "severity": "warning", "message": "later", "place": {"path": "src/b", "start": {"line": 1}}},
        {"rule": "E1", "severity": "error", "message": "first", "help": "mend it",
         "place": {"path": "src/a", "start": {"line": 3, "column": 2}, "end": {"line": 3, "column": 4}},
         "edits": [{"path": "src/a", "start": 0, "end": 3, "replacement": "xyz"}]}]}"#;
    let project = project("", &write(text, 1));
    project.write("src/a", "abc\n").write("src/b", "");
    let (_, document) = project.verify();
    let row = row(&document, "c");
    assert_eq!(row["stats"], json!([["failures", 1], ["tests", 3]]));
    let rules: Vec<_> = row["findings"].as_array().unwrap().iter().map(|finding| &finding["rule"]).collect();
    assert_eq!(rules, ["E1", "E2"]);
    assert_eq!(row["class"], "observed");
    insta::assert_snapshot!(project.run(&["verify"]).exits(1).shown());
}

#[test]
fn what_is_no_result_is_an_error_that_says_what_is_wrong() {
    let finding = |rest: &str| format!("{{\"findings\": [{{\"rule\": \"r\", \"severity\": \"error\", {rest}}}]}}");
    let placed = |path: &str| finding(&format!("\"message\": \"m\", \"place\": {{\"path\": \"{path}\"}}"));
    let edited = |path: &str, end: u64| {
        let edit = format!("{{\"path\": \"{path}\", \"start\": 0, \"end\": {end}, \"replacement\": \"\"}}");
        finding(&format!("\"message\": \"m\", \"edits\": [{edit}]"))
    };
    let twice = r#"{"rule": "r", "severity": "note", "message": "m"}"#;
    let cases = [
        write("all is well", 0),
        write("all is well", 1),
        write(r#"{"klass": "env_gap"}"#, 0),
        write(r#"{"class": "passed"}"#, 1),
        write(r#"{"stats": {"tests": -1}}"#, 0),
        write(r#"{"stats": {"tests": 9007199254740992}}"#, 0),
        write(r#"{"stats": {"Tests": 1}}"#, 0),
        write(r#"{"stats": {"a": 1, "a": 1}}"#, 0),
        write(r#"{"message": " "}"#, 0),
        write(&format!("{{\"message\": \"{}\"}}", "m".repeat(8193)), 0),
        write(&format!("{{\"findings\": [{twice}, {twice}]}}"), 0),
        write(&finding("\"message\": \"\""), 0),
        write(&placed("../outside"), 0),
        write(&placed("/etc/passwd"), 0),
        write(&finding("\"message\": \"m\", \"place\": {\"path\": \"a\", \"start\": {\"line\": 0}}"), 0),
        write(&edited("nowhere", 0), 0),
        write(&edited("say", 1 << 40), 0),
        ": > \"$PROBITY_RESULT\"".to_owned(),
        "mkfifo \"$PROBITY_RESULT\"".to_owned(),
        "mkdir \"$PROBITY_RESULT\"".to_owned(),
        "ln -s /dev/zero \"$PROBITY_RESULT\"".to_owned(),
        "ln -s ../../../probity.toml \"$PROBITY_RESULT\"".to_owned(),
        "head -c 1048577 /dev/zero | tr '\\0' ' ' > \"$PROBITY_RESULT\"".to_owned(),
    ];
    let mut shown = String::new();
    for script in cases {
        let (code, outcome, message) = told("", &script);
        assert_eq!((code, outcome), (1, json!({"error": "bad_result"})), "{script}");
        shown.push_str(&format!("{}\n", message.lines().next().unwrap()));
        assert!(message.ends_with("help: mend the command, or have it write nothing there"), "{message}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn each_command_has_a_fresh_file_that_is_not_there_and_goes() {
    let project = Project::with("[verify]\ncommands = [[\"./look\"], [\"./look\"]]\n");
    project.script(
        "look",
        "test ! -e \"$PROBITY_RESULT\" || exit 1\necho \"$PROBITY_RESULT\"\necho '{}' > \"$PROBITY_RESULT\"",
    );
    let mut command = project.command(&["verify"]);
    command.env("PROBITY_RESULT", "/elsewhere");
    project.ran(command).exits(0);
    let log = |id: &str| project.run(&["show", "--log", "--check", id]).exits(0).raw.stdout;
    let paths = ["verify-1", "verify-2"].map(|id| String::from_utf8(log(id)).unwrap().trim().to_owned());
    assert_ne!(paths[0], paths[1]);
    for path in &paths {
        assert!(path.starts_with('/') && !fs::exists(path).unwrap(), "{path}");
    }
}

#[test]
fn what_was_written_before_a_timeout_does_not_count() {
    let script = format!("{}\nexec sleep 600", write(r#"{"class": "not_applicable"}"#, 0).replace("\nexit 0", ""));
    let (code, outcome, _) = told("timeout = \"500ms\"", &script);
    assert_eq!((code, outcome), (1, json!("timed_out")));
}

#[test]
fn an_exit_code_can_mean_a_gap() {
    let gap = "gap-exit = [75]";
    let (code, outcome, message) = told(gap, "exit 75");
    assert_eq!((code, outcome), (1, json!({"error": "gap"})));
    assert_eq!(message, "by `gap-exit`, exit code 75 says that something is missing here");
    assert_eq!(told(gap, "exit 74").1, json!("failed"));
    assert_eq!(told("", "exit 75").1, json!("failed"));
    // What is missing may be said, and it is not made better.
    assert_eq!(told(gap, &write(r#"{"message": "no docker"}"#, 75)).2, "no docker");
    assert_eq!(told(gap, &write(r#"{"class": "not_applicable"}"#, 75)).1, json!({"error": "gap"}));
    // A signal is no exit code.
    assert_eq!(told("gap-exit = [137]", "kill -KILL $$").1, json!("failed"));
    let shown = project(gap, "exit 75").run(&["verify"]).exits(1);
    insta::assert_snapshot!(shown.shown());
}

#[test]
fn the_record_says_what_a_command_was_passed() {
    let project = Project::with(
        "[verify]\ncommands = [[\"true\"]]\n[checks.d]\ncommand = [\"true\"]\npass-env = [\"MODE\"]\n\
         [checks.missing]\ncommand = [\"no-such-program\"]\n",
    );
    let with = |mode: &str, other: &str| {
        let mut command = project.command(&["verify", "--json"]);
        command.env("MODE", mode).env("OTHER", other);
        let document: serde_json::Value = serde_json::from_str(&project.ran(command).exits(1).stdout).unwrap();
        assert!(around(&document, "missing").get("environment").is_none());
        let of = |id: &str| around(&document, id)["environment"].clone();
        assert_eq!((of("verify-1")["mode"].clone(), of("d")["mode"].clone()), (json!("inherited"), json!("declared")));
        let digest = |id: &str| of(id)["definition"].as_str().unwrap().to_owned();
        (digest("verify-1"), digest("d"), document["record"]["verdict_digest"].clone())
    };
    let first = with("a", "x");
    assert_eq!(with("a", "x"), first);
    let other = with("a", "y");
    assert!(other.0 != first.0 && other.1 == first.1, "only one that inherits is passed it");
    let mode = with("b", "x");
    assert!(mode.0 != first.0 && mode.1 != first.1, "both are passed it");
    assert_eq!(mode.2, first.2, "the verdict is about the tree");
    let shown = project.run(&["show", "--check", "d"]).exits(0).stdout;
    assert!(shown.contains("    environment declared, blake3:"), "{shown}");
}
