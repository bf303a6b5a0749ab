/* A growing array in an arena. `Vec(int)` is a type; elements are `v.at[i]`, their number `v.count`. */
#ifndef TG_VEC_H
#define TG_VEC_H

#include "ir/base/arena.h"

#define Vec(type)                \
    struct {                     \
        type *at;                \
        uint32_t count, capacity; \
    }

/* Appends `value`. */
#define tg_push(arena, vec, ...)                                                                                  \
    do {                                                                                                          \
        if ((vec)->count == (vec)->capacity)                                                                      \
            (vec)->at = tg_vec_grow((arena), (vec)->at, &(vec)->capacity, sizeof *(vec)->at);                     \
        (vec)->at[(vec)->count++] = __VA_ARGS__;                                                                  \
    } while (0)

static inline void *tg_vec_grow(Arena *arena, void *at, uint32_t *capacity, size_t element) {
    uint32_t grown = *capacity ? *capacity * 2 : 8;
    at = tg_arena_grow(arena, at, *capacity * element, grown * element);
    *capacity = grown;
    return at;
}

#endif
