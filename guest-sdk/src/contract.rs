//! The contract as Rust types: what `wit/check.wit` says, generated.
//!
//! The names that check authors meet are re-exported at the root of the crate. The others are only needed by code that
//! handles a pack's description.
//!
//! Invariant: nothing here is written by hand, so it cannot differ from the contract.

#[expect(
    missing_docs,
    clippy::pedantic,
    reason = "generated: the glue that moves values across the component's boundary"
)]
mod generated {
    wit_bindgen::generate!({
        path: "wit",
        world: "check-pack",
        pub_export_macro: true,
        export_macro_name: "__export_check_pack",
        additional_derives: [PartialEq, Eq],
        generate_unused_types: true,
    });
}

/// The values that cross the boundary.
pub use generated::probity::check::types;

#[doc(hidden)]
pub use generated::__export_check_pack;
#[doc(hidden)]
pub use generated::exports;
#[doc(hidden)]
pub use generated::exports::probity::check::checker::Guest;
