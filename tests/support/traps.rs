//! A repository in which everything that git can be told to run is set to run, each trap leaving a file of its own name.
//!
//! This file stands alone: it uses nothing of Probity, so that other ways to read a repository can be put to the same
//! trial. Whoever adds a call of git adds here what could make that call run something.

#![allow(dead_code, reason = "each user takes a part of it")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The hooks of `git help hooks`.
pub const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// What a configuration names to be run.
const PROGRAMS: [&str; 24] = [
    "fsmonitor",
    "clean",
    "smudge",
    "process",
    "outside-clean",
    "informed-clean",
    "diff-command",
    "diff-external",
    "textconv",
    "merge-driver",
    "ssh",
    "uploadpack",
    "ext",
    "proxy",
    "pager",
    "editor",
    "askpass",
    "credential",
    "alias",
    "shadow",
    "gpg",
    "trailer",
    "archive",
    "alternates",
];

/// Repositories that carry the whole set: where they are in the tree, and what their markers begin with.
pub const REPOSITORIES: [(&str, &str); 4] =
    [("", "top"), ("sub", "sub"), ("owned", "owned"), ("elsewhere", "elsewhere")];

/// An ordinary folder of the tree that looks like a repository.
pub const POSING: &str = "vendor/lib";

/// Files that a filter, a driver or an attribute is set on; the last has no contents in the object database.
pub const FILES: [&str; 9] = [
    "plain.txt",
    "filtered.txt",
    "processed.txt",
    "outside.txt",
    "informed.txt",
    "shown.txt",
    "told.txt",
    "merged.txt",
    "lazy.txt",
];

const ATTRIBUTES: &str = "filtered.txt filter=trap\nprocessed.txt filter=process\nshown.txt diff=trap\n\
                          told.txt diff=told\nmerged.txt merge=trap\n";

/// The traps that git 2.47 itself never runs, kept since a change of git would be one of their kind: an alias does not
/// shadow what is built in, and what is needed before a command is chosen is not taken from `config.worktree`.
const DUDS: [&str; 6] = ["top.shadow", "sub.shadow", "owned.shadow", "elsewhere.shadow", "owned.alias", "owned.pager"];

/// Where the traps of a repository are written.
enum Place {
    Config,
    Include,
    IncludeIf,
    Worktree,
}

/// Makes `root` a repository with every trap planted; what is there already is committed with it. The working tree is
/// as the commit has it. Nothing is run yet: `marker_dir` is empty afterwards.
pub fn plant(root: &Path, marker_dir: &Path) {
    let _ = fs::remove_dir_all(marker_dir);
    fs::create_dir_all(marker_dir).unwrap();
    fs::create_dir_all(root).unwrap();
    let git_dir = root.join(".git");
    let aside = marker_dir.with_extension("git");
    git(root, &["init", "-q"]);
    let programs = git_dir.join("traps");

    for (folder, prefix) in &REPOSITORIES[1..] {
        let path = root.join(folder);
        let separate = format!("--separate-git-dir={}", aside.display());
        let apart = (*prefix == "elsewhere").then_some(separate.as_str());
        let arguments: Vec<&str> = ["init", "-q"].into_iter().chain(apart).chain([*folder]).collect();
        git(root, &arguments);
        files(&path);
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", "inner"]);
    }
    files(&root.join(""));
    let modules = REPOSITORIES[1..].iter().map(|(folder, _)| {
        format!("[submodule \"{folder}\"]\n\tpath = {folder}\n\turl = ./{folder}\n\tignore = all\n\tupdate = none\n")
    });
    fs::write(root.join(".gitmodules"), modules.collect::<String>()).unwrap();
    posing(&root.join(POSING), &programs, marker_dir);
    // Found by whoever looks for git in the folder that it is called in.
    for folder in ["", "deep", POSING] {
        script(&root.join(folder).join("git"), &marker_dir.join("path"), "exit 1");
    }
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "outer"]);
    git(root, &["submodule", "-q", "absorbgitdirs", "sub"]);
    let dirs = [git_dir.clone(), git_dir.join("modules/sub"), root.join("owned/.git"), aside.clone()];
    // All of this is done before the first trap is set.
    let prepared: Vec<(String, String)> = dirs
        .iter()
        .zip(&REPOSITORIES)
        .map(|(dir, (folder, _))| {
            lose(&root.join(folder), dir, "HEAD:lazy.txt");
            (replaced(&root.join(folder)), git(&root.join(folder), &["rev-parse", "HEAD"]))
        })
        .collect();
    let store = marker_dir.with_extension("store");
    git(root, &["init", "-q", "--bare", &store.display().to_string()]);
    for ((dir, (_, prefix)), (replace, head)) in dirs.iter().zip(&REPOSITORIES).zip(prepared) {
        for line in replace.lines() {
            let (old, new) = line.split_once(' ').unwrap();
            write(&dir.join("refs/replace").join(old), format!("{new}\n"));
        }
        // A parent that the commit has not.
        let other = replace.split_whitespace().nth(1).unwrap();
        write(&dir.join("info/grafts"), format!("{head} {other}\n"));
        write(&dir.join("objects/info/alternates"), format!("{}\n", store.join("objects").display()));
        write(&dir.join("info/attributes"), "informed.txt filter=informed\n");
        write(&dir.join("traps/attributes"), "outside.txt filter=outside\n");
        write(&dir.join("traps/excludes"), "excluded.txt\n");
        let place = match *prefix {
            "top" => Place::Config,
            "sub" => Place::IncludeIf,
            "owned" => Place::Worktree,
            _ => Place::Include,
        };
        set(dir, prefix, &place, marker_dir);
    }
    let update = git_dir.join("traps/update");
    script(&update, &marker_dir.join("update"), "");
    append(
        &git_dir.join("config"),
        &format!("[submodule \"sub\"]\n\tactive = true\n\turl = ./sub\n\tupdate = !{}\n", update.display()),
    );
    assert_eq!(markers(marker_dir), Vec::<String>::new(), "a trap went off while it was set");
}

/// What went off.
pub fn markers(marker_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(marker_dir).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An environment in which every variable that git obeys is set against us: what a hook of another repository, or a
/// careless shell, starts us with. `PATH` begins with the folder that a program is called in.
pub fn environment(root: &Path, marker_dir: &Path) -> Vec<(&'static str, OsString)> {
    let programs = root.join(".git/traps");
    let mut set: Vec<(&'static str, OsString)> = Vec::new();
    for (variable, name) in [
        ("GIT_EXTERNAL_DIFF", "env-diff"),
        ("GIT_SSH_COMMAND", "env-ssh"),
        ("GIT_SSH", "env-ssh"),
        ("GIT_PROXY_COMMAND", "env-proxy"),
        ("GIT_EDITOR", "env-editor"),
        ("GIT_SEQUENCE_EDITOR", "env-editor"),
        ("GIT_PAGER", "env-pager"),
        ("GIT_ASKPASS", "env-askpass"),
    ] {
        let program = programs.join(name);
        script(&program, &marker_dir.join(name), "");
        set.push((variable, program.into()));
    }
    let monitor = programs.join("env-fsmonitor");
    script(&monitor, &marker_dir.join("env-fsmonitor"), "");
    set.push(("GIT_CONFIG_COUNT", "1".into()));
    set.push(("GIT_CONFIG_KEY_0", "core.fsmonitor".into()));
    set.push(("GIT_CONFIG_VALUE_0", monitor.clone().into()));
    set.push(("GIT_CONFIG_PARAMETERS", format!("'core.fsmonitor'='{}'", monitor.display()).into()));
    for variable in ["GIT_TRACE", "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE_SETUP"] {
        set.push((variable, marker_dir.join("env-trace").into()));
    }
    let aside = marker_dir.with_extension("git");
    set.push(("GIT_DIR", aside.clone().into()));
    set.push(("GIT_COMMON_DIR", aside.clone().into()));
    set.push(("GIT_WORK_TREE", root.join("elsewhere").into()));
    set.push(("GIT_INDEX_FILE", aside.join("index").into()));
    set.push(("GIT_OBJECT_DIRECTORY", aside.join("objects").into()));
    set.push(("GIT_NAMESPACE", "other".into()));
    set.push(("GIT_CEILING_DIRECTORIES", root.into()));
    set.push(("GIT_LITERAL_PATHSPECS", "0".into()));
    set.push(("GIT_EXEC_PATH", programs.into()));
    let mut path = OsString::from(":.:");
    path.push(std::env::var_os("PATH").unwrap());
    set.push(("PATH", path));
    set
}

/// Sets off everything that git can set off, by plain calls without any care, and returns what stayed silent all the
/// same. What is left afterwards is not to be verified.
pub fn duds(root: &Path, marker_dir: &Path) -> Vec<String> {
    for (folder, prefix) in REPOSITORIES {
        set_off(&root.join(folder), prefix);
    }
    careless(root, &["submodule", "update", "--force", "sub"], "");
    careless(&root.join(POSING), &["status"], "");
    careless(&root.join(POSING), &["ls-files", "-o"], "");
    let mut called = Command::new("sh");
    called.args(["-c", "git status"]).current_dir(root).env("PATH", ".:/usr/bin:/bin");
    let _ = called.output().unwrap();
    let mut expected = vec!["path".to_owned(), "update".to_owned(), "posing.fsmonitor".to_owned()];
    for (_, prefix) in REPOSITORIES {
        expected.extend(PROGRAMS.iter().map(|name| format!("{prefix}.{name}")));
        expected
            .extend(HOOKS.iter().flat_map(|name| [format!("{prefix}.hook-{name}"), format!("{prefix}.path-{name}")]));
    }
    let fired = markers(marker_dir);
    expected.retain(|name| !fired.contains(name) && !DUDS.contains(&name.as_str()));
    // Without a terminal no pager is started, and not every machine has the program that makes one.
    if !Path::new("/usr/bin/script").exists() {
        expected.retain(|name| !name.ends_with(".pager"));
    }
    expected
}

fn set_off(folder: &Path, prefix: &str) {
    let call = |arguments: &[&str]| careless(folder, arguments, "");
    let dir = text(&call(&["rev-parse", "--absolute-git-dir"]));
    // Of another size, so that no filter is asked until one is meant: one that fails ends the call.
    for name in FILES {
        append(&folder.join(name), "changed\n");
    }
    call(&["status"]);
    for name in ["filtered.txt", "processed.txt", "outside.txt", "informed.txt"] {
        call(&["hash-object", name]);
    }
    let own_hooks = format!("core.hooksPath={dir}/hooks");
    for hook in HOOKS {
        call(&["hook", "run", hook]);
        call(&["-c", &own_hooks, "hook", "run", hook]);
    }
    call(&["cat-file", "--filters", "HEAD:filtered.txt"]);
    call(&["cat-file", "--textconv", "HEAD:told.txt"]);
    call(&["diff", "--", "shown.txt"]);
    call(&["diff", "--", "plain.txt"]);
    call(&["cat-file", "-p", "HEAD:lazy.txt"]);
    // Nothing is committed where an object is missing.
    careless(folder, &["hash-object", "-w", "--stdin"], &contents("lazy.txt", folder));
    call(&[prefix]);
    call(&["interpret-trailers", "--trailer", "trap: x"]);
    call(&["archive", "--format=trap", "HEAD", "plain.txt"]);
    call(&["rev-list", "--alternate-refs"]);
    careless(folder, &["credential", "fill"], "protocol=https\nhost=trap.invalid\n\n");
    call(&["commit", "--allow-empty"]);
    call(&["commit", "--allow-empty", "-S", "-m", "signed"]);
    call(&["checkout", "-q", "-f", "HEAD", "--", "plain.txt"]);
    // Two sides of one file, made without touching the working tree.
    let base = text(&call(&["rev-parse", "HEAD"]));
    let side = |contents: &str| {
        let blob = text(&careless(folder, &["hash-object", "-w", "--stdin", "--no-filters"], contents));
        call(&["update-index", "--cacheinfo", &format!("100644,{blob},merged.txt")]);
        let tree = text(&call(&["write-tree", "--missing-ok"]));
        text(&call(&["commit-tree", "-p", &base, "-m", "side", &tree]))
    };
    let (ours, theirs) = (side("ours\n"), side("theirs\n"));
    call(&["merge-tree", "--write-tree", &ours, &theirs]);
    let mut terminal = Command::new("script");
    terminal
        .args(["-qec", "git log", "/dev/null"])
        .current_dir(folder)
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("TERM", "xterm");
    let _ = terminal.stdin(Stdio::null()).output();
}

/// The tree of the commit that is checked out, as git tells it when it believes `refs/replace`.
pub fn as_replaced(root: &Path) -> String {
    let mut git = plain(root);
    text(&git.args(["-c", "core.fsmonitor=false", "ls-tree", "-r", "HEAD"]).output().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn contents(name: &str, folder: &Path) -> String {
    format!("{name} of {}\n", folder.display())
}

fn files(folder: &Path) {
    for name in FILES {
        write(&folder.join(name), contents(name, folder));
    }
    write(&folder.join("deep/er/file.txt"), "deep\n");
    write(&folder.join(".gitattributes"), ATTRIBUTES);
}

/// Lines `OLD NEW` for the commit, its tree and a file: what the replacement says is made of the same names.
fn replaced(folder: &Path) -> String {
    let old = ["HEAD", "HEAD^{tree}", "HEAD:plain.txt"].map(|name| git(folder, &["rev-parse", name]));
    write(&folder.join("plain.txt"), "other\n");
    let blob = git(folder, &["hash-object", "-w", "plain.txt"]);
    git(folder, &["update-index", "plain.txt"]);
    let tree = git(folder, &["write-tree", "--missing-ok"]);
    let commit = git(folder, &["commit-tree", "-m", "other", &tree]);
    write(&folder.join("plain.txt"), contents("plain.txt", folder));
    git(folder, &["update-index", "plain.txt"]);
    old.iter().zip([commit, tree, blob]).map(|(old, new)| format!("{old} {new}\n")).collect()
}

/// Removes an object from a repository that says it can be fetched.
pub fn lose(folder: &Path, git_dir: &Path, name: &str) {
    let id = git(folder, &["rev-parse", name]);
    fs::remove_file(git_dir.join("objects").join(&id[..2]).join(&id[2..])).unwrap();
}

fn posing(folder: &Path, programs: &Path, marker_dir: &Path) {
    write(&folder.join("HEAD"), "ref: refs/heads/main\n");
    write(&folder.join("objects/keep"), "");
    write(&folder.join("refs/keep"), "");
    write(&folder.join("deep/file.txt"), "x");
    let monitor = programs.join("posing.fsmonitor");
    script(&monitor, &marker_dir.join("posing.fsmonitor"), "");
    // Without a version git takes nothing else of it for settings of a repository.
    let text = format!(
        "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tworktree = ../lib\n\tfsmonitor = {}\n",
        monitor.display()
    );
    write(&folder.join("config"), text);
}

fn set(dir: &Path, prefix: &str, place: &Place, marker_dir: &Path) {
    let programs = dir.join("traps");
    let marker = |name: &str| marker_dir.join(format!("{prefix}.{name}"));
    for name in PROGRAMS {
        let then = match name {
            "clean" | "smudge" | "outside-clean" | "informed-clean" | "archive" => "cat",
            "textconv" => "cat \"$1\"",
            // Commits are signed with it, so that it can be seen to run; without a signature git gives up.
            "fsmonitor" => "printf '/\\0'",
            _ => "exit 1",
        };
        script(&programs.join(name), &marker(name), then);
    }
    let hooks = programs.join("hooks");
    for hook in HOOKS {
        script(&hooks.join(hook), &marker(&format!("path-{hook}")), "");
        script(&dir.join("hooks").join(hook), &marker(&format!("hook-{hook}")), "");
    }
    let p = programs.display();
    let traps = format!(
        "[core]\n\tfsmonitor = {p}/fsmonitor\n\tfsmonitorHookVersion = 2\n\thooksPath = {p}/hooks\n\tsshCommand = {p}/ssh\n\
         \tpager = {p}/pager\n\teditor = {p}/editor\n\taskPass = {p}/askpass\n\tgitProxy = {p}/proxy\n\
         \talternateRefsCommand = {p}/alternates\n\texcludesFile = {p}/excludes\n\tattributesFile = {p}/attributes\n\
         \tuntrackedCache = true\n\
         [filter \"trap\"]\n\tclean = {p}/clean\n\tsmudge = {p}/smudge\n\trequired = true\n\
         [filter \"process\"]\n\tprocess = {p}/process\n\
         [filter \"outside\"]\n\tclean = {p}/outside-clean\n\
         [filter \"informed\"]\n\tclean = {p}/informed-clean\n\
         [diff]\n\texternal = {p}/diff-external\n\
         [diff \"trap\"]\n\tcommand = {p}/diff-command\n\
         [diff \"told\"]\n\ttextconv = {p}/textconv\n\
         [merge \"trap\"]\n\tdriver = {p}/merge-driver\n\
         [alias]\n\t{prefix} = !{p}/alias\n\tls-files = !{p}/shadow\n\trev-parse = !{p}/shadow\n\tls-tree = !{p}/shadow\n\
         \tcat-file = !{p}/shadow\n\
         [credential]\n\thelper = {p}/credential\n\
         [gpg]\n\tprogram = {p}/gpg\n\
         [trailer \"trap\"]\n\tcmd = {p}/trailer\n\
         [tar \"trap\"]\n\tcommand = {p}/archive\n\
         [protocol]\n\tallow = always\n\
         [protocol \"ssh\"]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n[protocol \"git\"]\n\tallow = always\n\
         [protocol \"file\"]\n\tallow = always\n\
         [safe]\n\tdirectory = *\n\tbareRepository = all\n\
         [remote \"ssh\"]\n\turl = ssh://trap.invalid/x\n\tpromisor = true\n\tpartialCloneFilter = blob:none\n\
         [remote \"pack\"]\n\turl = {p}\n\tuploadpack = {p}/uploadpack\n\tpromisor = true\n\
         [remote \"ext\"]\n\turl = ext::{p}/ext\n\tpromisor = true\n\
         [remote \"proxy\"]\n\turl = git://trap.invalid/x\n\tpromisor = true\n"
    );
    let config = dir.join("config");
    let more = programs.join("config");
    // Extensions count only in the repository's own file.
    append(&config, "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tpartialClone = ssh\n");
    match place {
        Place::Config => append(&config, &traps),
        Place::Include => {
            write(&more, traps);
            append(&config, &format!("[include]\n\tpath = {}\n", more.display()));
        }
        Place::IncludeIf => {
            write(&more, traps);
            append(&config, &format!("[includeIf \"gitdir:**\"]\n\tpath = {}\n", more.display()));
        }
        Place::Worktree => {
            append(&config, "[extensions]\n\tworktreeConfig = true\n");
            write(&dir.join("config.worktree"), traps);
        }
    }
}

fn script(path: &Path, marker: &Path, then: &str) {
    write(path, format!("#!/bin/sh\n: > '{}'\n{then}\n", marker.display()));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn write(path: &Path, contents: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    write(path, before + text);
}

fn plain(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.env_clear().current_dir(folder).stdin(Stdio::null());
    git.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", PathBuf::from("/nonexistent"));
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "t").env(format!("GIT_{who}_EMAIL"), "t@example.org");
    }
    git
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let settings = ["-c", "init.defaultBranch=main", "-c", "advice.addEmbeddedRepo=false"];
    let output = plain(folder).args(settings).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

/// A call as anybody would make it. It may fail: only what it runs counts.
fn careless(folder: &Path, arguments: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut git = plain(folder);
    // Or the commits below would be made on what the replacements say.
    git.env("GIT_NO_REPLACE_OBJECTS", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = git.args(arguments).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
