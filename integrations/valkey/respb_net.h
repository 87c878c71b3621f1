/* respb_net.h: what Valkey's own files call of RESPB.
 *
 * Included at the end of server.h. Owns the declarations of the hooks; respb_net.c owns what they do. Without USE_RESPB every
 * hook is a constant that the compiler drops, so that the lines inserted elsewhere need no #ifdef. */
#ifndef RESPB_NET_H
#define RESPB_NET_H

/* What HELLO was asked beyond what Valkey knows: PROTO and CAPS. */
typedef struct respbHello {
    int wants_respb; /* PROTO respb */
    const char *error;
} respbHello;

/* The codes of CLOSE and GOAWAY (specification, section 8.4). */
enum {
    RESPB_DONE = 0,
    RESPB_QUEUE_FULL = 1,
    RESPB_OUTPUT_FULL = 2,
    RESPB_IDLE = 3,
    RESPB_KILLED = 4,
    RESPB_TOO_MANY = 5,
    RESPB_SHUTDOWN = 6,
    RESPB_USER_GONE = 7,
    RESPB_UNREADABLE = 8
};

#ifdef USE_RESPB

/* Settings, changed by CONFIG SET. */
typedef struct respbSettings {
    int enabled;           /* RESPB at all */
    int detect;            /* by the first byte, not only by HELLO */
    int channels_max;      /* of a connection */
    int unauthenticated_channels_max;
    unsigned long long queue_bytes_max;            /* what waits, for each channel */
    unsigned long long connection_queue_bytes_max; /* the same for all channels of a connection */
    unsigned long long output_bytes_max;           /* replies not yet sent, for each channel */
    unsigned long long connection_output_bytes_max; /* the same for all channels of a connection */
    unsigned long long frame_bytes_max;
} respbSettings;
extern respbSettings respb_settings;

/* Rows of config.c's table. */
#define RESPB_CONFIGS                                                                                                       \
    createBoolConfig("respb-enabled", NULL, MODIFIABLE_CONFIG, respb_settings.enabled, 0, NULL, NULL),                      \
    createBoolConfig("respb-detect", NULL, MODIFIABLE_CONFIG, respb_settings.detect, 1, NULL, NULL),                        \
    createIntConfig("respb-channels", NULL, MODIFIABLE_CONFIG, 1, 65536, respb_settings.channels_max, 65536,                \
                    INTEGER_CONFIG, NULL, NULL),                                                                            \
    createIntConfig("respb-unauthenticated-channels", NULL, MODIFIABLE_CONFIG, 1, 65536,                                    \
                    respb_settings.unauthenticated_channels_max, 16, INTEGER_CONFIG, NULL, NULL),                           \
    createULongLongConfig("respb-queue-bytes", NULL, MODIFIABLE_CONFIG, 0, LLONG_MAX, respb_settings.queue_bytes_max,       \
                          1ull << 20, MEMORY_CONFIG, NULL, NULL),                                                           \
    createULongLongConfig("respb-connection-queue-bytes", NULL, MODIFIABLE_CONFIG, 0, LLONG_MAX,                            \
                          respb_settings.connection_queue_bytes_max, 16ull << 20, MEMORY_CONFIG, NULL, NULL),               \
    createULongLongConfig("respb-output-bytes", NULL, MODIFIABLE_CONFIG, 0, LLONG_MAX, respb_settings.output_bytes_max,     \
                          256ull << 20, MEMORY_CONFIG, NULL, NULL),                                                         \
    createULongLongConfig("respb-connection-output-bytes", NULL, MODIFIABLE_CONFIG, 0, LLONG_MAX,                           \
                          respb_settings.connection_output_bytes_max, 512ull << 20, MEMORY_CONFIG, NULL, NULL),             \
    createULongLongConfig("respb-frame-bytes", NULL, MODIFIABLE_CONFIG, 16384, UINT32_MAX, respb_settings.frame_bytes_max,  \
                          1ull << 30, MEMORY_CONFIG, NULL, NULL),

/* A connection. */
int respbTakes(client *c);
int respbKeepsFromThreads(client *c);
void respbBeforeWrites(void);
void respbAfterWrites(void);
void respbEndAll(void);
int respbEndsWrites(connection *conn);
int respbWritesEnd(int result);

/* A channel's client. */
int respbChannelStops(client *c);
#define respbStops(c) ((c)->flag.respb_channel && respbChannelStops(c))
void respbBeforeFree(client *c);
int respbOutputLimit(client *c);
void respbReason(client *c, int code);
size_t respbChannelMemory(client *c);
#define respbMemory(c) ((c)->flag.respb_channel ? respbChannelMemory(c) : 0)
connection *respbCarrierOf(client *c);
#define respbConn(c) ((c)->flag.respb_channel ? respbCarrierOf(c) : (c)->conn)

/* Commands. */
/* Replies of a client that is to be freed are dropped: what would run now would not be answered. */
#define respbEnds(c) ((c)->flag.respb_channel && (c)->flag.close_asap)
int respbCommandRefused(client *c);
#define respbRefuses(c) (((c)->flag.respb_channel || (c)->flag.multi) && respbCommandRefused(c))
void respbChannelCalls(client *c);
#define respbBeforeCall(c)                                \
    do {                                                  \
        if ((c)->flag.respb_channel) respbChannelCalls(c); \
    } while (0)
int respbConfirms(client *c);
int respbMonitors(client *monitor, robj *line);
int respbHelloRefuses(client *c, long long version);
int respbHelloOption(client *c, respbHello *hello, const char *option, robj *value);
int respbHelloFails(client *c, long long version, const respbHello *hello);
int respbHelloEntries(client *c, const respbHello *hello);
void respbHelloDone(client *c, const respbHello *hello);

#else

#define RESPB_CONFIGS
#define respbTakes(c) 0
#define respbKeepsFromThreads(c) 0
#define respbBeforeWrites()
#define respbAfterWrites()
#define respbEndAll()
#define respbEndsWrites(conn) 0
#define respbWritesEnd(result) (result)
#define respbStops(c) 0
#define respbBeforeFree(c)
#define respbOutputLimit(c) 0
#define respbReason(c, code)
#define respbMemory(c) 0
#define respbConn(c) ((c)->conn)
#define respbEnds(c) 0
#define respbRefuses(c) 0
#define respbBeforeCall(c)
#define respbConfirms(c) 0
#define respbMonitors(monitor, line) 0
#define respbHelloRefuses(c, version) 0
#define respbHelloOption(c, hello, option, value) ((void)(hello), 0)
#define respbHelloFails(c, version, hello) 0
#define respbHelloEntries(c, hello) 0
#define respbHelloDone(c, hello)

#endif
#endif
