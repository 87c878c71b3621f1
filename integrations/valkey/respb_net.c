/* respb_net.c: connections that speak RESPB, from their first bytes to their end.
 *
 * Owns the life of a carrier, and the hooks before the loop sleeps. Its bytes, its channels and their commands are in
 * respb_request.c, respb_reply.c, respb_channel.c and respb_command.c; the codec is librespb (deps/respb); the lines in
 * Valkey's own files that call all this are in insertions.txt. Sections in brackets are those of the specification,
 * spec/RESPB.md of Weft.
 *
 * Everything here runs on the main thread. A command may run the event loop (a script that takes long): `busy` keeps a
 * carrier whose frames are being run from being read meanwhile, and nothing is freed before that is over. */
#include "server.h"

#ifdef USE_RESPB

#include "respb_carrier.h"

#include <poll.h>
#include <sys/socket.h>

respbSettings respb_settings;

/* Carriers that have to be looked at before the loop sleeps, and all of them. */
static list *active, *carriers;
/* `active` is being gone through by what runs commands: one of them may run the loop, which takes none off meanwhile. */
static int working;

static void initialise(void) {
    if (active) return;
    active = listCreate();
    carriers = listCreate();
    respbRepliesBegin();
    respbRequestsBegin();
}

/* Has a carrier looked at before the loop sleeps. */
void respbActivate(carrier *k) {
    if (k->active) return;
    listAddNodeTail(active, k);
    k->active = listLast(active);
}

/* Makes the connection of a client a carrier, and the client its channel 0. */
static carrier *carrierMake(client *c) {
    initialise();
    carrier *k = zcalloc(sizeof(*k));
    k->conn = c->conn;
    k->writers = listCreate();
    k->awaiting = listCreate();
    k->authenticated = c->flag.authenticated;
    listAddNodeTail(carriers, k);
    k->listed = listLast(carriers);

    channel *zero = respbChannelMake(k, 0);
    zero->client = c;
    k->zero = zero;
    connSetPrivateData(&zero->conn, c);
    c->conn = &zero->conn;
    c->flag.respb_told = c->flag.respb_channel = 1;
    /* What is owed in RESP goes first, as it is. */
    zero->is_raw = zero->drains = 1;
    while (clientHasPendingReplies(c)) writeToClient(c);
    zero->is_raw = zero->drains = 0;
    c->resp = 3;

    connSetPrivateData(k->conn, k);
    connSetWriteHandler(k->conn, NULL);
    connSetReadHandler(k->conn, respbReadable);
    respbSetLimits(k);
    return k;
}

/* Bytes that the client's query buffer has beyond what was RESP become the carrier's. */
static void takeQueryBuffer(carrier *k, client *c) {
    if (c->querybuf && sdslen(c->querybuf) > c->qb_pos) {
        k->in_len = k->in_size = sdslen(c->querybuf) - c->qb_pos;
        k->in = zmalloc(k->in_size);
        memcpy(k->in, c->querybuf + c->qb_pos, k->in_len);
        c->qb_pos = sdslen(c->querybuf);
        k->waits = 1;
        respbActivate(k);
    }
    trimClientQueryBuffer(c);
    sdsfree(c->querybuf);
    c->querybuf = NULL;
    c->qb_pos = 0;
    c->reqtype = c->multibulklen = 0;
}

/* A client has sent its first bytes: whether they are RESPB, and the client is channel 0 from now on. */
int respbTakes(client *c) {
    size_t skip;
    if (c->flag.replica || c->flag.primary || c->slot_migration_job) {
        c->flag.respb_told = 1;
        return 0;
    }
    int kind = respb_detect(c->querybuf + c->qb_pos, sdslen(c->querybuf) - c->qb_pos, &skip);
    if (kind == RESPB_DETECT_MORE) return 0;
    c->flag.respb_told = 1;
    if (kind != RESPB_DETECT_RESPB || !respb_settings.enabled || !respb_settings.detect) return 0;
    c->qb_pos += skip;
    carrier *k = carrierMake(c);
    k->limits.first_frame = 1;
    respbDecoderStart(k);
    k->limits.first_frame = 0;
    takeQueryBuffer(k, c);
    k->waits = 0;
    respbTakeBytes(k, k->in, k->in_len);
    return 1;
}

/* HELLO has been answered in RESP: from here on it is RESPB. */
void respbSwitch(client *c) {
    waitForClientIO(c);
    carrier *k = carrierMake(c);
    respbDecoderStart(k);
    /* What came behind HELLO and was parsed as RESP is no RESPB. */
    if (c->cmd_queue.off < c->cmd_queue.len) respbLeave(k, RESPB_UNREADABLE, "ERR Protocol error: RESP behind HELLO with PROTO respb");
    discardCommandQueue(c);
    takeQueryBuffer(k, c);
}

/* I/O threads read neither what has not told its protocol, nor channels, and do not write for channels. */
int respbKeepsFromThreads(client *c) {
    return !c->flag.respb_told || c->flag.respb_channel;
}

/* The socket ends. A child that saves has it too: without shutdown its other side would learn of that when the child ends. */
void respbHangUp(carrier *k) {
    if (server.child_type) connShutdown(k->conn);
    connClose(k->conn);
    k->conn = NULL;
    respbActivate(k);
}

/* The connection of which only our direction is ended now, and whether what says so could not be written yet. */
static connection *ending;
static int ending_waits;

/* Ends our direction when all is sent. Over TLS that has to be said first (close_notify), or the other side could not tell this end from
 * one that somebody else has made. Valkey's own shutdown of such a connection would say it, but end both directions. */
static void endWrites(carrier *k) {
    if (connIsTLS(k->conn)) {
        ending = k->conn;
        connShutdown(k->conn);
        ending = NULL;
        if (ending_waits) {
            connSetWriteHandler(k->conn, respbWritable);
            return;
        }
    }
    shutdown(k->conn->fd, SHUT_WR);
    k->shut = 1;
}

/* Whether only our direction of a TLS connection is to be ended. */
int respbEndsWrites(connection *conn) {
    if (conn != ending) return 0;
    errno = 0;
    return 1;
}

/* What has become of saying it. */
int respbWritesEnd(int result) {
    ending_waits = result < 0 && (errno == EAGAIN || errno == EINTR);
    return 1;
}

/* Whether clients have more memory than they may (maxmemory-clients), and this connection does not take what it is owed: then that is
 * not waited for (section 8.5), since an evicted channel's replies would only move into the carrier's output. */
int respbCrowdsOut(carrier *k) {
    size_t limit = getClientEvictionLimit(), owed = k->out_len - k->out_at;
    if (!limit || !k->conn || owed < OUTPUT_HIGH) return 0;
    /* Channel 0 counts what is owed. */
    return server.stat_clients_type_memory[CLIENT_TYPE_NORMAL] + server.stat_clients_type_memory[CLIENT_TYPE_PUBSUB] + (k->zero ? 0 : owed) > limit;
}

/* GOAWAY is owed, and no further request begins. The rest is done before the loop sleeps, when nothing is under way. */
void respbLeave(carrier *k, int code, const char *reason) {
    if (k->leaving) return;
    k->leaving = 1;
    k->code = code;
    k->reason = sdsnew(reason ? reason : respbReasonOf(code));
    respbActivate(k);
}

/* The next open channel from a number on, which is moved behind it; NULL when there is none. */
static channel *nextChannel(carrier *k, unsigned *number) {
    while (*number < NUMBERS) {
        channel *ch = find(k, (uint16_t)*number);
        if (!k->pages[*number / PAGE_CHANNELS]) *number |= PAGE_CHANNELS - 1;
        ++*number;
        if (ch) return ch;
    }
    return NULL;
}

static void eachChannelFree(carrier *k) {
    unsigned number = 0;
    for (channel *ch; (ch = nextChannel(k, &number));) freeClient(ch->client);
}

/* Takes what channels are owed whose client is needed still. */
static void eachChannelDrain(carrier *k) {
    unsigned number = 0;
    for (channel *ch; (ch = nextChannel(k, &number));) {
        ch->drains = 1;
        while (clientHasPendingReplies(ch->client)) {
            if (writeToClient(ch->client) == C_ERR || ch->client->nwritten <= 0) break;
        }
    }
}

/* Answers all that has run, says GOAWAY and ends our direction once it is sent. While its frames are being run, which is where the
 * server ends, its channels stay. */
static void goAway(carrier *k) {
    if (k->busy) {
        eachChannelDrain(k);
    } else {
        eachChannelFree(k);
    }
    size_t len = respb_encode_goaway(k->code, k->reason, sdslen(k->reason), NULL, 0);
    respb_encode_goaway(k->code, k->reason, sdslen(k->reason), respbOutput(k, len), len);
    k->left = 1;
    k->linger_until = server.mstime + LINGER_MS;
    if (k->conn) connSetReadHandler(k->conn, respbReadable);
}

static void carrierFree(carrier *k) {
    eachChannelFree(k);
    if (k->open) return; /* a client that is protected: later */
    if (k->active) listDelNode(active, k->active);
    listDelNode(carriers, k->listed);
    listRelease(k->writers);
    listRelease(k->awaiting);
    zfree(k->deciders);
    zfree(k->closing);
    zfree(k->in);
    zfree(k->out);
    respbBatchGive(k);
    sdsfree(k->reason);
    zfree(k);
}

/* Runs what waits in the queues of channels that have a user now. */
static void runAwaited(carrier *k) {
    unsigned number = 0;
    for (channel *ch; !k->leaving && (ch = nextChannel(k, &number));) {
        client *c = ch->client;
        if (ch->awaits_user || c->cmd_queue.off == c->cmd_queue.len || !canParseCommand(c)) continue;
        if (processInputBuffer(c) == C_OK) respbAfterRun(k, c);
    }
}

/* Whether a pause still holds a channel. Of those that it holds no more, what blocks and has a full queue ends. */
static int isHeld(carrier *k) {
    unsigned number = 0;
    for (channel *ch; !k->leaving && (ch = nextChannel(k, &number));) {
        if (!ch->client->flag.blocked) continue;
        if (ch->client->bstate->btype == BLOCKED_POSTPONE) return 1;
        if (ch->queue_bytes) respbCountQueue(ch);
        if (ch->queue_bytes && respbQueueIsFull(ch, 0)) respbChannelEnd(ch, RESPB_QUEUE_FULL);
    }
    return 0;
}

/* Ends channels that are past their output limit and have nothing under way. */
static void endOver(carrier *k) {
    unsigned number = 0;
    k->has_over = 0;
    for (channel *ch; !k->leaving && (ch = nextChannel(k, &number));) {
        if (ch->is_over) respbChannelEnd(ch, RESPB_OUTPUT_FULL);
    }
}

/* Whether a command that runs the loop is of this carrier, which was not read for it: its channel had waited. */
static int isRunning(carrier *k) {
    unsigned number = 0;
    if (!ProcessingEventsWhileBlocked) return 0;
    for (channel *ch; (ch = nextChannel(k, &number));) {
        if (ch->client->flag.protected) return 1;
    }
    return 0;
}

/* What a carrier has to do before replies are written. Gives whether requests ran. */
static int carrierWork(carrier *k) {
    int ran = 0;
    if (k->busy) return 0;
    if (!k->conn) {
        carrierFree(k);
        return 0;
    }
    if (k->leaving) {
        if (!k->left && !isRunning(k)) goAway(k);
        return 0;
    }
    if (k->has_over) endOver(k);
    if (listLength(k->awaiting)) respbGiveUsers(k, 0);
    if (k->paused && !isHeld(k)) {
        k->paused = 0;
        k->waits = 1;
        connSetReadHandler(k->conn, respbReadable);
    }
    if (k->waits && !k->paused && !k->leaving) {
        k->waits = 0;
        ran = 1;
        runAwaited(k);
        if (k->in_len && !k->leaving && k->conn) respbTakeBytes(k, k->in, k->in_len);
    }
    return ran;
}

/* Called before replies are written, and before the append-only file is. */
void respbBeforeWrites(void) {
    int ran;
    if (!active || listLength(active) == 0 || working) return;
    working = 1;
    do {
        listIter li;
        listNode *ln;
        ran = 0;
        listRewind(active, &li);
        while ((ln = listNext(&li))) ran |= carrierWork(listNodeValue(ln));
        /* What ran may have given others what they block for. */
        if (ran && !ProcessingEventsWhileBlocked) blockedBeforeSleep();
    } while (ran);
    working = 0;
}

/* Lets the channels whose replies wait write in turns, as far as there is room. */
static void writersTurn(carrier *k) {
    unsigned long turns = listLength(k->writers);
    while (turns-- && k->conn && k->out_len - k->out_at < OUTPUT_HIGH) {
        channel *ch = listNodeValue(listFirst(k->writers));
        listRotateHeadToTail(k->writers);
        if (ch->conn.write_handler && !ch->client->flag.protected && !ch->client->flag.close_asap) writeToClient(ch->client);
        respbCountOutput(ch);
        if (ch->conn.write_handler && clientHasPendingReplies(ch->client)) continue;
        listDelNode(k->writers, ch->writing);
        ch->writing = NULL;
    }
}

/* Called when replies have been written to the virtual connections: sends them. */
void respbAfterWrites(void) {
    listIter li;
    listNode *ln;
    if (!active || listLength(active) == 0) return;
    /* While a command runs the loop, connections end all the same, and what came behind HELLO is answered. */
    if (ProcessingEventsWhileBlocked) respbBeforeWrites();
    listRewind(active, &li);
    while ((ln = listNext(&li))) {
        carrier *k = listNodeValue(ln);
        size_t before;
        do {
            before = k->out_len - k->out_at;
            writersTurn(k);
            k->out_ready = k->out_len;
            respbFlush(k);
            /* Room again: on, until the socket takes no more. */
        } while (k->conn && listLength(k->writers) && k->out_len == 0 && before);
        if (!k->conn) continue;
        if (k->out_at < k->out_len) {
            connSetWriteHandler(k->conn, respbWritable);
            /* What the socket does not take counts as the client's: the largest may be evicted. Before authentication, as over RESP, it
             * may be next to nothing, since errors cost a client nothing to cause. */
            if (k->zero) updateClientMemUsageAndBucket(k->zero->client);
            if (!k->authenticated && k->out_len - k->out_at > REPLY_BUFFER_SIZE_UNAUTHENTICATED_CLIENT)
                respbLeave(k, RESPB_OUTPUT_FULL, NULL);
        } else if (k->left && !k->shut) {
            endWrites(k);
        }
        if (k->left && (server.mstime > k->linger_until || k->lingered > LINGER_BYTES || respbCrowdsOut(k))) {
            respbHangUp(k);
            continue;
        }
        if (k->leaving || listLength(k->awaiting) || k->paused || k->waits || k->has_over) continue;
        if ((listLength(k->writers) && !connHasWriteHandler(k->conn)) || working) continue;
        listDelNode(active, ln);
        k->active = NULL;
    }
}

/* The server ends: every connection gets GOAWAY, what it is owed, and a moment to take it (section 8.5). */
void respbEndAll(void) {
    listIter li;
    listNode *ln;
    if (!carriers) return;
    listRewind(carriers, &li);
    while ((ln = listNext(&li))) {
        carrier *k = listNodeValue(ln);
        if (!k->conn) continue;
        if (!k->leaving) respbLeave(k, RESPB_SHUTDOWN, NULL);
        if (!k->left) goAway(k);
    }
    for (long long until = mstime() + SHUTDOWN_MS; mstime() < until;) {
        int count = 0, waiting = 0;
        struct pollfd *polled = zmalloc(sizeof(*polled) * (listLength(carriers) + 1));
        respbAfterWrites();
        listRewind(carriers, &li);
        while ((ln = listNext(&li))) {
            carrier *k = listNodeValue(ln);
            if (!k->conn || !k->left) continue;
            polled[count].fd = k->conn->fd;
            polled[count++].events = k->shut ? POLLIN : POLLIN | POLLOUT;
            waiting = 1;
        }
        if (waiting && poll(polled, count, 100) > 0) {
            listRewind(carriers, &li);
            while ((ln = listNext(&li))) {
                carrier *k = listNodeValue(ln);
                if (!k->conn || !k->left) continue;
                respbFlush(k);
                if (k->conn) respbReadable(k->conn);
            }
        }
        zfree(polled);
        if (!waiting) break;
    }
}

#endif
