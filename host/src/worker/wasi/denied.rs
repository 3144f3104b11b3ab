//! Interfaces that toolchains import without need, sockets and http: satisfied, and deadly to call.

use super::Stop;
use crate::worker::imports::is_denied;
use crate::worker::state::State;
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType};

/// What a handle of a denied interface would stand for. There never is one.
struct Never;

/// Links a trap for each function of each denied interface that `component` imports.
pub(super) fn link(linker: &mut Linker<State>, engine: &Engine, component: &Component) -> wasmtime::Result<()> {
    // A resource is defined where it is first seen. Denied interfaces name resources of served ones (streams,
    // pollables), and of each other; defined again those would be other types.
    let mut seen: Vec<ResourceType> = Vec::new();
    for (interface, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        let denied = is_denied(interface);
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(resource) if !seen.contains(&resource) => {
                    seen.push(resource);
                    if denied {
                        let mut linker = linker.instance(interface)?;
                        linker.resource(name, ResourceType::host::<Never>(), |_, _| Ok(()))?;
                    }
                }
                ComponentItem::ComponentFunc(_) if denied => {
                    let stop = Stop::Denied { interface: interface.to_owned(), function: name.to_owned() };
                    linker.instance(interface)?.func_new(name, move |_, _, _, _| Err(stop.clone().into()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
