package resp

// This file owns the tests of certificates in files.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate that signs itself, with a number, and its key.
func writeCertificate(t *testing.T, folder string, number int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "server.crt"), filepath.Join(folder, "server.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLSFilesReload: later connections get the new certificate, those that are there go on, and what cannot be read changes nothing.
func TestTLSFilesReload(t *testing.T) {
	folder := t.TempDir()
	cert, key := writeCertificate(t, folder, 1)
	files, err := LoadTLSFiles(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMux()
	m.HandleFunc("PING", 1, func(s *Session, r *Request) error { return s.WriteStatusString("PONG") })
	addr := startServer(t, &Server{Handler: m, TLSConfig: files.Config()})
	dial := func(want int64) *tls.Conn {
		t.Helper()
		nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := nc.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
			t.Errorf("certificate %d, want %d", got, want)
		}
		return nc
	}
	ping := func(nc *tls.Conn) {
		t.Helper()
		var got [7]byte
		_, _ = nc.Write([]byte("PING\r\n"))
		if _, err := nc.Read(got[:]); err != nil || string(got[:]) != "+PONG\r\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	first := dial(1)
	defer first.Close()
	writeCertificate(t, folder, 2)
	if err := files.Reload(); err != nil {
		t.Fatal(err)
	}
	second := dial(2)
	defer second.Close()
	ping(first)
	ping(second)
	if err := os.WriteFile(cert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.Reload(); err == nil || !strings.Contains(err.Error(), "stays the one before") {
		t.Errorf("nonsense: %v", err)
	}
	third := dial(2)
	defer third.Close()
	ping(third)
}

// TestTLSFilesOfClients: with clientCAs only who shows a certificate of theirs is served.
func TestTLSFilesOfClients(t *testing.T) {
	cert, key := writeCertificate(t, t.TempDir(), 1)
	files, err := LoadTLSFiles(cert, key, cert)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMux()
	m.HandleFunc("PING", 1, func(s *Session, r *Request) error { return s.WriteStatusString("PONG") })
	addr := startServer(t, &Server{Handler: m, TLSConfig: files.Config()})
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, certificates := range [][]tls.Certificate{nil, {own}} {
		nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, Certificates: certificates})
		if err == nil {
			_, _ = nc.Write([]byte("PING\r\n"))
			_, err = nc.Read(make([]byte, 7))
			_ = nc.Close()
		}
		if (err == nil) != (certificates != nil) {
			t.Errorf("with %d certificates: %v", len(certificates), err)
		}
	}
	if _, err := LoadTLSFiles(cert, key, key); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("a file without certificates: %v", err)
	}
}

// TestTLSFilesConfigIsTheCallers: what is set on it holds beside what comes from the files.
func TestTLSFilesConfigIsTheCallers(t *testing.T) {
	cert, key := writeCertificate(t, t.TempDir(), 1)
	files, err := LoadTLSFiles(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	config := files.Config()
	config.MinVersion, config.NextProtos = tls.VersionTLS13, []string{"resp"}
	addr := startServer(t, &Server{Handler: echoMux(), TLSConfig: config, Logger: quietLogger()})
	if nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		_ = nc.Close()
		t.Error("TLS 1.2 was served")
	}
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"resp"}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := nc.ConnectionState().NegotiatedProtocol; got != "resp" {
		t.Errorf("the protocol is %q", got)
	}
}
