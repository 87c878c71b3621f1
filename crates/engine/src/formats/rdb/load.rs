//! Owns: making the store's values from what a payload holds. Does not own: the format.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weft_store::hash_object::{FieldExpiry, Hash, HashLimits, HashMut};
use weft_store::reaper::Backing;
use weft_store::set::{Set, SetLimits, SetMut};
use weft_store::sorted_set::{SortedSet, SortedSetLimits, SortedSetMut};
use weft_store::{End, List, ListLimit, ListMut, NewValue, Object, Stream};

use super::Collect;
use crate::config::Settings;

/// Limits of the compact forms, as they are set now.
struct Limits {
    list: ListLimit,
    hash: HashLimits,
    set: SetLimits,
    zset: SortedSetLimits,
}

impl Limits {
    fn new(settings: &Settings) -> Self {
        let get = |setting: &AtomicUsize| setting.load(Relaxed);
        Self {
            list: ListLimit::from_config(settings.list_max_listpack_size.load(Relaxed)),
            hash: HashLimits {
                entries_max: get(&settings.hash_max_listpack_entries),
                value_bytes_max: get(&settings.hash_max_listpack_value),
            },
            set: SetLimits {
                ints_max: get(&settings.set_max_intset_entries),
                entries_max: get(&settings.set_max_listpack_entries),
                value_bytes_max: get(&settings.set_max_listpack_value),
            },
            zset: SortedSetLimits {
                entries_max: get(&settings.zset_max_listpack_entries),
                value_bytes_max: get(&settings.zset_max_listpack_value),
            },
        }
    }
}

enum Value {
    Text(Vec<u8>),
    Object(Box<Object>),
}

/// A value on its way from a payload into the store. What it gets is of one type.
pub struct Loader<'e> {
    limits: Limits,
    backing: Backing<'e>,
    value: Option<Value>,
}

impl<'e> Loader<'e> {
    /// A loader for values of a keyspace with this backing.
    #[must_use]
    pub fn new(settings: &Settings, backing: Backing<'e>) -> Self {
        Self { limits: Limits::new(settings), backing, value: None }
    }
    /// The value that was read, as [`NewValue`] over `text`, which keeps a string's bytes.
    #[must_use]
    pub fn finish(self, text: &mut Vec<u8>) -> Option<NewValue<'_>> {
        Some(match self.value? {
            Value::Text(bytes) => {
                *text = bytes;
                NewValue::string(text)
            }
            Value::Object(object) => NewValue::Object(object),
        })
    }
    /// The object so far, which the first element makes.
    fn object(&mut self, create: fn() -> Object) -> &mut Object {
        let value = self.value.get_or_insert_with(|| Value::Object(Box::new(create())));
        match value {
            Value::Object(object) => object,
            Value::Text(_) => unreachable!("a payload holds elements of one type"),
        }
    }
}

impl Collect for Loader<'_> {
    fn string(&mut self, bytes: &[u8]) {
        self.value = Some(Value::Text(bytes.to_vec()));
    }
    fn list_element(&mut self, bytes: &[u8]) {
        let limit = self.limits.list;
        if let Object::List(list) = self.object(|| Object::List(List::default())) {
            ListMut::new(list, limit).push(End::Back, bytes);
        }
    }
    fn set_member(&mut self, bytes: &[u8]) -> bool {
        let (limits, backing) = (self.limits.set, self.backing);
        match self.object(|| Object::Set(Set::default())) {
            Object::Set(set) => SetMut::new(set, limits, backing).add(bytes),
            _ => false,
        }
    }
    fn hash_field(&mut self, name: &[u8], value: &[u8], expire_ms: Option<u64>) -> bool {
        let (limits, backing) = (self.limits.hash, self.backing);
        let expiry = expire_ms.map_or(FieldExpiry::None, FieldExpiry::At);
        match self.object(|| Object::Hash(Hash::default())) {
            Object::Hash(hash) => HashMut::new(hash, limits, backing).set_with(name, value, expiry),
            _ => false,
        }
    }
    fn zset_member(&mut self, member: &[u8], score: f64) -> bool {
        let (limits, backing) = (self.limits.zset, self.backing);
        match self.object(|| Object::SortedSet(SortedSet::default())) {
            Object::SortedSet(set) => SortedSetMut::new(set, limits, backing).add(member, score),
            _ => false,
        }
    }
    fn stream(&mut self, stream: Stream) {
        self.value = Some(Value::Object(Box::new(Object::Stream(Box::new(stream)))));
    }
}
