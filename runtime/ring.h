/* A lock-free ring of records of doubles, from one producer thread to one consumer thread: how a step hands out its
   fields without a system call. */
#ifndef TG_RING_H
#define TG_RING_H

#include "ir/base/arena.h"

#include <stdatomic.h>

typedef struct Ring {
    double *slots;
    uint32_t width;    /* doubles of a record */
    uint32_t capacity; /* records; a power of two */
    atomic_uint_fast64_t written;
    char apart[64]; /* the two counters lie in lines of their own */
    atomic_uint_fast64_t taken;
} Ring;

/* `capacity` is rounded up to a power of two. */
void tg_ring_init(Ring *ring, Arena *arena, uint32_t width, uint32_t capacity);
/* false: the ring is full, nothing was written. */
bool tg_ring_push(Ring *ring, const double *record);
/* false: the ring is empty. */
bool tg_ring_pop(Ring *ring, double *record);

#endif
