/* respb_carrier.h: carriers and channels, as the files of RESPB see them.
 *
 * A carrier is a connection that speaks RESPB. A channel is an ordinary `client` whose connection is a virtual one. Owns their
 * structs, their limits, and what the files call of each other. Does not own what Valkey calls: respb_net.h. */
#ifndef RESPB_CARRIER_H
#define RESPB_CARRIER_H

#include "server.h"
#include "../deps/respb/respb.h"

/* Of networking.c, which server.h does not declare. */
void trimCommandQueue(client *c);
void trimClientQueryBuffer(client *c);
int checkClientOutputBufferLimits(client *c);
int cmdHasPushAsReply(struct serverCommand *cmd);
size_t getClientEvictionLimit(void);
extern int ProcessingEventsWhileBlocked;

/* Frames that are decoded at once, and values for them; a request with more arguments gets a larger array while it comes. */
#define FRAMES_MAX 64
#define VALUES_MIN 128
/* What may wait in a carrier to be sent. Replies beyond it stay with the client, where Valkey's limits count them. */
#define OUTPUT_HIGH (256 * 1024)
/* What a channel's client, or a carrier, writes at once: a connection's writes are counted in an int. */
#define TAKEN_MAX (1 << 30)
/* What makes a write of its own, before all channels have written. */
#define SEND_BYTES (64 * 1024)
/* Output buffers that are kept for whoever writes next, and how large each may be. */
#define POOL_MAX 4
#define POOL_BYTES (2 * SEND_BYTES)
/* Channels are found by number in pages that exist when they have one. */
#define PAGES 256
#define PAGE_CHANNELS 256
#define NUMBERS (PAGES * PAGE_CHANNELS)
/* CLOSEs of refused channels that a client may leave unanswered (section 10). */
#define UNANSWERED_MAX 1024
/* Behind GOAWAY a carrier reads so long and so much before it ends the connection (section 8.5). */
#define LINGER_MS 10000
#define LINGER_BYTES (64u << 20)
/* How long SHUTDOWN waits for clients to take what they are owed. */
#define SHUTDOWN_MS 1000
/* Before authentication, where it is required (section 10). */
#define UNAUTHENTICATED_BYTES 16384

/* The names of requests that no command can have: answered by respbRefuses. */
#define CANCELLED "cancelled by CANCEL"
#define UNKNOWN_FRAME "unknown frame 0x"

typedef struct carrier carrier;

/* A reply that has come in part. */
typedef struct half {
    sds bytes;
    respb_reply_decoder decoder;
    respb_batch batch;
    respb_frame frame;
} half;

/* An open channel: the connection that its client believes to have. */
typedef struct channel {
    connection conn; /* the first member: client->conn points here */
    carrier *on;
    client *client;
    half *half;
    unsigned long long queue_bytes; /* what waited in the client's command queue when that was last counted */
    int queue_from;                 /* where in it that began */
    uint32_t pushed;                /* requests so far: the sequence of the next (section 8.6) */
    uint32_t user_after;            /* of channel 0: the request whose answer decides about the user (section 8.2) */
    uint64_t skips;                 /* values to come of a reply that RESPB cannot say */
    size_t owes;                    /* output that its client held when that was last looked at */
    listNode *writing, *awaits_user; /* in the carrier's lists, or NULL */
    int code;                       /* why it ends, -1 while nobody has said */
    int confirms;                   /* elements to come of SUBSCRIBE's answer */
    uint16_t number;
    unsigned client_closed : 1; /* the client's CLOSE has come */
    unsigned is_void : 1;       /* and has been answered, though a command runs still: its number is free, nobody reads its reply */
    unsigned is_over : 1;       /* past its output limit: nothing more runs */
    unsigned is_raw : 1;        /* what is written is RESP that was owed before RESPB */
    unsigned drains : 1;        /* what is written is taken, however much waits */
} channel;

/* It exists while one of its numbers has a channel. */
typedef struct page {
    int open;
    channel *channels[PAGE_CHANNELS];
} page;

struct carrier {
    connection *conn; /* NULL when the connection has ended */
    page *pages[PAGES];
    unsigned char *closing; /* a bit for each number: isClosing; NULL when there is none */
    channel *zero;
    list *writers;  /* channels whose replies wait for room, or whose output has to be counted, in turns */
    list *awaiting; /* channels that wait for the user of channel 0, as they were opened */
    uint32_t *deciders; /* sequences of channel 0's requests that may change its user; the last that waits is the last here that waits */
    size_t deciders_len, deciders_size;
    int open, unanswered, pages_len;
    unsigned long long queue_bytes;
    size_t owes; /* output that the clients of all channels hold */
    char *in; /* bytes of a frame that is not whole, or that wait for the end of a pause */
    size_t in_len, in_size;
    char *out; /* [out_at, out_len) is to be sent, of which [out_at, out_ready) may be */
    size_t out_at, out_ready, out_len, out_size;
    respb_request_decoder decoder;
    respb_limits limits;
    respb_batch batch;
    listNode *listed, *active; /* in `carriers`; in `active`, or NULL */
    mstime_t linger_until;
    size_t lingered;
    int code; /* of GOAWAY */
    sds reason;
    unsigned authenticated : 1;
    unsigned busy : 1;    /* its frames are being run */
    unsigned paused : 1;  /* not read, since an administrator holds a channel whose queue is full */
    unsigned waits : 1;   /* `in` has bytes that have not been looked at */
    unsigned leaving : 1; /* GOAWAY is owed */
    unsigned left : 1;    /* GOAWAY is in `out`: what comes is discarded */
    unsigned shut : 1;    /* our direction has ended: everything has been said, over TLS that it has too */
    unsigned has_over : 1;
};

/* Whether the output of all channels is past its limit. */
static inline int owesTooMuch(const carrier *k) {
    return k->owes + k->out_len - k->out_at > respb_settings.connection_output_bytes_max;
}

static inline channel *channelOf(client *c) {
    return (channel *)c->conn;
}

/* Whether a number's channel has ended here, and its CLOSE from the client has not come. */
static inline int isClosing(const carrier *k, uint16_t number) {
    return k->closing && k->closing[number / 8] >> (number % 8) & 1;
}

static inline channel *find(const carrier *k, uint16_t number) {
    const page *in = k->pages[number / PAGE_CHANNELS];
    return in ? in->channels[number % PAGE_CHANNELS] : NULL;
}

/* respb_net.c: connections. */
void respbActivate(carrier *k);
void respbSwitch(client *c);
void respbLeave(carrier *k, int code, const char *reason);
void respbHangUp(carrier *k);
int respbCrowdsOut(carrier *k);

/* respb_reply.c: output, and replies from RESP3 to RESPB. */
void respbRepliesBegin(void);
unsigned char *respbOutput(carrier *k, size_t n);
void respbOutputClose(carrier *k, uint16_t number, int code);
const char *respbReasonOf(int code);
void respbFlush(carrier *k);
void respbWritable(connection *conn);
void respbTranslate(channel *ch, const char *data, size_t len);
void respbHalfFree(channel *ch);

/* respb_channel.c: channels and their virtual connections. */
channel *respbChannelMake(carrier *k, uint16_t number);
channel *respbChannelOpen(carrier *k, uint16_t number, client *heir_of);
channel *respbChannelFor(carrier *k, uint16_t number);
void respbChannelEnd(channel *ch, int code);
void respbCloseBefore(channel *ch);
void respbClosed(carrier *k, uint16_t number);
void respbCountOutput(channel *ch);
void respbOver(channel *ch);
void respbGiveUsers(carrier *k, int all);
void respbMayDecide(channel *ch, struct serverCommand *cmd);

/* respb_request.c: from bytes to commands. */
void respbRequestsBegin(void);
void respbSetLimits(carrier *k);
void respbDecoderStart(carrier *k);
void respbBatchGive(carrier *k);
void respbTakeBytes(carrier *k, char *data, size_t len);
void respbReadable(connection *conn);
void respbAfterRun(carrier *k, client *c);
void respbCountQueue(channel *ch);
int respbQueueIsFull(channel *ch, size_t more);

#endif
