//! The record: what is kept of a run, where, and what happens when it cannot be.

use crate::support::{Project, row};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

#[test]
fn runs_are_listed_newest_first_and_shown_again_as_they_were() {
    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"echo why; test -f ok\"]]\n");
    assert_eq!(project.run(&["log"]).exits(0).stdout, "");
    project.run(&["show"]).exits(2);
    let red = project.run(&["verify"]).exits(1);
    project.write("ok", "");
    project.run(&["verify"]).exits(0);
    let log = project.run(&["log"]).exits(0);
    insta::assert_snapshot!("log", log.shown());
    let names: Vec<&str> = log.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let shown = project.run(&["show", names[1]]).exits(0);
    assert!(shown.stdout.ends_with(&red.stdout), "{}\n{}", shown.stdout, red.stdout);
    insta::assert_snapshot!("show", crate::support::redacted(&shown.stdout.replace(&host(), "[HOST]")));
    project.run(&["show", &names[0][..6]]).exits(0);
    let missing = project.run(&["show", "ffffffffffff"]).exits(2);
    assert!(missing.stderr.contains("there is no run `ffffffffffff`"), "{}", missing.stderr);
    let wrong = project.run(&["show", "latest", "--check", "nope"]).exits(2);
    assert!(wrong.stderr.contains("it has verify-1"), "{}", wrong.stderr);
    project.run(&["log", "-n", "1", "--json"]).exits(0);
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[test]
fn the_record_is_in_the_common_folder_of_a_repository_and_below_the_tree_elsewhere() {
    let project = Project::with(GREEN);
    project.committed();
    project.run(&["verify"]).exits(0);
    assert!(project.path(".git/probity/state.db").is_file());
    assert!(!project.path(".probity").exists());
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    project.git(&["worktree", "add", "-q", "../other"]);
    let mut command = project.command(&["log"]);
    command.current_dir(project.outside().join("other"));
    assert_eq!(project.ran(command).exits(0).stdout.lines().count(), 1, "worktrees share their records");

    let folder = Project::with(GREEN);
    let (_, first) = folder.verify();
    assert!(folder.path(".probity/state.db").is_file());
    let (_, second) = folder.verify();
    let tree = |document: &serde_json::Value| document["record"]["verdict"]["subject"]["tree"].clone();
    assert_eq!(tree(&first), tree(&second), "the state is never part of the subject");
    let mode = fs::metadata(folder.path(".probity")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn the_record_names_commit_tree_and_whether_it_was_dirty() {
    let project = Project::with(GREEN);
    project.write("a file", "x").committed();
    let (_, document) = project.verify();
    assert_eq!(document["record"]["dirty"], false);
    let commit = format!("sha1:{}", project.git(&["rev-parse", "HEAD"]));
    assert_eq!(document["record"]["verdict"]["subject"]["commit"], commit.as_str());
    for (what, change) in [
        ("changed", "echo y > 'a file'"),
        ("new", "touch other"),
        ("removed", "rm 'a file'"),
        ("executable", "chmod +x 'a file'"),
        ("assumed unchanged", "git update-index --assume-unchanged 'a file'; echo z > 'a file'"),
        ("untracked not shown", "git config status.showUntrackedFiles no; touch more"),
    ] {
        let project = Project::with(GREEN);
        project.write("a file", "x").committed();
        let status = Command::new("sh").args(["-c", change]).current_dir(project.root()).status().unwrap();
        assert!(status.success());
        assert_eq!(project.verify().1["record"]["dirty"], true, "{what}");
    }
}

#[test]
fn a_verdict_that_cannot_be_recorded_is_an_error_and_is_still_shown() {
    // The folder of its logs is another one at the end than the one that they were written to.
    let config = "[verify]\ncommands = [[\"sh\", \"-c\", \"mv .probity/logs .probity/old; mkdir .probity/logs\"]]\n";
    let ran = Project::with(config).run(&["verify"]).exits(1);
    insta::assert_snapshot!("unrecorded", ran.shown());
    let (code, document) = Project::with(config).verify();
    assert_eq!((code, &document["recorded"]), (1, &serde_json::json!(false)));
    assert_eq!(document["record"]["verdict"]["outcome"], "error");
    assert_eq!(document["record"]["verdict_digest"], serde_json::Value::Null);
    assert_eq!(row(&document, "verify-1")["outcome"], "passed", "what was seen is still shown");
}

#[test]
fn a_tree_that_may_not_be_written_to_is_verified_and_nothing_is_recorded() {
    let project = Project::with(GREEN);
    let command = project.as_nobody(&["verify"]);
    // As root the user is changed; an ordinary user gets a folder without write permission.
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(project.root(), fs::Permissions::from_mode(0o555)).unwrap();
    }
    let ran = project.ran(command).exits(1);
    assert!(
        ran.stderr.contains("could not be recorded") && ran.stderr.contains("needs to write to it"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.starts_with("passed"), "{}", ran.stdout);
    fs::set_permissions(project.root(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_changed_record_is_told_from_what_was_recorded() {
    let project = Project::with("[verify]\ncommands = [[\"false\"]]\n");
    project.run(&["verify"]).exits(1);
    let database = rusqlite::Connection::open(project.path(".probity/state.db")).unwrap();
    let record: Vec<u8> = database.query_row("SELECT record FROM run", [], |row| row.get(0)).unwrap();
    let forged = String::from_utf8(record).unwrap().replace("\"failed\"", "\"passed\"");
    database.execute("UPDATE run SET record = ?1, outcome = 'passed'", [forged.into_bytes()]).unwrap();
    let ran = project.run(&["show"]).exits(1);
    assert!(ran.stderr.contains("was changed after it was written"), "{}", ran.stderr);
}

/// A project whose state folder is a file system of its own, as small as they get; only root may mount one. None where
/// that cannot be done.
fn on_a_small_disk(config: &str) -> Option<Project> {
    let project = Project::with(config);
    let state = project.path(".probity");
    fs::create_dir(&state).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "probity-test"]).arg(&state);
    if !rustix::process::geteuid().is_root() || !mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no small file system can be mounted here");
        return None;
    }
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    Some(project)
}

fn unmount(project: &Project) {
    assert!(Command::new("umount").arg(project.path(".probity")).status().unwrap().success());
}

#[test]
fn a_full_disk_is_named_and_nothing_is_called_green() {
    let config = "[verify]\ncommands = [[\"sh\", \"-c\", \"head -c 3000000 /dev/zero\"]]\n";
    let Some(project) = on_a_small_disk(config) else { return };
    let ran = project.run(&["verify"]);
    unmount(&project);
    let ran = ran.exits(1);
    assert!(
        ran.stderr.contains("could not be recorded") || ran.stdout.contains("cannot keep"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_full_disk_keeps_nobody_from_looking_at_what_is_recorded() {
    let Some(project) = on_a_small_disk(GREEN) else { return };
    let first = project.run(&["verify"]);
    // All of it, to the last page.
    let _ = fs::write(project.path(".probity/logs/much"), vec![0; 2 << 20]);
    let (log, show, then) = (project.run(&["log"]), project.run(&["show"]), project.run(&["verify"]));
    unmount(&project);
    first.exits(0);
    assert_eq!(log.exits(0).stdout.lines().count(), 1);
    show.exits(0);
    let then = then.exits(1);
    assert!(then.stderr.contains("no space is left for "), "{}", then.stderr);
}

#[test]
fn a_log_that_something_else_took_the_place_of_is_neither_waited_for_nor_believed() {
    let project = Project::with(
        "[verify]\ncommands = [[\"sh\", \"-c\", \"echo one; rm .probity/logs/*/verify-1.log; $0\"]]\n"
            .replace("$0", "mkfifo .probity/logs/$(ls .probity/logs)/verify-1.log")
            .as_str(),
    );
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    let shown = project.run(&["show", "--check", "verify-1", "--log"]).exits(1);
    assert!(shown.stderr.contains("not a regular file"), "{}", shown.stderr);
    project.run(&["show"]).exits(0);

    for (name, replace) in [
        ("changed", "echo more >> $LOG"),
        ("link", "rm $LOG; ln -s /etc/hostname $LOG"),
        ("device", "rm $LOG; ln -s /dev/zero $LOG"),
    ] {
        let project = Project::with("[verify]\ncommands = [[\"echo\", \"one\"]]\n");
        project.run(&["verify"]).exits(0);
        let replace = replace.replace("$LOG", ".probity/logs/*/verify-1.log");
        let replace = format!(
            "set -- .probity/logs/*/verify-1.log; {}",
            replace.replace(".probity/logs/*/verify-1.log", "\"$1\"")
        );
        let status = Command::new("sh").args(["-c", &replace]).current_dir(project.root()).status().unwrap();
        assert!(status.success());
        let shown = project.run(&["show", "--check", "verify-1", "--log"]).exits(1);
        assert_eq!(shown.stdout, "", "{name}");
    }
}

#[test]
fn what_a_list_of_runs_shows_steers_no_terminal() {
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    let database = rusqlite::Connection::open(project.path(".probity/state.db")).unwrap();
    database.execute("UPDATE run SET started = char(27) || '[31m', scenario = char(7)", []).unwrap();
    let log = project.run(&["log"]).exits(0);
    assert!(!log.stdout.contains(['\u{1b}', '\u{7}']), "{:?}", log.stdout);
}
