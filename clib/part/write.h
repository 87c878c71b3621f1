/* write.h: encoding replies, each value in its shortest form (specification, section 5.4), and the writer's interface.
 *
 * Owns the choice of the form, the count of aggregates that are open, and what a reply may be made of. */
#ifndef RESPB_WRITE_H
#define RESPB_WRITE_H

#ifndef RESPB_NO_RESP
static void resp_write(respb_writer *w, struct out *out, const respb_value *value);
#endif

static void write_head(const respb_writer *w, struct out *out, unsigned high, unsigned low) {
    append16(out, high << 8 | low);
    append16(out, w->channel);
}

/* A header for a reply, a tag for an element. */
static void write_type(const respb_writer *w, struct out *out, unsigned type) {
    if (w->depth == 0) write_head(w, out, 0x80, type);
    else append8(out, type);
}

static void write_sized(const respb_writer *w, struct out *out, unsigned type, const respb_value *value) {
    write_type(w, out, type);
    if (type == TYPE_VERBATIM) append(out, value->format, 3);
    if (type == TYPE_ERROR || type == TYPE_SIMPLE) append16(out, value->len);
    else append32(out, value->len);
    append(out, value->value.data, value->len);
}

static void write_text(const respb_writer *w, struct out *out, const respb_value *value) {
    unsigned kind = value->kind;
    size_t len = value->len, frame = w->depth == 0;
    if (kind == RESPB_SIMPLE && len == 2 && memcmp(value->value.data, OK_TEXT, 2) == 0) {
        write_type(w, out, TYPE_OK);
    } else if (kind == RESPB_SIMPLE && len <= 0xFF && frame) {
        write_head(w, out, SHORT_SIMPLE, (unsigned)len);
        append(out, value->value.data, len);
    } else if (kind == RESPB_SIMPLE && len <= 0xFFFF) {
        write_sized(w, out, TYPE_SIMPLE, value);
    } else if (kind == RESPB_ERROR) {
        write_sized(w, out, len <= 0xFFFF ? TYPE_ERROR : TYPE_LONG_ERROR, value);
    } else if (kind == RESPB_BIG_NUMBER || kind == RESPB_VERBATIM) {
        write_sized(w, out, kind == RESPB_VERBATIM ? TYPE_VERBATIM : TYPE_BIG_NUMBER, value);
    } else if (len > (frame ? 0xFFu : 0x7Fu)) {
        write_sized(w, out, TYPE_BULK, value); /* a simple string that is too long for its type as well */
    } else {
        if (frame) write_head(w, out, SHORT_BULK, (unsigned)len);
        else append8(out, TAG_BULK | (unsigned)len);
        append(out, value->value.data, len);
    }
}

static void write_integer(const respb_writer *w, struct out *out, int64_t number) {
    if (w->depth == 0 && number >= 0 && number <= 0xFF) {
        write_head(w, out, SMALL_INTEGER, (unsigned)number);
    } else if (w->depth > 0 && number >= -1 && number <= 62) {
        append8(out, (unsigned)(number + 1 + TAG_INTEGER));
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
        write_type(w, out, TYPE_INTEGER32);
        append32(out, (uint32_t)number);
    } else {
        write_type(w, out, TYPE_INTEGER);
        append64(out, (uint64_t)number);
    }
}

/* A value is complete. */
static void write_end(respb_writer *w) {
    while (w->depth > 0) {
        struct respb_open *open = &w->open[w->depth - 1];
        if (open->streamed) {
            open->elements++;
            return;
        }
        if (--open->elements > 0) return;
        w->depth--;
    }
}

static void write_open(respb_writer *w, struct out *out, unsigned kind, int64_t count) {
    static const unsigned char types[] = {TYPE_ARRAY, TYPE_MAP, TYPE_SET, TYPE_PUSH, TYPE_ATTRIBUTE};
    struct respb_open *open = &w->open[w->depth];
    write_type(w, out, types[kind - RESPB_ARRAY]);
    open->at = out->len;
    append32(out, count < 0 ? 0 : (uint32_t)count);
    open->kind = (uint8_t)kind;
    open->streamed = count < 0, open->owed = 0;
    /* An attribute has its pairs and the value that they belong to. */
    open->elements = count < 0 ? 0 : ((uint64_t)count << is_pairs(kind)) + (kind == RESPB_ATTRIBUTE);
    if (open->elements == 0 && !open->streamed) write_end(w);
    else w->depth++;
}

/* Ends the text or the aggregate whose length was not known. */
static void write_close(respb_writer *w, struct out *out) {
    if (w->text_at) {
        patch32(out, w->text_at - 1, (uint32_t)(out->len - (w->text_at - 1) - 4));
        w->text_at = 0;
    } else {
        const struct respb_open *open = &w->open[--w->depth];
        patch32(out, open->at, (uint32_t)(open->elements >> is_pairs(open->kind)));
    }
    write_end(w);
}

static void write_one(respb_writer *w, struct out *out, const respb_value *value) {
    uint64_t bits;
    switch (value->kind) {
    case RESPB_INTEGER: write_integer(w, out, value->value.integer); break;
    case RESPB_DOUBLE:
        memcpy(&bits, &value->value.number, sizeof bits);
        /* One NaN of the many: section 5.2. */
        if (value->value.number != value->value.number) bits = (uint64_t)0x7FF8 << 48;
        write_type(w, out, TYPE_DOUBLE);
        append64(out, bits);
        break;
    case RESPB_BOOLEAN:
        write_type(w, out, TYPE_BOOLEAN);
        append8(out, value->value.integer != 0);
        break;
    case RESPB_NULL:
    case RESPB_NULL_ARRAY: write_type(w, out, TYPE_NULL); break;
    case RESPB_TEXT:
        write_type(w, out, TYPE_BULK);
        w->text_at = out->len + 1;
        append32(out, 0);
        return;
    case RESPB_CLOSE: write_close(w, out); return;
    default:
        if (is_aggregate(value->kind)) {
            write_open(w, out, value->kind, value->value.integer);
            return;
        }
        write_text(w, out, value);
        break;
    }
    write_end(w);
}

/* ---- What may be written ---- */

static int is_line(const char *text, size_t len) {
    return len == 0 || (!memchr(text, '\r', len) && !memchr(text, '\n', len));
}

/* Whether an aggregate may end here: its pairs are whole, an attribute has its value, and 32 bits hold their number. */
static int is_closable(const struct respb_open *open) {
    uint64_t count = open->elements >> is_pairs(open->kind);
    return open->streamed && !open->owed && count <= UINT32_MAX && count << is_pairs(open->kind) == open->elements;
}

/* Whether a value makes sense where the writer stands, behind `len` bytes. */
static respb_status is_writable(const respb_writer *w, size_t len, const respb_value *value) {
    const char *text = value->value.data;
    int64_t count = value->value.integer;
    int good = 0;
    /* Inside a streamed text there are only its chunks, whose sum 32 bits hold, and its end. */
    int is_chunk = value->kind == RESPB_BYTES && (uint64_t)len + value->len - w->text_at < UINT32_MAX;
    if (w->text_at && !is_chunk && value->kind != RESPB_CLOSE) return RESPB_EINVAL;
    switch (value->kind) {
    case RESPB_BYTES:
    case RESPB_KEYWORD:
    case RESPB_ERROR:
    case RESPB_VERBATIM: good = is_there(text, value->len); break;
    case RESPB_SIMPLE: good = is_there(text, value->len) && is_line(text, value->len); break;
    case RESPB_BIG_NUMBER: good = is_there(text, value->len) && is_big(text, value->len); break;
    case RESPB_INTEGER:
    case RESPB_DOUBLE:
    case RESPB_NULL:
    case RESPB_NULL_ARRAY:
    case RESPB_TEXT: good = 1; break;
    case RESPB_BOOLEAN: good = count == 0 || count == 1; break;
    case RESPB_CLOSE: good = w->text_at || (w->depth > 0 && is_closable(&w->open[w->depth - 1])); break;
    default:
        if (!is_aggregate(value->kind) || (value->kind == RESPB_PUSH && w->depth > 0)) break;
        good = count >= 0 ? count <= UINT32_MAX : count == -1 && value->kind != RESPB_PUSH && value->kind != RESPB_ATTRIBUTE;
        if (good && w->depth >= RESPB_NESTING_MAX) return RESPB_EDEPTH;
        break;
    }
    return good ? RESPB_OK : RESPB_EINVAL;
}

respb_status respb_write_values(respb_writer *writer, const respb_value *values, size_t count) {
    respb_status outcome = RESPB_OK;
    struct out out;
    size_t i;
    if (!writer || !is_there(values, count) || !out_of(&out, writer->buffer, writer->capacity)) return RESPB_EINVAL;
    out.len = writer->len;
    for (i = 0; i < count; i++) {
        outcome = is_writable(writer, out.len, &values[i]);
        if (outcome != RESPB_OK) break;
        if (writer->text_at && values[i].kind == RESPB_BYTES) append(&out, values[i].value.data, values[i].len);
#ifndef RESPB_NO_RESP
        else if (writer->protocol != RESPB_PROTOCOL_RESPB) resp_write(writer, &out, &values[i]);
#endif
        else write_one(writer, &out, &values[i]);
    }
    writer->len = out.len;
    if (outcome != RESPB_OK) return outcome;
    return out.len > out.capacity ? RESPB_FULL : RESPB_OK;
}

static respb_status write_text_of(respb_writer *writer, unsigned kind, const void *text, size_t len) {
    respb_value value = respb_bytes(text, len);
    value.kind = (uint8_t)kind;
    return len > UINT32_MAX ? RESPB_EINVAL : respb_write_values(writer, &value, 1);
}

static respb_status write_number_of(respb_writer *writer, unsigned kind, int64_t number) {
    respb_value value = respb_integer(number);
    value.kind = (uint8_t)kind;
    return respb_write_values(writer, &value, 1);
}

respb_status respb_write_simple(respb_writer *w, const void *text, size_t len) { return write_text_of(w, RESPB_SIMPLE, text, len); }

respb_status respb_write_error(respb_writer *w, const void *text, size_t len) { return write_text_of(w, RESPB_ERROR, text, len); }

respb_status respb_write_bulk(respb_writer *w, const void *data, size_t len) { return write_text_of(w, RESPB_BYTES, data, len); }

respb_status respb_write_integer(respb_writer *w, int64_t integer) { return write_number_of(w, RESPB_INTEGER, integer); }

respb_status respb_write_double(respb_writer *writer, double number) {
    respb_value value = respb_integer(0);
    value.value.number = number;
    value.kind = RESPB_DOUBLE;
    return respb_write_values(writer, &value, 1);
}

respb_status respb_write_boolean(respb_writer *w, int boolean) { return write_number_of(w, RESPB_BOOLEAN, boolean != 0); }

respb_status respb_write_null(respb_writer *writer) { return write_number_of(writer, RESPB_NULL, 0); }

respb_status respb_write_open(respb_writer *writer, int kind, int64_t count) {
    if (kind < RESPB_ARRAY || kind > RESPB_ATTRIBUTE) return RESPB_EINVAL;
    return write_number_of(writer, (unsigned)kind, count);
}

respb_status respb_write_close(respb_writer *writer) { return write_number_of(writer, RESPB_CLOSE, 0); }

/* ---- The writer ---- */

static int is_protocol(int protocol) {
#ifndef RESPB_NO_RESP
    if (protocol == RESPB_PROTOCOL_RESP2 || protocol == RESPB_PROTOCOL_RESP3) return 1;
#endif
    return protocol == RESPB_PROTOCOL_RESPB;
}

respb_status respb_writer_init(respb_writer *writer, size_t size, int protocol, void *buffer, size_t capacity) {
    if (!writer || size < sizeof *writer || !is_protocol(protocol) || !is_there(buffer, capacity)) return RESPB_EINVAL;
    writer->buffer = (char *)buffer;
    writer->capacity = capacity;
    writer->len = writer->text_at = 0;
    writer->protocol = (uint8_t)protocol;
    writer->channel = writer->depth = 0;
    return RESPB_OK;
}

static int is_between(const respb_writer *writer) { return writer && writer->depth == 0 && !writer->text_at; }

respb_status respb_writer_buffer(respb_writer *writer, void *buffer, size_t capacity, size_t len) {
    if (!is_between(writer) || !is_there(buffer, capacity) || len > capacity) return RESPB_EINVAL;
    writer->buffer = (char *)buffer;
    writer->capacity = capacity;
    writer->len = len;
    return RESPB_OK;
}

respb_status respb_writer_channel(respb_writer *writer, uint16_t channel) {
    if (!is_between(writer)) return RESPB_EINVAL;
    writer->channel = channel;
    return RESPB_OK;
}

respb_status respb_writer_protocol(respb_writer *writer, int protocol) {
    if (!is_between(writer) || !is_protocol(protocol)) return RESPB_EINVAL;
    writer->protocol = (uint8_t)protocol;
    return RESPB_OK;
}

size_t respb_writer_len(const respb_writer *writer) { return writer ? writer->len : 0; }

respb_status respb_writer_truncate(respb_writer *writer, size_t len) {
    if (!writer || len > writer->len) return RESPB_EINVAL;
    writer->len = len;
    writer->text_at = writer->depth = 0;
    return RESPB_OK;
}

#endif
