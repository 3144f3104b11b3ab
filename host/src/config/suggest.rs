//! Suggestions: which of the words that exist was meant.

/// Words longer than this are no slips of the finger, and comparing them costs time that grows with their length.
const LONGEST: usize = 64;

/// Of more candidates than this only the first are compared, so that a long list of unknown names stays cheap.
const MOST: usize = 500;

/// The candidate that is closest to `word`, if it is close enough to have been meant.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    // One slip for each three letters, as cargo does: more would suggest words that have nothing in common.
    let allowed = length.max(3) / 3;
    let distance = |candidate: &&str| strsim::osa_distance(word, candidate);
    // Letters that are missing or too many are slips too, so words of other lengths need no comparison.
    let known =
        candidates.into_iter().take(MOST).filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed);
    let close = known
        .map(|candidate| (distance(&candidate), candidate))
        .filter(|(slips, _)| *slips <= allowed && *slips < length);
    close.min_by_key(|(slips, _)| *slips).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let keys = ["commands", "timeout", "env", "fail-fast"];
        let cases = [
            ("tiemout", Some("timeout")),
            ("fail_fast", Some("fail-fast")),
            ("command", Some("commands")),
            ("evn", Some("env")),
            ("shell", None),
            ("", None),
            ("x", None),
        ];
        for (word, expected) in cases {
            assert_eq!(did_you_mean(word, keys), expected, "{word}");
        }
        assert_eq!(did_you_mean(&"x".repeat(100_000), keys), None);
    }
}
