//! A relay that passes bytes on after a delay: a network between a load generator and a server on one machine.
//!
//! Owns its threads: three for each connection, so it is for few connections. A connection's bytes keep their order;
//! each piece leaves a fixed time after it has come, however many are on their way. It adds delay and nothing else: no
//! loss, no limit of bandwidth.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Pieces that are on their way at once, in each direction of a connection; then the sender waits.
const PIECES_MAX: usize = 1024;

/// A relay that is running; it runs until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Relay {
    address: SocketAddr,
}

impl Relay {
    /// Starts a relay to a server. `delay` is for each direction, so that a round trip takes twice as much longer.
    pub fn start(server: &str, delay: Duration) -> io::Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server: Arc<str> = server.into();
        thread::Builder::new().name("relay".into()).spawn(move || {
            for client in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                // Without a thread the connection is closed, which the client sees.
                let _ = thread::Builder::new().spawn(move || connection(client, &server, delay));
            }
        })?;
        Ok(Relay { address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn connection(client: TcpStream, server: &str, delay: Duration) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let nodelay = client.set_nodelay(true).and(server.set_nodelay(true));
    let (Ok(()), Ok(client_2), Ok(server_2)) = (nodelay, client.try_clone(), server.try_clone()) else {
        return;
    };
    let back = thread::Builder::new().spawn(move || direction(server_2, client_2, delay));
    direction(client, server, delay);
    // A direction that panicked has closed its sockets.
    let _ = back.map(thread::JoinHandle::join);
}

/// One direction to its end, which is passed on.
fn direction(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    let Ok(writer) = thread::Builder::new().spawn(move || late(&receiver, to)) else { return };
    read(&mut from, &sender, delay);
    drop(sender);
    // The writer ends with what it was sent.
    let _ = writer.join();
}

fn read(from: &mut TcpStream, sender: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Writes each piece when its time has come.
fn late(receiver: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, bytes) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // It may be closed already.
    let _ = to.shutdown(Shutdown::Write);
}
