/* store.c: see store.h. */
#include "store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536

struct entry {
    struct entry *next;
    size_t key_len, len;
    char bytes[]; /* key, then value */
};

struct store {
    size_t bytes, bytes_max;
    struct entry *buckets[BUCKETS];
};

struct store *store_new(size_t bytes_max) {
    struct store *store = (struct store *)calloc(1, sizeof *store);
    if (store) store->bytes_max = bytes_max;
    return store;
}

void store_free(struct store *store) {
    size_t i;
    if (!store) return;
    for (i = 0; i < BUCKETS; i++) {
        while (store->buckets[i]) {
            struct entry *entry = store->buckets[i];
            store->buckets[i] = entry->next;
            free(entry);
        }
    }
    free(store);
}

static size_t cost(size_t key_len, size_t len) { return sizeof(struct entry) + key_len + len; }

/* The link that points at the key's entry, or the end of its chain. */
static struct entry **find(const struct store *store, const char *key, size_t key_len) {
    uint32_t hash = 2166136261u;
    struct entry **link;
    size_t i;
    for (i = 0; i < key_len; i++) hash = (hash ^ (unsigned char)key[i]) * 16777619u;
    link = (struct entry **)&store->buckets[(hash ^ hash >> 16) % BUCKETS];
    while (*link && ((*link)->key_len != key_len || memcmp((*link)->bytes, key, key_len) != 0)) link = &(*link)->next;
    return link;
}

const char *store_get(const struct store *store, const char *key, size_t key_len, size_t *len) {
    struct entry *entry = *find(store, key, key_len);
    *len = entry ? entry->len : 0;
    return entry ? entry->bytes + key_len : NULL;
}

int store_set(struct store *store, const char *key, size_t key_len, const char *value, size_t len) {
    struct entry **link = find(store, key, key_len), *old = *link, *made;
    size_t freed = old ? cost(old->key_len, old->len) : 0;
    if (store->bytes - freed + cost(key_len, len) > store->bytes_max) return 0;
    made = (struct entry *)malloc(cost(key_len, len));
    if (!made) return 0;
    made->next = old ? old->next : NULL;
    made->key_len = key_len;
    made->len = len;
    if (key_len) memcpy(made->bytes, key, key_len);
    if (len) memcpy(made->bytes + key_len, value, len);
    store->bytes += cost(key_len, len) - freed;
    *link = made;
    free(old);
    return 1;
}

int store_delete(struct store *store, const char *key, size_t key_len) {
    struct entry **link = find(store, key, key_len), *entry = *link;
    if (!entry) return 0;
    *link = entry->next;
    store->bytes -= cost(entry->key_len, entry->len);
    free(entry);
    return 1;
}
