//! Owns: reading the catalogue when it came from a log or a snapshot. Does not own: its sections: users, programs and
//! triggers each read their own.

use crate::engine::Engine;

impl Engine {
    /// Reads the catalogue. Says what could not be read, and why; that stays where it is.
    pub fn load_catalogue(&self) -> Vec<String> {
        let mut problems = self.load_users();
        problems.extend(self.load_programs());
        problems.extend(self.load_triggers());
        problems
    }
}
