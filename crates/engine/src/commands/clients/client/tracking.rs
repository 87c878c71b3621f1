//! Owns: CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR. Does not own: what is tracked (`crate::tracking`).

use std::sync::atomic::Ordering::Relaxed;

use super::on_or_off;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::reply::ReplySink;
use crate::session::client_flag::{BCAST, NOLOOP, OPTIN, OPTOUT, REDIR_BROKEN, TRACKING};

/// What CLIENT TRACKING asks for.
/// Prefixes of one client, and bytes of each: a key that is written to is looked for among all.
const PREFIXES_MAX: usize = 4096;
const PREFIX_BYTES_MAX: usize = 1024;

#[derive(Default)]
struct Options<'a> {
    flags: u32,
    redirect: u64,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(context: &Context<'_, '_>, args: &Args<'a>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            let more = at + 1 < args.len();
            let flags = [("BCAST", BCAST), ("OPTIN", OPTIN), ("OPTOUT", OPTOUT), ("NOLOOP", NOLOOP)];
            if args.is(at, "REDIRECT") && more {
                options.redirect = redirect(context, args, at + 1, options.redirect)?;
                at += 1;
            } else if args.is(at, "PREFIX") && more {
                options.prefixes.push(args.bytes(at + 1));
                at += 1;
            } else if let Some((_, flag)) = flags.iter().find(|(word, _)| args.is(at, word)) {
                options.flags |= flag;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        Ok(options)
    }

    /// Whether the options go together, and with what the client has.
    fn check(&self, context: &Context<'_, '_>) -> Result {
        let info = &context.session.info;
        let asks = |flag| self.flags & flag != 0;
        if !asks(BCAST) && !self.prefixes.is_empty() {
            return Err(Error::err("PREFIX option requires BCAST mode to be enabled"));
        }
        if info.has(TRACKING) && info.has(BCAST) != asks(BCAST) {
            return Err(Error::err(
                "You can't switch BCAST mode on/off before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        if asks(BCAST) && asks(OPTIN | OPTOUT) {
            return Err(Error::err("OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if asks(OPTIN) && asks(OPTOUT) {
            return Err(Error::err("You can't specify both OPTIN mode and OPTOUT mode"));
        }
        if asks(OPTIN) && info.has(OPTOUT) || asks(OPTOUT) && info.has(OPTIN) {
            return Err(Error::err(
                "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        self.check_prefixes(context)
    }

    /// No key may be under two prefixes of one client.
    fn check_prefixes(&self, context: &Context<'_, '_>) -> Result {
        let own = context.engine.tracking.prefixes_of(context.session.id());
        if self.prefixes.iter().any(|prefix| prefix.len() > PREFIX_BYTES_MAX)
            || own.len() + self.prefixes.len() > PREFIXES_MAX
        {
            return Err(Error::err(format!(
                "A client has at most {PREFIXES_MAX} prefixes of at most {PREFIX_BYTES_MAX} bytes"
            )));
        }
        // In order, what is under a prefix stands right behind it. Those that are there already come last where both
        // are the same.
        let new = self.prefixes.iter().enumerate().map(|(at, prefix)| (*prefix, at));
        let mut all: Vec<(&[u8], usize)> =
            new.chain(own.iter().map(|prefix| (&**prefix, usize::MAX))).collect();
        all.sort_unstable();
        let overlaps = all.windows(2).filter(|pair| pair[1].0.starts_with(pair[0].0));
        // Of several the one that comes first in the command.
        let Some(pair) = overlaps.min_by_key(|pair| pair[0].1.min(pair[1].1)) else { return Ok(()) };
        let (one, other) = if pair[0].1 < pair[1].1 { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
        let what = if other.1 == usize::MAX { "an existing" } else { "another provided" };
        Err(Error::err(format!(
            "Prefix '{}' overlaps with {what} prefix '{}'. Prefixes for a single client must not overlap.",
            String::from_utf8_lossy(one.0),
            String::from_utf8_lossy(other.0)
        )))
    }
}

fn redirect(context: &Context<'_, '_>, args: &Args<'_>, at: usize, earlier: u64) -> Result<u64> {
    if earlier != 0 {
        return Err(Error::err("A client can only redirect to a single other client"));
    }
    let id = args.int(at)?;
    let known = u64::try_from(id).ok().filter(|id| context.engine.clients.get(*id).is_some());
    known.ok_or_else(|| Error::err("The client ID you want redirect to does not exist"))
}

pub(super) fn tracking(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::parse(context, args)?;
    if on_or_off(args, 2)? {
        options.check(context)?;
        context.engine.track(&context.session.info, options.flags, options.redirect, &options.prefixes);
    } else {
        context.engine.untrack(&context.session.info);
        context.session.caching = None;
    }
    sink.ok();
    Ok(())
}

/// Decides for the next command, or the next transaction, whether what it reads is tracked.
pub(super) fn caching(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let session = &mut *context.session;
    if !session.info.has(TRACKING) {
        return Err(Error::err(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    }
    let (yes, no) = (args.is(2, "YES"), args.is(2, "NO"));
    if yes && !session.info.has(OPTIN) {
        let text = "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
        return Err(Error::err(text));
    }
    if no && !session.info.has(OPTOUT) {
        let text = "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.";
        return Err(Error::err(text));
    }
    if !yes && !no {
        return Err(ErrorCode::Syntax.into());
    }
    session.caching = Some(yes);
    sink.ok();
    Ok(())
}

fn redirection(context: &Context<'_, '_>) -> i64 {
    let info = &context.session.info;
    if info.has(TRACKING) { info.redirect.load(Relaxed) as i64 } else { -1 }
}

pub(super) fn getredir(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int(redirection(context));
    Ok(())
}

pub(super) fn trackinginfo(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let session = &*context.session;
    let has = |flag| session.info.has(flag);
    let mut flags = vec![if has(TRACKING) { "on" } else { "off" }];
    let caching = session.caching.is_some();
    for (set, name) in [
        (has(BCAST), "bcast"),
        (has(OPTIN), "optin"),
        (has(OPTIN) && caching, "caching-yes"),
        (has(OPTOUT), "optout"),
        (has(OPTOUT) && caching, "caching-no"),
        (has(NOLOOP), "noloop"),
        (has(REDIR_BROKEN), "broken_redirect"),
    ] {
        flags.extend(set.then_some(name));
    }
    sink.map(3);
    sink.bulk(b"flags");
    sink.set(flags.len());
    flags.iter().for_each(|flag| sink.bulk(flag.as_bytes()));
    sink.bulk(b"redirect");
    sink.int(redirection(context));
    sink.bulk(b"prefixes");
    let prefixes = context.engine.tracking.prefixes_of(context.session.id());
    sink.array(prefixes.len());
    prefixes.iter().for_each(|prefix| sink.bulk(prefix));
    Ok(())
}
