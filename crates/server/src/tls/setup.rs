//! Owns: what TLS is served with, from the directives and the files that they name. Does not own: connections
//! (`super`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{CipherSuite, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use weft_engine::config::Values;

use super::der::{self, Certificate};

/// Files of `tls-ca-cert-dir` that are read at most.
const AUTHORITY_FILES_MAX: usize = 4096;
/// Sessions of TLS 1.2 that are kept at most, whatever `tls-session-cache-size` says: there is room for all from the
/// start.
const SESSIONS_MAX: usize = 1 << 20;

/// What a server says in a handshake beside its certificates: hello, a signature of RSA, the names of authorities,
/// tickets.
const FLIGHT_BYTES: usize = 4 << 10;

/// What of a client's certificate names its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserFrom {
    Nothing,
    CommonName,
    Uri,
}

/// What connections under TLS begin with.
pub(crate) struct Setup {
    pub(super) config: Arc<ServerConfig>,
    pub(super) user_from: UserFrom,
    /// What the server says in a handshake at most.
    pub(super) flight_bytes: usize,
    /// When the certificate expires, in seconds since 1970.
    pub(crate) expires_s: u64,
}

/// The directives of TLS.
struct Wanted<'v>(&'v Values);

impl Wanted<'_> {
    fn text(&self, name: &str) -> String {
        self.0.get(name).str().into_owned()
    }
    fn is_on(&self, name: &str) -> bool {
        self.0.get(name).is_on()
    }
}

impl Setup {
    /// What the directives say; nothing where there is no certificate, and so no TLS. The error says which directive
    /// or file is wrong.
    pub(crate) fn of(values: &Values) -> Result<Option<Self>, String> {
        let wanted = Wanted(values);
        let (cert_file, key_file) = (wanted.text("tls-cert-file"), wanted.text("tls-key-file"));
        let self_signed = wanted.is_on("tls-self-signed");
        let (chain, key) = match (cert_file.is_empty(), key_file.is_empty()) {
            (true, true) if self_signed => {
                let made = der::self_signed().ok_or("a certificate could not be made")?;
                (vec![made.0], made.1)
            }
            (true, true) => return Ok(None),
            (false, false) => (certificates(&cert_file)?, private_key(&key_file)?),
            _ => {
                return Err(
                    "tls-cert-file and tls-key-file belong together: set both, in one CONFIG SET".into()
                );
            }
        };
        let expires_s = chain.first().and_then(|der| Certificate::read(der)?.expires_s());
        let expires_s = expires_s.ok_or_else(|| format!("{cert_file}: the certificate cannot be read"))?;
        let flight_bytes = FLIGHT_BYTES + chain.iter().map(|der| der.len()).sum::<usize>();
        let provider = Arc::new(provider(&wanted)?);
        let verifier = verifier(&wanted, self_signed && cert_file.is_empty(), &provider)?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(&wanted.text("tls-protocols"))?)
            .map_err(|error| {
                format!("tls-protocols, tls-ciphers and tls-ciphersuites leave nothing: {error}")
            })?;
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| format!("{cert_file} and {key_file} do not go together: {error}"))?;
        // A client of HTTP may ask which of its versions is spoken; others ask for nothing.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ignore_client_order = wanted.is_on("tls-prefer-server-ciphers");
        let sessions = match values.get("tls-session-cache-size").size() {
            0 => SESSIONS_MAX,
            count => count.min(SESSIONS_MAX),
        };
        if !wanted.is_on("tls-session-caching") {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            config.session_storage = ServerSessionMemoryCache::new(sessions);
            config.ticketer = Ticketer::new().map_err(|error| format!("no keys for tickets: {error}"))?;
        }
        let user_from = match wanted.text("tls-auth-clients-user").as_str() {
            "CN" => UserFrom::CommonName,
            "URI" => UserFrom::Uri,
            _ => UserFrom::Nothing,
        };
        Ok(Some(Self { config: Arc::new(config), user_from, flight_bytes, expires_s }))
    }

    /// Seconds until the certificate expires; fewer than none when it has.
    pub(crate) fn left_s(&self) -> i64 {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires_s.cast_signed() - now_s.cast_signed()
    }
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| format!("{file}: {error}"))?;
    if all.is_empty() { Err(format!("{file}: there is no certificate in it")) } else { Ok(all) }
}

fn private_key(file: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| format!("{file}: {error}. It must be a key in PEM, without a pass phrase"))
}

/// Who looks at the certificates of clients; nobody, if none are wanted.
fn verifier(
    wanted: &Wanted<'_>,
    is_for_a_try: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let (file, folder) = (wanted.text("tls-ca-cert-file"), wanted.text("tls-ca-cert-dir"));
    let needed = wanted.text("tls-auth-clients");
    let has_authorities = !file.is_empty() || !folder.is_empty();
    if needed == "no" || is_for_a_try && !has_authorities {
        return Ok(None);
    }
    if !has_authorities {
        return Err(format!(
            "tls-auth-clients is {needed} and there are no authorities to check certificates of clients by: set \
             tls-ca-cert-file or tls-ca-cert-dir, or tls-auth-clients no"
        ));
    }
    let mut roots = RootCertStore::empty();
    let mut add = |file: &str| {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok::<_, String>(())
    };
    if !file.is_empty() {
        add(&file)?;
    }
    if !folder.is_empty() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("tls-ca-cert-dir {folder}: {error}"))?;
        for entry in entries.take(AUTHORITY_FILES_MAX).filter_map(Result::ok) {
            let path = entry.path();
            // Folders keep lists of what is revoked, and links by hash, beside certificates.
            if path.is_file() && has_certificate(&path) {
                add(&path.display().to_string())?;
            }
        }
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = if needed == "optional" { builder.allow_unauthenticated() } else { builder };
    builder
        .build()
        .map(Some)
        .map_err(|error| format!("the authorities of tls-ca-cert-file and -dir: {error}"))
}

fn has_certificate(path: &Path) -> bool {
    CertificateDer::pem_file_iter(path).is_ok_and(|mut all| all.next().is_some_and(|first| first.is_ok()))
}

fn versions(wanted: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut all = Vec::new();
    for word in wanted.split_whitespace() {
        all.push(match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &version::TLS12,
            "tlsv1.3" => &version::TLS13,
            _ => return Err(format!("tls-protocols: '{word}' is not served; there are TLSv1.2 and TLSv1.3")),
        });
    }
    Ok(if all.is_empty() { vec![&version::TLS12, &version::TLS13] } else { all })
}

/// The suites of TLS 1.2 by OpenSSL's names.
const CIPHERS: [(&str, CipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];
/// Those of TLS 1.3.
const CIPHER_SUITES: [(&str, CipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// The cryptography, with the suites that are wanted, in the order in which they are.
fn provider(wanted: &Wanted<'_>) -> Result<CryptoProvider, String> {
    let all = default_provider();
    let mut suites = Vec::new();
    for (name, known) in [("tls-ciphersuites", &CIPHER_SUITES[..]), ("tls-ciphers", &CIPHERS[..])] {
        let text = wanted.text(name);
        let words: Vec<&str> = text.split(':').filter(|word| !word.is_empty()).collect();
        let chosen = if words.is_empty() { known.iter().map(|(name, _)| *name).collect() } else { words };
        for word in chosen {
            let suite = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            let Some((_, suite)) = suite else {
                let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                return Err(format!("{name}: '{word}' is not served; there are {}", known.join(", ")));
            };
            suites.extend(all.cipher_suites.iter().find(|known| known.suite() == *suite).copied());
        }
    }
    Ok(CryptoProvider { cipher_suites: suites, ..all })
}
