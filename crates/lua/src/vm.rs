//! Owns: a state of Lua with its two worlds, that of scripts and that of functions; compiling, calling, and what a run
//! gives. Does not own: what scripts find there (`crate::libs`), memory (`crate::memory`).
//!
//! Scripts and functions are two threads of one state, each with global names of its own: memory is shared, nothing
//! else
//! is.

mod originals;
mod pace;

use std::ffi::c_int;
use std::sync::Arc;

use mlua_sys as ffi;
use mlua_sys::lua_State;

use crate::frame::{CFunction, Frame, Kind, Raise, Shared, c_function};
use crate::host::{Host, Out};
use crate::libs;
use crate::memory::{Budget, Memory, allocate};
pub(crate) use originals::open as open_originals;
pub(crate) use pace::{Pace, hurry, runs};

/// What scripts are told of the server.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// `REDIS_VERSION`.
    pub redis_version: &'static str,
    /// `VALKEY_VERSION`.
    pub valkey_version: &'static str,
    /// `SERVER_NAME`.
    pub server_name: &'static str,
    /// `lua-enable-insecure-api`: `setfenv`, `getfenv` and `newproxy` are there.
    pub insecure: bool,
}

/// A state of Lua.
pub struct Vm {
    /// What scripts run on.
    scripts: *mut lua_State,
    /// What functions of libraries run on.
    functions: *mut lua_State,
    shared: *mut Shared,
    /// The handler of errors, which each run needs.
    handler: Chunk,
    /// Scripts may give a whole world other global names: it has its own again for the next one.
    insecure: bool,
    /// It takes little memory, and is given time before what nobody uses is collected.
    is_small: bool,
}

/// A state that takes no more is small.
const SMALL_BYTES_MAX: usize = 1 << 20;
/// What a state has grown to, of what was in use, when the next collection begins: Lua's own 200 %, and 400 % of a
/// small one. Most of what a collection of a small state goes through are its libraries, which are always in use.
const PAUSE: c_int = 200;
const PAUSE_OF_SMALL: c_int = 400;

// SAFETY: a state has no ties to a thread, and all that belongs to it, the allocator's datum included, is reached
// through this alone.
unsafe impl Send for Vm {}

/// A value that the state keeps until it is released: a function, mostly.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Chunk(c_int);

impl Chunk {
    /// Where the registry has it.
    pub(crate) const fn index(&self) -> usize {
        self.0 as usize
    }
}

/// A function that a library has registered.
#[derive(Debug)]
pub struct Registered {
    /// Its name.
    pub name: Vec<u8>,
    /// What it is for.
    pub description: Option<Vec<u8>>,
    /// Bits of [`crate::shebang::flag`].
    pub flags: u32,
    /// Itself.
    pub chunk: Chunk,
}

/// What a script that failed says: a line, its code first, and whether a command has said so and was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// The line.
    pub line: Vec<u8>,
    /// Bytes of it before where it was raised.
    pub place_at: usize,
    /// Whether it is that of a command, which has been counted.
    pub counted: bool,
}

/// Keys and arguments.
pub type Given<'g> = (&'g [&'g [u8]], &'g [&'g [u8]]);

/// Which world is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// EVAL: keys and arguments are global.
    Scripts,
    /// FCALL: they are arguments.
    Functions,
}

/// Nested tables of a result; deeper ones are an error. So a reply is none that our decoders refuse, also inside of
/// others: EXEC's, or that of a transaction around it.
pub const RESULT_DEPTH_MAX: usize = 120;
const _: () = assert!(RESULT_DEPTH_MAX + 4 <= weft_protocol::limits::NESTING_MAX as usize);

/// What `lua_pcall` calls with an error that ends a run, where it was raised. Nothing of Lua runs behind that: what the
/// metatable of an error gives as its line is its own from here on.
fn handle_last(frame: &mut Frame<'_>) -> crate::frame::Answer {
    if frame.kind(1) == Kind::Table && frame.metatable(1) {
        frame.push_copy(1);
        if !libs::base::is_protected(frame, -1) {
            libs::base::push_line(frame)?;
            frame.set_field(-2, libs::base::LINE);
        }
        frame.pop(2);
    }
    handle_error(frame)
}

/// What is made of an error: a table with its line, and where it was raised.
fn handle_error(frame: &mut Frame<'_>) -> crate::frame::Answer {
    let mut place = frame.place_of(1);
    if place.as_ref().is_some_and(|(is_c, ..)| *is_c) {
        place = frame.place_of(2);
    }
    if frame.kind(1) != Kind::Table {
        let mut line = b"ERR ".to_vec();
        line.extend_from_slice(&libs::base::text_of(frame, 1));
        frame.push_table(0, 3);
        frame.push_bytes(&line);
        frame.set_field(-2, "err");
    } else {
        frame.push_copy(1);
    }
    if let Some((_, source, line)) = place
        && !libs::base::is_protected(frame, -1)
    {
        frame.push_bytes(source.as_bytes());
        frame.set_field(-2, "source");
        frame.push_number(f64::from(line));
        frame.set_field(-2, "line");
    }
    Ok(1)
}

/// What old scripts call with an error.
pub(crate) const HANDLER: CFunction = c_function!(handle_error);

/// Prepares both worlds. Gives the handler of errors.
fn prepare(frame: &mut Frame<'_>, identity: &Identity) -> Result<Chunk, Raise> {
    let given = libs::open(frame, identity)?;
    frame.shared().given = Some(given);
    frame.push_function(c_function!(handle_last), 0);
    Ok(keep(frame))
}

impl Vm {
    /// A state; nothing when there is no memory for it.
    #[must_use]
    pub fn new(budget: Arc<Budget>, identity: &Identity) -> Option<Self> {
        let shared = Box::into_raw(Box::new(Shared::new(Memory::new(budget))));
        // SAFETY: the allocator's datum lives until `drop`, behind `lua_close`. Of memory that is being made nothing is
        // refused, so nothing raises outside of a protected call.
        unsafe {
            let scripts = ffi::lua_newstate(allocate, shared.cast());
            if scripts.is_null() {
                drop(Box::from_raw(shared));
                return None;
            }
            let functions = ffi::lua_newthread(scripts);
            ffi::luaL_ref(scripts, ffi::LUA_REGISTRYINDEX);
            let mut frame = Frame::over(scripts);
            let Ok(handler) = prepare(&mut frame, identity) else {
                panic!("the libraries open in any state: {:?}", Frame::over(scripts).bytes(-1))
            };
            let vm =
                Self { scripts, functions, shared, handler, insecure: identity.insecure, is_small: true };
            ffi::lua_gc(scripts, ffi::LUA_GCSETPAUSE, PAUSE_OF_SMALL);
            libs::enter_scripts(&mut frame);
            libs::enter_functions(&mut Frame::over(functions));
            ffi::lua_settop(scripts, 0);
            ffi::lua_settop(functions, 0);
            pace::count(scripts);
            pace::count(functions);
            (*shared).memory.leave(0);
            Some(vm)
        }
    }

    fn frame(&mut self, world: World) -> (Frame<'_>, u32) {
        let state = self.state(world);
        // SAFETY: nothing runs on the state while this is called with `&mut self`.
        unsafe { ((Frame::over(state)), (*self.shared).memory.enter()) }
    }
    const fn state(&self, world: World) -> *mut lua_State {
        match world {
            World::Scripts => self.scripts,
            World::Functions => self.functions,
        }
    }
    /// The frame's work is over.
    fn rest(&mut self, world: World, depth: u32) {
        // SAFETY: as in `frame`.
        unsafe {
            ffi::lua_settop(self.state(world), 0);
            (*self.shared).memory.leave(depth);
        }
    }

    /// Bytes that the state takes.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        // SAFETY: reads a number that only this thread writes.
        unsafe { (*self.shared).memory.used_bytes() }
    }

    /// Compiles a script; otherwise says why it is none.
    pub fn compile(&mut self, source: &[u8]) -> Result<Chunk, String> {
        let (mut frame, depth) = self.frame(World::Scripts);
        let compiled = compile(&mut frame, source, c"@user_script");
        self.rest(World::Scripts, depth);
        compiled
    }
    /// Forgets a function.
    pub fn release(&mut self, chunk: &Chunk) {
        // SAFETY: a reference of this state; nothing raises, since no memory is taken.
        unsafe { ffi::luaL_unref(self.scripts, ffi::LUA_REGISTRYINDEX, chunk.0) }
    }

    /// Runs a library's source and gives the functions that it registers.
    pub fn load_library(&mut self, source: &[u8], host: &mut dyn Host) -> Result<Vec<Registered>, String> {
        let (mut frame, depth) = self.frame(World::Functions);
        let compiled = compile(&mut frame, source, c"@user_function");
        self.rest(World::Functions, depth);
        let chunk = compiled.map_err(|error| format!("Error compiling function: {error}"))?;
        let (mut frame, depth) = self.frame(World::Functions);
        frame.shared().registering = Some(libs::server::Registering::default());
        libs::begin_library(&mut frame);
        self.rest(World::Functions, depth);
        let ran = self.run(World::Functions, &chunk, None, host);
        self.release(&chunk);
        let (mut frame, depth) = self.frame(World::Functions);
        libs::end_library(&mut frame);
        let registered = frame.shared().registering.take().unwrap_or_default().functions;
        self.rest(World::Functions, depth);
        if let Err(error) = ran {
            registered.into_iter().for_each(|function| self.release(&function.chunk));
            return Err(format!(
                "Error registering functions: {}",
                String::from_utf8_lossy(&error.line[..error.place_at])
            ));
        }
        Ok(registered)
    }

    /// Runs a script or function, and leaves its result to [`write`](Self::write).
    pub fn call(
        &mut self,
        world: World,
        chunk: &Chunk,
        (keys, args): Given<'_>,
        host: &mut dyn Host,
    ) -> Result<(), RunError> {
        self.run(world, chunk, Some((keys, args)), host)
    }

    fn run(
        &mut self,
        world: World,
        chunk: &Chunk,
        given: Option<Given<'_>>,
        host: &mut dyn Host,
    ) -> Result<(), RunError> {
        let state = self.state(world);
        // SAFETY: nothing runs on the state while this is called with `&mut self`.
        let (mut frame, depth) = unsafe { (Frame::over(state), (*self.shared).memory.enter()) };
        frame.kept_value(&self.handler);
        frame.kept_value(chunk);
        let mut arguments = 0;
        if let Some((keys, args)) = given {
            match world {
                World::Scripts => {
                    if let Some(mut given) = frame.shared().given.take() {
                        given.set(&mut frame, keys, args);
                        frame.shared().given = Some(given);
                    }
                }
                World::Functions => {
                    frame.push_list(keys);
                    frame.push_list(args);
                    arguments = 2;
                }
            }
        }
        let results = c_int::from(given.is_some());
        // SAFETY: the host is borrowed for longer than it stands there; the lifetime is only left out.
        let host: *mut (dyn Host + 'static) =
            unsafe { std::mem::transmute::<*mut (dyn Host + '_), _>(std::ptr::from_mut(host)) };
        frame.shared().host = Some(host);
        // SAFETY: function and arguments are on top, the handler below. No frame of Rust stands between this and what
        // Lua runs, so memory may be refused and errors may be raised: they are caught here.
        let code = unsafe {
            (*self.shared).memory.leave(0);
            (*self.shared).pace.begin();
            pace::runs(state, self.shared);
            let code = ffi::lua_pcall(state, arguments, results, 1);
            (*self.shared).memory.leave(depth + 1);
            // Not who has raised: a coroutine that nobody keeps any more may be collected from here on.
            pace::rests(&mut *self.shared);
            code
        };
        // SAFETY: nothing runs on it any more.
        let mut frame = unsafe { Frame::over(state) };
        let code = match code {
            ffi::LUA_OK if given.is_some() && frame.kind(-1) == Kind::Table => {
                libs::reply::weigh(&mut frame, 0, &mut 0).map_or(ffi::LUA_ERRRUN, |()| ffi::LUA_OK)
            }
            code => code,
        };
        // Lua 5.1 does not collect when memory is refused: what this run has left would be missing to the next.
        frame.shared().memory.rests();
        if frame.shared().memory.is_high() {
            frame.collect();
        }
        frame.shared().memory.rested();
        let killed = frame.shared().killed.take();
        frame.shared().host = None;
        if self.insecure {
            match world {
                World::Scripts => libs::enter_scripts(&mut frame),
                World::Functions => libs::enter_functions(&mut frame),
            }
        }
        let outcome = match &killed {
            _ if code == ffi::LUA_OK && killed.is_none() => Ok(()),
            Some(why) => {
                // SAFETY: both are there.
                unsafe {
                    pace::count(self.scripts);
                    pace::count(self.functions);
                }
                let error = if code == ffi::LUA_OK { None } else { Some(error_of(&mut frame)) };
                // Where it was told in the middle of something that cannot be left, that had an error of its own.
                Err(error.filter(|error| error.line.starts_with(why.as_bytes())).unwrap_or_else(|| {
                    RunError { line: why.as_bytes().to_vec(), place_at: why.len(), counted: false }
                }))
            }
            None => Err(error_of(&mut frame)),
        };
        // SAFETY: as in `rest`; a result stays for `write`.
        unsafe {
            if outcome.is_err() {
                ffi::lua_settop(state, 0);
            }
            let is_small = (*self.shared).memory.used_bytes() <= SMALL_BYTES_MAX;
            if is_small != self.is_small {
                self.is_small = is_small;
                ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, if is_small { PAUSE_OF_SMALL } else { PAUSE });
            }
            (*self.shared).memory.leave(depth);
        }
        outcome
    }

    /// Writes the result of the call before, and forgets it.
    pub fn write(&mut self, world: World, out: &mut dyn Out) {
        let (mut frame, depth) = self.frame(world);
        // The result is on top; a frame over it has it among its arguments.
        libs::reply::write(&mut frame, out, 0);
        self.rest(world, depth);
    }
    /// Forgets the result of the call before.
    pub fn forget(&mut self, world: World) {
        let (_, depth) = self.frame(world);
        self.rest(world, depth);
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // SAFETY: nothing runs on the state, and nobody has it any more.
        unsafe {
            ffi::lua_close(self.scripts);
            drop(Box::from_raw(self.shared));
        }
    }
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vm").field("used_bytes", &self.used_bytes()).finish_non_exhaustive()
    }
}

fn compile(frame: &mut Frame<'_>, source: &[u8], name: &std::ffi::CStr) -> Result<Chunk, String> {
    match frame.load(source, name) {
        Ok(()) => Ok(keep(frame)),
        Err(()) => Err(String::from_utf8_lossy(frame.bytes(-1).unwrap_or_default()).into_owned()),
    }
}

/// Takes a function from the top and keeps it.
pub(crate) fn keep(frame: &mut Frame<'_>) -> Chunk {
    // SAFETY: a value is on top; memory is not refused while a frame of Rust is there.
    Chunk(unsafe { ffi::luaL_ref(frame.state(), ffi::LUA_REGISTRYINDEX) })
}

/// What a run that has raised says.
fn error_of(frame: &mut Frame<'_>) -> RunError {
    if frame.kind(-1) != Kind::Table {
        let text = libs::base::text_of(frame, -1);
        let mut line = b"ERR Error running script, ".to_vec();
        line.extend_from_slice(&text[..text.len().min(SHOWN_BYTES_MAX)]);
        return RunError { place_at: line.len(), line, counted: false };
    }
    let field = |frame: &mut Frame<'_>, name: &str| {
        frame.field(-1, name);
        let bytes = frame.bytes(-1).map(|bytes| libs::reply::until_zero(bytes).to_vec());
        // SAFETY: the value pushed above.
        unsafe { ffi::lua_settop(frame.state(), -2) };
        bytes
    };
    let mut line = field(frame, "err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    let place_at = line.len();
    if let (Some(source), Some(number)) = (field(frame, "source"), field(frame, "line")) {
        line.extend_from_slice(b" script: on ");
        line.extend_from_slice(&source);
        line.push(b':');
        line.extend_from_slice(&number);
        line.push(b'.');
    }
    frame.field(-1, libs::server::COUNTED);
    RunError { line, place_at, counted: frame.truth(-1) }
}

/// Bytes of an error that is no table which its reply repeats.
const SHOWN_BYTES_MAX: usize = 100;
