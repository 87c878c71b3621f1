package respb

// Owns: tests of the client against servers that are not plain: an older table, TLS. Does not own: the rest.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// TestWithoutTyped is scenario S12: a server that does not share the client's command table gets no typed frames.
func TestWithoutTyped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	opcodes := make(chan uint16, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		var b [4096]byte
		if n, _ := nc.Read(b[:]); n == 0 {
			return
		}
		_ = agree(nc)
		if n, _ := nc.Read(b[:]); n < 4 {
			return
		}
		opcodes <- uint16(b[0])<<8 | uint16(b[1])
		_, _ = nc.Write([]byte{0x80, 0x05, 0, 0})
	}()
	ctx := testContext(t)
	c := dial(t, l.Addr().String(), Options{Protocol: RESPB})
	if _, err := c.Get(ctx, "k"); err != ErrNil {
		t.Error(err)
	}
	if opcode := <-opcodes; opcode != frame.Argv {
		t.Errorf("a frame of opcode %04x", opcode)
	}
}

// TestClientOverTLS with both protocols.
func TestClientOverTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		addr := serve(t, &resp.Server{Handler: newStore().handler(),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}})
		c := dial(t, addr, Options{Protocol: p, TLSConfig: &tls.Config{RootCAs: roots}})
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 20 {
					word := strings.Repeat("x", 1000*i)
					if got, err := c.Echo(ctx, word); err != nil || got != word {
						t.Errorf("got %d of %d bytes, %v", len(got), len(word), err)
						return
					}
				}
			}()
		}
		all.Wait()
		if _, err := Dial(ctx, Options{Addr: addr, TLSConfig: &tls.Config{}}); err == nil {
			t.Error("a certificate that nobody signed was accepted")
		}
	})
}
