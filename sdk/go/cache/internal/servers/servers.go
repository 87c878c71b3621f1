// Package servers starts the servers that the tests of a cache talk to: Debian's redis-server, alone and three as a cluster, and weft serve.
package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// startWait bounds how long a server may take to start. It is never a pause.
const startWait = 240 * time.Second

// stopWait bounds how long a frozen process may take to stop; the test that froze it then fails by itself.
const stopWait = 60 * time.Second

// Server is a running server, or several that are a cluster.
type Server struct {
	Name    string
	Addrs   []string
	Cluster bool
	procs   []*process
}

// process is one of them.
type process struct {
	path string
	args []string
	dir  string
	addr string
	cmd  *exec.Cmd
	// ended is closed when it has.
	ended chan struct{}
}

// All starts what there is: redis, a cluster of redis, and weft if WEFT_BIN names it.
func All(t testing.TB) []*Server {
	t.Helper()
	var all []*Server
	if s := Redis(t); s != nil {
		all = append(all, s, Cluster(t))
	}
	if s := Weft(t); s != nil {
		all = append(all, s)
	}
	if len(all) == 0 {
		t.Skip("neither redis-server is installed nor is WEFT_BIN set")
	}
	return all
}

// Redis starts redis-server, or returns nil where it is not installed.
func Redis(t testing.TB) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("redis-server is not installed; Debian has it in redis-server")
		return nil
	}
	return open(t, "redis", func(s *Server) error {
		port := ports(t, 1)[0]
		return s.start(t, path, port, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", port)
	})
}

// Weft starts weft serve, or returns nil where WEFT_BIN does not say what that is.
func Weft(t testing.TB) *Server {
	t.Helper()
	path := os.Getenv("WEFT_BIN")
	if path == "" {
		t.Log("WEFT_BIN is not set: not against weft serve")
		return nil
	}
	return open(t, "weft", func(s *Server) error {
		port := ports(t, 1)[0]
		return s.start(t, path, port, "serve", "--bind", "127.0.0.1", "--port", port)
	})
}

// nodeTimeoutMillis is how long nodes of a cluster believe in each other: longer than a machine that runs tests may stand still.
const nodeTimeoutMillis = "1800000"

// Cluster starts three redis-servers that share the slots.
func Cluster(t testing.TB) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("redis-server is not installed; Debian has it in redis-server")
		return nil
	}
	const nodes = 3
	var all []string
	s := open(t, "cluster", func(s *Server) error {
		s.Cluster = true
		all = ports(t, 2*nodes)
		for i := range nodes {
			if err := s.start(t, path, all[i], "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", all[i],
				"--cluster-enabled", "yes", "--cluster-port", all[nodes+i], "--cluster-node-timeout", nodeTimeoutMillis); err != nil {
				return err
			}
		}
		return nil
	})
	const slots = 16384
	for i, addr := range s.Addrs {
		from, to := i*slots/nodes, (i+1)*slots/nodes-1
		Command(t, addr, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(from), fmt.Sprint(to))
		Command(t, addr, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if i > 0 {
			host, port, _ := net.SplitHostPort(addr)
			Command(t, s.Addrs[0], "CLUSTER", "MEET", host, port, all[nodes+i])
		}
	}
	for _, addr := range s.Addrs {
		until(t, "the cluster", func() bool {
			info := Command(t, addr, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return s
}

// ports returns free ports. All are held until all are known, so that they differ.
func ports(t testing.TB, n int) []string {
	t.Helper()
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		all = append(all, port)
	}
	return all
}

// open starts what f starts. A port that was free may be taken by the time a server has it: then that ends, and others are tried.
func open(t testing.TB, name string, f func(s *Server) error) *Server {
	t.Helper()
	for tries := 5; ; tries-- {
		s := &Server{Name: name}
		err := f(s)
		if err == nil {
			return s
		}
		s.Kill()
		if tries == 1 {
			t.Fatal(err)
		}
	}
}

func (s *Server) start(t testing.TB, path, port string, args ...string) error {
	t.Helper()
	p := &process{path: path, args: args, dir: t.TempDir(), addr: "127.0.0.1:" + port}
	s.procs, s.Addrs = append(s.procs, p), append(s.Addrs, p.addr)
	t.Cleanup(p.kill)
	return p.run(t)
}

// run starts the process and waits until it listens. It is an error when it ends instead.
func (p *process) run(t testing.TB) error {
	t.Helper()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Dir = p.dir
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
	listens, ended := false, false
	until(t, p.path, func() bool {
		nc, err := net.DialTimeout("tcp", p.addr, startWait)
		if listens = err == nil; listens {
			_ = nc.Close()
		}
		select {
		case <-p.ended:
			ended = true
		default:
		}
		return listens || ended
	})
	if ended {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s has ended:\n%s", p.path, said)
	}
	return nil
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.cmd = nil
	}
}

// Kill ends the server without a word.
func (s *Server) Kill() {
	for _, p := range s.procs {
		p.kill()
	}
}

// KillNode ends one of several nodes.
func (s *Server) KillNode(i int) { s.procs[i].kill() }

// Restart starts it again at the same address, empty.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	for _, p := range s.procs {
		if err := p.run(t); err != nil {
			t.Fatal(err)
		}
	}
}

// Freeze stops the server's process, which keeps its connections, and Thaw lets it go on. When it returns, every thread has stopped.
func (s *Server) Freeze() {
	s.signal(syscall.SIGSTOP)
	// The signal is only sent by now: on a busy machine a thread may still serve for a while.
	deadline := time.Now().Add(stopWait)
	for _, p := range s.procs {
		for !hasStopped(p.cmd.Process.Pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

// hasStopped says whether all threads of a process have stopped; true also where the system does not tell.
func hasStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The state follows the name, which stands in brackets and may hold any.
		if end := strings.LastIndex(string(stat), ") "); end < 0 || !strings.HasPrefix(string(stat[end+2:]), "T") {
			return false
		}
	}
	return true
}

// Thaw is the opposite of Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	for _, p := range s.procs {
		_ = p.cmd.Process.Signal(sig)
	}
}

// Command sends a command to a server and returns its reply as text.
func Command(t testing.TB, addr string, words ...string) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := nc.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	var v resp.Value
	if err := resp.NewReader(nc).Read(&v); err != nil {
		t.Fatal(err)
	}
	if err := v.Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return string(v.Data)
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(startWait); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not start", what)
		}
	}
}
