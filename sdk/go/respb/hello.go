package respb

// This file owns agreeing on a protocol: HELLO and its reply, what older servers have instead, and the connection that CLIENT UNBLOCK takes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// hello agrees on a protocol (spec section 7.2): RESPB, else RESP3, else RESP2, which needs no agreement.
func (l *link) hello(protocol Protocol, ch *Channel) error {
	r := resp.NewReader(&l.wire)
	r.SetLimits(resp.ReaderLimits{BytesMax: l.conn.opts.ReplyBytesMax})
	var v Value
	if protocol == Auto || protocol == RESPB {
		refused, err := l.greet(r, &v, append(l.helloCommand(ch), "PROTO", "respb", "CAPS", "1"))
		switch {
		case err != nil:
			return err
		case refused == nil:
			return l.beginBinary(r, &v)
		case protocol == RESPB:
			return fmt.Errorf("respb: the server does not speak RESPB; with Options.Protocol Auto this client falls back to RESP3 or RESP2: %w", refused)
		}
		l.without = refused
	}
	if protocol != RESP2 {
		refused, err := l.greet(r, &v, l.helloCommand(ch))
		switch {
		case err != nil:
			return l.refusedBefore(err)
		case refused == nil:
			l.in.resp = r
			return l.limits.read(&v)
		case protocol == RESP3:
			return fmt.Errorf("respb: the server does not speak RESP3, as Redis before 6 and some proxies; with Options.Protocol Auto or RESP2 "+
				"this client speaks RESP2: %w", refused)
		}
		l.without = refused
	}
	l.resp2, l.in.resp = true, r
	return l.refusedBefore(l.beginOld(r, &v, ch))
}

// refusedBefore adds what an earlier HELLO was answered with to why a connection was lost: it may have been a refusal of the connection.
func (l *link) refusedBefore(err error) error {
	var lost *ConnError
	if l.without == nil || !errors.As(err, &lost) {
		return err
	}
	return &ConnError{fmt.Errorf("%w; HELLO had been answered with: %v", lost.Err, l.without), true}
}

// greet sends HELLO. refused is why the server does not take it as it is, which may take less.
func (l *link) greet(r *resp.Reader, v *Value, words []string) (refused, err error) {
	if err := l.ask(r, v, words); err != nil {
		return nil, err
	}
	err = v.Err()
	var reply *Error
	if errors.As(err, &reply) && (reply.Prefix == "ERR" || reply.Prefix == "NOPROTO") {
		return err, nil
	}
	return nil, err // of AUTH, most likely
}

// beginBinary takes the reply to HELLO PROTO respb, behind which both sides have switched.
func (l *link) beginBinary(r *resp.Reader, v *Value) error {
	l.binary = true
	if err := l.limits.read(v); err != nil {
		return err
	}
	if _, ok := lookup(v, "respb"); !ok {
		return &ReplyError{"an entry respb in the reply to HELLO PROTO respb", v.String()}
	}
	limits := frame.DefaultLimits
	limits.FrameBytesMax = uint32(min(int64(l.conn.opts.ReplyBytesMax), int64(limits.FrameBytesMax)))
	l.in.dec, l.in.inner = frame.NewReplyDecoder(limits), frame.NewReplyDecoder(limits)
	rest := r.Rest()
	l.in.buf = append(make([]byte, 0, max(firstReadBytes, len(rest))), rest...)
	l.in.end = len(rest)
	l.in.buf = l.in.buf[:cap(l.in.buf)]
	l.lanes = map[uint16]*lane{}
	return nil
}

// beginOld authenticates where there is no HELLO, and asks for what CLIENT UNBLOCK needs, which Redis has from 5 on.
func (l *link) beginOld(r *resp.Reader, v *Value, ch *Channel) error {
	if words := l.authCommand(ch); words != nil {
		if err := l.ask(r, v, words); err != nil {
			return err
		}
		if err := v.Err(); err != nil {
			return err
		}
	}
	if err := l.limits.read(&Value{}); err != nil {
		return err
	}
	if err := l.ask(r, v, []string{"CLIENT", "ID"}); err != nil {
		return err
	}
	if v.Kind == resp.Integer {
		l.limits.id = v.Int
	}
	var reply *Error
	if errors.As(v.Err(), &reply) && reply.Prefix == "NOAUTH" {
		return reply
	}
	return nil
}

// authCommand is AUTH as servers without HELLO take it: a user only if there is one, since users came with Redis 6.
func (l *link) authCommand(ch *Channel) []string {
	words := l.helloCommand(ch)[2:]
	switch {
	case len(words) == 0:
		return nil
	case words[1] == "default":
		return []string{"AUTH", words[2]}
	}
	return words
}

// helloCommand is HELLO without what concerns RESPB, and without the name: with everything it would have more arguments than servers
// take from strangers. A channel with a link of its own and no user has channel 0's.
func (l *link) helloCommand(ch *Channel) []string {
	words := []string{"HELLO", "3"}
	user, password := ch.opts.Username, ch.opts.Password
	if password == "" && user == "" {
		user, password = l.conn.opts.Username, l.conn.opts.Password
	}
	if password != "" || user != "" {
		if user == "" {
			user = "default"
		}
		words = append(words, "AUTH", user, password)
	}
	return words
}

// ask sends a command as RESP and reads its reply, passing over pushes.
func (l *link) ask(r *resp.Reader, v *Value, words []string) error {
	if err := l.wire.write(appendRESP(nil, words)); err != nil {
		return &ConnError{err, true}
	}
	for {
		if err := r.Read(v); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return &ConnError{fmt.Errorf("no answer to HELLO: %w", err), true}
		}
		if v.Kind != resp.Push {
			return nil
		}
	}
}

// lookup finds a key in a map, or in the flat array that RESP2 has for one.
func lookup(v *Value, key string) (*Value, bool) {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if string(v.Elems[i].Data) == key {
			return &v.Elems[i+1], true
		}
	}
	return nil, false
}

// readTyped reports whether a server speaks the profile Typed and has our command table.
func readTyped(about *Value) bool {
	profiles, ok := lookup(about, "profiles")
	if !ok || !slices.ContainsFunc(profiles.Elems, func(v Value) bool { return string(v.Data) == "typed" }) {
		return false
	}
	table, ok := lookup(about, "table")
	if !ok {
		return false
	}
	name, hasName := lookup(table, "name")
	version, hasVersion := lookup(table, "version")
	hash, hasHash := lookup(table, "hash")
	return hasName && hasVersion && hasHash && frame.SharesTable(string(name.Data), version.Int, string(hash.Data))
}

// read takes what HELLO told.
func (s *serverLimits) read(v *Value) error {
	const none = 1<<63 - 1
	*s = serverLimits{channels: 1 << 16, frame: none, arguments: none, argument: none, smallest: none}
	if id, ok := lookup(v, "id"); ok {
		s.id = id.Int
	}
	about, ok := lookup(v, "respb")
	if !ok {
		return nil
	}
	if version, ok := lookup(about, "version"); !ok || version.Int != 1 {
		return &ReplyError{"version 1 of RESPB", about.String()}
	}
	s.typed = readTyped(about)
	limits, ok := lookup(about, "limits")
	if !ok {
		return nil
	}
	for name, field := range map[string]*int64{
		"channels": &s.channels, "frame_bytes": &s.frame, "arguments": &s.arguments, "argument_bytes": &s.argument,
	} {
		if limit, ok := lookup(limits, name); ok && limit.Kind == resp.Integer && limit.Int > 0 {
			*field = limit.Int
		}
	}
	s.smallest = min(s.frame, s.argument)
	return nil
}

// unblock ends what blocks on a link without RESPB, over a connection of its own. Nothing else that blocks is sent before it has returned, so
// it cannot meet another command.
func (l *link) unblock() {
	defer func() {
		l.mu.Lock()
		l.unblocking--
		l.makeRoom()
		l.mu.Unlock()
	}()
	if l.limits.id == 0 {
		return // the server is too old to say: the command ends by its own timeout
	}
	c := l.conn
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.DialTimeout)
	defer cancel()
	nc, err := c.connect(ctx)
	if err != nil {
		return // the command ends by its own timeout
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(c.opts.DialTimeout))
	other := &link{conn: c}
	other.wire.init(nc, 0)
	r := resp.NewReader(&other.wire)
	var v Value
	words := other.helloCommand(c.zero)
	if l.resp2 {
		words = other.authCommand(c.zero)
	}
	if (words == nil || other.ask(r, &v, words) == nil && v.Err() == nil) && l.alive() {
		_ = other.ask(r, &v, []string{"CLIENT", "UNBLOCK", fmt.Sprint(l.limits.id)}) // best effort, as the connection is
	}
}
