//! The check `conflict-markers`.
//!
//! What a marker is depends on its line alone, what it means on the markers before it: so the file is read once, and
//! only the first bytes of each line are kept.

use probity_sdk::{Check, Context, Finding, Position, Refusal, Report, Rule, Scope};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::findings::{Findings, PER_FILE};
use crate::text::{self, End, Piece};

const CONFLICT: &str = "conflict";
const STRAY: &str = "stray-marker";

pub(crate) fn check() -> Check {
    Check::new("conflict-markers", "No conflict markers", run)
        .explain(
            "Looks in each text file for what a merge leaves behind where it needs a person: a line that starts with \
             `<<<<<<<`, a separator (`=======`; `%%%%%%%` or `+++++++` as Jujutsu writes them) and a line that starts \
             with `>>>>>>>`. It always judges, not only while a merge is going on.\n\n\
             A line of `=======` alone is an underline in Markdown and reStructuredText, and `|||||||` can be a row of a \
             table, so outside of such a set they mean nothing. A `<<<<<<<` or `>>>>>>>` with a label is reported even \
             where the rest of its set is gone.\n\n\
             Binary files (a NUL byte in the first 8 KiB), symbolic links and submodules are skipped.",
        )
        .scope(Scope::File)
        .need(crate::CONTENTS)
        .rule(Rule::error(
            CONFLICT,
            "A merge conflict was not resolved.",
            "The file has both sides of a conflict, with markers around them. Decide what it should say, and remove the \
             markers. A file that must show such a conflict, such as a page about merging, can indent it or be left out \
             with `files = [\"**\", \"!docs/merging.md\"]`.",
        ))
        .rule(Rule::error(
            STRAY,
            "A line is a conflict marker without the rest of its set.",
            "A conflict was resolved by hand and one of its markers was missed. Remove the line, and look whether \
             anything else was left near it.",
        ))
}

/// What counts as a marker.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    /// How many characters a marker has: what git calls `conflict-marker-size`. Longer and shorter ones are not looked
    /// at.
    #[schemars(range(min = 3, max = 255))]
    marker_size: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { marker_size: 7 }
    }
}

/// What a line is to a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Start { has_label: bool },
    Separator,
    End { has_label: bool },
}

/// What marker a line is, given its first bytes without the line ending.
fn marker(line: &[u8], size: usize) -> Option<Marker> {
    let &first = line.first()?;
    if !matches!(first, b'<' | b'=' | b'>' | b'%' | b'+') {
        return None;
    }
    let (run, label) = line.split_at_checked(size)?;
    if run.iter().any(|&byte| byte != first) {
        return None;
    }
    // Git puts a space before a label. Anything else there makes it a longer run, or a word that starts so.
    let has_label = match label {
        [] | b" " => false,
        [b' ', ..] => true,
        _ => return None,
    };
    match first {
        b'<' => Some(Marker::Start { has_label }),
        b'>' => Some(Marker::End { has_label }),
        _ => Some(Marker::Separator),
    }
}

fn run(config: &Config, ctx: &Context<'_>) -> Result<Report, Refusal> {
    let size = usize::from(config.marker_size);
    if size < 3 {
        let message = "`marker-size` must be at least 3";
        return Err(Refusal::InvalidConfig(message.to_owned()));
    }
    let mut report = Report::new();
    for entry in text::files(ctx) {
        if entry.size == 0 {
            report.count("files", 1);
            continue;
        }
        let mut reader = ctx.tree().open(entry)?;
        let mut search = Search::new(&entry.path, size);
        let is_text = text::for_each_piece(&mut reader, |piece| search.take(piece))?;
        report.count(if is_text { "files" } else { "binary-files" }, 1);
        report.count("lines", u64::from(search.line));
        search.finish(&mut report);
    }
    Ok(report)
}

/// The search through one file.
struct Search<'a> {
    path: &'a str,
    size: usize,
    line: u32,
    /// The first bytes of a line that arrives in pieces.
    prefix: Vec<u8>,
    open: Option<Open>,
    findings: Findings,
}

/// A start that still waits for its end.
struct Open {
    line: u32,
    has_label: bool,
    is_separated: bool,
}

impl<'a> Search<'a> {
    fn new(path: &'a str, size: usize) -> Self {
        Self { path, size, line: 0, prefix: Vec::new(), open: None, findings: Findings::with_limit(PER_FILE) }
    }

    fn take(&mut self, piece: Piece<'_>) {
        if piece.is_start {
            self.line = self.line.saturating_add(1);
            if piece.end != End::Open {
                self.judge(piece.bytes);
                return;
            }
            self.prefix.clear();
        }
        // Enough to tell a label from a space and a CR at the end.
        let room = self.size + 3 - self.prefix.len();
        self.prefix.extend(piece.bytes.iter().take(room));
        if piece.end != End::Open {
            let prefix = std::mem::take(&mut self.prefix);
            self.judge(&prefix);
        }
    }

    /// Judges a line, of which at least the first bytes are given.
    fn judge(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match marker(line, self.size) {
            None => {}
            Some(Marker::Start { has_label }) => {
                self.drop_open();
                self.open = Some(Open { line: self.line, has_label, is_separated: false });
            }
            Some(Marker::Separator) => {
                if let Some(open) = &mut self.open {
                    open.is_separated = true;
                }
            }
            Some(Marker::End { has_label }) => match self.open.take() {
                Some(open) if open.is_separated => self.conflict(open.line),
                open => {
                    self.open = open;
                    self.drop_open();
                    if has_label {
                        self.stray(self.line, '>');
                    }
                }
            },
        }
    }

    /// Gives up on a start whose end will not come.
    fn drop_open(&mut self) {
        if let Some(open) = self.open.take()
            && open.has_label
        {
            self.stray(open.line, '<');
        }
    }

    fn conflict(&mut self, start: u32) {
        let (path, end) = (self.path, Position::new(self.line, self.end_column()));
        self.findings.push(|| {
            Finding::error(CONFLICT, "A merge conflict was not resolved here.")
                .at(path, Position::new(start, 1), end)
                .help("Decide between the two sides and remove the markers.")
        });
    }

    fn stray(&mut self, line: u32, character: char) {
        let (path, end) = (self.path, Position::new(line, self.end_column()));
        let marker = character.to_string().repeat(self.size);
        self.findings.push(|| {
            let message = format!("The conflict marker `{marker}` stands here without the rest of its set.");
            Finding::error(STRAY, message)
                .at(path, Position::new(line, 1), end)
                .help("Remove the line, and look whether anything else was left near it.")
        });
    }

    /// The column after a marker.
    fn end_column(&self) -> u32 {
        // A marker has at most 255 characters.
        u32::try_from(self.size + 1).unwrap_or(u32::MAX)
    }

    fn finish(mut self, report: &mut Report) {
        self.drop_open();
        self.findings.finish(report, CONFLICT, Some(self.path));
    }
}

#[cfg(test)]
mod tests {
    use crate::cases::{Case, places};

    fn case(contents: impl AsRef<[u8]>) -> Case {
        Case::new("conflict-markers").file("a.txt", contents.as_ref())
    }

    /// The rules and places of what is found.
    fn found(contents: impl AsRef<[u8]>) -> Vec<String> {
        let report = case(contents).run();
        let rules = report.findings.iter().map(|it| it.rule.as_str());
        rules
            .zip(places(&report))
            .map(|(rule, place)| format!("{rule} {}", place.trim_start_matches("a.txt:")))
            .collect()
    }

    #[test]
    fn a_conflict_goes_from_its_first_marker_to_its_last() {
        let conflict = "x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\ny\n";
        assert_eq!(found(conflict), ["conflict 2:1-6:8"]);
        assert_eq!(found(conflict.replace('\n', "\r\n")), ["conflict 2:1-6:8"]);
        assert_eq!(found(conflict.trim_end_matches("\ny\n")), ["conflict 2:1-6:8"]);
        assert_eq!(found(conflict.repeat(2)), ["conflict 2:1-6:8", "conflict 9:1-13:8"]);
        assert_eq!(found(b"<<<<<<< \xff\n\xfe\n=======\n>>>>>>> \xff\n"), ["conflict 1:1-4:8"]);
    }

    #[test]
    fn other_styles_of_conflict_are_conflicts_too() {
        let diff3 = "<<<<<<< a\n1\n||||||| base\n2\n=======\n3\n>>>>>>> b\n";
        assert_eq!(found(diff3), ["conflict 1:1-7:8"]);
        let without_labels = "<<<<<<<\n1\n=======\n2\n>>>>>>>\n";
        assert_eq!(found(without_labels), ["conflict 1:1-5:8"]);
        let jujutsu = "<<<<<<< Conflict 1 of 1\n%%%%%%% diff\n-a\n+b\n+++++++ side\nc\n>>>>>>> Conflict 1 of 1 ends\n";
        assert_eq!(found(jujutsu), ["conflict 1:1-7:8"]);
        let nested = "<<<<<<< a\n||||||| m\n<<<<<<<<< t1\n=========\n>>>>>>>>> t2\n=======\n>>>>>>> b\n";
        assert_eq!(found(nested), ["conflict 1:1-7:8"]);
    }

    #[test]
    fn underlines_and_tables_are_no_markers() {
        for text in [
            "Title 1\n=======\n",
            "=======\nTitle 1\n=======\n",
            "||||||| x\n",
            "Title 1\r\n=======\r\n",
            "=======",
            "======= \n",
        ] {
            assert_eq!(found(text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_marker_is_none() {
        for text in [
            " <<<<<<< HEAD\n",
            "<<<<<< HEAD\n",
            "<<<<<<<< HEAD\n",
            "<<<<<<<HEAD\n",
            "<<<<<<<\n",
            ">>>>>>>\n",
            "<<<<<<< \n",
            "x <<<<<<< HEAD\n",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn a_labelled_marker_that_was_missed_is_found() {
        assert_eq!(found("a\n>>>>>>> topic\n"), ["stray-marker 2:1-2:8"]);
        assert_eq!(found("<<<<<<< HEAD"), ["stray-marker 1:1-1:8"]);
        assert_eq!(found("<<<<<<< HEAD\nTitle 1\n=======\ntext\n"), ["stray-marker 1:1-1:8"]);
        assert_eq!(found("<<<<<<< a\n>>>>>>> b\r\n"), ["stray-marker 1:1-1:8", "stray-marker 2:1-2:8"]);
        assert_eq!(found("<<<<<<< a\n<<<<<<< b\n=======\n>>>>>>> c\n"), ["stray-marker 1:1-1:8", "conflict 2:1-4:8"]);
    }

    #[test]
    fn the_size_of_markers_can_be_set() {
        let nine = "<<<<<<<<< a\n=========\n>>>>>>>>> b\n";
        let report = case(nine).config(r#"{"marker-size": 9}"#).run();
        assert_eq!(places(&report), ["a.txt:1:1-3:10"]);
        for size in ["0", "2"] {
            let config = format!(r#"{{"marker-size": {size}}}"#);
            assert!(case(nine).config(&config).refusal().contains("at least 3"));
        }
        assert!(case(nine).config(r#"{"marker-size": 256}"#).refusal().contains("marker-size"));
    }

    #[test]
    fn markers_are_found_however_the_reads_fall() {
        for fill in 65_500..65_540 {
            let text = format!("{}\n<<<<<<< a\r\n=======\r\n{}\n>>>>>>> b", "x".repeat(fill), "y".repeat(100_000));
            assert_eq!(found(&text), ["conflict 2:1-5:8"], "{fill}");
        }
        // A line whose middle looks like a marker, at every offset around the end of a read.
        for fill in 65_520..65_540 {
            let text = format!("{}<<<<<<< a\n", "x".repeat(fill));
            assert_eq!(found(&text), [""; 0], "{fill}");
        }
    }

    #[test]
    fn binary_files_are_skipped() {
        let report = case(b"\0\n<<<<<<< a\n").run();
        assert_eq!(report.findings, []);
        assert_eq!(report.stat("binary-files"), 1);
    }

    #[test]
    fn only_so_many_findings_of_a_file_are_listed() {
        let report = case(">>>>>>> a\n".repeat(300)).run();
        assert_eq!(report.findings.len(), 201);
        assert!(report.findings[200].message.contains("100 more"));
    }
}
