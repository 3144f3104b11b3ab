//! Trees that bite: what is no file, what cannot be looked into, what leads elsewhere, and what moves.

use crate::support::{Project, eventually, hygiene, row};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

/// A logic check that reads one file.
const READS: &str =
    "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:file\"]\n\n[checks.look]\nuse = \"p/final-newline\"\n";

fn record(project: &Project) -> Value {
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    document["record"].clone()
}

fn tree(project: &Project) -> String {
    record(project)["verdict"]["subject"]["tree"].as_str().unwrap().to_owned()
}

/// The record of a run by a user who may do nothing in particular, of a project that is theirs.
fn record_of_nobody(project: &Project) -> Value {
    let ran = project.ran(project.as_nobody(&["verify", "--json"])).exits(0);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["record"].clone()
}

/// The digest of a tree of files, as `docs/architecture.md` says.
fn tree_of(files: &[(&str, [u8; 32])]) -> String {
    let mut bytes = (files.len() as u64).to_le_bytes().to_vec();
    for (path, digest) in files {
        bytes.extend((path.len() as u64).to_le_bytes());
        bytes.extend(path.as_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(digest);
    }
    let digest = blake3::derive_key("probity 2026-12-01 tree v1", &bytes);
    format!("blake3:{}", blake3::Hash::from_bytes(digest).to_hex())
}

fn special(path: &Path, kind: FileType, device: u64) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device).unwrap();
}

fn give(path: &Path, uid: u32) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            give(&path, uid);
        }
        std::os::unix::fs::lchown(&path, Some(uid), Some(uid)).unwrap();
    }
    chown(path, Some(uid), Some(uid)).unwrap();
}

#[test]
fn what_is_no_file_counts_by_its_kind() {
    let project = Project::with(GREEN);
    let place = project.path("thing");
    let mut seen = vec![tree(&project)];
    let mut look = |what: &str| {
        let record = record(&project);
        assert_eq!(record["hidden"][0]["path"], "thing", "{what}");
        let tree = record["verdict"]["subject"]["tree"].as_str().unwrap().to_owned();
        assert!(!seen.contains(&tree), "{what}");
        seen.push(tree);
        fs::remove_file(&place).unwrap();
    };
    special(&place, FileType::Fifo, 0);
    look("a FIFO");
    let socket = std::os::unix::net::UnixListener::bind(&place).unwrap();
    look("a socket");
    drop(socket);
    // Without the right to, no device can be made, and none gets into a tree.
    if rustix::process::geteuid().is_root() {
        for (kind, minor) in
            [(FileType::CharacterDevice, 3), (FileType::CharacterDevice, 5), (FileType::BlockDevice, 3)]
        {
            let made = mknodat(CWD, &place, kind, Mode::from_raw_mode(0o600), makedev(1, minor));
            if made.is_ok() {
                look("a device");
            }
        }
    }
}

#[test]
fn a_hard_link_is_a_file_of_its_contents() {
    let project = Project::with(GREEN);
    let outside = project.outside().join("outside");
    fs::write(&outside, "x").unwrap();
    project.write("file", "x");
    let before = tree(&project);
    fs::remove_file(project.path("file")).unwrap();
    fs::hard_link(&outside, project.path("file")).unwrap();
    assert_eq!(tree(&project), before);
    fs::write(&outside, "y").unwrap();
    assert_ne!(tree(&project), before);
}

#[test]
fn links_that_lead_out_are_named_and_circles_end() {
    let project = Project::with(GREEN);
    fs::write(project.outside().join("secret"), "x").unwrap();
    fs::create_dir(project.path("in")).unwrap();
    for (name, text) in [
        ("circle", "circle"),
        ("here", "."),
        ("in/up", ".."),
        ("in/fine", "../probity.toml"),
        ("absolute", "/etc/passwd"),
        ("in/beyond", "../../secret"),
        ("through", "in/up/../secret"),
        ("esc\u{1b}", "/\u{1b}[2J"),
    ] {
        symlink(text, project.path(name)).unwrap();
    }
    let before = record(&project);
    let open: Vec<&str> = before["open"].as_array().unwrap().iter().map(|r| r["path"].as_str().unwrap()).collect();
    assert_eq!(open, ["absolute", "esc\u{1b}", "in/beyond", "through"]);
    assert_eq!(before["open"][2]["why"], "leads out of the tree: ../../secret");
    fs::write(project.outside().join("secret"), "y").unwrap();
    assert_eq!(tree(&project), before["verdict"]["subject"]["tree"], "nothing was followed");
    insta::assert_snapshot!(project.run(&["verify"]).exits(0).shown());
}

#[test]
fn a_folder_that_cannot_be_listed_is_named_and_counts() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for repository in [false, true] {
        let project = Project::with(GREEN);
        project.write("closed/file", "x").write("half/file", "x").write("shut", "x").write("new/deep/file", "x");
        fs::write(project.path(".gitignore"), "new\n").unwrap();
        if repository {
            project.committed();
        }
        fs::write(project.path(".gitignore"), "").unwrap();
        give(&project.root(), 65534);
        let plain = record_of_nobody(&project);
        assert_eq!(plain.get("open"), None);
        for (name, mode) in [("closed", 0), ("half", 0o644), ("shut", 0), ("new/deep", 0)] {
            fs::set_permissions(project.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let record = record_of_nobody(&project);
        let (folder, file) = ("a folder that this user cannot list", "not readable for this user");
        let mut named = vec![("closed", folder), ("half/file", file), ("new/deep", folder), ("shut", file)];
        if repository {
            named.insert(1, ("closed/file", file));
        }
        let named: Vec<Value> = named.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        assert_eq!(record["open"], Value::Array(named), "in a repository: {repository}");
        assert_ne!(record["verdict"]["subject"]["tree"], plain["verdict"]["subject"]["tree"]);
        if repository {
            assert_eq!(record["dirty"], true);
        }
    }
}

#[test]
fn a_check_says_nothing_of_a_folder_that_it_cannot_see() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = |allow: &str, folder: &str| {
        let project = Project::with(&READS.replace("\"tree:file\"", allow));
        project.write("p.wasm", fs::read(hygiene()).unwrap()).write("file", "x\n").write("closed/a/b.rs", "x\n");
        give(&project.root(), 65534);
        fs::set_permissions(project.path(folder), fs::Permissions::from_mode(0o000)).unwrap();
        let ran = project.ran(project.as_nobody(&["verify", "--json"]));
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        row(&document, "look")["outcome"].clone()
    };
    for folder in ["closed", "closed/a"] {
        for allow in [
            "\"tree:**\", \"tree:!p.wasm\"",
            "\"tree:file\", \"tree:**/*.rs\"",
            "\"tree:file\", \"tree:closed/a/b.rs\"",
        ] {
            assert_eq!(outcome(allow, folder), json!({"error": "host"}), "{allow} {folder}");
        }
        for allow in ["\"tree:file\"", "\"tree:**\", \"tree:!p.wasm\", \"tree:!closed/**\""] {
            assert_eq!(outcome(allow, folder), json!("passed"), "{allow} {folder}");
        }
    }
}

#[test]
fn names_of_any_bytes_count_and_are_told_apart() {
    for repository in [false, true] {
        let project = Project::with(GREEN);
        if repository {
            project.committed();
        }
        let mut seen = vec![tree(&project)];
        for name in [&b"a\nb"[..], b"a\xffb", b"a\xfeb", b"\x01", b"a\\nb"] {
            let path = project.root().join(std::ffi::OsStr::from_bytes(name));
            fs::write(&path, "x").unwrap();
            let record = record(&project);
            let tree = record["verdict"]["subject"]["tree"].as_str().unwrap().to_owned();
            assert!(!seen.contains(&tree), "{name:?}");
            seen.push(tree);
            let why = json!([{ "path": "a\u{fffd}b", "why": "its name is not UTF-8" }]);
            let hidden = if std::str::from_utf8(name).is_ok() { json!([]) } else { why };
            assert_eq!(record["hidden"], hidden);
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn holes_are_read_as_what_they_are() {
    // Of 4 GiB and one byte of nothing, as one plain hash. It takes seconds to read, so it is read once: no command runs.
    const DIGEST: &str = "1c5383e3e425b8b27d54e1b6bf91bb3320b8ba1496f7483f87b5f4490a542794";
    let project = Project::in_memory();
    project
        .write("probity.toml", READS.replace("tree:file", "tree:sparse"))
        .write("p.wasm", fs::read(hygiene()).unwrap());
    fs::File::create(project.path("sparse")).unwrap().set_len((4 << 30) + 1).unwrap();
    let digest = |name: &str| *blake3::hash(&fs::read(project.path(name)).unwrap()).as_bytes();
    let sparse = *blake3::Hash::from_hex(DIGEST).unwrap().as_bytes();
    let entries = [("p.wasm", digest("p.wasm")), ("probity.toml", digest("probity.toml")), ("sparse", sparse)];
    assert_eq!(tree(&project), tree_of(&entries));
}

#[test]
fn a_file_that_grows_while_it_is_verified_makes_the_run_stale() {
    let project = Project::with("[checks.grow]\ncommand = [\"./grow\"]\n");
    project.script("grow", "i=0; while [ $i -lt 1000 ]; do echo $i >> log; i=$((i+1)); done").write("log", "");
    let (code, document) = project.verify();
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &json!("stale")));
    assert_eq!(document["record"]["moved"], json!(["log"]));
    // Somebody else appends all the time, and each look ends all the same.
    let mut writer = Command::new("sh");
    let mut writer =
        writer.args(["-c", "while :; do echo more; done >> log"]).current_dir(project.root()).spawn().unwrap();
    eventually("it grows", || fs::metadata(project.path("log")).unwrap().len() > 10_000);
    let (_, document) = project.verify();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(document["record"]["verdict"]["outcome"], "stale");
}

#[test]
fn a_file_that_became_a_pipe_before_it_is_read_is_no_contents_and_nothing_waits() {
    let swap = "[checks.swap]\ncommand = [\"./swap\"]\n\n";
    let project = Project::with(&format!("{swap}{READS}"));
    project.write("p.wasm", fs::read(hygiene()).unwrap()).write("file", "x\n");
    project.script("swap", "rm file && mkfifo file");
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    assert_eq!(row(&document, "look")["outcome"], json!({"error": "moved"}), "{document:#}");
    assert_eq!(document["record"]["verdict"]["outcome"], "stale");
    assert_eq!(document["record"]["moved"], json!(["file"]));
}

#[test]
fn submodules_and_repositories_inside_bring_what_is_theirs() {
    let project = Project::with(GREEN);
    for folder in ["sub", "nested"] {
        project.write(&format!("{folder}/file"), "x").write(&format!("{folder}/.gitignore"), "junk\n");
        project.committed_at(folder);
    }
    project.write(".gitignore", "/nested\n");
    let entry = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n";
    project.write(".gitmodules", entry).committed();
    let clean = record(&project);
    assert_eq!(clean["dirty"], false);
    // What the outer repository ignores is not there at all; what an inner one ignores neither.
    project.write("nested/file", "y").write("sub/junk", "y");
    assert_eq!(record(&project)["verdict"]["subject"], clean["verdict"]["subject"]);
    symlink("../../secret", project.path("sub/out")).unwrap();
    let dirty = record(&project);
    assert_eq!((&dirty["dirty"], &dirty["open"][0]["path"]), (&json!(true), &json!("sub/out")));
}

#[test]
fn a_tree_of_many_files_is_taken() {
    const FOLDERS: usize = 400;
    const FILES: usize = 500;
    let project = Project::in_memory();
    project.write("probity.toml", GREEN);
    for folder in 0..FOLDERS {
        let folder = project.path(&format!("{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..FILES {
            fs::write(folder.join(format!("{file}")), "").unwrap();
        }
    }
    let before = record(&project);
    assert_eq!(before["moved"], json!([]));
    project.write("199/249", "x");
    assert_ne!(tree(&project), before["verdict"]["subject"]["tree"]);
}

#[test]
fn what_is_excluded_is_not_there_unless_it_is_tracked() {
    let config = format!("[subject]\nexclude = [\"out/**\", \"!out/kept\"]\n\n{GREEN}");
    for repository in [false, true] {
        let project = Project::with(&config);
        project.write("out/kept", "x").write("out/tracked", "x");
        if repository {
            project.committed();
        }
        let plain = record(&project);
        project
            .write("out/new", "x")
            .write("out/deep/new", "x")
            .write("out/nested/file", "x")
            .committed_at("out/nested");
        symlink("/etc", project.path("out/link")).unwrap();
        let after = record(&project);
        assert_eq!(after["verdict"]["subject"]["tree"], plain["verdict"]["subject"]["tree"]);
        assert_eq!((&after["dirty"], after.get("open")), (&plain["dirty"], None));
        project.write("out/tracked", "y");
        assert_eq!(tree(&project) != plain["verdict"]["subject"]["tree"].as_str().unwrap(), repository);
        project.write("out/tracked", "x").write("out/kept", "y");
        assert_ne!(tree(&project), plain["verdict"]["subject"]["tree"].as_str().unwrap());
    }
}

#[test]
fn what_is_remembered_of_a_tree_costs_nothing_when_it_is_lost_and_is_not_believed_when_it_is_forged() {
    let project = Project::with(GREEN);
    project.write("file", "x").committed();
    let memories = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(project.path(".git/probity")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().as_bytes().starts_with(b"tree-")).collect()
    };
    let looks = || {
        let ran = project.run(&["verify", "--fresh", "-vv"]).exits(0);
        let line = ran.stderr.lines().find(|line| line.contains("snapshot")).unwrap().to_owned();
        (line.contains("learnt=true"), ran.stderr.contains("cat-file"))
    };
    assert_eq!(looks(), (true, true), "nothing is known yet");
    eventually("the clock moves on and nothing is read", || looks() == (false, false));
    let before = tree(&project);
    let [memory] = &memories()[..] else { panic!("{:?}", memories()) };
    let whole = fs::read(memory).unwrap();
    // Another user's, one for another folder, one that was tampered with, none, and one that cannot be read or written.
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(memory, other).unwrap();
    assert_eq!(looks(), (true, true));
    assert_eq!(looks(), (false, false), "and is made again");
    let mut foreign = project.command(&["verify", "-vv"]);
    foreign.env("XDG_STATE_HOME", project.outside().join("other"));
    assert!(project.ran(foreign).exits(0).stderr.contains("learnt=true"));
    for spoil in [&|path: &Path| drop(fs::create_dir(path)), &|path: &Path| special(path, FileType::Fifo, 0)]
        as [&dyn Fn(&Path); 2]
    {
        fs::remove_file(memory).unwrap();
        spoil(memory);
        assert_eq!(looks(), (true, true));
        assert_eq!(tree(&project), before);
        let _ = fs::remove_dir(memory);
        fs::write(memory, &whole).unwrap();
        assert_eq!(looks(), (false, false));
    }
    // What is remembered is of the files as they were.
    project.write("file", "y");
    assert_ne!(tree(&project), before);
}

#[test]
fn the_digest_of_a_tree_is_the_one_another_program_works_out() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/tree.json")).unwrap();
    let vector = vectors.as_array().unwrap().iter().find(|vector| vector["name"] == "a tree to take").unwrap();
    let project = Project::new();
    for entry in vector["entries"].as_array().unwrap() {
        let bytes = |name: &str| -> Vec<u8> {
            let digits = entry[name].as_str().unwrap();
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
        };
        let path = String::from_utf8(bytes("path")).unwrap();
        match entry["kind"].as_str().unwrap() {
            "file" => {
                project.write(&path, bytes("contents"));
            }
            "executable" => {
                project.write(&path, bytes("contents"));
                fs::set_permissions(project.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
            }
            "link" => symlink(std::ffi::OsStr::from_bytes(&bytes("contents")), project.path(&path)).unwrap(),
            "special" => special(&project.path(&path), FileType::Fifo, 0),
            other => panic!("{other}"),
        }
    }
    assert_eq!(tree(&project), vector["digest"].as_str().unwrap());
}
