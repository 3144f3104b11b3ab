//! Two files: what the user's says beneath the project's.

use super::settings::{shown, user};
use super::{Body, Colour, parse};
use crate::config::{Command, Config, Layer};

const USER: &str = r#"[verify]
commands = [["user", "a"], ["user", "b"]]
timeout = "9m"
env = ["WHO=user", "ONLY_USER=1"]
secrets = ["USER_TOKEN"]
jobs = 3
"#;

#[track_caller]
fn both(project: &str, of_user: &str) -> Config {
    let parsed = parse("probity.toml", project.as_bytes(), &user(of_user));
    parsed.unwrap_or_else(|error| panic!("{}", error.render(Colour::Off)))
}

fn refused(project: &str, of_user: &str) -> String {
    parse("probity.toml", project.as_bytes(), &user(of_user)).unwrap_err().render(Colour::Off)
}

/// What the first command is, sees and marks, and the budget and `jobs` of the scenario `default`.
fn first(config: &Config) -> String {
    let check = &config.checks[0];
    let Body::Command(command) = &check.body else { panic!("no command") };
    let Command { argv, env, secrets, .. } = command;
    let scenario = config.scenario("default").unwrap();
    format!("{} {:?} {argv:?} {env:?} {secrets:?} {:?} {}", check.id, check.layer, scenario.timeout, scenario.jobs)
}

#[test]
fn of_two_files_that_disagree_the_projects_value_holds_key_by_key() {
    let with = |line: &str| first(&both(&format!("[verify]\n{line}\n"), USER));
    let beneath = r#"verify-1 User ["user", "a"] [("WHO", "user"), ("ONLY_USER", "1")] ["USER_TOKEN"] Some(540s) 3"#;
    // One key each, and everything else as the user's file says.
    for (line, from, to) in [
        ("", "", ""),
        (r#"commands = [["project"]]"#, r#"User ["user", "a"]"#, r#"Project ["project"]"#),
        (r#"timeout = "1h""#, "540s", "3600s"),
        // A list takes the place of the whole list.
        (r#"env = ["WHO=project"]"#, r#"[("WHO", "user"), ("ONLY_USER", "1")]"#, r#"[("WHO", "project")]"#),
        (r#"secrets = ["OTHER"]"#, r#"["USER_TOKEN"]"#, r#"["OTHER"]"#),
        ("jobs = 2", "Some(540s) 3", "Some(540s) 2"),
        ("audit = false", "", ""),
    ] {
        assert_eq!(with(line), beneath.replacen(from, to, 1), "{line}");
    }
    let all =
        both("[verify]\ncommands = [[\"p\"]]\ntimeout = \"1s\"\nenv = [\"A=b\"]\nsecrets = [\"S\"]\njobs = 4\n", USER);
    assert_eq!(first(&all), r#"verify-1 Project ["p"] [("A", "b")] ["S"] Some(1s) 4"#);
    assert_eq!(all.checks.len(), 1, "the second command of the user's file is none of the project's");
}

#[test]
fn an_empty_value_of_the_project_takes_nothing_back() {
    let nothing = first(&both("", USER));
    for line in ["commands = []", "timeout = \"\"", "env = []", "secrets = []"] {
        assert_eq!(first(&both(&format!("[verify]\n{line}\n"), USER)), nothing, "{line}");
    }
    // Nor does an empty value of the user's file say anything.
    let empty = "[verify]\ncommands = []\ntimeout = \"\"\nenv = []\nsecrets = []\n";
    let project = "[verify]\ncommands = [[\"p\"]]\n";
    assert_eq!(first(&both(project, empty)), first(&both(project, "")));
}

#[test]
fn checks_of_the_project_come_after_the_users_commands() {
    let config = both("[checks.own]\ncommand = [\"own\"]\n[scenarios.s]\nchecks = [\"verify-2\"]\n", USER);
    let all: Vec<(&str, Layer)> = config.checks.iter().map(|check| (check.id.as_str(), check.layer)).collect();
    assert_eq!(all, [("verify-1", Layer::User), ("verify-2", Layer::User), ("own", Layer::Project)]);
    assert_eq!(config.scenario("default").unwrap().checks.len(), 3);
    assert_eq!(config.scenario("s").unwrap().timeout, None, "the budget is that of the scenario `default`");
}

#[test]
fn the_users_budget_and_jobs_hold_where_the_scenario_default_has_none() {
    let written = "[checks.own]\ncommand = [\"own\"]\n[scenarios.default]\nchecks = [\"own\"]\n";
    let timeout = |text: &str| both(text, USER).scenario("default").unwrap().timeout.unwrap().as_secs();
    assert_eq!(timeout(written), 540);
    assert_eq!(timeout(&format!("{written}timeout = \"\"\n")), 540);
    assert_eq!(timeout(&format!("{written}timeout = \"1s\"\n")), 1);
    let jobs = |text: &str| both(text, USER).scenario("default").unwrap().jobs;
    assert_eq!(jobs(written), 3);
    assert_eq!(jobs(&format!("{written}jobs = 1\n")), 1, "what is written is no default");
}

#[test]
fn each_value_is_shown_with_the_line_of_the_file_that_says_it() {
    let project = "[verify]\ncommands = []\nenv = [\"WHO=project\"]\n[checks.own]\ncommand = [\"own\"]\n";
    let user = user(&format!("walls = \"strict\"\n{USER}"));
    let config = parse("probity.toml", project.as_bytes(), &user).unwrap();
    insta::assert_snapshot!(shown(&config, &user));
    let without = "[checks.own]\ncommand = [\"own\"]\n[scenarios.default]\nchecks = [\"own\"]\n";
    let config = parse("probity.toml", without.as_bytes(), &user).unwrap();
    insta::assert_snapshot!("without_a_table", shown(&config, &user));
}

#[test]
fn what_two_files_make_wrong_is_told_at_the_projects_place() {
    insta::assert_snapshot!("clash", refused("[checks.verify-2]\ncommand = [\"x\"]\n", USER));
    insta::assert_snapshot!("marked_here", refused("[checks.a]\ncommand = [\"x\"]\nsecrets = [\"WHO\"]\n", USER));
    let set = refused("[checks.a]\ncommand = [\"x\"]\nenv = [\"USER_TOKEN=s3cr3t\"]\n", USER);
    assert!(!set.contains("s3cr3t"), "{set}");
    insta::assert_snapshot!("marked_there", set);
    let own = "[verify]\nsecrets = [\"OTHER\"]\n[checks.a]\ncommand = [\"x\"]\nenv = [\"USER_TOKEN=x\"]\n";
    // What the user marks is secret whatever else the project marks.
    let said = refused(own, USER);
    assert!(said.contains("`USER_TOKEN`") && said.contains("secret"), "{said}");
}

#[test]
fn the_users_own_mistakes_do_not_show_what_is_secret() {
    let text = "[verify]\nsecrets = [\"TOKEN\"]\nenv = [\"TOKEN=s3cr3t\"]\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    let said = crate::config::load_user(&path, "config.toml").unwrap_err().render(Colour::Off);
    assert!(
        said.contains("the value of `TOKEN` is secret, and the file says it") && !said.contains("s3cr3t"),
        "{said}"
    );
}
