/* The C library, as a server in C uses it: respb_decode_requests fills arrays of frames and values, and
 * every value of every frame is folded. Modes `resp` and `respb` are the protocols.
 */
#include <respb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* A batch of the size that a server takes between two looks at its sockets. */
#define FRAMES 64
#define VALUES 1024

static unsigned char *stream;
static size_t stream_len;
static int protocol;
static respb_frame frames[FRAMES];
static respb_value values[VALUES];

const char *weft_start(void) {
    static char name[64];
    snprintf(name, sizeof(name), "librespb %s", respb_version());
    return name;
}

int weft_has_mode(const char *mode) {
    return strcmp(mode, "resp") == 0 || strcmp(mode, "respb") == 0;
}

typedef void (*each_frame)(const respb_frame *frame, void *context);

/* Decodes and calls `each` with every frame. Returns 0 when the bytes are not whole frames. */
static inline int decode(size_t from, size_t to, each_frame each, void *context) {
    respb_request_decoder decoder;
    respb_batch batch;
    memset(&batch, 0, sizeof(batch));
    batch.frames = frames;
    batch.frames_capacity = FRAMES;
    batch.values = values;
    batch.values_capacity = VALUES;
    if (respb_request_decoder_init(&decoder, sizeof(decoder), protocol, NULL) != RESPB_OK) return 0;
    while (from < to) {
        respb_status status = respb_decode_requests(&decoder, stream + from, to - from, &batch);
        if (status < 0 || status == RESPB_INCOMPLETE || batch.frames_len == 0) return 0;
        for (size_t i = 0; i < batch.frames_len; i++) each(&frames[i], context);
        from += batch.consumed;
    }
    return 1;
}

static int is_typed(const respb_frame *frame) {
    return frame->kind == RESPB_FRAME_CORE || frame->kind == RESPB_FRAME_MODULE;
}

static inline uint64_t value_fold(const respb_value *value) {
    uint64_t bits;
    switch (value->kind) {
    case RESPB_INTEGER: return (uint64_t)value->value.integer;
    case RESPB_DOUBLE: memcpy(&bits, &value->value.number, sizeof(bits)); return bits;
    default: return weft_fold((const unsigned char *)value->value.data, value->len);
    }
}

static inline void fold_frame(const respb_frame *frame, void *context) {
    weft_seen *seen = context;
    for (uint32_t i = 0; i < frame->count; i++) seen->fold += value_fold(&values[frame->first + i]);
    if (frame->kind == RESPB_FRAME_CORE) seen->fold += frame->opcode;
    if (frame->kind == RESPB_FRAME_MODULE) seen->fold += frame->command;
    seen->fold += frame->channel;
    seen->commands++;
}

weft_seen weft_pass(const char *mode, size_t from, size_t to) {
    weft_seen seen = {0, 0};
    (void)mode;
    if (!decode(from, to, fold_frame, &seen)) {
        puts("error the library did not take the stream");
        exit(1);
    }
    return seen;
}

struct ends {
    size_t *ends, count, at;
};

static void note_end(const respb_frame *frame, void *context) {
    struct ends *ends = context;
    ends->at += frame->len;
    ends->ends[ends->count++] = ends->at;
}

int weft_load(unsigned char *bytes, size_t len, size_t *ends, size_t *commands) {
    struct ends found = {ends, 0, 0};
    stream = bytes;
    stream_len = len;
    protocol = len > 0 && bytes[0] == '*' ? RESPB_PROTOCOL_RESP2 : RESPB_PROTOCOL_RESPB;
    int taken = decode(0, len, note_end, &found);
    *commands = found.count;
    return taken && found.count > 0;
}

static void dump_frame(const respb_frame *frame, void *context) {
    static char text[64];
    (void)context;
    weft_dump_u32(frame->count + (is_typed(frame) ? 1 : 0));
    if (is_typed(frame)) {
        const char *name = respb_command_get(frame->command)->name;
        weft_dump_argument(name, strlen(name));
    }
    for (uint32_t i = 0; i < frame->count; i++) {
        const respb_value *value = &values[frame->first + i];
        if (value->kind == RESPB_INTEGER || value->kind == RESPB_DOUBLE) {
            weft_dump_argument(text, respb_value_text(value, text, sizeof(text)));
        } else {
            weft_dump_argument(value->value.data, value->len);
        }
    }
}

void weft_dump(void) {
    decode(0, stream_len, dump_frame, NULL);
}
