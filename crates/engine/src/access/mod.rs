//! Owns: who a client is, and whether its user may do what it asks for; what was denied is noted. Does not own: users
//! and their rules (`crate::acl`), when rights are asked for (the dispatcher does, when a command is queued and when it
//! runs), the ACL commands.
//!
//! | file | owns |
//! |---|---|
//! | here | signing in, checking, noting what was denied |
//! | `users` | changing users, and closing clients that may not stay |
//! | `file` | users in the ACL file and in the catalogue |

pub(crate) mod file;
mod users;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weft_protocol::table::CommandSpec;

use crate::acl::{DEFAULT_USER, Denied, LogEntry, LogPlace, Reason, User};
use crate::args::{Args, Composed, Texts, command_id};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::excerpt::cut;
use crate::session::Session;

/// Bytes of an object, or of the name of a user that there is not, which an entry keeps: whoever may do nothing chooses
/// them.
const TEXT_BYTES_MAX: usize = 1024;

impl Engine {
    /// Who has this name and password; otherwise an entry in ACL LOG.
    pub(crate) fn authenticate(
        &self,
        session: &mut Session,
        name: &[u8],
        password: &[u8],
        (args, now_ms): (&Args<'_>, u64),
    ) -> Result {
        let user = self.acl.user(name);
        // Who has no such user takes as long to say so as who has: one is asked all the same, who accepts nothing.
        let accepts = user.as_deref().unwrap_or(&self.acl.nobody).accepts(password);
        if let Some(user) = user.filter(|_| accepts) {
            session.set_user(user);
            return Ok(());
        }
        let denied = Denied { reason: Reason::Auth, index: 0 };
        self.log_denied(session, args, denied, session.log_place(), (now_ms, Some(name)));
        Err(ErrorCode::WrongPass.into())
    }

    /// Who shows name and password with every request, as over HTTP: the session's user from now on. Without them it is
    /// the default user, as at first.
    pub fn sign_in(&self, session: &mut Session, who: Option<(&[u8], &[u8])>) -> Result {
        session.acl_epoch = self.acl.epoch();
        session.set_user(self.acl.default_user());
        session.authenticated = !self.settings.auth_required.load(Relaxed);
        let result = who.map_or(Ok(()), |(name, password)| {
            let texts = Texts::default();
            let args = Args::new(Self::sign_in_spec(), (&[], false, 0), (&[], &[], &texts));
            self.authenticate(session, name, password, (&args, self.clock.now_ms()))
        });
        session.look();
        result
    }
    /// Whether these would be taken now, as [`sign_in`](Self::sign_in) takes them. Nothing is noted in ACL LOG.
    pub fn would_sign_in(&self, who: Option<(&[u8], &[u8])>) -> bool {
        match who {
            Some((name, password)) => self.acl.user(name).is_some_and(|user| user.accepts(password)),
            None => !self.settings.auth_required.load(Relaxed),
        }
    }
    /// The command that it stands for, in ACL LOG.
    fn sign_in_spec() -> &'static CommandSpec {
        weft_protocol::table::by_name(b"AUTH").expect("the table has it").spec()
    }

    /// The user that a client's certificate names: the session's from now on, if there is one that is switched on.
    pub fn authenticate_by_certificate(&self, session: &mut Session, name: &[u8]) -> bool {
        let user = self.acl.user(name).filter(|user| user.enabled);
        let is_there = user.is_some();
        if let Some(user) = user {
            session.set_user(user);
        }
        is_there
    }

    /// The same, if users have changed since.
    pub fn keep_user(&self, session: &mut Session) {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
    }

    /// Whether the session's user, as it is by now, may run a command that has no keys. Nothing is noted in ACL LOG.
    pub fn still_may(&self, session: &mut Session, name: &[u8]) -> bool {
        self.keep_user(session);
        let Some(id) = weft_protocol::table::by_name(name) else { return false };
        let mut composed = Composed::default();
        composed.push(name);
        let args = composed.args(id.spec());
        session.user.check(&args, session.db, self.keyspace.database_count()).is_ok()
    }

    /// Gives a session the user that its user's name stands for by now.
    #[cold]
    pub(crate) fn refresh_user(&self, session: &mut Session) {
        session.acl_epoch = self.acl.epoch();
        match self.acl.user(session.user.name.as_bytes()) {
            Some(user) if user.serial == session.user.serial => {
                let authenticated = session.authenticated;
                session.set_user(user);
                session.authenticated = authenticated;
            }
            // Deleted: the message that closes the client is on its way.
            _ => {
                let nobody = User::new(&session.user.name, false).with_serial(session.user.serial);
                session.set_user(Arc::new(nobody));
                session.authenticated = false;
            }
        }
    }

    /// Whether the session's user may run a command now; what is denied is noted in ACL LOG.
    pub(crate) fn check_acl(
        &self,
        session: &Session,
        args: &Args<'_>,
        place: LogPlace,
        now_ms: u64,
    ) -> Result {
        if session.user.all {
            return Ok(());
        }
        let count = self.keyspace.database_count();
        let Err(denied) = session.user.check(args, session.next_db(), count) else { return Ok(()) };
        self.log_denied(session, args, denied, place, (now_ms, None));
        Err(Error::new(ErrorCode::NoPerm, denied.text(&session.user, args, false)))
    }

    /// The same when EXEC runs what was queued: rights may have changed since.
    #[inline]
    pub(crate) fn check_acl_again(&self, session: &mut Session, args: &Args<'_>, now_ms: u64) -> Result {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
        if session.user.all {
            return Ok(());
        }
        let Err(denied) = session.user.check(args, session.db, self.keyspace.database_count()) else {
            return Ok(());
        };
        self.log_denied(session, args, denied, LogPlace::Multi, (now_ms, None));
        let reason = match denied.reason {
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => "no permission to access one of the channels used as arguments",
            Reason::Database | Reason::Auth => "no permission",
        };
        Err(Error::new(
            ErrorCode::NoPerm,
            format!(
                "ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {reason}"
            ),
        ))
    }

    /// The same for a request that has waited, before it is run again.
    pub(crate) fn check_acl_of_blocked(&self, session: &mut Session, args: &Args<'_>, now_ms: u64) -> Result {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
        self.check_acl(session, args, LogPlace::TopLevel, now_ms)
    }

    /// Whether a session that has not authenticated must: not when the default user is open by now.
    #[cold]
    pub(crate) fn needs_auth(&self, session: &Session) -> bool {
        self.settings.auth_required.load(Relaxed) || *session.user.name != *DEFAULT_USER
    }

    /// Notes a denial. `user`: whom AUTH named, where it is not the session's.
    #[cold]
    pub(crate) fn log_denied(
        &self,
        session: &Session,
        args: &Args<'_>,
        denied: Denied,
        place: LogPlace,
        (now_ms, user): (u64, Option<&[u8]>),
    ) {
        self.acl.denials[denied.reason as usize].fetch_add(1, Relaxed);
        let max = self.acl.log_len_max.load(Relaxed);
        let object = match (denied.reason, denied.index) {
            (Reason::Auth, _) => args.bytes(0).into(),
            (_, 0) => full_name(args.spec).into_bytes().into(),
            (_, index) => cut(args.bytes(index), TEXT_BYTES_MAX),
        };
        // The line of the client names this command; that of one whose transaction runs names EXEC.
        let is_queued = place == LogPlace::Multi && !session.in_multi();
        let named = if is_queued { weft_protocol::table::by_name(b"EXEC") } else { Some(command_id(args)) };
        if let Some(id) = named {
            session.info.last_command.store(id.0, Relaxed);
        }
        let entry = LogEntry {
            count: 1,
            reason: denied.reason,
            place,
            object,
            user: match user {
                Some(name) => String::from_utf8_lossy(&cut(name, TEXT_BYTES_MAX)).into(),
                None => session.user.name.clone(),
            },
            client: session.info.line(now_ms),
            id: 0,
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        self.acl.log.lock().add(entry, max);
    }
}
