//! The walls around packs: what stands, what is held, and what is refused where one is missing.

use crate::support::guests::Guest;
use crate::support::{Project, Ran, around, example};
use std::process::Command;

const CONFIG: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n\n[checks.look]\nuse = \"p/look\"\n\n\
     [checks.command]\ncommand = [\"true\"]\n\n[scenarios.commands]\nchecks = [\"command\"]\n";

fn project() -> Project {
    let project = Project::with(CONFIG);
    project.component("p.wasm", &Guest::default().text());
    project
}

/// Runs the binary where the kernel does not know how to make a wall.
fn without(project: &Project, wall: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(example("without"));
    command.arg(wall);
    project.ran(project.through(command, arguments))
}

#[test]
fn every_wall_holds_by_itself_what_it_is_there_for() {
    let ran = project().run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let walls = document["walls"].as_array().unwrap();
    let stand = walls.iter().all(|wall| wall["stands"] == true);
    assert_eq!(ran.code, Some(i32::from(!stand)), "{document:#}");
    let crossings = document["crossings"].as_array().unwrap();
    assert_eq!(crossings.len(), 23);
    // What is tried would work: without a wall most of it goes through. (Some systems refuse the rest by themselves.)
    let open = crossings.iter().filter(|crossing| crossing["behind_none"].get("open").is_some()).count();
    assert!(open >= 15, "{document:#}");
    for crossing in crossings {
        let behind = if crossing["behind_seccomp"].is_null() { "behind_landlock" } else { "behind_all" };
        assert!(crossing["holds"] == true || behind == "behind_landlock", "{crossing:#}");
        if stand {
            assert!(crossing["behind_all"]["held"].is_string(), "{crossing:#}");
        }
    }
}

#[test]
fn the_doctor_says_it_in_words() {
    let ran = project().run(&["doctor"]);
    assert!(ran.stdout.contains("walls around packs"), "{}", ran.stdout);
    if ran.code == Some(0) {
        // Which programs are where, and what other systems refuse by themselves, differs.
        let lines = ran.stdout.lines().map(|line| match line.split_whitespace().next() {
            Some(word @ ("probity" | "engine" | "git" | "state" | "cache" | "key")) => format!("{word} [HERE]"),
            Some(_) | None => line.replace("; this system refuses it without them too", ""),
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    } else {
        assert!(ran.stdout.contains("MISSING") || ran.stdout.contains("OPEN"), "{}", ran.stdout);
    }
}

#[test]
fn a_missing_wall_is_told_with_its_reason() {
    for (wall, reason) in [
        ("landlock", "the kernel does not have it: Linux 6.12 or later has all of it"),
        ("seccomp", "the kernel does not have it, or a filter around this process forbids it"),
    ] {
        let project = project();
        let ran = without(&project, wall, &["doctor"]).exits(1);
        let line = format!("MISSING  {wall}");
        assert!(ran.stdout.contains(&line) && ran.stdout.contains(reason), "{}", ran.stdout);
        let open = ran.stdout.contains("OPEN  ask about a file");
        assert_eq!(open, wall == "seccomp", "what Landlock does not hold alone: {}", ran.stdout);
    }
}

#[test]
fn strict_walls_refuse_before_any_code_of_a_pack_runs() {
    for wall in ["landlock", "seccomp"] {
        let project = project();
        // A pack whose code would be run to describe itself, and that could not.
        project.component("p.wasm", &Guest { on_start: "unreachable".into(), ..Guest::default() }.text());
        let ran = without(&project, wall, &["verify", "--walls", "strict"]).exits(2);
        assert!(ran.stderr.contains(&format!("{wall}: the kernel does not have it")), "{}", ran.stderr);
        assert!(!ran.stderr.contains("cannot be used") && ran.stderr.contains("help: "), "{}", ran.stderr);
        assert!(!project.path(".probity").exists(), "nothing ran and nothing was recorded");
        // Commands run behind no walls, so none is missing for them.
        without(&project, wall, &["verify", "commands", "--walls", "strict"]).exits(0);
    }
}

#[test]
fn without_strict_walls_the_record_says_which_stood() {
    let project = project();
    let ran = without(&project, "landlock", &["verify", "--json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(around(&document, "look")["walls"], "seccomp");
    let ran = without(&project, "seccomp", &["verify", "--json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_ne!(around(&document, "look")["walls"], "landlock, seccomp");
}

#[test]
fn strict_walls_make_no_difference_where_all_stand() {
    let project = project();
    let doctor = project.run(&["doctor"]);
    let ran = project.run(&["verify", "--walls", "strict"]);
    let expected = if doctor.code == Some(0) { Some(0) } else { Some(2) };
    assert_eq!(ran.code, expected, "{}\n{}{}", ran.stderr, doctor.stdout, doctor.stderr);
}

#[test]
fn how_a_shell_started_it_makes_no_difference() {
    // What runs in the background of a script has these ignored, and so have all that it starts.
    let project = project();
    let plain = project.run(&["doctor"]);
    let ignored = project.ran(project.after("trap '' INT QUIT HUP TERM XCPU XFSZ ABRT", &["doctor"]));
    assert_eq!((plain.code, plain.stdout), (ignored.code, ignored.stdout));
}
