/* Owns: what is seen of a decoder's answers, as bytes that can be compared. */

#ifndef SHOWN_H
#define SHOWN_H

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX (1u << 20)

struct shown {
    unsigned char bytes[SHOWN_MAX];
    size_t len;
};

static void add(struct shown *shown, const void *bytes, size_t len) {
    if (shown->len + len > SHOWN_MAX) abort();
    if (len) memcpy(shown->bytes + shown->len, bytes, len);
    shown->len += len;
}

#endif
