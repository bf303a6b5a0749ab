#include "ir/base/map.h"

#include <string.h>

struct MapSlot {
    const void *key; /* NULL: free */
    size_t bytes;
    uint64_t hash, value;
};

/* FNV-1a, with a finishing mix that spreads its weak low bits (the mix is MurmurHash3's 64-bit one). */
uint64_t tg_hash(const void *data, size_t bytes, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static MapSlot *slot_of(MapSlot *slots, uint32_t capacity, const void *key, size_t bytes, uint64_t hash) {
    for (uint32_t i = (uint32_t)hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        MapSlot *slot = &slots[i];
        if (slot->key == NULL || (slot->hash == hash && slot->bytes == bytes && memcmp(slot->key, key, bytes) == 0))
            return slot;
    }
}

uint64_t *tg_map_find(const Map *map, const void *key, size_t bytes) {
    if (map->capacity == 0)
        return NULL;
    MapSlot *slot = slot_of(map->slots, map->capacity, key, bytes, tg_hash(key, bytes, 0));
    return slot->key ? &slot->value : NULL;
}

static void rehash(Map *map) {
    uint32_t capacity = map->capacity ? map->capacity * 2 : 16;
    MapSlot *slots = TG_ALLOC(map->arena, MapSlot, capacity);
    for (uint32_t i = 0; i < map->capacity; i++) {
        const MapSlot *old = &map->slots[i];
        if (old->key)
            *slot_of(slots, capacity, old->key, old->bytes, old->hash) = *old;
    }
    map->slots = slots;
    map->capacity = capacity;
}

uint64_t *tg_map_put(Map *map, const void *key, size_t bytes, bool *is_new) {
    if (2 * (map->count + 1) > map->capacity)
        rehash(map);
    uint64_t hash = tg_hash(key, bytes, 0);
    MapSlot *slot = slot_of(map->slots, map->capacity, key, bytes, hash);
    bool added = slot->key == NULL;
    if (added) {
        *slot = (MapSlot){.key = tg_arena_str(map->arena, key, bytes), .bytes = bytes, .hash = hash};
        map->count++;
    }
    if (is_new)
        *is_new = added;
    return &slot->value;
}

void tg_map_clear(Map *map) {
    enum { KEPT = 256 };
    if (map->capacity > KEPT)
        *map = tg_map(map->arena);
    else if (map->count > 0)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}
