// Package resp reads and writes RESP, the protocol of Redis and Valkey, for servers, and reads replies for clients. It speaks RESP3
// and RESP2, and RESPB with its channels, and needs nothing but the standard library.
//
// # Three layers
//
// [Server] with a [Mux] is what most servers want: listeners, TLS, limits, deadlines, HELLO and AUTH, pub/sub, hooks, counters and
// graceful shutdown. A [Handler] gets a [Session] to write its reply to and a [Request] to read its arguments from.
//
//	mux := resp.NewMux()
//	mux.HandleFunc("PING", -1, func(s *resp.Session, r *resp.Request) error {
//		return s.WriteStatusString("PONG")
//	})
//	server := &resp.Server{Handler: mux}
//	log.Fatal(server.ListenAndServe(":6379"))
//
// [ClientConn] is one connection without a server around it: [ClientConn.Next] returns the next command, the methods of [Writer] write
// replies. [Writer] and [Reader] alone encode to and decode from anything.
//
// # RESPB
//
// A Server also takes connections that speak RESPB, by their first byte or when HELLO asks for it, and has the same Handler serve
// them. Each channel of such a connection is a Session with its own user, name, subscriptions and Data, and the methods of Writer
// write frames. What a handler should know: one that waits calls [Request.Context] first, so that the connection's other channels go on, and
// waits for that context too, because a client can take a command back; arguments are never streamed; a reply is held until it is whole.
//
// # Who owns what, and for how long
//
// Arguments are slices of the connection's own buffer. Those of Next are valid until Next is called again, those of a Request until
// the handler returns; they may be changed until then, and must be copied to be kept. Each slice's capacity ends with it, so append
// never writes into the next argument. Buffers are pooled: an argument kept without a copy will show other clients' bytes.
//
// Write methods copy or send what they are given before they return, and never change it. A [Value] owns everything in it until it
// is read into again.
//
// # When replies are sent
//
// A reply waits while another whole command of the same client is already there, and is sent with that command's reply. So a
// pipeline costs one write, and a single command is answered at once, without a goroutine or a timer in between. [Writer.Flush] sends at once,
// [Writer.WriteBuffered] holds back what belongs together.
//
// # Goroutines
//
// A Server has one goroutine per connection, a second one while a client takes bytes more slowly than they are
// produced, and one more, over a plain socket with a descriptor of its own, while a handler that has asked for a context runs for more than a
// millisecond: who expects 10,000 clients that wait in BLPOP allows for 20,000 descriptors. A Handler runs on the connection's goroutine, so a client's commands are answered in order; while one waits, that
// client's others wait too. One that waits for something waits for [Request.Context] as well, which ends when its client is gone, when the
// session is closed and when the server shuts down:
//
//	select {
//	case v := <-pushed:
//		return s.WriteBulkString(v)
//	case <-r.Context().Done():
//		return r.Context().Err() // the client, if it is there, is told why
//	}
//
// [Session.Push] and [PubSub.Publish] may be called from anywhere and never wait for a client.
//
// # Bad input
//
// Every length and count a client sends is checked against [Limits] and none makes the server reserve memory: that is spent on
// bytes that arrived. What is not RESP ends the connection after an error that says what was wrong, a passed limit after one that
// names it. A client that does not read its replies is not read from either once half of Limits.OutputBytesMax waits for it, and cut after
// Server.WriteTimeout; pushes, which cannot be held back, cut it at the limit. A RESPB channel is closed at the limit, as its
// specification says, and the connection is held back when its channels together have too much.
package resp
