# verify   build Probity and its packs, and verify this repository with them
# test     everything: native tests of the SDK and the packs, unit and end-to-end tests, and `verify`
# checks   build the packs into checks/target/packs
# bench    measure; writes docs/benchmarks.md
# fuzz     each fuzz target for FUZZ_SECONDS (60); what is found is kept in fuzz/target/found
#
# Each target does its own set-up, or says in one line what to install.

CARGO ?= cargo
# The places below are cargo's own, whatever the user's other projects use.
unexport CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR
PROBITY := target/debug/probity

.PHONY: verify test checks bench fuzz setup

setup:
	@command -v $(CARGO) >/dev/null || { echo "error: cargo was not found: install Rust 1.95 or later with rustup" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "error: no C compiler was found (SQLite is built with it): install gcc or clang" >&2; exit 1; }
	@command -v git >/dev/null || { echo "error: git was not found: install git" >&2; exit 1; }

verify: setup
	checks/ensure-toolchain >/dev/null
	$(CARGO) build --locked
	$(PROBITY) verify

checks: setup
	checks/build

test: setup checks
	cd checks && $(CARGO) test --locked --workspace
	$(CARGO) test --locked
	$(MAKE) verify

bench: setup checks
	tests/bench/run

fuzz: setup
	CARGO="$(CARGO)" fuzz/run
