//! What holds for all checks of the pack, through its public face.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

use probity_sdk::testing::Subject;
use probity_sdk::{Report, Scope, Severity};

const CONTENT_CHECKS: [&str; 3] = ["conflict-markers", "trailing-whitespace", "final-newline"];

fn run(root: &Path, check: &str) -> Report {
    let subject = Subject::scan(root).unwrap();
    subject.run(&hygiene::pack(), check, "{}").unwrap()
}

#[test]
fn the_description_keeps_to_the_contract() {
    let pack = hygiene::pack().describe();
    assert_eq!(pack.name, "hygiene");
    assert_eq!(pack.version, env!("CARGO_PKG_VERSION"));
    let ids: Vec<_> = pack.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids, ["conflict-markers", "trailing-whitespace", "final-newline", "large-files"]);
    let is_id =
        |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let is_sentence = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_uppercase()) && text.ends_with('.') && !text.contains('\n')
    };
    assert!(is_sentence(&pack.summary));
    for check in &pack.checks {
        assert!(is_id(&check.id) && !check.explain.is_empty() && !check.wants_changes);
        assert_eq!(check.files, ["**"]);
        assert_eq!(check.needs.len(), 1);
        assert!(is_sentence(&check.needs[0].why), "{}", check.needs[0].why);
        let is_tree = check.scope == Scope::Tree;
        assert_eq!(is_tree, check.id == "large-files");
        for rule in &check.rules {
            assert!(is_id(&rule.id));
            assert!(is_sentence(&rule.summary), "{}", rule.summary);
            assert_eq!(rule.severity, Severity::Error);
            assert!(rule.explain.ends_with('.'), "{}", rule.explain);
        }
    }
}

#[test]
fn findings_are_of_declared_rules() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), ">>>>>>> b\n<<<<<<< a\n=======\n>>>>>>> b\nx ").unwrap();
    fs::write(folder.path().join("b"), "\n").unwrap();
    fs::write(folder.path().join("c"), "c\n\n").unwrap();
    fs::write(folder.path().join("d"), vec![0; 600 * 1024]).unwrap();
    let mut unseen = Vec::new();
    for check in hygiene::pack().describe().checks {
        let report = run(folder.path(), &check.id);
        let known: Vec<_> = check.rules.iter().map(|rule| &rule.id).collect();
        for finding in &report.findings {
            assert!(known.contains(&&finding.rule), "{}", finding.rule);
        }
        unseen.extend(known.into_iter().filter(|&rule| report.findings.iter().all(|it| it.rule != *rule)).cloned());
    }
    assert!(unseen.is_empty(), "no case for {unseen:?}");
}

#[test]
fn odd_names_are_ordinary_names() {
    let folder = tempfile::tempdir().unwrap();
    let names = [" a b ", "new\nline", "quote\"'", "x/-y", "é"];
    fs::create_dir(folder.path().join("x")).unwrap();
    for name in names {
        fs::write(folder.path().join(name), "<<<<<<< a\nx ").unwrap();
    }
    for check in CONTENT_CHECKS {
        let report = run(folder.path(), check);
        let mut found: Vec<_> = report.findings.iter().map(|it| it.place.as_ref().unwrap().path.as_str()).collect();
        found.dedup();
        assert_eq!(found, names, "{check}");
    }
}

#[test]
fn empty_files_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    for check in CONTENT_CHECKS {
        let report = run(folder.path(), check);
        assert_eq!(report.findings, [], "{check}");
        assert_eq!(report.stat("files"), 1, "{check}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_submodules_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("sub/.git")).unwrap();
    fs::write(root.join("sub/bad"), "<<<<<<< a\nx ").unwrap();
    std::os::unix::fs::symlink("sub/bad", root.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
    for check in CONTENT_CHECKS {
        assert_eq!(run(root, check), Report::new(), "{check}");
    }
}

#[test]
fn a_file_of_50_mb_is_judged_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let line = b"0123456789 0123456789 0123456789 0123456789 0123\n";
    let mut contents = line.repeat(50_000_000 / line.len());
    let lines = contents.len() / line.len();
    contents.extend_from_slice(b"<<<<<<< a\n=======\n>>>>>>> b\nlast ");
    fs::write(folder.path().join("large"), contents).unwrap();

    let first_line = |check| {
        let report = run(folder.path(), check);
        assert_eq!(report.findings.len(), 1, "{check}");
        report.findings[0].place.as_ref().unwrap().start.unwrap().line as usize
    };
    assert_eq!(first_line("conflict-markers"), lines + 1);
    assert_eq!(first_line("trailing-whitespace"), lines + 4);
    assert_eq!(first_line("final-newline"), lines + 4);
}

/// The most that this process ever had in memory, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib = line.split_ascii_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_a_file() {
    use std::fs::File;
    use std::io::Write;

    // Run again as a process of its own, since other tests hold large files in memory.
    const ALONE: &str = "HYGIENE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory_does_not_grow_with_a_file", "--test-threads=1"])
            .env(ALONE, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // One line of 50 MB, most of it whitespace: the worst there is.
    let mut file = File::create(folder.path().join("large")).unwrap();
    for piece in ["x", " "].map(|byte| byte.repeat(1 << 16)) {
        for _ in 0..400 {
            file.write_all(piece.as_bytes()).unwrap();
        }
    }
    drop(file);
    for check in CONTENT_CHECKS {
        run(folder.path(), check);
    }
    assert!(peak_memory() < 20 << 20, "{} bytes", peak_memory());
}
