//! Owns: the second keyspace, which is fed nothing but effects. Does not own: the commands.

use std::collections::BTreeSet;

use weft_store::effect::Effect;
use weft_store::{
    Config, Digest, KeyHasher, KeyedEffect, Keyspace, Merger, ObjectRef, Replayer, ValueRef, Worker, World,
    wants,
};

/// A keyspace for proofs: few shards, so that groups meet in them and looking at all is quick.
pub(crate) fn config(seed: u64) -> Config {
    Config { shards: 8, hasher: KeyHasher::with_seed(seed), seed, ..Config::default() }
}

/// What was replayed.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) groups: u64,
    pub(crate) effects: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    pub(crate) fields: u64,
    pub(crate) swaps: u64,
}

/// The second keyspace.
pub(crate) struct Shadow {
    own: Worker<'static>,
    merger: Merger<'static>,
    worker: Worker<'static>,
    replayer: Replayer,
    pub(crate) figures: Figures,
}

impl Shadow {
    /// Of a keyspace in which nothing is yet.
    pub(crate) fn of(keyspace: &'static Keyspace) -> Self {
        let mut own = keyspace.worker().expect("a place for one more");
        let merger = own.merger(wants::VALUES).expect("one merger");
        // Another hash: nothing that is told depends on it.
        let other: &Keyspace = Box::leak(Box::new(Keyspace::new(config(99))));
        let worker = other.worker().expect("a place");
        Self { own, merger, worker, replayer: Replayer::default(), figures: Figures::default() }
    }

    /// Applies all groups that are complete.
    pub(crate) fn follow(&mut self) {
        let Self { merger, worker, replayer, figures, .. } = self;
        let world = worker.world();
        let done = merger.poll(|group| {
            figures.groups += 1;
            for told in group.read() {
                figures.see(&told);
                replayer.apply(&world, &told);
            }
        });
        done.expect("nothing was lost");
    }
    /// Whether both hold the same: behind the gate, with all that was told.
    pub(crate) fn agrees(&mut self) -> bool {
        Digest::of_keyspace(&self.own.world()) == Digest::of_keyspace(&self.worker.world())
    }
    /// What each holds that the other does not.
    pub(crate) fn differences(&mut self) -> String {
        let (own, theirs) = (all(&self.own.world()), all(&self.worker.world()));
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect::<Vec<_>>().join("\n")
        };
        format!("here:\n{}\nby effects:\n{}", only(&own, &theirs), only(&theirs, &own))
    }
}

/// Every key as a line of text.
pub(crate) fn all(world: &World<'_>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    world.each_key(|db, key, value, expire_ms| {
        let value = match value {
            ValueRef::Object(ObjectRef::List(list)) => format!("{:?}", list.iter().collect::<Vec<_>>()),
            ValueRef::Object(ObjectRef::Set(set)) => {
                format!("{:?}", set.iter().map(|member| member.to_vec()).collect::<BTreeSet<_>>())
            }
            ValueRef::Object(ObjectRef::Hash(hash)) => {
                let fields = hash.fields().map(|field| (field.name, field.value, field.expire_ms));
                format!("{:?}", fields.collect::<BTreeSet<_>>())
            }
            ValueRef::Object(ObjectRef::SortedSet(set)) => {
                format!("{:?}", set.iter(0..set.len()).collect::<Vec<_>>())
            }
            ValueRef::Object(ObjectRef::Stream(stream)) => format!("{stream:?}"),
            text => format!("{text:?}"),
        };
        all.insert(format!("{db} {} {expire_ms:?} {value}", key.escape_ascii()));
    });
    all
}

impl Figures {
    fn see(&mut self, told: &KeyedEffect<'_>) {
        use weft_store::Cause;
        self.effects += 1;
        match told.effect {
            Effect::Delete { cause: Cause::Expired | Cause::Overdue } => self.expired += 1,
            Effect::Delete { cause: Cause::Evicted } => self.evicted += 1,
            Effect::FieldExpired { .. } => self.fields += 1,
            Effect::Swap { .. } => self.swaps += 1,
            _ => {}
        }
    }
}
