/* respb_request.c: what comes in: from bytes to commands of channels.
 *
 * Owns a carrier's input, and the queues of its channels. A request is put into its client's argv, or into the client's command
 * queue, with the command already looked up. */
#include "server.h"

#ifdef USE_RESPB

#include "respb_carrier.h"
#include "cluster.h"

/* Commands by librespb's id: the one of Valkey where it cannot go away, and its name as an object. */
static struct serverCommand **commands;
static robj **names;
/* What is read is decoded here, unless a frame is not whole. */
static char *shared_in;
static int shared_in_busy;
/* What decoding fills: a carrier has one from its first byte on, until no frame of its is left in part. One waits for the next. */
static respb_batch spare;

/* Called once, before anything else here. */
void respbRequestsBegin(void) {
    shared_in = zmalloc(PROTO_IOBUF_LEN);
    commands = zcalloc(sizeof(*commands) * respb_command_count());
    names = zcalloc(sizeof(*names) * respb_command_count());
}

/* ---- Requests ------------------------------------------------------------------------------------------------------ */

static robj *argumentOf(const respb_value *value) {
    if (value->kind == RESPB_BYTES || value->kind == RESPB_KEYWORD) return createStringObject(value->value.data, value->len);
    char text[512];
    size_t len = respb_value_text(value, text, sizeof(text));
    serverAssert(len <= sizeof(text));
    return createStringObject(text, len);
}

static struct serverCommand *commandOf(const respb_frame *frame, robj **argv, int argc) {
    if (frame->kind != RESPB_FRAME_CORE && frame->kind != RESPB_FRAME_MODULE) return lookupCommand(argv, argc);
    struct serverCommand *cmd = commands[frame->command];
    if (cmd) return cmd;
    cmd = lookupCommand(argv, argc);
    /* Subcommands have their container's opcode, and a module may be unloaded. */
    if (cmd && !cmd->parent && !cmd->subcommands_ht && !(cmd->flags & CMD_MODULE)) commands[frame->command] = cmd;
    return cmd;
}

/* The arguments of a frame as Valkey has them, with the command. */
static parsedCommand requestOf(const respb_frame *frame, const respb_value *values) {
    parsedCommand made = {.read_flags = READ_FLAGS_PARSING_COMPLETED, .slot = -1, .input_bytes = frame->len};
    int named = frame->kind == RESPB_FRAME_CORE || frame->kind == RESPB_FRAME_MODULE;
    if (frame->kind == RESPB_FRAME_UNKNOWN) {
        made.argv = zmalloc(sizeof(robj *));
        made.argv[0] = createObject(OBJ_STRING, sdscatprintf(sdsempty(), UNKNOWN_FRAME "%04X", frame->opcode));
        made.argc = made.argv_len = 1;
        made.read_flags |= READ_FLAGS_COMMAND_NOT_FOUND;
        return made;
    }
    made.argc = made.argv_len = (int)frame->count + named;
    made.argv = zmalloc(sizeof(robj *) * made.argc);
    if (named) {
        robj **name = &names[frame->command];
        if (!*name) {
            const char *text = respb_command_get(frame->command)->name;
            *name = makeObjectShared(createStringObject(text, strlen(text)));
        }
        made.argv[0] = *name;
        made.argv_len_sum = sdslen(objectGetVal(*name));
    }
    for (uint32_t i = 0; i < frame->count; i++) {
        robj *argument = argumentOf(&values[frame->first + i]);
        made.argv[i + named] = argument;
        made.argv_len_sum += sdslen(objectGetVal(argument));
    }
    made.cmd = commandOf(frame, made.argv, made.argc);
    if (!made.cmd) {
        made.read_flags |= READ_FLAGS_COMMAND_NOT_FOUND;
    } else if (!commandCheckArity(made.cmd, made.argc, NULL)) {
        made.read_flags |= READ_FLAGS_BAD_ARITY;
    } else if (server.cluster_enabled) {
        made.slot = clusterSlotByCommand(made.cmd, made.argv, made.argc, &made.read_flags);
    }
    return made;
}

static void requestFree(parsedCommand *request) {
    for (int j = 0; j < request->argc; j++) decrRefCount(request->argv[j]);
    zfree(request->argv);
}

static size_t requestBytes(const parsedCommand *request) {
    return sizeof(*request) + request->argc * (sizeof(robj *) + sizeof(robj)) + request->argv_len_sum;
}

/* Counts what waits of a channel: what has run since the last time is taken off, whose sizes stand in the queue until it is empty. */
void respbCountQueue(channel *ch) {
    cmdQueue *queue = &ch->client->cmd_queue;
    ch->on->queue_bytes -= ch->queue_bytes;
    if (queue->off == queue->len) {
        ch->queue_bytes = 0;
    } else if (ch->queue_bytes) {
        for (int i = ch->queue_from; i < queue->off; i++) ch->queue_bytes -= requestBytes(&queue->cmds[i]);
    } else {
        for (int i = queue->off; i < queue->len; i++) ch->queue_bytes += requestBytes(&queue->cmds[i]);
    }
    ch->queue_from = queue->off;
    ch->on->queue_bytes += ch->queue_bytes;
}

int respbQueueIsFull(channel *ch, size_t more) {
    return ch->queue_bytes + more > respb_settings.queue_bytes_max ||
           ch->on->queue_bytes + more > respb_settings.connection_queue_bytes_max ||
           ch->client->cmd_queue.len - ch->client->cmd_queue.off == UINT16_MAX;
}

static void enqueue(channel *ch, const parsedCommand *request) {
    cmdQueue *queue = &ch->client->cmd_queue;
    respbMayDecide(ch, request->cmd);
    if (queue->len == queue->cap) {
        /* What is moved is at most what has run since the last time, unless the queue is as large as it can be. */
        if (queue->off && (queue->off >= queue->len / 2 || queue->cap == UINT16_MAX)) {
            memmove(queue->cmds, queue->cmds + queue->off, (queue->len - queue->off) * sizeof(*queue->cmds));
            queue->len -= queue->off;
            queue->off = ch->queue_from = 0;
        } else {
            queue->cap = queue->cap < 16 ? 16 : queue->cap > UINT16_MAX / 2 ? UINT16_MAX : queue->cap * 2;
            queue->cmds = zrealloc(queue->cmds, queue->cap * sizeof(*queue->cmds));
        }
    }
    queue->cmds[queue->len++] = *request;
    ch->pushed++;
}

/* Behind what a channel's client has run. */
void respbAfterRun(carrier *k, client *c) {
    if (!k->authenticated && c->flag.authenticated) k->authenticated = 1;
    /* Valkey's queues are small: it would take 65,536 places, of which 32,769 requests have need, for none. */
    if (c->cmd_queue.len <= UINT16_MAX / 2 + 1) trimCommandQueue(c);
    beforeNextClient(c);
}

/* A channel whose queue is full ends, unless it is an administrator who holds it: then nothing more is read. */
static void fullQueue(channel *ch) {
    client *c = ch->client;
    if (c->flag.blocked && c->bstate->btype == BLOCKED_POSTPONE) {
        ch->on->paused = 1;
    } else {
        respbChannelEnd(ch, RESPB_QUEUE_FULL);
    }
}

/* Consecutive requests of one channel. Gives how many were taken: fewer than `count` where reading pauses. */
static int runRequests(channel *ch, parsedCommand *requests, int count) {
    carrier *k = ch->on;
    client *c = ch->client;
    int i;
    c->last_interaction = server.unixtime;
    if (owesTooMuch(k)) respbOver(ch);
    if (c->flag.close_after_reply || c->flag.close_asap || ch->is_over) {
        for (i = 0; i < count; i++) requestFree(&requests[i]);
        return count;
    }
    if (ch->queue_bytes) respbCountQueue(ch);
    if (!ch->awaits_user && c->cmd_queue.off == c->cmd_queue.len && canParseCommand(c)) {
        for (i = 0; i < count; i++) c->net_input_bytes += requests[i].input_bytes;
        if (count == 1) {
            ch->pushed++;
            c->read_flags = requests->read_flags | (authRequired(c) ? READ_FLAGS_AUTH_REQUIRED : 0);
            c->argc = requests->argc;
            c->argv = requests->argv;
            c->argv_len = requests->argv_len;
            c->argv_len_sum = requests->argv_len_sum;
            c->net_input_bytes_curr_cmd = requests->input_bytes;
            c->parsed_cmd = requests->cmd;
            c->slot = requests->slot;
            if (processCommandAndResetClient(c) == C_ERR) return count;
        } else {
            for (i = 0; i < count; i++) enqueue(ch, &requests[i]);
            if (processInputBuffer(c) == C_ERR) return count;
        }
        if (ch->queue_bytes || c->cmd_queue.off != c->cmd_queue.len) respbCountQueue(ch);
        if (ch->queue_bytes && respbQueueIsFull(ch, 0)) {
            fullQueue(ch);
        } else {
            respbAfterRun(k, c);
        }
        return count;
    }
    for (i = 0; i < count; i++) {
        size_t bytes = requestBytes(&requests[i]);
        if (respbQueueIsFull(ch, bytes)) {
            fullQueue(ch);
            if (k->paused) return i;
            for (; i < count; i++) requestFree(&requests[i]);
            return count;
        }
        enqueue(ch, &requests[i]);
        ch->queue_bytes += bytes;
        k->queue_bytes += bytes;
        c->net_input_bytes += requests[i].input_bytes;
    }
    return count;
}

/* CANCEL (section 8.6): what blocks ends, what waits becomes an error in its place. */
static void cancelRequest(carrier *k, uint16_t number, uint32_t sequence) {
    channel *ch = find(k, number);
    if (!ch) return;
    client *c = ch->client;
    cmdQueue *queue = &c->cmd_queue;
    uint32_t first = ch->pushed - (uint32_t)(queue->len - queue->off), at = sequence - first;
    if (at < (uint32_t)(queue->len - queue->off)) {
        parsedCommand *request = &queue->cmds[queue->off + at];
        size_t before = requestBytes(request);
        requestFree(request);
        memset(request, 0, sizeof(*request));
        request->argv = zmalloc(sizeof(robj *));
        request->argv[0] = createStringObject(CANCELLED, strlen(CANCELLED));
        request->argc = request->argv_len = 1;
        request->slot = -1;
        request->read_flags = READ_FLAGS_PARSING_COMPLETED | READ_FLAGS_COMMAND_NOT_FOUND;
        ch->queue_bytes -= before - requestBytes(request);
        k->queue_bytes -= before - requestBytes(request);
    } else if (sequence == first - 1 && c->flag.blocked && c->bstate->btype != BLOCKED_POSTPONE &&
               blockedClientMayTimeout(c)) {
        unblockClientOnError(c, "-CANCELLED the request was cancelled by its client");
    }
}

static void closedByClient(carrier *k, uint16_t number) {
    channel *ch = find(k, number);
    if (ch) {
        ch->client_closed = 1;
        if (!freeClient(ch->client)) respbCloseBefore(ch);
    } else if (isClosing(k, number)) {
        respbClosed(k, number);
    }
}

/* The frames of a batch, in their order. Gives the first that has to wait for the end of a pause, or `frames_len`. */
static size_t runFrames(carrier *k) {
    const respb_batch *batch = &k->batch;
    parsedCommand run[FRAMES_MAX];
    size_t first = 0, i;
    int count = 0, taken;
    channel *ch = NULL;
    for (i = 0; i <= batch->frames_len; i++) {
        const respb_frame *frame = i < batch->frames_len ? &batch->frames[i] : NULL;
        int is_request = frame && (frame->kind <= RESPB_FRAME_PASSTHROUGH || frame->kind == RESPB_FRAME_UNKNOWN);
        if (count && (!is_request || frame->channel != ch->number)) {
            taken = runRequests(ch, run, count);
            if (taken < count) {
                for (int j = taken; j < count; j++) requestFree(&run[j]);
                return first + taken;
            }
            count = 0;
            if (k->paused) return i;
        }
        if (!frame || k->leaving || !k->conn) break;
        if (frame->kind == RESPB_FRAME_CLOSE) closedByClient(k, frame->channel);
        if (frame->kind == RESPB_FRAME_CANCEL) cancelRequest(k, frame->channel, frame->number);
        if (!is_request) continue;
        if (!count) {
            ch = respbChannelFor(k, frame->channel);
            if (!ch) continue;
            first = i;
        }
        run[count++] = requestOf(frame, batch->values);
    }
    return batch->frames_len;
}

void respbDecoderStart(carrier *k) {
    respb_request_decoder_init(&k->decoder, sizeof(k->decoder), RESPB_PROTOCOL_RESPB, &k->limits);
    k->batch.values_len = k->batch.partial = k->batch.taken = 0;
}

void respbSetLimits(carrier *k) {
    if (k->authenticated) {
        respb_limits_default(&k->limits);
        if (server.proto_max_bulk_len < UINT32_MAX) k->limits.argument_bytes_max = server.proto_max_bulk_len;
        k->limits.frame_bytes_max = respb_settings.frame_bytes_max;
    } else {
        respb_limits_unauthenticated(&k->limits);
        k->limits.frame_bytes_max = UNAUTHENTICATED_BYTES;
    }
}

static void valuesResize(carrier *k, size_t capacity) {
    k->batch.values_capacity = capacity;
    k->batch.values = zrealloc(k->batch.values, capacity * sizeof(respb_value));
}

static void batchTake(carrier *k) {
    if (k->batch.values) return;
    k->batch.frames = spare.values ? spare.frames : zmalloc(FRAMES_MAX * sizeof(respb_frame));
    k->batch.values = spare.values ? spare.values : zmalloc(VALUES_MIN * sizeof(respb_value));
    k->batch.values_capacity = VALUES_MIN;
    k->batch.values_len = k->batch.partial = k->batch.taken = 0;
    spare.values = NULL;
}

void respbBatchGive(carrier *k) {
    if (k->batch.values && !spare.values && k->batch.values_capacity == VALUES_MIN) {
        spare = k->batch;
    } else {
        zfree(k->batch.frames);
        zfree(k->batch.values);
    }
    k->batch.frames = NULL;
    k->batch.values = NULL;
}

/* Says what cannot be read (section 11). */
static void refuseBytes(carrier *k, const char *data, size_t len) {
    sds reason = sdscatprintf(sdsempty(), "ERR %s", respb_error_text(k->batch.error));
    if (k->batch.error == RESPB_ERR_UNKNOWN_OPCODE && len >= 4) {
        const unsigned char *at = (const unsigned char *)data;
        reason = sdscatprintf(reason, " 0x%02X%02X", at[0], at[1]);
        if (at[0] == 0xF0 && at[1] == 0 && len >= 8)
            reason = sdscatprintf(reason, " module 0x%02X%02X command 0x%02X%02X", at[4], at[5], at[6], at[7]);
    }
    respbLeave(k, RESPB_UNREADABLE, reason);
    sdsfree(reason);
}

/* Decodes and runs what has come. Gives the bytes that are done with. */
static size_t runBytes(carrier *k, const char *data, size_t len) {
    size_t used = 0;
    k->waits = 0;
    while (!k->leaving && k->conn) {
        if (k->authenticated && k->limits.unauthenticated) {
            respbSetLimits(k);
            respb_request_decoder_limits(&k->decoder, &k->limits, &k->batch);
        }
        k->batch.frames_capacity = k->authenticated ? FRAMES_MAX : 1;
        respb_status status = respb_decode_requests(&k->decoder, data + used, len - used, &k->batch);
        serverAssert(status != RESPB_EINVAL);
        if (k->batch.frames_len) {
            size_t done = runFrames(k);
            if (k->leaving || !k->conn) break;
            if (k->paused) {
                used = done < k->batch.frames_len ? (size_t)(k->batch.frames[done].data - data) : used + k->batch.consumed;
                respbDecoderStart(k);
                connSetReadHandler(k->conn, NULL);
                respbActivate(k);
                return used;
            }
            used += k->batch.consumed;
        } else if (status == RESPB_FULL) {
            valuesResize(k, k->batch.values_capacity * 2);
        }
        if (status == RESPB_INVALID) {
            refuseBytes(k, data + used, len - used);
            break;
        }
        if (status != RESPB_FULL) {
            if (status == RESPB_OK && k->batch.values_capacity > VALUES_MIN) {
                k->batch.values_len = k->batch.partial = 0;
                valuesResize(k, VALUES_MIN);
            }
            return used;
        }
    }
    return len;
}

/* Runs `len` bytes at `data`, which are `in` or elsewhere, and keeps in `in` what is not done with. */
void respbTakeBytes(carrier *k, char *data, size_t len) {
    k->busy = 1;
    batchTake(k);
    size_t used = runBytes(k, data, len);
    k->busy = 0;
    k->in_len = len - used;
    if (k->in_len == 0) {
        respbBatchGive(k);
        zfree(k->in);
        k->in = NULL;
        k->in_size = 0;
    } else if (data == k->in) {
        memmove(k->in, k->in + used, k->in_len);
    } else {
        if (k->in_size < k->in_len) {
            k->in_size = k->in_len > 1024 ? k->in_len : 1024;
            k->in = zrealloc(k->in, k->in_size);
        }
        memcpy(k->in, data + used, k->in_len);
    }
}

void respbReadable(connection *conn) {
    carrier *k = connGetPrivateData(conn);
    if (k->busy && !k->left) return;
    int is_shared = k->in_len == 0 && !shared_in_busy;
    char *data = shared_in;
    size_t size = PROTO_IOBUF_LEN;
    if (!is_shared) {
        /* Room grows with what has come, never with what a length announces. */
        if (k->in_size - k->in_len < PROTO_IOBUF_LEN) {
            k->in_size = k->in_size * 2 > k->in_len + PROTO_IOBUF_LEN ? k->in_size * 2 : k->in_len + PROTO_IOBUF_LEN;
            k->in = zrealloc(k->in, k->in_size);
        }
        data = k->in;
        size = k->in_size;
    }
    int n = connRead(conn, data + k->in_len, size - k->in_len);
    server.stat_total_reads_processed++;
    if (n <= 0) {
        if (n == 0 || connGetState(conn) != CONN_STATE_CONNECTED) respbHangUp(k);
        return;
    }
    server.stat_net_input_bytes += n;
    if (k->leaving) {
        k->lingered += n;
        return;
    }
    /* While any channel is used channel 0 is not idle. */
    if (k->zero) k->zero->client->last_interaction = server.unixtime;
    if (is_shared) shared_in_busy = 1;
    respbTakeBytes(k, data, k->in_len + (size_t)n);
    if (is_shared) shared_in_busy = 0;
    /* Requests that come in pieces count as Valkey's do: the largest client may be evicted. */
    if (k->in && k->zero) updateClientMemUsageAndBucket(k->zero->client);
}

#endif
