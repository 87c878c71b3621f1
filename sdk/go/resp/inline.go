package resp

// This file owns inline commands: a line of words, as a person types it into telnet or a health check sends it.

import "bytes"

// inline parses the line at pos. It returns true for a command; for a blank line it only moves pos; when the line end has
// not arrived it changes nothing. Words with escapes are decoded in place: the decoded form is never longer.
func (p *parser) inline() (bool, error) {
	limit, name := p.lim.InlineBytesMax, "InlineBytesMax"
	if p.unauth && p.lim.UnauthBytesMax < limit {
		limit, name = p.lim.UnauthBytesMax, "UnauthBytesMax"
	}
	unread := p.buf[p.pos+p.scanned : p.end]
	nl := bytes.IndexByte(unread, '\n')
	length := p.scanned + len(unread)
	if nl >= 0 {
		length = p.scanned + nl
	}
	text := length // without a CR at the end, which is none of the line's or may turn out to be
	if length > 0 && p.buf[p.pos+length-1] == '\r' {
		text--
	}
	if text > limit {
		return false, &LimitError{name, int64(limit), int64(text), "too big inline request"}
	}
	if nl < 0 {
		p.scanned = length
		return false, nil
	}
	line := p.buf[p.pos : p.pos+length]
	if zero := bytes.IndexByte(line, 0); zero >= 0 {
		line = line[:zero] // as in C, where the rest is never seen
	}
	words, ok := countWords(line)
	if !ok {
		return false, &ProtocolError{"unbalanced quotes in request"}
	}
	if words > p.lim.ArgsMax {
		return false, &LimitError{"ArgsMax", int64(p.lim.ArgsMax), int64(words), "too many words in an inline request"}
	}
	if p.unauth && words > p.lim.UnauthArgsMax {
		return false, &LimitError{"UnauthArgsMax", int64(p.lim.UnauthArgsMax), int64(words), "unauthenticated inline length"}
	}
	first := len(p.spans)
	p.splitWords(line, p.pos)
	for _, s := range p.spans[first:] {
		limit, name := p.lim.ArgBytesMax, "ArgBytesMax"
		if p.unauth && p.lim.UnauthBytesMax < limit {
			limit, name = p.lim.UnauthBytesMax, "UnauthBytesMax"
		}
		if n := s.end - s.start; n > limit {
			p.spans = p.spans[:first]
			return false, &LimitError{name, int64(limit), int64(n), "too long a word in an inline request"}
		}
	}
	if words > 0 {
		name := p.buf[p.spans[first].start:p.spans[first].end]
		if string(name) == "POST" || string(name) == "Host:" {
			p.spans = p.spans[:first]
			return false, &ProtocolError{"this is HTTP, and perhaps a browser made to send it; this port speaks RESP"}
		}
	}
	p.pos += length + 1
	p.scanned = 0
	return words > 0, nil
}

// splitWords appends the words of line, which starts at buf[base] and which countWords accepted.
func (p *parser) splitWords(line []byte, base int) {
	for i := skipBlanks(line, 0); i < len(line); i = skipBlanks(line, i) {
		start, out := i, i
		for i < len(line) && !blank(line[i]) {
			switch c := line[i]; c {
			case '"', '\'':
				i, out = unquote(line, i+1, out, c)
			default:
				line[out] = c
				i, out = i+1, out+1
			}
		}
		p.spans = append(p.spans, span{base + start, base + out})
	}
}

// unquote decodes a quoted part from line[i:] to line[out:] and returns the index behind the closing quote and
// the end of what it wrote.
func unquote(line []byte, i, out int, quote byte) (int, int) {
	for line[i] != quote {
		c := line[i]
		i++
		if c == '\\' && quote == '"' {
			c, i = escape(line, i)
		} else if c == '\\' && line[i] == '\'' {
			c = '\''
			i++
		}
		line[out] = c
		out++
	}
	return i + 1, out
}

// escape decodes what follows a backslash between double quotes.
func escape(line []byte, i int) (byte, int) {
	if line[i] == 'x' && i+2 < len(line) {
		high, ok1 := hexDigit(line[i+1])
		low, ok2 := hexDigit(line[i+2])
		if ok1 && ok2 {
			return high<<4 | low, i + 3
		}
	}
	switch c := line[i]; c {
	case 'n':
		return '\n', i + 1
	case 'r':
		return '\r', i + 1
	case 't':
		return '\t', i + 1
	case 'b':
		return '\b', i + 1
	case 'a':
		return '\a', i + 1
	default:
		return c, i + 1
	}
}

// countWords counts the words of line and reports whether each quote is closed and followed by a blank or the end. It
// changes nothing, so that a line with a fault can be looked at again.
func countWords(line []byte) (words int, ok bool) {
	for i := skipBlanks(line, 0); i < len(line); i = skipBlanks(line, i) {
		words++
		for i < len(line) && !blank(line[i]) {
			quote := line[i]
			i++
			if quote != '"' && quote != '\'' {
				continue
			}
			for i < len(line) && line[i] != quote {
				if line[i] == '\\' && (quote == '"' || i+1 < len(line) && line[i+1] == '\'') {
					i++
				}
				i++
			}
			if i >= len(line) {
				return 0, false
			}
			i++
			if i < len(line) && !blank(line[i]) {
				return 0, false
			}
		}
	}
	return words, true
}

func skipBlanks(line []byte, i int) int {
	for i < len(line) && blank(line[i]) {
		i++
	}
	return i
}

func blank(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
