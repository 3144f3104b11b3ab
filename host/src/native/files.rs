//! Names of files among the arguments of a command: `{files}` or `{tests}` as arguments of their own, `{files0}` as a file
//! that lists them.
//!
//! Values only: whoever runs the command writes that file.

use super::Environment;

/// Stand for the files, each an argument. They are arguments of their own.
const FILES: [&str; 2] = ["{files}", "{tests}"];

/// Stands for the path of a file with their names, each followed by a NUL.
const LIST: &str = "{files0}";

/// The most bytes of names in one call, each as often as it is named.
const MOST: usize = 256 << 10;

/// The most bytes of arguments and environment together: systems take a megabyte or two.
const WHOLE: usize = 896 << 10;

/// What the system keeps for each of them beside its bytes.
const EACH: usize = 16;

/// Whether the arguments ask for a file with the names.
pub fn wants_list(argv: &[String]) -> bool {
    argv.iter().any(|argument| argument.contains(LIST))
}

/// What that file holds.
pub fn list(files: &[String]) -> Vec<u8> {
    files.iter().flat_map(|path| [safe(path).into_bytes(), b"\0".to_vec()]).collect::<Vec<_>>().concat()
}

/// The calls that name all files: one, or several where the system would not take so many arguments beside the
/// environment. `list` is the path of the file that lists them.
pub fn calls(argv: &[String], files: &[String], list: &str, environment: &Environment) -> Vec<Vec<String>> {
    let call = |files: &[String]| -> Vec<String> {
        let one = |argument: &String| match argument.as_str() {
            name if FILES.contains(&name) => files.iter().map(|path| safe(path)).collect(),
            other => vec![other.replace(LIST, list)],
        };
        argv.iter().flat_map(one).collect()
    };
    let is_files = |argument: &&String| FILES.contains(&argument.as_str());
    let times = argv.iter().filter(is_files).count();
    if times == 0 {
        return vec![call(files)];
    }
    let fixed: usize =
        argv.iter().filter(|argument| !is_files(argument)).map(|one| one.len() + list.len() + EACH).sum();
    let around: usize = environment.iter().map(|(name, value)| name.len() + value.len() + EACH).sum();
    let most = WHOLE.saturating_sub(fixed + around).min(MOST);
    let (mut calls, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, path) in files.iter().enumerate() {
        let weight = times * (safe(path).len() + EACH);
        if bytes + weight > most && at > start {
            calls.push(call(&files[start..at]));
            (start, bytes) = (at, 0);
        }
        bytes += weight;
    }
    calls.push(call(&files[start..]));
    calls
}

/// A name that no program takes for anything but a file. What begins with a sign may be an option, a list of arguments
/// (`@x`) or a pattern (`:!x`); with `=` or `:` in its first part it may be an assignment (`v=1`) or an address
/// (`host:x`). After `./` all of them are files.
fn safe(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    let plain = path.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if plain && !first.contains(['=', ':']) { path.to_owned() } else { format!("./{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn calls(argv: &[String], files: &[String], list: &str) -> Vec<Vec<String>> {
        super::calls(argv, files, list, &Environment::new())
    }

    #[test]
    fn names_stand_where_they_are_asked_for() {
        let files = strings(&["a b", "-rf", "c\nd", "'"]);
        let [call] = &calls(&strings(&["x", "{files}", "--from={files0}", "end"]), &files, "/l")[..] else { panic!() };
        assert_eq!(*call, strings(&["x", "a b", "./-rf", "c\nd", "./'", "--from=/l", "end"]));
        assert_eq!(calls(&strings(&["x"]), &files, ""), [strings(&["x"])]);
        assert_eq!(calls(&strings(&["x", "{files}"]), &[], ""), [strings(&["x"])]);
        assert_eq!(list(&files), b"a b\0./-rf\0c\nd\0./'\0");
        assert!(wants_list(&strings(&["x", "-f={files0}"])) && !wants_list(&strings(&["x", "{files}"])));
    }

    #[test]
    fn no_name_means_anything_but_a_file() {
        for plain in ["a", "Z", "0", "_", ".a", ".github/x", "a b", "a@b", "a-b", "a/v=1", "a/b:c", "..a"] {
            assert_eq!(safe(plain), plain);
        }
        for sign in "!\"#$%&'()*+,-:;<=>?@[\\]^`{|}~ \t\n\u{7f}ü–".chars() {
            assert_eq!(safe(&format!("{sign}a")), format!("./{sign}a"));
        }
        for other in ["v=1.txt", "v=1/a", ".v=1", "host:x", "http:/x", "C:x", "a b=c"] {
            assert_eq!(safe(other), format!("./{other}"));
        }
    }

    #[test]
    fn no_call_has_more_names_than_a_system_takes_and_none_is_lost() {
        let files: Vec<String> = (0..9000).map(|at| format!("{}/{at}", "d".repeat(90))).collect();
        let made = calls(&strings(&["x", "{files}"]), &files, "");
        assert!(made.len() > 2);
        assert!(made.iter().all(|call| call.iter().map(|argument| argument.len() + 16).sum::<usize>() < MOST + 100));
        let named: Vec<&String> = made.iter().flat_map(|call| &call[1..]).collect();
        assert!(named.into_iter().eq(&files));
        // Named nine times over, each counts as often; and what the environment takes is not there for names.
        let nine = calls(&[strings(&["x"]), vec!["{files}".to_owned(); 9]].concat(), &files, "");
        assert!(nine.len() > 8 * made.len());
        assert!(nine.iter().all(|call| call.iter().map(|argument| argument.len() + EACH).sum::<usize>() < MOST + 100));
        let large = Environment::from([("A".into(), "x".repeat(WHOLE - (64 << 10)).into())]);
        let beside = super::calls(&strings(&["x", "{files}"]), &files, "", &large);
        let size = |call: &Vec<String>| call.iter().map(|argument| argument.len() + EACH).sum::<usize>();
        assert!(beside.iter().all(|call| size(call) <= 64 << 10) && beside.len() > 3 * made.len());
        let beyond = Environment::from([("A".into(), "x".repeat(2 * WHOLE).into())]);
        assert_eq!(super::calls(&strings(&["x", "{files}"]), &files, "", &beyond).len(), files.len());
        // One that is longer than all of them together would be still goes.
        assert_eq!(calls(&strings(&["x", "{files}"]), &strings(&["a", &"b".repeat(MOST), "c"]), "").len(), 3);
    }
}
