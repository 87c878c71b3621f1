//! Owns: how one worker tells another that something is for one of its clients: pushes, replies handed over, kills.
//! Does not own: what is done with it; the server takes messages out and applies them between batches.
//!
//! A queue is bounded by what senders produce within one tick of the receiver; pushes are counted against the output
//! limit of their receiver as soon as they are taken out.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::push::Push;
use crate::reply::Output;
use crate::waits::End;

/// Where a logical client lives. A message also names the client's id, because the place may have a new owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Address {
    /// The worker.
    pub worker: u16,
    /// RESPB channel; 0 elsewhere.
    pub channel: u16,
    /// The connection, in the worker's own numbering.
    pub connection: u32,
}

/// Who a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// Where it lives.
    pub address: Address,
    /// The client's id: a message for somebody else is dropped.
    pub client: u64,
}

/// Something for a client of another worker, or of the same one after the present batch.
#[derive(Debug)]
pub enum Message {
    /// Something that the client has subscribed to.
    Push(Recipient, Arc<Push>),
    /// The reply of a request that was blocked; the session goes on. Whoever sends it has won the wait's claim.
    Served(Recipient, Output),
    /// The connection or channel must be closed.
    Kill(Recipient, Kill),
    /// CLIENT UNBLOCK of a request that another server runs.
    Unblock(Recipient, End),
    /// Clients that wait for the end of CLIENT PAUSE may go on.
    Resume,
    /// More epochs are safe, or what is held never will be: look at it.
    Safe,
    /// There are more events for the clients that follow them (`crate::feed`).
    Events,
    /// A second has passed, for the clients that are told of it (`crate::history`).
    Figures,
    /// The server stops: finish what is there, close everything.
    Stop,
}

/// Why a client is closed by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// CLIENT KILL.
    Command,
    /// ACL DELUSER, or a user that was switched off.
    User,
    /// Its output grew over a limit while others wrote to it.
    Output,
    /// The server behind this one sends nothing more of what it is subscribed to.
    Upstream,
}

/// The queues of all workers.
#[derive(Debug)]
pub struct Mailboxes(Box<[Mailbox]>);

impl Mailboxes {
    /// At least one.
    pub(crate) fn new(workers: u16) -> Self {
        Self((0..workers.max(1)).map(|_| Mailbox::default()).collect())
    }
    /// A worker's.
    #[must_use]
    pub fn of(&self, worker: u16) -> &Mailbox {
        &self.0[usize::from(worker)]
    }
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.0.len() as u16
    }
    /// Sends a message to whom it names.
    pub fn post(&self, message: Message) {
        let worker = match &message {
            Message::Push(to, _)
            | Message::Served(to, _)
            | Message::Kill(to, _)
            | Message::Unblock(to, _) => to.address.worker,
            Message::Resume | Message::Safe | Message::Events | Message::Figures | Message::Stop => 0,
        };
        self.of(worker).send(message);
    }
    /// Sends a message of no client to every worker.
    pub fn post_all(&self, message: fn() -> Message) {
        self.0.iter().for_each(|mailbox| mailbox.send(message()));
    }
}

/// One worker's queue.
#[derive(Default)]
pub struct Mailbox {
    queue: Mutex<Vec<Message>>,
    /// A wake-up is under way: further senders need not make another one.
    woken: AtomicBool,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("queued", &self.queue.lock().len()).finish_non_exhaustive()
    }
}

impl Mailbox {
    /// How the worker is woken when it sleeps (an eventfd). Set once, before the worker runs.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        // A second one would be a second worker on one mailbox, which the server does not make.
        let _ = self.waker.set(Box::new(waker));
    }
    /// Puts a message in and wakes the worker.
    pub fn send(&self, message: Message) {
        self.queue.lock().push(message);
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(waker) = self.waker.get()
        {
            waker();
        }
    }
    /// Takes all messages out, in the order in which they came.
    pub fn take_into(&self, messages: &mut Vec<Message>) {
        self.woken.store(false, Ordering::Release);
        messages.append(&mut self.queue.lock());
    }
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }
}
