package e2e

// This file owns the tests of respb against weft serve over TLS: with the certificate that the server makes for a try, and with certificates of
// clients, which name their users.

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// certificate returns one for name, signed by a, or by itself if a is nil, and as PEM.
func certificate(t *testing.T, name string, a *authority) (*authority, tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if a == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &authority{cert, key, public}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// overTLS is what a program does: a write, a read, a message, and a large value, which is many records.
func overTLS(ctx context.Context, t *testing.T, o respb.Options, user string) {
	t.Helper()
	c, err := respb.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.AclWhoami(ctx); err != nil || got != user {
		t.Errorf("%q, %v; want %q", got, err, user)
	}
	large := strings.Repeat("weft", 1<<18)
	if _, err := c.Set(ctx, "large", large); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(ctx, "large"); err != nil || got != large {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(large))
	}
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if got, err := ch.Echo(ctx, "on a channel"); err != nil || got != "on a channel" {
		t.Errorf("%q, %v", got, err)
	}
}

// eachWire calls f for each protocol that there is over TLS.
func eachWire(t *testing.T, f func(ctx context.Context, t *testing.T, p respb.Protocol)) {
	for _, p := range []respb.Protocol{respb.RESPB, respb.RESP3, respb.RESP2} {
		t.Run(p.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testWait)
			defer cancel()
			f(ctx, t, p)
		})
	}
}

func weftOrSkip(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("WEFT_BIN")
	if bin == "" {
		t.Skip("WEFT_BIN is not set")
	}
	return bin
}

// TestSelfSigned: the certificate that weft serve makes is taken when the client has been told of it, and by nobody else.
func TestSelfSigned(t *testing.T) {
	addr := startServer(t, weftOrSkip(t), "serve", "--tls-self-signed", "yes")
	first, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(first.ConnectionState().PeerCertificates[0])
	_ = first.Close()
	eachWire(t, func(ctx context.Context, t *testing.T, p respb.Protocol) {
		overTLS(ctx, t, respb.Options{Addr: addr, Protocol: p, TLSConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}, "default")
		if c, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: p, TLSConfig: &tls.Config{ServerName: "localhost"}}); err == nil {
			_ = c.Close()
			t.Error("a certificate that nobody has vouched for is taken")
		}
	})
}

// TestCertificatesOfClients: with one the client is who the certificate says, without one and with a stranger's it is told, not hung up on without
// a word.
func TestCertificatesOfClients(t *testing.T) {
	bin, dir := weftOrSkip(t), t.TempDir()
	ca, _, _ := certificate(t, "authority", nil)
	server, _, serverKey := certificate(t, "localhost", ca)
	_, app, _ := certificate(t, "app", ca)
	_, stranger, _ := certificate(t, "app", nil)
	for name, text := range map[string][]byte{"ca.crt": ca.pem, "server.crt": server.pem, "server.key": serverKey,
		"users.acl": []byte("user default on nopass ~* &* +@all\nuser app on >never-asked ~* &* +@all\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	addr := startServer(t, bin, "serve", "--tls-cert-file", file("server.crt"), "--tls-key-file", file("server.key"),
		"--tls-ca-cert-file", file("ca.crt"), "--tls-auth-clients", "yes", "--tls-auth-clients-user", "CN", "--aclfile", file("users.acl"))
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	eachWire(t, func(ctx context.Context, t *testing.T, p respb.Protocol) {
		o := respb.Options{Addr: addr, Protocol: p, TLSConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{app}}}
		overTLS(ctx, t, o, "app")
		for who, certs := range map[string][]tls.Certificate{"nobody": nil, "a stranger": {stranger}} {
			o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
			if certs != nil { // shown though the server does not ask for its authority
				o.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certs[0], nil }
			}
			c, err := respb.Dial(ctx, o)
			if err == nil {
				_ = c.Close()
				t.Fatalf("%s may connect", who)
			}
			if !strings.Contains(err.Error(), "certificate") {
				t.Errorf("%s is told %v; want a word about the certificate", who, err)
			}
		}
	})
}
