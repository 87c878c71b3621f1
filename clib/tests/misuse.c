/* misuse.c: what the library answers to calls that are wrong, and what no vector shows: batches, limits, detection, the table.
 *
 * Owns the cases of the interface itself; what the bytes mean is vectors.c's. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "respb.h"

static int failures;

static void expect(int good, int line) {
    if (good) return;
    failures++;
    fprintf(stderr, "misuse.c:%d\n", line);
}
#define EXPECT(condition) expect((condition) != 0, __LINE__)

static void batch_of(respb_batch *batch, respb_frame *frames, size_t frames_capacity, respb_value *values,
                     size_t values_capacity) {
    memset(batch, 0, sizeof *batch);
    batch->frames = frames;
    batch->frames_capacity = frames_capacity;
    batch->values = values;
    batch->values_capacity = values_capacity;
}

static void null_pointers(void) {
    respb_request_decoder decoder;
    respb_reply_decoder replies;
    respb_writer writer;
    respb_frame frame;
    respb_value values[8];
    respb_batch batch;
    respb_value wrong = respb_bytes("x", 1);
    int64_t number;
    double real;
    batch_of(&batch, &frame, 1, values, 8);
    EXPECT(respb_request_decoder_init(NULL, sizeof decoder, 2, NULL) == RESPB_EINVAL);
    EXPECT(respb_request_decoder_init(&decoder, 8, 2, NULL) == RESPB_EINVAL);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 1, NULL) == RESPB_EINVAL);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, NULL) == RESPB_OK);
    EXPECT(respb_reply_decoder_init(NULL, sizeof replies, 2, NULL) == RESPB_EINVAL);
    EXPECT(respb_decode_requests(NULL, "", 0, &batch) == RESPB_EINVAL);
    EXPECT(respb_decode_requests(&decoder, NULL, 1, &batch) == RESPB_EINVAL);
    EXPECT(respb_decode_requests(&decoder, "", 0, NULL) == RESPB_EINVAL);
    EXPECT(respb_decode_requests(&decoder, NULL, 0, &batch) == RESPB_OK);
    batch.values_capacity = 7;
    EXPECT(respb_decode_requests(&decoder, "", 0, &batch) == RESPB_EINVAL);
    batch_of(&batch, NULL, 1, values, 8);
    EXPECT(respb_decode_requests(&decoder, "", 0, &batch) == RESPB_EINVAL);
    batch_of(&batch, &frame, 0, values, 8);
    EXPECT(respb_decode_requests(&decoder, "", 0, &batch) == RESPB_EINVAL);
    batch_of(&batch, &frame, 1, values, 8);
    batch.partial = 1;
    EXPECT(respb_decode_requests(&decoder, "", 0, &batch) == RESPB_EINVAL);
    EXPECT(respb_request_decoder_limits(&decoder, NULL, &batch) == RESPB_EINVAL);
    EXPECT(respb_batch_take(NULL) == 0);
    EXPECT(respb_batch_take(&batch) == 0);
    respb_limits_default(NULL);
    EXPECT(respb_detect(NULL, 4, NULL) == RESPB_DETECT_UNKNOWN);
    EXPECT(respb_value_text(NULL, NULL, 0) == 0);
    EXPECT(respb_value_text(&wrong, NULL, 1) == 0);
    EXPECT(respb_value_integer(&wrong, NULL) == RESPB_EINVAL);
    EXPECT(respb_value_integer(&wrong, &number) == RESPB_INVALID);
    EXPECT(respb_value_double(NULL, &real) == RESPB_EINVAL);
    EXPECT(respb_encode_request(1, 0, NULL, NULL, 1, NULL, 0) == 0);
    EXPECT(respb_encode_request(1, 0, NULL, NULL, 0, NULL, 0) == 0);
    EXPECT(respb_encode_request(9, 0, "GET", &wrong, 1, NULL, 0) == 0);
    EXPECT(respb_encode_request(1, 0, "GET", &wrong, 1, NULL, 5) == 0);
    wrong.kind = 200;
    EXPECT(respb_encode_request(1, 0, "GET", &wrong, 1, NULL, 0) == 0);
    EXPECT(respb_encode_close(0, 1, NULL, 5, NULL, 0) == 0);
    EXPECT(respb_writer_init(&writer, 16, 2, NULL, 0) == RESPB_EINVAL);
    EXPECT(respb_writer_init(&writer, sizeof writer, 2, NULL, 9) == RESPB_EINVAL);
    EXPECT(respb_write_null(NULL) == RESPB_EINVAL);
    EXPECT(respb_writer_len(NULL) == 0);
    EXPECT(respb_command_by_name(NULL, 3) == NULL);
    EXPECT(respb_command_get(RESPB_NO_COMMAND) == NULL);
    EXPECT(respb_command_layout(RESPB_NO_COMMAND) == NULL);
    EXPECT(respb_error_name(0) == NULL && respb_error_text(1000) == NULL && respb_flag_name(99) == NULL);
}

/* Fewer bytes than the decoder was given before: refused, not read. */
static void bytes_taken_back(void) {
    static const char *const starts[] = {"*2\r\n$3\r\nGET\r\n$20\r\nabc", "\xF0\x01\0\0\0\0\0\x10\0\0\0\x02gh\0\0\0\x06k"};
    static const size_t lens[] = {21, 19};
    size_t i;
    for (i = 0; i < 2; i++) {
        respb_request_decoder decoder;
        respb_frame frame;
        respb_value values[16];
        respb_batch batch;
        batch_of(&batch, &frame, 1, values, 16);
        EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, i ? 4 : 2, NULL) == RESPB_OK);
        EXPECT(respb_decode_requests(&decoder, starts[i], lens[i], &batch) == RESPB_INCOMPLETE);
        EXPECT(batch.values_len == 1);
        EXPECT(respb_decode_requests(&decoder, starts[i], 3, &batch) == RESPB_EINVAL);
        EXPECT(respb_decode_requests(&decoder, starts[i], lens[i], &batch) == RESPB_INCOMPLETE);
        EXPECT(respb_request_decoder_limits(&decoder, NULL, &batch) == RESPB_OK);
        EXPECT(batch.values_len == 0);
        EXPECT(respb_decode_requests(&decoder, starts[i], lens[i], &batch) == RESPB_INCOMPLETE);
        EXPECT(batch.values_len == 1);
    }
}

/* Many frames in one call, with arrays that are too small in every way. */
static void batches(void) {
    enum { COUNT = 300 };
    char *wire = NULL;
    size_t len = 0, at, frames_capacity, values_capacity;
    int i, protocol;
    for (protocol = 2; protocol <= 4; protocol += 2) {
        len = 0;
        free(wire);
        wire = (char *)malloc(COUNT * 512);
        for (i = 0; i < COUNT; i++) {
            respb_value args[32];
            size_t count = (size_t)(i * 7 % 23) + 1, j;
            for (j = 0; j < count; j++) args[j] = respb_bytes("key:12345", 2 + (j + (size_t)i) % 7);
            len += respb_encode_request(protocol == 4 ? RESPB_FORM_FOLD : RESPB_FORM_RESP, (uint16_t)i,
                                        count == 1 ? "GET" : "MGET", args, count, wire + len, 512);
        }
        for (frames_capacity = 1; frames_capacity < 70; frames_capacity += 17) {
            for (values_capacity = 40; values_capacity < 200; values_capacity += 11) {
                respb_request_decoder decoder;
                respb_frame *frames = (respb_frame *)malloc(frames_capacity * sizeof *frames);
                respb_value *values = (respb_value *)malloc(values_capacity * sizeof *values);
                respb_batch batch;
                int seen = 0;
                respb_status status;
                batch_of(&batch, frames, frames_capacity, values, values_capacity);
                EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, protocol, NULL) == RESPB_OK);
                at = 0;
                do {
                    /* At most 100 bytes at a time, from a copy. */
                    size_t piece = len - at < 300 ? len - at : 300, k;
                    char *copy = (char *)malloc(piece);
                    memcpy(copy, wire + at, piece);
                    status = respb_decode_requests(&decoder, copy, piece, &batch);
                    EXPECT(status == RESPB_OK || status == RESPB_INCOMPLETE || status == RESPB_FULL);
                    for (k = 0; k < batch.frames_len; k++, seen++) {
                        const respb_frame *frame = &frames[k];
                        size_t count = (size_t)(seen * 7 % 23) + 1, j, name = protocol == 2;
                        EXPECT(frame->count == count + name && batch.taken == 0);
                        EXPECT(protocol == 2 || frame->channel == seen);
                        for (j = 0; j < count; j++) {
                            const respb_value *value = &values[frame->first + name + j];
                            EXPECT(value->len == 2 + (j + (size_t)seen) % 7);
                            EXPECT(memcmp(value->value.data, "key:12345", value->len) == 0);
                            EXPECT(value->value.data > frame->data && value->value.data + value->len <= frame->data + frame->len);
                        }
                    }
                    EXPECT(batch.consumed > 0 || status != RESPB_OK);
                    at += batch.consumed;
                    free(copy);
                } while (at < len && failures == 0);
                EXPECT(seen == COUNT);
                free(frames);
                free(values);
            }
        }
    }
    free(wire);
}

static void million(void) {
    /* A million arguments through an array of 64, in one call after the other. */
    enum { COUNT = 1000000 };
    char *wire = (char *)malloc(32 + (size_t)COUNT * 8);
    size_t len = (size_t)sprintf(wire, "*%d\r\n", COUNT), seen = 0;
    respb_request_decoder decoder;
    respb_frame frame;
    respb_value values[64];
    respb_batch batch;
    int i;
    for (i = 0; i < COUNT; i++) len += (size_t)sprintf(wire + len, "$1\r\n%d\r\n", i % 10);
    batch_of(&batch, &frame, 1, values, 64);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 2, NULL) == RESPB_OK);
    while (respb_decode_requests(&decoder, wire, len, &batch) == RESPB_FULL && batch.frames_len == 0) {
        size_t j;
        for (j = batch.partial; j < batch.values_len; j++, seen++) {
            if (*values[j].value.data != (char)('0' + seen % 10)) EXPECT(0);
        }
        EXPECT(respb_batch_take(&batch) > 0);
    }
    EXPECT(batch.frames_len == 1 && seen == batch.taken && batch.taken + frame.count == COUNT);
    free(wire);
}

/* A frame of a million arguments, 16 bytes at a time through a buffer that moves: as many steps as bytes. A decoder that looked again
 * at what it has would need a hundred billion. */
static void pieces(void) {
    enum { COUNT = 1000000, ARGUMENT = 5, PIECE = 16, SECONDS_MAX = 8 };
    size_t len = 8 + (size_t)COUNT * ARGUMENT, there, i, right = 0;
    unsigned char *wire = (unsigned char *)malloc(len), *moved = (unsigned char *)malloc(len);
    respb_value *values = (respb_value *)malloc((COUNT + RESPB_VALUES_MIN) * sizeof *values);
    respb_request_decoder decoder;
    respb_frame frame;
    respb_batch batch;
    respb_status status = RESPB_INCOMPLETE;
    clock_t start = clock();
    memcpy(wire, "\xF0\x01\0\0", 4);
    for (i = 0; i < 4; i++) wire[4 + i] = (unsigned char)((len - 8) >> (24 - 8 * i));
    for (i = 0; i < COUNT; i++) {
        memcpy(wire + 8 + i * ARGUMENT, "\0\0\0\1", 4);
        wire[8 + i * ARGUMENT + 4] = (unsigned char)i;
    }
    memcpy(moved, wire, len);
    batch_of(&batch, &frame, 1, values, COUNT + RESPB_VALUES_MIN);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, NULL) == RESPB_OK);
    for (there = PIECE; status == RESPB_INCOMPLETE; there += PIECE) {
        unsigned char *at = there / PIECE % 2 ? wire : moved;
        if (there > len) there = len;
        status = respb_decode_requests(&decoder, at, there, &batch);
    }
    EXPECT(status == RESPB_OK && batch.frames_len == 1 && frame.count == COUNT);
    for (i = 0; i < frame.count; i++) right += (unsigned char)*values[i].value.data == (unsigned char)i;
    EXPECT(right == COUNT);
    EXPECT((clock() - start) / CLOCKS_PER_SEC < SECONDS_MAX);
    free(wire);
    free(moved);
    free(values);
}

/* Limits that are just high enough for straight code: what is within them is taken, what is past them is not. */
static void limits_of_straight_code(void) {
    enum { LIMIT = 70000, SIZE = LIMIT + 16 };
    static const struct {
        const char *name;
        uint32_t first, second; /* lengths */
        int past;
    } cases[] = {
        {"GET", 65535, 0, 0},       {"SET", 1, LIMIT - 12, 0},        {"SET", 1, LIMIT - 11, 1}, {"SET", 65535, LIMIT - 65546, 0},
        {"SET", 65535, LIMIT - 65545, 1}, {"MGET", 40000, LIMIT - 40010, 0}, {"MGET", 40000, LIMIT - 40009, 1},
        {"SADD", 40000, LIMIT - 40010, 0}, {"SADD", 40000, LIMIT - 40009, 1},
    };
    char *data = (char *)calloc(SIZE, 1), *wire = (char *)malloc(2 * SIZE);
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        respb_request_decoder decoder;
        respb_limits limits;
        respb_frame frame;
        respb_value values[16], args[2];
        respb_batch batch;
        respb_status status;
        size_t len, count = cases[i].second ? 2 : 1;
        respb_limits_default(&limits);
        limits.frame_bytes_max = limits.argument_bytes_max = LIMIT;
        args[0] = respb_bytes(data, cases[i].first);
        args[1] = respb_bytes(data, cases[i].second);
        len = respb_encode_request(RESPB_FORM_EXACT, 1, cases[i].name, args, count, wire, 2 * SIZE);
        EXPECT(cases[i].past ? len == LIMIT + 1 : len <= LIMIT && (count == 1 || len == LIMIT));
        batch_of(&batch, &frame, 1, values, 16);
        EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, &limits) == RESPB_OK);
        status = respb_decode_requests(&decoder, wire, len, &batch);
        EXPECT(cases[i].past ? status == RESPB_INVALID && batch.error == RESPB_ERR_FRAME_TOO_LONG
                             : status == RESPB_OK && frame.count == count && frame.len == len);
    }
    free(data);
    free(wire);
}

/* Doubles as text and back (specification, section E.3): among them powers of two, above which the digits that are nearest need not be
 * the shortest, and the ends of the range. */
static void numbers(void) {
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0.0, "0"}, {-0.0, "-0"}, {1.0, "1"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {1e8, "100000000"},
        {4611686018427387904.0, "4611686018427387904"}, {9223372036854775808.0, "9223372036854776000"},
        {1e20, "1e+20"}, {1e22, "1e+22"}, {1.5e300, "1.5e+300"}, {1e-5, "0.00001"}, {1e-7, "1e-7"},
        {0.0001234567891234, "1.234567891234e-4"}, {2.5066282746310007, "2.5066282746310007"},
        {9.007199254740993e+22, "90071992547409940000000"}, {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"}, {5e-324, "5e-324"}, {5.684341886080802e-14, "5.684341886080802e-14"},
        {99999999999999.9, "99999999999999.9"}, {999999999999999.9, "999999999999999.9"}, {123456.789, "123456.789"},
        {0.3, "0.3"}, {0.30000000000000004, "0.30000000000000004"}, {0.999999999999999, "0.999999999999999"},
        {0.9999999999999999, "0.9999999999999999"}, {1e-15, "1e-15"}, {1.5e-15, "1.5e-15"}, {4e-16, "4e-16"},
    };
    static const char *const wrong[] = {"",    "+1",   "1.0",  "01",    ".5",  "1e8",   "+inf", "nan",
                                        "1e+", "0x1", "1e400", "1e+08", " 1", "1.5 ", "--1",  "1e+20.0"};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        respb_value value = respb_integer(0), text = respb_bytes(cases[i].text, strlen(cases[i].text));
        char out[40];
        double back = 7;
        size_t len;
        value.kind = RESPB_DOUBLE;
        value.value.number = cases[i].number;
        len = respb_value_text(&value, out, sizeof out);
        EXPECT(len == text.len && memcmp(out, cases[i].text, len) == 0);
        EXPECT(respb_value_double(&text, &back) == RESPB_OK && memcmp(&back, &cases[i].number, sizeof back) == 0);
    }
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        respb_value text = respb_bytes(wrong[i], strlen(wrong[i]));
        double back = 7;
        EXPECT(respb_value_double(&text, &back) == RESPB_INVALID && back == 7);
    }
}

static void start_of_connection(void) {
    respb_request_decoder decoder;
    respb_limits limits;
    respb_frame frames[4];
    respb_value values[16];
    respb_batch batch;
    size_t skip;
    char zeros[64];
    memset(zeros, 0, sizeof zeros);
    respb_limits_unauthenticated(&limits);
    EXPECT(limits.arguments_max == 16 && limits.argument_bytes_max == 16384 && limits.unauthenticated == 1);
    EXPECT(limits.frame_bytes_max == 16384 && limits.inline_bytes_max == 16384);
    limits.first_frame = 1;
    batch_of(&batch, frames, 4, values, 16);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, &limits) == RESPB_OK);
    EXPECT(respb_decode_requests(&decoder, zeros, 64, &batch) == RESPB_INVALID);
    EXPECT(batch.error == RESPB_ERR_ZERO_STREAM && batch.frames_len == 0 && batch.values_len == 0);
    EXPECT(respb_decode_requests(&decoder, zeros, 64, &batch) == RESPB_INVALID);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, &limits) == RESPB_OK);
    EXPECT(respb_decode_requests(&decoder, "\x03\0\0\0\0\0\0\0\0\0", 10, &batch) == RESPB_OK);
    EXPECT(batch.frames_len == 2);
    EXPECT(respb_detect("\r\n  *1", 6, &skip) == RESPB_DETECT_RESP && skip == 4);
    EXPECT(respb_detect("GET / HTTP/1.0\r\n", 16, NULL) == RESPB_DETECT_HTTP);
    EXPECT(respb_detect("\0", 1, NULL) == RESPB_DETECT_RESPB);
    EXPECT(respb_detect("$", 1, NULL) == RESPB_DETECT_UNKNOWN);
}

/* A connection's first frame through an array that is too small for it: whether its key is empty is not to be told by its values, which
 * were taken. */
static void first_frame_taken(void) {
    enum { MEMBERS = 11 };
    int is_empty, i;
    for (is_empty = 0; is_empty < 2; is_empty++) {
        respb_request_decoder decoder;
        respb_limits limits;
        respb_frame frame;
        respb_value values[RESPB_VALUES_MIN], args[1 + MEMBERS];
        respb_batch batch;
        respb_status status;
        char wire[128];
        size_t len, taken = 0;
        args[0] = respb_bytes("k", is_empty ? 0 : 1);
        for (i = 1; i <= MEMBERS; i++) args[i] = respb_bytes("m", (size_t)is_empty);
        len = respb_encode_request(RESPB_FORM_FOLD, 0, "SADD", args, 1 + MEMBERS, wire, sizeof wire);
        respb_limits_default(&limits);
        limits.first_frame = 1;
        batch_of(&batch, &frame, 1, values, RESPB_VALUES_MIN);
        EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 4, &limits) == RESPB_OK);
        while ((status = respb_decode_requests(&decoder, wire, len, &batch)) == RESPB_FULL && batch.frames_len == 0) {
            taken += respb_batch_take(&batch);
        }
        EXPECT(taken > 0);
        EXPECT(is_empty ? status == RESPB_INVALID && batch.error == RESPB_ERR_ZERO_STREAM : status == RESPB_OK);
    }
}

/* A client that sends what never ends, into a buffer as large as the guide says: the decoder asks for no byte behind it. */
static void buffers(void) {
    static const char *const streams[] = {
        "x", "*3\r\n$1\r\na\r\n", "$1\r\na\r\n", "$00", "*00", "*1\r\n", ":1\r\n", "+x", "|1\r\n:1\r\n:1\r\n",
    };
    static const uint32_t sizes[] = {8, 9, 16, 31, 64, 200};
    enum { SIZES = sizeof sizes / sizeof *sizes, ROOM = 512 };
    size_t stream, choice;
    for (stream = 0; stream < sizeof streams / sizeof *streams; stream++) {
        /* Limits of frames and lines, each protocol and direction. */
        for (choice = 0; choice < SIZES * SIZES * 4; choice++) {
            respb_request_decoder requests;
            respb_reply_decoder replies;
            respb_limits limits;
            respb_frame frame;
            respb_value values[RESPB_VALUES_MIN + ROOM];
            respb_batch batch;
            respb_status status;
            int protocol = choice % 2 ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP3;
            size_t len = strlen(streams[stream]), i, enough;
            char wire[ROOM];
            /* The first item once, the others again and again. */
            for (i = 0; i < ROOM; i++) wire[i] = streams[stream][i % len];
            if (stream == 2) memcpy(wire, "*90\r\n$2", 7);
            if (stream == 6) memcpy(wire, "*90\r\n:11", 8);
            if (protocol == RESPB_PROTOCOL_RESPB) memcpy(wire, choice % 4 < 2 ? "\xF0\x01\0\0\0\0\1\0" : "\x80\x04\0\0\0\0\1\0", 8);
            respb_limits_default(&limits);
            limits.frame_bytes_max = sizes[choice / 4 % SIZES];
            limits.inline_bytes_max = sizes[choice / 4 / SIZES];
            enough = limits.frame_bytes_max + (protocol == RESPB_PROTOCOL_RESPB ? 0 : limits.inline_bytes_max + 64);
            batch_of(&batch, &frame, 1, values, RESPB_VALUES_MIN + ROOM);
            EXPECT(respb_request_decoder_init(&requests, sizeof requests, protocol, &limits) == RESPB_OK);
            EXPECT(respb_reply_decoder_init(&replies, sizeof replies, protocol, &limits) == RESPB_OK);
            for (i = 0; i <= enough; i++) {
                status = choice % 4 < 2 ? respb_decode_requests(&requests, wire, i, &batch)
                                        : respb_decode_replies(&replies, wire, i, &batch);
                if (status != RESPB_INCOMPLETE && i > 0) break;
                EXPECT(batch.need <= enough);
            }
            EXPECT(i <= enough);
        }
    }
}

/* What no frame can say is not encoded as another one. No byte of these is read: there is no room for any. */
static void too_long(void) {
    static const char text[] = "";
    static char name[200];
    respb_value args[2];
    char out[64];
    respb_writer writer;
    args[0] = respb_bytes(text, (size_t)UINT32_MAX + 6);
    EXPECT(SIZE_MAX == UINT32_MAX || respb_encode_request(RESPB_FORM_ARGV, 0, "GET", args, 1, out, sizeof out) == 0);
    EXPECT(SIZE_MAX == UINT32_MAX || respb_value_text(args, out, sizeof out) == 0);
    EXPECT(SIZE_MAX == UINT32_MAX || respb_write_bulk(NULL, text, (size_t)UINT32_MAX + 6) == RESPB_EINVAL);
    memset(name, 'A', sizeof name - 1);
    args[0] = respb_bytes(text, UINT32_MAX - 45);
    EXPECT(respb_encode_request(RESPB_FORM_ARGV, 0, name, args, 1, NULL, 0) == 0);
    EXPECT(respb_encode_fragment(0, 1, text, 65536, NULL, 0) == 65536 + 9);
    EXPECT(respb_encode_fragment(0, 1, text, 65537, NULL, 0) == 0);
    /* A streamed text of more than 32 bits can count. */
    EXPECT(respb_writer_init(&writer, sizeof writer, RESPB_PROTOCOL_RESPB, NULL, 0) == RESPB_OK);
    args[0].kind = RESPB_TEXT;
    args[1] = respb_bytes(text, 0x7FFFFFF0);
    EXPECT(respb_write_values(&writer, args, 2) == RESPB_FULL);
    EXPECT(respb_write_values(&writer, args + 1, 1) == RESPB_FULL);
    EXPECT(respb_write_values(&writer, args + 1, 1) == RESPB_EINVAL);
    EXPECT(respb_write_close(&writer) == RESPB_FULL && writer.text_at == 0);
}

/* What a decoder of the same protocol would refuse is not written. */
static void misplaced(void) {
    static const char attribute[] = "|1\r\n+a\r\n:1\r\n>1\r\n+x\r\n";
    respb_reply_decoder decoder;
    respb_frame frame;
    respb_value values[16];
    respb_batch batch;
    respb_writer writer;
    char out[128];
    int protocol, pairs;
    for (protocol = 2; protocol <= 4; protocol++) {
        EXPECT(respb_writer_init(&writer, sizeof writer, protocol, out, sizeof out) == RESPB_OK);
        EXPECT(respb_write_open(&writer, RESPB_ARRAY, -1) == RESPB_OK);
        EXPECT(respb_write_open(&writer, RESPB_PUSH, 1) == RESPB_EINVAL);
        EXPECT(respb_write_open(&writer, RESPB_MAP, -1) == RESPB_OK);
        EXPECT(respb_write_integer(&writer, 1) == RESPB_OK);
        EXPECT(respb_write_close(&writer) == RESPB_EINVAL);
        EXPECT(respb_write_integer(&writer, 2) == RESPB_OK);
        EXPECT(respb_write_close(&writer) == RESPB_OK && respb_write_close(&writer) == RESPB_OK);
        EXPECT(respb_write_open(&writer, RESPB_PUSH, 0) == RESPB_OK);
        /* An attribute without its value, of pairs and of none, inside a streamed aggregate. */
        for (pairs = 0; pairs < 2; pairs++) {
            EXPECT(respb_write_open(&writer, RESPB_SET, -1) == RESPB_OK);
            EXPECT(respb_write_open(&writer, RESPB_ATTRIBUTE, pairs) == RESPB_OK);
            EXPECT(pairs == 0 || (respb_write_integer(&writer, 1) == RESPB_OK && respb_write_integer(&writer, 2) == RESPB_OK));
            EXPECT(respb_write_close(&writer) == RESPB_EINVAL);
            EXPECT(respb_write_open(&writer, RESPB_ARRAY, 0) == RESPB_OK && respb_write_close(&writer) == RESPB_OK);
        }
        /* An attribute before a push: RESP3 can say it, RESPB cannot (section E.5). */
        batch_of(&batch, &frame, 1, values, 16);
        EXPECT(respb_reply_decoder_init(&decoder, sizeof decoder, RESPB_PROTOCOL_RESP3, NULL) == RESPB_OK);
        EXPECT(respb_decode_replies(&decoder, attribute, sizeof attribute - 1, &batch) == RESPB_OK);
        EXPECT(respb_write_values(&writer, values, frame.count) == (protocol == 4 ? RESPB_EINVAL : RESPB_OK));
    }
}

/* A number in quotes is a number to Redis. */
static void quoted(void) {
    static const char line[] = "x \"5\" '-1.5' \"\\x35\" \"5 \" \"000000000000000000000000000000000000000000000005\" \"\"\n";
    respb_request_decoder decoder;
    respb_frame frame;
    respb_value values[16];
    respb_batch batch;
    int64_t integer = 0;
    double number = 0;
    batch_of(&batch, &frame, 1, values, 16);
    EXPECT(respb_request_decoder_init(&decoder, sizeof decoder, 2, NULL) == RESPB_OK);
    EXPECT(respb_decode_requests(&decoder, line, sizeof line - 1, &batch) == RESPB_OK && frame.count == 7);
    EXPECT(respb_value_integer(&values[1], &integer) == RESPB_OK && integer == 5);
    EXPECT(respb_value_double(&values[1], &number) == RESPB_OK && number == 5);
    EXPECT(respb_value_integer(&values[2], &integer) == RESPB_INVALID && integer == 5);
    EXPECT(respb_value_double(&values[2], &number) == RESPB_OK && number == -1.5);
    integer = 0;
    EXPECT(respb_value_integer(&values[3], &integer) == RESPB_OK && integer == 5);
    EXPECT(respb_value_integer(&values[4], &integer) == RESPB_INVALID);
    EXPECT(respb_value_double(&values[5], &number) == RESPB_INVALID && number == -1.5);
    EXPECT(respb_value_integer(&values[6], &integer) == RESPB_INVALID);
}

static void writers(void) {
    char out[256];
    respb_writer writer;
    int i;
    EXPECT(respb_writer_init(&writer, sizeof writer, RESPB_PROTOCOL_RESP3, out, sizeof out) == RESPB_OK);
    EXPECT(respb_write_simple(&writer, "a\r\n+b", 5) == RESPB_EINVAL);
    EXPECT(respb_write_close(&writer) == RESPB_EINVAL);
    EXPECT(respb_write_open(&writer, RESPB_PUSH, -1) == RESPB_EINVAL);
    EXPECT(respb_write_open(&writer, RESPB_INTEGER, 1) == RESPB_EINVAL);
    EXPECT(respb_write_open(&writer, RESPB_ARRAY, -2) == RESPB_EINVAL);
    EXPECT(respb_writer_len(&writer) == 0);
    EXPECT(respb_write_open(&writer, RESPB_ARRAY, -1) == RESPB_OK);
    EXPECT(respb_writer_channel(&writer, 3) == RESPB_EINVAL);
    EXPECT(respb_write_integer(&writer, 7) == RESPB_OK);
    EXPECT(respb_write_error(&writer, "ERR a\r\nb", 8) == RESPB_OK);
    EXPECT(respb_write_boolean(&writer, 5) == RESPB_OK);
    EXPECT(respb_write_close(&writer) == RESPB_OK);
    EXPECT(respb_writer_len(&writer) == 26 && memcmp(out, "*3\r\n:7\r\n!8\r\nERR a\r\nb\r\n#t\r\n", 26) == 0);
    EXPECT(respb_write_open(&writer, RESPB_MAP, 2) == RESPB_OK);
    EXPECT(respb_writer_truncate(&writer, 26) == RESPB_OK && respb_writer_truncate(&writer, 27) == RESPB_EINVAL);
    EXPECT(respb_writer_protocol(&writer, RESPB_PROTOCOL_RESPB) == RESPB_OK);
    EXPECT(respb_writer_channel(&writer, 0x0102) == RESPB_OK);
    EXPECT(respb_write_bulk(&writer, "hey", 3) == RESPB_OK);
    EXPECT(memcmp(out + 26, "\x82\x03\x01\x02hey", 7) == 0);
    EXPECT(respb_writer_buffer(&writer, out, 3, 0) == RESPB_OK);
    EXPECT(respb_write_null(&writer) == RESPB_FULL && respb_writer_len(&writer) == 4);
    EXPECT(respb_writer_buffer(&writer, out, sizeof out, 0) == RESPB_OK);
    for (i = 0; i < RESPB_NESTING_MAX; i++) EXPECT(respb_write_open(&writer, RESPB_ARRAY, 1) >= 0);
    EXPECT(respb_write_open(&writer, RESPB_ARRAY, 1) == RESPB_EDEPTH);
    EXPECT(respb_write_integer(&writer, 1) == RESPB_FULL);
    EXPECT(respb_writer_channel(&writer, 9) == RESPB_OK);
}

static void commands(void) {
    const respb_command *set = respb_command_by_name("sEt", 3), *config = respb_command_by_name("CONFIG", 6);
    uint16_t id;
    EXPECT(set && strcmp(set->name, "SET") == 0 && set->arity == -3 && set->opcode == 1);
    EXPECT(set && set->flags & RESPB_FLAG_WRITE && set->key_first == 1 && set->key_last == 1 && set->key_step == 1);
    EXPECT(respb_command_by_opcode(1) == set && respb_command_get(set->id) == set);
    EXPECT(config && respb_subcommand(config->id, "get", 3) && respb_subcommand(config->id, "get", 3)->container == config->id);
    EXPECT(respb_command_by_module(0, 0) && strcmp(respb_command_by_module(0, 0)->name, "JSON.SET") == 0);
    EXPECT(respb_command_by_module(9, 0) == NULL && respb_command_by_opcode(0x7FF) == NULL);
    EXPECT(strcmp(respb_flag_name(0), "write") == 0);
    EXPECT(strncmp(respb_command_layout(set->id), "key:str16! value:blob32 options:opts8{NX", 40) == 0);
    for (id = 0; id < respb_command_count(); id++) {
        const respb_command *each = respb_command_get(id);
        EXPECT(each && each->id == id && each->name[0]);
        EXPECT(respb_command_layout(id) != NULL);
        if (each->container == RESPB_NO_COMMAND) EXPECT(respb_command_by_name(each->name, strlen(each->name)) == each);
    }
}

int main(void) {
    null_pointers();
    bytes_taken_back();
    batches();
    million();
    pieces();
    limits_of_straight_code();
    numbers();
    /* A locale with a comma, where the machine has one, changes no number. */
    if (setlocale(LC_ALL, "de_DE.UTF-8")) numbers();
    setlocale(LC_ALL, "C");
    start_of_connection();
    first_frame_taken();
    buffers();
    too_long();
    misplaced();
    quoted();
    writers();
    commands();
    if (failures == 0) printf("misuse and batches: ok\n");
    return failures != 0;
}
