//! What Probity and a keeper say to each other over their socket: an order and single letters one way, one report the
//! other way.
//!
//! Orders and reports are preceded by their length; integers have 32 bits, little-endian, and texts come after theirs.
//! Both sides bound what they read before they make room for it, and what does not have this form is none.

use crate::model::Exit;
use crate::native::Environment;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

/// The longest order: more than any system takes as arguments and environment of a program.
pub(super) const MAX_ORDER: usize = 16 << 20;

/// The longest report: all its names are bounded.
const MAX_REPORT: usize = 4 << 10;

/// The most programs that a report names.
pub(super) const MAX_NAMES: usize = 32;

/// The longest name of a program: what the system keeps of it is shorter.
pub(super) const MAX_NAME: usize = 64;

/// Ask everything to end, and kill it when its time is up.
pub(super) const END: u8 = b'T';
/// Kill everything now.
pub(super) const KILL: u8 = b'K';
/// Pause everything.
pub(super) const PAUSE: u8 = b'P';
/// Let everything go on.
pub(super) const RESUME: u8 = b'C';

/// A command to start.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::native) struct Order {
    /// The program and its arguments; never empty.
    pub(in crate::native) argv: Vec<OsString>,
    pub(in crate::native) folder: PathBuf,
    pub(in crate::native) environment: Environment,
    /// How long everything may take to end once it was asked to.
    pub(in crate::native) grace: Duration,
}

/// What became of a command.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::native) enum Report {
    /// It was never started, for this error of the system.
    NotStarted(i32),
    Ended(Ended),
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::native) struct Ended {
    pub(in crate::native) exit: Exit,
    /// Whether it was asked to end before it did.
    pub(in crate::native) asked: bool,
    /// Programs that had to be ended beside it, and how many processes of each; the first in the order of their names.
    pub(in crate::native) reaped: Vec<(Vec<u8>, u32)>,
    /// Processes of further programs.
    pub(in crate::native) unnamed: u32,
    /// Processes that nothing could end.
    pub(in crate::native) left: u32,
}

impl Order {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX));
        put(&mut bytes, self.folder.as_os_str().as_bytes());
        put_number(&mut bytes, u32::try_from(self.argv.len()).unwrap_or(u32::MAX));
        self.argv.iter().for_each(|word| put(&mut bytes, word.as_bytes()));
        put_number(&mut bytes, u32::try_from(self.environment.len()).unwrap_or(u32::MAX));
        for (name, value) in &self.environment {
            put(&mut bytes, name.as_bytes());
            put(&mut bytes, value.as_bytes());
        }
        if bytes.len() > MAX_ORDER {
            // What the system would say.
            return Err(rustix::io::Errno::TOOBIG.into());
        }
        send(out, &bytes)
    }

    pub(super) fn read(input: &mut impl Read) -> io::Result<Self> {
        let bytes = receive(input, MAX_ORDER)?;
        Self::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let grace = Duration::from_millis(number(bytes)?.into());
        let folder = PathBuf::from(text(bytes)?);
        let argv = (0..number(bytes)?).map(|_| text(bytes)).collect::<Option<Vec<_>>>()?;
        let environment = (0..number(bytes)?).map(|_| Some((text(bytes)?, text(bytes)?))).collect::<Option<_>>()?;
        (bytes.is_empty() && !argv.is_empty()).then_some(Self { argv, folder, environment, grace })
    }
}

impl Report {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        match self {
            Self::NotStarted(error) => {
                bytes.push(b'N');
                put_number(&mut bytes, error.cast_unsigned());
            }
            Self::Ended(Ended { exit, asked, reaped, unnamed, left }) => {
                let (kind, value) = match exit {
                    Exit::Code(code) => (b'E', code),
                    Exit::Signal(signal) => (b'S', signal),
                };
                bytes.extend([kind, u8::from(*asked)]);
                put_number(&mut bytes, value.cast_unsigned());
                put_number(&mut bytes, *unnamed);
                put_number(&mut bytes, *left);
                for (name, count) in reaped.iter().take(MAX_NAMES) {
                    put(&mut bytes, &name[..name.len().min(MAX_NAME)]);
                    put_number(&mut bytes, *count);
                }
            }
        }
        send(out, &bytes)
    }

    pub(super) fn read(input: &mut impl Read) -> io::Result<Self> {
        let bytes = receive(input, MAX_REPORT)?;
        Self::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'N', rest @ ..] => {
                let mut rest = rest;
                let error = number(&mut rest)?.cast_signed();
                rest.is_empty().then_some(Self::NotStarted(error))
            }
            [kind @ (b'E' | b'S'), asked @ (0 | 1), rest @ ..] => {
                let mut rest = rest;
                let value = number(&mut rest)?.cast_signed();
                let exit = if *kind == b'E' { Exit::Code(value) } else { Exit::Signal(value) };
                let (unnamed, left) = (number(&mut rest)?, number(&mut rest)?);
                let mut reaped = Vec::new();
                while !rest.is_empty() {
                    reaped.push((text(&mut rest)?.into_vec(), number(&mut rest)?));
                }
                let bounded = reaped.len() <= MAX_NAMES && reaped.iter().all(|(name, _)| name.len() <= MAX_NAME);
                bounded.then_some(Self::Ended(Ended { exit, asked: *asked == 1, reaped, unnamed, left }))
            }
            _ => None,
        }
    }
}

fn send(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&[&length.to_le_bytes(), bytes].concat())
}

fn receive(input: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    // Room is made as it comes: a length alone costs nothing.
    input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn put_number(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    put_number(bytes, u32::try_from(text.len()).unwrap_or(u32::MAX));
    bytes.extend(text);
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn text(bytes: &mut &[u8]) -> Option<OsString> {
    let length = number(bytes)? as usize;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(OsStr::from_bytes(text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Order {
            argv: vec![word(b"sh"), word(b"\xff\n"), word(b"")],
            folder: "/somewhere".into(),
            environment: [(word(b"A"), word(b"")), (word(b"B"), word(b"x=\xfe"))].into(),
            grace: Duration::from_millis(1500),
        }
    }

    fn reports() -> [Report; 3] {
        let ended = Ended {
            exit: Exit::Signal(9),
            asked: true,
            reaped: vec![(b"a\xff".to_vec(), 2), (vec![b'x'; MAX_NAME], 1)],
            unnamed: 7,
            left: 1,
        };
        let plain = Ended { exit: Exit::Code(-1), asked: false, reaped: Vec::new(), unnamed: 0, left: 0 };
        [Report::NotStarted(2), Report::Ended(ended), Report::Ended(plain)]
    }

    #[test]
    fn what_is_said_is_understood() {
        let mut bytes = Vec::new();
        order().write(&mut bytes).unwrap();
        assert_eq!(Order::read(&mut bytes.as_slice()).unwrap(), order());
        for report in reports() {
            let mut bytes = Vec::new();
            report.write(&mut bytes).unwrap();
            assert_eq!(Report::read(&mut bytes.as_slice()).unwrap(), report);
        }
    }

    #[test]
    fn what_is_cut_short_or_goes_on_is_not_understood() {
        let mut bytes = Vec::new();
        order().write(&mut bytes).unwrap();
        let broken = |bytes: &[u8]| Order::parse(bytes).is_none() && Report::parse(bytes).is_none();
        for length in 0..bytes.len() - 4 {
            assert!(Order::read(&mut &bytes[..4 + length]).is_err(), "{length}");
            assert!(broken(&bytes[4..4 + length]), "{length}");
        }
        assert!(broken(&[&bytes[4..], b"x"].concat()));
        for report in reports() {
            let mut bytes = Vec::new();
            report.write(&mut bytes).unwrap();
            assert!(broken(&[&bytes[4..], b"x"].concat()), "{report:?}");
        }
        assert!(broken(b"E\x02\0\0\0\0\0\0\0\0\0\0\0\0"), "neither yes nor no");
    }

    #[test]
    fn lengths_alone_cost_nothing() {
        assert!(Order::read(&mut &b"\xff\xff\xff\xff"[..]).is_err());
        assert!(Report::read(&mut &b"\x01\x10\0\0"[..]).is_err());
        // So many words, and no byte of them.
        assert!(Order::parse(b"\0\0\0\0\0\0\0\0\xff\xff\xff\xff").is_none());
        let long = Order { argv: vec!["x".repeat(MAX_ORDER).into()], ..order() };
        assert_eq!(long.write(&mut Vec::new()).unwrap_err().raw_os_error(), Some(libc::E2BIG));
    }

    #[test]
    fn a_report_with_all_its_names_is_not_too_long() {
        let reaped = (0..MAX_NAMES).map(|_| (vec![b'x'; MAX_NAME], u32::MAX)).collect();
        let ended = Ended { exit: Exit::Code(0), asked: false, reaped, unnamed: u32::MAX, left: u32::MAX };
        let mut bytes = Vec::new();
        Report::Ended(ended).write(&mut bytes).unwrap();
        assert!(Report::read(&mut bytes.as_slice()).is_ok());
    }
}
