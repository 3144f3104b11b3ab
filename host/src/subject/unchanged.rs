//! Tests of a tree in which nothing was touched: it is known without another look at what was known, and whatever happens
//! to it is seen.

use super::{Memory, Patience, Snapshot, Workspace};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

fn git(folder: &Path, arguments: &[&str]) {
    let name = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let ran = Command::new("git").args(name).args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn repository() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    fs::create_dir(folder.join("d")).unwrap();
    for name in ["a", "d/b", "d/c"] {
        fs::write(folder.join(name), name).unwrap();
    }
    symlink("a", folder.join("link")).unwrap();
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "all"]);
    temp
}

fn workspace(folder: &Path) -> Workspace {
    Workspace::of(folder, &Patience::default()).unwrap()
}

/// A snapshot that the next one can wholly rely on, and what it leaves for that. What was written a moment ago could be
/// written again without a trace.
fn settled(folder: &Path) -> (Snapshot, Vec<u8>) {
    let until = SystemTime::now() + Duration::from_secs(10);
    let mut memory = Vec::new();
    loop {
        let snapshot = workspace(folder).snapshot_with(|| Memory::read(&memory)).unwrap();
        match snapshot.remember() {
            Some(bytes) => memory = bytes,
            None => return (snapshot, memory),
        }
        assert!(SystemTime::now() < until, "there is something new each time");
    }
}

/// What is seen of a tree, but for when.
fn seen(snapshot: &Snapshot) -> String {
    let Snapshot { entries, tree, commit, dirty, unproven, dirty_inside, .. } = snapshot;
    format!("{tree} {commit:?} {dirty:?} {unproven:?} {dirty_inside:?} {entries:#?}")
}

#[test]
fn what_was_not_touched_is_the_very_same() {
    for dirty in [false, true] {
        let temp = repository();
        if dirty {
            fs::write(temp.path().join("new"), "").unwrap();
        }
        let (first, memory) = settled(temp.path());
        let again = workspace(temp.path()).snapshot_with(|| Memory::read(&memory)).unwrap();
        let anew = workspace(temp.path()).snapshot(None).unwrap();
        assert!(again.whole.is_some() && again.whole == first.whole);
        assert_eq!(seen(&again), seen(&anew));
        assert_eq!(again.dirty, Some(dirty));
        let later = workspace(temp.path()).snapshot(Some(&again)).unwrap();
        assert!(later.iter().zip(again.iter()).all(|(one, other)| std::ptr::eq(one, other)), "none was made anew");
    }
}

#[test]
fn whatever_happens_to_it_is_seen() {
    type Happens = fn(&Path);
    let cases: [(&str, Happens, &[&str]); 10] = [
        ("written", |f| fs::write(f.join("a"), "other").unwrap(), &["a"]),
        ("made", |f| fs::write(f.join("d/new"), "").unwrap(), &["d/new"]),
        (
            "made beside an empty folder",
            |f| {
                fs::create_dir_all(f.join("e/f")).unwrap();
                fs::write(f.join("e/f/new"), "").unwrap();
            },
            &["e/f/new"],
        ),
        ("removed", |f| fs::remove_file(f.join("d/b")).unwrap(), &["d/b"]),
        ("renamed", |f| fs::rename(f.join("a"), f.join("z")).unwrap(), &["a", "z"]),
        (
            "swapped",
            |f| {
                fs::rename(f.join("d/b"), f.join("x")).unwrap();
                fs::rename(f.join("d/c"), f.join("d/b")).unwrap();
                fs::rename(f.join("x"), f.join("d/c")).unwrap();
            },
            &["d/b", "d/c"],
        ),
        (
            "linked elsewhere",
            |f| {
                fs::remove_file(f.join("link")).unwrap();
                symlink("d", f.join("link")).unwrap();
            },
            &["link"],
        ),
        (
            "a folder now",
            |f| {
                fs::remove_file(f.join("a")).unwrap();
                fs::create_dir(f.join("a")).unwrap();
            },
            &["a"],
        ),
        ("executable", |f| fs::set_permissions(f.join("a"), fs::Permissions::from_mode(0o755)).unwrap(), &["a"]),
        ("no longer tracked", |f| git(f, &["rm", "-q", "--cached", "a"]), &["a"]),
    ];
    for (what, happens, expected) in cases {
        let temp = repository();
        let (first, memory) = settled(temp.path());
        happens(temp.path());
        let anew = workspace(temp.path()).snapshot(None).unwrap();
        let known = workspace(temp.path()).snapshot_with(|| Memory::read(&memory)).unwrap();
        assert_eq!(seen(&known), seen(&anew), "{what}");
        let later = workspace(temp.path()).snapshot(Some(&first)).unwrap();
        assert_eq!(seen(&later), seen(&anew), "{what}");
        assert_eq!(first.moved(&later), expected, "{what}");
    }
}

#[test]
fn a_file_that_is_gone_and_comes_back_is_seen_though_git_lists_it_all_the_while() {
    let temp = repository();
    fs::remove_file(temp.path().join("a")).unwrap();
    let (without, memory) = settled(temp.path());
    fs::write(temp.path().join("a"), "a").unwrap();
    for later in [
        workspace(temp.path()).snapshot(Some(&without)).unwrap(),
        workspace(temp.path()).snapshot_with(|| Memory::read(&memory)).unwrap(),
    ] {
        assert_eq!(without.moved(&later), ["a"]);
        assert_eq!((without.dirty, later.dirty), (Some(true), Some(false)));
    }
}

#[test]
fn a_commit_that_moves_under_an_untouched_tree_is_another_one() {
    let temp = repository();
    fs::write(temp.path().join("new"), "").unwrap();
    git(temp.path(), &["add", "new"]);
    let (staged, memory) = settled(temp.path());
    git(temp.path(), &["commit", "-q", "-m", "new"]);
    let later = workspace(temp.path()).snapshot_with(|| Memory::read(&memory)).unwrap();
    assert_ne!(staged.commit, later.commit);
    assert_eq!((staged.dirty, later.dirty), (Some(true), Some(false)));
    assert_eq!(staged.tree, later.tree);
}

#[test]
fn what_is_to_be_left_out_is_asked_each_time() {
    let temp = repository();
    fs::write(temp.path().join("new"), "").unwrap();
    let (with, memory) = settled(temp.path());
    let without = workspace(temp.path()).excluding(|path| path == "new");
    let without = without.snapshot_with(|| Memory::read(&memory)).unwrap();
    assert_eq!(with.moved(&without), ["new"]);
}
