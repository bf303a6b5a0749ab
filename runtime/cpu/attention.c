/* An attention by blocks of queries (PlanAttention). Forward a task is one block of one head; backward it is one key, whose dk and dv
   its heads and blocks add to in order. A task's tiles of scores lie in its thread's scratch. */
#include "runtime/cpu/cpu.h"

#include <string.h>

/* The products of a block of queries. */
typedef enum Product { SCORES, VALUES, WEIGHT_GRADIENT, DQ, DK, DV, PRODUCTS } Product;

/* What products and row kernels read and write. The FACTORs are weights, and the scores' gradient, as products read them. */
typedef enum Matrix {
    MATRIX_Q, MATRIX_K, MATRIX_V, MATRIX_GRADIENT, MATRIX_SCORES, MATRIX_WEIGHTS, MATRIX_WEIGHT_FACTOR, MATRIX_WEIGHT_GRADIENT,
    MATRIX_SCORE_GRADIENT, MATRIX_SCORE_FACTOR, MATRIX_OUT, MATRIX_DQ, MATRIX_DK, MATRIX_DV, MATRICES,
} Matrix;

static const struct {
    Matrix first, second, result;
} parts[PRODUCTS] = {
    [SCORES] = {MATRIX_Q, MATRIX_K, MATRIX_SCORES},
    [VALUES] = {MATRIX_WEIGHT_FACTOR, MATRIX_V, MATRIX_OUT},
    [WEIGHT_GRADIENT] = {MATRIX_GRADIENT, MATRIX_V, MATRIX_WEIGHT_GRADIENT},
    [DQ] = {MATRIX_SCORE_FACTOR, MATRIX_K, MATRIX_DQ},
    [DK] = {MATRIX_SCORE_FACTOR, MATRIX_Q, MATRIX_DK},
    [DV] = {MATRIX_WEIGHT_FACTOR, MATRIX_GRADIENT, MATRIX_DV},
};

/* Products are f32. Their operands have the attention's type, or are f32 copies where the library has no products of that. */
typedef struct CpuAttention {
    PlanAttention sizes;
    TgKernel *weights, *score_gradient;
    int64_t blocks;
    bool split;
    DType factors;               /* of the products' operands */
    bool copies;                 /* they are copies */
    int64_t scratch[MATRICES];   /* where a matrix lies in a thread's scratch, in bytes; -1: not there */
    uint32_t (*calls)[PRODUCTS]; /* per block, into CpuDevice.calls */
} CpuAttention;

/* One run: what its tasks read and write. */
typedef struct AttentionRun {
    const CpuDevice *device;
    const CpuAttention *attention;
    const TgScalars *scalars;
    bool dots_only;
    char *buffer[MATRICES];
} AttentionRun;

/* Where a thread's matrices begin, for the block at hand. */
typedef struct Place {
    const AttentionRun *run;
    int thread;
    void *at[MATRICES];
} Place;

static DnnShape product_shape(const CpuAttention *attention, Product product, int64_t rows, int64_t columns) {
    const PlanAttention *a = &attention->sizes;
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
    shape.variant = attention->factors == DT_BF16 ? DNN_GEMM_BF16 : DNN_SGEMM;
    shape.dtype = attention->factors;
    shape.out_dtype = shape.bias_dtype = DT_F32;
    return shape;
}

static bool is_needed(const PlanAttention *a, Product product) {
    const bool needed[PRODUCTS] = {
        [SCORES] = true,    [VALUES] = !a->backward,        [WEIGHT_GRADIENT] = a->dq || a->dk,
        [DQ] = a->dq,       [DK] = a->dk,                   [DV] = a->dv,
    };
    return needed[product];
}

/* TG_MODEL: the library has no products of the type `factors` on this machine. */
static Status find_calls(CpuDevice *device, CpuAttention *attention, DType factors) {
    const PlanAttention *a = &attention->sizes;
    attention->factors = factors;
    attention->copies = factors != a->dtype;
    for (int64_t i = 0; i < attention->blocks; i++)
        for (Product p = 0; p < PRODUCTS; p++) {
            DnnShape shape = product_shape(attention, p, tg_attention_rows(a, i), tg_attention_columns(a, i));
            if (is_needed(a, p))
                TG_TRY(tg_cpu_find_call(device, &shape, &attention->calls[i][p]));
        }
    return TG_OK;
}

static void reserve(CpuAttention *attention, size_t *bytes, Matrix matrix, int64_t elements, DType dtype) {
    attention->scratch[matrix] = (int64_t)*bytes;
    *bytes += ((size_t)elements * tg_dtype(dtype)->bytes + 63) / 64 * 64;
}

/* A block's scores, and what becomes of them, are tiles of a thread: in f32 in place, else f32 and the operands' type. Copies, and
   results that are not f32, lie beside them. */
static size_t lay_out(CpuAttention *attention) {
    const PlanAttention *a = &attention->sizes;
    int64_t block = TG_ATTENTION_BLOCK, tile = block * a->positions, *at = attention->scratch;
    bool low = a->dtype != DT_F32;
    size_t bytes = 0;
    for (Matrix m = 0; m < MATRICES; m++)
        at[m] = -1;
    reserve(attention, &bytes, MATRIX_SCORES, tile, DT_F32);
    at[MATRIX_WEIGHTS] = at[MATRIX_WEIGHT_GRADIENT] = at[MATRIX_SCORES];
    if (low)
        reserve(attention, &bytes, MATRIX_WEIGHTS, tile, a->dtype);
    else if (a->backward)
        reserve(attention, &bytes, MATRIX_WEIGHT_GRADIENT, tile, DT_F32);
    at[MATRIX_SCORE_GRADIENT] = at[MATRIX_WEIGHT_GRADIENT];
    if (low && a->backward)
        reserve(attention, &bytes, MATRIX_SCORE_GRADIENT, tile, a->dtype);
    at[MATRIX_WEIGHT_FACTOR] = at[attention->copies ? MATRIX_SCORES : MATRIX_WEIGHTS];
    at[MATRIX_SCORE_FACTOR] = at[attention->copies ? MATRIX_WEIGHT_GRADIENT : MATRIX_SCORE_GRADIENT];
    if (attention->copies) {
        reserve(attention, &bytes, MATRIX_Q, block * a->depth, DT_F32);
        reserve(attention, &bytes, MATRIX_K, a->positions * a->depth, DT_F32);
        reserve(attention, &bytes, MATRIX_V, a->positions * a->value_depth, DT_F32);
        reserve(attention, &bytes, MATRIX_GRADIENT, block * a->value_depth, DT_F32);
    }
    if (a->out_dtype != DT_F32) {
        reserve(attention, &bytes, MATRIX_OUT, block * a->value_depth, DT_F32);
        reserve(attention, &bytes, MATRIX_DQ, block * a->depth, DT_F32);
        reserve(attention, &bytes, MATRIX_DK, a->positions * a->depth, DT_F32);
        reserve(attention, &bytes, MATRIX_DV, a->positions * a->value_depth, DT_F32);
    }
    return bytes;
}

Status tg_cpu_attention_prepare(TgDevice *base, const PlanAttention *sizes, TgKernel *weights, TgKernel *score_gradient,
                                TgDeviceAttention **prepared) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    CpuAttention *a = TG_ALLOC(device->options.arena, CpuAttention, 1);
    *a = (CpuAttention){.sizes = *sizes, .weights = weights, .score_gradient = score_gradient, .blocks = tg_attention_blocks(sizes)};
    *prepared = (TgDeviceAttention *)(void *)a;
    a->calls = tg_arena_alloc(device->options.arena, (size_t)a->blocks * sizeof *a->calls);
    Status status = find_calls(device, a, sizes->dtype == DT_BF16 ? DT_BF16 : DT_F32);
    if (status == TG_MODEL)
        status = find_calls(device, a, DT_F32);
    TG_TRY(status);
    tg_cpu_need_scratch(device, lay_out(a));
    double pairs = 0;
    for (int64_t i = 0; i < a->blocks; i++)
        pairs += (double)tg_attention_rows(sizes, i) * (double)tg_attention_columns(sizes, i);
    enum { PAIRS_A_MICROSECOND = 500 };
    a->split = tg_cpu_splits(device, pairs * (double)(sizes->keys * sizes->heads) / PAIRS_A_MICROSECOND);
    return TG_OK;
}

static void multiply(const Place *place, Product product, int64_t block) {
    const CpuDevice *device = place->run->device;
    const DnnTask task = {.a = place->at[parts[product].first], .b = place->at[parts[product].second],
                          .out = place->at[parts[product].result]};
    device->dnn->run(device->calls.at[place->run->attention->calls[block][product]].call, place->thread, &task);
}

/* Rows [begin, ...) of a tile, given where the tile of all queries would begin, those of a block lying at `tile`. */
static void *before(void *tile, int64_t begin, int64_t positions, DType dtype) {
    return (void *)((uintptr_t)tile - (uintptr_t)(begin * positions) * tg_dtype(dtype)->bytes);
}

/* The factor that products read, of the `columns` of each row that they read. */
static void copy_factor(const Place *place, int64_t block, Matrix from, Matrix to) {
    const CpuAttention *attention = place->run->attention;
    const PlanAttention *a = &attention->sizes;
    for (int64_t row = 0; attention->copies && row < tg_attention_rows(a, block); row++)
        tg_cpu_widen(a->dtype, (const char *)place->at[from] + row * a->positions * tg_dtype(a->dtype)->bytes,
                     (float *)place->at[to] + row * a->positions, tg_attention_columns(a, block));
}

static void weights_of_block(const Place *place, int64_t block) {
    const AttentionRun *run = place->run;
    const PlanAttention *a = &run->attention->sizes;
    int64_t begin = block * TG_ATTENTION_BLOCK;
    void *const buffers[] = {before(place->at[MATRIX_SCORES], begin, a->positions, DT_F32),
                             before(place->at[MATRIX_WEIGHTS], begin, a->positions, a->dtype)};
    if (!run->dots_only)
        run->attention->weights(buffers, run->scalars, begin, begin + tg_attention_rows(a, block));
    copy_factor(place, block, MATRIX_WEIGHTS, MATRIX_WEIGHT_FACTOR);
}

static void score_gradient_of_block(const Place *place, int64_t block) {
    const AttentionRun *run = place->run;
    const PlanAttention *a = &run->attention->sizes;
    int64_t begin = block * TG_ATTENTION_BLOCK;
    void *const buffers[] = {before(place->at[MATRIX_WEIGHTS], begin, a->positions, a->dtype),
                             before(place->at[MATRIX_WEIGHT_GRADIENT], begin, a->positions, DT_F32),
                             before(place->at[MATRIX_SCORE_GRADIENT], begin, a->positions, a->dtype)};
    if (!run->dots_only)
        run->attention->score_gradient(buffers, run->scalars, begin, begin + tg_attention_rows(a, block));
    copy_factor(place, block, MATRIX_SCORE_GRADIENT, MATRIX_SCORE_FACTOR);
}

static Place place_of(const AttentionRun *run, int thread) {
    Place place = {.run = run, .thread = thread};
    char *scratch = run->device->scratch + (size_t)thread * run->device->scratch_bytes;
    for (Matrix m = 0; m < MATRICES; m++)
        if (run->attention->scratch[m] >= 0)
            place.at[m] = scratch + run->attention->scratch[m];
    return place;
}

/* `count` elements of an operand, from element `first` on. */
static void read_operand(Place *place, Matrix matrix, int64_t first, int64_t count) {
    const CpuAttention *attention = place->run->attention;
    DType dtype = attention->sizes.dtype;
    char *from = place->run->buffer[matrix] + first * tg_dtype(dtype)->bytes;
    if (attention->copies)
        tg_cpu_widen(dtype, from, place->at[matrix], count);
    else
        place->at[matrix] = from;
}

/* A result's elements from `first` on: products write there, or to scratch that is rounded to there. */
static char *result_at(const AttentionRun *run, Matrix matrix, int64_t first) {
    return run->buffer[matrix] + first * tg_dtype(run->attention->sizes.out_dtype)->bytes;
}

static void begin_result(Place *place, Matrix matrix, int64_t first) {
    if (place->run->attention->scratch[matrix] < 0)
        place->at[matrix] = result_at(place->run, matrix, first);
}

static void end_result(const Place *place, Matrix matrix, int64_t first, int64_t count) {
    if (place->run->attention->scratch[matrix] >= 0)
        tg_cpu_narrow(place->run->attention->sizes.out_dtype, place->at[matrix], result_at(place->run, matrix, first), count);
}

static void run_forward(void *context, int thread, int64_t first, int64_t last) {
    const AttentionRun *run = context;
    const PlanAttention *a = &run->attention->sizes;
    Place place = place_of(run, thread);
    for (int64_t t = first; t < last; t++) {
        int64_t block = t % run->attention->blocks, head = t / run->attention->blocks, key = head / a->heads;
        int64_t query = head * a->queries + block * TG_ATTENTION_BLOCK;
        int64_t rows = tg_attention_rows(a, block), columns = tg_attention_columns(a, block);
        read_operand(&place, MATRIX_Q, query * a->depth, rows * a->depth);
        read_operand(&place, MATRIX_K, key * a->positions * a->depth, columns * a->depth);
        multiply(&place, SCORES, block);
        weights_of_block(&place, block);
        read_operand(&place, MATRIX_V, key * a->positions * a->value_depth, columns * a->value_depth);
        begin_result(&place, MATRIX_OUT, query * a->value_depth);
        multiply(&place, VALUES, block);
        end_result(&place, MATRIX_OUT, query * a->value_depth, rows * a->value_depth);
    }
}

static void block_gradients(Place *place, int64_t head, int64_t block) {
    const PlanAttention *a = &place->run->attention->sizes;
    int64_t query = head * a->queries + block * TG_ATTENTION_BLOCK, rows = tg_attention_rows(a, block);
    read_operand(place, MATRIX_Q, query * a->depth, rows * a->depth);
    read_operand(place, MATRIX_GRADIENT, query * a->value_depth, rows * a->value_depth);
    multiply(place, SCORES, block);
    weights_of_block(place, block);
    if (a->dv)
        multiply(place, DV, block);
    if (!a->dq && !a->dk)
        return;
    multiply(place, WEIGHT_GRADIENT, block);
    score_gradient_of_block(place, block);
    if (a->dq) {
        begin_result(place, MATRIX_DQ, query * a->depth);
        multiply(place, DQ, block);
        end_result(place, MATRIX_DQ, query * a->depth, rows * a->depth);
    }
    if (a->dk)
        multiply(place, DK, block);
}

static void begin_sum(Place *place, Matrix matrix, int64_t first, int64_t count) {
    begin_result(place, matrix, first);
    memset(place->at[matrix], 0, (size_t)count * sizeof(float));
}

static void run_backward(void *context, int thread, int64_t first, int64_t last) {
    const AttentionRun *run = context;
    const PlanAttention *a = &run->attention->sizes;
    int64_t k = a->positions * a->depth, v = a->positions * a->value_depth;
    Place place = place_of(run, thread);
    for (int64_t key = first; key < last; key++) {
        read_operand(&place, MATRIX_K, key * k, k);
        read_operand(&place, MATRIX_V, key * v, v);
        if (a->dk)
            begin_sum(&place, MATRIX_DK, key * k, k);
        if (a->dv)
            begin_sum(&place, MATRIX_DV, key * v, v);
        for (int64_t head = key * a->heads; head < (key + 1) * a->heads; head++)
            for (int64_t block = 0; block < run->attention->blocks; block++)
                block_gradients(&place, head, block);
        if (a->dk)
            end_result(&place, MATRIX_DK, key * k, k);
        if (a->dv)
            end_result(&place, MATRIX_DV, key * v, v);
    }
}

static AttentionRun run_of(const CpuDevice *device, const CpuAttention *attention, void *const *buffers, const TgScalars *scalars,
                           bool dots_only) {
    const PlanAttention *a = &attention->sizes;
    AttentionRun run = {.device = device, .attention = attention, .scalars = scalars, .dots_only = dots_only};
    const struct { Matrix matrix; bool there; } operands[] = {
        {MATRIX_Q, true}, {MATRIX_K, true}, {MATRIX_V, true}, {MATRIX_GRADIENT, a->backward}, {MATRIX_OUT, !a->backward},
        {MATRIX_DQ, a->backward && a->dq}, {MATRIX_DK, a->backward && a->dk}, {MATRIX_DV, a->backward && a->dv},
    };
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (operands[i].there)
            run.buffer[operands[i].matrix] = *buffers++;
    return run;
}

void tg_cpu_attention_tasks(CpuDevice *device, TgDeviceAttention *prepared, void *const *buffers, const TgScalars *scalars,
                            bool dots_only, int thread, int64_t first, int64_t last) {
    const CpuAttention *attention = (const CpuAttention *)(const void *)prepared;
    AttentionRun run = run_of(device, attention, buffers, scalars, dots_only);
    (attention->sizes.backward ? run_backward : run_forward)(&run, thread, first, last);
}

void tg_cpu_attention(TgDevice *base, TgDeviceAttention *prepared, void *const *buffers, const TgScalars *scalars, bool dots_only) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    const CpuAttention *attention = (const CpuAttention *)(const void *)prepared;
    const PlanAttention *a = &attention->sizes;
    AttentionRun run = run_of(device, attention, buffers, scalars, dots_only);
    int64_t tasks = a->backward ? a->keys : a->keys * a->heads * attention->blocks;
    TgPoolTask *task = a->backward ? run_backward : run_forward;
    if (attention->split && device->pool && tasks > 1)
        tg_pool_run(device->pool, task, &run, tasks);
    else
        task(&run, 0, 0, tasks);
}
