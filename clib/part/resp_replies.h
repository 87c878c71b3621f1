/* resp_replies.h: decoding RESP replies: every type of RESP2 and RESP3, streamed ones included.
 *
 * Owns the lines. Resumes at the value where it stopped; a line in pieces is searched on from where the search ended. */
#ifndef RESPB_RESP_REPLIES_H
#define RESPB_RESP_REPLIES_H

/* The line at d->at, without its type byte and line end. */
static step reply_line(struct reader *r, respb_reply_decoder *d, size_t *len) {
    size_t start = d->at + 1, from = d->searched > start ? d->searched : start, end = from;
    uint64_t limit = (uint64_t)start + r->limits->inline_bytes_max;
    const unsigned char *in = r->in;
    while (end < r->len && in[end] != '\r' && in[end] != '\n') end++;
    if (end >= r->len) {
        d->searched = end;
        return r->len > limit ? bad(r, RESPB_ERR_LINE_TOO_LONG, d->at) : need(r, r->len + 1);
    }
    if (end > limit) return bad(r, RESPB_ERR_LINE_TOO_LONG, d->at);
    if (in[end] == '\n') return bad(r, RESPB_ERR_BAD_LINE, end);
    if (end + 1 == r->len) {
        d->searched = end;
        return need(r, end + 2);
    }
    if (in[end + 1] != '\n') return bad(r, RESPB_ERR_BAD_LINE, end);
    if (end + 2 > r->limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, d->at);
    *len = end - start;
    return DONE;
}

static void advance(respb_reply_decoder *d, size_t at) { d->at = d->searched = at; }

/* RESP3's `,`: digits, a fraction, an exponent, or one of `inf`, `-inf`, `nan`. */
static int reply_double(const char *line, size_t len, double *number) {
    const uint64_t infinity = (uint64_t)0x7FF << 52, nan = (uint64_t)0x7FF8 << 48;
    int negative = len > 0 && line[0] == '-';
    const char *word = line;
    size_t left = len;
    if (left > 0 && (*word == '-' || *word == '+')) word++, left--;
    if (left == 3 && memcmp(word, "inf", 3) == 0) {
        memcpy(number, &infinity, sizeof *number);
        if (negative) *number = -*number;
        return 1;
    }
    if (left == 3 && line[0] != '+' && memcmp(word, "nan", 3) == 0) {
        memcpy(number, &nan, sizeof *number);
        return 1;
    }
    return parse_decimal(line, len, number);
}

/* The types that are one line. */
static step line_value(struct reader *r, unsigned type, const char *line, size_t len, size_t at) {
    int64_t integer;
    double number;
    switch (type) {
    case '+': put_text(r, RESPB_SIMPLE, line, len); return DONE;
    case '-': put_text(r, RESPB_ERROR, line, len); return DONE;
    case ':':
        /* A plus sign is allowed here, and nothing else that is not canonical. */
        if (len > 1 && line[0] == '+' && line[1] != '-') line++, len--;
        if (!parse_integer(line, len, &integer)) return bad(r, RESPB_ERR_BAD_NUMBER, at);
        put_number(r, RESPB_INTEGER, integer);
        return DONE;
    case ',':
        if (!reply_double(line, len, &number)) return bad(r, RESPB_ERR_BAD_NUMBER, at);
        put_text(r, RESPB_DOUBLE, NULL, 0);
        r->next[-1].value.number = number;
        return DONE;
    case '#':
        if (len != 1 || (line[0] != 't' && line[0] != 'f')) return bad(r, RESPB_ERR_BAD_BOOL, at);
        put_number(r, RESPB_BOOLEAN, line[0] == 't');
        return DONE;
    case '_':
        if (len > 0) return bad(r, RESPB_ERR_BAD_LINE, at);
        put_number(r, RESPB_NULL, 0);
        return DONE;
    default:
        if (!is_big(line, len)) return bad(r, RESPB_ERR_BAD_NUMBER, at);
        put_text(r, RESPB_BIG_NUMBER, line, len);
        return DONE;
    }
}

static int is_word(const char *line, size_t len, const char *word) {
    return len == strlen(word) && memcmp(line, word, len) == 0;
}

/* The bytes that a length line announces, once they and their line end are there. */
static step sized_bytes(struct reader *r, const respb_reply_decoder *d, const char *line, size_t line_len, size_t start,
                        size_t *len) {
    int64_t number;
    if (!parse_integer(line, line_len, &number) || number < 0) return bad(r, RESPB_ERR_BAD_LENGTH, d->at);
    if (number > r->limits->argument_bytes_max) return bad(r, RESPB_ERR_ARGUMENT_TOO_LONG, d->at);
    if ((uint64_t)start + (uint64_t)number + 2 > r->limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, d->at);
    *len = (size_t)number;
    if (r->len - start < *len + 2) return need(r, start + *len + 2);
    if (memcmp(r->in + start + *len, "\r\n", 2) != 0) return bad(r, RESPB_ERR_BULK_END, start + *len);
    return DONE;
}

/* `$n`, `!n`, `=n` and, inside a streamed text, `;n`. */
static step bulk_value(struct reader *r, respb_reply_decoder *d, unsigned type, const char *line, size_t line_len) {
    size_t start = d->at + 1 + line_len + 2, len = 0;
    const char *bytes = (const char *)r->in + start;
    if (type == '$' && is_word(line, line_len, "-1")) {
        put_number(r, RESPB_NULL, 0);
        advance(d, start);
        return completed(d);
    }
    if (type == '$' && is_word(line, line_len, "?")) {
        put_number(r, RESPB_TEXT, 0);
        d->in_text = 1;
        advance(d, start);
        return NEED;
    }
    if (type == ';' && is_word(line, line_len, "0")) {
        put_number(r, RESPB_CLOSE, 0);
        d->in_text = 0;
        advance(d, start);
        return completed(d);
    }
    TRY(sized_bytes(r, d, line, line_len, start, &len));
    if (type == '=' && (len < 4 || bytes[3] != ':')) return bad(r, RESPB_ERR_BAD_VERBATIM, start);
    if (type == '=') {
        put_text(r, RESPB_VERBATIM, bytes + 4, len - 4);
        memcpy(r->next[-1].format, bytes, 3);
    } else {
        put_text(r, type == '!' ? RESPB_ERROR : RESPB_BYTES, bytes, len);
    }
    advance(d, start + len + 2);
    return type == ';' ? NEED : completed(d);
}

static step aggregate_value(struct reader *r, respb_reply_decoder *d, unsigned type, const char *line, size_t len) {
    static const char types[] = "*%~>|"; /* in the order of RESPB_ARRAY and its neighbours */
    unsigned kind = RESPB_ARRAY + (unsigned)(strchr(types, (int)type) - types);
    size_t next = d->at + 1 + len + 2;
    uint64_t count = STREAMED;
    int64_t number;
    step more;
    if (type == '*' && is_word(line, len, "-1")) {
        put_number(r, RESPB_NULL_ARRAY, 0);
        advance(d, next);
        return completed(d);
    }
    if (!is_word(line, len, "?") || type == '>' || type == '|') {
        if (!parse_integer(line, len, &number) || number < 0 || number > UINT32_MAX) return bad(r, RESPB_ERR_BAD_LENGTH, d->at);
        count = (uint64_t)number;
    }
    more = opened(r, d, kind, count, d->at);
    if (more != BAD) advance(d, next);
    return more;
}

/* `.`: the end of an aggregate whose length was not known. */
static step stream_end(struct reader *r, respb_reply_decoder *d, size_t line_len) {
    unsigned top = d->depth - 1u;
    if (line_len > 0 || d->depth == 0 || d->left[top] != STREAMED) return bad(r, RESPB_ERR_BAD_STREAM, d->at);
    if (d->owed) return bad(r, RESPB_ERR_MISPLACED, d->at);
    if (d->levels[top] & LEVEL_ODD) return bad(r, RESPB_ERR_BAD_STREAM, d->at);
    d->depth--;
    put_number(r, RESPB_CLOSE, 0);
    advance(d, d->at + 3);
    return completed(d);
}

/* The value at d->at; as `completed`. */
static step line_of(struct reader *r, respb_reply_decoder *d) {
    size_t at = d->at, len = 0;
    const char *line = (const char *)r->in + at + 1;
    unsigned type;
    if (at >= r->limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, at);
    if (at >= r->len) return need(r, at + 1);
    type = r->in[at];
    if (d->in_text && type != ';') return bad(r, RESPB_ERR_BAD_STREAM, at);
    if (!d->in_text && (!type || !strchr("+-:,#_($!=*%~>|.", (int)type))) return bad(r, RESPB_ERR_UNKNOWN_TYPE, at);
    TRY(reply_line(r, d, &len));
    /* What follows is NEED without a number when the reply goes on. */
    r->need = 0;
    switch (type) {
    case '$':
    case '!':
    case '=':
    case ';': return bulk_value(r, d, type, line, len);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|': return aggregate_value(r, d, type, line, len);
    case '.': return stream_end(r, d, len);
    default: break;
    }
    TRY(line_value(r, type, line, len, at));
    advance(d, at + 1 + len + 2);
    return completed(d);
}

/* One reply of RESP. */
static step resp_reply_frame(struct reader *r, respb_reply_decoder *d, respb_frame *frame) {
    step outcome;
    do {
        if (!has_room(r)) return NO_ROOM;
        outcome = line_of(r, d);
    } while (outcome == NEED && r->need == 0);
    if (outcome != DONE) return outcome;
    memset(frame, 0, sizeof *frame);
    frame->data = (const char *)r->in;
    frame->len = (uint32_t)d->at;
    frame->command = RESPB_NO_COMMAND;
    frame->kind = d->push ? RESPB_FRAME_PUSH : RESPB_FRAME_REPLY;
    return DONE;
}

#endif
