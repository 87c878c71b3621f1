/* fit.h: the way back from arguments to a typed frame (specification, section E.1).
 *
 * Either it finds the frame whose decoding gives these arguments back, or it gives up and the caller sends ARGV, which says
 * everything. */
#ifndef RESPB_FIT_H
#define RESPB_FIT_H

struct fitting {
    const struct arguments *args;
    struct out *out;
    size_t next;
    int fold;
};

static size_t fitting_left(const struct fitting *f) { return f->args->len - f->next; }

/* Whether the words of WORDS[at] stand at argument `index`. */
static int words_at(const struct fitting *f, size_t index, unsigned at) {
    unsigned left = WORDS[at++];
    for (; left > 0; left--, index++) {
        size_t len = WORDS[at];
        const char *word = (const char *)WORDS + at + 1;
        const respb_value *value;
        if (index >= f->args->len) return 0;
        value = argument(f->args, index);
        if ((value->kind != RESPB_BYTES && value->kind != RESPB_KEYWORD) || value->len != len) return 0;
        if (f->fold && value->kind == RESPB_BYTES ? !same_word(value->value.data, word, len)
                                                  : memcmp(value->value.data, word, len) != 0) {
            return 0;
        }
        at += 1 + (unsigned)len;
    }
    return 1;
}

static int integer_of(const respb_value *value, int64_t *number) {
    if (value->kind == RESPB_INTEGER) *number = value->value.integer;
    return value->kind == RESPB_INTEGER ||
           (value->kind == RESPB_BYTES && parse_integer(value->value.data, value->len, number));
}

static int double_of(const respb_value *value, double *number) {
    const int64_t whole_max = (int64_t)1 << 53; /* up to here every whole number is a double */
    switch (value->kind) {
    case RESPB_DOUBLE: *number = value->value.number; return *number == *number;
    case RESPB_INTEGER:
        *number = (double)value->value.integer;
        return value->value.integer >= -whole_max && value->value.integer <= whole_max;
    case RESPB_BYTES: return parse_double(value->value.data, value->len, number);
    default: return 0;
    }
}

/* Writes argument `index` as a field that is one argument. */
static int fit_value(struct fitting *f, const struct field *field, size_t index) {
    const respb_value *value = argument(f->args, index);
    char text[DOUBLE_TEXT_MAX];
    const char *data;
    int64_t number;
    double real;
    uint64_t bits;
    size_t len;
    switch (field->kind) {
    case STR16:
    case BLOB32:
        data = text_of(value, text, &len);
        if (field->kind == STR16 && len > 0xFFFF) return 0;
        if (field->kind == STR16) append16(f->out, (unsigned)len);
        else append32(f->out, (uint32_t)len);
        append(f->out, data, len);
        return 1;
    case I64:
        if (!integer_of(value, &number)) return 0;
        append64(f->out, (uint64_t)number);
        return 1;
    case U16:
        if (!integer_of(value, &number) || number < 0 || number > 0xFFFF) return 0;
        append16(f->out, (unsigned)number);
        return 1;
    case U8:
        if (!integer_of(value, &number) || number < 0 || number > 0xFF) return 0;
        append8(f->out, (unsigned)number);
        return 1;
    case F64:
        if (!double_of(value, &real)) return 0;
        memcpy(&bits, &real, sizeof bits);
        append64(f->out, bits);
        return 1;
    default: return 0;
    }
}

/* A value of several keywords or one: of those that are there the one with the most. */
static int fit_enum(struct fitting *f, const struct field *field) {
    unsigned count = VALUES[field->sub], i, best = count, most = 0;
    for (i = 0; i < count; i++) {
        unsigned words = VALUES[field->sub + 1 + i];
        if (!words_at(f, f->next, words) || WORDS[words] < most) continue;
        best = i;
        most = WORDS[words];
    }
    if (best == count) return 0;
    append8(f->out, best);
    f->next += most;
    return 1;
}

/* The fewest arguments that fields take. */
static size_t arguments_min(const struct field *fields, size_t len) {
    size_t sum = 0;
    for (; len > 0; fields++, len--) {
        sum += WORDS[fields->words];
        if (fields->kind == LIST) {
            const struct list *list = &LISTS[fields->sub];
            sum += list->counted + (size_t)list->min * list->width;
        } else {
            sum += fields->kind != OPTS8;
        }
    }
    return sum;
}

static int is_option(const struct fitting *f, const struct options *options, size_t index) {
    unsigned i;
    for (i = 0; i < options->bits_len; i++) {
        if (words_at(f, index, BITS[options->bits + i].words)) return 1;
    }
    return 0;
}

/* How many arguments belong to a list that does not say: all but those that later fields need, or all before the first option.
 * SIZE_MAX when there are not enough. */
static size_t uncounted(const struct fitting *f, const struct field *after, size_t len) {
    size_t index = f->next, min;
    if (len == 1 && after->kind == OPTS8) {
        while (index < f->args->len && !is_option(f, &OPTIONS[after->sub], index)) index++;
        return index - f->next;
    }
    min = arguments_min(after, len);
    return min > fitting_left(f) ? SIZE_MAX : fitting_left(f) - min;
}

static int fit_list(struct fitting *f, const struct field *field, const struct field *after, size_t after_len) {
    const struct list *list = &LISTS[field->sub];
    size_t width = list->width, count, row, column;
    if (list->counted) {
        int64_t number;
        if (fitting_left(f) == 0 || !integer_of(argument(f->args, f->next), &number) || number < 0) return 0;
        f->next++;
        if (number > 0xFFFF) return 0;
        count = (size_t)number;
    } else {
        count = uncounted(f, after, after_len);
        if (count == SIZE_MAX || count % width != 0) return 0;
        count /= width;
    }
    if (count < list->min || fitting_left(f) / width < count || count > 0xFFFF) return 0;
    append16(f->out, (unsigned)count);
    for (row = 0; row < count; row++) {
        for (column = 0; column < width; column++) {
            size_t offset = list->transposed ? column * count + row : row * width + column;
            if (!fit_value(f, &FIELDS[list->items + column], f->next + offset)) return 0;
        }
    }
    f->next += count * width;
    return 1;
}

/* The bit that the next argument names; where it names none, the next positional one that it can be. -1 for none. */
static int next_option(const struct fitting *f, const struct options *options, unsigned bits, unsigned lowest, size_t reserved) {
    unsigned i;
    for (i = 0; i < options->bits_len; i++) {
        const struct bit *bit = &BITS[options->bits + i];
        if (!(bits >> i & 1) && bit->words && words_at(f, f->next, bit->words)) return (int)i;
    }
    for (i = lowest; i < options->bits_len; i++) {
        const struct bit *bit = &BITS[options->bits + i];
        if (!bit->words && !(bit->requires & ~bits) && fitting_left(f) >= bit->width + reserved) return (int)i;
    }
    return -1;
}

/* Finds which bits are given and where, then writes them in their order. `reserved` arguments belong to the fields behind. */
static int fit_options(struct fitting *f, const struct field *field, size_t reserved) {
    const struct options *options = &OPTIONS[field->sub];
    size_t found[8];
    unsigned bits = 0, lowest = 0, i, j;
    int ordered = !f->fold;
    for (i = 0; i < options->bits_len; i++) ordered |= !BITS[options->bits + i].words;
    while (fitting_left(f) > reserved) {
        int index = next_option(f, options, bits, lowest, reserved);
        const struct bit *bit;
        if (index < 0 || (ordered && (unsigned)index < lowest)) break;
        bit = &BITS[options->bits + index];
        bits |= 1u << index;
        lowest = (unsigned)index + 1;
        found[index] = f->next + WORDS[bit->words];
        f->next = found[index] + bit->width;
        if (f->next > f->args->len || fitting_left(f) < reserved) return 0;
    }
    if (wrong_bits(options, bits)) return 0;
    append8(f->out, bits);
    for (i = 0; i < options->bits_len; i++) {
        const struct bit *bit = &BITS[options->bits + i];
        for (j = 0; (bits >> i & 1) && j < bit->width; j++) {
            if (!fit_value(f, &FIELDS[bit->fields + j], found[i] + j)) return 0;
        }
    }
    return 1;
}

static int fit_fields(struct fitting *f, const struct field *fields, size_t len) {
    for (; len > 0; fields++, len--) {
        if (!words_at(f, f->next, fields->words)) return 0;
        f->next += WORDS[fields->words];
        if (fields->kind == LIST) {
            if (!fit_list(f, fields, fields + 1, len - 1)) return 0;
        } else if (fields->kind == OPTS8) {
            if (!fit_options(f, fields, arguments_min(fields + 1, len - 1))) return 0;
        } else if (fields->kind == ENUM) {
            if (!fit_enum(f, fields)) return 0;
        } else {
            if (fitting_left(f) == 0 || !fit_value(f, fields, f->next)) return 0;
            f->next++;
        }
    }
    return f->next == f->args->len;
}

/* Writes the typed frame if there is one that says the same. */
static int encode_typed(struct out *out, uint16_t channel, const struct arguments *args, int fold) {
    const respb_value *name = argument(args, 0);
    const respb_command *command = NULL;
    const struct layout *layout;
    struct fitting fitting;
    if (name->kind == RESPB_BYTES || name->kind == RESPB_KEYWORD) command = find(RESPB_NO_COMMAND, name->value.data, name->len);
    if (!command || (!fold && memcmp(command->name, name->value.data, name->len) != 0)) return 0;
    append16(out, command->opcode);
    append16(out, channel);
    if (command->opcode == MODULE) append16(out, command->module), append16(out, command->module_command);
    layout = &LAYOUTS[command->id];
    if (layout->len == ARGS_LAYOUT) {
        encode_sized(out, args, 1);
        return 1;
    }
    fitting.args = args;
    fitting.out = out;
    fitting.next = 1;
    fitting.fold = fold;
    return fit_fields(&fitting, &FIELDS[layout->fields], layout->len);
}

#endif
