//! Owns: a client as one line of CLIENT LIST: its fields and letters. Does not own: which clients are listed.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;

use crate::error::full_name;
use crate::session::{ClientInfo, client_capa, client_flag};

/// The letters of flags, in the order in which they are shown.
pub(super) const LETTERS: [(u8, u32); 14] = [
    (b'O', client_flag::MONITOR),
    (b'P', client_flag::PUBSUB),
    (b'x', client_flag::MULTI),
    (b'b', client_flag::BLOCKED),
    (b't', client_flag::TRACKING),
    (b'R', client_flag::REDIR_BROKEN),
    (b'B', client_flag::BCAST),
    (b'd', client_flag::DIRTY),
    (b'c', client_flag::CLOSING),
    (b'U', client_flag::UNIX),
    (b'r', client_flag::READONLY),
    (b'e', client_flag::NO_EVICT),
    (b'T', client_flag::NO_TOUCH),
    (b'I', client_flag::IMPORT_SOURCE),
];

impl ClientInfo {
    /// Its flags, with those that follow from other fields.
    pub(super) fn shown_flags(&self) -> u32 {
        let multi = self.queued.load(Relaxed) != u32::MAX;
        self.flags.load(Relaxed) | if multi { client_flag::MULTI } else { 0 }
    }

    /// The letters of its flags; `N` for none.
    fn letters(&self) -> String {
        let flags = self.shown_flags();
        let set = LETTERS.iter().filter(|(_, flag)| flags & flag != 0);
        let letters: String = set.map(|(letter, _)| char::from(*letter)).collect();
        if letters.is_empty() { "N".into() } else { letters }
    }

    /// The client as CLIENT LIST shows it, without a line end. A RESPB channel is a client of its own: `resp=4`, and
    /// behind all fields of Valkey `channel=` with its number.
    #[must_use]
    pub fn line(&self, now_ms: u64) -> String {
        let connection = &self.connection;
        let seconds = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
        let (name, lib_name, lib_ver) = match &*self.labels.lock() {
            None => Default::default(),
            Some(labels) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(&labels.name), text(&labels.lib_name), text(&labels.lib_ver))
            }
        };
        let queued = self.queued.load(Relaxed);
        let queued = if queued == u32::MAX { -1 } else { i64::from(queued) };
        let last = self.last_command.load(Relaxed);
        let command = if last == u16::MAX { "NULL".into() } else { full_name(CommandId(last).spec()) };
        let tracking = self.has(client_flag::TRACKING);
        let redirect = if tracking { self.redirect.load(Relaxed) as i64 } else { -1 };
        let (input, output) = (connection.input_bytes.load(Relaxed), connection.output_bytes.load(Relaxed));
        let capa = if self.capa.load(Relaxed) & client_capa::REDIRECT != 0 { "r" } else { "" };
        let mut line = String::with_capacity(400);
        // Writing into a string cannot fail.
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name={name} age={} idle={} flags={} capa={capa} db={} sub={} psub={} \
             ssub={} multi={queued} watch={} qbuf={input} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 \
             oll=0 omem={output} tot-mem={} events=r cmd={command} user={} redir={redirect} resp={} \
             lib-name={lib_name} lib-ver={lib_ver} tot-net-in={} tot-net-out={} tot-cmds={}",
            self.id,
            connection.peer,
            connection.local,
            connection.fd,
            seconds(self.created_ms),
            seconds(self.active_ms.load(Relaxed)),
            self.letters(),
            self.db.load(Relaxed),
            self.channels.load(Relaxed),
            self.patterns.load(Relaxed),
            self.shard_channels.load(Relaxed),
            self.watched.load(Relaxed),
            self.queued_bytes.load(Relaxed),
            size_of::<Self>() as u64 + input + output + self.queued_bytes.load(Relaxed),
            self.user.lock().name,
            self.protocol.load(Relaxed),
            connection.bytes_in.load(Relaxed),
            connection.bytes_out.load(Relaxed),
            self.commands.load(Relaxed),
        );
        if self.protocol.load(Relaxed) == 4 {
            let _ = write!(line, " channel={}", self.address.channel);
        }
        line
    }
}
