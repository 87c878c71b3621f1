package resp

// This file owns the tests of reading commands.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// nextCases are requests: what they hold, or how the reading of them ends. They are the seeds of FuzzNext too.
var nextCases = []struct {
	name string
	wire string
	want [][]string
	err  string // "" means a clean end
}{
	{"nothing", "", nil, ""},
	{"one", "*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}}, ""},
	{"pipeline", "*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", [][]string{{"PING"}, {"GET", "k"}}, ""},
	{"empty argument", "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", [][]string{{"GET", ""}}, ""},
	{"binary argument", "*2\r\n$3\r\nGET\r\n$4\r\n\r\n\x00\xff\r\n", [][]string{{"GET", "\r\n\x00\xff"}}, ""},
	{"two digits", "*1\r\n$12\r\nabcdefghijkl\r\n", [][]string{{"abcdefghijkl"}}, ""},
	{"ten arguments", "*10\r\n" + strings.Repeat("$1\r\nx\r\n", 10), [][]string{strings.Split("xxxxxxxxxx", "")}, ""},
	{"empty commands are skipped", "*0\r\n*-1\r\n\r\n  \r\n\n*1\r\n$1\r\nx\r\n", [][]string{{"x"}}, ""},
	{"inline", "PING\r\n", [][]string{{"PING"}}, ""},
	{"inline with LF alone", "SET k v\n", [][]string{{"SET", "k", "v"}}, ""},
	{"inline with blanks", "  GET \t k  \r\nPING\r\n", [][]string{{"GET", "k"}, {"PING"}}, ""},
	{"inline quoted", `SET "a b" 'c d' ""` + "\r\n", [][]string{{"SET", "a b", "c d", ""}}, ""},
	{"inline escapes", `SET "\x41\n\r\t\b\a\"\\\q" 'it\'s\n'` + "\r\n", [][]string{{"SET", "A\n\r\t\b\a\"\\q", `it's\n`}}, ""},
	{"inline quote in a word", `SET a"b c"` + "\r\n", [][]string{{"SET", "ab c"}}, ""},
	{"mixed", "PING\r\n*1\r\n$1\r\nx\r\nPONG\r\n", [][]string{{"PING"}, {"x"}, {"PONG"}}, ""},
	{"open quote", "SET \"a\r\n", nil, "unbalanced quotes"},
	{"word after quote", "SET \"a\"b\r\n", nil, "unbalanced quotes"},
	{"escaped end", `SET "a\` + "\r\n", nil, "unbalanced quotes"},
	{"HTTP", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", nil, "this is HTTP"},
	{"no number", "*a\r\n", nil, "invalid multibulk length"},
	{"count with plus", "*+1\r\n$1\r\nx\r\n", nil, "invalid multibulk length"},
	{"count with zero", "*01\r\n$1\r\nx\r\n", nil, "invalid multibulk length"},
	{"minus zero", "*-0\r\n", nil, "invalid multibulk length"},
	{"no digits", "*\r\n", nil, "invalid multibulk length"},
	{"count too large", "*1048577\r\n", nil, "ArgsMax is 1048576, got 1048577"},
	{"count of ten digits", "*4294967297\r\n$1\r\nx\r\n", nil, "ArgsMax"},
	{"count beyond 64 bits", "*18446744073709551617\r\n", nil, "invalid multibulk length"},
	{"not a bulk string", "*1\r\n:1\r\n", nil, "expected '$', got ':'"},
	{"unprintable type", "*1\r\n\x01", nil, `expected '$', got '\x01'`},
	{"negative length", "*1\r\n$-1\r\n", nil, "invalid bulk length"},
	{"length with zero", "*1\r\n$04\r\nPING\r\n", nil, "invalid bulk length"},
	{"length too large", "*1\r\n$536870913\r\n", nil, "ArgBytesMax is 536870912, got 536870913"},
	{"length of ten digits", "*1\r\n$4294967300\r\nPING\r\n", nil, "ArgBytesMax"},
	{"length beyond 64 bits", "*1\r\n$18446744073709551620\r\nPING\r\n", nil, "invalid bulk length"},
	{"CR without LF", "*1\r\n$4\rxPING\r\n", nil, "invalid bulk length"},
	{"argument too long", "*1\r\n$4\r\nPINGx\r\n", nil, "does not end with CRLF"},
	{"fault after a command", "*1\r\n$1\r\nx\r\n*x\r\n", [][]string{{"x"}}, "invalid multibulk length"},
	{"cut in a header", "*1\r\n$4", nil, "unexpected EOF"},
	{"cut in an argument", "*1\r\n$4\r\nPI", nil, "unexpected EOF"},
	{"cut in a line", "PIN", nil, "unexpected EOF"},
	{"endless header", "*" + strings.Repeat("1", 64), nil, "too big mbulk count string"},
}

func TestNext(t *testing.T) {
	for _, c := range nextCases {
		for cut, reader := range cuts {
			t.Run(c.name+"/"+cut, func(t *testing.T) {
				conn := NewClientConn(&pipeConn{in: reader(strings.NewReader(c.wire))})
				got, err := readAll(conn)
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				checkEnd(t, err, c.err)
				if _, again := conn.Next(); c.err != "" && again == nil {
					t.Error("the stream went on after a fault")
				}
			})
		}
	}
}

func checkEnd(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != io.EOF {
		t.Errorf("ended with %v, want a clean end", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("ended with %v, want %q", err, want)
	}
}

// TestNextCutEverywhere reads a long mixed pipeline cut in two at every byte.
func TestNextCutEverywhere(t *testing.T) {
	var wire bytes.Buffer
	var want [][]string
	for i := range 30 {
		words := strings.Fields(strings.Repeat("word ", i%12+1))
		want = append(want, words)
		if i%5 == 4 {
			fmt.Fprintf(&wire, "%s\r\n", strings.Join(words, " "))
			continue
		}
		fmt.Fprintf(&wire, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&wire, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	for at := range wire.Len() {
		in := io.MultiReader(bytes.NewReader(wire.Bytes()[:at]), bytes.NewReader(wire.Bytes()[at:]))
		got, err := readAll(NewClientConn(&pipeConn{in: in}))
		if err != io.EOF || !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d: %v\ngot  %q\nwant %q", at, err, got, want)
		}
	}
}

// TestNextLimits reads at each limit and one past it.
func TestNextLimits(t *testing.T) {
	bulk := func(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	array := func(n, size int) string { return fmt.Sprintf("*%d\r\n", n) + strings.Repeat(bulk(size), n) }
	cases := []struct {
		limits   Limits
		stranger bool
		at, past string
		name     string
	}{
		{Limits{ArgsMax: 3}, false, array(3, 1), array(4, 1), "ArgsMax"},
		{Limits{ArgsMax: 12}, false, array(12, 1), array(13, 1), "ArgsMax"},
		{Limits{ArgsMax: 3}, false, "a b c\r\n", "a b c d\r\n", "ArgsMax"},
		{Limits{ArgBytesMax: 10}, false, array(1, 10), array(1, 11), "ArgBytesMax"},
		{Limits{CommandBytesMax: len(array(2, 100))}, false, array(2, 100), array(2, 101), "CommandBytesMax"},
		{Limits{CommandBytesMax: len(array(9, 1))}, false, array(9, 1), array(10, 1), "CommandBytesMax"},
		{Limits{InlineBytesMax: 8}, false, "12345678\n", "123456789\n", "InlineBytesMax"},
		{Limits{InlineBytesMax: 8}, false, "12345678\n", "123456789", "InlineBytesMax"},
		{Limits{}, true, array(DefaultUnauthArgsMax, 1), array(DefaultUnauthArgsMax+1, 1), "UnauthArgsMax"},
		{Limits{}, true, array(1, 16384), array(1, 16385), "UnauthBytesMax"},
		{Limits{}, true, strings.Repeat("a ", DefaultUnauthArgsMax) + "\r\n", strings.Repeat("a ", DefaultUnauthArgsMax+1) + "\r\n", "UnauthArgsMax"},
		{Limits{}, true, strings.Repeat("x", 16384) + "\n", strings.Repeat("x", 16385) + "\n", "UnauthBytesMax"},
	}
	for _, c := range cases {
		read := func(wire string) error {
			conn := NewClientConn(&pipeConn{in: strings.NewReader(wire)})
			conn.SetLimits(c.limits)
			conn.SetAuthenticated(!c.stranger)
			_, err := readAll(conn)
			return err
		}
		if err := read(c.at); err != io.EOF {
			t.Errorf("%s: at the limit: %v", c.name, err)
		}
		var limit *LimitError
		if err := read(c.past); !errors.As(err, &limit) || limit.Limit != c.name {
			t.Errorf("%s: past the limit: %v", c.name, err)
		}
	}
}

// TestAuthenticationLiftsLimits pipelines a command that only a known client may send right behind the one that makes it known.
func TestAuthenticationLiftsLimits(t *testing.T) {
	wire := "*1\r\n$4\r\nAUTH\r\n*11\r\n" + strings.Repeat("$1\r\nx\r\n", 11)
	conn := NewClientConn(&pipeConn{in: strings.NewReader(wire)})
	conn.SetAuthenticated(false)
	if args, err := conn.Next(); err != nil || string(args[0]) != "AUTH" {
		t.Fatal(args, err)
	}
	conn.SetAuthenticated(true)
	if args, err := conn.Next(); err != nil || len(args) != 11 {
		t.Fatal(args, err)
	}
}

// TestAppendDoesNotReachTheNextArgument: slices used to come without a capped capacity.
func TestAppendDoesNotReachTheNextArgument(t *testing.T) {
	conn := NewClientConn(&pipeConn{in: strings.NewReader("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n")})
	args, err := conn.Next()
	if err != nil {
		t.Fatal(err)
	}
	_ = append(args[0], "XXXXXXXXXXXX"...)
	if string(args[1]) != "b" || string(args[2]) != "c" {
		t.Errorf("append to one argument changed another: %q", args)
	}
}

// TestHeadersReserveNothing: a count or a length alone used to reserve gigabytes.
func TestHeadersReserveNothing(t *testing.T) {
	for _, wire := range []string{"*1048576\r\n", "*1\r\n$536870912\r\n", "*1\r\n$134217728\r\nxxxx"} {
		conn := NewClientConn(&pipeConn{in: strings.NewReader(wire)})
		if _, err := readAll(conn); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		if held := len(conn.in.buf) + 24*cap(conn.in.args) + 16*cap(conn.in.spans); held > 2*blockBytes {
			t.Errorf("%q made the server hold %d bytes", wire, held)
		}
	}
}

// TestMemoryFollowsBytes announces 64 MiB and sends 1 MiB: what is held must follow what was sent.
func TestMemoryFollowsBytes(t *testing.T) {
	const sent = 1 << 20
	wire := "*1\r\n$67108864\r\n" + strings.Repeat("x", sent)
	conn := NewClientConn(&pipeConn{in: strings.NewReader(wire)})
	if _, err := readAll(conn); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if len(conn.in.buf) > 4*sent {
		t.Errorf("%d bytes are held after %d were sent", len(conn.in.buf), sent)
	}
}

// TestBuffersShrink: after a large argument and after many arguments an idle connection is small again.
func TestBuffersShrink(t *testing.T) {
	wire := "*2\r\n$3\r\nSET\r\n$8388608\r\n" + strings.Repeat("x", 8<<20) + "\r\n" +
		"*100000\r\n" + strings.Repeat("$1\r\nx\r\n", 100000)
	small := strings.Repeat("*1\r\n$4\r\nPING\r\n", 1)
	in := []io.Reader{strings.NewReader(wire)}
	for range 2 * narrowReads {
		in = append(in, strings.NewReader(small))
	}
	conn := NewClientConn(&pipeConn{in: io.MultiReader(in...)})
	got, err := readAll(conn)
	if err != io.EOF || len(got) != 2+2*narrowReads || len(got[0][1]) != 8<<20 || len(got[1]) != 100000 {
		t.Fatal(len(got), err)
	}
	if len(conn.in.buf) > smallBytes || cap(conn.in.args) > keepArgs {
		t.Errorf("still held: %d bytes and %d arguments", len(conn.in.buf), cap(conn.in.args))
	}
}

// TestManyArgumentsByteByByte: decoding resumes at the argument where it stopped; starting over would take minutes here.
func TestManyArgumentsByteByByte(t *testing.T) {
	const n = 20000
	wire := fmt.Sprintf("*%d\r\n", n) + strings.Repeat("$1\r\nx\r\n", n)
	conn := NewClientConn(&pipeConn{in: cuts["byte by byte"](strings.NewReader(wire))})
	args, err := conn.Next()
	if err != nil || len(args) != n {
		t.Fatal(len(args), err)
	}
}

// TestBody streams an argument that is not allowed to be held, with every way of cutting.
func TestBody(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<13)
	set := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", len(big), big)
	other := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(big), big)
	for cut, reader := range cuts {
		t.Run(cut, func(t *testing.T) {
			conn := NewClientConn(&pipeConn{in: reader(strings.NewReader(set + set + other + "*1\r\n$4\r\nPING\r\n"))})
			conn.SetLimits(Limits{ArgBytesMax: len(big)})
			conn.SetStream(1024, func(name []byte) bool { return string(name) == "SET" })
			args, err := conn.Next()
			if err != nil || len(args) != 2 || conn.Body() == nil || conn.Body().Len() != len(big) {
				t.Fatalf("%q %v", args, err)
			}
			got, err := io.ReadAll(conn.Body())
			if err != nil || string(got) != big || string(args[1]) != "k" {
				t.Fatalf("%d bytes, %v, key %q", len(got), err, args[1])
			}
			if args, err = conn.Next(); err != nil || len(args) != 2 || conn.Body() == nil {
				t.Fatalf("%q %v", args, err)
			}
			// The second one's body is skipped.
			if args, err = conn.Next(); err != nil || string(args[0]) != "ECHO" || string(args[1]) != big || conn.Body() != nil {
				t.Fatalf("%.20q %v", args, err)
			}
			if args, err = conn.Next(); err != nil || string(args[0]) != "PING" {
				t.Fatalf("%.20q %v", args, err)
			}
		})
	}
}

// TestBodyFaults: a body that is cut, and one whose end is not where its length says.
func TestBodyFaults(t *testing.T) {
	for wire, want := range map[string]string{
		"*2\r\n$3\r\nSET\r\n$8\r\nabc":            "unexpected EOF",
		"*2\r\n$3\r\nSET\r\n$8\r\nabcdefgh":       "unexpected EOF",
		"*2\r\n$3\r\nSET\r\n$8\r\nabcdefghxy\r\n": "does not end with CRLF",
	} {
		conn := NewClientConn(&pipeConn{in: strings.NewReader(wire)})
		conn.SetStream(4, nil)
		if _, err := conn.Next(); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadAll(conn.Body())
		checkEnd(t, err, want)
		if _, err := conn.Next(); err == nil {
			t.Error("the stream went on after a fault")
		}
	}
}
