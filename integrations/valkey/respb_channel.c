/* respb_channel.c: channels: clients whose connection is a virtual one.
 *
 * Owns that connection, how channels open and end, whose user they take, and the hooks about a channel's client. So users,
 * transactions, blocking, subscriptions, tracking, limits and CLIENT LIST are Valkey's own. */
#include "server.h"

#ifdef USE_RESPB

#include "respb_carrier.h"
#include "module.h"

static ConnectionType CT_Respb;

/* ---- The virtual connection ---------------------------------------------------------------------------------------- */

/* Has a channel looked at behind what is written: it writes more, and what it still holds is counted. */
static void takeTurn(channel *ch) {
    if (ch->writing) return;
    listAddNodeTail(ch->on->writers, ch);
    ch->writing = listLast(ch->on->writers);
    respbActivate(ch->on);
}

static int respbConnWritev(connection *conn, const struct iovec *iov, int iovcnt) {
    channel *ch = (channel *)conn;
    carrier *k = ch->on;
    int taken = 0;
    /* Valkey may have run what waited. */
    if (ch->queue_bytes) respbCountQueue(ch);
    if (ch->client->flag.authenticated) k->authenticated = 1;
    for (int i = 0; i < iovcnt && taken < TAKEN_MAX; i++) {
        size_t len = iov[i].iov_len < (size_t)(TAKEN_MAX - taken) ? iov[i].iov_len : (size_t)(TAKEN_MAX - taken);
        if (!ch->drains && k->out_len - k->out_at >= OUTPUT_HIGH) break;
        if (!k->conn || ch->is_void) {
            /* nobody reads it */
        } else if (ch->is_raw) {
            memcpy(respbOutput(k, len), iov[i].iov_base, len);
        } else {
            respbTranslate(ch, iov[i].iov_base, len);
        }
        taken += (int)len;
    }
    /* The writer counts these bytes as sent; what is sent is counted when it is. */
    server.stat_net_output_bytes -= taken;
    server.stat_total_writes_processed--;
    /* Valkey writes replies behind the append-only file; what it writes to drain a client may come earlier. What fills a buffer,
     * and all that a connection with one channel has, goes out while it is in the processor's cache. */
    if (!ch->drains && (k->open == 1 || k->out_len - k->out_at >= SEND_BYTES)) {
        k->out_ready = k->out_len;
        respbFlush(k);
    }
    if (ch->owes) takeTurn(ch);
    if (taken) return taken;
    errno = EAGAIN;
    return -1;
}

static int respbConnWrite(connection *conn, const void *data, size_t len) {
    struct iovec one = {(void *)data, len};
    return respbConnWritev(conn, &one, 1);
}

static int respbConnRead(connection *conn, void *buf, size_t len) {
    UNUSED(conn);
    UNUSED(buf);
    UNUSED(len);
    errno = EAGAIN;
    return -1;
}

static int respbConnSetReadHandler(connection *conn, ConnectionCallbackFunc handler) {
    conn->read_handler = handler;
    return C_OK;
}

static int respbConnSetWriteHandler(connection *conn, ConnectionCallbackFunc handler, int barrier) {
    channel *ch = (channel *)conn;
    UNUSED(barrier);
    conn->write_handler = handler;
    if (handler) takeTurn(ch);
    return C_OK;
}

/* Nothing of a number counts until the client's CLOSE has come. */
static void closingBegins(carrier *k, uint16_t number) {
    if (!k->closing) k->closing = zcalloc(NUMBERS / 8);
    k->closing[number / 8] |= 1 << (number % 8);
    k->unanswered++;
}

void respbClosed(carrier *k, uint16_t number) {
    k->closing[number / 8] &= ~(1 << (number % 8));
    if (--k->unanswered) return;
    zfree(k->closing);
    k->closing = NULL;
}

static void enter(carrier *k, channel *ch) {
    page **in = &k->pages[ch->number / PAGE_CHANNELS];
    if (!*in) {
        *in = zcalloc(sizeof(page));
        k->pages_len++;
    }
    (*in)->channels[ch->number % PAGE_CHANNELS] = ch;
    (*in)->open++;
    k->open++;
}

static void takeOut(carrier *k, channel *ch) {
    page **in = &k->pages[ch->number / PAGE_CHANNELS];
    (*in)->channels[ch->number % PAGE_CHANNELS] = NULL;
    if (--(*in)->open) return;
    zfree(*in);
    *in = NULL;
    k->pages_len--;
}

/* Answers the client's CLOSE. The number is free then, and channel 0 begins anew. */
static void answerClose(channel *ch) {
    carrier *k = ch->on;
    takeOut(k, ch);
    respbOutputClose(k, ch->number, RESPB_DONE);
    if (ch == k->zero) k->zero = respbChannelOpen(k, 0, NULL);
}

/* The same while a command of the channel runs, and its client cannot be freed. */
void respbCloseBefore(channel *ch) {
    if (ch == ch->on->zero) respbGiveUsers(ch->on, 1);
    answerClose(ch);
    ch->is_void = 1;
}

/* The client is gone: its channel ends. */
static void respbConnClose(connection *conn) {
    channel *ch = (channel *)conn;
    carrier *k = ch->on;
    int announce = k->conn && !k->leaving;
    if (ch->writing) listDelNode(k->writers, ch->writing);
    if (ch->awaits_user) listDelNode(k->awaiting, ch->awaits_user);
    k->queue_bytes -= ch->queue_bytes;
    k->owes -= ch->owes;
    k->open--;
    if (ch->is_void) {
        /* nothing is left to say */
    } else if (announce && ch->client_closed) {
        answerClose(ch);
    } else {
        int code = ch->code < 0 ? RESPB_KILLED : ch->code;
        takeOut(k, ch);
        if (ch == k->zero) k->zero = NULL;
        if (announce && ch->number) {
            closingBegins(k, ch->number);
            respbOutputClose(k, ch->number, code);
        } else if (announce) {
            respbLeave(k, code, NULL);
        }
    }
    respbHalfFree(ch);
    zfree(ch);
}

static int respbConnType(void) {
    return CONN_TYPE_SOCKET;
}

static int respbConnAddr(connection *conn, char *ip, size_t ip_len, int *port, int remote) {
    return connAddr(((channel *)conn)->on->conn, ip, ip_len, port, remote);
}

static int respbConnIsLocal(connection *conn) {
    return connIsLocal(((channel *)conn)->on->conn);
}

static sds respbConnPeerCert(connection *conn) {
    carrier *k = ((channel *)conn)->on;
    return k->conn ? connGetPeerCert(k->conn) : NULL;
}

static void respbConnShutdown(connection *conn) {
    UNUSED(conn);
}

static const char *respbConnLastError(connection *conn) {
    UNUSED(conn);
    return "the connection has ended";
}

static ssize_t respbConnSync(connection *conn, char *ptr, ssize_t size, long long timeout) {
    UNUSED(conn);
    UNUSED(ptr);
    UNUSED(size);
    UNUSED(timeout);
    errno = ENOTSUP;
    return -1;
}

static ConnectionType CT_Respb = {
    .get_type = respbConnType,
    .addr = respbConnAddr,
    .is_local = respbConnIsLocal,
    .shutdown = respbConnShutdown,
    .close = respbConnClose,
    .write = respbConnWrite,
    .writev = respbConnWritev,
    .read = respbConnRead,
    .set_write_handler = respbConnSetWriteHandler,
    .set_read_handler = respbConnSetReadHandler,
    .get_last_error = respbConnLastError,
    .sync_write = respbConnSync,
    .sync_read = respbConnSync,
    .sync_readline = respbConnSync,
    .get_peer_cert = respbConnPeerCert,
};

/* ---- Channels ------------------------------------------------------------------------------------------------------ */

channel *respbChannelMake(carrier *k, uint16_t number) {
    channel *ch = zcalloc(sizeof(*ch));
    ch->conn.type = &CT_Respb;
    ch->conn.state = CONN_STATE_CONNECTED;
    ch->conn.fd = k->conn->fd;
    ch->conn.iovcnt = IOV_MAX;
    ch->on = k;
    ch->number = number;
    ch->code = -1;
    enter(k, ch);
    return ch;
}

/* A channel with a client of its own, whose user is that of `heir_of`, or the default one. */
channel *respbChannelOpen(carrier *k, uint16_t number, client *heir_of) {
    channel *ch = respbChannelMake(k, number);
    client *c = createClient(&ch->conn);
    ch->client = c;
    c->resp = 3;
    c->flag.respb_told = c->flag.respb_channel = 1;
    c->flag.unix_socket = connGetType(k->conn) == CONN_TYPE_UNIX;
    if (heir_of) clientSetUser(c, heir_of->user, heir_of->flag.authenticated);
    /* Most channels answer little: the buffer begins small, and Valkey lets it grow to its usual size where it fills. */
    zfree_with_size(c->buf, c->buf_usable_size);
    c->buf = zmalloc_usable(PROTO_REPLY_MIN_BYTES, &c->buf_usable_size);
    c->buf_peak = c->buf_usable_size;
    moduleFireServerEvent(VALKEYMODULE_EVENT_CLIENT_CHANGE, VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_CONNECTED, c);
    return ch;
}

void respbChannelEnd(channel *ch, int code) {
    if (ch->code < 0) ch->code = code;
    freeClient(ch->client);
}

/* Requests of channel 0 that have been answered, as a sequence. */
static uint32_t answered(channel *zero) {
    client *c = zero->client;
    uint32_t begun = zero->pushed - (uint32_t)(c->cmd_queue.len - c->cmd_queue.off);
    return c->cmd || c->flag.blocked ? begun - 1 : begun;
}

static int decidesUser(struct serverCommand *cmd) {
    return cmd && (cmd->proc == authCommand || cmd->proc == helloCommand || cmd->proc == resetCommand || cmd->proc == execCommand);
}

/* Whether a request of channel 0 waits in its queue and may change the user: it may have run since, or been cancelled. */
static int decidesStill(channel *zero, uint32_t sequence) {
    cmdQueue *queue = &zero->client->cmd_queue;
    uint32_t waiting = queue->len - queue->off, at = sequence - (zero->pushed - waiting);
    return at < waiting && decidesUser(queue->cmds[queue->off + at].cmd);
}

/* Notes the request that is put into a channel's queue next, where it may change the user of channels that open behind it. */
void respbMayDecide(channel *ch, struct serverCommand *cmd) {
    carrier *k = ch->on;
    if (ch->number || !decidesUser(cmd)) return;
    if (k->deciders_len == k->deciders_size) {
        size_t kept = 0;
        for (size_t i = 0; i < k->deciders_len; i++)
            if (decidesStill(ch, k->deciders[i])) k->deciders[kept++] = k->deciders[i];
        k->deciders_len = kept;
        /* At least half is free: to look through all costs no more than what is noted before the next time. */
        if (kept * 2 >= k->deciders_size) {
            k->deciders_size = k->deciders_size ? k->deciders_size * 2 : 4;
            k->deciders = zrealloc(k->deciders, k->deciders_size * sizeof(*k->deciders));
        }
    }
    k->deciders[k->deciders_len++] = ch->pushed;
}

/* Whether a new channel has to wait for its user, and for which request of channel 0 (section 8.2). */
static int mustAwaitUser(channel *zero, uint32_t *after) {
    carrier *k = zero->on;
    client *c = zero->client;
    for (; k->deciders_len; k->deciders_len--) {
        *after = k->deciders[k->deciders_len - 1] + 1;
        if (decidesStill(zero, *after - 1)) return 1;
    }
    *after = zero->pushed - (uint32_t)(c->cmd_queue.len - c->cmd_queue.off);
    return c->flag.blocked && decidesUser(c->cmd);
}

/* Gives channels that wait the user of channel 0, where what they wait for is answered, or never will be. Who came later waits for the
 * same request or a later one; only where CANCEL has taken one away for an earlier one, with the same user behind both. */
void respbGiveUsers(carrier *k, int all) {
    for (listNode *ln; (ln = listFirst(k->awaiting));) {
        channel *ch = listNodeValue(ln);
        if (!all && (int32_t)(answered(k->zero) - ch->user_after) < 0) return;
        clientSetUser(ch->client, k->zero->client->user, k->zero->client->flag.authenticated);
        listDelNode(k->awaiting, ln);
        ch->awaits_user = NULL;
        k->waits = 1;
        respbActivate(k);
    }
}

static int channelsMax(carrier *k) {
    if (!k->authenticated && respb_settings.unauthenticated_channels_max < respb_settings.channels_max)
        return respb_settings.unauthenticated_channels_max;
    return respb_settings.channels_max;
}

/* The channel of a request: NULL where the request is to be discarded. */
channel *respbChannelFor(carrier *k, uint16_t number) {
    channel *ch = find(k, number);
    if (ch) return ch;
    if (isClosing(k, number)) return NULL;
    if (k->open >= channelsMax(k) || listLength(server.clients) >= server.maxclients) {
        int too_many = k->unanswered >= UNANSWERED_MAX;
        closingBegins(k, number);
        respbOutputClose(k, number, RESPB_TOO_MANY);
        if (too_many) respbLeave(k, RESPB_TOO_MANY, NULL);
        return NULL;
    }
    ch = respbChannelOpen(k, number, k->zero->client);
    if (mustAwaitUser(k->zero, &ch->user_after)) {
        listAddNodeTail(k->awaiting, ch);
        ch->awaits_user = listLast(k->awaiting);
    }
    return ch;
}

/* ---- Hooks about a channel's client -------------------------------------------------------------------------------- */

/* Whether a channel begins no further request. Called before each. */
int respbChannelStops(client *c) {
    if (!c->conn) return 0;
    channel *ch = channelOf(c);
    if (ch->number == 0 && listLength(ch->on->awaiting)) respbGiveUsers(ch->on, 0);
    return ch->is_over || ch->is_void || ch->awaits_user || ch->on->leaving || !ch->on->conn;
}

/* The connection that a client's address is of. */
connection *respbCarrierOf(client *c) {
    return channelOf(c)->on->conn;
}

/* Memory of a channel that its client does not know of; channel 0 has what all share. */
size_t respbChannelMemory(client *c) {
    if (!c->conn) return 0;
    channel *ch = channelOf(c);
    carrier *k = ch->on;
    size_t bytes = sizeof(*ch) + ch->queue_bytes;
    if (ch->half) bytes += sdsAllocSize(ch->half->bytes) + ch->half->batch.values_capacity * sizeof(respb_value);
    if (ch != k->zero) return bytes;
    bytes += sizeof(*k) + k->in_size + k->out_size + k->pages_len * sizeof(page) + (k->closing ? NUMBERS / 8 : 0);
    bytes += k->deciders_size * sizeof(*k->deciders);
    if (k->batch.values) bytes += k->batch.values_capacity * sizeof(respb_value) + FRAMES_MAX * sizeof(respb_frame);
    return bytes;
}

/* A client is about to be freed: what it has run is answered. */
void respbBeforeFree(client *c) {
    if (!c->flag.respb_channel || !c->conn) return;
    channel *ch = channelOf(c);
    carrier *k = ch->on;
    if (ch->code < 0 && c->flag.close_after_reply)
        ch->code = c->lastcmd && c->lastcmd->proc == quitCommand ? RESPB_DONE : RESPB_KILLED;
    if (ch == k->zero) respbGiveUsers(k, 1);
    if (respbCrowdsOut(k)) respbHangUp(k);
    c->flag.close_after_reply = 0;
    ch->drains = 1;
    while (clientHasPendingReplies(c)) {
        if (writeToClient(c) == C_ERR || c->nwritten <= 0) break;
    }
}

/* What a channel's client holds now. */
void respbCountOutput(channel *ch) {
    ch->on->owes -= ch->owes;
    ch->owes = getClientOutputBufferMemoryUsage(ch->client);
    ch->on->owes += ch->owes;
}

/* Why a client is freed, for its CLOSE. */
void respbReason(client *c, int code) {
    if (c->flag.respb_channel && c->conn && channelOf(c)->code < 0) channelOf(c)->code = code;
}

/* A channel runs nothing more, and ends with what it is owed when nothing is under way. */
void respbOver(channel *ch) {
    if (ch->is_over) return;
    ch->is_over = ch->on->has_over = 1;
    server.stat_client_outbuf_limit_disconnections++;
    respbActivate(ch->on);
}

/* Instead of freeing a client in the middle of a reply: it runs no more and ends when nothing is under way. What another's command
 * pushes is no reply: it is cut off at once, since one command may push without end. */
int respbOutputLimit(client *c) {
    channel *ch = channelOf(c);
    respbCountOutput(ch);
    if (ch->owes <= respb_settings.output_bytes_max && !owesTooMuch(ch->on) && !checkClientOutputBufferLimits(c)) return 0;
    respbOver(ch);
    if (c->flag.pushing && c != server.current_client) {
        respbReason(c, RESPB_OUTPUT_FULL);
        freeClientAsync(c);
    }
    return 0;
}

#endif
