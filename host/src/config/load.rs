//! Finding and reading the file. The only door of this module to the file system.
//!
//! Must not follow anything but the path it was given, and must not wait: a pipe or device in the place of the file
//! is refused and not read.

use super::environment::without_secrets;
use super::error::{ConfigError, Encoding, Invalid};
use super::{Config, Diagnostic, Source, User, file, resolve};
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the configuration in a project.
pub const CONFIG_NAME: &str = "probity.toml";

/// Bytes of a configuration. It is written by hand: a thousand checks fit in a fifth of this.
pub const MAX_CONFIG_SIZE: usize = 1024 * 1024;

/// Looks for `probity.toml` in the folder `start` and in each folder above it.
///
/// Whatever has that name is the answer, even if it turns out not to be readable: passing over it would verify by
/// another project's rules.
pub fn discover(start: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let failed = |path: &Path, error| ConfigError::Io { name: path.display().to_string(), error };
    let start = fs::canonicalize(start).map_err(|error| failed(start, error))?;
    for folder in start.ancestors() {
        let candidate = folder.join(CONFIG_NAME);
        match fs::symlink_metadata(&candidate) {
            Ok(_) => return Ok(Some(candidate)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(failed(&candidate, error)),
        }
    }
    Ok(None)
}

/// Reads the configuration at `path`, which messages name as it is written.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    load_as(path, &path.display().to_string(), &User::default())
}

/// Reads the configuration at `path`, which messages call `name`. What the user's file says lies beneath it.
pub fn load_as(path: &Path, name: &str, user: &User) -> Result<Config, ConfigError> {
    let text = read(path, name)?;
    resolved(Source { name: name.to_owned(), text }, user)
}

/// The text of the file at `path`, which messages call `name`.
pub(super) fn read(path: &Path, name: &str) -> Result<String, ConfigError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound if path.is_symlink() => ConfigError::Dangling { name: name.to_owned() },
        ErrorKind::NotFound => ConfigError::NotFound { name: name.to_owned() },
        _ => ConfigError::Io { name: name.to_owned(), error },
    };
    // Opening a pipe that nobody writes to would otherwise wait for ever.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ConfigError::NotAFile { name: name.to_owned() });
    }
    let mut bytes = Vec::new();
    // One byte more than is allowed tells a file that is too large from one that just fits.
    file.take(MAX_CONFIG_SIZE as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    text(name, bytes)
}

/// Reads a configuration from its bytes, which messages call `name`. What the user's file says lies beneath it.
pub fn parse(name: &str, bytes: &[u8], user: &User) -> Result<Config, ConfigError> {
    let text = text(name, bytes.to_vec())?;
    resolved(Source { name: name.to_owned(), text }, user)
}

fn resolved(source: Source, user: &User) -> Result<Config, ConfigError> {
    let resolved = match file::read(&source.text) {
        Ok((file, diagnostics)) => resolve::resolve(&file, user, source, diagnostics),
        Err(diagnostics) => Err(Invalid { source, diagnostics }),
    };
    resolved.map_err(|mut invalid| {
        // Mistakes are shown with their lines.
        invalid.source.text = without_secrets(invalid.source.text, &user.verify.secrets);
        invalid.into()
    })
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, ConfigError> {
    if bytes.len() > MAX_CONFIG_SIZE {
        return Err(ConfigError::TooLarge { name: name.to_owned(), limit: MAX_CONFIG_SIZE });
    }
    match String::from_utf8(bytes) {
        // UTF-16 of plain letters is UTF-8 with a NUL after or before each of them.
        Ok(text) if matches!(text.as_bytes(), [0, 1..=255, ..] | [1..=255, 0, ..]) => {
            Err(ConfigError::NotUtf8 { name: name.to_owned(), found: Encoding::Utf16 })
        }
        Ok(text) => match text.find('\0') {
            None => Ok(text),
            // The parser would take it for a wrong key, a wrong comment or a wrong string.
            Some(at) => {
                let diagnostic = Diagnostic::new(at..at + 1, "there is a NUL character")
                    .help("remove it; where there are many, the file is damaged or is no text");
                let source = Source { name: name.to_owned(), text };
                Err(Invalid { source, diagnostics: vec![diagnostic] }.into())
            }
        },
        Err(error) => {
            let found = Encoding::of(error.as_bytes(), error.utf8_error().valid_up_to());
            Err(ConfigError::NotUtf8 { name: name.to_owned(), found })
        }
    }
}
