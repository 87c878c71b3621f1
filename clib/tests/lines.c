/* lines.c: see lines.h. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

static void broken(const char *what) {
    fprintf(stderr, "broken line: %s\n", what);
    exit(2);
}

static void *grown(void *old, size_t size) {
    void *made = realloc(old, size ? size : 1);
    if (!made) broken("no memory");
    return made;
}

static int digit(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    return -1;
}

/* One piece, hex or hex*count, appended; returns what follows it. */
static const char *piece(const char *text, struct bytes *out) {
    size_t digits = 0;
    unsigned long count = 1, i;
    const char *end;
    while (digit(text[digits]) >= 0) digits++;
    end = text + digits;
    if (*end == '*') {
        char *behind;
        count = strtoul(end + 1, &behind, 10);
        end = behind;
    }
    out->data = (char *)grown(out->data, out->len + digits / 2 * count);
    for (i = 0; i < count; i++) {
        size_t j;
        for (j = 0; j + 1 < digits; j += 2) {
            out->data[out->len++] = (char)(digit(text[j]) << 4 | digit(text[j + 1]));
        }
    }
    return end;
}

static struct bytes bytes(const char *text) {
    struct bytes out;
    out.data = (char *)grown(NULL, 0);
    out.len = 0;
    if (strcmp(text, "-") == 0) return out;
    for (;;) {
        text = piece(text, &out);
        if (*text == 0) return out;
        if (*text++ != ',') broken(text);
    }
}

static void limit(respb_limits *limits, const char *text) {
    char name[64];
    unsigned long number;
    if (sscanf(text, "%63s %lu", name, &number) != 2) broken(text);
    if (strcmp(name, "arguments_max") == 0) limits->arguments_max = (uint32_t)number;
    else if (strcmp(name, "argument_bytes_max") == 0) limits->argument_bytes_max = (uint32_t)number;
    else if (strcmp(name, "frame_bytes_max") == 0) limits->frame_bytes_max = (uint32_t)number;
    else if (strcmp(name, "inline_bytes_max") == 0) limits->inline_bytes_max = (uint32_t)number;
    else if (strcmp(name, "elements_max") == 0) limits->elements_max = (uint32_t)number;
    else if (strcmp(name, "nesting_max") == 0) limits->nesting_max = (uint8_t)number;
    else if (strcmp(name, "unauthenticated") == 0) limits->unauthenticated = (uint8_t)number;
    else broken(text);
}

static int kind_of(const char *name) {
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"bytes", RESPB_BYTES}, {"integer", RESPB_INTEGER}, {"double", RESPB_DOUBLE},
                 {"keyword", RESPB_KEYWORD}, {"simple", RESPB_SIMPLE}, {"error", RESPB_ERROR},
                 {"big", RESPB_BIG_NUMBER}, {"verbatim", RESPB_VERBATIM}, {"boolean", RESPB_BOOLEAN},
                 {"null", RESPB_NULL}, {"null_array", RESPB_NULL_ARRAY}, {"array", RESPB_ARRAY},
                 {"map", RESPB_MAP}, {"set", RESPB_SET}, {"push", RESPB_PUSH}, {"attribute", RESPB_ATTRIBUTE}};
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].kind;
    }
    broken(name);
    return -1;
}

static void value(struct vector *vector, char *text) {
    struct expected *made;
    char *rest = strchr(text, ' ');
    if (vector->values_len == vector->values_capacity) {
        vector->values_capacity = vector->values_capacity * 2 + 16;
        vector->values =
            (struct expected *)grown(vector->values, vector->values_capacity * sizeof *vector->values);
    }
    made = &vector->values[vector->values_len++];
    memset(made, 0, sizeof *made);
    if (rest) *rest++ = 0;
    made->kind = kind_of(text);
    switch (made->kind) {
    case RESPB_NULL:
    case RESPB_NULL_ARRAY: break;
    case RESPB_DOUBLE: made->bits = strtoull(rest, NULL, 16); break;
    case RESPB_VERBATIM:
        memcpy(made->format, rest, 3);
        made->text = bytes(rest + 4);
        break;
    case RESPB_BYTES:
    case RESPB_KEYWORD:
    case RESPB_SIMPLE:
    case RESPB_ERROR:
    case RESPB_BIG_NUMBER: made->text = bytes(rest); break;
    default: made->integer = strtoll(rest, NULL, 10);
    }
}

static void clear(struct vector *vector) {
    size_t i;
    for (i = 0; i < vector->values_len; i++) free(vector->values[i].text.data);
    free(vector->values);
    free(vector->wire.data);
    free(vector->argv.data);
    free(vector->canonical.data);
    memset(vector, 0, sizeof *vector);
    respb_limits_default(&vector->limits);
    vector->default_limits = 1;
}

static void copy(char *out, size_t size, const char *text) {
    if (strlen(text) >= size) broken(text);
    strcpy(out, text);
}

/* One line of a vector. */
static void member(struct vector *vector, const char *name, char *rest) {
    if (strcmp(name, "v") == 0) value(vector, rest);
    else if (strcmp(name, "protocol") == 0) vector->protocol = atoi(rest);
    else if (strcmp(name, "profile") == 0) copy(vector->profile, sizeof vector->profile, rest);
    else if (strcmp(name, "direction") == 0) vector->request = strcmp(rest, "request") == 0;
    else if (strcmp(name, "limit") == 0) limit(&vector->limits, rest), vector->default_limits = 0;
    else if (strcmp(name, "folded") == 0) vector->folded = 1;
    else if (strcmp(name, "encode_only") == 0) vector->encode_only = 1;
    else if (strcmp(name, "wire") == 0) vector->wire = bytes(rest);
    else if (strcmp(name, "argv") == 0) vector->argv = bytes(rest);
    else if (strcmp(name, "canonical") == 0) vector->canonical = bytes(rest);
    else if (strcmp(name, "frame") == 0) copy(vector->frame, sizeof vector->frame, rest);
    else if (strcmp(name, "command") == 0) copy(vector->command, sizeof vector->command, rest);
    else if (strcmp(name, "channel") == 0) vector->channel = strtoul(rest, NULL, 10);
    else if (strcmp(name, "options") == 0) vector->options = strtoul(rest, NULL, 10);
    else if (strcmp(name, "opcode") == 0) vector->opcode = strtoul(rest, NULL, 10);
    else if (strcmp(name, "number") == 0) vector->number = strtoul(rest, NULL, 10);
    else if (strcmp(name, "last") == 0) vector->last = strtoul(rest, NULL, 10);
    else if (strcmp(name, "error") == 0) {
        if (sscanf(rest, "%63s %lu", vector->error, &vector->offset) != 2) broken(rest);
    } else {
        broken(name);
    }
}

int lines_next(FILE *file, struct vector *vector) {
    static char *line;
    static size_t capacity;
    clear(vector);
    for (;;) {
        char *rest;
        ssize_t len = getline(&line, &capacity, file);
        if (len < 0) {
            free(line);
            line = NULL;
            capacity = 0;
            return 0;
        }
        if (len > 0 && line[len - 1] == '\n') line[len - 1] = 0;
        if (strcmp(line, "end") == 0) return 1;
        rest = strchr(line, ' ');
        if (!rest) broken(line);
        *rest++ = 0;
        if (strcmp(line, "vector") == 0) copy(vector->id, sizeof vector->id, rest);
        else member(vector, line, rest);
    }
}
