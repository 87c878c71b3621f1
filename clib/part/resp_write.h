/* resp_write.h: encoding requests and replies in RESP2 and RESP3.
 *
 * Owns what each RESP3 type becomes in RESP2, and the lengths of streamed aggregates, which are written as plain ones once they are
 * known: clients seldom read the streamed form. */
#ifndef RESPB_RESP_WRITE_H
#define RESPB_RESP_WRITE_H

/* A type byte, a number and a line end, at most. */
#define LINE_MAX_LEN (INT_TEXT_MAX + 3)

static size_t length_text(char *line, char type, uint64_t len) {
    size_t at;
    line[0] = type;
    at = 1 + integer_text((int64_t)len, line + 1);
    line[at++] = '\r';
    line[at++] = '\n';
    return at;
}

static void append_length(struct out *out, char type, uint64_t len) {
    char line[LINE_MAX_LEN];
    append(out, line, length_text(line, type, len));
}

static void append_bulk(struct out *out, const char *bytes, size_t len) {
    append_length(out, '$', len);
    append(out, bytes, len);
    append(out, "\r\n", 2);
}

static void append_line(struct out *out, char type, const char *text, size_t len) {
    append8(out, (unsigned char)type);
    append(out, text, len);
    append(out, "\r\n", 2);
}

/* Writes a length line before what stands from `at` on. */
static void insert_length(struct out *out, size_t at, char type, uint64_t len) {
    char line[LINE_MAX_LEN];
    size_t line_len = length_text(line, type, len), behind = out->len - at;
    if (at < out->capacity && line_len < out->capacity - at) {
        size_t room = out->capacity - at - line_len;
        memmove(out->data + at + line_len, out->data + at, behind < room ? behind : room);
    }
    patch(out, at, line, line_len);
    out->len += line_len;
}

static void encode_lines(struct out *out, const struct arguments *args) {
    size_t i;
    append_length(out, '*', args->len);
    for (i = 0; i < args->len; i++) {
        char number[DOUBLE_TEXT_MAX];
        size_t len;
        const char *text = text_of(argument(args, i), number, &len);
        append_bulk(out, text, len);
    }
}

static void resp_error(const respb_writer *w, struct out *out, const char *text, size_t len) {
    size_t i;
    if (is_line(text, len)) {
        append_line(out, '-', text, len);
    } else if (w->protocol == RESPB_PROTOCOL_RESP3) {
        append_length(out, '!', len);
        append(out, text, len);
        append(out, "\r\n", 2);
    } else {
        append8(out, '-');
        for (i = 0; i < len; i++) append8(out, text[i] == '\r' || text[i] == '\n' ? ' ' : (unsigned char)text[i]);
        append(out, "\r\n", 2);
    }
}

static void resp_text(const respb_writer *w, struct out *out, const respb_value *value) {
    const char *text = value->value.data;
    size_t len = value->len;
    int is_resp3 = w->protocol == RESPB_PROTOCOL_RESP3;
    if (value->kind == RESPB_SIMPLE) {
        append_line(out, '+', text, len);
    } else if (value->kind == RESPB_ERROR) {
        resp_error(w, out, text, len);
    } else if (value->kind == RESPB_BIG_NUMBER && is_resp3) {
        append_line(out, '(', text, len);
    } else if (value->kind == RESPB_VERBATIM && is_resp3) {
        append_length(out, '=', len + 4);
        append(out, value->format, 3);
        append8(out, ':');
        append(out, text, len);
        append(out, "\r\n", 2);
    } else {
        append_bulk(out, text, len);
    }
}

static void resp_number(const respb_writer *w, struct out *out, const respb_value *value) {
    char text[DOUBLE_TEXT_MAX];
    size_t len;
    if (value->kind == RESPB_DOUBLE) {
        len = double_text(value->value.number, text);
        if (w->protocol == RESPB_PROTOCOL_RESP3) append_line(out, ',', text, len);
        else append_bulk(out, text, len);
    } else if (value->kind == RESPB_BOOLEAN && w->protocol == RESPB_PROTOCOL_RESP3) {
        append_line(out, '#', value->value.integer ? "t" : "f", 1);
    } else {
        len = integer_text(value->value.integer, text);
        append_line(out, ':', text, len);
    }
}

/* The pairs of an attribute are complete, which is no value yet; RESP2 clients do not get them at all. */
static void resp_end_attribute(respb_writer *w, struct out *out, size_t at) {
    if (w->protocol == RESPB_PROTOCOL_RESP2) out->len = at;
    if (w->depth > 0) w->open[w->depth - 1].owed = 1;
}

/* A value is complete. */
static void resp_end(respb_writer *w, struct out *out) {
    while (w->depth > 0) {
        struct respb_open *open = &w->open[w->depth - 1];
        open->owed = 0;
        if (open->streamed) {
            open->elements++;
            return;
        }
        if (--open->elements > 0) return;
        w->depth--;
        if (open->kind == RESPB_ATTRIBUTE) {
            resp_end_attribute(w, out, open->at);
            return;
        }
    }
}

static void resp_aggregate(const respb_writer *w, struct out *out, const struct respb_open *open, int insert) {
    static const char types[] = "*%~>|";
    int flat = w->protocol == RESPB_PROTOCOL_RESP2;
    char type = flat ? '*' : types[open->kind - RESPB_ARRAY];
    uint64_t count = flat ? open->elements : open->elements >> is_pairs(open->kind);
    if (insert) insert_length(out, open->at, type, count);
    else append_length(out, type, count);
}

static void resp_open(respb_writer *w, struct out *out, unsigned kind, int64_t count) {
    struct respb_open *open = &w->open[w->depth];
    open->kind = (uint8_t)kind;
    open->streamed = count < 0, open->owed = 0;
    open->at = out->len;
    open->elements = count < 0 ? 0 : (uint64_t)count << is_pairs(kind);
    if (count >= 0) resp_aggregate(w, out, open, 0);
    if (count != 0) {
        w->depth++;
    } else if (kind != RESPB_ATTRIBUTE) {
        resp_end(w, out);
    } else {
        resp_end_attribute(w, out, open->at);
    }
}

static void resp_close(respb_writer *w, struct out *out) {
    if (w->text_at) {
        insert_length(out, w->text_at - 1, '$', out->len - (w->text_at - 1));
        append(out, "\r\n", 2);
        w->text_at = 0;
    } else {
        resp_aggregate(w, out, &w->open[--w->depth], 1);
    }
    resp_end(w, out);
}

static void resp_write(respb_writer *w, struct out *out, const respb_value *value) {
    switch (value->kind) {
    case RESPB_INTEGER:
    case RESPB_DOUBLE:
    case RESPB_BOOLEAN: resp_number(w, out, value); break;
    case RESPB_NULL:
    case RESPB_NULL_ARRAY:
        if (w->protocol == RESPB_PROTOCOL_RESP3) append(out, "_\r\n", 3);
        else append(out, value->kind == RESPB_NULL ? "$-1\r\n" : "*-1\r\n", 5);
        break;
    case RESPB_TEXT: w->text_at = out->len + 1; return;
    case RESPB_CLOSE: resp_close(w, out); return;
    case RESPB_ARRAY:
    case RESPB_MAP:
    case RESPB_SET:
    case RESPB_PUSH:
    case RESPB_ATTRIBUTE: resp_open(w, out, value->kind, value->value.integer); return;
    default: resp_text(w, out, value); break;
    }
    resp_end(w, out);
}

#endif
