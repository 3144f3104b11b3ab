//! Which check is next: the declared order, what may run beside what, and where the first red check ends a run.
//!
//! Pure: it is told what started and what ended, and starts nothing itself.
//!
//! Invariant: whatever ends first, the first red check in declared order is found among the same checks: all that come
//! before it are started and run to their end, and what comes after it decides nothing.

use crate::plan::Plan;

/// What decides when a check may start, and what follows from its end.
#[derive(Debug, Clone)]
struct Entry {
    /// Whether it may run beside others that may.
    parallel: bool,
    /// Whether its red ends the run.
    ends: bool,
    /// The places of the checks that end before it starts; all of them are earlier ones.
    after: Vec<usize>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// The checks of a run by their places in declared order.
#[derive(Debug, Clone)]
pub(super) struct Order {
    jobs: usize,
    entries: Vec<Entry>,
    running: usize,
    /// All before this place have ended.
    ended: usize,
    first_red: Option<usize>,
}

impl Order {
    /// Nothing has started. What is not among the checks to run counts as ended.
    pub(super) fn new(plan: &Plan) -> Self {
        let places = |place: usize| {
            let after = &plan.units[place].after;
            // They come earlier, and what is not in the plan is not waited for.
            (0..place).filter(|earlier| after.contains(&plan.units[*earlier].id)).collect()
        };
        let entries = plan.units.iter().enumerate().map(|(place, unit)| Entry {
            parallel: unit.parallel,
            ends: plan.fail_fast && unit.blocking,
            after: if unit.after.is_empty() { Vec::new() } else { places(place) },
            state: if unit.row.deselected.is_some() { State::Ended } else { State::Waiting },
        });
        Self { jobs: plan.jobs.into(), entries: entries.collect(), running: 0, ended: 0, first_red: None }
    }

    /// The place of a check that may start now.
    ///
    /// A check that may not run beside others waits until all before it have ended, and all behind it wait for its end.
    /// Between two such checks one that waits for others is passed by.
    pub(super) fn next(&self) -> Option<usize> {
        if self.running >= self.jobs {
            return None;
        }
        let end = self.first_red.unwrap_or(self.entries.len());
        for (place, entry) in self.entries.iter().enumerate().take(end).skip(self.ended) {
            match entry.state {
                State::Waiting if !entry.parallel => return (self.running == 0).then_some(place),
                State::Waiting if self.are_over(&entry.after) => return Some(place),
                State::Running if !entry.parallel => return None,
                State::Waiting | State::Running | State::Ended => {}
            }
        }
        None
    }

    fn are_over(&self, places: &[usize]) -> bool {
        places.iter().all(|place| self.entries[*place].state == State::Ended)
    }

    /// A check has started.
    pub(super) fn start(&mut self, place: usize) {
        self.entries[place].state = State::Running;
        self.running += 1;
    }

    /// A check that was started has ended.
    pub(super) fn end(&mut self, place: usize, red: bool) {
        self.entries[place].state = State::Ended;
        self.running -= 1;
        let over = self.entries[self.ended..].iter().take_while(|entry| entry.state == State::Ended);
        self.ended += over.count();
        if red && self.entries[place].ends {
            self.first_red = Some(self.first_red.map_or(place, |first| first.min(place)));
        }
    }

    /// The first check in declared order that was red and ends the run, of those that have ended. An earlier one may
    /// still take its place; what comes after it decides nothing in any case.
    pub(super) fn first_red(&self) -> Option<usize> {
        self.first_red
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// What there is to know of a check beforehand, and whether it would be red.
    #[derive(Debug, Clone, Copy)]
    #[expect(clippy::struct_excessive_bools, reason = "each of the sixteen kinds is tried")]
    struct Kind {
        parallel: bool,
        blocking: bool,
        red: bool,
        /// Whether it comes after the one before it.
        waits: bool,
    }

    /// What a verdict says of each check: its colour, or the one that it is skipped after.
    type Rows = Vec<Result<bool, usize>>;

    fn order(kinds: &[Kind], jobs: usize) -> Order {
        let entry = |(place, kind): (usize, &Kind)| Entry {
            parallel: kind.parallel,
            ends: kind.blocking,
            after: place.checked_sub(1).filter(|_| kind.waits).into_iter().collect(),
            state: State::Waiting,
        };
        let entries = kinds.iter().enumerate().map(entry).collect();
        Order { jobs, entries, running: 0, ended: 0, first_red: None }
    }

    /// One after the other until the first red one that blocks.
    fn expected(kinds: &[Kind]) -> Rows {
        let first = kinds.iter().position(|kind| kind.red && kind.blocking);
        let row = |(place, kind): (usize, &Kind)| match first.filter(|first| *first < place) {
            Some(first) => Err(first),
            None => Ok(kind.red),
        };
        kinds.iter().enumerate().map(row).collect()
    }

    /// Every way in which the checks can end, each with what was running together at any time.
    fn explore(kinds: &[Kind], order: Order, running: &BTreeSet<usize>, seen: &mut dyn FnMut(&BTreeSet<usize>, Rows)) {
        let (mut order, mut running) = (order, running.clone());
        while let Some(next) = order.next() {
            assert!(order.first_red().is_none_or(|first| next < first), "{next} starts in vain: {kinds:?}");
            order.start(next);
            running.insert(next);
            let waits = kinds[next].waits && running.contains(&next.wrapping_sub(1));
            assert!(!waits, "{next} runs beside what it comes after: {kinds:?}");
        }
        if running.is_empty() {
            let row = |(place, entry): (usize, &Entry)| match order.first_red().filter(|first| *first < place) {
                Some(first) => Err(first),
                None if entry.state == State::Ended => Ok(kinds[place].red),
                None => panic!("{place} was never started: {kinds:?}"),
            };
            return seen(&running, order.entries.iter().enumerate().map(row).collect());
        }
        for ends in &running {
            // What comes after a red one is ended, and what it is then is chance.
            let counts = order.first_red().is_none_or(|first| *ends < first);
            for red in [kinds[*ends].red, !kinds[*ends].red].into_iter().take(if counts { 1 } else { 2 }) {
                let mut order = order.clone();
                order.end(*ends, red);
                let left = running.iter().copied().filter(|place| place != ends).collect();
                explore(kinds, order, &left, seen);
            }
        }
        seen(&running, expected(kinds));
    }

    fn kinds(count: usize) -> impl Iterator<Item = Vec<Kind>> {
        (0..16_usize.pow(u32::try_from(count).unwrap())).map(move |mut bits| {
            let mut take = || {
                let bit = bits % 2 == 1;
                bits /= 2;
                bit
            };
            (0..count).map(|_| Kind { parallel: take(), blocking: take(), red: take(), waits: take() }).collect()
        })
    }

    #[test]
    fn the_verdict_is_that_of_one_after_the_other_whatever_ends_first() {
        let mut most: BTreeMap<usize, usize> = BTreeMap::new();
        for kinds in kinds(4) {
            for jobs in [1, 2, 4] {
                let empty = BTreeSet::new();
                explore(&kinds, order(&kinds, jobs), &empty, &mut |together, rows| {
                    assert_eq!(rows, expected(&kinds), "{kinds:?}");
                    assert!(together.len() <= jobs);
                    let alone = together.iter().any(|place| !kinds[*place].parallel);
                    assert!(!alone || together.len() == 1, "{together:?} of {kinds:?}");
                    let most = most.entry(jobs).or_default();
                    *most = (*most).max(together.len());
                });
            }
        }
        assert_eq!(most, BTreeMap::from([(1, 1), (2, 2), (4, 4)]), "and as many as may do run side by side");
    }

    #[test]
    fn one_that_waits_is_passed_by_and_one_that_runs_alone_is_not() {
        let kind = Kind { parallel: true, blocking: true, red: false, waits: false };
        let (waits, alone) = (Kind { waits: true, ..kind }, Kind { parallel: false, ..kind });
        let mut order = order(&[kind, waits, kind, alone, kind], 4);
        let mut started = Vec::new();
        while let Some(next) = order.next() {
            order.start(next);
            started.push(next);
        }
        assert_eq!(started, [0, 2]);
        order.end(0, false);
        assert_eq!(order.next(), Some(1));
        order.start(1);
        order.end(1, false);
        assert_eq!(order.next(), None, "2 still runs");
        order.end(2, false);
        assert_eq!(order.next(), Some(3));
        order.start(3);
        assert_eq!(order.next(), None);
        order.end(3, false);
        assert_eq!(order.next(), Some(4));
    }
}
