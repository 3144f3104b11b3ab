//! Bad input, and input of unusual places: what is refused says what and why, with exit code 2, before anything runs.

use crate::support::Project;
use std::fs;
use std::os::unix::fs::symlink;

const RAN: &str = "command = [\"touch\", \"ran\"]\n";

/// What is said of a configuration that is refused.
#[track_caller]
fn refused(config: &str) -> String {
    let project = Project::with(config);
    let said = project.run(&["verify"]).exits(2);
    assert!(!project.path("ran").exists(), "something ran");
    assert!(!project.path(".probity").exists(), "something is recorded");
    assert_eq!(said.stdout, "");
    said.stderr
}

#[test]
fn globs_that_explode_are_refused() {
    let nested = |depth: usize| format!("{}a{}", "{a,".repeat(depth), "}".repeat(depth));
    let multiplied = "{a,b}".repeat(11);
    let long = "a".repeat(1025);
    let globs = |globs: &[String]| {
        let list = globs.iter().map(|glob| format!("\"{glob}\"")).collect::<Vec<_>>().join(", ");
        refused(&format!("[checks.a]\n{RAN}files = [{list}]\n"))
    };
    let title = |said: String| said.lines().next().unwrap().to_owned();
    let complex: Vec<String> = (0..999).map(|n| format!("{n}{}", "[!a-z0-9]".repeat(50))).collect();
    for (list, said) in [
        (
            vec![multiplied],
            "error: the braces of the glob `{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}` multiply to too many alternatives",
        ),
        (vec![long], "error: a glob of 1025 bytes is longer than 1024"),
        (vec!["a".to_owned(); 1001], "error: 1001 globs are more than 1000"),
        (complex, "error: the globs are too complex: compiled they take 509380 bytes, more than 262144"),
    ] {
        assert_eq!(title(globs(&list)), said);
    }
    assert!(title(globs(&[nested(200)])).ends_with("` is not valid"), "deeper than an engine goes");
    // Braces within braces only add up: this one is what its 51 alternatives are, and matches no file.
    let project = Project::with(&format!("[checks.a]\n{RAN}files = [\"{}\"]\n", nested(50)));
    let said = project.run(&["verify"]).exits(2).stdout;
    assert!(said.contains("no matching files"), "{said}");
}

#[test]
fn globs_match_nothing_or_everything() {
    let project = Project::with("[checks.a]\ncommand = [\"echo\", \"{files}\"]\nfiles = [\"no/such/**\"]\n");
    insta::assert_snapshot!("nothing", project.run(&["verify"]).exits(2).shown());
    for everything in ["**", "**/*", "*"] {
        let project =
            Project::with(&format!("[checks.a]\ncommand = [\"echo\", \"{{files}}\"]\nfiles = [\"{everything}\"]\n"));
        project.write("b", "").run(&["verify"]).exits(0);
        assert_eq!(project.run(&["show", "--log", "--check", "a"]).exits(0).stdout, "b probity.toml\n", "{everything}");
    }
    let nothing = refused(&format!("[checks.a]\n{RAN}files = [\"!a\", \"!b\"]\n"));
    assert!(nothing.starts_with("error: the globs match nothing: all of them exclude\n"), "{nothing}");
}

#[test]
fn names_of_files_that_leave_the_tree_are_refused() {
    insta::assert_snapshot!(refused(&format!(
        "[checks.a]\n{RAN}files = [\"../**\", \"/etc/*\", \"a/../b\", \"./x\"]\nwhen = {{ paths = [\"../x\"] }}\n[spec]\npaths = [\"../x\"]\n[subject]\nexclude = [\"../x\"]\n[packs.p]\nsource = \"path:../../x\"\nallow = [\"tree:../x\"]\n[packs.q]\nsource = \"file:/etc/x.wasm\"\nallow = [\"tree:**\"]\n"
    )));
}

#[test]
fn a_pack_is_in_the_tree_also_behind_links() {
    let pack =
        |source: &str| format!("[packs.p]\nsource = \"{source}\"\nallow = [\"tree:**\"]\n[checks.a]\nuse = \"p/x\"\n");
    let project = Project::new();
    fs::create_dir(project.outside().join("other")).unwrap();
    fs::write(project.outside().join("other/p.wasm"), "no component").unwrap();
    symlink("../other", project.path("out")).unwrap();
    symlink("../other/p.wasm", project.path("p.wasm")).unwrap();
    for source in ["file:p.wasm", "file:out/p.wasm", "path:out"] {
        project.write("probity.toml", pack(source));
        let said = project.run(&["verify"]).exits(2).stderr;
        let path = source.split_once(':').unwrap().1;
        let title = format!(
            "error: pack `p` cannot be used: `{path}` leads out of the tree through a link\n --> probity.toml:2:10\n"
        );
        assert!(said.starts_with(&title) && said.contains("= help: put the pack itself into the tree"), "{said}");
    }
    // A link within the tree leads to what everybody has.
    project.write("packs/p.wasm", "no component");
    symlink("packs/p.wasm", project.path("inside.wasm")).unwrap();
    project.write("probity.toml", pack("file:inside.wasm"));
    let said = project.run(&["verify"]).exits(2).stderr;
    assert!(said.contains("pack `p` cannot be used: it is not WebAssembly"), "{said}");
}

#[test]
fn links_that_leave_the_tree_are_in_no_scope() {
    let project = Project::with("[checks.a]\ncommand = [\"echo\", \"{files}\"]\nfiles = [\"**\"]\n");
    fs::write(project.outside().join("secret"), "").unwrap();
    symlink("../secret", project.path("link")).unwrap();
    symlink("..", project.path("up")).unwrap();
    let said = project.run(&["verify"]).exits(0).stdout;
    assert!(said.contains("the subject is open"), "{said}");
    assert_eq!(project.run(&["show", "--log", "--check", "a"]).exits(0).stdout, "probity.toml\n");
}

/// Runs `verify` with each of the options, and shows what it says and its exit code.
fn each(project: &Project, folder: &str, options: &[&str]) -> String {
    let mut shown = String::new();
    for option in options {
        let arguments: Vec<&str> = ["-C", folder, "verify"].into_iter().chain(option.split_whitespace()).collect();
        let ran = project.run(&arguments);
        let heading = format!("== verify {option}");
        shown.push_str(&format!("{}\n{}exit code {}\n", heading.trim_end(), ran.shown(), ran.code.unwrap()));
    }
    shown
}

const ABOUT_FILES: &str = "[checks.a]\ncommand = [\"true\"]\nfiles = [\"*.txt\"]\n";

const OPTIONS: [&str; 6] = ["", "--staged", "--rev main", "--plan", "--changed", "--changed --base main"];

#[test]
fn a_bare_repository_has_nothing_to_verify() {
    let project = Project::with(ABOUT_FILES);
    project.write("a.txt", "").committed();
    project.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    insta::assert_snapshot!(each(&project, "../bare.git", &OPTIONS));
    // A configuration that lies in it makes it a folder like others.
    fs::write(project.outside().join("bare.git/probity.toml"), "[checks.a]\ncommand = [\"true\"]\n").unwrap();
    insta::assert_snapshot!("bare_with_configuration", each(&project, "../bare.git", &OPTIONS));
}

#[test]
fn a_repository_without_a_commit_can_be_verified_and_compared_with_nothing() {
    let project = Project::with(ABOUT_FILES);
    project.write("a.txt", "").git(&["init", "-q"]);
    insta::assert_snapshot!(each(&project, ".", &OPTIONS));
}

#[test]
fn a_detached_head_is_compared_as_a_branch_is() {
    let project = Project::with(ABOUT_FILES);
    project.write("a.txt", "").committed();
    project.git(&["checkout", "-q", "--detach"]);
    project.write("a.txt", "changed").git(&["commit", "-q", "-am", "two"]);
    insta::assert_snapshot!(each(&project, ".", &OPTIONS));
}

#[test]
fn what_is_beyond_a_shallow_clone_is_no_base() {
    let project = Project::with(ABOUT_FILES);
    project.committed();
    project.git(&["checkout", "-q", "-b", "side"]);
    project.write("side.txt", "").git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "side"]);
    project.git(&["checkout", "-q", "main"]);
    for n in ["1", "2"] {
        project.write("a.txt", n).git(&["add", "-A"]);
        project.git(&["commit", "-q", "-m", n]);
    }
    let from = format!("file://{}", project.root().display());
    // Two commits of one branch: the edge is a base, and what is behind it is none.
    project.git(&["clone", "-q", "--depth", "2", &from, "../two"]);
    insta::assert_snapshot!(each(&project, "../two", &["--changed --base HEAD~1", "--changed --base HEAD~2"]));
    // One commit of two branches that parted behind the edge.
    project.git(&["clone", "-q", "--depth", "1", "--no-single-branch", &from, "../one"]);
    let bases = ["--changed --base HEAD", "--changed --base HEAD~1", "--changed --base origin/side"];
    insta::assert_snapshot!("shallow_branches", each(&project, "../one", &bases));
}

#[test]
fn who_named_a_base_that_cannot_be_is_told() {
    let config = |base: &str| {
        format!("[checks.a]\ncommand = [\"true\"]\n[scenarios.default]\nchecks = [\"a\"]\nbase = \"{base}\"\n")
    };
    let outside = Project::with(&config("main"));
    insta::assert_snapshot!("base_outside", each(&outside, ".", &["", "--base other"]));
    let project = Project::with(&config("nowhere"));
    project.committed();
    project.git(&["checkout", "-q", "--orphan", "alone"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "alone"]);
    project.git(&["branch", "twice"]);
    project.git(&["tag", "twice", "main"]);
    insta::assert_snapshot!("base_named", each(&project, ".", &["", "--base nothing", "--base main", "--base twice"]));
    project.write("probity.toml", config("main"));
    insta::assert_snapshot!("base_unrelated", each(&project, ".", &["--changed"]));
    project.write("probity.toml", config("twice"));
    insta::assert_snapshot!("base_twice", each(&project, ".", &["--plan"]));
}

#[test]
fn tests_of_files_are_arguments_of_their_own_whatever_their_names() {
    let project = Project::with(
        "[checks.a]\ncommand = [\"./tell\", \"{tests}\"]\nfiles = [\"**/*.in\"]\ntests = { \"{path}.in\" = \"{path}.out\" }\n",
    );
    project.script("tell", "for a; do printf '%s\\0' \"$a\"; done");
    for name in ["-rf", "a b", "c\nd", "q\"uo'te", "sub/-x", "@z", "v=1", ":!a"] {
        project.write(&format!("{name}.in"), "").write(&format!("{name}.out"), "");
    }
    project.write("without.in", "");
    project.run(&["verify"]).exits(0);
    let log = project.run(&["show", "--log", "--check", "a"]).exits(0);
    assert_eq!(
        log.raw.stdout,
        b"./-rf.out\0./:!a.out\0./@z.out\0a b.out\0c\nd.out\0q\"uo'te.out\0sub/-x.out\0./v=1.out\0"
    );
}

#[test]
fn a_list_of_files_has_each_name_as_it_is() {
    let project =
        Project::with("[checks.a]\ncommand = [\"./tell\", \"{files0}\"]\nfiles = [\"**\", \"!tell\", \"!*.toml\"]\n");
    project.script("tell", "cat -- \"$1\"");
    for name in ["-rf", "q\"uo'te", "c\nd", " ", "@z"] {
        project.write(name, "");
    }
    project.run(&["verify"]).exits(0);
    let log = project.run(&["show", "--log", "--check", "a"]).exits(0);
    assert_eq!(log.raw.stdout, b"./ \0./-rf\0./@z\0c\nd\0q\"uo'te\0");
}
