//! `docs/requirements.md`: the tests it names are there, and each of its ids names one rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What heads the rows that no test shows.
const NOT_MET: &str = "## Not met yet";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the tables in a text, each as its cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = lines.map(|line| line.split(" | ").collect::<Vec<&str>>());
    rows.filter(|cells| cells[0] != "id" && cells[0] != "---").collect()
}

/// The file that a test is in, by its module path: a module has a file, a folder, or a place in the file above it.
fn source(test: &str) -> Option<(PathBuf, &str)> {
    let (below, path) = match test.strip_prefix("e2e: ") {
        Some(path) => ("tests", path),
        None => ("host/src", test),
    };
    let (module, name) = path.rsplit_once("::")?;
    let folder = root().join(below);
    let file = |module: &str| {
        let path = folder.join(module.replace("::", "/"));
        [path.with_extension("rs"), path.join("mod.rs")].into_iter().find(|file| file.is_file())
    };
    Some((file(module).or_else(|| file(module.strip_suffix("::tests")?))?, name))
}

fn exists(test: &str) -> bool {
    let Some((file, name)) = source(test) else { return false };
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}()");
    lines.windows(2).any(|two| two[0] == "#[test]" && two[1].starts_with(&head))
}

#[test]
fn what_is_said_to_show_a_rule_is_a_test() {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let (met, _) = page.split_once(NOT_MET).unwrap();
    let rows = rows(met);
    assert!(rows.len() >= 50, "{} rules are found", rows.len());
    let mut wrong = Vec::new();
    for cells in rows {
        let [id, _, tests] = cells[..] else { panic!("a row of three cells: {cells:?}") };
        for test in tests.split(", ") {
            let named = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
            if !named.is_some_and(exists) {
                wrong.push(format!("{id}: there is no test {test}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What would be found whatever it is called shows nothing.
    assert!(exists("e2e: requirements::each_id_names_one_rule"));
    assert!(!exists("e2e: requirements::rows") && !exists("e2e: requirements::each_id") && !exists("each_id"));
}

#[test]
fn each_id_names_one_rule() {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let mut seen = BTreeSet::new();
    for cells in rows(&page) {
        let id = cells[0];
        let (group, number) = id.split_once('-').unwrap();
        assert!(group.bytes().all(|byte| byte.is_ascii_uppercase()) && number.parse::<u32>().is_ok(), "{id}");
        assert!(seen.insert(id), "{id} is used twice");
    }
    assert!(rows(page.split_once(NOT_MET).unwrap().1).iter().all(|cells| cells.len() == 2));
}
