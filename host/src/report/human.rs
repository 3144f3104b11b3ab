//! For people: one line for each check, its findings below it, and one closing line.

use super::{escape, without_codes};
use crate::model::{
    CheckOutcome, Deselected, ErrorKind, Event, Exit, Finding, Reaped, Record, RecordRow, Remark, Reuse, Row, RunId,
    RunOutcome, Severity, SkipReason, Stopping, Withheld, spoken as spoken_seconds,
};
use anstyle::{AnsiColor, Style as Ansi};
use std::fmt::Write as _;

/// Findings shown for one check; the others are counted. The record has all of them.
const SHOWN_FINDINGS: usize = 100;

/// How a report is dressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// No control codes at all.
    Plain,
    /// With colours.
    Colour,
}

/// Programs shown that were ended with a command.
const SHOWN_REAPED: usize = 8;

/// Commands whose last lines a report shows.
const SHOWN_TAILS: usize = 10;

/// Lines of each check that runs that are shown to whoever asks.
const SHOWN_LINES: usize = 5;

/// Turns events into lines.
#[derive(Debug, Clone)]
pub struct Human {
    style: Style,
    run: RunId,
    shown: usize,
}

impl Human {
    /// A report of this run in this style.
    pub fn new(style: Style, run: RunId) -> Self {
        Self { style, run, shown: SHOWN_FINDINGS }
    }

    /// The same with all findings of each check.
    #[must_use]
    pub fn with_all_findings(self) -> Self {
        Self { shown: usize::MAX, ..self }
    }

    /// What the report has of an event: whole lines, each ended; empty for what is no part of it. `tail` gives the last
    /// lines of a check's log.
    pub fn text(&self, event: &Event, tail: impl Fn(&RecordRow) -> Option<String>) -> String {
        match event {
            Event::RunStarted { .. }
            | Event::CheckStarted { .. }
            | Event::CheckOutput { .. }
            | Event::CheckSlow { .. }
            | Event::Running { .. }
            | Event::Stopping { .. }
            | Event::CheckEnded { .. } => String::new(),
            Event::RunReused { run, reuse } => self.reused(run, reuse),
            Event::CheckFinished { row, record } => self.check(row, record),
            Event::RunFinished { record, .. } => self.tails(record, tail) + &self.closing(record),
        }
    }

    /// What is said of an event beside the report, to whoever looks on: whole lines, each ended.
    pub fn note(&self, event: &Event) -> Option<String> {
        let mut text = String::new();
        match event {
            Event::RunStarted { .. }
            | Event::CheckStarted { .. }
            | Event::CheckEnded { .. }
            | Event::CheckFinished { .. }
            | Event::RunReused { .. }
            | Event::RunFinished { .. } => return None,
            Event::CheckOutput { id, text: output, skipped } => {
                if *skipped > 0 {
                    self.quoted(&mut text, id.as_str(), &format!("… ({skipped} bytes are left out)"));
                }
                self.quoted(&mut text, id.as_str(), &without_codes(output));
            }
            Event::CheckSlow { id, elapsed_ms, timeout_ms } => {
                let ends = timeout_ms.map(|at| format!("; it is ended after {}", spoken(at))).unwrap_or_default();
                let _ = writeln!(text, "slow: {id} has been running for {}{ends}", spoken(*elapsed_ms));
            }
            Event::Running { checks } if checks.is_empty() => text.push_str("nothing runs now\n"),
            Event::Running { checks } => {
                for busy in checks {
                    let _ = writeln!(text, "running: {}, for {}", busy.id, spoken(busy.elapsed_ms));
                    let output = without_codes(busy.output.as_deref().unwrap_or_default());
                    let lines: Vec<&str> = output.lines().collect();
                    self.quoted(&mut text, "   ", &lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n"));
                }
            }
            Event::Stopping { why: Stopping::Signal } => {
                text.push_str("interrupted: what runs is asked to end; a second signal ends it at once\n");
            }
            Event::Stopping { why: Stopping::Budget } => {
                text.push_str("the time of the whole run is used up: nothing more is started\n");
            }
        }
        Some(text)
    }

    /// Lines of a program's output behind the name of who wrote it.
    fn quoted(&self, text: &mut String, name: &str, output: &str) {
        let before = self.paint(Ansi::new().dimmed(), &format!("{name} |"));
        for line in output.lines() {
            let _ = writeln!(text, "{before} {}", escape(line));
        }
    }

    /// The end of what each red command wrote, so that the reason stands beside the outcome.
    fn tails(&self, record: &Record, tail: impl Fn(&RecordRow) -> Option<String>) -> String {
        let mut text = String::new();
        let rows = record.verdict.rows.iter().zip(&record.rows);
        let with_tails = |(row, around): (&Row, &RecordRow)| Some((row.id.clone(), tail_of(row, around, &tail)?));
        let (mut shown, mut more) = (0, 0);
        for (id, tail) in rows.filter_map(with_tails) {
            if shown == SHOWN_TAILS {
                more += 1;
                continue;
            }
            shown += 1;
            let _ = writeln!(text, "{id} wrote last:");
            self.quoted(&mut text, "   ", &tail);
        }
        if more > 0 {
            let _ = writeln!(text, "… and {more} more (`probity show {} --log` has all)", self.run);
        }
        text
    }

    /// One check as whoever asks for it alone sees it: with the end of its output.
    pub fn alone(&self, row: &Row, record: &RecordRow, tail: impl Fn(&RecordRow) -> Option<String>) -> String {
        let mut text = self.check(row, record);
        self.quoted(&mut text, "   ", &tail_of(row, record, &tail).unwrap_or_default());
        text
    }

    fn paint(&self, style: Ansi, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_owned(),
            Style::Colour => format!("{}{text}{}", style.render(), style.render_reset()),
        }
    }

    /// One check: its line, why it is an error, its findings.
    fn check(&self, row: &Row, record: &RecordRow) -> String {
        let word = format!("{:<12}", row.outcome.word());
        // What does not count is shown as what it is, behind the word for what does.
        let (outcome, findings) =
            record.seen.as_ref().map_or((&row.outcome, &row.findings), |seen| (&seen.outcome, &seen.findings));
        let note = note(row, record, findings);
        let seconds = if matches!(outcome, CheckOutcome::Skipped(_) | CheckOutcome::NotSelected(_)) {
            String::new()
        } else {
            seconds(record.duration_ms)
        };
        let mut text =
            format!("{} {:<24} {seconds:>8}", self.paint(colour(&row.outcome, row.blocking), &word), row.id.as_str());
        if !note.is_empty() {
            let _ = write!(text, "  {note}");
        }
        let mut text = format!("{}\n", text.trim_end());
        if let (CheckOutcome::Error(_) | CheckOutcome::Failed | CheckOutcome::TimedOut, Some(message)) =
            (outcome, &record.message)
        {
            for line in message.lines() {
                let _ = writeln!(text, "    {}", escape(line));
            }
        }
        if !record.reaped.is_empty() {
            let _ = writeln!(
                text,
                "    {}",
                self.paint(Ansi::new().dimmed(), &format!("ended with it: {}", reaped(&record.reaped)))
            );
        }
        // What is known is counted, so that what is new is seen; who asks for all gets all.
        let all = self.shown == usize::MAX;
        let listed = || findings.iter().filter(|finding| all || !finding.known);
        let width = listed().take(self.shown).map(|f| place(f).chars().count()).max().unwrap_or(0).min(60);
        for finding in listed().take(self.shown) {
            let _ = writeln!(text, "    {}", self.finding(finding, width));
            if let Some(help) = &finding.help {
                let _ =
                    writeln!(text, "        {}", self.paint(Ansi::new().dimmed(), &format!("help: {}", escape(help))));
            }
        }
        let more = listed().count().saturating_sub(self.shown);
        let known = if all { 0 } else { known(findings) };
        let rest = match (more, known) {
            (0, 0) => None,
            (more, 0) => Some(format!("{more} more")),
            (0, known) => Some(format!("{known} known")),
            (more, known) => Some(format!("{more} more and {known} known")),
        };
        if let Some(rest) = rest {
            let _ = writeln!(text, "    … and {rest} (`probity show {} --check {}` lists all)", self.run, row.id);
        }
        text
    }

    /// `path:line:column  rule  message`.
    fn finding(&self, finding: &Finding, width: usize) -> String {
        let style = match finding.severity {
            Severity::Error => Ansi::new().fg_color(Some(AnsiColor::Red.into())),
            Severity::Warning => Ansi::new().fg_color(Some(AnsiColor::Yellow.into())),
            Severity::Note => Ansi::new().fg_color(Some(AnsiColor::Cyan.into())),
        };
        let place = place(finding);
        let fill = " ".repeat(width.saturating_sub(place.chars().count()));
        let severity =
            if finding.severity == Severity::Error { String::new() } else { format!("{}: ", finding.severity.name()) };
        let (style, known) = if finding.known { (Ansi::new().dimmed(), "known: ") } else { (style, "") };
        let rule = self.paint(style, &escape(&finding.rule));
        format!("{place}{fill}  {rule}  {known}{severity}{}", escape(&finding.message))
    }

    /// That a record answers, where it is from, and how to have it otherwise.
    fn reused(&self, run: &RunId, reuse: &Reuse) -> String {
        let mut text = String::new();
        let bold = |text: &str| self.paint(Ansi::new().bold(), text);
        let _ = writeln!(
            text,
            "{}: nothing was run, since run {run} has the same identity and is {} old",
            bold("reused"),
            spoken_seconds(reuse.age_s)
        );
        text.push_str(&produced(&reuse.tree, &reuse.host, &reuse.started, reuse.here));
        let _ = writeln!(text, "Shared record: {}", escape(&reuse.shared_record));
        if !reuse.failures.is_empty() {
            let runs: Vec<&str> = reuse.failures.iter().map(RunId::as_str).collect();
            let _ = writeln!(text, "the same failed before: {}", runs.join(", "));
        }
        let _ = if reuse.failed {
            writeln!(text, "help: pass --retry-failed to try it again")
        } else {
            writeln!(text, "help: pass --fresh to run it all the same")
        };
        text
    }

    /// The last line of a run: outcome, counts, time, digest, and what to do next.
    fn closing(&self, record: &Record) -> String {
        let verdict = &record.verdict;
        let outcome = verdict.outcome;
        let ansi = match outcome {
            RunOutcome::Passed | RunOutcome::NotApplicable => {
                Ansi::new().fg_color(Some(AnsiColor::Green.into())).bold()
            }
            RunOutcome::Partial | RunOutcome::Stale | RunOutcome::Empty => {
                Ansi::new().fg_color(Some(AnsiColor::Yellow.into())).bold()
            }
            RunOutcome::Failed | RunOutcome::Error | RunOutcome::TimedOut | RunOutcome::Interrupted => {
                Ansi::new().fg_color(Some(AnsiColor::Red.into())).bold()
            }
        };
        let counts = counts(&verdict.rows);
        let digest = record.verdict_digest.map_or_else(|| "no verdict".to_owned(), |digest| digest.to_string());
        let mut text = String::new();
        if !record.moved.is_empty() {
            let _ = writeln!(text, "these files changed while the run went on:");
            let lines = record.moved.iter().map(|path| escape(path));
            text.push_str(&some(lines, record.unnamed.moved));
        }
        if outcome == RunOutcome::Stale {
            let _ = writeln!(text, "help: have commands write where git ignores it, and do not edit while they run");
        }
        if !record.hidden.is_empty() {
            let _ = writeln!(text, "packs do not see these:");
            text.push_str(&some(record.hidden.iter().map(remark), record.unnamed.hidden));
        }
        if !record.open.is_empty() {
            let _ = writeln!(
                text,
                "the subject is open, so what lies there is not verified: {}",
                remarks(&record.open, record.unnamed.open)
            );
        }
        if !record.unproven.is_empty() {
            let _ =
                writeln!(text, "not proven to be as committed: {}", remarks(&record.unproven, record.unnamed.unproven));
        }
        if outcome == RunOutcome::Empty {
            let _ = writeln!(text, "nothing was verified: no check passed or failed that decides anything");
            // Of a part it says nothing that the whole is not applicable.
            if !verdict.is_scoped() {
                let help = "help: if nothing here is for this scenario to judge, say why with `--na \"REASON\"`";
                let _ = writeln!(text, "{help}");
            }
        }
        let known: usize = verdict.rows.iter().map(|row| known(&row.findings)).sum();
        if let (Some(base), true) = (&verdict.subject.base, known > 0) {
            let findings = if known == 1 { "finding" } else { "findings" };
            let _ = writeln!(text, "{known} {findings} known in the base {base}, not counted as a failure");
        }
        if record.dirty == Some(true) {
            let what = match (&verdict.subject.commit, record.staged) {
                (Some(_), false) => {
                    "dirty: the working tree differs from its commit, so this says nothing of the commit"
                }
                (None, false) => "dirty: nothing is committed yet, so this is about the working tree alone",
                (Some(_), true) => "staged: the index differs from the commit, and this is about what is staged",
                (None, true) => "staged: nothing is committed yet, and this is about what is staged",
            };
            let _ = writeln!(text, "{what}");
        }
        if let Some(reason) = &verdict.not_applicable {
            let _ = writeln!(text, "declared not applicable: {}", escape(reason));
        }
        if verdict.is_scoped() {
            let _ = writeln!(text, "scoped: less ran than the scenario asks for, so this is no gate");
        }
        if verdict.changed_only {
            let base = verdict.subject.base.as_deref().map(|base| format!(" since {base}")).unwrap_or_default();
            let _ = writeln!(text, "changed only: this is about what changed{base}, and says nothing of the rest");
        }
        // Where nobody could expect it to answer for another run, why it does not is no news.
        let expected = !record.withheld.iter().any(is_plain);
        if expected && !record.touched.is_empty() {
            let _ = writeln!(
                text,
                "these were written while the run went on, and are as they were, so it answers for no other run:"
            );
            text.push_str(&some(record.touched.iter().map(|path| escape(path)), record.unnamed.touched));
            let _ = writeln!(
                text,
                "help: have commands write where git ignores it, or set `isolate = true` for the one that writes"
            );
        }
        for withheld in record.withheld.iter().filter(|withheld| expected && !matches!(withheld, Withheld::Touched)) {
            let _ = writeln!(text, "it answers for no other run: {}", escape(&withheld.to_string()));
        }
        if let Some(version) = record.spec_version {
            let _ = writeln!(text, "held against the specification: {version}");
        }
        let _ = writeln!(
            text,
            "{}: {counts} in {}, run {}, {digest}",
            self.paint(ansi, outcome.word()),
            seconds(record.duration_ms).trim_start(),
            record.run,
        );
        text
    }
}

/// The line that says where and when a record was made.
pub fn produced(tree: &str, host: &str, started: &str, here: bool) -> String {
    let here = if here { ", which is here" } else { "" };
    format!("Produced at: {} on {}{here}, {}\n", escape(tree), escape(host), escape(started))
}

/// Whether it goes without saying that a record answers for no other run.
fn is_plain(withheld: &Withheld) -> bool {
    match withheld {
        Withheld::Scoped
        | Withheld::NotApplicable
        | Withheld::Dirty
        | Withheld::NoCommit
        | Withheld::Outcome { .. } => true,
        Withheld::Touched
        | Withheld::Inputs { .. }
        | Withheld::Open
        | Withheld::Gap { .. }
        | Withheld::Inherits { .. }
        | Withheld::Unidentified { .. }
        | Withheld::NoKey
        | Withheld::Quarantine => false,
    }
}

/// A screenful of them, each on its line, and how many more there are.
fn some(lines: impl ExactSizeIterator<Item = String>, unnamed: u64) -> String {
    const MOST: usize = 10;
    let more = lines.len().saturating_sub(MOST) as u64 + unnamed;
    let mut text = String::new();
    for line in lines.take(MOST) {
        let _ = writeln!(text, "    {line}");
    }
    if more > 0 {
        let _ = writeln!(text, "    … and {more} more");
    }
    text
}

fn remark(remark: &Remark) -> String {
    format!("{} ({})", escape(&remark.path), escape(&remark.why))
}

/// A few of them, on one line.
fn remarks(all: &[Remark], unnamed: u64) -> String {
    const FEW: usize = 3;
    let mut shown: Vec<String> = all.iter().take(FEW).map(remark).collect();
    let more = all.len().saturating_sub(FEW) as u64 + unnamed;
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

fn colour(outcome: &CheckOutcome, blocking: bool) -> Ansi {
    let colour = match outcome {
        CheckOutcome::Passed => AnsiColor::Green,
        CheckOutcome::Skipped(_) | CheckOutcome::NotSelected(_) => return Ansi::new().dimmed(),
        CheckOutcome::Failed | CheckOutcome::Error(_) | CheckOutcome::TimedOut if !blocking => AnsiColor::Yellow,
        CheckOutcome::Failed | CheckOutcome::Error(_) | CheckOutcome::TimedOut | CheckOutcome::Interrupted => {
            AnsiColor::Red
        }
    };
    Ansi::new().fg_color(Some(colour.into()))
}

/// What follows the time on a check's line.
fn note(row: &Row, record: &RecordRow, findings: &[Finding]) -> String {
    let mut notes = Vec::new();
    match &row.outcome {
        CheckOutcome::Skipped(SkipReason::AfterFailure(id)) => notes.push(format!("after {id}")),
        CheckOutcome::Skipped(SkipReason::NoMatchingFiles) => notes.push("no matching files".to_owned()),
        CheckOutcome::Skipped(SkipReason::NotApplicable) => {
            let why = record.message.as_deref().unwrap_or("the check found nothing to judge");
            notes.push(format!("not applicable: {}", escape(why)));
        }
        CheckOutcome::Skipped(SkipReason::TimeUp) => notes.push("the time of the whole run was used up".to_owned()),
        CheckOutcome::Skipped(SkipReason::Interrupted) => notes.push("the run was interrupted".to_owned()),
        CheckOutcome::Skipped(SkipReason::RulesOff) => notes.push("all of its rules are off".to_owned()),
        CheckOutcome::NotSelected(why) => {
            notes.push(record.message.as_deref().map_or_else(|| deselected(*why).to_owned(), escape));
        }
        CheckOutcome::Error(kind) => notes.push(error_word(*kind).to_owned()),
        CheckOutcome::Passed | CheckOutcome::Failed | CheckOutcome::TimedOut | CheckOutcome::Interrupted => {}
    }
    match record.seen.as_ref().map(|seen| &seen.outcome) {
        Some(CheckOutcome::Interrupted) => notes.push("ended early".to_owned()),
        Some(outcome) => notes.push(format!("seen: {}", outcome.word())),
        None => {}
    }
    match record.exit {
        Some(Exit::Code(0)) | None => {}
        Some(Exit::Code(code)) => notes.push(format!("exit code {code}")),
        Some(Exit::Signal(signal)) => notes.push(format!("ended by signal {signal}")),
    }
    let known = known(findings);
    let count = |severity| findings.iter().filter(|finding| !finding.known && finding.severity == severity).count();
    let new = if known > 0 { "new " } else { "" };
    for (severity, one, many) in [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ] {
        match count(severity) {
            0 => {}
            1 => notes.push(format!("1 {new}{one}")),
            n => notes.push(format!("{n} {new}{many}")),
        }
    }
    if known > 0 {
        if known == findings.len() {
            notes.push("nothing new".to_owned());
        }
        notes.push(format!("{known} known in the base"));
    }
    if row.outcome.is_red() && !row.blocking {
        notes.push("does not block".to_owned());
    }
    notes.join(", ")
}

/// How many findings the base has too.
fn known(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.known).count()
}

/// Why a check is not among those to run, in words, where nothing more is known of it.
pub fn deselected(why: Deselected) -> &'static str {
    match why {
        Deselected::Revision => "only a working tree is a folder to run it in",
        Deselected::Only => "not named by --only",
        Deselected::Skip => "named by --skip",
        Deselected::OtherScenario => "its `when` is for other scenarios",
        Deselected::OtherBranch => "its `when` is for other branches",
        Deselected::NoSuchPath => "no path of its `when` changed",
        Deselected::NoCapability => "a capability of its `when` is not there",
        Deselected::Unchanged => "nothing changed that it is about",
        Deselected::NotApplicable => "declared not applicable",
    }
}

/// The kind of an error, in words.
fn error_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "cannot be started",
        ErrorKind::Trap => "the check crashed",
        ErrorKind::Exit => "the check ended itself",
        ErrorKind::OutOfFuel => "out of fuel",
        ErrorKind::OutOfMemory => "out of memory",
        ErrorKind::OutputLimit => "too much output",
        ErrorKind::HandleLimit => "too many open files",
        ErrorKind::StackOverflow => "stack overflow",
        ErrorKind::BadResult => "its result breaks the contract",
        ErrorKind::Gap => "something is missing here",
        ErrorKind::NeedsContext => "it needs to be told something",
        ErrorKind::InvalidConfig => "it refuses its configuration",
        ErrorKind::Internal => "the check reports a failure of its own",
        ErrorKind::Moved => "the tree changed under it",
        ErrorKind::Host => "trouble of this machine",
    }
}

fn place(finding: &Finding) -> String {
    let Some(place) = &finding.place else { return "-".to_owned() };
    let path = escape(&place.path);
    match place.start {
        Some(start) => format!("{path}:{}:{}", start.line, start.column),
        None => path,
    }
}

fn counts(rows: &[Row]) -> String {
    let mut parts = Vec::new();
    for word in ["failed", "error", "timed_out", "interrupted", "passed", "skipped", "not_selected"] {
        let of_word = || rows.iter().filter(|row| row.outcome.word() == word);
        let concerns = of_word().filter(|row| row.outcome.is_red() && !row.blocking).count();
        for (count, note) in [(of_word().count() - concerns, ""), (concerns, " (not blocking)")] {
            if count > 0 {
                parts.push(format!("{count} {word}{note}"));
            }
        }
    }
    if parts.is_empty() { "no checks".to_owned() } else { parts.join(", ") }
}

/// The end of a check's output, where that may say why it is red.
fn tail_of(row: &Row, record: &RecordRow, tail: impl Fn(&RecordRow) -> Option<String>) -> Option<String> {
    let outcome = record.seen.as_ref().map_or(&row.outcome, |seen| &seen.outcome);
    // What was ended since it does not count has nothing to say of why.
    let ended = record.seen.is_some() && *outcome == CheckOutcome::Interrupted;
    if outcome.is_red() && !ended { tail(record) } else { None }
}

/// `1m 30s`, `2.5s`.
fn spoken(milliseconds: u64) -> String {
    let (minutes, seconds) = (milliseconds / 60_000, milliseconds / 1000 % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        (0, minutes) => format!("{minutes}m {seconds}s"),
        (hours, minutes) => format!("{hours}h {minutes}m"),
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}s", milliseconds / 1000, milliseconds % 1000)
}

/// `2 sleep, node`: programs that were ended with a command, and how many processes of each.
fn reaped(reaped: &Reaped) -> String {
    let shown = reaped.programs.iter().take(SHOWN_REAPED);
    let mut words: Vec<String> = shown
        .map(|(program, count)| if *count == 1 { escape(program) } else { format!("{count} {}", escape(program)) })
        .collect();
    let more = reaped.programs.iter().skip(SHOWN_REAPED).map(|(_, count)| count).sum::<u64>() + reaped.unnamed;
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}
