/* lines.h: the conformance vectors as C values.
 *
 * Owns the reading of the lines that `vectors_to_lines` writes; that program's head describes them. Knows nothing of the library
 * but its limits. */
#ifndef LINES_H
#define LINES_H

#include <stdio.h>

#include "respb.h"

/* Bytes on the heap. */
struct bytes {
    char *data;
    size_t len;
};

/* A value that decoding must give. */
struct expected {
    int kind;
    char format[4];
    struct bytes text;
    int64_t integer;
    uint64_t bits;
};

struct vector {
    char id[160];
    int protocol;
    char profile[16]; /* of RESPB; "resp" for the others */
    int request;
    int default_limits;
    int folded, encode_only; /* see conformance/README.md */
    respb_limits limits;
    struct bytes wire;
    struct bytes argv;      /* data is null where there is none, and so with `canonical` */
    struct bytes canonical;
    char error[64];         /* empty for a valid vector */
    unsigned long offset;
    char frame[32];
    char command[64];
    unsigned long channel, options, opcode, number, last;
    struct expected *values;
    size_t values_len, values_capacity;
};

/* Reads the next vector; 0 at the end. What it holds is good until the next call. Broken lines end the program. */
int lines_next(FILE *file, struct vector *vector);

#endif
