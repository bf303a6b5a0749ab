#include "tests/runtime/plan_maker.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4096, TILE = 64 };

static void with_arena(void (*body)(Arena *arena)) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("no memory");
    }
    body(&arena);
    tg_arena_deinit(&arena);
}

/* out = in * in + rows, tile by tile. */
static void square(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    const float *in = buffers[0];
    float *out = buffers[1];
    for (int64_t i = first * TILE; i < last * TILE; i++)
        out[i] = in[i] * in[i] + (float)scalars->rows;
}

/* sum += in, or begins with it where values[0] (lane_start) is 1. */
static void accumulate(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    const float *in = buffers[0];
    float *sum = buffers[1];
    for (int64_t i = first * TILE; i < last * TILE; i++)
        sum[i] = scalars->values[0] != 0 ? in[i] : sum[i] + in[i];
}

static void add_lanes(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)scalars;
    for (int64_t i = first * TILE; i < last * TILE; i++)
        ((float *)buffers[2])[i] = ((float *)buffers[0])[i] + ((float *)buffers[1])[i];
}

static void one_third_of_step(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    *(double *)buffers[0] = scalars->values[0] / 3;
}

static void replay(Arena *arena) {
    for (int threads = 1; threads <= 3; threads++) {
        PlanMaker maker;
        maker_init(&maker, arena);
        uint32_t in = maker_buffer(&maker, PLAN_INPUT, DT_F32, COUNT, 1),
                 out = maker_buffer(&maker, PLAN_TEMP, DT_F32, COUNT, 1);
        uint32_t copy = maker_buffer(&maker, PLAN_OUTPUT, DT_F32, COUNT, 1);
        maker_func(&maker, PLAN_MICRO, "micro");
        maker_kernel(&maker, square, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = in}, {.buffer = out}});
        maker_step(&maker, STEP_COPY, 0, 0, 0, 2, (PlanOperand[]){{.buffer = out}, {.buffer = copy}});
        TgExec *exec = maker_open(&maker, threads, false);
        CU_ASSERT_EQUAL(tg_exec_threads(exec), threads);
        float *input = tg_exec_address(exec, in, 0);
        CU_ASSERT_EQUAL((uintptr_t)input % 64, 0);
        int wrong = 0;
        for (int repeat = 0; repeat < 20; repeat++) {
            for (int i = 0; i < COUNT; i++)
                input[i] = (float)(i + repeat);
            tg_exec_scalars(exec)->rows = repeat;
            tg_exec_run(exec, &maker.funcs.at[0], 0);
            const float *got = tg_exec_address(exec, copy, 0);
            for (int i = 0; i < COUNT; i++)
                wrong += got[i] != input[i] * input[i] + (float)repeat;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        tg_exec_close(exec);
    }
}

/* Part p of 4 takes its time, so that threads come to the steps of a chain at different moments. */
static void slowly(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    volatile int64_t waited = 0;
    while (waited < 20000 * (first % 3))
        waited++;
    square(buffers, scalars, first, last);
}

enum { CHAIN_ROWS = 64, CHAIN_PARTS = 4 };

/* in -> square -> dot of its rows -> square -> square over what the first one wrote. */
static const float *run_chain(Arena *arena, PlanMaker *maker, int threads, bool chained, TgExec **exec) {
    maker_init(maker, arena);
    uint32_t in = maker_buffer(maker, PLAN_INPUT, DT_F32, COUNT, 1), weight = maker_buffer(maker, PLAN_PARAM, DT_F32, COUNT, 1),
             first = maker_buffer(maker, PLAN_TEMP, DT_F32, COUNT, 1), last = maker_buffer(maker, PLAN_OUTPUT, DT_F32, COUNT, 1);
    PlanDot dot = maker_matrix_dot(DT_F32, CHAIN_ROWS, CHAIN_ROWS, CHAIN_ROWS, false, false);
    dot.rows_m = true;
    dot.tile_m = CHAIN_ROWS / CHAIN_PARTS;
    maker_func(maker, PLAN_MICRO, "micro");
    maker_kernel(maker, slowly, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = in}, {.buffer = first}});
    uint32_t product = maker_dot_as_is(maker, dot, first, weight, 0);
    maker_kernel(maker, slowly, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = product}, {.buffer = first}});
    maker_kernel(maker, slowly, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = first}, {.buffer = last}});
    if (chained)
        tg_push(arena, &maker->chains, (PlanChain){.step_count = 4, .parts = CHAIN_PARTS});
    *exec = maker_open(maker, threads, false);
    for (int i = 0; i < COUNT; i++) {
        ((float *)tg_exec_address(*exec, in, 0))[i] = 1 / (float)(1 + i % 61);
        ((float *)tg_exec_address(*exec, weight, 0))[i] = (float)(i % 7 - 3);
    }
    const char *why;
    CU_ASSERT_EQUAL(tg_plan_check(arena, &maker->plan, &why), TG_OK);
    tg_exec_run(*exec, &maker->funcs.at[0], 0);
    return tg_exec_address(*exec, last, 0);
}

static void chains(Arena *arena) {
    PlanMaker maker;
    TgExec *plain, *exec;
    const float *expected = run_chain(arena, &maker, 1, false, &plain);
    CU_ASSERT_NOT_EQUAL(expected[COUNT - 1], 0);
    for (int threads = 1; threads <= 6; threads++) {
        PlanMaker chained;
        const float *got = run_chain(arena, &chained, threads, true, &exec);
        for (int repeat = 0; repeat < 20; repeat++) {
            CU_ASSERT_EQUAL(memcmp(got, expected, COUNT * sizeof *got), 0);
            memset((void *)(uintptr_t)got, 0, COUNT * sizeof *got);
            tg_exec_run(exec, &chained.funcs.at[0], 0);
        }
        tg_exec_run_dots(exec, &chained.funcs.at[0]);
        CU_ASSERT_EQUAL(memcmp(got, expected, COUNT * sizeof *got), 0);
        tg_exec_close(exec);
    }
    tg_exec_close(plain);
}

static void lanes(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t in = maker_buffer(&maker, PLAN_INPUT, DT_F32, COUNT, 1),
             sum = maker_buffer(&maker, PLAN_SUM, DT_F32, COUNT, 2);
    uint32_t out = maker_buffer(&maker, PLAN_OUTPUT, DT_F32, COUNT, 1);
    PlanScalar lane_start = {.name = "lane_start", .class = PLAN_SCALAR_BUILTIN};
    tg_push(arena, &maker.scalars, lane_start);
    maker_func(&maker, PLAN_MICRO, "micro");
    maker_kernel(&maker, accumulate, COUNT / TILE, 0, 2,
                 (PlanOperand[]){{.buffer = in}, {.buffer = sum, .lane = TG_LANE_CURRENT}});
    maker_func(&maker, PLAN_TAIL, "tail");
    maker_kernel(&maker, add_lanes, COUNT / TILE, 0, 3,
                 (PlanOperand[]){{.buffer = sum}, {.buffer = sum, .lane = 1}, {.buffer = out}});
    TgExec *exec = maker_open(&maker, 1, false);
    for (int micro = 0; micro < 4; micro++) {
        float *input = tg_exec_address(exec, in, 0);
        for (int i = 0; i < COUNT; i++)
            input[i] = (float)((micro + 1) * (i + 1));
        tg_exec_values(exec)[0] = micro % 2 == 0;
        tg_exec_run(exec, &maker.funcs.at[0], micro / 2);
    }
    CU_ASSERT_EQUAL(((float *)tg_exec_address(exec, sum, 0))[9], 30);
    CU_ASSERT_EQUAL(((float *)tg_exec_address(exec, sum, 1))[9], 70);
    tg_exec_run(exec, &maker.funcs.at[1], 0);
    CU_ASSERT_EQUAL(((float *)tg_exec_address(exec, out, 0))[COUNT - 1], 10.0f * COUNT);
    tg_exec_close(exec);
}

static void poison_and_touched(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    static unsigned char data[] = {1, 2, 3, 4};
    uint32_t in = maker_buffer(&maker, PLAN_INPUT, DT_F32, COUNT, 1),
             constant = maker_buffer(&maker, PLAN_CONST, DT_U8, 4, 1);
    uint32_t out = maker_buffer(&maker, PLAN_OUTPUT, DT_F32, COUNT, 1);
    maker_buffer(&maker, PLAN_TEMP, DT_F32, 1000000, 1);
    maker.plan.data = data;
    maker.plan.data_bytes = sizeof data;
    maker_func(&maker, PLAN_MICRO, "micro");
    maker_kernel(&maker, square, COUNT / TILE, 0, 2, (PlanOperand[]){{.buffer = in}, {.buffer = out}});
    TgExec *exec = maker_open(&maker, 2, true);
    CU_ASSERT_EQUAL(memcmp(tg_exec_address(exec, constant, 0), data, sizeof data), 0);
    CU_ASSERT_EQUAL(tg_exec_touched(exec), maker.buffers.at[constant].offset + 4);
    float *input = tg_exec_address(exec, in, 0);
    CU_ASSERT(input[7] != input[7]);
    memset(input, 0, COUNT * sizeof *input);
    tg_exec_run(exec, &maker.funcs.at[0], 0);
    CU_ASSERT_EQUAL(tg_exec_touched(exec), maker.buffers.at[out].offset + (int64_t)(COUNT * sizeof(float)));
    char *beyond = (char *)tg_exec_address(exec, in, 0) + maker.plan.arena_bytes;
    *beyond = 1;
    CU_ASSERT_EQUAL(tg_exec_touched(exec), maker.plan.arena_bytes + 1);
    tg_exec_close(exec);
}

static void scalars(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t out = maker_buffer(&maker, PLAN_OUTPUT, DT_F64, 1, 1);
    PlanScalar step = {.name = "step", .class = PLAN_SCALAR_BUILTIN}, peak = {"peak", PLAN_SCALAR_SETTING, 0.25};
    PlanScalar lr = {.name = "lr", .class = PLAN_SCALAR_COMPUTED};
    tg_push(arena, &maker.scalars, step);
    tg_push(arena, &maker.scalars, peak);
    tg_push(arena, &maker.scalars, lr);
    maker_func(&maker, PLAN_SCALARS, "scalars");
    PlanResult result = {"lr", out};
    tg_push(arena, &maker.results, result);
    maker.funcs.at[0].result_count = 1;
    maker_kernel(&maker, one_third_of_step, 1, 0, 1, (PlanOperand[]){{.buffer = out}});
    TgExec *exec = maker_open(&maker, 1, false);
    CU_ASSERT_EQUAL(tg_exec_values(exec)[1], 0.25);
    tg_exec_values(exec)[0] = 5;
    tg_exec_compute_scalars(exec);
    CU_ASSERT_EQUAL(tg_exec_values(exec)[2], 5.0 / 3);
    CU_ASSERT_PTR_EQUAL(tg_plan_func(&maker.plan, PLAN_SCALARS, NULL), maker.plan.funcs);
    CU_ASSERT_PTR_NULL(tg_plan_func(&maker.plan, PLAN_SCALARS, "other"));
    tg_exec_close(exec);
}

static Status open_broken(Arena *arena, PlanMaker *maker, const ExecOptions *options, const char **why) {
    tg_exec_close(maker_open(maker, 1, false));
    TgExec *exec;
    return tg_exec_open(options, arena, &maker->program, &maker->plan, &exec, why);
}

static void refusals(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t in = maker_buffer(&maker, PLAN_INPUT, DT_F32, COUNT, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    maker_kernel(&maker, square, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = in}, {.buffer = in}});
    const char *why = "";
    const ExecOptions options = {0};
    setenv("TG_THREADS", "many", 1);
    CU_ASSERT_EQUAL(open_broken(arena, &maker, &options, &why), TG_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "TG_THREADS=many"));
    unsetenv("TG_THREADS");
    maker.steps.at[0].index = 7;
    CU_ASSERT_EQUAL(tg_exec_open(&options, arena, &maker.program, &maker.plan, &(TgExec *){NULL}, &why), TG_INTERNAL);
    maker.steps.at[0].index = 0;
    maker.program.abi = 99;
    CU_ASSERT_EQUAL(tg_exec_open(&options, arena, &maker.program, &maker.plan, &(TgExec *){NULL}, &why), TG_INTERNAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "compile it again"));
}

static void no_plugin(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t a = maker_buffer(&maker, PLAN_INPUT, DT_F32, 4, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    maker_dot(&maker, maker_matrix_dot(DT_F32, 2, 2, 2, false, false), a, a, 0);
    const char *why = "";
    const ExecOptions options = {.threads = 1, .library_directory = "/nowhere"};
    CU_ASSERT_EQUAL(open_broken(arena, &maker, &options, &why), TG_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "/nowhere"));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "libtgrt_dnn.so"));
}

/* A host whose n-th allocation fails. */
static void *fail_at(const TgHost *host, void *old, size_t bytes) {
    int *left = host->context;
    if (bytes > 0 && (*left)-- == 0)
        return NULL;
    return tg_host()->resize(tg_host(), old, bytes);
}

static void every_allocation_can_fail(Arena *arena) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t a = maker_buffer(&maker, PLAN_INPUT, DT_F32, 300 * 300, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    maker_dot(&maker, maker_matrix_dot(DT_F32, 300, 300, 300, false, false), a, a, 0);
    tg_exec_close(maker_open(&maker, 2, false));
    Status status = TG_MEMORY;
    int n = 0;
    for (; status != TG_OK && n < 1000; n++) {
        int left = n;
        TgHost host = *tg_host();
        host.resize = fail_at;
        host.context = &left;
        const ExecOptions options = {.host = &host, .threads = 2, .library_directory = TGC_BINARY_DIR "/lib"};
        TgExec *exec;
        const char *why = "";
        status = tg_exec_open(&options, arena, &maker.program, &maker.plan, &exec, &why);
        if (status == TG_OK)
            tg_exec_close(exec);
        else {
            CU_ASSERT_EQUAL(status, TG_MEMORY);
            CU_ASSERT(*why != 0);
        }
    }
    CU_ASSERT(n > 5 && n < 1000);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { with_arena(name); }
TEST(replay)
TEST(chains)
TEST(lanes)
TEST(poison_and_touched)
TEST(scalars)
TEST(refusals)
TEST(no_plugin)
TEST(every_allocation_can_fail)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("exec", NULL, NULL);
    CU_add_test(suite, "replay of kernels and copies, 1 to 3 threads", run_replay);
    CU_add_test(suite, "chains, 1 to 6 threads", run_chains);
    CU_add_test(suite, "lanes", run_lanes);
    CU_add_test(suite, "poison and touched", run_poison_and_touched);
    CU_add_test(suite, "scalars", run_scalars);
    CU_add_test(suite, "refusals", run_refusals);
    CU_add_test(suite, "no plugin", run_no_plugin);
    CU_add_test(suite, "every allocation can fail", run_every_allocation_can_fail);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
