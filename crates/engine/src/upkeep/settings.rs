//! Owns: what follows in the engine when a directive changes. Does not own: directives, their values and which of them
//! act on what (`crate::config`).

use std::sync::atomic::Ordering::Relaxed;

use crate::config::directive::{Follow, Reach};
use crate::config::{SetError, Values};
use crate::engine::Engine;

impl Engine {
    /// Takes over values that were read at the start, and everything follows from them.
    pub fn configure(&self, values: Values) {
        self.config.take_over(values, &self.reach());
        self.limit_pushes();
    }
    /// CONFIG SET: all of them, or none. `protected`: whether this client may change what `enable-protected-configs`
    /// guards.
    ///
    /// # Errors
    /// The first that is refused.
    pub fn set_config(&self, pairs: &[(&[u8], &[u8])], protected: bool) -> Result<(), SetError> {
        let set = self.config.set(pairs, protected, &self.reach());
        self.limit_pushes();
        set
    }
    /// What waits for a client in a mailbox has the limit of what waits in its output.
    fn limit_pushes(&self) {
        let [messages, lines] =
            [&self.settings.output_pubsub_hard_bytes, &self.settings.output_normal_hard_bytes];
        self.mailboxes.limit(messages.load(Relaxed), lines.load(Relaxed));
    }
    fn reach(&self) -> Reach<'_> {
        Reach {
            settings: &self.settings,
            web: &self.web,
            keyspace: &self.keyspace,
            acl: &self.acl,
            special: &self.special,
            script_memory: &self.scripts.budget,
            then: self,
        }
    }
}

impl Follow for Engine {
    fn forget_scripts(&self) {
        self.scripts.flush();
    }
    fn set_default_password(&self, password: Option<&[u8]>) {
        Self::set_default_password(self, password);
    }
    fn follow_appendonly(&self, wanted: bool) {
        Self::follow_appendonly(self, wanted);
    }
    fn follow_appendfsync(&self, place: u8) {
        Self::follow_appendfsync(self, place);
    }
    fn look_at_snapshots(&self) {
        Self::look_at_snapshots(self);
    }
    fn look_at_events(&self) {
        Self::look_at_events(self);
    }
    fn trim_tracked(&self) {
        Self::trim_tracked(self);
    }
}
