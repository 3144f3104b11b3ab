//! What counts as changed between a base and a subject, and which base that is, whatever the repository holds.

use crate::support::{Project, eventually};
use probity::subject::{Changes, Patience, Workspace};
use std::fs;
use std::os::unix::fs::symlink;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

/// What changed since a revision, as `kind path`, with the path before of what was renamed.
fn changed(project: &Project, base: &str) -> Vec<String> {
    let workspace = Workspace::of(&project.root(), &Patience::default()).unwrap();
    let commit = workspace.repository.as_ref().unwrap().resolve(base).unwrap().unwrap();
    let base = workspace.revision(&commit).unwrap().unwrap();
    let snapshot = workspace.snapshot(None).unwrap();
    let read =
        |entry: &probity::subject::Entry| fs::read(project.root().join(std::str::from_utf8(&entry.path).unwrap())).ok();
    let changes = Changes::between(&base, &snapshot, read).list;
    let line = |change: &probity::model::Change| {
        let before = change.previous_path.as_ref().map(|path| format!(" from {path}")).unwrap_or_default();
        format!("{:?} {}{before}", change.kind, change.path).to_lowercase()
    };
    changes.iter().map(line).collect()
}

fn commit(project: &Project, folder: &str) {
    project.git(&["-C", folder, "add", "-A"]);
    project.git(&["-C", folder, "commit", "-q", "--allow-empty", "-m", "more"]);
}

#[test]
fn each_difference_counts_once_whatever_its_kind() {
    let project = Project::with(GREEN);
    project.write("same", "x").write("edited", "x").write("gone", "1").write("moved", "a text\n");
    project.write("became-link", "to").script("mode", "true").committed();
    fs::remove_file(project.path("gone")).unwrap();
    fs::remove_file(project.path("became-link")).unwrap();
    symlink("to", project.path("became-link")).unwrap();
    fs::rename(project.path("moved"), project.path("there")).unwrap();
    project.write("edited", "y").write("new", "z");
    fs::set_permissions(project.path("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let all = ["modified became-link", "modified edited", "deleted gone", "modified mode", "added new"];
    assert_eq!(changed(&project, "HEAD"), [&all[..], &["renamed there from moved"]].concat());
}

#[test]
fn what_is_not_here_is_compared_by_what_git_tracks_it_with() {
    let project = Project::with(GREEN);
    project.write("in/file", "x").write("out/file", "x").write("out/other", "x").committed();
    project.write("out/file", "y").write("out/new", "z");
    commit(&project, ".");
    project.git(&["sparse-checkout", "set", "--cone", "in"]);
    assert!(!project.path("out").exists());
    assert_eq!(changed(&project, "HEAD"), [""; 0]);
    assert_eq!(changed(&project, "HEAD~1"), ["modified out/file", "added out/new"]);
    let before = project.verify().1["record"]["verdict"]["subject"]["tree"].clone();
    // Staged, and still not here: another subject, and a dirty one.
    let id = project.git(&["rev-parse", "HEAD:out/new"]);
    project.git(&["update-index", "--cacheinfo", &format!("100644,{id},out/file")]);
    project.git(&["update-index", "--skip-worktree", "out/file"]);
    assert_eq!(changed(&project, "HEAD"), ["modified out/file"]);
    let record = project.verify().1["record"].clone();
    assert_eq!(record["dirty"], true);
    assert_ne!(record["verdict"]["subject"]["tree"], before);
}

#[test]
fn a_submodule_counts_as_changed_with_what_differs_in_it() {
    let project = Project::with(GREEN);
    project.write("sub/a", "x").write("sub/b", "x").write("sub/deep/c", "x");
    project.committed_at("sub/deep").committed_at("sub");
    let entry = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n";
    project.write(".gitmodules", entry).write("z", "x").committed();
    let none = [""; 0];
    assert_eq!(changed(&project, "HEAD"), none);
    project.write("sub/a", "y");
    // What lies deeper may have moved or not: of that the base says nothing.
    let deep = ["modified sub/deep", "modified sub/deep/c"];
    assert_eq!(changed(&project, "HEAD"), [&["modified sub", "modified sub/a"], &deep[..]].concat());
    project.write("sub/a", "x");
    fs::remove_file(project.path("sub/b")).unwrap();
    assert_eq!(changed(&project, "HEAD"), [&["modified sub"], &deep[..]].concat(), "what is gone has no entry");
    project.write("sub/b", "x");
    assert_eq!(changed(&project, "HEAD"), none);
    fs::remove_file(project.path("sub/deep/c")).unwrap();
    assert_eq!(changed(&project, "HEAD"), ["modified sub", "modified sub/deep"]);
    project.write("sub/deep/c", "x");
    // At another commit everything in it counts.
    project.write("sub/a", "y");
    commit(&project, "sub");
    let all = ["modified sub", "modified sub/a", "modified sub/b", "modified sub/deep", "modified sub/deep/c"];
    assert_eq!(changed(&project, "HEAD"), all);
    commit(&project, ".");
    assert_eq!(changed(&project, "HEAD~1"), all);
    assert_eq!(changed(&project, "HEAD"), none);
    // One that is not checked out is known by its commit.
    fs::remove_dir_all(project.path("sub")).unwrap();
    fs::create_dir(project.path("sub")).unwrap();
    assert_eq!(changed(&project, "HEAD"), none);
    assert_eq!(changed(&project, "HEAD~1"), ["modified sub"]);
}

/// A history that parted: the names of branches and where their histories part.
fn parted() -> (Project, String) {
    let project = Project::with(GREEN);
    project.write("file", "1").committed();
    for at in ["2", "3"] {
        project.write("file", at);
        commit(&project, ".");
    }
    let base = project.git(&["rev-parse", "HEAD"]);
    project.git(&["checkout", "-q", "-b", "work"]);
    project.write("work", "1");
    commit(&project, ".");
    project.git(&["checkout", "-q", "main"]);
    project.write("main", "1");
    commit(&project, ".");
    project.git(&["checkout", "-q", "work"]);
    (project, base)
}

fn base(project: &Project, name: &str) -> String {
    let ran = project.run(&["verify", "--json", "--base", name]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let base = document["record"]["verdict"]["subject"]["base"].as_str().unwrap();
    base.strip_prefix("sha1:").unwrap().to_owned()
}

#[test]
fn the_base_is_where_the_histories_parted_as_git_finds_it() {
    let (project, at) = parted();
    assert_eq!(base(&project, "main"), at);
    assert_eq!(base(&project, "HEAD"), project.git(&["rev-parse", "HEAD"]));
    assert_eq!(base(&project, "main~2"), project.git(&["rev-parse", "main~2"]), "an ancestor");
    // Merged from one side, the merged commit is it.
    project.git(&["merge", "-q", "-m", "merged", "main"]);
    assert_eq!(base(&project, "main"), project.git(&["rev-parse", "main"]));
    project.git(&["checkout", "-q", "main"]);
    for _ in 0..3 {
        commit(&project, ".");
    }
    project.git(&["checkout", "-q", "work"]);
    assert_eq!(base(&project, "main"), project.git(&["merge-base", "main", "work"]));
    // The edge of a shallow clone ends a history.
    let clone = Project::new();
    let from = format!("file://{}", project.root().display());
    clone.git(&["clone", "-q", "--depth", "1", "--no-single-branch", &from, "."]);
    let said = clone.run(&["verify", "--base", "origin/main"]).exits(2).stderr;
    assert!(said.contains("no commit in common") && said.contains("shallow"), "{said}");
}

#[test]
fn a_name_of_two_things_is_no_base() {
    let (project, at) = parted();
    project.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    assert_eq!(base(&project, "origin/main"), at);
    project.git(&["tag", "origin/main", "HEAD"]);
    insta::assert_snapshot!(project.run(&["verify", "--base", "origin/main"]).exits(2).stderr, @r"
    error: `--base`: `origin/main` names more than one thing in this repository
    help: write it in full, as `refs/heads/…`, `refs/remotes/…` or `refs/tags/…`
    ");
    assert_eq!(base(&project, "refs/remotes/origin/main"), at);
    project.git(&["config", "core.warnAmbiguousRefs", "false"]);
    assert!(project.run(&["verify", "--rev", "origin/main"]).exits(2).stderr.contains("more than one thing"));
}

#[test]
fn histories_are_those_that_ids_stand_for() {
    let (project, at) = parted();
    commit(&project, ".");
    // What git wrote beside the objects is not asked: a graph that was made before, of other parents.
    let object = |id: &str| project.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let root = project.git(&["rev-parse", "HEAD~4"]);
    let text = project.git(&["cat-file", "commit", "HEAD~1"]).replace(&at, &root);
    project.write("../forged", format!("{text}\n"));
    let forged = project.git(&["hash-object", "-w", "-t", "commit", "../forged"]);
    let middle = project.git(&["rev-parse", "HEAD~1"]);
    let kept = fs::read(object(&middle)).unwrap();
    fs::remove_file(object(&middle)).unwrap();
    fs::copy(object(&forged), object(&middle)).unwrap();
    project.git(&["commit-graph", "write", "--reachable"]);
    assert_eq!(project.git(&["merge-base", "main", "work"]), root, "git believes it");
    let said = project.run(&["verify", "--base", "main"]).exits(2).stderr;
    assert!(said.contains("is not that object"), "{said}");
    fs::remove_file(object(&middle)).unwrap();
    fs::write(object(&middle), kept).unwrap();
    assert_eq!(project.git(&["merge-base", "main", "work"]), root, "git believes what it wrote then");
    assert_eq!(base(&project, "main"), at);
}

#[test]
fn looking_at_a_tree_ends_when_it_is_asked_to_and_when_time_is_up() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\ntimeout = \"300ms\"\n");
    // Nobody reads so much in so little time, and it takes no space.
    fs::File::create(project.path("endless")).unwrap().set_len(1 << 43).unwrap();
    insta::assert_snapshot!(project.run(&["verify"]).exits(1).stderr, @r"error: the time of the whole run was used up while the tree was looked at; nothing ran and nothing is recorded");
    project.write("probity.toml", GREEN);
    let start = || {
        let (stdout, stderr) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        let child = project.command(&["verify"]).stdout(stdout).stderr(stderr).spawn().unwrap();
        let reads = format!("/proc/{}/io", child.id());
        eventually("it reads", || {
            let counts = fs::read_to_string(&reads).unwrap();
            counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap() > 16 << 20
        });
        child
    };
    let child = start();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"error: interrupted while the tree was looked at; nothing ran and nothing is recorded");
}
