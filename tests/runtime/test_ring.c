#include "runtime/ring.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <pthread.h>
#include <sched.h>

enum { RECORDS = 20000 };

static void *produce(void *argument) {
    Ring *ring = argument;
    for (int i = 0; i < RECORDS; i++) {
        double record[3] = {i, 2.0 * i, 3.0 * i};
        while (!tg_ring_push(ring, record))
            sched_yield();
    }
    return NULL;
}

static void threads(Scratch *scratch) {
    Ring ring;
    pthread_t thread;
    tg_ring_init(&ring, scratch->arena, 3, 5);
    CU_ASSERT_EQUAL(ring.capacity, 8);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, produce, &ring), 0);
    int wrong = 0;
    for (int i = 0; i < RECORDS;) {
        double record[3];
        if (!tg_ring_pop(&ring, record)) {
            sched_yield();
            continue;
        }
        wrong += record[0] != i || record[1] != 2.0 * i || record[2] != 3.0 * i;
        i++;
    }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(wrong, 0);
}

static void full_and_empty(Scratch *scratch) {
    Ring ring;
    double record = 1, back = 0;
    tg_ring_init(&ring, scratch->arena, 1, 2);
    CU_ASSERT(!tg_ring_pop(&ring, &back));
    CU_ASSERT(tg_ring_push(&ring, &record));
    record = 2;
    CU_ASSERT(tg_ring_push(&ring, &record));
    CU_ASSERT(!tg_ring_push(&ring, &record));
    CU_ASSERT(tg_ring_pop(&ring, &back) && back == 1);
    CU_ASSERT(tg_ring_push(&ring, &record));
    CU_ASSERT(tg_ring_pop(&ring, &back) && back == 2);
}

static void run_threads(void) { scratch_run(threads); }
static void run_full_and_empty(void) { scratch_run(full_and_empty); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("ring", NULL, NULL);
    CU_add_test(suite, "one thread writes, another reads", run_threads);
    CU_add_test(suite, "full and empty", run_full_and_empty);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
