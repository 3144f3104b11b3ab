//! `probity init`: a first configuration that works at once, from folders of every kind, and from hostile ones.

use crate::support::Project;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const PRE_COMMIT: &str = "repos:\n- repo: local\n  hooks: []\n";

/// Tools that write down how they were called, first in the PATH.
const TOOLS: [&str; 10] = ["cargo", "npm", "pnpm", "uv", "ruff", "pytest", "go", "make", "pre-commit", "poetry"];

fn folder(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    for (name, text) in files {
        project.write(name, text);
    }
    let tools = project.outside().join("tools");
    fs::create_dir_all(&tools).unwrap();
    for tool in TOOLS {
        let calls = project.outside().join("calls");
        let script = format!("#!/bin/sh\necho \"{tool} $*\" >> {}\n", calls.display());
        fs::write(tools.join(tool), script).unwrap();
        fs::set_permissions(tools.join(tool), fs::Permissions::from_mode(0o755)).unwrap();
    }
    project
}

fn calls(project: &Project) -> String {
    fs::read_to_string(project.outside().join("calls")).unwrap_or_default()
}

fn run(project: &Project, arguments: &[&str]) -> crate::support::Ran {
    let mut command = project.command(arguments);
    let tools = project.outside().join("tools").display().to_string();
    command.env("PATH", format!("{tools}:{}", std::env::var("PATH").unwrap()));
    project.ran(command)
}

/// What is said and written in such a folder; the file is understood, and is what its checks are run by.
fn begun(files: &[(&str, &str)]) -> String {
    let project = folder(files);
    let ran = run(&project, &["init"]).exits(0);
    assert_eq!(ran.stdout, "");
    assert_eq!(calls(&project), "", "something was executed");
    let written = fs::read_to_string(project.path("probity.toml")).unwrap();
    let left: Vec<_> = fs::read_dir(project.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".probity")), "{left:?}");
    understood(&written);
    let shown = format!("{}--- probity.toml\n{written}", ran.shown());
    if written.contains("\n[checks.") {
        run(&project, &["config"]).exits(0);
        let verified = run(&project, &["verify"]).exits(0);
        assert!(verified.stdout.contains("passed"), "{}", verified.stdout);
        format!("{shown}--- what verify runs\n{}", calls(&project))
    } else {
        let verified = run(&project, &["verify"]).exits(2);
        assert_eq!(calls(&project), "");
        format!("{shown}--- verify\n{}", verified.shown())
    }
}

/// The text is of the schema, and so is what is commented out in it.
fn understood(text: &str) {
    let schema: serde_json::Value = serde_json::from_str(include_str!("../docs/probity.schema.json")).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let proposed = |line: &&str| {
        line.strip_prefix("# ").is_some_and(|line| line.starts_with('[') || line.split(' ').nth(1) == Some("="))
    };
    let bare = text.lines().map(|line| if proposed(&line) { &line[2..] } else { line });
    let bare = bare.collect::<Vec<_>>().join("\n");
    for text in [text, &bare] {
        let value: serde_json::Value = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(schema.is_valid(&value), "{text}");
    }
    Project::with(&bare).run(&["config"]).exits(0);
}

const PACKAGE: &str = "[package]\nname = \"x\"\nversion = \"0.1.0\"\n";

#[test]
fn a_rust_package() {
    insta::assert_snapshot!(begun(&[("Cargo.toml", PACKAGE), ("Cargo.lock", "version = 4\n")]));
}

#[test]
fn a_rust_workspace_without_a_lock() {
    insta::assert_snapshot!(begun(&[("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n")]));
}

#[test]
fn a_node_package_with_scripts() {
    let package =
        r#"{ "scripts": { "test": "vitest", "lint": "eslint .", "format:check": "prettier -c .", "x": "y" } }"#;
    insta::assert_snapshot!(begun(&[("package.json", package), ("package-lock.json", "{}")]));
}

#[test]
fn a_node_package_of_another_manager() {
    let package = r#"{ "scripts": { "test": "vitest", "typecheck": "tsc" } }"#;
    insta::assert_snapshot!(begun(&[
        ("package.json", package),
        ("pnpm-lock.yaml", ""),
        ("node_modules/x/index.js", ""),
    ]));
}

#[test]
fn a_node_package_without_a_test() {
    let package = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1", "lint": 7 } }"#;
    insta::assert_snapshot!(begun(&[("package.json", package)]));
}

#[test]
fn a_python_project() {
    let project = "[project]\nname = \"x\"\ndependencies = [\"pytest-cov\"]\n[dependency-groups]\n\
                   dev = [\"pytest>=8\"]\n[tool.ruff.format]\nquote-style = \"single\"\n";
    insta::assert_snapshot!("python", begun(&[("pyproject.toml", project)]));
    insta::assert_snapshot!("python_uv", begun(&[("pyproject.toml", project), ("uv.lock", "")]));
    let other = "[project]\nname = \"pytest-like\"\ndependencies = [\"pytest-cov\", \"ruffian\"]\n";
    insta::assert_snapshot!("python_without_tools", begun(&[("pyproject.toml", other)]));
}

#[test]
fn a_go_module() {
    insta::assert_snapshot!(begun(&[("go.mod", "module example.org/x\n\ngo 1.22\n")]));
}

#[test]
fn a_makefile_alone() {
    let make = "CFLAGS := test:\ncheck-all: x\n.PHONY: test check\ntest check: all\n\tcheck: y\nall:\n";
    insta::assert_snapshot!("make", begun(&[("Makefile", make)]));
    let without = "# test:\ntest := a:b\ntest: X = 1\n\ttest: a\n$(check): b\nall:\n";
    insta::assert_snapshot!("make_without_targets", begun(&[("Makefile", without)]));
    insta::assert_snapshot!("make_of_probity", begun(&[("Makefile", "test:\n\tprobity verify\n")]));
}

#[test]
fn hooks_alone() {
    insta::assert_snapshot!(begun(&[(".pre-commit-config.yaml", PRE_COMMIT)]));
}

#[test]
fn everything_at_once() {
    insta::assert_snapshot!(begun(&[
        ("Cargo.toml", PACKAGE),
        ("Cargo.lock", "version = 4\n"),
        ("package.json", r#"{ "packageManager": "yarn@4.1.0", "scripts": {} }"#),
        ("pyproject.toml", "[tool.poetry.group.dev.dependencies]\nruff = \"*\"\n"),
        ("poetry.lock", ""),
        ("go.mod", "module x\n"),
        ("Makefile", "test:\n\tcargo test\n"),
        (".pre-commit-config.yaml", PRE_COMMIT),
    ]));
}

#[test]
fn nothing_that_says_anything() {
    insta::assert_snapshot!(begun(&[("README.md", "hello\n")]));
}

#[test]
fn a_hostile_folder_is_looked_at_without_harm() {
    let project = folder(&[("pyproject.toml", "[project\n")]);
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, project.path("Cargo.toml"), fifo, mode, 0).unwrap();
    fs::write(project.outside().join("secret.json"), r#"{ "scripts": { "test": "x" } }"#).unwrap();
    symlink("../secret.json", project.path("package.json")).unwrap();
    project.write("go.mod", vec![b'x'; (1 << 20) + 1]);
    project.write("GNUmakefile/file", "");
    project.write("makefile", b"test:\xff\n");
    symlink("/dev/zero", project.path(".pre-commit-config.yaml")).unwrap();
    let ran = run(&project, &["init"]).exits(0);
    assert_eq!(calls(&project), "");
    insta::assert_snapshot!(ran.shown());
    understood(&fs::read_to_string(project.path("probity.toml")).unwrap());
}

#[test]
fn manifests_that_would_swell_or_nest_are_no_trouble() {
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let project = folder(&[
        ("Cargo.toml", &format!("a = {deep}\n")),
        ("package.json", &format!("{{\"scripts\":{deep}}}")),
        ("pyproject.toml", &format!("{} = 1\n", vec!["a"; 100_000].join("."))),
    ]);
    insta::assert_snapshot!(run(&project, &["init"]).exits(0).shown());
}

#[test]
fn what_exists_is_never_written_over() {
    for kind in ["file", "folder", "link", "fifo"] {
        let project = folder(&[("Cargo.toml", PACKAGE)]);
        let path = project.path("probity.toml");
        match kind {
            "file" => fs::write(&path, "mine").unwrap(),
            "folder" => fs::create_dir(&path).unwrap(),
            "link" => symlink("nowhere", &path).unwrap(),
            _ => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap(),
        }
        let before = fs::symlink_metadata(&path).unwrap();
        let name = if kind == "link" { "leads_nowhere" } else { "exists" };
        insta::assert_snapshot!(name, run(&project, &["init"]).exits(2).shown());
        let after = fs::symlink_metadata(&path).unwrap();
        assert_eq!((before.file_type(), before.len()), (after.file_type(), after.len()));
        assert!(!project.path("nowhere").exists());
    }
}

#[test]
fn a_file_of_another_folder_is_named_and_left_alone() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    project.write("sub/go.mod", "module x\n");
    let ran = project.run(&["-C", "sub", "init"]).exits(0);
    insta::assert_snapshot!(ran.shown());
    assert!(project.path("sub/probity.toml").is_file());
    assert_eq!(fs::read_to_string(project.path("probity.toml")).unwrap(), "[verify]\ncommands = [[\"true\"]]\n");
}

#[test]
fn a_folder_that_cannot_be_written_to_says_so() {
    let project = folder(&[("go.mod", "module x\n")]);
    let mut command = project.as_nobody(&["init"]);
    fs::set_permissions(project.root(), fs::Permissions::from_mode(0o555)).unwrap();
    let ran = project.ran({
        command.current_dir(project.root());
        command
    });
    fs::set_permissions(project.root(), fs::Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(ran.exits(1).shown());
    assert!(!project.path("probity.toml").exists());
}

#[test]
fn the_file_may_be_read_by_whoever_may_read_new_files() {
    let project = folder(&[("go.mod", "module x\n")]);
    run(&project, &["init"]).exits(0);
    project.write("other", "");
    let mode = |name: &str| fs::metadata(project.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("probity.toml"), mode("other"));
}

#[test]
fn a_lock_that_git_ignores_is_no_lock() {
    let written = |ignored: bool| {
        let project = folder(&[("sub/Cargo.toml", PACKAGE), ("sub/Cargo.lock", "version = 4\n")]);
        project.write(".gitignore", if ignored { "Cargo.lock\n" } else { "" }).git(&["init", "-q"]);
        let ran = run(&project, &["-C", "sub", "init"]).exits(0);
        assert_eq!(ran.stderr.contains("note: git ignores Cargo.lock: "), ignored, "{}", ran.stderr);
        fs::read_to_string(project.path("sub/probity.toml")).unwrap()
    };
    assert!(written(false).contains("--locked") && !written(true).contains("--locked"));
}

#[test]
fn scripts_that_mend_files_are_only_proposed() {
    for mending in ["eslint . --fix", "prettier --write .", "jest -u", "vitest --update", "jest --updateSnapshot=true"]
    {
        let package = format!(r#"{{ "scripts": {{ "lint": "{mending}", "test": "vitest run" }} }}"#);
        let project = folder(&[("package.json", &package)]);
        run(&project, &["init"]).exits(0);
        let written = fs::read_to_string(project.path("probity.toml")).unwrap();
        understood(&written);
        let proposed = "# Commented out, since it changes files, and what a check changes is not what was verified.\n# [checks.npm-lint]\n";
        assert!(written.contains(proposed) && written.contains("\n[checks.npm-test]\n"), "{mending}: {written}");
        assert!(!written.contains(mending), "no word of it is copied");
    }
}

#[test]
fn a_place_that_cannot_have_one_is_told_as_verify_tells_it() {
    let project = folder(&[("Cargo.toml", PACKAGE)]);
    symlink("nowhere", project.path("probity.toml")).unwrap();
    let said = run(&project, &["init"]).exits(2).stderr;
    assert_eq!(said, run(&project, &["verify"]).exits(2).stderr);
    assert!(said.contains("is a link that leads nowhere") && said.contains("help: "), "{said}");
    let bare = Project::new();
    bare.git(&["init", "-q", "--bare"]);
    let said = run(&bare, &["init"]).exits(2).stderr;
    assert!(said.contains("a repository without a working tree") && said.contains("help: "), "{said}");
    assert!(!bare.path("probity.toml").exists());
}
