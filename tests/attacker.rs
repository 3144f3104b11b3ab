//! Workers that an attacker has taken over: what they get, what they reach, and whom they are believed by. See
//! `attacker/main.rs`.

use crate::support::guests::{Check, Finding, Guest, Outcome};
use crate::support::{Project, around, example, row};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// One attack.
struct Attack {
    name: &'static str,
    /// Called for each file instead of once.
    per_file: bool,
    /// Words of the error; none where it is stopped by its timeout.
    message: Option<&'static str>,
}

const fn once(name: &'static str, message: &'static str) -> Attack {
    Attack { name, per_file: false, message: Some(message) }
}

const fn each(name: &'static str, message: &'static str) -> Attack {
    Attack { name, per_file: true, message: Some(message) }
}

const fn late(name: &'static str) -> Attack {
    Attack { name, per_file: false, message: None }
}

const NOT_GRANTED: &str = "it asked for what it was not granted";
const OUT_OF_TURN: &str = "it answers out of turn";
const NOT_UNDERSTOOD: &str = "it says what is not understood";
const UNTRUE: &str = "it says that its guest learned what it cannot have learned";
const TOO_MUCH: &str = "it says more than any guest may";
const MORE: &str = "it says more than it was asked";
const KILLED: &str = "it was ended by signal 31, for a system call that its walls forbid";

const READS: [Attack; 11] = [
    once("key-not-granted", NOT_GRANTED),
    once("another-key-not-granted", NOT_GRANTED),
    once("key-of-nothing", NOT_GRANTED),
    once("offset-beyond", NOT_GRANTED),
    once("length-beyond", NOT_GRANTED),
    once("length-too-large", NOT_GRANTED),
    once("offset-overflows", NOT_GRANTED),
    once("length-overflows", NOT_GRANTED),
    each("key-not-granted", NOT_GRANTED),
    each("file-of-another-call", NOT_GRANTED),
    each("file-of-a-call-that-ended", NOT_GRANTED),
];

const ANSWERS: [Attack; 34] = [
    once("more-findings-than-may-be", TOO_MUCH),
    once("a-message-longer-than-may-be", TOO_MUCH),
    once("more-output-than-may-be", TOO_MUCH),
    once("contents-it-was-not-given", UNTRUE),
    once("a-name-that-is-not-there", UNTRUE),
    once("a-name-it-was-not-granted", UNTRUE),
    once("answer-twice", MORE),
    each("answer-twice", OUT_OF_TURN),
    once("answer-for-another-call", OUT_OF_TURN),
    each("answer-for-another-call", OUT_OF_TURN),
    once("answer-before-the-question", MORE),
    once("answer-for-a-path-outside", "breaks the contract"),
    each("answer-for-a-path-of-another-call", "breaks the contract"),
    once("a-finding-that-says-it-is-known", "breaks the contract"),
    once("answer-with-something-else", OUT_OF_TURN),
    once("answer-with-walls", OUT_OF_TURN),
    once("answer-with-bytes", "it sends what was not asked for"),
    once("malformed-json", NOT_UNDERSTOOD),
    once("no-utf-8", NOT_UNDERSTOOD),
    once("another-message", NOT_UNDERSTOOD),
    once("deep-json", NOT_UNDERSTOOD),
    once("unknown-frame", NOT_UNDERSTOOD),
    once("frame-too-long", NOT_UNDERSTOOD),
    once("bytes-too-long", NOT_UNDERSTOOD),
    once("ten-million-frames", NOT_UNDERSTOOD),
    once("exits", "it ended with exit code 7"),
    once("exits-after-its-answer", "it ended with exit code 7"),
    once("killed-after-its-answer", KILLED),
    once("closes-its-pipe", "it was ended by signal 9"),
    late("half-a-frame"),
    late("half-a-header"),
    late("silence"),
    late("deaf"),
    late("ten-million-questions"),
];

const CALLS: [Attack; 18] = [
    once("read-file", KILLED),
    once("write-file", KILLED),
    once("create-file", KILLED),
    once("stat", KILLED),
    once("read-link", KILLED),
    once("socket", KILLED),
    once("connect-tcp", KILLED),
    once("connect-unix", KILLED),
    once("connect-abstract", KILLED),
    once("thread", KILLED),
    once("fork", KILLED),
    once("exec", KILLED),
    once("signal", KILLED),
    once("signal-by-pipe", KILLED),
    once("read-memory", KILLED),
    once("trace", KILLED),
    once("map-code", KILLED),
    once("protect-code", KILLED),
];

/// What must not be seen of the files that were not granted.
const SECRET: &str = "the secret that nobody was granted";

/// What an attacker would like to reach outside.
struct Outside {
    port: TcpListener,
    socket: UnixListener,
}

/// A project with a check for each attack, each of a pack of its own, and an honest one before and after them.
fn project(attacks: &[Attack]) -> (Project, Outside) {
    let project = Project::new();
    project.write("a.txt", "granted\n").write("b.txt", "granted too\n").write("secret.txt", SECRET);
    project.write("large.bin", vec![b'x'; 3 << 20]);
    let folder = project.outside().join("canary");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), "a canary").unwrap();
    std::os::unix::fs::symlink("file", folder.join("link")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    port.set_nonblocking(true).unwrap();
    let socket = UnixListener::bind(folder.join("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let target = format!(
        "config = {{ folder = {:?}, port = {}, process = {}, memory = 0 }}\n",
        folder,
        port.local_addr().unwrap().port(),
        std::process::id(),
    );
    let mut config = String::new();
    let mut ids = vec!["honest-first".to_owned()];
    for attack in attacks {
        let id = format!("{}-{}", attack.name, if attack.per_file { "each" } else { "once" });
        let mut guest = Guest { scratch: format!("attack:{};", attack.name).into_bytes(), ..Guest::default() };
        guest.pack.checks =
            vec![Check { per_file: attack.per_file, schema: Some("{}".to_owned()), ..Check::default() }];
        project.component(&format!(".packs/{id}.wasm"), &guest.text());
        let timeout = if attack.message.is_none() { "timeout = \"700ms\"\n" } else { "" };
        // Files of scope `file` in one worker, so that there is another call to ask about.
        config.push_str(&format!(
            "[packs.{id}]\nsource = \"file:.packs/{id}.wasm\"\n\
             allow = [\"tree:*.txt\", \"tree:large.bin\", \"tree:!secret.txt\"]\n\
             [checks.{id}]\nuse = \"{id}/look\"\n{timeout}{target}"
        ));
        ids.push(id);
    }
    ids.push("honest-last".to_owned());
    let warning = Finding { severity: 1, path: Some("a.txt".to_owned()), ..Finding::default() };
    let honest = Guest { outcome: Outcome::Report(vec![warning], Vec::new()), ..Guest::default() };
    project.component(".packs/honest.wasm", &honest.text());
    config.push_str(
        "[packs.honest]\nsource = \"file:.packs/honest.wasm\"\nallow = [\"tree:*.txt\"]\n\
         [checks.honest-first]\nuse = \"honest/look\"\n[checks.honest-last]\nuse = \"honest/look\"\n",
    );
    config.push_str(&format!("[scenarios.default]\nfail-fast = false\nchecks = {ids:?}\n"));
    project.write("probity.toml", config);
    (project, Outside { port, socket })
}

/// Verifies with workers that are as they should be, which also compiles the packs; and then with the attacker's.
fn attacked(attacks: &[Attack]) -> (Project, Outside, serde_json::Value) {
    let (project, outside) = project(attacks);
    let (code, document) = project.verify();
    assert_eq!(code, 0, "without an attacker they all pass: {document:#}");
    let ready = project.command(&["verify", "--json"]);
    let mut command = Command::new(example("attacker"));
    command.args(ready.get_args());
    let ran = project.ran(project.beside(command, &ready)).exits(1);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    assert!(!ran.stdout.contains("CROSSED"), "{}", ran.stdout);
    let document = serde_json::from_str(&ran.stdout).unwrap();
    (project, outside, document)
}

/// Each attack ends as trouble with its worker, nothing that it said is kept, and the others' results are untouched.
fn refused(attacks: &[Attack]) -> (Project, Outside) {
    let (project, outside, document) = attacked(attacks);
    for attack in attacks {
        let id = format!("{}-{}", attack.name, if attack.per_file { "each" } else { "once" });
        let (row, around) = (row(&document, &id), around(&document, &id));
        let told = around["message"].as_str().unwrap_or_default();
        match attack.message {
            None => assert_eq!(row["outcome"], "timed_out", "{id}: {told}"),
            Some(message) => {
                let kind = if message == "breaks the contract" { "bad_result" } else { "host" };
                assert_eq!(row["outcome"], serde_json::json!({ "error": kind }), "{id}: {told}");
                assert!(told.contains(message), "{id}: {told}");
            }
        }
        assert_eq!(row["findings"], serde_json::json!([]), "{id}");
        assert_eq!(row["stats"], serde_json::json!([]), "{id}");
        assert_eq!(around["fuel"], serde_json::Value::Null, "{id}");
    }
    for id in ["honest-first", "honest-last"] {
        assert_eq!(row(&document, id)["outcome"], "passed");
        assert_eq!(row(&document, id)["findings"].as_array().unwrap().len(), 1, "{id}");
    }
    (project, outside)
}

#[test]
fn an_attacker_reads_nothing_that_was_not_granted() {
    refused(&READS);
}

#[test]
fn what_an_attacker_says_out_of_turn_or_form_is_refused_with_all_it_said() {
    refused(&ANSWERS);
}

#[test]
fn an_attacker_reaches_nothing_outside() {
    let (project, outside) = refused(&CALLS);
    let folder = project.outside().join("canary");
    assert_eq!(std::fs::read_to_string(folder.join("file")).unwrap(), "a canary");
    assert!(!Path::new(&folder.join("made")).exists());
    assert!(outside.port.accept().is_err() && outside.socket.accept().is_err(), "nobody came");
}

#[test]
fn the_attacker_of_these_tests_can_play_by_the_rules() {
    // Otherwise every attack would be refused for what it does before.
    let (project, _outside) = project(&[once("control", ""), each("control", "")]);
    project.verify();
    let ready = project.command(&["verify", "--json"]);
    let mut command = Command::new(example("attacker"));
    command.args(ready.get_args());
    let ran = project.ran(project.beside(command, &ready)).exits(0);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for id in ["control-once", "control-each"] {
        assert_eq!(row(&document, id)["outcome"], "passed");
        // The honest guest would have used more: it is the attacker who answered.
        assert!(around(&document, id)["fuel"].as_u64().unwrap() <= 3, "{id}");
    }
}
