/* channels.c: what the library makes of frames whose profile was left out (specification, section 1.4). Compiled with
 * RESPB_CHANNELS_ONLY.
 *
 * Owns nothing of Channels itself: its vectors are run by vectors.c. */
#include <stdio.h>
#include <string.h>

#include "respb.h"

static int failures;

static void expect(int good, int line) {
    if (good) return;
    failures++;
    fprintf(stderr, "channels.c:%d\n", line);
}
#define EXPECT(condition) expect((condition) != 0, __LINE__)

static respb_frame frames[8];
static respb_value values[32];
static respb_batch batch;

/* Decodes all of a stream with a new decoder. */
static respb_status decode(int reply, const char *bytes, size_t len) {
    respb_request_decoder requests;
    respb_reply_decoder replies;
    memset(&batch, 0, sizeof batch);
    batch.frames = frames, batch.frames_capacity = 8;
    batch.values = values, batch.values_capacity = 32;
    EXPECT(respb_request_decoder_init(&requests, sizeof requests, RESPB_PROTOCOL_RESPB, NULL) == RESPB_OK);
    EXPECT(respb_reply_decoder_init(&replies, sizeof replies, RESPB_PROTOCOL_RESPB, NULL) == RESPB_OK);
    return reply ? respb_decode_replies(&replies, bytes, len, &batch) : respb_decode_requests(&requests, bytes, len, &batch);
}

#define REQUESTS(bytes) decode(0, bytes, sizeof bytes - 1)
#define REPLIES(bytes) decode(1, bytes, sizeof bytes - 1)
#define PING "\xF0\x01\0\x07\0\0\0\x08\0\0\0\x04PING"

int main(void) {
    respb_request_decoder decoder;
    respb_writer writer;
    respb_value key = respb_bytes("k", 1);
    char out[64];
    /* Typed: the frame cannot be passed over. */
    EXPECT(REQUESTS(PING "\0\0\0\0\0\1k") == RESPB_INVALID && batch.frames_len == 1);
    EXPECT(batch.error == RESPB_ERR_UNKNOWN_OPCODE && batch.error_offset == 0);
    EXPECT(REQUESTS("\xF0\0\0\0\0\0\0\0") == RESPB_INVALID && batch.error == RESPB_ERR_UNKNOWN_OPCODE);
    /* Passthrough gets an error; Cancel and Flow are ignored. */
    EXPECT(REQUESTS("\xFF\xFF\0\5\0\0\0\4*1\r\n" PING) == RESPB_OK && batch.frames_len == 2);
    EXPECT(frames[0].kind == RESPB_FRAME_UNKNOWN && frames[0].channel == 5 && frames[1].kind == RESPB_FRAME_ARGV);
    EXPECT(REQUESTS("\xFF\2\0\5\0\0\0\4\0\0\0\1\xFF\3\0\5\0\0\0\1x" PING) == RESPB_OK && batch.frames_len == 3);
    EXPECT(frames[0].kind == RESPB_FRAME_IGNORED && frames[1].kind == RESPB_FRAME_IGNORED);
    EXPECT(frames[2].channel == 7 && frames[2].count == 1 && memcmp(values[frames[2].first].value.data, "PING", 4) == 0);
    /* A slice that a client passes over would be a reply that is lost. */
    EXPECT(REPLIES("\xFF\x10\0\0\0\0\0\1\1") == RESPB_INVALID && batch.error == RESPB_ERR_WRONG_DIRECTION);
    EXPECT(REPLIES("\x82\3\0\1abc") == RESPB_OK && frames[0].kind == RESPB_FRAME_REPLY && values[0].len == 3);
    /* Every form is ARGV, and there is no RESP. */
    EXPECT(respb_encode_request(RESPB_FORM_FOLD, 0, "GET", &key, 1, out, sizeof out) == 20 && memcmp(out, "\xF0\1", 2) == 0);
    EXPECT(respb_encode_request(RESPB_FORM_RESP, 0, "GET", &key, 1, out, sizeof out) == 0);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, RESPB_PROTOCOL_RESP3, NULL) == RESPB_EINVAL);
    EXPECT(respb_writer_init(&writer, sizeof writer, RESPB_PROTOCOL_RESP2, out, sizeof out) == RESPB_EINVAL);
    if (failures == 0) printf("Channels alone: ok\n");
    return failures != 0;
}
