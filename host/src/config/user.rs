//! The user's file: what whoever runs Probity says, whatever a project says.

use super::file::syntax;
use super::limits::{self, FileLimits};
use super::load::read;
use super::reader::{At, Keys, Reader, entries, wrong};
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
}

const TOP: Keys = Keys {
    table: "the user's file",
    known: &["limits", "walls"],
    later: &[
        ("verify", "write it in a project's `probity.toml`"),
        ("packs", "write it in a project's `probity.toml`"),
        ("checks", "write it in a project's `probity.toml`"),
        ("scenarios", "write it in a project's `probity.toml`"),
        ("spec", "write it in a project's `probity.toml`"),
        ("trust", "remove it; until then, nothing is fetched that would have to be trusted"),
        ("agent", "remove it; until then, Probity runs checks only"),
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
        return Err(Invalid { source, diagnostics }.into());
    }
    let mut reader = Reader::default();
    let (mut ceilings, mut strict_walls): (Option<At<FileLimits>>, bool) = (None, false);
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
            _ => reader.unknown(key, &TOP),
        }
    }
    let mut diagnostics = reader.diagnostics;
    let limits = ceilings.map(|ceilings| limits::resolve(&ceilings.value, &mut diagnostics)).unwrap_or_default();
    if diagnostics.is_empty() {
        Ok(User { source: Some(source), limits, strict_walls })
    } else {
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
        assert_eq!(user, Ok(User { source: None, limits, strict_walls: true }));
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
            ("[checks.a]", "`checks` is not supported yet"),
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
