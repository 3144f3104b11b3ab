//! Errors: why there is no configuration, each with what to do about it.

use super::diagnostic::{Colour, Diagnostic, Source, one, render};
use std::fmt;
use std::io;

/// A configuration that works, shown to those who have none.
pub const EXAMPLE: &str = "[verify]\ncommands = [[\"cargo\", \"build\"], [\"cargo\", \"test\"]]";

/// A text with at least one mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The text.
    pub source: Source,
    /// Its mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

impl Invalid {
    /// All mistakes with their places, in the order of the text.
    pub fn render(&self, colour: Colour) -> String {
        render(&self.diagnostics, &self.source, colour)
    }
}

// By hand, because a field named `source` would be taken for an error beneath.
impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.diagnostics.as_slice() {
            [only] => write!(f, "`{}`: {}", self.source.name, only.title),
            all => write!(f, "`{}` has {} mistakes", self.source.name, all.len()),
        }
    }
}

/// Why there is no configuration. The names are paths as the caller wrote them.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no such file.
    #[error("there is no `{name}`")]
    NotFound {
        /// The path.
        name: String,
    },
    /// It is a link, and nothing is where it leads.
    #[error("`{name}` is a link that leads nowhere")]
    Dangling {
        /// The path.
        name: String,
    },
    /// It is a folder, a device or something else that is no file.
    #[error("`{name}` is not a regular file")]
    NotAFile {
        /// The path.
        name: String,
    },
    /// It cannot be read.
    #[error("`{name}` cannot be read: {error}")]
    Io {
        /// The path.
        name: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// It is larger than [`MAX_CONFIG_SIZE`](super::MAX_CONFIG_SIZE).
    #[error("`{name}` is larger than {} KiB", limit / 1024)]
    TooLarge {
        /// The path.
        name: String,
        /// The most it may have, in bytes.
        limit: usize,
    },
    /// It is not text in UTF-8.
    #[error("`{name}` is not UTF-8 text: {}", found)]
    NotUtf8 {
        /// The path.
        name: String,
        /// What it is instead.
        found: Encoding,
    },
    /// It was read, and has mistakes.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// What a text is that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// It has the marks of UTF-16.
    Utf16,
    /// There is a byte that does not fit.
    Byte {
        /// The byte.
        byte: u8,
        /// Its line, from 1.
        line: usize,
        /// Its place in the line in bytes, from 1.
        column: usize,
    },
}

impl Encoding {
    /// What the bytes are, where they are valid up to a place.
    pub(super) fn of(bytes: &[u8], valid_up_to: usize) -> Self {
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Self::Utf16;
        }
        let before = &bytes[..valid_up_to];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        Self::Byte {
            byte: bytes.get(valid_up_to).copied().unwrap_or(0),
            line: before.split(|byte| *byte == b'\n').count(),
            column: valid_up_to - line_start + 1,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf16 => f.write_str("it looks like UTF-16"),
            Self::Byte { byte, line, column } => write!(f, "byte 0x{byte:02x} at line {line}, column {column}"),
        }
    }
}

impl ConfigError {
    /// What to do about it. Mistakes in the text carry their own.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NotFound { .. } => {
                Some(format!("`probity init` writes a first one; a minimal one says what to run:\n\n{EXAMPLE}"))
            }
            Self::Dangling { .. } => Some("put the file itself there, or remove the link".to_owned()),
            Self::NotAFile { .. } => Some("name a file".to_owned()),
            Self::Io { .. } => Some("check its permissions and those of its folders".to_owned()),
            Self::TooLarge { .. } => Some("is this the right file? A configuration is written by hand".to_owned()),
            Self::NotUtf8 { found: Encoding::Utf16, .. } => {
                Some("save it as UTF-8; in PowerShell: `Set-Content -Encoding utf8`".to_owned())
            }
            Self::NotUtf8 { found: Encoding::Byte { .. }, .. } => {
                Some("save it as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`".to_owned())
            }
            Self::Invalid(_) => None,
        }
    }

    /// All that is wrong, for people.
    pub fn render(&self, colour: Colour) -> String {
        match self {
            Self::Invalid(invalid) => invalid.render(colour),
            other => {
                let mut diagnostic = Diagnostic::whole(other.to_string());
                diagnostic.help.extend(other.help());
                one(&diagnostic, None, colour)
            }
        }
    }
}
