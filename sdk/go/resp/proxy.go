package resp

// This file owns the PROXY protocol, versions 1 and 2: who the client of a proxy is. It takes headers of trusted proxies only, and reads no byte
// behind them.

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// What a header may be. The text of version 1 has its bound from the protocol; that of version 2 allows 64 KiB behind the addresses, of which nobody
// sends more than some certificates' names.
const (
	proxyTextMax    = 107
	proxyBinaryMax  = 2 << 10
	proxyShortest   = 15 // "PROXY UNKNOWN\r\n": so much can be read before it is known where the header ends
	proxyHeadBinary = 16
)

var proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")

// trusts reports whether connections from an address begin with a header.
func (s *Server) trusts(remote net.Addr) bool {
	switch a := remote.(type) {
	case *net.TCPAddr:
		addr := a.AddrPort().Addr().Unmap().WithZone("")
		return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
	case *net.UnixAddr:
		return s.TrustUnixProxies
	}
	return false
}

// readProxy reads the header and notes who the client is. It has as long as a TLS handshake.
func (c *serverConn) readProxy() error {
	c.deadline.progress(DefaultHandshakeTimeout)
	client, err := readProxyHeader(c.plain)
	c.deadline.forget()
	if err != nil {
		return err
	}
	if client != nil {
		c.remote = client
	}
	return nil
}

// readProxyHeader reads one header; the address is nil where the proxy speaks for itself or does not say.
func readProxyHeader(r io.Reader) (net.Addr, error) {
	var buf [proxyTextMax]byte
	head := buf[:proxyShortest]
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, proxySignature) {
		return readProxyBinary(r, buf[:proxyHeadBinary])
	}
	if !bytes.HasPrefix(head, []byte("PROXY ")) {
		return nil, &ProtocolError{"no PROXY header where Server.TrustedProxies or TrustUnixProxies ask for one"}
	}
	// Byte by byte, once for each connection: what stands behind it is not ours.
	for !bytes.HasSuffix(head, []byte("\r\n")) {
		if len(head) == cap(head) {
			return nil, &ProtocolError{"a PROXY header of more than " + strconv.Itoa(proxyTextMax) + " bytes"}
		}
		head = head[:len(head)+1]
		if _, err := io.ReadFull(r, head[len(head)-1:]); err != nil {
			return nil, err
		}
	}
	return parseProxyText(string(head[:len(head)-2]))
}

var errProxy = &ProtocolError{"a PROXY header that is none"}

// parseProxyText parses version 1: PROXY TCP4 192.0.2.1 192.0.2.2 56324 6379.
func parseProxyText(line string) (net.Addr, error) {
	words := strings.Split(line, " ")
	if len(words) >= 2 && words[1] == "UNKNOWN" {
		return nil, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return nil, errProxy
	}
	var ends [2]netip.AddrPort
	for i := range ends {
		addr, err := netip.ParseAddr(words[2+i])
		port, errPort := strconv.ParseUint(words[4+i], 10, 16)
		if err != nil || errPort != nil || addr.Zone() != "" || addr.Is4() != (words[1] == "TCP4") {
			return nil, errProxy
		}
		ends[i] = netip.AddrPortFrom(addr, uint16(port))
	}
	return net.TCPAddrFromAddrPort(ends[0]), nil
}

// readProxyBinary reads version 2, of which all but one byte of the head has been read.
//
//	signature 12 | version 2, command: 4 bits each | family, transport: 4 bits each | length u16 | addresses | more
func readProxyBinary(r io.Reader, head []byte) (net.Addr, error) {
	if _, err := io.ReadFull(r, head[proxyShortest:]); err != nil {
		return nil, err
	}
	command, family, n := head[12], head[13], int(binary.BigEndian.Uint16(head[14:]))
	if n > proxyBinaryMax {
		return nil, &ProtocolError{"a PROXY header of more than " + strconv.Itoa(proxyBinaryMax) + " bytes"}
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	switch {
	case command == 0x20: // LOCAL: the proxy itself, as for a health check
		return nil, nil
	case command != 0x21:
		return nil, errProxy
	}
	size := 0
	switch family {
	case 0x11: // TCP over IPv4: source 4, destination 4, ports 2 each
		size = 4
	case 0x21: // TCP over IPv6
		size = 16
	default: // not known, or a Unix socket: the proxy's own address stays
		return nil, nil
	}
	if n < 2*size+4 {
		return nil, errProxy
	}
	addr, _ := netip.AddrFromSlice(body[:size])
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(body[2*size:]))), nil
}
