//! Hostile and honest packs through the whole host, in one process.

mod ends;
mod files;
#[expect(clippy::cast_possible_truncation, reason = "the texts of tests are short")]
#[path = "../../../../tests/support/guests.rs"]
#[expect(unreachable_pub, reason = "shared with the end-to-end tests")]
mod guests;
mod honest;
mod limits_hold;
mod loading;
mod reports;

use super::*;
use crate::model::{Entry, EntryKind, ErrorKind, Mount, Refusal, Report};
use crate::worker::{Contents, ContentsError, TreeBuilder};
use guests::{Check, Edit, FILE_CALLS, FREE, Finding, Guest, Outcome, SCRATCH, call};
use std::sync::Arc;

/// Contents in memory, by key.
struct Files(Vec<Vec<u8>>);

impl Contents for Files {
    fn read(&self, key: u32, offset: u64, len: usize) -> Result<Vec<u8>, ContentsError> {
        let from = usize::try_from(offset).unwrap();
        Ok(self.0[key as usize][from..from + len].to_vec())
    }

    fn identity(&self, key: u32) -> String {
        format!("test:{key}")
    }
}

/// A tree of these files, and their entries.
fn tree(files: &[(&str, &str)]) -> (View, Vec<Entry>) {
    let mut builder = TreeBuilder::new();
    builder.mount(Mount::Tree);
    let mut entries = Vec::new();
    for (key, (path, text)) in (0..).zip(files) {
        builder.file(Mount::Tree, *path, text.len() as u64, false, key);
        let size = text.len() as u64;
        entries.push(Entry { path: (*path).into(), kind: EntryKind::File, size, tracked: true, base_path: None });
    }
    builder.symlink(Mount::Tree, "zz-link", "a.txt");
    let contents = files.iter().map(|(_, text)| text.as_bytes().to_vec()).collect();
    (View::new(Arc::new(builder.build().unwrap()), Arc::new(Files(contents))), entries)
}

fn bytes(guest: &Guest) -> Vec<u8> {
    wat::parse_str(guest.text()).unwrap_or_else(|error| panic!("{error}"))
}

fn load(guest: &Guest) -> Result<Pack, LoadError> {
    Host::open(None).load(&bytes(guest))
}

/// Small limits, so that loops end soon.
fn limits() -> Limits {
    Limits { fuel: 20_000_000, init_fuel: 20_000_000, memory: 64 << 20, output: 10_000, ..Limits::default() }
}

fn run_on(guest: &Guest, files: &[(&str, &str)]) -> CheckRun {
    let pack = load(guest).unwrap();
    let (view, entries) = tree(files);
    let job = Job {
        check: &pack.info.checks[0],
        config: "{}",
        files: &entries,
        changes: None,
        view: &view,
        limits: &limits(),
        key: &Digest::of(b"key"),
        deadline: None,
        cancelled: None,
    };
    pack.run_check(&job)
}

fn run(guest: &Guest) -> CheckRun {
    run_on(guest, &[("a.txt", "hello\n"), ("b/c.txt", "x")])
}

fn report(guest: &Guest) -> Report {
    match run(guest).result {
        CheckResult::Report(report) => report,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn error(guest: &Guest) -> GuestError {
    match run(guest).result {
        CheckResult::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A guest whose `run` does this.
fn doing(code: &str) -> Guest {
    Guest { on_run: code.into(), ..Guest::default() }
}

/// A guest that finds this.
fn finding(finding: Finding) -> Guest {
    Guest { outcome: Outcome::Report(vec![finding], Vec::new()), ..Guest::default() }
}

#[track_caller]
fn refused(guest: &Guest, part: &str) {
    let error = error(guest);
    assert_eq!(error.kind, ErrorKind::BadResult, "{error}");
    assert!(error.message.contains(part), "{error}");
}

/// What a worker would do with a component, done here.
pub(super) fn prepare(
    engine: &Engine,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(Inspection, PackInfo, Vec<u8>), LoadError> {
    let inspection = crate::worker::inspect(bytes)?;
    let code = crate::worker::compile(engine, bytes)?;
    let program = program(engine, &code)?;
    let info = crate::worker::on_big_stack(|stack| crate::worker::describe(&program, stack, limits)).unwrap()?;
    Ok((inspection, info, code))
}

pub(super) fn program(engine: &Engine, code: &[u8]) -> Result<crate::worker::Program, LoadError> {
    #[expect(unsafe_code, reason = "code that these tests compiled")]
    // SAFETY: it comes from `compile`, or from a cache whose MAC was checked.
    unsafe {
        crate::worker::Program::load(engine, code)
    }
}
