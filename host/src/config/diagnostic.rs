//! Diagnostics: what is wrong at which place of a text, and what to write instead.
//!
//! A diagnostic is a plain value; only the renderer here turns it into lines with carets. Must not print, and must
//! not let a control character of the text or of a name reach the terminal.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use std::fmt::Write;
use std::ops::Range;

/// A file full of mistakes is one mistake made many times: what is beyond this many is only counted.
pub const MAX_SHOWN: usize = 50;

/// Characters of one sentence of a message. Names in it are shortened before; this bounds what is left.
const MAX_SENTENCE: usize = 2000;

/// Characters of a name that a message repeats. The snippet shows the rest.
const MAX_QUOTED: usize = 60;

/// A text and the name under which people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path to show: relative to where the user stands.
    pub name: String,
    /// The whole text, byte for byte as it was read, so that its digest is the digest of the file.
    pub text: String,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// One line that says what is wrong.
    pub title: String,
    /// Where, in bytes. None where the whole text is meant.
    pub span: Option<Range<usize>>,
    /// What stands there, shown beside the carets.
    pub label: Option<String>,
    /// Other places that belong to it, each with its label.
    pub also: Vec<(Range<usize>, String)>,
    /// What to write instead; may have several lines.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A mistake at a place.
    pub fn new(span: Range<usize>, title: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::whole(title) }
    }

    /// A mistake of the text as a whole.
    pub fn whole(title: impl Into<String>) -> Self {
        Self { title: title.into(), span: None, label: None, also: Vec::new(), help: Vec::new() }
    }

    /// Says what stands at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Points to another place.
    #[must_use]
    pub fn also(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }

    /// Says what to write instead. Each call adds a paragraph.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

/// Whether a rendered text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Off,
    /// ANSI sequences.
    On,
}

/// Puts a name between backticks, shortened if it is very long.
pub fn quote(name: &str) -> String {
    match name.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("`{}…`", &name[..end]),
        None => format!("`{name}`"),
    }
}

/// Renders mistakes in the order of the text, with a line at the end for those beyond [`MAX_SHOWN`].
pub fn render(diagnostics: &[Diagnostic], source: &Source, colour: Colour) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|diagnostic| diagnostic.span.as_ref().map(|span| span.start));
    let shown = sorted.iter().take(MAX_SHOWN).map(|diagnostic| one(diagnostic, Some(source), colour));
    let mut out = shown.collect::<Vec<_>>().join("\n");
    let hidden = sorted.len().saturating_sub(MAX_SHOWN);
    if hidden > 0 {
        let mistakes = if hidden == 1 { "mistake is" } else { "mistakes are" };
        out.push('\n');
        out.push_str(&one(&Diagnostic::whole(format!("{hidden} more {mistakes} not shown")), None, colour));
    }
    out
}

/// Renders one mistake, with its source or without any.
pub(super) fn one(diagnostic: &Diagnostic, source: Option<&Source>, colour: Colour) -> String {
    let mut group = Level::ERROR.primary_title(escape_line(&diagnostic.title)).elements(None::<Origin<'_>>);
    if let Some(source) = source {
        let name = escape_line(&source.name);
        group = match &diagnostic.span {
            None => group.element(Origin::path(name)),
            Some(span) => {
                let window = Window::new(&source.text, span, &diagnostic.also);
                let primary =
                    AnnotationKind::Primary.span(window.primary).label(diagnostic.label.as_deref().map(escape_line));
                let also = window.also.into_iter().map(|(span, label)| AnnotationKind::Context.span(span).label(label));
                let snippet = Snippet::source(window.text).line_start(window.line).path(name);
                group.element(snippet.annotation(primary).annotations(also))
            }
        };
    }
    let group = group.elements(diagnostic.help.iter().map(|help| Level::HELP.message(escape_lines(help))));
    let renderer = match colour {
        Colour::Off => Renderer::plain(),
        Colour::On => Renderer::styled(),
    };
    // Blank lines of a help would end in the spaces that indent it.
    let text = renderer.render(&[group]);
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The lines that a diagnostic is about, fit to be shown.
struct Window {
    /// The number of the first line.
    line: usize,
    text: String,
    primary: Range<usize>,
    also: Vec<(Range<usize>, String)>,
}

impl Window {
    fn new(text: &str, span: &Range<usize>, also: &[(Range<usize>, String)]) -> Self {
        let primary = within_one_line(text, span);
        let also: Vec<_> = also.iter().map(|(span, label)| (within_one_line(text, span), escape_line(label))).collect();
        let spans = || also.iter().map(|(span, _)| span).chain([&primary]);
        let first = spans().map(|span| span.start).min().unwrap_or(0);
        let last = spans().map(|span| span.end).max().unwrap_or(0);
        let mut start = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
        let end = line_end(text, last);
        let line = text[..start].matches('\n').count() + 1;
        if start == 0 && text.starts_with('\u{feff}') {
            // A byte order mark is no part of what is written in the line.
            start = '\u{feff}'.len_utf8().min(first);
        }
        // Escaping goes character by character, so the length of an escaped prefix is the place of what follows it.
        let place = |at: usize| escape_source(&text[start..at]).len();
        let map = |span: &Range<usize>| place(span.start)..place(span.end);
        Self {
            line,
            text: escape_source(&text[start..end]),
            primary: map(&primary),
            also: also.iter().map(|(span, label)| (map(span), label.clone())).collect(),
        }
    }
}

/// The part of a span that is in its first line: a table of a hundred lines is recognised by its first.
fn within_one_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = text.floor_char_boundary(span.start);
    if start == text.len() && text.ends_with('\n') {
        // After the last line there is nothing to point at.
        start -= 1;
    }
    if text[..start].ends_with('\r') && text[start..].starts_with('\n') {
        start -= 1;
    }
    let end = text.ceil_char_boundary(span.end.min(text.len()));
    start..end.min(line_end(text, start)).max(start)
}

/// The end of the line that has the place, before LF or CR LF.
fn line_end(text: &str, at: usize) -> usize {
    match text[at..].find('\n') {
        Some(length) if text[at..at + length].ends_with('\r') => at + length - 1,
        Some(length) => at + length,
        None => text.len(),
    }
}

/// Whether a character steers a terminal, changes the direction of text or is not seen at all.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}

fn escape_with(text: &str, keep: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_hidden(c) && !keep(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

fn escape_line(text: &str) -> String {
    escape_with(bounded(text), |_| false)
}

fn escape_lines(text: &str) -> String {
    escape_with(bounded(text), |c| c == '\n')
}

fn bounded(text: &str) -> &str {
    text.char_indices().nth(MAX_SENTENCE).map_or(text, |(end, _)| &text[..end])
}

fn escape_source(text: &str) -> String {
    escape_with(&text.replace("\r\n", "\n"), |c| matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, diagnostics: &[Diagnostic]) -> String {
        render(diagnostics, &Source { name: "probity.toml".to_owned(), text: text.to_owned() }, Colour::Off)
    }

    fn at(text: &str, part: &str) -> Diagnostic {
        let start = text.find(part).unwrap();
        Diagnostic::new(start..start + part.len(), "no good").label("this")
    }

    #[test]
    fn carets_are_below_what_is_wrong() {
        let text = "a = 1\nb = \"x\" # c\n";
        insta::assert_snapshot!(show(text, &[at(text, "\"x\"").help("write\n  b = 1").help("or nothing")]), @r#"
        error: no good
         --> probity.toml:2:5
          |
        2 | b = "x" # c
          |     ^^^ this
          |
          = help: write
                    b = 1
          = help: or nothing
        "#);
    }

    #[test]
    fn mistakes_come_in_the_order_of_the_text() {
        let text = "a = 1\nb = 2\n";
        insta::assert_snapshot!(show(text, &[at(text, "b"), Diagnostic::whole("all of it").help("look"), at(text, "a")]), @r#"
        error: all of it
        --> probity.toml
         = help: look

        error: no good
         --> probity.toml:1:1
          |
        1 | a = 1
          | ^ this

        error: no good
         --> probity.toml:2:1
          |
        2 | b = 2
          | ^ this
        "#);
    }

    #[test]
    fn other_places_are_shown_too() {
        let text = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n";
        insta::assert_snapshot!(show(text, &[at(text, "e").also(0..1, "first here")]), @r#"
        error: no good
         --> probity.toml:5:1
          |
        1 | a = 1
          | - first here
        ...
        5 | e = 5
          | ^ this
        "#);
    }

    #[test]
    fn windows_line_ends_and_tabs_keep_the_columns() {
        let text = "a = 1\r\n\tb =\t\"x\"\r\nc = 2\r\n";
        insta::assert_snapshot!(show(text, &[at(text, "\"x\"")]), @r#"
        error: no good
         --> probity.toml:2:6
          |
        2 |     b =    "x"
          |            ^^^ this
        "#);
    }

    #[test]
    fn wide_characters_keep_the_columns() {
        let text = "a = [\"é\", \"漢字\", \"x\"]";
        insta::assert_snapshot!(show(text, &[at(text, "\"x\"")]), @r#"
        error: no good
         --> probity.toml:1:17
          |
        1 | a = ["é", "漢字", "x"]
          |                   ^^^ this
        "#);
    }

    #[test]
    fn a_byte_order_mark_is_not_shown() {
        let text = "\u{feff}a = 1";
        insta::assert_snapshot!(show(text, &[at(text, "1")]), @r#"
        error: no good
         --> probity.toml:1:5
          |
        1 | a = 1
          |     ^ this
        "#);
    }

    #[test]
    fn nothing_of_the_text_steers_the_terminal() {
        let text = "a = \"\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\r\u{7}\" # \u{0}\nb";
        let mistake = at(text, "#").help("not \u{1b}[0m\nbut \u{9b}");
        let mistake = Diagnostic { title: "bad \u{1b}]0;title\u{7}\n".to_owned(), ..mistake }.label("\u{202e}label\n");
        let shown = show(text, &[mistake]);
        assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)), "{shown:?}");
        insta::assert_snapshot!(shown, @r#"
        error: bad \u{1b}]0;title\u{7}\u{a}
         --> probity.toml:1:52
          |
        1 | a = "\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\u{d}\u{7}" # \u{0}
          |                                                    ^ \u{202e}label\u{a}
          |
          = help: not \u{1b}[0m
                  but \u{9b}
        "#);
    }

    #[test]
    fn names_of_files_are_escaped() {
        let source = Source { name: "a\u{1b}[1m\nb".to_owned(), text: "x".to_owned() };
        for mistake in [Diagnostic::new(0..1, "no good"), Diagnostic::whole("no good")] {
            let shown = render(&[mistake], &source, Colour::Off);
            assert!(shown.contains("a\\u{1b}[1m\\u{a}b"), "{shown}");
        }
    }

    #[test]
    fn any_span_can_be_rendered() {
        let text = "é = 1\r\n\r\n漢 = \"\u{9b}\"\n\n";
        for text in [text, "", "\n", "\r\n", "\u{feff}", "x", "\u{feff}\r\n"] {
            for start in 0..text.len() + 3 {
                for end in 0..text.len() + 3 {
                    let mistake = Diagnostic::new(start..end, "no good").label("l").also(end..start, "also");
                    assert!(show(text, &[mistake]).contains("no good"));
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_text_can_be_pointed_at() {
        let text = "a = [\n";
        insta::assert_snapshot!(show(text, &[Diagnostic::new(6..6, "unclosed array")]), @r#"
        error: unclosed array
         --> probity.toml:1:6
          |
        1 | a = [
          |      ^
        "#);
    }

    #[test]
    fn of_a_long_value_the_first_line_is_shown() {
        let text = "a = [\n  1,\n  2,\n]\n";
        insta::assert_snapshot!(show(text, &[at(text, "[\n  1,\n  2,\n]")]), @r#"
        error: no good
         --> probity.toml:1:5
          |
        1 | a = [
          |     ^ this
        "#);
    }

    #[test]
    fn of_a_long_line_only_a_part_is_shown() {
        let text = format!("a = [{}7, {}]", "1, ".repeat(300_000), "2, ".repeat(30_000));
        insta::assert_snapshot!(show(&text, &[at(&text, "7")]), @r#"
        error: no good
         --> probity.toml:1:900006
          |
        1 | ..., 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,...
          |                                                                  ^ this
        "#);
    }

    #[test]
    fn more_than_a_screenful_is_counted() {
        let text = "a\n".repeat(200);
        let mistakes: Vec<_> = (0..200).map(|n| Diagnostic::new(2 * n..2 * n + 1, format!("mistake {n}"))).collect();
        let shown = show(&text, &mistakes);
        assert_eq!(shown.matches("error: mistake").count(), MAX_SHOWN);
        assert!(shown.ends_with("\nerror: 150 more mistakes are not shown\n"), "{shown}");
    }

    #[test]
    fn colours_are_used_on_request_only() {
        let source = Source { name: "x".to_owned(), text: "y".to_owned() };
        let mistake = [Diagnostic::new(0..1, "no good")];
        assert!(render(&mistake, &source, Colour::On).contains("\u{1b}["));
        assert!(!render(&mistake, &source, Colour::Off).contains('\u{1b}'));
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(quote("é"), "`é`");
        assert_eq!(quote(&"é".repeat(61)).chars().count(), 63);
    }
}
