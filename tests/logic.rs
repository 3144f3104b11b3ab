//! Logic checks through the real binary: what hostile packs come to, and that nothing else suffers.

use crate::support::guests::{Check, Finding, Guest, Outcome};
use crate::support::{Project, alive, around, eventually, row};
use std::process::Stdio;

const CONFIG: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\", \"tree:!p.wasm\"]\n\n\
     [checks.before]\ncommand = [\"true\"]\n\n[checks.look]\nuse = \"p/look\"\n\n[checks.after]\ncommand = [\"true\"]\n\n\
     [scenarios.default]\nchecks = [\"before\", \"look\", \"after\"]\nfail-fast = false\n";

fn project(guest: &Guest) -> Project {
    let project = Project::with(CONFIG);
    project.component("p.wasm", &guest.text());
    project
}

/// Verifies with a guest that ends in an error, and gives the error's kind and message. The checks around it pass.
fn error_of(guest: &Guest) -> (String, String) {
    let (code, document) = project(guest).verify();
    assert_eq!(code, 1, "{document:#}");
    assert_eq!(document["record"]["verdict"]["outcome"], "error");
    assert_eq!(row(&document, "before")["outcome"], "passed");
    assert_eq!(row(&document, "after")["outcome"], "passed");
    let kind = row(&document, "look")["outcome"]["error"].as_str().unwrap().to_owned();
    let message = around(&document, "look")["message"].as_str().unwrap_or_default().to_owned();
    (kind, message)
}

fn finding(path: &str, line: u32, column: u32) -> Finding {
    Finding { path: Some(path.into()), start: Some((line, column)), ..Finding::default() }
}

#[test]
fn a_pack_judges_and_the_host_decides() {
    let guest = |findings| Guest { outcome: Outcome::Report(findings, vec![("lines".into(), 7)]), ..Guest::default() };
    let (code, document) = project(&guest(Vec::new())).verify();
    assert_eq!(code, 0);
    assert_eq!(row(&document, "look")["stats"], serde_json::json!([["lines", 7]]));
    assert_eq!(row(&document, "look")["class"], "hermetic");
    assert_eq!(row(&document, "before")["class"], "observed");
    assert!(around(&document, "look")["fuel"].as_u64().unwrap() > 0);

    let warning = Finding { severity: 1, ..finding("probity.toml", 1, 1) };
    let (code, document) = project(&guest(vec![warning])).verify();
    assert_eq!((code, &row(&document, "look")["outcome"]), (0, &serde_json::json!("passed")), "a warning is a concern");

    let ran =
        project(&guest(vec![finding("probity.toml", 2, 3), finding("probity.toml", 1, 1)])).run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn findings_have_one_order_and_no_twins() {
    let guest = |findings| Guest { outcome: Outcome::Report(findings, Vec::new()), ..Guest::default() };
    let rows = |guest: &Guest| row(&project(guest).verify().1, "look")["findings"].clone();
    let one = guest(vec![finding("probity.toml", 2, 1), finding("probity.toml", 1, 1)]);
    let other = guest(vec![finding("probity.toml", 1, 1), finding("probity.toml", 2, 1)]);
    assert_eq!(rows(&one), rows(&other));
    let twins = guest(vec![finding("probity.toml", 1, 1), finding("probity.toml", 1, 1)]);
    assert_eq!(error_of(&twins).0, "bad_result");
}

#[test]
fn a_trap_is_told_with_its_cause() {
    let (kind, message) = error_of(&Guest { on_run: "unreachable".into(), ..Guest::default() });
    assert_eq!(kind, "trap");
    assert!(message.contains("unreachable") || message.contains("panic"), "{message}");
    assert!(!message.contains("wasmtime") && !message.contains(".rs:"), "no host's backtrace: {message}");
}

#[test]
fn a_loop_ends_when_its_fuel_does() {
    let limited = CONFIG.replace("use = \"p/look\"", "use = \"p/look\"\nlimits = { fuel = 10000000 }");
    let guest = Guest { on_run: "(loop $l br $l)".into(), ..Guest::default() };
    let project = Project::with(&limited);
    project.component("p.wasm", &guest.text());
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(row(&document, "look")["outcome"], serde_json::json!({"error": "out_of_fuel"}));
    assert!(row(&document, "look")["engine"].as_str().unwrap().starts_with("wasmtime-"));
    assert_eq!(row(&document, "after")["outcome"], "passed");
}

#[test]
fn eating_memory_ends_at_the_limit() {
    let guest = Guest { on_run: "(loop $l (drop (memory.grow (i32.const 64))) br $l)".into(), ..Guest::default() };
    assert_eq!(error_of(&guest).0, "out_of_memory");
}

#[test]
fn recursion_without_end_is_told() {
    let guest = Guest {
        more: "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))".into(),
        on_run: "(drop (call $deep (i32.const 0)))".into(),
        ..Guest::default()
    };
    assert_eq!(error_of(&guest).0, "stack_overflow");
}

#[test]
fn a_result_that_breaks_the_contract_is_told() {
    let bad =
        |finding: Finding| error_of(&Guest { outcome: Outcome::Report(vec![finding], Vec::new()), ..Guest::default() });
    for (name, finding) in [
        ("a rule it does not have", Finding { rule: b"other".to_vec(), ..Finding::default() }),
        ("a path that is not there", finding("nowhere", 1, 1)),
        ("a path out of the tree", finding("../etc/passwd", 1, 1)),
        ("line zero", finding("probity.toml", 0, 1)),
        ("a severity that is none", Finding { severity: 9, ..Finding::default() }),
        ("text that is not UTF-8", Finding { message: b"\xff\xfe".to_vec(), ..Finding::default() }),
    ] {
        assert_eq!(bad(finding).0, "bad_result", "{name}");
    }
}

#[test]
fn escape_sequences_of_a_pack_do_not_reach_the_terminal() {
    let finding = Finding { message: "\u{1b}[2Jcleared \u{202e}drow".into(), ..Finding::default() };
    let ran =
        project(&Guest { outcome: Outcome::Report(vec![finding], Vec::new()), ..Guest::default() }).run(&["verify"]);
    let ran = ran.exits(1);
    assert!(ran.stdout.contains("\\u{1b}[2Jcleared \\u{202e}drow"), "{}", ran.stdout);
}

#[test]
fn refusals_are_no_passes() {
    let refused = |case, message: &str| {
        let guest = Guest { outcome: Outcome::Refusal(case, message.into()), ..Guest::default() };
        let (_, document) = project(&guest).verify();
        row(&document, "look")["outcome"].clone()
    };
    assert_eq!(refused(0, "no files of mine"), serde_json::json!({"skipped": "not_applicable"}));
    assert_eq!(refused(1, "m"), serde_json::json!({"error": "needs_context"}));
    assert_eq!(refused(2, "m"), serde_json::json!({"error": "gap"}));
    assert_eq!(refused(3, "m"), serde_json::json!({"error": "invalid_config"}));
    assert_eq!(refused(4, "m"), serde_json::json!({"error": "internal"}));
}

#[test]
fn a_pack_that_refuses_everything_is_nothing_verified() {
    let project =
        Project::with("[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.look]\nuse = \"p/look\"\n");
    let guest = Guest { outcome: Outcome::Refusal(0, "none of mine".into()), ..Guest::default() };
    project.component("p.wasm", &guest.text());
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_pack_that_cannot_be_described_is_refused_before_anything_runs() {
    for guest in [
        Guest { on_describe: "unreachable".into(), ..Guest::default() },
        Guest { on_describe: "(loop $l br $l)".into(), ..Guest::default() },
        Guest { on_start: "unreachable".into(), ..Guest::default() },
        Guest { contract: "0.2.0", ..Guest::default() },
    ] {
        let project = project(&guest);
        let ran = project.run(&["verify"]).exits(2);
        assert!(ran.stderr.contains("pack `p` cannot be used"), "{}", ran.stderr);
        assert!(!project.path(".probity").exists());
    }
}

#[test]
fn a_check_that_takes_no_configuration_refuses_one() {
    let project = Project::with(&CONFIG.replace("use = \"p/look\"", "use = \"p/look\"\nconfig = { a = 1 }"));
    project.component("p.wasm", &Guest::default().text());
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_mount_that_is_not_allowed_is_asked_for_with_the_line_to_add() {
    let mut guest = Guest::default();
    guest.pack.checks =
        vec![Check { needs: vec![(0, vec!["**".into()]), (4, vec!["*.md".into()])], ..Check::default() }];
    let project = project(&guest);
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn compiled_code_that_was_damaged_is_made_again() {
    let project = project(&Guest::default());
    let cache = project.outside().join("cache");
    let run = || {
        let mut command = project.command(&["verify"]);
        command.env("XDG_CACHE_HOME", &cache);
        project.ran(command)
    };
    run().exits(0);
    let folder = cache.join("probity");
    let mut damaged = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "something is cached");
    run().exits(0);
    // A cache that cannot be used costs time and nothing else.
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, "a file in its place").unwrap();
    run().exits(0);
}

#[test]
fn guests_run_behind_walls_and_the_record_says_which() {
    let (_, document) = project(&Guest::default()).verify();
    let walls = around(&document, "look")["walls"].as_str().unwrap();
    if cfg!(target_os = "linux") {
        assert!(walls.contains("seccomp"), "{walls}");
    }
    assert_eq!(around(&document, "before")["walls"], serde_json::Value::Null);
}

#[test]
fn a_guest_that_takes_too_long_is_stopped() {
    let config = CONFIG
        .replace("use = \"p/look\"", "use = \"p/look\"\ntimeout = \"300ms\"\nlimits = { fuel = 9000000000000000 }");
    let project = Project::with(&config);
    project.component("p.wasm", &Guest { on_run: "(loop $l br $l)".into(), ..Guest::default() }.text());
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(row(&document, "look")["outcome"], "timed_out");
    assert_eq!(row(&document, "after")["outcome"], "passed");
}

#[test]
fn a_signal_stops_a_guest_and_nothing_of_it_is_left() {
    for signal in ["TERM", "KILL"] {
        let config = CONFIG.replace("use = \"p/look\"", "use = \"p/look\"\nlimits = { fuel = 9000000000000000 }");
        let project =
            Project::with(&config.replace("\"true\"]\n\n[checks.look]", "\"touch\", \"started\"]\n\n[checks.look]"));
        project.write(".gitignore", "/started\n");
        project.component("p.wasm", &Guest { on_run: "(loop $l br $l)".into(), ..Guest::default() }.text());
        let mut child = project.command(&["verify"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let workers = |of: u32| {
            let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
            let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
            let all: Vec<String> = tasks
                .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
                .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
                .collect();
            if all.is_empty() { children.split_whitespace().map(str::to_owned).collect() } else { all }
        };
        let mut seen: Vec<String> = Vec::new();
        eventually("the start of the guest", || {
            seen = workers(child.id());
            project.path("started").exists() && !seen.is_empty()
        });
        let killed = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let status = child.wait().unwrap();
        if signal == "TERM" {
            assert_eq!(status.code(), Some(1));
            let log = project.run(&["log"]).exits(0).stdout;
            assert!(log.contains("interrupted"), "{log}");
        }
        for pid in seen {
            eventually("the end of the worker", || !alive(&pid));
        }
    }
}
