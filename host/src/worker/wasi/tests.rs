//! What is linked, against the interfaces' own text.

use super::linker;
use crate::worker::Engine;
use wasmtime::component::Component;

#[test]
fn every_function_of_wasi_has_its_type() {
    let engine = Engine::new().unwrap();
    let bytes = wat::parse_str(include_str!("all.wat")).unwrap();
    let component = Component::from_binary(engine.inner(), &bytes).unwrap();
    let linker = linker(engine.inner(), &component).unwrap();
    linker.instantiate_pre(&component).unwrap_or_else(|error| panic!("{error:#}"));
}
