//! Names: the ids that people write and that end up in paths, so their alphabet is closed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty or longer than 64 bytes.
    #[error("must have 1 to 64 characters")]
    Length,
    /// The text has a character outside `a-z`, `0-9` and `-`.
    #[error("may only have lower-case letters, digits and `-`, not `{0}`")]
    Character(char),
    /// The text starts or ends with `-`.
    #[error("must start and end with a letter or a digit")]
    Edge,
}

/// Ids become names of log files and folders: the closed alphabet keeps `..`, `/` and options out.
fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() || text.len() > 64 {
        return Err(IdError::Length);
    }
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return Err(IdError::Character(bad));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(IdError::Edge);
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text: `[a-z0-9-]{1,64}`.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

id! {
    /// A check's name in the configuration.
    CheckId
}
id! {
    /// A capability's name in the configuration.
    CapabilityName
}
id! {
    /// A pack's name in the configuration.
    PackName
}
id! {
    /// A scenario's name in the configuration.
    ScenarioName
}
id! {
    /// A run's name: 12 hexadecimal digits, made at random.
    RunId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_a_folder_is_no_id() {
        for bad in ["", "..", "a/b", "A", "a b", "-a", "a-", "a\n", "é", &"a".repeat(65)] {
            assert!(bad.parse::<CheckId>().is_err(), "{bad:?}");
        }
        for good in ["a", "0", "verify-1", &"a".repeat(64)] {
            assert_eq!(good.parse::<CheckId>().unwrap().as_str(), good);
        }
    }
}
