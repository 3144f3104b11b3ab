//! What a person sees on a terminal, as the terminal shows it.

use crate::support::{Project, eventually};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex};

const COLUMNS: u16 = 72;

/// As much of a terminal as is needed: what stands on each line.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    line: usize,
    column: usize,
    /// Everything that was ever written.
    written: String,
}

impl Screen {
    fn put(&mut self, c: char) {
        if self.column == usize::from(COLUMNS) {
            (self.line, self.column) = (self.line + 1, 0);
        }
        if self.lines.len() <= self.line {
            self.lines.resize(self.line + 1, Vec::new());
        }
        let line = &mut self.lines[self.line];
        if line.len() <= self.column {
            line.resize(self.column + 1, ' ');
        }
        line[self.column] = c;
        self.column += 1;
    }

    fn take(&mut self, text: &str) {
        self.written.push_str(text);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.line += 1,
                '\u{1b}' => {
                    let mut sequence = String::new();
                    while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                        let Some(c) = chars.next() else { break };
                        sequence.push(c);
                    }
                    self.steer(sequence.trim_start_matches('['));
                }
                c => self.put(c),
            }
        }
    }

    fn steer(&mut self, sequence: &str) {
        let (number, letter) = sequence.split_at(sequence.len().saturating_sub(1));
        let many = number.parse().unwrap_or(1);
        match letter {
            "A" => self.line = self.line.saturating_sub(many),
            "B" => self.line += many,
            "K" => {
                if let Some(line) = self.lines.get_mut(self.line) {
                    line.clear();
                }
            }
            // Colours.
            _ => {}
        }
    }

    fn shown(&self) -> Vec<String> {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }
}

/// Starts a run on a terminal, of which the second value shows what stands there.
fn on_terminal(project: &Project, arguments: &[&str]) -> (std::process::Child, Arc<Mutex<Screen>>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let end = OpenOptions::new().read(true).write(true).open(std::ffi::OsStr::from_bytes(name.as_bytes())).unwrap();
    let mut command = project.command(arguments);
    command.env_remove("CI").env_remove("NO_COLOR").env("TERM", "xterm");
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let child = command.spawn().unwrap();
    drop(command);
    let screen = Arc::<Mutex<Screen>>::default();
    let taken = Arc::clone(&screen);
    let mut terminal = File::from(terminal);
    std::thread::spawn(move || {
        let (mut bytes, mut rest) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            rest.extend_from_slice(&bytes[..count]);
            // A sequence is written at once, so only a character may be cut in two.
            let whole = std::str::from_utf8(&rest).map_or_else(|error| error.valid_up_to(), str::len);
            let text: Vec<u8> = rest.drain(..whole).collect();
            taken.lock().unwrap().take(&String::from_utf8(text).unwrap());
        }
    });
    (child, screen)
}

#[test]
fn what_runs_stands_on_one_line_that_leaves_nothing_behind() {
    let wait = "until [ -e ../go-$1 ]; do sleep 0.02; done; exit $2";
    let check = |id: &str, code: u8| {
        format!("[checks.{id}]\ncommand = [\"sh\", \"./wait\", \"{id}\", \"{code}\"]\nparallel = true\n\n")
    };
    let ids = ["first", "second", "a-check-with-a-long-name-of-its-own", "last"];
    let checks: String = ids.iter().map(|id| check(id, u8::from(*id == "second"))).collect();
    let scenario = format!("[scenarios.default]\nchecks = {ids:?}\njobs = 3\nfail-fast = false\n");
    let project = Project::with(&(checks + &scenario));
    project.write("wait", wait);
    let (mut child, screen) = on_terminal(&project, &["verify"]);
    let shown = || screen.lock().unwrap().shown();
    let has = |text: &str| shown().iter().any(|line| line.contains(text));
    eventually("three run", || has("0/4  first ") && has("second ") && has("a-check-with-a-long"));
    fs::write(project.outside().join("go-second"), "").unwrap();
    // What became of it is told when the one before has ended; that it no longer runs shows at once.
    eventually("another one starts", || has("0/4  first ") && has("last ") && !has("second "));
    fs::write(project.outside().join("go-first"), "").unwrap();
    eventually("two are told", || {
        has("passed       first") && has("failed       second") && has("2/4  a-check-with-a-long")
    });
    assert!(!has("0/4") && !has("1/4"), "{:#?}", shown());
    for id in ["a-check-with-a-long-name-of-its-own", "last"] {
        fs::write(project.outside().join(format!("go-{id}")), "").unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(1));
    eventually("the end", || has("failed: 1 failed, 3 passed"));
    let words: Vec<String> =
        shown().iter().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    let outcomes: Vec<&String> =
        words.iter().filter(|word| ["passed", "failed", "failed:"].contains(&word.as_str())).collect();
    assert_eq!(outcomes, ["passed", "failed", "passed", "passed", "failed:"], "{:#?}", shown());
    assert!(!has("/4  "), "{:#?}", shown());
    assert!(screen.lock().unwrap().written.contains("\u{1b}[32m"), "colours");
}

#[test]
fn without_colours_a_terminal_gets_none() {
    let project = Project::with("[checks.c]\ncommand = [\"false\"]\n");
    let (mut child, screen) = on_terminal(&project, &["verify", "--color", "never"]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    eventually("the end", || screen.lock().unwrap().shown().iter().any(|line| line.starts_with("failed: ")));
    assert!(!screen.lock().unwrap().written.contains("[31m"), "{:?}", screen.lock().unwrap().written);
}
