//! What the file means. Everything that can be known without packs and subject is checked here.
//!
//! Must not report a mistake that only follows from one that has been reported: a value that is absent because it
//! was wrong is not missing.

use super::argv::{self, Argv};
use super::capability;
use super::diagnostic::{Diagnostic, MAX_SHOWN, quote};
use super::duration::parse_duration;
use super::environment::Marked;
use super::file::{File, FileCheck, FileScenario, FileSpec, FileWhen, Pairs};
use super::known::Names;
use super::reader::{At, Field, Span, get, list};
use super::suggest::did_you_mean;
use super::{
    Body, Check, Command, Config, EXAMPLE, Evident, Globs, Invalid, Layer, Logic, Scenario, Source, Spec, TestsOf,
    User, When, after, environment, exits, jobs, limits, names, pack, verify,
};
use crate::model::{CapabilityName, CheckId, PackName, ScenarioName, Severity};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How old a record that commands are part of may be to answer for another run, where nobody says otherwise.
const MAX_AGE: Duration = Duration::from_hours(24);

/// The scenario that runs when none is named.
pub(super) const DEFAULT: &str = "default";

/// The output of a check is in `ID.log`, and that of all of them in the file of this name.
const TAKEN: &str = "verify";

/// The most checks of a project. Each is planned against every file and has a row in every record, so many more of them
/// are minutes before the first one starts.
pub(super) const MAX_CHECKS: usize = 10_000;

/// Checks the file and gives its meaning, or all mistakes: those of reading first, and those found here.
pub(super) fn resolve(
    file: &File,
    user: &User,
    source: Source,
    mut diagnostics: Vec<Diagnostic>,
) -> Result<Config, Invalid> {
    let found = &mut diagnostics;
    let packs = file.packs.iter().filter_map(|file| pack::resolve(file, found));
    let packs = packs.map(|pack| (pack.name.clone(), pack)).collect();
    // What the user's file marks is secret whatever the project says.
    let marked = Marked::new(file, &user.verify.secrets);
    let (mut checks, timeout, jobs) = verify::resolve(file, user, &marked, found);
    let names = file.packs.iter().map(|pack| pack.name.value.as_str()).collect();
    let declared = Packs { names, unreadable: &file.unreadable };
    let capabilities = file.capabilities.iter().filter_map(|file| capability::resolve(file, found));
    let capabilities = capabilities.map(|capability| (capability.name.clone(), capability)).collect();
    let known = Known::new(file, checks.len());
    for check in &file.checks {
        checks.extend(self::check(check, &declared, &known, &marked, found));
    }
    let scenarios = file.scenarios.iter().filter_map(|scenario| self::scenario(scenario, &known, found));
    let mut scenarios: Vec<_> = scenarios.collect();
    if checks.len() > MAX_CHECKS {
        let title = format!("{} checks are more than {MAX_CHECKS}", checks.len());
        found.push(
            Diagnostic::whole(title).help("let one command do what many do, or make files of their own of parts"),
        );
    } else {
        after::circles(&file.checks, found);
    }
    let spec = file.spec.as_ref().and_then(|spec| self::spec(spec, found));
    let exclude = get(file.exclude.as_ref()).and_then(|exclude| globs(&exclude.value, found));
    let written = file.scenarios.iter().find(|scenario| scenario.name.value == DEFAULT);
    match scenarios.iter_mut().find(|scenario| scenario.name.as_str() == DEFAULT) {
        Some(default) => {
            default.timeout = default.timeout.or(timeout);
            if written.is_some_and(|scenario| scenario.jobs.is_none()) {
                default.jobs = jobs.unwrap_or(default.jobs);
            }
        }
        None if written.is_some() => {}
        None => scenarios.splice(0..0, default(&checks, timeout, jobs)).for_each(drop),
    }
    if checks.is_empty() && found.is_empty() {
        found
            .push(Diagnostic::whole("there are no checks").help(format!("say what to run, for example:\n\n{EXAMPLE}")));
    }
    if diagnostics.is_empty() {
        Ok(Config { source, exclude, packs, checks, scenarios, capabilities, spec, marked: marked.names() })
    } else {
        Err(Invalid { source, diagnostics })
    }
}

/// What is declared and may be named elsewhere.
struct Known<'a> {
    checks: Names<'a>,
    /// With the one that is meant where none is written.
    scenarios: Names<'a>,
    capabilities: Names<'a>,
}

impl<'a> Known<'a> {
    /// `beneath` is how many commands there are where the file has none of `[verify]`.
    fn new(file: &'a File, beneath: usize) -> Self {
        let commands = file.verify.commands.as_ref().map(|field| field.value.as_ref().map(|list| list.value.len()));
        let short =
            (0..commands.map_or(beneath, Option::unwrap_or_default)).map(|index| Cow::Owned(verify::id_of(index)));
        let long = file.checks.iter().map(|check| Cow::Borrowed(check.id.value.as_str()));
        let declare = |_: &str| "declare it in `[checks.NAME]`".to_owned();
        let checks = Names::new("check", declare, short.chain(long).collect(), &file.unreadable);
        let mut scenarios: Vec<Cow<'_, str>> =
            file.scenarios.iter().map(|scenario| scenario.name.value.as_str().into()).collect();
        if !scenarios.iter().any(|name| name == DEFAULT) {
            scenarios.push(DEFAULT.into());
        }
        Self {
            // The commands of `[verify]` that cannot be read cannot be counted.
            checks: checks.uncounted((commands == Some(None)).then_some("verify-")),
            scenarios: Names::new(
                "scenario",
                |_| "declare it in `[scenarios.NAME]`".to_owned(),
                scenarios,
                &file.unreadable,
            ),
            capabilities: capability::declared(&file.capabilities, &file.unreadable),
        }
    }
}

/// What `use` may name: every pack, also one that has mistakes.
struct Packs<'a> {
    names: Vec<&'a str>,
    unreadable: &'a BTreeSet<String>,
}

fn check(
    file: &FileCheck,
    packs: &Packs<'_>,
    known: &Known<'_>,
    marked: &Marked<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Check> {
    let id = names::id("check", &file.id, diagnostics).filter(|id: &CheckId| {
        let free = id.as_str() != TAKEN;
        if !free {
            let title = format!("{} cannot be the name of a check", quote(TAKEN));
            let diagnostic = Diagnostic::new(file.id.span.clone(), title);
            let diagnostic = diagnostic.label("the output of all checks together has that name");
            diagnostics.push(diagnostic.help("write for example `verify-all`"));
        }
        free
    });
    let timeout = get(file.timeout.as_ref()).and_then(|timeout| duration(timeout, diagnostics));
    let after = get(file.after.as_ref()).map_or(Some(Vec::new()), |after| members(&after.value, known, diagnostics));
    let needs = get(file.needs.as_ref()).map_or(Some(Vec::new()), |needs| needed(&needs.value, known, diagnostics));
    let parallel = get(file.parallel.as_ref()).is_some_and(|parallel| parallel.value);
    let blocking = get(file.blocking.as_ref()).is_none_or(|blocking| blocking.value);
    let files = get(file.files.as_ref()).and_then(|files| globs(&files.value, diagnostics));
    let allow_empty = get(file.allow_empty.as_ref()).is_some_and(|allow| allow.value);
    let when =
        get(file.when.as_ref()).map_or_else(|| Some(When::default()), |when| self::when(when, known, diagnostics));
    let body = match (&file.command, &file.uses) {
        (Some(field), None) => command(file, field, marked, diagnostics).map(Body::Command),
        (None, Some(field)) => logic(file, field, packs, diagnostics).map(Box::new).map(Body::Logic),
        (Some(command), Some(uses)) => {
            let title = format!("check {} has both a `command` and a `use`", quote(&file.id.value));
            let diagnostic = Diagnostic::new(uses.key.clone(), title).also(command.key.clone(), "and this");
            diagnostics.push(diagnostic.help("make two checks of it"));
            None
        }
        (None, None) => {
            let title = format!("check {} does nothing", quote(&file.id.value));
            let diagnostic = Diagnostic::new(file.id.span.clone(), title);
            diagnostics.push(diagnostic.help("add `command = [\"program\", \"argument\"]` or `use = \"pack/check\"`"));
            None
        }
    };
    let (span, after, needs, when) = (file.id.span.clone(), after?, needs?, when?);
    let layer = Layer::Project;
    Some(Check {
        id: id?,
        span,
        layer,
        after,
        parallel,
        needs,
        timeout,
        blocking,
        files,
        allow_empty,
        when,
        body: body?,
    })
}

fn command(
    file: &FileCheck,
    field: &Field<Argv>,
    marked: &Marked<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Command> {
    let argv = field.value.as_ref().and_then(|command| argv::resolve(command, diagnostics));
    if let (None, Some(allow)) = (&file.files, get(file.allow_empty.as_ref()).filter(|allow| allow.value)) {
        let diagnostic =
            Diagnostic::new(allow.span.clone(), "`allow-empty` has no meaning for a command without `files`");
        diagnostics
            .push(diagnostic.help("remove it, or add `files`: what runs on the whole tree always has something"));
    }
    if let Some(argv) = get(file.command.as_ref()).filter(|_| file.files.is_none()) {
        argv::placeholders(argv, diagnostics);
    }
    let logic_only = [
        ("severities", span(file.severities.as_ref())),
        ("baseline", span(file.baseline.as_ref())),
        ("config", span(file.config.as_ref())),
        ("limits", span(file.limits.as_ref())),
    ];
    for (name, span) in logic_only.into_iter().filter_map(|(name, span)| Some((name, span?))) {
        let title = format!("`{name}` has no meaning for a command");
        let diagnostic = Diagnostic::new(span, title).label("only checks with `use` have it");
        let help = match name {
            "severities" => "its exit code decides",
            "baseline" => "remove it: a command is not run on the base, so all that it finds counts",
            "config" => "pass options as arguments, or through `env`",
            _ => "set `timeout` to bound a command",
        };
        diagnostics.push(diagnostic.help(help));
    }
    let env = get(file.env.as_ref()).map_or_else(Vec::new, |env| environment::entries(&env.value, marked, diagnostics));
    let pass_env = get(file.pass_env.as_ref())
        .map_or_else(Vec::new, |pass| environment::names("pass-env", &pass.value, diagnostics));
    let inherit_env = get(file.inherit_env.as_ref());
    if let (Some(inherit), Some(pass)) = (inherit_env.filter(|inherit| inherit.value), &file.pass_env) {
        let diagnostic = Diagnostic::new(pass.key.clone(), "`pass-env` has no effect with `inherit-env = true`");
        let diagnostic = diagnostic.also(inherit.span.clone(), "everything is passed");
        diagnostics.push(diagnostic.help("remove one of them"));
    }
    let tests = get(file.tests.as_ref()).map(|pairs| tests(&pairs.value, diagnostics)).unwrap_or_default();
    if let Some(argument) =
        get(file.command.as_ref()).and_then(|argv| argv.value.iter().find(|one| one.value == argv::TESTS))
    {
        if file.tests.is_none() && file.files.is_some() {
            let diagnostic = Diagnostic::new(argument.span.clone(), "`{tests}` needs `tests`");
            let help = "say which tests files have: `tests = { \"src/{path}.ts\" = \"test/{path}.spec.ts\" }`";
            diagnostics.push(diagnostic.help(help));
        }
    } else if let Some(tests) = &file.tests {
        let diagnostic = Diagnostic::new(tests.key.clone(), "`tests` has no effect without `{tests}`");
        diagnostics.push(diagnostic.help("write `{tests}` as an argument of the command, or remove it"));
    }
    let secrets = environment::secrets(file.secrets.as_ref(), diagnostics);
    let gap_exit =
        get(file.gap_exit.as_ref()).map_or_else(Vec::new, |codes| exits::gap_exit(&codes.value, diagnostics));
    let inherit_env = inherit_env.is_some_and(|inherit| inherit.value);
    let isolate = get(file.isolate.as_ref()).is_some_and(|isolate| isolate.value);
    let evidence = Evident {
        fingerprint: fingerprints(file, diagnostics),
        ambient: get(file.ambient.as_ref()).and_then(|ambient| globs(&ambient.value, diagnostics)),
        short_form: false,
    };
    Some(Command { argv: argv?, env, pass_env, tests, secrets, gap_exit, inherit_env, isolate, evidence })
}

/// The commands whose output tells one state of the tools from another.
fn fingerprints(file: &FileCheck, diagnostics: &mut Vec<Diagnostic>) -> Vec<Vec<String>> {
    let commands = get(file.fingerprint.as_ref()).map(|commands| commands.value.as_slice()).unwrap_or_default();
    let one = |command: &At<Argv>| {
        argv::no_placeholders(command, "fingerprint", diagnostics);
        argv::resolve(command, diagnostics)
    };
    commands.iter().filter_map(one).collect()
}

/// Which tests files have.
fn tests(pairs: &Pairs, diagnostics: &mut Vec<Diagnostic>) -> Vec<TestsOf> {
    let one = |(file, test): &(At<String>, At<String>)| {
        let pair = TestsOf::new(&file.value, &test.value);
        if pair.is_none() {
            let title = "a file and its test have one part of their names in common";
            let diagnostic = Diagnostic::new(file.span.clone(), title);
            diagnostics
                .push(diagnostic.help("write `{path}` once in each: `\"src/{path}.ts\" = \"test/{path}.spec.ts\"`"));
        }
        pair
    };
    pairs.iter().filter_map(one).collect()
}

/// When a check is among those to run.
fn when(file: &At<FileWhen>, known: &Known<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<When> {
    let before = diagnostics.len();
    let scenarios = get(file.value.scenarios.as_ref()).map(|names| {
        names.value.iter().for_each(|name| known.scenarios.know(name, diagnostics));
        names.value.iter().filter_map(|name| name.value.parse().ok()).collect()
    });
    let branches = get(file.value.branches.as_ref()).and_then(|names| globs(&names.value, diagnostics));
    let paths = get(file.value.paths.as_ref()).and_then(|paths| globs(&paths.value, diagnostics));
    let capabilities = get(file.value.capabilities.as_ref());
    let capabilities = capabilities.map_or(Some(Vec::new()), |names| needed(&names.value, known, diagnostics));
    (diagnostics.len() == before).then_some(When { scenarios, branches, paths, capabilities: capabilities? })
}

fn logic(
    file: &FileCheck,
    field: &Field<String>,
    packs: &Packs<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Logic> {
    let target = field.value.as_ref().and_then(|uses| target(uses, packs, diagnostics));
    let command_only = [
        ("parallel", span(file.parallel.as_ref())),
        ("needs", span(file.needs.as_ref())),
        ("env", span(file.env.as_ref())),
        ("pass-env", span(file.pass_env.as_ref())),
        ("inherit-env", span(file.inherit_env.as_ref())),
        ("tests", span(file.tests.as_ref())),
        ("secrets", span(file.secrets.as_ref())),
        ("gap-exit", span(file.gap_exit.as_ref())),
        ("fingerprint", span(file.fingerprint.as_ref())),
        ("ambient", span(file.ambient.as_ref())),
        ("isolate", span(file.isolate.as_ref())),
    ];
    for (name, span) in command_only.into_iter().filter_map(|(name, span)| Some((name, span?))) {
        let title = format!("`{name}` has no meaning for a check of a pack");
        let diagnostic = Diagnostic::new(span, title).label("only checks with `command` have it");
        let help = match name {
            "gap-exit" => "remove it: a pack says in words what is missing",
            "fingerprint" | "ambient" => {
                "remove it: a pack sees no tools and no ignored files, and what it saw is known"
            }
            "isolate" => "remove it: a pack sees what was verified and nothing else",
            "parallel" => "remove it: a check of a pack has workers of its own, and nothing runs beside it",
            "needs" => "remove it: a pack sees nothing of this machine, so it is the same everywhere",
            "tests" => "remove it: a check of a pack is about the files that `files` names",
            _ => "remove it: a pack sees no environment, and its options are in `config`",
        };
        diagnostics.push(diagnostic.help(help));
    }
    let config = get(file.config.as_ref());
    let limits = get(file.limits.as_ref()).map(|limits| limits::resolve(&limits.value, diagnostics));
    let severities = get(file.severities.as_ref()).map(|pairs| weights(&pairs.value, diagnostics)).unwrap_or_default();
    let spans = get(file.severities.as_ref()).into_iter().flat_map(|pairs| &pairs.value);
    let severity_spans = spans.map(|(rule, _)| (rule.value.clone(), rule.span.clone())).collect();
    let (uses, (pack, check)) = (field.value.as_ref()?, target?);
    Some(Logic {
        pack,
        check,
        use_span: uses.span.clone(),
        severities,
        severity_spans,
        baseline: get(file.baseline.as_ref()).filter(|baseline| baseline.value).map(|baseline| baseline.span.clone()),
        config: config.map(|config| config.value.values.clone()).unwrap_or_default(),
        config_span: config.map(|config| config.span.clone()),
        config_spans: config.map(|config| config.value.spans.clone()).unwrap_or_default(),
        limits: limits.unwrap_or_default(),
        limits_span: get(file.limits.as_ref()).map(|limits| limits.span.clone()),
    })
}

/// What rules weigh.
fn weights(pairs: &Pairs, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, Option<Severity>> {
    let one = |(rule, word): &(At<String>, At<String>)| {
        let weight = match word.value.as_str() {
            "off" => None,
            _ => Some(severity(word, "`error`, `warning`, `note` or `off`", diagnostics)?),
        };
        Some((rule.value.clone(), weight))
    };
    pairs.iter().filter_map(one).collect()
}

fn severity(word: &At<String>, words: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Severity> {
    let known = [Severity::Error, Severity::Warning, Severity::Note];
    let found = known.into_iter().find(|severity| severity.name() == word.value);
    if found.is_none() {
        let diagnostic = Diagnostic::new(word.span.clone(), format!("{} is no severity", quote(&word.value)));
        diagnostics.push(diagnostic.help(format!("write {words}")));
    }
    found
}

fn globs(items: &[At<String>], diagnostics: &mut Vec<Diagnostic>) -> Option<Globs> {
    let (patterns, spans): (Vec<_>, Vec<_>) = items.iter().map(|item| (item.value.as_str(), item.span.clone())).unzip();
    pack::globs(&patterns, &spans, "**", diagnostics)
}

/// The pack and the check that `use` names.
fn target(uses: &At<String>, packs: &Packs<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<(PackName, String)> {
    // Suggestions take time that grows with the names there are, and few of so many mistakes are shown.
    let crowded = diagnostics.len() > MAX_SHOWN;
    let mut refuse = |diagnostic: Diagnostic| diagnostics.push(diagnostic);
    let parts = uses.value.split_once('/').filter(|(pack, check)| {
        !pack.is_empty() && !check.is_empty() && !check.contains('/') && !check.contains(char::is_control)
    });
    let Some((pack, check)) = parts else {
        let title = format!("{} does not name a check of a pack", quote(&uses.value));
        refuse(Diagnostic::new(uses.span.clone(), title).help("write `use = \"pack/check\"`"));
        return None;
    };
    if packs.names.contains(&pack) || packs.unreadable.contains(pack) {
        // A pack with a name that is none has been reported where it is declared.
        return Some((pack.parse().ok()?, check.to_owned()));
    }
    let diagnostic = Diagnostic::new(uses.span.clone(), format!("there is no pack {}", quote(pack)));
    if crowded {
        refuse(diagnostic);
        return None;
    }
    refuse(match did_you_mean(pack, packs.names.iter().copied()) {
        Some(meant) => diagnostic.help(format!("did you mean {}?", quote(&format!("{meant}/{check}")))),
        None if packs.names.is_empty() => diagnostic.help(format!(
            "declare it:\n\n[packs.{}]\nsource = \"file:PACK.wasm\"\nallow = [\"tree:**\"]",
            if pack.parse::<PackName>().is_ok() { pack } else { "NAME" }
        )),
        None => diagnostic.help(format!("the packs are {}", list(&packs.names))),
    });
    None
}

fn scenario(file: &FileScenario, known: &Known<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Scenario> {
    let name: Option<ScenarioName> = names::id("scenario", &file.name, diagnostics);
    let timeout = get(file.timeout.as_ref()).and_then(|timeout| duration(timeout, diagnostics));
    let jobs = get(file.jobs.as_ref()).and_then(|jobs| jobs::resolve(jobs, diagnostics)).unwrap_or(jobs::DEFAULT);
    let max_age = get(file.max_age.as_ref()).and_then(|age| duration(age, diagnostics)).unwrap_or(MAX_AGE);
    let fail_fast = get(file.fail_fast.as_ref()).is_none_or(|fail_fast| fail_fast.value);
    let fail_on = get(file.fail_on.as_ref());
    let fail_on = fail_on.and_then(|word| severity(word, "`error`, `warning` or `note`", diagnostics));
    let fail_on = fail_on.unwrap_or(Severity::Error);
    let checks = match &file.checks {
        None => {
            let title = format!("scenario {} has no checks", quote(&file.name.value));
            let diagnostic = Diagnostic::new(file.name.span.clone(), title);
            diagnostics.push(diagnostic.help("add `checks = [\"NAME\"]` with the names of its checks, in order"));
            None
        }
        Some(field) => field.value.as_ref().and_then(|checks| members(&checks.value, known, diagnostics)),
    };
    let base_span = get(file.base.as_ref()).map(|base| base.span.clone());
    let base = get(file.base.as_ref()).and_then(|base| revision(base, diagnostics));
    let (name, checks, span) = (name?, checks?, file.name.span.clone());
    Some(Scenario { name, span, checks, fail_fast, fail_on, timeout, jobs, base, base_span, max_age })
}

/// The name of a revision, as far as it can be known to be none.
fn revision(name: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    if name.value.starts_with('-') || name.value.contains(char::is_control) {
        let diagnostic = Diagnostic::new(name.span.clone(), format!("{} names no revision", quote(&name.value)));
        diagnostics.push(diagnostic.help("write a branch, a tag or a commit, for example `origin/main`"));
        return None;
    }
    Some(name.value.clone())
}

/// The specification.
fn spec(file: &FileSpec, diagnostics: &mut Vec<Diagnostic>) -> Option<Spec> {
    let Some(field) = &file.paths else {
        let diagnostic = Diagnostic::new(file.table.clone(), "`[spec]` has no `paths`");
        diagnostics.push(diagnostic.help("add `paths = [\"SPEC.md\", \"spec/**\"]`, or remove it"));
        return None;
    };
    let paths = field.value.as_ref()?;
    Some(Spec { paths: globs(&paths.value, diagnostics)?, span: paths.span.clone() })
}

fn needed(items: &[At<String>], known: &Known<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<CapabilityName>> {
    known.capabilities.all(items, "remove one of them", diagnostics)
}

fn members(items: &[At<String>], known: &Known<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<CheckId>> {
    known.checks.all(items, "a check runs once; remove one of them", diagnostics)
}

/// The scenario that is meant where none is written: all checks.
fn default(checks: &[Check], timeout: Option<Duration>, jobs: Option<u8>) -> Option<Scenario> {
    Some(Scenario {
        // A constant in the alphabet of names.
        name: DEFAULT.parse().ok()?,
        span: checks.first()?.span.clone(),
        checks: checks.iter().map(|check| check.id.clone()).collect(),
        fail_fast: true,
        fail_on: Severity::Error,
        timeout,
        jobs: jobs.unwrap_or(jobs::DEFAULT),
        base: None,
        base_span: None,
        max_age: MAX_AGE,
    })
}

pub(super) fn duration(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<Duration> {
    match parse_duration(&text.value) {
        Ok(duration) => Some(duration),
        Err(error) => {
            diagnostics.push(Diagnostic::new(text.span.clone(), error.to_string()).help(error.help()));
            None
        }
    }
}

fn span<T>(field: Option<&Field<T>>) -> Option<Span> {
    field.map(|field| field.key.clone())
}
