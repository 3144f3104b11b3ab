//! The list of a pack's checks, and the way from a request to the right one.

use crate::contract::types;
use crate::{Check, Context, Mounts, Refusal, Report, Request};

/// A pack: what it says about itself, and its checks.
pub struct Pack {
    name: &'static str,
    version: &'static str,
    summary: &'static str,
    license: Option<&'static str>,
    checks: Vec<Check>,
}

impl Pack {
    /// A pack without checks yet. The version is best taken from the crate: `env!("CARGO_PKG_VERSION")`. The summary is
    /// one sentence.
    pub fn new(name: &'static str, version: &'static str, summary: &'static str) -> Self {
        Self { name, version, summary, license: None, checks: Vec::new() }
    }

    /// Names the licence, as an SPDX expression.
    #[must_use]
    pub fn license(mut self, license: &'static str) -> Self {
        self.license = Some(license);
        self
    }

    /// Adds a check.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// The checks, in the order they were added.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// What the contract says about this pack: the component's `describe`.
    pub fn describe(&self) -> types::Pack {
        types::Pack {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            summary: self.summary.to_owned(),
            license: self.license.map(str::to_owned),
            checks: self.checks.iter().map(Check::describe).collect(),
        }
    }

    /// Runs the check that the request names, reading below `mounts`: the component's `run`.
    pub fn run(&self, request: &Request, mounts: &Mounts) -> Result<Report, Refusal> {
        let check = self.find(&request.check)?;
        check.run(&request.config, &Context::new(request, mounts))
    }

    pub(crate) fn find(&self, id: &str) -> Result<&Check, Refusal> {
        self.checks
            .iter()
            .find(|check| check.id() == id)
            .ok_or_else(|| Refusal::Internal(format!("the pack `{}` has no check `{id}`", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use crate::{Finding, Need, Rule};

    fn pack() -> Pack {
        Pack::new("sample", "1.2.3", "A sample.")
            .license("MIT")
            .check(
                Check::without_config("red", "Red", |_| Ok(Report::new().with(Finding::error("no", "It is red."))))
                    .need(Need::tree(&["**", "!b"], "To see."))
                    .rule(Rule::error("no", "It is red.", "Paint it.")),
            )
            .check(Check::without_config("green", "Green", |_| Ok(Report::new())))
    }

    #[test]
    fn a_request_reaches_the_check_it_names() {
        let run = |id| pack().run(&request(id, "{}"), &Mounts::nowhere());
        assert_eq!(run("red").unwrap().findings.len(), 1);
        assert_eq!(run("green"), Ok(Report::new()));
    }

    #[test]
    fn an_unknown_check_is_refused() {
        assert_eq!(
            pack().run(&request("blue", "{}"), &Mounts::nowhere()),
            Err(Refusal::Internal("the pack `sample` has no check `blue`".to_owned()))
        );
    }

    #[test]
    fn a_description_says_what_was_declared() {
        let described = pack().describe();
        assert_eq!(described.license.as_deref(), Some("MIT"));
        assert_eq!(described.checks[0].needs[0].globs, ["**", "!b"]);
        assert_eq!(described.checks[0].rules[0].summary, "It is red.");
        assert_eq!(described.checks[1].files, ["**"]);
    }
}
