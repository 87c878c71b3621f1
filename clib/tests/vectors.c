/* vectors.c: every conformance vector through the C library.
 *
 * Owns the ways of feeding: whole, with other bytes behind, byte by byte, cut at every byte, in chunks through the smallest array,
 * through an array that grows. Pieces are copies of exactly their length, freed after the call, so that a sanitizer sees what
 * is read outside them or kept from them.
 *
 * vectors FILE: the lines that `vectors_to_lines` wrote. Compiled with RESPB_CHANNELS_ONLY it takes those of *Channels*. */
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "encode.h"
#include "run.h"

/* Longest frame that is cut at every byte; longer ones near both ends and now and then between. */
#define EVERY_BYTE_MAX 600
#define ENDS 24
#define BETWEEN 8

/* Fewer vectors than these mean that some were not read. */
#ifdef RESPB_CHANNELS_ONLY
#define VECTORS_MIN 800
#else
#define VECTORS_MIN 5000
#endif

/* The cut after `cut`. */
static size_t next_cut(size_t cut, size_t total) {
    if (total <= EVERY_BYTE_MAX || cut < ENDS || cut >= total - ENDS) return cut + 1;
    cut += (total - 2 * ENDS) / BETWEEN + 1;
    return cut < total - ENDS ? cut : total - ENDS;
}

/* Feeds a copy of the first `len` bytes, with `extra` bytes of another frame behind, which is gone afterwards. */
static respb_status feed_copy(struct run *run, const struct vector *vector, size_t len, size_t extra, int filler) {
    char *copy = (char *)malloc(len + extra + !(len + extra));
    respb_status status;
    expect(copy != NULL, vector, "memory", 0);
    memcpy(copy, vector->wire.data, len);
    memset(copy + len, filler, extra);
    status = run_feed(run, copy, len + extra);
    free(copy);
    return status;
}

static int frame_kind(const char *name) {
    static const char *const names[] = {"resp", "core", "module", "argv", "passthrough", "close", "cancel",
                                        "window", "goaway", "fragment", "unknown", "ignored", "reply", "push"};
    int i;
    for (i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

static void check_head(const struct vector *vector, const respb_frame *frame) {
#ifndef RESPB_NO_TYPED
    const respb_command *command = respb_command_get(frame->command);
    expect((command != NULL) == (vector->command[0] != 0), vector, "command", frame->command);
    expect(!command || strcmp(command->name, vector->command) == 0, vector, "name", frame->command);
#endif
    expect(frame->kind == frame_kind(vector->frame), vector, "kind of frame", frame->kind);
    expect(frame->len == vector->wire.len, vector, "length of frame", frame->len);
    expect(frame->channel == vector->channel, vector, "channel", frame->channel);
    expect(frame->options == vector->options, vector, "options", frame->options);
    expect(frame->number == (frame->kind == RESPB_FRAME_FRAGMENT ? vector->last : vector->number), vector, "number",
           frame->number);
    expect(!vector->opcode || frame->opcode == vector->opcode, vector, "opcode", frame->opcode);
}

static void check_text(const struct vector *vector, const struct expected *wanted, const respb_value *value) {
    if (value->kind == RESPB_QUOTED) {
        char *text = (char *)malloc(value->len + 1);
        size_t len = respb_value_text(value, text, value->len);
        expect(len == wanted->text.len && memcmp(text, wanted->text.data, len) == 0, vector, "quoted", len);
        free(text);
        return;
    }
    expect(value->kind == wanted->kind, vector, "kind of text", value->kind);
    expect(value->len == wanted->text.len, vector, "length of text", value->len);
    expect(memcmp(value->value.data, wanted->text.data, value->len) == 0, vector, "text", value->kind);
    expect(memcmp(value->format, wanted->format, 3) == 0, vector, "format", 0);
}

/* A streamed text: its chunks are together what was wanted. */
static const respb_value *check_chunks(const struct vector *vector, const struct expected *wanted,
                                       const respb_value *value) {
    size_t at = 0;
    for (value++; value->kind == RESPB_BYTES; value++) {
        expect(at + value->len <= wanted->text.len, vector, "chunk", at);
        expect(memcmp(value->value.data, wanted->text.data + at, value->len) == 0, vector, "chunk", at);
        at += value->len;
    }
    expect(value->kind == RESPB_CLOSE && at == wanted->text.len, vector, "chunks", at);
    return value + 1;
}

/* Compares one value with what is wanted, with its elements; moves both on. Depth is bounded by RESPB_NESTING_MAX. */
static const respb_value *check_value(const struct vector *vector, const struct expected **wanted,
                                      const respb_value *value) {
    const struct expected *want = (*wanted)++;
    int64_t width = want->kind == RESPB_MAP || want->kind == RESPB_ATTRIBUTE ? 2 : 1, i = 0;
    uint64_t bits;
    switch (want->kind) {
    case RESPB_INTEGER:
    case RESPB_BOOLEAN:
        expect(value->kind == want->kind && value->value.integer == want->integer, vector, "integer", value->kind);
        return value + 1;
    case RESPB_DOUBLE:
        memcpy(&bits, &value->value.number, sizeof bits);
        expect(value->kind == want->kind && bits == want->bits, vector, "double", value->kind);
        return value + 1;
    case RESPB_NULL:
    case RESPB_NULL_ARRAY: expect(value->kind == want->kind, vector, "null", value->kind); return value + 1;
    case RESPB_BYTES:
        if (value->kind == RESPB_TEXT) return check_chunks(vector, want, value);
        /* fall through */
    case RESPB_KEYWORD:
    case RESPB_SIMPLE:
    case RESPB_ERROR:
    case RESPB_BIG_NUMBER:
    case RESPB_VERBATIM: check_text(vector, want, value); return value + 1;
    default: break;
    }
    expect(value->kind == want->kind, vector, "kind of aggregate", value->kind);
    expect(value->value.integer == want->integer || value->value.integer == -1, vector, "count", 0);
    if (value->value.integer == -1) {
        for (value++; value->kind != RESPB_CLOSE; i++) value = check_value(vector, wanted, value);
        expect(i == want->integer * width, vector, "streamed count", (unsigned long)i);
        return value + 1;
    }
    for (value++; i < want->integer * width; i++) value = check_value(vector, wanted, value);
    if (want->kind == RESPB_ATTRIBUTE) value = check_value(vector, wanted, value);
    return value;
}

static void check_values(const struct vector *vector, const struct run *run) {
    const struct expected *wanted = vector->values, *end = vector->values + vector->values_len;
    const respb_value *value = run->batch.values + run->frame.first;
    /* The bytes of a control frame are there even where a vector does not name them. */
    while (wanted < end) value = check_value(vector, &wanted, value);
    expect(value == run->batch.values + run->frame.first + run->frame.count, vector, "values", run->frame.count);
}

static void same(const struct vector *vector, const struct run *whole, const struct run *run, const char *how,
                 size_t cut) {
    expect(run->digest == whole->digest && run->values == whole->values, vector, how, (unsigned long)cut);
    expect(run->batch.consumed == vector->wire.len, vector, how, (unsigned long)cut);
    expect(run->batch.taken + run->frame.count == run->values, vector, how, (unsigned long)run->batch.taken);
}

/* Piece by piece: each call has more bytes than the one before, at another place. */
static void in_pieces(const struct vector *vector, const struct run *whole, size_t capacity, int keep) {
    size_t cut, total = vector->wire.len;
    struct run run;
    run_init(&run, vector, capacity, keep);
    for (cut = 0; cut < total; cut = next_cut(cut, total)) {
        respb_status status = feed_copy(&run, vector, cut, 0, 0);
        expect(status == (cut ? RESPB_INCOMPLETE : RESPB_OK), vector, "piece", (unsigned long)cut);
        expect(!cut || (run.batch.need > cut && run.batch.need <= total), vector, "need", (unsigned long)cut);
    }
    /* Digesting happens inside the call, while the copy is there. */
    expect(feed_copy(&run, vector, total, 0, 0) == RESPB_OK, vector, "last piece", 0);
    same(vector, whole, &run, "pieces", 0);
    run_free(&run);
}

static void cut_once(const struct vector *vector, const struct run *whole, size_t cut) {
    struct run run;
    run_init(&run, vector, whole->values + RESPB_VALUES_MIN, 1);
    if (cut) expect(feed_copy(&run, vector, cut, 0, 0) == RESPB_INCOMPLETE, vector, "cut", (unsigned long)cut);
    expect(feed_copy(&run, vector, vector->wire.len, 0, 0) == RESPB_OK, vector, "cut", (unsigned long)cut);
    same(vector, whole, &run, "cut", cut);
    run_free(&run);
}

static void valid(const struct vector *vector) {
    static const int fillers[] = {0x00, 0xFF, '\n', '*'};
    size_t cut, i, total = vector->wire.len;
    struct run whole, run;
    run_init(&whole, vector, 1 << 10, 1);
    expect(run_feed(&whole, vector->wire.data, total) == RESPB_OK, vector, "whole", whole.batch.error);
    check_head(vector, &whole.frame);
    check_values(vector, &whole);
    same(vector, &whole, &whole, "whole", 0);
    encode_again(vector, &whole);
    for (i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        run_init(&run, vector, 64, 1);
        expect(feed_copy(&run, vector, total, 16, fillers[i]) == RESPB_OK, vector, "with bytes behind", i);
        same(vector, &whole, &run, "with bytes behind", i);
        run_free(&run);
    }
    run_init(&run, vector, RESPB_VALUES_MIN, 0);
    expect(feed_copy(&run, vector, total, 0, 0) == RESPB_OK, vector, "in chunks", 0);
    same(vector, &whole, &run, "in chunks", 0);
    run_free(&run);
    run_init(&run, vector, RESPB_VALUES_MIN, 1);
    expect(feed_copy(&run, vector, total, 0, 0) == RESPB_OK, vector, "growing", 0);
    same(vector, &whole, &run, "growing", 0);
    run_free(&run);
    in_pieces(vector, &whole, whole.values + RESPB_VALUES_MIN, 1);
    in_pieces(vector, &whole, RESPB_VALUES_MIN, 1);
    in_pieces(vector, &whole, RESPB_VALUES_MIN + 3, 0);
    for (cut = 0; cut < total; cut = next_cut(cut, total)) cut_once(vector, &whole, cut);
    run_free(&whole);
}

static int is_wrong(const struct vector *vector, const struct run *run, respb_status status) {
    const char *name = respb_error_name(run->batch.error);
    const char *text = respb_error_text(run->batch.error);
    return status == RESPB_INVALID && name && text && strcmp(name, vector->error) == 0 &&
           run->batch.error_offset == vector->offset && strncmp(text, "Protocol error: ", 16) == 0;
}

static void invalid(const struct vector *vector) {
    size_t cut, found = 0, total = vector->wire.len;
    struct run run;
    respb_status status = RESPB_OK;
    run_init(&run, vector, 64, 1);
    status = feed_copy(&run, vector, total, 0, 0);
    expect(is_wrong(vector, &run, status), vector, "whole", run.batch.error);
    status = feed_copy(&run, vector, total, 0, 0);
    expect(is_wrong(vector, &run, status), vector, "asked again", run.batch.error);
    run_free(&run);
    run_init(&run, vector, RESPB_VALUES_MIN, 0);
    status = feed_copy(&run, vector, total, 16, 0xFF);
    expect(is_wrong(vector, &run, status), vector, "with bytes behind", run.batch.error);
    run_free(&run);
    run_init(&run, vector, 64, 1);
    for (cut = 0; cut <= total; cut = cut == total ? total + 1 : next_cut(cut, total)) {
        status = feed_copy(&run, vector, cut, 0, 0);
        if (status == RESPB_INVALID) break;
        expect(status == (cut ? RESPB_INCOMPLETE : RESPB_OK) && cut < total, vector, "piece", (unsigned long)cut);
    }
    expect(is_wrong(vector, &run, status), vector, "pieces", (unsigned long)cut);
    found = cut;
    run_free(&run);
    for (cut = 1; cut < found; cut = next_cut(cut, total)) {
        run_init(&run, vector, 64, 1);
        expect(feed_copy(&run, vector, cut, 0, 0) == RESPB_INCOMPLETE, vector, "cut", (unsigned long)cut);
        status = feed_copy(&run, vector, total, 0, 0);
        expect(is_wrong(vector, &run, status), vector, "cut", (unsigned long)cut);
        run_free(&run);
    }
}

int main(int argc, char **argv) {
    static struct vector vector;
    unsigned long count = 0, wrong = 0;
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: vectors FILE\n");
        return 2;
    }
    while (lines_next(file, &vector)) {
#ifdef RESPB_CHANNELS_ONLY
        if (strcmp(vector.profile, "channels") != 0) continue;
#endif
        if (vector.encode_only) encode_only(&vector);
        else if (vector.error[0]) invalid(&vector), wrong++;
        else valid(&vector);
        count++;
    }
    fclose(file);
    printf("%lu vectors (%lu invalid), %lu calls of the library, %lu allocations in them\n", count, wrong, lib_calls(),
           lib_allocations());
    expect(lib_allocations() == 0, NULL, "the library allocates", lib_allocations());
    expect(count >= VECTORS_MIN, NULL, "vectors are missing", count);
    return 0;
}
