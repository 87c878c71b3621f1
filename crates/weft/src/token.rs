//! `weft token`: tokens for HTTP, which are passwords of ACL users. Owns making, showing and taking them away over a
//! connection. Does not own: users, and that only hashes are kept (`weft_engine::acl`).

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use weft_client::{Connection, Reply};

use crate::endpoint::Endpoint;

/// Bits of a secret, and what `ACL GENPASS` is asked for.
const SECRET_BITS: &str = "256";
/// Digits of a hash that name it at least.
const HASH_DIGITS_MIN: usize = 8;

const EXAMPLES: &str = "\
Examples:
  weft cli ACL SETUSER app on '~app:*' +@read +@write
  weft token create app                       prints app.SECRET, once
  curl -H 'Authorization: Bearer app.SECRET' localhost:6379/get/app:greeting
  weft token list
  weft token revoke app 3f1c09ab

The server keeps hashes only, in its users: with an aclfile they are written there.";

/// Make tokens for HTTP, list them, take them away
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Options {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token of a user, and print it
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The user, who must exist
    #[arg(value_name = "NAME")]
    owner: String,
    #[command(flatten)]
    endpoint: Endpoint,
}

/// List the hashes of all tokens and passwords
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    endpoint: Endpoint,
}

/// Take a token or a password away
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The user
    #[arg(value_name = "NAME")]
    owner: String,
    /// The beginning of its hash, as `list` shows it
    hash: String,
    #[command(flatten)]
    endpoint: Endpoint,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    match options {
        Options::Create(options) => create(&mut options.endpoint.connect()?, &options.owner)?,
        Options::List(options) => list(&mut options.endpoint.connect()?)?,
        Options::Revoke(options) => revoke(&mut options.endpoint.connect()?, &options.owner, &options.hash)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn create(connection: &mut Connection, name: &str) -> Result<()> {
    let user = user(connection, name)?;
    ensure!(
        !user.needs_no_password,
        "user {name} needs no password, and would need one from now on: make a user for tokens, or give this one a \
         password first"
    );
    let secret: String = connection.query(&["ACL", "GENPASS", SECRET_BITS])?;
    let _: String = connection.query(&["ACL", "SETUSER", name, &format!(">{secret}")])?;
    save(connection)?;
    println!("{name}.{secret}");
    Ok(())
}

fn list(connection: &mut Connection) -> Result<()> {
    let names: Vec<String> = connection.query(&["ACL", "USERS"])?;
    for name in names {
        for hash in user(connection, &name)?.hashes {
            println!("{name} {hash}");
        }
    }
    Ok(())
}

fn revoke(connection: &mut Connection, name: &str, hash: &str) -> Result<()> {
    ensure!(hash.len() >= HASH_DIGITS_MIN, "a hash is named by {HASH_DIGITS_MIN} of its digits at least");
    let user = user(connection, name)?;
    let mut found = user.hashes.iter().filter(|other| other.starts_with(hash));
    let (Some(hash), None) = (found.next(), found.next()) else {
        bail!("user {name} has not one token whose hash begins with {hash}: `weft token list` shows them")
    };
    let _: String = connection.query(&["ACL", "SETUSER", name, &format!("!{hash}")])?;
    save(connection)
}

/// What is asked of a user.
#[derive(Debug, Default)]
struct User {
    needs_no_password: bool,
    hashes: Vec<String>,
}

fn user(connection: &mut Connection, name: &str) -> Result<User> {
    let reply = connection.command(&["ACL", "GETUSER", name])?;
    let pairs: Vec<(&Reply, &Reply)> = match &reply {
        Reply::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
        Reply::Array(flat) => flat.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
        Reply::Null | Reply::NullArray => bail!("there is no user {name}: make it with ACL SETUSER first"),
        _ => bail!("ACL GETUSER answers no map"),
    };
    let mut user = User::default();
    for (key, value) in pairs {
        let words = || -> Result<Vec<String>> {
            let (Reply::Array(items) | Reply::Set(items)) = value else {
                bail!("ACL GETUSER answers no list")
            };
            items.iter().map(|item| text(item).context("ACL GETUSER answers no text")).collect()
        };
        match text(key).as_deref() {
            Some("flags") => user.needs_no_password = words()?.iter().any(|flag| flag == "nopass"),
            Some("passwords") => user.hashes = words()?,
            _ => {}
        }
    }
    Ok(user)
}

fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Bulk(bytes) | Reply::Simple(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Writes users to the ACL file, where there is one.
fn save(connection: &mut Connection) -> Result<()> {
    match connection.exchange(&["ACL", "SAVE"])? {
        Reply::Error(error) if String::from_utf8_lossy(&error).contains("not configured") => {
            eprintln!("weft token: the server has no aclfile, and forgets this when it stops");
            Ok(())
        }
        Reply::Error(error) => bail!("{}", String::from_utf8_lossy(&error)),
        _ => Ok(()),
    }
}
