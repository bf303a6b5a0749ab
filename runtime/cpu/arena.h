/* The one block of memory that holds all buffers of a plan: aligned, in huge pages, touched by the threads that will
 * use it. */
#ifndef TG_CPU_ARENA_H
#define TG_CPU_ARENA_H

#include "runtime/cpu/pool.h"

typedef struct CpuArena {
    const TgHost *host;
    void *block; /* as the host gave it */
    char *memory;
    size_t bytes; /* asked for, rounded up, and a margin that no buffer may touch */
    bool poison;
} CpuArena;

/* Filled with zeros, or with bytes 255 if `poison`. `pool` may be NULL. TG_MEMORY: there is none. */
TG_CHECKED Status tg_cpu_arena_open(CpuArena *arena, const TgHost *host, TgPool *pool, size_t bytes, bool poison);
void tg_cpu_arena_close(CpuArena *arena);

/* One past the highest byte that is no longer 255; 0 if the arena was not poisoned. */
size_t tg_cpu_arena_touched(const CpuArena *arena);

#endif
