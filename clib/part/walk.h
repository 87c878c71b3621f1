/* walk.h: decoding typed frames: from the table field by field, and the commonest layouts in straight code.
 *
 * Owns every rule of section 4 of the specification: what a field is, which option bits may stand together, how the argument form
 * is read from the wire. The straight code takes only frames that are whole and good; it is a shorter way to the same values. */
#ifndef RESPB_WALK_H
#define RESPB_WALK_H

/* The most arguments of a layout in straight code: a list of so many items, a key and the name. */
#define STRAIGHT_ARGUMENTS_MAX (65535 + 2)
/* The most bytes around a value: a header, a key with its length, the value's length, options. */
#define STRAIGHT_KEY_MAX (HEADER_LEN + 2 + 65535 + 4 + 1)

/* A field that is one value, once it is there. */
struct scalar {
    size_t start, end; /* its bytes; for a number, where it begins and ends */
    uint64_t number;
    uint8_t kind; /* of the field */
    uint16_t words;
};

static step scalar_at(struct reader *r, const struct field *field, size_t at, struct scalar *out) {
    static const uint8_t widths[] = {2, 4, 8, 8, 2, 1, 1};
    size_t width = widths[field->kind];
    TRY(fixed_at(r, at, width));
    out->kind = field->kind;
    out->start = at;
    out->end = at + width;
    switch (field->kind) {
    case STR16:
    case BLOB32: {
        size_t len = width == 2 ? be16(r->in + at) : be32(r->in + at);
        TRY(text_at(r, at, at + width, len));
        out->start = at + width;
        out->end = out->start + len;
        break;
    }
    case I64: out->number = be64(r->in + at); break;
    case F64:
        out->number = be64(r->in + at);
        if ((out->number & ~((uint64_t)1 << 63)) > (uint64_t)0x7FF << 52) return bad(r, RESPB_ERR_BAD_NUMBER, at);
        break;
    case U16: out->number = be16(r->in + at); break;
    case U8: out->number = r->in[at]; break;
    default:
        if (r->in[at] >= VALUES[field->sub]) return bad(r, RESPB_ERR_BAD_ENUM, at);
        out->words = VALUES[field->sub + 1 + r->in[at]];
        break;
    }
    return DONE;
}

/* Hands out keywords, each an argument of the field at walk->at. */
static step hand_out_words(struct reader *r, respb_walk *walk, unsigned at) {
    unsigned left = WORDS[at++];
    for (; left > 0; left--) {
        TRY(count_argument(r, walk, walk->at));
        put_text(r, RESPB_KEYWORD, WORDS + at + 1, WORDS[at]);
        at += 1u + WORDS[at];
    }
    return DONE;
}

static void emit(struct reader *r, const struct scalar *scalar) {
    switch (scalar->kind) {
    case STR16:
    case BLOB32: put_text(r, RESPB_BYTES, r->in + scalar->start, scalar->end - scalar->start); break;
    case F64: put_double(r, scalar->number); break;
    default: put_number(r, RESPB_INTEGER, signed64(scalar->number)); break;
    }
}

static step hand_out(struct reader *r, respb_walk *walk, const struct scalar *scalar) {
    if (scalar->kind == ENUM) return hand_out_words(r, walk, scalar->words);
    TRY(count_argument(r, walk, walk->at));
    emit(r, scalar);
    return DONE;
}

/* All first fields, then all second ones: a column of a list that ends at walk->at. */
static step walk_column(struct reader *r, respb_walk *walk, const struct list *list) {
    while (walk->column_at < walk->at) {
        size_t at = walk->column_at;
        unsigned i;
        if (!has_room(r)) return NO_ROOM;
        for (i = 0; i < list->width; i++) {
            struct scalar scalar;
            TRY(scalar_at(r, &FIELDS[list->items + i], at, &scalar));
            if (i == walk->sub) emit(r, &scalar);
            at = scalar.end;
        }
        walk->column_at = at;
    }
    return DONE;
}

static step walk_list(struct reader *r, respb_walk *walk, const struct field *field) {
    const struct list *list = &LISTS[field->sub];
    if (!walk->inside) {
        uint32_t count;
        TRY(fixed_at(r, walk->at, 2));
        count = be16(r->in + walk->at);
        TRY(hand_out_words(r, walk, field->words));
        if (list->counted) {
            TRY(count_argument(r, walk, walk->at));
            put_number(r, RESPB_INTEGER, count);
        }
        walk->at += 2;
        walk->left = count;
        walk->items_at = walk->column_at = walk->at;
        walk->inside = 1;
    }
    while (walk->left > 0) {
        for (; walk->sub < list->width; walk->sub++) {
            struct scalar scalar;
            if (!has_room(r)) return NO_ROOM;
            TRY(scalar_at(r, &FIELDS[list->items + walk->sub], walk->at, &scalar));
            if (list->transposed) TRY(count_argument(r, walk, walk->at));
            else TRY(hand_out(r, walk, &scalar));
            walk->at = scalar.end;
        }
        walk->sub = 0;
        walk->left--;
    }
    for (; list->transposed && walk->sub < list->width; walk->sub++) {
        TRY(walk_column(r, walk, list));
        walk->column_at = walk->items_at;
    }
    return DONE;
}

/* 0, or which rule the bits break. */
static uint32_t wrong_bits(const struct options *options, unsigned bits) {
    unsigned i;
    if (bits >> options->bits_len) return RESPB_ERR_UNKNOWN_BIT;
    for (i = 0; i < options->sets_len; i++) {
        unsigned both = bits & SETS[options->sets + i];
        if (both & (both - 1)) return RESPB_ERR_EXCLUSIVE_BITS;
    }
    for (i = 0; i < options->bits_len; i++) {
        if ((bits >> i & 1) && (BITS[options->bits + i].requires & ~bits)) return RESPB_ERR_MISSING_BIT;
    }
    return 0;
}

static step walk_options(struct reader *r, respb_walk *walk, const struct field *field) {
    const struct options *options = &OPTIONS[field->sub];
    if (!walk->inside) {
        uint32_t wrong;
        TRY(fixed_at(r, walk->at, 1));
        wrong = wrong_bits(options, r->in[walk->at]);
        if (wrong) return bad(r, wrong, walk->at);
        walk->options = r->in[walk->at++];
        walk->inside = 1;
        walk->bit = 0;
    }
    for (; walk->bit < options->bits_len; walk->bit++) {
        const struct bit *bit = &BITS[options->bits + walk->bit];
        if (!(walk->options >> walk->bit & 1)) continue;
        if (!has_room(r)) return NO_ROOM;
        if (bit->width == 0) TRY(hand_out_words(r, walk, bit->words));
        for (; walk->sub < bit->width; walk->sub++) {
            struct scalar scalar;
            if (!has_room(r)) return NO_ROOM;
            TRY(scalar_at(r, &FIELDS[bit->fields + walk->sub], walk->at, &scalar));
            if (walk->sub == 0) TRY(hand_out_words(r, walk, bit->words));
            TRY(hand_out(r, walk, &scalar));
            walk->at = scalar.end;
        }
        walk->sub = 0;
    }
    return DONE;
}

/* The payload at `start` of a command's frame. */
static step walk_layout(struct reader *r, respb_walk *walk, const struct layout *layout, size_t start) {
    if (layout->len == ARGS_LAYOUT) return walk_arguments(r, walk, start, 0);
    if (walk->at == 0) walk->at = start, walk->arguments = 1;
    for (; walk->field < layout->len; walk->field++) {
        const struct field *field = &FIELDS[layout->fields + walk->field];
        if (!has_room(r)) return NO_ROOM;
        if (field->kind == LIST) {
            TRY(walk_list(r, walk, field));
        } else if (field->kind == OPTS8) {
            TRY(walk_options(r, walk, field));
        } else {
            struct scalar scalar;
            TRY(scalar_at(r, field, walk->at, &scalar));
            TRY(hand_out_words(r, walk, field->words));
            TRY(hand_out(r, walk, &scalar));
            walk->at = scalar.end;
        }
        walk->inside = walk->sub = 0;
    }
    return DONE;
}

/* A typed frame whose header has been read. */
static step typed_frame(struct reader *r, respb_walk *walk, respb_frame *frame) {
    size_t start = HEADER_LEN;
    const respb_command *command;
    frame->kind = RESPB_FRAME_CORE;
    if (frame->opcode == MODULE) {
        start = LONG_HEADER_LEN;
        if (r->len < start) return need(r, start);
        frame->kind = RESPB_FRAME_MODULE;
        command = respb_command_by_module((uint16_t)be16(r->in + 4), (uint16_t)be16(r->in + 6));
    } else {
        command = respb_command_by_opcode(frame->opcode);
    }
    if (!command) return bad(r, RESPB_ERR_UNKNOWN_OPCODE, start == HEADER_LEN ? 0 : HEADER_LEN);
    frame->command = command->id;
    TRY(walk_layout(r, walk, &LAYOUTS[command->id], start));
    frame->options = walk->options;
    frame->len = (uint32_t)walk->at;
    return DONE;
}

/* ---- Straight code ---- */

INLINE void straight_frame(respb_frame *frame, const unsigned char *at, size_t len, size_t index, size_t count, uint32_t head) {
    char *rest = (char *)frame;
    frame->data = (const char *)at;
    frame->len = (uint32_t)len;
    frame->first = (uint32_t)index;
    frame->count = (uint32_t)count;
    frame->number = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(rest + offsetof(respb_frame, channel), &head, sizeof head); /* the opcode behind it, in one */
#else
    frame->channel = (uint16_t)head;
    frame->opcode = (uint16_t)(head >> 16);
#endif
    /* Command, kind and options, as they stand in the table, in one. */
    memcpy(rest + offsetof(respb_frame, command), &CORE[head >> 16], sizeof *CORE);
}

/* The items of a list16 of str16 that ends the frame, of which `at` is the first length; returns where it ends, or null when it is
 * not whole. What follows an item is read along with it, so that one comparison does for both. */
INLINE const unsigned char *straight_list(const unsigned char *at, const unsigned char *end, uint32_t count, respb_value *value) {
    size_t len;
    if (count == 0) return at;
    if (UNLIKELY(end - at < 2)) return NULL;
    len = be16(at);
    at += 2;
    for (; (size_t)(end - at) >= len + 2; value++) {
        straight_text(value, at, len);
        at += len;
        if (--count == 0) return at;
        len = be16(at);
        at += 2;
    }
    /* The last item of all input has nothing behind it. */
    if (count > 1 || (size_t)(end - at) < len) return NULL;
    straight_text(value, at, len);
    return at + len;
}

/* How many frames there is room for whose values are `each` at most. */
INLINE size_t straight_room(const struct cursor *c, size_t each) {
    size_t frames = (size_t)(c->frames_end - c->frame), values = (size_t)(c->values_end - c->value);
    values = values < RESPB_VALUES_MIN ? 0 : (values - RESPB_VALUES_MIN) / each + 1;
    return frames < values ? frames : values;
}

/* Whole frames that are a key: GET, and others like it. This loop and the next are by themselves so that each stays in registers. */
NOINLINE static void straight_keys(struct cursor *c) {
    const unsigned char *at = c->at, *const end = c->end, *const last = end - (HEADER_LEN + 2);
    respb_frame *frame = c->frame, *const frames_end = frame + straight_room(c, 1);
    respb_value *value = c->value;
    uint32_t index = (uint32_t)c->index;
    for (; frame < frames_end && at <= last; frame++) {
        const unsigned char *key = at + HEADER_LEN + 2;
        uint32_t head = be32(at);
        uint32_t len = be16(at + HEADER_LEN), opcode = head >> 16;
        if (UNLIKELY(opcode > CORE_LAST) || SHAPES[opcode] != SHAPE_S) break;
        if (UNLIKELY((size_t)(end - key) < len)) break;
        straight_text(value++, key, len);
        straight_frame(frame, at, HEADER_LEN + 2 + len, index++, 1, head);
        at = key + len;
    }
    c->at = at;
    c->frame = frame;
    c->value = value;
    c->index = index;
}

/* Whole frames that are a key and a value, and options of which none is set: SET, and others like it. */
NOINLINE static void straight_pairs(struct cursor *c) {
    const unsigned char *at = c->at, *const end = c->end, *const last = end - (HEADER_LEN + 2);
    respb_frame *frame = c->frame, *const frames_end = frame + straight_room(c, 2);
    respb_value *value = c->value;
    uint32_t index = (uint32_t)c->index;
    const size_t value_max = c->visible_max - STRAIGHT_KEY_MAX;
    for (; frame < frames_end && at <= last; frame++) {
        const unsigned char *key = at + HEADER_LEN + 2, *bytes;
        uint32_t head = be32(at);
        uint32_t key_len = be16(at + HEADER_LEN), len, opcode = head >> 16;
        if (UNLIKELY(opcode > CORE_LAST) || SHAPES[opcode] != SHAPE_SBO) break;
        if (UNLIKELY((size_t)(end - key) < (size_t)key_len + 5)) break;
        bytes = key + key_len;
        len = be32(bytes);
        bytes += 4;
        /* The options are the byte behind the value. */
        if (UNLIKELY((size_t)(end - bytes) <= len || bytes[len] != 0 || len > value_max)) break;
        straight_text(value, key, key_len);
        straight_text(value + 1, bytes, len);
        straight_frame(frame, at, (size_t)(bytes - at) + len + 1, index, 2, head);
        at = bytes + len + 1;
        value += 2, index += 2;
    }
    c->at = at;
    c->frame = frame;
    c->value = value;
    c->index = index;
}

/* Whole frames that are a list, behind a key (`keyed`) or nothing: MGET, DEL, SADD, and others like them. */
INLINE void straight_lists(struct cursor *c, unsigned shape, size_t keyed) {
    const unsigned char *at = c->at, *const end = c->end, *const last = end - (HEADER_LEN + 2);
    respb_frame *frame = c->frame, *const frames_end = c->frames_end;
    respb_value *value = c->value, *const values_last = c->values_end - RESPB_VALUES_MIN;
    uint32_t index = (uint32_t)c->index;
    for (; frame < frames_end && at <= last; frame++) {
        const unsigned char *list = at + HEADER_LEN, *behind;
        uint32_t head = be32(at), count;
        if (UNLIKELY(head >> 16 > CORE_LAST) || SHAPES[head >> 16] != shape) break;
        if (keyed) {
            size_t len = be16(list);
            if ((size_t)(end - list) < len + 4 || value > values_last) break;
            straight_text(value, list + 2, len);
            list += len + 2;
        }
        count = be16(list);
        if (UNLIKELY(values_last - value < (ptrdiff_t)count)) break;
        behind = straight_list(list + 2, end, count, value + keyed);
        if (UNLIKELY(!behind) || (size_t)(behind - at) > c->visible_max) break;
        count += (uint32_t)keyed;
        straight_frame(frame, at, (size_t)(behind - at), index, count, head);
        index += count;
        value += count;
        at = behind;
    }
    c->at = at;
    c->frame = frame;
    c->value = value;
    c->index = index;
}

NOINLINE static void straight_bare(struct cursor *c) { straight_lists(c, SHAPE_L, 0); }

NOINLINE static void straight_keyed(struct cursor *c) { straight_lists(c, SHAPE_SL, 1); }

/* A frame that is nothing but a header: PING, and others like it. */
static void straight_empty(struct cursor *c) {
    straight_frame(c->frame++, c->at, HEADER_LEN, c->index, 0, be32(c->at));
    c->at += HEADER_LEN;
}

/* Takes whole frames of the commonest layouts, as long as there are such and there is room for them. */
static void straight(struct cursor *c) {
    const unsigned char *before = NULL;
    while (c->at != before && c->end - c->at >= HEADER_LEN + 2 && straight_room(c, 1) > 0) {
        uint32_t opcode = be16(c->at);
        before = c->at;
        if (opcode > CORE_LAST) return;
        switch (SHAPES[opcode]) {
        case SHAPE_EMPTY: straight_empty(c); break;
        case SHAPE_S: straight_keys(c); break;
        case SHAPE_SBO: straight_pairs(c); break;
        case SHAPE_L: straight_bare(c); break;
        case SHAPE_SL: straight_keyed(c); break;
        default: return;
        }
    }
}

#endif
