//! Owns: what the server starts from, and where it comes from: environment, configuration file, flags, each over the
//! one before. Does not own: which directives there are and what they mean (`weft_engine::config`), sockets.
//!
//! Nothing here touches anything but the files it is told to read.

mod error;
mod file;

use std::ffi::OsString;
use std::path::PathBuf;

use weft_engine::config::Values;
use weft_engine::config::table::{self, DIRECTIVES};

pub use error::OptionsError;
use file::Reader;

use crate::log::LogOptions;

/// The prefix of environment variables: `WEFT_MAXMEMORY` is `maxmemory`.
pub const ENVIRONMENT_PREFIX: &str = "WEFT_";

/// What the server starts from. What may change while it runs is in [`Options::values`] too, and is to be read from the
/// engine's settings once that is configured with them.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every directive: for `Engine::configure`.
    pub values: Values,
    /// The configuration file, if there is one: for CONFIG REWRITE.
    pub config_file: Option<PathBuf>,
    /// `user` lines of the configuration file, for ACL: where each stood, and its words without `user`.
    pub users: Vec<(String, Vec<Vec<u8>>)>,
    /// Settings that are not the server's, of the names that were asked for, in the order in which each wins over
    /// those before.
    pub own: Vec<Own>,
    /// What is odd and yet no error: for the log.
    pub warnings: Vec<String>,
    /// `port`; 0 for none.
    pub port: u16,
    /// `tls-port`; 0 for none.
    pub tls_port: u16,
    /// `http-port`; 0 for none.
    pub http_port: u16,
    /// `bind`. An address with a `-` before it may be missing. `*` is every IPv4 address, `::*` every IPv6 address.
    pub bind: Vec<String>,
    /// `tcp-backlog`.
    pub tcp_backlog: i32,
    /// `unixsocket`.
    pub unixsocket: Option<PathBuf>,
    /// `unixsocketperm`; nothing leaves it to the umask.
    pub unixsocketperm: Option<u32>,
    /// `threads`: workers; 0 for as many as there are cores.
    pub threads: usize,
    /// `databases`.
    pub databases: usize,
    /// `huge-pages`.
    pub huge_pages: bool,
    /// `pidfile`.
    pub pidfile: Option<PathBuf>,
    /// `dir`: the folder to work in.
    pub dir: Option<PathBuf>,
    /// `aclfile`.
    pub aclfile: Option<PathBuf>,
    /// `loglevel`, `logfile`, `log-format`, `log-timestamp-format`.
    pub log: LogOptions,
}

/// A setting that is no directive of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Where it stands: `weft.conf:12`, `WEFT_TO`.
    pub place: String,
    /// Its name, as it was asked for.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Values::default())
    }
}

impl Options {
    /// Options of these values, without a file.
    #[must_use]
    pub fn new(values: Values) -> Self {
        let text = |name: &str| values.get(name).str().into_owned();
        let path = |name: &str| {
            Some(values.get(name).str().into_owned()).filter(|p| !p.is_empty()).map(PathBuf::from)
        };
        let size = |name: &str| values.get(name).size();
        Self {
            config_file: None,
            users: Vec::new(),
            own: Vec::new(),
            warnings: Vec::new(),
            // Its kind keeps it inside 16 bits.
            port: values.get("port").number as u16,
            tls_port: values.get("tls-port").number as u16,
            http_port: values.get("http-port").number as u16,
            bind: text("bind").split_whitespace().map(str::to_string).collect(),
            tcp_backlog: i32::try_from(values.get("tcp-backlog").number).unwrap_or(i32::MAX),
            unixsocket: path("unixsocket"),
            unixsocketperm: Some(values.get("unixsocketperm").u32()).filter(|mode| *mode != 0),
            threads: size("threads"),
            databases: size("databases"),
            huge_pages: values.get("huge-pages").is_on(),
            pidfile: path("pidfile"),
            dir: path("dir").filter(|dir| dir.as_os_str() != "."),
            aclfile: path("aclfile"),
            log: LogOptions::new(&values),
            values,
        }
    }

    /// Reads options: first the variables of the environment, then the file that the arguments begin with, if they
    /// do not begin with a flag, then the flags. `-` for the file is standard input.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn read(
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, OptionsError> {
        Self::read_beside(&[], arguments, environment)
    }

    /// The same, where the environment and the file may have settings of these names too, which are somebody else's:
    /// they are in [`Options::own`].
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn read_beside(
        own: &'static [&'static str],
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, OptionsError> {
        let mut reader = Reader::beside(own);
        let mut variables: Vec<_> = environment.into_iter().collect();
        variables.sort();
        for (name, value) in &variables {
            variable(&mut reader, name, value)?;
        }
        let arguments: Vec<Vec<u8>> =
            arguments.into_iter().map(|argument| argument.into_encoded_bytes()).collect();
        let mut rest = arguments.as_slice();
        let mut config_file = None;
        if let [first, behind @ ..] = rest
            && !first.starts_with(b"--")
        {
            rest = behind;
            let path = PathBuf::from(String::from_utf8_lossy(first).into_owned());
            reader.file(&path)?;
            // CONFIG REWRITE must find it whatever `dir` says.
            config_file = (first != b"-").then(|| std::path::absolute(&path).unwrap_or(path));
        }
        flags(&mut reader, rest)?;
        reader.finish()?;
        let Reader { values, users, own, warnings, .. } = reader;
        Ok(Self { config_file, users, own, warnings, ..Self::new(values) })
    }
}

fn variable(reader: &mut Reader, name: &OsString, value: &OsString) -> Result<(), OptionsError> {
    let (Some(name), value) = (name.to_str(), value.as_encoded_bytes()) else { return Ok(()) };
    let Some(directive) = name.strip_prefix(ENVIRONMENT_PREFIX) else { return Ok(()) };
    let directive = directive.to_ascii_lowercase().replace('_', "-");
    if reader.own(name, directive.as_bytes(), &[value])? {
        return Ok(());
    }
    if table::find(directive.as_bytes()).is_none() {
        // Other programs have variables that begin so; a misspelt one is worth a line in the log.
        let like = table::suggest(&directive);
        let like = like.map(|like| format!("; is {} meant?", variable_name(like))).unwrap_or_default();
        reader.warnings.push(format!("environment: {name} is no directive and is passed over{like}"));
        return Ok(());
    }
    reader.directive(name, directive.as_bytes(), &[value])
}

/// The environment variable of a directive.
#[must_use]
pub fn variable_name(directive: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", directive.to_ascii_uppercase().replace('-', "_"))
}

/// `--name value`, `--name=value`, `--name value value …` where a directive takes several.
fn flags(reader: &mut Reader, arguments: &[Vec<u8>]) -> Result<(), OptionsError> {
    let mut at = 0;
    while let Some(flag) = arguments.get(at) {
        at += 1;
        let shown = String::from_utf8_lossy(flag).into_owned();
        let Some(name) = flag.strip_prefix(b"--") else {
            let text = "is not expected here: a configuration file comes first, then --name value pairs";
            return Err(OptionsError::new("command line", format!("'{shown}' {text}")));
        };
        let (name, inside) = match name.iter().position(|byte| *byte == b'=') {
            Some(equals) => (&name[..equals], Some(&name[equals + 1..])),
            None => (name, None),
        };
        let place = format!("--{}", String::from_utf8_lossy(name));
        let words: Vec<&[u8]> = match inside {
            Some(word) => vec![word],
            None => {
                let many = table::find(name).is_none_or(|at| DIRECTIVES[at].kind.takes_many());
                let first = usize::from(at < arguments.len());
                let end = if many {
                    let flag = arguments[at..].iter().position(|word| word.starts_with(b"--"));
                    flag.map_or(arguments.len(), |flag| at + flag)
                } else {
                    at + first
                };
                let words = arguments[at..end].iter().map(Vec::as_slice).collect();
                at = end;
                words
            }
        };
        if words.is_empty() && table::find(name).is_some() {
            return Err(OptionsError::new(place, "needs a value behind it"));
        }
        reader.line(&place, name, &words)?;
    }
    Ok(())
}
