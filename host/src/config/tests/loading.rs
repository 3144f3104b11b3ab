//! Finding and reading files.

use crate::config::{Colour, ConfigError, MAX_CONFIG_SIZE, User, discover, load, load_as, parse};
use std::fs;
use std::os::unix::fs::symlink;

const GOOD: &str = "[verify]\ncommands = [[\"true\"]]\n";

fn shown(error: &ConfigError) -> String {
    error.render(Colour::Off)
}

#[test]
fn the_nearest_file_above_is_found() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let deep = root.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(root.join("probity.toml"), GOOD).unwrap();
    assert_eq!(discover(&deep).unwrap(), Some(root.join("probity.toml")));
    fs::write(root.join("a/probity.toml"), GOOD).unwrap();
    assert_eq!(discover(&deep).unwrap(), Some(root.join("a/probity.toml")));
    // What cannot be used is found all the same: another project's rules must not take its place.
    symlink("nowhere", root.join("a/b/probity.toml")).unwrap();
    assert_eq!(discover(&deep).unwrap(), Some(root.join("a/b/probity.toml")));
    assert!(matches!(discover(&root.join("missing")), Err(ConfigError::Io { .. })));
}

#[test]
fn a_file_is_loaded_and_named_as_the_caller_says() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("probity.toml");
    fs::write(&path, GOOD).unwrap();
    assert_eq!(load(&path).unwrap().source.name, path.display().to_string());
    let config = load_as(&path, "../probity.toml", &User::default()).unwrap();
    assert_eq!((config.source.name.as_str(), config.source.text.as_str()), ("../probity.toml", GOOD));
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    for path in [root.path(), &pipe, "/dev/null".as_ref()] {
        let error = load_as(path, "here", &User::default()).unwrap_err();
        assert!(matches!(error, ConfigError::NotAFile { .. }), "{error}");
        insta::allow_duplicates! { insta::assert_snapshot!(shown(&error), @r#"
        error: `here` is not a regular file
         |
         = help: name a file
        "#); }
    }
}

#[test]
fn a_missing_file_comes_with_an_example() {
    let error = load("no/such/probity.toml".as_ref()).unwrap_err();
    insta::assert_snapshot!(shown(&error), @r#"
    error: there is no `no/such/probity.toml`
     |
     = help: `probity init` writes a first one; a minimal one says what to run:

             [verify]
             commands = [["cargo", "build"], ["cargo", "test"]]
    "#);
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let root = tempfile::tempdir().unwrap();
    symlink("loop", root.path().join("loop")).unwrap();
    let error = load_as(&root.path().join("loop"), "here", &User::default()).unwrap_err();
    insta::assert_snapshot!(shown(&error), @r#"
    error: `here` cannot be read: Too many levels of symbolic links (os error 40)
     |
     = help: check its permissions and those of its folders
    "#);
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("probity.toml");
    let full = format!("{GOOD}#{}", "x".repeat(MAX_CONFIG_SIZE - GOOD.len() - 1));
    fs::write(&path, &full).unwrap();
    assert!(load(&path).is_ok());
    fs::write(&path, full + "x").unwrap();
    insta::assert_snapshot!(shown(&load_as(&path, "here", &User::default()).unwrap_err()), @r#"
    error: `here` is larger than 1024 KiB
     |
     = help: is this the right file? A configuration is written by hand
    "#);
}

#[test]
fn only_utf_8_is_read() {
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [b"\xff\xfe", utf16.as_slice()].concat();
    let big: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [utf16, marked, big] {
        let error = parse("here", &bytes, &User::default()).unwrap_err();
        insta::allow_duplicates! { insta::assert_snapshot!(shown(&error), @r#"
        error: `here` is not UTF-8 text: it looks like UTF-16
         |
         = help: save it as UTF-8; in PowerShell: `Set-Content -Encoding utf8`
        "#); }
    }
    let error = parse("here", b"[verify]\ncommands = [[\"caf\xe9\"]]", &User::default()).unwrap_err();
    insta::assert_snapshot!(shown(&error), @r#"
    error: `here` is not UTF-8 text: byte 0xe9 at line 2, column 18
     |
     = help: save it as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`
    "#);
    assert!(parse("here", b"# caf\xc3", &User::default()).is_err());
}

#[test]
fn a_byte_order_mark_is_accepted_and_kept() {
    let text = format!("\u{feff}{GOOD}");
    let config = parse("here", text.as_bytes(), &User::default()).unwrap();
    assert_eq!(config.source.text, text);
    assert_eq!(&text[config.checks[0].span.clone()], "[\"true\"]");
}

#[test]
fn an_error_has_a_short_form() {
    let short = |text: &str| parse("here", text.as_bytes(), &User::default()).unwrap_err().to_string();
    assert_eq!(short("[verfy]"), "`here`: unknown key `verfy`");
    assert_eq!(short("[verfy]\n[spec]"), "`here` has 2 mistakes");
}
