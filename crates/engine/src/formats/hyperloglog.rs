//! Owns: HyperLogLog in the bytes that Redis gives it: adding, counting, merging. Does not own: keys and commands.
//!
//! ```text
//! +------+----------+-------+----------------------+------------------+
//! | HYLL | encoding | 0 0 0 | count, 63 bits LE    | registers        |
//! |      | 0 dense  |       | and 1 bit: not known |                  |
//! |      | 1 sparse |       |                      |                  |
//! +------+----------+-------+----------------------+------------------+
//!  dense:  16,384 registers of 6 bits, from the low bits of each byte on: 12,288 bytes
//!  sparse: 00nnnnnn          n + 1 registers of 0
//!          01nnnnnn nnnnnnnn n + 1 registers of 0
//!          1vvvvvnn          n + 1 registers of v + 1
//! ```
//! Hash (MurmurHash64A), estimator (Ertl, arXiv:1702.01284) and the ways in which runs are split and joined are those
//! of Redis and Valkey, so that counts and dumps are the same, byte for byte.

use std::ops::Range;

/// Registers: 2^14.
pub const REGISTERS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
/// Bits of the hash that are looked at for zeros.
const RUN_BITS: u32 = 64 - INDEX_BITS;
const HEADER_BYTES: usize = 16;
/// Bytes of the dense form.
pub const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;
const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const COUNT_AT: usize = 8;
/// The byte whose highest bit says that the count is not known.
const STALE_AT: usize = 15;
const HASH_SEED: u64 = 0xadc8_3b19;
/// The largest register and the longest runs that an opcode of the sparse form can say.
const RUN_VALUE_MAX: u8 = 32;
const RUN_LEN_MAX: usize = 4;
const ZERO_LEN_MAX: usize = 64;
/// After a change so many opcodes are looked at for runs that can be joined.
const JOIN_OPCODES_MAX: usize = 5;

/// The bytes have the header, but their registers do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// An empty one, in the sparse form.
#[must_use]
pub fn create() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = SPARSE;
    push_zeros(&mut bytes, REGISTERS);
    bytes
}

/// Whether a string is a HyperLogLog, by its header and length.
#[must_use]
pub fn is_valid(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER_BYTES
        && bytes.starts_with(MAGIC)
        && bytes[ENCODING_AT] <= SPARSE
        && (bytes[ENCODING_AT] != DENSE || bytes.len() == DENSE_BYTES)
}

/// Whether it is in the dense form.
#[must_use]
pub fn is_dense(bytes: &[u8]) -> bool {
    bytes[ENCODING_AT] == DENSE
}

/// The count that was kept, if nothing has changed since.
#[must_use]
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count = u64::from_le_bytes(bytes[COUNT_AT..HEADER_BYTES].try_into().ok()?);
    (bytes[STALE_AT] & 0x80 == 0).then_some(count)
}
/// The 8 bytes at [`count_place`] that keep a count.
#[must_use]
pub const fn count_bytes(count: u64) -> [u8; 8] {
    count.to_le_bytes()
}
/// Where the count is kept.
#[must_use]
pub const fn count_place() -> usize {
    COUNT_AT
}
/// Marks the count as not known.
pub fn forget_count(bytes: &mut [u8]) {
    bytes[STALE_AT] |= 0x80;
}

/// The register of an element, and the value it asks for: zeros at the low end of the other bits of the hash, plus 1.
fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur64a(element);
    let zeros = (hash >> INDEX_BITS | 1 << RUN_BITS).trailing_zeros();
    (hash as usize & (REGISTERS - 1), zeros as u8 + 1)
}

fn murmur64a(bytes: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = HASH_SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> 47;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

/// Adds an element. Says whether a register has changed; the count is not forgotten by this.
pub fn add(bytes: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> Result<bool, Corrupt> {
    let (index, value) = place(element);
    set(bytes, index, value, sparse_bytes_max)
}

fn set(bytes: &mut Vec<u8>, index: usize, value: u8, sparse_bytes_max: usize) -> Result<bool, Corrupt> {
    if is_dense(bytes) {
        return Ok(set_dense(bytes, index, value));
    }
    if value <= RUN_VALUE_MAX
        && let Some(changed) = set_sparse(bytes, index, value, sparse_bytes_max)?
    {
        return Ok(changed);
    }
    *bytes = to_dense(bytes)?;
    Ok(set_dense(bytes, index, value))
}

/// What an element changes in the dense form: a place and the byte or two bytes that it gets. Nothing is copied.
#[must_use]
pub fn dense_change(bytes: &[u8], element: &[u8]) -> Option<(usize, [u8; 2], usize)> {
    let (index, value) = place(element);
    let (at, shift) = dense_place(index);
    if dense_register(&bytes[HEADER_BYTES..], index) >= value {
        return None;
    }
    let high = bytes.get(at + 1).copied().unwrap_or(0);
    let word = u16::from_le_bytes([bytes[at], high]) & !(63 << shift) | u16::from(value) << shift;
    Some((at, word.to_le_bytes(), if shift > 2 { 2 } else { 1 }))
}

fn set_dense(bytes: &mut [u8], index: usize, value: u8) -> bool {
    if dense_register(&bytes[HEADER_BYTES..], index) >= value {
        return false;
    }
    let (at, shift) = dense_place(index);
    let high = bytes.get(at + 1).copied().unwrap_or(0);
    let word = u16::from_le_bytes([bytes[at], high]) & !(63 << shift) | u16::from(value) << shift;
    let [low, high] = word.to_le_bytes();
    bytes[at] = low;
    if let Some(place) = bytes.get_mut(at + 1) {
        *place = high;
    }
    true
}
/// The byte that a register begins in, and at which of its bits.
const fn dense_place(index: usize) -> (usize, u32) {
    (HEADER_BYTES + index * 6 / 8, index as u32 * 6 % 8)
}
fn dense_register(registers: &[u8], index: usize) -> u8 {
    let at = index * 6 / 8;
    let word = u16::from_le_bytes([registers[at], registers.get(at + 1).copied().unwrap_or(0)]);
    (word >> (index * 6 % 8)) as u8 & 63
}

/// Opcode of the sparse form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RegisterRun {
    /// The value of its registers.
    value: u8,
    len: usize,
    /// Bytes of the opcode.
    bytes: usize,
}

fn run_at(bytes: &[u8], at: usize) -> Option<RegisterRun> {
    let &first = bytes.get(at)?;
    Some(match first >> 6 {
        0 => RegisterRun { value: 0, len: usize::from(first & 63) + 1, bytes: 1 },
        1 => RegisterRun {
            value: 0,
            len: (usize::from(first & 63) << 8 | usize::from(*bytes.get(at + 1)?)) + 1,
            bytes: 2,
        },
        _ => RegisterRun { value: (first >> 2 & 31) + 1, len: usize::from(first & 3) + 1, bytes: 1 },
    })
}

/// The runs of the sparse form. Ends early where the bytes do.
fn runs(bytes: &[u8]) -> impl Iterator<Item = (usize, RegisterRun)> + '_ {
    let mut at = HEADER_BYTES;
    std::iter::from_fn(move || {
        let run = run_at(bytes, at)?;
        at += run.bytes;
        Some((at - run.bytes, run))
    })
}

const fn value_opcode(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len as u8 - 1)
}
fn push_zeros(out: &mut Vec<u8>, len: usize) {
    match len {
        0 => {}
        1..=ZERO_LEN_MAX => out.push(len as u8 - 1),
        _ => out.extend([0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
    }
}
fn push_value(out: &mut Vec<u8>, value: u8, len: usize) {
    if len > 0 {
        out.push(value_opcode(value, len));
    }
}

/// Sets a register of the sparse form. Nothing comes back when it would get larger than allowed.
fn set_sparse(
    bytes: &mut Vec<u8>,
    index: usize,
    value: u8,
    bytes_max: usize,
) -> Result<Option<bool>, Corrupt> {
    let (mut first, mut before) = (0, HEADER_BYTES);
    let mut found = None;
    for (at, run) in runs(bytes) {
        if index < first + run.len {
            found = Some((at, run));
            break;
        }
        before = at;
        first += run.len;
    }
    let (at, run) = found.ok_or(Corrupt)?;
    if run.value >= value {
        return Ok(Some(false));
    }
    let mut parts = Vec::with_capacity(5);
    let (left, right) = (index - first, first + run.len - 1 - index);
    if run.value == 0 {
        push_zeros(&mut parts, left);
        push_value(&mut parts, value, 1);
        push_zeros(&mut parts, right);
    } else {
        push_value(&mut parts, run.value, left);
        push_value(&mut parts, value, 1);
        push_value(&mut parts, run.value, right);
    }
    if parts.len() > run.bytes && bytes.len() + parts.len() - run.bytes > bytes_max {
        return Ok(None);
    }
    bytes.splice(at..at + run.bytes, parts);
    join(bytes, before);
    Ok(Some(true))
}

/// Joins neighbours of one value, from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_OPCODES_MAX {
        let Some(run) = run_at(bytes, at) else { return };
        let next = run_at(bytes, at + run.bytes);
        match next {
            Some(next) if run.value > 0 && next.value == run.value && run.len + next.len <= RUN_LEN_MAX => {
                bytes[at] = value_opcode(run.value, run.len + next.len);
                bytes.remove(at + 1);
            }
            _ => at += run.bytes,
        }
    }
}

/// Calls `visit` with each run of registers.
fn each_run(bytes: &[u8], mut visit: impl FnMut(u8, Range<usize>)) -> Result<(), Corrupt> {
    if is_dense(bytes) {
        let registers = &bytes[HEADER_BYTES..];
        for index in 0..REGISTERS {
            visit(dense_register(registers, index), index..index + 1);
        }
        return Ok(());
    }
    let (mut first, mut end) = (0, HEADER_BYTES);
    for (at, run) in runs(bytes) {
        if first + run.len > REGISTERS {
            return Err(Corrupt);
        }
        visit(run.value, first..first + run.len);
        first += run.len;
        end = at + run.bytes;
    }
    if first == REGISTERS && end == bytes.len() { Ok(()) } else { Err(Corrupt) }
}

/// The same in the dense form, with the count that was kept.
pub fn to_dense(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    if is_dense(bytes) {
        return Ok(bytes.to_vec());
    }
    let mut dense = bytes[..HEADER_BYTES].to_vec();
    dense[ENCODING_AT] = DENSE;
    dense.resize(DENSE_BYTES, 0);
    each_run(bytes, |value, indexes| {
        if value > 0 {
            for index in indexes {
                set_dense(&mut dense, index, value);
            }
        }
    })?;
    Ok(dense)
}

/// The number of different elements, estimated.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = [0; 64];
    each_run(bytes, |value, indexes| histogram[usize::from(value)] += indexes.len() as u32)?;
    Ok(estimate(&histogram))
}

/// From how many registers have each value.
fn estimate(histogram: &[u32; 64]) -> u64 {
    /// 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let registers = REGISTERS as f64;
    let saturated = f64::from(histogram[RUN_BITS as usize + 1]);
    let mut z = registers * tau((registers - saturated) / registers);
    for value in (1..=RUN_BITS as usize).rev() {
        z = (z + f64::from(histogram[value])) * 0.5;
    }
    z += registers * sigma(f64::from(histogram[0]) / registers);
    (ALPHA * registers * registers / z).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// The largest value of each register over several.
#[derive(Debug)]
pub struct Union(Box<[u8; REGISTERS]>);

impl Default for Union {
    fn default() -> Self {
        Self(Box::new([0; REGISTERS]))
    }
}

impl Union {
    /// Takes one more in.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Corrupt> {
        each_run(bytes, |value, indexes| {
            for register in &mut self.0[indexes] {
                *register = value.max(*register);
            }
        })
    }
    /// The number of different elements, estimated.
    #[must_use]
    pub fn count(&self) -> u64 {
        let mut histogram = [0; 64];
        self.0.iter().for_each(|&value| histogram[usize::from(value)] += 1);
        estimate(&histogram)
    }
    /// Writes the registers into one that is part of the union; with `dense` it becomes dense.
    pub fn write_into(
        &self,
        bytes: &mut Vec<u8>,
        dense: bool,
        sparse_bytes_max: usize,
    ) -> Result<(), Corrupt> {
        if dense {
            *bytes = to_dense(bytes)?;
        }
        for (index, &value) in self.0.iter().enumerate() {
            if value > 0 {
                set(bytes, index, value, sparse_bytes_max)?;
            }
        }
        forget_count(bytes);
        Ok(())
    }
}

/// PFDEBUG GETREG: all registers.
pub fn registers(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let mut all = Union::default();
    all.add(bytes)?;
    Ok(all.0.to_vec())
}

/// PFDEBUG DECODE: the opcodes of the sparse form in words.
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    let words: Vec<_> = runs(bytes)
        .map(|(_, run)| match (run.value, run.bytes) {
            (0, 1) => format!("z:{}", run.len),
            (0, _) => format!("Z:{}", run.len),
            (value, _) => format!("v:{value},{}", run.len),
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_store::{Rng, XorShift};

    const SPARSE_BYTES_MAX: usize = 3000;

    #[test]
    fn counts_are_those_of_valkey() {
        let mut bytes = create();
        assert_eq!((count(&bytes), cached_count(&bytes)), (Ok(0), Some(0)));
        let mut seen = Vec::new();
        for number in 0..100_000 {
            if [1, 10, 100, 1000, 5000, 20_000].contains(&number) {
                seen.push((is_dense(&bytes), count(&bytes).unwrap()));
            }
            add(&mut bytes, format!("element:{number}").as_bytes(), SPARSE_BYTES_MAX).unwrap();
        }
        seen.push((is_dense(&bytes), count(&bytes).unwrap()));
        assert_eq!(seen, EXPECTED);
    }

    /// A Valkey 9.1.2 has these bytes after the same additions; the checksum is that of a dump's footer.
    #[test]
    fn bytes_are_those_of_valkey() {
        let mut bytes = create();
        for number in 0..1000 {
            add(&mut bytes, format!("element:{number}").as_bytes(), SPARSE_BYTES_MAX).unwrap();
            forget_count(&mut bytes);
            if number == 11 {
                assert_eq!(
                    decode(&bytes),
                    "Z:1167 v:1,1 Z:1340 v:2,1 Z:148 v:2,1 Z:345 v:3,1 z:35 v:3,1 Z:1016 v:1,1 Z:125 v:5,1 Z:1282 v:1,1 Z:2740 v:2,1 Z:115 v:1,1 Z:6365 v:1,1 Z:1104 v:2,1 Z:590"
                );
            }
        }
        assert_eq!(bytes.len(), 1897);
        let sealed = crate::rdb::seal(bytes, 10);
        assert_eq!(sealed[sealed.len() - 8..], 0x681a32b8093c8377_u64.to_le_bytes());
    }

    #[test]
    fn sparse_and_dense_agree() {
        println!("seed 5");
        let mut rng = XorShift::new(5);
        for _ in 0..20 {
            let mut sparse = create();
            let mut dense = to_dense(&sparse).unwrap();
            for _ in 0..rng.below(3000) {
                let element = rng.next_u64().to_le_bytes();
                let change = dense_change(&dense, &element);
                let mut patched = dense.clone();
                let changed = add(&mut dense, &element, 0).unwrap();
                assert_eq!(change.is_some(), changed);
                if let Some((at, new, len)) = change {
                    patched[at..at + len].copy_from_slice(&new[..len]);
                    assert_eq!(patched, dense);
                }
                assert_eq!(add(&mut sparse, &element, 1 << 20).unwrap(), changed);
            }
            assert!(is_valid(&sparse) && !is_dense(&sparse));
            assert_eq!(registers(&sparse), registers(&dense));
            assert_eq!(count(&sparse), count(&dense));
            assert_eq!(to_dense(&sparse).unwrap(), dense);
        }
    }

    #[test]
    fn unions_count_once() {
        let (mut one, mut two) = (create(), create());
        for number in 0..500_u32 {
            add(&mut one, &number.to_le_bytes(), SPARSE_BYTES_MAX).unwrap();
            add(&mut two, &(number + 250).to_le_bytes(), 0).unwrap();
        }
        let mut union = Union::default();
        union.add(&one).unwrap();
        union.add(&two).unwrap();
        let mut all = create();
        for number in 0..750_u32 {
            add(&mut all, &number.to_le_bytes(), SPARSE_BYTES_MAX).unwrap();
        }
        assert_eq!(union.count(), count(&all).unwrap());
        union.write_into(&mut one, true, SPARSE_BYTES_MAX).unwrap();
        assert!(is_dense(&one) && cached_count(&one).is_none());
        assert_eq!(registers(&one), registers(&all));
    }

    #[test]
    fn corrupt_ones_are_refused() {
        let good = create();
        assert!(is_valid(&good) && !is_valid(&good[..15]) && !is_valid(b"HYLL"));
        let mut short = good.clone();
        short.truncate(17);
        assert_eq!(count(&short), Err(Corrupt));
        let mut long = good.clone();
        long.push(0);
        assert_eq!((count(&long), to_dense(&long)), (Err(Corrupt), Err(Corrupt)));
        let mut few = good.clone();
        few.truncate(16);
        few.push(5);
        assert_eq!(count(&few), Err(Corrupt));
        assert_eq!(Union::default().add(&few), Err(Corrupt));
        let mut cut = to_dense(&good).unwrap();
        cut.pop();
        assert!(!is_valid(&cut));
    }

    /// Asked of a Valkey 9.1.2 after 1, 10, … elements.
    const EXPECTED: [(bool, u64); 7] =
        [(false, 1), (false, 10), (false, 99), (false, 997), (true, 5005), (true, 19_986), (true, 100_039)];
}
