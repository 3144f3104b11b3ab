//! Packs for tests, as component text: what a check says of itself, what it returns, and what its code does are plain
//! values, so a hostile pack is a few lines and needs no toolchain.
//!
//! This file stands alone: it uses nothing of Probity, and is included both by unit tests (`#[path]`) and by the
//! end-to-end tests. Turn the text into a component with the `wat` crate.

use std::fmt::Write;

/// A pack. `..Guest::default()` is one that describes itself well and finds nothing.
#[derive(Debug, Clone)]
pub struct Guest {
    /// What `describe` returns.
    pub pack: Pack,
    /// What `run` returns.
    pub outcome: Outcome,
    /// Instructions that `describe` executes before it returns.
    pub on_describe: String,
    /// Instructions that `run` executes before it returns. They see the parameters of the canonical ABI as locals 0 to 8:
    /// check (pointer, length), config (pointer, length), files (pointer, length), changes (flag, pointer, length); and
    /// the locals `$a`, `$b`, `$c` (i32) and `$d` (i64). A `return` needs a pointer on the stack.
    pub on_run: String,
    /// Instructions of the start function.
    pub on_start: String,
    /// More functions, globals and tables of the core module. The function `$nothing` and the table `$table` are there.
    pub more: String,
    /// Bytes to put at [`SCRATCH`].
    pub scratch: Vec<u8>,
    /// Functions of WASI that the code calls as `$name`.
    pub calls: Vec<Call>,
    /// More text at the top of the component: imports, say.
    pub top: String,
    /// The version of the contract.
    pub contract: &'static str,
    /// Pages of memory at the start.
    pub pages: u32,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            pack: Pack::default(),
            outcome: Outcome::Report(Vec::new(), Vec::new()),
            on_describe: String::new(),
            on_run: String::new(),
            on_start: String::new(),
            more: String::new(),
            scratch: Vec::new(),
            calls: Vec::new(),
            top: String::new(),
            contract: "0.1.0",
            pages: 64,
        }
    }
}

/// Where [`Guest::scratch`] lies in the guest's memory; [`FREE`] and what follows is the code's own.
pub const SCRATCH: u32 = 2 << 20;
/// A megabyte that nothing else uses.
pub const FREE: u32 = 3 << 20;

/// What a pack says of itself.
#[derive(Debug, Clone)]
pub struct Pack {
    pub name: String,
    pub version: String,
    pub summary: String,
    pub license: Option<String>,
    pub checks: Vec<Check>,
}

impl Default for Pack {
    fn default() -> Self {
        Self {
            name: "demo".into(),
            version: "0.1.0".into(),
            summary: "A pack for tests.".into(),
            license: None,
            checks: vec![Check::default()],
        }
    }
}

/// One check; the default is `look`, for the whole tree, with the rule `found`.
#[derive(Debug, Clone)]
pub struct Check {
    pub id: String,
    pub title: String,
    pub explain: String,
    /// Called once for each file instead of once.
    pub per_file: bool,
    pub files: Vec<String>,
    /// Mount by number (tree, base, evidence, claim, spec), globs.
    pub needs: Vec<(u8, Vec<String>)>,
    pub wants_changes: bool,
    /// Ids; each with severity `error`.
    pub rules: Vec<String>,
    pub schema: Option<String>,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            id: "look".into(),
            title: "Look".into(),
            explain: "Looks.".into(),
            per_file: false,
            files: vec!["**".into()],
            needs: vec![(0, vec!["**".into()])],
            wants_changes: false,
            rules: vec!["found".into()],
            schema: None,
        }
    }
}

/// What `run` returns.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Findings and named counts.
    Report(Vec<Finding>, Vec<(String, u64)>),
    /// A refusal: its case by number (not-applicable, needs-context, environment-gap, invalid-config, internal).
    Refusal(u8, String),
    /// These bytes, wherever a result is expected.
    Raw(Vec<u8>),
}

/// One finding; texts are bytes, so that they can be malformed.
#[derive(Debug, Clone)]
pub struct Finding {
    pub rule: Vec<u8>,
    /// Note, warning, error; or a number that is none.
    pub severity: u8,
    pub message: Vec<u8>,
    pub path: Option<String>,
    /// Line and column.
    pub start: Option<(u32, u32)>,
    pub end: Option<(u32, u32)>,
    pub help: Option<String>,
    pub edits: Vec<Edit>,
}

impl Default for Finding {
    fn default() -> Self {
        Self {
            rule: b"found".to_vec(),
            severity: 2,
            message: b"There is something.".to_vec(),
            path: None,
            start: None,
            end: None,
            help: None,
            edits: Vec::new(),
        }
    }
}

/// One edit.
#[derive(Debug, Clone)]
pub struct Edit {
    pub path: String,
    pub start: u64,
    pub end: u64,
    pub replacement: Vec<u8>,
}

/// A function of WASI that a guest calls.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The name its code calls it by, without `$`.
    pub name: &'static str,
    /// The instance it is in, an id in [`WASI`] without `$`.
    pub instance: &'static str,
    /// Its name there.
    pub function: &'static str,
    /// Its core type: `(param i32) (result i32)`.
    pub signature: &'static str,
}

/// Makes a [`Call`].
pub const fn call(name: &'static str, instance: &'static str, function: &'static str, signature: &'static str) -> Call {
    Call { name, instance, function, signature }
}

/// The drop of a resource, as a function that the code can call: `[drop]descriptor` in [`Call::function`].
const DROP: &str = "[drop]";

impl Guest {
    /// The component as text.
    pub fn text(&self) -> String {
        let mut image = Image::new();
        let pack = image.pack(&self.pack);
        let result = image.outcome(&self.outcome);
        let mut text = String::from("(component\n");
        let _ = writeln!(text, "{}", CONTRACT.replace("VERSION", self.contract));
        if !self.calls.is_empty() {
            text.push_str(WASI);
        }
        text.push_str(&self.top);
        let _ = write!(
            text,
            "
  (core module $libc
    (memory (export \"memory\") {pages})
    (global $next (mut i32) (i32.const {HEAP}))
    (func (export \"realloc\") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (block $room
        (br_if $room (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
        (br_if $room (i32.ne (i32.const -1) (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))))
        unreachable)
      (local.get $at)))
  (core instance $libc (instantiate $libc))
",
            pages = self.pages.max(64),
        );
        let mut imports = String::new();
        let mut exports = String::new();
        for (n, call) in self.calls.iter().enumerate() {
            if let Some(resource) = call.function.strip_prefix(DROP) {
                let _ = writeln!(text, "  (alias export ${} \"{resource}\" (type $call{n}))", call.instance);
                let _ = writeln!(text, "  (core func $call{n} (canon resource.drop $call{n}))");
            } else {
                let _ = writeln!(text, "  (alias export ${} \"{}\" (func $call{n}))", call.instance, call.function);
                let _ = writeln!(
                    text,
                    "  (core func $call{n} (canon lower (func $call{n}) (memory (core memory $libc \"memory\")) (realloc (core func $libc \"realloc\"))))"
                );
            }
            let _ = writeln!(imports, "    (import \"host\" \"{n}\" (func ${} {}))", call.name, call.signature);
            let _ = write!(exports, "(export \"{n}\" (func $call{n})) ");
        }
        let _ = write!(
            text,
            "
  (core module $main
    (import \"libc\" \"memory\" (memory {pages}))
{imports}
    (table $table 1 funcref)
    (func $nothing)
    {more}
    (func $describe (export \"describe\") (result i32)
      (local $a i32) (local $b i32) (local $c i32) (local $d i64)
      {on_describe}
      (i32.const {pack}))
    (func $run (export \"run\") (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (local $a i32) (local $b i32) (local $c i32) (local $d i64)
      {on_run}
      (i32.const {result}))
    (func $start
      (local $a i32) (local $b i32) (local $c i32) (local $d i64)
      {on_start})
    (start $start)
    (data (i32.const {BASE}) \"{data}\")
    (data (i32.const {SCRATCH}) \"{scratch}\"))
  (core instance $main (instantiate $main
    (with \"libc\" (instance $libc)) (with \"host\" (instance {exports}))))
  (func $describe (result $pack) (canon lift (core func $main \"describe\") (memory (core memory $libc \"memory\"))))
  (func $run (param \"request\" $request) (result (result $report (error $refusal)))
    (canon lift (core func $main \"run\") (memory (core memory $libc \"memory\")) (realloc (core func $libc \"realloc\"))))
  (instance $checker (export \"describe\" (func $describe)) (export \"run\" (func $run)))
  (export \"probity:check/checker@{contract}\" (instance $checker)))
",
            pages = self.pages.max(64),
            more = self.more,
            on_describe = self.on_describe,
            on_run = self.on_run,
            on_start = self.on_start,
            data = escape(&image.bytes),
            scratch = escape(&self.scratch),
            contract = self.contract,
        );
        text
    }
}

/// Where what `describe` and `run` return lies.
const BASE: u32 = 1024;
/// Where the allocator begins.
const HEAP: u32 = 4 << 20;

fn escape(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:02x}");
        text
    })
}

/// Memory with values in the layout of the canonical ABI, filled from its beginning.
struct Image {
    bytes: Vec<u8>,
}

/// A record being written: bytes, to be placed later.
#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn align(&mut self, align: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self
    }
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.align(4).0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.align(8).0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn pair(&mut self, (at, len): (u32, u32)) -> &mut Self {
        self.u32(at).u32(len)
    }
    fn zeros(&mut self, len: usize) -> &mut Self {
        self.0.resize(self.0.len() + len, 0);
        self
    }
}

impl Image {
    fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        assert!(self.bytes.len() < (SCRATCH - BASE) as usize, "a guest's static data has two megabytes");
        at
    }

    fn text(&mut self, bytes: &[u8]) -> (u32, u32) {
        (self.put(bytes), bytes.len() as u32)
    }

    fn optional(&mut self, record: &mut Record, text: Option<&str>) {
        match text {
            Some(text) => {
                let text = self.text(text.as_bytes());
                record.align(4).u8(1).pair(text);
            }
            None => {
                record.align(4).u8(0).align(4).zeros(8);
            }
        }
    }

    fn list<T>(&mut self, items: &[T], align: usize, mut each: impl FnMut(&mut Self, &T) -> Record) -> (u32, u32) {
        let mut all = Record::default();
        for item in items {
            let mut record = each(self, item);
            record.align(align);
            all.0.extend_from_slice(&record.0);
        }
        (self.put(&all.0), items.len() as u32)
    }

    fn texts(&mut self, texts: &[String]) -> (u32, u32) {
        self.list(texts, 4, |image, text| {
            let mut record = Record::default();
            record.pair(image.text(text.as_bytes()));
            record
        })
    }

    fn pack(&mut self, pack: &Pack) -> u32 {
        let mut record = Record::default();
        for text in [&pack.name, &pack.version, &pack.summary] {
            record.pair(self.text(text.as_bytes()));
        }
        self.optional(&mut record, pack.license.as_deref());
        let checks = self.list(&pack.checks, 4, Self::check);
        record.pair(checks);
        self.put(&record.0)
    }

    fn check(&mut self, check: &Check) -> Record {
        let mut record = Record::default();
        for text in [&check.id, &check.title, &check.explain] {
            record.pair(self.text(text.as_bytes()));
        }
        record.u8(u8::from(!check.per_file));
        record.pair(self.texts(&check.files));
        record.pair(self.list(&check.needs, 4, |image, (mount, globs)| {
            let mut need = Record::default();
            need.u8(*mount).pair(image.texts(globs)).pair(image.text(b"To test."));
            need
        }));
        record.u8(u8::from(check.wants_changes));
        record.pair(self.list(&check.rules, 4, |image, id| {
            let mut rule = Record::default();
            rule.pair(image.text(id.as_bytes())).pair(image.text(b"It is there.")).u8(2);
            rule.pair(image.text(b"It should not be."));
            rule
        }));
        self.optional(&mut record, check.schema.as_deref());
        record
    }

    fn outcome(&mut self, outcome: &Outcome) -> u32 {
        let mut record = Record::default();
        match outcome {
            Outcome::Report(findings, stats) => {
                let findings = self.list(findings, 4, Self::finding);
                let stats = self.list(stats, 8, |image, (name, value)| {
                    let mut stat = Record::default();
                    stat.pair(image.text(name.as_bytes())).u64(*value);
                    stat
                });
                record.u8(0).pair(findings).pair(stats);
            }
            Outcome::Refusal(case, message) => {
                let message = self.text(message.as_bytes());
                record.u8(1).align(4).u8(*case).pair(message);
            }
            Outcome::Raw(bytes) => record.0.extend_from_slice(bytes),
        }
        self.put(&record.0)
    }

    fn finding(&mut self, finding: &Finding) -> Record {
        let mut record = Record::default();
        record.pair(self.text(&finding.rule)).u8(finding.severity).pair(self.text(&finding.message));
        match &finding.path {
            Some(path) => {
                record.u8(1).pair(self.text(path.as_bytes()));
                for position in [finding.start, finding.end] {
                    let (line, column) = position.unwrap_or_default();
                    record.u8(u8::from(position.is_some())).u32(line).u32(column);
                }
            }
            None => {
                record.zeros(36);
            }
        }
        self.optional(&mut record, finding.help.as_deref());
        record.pair(self.list(&finding.edits, 8, |image, edit| {
            let mut record = Record::default();
            record.pair(image.text(edit.path.as_bytes())).u64(edit.start).u64(edit.end);
            record.pair(image.text(&edit.replacement));
            record
        }));
        record
    }
}

/// The types of the contract, imported.
const CONTRACT: &str = r#"
  (import "probity:check/types@VERSION" (instance $types
    (type $mount' (enum "tree" "base" "evidence" "claim" "spec"))
    (export "mount" (type $mount (eq $mount')))
    (type $need' (record (field "mount" $mount) (field "globs" (list string)) (field "why" string)))
    (export "need" (type $need (eq $need')))
    (type $scope' (enum "file" "tree"))
    (export "scope" (type $scope (eq $scope')))
    (type $severity' (enum "note" "warning" "error"))
    (export "severity" (type $severity (eq $severity')))
    (type $rule' (record (field "id" string) (field "summary" string) (field "severity" $severity) (field "explain" string)))
    (export "rule" (type $rule (eq $rule')))
    (type $check' (record (field "id" string) (field "title" string) (field "explain" string) (field "scope" $scope)
      (field "files" (list string)) (field "needs" (list $need)) (field "wants-changes" bool) (field "rules" (list $rule))
      (field "config-schema" (option string))))
    (export "check" (type $check (eq $check')))
    (type $pack' (record (field "name" string) (field "version" string) (field "summary" string)
      (field "license" (option string)) (field "checks" (list $check))))
    (export "pack" (type $pack (eq $pack')))
    (type $kind' (enum "file" "executable" "symlink" "submodule"))
    (export "kind" (type $kind (eq $kind')))
    (type $entry' (record (field "path" string) (field "kind" $kind) (field "size" u64) (field "tracked" bool)
      (field "base-path" (option string))))
    (export "entry" (type $entry (eq $entry')))
    (type $change-kind' (enum "added" "modified" "deleted" "renamed"))
    (export "change-kind" (type $change-kind (eq $change-kind')))
    (type $change' (record (field "path" string) (field "kind" $change-kind) (field "previous-path" (option string))))
    (export "change" (type $change (eq $change')))
    (type $request' (record (field "check" string) (field "config" string) (field "files" (list $entry))
      (field "changes" (option (list $change)))))
    (export "request" (type $request (eq $request')))
    (type $position' (record (field "line" u32) (field "column" u32)))
    (export "position" (type $position (eq $position')))
    (type $place' (record (field "path" string) (field "start" (option $position)) (field "end" (option $position))))
    (export "place" (type $place (eq $place')))
    (type $edit' (record (field "path" string) (field "start" u64) (field "end" u64) (field "replacement" (list u8))))
    (export "edit" (type $edit (eq $edit')))
    (type $finding' (record (field "rule" string) (field "severity" $severity) (field "message" string)
      (field "place" (option $place)) (field "help" (option string)) (field "edits" (list $edit))))
    (export "finding" (type $finding (eq $finding')))
    (type $report' (record (field "findings" (list $finding)) (field "stats" (list (tuple string u64)))))
    (export "report" (type $report (eq $report')))
    (type $refusal' (variant (case "not-applicable" string) (case "needs-context" string) (case "environment-gap" string)
      (case "invalid-config" string) (case "internal" string)))
    (export "refusal" (type $refusal (eq $refusal')))))
  (alias export $types "pack" (type $pack))
  (alias export $types "request" (type $request))
  (alias export $types "report" (type $report))
  (alias export $types "refusal" (type $refusal))
"#;

/// The interfaces of WASI that tests call, imported: `$error`, `$poll`, `$streams`, `$monotonic`, `$wall`, `$exit`,
/// `$stdout`, `$stderr`, `$random`, `$fs`, `$preopens`.
pub const WASI: &str = r#"
  (import "wasi:io/error@0.2.6" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error))
  (import "wasi:io/poll@0.2.6" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:io/streams@0.2.6" (instance $streams
    (alias outer 1 $error (type $error'))
    (export "error" (type $error (eq $error')))
    (type $stream-error' (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "input-stream" (type $input (sub resource)))
    (export "output-stream" (type $output (sub resource)))
    (export "[method]input-stream.blocking-read" (func (param "self" (borrow $input)) (param "len" u64)
      (result (result (list u8) (error $stream-error)))))
    (export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $output)) (param "contents" (list u8))
      (result (result (error $stream-error)))))))
  (alias export $streams "input-stream" (type $input))
  (alias export $streams "output-stream" (type $output))
  (import "wasi:clocks/monotonic-clock@0.2.6" (instance $monotonic
    (alias outer 1 $pollable (type $pollable'))
    (export "pollable" (type $pollable (eq $pollable')))
    (export "now" (func (result u64)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (import "wasi:clocks/wall-clock@0.2.6" (instance $wall
    (type $datetime' (record (field "seconds" u64) (field "nanoseconds" u32)))
    (export "datetime" (type $datetime (eq $datetime')))
    (export "now" (func (result $datetime)))))
  (alias export $wall "datetime" (type $datetime))
  (import "wasi:cli/exit@0.2.6" (instance $exit (export "exit" (func (param "status" (result))))))
  (import "wasi:cli/stdout@0.2.6" (instance $stdout
    (alias outer 1 $output (type $output'))
    (export "output-stream" (type $output (eq $output')))
    (export "get-stdout" (func (result (own $output))))))
  (import "wasi:cli/stderr@0.2.6" (instance $stderr
    (alias outer 1 $output (type $output'))
    (export "output-stream" (type $output (eq $output')))
    (export "get-stderr" (func (result (own $output))))))
  (import "wasi:random/random@0.2.6" (instance $random (export "get-random-u64" (func (result u64)))))
  (import "wasi:filesystem/types@0.2.6" (instance $fs
    (alias outer 1 $input (type $input'))
    (export "input-stream" (type $input (eq $input')))
    (alias outer 1 $output (type $output'))
    (export "output-stream" (type $output (eq $output')))
    (export "descriptor" (type $descriptor (sub resource)))
    (type $error-code' (enum "access" "would-block" "already" "bad-descriptor" "busy" "deadlock" "quota" "exist"
      "file-too-large" "illegal-byte-sequence" "in-progress" "interrupted" "invalid" "io" "is-directory" "loop"
      "too-many-links" "message-size" "name-too-long" "no-device" "no-entry" "no-lock" "insufficient-memory"
      "insufficient-space" "not-directory" "not-empty" "not-recoverable" "unsupported" "no-tty" "no-such-device"
      "overflow" "not-permitted" "pipe" "read-only" "invalid-seek" "text-file-busy" "cross-device"))
    (export "error-code" (type $error-code (eq $error-code')))
    (type $path-flags' (flags "symlink-follow"))
    (export "path-flags" (type $path-flags (eq $path-flags')))
    (type $open-flags' (flags "create" "directory" "exclusive" "truncate"))
    (export "open-flags" (type $open-flags (eq $open-flags')))
    (type $descriptor-flags' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync"
      "mutate-directory"))
    (export "descriptor-flags" (type $descriptor-flags (eq $descriptor-flags')))
    (alias outer 1 $datetime (type $datetime'))
    (export "datetime" (type $datetime (eq $datetime')))
    (type $descriptor-type' (enum "unknown" "block-device" "character-device" "directory" "fifo" "symbolic-link"
      "regular-file" "socket"))
    (export "descriptor-type" (type $descriptor-type (eq $descriptor-type')))
    (type $descriptor-stat' (record (field "type" $descriptor-type) (field "link-count" u64) (field "size" u64)
      (field "data-access-timestamp" (option $datetime)) (field "data-modification-timestamp" (option $datetime))
      (field "status-change-timestamp" (option $datetime))))
    (export "descriptor-stat" (type $descriptor-stat (eq $descriptor-stat')))
    (type $metadata-hash-value' (record (field "lower" u64) (field "upper" u64)))
    (export "metadata-hash-value" (type $metadata-hash-value (eq $metadata-hash-value')))
    (type $directory-entry' (record (field "type" $descriptor-type) (field "name" string)))
    (export "directory-entry" (type $directory-entry (eq $directory-entry')))
    (export "directory-entry-stream" (type $entries (sub resource)))
    (export "[method]descriptor.stat" (func (param "self" (borrow $descriptor))
      (result (result $descriptor-stat (error $error-code)))))
    (export "[method]descriptor.metadata-hash" (func (param "self" (borrow $descriptor))
      (result (result $metadata-hash-value (error $error-code)))))
    (export "[method]descriptor.read-directory" (func (param "self" (borrow $descriptor))
      (result (result (own $entries) (error $error-code)))))
    (export "[method]directory-entry-stream.read-directory-entry" (func (param "self" (borrow $entries))
      (result (result (option $directory-entry) (error $error-code)))))
    (export "[method]descriptor.read-via-stream" (func (param "self" (borrow $descriptor)) (param "offset" u64)
      (result (result (own $input) (error $error-code)))))
    (export "[method]descriptor.append-via-stream" (func (param "self" (borrow $descriptor))
      (result (result (own $output) (error $error-code)))))
    (export "[method]descriptor.write-via-stream" (func (param "self" (borrow $descriptor)) (param "offset" u64)
      (result (result (own $output) (error $error-code)))))
    (export "[method]descriptor.set-size" (func (param "self" (borrow $descriptor)) (param "size" u64)
      (result (result (error $error-code)))))
    (export "[method]descriptor.write" (func (param "self" (borrow $descriptor)) (param "buffer" (list u8))
      (param "offset" u64) (result (result u64 (error $error-code)))))
    (export "[method]descriptor.read" (func (param "self" (borrow $descriptor)) (param "length" u64)
      (param "offset" u64) (result (result (tuple (list u8) bool) (error $error-code)))))
    (export "[method]descriptor.create-directory-at" (func (param "self" (borrow $descriptor)) (param "path" string)
      (result (result (error $error-code)))))
    (export "[method]descriptor.remove-directory-at" (func (param "self" (borrow $descriptor)) (param "path" string)
      (result (result (error $error-code)))))
    (export "[method]descriptor.unlink-file-at" (func (param "self" (borrow $descriptor)) (param "path" string)
      (result (result (error $error-code)))))
    (export "[method]descriptor.symlink-at" (func (param "self" (borrow $descriptor)) (param "old-path" string)
      (param "new-path" string) (result (result (error $error-code)))))
    (export "[method]descriptor.rename-at" (func (param "self" (borrow $descriptor)) (param "old-path" string)
      (param "new-descriptor" (borrow $descriptor)) (param "new-path" string) (result (result (error $error-code)))))
    (export "[method]descriptor.link-at" (func (param "self" (borrow $descriptor)) (param "old-path-flags" $path-flags)
      (param "old-path" string) (param "new-descriptor" (borrow $descriptor)) (param "new-path" string)
      (result (result (error $error-code)))))
    (export "[method]descriptor.open-at" (func (param "self" (borrow $descriptor)) (param "path-flags" $path-flags)
      (param "path" string) (param "open-flags" $open-flags) (param "flags" $descriptor-flags)
      (result (result (own $descriptor) (error $error-code)))))))
  (alias export $fs "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.6" (instance $preopens
    (alias outer 1 $descriptor (type $descriptor'))
    (export "descriptor" (type $descriptor (eq $descriptor')))
    (export "get-directories" (func (result (list (tuple (own $descriptor) string)))))))
"#;

/// Codes of `wasi:filesystem`'s errors.
pub const LOOP: u8 = 15;
pub const IS_DIRECTORY: u8 = 14;
pub const NO_ENTRY: u8 = 20;
pub const NOT_DIRECTORY: u8 = 24;
pub const NOT_PERMITTED: u8 = 31;
pub const READ_ONLY: u8 = 33;

/// A guest that makes these calls on the first mount (`$a`) and traps unless each is answered with its error code.
/// Each leaves at [`FREE`] a flag and, `$b` bytes further, a code.
pub fn answered(calls: &[Call], cases: &[(String, u8)], scratch: &str) -> Guest {
    let mut all = FILE_CALLS.to_vec();
    all.extend_from_slice(calls);
    let mut code =
        format!("(call $directories (i32.const {FREE})) (local.set $a (i32.load (i32.load (i32.const {FREE}))))");
    for (n, (call, expected)) in cases.iter().enumerate() {
        code.push_str(&format!(
            "{call}
             (if (i32.or (i32.ne (i32.load8_u (i32.const {FREE})) (i32.const 1))
                         (i32.ne (i32.load8_u (i32.add (i32.const {FREE}) (local.get $b))) (i32.const {expected})))
               (then (drop (i32.div_u (i32.const {n}) (i32.const 0))) unreachable))"
        ));
    }
    Guest { calls: all, on_run: code, scratch: scratch.into(), ..Guest::default() }
}

/// A guest that tries every call which writes, on `a.txt`, and traps unless each is refused.
pub fn every_write() -> Guest {
    let calls = [
        call("append", "fs", "[method]descriptor.append-via-stream", "(param i32 i32)"),
        call("stream", "fs", "[method]descriptor.write-via-stream", "(param i32 i64 i32)"),
        call("size", "fs", "[method]descriptor.set-size", "(param i32 i64 i32)"),
        call("put", "fs", "[method]descriptor.write", "(param i32 i32 i32 i64 i32)"),
        call("mkdir", "fs", "[method]descriptor.create-directory-at", "(param i32 i32 i32 i32)"),
        call("rmdir", "fs", "[method]descriptor.remove-directory-at", "(param i32 i32 i32 i32)"),
        call("unlink", "fs", "[method]descriptor.unlink-file-at", "(param i32 i32 i32 i32)"),
        call("symlink", "fs", "[method]descriptor.symlink-at", "(param i32 i32 i32 i32 i32 i32)"),
        call("rename", "fs", "[method]descriptor.rename-at", "(param i32 i32 i32 i32 i32 i32 i32)"),
        call("link", "fs", "[method]descriptor.link-at", "(param i32 i32 i32 i32 i32 i32 i32 i32)"),
    ];
    let path = format!("(i32.const {SCRATCH}) (i32.const 5)");
    let at = format!("(i32.const {FREE})");
    let unit = "(local.set $b (i32.const 1))";
    let wide = "(local.set $b (i32.const 4))";
    let long = "(local.set $b (i32.const 8))";
    let mut cases: Vec<_> = [
        format!("{wide} (call $append (local.get $a) {at})"),
        format!("{wide} (call $stream (local.get $a) (i64.const 0) {at})"),
        format!("{unit} (call $size (local.get $a) (i64.const 0) {at})"),
        format!("{long} (call $put (local.get $a) {path} (i64.const 0) {at})"),
        format!("{unit} (call $mkdir (local.get $a) {path} {at})"),
        format!("{unit} (call $rmdir (local.get $a) {path} {at})"),
        format!("{unit} (call $unlink (local.get $a) {path} {at})"),
        format!("{unit} (call $symlink (local.get $a) {path} {path} {at})"),
        format!("{unit} (call $rename (local.get $a) {path} (local.get $a) {path} {at})"),
        format!("{unit} (call $link (local.get $a) (i32.const 0) {path} (local.get $a) {path} {at})"),
    ]
    .into_iter()
    .map(|call| (call, READ_ONLY))
    .collect();
    // To create, to create exclusively, to truncate; to write, to change folders.
    for (open, flags) in [(1, 1), (5, 1), (8, 1), (0, 2), (0, 3), (0, 32)] {
        let call = format!(
            "{wide} (call $open (local.get $a) (i32.const 0) {path} (i32.const {open}) (i32.const {flags}) {at})"
        );
        cases.push((call, READ_ONLY));
    }
    answered(&calls, &cases, "a.txt")
}

/// A guest that opens paths, each with whether a link at its end is followed and whether it must be a folder, and traps
/// unless each is answered with its error code.
pub fn opening(paths: &[(&str, bool, bool, u8)]) -> Guest {
    let mut scratch = String::new();
    let mut cases = Vec::new();
    for (path, follow, directory, code) in paths {
        let at = SCRATCH as usize + scratch.len();
        cases.push((
            format!(
                "(local.set $b (i32.const 4)) (call $open (local.get $a) (i32.const {}) (i32.const {at})
                 (i32.const {}) (i32.const {}) (i32.const 1) (i32.const {FREE}))",
                u8::from(*follow),
                path.len(),
                2 * u8::from(*directory),
            ),
            *code,
        ));
        scratch.push_str(path);
    }
    answered(&[], &cases, &scratch)
}

/// The calls that most tests of files need.
pub const FILE_CALLS: [Call; 5] = [
    call("directories", "preopens", "get-directories", "(param i32)"),
    call("open", "fs", "[method]descriptor.open-at", "(param i32 i32 i32 i32 i32 i32 i32)"),
    call("read", "fs", "[method]descriptor.read", "(param i32 i64 i64 i32)"),
    call("stderr", "stderr", "get-stderr", "(result i32)"),
    call("write", "streams", "[method]output-stream.blocking-write-and-flush", "(param i32 i32 i32 i32)"),
];
