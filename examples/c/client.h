/* client.h: one connection of the example server, and what bounds it.
 *
 * Owns the constants. respb_server.c has the sockets and buffers, commands.c what a frame does. */
#ifndef CLIENT_H
#define CLIENT_H

#include "respb.h"
#include "store.h"

#define CLIENTS_MAX 256
enum { CHANNEL_IDLE = 0, CHANNEL_OPEN = 1, CHANNEL_CLOSING = 2 }; /* CLOSING: our CLOSE is not answered yet */
#define CHANNELS_MAX 1024              /* open channels of one connection */
#define ARGUMENTS_MAX 1024             /* of one request */
#define FRAME_BYTES_MAX (1u << 20)     /* of one request */
#define INPUT_MIN (16u << 10)          /* the input buffer grows from here to a frame and a bit */
#define INPUT_MAX (FRAME_BYTES_MAX + INPUT_MIN)
#define OUTPUT_PAUSE (256u << 10)      /* with more than this unsent, a client is not read */
#define OUTPUT_MAX (4u << 20)          /* a reply that would exceed this becomes an error */
#define STORE_BYTES_MAX (64u << 20)
#define FRAMES 64                      /* frames of one batch */
#define VALUES (ARGUMENTS_MAX + 128)   /* any request fits, with room to spare: RESPB_FULL always comes with whole frames */

struct client {
    int fd;
    int detected;  /* the protocol is known */
    int protocol;  /* what it speaks now */
    int closing;   /* to be closed once everything is sent */
    char *in;
    size_t in_len, in_capacity;
    char *out;
    size_t out_sent, out_capacity;
    respb_writer writer;
    respb_request_decoder decoder;
    respb_batch batch;
    respb_frame frames[FRAMES];
    respb_value values[VALUES];
    unsigned channels;           /* open ones but 0 */
    unsigned char *channel;      /* what each number is: CHANNEL_IDLE, … */
};

extern struct store *store;

/* Fills the table of commands; once, at the start. */
void commands_init(void);
/* Does what a frame asks for and appends the reply. */
void run_frame(struct client *client, const respb_frame *frame);
/* Appends an error and has the connection closed once it is sent. */
void refuse(struct client *client, const char *reason);

#endif
