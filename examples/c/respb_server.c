/* respb_server.c: a small key-value server that speaks RESP2, RESP3 and RESPB on one port, over librespb.
 *
 * Owns the sockets and the buffers; commands.c has the commands, store.c the keys. docs/c-library.md walks through it. One thread, poll(2).
 * What a client can cost is bounded by the constants below.
 *
 * respb_server [PORT]: prints "port N" once it listens (0, the default, takes a free one); SIGTERM and SIGINT end it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"

struct store *store;
static struct client *clients[CLIENTS_MAX];
static int stop_pipe[2];

/* ---- Bytes --------------------------------------------------------------------------------------------------------- */

static int start_decoder(struct client *client, int first) {
    respb_limits limits;
    respb_limits_default(&limits);
    limits.arguments_max = ARGUMENTS_MAX;
    limits.argument_bytes_max = limits.frame_bytes_max = FRAME_BYTES_MAX;
    limits.first_frame = (uint8_t)first;
    client->batch.values_len = client->batch.partial = client->batch.taken = 0;
    return respb_request_decoder_init(&client->decoder, sizeof client->decoder, client->protocol, &limits) == RESPB_OK;
}

static void drop_input(struct client *client, size_t len) {
    memmove(client->in, client->in + len, client->in_len - len);
    client->in_len -= len;
}

/* Tells the protocol by the first bytes; 0 while that cannot be done. */
static int detect(struct client *client) {
    size_t skip;
    int protocol = respb_detect(client->in, client->in_len, &skip);
    drop_input(client, skip);
    if (protocol == RESPB_DETECT_MORE) return 0;
    if (protocol != RESPB_DETECT_RESP && protocol != RESPB_DETECT_RESPB) {
        refuse(client, respb_error_text(RESPB_ERR_UNKNOWN_PROTOCOL));
        return 0;
    }
    client->detected = 1;
    /* A RESP client begins in RESP2 and may say HELLO 3. */
    client->protocol = protocol == RESPB_DETECT_RESPB ? RESPB_PROTOCOL_RESPB : RESPB_PROTOCOL_RESP2;
    respb_writer_protocol(&client->writer, client->protocol);
    return start_decoder(client, 1);
}

static size_t unsent(const struct client *client) { return respb_writer_len(&client->writer) - client->out_sent; }

/* Runs what has arrived, batch by batch, until it ends or the client is to be closed: 0; or until too much is unsent: 1. */
static int run_input(struct client *client) {
    while (!client->closing && (client->detected || detect(client))) {
        respb_batch *batch = &client->batch;
        respb_status status = respb_decode_requests(&client->decoder, client->in, client->in_len, batch);
        size_t i, used = batch->consumed;
        int protocol = client->protocol;
        for (i = 0; i < batch->frames_len && !client->closing; i++) {
            const respb_frame *frame = &client->frames[i];
            run_frame(client, frame);
            /* After HELLO what follows is RESPB, whatever it was taken for; with much unsent it has to wait. Either way it is
             * decoded again, from the end of this frame. */
            if ((client->protocol == RESPB_PROTOCOL_RESPB && protocol != RESPB_PROTOCOL_RESPB) ||
                unsent(client) >= OUTPUT_PAUSE) {
                used = (size_t)(frame->data - client->in) + frame->len;
                start_decoder(client, 0);
                status = RESPB_FULL;
                break;
            }
        }
        drop_input(client, used);
        if (status == RESPB_INVALID && !client->closing) refuse(client, respb_error_text(batch->error));
        if (status != RESPB_FULL) return 0;
        if (unsent(client) >= OUTPUT_PAUSE) return 1;
    }
    return 0;
}

/* Reads what there is; 0 at the end of the connection. */
static int receive(struct client *client) {
    ssize_t got;
    if (client->in_len == client->in_capacity) {
        size_t capacity = client->in_capacity * 2 < INPUT_MAX ? client->in_capacity * 2 : INPUT_MAX;
        char *grown = capacity > client->in_len ? (char *)realloc(client->in, capacity) : NULL;
        if (!grown) return 0;
        client->in = grown;
        client->in_capacity = capacity;
    }
    got = recv(client->fd, client->in + client->in_len, client->in_capacity - client->in_len, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    client->in_len += (size_t)got;
    return got > 0;
}

/* Sends what can be sent; 0 when the connection is gone. */
static int transmit(struct client *client) {
    while (unsent(client) > 0) {
        ssize_t sent = send(client->fd, client->out + client->out_sent, unsent(client), MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        client->out_sent += (size_t)sent;
    }
    client->out_sent = 0;
    return respb_writer_buffer(&client->writer, client->out, client->out_capacity, 0) == RESPB_OK;
}

/* ---- Connections --------------------------------------------------------------------------------------------------- */

static void client_free(int place) {
    struct client *client = clients[place];
    close(client->fd);
    free(client->in);
    free(client->out);
    free(client->channel);
    free(client);
    clients[place] = NULL;
}

static void client_new(int fd) {
    int place = 0, on = 1;
    struct client *client;
    while (place < CLIENTS_MAX && clients[place]) place++;
    client = place < CLIENTS_MAX ? (struct client *)calloc(1, sizeof *client) : NULL;
    if (!client) {
        close(fd);
        return;
    }
    clients[place] = client;
    client->fd = fd;
    client->in = (char *)malloc(client->in_capacity = INPUT_MIN);
    client->out = (char *)malloc(client->out_capacity = INPUT_MIN);
    client->channel = (unsigned char *)calloc(1, 65536);
    client->batch.frames = client->frames;
    client->batch.frames_capacity = FRAMES;
    client->batch.values = client->values;
    client->batch.values_capacity = VALUES;
    if (!client->in || !client->out || !client->channel || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        respb_writer_init(&client->writer, sizeof client->writer, RESPB_PROTOCOL_RESP2, client->out,
                          client->out_capacity) != RESPB_OK) {
        client_free(place);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void client_ready(int place, short events) {
    struct client *client = clients[place];
    int alive = 1, paused;
    if (events & (POLLIN | POLLHUP | POLLERR) && !client->closing && unsent(client) < OUTPUT_PAUSE) {
        alive = receive(client);
    }
    /* Again as long as sending makes room for what was held back. */
    do {
        paused = unsent(client) < OUTPUT_PAUSE ? run_input(client) : 1;
        alive = transmit(client) && alive;
    } while (alive && paused && unsent(client) < OUTPUT_PAUSE);
    if (!alive || (client->closing && unsent(client) == 0)) client_free(place);
}

static int listen_on(int port) {
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 64) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        perror("respb_server");
        exit(1);
    }
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void on_signal(int signal) {
    ssize_t written = write(stop_pipe[1], "", 1);
    (void)signal, (void)written;
}

static void serve(int listener) {
    for (;;) {
        struct pollfd polls[CLIENTS_MAX + 2];
        int places[CLIENTS_MAX + 2], count = 2, i;
        polls[0].fd = stop_pipe[0], polls[1].fd = listener;
        polls[0].events = polls[1].events = POLLIN;
        for (i = 0; i < CLIENTS_MAX; i++) {
            if (!clients[i]) continue;
            places[count] = i;
            polls[count].fd = clients[i]->fd;
            polls[count].events = 0;
            if (unsent(clients[i]) < OUTPUT_PAUSE && !clients[i]->closing) polls[count].events |= POLLIN;
            if (unsent(clients[i]) > 0) polls[count].events |= POLLOUT;
            count++;
        }
        if (poll(polls, (nfds_t)count, -1) < 0 && errno != EINTR) return;
        if (polls[0].revents) return;
        for (i = 2; i < count; i++) {
            if (polls[i].revents) client_ready(places[i], polls[i].revents);
        }
        if (polls[1].revents) {
            int fd = accept(listener, NULL, NULL);
            if (fd >= 0) client_new(fd);
        }
    }
}

int main(int argc, char **argv) {
    int i, listener;
    if (pipe(stop_pipe) < 0 || !(store = store_new(STORE_BYTES_MAX))) return 1;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    commands_init();
    listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    serve(listener);
    for (i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i]) client_free(i);
    }
    store_free(store);
    close(listener);
    return 0;
}
