//! Values of variables that are marked secret: nowhere in what is shown or kept.

use crate::support::{Project, Ran, around, row};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

const VALUE: &str = "hunter2-s3cr3t";

/// The binary with the secret set.
fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    command.env("TOKEN", VALUE);
    project.ran(command)
}

/// Every file below a folder whose bytes have the value in them.
fn holding(folder: &Path, value: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(holding(&path, value));
        } else if entry.file_type().unwrap().is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(value.len()).any(|window| window == value.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// Nothing that was said or kept has the value.
#[track_caller]
fn kept_secret(project: &Project, ran: &Ran) {
    for stream in [&ran.stdout, &ran.stderr] {
        assert!(!stream.contains(VALUE), "{stream}");
    }
    assert_eq!(holding(&project.outside(), VALUE), Vec::<PathBuf>::new());
}

#[test]
fn output_has_the_name_in_the_place_of_the_value() {
    let project = Project::with(
        "[checks.c]\ncommand = [\"./say\"]\nsecrets = [\"TOKEN\", \"NOT_SET\"]\n\
         [checks.later]\ncommand = [\"cat\", \"out\"]\n[scenarios.default]\nchecks = [\"c\", \"later\"]\nfail-fast = false\n",
    );
    // It is handed on in a file and printed by a check that does not know it, and once with a colour inside.
    let say = "echo \"token is <$TOKEN>\"; echo \"$TOKEN\" >&2; echo \"$TOKEN\" | tr a-z A-Z; \
               echo \"$TOKEN\" | sed 's/-/-\x1b[31m/'; printf %s \"$TOKEN\" > out; exit 1";
    project.script("say", say).write(".gitignore", "/out\n");
    let ran = run(&project, &["verify"]).exits(1);
    fs::remove_file(project.path("out")).unwrap();
    kept_secret(&project, &ran);
    insta::assert_snapshot!(ran.shown());
    let log = project.run(&["show", "--log"]).exits(0);
    assert_eq!(
        log.stdout,
        "==> c <==\ntoken is <[secret TOKEN]>\n[secret TOKEN]\nHUNTER2-S3CR3T\nhunter2-\u{1b}[31ms3cr3t\n\n\
         ==> later <==\n[secret TOKEN]\n"
    );
    // The digest is of what is kept.
    project.run(&["show", "--log", "--check", "c"]).exits(0);
}

#[test]
fn a_value_across_the_borders_of_buffers_is_found() {
    let project = Project::with("[checks.c]\ncommand = [\"./say\"]\nsecrets = [\"TOKEN\"]\n");
    // Pieces of 64 KiB: the value stands across each border at another place, and often.
    project.script("say", "i=0; while [ $i -lt 20000 ]; do printf '%s.%s;' $i \"$TOKEN\"; i=$((i+1)); done");
    let ran = run(&project, &["verify"]).exits(0);
    kept_secret(&project, &ran);
    let log = project.run(&["show", "--log", "--check", "c"]).exits(0).stdout;
    let expected: String = (0..20000).map(|i| format!("{i}.[secret TOKEN];")).collect();
    assert!(log == expected, "{} bytes instead of {}", log.len(), expected.len());
}

#[test]
fn results_and_their_mistakes_do_not_have_it() {
    let say = |text: &str| format!("printf '{text}' \"$TOKEN\" \"$TOKEN\" \"$TOKEN\" > \"$PROBITY_RESULT\"; exit 1");
    let finding = r#"{"message": "with %s", "findings": [{"rule": "r", "severity": "error", "message": "m %s",
        "help": "h", "edits": [{"path": "say", "start": 0, "end": 1, "replacement": "%s"}]}]}"#;
    for text in [finding, r#"{"%s": 1}"#, r#"{"class": "%s"}"#, r#"{"stats": {"%s": 1}}"#, "%s"] {
        let project = Project::with("[checks.c]\ncommand = [\"./say\"]\nsecrets = [\"TOKEN\"]\n");
        project.script("say", &say(text));
        let ran = run(&project, &["verify"]).exits(1);
        kept_secret(&project, &ran);
        let json = run(&project, &["verify", "--json"]).exits(1);
        kept_secret(&project, &json);
        let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        if text == finding {
            assert_eq!(around(&document, "c")["message"], "with [secret TOKEN]");
            let finding = &row(&document, "c")["findings"][0];
            assert_eq!(finding["message"], "m [secret TOKEN]");
            assert_eq!(finding["edits"], serde_json::json!([]), "what is not what was proposed is not applied");
        }
        for arguments in [&["show"][..], &["show", "--json"], &["show", "--check", "c"], &["show", "--log"]] {
            kept_secret(&project, &project.run(arguments).exits(0));
        }
    }
}

#[test]
fn a_command_that_cannot_be_started_does_not_say_it() {
    let project = Project::with("[checks.c]\ncommand = [\"no-such-program\"]\nsecrets = [\"TOKEN\", \"PATH\"]\n");
    let ran = run(&project, &["verify"]).exits(1);
    kept_secret(&project, &ran);
    assert!(ran.stdout.contains("PATH is [secret PATH]"), "{}", ran.stdout);
    let config = format!("[checks.c]\ncommand = [\"./{VALUE}\"]\nsecrets = [\"TOKEN\"]\n");
    let ran = run(&Project::with(&config), &["verify"]).exits(1);
    assert!(ran.stdout.contains("cannot start `./[secret TOKEN]`") && !ran.stdout.contains(VALUE), "{}", ran.stdout);
}

#[test]
fn files_that_a_command_names_after_it_are_not_told_by_their_name() {
    let project = Project::with("[checks.c]\ncommand = [\"./make\"]\nsecrets = [\"TOKEN\"]\n");
    project.script("make", ": > \"new-$TOKEN\"").committed();
    let ran = run(&project, &["verify"]).exits(1);
    kept_secret(&project, &ran);
    assert!(ran.stdout.contains("    new-[secret TOKEN]\n"), "{}", ran.stdout);
}

#[test]
fn a_secret_is_passed_and_a_short_one_is_said_not_to_be_one() {
    let project = Project::with(
        "[checks.c]\ncommand = [\"./say\"]\nsecrets = [\"PIN\"]\n[verify]\ncommands = [[\"./say\"]]\nsecrets = [\"TOKEN\"]\n",
    );
    project.script("say", "echo \"$PIN $TOKEN\"");
    let mut command = project.command(&["verify"]);
    command.env("PIN", "123").env("TOKEN", VALUE);
    let ran = project.ran(command).exits(0);
    assert_eq!(ran.stderr, "note: the value of PIN is too short to be found in output, so it is not kept secret\n");
    let log = |id: &str| project.run(&["show", "--log", "--check", id]).exits(0).stdout;
    assert_eq!((log("c").as_str(), log("verify-1").as_str()), ("123 \n", "123 [secret TOKEN]\n"));
}

#[test]
fn a_process_that_is_killed_leaves_no_output_behind() {
    let project = Project::with("[checks.c]\ncommand = [\"./hang\"]\nsecrets = [\"TOKEN\"]\n");
    project.script("hang", "echo \"$TOKEN\"; echo $$ > pid.new; mv pid.new pid; exec sleep 600");
    let mut command = project.command(&["verify"]);
    let mut child = command.env("TOKEN", VALUE).spawn().unwrap();
    crate::support::eventually("the start of the command", || project.path("pid").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let pid = fs::read_to_string(project.path("pid")).unwrap();
    crate::support::eventually("the end of the command", || !crate::support::alive(&pid));
    assert_eq!(holding(&project.outside(), VALUE), Vec::<PathBuf>::new());
}

#[test]
fn configuration_does_not_hold_it_and_does_not_show_it() {
    let project = Project::with(&format!(
        "[checks.c]\ncommand = [\"true\"]\nenv = [\"TOKEN={VALUE}\"]\n[checks.d]\ncommand = [\"true\"]\nsecrets = [\"TOKEN\"]\n"
    ));
    for arguments in [&["verify"][..], &["config"], &["verify", "--json"]] {
        let ran = project.run(arguments).exits(2);
        assert!(!ran.stdout.contains(VALUE) && !ran.stderr.contains(VALUE), "{}", ran.stderr);
        insta::allow_duplicates! { insta::assert_snapshot!(ran.stderr) };
    }
}

#[test]
fn what_is_marked_is_kept_of_checks_that_do_not_run_and_by_the_users_file() {
    let project = Project::with(
        "[checks.says]\ncommand = [\"./say\"]\ninherit-env = true\n[checks.marks]\ncommand = [\"true\"]\nsecrets = [\"TOKEN\"]\n\
         when = { branches = [\"release\"] }\n[checks.elsewhere]\ncommand = [\"true\"]\nsecrets = [\"OTHER\"]\n\
         [verify]\ncommands = [[\"true\"]]\nsecrets = [\"THIRD\"]\n[scenarios.default]\nchecks = [\"says\", \"marks\"]\n",
    );
    project.script("say", "echo $TOKEN $OTHER $THIRD $USERS; exit 1");
    let folder = project.outside().join("home/.config/probity");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[verify]\nsecrets = [\"USERS\"]\n").unwrap();
    for arguments in [&["verify"][..], &["verify", "--only", "says"], &["verify", "--skip", "marks"]] {
        let mut command = project.command(arguments);
        for name in ["TOKEN", "OTHER", "THIRD", "USERS"] {
            command.env(name, format!("{name}-{VALUE}"));
        }
        let ran = project.ran(command).exits(1);
        kept_secret(&project, &ran);
        let names = "[secret TOKEN] [secret OTHER] [secret THIRD] [secret USERS]";
        assert!(ran.stdout.contains(names), "{}", ran.stdout);
    }
}

#[test]
fn what_is_said_around_the_checks_has_no_value_either() {
    let project = Project::with(
        "[capabilities.here]\nprobe = [\"./probe\"]\n[checks.c]\ncommand = [\"true\"]\nsecrets = [\"TOKEN\"]\nneeds = [\"here\"]\n",
    );
    project.script("probe", "cat .git/value >&2; exit 1").committed();
    fs::write(project.path(".git/value"), VALUE).unwrap();
    std::os::unix::fs::symlink(format!("/{VALUE}/x"), project.path(&format!("link-{VALUE}"))).unwrap();
    let odd = std::ffi::OsString::from_vec([b"odd-", VALUE.as_bytes(), b"-\xff"].concat());
    fs::write(project.root().join(&odd), "").unwrap();
    let lists = |ran: &Ran| {
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let of = |name: &str| document["record"][name].to_string();
        assert!(of("open").contains("link-[secret TOKEN]") && of("open").contains("/[secret TOKEN]/x"), "{document:#}");
        assert!(of("hidden").contains("odd-[secret TOKEN]-"), "{document:#}");
    };
    let (text, json) = (run(&project, &["verify"]).exits(1), run(&project, &["verify", "--json"]).exits(1));
    lists(&json);
    // Of these two names the tree has the value, and nothing else has.
    fs::remove_file(project.path(&format!("link-{VALUE}"))).unwrap();
    fs::remove_file(project.root().join(odd)).unwrap();
    fs::remove_file(project.path(".git/value")).unwrap();
    for ran in [text, json] {
        for stream in [&ran.stdout, &ran.stderr] {
            assert!(!stream.contains(VALUE), "{stream}");
        }
    }
    let kept: Vec<PathBuf> = holding(&project.path(".git"), VALUE);
    // What is remembered of the tree has the names that the tree has.
    let kept = kept.iter().filter(|path| !path.to_string_lossy().contains("/probity/tree-")).collect::<Vec<_>>();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn a_reason_has_no_value_in_it() {
    let project = Project::with("[checks.c]\ncommand = [\"true\"]\nsecrets = [\"TOKEN\"]\n");
    let ran = run(&project, &["verify", "--na", &format!("because {VALUE}")]).exits(0);
    assert!(ran.stdout.contains("declared not applicable: because [secret TOKEN]"), "{}", ran.stdout);
    kept_secret(&project, &ran);
    kept_secret(&project, &project.run(&["show", "--json"]).exits(0));
}
