/* Valkey's own parser as a contestant: its objects unmodified, driven through the entry points that its event loop uses.
 *
 * A client structure gets a query buffer, as a read from its socket would fill it; parseInputBuffer parses it into the client and
 * its command queue; each command is then taken from the queue, folded, and freed with freeClientArgv, as the server does after
 * running it. Nothing is run. Mode `parse` is that; mode `lookup` also calls prepareCommandQueue, which looks each command up and
 * checks its arity.
 *
 * What is easier here than in the server: there is no read, the whole stream lies in the query buffer and 16 KiB of it
 * (PROTO_IOBUF_LEN, one read of the server) are shown at a time, always whole commands.
 */
#include "server.h"

#include "driver.h"

static client *c;
static size_t *window_ends, windows, stream_len;

/* Valkey declares these where it uses them. */
void initServerConfig(void);
void parseInputBuffer(client *c);
void prepareCommandQueue(client *c);
void trimCommandQueue(client *c);

const char *weft_start(void) {
    uint8_t seed[16] = "weft wire bench";
    static char name[64];
    tzset();
    dictSetHashFunctionSeed(seed);
    hashtableSetHashFunctionSeed(seed);
    initServerConfig();
    c = zcalloc(sizeof(*c));
    c->slot = -1;
    snprintf(name, sizeof(name), "Valkey %s, %s", VALKEY_VERSION, ZMALLOC_LIB);
    return name;
}

/* Where the commands end: a scan of its own, that believes the lengths. */
static size_t scan(const unsigned char *bytes, size_t len, size_t *ends) {
    size_t at = 0, count = 0;
    while (at < len) {
        char *line_end;
        if (bytes[at] != '*') return 0;
        unsigned long arguments = strtoul((const char *)bytes + at + 1, &line_end, 10);
        at = (size_t)(line_end - (const char *)bytes) + 2;
        for (; arguments > 0 && at < len; arguments--) {
            if (bytes[at] != '$') return 0;
            unsigned long size = strtoul((const char *)bytes + at + 1, &line_end, 10);
            at = (size_t)(line_end - (const char *)bytes) + 2 + size + 2;
        }
        if (arguments > 0 || at > len) return 0;
        ends[count++] = at;
    }
    return count;
}

int weft_load(unsigned char *bytes, size_t len, size_t *ends, size_t *commands) {
    sdsfree(c->querybuf);
    zfree(window_ends);
    c->querybuf = sdsnewlen(bytes, len);
    bytes[len] = 0;
    stream_len = len;
    *commands = scan(bytes, len, ends);
    window_ends = zmalloc((*commands + 1) * sizeof(*window_ends));
    windows = 0;
    size_t start = 0;
    for (size_t i = 0; i < *commands; i++) {
        size_t next = i + 1 < *commands ? ends[i + 1] : SIZE_MAX;
        if (next - start > PROTO_IOBUF_LEN) start = window_ends[windows++] = ends[i];
    }
    return *commands > 0;
}

int weft_has_mode(const char *mode) {
    return strcmp(mode, "parse") == 0 || strcmp(mode, "lookup") == 0;
}

/* The next command of the queue becomes the client's, as consumeCommandQueue does it. */
static int next_command(void) {
    cmdQueue *queue = &c->cmd_queue;
    if (queue->off >= queue->len) return 0;
    parsedCommand *p = &queue->cmds[queue->off++];
    c->read_flags |= p->read_flags;
    c->argc = p->argc;
    c->argv = p->argv;
    c->argv_len = p->argv_len;
    c->argv_len_sum = p->argv_len_sum;
    c->net_input_bytes_curr_cmd = p->input_bytes;
    c->parsed_cmd = p->cmd;
    c->slot = p->slot;
    if (queue->off == queue->len) queue->off = queue->len = 0;
    return 1;
}

/* Parses what the query buffer shows; `take` is called with each command in the client. */
static inline void parse_window(int lookup, void (*take)(void *), void *context) {
    c->read_flags = 0;
    parseInputBuffer(c);
    if (lookup) prepareCommandQueue(c);
    do {
        if (!(c->read_flags & READ_FLAGS_PARSING_COMPLETED)) {
            puts("error Valkey's parser did not take the stream");
            exit(1);
        }
        take(context);
        freeClientArgv(c);
        c->net_input_bytes_curr_cmd = 0;
        c->read_flags = 0;
    } while (next_command());
}

/* Shows the bytes of the query buffer from `from` to `to`, in windows, and parses them. */
static inline void parse_range(int lookup, size_t from, size_t to, void (*take)(void *), void *context) {
    c->qb_pos = from;
    size_t window = 0;
    while (c->qb_pos < to) {
        while (window < windows && window_ends[window] <= c->qb_pos) window++;
        size_t end = window < windows && window_ends[window] < to ? window_ends[window] : to;
        /* The queue holds at most 1,024 commands: a window may take several calls. */
        sdssetlen(c->querybuf, end);
        while (c->qb_pos < end) parse_window(lookup, take, context);
        /* As readQueryFromClient does after each read. */
        trimCommandQueue(c);
    }
}

static void fold_command(void *context) {
    weft_seen *seen = context;
    for (int i = 0; i < c->argc; i++) {
        sds value = objectGetVal(c->argv[i]);
        seen->fold += weft_fold((unsigned char *)value, sdslen(value));
    }
    seen->commands++;
}

static void dump_command(void *context) {
    UNUSED(context);
    weft_dump_u32((uint32_t)c->argc);
    for (int i = 0; i < c->argc; i++) {
        sds value = objectGetVal(c->argv[i]);
        weft_dump_argument(value, sdslen(value));
    }
}

weft_seen weft_pass(const char *mode, size_t from, size_t to) {
    weft_seen seen = {0, 0};
    parse_range(mode[0] == 'l', from, to, fold_command, &seen);
    return seen;
}

void weft_dump(void) {
    parse_range(0, 0, stream_len, dump_command, NULL);
}
