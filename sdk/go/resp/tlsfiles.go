package resp

// This file owns certificates in files that are read anew while a server runs.

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
)

// TLSFiles is a certificate and its key in files. Reload reads them anew: connections that are there go on, later ones get what was read.
//
//	files, err := resp.LoadTLSFiles("server.crt", "server.key", "")
//	server.TLSConfig = files.Config()
//	...
//	err = files.Reload() // at SIGHUP, or when a file has changed
type TLSFiles struct {
	cert, key, clientCAs string
	current              atomic.Pointer[tls.Config] // what was read
}

// LoadTLSFiles reads a certificate chain and a key, both PEM. With clientCAs, a PEM file too, clients must show a certificate that one of those
// has signed.
func LoadTLSFiles(cert, key, clientCAs string) (*TLSFiles, error) {
	f := &TLSFiles{cert: cert, key: key, clientCAs: clientCAs}
	return f, f.Reload()
}

// Reload reads the files anew. After an error everything stays as it was.
func (f *TLSFiles) Reload() error {
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("resp: the certificate stays the one before: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	if f.clientCAs != "" {
		pem, err := os.ReadFile(f.clientCAs)
		if err != nil {
			return fmt.Errorf("resp: the certificates stay those before: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("resp: the certificates stay those before: %s has none", f.clientCAs)
		}
	}
	f.current.Store(config)
	return nil
}

// Config returns a configuration for Server.TLSConfig that follows Reload. What else is set on it before it serves holds: only the certificate, and
// the CAs of clients, come from the files.
func (f *TLSFiles) Config() *tls.Config {
	all := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.clientCAs != "" {
		all.ClientAuth = tls.RequireAndVerifyClientCert
	}
	all.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		read, now := f.current.Load(), all.Clone()
		now.Certificates, now.ClientCAs, now.GetConfigForClient = read.Certificates, read.ClientCAs, nil
		return now, nil
	}
	return all
}
