package respb

// This file owns the rules for clients: the cases of conformance/clients, whose README says how they are run.

import (
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

func TestRulesForClients(t *testing.T) {
	var file struct {
		Cases []struct {
			ID, Wire, Then string
			Capabilities   uint32
		}
	}
	switch err := vectors.Read("conformance/clients/rules.json", &file); {
	case errors.Is(err, os.ErrNotExist):
		t.Skip("conformance/clients is not part of the module: ", err)
	case err != nil:
		t.Fatal(err)
	}
	run := 0
	for _, c := range file.Cases {
		// This client always announces that it takes FRAGMENT: one who has not is another client.
		if c.Capabilities == 0 && (c.ID == "client.fragment-unannounced" || c.ID == "client.fragment-unannounced-idle") {
			continue
		}
		run++
		good := t.Run(c.ID, func(t *testing.T) {
			wire, err := hex.DecodeString(c.Wire)
			if err != nil {
				t.Fatal(err)
			}
			ctx := testContext(t)
			p, conn := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
			first := goDo(ctx, conn.zero, "PING")
			p.expect("PING")
			if _, err := p.nc.Write(wire); err != nil {
				t.Fatal(err)
			}
			if c.Then == "goes on" {
				(<-first).is(t, "PONG")
				second := goDo(ctx, conn.zero, "PING")
				p.expect("PING")
				p.say(0, func(w *frame.ReplyWriter) { w.Simple([]byte("PONG")) })
				(<-second).is(t, "PONG")
				return
			}
			<-first // in a case it is answered before what is wrong
			for {
				r, err := p.read()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the connection goes on")
				}
				if err != nil {
					break // the client has gone
				}
				if r.opcode != frame.Argv || len(r.words) != 1 {
					t.Fatalf("the client sends %v", r)
				}
			}
			if _, err := conn.Do(ctx, "PING"); err == nil {
				t.Error("the connection goes on")
			}
		})
		if !good {
			return // each would wait as long
		}
	}
	if run != 31 {
		t.Errorf("%d cases", run)
	}
}
