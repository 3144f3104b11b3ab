//! Finding out what this machine has: each capability at most once, and only when somebody asks.
//!
//! Must not: decide what follows from an answer, or keep what a probe writes.

use super::process::{ticket, wait};
use super::{Ending, Environment, Job, Stop, Supervisor, run};
use crate::model::{Capability, CapabilityName, Exit, Probe, State, Version};
use crate::system::clock;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a probe may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// How much of what a program says of itself is looked at: a version is in its first lines, and a flood is not kept.
pub const MAX_SAID: usize = 64 << 10;

/// How long the last words of a program are waited for once it has ended. What it left behind may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What probes get to see, and what they told so far.
#[derive(Debug)]
pub struct Probes {
    place: Place,
    /// Held while something is found out, so that nothing is found out twice at once.
    known: Mutex<BTreeMap<CapabilityName, Capability>>,
}

/// Where probes run.
#[derive(Debug)]
pub struct Place {
    /// The working directory.
    pub folder: PathBuf,
    /// All that they see of the environment.
    pub environment: Environment,
    /// What watches over those that are commands.
    pub supervisor: Arc<Supervisor>,
}

/// What ends a probe before its own time: the moment when the whole run has to be done, and signals.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// The moment.
    pub deadline: Option<Instant>,
    /// Where signals come from. One that ends a probe is sent again, for whoever listens next.
    pub stops: (&'a Sender<Stop>, &'a Receiver<Stop>),
}

impl Cut<'_> {
    /// Whether a signal has come. It stays there for whoever listens next.
    fn interrupted(&self) -> bool {
        let came = self.stops.1.try_iter().any(|stop| stop == Stop::Interrupted);
        if came {
            let _ = self.stops.0.send(Stop::Interrupted);
        }
        came
    }
}

impl Probes {
    /// Nothing is known yet.
    pub fn new(place: Place) -> Self {
        Self { place, known: Mutex::default() }
    }

    /// What is known of a capability. It is found out when somebody asks first; the same name is always about the same
    /// probe.
    pub fn capability(&self, name: &CapabilityName, probe: &Probe, cut: Cut<'_>) -> Capability {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(capability) = known.get(name) {
            return capability.clone();
        }
        let (state, why) = self::probe(probe, &self.place, cut);
        tracing::debug!(%name, %state, why, "probed");
        let capability = Capability { name: name.clone(), state, why };
        // What was cut short says nothing of this machine, and a check beside the one that asked may go on.
        if cut.interrupted() {
            return capability;
        }
        known.insert(name.clone(), capability.clone());
        capability
    }

    /// Everything that was found out, sorted by name.
    pub fn known(&self) -> Vec<Capability> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Finds out one thing, and what makes it so where there is something to say.
pub fn probe(probe: &Probe, place: &Place, cut: Cut<'_>) -> (State, Option<String>) {
    match probe {
        Probe::Command { argv, timeout } => {
            let log = File::options().write(true).open("/dev/null");
            match log.map(|log| start(argv, place, log, *timeout, cut)) {
                Ok(Ending::Exited(Exit::Code(0))) => (State::Present, None),
                Ok(Ending::Exited(Exit::Code(code))) => (State::Absent, Some(format!("the probe ended with {code}"))),
                Ok(ending) => (State::Unknown, Some(unfinished("the probe", &argv[0], &ending, *timeout))),
                Err(error) => (State::Unknown, Some(format!("/dev/null cannot be opened: {error}"))),
            }
        }
        Probe::Program { program, at_least, timeout } => {
            if find_program(program, &place.folder, &place.environment).is_none() {
                let looked = if program.contains('/') { "" } else { " in PATH" };
                return (State::Absent, Some(format!("there is no program `{program}`{looked}")));
            }
            match at_least {
                None => (State::Present, None),
                Some(least) => version(program, least, place, *timeout, cut),
            }
        }
        Probe::Resolves { host, timeout } => resolves(host, *timeout, cut),
        Probe::Os(os) if os.name() == std::env::consts::OS => (State::Present, None),
        Probe::Os(_) => (State::Absent, Some(format!("this is {}", std::env::consts::OS))),
    }
}

fn start(argv: &[String], place: &Place, log: File, timeout: Duration, cut: Cut<'_>) -> Ending {
    let Place { folder, environment, supervisor } = place;
    let deadline = until(timeout, cut);
    let job = Job { argv, folder, environment, log, deadline, grace: GRACE };
    // What a probe leaves behind says nothing of this machine.
    let (ending, _) = run(job, supervisor, cut.stops.0, cut.stops.1);
    if let Ending::Interrupted(_) = ending {
        let _ = cut.stops.0.send(Stop::Interrupted);
    }
    ending
}

fn until(timeout: Duration, cut: Cut<'_>) -> Option<Instant> {
    [clock::now().checked_add(timeout), cut.deadline].into_iter().flatten().min()
}

/// Why an ending says nothing of what was to be found out.
fn unfinished(what: &str, program: &str, ending: &Ending, timeout: Duration) -> String {
    match ending {
        Ending::Exited(Exit::Code(code)) => format!("{what} ended with {code}"),
        Ending::Exited(Exit::Signal(signal)) => format!("{what} was ended by signal {signal}"),
        Ending::TimedOut(_) => format!("{what} did not end within {timeout:?}"),
        Ending::Interrupted(_) => format!("{what} was interrupted"),
        Ending::NotStarted(error) => format!("`{program}` cannot be started: {error}"),
        Ending::Lost(why) => format!("{what} is lost: {why}"),
    }
}

/// The file of this name that may be executed, where a command in `folder` would be looked for.
pub fn find_program(program: &str, folder: &Path, environment: &Environment) -> Option<PathBuf> {
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return Some(folder.join(program)).filter(executable);
    }
    let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str).unwrap_or_default();
    std::env::split_paths(path).map(|entry| folder.join(entry).join(program)).find(executable)
}

/// The first [`MAX_SAID`] bytes of what a command says that ends with 0, on both its streams.
pub fn said(argv: &[String], place: &Place, timeout: Duration, cut: Cut<'_>) -> Result<Vec<u8>, String> {
    let what = format!("`{}`", argv.join(" "));
    let (reader, writer) = io::pipe().map_err(|error| format!("there is no pipe for {what}: {error}"))?;
    let said = listen(reader);
    match start(argv, place, File::from(OwnedFd::from(writer)), timeout, cut) {
        Ending::Exited(Exit::Code(0)) => {}
        ending => return Err(unfinished(&what, &argv[0], &ending, timeout)),
    }
    Ok(said.take())
}

fn version(program: &str, least: &Version, place: &Place, timeout: Duration, cut: Cut<'_>) -> (State, Option<String>) {
    let argv = [program.to_owned(), "--version".to_owned()];
    let what = format!("`{program} --version`");
    let said = match said(&argv, place, timeout, cut) {
        Ok(said) => said,
        Err(why) => return (State::Unknown, Some(why)),
    };
    match Version::first_in(&String::from_utf8_lossy(&said)) {
        Some(found) if found >= *least => (State::Present, Some(format!("version {found}"))),
        Some(found) => (State::Absent, Some(format!("version {found} is less than {least}"))),
        None => (State::Unknown, Some(format!("{what} says no version"))),
    }
}

/// What came through a pipe so far, and word of its end.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Said {
    /// What came until the end, or until nobody waits any more.
    fn take(&self) -> Vec<u8> {
        let _ = self.end.recv_timeout(LAST_WORDS);
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes all that comes through a pipe, so that nobody waits at its other end, and keeps the first of it.
fn listen(mut pipe: io::PipeReader) -> Said {
    let (sender, end) = channel();
    let bytes = Arc::<Mutex<Vec<u8>>>::default();
    let kept = Arc::clone(&bytes);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MAX_SAID.saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..count.min(room)]);
        }
        let _ = sender.send(());
    });
    Said { bytes, end }
}

/// Looks a name up on a thread of its own, since nothing can end a look-up: one that takes too long is left alone.
fn resolves(host: &str, timeout: Duration, cut: Cut<'_>) -> (State, Option<String>) {
    let id = ticket();
    let (sender, found) = channel();
    let (ended, name) = (cut.stops.0.clone(), host.to_owned());
    std::thread::spawn(move || {
        let _ = sender.send((name.as_str(), 0_u16).to_socket_addrs().map(|mut found| found.next().is_some()));
        let _ = ended.send(Stop::Ended(id));
    });
    match wait(cut.stops.1, id, until(timeout, cut)) {
        Some(Stop::Ended(_) | Stop::Asked) => match found.try_recv() {
            Ok(Ok(true)) => (State::Present, None),
            Ok(Ok(false)) => (State::Absent, Some(format!("`{host}` has no address"))),
            Ok(Err(error)) => (State::Absent, Some(format!("`{host}` does not resolve: {error}"))),
            Err(_) => (State::Unknown, Some(format!("the look-up of `{host}` broke off"))),
        },
        Some(Stop::Interrupted) => {
            let _ = cut.stops.0.send(Stop::Interrupted);
            (State::Unknown, Some(format!("the look-up of `{host}` was interrupted")))
        }
        None => (State::Unknown, Some(format!("the look-up of `{host}` did not end within {timeout:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::declared;
    use crate::native::supervisor::tests::supervisor;

    const TEN: Duration = Duration::from_secs(10);

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn probed(folder: &tempfile::TempDir, probe: &Probe) -> (State, Option<String>) {
        let stops = channel();
        super::probe(probe, &place(folder), Cut { deadline: None, stops: (&stops.0, &stops.1) })
    }

    fn place(folder: &tempfile::TempDir) -> Place {
        let environment = declared(std::env::vars_os(), &[], &[]);
        Place { folder: folder.path().to_owned(), environment, supervisor: Arc::new(supervisor()) }
    }

    fn command(argv: &[&str], timeout: Duration) -> Probe {
        Probe::Command { argv: argv.iter().map(|&word| word.to_owned()).collect(), timeout }
    }

    fn program(program: &str, at_least: Option<&str>) -> Probe {
        let at_least = at_least.map(|version| version.parse().unwrap());
        Probe::Program { program: program.to_owned(), at_least, timeout: TEN }
    }

    /// An executable script in the folder. Another process writes it: a file that this one has open for writing, other
    /// tests' children may hold for a moment, and it could not be executed.
    fn script(folder: &tempfile::TempDir, name: &str, body: &str) {
        let mut write = std::process::Command::new("sh");
        write.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh", name, body]);
        assert!(write.current_dir(folder.path()).status().unwrap().success());
    }

    #[test]
    fn a_command_answers_by_how_it_ends() {
        let folder = folder();
        let of = |argv: &[&str], timeout| probed(&folder, &command(argv, timeout));
        let why = |text: &str| Some(text.to_owned());
        assert_eq!(of(&["true"], TEN), (State::Present, None));
        assert_eq!(of(&["sh", "-c", "yes | head -c 1000000"], TEN), (State::Present, None), "what it says is lost");
        assert_eq!(of(&["sh", "-c", "exit 3"], TEN), (State::Absent, why("the probe ended with 3")));
        assert_eq!(of(&["sh", "-c", "kill -9 $$"], TEN), (State::Unknown, why("the probe was ended by signal 9")));
        assert_eq!(
            of(&["sleep", "600"], Duration::from_millis(50)),
            (State::Unknown, why("the probe did not end within 50ms"))
        );
        let (state, why) = of(&["no-such-program-here"], TEN);
        assert_eq!(state, State::Unknown);
        assert!(why.unwrap().starts_with("`no-such-program-here` cannot be started: "));
    }

    #[test]
    fn a_program_is_there_or_not() {
        let folder = folder();
        assert_eq!(probed(&folder, &program("sh", None)), (State::Present, None));
        let why = "there is no program `no-such-program-here` in PATH".to_owned();
        assert_eq!(probed(&folder, &program("no-such-program-here", None)), (State::Absent, Some(why)));
        std::fs::write(folder.path().join("data"), "").unwrap();
        script(&folder, "tool", "");
        assert_eq!(probed(&folder, &program("./data", None)).0, State::Absent, "it may not be executed");
        assert_eq!(probed(&folder, &program("./tool", None)).0, State::Present);
        assert_eq!(probed(&folder, &program("tool", None)).0, State::Absent, "the folder is not in PATH");
    }

    #[test]
    fn a_version_is_what_the_program_says_of_itself() {
        let folder = folder();
        let of = |body: &str, least| {
            script(&folder, "tool", body);
            let (state, why) = probed(&folder, &program("./tool", Some(least)));
            (state, why.unwrap_or_default())
        };
        let says = "echo Tool version 24.0.7, build 1";
        assert_eq!(of(says, "24.0"), (State::Present, "version 24.0.7".to_owned()));
        assert_eq!(of(says, "24.1"), (State::Absent, "version 24.0.7 is less than 24.1".to_owned()));
        assert_eq!(of("echo 1.5 >&2", "1.5").0, State::Present, "some say it on standard error");
        assert_eq!(of("echo nothing", "1"), (State::Unknown, "`./tool --version` says no version".to_owned()));
        assert_eq!(of("echo 2.0; exit 1", "1"), (State::Unknown, "`./tool --version` ended with 1".to_owned()));
        assert_eq!(of("echo 2.0; yes | head -c 1000000", "1").0, State::Present, "a flood is not kept");
        let left = "echo 2.0; setsid sh -c 'touch started; exec sleep 5' & while [ ! -e started ]; do sleep 0.01; done";
        assert_eq!(of(left, "1").1, "version 2.0", "and what it left behind is ended");
    }

    #[test]
    fn a_name_resolves_or_not() {
        let folder = folder();
        let of = |host: &str| probed(&folder, &Probe::Resolves { host: host.to_owned(), timeout: TEN });
        assert_eq!(of("localhost"), (State::Present, None));
        // The part of a name that is too long is no question to any server.
        let (state, why) = of(&"x".repeat(300));
        assert_eq!(state, State::Absent);
        assert!(why.unwrap().contains("does not resolve"));
    }

    #[test]
    fn a_system_is_this_one_or_not() {
        let folder = folder();
        let states = crate::model::Os::ALL.map(|os| probed(&folder, &Probe::Os(os)).0);
        assert_eq!(states.iter().filter(|state| **state == State::Present).count(), 1);
    }

    #[test]
    fn nothing_is_found_out_twice() {
        let folder = folder();
        let probes = Probes::new(place(&folder));
        let stops = channel();
        let cut = Cut { deadline: None, stops: (&stops.0, &stops.1) };
        let probe = command(&["sh", "-c", "echo >> asked"], TEN);
        let name = "x".parse().unwrap();
        assert!(probes.known().is_empty());
        for _ in 0..3 {
            assert_eq!(probes.capability(&name, &probe, cut).state, State::Present);
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("asked")).unwrap(), "\n");
        assert_eq!(probes.known().len(), 1);
    }

    #[test]
    fn a_signal_ends_a_probe_and_is_there_for_whoever_listens_next() {
        let folder = folder();
        for probe in [command(&["sleep", "600"], TEN), program("sleep", Some("1"))] {
            let stops = channel();
            stops.0.send(Stop::Interrupted).unwrap();
            let cut = Cut { deadline: None, stops: (&stops.0, &stops.1) };
            let (state, why) = super::probe(&probe, &place(&folder), cut);
            assert_eq!(state, State::Unknown, "{why:?}");
            assert!(stops.1.try_iter().any(|stop| stop == Stop::Interrupted));
        }
    }
}
