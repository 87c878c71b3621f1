//! Owns: `redis` and `server`, one table: calling commands, replies that scripts make, logs, levels and versions. Does
//! not own: what commands do (`crate::Host`).

use sha1::{Digest, Sha1};

use crate::frame::{Answer, Frame, Kind, PIECE_BYTES, Raise, c_function};
use crate::host::{Called, Level};
use crate::libs::set_functions;
use crate::shebang::flag;
use crate::vm::{Identity, Registered, keep};

/// The field of an error's table that says that a command has answered it, and it was counted.
pub(crate) const COUNTED: &str = "ignore_error_stats_update";

/// Whose table it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Scripts have all of it.
    Scripts,
    /// Functions have nothing that was only kept for old scripts.
    Functions,
    /// While a library is loaded it can register functions, and call nothing.
    Loading,
}

/// Arguments of one call that stand on the machine's stack; more take memory.
const FEW_ARGS: usize = 16;

/// Functions that one library may register.
const REGISTERED_MAX: usize = 10_000;
/// Bytes of a function's name.
const NAME_BYTES_MAX: usize = 1 << 10;
/// Bytes of names and descriptions of one library together: they are kept beside Lua's memory, once for all workers.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// Pushes the table.
pub(super) fn open(frame: &mut Frame<'_>, identity: &Identity, part: Part) {
    frame.push_table(0, 32);
    set_functions(frame, &[("log", c_function!(log))]);
    let levels = [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];
    set_numbers(frame, &levels);
    set_versions(frame, identity);
    if part == Part::Loading {
        return set_functions(frame, &[("register_function", c_function!(register_function))]);
    }
    let functions = [
        ("call", c_function!(call)),
        ("pcall", c_function!(pcall)),
        ("setresp", c_function!(setresp)),
        ("sha1hex", c_function!(sha1hex)),
        ("error_reply", c_function!(error_reply)),
        ("status_reply", c_function!(status_reply)),
        ("set_repl", c_function!(set_repl)),
        ("acl_check_cmd", c_function!(acl_check_cmd)),
    ];
    set_functions(frame, &functions);
    let targets =
        [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
    set_numbers(frame, &targets);
    if part == Part::Scripts {
        let functions = [
            ("breakpoint", c_function!(breakpoint)),
            ("debug", c_function!(debug)),
            ("replicate_commands", c_function!(replicate_commands)),
        ];
        set_functions(frame, &functions);
    }
}

fn set_numbers(frame: &mut Frame<'_>, numbers: &[(&str, u32)]) {
    for (name, number) in numbers {
        frame.push_number(f64::from(*number));
        frame.set_field(-2, name);
    }
}
fn set_versions(frame: &mut Frame<'_>, identity: &Identity) {
    let number = |version: &str| {
        version
            .split('.')
            .take(3)
            .fold(0, |number, part| number << 8 | part.parse::<u32>().unwrap_or(0) & 0xFF)
    };
    let (redis, valkey) = (identity.redis_version, identity.valkey_version);
    set_numbers(frame, &[("REDIS_VERSION_NUM", number(redis)), ("VALKEY_VERSION_NUM", number(valkey))]);
    let texts = [("REDIS_VERSION", redis), ("VALKEY_VERSION", valkey), ("SERVER_NAME", identity.server_name)];
    for (name, text) in texts {
        frame.push_bytes(text.as_bytes());
        frame.set_field(-2, name);
    }
}

/// An error as `redis.call` raises its own.
fn fail(frame: &mut Frame<'_>, text: &str) -> Raise {
    frame.raise_table(&format!("ERR {text}"))
}

/// Runs `with` with all arguments as bytes; an error is pushed as a table.
fn with_args<R>(frame: &mut Frame<'_>, with: impl FnOnce(&mut Frame<'_>, &[&[u8]]) -> R) -> Result<R, Raise> {
    let count = frame.args();
    if count == 0 {
        return Err(fail(frame, "Please specify at least one argument for this call"));
    }
    if count <= FEW_ARGS {
        let mut args = [&b""[..]; FEW_ARGS];
        for (at, arg) in args.iter_mut().enumerate().take(count) {
            *arg = word(frame, at + 1)?;
        }
        has_room(frame, &args[..count])?;
        return Ok(with(frame, &args[..count]));
    }
    let args = (1..=count).map(|at| word(frame, at)).collect::<Result<Vec<&[u8]>, Raise>>()?;
    has_room(frame, &args)?;
    Ok(with(frame, &args))
}

/// They are composed once more, and one text may stand there thousands of times: together they are no more than scripts
/// may have.
#[inline]
fn has_room(frame: &mut Frame<'_>, args: &[&[u8]]) -> Result<(), Raise> {
    let bytes = args.iter().fold(0, |bytes: usize, arg| bytes.saturating_add(arg.len()));
    if bytes <= PIECE_BYTES {
        return Ok(());
    }
    if bytes > frame.shared().memory.limit_bytes() {
        return Err(fail(frame, "not enough memory for the arguments of this call"));
    }
    frame.step_bytes(bytes)
}

/// An argument of a command.
#[inline]
fn word<'f>(frame: &mut Frame<'f>, arg: usize) -> Result<&'f [u8], Raise> {
    match frame.kind(arg as i32) {
        Kind::String => {}
        // Unlike Lua's own, without loss.
        Kind::Number => {
            let number = frame.number(arg as i32).unwrap_or_default();
            push_number_text(frame, number);
            frame.replace(arg as i32);
        }
        _ => return Err(fail(frame, "Command arguments must be strings or integers")),
    }
    Ok(frame.arg_string(arg))
}

fn push_number_text(frame: &mut Frame<'_>, number: f64) {
    let integer = number as i64;
    if integer as f64 == number && number.abs() <= (i64::MAX / 2) as f64 {
        return frame.push_bytes(integer.to_string().as_bytes());
    }
    // C says the sign of what is no number, which 0/0 has on some machines.
    if number.is_nan() && number.is_sign_negative() {
        return frame.push_bytes(b"-nan");
    }
    let mut text = [0; weft_protocol::number::DOUBLE_TEXT_MAX];
    frame.push_bytes(weft_protocol::number::double_text(number, &mut text));
}

fn run(frame: &mut Frame<'_>) -> Result<Called, Raise> {
    frame.reserve(8)?;
    // Also whoever catches that it is told to end calls nothing more.
    if let Some(why) = frame.shared().killed.clone() {
        return Err(frame.raise_table(&why));
    }
    if frame.shared().pace.calls() {
        frame.tick()?;
    }
    let called = with_args(frame, |frame, args| frame.with_host(|host, frame| host.call(args, frame)))?;
    match called {
        Some(Called::NoRoom) => behind_all(frame),
        Some(called) => Ok(called),
        None => Err(fail(frame, "commands can be called while a script runs, and none does")),
    }
}
/// A reply for which there was no room: there may be when everything that is not used has been collected.
#[cold]
fn behind_all(frame: &mut Frame<'_>) -> Result<Called, Raise> {
    frame.collect();
    match frame.with_host(|host, frame| host.push_again(frame)) {
        None | Some(Called::NoRoom) => Err(fail(frame, "not enough memory for the reply of this call")),
        Some(called) => Ok(called),
    }
}

fn call(frame: &mut Frame<'_>) -> Answer {
    match run(frame)? {
        Called::Error => Err(frame.raise_top()),
        _ => Ok(1),
    }
}
fn pcall(frame: &mut Frame<'_>) -> Answer {
    // What would be raised stands on top, as what would be given does.
    let _ = run(frame);
    Ok(1)
}

fn setresp(frame: &mut Frame<'_>) -> Answer {
    if frame.args() != 1 {
        return Err(fail(frame, "server.setresp() requires one argument."));
    }
    let version = frame.number(1).unwrap_or(0.0) as i64;
    if version != 2 && version != 3 {
        return Err(fail(frame, "RESP version must be 2 or 3."));
    }
    if let Some(host) = frame.host() {
        host.set_resp(version as u8);
    }
    Ok(0)
}

/// The SHA-1 of bytes as clients write it.
#[must_use]
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    hex(&Sha1::digest(bytes).into())
}
fn hex(digest: &[u8; 20]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 40];
    for (byte, place) in digest.iter().zip(text.chunks_exact_mut(2)) {
        place[0] = DIGITS[usize::from(byte >> 4)];
        place[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

fn sha1hex(frame: &mut Frame<'_>) -> Answer {
    if frame.args() != 1 {
        return Err(fail(frame, "wrong number of arguments"));
    }
    let digest = match frame.kind(1) {
        Kind::String | Kind::Number => {
            let bytes = frame.arg_bytes(1)?;
            let mut sha = Sha1::new();
            for piece in bytes.chunks(PIECE_BYTES) {
                frame.step_bytes(piece.len())?;
                sha.update(piece);
            }
            hex(&sha.finalize().into())
        }
        _ => sha1_hex(b""),
    };
    frame.push_bytes(&digest);
    Ok(1)
}

fn only_string(frame: &mut Frame<'_>) -> bool {
    if frame.args() == 1 && frame.kind(1) == Kind::String {
        return true;
    }
    frame.push_error("ERR wrong number or type of arguments");
    false
}

fn error_reply(frame: &mut Frame<'_>) -> Answer {
    if !only_string(frame) {
        return Ok(1);
    }
    let text = frame.arg_bytes(1)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let trim = |text: &[u8]| {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let from = text.iter().position(|byte| !is_end(byte)).unwrap_or(text.len());
        let to = text.iter().rposition(|byte| !is_end(byte)).map_or(from, |last| last + 1);
        text[from..to.max(from)].to_vec()
    };
    let mut line = Vec::with_capacity(text.len() + 4);
    match text.iter().position(|byte| *byte == b' ') {
        Some(blank) => {
            line.extend_from_slice(&text[..=blank]);
            line.extend_from_slice(&trim(&text[blank + 1..]));
        }
        None => {
            line.extend_from_slice(b"ERR ");
            line.extend_from_slice(text);
        }
    }
    frame.push_table(0, 1);
    frame.push_bytes(&line);
    frame.set_field(-2, "err");
    Ok(1)
}

fn status_reply(frame: &mut Frame<'_>) -> Answer {
    if only_string(frame) {
        frame.push_table(0, 1);
        frame.push_copy(1);
        frame.set_field(-2, "ok");
    }
    Ok(1)
}

fn set_repl(frame: &mut Frame<'_>) -> Answer {
    if frame.args() != 1 {
        return Err(fail(frame, "server.set_repl() requires one argument."));
    }
    let targets = frame.number(1).unwrap_or(0.0).trunc();
    if !(0.0..4.0).contains(&targets) {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(fail(frame, text));
    }
    Ok(0)
}

fn acl_check_cmd(frame: &mut Frame<'_>) -> Answer {
    let may = with_args(frame, |frame, args| frame.host().and_then(|host| host.may(args)))?;
    match may {
        Some(may) => frame.push_boolean(may),
        None => return Err(fail(frame, "Invalid command passed to server.acl_check_cmd()")),
    }
    Ok(1)
}

/// What is beyond is left out of the log, as Valkey does.
const LOG_BYTES_MAX: usize = 1 << 10;

fn log(frame: &mut Frame<'_>) -> Answer {
    if frame.args() < 2 {
        return Err(fail(frame, "server.log() requires two arguments or more."));
    }
    let Some(number) = frame.number(1) else {
        return Err(fail(frame, "First argument must be a number (log level)."));
    };
    let level = match number as i64 {
        _ if number.is_nan() => return Err(fail(frame, "Invalid log level.")),
        0 => Level::Debug,
        1 => Level::Verbose,
        2 => Level::Notice,
        3 => Level::Warning,
        _ => return Err(fail(frame, "Invalid log level.")),
    };
    let mut text = Vec::new();
    for arg in 2..=frame.args() {
        if matches!(frame.kind(arg as i32), Kind::String | Kind::Number) {
            if arg > 2 {
                text.push(b' ');
            }
            let bytes = frame.arg_bytes(arg)?;
            text.extend_from_slice(&bytes[..bytes.len().min(LOG_BYTES_MAX - text.len().min(LOG_BYTES_MAX))]);
        }
    }
    if let Some(host) = frame.host() {
        host.log(level, &text);
    }
    Ok(0)
}

/// There is no debugger: nothing stops.
fn breakpoint(frame: &mut Frame<'_>) -> Answer {
    frame.push_boolean(false);
    Ok(1)
}
fn debug(_: &mut Frame<'_>) -> Answer {
    Ok(0)
}
fn replicate_commands(frame: &mut Frame<'_>) -> Answer {
    frame.push_boolean(true);
    Ok(1)
}

fn register_function(frame: &mut Frame<'_>) -> Answer {
    if frame.shared().registering.is_none() {
        let text = "server.register_function can only be called on FUNCTION LOAD command";
        return Err(fail(frame, text));
    }
    let function = match frame.args() {
        1 => named(frame)?,
        2 => positional(frame)?,
        _ => return Err(fail(frame, "wrong number of arguments to server.register_function")),
    };
    if function.name.len() > NAME_BYTES_MAX {
        return Err(fail(frame, "the name of a function is longer than 1024 bytes"));
    }
    let registering = frame.shared().registering.get_or_insert_default();
    if registering.functions.len() == REGISTERED_MAX {
        return Err(fail(frame, "a library registers at most 10000 functions"));
    }
    let bytes = function.name.len() + function.description.as_ref().map_or(0, Vec::len);
    if registering.text_bytes + bytes > TEXT_BYTES_MAX {
        return Err(fail(
            frame,
            "names and descriptions of a library's functions are longer than 256 KiB together",
        ));
    }
    registering.text_bytes += bytes;
    let Declared { name, description, flags } = function;
    let chunk = keep(frame);
    let registering = frame.shared().registering.get_or_insert_default();
    registering.functions.push(Registered { name, description, flags, chunk });
    Ok(0)
}

/// What a library says of a function, which stands on top.
struct Declared {
    name: Vec<u8>,
    description: Option<Vec<u8>>,
    flags: u32,
}
/// What a library registers while it is loaded.
#[derive(Default)]
pub(crate) struct Registering {
    pub(crate) functions: Vec<Registered>,
    /// Bytes of their names and descriptions.
    text_bytes: usize,
}

/// The text at a place, or as much of it as shows that it is too long.
fn text_at(frame: &mut Frame<'_>, at: i32) -> Vec<u8> {
    frame.push_copy(at);
    let bytes = frame.bytes(-1).unwrap_or_default();
    let text = bytes[..bytes.len().min(TEXT_BYTES_MAX + 1)].to_vec();
    frame.pop(1);
    text
}

fn positional(frame: &mut Frame<'_>) -> Result<Declared, Raise> {
    if !matches!(frame.kind(1), Kind::String | Kind::Number) {
        return Err(fail(frame, "first argument to server.register_function must be a string"));
    }
    if frame.kind(2) != Kind::Function {
        return Err(fail(frame, "second argument to server.register_function must be a function"));
    }
    let name = text_at(frame, 1);
    frame.push_copy(2);
    Ok(Declared { name, description: None, flags: 0 })
}

fn named(frame: &mut Frame<'_>) -> Result<Declared, Raise> {
    if frame.kind(1) != Kind::Table {
        let text = "calling server.register_function with a single argument is only applicable to Lua table \
                    (representing named arguments).";
        return Err(fail(frame, text));
    }
    let (mut name, mut description, mut flags, mut has_callback) = (None, None, 0, false);
    frame.push_nil();
    while frame.next(1) == Some(true) {
        if frame.kind(-2) == Kind::Number {
            return Err(fail(frame, "unknown argument given to server.register_function"));
        }
        if frame.kind(-2) != Kind::String {
            return Err(fail(frame, "named argument key given to server.register_function is not a string"));
        }
        let key = frame.bytes(-2).unwrap_or_default().to_ascii_lowercase();
        let text = matches!(frame.kind(-1), Kind::String | Kind::Number);
        let must = match &key[..] {
            b"function_name" if text => {
                name = Some(text_at(frame, -1));
                None
            }
            b"function_name" => {
                Some("function_name argument given to server.register_function must be a string")
            }
            b"description" if text => {
                description = Some(text_at(frame, -1));
                None
            }
            b"description" => Some("description argument given to server.register_function must be a string"),
            b"callback" if frame.kind(-1) == Kind::Function => {
                has_callback = true;
                None
            }
            b"callback" => Some("callback argument given to server.register_function must be a function"),
            b"flags" if frame.kind(-1) == Kind::Table => match read_flags(frame)? {
                Some(read) => {
                    flags = read;
                    None
                }
                None => Some("unknown flag given"),
            },
            b"flags" => {
                Some("flags argument to server.register_function must be a table representing function flags")
            }
            _ => Some("unknown argument given to server.register_function"),
        };
        if let Some(text) = must {
            return Err(fail(frame, text));
        }
        frame.pop(1);
    }
    let Some(name) = name else {
        return Err(fail(frame, "server.register_function must get a function name argument"));
    };
    if !has_callback {
        return Err(fail(frame, "server.register_function must get a callback argument"));
    }
    // The key may be written in any case.
    frame.push_nil();
    while frame.next(1) == Some(true) {
        if frame.bytes(-2).is_some_and(|key| key.eq_ignore_ascii_case(b"callback")) {
            break;
        }
        frame.pop(1);
    }
    Ok(Declared { name, description, flags })
}

/// The flags of the table on top; nothing where one is unknown.
fn read_flags(frame: &mut Frame<'_>) -> Result<Option<u32>, Raise> {
    let mut flags = 0;
    for index in 1.. {
        frame.step(1)?;
        frame.raw_get_at(-1, index);
        if frame.kind(-1) == Kind::Nil {
            frame.pop(1);
            break;
        }
        let one = frame.bytes(-1).and_then(flag::of);
        frame.pop(1);
        let Some(one) = one else { return Ok(None) };
        flags |= one;
    }
    Ok(Some(flags))
}
