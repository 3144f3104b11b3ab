//! What checks are shown beside the subject: base, specification, evidence; and subjects that are revisions.

use crate::support::guests::{Check, FILE_CALLS, FREE, Guest, SCRATCH};
use crate::support::{Project, around, row};
use serde_json::json;

const TREE: u8 = 0;
const BASE: u8 = 1;
const EVIDENCE: u8 = 2;
const CLAIM: u8 = 3;
const SPEC: u8 = 4;

/// A pack whose check reads files, each on a mount by its place among those it has, and says what it read: the number of
/// mounts, then for each file its contents, or `-` where there is none. It says so on its way to a trap, since that is
/// when what a guest writes is kept.
fn reader(needs: &[u8], per_file: bool, reads: &[(usize, &str)]) -> Guest {
    let mut scratch = b"|-0123456789".to_vec();
    let say = |at: u32, len: u32| {
        format!("(call $write (local.get $b) (i32.const {}) (i32.const {len}) (i32.const {FREE}))", SCRATCH + at)
    };
    let mut code = format!(
        "(local.set $b (call $stderr)) (call $directories (i32.const {FREE}))
         (call $write (local.get $b) (i32.add (i32.const {}) (i32.load (i32.const {}))) (i32.const 1) (i32.const {FREE}))",
        SCRATCH + 2,
        FREE + 4,
    );
    for (mount, path) in reads {
        let at = SCRATCH + u32::try_from(scratch.len()).unwrap();
        scratch.extend_from_slice(path.as_bytes());
        code.push_str(&format!(
            "{} (call $directories (i32.const {FREE}))
             (local.set $a (i32.load (i32.add (i32.load (i32.const {FREE})) (i32.const {}))))
             (call $open (local.get $a) (i32.const 1) (i32.const {at}) (i32.const {}) (i32.const 0) (i32.const 1) (i32.const {FREE}))
             (if (i32.load8_u (i32.const {FREE})) (then {})
               (else
                 (call $read (i32.load (i32.const {})) (i64.const 60000) (i64.const 0) (i32.const {FREE}))
                 (local.set $a (i32.load (i32.const {}))) (local.set $c (i32.load (i32.const {})))
                 ;; One write takes 4096 bytes.
                 (loop $more
                   (if (i32.gt_u (local.get $c) (i32.const 4096)) (then
                     (call $write (local.get $b) (local.get $a) (i32.const 4096) (i32.const {FREE}))
                     (local.set $a (i32.add (local.get $a) (i32.const 4096)))
                     (local.set $c (i32.sub (local.get $c) (i32.const 4096)))
                     (br $more))))
                 (call $write (local.get $b) (local.get $a) (local.get $c) (i32.const {FREE}))))",
            say(0, 1),
            12 * mount,
            path.len(),
            say(1, 1),
            FREE + 4,
            FREE + 4,
            FREE + 8,
        ));
    }
    let mut guest =
        Guest { calls: FILE_CALLS.to_vec(), scratch, on_run: format!("{code} unreachable"), ..Guest::default() };
    guest.pack.checks[0] = Check {
        needs: needs.iter().map(|mount| (*mount, vec!["**".to_owned()])).collect(),
        files: vec!["**".into(), "!*.toml".into(), "!*.wasm".into()],
        per_file,
        ..Check::default()
    };
    guest
}

const PACK: &str = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"tree:**\", \"base:**\", \"base:!hidden\", \
     \"evidence:**\", \"spec:**\", \"tree:!p.wasm\"]\n\n";

fn project(config: &str, guest: &Guest) -> Project {
    let project = Project::with(&format!("{PACK}{config}"));
    project.component("p.wasm", &guest.text()).write("f", "");
    project
}

/// What the check `look` read.
#[track_caller]
fn read(project: &Project, arguments: &[&str]) -> (String, serde_json::Value) {
    let ran = project.run(&[&["verify", "--json"], arguments].concat());
    let document: serde_json::Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    assert_eq!(row(&document, "look")["outcome"], json!({"error": "trap"}), "{document:#}");
    (around(&document, "look")["stderr"].as_str().unwrap_or_default().to_owned(), document)
}

const LOOK: &str = "[checks.look]\nuse = \"p/look\"\n";

#[test]
fn the_base_is_what_the_commit_holds_where_the_histories_parted() {
    let guest = reader(&[TREE, BASE], false, &[(1, "a"), (0, "a"), (1, "gone"), (1, "new"), (1, "hidden"), (1, "l")]);
    let project = project(&format!("{LOOK}[scenarios.default]\nchecks = [\"look\"]\nbase = \"main\"\n"), &guest);
    project.write("a", "before").write("gone", "was here").write("hidden", "secret");
    std::os::unix::fs::symlink("a", project.path("l")).unwrap();
    project.committed();
    project.git(&["checkout", "-q", "-b", "work"]);
    project.git(&["rm", "-q", "gone"]);
    project.write("a", "after").write("new", "x");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "work"]);
    project.git(&["checkout", "-q", "main"]);
    project.write("a", "main went on");
    project.git(&["commit", "-q", "-am", "on"]);
    project.git(&["checkout", "-q", "work"]);
    let base = project.git(&["rev-parse", "main~1"]);
    let (said, document) = read(&project, &[]);
    assert_eq!(said, "2|before|after|was here|-|-|before");
    assert_eq!(document["record"]["verdict"]["subject"]["base"], json!(format!("sha1:{base}")));
    assert_eq!(row(&document, "look")["class"], "hermetic");
    // Another one by name, and none.
    let (said, _) = read(&project, &["--base", "HEAD"]);
    assert_eq!(said, "2|after|after|-|x|-|after");
}

#[test]
fn a_check_of_each_file_sees_its_own_path_in_every_mount() {
    let guest = reader(&[TREE, BASE], true, &[(0, "a"), (1, "a"), (0, "b"), (1, "b")]);
    let config = format!("{LOOK}files = [\"a\"]\n[scenarios.default]\nchecks = [\"look\"]\nbase = \"HEAD\"\n");
    let project = project(&config, &guest);
    project.write("a", "one").write("b", "two").committed();
    project.write("a", "changed");
    assert_eq!(read(&project, &[]).0, "2|changed|one|-|-");
}

#[test]
fn a_base_that_cannot_be_is_told() {
    let project = project(LOOK, &reader(&[TREE, BASE], false, &[]));
    let refused = |project: &Project, base: &str| project.run(&["verify", "--base", base]).exits(2).stderr;
    assert!(refused(&project, "HEAD").contains("no repository here"));
    project.committed();
    for none in ["nothing", "", "--all", "HEAD:a", "a\nb", "HEAD^{tree}"] {
        let said = project.run(&["verify", &format!("--base={none}")]).exits(2).stderr;
        assert!(said.contains("names no commit"), "{none}: {said}");
    }
    project.git(&["checkout", "-q", "--orphan", "alone"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "alone"]);
    assert!(refused(&project, "main").contains("no commit in common"), "unrelated");
}

#[test]
fn without_a_base_there_is_no_such_mount() {
    let project = project(LOOK, &reader(&[TREE, BASE], false, &[(0, "a")]));
    project.write("a", "x").committed();
    let (said, document) = read(&project, &[]);
    assert_eq!(said, "1|x");
    assert_eq!(document["record"]["verdict"]["subject"]["base"], json!(null));
}

#[test]
fn the_specification_is_as_it_was_committed() {
    let config = format!("{LOOK}[spec]\npaths = [\"SPEC.md\", \"spec/**\"]\n");
    let project = project(&config, &reader(&[TREE, SPEC], false, &[(1, "SPEC.md"), (1, "spec/a"), (1, "other")]));
    project.write("SPEC.md", "must").write("spec/a", "and").write("other", "no").committed();
    assert_eq!(read(&project, &[]).0, "2|must|and|-");
    project.write("other", "edited");
    assert_eq!(read(&project, &[]).0, "2|must|and|-");
    project.write("SPEC.md", "may").write("spec/new", "x");
    std::fs::remove_file(project.path("spec/a")).unwrap();
    insta::assert_snapshot!(project.run(&["verify"]).exits(2).stderr, @r"
    error: the specification is not as it was committed: SPEC.md, spec/a, spec/new
    help: commit it first: a verdict is about a specification that others can look up
    ");
}

#[test]
fn a_specification_is_files_of_the_same_kind() {
    let config = format!("{LOOK}[spec]\npaths = [\"SPEC.md\"]\n");
    let project = project(&config, &reader(&[SPEC], false, &[(0, "SPEC.md")]));
    project.write("SPEC.md", "f").committed();
    assert_eq!(read(&project, &[]).0, "1|f");
    std::fs::remove_file(project.path("SPEC.md")).unwrap();
    std::os::unix::fs::symlink("f", project.path("SPEC.md")).unwrap();
    assert!(project.run(&["verify"]).exits(2).stderr.contains("not as it was committed: SPEC.md"));
    std::fs::remove_file(project.path("SPEC.md")).unwrap();
    project.script("SPEC.md", "").write("SPEC.md", "f");
    assert!(project.run(&["verify"]).exits(2).stderr.contains("not as it was committed: SPEC.md"));
}

#[test]
fn a_specification_that_no_commit_has_is_refused() {
    let config = format!("{LOOK}[spec]\npaths = [\"SPEC.md\"]\n");
    let project = project(&config, &reader(&[SPEC], false, &[]));
    assert!(project.run(&["verify"]).exits(2).stderr.contains("no commit that it could be in"));
    project.committed();
    assert!(
        project
            .run(&["verify"])
            .exits(2)
            .stderr
            .contains("no committed file of the specification is named by `SPEC.md`")
    );
}

#[test]
fn evidence_is_of_exactly_the_checks_it_comes_after() {
    let config = "[checks.look]\nuse = \"p/look\"\nafter = [\"good\", \"bad\"]\n\n[checks.good]\ncommand = [\"echo\", \"said\"]\n\n\
         [checks.bad]\ncommand = [\"false\"]\n\n[checks.other]\ncommand = [\"true\"]\n\n\
         [scenarios.default]\nchecks = [\"look\", \"good\", \"bad\", \"other\"]\nfail-fast = false\n";
    let reads = [
        (0, "good/output"),
        (0, "good/result.json"),
        (0, "bad/output"),
        (0, "bad/result.json"),
        (0, "other/result.json"),
    ];
    let project = project(config, &reader(&[EVIDENCE], false, &reads));
    let (said, document) = read(&project, &[]);
    let good = r#"{"blocking":true,"class":"observed","engine":null,"findings":[],"id":"good","kind":"command","outcome":"passed","stats":[]}"#;
    let bad = good.replace("good", "bad").replace("passed", "failed");
    assert_eq!(said, format!("1|said\n|{good}||{bad}|-"));
    assert_eq!(row(&document, "look")["class"], "derived", "it rests on what commands said");
    let order: Vec<_> =
        document["record"]["verdict"]["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(order, ["good", "bad", "look", "other"]);
}

#[test]
fn evidence_that_was_changed_after_the_fact_is_none() {
    let config = "[checks.talk]\ncommand = [\"echo\", \"said\"]\n[checks.forge]\ncommand = [\"./forge\"]\n\
         [checks.look]\nuse = \"p/look\"\nafter = [\"talk\"]\n";
    let project = project(config, &reader(&[TREE, EVIDENCE], false, &[(1, "talk/output")]));
    project.script("forge", "for log in .probity/logs/*/talk.log; do echo other > $log; done");
    let (_, document) = project.verify();
    assert_eq!(row(&document, "look")["outcome"], json!({"error": "host"}), "{document:#}");
    let said = around(&document, "look")["message"].as_str().unwrap();
    assert!(said.contains("the output of talk was changed after it ended"), "{said}");
}

#[test]
fn without_after_there_is_no_evidence() {
    let config = format!("[checks.good]\ncommand = [\"true\"]\n{LOOK}");
    let project = project(&config, &reader(&[TREE, EVIDENCE], false, &[]));
    let (said, document) = read(&project, &[]);
    assert_eq!(said, "1");
    assert_eq!(row(&document, "look")["class"], "hermetic");
}

#[test]
fn a_revision_is_verified_without_a_checkout() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a"), (0, "later"), (0, "l"), (0, "big")]));
    let big = "0123456789".repeat(2_000);
    project.write("a", "old").write("big", &big);
    std::os::unix::fs::symlink("a", project.path("l")).unwrap();
    project.committed();
    let clean = project.verify().1;
    let old = project.git(&["rev-parse", "HEAD"]);
    project.write("a", "new").write("later", "x");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "second"]);
    project.write("a", "not committed");
    let (said, document) = read(&project, &["--rev", "HEAD~1"]);
    assert_eq!(said, format!("1|old|-|old|{big}"));
    assert_eq!(document["record"]["verdict"]["subject"]["commit"], json!(format!("sha1:{old}")));
    assert_eq!(document["record"]["verdict_digest"], clean["record"]["verdict_digest"], "as a clean checkout of it");
    assert_eq!(document["record"]["dirty"], json!(false));
    assert_eq!(read(&project, &["--rev", "HEAD"]).0, format!("1|new|x|new|{big}"));
}

#[test]
fn the_index_is_verified_as_a_commit_of_it_would_be() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a"), (0, "new"), (0, "b")]));
    project.git(&["init", "-q"]);
    project.write("a", "1").write("b", "1").git(&["add", "-A"]);
    // Before the first commit too; and what is not staged is not there.
    project.write("a", "not staged").write("new", "not staged");
    let (said, document) = read(&project, &["--staged"]);
    assert_eq!(said, "1|1|-|1");
    let subject = |document: &serde_json::Value| document["record"]["verdict"]["subject"].clone();
    assert_eq!((&subject(&document)["commit"], &document["record"]["dirty"]), (&json!(null), &json!(true)));
    project.git(&["commit", "-q", "-m", "one"]);
    let (_, clean) = read(&project, &["--staged"]);
    assert_eq!(clean["record"]["dirty"], false);
    assert_eq!(subject(&clean), subject(&read(&project, &["--rev", "HEAD"]).1));
    // The configuration is the staged one, and a removal is staged too.
    project.git(&["rm", "-q", "--cached", "b"]);
    project.write("a", "2").git(&["add", "a"]);
    project.write("probity.toml", "broken");
    let (said, document) = read(&project, &["--staged"]);
    assert_eq!((said.as_str(), &document["record"]["dirty"]), ("1|2|-|-", &json!(true)));
    project.git(&["add", "probity.toml"]);
    assert!(project.run(&["verify", "--staged"]).exits(2).stderr.contains("--> :probity.toml:1"));
    project.git(&["rm", "-q", "-f", "--cached", "probity.toml"]);
    assert!(project.run(&["verify", "--staged"]).exits(2).stderr.contains("the index has no probity.toml"));
}

/// Makes a hook of it: before each commit, what the check read of the index is appended to `home/said`.
fn hook(project: &Project) {
    let said = project.outside().join("home/said");
    let body = format!(
        "exec > '{0}.json'\n'{1}' verify --staged --json\ncode=$?\nsed -n 's/.*\"stderr\": \"\\(.*\\)\",/\\1/p' \
         '{0}.json' >> '{0}'\n[ $code = 1 ] || exit 1\n",
        said.display(),
        env!("CARGO_BIN_EXE_probity"),
    );
    project.script(".git/hooks/pre-commit", &body);
}

fn said(project: &Project) -> String {
    let path = project.outside().join("home/said");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    text
}

#[test]
fn a_hook_is_told_of_the_index_that_is_committed() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a"), (0, "b")]));
    project.write("a", "1").write("b", "1").committed();
    hook(&project);
    let commit = |folder: &str, arguments: &[&str]| {
        project.git(&[&["-C", folder, "commit", "-q", "-m", "x"], arguments].concat());
        said(&project)
    };
    project.write("a", "2").git(&["add", "a"]);
    project.write("b", "2");
    assert_eq!(commit(".", &[]), "1|2|1\n", "the index as it is");
    project.write("a", "3").git(&["add", "a"]);
    assert_eq!(commit(".", &["b"]), "1|2|2\n", "a path alone, and not what is staged beside it");
    project.write("b", "3");
    assert_eq!(commit(".", &["-a"]), "1|3|3\n", "all that is tracked");
    project.write("b", "4");
    assert_eq!(commit(".", &["--include", "b"]), "1|3|4\n");
    // A linked worktree has an index of its own, elsewhere.
    let linked = project.outside().join("linked");
    let linked = linked.to_str().unwrap();
    project.git(&["worktree", "add", "-q", linked]);
    std::fs::write(format!("{linked}/a"), "5").unwrap();
    assert_eq!(commit(linked, &["-a"]), "1|5|4\n");
    std::fs::write(format!("{linked}/b"), "6").unwrap();
    assert_eq!(commit(linked, &["b"]), "1|5|6\n");
}

#[test]
fn an_index_of_somebody_else_is_refused() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a")]));
    project.write("a", "1").committed();
    let with = |index: &str, arguments: &[&str]| {
        project.ran({
            let mut command = project.command(&[&["verify"], arguments].concat());
            command.env("GIT_INDEX_FILE", index);
            command
        })
    };
    let outside = project.outside();
    std::fs::copy(project.path(".git/index"), outside.join("index")).unwrap();
    std::os::unix::fs::symlink(outside.join("index"), project.path(".git/link")).unwrap();
    std::fs::create_dir(project.path(".git/folder")).unwrap();
    std::fs::copy(project.path(".git/index"), project.path(".git/folder/index")).unwrap();
    project.git(&["worktree", "add", "-q", outside.join("linked").to_str().unwrap()]);
    let elsewhere = outside.join("index");
    let refused = [
        elsewhere.to_str().unwrap(),
        "index",
        ".git/link",
        ".git/folder",
        ".git/folder/index",
        ".git/gone",
        ".git/gone/index",
        ".git/worktrees/linked/index",
        ".git/..",
        "/dev/null",
    ];
    for index in refused {
        let ran = with(index, &["--staged"]).exits(2);
        assert!(ran.stderr.contains("error: `GIT_INDEX_FILE` names `"), "{index}: {}", ran.stderr);
        assert!(ran.stderr.contains("\nhelp: unset `GIT_INDEX_FILE`"), "{index}: {}", ran.stderr);
        // What lies in the working tree, or in a commit, has nothing to do with it.
        with(index, &[]).exits(1);
        with(index, &["--rev", "HEAD"]).exits(1);
    }
    insta::assert_snapshot!(with("/dev/null", &["--staged"]).exits(2).stderr, @r"
    error: `GIT_INDEX_FILE` names `/dev/null`, and the index of [DIR]/project cannot be that: it is not in the folder that git keeps for this working tree
    help: unset `GIT_INDEX_FILE`, or have it name a file of [DIR]/project/.git, as git does for hooks of this repository
    ");
    for index in [".git/index", "", project.path(".git/index").to_str().unwrap()] {
        with(index, &["--staged"]).exits(1);
    }
}

#[test]
fn what_is_only_meant_to_be_added_is_in_no_commit_of_the_index() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "d/meant"), (0, "empty")]));
    project.write("a", "1").committed();
    project.write("d/meant", "x").write("empty", "").git(&["add", "-N", "d/meant"]);
    let ran = project.run(&["verify", "--staged"]).exits(1);
    assert!(ran.stderr.contains("note: d/meant is only meant to be added, so a commit"), "{}", ran.stderr);
    let (said, document) = read(&project, &["--staged"]);
    assert_eq!((said.as_str(), &document["record"]["dirty"]), ("1|-|-", &json!(false)));
    let subject = |document: &serde_json::Value| document["record"]["verdict"]["subject"].clone();
    assert_eq!(subject(&document), subject(&read(&project, &["--rev", "HEAD"]).1));
    // A file that is empty is one.
    project.git(&["add", "empty"]);
    let (said, document) = read(&project, &["--staged"]);
    assert_eq!((said.as_str(), &document["record"]["dirty"]), ("1|-|", &json!(true)));
    let ran = project.run(&["verify", "--staged"]).exits(1);
    assert!(ran.stdout.contains("staged: the index differs from the commit"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("working tree"), "{}", ran.stdout);
    let shown = project.run(&["show"]).exits(0).stdout;
    assert!(shown.contains(", and the index, which was verified, differs from it\n"), "{shown}");
}

#[test]
fn what_needs_a_repository_says_so_with_what_to_do() {
    let project = project(LOOK, &Guest::default());
    for (arguments, title) in [
        (&["--staged"][..], "--staged is about an index, and there is no repository here"),
        (&["--rev", "HEAD"], "--rev names a revision, and there is no repository here"),
        (&["--changed"], "`--changed` compares with a base, and there is none"),
        (&["--changed", "--base", "main"], "`--base`: there is a base, `main`, and no repository here"),
    ] {
        let ran = project.run(&[&["verify"], arguments].concat()).exits(2);
        let rest = ran.stderr.strip_prefix(&format!("error: {title}\nhelp: "));
        let rest = rest.unwrap_or_else(|| panic!("{arguments:?}: {}", ran.stderr));
        assert!(!rest.contains("--base origin/main") && rest.ends_with('\n'), "{rest}");
    }
}

#[test]
fn an_index_that_cannot_be_is_told() {
    let project = project(LOOK, &Guest::default());
    assert!(project.run(&["verify", "--staged"]).exits(2).stderr.contains("no repository here"));
    project.committed();
    for (branch, text) in [("one", "1"), ("two", "2")] {
        project.git(&["checkout", "-q", "-b", branch, "main"]);
        project.write("f", text).git(&["commit", "-q", "-am", branch]);
    }
    let mut merge = std::process::Command::new("git");
    assert!(!merge.args(["merge", "-q", "one"]).current_dir(project.root()).output().unwrap().status.success());
    insta::assert_snapshot!(project.run(&["verify", "--staged"]).exits(2).stderr, @r"
    error: f is not merged, so the index holds nothing to verify
    help: settle the merge and `git add` the result
    ");
    assert!(project.run(&["verify", "--staged", "--rev", "HEAD"]).exits(2).stderr.contains("cannot be used with"));
}

#[test]
fn a_revision_with_commands_is_partial_and_never_green() {
    let config = "[checks.run]\ncommand = [\"touch\", \"ran\"]\n[checks.look]\nuse = \"p/look\"\n";
    let quiet = Guest::default();
    let project = project(config, &quiet);
    project.committed();
    let ran = project.run(&["verify", "--rev", "HEAD"]).exits(3);
    insta::assert_snapshot!(ran.shown());
    assert!(!project.path("ran").exists());
    // Without commands it is everything.
    project.write("probity.toml", format!("{PACK}{LOOK}"));
    project.git(&["commit", "-q", "-am", "no commands"]);
    project.run(&["verify", "--rev", "HEAD"]).exits(0);
    // By the configuration it had, and with nothing but commands nothing was verified.
    project.run(&["verify", "--rev", "HEAD~1"]).exits(3);
    project.write("probity.toml", "[checks.run]\ncommand = [\"true\"]\n");
    project.git(&["commit", "-q", "-am", "only commands"]);
    project.run(&["verify", "--rev", "HEAD"]).exits(2);
}

#[test]
fn a_revision_is_judged_by_the_pack_that_it_holds() {
    let project = project(LOOK, &Guest::default());
    project.committed();
    let of = |arguments: &[&str]| -> serde_json::Value {
        let ran = project.run(&[&["verify", "--json"], arguments].concat()).exits(0);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let clean = of(&[]);
    let red = Guest { on_run: "unreachable".into(), ..Guest::default() };
    project.component("p.wasm", &red.text());
    let rev = of(&["--rev", "HEAD"]);
    assert_eq!(rev["record"]["packs"], clean["record"]["packs"]);
    assert_eq!(rev["record"]["verdict_digest"], clean["record"]["verdict_digest"]);
    std::fs::remove_file(project.path("p.wasm")).unwrap();
    of(&["--rev", "HEAD"]);
    project.git(&["rm", "-q", "--cached", "p.wasm"]);
    project.git(&["commit", "-q", "-m", "without"]);
    project.component("p.wasm", &Guest::default().text());
    let said = project.run(&["verify", "--rev", "HEAD"]).exits(2).stderr;
    assert!(said.contains("the revision has no file at `p.wasm`"), "{said}");
}

#[test]
fn what_is_left_out_here_is_named() {
    let project = project(LOOK, &Guest::default());
    project.write("kept/a", "x").write("left/b", "x").committed();
    project.git(&["update-index", "--skip-worktree", "left/b"]);
    std::fs::remove_file(project.path("left/b")).unwrap();
    let (code, document) = project.verify();
    assert_eq!(code, 0);
    assert_eq!(document["record"]["open"], json!([{"path": "left/b", "why": "tracked, and left out here"}]));
}

#[test]
fn a_configuration_that_is_a_link_is_told_as_one() {
    let project = project(LOOK, &Guest::default());
    std::fs::rename(project.path("probity.toml"), project.path("real.toml")).unwrap();
    std::os::unix::fs::symlink("real.toml", project.path("probity.toml")).unwrap();
    project.committed();
    for arguments in [&["verify"][..], &["verify", "--rev", "HEAD"]] {
        let said = project.run(arguments).exits(2).stderr;
        assert!(said.contains("probity.toml is a link"), "{said}");
    }
}

#[test]
fn a_file_that_a_command_changes_before_it_is_read_makes_the_run_stale() {
    let config = "[checks.edit]\ncommand = [\"./edit\"]\n[checks.look]\nuse = \"p/look\"\n";
    let project = project(config, &reader(&[TREE], false, &[(0, "f")]));
    project.script("edit", "echo other > f").write("f", "x\n");
    let (code, document) = project.verify();
    assert_eq!((code, &document["record"]["verdict"]["outcome"]), (1, &json!("stale")));
    assert_eq!(row(&document, "look")["outcome"], json!({"error": "moved"}));
    assert_eq!(document["record"]["moved"], json!(["f"]));
}

#[test]
fn a_revision_that_cannot_be_is_told() {
    let project = project(LOOK, &Guest::default());
    assert!(project.run(&["verify", "--rev", "HEAD"]).exits(2).stderr.contains("no repository here"));
    project.git(&["init", "-q"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
    assert!(project.run(&["verify", "--rev", "HEAD"]).exits(2).stderr.contains("has no probity.toml"));
    assert!(project.run(&["verify", "--rev", "other"]).exits(2).stderr.contains("names no commit"));
}

#[test]
fn objects_that_are_not_what_their_ids_say_are_refused() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a")]));
    project.write("a", "honest").committed();
    let id = project.git(&["rev-parse", "HEAD:a"]);
    project.write("elsewhere", "forged");
    let forged = project.git(&["hash-object", "-w", "elsewhere"]);
    let object = |id: &str| project.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    std::fs::remove_file(object(&id)).unwrap();
    std::fs::copy(object(&forged), object(&id)).unwrap();
    let said = project.run(&["verify", "--rev", "HEAD"]).exits(2).stderr;
    assert!(said.contains("is not that object"), "{said}");
    // A tree in another's place makes another listing.
    let tree = project.git(&["rev-parse", "HEAD^{tree}"]);
    project.git(&["commit", "-q", "-am", "x", "--allow-empty"]);
    project.git(&["add", "elsewhere"]);
    let other = project.git(&["write-tree"]);
    std::fs::remove_file(object(&tree)).unwrap();
    std::fs::copy(object(&other), object(&tree)).unwrap();
    let said = project.run(&["verify", "--rev", "HEAD"]).exits(2).stderr;
    assert!(said.contains("is not that object") || said.contains("hash mismatch"), "{said}");
}

/// Writes a tree object, whatever is in it, and gives its id.
#[test]
fn a_link_of_a_revision_is_no_longer_than_any_link() {
    let project = project(LOOK, &reader(&[TREE], false, &[(0, "a")]));
    project.write("a", "x").committed();
    for (length, code) in [(4096, 1), (4097, 2), (3 << 20, 2)] {
        project.write("../text", "a".repeat(length));
        let text = project.git(&["hash-object", "-w", "../text"]);
        project.git(&["update-index", "--add", "--cacheinfo", &format!("120000,{text},link")]);
        project.git(&["commit", "-q", "-m", "link"]);
        let ran = project.run(&["verify", "--rev", "HEAD"]).exits(code);
        assert_eq!(ran.stderr.contains("is a link of more than 4096 bytes"), code == 2, "{}", ran.stderr);
    }
}

fn tree_object(project: &Project, lines: &[(&str, &str, &str)]) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let digit = |id: &str, at: usize| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap();
    let line = |(mode, name, id): &(&str, &str, &str)| {
        [format!("{mode} {name}\0").into_bytes(), (0..20).map(|at| digit(id, at)).collect()].concat()
    };
    let contents: Vec<u8> = lines.iter().flat_map(line).collect();
    let arguments = ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"];
    let mut git = Command::new("git");
    git.args(arguments).current_dir(project.root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.spawn().unwrap();
    git.stdin.take().unwrap().write_all(&contents).unwrap();
    String::from_utf8(git.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn trees_that_no_folder_could_be_are_refused() {
    let project = project(LOOK, &Guest::default());
    project.committed();
    let (blob, empty) = (project.git(&["rev-parse", "HEAD:f"]), tree_object(&project, &[]));
    let refused = |root: &str| {
        let commit = project.git(&["commit-tree", root, "-m", "made by hand"]);
        project.run(&["verify", "--rev", &commit]).exits(2).stderr
    };
    for (lines, said) in [
        (&[("100644", "..", blob.as_str())][..], "has `..` for a name"),
        (&[("100644", ".git", &blob)], "has `.git` for a name"),
        (&[("100644", "a/b", &blob)], "has `a/b` for a name"),
        (&[("100644", "a\u{1b}[31m/", &blob)], "has `a\\u{1b}[31m/` for a name"),
        (&[("100644", "a", &blob), ("40000", "a", &empty)], "has the name `a` twice"),
    ] {
        let shown = refused(&tree_object(&project, lines));
        assert!(shown.contains(said), "{shown}");
    }
    // Ten objects that say that they are ten thousand million files.
    let mut bomb = tree_object(&project, &[("100644", "f", &blob)]);
    for _ in 0..10 {
        let names: Vec<String> = (0..10).map(|name| name.to_string()).collect();
        bomb = tree_object(
            &project,
            &names.iter().map(|name| ("40000", name.as_str(), bomb.as_str())).collect::<Vec<_>>(),
        );
    }
    assert!(refused(&bomb).contains("has more entries than any file system"));
    // What git writes in other ways than others did is no fault.
    let config = project.git(&["rev-parse", "HEAD:probity.toml"]);
    let pack = project.git(&["rev-parse", "HEAD:p.wasm"]);
    let odd = tree_object(
        &project,
        &[("100664", "f", &blob), ("100644", "p.wasm", &pack), ("100644", "probity.toml", &config)],
    );
    let commit = project.git(&["commit-tree", &odd, "-m", "old"]);
    project.run(&["verify", "--rev", &commit]).exits(0);
}

#[test]
fn a_claim_is_whatever_folder_the_caller_gives() {
    use probity::{config, guest, model, native, plan, run, store, subject};
    let guest = reader(&[CLAIM], false, &[(0, "message.md"), (0, "deep/claim.json"), (0, "l"), (0, "../f")]);
    let text = "[packs.p]\nsource = \"file:p.wasm\"\nallow = [\"claim:**\"]\n[checks.look]\nuse = \"p/look\"\n";
    let project = Project::with(text);
    project.write("f", "outside");
    let claim = project.outside().join("claim");
    std::fs::create_dir_all(claim.join("deep")).unwrap();
    std::fs::write(claim.join("message.md"), "done").unwrap();
    std::fs::write(claim.join(".gitignore"), "*").unwrap();
    std::fs::write(claim.join("deep/claim.json"), "{}").unwrap();
    std::os::unix::fs::symlink("message.md", claim.join("l")).unwrap();

    let config = config::parse("probity.toml", text.as_bytes(), &config::User::default()).unwrap();
    let pack = guest::Host::new(env!("CARGO_BIN_EXE_probity").into(), None)
        .load(&wat::parse_str(guest.text()).unwrap())
        .unwrap();
    let info = pack.info.checks[0].clone();
    let everything = config::Globs::new(&["**".to_owned()]).unwrap();
    let resolved = plan::Resolved {
        info: &info,
        files: everything.clone(),
        needs: [(model::Mount::Claim, everything)].into(),
        component: pack.digest,
    };
    let workspace = subject::Workspace::of(&project.root(), &subject::Patience::default()).unwrap();
    let snapshot = workspace.snapshot(None).unwrap();
    let ceilings = config::Limits::default();
    let about = plan::About { snapshot: &snapshot, base: None, branch: None, capabilities: None, ceilings, key: None };
    let id: model::CheckId = "look".parse().unwrap();
    let scenario = config.scenario("default").unwrap();
    let plan =
        plan::plan(&config, scenario, about, &plan::Request::default(), &[(id, resolved)].into(), |_| unreachable!());
    let (state, name) = (store::State::at(&project.outside()).unwrap(), store::new_run_id().unwrap());
    let claim = run::Claim::new(&claim).unwrap();
    let stops = std::sync::mpsc::channel();
    let supervisor = std::sync::Arc::new(native::Supervisor::new(env!("CARGO_BIN_EXE_probity").into()));
    let place = native::Place {
        folder: project.root(),
        environment: native::Environment::new(),
        supervisor: std::sync::Arc::clone(&supervisor),
    };
    let around = run::Surroundings {
        run: name.clone(),
        workspace: &workspace,
        snapshot: &snapshot,
        base: None,
        spec: None,
        claim: Some(&claim),
        packs: &[("p".parse().unwrap(), pack)].into(),
        capabilities: &native::Probes::new(place),
        supervisor: &supervisor,
        logs: &store::Logs::create(&state, &name).unwrap(),
        engine: String::new(),
        host: String::new(),
        secrets: model::Secrets::default(),
        staged: false,
        live: false,
        identity: None,
        because: Vec::new(),
        trust: None,
        started: String::new(),
        clock: std::time::Instant::now(),
    };
    let record = run::execute(&plan, &around, (&stops.0, &stops.1), &mut |_| {}).unwrap();
    assert_eq!(record.rows[0].stderr.as_deref(), Some("1|done|{}|done|-"), "{record:#?}");
    assert_eq!(record.verdict.rows[0].class, model::Class::Derived);
}

#[test]
fn what_a_check_may_use_has_ceilings_that_the_user_sets() {
    let ask = |limits: &str| {
        let project = project(&format!("{LOOK}limits = {{ {limits} }}\n"), &Guest::default());
        let mut command = project.command(&["verify"]);
        let home = project.outside().join("config");
        std::fs::create_dir_all(home.join("probity")).unwrap();
        let ceilings = "[limits]\nfuel = 1000000\nmemory = \"8MiB\"\nwall = \"2s\"\n";
        std::fs::write(home.join("probity/config.toml"), ceilings).unwrap();
        command.env("XDG_CONFIG_HOME", home);
        project.ran(command)
    };
    insta::assert_snapshot!(ask("fuel = 1000001, memory = \"9MiB\", wall = \"3s\"").exits(2).stderr);
    ask("fuel = 1000000, memory = \"8MiB\", wall = \"2s\"").exits(0);
    // Nothing asked for is no more than the ceiling.
    let project = project(LOOK, &Guest { on_run: "(loop $l br $l)".into(), ..Guest::default() });
    project.write("../home/.config/probity/config.toml", "[limits]\nfuel = 1000\n");
    let said = project.run(&["verify"]).exits(1).stdout;
    assert!(said.contains("1000"), "{said}");
    project.write("../home/.config/probity/config.toml", "[limits]\nspeed = 1\n");
    assert!(project.run(&["verify"]).exits(2).stderr.contains("unknown key `speed`"));
}
