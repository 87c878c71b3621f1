//! Owns: noting what clients that track have read, and telling them when it changes. Does not own: the table of that
//! (`crate::tracking`), CLIENT TRACKING, writing pushes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weft_protocol::table::{flag, policy};
use weft_store::wants;

use crate::args::Args;
use crate::context::EffectReader;
use crate::engine::Engine;
use crate::keys;
use crate::push::Push;
use crate::reply::ReplySink;
use crate::session::{ClientInfo, Session, client_flag};
use crate::tracking::{FLAGS, Names};

/// Bytes that the names of all keys in the table have: what is beyond is told of as if it had changed.
const NAMES_BYTES_MAX: usize = 256 << 20;

/// Whether what a client reads now is not noted: it is told of all changes, or has said so.
fn is_left_out(session: &Session) -> bool {
    let info = &session.info;
    info.has(client_flag::BCAST)
        || info.has(client_flag::OPTIN) && session.caching != Some(true)
        || info.has(client_flag::OPTOUT) && session.caching == Some(false)
}

/// What a client with these flags wants to know of: all keys that are written to, or those that were noted for it.
const fn wanted_with(flags: u32) -> u32 {
    if flags & client_flag::BCAST != 0 { wants::KEYS } else { wants::NOTED_KEYS }
}

impl Engine {
    /// CLIENT TRACKING ON: the client's flags and redirection, and in broadcast mode prefixes on top of those it has.
    pub(crate) fn track(&self, info: &ClientInfo, flags: u32, redirect: u64, prefixes: &[&[u8]]) {
        self.keyspace.subscribe(wanted_with(flags));
        if info.has(client_flag::TRACKING) {
            self.keyspace.unsubscribe(wanted_with(info.flags.load(Relaxed)));
        }
        info.redirect.store(redirect, Relaxed);
        info.set_flag(FLAGS, false);
        info.set_flag(flags | client_flag::TRACKING, true);
        if flags & client_flag::BCAST != 0 {
            let mut table = self.tracking.prefixes.write();
            let everything: &[&[u8]] = &[b""];
            for prefix in if prefixes.is_empty() { everything } else { prefixes } {
                let clients = table.entry((*prefix).into()).or_default();
                if !clients.contains(&info.id) {
                    clients.push(info.id);
                }
            }
        }
    }

    /// CLIENT TRACKING OFF, RESET, and the end of a client. Its entries in the table are passed over later.
    pub(crate) fn untrack(&self, info: &ClientInfo) {
        if !info.has(client_flag::TRACKING) {
            return;
        }
        if info.has(client_flag::BCAST) {
            self.tracking.prefixes.write().retain(|_, clients| {
                clients.retain(|client| *client != info.id);
                !clients.is_empty()
            });
        }
        self.keyspace.unsubscribe(wanted_with(info.flags.load(Relaxed)));
        info.set_flag(FLAGS, false);
    }

    /// Notes the keys of a read command for a client that tracks. The locks of the keys are held. `behind`: what the
    /// operation has told, if it is a command of one.
    #[inline]
    pub(crate) fn track_read(&self, session: &Session, args: &Args<'_>, behind: Option<&mut EffectReader>) {
        if session.info.has(client_flag::TRACKING) {
            self.note_read(session, args, behind);
        }
    }

    #[cold]
    fn note_read(&self, session: &Session, args: &Args<'_>, behind: Option<&mut EffectReader>) {
        let spec = args.spec;
        let reads = spec.flags & flag::READONLY != 0 && spec.flags & flag::PUBSUB == 0;
        // What a script reads is noted read by read.
        if is_left_out(session) || !reads || spec.policy & policy::NOTES_OWN_READS != 0 {
            return;
        }
        keys::each(args, |index| self.note_key(args.bytes(index), session.info.id));
        if let Some(effects) = behind.filter(|effects| !effects.is_empty())
            && session.info.has(client_flag::NOLOOP)
        {
            keys::each(args, |index| effects.read_behind.add(args.bytes(index)));
        }
    }

    /// Keys that another server reads by some requests, if their client wants to be told of them; those of a script,
    /// though it may read others.
    pub(crate) fn tracked_elsewhere<'a, 'r: 'a>(
        &self,
        session: &Session,
        requests: impl Iterator<Item = &'a Args<'r>>,
    ) -> Option<Names> {
        if !session.info.has(client_flag::TRACKING) || is_left_out(session) {
            return None;
        }
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for args in requests {
            let spec = args.spec;
            let reads = spec.flags & flag::READONLY != 0 && spec.flags & flag::PUBSUB == 0;
            if reads || spec.group == "scripting" {
                keys::each(args, |index| names.push(args.bytes(index).into()));
            }
        }
        (!names.is_empty()).then(|| names.into())
    }

    /// A client has read keys at another server, which will tell when they change: before the reply is passed on.
    pub fn note_elsewhere(&self, client: u64, names: &[Box<[u8]>]) {
        if let Some(info) = self.clients.get(client)
            && info.has(client_flag::TRACKING)
        {
            names.iter().for_each(|name| self.note_key(name, client));
        }
    }

    /// A client has been passed a reply that was held back, or that the other server does not track: of what is not
    /// noted it is told as if it had changed.
    pub fn invalidate_unnoted(&self, client: u64, names: &[Box<[u8]>]) {
        for name in names.iter().filter(|name| !self.tracking.has(name, client)) {
            self.invalidate(name, &[client], None);
        }
    }

    /// Another server tells of keys that have changed; without names, of all.
    pub fn changed_elsewhere(&self, names: Option<&[Box<[u8]>]>) {
        match names {
            None => self.invalidate_all(),
            Some(names) => names.iter().for_each(|name| {
                let clients = self.take_tracked(name);
                self.invalidate(name, &clients, None);
            }),
        }
    }

    fn note_key(&self, key: &[u8], client: u64) {
        let tracking = &self.tracking;
        let Some(start) = tracking.note(key, client) else { return };
        self.keyspace.note(&self.keyspace.key(key));
        let max = self.settings.tracking_keys_max.load(Relaxed);
        if max > 0 && tracking.key_count() > max {
            self.invalidate_any(start, key);
        }
        while tracking.name_bytes() > NAMES_BYTES_MAX && self.invalidate_any(start, key) {}
    }

    /// Takes the clients of a key out, who will hear of no further change.
    fn take_tracked(&self, key: &[u8]) -> Vec<u64> {
        let clients = self.tracking.take(key);
        if !clients.is_empty() {
            self.keyspace.forget(&self.keyspace.key(key));
        }
        clients
    }

    /// The same but for one client, who hears of further changes if he did before.
    fn take_tracked_by_others(&self, key: &[u8], client: u64) -> Vec<u64> {
        let (clients, stays) = self.tracking.take_others(key, client);
        if !stays {
            self.keyspace.forget(&self.keyspace.key(key));
        }
        clients
    }

    /// Takes some key out, as if it had changed. Says whether there was one.
    fn invalidate_any(&self, start: usize, but: &[u8]) -> bool {
        let Some((key, clients)) = self.tracking.take_any(start, but) else { return false };
        self.keyspace.forget(&self.keyspace.key(&key));
        self.invalidate(&key, &clients, None);
        true
    }

    /// Takes keys out until there are no more than `tracking-table-max-keys`, which has become less.
    pub(crate) fn trim_tracked(&self) {
        let max = self.settings.tracking_keys_max.load(Relaxed);
        while max > 0
            && self.tracking.key_count() > max
            && self.invalidate_any(self.tracking.key_count(), b"")
        {}
    }

    /// Tells those who track of what has changed. `by`: the client that changed it, if one did.
    #[cold]
    pub(crate) fn invalidate_changed(&self, effects: &mut EffectReader, by: Option<u64>) {
        if std::mem::take(&mut effects.flushed) {
            self.invalidate_all();
        }
        self.broadcast(&effects.changed, by);
        self.invalidate_tracked(effects, by);
        effects.changed.clear();
        effects.invalidated = 0;
    }

    /// Tells those who have read a changed key. Who asked for prefixes is told of all changes of a transaction
    /// together.
    pub(crate) fn invalidate_tracked(&self, effects: &mut EffectReader, by: Option<u64>) {
        self.read_effects(effects);
        let read_behind = std::mem::take(&mut effects.read_behind);
        for (key, by_itself) in &effects.changed[effects.invalidated..] {
            let by = by.filter(|_| !by_itself);
            let clients = match by.filter(|_| read_behind.has(key)) {
                Some(by) => self.take_tracked_by_others(key, by),
                None => self.take_tracked(key),
            };
            self.invalidate(key, &clients, by);
        }
        effects.invalidated = effects.changed.len();
    }

    /// As [`invalidate_tracked`](Self::invalidate_tracked) for keys that went by themselves, before `session` gets its
    /// reply: what concerns itself goes into its output there and then.
    pub(crate) fn invalidate_before_reply(
        &self,
        effects: &mut EffectReader,
        session: &Session,
        sink: &mut ReplySink<'_>,
    ) {
        let info = &session.info;
        let at_once = info.redirect.load(Relaxed) == 0 && info.protocol.load(Relaxed) > 2;
        let tracks = at_once && !info.has(client_flag::BCAST);
        self.read_effects(effects);
        for (key, _) in &effects.changed[effects.invalidated..] {
            let mut clients = self.take_tracked(key);
            if tracks && clients.contains(&info.id) {
                clients.retain(|client| *client != info.id);
                Push::Invalidate(Some(vec![key.clone()])).write(sink);
            }
            self.invalidate(key, &clients, None);
        }
        effects.invalidated = effects.changed.len();
    }

    fn invalidate(&self, key: &[u8], clients: &[u64], by: Option<u64>) {
        for &client in clients {
            let Some(info) = self.clients.get(client) else { continue };
            let tracks = info.has(client_flag::TRACKING) && !info.has(client_flag::BCAST);
            if tracks && !(by == Some(client) && info.has(client_flag::NOLOOP)) {
                self.send_invalidation(&info, Some(vec![key.into()]));
            }
        }
    }

    /// One push for each prefix and client, with all keys under the prefix.
    fn broadcast(&self, changed: &[(Box<[u8]>, bool)], by: Option<u64>) {
        let prefixes = self.tracking.prefixes.read();
        let mut told: BTreeMap<&[u8], Vec<_>> = BTreeMap::new();
        for change in changed {
            each_prefix_of(&prefixes, &change.0, |prefix| told.entry(prefix).or_default().push(change));
        }
        for (prefix, under) in told {
            let clients = &prefixes[prefix];
            for info in clients.iter().filter_map(|client| self.clients.get(*client)) {
                let spares = by == Some(info.id) && info.has(client_flag::NOLOOP);
                let told = under.iter().filter(|(_, by_itself)| !spares || *by_itself);
                let mut keys: Vec<Box<[u8]>> = told.map(|(key, _)| key.clone()).collect();
                keys.sort_unstable();
                keys.dedup();
                if !keys.is_empty() {
                    self.send_invalidation(&info, Some(keys));
                }
            }
        }
    }

    /// A database is empty, or two have changed places: nothing that is cached may be used any more.
    fn invalidate_all(&self) {
        self.tracking.drain(|key| self.keyspace.forget(&self.keyspace.key(key)));
        for info in self.clients.all().iter().filter(|info| info.has(client_flag::TRACKING)) {
            self.send_invalidation(info, None);
        }
    }

    /// Sends an invalidation to a client or to whom it redirects. RESP2 has no pushes: there it goes only to somebody
    /// else, who is subscribed.
    fn send_invalidation(&self, info: &ClientInfo, keys: Option<Vec<Box<[u8]>>>) {
        let redirect = info.redirect.load(Relaxed);
        let target = (redirect != 0).then(|| self.clients.get(redirect));
        let to = match &target {
            None => info,
            Some(Some(target)) if !target.has(client_flag::CLOSING) => target,
            Some(_) => {
                info.set_flag(client_flag::REDIR_BROKEN, true);
                if info.protocol.load(Relaxed) > 2 {
                    let push = Arc::new(Push::TrackingRedirBroken(redirect));
                    self.mailboxes.push(info.recipient(), &push);
                }
                return;
            }
        };
        if to.protocol.load(Relaxed) > 2 || redirect != 0 && to.has(client_flag::PUBSUB) {
            self.mailboxes.push(to.recipient(), &Arc::new(Push::Invalidate(keys)));
        }
    }
}

/// Visits what a key begins with among all prefixes. Costs a look-up for each of them and for each that nearly is one,
/// however many there are.
fn each_prefix_of<'t, T>(table: &'t BTreeMap<Box<[u8]>, T>, key: &[u8], mut visit: impl FnMut(&'t [u8])) {
    let mut upto = Bound::Included(key);
    while let Some((prefix, _)) = table.range::<[u8], _>((Bound::Unbounded, upto)).next_back() {
        if key.starts_with(prefix) {
            visit(prefix);
            upto = Bound::Excluded(prefix);
        } else {
            // A prefix of the key that comes before this one is no longer than what both begin with.
            let common = prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
            upto = Bound::Included(&key[..common]);
        }
    }
}
