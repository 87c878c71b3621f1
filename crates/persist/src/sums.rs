//! Owns: the CRC of any piece of a file without reading all of it, once the file was read. Does not own: what is proven
//! with it (`crate::reader`).
//!
//! A search for blocks meets bytes that look like the head of a large one as often as whoever stored them liked. To
//! read each of those to its end would take the square of the file; so the CRC is kept up to every [`STRIDE`]th byte,
//! and what is between two of those places follows from both: the CRC of A and B is that of A, moved on by the length
//! of B, and that of B.

use std::io;

use crate::disk::File;

/// Bytes between two places whose CRC is kept: what is read at either end of a piece is less.
pub(crate) const STRIDE: usize = 4096;
/// The polynomial of CRC-32C, mirrored as its register is: the highest bit is x⁰.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// A file's CRCs from a place on.
#[derive(Debug)]
pub(crate) struct Sums {
    from: u64,
    /// The register behind each stride, begun with zero.
    registers: Vec<u32>,
    /// What moves a register on by so many strides.
    powers: Vec<u32>,
}

impl Sums {
    /// Reads a file from a place to an end.
    pub(crate) fn read(file: &dyn File, from: u64, end: u64) -> io::Result<Self> {
        // x to the 8 times STRIDE.
        let stride = (0..STRIDE.ilog2()).fold(1 << (31 - 8), |power, _| product(power, power));
        let (mut registers, mut powers) = (vec![0], vec![1 << 31]);
        let mut bytes = [0; STRIDE];
        let (mut register, mut power, mut at) = (0, 1 << 31, from);
        while at + STRIDE as u64 <= end && file.read(at, &mut bytes)? == STRIDE {
            register = !crc32c::crc32c_append(!register, &bytes);
            power = product(power, stride);
            registers.push(register);
            powers.push(power);
            at += STRIDE as u64;
        }
        Ok(Self { from, registers, powers })
    }
    /// Whether it has what is behind a place.
    pub(crate) const fn covers(&self, at: u64) -> bool {
        self.from <= at
    }

    /// The CRC of what `crc` is of and of the bytes between two places; nothing where the file is shorter.
    pub(crate) fn append(&self, crc: u32, file: &dyn File, (at, end): (u64, u64)) -> io::Result<Option<u32>> {
        let stride = STRIDE as u64;
        let (first, last) = ((at - self.from).div_ceil(stride), (end - self.from) / stride);
        let last = last.min(self.registers.len() as u64 - 1);
        if first >= last {
            return append(crc, file, (at, end));
        }
        let Some(crc) = append(crc, file, (at, self.from + first * stride))? else { return Ok(None) };
        let (first, last) = (first as usize, last as usize);
        let moved = product(!crc ^ self.registers[first], self.powers[last - first]);
        append(!(moved ^ self.registers[last]), file, (self.from + last as u64 * stride, end))
    }
}

/// The same, read.
fn append(mut crc: u32, file: &dyn File, (mut at, end): (u64, u64)) -> io::Result<Option<u32>> {
    let mut bytes = [0; STRIDE];
    while at < end {
        let wanted = STRIDE.min((end - at) as usize);
        if file.read(at, &mut bytes[..wanted])? < wanted {
            return Ok(None);
        }
        crc = crc32c::crc32c_append(crc, &bytes[..wanted]);
        at += wanted as u64;
    }
    Ok(Some(crc))
}

/// The product of two polynomials, by the one of CRC-32C.
fn product(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        product ^= if a >> bit & 1 == 1 { b } else { 0 };
        b = b >> 1 ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk as _;
    use crate::disk::simulated::Simulated;

    #[test]
    fn every_piece_has_the_crc_of_its_bytes() {
        let disk = Simulated::default();
        let bytes: Vec<u8> = (0..5 * STRIDE as u32 + 99).map(|at| ((at * at) >> 7) as u8).collect();
        disk.put("a", &bytes);
        let file = disk.open("a").expect("it is there");
        let from = 7;
        let sums = Sums::read(&*file, from, bytes.len() as u64).expect("it reads");
        assert!(sums.covers(from) && !sums.covers(from - 1));
        let ends = [0, 1, 100, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE, 4 * STRIDE + 5, bytes.len() - 7];
        for (at, end) in ends.iter().flat_map(|at| ends.iter().map(move |end| (7 + at, 7 + end))) {
            let crc = sums.append(17, &*file, (at as u64, end as u64)).expect("it reads");
            let direct = (at <= end).then(|| crc32c::crc32c_append(17, &bytes[at..end]));
            assert_eq!(crc, Some(direct.unwrap_or(17)), "{at} to {end}");
        }
        let beyond = sums.append(17, &*file, (7, bytes.len() as u64 + 1)).expect("it reads");
        assert_eq!(beyond, None, "the file is shorter");
    }
}
