//! Capabilities: facts about this machine that decide whether a check can say anything here.

use super::{CapabilityName, Encoder};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What is known of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Present,
    /// It is not there.
    Absent,
    /// Nobody can say: the probe was not started, ran out of time, or a signal ended it.
    Unknown,
}

impl State {
    /// `present`, `absent` or `unknown`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What a run found out about a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Its name in the configuration.
    pub name: CapabilityName,
    /// What is known of it.
    pub state: State,
    /// For people: what makes it so. None where there is nothing to add.
    pub why: Option<String>,
}

/// How it is found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A command: present where it ends with 0.
    Command {
        /// The program and its arguments; never empty.
        argv: Vec<String>,
        /// The longest it may take.
        timeout: Duration,
    },
    /// A program that can be found, of some version at least.
    Program {
        /// Its name, or a path.
        program: String,
        /// The least version, where any will not do.
        at_least: Option<Version>,
        /// The longest that asking for the version may take.
        timeout: Duration,
    },
    /// A name of a network that leads to an address.
    Resolves {
        /// The name.
        host: String,
        /// The longest it may take.
        timeout: Duration,
    },
    /// An operating system.
    Os(Os),
}

impl Probe {
    /// Appends everything that makes it this probe and no other.
    pub fn encode(&self, encoder: &mut Encoder) {
        let nanoseconds = |timeout: &Duration| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::Command { argv, timeout } => {
                encoder.integer(1).integer(argv.len() as u64);
                for argument in argv {
                    encoder.text(argument);
                }
                encoder.integer(nanoseconds(timeout));
            }
            Self::Program { program, at_least, timeout } => {
                let version = at_least.as_ref().map(ToString::to_string).unwrap_or_default();
                encoder.integer(2).text(program).text(&version).integer(nanoseconds(timeout));
            }
            Self::Resolves { host, timeout } => {
                encoder.integer(3).text(host).integer(nanoseconds(timeout));
            }
            Self::Os(os) => {
                encoder.integer(4).text(os.name());
            }
        }
    }
}

/// An operating system that Probity runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    /// Linux.
    Linux,
    /// macOS.
    Macos,
}

impl Os {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Linux, Self::Macos];

    /// Its name in a configuration, which is the one that Rust has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Macos => "macos",
        }
    }
}

/// A version: numbers between dots, compared one after the other. Numbers that are not written are 0.
#[derive(Debug, Clone)]
pub struct Version(Vec<u64>);

/// Why a text is no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is one to eight numbers with dots between them")]
pub struct VersionError;

/// The most numbers of a version.
const NUMBERS: usize = 8;

impl Version {
    /// The first dotted number of a text: `24.0.7` of `Docker version 24.0.7, build afdd53b`.
    pub fn first_in(text: &str) -> Option<Self> {
        let mut words = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).map(|word| word.trim_matches('.'));
        words.find_map(|word| if word.contains('.') { word.parse().ok() } else { None })
    }

    fn padded(&self) -> [u64; NUMBERS] {
        let mut numbers = [0; NUMBERS];
        numbers.iter_mut().zip(&self.0).for_each(|(number, given)| *number = *given);
        numbers
    }
}

impl FromStr for Version {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = |part: &str| if plain(part) { part.parse().map_err(|_| VersionError) } else { Err(VersionError) };
        let numbers: Vec<u64> = text.split('.').map(number).collect::<Result<_, _>>()?;
        if numbers.len() > NUMBERS { Err(VersionError) } else { Ok(Self(numbers)) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&numbers.join("."))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.padded() == other.padded()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.padded().cmp(&other.padded())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        for (less, more) in [("9.0", "10.0"), ("1.9", "1.10"), ("1", "1.0.1"), ("24.0", "24.0.7"), ("0", "0.0.1")] {
            assert!(version(less) < version(more), "{less} {more}");
        }
        assert_eq!(version("24"), version("24.0.0"));
        for bad in ["", ".", "1.", ".1", "1..2", "v1", "1.x", ">=24", "+1", "1 ", "1.2.3.4.5.6.7.8.9"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert!("99999999999999999999.1".parse::<Version>().is_err());
    }

    #[test]
    fn the_version_of_a_program_is_the_first_dotted_number_that_it_says() {
        for (text, found) in [
            ("Docker version 24.0.7, build afdd53b", "24.0.7"),
            ("git version 2.39.5", "2.39.5"),
            ("Python 3.11.2", "3.11.2"),
            ("go version go1.22.1 linux/amd64", "1.22.1"),
            ("v20.11.0\n", "20.11.0"),
            ("x86_64 build 7 of 1.2.", "1.2"),
            ("99999999999999999999.1 or 3.4", "3.4"),
        ] {
            assert_eq!(Version::first_in(text).map(|version| version.to_string()).as_deref(), Some(found), "{text}");
        }
        for none in ["", "less 590", "1 . 2", "..."] {
            assert_eq!(Version::first_in(none), None, "{none}");
        }
    }
}
