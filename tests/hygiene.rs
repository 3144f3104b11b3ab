//! The hygiene pack through the sandbox, on trees as people have them.

use crate::support::{Project, hygiene, row};
use std::fs;
use std::os::unix::fs::symlink;

const CONFIG: &str = r#"
[packs.hygiene]
source = "file:hygiene.wasm"
allow = ["tree:**", "tree:!hygiene.wasm"]

[checks.conflict-markers]
use = "hygiene/conflict-markers"
[checks.trailing-whitespace]
use = "hygiene/trailing-whitespace"
[checks.final-newline]
use = "hygiene/final-newline"
[checks.large-files]
use = "hygiene/large-files"

[scenarios.default]
checks = ["conflict-markers", "trailing-whitespace", "final-newline", "large-files"]
fail-fast = false
"#;

fn project() -> Project {
    let project = Project::with(CONFIG);
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    project
}

#[test]
fn a_clean_tree_passes() {
    let project = project();
    project.write("src/a.rs", "fn main() {}\n").write("empty", "").write("crlf", "a\r\nb\r\n");
    project.write("binary", b"\x7fELF\0\0  \n<<<<<<< \n").write("latin-1", b"caf\xe9\n").write("a\nb  ", "x\n");
    symlink("/etc/passwd", project.path("link")).unwrap();
    let ran = project.run(&["verify"]).exits(0);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_project_says_what_rules_weigh_and_what_fails() {
    let outcome = |lines: &str, scenario: &str| {
        let project = Project::with(&format!(
            "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\"]\n\
             [checks.end]\nuse = \"hygiene/final-newline\"\nfiles = [\"src/**\"]\n{lines}\n\
             [scenarios.default]\nchecks = [\"end\"]\n{scenario}\n"
        ));
        fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
        project.write("src/a", "no end").write("src/b", "two ends\n\n");
        let (_, document) = project.verify();
        let row = &document["record"]["verdict"]["rows"][0];
        let findings = row["findings"].as_array().unwrap().iter();
        let weights: Vec<String> = findings.map(|one| one["severity"].as_str().unwrap().to_owned()).collect();
        (row["outcome"].clone(), weights, document["record"]["verdict_digest"].clone())
    };
    let of = |lines: &str, scenario: &str| {
        let (outcome, weights, _) = outcome(lines, scenario);
        format!("{} {}", outcome.as_str().unwrap(), weights.join(" "))
    };
    assert_eq!(of("", ""), "failed error error");
    assert_eq!(
        of("severities = { missing-newline = \"warning\", extra-newlines = \"note\" }", ""),
        "passed warning note"
    );
    assert_eq!(of("severities = { missing-newline = \"off\" }", ""), "failed error");
    assert_eq!(of("severities = { missing-newline = \"off\", extra-newlines = \"off\" }", ""), "passed ");
    let noted = "severities = { missing-newline = \"warning\", extra-newlines = \"note\" }";
    assert_eq!(of(noted, "fail-on = \"warning\""), "failed warning note");
    assert_eq!(
        of("severities = { missing-newline = \"off\", extra-newlines = \"note\" }", "fail-on = \"warning\""),
        "passed note"
    );
    assert_eq!(of(noted, "fail-on = \"note\""), "failed warning note");
    // A verdict under other rules is another one, also where nothing is found.
    let off = "severities = { missing-newline = \"off\", extra-newlines = \"off\" }";
    assert_ne!(outcome(off, "").2, outcome(off, "fail-on = \"note\"").2);
}

#[test]
fn a_rule_that_the_check_does_not_have_is_told() {
    let project = Project::with(
        "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\"]\n\
         [checks.end]\nuse = \"hygiene/final-newline\"\nseverities = { mising-newline = \"off\", other = \"note\" }\n",
    );
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).stderr);
}

#[test]
fn what_is_wrong_is_found_and_placed() {
    let project = project();
    project
        .write("conflict.txt", "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\nb\n")
        .write("space.rs", "fn main() { }\n  \nlet caf\u{e9} = 1;\t\n")
        .write("no-newline", "text")
        .write("newlines", "text\n\n\n")
        .write("crlf.txt", "a \r\nb\r\n")
        .write("latin-1", b"caf\xe9 \n")
        .write("big.bin", vec![b'x'; 600 << 10])
        .write("two\nlines", "x ");
    let ran = project.run(&["verify"]).exits(1);
    insta::assert_snapshot!(ran.shown());
    let (_, document) = project.verify();
    insta::assert_json_snapshot!(row(&document, "trailing-whitespace")["findings"]);
}

#[test]
fn a_file_of_50_megabytes_is_judged() {
    let project = project();
    let mut contents = b"a line of text\n".repeat(50 << 16);
    contents.extend_from_slice(b"last \n");
    project.write("big.txt", contents);
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    let place = &row(&document, "trailing-whitespace")["findings"][0]["place"];
    assert_eq!(place["start"]["line"], (50 << 16) + 1);
    assert_eq!(row(&document, "final-newline")["outcome"], "passed");
    assert_eq!(row(&document, "large-files")["outcome"], "failed");
}

#[test]
fn options_are_checked_against_the_schema_of_the_check() {
    let project = Project::with(
        "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\"]\n\n\
         [checks.large]\nuse = \"hygiene/large-files\"\nconfig = { max-kib = \"many\" }\n\n\
         [checks.space]\nuse = \"hygiene/trailing-whitespace\"\nconfig = { markdown-linebreaks = true }\n",
    );
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn an_unknown_check_of_a_pack() {
    let project = Project::with(
        "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\"]\n\n[checks.a]\nuse = \"hygiene/large-file\"\n",
    );
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).shown());
}

#[test]
fn a_pack_says_what_it_holds() {
    let project = project();
    let ran = project.run(&["pack", "inspect", "hygiene.wasm"]).exits(0);
    // Digest and size depend on the toolchain that built it.
    let lines = ran.stdout.lines().filter(|line| !line.starts_with("digest") && !line.starts_with("size"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    project.run(&["pack", "inspect", "hygiene.wasm", "--json"]).exits(0);
    project.run(&["pack", "inspect", "nothing.wasm"]).exits(2);
}

#[test]
fn the_same_tree_in_two_folders_at_two_times_has_one_verdict() {
    let digests: Vec<_> = ["0101", "0626"]
        .iter()
        .map(|when| {
            let project = project();
            let names = ["b", "a", "c/d", "c/a b"];
            let order: Vec<_> = if *when == "0101" { names.to_vec() } else { names.iter().rev().copied().collect() };
            for name in order {
                project.write(name, format!("{name} \n"));
            }
            let touched = std::process::Command::new("touch")
                .args(["-t", &format!("2020{when}0000")])
                .arg(project.path("a"))
                .status();
            assert!(touched.unwrap().success());
            let mut command = project.command(&["verify", "--json"]);
            command.env("TZ", if *when == "0101" { "UTC" } else { "Asia/Tokyo" }).env("LANG", "C");
            let ran = project.ran(command).exits(1);
            let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            document["record"]["verdict_digest"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn files_narrow_what_a_check_is_about() {
    let project = Project::with(
        "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\", \"tree:!secret/**\"]\n\n\
         [checks.some]\nuse = \"hygiene/trailing-whitespace\"\nfiles = [\"**/*.txt\", \"!skip/**\"]\n",
    );
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    for path in ["a.txt", "deep/b.txt", "c.md", "skip/d.txt", "secret/e.txt"] {
        project.write(path, "x \n");
    }
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    let findings = row(&document, "some")["findings"].as_array().unwrap();
    let paths: Vec<_> = findings.iter().map(|finding| finding["place"]["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a.txt", "deep/b.txt"]);
}

#[test]
fn a_scope_without_files_is_nothing_verified() {
    let project = Project::with(
        "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\"]\n\n\
         [checks.none]\nuse = \"hygiene/final-newline\"\nfiles = [\"**/*.zig\"]\n",
    );
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_repository_inside_is_judged_with_the_rest() {
    let project = project();
    project.write("nested/a.txt", "x \n");
    project.committed_at("nested");
    project.committed();
    let (code, document) = project.verify();
    assert_eq!(code, 1);
    let findings = row(&document, "trailing-whitespace")["findings"].as_array().unwrap();
    assert_eq!(findings[0]["place"]["path"], "nested/a.txt");
    assert_eq!(row(&document, "final-newline")["outcome"], "passed");
}

#[test]
fn a_file_that_cannot_be_read_makes_its_checks_errors() {
    let project = project();
    project.write("secret", "x \n").write("open", "x\n");
    let before = project.run(&["verify"]).exits(1);
    assert!(before.stdout.contains("secret:1:2"), "{}", before.stdout);
    std::os::unix::fs::chown(project.path("secret"), Some(0), Some(0)).ok();
    fs::set_permissions(project.path("secret"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let ran = project.ran(project.as_nobody(&["verify", "--json"])).exits(1);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(row(&document, "final-newline")["outcome"], serde_json::json!({"error": "host"}));
    let message = crate::support::around(&document, "final-newline")["message"].as_str().unwrap();
    assert!(message.contains("`secret` cannot be read"), "{message}");
}

#[test]
fn what_packs_do_not_see_is_named() {
    let project = project();
    let name = std::os::unix::ffi::OsStrExt::from_bytes(&b"lat\xe9"[..]);
    fs::write(project.root().join(std::path::Path::new::<std::ffi::OsStr>(name)), "x \n").unwrap();
    // A check that is about it would be an error.
    let line = |line: &str| match line.strip_prefix("use") {
        Some(_) => format!("{line}\nfiles = [\"**\", \"!lat?\"]\n"),
        None => format!("{line}\n"),
    };
    let without: String = CONFIG.lines().map(line).collect();
    project.write("probity.toml", without);
    let ran = project.run(&["verify"]).exits(0);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn names_of_any_script_are_judged() {
    let project = project();
    for name in ["ab", "漢字1.md", "漢字2.md", "漢字3.md", "é/ü.txt", "😀"] {
        project.write(name, "x\n");
    }
    project.write("漢字4.txt", "x \n");
    let ran = project.run(&["verify"]).exits(1);
    assert!(ran.stdout.contains("漢字4.txt:1:2"), "{}", ran.stdout);
}
