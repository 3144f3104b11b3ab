//! The check `final-newline`.
//!
//! Only the end of a file is judged, so of a large file only the start (is it text?) and the end are read. Line numbers
//! need all of it; so it is read whole only once something was found.

use memchr::{memchr, memrchr};
use probity_sdk::{Check, Context, Entry, Finding, ReadFailed, Reader, Refusal, Report, Rule, Scope};

use crate::text;

const MISSING: &str = "missing-newline";
const EXTRA: &str = "extra-newlines";
const BLANK: &str = "only-newlines";

pub(crate) fn check() -> Check {
    Check::without_config("final-newline", "One line ending at the end of files", run)
        .explain(
            "Each text file has to end with exactly one line ending; an empty file is fine. A file of nothing but line \
             endings should be empty. LF and CRLF are line endings, and so is CR alone in a file that has no LF.\n\n\
             Binary files (a NUL byte in the first 8 KiB), symbolic links and submodules are skipped.",
        )
        .scope(Scope::File)
        .need(crate::CONTENTS)
        .rule(Rule::error(
            MISSING,
            "A file does not end with a line ending.",
            "A text file is a sequence of lines, and each line has an ending. Without the last one, tools that put files \
             together or add to them join two lines, and diffs show a change where there is none. The proposed edit \
             adds the line ending that the file uses: CRLF in a file with CRLF.",
        ))
        .rule(Rule::error(
            EXTRA,
            "A file ends with blank lines.",
            "Blank lines at the end say nothing and make diffs noisy. The proposed edit keeps the first line ending and \
             removes the others.",
        ))
        .rule(Rule::error(
            BLANK,
            "A file holds nothing but line endings.",
            "It looks empty and is not. The proposed edit makes it empty.",
        ))
}

fn run(ctx: &Context<'_>) -> Result<Report, Refusal> {
    let mut report = Report::new();
    for entry in text::files(ctx) {
        if entry.size == 0 {
            report.count("files", 1);
            continue;
        }
        let mut reader = ctx.tree().open(entry)?;
        match end_of(&mut reader, entry.size)? {
            End::Binary => report.count("binary-files", 1),
            End::Good => report.count("files", 1),
            End::Missing(newline) => {
                report.count("files", 1);
                report.push(missing(entry, &mut reader, newline)?);
            }
            End::Extra { from } => {
                report.count("files", 1);
                report.push(extra(entry, &mut reader, from)?);
            }
        }
    }
    Ok(report)
}

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Binary,
    /// With one line ending.
    Good,
    /// Without a line ending; the file's others are like this.
    Missing(&'static str),
    /// With line endings too many, from here on.
    Extra {
        from: u64,
    },
}

fn end_of(reader: &mut Reader, size: u64) -> Result<End, ReadFailed> {
    // A small file comes whole with the first read; of a large one that read only says whether it is text.
    let whole = reader.next_len();
    let is_small = whole as u64 == size;
    let mut first = vec![0; if is_small { whole } else { text::BINARY_TEST }];
    reader.fill(&mut first)?;
    if text::is_binary(&first) {
        return Ok(End::Binary);
    }
    if is_small {
        return Ok(match run_start(&first) {
            Some(start) => surplus(&first[start..], start as u64, size),
            None => End::Missing(newline(&first).unwrap_or("\n")),
        });
    }

    let mut last = vec![0; Reader::CHUNK];
    let mut offset = size;
    loop {
        // Backwards, but only on and on while there is nothing but line endings.
        let len = offset.min(Reader::CHUNK as u64);
        offset -= len;
        reader.seek(offset)?;
        // At most `CHUNK`, so it fits.
        last.truncate(usize::try_from(len).unwrap_or(Reader::CHUNK));
        reader.fill(&mut last)?;
        match run_start(&last) {
            None if offset + len == size => {
                // The cut may be inside of a CRLF, so an LF at the start of the piece says nothing.
                let rest = last.strip_prefix(b"\n").unwrap_or(&last);
                let found = newline(rest).or_else(|| newline(&first));
                return Ok(End::Missing(found.unwrap_or("\n")));
            }
            // The run starts where the piece that was read before this one starts.
            None => {
                reader.seek(offset + len)?;
                last.resize(Reader::CHUNK, 0);
                let filled = reader.fill(&mut last)?;
                return Ok(surplus(&last[..filled], offset + len, size));
            }
            Some(0) if offset > 0 => {}
            Some(start) => return Ok(surplus(&last[start..], offset + start as u64, size)),
        }
    }
}

/// Where the line endings at the end start; none if the last byte is something else.
fn run_start(bytes: &[u8]) -> Option<usize> {
    let others = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    let start = others.map_or(0, |at| at + 1);
    (start < bytes.len()).then_some(start)
}

/// Judges the line endings at the end: the file's last ones, of which at least the first few are given.
fn surplus(run: &[u8], offset: u64, size: u64) -> End {
    if offset == 0 {
        return End::Extra { from: 0 };
    }
    // CRs and the LF after them are one ending. CRs that no LF follows are an old Mac's endings, one each.
    let crs = run.iter().take_while(|&&byte| byte == b'\r').count();
    let first = match run.get(crs) {
        Some(_) => crs + 1,
        None => 1,
    };
    let from = offset + first as u64;
    if from < size { End::Extra { from } } else { End::Good }
}

/// The kind of line ending that the last whole line has.
fn newline(bytes: &[u8]) -> Option<&'static str> {
    match memrchr(b'\n', bytes) {
        Some(lf) if bytes[..lf].ends_with(b"\r") => Some("\r\n"),
        Some(_) => Some("\n"),
        None => memchr(b'\r', bytes).map(|_| "\r"),
    }
}

fn missing(entry: &Entry, reader: &mut Reader, newline: &str) -> Result<Finding, ReadFailed> {
    let (end, _) = text::locate(reader, entry.size, entry.size)?;
    Ok(Finding::error(MISSING, "The file does not end with a line ending.").at(&entry.path, end, None).edit(
        &entry.path,
        entry.size,
        entry.size,
        newline,
    ))
}

fn extra(entry: &Entry, reader: &mut Reader, from: u64) -> Result<Finding, ReadFailed> {
    let (start, end) = text::locate(reader, from, entry.size)?;
    let (rule, message) = if from == 0 {
        (BLANK, "The file holds nothing but line endings.")
    } else {
        (EXTRA, "The file ends with blank lines.")
    };
    Ok(Finding::error(rule, message).at(&entry.path, start, end).edit(&entry.path, from, entry.size, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Case, edited, places};

    fn case(contents: &[u8]) -> Case {
        Case::new("final-newline").file("a.txt", contents)
    }

    /// The only finding's rule, and the file after its edit.
    fn found(contents: &[u8]) -> (String, Vec<u8>) {
        let report = case(contents).run();
        assert_eq!(report.findings.len(), 1, "{contents:?}");
        (report.findings[0].rule.clone(), edited(contents, &report))
    }

    #[test]
    fn one_line_ending_of_any_kind_is_enough() {
        for contents in [&b""[..], b"a\n", b"a\r\n", b"a\r", b"a\rb\r", b"a\r\r\n", b"\n\na\n", b"a\n \n", b"\xff\n"] {
            assert_eq!(case(contents).run().findings, [], "{contents:?}");
        }
    }

    #[test]
    fn a_missing_line_ending_is_added_as_the_file_has_them() {
        for (before, after) in [
            (&b"a"[..], &b"a\n"[..]),
            (b"a\nb", b"a\nb\n"),
            (b"a\r\nb", b"a\r\nb\r\n"),
            (b"a\rb", b"a\rb\r"),
            (b"a\r\nb\nc", b"a\r\nb\nc\n"),
            (b"a ", b"a \n"),
            (b"\xff", b"\xff\n"),
        ] {
            assert_eq!(found(before), (MISSING.to_owned(), after.to_vec()));
        }
    }

    #[test]
    fn all_but_the_first_line_ending_are_removed() {
        for (before, after) in [
            (&b"a\n\n"[..], &b"a\n"[..]),
            (b"a\n\n\n", b"a\n"),
            (b"a\r\n\r\n", b"a\r\n"),
            (b"a\r\n\n", b"a\r\n"),
            (b"a\n\r\n", b"a\n"),
            (b"a\n\r", b"a\n"),
            (b"a\r\r", b"a\r"),
        ] {
            assert_eq!(found(before), (EXTRA.to_owned(), after.to_vec()));
        }
    }

    #[test]
    fn a_file_of_line_endings_becomes_empty() {
        for contents in [&b"\n"[..], b"\n\n", b"\r\n", b"\r", &b"\n".repeat(200_000)] {
            assert_eq!(found(contents), (BLANK.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn places_are_the_surplus_or_the_end() {
        assert_eq!(places(&case("aé\nbé".as_bytes()).run()), ["a.txt:2:3"]);
        assert_eq!(places(&case(b"a\n\n\n").run()), ["a.txt:2:1-4:1"]);
        assert_eq!(places(&case(b"\n\n").run()), ["a.txt:1:1-3:1"]);
        assert_eq!(places(&case(b"a\r\r").run()), ["a.txt:1:3-1:4"]);
    }

    #[test]
    fn large_files_are_judged_like_small_ones() {
        let is = |contents: &[u8], rule: &str, after: Vec<u8>| {
            // Not `assert_eq`, which would print it all.
            assert!(found(contents) == (rule.to_owned(), after), "{}", contents.len());
        };
        for fill in [65_534, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let text = [b"x\r\n".to_vec(), vec![b'a'; fill]].concat();
            let ends = |end: &[u8]| [&text[..], end].concat();
            is(&text, MISSING, ends(b"\r\n"));
            assert_eq!(case(&ends(b"\n")).run().findings, []);
            assert_eq!(case(&ends(b"\r\n")).run().findings, []);
            for run in [2, 65_535, 65_536, 65_537, 131_072, 150_000] {
                let before = ends(&b"\n".repeat(run));
                is(&before, EXTRA, ends(b"\n"));
                let before = ends(&b"\r\n".repeat(run));
                is(&before, EXTRA, ends(b"\r\n"));
            }
        }
    }

    #[test]
    fn binary_files_are_skipped() {
        for contents in [b"\0".to_vec(), [b"\0".to_vec(), vec![b'x'; 100_000]].concat()] {
            let report = case(&contents).run();
            assert_eq!(report.findings, []);
            assert_eq!(report.stat("binary-files"), 1);
        }
    }

    #[test]
    fn it_takes_no_configuration() {
        let refusal = case(b"").config(r#"{"a": 1}"#).refusal();
        assert!(refusal.contains("no configuration"), "{refusal}");
    }
}
