//! Owns one logical client of a shared connection. Does not own the connection, nor the order of its frames.

use std::sync::Arc;
use std::time::Duration;

use weft_protocol::Reply;
use weft_protocol::respb::Control;

use super::inbox::{Inbox, TooLate};
use super::{Handle, QUEUE_BYTES_MAX, Shared, lock};
use crate::config::Protocol;
use crate::connection::refuse;
use crate::error::{Error, Result, ServerError};
use crate::handshake;
use crate::value::{FromReply, convert};
use crate::waiting::Patience;

/// Unsent bytes above which [`Channel::send`] sends.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A logical client with a user, database, transaction and subscriptions of its own, used by one thread at a time.
/// Dropping it closes it.
///
/// When the server closes it, the reason comes as [`Error::ChannelClosed`], and the connection goes on; when the
/// connection is lost, that is [`Error::Lost`]. A request that took too long is cancelled, and the channel goes on:
/// unlike a [`Connection`](crate::Connection) it knows which reply to drop.
#[derive(Debug)]
pub struct Channel {
    handle: Arc<Handle>,
    id: u16,
    inbox: Arc<Inbox>,
    /// Requests that are noted and not yet in the connection's queue.
    output: Vec<u8>,
    reply_timeout: Option<Duration>,
}

impl Channel {
    pub(super) fn open(handle: Arc<Handle>, id: u16, inbox: Arc<Inbox>) -> Result<Channel> {
        inbox.adopt();
        let config = &handle.shared.config;
        let (reply_timeout, window, steps) =
            (config.timeouts.reply, handle.shared.window(id), handshake::for_channel(config));
        let mut channel = Channel { handle, id, inbox, output: Vec::new(), reply_timeout };
        if let Some(more) = window {
            Control::Window { more }.encode(id, &mut channel.output);
        }
        // Channel 0 was made by the connection's handshake.
        if id != 0 {
            channel.run_steps(&steps)?;
        }
        Ok(channel)
    }

    fn run_steps(&mut self, steps: &[handshake::Step]) -> Result<()> {
        for (_, args) in steps {
            self.send(args)?;
        }
        for (step, _) in steps {
            if let Reply::Error(text) = self.receive()? {
                return Err(Error::Handshake { step: step.clone(), error: ServerError::new(&text) });
            }
        }
        Ok(())
    }

    /// Its number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Sends a command, its name first, and gives its reply; an error reply as [`Error::Server`].
    pub fn command<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        match self.exchange(args)? {
            Reply::Error(text) => Err(Error::Server(ServerError::new(&text))),
            reply => Ok(reply),
        }
    }

    /// Like [`command`](Self::command), with the reply as a type of Rust.
    pub fn query<V: FromReply>(&mut self, args: &[impl AsRef<[u8]>]) -> Result<V> {
        convert(self.command(args)?)
    }

    /// Like [`command`](Self::command), with an error reply as a [`Reply`].
    pub fn exchange<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        if !self.inbox.while_open(|state| state.is_idle())? {
            return Err(Error::Config("earlier requests have replies that were not received".into()));
        }
        self.send(args)?;
        self.receive()
    }

    /// Notes a request for sending, and gives its number on the channel. It leaves with the next
    /// [`flush`](Self::flush) or receiving, or when 64 KiB have come together.
    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<u32> {
        refuse(Protocol::Respb, args)?;
        let Channel { handle, id, inbox, output, .. } = self;
        let encoder = &handle.shared.encoder;
        let sequence = inbox.while_open(|state| {
            encoder.encode(*id, args, output).map(|()| state.note_request(Patience::of(args)))
        })??;
        if self.output.len() > OUTPUT_BYTES_MAX {
            self.flush()?;
        }
        Ok(sequence)
    }

    /// Sends what is noted.
    pub fn flush(&mut self) -> Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let Channel { handle, inbox, output, .. } = self;
        let queued = inbox.while_open(|state| {
            state.is_open = true;
            let mut queue = lock(&handle.shared.queue);
            queue.extend_from_slice(output);
            queue.len()
        });
        self.output.clear();
        if self.output.capacity() > 4 * OUTPUT_BYTES_MAX {
            self.output = Vec::new();
        }
        self.shared().write_queued(queued? > QUEUE_BYTES_MAX)
    }

    /// The answer to the oldest unanswered request; an error reply as a [`Reply`]. One that does not come in time is
    /// given up: the request is cancelled, and its answer will be dropped.
    pub fn receive(&mut self) -> Result<Reply> {
        self.flush()?;
        match self.inbox.take_reply(self.reply_timeout)? {
            Ok(reply) => {
                self.grant()?;
                Ok(reply)
            }
            Err(TooLate) => {
                let Some((sequence, error)) = self.inbox.give_up(self.reply_timeout) else {
                    return Err(Error::Finished);
                };
                self.cancel(sequence)?;
                Err(error)
            }
        }
    }

    /// The next push; none when the time is over.
    pub fn receive_push(&mut self, limit: Option<Duration>) -> Result<Option<Reply>> {
        self.flush()?;
        let push = self.inbox.take_push(limit)?;
        self.grant()?;
        Ok(push)
    }

    /// Gives back credit for what was taken.
    fn grant(&mut self) -> Result<()> {
        let more = self.inbox.lock().credit(self.shared().window(self.id));
        if let Some(more) = more {
            Control::Window { more }.encode(self.id, &mut self.output);
            // An end that was noticed only now is told when there is nothing left to take.
            match self.flush() {
                Err(Error::ChannelClosed { .. } | Error::Lost(_)) => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Subscribes to channels of publish/subscribe. Messages are [pushes](Self::receive_push).
    pub fn subscribe<T: AsRef<[u8]>>(&mut self, channels: &[T]) -> Result<()> {
        let mut args = vec![&b"SUBSCRIBE"[..]];
        args.extend(channels.iter().map(AsRef::as_ref));
        self.command(&args).map(drop)
    }

    /// Ends the request of this number if it waits or blocks; it then answers `CANCELLED`. Otherwise nothing happens
    /// (section 8.6).
    pub fn cancel(&mut self, sequence: u32) -> Result<()> {
        Control::Cancel { sequence }.encode(self.id, &mut self.output);
        self.flush()
    }

    /// Changes the longest wait for a reply.
    pub fn set_reply_timeout(&mut self, limit: Option<Duration>) {
        self.reply_timeout = limit;
    }

    /// Why it ended, if it did.
    pub fn ended(&self) -> Option<Error> {
        self.inbox.lock().ended().cloned()
    }

    /// Closes it with a code of the application's (256 and above) and a reason.
    pub fn close(mut self, code: u16, reason: &str) -> Result<()> {
        self.flush()?;
        self.end(code, reason)
    }

    fn end(&mut self, code: u16, reason: &str) -> Result<()> {
        let shared = self.shared();
        let mut registry = lock(&shared.registry);
        // The number may be another channel's by now, if the server closed this one.
        match registry.slot(self.id) {
            super::Slot::Open(inbox) if Arc::ptr_eq(inbox, &self.inbox) => {
                registry.close(self.id, Error::Finished, code, reason, &shared.queue);
            }
            _ => return Ok(()),
        }
        drop(registry);
        shared.write_queued(false)
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // A connection that cannot be written to has ended all its channels.
        let _ = self.end(0, "");
    }
}
