/* An attention by blocks of queries (PlanAttention). Forward a task is one block of one head; backward it is one key, whose dk and dv
   its heads and blocks add to in order. A task's tiles of scores lie in its thread's scratch. */
#include "runtime/cpu/cpu.h"

#include <string.h>

/* The products of a block of queries. */
typedef enum Product { SCORES, VALUES, WEIGHT_GRADIENT, DQ, DK, DV, PRODUCTS } Product;

typedef struct CpuAttention {
    PlanAttention sizes;
    TgKernel *weights, *score_gradient;
    int64_t blocks;
    bool split;
    uint32_t (*calls)[PRODUCTS]; /* per block, into CpuDevice.calls */
} CpuAttention;

/* One run: what its tasks read and write. */
typedef struct AttentionRun {
    const CpuDevice *device;
    const CpuAttention *attention;
    const TgScalars *scalars;
    bool dots_only;
    const float *q, *k, *v, *gradient;
    float *out, *dq, *dk, *dv;
} AttentionRun;

/* Elements of each tile. */
static int64_t tile_elements(const PlanAttention *a) { return TG_ATTENTION_BLOCK * a->positions; }

static DnnShape product_shape(const PlanAttention *a, Product product, int64_t rows, int64_t columns) {
    int64_t d = a->depth, e = a->value_depth, s = a->positions;
    const DnnShape shapes[PRODUCTS] = {
        [SCORES] = {.m = rows, .n = columns, .k = d, .a_m = d, .a_k = 1, .b_k = 1, .b_n = d, .out_m = s},
        [VALUES] = {.m = rows, .n = e, .k = columns, .a_m = s, .a_k = 1, .b_k = e, .b_n = 1, .out_m = e},
        [WEIGHT_GRADIENT] = {.m = rows, .n = columns, .k = e, .a_m = e, .a_k = 1, .b_k = 1, .b_n = e, .out_m = s},
        [DQ] = {.m = rows, .n = d, .k = columns, .a_m = s, .a_k = 1, .b_k = d, .b_n = 1, .out_m = d},
        [DK] = {.m = columns, .n = d, .k = rows, .a_m = 1, .a_k = s, .b_k = d, .b_n = 1, .out_m = d, .adds = true},
        [DV] = {.m = columns, .n = e, .k = rows, .a_m = 1, .a_k = s, .b_k = e, .b_n = 1, .out_m = e, .adds = true},
    };
    DnnShape shape = shapes[product];
    shape.variant = DNN_SGEMM;
    shape.dtype = shape.out_dtype = shape.bias_dtype = DT_F32;
    return shape;
}

static bool is_needed(const PlanAttention *a, Product product) {
    const bool needed[PRODUCTS] = {
        [SCORES] = true,    [VALUES] = !a->backward,        [WEIGHT_GRADIENT] = a->dq || a->dk,
        [DQ] = a->dq,       [DK] = a->dk,                   [DV] = a->dv,
    };
    return needed[product];
}

Status tg_cpu_attention_prepare(TgDevice *base, const PlanAttention *sizes, TgKernel *weights, TgKernel *score_gradient,
                                TgDeviceAttention **prepared) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    CpuAttention *a = TG_ALLOC(device->options.arena, CpuAttention, 1);
    *a = (CpuAttention){.sizes = *sizes, .weights = weights, .score_gradient = score_gradient, .blocks = tg_attention_blocks(sizes)};
    *prepared = (TgDeviceAttention *)(void *)a;
    a->calls = tg_arena_alloc(device->options.arena, (size_t)a->blocks * sizeof *a->calls);
    double pairs = 0;
    for (int64_t i = 0; i < a->blocks; i++) {
        int64_t rows = tg_attention_rows(sizes, i), columns = tg_attention_columns(sizes, i);
        pairs += (double)rows * (double)columns;
        for (Product p = 0; p < PRODUCTS; p++) {
            DnnShape shape = product_shape(sizes, p, rows, columns);
            if (is_needed(sizes, p))
                TG_TRY(tg_cpu_find_call(device, &shape, &a->calls[i][p]));
        }
    }
    tg_cpu_need_scratch(device, (size_t)tile_elements(sizes) * (sizes->backward ? 2 : 1) * sizeof(float));
    enum { PAIRS_A_MICROSECOND = 500 };
    a->split = tg_cpu_splits(device, pairs * (double)(sizes->keys * sizes->heads) / PAIRS_A_MICROSECOND);
    return TG_OK;
}

/* `first`, `second`: where the operands of the block begin. */
static void multiply(const AttentionRun *run, int thread, Product product, int64_t block, const float *first, const float *second,
                     float *out) {
    const DnnTask task = {.a = first, .b = second, .out = out};
    const CpuDevice *device = run->device;
    device->dnn->run(device->calls.at[run->attention->calls[block][product]].call, thread, &task);
}

/* Where the scores of all queries would begin, those of a block lying at `block`. */
static void *before(float *block, int64_t elements) {
    return (void *)((uintptr_t)block - (uintptr_t)elements * sizeof(float));
}

static void rows_of_block(const AttentionRun *run, TgKernel *kernel, int64_t block, float *first, float *second) {
    if (run->dots_only)
        return;
    const PlanAttention *a = &run->attention->sizes;
    int64_t begin = block * TG_ATTENTION_BLOCK;
    void *const buffers[] = {before(first, begin * a->positions), before(second, begin * a->positions)};
    kernel(buffers, run->scalars, begin, begin + tg_attention_rows(a, block));
}

static float *scratch_of(const AttentionRun *run, int thread) {
    return (float *)(void *)(run->device->scratch + (size_t)thread * run->device->scratch_bytes);
}

static void run_forward(void *context, int thread, int64_t first, int64_t last) {
    const AttentionRun *run = context;
    const PlanAttention *a = &run->attention->sizes;
    float *scores = scratch_of(run, thread);
    for (int64_t t = first; t < last; t++) {
        int64_t block = t % run->attention->blocks, head = t / run->attention->blocks, key = head / a->heads;
        int64_t query = head * a->queries + block * TG_ATTENTION_BLOCK;
        multiply(run, thread, SCORES, block, run->q + query * a->depth, run->k + key * a->positions * a->depth, scores);
        rows_of_block(run, run->attention->weights, block, scores, NULL);
        multiply(run, thread, VALUES, block, scores, run->v + key * a->positions * a->value_depth, run->out + query * a->value_depth);
    }
}

static void block_gradients(const AttentionRun *run, int thread, int64_t head, int64_t block) {
    const PlanAttention *a = &run->attention->sizes;
    int64_t query = head * a->queries + block * TG_ATTENTION_BLOCK, position = head / a->heads * a->positions;
    const float *q = run->q + query * a->depth, *k = run->k + position * a->depth;
    const float *gradient = run->gradient + query * a->value_depth;
    float *weights = scratch_of(run, thread), *scores = weights + tile_elements(a);
    multiply(run, thread, SCORES, block, q, k, weights);
    rows_of_block(run, run->attention->weights, block, weights, NULL);
    if (a->dv)
        multiply(run, thread, DV, block, weights, gradient, run->dv + position * a->value_depth);
    if (!a->dq && !a->dk)
        return;
    multiply(run, thread, WEIGHT_GRADIENT, block, gradient, run->v + position * a->value_depth, scores);
    rows_of_block(run, run->attention->score_gradient, block, weights, scores);
    if (a->dq)
        multiply(run, thread, DQ, block, scores, k, run->dq + query * a->depth);
    if (a->dk)
        multiply(run, thread, DK, block, scores, q, run->dk + position * a->depth);
}

static void run_backward(void *context, int thread, int64_t first, int64_t last) {
    const AttentionRun *run = context;
    const PlanAttention *a = &run->attention->sizes;
    for (int64_t key = first; key < last; key++) {
        if (a->dk)
            memset(run->dk + key * a->positions * a->depth, 0, (size_t)(a->positions * a->depth) * sizeof(float));
        if (a->dv)
            memset(run->dv + key * a->positions * a->value_depth, 0, (size_t)(a->positions * a->value_depth) * sizeof(float));
        for (int64_t head = key * a->heads; head < (key + 1) * a->heads; head++)
            for (int64_t block = 0; block < run->attention->blocks; block++)
                block_gradients(run, thread, head, block);
    }
}

void tg_cpu_attention(TgDevice *base, TgDeviceAttention *prepared, void *const *buffers, const TgScalars *scalars, bool dots_only) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    const CpuAttention *attention = (const CpuAttention *)(const void *)prepared;
    const PlanAttention *a = &attention->sizes;
    AttentionRun run = {.device = device, .attention = attention, .scalars = scalars, .dots_only = dots_only,
                        .q = buffers[0], .k = buffers[1], .v = buffers[2]};
    void *const *next = buffers + 4;
    if (a->backward) {
        run.gradient = buffers[3];
        run.dq = a->dq ? *next++ : NULL;
        run.dk = a->dk ? *next++ : NULL;
        run.dv = a->dv ? *next++ : NULL;
    } else {
        run.out = buffers[3];
    }
    int64_t tasks = a->backward ? a->keys : a->keys * a->heads * attention->blocks;
    TgPoolTask *task = a->backward ? run_backward : run_forward;
    if (attention->split && device->pool && tasks > 1)
        tg_pool_run(device->pool, task, &run, tasks);
    else
        task(&run, 0, 0, tasks);
}
