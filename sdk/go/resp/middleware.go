package resp

// This file owns putting handlers around handlers.

// Middleware makes a Handler that does something before or after next, or instead of it.
type Middleware func(next Handler) Handler

// Chain returns h with middleware around it, the first of it outermost.
//
//	server := &resp.Server{Handler: resp.Chain(mux, logging, limiting)}
//
// What h takes as streams it goes on to take, which a function around it, used as a Handler itself, would hide; see [Streamer].
func Chain(h Handler, middleware ...Middleware) Handler {
	outer := h
	for i := len(middleware) - 1; i >= 0; i-- {
		outer = middleware[i](outer)
	}
	if s, ok := h.(Streamer); ok {
		return chained{outer, s}
	}
	return outer
}

// chained is a chain whose innermost handler is a Streamer.
type chained struct {
	Handler
	inner Streamer
}

func (c chained) Streams() (from int, takes func(name []byte) bool) { return c.inner.Streams() }

// Streamer is a Handler that takes the last argument of some commands as a stream, as a [Mux] does for those of HandleStream. A Handler that
// wraps another and wants to keep that implements it by asking the other; [Chain] does.
type Streamer interface {
	Handler
	// Streams returns the length from which an argument is streamed, zero for never, and whether a command takes it so. It is asked
	// once for each connection, and takes often: name is as the client wrote it, and must not be kept.
	Streams() (from int, takes func(name []byte) bool)
}
