//! The walls between the modules of the host: who may know whom.

use std::collections::BTreeMap;
use std::path::Path;

/// For each module the modules it may use. A module that is not listed here may not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("system", &[]),
    ("fuzz_kit", &[]),
    ("config", &["model"]),
    ("worker", &["fuzz_kit", "model"]),
    ("subject", &["model", "system"]),
    ("native", &["model", "system"]),
    ("guest", &["fuzz_kit", "model", "system", "worker"]),
    ("pack", &["config", "model"]),
    ("plan", &["config", "guest", "model", "native", "subject"]),
    ("evidence", &["config", "model", "native", "plan", "store", "subject"]),
    ("starter", &["subject"]),
    ("store", &["model"]),
    ("report", &["model"]),
    ("fuzzing", &["fuzz_kit", "guest", "subject", "worker"]),
    ("run", &["guest", "model", "native", "plan", "store", "subject", "system", "worker"]),
    (
        "cli",
        &[
            "config", "evidence", "guest", "model", "native", "pack", "plan", "report", "run", "starter", "store",
            "subject", "system", "worker",
        ],
    ),
];

fn sources(folder: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The modules that a source file names as `crate::…`.
fn named(text: &str) -> Vec<&str> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let words =
        code.iter().flat_map(|line| line.match_indices("crate::").map(move |(at, found)| &line[at + found.len()..]));
    words.map(|rest| rest.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next().unwrap_or_default()).collect()
}

#[test]
fn arrows_run_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let below = file.strip_prefix(&root).unwrap();
        let module = below.components().next().unwrap().as_os_str().to_str().unwrap();
        if module == "lib.rs" || module == "main.rs" {
            continue;
        }
        let module = module.strip_suffix(".rs").unwrap_or(module);
        let Some(may) = allowed.get(module) else {
            wrong.push(format!("{} is in a module that has no arrows yet", below.display()));
            continue;
        };
        let text = std::fs::read_to_string(&file).unwrap();
        for other in named(&text) {
            if other != module && allowed.contains_key(other) && !may.contains(&other) {
                wrong.push(format!("{} uses {other}, and {module} may not", below.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_picture_has_no_circle() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    fn depth(module: &str, allowed: &BTreeMap<&str, &[&str]>, left: usize) -> bool {
        left > 0 && allowed[module].iter().all(|next| depth(next, allowed, left - 1))
    }
    for module in allowed.keys() {
        assert!(depth(module, &allowed, allowed.len() + 1), "{module} leads back to itself");
    }
}

#[test]
fn only_one_module_reaches_git_and_only_one_writes_to_the_terminal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let only = |needles: &[&str], at: &[&str]| {
        for file in &files {
            let below = file.strip_prefix(&root).unwrap();
            let text = std::fs::read_to_string(file).unwrap();
            let found = needles.iter().find(|needle| text.contains(**needle));
            let allowed = at.iter().any(|at| below == Path::new(at));
            assert!(found.is_none() || allowed, "{} has {found:?}", below.display());
        }
    };
    // The second one is of tests alone.
    let git = ["subject/git.rs", "subject/unchanged.rs"];
    only(&["Command::new(\"git\")", "\"git\".", "git2::", "gix::"], &git);
    // A worker's standard output is its pipe to the parent.
    only(&["io::stdout()", "io::stderr()", "println!", "eprintln!", "print!("], &["cli/printer.rs", "worker/serve.rs"]);
}
