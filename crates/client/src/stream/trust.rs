//! Owns which certificates of servers are trusted. Does not own the session that is made with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::config::TlsConfig;
use crate::error::{Error, Result};

/// Files of `TlsConfig::ca_dir` that are read: systems have some hundreds.
const CA_FILES_MAX: usize = 4096;

/// What says whether a server's certificate is trusted, as the settings have it.
pub(super) fn verifier(
    settings: &TlsConfig,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    if settings.insecure {
        return Ok(Arc::new(AnyCertificate(provider)));
    }
    let given = given(settings)?;
    let mut roots = RootCertStore::empty();
    for (path, certificate) in &given {
        let bad = |error| Error::Tls(format!("{}: {error}", path.display()));
        roots.add(certificate.clone()).map_err(bad)?;
    }
    if settings.ca_file.is_none() && settings.ca_dir.is_none() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(Error::Tls("there is no certificate to trust".into()));
    }
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| Error::Tls(error.to_string()))?;
    let given = given.into_iter().map(|(_, certificate)| certificate).collect();
    Ok(Arc::new(Given { authorities, given }))
}

/// The certificates that the settings name, with the files that they are from.
fn given(settings: &TlsConfig) -> Result<Vec<(PathBuf, CertificateDer<'static>)>> {
    let mut files: Vec<PathBuf> = settings.ca_file.iter().cloned().collect();
    if let Some(folder) = &settings.ca_dir {
        let bad = |error: std::io::Error| Error::Tls(format!("{}: {error}", folder.display()));
        let entries = std::fs::read_dir(folder).map_err(bad)?;
        let entries: Vec<_> = entries.take(CA_FILES_MAX).collect::<Result<_, _>>().map_err(bad)?;
        files.extend(entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    let mut given = Vec::new();
    for path in files {
        given.extend(certificates(&path)?.into_iter().map(|certificate| (path.clone(), certificate)));
    }
    Ok(given)
}

/// The certificates of a PEM file.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bad = |error: rustls::pki_types::pem::Error| Error::Tls(format!("{}: {error}", path.display()));
    CertificateDer::pem_file_iter(path).map_err(bad)?.collect::<std::result::Result<_, _>>().map_err(bad)
}

/// Trusts what the authorities vouch for, and a certificate that was itself given: one that signs itself, as `openssl
/// req -x509` makes it, is an authority in name, which webpki takes for no server whoever trusts it.
#[derive(Debug)]
struct Given {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // An authority that acts as a server. A time that is over, and what else is wrong, have names of their own.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) => {}
            verified => return verified,
        }
        if !self.given.contains(end_entity) {
            return Err(CertificateError::UnknownIssuer.into());
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Takes any certificate, for `TlsConfig::insecure`; the handshake's signatures are still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Of `openssl req -x509` for localhost and 127.0.0.1, from the end of 2026 for ten years.
    const SELF_SIGNED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBmTCCAT+gAwIBAgIUSQUSHJXmYBF3cjREIvjoKPiENaowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJd2VmdC10ZXN0MB4XDTI2MTEyMjIxMTUyNVoXDTM2MTExOTIx
MTUyNVowFDESMBAGA1UEAwwJd2VmdC10ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEvvKZNebvwUL5O/anD46iB8ZEOlwtvJCRB3GxC9+unL0TERYVluNzkyMY
Hv0/gEZfCBZXGcw9kfE0Jk6FKwlHy6NvMG0wHQYDVR0OBBYEFNHLyKg1F9PYsF8p
9A3zN51gD1FrMB8GA1UdIwQYMBaAFNHLyKg1F9PYsF8p9A3zN51gD1FrMA8GA1Ud
EwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAoGCCqGSM49
BAMCA0gAMEUCIQC2HbyS8QSN+Vw0K+2/NPJPtbf9khj67LByHzXtH/piFQIgAxoe
sNODanDk3bheHz6PWiWKFT0Edn+lXN1j/Y2hTyA=
-----END CERTIFICATE-----
";
    /// In 2030.
    const WITHIN: u64 = 1_900_000_000;
    /// In 2037.
    const AFTER: u64 = 2_120_000_000;

    fn given(trusted: bool) -> Given {
        let own = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(own.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Given { authorities: authorities.unwrap(), given: if trusted { vec![own] } else { Vec::new() } }
    }

    fn verify(trust: &Given, name: &str, second: u64) -> Result<(), rustls::Error> {
        let own = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap();
        let name = ServerName::try_from(name.to_string()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(second));
        trust.verify_server_cert(&own, &[], &name, &[], now).map(drop)
    }

    #[test]
    fn a_certificate_that_was_given_is_trusted_for_its_names_and_its_time() {
        let trust = given(true);
        assert_eq!(verify(&trust, "localhost", WITHIN), Ok(()));
        assert_eq!(verify(&trust, "127.0.0.1", WITHIN), Ok(()));
        let refused = |name, second| match verify(&trust, name, second) {
            Err(rustls::Error::InvalidCertificate(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused("elsewhere", WITHIN), CertificateError::NotValidForNameContext { .. }));
        assert!(matches!(refused("localhost", AFTER), CertificateError::ExpiredContext { .. }));
        // Another that signs itself is nobody's.
        assert_eq!(
            verify(&given(false), "localhost", WITHIN),
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
        );
    }
}
