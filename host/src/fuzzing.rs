//! The fuzz targets: what must hold whatever the bytes are. Each panics where it does not.
//!
//! In builds for fuzzing and for tests only. `docs/fuzzing.md` says how they are run and how one is added.

/// Makes a function of each target, and a test that replays its corpus and goes on from there.
macro_rules! targets {
    ($($(#[$doc:meta])* $name:ident = $target:path;)*) => {
        $($(#[$doc])* pub fn $name(input: &[u8]) {
            $target(input);
        })*

        #[cfg(test)]
        mod replay {
            $(#[test] fn $name() {
                super::tests::replay(stringify!($name), super::$name);
            })*
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    /// A tree, narrowed or not, and paths in it: they lead where a plain model says, and never out.
    view_paths = crate::worker::fuzz::paths;
    /// A stream of frames, as worker and parent read it, in whatever pieces it arrives.
    frames = crate::guest::fuzz::frames;
    /// A message in JSON, as parent and worker read it.
    messages = crate::guest::fuzz::messages;
    /// What a guest reports.
    report = crate::guest::fuzz::report;
    /// What a pack says of itself.
    pack_info = crate::guest::fuzz::pack_info;
    /// What git lists of a working tree.
    git_listing = crate::subject::fuzz::listing;
    /// A tree of a commit.
    git_tree = crate::subject::fuzz::tree;
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use crate::fuzz_kit::Noise;
    use std::collections::BTreeSet;
    use std::fs;
    use std::panic::catch_unwind;
    use std::path::{Path, PathBuf};

    /// How many inputs each target gets beside its corpus. All targets together stay below two seconds.
    const ROUNDS: usize = 3000;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
    }

    /// The files of a target's corpus, by name.
    fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
        let folder = folder().join("corpus").join(name);
        let Ok(listing) = fs::read_dir(&folder) else { return Vec::new() };
        let mut files: Vec<_> = listing
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort_unstable();
        files
    }

    pub(super) fn replay(name: &str, target: fn(&[u8])) {
        let files = corpus(name);
        assert!(!files.is_empty(), "fuzz/corpus/{name} has no inputs");
        for (file, input) in &files {
            assert!(catch_unwind(|| target(input)).is_ok(), "fuzz/corpus/{name}/{file} fails");
        }
        let known: Vec<Vec<u8>> = files.into_iter().map(|(_, input)| input).collect();
        let mut noise = Noise::new(name.len() as u64);
        for round in 0..ROUNDS {
            let input = noise.input(&known);
            let shown = || input.escape_ascii().to_string();
            assert!(catch_unwind(|| target(&input)).is_ok(), "{name} fails in round {round} on b\"{}\"", shown());
        }
    }

    #[test]
    fn every_target_has_its_program_and_its_corpus() {
        let listed = |below: &str| -> BTreeSet<String> {
            let entries = fs::read_dir(folder().join(below)).unwrap();
            entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".rs").to_owned())
                .collect()
        };
        let names: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(listed("fuzz_targets"), names);
        assert_eq!(listed("corpus"), names);
        let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let programs: BTreeSet<String> =
            manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(programs, names);
    }
}
