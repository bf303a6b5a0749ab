/* Which new values a step writes straight over the old ones of their buffer, and which wait for a copy. */
#include "codegen/codegen.h"
#include "passes/pass.h"

#include <CUnit/Basic.h>

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define LOADS "%1 : f32[40, 300] = load @w %2 : f32[40, 300] = arg index=0 \"x\" "
#define SHARE                                                                                                          \
    LOADS "%3 : f32[40] = reduce_sum %2 axes=1 %4 : f32[40, 300] = broadcast %3 dims=0 "                              \
          "%5 : f32[40, 300] = add %1, %2 %6 : f32[40, 300] = mul "

static const struct {
    const char *name, *body;
    uint32_t copies;
} cases[] = {
    {"one output of a row kernel", SHARE "%1, %4 store @w %6", 0},
    {"a later loop over the row reads the old value again", SHARE "%1, %4 store @w %5 return y %6", 1},
    {"the later loop reads something else", SHARE "%2, %4 store @w %5 return y %6", 0},
    {"two outputs of one loop", LOADS "%3 : f32[40, 300] = add %1, %2 %4 : f32[40, 300] = mul %1, %2 store @w %3 return y %4", 0},
    {"a sum over the old row", LOADS "%3 : f32[40] = reduce_sum %1 axes=1 %4 : f32[40, 300] = broadcast %3 dims=0 "
                                     "%5 : f32[40, 300] = add %1, %4 store @w %5", 1},
};

static uint32_t copies_to(const TgPlan *plan, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const PlanStep *step = &plan->steps[i];
        const PlanOperand *to = &plan->step_buffers[step->buffer_first + step->buffer_count - 1];
        count += step->kind == STEP_COPY && strcmp(plan->buffers[to->buffer].name, name) == 0;
    }
    return count;
}

static void check(Arena *arena, const char *name, const char *body, uint32_t copies) {
    Sources sources = {0};
    Diags diags;
    tg_diags_init(&diags, arena, &sources, stdout);
    const char *text = tg_arena_printf(arena,
                                       "graph @step { buffer @w : f32[40, 300] state "
                                       "train batch=1 micro=1 lanes=1 steps=0 epochs=0 clip_norm=0 clip_scalar=-1 seed=0 "
                                       "func @micro micro(%%x: f32[40, 300]) { %s } }",
                                       body);
    Graph *graph, *kernel;
    Lowered lowered = {0};
    PassContext context = {.arena = arena, .diags = &diags};
    PassOptions options = tg_pass_options();
    CU_ASSERT_EQUAL_FATAL(tg_graph_parse(arena, &diags, &sources, name, text, strlen(text), &graph), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_passes_run(&context, &options, "fuse", graph, &kernel), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_plan_build(arena, &diags, kernel, "", LOOPS_CPU, &lowered), TG_OK);
    uint32_t got = copies_to(lowered.plan, "w");
    if (got != copies)
        printf("\n    %s: %u copies, not %u", name, got, copies);
    CU_ASSERT_EQUAL(got, copies);
}

static void check_case(size_t i) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard))
        CU_FAIL_FATAL("out of memory");
    check(&arena, cases[i].name, cases[i].body, cases[i].copies);
    tg_arena_deinit(&arena);
}

static void test_stores(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(i);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("stores", NULL, NULL);
    CU_add_test(suite, "over the old value or by a copy", test_stores);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
