//! Texts that somebody else wrote, made fit to be shown.

/// Makes control characters, and those that change the direction of text or are not seen at all, visible as `\u{…}`:
/// what a pack, a file name or a program says must not steer a terminal or disguise a line.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// The same for a JSON document, in which they become `\u…`: it says what it said, to whoever parses it. Control
/// characters in texts are written so already; those between texts are its line ends.
pub fn escape_in_json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{61c}' | '\u{e0000}'..='\u{e007f}')
}

/// What a program wrote for a terminal, as text: escape sequences (colours, cursor movements, titles) go, and of a
/// line that was written over, the last version stays.
pub fn without_codes(text: &str) -> String {
    let stripped = anstream::adapter::strip_str(text).to_string();
    let last_version = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    stripped.split('\n').map(last_version).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_for_a_terminal_becomes_text() {
        assert_eq!(without_codes("\x1b[1;31mred\x1b[0m\r\n10%\r100%\n"), "red\n100%\n");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(escape("a\x1b[31mb\r\n"), "a\\u{1b}[31mb\\u{d}\\u{a}");
        assert_eq!(escape("x\u{202e}y\u{200b}\u{9b}"), "x\\u{202e}y\\u{200b}\\u{9b}");
        let document = serde_json::json!({ "a": "x\u{9b}\u{202e}\u{e0001}\u{7f}é😀\n" });
        let written = escape_in_json(&format!("{document:#}"));
        assert_eq!(written, "{\n  \"a\": \"x\\u009b\\u202e\\udb40\\udc01\\u007fé😀\\n\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), document);
        assert_eq!(escape("plain é 漢 😀"), "plain é 漢 😀");
    }
}
