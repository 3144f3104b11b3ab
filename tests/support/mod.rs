//! A place of its own for each test: a temporary home and project, and the real binary with an environment that has
//! nothing of the machine's in it but PATH.

#[expect(dead_code, reason = "the unit tests use more of it")]
pub mod guests;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Project {
    folder: tempfile::TempDir,
}

/// What a run of the binary gave.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub raw: Output,
}

impl Project {
    /// An empty folder outside version control.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same in memory, where there is such a place: for trees that take a disk half a minute.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::new() }
    }

    fn below(place: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("probity-test-").tempdir_in(place).unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        fs::create_dir_all(folder.path().join("home")).unwrap();
        Self { folder }
    }

    /// An empty folder with this configuration.
    pub fn with(config: &str) -> Self {
        let project = Self::new();
        project.write("probity.toml", config);
        project
    }

    /// The folder of the project.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The folder around project and home.
    pub fn outside(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    /// Writes a component, given as text.
    pub fn component(&self, path: &str, text: &str) -> &Self {
        self.write(path, wat::parse_str(text).unwrap())
    }

    /// Writes an executable shell script.
    pub fn script(&self, path: &str, body: &str) -> &Self {
        self.write(path, format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
        let output = self.environment(Command::new("git")).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Makes it a repository with everything committed.
    pub fn committed(&self) -> &Self {
        self.git(&["init", "-q"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        self
    }

    /// Makes a folder of it a repository of its own.
    pub fn committed_at(&self, path: &str) -> &Self {
        self.git(&["-C", path, "init", "-q"]);
        self.git(&["-C", path, "add", "-A"]);
        self.git(&["-C", path, "commit", "-q", "-m", "inner"]);
        self
    }

    /// The binary as a user who may do nothing in particular, if this one is root; everybody may look at the project.
    pub fn as_nobody(&self, arguments: &[&str]) -> Command {
        let copy = self.folder.path().join("probity");
        // By another process: a file that this one has open for writing, children of other tests hold for a moment, and it
        // could not be executed.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_probity")).arg(&copy).status().unwrap();
        assert!(copied.success());
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.environment(Command::new(copy));
        command.args(arguments).env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        command
    }

    fn environment(&self, mut command: Command) -> Command {
        command.env_clear().current_dir(self.root()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.folder.path().join("home")).env("TERM", "dumb").env("COLUMNS", "100");
        command
    }

    /// The binary, ready to be started in the project.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.environment(Command::new(env!("CARGO_BIN_EXE_probity")));
        // Compiling a component is the slow part of a test, and the cache is keyed by content: all tests share one.
        // It believes only what was made with the same key, so they share that too.
        command.env("XDG_CACHE_HOME", shared("cache")).env("XDG_STATE_HOME", shared("state"));
        command.args(arguments);
        command
    }

    /// The same for another program, which gets its folder, its environment and no input: one that starts the binary, or
    /// stands in for it.
    pub fn beside(&self, mut other: Command, ready: &Command) -> Command {
        other.current_dir(self.root()).env_clear().stdin(Stdio::null());
        other.envs(ready.get_envs().filter_map(|(name, value)| Some((name, value?))));
        other
    }

    /// The binary, started by another program that is given it and its arguments last.
    pub fn through(&self, mut other: Command, arguments: &[&str]) -> Command {
        let ready = self.command(arguments);
        other.arg(ready.get_program()).args(ready.get_args());
        self.beside(other, &ready)
    }

    /// The binary, started by a shell that says something first.
    pub fn after(&self, first: &str, arguments: &[&str]) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]);
        self.through(shell, arguments)
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(self.command(arguments))
    }

    pub fn ran(&self, mut command: Command) -> Ran {
        Ran::of(command.output().unwrap(), &self.outside())
    }

    /// Like [`Self::run`], and the stored record of `verify --json`.
    pub fn verify(&self) -> (i32, serde_json::Value) {
        let ran = self.run(&["verify", "--json"]);
        let code = ran.code.unwrap();
        let document = serde_json::from_str(&ran.stdout);
        (code, document.unwrap_or_else(|error| panic!("{error}: {}\n{}", ran.stdout, ran.stderr)))
    }
}

/// A folder for all tests of this build.
fn shared(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The component of the hygiene pack, built by `make checks`.
pub fn hygiene() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checks/target/packs/hygiene.wasm");
    assert!(path.is_file(), "the hygiene pack is not built: run `make checks`");
    path
}

/// A program that is made for the tests, beside the binary.
pub fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_probity")).with_file_name("examples").join(name);
    assert!(
        path.is_file(),
        "{name} is not built: run `cargo test` without naming a target, or `cargo build --examples`"
    );
    path
}

impl Ran {
    fn of(raw: Output, outside: &Path) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(outside.to_str().unwrap(), "[DIR]");
        Self { code: raw.status.code(), stdout: text(&raw.stdout), stderr: text(&raw.stderr), raw }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Both streams, without what differs from run to run.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("--- {name}\n{}", redacted(stream)));
            }
        }
        text
    }
}

/// Times, run names and digests, replaced by words of one width.
pub fn redacted(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        for word in line.split(' ') {
            words.push(redacted_word(word));
        }
        let mut shown = words.join(" ");
        // How old something is by the time it is shown depends on the machine.
        if let Some((before, after)) = shown.split_once(" s old") {
            shown = format!("{} [AGE] old{after}", before.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end());
        }
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    out
}

fn redacted_word(word: &str) -> String {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bare = word.trim_end_matches([',', ')', ':', ';']);
    let rest = &word[bare.len()..];
    if let Some(digest) = bare.strip_prefix("blake3:").filter(|digest| hex(digest.trim_end_matches('…'))) {
        let _ = digest;
        return format!("[DIGEST]{rest}");
    }
    if bare.strip_prefix("sha1:").is_some_and(hex) {
        return format!("[COMMIT]{rest}");
    }
    if bare.len() == 10 && hex(bare) {
        return format!("[COMMIT]{rest}");
    }
    if bare.len() == 12 && hex(bare) {
        return format!("[RUN]{rest}");
    }
    if bare.ends_with('s') && bare.trim_end_matches('s').parse::<f64>().is_ok() && bare.contains('.') {
        return format!("[TIME]{rest}");
    }
    if bare.len() == 24 && bare.ends_with('Z') && bare.as_bytes()[10] == b'T' {
        return format!("[WHEN]{rest}");
    }
    word.to_owned()
}

/// The row of a check in a document of `verify --json`.
pub fn row<'a>(document: &'a serde_json::Value, id: &str) -> &'a serde_json::Value {
    let rows = document["record"]["verdict"]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row {id} in {document:#}"))
}

/// What surrounds the row of a check.
pub fn around<'a>(document: &'a serde_json::Value, id: &str) -> &'a serde_json::Value {
    let rows = document["record"]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no record of {id}"))
}

/// Polls until `what` is true; panics after ten seconds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !condition() {
        assert!(std::time::Instant::now() < until, "{what}: did not happen");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Sends a process a signal by its name.
pub fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args(["-s", name, pid]).status().unwrap().success());
}

/// Whether a process with this id exists and is no zombie.
pub fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}
