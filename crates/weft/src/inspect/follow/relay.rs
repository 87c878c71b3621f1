//! One connection: a thread for each direction, which reads, shows and writes on.
//!
//! Owns the two sockets. Reads at most one buffer ahead; the end of one direction is passed on as the end of that
//! direction only.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Shared;
use super::view::{Direction, View};

/// Bytes that are read at once, in each direction.
const READ_BYTES: usize = 64 << 10;

/// Relays a client to the server until both directions have ended.
pub(super) fn run(shared: &Arc<Shared>, client: TcpStream, id: u64) {
    let peer = client.peer_addr().map_or("?".into(), |address| address.to_string());
    let server = match TcpStream::connect(&shared.server) {
        Ok(server) => server,
        Err(error) => return shared.note(id, "no server", &format!("{}: {error}", shared.server)),
    };
    shared.note(id, "open", &format!("from {peer}"));
    shared.tally().connections += 1;
    let view = Arc::new(Mutex::new(View::new(Arc::clone(shared), id)));
    if let Err(error) = both(&client, &server, &view) {
        shared.note(id, "error", &error.to_string());
    }
    let unanswered = view.lock().unwrap_or_else(PoisonError::into_inner).close();
    let text =
        if unanswered > 0 { format!("{unanswered} requests unanswered") } else { "all answered".into() };
    shared.note(id, "closed", &text);
}

fn both(client: &TcpStream, server: &TcpStream, view: &Arc<Mutex<View>>) -> io::Result<()> {
    // Small frames go on at once, as they came. Without it they only come later.
    let _ = client.set_nodelay(true).and(server.set_nodelay(true));
    let (from, to, other) = (server.try_clone()?, client.try_clone()?, Arc::clone(view));
    let back = thread::spawn(move || one(&from, &to, &other, Direction::FromServer));
    let forth = one(client, server, view, Direction::FromClient);
    // A thread that panicked has nothing to say; the panic is on standard error.
    forth.and(back.join().unwrap_or(Ok(())))
}

/// One direction, to its end.
fn one(mut from: &TcpStream, mut to: &TcpStream, view: &Mutex<View>, direction: Direction) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => {
                // The other side may have gone already.
                let _ = to.shutdown(Shutdown::Write);
                return Ok(());
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return give_up(from, to, None),
            Err(error) => return give_up(from, to, Some(error)),
        };
        // Shown before it is written on: a request is known before its reply can come.
        view.lock().unwrap_or_else(PoisonError::into_inner).bytes(direction, &buffer[..count]);
        match to.write_all(&buffer[..count]) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return give_up(from, to, None);
            }
            Err(error) => return give_up(from, to, Some(error)),
        }
    }
}

/// Neither direction can go on: the other thread is woken by the end of its stream.
fn give_up(from: &TcpStream, to: &TcpStream, error: Option<io::Error>) -> io::Result<()> {
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
    error.map_or(Ok(()), Err)
}
