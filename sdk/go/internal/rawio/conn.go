//go:build unix

// Package rawio reads from and writes to plain sockets without waiting and without what net.Conn does around it.
package rawio

// This file owns finding the descriptor under a connection.

import (
	"net"
	"syscall"
)

// ConnOf returns the descriptor of a plain TCP or Unix socket, and nil for anything wrapped around one.
func ConnOf(nc net.Conn) syscall.RawConn {
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
