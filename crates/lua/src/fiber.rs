//! Owns: a stack of its own for what may have to be left in the middle: it is resumed with an input and gives an
//! output,
//! again and again. Does not own: what runs there.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::marker::PhantomData;

/// Bytes of the stack. Lua nests at most 200 calls of C, each with some 1 KiB of frames; commands take the rest. Pages
/// that are not touched cost nothing.
const STACK_BYTES: usize = 1 << 20;

/// What runs on its own stack. It may borrow what lives for `'e`.
pub struct Fiber<'e, In, Out> {
    coroutine: Coroutine<In, Out, ()>,
    _borrows: PhantomData<&'e mut ()>,
}

/// From inside: gives an output, and goes on with the next input.
pub struct Inside<'y, In, Out>(&'y Yielder<In, Out>);

impl<In, Out> Inside<'_, In, Out> {
    /// Leaves the stack with an output, until it is resumed.
    pub fn give(&self, out: Out) -> In {
        self.0.suspend(out)
    }
}

impl<'e, In: 'e, Out: 'e> Fiber<'e, In, Out> {
    /// A fiber that will run `body` with its first input. `body` must not return while it is resumed: it ends with the
    /// program, or is resumed until it does. Nothing when there is no memory for a stack.
    ///
    /// The fiber may be sent to another thread between two resumptions, so `body` keeps nothing there that belongs to
    /// a thread.
    pub fn new(body: impl FnOnce(&Inside<'_, In, Out>, In) + 'e) -> Option<Self> {
        let stack = DefaultStack::new(STACK_BYTES).ok()?;
        // SAFETY: what `body` borrows lives for 'e, and the fiber cannot: it is neither resumed nor dropped behind
        // that.
        // If it is forgotten, it is never resumed, and its stack stays.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, move |yielder: &Yielder<In, Out>, input: In| {
                body(&Inside(yielder), input);
            })
        };
        Some(Self { coroutine, _borrows: PhantomData })
    }
    /// Goes on with an input. Nothing when the body has returned.
    pub fn resume(&mut self, input: In) -> Option<Out> {
        match self.coroutine.resume(input) {
            CoroutineResult::Yield(out) => Some(out),
            CoroutineResult::Return(()) => None,
        }
    }
    /// Whether the body has begun and not returned.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.coroutine.started() && !self.coroutine.done()
    }
}

// SAFETY: the head of `new` asks of the body to keep nothing on its stack that belongs to a thread; the one body there
// is keeps an executor, which is `Send`, and what it borrows from it.
unsafe impl<In: Send, Out: Send> Send for Fiber<'_, In, Out> {}

impl<In, Out> std::fmt::Debug for Fiber<'_, In, Out> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fiber").field("done", &self.coroutine.done()).finish_non_exhaustive()
    }
}
