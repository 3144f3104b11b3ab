//! Argument lists: a program and its arguments. What is written, and what it means.
//!
//! Must not let a shell in: a line in the place of a list is refused, with the list to write.

use super::diagnostic::Diagnostic;
use super::reader::{At, Reader, wrong};
use toml::Spanned;
use toml::de::DeValue;

/// An argument list: a program and its arguments.
pub(super) type Argv = Vec<At<String>>;

/// Arguments that stand for several.
pub(super) const FILES: &str = "{files}";
pub(super) const TESTS: &str = "{tests}";

/// The value of `command`.
pub(super) fn read(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<Argv>> {
    match value.get_ref() {
        DeValue::String(text) => {
            let diagnostic = wrong(name, "a list of strings", value.get_ref(), value.span());
            // One item of `commands` stands for itself.
            let key = if name == "commands" { String::new() } else { format!("{name} = ") };
            reader.report(diagnostic.help(no_shell(&format!("{key}{}", as_argv(text)))));
            None
        }
        _ => {
            reader.strings(name, value, Some("write for example `[\"cargo\", \"test\"]`: a program and its arguments"))
        }
    }
}

/// The value of `commands`.
pub(super) fn commands(reader: &mut Reader, name: &str, value: &Spanned<DeValue<'_>>) -> Option<At<Vec<At<Argv>>>> {
    const EXPECTED: &str = "a list of lists of strings";
    let strings = |items: &[Spanned<DeValue<'_>>]| -> Option<Vec<String>> {
        items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
    };
    let items = match value.get_ref() {
        DeValue::Array(items) => items,
        other => {
            let example = other.as_str().map_or_else(|| "[\"cargo\", \"test\"]".to_owned(), as_argv);
            let diagnostic = wrong(name, EXPECTED, other, value.span());
            reader.report(diagnostic.help(no_shell(&format!("{name} = [{example}]"))));
            return None;
        }
    };
    if let Some(texts) = strings(items).filter(|texts| !texts.is_empty()) {
        // Several words in one string are a command line; words alone are the arguments of one command.
        let lines = texts.iter().any(|text| text.contains(char::is_whitespace));
        let example = if lines {
            texts.iter().take(3).map(|text| as_argv(text)).collect::<Vec<_>>().join(", ")
        } else {
            as_argv(&texts.join(" "))
        };
        let diagnostic =
            Diagnostic::new(value.span(), format!("`{name}`: expected {EXPECTED}, found a list of strings"));
        let diagnostic = diagnostic.label("this is a list of strings");
        reader.report(diagnostic.help(no_shell(&format!("{name} = [{example}]"))));
        return None;
    }
    let items: Vec<_> = items.iter().map(|item| read(reader, name, item)).collect();
    Some(At { value: items.into_iter().collect::<Option<_>>()?, span: value.span() })
}

fn no_shell(example: &str) -> String {
    format!("write `{example}`: Probity never uses a shell, so each argument is a string of its own")
}

/// A command line as an argument list: split at blanks, unless a shell would do more with it.
fn as_argv(line: &str) -> String {
    // More than a line of the terminal is no example.
    const LONGEST: usize = 100;
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:,+@%".contains(c);
    if !line.chars().all(plain) || line.trim().is_empty() || line.len() > LONGEST {
        return "[\"program\", \"argument\"]".to_owned();
    }
    let words: Vec<String> = line.split_whitespace().map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", words.join(", "))
}

/// The program and its arguments, which can be started as far as that can be known.
pub(super) fn resolve(argv: &At<Argv>, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<String>> {
    let before = diagnostics.len();
    match argv.value.first() {
        None => {
            let diagnostic = Diagnostic::new(argv.span.clone(), "the command is empty");
            diagnostics.push(diagnostic.help("write a program and its arguments, or remove it"));
        }
        Some(program) if program.value.is_empty() => {
            let diagnostic = Diagnostic::new(program.span.clone(), "the name of the program is empty");
            diagnostics.push(diagnostic.help("write the program first, then its arguments"));
        }
        Some(_) => {}
    }
    for argument in &argv.value {
        if argument.value.contains('\0') {
            let diagnostic = Diagnostic::new(argument.span.clone(), "the argument has a NUL character");
            diagnostics.push(diagnostic.help("no program can receive one"));
        }
        for name in [FILES, TESTS].into_iter().filter(|name| argument.value.contains(name) && argument.value != **name)
        {
            let title = format!("`{name}` stands for several arguments, and is part of one here");
            let diagnostic = Diagnostic::new(argument.span.clone(), title);
            let help = "write it as an argument of its own, or `{files0}` for a file that lists all files";
            diagnostics.push(diagnostic.help(help));
        }
    }
    let arguments = || argv.value.iter().map(|argument| argument.value.clone()).collect();
    (diagnostics.len() == before).then(arguments)
}

/// Refuses names of files where no file is meant.
pub(super) fn no_placeholders(argv: &At<Argv>, key: &str, diagnostics: &mut Vec<Diagnostic>) {
    for argument in &argv.value {
        if let Some(name) = [FILES, "{files0}", TESTS].into_iter().find(|name| argument.value.contains(name)) {
            let title = format!("`{name}` has no meaning in `{key}`");
            diagnostics.push(
                Diagnostic::new(argument.span.clone(), title).help("remove it: it is called once, for the whole check"),
            );
        }
    }
}

/// Refuses names of files where there are none to name.
pub(super) fn placeholders(argv: &At<Argv>, diagnostics: &mut Vec<Diagnostic>) {
    for argument in &argv.value {
        if let Some(name) = [FILES, "{files0}", TESTS].into_iter().find(|name| argument.value.contains(name)) {
            let diagnostic = Diagnostic::new(argument.span.clone(), format!("`{name}` needs `files`"));
            diagnostics
                .push(diagnostic.help("say which files: add `files = [\"src/**\"]` to a check in `[checks.NAME]`"));
        }
    }
}
