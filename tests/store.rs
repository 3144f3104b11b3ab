//! The store: one run at a time on a tree, what a killed run leaves, what is in the place of the store's files, what goes.

use crate::support::{Project, Ran, eventually, example};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

/// A command that says that it runs, and ends when it is told to.
const HELD: &str =
    "[verify]\ncommands = [[\"sh\", \"-c\", \"touch ../started; until test -e ../end; do sleep 0.01; done\"]]\n";

fn sql(project: &Project, statement: &str) {
    let database = rusqlite::Connection::open(project.path(".probity/state.db")).unwrap();
    database.execute_batch(statement).unwrap();
}

fn listed(project: &Project) -> Vec<String> {
    project.run(&["log", "-n", "1000"]).exits(0).stdout.lines().map(str::to_owned).collect()
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A run that is going on until `../end` is there.
fn held(project: &Project) -> Child {
    let child = spawn(project.command(&["verify"]));
    eventually("the start", || project.outside().join("started").exists());
    child
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The lines that `store check` says.
fn check(project: &Project, code: i32) -> Vec<String> {
    project.run(&["store", "check"]).exits(code).stdout.lines().map(str::to_owned).collect()
}

fn tells_of_no_lock(ran: &Ran) {
    assert!(!ran.stderr.contains("locked"), "{}", ran.stderr);
}

#[test]
fn eight_runs_started_at_the_same_moment_run_one_after_the_other() {
    let alone = "[verify]\ncommands = [[\"sh\", \"-c\", \"mkdir ../busy && sleep 0.02 && rmdir ../busy\"]]\n";
    for first in [true, false] {
        let project = Project::with(alone);
        if !first {
            project.run(&["verify"]).exits(0);
        }
        let children: Vec<Child> = (0..8).map(|_| spawn(project.command(&["verify"]))).collect();
        for child in children {
            let (code, stdout, stderr) = ended(child);
            assert_eq!(code, Some(0), "{stdout}{stderr}");
            assert!(!stderr.contains("locked"), "{stderr}");
        }
        assert_eq!(listed(&project).len(), 8 + usize::from(!first));
        assert_eq!(check(&project, 0).len(), 1);
    }
}

#[test]
fn runs_of_several_worktrees_go_side_by_side_into_one_store() {
    let project = Project::with("[verify]\ncommands = [[\"sh\", \"-c\", \"sleep 0.02\"]]\n");
    project.committed();
    project.git(&["worktree", "add", "-q", "../other"]);
    let children: Vec<Child> = (0..8)
        .map(|number| {
            let mut command = project.command(&["verify", "--fresh"]);
            if number % 2 == 1 {
                command.current_dir(project.outside().join("other"));
            }
            spawn(command)
        })
        .collect();
    for child in children {
        let (code, stdout, stderr) = ended(child);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
    }
    assert_eq!(listed(&project).len(), 8);
    let locks = fs::read_dir(project.path(".git/probity")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(locks.filter(|name| name.to_str().unwrap().starts_with("lock-")).count(), 2, "one for each tree");

    // While one of the trees is busy, the other one is not.
    project.write("probity.toml", HELD);
    let child = held(&project);
    let mut command = project.command(&["verify", "--no-wait"]);
    command.current_dir(project.outside().join("other"));
    project.ran(command).exits(0);
    fs::write(project.outside().join("end"), "").unwrap();
    assert_eq!(ended(child).0, Some(0));
}

#[test]
fn who_waits_says_for_whom_and_is_next_with_the_tree_as_it_is_then() {
    let project = Project::with(HELD);
    let first = held(&project);
    let pid = first.id();
    let going_on = project.run(&["log"]).exits(0);
    let line = going_on.stdout.strip_prefix("going on\n").unwrap();
    assert!(line.contains(&format!("(process {pid} on ")) && line.ends_with("\n\nverified\n"), "{line}");
    let run = line.split(' ').nth(1).unwrap().to_owned();
    let status = project.run(&["status"]).exits(1);
    assert!(status.stderr.starts_with(&format!("going on: run {run} (process {pid} on ")), "{}", status.stderr);
    let shown = project.run(&["show", &run]).exits(2);
    assert!(shown.stderr.contains("is still going on"), "{}", shown.stderr);
    // What only looks waits for nobody, and takes no lock.
    project.run(&["verify", "--plan"]).exits(0);
    project.run(&["config"]).exits(0);
    assert_eq!(check(&project, 0), ["0 records and 0 logs are as they were recorded"]);
    project.run(&["store", "gc"]).exits(0);

    let refused = project.run(&["verify", "--no-wait"]).exits(2);
    assert!(refused.stderr.contains(&format!("run {run} (process {pid} on ")), "{}", refused.stderr);
    tells_of_no_lock(&refused);

    let mut second = spawn(project.command(&["verify"]));
    let said = std::io::BufRead::lines(std::io::BufReader::new(second.stderr.take().unwrap())).next().unwrap().unwrap();
    assert!(said.starts_with(&format!("waiting for run {run} (process {pid} on ")), "{said}");
    project.write("probity.toml", "[verify]\ncommands = [[\"echo\", \"another\"]]\n");
    project.write("end", "");
    fs::write(project.outside().join("end"), "").unwrap();
    // The first one sees that the tree moved; the second one verifies what is there when it is its turn.
    assert_eq!(ended(first).0, Some(1));
    assert_eq!(ended(second).0, Some(0));
    let lines = listed(&project);
    assert!(lines[0].contains("  passed ") && lines[1].contains("  stale "), "{lines:#?}");
    assert!(lines[1].starts_with(&run), "{lines:#?}");
    assert_eq!(project.run(&["show", "--log"]).exits(0).stdout, "==> verify-1 <==\nanother\n\n");
}

#[test]
fn who_waits_can_be_interrupted_and_the_time_of_waiting_is_no_time_of_the_run() {
    let project = Project::with(&format!("{HELD}timeout = \"20s\"\n"));
    let first = held(&project);
    for signal in [Signal::INT, Signal::TERM] {
        let mut waiting = spawn(project.command(&["verify"]));
        let mut stderr = std::io::BufReader::new(waiting.stderr.take().unwrap());
        let mut said = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut said).unwrap();
        assert!(said.starts_with("waiting for run "), "{said}");
        kill_process(Pid::from_child(&waiting), signal).unwrap();
        assert_eq!(waiting.wait().unwrap().code(), Some(1));
        std::io::BufRead::read_line(&mut stderr, &mut said).unwrap();
        assert!(said.contains("interrupted while waiting for run "), "{said}");
    }
    fs::write(project.outside().join("end"), "").unwrap();
    assert_eq!(ended(first).0, Some(0));
    assert_eq!(listed(&project).len(), 1, "of those that waited nothing is recorded");
}

#[test]
fn a_run_that_is_killed_is_shown_as_interrupted_and_is_no_verdict() {
    let project = Project::with(HELD);
    let mut child = held(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = listed(&project);
    assert!(lines.len() == 1 && lines[0].contains("  interrupted ") && lines[0].ends_with("no verdict"), "{lines:#?}");
    let shown = project.run(&["show"]).exits(0);
    assert!(shown.stdout.contains("its process ended without recording it"), "{}", shown.stdout);
    assert!(shown.stdout.contains("interrupted  verify-1"), "{}", shown.stdout);
    let document: serde_json::Value = serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(document["exit_code"], 1);
    assert_eq!(document["record"]["abandoned"], true);
    assert_eq!(document["record"]["verdict"]["scenario"], "default");
    assert_eq!(document["record"]["verdict_digest"], serde_json::Value::Null);
    assert_eq!(listed(&project).len(), 1, "it is recorded once");

    // What it left beside its logs goes, and those stay.
    let noted = || project.run(&["store", "check"]).exits(0).stderr;
    let left = noted();
    assert!(left.lines().count() == 1 && left.contains("/result-"), "{left}");
    let told = project.run(&["store", "gc", "--dry-run"]).exits(0).stdout;
    assert!(told.contains("/result-") && told.ends_with("0 runs and 1 left-over would go\n"), "{told}");
    assert_eq!(noted(), left, "a dry run removes nothing");
    assert!(project.run(&["store", "gc"]).exits(0).stdout.ends_with("0 runs and 1 left-over gone\n"));
    assert_eq!(noted(), "");
    assert_eq!(check(&project, 0), ["1 record and 0 logs are as they were recorded"]);

    fs::write(project.outside().join("end"), "").unwrap();
    project.run(&["verify"]).exits(0);
    // The next run records what the one before it left, without anybody looking.
    fs::remove_file(project.outside().join("end")).unwrap();
    fs::remove_file(project.outside().join("started")).unwrap();
    let mut child = held(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(project.outside().join("end"), "").unwrap();
    project.run(&["verify"]).exits(0);
    let words: Vec<String> =
        listed(&project).iter().map(|line| line.split_whitespace().nth(2).unwrap().to_owned()).collect();
    assert_eq!(words, ["passed", "interrupted", "passed", "interrupted"]);
}

#[test]
fn what_a_lock_file_claims_is_never_green() {
    let project = Project::with(HELD);
    let mut child = held(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    let lock = fs::read_dir(project.path(".probity")).unwrap().map(|entry| entry.unwrap().path());
    let lock = lock.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("lock-")).unwrap();
    let text = fs::read_to_string(&lock).unwrap();
    for (from, to) in [
        ("\"outcome\":\"interrupted\"", "\"outcome\":\"passed\""),
        ("\"abandoned\":true,", ""),
        ("\"verdict_digest\":null", &*format!("\"verdict_digest\":\"blake3:{}\"", "0".repeat(64))),
        ("}", "]"),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&lock, text.replace(from, to)).unwrap();
        assert_eq!(project.run(&["log"]).exits(0).stdout, "", "{to}");
    }
    // A half of it is nothing either, wherever it ends.
    for length in [1, 20, text.find('\n').unwrap() + 1, text.len() - 20] {
        fs::write(&lock, &text[..length]).unwrap();
        assert_eq!(project.run(&["log"]).exits(0).stdout, "", "{length}");
    }
    fs::write(&lock, text).unwrap();
    assert_eq!(listed(&project).len(), 1);
}

#[test]
fn where_locks_do_not_work_it_is_said_once_and_the_run_goes_on() {
    let project = Project::with(GREEN);
    for _ in 0..2 {
        let mut command = Command::new(example("without"));
        command.arg("locks");
        let ran = project.ran(project.through(command, &["verify"])).exits(0);
        assert_eq!(ran.stderr.matches("locks do not work").count(), 1, "{}", ran.stderr);
    }
    assert_eq!(listed(&project).len(), 2);
}

#[test]
fn a_held_database_is_waited_for_and_then_named() {
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    let database = rusqlite::Connection::open(project.path(".probity/state.db")).unwrap();
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ran = project.run(&["verify"]).exits(1);
    assert!(ran.stderr.starts_with("waiting for another program that holds the records\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("another program has held [DIR]/project/.probity/state.db"), "{}", ran.stderr);
    tells_of_no_lock(&ran);
    database.execute_batch("ROLLBACK").unwrap();
    project.run(&["verify"]).exits(0);
    // The one that could not be recorded is known of since it said that it was there.
    let lines = listed(&project);
    assert!(lines.len() == 3 && lines[1].contains("  interrupted "), "{lines:#?}");
}

#[test]
fn a_newer_database_is_read_and_never_written_to() {
    let project = Project::with("[verify]\ncommands = [[\"touch\", \"../ran\"]]\n");
    project.run(&["verify"]).exits(0);
    fs::remove_file(project.outside().join("ran")).unwrap();
    sql(&project, "PRAGMA user_version = 99; ALTER TABLE run ADD COLUMN more TEXT; CREATE TABLE extra (a)");
    let before = fs::read(project.path(".probity/state.db")).unwrap();
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown(), @"
    --- stderr
    error: [DIR]/project/.probity/state.db was written by a newer Probity (schema 99, this one knows 3)
    help: update Probity; nothing in it was touched
    ");
    assert!(!project.outside().join("ran").exists(), "nothing ran that could not be recorded");
    let log = project.run(&["log"]).exits(0);
    assert_eq!(log.stdout.lines().count(), 1);
    assert!(log.stderr.contains("a newer Probity wrote these records"), "{}", log.stderr);
    project.run(&["show"]).exits(0);
    project.run(&["store", "gc"]).exits(2);
    sql(&project, "ALTER TABLE run RENAME COLUMN outcome TO ended");
    let log = project.run(&["log"]).exits(2);
    assert!(log.stderr.contains("was written by a newer Probity"), "{}", log.stderr);
    sql(&project, "ALTER TABLE run RENAME COLUMN ended TO outcome");
    drop(before);
}

#[test]
fn a_database_that_is_damaged_or_not_ours_is_set_aside_whole() {
    let garbage = "this is no database, and it is long enough to be looked at as one".repeat(80);
    let ours = |project: &Project, statement: &str| {
        project.run(&["verify"]).exits(0);
        sql(project, statement);
    };
    type Prepare<'a> = &'a dyn Fn(&Project);
    let prepared: [(&str, Prepare<'_>); 8] = [
        ("garbage", &|project| {
            project.run(&["verify"]).exits(0);
            fs::write(project.path(".probity/state.db"), &garbage).unwrap();
        }),
        ("a trigger", &|project| {
            ours(project, "CREATE TRIGGER t AFTER INSERT ON run BEGIN UPDATE run SET outcome = 'passed'; END");
        }),
        ("a view", &|project| ours(project, "CREATE VIEW v AS SELECT * FROM run")),
        ("a table", &|project| ours(project, "CREATE TABLE more (a)")),
        ("an index", &|project| ours(project, "CREATE INDEX i ON run (outcome)")),
        ("a column", &|project| ours(project, "ALTER TABLE run ADD COLUMN extra TEXT")),
        ("a version below zero", &|project| ours(project, "PRAGMA user_version = -1")),
        ("of another program", &|project| {
            fs::create_dir(project.path(".probity")).unwrap();
            sql(project, "CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('x')");
        }),
    ];
    for (name, prepare) in prepared {
        let project = Project::with("[verify]\ncommands = [[\"echo\", \"one\"]]\n");
        prepare(&project);
        let before = fs::read(project.path(".probity/state.db")).unwrap();
        let logs = || fs::read_dir(project.path(".probity/logs")).map(Iterator::count).unwrap_or_default();
        let had = logs();
        // Who only looks does not touch it, and says what is wrong.
        project.run(&["log"]).exits(1);
        let faults = check(&project, 1);
        assert!(faults.len() == 1 && faults[0].contains("state.db is "), "{name}: {faults:#?}");
        assert_eq!(fs::read(project.path(".probity/state.db")).unwrap(), before, "{name}");

        let ran = project.run(&["verify"]).exits(0);
        assert!(ran.stderr.contains("they are set aside as [DIR]/project/.probity/state.db.aside-1"), "{}", ran.stderr);
        assert_eq!(fs::read(project.path(".probity/state.db.aside-1")).unwrap(), before, "{name}");
        assert_eq!(listed(&project).len(), 1, "{name}");
        assert_eq!(check(&project, 0), ["1 record and 1 log are as they were recorded"], "{name}");
        // Logs that it may speak of stay as long as it does.
        assert!(project.run(&["store", "gc"]).exits(0).stderr.contains("state.db.aside-1"), "{name}");
        assert_eq!(logs(), had + 1);
        fs::remove_file(project.path(".probity/state.db.aside-1")).unwrap();
        let gone = project.run(&["store", "gc"]).exits(0).stdout;
        assert!(gone.ends_with(if had == 1 { "1 left-over gone\n" } else { "0 left-overs gone\n" }), "{name}: {gone}");
        // Twice is no harm, and nothing is written over.
        sql(&project, "CREATE TABLE more (a)");
        fs::write(project.path(".probity/state.db.aside-1-wal"), "kept").unwrap();
        project.run(&["verify"]).exits(0);
        assert!(project.path(".probity/state.db.aside-2").is_file(), "{name}");
        assert_eq!(fs::read(project.path(".probity/state.db.aside-1-wal")).unwrap(), b"kept");
    }
}

#[test]
fn an_older_database_is_brought_up_to_date() {
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    sql(&project, "DROP TABLE kept; DROP TABLE evidence; PRAGMA user_version = 1");
    assert_eq!(listed(&project).len(), 1);
    project.run(&["verify"]).exits(0);
    assert_eq!(check(&project, 0), ["2 records and 2 logs are as they were recorded"]);
}

#[test]
fn a_link_in_the_place_of_what_is_kept_is_refused_before_anything_runs() {
    for name in [".probity", ".probity/logs", ".probity/state.db", ".probity/state.db-wal"] {
        for dangling in [false, true] {
            let project = Project::with("[verify]\ncommands = [[\"touch\", \"../ran\"]]\n");
            let elsewhere = project.outside().join("elsewhere");
            if !dangling && (name.ends_with("db") || name.ends_with("wal")) {
                fs::write(&elsewhere, "").unwrap();
            } else if !dangling {
                fs::create_dir(&elsewhere).unwrap();
            }
            if name != ".probity" {
                fs::create_dir(project.path(".probity")).unwrap();
            }
            symlink(&elsewhere, project.path(name)).unwrap();
            let ran = project.run(&["verify"]).exits(2);
            assert!(ran.stderr.contains("of its own, so nothing is kept there\nhelp: "), "{name}: {}", ran.stderr);
            assert!(!project.outside().join("ran").exists(), "{name}");
            let written = match fs::metadata(&elsewhere) {
                Ok(found) if found.is_dir() => fs::read_dir(&elsewhere).unwrap().count() as u64,
                Ok(found) => found.len(),
                Err(_) => 0,
            };
            assert_eq!(written, 0, "{name} {dangling}");
            assert_eq!(elsewhere.exists(), !dangling);
        }
    }
    // A lock that is a link leads to nothing that is locked or written to.
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    let lock = fs::read_dir(project.path(".probity")).unwrap().map(|entry| entry.unwrap().path());
    let lock = lock.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("lock-")).unwrap();
    fs::rename(&lock, project.outside().join("lock")).unwrap();
    symlink(project.outside().join("lock"), &lock).unwrap();
    project.run(&["verify"]).exits(2);
    fs::remove_file(&lock).unwrap();
    let made = Command::new("mkfifo").arg(&lock).status().unwrap();
    assert!(made.success());
    project.run(&["verify"]).exits(2);
}

#[test]
fn a_log_folder_that_becomes_a_link_is_never_written_through() {
    for (name, what) in [
        ("of the run", "set -- .probity/logs/*; mv $1 ../moved && ln -s \"$PWD/../elsewhere\" $1"),
        ("of all runs", "mv .probity/logs ../moved && ln -s \"$PWD/../elsewhere\" .probity/logs"),
        ("of the state", "mv .probity ../moved && ln -s \"$PWD/../elsewhere\" .probity"),
    ] {
        let config = "[checks.first]\ncommand = [\"sh\", \"-c\", '''WHAT''']\n\n[checks.second]\ncommand = [\"echo\", \"two\"]\n";
        let project = Project::with(&config.replace("WHAT", what));
        let elsewhere = project.outside().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let ran = project.run(&["verify"]).exits(1);
        assert!(ran.stdout.contains("error        second"), "{name}: {}", ran.stdout);
        assert!(
            ran.stdout.contains("cannot make its log file: the folder of its logs is no longer there"),
            "{name}: {}",
            ran.stdout
        );
        assert!(ran.stderr.contains("the verdict could not be recorded"), "{name}: {}", ran.stderr);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_working_directory_that_is_deleted_under_the_run_makes_it_stale() {
    let config = "[verify]\ncommands = [[\"sh\", \"-c\", \"rm -rf \\\"$PWD\\\"\"]]\n";
    // Where the records were in it, there is nothing to record in.
    let ran = Project::with(config).run(&["verify"]).exits(1);
    assert!(ran.stdout.contains("\nerror: 1 passed in "), "{}", ran.stdout);
    assert!(ran.stderr.contains("the verdict could not be recorded"), "{}", ran.stderr);

    // Where they are elsewhere, what became of it is seen there.
    let project = Project::with(config);
    project.committed();
    project.git(&["worktree", "add", "-q", "../other"]);
    let mut command = project.command(&["verify"]);
    command.current_dir(project.outside().join("other"));
    let ran = project.ran(command).exits(1);
    assert!(ran.stdout.contains("\nstale: 1 passed in "), "{}", ran.stdout);
    let lines = listed(&project);
    assert!(lines.len() == 1 && lines[0].contains("  stale "), "{lines:#?}");
    let document: serde_json::Value = serde_json::from_str(&project.run(&["show", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(document["record"]["moved"], serde_json::json!(["."]));
    check(&project, 0);

    // Who is in a folder that was deleted is told so.
    let script = "rm -rf \"$PWD\"; exec \"$0\" verify";
    let mut command = project.command(&[]);
    let program = command.get_program().to_owned();
    command = Command::new("sh");
    command.args(["-c".as_ref(), script.as_ref(), program.as_os_str()]).current_dir(project.root());
    let ran = project.ran(command).exits(2);
    assert!(ran.stderr.contains("the current folder cannot be used"), "{}", ran.stderr);
}

#[test]
fn a_home_that_may_not_be_written_to_is_no_reason_not_to_record() {
    let project = Project::with(GREEN);
    fs::set_permissions(project.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let home = project.outside().join("home");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).unwrap();
    for _ in 0..2 {
        let mut command = project.as_nobody(&["verify"]);
        command.env("HOME", &home);
        project.ran(command).exits(0);
    }
    for arguments in [["log", "-n2"], ["store", "check"], ["store", "gc"]] {
        let mut command = project.as_nobody(&arguments);
        command.env("HOME", &home);
        project.ran(command).exits(0);
    }
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn records_that_may_only_be_read_can_be_looked_at() {
    let project = Project::with("[verify]\ncommands = [[\"echo\", \"one\"]]\n");
    project.run(&["verify"]).exits(0);
    let state = project.path(".probity");
    // As somebody else keeps it open, the newest record is beside the file.
    for held in [false, true] {
        let open = held.then(|| rusqlite::Connection::open(state.join("state.db")).unwrap());
        if let Some(open) = &open {
            open.query_row("SELECT count(*) FROM run", [], |_| Ok(())).unwrap();
            project.run(&["verify"]).exits(0);
        }
        let modes = |folder: u32, file: u32| {
            let all = Command::new("find").arg(&state).args(["-print0"]).output().unwrap().stdout;
            for path in String::from_utf8(all).unwrap().split_terminator('\0') {
                let mode = if fs::metadata(path).unwrap().is_dir() { folder } else { file };
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        modes(0o555, 0o444);
        let log = project.ran(project.as_nobody(&["log"])).exits(0);
        assert_eq!(log.stdout.lines().count(), 1 + usize::from(held));
        assert_eq!(project.ran(project.as_nobody(&["show", "--log"])).exits(0).stdout, "==> verify-1 <==\none\n\n");
        project.ran(project.as_nobody(&["store", "check"])).exits(0);
        project.ran(project.as_nobody(&["store", "gc", "--dry-run"])).exits(0);
        modes(0o755, 0o644);
        assert_eq!(listed(&project).len(), 1 + usize::from(held));
    }
}

/// Adds copies of the newest run, each with a folder of logs.
fn more(project: &Project, count: usize, started: &str) {
    for number in 0..count {
        let id = format!("{number:04}{}", &started[..4].repeat(2));
        sql(
            project,
            &format!(
                "INSERT INTO run SELECT NULL, '{id}', '{started}', scenario, outcome, verdict_digest, record_digest, record
                     FROM run ORDER BY seq DESC LIMIT 1;
                 INSERT INTO kept SELECT last_insert_rowid(), '{started}', scenario, verdict, scoped, log_bytes
                     FROM kept ORDER BY seq DESC LIMIT 1;"
            ),
        );
        project.write(&format!(".probity/logs/{id}/verify.log"), "");
    }
}

#[test]
fn what_is_kept_of_runs_has_an_end() {
    let project = Project::with(
        "[checks.a]\ncommand = [\"true\"]\n\n[checks.b]\ncommand = [\"true\"]\n\n[scenarios.other]\nchecks = [\"a\"]\n",
    );
    project.run(&["verify", "other"]).exits(0);
    project.run(&["verify"]).exits(0);
    more(&project, 99, "2026-01-01T00:00:00.000Z");
    let folders = || fs::read_dir(project.path(".probity/logs")).unwrap().count();
    assert_eq!((listed(&project).len(), folders()), (101, 101));
    let told = project.run(&["store", "gc", "--dry-run"]).exits(0).stdout;
    assert!(
        told.contains(": more than 100 runs are kept\n") && told.ends_with("1 run and 0 left-overs would go\n"),
        "{told}"
    );
    assert_eq!(listed(&project).len(), 101);
    project.run(&["verify", "--only", "a"]).exits(3);
    let lines = listed(&project);
    assert_eq!((lines.len(), folders()), (100, 100));
    assert!(lines[99].contains(" other "), "the last full run of a scenario stays: {}", lines[99]);
    assert!(lines[0].contains("  scoped"), "{}", lines[0]);

    // The clock jumps, and back: nothing goes but what the number of runs says.
    sql(&project, "UPDATE kept SET started = '2099-01-01T00:00:00.000Z' WHERE seq = (SELECT max(seq) FROM kept)");
    let told = project.run(&["store", "gc"]).exits(0).stdout;
    assert_eq!(told, "0 runs and 0 left-overs gone\n");
    // Where ten runs say so, it is so.
    sql(&project, "UPDATE kept SET started = '2099-01-01T00:00:00.000Z' WHERE seq > (SELECT max(seq) - 10 FROM kept)");
    let told = project.run(&["store", "gc"]).exits(0).stdout;
    assert!(told.contains(": more than 30 days older than the 10 newest runs\n"), "{told}");
    let lines = listed(&project);
    assert!((11..=13).contains(&lines.len()), "{lines:#?}");
    assert_eq!(folders(), lines.len());
}

#[test]
fn what_a_prepared_database_calls_a_run_leads_to_nothing_that_is_removed() {
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    let (folder, file) = (project.outside().join("precious"), project.outside().join("file"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "").unwrap();
    for (seq, name) in [(-2, "../../../precious"), (-1, file.to_str().unwrap())] {
        sql(
            &project,
            &format!(
                "INSERT INTO run SELECT {seq}, '{name}', started, scenario, outcome, verdict_digest, record_digest, record
                     FROM run WHERE seq = 1;
                 INSERT INTO kept SELECT {seq}, started, scenario, verdict, 1, {} FROM kept WHERE seq = 1;",
                5u64 << 30
            ),
        );
    }
    project.run(&["verify"]).exits(0);
    assert_eq!(listed(&project).len(), 2, "they went");
    assert!(folder.is_dir() && file.is_file());
}

#[test]
fn a_run_that_is_recorded_stays_whatever_is_said_of_others() {
    let project = Project::with(GREEN);
    project.run(&["verify"]).exits(0);
    for by in ["1", "100"] {
        sql(&project, &format!("UPDATE kept SET seq = seq + {by}, log_bytes = {}", i64::MAX));
        project.run(&["verify"]).exits(0);
    }
    assert_eq!(listed(&project).len(), 3);
}

#[test]
fn what_is_not_as_it_was_recorded_is_told_line_by_line() {
    let echo = "[checks.a]\ncommand = [\"echo\", \"one\"]\n";
    type Change<'a> = &'a dyn Fn(&Project, &str);
    let changes: [(&str, Change<'_>); 10] = [
        ("run RUN: logs/RUN/a.log: it was changed after the run", &|project, run| {
            project.write(&format!(".probity/logs/{run}/a.log"), "two\n");
        }),
        ("run RUN: logs/RUN/a.log: No such file", &|project, run| {
            fs::remove_file(project.path(&format!(".probity/logs/{run}/a.log"))).unwrap();
        }),
        ("run RUN: logs/RUN/verify.log: No such file", &|project, run| {
            fs::remove_file(project.path(&format!(".probity/logs/{run}/verify.log"))).unwrap();
        }),
        ("run RUN: logs/RUN/a.log: ", &|project, run| {
            let log = project.path(&format!(".probity/logs/{run}/a.log"));
            fs::rename(&log, project.outside().join("a.log")).unwrap();
            symlink(project.outside().join("a.log"), log).unwrap();
        }),
        ("run RUN: lists show another start", &|project, _| sql(project, "UPDATE run SET outcome = 'failed'")),
        ("the record of run RUN was changed", &|project, _| {
            sql(
                project,
                "UPDATE run SET record = CAST(replace(CAST(record AS TEXT), '\"passed\"', '\"failed\"') AS BLOB)",
            );
        }),
        ("the record of run RUN cannot be read", &|project, _| sql(project, "UPDATE run SET record = x'7b'")),
        ("logs/ffffffffffff: no run is recorded", &|project, _| {
            project.write(".probity/logs/ffffffffffff/a.log", "left");
        }),
        ("logs/stray: this is no folder of logs", &|project, _| {
            project.write(".probity/logs/stray", "left");
        }),
        ("logs/RUN/result-abcdef: a run left this", &|project, run| {
            project.write(&format!(".probity/logs/{run}/result-abcdef/result.json"), "{}");
        }),
    ];
    for (number, (line, change)) in changes.into_iter().enumerate() {
        let project = Project::with(echo);
        project.run(&["verify"]).exits(0);
        let run = listed(&project)[0].split(' ').next().unwrap().to_owned();
        assert_eq!(check(&project, 0), ["1 record and 1 log are as they were recorded"]);
        change(&project, &run);
        // What was left over is told and is no fault.
        let fault = number < 7;
        let ran = project.run(&["store", "check"]).exits(i32::from(fault));
        let told = ran.stdout.lines().chain(ran.stderr.lines().filter_map(|line| line.strip_prefix("note: ")));
        let told: Vec<&str> = told.filter(|line| !line.ends_with("as they were recorded")).collect();
        assert!(told.len() == 1 && told[0].starts_with(&line.replace("RUN", &run)), "{line}: {told:#?}");
        // What was left over goes. What was changed stays, and stays a fault.
        project.run(&["store", "gc"]).exits(0);
        check(&project, i32::from(fault));
        assert_eq!(fs::read_dir(project.path(".probity/logs")).unwrap().count(), 1);
    }
    let project = Project::with(echo);
    project.run(&["verify"]).exits(0);
    sql(&project, "UPDATE run SET id = 'aaaaaaaaaaaa'");
    let faults = check(&project, 1);
    assert!(faults.iter().any(|line| line.starts_with("run aaaaaaaaaaaa: its record is that of run ")), "{faults:#?}");
    let project = Project::with(echo);
    let nothing = project.run(&["store", "check"]).exits(0);
    assert!(
        nothing.stdout.is_empty() && nothing.stderr.contains("no runs are recorded here yet"),
        "{}",
        nothing.stderr
    );
    assert!(!project.path(".probity").exists());
}

/// Kills a run at each call by which it writes, one after the other, each time from what `prepare` makes, and shows that
/// nothing is believed that was not earned and that all is in order again after the next run and `store gc`.
fn killed_at_every_write(prepare: &dyn Fn(&Project), then: &dyn Fn(&Project), whole: bool) {
    let mut number = 0;
    loop {
        number += 1;
        let project = Project::in_memory();
        // What is verified here fails, so that no green is ever earned.
        project
            .write("probity.toml", "[checks.a]\ncommand = [\"echo\", \"one\"]\n\n[checks.b]\ncommand = [\"false\"]\n");
        prepare(&project);
        let mut command = Command::new(example("killer"));
        command.arg(number.to_string());
        let ran = project.ran(project.through(command, &["verify"]));
        if ran.code == Some(1) {
            break;
        }
        assert_eq!(ran.code, Some(99), "{number}: {}{}", ran.stdout, ran.stderr);
        let log = project.run(&["log", "-n", "1000"]);
        assert!(!log.stdout.contains("  passed ") && !log.stderr.contains("locked"), "{number}: {}", log.stdout);
        // Whoever was told what became of it finds it.
        if let Some(line) = ran.stdout.lines().find(|line| line.starts_with("failed: ")) {
            let run = line.split("run ").nth(1).unwrap().split(',').next().unwrap();
            assert!(
                log.stdout.lines().any(|line| line.starts_with(run) && line.contains("  failed ")),
                "{number}: {}",
                log.stdout
            );
        }
        if whole {
            // Nothing of what was there before is lost or changed.
            let faults = project.run(&["store", "check"]).stdout;
            assert!(
                !faults.contains("changed") && !faults.contains("cannot be read") && !faults.contains("state.db"),
                "{number}: {faults}"
            );
        }
        let clean = || {
            let checked = project.run(&["store", "check"]);
            assert_eq!(checked.code, Some(0), "{number}: {}{}", checked.stdout, checked.stderr);
            checked.stderr
        };
        if whole {
            clean();
        }
        project.run(&["verify"]).exits(1);
        clean();
        project.run(&["store", "gc"]).exits(0);
        assert!(!clean().contains("probity store gc"), "{number}");
        then(&project);
        let lines = listed(&project);
        assert!(
            lines[0].contains("  failed ") && lines.iter().all(|line| !line.contains("  passed ")),
            "{number}: {lines:#?}"
        );
    }
    // Far fewer would mean that something else ends them.
    assert!(number > 30, "only {number} calls were seen");
}

#[test]
fn a_first_run_that_is_killed_at_any_write_leaves_no_half_record() {
    killed_at_every_write(&|_| {}, &|_| {}, true);
}

#[test]
fn a_later_run_that_is_killed_at_any_write_leaves_no_half_record() {
    killed_at_every_write(&|project| drop(project.run(&["verify"]).exits(1)), &|_| {}, true);
}

#[test]
fn a_run_that_is_killed_while_older_ones_go_takes_no_other_with_it() {
    let full = Project::in_memory();
    full.write("probity.toml", "[verify]\ncommands = [[\"false\"]]\n");
    for _ in 0..100 {
        full.run(&["verify"]).exits(1);
    }
    killed_at_every_write(
        &|project| {
            let copied = Command::new("cp").arg("-a").args([full.path(".probity"), project.root()]).status().unwrap();
            assert!(copied.success());
        },
        &|_| {},
        true,
    );
}

#[test]
fn a_run_that_is_killed_while_it_sets_a_database_aside_loses_nothing_of_it() {
    let garbage = "this is no database, and it is long enough to be looked at as one".repeat(80);
    killed_at_every_write(
        &|project| {
            project.write(".probity/state.db", &garbage).write(".probity/state.db-wal", "beside it");
        },
        &|project| {
            // All of it is under one of the numbers, or under two where it was killed between its files.
            let aside = |end: &str| {
                let path = |number| project.path(&format!(".probity/state.db.aside-{number}{end}"));
                fs::read(path(1)).or_else(|_| fs::read(path(2))).unwrap_or_default()
            };
            assert!(aside("") == garbage.as_bytes() && aside("-wal") == b"beside it");
        },
        false,
    );
}
