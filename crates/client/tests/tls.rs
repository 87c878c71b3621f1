//! TLS against a real server with certificates made for the test.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use support::Server;
use weft_client::{Config, Connection, Error, Protocol, Reply, Timeouts, TlsConfig};

const LONG: Option<Duration> = Some(support::LONG);

/// A folder with `ca.pem`, `cert.pem` and `key.pem` for localhost; none, with a line that says so, without openssl.
struct Certificates(PathBuf);

impl Certificates {
    fn make() -> Option<Certificates> {
        let dir = std::env::temp_dir().join(format!("weft-client-tls-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let this = Certificates(dir);
        std::fs::write(
            this.path("ext"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
        )
        .unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for command in [
            format!("req -x509 {key} -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem"),
            format!("req {key} -subj /CN=localhost -keyout key.pem -out request.pem"),
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem".into(),
        ] {
            let made = Command::new("openssl").args(command.split(' ')).current_dir(&this.0).output();
            match made {
                Ok(output) => assert!(output.status.success(), "{output:?}"),
                Err(error) => {
                    println!("left out: openssl cannot be started: {error}");
                    return None;
                }
            }
        }
        Some(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn commands_and_pipelines_under_tls() {
    let Some(certificates) = Certificates::make() else { return };
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| certificates.path(name));
    let files =
        ["--tls-cert-file", text(&cert), "--tls-key-file", text(&key), "--tls-ca-cert-file", text(&ca)];
    let Some(server) = Server::start_with(|| {
        let tls_port = support::free_port().to_string();
        ["--tls-port", &tls_port].into_iter().chain(files).map(String::from).collect()
    }) else {
        return;
    };
    let tls_port = &server.options[1];
    let mut config = Config::from_url(&format!("rediss://localhost:{tls_port}")).unwrap();
    config = config.with_timeouts(Timeouts::all(LONG));
    let settings = TlsConfig {
        ca_file: Some(ca.clone()),
        cert_file: Some(cert.clone()),
        key_file: Some(key.clone()),
        ..TlsConfig::default()
    };
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        config.protocol = protocol;
        config.tls = Some(settings.clone());
        let mut connection = Connection::connect(&config).unwrap();
        let value = "v".repeat(100_000);
        connection.command(&["SET", "k", &value]).unwrap();
        let mut pipeline = connection.pipeline();
        for _ in 0..200 {
            pipeline.add(&["GETSET", "k", &value]).unwrap();
        }
        let replies = pipeline.execute().unwrap();
        assert!(replies.iter().all(|reply| *reply == Reply::Bulk(value.clone().into())));
        connection.subscribe(&["c"]).unwrap();
        assert_eq!(connection.receive_push(Some(Duration::from_millis(5))).unwrap(), None);
        assert!(connection.is_open());
        // Nobody vouches for the certificate.
        config.tls = Some(TlsConfig { ca_file: Some(cert.clone()), ..settings.clone() });
        let untrusted = Connection::connect(&config);
        assert!(matches!(untrusted, Err(Error::Tls(_))), "{untrusted:?}");
        config.tls = Some(TlsConfig { server_name: Some("elsewhere".into()), ..settings.clone() });
        assert!(matches!(Connection::connect(&config), Err(Error::Tls(_))));
        // A folder of certificates does as one of them does.
        let trusted = certificates.path("trusted");
        std::fs::create_dir_all(&trusted).unwrap();
        std::fs::copy(&ca, trusted.join("ca.pem")).unwrap();
        config.tls = Some(TlsConfig { ca_file: None, ca_dir: Some(trusted.clone()), ..settings.clone() });
        Connection::connect(&config).unwrap().command(&["PING"]).unwrap();
        std::fs::copy(&cert, trusted.join("ca.pem")).unwrap();
        assert!(matches!(Connection::connect(&config), Err(Error::Tls(_))));
        config.tls = Some(TlsConfig { ca_file: None, insecure: true, ..settings.clone() });
        Connection::connect(&config).unwrap().command(&["PING"]).unwrap();
        config.tls = Some(TlsConfig { key_file: None, ..settings.clone() });
        assert!(matches!(Connection::connect(&config), Err(Error::Tls(_))));
    }
    // A port without TLS.
    let mut plain =
        Config::new("localhost", server.port).with_timeouts(Timeouts::all(Some(Duration::from_millis(300))));
    plain.tls = Some(settings);
    let error = Connection::connect(&plain).unwrap_err();
    assert!(matches!(error, Error::Tls(_) | Error::Timeout(..)), "{error:?}");
}
