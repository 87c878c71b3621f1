//! What workloads can be measured under, other than both servers at their plainest: `--under`. Owns the settings of
//! each condition.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::peers::contestants::Kind;

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

/// How long what a log does behind its answers counts.
const LOG_REST: Duration = Duration::from_millis(100);
/// The certificate of servers under TLS, and its key.
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
    /// Whether servers may be pinned to a core.
    pub(in crate::bench::peers) fn has_one_core(self) -> bool {
        self.threads() == 1
    }
    pub(super) fn rest(self) -> Option<Duration> {
        (self == Condition::Log).then_some(LOG_REST)
    }
    /// What a server is told, beside what the workload says.
    pub(super) fn settings(self, kind: Kind, files: &Files, port: u16) -> Result<Vec<(String, String)>> {
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
                let [certificate, key] = files.certificate()?;
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
            // Otherwise a second thread comes and goes with what there is to do, which takes longer than a turn.
            Condition::TwoThreads => {
                let name = if kind == Kind::Weft { "threads" } else { "io-threads" };
                settings(&[(&format!("{name}-always-active"), "yes")])
            }
            Condition::HugePages => Vec::new(),
        })
    }
}

/// What servers read while they start; gone with this value.
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn new() -> Files {
        Files { folder: std::env::temp_dir().join(format!("weft-peers-{}", std::process::id())) }
    }
    /// A certificate for this host and its key, made when somebody first asks.
    fn certificate(&self) -> Result<[String; 2]> {
        let [certificate, key] = CERTIFICATE.map(|name| self.folder.join(name).display().to_string());
        if Path::new(&certificate).exists() {
            return Ok([certificate, key]);
        }
        std::fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-days", "30", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-keyout", &key, "-out", &certificate])
            .output()
            .context("openssl, which makes the certificate, cannot be started: apt-get install openssl")?;
        ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr).trim());
        Ok([certificate, key])
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Mostly there is none.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_settings() {
        let files = Files::new();
        for condition in Condition::value_variants() {
            let settings = condition.settings(Kind::Weft, &files, 7).unwrap();
            let has = |name: &str| settings.iter().any(|(setting, _)| setting == name);
            assert_eq!(has("appendonly"), *condition == Condition::Log);
            assert_eq!(has("tls-port"), !condition.has_stub(), "{}", condition.name());
            assert_eq!(condition.has_one_core(), condition.name() != "two-threads");
            assert_eq!(condition.has_one_core(), !has("threads-always-active"));
        }
        let folder = files.folder.clone();
        assert!(folder.exists());
        drop(files);
        assert!(!folder.exists(), "the key is gone");
    }
}
