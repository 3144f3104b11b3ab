//! What the tests of the checks share: a folder with files, one check run over it, and its answer made readable.

use std::fs;
use std::path::Path;

use probity_sdk::testing::Subject;
use probity_sdk::{Edit, Position, Refusal, Report};
use tempfile::TempDir;

/// A folder, and the check that will be run over it.
pub(crate) struct Case {
    folder: TempDir,
    check: &'static str,
    config: String,
}

impl Case {
    pub(crate) fn new(check: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), check, config: "{}".to_owned() }
    }

    pub(crate) fn file(self, path: &str, contents: &[u8]) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    pub(crate) fn config(mut self, config: &str) -> Self {
        config.clone_into(&mut self.config);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Result<Report, Refusal> {
        let subject = Subject::scan(self.root()).unwrap();
        subject.run(&crate::pack(), self.check, &self.config)
    }

    pub(crate) fn run(&self) -> Report {
        self.answer().unwrap()
    }

    /// Why the configuration was refused.
    pub(crate) fn refusal(&self) -> String {
        match self.answer() {
            Err(Refusal::InvalidConfig(message)) => message,
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// The contents of the only file after all proposed edits.
pub(crate) fn edited(contents: &[u8], report: &Report) -> Vec<u8> {
    let mut edits: Vec<&Edit> = report.findings.iter().flat_map(|it| &it.edits).collect();
    edits.sort_by_key(|edit| edit.start);
    let mut after = Vec::new();
    let mut done = 0;
    for edit in edits {
        let start = usize::try_from(edit.start).unwrap();
        after.extend_from_slice(&contents[done..start]);
        after.extend_from_slice(&edit.replacement);
        done = usize::try_from(edit.end).unwrap();
    }
    after.extend_from_slice(&contents[done..]);
    after
}

/// Where the findings are: `path:line:column-line:column`.
pub(crate) fn places(report: &Report) -> Vec<String> {
    let show = |position: Position| format!("{}:{}", position.line, position.column);
    let places = report.findings.iter().filter_map(|it| it.place.as_ref());
    places
        .map(|place| {
            let start = place.start.map_or(String::new(), |it| format!(":{}", show(it)));
            let end = place.end.map_or(String::new(), |it| format!("-{}", show(it)));
            format!("{}{start}{end}", place.path)
        })
        .collect()
}
