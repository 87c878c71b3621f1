/* respb.c: RESPB, RESP2 and RESP3 in C99: the whole library is this file; what respb.h promises is kept here.
 *
 * Owns limits, errors, the telling of protocols, and the loop over the frames of a batch. The parts that are included are the
 * codecs, a file for each direction and protocol; everything in them is static but the functions of respb.h. Needs the C
 * library for memcpy, strtod and their like, allocates nothing, keeps nothing. */
#include "respb.h"

#ifndef RESPB_VERSION
#define RESPB_VERSION "0.1.0"
#endif

#include "part/base.h"
#include "part/number.h"
#include "part/frames.h"
#include "part/replies.h"
#include "part/write.h"
#include "part/encode.h"
#ifndef RESPB_NO_TYPED
#include "part/table.h"
#include "part/walk.h"
#include "part/fit.h"
#endif
#ifndef RESPB_NO_RESP
#include "part/lines.h"
#include "part/resp_replies.h"
#include "part/resp_write.h"
#endif

const char *respb_version(void) { return RESPB_VERSION; }

uint32_t respb_abi_version(void) { return RESPB_ABI_VERSION; }

/* ---- Errors ---- */

#include "respb_errors.h"

#define ERRORS_LEN (sizeof ERRORS / sizeof *ERRORS)

const char *respb_error_name(uint32_t error) { return error < ERRORS_LEN ? ERRORS[error][0] : NULL; }

const char *respb_error_text(uint32_t error) { return error < ERRORS_LEN ? ERRORS[error][1] : NULL; }

/* ---- Limits ---- */

/* The largest frame: offsets are 32 bits, with room for a line end. */
#define FRAME_BYTES_MAX (UINT32_MAX - 16)

void respb_limits_default(respb_limits *limits) {
    static const respb_limits numbers = {INT32_MAX, 512u << 20, 1u << 30, 64 << 10, UINT32_MAX, RESPB_NESTING_MAX, 0, 0, 0};
    if (limits) *limits = numbers;
}

void respb_limits_unauthenticated(respb_limits *limits) {
    if (!limits) return;
    respb_limits_default(limits);
    limits->arguments_max = 16; /* a HELLO with all its options has 11 */
    limits->argument_bytes_max = limits->frame_bytes_max = limits->inline_bytes_max = 16384;
    limits->unauthenticated = 1;
}

static void limits_of(respb_limits *own, const respb_limits *given) {
    if (given) *own = *given;
    else respb_limits_default(own);
    if (own->frame_bytes_max > FRAME_BYTES_MAX) own->frame_bytes_max = FRAME_BYTES_MAX;
    if (own->inline_bytes_max > FRAME_BYTES_MAX) own->inline_bytes_max = FRAME_BYTES_MAX;
    if (own->nesting_max > RESPB_NESTING_MAX) own->nesting_max = RESPB_NESTING_MAX;
}

/* ---- Arguments ---- */

size_t respb_value_text(const respb_value *value, char *buffer, size_t capacity) {
    char number[DOUBLE_TEXT_MAX];
    const char *text;
    struct out out;
    size_t len;
    if (!value || !out_of(&out, buffer, capacity)) return 0;
#ifndef RESPB_NO_RESP
    if (value->kind == RESPB_QUOTED) {
        if (is_there(value->value.data, value->len)) unquote(&out, value->value.data, value->len);
        return out.len;
    }
#endif
    if (!are_arguments(value, 1, 0)) return 0;
    text = text_of(value, number, &len);
    append(&out, text, len);
    return out.len;
}

#ifndef RESPB_NO_RESP
/* A number as a word with quotes: an argument as any other. */
COLD static respb_status quoted_number(const respb_value *value, int64_t *integer, double *number) {
    char word[DOUBLE_TEXT_MAX];
    size_t len = respb_value_text(value, word, sizeof word);
    respb_value plain = respb_bytes(word, len <= sizeof word ? len : 0);
    return integer ? respb_value_integer(&plain, integer) : respb_value_double(&plain, number);
}
#endif

respb_status respb_value_integer(const respb_value *value, int64_t *number) {
    if (!value || !number) return RESPB_EINVAL;
#ifndef RESPB_NO_RESP
    if (value->kind == RESPB_QUOTED) return quoted_number(value, number, NULL);
#endif
    if (value->kind == RESPB_DOUBLE || !are_arguments(value, 1, 0)) return RESPB_INVALID;
    if (value->kind == RESPB_INTEGER) *number = value->value.integer;
    else if (!parse_integer(value->value.data, value->len, number)) return RESPB_INVALID;
    return RESPB_OK;
}

respb_status respb_value_double(const respb_value *value, double *number) {
    if (!value || !number) return RESPB_EINVAL;
#ifndef RESPB_NO_RESP
    if (value->kind == RESPB_QUOTED) return quoted_number(value, NULL, number);
#endif
    if (value->kind == RESPB_DOUBLE) *number = value->value.number;
    else if (value->kind == RESPB_INTEGER) *number = (double)value->value.integer;
#ifndef RESPB_NO_DOUBLE_TEXT
    else if (are_arguments(value, 1, 0) && parse_double(value->value.data, value->len, number)) return RESPB_OK;
#endif
    else return RESPB_INVALID;
    return RESPB_OK;
}

/* ---- The protocol of a connection ---- */

/* A line of letters: HTTP or an inline command. */
static int line_protocol(const char *line, size_t len) {
    size_t visible = len < (64 << 10) + 2 ? len : (64 << 10) + 2;
    const char *end = (const char *)memchr(line, '\n', visible);
    /* A line that is too long for both is left to the decoder to refuse. */
    if (!end) return visible < len ? RESPB_DETECT_RESP : RESPB_DETECT_MORE;
    if (end > line && end[-1] == '\r') end--;
    if (end - line < 9 || memcmp(end - 9, " HTTP/1.", 8) != 0 || !is_digit(end[-1])) return RESPB_DETECT_RESP;
    return RESPB_DETECT_HTTP;
}

int respb_detect(const void *data, size_t len, size_t *skip) {
    const char *at = (const char *)data;
    unsigned first;
    if (skip) *skip = 0;
    if (!is_there(data, len)) return RESPB_DETECT_UNKNOWN;
    while (len > 0 && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) at++, len--;
    if (skip && data) *skip = (size_t)(at - (const char *)data);
    if (len == 0) return RESPB_DETECT_MORE;
    first = (unsigned char)*at;
    if (first <= 0x07 || first >= 0xF0) return RESPB_DETECT_RESPB;
    if (first == '*') return RESPB_DETECT_RESP;
    if (first == 0x16) return RESPB_DETECT_TLS;
    if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) return line_protocol(at, len);
    return RESPB_DETECT_UNKNOWN;
}

/* ---- Batches ---- */

static int is_sound(const respb_batch *batch) {
    return batch && batch->frames && batch->frames_capacity > 0 && batch->values &&
           batch->values_capacity >= RESPB_VALUES_MIN && batch->values_capacity < UINT32_MAX &&
           batch->values_len <= batch->values_capacity && batch->partial <= batch->values_len;
}

size_t respb_batch_take(respb_batch *batch) {
    size_t taken;
    if (!batch || batch->partial > batch->values_len) return 0;
    taken = batch->values_len - batch->partial;
    if (batch->frames_len > 0) batch->frames_len = batch->taken = 0;
    batch->taken += taken;
    batch->values_len = batch->partial;
    return taken;
}

/* Drops whole frames; what is kept of the one that is not whole comes to the front. */
static void batch_begin(respb_batch *batch) {
    size_t kept = batch->values_len - batch->partial;
    if (batch->partial > 0 && kept > 0) memmove(batch->values, batch->values + batch->partial, kept * sizeof *batch->values);
    if (batch->frames_len > 0) batch->taken = 0;
    batch->values_len = kept;
    batch->partial = batch->frames_len = batch->consumed = batch->need = 0;
    batch->error = batch->error_offset = batch->error_channel = 0;
}

/* A frame that is not whole may be gone, and stand elsewhere, at the next call. Until then its values have offsets in place of
 * pointers, each of them made once, so that a frame in many pieces costs time in proportion to its bytes. The OK of a reply, which
 * stands in no frame, is marked by a kind of its own. */
#define KIND_OK 0xFF

static int is_in_frame(unsigned kind) {
    return kind == RESPB_BYTES || kind == RESPB_QUOTED || (kind >= RESPB_SIMPLE && kind <= RESPB_VERBATIM);
}

static void to_offsets(respb_value *values, size_t count, const char *base) {
    respb_value *value;
    for (value = values; value < values + count; value++) {
        if (!is_in_frame(value->kind)) continue;
        if (value->value.data == OK_TEXT) value->kind = KIND_OK;
        else value->value.integer = (int64_t)((uintptr_t)value->value.data - (uintptr_t)base);
    }
}

static void to_pointers(respb_value *values, size_t count, const char *base) {
    respb_value *value;
    for (value = values; value < values + count; value++) {
        if (value->kind == KIND_OK) value->kind = RESPB_SIMPLE, value->value.data = OK_TEXT;
        else if (is_in_frame(value->kind)) value->value.data = base + value->value.integer;
    }
}

/* The frame at `consumed` is wrong, now and at every call. */
COLD static respb_status fail(respb_kept *kept, respb_batch *batch, uint32_t error, size_t at, uint16_t channel) {
    kept->held = 0;
    batch->error = kept->error = error;
    batch->error_offset = kept->error_offset = (uint32_t)at;
    batch->error_channel = kept->error_channel = channel;
    return RESPB_INVALID;
}

#ifndef RESPB_NO_TYPED
/* What a stream of zero bytes begins with: a command on channel 0 whose first field is an empty key. Its bytes say so; its value may
 * have been taken. */
static int is_zero_stream(const respb_frame *frame) {
    const struct layout *layout;
    if (frame->kind != RESPB_FRAME_CORE || frame->channel != 0) return 0;
    layout = &LAYOUTS[frame->command];
    return layout->len > 0 && layout->len != ARGS_LAYOUT && FIELDS[layout->fields].key &&
           FIELDS[layout->fields].kind == STR16 && be16((const unsigned char *)frame->data + HEADER_LEN) == 0;
}
#endif

/* One frame of a decoder. */
typedef step (*frame_step)(void *decoder, struct reader *r, respb_frame *frame);

/* What a batch ends with: nothing more, or a frame that is not whole, in `r`, whose values begin at `first`. */
static respb_status batch_end(respb_kept *kept, respb_batch *batch, const char *data, struct reader *r, step outcome,
                              size_t resumed, size_t first, int inside) {
    const char *at = (const char *)r->in;
    size_t count = batch->frames_len, old = count > 0 ? 0 : resumed;
    batch->values_len = (size_t)(r->next - batch->values);
    batch->partial = first;
    batch->consumed = (size_t)(at - data);
    if (count > 0 || outcome == NO_ROOM) {
        to_pointers(batch->values, kept->relative, data);
        kept->relative = 0;
    }
#ifndef RESPB_NO_TYPED
    if (count > 0 && kept->first_frame) {
        kept->first_frame = 0;
        if (is_zero_stream(batch->frames)) {
            batch->frames_len = batch->values_len = batch->partial = batch->consumed = 0;
            return fail(kept, batch, RESPB_ERR_ZERO_STREAM, HEADER_LEN, 0);
        }
    }
#endif
    kept->held = 0;
    switch (outcome) {
    case NEED:
        to_offsets(r->next - (batch->values_len - first - old), batch->values_len - first - old, at);
        kept->relative = batch->values_len - first;
        kept->held = r->len;
        batch->need = r->need;
        return RESPB_INCOMPLETE;
    case NO_ROOM:
        kept->base = at;
        if (inside) kept->held = r->len;
        return RESPB_FULL;
    case BAD:
        batch->values_len = first;
        return fail(kept, batch, r->error, r->error_at,
                    kept->protocol == RESPB_PROTOCOL_RESPB && r->len >= HEADER_LEN ? (uint16_t)be16(r->in + 2) : 0);
    default: return RESPB_OK;
    }
}

/* Decodes a batch. `visible_max`: unless 0, frames may begin that straight code takes. */
static respb_status run(void *decoder, respb_kept *kept, frame_step decode, const respb_limits *limits, size_t visible_max,
                        const void *data, size_t len, respb_batch *batch) {
    const unsigned char *at = (const unsigned char *)data, *end;
    respb_frame *frame, *frames_end;
    struct reader r;
    size_t resumed, first = 0, taken;
    step outcome = DONE;
    int inside = 0; /* something of the frame at `at` was handed out */
    if (!is_sound(batch) || !is_there(data, len) || len < kept->held) return RESPB_EINVAL;
    batch_begin(batch);
    if (kept->error) return fail(kept, batch, kept->error, kept->error_offset, kept->error_channel);
    taken = batch->taken;
    resumed = batch->values_len;
    if (kept->relative > resumed) kept->relative = resumed;
    if (kept->relative < resumed) {
        to_offsets(batch->values + kept->relative, resumed - kept->relative, kept->base);
        kept->relative = resumed;
    }
    r.limits = limits;
    r.next = batch->values + resumed;
    r.end = batch->values + batch->values_capacity;
    r.need = r.error_at = r.error = 0;
    if (len == 0) at = (const unsigned char *)"";
    end = at + len;
    frame = batch->frames, frames_end = frame + batch->frames_capacity;
    for (;;) {
#if !defined(RESPB_NO_TYPED) || !defined(RESPB_NO_RESP)
        /* Between frames: nothing of this one was handed out. */
        if (visible_max > 0 && (frame > batch->frames || kept->held == 0)) {
            struct cursor cursor;
            cursor.at = at, cursor.end = end;
            cursor.frame = frame, cursor.frames_end = frames_end;
            cursor.value = r.next, cursor.values_end = r.end;
            cursor.index = first;
            cursor.visible_max = visible_max;
#ifndef RESPB_NO_RESP
            if (kept->protocol != RESPB_PROTOCOL_RESPB) straight_lines(&cursor);
#endif
#ifndef RESPB_NO_TYPED
            if (kept->protocol == RESPB_PROTOCOL_RESPB) straight(&cursor);
#endif
            at = cursor.at, frame = cursor.frame, r.next = cursor.value, first = cursor.index;
        }
#else
        (void)visible_max;
#endif
        r.in = at;
        r.len = (size_t)(end - at);
        if (at == end) break;
        inside = frame == batch->frames && kept->held > 0;
        outcome = NO_ROOM;
        if (frame == frames_end || !has_room(&r)) break;
        inside = 1;
        outcome = decode(decoder, &r, frame);
        if (outcome != DONE) break;
        frame->first = (uint32_t)first;
        frame->count = (uint32_t)((size_t)(r.next - batch->values) - first);
        at += frame->len;
        first = (size_t)(r.next - batch->values);
        frame++;
    }
    batch->frames_len = (size_t)(frame - batch->frames);
    batch->taken = taken;
    return batch_end(kept, batch, len ? (const char *)data : (const char *)at, &r, outcome, resumed, first, inside);
}

/* ---- Requests ---- */

/* One frame from a client. */
static step request_frame(respb_request_decoder *d, struct reader *r, respb_frame *frame) {
    if (r->len < HEADER_LEN) return need(r, HEADER_LEN);
    frame_of(r, frame);
    if (frame->opcode <= CORE_LAST || frame->opcode == MODULE) {
#ifndef RESPB_NO_TYPED
        TRY(typed_frame(r, &d->walk, frame));
#else
        return bad(r, RESPB_ERR_UNKNOWN_OPCODE, 0);
#endif
    } else if (frame->opcode == ARGV) {
        TRY(walk_arguments(r, &d->walk, HEADER_LEN, 1));
        frame->kind = RESPB_FRAME_ARGV;
        frame->len = (uint32_t)d->walk.end;
    } else if (frame->opcode == FRAGMENT || frame->opcode == GOAWAY ||
               (frame->opcode >= REPLY_FIRST && frame->opcode <= REPLY_LAST)) {
        return bad(r, RESPB_ERR_WRONG_DIRECTION, 0);
    } else if (frame->opcode < EXTENDED_FIRST) {
        return bad(r, RESPB_ERR_UNKNOWN_OPCODE, 0);
    } else {
        TRY(long_frame(r, frame));
        frame->kind = RESPB_FRAME_UNKNOWN;
#ifndef RESPB_NO_RESP
        if (frame->opcode == PASSTHROUGH) return passthrough(r, &d->lines, frame);
#endif
        if (frame->opcode >= IGNORABLE_FIRST && frame->opcode != PASSTHROUGH) return control(r, frame);
        return DONE;
    }
    /* Each field was within its limits; the frame as a whole must be, too. */
    return frame->len > r->limits->frame_bytes_max ? bad(r, RESPB_ERR_FRAME_TOO_LONG, 0) : DONE;
}

static void request_start(respb_request_decoder *d) {
    static const respb_walk start = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const respb_lines line_start = {0, 0, 0, 0};
    d->walk = start;
    d->lines = line_start;
}

static step request_step(void *decoder, struct reader *r, respb_frame *frame) {
    respb_request_decoder *d = (respb_request_decoder *)decoder;
    step outcome;
#ifndef RESPB_NO_RESP
    if (d->kept.protocol != RESPB_PROTOCOL_RESPB) outcome = lines_frame(r, &d->lines, frame);
    else
#endif
        outcome = request_frame(d, r, frame);
    if (outcome == DONE) request_start(d);
    return outcome;
}

/* Straight code runs where the limits are above everything that it reads. */
static void request_limits(respb_request_decoder *d, const respb_limits *limits) {
    respb_limits *own = &d->limits;
    limits_of(own, limits);
    d->visible_max = 0;
#ifndef RESPB_NO_TYPED
    if (d->kept.protocol == RESPB_PROTOCOL_RESPB && own->arguments_max >= STRAIGHT_ARGUMENTS_MAX) {
        d->visible_max = own->argument_bytes_max < own->frame_bytes_max ? own->argument_bytes_max : own->frame_bytes_max;
        if (d->visible_max < STRAIGHT_KEY_MAX) d->visible_max = 0;
    }
#endif
#ifndef RESPB_NO_RESP
    if (d->kept.protocol != RESPB_PROTOCOL_RESPB && own->arguments_max >= SHORT_MAX && own->argument_bytes_max >= SHORT_MAX &&
        own->frame_bytes_max >= SHORT_MAX * (SHORT_MAX + 16)) {
        d->visible_max = own->frame_bytes_max;
    }
#endif
    request_start(d);
}

respb_status respb_request_decoder_init(respb_request_decoder *decoder, size_t size, int protocol, const respb_limits *limits) {
    if (!decoder || size < sizeof *decoder || !is_protocol(protocol)) return RESPB_EINVAL;
    memset(&decoder->kept, 0, sizeof decoder->kept);
    decoder->kept.protocol = (uint8_t)protocol;
    decoder->kept.first_frame = limits && limits->first_frame && protocol == RESPB_PROTOCOL_RESPB;
    request_limits(decoder, limits);
    return RESPB_OK;
}

respb_status respb_request_decoder_limits(respb_request_decoder *decoder, const respb_limits *limits, respb_batch *batch) {
    if (!decoder) return RESPB_EINVAL;
    if (batch) {
        if (batch->partial > batch->values_len || (batch->taken > 0 && batch->frames_len == 0)) return RESPB_EINVAL;
        batch->values_len = batch->partial;
    }
    request_limits(decoder, limits);
    decoder->kept.held = decoder->kept.relative = 0;
    return RESPB_OK;
}

respb_status respb_decode_requests(respb_request_decoder *decoder, const void *data, size_t len, respb_batch *batch) {
    if (!decoder) return RESPB_EINVAL;
    return run(decoder, &decoder->kept, request_step, &decoder->limits, decoder->visible_max, data, len, batch);
}

/* ---- Replies ---- */

static void reply_start(respb_reply_decoder *d) {
    d->at = d->searched = 0;
    d->depth = d->owed = d->in_text = d->push = 0;
}

static step reply_step(void *decoder, struct reader *r, respb_frame *frame) {
    respb_reply_decoder *d = (respb_reply_decoder *)decoder;
    step outcome;
#ifndef RESPB_NO_RESP
    if (d->kept.protocol != RESPB_PROTOCOL_RESPB) outcome = resp_reply_frame(r, d, frame);
    else
#endif
        outcome = reply_frame(r, d, frame);
    if (outcome == DONE) reply_start(d);
    return outcome;
}

respb_status respb_reply_decoder_init(respb_reply_decoder *decoder, size_t size, int protocol, const respb_limits *limits) {
    if (!decoder || size < sizeof *decoder || !is_protocol(protocol)) return RESPB_EINVAL;
    memset(&decoder->kept, 0, sizeof decoder->kept);
    decoder->kept.protocol = (uint8_t)protocol;
    limits_of(&decoder->limits, limits);
    decoder->limits.unauthenticated = 0; /* a word for clients, not for servers */
    reply_start(decoder);
    return RESPB_OK;
}

respb_status respb_decode_replies(respb_reply_decoder *decoder, const void *data, size_t len, respb_batch *batch) {
    if (!decoder) return RESPB_EINVAL;
    return run(decoder, &decoder->kept, reply_step, &decoder->limits, 0, data, len, batch);
}
