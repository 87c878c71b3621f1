//! Owns: the console's files, which a browser gets without credentials, and what they may do there; which commands a
//! user may run. Does not own: their sources (`console/`, from which `make console` builds them), the stream of figures
//! (`super::following`).
//!
//! The page loads nothing from elsewhere and runs no script but its own file; what it shows of the server it asks for
//! as its user.

use serde_json::json;
use weft_engine::session::Session;

use super::answer::{Answer, HTML, JSON};

const POLICY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n";

const FILES: [(&[u8], &str, &[u8]); 4] = [
    (b"/console", HTML, include_bytes!("console/index.html")),
    (b"/console/", HTML, include_bytes!("console/index.html")),
    (b"/console/app.js", "text/javascript; charset=utf-8", include_bytes!("console/app.js")),
    (b"/console/app.css", "text/css; charset=utf-8", include_bytes!("console/app.css")),
];

/// Whether a path is one of the console's files.
pub(super) fn is_file(path: &[u8]) -> bool {
    FILES.iter().any(|(name, ..)| *name == path)
}

/// The file of a path.
pub(super) fn file(path: &[u8]) -> Option<Box<Answer>> {
    let (_, kind, bytes) = FILES.iter().find(|(name, ..)| *name == path)?;
    Some(Answer::new(200, kind, *bytes).with(POLICY))
}

/// Who asks, and which commands he may run: what he may not is not offered.
pub(super) fn rights(session: &Session) -> Box<Answer> {
    let said = json!({ "user": session.user.name, "commands": session.user.commands() });
    Answer::new(200, JSON, said.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::gzip;

    #[test]
    fn it_is_small_and_names_no_other_host() {
        let sent = |bytes: &[u8]| gzip::compressed(bytes).map_or(bytes.len(), |zipped| zipped.len());
        let total: usize = FILES.iter().skip(1).map(|(.., bytes)| sent(bytes)).sum();
        assert!(total <= 400 << 10, "{total} bytes");
        for (name, _, bytes) in FILES {
            let text = String::from_utf8_lossy(bytes);
            for foreign in ["src=\"http", "href=\"http", "url(http", "@import", "innerHTML", "eval("] {
                assert!(!text.contains(foreign), "{foreign} in {}", String::from_utf8_lossy(name));
            }
        }
    }
}
