#include "tests/runtime/tiny_program.h"
#include "ir/base/str.h"
#include "ir/plan/plan.h"

#include <CUnit/Basic.h>
#include <math.h>

enum { STEP, RECORDS, LANE_START, RATE, EPOCH, TOTAL_STEPS, SCALAR_COUNT };
enum { MICRO = 2, LANES = 2 };

static void init(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)scalars, (void)first, (void)last;
    *(float *)buffers[0] = 0;
    *(float *)buffers[1] = 0;
}

/* x, y, w; sums of the gradient and of the squared error. */
static void micro(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    const float *x = buffers[0], *y = buffers[1], w = *(const float *)buffers[2];
    float *gradient = buffers[3];
    double *error = buffers[4];
    if (scalars->values[LANE_START] != 0)
        *gradient = 0, *error = 0;
    for (int64_t i = 0; i < scalars->rows; i++) {
        float miss = w * x[i] - y[i];
        *gradient += 2 * miss * x[i];
        *error += (double)miss * miss;
    }
}

/* The gradient's lanes, w, the count of updates; `finite`. */
static void tail(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    float sum = *(float *)buffers[0] + *(float *)buffers[1];
    float update = (float)(scalars->values[RATE] / scalars->values[RECORDS]) * sum;
    bool finite = isfinite(update);
    *(bool *)buffers[4] = finite;
    if (finite) {
        *(float *)buffers[2] -= update;
        *(float *)buffers[3] += 1;
    }
}

static void fields(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    *(float *)buffers[2] = (float)((*(double *)buffers[0] + *(double *)buffers[1]) / scalars->values[RECORDS]);
}

static void eval_micro(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    float gradient = 0;
    void *const all[] = {buffers[0], buffers[1], buffers[2], &gradient, buffers[3]};
    micro(all, scalars, first, last);
}

static void scale(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    for (int64_t i = 0; i < scalars->rows; i++)
        ((float *)buffers[2])[i] = *(float *)buffers[1] * ((float *)buffers[0])[i];
}

/* x, w, by; out. */
static void shift(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)first, (void)last;
    for (int64_t i = 0; i < scalars->rows; i++)
        ((float *)buffers[3])[i] = *(float *)buffers[1] * ((float *)buffers[0])[i] + (float)*(int32_t *)buffers[2];
}

enum { K_INIT, K_MICRO, K_TAIL, K_FIELDS, K_EVAL_MICRO, K_SCALE, K_SHIFT, KERNEL_COUNT };
static TgKernel *const kernels[KERNEL_COUNT] = {init, micro, tail, fields, eval_micro, scale, shift};

enum { W, COUNT, X, Y, GRADIENT, ERROR, EVAL_ERROR, LOSS, EVAL_LOSS, FINITE, OUT, BY, BUFFER_COUNT };

static PlanBuffer buffer(const char *name, PlanBufferClass class, DType dtype, uint8_t rank, int64_t lanes) {
    PlanBuffer made = {.name = name,
                       .class = class,
                       .dtype = dtype,
                       .rank = rank,
                       .dims = {MICRO},
                       .batch_axis = rank > 0 ? 0 : -1,
                       .row_size = 1,
                       .lanes = lanes,
                       .lane_bytes = lanes > 1 ? 64 : 0};
    made.bytes = tg_dtype(dtype)->bytes * (rank > 0 ? MICRO : 1);
    return made;
}

TgProgram tiny_program(Arena *arena, const char *folder) {
    PlanBuffer buffers[BUFFER_COUNT] = {
        [W] = buffer("net.w", PLAN_PARAM, DT_F32, 0, 1),
        [COUNT] = buffer("optimizer.net.w.count", PLAN_OPTIMIZER, DT_F32, 0, 1),
        [X] = buffer("x", PLAN_INPUT, DT_F32, 1, 1),
        [Y] = buffer("y", PLAN_INPUT, DT_F32, 1, 1),
        [GRADIENT] = buffer("", PLAN_SUM, DT_F32, 0, LANES),
        [ERROR] = buffer("", PLAN_SUM, DT_F64, 0, LANES),
        [EVAL_ERROR] = buffer("", PLAN_SUM, DT_F64, 0, LANES),
        [LOSS] = buffer("loss", PLAN_OUTPUT, DT_F32, 0, 1),
        [EVAL_LOSS] = buffer("loss", PLAN_OUTPUT, DT_F32, 0, 1),
        [FINITE] = buffer("finite", PLAN_OUTPUT, DT_BOOL, 0, 1),
        [OUT] = buffer("y", PLAN_OUTPUT, DT_F32, 1, 1),
        [BY] = buffer("by", PLAN_INPUT, DT_I32, 0, 1),
    };
    int64_t end = 0;
    for (int i = 0; i < BUFFER_COUNT; i++) {
        buffers[i].offset = end;
        end += 64 * buffers[i].lanes;
    }
    enum { NOW = TG_LANE_CURRENT };
    PlanOperand operands[] = {
        {W, 0, 0},          {COUNT, 0, 0},                                                                /* init: 0 */
        {X, 0, 0},          {Y, 0, 0},          {W, 0, 0},         {GRADIENT, NOW, 0},   {ERROR, NOW, 0}, /* micro: 2 */
        {GRADIENT, 0, 0},   {GRADIENT, 1, 0},   {W, 0, 0},         {COUNT, 0, 0},        {FINITE, 0, 0},  /* tail: 7 */
        {ERROR, 0, 0},      {ERROR, 1, 0},      {LOSS, 0, 0},                            /* fields: 12 */
        {X, 0, 0},          {Y, 0, 0},          {W, 0, 0},         {EVAL_ERROR, NOW, 0}, /* eval.micro: 15 */
        {EVAL_ERROR, 0, 0}, {EVAL_ERROR, 1, 0}, {EVAL_LOSS, 0, 0},                       /* eval.fields: 19 */
        {X, 0, 0},          {W, 0, 0},          {OUT, 0, 0},                             /* scale: 22 */
        {X, 0, 0},          {W, 0, 0},          {BY, 0, 0},        {OUT, 0, 0}};         /* shift: 25 */
    static const uint32_t firsts[] = {0, 2, 7, 12, 15, 19, 22, 25, 29},
                          kernel_of[] = {K_INIT, K_MICRO, K_TAIL, K_FIELDS, K_EVAL_MICRO, K_FIELDS, K_SCALE, K_SHIFT};
    PlanStep steps[8];
    for (uint32_t i = 0; i < 8; i++)
        steps[i] = (PlanStep){.kind = STEP_KERNEL,
                              .label = "",
                              .index = kernel_of[i],
                              .tiles = 1,
                              .buffer_first = firsts[i],
                              .buffer_count = firsts[i + 1] - firsts[i]};
    PlanResult results[] = {{"finite", FINITE}, {"loss", LOSS}, {"loss", EVAL_LOSS}, {"y", OUT}};
    uint32_t inputs[] = {X, Y, X, BY};
    PlanFunc funcs[] = {
        {PLAN_INIT, "init", MICRO, 0, 1, 0, 0, 0, 0},
        {PLAN_MICRO, "micro", MICRO, 1, 1, 0, 2, 0, 0},
        {PLAN_TAIL, "tail", MICRO, 2, 1, 0, 0, 0, 1},
        {PLAN_FIELDS, "fields", MICRO, 3, 1, 0, 0, 1, 1},
        {PLAN_EVAL_MICRO, "eval.micro", MICRO, 4, 1, 0, 2, 0, 0},
        {PLAN_EVAL_FIELDS, "eval.fields", MICRO, 5, 1, 0, 0, 2, 1},
        {PLAN_EXPORT, "export.scale", MICRO, 6, 1, 0, 1, 3, 1},
        {PLAN_EXPORT, "export.shift", MICRO, 7, 1, 2, 2, 3, 1},
    };
    PlanScalar scalars[SCALAR_COUNT] = {
        [STEP] = {"step", PLAN_SCALAR_BUILTIN, 0},
        [RECORDS] = {"records", PLAN_SCALAR_BUILTIN, 0},
        [LANE_START] = {"lane_start", PLAN_SCALAR_BUILTIN, 0},
        [RATE] = {"optimizer.lr", PLAN_SCALAR_SETTING, 0.05},
        [EPOCH] = {"epoch", PLAN_SCALAR_BUILTIN, 0},
        [TOTAL_STEPS] = {"total_steps", PLAN_SCALAR_BUILTIN, 0},
    };
    PlanField columns[] = {
        {.name = "x", .reader = "csv", .path = "data.csv", .columns = "x", .dtype = DT_F32, .line = {"tiny.tg", 2, 5}},
        {.name = "y", .reader = "csv", .path = "data.csv", .columns = "y", .dtype = DT_F32, .line = {"tiny.tg", 3, 5}},
    };
    PlanSplit splits[] = {{"train", 0.8}, {"test", 0.2}};
    PlanSetting settings[] = {{"optimizer.lr", "0.05", "tiny.tg:9", true}, {"hidden", "8", "tiny.tg:1", false}};
    PlanDataSet validate = {.name = "D.test", .split = "test", .field_count = 2, .split_count = 2};
    TgPlan plan = {
        .arena_bytes = end,
        .persistent_bytes = 128,
        .buffers = buffers,
        .buffer_count = BUFFER_COUNT,
        .steps = steps,
        .step_count = 8,
        .step_buffers = operands,
        .step_buffer_count = 29,
        .funcs = funcs,
        .func_count = 8,
        .inputs = inputs,
        .input_count = 4,
        .results = results,
        .result_count = 4,
        .scalars = scalars,
        .scalar_count = SCALAR_COUNT,
        .fields = columns,
        .field_count = 2,
        .splits = splits,
        .split_count = 2,
        .settings = settings,
        .setting_count = 2,
        .train = {.name = "D.train", .split = "train", .field_count = 2, .split_count = 2},
        .validate = &validate,
        .validate_count = 1,
        .kernel_count = KERNEL_COUNT,
        .batch = 4,
        .micro = MICRO,
        .lanes = LANES,
        .epochs = 5,
        .seed = 1,
        .shuffle = true,
        .source_path = "tiny.tg",
        .source_directory = folder,
        .model_text = "",
        .loss = "loss",
        .clip_setting = "",
        .tgc = "",
        .library_directory = "",
        .cpu = "any",
    };
    Str text = tg_str(arena);
    CU_ASSERT_EQUAL_FATAL(tg_plan_write(&text, &plan), TG_OK);
    return (TgProgram){.abi = TG_ABI_VERSION,
                       .kernel_count = KERNEL_COUNT,
                       .plan = text.text,
                       .plan_bytes = text.length,
                       .kernels = kernels};
}
