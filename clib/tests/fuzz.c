/* fuzz.c: the C library beside the Rust codec, for libFuzzer: whatever the bytes, both say the same.
 *
 * Owns the C half of the comparison, and the ways of feeding: whole, and in pieces through small arrays, from copies that are freed.
 * The first byte of the input chooses what is compared, the second limits or a form.
 *
 * Compiled with ALONE there is no Rust: what the ways of feeding say is compared with each other, and every byte that the library gives
 * is looked at, for MemorySanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "respb.h"
#include "shown.h"

#ifndef ALONE
size_t weft_shows(uint8_t mode, uint8_t choice, const uint8_t *data, size_t len, uint8_t *out, size_t capacity);
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESPB_REQUESTS, RESPB_REPLIES, RESP_REQUESTS, RESP_REPLIES, EXACT, FOLD, REPLIES_AGAIN, NUMBERS, MODES };

/* The most that is fed; what is shown of it is bounded then. */
#define INPUT_MAX 4096

/* `other` is what the Rust codec makes of it, or what the C library made of it when it was fed otherwise. */
static struct shown of_c, other;

static void add_number(struct shown *shown, uint64_t number, int bytes) {
    for (; bytes > 0; bytes--, number >>= 8) {
        uint8_t low = (uint8_t)number;
        add(shown, &low, 1);
    }
}

static void add_values(struct shown *shown, const respb_value *values, size_t count) {
    for (; count > 0; values++, count--) {
        uint64_t number = (uint64_t)values->value.integer;
        switch (values->kind) {
        case RESPB_VERBATIM: add(shown, values->format, 3); /* fall through */
        case RESPB_BYTES:
        case RESPB_QUOTED:
        case RESPB_KEYWORD:
        case RESPB_SIMPLE:
        case RESPB_ERROR:
        case RESPB_BIG_NUMBER:
            add_number(shown, values->kind, 1);
            add_number(shown, values->len, 4);
            add(shown, values->value.data, values->len);
            continue;
        case RESPB_DOUBLE:
            if (values->value.number != values->value.number) number = 0;
            else memcpy(&number, &values->value.number, sizeof number);
            break;
        case RESPB_NULL:
        case RESPB_NULL_ARRAY:
        case RESPB_CLOSE:
        case RESPB_TEXT: number = 0; break;
        default: break;
        }
        add_number(shown, values->kind, 1);
        add_number(shown, number, 8);
    }
}

static void add_frame(struct shown *shown, const respb_frame *frame) {
    add_number(shown, 0xF0, 1);
    add_number(shown, frame->len, 4);
    add_number(shown, frame->channel, 2);
    add_number(shown, frame->kind, 1);
    add_number(shown, frame->number, 4);
    add_number(shown, frame->options, 1);
}

static void limits_of(respb_limits *limits, uint8_t choice) {
    respb_limits_default(limits);
    if (!(choice & 1)) return;
    limits->arguments_max = 5;
    limits->argument_bytes_max = 20;
    limits->frame_bytes_max = 64;
    limits->inline_bytes_max = 24;
    limits->nesting_max = 3;
    limits->elements_max = 4;
    limits->unauthenticated = choice >> 1 & 1;
}

/* Decodes a stream whose next `piece` bytes arrive at a time, with so many places. */
static void decode(uint8_t mode, uint8_t choice, const uint8_t *data, size_t len, size_t piece, size_t frames_len,
                   size_t values_len) {
    respb_request_decoder requests;
    respb_reply_decoder replies;
    respb_frame frames[16];
    respb_value values[512];
    respb_limits limits;
    respb_batch batch;
    size_t at = 0, there = 0, whole = 0;
    int protocol = mode <= RESPB_REPLIES ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP3;
    respb_status status = RESPB_OK;
    limits_of(&limits, choice);
    if (respb_request_decoder_init(&requests, sizeof requests, protocol, &limits) != RESPB_OK) abort();
    if (respb_reply_decoder_init(&replies, sizeof replies, protocol, &limits) != RESPB_OK) abort();
    memset(&batch, 0, sizeof batch);
    batch.frames = frames, batch.frames_capacity = frames_len;
    batch.values = values, batch.values_capacity = values_len;
    of_c.len = 0;
    for (;;) {
        uint8_t *copy;
        size_t i;
        if (status != RESPB_FULL) {
            if (there == len) break;
            there = len - there < piece ? len : there + piece;
        }
        copy = (uint8_t *)malloc(there - at + 1);
        if (there > at) memcpy(copy, data + at, there - at);
        status = mode % 2 ? respb_decode_replies(&replies, copy, there - at, &batch)
                          : respb_decode_requests(&requests, copy, there - at, &batch);
        for (i = 0; i < batch.frames_len; i++) {
            add_values(&of_c, values + frames[i].first, frames[i].count);
            add_frame(&of_c, &frames[i]);
            whole = of_c.len;
        }
        at += batch.consumed;
        if (status == RESPB_FULL && batch.frames_len == 0) {
            add_values(&of_c, values + batch.partial, batch.values_len - batch.partial);
            if (respb_batch_take(&batch) == 0) abort();
        }
        free(copy);
        if (status < 0) break;
    }
    of_c.len = whole;
    if (status == RESPB_INVALID) add(&of_c, respb_error_name(batch.error), strlen(respb_error_name(batch.error)));
    else if (status < 0) abort();
    add_number(&of_c, status == RESPB_INVALID ? batch.error_offset : 0, 4);
    add_number(&of_c, at, 4);
}

/* A command of the table and arguments, one for each line end. */
static void encode(uint8_t mode, const uint8_t *data, size_t len) {
    static respb_value args[INPUT_MAX + 1];
    const respb_command *command;
    size_t count = 0, i, from = 2;
    of_c.len = 0;
    if (len < 2) return;
    command = respb_command_get((uint16_t)((data[0] << 8 | data[1]) % respb_command_count()));
    for (i = 2; i <= len; i++) {
        if (i < len && data[i] != '\n') continue;
        args[count++] = respb_bytes(data + from, i - from);
        from = i + 1;
    }
    of_c.len = respb_encode_request(mode == EXACT ? RESPB_FORM_EXACT : RESPB_FORM_FOLD, 7, command->name, args, count, of_c.bytes,
                                    SHOWN_MAX);
}

/* Replies of RESPB in another protocol. */
static void write_again(uint8_t choice, const uint8_t *data, size_t len) {
    static respb_value values[INPUT_MAX + RESPB_VALUES_MIN];
    respb_reply_decoder decoder;
    respb_writer writer;
    respb_frame frame;
    respb_batch batch;
    size_t at = 0;
    memset(&batch, 0, sizeof batch);
    batch.frames = &frame, batch.frames_capacity = 1;
    batch.values = values, batch.values_capacity = sizeof values / sizeof *values;
    if (respb_reply_decoder_init(&decoder, sizeof decoder, RESPB_PROTOCOL_RESPB, NULL) != RESPB_OK) abort();
    if (respb_writer_init(&writer, sizeof writer, 2 + choice % 3, of_c.bytes, SHOWN_MAX) != RESPB_OK) abort();
    if (respb_writer_channel(&writer, 7) != RESPB_OK) abort();
    while (at < len) {
        size_t before = respb_writer_len(&writer), i;
        if (respb_decode_replies(&decoder, data + at, len - at, &batch) < 0 || batch.frames_len == 0) break;
        at += batch.consumed;
        if (frame.kind < RESPB_FRAME_REPLY) continue;
        /* Line ends are no part of a status: the writer refuses what the Rust encoder makes a bulk of. */
        for (i = 0; i < frame.count; i++) {
            respb_value *value = &values[frame.first + i];
            if (value->kind == RESPB_SIMPLE && (memchr(value->value.data, '\r', value->len) ||
                                                memchr(value->value.data, '\n', value->len))) {
                if (respb_write_values(&writer, value, 1) != RESPB_EINVAL) abort();
                of_c.len = SIZE_MAX;
                return;
            }
        }
        if (respb_write_values(&writer, values + frame.first, frame.count) != RESPB_OK) abort();
        if (respb_writer_len(&writer) < before) abort();
    }
    of_c.len = respb_writer_len(&writer);
}

/* Eight bytes as a double, in text; the bytes as the text of a double, and of an integer. */
static void numbers(const uint8_t *data, size_t len) {
    respb_value value = respb_bytes(data, len);
    int64_t integer = 0;
    double number = 0;
    uint64_t bits;
    int good = respb_value_double(&value, &number) == RESPB_OK;
    memcpy(&bits, &number, sizeof bits);
    of_c.len = 0;
    add_number(&of_c, good ? bits : 1, 8);
    good = respb_value_integer(&value, &integer) == RESPB_OK;
    add_number(&of_c, good ? (uint64_t)integer : 1, 8);
    if (len < 8) return;
    memcpy(&value.value.number, data, 8);
    value.kind = RESPB_DOUBLE;
    of_c.len += respb_value_text(&value, (char *)of_c.bytes + of_c.len, 64);
}

static void show(const char *name, const struct shown *shown) {
    size_t i;
    fprintf(stderr, "%s:", name);
    for (i = 0; i < shown->len; i++) fprintf(stderr, " %02x", shown->bytes[i]);
    fprintf(stderr, "\n");
}

static void compare(const char *how) {
    if (of_c.len == SIZE_MAX) return;
#ifdef ALONE
    if (other.len == SIZE_MAX) {
        other.len = of_c.len;
        memcpy(other.bytes, of_c.bytes, of_c.len);
    }
#endif
    if (of_c.len == other.len && memcmp(of_c.bytes, other.bytes, of_c.len) == 0) return;
    fprintf(stderr, "they differ: %s\n", how);
    show("C", &of_c);
    show("the other", &other);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t mode, choice;
    size_t piece;
    if (size < 2 || size > INPUT_MAX) return 0;
    mode = data[0] % MODES;
    choice = data[1];
    piece = 1 + (choice >> 2 & 7) * 3;
    data += 2, size -= 2;
#ifdef ALONE
    other.len = SIZE_MAX;
#else
    other.len = weft_shows(mode, choice, data, size, other.bytes, SHOWN_MAX);
    if (other.len > SHOWN_MAX) abort();
#endif
    if (mode == EXACT || mode == FOLD) {
        encode(mode, data, size);
        compare("encoded");
    } else if (mode == NUMBERS) {
        numbers(data, size);
        compare("numbers");
    } else if (mode == REPLIES_AGAIN) {
        write_again(choice, data, size);
        compare("written again");
    } else {
        decode(mode, choice, data, size, size, 16, 512);
        compare("whole");
        decode(mode, choice, data, size, piece, 1, RESPB_VALUES_MIN);
        compare("in pieces");
        decode(mode, choice, data, size, piece, 3, RESPB_VALUES_MIN + 3);
        compare("in pieces, through a larger array");
    }
    return 0;
}
