//! What a command sees of the environment.

use crate::model::{Context, Digest, Encoder};
use crate::system::KEY_VARIABLE;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Names and values, sorted by name.
pub type Environment = BTreeMap<OsString, OsString>;

/// What programs need to start and to find their files; everything else has to be declared.
const PASSED: [&str; 5] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR"];

/// Values that would otherwise change answers from place to place.
const FIXED: [(&str, &str); 3] = [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC")];

/// Variables that point git at a repository. Whoever started Probity may be a hook of another one.
fn points_git_elsewhere(name: &OsStr) -> bool {
    const NAMES: [&str; 14] = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
    ];
    NAMES.iter().any(|known| name == *known)
}

/// What no command gets to see, whoever asks for it: with the key it could forge what is served.
fn is_ours_alone(name: &OsStr) -> bool {
    name == KEY_VARIABLE
}

/// The environment of `[verify]` commands: `ours` as it is, and what the configuration adds.
pub fn inherited(ours: impl Iterator<Item = (OsString, OsString)>, extra: &[(String, String)]) -> Environment {
    let mut environment: Environment =
        ours.filter(|(name, _)| !points_git_elsewhere(name) && !is_ours_alone(name)).collect();
    add(&mut environment, extra);
    environment
}

/// The environment of `[checks.*]` commands: a fixed core, what `pass` names out of `ours`, and what the
/// configuration adds.
pub fn declared(
    ours: impl Iterator<Item = (OsString, OsString)>,
    pass: &[String],
    extra: &[(String, String)],
) -> Environment {
    let named =
        |name: &OsStr| PASSED.iter().any(|known| name == *known) || pass.iter().any(|known| name == known.as_str());
    let passed = |name: &OsStr| !is_ours_alone(name) && named(name);
    let mut environment: Environment =
        FIXED.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
    environment.extend(ours.filter(|(name, _)| passed(name)));
    add(&mut environment, extra);
    environment
}

/// The digest of a definition together with what is passed: each name, and of each value no more than a digest under
/// the user's key, so that nobody else can try values until one fits.
pub fn with_passed(definition: &Digest, environment: &Environment, key: &[u8; 32]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.digest(definition).integer(environment.len() as u64);
    for (name, value) in environment {
        encoder.bytes(name.as_bytes()).digest(&value_digest(value.as_bytes(), key));
    }
    encoder.finish(Context::Passed)
}

/// The digest of a variable's value under the user's key.
pub fn value_digest(value: &[u8], key: &[u8; 32]) -> Digest {
    Encoder::new().bytes(key).bytes(value).finish(Context::Variable)
}

fn add(environment: &mut Environment, extra: &[(String, String)]) {
    environment.extend(extra.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> impl Iterator<Item = (OsString, OsString)> {
        [("PATH", "/bin"), ("TZ", "Mars/Base"), ("SECRET", "s"), ("FOO", "1"), ("GIT_DIR", "/elsewhere")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
    }

    fn text(environment: &Environment) -> String {
        let lines: Vec<String> = environment.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        lines.join(" ")
    }

    #[test]
    fn a_declared_environment_has_what_was_declared_and_no_more() {
        let environment = declared(ours(), &["FOO".to_owned()], &[("BAR".to_owned(), "2".to_owned())]);
        assert_eq!(text(&environment), "BAR=2 FOO=1 LANG=C.UTF-8 LC_ALL=C.UTF-8 PATH=/bin TZ=UTC");
    }

    #[test]
    fn each_name_and_value_and_the_key_are_part_of_the_definition_and_no_value_is() {
        let definition = Digest::of(b"check");
        let of = |pairs: &[(&str, &str)], key: u8| {
            let environment = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            with_passed(&definition, &environment, &[key; 32])
        };
        let all = [
            of(&[("A", "1")], 0),
            of(&[("A", "2")], 0),
            of(&[("B", "1")], 0),
            of(&[("A", "1"), ("B", "1")], 0),
            of(&[], 0),
            of(&[("A", "1")], 1),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(all[0], of(&[("A", "1")], 0));
    }

    #[test]
    fn passing_a_fixed_variable_passes_its_value() {
        let environment = declared(ours(), &["TZ".to_owned()], &[]);
        assert_eq!(text(&environment), "LANG=C.UTF-8 LC_ALL=C.UTF-8 PATH=/bin TZ=Mars/Base");
    }

    #[test]
    fn an_inherited_environment_never_points_git_elsewhere() {
        let environment = inherited(ours(), &[("FOO".to_owned(), "2".to_owned())]);
        assert_eq!(text(&environment), "FOO=2 PATH=/bin SECRET=s TZ=Mars/Base");
    }
}
