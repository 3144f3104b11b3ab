# What `ensure-toolchain` and `build` both need to know about the two ways to build a pack. Sourced, not run.
#
# The ordinary way: a Rust toolchain whose `wasm32-wasip2` target is installed.
# The Debian way:   Debian's `rustc-web`, `cargo-web`, `rust-web-src` and `wasi-libc`, which build the standard
#                   library from source, with the linkers that any rustup toolchain carries.

readonly TARGET=wasm32-wasip2
# shellcheck disable=SC2034 # The scripts that source this use it.
readonly DEBIAN_PACKAGES=(rustc-web cargo-web rust-web-src wasi-libc)
readonly DEBIAN_RUSTC=/usr/bin/rustc
readonly DEBIAN_CARGO=/usr/bin/cargo
readonly DEBIAN_LIBC=/usr/lib/wasm32-wasi

# rustup and cargo look below $HOME. Tests and service managers set it to something else, or to nothing, and then
# the toolchain that is installed would not be found: fall back to the home in the user database.
find_homes() {
    local home
    home=$(getent passwd "$(id -u)" | cut -d: -f6) || home=
    [[ -n ${HOME:-} ]] || export HOME=${home:-/nonexistent}
    if [[ -z ${RUSTUP_HOME:-} && ! -d $HOME/.rustup && -d $home/.rustup ]]; then
        export RUSTUP_HOME=$home/.rustup
    fi
    if [[ -z ${CARGO_HOME:-} ]]; then
        if [[ ! -d $HOME/.cargo && -d $home/.cargo ]]; then
            export CARGO_HOME=$home/.cargo
        else
            export CARGO_HOME=$HOME/.cargo
        fi
    fi
    if ! command -v rustc > /dev/null && [[ -x $CARGO_HOME/bin/rustc ]]; then
        PATH=$CARGO_HOME/bin:$PATH
    fi
}

# Succeeds if the `rustc` on the PATH can build packs as it is.
ordinary_ready() {
    local libraries
    command -v cargo > /dev/null || return 1
    libraries=$(rustc --print target-libdir --target "$TARGET" 2> /dev/null) || return 1
    compgen -G "$libraries/libstd-*.rlib" > /dev/null
}

# Prints the folder with the linkers of a rustup toolchain, which need not be the first one on the PATH.
linkers() {
    local compiler sysroot folder
    for compiler in rustc "$CARGO_HOME/bin/rustc"; do
        sysroot=$("$compiler" --print sysroot 2> /dev/null) || continue
        for folder in "$sysroot"/lib/rustlib/*/bin; do
            if [[ -x $folder/wasm-component-ld && -x $folder/rust-lld && -x $folder/gcc-ld/wasm-ld ]]; then
                printf '%s\n' "$folder"
                return 0
            fi
        done
    done
    return 1
}

# Prints the folder with the source of Debian's standard library, as the compiler names it: through a link.
debian_std_source() {
    local sysroot
    sysroot=$("$DEBIAN_RUSTC" --print sysroot 2> /dev/null) || return 1
    [[ -f $sysroot/lib/rustlib/src/rust/library/std/Cargo.toml ]] || return 1
    printf '%s\n' "$sysroot/lib/rustlib/src/rust"
}

# Succeeds if Debian's packages and a toolchain's linkers are there.
debian_ready() {
    [[ -x $DEBIAN_RUSTC && -x $DEBIAN_CARGO && -f $DEBIAN_LIBC/libc.a ]] || return 1
    "$DEBIAN_RUSTC" --print target-list 2> /dev/null | grep -qx "$TARGET" || return 1
    debian_std_source > /dev/null && linkers > /dev/null
}
