// Package respb is a client for servers that speak RESPB, and for those that only speak RESP3 or RESP2.
//
// # One connection, many clients
//
// [Dial] opens one connection and agrees with the server on a protocol. [Conn.Channel] opens a logical client on it, a [Channel]: it has a
// user, a database, a transaction, watched keys, subscriptions and blocking commands of its own, and costs neither a connection nor
// a goroutine.
//
// The Conn itself is channel 0, which all its users share. Its helpers are [Commands]: GET is [Commands.Get], SET is [Commands.Set]. What would change
// or hold up what they share, SELECT, WATCH, MULTI, BLPOP, is in [ChannelCommands], which only a Channel has, and refused with a [*UseError]
// where it is sent by Do. A transaction in one pipeline, as [Pipeline.ExecTx] makes it, is for both.
//
//	conn, err := respb.Dial(ctx, respb.Options{Addr: "127.0.0.1:6379"})
//	...
//	_, err = conn.Set(ctx, "greeting", "hello")
//	text, err := conn.Get(ctx, "greeting")
//
// # Without RESPB
//
// Where a server has no RESPB this is a pool of RESP3 connections, and nothing else changes: each Channel has a connection, up to
// Options.ConnectionsMax, and leaves it to the next when it is closed (Options.IdleMax). The Conn shares one too, and has up to four more for
// commands that may be slow or have large replies, as KEYS, HGETALL and scripts, and for all when nothing comes on its own for a while, so that
// one large reply holds nobody else up. Redis before 6 and proxies without RESP3 are spoken to in RESP2: helpers read its replies like the
// others', Do gives them as they come, and caching is refused, since it needs pushes.
//
// # Pipelining
//
// Any number of goroutines may use a Conn and its Channels at once. Their commands gather while one of them is writing, and leave
// together; whoever waits first reads the replies of all. There is no goroutine per request, and none per connection either until pushes are
// expected, or somebody waits with a context that may end. [Channel.Pipeline] sends several commands as one.
//
// The commands that are on their way are bounded by Options.InFlightMax and Options.WriteBytesMax: who comes later waits. What the
// server announced as its limits is checked before anything is sent.
//
// # Cancellation
//
// When a context ends, the call returns at once, and the server is told to give the command up if it waits or blocks (CANCEL; over RESP3
// CLIENT UNBLOCK). Commands that run already may still take effect. A request that the server does not take holds nobody: the rest of it is
// written behind the caller's back.
//
// # Timeouts
//
// Without any context nothing waits for ever either: Options.ReadTimeout bounds each reply, Options.WriteTimeout a server that takes nothing, and
// one that is silent while something is expected is asked with PING (Options.PingInterval). All are on by default. A command that blocks has
// the time it names itself on top. What is late fails with a [*TimeoutError]; the connection is closed only if it is the server that is gone, and
// over RESP3, where a late reply would be taken for another's.
//
// # When the connection breaks
//
// Commands without a reply fail with a [*ConnError]: whether they took effect is not known. Those that only read are sent again. If the
// server has said that it ends the connection, and has ended it cleanly, the ConnError holds a [*GoAwayError]: they did not take effect. The
// next command opens a new connection, following Options.Reconnect, while the old one still brings what it owes, and each Channel gets its user, database, name, tracking
// and subscriptions back when it is next used, as its commands have left them. WATCH and MULTI are lost with the connection, and nothing goes on
// as if they were not: the first command after such a break fails with [ErrStateLost].
//
// # What it tells
//
// [Conn.Protocol] is what is spoken, [Conn.Stats] counts, Options.OnConnect is told each connection, and why it fell back if it did, and
// Options.OnBreak each that broke. [ParseURL] makes Options of a URL.
//
// # Replies
//
// What comes in many replies is iterated over: [Commands.EachKey], [Commands.EachField], [Commands.EachEntry], [Subscription.Messages]. What
// is added to a stream is waited for by [ChannelCommands.Follow] and, for a group, [ChannelCommands.Consume]; both go on after a break.
//
// [Channel.Do] gives any reply as a [Value]. The helpers, one per command of the table, give Go types: times are time.Duration and time.Time,
// streams are [Entry] and [Stream], members of sorted sets [Scored], bounds of scores [Including], [Excluding], [Lowest] and [Highest]; what is
// bytes rather than text has a form of its own, as [Commands.GetBytes], and where an argument changes the reply there are two helpers, as
// [Commands.Lpop] and [Commands.LpopN]. Null is [ErrNil] where a string was expected, and an error reply is an
// [*Error] with its prefix.
package respb
