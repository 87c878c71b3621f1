//! Owns: the list of attacks. Does not own: connections and what they count (`hostile`).
//!
//! A round of an attack makes connections of its own, does one thing to the server, bounded in time, and leaves. Where
//! the right answer is known it is checked; elsewhere the server may answer, refuse or close, and what it must not do,
//! honest clients and `main` notice.

mod channels;
mod frames;
mod limits;
mod logic;
mod sockets;
mod tls;
mod web;

use crate::hostile::{Hostile, Outcome};

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// How often, beside the others.
    pub(crate) weight: usize,
    pub(crate) round: fn(&mut Hostile) -> Outcome,
}

pub(crate) const ATTACKS: [Attack; 34] = [
    Attack { name: "random bytes", weight: 6, round: frames::random },
    Attack { name: "random requests", weight: 8, round: frames::requests },
    Attack { name: "mutated requests", weight: 10, round: frames::mutated },
    Attack { name: "pieces of one byte", weight: 2, round: frames::crumbs },
    Attack { name: "limits before authentication", weight: 3, round: limits::before_authentication },
    Attack { name: "limits after authentication", weight: 3, round: limits::after_authentication },
    Attack { name: "announced and never sent", weight: 3, round: limits::announced },
    Attack { name: "control frames in every state", weight: 8, round: channels::controls },
    Attack { name: "thousands of channels", weight: 3, round: channels::thousands },
    Attack { name: "channels that end while they wait", weight: 3, round: channels::waiting },
    Attack { name: "thousands that wait for one key", weight: 3, round: channels::queue },
    Attack { name: "channels refused far apart", weight: 2, round: limits::refused_far_apart },
    Attack { name: "readers that stall", weight: 3, round: sockets::slow_readers },
    Attack { name: "writers that stall", weight: 3, round: sockets::slow_writers },
    Attack { name: "half-closed sockets", weight: 4, round: sockets::half_closed },
    Attack { name: "sockets that are reset", weight: 4, round: sockets::reset },
    Attack { name: "floods of connections", weight: 3, round: sockets::flood },
    Attack { name: "clients that wait and vanish", weight: 4, round: sockets::vanish },
    Attack { name: "passwords", weight: 2, round: sockets::passwords },
    Attack { name: "garbage instead of TLS", weight: 4, round: tls::garbage },
    Attack { name: "handshakes cut short", weight: 4, round: tls::truncated },
    Attack { name: "floods of handshakes", weight: 2, round: tls::flood },
    Attack { name: "handshakes that are reset", weight: 3, round: tls::reset },
    Attack { name: "changes of keys and torn records", weight: 3, round: tls::torn },
    Attack { name: "HTTP, broken requests", weight: 6, round: web::requests },
    Attack { name: "HTTP, smuggled requests", weight: 3, round: web::smuggled },
    Attack { name: "HTTP, sizes", weight: 3, round: web::sizes },
    Attack { name: "HTTP, without credentials", weight: 3, round: web::public },
    Attack { name: "HTTP, writers that stall", weight: 2, round: web::slow },
    Attack { name: "HTTP, bodies that are cut", weight: 4, round: web::cut },
    Attack { name: "HTTP, streams that nobody reads", weight: 2, round: web::streams },
    Attack { name: "scripts that want too much", weight: 2, round: logic::greedy_scripts },
    Attack { name: "scripts that are killed", weight: 1, round: logic::killed },
    Attack { name: "programs that want too much", weight: 3, round: logic::greedy_programs },
];
