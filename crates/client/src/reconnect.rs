//! Owns what happens after a loss: when a connection is made again, what of its session comes back, what is sent again
//! and what never. Does not own the connection.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use weft_protocol::Reply;
use weft_protocol::table::{self, flag};

use crate::config::{Config, ReconnectPolicy};
use crate::connection::Connection;
use crate::error::{Error, Result, ServerError};
use crate::session::Session;
use crate::value::{FromReply, convert};

/// A connection that is made again when it is lost, with the user, database, name and subscriptions that it had.
///
/// A command is sent again only if it cannot have changed anything: when the loss was noticed before it was sent, when
/// the server has said that it did not run (GOAWAY), or when the command only reads. Otherwise the loss is reported as
/// [`Error::OutcomeUnknown`], and the next command finds a new connection. A transaction cannot be restored: its loss
/// is [`Error::TransactionLost`]. Messages that were published while there was no connection are gone, which is what
/// publish/subscribe promises.
#[derive(Debug)]
pub struct Reconnecting {
    config: Config,
    connection: Option<Connection>,
    session: Session,
    losses: u64,
}

impl Reconnecting {
    /// Connects, with as many attempts as the policy allows.
    pub fn connect(config: &Config) -> Result<Self> {
        let mut this = Reconnecting::new(config);
        this.ready()?;
        Ok(this)
    }

    /// Connects when it is first used.
    pub fn new(config: &Config) -> Self {
        let session = Session::new(config);
        Reconnecting { config: config.clone(), connection: None, session, losses: 0 }
    }

    /// Ends the connection. The next use makes another with the same user, database and name, and without the rest: no
    /// transaction, no subscriptions.
    pub fn renew(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.session = connection.session().clone();
        }
        self.session.forget_all_but_identity();
    }

    /// Sends a command and gives its reply; an error reply as [`Error::Server`].
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
        let error = match self.ready()?.exchange(args) {
            Err(error) if !error.is_harmless() => error,
            result => return result,
        };
        let was_closed = matches!(error, Error::Closed | Error::Io(_) | Error::ChannelClosed { .. });
        let did_not_run = error.did_not_run();
        let error = self.lose(error)?;
        if did_not_run {
            return self.ready()?.exchange(args);
        }
        if only_reads(args) {
            // After a time that is over the server is not asked a second time.
            return if was_closed { self.ready()?.exchange(args) } else { Err(error) };
        }
        Err(Error::OutcomeUnknown(Arc::new(error)))
    }

    /// The next push; none when the time is over. After a loss it goes on with the restored subscriptions.
    pub fn receive_push(&mut self, limit: Option<Duration>) -> Result<Option<Reply>> {
        match self.ready()?.receive_push(limit) {
            Err(error) if !error.is_harmless() => {
                self.lose(error)?;
                self.ready()?.receive_push(limit)
            }
            result => result,
        }
    }

    /// The connection, made again if it was lost: for what this type does not do itself.
    pub fn ready(&mut self) -> Result<&mut Connection> {
        if self.connection.as_mut().is_some_and(|connection| !connection.is_open()) {
            self.lose(Error::Closed)?;
        }
        if self.connection.is_none() {
            self.connection = Some(self.restore()?);
        }
        self.connection.as_mut().ok_or(Error::Closed)
    }

    /// The connection as it is, neither looked at nor made again: for who has to hear of its end.
    pub fn current(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// Connections that were lost so far.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// The session that there is, or that is to be restored.
    pub fn session(&self) -> &Session {
        self.connection.as_ref().map_or(&self.session, Connection::session)
    }

    /// Keeps what can be restored. An error if something cannot: the transaction.
    fn lose(&mut self, error: Error) -> Result<Error> {
        self.losses += 1;
        if let Some(connection) = self.connection.take() {
            self.session = connection.session().clone();
        }
        if self.session.in_transaction() || self.session.is_watching() {
            self.session.forget_transaction();
            return Err(Error::TransactionLost(Arc::new(error)));
        }
        Ok(error)
    }

    fn restore(&self) -> Result<Connection> {
        let config = self.session.restored(&self.config);
        let mut attempt = 0;
        loop {
            match self.restore_once(&config) {
                Err(Error::Connect { .. } | Error::Timeout(..) | Error::Closed | Error::Io(_))
                    if attempt + 1 < self.config.reconnect.attempts_max =>
                {
                    std::thread::sleep(pause(&self.config.reconnect, attempt));
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn restore_once(&self, config: &Config) -> Result<Connection> {
        let mut connection = Connection::connect(config)?;
        for command in self.session.subscribe_commands() {
            connection.command(&command)?;
        }
        Ok(connection)
    }
}

/// The pause after an attempt, counted from 0.
fn pause(policy: &ReconnectPolicy, attempt: u32) -> Duration {
    let doubled = policy.pause_first.saturating_mul(1u32.checked_shl(attempt).unwrap_or(u32::MAX));
    let whole = doubled.min(policy.pause_max);
    // A random number without a generator: every `RandomState` has a seed of its own.
    let random = RandomState::new().build_hasher().finish() % 1000;
    whole / 2 + (whole / 2).mul_f64(random as f64 / 1000.0)
}

/// Whether a command does nothing but read, so that it can be sent again when its reply was lost. A command that the
/// table does not have is taken to write.
pub fn only_reads<T: AsRef<[u8]>>(args: &[T]) -> bool {
    let Some(id) = args.first().and_then(|name| table::by_name(name.as_ref())) else { return false };
    let sub = args.get(1).and_then(|name| table::subcommand(id, name.as_ref()));
    let spec = sub.unwrap_or(id).spec();
    spec.flags & flag::READONLY != 0 || matches!(spec.name, "PING" | "ECHO" | "TIME" | "DBSIZE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reads_is_sent_again() {
        let reads = |line: &str| only_reads(&line.split(' ').collect::<Vec<_>>());
        for line in ["get k", "MGET a b", "PING", "OBJECT ENCODING k", "XRANGE s - +", "SCAN 0"] {
            assert!(reads(line), "{line}");
        }
        for line in
            ["SET k v", "INCR k", "BLPOP k 0", "EVAL x 0", "FLUSHALL", "NOSUCH", "XREADGROUP", "LPOP k"]
        {
            assert!(!reads(line), "{line}");
        }
    }

    #[test]
    fn pauses_double_up_to_their_bound() {
        let policy = ReconnectPolicy {
            attempts_max: 9,
            pause_first: Duration::from_millis(100),
            pause_max: Duration::from_millis(350),
        };
        for (attempt, ms) in [(0, 100), (1, 200), (2, 350), (40, 350)] {
            let pause = pause(&policy, attempt).as_millis();
            assert!((ms / 2..=ms).contains(&pause), "{attempt}: {pause}");
        }
    }
}
