//! The contract, read with the Bytecode Alliance's own parser.

use std::path::Path;

use wit_parser::{Docs, Handle, Resolve, Type, TypeDefKind, WorldItem, WorldKey};

const CHECKER: &str = "probity:check/checker@0.1.0";

fn resolve() -> Resolve {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wit");
    let mut resolve = Resolve::default();
    resolve.push_dir(&folder).unwrap_or_else(|error| panic!("the contract does not parse: {error}"));
    resolve
}

#[test]
fn the_world_exports_the_checker_and_imports_only_its_types() {
    let resolve = resolve();
    assert_eq!(resolve.worlds.len(), 1);
    let (_, world) = resolve.worlds.iter().next().unwrap();
    assert_eq!(world.name, "check-pack");

    let names = |items: &mut dyn Iterator<Item = (&WorldKey, &WorldItem)>| -> Vec<String> {
        items.map(|(key, _)| resolve.name_world_key(key)).collect()
    };
    assert_eq!(names(&mut world.exports.iter()), [CHECKER]);
    assert_eq!(names(&mut world.imports.iter()), ["probity:check/types@0.1.0"]);
}

#[test]
fn the_checker_has_two_functions_that_take_and_return_values_only() {
    let resolve = resolve();
    let checker = resolve
        .interfaces
        .iter()
        .find(|(id, _)| resolve.id_of(*id).as_deref() == Some(CHECKER))
        .map(|(_, interface)| interface)
        .unwrap();
    let functions: Vec<_> = checker.functions.keys().map(String::as_str).collect();
    assert_eq!(functions, ["describe", "run"]);

    // A resource, stream or future would tie a result to something that lives on.
    for (_, ty) in &resolve.types {
        let lives_on = matches!(
            ty.kind,
            TypeDefKind::Resource
                | TypeDefKind::Handle(Handle::Own(_) | Handle::Borrow(_))
                | TypeDefKind::Future(_)
                | TypeDefKind::Stream(_)
        );
        assert!(!lives_on, "{:?}", ty.name);
    }
}

#[test]
fn no_type_has_a_float() {
    // The canonical form of a verdict has no floats, so nothing in a report may be one.
    fn has_float(ty: Type) -> bool {
        matches!(ty, Type::F32 | Type::F64)
    }
    for (_, ty) in &resolve().types {
        let found = match &ty.kind {
            TypeDefKind::Record(record) => record.fields.iter().any(|field| has_float(field.ty)),
            TypeDefKind::Variant(variant) => variant.cases.iter().any(|case| case.ty.is_some_and(has_float)),
            TypeDefKind::Tuple(tuple) => tuple.types.iter().any(|&ty| has_float(ty)),
            TypeDefKind::List(ty) | TypeDefKind::Option(ty) | TypeDefKind::Type(ty) => has_float(*ty),
            _ => false,
        };
        assert!(!found, "{:?}", ty.name);
    }
}

#[test]
fn every_item_is_documented() {
    let resolve = resolve();
    let mut bare = Vec::new();
    let mut seen = 0;
    let mut look = |docs: &Docs, name: String| {
        seen += 1;
        if docs.contents.as_deref().is_none_or(|text| text.trim().is_empty()) {
            bare.push(name);
        }
    };

    for (_, package) in &resolve.packages {
        look(&package.docs, package.name.to_string());
    }
    for (_, world) in &resolve.worlds {
        look(&world.docs, world.name.clone());
    }
    for (id, interface) in &resolve.interfaces {
        let name = resolve.id_of(id).unwrap_or_default();
        for (function, item) in &interface.functions {
            look(&item.docs, format!("{name}.{function}"));
        }
        look(&interface.docs, name);
    }
    for (_, ty) in &resolve.types {
        // Without a name it is a use of another type, such as a list of it; with `use` it is an alias.
        let Some(name) = &ty.name else { continue };
        match &ty.kind {
            TypeDefKind::Type(_) => continue,
            TypeDefKind::Record(record) => {
                for field in &record.fields {
                    look(&field.docs, format!("{name}.{}", field.name));
                }
            }
            TypeDefKind::Enum(choices) => {
                for case in &choices.cases {
                    look(&case.docs, format!("{name}.{}", case.name));
                }
            }
            TypeDefKind::Variant(variant) => {
                for case in &variant.cases {
                    look(&case.docs, format!("{name}.{}", case.name));
                }
            }
            other => panic!("this test does not know how to look into {name}: {other:?}"),
        }
        look(&ty.docs, name.clone());
    }
    assert!(bare.is_empty(), "without documentation: {bare:?}");
    assert!(seen > 80, "only {seen} items were seen");
}
