//! Owns: commands about the connection itself: PING, ECHO, SELECT, QUIT, RESET, HELLO, AUTH. Does not own: CLIENT,
//! users.

use std::sync::atomic::Ordering::Relaxed;

use super::client::{check_attribute, set_name};
use crate::acl::DEFAULT_USER;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::reply::{Protocol, ReplySink};
use crate::respb;
use crate::session::{ReplyMode, Session, Then};

pub(crate) const LIST: &[Entry] = &[
    ("PING", Scope::None, ping),
    ("ECHO", Scope::None, echo),
    ("SELECT", Scope::None, select),
    ("QUIT", Scope::None, quit),
    ("RESET", Scope::Unwatch, reset),
    ("HELLO", Scope::None, hello),
    ("AUTH", Scope::None, auth),
];

fn ping(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 2 {
        return Err(Error::arity(args.spec));
    }
    if context.session.in_resp2_pubsub() {
        sink.array(2);
        sink.bulk(b"pong");
        sink.bulk(args.bytes(1));
    } else if args.len() == 2 {
        sink.bulk(args.bytes(1));
    } else {
        sink.simple("PONG");
    }
    Ok(())
}

fn echo(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.bulk(args.bytes(1));
    Ok(())
}

fn select(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let db = args.int_in(1, i32::MIN.into()..=i32::MAX.into())?;
    let count = context.engine.keyspace.database_count() as i64;
    if !(0..count).contains(&db) {
        return Err(Error::err("DB index is out of range"));
    }
    context.session.select(db as u8);
    sink.ok();
    Ok(())
}

/// For others the client is gone before it reads the answer: whose invalidations went to it, who publishes.
fn quit(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (engine, session) = (context.engine, &mut *context.session);
    if session.over_http {
        return Err(Error::err(
            "QUIT is not available over HTTP: send 'Connection: close' with the last request",
        ));
    }
    engine.unsubscribe_all(session);
    engine.untrack(&session.info);
    engine.clients.leave(session.id());
    session.then = Then::Close;
    sink.ok();
    Ok(())
}

/// The session becomes like a new one; over RESP in RESP2, over RESPB in the same protocol. What CLIENT SETINFO told
/// stays: it is still the same library.
fn reset(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.give_up_watches();
    let (engine, session) = (context.engine, &mut *context.session);
    session.transaction = None;
    session.show_queued(None);
    engine.renew(session);
    session.acl_epoch = engine.acl.epoch();
    session.set_user(engine.acl.default_user());
    session.authenticated = !engine.settings.auth_required.load(Relaxed);
    set_name(session, b"");
    if session.switches_protocol() {
        session.set_protocol(Protocol::Resp2);
        sink.set_protocol(Protocol::Resp2);
    }
    sink.simple("RESET");
    Ok(())
}

fn auth(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (name, password) = match args.len() {
        2 if context.engine.acl.default_user().is_nopass() => {
            return Err(Error::err(
                "AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => (DEFAULT_USER.as_bytes(), args.bytes(1)),
        3 => (args.bytes(1), args.bytes(2)),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    context.engine.authenticate(context.session, name, password, (args, context.now_ms))?;
    sink.ok();
    Ok(())
}

/// What HELLO asks for.
#[derive(Default)]
struct Hello<'a> {
    protocol: Option<Protocol>,
    user: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
    /// `PROTO respb`.
    respb: bool,
    caps: Option<u64>,
}

impl<'a> Hello<'a> {
    fn parse(args: &Args<'a>, over_resp: bool) -> Result<Self> {
        let mut hello = Self::default();
        if args.len() < 2 {
            return Ok(hello);
        }
        let version =
            args.int(1).map_err(|_| Error::err("Protocol version is not an integer or out of range"))?;
        hello.protocol = Some(match version {
            2 if over_resp => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(ErrorCode::NoProto.into()),
        });
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "AUTH") && more >= 2 {
                hello.user = Some((args.bytes(at + 1), args.bytes(at + 2)));
                at += 3;
            } else if args.is(at, "SETNAME") && more >= 1 {
                let name = args.bytes(at + 1);
                check_attribute(name, "Client names")?;
                hello.name = Some(name);
                at += 2;
            } else if args.is(at, "PROTO") && more >= 1 && args.is(at + 1, "RESPB") && version == 3 {
                hello.respb = true;
                at += 2;
            } else if args.is(at, "CAPS") && more >= 1 {
                let caps = args.int(at + 1).ok().and_then(|caps| u64::try_from(caps).ok());
                hello.caps = Some(caps.ok_or_else(|| Error::err("CAPS is not an integer or out of range"))?);
                at += 2;
            } else {
                let option = String::from_utf8_lossy(args.bytes(at));
                return Err(Error::err(format!("Syntax error in HELLO option '{option}'")));
            }
        }
        Ok(hello)
    }
}

fn hello(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let over_resp = context.session.switches_protocol();
    let hello = Hello::parse(args, over_resp)?;
    let switches = hello.respb && over_resp;
    // MULTI does not queue it; nor does anybody else run it for a client.
    if switches && !context.may_block() {
        return Err(Error::err(respb::NO_SWITCH));
    }
    if let Some((name, password)) = hello.user {
        context.engine.authenticate(context.session, name, password, (args, context.now_ms))?;
    }
    if !context.session.authenticated && context.engine.needs_auth(context.session) {
        return Err(Error::new(
            ErrorCode::NoAuth,
            "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
             time",
        ));
    }
    let session = &mut *context.session;
    if let Some(name) = hello.name {
        set_name(session, name);
    }
    let kept = &session.info.connection.caps;
    if (!over_resp || switches) && kept.load(Relaxed) & respb::CAPS_FIXED == 0 {
        kept.store(hello.caps.unwrap_or(0) & respb::CAPS | respb::CAPS_FIXED, Relaxed);
    }
    if let Some(protocol) = hello.protocol.filter(|_| over_resp) {
        session.set_protocol(protocol);
        sink.set_protocol(protocol);
    }
    if switches {
        session.then = Then::SwitchToRespb;
        // Over RESPB each request is answered, and so is this one.
        session.reply_mode = ReplyMode::On;
    }
    let limits = respb::Limits::of(&context.engine.settings);
    let zone = context.engine.config.text("availability-zone");
    answer_hello(
        session,
        (context.engine.mode(), &zone),
        (!over_resp || hello.respb).then_some(&limits),
        sink,
    );
    Ok(())
}

fn answer_hello(
    session: &Session,
    (mode, zone): (&str, &[u8]),
    limits: Option<&respb::Limits>,
    sink: &mut ReplySink<'_>,
) {
    sink.map(7 + usize::from(!zone.is_empty()) + usize::from(limits.is_some()));
    let mut entry = |key: &str, value: &str| {
        sink.bulk(key.as_bytes());
        sink.bulk(value.as_bytes());
    };
    // What clients know to look for: a server that answers as this version of Redis does.
    entry("server", "redis");
    entry("version", crate::REDIS_VERSION);
    sink.bulk(b"proto");
    sink.int(if session.wire.protocol == Protocol::Resp2 { 2 } else { 3 });
    sink.bulk(b"id");
    sink.int(session.id() as i64);
    let mut entry = |key: &str, value: &str| {
        sink.bulk(key.as_bytes());
        sink.bulk(value.as_bytes());
    };
    entry("mode", mode);
    entry("role", "master");
    sink.bulk(b"modules");
    sink.array(0);
    if !zone.is_empty() {
        sink.bulk(b"availability_zone");
        sink.bulk(zone);
    }
    let Some(limits) = limits else { return };
    sink.bulk(b"respb");
    sink.map(5);
    sink.bulk(b"version");
    sink.int(respb::VERSION);
    sink.bulk(b"profiles");
    sink.array(respb::PROFILES.len());
    respb::PROFILES.iter().for_each(|profile| sink.bulk(profile.as_bytes()));
    sink.bulk(b"table");
    respb::write_table(sink);
    sink.bulk(b"capabilities");
    sink.int((session.info.connection.caps.load(Relaxed) & respb::CAPS) as i64);
    sink.bulk(b"limits");
    let limits = limits.list();
    sink.map(limits.len());
    for (name, value) in limits {
        sink.bulk(name.as_bytes());
        sink.int(value as i64);
    }
}
