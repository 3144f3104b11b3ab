//! Bad input that is known before anything runs: exit code 2, a message with place and remedy, and nothing runs.

use crate::support::Project;

/// Runs `verify` on a configuration that must be refused, and gives what is shown. The marker proves that no
/// command ran.
fn refused(config: &str, prepare: impl Fn(&Project)) -> String {
    let project = Project::with(&format!("{config}\n[checks.marker]\ncommand = [\"touch\", \"ran\"]\n"));
    prepare(&project);
    let ran = project.run(&["verify"]).exits(2);
    assert!(!project.path("ran").exists(), "something ran");
    assert!(!project.path(".probity").exists(), "something was recorded");
    assert_eq!(ran.stdout, "");
    ran.shown()
}

#[test]
fn no_configuration() {
    let project = Project::new();
    let ran = project.run(&["verify"]).exits(2);
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn several_mistakes_are_told_at_once() {
    let config = "[verify]\ncomands = [[\"true\"]]\ntimeout = \"5\"\naudit = true\n\n\
                  [packs.hygiene]\nsource = \"file:none.wasm\"\n\n[checks.a]\nuse = \"hygeine/x\"\ntimeout = 3\n";
    insta::assert_snapshot!(refused(config, |_| {}));
}

#[test]
fn broken_toml() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]\n");
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).shown());
}

#[test]
fn an_unknown_scenario() {
    let project = Project::with("[verify]\ncommands = [[\"true\"]]\n");
    insta::assert_snapshot!(project.run(&["verify", "nightly"]).exits(2).shown());
}

const USES: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n\n[checks.a]\nuse = \"p/look\"\n";

#[test]
fn a_pack_that_is_missing() {
    insta::assert_snapshot!(refused(USES, |_| {}));
}

#[test]
fn a_pack_folder_that_is_missing() {
    insta::assert_snapshot!(refused(&USES.replace("file:p.wasm", "path:packs/p"), |_| {}));
}

#[test]
fn a_file_that_is_no_component() {
    for (name, contents) in [
        ("text", &b"hello, this is no component\n"[..]),
        ("empty", b""),
        ("core_module", b"\0asm\x01\0\0\0"),
        ("truncated", b"\0asm\x0d\0\x01\0\x07\xff"),
    ] {
        let shown = refused(USES, |project| {
            project.write("p.wasm", contents);
        });
        insta::assert_snapshot!(format!("no_component_{name}"), shown);
    }
}

#[test]
fn a_component_without_the_interface() {
    let shown = refused(USES, |project| {
        project.component("p.wasm", "(component)");
    });
    insta::assert_snapshot!(shown);
}

#[test]
fn a_component_with_an_import_that_is_not_served() {
    let shown = refused(USES, |project| {
        project.component(
            "p.wasm",
            "(component (import \"evil:exfiltrate/upload@1.0.0\" (instance (export \"send\" (func)))))",
        );
    });
    insta::assert_snapshot!(shown);
}

#[test]
fn a_folder_in_place_of_a_component() {
    insta::assert_snapshot!(refused(USES, |project| {
        project.write("p.wasm/file", "");
    }));
}

/// What is said of a configuration with these bytes, by every command that reads one.
fn refused_bytes(bytes: &[u8]) -> String {
    let project = Project::new();
    project.write("probity.toml", bytes);
    let verify = project.run(&["verify"]).exits(2);
    let config = project.run(&["config"]).exits(2);
    assert_eq!(verify.shown(), config.shown());
    assert_eq!(verify.stdout, "");
    assert!(!project.path("ran").exists(), "something ran");
    verify.shown()
}

const RUNS: &str = "[verify]\ncommands = [[\"touch\", \"ran\"]]\n";

#[test]
fn a_configuration_of_ten_megabytes() {
    insta::assert_snapshot!(refused_bytes(format!("{RUNS}#{}\n", "x".repeat(10 << 20)).as_bytes()));
}

#[test]
fn an_empty_configuration() {
    insta::assert_snapshot!("an_empty_configuration", refused_bytes(b""));
    for nothing in ["\n", "# only a comment\n", "\u{feff}", "\u{feff}\r\n"] {
        insta::assert_snapshot!("an_empty_configuration", refused_bytes(nothing.as_bytes()));
    }
}

#[test]
fn a_configuration_in_another_encoding() {
    let units = || RUNS.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let wide: Vec<u8> = RUNS.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for bytes in
        [&little, &big, &wide, &[b"\xff\xfe", little.as_slice()].concat(), &[b"\xfe\xff", big.as_slice()].concat()]
    {
        insta::assert_snapshot!("a_configuration_in_utf_16", refused_bytes(bytes));
    }
    let latin = [RUNS.as_bytes(), b"# caf\xe9\n"].concat();
    insta::assert_snapshot!("a_configuration_in_latin_1", refused_bytes(&latin));
}

#[test]
fn a_configuration_with_nul_bytes() {
    insta::assert_snapshot!("nul_alone", refused_bytes(b"\0"));
    insta::assert_snapshot!("nul_at_the_end", refused_bytes(&[RUNS.as_bytes(), b"\0\0\0\0"].concat()));
    insta::assert_snapshot!("nul_in_a_comment", refused_bytes(&[RUNS.as_bytes(), b"# a\0b\n"].concat()));
    insta::assert_snapshot!("nul_in_a_string", refused_bytes(b"[verify]\ncommands = [[\"touch\", \"r\0n\"]]\n"));
    insta::assert_snapshot!("nul_in_a_key", refused_bytes(b"[ver\0ify]\n"));
    insta::assert_snapshot!("nul_only", refused_bytes(&[0; 4096]));
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    let project = Project::with(&format!("\u{feff}{RUNS}"));
    assert!(project.run(&["config"]).exits(0).stdout.contains("probity.toml:2  verify.commands"));
    project.write("ran", "");
    project.run(&["verify"]).exits(0);
}
