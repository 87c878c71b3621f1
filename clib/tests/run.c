/* run.c: see run.h. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "counting.h"

void expect(int good, const struct vector *vector, const char *what, unsigned long detail) {
    if (good) return;
    fprintf(stderr, "%s: %s (%lu)\n", vector ? vector->id : "-", what, detail);
    exit(1);
}

static void room(struct run *run, size_t capacity) {
    respb_value *grown = (respb_value *)realloc(run->batch.values, capacity * sizeof *grown);
    expect(grown != NULL, NULL, "memory", 0);
    run->batch.values = grown;
    run->batch.values_capacity = capacity;
}

void run_init(struct run *run, const struct vector *vector, size_t capacity, int keep) {
    respb_status status;
    memset(run, 0, sizeof *run);
    run->request = vector->request;
    run->keep = keep;
    run->batch.frames = &run->frame;
    run->batch.frames_capacity = 1;
    room(run, capacity);
    lib_enter();
    if (vector->request) {
        status = respb_request_decoder_init(&run->decoder.request, sizeof run->decoder.request, vector->protocol,
                                            vector->default_limits ? NULL : &vector->limits);
    } else {
        status = respb_reply_decoder_init(&run->decoder.reply, sizeof run->decoder.reply, vector->protocol,
                                          vector->default_limits ? NULL : &vector->limits);
    }
    lib_leave();
    expect(status == RESPB_OK, vector, "init", (unsigned long)status);
    run->digest = 14695981039346656037u;
}

void run_free(struct run *run) { free(run->batch.values); }

static void mix(struct run *run, const void *data, size_t len) {
    const unsigned char *bytes = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < len; i++) run->digest = (run->digest ^ bytes[i]) * 1099511628211u;
}

/* Adds values to the digest: reads every byte that they point at. */
static void digest(struct run *run, size_t first, size_t count) {
    size_t i;
    for (i = first; i < first + count; i++) {
        const respb_value *value = &run->batch.values[i];
        mix(run, &value->kind, 1);
        mix(run, value->format, 3);
        mix(run, &value->len, sizeof value->len);
        switch (value->kind) {
        case RESPB_INTEGER:
        case RESPB_BOOLEAN:
        case RESPB_ARRAY:
        case RESPB_MAP:
        case RESPB_SET:
        case RESPB_PUSH:
        case RESPB_ATTRIBUTE: mix(run, &value->value.integer, 8); break;
        case RESPB_DOUBLE: mix(run, &value->value.number, 8); break;
        case RESPB_NULL:
        case RESPB_NULL_ARRAY:
        case RESPB_CLOSE:
        case RESPB_TEXT: break;
        default: mix(run, value->value.data, value->len);
        }
    }
    run->values += count;
}

respb_status run_feed(struct run *run, const char *data, size_t len) {
    respb_batch *batch = &run->batch;
    for (;;) {
        respb_status status;
        lib_enter();
        if (run->request) status = respb_decode_requests(&run->decoder.request, data, len, batch);
        else status = respb_decode_replies(&run->decoder.reply, data, len, batch);
        lib_leave();
        if (batch->frames_len == 1) {
            digest(run, run->frame.first, run->frame.count);
            return RESPB_OK;
        }
        if (status != RESPB_FULL) return status;
        if (run->keep) {
            room(run, batch->values_capacity * 2);
        } else {
            size_t taken;
            digest(run, batch->partial, batch->values_len - batch->partial);
            taken = respb_batch_take(batch);
            expect(taken > 0, NULL, "full, and nothing to take", taken);
        }
    }
}
