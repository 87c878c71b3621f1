package differential

// This file owns the calls of the C library.

/*
#cgo CFLAGS: -I${SRCDIR}/../../../../clib
#include <stdlib.h>
#include <string.h>
#include "respb.h"

enum { FRAMES = 64, VALUES = 65536 };

typedef struct {
	respb_batch batch;
	respb_frame frames[FRAMES];
	respb_value values[VALUES];
	respb_request_decoder requests;
	respb_reply_decoder replies;
} session;

static session *session_new(void) { return calloc(1, sizeof(session)); }

static void session_reset(session *s) {
	memset(&s->batch, 0, sizeof s->batch);
	s->batch.frames = s->frames;
	s->batch.frames_capacity = FRAMES;
	s->batch.values = s->values;
	s->batch.values_capacity = VALUES;
}

static int session_decode(session *s, int replies, const void *data, size_t len) {
	session_reset(s);
	if (replies) {
		if (respb_reply_decoder_init(&s->replies, sizeof s->replies, RESPB_PROTOCOL_RESPB, NULL) != RESPB_OK) return -100;
		return respb_decode_replies(&s->replies, data, len, &s->batch);
	}
	if (respb_request_decoder_init(&s->requests, sizeof s->requests, RESPB_PROTOCOL_RESPB, NULL) != RESPB_OK) return -100;
	return respb_decode_requests(&s->requests, data, len, &s->batch);
}

static size_t encode(int form, uint16_t channel, size_t count, const char *data, const uint32_t *ends, void *buffer, size_t capacity) {
	respb_value *args = calloc(count ? count : 1, sizeof *args);
	uint32_t from = 0;
	for (size_t i = 0; i < count; i++) {
		args[i] = respb_bytes(data + from, ends[i] - from);
		from = ends[i];
	}
	size_t n = respb_encode_request(form, channel, NULL, args, count, buffer, capacity);
	free(args);
	return n;
}

// The union's members, which Go cannot name.
static const char *value_data(const respb_value *v) { return v->value.data; }
static int64_t value_integer(const respb_value *v) { return v->value.integer; }
static double value_number(const respb_value *v) { return v->value.number; }
*/
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// library is one user of the C library. It is not safe for several goroutines.
type library struct {
	s  *C.session
	in unsafe.Pointer
	n  int
}

func newLibrary() *library { return &library{s: C.session_new()} }

func (l *library) close() {
	C.free(unsafe.Pointer(l.s))
	C.free(l.in)
}

// decode shows the frames at the start of wire and how it ends.
func (l *library) decode(wire []byte, replies bool) string {
	if len(wire) > l.n || l.in == nil {
		C.free(l.in)
		l.n = 2*len(wire) + 64
		l.in = C.malloc(C.size_t(l.n))
	}
	if len(wire) > 0 {
		C.memcpy(l.in, unsafe.Pointer(&wire[0]), C.size_t(len(wire)))
	}
	kind := C.int(0)
	if replies {
		kind = 1
	}
	status := C.session_decode(l.s, kind, l.in, C.size_t(len(wire)))
	var b strings.Builder
	batch := &l.s.batch
	for i := range int(batch.frames_len) {
		f := &l.s.frames[i]
		writeFrame(&b, f, l.s.values[f.first:f.first+f.count])
	}
	switch status {
	case C.RESPB_INVALID:
		fmt.Fprintf(&b, "invalid %s at %d", C.GoString(C.respb_error_name(batch.error)), batch.error_offset)
	case C.RESPB_FULL:
		b.WriteString("full")
	case C.RESPB_OK, C.RESPB_INCOMPLETE:
		fmt.Fprintf(&b, "incomplete after %d", batch.consumed)
	default:
		fmt.Fprintf(&b, "status %d", status)
	}
	return b.String()
}

func writeFrame(b *strings.Builder, f *C.respb_frame, values []C.respb_value) {
	fmt.Fprintf(b, "%d bytes, channel %d", f.len, f.channel)
	switch f.kind {
	case C.RESPB_FRAME_CLOSE:
		fmt.Fprintf(b, " close %d", f.number)
	case C.RESPB_FRAME_GOAWAY:
		fmt.Fprintf(b, " goaway %d", f.number)
	case C.RESPB_FRAME_CANCEL:
		fmt.Fprintf(b, " cancel %d", f.number)
	case C.RESPB_FRAME_WINDOW:
		fmt.Fprintf(b, " window %d", f.number)
	case C.RESPB_FRAME_FRAGMENT:
		fmt.Fprintf(b, " fragment %t", f.number != 0)
	case C.RESPB_FRAME_UNKNOWN, C.RESPB_FRAME_IGNORED:
		fmt.Fprintf(b, " unknown %04x", f.opcode)
		b.WriteByte('\n')
		return
	case C.RESPB_FRAME_CORE, C.RESPB_FRAME_MODULE:
		fmt.Fprintf(b, " typed %04x options %d", f.opcode, f.options)
	case C.RESPB_FRAME_ARGV, C.RESPB_FRAME_PASSTHROUGH:
		b.WriteString(" arguments")
	case C.RESPB_FRAME_REPLY:
		b.WriteString(" reply")
	case C.RESPB_FRAME_PUSH:
		b.WriteString(" push")
	}
	for i := range values {
		v := &values[i]
		text := func() string {
			if v.len == 0 {
				return ""
			}
			return C.GoStringN(C.value_data(v), C.int(v.len))
		}
		switch v.kind {
		case C.RESPB_BYTES, C.RESPB_KEYWORD:
			fmt.Fprintf(b, " %q", text())
		case C.RESPB_INTEGER:
			fmt.Fprintf(b, " int %d", int64(C.value_integer(v)))
		case C.RESPB_DOUBLE:
			bits := math.Float64bits(float64(C.value_number(v)))
			if v := float64(C.value_number(v)); v != v {
				bits = 0
			}
			fmt.Fprintf(b, " double %016x", bits)
		case C.RESPB_SIMPLE:
			fmt.Fprintf(b, " simple %q", text())
		case C.RESPB_ERROR:
			fmt.Fprintf(b, " error %q", text())
		case C.RESPB_BIG_NUMBER:
			fmt.Fprintf(b, " big %q", text())
		case C.RESPB_VERBATIM:
			fmt.Fprintf(b, " verbatim %c%c%c %q", v.format[0], v.format[1], v.format[2], text())
		case C.RESPB_BOOLEAN:
			fmt.Fprintf(b, " bool %t", C.value_integer(v) != 0)
		case C.RESPB_NULL, C.RESPB_NULL_ARRAY:
			b.WriteString(" null")
		case C.RESPB_ARRAY:
			fmt.Fprintf(b, " array %d", int64(C.value_integer(v)))
		case C.RESPB_MAP:
			fmt.Fprintf(b, " map %d", int64(C.value_integer(v)))
		case C.RESPB_SET:
			fmt.Fprintf(b, " set %d", int64(C.value_integer(v)))
		case C.RESPB_PUSH:
			fmt.Fprintf(b, " push %d", int64(C.value_integer(v)))
		case C.RESPB_ATTRIBUTE:
			fmt.Fprintf(b, " attribute %d", int64(C.value_integer(v)))
		default:
			fmt.Fprintf(b, " kind %d", v.kind)
		}
	}
	b.WriteByte('\n')
}

// encode returns the frame of a command; fold folds case and the order of options.
func (l *library) encode(channel uint16, argv [][]byte, fold bool) []byte {
	var data []byte
	ends := make([]C.uint32_t, len(argv)+1)
	for i, arg := range argv {
		data = append(data, arg...)
		ends[i] = C.uint32_t(len(data))
	}
	form := C.int(C.RESPB_FORM_EXACT)
	if fold {
		form = C.RESPB_FORM_FOLD
	}
	cdata := C.CBytes(append(data, 0))
	defer C.free(cdata)
	capacity := C.size_t(len(data) + 16*len(argv) + 64)
	buffer := C.malloc(capacity)
	defer C.free(buffer)
	n := C.encode(form, C.uint16_t(channel), C.size_t(len(argv)), (*C.char)(cdata), &ends[0], buffer, capacity)
	if n > capacity {
		return nil
	}
	return C.GoBytes(buffer, C.int(n))
}
