//go:build unix

package resp

// This file owns the reads and writes that do not wait. With them a connection that waits for its client holds no
// buffer, one that was not read from is noticed before anything blocks, and a server's loop saves the read
// that only finds out that there is nothing left.

import (
	"io"
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

// rawRead reads what is there. again means that nothing is.
func rawRead(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, err
		case n == 0:
			return 0, false, io.EOF
		}
		return n, false, nil
	}
}

// rawWrite writes what the socket takes at once; after a short write it takes no more for now.
func rawWrite(fd uintptr, b []byte) (n int, err error) {
	for {
		n, err = syscall.Write(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, nil
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}
