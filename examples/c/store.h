/* store.h: the keys of the example server: a hash table with a bound on its bytes.
 *
 * Owns keys and values. Knows no protocol. Not meant to be fast or fair; it is here so that the server has something to serve. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>

struct store;

/* A store of at most `bytes_max` bytes of keys, values and bookkeeping. Null when there is no memory. */
struct store *store_new(size_t bytes_max);
void store_free(struct store *store);
/* The value of a key, null where there is none; good until the next change. */
const char *store_get(const struct store *store, const char *key, size_t key_len, size_t *len);
/* Sets a key; 0 when the store is full, and then nothing has changed. */
int store_set(struct store *store, const char *key, size_t key_len, const char *value, size_t len);
/* Removes a key; 0 where there is none. */
int store_delete(struct store *store, const char *key, size_t key_len);

#endif
