//! What the documents show is done here as it stands there.

use crate::support::{Project, hygiene};
use std::fs;
use std::path::Path;

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// The fenced blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut current: Option<String> = None;
    let mut other = false;
    for line in text.lines() {
        match (&mut current, line.strip_prefix("```")) {
            (Some(block), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (Some(_), Some(_)) => blocks.extend(current.take()),
            (None, Some(fence)) if other => {
                assert_eq!(fence, "");
                other = false;
            }
            (None, Some(fence)) if fence == language => current = Some(String::new()),
            (None, Some(_)) => other = true,
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn the_walk_of_the_readme_goes_as_it_says() {
    let readme = document("README.md");
    let config = blocks(&readme, "toml").remove(0);
    let project = Project::with(&config);
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    project.write("notes.txt", "hello \n");
    let commands: Vec<String> = blocks(&readme, "sh").concat().lines().map(str::to_owned).collect();
    let walk: Vec<&str> = commands.iter().filter_map(|line| line.strip_prefix("probity ")).collect();
    assert_eq!(walk[0], "verify", "{walk:?}");
    let mut shown = String::new();
    for (index, line) in walk.iter().enumerate() {
        let arguments: Vec<&str> = line.split(' ').collect();
        // The file is red as it was written; once it is mended everything has run, and there is output to look at.
        let ran = if index == 0 {
            let ran = project.run(&arguments).exits(1);
            project.write("notes.txt", "hello\n");
            project.run(&arguments).exits(0);
            ran
        } else {
            project.run(&arguments).exits(0)
        };
        shown.push_str(&format!("$ probity {line}\n{}", ran.shown()));
    }
    let first = shown.lines().skip(2).take(5).collect::<Vec<_>>().join("\n");
    // The text in the README is this one, with times and names of its own.
    let printed = blocks(&readme, "text").remove(0);
    let words = |text: &str| -> Vec<String> {
        let text = crate::support::redacted(&text.replace("9d0c…", "9d0c"));
        text.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(words(&printed), words(&first));
}

#[test]
fn every_example_of_the_configuration_is_understood() {
    let examples = blocks(&document("docs/configuration.md"), "toml");
    assert!(examples.len() >= 4, "{examples:?}");
    let all = examples.concat();
    let project = Project::with(&all);
    project.write("SPEC.md", "must\n").write("spec/a", "must\n").committed();
    // What it names is not there, so it is refused for that alone: nothing is said of keys or values.
    let ran = project.run(&["verify"]).exits(2);
    assert!(ran.stderr.contains("there is no folder at `checks/hygiene`"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
}

#[test]
fn the_configuration_of_this_repository_is_understood() {
    let project = Project::with(&document("probity.toml"));
    let ran = project.run(&["verify", "nothing-of-that-name"]).exits(2);
    assert!(ran.stderr.contains("there is no scenario"), "{}", ran.stderr);
}

#[test]
fn a_conflict_marker_in_a_source_file_turns_this_repository_red() {
    let config = document("probity.toml");
    // The logic checks of this repository, on a tree that has one of its files with a conflict in it.
    let config = config.replace("path:checks/hygiene", "file:hygiene.wasm");
    let mut lines: Vec<&str> = config.lines().collect();
    lines.retain(|line| {
        !line.trim().trim_matches(['"', ',']).starts_with("format") && !line.trim().starts_with("\"lint")
    });
    let project = Project::with(&(lines.join("\n") + "\n"));
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    let source = document("host/src/main.rs");
    project.write("host/src/main.rs", &source);
    project.write(".gitignore", "/hygiene.wasm\n");
    project.run(&["verify"]).exits(0);
    project.write("host/src/main.rs", format!("{source}<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"));
    let ran = project.run(&["verify"]).exits(1);
    let line = source.lines().count() + 1;
    assert!(ran.stdout.contains(&format!("host/src/main.rs:{line}:1")), "{}", ran.stdout);
}

#[test]
fn help_says_what_a_newcomer_needs() {
    let project = Project::new();
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("help_verify", &["verify", "--help"]),
        ("help_show", &["show", "--help"]),
        ("help_log", &["log", "--help"]),
        ("help_init", &["init", "--help"]),
        ("help_config", &["config", "--help"]),
        ("help_doctor", &["doctor", "--help"]),
        ("help_store", &["store", "--help"]),
        ("help_gc", &["store", "gc", "--help"]),
        ("help_inspect", &["pack", "inspect", "--help"]),
    ] {
        // Some lines of the help end with the spaces of an empty column.
        let help = project.run(arguments).exits(0).stdout;
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(name, lines.join("\n"));
    }
    assert_eq!(project.run(&["--version"]).exits(0).stdout, format!("probity {}\n", env!("CARGO_PKG_VERSION")));
    insta::assert_snapshot!("usage", project.run(&["verfy"]).exits(2).stderr);
    insta::assert_snapshot!("usage_nothing", project.run(&[]).exits(2).stderr);
}
