//! Owns: a transaction that has come whole: MULTI, its commands and EXEC stand behind each other in one batch, as
//! most clients send it. Nothing is queued: its commands are run from where they came. Does not own: one that comes in
//! pieces (`super::admission`, `super::exec`), how its commands run (`Core::run_queued`, of both).
//!
//! Taken is what would run for certain: commands of one key each, that would run among neighbours by themselves. Any
//! other goes the full way from its MULTI on, and nothing has been changed.

use std::time::Instant;

use weft_store::{Ahead, Batch};

use super::locks::Shards;
use super::neighbours::{RunWith, Tally, Terms};
use super::{Core, Lent};
use crate::args::Texts;
use crate::blocking;
use crate::context::Locked;
use crate::reply::ReplySink;
use crate::requests::{Request, Requests};
use crate::stats::bump;
use crate::{runner, traits};

/// More than "OK" or "QUEUED" takes as a reply.
const WORD_BYTES_MAX: usize = 64;

impl Core<'_> {
    /// Runs the transaction that begins at place `at`, and says how many requests it is. 0: none begins there, or it
    /// must go the full way.
    #[inline]
    pub(super) fn whole_transaction(
        &mut self,
        (batch, tally): (&Batch<'_>, &mut Tally),
        requests: &Requests,
        at: usize,
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let list = &requests.list()[at..];
        if !self.plan(&list[0]).is_some_and(|(_, plan)| plan.opens) || terms.triggered {
            return 0;
        }
        self.run_whole((batch, tally), requests, list, lent, terms).unwrap_or(0)
    }

    fn run_whole(
        &mut self,
        (batch, tally): (&Batch<'_>, &mut Tally),
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> Option<usize> {
        let (queued, exec) = self.parts(requests, list, lent, terms)?;
        let end = exec.command()?;
        let mut guards = if let Some(guards) = batch.guards_alone() {
            guards
        } else {
            let mut shards = Shards::default();
            for request in queued {
                shards.add(self.engine.keyspace.shard_of_hash(request.hash));
            }
            shards.lock(batch)?
        };
        self.tally(tally, list[0].command(), 1);
        ReplySink::new(lent.output, lent.session.wire).ok();
        for _ in queued {
            ReplySink::new(lent.output, lent.session.wire).simple("QUEUED");
        }
        let (place, texts) = (lent.output.end(), Texts::default());
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let len = sink.len();
        sink.array(queued.len());
        let (charged_ns, started) = (self.charged_ns, self.start(None));
        let outer = self.begin_inner(started);
        self.local.effects.ahead = Ahead::default();
        for request in queued {
            let args = requests.args(request, lent.bytes, &texts);
            let run: RunWith = runner::run_handler;
            self.run_queued(Locked::Guards(&mut guards), (&args, run), lent.session, &mut sink);
        }
        let ended = Instant::now();
        self.charge_inner(&outer, ended);
        self.local.effects.end_group();
        if !self.local.ready.is_empty() {
            self.serve_after(&mut guards);
        }
        drop(guards);
        if !self.local.ready.is_empty() {
            // They wait for keys elsewhere too.
            blocking::serve_rest(self.engine, &mut self.local, batch, self.now_ms);
        }
        let reply_bytes = sink.len().saturating_sub(len);
        let args = requests.args(exec, lent.bytes, &texts);
        bump(&self.stats.by_command[usize::from(end.0)].calls, 1);
        self.note_large(lent.session, &args, reply_bytes);
        self.took_until((end, &args), lent.session, (started, ended));
        self.take_of_turn(self.charged_ns.saturating_sub(charged_ns));
        self.count(tally);
        tally.ran_whole(end, queued.len());
        self.eviction.forget();
        if lent.output.len() > terms.end {
            // How long it is was not known before.
            self.long_from = Some(place);
        }
        Some(queued.len() + 2)
    }

    /// The commands and the end of a transaction that stands at the front of the list, if it is whole, all of it may
    /// run and nothing of it need be asked for by itself.
    fn parts<'r>(
        &mut self,
        requests: &Requests,
        list: &'r [Request],
        lent: &Lent<'_>,
        terms: Terms,
    ) -> Option<(&'r [Request], &'r Request)> {
        let client = list[0].client;
        for (at, request) in list.iter().enumerate().take_while(|(_, request)| request.client.is_same(client))
        {
            let texts = Texts::default();
            let args = requests.args(request, lent.bytes, &texts);
            let id = request.command()?;
            let ends = traits::of(id) & traits::ENDS_TRANSACTION != 0;
            let asks = terms.restricted || terms.limited;
            let (room, user) = ((self.engine, &mut self.eviction), &lent.session.user);
            if at == 0 || ends {
                // Neither has any argument.
                let runs = args.len() == 1 && at != 1;
                if !runs || asks && !terms.let_run(room, user, (id, std::iter::empty()), None) {
                    return None;
                }
            } else {
                let plan = self.engine.plans.of(id)?;
                let runs = plan.one_lock && plan.takes(args.len()) && request.first_hash().is_some();
                let planned = (id, plan, args.bytes(1));
                if !runs || asks && !terms.let_one_lock_run(room, user, planned, || requests.bytes(request)) {
                    return None;
                }
            }
            if ends {
                let queued = &list[1..at];
                // Only the last reply may go beyond the end.
                let fits = lent.output.len() + (at + 1) * WORD_BYTES_MAX <= terms.end;
                return fits.then_some((queued, request));
            }
        }
        None
    }
}
