//! Where a report goes: stdout that cannot be written to, and a reader that went away.

use crate::support::Project;
use std::fs::File;
use std::process::Stdio;

const GREEN: &str = "[verify]\ncommands = [[\"true\"]]\n";

/// Stdout is a device that is always full.
fn into_full(project: &Project, arguments: &[&str]) -> (i32, String) {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = project.command(arguments).stdout(full).output().unwrap();
    (ran.status.code().unwrap(), String::from_utf8(ran.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_told_apart_from_a_green_one() {
    let said = "error: stdout could not be written to: No space left on device (os error 28)\n".to_owned();
    let project = Project::with(GREEN);
    assert_eq!(into_full(&project, &["verify"]), (4, said.clone()));
    assert_eq!(into_full(&project, &["verify", "--json"]), (4, said.clone()));
    assert_eq!(into_full(&project, &["verify", "--na", "nothing to judge"]), (4, said.clone()));
    // The runs are recorded all the same, and passed.
    let log = project.run(&["log"]).exits(0).stdout;
    assert_eq!(log.lines().count(), 3, "{log}");
    assert_eq!(log.matches(" passed ").count(), 2, "{log}");
    assert_eq!(into_full(&project, &["log"]), (4, said.clone()));
    assert_eq!(into_full(&project, &["config", "--json"]), (4, said.clone()));
    // What is not green stays what it is.
    let red = Project::with("[verify]\ncommands = [[\"false\"], [\"true\"]]\n");
    assert_eq!(into_full(&red, &["verify"]), (1, said.clone()));
    assert_eq!(into_full(&red, &["verify", "--only", "verify-2"]), (3, said));
    let (code, said) = into_full(&red, &["verify", "--only", "nothing"]);
    assert!(code == 2 && !said.contains("stdout"), "{said}");
}

#[test]
fn a_reader_that_went_away_has_read_what_it_wanted() {
    for (commands, code) in [("[\"true\"]", 0), ("[\"false\"]", 1)] {
        let project = Project::with(&format!("[verify]\ncommands = [{commands}]\n"));
        for arguments in [&["verify"][..], &["verify", "--json"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let ran = project.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
            assert_eq!(ran.status.code(), Some(code), "{arguments:?}");
            assert_eq!(String::from_utf8(ran.stderr).unwrap(), "", "{arguments:?}");
        }
        assert_eq!(project.run(&["log"]).exits(0).stdout.lines().count(), 2);
    }
}
