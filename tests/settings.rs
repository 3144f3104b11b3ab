//! `probity config`: what holds and where it comes from, and the schemas.

use crate::support::Project;
use std::fs;

const CONFIG: &str = r#"[verify]
commands = [["touch", "ran"]]
timeout = "30m"
env = ["TOKEN=very-secret"]

[packs.p]
source = "file:p.wasm"
allow = ["tree:**"]

[checks.look]
use = "p/look"
config = { "odd key" = 1.5, list = ["a\u001b[31m"] }
limits = { fuel = 40, memory = "1KiB" }
"#;

fn with_user(config: &str, user: &str) -> Project {
    let project = Project::with(config);
    let folder = project.outside().join("home/.config/probity");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), user).unwrap();
    project
}

#[test]
fn each_value_comes_with_the_line_that_says_it_and_nothing_runs() {
    let project = with_user(CONFIG, "walls = \"strict\"\n[limits]\nfuel = 50\nwall = \"1m\"\n");
    let ran = project.run(&["config"]).exits(0);
    assert!(!ran.stdout.contains("very-secret"), "{}", ran.stdout);
    insta::assert_snapshot!(ran.shown());
    let json = project.run(&["config", "--json"]).exits(0);
    assert!(!json.stdout.contains("very-secret"), "{}", json.stdout);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    insta::assert_json_snapshot!("each_value_as_json", document);
    assert!(!project.path("ran").exists() && !project.path(".probity").exists(), "something ran");
}

#[test]
fn a_configuration_is_found_from_below() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    project.write("a/b/file", "");
    insta::assert_snapshot!(project.run(&["-C", "a/b", "config"]).exits(0).shown());
}

#[test]
fn what_verify_refuses_is_not_shown_as_if_it_held() {
    let none = Project::new();
    insta::assert_snapshot!("none", none.run(&["config"]).exits(2).shown());
    let wrong = Project::with("[verify]\ncommands = 7\n");
    insta::assert_snapshot!("wrong", wrong.run(&["config"]).exits(2).shown());
    let user = with_user(CONFIG, "[limits]\nfuel = 30\n");
    insta::assert_snapshot!("beyond", user.run(&["config"]).exits(2).shown());
    let broken = with_user(CONFIG, "limits = 3\n");
    insta::assert_snapshot!("broken", broken.run(&["config"]).exits(2).shown());
}

#[test]
fn the_schemas_are_printed_wherever_one_is() {
    let project = Project::new();
    for (option, kept) in [
        ("--schema", include_str!("../docs/probity.schema.json")),
        ("--schema=project", include_str!("../docs/probity.schema.json")),
        ("--schema=user", include_str!("../docs/user.schema.json")),
    ] {
        assert_eq!(project.run(&["config", option]).exits(0).stdout, kept);
    }
    project.run(&["config", "--schema", "--json"]).exits(2);
    project.run(&["config", "--schema=other"]).exits(2);
}

#[test]
fn two_layers_that_disagree() {
    let project = with_user(
        "[verify]\ncommands = []\ntimeout = \"30m\"\nenv = [\"WHO=project\"]\n",
        "[verify]\ncommands = [[\"sh\", \"-c\", \"echo $WHO ${ONLY-unset}\"]]\ntimeout = \"1ms\"\nenv = [\"WHO=user\", \"ONLY=user\"]\n",
    );
    insta::assert_snapshot!("layers", project.run(&["config"]).exits(0).shown());
    // The command is the user's, since an empty list takes nothing back; budget and environment are the project's.
    project.run(&["verify"]).exits(0);
    assert_eq!(project.run(&["show", "--log", "--check", "verify-1"]).exits(0).stdout, "project unset\n");
    project.write("probity.toml", "");
    let late = project.run(&["verify"]);
    assert_eq!(late.code, Some(1), "the budget of the user's file holds: {}", late.stdout);
    let none = Project::with("");
    none.run(&["verify"]).exits(2);
}

#[test]
fn what_does_not_belong_into_a_file_is_refused() {
    let user = with_user(
        "",
        "[verify]\ncommands = [[\"touch\", \"ran\"]]\n[checks.a]\ncommand = [\"true\"]\n[spec]\npaths = [\"x\"]\n",
    );
    insta::assert_snapshot!("of_the_user", user.run(&["verify"]).exits(2).shown());
    let project =
        with_user("walls = \"strict\"\n[limits]\nfuel = 1\n", "[verify]\ncommands = [[\"touch\", \"ran\"]]\n");
    insta::assert_snapshot!("of_the_project", project.run(&["verify"]).exits(2).shown());
    assert!(!user.path("ran").exists() && !project.path("ran").exists(), "something ran");
}
