// Package command makes commands of a cache's operations, for all transports that talk to a server, and knows what to do where there are
// no scripts.
package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weft-db/weft/sdk/go/cache"
)

// The scripts. KEYS[1] is the lease or the hash.
const (
	scriptFill = "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end " +
		"if ARGV[3]=='0' then redis.call('SET',KEYS[2],ARGV[2]) else redis.call('SET',KEYS[2],ARGV[2],'PX',ARGV[3]) end " +
		"redis.call('DEL',KEYS[1]) return 1"
	scriptRelease = "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end redis.call('DEL',KEYS[1]) return 1"
	scriptRenew   = "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end redis.call('PEXPIRE',KEYS[1],ARGV[2]) return 1"
	scriptHashSet = "redis.call('DEL',KEYS[1]) redis.call('HSET',KEYS[1],unpack(ARGV,2)) " +
		"if ARGV[1]~='0' then redis.call('PEXPIRE',KEYS[1],ARGV[1]) end return 1"
	scriptHashUpdate = "if redis.call('EXISTS',KEYS[1])==0 then return 0 end redis.call('HSET',KEYS[1],unpack(ARGV)) return 1"
)

// HashFieldsMax bounds the names and values of one hash: scripts unpack them on Lua's stack.
const HashFieldsMax = 4000

// Scripted reports whether an operation is a script.
func Scripted(k cache.OpKind) bool {
	switch k {
	case cache.OpFill, cache.OpRelease, cache.OpRenew, cache.OpHashSet, cache.OpHashUpdate:
		return true
	}
	return false
}

// ErrFields says that a hash has too many fields, or none.
var ErrFields = errors.New("cache: a hash needs 1 to 2000 fields")

// Check refuses what no server could do.
func Check(op *cache.Op) error {
	switch op.Kind {
	case cache.OpHashSet, cache.OpHashUpdate:
		if n := len(op.Fields); n == 0 || n%2 != 0 || n > HashFieldsMax {
			return ErrFields
		}
	case cache.OpHashGet:
		if len(op.Fields) > HashFieldsMax {
			return ErrFields
		}
	case cache.OpGet, cache.OpSet, cache.OpDelete, cache.OpAcquire, cache.OpFill, cache.OpRelease, cache.OpRenew:
	default:
		return errKind
	}
	return nil
}

// ErrReply says that a server answered something else than it was asked.
var ErrReply = errors.New("cache: the store's reply has not the form that it should have")

var errKind = errors.New("cache: no such operation")

var (
	wordGet, wordSet, wordDel    = []byte("GET"), []byte("SET"), []byte("DEL")
	wordNX, wordPX               = []byte("NX"), []byte("PX")
	wordEval, wordOne, wordTwo   = []byte("EVAL"), []byte("1"), []byte("2")
	wordMGet                     = []byte("MGET")
	wordHMGet, wordHGetAll       = []byte("HMGET"), []byte("HGETALL")
	wordHSet, wordPExpire        = []byte("HSET"), []byte("PEXPIRE")
	wordMulti, wordExec          = []byte("MULTI"), []byte("EXEC")
	wordWatch, wordUnwatch       = []byte("WATCH"), []byte("UNWATCH")
	wordTime                     = []byte("TIME")
	wordExists, wordZero         = []byte("EXISTS"), []byte("0")
	fill, release, renew         = []byte(scriptFill), []byte(scriptRelease), []byte(scriptRenew)
	scriptedHSet, scriptedUpdate = []byte(scriptHashSet), []byte(scriptHashUpdate)
)

// Builder makes arguments. It is used again and again: what it has made is void with the next Reset.
type Builder struct {
	args   [][]byte
	digits []byte
	last   time.Duration // that millis is
	millis []byte
}

// Reset forgets what was made.
func (b *Builder) Reset() { b.args, b.digits, b.last = b.args[:0], b.digits[:0], 0 }

// number returns a duration in milliseconds as text. Most of a batch are the same.
func (b *Builder) number(d time.Duration) []byte {
	if d <= 0 {
		return wordZero
	}
	if d == b.last {
		return b.millis
	}
	from := len(b.digits)
	b.digits = strconv.AppendInt(b.digits, max(d.Milliseconds(), 1), 10)
	b.last, b.millis = d, b.digits[from:len(b.digits):len(b.digits)]
	return b.millis
}

// Text is the keys, and the values to set, of a batch as strings, which share one piece of memory: one allocation instead of one for each.
type Text struct{ rest string }

// TextOf copies what the operations have lent; values only if they are asked for.
func TextOf(ops []cache.Op, values bool) Text {
	text, _ := TextIn(nil, ops, values)
	return text
}

// TextIn is TextOf in memory that is used again. The Text, and every piece of it, is void with the next.
func TextIn(room []byte, ops []cache.Op, values bool) (Text, []byte) {
	size := 0
	for i := range ops {
		size += len(ops[i].Key)
		if values && ops[i].Kind == cache.OpSet {
			size += len(ops[i].Value)
		}
	}
	room = slices.Grow(room[:0], size)
	for i := range ops {
		room = append(room, ops[i].Key...)
		if values && ops[i].Kind == cache.OpSet {
			room = append(room, ops[i].Value...)
		}
	}
	return Text{unsafe.String(unsafe.SliceData(room), len(room))}, room
}

// Cut takes the next piece off: of each operation, in their order, its key, and its value if that was asked for.
func (t *Text) Cut(length int) (piece string) {
	piece, t.rest = t.rest[:length], t.rest[length:]
	return piece
}

// Args returns the command that an operation is, with a script where it needs one.
func (b *Builder) Args(op *cache.Op) [][]byte {
	from := len(b.args)
	switch op.Kind {
	case cache.OpGet:
		b.args = append(b.args, wordGet, op.Key)
	case cache.OpSet:
		b.args = append(b.args, wordSet, op.Key, op.Value)
		if op.TTL > 0 {
			b.args = append(b.args, wordPX, b.number(op.TTL))
		}
	case cache.OpDelete:
		b.args = append(b.args, wordDel, op.Key)
		if op.Lease != nil {
			b.args = append(b.args, op.Lease)
		}
	case cache.OpAcquire:
		b.args = append(b.args, wordSet, op.Lease, op.Token, wordNX, wordPX, b.number(op.TTL))
	case cache.OpFill:
		b.args = append(b.args, wordEval, fill, wordTwo, op.Lease, op.Key, op.Token, op.Value, b.number(op.TTL))
	case cache.OpRelease:
		b.args = append(b.args, wordEval, release, wordOne, op.Lease, op.Token)
	case cache.OpRenew:
		b.args = append(b.args, wordEval, renew, wordOne, op.Lease, op.Token, b.number(op.TTL))
	case cache.OpHashSet:
		b.args = append(append(b.args, wordEval, scriptedHSet, wordOne, op.Key, b.number(op.TTL)), op.Fields...)
	case cache.OpHashUpdate:
		b.args = append(append(b.args, wordEval, scriptedUpdate, wordOne, op.Key), op.Fields...)
	case cache.OpHashGet:
		if len(op.Fields) == 0 {
			b.args = append(b.args, wordHGetAll, op.Key)
			break
		}
		b.args = append(append(b.args, wordHMGet, op.Key), op.Fields...)
	}
	return b.args[from:len(b.args):len(b.args)]
}

// Time is the command for the store's time.
func Time() [][]byte { return [][]byte{wordTime} }

// TimeOf reads the reply to that: seconds and microseconds.
func TimeOf(reply []string) (time.Time, error) {
	if len(reply) != 2 {
		return time.Time{}, ErrReply
	}
	seconds, err := strconv.ParseInt(reply[0], 10, 64)
	micros, err2 := strconv.ParseInt(reply[1], 10, 64)
	if err != nil || err2 != nil {
		return time.Time{}, ErrReply
	}
	return time.Unix(seconds, micros*1000), nil
}

// MGet returns the command that reads the keys of operations.
func (b *Builder) MGet(ops []cache.Op) [][]byte {
	from := len(b.args)
	b.args = append(slices.Grow(b.args, 1+len(ops)), wordMGet)
	for i := range ops {
		b.args = append(b.args, ops[i].Key)
	}
	return b.args[from:len(b.args):len(b.args)]
}

// Scripts remembers whether a server has scripts. The zero value asks.
type Scripts struct{ absence }

// Learn looks at the error of a script, and reports whether it says that there are none, or none for this user.
func (s *Scripts) Learn(err error) bool { return s.learn(err, "eval") }

// Transactions remembers whether a server, or what stands in front of it, has transactions of several keys. The zero
// value asks.
type Transactions struct{ absence }

// Learn looks at what a transaction was refused with, and reports whether it says that there are none, none for this
// user, or none of several keys because the server is a node of a cluster.
func (t *Transactions) Learn(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, start := range []string{"crossslot", "moved ", "ask "} {
		if strings.HasPrefix(text, start) {
			t.remember()
			return true
		}
	}
	return t.learn(err, "multi") || t.learn(err, "exec")
}

// absence remembers when a command was not there.
type absence struct{ at atomic.Int64 }

// askAgain is how long it is remembered that there are none: servers are replaced.
const askAgain = time.Minute

// Missing reports whether they are known not to be there.
func (a *absence) Missing() bool {
	at := a.at.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < askAgain
}

func (a *absence) learn(err error, name string) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	none := strings.Contains(text, "unknown command") || strings.Contains(text, "noperm")
	if !none || !strings.Contains(text, name) {
		return false
	}
	a.remember()
	return true
}

func (a *absence) remember() { a.at.Store(time.Now().UnixNano()) }
