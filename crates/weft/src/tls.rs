//! The flags of TLS, which are redis-cli's, and what they say to the client. Owns no connection.

use std::path::PathBuf;

use clap::Args;
use weft_client::TlsConfig;

/// Flags of TLS that all tools have.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsFlags {
    /// Use TLS
    #[arg(long)]
    tls: bool,
    /// Name that the server's certificate must have
    #[arg(long, value_name = "HOST")]
    sni: Option<String>,
    /// Certificates to trust, PEM
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Folder of certificates to trust, PEM
    #[arg(long, value_name = "FOLDER", conflicts_with = "cacert")]
    cacertdir: Option<PathBuf>,
    /// Client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
}

impl TlsFlags {
    /// How TLS is done, if any of the flags, or what else is known of the server, asks for it.
    pub(crate) fn config(&self, is_asked: bool) -> Option<TlsConfig> {
        let files = [&self.cacert, &self.cacertdir, &self.cert, &self.key];
        let is_asked = is_asked
            || self.tls
            || self.insecure
            || self.sni.is_some()
            || files.iter().any(|file| file.is_some());
        is_asked.then(|| TlsConfig {
            ca_file: self.cacert.clone(),
            ca_dir: self.cacertdir.clone(),
            cert_file: self.cert.clone(),
            key_file: self.key.clone(),
            server_name: self.sni.clone(),
            insecure: self.insecure,
        })
    }
}
