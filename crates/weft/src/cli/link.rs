//! Owns the connection of a prompt or a command: made again when it is lost, given up on Ctrl-C, redirected in a
//! cluster, over RESP2 until somebody has logged in. Does not own what replies look like.

use std::io::{PipeReader, Read as _, pipe};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use crate::endpoint::LOGIN_HINT;
use anyhow::Result;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::SIGINT;
use weft_client::{
    Address, Config, Connection, Error, Event, Protocol, Reconnecting, Reply, Session, only_reads,
};

/// Redirections of one command that are followed.
const REDIRECTIONS_MAX: usize = 16;

/// Ctrl-C as something to wait for. While this exists it does not end the process.
#[derive(Debug)]
pub(super) struct Interrupts {
    reader: PipeReader,
}

impl Interrupts {
    pub(super) fn new() -> Result<Interrupts> {
        let (reader, writer) = pipe()?;
        signal_hook::low_level::pipe::register(SIGINT, writer)?;
        Ok(Interrupts { reader })
    }

    /// Whether Ctrl-C came since it was last asked.
    pub(super) fn take(&mut self) -> bool {
        let mut any = false;
        let mut bytes = [0; 64];
        loop {
            let mut fds = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::ZERO) != Ok(1) {
                return any;
            }
            any |= self.reader.read(&mut bytes).is_ok_and(|len| len > 0);
        }
    }
}

/// What came of a command.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Its reply.
    Reply(Reply),
    /// Ctrl-C; the connection was given up where the request could not be cancelled.
    Interrupted,
    /// The server ended, as SHUTDOWN asked it to.
    Ended,
}

/// Whether the end of the connection is what a command asks for.
fn ends_the_server(args: &[impl AsRef<[u8]>]) -> bool {
    args.first().is_some_and(|name| name.as_ref().eq_ignore_ascii_case(b"SHUTDOWN"))
}

/// Whether a password was refused by a server that wants none: it is said, and the connection made without it, as
/// redis-cli does, whose users have REDISCLI_AUTH set for all their servers.
pub(super) fn wants_no_password(error: &Error) -> bool {
    matches!(error, Error::Handshake { error, .. } if error.text().contains("without any password configured"))
}

/// The same server without a user and a password.
pub(super) fn without_login(config: &Config) -> Config {
    Config { username: None, password: None, ..config.clone() }
}

/// A connection with what belongs to it.
#[derive(Debug)]
pub(super) struct Link {
    config: Config,
    connection: Reconnecting,
    interrupts: Option<Interrupts>,
    follow: bool,
    /// What was asked for, while the server wants a login before it.
    after_login: Option<Box<Config>>,
}

impl Link {
    /// A link that connects when it is first used. With `interrupts` Ctrl-C ends a command; with `follow` redirections
    /// of a cluster are followed.
    pub(super) fn new(config: Config, interrupts: Option<Interrupts>, follow: bool) -> Link {
        Link { connection: Reconnecting::new(&config), config, interrupts, follow, after_login: None }
    }

    /// The configuration as it was given, or redirected to.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The session that there is, or that is to be restored.
    pub(super) fn session(&self) -> &Session {
        self.connection.session()
    }

    /// Connects if there is no connection. A server that wants a login first is spoken to over RESP2, where AUTH can be
    /// sent as a command; redis-cli does the same.
    pub(super) fn ready(&mut self) -> Result<&mut Connection, Error> {
        if let Err(error) = self.connection.ready() {
            if wants_no_password(&error) {
                eprintln!("{error}");
                self.config = without_login(&self.config);
                self.connection = Reconnecting::new(&self.config);
                return self.connection.ready();
            }
            if !self.can_log_in_later(&error) {
                return Err(error);
            }
            let asked = self.config.clone();
            eprintln!("{error}\nUntil AUTH has succeeded, RESP2 is spoken. {LOGIN_HINT}");
            let protocol = Protocol::Resp2;
            self.config = Config { protocol, channel: 0, db: 0, name: None, ..without_login(&asked) };
            self.after_login = Some(Box::new(asked));
            self.connection = Reconnecting::new(&self.config);
        }
        self.connection.ready()
    }

    /// Whether the handshake failed for want of a login, or, where somebody can be asked for another, for a wrong one.
    fn can_log_in_later(&self, error: &Error) -> bool {
        let Error::Handshake { error, .. } = error else { return false };
        let wants_one = self.config.password.is_none() && error.code() == "NOAUTH";
        wants_one || (self.interrupts.is_some() && error.code() == "WRONGPASS")
    }

    /// Once somebody has logged in: the connection that was asked for.
    fn connect_as_asked(&mut self) {
        let Some(asked) = &self.after_login else { return };
        let login = self.session().restored(&self.config);
        if login.password.is_none() {
            return;
        }
        let config = Config { username: login.username, password: login.password, ..(**asked).clone() };
        let mut connection = Reconnecting::new(&config);
        match connection.ready() {
            Ok(_) => (self.config, self.connection) = (config, connection),
            Err(error) => eprintln!("RESP2 is spoken on: {error}"),
        }
        self.after_login = None;
    }

    /// Another server, with the session of this one as far as its configuration says.
    pub(super) fn connect(&mut self, address: Address) {
        self.config.address = address;
        self.connection = Reconnecting::new(&self.config);
    }

    /// Runs a command; pushes that come meanwhile are handed to `on_push`.
    pub(super) fn run(
        &mut self,
        args: &[impl AsRef<[u8]>],
        on_push: &mut dyn FnMut(&Reply),
    ) -> Result<Outcome, Error> {
        let mut asking = false;
        for _ in 0..REDIRECTIONS_MAX {
            if std::mem::take(&mut asking) {
                self.run_once(&["ASKING"], on_push)?;
            }
            let outcome = self.run_once(args, on_push)?;
            let Some(redirection) = self.redirection(&outcome) else { return Ok(outcome) };
            on_push(&Reply::Simple(
                format!("-> Redirected to slot [{}] located at {}", redirection.slot, redirection.address)
                    .into_bytes(),
            ));
            asking = redirection.ask;
            self.connect(redirection.address);
        }
        Err(Error::Unexpected("redirected too often"))
    }

    fn run_once(
        &mut self,
        args: &[impl AsRef<[u8]>],
        on_push: &mut dyn FnMut(&Reply),
    ) -> Result<Outcome, Error> {
        let error = match self.attempt(args, on_push) {
            Err(
                error @ (Error::Closed | Error::Io(_) | Error::ChannelClosed { .. } | Error::GoAway { .. }),
            ) => error,
            result => {
                self.connect_as_asked();
                return result;
            }
        };
        if ends_the_server(args) {
            self.connection.renew();
            return Ok(Outcome::Ended);
        }
        if self.session().in_transaction() || self.session().is_watching() {
            self.connection.renew();
            return Err(Error::TransactionLost(Arc::new(error)));
        }
        if only_reads(args) {
            return self.attempt(args, on_push);
        }
        Err(Error::OutcomeUnknown(Arc::new(error)))
    }

    fn attempt(
        &mut self,
        args: &[impl AsRef<[u8]>],
        on_push: &mut dyn FnMut(&Reply),
    ) -> Result<Outcome, Error> {
        self.ready()?;
        let connection = self.connection.ready()?;
        let sequence = connection.send(args)?;
        connection.flush()?;
        let mut cancelled = false;
        loop {
            match connection.next_event(Some(Duration::ZERO))? {
                Some(Event::Push(push)) => on_push(&push),
                Some(Event::Reply(reply)) => return Ok(Outcome::Reply(reply)),
                None => {
                    if !wait(connection, self.interrupts.as_mut())? {
                        continue;
                    }
                    // A second Ctrl-C does not wait for the server's answer to the first.
                    if connection.session().protocol() != Protocol::Respb || cancelled {
                        self.connection.renew();
                        return Ok(Outcome::Interrupted);
                    }
                    connection.cancel(sequence)?;
                    cancelled = true;
                }
            }
        }
    }

    /// Hands out pushes until Ctrl-C, or until the connection is lost.
    pub(super) fn listen(&mut self, on_push: &mut dyn FnMut(&Reply)) -> Result<(), Error> {
        loop {
            // Not made again: what was said meanwhile is lost, and MONITOR with it.
            let connection = self.connection.current().ok_or(Error::Closed)?;
            match connection.next_event(Some(Duration::ZERO))? {
                Some(Event::Push(push) | Event::Reply(push)) => on_push(&push),
                None => {
                    if wait(connection, self.interrupts.as_mut())? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Pushes that have come since the last command.
    pub(super) fn pushes(&mut self, on_push: &mut dyn FnMut(&Reply)) {
        let Ok(connection) = self.connection.ready() else { return };
        while let Ok(Some(Event::Push(push) | Event::Reply(push))) =
            connection.next_event(Some(Duration::ZERO))
        {
            on_push(&push);
        }
    }

    /// Ends subscriptions, or MONITOR, which has no end but that of the connection.
    pub(super) fn stop_listening(&mut self) -> Result<(), Error> {
        if self.session().is_monitoring() {
            self.connection.renew();
            return Ok(());
        }
        for command in ["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"] {
            if self.session().subscriptions() == 0 {
                break;
            }
            self.run(&[command], &mut |_| {})?;
        }
        Ok(())
    }

    /// Forgets Ctrl-C that came while something else had the terminal.
    pub(super) fn forget_interrupts(&mut self) {
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.take();
        }
    }

    fn redirection(&self, outcome: &Outcome) -> Option<Redirection> {
        let Outcome::Reply(Reply::Error(text)) = outcome else { return None };
        if !self.follow {
            return None;
        }
        Redirection::parse(std::str::from_utf8(text).ok()?, &self.config.address)
    }
}

/// Waits until something arrives; true for Ctrl-C.
fn wait(connection: &Connection, interrupts: Option<&mut Interrupts>) -> Result<bool, Error> {
    let flags = PollFlags::POLLIN;
    let mut fds = vec![PollFd::new(connection.as_fd(), flags)];
    if let Some(interrupts) = &interrupts {
        fds.push(PollFd::new(interrupts.reader.as_fd(), flags));
    }
    match poll(&mut fds, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(Error::Config(format!("cannot wait for the socket: {error}"))),
    }
    let interrupted = fds.get(1).and_then(PollFd::any).unwrap_or(false);
    Ok(interrupted && interrupts.is_some_and(Interrupts::take))
}

/// `MOVED 3999 127.0.0.1:6381`, `ASK 3999 :6381`
struct Redirection {
    ask: bool,
    slot: u16,
    address: Address,
}

impl Redirection {
    fn parse(text: &str, from: &Address) -> Option<Redirection> {
        let mut words = text.split(' ');
        let ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = words.next()?.parse().ok()?;
        let (host, port) = words.next()?.rsplit_once(':')?;
        // An empty host is that of the node that answered.
        let host = match (host, from) {
            ("", Address::Tcp(host, _)) => host.clone(),
            (host, _) => host.trim_matches(['[', ']']).to_string(),
        };
        Some(Redirection { ask, slot, address: Address::Tcp(host, port.parse().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_read() {
        let from = Address::Tcp("here".into(), 1);
        let parse = |text| Redirection::parse(text, &from).map(|r| (r.ask, r.slot, r.address.to_string()));
        assert_eq!(parse("MOVED 3999 10.0.0.1:6381"), Some((false, 3999, "10.0.0.1:6381".into())));
        assert_eq!(parse("ASK 1 :7000"), Some((true, 1, "here:7000".into())));
        assert_eq!(parse("MOVED 1 ::1:7000"), Some((false, 1, "[::1]:7000".into())));
        assert_eq!(parse("ERR MOVED 1 a:1"), None);
        assert_eq!(parse("MOVED x a:1"), None);
    }
}
