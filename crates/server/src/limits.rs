//! Owns: the named limits of connections, with their defaults. Does not own: the decoders' limits
//! (`weft_protocol::Limits`), the keyspace's.

use weft_protocol::Limits;

/// Bytes that one receive takes at most.
pub(crate) const RECEIVE_BYTES: usize = 64 << 10;
/// The same from a connection that sends large arguments: more of one would be moved once more.
pub(crate) const RECEIVE_LARGE_BYTES: usize = 16 << 10;
/// What is missing of an argument is received into the connection's own buffer if it is as much.
pub(crate) const LARGE_BYTES_MIN: usize = weft_store::SharedBytes::PART_BYTES_MIN;
/// Memory is made for so much of it at once, or for as much as has come.
pub(crate) const LARGE_AHEAD_BYTES: usize = 128 << 10;
/// Room behind it, for the options that may follow.
pub(crate) const BEHIND_LARGE_BYTES: usize = 256;
/// Where the input of one tick lies: room for several receives.
pub(crate) const ARENA_BYTES: usize = 512 << 10;
/// Input that is not whole is copied back into the arena up to this, unless much is known to be missing; beyond it the
/// connection has a buffer of its own.
pub(crate) const TAIL_BYTES_MAX: usize = 16 << 10;
/// Input that a connection may bring while its client waits; then it is not read from until the wait has ended.
pub(crate) const WAITING_INPUT_BYTES_MAX: usize = 1 << 20;
/// What a client may send that must authenticate and has not.
pub(crate) const UNAUTHENTICATED: Limits = Limits::UNAUTHENTICATED;
/// One frame of such a client, or one request of RESP.
pub(crate) const UNAUTHENTICATED_FRAME_BYTES_MAX: u32 = UNAUTHENTICATED.frame_bytes_max;
/// What is kept for all such clients together, input that is not decoded and what they have opened: who brings more is
/// closed. Handshakes have as much for themselves.
pub(crate) const UNAUTHENTICATED_INPUT_BYTES_MAX: usize = 64 << 20;
/// Output buffers that a worker keeps for reuse, and the size up to which one is worth keeping.
pub(crate) const SPARE_OUTPUTS_MAX: usize = 64;
pub(crate) const SPARE_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Output of one connection that is sent before the tick is over.
pub(crate) const SEND_EARLY_BYTES: usize = 16 << 10;
/// What a client that has not authenticated, though it must, may leave unread: errors, which cost it nothing to cause.
pub(crate) const UNAUTHENTICATED_OUTPUT_BYTES_MAX: usize = 1 << 10;
/// An output buffer that a connection keeps between requests; a larger one goes back to its worker at once.
pub(crate) const OWN_OUTPUT_BYTES_MAX: usize = 1 << 10;
/// What a slow socket has taken is let go of when it is as much as this.
pub(crate) const SENT_BYTES_MAX: usize = 64 << 10;
/// What a client may leave unread before what it asks for next waits, over HTTP or from a gateway: a small request can
/// ask for gigabytes, and each reply is a copy.
pub(crate) const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Slices of one `writev`.
pub(crate) const SLICES_MAX: usize = 64;
/// What a RESPB connection's socket may lag behind before the replies of its channels wait in queues of their own, from
/// which they are sent in turn.
pub(crate) const SHARED_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Replies above this are sent in slices to clients that can put them together (spec section 9.1).
pub(crate) const FRAGMENT_BYTES: usize = weft_protocol::respb::frame::FRAGMENT_BYTES_MAX;
/// Small frames of a channel that wait stand in one piece of memory, up to so much of them, and are sent together.
pub(crate) const JOINED_BYTES_MAX: usize = 16 << 10;
/// Control frames and channels opened of one connection in a tick: what is behind them waits for the next one, so that
/// nobody else waits for thousands of channels to be opened or closed.
pub(crate) const CONTROLS_PER_TICK_MAX: u32 = 256;
/// Channels that were refused, or closed by the server, and whose CLOSE the client has not answered: a connection that
/// is refused one more goes away. Who has many closed at once, by a kill, has time to answer.
pub(crate) const REFUSED_CHANNELS_MAX: usize = 1024;
/// How long a client that is to go may take nothing of what it is owed; then nobody waits for it. Whoever reads less
/// than a kilobyte a second is waited for no longer.
pub(crate) const FAREWELL_MS: u64 = 10_000;
/// What is read from a RESPB client that has been told to go away, until it ends the connection, and for how long.
pub(crate) const DRAIN_BYTES_MAX: usize = 16 << 20;
pub(crate) const DRAIN_MS: u64 = 1000;
pub(crate) const DRAIN_STEP_BYTES: usize = 16 << 10;
/// Connections that a worker takes from the listener in a tick, steps of handshakes that it takes back, connections
/// that begin or end which it reads from, and those that it takes away: whoever has a session does not wait for
/// thousands who begin one or end theirs. Each costs 5 to 20 us.
pub(crate) const ARRIVALS_PER_TICK_MAX: usize = 16;
pub(crate) const HANDSHAKE_STEPS_PER_TICK_MAX: usize = 16;
pub(crate) const PASSING_PER_TICK_MAX: usize = 16;
pub(crate) const BURIED_PER_TICK_MAX: usize = 16;
/// All of these together. Each of the four has half of its own in any case: whoever begins goes through three of them.
pub(crate) const CROWD_PER_TICK_MAX: usize = 40;
/// Requests that waits and pauses have held which a tick runs: whoever ends many of them, or has sent many behind one,
/// holds nobody else up for longer than these.
pub(crate) const RESUMED_PER_TICK_MAX: usize = 256;
/// Times that have come which a tick sees to, and messages of others: whatever ends in one moment, others do not wait
/// for all of it. Each costs a few microseconds.
pub(crate) const TIMERS_PER_TICK_MAX: usize = 256;
pub(crate) const MESSAGES_PER_TICK_MAX: usize = 512;
/// What a tick tells of all that clients have subscribed to: of messages above, those to one client count as one. Each
/// costs a tenth of a microsecond, and counts once more for each of so many bytes.
pub(crate) const PUSHES_PER_TICK_MAX: usize = 8192;
pub(crate) const PUSH_COST_BYTES: usize = 1 << 10;
/// Once a client has got so much of that, it is seen whether it owes too much.
pub(crate) const PUSHED_BYTES_MAX: usize = 16 << 10;
/// What a tick spends on channels of connections that go away: one for each whose wait is given up, and for each page
/// of them [`GIVEN_UP_PAGE_COST`].
pub(crate) const GIVEN_UP_PER_TICK_MAX: usize = 512;
pub(crate) const GIVEN_UP_PAGE_COST: usize = 16;
/// Pages of channels that are looked at in a tick for what is under way, of a connection whose client sends no more.
pub(crate) const ENDS_PAGES_PER_LOOK: usize = 16;
/// Places in the queues of keys, of waits with many keys that are over, which a tick gives back. Each costs 0.2 to
/// 1 us.
pub(crate) const PLACES_PER_TICK_MAX: usize = 2048;
/// Pages of HTTP, console and documents, that one connection is sent in a tick.
pub(crate) const PAGES_PER_TICK_MAX: u32 = 4;
/// Bytes that a worker compresses in a tick before other answers go as they are: a byte costs 4 ns.
pub(crate) const ZIPPED_PER_TICK_BYTES_MAX: usize = 1 << 20;
/// Sessions of connections that have ended which are taken down in a tick. A page of channels may go beyond it.
pub(crate) const LEAVING_PER_TICK_MAX: usize = 256;
/// Connections, or pages of channels, that one tick of a sweep looks at.
pub(crate) const SWEPT_PER_TICK_MAX: u32 = 256;
/// Between two looks at idle connections.
pub(crate) const SWEEP_MS: u64 = 1000;
