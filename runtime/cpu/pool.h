/* A pool of threads for loops whose split is fixed. The thread that calls tg_pool_run is thread 0 and works too.
   Threads are bound to the cores of the process's affinity mask, the caller to the first; with more threads than cores
   nothing is bound and nobody spins. No two calls of tg_pool_run at a time. */
#ifndef TG_CPU_POOL_H
#define TG_CPU_POOL_H

#include "ir/base/arena.h"
#include "ir/base/status.h"
#include "runtime/clock.h"

typedef struct TgPool TgPool;

/* Works on [first, last) of the loop. */
typedef void TgPoolTask(void *context, int thread, int64_t first, int64_t last);

/* Cores that this process may use, at least 1. */
int tg_pool_cores(void);

/* `enter` (may be NULL) runs once on every thread but the caller's. Memory from `arena`. `why` (text of `why_bytes`) on
 * failure. */
TG_CHECKED Status tg_pool_open(Arena *arena, int threads, void (*enter)(void), TgPool **pool, char *why,
                               size_t why_bytes);
/* Ends the threads and gives the caller its old affinity back. NULL is none. */
void tg_pool_close(TgPool *pool);

/* Runs the loop [0, count): thread t of T takes [count * t / T, count * (t + 1) / T), both rounded up, so that the caller always has some of
   it. Returns when all is done. */
void tg_pool_run(TgPool *pool, TgPoolTask *task, void *context, int64_t count);
/* NULL: nobody is told, and no clock is asked. Not while a loop runs; `watch` outlives its use. */
void tg_pool_watch(TgPool *pool, const TgWatch *watch);

#endif
