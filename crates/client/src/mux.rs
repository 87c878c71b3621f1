//! Owns a RESPB connection that threads share: which channels are open, what the thread that reads does with each
//! frame, whose turn it is to write. Does not own what a channel does with its replies.
//!
//! Three locks, always taken in this order: the registry of channels, the inbox of one, the queue of what is to be
//! written. A channel's frames and its CLOSE stand in the queue in the order in which its inbox says that they were
//! sent, because they are put there under the inbox's lock. The lock of the writer is taken with none of them held.

mod channel;
mod inbox;
mod registry;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::JoinHandle;

use weft_protocol::respb::Control;

use crate::codec::{Decoder, Encoder, Incoming};
use crate::config::{Config, Protocol};
use crate::connection::Connection;
use crate::error::{Error, Result, Waiting};
use crate::handshake::ServerInfo;
use crate::input::Input;
use crate::stream::Stream;

pub use channel::Channel;
use inbox::{IDLE, Inbox};
use registry::{Registry, Slot};

/// Bytes that may wait to be written; who adds more waits for the writer.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// One RESPB connection for any number of threads: each takes [`Channel`]s, which are whole logical clients. Cloning it
/// is cheap, and gives the same connection, which ends with the last clone and the last channel.
///
/// ```no_run
/// # fn main() -> Result<(), weft_client::Error> {
/// use weft_client::{Config, Mux};
///
/// let mux = Mux::connect(&Config::new("localhost", 6379))?;
/// std::thread::scope(|scope| {
///     for _ in 0..100 {
///         scope.spawn(|| mux.channel()?.query::<i64>(&["INCR", "visits"]));
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mux {
    handle: Arc<Handle>,
}

/// Ends the connection, and the thread that reads, when nobody can use them any more.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

/// What the channels and the thread that reads have in common.
#[derive(Debug)]
struct Shared {
    stream: Stream,
    encoder: Encoder,
    config: Config,
    server: ServerInfo,
    registry: Mutex<Registry>,
    /// Encoded and not yet taken by a writer.
    queue: Mutex<Vec<u8>>,
    /// Held by whoever writes; the bytes that are being written.
    writer: Mutex<Vec<u8>>,
    /// GOAWAY has come: nothing more is written.
    goes_away: OnceLock<Error>,
    death: OnceLock<Arc<Error>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mux {
    /// Connects and negotiates RESPB, whatever the configuration's protocol. Channels have its user, database and name.
    pub fn connect(config: &Config) -> Result<Mux> {
        let mut config = config.clone().with_protocol(Protocol::Respb);
        config.channel = 0;
        let connection = Connection::connect(&config)?;
        let sequence = connection.next_sequence();
        let (stream, encoder, decoder, input, server) = connection.into_parts()?;
        // Channels have their own times; the thread that reads waits until the connection ends.
        stream.set_read_timeout(None).map_err(|error| Error::Io(Arc::new(error)))?;
        let limit = server.respb.as_ref().and_then(|respb| respb.limit("channels"));
        let registry = Registry::new(limit, Inbox::new(sequence));
        let shared = Arc::new(Shared {
            stream,
            encoder,
            config,
            server,
            registry: Mutex::new(registry),
            queue: Mutex::new(Vec::new()),
            writer: Mutex::new(Vec::new()),
            goes_away: OnceLock::new(),
            death: OnceLock::new(),
        });
        let for_reader = shared.clone();
        let reader = std::thread::Builder::new()
            .name("weft-mux".into())
            .spawn(move || for_reader.read(decoder, input))
            .map_err(|error| Error::Io(Arc::new(error)))?;
        Ok(Mux { handle: Arc::new(Handle { shared, reader: Some(reader) }) })
    }

    /// A channel that nobody uses, made like the connection: its database is selected, its name set.
    pub fn channel(&self) -> Result<Channel> {
        let (id, inbox) = lock(&self.shared().registry).take_free()?;
        Channel::open(self.handle.clone(), id, inbox)
    }

    /// The channel of this number, if nobody uses it. Channel 0 is not closed when it is dropped: the others have their
    /// user from it.
    pub fn open(&self, id: u16) -> Result<Channel> {
        let inbox = lock(&self.shared().registry).take(id)?;
        Channel::open(self.handle.clone(), id, inbox)
    }

    /// Channels that are open, or closing, without channel 0.
    pub fn channels(&self) -> usize {
        lock(&self.shared().registry).in_use()
    }

    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        &self.shared().server
    }

    /// Why the connection ended, if it did.
    pub fn death(&self) -> Option<Arc<Error>> {
        self.shared().death.get().cloned()
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stream.shutdown();
        if let Some(reader) = self.reader.take() {
            // A thread that panicked has nothing more to end.
            let _ = reader.join();
        }
    }
}

impl Shared {
    /// The thread that reads: until the connection ends.
    fn read(&self, mut decoder: Decoder, mut input: Input) {
        let error = loop {
            match decoder.decode(input.filled()) {
                Err(error) => break Error::malformed(error, input.filled()),
                Ok(Some((len, incoming))) => {
                    input.consume(len);
                    if let Some(incoming) = incoming
                        && let Err(error) = self.dispatch(incoming)
                    {
                        break error;
                    }
                }
                Ok(None) => match self.stream.read(input.spare()) {
                    Ok(0) => {
                        // In the midst of a frame, or of slices, it is no clean end.
                        let is_clean = input.filled().is_empty() && decoder.is_between_frames();
                        let goes_away = self.goes_away.get().filter(|_| is_clean);
                        break goes_away.cloned().unwrap_or(Error::Closed);
                    }
                    Ok(len) => input.add(len),
                    Err(error) => break Error::from_socket(error, Waiting::Reply, None),
                },
            }
        };
        self.die(error);
    }

    fn dispatch(&self, incoming: Incoming) -> Result<()> {
        match incoming {
            Incoming::Close { channel, code, reason } => {
                let error = Error::ChannelClosed { channel, code, reason };
                lock(&self.registry).closed_by_server(channel, error, &self.queue);
                self.write_queued(false)
            }
            Incoming::GoAway { code, reason } => {
                // Replies may still come. A second one is none that the protocol has.
                let _ = self.goes_away.set(Error::GoAway { code, reason });
                Ok(())
            }
            Incoming::Slice { channel, wire_bytes } => {
                let Some(inbox) = self.inbox(channel)? else { return Ok(()) };
                let more = inbox.slice(wire_bytes, self.window(channel))?;
                self.grant(channel, &inbox, more)
            }
            Incoming::Reply { channel, reply, wire_bytes } => {
                let Some(inbox) = self.inbox(channel)? else { return Ok(()) };
                let more = inbox.reply(reply, wire_bytes, self.window(channel))?;
                self.grant(channel, &inbox, more)
            }
            Incoming::Push { channel, reply, wire_bytes } => {
                let Some(inbox) = self.inbox(channel)? else { return Ok(()) };
                if inbox.push(reply, wire_bytes, self.config.pushes_max)? {
                    return Ok(());
                }
                let error = Error::TooManyPushes(self.config.pushes_max);
                lock(&self.registry).close(channel, error, 0, "", &self.queue);
                self.write_queued(false)
            }
        }
    }

    /// The inbox of a channel; none for one that is closing, whose frames are discarded (section 8.1).
    fn inbox(&self, channel: u16) -> Result<Option<Arc<Inbox>>> {
        match lock(&self.registry).slot(channel) {
            Slot::Open(inbox) => Ok(Some(inbox.clone())),
            Slot::Closing => Ok(None),
            Slot::Idle => Err(IDLE),
        }
    }

    /// The credit of a channel. Channel 0 has none, so that it never waits for one that nobody reads.
    fn window(&self, channel: u16) -> Option<u32> {
        self.config.window_bytes.filter(|_| channel != 0)
    }

    /// Gives a channel more credit.
    fn grant(&self, channel: u16, inbox: &Inbox, more: Option<u32>) -> Result<()> {
        let Some(more) = more else { return Ok(()) };
        // A channel that has ended needs none.
        let _ = inbox.while_open(|_| Control::Window { more }.encode(channel, &mut *lock(&self.queue)));
        self.write_queued(false)
    }

    /// Writes what is queued, unless somebody does who will take it along. `wait` is for who has much to write.
    fn write_queued(&self, wait: bool) -> Result<()> {
        loop {
            let mut bytes = if wait {
                lock(&self.writer)
            } else {
                match self.writer.try_lock() {
                    Ok(bytes) => bytes,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    // Whoever it is looks at the queue again after giving up the lock.
                    Err(TryLockError::WouldBlock) => return Ok(()),
                }
            };
            while self.take_queue(&mut bytes) {
                if self.goes_away.get().is_some() {
                    // The server would throw it away. Whoever waits for an answer is told at the end of the stream.
                    continue;
                }
                if let Err(error) = self.stream.write_all(&bytes) {
                    let error = Error::from_socket(error, Waiting::Write, self.config.timeouts.write);
                    drop(bytes);
                    self.die(error.clone());
                    return Err(error);
                }
            }
            drop(bytes);
            if lock(&self.queue).is_empty() {
                return Ok(());
            }
        }
    }

    /// Exchanges the queue for the bytes that were written; whether there is anything.
    fn take_queue(&self, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        if bytes.capacity() > QUEUE_BYTES_MAX {
            *bytes = Vec::new();
        }
        std::mem::swap(&mut *lock(&self.queue), bytes);
        !bytes.is_empty()
    }

    /// Ends the connection for all channels.
    fn die(&self, error: Error) {
        let error = self.death.get_or_init(|| Arc::new(error)).clone();
        lock(&self.registry).die(&error);
        self.stream.shutdown();
    }
}
