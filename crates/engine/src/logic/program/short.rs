//! Owns: what GET, SET without options and INCR of a program do in their shorter form. Does not own: that form
//! (`crate::program::short`), when they may run so (`super::run`).

use weft_store::{Digits, Expiry, Key, NewValue};

use crate::context::Locked;
use crate::error::{ErrorCode, Result};
use crate::inner::Inner;
use crate::waits::News;

impl Inner<'_, '_, '_> {
    /// The value of GET, given to `take` before it is copied.
    #[inline]
    pub(super) fn short_get<R>(&mut self, key: &Key<'_>, take: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        let context = self.context();
        let (shard, mut op) = context.shard_in(context.session.db, key)?;
        let mut digits = Digits::default();
        match shard.get(&mut op, key) {
            None => Ok(take(None)),
            Some(value) => match value.as_bytes(&mut digits) {
                Some(bytes) => Ok(take(Some(bytes))),
                None => Err(ErrorCode::WrongType.into()),
            },
        }
    }
    /// SET without options.
    #[inline]
    pub(super) fn short_set(&mut self, key: &Key<'_>, value: NewValue<'_>) -> Result {
        let context = self.context();
        let (shard, mut op) = context.shard_in(context.session.db, key)?;
        let (garbage, _) = shard.set(&mut op, key, value, Expiry::None);
        let is_awaited = !shard.waiters().is_empty();
        context.discard(garbage);
        self.note(key, is_awaited);
        Ok(())
    }
    /// INCR.
    #[inline]
    pub(super) fn short_increment(&mut self, key: &Key<'_>) -> Result<i64> {
        let context = self.context();
        let (shard, mut op) = context.shard_in(context.session.db, key)?;
        let value = shard.increment(&mut op, key, 1)?;
        let is_awaited = !shard.waiters().is_empty();
        self.note(key, is_awaited);
        Ok(value)
    }
    /// Somebody may wait for a key that was written to.
    #[inline]
    fn note(&mut self, key: &Key<'_>, is_awaited: bool) {
        if is_awaited {
            let context = self.context();
            // Neither adds to a stream.
            context.ready(context.session.db, key, || News::Other);
        }
    }
    /// Whether the key's shard is held.
    #[inline]
    pub(super) fn holds(&mut self, key: &Key<'_>) -> bool {
        match &self.context().locked {
            Locked::Guards(guards) | Locked::World(_, guards) => guards.covers(key),
            Locked::Key(guard) => guard.is_of(key),
            Locked::Batch(_) | Locked::Nothing => false,
        }
    }
}
