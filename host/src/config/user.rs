//! The user's file: what whoever runs Probity says. Ceilings and walls hold whatever a project says; `[verify]` holds
//! where a project says nothing.
//!
//! Must not take what is a project's alone to say: its checks, packs and scenarios are the same for whoever has the tree.

use super::environment::{Marked, without_secrets};
use super::file::{File, syntax};
use super::limits::{self, FileLimits};
use super::load::read;
use super::reader::{At, Keys, Reader, entries, wrong};
use super::verify::{self, Verify};
use super::{ConfigError, Diagnostic, Invalid, Limits, Source};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// What the user's file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// What it says, as it was read. None where there is no such file.
    pub source: Option<Source>,
    /// The most that a check may have of each.
    pub limits: Limits,
    /// Whether nothing is run where a wall around guests is missing.
    pub strict_walls: bool,
    /// What holds where `[verify]` of a project says nothing.
    pub verify: Verify,
}

const THE_PROJECTS: &str = "it is for each project to say: write it in its `probity.toml`";

const TOP: Keys = Keys {
    table: "the user's file",
    known: &["limits", "walls", "verify"],
    later: &[
        ("trust", "remove it; until then, nothing is fetched that would have to be trusted"),
        ("agent", "remove it; until then, Probity runs checks only"),
    ],
    elsewhere: &[
        ("subject", THE_PROJECTS),
        ("packs", THE_PROJECTS),
        ("checks", THE_PROJECTS),
        ("scenarios", THE_PROJECTS),
        ("capabilities", THE_PROJECTS),
        ("spec", THE_PROJECTS),
    ],
};

/// Reads the user's file, which messages call `name`. One that is not there says nothing.
pub fn load_user(path: &Path, name: &str) -> Result<User, ConfigError> {
    match read(path, name) {
        Ok(text) => parse_user(Source { name: name.to_owned(), text }),
        Err(ConfigError::NotFound { .. }) => Ok(User::default()),
        Err(error) => Err(error),
    }
}

fn parse_user(source: Source) -> Result<User, ConfigError> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        let diagnostics = syntax(&source.text, &errors);
        let source = Source { text: without_secrets(source.text, &[]), ..source };
        return Err(Invalid { source, diagnostics }.into());
    }
    let mut reader = Reader::default();
    let (mut ceilings, mut strict_walls): (Option<At<FileLimits>>, bool) = (None, false);
    let mut file = File::default();
    for (key, value) in entries(table.get_ref()) {
        match (key.get_ref().as_ref(), value.get_ref()) {
            (name @ "limits", _) => ceilings = limits::read(&mut reader, name, value),
            ("walls", DeValue::String(text)) if text.is_empty() => {}
            ("walls", DeValue::String(text)) if text == "strict" => strict_walls = true,
            (name @ "walls", DeValue::String(_)) => {
                let title = format!("`{name}`: there is one kind to ask for: `strict`");
                let help = "write `walls = \"strict\"` to run no check where a wall is missing, or remove it";
                reader.report(Diagnostic::new(value.span(), title).help(help));
            }
            (name @ "walls", other) => {
                let help = "write `walls = \"strict\"` to run no check where a wall is missing, or remove it";
                reader.report(wrong(name, "a string", other, value.span()).help(help));
            }
            ("verify", DeValue::Table(table)) => file.verify = verify::read(&mut reader, table),
            ("verify", other) => {
                reader.report(wrong("verify", "a table", other, value.span()).help("write `[verify]`"));
            }
            _ => reader.unknown(key, &TOP),
        }
    }
    let mut diagnostics = reader.diagnostics;
    let limits = ceilings.map(|ceilings| limits::resolve(&ceilings.value, &mut diagnostics)).unwrap_or_default();
    let verify = verify::meaning(&file.verify, &Marked::new(&file, &[]), &mut diagnostics);
    if diagnostics.is_empty() {
        Ok(User { source: Some(source), limits, strict_walls, verify })
    } else {
        // Mistakes are shown with their lines.
        let source = Source { text: without_secrets(source.text, &[]), ..source };
        Err(Invalid { source, diagnostics }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Colour;
    use super::*;
    use std::time::Duration;

    fn parsed(text: &str) -> Result<User, String> {
        let source = Source { name: "config.toml".to_owned(), text: text.to_owned() };
        let user = parse_user(source).map_err(|error| error.render(Colour::Off))?;
        assert!(user.source.as_ref().is_some_and(|source| source.text == text));
        Ok(User { source: None, ..user })
    }

    #[test]
    fn ceilings_and_walls_are_the_users_to_say() {
        let user = parsed(
            "walls = \"strict\"\n[limits]\nfuel = 9\nmemory = \"1MiB\"\nwall = \"2s\"\noutput = 3\nfindings = 4\nhandles = 5\n",
        );
        let limits = Limits {
            fuel: Some(9),
            memory: Some(1 << 20),
            wall: Some(Duration::from_secs(2)),
            output: Some(3),
            findings: Some(4),
            handles: Some(5),
        };
        assert_eq!(user, Ok(User { source: None, limits, strict_walls: true, verify: Verify::default() }));
        assert_eq!(parsed(""), Ok(User::default()));
        assert_eq!(parsed("walls = \"\""), Ok(User::default()), "an empty text is not set");
    }

    #[test]
    fn what_the_user_cannot_say_is_refused() {
        for (text, part) in [
            ("walls = \"loose\"", "there is one kind to ask for"),
            ("walls = true", "expected a string"),
            ("[limits]\nfuel = 0", "must be more than zero"),
            ("[limits]\nspeed = 1", "unknown key `speed`"),
            ("[checks.a]", "`checks` does not belong here"),
            ("[packs.a]", "it is for each project to say"),
            ("[scenarios.a]", "it is for each project to say"),
            ("[capabilities.a]", "it is for each project to say"),
            ("[subject]", "it is for each project to say"),
            ("[spec]", "it is for each project to say"),
            ("[verify]\naudit = true", "`audit` is not supported yet"),
            ("[verify]\ntimeout = \"5\"", "`5` has no unit"),
            ("[verify]\ncommands = [[\"a\", \"{files}\"]]", "`{files}` needs `files`"),
            ("[verify]\nchecks = []", "unknown key `checks`"),
            ("verify = 3", "expected a table"),
            ("[limit]", "did you mean `limits`?"),
            ("limits = 3", "expected a table"),
            ("[limits", "config.toml:1"),
        ] {
            let said = parsed(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load_user(&folder.path().join("config.toml"), "config.toml").unwrap(), User::default());
        assert!(load_user(folder.path(), "config.toml").is_err(), "a folder is no file");
    }
}
