/* respb_reply.c: what goes out: replies, translated from RESP3 to RESPB when they are written, and control frames.
 *
 * Owns a carrier's output buffer and the translation. The commonest replies are translated by hand, all others by librespb, whole: a
 * reply that comes in pieces is put together first, so that frames of different channels never mix. */
#include "server.h"

#ifdef USE_RESPB

#include "respb_carrier.h"

static respb_writer writer;
static respb_reply_decoder replies;
static respb_batch reply_batch;
static respb_frame reply_frame;

/* Called once, before anything else here. */
void respbRepliesBegin(void) {
    respb_writer_init(&writer, sizeof(writer), RESPB_PROTOCOL_RESPB, NULL, 0);
    reply_batch.frames = &reply_frame;
    reply_batch.frames_capacity = 1;
    reply_batch.values_capacity = VALUES_MIN;
    reply_batch.values = zmalloc(sizeof(respb_value) * VALUES_MIN);
}

/* ---- Output -------------------------------------------------------------------------------------------------------- */

/* Buffers that carriers which have sent everything have given back: the next that writes takes one, so that an idle connection
 * has none and a busy server makes none anew. */
static struct {
    char *buffer[POOL_MAX];
    size_t size[POOL_MAX];
    int len;
} pool;

static void outputGive(carrier *k) {
    if (k->out_size <= POOL_BYTES && pool.len < POOL_MAX) {
        pool.buffer[pool.len] = k->out;
        pool.size[pool.len++] = k->out_size;
    } else {
        zfree(k->out);
    }
    k->out = NULL;
    k->out_size = 0;
}

static void outputGrow(carrier *k, size_t more) {
    if (!k->out && pool.len) {
        k->out = pool.buffer[--pool.len];
        k->out_size = pool.size[pool.len];
        if (k->out_size >= more) return;
    }
    size_t size = k->out_size ? k->out_size : PROTO_IOBUF_LEN;
    /* Moving costs no more than what was sent since. */
    if (k->out_at && k->out_at >= k->out_len - k->out_at) {
        memmove(k->out, k->out + k->out_at, k->out_len - k->out_at);
        k->out_len -= k->out_at;
        k->out_ready -= k->out_at;
        k->out_at = 0;
    }
    while (size - k->out_len < more) size *= 2;
    if (size != k->out_size) {
        k->out = zrealloc(k->out, size);
        k->out_size = size;
    }
}

/* Room for `n` bytes at the end of the output, which the caller fills. */
unsigned char *respbOutput(carrier *k, size_t n) {
    if (k->out_size - k->out_len < n) outputGrow(k, n);
    unsigned char *at = (unsigned char *)k->out + k->out_len;
    k->out_len += n;
    respbActivate(k);
    return at;
}

static unsigned char *put16(unsigned char *at, unsigned n) {
    at[0] = n >> 8;
    at[1] = n;
    return at + 2;
}

static unsigned char *put32(unsigned char *at, uint32_t n) {
    return put16(put16(at, n >> 16), n & 0xFFFF);
}

const char *respbReasonOf(int code) {
    static const char *const reasons[] = {"", "a queue is full", "an output limit was exceeded", "idle for too long", "killed",
                                          "too many channels", "the server shuts down", "the user was removed or disabled"};
    return reasons[code];
}

void respbOutputClose(carrier *k, uint16_t number, int code) {
    const char *reason = respbReasonOf(code);
    size_t len = respb_encode_close(number, code, reason, strlen(reason), NULL, 0);
    respb_encode_close(number, code, reason, strlen(reason), respbOutput(k, len), len);
    /* What channels that have ended, or were refused, are owed has no other limit. */
    if (k->out_len - k->out_at > respb_settings.connection_output_bytes_max) respbLeave(k, RESPB_OUTPUT_FULL, NULL);
}

/* Sends what may be sent. Nothing goes out before beforeSleep has written the append-only file. */
void respbFlush(carrier *k) {
    while (k->conn && k->out_at < k->out_ready) {
        size_t len = k->out_ready - k->out_at;
        int sent = connWrite(k->conn, k->out + k->out_at, len < TAKEN_MAX ? len : TAKEN_MAX);
        if (sent <= 0) {
            if (connGetState(k->conn) != CONN_STATE_CONNECTED) respbHangUp(k);
            break;
        }
        server.stat_net_output_bytes += sent;
        server.stat_total_writes_processed++;
        k->out_at += sent;
    }
    if (k->out_at != k->out_len) return;
    k->out_at = k->out_ready = k->out_len = 0;
    if (k->out) outputGive(k);
}

void respbWritable(connection *conn) {
    carrier *k = connGetPrivateData(conn);
    respbFlush(k);
    if (!k->conn) return;
    if (k->zero) updateClientMemUsageAndBucket(k->zero->client);
    if (k->out_at == k->out_ready) connSetWriteHandler(k->conn, NULL);
    if (k->left || listLength(k->writers)) respbActivate(k);
}

/* ---- Replies: from RESP3 to RESPB ---------------------------------------------------------------------------------- */

/* A length or a number of at most nine digits, and the end of its line. Gives what is behind it, NULL for all others. */
static const char *numberLine(const char *at, const char *end, uint32_t *n) {
    const char *first = at;
    for (*n = 0; at < end && at - first < 9 && *at >= '0' && *at <= '9'; at++) *n = *n * 10 + (uint32_t)(*at - '0');
    return at == first || end - at < 2 || *at != '\r' ? NULL : at + 2;
}

/* The commonest replies, without the codec: OK, null, an integer, a bulk. Gives the bytes used, 0 for all others. */
static size_t translateSimple(channel *ch, const char *data, size_t len) {
    carrier *k = ch->on;
    const char *end = data + len;
    unsigned char *to;
    uint32_t n;
    if (data[0] == '+') {
        if (len < 5 || memcmp(data, "+OK\r\n", 5) != 0) return 0;
        put16(put16(respbOutput(k, 4), 0x8000), ch->number);
        return 5;
    }
    if (data[0] == '_') {
        if (len < 3) return 0;
        put16(put16(respbOutput(k, 4), 0x8005), ch->number);
        return 3;
    }
    if (data[0] != '$' && data[0] != ':') return 0;
    const char *at = numberLine(data + 1, end, &n);
    if (!at) return 0;
    if (data[0] == ':') {
        if (n <= 0xFF) {
            put16(put16(respbOutput(k, 4), 0x8100 | n), ch->number);
        } else {
            put32(put16(put16(respbOutput(k, 8), 0x8010), ch->number), n);
        }
        return (size_t)(at - data);
    }
    if ((size_t)(end - at) < (size_t)n + 2) return 0;
    if (n <= 0xFF) {
        to = put16(put16(respbOutput(k, n + 4), 0x8200 | n), ch->number);
    } else {
        to = put32(put16(put16(respbOutput(k, (size_t)n + 8), 0x8003), ch->number), n);
    }
    memcpy(to, at, n);
    return (size_t)(at - data) + n + 2;
}

/* The same for an array, a map or a set of bulks, nulls and integers, when all of it is there. No element is longer in RESPB. */
static size_t translateFlat(channel *ch, const char *data, size_t len) {
    carrier *k = ch->on;
    const char *end = data + len;
    unsigned type = data[0] == '*' ? 0x8004 : data[0] == '%' ? 0x8008 : data[0] == '~' ? 0x8009 : 0;
    uint32_t count, n;
    const char *at = type ? numberLine(data + 1, end, &count) : NULL;
    if (!at) return 0;
    uint64_t elements = (uint64_t)count << (data[0] == '%');
    if (elements > len / 3) return 0;
    if (k->out_size - k->out_len < len + 4) outputGrow(k, len + 4);
    unsigned char *out = (unsigned char *)k->out + k->out_len, *to = put32(put16(put16(out, type), ch->number), count);
    for (; elements; elements--) {
        if (end - at < 3) return 0;
        char kind = *at;
        if (kind == '_') {
            *to++ = 0x05;
            at += 3;
            continue;
        }
        if ((kind != '$' && kind != ':') || !(at = numberLine(at + 1, end, &n))) return 0;
        if (kind == ':') {
            *to++ = n <= 62 ? 0x41 + n : 0x10;
            if (n > 62) to = put32(to, n);
            continue;
        }
        if ((size_t)(end - at) < (size_t)n + 2) return 0;
        *to++ = n <= 0x7F ? 0x80 | n : 0x03;
        if (n > 0x7F) to = put32(to, n);
        memcpy(to, at, n);
        to += n;
        at += n + 2;
    }
    respbOutput(k, (size_t)(to - out));
    return (size_t)(at - data);
}

/* A reply that RESPB cannot say, which starts with `kind`: a script may give a big number that is none, or nest too deep. An error is
 * its answer. A module may write what it likes: where that is no reply at all, the connection ends and nothing follows. */
static void refuseReply(channel *ch, char kind) {
    static const char error[] = "ERR the reply to this is not available over RESPB";
    if (strchr("+-:_,#($=!*%~|", kind)) {
        unsigned char *to = respbOutput(ch->on, 6 + sizeof(error) - 1);
        memcpy(put16(put16(put16(to, 0x8001), ch->number), sizeof(error) - 1), error, sizeof(error) - 1);
        ch->skips = 1;
        return;
    }
    serverLog(LL_WARNING, "A reply of channel %u is no RESP3: its connection is ended.", ch->number);
    respbLeave(ch->on, RESPB_UNREADABLE, "ERR a reply could not be translated");
    ch->skips = UINT64_MAX / 2;
}

static void writeFrame(channel *ch, const respb_batch *batch) {
    carrier *k = ch->on;
    const respb_frame *frame = &batch->frames[0];
    for (;;) {
        respb_writer_buffer(&writer, k->out, k->out_size, k->out_len);
        respb_writer_channel(&writer, ch->number);
        respb_status status = respb_write_values(&writer, batch->values + frame->first, frame->count);
        size_t len = respb_writer_len(&writer);
        if (status == RESPB_OK) {
            respbOutput(k, len - k->out_len);
            return;
        }
        respb_writer_truncate(&writer, k->out_len);
        if (status != RESPB_FULL) {
            /* An attribute stands before a push, which only a module can bring about. */
            refuseReply(ch, '>');
            return;
        }
        outputGrow(k, len - k->out_len);
    }
}

static void repliesInit(respb_reply_decoder *decoder) {
    respb_limits limits;
    respb_limits_default(&limits);
    limits.argument_bytes_max = limits.frame_bytes_max = limits.inline_bytes_max = UINT32_MAX;
    respb_reply_decoder_init(decoder, sizeof(*decoder), RESPB_PROTOCOL_RESP3, &limits);
}

/* Passes over what is there of a reply that was refused: its framing is good. Gives the bytes used, whole values. */
static size_t skipValues(channel *ch, const char *data, size_t len) {
    const char *at = data, *end = data + len, *line;
    while (ch->skips && at < end && (line = memchr(at, '\n', end - at))) {
        long long n = 0;
        if (strchr("*~>%|$=!", *at) && (!string2ll(at + 1, line - at - 2, &n) || n < 0)) n = 0;
        if (strchr("$=!", *at)) {
            if (end - line - 1 < n + 2) break;
            line += n + 2;
        } else {
            /* The value of an attribute stands behind its pairs. */
            ch->skips += strchr("%|", *at) ? 2 * n + (*at == '|') : n;
        }
        ch->skips--;
        at = line + 1;
    }
    return (size_t)(at - data);
}

/* Translates the whole replies at `data`. Gives the bytes used. */
static size_t translateWhole(channel *ch, respb_reply_decoder *decoder, respb_batch *batch, const char *data, size_t len) {
    size_t used = 0;
    for (;;) {
        if (ch->skips) {
            used += skipValues(ch, data + used, len - used);
            if (ch->skips) return used;
        }
        respb_status status = respb_decode_replies(decoder, data + used, len - used, batch);
        serverAssert(status != RESPB_EINVAL);
        used += batch->consumed;
        if (status == RESPB_INVALID) {
            refuseReply(ch, data[used]);
            repliesInit(decoder);
            batch->values_len = batch->partial = batch->taken = 0;
        } else if (batch->frames_len) {
            writeFrame(ch, batch);
        } else if (status == RESPB_FULL) {
            batch->values_capacity *= 2;
            batch->values = zrealloc(batch->values, batch->values_capacity * sizeof(respb_value));
        } else {
            return used;
        }
    }
}

void respbHalfFree(channel *ch) {
    if (!ch->half) return;
    sdsfree(ch->half->bytes);
    zfree(ch->half->batch.values);
    zfree(ch->half);
    ch->half = NULL;
}

static void halfMake(channel *ch) {
    half *made = zcalloc(sizeof(*made));
    made->bytes = sdsempty();
    repliesInit(&made->decoder);
    made->batch.frames = &made->frame;
    made->batch.frames_capacity = 1;
    made->batch.values_capacity = RESPB_VALUES_MIN;
    made->batch.values = zmalloc(sizeof(respb_value) * RESPB_VALUES_MIN);
    ch->half = made;
}

void respbTranslate(channel *ch, const char *data, size_t len) {
    size_t used;
    while (len) {
        half *part = ch->half;
        if (!part) {
            used = ch->skips ? 0 : translateSimple(ch, data, len);
            if (!used && !ch->skips) used = translateFlat(ch, data, len);
            if (!used) {
                repliesInit(&replies);
                reply_batch.values_len = reply_batch.partial = reply_batch.taken = 0;
                used = translateWhole(ch, &replies, &reply_batch, data, len);
                if (used < len) halfMake(ch);
            }
            data += used;
            len -= used;
            continue;
        }
        /* No more than completes a bulk: what follows it is translated where it is. */
        size_t have = sdslen(part->bytes), take = len;
        if (part->bytes[0] == '$' && part->batch.need > have && part->batch.need - have < len) take = part->batch.need - have;
        part->bytes = sdscatlen(part->bytes, data, take);
        used = translateWhole(ch, &part->decoder, &part->batch, part->bytes, sdslen(part->bytes));
        if (used == sdslen(part->bytes)) {
            respbHalfFree(ch);
        } else {
            sdsrange(part->bytes, used, -1);
        }
        data += take;
        len -= take;
    }
}

#endif
