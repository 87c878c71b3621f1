//! Owns: GET, SET without options and INCR of a program in a shorter form than their handlers have: their arguments are
//! no list of words, a key is looked up once, and what GET and INCR give is put where it is bound. Does not own: when
//! they may run so (whoever runs the program asks whether anything is special); what these commands mean elsewhere,
//! which is their handlers', and tests compare the two.
//!
//! One that meets something that it does not do says so, and has changed nothing.
//!
//! **Writes that wait.** Once its key and value are known and its shard is held, a SET without options cannot fail. One
//! behind which something can is kept until the program's end, as long as nothing else comes to its key, and there is
//! nothing to be taken back: a program that fails before has written nothing. What others see of a group of writes to
//! different keys does not depend on their order.

use weft_protocol::table::{CommandSpec, policy};
use weft_store::{Digits, Key, Keyspace, NewValue};

use super::expr::{Expr, Fault, Frame};
use super::value::Value;
use crate::error::Result;

/// What runs in a shorter form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    Get,
    Set,
    Increment,
}

/// What a command writes: the text behind its key's, or an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Brings {
    Text,
    Int(i64),
}

/// A SET that waits: its key, and its value behind it, stand in the text.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    hash: u64,
    at: usize,
    key_len: usize,
    /// Where the text of the value ends.
    end: usize,
    brings: Brings,
}

/// SETs that wait at once; the next one does not.
const WAITING_MAX: usize = 4;

/// The SETs that wait, in their order.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    all: [Option<Waiting>; WAITING_MAX],
    len: usize,
}

impl Waits {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.len == WAITING_MAX
    }
    /// Whether one of them is about a key of this hash.
    #[inline]
    pub(crate) fn has(&self, hash: u64) -> bool {
        self.all[..self.len].iter().flatten().any(|waiting| waiting.hash == hash)
    }
    /// The next one, of a text from `at` on. There is room for it.
    #[inline]
    pub(crate) fn push(&mut self, hash: u64, at: usize, (key_len, end): (usize, usize), brings: Brings) {
        self.all[self.len] = Some(Waiting { hash, at, key_len, end, brings });
        self.len += 1;
    }
    /// Calls `set` with each key and value, and forgets them.
    #[inline]
    pub(crate) fn each(
        &mut self,
        keyspace: &Keyspace,
        text: &[u8],
        mut set: impl FnMut(&Key<'_>, NewValue<'_>) -> Result,
    ) -> Result {
        let len = std::mem::take(&mut self.len);
        self.all[..len].iter().flatten().try_for_each(|waiting| {
            let (key, value) = text[waiting.at..waiting.end].split_at(waiting.key_len);
            set(&keyspace.key_with_hash(key, waiting.hash), waiting.brings.value(value))
        })
    }
}

impl Short {
    /// The form of a command with these arguments, if there is one: what they are is seen without evaluating them.
    pub(crate) fn of(spec: &CommandSpec, args: &[Expr]) -> Option<Self> {
        let seen = |arg: &Expr| matches!(arg, Expr::Literal(_) | Expr::Template(_) | Expr::Var(_));
        let forms = [
            (policy::FAST_GET, 2, Self::Get),
            (policy::FAST_SET, 3, Self::Set),
            (policy::INCREMENTS, 2, Self::Increment),
        ];
        let (.., short) =
            forms.into_iter().find(|(bit, len, _)| spec.policy & bit != 0 && args.len() == *len)?;
        args.iter().all(seen).then_some(short)
    }

    /// Writes the text of the key. Nothing where it is not one word.
    #[inline]
    pub(crate) fn compose_key(
        frame: &mut Frame,
        args: &[Expr],
        text: &mut Vec<u8>,
    ) -> Option<Result<(), Fault>> {
        one_word(frame, args.get(1)?, 1, text)
    }
    /// Writes the text of the value, if there is one; an integer needs none. Nothing where it is not one word.
    #[inline]
    pub(crate) fn compose_value(
        frame: &mut Frame,
        args: &[Expr],
        text: &mut Vec<u8>,
    ) -> Option<Result<Brings, Fault>> {
        let Some(value) = args.get(2) else { return Some(Ok(Brings::Text)) };
        if let Some(Value::Int(value)) = frame.peek(value) {
            return Some(Ok(Brings::Int(*value)));
        }
        Some(one_word(frame, value, 2, text)?.map(|()| Brings::Text))
    }
}

impl Brings {
    /// As a value, of the text behind the key's.
    #[inline]
    pub(crate) fn value(self, text: &[u8]) -> NewValue<'_> {
        match self {
            Self::Text => NewValue::string(text),
            Self::Int(value) => NewValue::Int(value),
        }
    }
    /// Bytes of it, with those of such a text.
    #[inline]
    pub(crate) fn len(self, text_len: usize) -> usize {
        match self {
            Self::Text => text_len,
            Self::Int(value) => Digits::default().write(value).len(),
        }
    }
}

/// Appends the text of an argument; nothing of a list or an object, which are several.
#[inline]
fn one_word(frame: &mut Frame, expr: &Expr, at: usize, text: &mut Vec<u8>) -> Option<Result<(), Fault>> {
    match frame.peek(expr) {
        Some(Value::Text(bytes)) => {
            text.extend_from_slice(bytes);
            return Some(Ok(()));
        }
        Some(Value::List(_) | Value::Object(_)) => return None,
        _ => {}
    }
    let named = |fault| Fault::from(format!("argument {at}: {fault}"));
    Some(frame.write_text(expr, text).map_err(named))
}
