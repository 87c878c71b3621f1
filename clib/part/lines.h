/* lines.h: decoding RESP requests: arrays of bulks, inline commands, and one array inside a RESPB passthrough frame.
 *
 * Owns the length lines, the splitting of inline commands, the resuming. Error texts are those of Redis. */
#ifndef RESPB_LINES_H
#define RESPB_LINES_H

/* The longest length line that can be a number. Without a line end within it, the line is wrong. */
#define LENGTH_LINE_MAX 32

/* The number of the line at `at`, whose first byte names its type, and the offset behind the line. */
static step length_line(struct reader *r, size_t at, uint32_t wrong, uint32_t endless, int64_t *number, size_t *behind) {
    const char *line = (const char *)r->in + at + 1;
    size_t there = r->len - at - 1, visible = there < LENGTH_LINE_MAX ? there : LENGTH_LINE_MAX, len = 0;
    while (len < visible && line[len] != '\r') len++;
    if (len == visible) return visible == LENGTH_LINE_MAX ? bad(r, endless, at) : need(r, r->len + 1);
    if (len + 1 == there) return need(r, r->len + 1);
    if (line[len + 1] != '\n' || !parse_integer(line, len, number)) return bad(r, wrong, at);
    *behind = at + 1 + len + 2;
    return DONE;
}

/* A bulk; `lines->at` moves behind it. */
static step bulk(struct reader *r, respb_lines *lines) {
    const respb_limits *limits = r->limits;
    size_t at = lines->at, start = 0;
    int64_t len = 0;
    if (at == r->len) return need(r, at + 1);
    if (r->in[at] != '$') return bad(r, RESPB_ERR_EXPECTED_BULK, at);
    TRY(length_line(r, at, RESPB_ERR_BULK_LENGTH, RESPB_ERR_BULK_LINE, &len, &start));
    if (len < 0 || len > limits->argument_bytes_max) {
        return bad(r, limits->unauthenticated && len > 0 ? RESPB_ERR_UNAUTHENTICATED_ARGUMENT : RESPB_ERR_BULK_LENGTH, at);
    }
    if ((uint64_t)start + (uint64_t)len + 2 > limits->frame_bytes_max) return bad(r, RESPB_ERR_FRAME_TOO_LONG, at);
    if (r->len - start < (size_t)len + 2) return need(r, start + (size_t)len + 2);
    if (memcmp(r->in + start + len, "\r\n", 2) != 0) return bad(r, RESPB_ERR_BULK_END, start + (size_t)len);
    put_text(r, RESPB_BYTES, r->in + start, (size_t)len);
    lines->at = start + (size_t)len + 2;
    return DONE;
}

/* `*n` */
static step array_of_bulks(struct reader *r, respb_lines *lines) {
    if (lines->at == 0) {
        int64_t count = 0;
        size_t behind = 0;
        TRY(length_line(r, 0, RESPB_ERR_MULTIBULK_LENGTH, RESPB_ERR_MULTIBULK_LINE, &count, &behind));
        if (count > r->limits->arguments_max) {
            return bad(r, r->limits->unauthenticated ? RESPB_ERR_UNAUTHENTICATED_ARGUMENTS : RESPB_ERR_MULTIBULK_LENGTH, 0);
        }
        /* Redis takes a negative count for an empty request. */
        lines->arguments = lines->left = count < 0 ? 0 : (uint32_t)count;
        lines->at = behind;
    }
    for (; lines->left > 0; lines->left--) {
        if (!has_room(r)) return NO_ROOM;
        TRY(bulk(r, lines));
    }
    return DONE;
}

/* ---- Inline commands ---- */

/* What C calls a space, without a locale. */
static int is_blank(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* The end of the word at `at` in a line of `len` bytes. A NUL ends the line, as it does for Redis. */
static step word_end(struct reader *r, size_t at, size_t len, size_t *end, int *quoted) {
    const char *line = (const char *)r->in;
    size_t start = at;
    while (at < len && !is_blank(line[at]) && line[at]) {
        char quote = line[at++];
        if (quote != '"' && quote != '\'') continue;
        *quoted = 1;
        for (;; at++) {
            if (at >= len || !line[at]) return bad(r, RESPB_ERR_UNBALANCED_QUOTES, start);
            if (line[at] == quote) break;
            if (line[at] == '\\' && at + 1 < len && (quote == '"' || line[at + 1] == '\'')) at++;
        }
        at++;
        /* A closing quote must end the word. */
        if (at < len && !is_blank(line[at]) && line[at]) return bad(r, RESPB_ERR_UNBALANCED_QUOTES, start);
    }
    *end = at;
    return DONE;
}

/* The words of a line of `len` bytes, from lines->at on. */
static step words_of(struct reader *r, respb_lines *lines, size_t len) {
    const char *line = (const char *)r->in;
    size_t at = lines->at, end = 0;
    for (;; at = end) {
        int quoted = 0;
        while (at < len && is_blank(line[at])) at++;
        if (at >= len || !line[at]) return DONE;
        if (!has_room(r)) return NO_ROOM;
        TRY(word_end(r, at, len, &end, &quoted));
        if (lines->arguments >= r->limits->arguments_max) return bad(r, RESPB_ERR_TOO_MANY_ARGUMENTS, at);
        if (end - at > r->limits->argument_bytes_max) return bad(r, RESPB_ERR_ARGUMENT_TOO_LONG, at);
        put_text(r, quoted ? RESPB_QUOTED : RESPB_BYTES, line + at, end - at);
        lines->arguments++;
        lines->at = end;
    }
}

/* A line; nothing is handed out before its end is there. */
static step inline_command(struct reader *r, respb_lines *lines, size_t *frame_len) {
    size_t limit = r->limits->inline_bytes_max, visible = r->len < limit + 2 ? r->len : limit + 2, len;
    const char *line = (const char *)r->in, *found;
    size_t from = lines->searched < visible ? lines->searched : visible;
    found = (const char *)memchr(line + from, '\n', visible - from);
    if (!found) {
        lines->searched = visible;
        /* One byte more than the limit may be the CR of a line that just fits. */
        if (visible > limit && !(visible == limit + 1 && line[limit] == '\r')) return bad(r, RESPB_ERR_INLINE_TOO_LONG, limit);
        return need(r, r->len + 1);
    }
    len = (size_t)(found - line);
    lines->searched = len;
    *frame_len = len + 1;
    if (len > 0 && line[len - 1] == '\r') len--;
    if (len > limit) return bad(r, RESPB_ERR_INLINE_TOO_LONG, limit);
    return words_of(r, lines, len);
}

/* ---- Frames ---- */

/* One request of RESP. */
static step lines_frame(struct reader *r, respb_lines *lines, respb_frame *frame) {
    size_t len = 0;
    if (r->len == 0) return need(r, 1);
    if (r->in[0] == '*') {
        TRY(array_of_bulks(r, lines));
        len = lines->at;
    } else {
        TRY(inline_command(r, lines, &len));
    }
    memset(frame, 0, sizeof *frame);
    frame->data = (const char *)r->in;
    frame->len = (uint32_t)len;
    frame->command = RESPB_NO_COMMAND;
    frame->kind = RESPB_FRAME_RESP;
    return DONE;
}

/* The payload of a passthrough frame, all of which is there: exactly one array. Offsets of errors are the frame's. */
static step passthrough(struct reader *r, respb_lines *lines, respb_frame *frame) {
    struct reader inner = *r;
    step outcome;
    frame->kind = RESPB_FRAME_PASSTHROUGH;
    inner.in += LONG_HEADER_LEN;
    inner.len = frame->len - LONG_HEADER_LEN;
    if (inner.len == 0 || inner.in[0] != '*') return bad(r, RESPB_ERR_NOT_ONE_COMMAND, LONG_HEADER_LEN);
    outcome = array_of_bulks(&inner, lines);
    r->next = inner.next;
    switch (outcome) {
    case NO_ROOM: return NO_ROOM;
    case BAD: return bad(r, inner.error, inner.error_at + LONG_HEADER_LEN);
    case NEED: return bad(r, RESPB_ERR_NOT_ONE_COMMAND, frame->len);
    default: break;
    }
    if (lines->arguments == 0) return bad(r, RESPB_ERR_NOT_ONE_COMMAND, LONG_HEADER_LEN);
    if (lines->at < inner.len) return bad(r, RESPB_ERR_NOT_ONE_COMMAND, LONG_HEADER_LEN + lines->at);
    return DONE;
}

/* ---- Straight code ---- */

/* The most arguments, and bytes of an argument, that it reads: what four digits can say. */
#define SHORT_MAX 9999u

/* A line of `type` with up to four digits that is there as a whole; its number in *number. Returns how long it is, 0 for any other. */
INLINE size_t short_line(const unsigned char *at, size_t there, unsigned type, uint32_t *number) {
    uint32_t value, digit;
    size_t len = 2;
    if (there < 8 || at[0] != type) return 0;
    value = at[1] - (unsigned)'0';
    if (value > 9) return 0;
    for (; len < 5 && (digit = at[len] - (unsigned)'0') <= 9; len++) {
        if (value == 0) return 0;
        value = value * 10 + digit;
    }
    *number = value;
    return at[len] == '\r' && at[len + 1] == '\n' ? len + 2 : 0;
}

/* Whole arrays of short bulks. What is odd in any way is left where it begins. */
NOINLINE static void straight_lines(struct cursor *c) {
    const unsigned char *at = c->at, *const end = c->end;
    respb_frame *frame = c->frame, *const frames_end = c->frames_end;
    respb_value *value = c->value, *const values_end = c->values_end;
    size_t index = c->index;
    for (; frame < frames_end; frame++) {
        uint32_t count = 0, len = 0, left;
        size_t head = short_line(at, (size_t)(end - at), '*', &count);
        const unsigned char *next = at + head;
        respb_value *argument = value;
        if (head == 0 || (size_t)(values_end - value) < (size_t)count + RESPB_VALUES_MIN) break;
        for (left = count; left > 0; left--) {
            head = short_line(next, (size_t)(end - next), '$', &len);
            if (head == 0 || (size_t)(end - next) - head < (size_t)len + 2) break;
            next += head;
            straight_text(argument++, next, len);
            next += len;
            if (next[0] != '\r' || next[1] != '\n') break;
            next += 2;
        }
        if (left > 0) break;
        frame->data = (const char *)at;
        frame->len = (uint32_t)(next - at);
        frame->first = (uint32_t)index;
        frame->count = count;
        frame->number = 0;
        frame->channel = frame->opcode = 0;
        frame->command = RESPB_NO_COMMAND;
        frame->kind = RESPB_FRAME_RESP;
        frame->options = 0;
        index += count;
        value = argument;
        at = next;
    }
    c->at = at;
    c->frame = frame;
    c->value = value;
    c->index = index;
}

/* ---- Quotes ---- */

static int hex_digit(char letter) {
    if (is_digit(letter)) return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

/* Resolves what follows a backslash; returns how many bytes that took. */
static size_t escape(struct out *out, const char *at, size_t left) {
    static const char letters[] = "nrtba", meant[] = "\n\r\t\b\a";
    const char *found;
    if (left >= 3 && at[0] == 'x' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
        append8(out, (unsigned)(hex_digit(at[1]) * 16 + hex_digit(at[2])));
        return 3;
    }
    found = at[0] ? strchr(letters, at[0]) : NULL;
    append(out, found ? &meant[found - letters] : at, 1);
    return 1;
}

/* A word with its quotes and escapes resolved; a decoder has found it well-formed. */
static void unquote(struct out *out, const char *word, size_t len) {
    char quote = 0;
    size_t at = 0;
    while (at < len) {
        char byte = word[at++];
        if (!quote && (byte == '"' || byte == '\'')) {
            quote = byte;
        } else if (quote && byte == quote) {
            quote = 0;
        } else if (quote == '\'' && byte == '\\' && at < len && word[at] == '\'') {
            append8(out, '\'');
            at++;
        } else if (quote == '"' && byte == '\\' && at < len) {
            at += escape(out, word + at, len - at);
        } else {
            append(out, &byte, 1);
        }
    }
}

#endif
