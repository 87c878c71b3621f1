//! Owns: who is connected: the registry of logical clients by id. Does not own: their sessions, which live with their
//! connections.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::acl::User;
use crate::mailbox::Address;
use crate::session::{ClientInfo, ConnectionInfo, client_flag};

/// Parts of the registry, each with a lock of its own.
const PARTS: usize = 64;

/// Takes one out of a part of a registry by client. Where it was one of very many, those leave little memory behind.
pub(crate) fn take<T>(part: &mut HashMap<u64, T>, client: u64) -> Option<T> {
    let taken = part.remove(&client);
    if part.capacity() > SPARE_MAX + 4 * part.len() {
        part.shrink_to(2 * part.len());
    }
    taken
}
/// Places of such a part that may be free, whatever it has.
const SPARE_MAX: usize = 64;

/// All logical clients.
#[derive(Debug)]
pub struct Clients {
    next: AtomicU64,
    count: AtomicUsize,
    parts: [Mutex<HashMap<u64, Arc<ClientInfo>>>; PARTS],
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            count: AtomicUsize::new(0),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Clients {
    fn part(&self, id: u64) -> &Mutex<HashMap<u64, Arc<ClientInfo>>> {
        &self.parts[id as usize % PARTS]
    }

    /// A new client, with an id that was never used before.
    pub(crate) fn join(
        &self,
        address: Address,
        connection: Arc<ConnectionInfo>,
        user: Arc<User>,
        now_ms: u64,
    ) -> Arc<ClientInfo> {
        let id = self.next.fetch_add(1, Relaxed);
        let flags = if connection.unix { client_flag::UNIX } else { 0 };
        let info = Arc::new(ClientInfo {
            id,
            address,
            created_ms: now_ms,
            connection,
            user: Mutex::new(user),
            labels: Mutex::new(None),
            active_ms: AtomicU64::new(now_ms),
            redirect: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            last_command: AtomicU16::new(u16::MAX),
            flags: AtomicU32::new(flags),
            queued: AtomicU32::new(u32::MAX),
            queued_bytes: AtomicU64::new(0),
            watched: AtomicU32::new(0),
            channels: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_channels: AtomicU32::new(0),
            db: AtomicU8::new(0),
            protocol: AtomicU8::new(2),
            capa: AtomicU8::new(0),
        });
        self.part(id).lock().insert(id, Arc::clone(&info));
        self.count.fetch_add(1, Relaxed);
        info
    }
    /// A client is gone.
    pub(crate) fn leave(&self, id: u64) {
        if take(&mut self.part(id).lock(), id).is_some() {
            self.count.fetch_sub(1, Relaxed);
        }
    }
    /// A client by id.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.part(id).lock().get(&id).cloned()
    }
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Looks at each, in any order, part by part under its lock.
    pub fn each(&self, mut look: impl FnMut(&ClientInfo)) {
        for part in &self.parts {
            part.lock().values().for_each(|info| look(info));
        }
    }
    /// All of them, by id: a copy, so that nobody waits for whoever looks at it.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ClientInfo>> {
        let mut all: Vec<_> =
            self.parts.iter().flat_map(|part| part.lock().values().cloned().collect::<Vec<_>>()).collect();
        all.sort_unstable_by_key(|info| info.id);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_are_gone_leave_little() {
        let mut part: HashMap<u64, u64> = (0..10_000).map(|client| (client, client)).collect();
        for client in 0..9_990 {
            assert_eq!(take(&mut part, client), Some(client));
            assert!(part.capacity() <= SPARE_MAX + 4 * part.len(), "{} for {}", part.capacity(), part.len());
        }
        assert!((9_990..10_000).all(|client| part.contains_key(&client)));
        assert_eq!(take(&mut part, 0), None);
    }
}
