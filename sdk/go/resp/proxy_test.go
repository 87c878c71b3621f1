package resp

// This file owns the tests of the PROXY protocol.

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
)

func proxyBinary(command, family byte, body []byte) string {
	head := append(append([]byte{}, proxySignature...), command, family, byte(len(body)>>8), byte(len(body)))
	return string(append(head, body...))
}

func TestProxyHeaders(t *testing.T) {
	four := []byte{192, 0, 2, 1, 192, 0, 2, 2, 0x30, 0x39, 0x18, 0xeb}
	six := append(append(netip.MustParseAddr("2001:db8::1").AsSlice(), netip.MustParseAddr("::1").AsSlice()...), 0x30, 0x39, 0x18, 0xeb)
	pad := func(n int) []byte { return append(bytes.Clone(four), make([]byte, n-len(four))...) }
	for _, each := range []struct {
		name, header, want string // want is empty for the proxy's own address, and begins with ! for an error
	}{
		{"text", "PROXY TCP4 192.0.2.1 192.0.2.2 12345 6379\r\n", "192.0.2.1:12345"},
		{"text of IPv6", "PROXY TCP6 2001:db8::1 ::1 12345 6379\r\n", "[2001:db8::1]:12345"},
		{"not known", "PROXY UNKNOWN\r\n", ""},
		{"not known, with more", "PROXY UNKNOWN ffff:: ffff:: 1 2\r\n", ""},
		{"the longest", "PROXY UNKNOWN" + strings.Repeat("x", proxyTextMax-15) + "\r\n", "!that is none"},
		{"one past it", "PROXY UNKNOWN" + strings.Repeat("x", proxyTextMax-14) + "\r\n", "!more than 107"},
		{"another family than it says", "PROXY TCP4 2001:db8::1 ::1 12345 6379\r\n", "!that is none"},
		{"a port too large", "PROXY TCP4 192.0.2.1 192.0.2.2 65536 6379\r\n", "!that is none"},
		{"a word too many", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n", "!that is none"},
		{"none at all", "*1\r\n$4\r\nPING\r\n*1\r\n", "!no PROXY header"},
		{"cut", "PROXY TCP4 192.0.2.1", "!EOF"},
		{"nothing", "", "!EOF"},
		{"binary", proxyBinary(0x21, 0x11, four), "192.0.2.1:12345"},
		{"binary of IPv6", proxyBinary(0x21, 0x21, six), "[2001:db8::1]:12345"},
		{"binary with more", proxyBinary(0x21, 0x11, pad(100)), "192.0.2.1:12345"},
		{"binary, the longest", proxyBinary(0x21, 0x11, pad(proxyBinaryMax)), "192.0.2.1:12345"},
		{"binary, one past it", proxyBinary(0x21, 0x11, pad(proxyBinaryMax+1)), "!more than 2048"},
		{"the proxy itself", proxyBinary(0x20, 0x00, nil), ""},
		{"not said", proxyBinary(0x21, 0x00, nil), ""},
		{"a Unix socket", proxyBinary(0x21, 0x31, make([]byte, 216)), ""},
		{"too short for its family", proxyBinary(0x21, 0x21, four), "!that is none"},
		{"another version", proxyBinary(0x11, 0x11, four), "!that is none"},
		{"binary, cut", proxyBinary(0x21, 0x11, four)[:20], "!EOF"},
	} {
		r := strings.NewReader(each.header + "rest")
		if strings.Contains(each.want, "EOF") {
			r = strings.NewReader(each.header)
		}
		addr, err := readProxyHeader(r)
		if want, isError := strings.CutPrefix(each.want, "!"); isError {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v; want the error %q", each.name, addr, err, want)
			}
			continue
		}
		rest, _ := io.ReadAll(r)
		got := ""
		if addr != nil {
			got = addr.String()
		}
		if err != nil || got != each.want || string(rest) != "rest" {
			t.Errorf("%s: %q, %v, and %q is left; want %q", each.name, got, err, rest, each.want)
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 12345 6379\r\nPING\r\n"))
	f.Add([]byte(proxyBinary(0x21, 0x11, make([]byte, 12))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		if _, err := readProxyHeader(r); err == nil && len(data)-r.Len() > proxyHeadBinary+proxyBinaryMax {
			t.Error("more was read than a header has")
		}
	})
}

// TestTrustedProxies: only they are asked for a header, over RESP, RESPB and TLS, and it says who the client is.
func TestTrustedProxies(t *testing.T) {
	m := NewMux()
	m.HandleFunc("WHERE", 1, func(s *Session, r *Request) error { return s.WriteBulkString(s.RemoteAddr().String()) })
	trusting := func() *Server {
		return &Server{Handler: m, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	for name, each := range map[string]struct {
		server     *Server
		send, want string
	}{
		"trusted":     {trusting(), "PROXY TCP4 192.0.2.1 192.0.2.2 12345 6379\r\nWHERE\r\n", "$15\r\n192.0.2.1:12345\r\n"},
		"binary":      {trusting(), proxyBinary(0x21, 0x11, []byte{192, 0, 2, 1, 1, 1, 1, 1, 0, 5, 0, 6}) + "WHERE\r\n", "$11\r\n192.0.2.1:5\r\n"},
		"no header":   {trusting(), "WHERE\r\nWHERE\r\nWHERE\r\n", ""},
		"not trusted": {&Server{Handler: m, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "-ERR unknown command 'PROXY'"},
		"off":         {&Server{Handler: m}, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "-ERR unknown command 'PROXY'"},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", startServer(t, each.server))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, each.send); err != nil {
				t.Fatal(err)
			}
			if each.want == "" {
				if n, err := nc.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("%d bytes, %v; want the end", n, err)
				}
				if n := each.server.Stats().ProtocolErrors; n != 1 {
					t.Errorf("%d protocol errors are counted, want 1", n)
				}
				return
			}
			got := make([]byte, len(each.want))
			if _, err := io.ReadFull(nc, got); err != nil || string(got) != each.want {
				t.Errorf("%q, %v; want %q", got, err, each.want)
			}
		})
	}
}

// TestUnixProxies: a socket of a file has no address to trust; it is asked for a header where Server.TrustUnixProxies says so, and nobody else is.
func TestUnixProxies(t *testing.T) {
	m := echoMux()
	m.HandleFunc("WHERE", 1, func(s *Session, r *Request) error { return s.WriteBulkString(s.RemoteAddr().String()) })
	const header = "PROXY TCP4 192.0.2.1 192.0.2.2 12345 6379\r\n"
	for name, each := range map[string]struct {
		server              *Server
		network, send, want string
	}{
		"trusted":           {&Server{TrustUnixProxies: true}, "unix", header + "WHERE\r\n", "$15\r\n192.0.2.1:12345\r\n"},
		"from a socket":     {&Server{TrustUnixProxies: true}, "unix", proxyBinary(0x21, 0x31, make([]byte, 216)) + "PING\r\n", "+PONG\r\n"},
		"no header":         {&Server{TrustUnixProxies: true}, "unix", "WHERE\r\nWHERE\r\nWHERE\r\n", ""},
		"not trusted":       {&Server{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, "unix", header, "-ERR unknown command 'PROXY'"},
		"TCP is not a file": {&Server{TrustUnixProxies: true}, "tcp", header, "-ERR unknown command 'PROXY'"},
	} {
		t.Run(name, func(t *testing.T) {
			each.server.Handler = m
			addr := "127.0.0.1:0"
			if each.network == "unix" {
				addr = filepath.Join(t.TempDir(), "s")
			}
			l, err := net.Listen(each.network, addr)
			if err != nil {
				t.Skip("no unix sockets here:", err)
			}
			served := make(chan error, 1)
			go func() { served <- each.server.Serve(l) }()
			defer func() {
				_ = each.server.Shutdown(context.Background())
				<-served
			}()
			nc, err := net.Dial(each.network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, each.send); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, max(len(each.want), 1))
			n, err := io.ReadFull(nc, got)
			if string(got[:n]) != each.want || (err == nil) != (each.want != "") {
				t.Errorf("%q, %v; want %q", got[:n], err, each.want)
			}
		})
	}
}
