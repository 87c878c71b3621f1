// Package redcon has a server on redcon and the same one on sdk/go/resp; docs/moving-from-redcon.md shows both.
package redcon

// This file owns the proof that both programs answer alike, and that the page shows them as they are.

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// begin builds one of the programs, starts it and returns where it serves.
func begin(t *testing.T, program string) (addr string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), program)
	if out, err := exec.Command("go", "build", "-o", bin, "./"+program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(bin, "-addr", addr)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(time.Minute); ; {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
			return addr
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatal("it has ended: ", err)
		case <-time.After(5 * time.Millisecond): // there is no event for a port that is being opened
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen")
		}
	}
}

func TestBothAnswerAlike(t *testing.T) {
	commands := []string{"PING", "SET k v", "GET k", "get none", "SET k", "GET", "KEYS *", "NONSENSE", "PUBLISH x y", "SUBSCRIBE news", "QUIT"}
	var answers [2][]string
	for i, program := range []string{"before", "after"} {
		nc, err := net.Dial("tcp", begin(t, program))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		r, w := resp.NewReader(nc), resp.NewWriter(nc)
		for _, command := range commands {
			if err := w.WriteArrayString(strings.Fields(command)); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			var v resp.Value
			if err := r.Read(&v); err != nil {
				t.Fatalf("%s: %s: %v", program, command, err)
			}
			// The texts of errors name commands in other letters, and this server says with which arguments.
			text, _, _ := strings.Cut(strings.ToLower(v.String()), ", with args")
			answers[i] = append(answers[i], text)
		}
	}
	for i, command := range commands {
		if answers[0][i] != answers[1][i] {
			t.Errorf("%s: before %q, after %q", command, answers[0][i], answers[1][i])
		}
	}
}

func TestPageShowsThePrograms(t *testing.T) {
	page, err := os.ReadFile("../../docs/moving-from-redcon.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"before", "after"} {
		text, err := os.ReadFile(filepath.Join(program, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if block := "```go\n" + string(text) + "```\n"; !bytes.Contains(page, []byte(block)) {
			t.Errorf("the page does not show %s/main.go as it is", program)
		}
	}
}
