/* What a profile is told, by each thread, and what it writes; and the roof. */
#include "tests/runtime/plan_maker.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <jansson.h>
#include <string.h>

enum { COUNT = 1 << 16, TILE = 64, SIDE = 256, STEPS = 3 };

static void square(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)scalars;
    const float *in = buffers[0];
    float *out = buffers[1];
    for (int64_t i = first * TILE; i < last * TILE; i++)
        out[i] = in[i] * in[i];
}

typedef struct Rig {
    PlanMaker maker;
    uint32_t in, squared, copied, product;
    TgExec *exec;
    Profile profile;
    Roof roof;
} Rig;

/* A kernel and a dot whose sum is cut, both shared out, and a copy, which is not. */
static void open_rig(Rig *rig, Arena *arena, int threads) {
    *rig = (Rig){.roof = {.copy = {{1e6, 1e9}}, .count = 1, .flops = 1e9}};
    PlanMaker *maker = &rig->maker;
    maker_init(maker, arena);
    maker->plan.source_path = "test.tg";
    rig->in = maker_buffer(maker, PLAN_INPUT, DT_F32, COUNT, 1);
    rig->squared = maker_buffer(maker, PLAN_TEMP, DT_F32, COUNT, 1);
    rig->copied = maker_buffer(maker, PLAN_OUTPUT, DT_F32, COUNT, 1);
    maker_func(maker, PLAN_MICRO, "micro");
    maker_kernel(maker, square, COUNT / TILE, 1e9, 2, (PlanOperand[]){{.buffer = rig->in}, {.buffer = rig->squared}});
    maker_step(maker, STEP_COPY, 0, 0, 0, 2, (PlanOperand[]){{.buffer = rig->squared}, {.buffer = rig->copied}});
    PlanDot dot = maker_matrix_dot(DT_F32, SIDE, SIDE, SIDE, false, false);
    dot.pieces = 2, dot.rows_k = true, dot.variant = DNN_MATMUL;
    rig->product = maker_dot_as_is(maker, dot, rig->in, rig->in, ~0u);
    rig->exec = maker_open(maker, threads, false);
    tg_profile_open(&rig->profile, arena, &maker->plan, &rig->roof, threads, STEPS);
}

static void train(Rig *rig, int64_t steps, bool profiled) {
    Profile *profile = &rig->profile;
    float *in = tg_exec_address(rig->exec, rig->in, 0);
    for (int64_t s = 1; s <= steps; s++) {
        if (profiled)
            tg_profile_begin_step(profile, s);
        for (int i = 0; i < COUNT; i++)
            in[i] = (float)((i + s) % 17) - 8;
        if (profiled)
            tg_profile_batch(profile);
        tg_exec_profile(rig->exec, profiled && profile->recording ? profile : NULL);
        tg_exec_run(rig->exec, &rig->maker.plan.funcs[0], 0);
        tg_exec_profile(rig->exec, NULL);
        if (profiled)
            tg_profile_end_step(profile);
    }
}

static int count_of(const Profile *profile, int thread, SpanKind kind) {
    int count = 0;
    for (uint32_t i = 0; i < profile->tracks[thread]->count; i++)
        count += profile->tracks[thread]->spans[i].kind == kind;
    return count;
}

static void check_order(const ProfileTrack *track) {
    int wrong = 0;
    for (uint32_t i = 0; i < track->count; i++) {
        wrong += track->spans[i].end < track->spans[i].begin;
        wrong += i > 0 && track->spans[i].begin < track->spans[i - 1].begin;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void records(Scratch *scratch) {
    for (int threads = 1; threads <= 3; threads++) {
        Rig rig;
        open_rig(&rig, scratch->arena, threads);
        train(&rig, TG_PROFILE_WARM, true);
        CU_ASSERT_EQUAL(rig.profile.tracks[0]->count, 0);
        train(&rig, STEPS + 4, true);
        CU_ASSERT_EQUAL(rig.profile.recorded, STEPS);
        CU_ASSERT_EQUAL(count_of(&rig.profile, 0, SPAN_STEP), STEPS);
        CU_ASSERT_EQUAL(count_of(&rig.profile, 0, SPAN_WAIT), STEPS);
        CU_ASSERT_EQUAL(count_of(&rig.profile, 0, SPAN_FUNC), STEPS);
        CU_ASSERT_EQUAL(count_of(&rig.profile, 0, SPAN_RUN), 3 * STEPS);
        for (int t = 0; t < threads; t++) { /* of the kernel, the dot (two tasks, one piece of the sum each), and its sum */
            CU_ASSERT_EQUAL(count_of(&rig.profile, t, SPAN_SHARE), threads == 1 ? 0 : (t < 2 ? 3 : 2) * STEPS);
            check_order(rig.profile.tracks[t]);
        }
        tg_exec_close(rig.exec);
    }
}

static void keeps_bits(Scratch *scratch) {
    for (int threads = 1; threads <= 2; threads++) {
        Rig plain, timed;
        open_rig(&plain, scratch->arena, threads);
        open_rig(&timed, scratch->arena, threads);
        train(&plain, TG_PROFILE_WARM + 2, false);
        train(&timed, TG_PROFILE_WARM + 2, true);
        CU_ASSERT(timed.profile.tracks[0]->count > 0);
        CU_ASSERT_EQUAL(memcmp(tg_exec_address(plain.exec, plain.copied, 0), tg_exec_address(timed.exec, timed.copied, 0),
                               COUNT * sizeof(float)), 0);
        CU_ASSERT_EQUAL(memcmp(tg_exec_address(plain.exec, plain.product, 0),
                               tg_exec_address(timed.exec, timed.product, 0), SIDE * SIDE * sizeof(float)), 0);
        tg_exec_close(plain.exec);
        tg_exec_close(timed.exec);
    }
}

static void writes(Scratch *scratch) {
    Rig rig;
    const char *why = NULL, *path = scratch_path(scratch, "profile.json");
    open_rig(&rig, scratch->arena, 2);
    train(&rig, TG_PROFILE_WARM + STEPS, true);
    CU_ASSERT_EQUAL_FATAL(tg_profile_write(&rig.profile, scratch->arena, "test", path, &why), TG_OK);
    json_t *document = json_load_file(path, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    size_t events = 0, i;
    json_t *event;
    json_array_foreach(json_object_get(document, "traceEvents"), i, event)
        events += strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0;
    CU_ASSERT_EQUAL(events, rig.profile.tracks[0]->count + rig.profile.tracks[1]->count);
    json_decref(document);
    CU_ASSERT_EQUAL(tg_profile_write(&rig.profile, scratch->arena, "test", scratch_path(scratch, "no/profile.json"), &why), TG_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "no/profile.json"));
    FailingHost failing;
    for (int n = 1; n < 40; n += 7) { /* the disk is full: no half file */
        const char *part = scratch_path(scratch, "part.json");
        failing_host_init(&failing, n, 0);
        const TgHost *host = scratch->arena->host;
        scratch->arena->host = &failing.host;
        CU_ASSERT_EQUAL(tg_profile_write(&rig.profile, scratch->arena, "test", part, &why), TG_IO);
        scratch->arena->host = host;
        CU_ASSERT_PTR_NULL(json_load_file(part, 0, NULL));
    }
    tg_exec_close(rig.exec);
}

static void measures(Scratch *scratch) {
    Rig rig;
    open_rig(&rig, scratch->arena, 2);
    tg_exec_close(rig.exec);
    rig.maker.plan.steps[0].bytes = 1e6;
    ExecOptions options = {.threads = 2, .library_directory = TGC_BINARY_DIR "/lib", .roof = &rig.roof};
    const char *why;
    CU_ASSERT_EQUAL_FATAL(tg_exec_open(&options, scratch->arena, &rig.maker.program, &rig.maker.plan, &rig.exec, &why), TG_OK);
    const Roof *roof = &rig.roof;
    CU_ASSERT_FATAL(roof->count > 1 && roof->count < TG_ROOF_SIZES);
    CU_ASSERT(roof->copy[roof->count - 1].bytes >= 1e6 && roof->copy[roof->count - 2].bytes < 1e6);
    for (uint32_t i = 0; i < roof->count; i++)
        CU_ASSERT(roof->copy[i].rate > 1e7);
    CU_ASSERT(roof->flops > 1e8);
    double copy = tg_roof_seconds(roof, roof->copy[1].bytes, 0), dot = tg_roof_seconds(roof, 1, 2 * roof->flops);
    CU_ASSERT_DOUBLE_EQUAL(copy, roof->copy[1].bytes / roof->copy[1].rate, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(dot, 2, 1e-9);
    tg_exec_close(rig.exec);
}

static void allocations_fail(Scratch *scratch) {
    Rig rig;
    open_rig(&rig, scratch->arena, 2);
    tg_exec_close(rig.exec);
    FailingHost failing;
    Status status = TG_MEMORY;
    int n = 1;
    for (; status != TG_OK && n < 1000; n++) {
        const char *why;
        failing_host_init(&failing, 0, n);
        ExecOptions options = {.host = &failing.host, .threads = 2, .library_directory = TGC_BINARY_DIR "/lib", .roof = &rig.roof};
        status = tg_exec_open(&options, scratch->arena, &rig.maker.program, &rig.maker.plan, &rig.exec, &why);
        if (status != TG_OK)
            CU_ASSERT_EQUAL(status, TG_MEMORY);
    }
    CU_ASSERT(n > 2 && status == TG_OK);
    tg_exec_close(rig.exec);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(records)
TEST(keeps_bits)
TEST(writes)
TEST(measures)
TEST(allocations_fail)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("profile", NULL, NULL);
    CU_add_test(suite, "spans of each thread, 1 to 3 threads", run_records);
    CU_add_test(suite, "the same bits", run_keeps_bits);
    CU_add_test(suite, "the trace, and a disk that is full", run_writes);
    CU_add_test(suite, "the roof", run_measures);
    CU_add_test(suite, "every allocation can fail", run_allocations_fail);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
