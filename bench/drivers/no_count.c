/* The allocator's counters in programs that are timed: none. */
#include "driver.h"

void weft_heap_reset(void) {
}

weft_heap weft_heap_read(void) {
    return (weft_heap){0, 0, 0, 0};
}
