//! The macro that turns a list of checks into a component.

/// Makes the crate a pack: exports the contract's `describe` and `run` for what a function returns.
///
/// Takes the path of a function `fn() -> Pack`. It is called for every call of the component, so it should only list.
/// On other targets than WebAssembly nothing is exported, and the crate is an ordinary library that can be tested.
///
/// ```
/// use probity_sdk::Pack;
///
/// fn pack() -> Pack {
///     Pack::new("sample", env!("CARGO_PKG_VERSION"), "A sample.")
/// }
///
/// probity_sdk::export!(pack);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($pack:path) => {
        const _: () = {
            // Named on every target, so that a native build does not call the function unused.
            const PACK: fn() -> $crate::Pack = $pack;

            #[cfg(target_arch = "wasm32")]
            struct Exported;

            #[cfg(target_arch = "wasm32")]
            impl $crate::contract::Guest for Exported {
                fn describe() -> $crate::contract::types::Pack {
                    PACK().describe()
                }

                fn run(request: $crate::Request) -> ::std::result::Result<$crate::Report, $crate::Refusal> {
                    PACK().run(&request, &$crate::Mounts::guest())
                }
            }

            #[cfg(target_arch = "wasm32")]
    $crate::contract::__export_check_pack!(Exported with_types_in $crate::contract);
        };
    };
}
