/* A hash map from byte strings to 64-bit values, in an arena; nothing is ever removed. Keys are copied. */
#ifndef TG_MAP_H
#define TG_MAP_H

#include "ir/base/arena.h"

typedef struct MapSlot MapSlot;

typedef struct Map {
    Arena *arena;
    MapSlot *slots;
    uint32_t count, capacity; /* capacity is 0 or a power of two */
} Map;

static inline Map tg_map(Arena *arena) { return (Map){.arena = arena}; }

/* Forgets all keys; the room stays for the next ones, unless it is much. */
void tg_map_clear(Map *map);
/* The value's place, or NULL. */
uint64_t *tg_map_find(const Map *map, const void *key, size_t bytes);
/* The value's place, made (as 0) if the key is new; `*is_new` may be NULL. */
uint64_t *tg_map_put(Map *map, const void *key, size_t bytes, bool *is_new);

/* 64-bit hash of bytes; stable over machines and versions, since random keys and cache names are made of it. */
uint64_t tg_hash(const void *data, size_t bytes, uint64_t seed);

#endif
