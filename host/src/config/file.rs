//! What the file says: its tables and keys as they are written, each with its place.
//!
//! Must not give a value a meaning: that is for `resolve`. Only its kind is checked here, and that the key exists.

use super::argv::{self, Argv};
use super::capability::{self, FileCapability};
use super::diagnostic::{Diagnostic, quote};
use super::environment;
use super::jobs;
use super::json::{self, Options};
use super::limits::{self, FileLimits};
use super::reader::{At, Field, Keys, Reader, Silent, Span, entries, field, wrong};
use super::verify::{self, FileVerify};
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The whole file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) verify: FileVerify,
    /// `[subject] exclude`.
    pub(super) exclude: Option<Field<Vec<At<String>>>>,
    pub(super) packs: Vec<FilePack>,
    pub(super) checks: Vec<FileCheck>,
    pub(super) scenarios: Vec<FileScenario>,
    pub(super) capabilities: Vec<FileCapability>,
    pub(super) spec: Option<FileSpec>,
    /// Names of packs, checks and capabilities that are declared in a way that has been reported.
    pub(super) unreadable: BTreeSet<String>,
}

/// Texts by name, in the order of the file.
pub(super) type Pairs = Vec<(At<String>, At<String>)>;

/// `[packs.NAME]`.
#[derive(Debug)]
pub(super) struct FilePack {
    pub(super) name: At<String>,
    pub(super) source: Option<Field<String>>,
    pub(super) allow: Option<Field<Vec<At<String>>>>,
}

/// `[checks.ID]`, of either kind.
#[derive(Debug)]
pub(super) struct FileCheck {
    pub(super) id: At<String>,
    pub(super) command: Option<Field<Argv>>,
    pub(super) uses: Option<Field<String>>,
    pub(super) after: Option<Field<Vec<At<String>>>>,
    pub(super) parallel: Option<Field<bool>>,
    pub(super) needs: Option<Field<Vec<At<String>>>>,
    pub(super) timeout: Option<Field<String>>,
    pub(super) blocking: Option<Field<bool>>,
    pub(super) env: Option<Field<Vec<At<String>>>>,
    pub(super) pass_env: Option<Field<Vec<At<String>>>>,
    pub(super) inherit_env: Option<Field<bool>>,
    pub(super) secrets: Option<Field<Vec<At<String>>>>,
    pub(super) gap_exit: Option<Field<Vec<At<i64>>>>,
    pub(super) fingerprint: Option<Field<Vec<At<Argv>>>>,
    pub(super) ambient: Option<Field<Vec<At<String>>>>,
    pub(super) isolate: Option<Field<bool>>,
    pub(super) files: Option<Field<Vec<At<String>>>>,
    pub(super) allow_empty: Option<Field<bool>>,
    pub(super) when: Option<Field<FileWhen>>,
    pub(super) tests: Option<Field<Pairs>>,
    pub(super) severities: Option<Field<Pairs>>,
    pub(super) baseline: Option<Field<bool>>,
    pub(super) config: Option<Field<Options>>,
    pub(super) limits: Option<Field<FileLimits>>,
}

/// `when` of a check.
#[derive(Debug, Clone, Default)]
pub(super) struct FileWhen {
    pub(super) scenarios: Option<Field<Vec<At<String>>>>,
    pub(super) branches: Option<Field<Vec<At<String>>>>,
    pub(super) paths: Option<Field<Vec<At<String>>>>,
    pub(super) capabilities: Option<Field<Vec<At<String>>>>,
}

impl Silent for FileWhen {}

/// `[spec]`.
#[derive(Debug)]
pub(super) struct FileSpec {
    pub(super) table: Span,
    pub(super) paths: Option<Field<Vec<At<String>>>>,
}

/// `[scenarios.NAME]`.
#[derive(Debug)]
pub(super) struct FileScenario {
    pub(super) name: At<String>,
    pub(super) checks: Option<Field<Vec<At<String>>>>,
    pub(super) fail_fast: Option<Field<bool>>,
    pub(super) fail_on: Option<Field<String>>,
    pub(super) timeout: Option<Field<String>>,
    pub(super) jobs: Option<Field<i64>>,
    pub(super) base: Option<Field<String>>,
    pub(super) max_age: Option<Field<String>>,
}

const TOP: Keys = Keys {
    table: "the file's top level",
    known: &["verify", "subject", "packs", "checks", "scenarios", "capabilities", "spec"],
    later: &[
        ("user", "remove it; until then, all settings are those of this file"),
        ("agent", "remove it; until then, Probity runs checks only"),
        ("prompts", "remove it; until then, Probity runs checks only"),
        ("trust", "remove it; until then, nothing is fetched that would have to be trusted"),
    ],
    elsewhere: &[
        ("limits", "set `limits` for a check, in `[checks.NAME]`; what they may be at most is said in the user's file"),
        ("walls", "it is for whoever runs Probity to say, in the user's file"),
    ],
};

const SUBJECT: Keys = Keys { table: "`[subject]`", known: &["exclude"], later: &[], elsewhere: &[] };

const PACK: Keys = Keys {
    table: "`[packs.NAME]`",
    known: &["source", "allow"],
    later: &[("digest", "remove it; commit the component to the repository to fix its contents")],
    elsewhere: &[],
};

const CHECK: Keys = Keys {
    table: "`[checks.NAME]`",
    known: &[
        "command",
        "use",
        "after",
        "parallel",
        "needs",
        "timeout",
        "blocking",
        "env",
        "pass-env",
        "inherit-env",
        "secrets",
        "gap-exit",
        "fingerprint",
        "ambient",
        "isolate",
        "files",
        "allow-empty",
        "when",
        "tests",
        "severities",
        "baseline",
        "config",
        "limits",
    ],
    later: &[
        ("review", "write a `command` that ends with 0 when the reviewer is content"),
        ("base", "set it in `[scenarios.NAME]`"),
    ],
    elsewhere: &[],
};

const WHEN: Keys =
    Keys { table: "`when`", known: &["scenarios", "branches", "paths", "capabilities"], later: &[], elsewhere: &[] };

const SPEC: Keys = Keys { table: "`[spec]`", known: &["paths"], later: &[], elsewhere: &[] };

const SCENARIO: Keys = Keys {
    table: "`[scenarios.NAME]`",
    known: &["checks", "fail-fast", "fail-on", "timeout", "jobs", "base", "max-age"],
    later: &[("when", "remove it; name the scenario on the command line where it is wanted")],
    elsewhere: &[("baseline", "set it for a check of a pack, in `[checks.NAME]`; the `base` is the scenario's")],
};

pub(super) const TIMEOUT_HELP: &str =
    "write a number with its unit, for example `timeout = \"30s\"` or `timeout = \"5m\"`";

const MAX_AGE_HELP: &str = "write a number with its unit, for example `max-age = \"24h\"`";

/// What the parser says of a key or table that exists already.
const DUPLICATE: &str = "duplicate key";

/// Reads the text. Mistakes of the grammar are given alone: what was meant around them is a guess.
pub(super) fn read(text: &str) -> Result<(File, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(syntax(text, &errors));
    }
    let mut reader = Reader::default();
    let file = file(&mut reader, table.get_ref());
    Ok((file, reader.diagnostics))
}

/// The parser's own words, without those that only follow from an earlier mistake.
pub(super) fn syntax(text: &str, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    let mut errors: Vec<_> = errors.iter().map(|error| (error.span().unwrap_or(0..0), error.message())).collect();
    errors.sort_by_key(|(span, _)| span.start);
    // Where something is left open, the parser reads what follows as part of it.
    let derailed = errors.iter().any(|(_, message)| message.starts_with("unclosed"));
    if derailed {
        errors.truncate(1);
    }
    errors.dedup_by(|(next, message), (previous, earlier)| {
        let between = text.get(previous.start..next.start).unwrap_or_default();
        let header = || text[..previous.start].ends_with(['[', '.']) && !between.contains("\n[");
        let repeated = *earlier == DUPLICATE && *message == DUPLICATE;
        !between.contains('\n') || (repeated && header())
    });
    let diagnostics = errors.into_iter().map(|(span, message)| {
        let written = quote(text.get(span.clone()).unwrap_or_default());
        if message == DUPLICATE {
            return Diagnostic::new(span, format!("{written} is written twice"))
                .label("not the first in its table")
                .help("a key or table can be written once; join the two");
        }
        let no_value = ["string values must be quoted", "invalid float", "invalid boolean"];
        if no_value.iter().any(|start| message.starts_with(start)) && !span.is_empty() {
            return Diagnostic::new(span, format!("not valid TOML: {written} is not a value"))
                .help("strings are written in quotes, and the booleans are `true` and `false`");
        }
        let diagnostic = Diagnostic::new(span, format!("not valid TOML: {message}"));
        if derailed { diagnostic.help("before this, a bracket or a quote may have been left open") } else { diagnostic }
    });
    diagnostics.collect()
}

fn file(reader: &mut Reader, table: &DeTable<'_>) -> File {
    let mut file = File::default();
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            "verify" => match value.get_ref() {
                DeValue::Table(table) => file.verify = verify::read(reader, table),
                other => reader.report(wrong("verify", "a table", other, value.span()).help("write `[verify]`")),
            },
            "subject" => match value.get_ref() {
                DeValue::Table(table) => file.exclude = subject(reader, table),
                other => reader.report(wrong("subject", "a table", other, value.span()).help("write `[subject]`")),
            },
            name @ "packs" => {
                let tables = reader.tables(name, value, &mut file.unreadable);
                file.packs = tables.into_iter().map(|(name, table)| pack(reader, name, table)).collect();
            }
            name @ "checks" => {
                let tables = reader.tables(name, value, &mut file.unreadable);
                file.checks = tables.into_iter().map(|(id, table)| check(reader, id, table)).collect();
            }
            name @ "scenarios" => {
                let tables = reader.tables(name, value, &mut file.unreadable);
                file.scenarios = tables.into_iter().map(|(name, table)| scenario(reader, name, table)).collect();
            }
            name @ "capabilities" => {
                let tables = reader.tables(name, value, &mut file.unreadable);
                file.capabilities =
                    tables.into_iter().map(|(name, table)| capability::read(reader, name, table)).collect();
            }
            "spec" => match value.get_ref() {
                DeValue::Table(table) => file.spec = Some(spec(reader, key.span(), table)),
                other => reader.report(wrong("spec", "a table", other, value.span()).help("write `[spec]`")),
            },
            _ => reader.unknown(key, &TOP),
        }
    }
    file
}

fn subject(reader: &mut Reader, table: &DeTable<'_>) -> Option<Field<Vec<At<String>>>> {
    let mut exclude = None;
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "exclude" => {
                let help = "write for example `exclude = [\"data/**\"]`";
                exclude = field(key, reader.strings(name, value, Some(help)));
            }
            _ => reader.unknown(key, &SUBJECT),
        }
    }
    exclude
}

fn pack(reader: &mut Reader, name: At<String>, table: &DeTable<'_>) -> FilePack {
    let mut pack = FilePack { name, source: None, allow: None };
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "source" => pack.source = field(key, reader.string(name, value, None)),
            name @ "allow" => {
                let help = "write for example `allow = [\"tree:**\"]`";
                pack.allow = field(key, reader.strings(name, value, Some(help)));
            }
            _ => reader.unknown(key, &PACK),
        }
    }
    pack
}

fn check(reader: &mut Reader, id: At<String>, table: &DeTable<'_>) -> FileCheck {
    let mut check = FileCheck {
        id,
        command: None,
        uses: None,
        after: None,
        parallel: None,
        needs: None,
        timeout: None,
        blocking: None,
        env: None,
        pass_env: None,
        inherit_env: None,
        secrets: None,
        gap_exit: None,
        fingerprint: None,
        ambient: None,
        isolate: None,
        files: None,
        allow_empty: None,
        when: None,
        tests: None,
        severities: None,
        baseline: None,
        config: None,
        limits: None,
    };
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "command" => check.command = field(key, argv::read(reader, name, value)),
            name @ "use" => {
                check.uses = field(key, reader.string(name, value, Some("write `use = \"pack/check\"`")));
            }
            name @ "after" => {
                let help = "write for example `after = [\"test\"]`";
                check.after = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "parallel" => check.parallel = field(key, reader.boolean(name, value)),
            name @ "needs" => {
                let help = "write for example `needs = [\"docker\"]`";
                check.needs = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "timeout" => check.timeout = field(key, reader.string(name, value, Some(TIMEOUT_HELP))),
            name @ "blocking" => check.blocking = field(key, reader.boolean(name, value)),
            name @ "env" => check.env = field(key, environment::read(reader, name, value)),
            name @ "pass-env" => {
                let help = "write for example `pass-env = [\"NAME\"]`";
                check.pass_env = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "inherit-env" => check.inherit_env = field(key, reader.boolean(name, value)),
            name @ "secrets" => check.secrets = field(key, environment::read_secrets(reader, name, value)),
            name @ "gap-exit" => {
                let help = "write for example `gap-exit = [75]`";
                check.gap_exit = field(key, reader.integers(name, value, help));
            }
            name @ "fingerprint" => check.fingerprint = field(key, argv::commands(reader, name, value)),
            name @ "ambient" => {
                let help = "write for example `ambient = [\"node_modules/.package-lock.json\"]`";
                check.ambient = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "isolate" => check.isolate = field(key, reader.boolean(name, value)),
            name @ "files" => {
                let help = "write for example `files = [\"src/**\"]`";
                check.files = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "allow-empty" => check.allow_empty = field(key, reader.boolean(name, value)),
            name @ "when" => check.when = field(key, when(reader, name, value)),
            name @ "tests" => {
                let help = "write for example `tests = { \"src/{path}.ts\" = \"test/{path}.spec.ts\" }`";
                check.tests = field(key, pairs(reader, name, value, help));
            }
            name @ "severities" => {
                let help = "write for example `severities = { too-large = \"warning\" }`";
                check.severities = field(key, pairs(reader, name, value, help));
            }
            name @ "baseline" => check.baseline = field(key, reader.boolean(name, value)),
            name @ "config" => check.config = field(key, json::options(reader, name, value)),
            name @ "limits" => check.limits = field(key, limits::read(reader, name, value)),
            _ => reader.unknown(key, &CHECK),
        }
    }
    check
}

fn scenario(reader: &mut Reader, name: At<String>, table: &DeTable<'_>) -> FileScenario {
    let mut scenario = FileScenario {
        name,
        checks: None,
        fail_fast: None,
        fail_on: None,
        timeout: None,
        jobs: None,
        base: None,
        max_age: None,
    };
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "checks" => {
                let help = "write for example `checks = [\"fmt\", \"test\"]`";
                scenario.checks = field(key, reader.strings(name, value, Some(help)));
            }
            name @ "base" => {
                let help = "write for example `base = \"origin/main\"`";
                scenario.base = field(key, reader.string(name, value, Some(help)));
            }
            name @ "fail-on" => {
                let help = "write `fail-on = \"warning\"` to fail on warnings too";
                scenario.fail_on = field(key, reader.string(name, value, Some(help)));
            }
            name @ "fail-fast" => scenario.fail_fast = field(key, reader.boolean(name, value)),
            name @ "timeout" => scenario.timeout = field(key, reader.string(name, value, Some(TIMEOUT_HELP))),
            name @ "max-age" => scenario.max_age = field(key, reader.string(name, value, Some(MAX_AGE_HELP))),
            name @ "jobs" => scenario.jobs = field(key, jobs::read(reader, name, value)),
            _ => reader.unknown(key, &SCENARIO),
        }
    }
    scenario
}

fn when(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<FileWhen>> {
    let DeValue::Table(table) = value.get_ref() else {
        let diagnostic = wrong(name, "a table", value.get_ref(), value.span());
        reader.report(diagnostic.help("write for example `when = { scenarios = [\"nightly\"] }`"));
        return None;
    };
    let mut when = FileWhen::default();
    for (key, value) in entries(table) {
        let (into, help) = match key.get_ref().as_ref() {
            "scenarios" => (&mut when.scenarios, "write for example `scenarios = [\"nightly\"]`"),
            "branches" => (&mut when.branches, "write for example `branches = [\"main\", \"release/*\"]`"),
            "paths" => (&mut when.paths, "write for example `paths = [\"docs/**\"]`"),
            "capabilities" => (&mut when.capabilities, "write for example `capabilities = [\"docker\"]`"),
            _ => {
                reader.unknown(key, &WHEN);
                continue;
            }
        };
        *into = field(key, reader.strings(key.get_ref().as_ref(), value, Some(help)));
    }
    Some(At { value: when, span: value.span() })
}

/// Texts by name.
fn pairs(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>, help: &str) -> Option<At<Pairs>> {
    let DeValue::Table(table) = value.get_ref() else {
        reader.report(wrong(name, "a table", value.get_ref(), value.span()).help(help));
        return None;
    };
    let mut pairs = Vec::new();
    for (key, value) in entries(table) {
        let name = key.get_ref().as_ref();
        let text = reader.string(name, value, Some(help));
        let text = text?;
        // What is empty says nothing, here as everywhere.
        if !text.value.is_empty() {
            pairs.push((At { value: name.to_owned(), span: key.span() }, text));
        }
    }
    Some(At { value: pairs, span: value.span() })
}

fn spec(reader: &mut Reader, span: Span, table: &DeTable<'_>) -> FileSpec {
    let mut spec = FileSpec { table: span, paths: None };
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "paths" => {
                let help = "write for example `paths = [\"SPEC.md\", \"spec/**\"]`";
                spec.paths = field(key, reader.strings(name, value, Some(help)));
            }
            _ => reader.unknown(key, &SPEC),
        }
    }
    spec
}
