//! Owns: what has been taken out of the mailbox and not yet been told, and in which order it is told. Does not own: the
//! mailbox, telling.
//!
//! What is for one client is told in the order in which it came; clients owe each other no order. So pushes that came
//! behind each other are told client by client: one of them costs what writing it costs, and what is asked of a
//! connection is asked once for all that it gets.
//!
//! ```text
//!  messages   push a · push b · push a · push b · reply c · push a
//!             └───────────── run ─────────────┘
//!  told       a a  b b   c   a
//! ```
//!
//! Messages of one channel are all for the same clients, so that nothing has to be put in order for them.

use std::mem::replace;
use std::sync::Arc;
use weft_engine::mailbox::{Address, Audience, Mailbox, Message, Recipient};
use weft_engine::push::Push;

use crate::limits::PUSH_COST_BYTES;

/// Messages that are put in order together: their places in a run have 16 bits.
const RUN_MAX: usize = 1 << 16;
/// Room for more messages than this is given back.
const KEPT_MAX: usize = 1 << 14;

/// What is to be told next.
pub(super) enum Next {
    /// Pushes of one client: so many of the run, from [`Mail::pushes`]; and what they cost.
    Pushes(Recipient, usize, usize),
    /// Anything else.
    Message(Message),
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct Mail {
    messages: Vec<Message>,
    /// The first of them that is not in the run and has not been told.
    at: usize,
    /// Where the run begins among them: it ends at `at`.
    run_at: usize,
    /// Who is told all of the run, if that is the same for each of its messages.
    audience: Option<Audience>,
    /// How many of these have been told all of it.
    heard: usize,
    /// Otherwise, of each push its connection, its channel and its place in the run, in the order in which they are
    /// told.
    order: Vec<u64>,
    /// How many pushes have been told: of the order, or of the run to the one whose turn it is.
    told: usize,
}

impl Mail {
    /// Takes out what has come, unless something of what came before has not been told: while it waits in the mailbox
    /// it is counted. `is_awake`: the worker does so again before it sleeps, or does not sleep.
    pub(super) fn fill(&mut self, mailbox: &Mailbox, is_awake: bool) {
        if self.waiting() == 0 {
            mailbox.take_into(&mut self.messages);
        }
        if is_awake {
            mailbox.stay_awake();
        }
    }
    /// Lets go of what has been told, if all has: until then it keeps its memory.
    pub(super) fn tidy(&mut self) {
        if self.waiting() == 0 {
            (self.at, self.run_at, self.heard, self.told) = (0, 0, 0, 0);
            self.audience = None;
            self.order.clear();
            self.messages.clear();
            self.order.shrink_to(KEPT_MAX);
            self.messages.shrink_to(KEPT_MAX);
        }
    }
    /// Pushes of the run that have not been told.
    fn run_left(&self) -> usize {
        match &self.audience {
            Some(audience) => (audience.len() - self.heard) * (self.at - self.run_at) - self.told,
            None => self.order.len() - self.told,
        }
    }
    /// Messages that have not been told.
    pub(super) fn waiting(&self) -> usize {
        self.messages.len() - self.at + self.run_left()
    }
    /// Whether one of them says that the server stops.
    pub(super) fn stops(&self) -> bool {
        self.messages[self.at..].iter().any(|message| matches!(message, Message::Stop))
    }
    /// What is told next; of pushes one, or as many as cost so much.
    pub(super) fn next(&mut self, cost_max: usize) -> Option<Next> {
        if self.run_left() == 0 {
            self.begin_run();
        } else if self.audience.is_some() && self.told == self.at - self.run_at {
            (self.heard, self.told) = (self.heard + 1, 0);
        }
        if let Some((to, _)) = self.push(self.told) {
            let (mut count, mut cost) = (0, 0);
            while (count == 0 || cost < cost_max)
                && let Some((_, push)) = self.push(self.told + count).filter(|(other, _)| *other == to)
            {
                count += 1;
                cost += 1 + push.bytes() / PUSH_COST_BYTES;
            }
            self.told += count;
            return Some(Next::Pushes(to, count, cost));
        }
        let message = replace(self.messages.get_mut(self.at)?, Message::Resume);
        self.at += 1;
        Some(Next::Message(message))
    }
    /// The pushes that were last said to be next.
    pub(super) fn pushes(&self, count: usize) -> impl Iterator<Item = &Push> {
        (self.told - count..self.told).filter_map(|nth| Some(&**self.push(nth)?.1))
    }

    /// The nth push, as they are counted, and for whom it is.
    #[inline]
    fn push(&self, nth: usize) -> Option<(Recipient, &Arc<Push>)> {
        let Some(audience) = &self.audience else { return self.ordered(nth) };
        match self.messages[self.run_at..self.at].get(nth)? {
            Message::PushAll(_, push) => Some((*audience.get(self.heard)?, push)),
            _ => None,
        }
    }
    fn ordered(&self, nth: usize) -> Option<(Recipient, &Arc<Push>)> {
        let place = *self.order.get(nth)?;
        match self.messages.get(self.run_at + usize::from(place as u16))? {
            Message::Push(to, push) => Some((*to, push)),
            Message::PushAll(audience, push) => {
                let address_of = |to: &Recipient| key(to.address, 0);
                let found = audience.binary_search_by_key(&(place & !0xFFFF), address_of).ok()?;
                Some((audience[found], push))
            }
            _ => None,
        }
    }
    /// Begins the run of the pushes that come next: those that are all for the same clients; or all of them, which it
    /// puts in order.
    fn begin_run(&mut self) {
        (self.run_at, self.heard, self.told) = (self.at, 0, 0);
        self.audience = None;
        self.order.clear();
        let rest = &self.messages[self.at..];
        if let Some(Message::PushAll(audience, _)) = rest.first() {
            let is_same = |message: &&Message| match message {
                Message::PushAll(other, _) => Arc::ptr_eq(audience, other),
                _ => false,
            };
            let count = rest.iter().take(RUN_MAX).take_while(is_same).count();
            let is_last = !matches!(rest.get(count), Some(Message::Push(..) | Message::PushAll(..)));
            if count > 1 || is_last {
                self.audience = Some(Arc::clone(audience));
                self.at += count;
                return;
            }
        }
        for (message, place) in rest.iter().take(RUN_MAX).zip(0_u64..) {
            match message {
                Message::Push(to, _) => self.order.push(key(to.address, place)),
                Message::PushAll(audience, _) => {
                    self.order.extend(audience.iter().map(|to| key(to.address, place)));
                }
                _ => break,
            }
            self.at += 1;
            if self.order.len() >= RUN_MAX {
                break;
            }
        }
        self.order.sort_unstable();
    }
}

/// Orders pushes by their client, and those of one by their place.
fn key(address: Address, place: u64) -> u64 {
    u64::from(address.connection) << 32 | u64::from(address.channel) << 16 | place
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::mailbox::{Address, Kill};

    fn to(connection: u32, channel: u16) -> Recipient {
        let client = u64::from(connection) << 16 | u64::from(channel);
        Recipient { address: Address { worker: 0, channel, connection }, client }
    }
    /// What is told: to whom, and which numbers; of anything else none.
    fn told(mail: &mut Mail, pushes_max: usize) -> Vec<(u32, u16, Vec<u64>)> {
        let mut all = Vec::new();
        while let Some(next) = mail.next(pushes_max) {
            match next {
                Next::Pushes(to, count, cost) => {
                    assert_eq!(count, cost, "they are short");
                    let number = |push: &Push| match push {
                        Push::TrackingRedirBroken(number) => *number,
                        other => panic!("{other:?}"),
                    };
                    let numbers = mail.pushes(count).map(number).collect();
                    all.push((to.address.connection, to.address.channel, numbers));
                }
                Next::Message(Message::Kill(to, _)) => {
                    all.push((to.address.connection, to.address.channel, Vec::new()));
                }
                Next::Message(other) => panic!("{other:?}"),
            }
        }
        all
    }

    #[test]
    fn each_client_is_told_in_the_order_in_which_it_came() {
        let mailbox = Mailbox::default();
        let push = |to, number| mailbox.send(Message::Push(to, Arc::new(Push::TrackingRedirBroken(number))));
        let (a, b, of_b) = (to(7, 0), to(3, 0), to(3, 9));
        let send = || {
            [(a, 1), (b, 2), (of_b, 3), (a, 4), (b, 5)].into_iter().for_each(|(to, number)| push(to, number));
            mailbox.send(Message::Kill(b, Kill::Command));
            [(a, 6), (b, 7), (a, 8)].into_iter().for_each(|(to, number)| push(to, number));
        };
        let mut mail = Mail::default();
        for pushes_max in [usize::MAX, 1] {
            send();
            mail.fill(&mailbox, false);
            assert_eq!(mail.waiting(), 9);
            let together = told(&mut mail, pushes_max);
            if pushes_max > 1 {
                let expected = [
                    (3, 0, vec![2, 5]),
                    (3, 9, vec![3]),
                    (7, 0, vec![1, 4]),
                    (3, 0, vec![]),
                    (3, 0, vec![7]),
                    (7, 0, vec![6, 8]),
                ];
                assert_eq!(together, expected);
            } else {
                let of_a: Vec<u64> =
                    together.iter().filter(|(to, ..)| *to == 7).flat_map(|(.., it)| it.clone()).collect();
                assert_eq!((together.len(), of_a), (9, vec![1, 4, 6, 8]));
            }
            mail.tidy();
            assert_eq!((mail.waiting(), mail.messages.len(), mail.order.len()), (0, 0, 0));
        }
    }

    /// Messages of some channels to audiences that are the same, that overlap and that share nobody, with others
    /// between them: each client is told all of its own in their order, however much is told at once.
    #[test]
    fn those_who_hear_the_same_are_told_it_in_order() {
        let audiences: [Audience; 3] = [
            [to(1, 0), to(2, 1), to(2, 5), to(9, 0)].into(),
            [to(2, 5), to(7, 0)].into(),
            [to(4, 0), to(4, 7)].into(),
        ];
        for which in ["0000", "0101", "0011", "01", "0122", "0p00", "00p1", "p01", "0k0", "00k11p"] {
            for cost_max in [usize::MAX, 3, 1] {
                let (mailbox, mut due) = (Mailbox::default(), Vec::new());
                for (kind, number) in which.chars().cycle().take(3 * which.len()).zip(0_u64..) {
                    let push = Arc::new(Push::TrackingRedirBroken(number));
                    let to_all: &[Recipient] = match kind {
                        'k' => {
                            mailbox.send(Message::Kill(to(9, 0), Kill::Command));
                            continue;
                        }
                        'p' => {
                            mailbox.send(Message::Push(to(2, 5), push));
                            &[to(2, 5)]
                        }
                        digit => {
                            let audience = &audiences[digit as usize - '0' as usize];
                            mailbox.send(Message::PushAll(Arc::clone(audience), push));
                            audience
                        }
                    };
                    due.extend(to_all.iter().map(|to| (to.address.connection, to.address.channel, number)));
                }
                let mut mail = Mail::default();
                mail.fill(&mailbox, false);
                let mut all: Vec<(u32, u16, u64)> = Vec::new();
                for (connection, channel, numbers) in told(&mut mail, cost_max) {
                    let place = |other: &(u32, u16, u64)| (other.0, other.1) == (connection, channel);
                    for number in numbers {
                        let before = all.iter().rfind(|other| place(other));
                        assert!(before.is_none_or(|before| before.2 < number), "{which} {cost_max}");
                        all.push((connection, channel, number));
                    }
                }
                all.sort_unstable();
                due.sort_unstable();
                assert_eq!(all, due, "{which} {cost_max}");
                mail.tidy();
                assert_eq!((mail.waiting(), mail.messages.len()), (0, 0));
            }
        }
    }

    #[test]
    fn what_is_long_costs_more() {
        let mailbox = Mailbox::default();
        let mut mail = Mail::default();
        let long = Arc::new(Push::message("message", &b"c"[..].into(), &[0; 4 * PUSH_COST_BYTES], 1));
        (0..5).for_each(|_| mailbox.send(Message::Push(to(1, 0), Arc::clone(&long))));
        mail.fill(&mailbox, false);
        for (cost_max, count) in [(1, 1), (6, 2), (usize::MAX, 2)] {
            let next = mail.next(cost_max);
            assert!(matches!(next, Some(Next::Pushes(_, told, cost)) if told == count && cost == 5 * count));
        }
    }

    #[test]
    fn what_is_not_told_is_taken_out_before_anything_else() {
        let mailbox = Mailbox::default();
        let mut mail = Mail::default();
        let send = |count: u64| {
            (0..count).for_each(|number| {
                let push = Arc::new(Push::TrackingRedirBroken(number));
                mailbox.send(Message::Push(to(1, 0), push));
            });
        };
        // More than a run.
        send(RUN_MAX as u64 + 2);
        mail.fill(&mailbox, false);
        assert!(matches!(mail.next(10), Some(Next::Pushes(_, 10, 10))));
        send(1);
        mail.tidy();
        mail.fill(&mailbox, false);
        assert_eq!(mail.waiting(), RUN_MAX - 8, "the last one stays in the mailbox");
        let numbers: Vec<u64> = told(&mut mail, 1000).into_iter().flat_map(|(.., numbers)| numbers).collect();
        assert_eq!(numbers, (10..RUN_MAX as u64 + 2).collect::<Vec<_>>());
        mailbox.send(Message::Stop);
        mail.tidy();
        mail.fill(&mailbox, false);
        assert!(mail.stops());
        assert_eq!(mail.waiting(), 2);
    }
}
