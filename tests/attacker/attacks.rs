//! The attacks, by name. Whatever one gets it reports as a finding that says `CROSSED`, so that a test sees it.

use super::Parent;
use probity::model::{Finding, Mount, Place, Report, Severity};
use probity::worker::{Ask, Called, Crossed, Crossing, Node, Noted, Say, Target, What, attack};

/// A call that was asked for.
struct Call {
    number: u64,
    path: String,
    nodes: Vec<Node>,
}

/// Goes on until the parent has had enough.
pub(super) fn carry_out(name: &str, parent: &mut Parent) {
    parent.say(&Say::Loaded(Ok(parent.walls)));
    let mut target = Target::default();
    let mut calls = 0;
    loop {
        match parent.hear() {
            // It takes any configuration.
            Ask::Validate { .. } => parent.say(&Say::Validated(Vec::new())),
            Ask::Job { config, .. } => {
                target = serde_json::from_str(&config).unwrap();
                if name == "answer-before-the-question" {
                    parent.answer(1, clean());
                }
            }
            Ask::Call { call, files, nodes, inline, .. } => {
                if !inline.is_empty() {
                    parent.bytes();
                }
                calls += 1;
                let call = Call { number: call, path: files[0].path.clone(), nodes };
                attack(name, parent, &call, calls, &target);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A result that nobody could object to.
fn clean() -> Called {
    Called { result: Ok(Ok(Report::default())), fuel: Some(1), stderr: String::new(), observed: Vec::new() }
}

fn found(message: &str, path: &str) -> Called {
    let finding = Finding {
        place: Some(Place { path: path.to_owned(), start: None, end: None }),
        rule: "found".to_owned(),
        severity: Severity::Error,
        message: message.to_owned(),
        help: None,
        edits: Vec::new(),
        known: false,
    };
    let report = Report { findings: vec![finding], stats: Vec::new() };
    Called { result: Ok(Ok(report)), fuel: Some(1), stderr: String::new(), observed: Vec::new() }
}

/// Key and size of a file that was granted, the largest.
fn granted(call: &Call) -> (u32, u64) {
    let files = call.nodes.iter().filter_map(|node| match node.what {
        What::File { size, key, .. } => Some((key, size)),
        What::Symlink { .. } | What::Directory => None,
    });
    files.max_by_key(|(_, size)| *size).unwrap()
}

/// Keys that were not granted.
fn others(call: &Call) -> impl Iterator<Item = u32> {
    let has = |key: &u32| call.nodes.iter().any(|node| matches!(node.what, What::File { key: had, .. } if had == *key));
    (0..).filter(move |key| !has(key))
}

/// Asks to read, and reports what it gets.
fn read(parent: &Parent, call: &Call, key: u32, offset: u64, len: usize) {
    parent.say(&Say::Need { key, offset, len });
    match parent.hear() {
        Ask::Here { .. } => {
            let bytes = parent.bytes();
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
            parent.answer(call.number, found(&format!("CROSSED: read {text:?}"), &call.path));
        }
        other => parent.answer(call.number, found(&format!("refused: {other:?}"), &call.path)),
    }
}

/// Says and does nothing any more, and hears nothing.
fn silence() -> ! {
    loop {
        // The walls allow to wait, and nobody wakes it.
        std::thread::park();
    }
}

fn attack(name: &str, parent: &Parent, call: &Call, calls: u32, target: &Target) {
    let (key, size) = granted(call);
    let whole = usize::try_from(size).unwrap();
    match name {
        // The second one has answered before it was asked.
        "control" | "answer-before-the-question" => parent.answer(call.number, clean()),
        "key-not-granted" => read(parent, call, others(call).next().unwrap(), 0, 1),
        "another-key-not-granted" => read(parent, call, others(call).nth(1).unwrap(), 0, 0),
        "key-of-nothing" => read(parent, call, u32::MAX, 0, 1),
        "offset-beyond" => read(parent, call, key, size, 1),
        "length-beyond" => read(parent, call, key, 0, whole + 1),
        "length-too-large" => read(parent, call, key, 0, (2 << 20) + 1),
        "offset-overflows" => read(parent, call, key, u64::MAX, 2),
        "length-overflows" => read(parent, call, key, 1, usize::MAX),
        // In scope `file` the keys of the tree go on beyond the one of this call.
        "file-of-another-call" => read(parent, call, key + 1, 0, 1),
        "file-of-a-call-that-ended" => {
            parent.answer(call.number, clean());
            read(parent, call, key, 0, 1);
        }
        "answer-twice" => {
            parent.answer(call.number, clean());
            parent.answer(call.number, found("CROSSED: answered twice", &call.path));
        }
        "answer-for-another-call" => parent.answer(call.number + 1, found("CROSSED: answered for another", &call.path)),
        "answer-for-a-path-outside" => parent.answer(call.number, found("CROSSED: a path outside", "secret.txt")),
        "answer-for-a-path-of-another-call" => {
            parent.answer(
                call.number,
                found("CROSSED: a path of another call", if calls == 1 { "b.txt" } else { "a.txt" }),
            );
        }
        "a-finding-that-says-it-is-known" => {
            let mut called = found("CROSSED: known", &call.path);
            if let Ok(Ok(report)) = &mut called.result {
                report.findings[0].known = true;
            }
            parent.answer(call.number, called);
        }
        "more-findings-than-may-be" => {
            let mut called = found("CROSSED: many", &call.path);
            if let Ok(Ok(report)) = &mut called.result {
                report.findings = vec![report.findings[0].clone(); 20_000];
            }
            parent.answer(call.number, called);
        }
        "a-message-longer-than-may-be" => {
            parent.answer(call.number, found(&"CROSSED: long ".repeat(10_000), &call.path));
        }
        "more-output-than-may-be" => {
            parent.answer(call.number, Called { stderr: "x".repeat(8 << 20), ..clean() });
        }
        "contents-it-was-not-given" => {
            let observed = vec![Noted(Mount::Tree, call.path.clone(), 4)];
            parent.answer(call.number, Called { observed, ..clean() });
        }
        "a-name-that-is-not-there" => {
            let observed = vec![Noted(Mount::Tree, "nothing".to_owned(), 1)];
            parent.answer(call.number, Called { observed, ..clean() });
        }
        "a-name-it-was-not-granted" => {
            let observed = vec![Noted(Mount::Tree, "secret.txt".to_owned(), 1)];
            parent.answer(call.number, Called { observed, ..clean() });
        }
        "answer-with-something-else" => parent.say(&Say::Validated(Vec::new())),
        "answer-with-walls" => parent.say(&Say::Loaded(Ok(parent.walls))),
        "answer-with-bytes" => parent.raw(b"B\x01\0\0\0x"),
        "malformed-json" => parent.raw(b"J\x02\0\0\0{{"),
        "no-utf-8" => parent.raw(b"J\x02\0\0\0\xff\xfe"),
        "another-message" => parent.raw(b"J\x0a\0\0\0{\"Own\": {}}"),
        "deep-json" => {
            let text = "[".repeat(1 << 20);
            parent.raw(&[&b"J\0\0\x10\0"[..], text.as_bytes()].concat());
        }
        "unknown-frame" => parent.raw(b"X\0\0\0\0"),
        "frame-too-long" => parent.raw(b"J\xff\xff\xff\xff"),
        "bytes-too-long" => parent.raw(b"B\xff\xff\xff\xff"),
        "half-a-frame" => {
            parent.raw(b"J\x64\0\0\0{\"Called\":");
            silence();
        }
        "half-a-header" => {
            parent.raw(b"J\x64");
            silence();
        }
        "silence" => silence(),
        // More than the pipe holds, and then it does not read.
        "deaf" => {
            parent.say(&Say::Need { key, offset: 0, len: 2 << 20 });
            silence();
        }
        "ten-million-frames" => (0..10_000_000).for_each(|_| parent.raw(b"J\0\0\0\0")),
        "ten-million-questions" => (0..10_000_000).for_each(|_| {
            parent.say(&Say::Need { key, offset: 0, len: 1 });
            parent.hear();
            parent.bytes();
        }),
        "closes-its-pipe" => {
            #[expect(unsafe_code, reason = "the standard output has no safe way to be closed")]
            // SAFETY: nothing is written to it after this.
            unsafe {
                libc::close(1);
            }
            silence();
        }
        "exits" => std::process::exit(7),
        "exits-after-its-answer" => {
            parent.answer(call.number, clean());
            std::process::exit(7);
        }
        "killed-after-its-answer" => {
            parent.answer(call.number, clean());
            let _ = std::fs::read(target.file());
        }
        _ => {
            let crossing: Crossing = serde_json::from_value(serde_json::Value::String(name.to_owned())).unwrap();
            let message = match attack::cross(crossing, target) {
                Crossed::Refused(how) => format!("refused: {how}"),
                Crossed::Open(what) => format!("CROSSED: {what}"),
            };
            parent.answer(call.number, found(&message, &call.path));
        }
    }
}
