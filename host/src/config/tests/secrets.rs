//! Variables that are secret, and exit codes that mean a gap.

use super::{good, messages, titles};
use crate::config::{Body, Command};

fn command(text: &str) -> Command {
    match &good(text).checks[0].body {
        Body::Command(command) => command.clone(),
        Body::Logic(_) => panic!("a command"),
    }
}

#[test]
fn names_are_marked_for_a_check_and_for_the_list_of_commands() {
    let check = "[checks.a]\ncommand = [\"a\"]\nsecrets = [\"TOKEN\", \"KEY\"]\ngap-exit = [75, 1, 255]\n";
    assert_eq!(
        (command(check).secrets, command(check).gap_exit),
        (vec!["TOKEN".into(), "KEY".into()], vec![75, 1, 255])
    );
    assert_eq!(command("[verify]\ncommands = [[\"a\"]]\nsecrets = [\"TOKEN\"]\n").secrets, ["TOKEN"]);
}

#[test]
fn a_secret_in_the_file_is_refused_and_no_message_shows_it() {
    let text = r#"[verify]
commands = [["a"]]
env = ["TOKEN=s3cr3t-\u00e9", 'KEY=s3cr3t']
[checks.a]
command = ["a"]
secrets = ["TOKEN", "KEY", "KEY", "OTHER=s3cr3t"]
"#;
    insta::assert_snapshot!(messages(text));
    assert!(!messages(text).contains("s3cr3t"));
}

#[test]
fn however_it_is_written_and_whatever_else_is_wrong_it_is_not_shown() {
    let marked = "\n[checks.b]\ncommand = [\"b\"]\nsecrets = [\"TOKEN\"]\n";
    for line in [
        r#"env = ["TOKEN=s3cr3t", "TOKEN=s3cr3t"]"#,
        r#"env = ["TOK\u0045N=s3cr3t"]"#,
        r#"env = ["TOKEN\u003ds3cr3t=s3cr3t"]"#,
        r#"env = ["TOKEN=s3cr3t\"s3cr3t", 7]"#,
        r#"env = ["TOKEN=s3cr3t\u0000"]"#,
        "env = [\"\"\"TOKEN=s3cr3t\ns3cr3t\"\"\"]",
        "env = ['''TOKEN=é s3cr3t''']",
        // The rest of the line is not even TOML.
        r#"env = ["TOKEN=s3cr3t"] audit = oops"#,
        r#"env = ["TOKEN=s3cr3t"], "#,
    ] {
        let shown = messages(&format!("[checks.a]\ncommand = [\"a\"]\nunknown = {{ x = 1 }}\n{line}{marked}"));
        assert!(shown.starts_with("error: ") && !shown.contains("s3cr3t"), "{line}\n{shown}");
    }
}

#[test]
fn what_only_looks_alike_is_shown_and_kept() {
    let text = "[checks.a]\ncommand = [\"a\"]\nenv = [\"TOKEN_FILE=x\"]\nsecrets = [\"TOKEN\"]\n";
    assert_eq!(command(text).env, [("TOKEN_FILE".to_owned(), "x".to_owned())]);
    assert!(messages(&text.replace("command = [\"a\"]", "comand = [\"a\"]")).contains("did you mean `command`"));
}

#[test]
fn what_probity_sets_is_not_set_by_others() {
    for key in ["env = [\"PROBITY_RESULT=x\"]", "pass-env = [\"PROBITY_RESULT\"]", "secrets = [\"PROBITY_RESULT\"]"] {
        assert_eq!(titles(&format!("[checks.a]\ncommand = [\"a\"]\n{key}")), ["`PROBITY_RESULT` is set by Probity"]);
    }
}

#[test]
fn exit_codes_that_mean_a_gap_are_codes_that_say_something() {
    let text = "[checks.a]\ncommand = [\"a\"]\ngap-exit = [75, 0, 256, -1, 75]\n";
    insta::assert_snapshot!(messages(text));
}

#[test]
fn neither_has_a_meaning_for_a_check_of_a_pack() {
    let text = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\"]\n\
                [checks.a]\nuse = \"p/c\"\nsecrets = [\"A\"]\ngap-exit = [75]\n";
    let expected =
        ["`secrets` has no meaning for a check of a pack", "`gap-exit` has no meaning for a check of a pack"];
    assert_eq!(titles(text), expected);
}
