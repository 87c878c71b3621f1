//! Owns: a stack of its own for what may have to be left in the middle: it is resumed with an input and gives an
//! output, again and again. Does not own: what runs there.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes of the stack. Lua nests at most 200 calls of C, each with some 1 KiB of frames; commands take the rest. Pages
/// that are not touched cost nothing.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    /// The fiber that runs on this thread: the address of its name; 0 outside of any.
    static PRESENT: Cell<usize> = const { Cell::new(0) };
}

/// What runs on its own stack. It may borrow what lives for `'e`.
pub struct Fiber<'e, In, Out> {
    coroutine: Coroutine<In, Out, ()>,
    name: Arc<u8>,
    _borrows: PhantomData<&'e mut ()>,
}

/// From inside: gives an output, and goes on with the next input. May be kept and sent: outside of its fiber it does
/// nothing.
pub struct Inside<In, Out> {
    yielder: *const Yielder<In, Out>,
    name: Arc<u8>,
}

// SAFETY: the pointer is followed only on the stack that it points into (see `give`), wherever that runs; what passes
// through is sent.
unsafe impl<In: Send, Out: Send> Send for Inside<In, Out> {}

impl<In, Out> Inside<In, Out> {
    /// Leaves the stack with an output, until it is resumed. Outside of the fiber the output comes back.
    pub fn give(&self, out: Out) -> Result<In, Out> {
        if PRESENT.get() != Arc::as_ptr(&self.name).addr() {
            return Err(out);
        }
        // SAFETY: this thread runs on the fiber's stack: `resume` says so before it goes there and takes it back when
        // it returns, and the name is that of no other fiber as long as this holds it. So the body has not returned,
        // and its yielder is there.
        Ok(unsafe { &*self.yielder }.suspend(out))
    }
}

impl<In, Out> Clone for Inside<In, Out> {
    fn clone(&self) -> Self {
        Self { yielder: self.yielder, name: Arc::clone(&self.name) }
    }
}

impl<In, Out> std::fmt::Debug for Inside<In, Out> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl<'e, In: 'e, Out: 'e> Fiber<'e, In, Out> {
    /// A fiber that will run `body` with its first input, until that returns: who has a fiber resumes it until then,
    /// before it is dropped. Nothing when there is no memory for a stack.
    ///
    /// The fiber may be sent to another thread between two resumptions: what `body` keeps on its stack must be such
    /// that it could be sent.
    pub fn new(body: impl FnOnce(Inside<In, Out>, In) + Send + 'e) -> Option<Self> {
        let stack = DefaultStack::new(STACK_BYTES).ok()?;
        let name = Arc::new(0);
        let inner = Arc::clone(&name);
        // SAFETY: what `body` borrows lives for 'e, and the fiber cannot outlive that: it is neither resumed nor
        // dropped
        // behind it. If it is forgotten, it is never resumed, and its stack stays.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, move |yielder: &Yielder<In, Out>, input: In| {
                body(Inside { yielder, name: inner }, input);
            })
        };
        Some(Self { coroutine, name, _borrows: PhantomData })
    }
    /// Goes on with an input. Nothing when the body has returned, now or before.
    pub fn resume(&mut self, input: In) -> Option<Out> {
        if self.coroutine.done() {
            return None;
        }
        let before = PRESENT.replace(Arc::as_ptr(&self.name).addr());
        let result = self.coroutine.resume(input);
        PRESENT.set(before);
        match result {
            CoroutineResult::Yield(out) => Some(out),
            CoroutineResult::Return(()) => None,
        }
    }
}

// SAFETY: `new` asks of the body that what it keeps can be sent.
unsafe impl<In: Send, Out: Send> Send for Fiber<'_, In, Out> {}

impl<In, Out> std::fmt::Debug for Fiber<'_, In, Out> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fiber").field("done", &self.coroutine.done()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fiber_is_left_and_gone_on_with_also_from_another_thread() {
        let mut log = Vec::new();
        let mut fiber = Fiber::new(|inside: Inside<i32, i32>, mut input| {
            while input != 0 {
                log.push(input);
                let Ok(next) = inside.give(input * 2) else { return };
                input = next;
            }
        })
        .expect("there is memory");
        assert_eq!(fiber.resume(1), Some(2));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fiber.resume(2), Some(4)));
        });
        assert_eq!((fiber.resume(0), fiber.resume(5)), (None, None));
        drop(fiber);
        assert_eq!(log, [1, 2]);
    }

    #[test]
    fn outside_of_its_fiber_nothing_can_be_given() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut fiber = Fiber::new(move |inside: Inside<(), i32>, ()| {
            sender.send(inside.clone()).expect("somebody listens");
            let _ = inside.give(1);
        })
        .expect("there is memory");
        assert_eq!(fiber.resume(()), Some(1));
        let inside = receiver.recv().expect("it was sent");
        assert_eq!(inside.give(2).unwrap_err(), 2);
        assert_eq!(fiber.resume(()), None);
        assert_eq!(inside.give(3).unwrap_err(), 3);
    }
}
