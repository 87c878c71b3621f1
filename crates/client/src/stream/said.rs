//! Owns what is said of an error of TLS: what is wrong and, where that can be known, what is to be done about it. Names
//! of rustls's own types do not come through. Does not own flags, which each program calls as it likes.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// An error in words.
pub(super) fn said(error: &Error) -> String {
    match error {
        // The first bytes are no record.
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server answers without TLS: it does not offer it on this port".into()
        }
        Error::InvalidMessage(what) => format!("the server sent what is no TLS: {}", in_words(what)),
        Error::InvalidCertificate(why) => certificate(why),
        Error::AlertReceived(alert) => refusal(*alert),
        Error::PeerIncompatible(why) => {
            format!(
                "the server has no TLS in common with this side, which has 1.2 and 1.3: {}",
                in_words(why)
            )
        }
        Error::PeerMisbehaved(why) => format!("the server breaks the rules of TLS: {}", in_words(why)),
        Error::InconsistentKeys(_) => {
            "the client's key is not that of its certificate: give the two that belong together".into()
        }
        other => other.to_string(),
    }
}

/// What is wrong with the server's certificate.
fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "nobody who is trusted has signed the server's certificate".into(),
        CertificateError::Expired => "the server's certificate is out of date: it has expired".into(),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the server's certificate is out of date: it has expired {} ago, if this machine's clock is right",
            span(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYet => "the server's certificate is not valid yet".into(),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is not valid yet: it will be in {}, if this machine's clock is right",
            span(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::NotValidForName => "the server's certificate is for another name".into(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the server's certificate is not for {}, but for {}",
            expected.to_str(),
            match presented.is_empty() {
                true => "no name at all (it has no subjectAltName)".into(),
                false => presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
            }
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not one for servers: its extendedKeyUsage lacks serverAuth".into()
        }
        CertificateError::Revoked => "the server's certificate has been revoked".into(),
        CertificateError::Other(other) => format!(
            "the server's certificate cannot be used ({}): it is to be one for a server (CA:FALSE) of X.509 version 3",
            in_words(&other.0)
        ),
        other => format!("the server's certificate cannot be used: {}", in_words(other)),
    }
}

/// Why the server ended the handshake.
fn refusal(alert: AlertDescription) -> String {
    let wants = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate of the client",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => "it does not take the client's certificate",
        AlertDescription::ProtocolVersion => "it has no version of TLS in common with this side: 1.2 and 1.3",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "it has no cipher in common with this side, or wants a certificate of the client"
        }
        AlertDescription::UnrecognisedName => "it has no certificate for the name that it was asked for",
        _ => return format!("the server ended the TLS session: {}", in_words(&alert)),
    };
    format!("the server refused: {wants} ({})", in_words(&alert))
}

/// The name of a case as words: `BadCertificate` is "bad certificate". What it holds is left out.
fn in_words(case: &impl std::fmt::Debug) -> String {
    let text = format!("{case:?}");
    let name = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push(' ');
        }
        words.push(letter);
        before = letter;
    }
    let is_word = |word: &&str| word.chars().skip(1).any(|letter| letter.is_ascii_lowercase());
    let lower = |word: &str| if is_word(&word) { word.to_ascii_lowercase() } else { word.to_string() };
    words.split(' ').map(lower).collect::<Vec<_>>().join(" ")
}

/// A name as webpki writes it, without what it calls its kind: `DnsName("localhost")`, `IpAddress(127.0.0.1)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

/// A time in the largest unit of which there are two.
fn span(seconds: u64) -> String {
    let units = [(86_400, "days"), (3600, "hours"), (60, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    unit.map_or_else(|| format!("{seconds} seconds"), |(length, name)| format!("{} {name}", seconds / length))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{OtherError, PeerIncompatible, PeerMisbehaved};

    use super::*;

    #[test]
    fn no_error_shows_a_structure() {
        let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let other = OtherError(std::sync::Arc::new(std::io::Error::other("x")));
        let name = ServerName::try_from("elsewhere").unwrap();
        let presented = ["DnsName(\"localhost\")", "IpAddress(127.0.0.1)"].map(String::from).to_vec();
        let all: Vec<Error> = vec![
            CertificateError::UnknownIssuer.into(),
            CertificateError::ExpiredContext { time: at(1_000_000), not_after: at(200_000) }.into(),
            CertificateError::NotValidYetContext { time: at(1), not_before: at(3601) }.into(),
            CertificateError::NotValidForNameContext { expected: name, presented }.into(),
            CertificateError::UnhandledCriticalExtension.into(),
            CertificateError::Other(other).into(),
            Error::AlertReceived(AlertDescription::CertificateRequired),
            Error::AlertReceived(AlertDescription::UnknownCA),
            Error::AlertReceived(AlertDescription::ProtocolVersion),
            Error::AlertReceived(AlertDescription::InternalError),
            Error::InvalidMessage(InvalidMessage::MissingData("x")),
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into(),
            PeerMisbehaved::TooManyWarningAlertsReceived.into(),
        ];
        let texts: Vec<String> = all.iter().map(said).collect();
        for text in &texts {
            // `(` and `{` of a structure follow a word at once.
            let structure = |at: usize| text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            assert!(!text.match_indices(['(', '{', '"']).any(|(at, _)| structure(at)), "{text}");
            let joined = |word: &str| {
                word.chars().skip(1).any(|c| c.is_ascii_uppercase()) && word.contains(char::is_lowercase)
            };
            let allowed = ["subjectAltName", "extendedKeyUsage", "serverAuth"];
            assert!(!text.split(' ').any(|word| joined(word) && !allowed.contains(&word)), "{text}");
        }
        assert!(texts[1].contains("expired 9 days ago"), "{}", texts[1]);
        assert!(texts[2].contains("60 minutes"), "{}", texts[2]);
        assert_eq!(texts[3], "the server's certificate is not for elsewhere, but for localhost, 127.0.0.1");
        assert!(texts[6].contains("wants a certificate of the client"), "{}", texts[6]);
        assert!(texts[7].ends_with("(unknown CA)"), "{}", texts[7]);
    }
}
