/* respb_command.c: hooks about commands that are not the same over RESPB.
 *
 * Owns HELLO's options and entry, the answer of SUBSCRIBE, the lines of MONITOR, and what is refused. HELLO's switch itself is
 * respb_net.c's. */
#include "server.h"

#ifdef USE_RESPB

#include "respb_carrier.h"

static int isWord(client *c, int at, const char *word) {
    return c->argc > at && !strcasecmp(objectGetVal(c->argv[at]), word);
}

/* Answers requests that have no meaning, or no single reply, over RESPB (sections 3.2, 8.3). Gives whether it did. */
int respbCommandRefused(client *c) {
    if (!c->flag.respb_channel) {
        /* In a transaction nothing can be switched. */
        if (!respb_settings.enabled || !c->cmd || c->cmd->proc != helloCommand || authRequired(c)) return 0;
        for (int i = 2; i < c->argc; i++) {
            if (!isWord(c, i, "proto")) continue;
            rejectCommandFormat(c, 0, "HELLO with PROTO is not allowed in a transaction");
            return 1;
        }
        return 0;
    }
    if (!c->cmd) {
        const char *name = objectGetVal(c->argv[0]);
        if (!strcmp(name, CANCELLED)) {
            addReplyError(c, "-CANCELLED the request was cancelled by its client");
            return 1;
        }
        if (strncmp(name, UNKNOWN_FRAME, strlen(UNKNOWN_FRAME))) return 0;
        rejectCommandFormat(c, 0, "%s", name);
        return 1;
    }
    if (authRequired(c)) return 0;
    if (c->cmd->proc == monitorCommand && c->flag.monitor) {
        addReply(c, shared.ok);
        return 1;
    }
    if (c->cmd->proc == syncCommand || c->cmd->proc == replconfCommand || c->cmd->proc == clientReplyCommand ||
        (c->cmd->parent && (isWord(c, 1, "syncslots") || (c->cmd->proc == scriptCommand && isWord(c, 1, "debug"))))) {
        rejectCommandFormat(c, 0, "%s is not available over RESPB", c->cmd->fullname);
        return 1;
    }
    return 0;
}

/* SUBSCRIBE and its relatives answer one array, of what RESP3 sends as pushes (section 8.3). */
void respbChannelCalls(client *c) {
    if (!cmdHasPushAsReply(c->cmd)) return;
    serverCommandProc *proc = c->cmd->proc;
    long count = c->argc - 1;
    if (proc == ssubscribeCommand && c->flag.deny_blocking) return;
    if (count == 0) {
        if (c->pubsub_data && proc == unsubscribeCommand) count = (long)hashtableSize(c->pubsub_data->pubsub_channels);
        if (c->pubsub_data && proc == punsubscribeCommand) count = (long)hashtableSize(c->pubsub_data->pubsub_patterns);
        if (c->pubsub_data && proc == sunsubscribeCommand) count = (long)hashtableSize(c->pubsub_data->pubsubshard_channels);
        if (count == 0) count = 1;
    }
    channelOf(c)->confirms = (int)count;
    addReplyArrayLen(c, count);
}

/* Whether what follows is an element of that array. */
int respbConfirms(client *c) {
    if (!c->flag.respb_channel || !c->conn || channelOf(c)->confirms == 0) return 0;
    channelOf(c)->confirms--;
    return 1;
}

/* The lines of MONITOR are pushes (section 5.6). */
int respbMonitors(client *monitor, robj *line) {
    if (!monitor->flag.respb_channel) return 0;
    int was_pushing = monitor->flag.pushing;
    struct serverCommand *cmd = monitor->cmd;
    monitor->flag.pushing = 1;
    /* What a command pushes to its own client comes behind its reply. Valkey takes SUBSCRIBE's for such a push: here it is EXEC's. */
    if (cmd && cmdHasPushAsReply(cmd)) monitor->cmd = NULL;
    addReplyPushLen(monitor, 2);
    addReplyBulkCString(monitor, "monitor");
    addReply(monitor, line);
    monitor->flag.pushing = was_pushing;
    monitor->cmd = cmd;
    updateClientMemUsageAndBucket(monitor);
    return 1;
}

/* HELLO over RESPB knows version 3 alone (section 7.3). */
int respbHelloRefuses(client *c, long long version) {
    if (!c->flag.respb_channel || version != 2) return 0;
    addReplyError(c, "-NOPROTO unsupported protocol version");
    return 1;
}

/* Takes PROTO and CAPS, whose mistakes are told once all options are read. */
int respbHelloOption(client *c, respbHello *hello, const char *option, robj *value) {
    long long caps;
    if (!respb_settings.enabled && !c->flag.respb_channel) return 0;
    if (!strcasecmp(option, "PROTO")) {
        hello->wants_respb = 1;
        if (strcasecmp(objectGetVal(value), "respb")) hello->error = "-NOPROTO unsupported protocol";
        return 1;
    }
    if (strcasecmp(option, "CAPS")) return 0;
    if (getLongLongFromObject(value, &caps) != C_OK || caps < 0) hello->error = "CAPS is not an integer or out of range";
    return 1;
}

int respbHelloFails(client *c, long long version, const respbHello *hello) {
    const char *error = hello->error;
    if (!error && hello->wants_respb && version != 3) error = "-NOPROTO PROTO respb needs protocol version 3";
    if (!error && hello->wants_respb && !c->flag.respb_channel && c->flag.multi) error = "HELLO with PROTO is not allowed in a transaction";
    if (!error && hello->wants_respb && (c->flag.fake || c->flag.replica || c->flag.primary || !c->conn))
        error = "HELLO with PROTO is for clients with a connection";
    if (!error) return 0;
    addReplyError(c, error);
    return 1;
}

/* Called before HELLO is answered. */
int respbHelloEntries(client *c, const respbHello *hello) {
    /* Over RESPB each request is answered, and so is what switches to it. */
    if (hello->wants_respb) c->flag.reply_off = c->flag.reply_skip = c->flag.reply_skip_next = 0;
    return hello->wants_respb || c->flag.respb_channel;
}

static void addLimit(client *c, const char *name, long long number) {
    addReplyBulkCString(c, name);
    addReplyLongLong(c, number);
}

/* The entry `respb` of HELLO's reply (section 7.4); then, over RESP, both sides speak RESPB. */
void respbHelloDone(client *c, const respbHello *hello) {
    if (!respbHelloEntries(c, hello)) return;
    addReplyBulkCString(c, "respb");
    addReplyMapLen(c, 5);
    addLimit(c, "version", 1);
    addReplyBulkCString(c, "profiles");
    addReplyArrayLen(c, 4);
    addReplyBulkCString(c, "channels");
    addReplyBulkCString(c, "typed");
    addReplyBulkCString(c, "cancel");
    addReplyBulkCString(c, "passthrough");
    addReplyBulkCString(c, "table");
    addReplyMapLen(c, 3);
    addReplyBulkCString(c, "name");
    addReplyBulkCString(c, respb_table_name());
    addLimit(c, "version", RESPB_TABLE_VERSION);
    addReplyBulkCString(c, "hash");
    addReplyBulkCString(c, respb_table_hash());
    addLimit(c, "capabilities", 0);
    addReplyBulkCString(c, "limits");
    addReplyMapLen(c, 9);
    addLimit(c, "channels", respb_settings.channels_max);
    addLimit(c, "unauthenticated_channels", respb_settings.unauthenticated_channels_max);
    addLimit(c, "queue_bytes", (long long)respb_settings.queue_bytes_max);
    addLimit(c, "connection_queue_bytes", (long long)respb_settings.connection_queue_bytes_max);
    addLimit(c, "output_bytes", (long long)respb_settings.output_bytes_max);
    addLimit(c, "connection_output_bytes", (long long)respb_settings.connection_output_bytes_max);
    addLimit(c, "frame_bytes", (long long)respb_settings.frame_bytes_max);
    addLimit(c, "arguments", INT32_MAX);
    addLimit(c, "argument_bytes", server.proto_max_bulk_len);
    if (!c->flag.respb_channel) respbSwitch(c);
}

#endif
