//! `[verify]`: the short form, a list of commands. What is written, and what it means.
//!
//! It is in both files. What the user's file says holds, key by key, where the project's says nothing: an empty value
//! there is none, and takes nothing back.

use super::argv::{self, Argv};
use super::diagnostic::{Diagnostic, quote};
use super::environment::{self, Marked};
use super::file::{File, FileCheck, TIMEOUT_HELP};
use super::reader::{At, Field, Keys, Reader, entries, field, get, unsupported};
use super::resolve::{DEFAULT, duration};
use super::{Body, Check, Command, Evident, Layer, User, When, jobs};
use crate::model::CheckId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::de::DeTable;

/// `[verify]`. Where it is not written, all of it is absent.
#[derive(Debug, Default)]
pub(super) struct FileVerify {
    pub(super) commands: Option<Field<Vec<At<Argv>>>>,
    pub(super) timeout: Option<Field<String>>,
    pub(super) env: Option<Field<Vec<At<String>>>>,
    pub(super) secrets: Option<Field<Vec<At<String>>>>,
    pub(super) jobs: Option<Field<i64>>,
    pub(super) audit: Option<Field<bool>>,
}

const VERIFY: Keys = Keys {
    table: "`[verify]`",
    known: &["commands", "timeout", "env", "secrets", "jobs", "audit"],
    later: &[
        ("base", "remove it; until then, checks judge the whole tree"),
        ("when", "remove it; until then, every command runs"),
        (
            "fail-fast",
            "set it in `[scenarios.default]`, with `checks = [\"verify-1\", \"verify-2\"]` for these commands",
        ),
        ("prompts", "remove it; until then, Probity runs commands and packs only"),
    ],
    elsewhere: &[],
};

pub(super) fn read(reader: &mut Reader, table: &DeTable<'_>) -> FileVerify {
    let mut verify = FileVerify::default();
    for (key, value) in entries(table) {
        match key.get_ref().as_ref() {
            name @ "commands" => verify.commands = field(key, argv::commands(reader, name, value)),
            name @ "timeout" => verify.timeout = field(key, reader.string(name, value, Some(TIMEOUT_HELP))),
            name @ "env" => verify.env = field(key, environment::read(reader, name, value)),
            name @ "secrets" => verify.secrets = field(key, environment::read_secrets(reader, name, value)),
            name @ "jobs" => verify.jobs = field(key, jobs::read(reader, name, value)),
            name @ "audit" => verify.audit = field(key, reader.boolean(name, value)),
            _ => reader.unknown(key, &VERIFY),
        }
    }
    verify
}

/// The name of a command of `[verify]`, from 0.
pub(super) fn id_of(index: usize) -> String {
    format!("verify-{}", index + 1)
}

/// What `[verify]` of one file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verify {
    /// The commands.
    pub commands: Vec<VerifyCommand>,
    /// The budget of the scenario `default`.
    pub timeout: Option<Duration>,
    /// Names and values to add to the environment of the commands.
    pub env: Vec<(String, String)>,
    /// Names of variables whose values nobody is to see.
    pub secrets: Vec<String>,
    /// How many commands of the scenario `default` may run side by side.
    pub jobs: Option<u8>,
}

/// A command of `[verify]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyCommand {
    /// The name of its check.
    pub id: CheckId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it is written.
    pub span: Range<usize>,
}

/// What is written means this.
pub(super) fn meaning(file: &FileVerify, marked: &Marked<'_>, diagnostics: &mut Vec<Diagnostic>) -> Verify {
    if let Some(audit) = get(file.audit.as_ref()).filter(|audit| audit.value) {
        let diagnostic = unsupported(audit.span.clone(), "`audit`").label("nothing would audit");
        diagnostics.push(diagnostic.help("remove it or write `audit = false`; only commands and packs are run so far"));
    }
    let env = get(file.env.as_ref()).map_or_else(Vec::new, |env| environment::entries(&env.value, marked, diagnostics));
    let secrets = environment::secrets(file.secrets.as_ref(), diagnostics);
    let timeout = get(file.timeout.as_ref()).and_then(|timeout| duration(timeout, diagnostics));
    let jobs = get(file.jobs.as_ref()).and_then(|jobs| jobs::resolve(jobs, diagnostics));
    let mut commands = Vec::new();
    for (index, command) in get(file.commands.as_ref()).into_iter().flat_map(|commands| &commands.value).enumerate() {
        argv::placeholders(command, diagnostics);
        let argv = argv::resolve(command, diagnostics);
        // The name is in the alphabet of ids, and far from its longest.
        if let (Some(argv), Ok(id)) = (argv, id_of(index).parse()) {
            commands.push(VerifyCommand { id, argv, span: command.span.clone() });
        }
    }
    Verify { commands, timeout, env, secrets, jobs }
}

/// The checks that the commands are which hold, and the budget and `jobs` of the scenario `default`.
pub(super) fn resolve(
    file: &File,
    user: &User,
    marked: &Marked<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Check>, Option<Duration>, Option<u8>) {
    let own = meaning(&file.verify, marked, diagnostics);
    let beneath = &user.verify;
    let (layer, commands) = match &file.verify.commands {
        Some(_) => (Layer::Project, own.commands),
        None => (Layer::User, beneath.commands.clone()),
    };
    let env = if file.verify.env.is_some() {
        own.env
    } else {
        marked.refuse(&beneath.env, user, diagnostics);
        beneath.env.clone()
    };
    let secrets = if file.verify.secrets.is_some() { own.secrets } else { beneath.secrets.clone() };
    let timeout = match &file.verify.timeout {
        Some(timeout) => {
            without_effect("timeout", timeout, file, diagnostics);
            own.timeout
        }
        None => beneath.timeout,
    };
    let jobs = match &file.verify.jobs {
        Some(jobs) => {
            without_effect("jobs", jobs, file, diagnostics);
            own.jobs
        }
        None => beneath.jobs,
    };
    let check = |VerifyCommand { id, argv, span }| {
        let body = Body::Command(Command {
            argv,
            env: env.clone(),
            pass_env: Vec::new(),
            tests: Vec::new(),
            secrets: secrets.clone(),
            gap_exit: Vec::new(),
            inherit_env: true,
            isolate: false,
            evidence: Evident { short_form: true, ..Evident::default() },
        });
        let (after, needs) = (Vec::new(), Vec::new());
        let (timeout, blocking, files, allow_empty, when) = (None, true, None, false, When::default());
        // They stand in their order, and nothing says more of them.
        let parallel = false;
        Check { id, span, layer, after, parallel, needs, timeout, blocking, files, allow_empty, when, body }
    };
    let checks: Vec<Check> = commands.into_iter().map(check).collect();
    clashes(&checks, &file.checks, diagnostics);
    (checks, timeout, jobs)
}

/// Reports what `[verify]` says of the scenario `default` where that has a table of its own.
fn without_effect<T>(name: &str, field: &Field<T>, file: &File, diagnostics: &mut Vec<Diagnostic>) {
    let scenario = file.scenarios.iter().find(|scenario| scenario.name.value == DEFAULT);
    if let (Some(written), Some(scenario)) = (&field.value, scenario) {
        let diagnostic = Diagnostic::new(written.span.clone(), format!("the `{name}` of `[verify]` has no effect"));
        let diagnostic = diagnostic.label("this is about the scenario `default`");
        let diagnostic = diagnostic.also(scenario.name.span.clone(), "which is written here");
        diagnostics.push(diagnostic.help("move it to `[scenarios.default]`"));
    }
}

/// Reports checks that have the name of a command of `[verify]`.
fn clashes(short: &[Check], long: &[FileCheck], diagnostics: &mut Vec<Diagnostic>) {
    let short: BTreeMap<&str, &Check> = short.iter().map(|command| (command.id.as_str(), command)).collect();
    for check in long {
        let Some(command) = short.get(check.id.value.as_str()) else { continue };
        let title = format!("{} is the name of a command of `[verify]`", quote(&check.id.value));
        let diagnostic = Diagnostic::new(check.id.span.clone(), title);
        diagnostics.push(match command.layer {
            Layer::Project => diagnostic.also(command.span.clone(), "of this one").help("give the check another name"),
            Layer::User => diagnostic
                .label("of the user's file, where this one says nothing")
                .help("give the check another name, or write `commands` of `[verify]` here"),
        });
    }
}
