package resp

// This file owns the encoding of values that hold other values. Each comes as a header, after which the caller writes the
// elements, and whole, for elements that are all bytes or all strings.

// WriteArrayHeader starts an array: write n values next.
func (w *Writer) WriteArrayHeader(n int) error { return w.writeHeader('*', n, n) }

// WriteMapHeader starts a map of n pairs: write n times a key and a value next. RESP2 clients get an array of 2n.
func (w *Writer) WriteMapHeader(n int) error {
	if w.resp2 {
		return w.writeHeader('*', 2*n, 2*n)
	}
	return w.writeHeader('%', n, 2*n)
}

// WriteSetHeader starts a set: write n values next. RESP2 clients get an array.
func (w *Writer) WriteSetHeader(n int) error {
	if w.resp2 {
		return w.writeHeader('*', n, n)
	}
	return w.writeHeader('~', n, n)
}

// WritePushHeader starts a push, data that answers no request: write n values next, the first being its kind. RESP2 clients get an
// array, which is how they have always received their subscriptions. A push must stand between replies, not inside one.
func (w *Writer) WritePushHeader(n int) error {
	if w.resp2 {
		return w.writeHeader('*', n, n)
	}
	return w.writeHeader('>', n, n)
}

// WriteAttributeHeader starts an attribute of n pairs: write n times a key and a value next, and then the value that it
// describes. RESP2 clients get only that value; the pairs may be written all the same.
func (w *Writer) WriteAttributeHeader(n int) error {
	if n < 0 {
		return errNegativeCount
	}
	if w.rb != nil {
		return w.binaryHeader('|', n)
	}
	if err := w.grow(headerRoom); err != nil {
		return err
	}
	if !w.resp2 {
		w.buf = appendHeader(w.buf, '|', n)
		return nil
	}
	if w.skip == 0 {
		w.mark = len(w.buf)
	}
	w.skip += 2 * n
	w.settle()
	return nil
}

// writeHeader writes the header of an aggregate that values more values belong to.
func (w *Writer) writeHeader(kind byte, n, values int) error {
	if n < 0 {
		return errNegativeCount
	}
	if w.rb != nil {
		return w.binaryHeader(kind, n)
	}
	b := w.buf
	if cap(b)-len(b) < headerRoom {
		if err := w.grow(headerRoom); err != nil {
			return err
		}
		b = w.buf
	}
	w.buf = appendHeader(b, kind, n)
	return w.wroteHeader(values)
}

// WriteArrayBytes writes a whole array of bulk strings. A nil element is an empty string. Nothing of values is kept.
func (w *Writer) WriteArrayBytes(values [][]byte) error { return writeAll(w, '*', len(values), values) }

// WriteArrayString is WriteArrayBytes for strings.
func (w *Writer) WriteArrayString(values []string) error {
	return writeAll(w, '*', len(values), values)
}

// WriteMapBytes writes a whole map of bulk strings from keys and values in turn, in the order given. Nothing of pairs is kept.
func (w *Writer) WriteMapBytes(pairs [][]byte) error { return writePairs(w, '%', pairs) }

// WriteMapString is WriteMapBytes for strings.
func (w *Writer) WriteMapString(pairs []string) error { return writePairs(w, '%', pairs) }

// WriteSetBytes writes a whole set of bulk strings. That they differ is the caller's care. Nothing of values is kept.
func (w *Writer) WriteSetBytes(values [][]byte) error {
	return writeAll(w, w.kind('~'), len(values), values)
}

// WriteSetString is WriteSetBytes for strings.
func (w *Writer) WriteSetString(values []string) error {
	return writeAll(w, w.kind('~'), len(values), values)
}

// WritePushBytes writes a whole push of bulk strings, the first being its kind. Nothing of values is kept.
func (w *Writer) WritePushBytes(values [][]byte) error {
	return writeAll(w, w.kind('>'), len(values), values)
}

// WritePushString is WritePushBytes for strings.
func (w *Writer) WritePushString(values []string) error {
	return writeAll(w, w.kind('>'), len(values), values)
}

// WriteAttributeBytes writes a whole attribute from keys and values in turn; the value that it describes must follow. It writes nothing
// for RESP2. Nothing of pairs is kept.
func (w *Writer) WriteAttributeBytes(pairs [][]byte) error { return writePairs(w, '|', pairs) }

// WriteAttributeString is WriteAttributeBytes for strings.
func (w *Writer) WriteAttributeString(pairs []string) error { return writePairs(w, '|', pairs) }

// kind is the type byte of an aggregate whose count is the same in RESP2.
func (w *Writer) kind(resp3 byte) byte {
	if w.resp2 {
		return '*'
	}
	return resp3
}

func writePairs[T string | []byte](w *Writer, kind byte, pairs []T) error {
	if len(pairs)%2 != 0 {
		return errOddPairs
	}
	if kind == '|' {
		if w.resp2 {
			return w.err
		}
		return appendAll(w, kind, len(pairs)/2, pairs)
	}
	if w.resp2 {
		return writeAll(w, '*', len(pairs), pairs)
	}
	return writeAll(w, kind, len(pairs)/2, pairs)
}

// writeAll writes an aggregate of bulk strings as one value.
func writeAll[T string | []byte](w *Writer, kind byte, n int, values []T) error {
	if err := appendAll(w, kind, n, values); err != nil {
		return err
	}
	return w.wrote()
}

func appendAll[T string | []byte](w *Writer, kind byte, n int, values []T) error {
	if w.rb != nil {
		return binaryAll(w, kind, n, values)
	}
	if err := w.grow(headerRoom); err != nil {
		return err
	}
	w.buf = appendHeader(w.buf, kind, n)
	for _, v := range values {
		if err := w.grow(len(v) + headerRoom); err != nil {
			return err
		}
		b := append(appendHeader(w.buf, '$', len(v)), v...)
		w.buf = append(b, '\r', '\n')
	}
	return nil
}
