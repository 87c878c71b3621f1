package e2e

// This file owns the tests with Redis's own tools as clients.

import (
	"os/exec"
	"strings"
	"testing"
)

// run runs one of Redis's own tools against the server, or skips.
func run(t *testing.T, tool, input string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("%s is not installed; Debian has it in redis-tools", tool)
	}
	host, port := start(t)
	cmd := exec.Command(path, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, out)
	}
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	input := "ping\nset k \"a b\\n\"\nget k\nget none\nhgetall h\nzscore z m\nlpush k 1\nnonsense\n"
	want := map[string]string{
		"-2": "PONG\nOK\n\"a b\\n\"\n(nil)\n1) \"a\"\n2) \"1\"\n3) \"b\"\n4) \"2\"\n\"1.5\"\n" +
			"(error) WRONGTYPE Operation against a key holding the wrong kind of value\n",
		"-3": "PONG\nOK\n\"a b\\n\"\n(nil)\n1# \"a\" => \"1\"\n2# \"b\" => \"2\"\n(double) 1.5\n" +
			"(error) WRONGTYPE Operation against a key holding the wrong kind of value\n",
	}
	for proto, want := range want {
		t.Run(proto, func(t *testing.T) {
			out := run(t, "redis-cli", input, proto, "--no-auth-warning", "-a", "secret", "--no-raw")
			out = strings.ReplaceAll(out, "\n\n", "\n")
			if !strings.HasPrefix(out, want) || !strings.Contains(out, "unknown command 'nonsense'") {
				t.Errorf("got\n%s\nwant\n%s", out, want)
			}
		})
	}
}

func TestRedisCLIPipe(t *testing.T) {
	const n = 20000
	out := run(t, "redis-cli", strings.Repeat("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", n), "--no-auth-warning", "-a", "secret", "--pipe")
	if !strings.Contains(out, "errors: 0, replies: 20000") {
		t.Error(out)
	}
}

func TestRedisBenchmark(t *testing.T) {
	out := run(t, "redis-benchmark", "", "-a", "secret", "-c", "20", "-P", "50", "-n", "50000", "-t", "ping_inline,ping_mbulk,set,get", "-q")
	for _, name := range []string{"PING_INLINE", "PING_MBULK", "SET", "GET"} {
		if !strings.Contains(out, name+":") {
			t.Errorf("no figure for %s in\n%s", name, out)
		}
	}
}
