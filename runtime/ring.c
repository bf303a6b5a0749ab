#include "runtime/ring.h"

#include <string.h>

void tg_ring_init(Ring *ring, Arena *arena, uint32_t width, uint32_t capacity) {
    ring->width = width;
    ring->capacity = 1;
    while (ring->capacity < capacity)
        ring->capacity *= 2;
    ring->slots = TG_ALLOC(arena, double, (size_t)ring->capacity *width);
    atomic_init(&ring->written, 0);
    atomic_init(&ring->taken, 0);
}

static double *slot(const Ring *ring, uint64_t index) {
    return ring->slots + (size_t)(index & (ring->capacity - 1)) * ring->width;
}

bool tg_ring_push(Ring *ring, const double *record) {
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    if (written - atomic_load_explicit(&ring->taken, memory_order_acquire) == ring->capacity)
        return false;
    memcpy(slot(ring, written), record, ring->width * sizeof *record);
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
    return true;
}

bool tg_ring_pop(Ring *ring, double *record) {
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (atomic_load_explicit(&ring->written, memory_order_acquire) == taken)
        return false;
    memcpy(record, slot(ring, taken), ring->width * sizeof *record);
    atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
    return true;
}
