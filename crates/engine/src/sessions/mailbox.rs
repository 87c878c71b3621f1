//! Owns: how one worker tells another that something is for one of its clients: pushes, replies handed over, kills.
//! Does not own: what is done with it; the server takes messages out and applies them between batches.
//!
//! Pushes are counted against the output limit of their receiver as soon as they have been taken out. Others, and a
//! script above all, may produce very much before that: what has been published, and lines of MONITOR, have the same
//! limit while they wait here ([`Mailboxes::limit`]), and invalidations become one that says that everything has
//! changed ([`INVALIDATIONS_BYTES_MAX`]). What counts is the memory that they take, however small they are.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// Several clients of one worker, in the order of their addresses.
pub type Audience = Arc<[Recipient]>;

/// Something for a client of another worker, or of the same one after the present batch.
#[derive(Debug)]
pub enum Message {
    /// Something that the client has subscribed to.
    Push(Recipient, Arc<Push>),
    /// The same for several.
    PushAll(Audience, Arc<Push>),
    /// The reply of a request that was blocked; the session goes on. Whoever sends it has won the wait's claim.
    Served(Recipient, Box<Output>),
    /// The connection or channel must be closed.
    Kill(Recipient, Kill),
    /// CLIENT UNBLOCK of a request that another server runs.
    Unblock(Recipient, End),
    /// Clients that wait for the end of CLIENT PAUSE may go on.
    Resume,
    /// More epochs are safe, or what is withheld never will be: look at it.
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
pub struct Mailboxes {
    all: Box<[Mailbox]>,
    /// What one client may have waiting of messages, and of MONITOR's lines; 0: there is no limit.
    message_bytes_max: AtomicUsize,
    line_bytes_max: AtomicUsize,
}

impl Mailboxes {
    /// At least one.
    pub(crate) fn new(workers: u16) -> Self {
        let all = (0..workers.max(1)).map(|_| Mailbox::default()).collect();
        Self { all, message_bytes_max: AtomicUsize::new(0), line_bytes_max: AtomicUsize::new(0) }
    }
    /// From now on a client that has more than this waiting here, of messages or of MONITOR's lines, is closed: 0 for
    /// as much as comes.
    pub(crate) fn limit(&self, message_bytes_max: usize, line_bytes_max: usize) {
        self.message_bytes_max.store(message_bytes_max, Ordering::Relaxed);
        self.line_bytes_max.store(line_bytes_max, Ordering::Relaxed);
    }
    /// Sends somebody what he wants to be told, unless too much of that waits already.
    pub(crate) fn push(&self, to: Recipient, push: &Arc<Push>) {
        let mailbox = self.of(to.address.worker);
        let limit = match &**push {
            keys if keys.is_invalidation() => return mailbox.invalidate((to, push)),
            Push::Monitor(_) => &self.line_bytes_max,
            _ => &self.message_bytes_max,
        };
        mailbox.push((to, push), limit.load(Ordering::Relaxed));
    }
    /// Sends a message to several clients of one worker; who has too much waiting is left out.
    pub(crate) fn push_all(&self, to: &Audience, message: &Arc<Push>) {
        let Some(first) = to.first() else { return };
        let limit = self.message_bytes_max.load(Ordering::Relaxed);
        self.of(first.address.worker).push_all((to, message), limit);
    }
    /// A worker's.
    #[must_use]
    pub fn of(&self, worker: u16) -> &Mailbox {
        &self.all[usize::from(worker)]
    }
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.all.len() as u16
    }
    /// Sends a message to whom it names.
    pub fn post(&self, message: Message) {
        let worker = match &message {
            Message::Push(to, _)
            | Message::Served(to, _)
            | Message::Kill(to, _)
            | Message::Unblock(to, _) => to.address.worker,
            Message::PushAll(to, _) => to.first().map_or(0, |first| first.address.worker),
            Message::Resume | Message::Safe | Message::Events | Message::Figures | Message::Stop => 0,
        };
        self.of(worker).send(message);
    }
    /// Wakes all workers: what they have put off may be had now.
    pub(crate) fn wake_all(&self) {
        self.all.iter().for_each(Mailbox::wake);
    }
    /// Sends a message of no client to every worker.
    pub fn post_all(&self, message: fn() -> Message) {
        self.all.iter().for_each(|mailbox| mailbox.send(message()));
    }
}

/// What waits.
#[derive(Default)]
struct Queue {
    messages: Vec<Message>,
    /// What has been published, and lines of MONITOR: each kind has a limit of its own.
    counted: [Counted; 2],
    /// Bytes of all invalidations.
    invalidations_bytes: usize,
    /// Clients that are to be told here that everything has changed: they need be told no more.
    invalidated_all: HashSet<u64>,
}

/// Pushes of a kind that has a limit.
#[derive(Default)]
struct Counted {
    /// Bytes of all of them.
    bytes: usize,
    /// Those of each client, once all together are more than one may have. Who has had more has [`CLOSED`].
    by_client: HashMap<u64, usize>,
}

impl Counted {
    /// Whether with so much more somebody may have more than his limit, or has had.
    fn is_by_client(&self, more: usize, limit: usize) -> bool {
        self.bytes + more > limit || !self.by_client.is_empty()
    }
}

/// Of which kind a push is that has a limit.
fn kind_of(push: &Push) -> usize {
    usize::from(matches!(push, Push::Monitor(_)))
}

/// Nothing more is kept for a client: it is to be closed.
const CLOSED: usize = usize::MAX;

/// Invalidations that wait for the clients of one worker: when they take more, each client is told instead that
/// everything has changed. Who caches loses what it has, and the server no memory.
const INVALIDATIONS_BYTES_MAX: usize = 64 << 20;

/// Memory that a push takes while it waits, as if it were nobody else's.
fn waiting_bytes(push: &Push) -> usize {
    size_of::<Message>() + size_of::<Push>() + push.bytes()
}

impl Queue {
    /// Keeps an invalidation, or lets one take the place of all.
    fn invalidate(&mut self, (to, push): (Recipient, &Arc<Push>)) {
        if self.invalidated_all.contains(&to.client) {
            return;
        }
        self.messages.push(Message::Push(to, Arc::clone(push)));
        self.invalidations_bytes += waiting_bytes(push);
        if self.invalidations_bytes > INVALIDATIONS_BYTES_MAX {
            self.invalidate_all();
        }
    }
    /// What has been read up to now has been answered before this is taken out, so that nothing is kept that has
    /// changed.
    #[cold]
    fn invalidate_all(&mut self) {
        let (mut invalidated, mut broken, invalidated_all) =
            (Vec::new(), HashSet::new(), &mut self.invalidated_all);
        self.messages.retain(|message| match message {
            Message::Push(to, push) if matches!(**push, Push::TrackingRedirBroken(_)) => {
                broken.insert(to.client)
            }
            Message::Push(to, push) if push.is_invalidation() => {
                if invalidated_all.insert(to.client) {
                    invalidated.push(*to);
                }
                false
            }
            _ => true,
        });
        let everything = Arc::new(Push::Invalidate(None));
        self.messages.extend(invalidated.into_iter().map(|to| Message::Push(to, Arc::clone(&everything))));
        // Each client has one, or two, which is all that there can be of them.
        self.invalidations_bytes = 0;
    }

    /// Keeps what has a limit, unless its client has too much of that.
    fn push(&mut self, (to, push): (Recipient, &Arc<Push>), limit: usize) -> bool {
        if limit > 0 {
            let (kind, bytes) = (kind_of(push), waiting_bytes(push));
            if self.counted[kind].is_by_client(bytes, limit) && !self.has_room(to, (kind, bytes), limit) {
                return false;
            }
            self.counted[kind].bytes += bytes;
        }
        self.messages.push(Message::Push(to, Arc::clone(push)));
        true
    }

    /// Whether a client may have so much more. Who may not is closed behind what waits.
    #[cold]
    fn has_room(&mut self, to: Recipient, (kind, bytes): (usize, usize), limit: usize) -> bool {
        let by_client = &mut self.counted[kind].by_client;
        if by_client.is_empty() {
            for message in &self.messages {
                let (all, push) = match message {
                    Message::Push(to, push) => (std::slice::from_ref(to), push),
                    Message::PushAll(to, push) => (&**to, push),
                    _ => continue,
                };
                if !push.is_invalidation() && kind_of(push) == kind {
                    for to in all {
                        *by_client.entry(to.client).or_default() += waiting_bytes(push);
                    }
                }
            }
        }
        let waiting = by_client.entry(to.client).or_default();
        if *waiting == CLOSED {
            return false;
        }
        *waiting += bytes;
        let has_room = *waiting <= limit;
        if !has_room {
            *waiting = CLOSED;
            self.messages.push(Message::Kill(to, Kill::Output));
        }
        has_room
    }
}

/// One worker's queue.
#[derive(Default)]
pub struct Mailbox {
    queue: Mutex<Queue>,
    /// A wake-up is under way: further senders need not make another one.
    woken: AtomicBool,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("queued", &self.queue.lock().messages.len()).finish_non_exhaustive()
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
        self.queue.lock().messages.push(message);
        self.wake();
    }
    fn push(&self, (to, push): (Recipient, &Arc<Push>), limit: usize) {
        if self.queue.lock().push((to, push), limit) {
            self.wake();
        }
    }
    fn push_all(&self, (to, message): (&Audience, &Arc<Push>), limit: usize) {
        {
            let queue = &mut *self.queue.lock();
            let bytes = waiting_bytes(message) * to.len();
            let counted = &mut queue.counted[kind_of(message)];
            if limit > 0 && counted.is_by_client(bytes, limit) {
                // Somebody among them may have too much.
                to.iter().for_each(|&to| {
                    queue.push((to, message), limit);
                });
            } else {
                counted.bytes += if limit > 0 { bytes } else { 0 };
                queue.messages.push(Message::PushAll(Arc::clone(to), Arc::clone(message)));
            }
        }
        self.wake();
    }
    fn invalidate(&self, push: (Recipient, &Arc<Push>)) {
        self.queue.lock().invalidate(push);
        self.wake();
    }
    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(waker) = self.waker.get()
        {
            waker();
        }
    }
    /// The worker takes again before it sleeps: until then nobody need wake it.
    pub fn stay_awake(&self) {
        self.woken.store(true, Ordering::Release);
    }
    /// Takes all messages out, in the order in which they came.
    pub fn take_into(&self, messages: &mut Vec<Message>) {
        self.woken.store(false, Ordering::Release);
        let queue = &mut *self.queue.lock();
        messages.append(&mut queue.messages);
        queue.counted.iter_mut().for_each(|counted| {
            counted.bytes = 0;
            counted.by_client.clear();
        });
        queue.invalidations_bytes = 0;
        queue.invalidated_all.clear();
    }
    /// Whether one of them says that the server stops, by somebody who does not take them now.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.woken.store(false, Ordering::Release);
        self.queue.lock().messages.iter().any(|message| matches!(message, Message::Stop))
    }
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.lock().messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pushes each client gets, and who is closed, in the order in which that stands there.
    fn taken(mailboxes: &Mailboxes) -> (HashMap<u64, usize>, Vec<u64>) {
        let (mut messages, mut pushes, mut closed) = (Vec::new(), HashMap::new(), Vec::new());
        mailboxes.of(0).take_into(&mut messages);
        for message in messages {
            match message {
                Message::Push(to, _) => *pushes.entry(to.client).or_default() += 1,
                Message::PushAll(all, _) => {
                    all.iter().for_each(|to| *pushes.entry(to.client).or_default() += 1);
                }
                Message::Kill(to, Kill::Output) => closed.push(to.client),
                other => panic!("{other:?}"),
            }
        }
        (pushes, closed)
    }

    #[test]
    fn who_is_told_more_than_his_limit_before_he_can_take_it_is_closed() {
        let mailboxes = Mailboxes::new(1);
        let message = Push::message("message", &b""[..].into(), &[0; 300], 1);
        let (message, line) = (Arc::new(message), Arc::new(Push::Monitor("x".repeat(300).into())));
        let to = |client| Recipient { address: Address::default(), client };
        (0..9).for_each(|_| mailboxes.push(to(1), &message));
        assert_eq!(taken(&mailboxes), (HashMap::from([(1, 9)]), vec![]), "there is no limit");
        // Room for three, in bytes of their memory.
        let limit = 4 * waiting_bytes(&message) - 1;
        mailboxes.limit(limit, 0);
        for _ in 0..2 {
            (0..2).for_each(|_| mailboxes.push(to(2), &message));
            (0..9).for_each(|_| mailboxes.push(to(1), &message));
            mailboxes.push(to(2), &message);
            assert_eq!(taken(&mailboxes), (HashMap::from([(1, 3), (2, 3)]), vec![1]));
        }
        mailboxes.limit(0, 4 * waiting_bytes(&line) - 1);
        (0..9).for_each(|_| mailboxes.push(to(1), &line));
        (0..9).for_each(|_| mailboxes.push(to(2), &message));
        assert_eq!(taken(&mailboxes), (HashMap::from([(1, 3), (2, 9)]), vec![1]));
        // Who looks at everything, and has subscribed, has a limit for each.
        mailboxes.limit(limit, 4 * waiting_bytes(&line) - 1);
        (0..3).for_each(|_| mailboxes.push(to(1), &line));
        (0..3).for_each(|_| mailboxes.push(to(1), &message));
        assert_eq!(taken(&mailboxes), (HashMap::from([(1, 6)]), vec![]));
        (0..3).for_each(|_| mailboxes.push(to(2), &line));
        (0..9).for_each(|_| mailboxes.push(to(1), &message));
        assert_eq!(taken(&mailboxes), (HashMap::from([(1, 3), (2, 3)]), vec![1]));
    }

    /// Who hears one among many has the same limit.
    #[test]
    fn what_many_are_told_counts_for_each() {
        let mailboxes = Mailboxes::new(1);
        let message = Arc::new(Push::message("message", &b""[..].into(), &[0; 300], 1));
        let to = |client| Recipient { address: Address::default(), client };
        let [both, one]: [Audience; 2] = [[to(1), to(2)].into(), [to(2)].into()];
        let all_tell = |times: usize| {
            (0..times).for_each(|_| mailboxes.push_all(&both, &message));
            (0..times).for_each(|_| mailboxes.push_all(&one, &message));
        };
        all_tell(9);
        assert_eq!(taken(&mailboxes), (HashMap::from([(1, 9), (2, 18)]), vec![]), "there is no limit");
        mailboxes.limit(4 * waiting_bytes(&message) - 1, 0);
        for _ in 0..2 {
            all_tell(1);
            assert_eq!(taken(&mailboxes), (HashMap::from([(1, 1), (2, 2)]), vec![]));
            all_tell(2);
            mailboxes.push(to(1), &message);
            assert_eq!(taken(&mailboxes), (HashMap::from([(1, 3), (2, 3)]), vec![2]));
            all_tell(9);
            assert_eq!(taken(&mailboxes), (HashMap::from([(1, 3), (2, 3)]), vec![1, 2]));
        }
    }

    /// A worker that takes again is not woken; what came meanwhile is there when it does, and behind that it is woken.
    #[test]
    fn who_stays_awake_is_not_woken() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let mailbox = Mailbox::default();
        let counted = Arc::clone(&wakes);
        mailbox.set_waker(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let mut messages = Vec::new();
        for awake in [false, true, false] {
            mailbox.take_into(&mut messages);
            if awake {
                mailbox.stay_awake();
            }
            messages.clear();
            wakes.store(0, Ordering::SeqCst);
            (0..3).for_each(|_| mailbox.send(Message::Resume));
            assert_eq!(wakes.load(Ordering::SeqCst), usize::from(!awake));
            mailbox.take_into(&mut messages);
            assert_eq!(messages.len(), 3);
            mailbox.send(Message::Resume);
            assert_eq!(wakes.load(Ordering::SeqCst), 1 + usize::from(!awake), "it may sleep now");
        }
    }

    #[test]
    fn what_says_little_takes_its_memory_too() {
        let mailboxes = Mailboxes::new(1);
        let push = Push::message("message", &b""[..].into(), b"", 1);
        let (push, to) = (Arc::new(push), Recipient { address: Address::default(), client: 1 });
        mailboxes.limit(1000, 0);
        (0..1000).for_each(|_| mailboxes.push(to, &push));
        let (pushes, closed) = taken(&mailboxes);
        assert!(pushes[&1] * size_of::<Message>() <= 1000, "{pushes:?}");
        assert_eq!(closed, [1]);
    }

    #[test]
    fn invalidations_that_would_take_too_much_become_one_of_everything() {
        let mailboxes = Mailboxes::new(1);
        let to = |client| Recipient { address: Address::default(), client };
        let keys = |len: usize| Arc::new(Push::Invalidate(Some(vec![vec![b'k'; len].into()])));
        let taken = || {
            let mut messages = Vec::new();
            mailboxes.of(0).take_into(&mut messages);
            let told = messages.iter().map(|message| match message {
                Message::Push(to, push) => match &**push {
                    Push::Invalidate(keys) => (to.client, keys.as_ref().map_or(0, Vec::len)),
                    Push::TrackingRedirBroken(_) => (to.client, 9),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            });
            told.collect::<Vec<(u64, usize)>>()
        };
        let large = keys(INVALIDATIONS_BYTES_MAX / 4);
        for _ in 0..2 {
            (0..3).for_each(|at| mailboxes.push(to(at % 2), &large));
            assert_eq!(taken(), [(0, 1), (1, 1), (0, 1)]);
        }
        let broken = Arc::new(Push::TrackingRedirBroken(7));
        for at in 0..4 {
            mailboxes.push(to(3), &broken);
            mailboxes.push(to(at % 2), &large);
        }
        mailboxes.push(to(0), &keys(1));
        mailboxes.push(to(2), &keys(1));
        assert_eq!(taken(), [(3, 9), (0, 0), (1, 0), (2, 1)]);
        // Very many small ones take as much.
        let count = INVALIDATIONS_BYTES_MAX / size_of::<Message>();
        let small = keys(1);
        (0..count).for_each(|_| mailboxes.push(to(0), &small));
        assert_eq!(taken(), [(0, 0)]);
    }
}
