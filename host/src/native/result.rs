//! `$PROBITY_RESULT`: a file in which a command may say more than its exit code does.
//!
//! Whatever is in there was written by somebody else: the size is bounded, nothing but a regular file is opened, and what
//! is not exactly one object of the known form is refused. What it means is for the runner to say.

use crate::model::{Bytes, Edit, Finding, Place, Position, Report, Severity};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The variable that names the file.
pub const RESULT_VARIABLE: &str = "PROBITY_RESULT";

/// Bytes that the file may have: a thousand findings of a kilobyte fit.
pub const MAX_RESULT_BYTES: u64 = 1 << 20;

const NAME: &str = "result.json";

/// Characters of a sentence about broken content, which may repeat it.
const MAX_SENTENCE: usize = 500;

/// What a command says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What kind of result it is, if not one that its exit code says.
    pub class: Option<ResultClass>,
    /// For people.
    pub message: Option<String>,
    /// As it was written: neither capped nor sorted.
    pub report: Report,
}

/// What a command may say that an exit code cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum ResultClass {
    /// Something is missing in this place.
    EnvGap,
    /// It needs something that only a person can give.
    NeedsContext,
    /// There is nothing here for it to judge.
    NotApplicable,
}

impl TryFrom<String> for ResultClass {
    type Error = String;
    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "env_gap" => Ok(Self::EnvGap),
            "needs_context" => Ok(Self::NeedsContext),
            "not_applicable" => Ok(Self::NotApplicable),
            _ => Err(format!("`{word}` is no class; the classes are `env_gap`, `needs_context` and `not_applicable`")),
        }
    }
}

/// A place for the result of one command: a folder of its own, which goes when this does.
#[derive(Debug)]
pub struct ResultFile {
    folder: tempfile::TempDir,
    /// Held open, so that nothing that takes the folder's place is looked into.
    open: OwnedFd,
}

impl ResultFile {
    /// Makes a folder in `parent` that only this user can look into. The file is not there.
    pub fn new(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("result-").tempdir_in(std::path::absolute(parent)?)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::open(folder.path(), flags, Mode::empty())?;
        Ok(Self { folder, open })
    }

    /// Where the command may write.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// What was written, if anything was. What is wrong with it is a sentence about "it".
    pub fn read(&self) -> Result<Option<Written>, String> {
        // A pipe must not be waited for, and a link could lead to what somebody else wrote.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.open, NAME, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err("it is a symbolic link and not a regular file".to_owned()),
            // A socket.
            Err(rustix::io::Errno::NXIO) => return Err("it is not a regular file".to_owned()),
            Err(error) => return Err(format!("it cannot be read: {}", io::Error::from(error))),
        };
        let unreadable = |error: io::Error| format!("it cannot be read: {error}");
        let stat = fstat(&file).map_err(|error| unreadable(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        // One byte more than is allowed tells a file that is too large from one that just fits.
        File::from(file).take(MAX_RESULT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_RESULT_BYTES {
            return Err(format!("it has more than {} KiB", MAX_RESULT_BYTES >> 10));
        }
        parse(&bytes).map(Some)
    }
}

/// Reads what a command wrote.
pub(super) fn parse(bytes: &[u8]) -> Result<Written, String> {
    if bytes.trim_ascii().is_empty() {
        return Err("it is empty: write one JSON object, or leave the file out".to_owned());
    }
    let wrong = |what: &str, why: &dyn fmt::Display| {
        let why: String = why.to_string().chars().take(MAX_SENTENCE).collect();
        format!("it {what}: {why}")
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong("is not JSON", &error))?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| wrong("is not JSON", &error))?;
    let Object(read): Object<Form> =
        serde_json::from_str(text).map_err(|error| wrong("does not have the form of a result", &error))?;
    let findings = read.findings.into_iter().map(|Object(finding)| finding.into()).collect();
    Ok(Written { class: read.class, message: read.message, report: Report { findings, stats: read.stats.0 } })
}

/// Serde reads a list in the place of an object, by the order of its fields. Here an object is an object.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// Names and numbers as they stand, so that a name that is there twice is noticed.
#[derive(Default)]
struct Stats(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Stats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts;
        impl<'de> Visitor<'de> for Counts {
            type Value = Stats;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of whole numbers from 0")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Stats, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = map.next_entry()? {
                    counts.push(count);
                }
                Ok(Stats(counts))
            }
        }
        deserializer.deserialize_map(Counts)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    class: Option<ResultClass>,
    message: Option<String>,
    #[serde(default)]
    stats: Stats,
    #[serde(default)]
    findings: Vec<Object<FormFinding>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FormFinding {
    rule: String,
    severity: Severity,
    message: String,
    place: Option<Object<FormPlace>>,
    help: Option<String>,
    #[serde(default)]
    edits: Vec<Object<FormEdit>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FormPlace {
    path: String,
    start: Option<Object<FormPosition>>,
    end: Option<Object<FormPosition>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FormPosition {
    line: u32,
    /// Many tools know lines only.
    #[serde(default = "first_column")]
    column: u32,
}

fn first_column() -> u32 {
    1
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FormEdit {
    path: String,
    start: u64,
    end: u64,
    replacement: Bytes,
}

impl From<FormFinding> for Finding {
    fn from(form: FormFinding) -> Self {
        let position = |Object(form): Object<FormPosition>| Position { line: form.line, column: form.column };
        let place = |Object(form): Object<FormPlace>| Place {
            path: form.path,
            start: form.start.map(position),
            end: form.end.map(position),
        };
        let edit = |Object(form): Object<FormEdit>| Edit {
            path: form.path,
            start: form.start,
            end: form.end,
            replacement: form.replacement,
        };
        Self {
            place: form.place.map(place),
            rule: form.rule,
            severity: form.severity,
            message: form.message,
            help: form.help,
            edits: form.edits.into_iter().map(edit).collect(),
            known: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn everything_that_may_be_written_is_read() {
        let text = r#"{"class": "env_gap", "message": "no docker", "stats": {"tests": 9007199254740991}, "findings": [
            {"rule": "E501", "severity": "warning", "message": "long", "help": "break it",
             "place": {"path": "a.py", "start": {"line": 3}, "end": {"line": 3, "column": 9}},
             "edits": [{"path": "a.py", "start": 1, "end": 2, "replacement": "x"}]},
            {"rule": "r", "severity": "error", "message": "m"}]}"#;
        let written = parse(text.as_bytes()).unwrap();
        assert_eq!((written.class, written.message.as_deref()), (Some(ResultClass::EnvGap), Some("no docker")));
        assert_eq!(written.report.stats, [("tests".to_owned(), 9_007_199_254_740_991)]);
        let [first, second] = written.report.findings.as_slice() else { panic!("{written:?}") };
        assert_eq!(first.place.as_ref().unwrap().start, Some(Position { line: 3, column: 1 }));
        assert_eq!((first.edits.len(), second.place.as_ref(), second.severity), (1, None, Severity::Error));
        assert_eq!(parse(b" {} ").unwrap(), Written { class: None, message: None, report: Report::default() });
    }

    #[test]
    fn what_the_documents_show_is_read() {
        let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let documents = std::fs::read_to_string(documents).unwrap();
        let example = documents.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        let written = parse(example.as_bytes()).unwrap();
        assert!(written.class.is_some() && written.message.is_some(), "{written:?}");
        assert_eq!((written.report.findings.len(), written.report.stats.len()), (1, 2));
    }

    #[test]
    fn what_is_broken_is_named() {
        let texts = [
            "",
            " \n",
            "passed",
            "{",
            "{} {}",
            "[]",
            "null",
            "{\"message\": \"\u{1}\"}",
            r#"{"clas": "env_gap"}"#,
            r#"{"class": "passed"}"#,
            r#"{"class": 1}"#,
            r#"{"message": "a", "message": "b"}"#,
            r#"{"stats": {"a": -1}}"#,
            r#"{"stats": {"a": 1.5}}"#,
            r#"{"stats": {"a": 18446744073709551616}}"#,
            r#"{"stats": [["a", 1]]}"#,
            r#"{"findings": {}}"#,
            r#"{"findings": [["r", "error", "m"]]}"#,
            r#"{"findings": [{"rule": "r", "severity": "fatal", "message": "m"}]}"#,
            r#"{"findings": [{"rule": "r", "severity": "error"}]}"#,
            r#"{"findings": [{"rule": "r", "severity": "error", "message": "m", "place": {"line": 1}}]}"#,
        ];
        let said = texts.map(|text| format!("{text:?}\n  {}\n", parse(text.as_bytes()).unwrap_err()));
        insta::assert_snapshot!(said.concat());
        assert!(parse(b"{\"message\": \"\xff\"}").unwrap_err().starts_with("it is not JSON: "));
        let long = parse(format!("{{\"{}\": 1}}", "x".repeat(10_000)).as_bytes()).unwrap_err();
        assert!(long.len() < 600, "{long}");
    }

    #[test]
    fn only_a_regular_file_of_a_bounded_size_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let read = |make: &dyn Fn(&Path)| {
            let result = ResultFile::new(parent.path()).unwrap();
            assert!(result.path().is_absolute() && !result.path().exists());
            make(&result.path());
            result.read().map(|written| written.is_some())
        };
        let target = parent.path().join("target");
        std::fs::write(&target, "{}").unwrap();
        let size = usize::try_from(MAX_RESULT_BYTES).unwrap();
        let padded = |extra: usize| "{}".to_owned() + &" ".repeat(size - 2 + extra);
        assert_eq!(read(&|_| {}), Ok(false));
        assert_eq!(read(&|path| std::fs::write(path, padded(0)).unwrap()), Ok(true));
        assert_eq!(read(&|path| std::fs::write(path, padded(1)).unwrap()), Err("it has more than 1024 KiB".to_owned()));
        let no_file = || Err("it is not a regular file".to_owned());
        assert_eq!(read(&|path| std::fs::create_dir(path).unwrap()), no_file());
        let fifo = |path: &Path| {
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        };
        assert_eq!(read(&fifo), no_file());
        let socket = |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        assert_eq!(read(&socket), no_file());
        let link = read(&|path| symlink(&target, path).unwrap());
        assert_eq!(link, Err("it is a symbolic link and not a regular file".to_owned()));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "the folders are gone");
    }

    #[test]
    fn a_folder_that_was_put_in_its_place_is_not_looked_into() {
        let parent = tempfile::tempdir().unwrap();
        let result = ResultFile::new(parent.path()).unwrap();
        std::fs::remove_dir(result.folder.path()).unwrap();
        std::fs::create_dir(result.folder.path()).unwrap();
        std::fs::write(result.path(), "{}").unwrap();
        assert_eq!(result.read(), Ok(None));
    }
}
