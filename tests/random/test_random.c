/* Random graphs (docs/testing.md): functions of many operations, and models that train.

   TG_SEED=N: one seed alone, and on the CPU. TG_SEEDS=FIRST-LAST: those, the CPU on some. TG_LONG=1: 100,000 executions
   from the first seed on. Each prints a report. A failure writes random-N.tgir. */
#include "trial.h"

#include <CUnit/Basic.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXECUTIONS = 3000, LONG_EXECUTIONS = 100000, MOST_FAILURES = 5 };

static volatile uint64_t seed_at_work;

static void on_crash(int number) {
    char text[96];
    int length = snprintf(text, sizeof text, "\nseed %llu: signal %d\n", (unsigned long long)seed_at_work, number);
    if (write(STDERR_FILENO, text, (size_t)length) != length)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- a group ---- */

/* Two of three seeds are functions. */
static void grow(Suite *s, Trial *t, uint64_t seed) {
    *t = (Trial){.seed = seed, .is_model = seed % 3 == 0};
    seed_at_work = seed;
    (t->is_model ? tg_random_model : tg_random_graph)(&s->arena, seed, &t->r);
    t->base = t->r.graph;
    s->report->graphs++;
    s->report->models += t->is_model;
    trial_note(t->base, s->report->ops);
}

static void check(Suite *s, Trial *t, bool cpu) {
    bool good = t->is_model ? trial_check_model(s, t) : trial_check_function(s, t);
    if (good && cpu)
        (t->is_model ? trial_lower_model : trial_lower_function)(s, t);
}

static void run_compiled(Suite *s, uint32_t count) {
    if (backend_compile(&s->arena, &s->diags, &s->all, &s->code) != TG_OK) {
        trial_complain(s, &s->trials[0], "one of %u graphs from this one does not compile", count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const Trial *t = &s->trials[i];
        seed_at_work = t->seed;
        if (!t->lowered)
            continue;
        (t->is_model ? trial_run_model : trial_run_function)(s, t);
        trial_note(t->base, s->report->cpu_ops);
    }
    backend_free(&s->code);
}

/* What is compiled together is in memory together. */
static void run_together(Report *report, uint64_t first, uint32_t count, bool cpu) {
    Suite *s = calloc(1, sizeof *s);
    static const Sources sources;
    tg_arena_init(&s->arena, tg_host());
    if (setjmp(s->arena.guard))
        CU_FAIL_FATAL("out of memory");
    tg_diags_init(&s->diags, &s->arena, &sources, NULL);
    s->messages = tg_str(&s->arena);
    s->diags.capture = &s->messages;
    s->report = report;
    for (uint32_t i = 0; i < count; i++) {
        grow(s, &s->trials[i], first + i);
        check(s, &s->trials[i], cpu);
    }
    if (s->all.kernels.count)
        run_compiled(s, count);
    tg_arena_deinit(&s->arena);
    free(s);
    report->last = first + count - 1;
}

static void run_group(Report *report, uint64_t first, uint32_t count, bool cpu) {
    for (uint32_t i = 0; !cpu && i < count; i++)
        run_together(report, first + i, 1, false);
    if (cpu)
        run_together(report, first, count, true);
}

/* ---- many groups ---- */

static const char *kind_name(int kind) {
    static const char *const names[] = {"no passes", "all passes", "random orders", "differences",
                                        "fused",     "unfused",    "two threads"};
    return kind < PASS_COUNT ? tg_pass(kind)->name : names[kind - PASS_COUNT];
}

static void print_kinds(const Report *r, const char *title, int first, int last) {
    printf("  %-10s", title);
    for (int kind = first; kind <= last; kind++)
        printf("%s %s %llu", kind == first ? "" : ",", kind_name(kind), (unsigned long long)r->by[kind]);
    printf("\n");
}

static void print_report(const Report *r) {
    printf("\n  seeds %llu-%llu: %llu graphs, %llu of them models (%llu of their %llu steps updated), %llu executions, "
           "%llu failures, %.0f s\n",
           (unsigned long long)r->first, (unsigned long long)r->last, (unsigned long long)r->graphs,
           (unsigned long long)r->models, (unsigned long long)r->open_steps, (unsigned long long)r->steps,
           (unsigned long long)r->executions, (unsigned long long)r->failures, r->seconds);
    print_kinds(r, "evaluator:", KIND_PLAIN, KIND_DIFFERENCES);
    print_kinds(r, "passes:", 0, PASS_COUNT - 1);
    print_kinds(r, "CPU:", KIND_FUSED, KIND_THREADS);
    printf("  mixed:     bf16 %llu, f16 %llu, with %llu casts; %llu steps overflowed\n", (unsigned long long)r->mixed[0],
           (unsigned long long)r->mixed[1], (unsigned long long)r->casts, (unsigned long long)r->overflows);
    printf("  gradients along %llu directions near differences; %llu graphs with merged dots\n", (unsigned long long)r->directions,
           (unsigned long long)r->merges);
}

static void print_rare(const Report *r) {
    printf("  rare:     ");
    for (int op = 0; op < OP_COUNT; op++)
        if (r->ops[op] < r->graphs / 64)
            printf(" %s %llu", tg_op((Op)op)->name, (unsigned long long)r->ops[op]);
    printf("\n");
}

/* Each operation of ir/ops.def is in some graph, and all but those that passes replace are on the CPU: attention over as few positions
   as here is dots there (tests/ops/test_attention.c has longer ones). */
static void check_operations(const Report *r) {
    for (int op = 0; op < OP_COUNT; op++) {
        bool only_in_kernels = op == OP_call || op == OP_result,
             attention = op >= OP_attention && op <= OP_attention_dv,
             replaced = attention || (strchr(tg_op((Op)op)->levels, 'K') == NULL && strchr(tg_op((Op)op)->levels, 'B') == NULL);
        bool missing = (r->ops[op] == 0 && !only_in_kernels) || (r->cpu_ops[op] == 0 && !only_in_kernels && !replaced);
        if (missing)
            printf("\n  no graph has '%s'%s", tg_op((Op)op)->name, r->ops[op] ? " on the CPU" : "");
        CU_ASSERT_FALSE(missing);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Until seed `last` or so many executions. In CI two of three groups run on the CPU; of a long run one of nine does. */
static void run_seeds(Report *report, uint64_t last, uint64_t executions, int cpu_of) {
    double start = seconds();
    for (uint64_t first = report->first; first <= last && report->executions < executions; first += TOGETHER) {
        uint64_t left = last - first + 1, group = (first - 1) / TOGETHER;
        bool cpu = cpu_of == 3 ? group % 3 != 1 : group % (uint64_t)cpu_of == 0;
        run_group(report, first, left < TOGETHER ? (uint32_t)left : TOGETHER, cpu);
        report->seconds = seconds() - start;
        if (cpu_of != 3)
            fprintf(stderr, "\rseed %llu, %llu executions, %llu failures", (unsigned long long)report->last,
                    (unsigned long long)report->executions, (unsigned long long)report->failures);
        if (report->failures >= MOST_FAILURES)
            break;
    }
    print_report(report);
    print_rare(report);
    fflush(stdout);
    CU_ASSERT_EQUAL(report->failures, 0);
}

static void test_graphs(void) {
    const char *one = getenv("TG_SEED"), *range = getenv("TG_SEEDS");
    Report report = {.first = 1};
    if (one) {
        report.first = strtoull(one, NULL, 10);
        run_group(&report, report.first, 1, true);
        print_report(&report);
        CU_ASSERT_EQUAL(report.failures, 0);
        return;
    }
    unsigned long long first = 1, last = UINT64_MAX;
    if (range) {
        CU_ASSERT_EQUAL_FATAL(sscanf(range, "%llu-%llu", &first, &last), 2);
        report.first = first;
        run_seeds(&report, last, UINT64_MAX, 9);
        return;
    }
    bool is_long = getenv("TG_LONG") != NULL;
    uint64_t wanted = is_long ? LONG_EXECUTIONS : EXECUTIONS;
    run_seeds(&report, last, wanted, is_long ? 9 : 3);
    CU_ASSERT_TRUE(report.executions >= wanted);
    CU_ASSERT_TRUE(report.merges > 0 && report.mixed[0] > 0 && report.mixed[1] > 0);
    check_operations(&report);
}

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* an arena's pages are the next one's */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    signal(SIGFPE, on_crash);
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("random graphs", NULL, NULL);
    CU_add_test(suite, "graphs", test_graphs);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
