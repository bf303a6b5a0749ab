/* The clock of everything that is timed (it only goes forward), and who is told of times. */
#ifndef TG_CLOCK_H
#define TG_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t tg_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline double tg_seconds(void) { return 1e-9 * (double)tg_nanoseconds(); }

/* Told on each thread which share of a loop it has run, and from when until when, in nanoseconds. */
typedef struct TgWatch {
    void *context;
    void (*ran)(void *context, int thread, int64_t begin, int64_t end);
    /* Likewise of its part of a step of the plan that other threads need not have come to. */
    void (*ran_link)(void *context, int thread, uint32_t step, int64_t begin, int64_t end);
} TgWatch;

#endif
