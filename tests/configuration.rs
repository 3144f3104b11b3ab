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
