/* run.h: a decoder with its arrays, fed in any way, and what it found, comparable.
 *
 * Owns the arrays and the digest. What is fed and compared stands in the tests. */
#ifndef RUN_H
#define RUN_H

#include "lines.h"

/* A decoder of either direction with a batch for one frame. */
struct run {
    int request;
    union {
        respb_request_decoder request;
        respb_reply_decoder reply;
    } decoder;
    respb_batch batch;
    respb_frame frame;
    uint64_t digest;    /* of the values of the frame, in order, taken ones included */
    size_t values;      /* how many they are */
    int keep;           /* grow the array when it is full; otherwise take */
};

/* Makes a decoder for the vector, whose array has `capacity` places. */
void run_init(struct run *run, const struct vector *vector, size_t capacity, int keep);
void run_free(struct run *run);
/* Decodes one frame; RESPB_FULL from the array of values is dealt with here. RESPB_OK for a whole frame, whatever follows. */
respb_status run_feed(struct run *run, const char *data, size_t len);
/* Ends the program with a message when `good` is 0. */
void expect(int good, const struct vector *vector, const char *what, unsigned long detail);

#endif
