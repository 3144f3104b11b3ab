//! The time that limits count: it stands still while this process is paused.
//!
//! Whoever pauses Probity, by Ctrl-Z or otherwise, has not decided that its checks shall fail at their limits of time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

static CLOCK: Mutex<Clock> = Mutex::new(Clock { paused: Duration::ZERO, since: None });

/// Now, as if there had never been a pause. For limits only, and to be compared with nothing but other moments from here.
pub fn now() -> Instant {
    with(|clock| clock.at(Instant::now()))
}

/// Stops the clock, before this process is stopped: whoever looks at it between two pauses sees the same moment.
pub fn pause() {
    with(|clock| clock.pause(Instant::now()));
}

/// Lets it go on.
pub fn resume() {
    with(|clock| clock.resume(Instant::now()));
}

fn with<T>(what: impl FnOnce(&mut Clock) -> T) -> T {
    what(&mut CLOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

struct Clock {
    /// All pauses that are over.
    paused: Duration,
    /// When this one began.
    since: Option<Instant>,
}

impl Clock {
    fn at(&self, moment: Instant) -> Instant {
        let moment = self.since.unwrap_or(moment);
        // This process did not pause before there were moments.
        moment.checked_sub(self.paused).unwrap_or(moment)
    }

    fn pause(&mut self, moment: Instant) {
        self.since.get_or_insert(moment);
    }

    fn resume(&mut self, moment: Instant) {
        if let Some(since) = self.since.take() {
            self.paused += moment.saturating_duration_since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count() {
        let start = Instant::now() + Duration::from_hours(1);
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = Clock { paused: Duration::ZERO, since: None };
        assert_eq!(clock.at(at(1)), at(1));
        clock.pause(at(2));
        clock.pause(at(3));
        assert_eq!(clock.at(at(9)), at(2));
        clock.resume(at(10));
        clock.resume(at(11));
        assert_eq!(clock.at(at(12)), at(4));
        clock.pause(at(20));
        assert_eq!(clock.at(at(99)), at(12));
        clock.resume(at(30));
        assert_eq!(clock.at(at(31)), at(13));
    }
}
