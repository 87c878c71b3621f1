/* commands.c: what a frame does: commands, channels, replies.
 *
 * Owns the commands. Bytes in and out are respb_server.c's, keys are store.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client.h"

/* What a command answers. It is made once and encoded as often as the buffer has to grow. */
struct answer {
    enum { ANSWER_OK, ANSWER_SIMPLE, ANSWER_ERROR, ANSWER_INTEGER, ANSWER_BULK, ANSWER_NULL, ANSWER_VALUES, ANSWER_HELLO } kind;
    const char *data;
    size_t len;
    int64_t integer;
};

/* The arguments of a command, its name left out. */
struct args {
    const respb_value *values;
    size_t count;
};

typedef struct answer (*handler)(struct client *, struct args);

/* One for each command of the table, by its id; and room for texts. */
static handler handlers[UINT16_MAX];
static char scratch[FRAME_BYTES_MAX];

/* ---- Answers ------------------------------------------------------------------------------------------------------ */

static struct answer answer(int kind, const char *data, size_t len, int64_t integer) {
    struct answer made;
    made.kind = kind;
    made.data = data;
    made.len = len;
    made.integer = integer;
    return made;
}

static struct answer ok(void) { return answer(ANSWER_OK, NULL, 0, 0); }
static struct answer error(const char *text) { return answer(ANSWER_ERROR, text, strlen(text), 0); }

/* The bytes of an argument: most are in the frame already; quoted words and numbers are written out at `*at` of the scratch. */
static const char *text_of(const respb_value *value, size_t *len, size_t *at) {
    char *start = scratch + *at;
    if (value->kind == RESPB_BYTES || value->kind == RESPB_KEYWORD) {
        *len = value->len;
        return value->value.data;
    }
    /* All texts of a request are shorter than the largest request: they fit. */
    *len = respb_value_text(value, start, sizeof scratch - *at);
    *at += *len;
    return start;
}

static void encode_hello(struct client *client) {
    respb_writer *w = &client->writer;
    respb_write_open(w, RESPB_MAP, 4);
    respb_write_bulk(w, "server", 6), respb_write_bulk(w, "respb-example", 13);
    respb_write_bulk(w, "version", 7), respb_write_bulk(w, respb_version(), strlen(respb_version()));
    respb_write_bulk(w, "proto", 5), respb_write_integer(w, client->protocol == RESPB_PROTOCOL_RESP2 ? 2 : 3);
    respb_write_bulk(w, "respb", 5), respb_write_open(w, RESPB_MAP, 5);
    respb_write_bulk(w, "version", 7), respb_write_integer(w, 1);
    respb_write_bulk(w, "profiles", 8), respb_write_open(w, RESPB_ARRAY, 3);
    respb_write_bulk(w, "channels", 8), respb_write_bulk(w, "typed", 5), respb_write_bulk(w, "passthrough", 11);
    respb_write_bulk(w, "table", 5), respb_write_open(w, RESPB_MAP, 3);
    respb_write_bulk(w, "name", 4), respb_write_bulk(w, respb_table_name(), strlen(respb_table_name()));
    respb_write_bulk(w, "version", 7), respb_write_integer(w, RESPB_TABLE_VERSION);
    respb_write_bulk(w, "hash", 4), respb_write_bulk(w, respb_table_hash(), strlen(respb_table_hash()));
    respb_write_bulk(w, "capabilities", 12), respb_write_integer(w, 0);
    respb_write_bulk(w, "limits", 6), respb_write_open(w, RESPB_MAP, 3);
    respb_write_bulk(w, "channels", 8), respb_write_integer(w, CHANNELS_MAX);
    respb_write_bulk(w, "frame_bytes", 11), respb_write_integer(w, FRAME_BYTES_MAX);
    respb_write_bulk(w, "arguments", 9), respb_write_integer(w, ARGUMENTS_MAX);
}

static void encode_values(struct client *client, struct args args) {
    size_t i;
    respb_write_open(&client->writer, RESPB_ARRAY, (int64_t)args.count);
    for (i = 0; i < args.count; i++) {
        size_t key_len, len, at = 0;
        const char *key = text_of(&args.values[i], &key_len, &at);
        const char *value = store_get(store, key, key_len, &len);
        if (value) respb_write_bulk(&client->writer, value, len);
        else respb_write_null(&client->writer);
    }
}

static void encode(struct client *client, const struct answer *answer, struct args args) {
    respb_writer *writer = &client->writer;
    switch (answer->kind) {
    case ANSWER_OK: respb_write_simple(writer, "OK", 2); break;
    case ANSWER_SIMPLE: respb_write_simple(writer, answer->data, answer->len); break;
    case ANSWER_ERROR: respb_write_error(writer, answer->data, answer->len); break;
    case ANSWER_INTEGER: respb_write_integer(writer, answer->integer); break;
    case ANSWER_BULK: respb_write_bulk(writer, answer->data, answer->len); break;
    case ANSWER_NULL: respb_write_null(writer); break;
    case ANSWER_VALUES: encode_values(client, args); break;
    case ANSWER_HELLO: encode_hello(client); break;
    }
}

/* Makes room for `needed` bytes of output, of which `len` are written; 0 when that is too much. */
static int output_grow(struct client *client, size_t len, size_t needed) {
    size_t capacity = client->out_capacity * 2 > needed ? client->out_capacity * 2 : needed;
    char *grown;
    if (needed > OUTPUT_MAX) return 0;
    if (capacity > OUTPUT_MAX) capacity = OUTPUT_MAX;
    grown = (char *)realloc(client->out, capacity);
    if (!grown) return 0;
    client->out = grown;
    client->out_capacity = capacity;
    return respb_writer_buffer(&client->writer, grown, capacity, len) == RESPB_OK;
}

/* Encodes an answer, and again in a larger buffer if it has to be; one that is too large becomes an error. */
static void reply(struct client *client, uint16_t channel, struct answer made, struct args args) {
    size_t before = respb_writer_len(&client->writer);
    respb_writer_channel(&client->writer, channel);
    for (;;) {
        size_t needed;
        encode(client, &made, args);
        needed = respb_writer_len(&client->writer);
        if (needed <= client->out_capacity) return;
        respb_writer_truncate(&client->writer, before);
        if (output_grow(client, before, needed)) continue;
        if (made.kind == ANSWER_ERROR) {
            client->closing = 1;
            return;
        }
        made = error("ERR reply too large");
    }
}

/* Sends CLOSE on a channel, or GOAWAY; what cannot be sent ends the connection. */
static void farewell(struct client *client, int goaway, uint16_t channel, uint16_t code, const char *reason) {
    size_t before = respb_writer_len(&client->writer), reason_len = strlen(reason), len;
    len = goaway ? respb_encode_goaway(code, reason, reason_len, NULL, 0)
                 : respb_encode_close(channel, code, reason, reason_len, NULL, 0);
    if (before + len > client->out_capacity && !output_grow(client, before, before + len)) {
        client->closing = 1;
        return;
    }
    if (goaway) respb_encode_goaway(code, reason, reason_len, client->out + before, len);
    else respb_encode_close(channel, code, reason, reason_len, client->out + before, len);
    respb_writer_buffer(&client->writer, client->out, client->out_capacity, before + len);
}

/* Says what is wrong with bytes that cannot be read, and closes once that is sent. */
void refuse(struct client *client, const char *reason) {
    struct args none = {NULL, 0};
    char text[128];
    snprintf(text, sizeof text, "ERR %s", reason);
    if (client->protocol == RESPB_PROTOCOL_RESPB) farewell(client, 1, 0, 8, text);
    else reply(client, 0, error(text), none);
    client->closing = 1;
}

/* Closes a channel other than 0: what comes on it before the client's CLOSE is discarded. */
static void close_channel(struct client *client, uint16_t channel, uint16_t code) {
    if (client->channel[channel] == CHANNEL_OPEN) client->channels--;
    client->channel[channel] = CHANNEL_CLOSING;
    farewell(client, 0, channel, code, "");
}

/* ---- Commands ------------------------------------------------------------------------------------------------------ */

static struct answer ping(struct client *client, struct args args) {
    size_t len, at = 0;
    const char *text;
    (void)client;
    if (args.count > 1) return error("ERR wrong number of arguments for 'ping' command");
    if (args.count == 0) return answer(ANSWER_SIMPLE, "PONG", 4, 0);
    text = text_of(&args.values[0], &len, &at);
    return answer(ANSWER_BULK, text, len, 0);
}

static struct answer echo(struct client *client, struct args args) {
    size_t len, at = 0;
    const char *text = text_of(&args.values[0], &len, &at);
    (void)client;
    return answer(ANSWER_BULK, text, len, 0);
}

static struct answer get(struct client *client, struct args args) {
    size_t key_len, len, at = 0;
    const char *key = text_of(&args.values[0], &key_len, &at);
    const char *value = store_get(store, key, key_len, &len);
    (void)client;
    return answer(value ? ANSWER_BULK : ANSWER_NULL, value, len, 0);
}

static struct answer set(struct client *client, struct args args) {
    size_t key_len, len, at = 0;
    const char *key, *value;
    (void)client;
    if (args.count > 2) return error("ERR syntax error: this server knows no options of SET");
    key = text_of(&args.values[0], &key_len, &at);
    value = text_of(&args.values[1], &len, &at);
    return store_set(store, key, key_len, value, len) ? ok() : error("OOM command not allowed: the store is full");
}

static struct answer del(struct client *client, struct args args) {
    int64_t deleted = 0;
    size_t i, len, at = 0;
    (void)client;
    for (i = 0; i < args.count; i++, at = 0) {
        const char *key = text_of(&args.values[i], &len, &at);
        deleted += store_delete(store, key, len);
    }
    return answer(ANSWER_INTEGER, NULL, 0, deleted);
}

static struct answer incr(struct client *client, struct args args) {
    size_t key_len, len, at = 0;
    const char *key = text_of(&args.values[0], &key_len, &at);
    const char *value = store_get(store, key, key_len, &len);
    int64_t number = 0;
    char digits[24];
    respb_value stored = respb_bytes(value, len);
    (void)client;
    if (value && respb_value_integer(&stored, &number) != RESPB_OK) {
        return error("ERR value is not an integer or out of range");
    }
    if (number == INT64_MAX) return error("ERR increment or decrement would overflow");
    stored = respb_integer(number + 1);
    len = respb_value_text(&stored, digits, sizeof digits);
    if (!store_set(store, key, key_len, digits, len)) return error("OOM command not allowed: the store is full");
    return answer(ANSWER_INTEGER, NULL, 0, number + 1);
}

/* The reply is encoded straight from the store, so here is nothing to do. */
static struct answer mget(struct client *client, struct args args) {
    (void)client, (void)args;
    return answer(ANSWER_VALUES, NULL, 0, 0);
}

static struct answer quit(struct client *client, struct args args) {
    (void)client, (void)args;
    return ok();
}

static int is_word(const respb_value *value, const char *word) {
    size_t len, at = 0;
    const char *text = text_of(value, &len, &at);
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* HELLO [2|3 [AUTH user password] [SETNAME name] [PROTO respb] [CAPS mask]]: only the version and PROTO mean anything here. */
static struct answer hello(struct client *client, struct args args) {
    int64_t version = 3;
    int protocol = client->protocol;
    size_t i;
    if (args.count > 0 && respb_value_integer(&args.values[0], &version) != RESPB_OK) {
        return error("ERR Protocol version is not an integer or out of range");
    }
    if (version != 3 && (version != 2 || protocol == RESPB_PROTOCOL_RESPB)) {
        return error("NOPROTO unsupported protocol version");
    }
    if (protocol != RESPB_PROTOCOL_RESPB && args.count > 0) protocol = (int)version;
    for (i = 1; i + 1 < args.count; i += 2) {
        if (is_word(&args.values[i], "PROTO") && is_word(&args.values[i + 1], "respb")) protocol = RESPB_PROTOCOL_RESPB;
        else if (is_word(&args.values[i], "AUTH")) return error("WRONGPASS this server has no users");
        else if (!is_word(&args.values[i], "SETNAME") && !is_word(&args.values[i], "CAPS")) i = args.count;
    }
    if (args.count > 0 && i != args.count) return error("ERR Syntax error in HELLO");
    /* The reply is the first thing in the new protocol; before RESPB it is the last in RESP, and a map of RESP3 whatever was
     * spoken (spec section 7.4). */
    if (client->protocol != RESPB_PROTOCOL_RESPB) {
        respb_writer_protocol(&client->writer, protocol == RESPB_PROTOCOL_RESPB ? RESPB_PROTOCOL_RESP3 : protocol);
    }
    client->protocol = protocol;
    return answer(ANSWER_HELLO, NULL, 0, 0);
}

static void add_handler(const char *name, handler handler) {
    const respb_command *command = respb_command_by_name(name, strlen(name));
    if (command) handlers[command->id] = handler;
}

void commands_init(void) {
    add_handler("PING", ping), add_handler("ECHO", echo), add_handler("QUIT", quit), add_handler("HELLO", hello);
    add_handler("GET", get), add_handler("SET", set), add_handler("DEL", del), add_handler("INCR", incr);
    add_handler("MGET", mget);
}

/* ---- Frames -------------------------------------------------------------------------------------------------------- */

static int arity_fits(const respb_command *command, size_t count) {
    int64_t given = (int64_t)count + 1;
    return command->arity < 0 ? given >= -command->arity : given == command->arity;
}

/* A request: finds the command, by its id in a typed frame, by its name in all others; runs it and replies. */
static void run_request(struct client *client, const respb_frame *frame) {
    const respb_command *command;
    struct args args;
    struct answer made;
    char text[160];
    int before = client->protocol;
    args.values = client->values + frame->first;
    args.count = frame->count;
    if (frame->kind == RESPB_FRAME_CORE || frame->kind == RESPB_FRAME_MODULE) {
        command = respb_command_get(frame->command);
    } else {
        size_t len, at = 0;
        const char *name;
        if (args.count == 0) return;
        name = text_of(args.values, &len, &at);
        command = respb_command_by_name(name, len);
        args.values++;
        args.count--;
    }
    if (!command || !handlers[command->id]) {
        made = error("ERR unknown command");
    } else if (!arity_fits(command, args.count)) {
        snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command", command->name);
        made = error(text);
    } else {
        made = handlers[command->id](client, args);
    }
    reply(client, frame->channel, made, args);
    if (client->protocol != before && client->protocol == RESPB_PROTOCOL_RESPB) {
        respb_writer_protocol(&client->writer, RESPB_PROTOCOL_RESPB);
    }
    if (command && handlers[command->id] == quit) {
        if (frame->channel) close_channel(client, frame->channel, 0);
        else {
            if (client->protocol == RESPB_PROTOCOL_RESPB) farewell(client, 1, 0, 0, "");
            client->closing = 1;
        }
    }
}

/* Whether the channel of a frame is open; a new one is opened, or refused, once. */
static int is_open(struct client *client, uint16_t channel) {
    if (channel == 0 || client->channel[channel] == CHANNEL_OPEN) return 1;
    if (client->channel[channel] == CHANNEL_CLOSING) return 0;
    if (client->channels == CHANNELS_MAX) {
        close_channel(client, channel, 5);
        return 0;
    }
    client->channel[channel] = CHANNEL_OPEN;
    client->channels++;
    return 1;
}

/* The client's CLOSE: it answers ours, or is answered; on an idle channel it is ignored. */
static void closed(struct client *client, uint16_t channel) {
    int was_open = channel == 0 || client->channel[channel] == CHANNEL_OPEN;
    if (channel && was_open) client->channels--;
    client->channel[channel] = CHANNEL_IDLE;
    if (was_open) farewell(client, 0, channel, 0, "");
}

void run_frame(struct client *client, const respb_frame *frame) {
    struct args none = {NULL, 0};
    switch (frame->kind) {
    case RESPB_FRAME_CLOSE: closed(client, frame->channel); break;
    case RESPB_FRAME_WINDOW: /* credit: this server sends at once, and keeps no account */
        is_open(client, frame->channel);
        break;
    case RESPB_FRAME_CANCEL: /* nothing here blocks */
    case RESPB_FRAME_IGNORED: break;
    default:
        if (!is_open(client, frame->channel)) break;
        if (frame->kind == RESPB_FRAME_UNKNOWN) reply(client, frame->channel, error("ERR unknown frame"), none);
        else run_request(client, frame);
    }
}
