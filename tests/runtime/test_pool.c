#include "runtime/cpu/pool.h"

#include <CUnit/Basic.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 10000 };

typedef struct Marks {
    int counts[MOST];
    int threads[MOST];
} Marks;

static void mark(void *context, int thread, int64_t first, int64_t last) {
    Marks *marks = context;
    for (int64_t i = first; i < last; i++) {
        marks->counts[i]++;
        marks->threads[i] = thread;
    }
}

static void check_pool(int threads) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("no memory");
    }
    TgPool *pool;
    char why[256];
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    CU_ASSERT_EQUAL_FATAL(tg_pool_open(&arena, threads, NULL, &pool, why, sizeof why), TG_OK);
    Marks *marks = TG_ALLOC(&arena, Marks, 1);
    static const int64_t counts[] = {0, 1, 2, 3, 5, 64, 9999};
    int rounds = 0, wrong = 0;
    for (int repeat = 0; repeat < 30; repeat++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++, rounds++) {
            memset(marks, 0, sizeof *marks);
            tg_pool_run(pool, mark, marks, counts[c]);
            for (int64_t i = 0; i < MOST; i++) {
                int64_t t = marks->threads[i];
                wrong += marks->counts[i] != (i < counts[c]);
                wrong += i < counts[c] && (i < (counts[c] * t + threads - 1) / threads || i >= (counts[c] * (t + 1) + threads - 1) / threads);
            }
            if (repeat == 3)
                usleep(300); /* long enough for the workers to fall asleep */
        }
    CU_ASSERT_EQUAL(wrong, 0);
    tg_pool_close(pool);
    sched_getaffinity(0, sizeof after, &after);
    CU_ASSERT(CPU_EQUAL(&before, &after));
    tg_arena_deinit(&arena);
}

static void every_element_once(void) {
    for (int threads = 1; threads <= 4; threads++)
        check_pool(threads);
}

static atomic_int entered;
static void enter(void) { atomic_fetch_add(&entered, 1); }
static void nothing(void *context, int thread, int64_t first, int64_t last) {
    (void)context, (void)thread, (void)first, (void)last;
}

static void enter_runs_on_each_worker(void) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("no memory");
    }
    TgPool *pool;
    char why[256];
    CU_ASSERT_EQUAL_FATAL(tg_pool_open(&arena, 3, enter, &pool, why, sizeof why), TG_OK);
    tg_pool_run(pool, nothing, NULL, 3);
    CU_ASSERT_EQUAL(atomic_load(&entered), 2);
    tg_pool_close(pool);
    tg_arena_deinit(&arena);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("pool", NULL, NULL);
    CU_add_test(suite, "every element once, in its thread's share", every_element_once);
    CU_add_test(suite, "enter runs on each worker", enter_runs_on_each_worker);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
