/* relay.c: clients that speak RESP3 on one side, a server on the other: `relay MODE PORT`, PORT the server's. Prints its own port.
 *
 * resp         each client has a connection to the server that is RESP3 from its start; bytes go as they are
 * passthrough  each client is channel 1 of a RESPB connection, its requests go in passthrough frames
 * argv         the same, its requests go as ARGV
 *
 * Owns how a RESP3 client becomes a channel and its replies RESP3 again, for Valkey's own tests (`units`). Not for production:
 * buffers have no limit. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "respb.h"

#define CLIENTS_MAX 1024
#define READ_BYTES 65536
#define FRAMES 16
#define CHANNEL 1

typedef struct buffer {
    char *data;
    size_t len, size;
} buffer;

/* A client, or its connection to the server; `in` is what came from it and is not done with, `out` what it has still to get. */
typedef struct peer {
    int fd; /* 0: the place is free */
    int is_server;
    int greets; /* the answer to HELLO is still to come: the relay's own */
    struct peer *other;
    buffer in, out;
    int ends; /* is closed when `out` is empty */
    respb_request_decoder decoder;
    respb_reply_decoder replies;
    respb_writer writer;
    respb_frame frames[FRAMES];
    respb_batch batch;
} peer;

static peer peers[CLIENTS_MAX];
static struct pollfd polled[CLIENTS_MAX + 1];
static int server_port, is_respb, passthrough;

static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("relay: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static void *room(buffer *b, size_t more) {
    if (b->size - b->len < more) {
        b->size = b->size * 2 > b->len + more ? b->size * 2 : b->len + more;
        b->data = realloc(b->data, b->size);
        if (!b->data) fail("no memory");
    }
    return b->data + b->len;
}

static void append(buffer *b, const void *data, size_t len) {
    memcpy(room(b, len), data, len);
    b->len += len;
}

static void drop(buffer *b, size_t len) {
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
}

static peer *add(int fd) {
    int one = 1, i;
    for (i = 0; i < CLIENTS_MAX && peers[i].fd; i++) {
    }
    if (i == CLIENTS_MAX) fail("more than %d connections", CLIENTS_MAX);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    peers[i].fd = fd;
    return &peers[i];
}

static int to_server(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) fail("the server: %s", strerror(errno));
    return fd;
}

static void free_peer(peer *p) {
    if (!p->fd) return;
    close(p->fd);
    free(p->in.data), free(p->out.data), free(p->batch.values);
    memset(p, 0, sizeof *p);
}

/* The connection of a peer has ended, or must: that of the other ends when it has got what it is owed. */
static void gone(peer *p) {
    if (p->other) {
        p->other->other = NULL;
        p->other->ends = 1;
    }
    free_peer(p);
}

static void has_batch(peer *p) {
    p->batch.frames = p->frames, p->batch.frames_capacity = FRAMES;
    p->batch.values_capacity = 64;
    p->batch.values = malloc(64 * sizeof(respb_value));
}

static void accept_client(int listener) {
    int fd = accept(listener, NULL, NULL);
    respb_limits limits;
    peer *client, *server;
    if (fd < 0) return;
    client = add(fd);
    server = add(to_server());
    client->other = server;
    server->other = client;
    server->is_server = 1;
    respb_limits_default(&limits);
    limits.argument_bytes_max = limits.frame_bytes_max = UINT32_MAX;
    respb_reply_decoder_init(&server->replies, sizeof server->replies, is_respb ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP3, &limits);
    has_batch(server);
    if (!is_respb) {
        append(&server->out, "HELLO 3\r\n", 9);
        server->greets = 1;
        server->batch.frames_capacity = 1;
        return;
    }
    respb_request_decoder_init(&client->decoder, sizeof client->decoder, RESPB_PROTOCOL_RESP3, NULL);
    respb_writer_init(&client->writer, sizeof client->writer, RESPB_PROTOCOL_RESP3, NULL, 0);
    has_batch(client);
}

/* One request of a client, to the server. */
static void forward(peer *p, const respb_frame *frame) {
    respb_value *values = p->batch.values + frame->first;
    buffer *out = &p->other->out;
    size_t len, i, at = 0, bytes = 1;
    char *text;
    if (!frame->count) return;
    if (passthrough && frame->data[0] == '*') {
        unsigned char head[8] = {0xFF, 0xFF, 0, CHANNEL, (unsigned char)(frame->len >> 24),
                                 (unsigned char)(frame->len >> 16), (unsigned char)(frame->len >> 8), (unsigned char)frame->len};
        append(out, head, 8);
        append(out, frame->data, frame->len);
        return;
    }
    /* Quotes of an inline command are resolved. */
    for (i = 0; i < frame->count; i++) bytes += respb_value_text(&values[i], NULL, 0);
    text = malloc(bytes);
    for (i = 0; i < frame->count; i++) {
        len = respb_value_text(&values[i], text + at, bytes - at);
        values[i] = respb_bytes(text + at, len);
        at += len;
    }
    len = respb_encode_request(RESPB_FORM_ARGV, CHANNEL, NULL, values, frame->count, NULL, 0);
    respb_encode_request(RESPB_FORM_ARGV, CHANNEL, NULL, values, frame->count, room(out, len), len);
    out->len += len;
    free(text);
}

static void more_values(respb_batch *batch) {
    batch->values_capacity *= 2;
    batch->values = realloc(batch->values, batch->values_capacity * sizeof(respb_value));
    if (!batch->values) fail("no memory");
}

static void requests(peer *p) {
    size_t used = 0, i;
    for (;;) {
        respb_status status = respb_decode_requests(&p->decoder, p->in.data + used, p->in.len - used, &p->batch);
        if (status == RESPB_EINVAL) fail("the decoder refuses its arguments");
        used += p->batch.consumed;
        for (i = 0; i < p->batch.frames_len; i++) forward(p, &p->batch.frames[i]);
        if (status == RESPB_INVALID) {
            const char *text = respb_error_text(p->batch.error);
            append(&p->out, "-ERR ", 5), append(&p->out, text, strlen(text)), append(&p->out, "\r\n", 2);
            p->ends = 1;
            used = p->in.len;
            break;
        }
        if (status != RESPB_FULL) break;
        if (!p->batch.frames_len) more_values(&p->batch);
    }
    drop(&p->in, used);
}

static void values_out(peer *client, const respb_value *values, size_t count) {
    for (;;) {
        size_t len = client->out.len;
        respb_writer_buffer(&client->writer, client->out.data, client->out.size, len);
        if (respb_write_values(&client->writer, values, count) != RESPB_FULL) break;
        respb_writer_truncate(&client->writer, len);
        room(&client->out, client->out.size + 1024);
    }
    client->out.len = respb_writer_len(&client->writer);
}

/* What SUBSCRIBE and its relatives are answered: an array of [word, channel, count]. */
static int confirms(const respb_value *values, uint32_t count) {
    return count >= 5 && values[0].kind == RESPB_ARRAY && values[1].kind == RESPB_ARRAY && values[1].value.integer == 3 &&
           count == 1 + 4 * (uint64_t)values[0].value.integer && values[2].kind == RESPB_BYTES && values[2].len >= 9 &&
           memcmp(values[2].value.data + values[2].len - 9, "subscribe", 9) == 0;
}

static void answer(peer *client, const respb_frame *frame, respb_value *values) {
    uint32_t i;
    if (frame->kind == RESPB_FRAME_CLOSE || frame->kind == RESPB_FRAME_GOAWAY) {
        client->ends = 1;
    } else if (frame->kind == RESPB_FRAME_REPLY && confirms(values, frame->count)) {
        /* In RESP3 each is a push. */
        for (i = 1; i < frame->count; i += 4) {
            values[i].kind = RESPB_PUSH;
            values_out(client, values + i, 4);
        }
    } else if (frame->kind == RESPB_FRAME_REPLY || frame->kind == RESPB_FRAME_PUSH) {
        values_out(client, values, frame->count);
    }
}

static void responses(peer *server) {
    size_t used = 0, i;
    for (;;) {
        respb_status status = respb_decode_replies(&server->replies, server->in.data + used, server->in.len - used, &server->batch);
        if (status < 0) fail("no RESPB: %s", respb_error_text(server->batch.error));
        used += server->batch.consumed;
        for (i = 0; i < server->batch.frames_len; i++)
            answer(server->other, &server->batch.frames[i], server->batch.values + server->batch.frames[i].first);
        if (status != RESPB_FULL) break;
        if (!server->batch.frames_len) more_values(&server->batch);
    }
    drop(&server->in, used);
}

/* Drops the first answer, which is that to HELLO. */
static void greeted(peer *server) {
    respb_status status;
    while ((status = respb_decode_replies(&server->replies, server->in.data, server->in.len, &server->batch)) == RESPB_FULL &&
           !server->batch.frames_len)
        more_values(&server->batch);
    if (status < 0) fail("no RESP3");
    if (!server->batch.frames_len) return;
    drop(&server->in, server->batch.consumed);
    server->greets = 0;
}

/* Whether what a client sends is left where it is until the relay's own HELLO is answered: a server refuses SYNC to who is owed a reply. */
static int is_early(const peer *p) {
    return !p->is_server && p->other && p->other->greets;
}

static void readable(peer *p) {
    ssize_t n = read(p->fd, room(&p->in, READ_BYTES), READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        gone(p);
        return;
    }
    p->in.len += (size_t)n;
    if (p->greets) greeted(p);
    if (p->greets) return;
    if (!is_respb) {
        append(&p->other->out, p->in.data, p->in.len);
        p->in.len = 0;
    } else if (p->is_server) {
        responses(p);
    } else {
        requests(p);
    }
}

static void writable(peer *p) {
    ssize_t n = p->out.len ? send(p->fd, p->out.data, p->out.len, MSG_NOSIGNAL) : 0;
    if (n > 0) drop(&p->out, (size_t)n);
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || (p->ends && !p->out.len)) gone(p);
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t at_len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), i;
    if (argc != 3) fail("usage: relay resp|passthrough|argv PORT");
    is_respb = strcmp(argv[1], "resp") != 0;
    passthrough = strcmp(argv[1], "passthrough") == 0;
    if (is_respb && !passthrough && strcmp(argv[1], "argv") != 0) fail("no mode %s", argv[1]);
    server_port = atoi(argv[2]);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) fail("%s", strerror(errno));
    getsockname(listener, (struct sockaddr *)&at, &at_len);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        for (i = 0; i < CLIENTS_MAX; i++) {
            polled[i].fd = peers[i].fd ? peers[i].fd : -1;
            polled[i].events = (short)(peers[i].ends || is_early(&peers[i]) ? 0 : POLLIN);
            if (peers[i].out.len || peers[i].ends) polled[i].events |= POLLOUT;
        }
        polled[CLIENTS_MAX].fd = listener;
        polled[CLIENTS_MAX].events = POLLIN;
        if (poll(polled, CLIENTS_MAX + 1, -1) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
        for (i = 0; i < CLIENTS_MAX; i++) {
            /* A place may be of another by now: then the call says so, or there is nothing to read. */
            if (polled[i].fd == -1 || polled[i].fd != peers[i].fd) continue;
            if (polled[i].revents & (POLLIN | POLLHUP | POLLERR) && !peers[i].ends && peers[i].other) readable(&peers[i]);
            if (peers[i].fd == polled[i].fd && polled[i].revents & (POLLOUT | POLLHUP | POLLERR)) writable(&peers[i]);
        }
        if (polled[CLIENTS_MAX].revents) accept_client(listener);
    }
}
