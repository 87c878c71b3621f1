/* base.h: what every part of the library works with: bytes, a frame that is being read, a buffer that is being written.
 *
 * Owns no rule of the protocol. Everything in part/ is compiled inside respb.c and is static there. */
#ifndef RESPB_BASE_H
#define RESPB_BASE_H

#include <string.h>

#if defined(__GNUC__)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define COLD __attribute__((cold, noinline))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#else
#define UNLIKELY(condition) (condition)
#define COLD
#define INLINE static inline
#define NOINLINE
#endif

/* How a step of a decoder ends: done, more bytes, more room for values, or wrong bytes. */
typedef enum { DONE, NEED, NO_ROOM, BAD } step;

#define TRY(call)                        \
    do {                                 \
        step tried_ = (call);            \
        if (tried_ != DONE) return tried_; \
    } while (0)

/* A frame that is being read, and where its values go. */
struct reader {
    const unsigned char *in; /* its first byte */
    size_t len;              /* bytes that are there, of what follows it too */
    const respb_limits *limits;
    respb_value *next, *end;
    size_t need;       /* NEED: bytes that must be there */
    uint32_t error;    /* BAD: what is wrong, and where */
    size_t error_at;
};

static step need(struct reader *r, size_t bytes) {
    r->need = bytes;
    return NEED;
}

COLD static step bad(struct reader *r, uint32_t error, size_t at) {
    r->error = error;
    r->error_at = at;
    return BAD;
}

INLINE uint32_t be16(const unsigned char *at) { return (uint32_t)at[0] << 8 | at[1]; }

INLINE uint32_t be32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

INLINE uint64_t be64(const unsigned char *at) { return (uint64_t)be32(at) << 32 | be32(at + 4); }

/* The two's complement of bits; a cast would be the compiler's own choice. */
INLINE int64_t signed64(uint64_t bits) {
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Values that are handed out. There is room: every step asks for RESPB_VALUES_MIN places first. ---- */

INLINE int has_room(const struct reader *r) { return r->end - r->next >= RESPB_VALUES_MIN; }

INLINE void put_text(struct reader *r, unsigned kind, const void *data, size_t len) {
    respb_value *value = r->next++;
    value->value.data = (const char *)data;
    value->len = (uint32_t)len;
    value->kind = (uint8_t)kind;
    value->format[0] = value->format[1] = value->format[2] = 0;
}

INLINE void put_number(struct reader *r, unsigned kind, int64_t integer) {
    put_text(r, kind, NULL, 0);
    r->next[-1].value.integer = integer;
}

static void put_double(struct reader *r, uint64_t bits) {
    put_text(r, RESPB_DOUBLE, NULL, 0);
    memcpy(&r->next[-1].value.number, &bits, sizeof bits);
}

#if !defined(RESPB_NO_TYPED) || !defined(RESPB_NO_RESP)
/* ---- Straight code: whole frames of the commonest forms, in loops that keep everything in registers ---- */

/* Where it stands. */
struct cursor {
    const unsigned char *at, *end;
    respb_frame *frame, *frames_end;
    respb_value *value, *values_end;
    size_t index;       /* of `value` in the array */
    size_t visible_max; /* bytes of a frame that may be taken */
};

INLINE void straight_text(respb_value *value, const unsigned char *data, size_t len) {
    value->value.data = (const char *)data;
    value->len = (uint32_t)len;
    value->kind = RESPB_BYTES;
    value->format[0] = value->format[1] = value->format[2] = 0;
}
#endif

/* ---- A buffer of the caller: what does not fit is counted and not written. ---- */

struct out {
    char *data;
    size_t capacity, len;
};

/* Overwrites bytes that stand behind `at`. */
static void patch(struct out *out, size_t at, const void *bytes, size_t len) {
    if (at >= out->capacity || len == 0) return;
    if (len > out->capacity - at) len = out->capacity - at;
    memcpy(out->data + at, bytes, len);
}

static void append(struct out *out, const void *bytes, size_t len) {
    patch(out, out->len, bytes, len);
    out->len += len;
}

static void append8(struct out *out, unsigned byte) {
    unsigned char bytes = (unsigned char)byte;
    append(out, &bytes, 1);
}

static void store32(unsigned char *bytes, uint32_t number) {
    bytes[0] = (unsigned char)(number >> 24), bytes[1] = (unsigned char)(number >> 16);
    bytes[2] = (unsigned char)(number >> 8), bytes[3] = (unsigned char)number;
}

static void append16(struct out *out, unsigned number) {
    append8(out, number >> 8);
    append8(out, number & 0xFF);
}

static void append32(struct out *out, uint32_t number) {
    unsigned char bytes[4];
    store32(bytes, number);
    append(out, bytes, 4);
}

static void append64(struct out *out, uint64_t number) {
    append32(out, (uint32_t)(number >> 32));
    append32(out, (uint32_t)number);
}

static void patch32(struct out *out, size_t at, uint32_t number) {
    unsigned char bytes[4];
    store32(bytes, number);
    patch(out, at, bytes, 4);
}

/* Whether `len` bytes can be at `data`. */
static int is_there(const void *data, size_t len) { return len == 0 || (data != NULL && len <= PTRDIFF_MAX); }

static int out_of(struct out *out, void *buffer, size_t capacity) {
    out->data = (char *)buffer;
    out->capacity = capacity;
    out->len = 0;
    return is_there(buffer, capacity);
}

#endif
