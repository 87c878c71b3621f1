//! Owns: a server from its options: folder, log, engine, listening, what it says at the start. Does not own: where
//! options come from (`crate::options`), serving (`crate::Server`).

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use weft_engine::config::Values;
use weft_engine::config::value::limits_of;
use weft_engine::forward::Ways;
use weft_engine::{Engine, Setup};
use weft_gateway::{Gateway, ways};
use weft_store::{Config, Keyspace, SystemClock};

use crate::doorstep;
use crate::heap;
use crate::log::{self, Log};
use crate::options::Options;
use crate::persistence::{Import, LOADERS_MAX, Persistence};
use crate::shared::Shared;
use crate::signals::Signals;
use crate::supervisor::{self, State};
use crate::tls::Setup as TlsSetup;
use crate::{Listen, Server, carrier, notice, warning};

/// Threads besides the workers that work on the keyspace: the one in the background, the log's, a snapshot's, those of
/// MIGRATE and of loading, and room for some more.
const OTHER_WORKERS: usize = 6 + carrier::TARGETS_MAX + LOADERS_MAX;
/// Shards for each worker. What a look-up touches of a shard, 9 cache lines with its table, is then 150 KiB a worker,
/// which stays in the second-level cache beside the data: with 1,024 of them SET cost a fifth more (ADR 0012).
const SHARDS_PER_WORKER: usize = 256;
/// Files that a server has open besides its clients' sockets: the log, listeners, the program's own.
const OWN_FILES: u64 = 32;
/// What a client of a gateway may be owed, if nothing else is set.
const OWED_BYTES_MAX: i64 = 1 << 30;
/// Workers at most.
const THREADS_MAX: usize = 256;

/// Serves until it is asked to stop. `import` is what it begins with, if nothing was kept.
///
/// # Errors
/// What kept the server from starting, or broke it, in words for whoever started it.
pub fn run(options: Options, import: Option<Import>) -> io::Result<()> {
    serve(options, import, None)
}

/// Serves as a gateway: another server has the keys.
///
/// # Errors
/// As [`run`].
pub fn gateway(mut options: Options, behind: weft_gateway::Options) -> io::Result<()> {
    bound_output(&mut options.values);
    let value = |name: &str| options.values.get(name).str().into_owned();
    if value("appendonly") == "yes" || !value("save").is_empty() {
        return Err(io::Error::other("a gateway has no keys to keep: leave appendonly and save out"));
    }
    serve(options, None, Some(behind))
}

/// What a client is owed has a bound, if none is set: how much what it has under way (`FORWARDED_MAX`) will be is not
/// known before the server behind answers.
fn bound_output(values: &mut Values) {
    const NAME: &str = "client-output-buffer-limit";
    let [[hard, soft, seconds], ..] = limits_of(values.get(NAME));
    if hard == 0 {
        let words = [OWED_BYTES_MAX, soft, seconds].map(|number| number.to_string());
        let [hard, soft, seconds] = [&words[0], &words[1], &words[2]].map(|word| word.as_bytes());
        let set = values.set(NAME.as_bytes(), &[b"normal", hard, soft, seconds]);
        debug_assert_eq!(set, Ok(()));
    }
}

fn serve(options: Options, import: Option<Import>, behind: Option<weft_gateway::Options>) -> io::Result<()> {
    heap::begin();
    if let Some(dir) = &options.dir {
        std::env::set_current_dir(dir)
            .map_err(|error| with_context(&error, &format!("cannot change to dir {}", dir.display())))?;
    }
    let log = Log::open(&options.log).map_err(|error| with_context(&error, "cannot open the logfile"))?;
    let log = log::install(log);
    options.warnings.iter().for_each(|text| warning!("{text}"));
    let threads = match options.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
    .min(THREADS_MAX) as u16;
    let engine = prepared(&options, threads, behind.as_ref(), log);
    users(engine, &options)?;
    let shared = Arc::new(Shared::default());
    tls(engine, &shared, &options)?;
    let listen = listen(&options, threads)?;
    let persistence = Persistence::find(engine, import)?;
    let gateway = behind.map(|behind| Gateway::start(behind, engine)).transpose()?;
    // From here on there are files that its end takes away: a Unix socket, the pidfile.
    let signals = Signals::take()?;
    let server = Server::new(engine, &listen, Arc::clone(&shared), gateway.as_ref())?;
    carrier::start(engine);
    let pidfile = options.pidfile.as_deref().map(|path| fs::write(path, format!("{}\n", std::process::id())));
    if let Some(Err(error)) = pidfile {
        warning!("cannot write the pidfile: {error}");
    }
    *engine.facts.port.write() = options.port;
    *engine.facts.listeners.write() = listeners(&options);
    greet(&server, gateway.as_ref(), threads, !options.values.get("requirepass").text.is_empty());
    let reloads = move || {
        supervisor::notify(State::Reloading);
        reload(engine);
        supervisor::notify(State::Ready);
    };
    let ends = || {
        if let Some(path) = &options.pidfile {
            // It may be gone already, or never have been written.
            let _ = fs::remove_file(path);
        }
        notice!("Weft has stopped");
    };
    let result = server.run(persistence, signals, reloads, || {
        notice!(
            "It was still loading: nothing is written, and what was kept stays as it was. An import begins anew at \
             the next start"
        );
        ends();
        // One value may take long to read, and whoever writes into a pipe may never go on.
        std::process::exit(0);
    });
    say_what_is_gone(engine, options.databases);
    ends();
    result
}

/// The engine, with what it asks the process for.
fn prepared(
    options: &Options,
    threads: u16,
    behind: Option<&weft_gateway::Options>,
    log: &'static Log,
) -> &'static Engine {
    let ways: Option<(Ways, bool)> = behind.map(|behind| match behind.cluster.as_slice() {
        [] => (ways::of as Ways, false),
        _ => (ways::of_cluster as Ways, true),
    });
    let engine = engine(options, threads, ways);
    allow_files(engine, threads);
    // The first one stays: there is one server in a process.
    let _ = engine.facts.logger.set(|text| notice!("{text}"));
    if let Some(file) = &options.config_file {
        engine.config.set_file(file.clone());
    }
    engine.config.set_hook(Box::new(move |directive, value| {
        log.set(directive.name, &value.str());
        Ok(())
    }));
    engine
}

/// What goes with this process, if that is anything.
fn say_what_is_gone(engine: &Engine, databases: usize) {
    let keys: usize = (0..databases).map(|db| engine.keyspace.len(db as u8)).sum();
    let was_loaded = engine.durable.loading.keys.load(Relaxed) > 0;
    match keys {
        _ if engine.durable.is_kept() => {}
        _ if was_loaded => {
            notice!("What has changed since the snapshot that was loaded is gone with this process")
        }
        0 => {}
        _ => notice!("Nothing is kept: the keys are gone with this process, {keys} of them"),
    }
}

/// Reads anew what may have changed in files: what TLS is served with, and users, as ACL LOAD does. The log goes to a
/// file of its name, though that was moved away.
fn reload(engine: &Engine) {
    if let Some(Err(why)) = log::current().map(Log::open_again) {
        warning!("the log goes to where it went: its file cannot be opened again: {why}");
    }
    notice!("SIGHUP: certificates, keys, authorities and the ACL file are read anew");
    // As CONFIG SET does it, and one behind the other: what was set last is in force.
    if let Err(why) = engine.config.follow_tls_again() {
        warning!("TLS stays as it is: {why}");
    }
    let has_file = engine.acl.file.lock().is_some();
    if has_file && let Err(why) = engine.load_acl_file() {
        warning!("users stay as they are: {why}");
    }
}

/// Looks at all that the options name without serving: what would keep the server from starting. What it says is no
/// fault if the server runs already: somebody has an address.
///
/// # Errors
/// The first thing that is wrong, in words for whoever asked.
pub fn check(options: &Options) -> io::Result<Vec<String>> {
    if let Some(dir) = &options.dir {
        std::env::set_current_dir(dir)
            .map_err(|error| with_context(&error, &format!("cannot change to dir {}", dir.display())))?;
    }
    Log::open(&options.log).map_err(|error| with_context(&error, "cannot open the logfile"))?;
    let setup = TlsSetup::of(&options.values).map_err(io::Error::other)?;
    if options.tls_port != 0 && setup.is_none() {
        return Err(io::Error::other(NO_CERTIFICATE));
    }
    users(engine(options, 1, None), options)?;
    taken(&listen(options, 1)?)
}

/// Addresses that somebody listens on. One that cannot be bound otherwise is an error.
fn taken(listen: &Listen) -> io::Result<Vec<String>> {
    let mut taken = Vec::new();
    for address in listen.tcp.iter().chain(&listen.tls).chain(&listen.http) {
        match Server::bind(*address) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                taken.push(format!(
                    "{address} is in use: by the server that runs already, or by another program"
                ));
            }
            Err(error) => return Err(with_context(&error, &format!("cannot listen on {address}"))),
        }
    }
    if let Some((path, _)) = &listen.unix {
        if fs::symlink_metadata(path).is_ok_and(|there| !there.file_type().is_socket()) {
            let why = format!("unixsocket {}: there is something that is no socket", path.display());
            return Err(io::Error::other(why));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let why = format!("unixsocket {}: there is no folder {}", path.display(), folder.display());
            return Err(io::Error::other(why));
        }
    }
    Ok(taken)
}

const NO_CERTIFICATE: &str =
    "tls-port needs tls-cert-file and tls-key-file; for a try, tls-self-signed yes makes them";

/// TLS as the options say, and as CONFIG SET does later.
fn tls(engine: &'static Engine, shared: &Arc<Shared>, options: &Options) -> io::Result<()> {
    shared.tls.follow(engine, &options.values).map_err(io::Error::other)?;
    if options.tls_port != 0 && shared.tls.current().is_none() {
        return Err(io::Error::other(NO_CERTIFICATE));
    }
    let shared = Arc::clone(shared);
    engine.config.set_tls_hook(Box::new(move |values| Ok(shared.tls.follow(engine, values)?)));
    Ok(())
}

/// The engine of a process: it lives as long as that, since threads and hooks hold on to it.
fn engine(options: &Options, threads: u16, ways: Option<(Ways, bool)>) -> &'static Engine {
    let keyspace = Keyspace::new(Config {
        databases: options.databases,
        shards: SHARDS_PER_WORKER * usize::from(threads),
        workers: 2 * usize::from(threads) + OTHER_WORKERS,
        huge_pages: options.huge_pages,
        ..Config::default()
    });
    let setup = Setup { keyspace, clock: Box::new(SystemClock), workers: threads };
    let engine = match ways {
        Some((ways, is_cluster)) => Engine::forwarding(setup, ways, is_cluster),
        None => Engine::new(setup),
    };
    engine.configure(options.values.clone());
    Box::leak(Box::new(engine))
}

/// Raises the limit on open files to what `maxclients` needs; where that is not allowed, `maxclients` becomes less.
fn allow_files(engine: &Engine, threads: u16) {
    let own = OWN_FILES + doorstep::WAITING_MAX as u64 + 4 * u64::from(threads);
    let wanted = u64::from(engine.settings.clients_max.load(Relaxed)) + own;
    let limit = getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(u64::MAX);
    if now >= wanted {
        return;
    }
    let allowed = wanted.min(limit.maximum.unwrap_or(u64::MAX));
    if allowed > now {
        // What it has come to is looked at below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum });
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if now < wanted {
        let clients = now.saturating_sub(own).max(1).to_string();
        warning!(
            "maxclients is {clients} and not {}: the system allows {now} open files; raise that with 'ulimit -n {wanted}'",
            wanted - own
        );
        if let Err(error) = engine.set_config(&[(b"maxclients", clients.as_bytes())], false) {
            warning!("maxclients cannot be set: {error:?}");
        }
    }
}

/// Users of `user` lines or of the ACL file.
fn users(engine: &Engine, options: &Options) -> io::Result<()> {
    for (place, words) in &options.users {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if let [name, rules @ ..] = words.as_slice() {
            engine.define_user(name, rules).map_err(|why| io::Error::other(format!("{place}: {why}")))?;
            let file = place.rsplit_once(':').and_then(|(file, _)| std::path::absolute(file).ok());
            if file.is_none() || file != options.config_file {
                engine.acl.elsewhere.lock().insert(String::from_utf8_lossy(name).into());
            }
        }
    }
    let Some(file) = &options.aclfile else { return Ok(()) };
    if !options.users.is_empty() {
        let why = "there are 'user' lines and an aclfile too: use one of them";
        return Err(io::Error::other(format!("{}: {why}", options.users[0].0)));
    }
    *engine.acl.file.lock() = Some(file.clone());
    engine.load_acl_file().map_err(io::Error::other)
}

/// Listeners as INFO shows them.
fn listeners(options: &Options) -> Vec<String> {
    let mut list = Vec::new();
    for (name, port) in [("tcp", options.port), ("tls", options.tls_port), ("http", options.http_port)] {
        if port != 0 {
            let addresses: String = options.bind.iter().map(|address| format!("bind={address},")).collect();
            list.push(format!("name={name},{addresses}port={port}"));
        }
    }
    if let Some(path) = &options.unixsocket {
        list.push(format!("name=unix,bind={}", path.display()));
    }
    list
}

/// What `bind`, `port`, `tls-port` and `unixsocket` ask for.
fn listen(options: &Options, threads: u16) -> io::Result<Listen> {
    let (tcp, tls) = (addresses(options, options.port)?, addresses(options, options.tls_port)?);
    let unix = options.unixsocket.clone().map(|path| (path, options.unixsocketperm));
    let http = addresses(options, options.http_port)?;
    if tcp.is_empty() && tls.is_empty() && http.is_empty() && unix.is_none() {
        return Err(io::Error::other("nothing to listen on: set a port, or a unixsocket"));
    }
    Ok(Listen { tcp, tls, http, unix, backlog: options.tcp_backlog, threads })
}

/// The addresses of `bind` with a port; none where that is 0.
fn addresses(options: &Options, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut all = Vec::new();
    for name in options.bind.iter().filter(|_| port != 0) {
        let (optional, name) = name.strip_prefix('-').map_or((false, name.as_str()), |name| (true, name));
        match address(name, port) {
            Ok(address) if optional && !Server::can_listen(address) => {}
            Ok(address) => all.push(address),
            Err(_) if optional => {}
            Err(error) => return Err(with_context(&error, &format!("cannot bind to '{name}'"))),
        }
    }
    Ok(all)
}

fn address(name: &str, port: u16) -> io::Result<SocketAddr> {
    let ip = match name {
        "*" => Some(IpAddr::from([0_u8; 4])),
        "::*" => Some(IpAddr::from([0_u16; 8])),
        name => name.parse().ok(),
    };
    if let Some(ip) = ip {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found = (name, port).to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::other("the name has no address"))
}

fn greet(server: &Server<'_>, gateway: Option<&Gateway>, threads: u16, password: bool) {
    notice!(
        "Weft {} on {} worker threads, process {}",
        env!("CARGO_PKG_VERSION"),
        threads,
        std::process::id()
    );
    if let Some(gateway) = gateway {
        notice!("A gateway: {} has the keys", gateway.shown());
    } else if !server.keeps() {
        notice!(
            "Keys live in memory alone, and are gone when Weft stops: --appendonly yes keeps a log, --save makes \
             snapshots"
        );
    }
    for name in server.names() {
        let spoken = if name.ends_with("(HTTP)") { "HTTP" } else { "RESP2, RESP3, RESPB and HTTP" };
        notice!("Listening on {name} for {spoken}");
    }
    if let Some(port) = server.names().iter().find_map(|name| name.parse::<SocketAddr>().ok()) {
        let login = if password { " --askpass" } else { "" };
        notice!("Try it: redis-cli -p {}{login} set greeting hello", port.port());
    }
}

fn with_context(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_check_looks_at_every_address() {
        let there = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = vec![there.local_addr().expect("it has one")];
        let none = || Listen { tcp: vec![], tls: vec![], http: vec![], unix: None, backlog: 1, threads: 1 };
        for listen in [
            Listen { tcp: address.clone(), ..none() },
            Listen { tls: address.clone(), ..none() },
            Listen { http: address.clone(), ..none() },
        ] {
            assert_eq!(taken(&listen).expect("it is no error").len(), 1);
        }
        let file = std::env::temp_dir().join(format!("weft-start-{}.txt", std::process::id()));
        fs::write(&file, "data").expect("it can be written");
        let why = taken(&Listen { unix: Some((file.clone(), None)), ..none() }).expect_err("it is no socket");
        assert!(why.to_string().contains("no socket"), "{why}");
        fs::remove_file(&file).expect("it is there");
    }
}
