//! What this machine has: probed once, only where something needs it, recorded, and red where it is not there.

use crate::support::{Project, around, row};
use serde_json::json;
use std::fs;

/// A check for each of these needs, with a scenario that runs them all.
fn project(capabilities: &str, needs: &[&str]) -> Project {
    let check = |need: &&str| format!("[checks.for-{need}]\ncommand = [\"true\"]\nneeds = [\"{need}\"]\n");
    let ids: Vec<String> = needs.iter().map(|need| format!("\"for-{need}\"")).collect();
    let checks: String = needs.iter().map(check).collect();
    let scenario = format!("[scenarios.default]\nfail-fast = false\nchecks = [{}]\n", ids.join(", "));
    Project::with(&format!("{capabilities}{checks}{scenario}"))
}

#[test]
fn what_is_not_there_makes_who_needs_it_red_and_is_recorded() {
    let other = if cfg!(target_os = "linux") { "macos" } else { "linux" };
    let project = project(
        &format!(
            "[capabilities.there]\nprobe = [\"true\"]\n[capabilities.not-there]\nprobe = [\"false\"]\n\
             [capabilities.program]\nprogram = \"git\"\nat-least = \"1.0\"\n\
             [capabilities.newer]\nprogram = \"git\"\nat-least = \"999.0\"\n\
             [capabilities.missing]\nprobe = [\"./no-such-program\"]\n\
             [capabilities.slow]\nprobe = [\"sleep\", \"600\"]\ntimeout = \"100ms\"\n\
             [capabilities.other]\nos = \"{other}\"\n[capabilities.unasked]\nprobe = [\"touch\", \"ran\"]\n"
        ),
        &["there", "not-there", "program", "newer", "missing", "slow", "other"],
    );
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    for (id, outcome) in [
        ("for-there", json!("passed")),
        ("for-not-there", json!({"error": "gap"})),
        ("for-program", json!("passed")),
        ("for-newer", json!({"error": "gap"})),
        ("for-missing", json!({"error": "gap"})),
        ("for-slow", json!({"error": "gap"})),
        ("for-other", json!({"error": "gap"})),
    ] {
        assert_eq!(row(&document, id)["outcome"], outcome, "{id}");
    }
    let states = document["record"]["capabilities"].as_array().unwrap().iter();
    let states: Vec<(&str, &str)> =
        states.map(|one| (one["name"].as_str().unwrap(), one["state"].as_str().unwrap())).collect();
    let expected = [
        ("missing", "unknown"),
        ("newer", "absent"),
        ("not-there", "absent"),
        ("other", "absent"),
        ("program", "present"),
        ("slow", "unknown"),
        ("there", "present"),
    ];
    assert_eq!(states, expected, "what nobody asks for is not probed");
    assert!(!project.path("ran").exists());
    let message = around(&document, "for-not-there")["message"].as_str().unwrap();
    assert!(message.contains("it needs the capability `not-there`, which is absent here"), "{message}");
}

#[test]
fn each_is_probed_once_a_run_and_never_for_a_plan_or_a_check_that_does_not_run() {
    let capability = "[capabilities.one]\nprobe = [\"sh\", \"-c\", \"echo probed >> $HOME/probes\"]\n";
    let checks = "[checks.a]\ncommand = [\"true\"]\nneeds = [\"one\"]\n[checks.b]\ncommand = [\"true\"]\nneeds = [\"one\"]\n\
                  [checks.c]\ncommand = [\"true\"]\n";
    let project = Project::with(&format!("{capability}{checks}"));
    let probes = || fs::read_to_string(project.outside().join("home/probes")).unwrap_or_default().lines().count();
    project.run(&["verify", "--plan"]).exits(0);
    project.run(&["verify", "--only", "c"]).exits(3);
    project.run(&["config"]).exits(0);
    assert_eq!(probes(), 0);
    project.run(&["verify"]).exits(0);
    assert_eq!(probes(), 1);
}

#[test]
fn a_check_for_other_machines_is_left_out_and_that_is_no_error() {
    let project = Project::with(
        "[capabilities.there]\nprobe = [\"true\"]\n[capabilities.gone]\nprobe = [\"false\"]\n\
         [capabilities.unknown]\nprobe = [\"./no-such-program\"]\n\
         [checks.a]\ncommand = [\"true\"]\nwhen.capabilities = [\"there\"]\n\
         [checks.b]\ncommand = [\"false\"]\nwhen.capabilities = [\"there\", \"gone\"]\n\
         [checks.c]\ncommand = [\"false\"]\nwhen.capabilities = [\"unknown\"]\n\
         [checks.d]\ncommand = [\"false\"]\nwhen = { capabilities = [\"gone\"], scenarios = [\"other\"] }\n\
         [scenarios.default]\nchecks = [\"a\", \"b\", \"c\", \"d\"]\n[scenarios.other]\nchecks = [\"d\"]\n",
    );
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(row(&document, "a")["outcome"], "passed");
    for id in ["b", "c"] {
        assert_eq!(row(&document, id)["outcome"], json!({"not_selected": "no_capability"}));
    }
    assert_eq!(row(&document, "d")["outcome"], json!({"not_selected": "other_scenario"}));
    assert_eq!(document["record"]["capabilities"].as_array().unwrap().len(), 3);
    // Which of them it is, and why, is said of each check.
    let said = project.run(&["verify"]).exits(0).stdout;
    for (id, why) in [("b", "`gone` is absent here: "), ("c", "`unknown` is unknown here: ")] {
        let line = said.lines().find(|line| line.starts_with(&format!("not_selected {id} "))).unwrap();
        assert!(line.contains(why), "{said}");
        assert!(around(&document, id)["message"].as_str().unwrap().starts_with(why), "{document:#}");
    }
    // A plan finds nothing out, and what nobody has asked is taken to be there; it says so.
    let plan = project.run(&["verify", "--plan"]).exits(0).stdout;
    assert!(plan.contains("3 of 4 checks would run"), "{plan}");
    assert!(
        plan.contains("`false`, if `there` and `gone` are there\n")
            && plan.contains("`false`, if `unknown` is there\n"),
        "{plan}"
    );
    project.run(&["verify", "other"]).exits(2);
}
