package resp

// This file owns the bounds of a connection: those that are options, with their defaults, and those that are not.

import "github.com/weft-db/weft/sdk/go/internal/frame"

// Defaults of [Limits]. They are those of Redis where Redis has the same limit, so that a client that works there works here.
const (
	// DefaultArgsMax is the arguments one command may have (Redis: 1024*1024).
	DefaultArgsMax = 1 << 20
	// DefaultArgBytesMax is the length one argument may have (Redis: proto-max-bulk-len).
	DefaultArgBytesMax = 512 << 20
	// DefaultCommandBytesMax is the length one command may have on the wire (Redis: client-query-buffer-limit).
	DefaultCommandBytesMax = 1 << 30
	// DefaultInlineBytesMax is the length an inline command may have (Redis: PROTO_INLINE_MAX_SIZE).
	DefaultInlineBytesMax = 64 << 10
	// DefaultUnauthArgsMax is the arguments a command may have before its sender is authenticated.
	DefaultUnauthArgsMax = 16
	// DefaultUnauthBytesMax is the length an argument may have before its sender is authenticated.
	DefaultUnauthBytesMax = 16 << 10
	// DefaultOutputBytesMax is what may wait for a client that does not read. Redis has no such limit for normal
	// clients and 32 MiB for subscribers; a bound is kinder to the other clients.
	DefaultOutputBytesMax = 64 << 20
	// DefaultQueueBytesMax is what may wait behind a blocked command of one RESPB channel.
	DefaultQueueBytesMax = 1 << 20
	// DefaultChannelsMax is the channels a RESPB connection may have open, channel 0 included.
	DefaultChannelsMax = 1 << 16
	// DefaultUnauthChannelsMax is the same before anybody on the connection is authenticated.
	DefaultUnauthChannelsMax = 16
)

// Bounds that are not options: each only trades memory against system calls or copies.
const (
	// batchMax is how many commands are parsed ahead. It bounds the memory of the parsed spans; past 64 the
	// cost of starting a batch no longer shows.
	batchMax = 64
	// blockBytes is the size of a pooled buffer: four times what Redis reads at once, so that a pipeline of a thousand
	// small commands takes one read and one write.
	blockBytes = 64 << 10
	// smallBytes is the buffer a connection keeps for itself when blocks are not in use.
	smallBytes = 1 << 10
	// keepArgs is how many argument slots are kept from one command to the next. A command with a million
	// arguments must not leave 24 MB behind.
	keepArgs = 512
	// narrowReads is after how many reads that would have fitted the small buffer a connection goes back to it.
	narrowReads = 16
	// headerBytesMax is the longest length line: sign, 19 digits and room for what is wrong with it.
	headerBytesMax = 32
)

// Limits bounds what one connection may make the server hold. A zero field means its default; a negative
// one is treated as the default too, because "no limit" is not offered.
type Limits struct {
	// ArgsMax bounds the number of arguments of a command, its name included.
	ArgsMax int
	// ArgBytesMax bounds the length of one argument that is held in memory. A streamed body is not bounded by it.
	ArgBytesMax int
	// CommandBytesMax bounds a whole command as it stands on the wire.
	CommandBytesMax int
	// InlineBytesMax bounds an inline command, quotes and escapes included.
	InlineBytesMax int
	// UnauthArgsMax and UnauthBytesMax take the place of ArgsMax and ArgBytesMax until the client is authenticated.
	UnauthArgsMax  int
	UnauthBytesMax int
	// OutputBytesMax bounds the bytes that wait to be sent. From half of it on a [Server] reads no more commands until the client has
	// taken some; one reply, or pushes, that pass it close the connection. A plain [ClientConn] can only reach it inside
	// [Writer.WriteBuffered]. Over RESPB it bounds each channel, and closes that.
	OutputBytesMax int
	// QueueBytesMax bounds what waits behind a blocked command of one RESPB channel; passing it closes the channel.
	QueueBytesMax int
	// ChannelsMax bounds the open channels of a RESPB connection, UnauthChannelsMax until one of them is authenticated. One more is
	// closed at once.
	ChannelsMax       int
	UnauthChannelsMax int
}

// withDefaults returns l with every unset field filled in.
func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.ArgsMax, DefaultArgsMax)
	set(&l.ArgBytesMax, DefaultArgBytesMax)
	set(&l.CommandBytesMax, DefaultCommandBytesMax)
	set(&l.InlineBytesMax, DefaultInlineBytesMax)
	set(&l.UnauthArgsMax, DefaultUnauthArgsMax)
	set(&l.UnauthBytesMax, DefaultUnauthBytesMax)
	set(&l.OutputBytesMax, DefaultOutputBytesMax)
	set(&l.QueueBytesMax, DefaultQueueBytesMax)
	set(&l.ChannelsMax, DefaultChannelsMax)
	set(&l.UnauthChannelsMax, DefaultUnauthChannelsMax)
	return l
}

// frames returns l as RESPB has it, for anybody and for strangers.
func (l *Limits) frames() (f [2]frame.Limits) {
	const most = 1<<32 - 1
	f[0] = frame.Limits{
		ArgumentsMax: uint32(l.ArgsMax), ArgumentBytesMax: uint32(min(int64(l.ArgBytesMax), most)),
		FrameBytesMax: uint32(min(int64(l.CommandBytesMax), most)), NestingMax: frame.NestingMax,
		ElementsMax: frame.DefaultLimits.ElementsMax,
	}
	f[1] = f[0]
	f[1].Unauthenticated = true
	f[1].ArgumentsMax = uint32(min(l.ArgsMax, l.UnauthArgsMax))
	f[1].ArgumentBytesMax = uint32(min(int64(l.ArgBytesMax), int64(l.UnauthBytesMax), most))
	return f
}
