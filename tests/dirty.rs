//! What is dirty: a file that git itself would check out from the commit is not, whatever it does to line ends on the
//! way; one that differs from that by a byte is. Git is the oracle: it makes each file and is asked for its status.

use crate::support::Project;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

fn record(project: &Project) -> Value {
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    document["record"].clone()
}

#[track_caller]
fn dirty(project: &Project) -> bool {
    record(project)["dirty"].as_bool().unwrap()
}

fn utf16(text: &str, mark: bool, little: bool) -> Vec<u8> {
    let marked = if mark { format!("\u{feff}{text}") } else { text.to_owned() };
    marked.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

/// Files that git makes other bytes of than those that are committed: what is added, and the attributes.
fn converted() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = b"one\ntwo\n".to_vec();
    vec![
        ("crlf", text.clone(), "text eol=crlf"),
        ("eol", text.clone(), "eol=crlf"),
        ("old", text.clone(), "crlf eol=crlf"),
        ("auto", text, "text=auto eol=crlf"),
        ("ident", b"a $Id$ b\n$Id$\n".to_vec(), "ident"),
        ("both", b"$Id$\nx\n".to_vec(), "text eol=crlf ident"),
        ("mark", utf16("größe\n", true, true), "working-tree-encoding=UTF-16LE-BOM"),
        ("any", utf16("größe\n", true, false), "working-tree-encoding=UTF-16"),
        ("little", utf16("größe 😀\r\n", false, true), "working-tree-encoding=UTF-16LE text eol=crlf"),
        ("big", utf16("größe\n", false, false), "working-tree-encoding=utf16be -text"),
    ]
}

/// Has git make every file of the working tree again.
fn check_out(project: &Project, folder: &str) {
    for entry in fs::read_dir(project.path(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path.file_name().unwrap() != ".git" {
            fs::remove_file(path).unwrap();
        }
    }
    project.git(&["-C", folder, "checkout", "-q", "-f", "HEAD", "--", "."]);
    assert_eq!(project.git(&["-C", folder, "status", "--porcelain"]), "");
}

/// Shows that files which are not their blobs are clean, and that each is dirty with one byte changed when git says so.
fn shows(project: &Project, folder: &str, names: &[&str]) {
    let seen = record(project);
    assert_eq!((&seen["dirty"], seen.get("unproven")), (&Value::Bool(false), None), "{seen:#}");
    for name in names {
        let path = format!("{folder}/{name}");
        let made = fs::read(project.path(&path)).unwrap();
        let raw = project.git(&["-C", folder, "hash-object", "--no-filters", name]);
        assert_ne!(raw, project.git(&["-C", folder, "rev-parse", &format!("HEAD:./{name}")]), "{name} shows nothing");
        let mut found = 0;
        for at in [0, made.len() / 2] {
            let mut changed = made.clone();
            changed[at] ^= 1;
            project.write(&path, changed);
            // Within `$Id: …$` a byte is of no account.
            let changed = !project.git(&["-C", folder, "status", "--porcelain"]).is_empty();
            assert_eq!(dirty(project), changed, "{path} at {at}");
            found += usize::from(changed);
        }
        assert!(found > 0, "{path}: nothing was changed");
        project.write(&path, made);
    }
    assert!(!dirty(project));
}

#[test]
fn what_git_makes_of_a_blob_is_clean_and_one_byte_more_is_not() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    let files = converted();
    let attributes: String = files.iter().map(|(name, _, attributes)| format!("{name} {attributes}\n")).collect();
    project.write(".gitattributes", attributes).write("probity.toml", GREEN);
    for (name, contents, _) in &files {
        project.write(name, contents);
    }
    project.committed();
    check_out(&project, ".");
    let names: Vec<&str> = files.iter().map(|(name, ..)| *name).collect();
    shows(&project, ".", &names);
}

#[test]
fn line_ends_that_the_configuration_asks_for_are_clean() {
    let project = Project::with(GREEN);
    project.write("text", "one\ntwo\n").write("binary", b"a\0\r\nb\n").write("lone", "a\rb\r\nc\n").committed();
    project.git(&["config", "core.autocrlf", "true"]);
    check_out(&project, ".");
    shows(&project, ".", &["text"]);
    // The blob's own line ends stay where git guesses, and the rest of the file is converted all the same.
    project.git(&["config", "core.autocrlf", "false"]);
    project.write("kept", "$Id$\r\nx\r\n").git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "with line ends"]);
    project.write(".gitattributes", "kept text=auto ident\n").git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "with attributes"]);
    check_out(&project, ".");
    shows(&project, ".", &["kept"]);
}

#[test]
fn attributes_are_those_of_the_repository_a_file_is_in() {
    let project = Project::new();
    project.write("part/sub/file", "a\nb\n").write("part/sub/.gitattributes", "file eol=crlf\n");
    project
        .write("part/probity.toml", GREEN)
        .write("part/own", "a\nb\n")
        .write(".gitattributes", "/part/own eol=crlf\n");
    project.committed_at("part/sub");
    let entry = "[submodule \"sub\"]\n\tpath = part/sub\n\turl = ./sub\n";
    project.write(".gitmodules", entry).committed();
    check_out(&project, "part/sub");
    check_out(&project, "part");
    let dirty = || {
        let ran = project.run(&["-C", "part", "verify", "--json"]).exits(0);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        document["record"]["dirty"].as_bool().unwrap()
    };
    assert_eq!(fs::read(project.path("part/sub/file")).unwrap(), b"a\r\nb\r\n");
    assert!(!dirty());
    for path in ["part/sub/file", "part/own"] {
        project.write(path, "a\r\nc\r\n");
        assert!(dirty(), "{path}");
        project.write(path, "a\r\nb\r\n");
    }
    assert!(!dirty());
}

#[test]
fn a_large_file_is_clean_when_the_commit_has_its_pointer() {
    use sha2::Digest as _;
    let project = Project::with(GREEN);
    let contents = vec![7_u8; 3 << 20];
    let sum: String = sha2::Sha256::digest(&contents).iter().map(|byte| format!("{byte:02x}")).collect();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{sum}\nsize {}\n", contents.len());
    project.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    project.write("a.bin", &pointer).committed();
    project.git(&["config", "filter.lfs.process", "git-lfs filter-process"]);
    assert!(!dirty(&project), "the pointer itself is what the commit has");
    project.write("a.bin", &contents);
    assert!(!dirty(&project));
    let mut changed = contents;
    changed[1 << 20] ^= 1;
    project.write("a.bin", &changed);
    assert!(dirty(&project));
    // Where nothing is set up for it, git would commit the file itself.
    project.write("a.bin", vec![7_u8; 3 << 20]).git(&["config", "--unset", "filter.lfs.process"]);
    let seen = record(&project);
    let why = "Git LFS is not set up here, and git would commit the file itself, so it counts as changed";
    assert_eq!((&seen["dirty"], &seen["unproven"][0]["why"]), (&true.into(), &why.into()));
    project.write("a.bin", &pointer).write(".gitattributes", "").committed();
    project.write("a.bin", &changed);
    assert!(dirty(&project), "without the attribute a pointer is text");
}

#[test]
fn what_is_staged_is_dirty_whatever_lies_there() {
    let project = Project::with(GREEN);
    project.write("file", "1\n").write("other", "x").committed();
    project.write("file", "2\n").git(&["add", "file"]);
    project.write("file", "1\n");
    assert!(dirty(&project), "git would commit the 2");
    project.git(&["reset", "-q"]);
    assert!(!dirty(&project));
    project.git(&["update-index", "--chmod=+x", "file"]);
    assert!(dirty(&project), "a mode");
    project.git(&["reset", "-q"]);
    project.git(&["rm", "-q", "--cached", "other"]);
    assert!(dirty(&project), "a removal");
    project.git(&["reset", "-q"]);
    // In the middle of a merge the working tree may be as the commit has it, and nothing is settled.
    for (branch, text) in [("one", "one\n"), ("two", "two\n")] {
        project.git(&["checkout", "-q", "-b", branch, "main"]);
        project.write("file", text).git(&["commit", "-q", "-am", branch]);
    }
    let mut merge = std::process::Command::new("git");
    assert!(!merge.args(["merge", "-q", "one"]).current_dir(project.root()).output().unwrap().status.success());
    project.write("file", "two\n");
    assert!(dirty(&project), "unmerged");
}

#[test]
fn what_only_a_filter_could_tell_is_dirty_and_named() {
    let project = Project::with(GREEN);
    project
        .script("../clean", "touch \"$0.ran\"; cat")
        .write(".gitattributes", "a filter=own\n\"b\\033\" filter=own\n");
    project.write("a", "x").write("b\u{1b}", "x").committed();
    let clean = project.outside().join("clean");
    project.git(&["config", "filter.own.clean", clean.to_str().unwrap()]);
    assert!(!dirty(&project), "as it is committed, whatever the filter");
    project.write("a", "y").write("b\u{1b}", "y");
    let seen = record(&project);
    assert_eq!(seen["dirty"], true);
    let why = "the filter `own` is not run, so it counts as changed";
    let named = serde_json::json!([{"path": "a", "why": why}, {"path": "b\u{1b}", "why": why}]);
    assert_eq!(seen["unproven"], named);
    let shown = project.run(&["verify"]).exits(0).stdout;
    let line = format!("not proven to be as committed: a ({why}), b\\u{{1b}} ({why})\n");
    assert!(shown.contains(&line), "{shown}");
    assert!(!project.outside().join("clean.ran").exists());
}

#[test]
fn the_executable_bit_is_that_of_the_index_where_git_does_not_go_by_it() {
    let project = Project::with(GREEN);
    project.script("tool", "true").write("text", "x").committed();
    let tree = |project: &Project| record(project)["verdict"]["subject"]["tree"].clone();
    let before = tree(&project);
    for (name, mode) in [("tool", 0o644), ("text", 0o755)] {
        fs::set_permissions(project.path(name), fs::Permissions::from_mode(mode)).unwrap();
        assert!(dirty(&project), "{name}");
        project.git(&["config", "core.fileMode", "false"]);
        assert_eq!(project.git(&["status", "--porcelain"]), "");
        assert!(!dirty(&project), "{name}");
        assert_eq!(tree(&project), before, "{name}");
        project.git(&["config", "core.fileMode", "true"]);
    }
}

#[test]
fn attributes_that_never_end_are_not_waited_for() {
    let project = Project::with(GREEN);
    project.write("file", "a\n").write("folder/file", "x").committed();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let place = project.path("folder/.gitattributes");
    rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    project.write("folder/file", "y");
    let seen = record(&project);
    assert_eq!((&seen["dirty"], &seen["unproven"][0]["path"]), (&true.into(), &"folder/.gitattributes".into()));
}

#[test]
fn what_judges_is_never_left_out() {
    let config = |exclude: &str| format!("[subject]\nexclude = [{exclude}]\n\n{GREEN}");
    let project = Project::with("");
    fs::remove_file(project.path("probity.toml")).unwrap();
    project.write("a", "x").committed();
    for exclude in ["\"probity.toml\"", "\"**\"", "\"*.toml\""] {
        project.write("probity.toml", config(exclude));
        assert!(dirty(&project), "{exclude}");
    }
    // A component that judges is no less.
    let pack = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n";
    project.write("probity.toml", format!("{}{pack}", config("\"**\"")));
    project.git(&["add", "probity.toml"]);
    project.git(&["commit", "-q", "-m", "x"]);
    project.write("other", "x");
    assert!(!dirty(&project), "nothing but what is excluded");
    project.write("p.wasm", "x");
    assert!(dirty(&project));
}

#[test]
fn before_the_first_commit_everything_is_dirty() {
    let project = Project::with(&format!("[subject]\nexclude = [\"**\"]\n\n{GREEN}"));
    project.git(&["init", "-q"]);
    assert!(dirty(&project));
    project.write(".gitignore", "*\n");
    let ran = project.run(&["verify"]).exits(0);
    assert!(ran.stderr.contains("note: the subject is empty: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("dirty: nothing is committed yet"), "{}", ran.stdout);
}

#[test]
fn a_configuration_that_is_ignored_is_none_of_the_commits() {
    let project = Project::with(GREEN);
    project.write(".gitignore", "/probity.toml\n").write("a", "x").committed();
    let seen = record(&project);
    assert_eq!(seen["dirty"], true);
    assert_eq!(seen["unproven"][0]["path"], "probity.toml", "{seen:#}");
    let said = project.run(&["verify"]).exits(0).stdout;
    let why = "not proven to be as committed: probity.toml (git ignores it, and it says what is verified)";
    assert!(said.contains(why) && said.contains("dirty: "), "{said}");
    // Outside of version control there is no commit that it could be missing in.
    fs::remove_dir_all(project.path(".git")).unwrap();
    let seen = record(&project);
    assert_eq!((&seen["dirty"], seen.get("unproven")), (&Value::Null, None));
}
