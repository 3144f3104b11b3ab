//! Repositories of every kind: what belongs to the subject, what is dirty, and that nothing a repository says is run.

use crate::support::Project;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

#[path = "support/traps.rs"]
mod traps;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

/// What a verdict says of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    tree: String,
    commit: Option<String>,
    dirty: Option<bool>,
}

fn subject(project: &Project) -> Subject {
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    let record = &document["record"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Subject {
        tree: text(&record["verdict"]["subject"]["tree"]).unwrap(),
        commit: text(&record["verdict"]["subject"]["commit"]),
        dirty: record["dirty"].as_bool(),
    }
}

/// Shows that `change` makes another subject, which is not the commit.
#[track_caller]
fn changes(project: &Project, what: &str, change: impl FnOnce()) {
    let before = subject(project);
    change();
    let after = subject(project);
    assert_ne!(before.tree, after.tree, "{what}: the same tree");
    assert_eq!(after.dirty, Some(true), "{what}: clean");
}

/// Ends a chain of writing.
fn wrote(_: &Project) {}

/// Shows that `verify` refuses, and returns what it says.
#[track_caller]
fn refused(project: &Project) -> String {
    project.run(&["verify"]).exits(2).stderr
}

/// A repository with one file, committed, in a folder of a project.
fn inner(project: &Project, folder: &str) {
    project.write(&format!("{folder}/file"), "inner\n");
    project.git(&["-C", folder, "init", "-q"]);
    project.git(&["-C", folder, "add", "-A"]);
    project.git(&["-C", folder, "commit", "-q", "-m", "inner"]);
}

/// A committed project with one submodule, `sub`.
fn with_submodule() -> Project {
    let project = Project::with(GREEN);
    inner(&project, "sub");
    let entry = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = all\n";
    project.write("file", "x").write(".gitmodules", entry).committed();
    project.git(&["submodule", "-q", "absorbgitdirs"]);
    project
}

fn trapped() -> (Project, PathBuf) {
    let project = Project::with(GREEN);
    let markers = project.outside().join("markers");
    traps::plant(&project.root(), &markers);
    (project, markers)
}

#[test]
fn every_trap_is_one() {
    let (project, markers) = trapped();
    assert_eq!(traps::duds(&project.root(), &markers), Vec::<String>::new(), "set off, and nothing happened");
}

#[test]
fn nothing_that_a_repository_says_is_run() {
    let (project, markers) = trapped();
    let environment = traps::environment(&project.root(), &markers);
    let mut folders = vec![".", "deep", "deep/er", "vendor", traps::POSING, "vendor/lib/deep", ".git"];
    folders.extend(traps::REPOSITORIES.iter().skip(1).map(|(folder, _)| *folder));
    for folder in folders {
        for careless in [false, true] {
            let run = |arguments: &[&str]| {
                let mut command = project.command(arguments);
                command.current_dir(project.path(folder));
                if careless {
                    command.envs(environment.iter().map(|(name, value)| (*name, value)));
                }
                let ran = project.ran(command);
                assert_eq!(traps::markers(&markers), Vec::<String>::new(), "{arguments:?} in {folder}");
                ran
            };
            run(&["verify"]).exits(0);
            run(&["log"]);
            run(&["show"]);
            // The same with the options that take another way to the folder.
            run(&["-C", ".", "verify", "--json"]).exits(0);
            // Objects are read, and histories compared.
            run(&["verify", "--base", "HEAD"]).exits(0);
            run(&["verify", "--rev", "HEAD"]);
        }
    }
    // What differs has git asked for attributes and settings, in every repository.
    for (folder, _) in traps::REPOSITORIES {
        for file in traps::FILES {
            project.write(format!("{folder}/{file}").trim_start_matches('/'), "other\n");
        }
    }
    for careless in [false, true] {
        let mut command = project.command(&["verify", "--json"]);
        if careless {
            command.envs(environment.iter().map(|(name, value)| (*name, value)));
        }
        let ran = project.ran(command).exits(0);
        assert!(ran.stdout.contains("the filter `informed` is not run"), "it was not asked: {}", ran.stdout);
        assert_eq!(traps::markers(&markers), Vec::<String>::new());
    }
}

#[test]
fn what_a_repository_replaces_hides_and_redirects_is_seen_as_it_is() {
    let (project, _) = trapped();
    let replaced = traps::as_replaced(&project.root());
    let id = project.git(&["hash-object", "--no-filters", "plain.txt"]);
    assert!(!replaced.contains(&id), "git believes the replacement, or this shows nothing");
    let seen = subject(&project);
    assert_eq!(seen.dirty, Some(false), "the working tree is as the commit has it");
    assert_eq!(seen.commit.unwrap(), format!("sha1:{}", project.git(&["rev-parse", "HEAD"])));
    for folder in ["", "sub/", "owned/", "elsewhere/"] {
        for file in ["plain.txt", "filtered.txt", "lazy.txt"] {
            let path = format!("{folder}{file}");
            let before = fs::read(project.path(&path)).unwrap();
            changes(&project, &path, || wrote(project.write(&path, "other\n")));
            project.write(&path, before);
            assert_eq!(subject(&project).dirty, Some(false));
        }
    }
}

#[test]
fn a_folder_that_poses_as_a_repository_is_a_folder() {
    let (project, markers) = trapped();
    project.write("vendor/lib/probity.toml", GREEN);
    let mut command = project.command(&["verify", "--json"]);
    command.current_dir(project.path(traps::POSING));
    let ran = project.ran(command).exits(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["record"]["dirty"], true, "the new configuration belongs to the repository around it");
    assert!(document["record"]["verdict"]["subject"]["commit"].is_string());
    assert!(!project.path("vendor/lib/probity").exists(), "no state is kept where it poses");
    assert_eq!(traps::markers(&markers), Vec::<String>::new());
}

#[test]
fn a_missing_object_is_not_fetched() {
    let (project, markers) = trapped();
    // A folder of the commit: without it nobody can say what is dirty.
    traps::lose(&project.root(), &project.path(".git"), "HEAD:deep");
    let said = refused(&project);
    assert!(said.contains("git has no object"), "{said}");
    assert_eq!(traps::markers(&markers), Vec::<String>::new());
}

#[test]
fn the_repository_is_the_one_that_lies_there() {
    for elsewhere in ["inside", "..", "/"] {
        let project = Project::with(GREEN);
        project.write("inside/file", "x").committed();
        project.git(&["config", "core.worktree", project.root().join(elsewhere).to_str().unwrap()]);
        let said = refused(&project);
        assert!(said.contains("git does not take [DIR]/project for the top of a working tree"), "{said}");
    }
    let project = Project::with(GREEN);
    project.write("folder/probity.toml", GREEN).committed();
    for broken in [&|path: &Path| fs::create_dir(path).unwrap(), &|path: &Path| fs::write(path, "nothing").unwrap()]
        as [&dyn Fn(&Path); 2]
    {
        let git = project.path("folder/.git");
        broken(&git);
        let said = project.run(&["-C", "folder", "verify"]).exits(2).stderr;
        assert!(said.contains("git does not take [DIR]/project/folder for the top of a working tree"), "{said}");
        let _ = fs::remove_dir(&git).or_else(|_| fs::remove_file(&git));
    }
}

#[test]
fn no_repository_an_untrusted_one_and_one_without_a_working_tree_are_told_apart() {
    let project = Project::with(GREEN);
    let outside = subject(&project);
    assert_eq!((outside.commit, outside.dirty), (None, None));

    project.committed();
    project.git(&["config", "core.bare", "true"]);
    assert!(refused(&project).contains("[DIR]/project is a repository without a working tree"));
    project.git(&["config", "core.bare", "false"]);
    subject(&project);

    // A bare repository has no `.git`, and what lies in it is files like others.
    project.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    fs::write(project.outside().join("bare.git/probity.toml"), GREEN).unwrap();
    let ran = project.run(&["-C", "../bare.git", "verify", "--json"]).exits(0);
    assert!(ran.stdout.contains("\"dirty\": null"), "{}", ran.stdout);

    if rustix::process::geteuid().is_root() {
        // A repository cannot vouch for itself.
        project.git(&["config", "safe.directory", "*"]);
        for path in [project.root(), project.path(".git")] {
            chown(&path, Some(1234), Some(1234)).unwrap();
        }
        let said = refused(&project);
        assert!(said.contains("git does not trust the repository at [DIR]/project"), "{said}");
        assert!(said.contains("safe.directory [DIR]/project"), "{said}");
        // Who called sudo owns it.
        let with = |uid: &str| {
            let mut command = project.command(&["verify"]);
            command.env("SUDO_UID", uid);
            project.ran(command)
        };
        with("1234").exits(0);
        with("1235").exits(2);
        // Said by the user, it is trusted.
        fs::write(project.outside().join("home/.gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
        subject(&project);
    }
}

#[test]
fn without_git_a_repository_is_not_taken_for_a_folder() {
    let project = Project::with(GREEN);
    project.committed();
    let bin = project.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink("/bin/true", bin.join("true")).unwrap();
    let without_git = || {
        let mut command = project.command(&["verify"]);
        command.env("PATH", &bin);
        project.ran(command)
    };
    let ran = without_git().exits(2);
    assert!(ran.stderr.contains("cannot start `git`") && ran.stderr.contains("install git"), "{}", ran.stderr);
    fs::remove_dir_all(project.path(".git")).unwrap();
    without_git().exits(0);
}

#[test]
fn a_git_that_lies_in_the_tree_is_not_git() {
    let project = Project::with(GREEN);
    project.script("git", "touch \"$0.ran\"; exit 1").script("bin/git", "touch \"$0.ran\"; exit 1").committed();
    let mut path = std::ffi::OsString::from(":.:bin:");
    path.push(project.path("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = project.command(&["verify"]);
    command.env("PATH", path);
    project.ran(command).exits(0);
    assert!(!project.path("git.ran").exists() && !project.path("bin/git.ran").exists());
}

#[test]
fn before_the_first_commit_everything_is_dirty() {
    let project = Project::with(GREEN);
    project.git(&["init", "-q"]);
    let unborn = subject(&project);
    assert_eq!((unborn.commit, unborn.dirty), (None, Some(true)));
    project.git(&["add", "-A"]);
    assert_eq!(subject(&project).dirty, Some(true));
}

#[test]
fn a_detached_head_and_a_linked_worktree_are_at_their_commits() {
    let project = Project::with(GREEN);
    project.committed();
    let first = subject(&project);
    project.write("second", "x").git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "second"]);
    let second = subject(&project);
    assert_ne!(first, second);
    project.git(&["checkout", "-q", "--detach", "HEAD~"]);
    assert_eq!(subject(&project), first);

    project.git(&["worktree", "add", "-q", "../linked", "main"]);
    let ran = project.run(&["-C", "../linked", "verify", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["record"]["verdict"]["subject"]["tree"], second.tree.as_str());
    assert_eq!(document["record"]["verdict"]["subject"]["commit"], second.commit.unwrap().as_str());
    assert_eq!(document["record"]["dirty"], false);
}

#[test]
fn names_and_hashes_of_any_kind() {
    let project = Project::with(GREEN);
    project.git(&["init", "-q", "--object-format=sha256"]);
    for name in ["with space", "with\nline end", "with\ttab", "with \"quotes\"", "größe", "-n", ":(exclude)x", "s\\b"]
    {
        project.write(name, name);
    }
    fs::write(project.root().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"b\xff")), "x")
        .unwrap();
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "first"]);
    let seen = subject(&project);
    assert_eq!(seen.dirty, Some(false));
    assert!(seen.commit.unwrap().starts_with("sha256:"));

    // The folder of the project itself, too: what git says of it is not cut at line ends.
    let project = Project::new();
    project.write("a\nb/probity.toml", GREEN);
    project.git(&["-C", "a\nb", "init", "-q"]);
    let ran = project.run(&["-C", "a\nb", "verify", "--json"]).exits(0);
    assert!(ran.stdout.contains("\"dirty\": true"), "{}", ran.stdout);
    assert!(project.path("a\nb/.git/probity/state.db").is_file());
}

#[test]
fn only_what_lies_below_the_configuration_is_verified() {
    let project = Project::new();
    project.write("part/probity.toml", GREEN).write("part/file", "x").write("beside", "x").committed();
    symlink(project.path("part"), project.outside().join("link")).unwrap();
    let look = |folder: &str| {
        let ran = project.run(&["-C", folder, "verify", "--json"]).exits(0);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let record = &document["record"];
        (record["verdict"]["subject"]["tree"].clone(), record["dirty"].clone())
    };
    let before = look("part");
    assert_eq!(before.1, false);
    assert_eq!(look("../link"), before, "reached by a link");
    project.write("beside", "y").write("new", "y");
    assert_eq!(look("part"), before, "what lies beside it is not its business");
    project.write("part/new", "y");
    let after = look("part");
    assert_ne!(after.0, before.0);
    assert_eq!(after.1, true);
}

#[test]
fn a_submodule_is_part_of_the_subject() {
    let project = with_submodule();
    let clean = subject(&project);
    assert_eq!(clean.dirty, Some(false));
    changes(&project, "edited", || wrote(project.write("sub/file", "edited\n")));
    project.write("sub/file", "inner\n");
    assert_eq!(subject(&project), clean);
    changes(&project, "new file", || wrote(project.write("sub/new", "")));
    fs::remove_file(project.path("sub/new")).unwrap();
    changes(&project, "another commit", || {
        project.git(&["-C", "sub", "commit", "-q", "--allow-empty", "-m", "later"]);
    });
    project.git(&["-C", "sub", "reset", "-q", "--hard", "HEAD~"]);
    assert_eq!(subject(&project), clean);
}

#[test]
fn what_lies_where_a_submodule_should_be_is_part_of_the_subject() {
    // Not initialised: an empty folder, and git sees nothing in it whatever is put there.
    let project = with_submodule();
    fs::remove_dir_all(project.path("sub")).unwrap();
    fs::create_dir(project.path("sub")).unwrap();
    assert_eq!(subject(&project).dirty, Some(false));
    changes(&project, "copied", || wrote(project.write("sub/file", "x")));
    changes(&project, "edited", || wrote(project.write("sub/file", "y")));
    changes(&project, "ignored", || wrote(project.write("sub/.gitignore", "*").write("sub/hidden", "")));

    // A link to a repository is a link: what is behind it is not read.
    let project = with_submodule();
    fs::rename(project.path("sub"), project.outside().join("moved")).unwrap();
    symlink("../moved", project.path("sub")).unwrap();
    let linked = subject(&project);
    assert_eq!(linked.dirty, Some(true));
    fs::write(project.outside().join("moved/file"), "edited\n").unwrap();
    assert_eq!(subject(&project), linked);

    // A `.git` that is none: git would tell about the repository around it, without end.
    let project = with_submodule();
    fs::remove_file(project.path("sub/.git")).unwrap();
    fs::create_dir(project.path("sub/.git")).unwrap();
    assert!(refused(&project).contains("git does not take [DIR]/project/sub for the top of a working tree"));
}

#[test]
fn a_repository_inside_is_part_of_the_subject() {
    let project = Project::with(GREEN);
    project.committed();
    changes(&project, "a new repository", || inner(&project, "nested"));
    changes(&project, "edited", || wrote(project.write("nested/file", "edited\n")));
    changes(&project, "one deeper", || inner(&project, "nested/deeper"));
    changes(&project, "edited deeper", || wrote(project.write("nested/deeper/file", "edited\n")));
    changes(&project, "without a commit", || {
        project.write("unborn/file", "x");
        project.git(&["-C", "unborn", "init", "-q"]);
    });
    changes(&project, "edited there", || wrote(project.write("unborn/file", "y")));
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_missing() {
    for index in ["--no-sparse-index", "--sparse-index"] {
        let project = Project::with(GREEN);
        project.write("in/file", "x").write("out/file", "x").write("out/deep/er", "x").committed();
        let full = subject(&project);
        project.git(&["sparse-checkout", "set", "--cone", index, "in"]);
        assert!(!project.path("out/file").exists());
        let sparse = subject(&project);
        assert_eq!(sparse.dirty, Some(false), "{index}");
        assert_ne!(sparse.tree, full.tree, "{index}: a left out file is not the file");
        changes(&project, "put there all the same", || wrote(project.write("out/file", "y")));
        project.write("out/file", "x").write("out/deep/er", "x");
        assert_eq!(subject(&project).tree, full.tree, "{index}");
    }
}

#[test]
fn settings_that_hide_changes_from_git_hide_nothing() {
    let committed = || {
        let project = Project::with(GREEN);
        project.write("file", "x").committed();
        project
    };
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let project = committed();
        changes(&project, flag, || {
            project.git(&["update-index", flag, "file"]);
            project.write("file", "y");
            assert_eq!(project.git(&["status", "--porcelain"]), "", "this shows nothing");
        });
    }
    for (setting, value) in [("status.showUntrackedFiles", "no"), ("core.ignoreCase", "true")] {
        let project = committed();
        changes(&project, setting, || {
            project.git(&["config", setting, value]);
            project.write("FILE", "y");
            assert_eq!(project.git(&["status", "--porcelain"]), "", "this shows nothing");
        });
    }
}

#[test]
fn a_list_of_what_to_ignore_that_never_ends_is_named() {
    let project = Project::with(GREEN);
    project.write("folder/file", "");
    for (path, what) in [("folder/.gitignore", "fifo"), (".ignore", "device")] {
        match what {
            "fifo" => {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                let place = project.path(path);
                rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            }
            _ => symlink("/dev/zero", project.path(path)).unwrap(),
        }
        let said = project.run(&["verify"]).stderr;
        assert!(said.contains(&format!("cannot read {path}: it is not a regular file")), "{said}");
        fs::remove_file(project.path(path)).unwrap();
    }
}
