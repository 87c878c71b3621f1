/* The part of a driver that all contestants in C share: lines on stdin, lines on stdout.
 *
 *   load LEN                     then LEN bytes          ok COMMANDS
 *   pass MODE REPEATS                                    pass COMMANDS FOLD CPU_NS      (of all repeats; FOLD of one)
 *   heap MODE                                            heap ALLOCATIONS BYTES PEAK    (of one pass)
 *   latency MODE BATCH SAMPLES                           latency N                      then N lines: ns of each batch
 *   dump                                                 dump LEN                       then LEN bytes
 *
 * The first line it writes is `ready NAME`. A request that it cannot do is answered with `error WHY`. CPU time is getrusage's,
 * user and system together. Ends with its stdin.
 */
#define _POSIX_C_SOURCE 200809L
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MODE_MAX 32

static unsigned char *stream;
static size_t stream_len, *ends, commands;
static unsigned char *dump;
static size_t dump_len, dump_cap;

static void *checked(void *pointer) {
    if (pointer == NULL) {
        puts("error out of memory");
        exit(1);
    }
    return pointer;
}

static void append(const void *bytes, size_t len) {
    if (dump_cap - dump_len < len) {
        dump_cap = (dump_len + len) * 2;
        dump = checked(realloc(dump, dump_cap));
    }
    if (len > 0) memcpy(dump + dump_len, bytes, len);
    dump_len += len;
}

void weft_dump_u32(uint32_t value) {
    unsigned char bytes[4] = {value, value >> 8, value >> 16, value >> 24};
    append(bytes, sizeof(bytes));
}

void weft_dump_argument(const void *bytes, size_t len) {
    weft_dump_u32((uint32_t)len);
    append(bytes, len);
}

static uint64_t cpu_ns(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void load(size_t len) {
    free(stream);
    free(ends);
    stream = checked(malloc(len + 1));
    ends = checked(malloc((len + 1) * sizeof(*ends)));
    stream_len = len;
    if (fread(stream, 1, len, stdin) != len || !weft_load(stream, len, ends, &commands)) {
        puts("error the stream was not taken");
        stream_len = commands = 0;
        return;
    }
    printf("ok %zu\n", commands);
}

static void pass(const char *mode, unsigned long repeats) {
    weft_seen seen = {0, 0};
    uint64_t total = 0, before = cpu_ns();
    for (unsigned long i = 0; i < repeats; i++) {
        seen = weft_pass(mode, 0, stream_len);
        total += seen.commands;
    }
    uint64_t cpu = cpu_ns() - before;
    printf("pass %llu %llu %llu\n", (unsigned long long)total, (unsigned long long)seen.fold, (unsigned long long)cpu);
}

static void heap(const char *mode) {
    weft_heap_reset();
    weft_pass(mode, 0, stream_len);
    weft_heap counted = weft_heap_read();
    if (!counted.counts) {
        puts("error this program does not count");
        return;
    }
    printf("heap %llu %llu %llu\n", (unsigned long long)counted.allocations, (unsigned long long)counted.bytes,
           (unsigned long long)counted.peak_bytes);
}

static void latency(const char *mode, size_t batch, size_t samples) {
    size_t batches = batch == 0 ? 0 : commands / batch;
    if (batches == 0 || samples == 0) {
        puts("error the stream has no batch of that size");
        return;
    }
    uint64_t *times = checked(malloc(samples * sizeof(*times)));
    for (size_t i = 0; i < samples; i++) {
        size_t first = (i % batches) * batch;
        size_t from = first == 0 ? 0 : ends[first - 1], to = ends[first + batch - 1];
        uint64_t before = clock_ns();
        weft_pass(mode, from, to);
        times[i] = clock_ns() - before;
    }
    printf("latency %zu\n", samples);
    for (size_t i = 0; i < samples; i++) printf("%llu\n", (unsigned long long)times[i]);
    free(times);
}

int main(void) {
    char line[128], mode[MODE_MAX];
    unsigned long first, second;
    printf("ready %s\n", weft_start());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (sscanf(line, "load %lu", &first) == 1) {
            load(first);
        } else if (strcmp(line, "dump\n") == 0) {
            dump_len = 0;
            weft_dump();
            printf("dump %zu\n", dump_len);
            fwrite(dump, 1, dump_len, stdout);
        } else if (sscanf(line, "%*s %31s", mode) != 1 || !weft_has_mode(mode)) {
            puts("error no such request or mode");
        } else if (sscanf(line, "pass %*s %lu", &first) == 1) {
            pass(mode, first);
        } else if (strncmp(line, "heap ", 5) == 0) {
            heap(mode);
        } else if (sscanf(line, "latency %*s %lu %lu", &first, &second) == 2) {
            latency(mode, first, second);
        } else {
            puts("error no such request");
        }
        fflush(stdout);
    }
    return 0;
}
