//! What is said about wrong packs.

use super::{messages, titles};

#[test]
fn packs_say_where_they_are_and_what_they_read() {
    let text = r#"
[packs.a]
[packs.b]
source = "path:/etc"
allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
[packs.c]
source = "file:../x.wasm"
[packs.d]
source = "packs/x.wasm"
allow = ["tree:!secrets/**"]
[packs.e]
source = "http://example.org/x.wasm"
allow = [""]
[packs.f]
source = "paht:x"
allow = ["mount:x"]
[packs.g]
source = "file:."
allow = ["tree:{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"]
"#;
    insta::assert_snapshot!(messages(text), @r#"
    error: pack `a` has no `source`
     --> probity.toml:2:8
      |
    2 | [packs.a]
      |        ^
      |
      = help: add `source = "path:FOLDER"` for the sources of a pack, or `source = "file:PACK.wasm"`

    error: pack `a` has no `allow`
     --> probity.toml:2:8
      |
    2 | [packs.a]
      |        ^ it may read nothing
      |
      = help: add what its checks may read: `allow = ["tree:**"]` is the whole tree

    error: the folder `/etc` is absolute
     --> probity.toml:4:10
      |
    4 | source = "path:/etc"
      |          ^^^^^^^^^^^
      |
      = help: name something within the folder of this file, relative to it: whoever has the tree must have the pack

    error: the grant `**` names no mount
     --> probity.toml:5:10
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |          ^^^^
      |
      = help: write the mount before it, for example `tree:**`

    error: `tre` is not a mount
     --> probity.toml:5:16
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |                ^^^^^^^
      |
      = help: did you mean `tree`?

    error: `!tree` is not a mount
     --> probity.toml:5:25
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |                         ^^^^^^^^^
      |
      = help: the `!` belongs to the glob: write `tree:!x`

    error: the glob `/x` matches nothing
     --> probity.toml:5:36
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |                                    ^^^^^^^^^ paths are relative, without a leading `/`
      |
      = help: globs are about paths from the root of what is verified: write for example `src/**` or `*.md`

    error: the glob `[` is not valid
     --> probity.toml:5:47
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |                                               ^^^^^^^^ unclosed character class; missing ']'
      |
      = help: `[a-z]` is one of some characters, `{js,ts}` one of some words; a `\` before such a sign means the sign itself

    error: the globs match nothing: all of them exclude
     --> probity.toml:5:57
      |
    5 | allow = ["**", "tre:x", "!tree:x", "tree:/x", "tree:[", "base:!x"]
      |                                                         ^^^^^^^^^
      |
      = help: put `"base:**"` first to mean everything else

    error: pack `c` has no `allow`
     --> probity.toml:6:8
      |
    6 | [packs.c]
      |        ^ it may read nothing
      |
      = help: add what its checks may read: `allow = ["tree:**"]` is the whole tree

    error: the file `../x.wasm` has a `..`
     --> probity.toml:7:10
      |
    7 | source = "file:../x.wasm"
      |          ^^^^^^^^^^^^^^^^
      |
      = help: name something within the folder of this file, relative to it: whoever has the tree must have the pack

    error: the source `packs/x.wasm` does not say what it is
     --> probity.toml:9:10
      |
    9 | source = "packs/x.wasm"
      |          ^^^^^^^^^^^^^^
      |
      = help: did you mean `file:packs/x.wasm`?

    error: the globs match nothing: all of them exclude
      --> probity.toml:10:10
       |
    10 | allow = ["tree:!secrets/**"]
       |          ^^^^^^^^^^^^^^^^^^
       |
       = help: put `"tree:**"` first to mean everything else

    error: `http` is not a kind of source
      --> probity.toml:12:10
       |
    12 | source = "http://example.org/x.wasm"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write `path:FOLDER` for the sources of a pack, or `file:PACK.wasm` for a component

    error: the grant `` names no mount
      --> probity.toml:13:10
       |
    13 | allow = [""]
       |          ^^
       |
       = help: write the mount before it, for example `tree:**`

    error: `paht` is not a kind of source
      --> probity.toml:15:10
       |
    15 | source = "paht:x"
       |          ^^^^^^^^
       |
       = help: did you mean `path:`?

    error: `mount` is not a mount
      --> probity.toml:16:10
       |
    16 | allow = ["mount:x"]
       |          ^^^^^^^^^
       |
       = help: the mounts are `tree`, `base`, `evidence`, `claim` and `spec`

    error: `file:` names no file
      --> probity.toml:18:10
       |
    18 | source = "file:."
       |          ^^^^^^^^
       |
       = help: write `path:FOLDER` for the sources of a pack, or `file:PACK.wasm` for a component

    error: the braces of the glob `{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}` multiply to too many alternatives
      --> probity.toml:19:10
       |
    19 | allow = ["tree:{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"]
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write several globs instead
    "#);
}

#[test]
fn sources_of_packs_stay_in_the_tree() {
    for (path, reason) in [
        ("", "is empty"),
        ("/", "is absolute"),
        ("//x", "is absolute"),
        ("..", "has a `..`"),
        ("a/../../b", "has a `..`"),
        ("a/../b", "has a `..`"),
        ("a\\u0000b", "has a NUL character"),
    ] {
        let titles = titles(&format!("[packs.p]\nallow = [\"tree:**\"]\nsource = \"path:{path}\""));
        assert!(titles[0].starts_with("the folder `") && titles[0].ends_with(reason), "{titles:?}");
    }
}

#[test]
fn an_undeclared_pack_comes_with_its_declaration() {
    insta::assert_snapshot!(messages("[checks.a]\nuse = \"hygiene/eof\"\n"), @r#"
    error: there is no pack `hygiene`
     --> probity.toml:2:7
      |
    2 | use = "hygiene/eof"
      |       ^^^^^^^^^^^^^
      |
      = help: declare it:

              [packs.hygiene]
              source = "file:PACK.wasm"
              allow = ["tree:**"]
    "#);
}
