/* Times every kernel whose buffers are beyond the cache against a copy of the same streams:

       tgc compile MODEL.tg --emit=kernel | kernels [--threads=N]

   One line of JSON a kernel. The step runs in the order of its plan, so that a kernel works on the values that it is made for;
   where it stands, it and its peers take turns. A peer reads as many streams as the kernel reads and writes as many as it writes,
   in the kernel's own buffers, 16 numbers at a time on as many threads; one peer stores through the cache, one past it. */
#include "bench/jit.h"

#include "runtime/cpu/pool.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { ROUNDS = 15, MOST_STREAMS = 6, LANES = 16, UNROLLED = 4 };
static const int64_t LEAST_BYTES = 256000000; /* of all buffers of a kernel */

static const PlanFuncKind kinds[] = {PLAN_PRE, PLAN_MICRO, PLAN_TAIL, PLAN_EVAL_MICRO};

typedef float Lanes __attribute__((vector_size(4 * LANES)));

/* Buffers of equal size; those that are read and written come first in both lists. */
typedef struct Streams {
    float *read[MOST_STREAMS], *written[MOST_STREAMS];
    int reads, writes;
    int64_t count; /* vectors */
    Lanes *sink;   /* per thread */
} Streams;

static inline Lanes load(const float *from) {
    Lanes value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void store(float *to, Lanes value, bool past_cache) {
#if defined(__AVX512F__)
    if (past_cache) {
        _mm512_stream_ps(to, (__m512)value);
        return;
    }
#else
    (void)past_cache;
#endif
    memcpy(to, &value, sizeof value);
}

/* Result j is operand j, or the first again; the first result is the sum of the operands that have no result. */
static inline __attribute__((always_inline)) void move(const Streams *s, int thread, int64_t first, int64_t last, int reads,
                                                       int writes, bool past_cache) {
    Lanes sink = {0};
    for (int64_t at = first * UNROLLED * LANES; at < last * UNROLLED * LANES; at += UNROLLED * LANES)
        for (int u = 0; u < UNROLLED; u++) {
            Lanes value[MOST_STREAMS] = {{0}}, rest = {0};
            for (int i = 0; i < reads; i++)
                value[i] = load(s->read[i] + at + u * LANES);
            for (int i = writes > 0 ? writes : 0; i < reads; i++)
                rest += value[i];
            if (writes == 0)
                sink += rest;
            for (int i = 0; i < writes; i++)
                store(s->written[i] + at + u * LANES, i == 0 ? value[0] + rest : value[i < reads ? i : 0], past_cache);
        }
    s->sink[thread] = sink;
}

#define MOVE(r, w)                                                                                                     \
    static void move_##r##w(void *context, int thread, int64_t first, int64_t last) {                                  \
        move(context, thread, first, last, r, w, false);                                                               \
    }                                                                                                                  \
    static void move_past_##r##w(void *context, int thread, int64_t first, int64_t last) {                             \
        move(context, thread, first, last, r, w, true);                                                                \
    }
#define EACH_READS(X, w) X(0, w) X(1, w) X(2, w) X(3, w) X(4, w) X(5, w) X(6, w)
#define EACH_SHAPE(X) EACH_READS(X, 0) EACH_READS(X, 1) EACH_READS(X, 2) EACH_READS(X, 3) EACH_READS(X, 4)
EACH_SHAPE(MOVE)
enum { MOST_WRITES = 4 };

static TgPoolTask *const movers[MOST_STREAMS + 1][MOST_WRITES + 1][2] = {
#define ENTRY(r, w) [r][w] = {move_##r##w, move_past_##r##w},
    EACH_SHAPE(ENTRY)
#undef ENTRY
};

typedef struct Bench {
    TgExec *exec;
    const Lowered *program;
    TgPool *pool;
    Lanes *sink;
} Bench;

static void swap(float **list, int a, int b) {
    float *kept = list[a];
    list[a] = list[b];
    list[b] = kept;
}

/* Buffers of at least half the largest are its streams. False: the kernel is small, or has more streams than a peer can have. */
static bool streams_of(const Bench *bench, const PlanStep *step, Streams *s) {
    const TgPlan *plan = bench->program->plan;
    const PlanOperand *operands = plan->step_buffers + step->buffer_first;
    int64_t largest = 0, all = 0;
    *s = (Streams){.sink = bench->sink};
    if (step->kind != STEP_KERNEL)
        return false;
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        int64_t bytes = plan->buffers[operands[i].buffer].bytes;
        largest = bytes > largest ? bytes : largest;
        all += bytes;
    }
    s->count = largest / (int64_t)sizeof(Lanes) / UNROLLED;
    const LoopKernel *kernel = bench->program->kernels.at[step->index];
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        float *at = tg_exec_address(bench->exec, operands[i].buffer, 0);
        bool is_output = kernel->buffers.at[i].role == ROLE_OUT;
        if (2 * plan->buffers[operands[i].buffer].bytes < largest)
            continue;
        if (is_output ? s->writes == MOST_WRITES : s->reads == MOST_STREAMS)
            return false;
        if (is_output)
            s->written[s->writes++] = at;
        else
            s->read[s->reads++] = at;
    }
    int both = 0;
    for (int i = 0; i < s->reads; i++)
        for (int j = both; j < s->writes; j++)
            if (s->read[i] == s->written[j]) {
                swap(s->read, i, both);
                swap(s->written, j, both++);
                break;
            }
    return all >= LEAST_BYTES;
}

typedef enum Turn { TURN_KERNEL, TURN_PEER, TURN_PEER_PAST_CACHE, TURNS } Turn;

static double take_turn(const Bench *bench, const PlanFunc *func, Streams *streams, Turn turn) {
    double begin = bench_now();
    if (turn == TURN_KERNEL)
        tg_exec_run(bench->exec, func, 0);
    else
        tg_pool_run(bench->pool, movers[streams->reads][streams->writes][turn == TURN_PEER_PAST_CACHE], streams, streams->count);
    return (bench_now() - begin) / 1e6;
}

static void print_times(const char *name, const double *times) {
    printf(", \"%s\": [", name);
    for (int i = 0; i < ROUNDS; i++)
        printf("%s%.4g", i ? ", " : "", times[i]);
    printf("]");
}

/* The kernel goes last: later steps read what it writes. */
static void compare(const Bench *bench, const PlanFunc *func, const PlanStep *step, Streams *streams) {
    double times[TURNS][ROUNDS];
    for (int round = -1; round < ROUNDS; round++)
        for (int turn = TURNS - 1; turn >= 0; turn--) {
            double time = take_turn(bench, func, streams, (Turn)turn);
            if (round >= 0)
                times[turn][round] = time;
        }
    printf("{\"function\": \"%s\", \"label\": \"%s\", \"line\": %" PRIu32 ", \"reads\": %d, \"writes\": %d, \"bytes\": %.0f",
           func->name, step->label, step->line_count ? step->lines[0].line : 0, streams->reads, streams->writes,
           (double)streams->count * UNROLLED * sizeof(Lanes) * (streams->reads + streams->writes));
    print_times("kernel_ms", times[TURN_KERNEL]);
    print_times("peer_ms", times[TURN_PEER]);
    print_times("peer_past_cache_ms", times[TURN_PEER_PAST_CACHE]);
    printf("}\n");
    fflush(stdout);
}

static void walk(const Bench *bench, const PlanFunc *func) {
    for (uint32_t i = 0; i < func->step_count; i++) {
        const PlanStep *step = &bench->program->plan->steps[func->step_first + i];
        PlanFunc one = *func;
        one.step_first += i;
        one.step_count = 1;
        Streams streams;
        if (streams_of(bench, step, &streams))
            compare(bench, &one, step, &streams);
        else
            tg_exec_run(bench->exec, &one, 0);
    }
}

static Status kernels(Arena *arena, TgExec *exec, const Lowered *program) {
    Bench bench = {.exec = exec, .program = program};
    int threads = tg_exec_threads(exec);
    char why[256];
    /* The plan's pool has bound this thread to a core; the peers' pool binds its threads likewise. */
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        CPU_SET(i, &all);
    (void)sched_setaffinity(0, sizeof all, &all);
    bench.sink = TG_ALLOC(arena, Lanes, threads + 1);
    bench.sink = (Lanes *)(void *)((char *)bench.sink + (sizeof(Lanes) - (uintptr_t)bench.sink % sizeof(Lanes)) % sizeof(Lanes));
    Status status = tg_pool_open(arena, threads, NULL, &bench.pool, why, sizeof why);
    if (status != TG_OK) {
        fprintf(stderr, "kernels: error: %s\n", why);
        return status;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t i = 0; i < program->plan->func_count; i++)
            if (program->plan->funcs[i].kind == kinds[k])
                walk(&bench, &program->plan->funcs[i]);
    tg_pool_close(bench.pool);
    return TG_OK;
}

int main(int argc, char **argv) { return bench_jit_main(argc, argv, "kernels", kernels); }
