//! What a command left running, or was running when it was ended.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most programs that are named.
const MAX_NAMED: usize = 32;

/// Processes that had to be ended with a command, by what they call themselves, in whatever words. No ids: they say nothing
/// to anyone later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaped {
    /// Programs and how many processes of each, sorted by name; at most 32.
    pub programs: Vec<(String, u64)>,
    /// Processes of other programs.
    pub unnamed: u64,
}

impl Reaped {
    /// Of names as they are, as far as they are text.
    pub fn of(programs: impl IntoIterator<Item = (Vec<u8>, u32)>, unnamed: u32) -> Self {
        let named =
            programs.into_iter().map(|(name, count)| (String::from_utf8_lossy(&name).into_owned(), count.into()));
        Self { programs: Vec::new(), unnamed: unnamed.into() }.with(named)
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.unnamed == 0
    }

    /// Adds those of another command.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let Self { programs, unnamed } = other;
        Self { unnamed: self.unnamed.saturating_add(unnamed), ..self }.with(programs)
    }

    /// The same with other names.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        let programs: Vec<_> = self.programs.iter().map(|(program, count)| (name(program), *count)).collect();
        Self { programs: Vec::new(), ..self }.with(programs)
    }

    fn with(self, more: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in self.programs.into_iter().chain(more) {
            let sum = counts.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        let unnamed = counts.values().skip(MAX_NAMED).fold(self.unnamed, |sum, count| sum.saturating_add(*count));
        Self { programs: counts.into_iter().take(MAX_NAMED).collect(), unnamed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_counted_by_name_and_only_so_many_are_named() {
        let of = |names: &[&[u8]]| Reaped::of(names.iter().map(|name| (name.to_vec(), 1)), 0);
        let both = of(&[b"sleep", b"cat"]).and(of(&[b"sleep", b"\xff"]));
        let named = [("cat".to_owned(), 1), ("sleep".to_owned(), 2), ("\u{fffd}".to_owned(), 1)];
        assert_eq!(both, Reaped { programs: named.to_vec(), unnamed: 0 });
        let one = both.renamed(|_| "x".to_owned());
        assert_eq!(one, Reaped { programs: vec![("x".to_owned(), 4)], unnamed: 0 });
        let many = Reaped::of((0..100_u32).map(|n| (format!("{n:03}").into_bytes(), 2)), 1);
        assert_eq!((many.programs.len(), many.unnamed), (32, 1 + 68 * 2));
        assert_eq!(many.clone().and(many).unnamed, 2 * (1 + 68 * 2));
        assert!(Reaped::default().is_empty());
    }
}
