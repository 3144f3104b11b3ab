//! What a check needs of this machine: where it is not there, the check does not run, and that is red.

use super::{Done, Runner, Stopped};
use crate::model::{Capability, CheckOutcome, ErrorKind, State};
use crate::native::Cut;
use crate::plan::Unit;
use crate::system::clock;
use std::fmt::Write as _;

impl Runner<'_> {
    /// What becomes of a check that needs what is not there, or what nobody can say is there. None where nothing is
    /// lacking.
    pub(super) fn lacking(&mut self, unit: &Unit) -> Option<(CheckOutcome, Done)> {
        let mut lacking = Vec::new();
        for (name, probe) in &unit.needs {
            let stops = (&self.stops.0, &self.stops.1);
            let capability =
                self.shared.around.capabilities.capability(name, probe, Cut { deadline: self.shared.deadline, stops });
            // What a probe says that was cut short is about the run and not about this machine.
            if self.interrupted() {
                return Some((Stopped::Signal.outcome(), Done::default()));
            }
            if self.shared.deadline.is_some_and(|deadline| deadline <= clock::now()) {
                let mut done = Done::default();
                self.out_of_budget(&mut done);
                return Some((Stopped::Budget.outcome(), done));
            }
            match capability.state {
                State::Present => {}
                State::Absent | State::Unknown => lacking.push(capability),
            }
        }
        if lacking.is_empty() {
            return None;
        }
        let done = Done { message: Some(message(&lacking)), ..Done::default() };
        Some((CheckOutcome::Error(ErrorKind::Gap), done))
    }
}

fn message(lacking: &[Capability]) -> String {
    let mut text = String::new();
    for Capability { name, state, why } in lacking {
        let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        // Writing into a string does not fail.
        let _ = writeln!(text, "it needs the capability `{name}`, which is {state} here{why}");
    }
    text + "help: install or start what is missing, or verify where it is there; a check that could not run is never green"
}
