//! What is heard from outside while a run goes on: requests to end it, to pause, and to say what goes on.

use super::error::CliError;
use crate::native::{Stop, Supervisor};
use crate::subject::Patience;
use crate::system::{self, clock};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// Sees to it that the supervisor has ended when this process does, however that comes.
pub(super) struct Supervised(pub(super) Arc<Supervisor>);

impl Drop for Supervised {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts to listen for signals. Each one asks the run to stop: the first in order, the second at once, and the third
/// ends this process where it is. A pause is one of all that runs.
pub(super) fn listen(
    patience: &Patience,
    supervisor: &Arc<Supervisor>,
) -> Result<(Sender<Stop>, Receiver<Stop>), CliError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
    let (sender, receiver) = std::sync::mpsc::channel();
    // Who ignores these two means to go on without a terminal.
    let heard = [SIGHUP, SIGINT].into_iter().filter(|signal| !system::ignores(*signal));
    let mut signals = signal_hook::iterator::Signals::new(heard.chain([SIGTERM, SIGTSTP, SIGUSR1]))
        .map_err(|error| CliError::trouble(format!("cannot listen for signals: {error}")))?;
    let (stop, patience, supervisor) = (sender.clone(), patience.clone(), Arc::clone(supervisor));
    std::thread::spawn(move || {
        let mut count = 0;
        for signal in signals.forever() {
            if signal == SIGTSTP {
                // In this order: time that is told stands still for as long as anything may.
                clock::pause();
                supervisor.pause();
                // This returns when somebody lets the process go on.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
                supervisor.resume();
                clock::resume();
                continue;
            }
            if signal == SIGUSR1 {
                let _ = stop.send(Stop::Asked);
                continue;
            }
            count += 1;
            patience.stop();
            let _ = stop.send(Stop::Interrupted);
            if count > 2 {
                let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
            }
        }
    });
    Ok((sender, receiver))
}
