//! What a check of a pack may use, and who says so.

use crate::config;
use crate::guest::Limits;
use std::collections::BTreeMap;

/// Who says what a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// `limits` of the check.
    Check,
    /// `[limits]` of the user's file, which is less than what would hold without it.
    User,
    /// Nobody: it is built in.
    BuiltIn,
}

fn least<T: Ord>(asked: Option<T>, default: T, most: Option<T>) -> T {
    most.into_iter().fold(asked.unwrap_or(default), T::min)
}

/// What a check may use: what it asks for, else the default, and never more than whoever runs it lets it have.
pub(super) fn limits(asked: &config::Limits, ceilings: &config::Limits) -> Limits {
    let default = Limits::default();
    Limits {
        fuel: least(asked.fuel, default.fuel, ceilings.fuel),
        init_fuel: least(None, default.init_fuel, ceilings.fuel),
        memory: least(asked.memory, default.memory, ceilings.memory),
        output: least(asked.output, default.output, ceilings.output),
        findings: least(asked.findings, default.findings, ceilings.findings),
        handles: least(asked.handles, default.handles, ceilings.handles),
        wall: least(asked.wall, default.wall, ceilings.wall),
    }
}

/// Who says each of the limits.
pub(super) fn said_by(asked: &config::Limits, ceilings: &config::Limits) -> BTreeMap<&'static str, SaidBy> {
    fn one<T: Ord>(asked: Option<T>, default: T, most: Option<T>) -> SaidBy {
        let by = if asked.is_some() { SaidBy::Check } else { SaidBy::BuiltIn };
        let without = asked.unwrap_or(default);
        if most.is_some_and(|most| most < without) { SaidBy::User } else { by }
    }
    let default = Limits::default();
    BTreeMap::from([
        ("fuel", one(asked.fuel, default.fuel, ceilings.fuel)),
        ("memory", one(asked.memory, default.memory, ceilings.memory)),
        ("output", one(asked.output, default.output, ceilings.output)),
        ("findings", one(asked.findings, default.findings, ceilings.findings)),
        ("handles", one(asked.handles, default.handles, ceilings.handles)),
        ("wall", one(asked.wall, default.wall, ceilings.wall)),
    ])
}
