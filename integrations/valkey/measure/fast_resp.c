/* fast_resp.c: what RESP could have without a new protocol, to be measured beside RESPB: no part of RESPB, and in no other build.
 *
 * Owns a parser of requests that looks for what is common: eight bytes are loaded and compared under a mask, so that the number of
 * arguments, the name's length and the line ends are one comparison; the command and its name as an object come from a cache by the
 * name's bytes; arguments become the same objects as RESPB's. Whatever else comes is left to Valkey's own parser: more than nine
 * arguments, names of more than eight bytes, arguments from 10,000 bytes, all mistakes. */
#include "server.h"

int fast_resp;

#define LENGTH_MAX 9999
#define ARGUMENTS_MAX 9
#define QUEUE_MAX 512
#define CACHE_SIZE 256

/* Commands by the bytes of their names as clients write them. */
static struct {
    uint64_t name;
    struct serverCommand *cmd;
    robj *object;
} cache[CACHE_SIZE];

/* Bytes at `at` in the order of memory, those beyond the end being 0. */
static inline uint64_t load(const char *at, const char *end) {
    uint64_t word = 0;
    memcpy(&word, at, end - at >= 8 ? 8 : (size_t)(end - at));
    return word;
}

static inline uint64_t bytes(const char *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
}

/* The command named by `len` bytes in `name`; NULL where only Valkey's own way finds it. */
static struct serverCommand *commandNamed(uint64_t name, size_t len, robj **object) {
    size_t at = (name * 0x9E3779B97F4A7C15ull) >> 56;
    if (cache[at].name == name) {
        *object = cache[at].object;
        return cache[at].cmd;
    }
    robj *made = createStringObject((const char *)&name, len);
    struct serverCommand *cmd = lookupCommand(&made, 1);
    if (!cmd || cmd->subcommands_ht || cmd->flags & CMD_MODULE || cache[at].object) {
        decrRefCount(made);
        return NULL;
    }
    cache[at].name = name;
    cache[at].cmd = cmd;
    cache[at].object = *object = makeObjectShared(made);
    return cmd;
}

/* `$LENGTH\r\n` at `at`: how long it is, 0 where it is something else; *whole is 0 where bytes are missing. */
static inline size_t lengthAt(const char *at, const char *end, size_t *length, int *whole) {
    static const char one[] = "\xFF\0\xFF\xFF\0\0\0\0", two[] = "\xFF\0\0\xFF\xFF\0\0\0", three[] = "\xFF\0\0\0\xFF\xFF\0\0",
                      four[] = "\xFF\0\0\0\0\xFF\xFF\0";
    uint64_t word = load(at, end);
    size_t digits, n = 0;
    if ((word & bytes(one)) == bytes("$\0\r\n\0\0\0\0")) {
        digits = 1;
    } else if ((word & bytes(two)) == bytes("$\0\0\r\n\0\0\0")) {
        digits = 2;
    } else if ((word & bytes(three)) == bytes("$\0\0\0\r\n\0\0")) {
        digits = 3;
    } else if ((word & bytes(four)) == bytes("$\0\0\0\0\r\n\0")) {
        digits = 4;
    } else {
        /* Not here, or the end of what has come: Valkey's own parser waits for the rest of a line as well. */
        if (end - at < 7 && !memchr(at, '\n', end - at)) *whole = 0;
        return 0;
    }
    if (digits > 1 && at[1] == '0') return 0;
    for (size_t i = 1; i <= digits; i++) {
        unsigned digit = (unsigned char)at[i] - '0';
        if (digit > 9) return 0;
        n = n * 10 + digit;
    }
    *length = n;
    return digits + 3;
}

/* One request of [at, end) into *into. Gives its bytes; 0 where it is none that is looked for, -1 where bytes are missing. */
static ssize_t parseOne(const char *at, const char *end, parsedCommand *into) {
    static const char mask[] = "\xFF\0\xFF\xFF\xFF\0\xFF\xFF", head[] = "*\0\r\n$\0\r\n";
    const char *begin = at, *arguments[ARGUMENTS_MAX];
    size_t lengths[ARGUMENTS_MAX];
    int whole = 1;
    if (end - at < 8) return end - at >= 4 && at[1] > '0' && at[1] <= '9' && at[2] == '\r' ? -1 : 0;
    if ((bytes(at) & bytes(mask)) != bytes(head)) return 0;
    size_t count = (unsigned char)at[1] - '0', name_len = (unsigned char)at[5] - '0';
    if (count - 1 >= ARGUMENTS_MAX || name_len - 1 >= 8) return 0;
    at += 8;
    if ((size_t)(end - at) < name_len + 2) return -1;
    uint64_t name = load(at, end) & (~0ull >> (64 - 8 * name_len));
    if (at[name_len] != '\r' || at[name_len + 1] != '\n') return 0;
    at += name_len + 2;
    for (size_t i = 1; i < count; i++) {
        size_t line = lengthAt(at, end, &lengths[i], &whole);
        if (!line) return whole ? 0 : -1;
        at += line;
        arguments[i] = at;
        if ((size_t)(end - at) < lengths[i] + 2) return -1;
        at += lengths[i];
        if (at[0] != '\r' || at[1] != '\n') return 0;
        at += 2;
    }
    robj *object;
    struct serverCommand *cmd = commandNamed(name, name_len, &object);
    if (!cmd) return 0;
    *into = (parsedCommand){.read_flags = READ_FLAGS_PARSING_COMPLETED, .slot = -1, .cmd = cmd, .input_bytes = at - begin};
    into->argc = into->argv_len = (int)count;
    into->argv = zmalloc(sizeof(robj *) * count);
    into->argv[0] = object;
    into->argv_len_sum = name_len;
    for (size_t i = 1; i < count; i++) {
        into->argv[i] = createStringObject(arguments[i], lengths[i]);
        into->argv_len_sum += lengths[i];
    }
    if (!commandCheckArity(cmd, into->argc, NULL)) into->read_flags |= READ_FLAGS_BAD_ARITY;
    return at - begin;
}

/* Takes the requests that have come, the first into the client and all others into its queue, as parseMultibulkBuffer does. Gives 0
 * where nothing was taken and Valkey's own parser has to look. */
int fastRespParse(client *c) {
    cmdQueue *queue = &c->cmd_queue;
    if (c->multibulklen || server.cluster_enabled || c->read_flags & (READ_FLAGS_AUTH_REQUIRED | READ_FLAGS_REPLICATED)) return 0;
    const char *end = c->querybuf + sdslen(c->querybuf);
    parsedCommand first;
    ssize_t n = parseOne(c->querybuf + c->qb_pos, end, &first);
    if (n <= 0) return n < 0;
    zfree(c->argv);
    c->argc = first.argc;
    c->argv = first.argv;
    c->argv_len = first.argv_len;
    c->argv_len_sum = first.argv_len_sum;
    c->net_input_bytes_curr_cmd = first.input_bytes;
    c->parsed_cmd = first.cmd;
    c->slot = first.slot;
    c->read_flags |= first.read_flags;
    c->reqtype = 0;
    c->qb_pos += n;
    while (c->querybuf + c->qb_pos < end && queue->len < QUEUE_MAX) {
        if (queue->len == queue->cap) {
            queue->cap = queue->cap ? queue->cap * 2 : 16;
            queue->cmds = zrealloc(queue->cmds, queue->cap * sizeof(parsedCommand));
        }
        n = parseOne(c->querybuf + c->qb_pos, end, &queue->cmds[queue->len]);
        if (n <= 0) break;
        queue->len++;
        c->qb_pos += n;
    }
    return 1;
}
