//go:build unix

package resp

// This file owns finding the descriptor under a connection.

import (
	"net"
	"syscall"
)

// rawConnOf returns the descriptor of a plain TCP or Unix socket, and nil for anything wrapped around one.
func rawConnOf(nc net.Conn) syscall.RawConn {
	var sc syscall.Conn
	switch c := nc.(type) {
	case *net.TCPConn:
		sc = c
	case *net.UnixConn:
		sc = c
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
