//! Owns: the server's configuration as it is now: the text of every directive, and what follows when one changes. Does
//! not own: where values came from (`weft-server` reads files and flags).
//!
//! | module | owns |
//! |---|---|
//! | [`classes`] | the classes of keyspace events |
//! | [`settings`] | what hot paths read: plain atomics |
//! | [`table`] | all directives |
//! | [`directive`], [`value`] | what a directive is; reading its value |
//! | [`rewrite`] | CONFIG REWRITE |

pub mod classes;
pub mod directive;
pub mod rewrite;
pub mod settings;
pub mod table;
pub mod value;
pub(crate) mod web;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::OnceLock;

use directive::{Actor, Change, Directive, Kind, Reach};
pub use settings::{POLICIES, PROTECTED, Settings};
use table::DIRECTIVES;
use value::{Refusal, Value};

/// The value of every directive, without anything following from it: what files and flags are read into.
#[derive(Clone, Debug)]
pub struct Values(Box<[Value]>);

impl Default for Values {
    fn default() -> Self {
        Self(DIRECTIVES.iter().map(value::default_of).collect())
    }
}

impl Values {
    /// Sets a directive from words; says why it is refused.
    ///
    /// # Errors
    /// When there is no such directive, or the value is not of its kind, or promises what is not served.
    pub fn set(&mut self, name: &[u8], words: &[&[u8]]) -> Result<(), Refusal> {
        let at = table::find(name).ok_or("there is no such directive")?;
        self.0[at] = value::parse(&DIRECTIVES[at], words, &self.0[at])?;
        Ok(())
    }
    /// A directive's value.
    ///
    /// # Panics
    /// When the table has no such directive.
    #[must_use]
    pub fn get(&self, name: &str) -> &Value {
        let at = table::find(name.as_bytes());
        &self.0[at.unwrap_or_else(|| panic!("the table of directives has no {name}"))]
    }
    /// A value by its place in the table.
    #[must_use]
    pub fn at(&self, at: usize) -> &Value {
        &self.0[at]
    }
}

/// What the server does when a directive of [`Actor::Server`] changes; its error is the client's.
pub type Hook = Box<dyn Fn(&Directive, &Value) -> Result<(), Refusal> + Send + Sync>;

/// The configuration.
#[derive(Default)]
pub struct Config {
    values: Mutex<Values>,
    /// The file that REWRITE writes.
    file: OnceLock<PathBuf>,
    hook: OnceLock<Hook>,
    tls_hook: OnceLock<TlsHook>,
}

/// What the server does when one of [`Actor::Tls`] changes, with all values as they are to be.
pub type TlsHook = Box<dyn Fn(&Values) -> Result<(), Refusal> + Send + Sync>;

/// Why CONFIG SET is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetError {
    /// The directive, as it was named.
    pub name: String,
    /// Why; nothing where it is unknown.
    pub why: Option<Refusal>,
}

impl Config {
    /// A directive's text.
    #[must_use]
    pub fn text(&self, name: &str) -> Vec<u8> {
        self.values.lock().get(name).text.to_vec()
    }
    /// All values as they are now.
    #[must_use]
    pub fn values(&self) -> Values {
        self.values.lock().clone()
    }
    /// Names the file that the configuration came from. Once, at the start.
    pub fn set_file(&self, file: PathBuf) {
        // A second one would be a second start.
        let _ = self.file.set(file);
    }
    /// The file that the configuration came from.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.get()
    }
    /// What the server does when a directive of [`Actor::Server`] changes. Once, at the start.
    pub fn set_hook(&self, hook: Hook) {
        let _ = self.hook.set(hook);
    }
    /// What the server does when a directive of [`Actor::Tls`] changes. Once, at the start.
    pub fn set_tls_hook(&self, hook: TlsHook) {
        let _ = self.tls_hook.set(hook);
    }
}

impl Config {
    /// Takes over values that were read at the start, and everything follows from them.
    pub(crate) fn take_over(&self, values: Values, reach: &Reach<'_>) {
        for (directive, value) in DIRECTIVES.iter().zip(&values.0) {
            if let Actor::Engine(apply) = directive.actor {
                apply(reach, value);
            }
        }
        *self.values.lock() = values;
    }

    /// CONFIG SET: all of them, or none. `protected`: whether this client may change what `enable-protected-configs`
    /// guards.
    ///
    /// # Errors
    /// The first that is refused.
    pub(crate) fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        protected: bool,
        reach: &Reach<'_>,
    ) -> Result<(), SetError> {
        let mut values = self.values.lock();
        let mut wanted: Vec<(usize, Value)> = Vec::with_capacity(pairs.len());
        let error = |name: &[u8], why| SetError { name: String::from_utf8_lossy(name).into_owned(), why };
        for (name, _) in pairs {
            let at = table::find(name).ok_or_else(|| error(name, None))?;
            let why = match DIRECTIVES[at].change {
                Change::AtStart => Some("can't set immutable config"),
                Change::Protected if !protected => Some("can't set protected config"),
                _ if wanted.iter().any(|(other, _)| *other == at) => Some("duplicate parameter"),
                _ => None,
            };
            if let Some(why) = why {
                return Err(error(name, Some(why.into())));
            }
            wanted.push((at, values.0[at].clone()));
        }
        for ((at, new), (name, text)) in wanted.iter_mut().zip(pairs) {
            let directive = &DIRECTIVES[*at];
            let words: Vec<&[u8]> = if directive.kind.takes_many() && !text.is_empty() {
                text.split(|byte| *byte == b' ').collect()
            } else {
                vec![text]
            };
            *new = value::parse(directive, &words, new)
                .map_err(|why| error(&name.to_ascii_lowercase(), Some(why)))?;
        }
        self.apply(&mut values, &wanted, reach)
    }

    fn apply(
        &self,
        values: &mut Values,
        wanted: &[(usize, Value)],
        reach: &Reach<'_>,
    ) -> Result<(), SetError> {
        let failed = wanted.iter().enumerate().find_map(|(done, (at, new))| {
            let why = self.follow(&DIRECTIVES[*at], new, reach).err()?;
            Some((done, SetError { name: DIRECTIVES[*at].name.to_string(), why: Some(why) }))
        });
        let failed = failed.or_else(|| Some((wanted.len(), self.follow_tls(values, wanted).err()?)));
        if let Some((done, error)) = failed {
            for (at, _) in &wanted[..done] {
                // What was in force a moment ago can be again.
                let _ = self.follow(&DIRECTIVES[*at], &values.0[*at], reach);
            }
            return Err(error);
        }
        for (at, new) in wanted {
            // Whatever folder it was said in.
            let is_folder = matches!(DIRECTIVES[*at].kind, Kind::Folder);
            values.0[*at] = if is_folder { folder_now(new) } else { new.clone() };
        }
        Ok(())
    }

    /// Does once more what follows from those that the server takes together: files that they name may have changed. As
    /// long as it takes no other values come into force.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn follow_tls_again(&self) -> Result<(), Refusal> {
        let values = self.values.lock();
        self.tls_hook.get().map_or(Ok(()), |hook| hook(&values))
    }

    /// Does what follows from those that the server takes together, if one of them changes.
    fn follow_tls(&self, values: &Values, wanted: &[(usize, Value)]) -> Result<(), SetError> {
        let first = wanted.iter().find(|(at, _)| matches!(DIRECTIVES[*at].actor, Actor::Tls));
        let (Some((first, _)), Some(hook)) = (first, self.tls_hook.get()) else { return Ok(()) };
        let mut wished = values.clone();
        for (at, new) in wanted {
            wished.0[*at] = new.clone();
        }
        let error = |why| SetError { name: DIRECTIVES[*first].name.to_string(), why: Some(why) };
        hook(&wished).map_err(error)
    }

    /// Does what follows from a value.
    fn follow(&self, directive: &Directive, value: &Value, reach: &Reach<'_>) -> Result<(), Refusal> {
        match directive.actor {
            Actor::Engine(apply) => apply(reach, value),
            Actor::Server => {
                if let Some(hook) = self.hook.get() {
                    hook(directive, value)?;
                }
            }
            Actor::Tls | Actor::Kept => {}
        }
        if matches!(directive.kind, Kind::Folder) {
            let folder = PathBuf::from(value.str().into_owned());
            std::env::set_current_dir(folder).map_err(|error| Refusal::from(plain(&error)))?;
        }
        Ok(())
    }
}

/// The folder in which the process works, where that can be said.
fn folder_now(value: &Value) -> Value {
    let now = std::env::current_dir();
    now.map_or_else(|_| value.clone(), |folder| Value::of_text(folder.as_os_str().as_encoded_bytes()))
}

/// The operating system's message without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
