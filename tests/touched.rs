//! What `--changed`, `when` and the scope of a check make of what is no plain file here: links, what is gone or left out,
//! repositories inside, tests, what cannot be read or has no name in UTF-8.

use crate::support::{Project, around, hygiene, row};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Says which files it is called with: in its log, one a line.
const LOOK: &str = "[checks.look]\ncommand = [\"sh\", \"-c\", 'printf \"%s\\n\" \"$@\"', \"x\", \"{files}\"]\nfiles = [\"**/*.py\"]\n\
                    [checks.always]\ncommand = [\"true\"]\n";

/// What makes something that cannot be judged, what is said of it, and the glob that leaves it out.
type Case<'a> = (&'a dyn Fn(&Project), &'a str, &'a str);

fn json(project: &Project, arguments: &[&str]) -> Value {
    let ran = project.run(&[&["verify", "--json"], arguments].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr))
}

/// The files that `look` is called with, of what changed since a base. None where it is not called.
#[track_caller]
fn looked(project: &Project, base: &str) -> Option<Vec<String>> {
    let document = json(project, &["--changed", "--base", base]);
    let outcome = &row(&document, "look")["outcome"];
    if *outcome == json!({"not_selected": "unchanged"}) {
        return None;
    }
    assert_eq!(outcome, "passed", "{document}");
    let log = project.run(&["show", "--log", "--check", "look"]).exits(0).stdout;
    Some(log.lines().map(str::to_owned).collect())
}

fn named(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn commit(project: &Project) {
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "next"]);
}

fn odd(project: &Project, name: &[u8]) -> PathBuf {
    project.root().join(std::ffi::OsStr::from_bytes(name))
}

#[test]
fn what_is_no_file_any_more_counts_as_what_is_gone() {
    let fresh = || {
        let project = Project::with(LOOK);
        project.write("a.py", "1").write("b.py", "1").write("in/c.py", "1").write("x", "1").committed();
        project
    };
    let all = named(&["a.py", "b.py", "in/c.py"]);
    let without_a = named(&["b.py", "in/c.py"]);
    let project = fresh();
    project.write("x", "2");
    assert_eq!(looked(&project, "HEAD"), None);
    project.write("a.py", "2");
    assert_eq!(looked(&project, "HEAD"), named(&["a.py"]));

    // A file became a link, a folder, a pipe.
    let replaced: [fn(PathBuf); 2] = [|path| symlink("x", path).unwrap(), |path| fs::create_dir(path).unwrap()];
    for replace in replaced {
        let project = fresh();
        fs::remove_file(project.path("a.py")).unwrap();
        replace(project.path("a.py"));
        assert_eq!(looked(&project, "HEAD"), without_a);
    }

    // A link that is new, leads elsewhere, became a file, is gone.
    let project = fresh();
    symlink("x", project.path("l.py")).unwrap();
    assert_eq!(looked(&project, "HEAD"), all);
    commit(&project);
    assert_eq!(json(&project, &["--changed", "--base", "HEAD"])["record"]["verdict"]["outcome"], "empty");
    fs::remove_file(project.path("l.py")).unwrap();
    symlink("a.py", project.path("l.py")).unwrap();
    assert_eq!(looked(&project, "HEAD"), all);
    fs::remove_file(project.path("l.py")).unwrap();
    assert_eq!(looked(&project, "HEAD"), all);
    project.write("l.py", "x");
    assert_eq!(looked(&project, "HEAD"), named(&["l.py"]));

    // Changed, and left out here.
    let project = fresh();
    project.write("out/d.py", "1");
    commit(&project);
    project.write("out/d.py", "2");
    commit(&project);
    project.git(&["sparse-checkout", "set", "--cone", "in"]);
    assert_eq!(looked(&project, "HEAD~"), all);
    assert_eq!(json(&project, &["--changed", "--base", "HEAD"])["record"]["verdict"]["outcome"], "empty");
}

#[test]
fn a_repository_inside_that_moved_differs_or_is_gone_counts_for_whoever_may_be_about_something_in_it() {
    let when = "[checks.when]\ncommand = [\"true\"]\nwhen.paths = [\"sub/**/*.py\"]\n\
                [checks.other]\ncommand = [\"true\"]\nwhen.paths = [\"other/**\"]\n";
    let fresh = || {
        let project = Project::with(&format!("{LOOK}{when}"));
        project.write("a.py", "1").write("sub/lib.py", "1").write("sub/two.py", "1");
        project.committed_at("sub").committed();
        project
    };
    let selected = |project: &Project, base: &str| {
        let document = json(project, &["--changed", "--base", base]);
        assert_eq!(row(&document, "other")["outcome"], json!({"not_selected": "no_such_path"}));
        row(&document, "when")["outcome"] == "passed"
    };
    let project = fresh();
    project.write("x", "");
    assert_eq!((looked(&project, "HEAD"), selected(&project, "HEAD")), (None, false));
    // Something in it is gone.
    fs::remove_file(project.path("sub/lib.py")).unwrap();
    assert_eq!((looked(&project, "HEAD"), selected(&project, "HEAD")), (named(&["a.py", "sub/two.py"]), true));
    // It moved to a commit without that.
    project.git(&["-C", "sub", "add", "-A"]);
    project.git(&["-C", "sub", "commit", "-q", "-m", "less"]);
    commit(&project);
    assert_eq!((looked(&project, "HEAD~"), selected(&project, "HEAD~")), (named(&["a.py", "sub/two.py"]), true));
    // It is gone as a whole, and in its place is nothing, or something else.
    let project = fresh();
    fs::remove_dir_all(project.path("sub")).unwrap();
    project.git(&["rm", "-q", "--cached", "sub"]);
    assert_eq!((looked(&project, "HEAD"), selected(&project, "HEAD")), (named(&["a.py"]), true));
    project.write("sub", "");
    assert_eq!((looked(&project, "HEAD"), selected(&project, "HEAD")), (named(&["a.py"]), true));
}

#[test]
fn a_test_that_changed_or_is_gone_counts_for_its_file() {
    let look = LOOK
        .replace("{files}", "{tests}")
        .replace("[checks.always]", "tests = { \"{path}.py\" = \"test/{path}.txt\" }\n[checks.always]");
    let project = Project::with(&look);
    project.write("a.py", "1").write("b.py", "1").write("c.py", "1").write("test/other.txt", "1");
    project.write("test/a.txt", "1").write("test/b.txt", "1").committed();
    project.write("test/other.txt", "2");
    assert_eq!(looked(&project, "HEAD"), None, "it is the test of nothing");
    project.write("test/a.txt", "2");
    assert_eq!(looked(&project, "HEAD"), named(&["test/a.txt"]));
    project.write("test/c.txt", "new");
    assert_eq!(looked(&project, "HEAD"), named(&["test/a.txt", "test/c.txt"]));
    commit(&project);
    // What is left may rest on what is gone.
    fs::remove_file(project.path("test/a.txt")).unwrap();
    assert_eq!(looked(&project, "HEAD"), named(&["test/b.txt", "test/c.txt"]));
    symlink("b.txt", project.path("test/a.txt")).unwrap();
    assert_eq!(looked(&project, "HEAD"), named(&["test/b.txt", "test/c.txt"]));
}

#[test]
fn under_other_attributes_every_file_below_counts() {
    let project = Project::with(LOOK);
    project.write("a.py", "1\n").write("in/b.py", "1\r\n").write("in/deep/c.py", "1\n");
    project.write(".gitattributes", "*.py -text\n").committed();
    project.write("in/.gitattributes", "*.py ident\n");
    assert_eq!(looked(&project, "HEAD"), named(&["in/b.py", "in/deep/c.py"]));
    commit(&project);
    fs::remove_file(project.path("in/.gitattributes")).unwrap();
    assert_eq!(looked(&project, "HEAD"), named(&["in/b.py", "in/deep/c.py"]));
    project.write("in/.gitattributes", "*.py ident\n").write(".gitattributes", "");
    assert_eq!(looked(&project, "HEAD"), named(&["a.py", "in/b.py", "in/deep/c.py"]));
    project.write(".gitattributes", "*.py -text\n").write("x.gitattributes", "");
    assert_eq!(looked(&project, "HEAD"), None, "another name");
}

#[test]
fn names_that_are_no_text_count_for_conditions_and_changes() {
    let project = Project::with(
        "[checks.when]\ncommand = [\"true\"]\nwhen.paths = [\"docs/**\"]\n\
         [checks.files]\ncommand = [\"true\"]\nfiles = [\"docs/**\"]\n",
    );
    project.write("docs/a", "1").write("x", "1").committed();
    project.write("x", "2");
    let outcomes = |arguments: &[&str]| {
        let document = json(&project, arguments);
        (row(&document, "when")["outcome"].clone(), row(&document, "files")["outcome"].clone())
    };
    let changed = ["--changed", "--base", "HEAD"];
    let none = (json!({"not_selected": "no_such_path"}), json!({"not_selected": "unchanged"}));
    assert_eq!(outcomes(&changed), none);
    fs::write(odd(&project, b"docs/lat\xe9"), "x").unwrap();
    let error = (json!("passed"), json!({"error": "host"}));
    assert_eq!(outcomes(&changed), error);
    commit(&project);
    project.write("x", "3");
    assert_eq!(outcomes(&changed), none);
    fs::remove_file(odd(&project, b"docs/lat\xe9")).unwrap();
    assert_eq!(outcomes(&changed), (json!("passed"), json!("passed")), "it is gone");
}

#[test]
fn what_cannot_be_named_or_is_no_file_makes_the_checks_that_are_about_it_errors() {
    let config = |files: &str| {
        format!(
            "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\", \"tree:!hygiene.wasm\"]\n\
             [checks.pack]\nuse = \"hygiene/conflict-markers\"\nfiles = [{files}]\n\
             [checks.files]\ncommand = [\"true\", \"{{files}}\"]\nfiles = [{files}]\n\
             [checks.whole]\ncommand = [\"true\"]\n\
             [scenarios.default]\nchecks = [\"pack\", \"files\", \"whole\"]\nfail-fast = false\n"
        )
    };
    let odd_name = |project: &Project| fs::write(odd(project, b"lat\xe9.txt"), "x\n").unwrap();
    let pipe = |project: &Project| {
        let path = project.path("pipe.txt");
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    };
    let cases: [Case<'_>; 2] =
        [(&odd_name, "`lat\\xe9.txt` cannot be named", "!lat?.txt"), (&pipe, "`pipe.txt` is no file", "!pipe.txt")];
    for (make, told, without) in cases {
        let project = Project::with(&config("\"*.txt\""));
        project.write("a.txt", "x\n").write("hygiene.wasm", fs::read(hygiene()).unwrap());
        make(&project);
        let document = json(&project, &[]);
        for check in ["pack", "files"] {
            assert_eq!(row(&document, check)["outcome"], json!({"error": "host"}), "{document}");
            let message = around(&document, check)["message"].as_str().unwrap();
            assert!(message.contains(told) && message.contains("leave it out with `files`"), "{message}");
        }
        assert_eq!(row(&document, "whole")["outcome"], "passed");
        project.write("probity.toml", config(&format!("\"*.txt\", \"{without}\"")));
        assert_eq!(json(&project, &[])["record"]["verdict"]["outcome"], "passed");
    }
}

#[test]
fn what_a_command_is_about_and_nobody_can_read_makes_it_an_error() {
    let project = Project::with(
        "[checks.files]\ncommand = [\"true\"]\nfiles = [\"docs/**\"]\n\
         [checks.tests]\ncommand = [\"true\", \"{tests}\"]\nfiles = [\"*.py\"]\ntests = { \"{path}.py\" = \"test/{path}.py\" }\n\
         [checks.other]\ncommand = [\"true\"]\nfiles = [\"*.toml\"]\n\
         [scenarios.default]\nchecks = [\"files\", \"tests\", \"other\"]\nfail-fast = false\n",
    );
    project.write("docs/open", "").write("docs/secret", "").write("a.py", "").write("test/a.py", "");
    for path in ["docs/secret", "test/a.py"] {
        fs::set_permissions(project.path(path), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let ran = project.ran(project.as_nobody(&["verify", "--json"]));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    for (check, path) in [("files", "docs/secret"), ("tests", "test/a.py")] {
        assert_eq!(row(&document, check)["outcome"], json!({"error": "host"}), "{document}");
        let message = around(&document, check)["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{path}` cannot be read")), "{message}");
    }
    assert_eq!(row(&document, "other")["outcome"], "passed");
}

#[test]
fn a_specification_has_files_of_any_name() {
    let project = Project::with("[spec]\npaths = [\"spec/**\"]\n[checks.a]\ncommand = [\"true\"]\n");
    project.write("spec/a", "1").committed();
    let spec = || json(&project, &[])["record"]["verdict"]["subject"]["spec"]["digest"].clone();
    let before = spec();
    fs::write(odd(&project, b"spec/lat\xe9"), "x").unwrap();
    assert!(project.run(&["verify"]).exits(2).stderr.contains("the specification is not as it was committed"));
    commit(&project);
    assert_ne!(spec(), before);
}
