//! Owns: who asks, and from where: credentials, and the rules that keep pages of other origins, and names that somebody
//! else has pointed here, from using a browser's way to this server. Does not own: users and their rights
//! (`weft_engine::acl`).

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::Engine;
use weft_engine::acl::DEFAULT_USER;
use weft_engine::base64;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::reply::Protocol;
use weft_engine::session::Session;
use weft_protocol::table::{CommandSpec, acl, flag, policy};

use super::answer::Answer;
use super::head::{Head, Method};
use super::target;

pub(crate) const CHALLENGE: &str = "WWW-Authenticate: Bearer, Basic realm=\"weft\", charset=\"UTF-8\"\r\n";

/// Credentials as a request shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown<'r> {
    Nothing,
    /// `Authorization`.
    Header(&'r [u8]),
    /// `_token`.
    Token(&'r [u8]),
}

impl<'r> Shown<'r> {
    pub(crate) fn of(head: &Head, request: &'r [u8]) -> Self {
        match head.authorization {
            Some(header) => Self::Header(header.of(request)),
            None => target::token(request, head.query).map_or(Self::Nothing, Self::Token),
        }
    }
}

/// In which form the replies to a request are, and which database it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Form {
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
}

/// What is kept of credentials, to know them again.
#[derive(Debug, Default)]
enum Remembered {
    #[default]
    Nothing,
    Header(Box<[u8]>),
    Token(Box<[u8]>),
    /// Of those that were refused a mark only: a client that has not authenticated may send many, and long ones.
    Refused(u64),
}

/// Whom a connection's session was made for, so that the next request like it need not ask again.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    shown: Remembered,
    form: Form,
    acl_epoch: u64,
    /// Why the credentials were not taken.
    error: Option<Error>,
    /// A command has run that may have changed the user.
    stale: bool,
    /// Nobody has asked yet.
    made: bool,
}

impl Identity {
    /// Whether it is that of these credentials, and of the form. Takes as long for wrong ones as for right
    /// ones: a connection may be that of a proxy, which many use.
    pub(crate) fn is(&self, shown: Shown<'_>, form: Form, engine: &Engine) -> bool {
        let same = match (shown, &self.shown) {
            (Shown::Nothing, Remembered::Nothing) => true,
            (Shown::Header(bytes), Remembered::Header(before))
            | (Shown::Token(bytes), Remembered::Token(before)) => same(bytes, before),
            (Shown::Header(_) | Shown::Token(_), Remembered::Refused(before)) => {
                mark(shown, engine) == *before
            }
            _ => false,
        };
        same && self.made && !self.stale && self.form == form && self.acl_epoch == engine.acl.epoch()
    }
    /// Makes the session that of these credentials.
    pub(crate) fn of(shown: Shown<'_>, form: Form, session: &mut Session, engine: &Engine) -> Self {
        let acl_epoch = engine.acl.epoch();
        let result = pair(shown, engine).and_then(|pair| {
            let pair = pair.as_ref().map(|(name, password)| (name.as_slice(), password.as_slice()));
            engine.sign_in(session, pair)
        });
        session.set_protocol(form.protocol);
        session.select(form.db);
        session.ask(None);
        let shown = match shown {
            Shown::Nothing => Remembered::Nothing,
            _ if result.is_err() => Remembered::Refused(mark(shown, engine)),
            Shown::Header(bytes) => Remembered::Header(bytes.into()),
            Shown::Token(bytes) => Remembered::Token(bytes.into()),
        };
        Self { shown, form, acl_epoch, error: result.err(), stale: false, made: true }
    }
    /// Whether its credentials would still be taken. It is asked for what goes on without another request.
    pub(crate) fn still_holds(&mut self, engine: &Engine) -> bool {
        let epoch = engine.acl.epoch();
        if std::mem::replace(&mut self.acl_epoch, epoch) == epoch {
            return true;
        }
        let shown = match &self.shown {
            Remembered::Nothing => Shown::Nothing,
            Remembered::Header(bytes) => Shown::Header(bytes),
            Remembered::Token(bytes) => Shown::Token(bytes),
            Remembered::Refused(_) => return false,
        };
        pair(shown, engine).is_ok_and(|pair| {
            engine.would_sign_in(pair.as_ref().map(|(name, password)| (name.as_slice(), password.as_slice())))
        })
    }
    pub(crate) fn forget(&mut self) {
        self.stale = true;
    }
    /// The answer to credentials that are wrong, or missing.
    pub(crate) fn refusal(&self, session: &Session) -> Option<Box<Answer>> {
        let missing = (!session.authenticated).then(|| Error::from(ErrorCode::NoAuth));
        let error = self.error.clone().or(missing)?;
        Some(Answer::error(401, &error.line()).with(CHALLENGE))
    }
}

/// By what credentials are known again that were refused: two that have the same one are refused alike. It is keyed, so
/// that nobody can look for such.
fn mark(shown: Shown<'_>, engine: &Engine) -> u64 {
    match shown {
        Shown::Nothing => 0,
        Shown::Header(bytes) => engine.keyspace.key(bytes).hash(),
        Shown::Token(bytes) => !engine.keyspace.key(bytes).hash(),
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// The name and the password that credentials stand for.
fn pair(shown: Shown<'_>, engine: &Engine) -> Result<Option<Pair>, Error> {
    match shown {
        Shown::Nothing => Ok(None),
        Shown::Header(value) => of_header(value, engine).map(Some),
        Shown::Token(text) => {
            let mut token = Vec::new();
            target::decode(text, true, &mut token).map_err(Error::err)?;
            Ok(Some(of_token(&token, engine)))
        }
    }
}

/// A token is `USER.SECRET`, or a password of the default user.
fn of_token(token: &[u8], engine: &Engine) -> Pair {
    let dot = token.iter().rposition(|&byte| byte == b'.');
    match dot.map(|dot| (&token[..dot], &token[dot + 1..])) {
        Some((name, secret)) if engine.acl.user(name).is_some() => (name.into(), secret.into()),
        _ => (DEFAULT_USER.into(), token.into()),
    }
}

fn of_header(value: &[u8], engine: &Engine) -> Result<Pair, Error> {
    let blank = value.iter().position(|&byte| byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = (&value[..blank], value[blank..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(of_token(rest, engine));
    }
    let wrong = || {
        let text = "Authorization must be 'Bearer TOKEN', or 'Basic' with USER:PASSWORD in base64";
        Error::new(ErrorCode::WrongPass, text)
    };
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return Err(wrong());
    }
    let pair = base64::decode(rest).ok_or_else(wrong)?;
    let colon = pair.iter().position(|&byte| byte == b':').ok_or_else(wrong)?;
    let name = if colon == 0 { DEFAULT_USER.as_bytes() } else { &pair[..colon] };
    Ok((name.into(), pair[colon + 1..].into()))
}

/// Takes as long wherever they differ.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other)) == 0
}

/// Whether a command only reads, so that a GET without credentials may ask for it: a page, a picture's address or a
/// link can make a browser send one. A script that writes nothing may still never end, and what reads no key may be
/// about who asks, or wait.
pub(crate) fn only_reads(spec: &CommandSpec) -> bool {
    let harmful = acl::ADMIN
        | acl::DANGEROUS
        | acl::SCRIPTING
        | acl::PUBSUB
        | acl::WRITE
        | acl::TRANSACTION
        | acl::BLOCKING;
    let is_mild =
        spec.flags & (flag::WRITE | flag::MAY_REPLICATE | flag::NO_AUTH) == 0 && spec.acl & harmful == 0;
    is_mild || spec.flags & flag::READONLY != 0 && spec.acl & acl::SCRIPTING == 0
}

/// Whether a command may leave something on the session, which is taken back before another request.
pub(crate) fn marks_session(spec: &CommandSpec) -> bool {
    spec.acl & (acl::CONNECTION | acl::TRANSACTION) != 0 && spec.policy & policy::FAST_PING == 0
}

/// Looks at where a browser says that a request comes from, and at the name by which the server was asked for. `shows`:
/// it has credentials that count. `is_page`: it is for people, who may come by a link.
pub(crate) fn check(
    head: &Head,
    request: &[u8],
    engine: &Engine,
    (shows, is_page): (bool, bool),
) -> Result<(), Box<Answer>> {
    let host = head.host.map(|host| host.of(request)).unwrap_or_default();
    let origin = head.origin.map(|origin| origin.of(request));
    let is_allowed = origin.is_some_and(|origin| engine.web.allows_origin(origin));
    let is_own = |origin: &[u8]| {
        let at = origin.windows(3).position(|part| part == b"://");
        at.is_some_and(|at| origin[at + 3..].eq_ignore_ascii_case(host))
    };
    if origin.is_some_and(|origin| !is_own(origin)) && !is_allowed {
        return Err(denied(
            "pages of this origin may not use this server: http-cors-origins names those that may",
        ));
    }
    let site = head.site.map(|site| site.of(request)).unwrap_or_default();
    let is_foreign = matches!(site, b"cross-site" | b"same-site");
    if is_foreign && !is_allowed && !(is_page && head.navigates) {
        return Err(denied(
            "pages of other sites may not use this server: http-cors-origins names those that may",
        ));
    }
    // A browser shows no credentials when it asks whether it may.
    let is_asked = is_allowed && head.method == Method::Options && head.is_preflight;
    // A name that an attacker has pointed to this machine makes his page one of the same origin.
    if !shows
        && !is_asked
        && engine.settings.protected_mode.load(Relaxed)
        && !head.is_local
        && !engine.web.allows_host(name_of(host))
    {
        return Err(denied(
            "without credentials this server is asked for by an address or as localhost: send a token, or name the \
             host in http-hosts",
        ));
    }
    Ok(())
}

fn denied(text: &str) -> Box<Answer> {
    Answer::error(403, &Error::new(ErrorCode::Denied, text.to_owned()).line())
}

/// A host without its port.
fn name_of(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|&byte| byte == b':');
    match colon.map(|colon| host.split_at(colon)) {
        // The colon may be one of an address.
        Some((name, _)) if name.first() != Some(&b'[') || name.last() == Some(&b']') => name,
        _ => host,
    }
}

/// Whether nobody can point it elsewhere: an address, or a name that is always this machine's.
pub(super) fn is_local_name(host: &[u8]) -> bool {
    let name = std::str::from_utf8(name_of(host)).unwrap_or("?").to_ascii_lowercase();
    let name = match name.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').unwrap_or("?"),
        None => &name,
    };
    name.is_empty()
        || name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_credentials_that_are_refused_nothing_is_kept() {
        let engine = crate::alone::Alone::new().engine;
        engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
        let address = weft_engine::mailbox::Address { worker: 0, channel: 0, connection: 0 };
        let info = weft_engine::session::ConnectionInfo::default().into();
        let session = &mut engine.connect(address, weft_engine::reply::Wire::default(), info, None);
        let form = Form::default();
        for long in [Shown::Header(&[b'x'; 30_000]), Shown::Token(&[b'x'; 30_000])] {
            let identity = Identity::of(long, form, session, engine);
            assert!(matches!(identity.shown, Remembered::Refused(_)) && identity.refusal(session).is_some());
            assert!(identity.is(long, form, engine), "they are known again");
            for other in [Shown::Nothing, Shown::Header(b"Bearer secret"), Shown::Token(b"secret")] {
                assert!(!identity.is(other, form, engine), "{other:?}");
            }
        }
        let header = Identity::of(Shown::Header(b"x"), form, session, engine);
        assert!(!header.is(Shown::Token(b"x"), form, engine));
        let right = Identity::of(Shown::Token(b"secret"), form, session, engine);
        assert!(right.refusal(session).is_none() && right.is(Shown::Token(b"secret"), form, engine));
    }

    #[test]
    fn names_that_can_be_pointed_here_are_not_local() {
        for host in
            ["", "localhost", "LOCALHOST:6379", "a.localhost:1", "127.0.0.1:6379", "[::1]:6379", "10.0.0.7"]
        {
            assert!(is_local_name(host.as_bytes()), "{host}");
        }
        for host in
            ["example.com", "localhost.example.com:6379", "127.0.0.1.example.com", "weft", "[::1].com"]
        {
            assert!(!is_local_name(host.as_bytes()), "{host}");
        }
    }
}
