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

/// What a check may use, and who says each: what it asks for, else the default, and never more than whoever runs it lets
/// it have.
pub(super) fn limits(asked: &config::Limits, ceilings: &config::Limits) -> (Limits, BTreeMap<&'static str, SaidBy>) {
    fn one<T: Ord>(asked: Option<T>, default: T, most: Option<T>) -> (T, SaidBy) {
        let by = if asked.is_some() { SaidBy::Check } else { SaidBy::BuiltIn };
        let without = asked.unwrap_or(default);
        match most {
            Some(most) if most < without => (most, SaidBy::User),
            _ => (without, by),
        }
    }
    let default = Limits::default();
    let fuel = one(asked.fuel, default.fuel, ceilings.fuel);
    let memory = one(asked.memory, default.memory, ceilings.memory);
    let output = one(asked.output, default.output, ceilings.output);
    let findings = one(asked.findings, default.findings, ceilings.findings);
    let handles = one(asked.handles, default.handles, ceilings.handles);
    let wall = one(asked.wall, default.wall, ceilings.wall);
    let limits = Limits {
        fuel: fuel.0,
        init_fuel: one(None, default.init_fuel, ceilings.fuel).0,
        memory: memory.0,
        output: output.0,
        findings: findings.0,
        handles: handles.0,
        wall: wall.0,
    };
    let said_by = [
        ("fuel", fuel.1),
        ("memory", memory.1),
        ("output", output.1),
        ("findings", findings.1),
        ("handles", handles.1),
        ("wall", wall.1),
    ];
    (limits, said_by.into())
}
