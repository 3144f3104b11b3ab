//! Packs that mean harm, through the real binary with real workers: what each comes to, and that the honest check beside
//! them has passed.

use crate::support::guests::{
    self, Check, Edit, FILE_CALLS, FREE, Finding, Guest, LOOP, NO_ENTRY, NOT_PERMITTED, Outcome, SCRATCH, call,
};
use crate::support::{Project, around, row};
use std::net::TcpListener;
use std::os::unix::fs::symlink;

/// A guest with a name.
type Named = (&'static str, Guest);

const FOR_EVER: &str = "(loop $l (br $l))";

/// A tree that has something to reach for.
fn project() -> Project {
    let project = Project::new();
    project.write("a.txt", "hello\n").write("b/c.txt", "x").write("secret/key.txt", "the secret");
    std::fs::write(project.outside().join("outside.txt"), "outside").unwrap();
    for (name, to) in [
        ("out", "../outside.txt"),
        ("up-and-back", "../project/a.txt"),
        ("absolute", "/etc/passwd"),
        ("proc", "/proc/self/root"),
        ("circle-1", "circle-2"),
        ("circle-2", "circle-1"),
        ("itself", "itself"),
        ("hidden", "secret/key.txt"),
        ("b/out", "../../outside.txt"),
        ("folder", "b"),
    ] {
        symlink(to, project.path(name)).unwrap();
    }
    for n in 0..50 {
        symlink(format!("chain-{}", n + 1), project.path(&format!("chain-{n}"))).unwrap();
    }
    project.write("chain-50", "the end");
    project
}

/// Writes these packs and a configuration with a check for each, small limits, and an honest check before and after.
fn configured(project: &Project, packs: &[(&'static str, Vec<u8>)]) {
    let mut config = String::new();
    let mut ids = vec!["honest-first"];
    let honest = Guest { outcome: Outcome::Report(Vec::new(), vec![("seen".into(), 1)]), ..Guest::default() };
    let honest = wat::parse_str(honest.text()).unwrap();
    for (name, bytes) in packs {
        project.write(&format!(".packs/{name}.wasm"), bytes);
        config.push_str(&format!(
            "[packs.{name}]\nsource = \"file:.packs/{name}.wasm\"\n\
             allow = [\"tree:**\", \"tree:!secret/**\", \"tree:!.packs/**\"]\n\
             [checks.{name}]\nuse = \"{name}/look\"\nlimits = {{ fuel = 20000000, memory = \"64MiB\" }}\n"
        ));
        ids.push(name);
    }
    project.write(".packs/honest.wasm", honest);
    ids.push("honest-last");
    config.push_str(&format!(
        "[packs.honest]\nsource = \"file:.packs/honest.wasm\"\nallow = [\"tree:**\"]\n\
         [checks.honest-first]\nuse = \"honest/look\"\n[checks.honest-last]\nuse = \"honest/look\"\n\
         [scenarios.default]\nfail-fast = false\nchecks = {ids:?}\n\
         [scenarios.honest]\nchecks = [\"honest-first\"]\n"
    ));
    project.write("probity.toml", config);
}

fn compiled(guest: &Guest) -> Vec<u8> {
    wat::parse_str(guest.text()).unwrap_or_else(|error| panic!("{error}"))
}

/// Verifies with these guests. The honest checks around them have passed.
fn verified(guests: &[Named]) -> (i32, serde_json::Value) {
    let project = project();
    let packs: Vec<_> = guests.iter().map(|(name, guest)| (*name, compiled(guest))).collect();
    configured(&project, &packs);
    let (code, document) = project.verify();
    for honest in ["honest-first", "honest-last"] {
        assert_eq!(row(&document, honest)["outcome"], "passed", "{document:#}");
        assert_eq!(row(&document, honest)["stats"], serde_json::json!([["seen", 1]]));
    }
    (code, document)
}

/// A guest that ends in an error: its kind, and what its message has to say.
type Ends = (&'static str, Guest, &'static str, &'static str);

/// Each ends as that check's error, and says why.
fn each_ends(guests: Vec<Ends>) {
    let named: Vec<Named> = guests.iter().map(|(name, guest, ..)| (*name, guest.clone())).collect();
    let (code, document) = verified(&named);
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &serde_json::json!("error")));
    for (name, _, kind, words) in guests {
        let (row, around) = (row(&document, name), around(&document, name));
        let message = around["message"].as_str().unwrap_or_default();
        assert_eq!(row["outcome"], serde_json::json!({ "error": kind }), "{name}: {message}");
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!(row["findings"], serde_json::json!([]), "{name}");
        assert!(!message.contains(".rs:") && !message.contains("wasmtime"), "nothing of the host: {name}: {message}");
        assert!(around["walls"].is_string(), "{name} ran in a worker");
    }
}

fn doing(code: &str) -> Guest {
    Guest { on_run: code.into(), ..Guest::default() }
}

fn calling(calls: &[guests::Call], code: &str) -> Guest {
    let mut all = FILE_CALLS.to_vec();
    all.extend_from_slice(calls);
    Guest { calls: all, on_run: code.into(), scratch: b"yes\n".to_vec(), ..Guest::default() }
}

fn per_file(mut guest: Guest) -> Guest {
    guest.pack.checks[0].per_file = true;
    guest
}

fn finding(finding: Finding) -> Guest {
    Guest { outcome: Outcome::Report(vec![finding], Vec::new()), ..Guest::default() }
}

fn at(path: &str, start: Option<(u32, u32)>, end: Option<(u32, u32)>) -> Guest {
    finding(Finding { path: Some(path.into()), start, end, ..Finding::default() })
}

fn edit(start: u64, end: u64) -> Edit {
    Edit { path: "a.txt".into(), start, end, replacement: b"x".to_vec() }
}

fn raw(words: &[u32]) -> Guest {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Guest { outcome: Outcome::Raw(bytes), pages: 1000, ..Guest::default() }
}

/// Core instances of the module `$m`.
fn instances(count: u32) -> String {
    (0..count).map(|n| format!("(core instance $m{n} (instantiate $m))")).collect()
}

#[test]
fn what_takes_more_than_it_may_ends_at_its_limit() {
    let deep = "(func $deep (param i32) (result i32) (i32.add (call $deep (i32.const 0)) (i32.const 1)))";
    let flood = |get, instance| {
        let mut calls = FILE_CALLS.to_vec();
        calls[3] = call("stderr", instance, get, "(result i32)");
        let code = format!(
            "(local.set $a (call $stderr))
             (loop $l (call $write (local.get $a) (i32.const {SCRATCH}) (i32.const 4096) (i32.const {FREE})) (br $l))"
        );
        Guest { calls, on_run: code, scratch: b"yes\n".repeat(1024), ..Guest::default() }
    };
    let first =
        format!("(call $directories (i32.const {FREE})) (local.set $a (i32.load (i32.load (i32.const {FREE}))))");
    let open = format!(
        "(call $open (local.get $a) (i32.const 0) (i32.const {SCRATCH}) (i32.const 5) (i32.const 0) (i32.const 1) (i32.const {FREE}))"
    );
    let read = format!(
        "{first} {open} (local.set $b (i32.load (i32.const {})))
         (loop $l (call $read (local.get $b) (i64.const 6) (i64.const 0) (i32.const {FREE})) (br $l))",
        FREE + 4
    );
    let on_a = |mut guest: Guest| {
        guest.scratch = b"a.txt".to_vec();
        guest
    };
    let random = [call("random", "random", "get-random-u64", "(result i64)")];
    each_ends(vec![
        ("loop", doing(FOR_EVER), "out_of_fuel", "20000000 units of fuel while checking"),
        ("loop-on-a-file", per_file(doing(FOR_EVER)), "out_of_fuel", "on `a.txt`: it used up its 20000000 units"),
        ("loop-of-calls", calling(&random, "(loop $l (drop (call $random)) (br $l))"), "out_of_fuel", "units of fuel"),
        (
            "memory-grows",
            doing("(loop $l (drop (memory.grow (i32.const 100))) (br $l))"),
            "out_of_memory",
            "67108864 bytes",
        ),
        ("memory-at-once", doing("(drop (memory.grow (i32.const 65000)))"), "out_of_memory", "67108864 bytes"),
        (
            "many-memories",
            Guest { top: format!("(core module $m (memory 400)){}", instances(3)), ..Guest::default() },
            "out_of_memory",
            "67108864 bytes",
        ),
        (
            "table-grows",
            doing("(loop $l (drop (table.grow $table (ref.null func) (i32.const 100000))) (br $l))"),
            "out_of_memory",
            "",
        ),
        (
            "deep-recursion",
            Guest { more: deep.into(), ..doing("(drop (call $deep (i32.const 0)))") },
            "stack_overflow",
            "too deeply",
        ),
        ("flood-of-stdout", flood("get-stdout", "stdout"), "output_limit", "1048576"),
        ("flood-of-stderr", flood("get-stderr", "stderr"), "output_limit", "1048576"),
        (
            "handles",
            calling(
                &[],
                "(loop $l (drop (call $stderr))
                   (br_if $l (i32.lt_u (local.tee $a (i32.add (local.get $a) (i32.const 1))) (i32.const 100000))))",
            ),
            "handle_limit",
            "1024",
        ),
        (
            "open-files",
            on_a(calling(
                &[],
                &format!(
                    "{first} (loop $l {open} (br_if $l (i32.lt_u (local.tee $b (i32.add (local.get $b) (i32.const 1))) (i32.const 100000))))"
                ),
            )),
            "handle_limit",
            "1024",
        ),
        ("reads-without-end", on_a(calling(&[], &read)), "out_of_fuel", "units of fuel"),
        ("a-text-of-20-megabytes", raw(&[1, 0, SCRATCH, 20 << 20, 0]), "output_limit", "16777216 bytes at once"),
        ("a-list-of-300000", raw(&[0, 16 << 20, 300_000, SCRATCH, 0]), "output_limit", "16777216 bytes at once"),
        (
            "10001-findings",
            Guest {
                outcome: Outcome::Report(
                    (0..10_001).map(|n: u32| Finding { message: n.to_string().into(), ..Finding::default() }).collect(),
                    Vec::new(),
                ),
                ..Guest::default()
            },
            "output_limit",
            "10001 findings",
        ),
    ]);
}

#[test]
fn what_ends_without_a_result_says_how() {
    let said = "thread 'main' panicked at src/lib.rs\n\x1b[31mboom\n";
    let exit =
        |status| calling(&[call("exit", "exit", "exit", "(param i32)")], &format!("(call $exit (i32.const {status}))"));
    each_ends(vec![
        ("gives-up", doing("unreachable"), "trap", "`unreachable`"),
        (
            "panics",
            Guest {
                scratch: said.into(),
                ..calling(
                    &[],
                    &format!(
                        "(call $write (call $stderr) (i32.const {SCRATCH}) (i32.const {}) (i32.const {FREE})) unreachable",
                        said.len()
                    ),
                )
            },
            "trap",
            "\u{fffd}[31mboom",
        ),
        ("out-of-bounds", doing("(drop (i32.load (i32.const -1)))"), "trap", "memory that it does not have"),
        ("divides-by-zero", doing("(drop (i32.div_u (i32.const 1) (local.get $a)))"), "trap", "divided by zero"),
        ("calls-nothing", doing("(call_indirect $table (i32.const 0))"), "trap", "not there"),
        ("calls-beyond", doing("(call_indirect $table (i32.const 9))"), "trap", "does not exist"),
        (
            "a-handle-that-is-none",
            calling(&[], &format!("(call $read (i32.const 77) (i64.const 1) (i64.const 0) (i32.const {FREE}))")),
            "trap",
            "in a way that cannot be",
        ),
        (
            "a-list-beyond-memory",
            calling(&[], &format!("(call $write (call $stderr) (i32.const -1) (i32.const 8) (i32.const {FREE}))")),
            "trap",
            "",
        ),
        ("exits-with-0", exit(0), "exit", "`exit` with 0"),
        ("exits-with-1", exit(1), "exit", "`exit` with 1"),
        ("exits-on-a-file", per_file(exit(0)), "exit", "on `a.txt`: "),
    ]);
}

#[test]
fn a_result_that_breaks_the_contract_is_none() {
    let edits = |edits: Vec<Edit>| finding(Finding { edits, ..Finding::default() });
    let stats = |stats: Vec<(String, u64)>| Guest { outcome: Outcome::Report(Vec::new(), stats), ..Guest::default() };
    let twins = vec![Finding::default(), Finding::default()];
    let bad = |name, guest, words| (name, guest, "bad_result", words);
    each_ends(vec![
        bad("severity-9", finding(Finding { severity: 9, ..Finding::default() }), "malformed"),
        bad("case-7", Guest { outcome: Outcome::Raw(vec![7; 20]), ..Guest::default() }, "malformed"),
        bad("refusal-5", Guest { outcome: Outcome::Refusal(5, "x".into()), ..Guest::default() }, "malformed"),
        bad("no-utf-8", finding(Finding { message: vec![0xff, 0xfe], ..Finding::default() }), "malformed"),
        bad(
            "half-a-character",
            finding(Finding { message: b"\xf0\x9f\x98".to_vec(), ..Finding::default() }),
            "malformed",
        ),
        bad("a-surrogate", finding(Finding { message: b"\xed\xa0\x80".to_vec(), ..Finding::default() }), "malformed"),
        bad("a-result-beyond-memory", doing("(return (i32.const -4))"), "malformed"),
        bad("a-result-not-aligned", doing("(return (i32.const 1025))"), "malformed"),
        bad("a-list-beyond-memory", raw(&[0, u32::MAX - 7, 1, 0, 0]), "malformed"),
        bad("a-path-out", at("../outside.txt", None, None), "none that the check was given"),
        bad("a-path-absolute", at("/etc/passwd", None, None), "none that the check was given"),
        bad("a-path-of-a-mount", at("/tree/a.txt", None, None), "none that the check was given"),
        bad("a-path-not-granted", at("secret/key.txt", None, None), "none that the check was given"),
        bad("a-path-empty", at("", None, None), "none that the check was given"),
        bad("line-0", at("a.txt", Some((0, 1)), None), "count from 1"),
        bad("column-0", at("a.txt", Some((1, 0)), None), "count from 1"),
        bad("ends-before-it-starts", at("a.txt", Some((2, 1)), Some((1, 9))), "ends before"),
        bad("an-edit-beyond-the-file", edits(vec![edit(0, 7)]), "6 bytes"),
        bad("an-edit-backwards", edits(vec![edit(3, 2)]), "6 bytes"),
        bad("edits-that-overlap", edits(vec![edit(2, 4), edit(0, 3)]), "overlap"),
        bad("an-unknown-rule", finding(Finding { rule: b"other".to_vec(), ..Finding::default() }), "no such rule"),
        bad(
            "an-empty-message",
            finding(Finding { message: b" \n".to_vec(), ..Finding::default() }),
            "message is empty",
        ),
        bad("a-message-of-9000", finding(Finding { message: vec![b'x'; 9000], ..Finding::default() }), "9000 bytes"),
        bad("twins", Guest { outcome: Outcome::Report(twins, Vec::new()), ..Guest::default() }, "are equal"),
        bad("a-count-beyond-json", stats(vec![("a".into(), 1 << 53)]), "may be"),
        bad("a-count-twice", stats(vec![("a".into(), 1), ("a".into(), 2)]), "twice"),
        bad("a-count-named-badly", stats(vec![("\u{1b}[2J".into(), 1)]), "lower-case"),
    ]);
}

#[test]
fn what_is_forbidden_is_refused_and_what_is_large_but_allowed_is_not() {
    let sleep = calling(
        &[
            call("now", "monotonic", "now", "(result i64)"),
            call("after", "monotonic", "subscribe-duration", "(param i64) (result i32)"),
            call("block", "poll", "[method]pollable.block", "(param i32)"),
        ],
        "(local.set $d (call $now))
         (call $block (call $after (i64.const 31536000000000000)))
         (if (i64.lt_u (i64.sub (call $now) (local.get $d)) (i64.const 31536000000000000)) (then unreachable))",
    );
    let note =
        |n: u32| Finding { severity: 0, message: format!("{n:04}{}", "x".repeat(4092)).into(), ..Finding::default() };
    let paths = [
        ("..", true, false, NOT_PERMITTED),
        ("../outside.txt", true, false, NOT_PERMITTED),
        ("b/../../outside.txt", true, false, NOT_PERMITTED),
        ("./../project/a.txt", true, false, NOT_PERMITTED),
        ("/etc/passwd", true, false, NOT_PERMITTED),
        ("/tree/a.txt", true, false, NOT_PERMITTED),
        ("/", true, true, NOT_PERMITTED),
        ("out", true, false, NOT_PERMITTED),
        ("b/out", true, false, NOT_PERMITTED),
        ("folder/out", true, false, NOT_PERMITTED),
        ("up-and-back", true, false, NOT_PERMITTED),
        ("absolute", true, false, NOT_PERMITTED),
        ("proc/etc/passwd", true, false, NOT_PERMITTED),
        ("circle-1", true, false, LOOP),
        ("itself", true, false, LOOP),
        ("itself/x", true, false, LOOP),
        ("chain-0", true, false, LOOP),
        ("a.txt\0", true, false, NO_ENTRY),
        ("", true, false, NO_ENTRY),
    ];
    let hidden = [
        ("secret", true, false, NO_ENTRY),
        ("secret/key.txt", true, false, NO_ENTRY),
        ("hidden", true, false, NO_ENTRY),
        ("b/../secret/key.txt", true, false, NO_ENTRY),
        (".packs", true, true, NO_ENTRY),
        (".git", true, true, NO_ENTRY),
    ];
    let guests = vec![
        ("sleeps-for-a-year", sleep),
        ("writes-in-every-way", guests::every_write()),
        ("paths-that-lead-out", guests::opening(&paths)),
        ("names-outside-the-grant", guests::opening(&hidden)),
        (
            "400-kib-of-findings",
            Guest { outcome: Outcome::Report((0..100).map(note).collect(), Vec::new()), ..Guest::default() },
        ),
    ];
    let (code, document) = verified(&guests);
    for (name, _) in &guests {
        assert_eq!(row(&document, name)["outcome"], "passed", "{name}: {}", around(&document, name)["message"]);
    }
    assert_eq!(code, 0);
    let findings = row(&document, "400-kib-of-findings")["findings"].as_array().unwrap();
    assert_eq!(findings.iter().map(|one| one["message"].as_str().unwrap().len()).sum::<usize>(), 400 << 10);
}

#[test]
fn escape_sequences_reach_no_terminal_wherever_a_pack_puts_them() {
    let wild = "\x1b[2J\x1b]0;title\x07\u{202e}drow\r\u{9b}31m";
    let project = project();
    let said = format!("{wild}\n");
    let guests = [
        ("message", finding(Finding { message: wild.into(), help: Some(wild.into()), ..Finding::default() })),
        ("refusal", Guest { outcome: Outcome::Refusal(4, wild.into()), ..Guest::default() }),
        (
            "panic",
            Guest {
                scratch: said.clone().into(),
                ..calling(
                    &[],
                    &format!(
                        "(call $write (call $stderr) (i32.const {SCRATCH}) (i32.const {}) (i32.const {FREE})) unreachable",
                        said.len()
                    ),
                )
            },
        ),
        ("function", Guest { more: "(func $\"\\1b[2J\" unreachable)".into(), ..doing("(call $\"\\1b[2J\")") }),
    ];
    let packs: Vec<_> = guests.iter().map(|(name, guest)| (*name, compiled(guest))).collect();
    configured(&project, &packs);
    for arguments in [&["verify"][..], &["show", "latest"], &["show", "latest", "--check", "message"]] {
        let ran = project.run(arguments);
        let wild = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.stdout.contains(wild) && !ran.stderr.contains(wild), "{:?}\n{:?}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("title"), "it is shown: {}", ran.stdout);
    }
    project.run(&["verify", "honest"]).exits(0);
}

/// What cannot be a pack, and what is said of it.
type Refused = (&'static str, Vec<u8>, &'static str);

/// All are refused at once, before anything runs; and then an honest check passes.
fn each_is_refused(packs: Vec<Refused>) {
    let project = project();
    let written: Vec<_> = packs.iter().map(|(name, bytes, _)| (*name, bytes.clone())).collect();
    configured(&project, &written);
    let ran = project.run(&["verify"]).exits(2);
    assert!(!project.path(".probity").exists(), "nothing ran");
    let told: Vec<&str> = ran.stderr.split("error: ").collect();
    for (name, _, words) in packs {
        let start = format!("pack `{name}` cannot be used: ");
        let of: Vec<_> = told.iter().filter(|text| text.starts_with(&start)).collect();
        assert_eq!(of.len(), 1, "{name}: {}", ran.stderr);
        assert!(of[0].contains(words), "{name}: {}", of[0]);
    }
    project.run(&["verify", "honest"]).exits(0);
}

#[test]
fn what_is_no_pack_is_refused_before_anything_runs() {
    let whole = compiled(&Guest::default());
    let engine = probity::worker::Engine::new().unwrap();
    let code = probity::worker::compile(&engine, &whole).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        bytes
    };
    let mut huge = whole.clone();
    huge.resize(100 << 20, 0);
    let importing =
        |import: &str| compiled(&Guest { top: format!("(import \"{import}\" (instance))"), ..Guest::default() });
    let other_type = "(import \"wasi:cli/environment@0.2.0\"
        (instance (export \"get-environment\" (func (result string)))))";
    each_is_refused(vec![
        ("empty", Vec::new(), "empty"),
        ("script", b"#!/bin/sh\n".to_vec(), "not WebAssembly"),
        ("text", b"(component)".to_vec(), "text"),
        ("core-module", wat::parse_str("(module (func))").unwrap(), "core WebAssembly module"),
        ("no-exports", wat::parse_str("(component)").unwrap(), "exports nothing"),
        ("precompiled", code, "precompiled"),
        ("of-100-megabytes", huge, "67108864"),
        ("cut-in-the-header", whole[..6].to_vec(), "not a valid component"),
        ("cut-in-the-middle", whole[..whole.len() / 2].to_vec(), ""),
        ("cut-at-the-end", whole[..whole.len() - 1].to_vec(), ""),
        ("flipped-magic", flipped(0), "not WebAssembly"),
        ("flipped-layer", flipped(6), "component"),
        ("flipped-section", flipped(8), ""),
        ("flipped-length", flipped(9), ""),
        ("unknown-import", importing("evil:host/shell@1.0.0"), "`evil:host/shell@1.0.0`"),
        ("unknown-wasi", importing("wasi:keyvalue/store@0.2.0"), "wasi:keyvalue/store"),
        ("newer-wasi", importing("wasi:cli/stderr@0.3.0"), "WASI 0.2"),
        ("no-version", importing("wasi:cli/stderr"), "WASI 0.2"),
        ("function", compiled(&Guest { top: "(import \"shell\" (func))".into(), ..Guest::default() }), "`shell`"),
        ("other-type", compiled(&Guest { top: other_type.into(), ..Guest::default() }), "does not fit"),
        ("other-contract", compiled(&Guest { contract: "0.2.0", ..Guest::default() }), "probity:check@0.2.0"),
        (
            "tail-call",
            compiled(&Guest { on_start: "(return_call $nothing)".into(), ..Guest::default() }),
            "cannot be compiled",
        ),
        (
            "two-memories",
            compiled(&Guest { more: "(memory 1) (memory 1)".into(), ..Guest::default() }),
            "cannot be compiled",
        ),
        ("huge-table", compiled(&Guest { more: "(table 2000000 funcref)".into(), ..Guest::default() }), "table"),
    ]);
}

#[test]
fn a_pack_that_does_not_describe_itself_is_refused_before_anything_runs() {
    let own = |body: &str| {
        Guest {
        top: format!(
            "(core module $d (func (export \"drop\") (param i32) {FOR_EVER})) (core instance $d (instantiate $d))
             (type $r (resource (rep i32) (dtor (core func $d \"drop\"))))
             (core func $new (canon resource.new $r)) (core func $drop (canon resource.drop $r))
             (core module $go (import \"\" \"new\" (func $new (param i32) (result i32)))
               (import \"\" \"drop\" (func $drop (param i32)))
               (func $start (local $n i32) {body}) (start $start))
             (core instance (instantiate $go (with \"\" (instance (export \"new\" (func $new)) (export \"drop\" (func $drop))))))"
        ),
        ..Guest::default()
    }
    };
    let sockets = "(import \"wasi:sockets/tcp-create-socket@0.2.9\" (instance $tcp
        (export \"tcp-socket\" (type $socket (sub resource)))
        (export \"create-tcp-socket\" (func (result (own $socket))))))
        (alias export $tcp \"create-tcp-socket\" (func $create))
        (core func $create (canon lower (func $create)))
        (core module $go (import \"\" \"create\" (func $create (result i32))) (func $start (drop (call $create))) (start $start))
        (core instance (instantiate $go (with \"\" (instance (export \"create\" (func $create))))))";
    let many = "(loop $l (drop (call $new (i32.const 1)))
        (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100000))))";
    let check = |check: Check| {
        let pack = guests::Pack { checks: vec![check], ..Default::default() };
        compiled(&Guest { pack, ..Guest::default() })
    };
    let guest = |guest: Guest| compiled(&guest);
    each_is_refused(vec![
        ("loop-at-the-start", guest(Guest { on_start: FOR_EVER.into(), ..Guest::default() }), "fuel while starting"),
        (
            "loop-in-describe",
            guest(Guest { on_describe: FOR_EVER.into(), ..Guest::default() }),
            "fuel while describing",
        ),
        ("loop-in-a-destructor", guest(own("(call $drop (call $new (i32.const 1)))")), "fuel while starting"),
        ("own-handles", guest(own(many)), "more than 1024 handles"),
        ("trap-at-the-start", guest(Guest { on_start: "unreachable".into(), ..Guest::default() }), "while starting"),
        (
            "trap-in-describe",
            guest(Guest { on_describe: "unreachable".into(), ..Guest::default() }),
            "while describing",
        ),
        (
            "memory-in-describe",
            guest(Guest {
                on_describe: "(loop $l (drop (memory.grow (i32.const 1000))) (br $l))".into(),
                ..Guest::default()
            }),
            "bytes",
        ),
        (
            "result-of-describe",
            guest(Guest { on_describe: "(return (i32.const -4))".into(), ..Guest::default() }),
            "malformed",
        ),
        (
            "many-instances",
            guest(Guest { top: format!("(core module $m){}", instances(300)), ..Guest::default() }),
            "too many parts",
        ),
        ("socket", guest(Guest { top: sockets.into(), ..Guest::default() }), "`create-tcp-socket`"),
        ("id-that-is-a-path", check(Check { id: "../x".into(), ..Check::default() }), "lower-case"),
        ("id-with-escapes", check(Check { id: "\u{1b}[2J".into(), ..Check::default() }), "lower-case"),
        ("no-rules", check(Check { rules: vec![], ..Check::default() }), "no rules"),
        ("glob-that-is-absolute", check(Check { files: vec!["/etc/*".into()], ..Check::default() }), "relative"),
        ("glob-of-2-kib", check(Check { files: vec!["x".repeat(2048)], ..Check::default() }), "2048 bytes"),
    ]);
}

#[test]
fn a_schema_reaches_nothing_and_keeps_nobody_busy() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    port.set_nonblocking(true).unwrap();
    let address = format!("{{\"$ref\": \"http://{}/schema\"}}", port.local_addr().unwrap());
    let doubling: Vec<String> = (0..40)
        .map(|n| {
            format!("\"{n}\": {{\"anyOf\": [{{\"$ref\": \"#/$defs/{0}\"}}, {{\"$ref\": \"#/$defs/{0}\"}}]}}", n + 1)
        })
        .collect();
    let doubling = format!("{{\"$ref\": \"#/$defs/0\", \"$defs\": {{{}, \"40\": {{}}}}}}", doubling.join(", "));
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(100), "}".repeat(100));
    let with = |schema: &str| {
        let check = Check { schema: Some(schema.to_owned()), ..Check::default() };
        let pack = guests::Pack { checks: vec![check], ..Default::default() };
        compiled(&Guest { pack, ..Guest::default() })
    };
    each_is_refused(vec![
        ("file", with("{\"$ref\": \"file:///etc/passwd\"}"), "only references within it"),
        ("address", with(&address), "only references within it"),
        ("elsewhere", with("{\"properties\": {\"a\": {\"$ref\": \"other.json#/x\"}}}"), "only references within it"),
        ("itself", with("{\"$ref\": \"#\"}"), "circle"),
        (
            "circle",
            with("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"allOf\": [{\"$ref\": \"#/$defs/a\"}]}}}"),
            "circle",
        ),
        ("doubling", with(&doubling), "too many"),
        ("dynamic", with("{\"$dynamicRef\": \"#x\"}"), "not taken"),
        ("deep", with(&deep), "deeper"),
        ("huge-pattern", with("{\"pattern\": \"((a{1000}){1000}){1000}\"}"), "not valid"),
        ("no-json", with("{"), "not JSON"),
        ("of-300-kib", with(&format!("{{\"description\": \"{}\"}}", "x".repeat(300 << 10))), "bytes"),
    ]);
    assert!(port.accept().is_err(), "nobody asked for it");
}
