//! The check `trailing-whitespace`.
//!
//! A line is judged by what is at its end only. Nearly all lines are seen whole and end with something else, so that is
//! the first thing that is looked at; [`Line`] is for the others and for lines that arrive in pieces.

use probity_sdk::{Check, Columns, Context, Finding, Mark, Position, Refusal, Report, Rule, Scope};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::findings::{Findings, PER_FILE};
use crate::text::{self, End, Piece};

const RULE: &str = "trailing-whitespace";

pub(crate) fn check() -> Check {
    Check::new(RULE, "No whitespace at the end of lines", run)
        .explain(
            "Judges the end of each line of each text file. The line ending itself, CRLF or LF, is neither judged nor \
             changed. In Markdown files two spaces at the end of a line that is not blank are a hard line break and \
             allowed. A line of nothing but form feeds is a page break and allowed.\n\n\
             Binary files (a NUL byte in the first 8 KiB), symbolic links and submodules are skipped.",
        )
        .scope(Scope::File)
        .need(crate::CONTENTS)
        .rule(Rule::error(
            RULE,
            "A line ends with whitespace.",
            "Whitespace at the end of a line cannot be seen, makes diffs noisy, and in some formats changes the \
             meaning. Remove it; each finding proposes the edit.\n\n\
             In Markdown two spaces at the end of a line are a hard line break, and stay. Where that is not wanted, set \
             `markdown-linebreak = false`; where other files have such line breaks, add their extensions to \
             `markdown-extensions`.",
        ))
}

/// What counts as trailing whitespace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    /// Whether two spaces at the end of a line that is not blank are allowed in Markdown files: they are a hard line
    /// break there.
    markdown_linebreak: bool,
    /// Which files are Markdown: their extensions, without the dot and in any case. `*` means all files.
    markdown_extensions: Vec<String>,
    /// The characters that may not end a line. Space, tab, vertical tab and form feed unless something else is said.
    #[schemars(length(min = 1))]
    characters: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            markdown_linebreak: true,
            markdown_extensions: ["md", "markdown", "mdown", "mkd", "mkdn", "mdx", "qmd", "rmd"]
                .map(str::to_owned)
                .to_vec(),
            characters: " \t\u{b}\u{c}".to_owned(),
        }
    }
}

impl Config {
    fn is_markdown(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        self.markdown_linebreak
            && self
                .markdown_extensions
                .iter()
                .any(|allowed| allowed == "*" || extension.is_some_and(|it| it.eq_ignore_ascii_case(allowed)))
    }
}

/// The characters that may not end a line, made ready for looking at the end of a line.
struct Whitespace {
    ascii: [bool; 128],
    others: Vec<String>,
}

impl Whitespace {
    fn new(characters: &str) -> Result<Self, Refusal> {
        if characters.is_empty() {
            let message = "`characters` is empty, so nothing could ever be found";
            return Err(Refusal::InvalidConfig(message.to_owned()));
        }
        if characters.contains(['\r', '\n']) {
            let message = "`characters` must not contain line endings: CR and LF are never trailing whitespace";
            return Err(Refusal::InvalidConfig(message.to_owned()));
        }
        let mut whitespace = Self { ascii: [false; 128], others: Vec::new() };
        for character in characters.chars() {
            match whitespace.ascii.get_mut(character as usize) {
                Some(is_whitespace) => *is_whitespace = true,
                None => whitespace.others.push(character.to_string()),
            }
        }
        Ok(whitespace)
    }

    /// How long the character of whitespace is that the bytes end with; 0 if they end with something else.
    fn at_end(&self, bytes: &[u8]) -> usize {
        let Some(&last) = bytes.last() else { return 0 };
        if let Some(&is_whitespace) = self.ascii.get(usize::from(last)) {
            return usize::from(is_whitespace);
        }
        let other = self.others.iter().find(|it| bytes.ends_with(it.as_bytes()));
        other.map_or(0, String::len)
    }
}

/// The bytes without the CRs at their end.
fn without_crs(bytes: &[u8]) -> &[u8] {
    let crs = bytes.iter().rev().take_while(|&&byte| byte == b'\r');
    &bytes[..bytes.len() - crs.count()]
}

fn run(config: &Config, ctx: &Context<'_>) -> Result<Report, Refusal> {
    let whitespace = Whitespace::new(&config.characters)?;
    let mut report = Report::new();
    for entry in text::files(ctx) {
        if entry.size == 0 {
            report.count("files", 1);
            continue;
        }
        let has_breaks = config.is_markdown(&entry.path);
        let mut reader = ctx.tree().open(entry)?;
        let mut findings = Findings::with_limit(PER_FILE);
        let mut line = Line::default();
        let mut lines: u64 = 0;
        let is_text = text::for_each_piece(&mut reader, |piece| {
            let is_whole = piece.is_start && piece.end != End::Open;
            if !is_whole || whitespace.at_end(without_crs(piece.bytes)) > 0 {
                line.take(piece, &whitespace);
            }
            if piece.end != End::Open {
                lines += 1;
                if let Some(run) = line.run.take()
                    && let Some(surplus) = run.surplus(has_breaks)
                {
                    findings.push(|| line.finding(&entry.path, lines, run.start, &surplus));
                }
                line = Line::default();
            }
        })?;
        report.count(if is_text { "files" } else { "binary-files" }, 1);
        report.count("lines", lines);
        findings.finish(&mut report, RULE, Some(&entry.path));
    }
    Ok(report)
}

/// A line of which the end is looked for.
#[derive(Default)]
struct Line {
    start: u64,
    columns: Columns,
    run: Option<Run>,
}

/// Whitespace that goes to the end of what was seen of the line so far, but for CRs.
struct Run {
    start: Mark,
    end: Mark,
    /// With how many spaces it ends.
    spaces: u64,
    is_form_feeds: bool,
}

impl Run {
    /// Up to where it has to go; none if it may stay.
    fn surplus(&self, has_breaks: bool) -> Option<Surplus> {
        let is_blank = self.start.bytes() == 0;
        if is_blank && self.is_form_feeds {
            return None;
        }
        let kept = if has_breaks && !is_blank && self.spaces >= 2 { 2 } else { 0 };
        let is_surplus = self.end.bytes() - self.start.bytes() > u64::from(kept);
        is_surplus.then_some(Surplus { end: self.end, kept })
    }
}

/// The part of a run that has to go.
struct Surplus {
    end: Mark,
    /// How many spaces before the end stay.
    kept: u32,
}

impl Line {
    fn take(&mut self, piece: Piece<'_>, whitespace: &Whitespace) {
        if piece.is_start {
            self.start = piece.offset;
        }
        let bytes = piece.bytes;
        let mut tail = bytes.len();
        loop {
            let seen = &bytes[..tail];
            let step = match seen.last() {
                Some(b'\r') => 1,
                _ => whitespace.at_end(seen),
            };
            if step == 0 {
                break;
            }
            tail -= step;
        }

        let goes_on = tail == 0 && self.run.is_some();
        if !goes_on {
            // CRs before the first whitespace belong to the text: an old Mac's line ending is not whitespace.
            tail += bytes[tail..].iter().take_while(|&&byte| byte == b'\r').count();
            self.run = None;
            self.columns.push(&bytes[..tail]);
        }
        let rest = &bytes[tail..];
        let body = without_crs(rest);
        if !body.is_empty() {
            let before = self.columns.mark();
            self.columns.push(body);
            let spaces = body.iter().rev().take_while(|&&byte| byte == b' ').count();
            let is_form_feeds = body.iter().all(|&byte| byte == b'\x0c');
            self.run = Some(match self.run.take() {
                None => Run { start: before, end: self.columns.mark(), spaces: spaces as u64, is_form_feeds },
                Some(run) => Run {
                    start: run.start,
                    end: self.columns.mark(),
                    spaces: if spaces == body.len() && run.end == before {
                        run.spaces + spaces as u64
                    } else {
                        spaces as u64
                    },
                    is_form_feeds: run.is_form_feeds && is_form_feeds && run.end == before,
                },
            });
        }
        self.columns.push(&rest[body.len()..]);
    }

    fn finding(&self, path: &str, line: u64, start: Mark, surplus: &Surplus) -> Finding {
        let &Surplus { end, kept } = surplus;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        let message = if kept > 0 {
            "This line ends with more whitespace than the two spaces of a Markdown line break."
        } else {
            "This line ends with whitespace."
        };
        Finding::error(RULE, message)
            .at(
                path,
                Position::new(line, self.columns.column(start)),
                Position::new(line, self.columns.column(end) - kept),
            )
            .edit(path, self.start + start.bytes(), self.start + end.bytes() - u64::from(kept), "")
    }
}

#[cfg(test)]
mod tests {
    use crate::cases::{Case, edited, places};

    fn case(contents: &[u8]) -> Case {
        Case::new("trailing-whitespace").file("a.txt", contents)
    }

    /// What is left of a file after the proposed edits.
    fn cleaned(contents: &[u8]) -> Vec<u8> {
        edited(contents, &case(contents).run())
    }

    #[test]
    fn whitespace_before_each_kind_of_line_ending_is_removed_and_the_ending_kept() {
        for (before, after) in [
            (&b"a \n"[..], &b"a\n"[..]),
            (b"a\t\x0b\x0c \n", b"a\n"),
            (b"a \r\n", b"a\r\n"),
            (b"a \r\r\n", b"a\r\r\n"),
            (b"a ", b"a"),
            (b"  \n", b"\n"),
            (b"\n \n\n\t\nx\n", b"\n\n\n\nx\n"),
            (b"a \r", b"a\r"),
            (b"a \r \n", b"a\n"),
            (b"\xff \n\xfe\n", b"\xff\n\xfe\n"),
        ] {
            assert_eq!(cleaned(before), after, "{before:?}");
        }
    }

    #[test]
    fn lines_that_end_with_something_else_are_left_alone() {
        for contents in
            [&b""[..], b"\n", b"a\n", b"a\r\n", b"a\r\r\n", b"a\r", b"a\rb\r", b" a\n", b"a\xc2\xa0\n", b"\r"]
        {
            assert_eq!(case(contents).run().findings, [], "{contents:?}");
        }
    }

    #[test]
    fn a_line_of_form_feeds_is_a_page_break() {
        assert_eq!(cleaned(b"a\n\x0c\nb\x0c\n\x0c\r\n\x0c \n"), b"a\n\x0c\nb\n\x0c\r\n\n");
    }

    #[test]
    fn places_count_characters_and_bytes_where_there_are_none() {
        let report = case("aé🦀 \t\nx\n\u{e9}  ".as_bytes()).run();
        assert_eq!(places(&report), ["a.txt:1:4-1:6", "a.txt:3:2-3:4"]);
        let report = case(b"\xc3\xa9\xff \n").run();
        assert_eq!(places(&report), ["a.txt:1:4-1:5"]);
    }

    #[test]
    fn a_hard_line_break_of_markdown_stays() {
        let contents = b"a  \nb   \nc \n  \nd\t  \r\ne  \t\n";
        let run = |name, config| {
            let case = Case::new("trailing-whitespace").file(name, contents);
            edited(contents, &case.config(config).run())
        };
        let kept = b"a  \nb  \nc\n\nd  \r\ne\n";
        let stripped = b"a\nb\nc\n\nd\r\ne\n";
        assert_eq!(run("a.md", "{}"), kept);
        assert_eq!(run("b/a.MarkDown", "{}"), kept);
        assert_eq!(run("a.txt", "{}"), stripped);
        assert_eq!(run("md", "{}"), stripped);
        assert_eq!(run("x.md/a", "{}"), stripped);
        assert_eq!(run("a.md", r#"{"markdown-linebreak": false}"#), stripped);
        assert_eq!(run("a.txt", r#"{"markdown-extensions": ["txt"]}"#), kept);
        assert_eq!(run("a", r#"{"markdown-extensions": ["*"]}"#), kept);
    }

    #[test]
    fn other_characters_can_be_named() {
        let run = |contents: &[u8], config| edited(contents, &case(contents).config(config).run());
        let space = r#"{"characters": " "}"#;
        assert_eq!(run(b"a\t\nb \n", space), b"a\t\nb\n");
        // Characters are compared, not their bytes: the second ends with the same byte as the first.
        let accent = r#"{"characters": "\u00e9"}"#;
        assert_eq!(run("aé\na©\n".as_bytes(), accent), "a\na©\n".as_bytes());
        let wide = r#"{"characters": " \u3000"}"#;
        assert_eq!(run("a\u{3000} \u{3000}\n".as_bytes(), wide), b"a\n");
    }

    #[test]
    fn a_configuration_without_sense_is_refused() {
        for config in [r#"{"characters": ""}"#, r#"{"characters": " \n"}"#, r#"{"chars": " "}"#] {
            assert!(case(b"a").config(config).refusal().contains("characters"), "{config}");
        }
    }

    #[test]
    fn binary_files_are_skipped_and_counted() {
        let report = case(b"a \n\0").run();
        assert_eq!(report.findings, []);
        assert_eq!(report.stat("binary-files"), 1);
        assert_eq!(report.stat("files"), 0);
    }

    #[test]
    fn long_runs_and_long_lines_are_seen_whole_however_the_reads_fall() {
        for fill in [65_530, 65_534, 65_535, 65_536, 65_537, 140_000] {
            for run in [1, 5, 70_000] {
                for end in ["", "\n", "\r\n", " \r\r\nnext\n"] {
                    let text = format!("{}é", "x".repeat(fill));
                    let contents = format!("{text}{}{end}", " ".repeat(run));
                    let expected = format!("{text}{}", end.trim_start_matches(' '));
                    assert!(cleaned(contents.as_bytes()) == expected.as_bytes(), "{fill} {run} {end:?}");
                }
            }
        }
    }

    #[test]
    fn whitespace_inside_a_long_line_is_not_at_its_end() {
        let contents = format!("{}x\n", "a \r".repeat(50_000));
        assert_eq!(case(contents.as_bytes()).run().findings, []);
    }

    #[test]
    fn only_so_many_findings_of_a_file_are_listed() {
        let report = case(&b"a \n".repeat(1_000)).run();
        assert_eq!(report.findings.len(), 201);
        let note = report.findings.last().unwrap();
        assert_eq!(note.message, "Only the first 200 findings are listed; there are 800 more.");
        assert_eq!(note.severity, probity_sdk::Severity::Note);
        assert_eq!(report.stat("lines"), 1_000);
    }
}
