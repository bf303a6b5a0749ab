/* The memory that a program touches is what its plan says: models run in a poisoned arena. */
#include "runtime/loop.h"
#include "tests/program/model.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

enum { EPOCHS = 2 };

static int64_t predicted_end(const TgPlan *plan) {
    int64_t end = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        int64_t last = buffer->offset + (buffer->lanes - 1) * buffer->lane_bytes + buffer->bytes;
        end = last > end ? last : end;
    }
    return end;
}

static void train(Arena *arena, const TgPlan *plan, TgExec *exec) {
    const char *why = NULL;
    DataFiles files;
    DataSet set, validation;
    Loop loop;
    Feed *feed;
    tg_data_files_init(&files, arena, plan, tg_data_root(NULL, plan));
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan->train, NULL, &set, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan->validate, NULL, &validation, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_loop_open(&loop, arena, plan, exec, &set, &validation, &why), TG_OK);
    FeedOptions options = {.host = tg_host(), .batch = plan->batch, .seed = 1, .ahead_bytes = TG_FEED_AHEAD_BYTES};
    CU_ASSERT_EQUAL_FATAL(tg_feed_open(arena, &options, &set, &feed), TG_OK);
    *loop.total_steps = (double)(EPOCHS * ((set.count + plan->batch - 1) / plan->batch));
    for (int64_t step = 1; step <= (int64_t)*loop.total_steps; step++) {
        const Batch *batch = tg_feed_next(feed);
        LoopPlace place = {.step = step, .iteration = step - 1, .epoch = batch->epoch};
        CU_ASSERT_TRUE_FATAL(tg_loop_step(&loop, batch, &place));
    }
    tg_loop_evaluate(&loop, &validation);
    tg_feed_close(feed);
}

static void run_exports(const TgPlan *plan, TgExec *exec) {
    for (uint32_t i = 0; i < plan->func_count; i++) {
        const PlanFunc *func = &plan->funcs[i];
        if (func->kind != PLAN_EXPORT)
            continue;
        for (uint32_t k = 0; k < func->input_count; k++) {
            uint32_t input = plan->inputs[func->input_first + k];
            memset(tg_exec_address(exec, input, 0), 0, (size_t)plan->buffers[input].bytes);
        }
        tg_exec_scalars(exec)->rows = func->capacity;
        tg_exec_run(exec, func, 0);
    }
}

static void check_model(Arena *arena, const char *name, const char *const *sets, bool no_fuse) {
    TestModel model;
    const char *path = tg_arena_printf(arena, TGC_SOURCE_DIR "/models/%s", name);
    CU_ASSERT_EQUAL_FATAL(model_compile(arena, path, sets, no_fuse, &model), TG_OK);
    const TgPlan *plan = model.plan;
    ExecOptions options = {
        .host = tg_host(), .threads = 2, .poison = true, .library_directory = model.library_directory};
    TgExec *exec;
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_exec_open(&options, arena, &model.program, plan, &exec, &why), TG_OK);
    tg_exec_scalars(exec)->rows = 1;
    tg_exec_run(exec, tg_plan_func(plan, PLAN_INIT, NULL), 0);
    train(arena, plan, exec);
    run_exports(plan, exec);
    int64_t touched = tg_exec_touched(exec), predicted = predicted_end(plan);
    if (touched != predicted)
        printf("\n%s: %lld bytes are touched, %lld predicted ", name, (long long)touched, (long long)predicted);
    CU_ASSERT_EQUAL(touched, predicted);
    CU_ASSERT(predicted <= plan->arena_bytes && plan->arena_bytes - predicted < 64);
    tg_exec_close(exec);
    model_free(&model);
}

static void models(Scratch *scratch) {
    static const char *const none[] = {NULL}, *const lanes[] = {"lanes=4", "micro=8", NULL};
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        check_model(scratch->arena, "digits.tg", none, no_fuse);
        check_model(scratch->arena, "digits.tg", lanes, no_fuse);
        check_model(scratch->arena, "custom.tg", none, no_fuse);
    }
}

static void run_models(void) { scratch_run(models); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("memory", NULL, NULL);
    CU_add_test(suite, "the highest byte touched", run_models);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
