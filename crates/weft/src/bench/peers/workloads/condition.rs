//! What workloads can be measured under, other than both servers at their plainest: `--under`. Owns the settings of each
//! condition.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Under what both servers work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::bench::peers) enum Condition {
    /// A log of all writes, given to the disk every second; it is not written anew
    Log,
    /// Clients by TLS 1.3, with a certificate of P-256
    Tls,
    /// Memory in huge pages where a server can and the system lets it
    HugePages,
    /// Two threads: --threads 2, and io-threads 2 in Valkey
    TwoThreads,
}

/// The certificate of servers under TLS, and its key, in their folder.
const CERTIFICATE: [&str; 2] = ["weft-peers.crt", "weft-peers.key"];
/// The one that both servers know, and take.
const SUITE: &str = "TLS_AES_256_GCM_SHA384";

impl Condition {
    /// Its name on the command line and in results.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
    }
    pub(super) fn threads(self) -> u32 {
        if self == Condition::TwoThreads { 2 } else { 1 }
    }
    /// Whether the stub can be beside: it knows no TLS.
    pub(super) fn has_stub(self) -> bool {
        self != Condition::Tls
    }
    /// What both servers are told, beside what the workload says. Files go into `folder`.
    pub(super) fn settings(self, folder: &Path, port: u16) -> Result<Vec<(String, String)>> {
        let settings = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
        };
        Ok(match self {
            Condition::Log => settings(&[
                ("appendonly", "yes"),
                ("appendfsync", "everysec"),
                ("auto-aof-rewrite-percentage", "0"),
            ]),
            Condition::Tls => {
                let [certificate, key] = certificate(folder)?;
                settings(&[
                    ("port", "0"),
                    ("tls-port", &port.to_string()),
                    ("tls-cert-file", &certificate),
                    ("tls-key-file", &key),
                    ("tls-ca-cert-file", &certificate),
                    ("tls-auth-clients", "no"),
                    ("tls-ciphersuites", SUITE),
                ])
            }
            Condition::HugePages | Condition::TwoThreads => Vec::new(),
        })
    }
}

/// Makes a certificate for this host, and says where it and its key are.
fn certificate(folder: &Path) -> Result<[String; 2]> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let [certificate, key] = CERTIFICATE.map(|name| folder.join(name).display().to_string());
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .context("openssl, which makes the certificate, cannot be started")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr).trim());
    Ok([certificate, key])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_settings() {
        let folder = std::env::temp_dir().join(format!("weft-conditions-{}", std::process::id()));
        for condition in Condition::value_variants() {
            let settings = condition.settings(&folder, 7).unwrap();
            let has = |name: &str| settings.iter().any(|(setting, _)| setting == name);
            assert_eq!(has("appendonly"), *condition == Condition::Log);
            assert_eq!(has("tls-port"), !condition.has_stub(), "{}", condition.name());
            assert_eq!(condition.threads() == 2, condition.name() == "two-threads");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
