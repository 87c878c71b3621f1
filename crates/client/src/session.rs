//! Owns what a connection's commands have done to its session, as far as it is to be known here: to read the wire of
//! subscribers and monitors, and to make the session again on another connection. Does not own the making.

use std::collections::BTreeSet;

use weft_protocol::Reply;

use crate::config::{Config, Protocol};

/// A logical client as its server sees it. What fails leaves it as it is.
#[derive(Clone, Debug)]
pub struct Session {
    protocol: Protocol,
    db: u32,
    login: Option<Login>,
    name: Option<String>,
    in_transaction: bool,
    watching: bool,
    monitoring: bool,
    subscribed: [BTreeSet<Vec<u8>>; 3],
    /// Commands queued in the transaction, and what those among them do that count here.
    queued: usize,
    queued_changes: Vec<(usize, Change)>,
}

/// User, none for the default one, and password, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login(Option<String>, String);

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({:?}, …)", self.0)
    }
}

/// What a name of a subscription means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];

    fn subscribe_command(self) -> &'static str {
        match self {
            Kind::Channel => "SUBSCRIBE",
            Kind::Pattern => "PSUBSCRIBE",
            Kind::Shard => "SSUBSCRIBE",
        }
    }
}

/// What a command does to its session when it succeeds.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Select(u32),
    Login(Login),
    Hello {
        protocol: Option<Protocol>,
        login: Option<Login>,
        name: Option<String>,
    },
    Name(String),
    Multi,
    Exec,
    Discard,
    Watch,
    Unwatch,
    Reset,
    Monitor,
    /// `names` is 0 for all there are.
    Subscriptions {
        kind: Kind,
        add: bool,
        names: usize,
    },
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Change {
    /// What a command changes, if it changes anything.
    pub(crate) fn of<T: AsRef<[u8]>>(args: &[T]) -> Option<Change> {
        let arg = |index: usize| args.get(index).map(AsRef::as_ref);
        let name = arg(0)?;
        // The longest name below; most commands that are no concern of ours end here or at the match.
        let mut upper = [0; 12];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let subscriptions =
            |kind, add| Some(Change::Subscriptions { kind, add, names: args.len().saturating_sub(1) });
        match &*upper {
            b"SELECT" => Some(Change::Select(std::str::from_utf8(arg(1)?).ok()?.parse().ok()?)),
            b"AUTH" => match (arg(1)?, arg(2)) {
                (password, None) => Some(Change::Login(Login(None, text(password)))),
                (user, Some(password)) => Some(Change::Login(Login(Some(text(user)), text(password)))),
            },
            b"HELLO" => Some(hello(args)),
            b"CLIENT" if arg(1)?.eq_ignore_ascii_case(b"SETNAME") => Some(Change::Name(text(arg(2)?))),
            b"MULTI" => Some(Change::Multi),
            b"EXEC" => Some(Change::Exec),
            b"DISCARD" => Some(Change::Discard),
            b"WATCH" => Some(Change::Watch),
            b"UNWATCH" => Some(Change::Unwatch),
            b"RESET" => Some(Change::Reset),
            b"MONITOR" => Some(Change::Monitor),
            b"SUBSCRIBE" if args.len() > 1 => subscriptions(Kind::Channel, true),
            b"PSUBSCRIBE" if args.len() > 1 => subscriptions(Kind::Pattern, true),
            b"SSUBSCRIBE" if args.len() > 1 => subscriptions(Kind::Shard, true),
            b"UNSUBSCRIBE" => subscriptions(Kind::Channel, false),
            b"PUNSUBSCRIBE" => subscriptions(Kind::Pattern, false),
            b"SUNSUBSCRIBE" => subscriptions(Kind::Shard, false),
            _ => None,
        }
    }
}

fn hello<T: AsRef<[u8]>>(args: &[T]) -> Change {
    let arg = |index: usize| args.get(index).map(AsRef::as_ref);
    let protocol = match arg(1) {
        Some(b"2") => Some(Protocol::Resp2),
        Some(b"3") => Some(Protocol::Resp3),
        _ => None,
    };
    let (mut login, mut name, mut at) = (None, None, 2);
    while let Some(option) = arg(at) {
        if option.eq_ignore_ascii_case(b"AUTH") {
            login =
                arg(at + 1).zip(arg(at + 2)).map(|(user, password)| Login(Some(text(user)), text(password)));
            at += 3;
        } else {
            if option.eq_ignore_ascii_case(b"SETNAME") {
                name = arg(at + 1).map(text);
            }
            at += 2;
        }
    }
    Change::Hello { protocol, login, name }
}

impl Session {
    /// The session after the handshake.
    pub(crate) fn new(config: &Config) -> Self {
        Session {
            protocol: config.protocol,
            db: config.db,
            login: config.password.clone().map(|password| Login(config.username.clone(), password)),
            name: config.name.clone(),
            in_transaction: false,
            watching: false,
            monitoring: false,
            subscribed: Default::default(),
            queued: 0,
            queued_changes: Vec::new(),
        }
    }

    /// The protocol that is spoken.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The database that is selected.
    pub fn db(&self) -> u32 {
        self.db
    }

    /// The user that logged in by name.
    pub fn username(&self) -> Option<&str> {
        self.login.as_ref().and_then(|Login(user, _)| user.as_deref())
    }

    /// The name that CLIENT LIST shows.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Between MULTI and its end.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Whether keys are watched.
    pub fn is_watching(&self) -> bool {
        self.watching
    }

    /// Whether MONITOR is on.
    pub fn is_monitoring(&self) -> bool {
        self.monitoring
    }

    /// Subscriptions of all three kinds.
    pub fn subscriptions(&self) -> usize {
        self.subscribed.iter().map(BTreeSet::len).sum()
    }

    pub(crate) fn subscriptions_of(&self, kind: Kind) -> usize {
        self.subscribed[kind as usize].len()
    }

    /// Whether another user of the connection would find it as it was made.
    pub(crate) fn is_fresh(&self, config: &Config) -> bool {
        let new = Session::new(config);
        self.protocol == new.protocol
            && self.db == new.db
            && self.login == new.login
            && self.name == new.name
            && !(self.in_transaction || self.watching || self.monitoring)
            && self.subscriptions() == 0
    }

    pub(crate) fn forget_transaction(&mut self) {
        (self.in_transaction, self.watching) = (false, false);
        self.queued_changes.clear();
    }

    pub(crate) fn forget_all_but_identity(&mut self) {
        self.forget_transaction();
        self.monitoring = false;
        self.subscribed = Default::default();
    }

    /// A configuration whose handshake makes this session again, as far as a handshake does.
    pub fn restored(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.protocol = self.protocol;
        config.db = self.db;
        config.name = self.name.clone();
        (config.username, config.password) = match self.login.clone() {
            Some(Login(user, password)) => (user, Some(password)),
            None => (None, None),
        };
        config
    }

    /// The commands that make the subscriptions again.
    pub(crate) fn subscribe_commands(&self) -> Vec<Vec<Vec<u8>>> {
        let kinds = Kind::ALL.into_iter().filter(|&kind| self.subscriptions_of(kind) > 0);
        kinds
            .map(|kind| {
                let mut command = vec![kind.subscribe_command().as_bytes().to_vec()];
                command.extend(self.subscribed[kind as usize].iter().cloned());
                command
            })
            .collect()
    }

    /// Takes in the reply to a command.
    pub(crate) fn apply(&mut self, change: Option<&Change>, reply: &Reply) {
        if self.in_transaction && matches!(reply, Reply::Simple(text) if text == b"QUEUED") {
            if let Some(change) = change {
                self.queued_changes.push((self.queued, change.clone()));
            }
            self.queued += 1;
            return;
        }
        let Some(change) = change else { return };
        match change {
            // Also an EXEC that fails ends the transaction; one without MULTI changes nothing.
            Change::Exec => self.end_transaction(reply),
            _ if matches!(reply, Reply::Error(_)) => {}
            Change::Multi => (self.in_transaction, self.queued) = (true, 0),
            Change::Discard => self.end_transaction(&Reply::Null),
            Change::Watch => self.watching = true,
            Change::Unwatch => self.watching = false,
            Change::Select(db) => self.db = *db,
            Change::Login(login) => self.login = Some(login.clone()),
            Change::Name(name) => self.name = Some(name.clone()).filter(|name| !name.is_empty()),
            Change::Monitor => self.monitoring = true,
            Change::Hello { protocol, login, name } => {
                if let (Some(protocol), true) = (protocol, self.protocol != Protocol::Respb) {
                    self.protocol = *protocol;
                }
                self.login = login.clone().or(self.login.take());
                self.name = name.clone().or(self.name.take());
            }
            Change::Reset => self.reset(),
            Change::Subscriptions { .. } => {
                if let Reply::Array(confirmations) = reply {
                    confirmations.iter().for_each(|one| self.confirm(one));
                }
            }
        }
    }

    fn end_transaction(&mut self, reply: &Reply) {
        (self.in_transaction, self.watching) = (false, false);
        let changes = std::mem::take(&mut self.queued_changes);
        if let Reply::Array(replies) = reply {
            for (index, change) in changes {
                if let Some(reply) = replies.get(index) {
                    self.apply(Some(&change), reply);
                }
            }
        }
    }

    fn reset(&mut self) {
        let protocol = if self.protocol == Protocol::Respb { Protocol::Respb } else { Protocol::Resp2 };
        *self = Session { protocol, ..Session::new(&Config { db: 0, ..Config::default() }) };
    }

    /// Takes in the confirmation of one subscription, or of the end of one, of which the server can also tell unasked.
    pub(crate) fn confirm(&mut self, confirmation: &Reply) {
        let (Reply::Array(parts) | Reply::Push(parts)) = confirmation else { return };
        let [Reply::Bulk(word), Reply::Bulk(name), ..] = &parts[..] else { return };
        let Some((kind, add)) = confirmation_kind(word) else { return };
        let set = &mut self.subscribed[kind as usize];
        if add {
            set.insert(name.clone());
        } else {
            set.remove(name);
        }
    }
}

/// What a confirmation's first word says: of which kind, and whether a subscription begins.
pub(crate) fn confirmation_kind(word: &[u8]) -> Option<(Kind, bool)> {
    Some(match word {
        b"subscribe" => (Kind::Channel, true),
        b"psubscribe" => (Kind::Pattern, true),
        b"ssubscribe" => (Kind::Shard, true),
        b"unsubscribe" => (Kind::Channel, false),
        b"punsubscribe" => (Kind::Pattern, false),
        b"sunsubscribe" => (Kind::Shard, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok() -> Reply {
        Reply::Simple(b"OK".to_vec())
    }

    fn run(session: &mut Session, line: &str, reply: Reply) {
        let args: Vec<&str> = line.split(' ').collect();
        session.apply(Change::of(&args).as_ref(), &reply);
    }

    fn confirmed(word: &str, name: &str) -> Reply {
        let parts = vec![Reply::Bulk(word.into()), Reply::Bulk(name.into()), Reply::Int(1)];
        Reply::Array(vec![Reply::Array(parts)])
    }

    #[test]
    fn what_succeeds_counts_and_what_fails_does_not() {
        let config = Config::default();
        let mut session = Session::new(&config);
        run(&mut session, "select 3", ok());
        run(&mut session, "SELECT 99", Reply::Error(b"ERR DB index is out of range".to_vec()));
        run(&mut session, "client setname me", ok());
        run(&mut session, "AUTH alice secret", ok());
        assert_eq!((session.db(), session.name(), session.username()), (3, Some("me"), Some("alice")));
        assert!(!session.is_fresh(&config));
        let restored = session.restored(&config);
        assert_eq!((restored.db, restored.password.as_deref()), (3, Some("secret")));
        run(&mut session, "HELLO 2 AUTH bob x SETNAME b", Reply::Array(Vec::new()));
        assert_eq!((session.username(), session.name()), (Some("bob"), Some("b")));
        assert_eq!(session.protocol(), Protocol::Resp2);
        run(&mut session, "RESET", Reply::Simple(b"RESET".to_vec()));
        assert_eq!((session.db(), session.name(), session.username()), (0, None, None));
    }

    #[test]
    fn passwords_are_not_shown() {
        let config = Config::default().with_auth(Some("alice"), "secret");
        let mut session = Session::new(&config);
        run(&mut session, "AUTH bob secret", ok());
        let shown = format!("{config:?} {session:?} {:?}", Change::of(&["AUTH", "bob", "secret"]));
        assert!(shown.contains("bob") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_transaction_counts_when_it_is_executed() {
        let queued = || Reply::Simple(b"QUEUED".to_vec());
        let mut session = Session::new(&Config::default());
        run(&mut session, "WATCH k", ok());
        run(&mut session, "MULTI", ok());
        run(&mut session, "SET k v", queued());
        run(&mut session, "SELECT 5", queued());
        assert!(session.in_transaction() && session.is_watching());
        assert_eq!(session.db(), 0);
        run(&mut session, "EXEC", Reply::Array(vec![ok(), ok()]));
        assert_eq!((session.db(), session.in_transaction(), session.is_watching()), (5, false, false));
        run(&mut session, "MULTI", ok());
        run(&mut session, "SELECT 6", queued());
        run(&mut session, "EXEC", Reply::Null);
        assert_eq!(session.db(), 5);
        run(&mut session, "MULTI", ok());
        run(&mut session, "SELECT 7", queued());
        run(&mut session, "DISCARD", ok());
        assert_eq!((session.db(), session.in_transaction()), (5, false));
    }

    #[test]
    fn subscriptions_are_kept_and_made_again() {
        let mut session = Session::new(&Config::default());
        run(&mut session, "SUBSCRIBE a", confirmed("subscribe", "a"));
        run(&mut session, "PSUBSCRIBE p*", confirmed("psubscribe", "p*"));
        assert_eq!(session.subscriptions(), 2);
        let commands: Vec<String> = session
            .subscribe_commands()
            .into_iter()
            .map(|command| String::from_utf8(command.join(&b' ')).unwrap())
            .collect();
        assert_eq!(commands, ["SUBSCRIBE a", "PSUBSCRIBE p*"]);
        run(&mut session, "UNSUBSCRIBE", confirmed("unsubscribe", "a"));
        assert_eq!(session.subscriptions(), 1);
    }
}
