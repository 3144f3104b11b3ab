//! Capabilities and who needs them.

use super::{good, messages, titles};
use crate::model::Probe;
use std::time::Duration;

const CHECK: &str = "[checks.a]\ncommand = [\"a\"]\n";

fn capability(keys: &str) -> String {
    format!("{CHECK}[capabilities.x]\n{keys}\n")
}

#[test]
fn each_kind_is_understood() {
    let probe = |keys: &str| good(&capability(keys)).capabilities.into_values().next().unwrap().probe;
    let ten = Duration::from_secs(10);
    assert_eq!(
        probe("probe = [\"docker\", \"info\"]"),
        Probe::Command { argv: vec!["docker".to_owned(), "info".to_owned()], timeout: ten }
    );
    let program = |at_least: Option<&str>, timeout| Probe::Program {
        program: "docker".to_owned(),
        at_least: at_least.map(|version| version.parse().unwrap()),
        timeout,
    };
    assert_eq!(probe("program = \"docker\""), program(None, ten));
    assert_eq!(
        probe("program = \"docker\"\nat-least = \"24.0\"\ntimeout = \"1s\""),
        program(Some("24.0"), Duration::from_secs(1))
    );
    assert_eq!(probe("resolves = \"example.org\""), Probe::Resolves { host: "example.org".to_owned(), timeout: ten });
    for os in crate::model::Os::ALL {
        assert_eq!(probe(&format!("os = \"{}\"", os.name())), Probe::Os(os));
    }
}

#[test]
fn a_check_names_what_it_needs() {
    let text = "[checks.a]\ncommand = [\"a\"]\nneeds = [\"y\", \"x\"]\n[capabilities.x]\nos = \"linux\"\n[capabilities.y]\nprogram = \"y\"\n";
    let needs: Vec<String> = good(text).checks[0].needs.iter().map(ToString::to_string).collect();
    assert_eq!(needs, ["y", "x"]);
}

#[test]
fn mistakes_are_told_with_what_to_write() {
    let cases = [
        capability(""),
        capability("program = \"a\"\nos = \"linux\""),
        capability("probe = []"),
        capability("probe = [\"a\", \"{files}\", \"{files0}\", \"{tests}\"]"),
        capability("program = \"\""),
        capability("program = \"a\"\nat-least = \">=24\""),
        capability("program = \"a\"\nat_least = \"24\""),
        capability("resolves = \"https://example.org\""),
        capability("os = \"linus\""),
        capability("os = \"windows\""),
        capability("os = \"linux\"\ntimeout = \"1s\"\nat-least = \"1\""),
        capability("probe = [\"a\"]\ntimeout = \"0s\""),
        "[checks.a]\ncommand = [\"a\"]\nneeds = [\"dokcer\", \"x\", \"x\"]\n[capabilities.docker]\nos = \"linux\"\n[capabilities.x]\n"
            .to_owned(),
        "[checks.a]\ncommand = [\"a\"]\nneeds = [\"docker\"]\n".to_owned(),
        "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n[checks.a]\nuse = \"p/a\"\nneeds = [\"x\"]\n[capabilities.x]\nos = \"linux\"\n"
            .to_owned(),
    ];
    let shown: Vec<String> = cases.iter().map(|text| messages(text)).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_capability_with_mistakes_is_not_missing_too() {
    let text = "[checks.a]\ncommand = [\"a\"]\nneeds = [\"x\", \"y\"]\n[capabilities]\nx = 7\ny = { os = \"plan9\" }\n";
    assert_eq!(titles(text), ["`x`: expected a table, found an integer", "there is no system `plan9` here"]);
}
