//! Owns: asking for what the requests of a batch will look for, before any of them runs. Does not own: what is asked
//! for (`weft_store`), running them.

use weft_store::Batch;

use crate::requests::{Fast, Request, Requests};

/// See [`prefetch_objects`].
const LOOK_AT_ONE_IN: usize = 4;

/// The passes before the requests run. Each costs some 2 ns a key, and saves up to two cache misses of 80 ns. Loops of
/// their own: among the code that runs requests they have too few registers.
#[inline(never)]
pub(super) fn prefetch(batch: &mut Batch<'_>, requests: &Requests) {
    if requests.has_one_key_each() {
        return prefetch_one_each(batch, requests.list());
    }
    let keyed = || requests.list().iter().filter(|request| request.hash != 0);
    let mut before = 0;
    for request in keyed() {
        ask_for_bucket(batch, request, &mut before);
        let reads = request.fast.reads();
        requests
            .more_hashes(request)
            .iter()
            .for_each(|&hash| batch.prefetch_bucket(request.client.db, hash, reads));
    }
    let mut at = 0;
    for request in keyed() {
        let more = requests.more_hashes(request);
        let whole = request.fast != Fast::No || !more.is_empty();
        batch.prefetch_entries(at, [(request.hash, whole)]);
        batch.prefetch_entries(at + 1, more.iter().map(|hash| (*hash, whole)));
        at += 1 + more.len();
    }
    batch.prefetch_passed();
    prefetch_objects(batch, requests.list());
}

/// The same for requests of one key each, as nearly all are.
#[inline(never)]
fn prefetch_one_each(batch: &mut Batch<'_>, list: &[Request]) {
    let mut before = 0;
    list.iter().for_each(|request| ask_for_bucket(batch, request, &mut before));
    batch.prefetch_entries(0, list.iter().map(|request| (request.hash, request.fast != Fast::No)));
    batch.prefetch_passed();
    prefetch_objects(batch, list);
}

/// The pass over what entries lead to, where requests may want it: one in so many is looked at, since few do not pay.
#[inline(always)]
fn prefetch_objects(batch: &mut Batch<'_>, list: &[Request]) {
    if list.iter().step_by(LOOK_AT_ONE_IN).any(|request| request.fast == Fast::No) {
        batch.prefetch_objects();
    }
}

/// Asks for the bucket of a request's first key. `before` is the hash of the one before.
#[inline(always)]
fn ask_for_bucket(batch: &mut Batch<'_>, request: &Request, before: &mut u64) {
    // In a deep pipeline neighbours are often about the same key.
    if request.hash == *before && request.fast == Fast::No {
        batch.pass_bucket();
    } else {
        batch.prefetch_bucket(request.client.db, request.hash, request.fast.reads());
    }
    *before = request.hash;
}
