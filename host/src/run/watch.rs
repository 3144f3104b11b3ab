//! Looking at a check while it runs: since when, whether it takes long, and what its command wrote last.
//!
//! Must not: change anything about it, or let a secret out.

use crate::model::{Busy, CheckId, Concealer, Event, Secrets};
use crate::system::clock;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A check is said to take long after this time, or after half of its timeout, and each time when it has taken as long
/// again.
const SLOW: Duration = Duration::from_mins(1);

/// How often is looked for new output where somebody wants to see it at once.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Bytes of the end of what a command wrote that are shown to whoever asks.
const END: u64 = 4 << 10;

/// Bytes of new output that are shown at once. More than this in a tenth of a second nobody can read.
const MUCH: usize = 64 << 10;

/// Where the output of a command can be read as soon as there is a file for it.
pub(super) type Output = Arc<OnceLock<File>>;

/// A check that runs.
pub(super) struct Watch<'a> {
    id: &'a CheckId,
    since: Instant,
    timeout: Option<Duration>,
    /// How long it will have taken when this is said next.
    slow: Duration,
    output: Output,
    /// Where its output is told as it comes.
    live: Option<Live<'a>>,
}

struct Live<'a> {
    concealer: Concealer<'a>,
    at: u64,
    /// What is no whole line yet.
    rest: Vec<u8>,
}

impl<'a> Watch<'a> {
    /// Of a check that starts now. `live` are the secrets of a run whose output is told as it comes.
    pub(super) fn new(id: &'a CheckId, timeout: Option<Duration>, output: Output, live: Option<&'a Secrets>) -> Self {
        let slow = timeout.map_or(SLOW, |timeout| SLOW.min(timeout / 2));
        let live = live.map(|secrets| Live { concealer: Concealer::new(secrets), at: 0, rest: Vec::new() });
        Self { id, since: clock::now(), timeout, slow, output, live }
    }

    /// When to look at it next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.checked_add(self.slow)
    }

    /// That it takes long, if it is time to say so.
    pub(super) fn slow(&mut self) -> Option<Event> {
        let elapsed = clock::now().saturating_duration_since(self.since);
        if elapsed < self.slow {
            return None;
        }
        while self.slow <= elapsed {
            self.slow = self.slow.saturating_mul(2).max(Duration::from_millis(1));
        }
        // What is being ended is not slow any more.
        if self.timeout.is_some_and(|timeout| elapsed >= timeout) {
            return None;
        }
        Some(Event::CheckSlow {
            id: self.id.clone(),
            elapsed_ms: super::milliseconds(elapsed),
            timeout_ms: self.timeout.map(super::milliseconds),
        })
    }

    /// What to say of it to whoever asks.
    pub(super) fn busy(&self, secrets: &Secrets) -> Busy {
        let end = self.output.get().and_then(|file| end(file, secrets)).filter(|end| !end.is_empty());
        Busy {
            id: self.id.clone(),
            elapsed_ms: super::milliseconds(clock::now().saturating_duration_since(self.since)),
            output: end,
        }
    }

    /// The lines that have come since the last look; all that there is once it has `ended`.
    pub(super) fn news(&mut self, ended: bool) -> Option<Event> {
        let (Some(live), Some(file)) = (&mut self.live, self.output.get()) else { return None };
        let skipped = live.read(file, ended);
        let whole =
            if ended { live.rest.len() } else { live.rest.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1) };
        if whole == 0 && skipped == 0 {
            return None;
        }
        let text: Vec<u8> = live.rest.drain(..whole).collect();
        Some(Event::CheckOutput { id: self.id.clone(), text: String::from_utf8_lossy(&text).into_owned(), skipped })
    }
}

impl Live<'_> {
    /// Reads on, and says how much of it is left out.
    fn read(&mut self, file: &File, ended: bool) -> u64 {
        let mut skipped = 0;
        let mut piece = vec![0; MUCH];
        // What cannot be read is not shown; whether it can be kept is said at the end.
        while let Ok(count @ 1..) = file.read_at(&mut piece, self.at) {
            self.at += count as u64;
            self.concealer.push(&piece[..count], &mut self.rest);
            skipped += self.cut();
        }
        if ended {
            self.concealer.finish(&mut self.rest);
            skipped += self.cut();
        }
        skipped
    }

    /// Leaves out all but the end.
    fn cut(&mut self) -> u64 {
        let much = self.rest.len().saturating_sub(MUCH);
        self.rest.drain(..much);
        much as u64
    }
}

/// The end of what is in a file.
fn end(file: &File, secrets: &Secrets) -> Option<String> {
    let size = file.metadata().ok()?.len();
    let from = size.saturating_sub(END + secrets.before() as u64);
    let mut bytes = vec![0; usize::try_from(size - from).ok()?];
    let mut read = 0;
    while let Ok(count @ 1..) = file.read_at(&mut bytes[read..], from + read as u64) {
        read += count;
    }
    bytes.truncate(read);
    let text = if from == 0 { secrets.conceal_bytes(&bytes) } else { secrets.conceal_end(&bytes) };
    let text = String::from_utf8_lossy(&text);
    // Unless it is all there is, it begins in the middle of a line.
    let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Some(whole.to_owned())
}
