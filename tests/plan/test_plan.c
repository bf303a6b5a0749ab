/* The plan's binary form: round trip, and damage of every kind. */
#include "ir/base/map.h"
#include "ir/plan/plan_codec.h"

#include <CUnit/Basic.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static PlanBuffer buffer(const char *name, PlanBufferClass class, int64_t rows, int64_t columns, int64_t offset) {
    return (PlanBuffer){.name = name,
                        .class = class,
                        .dtype = DT_F32,
                        .rank = 2,
                        .dims = {rows, columns},
                        .batch_axis = class == PLAN_INPUT ? 0 : -1,
                        .row_size = 1,
                        .offset = offset,
                        .bytes = rows * columns * 4,
                        .lanes = 1};
}

static PlanOperand *operands(Arena *arena) {
    PlanOperand *o = TG_ALLOC(arena, PlanOperand, 10);
    for (uint32_t i = 0; i < 6; i++)
        o[i] = (PlanOperand){.buffer = i < 3 ? i : i - 2, .lane = i == 4 ? TG_LANE_CURRENT : 0};
    for (uint32_t i = 6; i < 10; i++)
        o[i] = (PlanOperand){.buffer = 2};
    return o;
}

static PlanStep *steps(Arena *arena) {
    PlanStep *s = TG_ALLOC(arena, PlanStep, 3);
    s[0] = (PlanStep){.kind = STEP_DOT,
                      .label = "dot",
                      .buffer_count = 3,
                      .line_count = 1,
                      .lines = {{"a.tg", 3, 4}},
                      .bytes = 100,
                      .flops = 0.1};
    s[1] = (PlanStep){
        .kind = STEP_KERNEL, .work = WORK_ROWS, .label = "exp+\"sum\"\n", .index = 1, .tiles = 7, .buffer_first = 3, .buffer_count = 3};
    s[2] = (PlanStep){.kind = STEP_ATTENTION, .work = WORK_ATTENTION, .label = "attention", .buffer_first = 6, .buffer_count = 4};
    return s;
}

/* in [4, 8] @ weights [8, 2] -> hidden [4, 2], summed into `sum`; one constant; attention over hidden. */
static TgPlan *small_plan(Arena *arena) {
    TgPlan *p = TG_ALLOC(arena, TgPlan, 1);
    p->arena_bytes = 1024, p->persistent_bytes = 64;
    p->buffer_count = 5;
    p->buffers = TG_ALLOC(arena, PlanBuffer, 5);
    p->buffers[0] = buffer("images", PLAN_INPUT, 4, 8, 64);
    p->buffers[1] = buffer("net.weight", PLAN_PARAM, 8, 2, 0);
    p->buffers[2] = buffer("", PLAN_TEMP, 4, 2, 192);
    p->buffers[3] = buffer("", PLAN_SUM, 1, 1, 256);
    p->buffers[3].lanes = 4, p->buffers[3].lane_bytes = 64;
    p->buffers[4] = buffer("", PLAN_CONST, 1, 2, 512);
    p->step_count = 3, p->steps = steps(arena);
    p->step_buffer_count = 10, p->step_buffers = operands(arena);
    p->step_buffers[4].buffer = 3;
    p->dot_count = 1, p->dots = TG_ALLOC(arena, PlanDot, 1);
    p->dots[0] = (PlanDot){.dtype = DT_F32,
                           .out_dtype = DT_F32,
                           .groups = 1,
                     .inner = 1,
                           .m = 4,
                           .n = 2,
                           .k = 8,
                           .a_m = 8,
                           .a_k = 1,
                           .b_k = 2,
                           .b_n = 1,
                           .out_m = 2,
                           .rows_m = true,
                           .pieces = 1,
                           .tile_m = 4,
                           .tile_n = 2};
    p->attention_count = 1, p->attentions = TG_ALLOC(arena, PlanAttention, 1);
    p->attentions[0] = (PlanAttention){
        .dtype = DT_BF16, .out_dtype = DT_F32, .keys = 1, .heads = 2, .queries = 2, .positions = 4, .depth = 2, .value_depth = 2};
    p->func_count = 1, p->funcs = TG_ALLOC(arena, PlanFunc, 1);
    p->funcs[0] = (PlanFunc){
        .kind = PLAN_MICRO, .name = "micro", .capacity = 4, .step_count = 3, .input_count = 1, .result_count = 1};
    p->input_count = 1, p->inputs = TG_ALLOC(arena, uint32_t, 1);
    p->result_count = 1, p->results = TG_ALLOC(arena, PlanResult, 1);
    p->results[0] = (PlanResult){.name = "loss", .buffer = 3};
    p->scalar_count = 1, p->scalars = TG_ALLOC(arena, PlanScalar, 1);
    p->scalars[0] = (PlanScalar){.name = "lr", .class = PLAN_SCALAR_SETTING, .value = 1e-3};
    p->field_count = 1, p->fields = TG_ALLOC(arena, PlanField, 1);
    p->fields[0] = (PlanField){.name = "images",
                               .reader = "idx",
                               .path = "x.idx",
                               .dtype = DT_U8,
                               .rank = 1,
                               .dims = {8},
                               .bounded = true,
                               .low = -1,
                               .high = 10};
    p->split_count = 1, p->splits = TG_ALLOC(arena, PlanSplit, 1);
    p->splits[0] = (PlanSplit){.name = "train", .share = 0.8};
    p->setting_count = 1, p->settings = TG_ALLOC(arena, PlanSetting, 1);
    p->settings[0] = (PlanSetting){.name = "epochs", .value = "30", .origin = "a.tg:1", .runtime = true};
    p->train = (PlanDataSet){.name = "digits", .split = "train", .field_count = 1, .split_count = 1};
    p->data_bytes = 8, p->data = tg_arena_copy(arena, "\1\2\3\4\0\377\7\10", 8);
    p->kernel_count = 2, p->batch = 4, p->micro = 4, p->lanes = 1, p->epochs = 30, p->shuffle = true, p->seed = ~0ull;
    p->source_path = "a.tg", p->loss = "loss", p->cpu = "host";
    return p;
}

static Str written(Arena *arena, const TgPlan *plan) {
    Str out = tg_str(arena);
    CU_ASSERT_EQUAL_FATAL(tg_plan_write(&out, plan), TG_OK);
    return out;
}

static char *printed(Arena *arena, const TgPlan *plan) {
    Str out = tg_str(arena);
    tg_plan_print(&out, plan);
    return out.text;
}

static void with_arena(void (*test)(Arena *arena)) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard))
        CU_FAIL("out of memory")
    else
        test(&arena);
    tg_arena_deinit(&arena);
}

static void round_trip(Arena *arena) {
    TgPlan *plan = small_plan(arena), *again;
    const char *why = NULL;
    Str out = written(arena, plan);
    CU_ASSERT_EQUAL_FATAL(tg_plan_read(arena, out.text, out.length, &again, &why), TG_OK);
    CU_ASSERT_STRING_EQUAL(printed(arena, plan), printed(arena, again));
    CU_ASSERT_EQUAL(again->seed, ~0ull);
    CU_ASSERT_EQUAL(again->fields[0].low, -1);
    CU_ASSERT_EQUAL(again->step_buffers[4].lane, TG_LANE_CURRENT);
    CU_ASSERT_STRING_EQUAL(again->model_text, "");
    CU_ASSERT_EQUAL(memcmp(again->data, plan->data, 8), 0);
    Str twice = written(arena, again);
    CU_ASSERT_EQUAL_FATAL(twice.length, out.length);
    CU_ASSERT_EQUAL(memcmp(twice.text, out.text, out.length), 0);
}

static void text_form(Arena *arena) {
    const char *text = printed(arena, small_plan(arena));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "buffer 3 sum f32[1, 1] at 256 bytes 4 lanes 4 of 64\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "step 1 kernel 1 (row kernel) tiles 7 (1, 3.current, 3.0) bytes=0 flops=0 \"exp+\\\"sum\\\"\\x0a\"\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "attention 0 forward bf16 -> f32 1 x 2 x [2, 4] depth 2, 2 kernels 0\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "step 0 dot 0 (0, 1, 2) bytes=1e+02 flops=0.1 \"dot\" a.tg:3:4\n"));
}

static void refuse(Arena *arena, const char *data, size_t bytes, const char *reason) {
    TgPlan *plan;
    const char *why = NULL;
    CU_ASSERT_EQUAL(tg_plan_read(arena, data, bytes, &plan, &why), TG_INTERNAL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(why);
    if (reason && strstr(why, reason) == NULL)
        CU_FAIL("another reason");
}

static void damaged_heads(Arena *arena) {
    Str out = written(arena, small_plan(arena));
    for (size_t bytes = 0; bytes < out.length; bytes++)
        refuse(arena, out.text, bytes, NULL);
    refuse(arena, "", 0, "does not begin");
    char *copy = tg_arena_copy(arena, out.text, out.length);
    copy[PLAN_HEAD_VERSION] = 9;
    refuse(arena, copy, out.length, "version 9");
    copy = tg_arena_copy(arena, out.text, out.length);
    copy[out.length - 1] ^= 1;
    refuse(arena, copy, out.length, "have changed");
}

static void seal(char *plan, size_t bytes) {
    uint64_t hash = tg_hash(plan + PLAN_HEAD, bytes - PLAN_HEAD, 0), length = bytes - PLAN_HEAD;
    memcpy(plan + PLAN_HEAD_HASH, &hash, 8);
    memcpy(plan + PLAN_HEAD_BYTES, &length, 8);
}

/* Is a plan refused that holds `value` at byte `at`? If not, it can be printed and written. */
static bool is_refused(const Str *plan_text, size_t at, unsigned char value) {
    Arena scratch;
    tg_arena_init(&scratch, tg_host());
    if (setjmp(scratch.guard)) {
        CU_FAIL("a damaged plan asked for all memory");
        return false;
    }
    char *copy = tg_arena_copy(&scratch, plan_text->text, plan_text->length);
    copy[at] = (char)value;
    seal(copy, plan_text->length);
    TgPlan *plan;
    const char *why = NULL;
    bool refused = tg_plan_read(&scratch, copy, plan_text->length, &plan, &why) != TG_OK;
    CU_ASSERT_EQUAL(refused, why != NULL);
    if (!refused) {
        (void)printed(&scratch, plan);
        (void)written(&scratch, plan);
    }
    tg_arena_deinit(&scratch);
    return refused;
}

/* Every byte of a plan with a valid hash set to several values: refused with a reason, or a plan that prints and can be
   written again. */
static void damaged_bodies(Arena *arena) {
    static const unsigned char values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    Str out = written(arena, small_plan(arena));
    uint32_t refused = 0;
    for (size_t at = PLAN_HEAD; at < out.length; at++)
        for (size_t v = 0; v < sizeof values; v++)
            refused += is_refused(&out, at, values[v]);
    CU_ASSERT(refused > out.length);
}

static void truncated_bodies(Arena *arena) {
    Str out = written(arena, small_plan(arena));
    for (size_t bytes = PLAN_HEAD; bytes < out.length; bytes++) {
        char *copy = tg_arena_copy(arena, out.text, bytes);
        seal(copy, bytes);
        refuse(arena, copy, bytes, NULL);
    }
}

static void check_finds(Arena *arena, TgPlan *plan, const char *reason) {
    const char *why = NULL;
    CU_ASSERT_EQUAL(tg_plan_check(arena, plan, &why), TG_INTERNAL);
    if (why == NULL || strstr(why, reason) == NULL)
        CU_FAIL("another reason");
}

static void impossible_plans(Arena *arena) {
#define BROKEN(change, reason)                                                                                         \
    do {                                                                                                               \
        TgPlan *p = small_plan(arena);                                                                                 \
        change;                                                                                                        \
        check_finds(arena, p, reason);                                                                                 \
    } while (0)
    BROKEN(p->buffers[0].offset = 960, "past the arena");
    BROKEN(p->buffers[0].offset = 65, "offset 65");
    BROKEN(p->buffers[0].dims[0] = INT64_MAX, "smaller than its elements");
    BROKEN(p->buffers[0].rank = 9, "rank 9");
    BROKEN(p->buffers[3].lanes = INT64_MAX, "past the arena");
    BROKEN(p->buffers[3].lane_bytes = 0, "overlap");
    BROKEN(p->buffers[4].data_offset = 4, "constant data");
    BROKEN(p->steps[1].index = 2, "no such kernel");
    BROKEN(p->steps[1].buffer_first = 8, "no such operands");
    BROKEN(p->steps[0].buffer_count = 2, "a dot with 2 operands");
    BROKEN(p->dots[0].a_m = 9, "reaches past");
    BROKEN(p->dots[0].b_k = INT64_MAX, "reaches past");
    BROKEN(p->dots[0].pieces = 3, "3 pieces");
    BROKEN(p->attentions[0].dtype = DT_F64, "f64 to f32, which cannot be");
    BROKEN(p->attentions[0].out_dtype = DT_F16, "bf16 to f16, which cannot be");
    BROKEN(p->attentions[0].positions = 0, "impossible size");
    BROKEN(p->attentions[0].weights = 2, "no such kernels");
    BROKEN(p->attentions[0].positions = 9, "reaches past");
    BROKEN(p->attentions[0].value_depth = 3, "reaches past");
    BROKEN(p->steps[2].buffer_count = 3, "an attention with 3 operands");
    BROKEN(p->step_buffers[0].buffer = 5, "names no buffer");
    BROKEN(p->step_buffers[0].lane = 1, "names no lane");
    BROKEN(p->funcs[0].step_count = 4, "no such steps");
    BROKEN(p->inputs[0] = 5, "names no buffer");
    BROKEN(p->results[0].buffer = 5, "names no buffer");
    BROKEN(p->train.field_count = 2, "no such fields");
    BROKEN(p->persistent_bytes = 2048, "impossible sizes");
#undef BROKEN
}

/* The kernel as often as `steps`, each from the buffer of the one before it to one of its own, in 4 parts. */
static TgPlan *chained_plan(Arena *arena) {
    enum { STEPS = 3 };
    TgPlan *p = small_plan(arena);
    p->arena_bytes = 4096;
    p->buffer_count = 5 + STEPS + 1;
    PlanBuffer *buffers = TG_ALLOC(arena, PlanBuffer, p->buffer_count);
    memcpy(buffers, p->buffers, 5 * sizeof *buffers);
    p->buffers = buffers;
    p->steps = TG_ALLOC(arena, PlanStep, STEPS);
    p->step_buffers = TG_ALLOC(arena, PlanOperand, 2 * STEPS);
    for (uint32_t i = 0; i <= STEPS; i++) {
        p->buffers[5 + i] = buffer("", PLAN_TEMP, 4, 16, 1024 + 256 * i);
        p->buffers[5 + i].batch_axis = 0;
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        p->steps[i] = (PlanStep){.kind = STEP_KERNEL, .label = "tanh", .tiles = 4, .buffer_first = 2 * i, .buffer_count = 2};
        p->step_buffers[2 * i].buffer = 5 + i;
        p->step_buffers[2 * i + 1].buffer = 6 + i;
    }
    p->step_count = p->funcs[0].step_count = STEPS, p->step_buffer_count = 2 * STEPS;
    p->chain_count = 1, p->chains = TG_ALLOC(arena, PlanChain, 2);
    p->chains[0] = (PlanChain){.step_first = 0, .step_count = STEPS, .parts = 2};
    return p;
}

static void chains(Arena *arena) {
    TgPlan *plan = chained_plan(arena), *again;
    const char *why = NULL;
    Str out = written(arena, plan);
    CU_ASSERT_EQUAL_FATAL(tg_plan_read(arena, out.text, out.length, &again, &why), TG_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(printed(arena, again), "  chain 0 of 3 steps in 2 parts\n  step 0 kernel 0"));
    CU_ASSERT_EQUAL(again->chains[0].parts, 2);
    /* Two buffers may take turns: equal parts, one place. */
    plan->buffers[7].offset = plan->buffers[5].offset;
    CU_ASSERT_EQUAL(tg_plan_check(arena, plan, &why), TG_OK);
    /* As two chains. */
    plan = chained_plan(arena);
    plan->chain_count = 2, plan->chains[1] = (PlanChain){.step_first = 1, .step_count = 2, .parts = 2};
    check_finds(arena, plan, "inside of the one before");
    plan->chains[0] = (PlanChain){.step_first = 0, .step_count = 1, .parts = 2};
    check_finds(arena, plan, "chain 0 has 1 steps");
}

static void impossible_chains(Arena *arena) {
#define BROKEN(change, reason)                                                                                         \
    do {                                                                                                               \
        TgPlan *p = chained_plan(arena);                                                                               \
        change;                                                                                                        \
        check_finds(arena, p, reason);                                                                                 \
    } while (0)
    BROKEN(p->chains[0].step_first = 1, "chain 0 has no such steps");
    BROKEN(p->chains[0].step_count = UINT32_MAX, "chain 0 has no such steps");
    BROKEN(p->funcs[0].step_count = 2, "chain 0 has no such steps");
    BROKEN(p->chains[0].parts = 1, "in 1 parts");
    BROKEN(p->chains[0].parts = -2, "in -2 parts");
    BROKEN(p->chains[0].parts = 3, "step 0 is not of 3 parts");
    BROKEN(p->steps[1].tiles = 5, "step 1 is not of 2 parts");
    BROKEN(p->steps[1].tiles = 0, "step 1 is not of 2 parts");
    BROKEN(p->steps[1].kind = STEP_COPY, "step 1 is not of 2 parts");
    BROKEN(p->buffers[7].class = PLAN_SUM, "uses buffer 7, which has no rows");
    BROKEN(p->buffers[6].offset = p->buffers[5].offset + 64, "buffers 5 and 6 at one place");
    BROKEN(p->buffers[7].offset = p->buffers[5].offset; p->buffers[7].bytes *= 2, "buffers 5 and 7 at one place");
    BROKEN(p->buffers[7].offset = p->buffers[5].offset; p->buffers[5].batch_axis = -1, "buffers 5 and 7 at one place");
    BROKEN(p->buffers[7].offset = p->buffers[5].offset; p->buffers[5].batch_axis = 1, "buffers 5 and 7 at one place");
#undef BROKEN
}

#define TEST(name)                                                                                                     \
    static void test_##name(void) { with_arena(name); }
TEST(round_trip)
TEST(text_form)
TEST(damaged_heads)
TEST(damaged_bodies)
TEST(truncated_bodies)
TEST(impossible_plans)
TEST(chains)
TEST(impossible_chains)

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("plan", NULL, NULL);
    CU_add_test(suite, "round trip", test_round_trip);
    CU_add_test(suite, "text form", test_text_form);
    CU_add_test(suite, "damaged heads", test_damaged_heads);
    CU_add_test(suite, "damaged bodies", test_damaged_bodies);
    CU_add_test(suite, "truncated bodies", test_truncated_bodies);
    CU_add_test(suite, "impossible plans", test_impossible_plans);
    CU_add_test(suite, "chains", test_chains);
    CU_add_test(suite, "impossible chains", test_impossible_chains);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
