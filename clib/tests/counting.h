/* counting.h: proves that the library allocates nothing.
 *
 * Owns the count of allocations between lib_enter and lib_leave. With COUNT_ALLOCATIONS, for glibc, the program's own malloc and
 * its relatives stand before those of libc, for a shared library too; otherwise (under a sanitizer) both do nothing. */
#ifndef COUNTING_H
#define COUNTING_H

void lib_enter(void);
void lib_leave(void);
/* Allocations that happened between the two, and calls that were watched. */
unsigned long lib_allocations(void);
unsigned long lib_calls(void);

#endif
