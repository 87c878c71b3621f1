package respb

// This file owns what can be set about a connection and a channel.

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"time"
)

// Protocol is what a Conn may speak.
type Protocol int

const (
	// Auto speaks RESPB if the server does, else RESP3, else RESP2.
	Auto Protocol = iota
	// RESPB fails if the server does not have it.
	RESPB
	// RESP3 does not ask for RESPB, and fails if the server does not have it.
	RESP3
	// RESP2 asks for nothing: it is for servers and proxies that end the connection at a HELLO.
	RESP2
)

func (p Protocol) String() string {
	switch p {
	case RESPB:
		return "RESPB"
	case RESP3:
		return "RESP3"
	case RESP2:
		return "RESP2"
	}
	return "Auto"
}

// Defaults of [Options].
const (
	// DefaultDialTimeout bounds connecting, TLS and HELLO together.
	DefaultDialTimeout = 5 * time.Second
	// DefaultReadTimeout is how long a reply may take.
	DefaultReadTimeout = 5 * time.Second
	// DefaultWriteTimeout is how long the server may take no byte while some wait for it.
	DefaultWriteTimeout = 5 * time.Second
	// DefaultPingInterval is how long the server may be silent before it is asked whether it is there.
	DefaultPingInterval = 5 * time.Second
	// DefaultInFlightMax is how many commands of a connection may wait for their replies.
	DefaultInFlightMax = 1 << 14
	// DefaultWriteBytesMax is how many bytes may wait to be written before callers have to wait.
	DefaultWriteBytesMax = 8 << 20
	// DefaultReplyBytesMax bounds one reply.
	DefaultReplyBytesMax = 1 << 30
	// DefaultSubscriptionBytesMax is how much of a channel's messages may wait to be received.
	DefaultSubscriptionBytesMax = 1 << 20
	// DefaultPollMax is a little more than a reply takes on the same machine, idle processors included.
	DefaultPollMax = 50 * time.Microsecond
	// DefaultConnectionsMax is how many connections there may be without RESPB.
	DefaultConnectionsMax = 256
	// DefaultIdleMax is how many of them are kept for later.
	DefaultIdleMax = 16
	// DefaultReconnectMin and DefaultReconnectMax bound the pause between two attempts.
	DefaultReconnectMin = 10 * time.Millisecond
	DefaultReconnectMax = 2 * time.Second
	// DefaultReconnectAttempts is how often one command tries.
	DefaultReconnectAttempts = 5
)

// Options says how to connect. Only Addr is needed.
type Options struct {
	// Network is "tcp" unless set; Addr is what net.Dial takes.
	Network, Addr string
	// Dialer replaces net.Dialer.
	Dialer func(ctx context.Context) (net.Conn, error)
	// TLSConfig makes the connection speak TLS.
	TLSConfig *tls.Config
	// DialTimeout bounds connecting, TLS and HELLO together.
	DialTimeout time.Duration
	// ReadTimeout bounds the wait for a reply, beside the context. It runs from when the command was sent, or from the reply before it on the same
	// Channel if that is later, and stands still while one large request or reply is on its way; a command that blocks has the timeout it names
	// itself on top. What is late fails with a TimeoutError. Over RESPB the connection goes on, over RESP3 it is closed. Less than zero: none.
	ReadTimeout time.Duration
	// WriteTimeout bounds how long the server may take no byte at all while some wait for it; then the connection is closed. Less than
	// zero: none.
	WriteTimeout time.Duration
	// PingInterval is how long the server may be silent, while a reply or a push is expected, before PING asks it, over RESPB on a channel of its
	// own. When nothing comes for a further ReadTimeout the connection is closed: so no message is missed, and no cached value used, for
	// longer than both together and, since it is looked at from time to time, a quarter of that. Less than zero: it is not asked.
	PingInterval time.Duration
	// Protocol is Auto unless set.
	Protocol Protocol

	// Username and Password authenticate channel 0, and with it the channels that name no user of their own.
	Username, Password string
	// DB is the database of channel 0.
	DB int
	// Name is what CLIENT LIST shows for channel 0.
	Name string
	// OnPush is told pushes on channel 0 that are neither messages nor invalidations; see ChannelOptions.OnPush.
	OnPush func(push *Value)

	// Hooks are told commands, pipelines and connections: tracing, metrics and logs, see the packages below respb/hooks. Without any nothing is
	// looked at, and it costs nothing.
	Hooks []Hook
	// OnConnect is told each connection that was made, on a goroutine of its own: what it speaks, and why that is not RESPB.
	OnConnect func(Connected)
	// OnBreak is told each connection that has broken, on a goroutine of its own, with a ConnError; not those that Close closes.
	OnBreak func(err error)

	// Reconnect says what happens when the connection breaks.
	Reconnect Reconnect
	// NoRetry turns off that commands that only read are sent again after the connection broke.
	NoRetry bool

	// PollMax is how long a caller who is alone on the connection looks for its reply before it sleeps. Where replies take longer it
	// soon stops looking. Less than zero turns that off; what it saves in time it costs in processor time.
	PollMax time.Duration

	// ConnectionsMax is how many connections there may be where the server has no RESPB and each Channel takes one. Who comes later waits for one,
	// up to DialTimeout, and fails with ErrChannels. IdleMax is how many are kept when their Channels are closed, for others; less than
	// zero for none.
	ConnectionsMax, IdleMax int

	// InFlightMax, WriteBytesMax, ChannelsMax and ReplyBytesMax bound what the connection holds. The server's own limits apply as well.
	InFlightMax   int
	WriteBytesMax int
	ChannelsMax   int
	ReplyBytesMax int
}

// Reconnect is the policy for broken connections: pauses that double from Min to Max, with a random part.
type Reconnect struct {
	// Disabled makes the first break final.
	Disabled bool
	Min, Max time.Duration
	// Attempts is how often one command tries before it fails, which is a fifth of a second where a server refuses connections and nothing else is
	// set. Subscriptions, Follow and Consume try for ever.
	Attempts int
}

// ChannelOptions describes a logical client.
type ChannelOptions struct {
	// Username and Password authenticate the channel; without them it has channel 0's user.
	Username, Password string
	DB                 int
	Name               string
	// Tracking turns CLIENT TRACKING on with these further words, such as "BCAST", when it is not nil. See [Cache].
	Tracking []string
	// OnPush is told pushes that are not messages. It runs on the goroutine that reads, must not block nor call the client, and may
	// not keep the Value.
	OnPush func(push *Value)
	// SubscriptionBytesMax is how many bytes of messages may wait to be received; the server holds back the rest.
	SubscriptionBytesMax int
}

func (o *Options) setDefaults() {
	def := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	if o.Network == "" {
		o.Network = "tcp"
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	for _, each := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.ReadTimeout, DefaultReadTimeout}, {&o.WriteTimeout, DefaultWriteTimeout}, {&o.PingInterval, DefaultPingInterval},
	} {
		if *each.field == 0 {
			*each.field = each.value
		}
	}
	if o.PollMax == 0 {
		o.PollMax = DefaultPollMax
	}
	def(&o.InFlightMax, DefaultInFlightMax)
	def(&o.WriteBytesMax, DefaultWriteBytesMax)
	def(&o.ChannelsMax, 1<<16)
	def(&o.ReplyBytesMax, DefaultReplyBytesMax)
	def(&o.ConnectionsMax, DefaultConnectionsMax)
	if o.IdleMax == 0 {
		o.IdleMax = DefaultIdleMax
	}
	def(&o.Reconnect.Attempts, DefaultReconnectAttempts)
	if o.Reconnect.Min <= 0 {
		o.Reconnect.Min = DefaultReconnectMin
	}
	if o.Reconnect.Max <= 0 {
		o.Reconnect.Max = DefaultReconnectMax
	}
}

// pause is how long to wait after so many failures.
func (r *Reconnect) pause(failures int) time.Duration {
	d := r.Min << min(failures, 20)
	if d <= 0 || d > r.Max {
		d = r.Max
	}
	return d/2 + rand.N(d/2+1)
}
