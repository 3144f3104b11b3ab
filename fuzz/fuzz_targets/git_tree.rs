#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| probity::fuzzing::git_tree(input));
