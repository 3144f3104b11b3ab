//! Command checks: a process for each call, what became of it, and its output in a file.

use super::isolate::{Copy, NoCopy};
use super::{Done, Runner, Stopped, Surroundings, results};
use crate::model::{CheckOutcome, ErrorKind, Exit, Reaped};
use crate::native::{self, Ending, Environment, Job, RESULT_VARIABLE, ResultFile};
use crate::plan::{Unit, Work};
use crate::subject::Over;
use crate::system::clock;
use std::time::Duration;

/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(2);

impl Runner<'_> {
    pub(super) fn command(&mut self, unit: &Unit) -> (CheckOutcome, Done) {
        let host = |message: String| {
            (CheckOutcome::Error(ErrorKind::Host), Done { message: Some(message), ..Done::default() })
        };
        let Work::Command { argv, environment, files, passed, gap_exit, isolate, .. } = &unit.work else {
            return host("it is no command".to_owned());
        };
        let files = files.as_deref().unwrap_or_default();
        let log = match self.shared.around.logs.start(&unit.id, &self.shared.secrets) {
            Ok(log) => log,
            Err(error) => return host(format!("cannot make its log file: {error}")),
        };
        let kept = match log.try_clone() {
            Ok(kept) => kept,
            Err(error) => return host(format!("cannot keep its output: {error}")),
        };
        // Without it nothing is seen of the output before its end, which is no reason not to run.
        if let Ok(output) = log.try_clone() {
            let _ = self.output.set(output);
        }
        let own = unit.timeout.map(|timeout| clock::now() + timeout);
        let deadline = [own, self.shared.deadline].into_iter().flatten().min();
        let copy = match isolate.then(|| self.copy()).transpose() {
            Ok(copy) => copy,
            Err(error) => return self.without(error),
        };
        let folder = copy.as_ref().map_or_else(|| self.shared.around.workspace.root.clone(), Copy::path);
        let list = match self.listed(unit, argv, files) {
            Ok(list) => list,
            Err(error) => return host(format!("cannot write the list of its files: {error}")),
        };
        let mut ending = Ending::Exited(Exit::Code(0));
        let mut judged = Vec::new();
        let mut reaped = Reaped::default();
        for argv in native::files::calls(argv, files, &list, environment) {
            let log = match log.try_clone() {
                Ok(log) => log,
                Err(error) => return host(format!("cannot keep its output: {error}")),
            };
            let result = match ResultFile::new(&self.shared.around.logs.folder()) {
                Ok(result) => result,
                Err(error) => return host(format!("cannot make a folder for its result: {error}")),
            };
            let mut environment = environment.clone();
            environment.insert(RESULT_VARIABLE.into(), result.path().into());
            let job = Job { argv: &argv, folder: &folder, environment: &environment, log, deadline, grace: GRACE };
            let ended = native::run(job, self.shared.around.supervisor, &self.stops.0, &self.stops.1);
            ending = ended.0;
            reaped = reaped.and(ended.1);
            let Ending::Exited(exit) = ending else { break };
            let mut one = Done { exit: Some(exit), ..Done::default() };
            let outcome = results::judge(
                exit,
                gap_exit,
                result.read(),
                self.shared.around.snapshot,
                self.shared.fail_on,
                &mut one,
            );
            judged.push((outcome, one));
        }
        drop(log);
        let log = match self.shared.around.logs.finish(&unit.id, kept, &self.shared.secrets) {
            Ok(log) => log,
            Err(error) => return host(format!("cannot keep its output: {error}")),
        };
        let mut done = Done { log: Some(log), environment: Some(passed.clone()), reaped, ..Done::default() };
        let outcome = match ending {
            Ending::Exited(_) => results::together(judged, &mut done),
            Ending::TimedOut(exit) => {
                done.exit = Some(exit);
                if own.is_none_or(|own| self.shared.deadline.is_some_and(|budget| budget < own)) {
                    self.out_of_budget(&mut done);
                } else {
                    let limit = unit.timeout.unwrap_or_default();
                    done.message = Some(format!("it did not end within its timeout of {limit:?}"));
                }
                CheckOutcome::TimedOut
            }
            Ending::Interrupted(exit) => {
                done.exit = Some(exit);
                self.stopped = Some(Stopped::Signal);
                CheckOutcome::Interrupted
            }
            Ending::Lost(why) => {
                done.message = Some(why);
                CheckOutcome::Error(ErrorKind::Host)
            }
            Ending::NotStarted(error) => {
                done.log = None;
                done.environment = None;
                let kind = match error.kind() {
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => ErrorKind::NotFound,
                    _ => ErrorKind::Host,
                };
                done.message = Some(not_started(&argv[0], environment, &error));
                CheckOutcome::Error(kind)
            }
        };
        (outcome, done)
    }

    /// A private copy of the subject.
    fn copy(&self) -> Result<Copy, NoCopy> {
        let Surroundings { snapshot, workspace, .. } = self.shared.around;
        Copy::make(snapshot, &self.shared.sources, &workspace.patience)
    }

    /// What becomes of a check that has no copy to run in.
    fn without(&mut self, error: NoCopy) -> (CheckOutcome, Done) {
        let mut done = Done::default();
        let outcome = match error {
            NoCopy::Moved(path) => {
                done.message = Some(format!("`{path}` changed before it could be copied"));
                CheckOutcome::Error(ErrorKind::Moved)
            }
            NoCopy::Failed(why) => {
                done.message = Some(format!("what it runs in cannot be copied: {why}"));
                CheckOutcome::Error(ErrorKind::Host)
            }
            NoCopy::Stopped if self.shared.around.workspace.patience.over() == Some(Over::Stopped) => {
                self.stopped = Some(Stopped::Signal);
                CheckOutcome::Interrupted
            }
            NoCopy::Stopped => {
                self.out_of_budget(&mut done);
                CheckOutcome::TimedOut
            }
        };
        (outcome, done)
    }

    /// The path of a file that lists the files of a command, beside its log. Empty where the command asks for none.
    fn listed(&self, unit: &Unit, argv: &[String], files: &[String]) -> std::io::Result<String> {
        if !native::files::wants_list(argv) {
            return Ok(String::new());
        }
        self.shared.around.logs.list(&unit.id, &native::files::list(files))
    }
}

fn not_started(program: &str, environment: &Environment, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        std::io::ErrorKind::ArgumentListTooLong => {
            return format!(
                "cannot start `{program}`: its arguments and its environment are more than this system takes at once\n\
                 help: have the files listed with `{{files0}}`, or pass less: shorter arguments, fewer variables"
            );
        }
        _ => error.to_string(),
    };
    let path = environment.get(std::ffi::OsStr::new("PATH")).map(|path| path.to_string_lossy()).unwrap_or_default();
    let looked = if program.contains('/') { String::new() } else { format!("; PATH is {path}") };
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return format!(
            "cannot start `{program}`: {why}{looked}\nhelp: make it executable (`chmod +x`), or name what runs it: `[\"sh\", {program:?}]`"
        );
    }
    format!(
        "cannot start `{program}`: {why}{looked}\nhelp: install it, or correct `command`; a command is a list of words and never a shell line"
    )
}
