//! Owns: logical clients: what one is at and holds, all of them by id, what they listen to, and what is sent to them
//! unasked, from worker to worker. Does not own: their connections, the commands that change this.

pub mod asked;
pub mod charge;
pub mod clients;
pub mod forwards;
pub mod mailbox;
pub mod pubsub;
pub mod push;
pub mod respb;
pub mod session;
pub mod tracking;
pub mod transaction;
pub mod waits;
