/* server_test.c: starts the example server and talks to it: RESP, RESPB on several channels, in pieces, garbage, redis-cli.
 *
 * Owns the conversations. It waits for bytes and for the end of a connection, never for time; a server that says nothing is ended
 * by the alarm.
 *
 * server_test SERVER */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "respb.h"

static int port;
static int checks;
static pid_t server;

static void expect(int good, const char *what, int line) {
    checks++;
    if (good) return;
    fprintf(stderr, "server_test.c:%d: %s\n", line, what);
    if (server > 0) kill(server, SIGKILL);
    exit(1);
}
#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)

static int dial(void) {
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    EXPECT(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void say(int fd, const void *data, size_t len) {
    size_t at = 0;
    while (at < len) {
        ssize_t sent = send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL);
        EXPECT(sent > 0);
        at += (size_t)sent;
    }
}

/* Reads exactly these bytes. */
static void hear_at(int fd, const char *wanted, size_t len, int line) {
    static char got[1 << 16];
    size_t at = 0;
    while (at < len) {
        ssize_t count = recv(fd, got + at, len - at, 0);
        if (count <= 0) break;
        at += (size_t)count;
    }
    if (at != len || memcmp(got, wanted, len) != 0) {
        fwrite("got: ", 1, 5, stderr), fwrite(got, 1, at, stderr), fputc(10, stderr);
        expect(0, "another answer", line);
    }
}
#define HEAR(fd, text) hear_at(fd, text, sizeof(text) - 1, __LINE__)
#define SAY(fd, text) say(fd, text, sizeof(text) - 1)

/* Nothing more comes, and the connection ends. */
static void hear_end(int fd, int line) {
    char byte;
    expect(recv(fd, &byte, 1, 0) == 0, "the connection goes on", line);
    close(fd);
}

static void resp(void) {
    int fd = dial();
    size_t i;
    static const char slow[] = "*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$4\r\nslow\r\n";
    SAY(fd, "*1\r\n$4\r\nPING\r\n");
    HEAR(fd, "+PONG\r\n");
    SAY(fd, "\r\nset inline \"two words\\x21\"\r\nGET inline\n");
    HEAR(fd, "+OK\r\n$10\r\ntwo words!\r\n");
    for (i = 0; i + 1 < sizeof slow; i++) say(fd, slow + i, 1);
    HEAR(fd, "+OK\r\n$5\r\nvalue\r\n");
    SAY(fd, "*3\r\n$4\r\nMGET\r\n$4\r\nslow\r\n$4\r\nnone\r\n*2\r\n$3\r\nDEL\r\n$4\r\nslow\r\n");
    HEAR(fd, "*2\r\n$5\r\nvalue\r\n$-1\r\n:1\r\n");
    SAY(fd, "INCR n\r\nINCR n\r\nINCR inline\r\n");
    HEAR(fd, ":1\r\n:2\r\n-ERR value is not an integer or out of range\r\n");
    SAY(fd, "GET\r\nNOSUCH\r\nECHO hey\r\n");
    HEAR(fd, "-ERR wrong number of arguments for 'GET' command\r\n-ERR unknown command\r\n$3\r\nhey\r\n");
    SAY(fd, "HELLO 3\r\nGET none\r\n");
    HEAR(fd, "%4\r\n$6\r\nserver\r\n$13\r\nrespb-example\r\n");
    close(fd);
    fd = dial();
    SAY(fd, "QUIT\r\n");
    HEAR(fd, "+OK\r\n");
    hear_end(fd, __LINE__);
}

static void respb(void) {
    int fd = dial();
    size_t i;
    static const char slow[] = "\0\1\0\2\0\1s\0\0\0\3abc\0\0\0\0\2\0\1s";
    /* SET k v on channel 1, GET k on channels 2 and 0x0102, PING on 0; one write. */
    SAY(fd, "\0\1\0\1\0\1k\0\0\0\1v\0\0\0\0\2\0\1k\0\0\1\2\0\1k\3\0\0\0");
    HEAR(fd, "\x80\0\0\1\x82\1\0\2v\x82\1\1\2v\x83\4\0\0PONG");
    for (i = 0; i + 1 < sizeof slow; i++) say(fd, slow + i, 1);
    HEAR(fd, "\x80\0\0\2\x82\3\0\2abc");
    /* ARGV, passthrough, MGET. */
    SAY(fd, "\xF0\1\0\5\0\0\0\x0c\0\0\0\3get\0\0\0\1k\xFF\xFF\0\6\0\0\0\x14*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    HEAR(fd, "\x82\1\0\5v\x82\1\0\6v");
    /* An unknown frame is answered, an ignorable one is not. */
    SAY(fd, "\xF0\x02\0\7\0\0\0\1x\xFF\x7F\0\7\0\0\0\1x\3\0\0\7");
    HEAR(fd, "\x80\1\0\7\0\x11" "ERR unknown frame\x83\4\0\7PONG");
    /* CLOSE of a channel is answered, and the channel can be used again. */
    SAY(fd, "\xFF\1\0\1\0\0\0\0\3\0\0\1");
    HEAR(fd, "\xFF\1\0\1\0\0\0\0\x83\4\0\1PONG");
    /* QUIT closes its channel: what comes before our CLOSE is discarded. CLOSE of an idle channel is ignored. */
    SAY(fd, "\3\4\0\7\3\0\0\7\xFF\1\0\7\0\0\0\0\xFF\1\0\x09\0\0\0\0\3\0\0\7");
    HEAR(fd, "\x80\0\0\7\xFF\1\0\7\0\0\0\0\x83\4\0\7PONG");
    /* An opcode that nobody knows. */
    SAY(fd, "\3\0\0\3\x07\xFE\0\3");
    HEAR(fd, "\x83\4\0\3PONG\xFF\4\0\0\0\0\0\x24\0\x08" "ERR Protocol error: unknown opcode");
    hear_end(fd, __LINE__);
}

/* HELLO 3 PROTO respb, with a frame right behind it. */
static void switches(void) {
    int fd = dial();
    char byte, last[4] = "";
    SAY(fd, "HELLO 3 PROTO respb\r\n\3\0\0\x09");
    /* A map of RESP3, on a connection that has spoken nothing yet. */
    HEAR(fd, "%4\r\n$6\r\nserver\r\n");
    /* The map's end is not interesting: the PONG behind it is. */
    while (memcmp(last, "PONG", 4) != 0) {
        EXPECT(recv(fd, &byte, 1, 0) == 1);
        memmove(last, last + 1, 3);
        last[3] = byte;
    }
    SAY(fd, "\0\0\0\x09\0\1k");
    HEAR(fd, "\x82\1\0\x09v");
    close(fd);
}

static void garbage(void) {
    static char much[1 << 16];
    int fd = dial();
    SAY(fd, "*1\r\n$4\r\nPING\r\n*1\r\n$x\r\n");
    HEAR(fd, "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n");
    hear_end(fd, __LINE__);
    fd = dial();
    SAY(fd, "$5\r\n");
    HEAR(fd, "-ERR Protocol error: first byte belongs to no known protocol\r\n");
    hear_end(fd, __LINE__);
    fd = dial();
    memset(much, 0, sizeof much);
    say(fd, much, 64);
    HEAR(fd, "\xFF\4\0\0\0\0\0\x3f\0\x08" "ERR Protocol error: first frame has an empty key on channel 0");
    hear_end(fd, __LINE__);
    fd = dial();
    SAY(fd, "*2\r\n$3\r\nGET\r\n$99999999\r\n");
    HEAR(fd, "-ERR Protocol error: invalid bulk length\r\n");
    hear_end(fd, __LINE__);
    fd = dial();
    SAY(fd, "*5000\r\n");
    HEAR(fd, "-ERR Protocol error: invalid multibulk length\r\n");
    hear_end(fd, __LINE__);
}

/* Requests and replies that are larger than every first buffer, thousands in one go, read late. */
static void large(void) {
    enum { LEN = 300000, TIMES = 40 };
    char *value = (char *)malloc(LEN), *out = (char *)malloc(LEN + 64);
    respb_value args[2];
    respb_reply_decoder decoder;
    respb_frame frames[4];
    respb_value values[16];
    respb_batch batch;
    char *in = (char *)malloc(2 * LEN);
    size_t len, in_len = 0;
    int fd = dial(), i, seen = 0;
    memset(value, 'x', LEN);
    args[0] = respb_bytes("large", 5);
    args[1] = respb_bytes(value, LEN);
    len = respb_encode_request(RESPB_FORM_FOLD, 4, "SET", args, 2, out, LEN + 64);
    EXPECT(len > LEN && len <= LEN + 64);
    say(fd, out, len);
    HEAR(fd, "\x80\0\0\4");
    len = respb_encode_request(RESPB_FORM_FOLD, 4, "GET", args, 1, out, LEN);
    for (i = 0; i < TIMES; i++) say(fd, out, len);
    memset(&batch, 0, sizeof batch);
    batch.frames = frames, batch.frames_capacity = 4, batch.values = values, batch.values_capacity = 16;
    EXPECT(respb_reply_decoder_init(&decoder, sizeof decoder, RESPB_PROTOCOL_RESPB, NULL) == RESPB_OK);
    while (seen < TIMES) {
        ssize_t got = recv(fd, in + in_len, 2 * LEN - in_len, 0);
        EXPECT(got > 0);
        in_len += (size_t)got;
        EXPECT(respb_decode_replies(&decoder, in, in_len, &batch) >= RESPB_OK);
        for (i = 0; i < (int)batch.frames_len; i++, seen++) {
            const respb_value *got_value = &values[frames[i].first];
            EXPECT(frames[i].channel == 4 && frames[i].count == 1 && got_value->len == LEN);
            EXPECT(memcmp(got_value->value.data, value, LEN) == 0);
        }
        memmove(in, in + batch.consumed, in_len - batch.consumed);
        in_len -= batch.consumed;
    }
    EXPECT(in_len == 0);
    close(fd);
    free(value), free(out), free(in);
}

/* A client that is used every day, if it is there. */
static void redis_cli(void) {
    static const char *const versions[] = {"", "-3 "};
    size_t i;
    if (system("command -v redis-cli > /dev/null") != 0) {
        printf("redis-cli is not there: left out\n");
        return;
    }
    for (i = 0; i < 2; i++) {
        char command[256], answer[64] = "";
        FILE *pipe;
        size_t len;
        snprintf(command, sizeof command,
                 "redis-cli %s-p %d SET cli 41 && redis-cli %s-p %d INCR cli && redis-cli %s-p %d MGET cli none",
                 versions[i], port, versions[i], port, versions[i], port);
        pipe = popen(command, "r");
        EXPECT(pipe != NULL);
        len = fread(answer, 1, sizeof answer - 1, pipe);
        answer[len] = 0;
        EXPECT(pclose(pipe) == 0);
        EXPECT(strcmp(answer, "OK\n42\n42\n\n") == 0);
    }
}

/* The server says nothing, or not enough. */
static void on_alarm(int signal) {
    static const char text[] = "server_test: the server does not answer\n";
    ssize_t written = write(2, text, sizeof text - 1);
    (void)signal, (void)written;
    if (server > 0) kill(server, SIGKILL);
    _exit(1);
}

int main(int argc, char **argv) {
    int ends[2], status;
    FILE *out;
    signal(SIGALRM, on_alarm);
    alarm(240);
    EXPECT(argc == 2 && pipe(ends) == 0);
    server = fork();
    if (server == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl(argv[1], argv[1], "0", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    out = fdopen(ends[0], "r");
    EXPECT(out && fscanf(out, "port %d", &port) == 1);
    resp();
    respb();
    switches();
    garbage();
    large();
    redis_cli();
    EXPECT(kill(server, SIGTERM) == 0);
    EXPECT(waitpid(server, &status, 0) == server);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fclose(out);
    printf("example server: %d checks\n", checks);
    return 0;
}
