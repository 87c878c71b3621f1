/* frames.h: RESPB frames that need no table (specification, sections 3, 8, 9): headers, arguments, control frames.
 *
 * Owns which opcode may come from whom, and the frames that carry their length. */
#ifndef RESPB_FRAMES_H
#define RESPB_FRAMES_H

#define HEADER_LEN 4
#define LONG_HEADER_LEN 8

enum {
    CORE_LAST = 0x07FF,
    REPLY_FIRST = 0x8000,
    REPLY_LAST = 0x8FFF,
    MODULE = 0xF000,
    ARGV = 0xF001,
    EXTENDED_FIRST = 0xF002,  /* unknown frames from here on are answered with an error and passed over */
    IGNORABLE_FIRST = 0xFF00, /* and from here on they are ignored */
    CLOSE = 0xFF01,
    CANCEL = 0xFF02,
    WINDOW = 0xFF03,
    GOAWAY = 0xFF04,
    FRAGMENT = 0xFF10,
    PASSTHROUGH = 0xFFFF
};

#define FRAGMENT_BYTES_MAX 65536

/* The bytes of a text of `len` bytes at `at`, whose length stands at `field_at`. */
static step text_at(struct reader *r, size_t field_at, size_t at, size_t len) {
    if (len > r->limits->argument_bytes_max) {
        return bad(r, r->limits->unauthenticated ? RESPB_ERR_UNAUTHENTICATED_ARGUMENT : RESPB_ERR_ARGUMENT_TOO_LONG,
                   field_at);
    }
    if (len > r->limits->frame_bytes_max || at > r->limits->frame_bytes_max - len) {
        return bad(r, RESPB_ERR_FRAME_TOO_LONG, field_at);
    }
    return r->len - at < len ? need(r, at + len) : DONE;
}

/* A field of `len` bytes at `at`. */
INLINE step fixed_at(struct reader *r, size_t at, size_t len) {
    if (UNLIKELY(at + len > r->limits->frame_bytes_max)) return bad(r, RESPB_ERR_FRAME_TOO_LONG, at);
    return UNLIKELY(r->len < at + len) ? need(r, at + len) : DONE;
}

/* One more argument of a request; `at` is the field that brings it. */
static step count_argument(struct reader *r, respb_walk *walk, size_t at) {
    if (UNLIKELY(walk->arguments >= r->limits->arguments_max)) {
        return bad(r, r->limits->unauthenticated ? RESPB_ERR_UNAUTHENTICATED_ARGUMENTS : RESPB_ERR_TOO_MANY_ARGUMENTS, at);
    }
    walk->arguments++;
    return DONE;
}

/* `[total u32]` at `start`, then arguments of u32 length each; `named`: the first of them is the name. */
static step walk_arguments(struct reader *r, respb_walk *walk, size_t start, int named) {
    if (walk->at == 0) {
        uint64_t end;
        TRY(fixed_at(r, start, 4));
        end = (uint64_t)start + 4 + be32(r->in + start);
        if (end > r->limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, start);
        if (named && end == start + 4) return bad(r, RESPB_ERR_EMPTY_COMMAND, start);
        walk->end = (size_t)end;
        walk->at = start + 4;
        walk->arguments = !named;
    }
    while (walk->at < walk->end) {
        size_t at = walk->at, len;
        if (!has_room(r)) return NO_ROOM;
        if (walk->end - at < 4) return bad(r, RESPB_ERR_LENGTH_MISMATCH, at);
        TRY(fixed_at(r, at, 4));
        len = be32(r->in + at);
        if (len > walk->end - at - 4) return bad(r, RESPB_ERR_LENGTH_MISMATCH, at);
        TRY(text_at(r, at, at + 4, len));
        TRY(count_argument(r, walk, at));
        put_text(r, RESPB_BYTES, r->in + at + 4, len);
        walk->at = at + 4 + len;
    }
    return DONE;
}

/* A frame that carries its length, once all of it is there. */
static step long_frame(struct reader *r, respb_frame *frame) {
    uint32_t len;
    if (r->len < LONG_HEADER_LEN) return need(r, LONG_HEADER_LEN);
    len = be32(r->in + HEADER_LEN);
    if ((uint64_t)LONG_HEADER_LEN + len > r->limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, HEADER_LEN);
    frame->len = LONG_HEADER_LEN + len;
    return r->len < frame->len ? need(r, frame->len) : DONE;
}

/* The payload of a control frame, all of which is there. */
static step control(struct reader *r, respb_frame *frame) {
    const unsigned char *payload = r->in + LONG_HEADER_LEN;
    size_t len = frame->len - LONG_HEADER_LEN;
    frame->kind = RESPB_FRAME_IGNORED;
    switch (frame->opcode) {
    case CLOSE:
    case GOAWAY:
        if (len == 1 || (len == 0 && frame->opcode == GOAWAY)) return bad(r, RESPB_ERR_BAD_CONTROL, LONG_HEADER_LEN);
        frame->kind = frame->opcode == CLOSE ? RESPB_FRAME_CLOSE : RESPB_FRAME_GOAWAY;
        if (len >= 2) frame->number = be16(payload), payload += 2, len -= 2;
        put_text(r, RESPB_BYTES, payload, len);
        return DONE;
#ifndef RESPB_NO_CANCEL
    case CANCEL:
        frame->kind = RESPB_FRAME_CANCEL;
        break;
#endif
#ifndef RESPB_NO_FLOW
    case WINDOW:
        frame->kind = RESPB_FRAME_WINDOW;
        break;
    case FRAGMENT:
        if (len < 1 || len > FRAGMENT_BYTES_MAX + 1 || payload[0] > 1) return bad(r, RESPB_ERR_BAD_CONTROL, LONG_HEADER_LEN);
        frame->kind = RESPB_FRAME_FRAGMENT;
        frame->number = payload[0];
        put_text(r, RESPB_BYTES, payload + 1, len - 1);
        return DONE;
#endif
    default:
        return DONE;
    }
#if !defined(RESPB_NO_CANCEL) || !defined(RESPB_NO_FLOW)
    if (len != 4) return bad(r, RESPB_ERR_BAD_CONTROL, LONG_HEADER_LEN);
    frame->number = be32(payload);
    return DONE;
#endif
}

static void frame_of(const struct reader *r, respb_frame *frame) {
    uint32_t head = be32(r->in);
    memset(frame, 0, sizeof *frame);
    frame->data = (const char *)r->in;
    frame->channel = (uint16_t)head;
    frame->opcode = (uint16_t)(head >> 16);
    frame->command = RESPB_NO_COMMAND;
}

#endif
