//! Owns: what a function written in Rust sees of Lua: its arguments, the values it pushes, the errors it raises. Does
//! not own: the state and its memory (`crate::vm`), the functions (`crate::libs`).
//!
//! **No call here raises.** Lua's C interface raises errors by `longjmp`, past Rust frames whose destructors would not
//! run. So a function returns its error, and [`enter`], which owns nothing, raises it when the function is over. Three
//! kinds of calls could raise before: those that allocate, and while Rust runs the allocator hands out memory beyond
//! the
//! limit (`crate::memory`); those that may call metamethods, and here are none but [`Frame::call`], which catches; and
//! those whose stack is full, and each push asks for its place.
//!
//! Arguments of the function stay where they are until it is over: nothing here pops below them, so bytes of an
//! argument
//! may be looked at for the function's lifetime `'f`.

mod arguments;
mod errors;
mod source;

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use mlua_sys as ffi;
pub(crate) use mlua_sys::lua_State;

use crate::host::{Host, Verdict};
use crate::memory::Memory;

/// What kind of value stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing stands there.
    None,
    /// nil.
    Nil,
    /// true or false.
    Boolean,
    /// A pointer of the libraries' own: `cjson.null`.
    Pointer,
    /// A double.
    Number,
    /// Bytes.
    String,
    /// A table.
    Table,
    /// A function of either language.
    Function,
    /// An object of C.
    Userdata,
    /// A coroutine.
    Thread,
}

impl Kind {
    const fn of(number: c_int) -> Self {
        match number {
            ffi::LUA_TNIL => Self::Nil,
            ffi::LUA_TBOOLEAN => Self::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Self::Pointer,
            ffi::LUA_TNUMBER => Self::Number,
            ffi::LUA_TSTRING => Self::String,
            ffi::LUA_TTABLE => Self::Table,
            ffi::LUA_TFUNCTION => Self::Function,
            ffi::LUA_TUSERDATA => Self::Userdata,
            ffi::LUA_TTHREAD => Self::Thread,
            _ => Self::None,
        }
    }
    /// As `type` names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "no value",
            Self::Nil => "nil",
            Self::Boolean => "boolean",
            Self::Pointer | Self::Userdata => "userdata",
            Self::Number => "number",
            Self::String => "string",
            Self::Table => "table",
            Self::Function => "function",
            Self::Thread => "thread",
        }
    }
}

/// The error stands on top of the stack, to be raised.
#[derive(Debug)]
pub struct Raise(());

/// What a function gives back: how many values it leaves on the stack.
pub type Answer = Result<usize, Raise>;

/// A function that scripts can call.
pub(crate) type Function = fn(&mut Frame<'_>) -> Answer;

/// One call of a function written in Rust: a window of Lua's stack, the arguments first.
#[derive(Debug)]
pub struct Frame<'f> {
    l: *mut lua_State,
    shared: *mut Shared,
    args: usize,
    /// So many values can be pushed, and perhaps more: pops do not raise it.
    room: u32,
    _call: PhantomData<&'f mut lua_State>,
}

/// What stands behind the allocator of a Lua state: its memory, and who runs a script in it.
pub(crate) struct Shared {
    pub(crate) memory: Memory,
    pub(crate) pace: crate::vm::Pace,
    /// Who the script that runs belongs to, for as long as it runs.
    pub(crate) host: Option<*mut (dyn Host + 'static)>,
    /// Steps since the host was asked last.
    steps: u32,
    /// The script is to end, whatever it catches.
    pub(crate) killed: Option<Box<str>>,
    /// Dice of `math.random`.
    pub(crate) dice: crate::libs::dice::Dice,
    /// KEYS and ARGV.
    pub(crate) given: Option<crate::libs::Given>,
    /// A library is being loaded, and may register functions.
    pub(crate) registering: Option<crate::libs::server::Registering>,
}

impl Shared {
    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            memory,
            pace: crate::vm::Pace::new(),
            host: None,
            steps: 0,
            killed: None,
            dice: crate::libs::dice::Dice::default(),
            given: None,
            registering: None,
        }
    }
}

/// Instructions of Lua between two looks of the hook, and steps of functions that count as much.
pub(crate) const STEPS_MAX: u32 = 10_000;
/// Bytes that are gone through in one step.
const STEP_BYTES: usize = 64;
/// What goes through many bytes counts so many at once.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// What a state shares with all its threads.
///
/// # Safety
/// `l` is a state that `crate::vm` has made, or a thread of one. Nobody else may look at it meanwhile.
pub(crate) unsafe fn shared<'s>(l: *mut lua_State) -> &'s mut Shared {
    let mut place: *mut c_void = std::ptr::null_mut();
    // SAFETY: the state was made with a `Shared` as its allocator's datum, which lives longer than the state.
    unsafe {
        ffi::lua_getallocf(l, &raw mut place);
        &mut *place.cast()
    }
}

/// Runs a function of Rust that Lua has called, and raises what it gives as an error.
///
/// # Safety
/// Called by Lua for `l`, as the last thing in a C function that owns nothing: raising leaves it by `longjmp`.
pub(crate) unsafe fn enter(l: *mut lua_State, function: Function) -> c_int {
    // SAFETY: Lua has called with its own state; `Frame` keeps to what its head says, so nothing raises inside; the
    // frames that `lua_error` leaves, this one and its caller, own nothing.
    unsafe {
        let shared: *mut Shared = shared(l);
        let depth = (*shared).memory.enter();
        let args = ffi::lua_gettop(l).max(0) as usize;
        let room = ffi::LUA_MINSTACK as u32;
        let mut frame = Frame { l, shared, args, room, _call: PhantomData };
        let answer = function(&mut frame);
        (*shared).memory.leave(depth);
        match answer {
            Ok(values) => values as c_int,
            Err(Raise(())) => ffi::lua_error(l),
        }
    }
}

/// The C function of a function of Rust.
macro_rules! c_function {
    ($function:expr) => {{
        #[allow(unsafe_code)]
        unsafe extern "C-unwind" fn entry(l: *mut $crate::frame::lua_State) -> std::ffi::c_int {
            // SAFETY: Lua calls it, and it owns nothing.
            unsafe { $crate::frame::enter(l, $function) }
        }
        $crate::frame::CFunction(entry)
    }};
}
pub(crate) use c_function;

/// A function of Rust as Lua can have it.
#[derive(Clone, Copy)]
pub(crate) struct CFunction(pub(crate) ffi::lua_CFunction);

impl Frame<'_> {
    /// A frame over a state that stands still, for whoever prepares it.
    ///
    /// # Safety
    /// `l` is a state of `crate::vm`, on which nothing runs; the memory's depth has been entered.
    pub(crate) unsafe fn over(l: *mut lua_State) -> Self {
        // SAFETY: the caller's.
        let (shared, args) = unsafe { (shared(l), ffi::lua_gettop(l).max(0) as usize) };
        // As many places as Lua keeps for a hook.
        Self { l, shared, args, room: ffi::LUA_MINSTACK as u32, _call: PhantomData }
    }
    pub(crate) const fn state(&self) -> *mut lua_State {
        self.l
    }
    /// What the state shares. Not to be kept over a call into Lua.
    pub(crate) fn shared(&mut self) -> &mut Shared {
        // SAFETY: the frame is of such a state, and `&mut self` keeps others away.
        unsafe { &mut *self.shared }
    }
    /// Whom the script belongs to that runs.
    pub(crate) fn host(&mut self) -> Option<&mut dyn Host> {
        // SAFETY: `crate::vm` sets it for as long as it borrows the host, and takes it away before it gives it back. A
        // call of the host does not come back here: it has no state of Lua but this frame, lent to it.
        self.shared().host.map(|host| unsafe { &mut *host } as &mut dyn Host)
    }
    /// The host with the frame, for calls that answer by pushing.
    pub(crate) fn with_host<R>(&mut self, with: impl FnOnce(&mut dyn Host, &mut Self) -> R) -> Option<R> {
        let host = self.shared().host?;
        // SAFETY: as for `host`; the frame is no part of the host.
        Some(with(unsafe { &mut *host }, self))
    }

    /// Counts steps of a loop that Lua does not see; asks the host from time to time whether to go on.
    #[inline]
    pub(crate) fn step(&mut self, steps: usize) -> Result<(), Raise> {
        let shared = self.shared();
        shared.steps = shared.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if shared.steps < STEPS_MAX {
            return Ok(());
        }
        self.tick()?;
        // What a function makes of Lua's is not refused while it runs.
        self.fits(0)
    }
    /// The same for so many bytes that are gone through.
    #[inline]
    pub(crate) fn step_bytes(&mut self, bytes: usize) -> Result<(), Raise> {
        self.step(bytes / STEP_BYTES)
    }
    /// Asks the host whether to go on.
    #[cold]
    pub(crate) fn tick(&mut self) -> Result<(), Raise> {
        self.shared().steps = 0;
        if self.shared().memory.is_high() {
            self.collect();
        }
        self.look();
        let Some(why) = self.shared().killed.clone() else { return Ok(()) };
        Err(self.raise_table(&why))
    }
    /// Asks the host; says whether it goes on.
    fn look(&mut self) -> bool {
        // Also while it ends: that may take its time, and others want to be served.
        if let Some(Verdict::End(why)) = self.host().map(|host| host.tick())
            && self.shared().killed.is_none()
        {
            self.shared().killed = Some(why);
        }
        self.shared().pace.looked();
        self.shared().killed.is_none()
    }

    /// How many arguments the function was called with.
    #[must_use]
    pub const fn args(&self) -> usize {
        self.args
    }
    /// How many values stand on the stack.
    #[must_use]
    pub fn top(&self) -> usize {
        // SAFETY: reads the state.
        unsafe { ffi::lua_gettop(self.l) }.max(0) as usize
    }
    /// What stands at a place: from 1, or from −1 at the top down.
    #[must_use]
    pub fn kind(&self, at: i32) -> Kind {
        // SAFETY: any place within the frame may be asked for.
        Kind::of(unsafe { ffi::lua_type(self.l, at) })
    }
    /// A number, or a text that is one.
    #[must_use]
    pub fn number(&self, at: i32) -> Option<f64> {
        // SAFETY: any place may be asked for; neither call raises.
        unsafe { (ffi::lua_isnumber(self.l, at) != 0).then(|| ffi::lua_tonumber(self.l, at)) }
    }
    /// true or false as a condition has it.
    #[must_use]
    pub fn truth(&self, at: i32) -> bool {
        // SAFETY: any place may be asked for.
        unsafe { ffi::lua_toboolean(self.l, at) != 0 }
    }
    /// The bytes of a string, or of a number, which becomes a string where it stands.
    #[must_use]
    pub fn bytes(&self, at: i32) -> Option<&[u8]> {
        let mut len = 0;
        // SAFETY: the string stands on the stack for as long as the frame is borrowed, so it is not collected; nothing
        // raises (see above).
        unsafe {
            let start = ffi::lua_tolstring(self.l, at, &raw mut len);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
        }
    }
    /// Memory that a table, function or pointer has for itself: to tell one from another.
    #[must_use]
    pub fn address(&self, at: i32) -> *const c_void {
        // SAFETY: any place may be asked for.
        unsafe { ffi::lua_topointer(self.l, at) }
    }
    /// The length of a string or table, without metamethods.
    #[must_use]
    pub fn raw_len(&self, at: i32) -> usize {
        // SAFETY: any place may be asked for.
        unsafe { ffi::lua_objlen(self.l, at) }
    }
    /// Whether two values are the same, without metamethods.
    #[must_use]
    pub fn raw_equal(&self, one: i32, two: i32) -> bool {
        // SAFETY: any place may be asked for.
        unsafe { ffi::lua_rawequal(self.l, one, two) != 0 }
    }

    /// Makes sure that so many values can be pushed.
    pub fn reserve(&mut self, values: usize) -> Result<(), Raise> {
        let values = u32::try_from(values).unwrap_or(u32::MAX);
        if self.has_places(values) { Ok(()) } else { Err(self.error("stack overflow")) }
    }
    /// Whether so many values can be pushed.
    #[must_use]
    pub fn has_places(&mut self, values: u32) -> bool {
        values <= self.room || self.make_room(values) || self.has_kept(values)
    }
    /// Whether so many values have their place in what Lua keeps for every function besides its arguments. These alone
    /// may be more than a stack's limit: `redis.call('LPUSH', 'l', unpack(list))` with the 8000 that `unpack` gives.
    fn has_kept(&mut self, values: u32) -> bool {
        let end = self.args.saturating_add(ffi::LUA_MINSTACK as usize);
        let there = self.top().saturating_add(values as usize) <= end;
        if there {
            self.room = values;
        }
        there
    }
    /// Has so many places on the stack, if they can be had.
    fn make_room(&mut self, values: u32) -> bool {
        // SAFETY: growing the stack only allocates; beyond its limit it says 0. What it grants stays until the function
        // is over: a stack that is made smaller keeps it.
        let there =
            unsafe { ffi::lua_checkstack(self.l, c_int::try_from(values).unwrap_or(c_int::MAX)) } != 0;
        if there {
            self.room = values;
        }
        there
    }
    /// A place on the stack for what is pushed: Lua keeps some for every function, more is asked for before loops.
    #[inline]
    fn place(&mut self) {
        if self.room == 0 {
            self.more_room();
        }
        self.room -= 1;
    }
    #[cold]
    fn more_room(&mut self) {
        // A stack of 8000 values for one function is full only for who has not asked.
        let there = self.make_room(ffi::LUA_MINSTACK as u32) || self.make_room(1) || self.has_kept(1);
        assert!(there, "whoever pushes many values asks for their place before");
    }
    /// Pushes nil.
    pub fn push_nil(&mut self) {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_pushnil(self.l) }
    }
    /// Pushes true or false.
    pub fn push_boolean(&mut self, value: bool) {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_pushboolean(self.l, c_int::from(value)) }
    }
    /// Pushes a number.
    pub fn push_number(&mut self, value: f64) {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_pushnumber(self.l, value) }
    }
    /// Pushes bytes as a string.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.place();
        // SAFETY: there is a place; the bytes are copied.
        unsafe {
            ffi::lua_pushlstring_(self.l, bytes.as_ptr().cast(), bytes.len());
        }
    }
    /// Pushes another value once more.
    pub fn push_copy(&mut self, at: i32) {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_pushvalue(self.l, at) }
    }
    /// Pushes the null pointer that stands for JSON's null.
    pub(crate) fn push_null(&mut self) {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_pushlightuserdata(self.l, std::ptr::null_mut()) }
    }
    /// Pushes a pointer that is only compared.
    pub(crate) fn push_pointer(&mut self, pointer: *const c_void) {
        self.place();
        // SAFETY: there is a place; it is never followed.
        unsafe { ffi::lua_pushlightuserdata(self.l, pointer.cast_mut()) }
    }
    /// Pushes a function of Rust, which keeps so many values of the top of the stack.
    pub(crate) fn push_function(&mut self, function: CFunction, kept: usize) {
        self.place();
        // SAFETY: there is a place, and the values are there.
        unsafe { ffi::lua_pushcclosure(self.l, function.0, kept as c_int) }
    }
    /// Pushes an object that only functions of Rust see into: it is bytes to Lua, which frees it without a word.
    pub(crate) fn push_object<T: Copy>(&mut self, object: T) {
        const { assert!(align_of::<T>() <= OBJECT_ALIGN, "as Lua places its objects") };
        self.place();
        // SAFETY: there is a place; the object has so many bytes, is aligned, and is kept by the stack.
        unsafe { ffi::lua_newuserdata(self.l, size_of::<T>()).cast::<T>().write(object) }
    }
    /// An object that the running function keeps at a place, from 1: what [`push_object`](Self::push_object) has made.
    pub(crate) fn kept_object<T: Copy>(&mut self, at: i32) -> &mut T {
        let at = Self::kept(at);
        assert!(
            self.kind(at) == Kind::Userdata && self.raw_len(at) == size_of::<T>(),
            "the function keeps it"
        );
        // SAFETY: it was written as one, stays as long as the function runs, and `&mut self` keeps others away.
        unsafe { &mut *ffi::lua_touserdata(self.l, at).cast::<T>() }
    }
    /// The place of a value that the running function keeps, from 1.
    pub(crate) const fn kept(at: i32) -> i32 {
        ffi::lua_upvalueindex(at)
    }
    /// Pushes a new table with room for so many elements and fields.
    pub fn push_table(&mut self, elements: usize, fields: usize) {
        self.place();
        let fit = |len: usize| c_int::try_from(len.min(TABLE_ROOM_MAX)).unwrap_or(0);
        // SAFETY: there is a place.
        unsafe { ffi::lua_createtable(self.l, fit(elements), fit(fields)) }
    }
    /// Takes values from the top.
    pub fn pop(&mut self, values: usize) {
        assert!(self.top() >= self.args + values, "arguments stay where they are");
        // SAFETY: so many are there.
        unsafe { ffi::lua_settop(self.l, -(values as c_int) - 1) }
    }
    /// Takes values from the top, whatever they are: for who prepares a state, or has pushed them himself.
    pub(crate) fn pop_any(&mut self, values: usize) {
        debug_assert!(self.top() >= values, "so many are there");
        // SAFETY: so many are there.
        unsafe { ffi::lua_settop(self.l, -(values as c_int) - 1) }
    }
    /// Takes a value out from below others.
    pub(crate) fn remove(&mut self, at: i32) {
        // SAFETY: a place of the frame.
        unsafe { ffi::lua_remove(self.l, at) }
    }
    /// Moves the top below others, so that it stands at a place behind the arguments.
    pub(crate) fn insert(&mut self, at: i32) {
        // SAFETY: a place of the frame.
        unsafe { ffi::lua_insert(self.l, at) }
    }
    /// Puts the top in the place of an argument. Bytes of it must not be borrowed: this takes `&mut self`.
    pub(crate) fn replace(&mut self, at: i32) {
        // SAFETY: a place of the frame.
        unsafe { ffi::lua_replace(self.l, at) }
    }

    /// Takes a key and a value from the top, and sets them in a table, without metamethods. The key is not nil or NaN.
    pub fn raw_set(&mut self, table: i32) {
        debug_assert!(!matches!(self.kind(-2), Kind::Nil | Kind::None), "nil is no key");
        // SAFETY: a table, and a key that may be one.
        unsafe { ffi::lua_rawset(self.l, table) }
    }
    /// Takes the top and sets it as an element of a table.
    pub fn raw_set_at(&mut self, table: i32, index: usize) {
        // SAFETY: a table.
        unsafe { ffi::lua_rawseti(self.l, table, index as ffi::lua_Integer) }
    }
    /// Takes the top and sets it as a field of a table.
    pub fn set_field(&mut self, table: i32, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        self.insert(-2);
        self.raw_set(table);
    }
    /// Takes a key from the top and pushes what a table has there, without metamethods.
    pub fn raw_get(&mut self, table: i32) {
        // SAFETY: a table.
        unsafe {
            ffi::lua_rawget_(self.l, table);
        }
    }
    /// Pushes an element of a table.
    pub fn raw_get_at(&mut self, table: i32, index: usize) {
        self.place();
        // SAFETY: a table, and there is a place.
        unsafe {
            ffi::lua_rawgeti_(self.l, table, index as c_int);
        }
    }
    /// Pushes a value that the state keeps.
    pub(crate) fn kept_value(&mut self, kept: &crate::vm::Chunk) {
        self.raw_get_at(Self::REGISTRY, kept.index());
    }
    /// Pushes a list of strings.
    pub(crate) fn push_list(&mut self, list: &[&[u8]]) {
        self.push_table(list.len(), 0);
        for (at, bytes) in list.iter().enumerate() {
            self.push_bytes(bytes);
            self.raw_set_at(-2, at + 1);
        }
    }
    /// Pushes an element of a table at any number.
    pub(crate) fn element(&mut self, table: i32, index: i32) {
        self.place();
        // SAFETY: a table, and there is a place.
        unsafe {
            ffi::lua_rawgeti_(self.l, table, index);
        }
    }
    /// Takes the top and sets it as an element at any number.
    pub(crate) fn set_element(&mut self, table: i32, index: i32) {
        // SAFETY: a table, and a value is on top.
        unsafe { ffi::lua_rawseti(self.l, table, ffi::lua_Integer::from(index)) }
    }
    /// Whether one value comes before another, as `<` says.
    pub(crate) fn less_than(&mut self, one: i32, two: i32) -> Result<bool, Raise> {
        unsafe extern "C-unwind" fn less(l: *mut lua_State) -> c_int {
            // SAFETY: called below with two values; it owns nothing.
            unsafe {
                ffi::lua_pushboolean(l, ffi::lua_lessthan(l, 1, 2));
            }
            1
        }
        match (self.kind(one), self.kind(two)) {
            (Kind::Number, Kind::Number) => return Ok(self.number(one) < self.number(two)),
            (Kind::String, Kind::String) => {
                self.step_bytes(self.raw_len(one).min(self.raw_len(two)))?;
                return Ok(self.bytes(one) < self.bytes(two));
            }
            _ => {}
        }
        let (one, two) = (self.absolute(one), self.absolute(two));
        self.push_function(CFunction(less), 0);
        self.push_copy(one);
        self.push_copy(two);
        self.call(2, 1)?;
        let less = self.truth(-1);
        self.pop(1);
        Ok(less)
    }
    /// Takes a key from the top and pushes what a table gives for it, metamethods included.
    pub(crate) fn get_caught(&mut self, table: i32) -> Result<(), Raise> {
        unsafe extern "C-unwind" fn get(l: *mut lua_State) -> c_int {
            // SAFETY: called below with a table and a key; it owns nothing.
            unsafe {
                ffi::lua_gettable(l, 1);
            }
            1
        }
        let table = self.absolute(table);
        self.push_function(CFunction(get), 0);
        self.insert(-2);
        self.push_copy(table);
        self.insert(-2);
        self.call(2, 1)
    }
    /// Collects everything that is not used, in parts between which the host is asked; less if the script is to end.
    pub(crate) fn collect(&mut self) {
        let state = self.l;
        debug_assert!(self.shared().pace.is_at_rest_or(state), "who runs is not collected");
        // What was begun may have gone by what is not used any more.
        for _ in 0..2 {
            // SAFETY: scripts can make no finalizers, so nothing runs.
            while unsafe { ffi::lua_gc(self.l, ffi::LUA_GCSTEP, COLLECTED_KB) } == 0 {
                if self.shared().pace.is_due() && !self.look() {
                    return;
                }
            }
        }
        self.shared().memory.collected();
    }
    /// Pushes a field of a table, without metamethods.
    pub fn field(&mut self, table: i32, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        self.raw_get(table);
    }
    /// Takes a key from the top, and pushes the next key of a table and its value; pushes nothing behind the last one.
    /// `None`: there is no such key.
    pub fn next(&mut self, table: i32) -> Option<bool> {
        // `lua_next` raises for a key that the table has not.
        let table = self.absolute(table);
        if self.kind(-1) != Kind::Nil {
            self.push_copy(-1);
            self.raw_get(table);
            let known = self.kind(-1) != Kind::Nil;
            self.pop(1);
            // A key whose value was set to nil while it was walked over is still a place to go on from, and Lua finds
            // it; one that never was is rare, and only the caller can have given it.
            if !known {
                return self.next_caught(table);
            }
        }
        self.place();
        // SAFETY: a table, and a key that it has.
        Some(unsafe { ffi::lua_next(self.l, table) } != 0)
    }
    /// The same for who has begun with nil, goes on with the keys that this gives, and assigns nothing to the table
    /// meanwhile: then there is such a key. `false` behind the last one.
    pub(crate) fn next_unchanged(&mut self, table: i32) -> bool {
        self.place();
        // SAFETY: a table, and a key that it has.
        unsafe { ffi::lua_next(self.l, table) != 0 }
    }
    #[cold]
    fn next_caught(&mut self, table: i32) -> Option<bool> {
        unsafe extern "C-unwind" fn next(l: *mut lua_State) -> c_int {
            // SAFETY: called below with a table and a key; it owns nothing.
            unsafe {
                match ffi::lua_next(l, 1) {
                    0 => 0,
                    _ => 2,
                }
            }
        }
        self.push_function(CFunction(next), 0);
        self.push_copy(table);
        self.push_copy(-3);
        let before = self.top() - 3;
        let outcome = self.call(2, -1);
        if outcome.is_err() {
            self.pop(2);
            return None;
        }
        let found = self.top() - before;
        // The key that was asked with stands below.
        let key = before as i32;
        // SAFETY: a place behind the arguments.
        unsafe { ffi::lua_remove(self.l, key) };
        Some(found > 0)
    }
    /// Pushes the metatable of a value; nothing where there is none.
    pub fn metatable(&mut self, at: i32) -> bool {
        self.place();
        // SAFETY: there is a place.
        unsafe { ffi::lua_getmetatable(self.l, at) != 0 }
    }
    /// Takes a table or nil from the top as the metatable of a value.
    pub fn set_metatable(&mut self, at: i32) {
        // SAFETY: a table or nil is on top.
        unsafe {
            ffi::lua_setmetatable(self.l, at);
        }
    }
    /// A place counted from the bottom.
    pub(crate) fn absolute(&self, at: i32) -> i32 {
        if at > 0 || at <= ffi::LUA_REGISTRYINDEX { at } else { self.top() as i32 + at + 1 }
    }
    /// The table of what scripts cannot see.
    pub(crate) const REGISTRY: i32 = ffi::LUA_REGISTRYINDEX;
    /// The table of the thread's global names.
    pub(crate) const GLOBALS: i32 = ffi::LUA_GLOBALSINDEX;

    /// Calls a function with arguments from the top; so many results, or all, stand in their place.
    pub fn call(&mut self, args: usize, results: i32) -> Result<(), Raise> {
        let depth = self.shared().memory.pause();
        // SAFETY: the function and its arguments are on top; whatever it raises is caught here. Memory is limited again
        // while it runs, since no frame of Rust stands above `lua_pcall`.
        let code = unsafe { ffi::lua_pcall(self.l, args as c_int, results, 0) };
        self.shared().memory.resume(depth);
        // Results may stand in places that were granted.
        self.room = 0;
        // SAFETY: this one runs again; a coroutine whose error was caught does not.
        unsafe { crate::vm::runs(self.l, self.shared) }
        if code == ffi::LUA_OK { Ok(()) } else { Err(Raise(())) }
    }
}

/// KiB that one part of collecting goes through, about.
const COLLECTED_KB: c_int = 256;

/// What the address of an object of Lua is a multiple of.
const OBJECT_ALIGN: usize = 8;

/// Elements that a new table has room for at most: beyond that it grows with what is put in.
const TABLE_ROOM_MAX: usize = 1 << 16;
