//! Fuzz targets of this module: what a worker says, and what a guest returns. Both may be an attacker's.

use super::inbox::Inbox;
use super::process::Lost;
use super::validate::{self, Judge};
use crate::fuzz_kit::{Fields, largest_allocation, lines};
use crate::model::{
    Bytes, Change, ChangeKind, CheckInfo, Edit, Finding, Mount, Need, PackInfo, Place, Position, Report, Request, Rule,
    Scope, Severity,
};
use crate::worker::{Ask, FrameKind, fuzz, write_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// The integers that JSON keeps, said again.
const LARGEST: u64 = 9_007_199_254_740_991;

/// More than this many lines find nothing else.
const ENOUGH: usize = 200;

/// Room that may be made beside what came: what the parent reads at once, and a little more.
const SPARE: usize = 600 << 10;

/// A pipe that holds `input` and gives `step` bytes of it at once.
fn pipe(mut input: &[u8], step: usize) -> impl FnMut(&mut [u8]) -> Result<usize, Lost> {
    move |room| {
        let count = input.len().min(step).min(room.len());
        let (now, later) = input.split_at(count);
        room[..count].copy_from_slice(now);
        input = later;
        if count == 0 { Err(Lost::Died("it ended".to_owned())) } else { Ok(count) }
    }
}

/// A stream of frames, read by the worker's side and by the parent's, in one piece and in others.
pub(crate) fn frames(input: &[u8]) {
    let ((frames, whole), largest) = largest_allocation(|| fuzz::frames(input));
    // The most is the list of frames itself: 5 bytes for 32, in a vector that doubles.
    assert!(largest <= 16 * input.len() + 1024, "{largest} bytes of room for {} that came", input.len());
    let mut written = Vec::new();
    for (kind, bytes) in &frames {
        // The letter is the only difference between the two kinds.
        let start = written.len();
        write_bytes(&mut written, bytes).expect("a vector takes everything");
        written[start] = if *kind == FrameKind::Message { b'J' } else { b'B' };
    }
    assert!(input.starts_with(&written), "frames are not what was read");
    assert_eq!(whole, written.len() == input.len());
    for step in [1, 7, usize::MAX] {
        let (heard, largest) = largest_allocation(|| {
            let (mut inbox, mut more, mut heard) = (Inbox::default(), pipe(input, step), Vec::new());
            while let Ok(frame) = inbox.frame(&mut more) {
                heard.push(frame);
            }
            heard
        });
        assert!(largest <= 16 * input.len() + SPARE, "{largest} bytes of room for {} that came", input.len());
        assert_eq!(heard, frames, "parent and worker read the same in different ways");
    }
}

/// A message: what is understood of it, said again, is understood the same.
pub(crate) fn messages(input: &[u8]) {
    let hear = |json: &[u8]| {
        let mut frame = Vec::new();
        write_bytes(&mut frame, json).expect("a vector takes everything");
        frame[0] = b'J';
        let (said, largest) = largest_allocation(|| Inbox::default().message(&mut pipe(&frame, usize::MAX)));
        // The shortest text of the largest value is a list of counts: 7 bytes for 32, in a vector that doubles.
        assert!(largest <= 16 * json.len() + SPARE, "{largest} bytes of room for {} that came", json.len());
        said
    };
    if let Ok(said) = hear(input) {
        let again = hear(&serde_json::to_vec(&said).expect("what was JSON has a form in JSON"));
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(said)));
    }
    // The worker's side; its parent is trusted, so not to panic is enough.
    let _ = serde_json::from_slice::<Ask>(input);
}

fn severity(fields: &mut Fields<'_>) -> Severity {
    match fields.bytes() {
        b"note" => Severity::Note,
        b"warning" => Severity::Warning,
        _ => Severity::Error,
    }
}

/// A report. A line of an input is one of
///
/// ```text
/// t PATH|SIZE                   a file that the check was given
/// c PATH                        a path that was changed
/// r RULE                        a rule of the check
/// f RULE|SEVERITY|MESSAGE|HELP  a finding; the lines below are about the one before them
/// p PATH|LINE|COLUMN|LINE|COLUMN
/// e PATH|START|END|TEXT         an edit
/// s NAME|VALUE                  a count
/// ```
pub(crate) fn report(input: &[u8]) {
    let (mut files, mut changes, mut rules) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut given = Report::default();
    for (letter, mut fields) in lines(input).take(ENOUGH) {
        let text = fields.text();
        match (letter, given.findings.last_mut()) {
            (b't', _) => drop(files.insert(text, fields.number())),
            (b'c', _) => drop(changes.insert(text)),
            (b'r', _) => drop(rules.insert(text)),
            (b's', _) => given.stats.push((text, fields.number())),
            (b'f', _) => given.findings.push(Finding {
                place: None,
                rule: text,
                severity: severity(&mut fields),
                message: fields.text(),
                help: (!fields.is_empty()).then(|| fields.text()),
                edits: Vec::new(),
                known: false,
            }),
            (b'p', Some(finding)) => {
                let mut number = || u32::try_from(fields.number() & u64::from(u32::MAX)).unwrap_or_default();
                let numbers = [number(), number(), number(), number()];
                let position = |line, column| Position { line, column };
                let [start, end] = [position(numbers[0], numbers[1]), position(numbers[2], numbers[3])];
                let some = |position| (position != Position { line: 0, column: 0 }).then_some(position);
                finding.place = Some(Place { path: text, start: some(start), end: some(end) });
            }
            (b'e', Some(finding)) => {
                let (start, end) = (fields.number(), fields.number());
                let replacement = Bytes(fields.bytes().to_vec());
                finding.edits.push(Edit { path: text, start, end, replacement });
            }
            _ => {}
        }
    }
    let Some(view) = fuzz::view_of(files.iter().map(|(path, size)| (path.as_str(), *size))) else { return };
    let info = check_info(&rules);
    let change = |path: &String| Change { path: path.clone(), kind: ChangeKind::Deleted, previous_path: None };
    let request = Request {
        check: "check".to_owned(),
        config: "{}".to_owned(),
        files: Vec::new(),
        changes: Some(changes.iter().map(change).collect()),
    };
    let judge = Judge::new(&info);
    let judged = judge.report(given.clone(), &request, &view);
    let mut other = given.clone();
    other.findings.reverse();
    other.stats.reverse();
    other.findings.iter_mut().for_each(|finding| finding.edits.reverse());
    let judged_other = judge.report(other, &request, &view);
    // Of several mistakes, another may be the first.
    assert_eq!(judged.as_ref().ok(), judged_other.as_ref().ok(), "the order in which a guest says things counts");
    let Ok(passed) = judged else { return };
    assert_eq!(judge.report(passed.clone(), &request, &view).as_ref(), Ok(&passed));
    assert_eq!(passed.findings.len(), given.findings.len());
    assert!(passed.findings.is_sorted_by(|a, b| a < b));
    assert!(passed.stats.is_sorted_by(|a, b| a.0 < b.0));
    assert!(passed.stats.iter().all(|(name, value)| is_id(name) && *value <= LARGEST));
    for finding in &passed.findings {
        assert!(rules.contains(&finding.rule) && !finding.message.trim().is_empty());
        assert!(finding.help.as_ref().is_none_or(|help| !help.trim().is_empty()));
        if let Some(Place { path, start, end }) = &finding.place {
            // A folder of a file is a path that the check was given, too.
            let below = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
            assert!(files.contains_key(path) || changes.contains(path) || files.keys().any(below), "{path}");
            assert!(start.iter().chain(end).all(|at| at.line > 0 && at.column > 0));
            assert!(end.is_none() || start.is_some() && start <= end);
        }
        for (index, edit) in finding.edits.iter().enumerate() {
            assert!(edit.start <= edit.end && edit.end <= files[&edit.path].min(LARGEST));
            for other in finding.edits[..index].iter().filter(|other| other.path == edit.path) {
                let apart = other.end <= edit.start || edit.end <= other.start;
                let one_place = edit.start == other.start && edit.end == other.end;
                assert!(apart && !one_place, "{other:?} and {edit:?} overlap");
            }
        }
    }
}

fn check_info(rules: &BTreeSet<String>) -> CheckInfo {
    let rule = |id: &String| Rule {
        id: id.clone(),
        summary: "A rule.".to_owned(),
        severity: Severity::Error,
        explain: String::new(),
    };
    CheckInfo { rules: rules.iter().map(rule).collect(), ..empty_check("check".to_owned(), String::new()) }
}

fn empty_check(id: String, title: String) -> CheckInfo {
    CheckInfo {
        id,
        title,
        explain: String::new(),
        scope: Scope::Tree,
        files: Vec::new(),
        needs: Vec::new(),
        wants_changes: false,
        rules: Vec::new(),
        config_schema: None,
    }
}

/// `[a-z0-9-]{1,64}` with no hyphen at an end, said again.
fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// What a pack says of itself. A line of an input is one of
///
/// ```text
/// p NAME|VERSION|SUMMARY
/// c ID|TITLE              a check; the lines below are about the one before them
/// g GLOB                  of its files
/// n WHY|GLOB|GLOB…        a need
/// r ID|SUMMARY            a rule
/// ```
pub(crate) fn pack_info(input: &[u8]) {
    let mut info =
        PackInfo { name: String::new(), version: String::new(), summary: String::new(), license: None, checks: vec![] };
    for (letter, mut fields) in lines(input).take(ENOUGH) {
        let text = fields.text();
        match (letter, info.checks.last_mut()) {
            (b'p', _) => (info.name, info.version, info.summary) = (text, fields.text(), fields.text()),
            (b'c', _) => info.checks.push(empty_check(text, fields.text())),
            (b'g', Some(check)) => check.files.push(text),
            (b'n', Some(check)) => {
                let globs = std::iter::from_fn(|| (!fields.is_empty()).then(|| fields.text())).collect();
                check.needs.push(Need { mount: Mount::Tree, globs, why: text });
            }
            (b'r', Some(check)) => {
                let summary = fields.text();
                check.rules.push(Rule { id: text, summary, severity: Severity::Note, explain: String::new() });
            }
            _ => {}
        }
    }
    if validate::pack(&info).is_err() {
        return;
    }
    let unique = |ids: Vec<&str>| ids.iter().collect::<BTreeSet<_>>().len() == ids.len() && !ids.is_empty();
    assert!(is_id(&info.name) && !info.summary.trim().is_empty());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    assert!(info.version.bytes().all(plain) && info.version.split('.').count() >= 3, "{:?}", info.version);
    assert!(unique(info.checks.iter().map(|check| check.id.as_str()).collect()));
    for check in &info.checks {
        assert!(is_id(&check.id) && !check.title.trim().is_empty());
        assert!(unique(check.rules.iter().map(|rule| rule.id.as_str()).collect()));
        assert!(check.rules.iter().all(|rule| is_id(&rule.id) && !rule.summary.trim().is_empty()));
        assert!(check.needs.iter().all(|need| !need.why.trim().is_empty()));
        let lists = check.needs.iter().map(|need| &need.globs).chain([&check.files]);
        for globs in lists {
            assert!(!globs.is_empty());
            assert!(globs.iter().all(|glob| !matches!(glob.as_str(), "" | "!")));
            assert!(globs.iter().all(|glob| !glob.starts_with('/') && !glob.starts_with("!/")));
        }
    }
}
