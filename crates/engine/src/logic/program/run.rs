//! Owns: running a program's steps: all of it happens or nothing. Does not own: its locks (`crate::executor`),
//! expressions (`crate::program::expr`), running a command (`crate::inner`).

mod loops;

use std::time::Instant;

use weft_protocol::table::flag;

use super::cost::Cost;
use crate::acl::LogPlace;
use crate::args::{Args, Composed, command_id};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::excerpt::shown;
use crate::handler::Scope;
use crate::inner::{Inner, Refusal, Undoing};
use crate::keys::each;
use crate::program::budget::Limits;
use crate::program::ends::Ends;
use crate::program::expr::{Expr, Fault, Frame};
use crate::program::keys::{self, Keys};
use crate::program::parse::is_code;
use crate::program::quick::{Quick, is_short, nothing_fails_behind};
use crate::program::reply::value_of;
use crate::program::short::{Short, Waits};
use crate::program::steps::{Command, Fail, Program, Step, What};
use crate::program::stored::Stored;
use crate::program::value::Value;
use crate::session::client_flag;
use crate::special;

/// Bytes of a reply behind which the clock is looked at.
const LONG_REPLY: usize = 64 << 10;

/// Bytes of the message of `fail` and `assert`: what is longer is cut.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What SET answers.
const OK: &[u8] = b"OK";

/// A journal that is begun when there is something to be taken back.
#[derive(Default)]
struct Late(Option<Undoing>);

impl Late {
    #[inline]
    fn begin(&mut self, inner: &mut Inner<'_, '_, '_>) {
        if self.0.is_none() {
            self.0 = Some(inner.begin_undo());
        }
    }
}

/// A key that was composed.
#[derive(Clone, Copy)]
struct Known {
    /// Its number among the program's keys.
    number: u32,
    /// Where its text stands.
    at: usize,
    end: usize,
    hash: u64,
}

/// What a step has come to.
enum Flow {
    GoOn,
    Break,
    Return(Value),
}

/// Why a program ends with nothing done.
enum End {
    /// An error that says all there is.
    Error(Error),
    /// An error of the present step.
    Fault(Error),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(Error::new(ErrorCode::Program, fault))
    }
}

/// A program that runs.
struct Machine<'p, 'i, 'c, 'a, 'b> {
    inner: &'i mut Inner<'c, 'a, 'b>,
    frame: &'i mut Frame,
    args: Composed,
    /// The last key, if its text is the last that stands among the arguments.
    known: Option<Known>,
    /// The keys that it may come to, in their bytes' order, if it has said so.
    declared: Option<Vec<Box<[u8]>>>,
    /// Nothing is special: quick commands run without being asked about.
    plain: bool,
    /// And nobody looks at what they do: those run in a shorter form that have one.
    short: bool,
    /// How it can be taken back, if it sees to that itself.
    late: Option<Late>,
    /// What it will write at its end; only if it sees to that itself.
    waits: Waits,
    /// There are triggers, and it sees to what fires itself: each key that it writes is asked for.
    asks: bool,
    /// When the time of the operation around it is over, and when something has fired first, if it asks.
    around: Option<Ends>,
    firing: Option<Instant>,
    /// The step that runs.
    at: &'p Step,
}

impl Program {
    /// Runs the program, shows what stands on the tape then, and takes it back.
    pub(crate) fn look<R>(
        &self,
        context: &mut Context<'_, '_>,
        params: Vec<Value>,
        show: impl FnOnce(Result<Value>, &Context<'_, '_>) -> R,
    ) -> R {
        let mut inner = Inner::new(context, LogPlace::Script);
        let undoing = inner.begin_undo();
        let outcome = self.run_in(&mut inner, params);
        let shown = show(outcome, inner.context());
        inner.abandon(undoing);
        shown
    }

    /// Runs it: all of it happens or nothing. Inside an operation that can be taken back, that takes back what it has
    /// done if it fails.
    pub(crate) fn run_in(&self, inner: &mut Inner<'_, '_, '_>, params: Vec<Value>) -> Result<Value> {
        let Context { engine, session, local, now_ms, .. } = inner.context();
        let frame = self.frame(params, *now_ms, Limits::of(&engine.settings));
        let special = engine.special.bits();
        let plain = session.user.all && special & (special::REFUSING | special::LIMITED) == 0;
        if local.effects.recorder.has_journal() {
            return self.run_frame(inner, frame, plain, &mut None);
        }
        if !plain || !self.quick || !frame.budget.suffices_for_quick() {
            return inner.whole(|inner| self.run_frame(inner, frame, plain, &mut None));
        }
        let mut late = Some(Late::default());
        let outcome = self.run_frame(inner, frame, plain, &mut late);
        if let Some(Late(Some(undoing))) = late {
            match &outcome {
                Ok(_) => inner.commit(undoing),
                Err(_) => inner.abandon(undoing),
            }
        }
        outcome
    }

    fn run_frame(
        &self,
        inner: &mut Inner<'_, '_, '_>,
        mut frame: Frame,
        plain: bool,
        late: &mut Option<Late>,
    ) -> Result<Value> {
        let declared = match &self.keys {
            Keys::Declared(exprs) => {
                let names = keys::names(exprs, &mut frame);
                Some(names.map_err(|fault| Error::new(ErrorCode::Program, format!("/keys: {fault}")))?)
            }
            Keys::Found(_) | Keys::World(..) => None,
        };
        let Some(at) = self.steps.first() else { return Ok(Value::Null) };
        let db = inner.session().db;
        let Context { engine, local, .. } = inner.context();
        let triggered = engine.special.has(special::TRIGGERS);
        let asks = triggered && late.is_some();
        if asks {
            local.triggers.index(&engine.triggers);
        }
        let looks = triggered && !asks || engine.special.has(special::HANDLERS);
        let (args, around) = (std::mem::take(&mut local.composed), local.ends);
        let short = plain && !looks && !inner.session().info.has(client_flag::TRACKING);
        let mut machine = Machine {
            inner,
            frame: &mut frame,
            args,
            known: None,
            declared,
            plain,
            short,
            late: late.take(),
            waits: Waits::default(),
            asks,
            around,
            firing: None,
            at,
        };
        machine.args.clear();
        // What one that is quick fires has the time of what has fired it: it looks at no clock of its own.
        if triggered && !asks && !(self.quick && around.is_some()) {
            machine.begin_time();
        }
        let mut outcome = machine.block(&self.steps);
        if outcome.is_ok() && !machine.waits.is_empty() {
            // Nothing can fail any more.
            let written = machine.set_waiting(true);
            outcome = written.map_err(|error| machine.failed(error)).and(outcome);
        }
        let Machine { at, args, late: begun, firing, .. } = machine;
        *late = begun;
        let local = &mut *inner.context().local;
        (local.composed, local.ends) = (args, around);
        if let Some(began) = firing {
            local.fired_ns += u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        }
        local.programs.keep_room(frame.values);
        // SELECT holds inside the program.
        if inner.session().db != db {
            inner.session().select(db);
        }
        match outcome {
            Ok(Flow::Return(value)) => Ok(value),
            Ok(Flow::GoOn | Flow::Break) => Ok(Value::Null),
            Err(End::Error(error)) => Err(error),
            Err(End::Fault(error)) => Err(placed(at, error)),
        }
    }
}

impl Stored {
    /// Runs it inside an operation, with the rights that it says: those of whoever runs the operation, or of whoever
    /// has stored it. What it has done is taken back by the operation if it fails.
    pub(crate) fn run_inside(&self, inner: &mut Inner<'_, '_, '_>, params: Vec<Value>) -> Result<Value> {
        if !self.program.as_owner {
            return self.program.run_in(inner, params);
        }
        inner.as_user(&self.owner, "the program's", |inner| self.program.run_in(inner, params))
    }
}

/// An error with the step and the command that it came from before its text.
fn placed(at: &Step, error: Error) -> Error {
    // It is caught before a client sees it.
    if error.code == ErrorCode::NeedsWorld {
        return error;
    }
    let command = match &at.what {
        What::Command(command) => format!(" {}", full_name(command.spec).to_ascii_uppercase()),
        _ => String::new(),
    };
    Error { text: format!("{}{command}: {}", at.at, error.text).into(), ..error }
}

impl<'p> Machine<'p, '_, '_, '_, '_> {
    fn block(&mut self, steps: &'p [Step]) -> Result<Flow, End> {
        for step in steps {
            self.at = step;
            self.frame.budget.take_step()?;
            match self.step(step)? {
                Flow::GoOn => {}
                ended => return Ok(ended),
            }
        }
        Ok(Flow::GoOn)
    }

    fn step(&mut self, step: &'p Step) -> Result<Flow, End> {
        match &step.what {
            What::Command(command) => {
                self.command(command)?;
                return Ok(Flow::GoOn);
            }
            What::Let(all) => {
                for (slot, expr) in all {
                    self.frame.values[*slot] = self.frame.eval(expr)?;
                }
            }
            What::If(condition, then, otherwise) => {
                let holds = self.frame.holds(condition)?;
                return self.block(if holds { then } else { otherwise });
            }
            What::Switch(of, cases, default) => {
                let value = self.frame.eval(of)?;
                for (candidates, then) in cases {
                    for candidate in candidates {
                        self.frame.budget.take_elements(1)?;
                        let candidate = self.frame.eval(candidate)?;
                        if self.frame.compare(&candidate, &value)?.is_eq() {
                            return self.block(then);
                        }
                    }
                }
                return self.block(default);
            }
            What::For(each) => return self.each(step, each),
            What::Break(condition) => {
                let ends = condition.as_ref().map_or(Ok(true), |condition| self.frame.holds(condition))?;
                return Ok(if ends { Flow::Break } else { Flow::GoOn });
            }
            What::Return(expr) => {
                let value = self.frame.eval(expr)?;
                if value.is_whole() {
                    self.frame.budget.take_walk(value.extent())?;
                }
                return Ok(Flow::Return(value));
            }
            What::Fail(fail) => self.fail(step, fail)?,
            What::Block(steps) => return self.block(steps),
        }
        Ok(Flow::GoOn)
    }

    fn fail(&mut self, step: &Step, fail: &Fail) -> Result<(), End> {
        if let Some(unless) = &fail.unless
            && self.frame.holds(unless)?
        {
            return Ok(());
        }
        let (mut code, mut message) = (Vec::new(), Vec::new());
        self.frame.write_text(&fail.code, &mut code)?;
        self.frame.write_text(&fail.message, &mut message)?;
        message.truncate(MESSAGE_BYTES_MAX);
        if !is_code(&code) {
            return Err(Fault::from(format!("'{}' is no code of an error", shown(&code))).into());
        }
        let message = match &message[..] {
            b"" if fail.unless.is_some() => format!("{}: it does not hold", step.at),
            b"" => format!("{}: the program failed", step.at),
            message => String::from_utf8_lossy(message).into_owned(),
        };
        let prefix = Some(String::from_utf8_lossy(&code).into());
        Err(End::Error(Error { prefix, ..Error::new(ErrorCode::Program, message) }))
    }

    #[inline]
    fn command(&mut self, command: &'p Command) -> Result<(), End> {
        if self.short
            && let Some(quick) = command.quick
            && let Some(short) = quick.short
            && self.run_short(command, quick, short)?
        {
            return Ok(());
        }
        if !self.waits.is_empty() {
            self.settle_waits()?;
        }
        self.command_of_words(command)
    }

    /// What its commands fire belongs to its time.
    fn begin_time(&mut self) {
        let local = &mut *self.inner.context().local;
        if self.around.is_none() {
            local.delivery_ns = 0;
        }
        local.ends = self.frame.budget.begin_within(self.around);
    }
    /// Whether a key that is about to be written may fire triggers, if it is not known to be asked for elsewhere.
    #[inline]
    fn may_fire(&mut self, name: &[u8]) -> bool {
        self.asks && self.inner.context().local.triggers.last().has(name)
    }
    /// A command may fire: all that was done before it can be taken back from now on, and the clock runs.
    #[cold]
    fn begin_firing(&mut self) {
        if let Some(late) = &mut self.late {
            late.begin(self.inner);
        }
        if self.firing.is_none() {
            self.firing = Some(Instant::now());
            self.begin_time();
        }
    }

    /// Runs a command in its shorter form. `false`: it is one for the other way, and nothing has happened.
    fn run_short(&mut self, command: &'p Command, quick: Quick, short: Short) -> Result<bool, End> {
        let begins = self.args.room().len();
        let known = self.known.take().filter(|known| known.number == quick.key && known.end == begins);
        let (at, end, hash) = if let Some(Known { at, end, hash, .. }) = known {
            (at, end, hash)
        } else {
            match Short::compose_key(self.frame, &command.args, self.args.room()) {
                Some(composed) => composed?,
                None => return Ok(false),
            }
            let text = &self.args.room()[begins..];
            let hash = self.inner.context().engine.keyspace.key(text).hash();
            (begins, begins + text.len(), hash)
        };
        if self.asks && quick.writes {
            let index = self.inner.context().local.triggers.last();
            if index.has(&self.args.room()[at..end]) {
                return Ok(false);
            }
        }
        let brings = match Short::compose_value(self.frame, &command.args, self.args.room()) {
            Some(composed) => composed?,
            None => return Ok(false),
        };
        if !self.waits.is_empty() && self.waits.has(hash) {
            self.settle_waits()?;
        }
        let text = &self.args.room()[at..];
        let (name, value) = text.split_at(end - at);
        let key = self.inner.context().engine.keyspace.key_with_hash(name, hash);
        self.frame.budget.take_keys(1)?;
        if let Some(declared) = &self.declared
            && declared.binary_search_by(|other| (**other).cmp(name)).is_err()
        {
            return Err(not_declared(name));
        }
        let mut for_good = false;
        if quick.writes {
            let bytes = quick.name_len + name.len() + brings.len(value.len());
            self.frame.budget.take_bytes(bytes as u64)?;
        }
        if quick.writes && self.late.is_some() {
            for_good = quick.last && nothing_fails_behind(self.frame)?;
            if for_good {
                // It is not to be taken back.
            } else if short == Short::Set && !self.waits.is_full() && self.inner.holds(&key) {
                self.waits.push(hash, at, (name.len(), at + text.len()), brings);
                self.inner.count_run(quick.id, false);
                if let Some(slot) = command.bind {
                    self.frame.budget.take_answer(OK.len() + size_of::<Value>())?;
                    self.frame.values[slot] = Value::text(OK);
                }
                return Ok(true);
            } else if let Some(late) = &mut self.late {
                late.begin(self.inner);
            }
        }
        let (inner, budget) = (&mut *self.inner, &mut self.frame.budget);
        let mut answer = |bytes: usize| match command.bind {
            Some(_) => budget.take_answer(bytes + size_of::<Value>()),
            None => Ok(()),
        };
        let outcome = match short {
            Short::Get => inner.short_get(&key, |value| {
                let Some(value) = value else { return answer(0).map(|()| Value::Null) };
                answer(value.len())?;
                Ok(if command.bind.is_some() { Value::text(value) } else { Value::Null })
            }),
            Short::Set => inner.within(for_good, |inner| {
                inner.short_set(&key, brings.value(value))?;
                Ok(answer(OK.len()).map(|()| Value::text(OK)))
            }),
            Short::Increment => inner.within(for_good, |inner| {
                let value = inner.short_increment(&key)?;
                Ok(answer(0).map(|()| Value::Int(value)))
            }),
        };
        inner.count_run(quick.id, outcome.is_err());
        if quick.key == 0 {
            self.args.room().truncate(at);
        } else {
            self.args.room().truncate(end);
            self.known = Some(Known { number: quick.key, at, end, hash });
        }
        match outcome {
            Ok(value) => {
                let value = value?;
                if let Some(slot) = command.bind {
                    self.frame.values[slot] = value;
                }
                Ok(true)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The SETs that wait are done now, and can be taken back: something comes that may be about their keys.
    #[inline(never)]
    fn settle_waits(&mut self) -> Result<(), End> {
        if let Some(late) = &mut self.late {
            late.begin(self.inner);
        }
        self.set_waiting(false).map_err(|error| self.failed(error))
    }
    fn set_waiting(&mut self, for_good: bool) -> Result {
        let keyspace = &self.inner.context().engine.keyspace;
        let (waits, text) = (&mut self.waits, self.args.room());
        self.inner
            .within(for_good, |inner| waits.each(keyspace, text, |key, value| inner.short_set(key, value)))
    }

    fn command_of_words(&mut self, command: &'p Command) -> Result<(), End> {
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        self.known = None;
        let composed = command.args.iter().enumerate().try_for_each(|(at, expr)| {
            let named = |fault| Fault::from(format!("argument {at}: {fault}"));
            self.argument(expr, &mut args).map_err(named)
        });
        let outcome = match composed {
            Ok(()) => {
                let (words, bytes) = (args.args(command.spec), args.bytes());
                match command.quick {
                    // A value that is a list becomes as many arguments as it has elements.
                    Some(quick) if self.plain && words.len() == command.args.len() => {
                        self.run_quick(quick, &words, bytes)
                    }
                    _ => self.run_command(&words, bytes),
                }
            }
            Err(fault) => Err(End::from(fault)),
        };
        self.args = args;
        outcome?;
        if let Some(slot) = command.bind {
            self.frame.budget.take_answer(self.inner.reply_bytes() + size_of::<Value>())?;
            self.frame.values[slot] = value_of(&mut self.inner.reply());
        }
        Ok(())
    }

    /// A list becomes as many arguments as it has elements, an object names and values in turn.
    fn argument(&mut self, expr: &Expr, args: &mut Composed) -> Result<(), Fault> {
        let value = match expr {
            Expr::Literal(_) | Expr::Template(_) => {
                return args.push_with(|text| self.frame.write_text(expr, text));
            }
            Expr::Var(slot) => {
                let value = &self.frame.values[*slot];
                if !matches!(value, Value::List(_) | Value::Object(_)) {
                    return args.push_with(|text| self.frame.write_text(expr, text));
                }
                value.clone()
            }
            _ => self.frame.eval(expr)?,
        };
        let budget = &mut self.frame.budget;
        let mut push = |value: &Value| {
            let no_text = |kind| Fault::from(format!("{kind} has no text: coalesce or to_json give it one"));
            args.push_with(|text| {
                budget.take_joined(value, text.len())?;
                value.write_text(text).map_err(no_text)
            })
        };
        match &value {
            Value::List(list) => list.iter().try_for_each(push),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                push(&Value::text(name))?;
                push(value)
            }),
            one => push(one),
        }
    }

    /// Runs a command of which everything but its key's name and value is known, where nothing is special.
    fn run_quick(&mut self, quick: Quick, args: &Args<'_>, bytes: usize) -> Result<(), End> {
        self.frame.budget.take_keys(1)?;
        if let Some(declared) = &self.declared
            && declared.binary_search_by(|name| (**name).cmp(args.bytes(1))).is_err()
        {
            return Err(not_declared(args.bytes(1)));
        }
        let Some(handler) = self.inner.context().engine.handler(quick.id) else {
            return Err(End::Fault(Refusal::Unknown.into()));
        };
        if !quick.writes {
            return self.inner.run(handler, args).map_err(|error| self.failed(error));
        }
        self.frame.budget.take_bytes(bytes as u64)?;
        let fires = self.may_fire(args.bytes(1));
        if fires {
            self.begin_firing();
        }
        let Some(late) = &mut self.late else {
            return self.inner.run(handler, args).map_err(|error| self.failed(error));
        };
        let outcome = if quick.last && !fires && nothing_fails_behind(self.frame)? {
            self.inner.run_for_good(handler, args)
        } else {
            late.begin(self.inner);
            self.inner.run(handler, args)
        };
        outcome.map_err(|error| self.failed(error))
    }

    fn run_command(&mut self, args: &Args<'_>, bytes: usize) -> Result<(), End> {
        let spec = args.spec;
        self.look_at_keys(args)?;
        if spec.flags & flag::WRITE != 0 {
            self.frame.budget.take_bytes(bytes as u64)?;
            if let Some(late) = &mut self.late {
                late.begin(self.inner);
            }
            if self.asks {
                self.begin_firing();
            }
        }
        let short = is_short(args);
        if !short {
            let cost = Cost::of(self.inner.context(), args);
            self.frame.budget.take_bytes(cost.bytes)?;
            self.frame.budget.take_work(cost.steps)?;
        }
        let outcome = match self.inner.admit(args) {
            Ok(handler) => self.inner.run(handler, args),
            Err(refusal) => Err(Error::from(refusal)),
        };
        if !short || self.inner.reply_bytes() >= LONG_REPLY {
            self.frame.budget.look()?;
        }
        outcome.map_err(|error| self.failed(error))
    }
    #[cold]
    fn failed(&self, error: Error) -> End {
        // Its keys were a guess; or they are declared, and it runs under the locks of what has fired it.
        let is_not_held = error.code == ErrorCode::Undeclared;
        End::Fault(if is_not_held { ErrorCode::NeedsWorld.into() } else { error })
    }

    /// Whether a command looks at all keys, or changes them.
    fn looks_at_all(&mut self, args: &Args<'_>) -> bool {
        match self.inner.context().engine.handler(command_id(args)).map(|handler| handler.scope) {
            Some(Scope::World | Scope::Walk) => true,
            Some(Scope::KeysOrWorld(asks)) => asks(args),
            _ => false,
        }
    }

    /// Counts a command's keys, and refuses those that were not declared.
    fn look_at_keys(&mut self, args: &Args<'_>) -> Result<(), End> {
        if self.declared.is_some() && self.looks_at_all(args) {
            return Err(not_all("the command"));
        }
        let (mut count, mut undeclared) = (0, None);
        each(args, |index| {
            count += 1;
            if let Some(declared) = &self.declared
                && declared.binary_search_by(|name| (**name).cmp(args.bytes(index))).is_err()
            {
                undeclared = Some(index);
            }
        });
        self.frame.budget.take_keys(count)?;
        if let Some(index) = undeclared {
            return Err(not_declared(args.bytes(index)));
        }
        Ok(())
    }
}

#[cold]
fn not_all(what: &str) -> End {
    let text = format!("{what} looks at all keys, and \"keys\" declares which the program comes to");
    End::Fault(Error::new(ErrorCode::Undeclared, text))
}

#[cold]
fn not_declared(key: &[u8]) -> End {
    let text = format!("the key '{}' was not declared in \"keys\"", shown(key));
    End::Fault(Error::new(ErrorCode::Undeclared, text))
}
