//! The first configuration as text. All of it is written here; nothing that was read is in it.

use super::{Check, Starter};
use std::fmt::Write as _;

const HEAD: &str = "\
# How this folder is verified: `probity verify` runs the checks below, in this order, until one is red.
# `probity config` shows what holds and which line says so. No command goes through a shell.
";

const LEFTOVERS: &str = "
# What tools leave behind is not verified, also where no .gitignore says so. What is tracked always is.
[subject]
";

const SCENARIO: &str = "
# A scenario is a list of checks under a name: `probity verify quick`.
#
# [scenarios.quick]
";

const NOTHING: &str = r#"
# No check is active yet: it is for you to say what verifies this folder. Until then `probity verify` runs what `[verify]`
# of your own file says, and where that is nothing it ends with exit code 2, since a run that checks nothing is never
# green. Take away the `#` and write what you run by hand:
#
# [checks.build]
# command = ["make", "all"]       # a program and its arguments
# timeout = "10m"
#
# [checks.test]
# command = ["./run-tests", "--all"]
# timeout = "30m"
# env = ["MODE=test"]             # added to what it sees of the environment: PATH, HOME and little else
# pass-env = ["JAVA_HOME"]        # passed on from where Probity is started
"#;

pub(super) fn text(starter: &Starter) -> String {
    let mut text = HEAD.to_owned();
    if !starter.leftovers.is_empty() {
        text.push_str(LEFTOVERS);
        let _ = writeln!(text, "exclude = {}", list(&starter.leftovers));
    }
    let (mut file, mut aside) = ("", None);
    for check in &starter.checks {
        text.push('\n');
        if check.file != file {
            (file, aside) = (check.file, None);
            let _ = writeln!(text, "# Found in {file}.");
        }
        if let Some(why) = check.proposed.filter(|_| check.proposed != aside) {
            let _ = writeln!(text, "# Commented out, since {why}.");
        }
        aside = check.proposed;
        push(&mut text, check);
    }
    if let Some(first) = starter.checks.iter().find(|check| check.proposed.is_none()) {
        text.push_str(SCENARIO);
        let _ = writeln!(text, "# checks = {}", list(&[first.id.as_str()]));
    } else {
        text.push_str(NOTHING);
    }
    text
}

fn push(text: &mut String, check: &Check) {
    let mark = if check.proposed.is_some() { "# " } else { "" };
    // Writing into a string does not fail.
    let _ = writeln!(text, "{mark}[checks.{}]", check.id);
    let _ = writeln!(text, "{mark}command = {}", list(&check.command));
    let _ = writeln!(text, "{mark}timeout = \"{}\"", check.timeout);
    if !check.env.is_empty() {
        let _ = writeln!(text, "{mark}env = {}", list(check.env));
    }
    if !check.pass_env.is_empty() {
        let _ = writeln!(text, "{mark}pass-env = {}", list(check.pass_env));
    }
}

/// A list of strings. They are words of this program, so none has a character to be escaped.
fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
