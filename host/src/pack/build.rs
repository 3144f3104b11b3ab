//! Building a pack from source with cargo, so that nothing of this machine is in the component.
//!
//! There are two ways: a Rust toolchain whose `wasm32-wasip2` target is installed, or Debian's packages with the
//! linkers of any rustup toolchain. `checks/build` does the same, and its head says precisely what.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-wasip2";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi";

/// Why a pack cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Neither way is there.
    #[error(
        "this machine cannot build packs: no Rust toolchain with the target {TARGET} was found\nhelp: run `rustup target add {TARGET}`; or, on Debian, keep a rustup toolchain for its linkers and run `apt-get install rustc-web cargo-web rust-web-src wasi-libc` as root"
    )]
    NoToolchain,
    /// A program does not start.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Which.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Cargo failed.
    #[error("cargo could not build the pack in {}:\n{output}", folder.display())]
    Failed {
        /// The pack.
        folder: PathBuf,
        /// What it said, at the end.
        output: String,
    },
    /// Cargo made nothing that is a pack.
    #[error("building {} made {count} components instead of one\nhelp: a pack is a crate with `crate-type = [\"cdylib\"]`", folder.display())]
    NoComponent {
        /// The pack.
        folder: PathBuf,
        /// How many.
        count: usize,
    },
    /// The component tells something of this machine.
    #[error("the component built from {} has a path of this machine in it: {path}\nhelp: a build script or an `include!` put it there", folder.display())]
    PrivatePath {
        /// The pack.
        folder: PathBuf,
        /// Which.
        path: String,
    },
}

/// A way to build packs.
#[derive(Debug)]
pub(super) struct Toolchain {
    way: Way,
    identity: String,
}

#[derive(Debug)]
enum Way {
    Ordinary,
    Debian { linkers: PathBuf, library: PathBuf },
}

/// What a build made.
#[derive(Debug)]
pub(super) struct Product {
    /// The component.
    pub(super) component: PathBuf,
    /// Files outside its folder that went into it, absolute.
    pub(super) inputs: Vec<String>,
}

impl Toolchain {
    /// The toolchain for a folder, if this machine has one.
    pub(super) fn find(folder: &Path) -> Result<Self, BuildError> {
        let rustc = |arguments: &[&str]| answer("rustc", arguments, folder);
        if let Some(libraries) = rustc(&["--print", "target-libdir", "--target", TARGET])
            && has_std(Path::new(&libraries))
        {
            let identity = rustc(&["-vV"]).ok_or(BuildError::NoToolchain)?;
            return Ok(Self { way: Way::Ordinary, identity });
        }
        let debian = |arguments: &[&str]| answer(DEBIAN_RUSTC, arguments, folder);
        let found = || {
            let linkers = linkers(Path::new(&rustc(&["--print", "sysroot"])?))?;
            let library = Path::new(&debian(&["--print", "sysroot"])?).join("lib/rustlib/src/rust");
            let complete = library.join("library/std/Cargo.toml").is_file()
                && Path::new(DEBIAN_CARGO).is_file()
                && Path::new(DEBIAN_LIBC).join("libc.a").is_file();
            let identity = debian(&["-vV"])?;
            complete.then_some(Self { way: Way::Debian { linkers, library }, identity })
        };
        found().ok_or(BuildError::NoToolchain)
    }

    /// Changes when the compiler does.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    fn cargo(&self, folder: &Path) -> Command {
        let mut cargo = Command::new(match self.way {
            Way::Ordinary => "cargo",
            Way::Debian { .. } => DEBIAN_CARGO,
        });
        cargo.current_dir(folder).stdin(Stdio::null());
        // Cargo points these at itself and at its own libraries for what it starts, and that may be us.
        for name in ["RUSTFLAGS", "LD_LIBRARY_PATH", "RUSTC", "RUSTC_BOOTSTRAP", "CARGO", "RUSTC_WRAPPER"] {
            cargo.env_remove(name);
        }
        if let Way::Debian { linkers, .. } = &self.way {
            let old = std::env::var_os("PATH").unwrap_or_default();
            let inner = linkers.join("gcc-ld");
            let new = [linkers.as_os_str().as_bytes(), inner.as_os_str().as_bytes(), old.as_bytes()];
            cargo.env("PATH", OsString::from_vec(new.join(&b':')));
            cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        }
        cargo
    }

    fn std_flags(&self) -> &'static [&'static str] {
        match self.way {
            Way::Ordinary => &[],
            Way::Debian { .. } => &["-Zbuild-std=std,panic_abort"],
        }
    }

    /// Builds the pack in a folder, which must be absolute.
    pub(super) fn build(&self, folder: &Path) -> Result<Product, BuildError> {
        let start = |source| BuildError::Start { program: "cargo".to_owned(), source };
        let failed = |output: &[u8]| BuildError::Failed { folder: folder.to_owned(), output: last_lines(output) };
        let locked: &[&str] =
            if folder.ancestors().any(|above| above.join("Cargo.lock").is_file()) { &["--locked"] } else { &[] };
        // The folders of unpacked crates have to exist before a flag can name them.
        let fetch = ["fetch", "--quiet", "--target", TARGET];
        let fetched = self.cargo(folder).args(fetch).args(locked).args(self.std_flags()).output().map_err(start)?;
        if !fetched.status.success() {
            return Err(failed(&fetched.stderr));
        }
        let private = Private::of(folder);
        let flags = private.flags(match &self.way {
            Way::Ordinary => None,
            Way::Debian { library, .. } => Some(library),
        });
        let build = ["build", "--lib", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"];
        let mut child = self
            .cargo(folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .args(build)
            .args(locked)
            .args(self.std_flags())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)?;
        let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(start(io::Error::other("cargo has no output")));
        };
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = io::Read::read_to_end(&mut stderr, &mut text);
            text
        });
        let mut components: Vec<PathBuf> =
            BufReader::new(stdout).lines().map_while(Result::ok).flat_map(|line| components_in(&line)).collect();
        let status = child.wait().map_err(start)?;
        let errors = errors.join().unwrap_or_default();
        if !status.success() {
            return Err(failed(&errors));
        }
        components.sort();
        components.dedup();
        let [component] = &components[..] else {
            return Err(BuildError::NoComponent { folder: folder.to_owned(), count: components.len() });
        };
        private.refuse(component, folder)?;
        Ok(Product { component: component.clone(), inputs: inputs(component, folder) })
    }
}

/// The component's file names in one message of cargo.
fn components_in(line: &str) -> Vec<PathBuf> {
    let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { return Vec::new() };
    if message["reason"] != "compiler-artifact" {
        return Vec::new();
    }
    let names = message["filenames"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_component = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wasm");
    names.iter().filter_map(|name| name.as_str()).map(PathBuf::from).filter(is_component).collect()
}

/// What the compiler read, from the dependency file beside the component, and the manifests and locks above each of
/// those files. What lies outside every project (the standard library, crates of registries) is pinned by lock and
/// toolchain.
fn inputs(component: &Path, folder: &Path) -> Vec<String> {
    let root = project_root(folder);
    let text = std::fs::read_to_string(component.with_extension("d")).unwrap_or_default();
    let mut files: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| line.split_once(".wasm: "))
        .flat_map(|(_, files)| {
            files.replace("\\ ", "\0").split(' ').map(|file| file.replace('\0', " ")).collect::<Vec<_>>()
        })
        .map(|file| folder.join(file))
        .filter(|file| file.starts_with(&root) && !file.starts_with(folder))
        .collect();
    let above: Vec<PathBuf> = files
        .iter()
        .map(PathBuf::as_path)
        .chain([folder.join("Cargo.toml").as_path()])
        .flat_map(|file| file.ancestors().skip(1).take_while(|above| above.starts_with(&root)))
        .flat_map(|above| {
            ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml"].map(|name| above.join(name))
        })
        .filter(|file| file.is_file())
        .collect();
    files.extend(above);
    files.sort();
    files.dedup();
    files.iter().filter_map(|file| file.to_str().map(str::to_owned)).collect()
}

/// Folders of this machine that must not be in a component.
struct Private {
    home: Option<PathBuf>,
    cargo: Option<PathBuf>,
    root: PathBuf,
}

impl Private {
    fn of(folder: &Path) -> Self {
        let named = |name| std::env::var_os(name).map(PathBuf::from);
        let home = named("HOME").filter(|home| home.as_os_str().len() >= 2);
        let cargo = named("CARGO_HOME").or_else(|| Some(home.as_ref()?.join(".cargo")));
        Self { home, cargo, root: project_root(folder) }
    }

    /// The flags for the compiler, in cargo's encoding: separated by the byte 0x1f. The last match wins.
    fn flags(&self, debian_library: Option<&Path>) -> OsString {
        let mut flags: Vec<Vec<u8>> = Vec::new();
        let mut remap = |from: &Path, to: &str| {
            flags.push([b"--remap-path-prefix=", from.as_os_str().as_bytes(), b"=", to.as_bytes()].concat());
        };
        if let Some(home) = &self.home {
            remap(home, "/home");
        }
        if let Some(cargo) = &self.cargo {
            remap(cargo, "/cargo");
            let crates = std::fs::read_dir(cargo.join("registry/src")).into_iter().flatten().flatten();
            let mut crates: Vec<PathBuf> = crates.map(|entry| entry.path()).collect();
            crates.sort();
            for folder in crates {
                remap(&folder, "/cargo");
            }
        }
        if let Some(library) = debian_library {
            remap(library, "/rust");
            // The compiler names some of its own sources by where the folder really is.
            if let Ok(library) = library.canonicalize() {
                remap(&library, "/rust");
            }
        }
        remap(&self.root, "/src");
        if debian_library.is_some() {
            flags.insert(0, format!("native={DEBIAN_LIBC}").into_bytes());
            flags.insert(0, b"-L".to_vec());
        }
        OsString::from_vec(flags.join(&0x1f))
    }

    fn refuse(&self, component: &Path, folder: &Path) -> Result<(), BuildError> {
        let bytes = std::fs::read(component)
            .map_err(|source| BuildError::Start { program: component.display().to_string(), source })?;
        let slash = |path: &PathBuf| [path.as_os_str().as_bytes(), b"/"].concat();
        let mut private: Vec<Vec<u8>> =
            [self.home.as_ref(), self.cargo.as_ref(), Some(&self.root)].into_iter().flatten().map(slash).collect();
        private.push(b"/registry/src/".to_vec());
        let found = private.iter().find(|path| path.len() > 2 && contains(&bytes, path));
        match found {
            Some(path) => Err(BuildError::PrivatePath {
                folder: folder.to_owned(),
                path: String::from_utf8_lossy(path).into_owned(),
            }),
            None => Ok(()),
        }
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// The nearest folder upwards that is the root of a project.
fn project_root(folder: &Path) -> PathBuf {
    let is_root = |above: &&Path| above.join(".git").exists() || above.join("probity.toml").exists();
    folder.ancestors().find(is_root).unwrap_or(folder).to_owned()
}

fn answer(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn has_std(libraries: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(libraries) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

/// The folder with the linkers of a rustup toolchain.
fn linkers(sysroot: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(sysroot.join("lib/rustlib")).ok()?;
    let mut folders: Vec<PathBuf> = hosts.flatten().map(|host| host.path().join("bin")).collect();
    folders.sort();
    let complete = |folder: &PathBuf| {
        ["wasm-component-ld", "rust-lld", "gcc-ld/wasm-ld"].iter().all(|name| folder.join(name).is_file())
    };
    folders.into_iter().find(complete)
}

/// The end of what a program said: enough to see what is wrong.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
