//! The keys of both files: of each what it holds, what it means, and what stands where it is not written. One line for
//! each key.
//!
//! Editors' schemas and `probity config` come from here. What the reader takes is written where it is read; tests
//! (`tests/schema.rs`, `tests/kinds.rs`) hold the two against each other, both ways. Whoever adds a key to the reader adds
//! its line here and writes the copies of the schemas in `docs/` anew.
//!
//! Must not read a file or judge a value.

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Table {
    /// What the table is for.
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
    /// Keys that must be there.
    pub(super) required: &'static [&'static str],
    /// Keys of which exactly one must be there, where there are any here.
    pub(super) one_of: &'static [&'static str],
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// One sentence for people.
    pub(super) about: &'static str,
    /// What holds where it is not written.
    pub(super) default: Default,
    /// The key that must be beside it, as it has no meaning otherwise.
    pub(super) with: Option<&'static str>,
}

/// What holds where a key is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Default {
    /// Nothing.
    Nothing,
    /// This, as JSON.
    Json(&'static str),
    /// What the engine that runs packs has, which is not known here.
    Engine,
}

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// One of a few words, or the empty one for what is not set.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number above zero.
    Count,
    /// A whole number from 1 to this.
    UpTo(u8),
    /// Bytes: a number, or a text with a unit.
    Size,
    /// A time, as Go writes it.
    Duration,
    /// A list of strings.
    Texts,
    /// A list of exit codes, none of them 0.
    Codes,
    /// A list of `NAME=value`. The values may be secret.
    Variables,
    /// A program and its arguments.
    Command,
    /// A list of programs with their arguments.
    Commands,
    /// A table of texts by name.
    Pairs,
    /// A table of names, each with one of a few words.
    Words(&'static [&'static str]),
    /// A table that only a check of a pack understands.
    Options,
    /// A table with these keys.
    Table(&'static Table),
    /// Tables with these keys, each under a name.
    Named(&'static Table),
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, about, default: Default::Nothing, with: None }
}

impl Key {
    const fn default(self, json: &'static str) -> Self {
        Self { default: Default::Json(json), ..self }
    }

    const fn engine(self) -> Self {
        Self { default: Default::Engine, ..self }
    }

    const fn with(self, other: &'static str) -> Self {
        Self { with: Some(other), ..self }
    }
}

/// `probity.toml`.
pub(super) const PROJECT: Table = Table {
    about: "What Probity verifies in this project, and how.",
    keys: &[
        key("verify", Kind::Table(&VERIFY), VERIFY.about),
        key("subject", Kind::Table(&SUBJECT), SUBJECT.about),
        key("packs", Kind::Named(&PACK), "Packs of logic checks, by name."),
        key("checks", Kind::Named(&CHECK), "Checks, by id."),
        key("scenarios", Kind::Named(&SCENARIO), "Lists of checks, by name; `default` runs when none is named."),
        key("capabilities", Kind::Named(&CAPABILITY), "Facts about this machine that checks need, by name."),
        key("spec", Kind::Table(&SPEC), SPEC.about),
    ],
    required: &[],
    one_of: &[],
};

/// The user's file.
pub(super) const USER: Table = Table {
    about: "What whoever runs Probity says: the most that holds whatever a project says, and what holds beneath it.",
    keys: &[
        key("verify", Kind::Table(&VERIFY), "What holds where `[verify]` of a project says nothing."),
        key("limits", Kind::Table(&LIMITS), "The most that a check of a pack may have."),
        key(
            "walls",
            Kind::Word(&["strict"]),
            "`strict` runs no check of a pack where a wall around guests is missing.",
        ),
    ],
    required: &[],
    one_of: &[],
};

const VERIFY: Table = Table {
    about: "A list of commands: the checks `verify-1`, `verify-2`, … in this order.",
    keys: &[
        key("commands", Kind::Commands, "Programs with their arguments, without any shell."),
        key("timeout", Kind::Duration, "The longest that the whole run of the scenario `default` may take."),
        key("env", Kind::Variables, "`NAME=value` to add to the environment of these commands."),
        key("secrets", Kind::Texts, "Names of variables whose values are shown and kept nowhere."),
        key("jobs", JOBS, "How many commands of the scenario `default` may run side by side."),
        key("audit", Kind::Flag, "`true` is refused until reviews exist.").default("false"),
    ],
    required: &[],
    one_of: &[],
};

const SUBJECT: Table = Table {
    about: "What is verified.",
    keys: &[key("exclude", Kind::Texts, "Globs of what is not verified, unless version control tracks it.")],
    required: &[],
    one_of: &[],
};

const PACK: Table = Table {
    about: "A pack of logic checks.",
    keys: &[
        key("source", Kind::Text, "`path:FOLDER` with the sources of a pack, or `file:PACK.wasm`."),
        key("allow", Kind::Texts, "What its checks may read at most: `mount:glob`; a leading `!` excludes."),
    ],
    required: &["source", "allow"],
    one_of: &[],
};

const CHECK: Table = Table {
    about: "A check: a `command` of this machine, or a check of a pack (`use`).",
    keys: &[
        key("command", Kind::Command, "A program and its arguments, without any shell."),
        key("use", Kind::Text, "A check of a pack: `pack/check`."),
        key("after", Kind::Texts, "Checks that come before it, and whose results it may read."),
        key("parallel", Kind::Flag, "Whether it may run beside others of which this is said, up to `jobs` of them.")
            .default("false")
            .with("command"),
        key("needs", Kind::Texts, "Capabilities without which it says nothing here.").with("command"),
        key("timeout", Kind::Duration, "The longest that it may take."),
        key("blocking", Kind::Flag, "Whether its red decides the run.").default("true"),
        key("env", Kind::Variables, "`NAME=value` to add to its environment.").with("command"),
        key("pass-env", Kind::Texts, "Names of variables that it sees.").with("command"),
        key("inherit-env", Kind::Flag, "Whether it sees the whole environment.").default("false").with("command"),
        key("secrets", Kind::Texts, "Names of variables that it sees and whose values are shown and kept nowhere.")
            .with("command"),
        key("gap-exit", Kind::Codes, "Exit codes that mean that something is missing here.").with("command"),
        key("fingerprint", Kind::Commands, "Programs whose output tells one state of the tools from another.")
            .with("command"),
        key("ambient", Kind::Texts, "Globs of ignored files that it needs.").with("command"),
        key("isolate", Kind::Flag, "Whether it runs in a copy of what is verified.").default("false").with("command"),
        key("files", Kind::Texts, "Globs of the files that it is about; a leading `!` excludes."),
        key("allow-empty", Kind::Flag, "Whether it runs where no file is in its scope.").default("false"),
        key("when", Kind::Table(&WHEN), WHEN.about),
        key("tests", Kind::Pairs, "Tests of files, for `{tests}`: `src/{path}.ts` and `test/{path}.spec.ts`.")
            .with("command"),
        key(
            "severities",
            Kind::Words(SEVERITIES),
            "What rules weigh, in place of what the pack says; `off` drops them.",
        )
        .with("use"),
        key("baseline", Kind::Flag, "Whether only findings that are new against the base fail it.")
            .default("false")
            .with("use"),
        key("config", Kind::Options, "Options, by the schema of the check.").with("use"),
        key("limits", Kind::Table(&LIMITS), LIMITS.about).with("use"),
    ],
    required: &[],
    one_of: &["command", "use"],
};

const WHEN: Table = Table {
    about: "When a check is among those to run: where all conditions hold that are written.",
    keys: &[
        key("scenarios", Kind::Texts, "In one of these scenarios."),
        key("branches", Kind::Texts, "On a branch whose name one of these globs matches."),
        key(
            "paths",
            Kind::Texts,
            "Where a path that these globs match changed since the base, or is there without one.",
        ),
        key("capabilities", Kind::Texts, "Where this machine has all of these capabilities."),
    ],
    required: &[],
    one_of: &[],
};

const JOBS: Kind = Kind::UpTo(super::jobs::MAX_JOBS);

const SEVERITIES: &[&str] = &["error", "warning", "note", "off"];

const LIMITS: Table = Table {
    about: "What one call of a check of a pack may use.",
    keys: &[
        key("fuel", Kind::Count, "About one unit for each instruction.").engine(),
        key("memory", Kind::Size, "Bytes of memory.").engine(),
        key("wall", Kind::Duration, "Time: the safety net for what fuel does not see.").engine(),
        key("output", Kind::Size, "Bytes of output.").engine(),
        key("findings", Kind::Count, "Findings.").engine(),
        key("handles", Kind::Count, "Files and streams that are open at once.").engine(),
    ],
    required: &[],
    one_of: &[],
};

const SCENARIO: Table = Table {
    about: "A named list of checks.",
    keys: &[
        key("checks", Kind::Texts, "Ids of its checks, in order."),
        key("fail-fast", Kind::Flag, "Whether checks after the first red one that blocks are skipped.").default("true"),
        key("fail-on", Kind::Word(&["error", "warning", "note"]), "The least that fails a check.").default("\"error\""),
        key("timeout", Kind::Duration, "The longest that the whole run may take."),
        key("jobs", JOBS, "How many of its commands with `parallel = true` may run side by side.").default("1"),
        key("base", Kind::Text, "The revision that the subject is compared with, for example `origin/main`."),
        key("max-age", Kind::Duration, "How old a run of its commands may be to answer for another one.")
            .default("\"24h\""),
    ],
    required: &["checks"],
    one_of: &[],
};

const SPEC: Table = Table {
    about: "The specification: verification is refused while it differs from the last commit.",
    keys: &[key("paths", Kind::Texts, "Globs of its files.")],
    required: &["paths"],
    one_of: &[],
};

const CAPABILITY: Table = Table {
    about: "A fact about this machine: present, absent or unknown.",
    keys: &[
        key("probe", Kind::Command, "A command: present where it ends with 0, absent where with another code."),
        key("program", Kind::Text, "A program that can be found."),
        key("at-least", Kind::Text, "The least version, as `PROGRAM --version` says it: `24.0`.").with("program"),
        key("resolves", Kind::Text, "A name of a network that leads to an address."),
        key("os", Kind::Word(&["linux", "macos"]), "The operating system."),
        key("timeout", Kind::Duration, "The longest that it may take to find out, `10s` where it is not written."),
    ],
    required: &[],
    one_of: &["probe", "program", "resolves", "os"],
};
