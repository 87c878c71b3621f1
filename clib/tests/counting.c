/* counting.c: see counting.h. */
#include "counting.h"

#include <errno.h>
#include <stddef.h>

static unsigned long allocations, calls;
static int watched;

void lib_enter(void) { watched = 1, calls++; }
void lib_leave(void) { watched = 0; }
unsigned long lib_allocations(void) { return allocations; }
unsigned long lib_calls(void) { return calls; }

#ifdef COUNT_ALLOCATIONS
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
int posix_memalign(void **out, size_t align, size_t size);
void *aligned_alloc(size_t align, size_t size);

void *malloc(size_t size) {
    allocations += (unsigned long)watched;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations += (unsigned long)watched;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    allocations += (unsigned long)watched;
    return __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t align, size_t size) {
    allocations += (unsigned long)watched;
    *out = __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size) {
    allocations += (unsigned long)watched;
    return __libc_memalign(align, size);
}
#endif
