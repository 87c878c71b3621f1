//! Owns: the beginning of TLS on a connection: its detection, the steps of its handshake, whom its certificate names.
//! Does not own: TLS itself (`crate::tls`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::Malformed;

use super::Worker;
use crate::connection::{Life, Peer, Source};
use crate::limits::{HANDSHAKE_STEPS_PER_TICK_MAX, RECEIVE_BYTES};
use crate::tls::{Step, Stepped, Tls, Transport};

impl Worker<'_> {
    /// A connection's first byte is that of TLS. What has come of it goes there. Says whether the connection goes on.
    pub(super) fn detected_tls(&mut self, index: u32, at: &mut usize, end: usize) -> bool {
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return false };
        let is_plain = matches!(connection.transport, Transport::Plain);
        let bytes = match connection.source {
            Source::Arena => self.io.arena[*at..end].to_vec(),
            Source::Own => connection.pending[*at..end].to_vec(),
        };
        if !is_plain || !self.start_tls(index, &bytes) {
            self.malformed(index, Malformed::UnknownProtocol, "");
            return false;
        }
        *at = end;
        self.step_handshake(index);
        true
    }

    /// TLS begins on a connection, with what has been received of it. `false` where it is not served.
    pub(super) fn start_tls(&mut self, index: u32, bytes: &[u8]) -> bool {
        let tls = self.inbox.shared().tls.current().and_then(Tls::new);
        let (Some(mut tls), Some(connection)) = (tls, self.io.get(index)) else { return false };
        tls.begin(bytes);
        connection.transport = Transport::Tls(tls);
        connection.is_new = true;
        if self.io.scratch.is_empty() {
            self.io.scratch = vec![0; RECEIVE_BYTES];
        }
        let timeout_s = self.engine.settings.tls_handshake_timeout_s.load(Relaxed);
        self.expect_by(index, self.now_ms + u64::from(timeout_s) * 1000);
        true
    }

    /// Lends a connection's handshake to a helper, if a part of it has come. What it has brought counts among the input
    /// of those that have not authenticated; nobody can be told that it is too much.
    pub(super) fn step_handshake(&mut self, index: u32) {
        if self.io.get(index).is_some_and(|connection| !connection.is_authenticated()) && !self.recount(index)
        {
            return self.io.kill(index);
        }
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let owner = tls.sign_of_life();
        let (Peer::Resp(single), Some(tls)) = (&connection.peer, tls.lend()) else { return };
        // What comes meanwhile is read when it is back.
        connection.unread = true;
        let client = single.client.session.id();
        let step = Step { tls, index, client, owner, worker: Arc::clone(&self.inbox) };
        self.inbox.shared().tls.helpers.take(step);
    }

    /// Takes back what helpers have done.
    pub(super) fn take_steps_back(&mut self) {
        for _ in 0..self.crowd(HANDSHAKE_STEPS_PER_TICK_MAX, 2) {
            let Some(stepped) = self.inbox.take_stepped() else { return };
            self.crowd_left -= 1;
            self.take_step_back(stepped);
        }
        self.is_behind = true;
    }

    fn take_step_back(&mut self, stepped: Stepped) {
        let (index, client) = (stepped.index, stepped.client);
        let Some(connection) = self.io.get(index) else { return };
        let is_there = matches!(&connection.peer, Peer::Resp(single) if single.client.session.id() == client);
        let Transport::Tls(tls) = &mut connection.transport else { return };
        if !is_there || !tls.is_away() || connection.life == Life::Dead {
            return;
        }
        let stats = &self.engine.stats;
        match tls.take_back(stepped) {
            Ok(true) => {
                stats.tls_handshakes.fetch_add(1, Relaxed);
                stats.tls_handshakes_resumed.fetch_add(u64::from(tls.is_resumed()), Relaxed);
                self.established(index);
            }
            Ok(false) => {}
            Err(_) => {
                stats.tls_handshakes_failed.fetch_add(1, Relaxed);
                self.close_after_output(index);
            }
        }
        self.io.touch(index);
        self.io.unread.push(index);
    }

    /// A handshake is over: the client is whom its certificate names, and has the rest of its time to authenticate.
    fn established(&mut self, index: u32) {
        let now_ms = self.now_ms;
        let auth_timeout_s = self.engine.settings.auth_timeout_s.load(Relaxed);
        let Some(connection) = self.io.get(index) else { return };
        let Transport::Tls(tls) = &connection.transport else { return };
        let names = tls.user_names();
        let Peer::Resp(single) = &mut connection.peer else { return };
        let session = &mut single.client.session;
        if names.iter().any(|name| self.engine.authenticate_by_certificate(session, name)) {
            single.decoder.set_limits(crate::connection::limits(session, &self.engine.settings));
        }
        // Its time to authenticate begins behind the handshake, which had its own.
        let must_authenticate = !session.authenticated && auth_timeout_s > 0;
        let time_ms = if must_authenticate { u64::from(auth_timeout_s) * 1000 } else { 0 };
        connection.authenticate_by_ms = if must_authenticate { now_ms + time_ms } else { 0 };
        self.expect_by(index, 0);
        // It keeps less than before.
        self.recount(index);
    }
}
