//! The same tree and the same packs give the same report and use the same fuel, wherever and whenever that is.

use crate::support::guests::{FILE_CALLS, FREE, Guest, SCRATCH, call};
use crate::support::{Project, Ran, hygiene, row};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
[packs.hygiene]
source = "file:hygiene.wasm"
allow = ["tree:**", "tree:!*.wasm"]
[packs.senses]
source = "file:senses.wasm"
allow = ["tree:**", "tree:!*.wasm"]

[checks.conflict-markers]
use = "hygiene/conflict-markers"
[checks.trailing-whitespace]
use = "hygiene/trailing-whitespace"
[checks.final-newline]
use = "hygiene/final-newline"
[checks.large-files]
use = "hygiene/large-files"
[checks.senses]
use = "senses/look"

[scenarios.default]
checks = ["conflict-markers", "trailing-whitespace", "final-newline", "large-files", "senses"]
fail-fast = false
"#;

/// A guest that looks at everything that could differ (listings in their order, metadata and hashes of it, clocks,
/// randomness), and reports one number that is made of all that it saw.
fn senses() -> Guest {
    let mut calls = FILE_CALLS.to_vec();
    calls.extend([
        call("stat", "fs", "[method]descriptor.stat", "(param i32 i32)"),
        call("hash", "fs", "[method]descriptor.metadata-hash", "(param i32 i32)"),
        call("list", "fs", "[method]descriptor.read-directory", "(param i32 i32)"),
        call("next", "fs", "[method]directory-entry-stream.read-directory-entry", "(param i32 i32)"),
        call("random", "random", "get-random-u64", "(result i64)"),
        call("ticks", "monotonic", "now", "(result i64)"),
        call("time", "wall", "now", "(param i32)"),
    ]);
    let more = format!(
        "(global $seen (mut i64) (i64.const -3750763034362895579))
         (func $take (param $from i32) (param $len i32)
           (loop $l
             (if (local.get $len) (then
               (global.set $seen (i64.mul (i64.const 1099511628211)
                 (i64.xor (global.get $seen) (i64.load8_u (local.get $from)))))
               (local.set $from (i32.add (local.get $from) (i32.const 1)))
               (local.set $len (i32.sub (local.get $len) (i32.const 1)))
               (br $l)))))
         (func $number (param $n i64)
           (i64.store (i32.const {FREE}) (local.get $n)) (call $take (i32.const {FREE}) (i32.const 8)))
         (func $clear (memory.fill (i32.const {FREE}) (i32.const 0) (i32.const 256)))
         (func $node (param $node i32)
           (call $clear) (call $stat (local.get $node) (i32.const {FREE})) (call $take (i32.const {FREE}) (i32.const 104))
           (call $clear) (call $hash (local.get $node) (i32.const {FREE})) (call $take (i32.const {FREE}) (i32.const 24)))"
    );
    let at = |offset: u32| format!("(i32.const {})", FREE + offset);
    let on_run = format!(
        "(call $directories {free}) (local.set $a (i32.load (i32.load {free})))
         (call $node (local.get $a))
         (call $list (local.get $a) {free}) (local.set $b (i32.load {four}))
         (block $done (loop $l
           (call $clear) (call $next (local.get $b) {free})
           (br_if $done (i32.eqz (i32.load8_u {four})))
           (call $take {eight} (i32.const 1))
           (call $take (i32.load {twelve}) (i32.load {sixteen}))
           (call $open (local.get $a) (i32.const 0) (i32.load {twelve}) (i32.load {sixteen}) (i32.const 0) (i32.const 1) {free})
           (if (i32.eqz (i32.load8_u {free})) (then (call $node (i32.load {four}))))
           (br $l)))
         (call $number (call $random)) (call $number (call $random))
         (call $number (call $ticks)) (call $number (call $ticks))
         (call $clear) (call $time {free}) (call $take {free} (i32.const 12))
         (i32.store {result} (i32.const 0)) (i32.store {findings} (i32.const {SCRATCH})) (i32.store {none} (i32.const 0))
         (i32.store {stats} {stat}) (i32.store {one} (i32.const 1))
         (i32.store {stat} (i32.const {SCRATCH})) (i32.store {length} (i32.const 4))
         (i64.store {value} (i64.shr_u (global.get $seen) (i64.const 11)))
         (return {result})",
        free = at(0),
        four = at(4),
        eight = at(8),
        twelve = at(12),
        sixteen = at(16),
        result = at(1024),
        findings = at(1028),
        none = at(1032),
        stats = at(1036),
        one = at(1040),
        stat = at(2048),
        length = at(2052),
        value = at(2056),
    );
    Guest { calls, more, on_run, scratch: b"seen".to_vec(), ..Guest::default() }
}

const FILES: [(&str, &str); 7] = [
    ("b", "b \n"),
    ("a", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"),
    ("c/d", "no end"),
    ("c/a b", "fine\n"),
    ("I", "i\n"),
    ("\u{e9}t\u{e9}", "summer\t\n"),
    ("z/y/x", ""),
];

/// One copy of the tree; `reversed` makes its files in the other order.
fn copy(reversed: bool) -> Project {
    let project = Project::with(CONFIG);
    let mut files = FILES.to_vec();
    if reversed {
        // Other inodes, and another order in the folders of the disk.
        project.write("zz", "to be removed").write("aa", "to be removed");
        files.reverse();
    }
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    project.component("senses.wasm", &senses().text());
    for (path, text) in files {
        project.write(path, text);
    }
    if reversed {
        fs::remove_file(project.path("zz")).unwrap();
        fs::remove_file(project.path("aa")).unwrap();
    }
    std::os::unix::fs::symlink("b", project.path("link")).unwrap();
    project
}

fn each(folder: &Path, does: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            each(&path, does);
        }
        does(&path);
    }
    does(folder);
}

/// What may not differ: the verdict, its digest, and the fuel of each check.
fn report(ran: Ran) -> (String, Vec<u64>) {
    let ran = ran.exits(1);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let record = &document["record"];
    let fuel = record["rows"].as_array().unwrap().iter().map(|row| row["fuel"].as_u64().unwrap()).collect();
    assert!(row(&document, "senses")["stats"][0][1].as_u64().unwrap() > 0);
    (format!("{}\n{:#}", record["verdict_digest"].as_str().unwrap(), record["verdict"]), fuel)
}

#[test]
fn every_copy_of_a_tree_has_the_same_report_and_uses_the_same_fuel() {
    let verify = ["verify", "--json"];
    let first = copy(false);
    let expected = report(first.run(&verify));
    assert_eq!(report(first.run(&verify)), expected, "again");

    let project = copy(true);
    assert_eq!(report(project.run(&verify)), expected, "made in another order");

    let project = copy(false);
    each(&project.root(), &mut |path| {
        let touched = Command::new("touch").args(["-h", "-t", "199912312359.58"]).arg(path).status();
        assert!(touched.unwrap().success());
    });
    assert_eq!(report(project.run(&verify)), expected, "at another time");

    for (name, value) in [
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LANG", "C"),
        ("LC_ALL", "POSIX"),
        ("TZ", "Asia/Kathmandu"),
        ("HOME", "/nonexistent"),
        ("USER", "somebody"),
        ("RUST_BACKTRACE", "1"),
        ("SOURCE_DATE_EPOCH", "1"),
    ] {
        let project = copy(false);
        let mut command = project.command(&verify);
        command.env(name, value);
        assert_eq!(report(project.ran(command)), expected, "{name}={value}");
    }

    let project = copy(false);
    let mut command = project.command(&verify);
    command.current_dir(project.path("z/y"));
    assert_eq!(report(project.ran(command)), expected, "from a folder of it");
    let root = project.root();
    let mut command = project.command(&["-C", root.to_str().unwrap(), "verify", "--json"]);
    command.current_dir("/");
    assert_eq!(report(project.ran(command)), expected, "from elsewhere");

    let project = copy(false);
    each(&project.root(), &mut |path| {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        if !path.is_symlink() {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    });
    assert_eq!(report(project.ran(project.after("umask 077", &verify))), expected, "under another umask");
}

#[test]
fn another_user_has_the_same_report() {
    let expected = report(copy(false).run(&["verify", "--json"]));
    let project = copy(true);
    if rustix::process::geteuid().is_root() {
        each(&project.root(), &mut |path| {
            if !path.is_symlink() {
                chown(path, Some(65534), Some(65534)).unwrap();
            }
        });
    }
    assert_eq!(report(project.ran(project.as_nobody(&["verify", "--json"]))), expected);
}

#[test]
fn another_tree_is_seen() {
    // Otherwise the number would be one that never differs.
    let seen = |project: &Project| row(&project.verify().1, "senses")["stats"].clone();
    let first = seen(&copy(false));
    let project = copy(false);
    project.write("b", "longer than it was\n");
    assert_ne!(seen(&project), first, "a size");
    let project = copy(false);
    fs::rename(project.path("b"), project.path("bb")).unwrap();
    assert_ne!(seen(&project), first, "a name");
}
