/* hostile.c: streams that are mutated at random, cut at each byte and fed through arrays of every size: whatever the bytes and the limits,
 * the pieces say what the whole says, no byte makes a call wrong, and who goes on behind an error gets the same error.
 *
 * Owns no rule of the protocol: the library is compared with itself. `hostile STREAMS [SEED]`; prints the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "respb.h"
#include "shown.h"

enum { STREAM_MAX = 512, FRAMES = 64, ROUNDS_MAX = 100000 };

static uint64_t state;

/* xorshift: the same streams for the same seed, on every machine. */
static uint32_t below(uint32_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

/* What a client or a server may send, and how it is to be read. */
struct stream {
    unsigned char bytes[STREAM_MAX];
    size_t len;
    int protocol, is_reply;
    respb_limits limits;
};

/* ---- Streams ---- */

static void add_request(struct stream *s) {
    static const char *const words[] = {"", "k", "1", "-5", "0.5", "NX", "GET", "EX", "MATCH", "COUNT", "STREAMS", "LEFT", "1.5e+300"};
    const respb_command *command = respb_command_get((uint16_t)below(respb_command_count()));
    respb_value args[12];
    size_t count = below(12), i, len;
    for (i = 0; i < count; i++) {
        const char *word = words[below(sizeof words / sizeof *words)];
        args[i] = below(6) ? respb_bytes(word, strlen(word)) : respb_integer((int64_t)below(1u << 30) - (1 << 29));
    }
    len = respb_encode_request(s->protocol == RESPB_PROTOCOL_RESPB ? 1 + (int)below(4) : RESPB_FORM_RESP, (uint16_t)below(3), command->name,
                               args, count, s->bytes + s->len, sizeof s->bytes - s->len);
    if (len <= sizeof s->bytes - s->len) s->len += len;
}

static void add_text(struct stream *s, const char *text, size_t len) {
    if (len > sizeof s->bytes - s->len) return;
    memcpy(s->bytes + s->len, text, len);
    s->len += len;
}

static void add_odd(struct stream *s) {
    static const char *const lines[] = {"PING\r\n", "set a \"b c\\x41\" 'd'\n", "\r\n", "*0\r\n", "*-1\r\n", "get \"x\r\n", "$?\r\n;3\r\nabc\r\n;0\r\n",
                                        "*?\r\n:1\r\n.\r\n", "%?\r\n+a\r\n:1\r\n.\r\n", "|1\r\n+a\r\n:1\r\n:2\r\n", ">1\r\n+x\r\n", "=5\r\ntxt:a\r\n"};
    static const char frames[][13] = {"\xFF\1\0\2\0\0\0\4\0\1xy", "\xFF\2\0\2\0\0\0\4\0\0\0\1", "\xFF\3\0\2\0\0\0\4\0\0\0\1", "\xF3\1\0\2\0\0\0\4abcd",
                                      "\xFF\x10\0\2\0\0\0\4\1abc", "\xFF\4\0\0\0\0\0\4\0\6xy"};
    const char *line = lines[below(sizeof lines / sizeof *lines)];
    if (s->protocol != RESPB_PROTOCOL_RESPB) add_text(s, line, strlen(line));
    else add_text(s, frames[below(sizeof frames / sizeof *frames)], 12);
}

static void add_replies(struct stream *s) {
    static const char digits[] = "1234567890123456789012345678901234567890123456789012345678901234567890";
    respb_writer writer;
    int steps = 1 + (int)below(16);
    if (respb_writer_init(&writer, sizeof writer, s->protocol, s->bytes, sizeof s->bytes) != RESPB_OK) abort();
    for (; steps > 0; steps--) {
        respb_value value = respb_bytes(digits, below(sizeof digits - 1));
        value.kind = (uint8_t)below(RESPB_TEXT + 1);
        memcpy(value.format, "txt", 3);
        if (value.kind == RESPB_BOOLEAN) value.value.integer = 1;
        if (value.kind >= RESPB_ARRAY && value.kind <= RESPB_ATTRIBUTE) value.value.integer = (int64_t)below(4) - 1;
        /* What cannot stand here is refused. */
        (void)respb_write_values(&writer, &value, 1);
    }
    s->len = respb_writer_len(&writer) < sizeof s->bytes ? respb_writer_len(&writer) : sizeof s->bytes;
}

static void mutate(struct stream *s) {
    static const unsigned char ends[][4] = {{255, 255, 255, 255}, {127, 255, 255, 255}, {128, 0, 0, 0}, {255, 255, 255, 239}, {0, 0, 0, 0}};
    unsigned times = below(4);
    for (; times > 0 && s->len > 8; times--) {
        size_t at = below((uint32_t)s->len - 4);
        switch (below(4)) {
        case 0: s->bytes[at] = (unsigned char)below(256); break;
        case 1: s->bytes[at] ^= (unsigned char)(1u << below(8)); break;
        case 2: memmove(s->bytes + at, s->bytes + at + 1, --s->len - at); break;
        default: memcpy(s->bytes + at, ends[below(5)], 4); break;
        }
    }
}

static uint32_t some_limit(uint32_t usual) {
    static const uint32_t odd[] = {0, 1, 2, 5, 8, 20, 64, 70000, INT32_MAX, UINT32_MAX - 1, UINT32_MAX};
    return below(3) ? usual : odd[below(sizeof odd / sizeof *odd)];
}

static void make(struct stream *s) {
    respb_limits *limits = &s->limits;
    unsigned count = 1 + below(4);
    s->len = 0;
    s->is_reply = below(3) == 0;
    s->protocol = below(2) ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP2 + (int)below(2);
    respb_limits_default(limits);
    if (below(4) == 0) {
        respb_limits_unauthenticated(limits);
    } else if (below(2)) {
        limits->arguments_max = some_limit(limits->arguments_max);
        limits->argument_bytes_max = some_limit(limits->argument_bytes_max);
        limits->frame_bytes_max = some_limit(limits->frame_bytes_max);
        limits->inline_bytes_max = some_limit(limits->inline_bytes_max);
        limits->elements_max = some_limit(limits->elements_max);
        limits->nesting_max = (uint8_t)below(256);
    }
    limits->first_frame = (uint8_t)below(2);
    if (s->is_reply) add_replies(s);
    else for (; count > 0; count--) add_request(s);
    if (below(3) == 0) add_odd(s);
    mutate(s);
}

/* ---- What the library says of them ---- */

static struct shown whole, pieces;

static void add_values(struct shown *shown, const respb_value *value, size_t count) {
    for (; count > 0; value++, count--) {
        add(shown, &value->kind, 1);
        if (value->kind <= RESPB_VERBATIM && value->kind != RESPB_INTEGER && value->kind != RESPB_DOUBLE) {
            add(shown, &value->len, sizeof value->len);
            add(shown, value->value.data, value->len);
        } else if (value->kind != RESPB_NULL && value->kind != RESPB_NULL_ARRAY && value->kind < RESPB_CLOSE) {
            add(shown, &value->value.integer, sizeof value->value.integer);
        }
    }
}

static respb_request_decoder requests;
static respb_reply_decoder replies;

/* From a copy of exactly these bytes, so that a look behind them is seen. */
static respb_status decode(const struct stream *s, size_t from, size_t to, respb_batch *batch, struct shown *shown) {
    unsigned char *copy = (unsigned char *)malloc(to - from + (to == from));
    respb_status status;
    size_t i;
    if (!copy) abort();
    memcpy(copy, s->bytes + from, to - from);
    status = s->is_reply ? respb_decode_replies(&replies, copy, to - from, batch) : respb_decode_requests(&requests, copy, to - from, batch);
    for (i = 0; i < batch->frames_len; i++) {
        const respb_frame *frame = &batch->frames[i];
        uint32_t said[7];
        said[0] = frame->len, said[1] = frame->number, said[2] = frame->channel, said[3] = frame->opcode;
        said[4] = frame->command, said[5] = frame->kind, said[6] = frame->options;
        add_values(shown, batch->values + frame->first, frame->count);
        add(shown, said, sizeof said);
    }
    if (status == RESPB_FULL && batch->frames_len == 0) {
        add_values(shown, batch->values + batch->partial, batch->values_len - batch->partial);
        if (respb_batch_take(batch) == 0) abort();
    }
    free(copy);
    return status;
}

/* Feeds a stream that arrives up to each of `cuts` in turn; what was shown of a frame that never became whole does not count. */
static void feed(const struct stream *s, const size_t *cuts, size_t cuts_len, size_t frames_len, size_t values_len, struct shown *shown) {
    static respb_frame frames[FRAMES];
    respb_value *values = (respb_value *)malloc(values_len * sizeof *values);
    respb_status status = RESPB_OK;
    respb_batch batch;
    size_t at = 0, cut = 0, counted = 0, rounds = 0;
    uint32_t end[3] = {0, 0, 0};
    memset(&batch, 0, sizeof batch);
    batch.frames = frames, batch.frames_capacity = frames_len;
    batch.values = values, batch.values_capacity = values_len;
    if (respb_request_decoder_init(&requests, sizeof requests, s->protocol, &s->limits) != RESPB_OK) abort();
    if (respb_reply_decoder_init(&replies, sizeof replies, s->protocol, &s->limits) != RESPB_OK) abort();
    shown->len = 0;
    while (status >= 0 && (status == RESPB_FULL || cut <= cuts_len)) {
        size_t there;
        if (status != RESPB_FULL) cut++, rounds = 0;
        if (++rounds > ROUNDS_MAX) abort();
        there = cut <= cuts_len ? cuts[cut - 1] : s->len;
        status = decode(s, at, there, &batch, shown);
        at += batch.consumed;
        if (batch.frames_len > 0) counted = shown->len;
        if (status == RESPB_INCOMPLETE && batch.need <= there - at) abort();
    }
    shown->len = counted;
    if (status == RESPB_INVALID) {
        int again;
        end[0] = batch.error, end[1] = batch.error_offset, end[2] = batch.error_channel;
        for (again = 0; again < 3; again++) {
            if (decode(s, 0, s->len / 3 * (size_t)again, &batch, shown) != RESPB_INVALID || batch.frames_len > 0) abort();
            if (batch.error != end[0] || batch.error_offset != end[1] || batch.error_channel != end[2]) abort();
            (void)respb_batch_take(&batch);
        }
    } else if (status < 0) {
        abort(); /* no bytes make a call wrong */
    }
    add(shown, end, sizeof end);
    add(shown, &at, sizeof at);
    free(values);
}

static int compare(const struct stream *s, unsigned long number, const char *how, size_t cut) {
    size_t i;
    if (whole.len == pieces.len && memcmp(whole.bytes, pieces.bytes, whole.len) == 0) return 1;
    fprintf(stderr, "hostile: stream %lu, %s %u, protocol %d, %s:", number, how, (unsigned)cut, s->protocol, s->is_reply ? "replies" : "requests");
    for (i = 0; i < s->len; i++) fprintf(stderr, " %02x", s->bytes[i]);
    fprintf(stderr, "\n");
    return 0;
}

int main(int argc, char **argv) {
    static struct stream s;
    static size_t cuts[STREAM_MAX];
    unsigned long streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 200, number;
    unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (unsigned long long)time(NULL);
    size_t cut, count;
    state = seed * 0x9E3779B97F4A7C15u + 1;
    printf("hostile: %lu streams, seed %llu\n", streams, seed);
    fflush(stdout);
    for (number = 0; number < streams; number++) {
        make(&s);
        feed(&s, NULL, 0, FRAMES, 2048, &whole);
        for (cut = 0; cut <= s.len; cut++) {
            feed(&s, &cut, 1, FRAMES, 2048, &pieces);
            if (!compare(&s, number, "cut at", cut)) return 1;
        }
        for (cut = 0; cut < s.len; cut++) cuts[cut] = cut;
        feed(&s, cuts, s.len, 1, RESPB_VALUES_MIN, &pieces);
        if (!compare(&s, number, "byte by byte, values", RESPB_VALUES_MIN)) return 1;
        for (cut = count = 0; cut < s.len; cut++) if (below(4) == 0) cuts[count++] = cut;
        cut = RESPB_VALUES_MIN + below(9);
        feed(&s, cuts, count, 1 + below(3), cut, &pieces);
        if (!compare(&s, number, "in pieces, values", cut)) return 1;
    }
    return 0;
}
