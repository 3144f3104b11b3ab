//! The only writer to stdout and stderr. Data goes to stdout, everything else to stderr; colours and progress
//! only to a terminal.

use super::args::Color;
use super::error::CliError;
use crate::config::Colour;
use crate::model::Secrets;
use crate::report::{Style, escape, escape_in_json};
use crate::subject::Patience;
use crate::system::clock;
use anstyle::{AnsiColor, Style as Ansi};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// How much a pipe takes at once when it takes anything: the least that systems promise.
const PIECE: usize = 4096;

/// How often it is asked whether a reader is still worth waiting for.
const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long one that stands still has when a run is to end.
const LAST: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Writes to the terminal.
pub(super) struct Printer {
    stdout: Style,
    stderr: Style,
    /// On a terminal: what runs now.
    spinner: Option<(ProgressBar, Arc<Mutex<Doing>>)>,
    /// Whether that is to be seen now.
    shown: Cell<bool>,
    /// Why data did not reach stdout.
    lost: RefCell<Option<io::Error>>,
    /// Whether the reader of stdout went away.
    gone: Cell<bool>,
    /// How long a reader that does not read is waited for.
    patience: RefCell<Patience>,
    /// Whether stdout and stderr were given up since nobody reads them.
    stuck: [Cell<bool>; 2],
    /// What must not be in anything that is said to people, once it is known.
    secrets: RefCell<Option<Secrets>>,
}

impl Printer {
    pub(super) fn new(color: Color) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let smart = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let style = |terminal: bool| {
            let dressed = match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => !set("NO_COLOR") && (forced || (terminal && smart)),
            };
            if dressed { Style::Colour } else { Style::Plain }
        };
        let progress = io::stderr().is_terminal() && smart && !set("CI");
        Self {
            stdout: style(io::stdout().is_terminal()),
            stderr: style(io::stderr().is_terminal()),
            spinner: progress.then(spinner),
            shown: Cell::new(false),
            lost: RefCell::new(None),
            gone: Cell::new(false),
            patience: RefCell::default(),
            stuck: [Cell::new(false), Cell::new(false)],
            secrets: RefCell::new(None),
        }
    }

    /// How text for stdout is dressed.
    pub(super) fn style(&self) -> Style {
        self.stdout
    }

    /// Whether errors are dressed.
    pub(super) fn colour_errors(&self) -> Colour {
        match self.stderr {
            Style::Plain => Colour::Off,
            Style::Colour => Colour::On,
        }
    }

    /// From here on these values are in no message.
    pub(super) fn keep(&self, secrets: Secrets) {
        self.secrets.replace(Some(secrets));
    }

    /// From here on nobody is waited for who does not read what is written, once this is over.
    pub(super) fn until(&self, patience: &Patience) {
        self.patience.replace(patience.clone());
    }

    /// The text without the values that are to be kept.
    pub(super) fn concealed(&self, text: &str) -> String {
        self.secrets.borrow().as_ref().map_or_else(|| text.to_owned(), |secrets| secrets.conceal(text))
    }

    /// Data.
    pub(super) fn out(&self, text: &str) {
        self.out_bytes(text.as_bytes());
    }

    /// Data for programs, which a person may see all the same.
    pub(super) fn json(&self, document: &serde_json::Value) {
        self.out(&escape_in_json(&format!("{document:#}\n")));
    }

    /// The same in one line, of several.
    pub(super) fn json_line(&self, document: &serde_json::Value) {
        self.out(&escape_in_json(&format!("{document}\n")));
    }

    /// What a program wrote: as it is where another program reads it, harmless where a person does.
    /// It may be of any length.
    pub(super) fn out_foreign(&self, bytes: impl io::Read) -> io::Result<()> {
        const MOST: u64 = 64 << 10;
        let person = io::stdout().is_terminal();
        let mut bytes = io::BufReader::with_capacity(64 << 10, bytes);
        let mut piece = Vec::new();
        loop {
            piece.clear();
            // A line that is longer than this is told as several.
            let count = if person {
                bytes.by_ref().take(MOST).read_until(b'\n', &mut piece)
            } else {
                bytes.by_ref().take(MOST).read_to_end(&mut piece)
            };
            if count? == 0 {
                return Ok(());
            }
            if person {
                let text = String::from_utf8_lossy(&piece);
                self.out(&(escape(text.trim_end_matches(['\n', '\r'])) + "\n"));
            } else {
                self.out_bytes(&piece);
            }
            // Nobody reads the rest.
            if self.lost.borrow().is_some() || self.gone.get() {
                return Ok(());
            }
        }
    }

    fn out_bytes(&self, bytes: &[u8]) {
        self.quietly(|| {
            // A reader that went away has read what it wanted.
            match self.send(io::stdout().as_fd(), &self.stuck[0], bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.gone.set(true),
                Err(error) => drop(self.lost.replace(Some(error))),
                Ok(()) => {}
            }
        });
    }

    /// A line for people.
    pub(super) fn note(&self, text: &str) {
        let text = self.concealed(text);
        self.quietly(|| {
            let _ = self.send(io::stderr().as_fd(), &self.stuck[1], format!("{text}\n").as_bytes());
        });
    }

    /// Writes as fast as somebody reads: a reader that stands still ends no run, and holds none up that is to end.
    fn send(&self, stream: BorrowedFd<'_>, stuck: &Cell<bool>, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let patience = self.patience.borrow();
            let over = patience.over().is_some();
            if stuck.get() {
                return Err(unread());
            }
            let mut ready = [PollFd::new(&stream, PollFlags::OUT)];
            match poll(&mut ready, Some(&if over { LAST } else { SLICE })) {
                Ok(0) => stuck.set(over),
                // What is ready takes this much without waiting.
                Ok(_) => match rustix::io::write(stream, &bytes[..bytes.len().min(PIECE)]) {
                    Ok(count) => bytes = &bytes[count..],
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Why something did not reach stdout, if anything did not. A reader that went away has read what it wanted.
    pub(super) fn lost(&self) -> Option<io::Error> {
        self.lost.take()
    }

    pub(super) fn error(&self, error: &CliError) {
        if error.is_rendered() {
            return self.note(error.message().trim_end());
        }
        let mut lines = error.message().lines();
        let style = Ansi::new().fg_color(Some(AnsiColor::Red.into())).bold();
        let word = match self.stderr {
            Style::Plain => "error".to_owned(),
            Style::Colour => format!("{}error{}", style.render(), style.render_reset()),
        };
        let mut text = format!("{word}: {}", escape(lines.next().unwrap_or_default()));
        for line in lines {
            text.push('\n');
            text.push_str(&escape(line));
        }
        self.note(&text);
    }

    /// Shows on a terminal what goes on now; nothing where `what` is none.
    pub(super) fn status(&self, what: Option<&str>) {
        self.doing(what.map(|what| Doing { what: String::new(), since: vec![(escape(what), clock::now())] }));
    }

    /// The same of checks: how many are done, and which run since when.
    pub(super) fn progress(&self, done: usize, all: usize, running: &[(String, Instant)]) {
        let doing = Doing { what: format!("{done}/{all}  "), since: running.to_vec() };
        self.doing(Some(doing).filter(|doing| !doing.since.is_empty()));
    }

    fn doing(&self, what: Option<Doing>) {
        let Some((spinner, doing)) = &self.spinner else { return };
        let goes_on = what.is_some();
        *doing.lock().unwrap_or_else(PoisonError::into_inner) = what.unwrap_or_default();
        match (self.shown.replace(goes_on), goes_on) {
            // A bar that is given its place again forgets what it has drawn there.
            (true, true) => spinner.tick(),
            (false, true) => {
                // Also takes it back from having been finished.
                spinner.reset();
                spinner.set_draw_target(ProgressDrawTarget::stderr());
                spinner.enable_steady_tick(Duration::from_millis(100));
            }
            (true, false) => {
                spinner.disable_steady_tick();
                spinner.finish_and_clear();
                spinner.set_draw_target(ProgressDrawTarget::hidden());
            }
            (false, false) => {}
        }
    }

    fn quietly(&self, write: impl FnOnce()) {
        match &self.spinner {
            Some((spinner, _)) => spinner.suspend(write),
            None => write(),
        }
    }
}

fn unread() -> io::Error {
    io::Error::other("nobody read it")
}

/// What goes on, and since when.
#[derive(Debug, Default)]
struct Doing {
    what: String,
    since: Vec<(String, Instant)>,
}

impl Doing {
    /// On one line: the first few of them.
    fn text(&self) -> String {
        const FEW: usize = 3;
        let one = |(what, since): &(String, Instant)| {
            format!("{what} {}s", clock::now().saturating_duration_since(*since).as_secs())
        };
        let mut words: Vec<String> = self.since.iter().take(FEW).map(one).collect();
        if let Some(more @ 1..) = self.since.len().checked_sub(FEW) {
            words.push(format!("and {more} more"));
        }
        format!("{}{}", self.what, words.join(", "))
    }
}

fn spinner() -> (ProgressBar, Arc<Mutex<Doing>>) {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let doing = Arc::<Mutex<Doing>>::default();
    let shown = Arc::clone(&doing);
    // The template is a constant; were it wrong, the plain style would be used.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {doing}") {
        spinner.set_style(style.with_key("doing", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&shown.lock().unwrap_or_else(PoisonError::into_inner).text());
        }));
    }
    (spinner, doing)
}

/// What clap has to say: help and version on stdout with exit code 0, mistakes on stderr with 2.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    match error.print() {
        Err(error) if code == 0 && error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr().lock(), "error: stdout could not be written to: {error}");
            ExitCode::from(4)
        }
        _ => ExitCode::from(code),
    }
}

/// Starts the log on stderr: `-vv` for what Probity does, `-vvv` for everything, `PROBITY_LOG` in detail.
pub(super) fn start_log(verbose: u8) {
    let named = std::env::var("PROBITY_LOG").ok().filter(|text| !text.is_empty());
    let targets = match named.map(|text| text.parse::<Targets>()) {
        Some(Ok(targets)) => targets,
        Some(Err(error)) => {
            let _ = writeln!(io::stderr().lock(), "warning: PROBITY_LOG is ignored: {error}");
            Targets::new().with_default(LevelFilter::OFF)
        }
        None => match verbose {
            0 | 1 => Targets::new().with_default(LevelFilter::OFF).with_target("probity", LevelFilter::WARN),
            2 => Targets::new().with_target("probity", LevelFilter::DEBUG),
            _ => Targets::new().with_default(LevelFilter::TRACE),
        },
    };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_writer(io::stderr);
    // A second start is a bug that costs a log and nothing else.
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
}
