//! A watch on memory: a length that somebody claims must not be room that is made for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which remembers for each thread the largest piece that was asked for.
struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn note(size: usize) {
    // A cell without a destructor is there until its thread has ended.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

#[expect(unsafe_code, reason = "an allocator is one")]
// SAFETY: each call is handed on as it came, to an allocator that keeps the same promises; noting a size allocates
// nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as above; the pointer came from the same allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Does some work, and says how large the largest piece of memory was that it asked for in this thread.
pub(crate) fn largest_allocation<R>(work: impl FnOnce() -> R) -> (R, usize) {
    LARGEST.set(0);
    let result = work();
    (result, LARGEST.get())
}

#[cfg(test)]
mod tests {
    use super::largest_allocation;

    #[test]
    fn room_counts_when_it_is_asked_for() {
        assert_eq!(largest_allocation(|| Vec::<u8>::with_capacity(12_345).capacity()), (12_345, 12_345));
        assert_eq!(largest_allocation(|| 1).1, 0);
    }
}
