package main

// This file owns starting a server as a child, reading its CPU time and ending it.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is one process under load.
type server struct {
	name    string
	procs   int
	port    string
	command string
	cmd     *exec.Cmd
}

// startAll starts the servers that are compared; those that run are returned even when one does not.
func startAll(redis, kv string) (all []*server, err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{name: "redis", port: port, command: "redis-server --port <port> --appendonly no --save ''"}
	if err := s.start(redis, "--port", port, "--bind", "127.0.0.1", "--appendonly", "no", "--save", ""); err != nil {
		return nil, err
	}
	all = append(all, s)
	for procs := 1; procs <= 2; procs++ {
		if port, err = freePort(); err != nil {
			return all, err
		}
		s := &server{name: "weft resp", procs: procs, port: port, command: fmt.Sprintf("GOMAXPROCS=%d kv -addr 127.0.0.1:<port>", procs)}
		if err := s.start(kv, "-addr", "127.0.0.1:"+port); err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// freePort asks the kernel for a port that nobody uses now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// start runs the server and waits until it answers PING with PONG: the load generator counts replies and does not read them.
func (s *server) start(name string, args ...string) error {
	s.cmd = exec.Command(name, args...)
	s.cmd.Env = os.Environ()
	if s.procs > 0 {
		s.cmd.Env = append(s.cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", s.procs))
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w; install it or name another with a flag", name, err)
	}
	var err error
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if err = s.ping(); err == nil {
			return nil
		}
	}
	s.stop()
	return fmt.Errorf("%s does not answer: %w", name, err)
}

func (s *server) ping() error {
	nc, err := net.Dial("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "*1\r\n$4\r\nping\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("PING was answered with %q", line)
	}
	return err
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// cpu returns the time that the process's threads have been on a processor, to the nanosecond.
func (s *server) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("no /proc schedstat of %s: %v", s.name, err)
	}
	var sum time.Duration
	for _, name := range threads {
		b, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			return 0, fmt.Errorf("%s is not understood: %q", name, b)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// bench runs the load generator once.
func (s *server) bench(tool string, l load) (run, error) {
	before, err := s.cpu()
	if err != nil {
		return run{}, err
	}
	out, err := exec.Command(tool, "-h", "127.0.0.1", "-p", s.port, "-c", strconv.Itoa(l.Clients), "-P", strconv.Itoa(l.Pipeline),
		"-n", strconv.Itoa(l.Requests), "ping").CombinedOutput()
	if err != nil {
		return run{}, fmt.Errorf("%s: %w\n%s", tool, err, out)
	}
	after, err := s.cpu()
	if err != nil {
		return run{}, err
	}
	r := run{Server: s.name, GOMAXPROCS: s.procs, Load: l, CPUNanos: float64(after-before) / float64(l.Requests)}
	return r, r.parse(string(out))
}

// parse takes throughput and latencies from the summary that redis-benchmark 7 prints.
func (r *run) parse(out string) error {
	out = strings.ReplaceAll(out, "\r", "\n")
	_, summary, ok := strings.Cut(out, "throughput summary: ")
	if !ok {
		return fmt.Errorf("no summary from redis-benchmark; version 7 is needed:\n%s", out)
	}
	if _, err := fmt.Sscan(summary, &r.Throughput); err != nil {
		return err
	}
	_, table, ok := strings.Cut(summary, " max\n")
	if !ok {
		return fmt.Errorf("no latencies from redis-benchmark:\n%s", out)
	}
	_, err := fmt.Sscan(table, &r.Avg, &r.Min, &r.P50, &r.P95, &r.P99, &r.Max)
	return err
}
