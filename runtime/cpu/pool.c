#include "runtime/cpu/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long a thread without work stays awake: a sleeper costs tens of microseconds to wake. */
enum { SPIN_NANOSECONDS = 50000, PAUSES_PER_LOOK = 64, CACHE_LINE = 64 };

typedef struct PoolThread {
    TgPool *pool;
    pthread_t handle;
    int index, core; /* core -1: not bound */
} PoolThread;

struct TgPool {
    int threads, started;
    bool spins, bound;
    bool ending;
    cpu_set_t callers_mask;
    PoolThread *workers; /* [threads]; 0 is unused: the caller */
    void (*enter)(void);
    TgPoolTask *task;
    void *context;
    int64_t count;
    const TgWatch *watch;
    _Alignas(CACHE_LINE) _Atomic uint32_t round;    /* counts the loops; workers wait for it to change */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers; /* workers that wait in the kernel, or are about to */
    _Alignas(
        CACHE_LINE) _Atomic uint32_t pending; /* workers that have not finished this round; the caller waits for 0 */
    _Atomic uint32_t caller_sleeps;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int threads) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* True once the word is no longer `seen`; false after the time of spinning. */
static bool spin_while(_Atomic uint32_t *word, uint32_t seen) {
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen)
                return true;
            pause_core();
        }
        int64_t now = tg_nanoseconds();
        if (end == 0)
            end = now + SPIN_NANOSECONDS;
        else if (now >= end)
            return false;
    }
}

static int64_t share_of(const TgPool *pool, int thread) { return (pool->count * thread + pool->threads - 1) / pool->threads; }

static void run_share(const TgPool *pool, int thread) {
    int64_t first = share_of(pool, thread), last = share_of(pool, thread + 1);
    if (first >= last)
        return;
    if (pool->watch == NULL) {
        pool->task(pool->context, thread, first, last);
        return;
    }
    int64_t begin = tg_nanoseconds();
    pool->task(pool->context, thread, first, last);
    pool->watch->ran(pool->watch->context, thread, begin, tg_nanoseconds());
}

static void bind_to(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static uint32_t wait_for_round(TgPool *pool, uint32_t done) {
    if (pool->spins && spin_while(&pool->round, done))
        return atomic_load_explicit(&pool->round, memory_order_acquire);
    atomic_fetch_add(&pool->sleepers, 1);
    uint32_t round;
    while ((round = atomic_load(&pool->round)) == done)
        futex_wait(&pool->round, done);
    atomic_fetch_sub(&pool->sleepers, 1);
    return round;
}

static void *worker_main(void *argument) {
    PoolThread *self = argument;
    TgPool *pool = self->pool;
    if (self->core >= 0)
        bind_to(self->core);
    if (pool->enter)
        pool->enter();
    for (uint32_t done = 0;;) {
        done = wait_for_round(pool, done);
        bool ending = pool->ending;
        if (!ending)
            run_share(pool, self->index);
        if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->caller_sleeps))
            futex_wake(&pool->pending, 1);
        if (ending)
            return NULL;
    }
}

static void begin_round(TgPool *pool) {
    atomic_store_explicit(&pool->pending, (uint32_t)pool->started, memory_order_relaxed);
    atomic_fetch_add(&pool->round, 1);
    if (atomic_load(&pool->sleepers) > 0)
        futex_wake(&pool->round, pool->started);
}

static void finish_round(TgPool *pool) {
    uint32_t left;
    while ((left = atomic_load_explicit(&pool->pending, memory_order_acquire)) != 0) {
        if (pool->spins && spin_while(&pool->pending, left))
            continue;
        atomic_store(&pool->caller_sleeps, 1);
        if ((left = atomic_load(&pool->pending)) != 0)
            futex_wait(&pool->pending, left);
        atomic_store(&pool->caller_sleeps, 0);
    }
}

void tg_pool_run(TgPool *pool, TgPoolTask *task, void *context, int64_t count) {
    pool->task = task;
    pool->context = context;
    pool->count = count;
    begin_round(pool);
    run_share(pool, 0);
    finish_round(pool);
}

void tg_pool_watch(TgPool *pool, const TgWatch *watch) { pool->watch = watch; }

int tg_pool_cores(void) {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
        return CPU_COUNT(&mask);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static void choose_cores(TgPool *pool) {
    pool->spins = pool->threads <= tg_pool_cores();
    pool->bound = pool->spins && sched_getaffinity(0, sizeof pool->callers_mask, &pool->callers_mask) == 0;
    int core = -1;
    for (int i = 0; i < pool->threads; i++) {
        pool->workers[i] = (PoolThread){.pool = pool, .index = i, .core = -1};
        if (!pool->bound)
            continue;
        do
            core++;
        while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &pool->callers_mask));
        pool->workers[i].core = core;
    }
}

Status tg_pool_open(Arena *arena, int threads, void (*enter)(void), TgPool **out, char *why, size_t why_bytes) {
    char *memory = tg_arena_alloc(arena, sizeof(TgPool) + CACHE_LINE);
    TgPool *pool = (TgPool *)(void *)(memory + (CACHE_LINE - (uintptr_t)memory % CACHE_LINE) % CACHE_LINE);
    pool->threads = threads;
    pool->workers = TG_ALLOC(arena, PoolThread, threads);
    pool->enter = enter;
    choose_cores(pool);
    for (int i = 1; i < threads; i++) {
        int error = pthread_create(&pool->workers[i].handle, NULL, worker_main, &pool->workers[i]);
        if (error) {
            snprintf(why, why_bytes, "cannot start thread %d of %d: %s; set TG_THREADS to use fewer", i + 1, threads,
                     strerror(error));
            tg_pool_close(pool);
            return TG_MEMORY;
        }
        pool->started++;
    }
    if (pool->bound && threads > 1)
        bind_to(pool->workers[0].core);
    *out = pool;
    return TG_OK;
}

void tg_pool_close(TgPool *pool) {
    if (!pool)
        return;
    pool->ending = true;
    begin_round(pool);
    for (int i = 1; i <= pool->started; i++)
        (void)pthread_join(pool->workers[i].handle, NULL);
    if (pool->bound)
        (void)sched_setaffinity(0, sizeof pool->callers_mask, &pool->callers_mask);
}
