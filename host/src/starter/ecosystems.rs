//! What each kind of project is verified by, as far as its files say so.

use super::look::{Looked, has, read};
use super::{Check, Starter};
use crate::subject::beneath::Root;

/// What Cargo and rustup need to find their files where they are not below the home folder, and what keeps them from
/// fetching: without it a check could install a toolchain.
const CARGO_ENV: &[&str] =
    &["CARGO_HOME", "RUSTUP_HOME", "CARGO_TARGET_DIR", "RUSTUP_AUTO_INSTALL", "RUSTUP_TOOLCHAIN", "CARGO_NET_OFFLINE"];

const GO_ENV: &[&str] = &["GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY"];

/// Scripts of a package that judge it, in the order in which they are run.
const SCRIPTS: [&str; 5] = ["format:check", "lint", "typecheck", "type-check", "test"];

/// What a script that mends files does.
const MENDS: &str = "it changes files, and what a check changes is not what was verified";

/// Words of a script that make its tool change files.
const MENDING: [&str; 7] = ["--fix", "--write", "-w", "-u", "--update", "--updateSnapshot", "--update-snapshots"];

/// What else runs the same tests as a rule.
const ASIDE: &str = "it may run again what the checks above run";

/// A first run of pre-commit fetches hooks, and hooks may change files.
const HOOKS: &str = "it fetches hooks on its first run, and hooks that mend files change what is verified";

/// A check that runs Probity would run itself.
const ITSELF: &str = "the file names Probity, and a check that runs Probity would run itself";

/// `Cargo.toml`.
pub(super) fn cargo(root: &Root, ignored: impl Fn(&str) -> bool, starter: &mut Starter) {
    const FILE: &str = "Cargo.toml";
    const LOCK: &str = "Cargo.lock";
    let Some(manifest) = toml(root, FILE, starter) else { return };
    let workspace = manifest.contains_key("workspace");
    if !workspace && !manifest.contains_key("package") {
        starter.notes.push(format!("{FILE} has neither a package nor a workspace, so nothing was taken from it"));
        return;
    }
    let locked = has(root, LOCK);
    let ignored = locked && ignored(LOCK);
    let with = |command: &[&'static str], all: &'static str, rest: &[&'static str]| {
        let all = workspace.then_some(all).into_iter();
        let locked = (locked && !ignored && command[1] != "fmt").then_some("--locked");
        command.iter().copied().chain(locked).chain(all).chain(rest.iter().copied()).collect()
    };
    let add = |id: &str, command: Vec<&'static str>, timeout| Check {
        pass_env: CARGO_ENV,
        timeout,
        ..Check::new(id, command, FILE)
    };
    let clippy = ["--all-targets", "--", "-D", "warnings"];
    starter.add(vec![
        add("cargo-fmt", with(&["cargo", "fmt"], "--all", &["--check"]), "2m"),
        add("cargo-clippy", with(&["cargo", "clippy"], "--workspace", &clippy), "20m"),
        add("cargo-test", with(&["cargo", "test"], "--workspace", &[]), "30m"),
    ]);
    starter.leftovers.push("target/**");
    if ignored {
        let why = "what it says is in no commit, so `--locked` is left out";
        starter.notes.push(format!("git ignores {LOCK}: {why}"));
    }
    if !locked {
        let why = "one that is made while it is being verified makes a run stale";
        starter
            .notes
            .push(format!("there is no Cargo.lock: make one first with `cargo generate-lockfile`, since {why}"));
    }
}

/// `package.json`.
pub(super) fn node(root: &Root, starter: &mut Starter) {
    const FILE: &str = "package.json";
    let Some(text) = text(root, FILE, starter) else { return };
    let Ok(package) = serde_json::from_str::<serde_json::Value>(&text) else {
        starter.notes.push(format!("{FILE} is not valid JSON, so nothing was taken from it"));
        return;
    };
    let named = package["packageManager"].as_str().and_then(|name| name.split('@').next()).unwrap_or_default();
    let locks = [("pnpm", "pnpm-lock.yaml"), ("yarn", "yarn.lock"), ("bun", "bun.lock"), ("bun", "bun.lockb")];
    let by_name = ["pnpm", "yarn", "bun", "npm"].into_iter().find(|manager| *manager == named);
    let by_lock = || locks.into_iter().find(|(_, lock)| has(root, lock)).map(|(manager, _)| manager);
    let manager = by_name.or_else(by_lock).unwrap_or("npm");
    // What `npm init` writes where there is no test.
    let placeholder = |script: &str| script.contains("no test specified");
    let exists = |name: &&&str| package["scripts"][**name].as_str().is_some_and(|script| !placeholder(script));
    let checks: Vec<Check> = SCRIPTS
        .iter()
        .filter(exists)
        .map(|script| {
            let command = match (manager, *script) {
                ("npm", "test") => vec!["npm", "test"],
                (manager, script) => vec![manager, "run", script],
            };
            // Test runners that watch for changes run once where this is set.
            let text = package["scripts"][*script].as_str().unwrap_or_default();
            let mends = text.split([' ', '\t', '\n', '=']).any(|word| MENDING.contains(&word));
            let proposed = mends.then_some(MENDS);
            Check {
                env: &["CI=true"],
                proposed,
                ..Check::new(&format!("{manager}-{}", script.replace(':', "-")), command, FILE)
            }
        })
        .collect();
    if checks.is_empty() {
        let scripts = SCRIPTS.map(|script| format!("`{script}`")).join(", ");
        starter.notes.push(format!("{FILE} has none of the scripts {scripts}, so nothing was taken from it"));
        return;
    }
    let (proposed, active) = checks.into_iter().partition(|check| check.proposed.is_some());
    starter.add(active);
    starter.add(proposed);
    starter.leftovers.push("**/node_modules/**");
    if root.folder(b"node_modules").is_err() {
        starter.notes.push(format!("node_modules is not here: `{manager} install` comes before the first run"));
    }
}

/// `pyproject.toml`.
pub(super) fn python(root: &Root, starter: &mut Starter) {
    const FILE: &str = "pyproject.toml";
    let Some(project) = toml(root, FILE, starter) else { return };
    let runners = [("uv.lock", &["uv", "run", "--frozen"][..]), ("poetry.lock", &["poetry", "run"])];
    let runner = runners.into_iter().find(|(lock, _)| has(root, lock)).map_or(&[][..], |(_, runner)| runner);
    let add = |id: &str, command: &[&'static str]| Check::new(id, [runner, command].concat(), FILE);
    let names = |tool: &str| mentions(&toml::Value::Table(project.clone()), tool);
    let mut checks = Vec::new();
    if names("ruff") {
        checks.push(add("ruff-check", &["ruff", "check", "."]));
        let formats = project.get("tool").and_then(|tool| tool.get("ruff")).and_then(|ruff| ruff.get("format"));
        checks.extend(formats.map(|_| add("ruff-format", &["ruff", "format", "--check", "."])));
    }
    if names("pytest") {
        checks.push(add("pytest", &["pytest"]));
    }
    if checks.is_empty() {
        starter.notes.push(format!("{FILE} names neither ruff nor pytest, so nothing was taken from it"));
        return;
    }
    starter.add(checks);
    starter.leftovers.extend(["**/__pycache__/**", ".venv/**"]);
}

/// Whether a tool has settings, or is required anywhere: `[tool.NAME]`, `NAME = "1"`, `"NAME>=1"`.
fn mentions(value: &toml::Value, tool: &str) -> bool {
    let required = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
        text[..end].eq_ignore_ascii_case(tool)
    };
    match value {
        toml::Value::Table(table) => table.iter().any(|(key, value)| key == tool || mentions(value, tool)),
        toml::Value::Array(items) => {
            items.iter().any(|item| item.as_str().map_or_else(|| mentions(item, tool), required))
        }
        _ => false,
    }
}

/// `go.mod`.
pub(super) fn go(root: &Root, starter: &mut Starter) {
    const FILE: &str = "go.mod";
    let Some(text) = text(root, FILE, starter) else { return };
    if !text.lines().any(|line| line.trim_start().starts_with("module ")) {
        starter.notes.push(format!("{FILE} names no module, so nothing was taken from it"));
        return;
    }
    let add = |id: &str, command| Check { pass_env: GO_ENV, ..Check::new(id, command, FILE) };
    starter.add(vec![add("go-vet", vec!["go", "vet", "./..."]), add("go-test", vec!["go", "test", "./..."])]);
}

/// The makefile, by the first of its names as make looks for them.
pub(super) fn make(root: &Root, starter: &mut Starter) {
    for file in ["GNUmakefile", "makefile", "Makefile"] {
        let Some(text) = text(root, file, starter) else { continue };
        let proposed = if text.to_ascii_lowercase().contains("probity") {
            Some(ITSELF)
        } else {
            (starter.active() > 0).then_some(ASIDE)
        };
        let targets = targets(&text);
        let commands = [("make-check", "check"), ("make-test", "test")];
        let found = commands.into_iter().filter(|(_, target)| targets.contains(target));
        let add = |(id, target)| Check { proposed, timeout: "30m", ..Check::new(id, vec!["make", target], file) };
        let checks: Vec<Check> = found.map(add).collect();
        if checks.is_empty() {
            starter.notes.push(format!("{file} has neither a target `test` nor `check`, so nothing was taken from it"));
        }
        starter.add(checks);
        return;
    }
}

/// The targets that have rules. What only make knows after expanding its variables is not among them.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(['\t', '#', ' '])) {
        if let Some((names, rest)) = line.split_once(':')
            && !names.contains('=')
            // `a := b` and `a: B = c` set variables.
            && !rest.split(['#', ';']).next().unwrap_or_default().contains('=')
        {
            targets.extend(names.split_whitespace());
        }
    }
    targets
}

/// `.pre-commit-config.yaml`.
pub(super) fn pre_commit(root: &Root, starter: &mut Starter) {
    const FILE: &str = ".pre-commit-config.yaml";
    if text(root, FILE, starter).is_none() {
        return;
    }
    let proposed = (starter.active() > 0).then_some(HOOKS);
    let command = vec!["pre-commit", "run", "--all-files"];
    let check = Check { proposed, pass_env: &["PRE_COMMIT_HOME"], ..Check::new("pre-commit", command, FILE) };
    starter.add(vec![check]);
    if proposed.is_none() {
        starter.notes.push(format!("about pre-commit: {HOOKS}"));
    }
}

/// The text of a file. What is there and cannot be read is noted.
fn text(root: &Root, file: &'static str, starter: &mut Starter) -> Option<String> {
    match read(root, file) {
        Looked::Absent => None,
        Looked::Text(text) => Some(text),
        Looked::Unusable(why) => {
            starter.notes.push(format!("{file} was not looked at: {why}"));
            None
        }
    }
}

fn toml(root: &Root, file: &'static str, starter: &mut Starter) -> Option<toml::Table> {
    let text = text(root, file, starter)?;
    let table = toml::from_str(&text).ok();
    if table.is_none() {
        starter.notes.push(format!("{file} is not valid TOML, so nothing was taken from it"));
    }
    table
}

impl Check {
    fn new(id: &str, command: Vec<&'static str>, file: &'static str) -> Self {
        let (env, pass_env): (&[&str], &[&str]) = (&[], &[]);
        Self { id: id.to_owned(), command, timeout: "10m", env, pass_env, file, proposed: None }
    }
}

impl Starter {
    /// Adds the checks of one file, and says so.
    fn add(&mut self, checks: Vec<Check>) {
        if let Some(first) = checks.first() {
            let commands: Vec<String> = checks.iter().map(|check| format!("`{}`", check.command.join(" "))).collect();
            let aside = first.proposed.map_or_else(String::new, |why| format!(", commented out: {why}"));
            self.found.push(format!("{}: {}{aside}", first.file, commands.join(", ")));
        }
        self.checks.extend(checks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_what_has_rules() {
        for (text, expected) in [
            ("test:\n\tcheck: x\n", &["test"][..]),
            ("test check: all ; echo a=b\n", &["test", "check"]),
            ("test::\n", &["test"]),
            ("test: a # b = c\n", &["test"]),
            (".PHONY: test\n", &[".PHONY"]),
            ("test := a:b\n", &[]),
            ("test ::= a\n", &[]),
            ("A = test: x\n", &[]),
            ("test: CFLAGS = -g\n", &[]),
            ("# test:\n  test:\n\ttest:\n", &[]),
            ("test", &[]),
            ("", &[]),
        ] {
            assert_eq!(targets(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_tool_is_named_by_settings_and_requirements_and_by_no_other_word() {
        for (text, expected) in [
            ("[tool.ruff]\nline-length = 100", true),
            ("[project]\ndependencies = [\"Ruff >= 0.4 ; python_version > '3'\"]", true),
            ("[project.optional-dependencies]\ndev = [\"ruff[x]\"]", true),
            ("[tool.poetry.group.dev.dependencies]\nruff = \"^0.4\"", true),
            ("[dependency-groups]\ndev = [{ include-group = \"ruff\" }]", false),
            ("[project]\nname = \"ruff\"\ndependencies = [\"ruff-lsp\", \"ruffian\"]", false),
            ("", false),
        ] {
            assert_eq!(mentions(&toml::Value::Table(toml::from_str(text).unwrap()), "ruff"), expected, "{text}");
        }
    }
}
