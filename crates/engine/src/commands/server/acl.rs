//! Owns: the ACL commands. Does not own: users and rules (`crate::acl`).

use weft_protocol::table::{self, COMMANDS, CommandId, acl};
use weft_store::Section;

use crate::acl::{Selector, category};
use crate::args::{Args, OwnedArgs, check_arity};
use crate::commands::common::help::subcommand_syntax;
use crate::context::Context;
use crate::error::{Error, Result, full_name};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;
use crate::requests::What;

pub(crate) const LIST: &[Entry] = &[
    ("ACL CAT", Scope::None, cat),
    ("ACL DELUSER", Scope::World, deluser),
    ("ACL DRYRUN", Scope::None, dryrun),
    ("ACL GENPASS", Scope::None, genpass),
    ("ACL GETUSER", Scope::None, getuser),
    ("ACL HELP", Scope::None, crate::commands::common::help::help),
    ("ACL LIST", Scope::None, list),
    ("ACL LOAD", Scope::None, load),
    ("ACL LOG", Scope::None, log),
    ("ACL SAVE", Scope::None, save),
    ("ACL SETUSER", Scope::World, setuser),
    ("ACL USERS", Scope::None, users),
    ("ACL WHOAMI", Scope::None, whoami),
];

/// Bits that ACL GENPASS makes at most.
const GENPASS_BITS_MAX: i64 = 4096;

/// Entries that ACL LOG answers when it is not told how many.
const LOG_ENTRIES: i64 = 10;

fn setuser(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let rules: Vec<&[u8]> = args.rest(3).collect();
    context.engine.set_user(args.bytes(2), &rules).map_err(Error::err)?;
    keep(context, args.bytes(2))?;
    sink.ok();
    Ok(())
}

/// Has log and snapshots carry a user as it is now, unless there is a file for users.
fn keep(context: &mut Context<'_, '_>, name: &[u8]) -> Result {
    if !context.engine.has_acl_file() {
        let user = context.engine.acl.user(name).map(|user| user.describe());
        context.set_entry(Section::Users, name, user.as_deref())?;
    }
    Ok(())
}

fn deluser(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.rest(2).any(|name| name == crate::acl::DEFAULT_USER.as_bytes()) {
        return Err(Error::err("The 'default' user cannot be removed"));
    }
    let mut deleted = 0;
    for name in args.rest(2) {
        if context.engine.delete_user(name) {
            deleted += 1;
            keep(context, name)?;
        }
    }
    sink.count(deleted);
    Ok(())
}

fn getuser(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(user) = context.engine.acl.user(args.bytes(2)) else {
        sink.null();
        return Ok(());
    };
    sink.map(7);
    sink.bulk(b"flags");
    let flags = user.flags();
    sink.set(flags.len());
    flags.iter().for_each(|flag| sink.bulk(flag.as_bytes()));
    sink.bulk(b"passwords");
    let passwords: Vec<String> = user.passwords().collect();
    sink.array(passwords.len());
    passwords.iter().for_each(|password| sink.bulk(password.as_bytes()));
    write_selector(user.root(), sink);
    sink.bulk(b"selectors");
    sink.array(user.more().len());
    for selector in user.more() {
        sink.map(4);
        write_selector(selector, sink);
    }
    Ok(())
}

fn write_selector(selector: &Selector, sink: &mut ReplySink<'_>) {
    sink.bulk(b"commands");
    sink.bulk(selector.describe_commands().as_bytes());
    sink.bulk(b"keys");
    sink.bulk(&selector.describe_keys());
    sink.bulk(b"channels");
    sink.bulk(&selector.describe_channels());
    sink.bulk(b"databases");
    sink.bulk(selector.describe_dbs().as_bytes());
}

fn list(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let users = context.engine.acl.users();
    sink.array(users.len());
    for user in users {
        sink.bulk(&[format!("user {} ", user.name).as_bytes(), &user.describe()].concat());
    }
    Ok(())
}

fn users(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let users = context.engine.acl.users();
    sink.array(users.len());
    users.iter().for_each(|user| sink.bulk(user.name.as_bytes()));
    Ok(())
}

fn whoami(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.bulk(context.session.user.name.as_bytes());
    Ok(())
}

fn load(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.load_acl_file().map_err(Error::err)?;
    sink.ok();
    Ok(())
}

fn save(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.save_acl_file().map_err(Error::err)?;
    sink.ok();
    Ok(())
}

fn cat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    match args.len() {
        2 => {
            // Categories of modules count only if something of them is served; that of scripts is always known.
            let ids = (0..COMMANDS.len() as u16).map(CommandId).filter(|&id| context.engine.serves(id));
            let served = ids.fold(acl::SCRIPTING, |all, id| all | id.spec().acl);
            let names: Vec<&str> =
                acl::NAMES.iter().filter(|(bit, _)| served & bit != 0).map(|(_, name)| *name).collect();
            sink.array(names.len());
            names.iter().for_each(|name| sink.bulk(name.as_bytes()));
        }
        3 => {
            let name = args.bytes(2);
            let category = category(name).ok_or_else(|| {
                let shown = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
                Error::err(format!("Unknown category '{shown}'"))
            })?;
            let ids = (0..COMMANDS.len() as u16).map(CommandId);
            let ids: Vec<CommandId> =
                ids.filter(|&id| context.engine.serves(id) && id.spec().acl & category != 0).collect();
            sink.array(ids.len());
            ids.into_iter().for_each(|id| sink.bulk(full_name(id.spec()).as_bytes()));
        }
        _ => return Err(subcommand_syntax(args)),
    }
    Ok(())
}

fn genpass(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let bits = match args.len() {
        2 => 256,
        3 => args.int(2)?,
        _ => return Err(subcommand_syntax(args)),
    };
    if !(1..=GENPASS_BITS_MAX).contains(&bits) {
        return Err(Error::err(format!(
            "ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {GENPASS_BITS_MAX}"
        )));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    getrandom::getrandom(&mut bytes)
        .map_err(|_| Error::err("the operating system has no random numbers to give"))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    sink.bulk(&text.as_bytes()[..digits]);
    Ok(())
}

fn dryrun(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let text = |index| String::from_utf8_lossy(args.bytes(index)).into_owned();
    let user = context.engine.acl.user(args.bytes(2));
    let user = user.ok_or_else(|| Error::err(format!("User '{}' not found", text(2))))?;
    let What::Command(id) = What::of(args.bytes(3), (args.len() > 4).then(|| args.bytes(4))) else {
        return Err(Error::err(format!("Command '{}' not found", text(3))));
    };
    let served = context.engine.serves(id) || table::subcommands(id).next().is_some();
    if !served {
        return Err(Error::err(format!("Command '{}' not found", text(3))));
    }
    check_arity(id.spec(), args.len() - 3)?;
    let owned = OwnedArgs::new(id.spec(), args.rest(3));
    match user.check(&owned.args(), context.db, context.engine.keyspace.database_count()) {
        Ok(()) => sink.ok(),
        Err(denied) => sink.bulk(denied.text(&user, &owned.args(), true).as_bytes()),
    }
    Ok(())
}

fn log(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let count = match args.len() {
        2 => LOG_ENTRIES,
        3 if args.is(2, "RESET") => {
            context.engine.acl.log.lock().clear();
            sink.ok();
            return Ok(());
        }
        3 => args.int(2)?.max(0),
        _ => return Err(subcommand_syntax(args)),
    };
    let entries = context.engine.acl.log.lock().newest(usize::try_from(count).unwrap_or(usize::MAX));
    sink.array(entries.len());
    for entry in entries {
        sink.map(10);
        sink.bulk(b"count");
        sink.int(entry.count as i64);
        for (name, value) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.place.name().as_bytes()),
            ("object", &entry.object),
            ("username", entry.user.as_bytes()),
        ] {
            sink.bulk(name.as_bytes());
            sink.bulk(value);
        }
        sink.bulk(b"age-seconds");
        sink.double(context.now_ms.saturating_sub(entry.updated_ms) as f64 / 1000.0);
        sink.bulk(b"client-info");
        sink.bulk(entry.client.as_bytes());
        for (name, value) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ] {
            sink.bulk(name.as_bytes());
            sink.int(value as i64);
        }
    }
    Ok(())
}
