package resp

// This file owns the commands that a Server answers itself on every wire: HELLO, AUTH, QUIT and RESET, and the refusal of everything else before
// authentication and, in RESP2, during a subscription.

import "errors"

// builtin answers r if it is one of the server's own commands.
func (c *serverConn) builtin(s *Session, r *Request) (done bool, err error) {
	name := r.args[0]
	if len(name) == 4 || len(name) == 5 {
		// One byte tells nearly all other commands apart from these.
		switch name[0] | 0x20 {
		case 'h', 'a', 'q', 'r':
			switch {
			case equalFold(name, "HELLO"):
				return true, c.hello(s, r)
			case equalFold(name, "AUTH"):
				return true, c.auth(s, r)
			case equalFold(name, "QUIT"):
				s.closing = true
				return true, s.WriteOK()
			case equalFold(name, "RESET"):
				return true, c.reset(s)
			}
		}
	}
	if !s.authed {
		return true, ErrNoAuth
	}
	if s.subscriptions > 0 && s.resp2 && !allowedSubscribed(name) {
		return true, Errorf("ERR", "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", lower(name))
	}
	return false, nil
}

// allowedSubscribed reports whether a RESP2 client may send the command while everything it gets is read as a message.
func allowedSubscribed(name []byte) bool {
	for _, allowed := range []string{"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "PING"} {
		if equalFold(name, allowed) {
			return true
		}
	}
	return false
}

// hello answers HELLO [version [AUTH user password] [SETNAME name] [PROTO respb] [CAPS mask]]. Nothing is changed unless all of it is
// right.
func (c *serverConn) hello(s *Session, r *Request) error {
	proto, args := s.Proto(), r.args[1:]
	if len(args) > 0 {
		version, ok := integer(args[0])
		if !ok {
			return &Error{"ERR", "Protocol version is not an integer or out of range"}
		}
		if version != 2 && version != 3 || version == 2 && s.rb != nil {
			return ErrNoProto
		}
		proto, args = int(version), args[1:]
	}
	var user, password, name []byte
	caps, binary := int64(-1), false
	for len(args) > 0 {
		switch {
		case equalFold(args[0], "AUTH") && len(args) >= 3:
			user, password, args = args[1], args[2], args[3:]
		case equalFold(args[0], "SETNAME") && len(args) >= 2:
			name, args = args[1], args[2:]
		case c.server.RESPB != RESPBOff && equalFold(args[0], "PROTO") && len(args) >= 2:
			if proto != 3 || !equalFold(args[1], "RESPB") {
				return ErrNoProto
			}
			binary, args = true, args[2:]
		case c.server.RESPB != RESPBOff && equalFold(args[0], "CAPS") && len(args) >= 2:
			mask, ok := integer(args[1])
			if !ok || mask < 0 {
				return &Error{"ERR", "CAPS is not an integer or out of range"}
			}
			caps, args = mask, args[2:]
		default:
			return Errorf("ERR", "Syntax error in HELLO option '%s'", args[0])
		}
	}
	if user != nil {
		if err := c.authenticate(s, string(user), string(password)); err != nil {
			return err
		}
	}
	if !s.authed {
		return &Error{"NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"}
	}
	if name != nil {
		if !validName(name) {
			return &Error{"ERR", "Client names cannot contain spaces, newlines or special characters."}
		}
		s.name = string(name)
	}
	switch {
	case s.rb != nil:
		c.mux.setCaps(caps)
	case binary:
		s.SetProto(3)
		return c.switchToRESPB(s, caps)
	default:
		s.SetProto(proto)
	}
	return c.writeHello(s, proto)
}

// validName reports whether name can stand in CLIENT LIST.
func validName(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func (c *serverConn) writeHello(s *Session, proto int) error {
	pairs := 7
	if c.mux != nil {
		pairs++
	}
	_ = s.WriteMapHeader(pairs)
	for _, pair := range [][2]string{{"server", c.server.Name}, {"version", c.server.Version}} {
		_ = s.WriteBulkString(pair[0])
		_ = s.WriteBulkString(pair[1])
	}
	_ = s.WriteBulkString("proto")
	_ = s.WriteInt(proto)
	_ = s.WriteBulkString("id")
	_ = s.WriteInt64(s.id)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		_ = s.WriteBulkString(pair[0])
		_ = s.WriteBulkString(pair[1])
	}
	_ = s.WriteBulkString("modules")
	if err := s.WriteArrayHeader(0); err != nil || c.mux == nil {
		return err
	}
	_ = s.WriteBulkString("respb")
	return c.mux.writeHello(&s.Writer)
}

// auth answers AUTH [user] password.
func (c *serverConn) auth(s *Session, r *Request) error {
	user, password := "default", ""
	switch len(r.args) {
	case 2:
		password = string(r.args[1])
	case 3:
		user, password = string(r.args[1]), string(r.args[2])
	default:
		return wrongArity("auth")
	}
	if len(r.args) == 2 && c.server.Auth == nil {
		return &Error{"ERR", "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"}
	}
	if err := c.authenticate(s, user, password); err != nil {
		return err
	}
	return s.WriteOK()
}

// authenticate asks the server's Auth, and lifts the limits for strangers if it agrees.
func (c *serverConn) authenticate(s *Session, user, password string) error {
	if check := c.server.Auth; check != nil {
		if err := check(s, user, password); err != nil {
			var e *Error
			if errors.As(err, &e) {
				return e
			}
			return ErrWrongPass
		}
	} else if user != "default" {
		return ErrWrongPass
	}
	s.Authenticate(user)
	c.authChanged(s)
	return nil
}

// authChanged has the limits follow who the session is.
func (c *serverConn) authChanged(s *Session) {
	if s.rb == nil {
		c.in.setLimits(&c.server.limits, !s.authed)
	} else if s.authed {
		c.mux.authed.Store(true)
	}
}

// reset answers RESET: the session is as it was at its start. Data is the handler's and stays.
func (c *serverConn) reset(s *Session) error {
	s.dropSubscriptions()
	s.SetRESP2Compat(!c.server.StartRESP3)
	s.name = ""
	s.Authenticate("")
	if c.server.Auth == nil {
		s.Authenticate("default")
	}
	c.authChanged(s)
	return s.WriteStatusString("RESET")
}

func wrongArity(name string) *Error {
	return &Error{"ERR", "wrong number of arguments for '" + name + "' command"}
}

// equalFold reports whether b is upper, which is all capitals, in any case.
func equalFold(b []byte, upper string) bool {
	if len(b) != len(upper) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

// lower returns name in small letters, cut where an error message would become unreadable.
func lower(name []byte) string {
	b := append([]byte(nil), name[:min(len(name), 128)]...)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
