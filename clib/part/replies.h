/* replies.h: decoding RESPB replies and what else a server sends (specification, section 5).
 *
 * Owns the encodings of values, as frames and as elements, and the count of aggregates that are open, which RESP uses too.
 * Resumes at the value where it stopped. */
#ifndef RESPB_REPLIES_H
#define RESPB_REPLIES_H

/* Types: reply opcodes are 0x8000 | type, the tags of elements the type alone. */
enum {
    TYPE_OK = 0x00,
    TYPE_ERROR = 0x01,
    TYPE_INTEGER = 0x02,
    TYPE_BULK = 0x03,
    TYPE_ARRAY = 0x04,
    TYPE_NULL = 0x05,
    TYPE_BOOLEAN = 0x06,
    TYPE_DOUBLE = 0x07,
    TYPE_MAP = 0x08,
    TYPE_SET = 0x09,
    TYPE_PUSH = 0x0A,
    TYPE_SIMPLE = 0x0B,
    TYPE_BIG_NUMBER = 0x0C,
    TYPE_VERBATIM = 0x0D,
    TYPE_ATTRIBUTE = 0x0E,
    TYPE_LONG_ERROR = 0x0F,
    TYPE_INTEGER32 = 0x10,
    SMALL_INTEGER = 0x81, /* high bytes of opcodes whose low byte is the number or the length */
    SHORT_BULK = 0x82,
    SHORT_SIMPLE = 0x83,
    TAG_INTEGER = 0x40, /* -1; up to 62 at 0x7F */
    TAG_BULK = 0x80     /* and the length */
};

/* Flags of a level. */
enum { LEVEL_ATTRIBUTE = 1, LEVEL_STREAMED_MAP = 2, LEVEL_ODD = 4 };

/* Elements of a level whose number is known at its end. */
#define STREAMED UINT64_MAX

static const char OK_TEXT[] = "OK";

static int is_aggregate(unsigned kind) { return kind >= RESPB_ARRAY && kind <= RESPB_ATTRIBUTE; }

static int is_pairs(unsigned kind) { return kind == RESPB_MAP || kind == RESPB_ATTRIBUTE; }

/* A value is complete; DONE when the reply is, too, and NEED, with nothing asked for, when it goes on. */
static step completed(respb_reply_decoder *d) {
    d->owed = 0;
    while (d->depth > 0) {
        unsigned top = d->depth - 1u;
        if (d->left[top] == STREAMED) {
            if (d->levels[top] & LEVEL_STREAMED_MAP) d->levels[top] ^= LEVEL_ODD;
            return NEED;
        }
        if (--d->left[top] > 0) return NEED;
        d->depth--;
        if (d->levels[top] & LEVEL_ATTRIBUTE) {
            d->owed = 1;
            return NEED;
        }
    }
    return DONE;
}

/* Opens an aggregate of `count` elements or pairs, or STREAMED; as `completed`. It stands at `at`. */
static step opened(struct reader *r, respb_reply_decoder *d, unsigned kind, uint64_t count, size_t at) {
    uint64_t left = count == STREAMED ? STREAMED : count << is_pairs(kind);
    if (kind == RESPB_PUSH && d->depth > 0) return bad(r, RESPB_ERR_MISPLACED, at);
    if (count != STREAMED && count > r->limits->elements_max) return bad(r, RESPB_ERR_TOO_MANY_ELEMENTS, at);
    if (d->depth >= r->limits->nesting_max) return bad(r, RESPB_ERR_TOO_DEEP, at);
    put_number(r, kind, count == STREAMED ? -1 : (int64_t)count);
    d->push |= kind == RESPB_PUSH;
    d->owed = kind == RESPB_ATTRIBUTE && left == 0;
    if (left == 0) return d->owed ? NEED : completed(d);
    d->left[d->depth] = left;
    d->levels[d->depth++] = (uint8_t)((kind == RESPB_ATTRIBUTE ? LEVEL_ATTRIBUTE : 0) |
                                      (kind == RESPB_MAP && count == STREAMED ? LEVEL_STREAMED_MAP : 0));
    return NEED;
}

/* `more` is NEED without a number: the reply goes on. */
#define GOES_ON(r, more) ((more) == NEED ? need((r), 0) : (more))

/* A text behind a length of `width` bytes at `d->at`. */
static step sized(struct reader *r, respb_reply_decoder *d, unsigned kind, size_t at, size_t width) {
    size_t start = at + width, len;
    TRY(fixed_at(r, at, width));
    len = width == 2 ? be16(r->in + at) : be32(r->in + at);
    TRY(text_at(r, at, start, len));
    if (kind == RESPB_BIG_NUMBER && !is_big((const char *)r->in + start, len)) return bad(r, RESPB_ERR_BAD_NUMBER, start);
    put_text(r, kind, r->in + start, len);
    d->at = start + len;
    return DONE;
}

/* A value of a type whose payload begins at `at`; its tag or opcode stands at `tag_at`. */
static step value_of(struct reader *r, respb_reply_decoder *d, unsigned type, size_t at, size_t tag_at) {
    static const unsigned char kinds[] = {RESPB_MAP, RESPB_SET, RESPB_PUSH};
    unsigned kind = RESPB_ARRAY;
    step more;
    switch (type) {
    case TYPE_OK: put_text(r, RESPB_SIMPLE, OK_TEXT, 2), d->at = at; break;
    case TYPE_NULL: put_number(r, RESPB_NULL, 0), d->at = at; break;
    case TYPE_INTEGER:
        TRY(fixed_at(r, at, 8));
        put_number(r, RESPB_INTEGER, signed64(be64(r->in + at)));
        d->at = at + 8;
        break;
    case TYPE_INTEGER32:
        TRY(fixed_at(r, at, 4));
        put_number(r, RESPB_INTEGER, (int64_t)(be32(r->in + at) ^ 0x80000000u) - (int64_t)0x80000000u);
        d->at = at + 4;
        break;
    case TYPE_DOUBLE:
        TRY(fixed_at(r, at, 8));
        put_double(r, be64(r->in + at));
        d->at = at + 8;
        break;
    case TYPE_BOOLEAN:
        TRY(fixed_at(r, at, 1));
        if (r->in[at] > 1) return bad(r, RESPB_ERR_BAD_BOOL, at);
        put_number(r, RESPB_BOOLEAN, r->in[at]);
        d->at = at + 1;
        break;
    case TYPE_ERROR: TRY(sized(r, d, RESPB_ERROR, at, 2)); break;
    case TYPE_SIMPLE: TRY(sized(r, d, RESPB_SIMPLE, at, 2)); break;
    case TYPE_BULK: TRY(sized(r, d, RESPB_BYTES, at, 4)); break;
    case TYPE_LONG_ERROR: TRY(sized(r, d, RESPB_ERROR, at, 4)); break;
    case TYPE_BIG_NUMBER: TRY(sized(r, d, RESPB_BIG_NUMBER, at, 4)); break;
    case TYPE_VERBATIM:
        TRY(fixed_at(r, at, 3));
        TRY(sized(r, d, RESPB_VERBATIM, at + 3, 4));
        memcpy(r->next[-1].format, r->in + at, 3);
        break;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_SET:
    case TYPE_PUSH:
    case TYPE_ATTRIBUTE:
        TRY(fixed_at(r, at, 4));
        /* A push inside an attribute that is the frame itself would make the frame two things at once. */
        if (type == TYPE_PUSH && tag_at != 0) return bad(r, RESPB_ERR_MISPLACED, tag_at);
        if (type == TYPE_ATTRIBUTE) kind = RESPB_ATTRIBUTE;
        else if (type != TYPE_ARRAY) kind = kinds[type - TYPE_MAP];
        more = opened(r, d, kind, be32(r->in + at), tag_at);
        if (more != BAD) d->at = at + 4;
        return GOES_ON(r, more);
    default: return bad(r, tag_at ? RESPB_ERR_UNKNOWN_TAG : RESPB_ERR_UNKNOWN_OPCODE, tag_at);
    }
    more = completed(d);
    return GOES_ON(r, more);
}

static step element(struct reader *r, respb_reply_decoder *d) {
    size_t at = d->at;
    unsigned tag;
    step more;
    TRY(fixed_at(r, at, 1));
    tag = r->in[at];
    if (tag < 0x20) return value_of(r, d, tag, at + 1, at);
    if (tag < TAG_INTEGER) return bad(r, RESPB_ERR_UNKNOWN_TAG, at);
    if (tag < TAG_BULK) {
        put_number(r, RESPB_INTEGER, (int64_t)tag - TAG_INTEGER - 1);
        d->at = at + 1;
    } else {
        TRY(text_at(r, at, at + 1, tag & 0x7F));
        put_text(r, RESPB_BYTES, r->in + at + 1, tag & 0x7F);
        d->at = at + 1 + (tag & 0x7F);
    }
    more = completed(d);
    return GOES_ON(r, more);
}

/* The value of the header. */
static step top(struct reader *r, respb_reply_decoder *d) {
    unsigned high = r->in[0], low = r->in[1];
    switch (high) {
    case 0x80: return value_of(r, d, low, HEADER_LEN, 0);
    case SMALL_INTEGER: put_number(r, RESPB_INTEGER, low), d->at = HEADER_LEN; return DONE;
    case SHORT_BULK:
    case SHORT_SIMPLE:
        TRY(text_at(r, 0, HEADER_LEN, low));
        put_text(r, high == SHORT_BULK ? RESPB_BYTES : RESPB_SIMPLE, r->in + HEADER_LEN, low);
        d->at = HEADER_LEN + low;
        return DONE;
    default: return bad(r, RESPB_ERR_UNKNOWN_OPCODE, 0);
    }
}

/* One frame from a server. */
static step reply_frame(struct reader *r, respb_reply_decoder *d, respb_frame *frame) {
    step outcome = NEED;
    if (r->len < HEADER_LEN) return need(r, HEADER_LEN);
    frame_of(r, frame);
    if (frame->opcode < REPLY_FIRST || frame->opcode > REPLY_LAST) {
        switch (frame->opcode) {
        case MODULE:
        case ARGV:
        case PASSTHROUGH:
        case CANCEL:
        case WINDOW: return bad(r, RESPB_ERR_WRONG_DIRECTION, 0);
        default: break;
        }
        if (frame->opcode <= CORE_LAST) return bad(r, RESPB_ERR_WRONG_DIRECTION, 0);
        if (frame->opcode < EXTENDED_FIRST) return bad(r, RESPB_ERR_UNKNOWN_OPCODE, 0);
#ifdef RESPB_NO_FLOW
        /* Passing over a slice would lose a reply. */
        if (frame->opcode == FRAGMENT) return bad(r, RESPB_ERR_WRONG_DIRECTION, 0);
#endif
        TRY(long_frame(r, frame));
        frame->kind = RESPB_FRAME_UNKNOWN;
        return frame->opcode >= IGNORABLE_FIRST ? control(r, frame) : DONE;
    }
    if (d->at == 0) outcome = top(r, d);
    /* NEED with the number of bytes is a pause; without, an element follows. */
    while (outcome == NEED && d->at > 0) {
        if (!has_room(r)) return NO_ROOM;
        r->need = 0;
        outcome = element(r, d);
        if (outcome == NEED && r->need > 0) return NEED;
    }
    if (outcome != DONE) return outcome;
    frame->kind = d->push ? RESPB_FRAME_PUSH : RESPB_FRAME_REPLY;
    frame->len = (uint32_t)d->at;
    return DONE;
}

#endif
