//! What a `[packs.NAME]` means: where the pack is and what it may read.

use super::diagnostic::{Diagnostic, quote};
use super::file::FilePack;
use super::reader::{At, get, unsupported};
use super::suggest::did_you_mean;
use super::{GlobError, Globs, Pack, PackSource, names};
use crate::model::Mount;
use std::collections::BTreeMap;

/// What a pack means. All its mistakes are reported.
pub(super) fn resolve(file: &FilePack, diagnostics: &mut Vec<Diagnostic>) -> Option<Pack> {
    let name = names::id("pack", &file.name, diagnostics);
    let before = diagnostics.len();
    let source = get(file.source.as_ref()).and_then(|text| source(text, diagnostics));
    let bundled = get(file.source.as_ref()).is_some_and(|text| text.value.starts_with("bundled:"));
    if file.source.is_none() {
        let title = format!("pack {} has no `source`", quote(&file.name.value));
        let help = "add `source = \"path:FOLDER\"` for the sources of a pack, or `source = \"file:PACK.wasm\"`";
        diagnostics.push(Diagnostic::new(file.name.span.clone(), title).help(help));
    }
    let allow = get(file.allow.as_ref()).map(|globs| allow(&globs.value, diagnostics));
    if file.allow.is_none() && !bundled {
        let title = format!("pack {} has no `allow`", quote(&file.name.value));
        let diagnostic = Diagnostic::new(file.name.span.clone(), title).label("it may read nothing");
        diagnostics.push(diagnostic.help("add what its checks may read: `allow = [\"tree:**\"]` is the whole tree"));
    }
    if diagnostics.len() > before {
        return None;
    }
    Some(Pack {
        name: name?,
        span: file.name.span.clone(),
        source: source?,
        source_span: get(file.source.as_ref())?.span.clone(),
        allow: allow?,
        allow_span: get(file.allow.as_ref())?.span.clone(),
    })
}

const KINDS: &str = "write `path:FOLDER` for the sources of a pack, or `file:PACK.wasm` for a component";

fn source(text: &At<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<PackSource> {
    let whole = text.value.as_str();
    let refuse = |title: String| Diagnostic::new(text.span.clone(), title);
    let mistake = match whole.split_once(':') {
        Some(("path", path)) => match relative(path) {
            Ok(path) => return Some(PackSource::Path(path)),
            Err(reason) => refuse(format!("the folder {} {reason}", quote(path))).help(WITHIN),
        },
        Some(("file", path)) => match relative(path) {
            Ok(path) if path == "." => refuse("`file:` names no file".to_owned()).help(KINDS),
            Ok(path) => return Some(PackSource::File(path)),
            Err(reason) => refuse(format!("the file {} {reason}", quote(path))).help(WITHIN),
        },
        Some(("bundled", _)) => unsupported(text.span.clone(), "a `bundled:` pack").help(KINDS),
        Some(("oci", _)) => unsupported(text.span.clone(), "an `oci:` pack")
            .help("fetch the component, commit it, and write `file:PACK.wasm`"),
        Some((kind, _)) => {
            let diagnostic = refuse(format!("{} is not a kind of source", quote(kind)));
            match did_you_mean(kind, ["path", "file"]) {
                Some(meant) => diagnostic.help(format!("did you mean `{meant}:`?")),
                None => diagnostic.help(KINDS),
            }
        }
        None => {
            let is_component = std::path::Path::new(whole).extension().is_some_and(|extension| extension == "wasm");
            let kind = if is_component { "file" } else { "path" };
            let diagnostic = refuse(format!("the source {} does not say what it is", quote(whole)));
            let plain = !whole.is_empty() && !whole.contains(['"', '\\']);
            if plain { diagnostic.help(format!("did you mean `{kind}:{whole}`?")) } else { diagnostic.help(KINDS) }
        }
    };
    diagnostics.push(mistake);
    None
}

const WITHIN: &str =
    "name something within the folder of this file, relative to it: whoever has the tree must have the pack";

/// A relative path without `.`, `..` and doubled `/`.
///
/// Any `..` is refused, also one that would stay within the tree: through a link it need not.
fn relative(path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.starts_with('/') {
        return Err("is absolute");
    }
    if path.contains('\0') {
        return Err("has a NUL character");
    }
    let components: Vec<&str> = path.split('/').filter(|component| !matches!(*component, "" | ".")).collect();
    if components.contains(&"..") {
        return Err("has a `..`");
    }
    if components.is_empty() {
        return Ok(".".to_owned());
    }
    Ok(components.join("/"))
}

fn allow(items: &[At<String>], diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<Mount, Globs> {
    let mut lists: BTreeMap<Mount, Vec<&At<String>>> = BTreeMap::new();
    let mut patterns: BTreeMap<Mount, Vec<&str>> = BTreeMap::new();
    for item in items {
        match grant(item) {
            Ok((mount, glob)) => {
                lists.entry(mount).or_default().push(item);
                patterns.entry(mount).or_default().push(glob);
            }
            Err(mistake) => diagnostics.push(mistake),
        }
    }
    let mut allow = BTreeMap::new();
    for (mount, patterns) in patterns {
        let spans: Vec<_> =
            lists.remove(&mount).unwrap_or_default().into_iter().map(|item| item.span.clone()).collect();
        let example = format!("{}:**", mount.name());
        if let Some(globs) = globs(&patterns, &spans, &example, diagnostics) {
            allow.insert(mount, globs);
        }
    }
    allow
}

/// One entry of `allow`: a mount and a glob.
fn grant(item: &At<String>) -> Result<(Mount, &str), Diagnostic> {
    let text = item.value.as_str();
    let refuse = |title: String| Diagnostic::new(item.span.clone(), title);
    let Some((name, glob)) = text.split_once(':') else {
        let diagnostic = refuse(format!("the grant {} names no mount", quote(text)));
        let glob = if text.is_empty() { "**" } else { text };
        return Err(
            diagnostic.help(format!("write the mount before it, for example {}", quote(&format!("tree:{glob}"))))
        );
    };
    if let Some(mount) = Mount::ALL.into_iter().find(|mount| mount.name() == name) {
        return Ok((mount, glob));
    }
    let mounts = Mount::ALL.map(Mount::name);
    let diagnostic = refuse(format!("{} is not a mount", quote(name)));
    let excluded = name.strip_prefix('!').filter(|name| mounts.contains(name));
    Err(match (excluded, did_you_mean(name, mounts)) {
        (Some(mount), _) => {
            diagnostic.help(format!("the `!` belongs to the glob: write {}", quote(&format!("{mount}:!{glob}"))))
        }
        (None, Some(meant)) => diagnostic.help(format!("did you mean `{meant}`?")),
        (None, None) => diagnostic.help(format!("the mounts are {}", super::reader::list(&mounts))),
    })
}

/// Compiles globs, and reports every mistake in them at its own place.
pub(super) fn globs(
    patterns: &[&str],
    spans: &[super::reader::Span],
    everything: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Globs> {
    let before = diagnostics.len();
    for (pattern, span) in patterns.iter().zip(spans) {
        if let Err(error) = Globs::check(pattern) {
            diagnostics.push(glob_mistake(&error, span.clone()));
        }
    }
    if diagnostics.len() > before {
        return None;
    }
    let span = match spans {
        [first, .., last] => first.start..last.end,
        [only] => only.clone(),
        [] => 0..0,
    };
    match Globs::new(patterns) {
        Ok(globs) => Some(globs),
        Err(GlobError::OnlyExcludes) => {
            let diagnostic = Diagnostic::new(span, "the globs match nothing: all of them exclude");
            diagnostics.push(diagnostic.help(format!("put `\"{everything}\"` first to mean everything else")));
            None
        }
        Err(error) => {
            diagnostics.push(glob_mistake(&error, span));
            None
        }
    }
}

fn glob_mistake(error: &GlobError, span: super::reader::Span) -> Diagnostic {
    match error {
        GlobError::NeverMatches { pattern, reason } => {
            Diagnostic::new(span, format!("the glob {} matches nothing", quote(pattern)))
                .label(*reason)
                .help("globs are about paths from the root of what is verified: write for example `src/**` or `*.md`")
        }
        GlobError::Syntax { pattern, reason } => {
            Diagnostic::new(span, format!("the glob {} is not valid", quote(pattern)))
                .label(reason.clone())
                .help("`[a-z]` is one of some characters, `{js,ts}` one of some words; a `\\` before such a sign means the sign itself")
        }
        GlobError::TooManyAlternatives(pattern) => {
            let title = format!("the braces of the glob {} multiply to too many alternatives", quote(pattern));
            Diagnostic::new(span, title).help("write several globs instead")
        }
        GlobError::TooMany(_) | GlobError::TooLong(_) | GlobError::TooComplex(_) | GlobError::OnlyExcludes => {
            Diagnostic::new(span, error.to_string())
                .help("write fewer and simpler globs: `folder/**` instead of each file")
        }
    }
}
