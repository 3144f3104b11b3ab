//! What a run says while it goes on, and what is shown of that: reports, lines for programs, replays.

use crate::support::{self, Project, alive, eventually, redacted};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

const CONFIG: &str = "[checks.first]\ncommand = [\"sh\", \"-c\", \"echo from the first; exit 3\"]\n\n\
     [checks.second]\ncommand = [\"sh\", \"-c\", \"printf 'a \\\\033[31mred\\\\033[0m word\\\\n'; exit 4\"]\n\n\
     [checks.third]\ncommand = [\"true\"]\n\n[checks.other]\ncommand = [\"true\"]\nwhen = { branches = [\"no-such\"] }\n\n\
     [scenarios.default]\nchecks = [\"first\", \"second\", \"third\", \"other\"]\nfail-fast = false\n";

/// A command that waits until a file is there, which is removed again.
const WAITING: &str = "[checks.c]\ncommand = [\"sh\", \"./run\"]\n";

fn waiting(script: &str) -> Project {
    let project = Project::with(WAITING);
    let wait = "wait_for() { until [ -e \"$1\" ]; do sleep 0.02; done; rm \"$1\"; }\n";
    project.write("run", format!("{wait}{script}"));
    project
}

/// Starts a run whose standard error can be read line by line.
fn start(project: &Project, arguments: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child =
        project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

fn signal(name: &str, child: &Child) {
    support::signal(name, &child.id().to_string());
}

fn go_on(project: &Project, name: &str) {
    fs::write(project.outside().join(name), "").unwrap();
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// An event without what only whoever looked on saw.
fn kept(mut event: Value) -> Option<Value> {
    let transient = ["check_output", "check_slow", "running", "stopping"];
    event.as_object_mut().unwrap().remove("at_ms");
    (!transient.iter().any(|name| event["event"] == *name)).then_some(event)
}

#[test]
fn the_end_of_what_red_commands_wrote_stands_beside_the_outcome() {
    let ran = Project::with(CONFIG).run(&["verify"]).exits(1);
    insta::assert_snapshot!(redacted(&ran.stdout));
}

#[test]
fn of_one_long_line_the_end_is_shown() {
    let config =
        "[checks.c]\ncommand = [\"sh\", \"-c\", \"head -c 100000 /dev/zero | tr '\\\\0' x; printf why; exit 1\"]\n";
    let ran = Project::with(config).run(&["verify"]).exits(1);
    assert!(ran.stdout.contains("c wrote last:\n") && ran.stdout.contains("xxxwhy\n"), "{}", ran.stdout);
}

#[test]
fn a_replay_is_what_was_shown() {
    let project = Project::with(CONFIG);
    for arguments in
        [&["verify"][..], &["verify", "-j", "3"], &["verify", "--only", "third"], &["verify", "--na", "so"]]
    {
        let ran = project.run(arguments);
        let replayed = project.run(&["replay", "latest"]).exits(0);
        assert_eq!((ran.stdout, ran.stderr), (replayed.stdout.clone(), replayed.stderr), "{arguments:?}");
        let shown = project.run(&["show"]).exits(0);
        assert!(shown.stdout.ends_with(&replayed.stdout), "{}", shown.stdout);
    }
    let ran = project.run(&["verify", "--json"]);
    assert_eq!(ran.stdout, project.run(&["replay", "latest", "--format", "json"]).exits(0).stdout);
    let ran = project.run(&["replay", "nothing"]).exits(2);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("error: "), "{}", ran.stderr);
}

#[test]
fn each_event_is_one_line_as_it_comes_and_a_replay_has_all_that_is_kept() {
    let project = Project::with(CONFIG);
    let ran = project.run(&["verify", "--format", "jsonl", "-v"]).exits(1);
    let said = lines(&ran.stdout);
    assert_eq!(ran.stderr, "");
    let kinds: Vec<String> =
        said.iter().map(|event| format!("{} {}", event["event"], event["id"]).replace(['"', '\\'], "")).collect();
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.trim_end_matches(" null")).collect();
    insta::assert_snapshot!(kinds.join("\n"));
    let times: Vec<u64> = said.iter().map(|event| event["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
    assert_eq!(said[0]["schema"], "probity/events/1");
    let end = said.last().unwrap();
    assert_eq!((&end["exit_code"], &end["recorded"]), (&json!(1), &json!(true)));
    let document: Value = serde_json::from_str(&project.run(&["show", "--json"]).stdout).unwrap();
    assert_eq!((&end["record"], &end["record_digest"]), (&document["record"], &document["record_digest"]));
    let output: Vec<&str> = said.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(output, ["from the first\n", "a \u{1b}[31mred\u{1b}[0m word\n"]);
    // Without being asked for, output is not told.
    let quiet = project.run(&["verify", "--format", "jsonl"]).exits(1);
    assert!(!quiet.stdout.contains("check_output"), "{}", quiet.stdout);
    let replayed = lines(&project.run(&["replay", "latest", "--format", "jsonl"]).exits(0).stdout);
    assert_eq!(replayed, lines(&quiet.stdout).into_iter().filter_map(kept).collect::<Vec<_>>());
}

#[test]
fn the_page_about_events_names_all_of_them() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/events.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let named: BTreeSet<&str> = rows.collect();
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/model/event.rs")).unwrap();
    let body = source.split("pub enum Event {").nth(1).unwrap().split("\n}\n").next().unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(" {"));
    let variants: BTreeSet<String> = variants
        .filter(|name| name.starts_with(char::is_uppercase))
        .map(|name| {
            let words: String = name
                .chars()
                .map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() })
                .collect();
            words.trim_start_matches('_').to_owned()
        })
        .collect();
    assert!(variants.len() > 8);
    assert_eq!(named, variants.iter().map(String::as_str).collect());
}

#[test]
fn whoever_asks_is_told_what_runs_and_what_it_wrote_last() {
    let project = waiting("echo one; echo two $TOKEN; : > ../begun; wait_for ../go");
    let config = "[checks.c]\ncommand = [\"sh\", \"./run\"]\npass-env = [\"TOKEN\"]\nsecrets = [\"TOKEN\"]\n";
    project.write("probity.toml", config);
    let mut command = project.command(&["verify"]);
    command.env("TOKEN", "hidden-value").stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    eventually("the command runs", || project.outside().join("begun").exists());
    signal("USR1", &child);
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = told.by_ref().take(3).collect();
    assert!(said[0].starts_with("running: c, for "), "{said:?}");
    assert_eq!(said[1..], ["    | one", "    | two [secret TOKEN]"]);
    go_on(&project, "go");
    assert_eq!(told.next(), None);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn asking_ends_nothing_whenever_it_comes() {
    // Before any check runs: a probe of this machine is waited for.
    let project = waiting("exit 0");
    project.write("probe", ": > ../begun\nuntil [ -e ../go ]; do sleep 0.02; done\n");
    let config = "[capabilities.slow]\nprobe = [\"sh\", \"./probe\"]\ntimeout = \"1m\"\n\n";
    project.write("probity.toml", format!("{config}{WAITING}when = {{ capabilities = [\"slow\"] }}\n"));
    let (mut child, _told) = start(&project, &["verify"]);
    eventually("the probe runs", || project.outside().join("begun").exists());
    signal("USR1", &child);
    signal("USR1", &child);
    go_on(&project, "go");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_check_that_takes_long_is_named_with_its_end() {
    let project = waiting("wait_for ../go");
    // Half of its time is long.
    project.write("probity.toml", format!("{WAITING}timeout = \"4s\"\n"));
    let (mut child, mut told) = start(&project, &["verify"]);
    let said = told.next().unwrap();
    assert!(said.starts_with("slow: c has been running for ") && said.ends_with("; it is ended after 4.0s"), "{said}");
    signal("INT", &child);
    let said = told.next().unwrap();
    assert_eq!(said, "interrupted: what runs is asked to end; a second signal ends it at once");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn what_is_being_ended_is_not_told_to_be_slow() {
    let config = "[checks.c]\ncommand = [\"sh\", \"-c\", \"trap '' TERM; exec sleep 600\"]\ntimeout = \"200ms\"\n";
    let ran = Project::with(config).run(&["verify"]).exits(1);
    assert!(ran.stdout.starts_with("timed_out"), "{}", ran.stdout);
    assert!(ran.stderr.matches("slow: c").count() <= 1, "{}", ran.stderr);
}

#[test]
fn output_is_shown_as_it_comes_without_control_codes_and_without_secrets() {
    let script =
        "printf 'begun \\033[1m%s\\033[0m\\n' \"$TOKEN\"; printf half; wait_for ../go; printf ' a line\\nno end'";
    let project = waiting(script);
    let config = "[checks.c]\ncommand = [\"sh\", \"./run\"]\npass-env = [\"TOKEN\"]\nsecrets = [\"TOKEN\"]\n";
    project.write("probity.toml", config);
    let mut command = project.command(&["verify", "-v"]);
    command.env("TOKEN", "hidden-value").stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // It has come before the command ended.
    assert_eq!(told.next().unwrap(), "c | begun [secret TOKEN]");
    go_on(&project, "go");
    assert_eq!(told.collect::<Vec<_>>(), ["c | half a line", "c | no end"]);
    let mut report = String::new();
    child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert!(report.starts_with("passed "), "{report}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn of_a_flood_of_output_the_end_is_shown_and_all_is_kept() {
    let project = waiting("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo the end");
    let ran = project.run(&["verify", "-v"]).exits(0);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.last().unwrap(), &"c | the end");
    assert!(lines[0].starts_with("c | … (") && lines[0].ends_with(" bytes are left out)"), "{}", lines[0]);
    assert!(ran.stderr.len() < 1_500_000, "{}", ran.stderr.len());
    let kept = project.run(&["show", "--check", "c", "--log"]).exits(0);
    assert_eq!(kept.stdout.len(), 3_000_000 + "\nthe end\n".len());
}

#[test]
fn what_a_shell_ignores_for_it_is_passed_over_and_no_command_is_told() {
    let project = waiting("grep SigIgn /proc/self/status > ../ignored; : > ../begun; wait_for ../go");
    let mut command = project.after("trap '' HUP INT QUIT USR2 WINCH", &["verify"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    eventually("the command runs", || project.outside().join("begun").exists());
    signal("HUP", &child);
    signal("INT", &child);
    assert!(alive(&child.id().to_string()));
    go_on(&project, "go");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let ignored = fs::read_to_string(project.outside().join("ignored")).unwrap();
    // Two above these are the system library's own.
    let set = u64::from_str_radix(ignored.split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(set & 0x7fff_ffff, 0, "{ignored}");
}
