/* The memory that a program touches is what its plan says, and no value is lost in it: models run in a poisoned arena;
   what a step need not keep is poisoned after it. */
#include "runtime/loop.h"
#include "tests/program/model.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

enum { EPOCHS = 2 };

static bool is_temporary(const PlanBuffer *buffer) {
    return buffer->class == PLAN_TEMP || buffer->class == PLAN_SCRATCH;
}

static bool is_kept(const PlanBuffer *buffer) {
    return buffer->class == PLAN_PARAM || buffer->class == PLAN_STATE || buffer->class == PLAN_OPTIMIZER ||
           buffer->class == PLAN_CONST;
}

static int64_t end_of(const PlanBuffer *buffer) {
    return buffer->offset + (buffer->lanes - 1) * buffer->lane_bytes + buffer->bytes;
}

static int64_t predicted_end(const TgPlan *plan) {
    int64_t end = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        end = end_of(&plan->buffers[i]) > end ? end_of(&plan->buffers[i]) : end;
    return end;
}

/* The steps of a function between which a buffer holds something; first > last: none. */
typedef struct Life {
    uint32_t first, last;
} Life;

static Life life_of(const TgPlan *plan, const PlanFunc *func, uint32_t buffer) {
    Life life = {UINT32_MAX, 0};
    for (uint32_t i = 0; i < func->step_count; i++) {
        const PlanStep *step = &plan->steps[func->step_first + i];
        for (uint32_t k = 0; k < step->buffer_count; k++)
            if (plan->step_buffers[step->buffer_first + k].buffer == buffer) {
                life.first = i < life.first ? i : life.first;
                life.last = i;
            }
    }
    if (!is_temporary(&plan->buffers[buffer])) /* others live from before to after */
        life = (Life){0, UINT32_MAX};
    return life;
}

/* What a step reads and what it writes are both there while it runs. */
static void check_lives(Arena *arena, const TgPlan *plan, const PlanFunc *func) {
    Life *lives = TG_ALLOC(arena, Life, plan->buffer_count);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        lives[i] = life_of(plan, func, i);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const PlanBuffer *a = &plan->buffers[i], *b = &plan->buffers[k];
            bool both = lives[i].first <= lives[k].last && lives[k].first <= lives[i].last;
            bool apart = end_of(a) <= b->offset || end_of(b) <= a->offset;
            if (both && !apart)
                printf("\n%s: buffers %u and %u overlap ", func->name, i, k);
            CU_ASSERT(!both || apart);
        }
}

/* Nothing of a step's inputs, sums, results and temporaries is read by the next one. */
static void forget(const TgPlan *plan, TgExec *exec) {
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        for (int64_t lane = 0; !is_kept(buffer) && lane < buffer->lanes; lane++)
            memset(tg_exec_address(exec, i, lane), 0xff, (size_t)buffer->bytes);
    }
}

static void train(Arena *arena, const TgPlan *plan, TgExec *exec, bool forgets) {
    const char *why = NULL;
    DataFiles files;
    RecordSet set, validation;
    Loop loop;
    Feed *feed;
    tg_data_files_init(&files, arena, plan, tg_data_root(NULL, plan));
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan->train, NULL, &set, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan->validate[0], NULL, &validation, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_loop_open(&loop, arena, plan, exec, &set, &validation, 1, &why), TG_OK);
    FeedOptions options = {.host = tg_host(), .batch = plan->batch, .seed = 1, .ahead_bytes = TG_FEED_AHEAD_BYTES};
    CU_ASSERT_EQUAL_FATAL(tg_feed_open(arena, &options, &set, &feed), TG_OK);
    *loop.total_steps = (double)(EPOCHS * ((set.count + plan->batch - 1) / plan->batch));
    for (int64_t step = 1; step <= (int64_t)*loop.total_steps; step++) {
        const Batch *batch = tg_feed_next(feed);
        LoopPlace place = {.step = step, .iteration = step - 1, .epoch = batch->epoch};
        CU_ASSERT_EQUAL_FATAL(tg_loop_step(&loop, batch, &place), STEP_DONE);
        if (forgets)
            forget(plan, exec);
    }
    tg_loop_evaluate(&loop);
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

static TgExec *trained(Arena *arena, const TestModel *model, bool forgets) {
    ExecOptions options = {
        .host = tg_host(), .threads = 2, .poison = true, .library_directory = model->library_directory};
    TgExec *exec;
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_exec_open(&options, arena, &model->program, model->plan, &exec, &why), TG_OK);
    tg_exec_scalars(exec)->rows = 1;
    tg_exec_run(exec, tg_plan_func(model->plan, PLAN_INIT, NULL), 0);
    train(arena, model->plan, exec, forgets);
    return exec;
}

static void check_equal(const TgPlan *plan, TgExec *a, TgExec *b) {
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (is_kept(&plan->buffers[i]))
            CU_ASSERT_EQUAL(memcmp(tg_exec_address(a, i, 0), tg_exec_address(b, i, 0), (size_t)plan->buffers[i].bytes),
                            0);
}

static void check_model(Arena *arena, const char *name, const char *const *sets, bool no_fuse) {
    TestModel model;
    const char *path = tg_arena_printf(arena, TGC_SOURCE_DIR "/models/%s", name);
    CU_ASSERT_EQUAL_FATAL(model_compile(arena, path, sets, no_fuse, &model), TG_OK);
    const TgPlan *plan = model.plan;
    for (uint32_t i = 0; i < plan->func_count; i++)
        check_lives(arena, plan, &plan->funcs[i]);
    TgExec *exec = trained(arena, &model, false), *forgetful = trained(arena, &model, true);
    check_equal(plan, exec, forgetful);
    run_exports(plan, exec);
    int64_t touched = tg_exec_touched(exec), predicted = predicted_end(plan);
    if (touched != predicted)
        printf("\n%s: %lld bytes are touched, %lld predicted ", name, (long long)touched, (long long)predicted);
    CU_ASSERT_EQUAL(touched, predicted);
    CU_ASSERT(predicted <= plan->arena_bytes && plan->arena_bytes - predicted < 64);
    tg_exec_close(exec);
    tg_exec_close(forgetful);
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

/* A head's result is never there as a whole: each of its slices takes the place of the one before. */
static void check_slices(Arena *arena, const char *const *sets, int64_t records, bool no_fuse) {
    enum { T = 63, V = 4400, SLICES = 3 }; /* of head.tg */
    int64_t whole = records * T * V * 4, most = 0;
    TestModel model;
    CU_ASSERT_EQUAL_FATAL(model_compile(arena, TGC_SOURCE_DIR "/tests/program/Inputs/head.tg", sets, no_fuse, &model), TG_OK);
    const TgPlan *plan = model.plan;
    for (uint32_t i = 0; i < plan->func_count; i++)
        check_lives(arena, plan, &plan->funcs[i]);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        most = plan->buffers[i].bytes > most ? plan->buffers[i].bytes : most;
    CU_ASSERT(most >= whole / SLICES && most < whole / 2);
    if (!no_fuse) /* y and its gradient */
        CU_ASSERT(plan->arena_bytes < 5 * whole / (2 * SLICES));
    model_free(&model);
}

static void slices(Scratch *scratch) {
    static const char *const none[] = {NULL}, *const micro[] = {"micro=64", NULL}, *const lanes[] = {"lanes=2", "micro=64", NULL};
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        check_slices(scratch->arena, none, 128, no_fuse);
        check_slices(scratch->arena, micro, 64, no_fuse);
        check_slices(scratch->arena, lanes, 64, no_fuse);
    }
}

static void run_slices(void) { scratch_run(slices); }
static void run_models(void) { scratch_run(models); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("memory", NULL, NULL);
    CU_add_test(suite, "lives, canaries, the highest byte touched", run_models);
    CU_add_test(suite, "a head in slices", run_slices);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
