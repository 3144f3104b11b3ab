//! For programs: one JSON object a line for each event, as it comes.

use crate::model::{CanonicalError, Event};
use serde_json::{Value, json};

/// The form of the lines, as the first of a run says.
pub const EVENTS_SCHEMA: &str = "probity/events/1";

/// The line of an event. `at_ms` is when it was said, milliseconds from the beginning of the run; none of a stored one.
///
/// # Errors
/// Where a record has no canonical form, of which there is none.
pub fn line(event: &Event, at_ms: Option<u64>) -> Result<Value, CanonicalError> {
    let mut line = json!(event);
    if let Some(at) = at_ms {
        line["at_ms"] = json!(at);
    }
    match event {
        Event::RunStarted { .. } => line["schema"] = json!(EVENTS_SCHEMA),
        Event::RunFinished { record, .. } => {
            line["exit_code"] = json!(record.verdict.outcome.exit_code());
            line["record_digest"] = json!(record.digest()?);
        }
        Event::CheckStarted { .. }
        | Event::CheckOutput { .. }
        | Event::CheckSlow { .. }
        | Event::Running { .. }
        | Event::Stopping { .. }
        | Event::CheckEnded { .. }
        | Event::CheckFinished { .. }
        | Event::RunReused { .. } => {}
    }
    Ok(line)
}
