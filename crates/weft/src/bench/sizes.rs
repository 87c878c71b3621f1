//! How long values are, and what is in them. Owns the parsing of `-d` and the bytes of a value.

use anyhow::{Result, bail};

use weft_measure::Random;

/// The longest value that can be asked for: Redis's own limit.
const VALUE_BYTES_MAX: u64 = 512 << 20;
/// The most different sizes that can be listed.
const SIZES_MAX: usize = 64;
/// Digits of a key's number, which a value begins with.
pub(super) const STAMP_BYTES: usize = 12;

/// Sizes of values and how often each comes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sizes {
    /// Always the same.
    Fixed(usize),
    /// Anything from the first to the second, each as likely.
    Between(usize, usize),
    /// These, by weight.
    Weighted(Vec<(usize, u32)>),
}

impl Sizes {
    /// `16`, `16-1024`, `16:8,100:3,1024:1`.
    pub(super) fn parse(text: &str) -> Result<Sizes> {
        if text.contains([',', ':']) {
            let pairs: Result<Vec<_>> = text.split(',').map(pair).collect();
            let pairs = pairs?;
            if pairs.len() > SIZES_MAX || pairs.iter().all(|(_, weight)| *weight == 0) {
                bail!("{text:?}: at most {SIZES_MAX} sizes, not all of weight 0");
            }
            return Ok(Sizes::Weighted(pairs));
        }
        if let Some((low, high)) = text.split_once('-') {
            let (low, high) = (size(low)?, size(high)?);
            if low > high {
                bail!("{text:?}: {low} is above {high}");
            }
            return Ok(Sizes::Between(low, high));
        }
        Ok(Sizes::Fixed(size(text)?))
    }

    pub(super) fn max(&self) -> usize {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Between(_, high) => *high,
            Sizes::Weighted(pairs) => pairs.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }

    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Sizes::Fixed(_))
    }

    /// Whether a value can have this length.
    pub(super) fn has(&self, len: usize) -> bool {
        match self {
            Sizes::Fixed(size) => *size == len,
            Sizes::Between(low, high) => (*low..=*high).contains(&len),
            Sizes::Weighted(pairs) => pairs.iter().any(|(size, weight)| *size == len && *weight > 0),
        }
    }

    pub(super) fn draw(&self, random: &mut Random) -> usize {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Between(low, high) => random.between(*low as u64, *high as u64) as usize,
            Sizes::Weighted(pairs) => {
                let total: u64 = pairs.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut ticket = random.below(total);
                for (size, weight) in pairs {
                    if ticket < u64::from(*weight) {
                        return *size;
                    }
                    ticket -= u64::from(*weight);
                }
                self.max()
            }
        }
    }
}

fn size(text: &str) -> Result<usize> {
    match text.parse::<u64>() {
        Ok(size) if size <= VALUE_BYTES_MAX => Ok(size as usize),
        _ => bail!("{text:?} is no size of a value: a number of bytes, at most {VALUE_BYTES_MAX}"),
    }
}

fn pair(text: &str) -> Result<(usize, u32)> {
    let (bytes, weight) = text.split_once(':').unwrap_or((text, "1"));
    match weight.parse() {
        Ok(weight) => Ok((size(bytes)?, weight)),
        Err(_) => bail!("{weight:?} is no weight of a size"),
    }
}

/// What values are made of: a value of `len` bytes is the last digits of its key's number, then the rest of this up to
/// `len`. So a value says which key it belongs to, and every byte of it can be checked.
#[derive(Clone, Debug)]
pub(super) struct Filler(Vec<u8>);

impl Filler {
    pub(super) fn new(len_max: usize) -> Filler {
        // Words of service data, not one byte repeated: what compresses well flatters.
        let mut random = Random::new(0x7765_6674);
        let mut bytes = Vec::with_capacity(len_max + 16);
        while bytes.len() < len_max {
            bytes.extend_from_slice(random.pick(crate::workload::values::WORDS).as_bytes());
            bytes.push(b' ');
        }
        bytes.truncate(len_max);
        Filler(bytes)
    }

    /// A value whose stamp has not been written.
    pub(super) fn value(&self, len: usize) -> Vec<u8> {
        self.0[..len].to_vec()
    }

    /// Whether `bytes` is the value of `key`, of some length.
    pub(super) fn is_value(&self, bytes: &[u8], key: u64) -> bool {
        let width = bytes.len().min(STAMP_BYTES);
        let mut stamp = [0; STAMP_BYTES];
        write_digits(&mut stamp, key);
        bytes.len() <= self.0.len()
            && bytes[..width] == stamp[STAMP_BYTES - width..]
            && bytes[width..] == self.0[width..bytes.len()]
    }
}

/// Digits of two-digit numbers, so that a division gives two of them.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// Writes a number below 10¹² with leading zeros.
#[inline]
pub(super) fn write_digits(out: &mut [u8; STAMP_BYTES], number: u64) {
    // Most key spaces are smaller than a million.
    if number < 1_000_000 {
        out[..6].copy_from_slice(b"000000");
    } else {
        write_half(&mut out[..6], (number / 1_000_000) as u32);
    }
    write_half(&mut out[6..], (number % 1_000_000) as u32);
}

#[inline]
fn write_half(out: &mut [u8], half: u32) {
    out[..2].copy_from_slice(&PAIRS[(half / 10_000 % 100) as usize]);
    out[2..4].copy_from_slice(&PAIRS[(half / 100 % 100) as usize]);
    out[4..6].copy_from_slice(&PAIRS[(half % 100) as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(Sizes::parse("16").unwrap(), Sizes::Fixed(16));
        assert_eq!(Sizes::parse("1-9").unwrap(), Sizes::Between(1, 9));
        assert_eq!(Sizes::parse("16:8,100").unwrap(), Sizes::Weighted(vec![(16, 8), (100, 1)]));
        for bad in ["", "x", "9-1", "1:x", "1:0", "-1", "536870913"] {
            assert!(Sizes::parse(bad).is_err(), "{bad}");
        }
        assert!(Sizes::parse("536870912").is_ok());
    }

    #[test]
    fn draws_follow_the_weights() {
        let sizes = Sizes::parse("1:1,2:3,3:0").unwrap();
        let mut random = Random::new(1);
        let mut seen = [0; 4];
        (0..40_000).for_each(|_| seen[sizes.draw(&mut random)] += 1);
        assert!(seen[3] == 0 && (9_500..10_500).contains(&seen[1]), "{seen:?}");
        assert!(sizes.has(2) && !sizes.has(3) && sizes.max() == 3);
    }

    #[test]
    fn a_value_names_its_key() {
        let filler = Filler::new(64);
        for len in [0, 1, 3, 12, 13, 64] {
            let mut value = filler.value(len);
            let width = len.min(STAMP_BYTES);
            let mut stamp = [0; STAMP_BYTES];
            write_digits(&mut stamp, 123_456_789_012);
            value[..width].copy_from_slice(&stamp[STAMP_BYTES - width..]);
            assert!(filler.is_value(&value, 123_456_789_012));
            assert!(len == 0 || !filler.is_value(&value, 123_456_789_013));
            if len > 12 {
                value[12] ^= 1;
                assert!(!filler.is_value(&value, 123_456_789_012));
            }
        }
        let mut digits = [0; STAMP_BYTES];
        write_digits(&mut digits, 90_807_060_504);
        assert_eq!(&digits, b"090807060504");
    }
}
