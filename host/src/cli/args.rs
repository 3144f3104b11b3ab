//! What can be asked for. Parsing only: nothing is read or decided here.

use super::error::CliError;
use crate::config::MAX_JOBS;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  probity init                write a first probity.toml
  probity verify              run every check of the default scenario
  probity verify --json       the same, as one JSON document on stdout
  probity status              whether this tree is verified
  probity log                 list what was recorded
  probity show latest         look at the newest run again
  probity store check         hold every record and log against what it should be
  probity pack inspect X.wasm what a check pack holds and asks for
  probity config              what holds here, and which line says so
  probity doctor              try whether the walls around packs hold here

Exit codes:
  0  passed, or declared not applicable
  1  failed, error, timed out, interrupted or stale
  2  nothing was verified, or the arguments or the configuration are wrong
  3  what ran was green, but it was not everything
  4  passed, but stdout could not be written to
  5  --deliver-cached: the stored record is about something else by now
  70 a bug in probity

Probity reads `probity.toml` in this folder or the nearest one above it.";

/// Verify a tree of files with sandboxed logic checks and native commands.
#[derive(Debug, Parser)]
#[command(name = "probity", version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(super) struct Arguments {
    /// Act as if started in this folder
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,

    /// Show output as it comes, on stderr; twice to say what is done, too, and three times for everything.
    /// `PROBITY_LOG` sets what is said in detail
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    pub(super) color: Color,

    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a first `probity.toml` for what is found in the folder
    Init,
    /// Run the checks of a scenario and record the verdict
    Verify(Verify),
    /// Say whether this tree is verified, and what would have to run; exit code 0 only if it is
    Status(Status),
    /// Say why a check would run now, or why a record answers in its place
    Why(Why),
    /// List recorded runs, the newest first
    Log(Log),
    /// Look at a recorded run again
    Show(Show),
    /// Show a recorded run as it was shown when it went on
    Replay(Replay),
    /// Keep the records in order
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Show the configuration as it holds, and where each value comes from
    Config(Config),
    /// Say what stands on this machine, and try to cross every wall around packs
    Doctor(Doctor),
    /// Work with check packs
    Pack {
        #[command(subcommand)]
        command: PackCommand,
    },
}

#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct Verify {
    /// The scenario to run
    #[arg(default_value = "default")]
    pub(super) scenario: String,

    /// Verify a revision as git has it, without a checkout: its checks of packs, by its own configuration
    #[arg(long, value_name = "REV")]
    pub(super) rev: Option<String>,

    /// Verify the index, as a commit of it would be: its checks of packs, by the configuration that is staged
    #[arg(long, conflicts_with = "rev")]
    pub(super) staged: bool,

    /// Compare with where this revision and what is verified parted, in place of the scenario's base
    #[arg(long, value_name = "REV")]
    pub(super) base: Option<String>,

    /// Run only these checks of the scenario. What is scoped so is for looking closer, and never a gate
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// Run all checks of the scenario but these; never a gate either
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with = "only")]
    pub(super) skip: Vec<String>,

    /// Run a check only if files changed that it is about, since the base; commands that name `{files}` get those
    #[arg(long)]
    pub(super) changed: bool,

    /// Run up to so many commands side by side, of those with `parallel = true`, in place of what the scenario says
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_JOBS)))]
    pub(super) jobs: Option<u8>,

    /// Declare, with a reason, that the scenario does not apply to this tree, and run nothing
    #[arg(long, value_name = "REASON", conflicts_with_all = ["only", "skip", "changed"])]
    pub(super) na: Option<String>,

    /// Run whatever is recorded already
    #[arg(long, conflicts_with = "plan")]
    pub(super) fresh: bool,

    /// Run where the record that would answer says that it failed
    #[arg(long, conflicts_with = "plan")]
    pub(super) retry_failed: bool,

    /// Say of each check why it ran, or why a record answered
    #[arg(long, conflicts_with = "plan")]
    pub(super) explain: bool,

    /// Hand over the record of this commit, tree and scenario as it is, and execute nothing at all
    #[arg(long, conflicts_with_all = ["plan", "fresh", "retry_failed", "explain", "na", "only", "skip", "changed", "staged", "rev"])]
    pub(super) deliver_cached: bool,

    /// Show what would run and why, and execute nothing at all
    #[arg(long, conflicts_with = "na")]
    pub(super) plan: bool,

    /// Fail where another run of this tree is going on, in place of waiting for it to end
    #[arg(long)]
    pub(super) no_wait: bool,

    /// How the run is shown on stdout
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "json")]
    pub(super) format: Option<Format>,

    /// Write the whole record to stdout as one JSON document, and nothing else: the same as `--format json`
    #[arg(long)]
    pub(super) json: bool,

    /// What to do where walls around packs are missing
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub(super) walls: Demand,
}

/// In which form a run is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Human,
    /// The whole record as one JSON document, when all has ended
    Json,
    /// Each event as it comes, one JSON object a line
    Jsonl,
}

impl Verify {
    /// The form that was asked for.
    pub(super) fn format(&self) -> Format {
        self.format.unwrap_or(if self.json { Format::Json } else { Format::Human })
    }
}

/// Which walls are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Demand {
    /// Those that this system has; the record says which
    #[default]
    Available,
    /// All of them: no pack is run where one is missing
    Strict,
}

#[derive(Debug, Args)]
pub(super) struct Config {
    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,

    /// Write the JSON Schema of a file instead, for editors
    #[arg(long, value_enum, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "project", conflicts_with = "json")]
    pub(super) schema: Option<SchemaOf>,
}

/// A file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// `probity.toml`
    Project,
    /// The user's file
    User,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Status {
    /// The scenario that is asked about
    #[arg(default_value = "default")]
    pub(super) scenario: String,

    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Why {
    /// The check
    pub(super) check: String,

    /// The scenario that it is in
    #[arg(default_value = "default")]
    pub(super) scenario: String,

    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Log {
    /// How many runs to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: u32,

    /// Only runs of this scenario
    #[arg(long, value_name = "NAME")]
    pub(super) scenario: Option<String>,

    /// Only runs that came to this: `passed`, `failed`, `error`, `stale`, …
    #[arg(long, value_name = "OUTCOME")]
    pub(super) outcome: Option<String>,

    /// Only runs since a day or a time in UTC, such as `2026-01-31` or `2026-01-31T09:30`
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,

    /// Only runs in this working tree, of those of its repository
    #[arg(long)]
    pub(super) here: bool,

    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// A run's name, the beginning of it, or `latest`
    #[arg(default_value = "latest")]
    pub(super) run: String,

    /// Only this check, with all its findings
    #[arg(long, value_name = "ID")]
    pub(super) check: Option<String>,

    /// Write the output that was kept, of the run or with --check of that check
    #[arg(long)]
    pub(super) log: bool,

    /// Write the whole record as JSON
    #[arg(long, conflicts_with_all = ["log", "check"])]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// A run's name, the beginning of it, or `latest`
    pub(super) run: String,

    /// How it is shown on stdout
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) format: Format,
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Hold every record and log against what it should be, and say what is left over: exit code 1 if anything is wrong
    Check,
    /// Remove runs that are not kept any longer, and what killed runs left over
    Gc(Gc),
    /// Have nothing served any more that rests on this, in any repository of this user
    Disown(Disown),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(super) struct Disown {
    /// A run: its name, the beginning of it, or `latest`
    #[arg(long, value_name = "RUN", group = "what")]
    pub(super) run: Vec<String>,

    /// A pack: its name in the configuration, as it was in the newest run with it, or the digest of its component
    #[arg(long, value_name = "PACK", group = "what")]
    pub(super) pack: Vec<String>,

    /// An engine, as `probity show --json` has it; `this` is that of this program
    #[arg(long, value_name = "ENGINE", group = "what")]
    pub(super) engine: Vec<String>,

    /// All that was recorded until now
    #[arg(long, group = "what")]
    pub(super) all: bool,
}

#[derive(Debug, Args)]
pub(super) struct Gc {
    /// Say what would go, and remove nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum PackCommand {
    /// Say what a component is, what it asks for, and which checks it holds, without running a check
    Inspect(Inspect),
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// A component file
    pub(super) file: PathBuf,

    /// Write a JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// The folder to act in, absolute.
pub(super) fn folder(arguments: &Arguments) -> Result<PathBuf, CliError> {
    let here = std::env::current_dir().map_err(|error| {
        CliError::usage(format!("the current folder cannot be used: {error}")).hint("go to a folder that exists")
    })?;
    let Some(named) = &arguments.directory else { return Ok(here) };
    let folder = here.join(named);
    folder
        .canonicalize()
        .and_then(|path| if path.is_dir() { Ok(path) } else { Err(std::io::ErrorKind::NotADirectory.into()) })
        .map_err(|error| CliError::usage(format!("-C {}: {error}", named.display())).hint("name a folder that exists"))
}
