/* cost.c: decodes one stream of one workload through the library and prints the checksum: the program whose instructions `cost`
 * counts under callgrind. The same streams and the same consumption as crates/protocol/examples/decode_cost.rs: every length and
 * number and the first and last byte of each argument.
 *
 * cost (resp|respb)-(get|set|mget) REPEATS FRAMES: FRAMES is how many frames a call may decode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "respb.h"

#define STREAM_BYTES (1u << 20)
#define FRAMES_MAX 64
#define VALUES 1024

static uint64_t fold(const respb_batch *batch) {
    uint64_t sum = 0;
    size_t i, j;
    for (i = 0; i < batch->frames_len; i++) {
        const respb_frame *frame = &batch->frames[i];
        const respb_value *value = batch->values + frame->first;
        sum += frame->channel;
        for (j = 0; j < frame->count; j++, value++) {
            if (value->kind != RESPB_BYTES) {
                sum += (uint64_t)value->value.integer;
                continue;
            }
            sum += value->len;
            if (value->len) {
                sum += (unsigned char)value->value.data[0];
                sum += (unsigned char)value->value.data[value->len - 1];
            }
        }
    }
    return sum;
}

static uint64_t decode(int protocol, const char *data, size_t len, size_t frames_capacity) {
    static respb_frame frames[FRAMES_MAX];
    static respb_value values[VALUES];
    respb_request_decoder decoder;
    respb_batch batch;
    uint64_t sum = 0;
    size_t at = 0;
    memset(&batch, 0, sizeof batch);
    batch.frames = frames, batch.frames_capacity = frames_capacity;
    batch.values = values, batch.values_capacity = VALUES;
    if (respb_request_decoder_init(&decoder, sizeof decoder, protocol, NULL) != RESPB_OK) exit(1);
    while (at < len) {
        if (respb_decode_requests(&decoder, data + at, len - at, &batch) < 0) exit(1);
        sum += fold(&batch);
        at += batch.consumed;
    }
    return sum;
}

int main(int argc, char **argv) {
    static char stream[STREAM_BYTES + 1024];
    int binary, protocol, form;
    unsigned long repeats, frames, commands = 0, i;
    size_t len = 0;
    uint64_t sum = 0;
    const char *workload;
    if (argc != 4) return 2;
    binary = strncmp(argv[1], "respb-", 6) == 0;
    protocol = binary ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP3;
    form = binary ? RESPB_FORM_EXACT : RESPB_FORM_RESP;
    workload = strchr(argv[1], '-') + 1;
    repeats = strtoul(argv[2], NULL, 10);
    frames = strtoul(argv[3], NULL, 10);
    if (frames < 1 || frames > FRAMES_MAX) return 2;
    while (len < STREAM_BYTES) {
        static char keys[10][32], body[51] = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";
        respb_value args[10];
        size_t count = strcmp(workload, "mget") == 0 ? 10 : 1, j;
        for (j = 0; j < count; j++) {
            args[j] = respb_bytes(keys[j], (size_t)sprintf(keys[j], "key:%016lu", commands * 10 + j));
        }
        if (strcmp(workload, "set") == 0) args[count++] = respb_bytes(body, 50);
        len += respb_encode_request(form, 7, strcmp(workload, "get") == 0 ? "GET" : strcmp(workload, "set") == 0 ? "SET" : "MGET",
                                    args, count, stream + len, sizeof stream - len);
        commands++;
    }
    for (i = 0; i < repeats; i++) sum += decode(protocol, stream, len, frames);
    printf("%lu %lu %016llx\n", repeats * commands, commands, (unsigned long long)sum);
    return 0;
}
