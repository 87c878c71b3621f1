/* What a contestant of `weft wire` written in C provides, and what it is given.
 *
 * A driver is a program that holds one stream in memory and decodes it when told to, over a protocol of lines on stdin and
 * stdout (driver.c has it in full). This file owns the fold, which is the same as the one in Rust
 * (crates/weft/src/wire/fold.rs): of each argument its length, its first and its last byte; of each number that the wire carries
 * in binary, the number; of each command that the wire names by an opcode, the opcode.
 */
#ifndef WEFT_DRIVER_H
#define WEFT_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* What a pass over a stream saw. */
typedef struct {
    uint64_t commands;
    uint64_t fold;
} weft_seen;

static inline uint64_t weft_fold(const unsigned char *bytes, size_t len) {
    return len == 0 ? 0 : len + bytes[0] + bytes[len - 1];
}

/* Appends to the dump: for each command `[u32 arguments]`, for each argument `[u32 len][bytes]`, little endian. */
void weft_dump_u32(uint32_t value);
void weft_dump_argument(const void *bytes, size_t len);

/* Called by driver.c, provided by each contestant. */

/* Once, before anything else. Gives the contestant's name and version. */
const char *weft_start(void);
/* A new stream; the bytes stay where they are until the next call. Returns 0 when it is not one. `ends` receives, in ascending
 * order, the offset behind each command; it has room for `len` of them. `*commands` receives how many there are. */
int weft_load(unsigned char *bytes, size_t len, size_t *ends, size_t *commands);
/* Decodes the stream from `from` to `to`, both ends of commands. `mode` is a word of the contestant's own. */
weft_seen weft_pass(const char *mode, size_t from, size_t to);
/* Whether there is such a mode. */
int weft_has_mode(const char *mode);
/* Decodes the whole stream and dumps every argument. */
void weft_dump(void);

/* The counters of the allocator: provided by count_malloc.c, or by no_count.c in the programs that are timed. */
typedef struct {
    uint64_t allocations;
    uint64_t bytes;
    uint64_t peak_bytes;
    int counts;
} weft_heap;
void weft_heap_reset(void);
weft_heap weft_heap_read(void);

#endif
