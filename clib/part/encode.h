/* encode.h: encoding requests and control frames.
 *
 * Owns ARGV, the control frames, and which form a request gets. Fitting arguments to a layout is fit.h's. */
#ifndef RESPB_ENCODE_H
#define RESPB_ENCODE_H

/* Arguments, the name among them. */
struct arguments {
    respb_value name;
    const respb_value *values;
    size_t first; /* 1 when `name` stands before the values */
    size_t len;
};

static const respb_value *argument(const struct arguments *args, size_t index) {
    return index < args->first ? &args->name : &args->values[index - args->first];
}

/* The text of a number, in a buffer of DOUBLE_TEXT_MAX bytes, or the bytes as they are. */
static const char *text_of(const respb_value *value, char *number, size_t *len) {
    *len = value->len;
    if (value->kind == RESPB_INTEGER) *len = integer_text(value->value.integer, number);
#ifndef RESPB_NO_DOUBLE_TEXT
    else if (value->kind == RESPB_DOUBLE) *len = double_text(value->value.number, number);
#endif
    else return value->value.data;
    return number;
}

/* `[total u32]`, then the arguments from `first` on with their lengths. */
static void encode_sized(struct out *out, const struct arguments *args, size_t first) {
    size_t at = out->len, len, i;
    append32(out, 0);
    for (i = first; i < args->len; i++) {
        char number[DOUBLE_TEXT_MAX];
        const char *text = text_of(argument(args, i), number, &len);
        append32(out, (uint32_t)len);
        append(out, text, len);
    }
    patch32(out, at, (uint32_t)(out->len - at - 4));
}

/* The most that a form adds to an argument: a number's text with its length line. */
#define ARGUMENT_OVERHEAD 40

/* Whether these can be arguments of a frame that has `total` bytes beside them. */
static int are_arguments(const respb_value *args, size_t count, uint64_t total) {
    size_t i;
    if (!is_there(args, count)) return 0;
    for (i = 0; i < count; i++) {
        if (args[i].kind == RESPB_BYTES || args[i].kind == RESPB_KEYWORD) {
            if (!is_there(args[i].value.data, args[i].len)) return 0;
            total += args[i].len;
        } else if (args[i].kind != RESPB_INTEGER) {
#ifdef RESPB_NO_DOUBLE_TEXT
            return 0;
#else
            if (args[i].kind != RESPB_DOUBLE) return 0;
#endif
        }
        total += ARGUMENT_OVERHEAD;
        if (total > UINT32_MAX) return 0;
    }
    return 1;
}

#ifndef RESPB_NO_TYPED
static int encode_typed(struct out *out, uint16_t channel, const struct arguments *args, int fold);
#endif
#ifndef RESPB_NO_RESP
static void encode_lines(struct out *out, const struct arguments *args);
#endif

size_t respb_encode_request(int form, uint16_t channel, const char *name, const respb_value *args, size_t count, void *buffer,
                            size_t capacity) {
    struct arguments all;
    struct out out;
    all.name = respb_bytes(name, name ? strlen(name) : 0);
    if (!are_arguments(&all.name, 1, 0) || (!name && count == 0) || !out_of(&out, buffer, capacity)) return 0;
    /* The name and the frame's head are beside the arguments. */
    if (!are_arguments(args, count, (uint64_t)all.name.len + 2 * ARGUMENT_OVERHEAD)) return 0;
    all.values = args;
    all.first = name != NULL;
    all.len = count + all.first;
    switch (form) {
#ifndef RESPB_NO_TYPED
    case RESPB_FORM_EXACT:
    case RESPB_FORM_FOLD:
        if (encode_typed(&out, channel, &all, form == RESPB_FORM_FOLD)) return out.len;
        out.len = 0;
        break;
#else
    case RESPB_FORM_EXACT:
    case RESPB_FORM_FOLD:
#endif
    case RESPB_FORM_ARGV: break;
#ifndef RESPB_NO_RESP
    case RESPB_FORM_RESP: encode_lines(&out, &all); return out.len;
    case RESPB_FORM_PASSTHROUGH:
        append16(&out, PASSTHROUGH);
        append16(&out, channel);
        append32(&out, 0);
        encode_lines(&out, &all);
        patch32(&out, HEADER_LEN, (uint32_t)(out.len - LONG_HEADER_LEN));
        return out.len;
#endif
    default: return 0;
    }
    append16(&out, ARGV);
    append16(&out, channel);
    encode_sized(&out, &all, 0);
    return out.len;
}

/* ---- Control frames ---- */

/* A frame whose payload is `head_len` bytes of `head` in big endian, and then `data`. */
static size_t encode_control(unsigned opcode, uint16_t channel, uint32_t head, size_t head_len, const void *data, size_t len,
                             void *buffer, size_t capacity) {
    struct out out;
    if (!is_there(data, len) || len > UINT32_MAX - 16 || !out_of(&out, buffer, capacity)) return 0;
    append16(&out, opcode);
    append16(&out, channel);
    append32(&out, (uint32_t)(head_len + len));
    if (head_len == 1) append8(&out, head);
    if (head_len == 2) append16(&out, head);
    if (head_len == 4) append32(&out, head);
    append(&out, data, len);
    return out.len;
}

size_t respb_encode_close(uint16_t channel, uint16_t code, const void *reason, size_t len, void *buffer, size_t capacity) {
    return encode_control(CLOSE, channel, code, code || len ? 2 : 0, reason, len, buffer, capacity);
}

size_t respb_encode_goaway(uint16_t code, const void *reason, size_t len, void *buffer, size_t capacity) {
    return encode_control(GOAWAY, 0, code, 2, reason, len, buffer, capacity);
}

#ifndef RESPB_NO_CANCEL
size_t respb_encode_cancel(uint16_t channel, uint32_t sequence, void *buffer, size_t capacity) {
    return encode_control(CANCEL, channel, sequence, 4, NULL, 0, buffer, capacity);
}
#endif

#ifndef RESPB_NO_FLOW
size_t respb_encode_window(uint16_t channel, uint32_t more, void *buffer, size_t capacity) {
    return encode_control(WINDOW, channel, more, 4, NULL, 0, buffer, capacity);
}

size_t respb_encode_fragment(uint16_t channel, int last, const void *slice, size_t len, void *buffer, size_t capacity) {
    if (len > FRAGMENT_BYTES_MAX) return 0;
    return encode_control(FRAGMENT, channel, last != 0, 1, slice, len, buffer, capacity);
}
#endif

#endif
