package respb

// This file owns which commands are for whom: what many callers may share, what needs a Channel of its own, what the client does itself. And
// what of a Channel's state comes back after a break, and what is refused.

import (
	"errors"
	"strconv"

	"github.com/weft-db/weft/sdk/go/resp"
)

// effect is what a command does beyond its reply.
type effect uint8

const (
	effectNone    effect = iota
	effectKept           // changes what the Channel is; it is done again after a break
	effectWatch          // WATCH, MULTI: others' commands would become part of it; lost with the connection
	effectEnd            // EXEC, DISCARD, UNWATCH end that
	effectHolds          // blocks, or changes what comes as pushes: others on the Channel would wait or be told
	effectRefused        // the client could not follow the replies any more, or does it itself
)

// effects are those of all commands that have any; of containers by subcommand. XREAD and XREADGROUP hold only with BLOCK.
var effects = map[string]effect{
	"SELECT": effectKept, "AUTH": effectKept, "READONLY": effectKept, "READWRITE": effectKept, "CLIENT SETNAME": effectKept,
	"CLIENT TRACKING": effectKept, "CLIENT NO-EVICT": effectKept, "CLIENT NO-TOUCH": effectKept, "CLIENT CAPA": effectKept,
	"WATCH": effectWatch, "MULTI": effectWatch, "EXEC": effectEnd, "DISCARD": effectEnd, "UNWATCH": effectEnd,
	"BLPOP": effectHolds, "BRPOP": effectHolds, "BLMOVE": effectHolds, "BLMPOP": effectHolds, "BRPOPLPUSH": effectHolds, "BZPOPMIN": effectHolds,
	"BZPOPMAX": effectHolds, "BZMPOP": effectHolds, "WAIT": effectHolds, "WAITAOF": effectHolds, "ASKING": effectHolds, "CLIENT CACHING": effectHolds,
	"SUBSCRIBE": effectHolds, "PSUBSCRIBE": effectHolds, "SSUBSCRIBE": effectHolds, "UNSUBSCRIBE": effectHolds, "PUNSUBSCRIBE": effectHolds,
	"SUNSUBSCRIBE": effectHolds, "MONITOR": effectHolds, "SCRIPT DEBUG": effectHolds,
	"HELLO": effectRefused, "RESET": effectRefused, "QUIT": effectRefused, "CLIENT REPLY": effectRefused, "SYNC": effectRefused,
	"PSYNC": effectRefused, "REPLCONF": effectRefused,
}

// lengths has, for each first letter, the lengths of the names in effects: most commands are told by it that they have none.
var lengths = func() (all [32]uint32) {
	for name := range effects {
		for i := range name {
			if name[i] == ' ' {
				name = name[:i]
				break
			}
		}
		all[name[0]&31] |= 1 << len(name)
	}
	all['X'&31] |= 1<<len("XREAD") | 1<<len("XREADGROUP")
	return all
}()

// effectOf returns the effect of a command.
func effectOf[T string | []byte](args []T) effect {
	if len(args) == 0 || !mayAffect(args[0]) {
		return effectNone
	}
	name := args[0]
	var room [64]byte
	key := appendUpper(room[:0], name)
	if e, ok := effects[string(key)]; ok {
		if len(args) == 1 && string(key) == "HELLO" {
			return effectNone // it only tells
		}
		return e
	}
	if key[0] == 'X' {
		if blocksFor(args) != 0 {
			return effectHolds
		}
		return effectNone
	}
	if len(args) < 2 || len(args[1]) > 31 {
		return effectNone
	}
	return effects[string(appendUpper(append(key, ' '), args[1]))]
}

// mayAffect reports whether a command of that name may have an effect: most are told by its length that they have none.
func mayAffect[T string | []byte](name T) bool {
	return len(name) > 0 && len(name) <= 31 && lengths[name[0]&31]&(1<<len(name)) != 0
}

func appendUpper[T string | []byte](dst []byte, word T) []byte {
	for i := range len(word) {
		c := word[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// UseError says that a command is not for a Conn, or not for this client, and what to use instead; nothing was sent.
type UseError struct{ Command, Instead string }

func (e *UseError) Error() string { return "respb: " + e.Command + " " + e.Instead }

// errNoTracking refuses what RESP2 has no pushes for.
var errNoTracking = &UseError{"CLIENT TRACKING", "needs RESPB or RESP3, and this server speaks RESP2 only; without it nothing can be cached"}

// ErrStateLost says that the connection was renewed, and that WATCH or MULTI is lost with the one before: the transaction has to begin again. It
// is returned once, by the first command after that; nothing was sent. Who is on the same Channel gets it too when the context of a MULTI, WATCH or
// SELECT there ends before its answer: the Channel is opened anew then, since nobody knows whether that ran.
var ErrStateLost = errors.New("respb: the connection was renewed and WATCH or MULTI is lost with it; begin the transaction again")

// allow refuses a command of some effect where it does not belong.
func allow[T string | []byte](ch *Channel, la *lane, e effect, args []T) error {
	name := string(appendUpper(nil, args[0]))
	if len(args) > 1 && (name == "CLIENT" || name == "SCRIPT") {
		name += " " + string(appendUpper(nil, args[1]))
	}
	switch {
	case e == effectRefused:
		return &UseError{name, "would leave the client behind its replies or is its own; Close ends a Channel, ChannelOptions begin one"}
	case ch.shared:
		return &UseError{name, "changes or holds up what all users of a Conn share; use a Channel of your own, from Conn.Channel"}
	case name == "CLIENT TRACKING" && la.link.resp2:
		return errNoTracking
	case name == "MONITOR" && !la.link.binary:
		return &UseError{name, "is answered over RESP3 by what nothing tells from replies; it needs RESPB"}
	}
	return nil
}

// keepsTx reports whether the channel may go on on a lane: not if a transaction was begun on another.
func (ch *Channel) keepsTx(la *lane) bool {
	tx := ch.tx.Load()
	if tx == nil || tx == la {
		return true
	}
	ch.tx.CompareAndSwap(tx, nil)
	return false
}

// losesTx reports whether err has ended a transaction with its lane; the caller hears of it by that error.
func (ch *Channel) losesTx(la *lane, err error) bool {
	var lost *ConnError
	var closed *CloseError
	return (errors.As(err, &lost) || errors.As(err, &closed)) && ch.tx.CompareAndSwap(la, nil)
}

// note notes what a command that was answered has done to the channel.
func note[T string | []byte](ch *Channel, la *lane, e effect, args []T, reply *Value) {
	if reply.Err() != nil {
		if e == effectEnd {
			ch.tx.CompareAndSwap(la, nil) // EXECABORT
		}
		return
	}
	switch e {
	case effectWatch:
		ch.tx.Store(la)
	case effectEnd:
		ch.tx.CompareAndSwap(la, nil)
	case effectKept:
		if reply.Kind == resp.Status && string(reply.Data) == "QUEUED" {
			return // EXEC's reply does not say which command was whose: what a transaction changes is not kept
		}
		ch.watched.Lock()
		keep(&ch.opts, &ch.settings, args)
		pushes := ch.opts.Tracking != nil
		ch.watched.Unlock()
		if pushes {
			la.pin()
		}
	}
}

// keep makes a command's effect part of what the channel is.
func keep[T string | []byte](o *ChannelOptions, settings *[][]string, args []T) {
	words := make([]string, len(args))
	for i := range args {
		words[i] = string(args[i])
	}
	name := string(appendUpper(nil, args[0]))
	if name == "CLIENT" {
		name = string(appendUpper(nil, args[1]))
	}
	switch {
	case name == "SELECT" && len(words) == 2:
		o.DB, _ = strconv.Atoi(words[1])
	case name == "AUTH" && len(words) == 2:
		o.Username, o.Password = "", words[1]
	case name == "AUTH" && len(words) == 3:
		o.Username, o.Password = words[1], words[2]
	case name == "SETNAME" && len(words) == 3:
		o.Name = words[2]
	case name == "TRACKING" && len(words) >= 3:
		o.Tracking = nil
		if isWord(words[2], "ON") {
			o.Tracking = append([]string{}, words[3:]...)
		}
	case name == "READONLY" || name == "READWRITE":
		replaceSetting(settings, words, func(old []string) bool { return len(old) == 1 })
	default: // of CLIENT: the last of each counts
		replaceSetting(settings, words, func(old []string) bool { return len(old) > 1 && isWord(old[1], name) })
	}
}

func replaceSetting(settings *[][]string, words []string, same func(old []string) bool) {
	for i, old := range *settings {
		if same(old) {
			(*settings)[i] = words
			return
		}
	}
	*settings = append(*settings, words)
}
