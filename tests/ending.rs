//! How commands end, with all that they started, whatever ends them: by themselves, at a limit, by a signal to Probity, and
//! when one of the processes that watch over them is killed.
//!
//! What commands tell of themselves lies beside the project, where it changes nothing that is verified.

use crate::support::guests::Guest;
use crate::support::{Project, alive, around, eventually, row, signal};
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Output, Stdio};

/// Ways of leaving a process behind whose id is in `../left` as soon as it is what it is to be.
const LEAVE: [(&str, &str); 5] = [
    ("in its group", "sh ../straggler &"),
    ("in a session", "setsid sh ../straggler &"),
    ("a daemon", "(setsid sh -c '(sh ../straggler < /dev/null > /dev/null 2>&1 &)' &)"),
    ("one that ignores what asks it to end", "sh -c 'trap \"\" TERM HUP INT; sh ../straggler' &"),
    (
        "a stopped one",
        "setsid sh -c 'sh ../straggler & while [ ! -e ../left ]; do sleep 0.01; done; kill -STOP $(cat ../left)' &",
    ),
];

/// A project with a command that runs this, and that may wait for what it left to be there.
fn project(script: &str) -> Project {
    let project = Project::with("[checks.c]\ncommand = [\"sh\", \"./run\"]\n");
    project.write("run", format!("wait_for_left() {{ while [ ! -e ../left ]; do sleep 0.01; done; }}\n{script}\n"));
    // A program of its own from the beginning, so that its name is certain.
    fs::copy(fs::canonicalize("/bin/sleep").unwrap(), project.outside().join("straggler-it-is")).unwrap();
    let straggler = "../straggler-it-is 600 & echo $! $$ > ../left.new; mv ../left.new ../left; wait; wait";
    fs::write(project.outside().join("straggler"), straggler).unwrap();
    project
}

/// Words of a file beside the project; none where it is not there.
fn beside(project: &Project, name: &str) -> Vec<String> {
    let text = fs::read_to_string(project.outside().join(name)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn start(project: &Project, arguments: &[&str]) -> Child {
    let mut command = project.command(&[&["verify", "--json"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn document(output: &Output) -> Value {
    let document = serde_json::from_slice(&output.stdout);
    document.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The parent of a process, and its state.
fn parent(pid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    let state = fields.next()?;
    Some((fields.next()?, state))
}

/// All processes below one.
fn below(pid: &str) -> Vec<String> {
    let ids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let parents: Vec<(String, String)> = ids.filter_map(|id| Some((parent(&id)?.0, id))).collect();
    let mut found = vec![pid.to_owned()];
    let mut next = 0;
    while let Some(one) = found.get(next).cloned() {
        found.extend(parents.iter().filter(|(parent, _)| *parent == one).map(|(_, id)| id.clone()));
        next += 1;
    }
    found.split_off(1)
}

/// What a run that was killed leaves: that it was interrupted, and a store that the next run can use.
fn assert_no_verdict(project: &Project) {
    let ran = project.run(&["log", "--json"]);
    let runs = serde_json::from_str::<Value>(&ran.stdout).unwrap_or_default();
    let runs = runs.get("runs").cloned().unwrap_or(runs);
    for run in runs.as_array().into_iter().flatten() {
        assert_eq!((&run["outcome"], &run["verdict_digest"]), (&json!("interrupted"), &Value::Null), "{}", ran.stdout);
    }
    project.write("run", "exit 0").write("probity.toml", "[checks.c]\ncommand = [\"sh\", \"./run\"]\n");
    project.run(&["verify"]).exits(0);
}

#[test]
fn what_a_command_leaves_behind_is_ended_and_named_however_it_left() {
    for (how, leave) in LEAVE {
        let project = project(&format!("{leave}\nwait_for_left"));
        let (code, document) = project.verify();
        assert_eq!((code, &row(&document, "c")["outcome"]), (0, &json!("passed")), "{how}: {document:#}");
        let left = beside(&project, "left");
        assert!(!left.is_empty() && left.iter().all(|pid| !alive(pid)), "{how}: {left:?}");
        let reaped = around(&document, "c")["reaped"]["programs"].as_array().unwrap().clone();
        assert!(reaped.contains(&json!(["straggler-it-is", 1])), "{how}: {reaped:?}");
        let ran = project.run(&["show"]).exits(0);
        assert!(ran.stdout.contains("    ended with it: ") && ran.stdout.contains("straggler-it-is"), "{}", ran.stdout);
    }
}

#[test]
fn what_ends_by_itself_is_not_named_and_nothing_is_said_of_nothing() {
    let project = project("sh -c 'exit 0' & (setsid true &)\ntrue");
    let (code, document) = project.verify();
    assert_eq!((code, around(&document, "c").get("reaped")), (0, None));
    assert!(!project.run(&["show"]).exits(0).stdout.contains("ended with it"));
}

#[test]
fn the_verdict_does_not_know_what_was_left_behind() {
    let project = project("if [ -e ../leave ]; then setsid sh ../straggler & wait_for_left; fi");
    let (_, clean) = project.verify();
    fs::write(project.outside().join("leave"), "").unwrap();
    let (_, dirty) = project.verify();
    assert!(around(&dirty, "c")["reaped"].is_object());
    assert_eq!(clean["record"]["verdict_digest"], dirty["record"]["verdict_digest"]);
}

#[test]
fn nothing_of_probity_outlives_it() {
    let project = project("cat /proc/$PPID/stat > ../keeper");
    project.run(&["verify"]).exits(0);
    let words = beside(&project, "keeper");
    // The keeper and, as its parent, the supervisor: also not as dead ones that nobody took leave of.
    for pid in [&words[0], &words[3]] {
        assert!(!std::path::Path::new("/proc").join(pid).exists(), "{pid}");
    }
}

#[test]
fn names_of_programs_are_shown_without_harm() {
    let project = project("'../\x1b[31mred\u{202e}' 600 &\nwhile ! grep -q red /proc/$!/comm; do sleep 0.01; done");
    fs::copy(fs::canonicalize("/bin/sleep").unwrap(), project.outside().join("\x1b[31mred\u{202e}")).unwrap();
    let ran = project.run(&["verify"]).exits(0);
    assert!(ran.stdout.contains("    ended with it: \\u{1b}[31mred\\u{202e}\n"), "{:?}", ran.stdout);
}

#[test]
fn commands_side_by_side_are_swept_apart() {
    let project = project("");
    let check = |id: &str| format!("[checks.{id}]\ncommand = [\"sh\", \"./{id}\"]\nparallel = true\n");
    let ids = ["leaves", "stays"];
    let checks: String = ids.iter().map(|id| check(id)).collect();
    project.write("probity.toml", format!("[verify]\njobs = 2\n{checks}"));
    project.write("leaves", "until [ -e ../mine ]; do sleep 0.01; done\nsetsid sh ../straggler &\nuntil [ -e ../left ]; do sleep 0.01; done");
    // It has a daemon of its own that goes on when the other's has been swept.
    project.write(
        "stays",
        "setsid sh -c 'echo $$ > ../mine.new; mv ../mine.new ../mine; exec sleep 600' &\n\
         until [ -e ../left ]; do sleep 0.01; done\n\
         for pid in $(cat ../left); do while kill -0 $pid 2> ../noise; do sleep 0.01; done; done\n\
         kill -0 $(cat ../mine)",
    );
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    assert!(!alive(&beside(&project, "mine")[0]));
    assert_eq!(around(&document, "stays")["reaped"]["programs"], json!([["sleep", 1]]));
}

#[test]
fn a_timeout_ends_what_left_its_session_too() {
    let project = project(
        "setsid sh ../straggler &\nwait_for_left\ntrap 'echo asked; exit 7' TERM\nwhile :; do sleep 0.01; done",
    );
    let config = fs::read_to_string(project.path("probity.toml")).unwrap();
    project.write("probity.toml", config + "timeout = \"2s\"\n");
    let (code, document) = project.verify();
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &json!("timed_out")));
    assert_eq!(row(&document, "c")["outcome"], "timed_out");
    assert_eq!(around(&document, "c")["exit"], json!({"code": 7}), "it was asked, and had time to answer");
    assert!(beside(&project, "left").iter().all(|pid| !alive(pid)));
    let reaped = around(&document, "c")["reaped"]["programs"].as_array().unwrap();
    assert!(reaped.contains(&json!(["straggler-it-is", 1])), "{reaped:?}");
    let log = project.run(&["show", "--log", "--check", "c"]).exits(0).stdout;
    assert_eq!(log.matches("asked\n").count(), 1, "{log}");
}

#[test]
fn one_signal_asks_for_an_end_in_order_and_two_do_not_wait_for_it() {
    for first in ["INT", "TERM", "HUP"] {
        let in_order = project(
            "setsid sh ../straggler &\nwait_for_left\ntrap 'exit 7' TERM\n: > ../ready\nwhile :; do sleep 0.01; done",
        );
        let child = start(&in_order, &[]);
        eventually("the start of the command", || in_order.outside().join("ready").exists());
        signal(first, &child.id().to_string());
        let output = child.wait_with_output().unwrap();
        let record = document(&output);
        assert_eq!((output.status.code(), &record["recorded"]), (Some(1), &json!(true)));
        assert_eq!(record["record"]["verdict"]["outcome"], "interrupted");
        assert_eq!(record["record"]["verdict_digest"], Value::Null);
        assert_eq!(row(&record, "c")["outcome"], "interrupted");
        assert_eq!(around(&record, "c")["exit"], json!({"code": 7}));
        assert!(beside(&in_order, "left").iter().all(|pid| !alive(pid)));
    }
    let at_once = project("trap ': > ../asked' TERM\n: > ../ready\nwhile :; do sleep 0.01; done");
    let child = start(&at_once, &[]);
    eventually("the start of the command", || at_once.outside().join("ready").exists());
    signal("INT", &child.id().to_string());
    eventually("the first signal", || at_once.outside().join("asked").exists());
    signal("INT", &child.id().to_string());
    let output = child.wait_with_output().unwrap();
    let record = document(&output);
    assert_eq!((output.status.code(), &record["recorded"]), (Some(1), &json!(true)));
    assert_eq!(record["record"]["verdict"]["outcome"], "interrupted");
    assert_eq!(around(&record, "c")["exit"], json!({"signal": 9}));
}

/// Starts a command with a daemon, both of which ignore what asks them to end. Gives the ids of Probity, supervisor, keeper
/// and of everything below these.
fn hanging() -> (Project, Child, [String; 3], Vec<String>) {
    let project = project(
        "trap '' TERM INT HUP\n(setsid sh -c '(sh ../straggler &)' &)\nwait_for_left\necho $PPID > ../keeper.new\nmv ../keeper.new ../keeper\nwhile :; do sleep 0.01; done",
    );
    let child = start(&project, &[]);
    eventually("the start of the command", || project.outside().join("keeper").exists());
    let keeper = beside(&project, "keeper")[0].clone();
    let supervisor = parent(&keeper).unwrap().0;
    let host = child.id().to_string();
    assert_eq!(parent(&supervisor).unwrap().0, host);
    let mut all = below(&host);
    all.extend(beside(&project, "left"));
    assert!(all.contains(&keeper) && all.len() > 4, "{all:?}");
    (project, child, [host, supervisor, keeper], all)
}

#[test]
fn nothing_is_left_when_probity_is_killed_and_there_is_no_verdict() {
    let (project, mut child, [host, ..], all) = hanging();
    signal("KILL", &host);
    child.wait().unwrap();
    eventually("the end of everything", || all.iter().all(|pid| !alive(pid)));
    assert_no_verdict(&project);
}

#[test]
fn nothing_is_left_when_the_supervisor_or_a_keeper_is_killed_and_that_is_an_error() {
    for which in [1, 2] {
        let (project, child, ids, all) = hanging();
        signal("KILL", &ids[which]);
        let output = child.wait_with_output().unwrap();
        let record = document(&output);
        assert_eq!((output.status.code(), &record["recorded"]), (Some(1), &json!(true)));
        assert_eq!(record["record"]["verdict"]["outcome"], "error");
        assert_eq!(row(&record, "c")["outcome"], json!({"error": "host"}));
        let message = around(&record, "c")["message"].as_str().unwrap();
        assert_eq!(message, "what watches over it was killed; all that it started was killed too");
        eventually("the end of everything", || all.iter().all(|pid| !alive(pid)));
        project.write("run", "exit 0");
        project.run(&["verify"]).exits(0);
    }
}

#[test]
fn what_is_stopped_of_what_watches_over_commands_does_not_stay() {
    let project = project(
        "supervisor=$(cut -d ' ' -f 4 /proc/$PPID/stat)\necho $supervisor $PPID > ../watching\nkill -STOP $supervisor",
    );
    project.run(&["verify"]).exits(0);
    let watching = beside(&project, "watching");
    eventually("the end of the supervisor", || watching.iter().all(|pid| !alive(pid)));

    let (project, mut child, [host, _, keeper], all) = hanging();
    signal("STOP", &keeper);
    signal("KILL", &host);
    child.wait().unwrap();
    // Sooner than the supervisor loses its patience with a keeper.
    let before = std::time::Instant::now();
    eventually("the end of everything", || all.iter().all(|pid| !alive(pid)));
    assert!(before.elapsed() < std::time::Duration::from_secs(8), "{:?}", before.elapsed());
    assert_no_verdict(&project);
}

#[test]
fn a_command_that_kills_what_watches_over_it_has_not_passed() {
    let project = project("setsid sh ../straggler &\nwait_for_left\nkill -KILL $PPID\nexit 0");
    let (code, document) = project.verify();
    assert_eq!((code, &row(&document, "c")["outcome"]), (1, &json!({"error": "host"})));
    let left = beside(&project, "left");
    eventually("the end of what it left", || left.iter().all(|pid| !alive(pid)));
}

#[test]
fn checks_go_on_where_a_keeper_was_killed_and_do_not_where_the_supervisor_was() {
    for (victim, second) in
        [("$PPID", json!("passed")), ("$(cut -d ' ' -f 4 /proc/$PPID/stat)", json!({"error": "host"}))]
    {
        let project = Project::with(
            "[checks.a]\ncommand = [\"sh\", \"./run\"]\n[checks.b]\ncommand = [\"true\"]\n\
             [scenarios.default]\nchecks = [\"a\", \"b\"]\nfail-fast = false\n",
        );
        project.write("run", format!("kill -KILL {victim}\nsleep 600"));
        let (code, document) = project.verify();
        assert_eq!((code, &row(&document, "a")["outcome"]), (1, &json!({"error": "host"})));
        assert_eq!(row(&document, "b")["outcome"], second);
    }
}

#[test]
fn a_worker_that_is_killed_is_an_error_and_none_is_left_when_probity_is_killed() {
    let looping = || {
        let guest = Guest { on_run: "(loop $l (br $l))".into(), ..Guest::default() };
        let project = Project::new();
        project.component("p.wasm", &guest.text());
        project.write(
            "probity.toml",
            "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n\
             [checks.look]\nuse = \"p/look\"\nlimits = { fuel = 1000000000000, wall = \"10m\" }\n",
        );
        let child = start(&project, &[]);
        let host = child.id().to_string();
        let is_worker =
            |pid: &String| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0worker\0"));
        let spent = |pid: &String| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(11)?.parse().ok()).unwrap_or(0_u64)
        };
        let mut worker = None;
        // A worker in a loop takes time; one that starts or compiles does not take half a second.
        eventually("a worker that loops", || {
            worker = below(&host).into_iter().find(|pid| is_worker(pid) && spent(pid) >= 50);
            worker.is_some()
        });
        (project, child, host, worker.unwrap())
    };
    let (_project, child, _, worker) = looping();
    signal("KILL", &worker);
    let output = child.wait_with_output().unwrap();
    let record = document(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(row(&record, "look")["outcome"]["error"].is_string(), "{record:#}");
    let (project, mut child, host, worker) = looping();
    signal("KILL", &host);
    child.wait().unwrap();
    eventually("the end of the worker", || !alive(&worker));
    let ran = project.run(&["log"]);
    assert!(!ran.stdout.contains("passed"), "{}", ran.stdout);
}

#[test]
fn a_pause_is_one_of_all_that_runs_and_does_not_eat_a_timeout() {
    let project = project(
        "setsid sh ../straggler &\nwait_for_left\necho $$ > ../main.new; mv ../main.new ../main\nwhile [ ! -e ../go ]; do sleep 0.01; done",
    );
    let config = fs::read_to_string(project.path("probity.toml")).unwrap();
    project
        .write("probity.toml", config + "timeout = \"5s\"\n[scenarios.default]\nchecks = [\"c\"]\ntimeout = \"8s\"\n");
    let child = start(&project, &[]);
    eventually("the start of the command", || project.outside().join("main").exists());
    let host = child.id().to_string();
    signal("TSTP", &host);
    let ids = [vec![host.clone()], beside(&project, "main"), beside(&project, "left")].concat();
    eventually("the pause of everything", || ids.iter().all(|pid| parent(pid).is_some_and(|(_, state)| state == "T")));
    let paused = std::time::Instant::now();
    fs::write(project.outside().join("go"), "").unwrap();
    while paused.elapsed() < std::time::Duration::from_secs(9) {
        assert!(ids.iter().all(|pid| parent(pid).is_some_and(|(_, state)| state == "T")), "nothing goes on");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    signal("CONT", &host);
    let output = child.wait_with_output().unwrap();
    let record = document(&output);
    assert_eq!((output.status.code(), &row(&record, "c")["outcome"]), (Some(0), &json!("passed")), "{record:#}");
    assert!(beside(&project, "left").iter().all(|pid| !alive(pid)));
}

#[test]
fn nothing_is_left_when_probity_is_killed_while_it_is_paused() {
    let (_project, mut child, [host, ..], all) = hanging();
    signal("TSTP", &host);
    eventually("the pause", || parent(&host).is_some_and(|(_, state)| state == "T"));
    signal("KILL", &host);
    child.wait().unwrap();
    eventually("the end of everything", || all.iter().all(|pid| !alive(pid)));
}

/// Runs Probity at a terminal of its own, and gives what is to be seen there.
fn at_a_terminal(project: &Project, keys: Stdio) -> Child {
    let line = format!("exec {} verify", env!("CARGO_BIN_EXE_probity"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    let mut command = project.beside(command, &project.command(&["verify"]));
    command.stdin(keys).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_command_that_needs_a_terminal_fails_and_does_not_wait_for_one() {
    let project = Project::with(
        "[checks.asks]\ncommand = [\"sh\", \"-c\", \"read answer < /dev/tty\"]\n\
         [checks.reads]\ncommand = [\"sh\", \"-c\", \"read answer || test -z $answer\"]\n\
         [checks.steers]\ncommand = [\"sh\", \"-c\", \"stty sane < /dev/tty\"]\n\
         [scenarios.default]\nchecks = [\"asks\", \"reads\", \"steers\"]\nfail-fast = false\n",
    );
    let mut child = at_a_terminal(&project, Stdio::piped());
    let keys = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(keys);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let shown: Value = serde_json::from_str(&project.run(&["show", "--json"]).stdout).unwrap();
    let outcomes: Vec<_> = ["asks", "reads", "steers"].map(|id| row(&shown, id)["outcome"].clone()).into();
    assert_eq!(outcomes, ["failed", "passed", "failed"]);
}

#[test]
fn keys_that_are_pressed_reach_probity_alone() {
    use std::io::Write as _;
    let project = project(
        "trap 'echo int >> ../heard' INT\ntrap 'echo term >> ../heard; exit 7' TERM\n: > ../ready\nwhile :; do sleep 0.01; done",
    );
    let mut child = at_a_terminal(&project, Stdio::piped());
    eventually("the start of the command", || project.outside().join("ready").exists());
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(beside(&project, "heard"), ["term"]);
    let ran = project.run(&["log"]).exits(0);
    assert!(ran.stdout.contains("interrupted"), "{}", ran.stdout);
}

#[test]
fn output_that_a_command_closes_or_floods_does_not_hold_it_up() {
    let project = project("exec 1>&- 2>&-\nexit 0");
    let (code, document) = project.verify();
    assert_eq!((code, &around(&document, "c")["log"]["size"]), (0, &json!(0)));
    project.write("run", "exec 1>&-\necho lost || exit 3");
    let (code, document) = project.verify();
    assert_eq!((code, &around(&document, "c")["exit"]), (1, &json!({"code": 3})));
}

#[test]
fn a_gigabyte_of_output_is_kept_whole() {
    const SIZE: u64 = 1 << 30;
    let project = project(&format!("head -c {SIZE} /dev/zero"));
    let (code, document) = project.verify();
    assert_eq!((code, &around(&document, "c")["log"]["size"]), (0, &json!(SIZE)));
    // One line without an end, of which a report shows as much as it looks at.
    project.write("run", format!("yes | tr -d '\\n' | head -c {}; exit 1", SIZE / 64));
    let ran = project.run(&["verify"]).exits(1);
    assert!(ran.stdout.len() < 64 << 10, "{} bytes", ran.stdout.len());
}

#[test]
fn what_cannot_be_written_to_keeps_no_run_from_its_end() {
    let lock = "mkdir -p $1 && echo x > $1/file && chmod 400 $1/file && chmod 500 $1";
    let project = project(&format!(
        "lock() {{ {lock}; }}\nlock \"$KEEP\"\nlock \"$(dirname \"$PROBITY_RESULT\")/more\"\nchmod 500 \"$(dirname \"$PROBITY_RESULT\")\""
    ));
    let config = |keep: &str| format!("[checks.c]\ncommand = [\"sh\", \"./run\"]\nenv = [\"KEEP={keep}\"]\n");
    project.write("probity.toml", config("ignored")).write(".gitignore", "/ignored\n");
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(project.root()).status().unwrap().success());
    let run = || project.ran(project.as_nobody(&["verify", "--json"]));
    // It is there already the second time.
    for _ in 0..2 {
        let ran = run();
        let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        assert_eq!((ran.code, &row(&document, "c")["outcome"]), (Some(0), &json!("passed")), "{document:#}");
        project.write("run", "exit 0");
    }
    project.write("probity.toml", config("kept")).write("run", format!("set -- kept; {lock}"));
    let ran = run();
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!((ran.code, &document["record"]["verdict"]["outcome"]), (Some(1), &json!("stale")), "{document:#}");
    assert_eq!(document["record"]["moved"], json!(["kept/file"]));
}

/// How a run ends whose output nobody reads: a signal and the budget end it all the same, and it is recorded as what it is.
#[test]
fn a_reader_that_stands_still_keeps_no_run_from_its_end() {
    let flood = "yes | head -c 1000000\n: > ../ready\nwhile :; do sleep 0.01; done";
    for (budget, outcome) in [("", "interrupted"), ("timeout = \"1s\"\n", "timed_out")] {
        for format in [&["--format", "jsonl"][..], &[]] {
            let project = project(flood);
            let config =
                format!("[checks.c]\ncommand = [\"sh\", \"./run\"]\n[scenarios.default]\nchecks = [\"c\"]\n{budget}");
            project.write("probity.toml", config);
            let mut command = project.command(&[&["verify", "-v"], format].concat());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            if budget.is_empty() {
                eventually("the flood", || project.outside().join("ready").exists());
                // Time enough for what is told to fill the pipe.
                std::thread::sleep(std::time::Duration::from_millis(500));
                signal("TERM", &child.id().to_string());
            }
            assert_eq!(child.wait().unwrap().code(), Some(1), "{outcome} {format:?}");
            let log = project.run(&["log", "-n1"]).exits(0).stdout;
            assert!(log.contains(&format!("  {outcome} ")), "{format:?}: {log}");
        }
    }
}

#[test]
fn a_repository_that_a_command_moved_away_is_not_what_was_verified() {
    let project = project("mv .git ../gone");
    project.committed();
    let ran = project.run(&["verify", "--format", "jsonl"]).exits(1);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["record"]["moved"]), (&json!("run_finished"), &json!(["."])), "{last:#}");
    // Records are part of what is gone.
    assert_eq!((&last["recorded"], &last["record"]["verdict"]["outcome"]), (&json!(false), &json!("error")));
}

#[test]
fn a_large_log_is_shown_in_little_memory() {
    const SIZE: u64 = 1 << 28;
    let project = project(&format!("head -c {SIZE} /dev/zero"));
    project.run(&["verify"]).exits(0);
    for arguments in [&["show", "--log", "--check", "c"][..], &["show", "--log"]] {
        let file = project.outside().join("shown");
        let mut command = project.after("ulimit -v 200000", arguments);
        assert!(command.stdout(fs::File::create(&file).unwrap()).status().unwrap().success(), "{arguments:?}");
        assert!(fs::metadata(&file).unwrap().len() >= SIZE, "{arguments:?}");
    }
}
