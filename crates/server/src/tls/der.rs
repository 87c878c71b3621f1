//! Owns: the little of X.509 that TLS itself does not tell: whom a certificate is about and when it expires, and a
//! certificate for a try. Does not own: whether a certificate is to be trusted, which rustls decides before anybody
//! asks here.
//!
//! ```text
//! Certificate  = SEQUENCE { TBSCertificate, algorithm, signature }
//! TBSCertificate = SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, …, [3] extensions }
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0C;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0]`, constructed: the version.
const VERSION: u8 = 0xA0;
/// `[3]`, constructed: the extensions.
const EXTENSIONS: u8 = 0xA3;
/// `[6]`: a URI among the names of a subject.
const URI: u8 = 0x86;
/// `[2]` and `[7]`: a host and an address among them.
const HOST: u8 = 0x82;
const ADDRESS: u8 = 0x87;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1D, 0x11];
const ECDSA_SHA256: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02];

/// Values one behind the other.
#[derive(Clone, Copy)]
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    /// The next value, with its tag. Lengths of more than 4 bytes are of no certificate.
    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let [tag, first, rest @ ..] = self.0 else { return None };
        let (len, rest) = match usize::from(*first) {
            len @ 0..=0x7F => (len, rest),
            bytes @ 0x81..=0x84 => {
                let (len, rest) = rest.split_at_checked(bytes - 0x80)?;
                (len.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((*tag, value))
    }
    /// The next value, which must have this tag.
    fn expect(&mut self, wanted: u8) -> Option<&'d [u8]> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    }
    /// The next value passed over.
    fn pass(&mut self) -> Option<()> {
        self.next().map(|_| ())
    }
}

/// The parts of a certificate that are asked for.
pub(super) struct Certificate<'d> {
    validity: Reader<'d>,
    subject: Reader<'d>,
    extensions: Option<Reader<'d>>,
}

impl<'d> Certificate<'d> {
    pub(super) fn read(der: &'d [u8]) -> Option<Self> {
        let certificate = Reader(der).expect(SEQUENCE)?;
        let mut fields = Reader(Reader(certificate).expect(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.pass()?;
        }
        // Serial, algorithm, issuer.
        fields.pass()?;
        fields.pass()?;
        fields.pass()?;
        let validity = Reader(fields.expect(SEQUENCE)?);
        let subject = Reader(fields.expect(SEQUENCE)?);
        let mut extensions = None;
        while let Some((tag, value)) = fields.next() {
            if tag == EXTENSIONS {
                extensions = Reader(value).expect(SEQUENCE).map(Reader);
            }
        }
        Some(Self { validity, subject, extensions })
    }

    /// When it expires, in seconds since 1970.
    pub(super) fn expires_s(&self) -> Option<u64> {
        let mut validity = self.validity;
        validity.pass()?;
        let (tag, text) = validity.next()?;
        seconds_of(tag, text)
    }
    /// The last common name of its subject.
    pub(super) fn common_name(&self) -> Option<&'d [u8]> {
        let mut subject = self.subject;
        let mut found = None;
        while let Some((SET, names)) = subject.next() {
            let mut name = Reader(Reader(names).expect(SEQUENCE)?);
            if name.expect(OID)? == COMMON_NAME {
                found = Some(name.next()?.1);
            }
        }
        found
    }
    /// The URIs among its subject's other names.
    pub(super) fn uris(&self) -> Vec<&'d [u8]> {
        let mut uris = Vec::new();
        let mut extensions = self.extensions.unwrap_or(Reader(&[]));
        while let Some((SEQUENCE, extension)) = extensions.next() {
            let mut extension = Reader(extension);
            if extension.expect(OID) != Some(SUBJECT_ALT_NAME) {
                continue;
            }
            // A flag may stand before it: whether it is critical.
            while let Some((tag, value)) = extension.next() {
                let names = (tag == OCTET_STRING).then(|| Reader(value).expect(SEQUENCE)).flatten();
                let mut names = Reader(names.unwrap_or_default());
                while let Some((tag, name)) = names.next() {
                    if tag == URI {
                        uris.push(name);
                    }
                }
            }
        }
        uris
    }
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn seconds_of(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, to: usize| {
        let digits = digits.get(from..to)?;
        digits
            .iter()
            .try_fold(0_i64, |all, digit| digit.is_ascii_digit().then(|| all * 10 + i64::from(digit - b'0')))
    };
    let (year, at) = match tag {
        UTC_TIME => (number(0, 2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        TIME => (number(0, 4)?, 4),
        _ => return None,
    };
    let (month, day) = (number(at, at + 2)?, number(at + 2, at + 4)?);
    let clock = (number(at + 4, at + 6)? * 60 + number(at + 6, at + 8)?) * 60 + number(at + 8, at + 10)?;
    u64::try_from(days_of(year, month, day) * 86_400 + clock).ok()
}

/// Days from 1970 to a date of the Gregorian calendar. A year begins in March here, so that the day that only some
/// have is the last.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let in_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year - 719_468
}

/// A value with its tag and length.
fn value(tag: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut out = vec![tag];
    match len {
        0..=0x7F => out.push(len as u8),
        0x80..=0xFF => out.extend([0x81, len as u8]),
        _ => out.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    out
}

/// How long a certificate for a try is valid.
const SELF_SIGNED_FOR: Duration = Duration::from_secs(30 * 86_400);

/// A certificate that this program signs itself, for `localhost` and the loopback addresses, and its key.
pub(super) fn self_signed() -> Option<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    use rustls::SignatureScheme::ECDSA_NISTP256_SHA256;

    let key = PrivatePkcs8KeyDer::from(new_key()?);
    let signing = rustls::crypto::aws_lc_rs::sign::any_ecdsa_type(&key.clone_key().into()).ok()?;
    let public = signing.public_key()?;
    let mut serial = [0; 16];
    default_provider().secure_random.fill(&mut serial).ok()?;
    // Positive, and not shorter than it is long.
    serial[0] = serial[0] & 0x7F | 0x40;
    let algorithm = value(SEQUENCE, &[&value(OID, &[ECDSA_SHA256])]);
    let common_name = value(SEQUENCE, &[&value(OID, &[COMMON_NAME]), &value(UTF8, &[b"localhost"])]);
    let name = value(SEQUENCE, &[&value(SET, &[&common_name])]);
    let now = SystemTime::now();
    let validity =
        value(SEQUENCE, &[&time_of(now - Duration::from_secs(3600)), &time_of(now + SELF_SIGNED_FOR)]);
    let mut loopback_v6 = [0; 16];
    loopback_v6[15] = 1;
    let names = value(
        SEQUENCE,
        &[
            &value(HOST, &[b"localhost"]),
            &value(ADDRESS, &[&[127, 0, 0, 1]]),
            &value(ADDRESS, &[&loopback_v6]),
        ],
    );
    let names = value(SEQUENCE, &[&value(OID, &[SUBJECT_ALT_NAME]), &value(OCTET_STRING, &[&names])]);
    let fields = value(
        SEQUENCE,
        &[
            &value(VERSION, &[&value(INTEGER, &[&[2]])]),
            &value(INTEGER, &[&serial]),
            &algorithm,
            &name,
            &validity,
            &name,
            public.as_ref(),
            &value(EXTENSIONS, &[&value(SEQUENCE, &[&names])]),
        ],
    );
    let signature = signing.choose_scheme(&[ECDSA_NISTP256_SHA256])?.sign(&fields).ok()?;
    let certificate = value(SEQUENCE, &[&fields, &algorithm, &value(BIT_STRING, &[&[0], &signature])]);
    Some((certificate.into(), key.into()))
}

/// A new key of P-256, as PKCS #8 has it.
fn new_key() -> Option<Vec<u8>> {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let pair = aws_lc_rs::signature::EcdsaKeyPair::generate_pkcs8(
        &aws_lc_rs::signature::ECDSA_P256_SHA256_ASN1_SIGNING,
        &random,
    );
    Some(pair.ok()?.as_ref().to_vec())
}

/// A time as a certificate has it.
fn time_of(time: SystemTime) -> Vec<u8> {
    let all_s = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, clock) = (all_s / 86_400, all_s % 86_400);
    // The year and the month are those whose first day is not behind it.
    let mut year = 1970 + days as i64 / 366;
    while days_of(year + 1, 1, 1) <= days as i64 {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| days_of(year, *month, 1) <= days as i64).unwrap_or(1);
    let day = days as i64 - days_of(year, month, 1) + 1;
    let text =
        format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}Z", clock / 3600, clock / 60 % 60, clock % 60);
    // Up to 2049 a year has two digits (RFC 5280, section 4.1.2.5).
    if year < 2050 { value(UTC_TIME, &[&text.as_bytes()[2..]]) } else { value(TIME, &[text.as_bytes()]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds_of(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(seconds_of(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(seconds_of(TIME, b"20240229120000Z"), Some(1_709_208_000));
        assert_eq!(seconds_of(TIME, b"20240229120000"), None);
        assert_eq!(seconds_of(TIME, b"2024022912000xZ"), None);
        for days in [0, 58, 59, 60, 365, 366, 789, 19_782, 19_783, 47_541] {
            let all_s = days * 86_400 + 3_723;
            let time = time_of(UNIX_EPOCH + Duration::from_secs(all_s));
            assert_eq!(seconds_of(time[0], &time[2..]), Some(all_s), "{days}");
        }
    }

    #[test]
    fn what_is_made_here_is_read_here() {
        let (der, _) = self_signed().expect("a certificate can be made");
        let certificate = Certificate::read(&der).expect("it is one");
        assert_eq!(certificate.common_name(), Some(&b"localhost"[..]));
        assert!(certificate.uris().is_empty());
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is behind 1970").as_secs();
        let left_s = certificate.expires_s().expect("it says when") - now_s;
        assert!((29 * 86_400..=30 * 86_400).contains(&left_s), "{left_s}");
    }

    #[test]
    fn what_is_cut_or_changed_is_read_without_harm() {
        let (der, _) = self_signed().expect("a certificate can be made");
        for cut in 0..der.len() {
            let mut changed = der.to_vec();
            changed[cut] ^= 0xFF;
            for bytes in [&der[..cut], &changed] {
                if let Some(certificate) = Certificate::read(bytes) {
                    let _ = (certificate.common_name(), certificate.uris(), certificate.expires_s());
                }
            }
        }
    }
}
