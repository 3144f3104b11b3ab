//! A check with a baseline fails on what is new against the base, and says what it knows of.

use crate::support::guests::{Check, FILE_CALLS, FREE, Finding, Guest, Outcome, SCRATCH};
use crate::support::{Project, around, hygiene, row};
use serde_json::{Value, json};
use std::fs;

const PACK: &str =
    "[packs.hygiene]\nsource = \"file:hygiene.wasm\"\nallow = [\"tree:**\", \"tree:!*.wasm\", \"tree:!*.toml\"]\n";

/// A repository with faults in it that the pack finds, and the pack adopted with a baseline.
fn old_code(lines: &str, scenario: &str) -> Project {
    let project = Project::with(&format!(
        "{PACK}[checks.space]\nuse = \"hygiene/trailing-whitespace\"\nbaseline = true\n{lines}\n\
         [scenarios.default]\nchecks = [\"space\"]\nbase = \"main\"\n{scenario}\n"
    ));
    fs::copy(hygiene(), project.path("hygiene.wasm")).unwrap();
    project.write("src/a", "one \ntwo\nthree \n").write("src/b", "four \n").write("latin-1", b"caf\xe9 \n");
    project.committed();
    project.git(&["checkout", "-q", "-b", "work"]);
    project
}

/// Exit code, outcome of the check and the places of what is new; with how many are known.
fn seen(project: &Project, arguments: &[&str]) -> (i32, String, Vec<String>, usize) {
    let ran = project.run(&[&["verify", "--json"], arguments].concat());
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    let row = &document["record"]["verdict"]["rows"][0];
    let findings = row["findings"].as_array().unwrap();
    let (known, new): (Vec<&Value>, Vec<&Value>) = findings.iter().partition(|one| one["known"] == true);
    let place = |one: &Value| format!("{}:{}", one["place"]["path"].as_str().unwrap(), one["place"]["start"]["line"]);
    (ran.code.unwrap(), row["outcome"].to_string(), new.into_iter().map(place).collect(), known.len())
}

fn of(code: i32, outcome: &str, new: &[&str], known: usize) -> (i32, String, Vec<String>, usize) {
    (code, json!(outcome).to_string(), new.iter().map(|&place| place.to_owned()).collect(), known)
}

#[test]
fn a_pack_is_adopted_in_an_old_code_base() {
    let project = old_code("", "");
    let all = of(0, "passed", &[], 4);
    assert_eq!(seen(&project, &[]), all);
    insta::assert_snapshot!(project.run(&["verify", "--fresh"]).exits(0).shown(), @r"
    --- stdout
    passed       space                      [TIME]  nothing new, 4 known in the base
        … and 4 known (`probity show [RUN] --check space` lists all)
    4 findings known in the base [COMMIT], not counted as a failure
    passed: 1 passed in [TIME], run [RUN], [DIGEST]
    ");
    // Lines above move what is there, another name takes it along, and what is gone is gone.
    project.write("src/a", "new\n\none \ntwo\nthree \n").git(&["mv", "src/b", "moved"]);
    assert_eq!(seen(&project, &[]), all);
    project.write("src/a", "one \n");
    assert_eq!(seen(&project, &[]), of(0, "passed", &[], 3));
    // Once more is new, and so is what somebody touched.
    project.write("src/a", "one \ntwo\nthree \none \n").write("latin-1", b"caf\xe9 \xe9 \n").write("new", "x \n");
    assert_eq!(seen(&project, &[]), of(1, "failed", &["latin-1:1", "new:1", "src/a:4"], 3));
    insta::assert_snapshot!(project.run(&["verify"]).exits(1).shown(), @r"
    --- stdout
    failed       space                      [TIME]  3 new errors, 3 known in the base
        latin-1:1:7  trailing-whitespace  This line ends with whitespace.
        new:1:2      trailing-whitespace  This line ends with whitespace.
        src/a:4:4    trailing-whitespace  This line ends with whitespace.
        … and 3 known (`probity show [RUN] --check space` lists all)
    3 findings known in the base [COMMIT], not counted as a failure
    dirty: the working tree differs from its commit, so this says nothing of the commit
    failed: 1 failed in [TIME], run [RUN], [DIGEST]
    ");
    let shown = project.run(&["show", "latest", "--check", "space"]).exits(0).stdout;
    assert_eq!(shown.matches("known: ").count(), 3, "{shown}");
    // Committed or not, as long as the base is where the branch began; and a revision as well.
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "work"]);
    assert_eq!(seen(&project, &[]).2, ["latin-1:1", "new:1", "src/a:4"]);
    assert_eq!(seen(&project, &["--rev", "HEAD"]).2, ["latin-1:1", "new:1", "src/a:4"]);
    assert_eq!(seen(&project, &["--base", "HEAD"]), of(0, "passed", &[], 6));
    assert_eq!(seen(&project, &["--changed"]), of(1, "failed", &["latin-1:1", "new:1", "src/a:4"], 3));
}

#[test]
fn the_verdict_says_what_is_known_and_is_the_same_everywhere() {
    let verdict = || {
        let project = old_code("", "");
        project.write("src/a", "\none \ntwo\nthree \n").write("new", "x \n");
        let (_, document) = project.verify();
        (document["record"]["verdict"].clone(), around(&document, "space")["observed"].clone())
    };
    let (one, observed) = verdict();
    assert_eq!(one["plan"][0]["baseline"], true);
    let known: Vec<Value> = one["rows"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["place"]["path"], one.get("known")]))
        .collect();
    let expected = [
        json!(["latin-1", true]),
        json!(["new", null]),
        json!(["src/a", true]),
        json!(["src/a", true]),
        json!(["src/b", true]),
    ];
    assert_eq!(known, expected);
    let (other, also) = verdict();
    assert_eq!((&one["rows"], &one["plan"], &observed), (&other["rows"], &other["plan"], &also));
    assert_eq!(one["rows"][0]["class"], "hermetic");
}

#[test]
fn weights_are_those_of_what_is_new() {
    let rule = "trailing-whitespace";
    let lighter = |project: &Project| {
        project.write("new", "x \n");
        seen(project, &[])
    };
    let project = old_code(&format!("severities = {{ {rule} = \"warning\" }}"), "");
    assert_eq!(lighter(&project), of(0, "passed", &["new:1"], 4));
    let project = old_code(&format!("severities = {{ {rule} = \"warning\" }}"), "fail-on = \"warning\"");
    assert_eq!(seen(&project, &[]), of(0, "passed", &[], 4));
    assert_eq!(lighter(&project), of(1, "failed", &["new:1"], 4));
    let project = old_code(&format!("severities = {{ {rule} = \"off\" }}"), "");
    // Without a rule that counts there is nothing to verify.
    let (code, outcome, ..) = lighter(&project);
    assert_eq!((code, outcome.as_str()), (2, "{\"skipped\":\"rules_off\"}"));
}

#[test]
fn a_baseline_needs_a_base() {
    let project = old_code("", "");
    let text = fs::read_to_string(project.path("probity.toml")).unwrap().replace("base = \"main\"\n", "");
    project.write("probity.toml", text);
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).stderr, @r#"
    error: check `space` has a baseline, and the scenario `default` has no base
     --> probity.toml:6:12
      |
    6 | baseline = true
      |            ^^^^ new against what?
      |
      = help: add `base = "origin/main"` to `[scenarios.default]`, or name one with `--base`
    "#);
    project.run(&["verify", "--plan"]).exits(2);
    assert_eq!(seen(&project, &["--base", "main"]).0, 0);
    project.run(&["verify", "--na", "no need"]).exits(0);
    let plan = project.run(&["verify", "--plan", "--base", "main"]).exits(0).stdout;
    assert!(plan.contains("fails on what is new against the base"), "{plan}");
    let plan: Value =
        serde_json::from_str(&project.run(&["verify", "--plan", "--json", "--base", "main"]).exits(0).stdout).unwrap();
    assert_eq!(plan["checks"][0]["baseline"], true);
}

#[test]
fn trees_are_compared_as_they_lie_here() {
    let project = old_code("", "");
    project.git(&["checkout", "-q", "main"]);
    // What git converts, links, and repositories inside, of which the base has no contents.
    project.write(".gitattributes", "*.txt text eol=crlf\n").write("crlf.txt", "x \r\ny\r\n").write("nested/a", "x \n");
    std::os::unix::fs::symlink("src/a", project.path("link")).unwrap();
    project.committed_at("nested");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "more"]);
    assert_eq!(seen(&project, &[]), of(0, "passed", &[], 6));
    project.write("crlf.txt", "\r\nx \r\ny\r\n");
    assert_eq!(seen(&project, &[]), of(0, "passed", &[], 6));
    project.write("nested/b", "x \n");
    fs::remove_file(project.path("link")).unwrap();
    std::os::unix::fs::symlink("src/b", project.path("link")).unwrap();
    assert_eq!(seen(&project, &[]), of(1, "failed", &["nested/b:1"], 6));
}

#[test]
fn lines_of_a_large_file_are_compared_as_long_as_it_is_as_it_was() {
    let project = old_code("files = [\"big\"]", "");
    project.git(&["checkout", "-q", "main"]);
    let big = [b"a line of text\n".repeat(20 << 16), b"last \n".to_vec()].concat();
    project.write("big", &big).git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "big"]);
    assert_eq!(seen(&project, &[]), of(0, "passed", &[], 1));
    project.write("big", [b"\n".to_vec(), big].concat());
    assert_eq!(seen(&project, &[]).0, 1);
}

const LOOK: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\", \"base:**\", \"evidence:**\"]\n\
     [checks.look]\nuse = \"p/look\"\nfiles = [\"src/**\"]\nbaseline = true\n";
const SCENARIO: &str = "[scenarios.default]\nchecks = [\"look\"]\nbase = \"HEAD\"\n";

/// A pack that finds something at each of these paths, and a tree of which the first commit has `src/a`.
fn looked(paths: &[&str], lines: &str, change: impl FnOnce(&mut Guest)) -> Project {
    let one = |path: &&str| Finding { path: Some((*path).to_owned()), ..Finding::default() };
    let mut guest = Guest { outcome: Outcome::Report(paths.iter().map(one).collect(), Vec::new()), ..Guest::default() };
    change(&mut guest);
    let project = Project::with(&format!("{LOOK}{lines}\n{SCENARIO}"));
    project.component("p.wasm", &guest.text()).write("src/a", "a").committed();
    project
}

#[test]
fn a_check_of_the_tree_is_run_on_the_base_as_a_tree() {
    let project = looked(&["src/a", "src"], "", |_| {});
    project.write("src/a", "b").write("src/new", "");
    let (code, document) = project.verify();
    assert_eq!(code, 0, "{document:#}");
    assert!(row(&document, "look")["findings"].as_array().unwrap().iter().all(|one| one["known"] == true));
}

#[test]
fn a_base_without_the_files_knows_nothing() {
    let project = looked(&["lib/new"], "", |_| {});
    project.write("probity.toml", format!("{LOOK}{SCENARIO}").replace("src/**", "lib/**")).write("lib/new", "");
    let (code, document) = project.verify();
    assert_eq!((code, &row(&document, "look")["outcome"]), (1, &json!("failed")), "{document:#}");
    assert_eq!(row(&document, "look")["findings"][0].get("known"), None);
}

#[test]
fn a_base_that_is_not_judged_is_an_error_and_excuses_nothing() {
    // There is no such path in the base.
    let project = looked(&["src/new"], "", |_| {});
    project.write("src/new", "");
    let commit = project.git(&["rev-parse", "HEAD"]);
    let (code, document) = project.verify();
    assert_eq!((code, &row(&document, "look")["outcome"]), (1, &json!({"error": "bad_result"})));
    assert_eq!(row(&document, "look")["findings"], json!([]));
    let said = around(&document, "look")["message"].as_str().unwrap().to_owned();
    assert!(said.starts_with(&format!("run on the base sha1:{commit}: ")), "{said}");
    // One that does not end there, by what it may use and by the time it has.
    for (lines, outcome) in [
        ("limits = { fuel = 50000000 }", json!({"error": "out_of_fuel"})),
        ("limits = { fuel = 900000000000, wall = \"3s\" }", json!("timed_out")),
    ] {
        let project = looked(&["src/a"], lines, |guest| {
            guest.calls = FILE_CALLS.to_vec();
            guest.scratch = b"src/new".to_vec();
            guest.on_run = format!(
                "(call $directories (i32.const {FREE}))
                 (local.set $a (i32.load (i32.load (i32.const {FREE}))))
                 (call $open (local.get $a) (i32.const 1) (i32.const {SCRATCH}) (i32.const 7) (i32.const 0) (i32.const 1)
                   (i32.const {FREE}))
                 (if (i32.load8_u (i32.const {FREE})) (then (loop $on (br $on))))"
            );
        });
        project.write("src/new", "");
        let (code, document) = project.verify();
        assert_eq!((code, &row(&document, "look")["outcome"]), (1, &outcome), "{document:#}");
        assert!(around(&document, "look")["message"].as_str().unwrap().starts_with("run on the base "));
    }
    // What finds nothing there to judge finds nothing.
    let project = looked(&[], "", |guest| guest.outcome = Outcome::Refusal(0, "nothing here".into()));
    assert_eq!(project.verify().0, 2, "and here neither");
}

#[test]
fn the_base_is_compared_with_itself() {
    let project = looked(&["src/a"], "", |guest| {
        guest.pack.checks[0].wants_changes = true;
        // It traps where there is no list of changes, and where there is one with nothing in it.
        guest.on_run =
            "(if (i32.eqz (local.get 6)) (then unreachable)) (if (i32.eqz (local.get 8)) (then unreachable))".into();
    });
    project.write("src/a", "b");
    let (_, document) = project.verify();
    assert_eq!(row(&document, "look")["outcome"], json!({"error": "trap"}), "{document:#}");
    assert!(around(&document, "look")["message"].as_str().unwrap().starts_with("run on the base "));
}

#[test]
fn what_is_no_tree_has_no_baseline() {
    let needing = |mounts: &[u8]| {
        let needs = mounts.iter().map(|mount| (*mount, vec!["**".to_owned()])).collect();
        let project = looked(&[], "", |guest| guest.pack.checks[0] = Check { needs, ..Check::default() });
        project.run(&["verify"])
    };
    insta::assert_snapshot!(needing(&[0, 2]).exits(2).stderr, @r"
    error: check `p/look` can have no baseline: it reads `/evidence`, which the base has none of
     --> probity.toml:7:12
      |
    7 | baseline = true
      |            ^^^^
      |
      = help: remove `baseline`; all that it finds counts
    ");
    assert!(needing(&[1]).exits(2).stderr.contains("reads no `/tree`"));
    needing(&[0, 1]).exits(0);
}
