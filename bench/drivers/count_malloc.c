/* Counts what Valkey asks of jemalloc. The linker puts these functions between its objects and the allocator
 * (`--wrap=je_malloc` and so on), so the objects stay as they are; the program that is timed has none of this. */
#include "driver.h"

void *__real_je_malloc(size_t size);
void *__real_je_calloc(size_t count, size_t size);
void *__real_je_realloc(void *pointer, size_t size);
void __real_je_free(void *pointer);
void __real_je_sdallocx(void *pointer, size_t size, int flags);
size_t je_malloc_usable_size(void *pointer);

static uint64_t allocations, bytes;
static int64_t live, peak;

static void *counted(void *pointer, size_t size) {
    allocations++;
    bytes += size;
    if (pointer) live += (int64_t)je_malloc_usable_size(pointer);
    if (live > peak) peak = live;
    return pointer;
}

static void gone(void *pointer) {
    if (pointer) live -= (int64_t)je_malloc_usable_size(pointer);
}

void *__wrap_je_malloc(size_t size) {
    return counted(__real_je_malloc(size), size);
}

void *__wrap_je_calloc(size_t count, size_t size) {
    return counted(__real_je_calloc(count, size), count * size);
}

void *__wrap_je_realloc(void *pointer, size_t size) {
    gone(pointer);
    return counted(__real_je_realloc(pointer, size), size);
}

void __wrap_je_free(void *pointer) {
    gone(pointer);
    __real_je_free(pointer);
}

void __wrap_je_sdallocx(void *pointer, size_t size, int flags) {
    gone(pointer);
    __real_je_sdallocx(pointer, size, flags);
}

void weft_heap_reset(void) {
    allocations = bytes = 0;
    live = peak = 0;
}

weft_heap weft_heap_read(void) {
    return (weft_heap){allocations, bytes, peak > 0 ? (uint64_t)peak : 0, 1};
}
