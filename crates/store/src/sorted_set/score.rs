//! Owns: scores in the compact form: whole numbers of up to 32 bits in as few bytes as they need, others in 8. Does not
//! own: what surrounds them.

/// The longest.
pub(super) const BYTES_MAX: usize = 8;

/// Writes a score into as few bytes as give it back exactly; −0 becomes 0, as it does in Valkey's compact form.
pub(super) fn write(score: f64, out: &mut [u8; BYTES_MAX]) -> &[u8] {
    let whole = score as i32;
    if f64::from(whole) != score {
        *out = score.to_le_bytes();
        return out;
    }
    out[..4].copy_from_slice(&whole.to_le_bytes());
    let len = match whole {
        0 => 0,
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x80_0000..=0x7f_ffff => 3,
        _ => 4,
    };
    &out[..len]
}

/// Reads what [`write`] has written.
pub(super) fn read(bytes: &[u8]) -> f64 {
    if let Some(bytes) = bytes.first_chunk() {
        return f64::from_le_bytes(*bytes);
    }
    let mut word = [0; 4];
    word[4 - bytes.len()..].copy_from_slice(bytes);
    f64::from(i32::from_le_bytes(word) >> (32 - 8 * bytes.len().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_back() {
        let whole = [0, 1, -1, 127, 128, -128, -129, 32_767, 32_768, -32_769, 8_388_607, 8_388_608, i32::MAX];
        let whole = whole.into_iter().chain([i32::MIN, -8_388_608, -8_388_609]).map(f64::from);
        let others = [0.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, 2_147_483_648.0, 5e-324];
        for score in whole.chain(others) {
            let mut buffer = [0; BYTES_MAX];
            let bytes = write(score, &mut buffer);
            assert_eq!(read(bytes).to_bits(), score.to_bits(), "{score}");
        }
        assert_eq!(write(0.0, &mut [0; 8]).len(), 0);
        assert_eq!(write(-0.0, &mut [0; 8]).len(), 0);
        assert_eq!(write(-128.0, &mut [0; 8]).len(), 1);
        assert_eq!(write(70_000.0, &mut [0; 8]).len(), 3);
    }
}
