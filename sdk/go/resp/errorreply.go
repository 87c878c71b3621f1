package resp

// This file owns the encoding of errors. An error's first word is what programs act on, so each keeps its own.

import "errors"

// WriteErrorString writes an error. A message whose first word is made of capital letters, as in "WRONGTYPE Operation against …", has
// its own prefix; any other gets "ERR " in front. Line breaks are written as blanks.
func (w *Writer) WriteErrorString(message string) error {
	prefix := "ERR "
	if hasPrefix(message) {
		prefix = ""
	}
	return writeErrorLine(w, prefix, message)
}

// WriteErrorBytes is WriteErrorString for bytes, which are not kept and not changed.
func (w *Writer) WriteErrorBytes(message []byte) error {
	prefix := "ERR "
	if hasPrefix(message) {
		prefix = ""
	}
	return writeErrorLine(w, prefix, message)
}

// WriteErrorPrefix writes an error with the prefix given, whatever the message starts with.
func (w *Writer) WriteErrorPrefix(prefix, message string) error {
	if prefix == "" {
		prefix = "ERR"
	}
	w.errors++
	if w.rb != nil {
		if message == "" {
			return binaryError(w, prefix, "")
		}
		return binaryError(w, prefix+" ", message)
	}
	if err := w.grow(len(prefix) + len(message) + 4); err != nil {
		return err
	}
	b := append(appendLine(append(w.buf, '-'), prefix), ' ')
	w.buf = append(appendLine(b, message), '\r', '\n')
	return w.wrote()
}

// WriteError writes err: an [*Error], wrapped or not, with its own prefix, anything else like WriteErrorString.
func (w *Writer) WriteError(err error) error {
	if typed, ok := err.(*Error); ok { // the common case, without what errors.As allocates
		return w.WriteErrorPrefix(typed.prefix(), typed.Message)
	}
	var typed *Error
	if errors.As(err, &typed) {
		return w.WriteErrorPrefix(typed.prefix(), typed.Message)
	}
	return w.WriteErrorString(err.Error())
}

// WriteBlobErrorString writes an error that may hold any bytes, line breaks too; RESP2 clients get a simple error. The prefix is
// found as WriteErrorString finds it.
func (w *Writer) WriteBlobErrorString(message string) error { return writeBlobError(w, message) }

// WriteBlobErrorBytes is WriteBlobErrorString for bytes, which are not kept.
func (w *Writer) WriteBlobErrorBytes(message []byte) error { return writeBlobError(w, message) }

func writeBlobError[T string | []byte](w *Writer, message T) error {
	prefix := "ERR "
	if hasPrefix(message) {
		prefix = ""
	}
	if w.resp2 || w.rb != nil {
		return writeErrorLine(w, prefix, message)
	}
	w.errors++
	return writeLong(w, '!', prefix, message)
}

func writeErrorLine[T string | []byte](w *Writer, prefix string, message T) error {
	w.errors++
	if w.rb != nil {
		return binaryError(w, prefix, message)
	}
	if err := w.grow(len(prefix) + len(message) + 3); err != nil {
		return err
	}
	b := append(append(w.buf, '-'), prefix...)
	w.buf = append(appendLine(b, message), '\r', '\n')
	return w.wrote()
}

// hasPrefix reports whether message starts with a word of at least two characters, a capital letter and then capitals, digits or
// underscores.
func hasPrefix[T string | []byte](message T) bool {
	i := 0
	for i < len(message) {
		c := message[i]
		if !(c >= 'A' && c <= 'Z' || i > 0 && (c == '_' || c >= '0' && c <= '9')) {
			break
		}
		i++
	}
	return i >= 2 && i < len(message) && message[i] == ' '
}
