/* A dot of the plan: its tasks (piece, group, tile), each one call of the library on one thread, and the tree that adds
 * the pieces. */
#include "runtime/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

/* What a full tile (0) and the last one (1) call, down and across. */
typedef struct TileCall {
    DnnShape shape;   /* of the task */
    uint32_t library; /* into CpuDevice.calls; for CONVERT the f32 product inside */
    bool convert;
    bool adds_bias; /* the library does not */
} TileCall;

typedef struct CpuDot {
    PlanDot dot;
    DType sum_dtype; /* of scratch: f32, f64 if the result is f64 */
    DType bias_dtype;
    int64_t piece_k;      /* k of one call */
    int64_t down, across; /* tiles */
    int64_t tasks;
    bool split;
    size_t a_bytes, bias_bytes, out_bytes, sum_bytes; /* of an element */
    TileCall calls[2][2];
} CpuDot;

/* One run of a dot: what its tasks read. */
typedef struct DotRun {
    const CpuDevice *device;
    const CpuDot *dot;
    const char *a, *b, *bias;
    char *out, *scratch;
} DotRun;

static bool is_own_loop(DnnVariant variant) { return variant == DNN_PLAIN || variant == DNN_COLUMN; }

static bool same_shape(const DnnShape *x, const DnnShape *y) {
    return x->variant == y->variant && x->dtype == y->dtype && x->out_dtype == y->out_dtype && x->bias == y->bias &&
           x->bias_dtype == y->bias_dtype && x->m == y->m && x->n == y->n && x->k == y->k && x->a_m == y->a_m &&
           x->a_k == y->a_k && x->b_k == y->b_k && x->b_n == y->b_n && x->out_m == y->out_m && x->adds == y->adds;
}

static void say(const CpuDevice *device, Status status, const DnnShape *s) {
    if (status == TG_MEMORY)
        snprintf(device->options.why, TG_DEVICE_WHY, "no memory left");
    else
        snprintf(device->options.why, TG_DEVICE_WHY, "oneDNN refuses a dot of %lld x %lld x %lld in %s",
                 (long long)s->m, (long long)s->n, (long long)s->k, tg_dtype(s->dtype)->name);
}

/* TG_MODEL: the library has no such call on this machine. */
Status tg_cpu_find_call(CpuDevice *device, const DnnShape *shape, uint32_t *index) {
    for (*index = 0; *index < device->calls.count; (*index)++)
        if (same_shape(&device->calls.at[*index].shape, shape))
            return TG_OK;
    TG_TRY(tg_cpu_library(device));
    CpuCall call = {.shape = *shape};
    Status status = device->dnn->prepare(device->library, shape, &call.call, &call.scratch_bytes);
    if (status != TG_OK) {
        say(device, status, shape);
        return status;
    }
    tg_push(device->options.arena, &device->calls, call);
    return TG_OK;
}

void tg_cpu_need_scratch(CpuDevice *device, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (bytes > device->scratch_bytes)
        device->scratch_bytes = bytes;
}

static Status prepare_tile(CpuDevice *device, const CpuDot *cpu, int64_t m, int64_t n, TileCall *tile) {
    const PlanDot *dot = &cpu->dot;
    bool whole = dot->pieces == 1;
    tile->shape = (DnnShape){.variant = (DnnVariant)dot->variant,
                             .dtype = dot->dtype,
                             .out_dtype = whole ? dot->out_dtype : cpu->sum_dtype,
                             .bias = whole && dot->bias,
                             .bias_dtype = cpu->bias_dtype,
                             .m = m,
                             .n = n,
                             .k = cpu->piece_k,
                             .a_m = dot->a_m,
                             .a_k = dot->a_k,
                             .b_k = dot->b_k,
                             .b_n = dot->b_n,
                             .out_m = whole ? dot->out_m : dot->n,
                             .adds = whole ? dot->adds : dot->continues};
    if (is_own_loop((DnnVariant)dot->variant))
        return TG_OK;
    tile->convert = dot->variant == DNN_CONVERT || (tile->shape.adds && dot->variant == DNN_MATMUL);
    if (!tile->convert) {
        tile->adds_bias = tile->shape.bias && dot->variant != DNN_MATMUL;
        DnnShape called = tile->shape;
        if (tile->adds_bias || !called.bias)
            called.bias = false, called.bias_dtype = DT_F32;
        Status status = tg_cpu_find_call(device, &called, &tile->library);
        if (status == TG_OK)
            tg_cpu_need_scratch(device, device->calls.at[tile->library].scratch_bytes);
        if (status != TG_MODEL)
            return status;
        tile->convert = true;
        tile->adds_bias = false;
    }
    DnnShape inner = tg_cpu_convert_inner(&tile->shape);
    TG_TRY(tg_cpu_find_call(device, &inner, &tile->library));
    tg_cpu_need_scratch(device, tg_cpu_convert_bytes(&tile->shape, device->calls.at[tile->library].scratch_bytes));
    return TG_OK;
}

static Status check(const CpuDevice *device, const PlanDot *dot) {
    bool f64 = dot->dtype == DT_F64;
    bool right = tg_is_float(dot->dtype) && tg_is_float(dot->out_dtype) && dot->variant < DNN_VARIANT_COUNT &&
                 dot->pieces >= 1 && !(dot->bias && dot->adds) && dot->k % dot->pieces == 0 && dot->tile_m >= 1 && dot->tile_n >= 1 &&
                 f64 == (dot->variant == DNN_PLAIN) && dot->inner >= 1 && (f64 || dot->out_dtype != DT_F64);
    if (dot->variant == DNN_COLUMN)
        right &= dot->dtype == DT_F32 && dot->out_dtype == DT_F32 && dot->n == 1 && dot->a_k == 1;
    if (right)
        return TG_OK;
    snprintf(
        device->options.why, TG_DEVICE_WHY,
        "the plan has a dot that cannot be: %s to %s, %lld x %lld x %lld in %lld pieces, tile %lld x %lld, variant %u",
        tg_dtype(dot->dtype)->name, tg_dtype(dot->out_dtype)->name, (long long)dot->m, (long long)dot->n,
        (long long)dot->k, (long long)dot->pieces, (long long)dot->tile_m, (long long)dot->tile_n, dot->variant);
    return TG_INTERNAL;
}

Status tg_cpu_dot_prepare(TgDevice *base, const PlanDot *dot, DType bias, TgDeviceDot **prepared) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    TG_TRY(check(device, dot));
    CpuDot *cpu = TG_ALLOC(device->options.arena, CpuDot, 1);
    cpu->dot = *dot;
    cpu->bias_dtype = bias;
    cpu->sum_dtype = dot->out_dtype == DT_F64 ? DT_F64 : DT_F32;
    cpu->piece_k = dot->k / dot->pieces;
    cpu->down = (dot->m + dot->tile_m - 1) / dot->tile_m;
    cpu->across = (dot->n + dot->tile_n - 1) / dot->tile_n;
    cpu->bias_bytes = tg_dtype(bias)->bytes;
    cpu->a_bytes = tg_dtype(dot->dtype)->bytes;
    cpu->out_bytes = tg_dtype(dot->out_dtype)->bytes;
    cpu->sum_bytes = tg_dtype(cpu->sum_dtype)->bytes;
    cpu->tasks = dot->pieces * dot->groups * cpu->down * cpu->across;
    *prepared = (TgDeviceDot *)(void *)cpu;
    if (cpu->tasks == 0 || dot->k == 0)
        return TG_OK;
    int64_t last_m = dot->m - (cpu->down - 1) * dot->tile_m, last_n = dot->n - (cpu->across - 1) * dot->tile_n;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if ((i || cpu->down > 1) && (j || cpu->across > 1))
                TG_TRY(
                    prepare_tile(device, cpu, i ? last_m : dot->tile_m, j ? last_n : dot->tile_n, &cpu->calls[i][j]));
    double flops = 2.0 * (double)dot->groups * (double)dot->m * (double)dot->n * (double)dot->k;
    enum { FLOPS_A_MICROSECOND = 100000 };
    cpu->split = cpu->tasks > 1 && tg_cpu_splits(device, flops / FLOPS_A_MICROSECOND);
    return TG_OK;
}

static void add_bias(const TileCall *tile, const DnnTask *task) {
    const DnnShape *s = &tile->shape;
    float *out = task->out;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            out[i * s->out_m + j] += (float)tg_element_get(s->bias_dtype, task->bias, j);
}

static void run_tile(const CpuDevice *device, const TileCall *tile, int thread, const DnnTask *task) {
    if (tile->shape.variant == DNN_PLAIN) {
        tg_cpu_plain(&tile->shape, task);
    } else if (tile->shape.variant == DNN_COLUMN) {
        tg_cpu_column(&tile->shape, task);
    } else if (tile->convert) {
        tg_cpu_convert(device, &device->calls.at[tile->library], &tile->shape, thread, task);
    } else {
        device->dnn->run(device->calls.at[tile->library].call, thread, task);
        if (tile->adds_bias)
            add_bias(tile, task);
    }
}

/* Elements from the start of the result to a row of a group. */
static int64_t out_row(const PlanDot *dot, int64_t group, int64_t row) {
    return tg_dot_group(dot, group, dot->out_group, dot->out_inner) + row * dot->out_m;
}

static void run_tasks(void *context, int thread, int64_t first, int64_t last) {
    const DotRun *run = context;
    const CpuDot *cpu = run->dot;
    const PlanDot *dot = &cpu->dot;
    DnnTask task = {.scratch = run->device->scratch + (size_t)thread * run->device->scratch_bytes};
    for (int64_t t = first; t < last; t++) {
        int64_t across = t % cpu->across, down = t / cpu->across % cpu->down;
        int64_t group = t / (cpu->across * cpu->down) % dot->groups,
                piece = t / (cpu->across * cpu->down * dot->groups);
        int64_t row = down * dot->tile_m, column = across * dot->tile_n, k = piece * cpu->piece_k;
        int64_t a = tg_dot_group(dot, group, dot->a_group, dot->a_inner) + row * dot->a_m + k * dot->a_k;
        int64_t b = tg_dot_group(dot, group, dot->b_group, dot->b_inner) + k * dot->b_k + column * dot->b_n;
        task.a = run->a + a * (int64_t)cpu->a_bytes;
        task.b = run->b + b * (int64_t)cpu->a_bytes;
        task.bias = run->bias ? run->bias + column * (int64_t)cpu->bias_bytes : NULL;
        if (dot->pieces == 1)
            task.out = run->out + (out_row(dot, group, row) + column) * (int64_t)cpu->out_bytes;
        else
            task.out = run->scratch +
                       (((piece * dot->groups + group) * dot->m + row) * dot->n + column) * (int64_t)cpu->sum_bytes;
        run_tile(run->device, &cpu->calls[down == cpu->down - 1][across == cpu->across - 1], thread, &task);
    }
}

/* sums[piece][i] for i in [0, count): the tree, neighbours first, into piece 0. */
#define ADD_TREE(type, sums, pieces, stride, count)                                                                    \
    for (int64_t width = 1; width < (pieces); width *= 2)                                                              \
        for (int64_t piece = 0; piece + width < (pieces); piece += 2 * width) {                                        \
            type *into = (sums) + piece * (stride);                                                                    \
            const type *from = (sums) + (piece + width) * (stride);                                                    \
            for (int64_t i = 0; i < (count); i++)                                                                      \
                into[i] += from[i];                                                                                    \
        }

/* Rows [first, last) of groups x m: adds the pieces, then the bias or what is there, and rounds once. */
static void combine_rows(void *context, int thread, int64_t first, int64_t last) {
    (void)thread;
    const DotRun *run = context;
    const CpuDot *cpu = run->dot;
    const PlanDot *dot = &cpu->dot;
    int64_t stride = dot->groups * dot->m * dot->n, count = (last - first) * dot->n;
    char *sums = run->scratch + first * dot->n * (int64_t)cpu->sum_bytes;
    if (cpu->sum_dtype == DT_F64) {
        ADD_TREE(double, (double *)(void *)sums, dot->pieces, stride, count)
    } else {
        ADD_TREE(float, (float *)(void *)sums, dot->pieces, stride, count)
    }
    for (int64_t row = first; row < last; row++) {
        char *from = sums + (row - first) * dot->n * (int64_t)cpu->sum_bytes;
        int64_t out = out_row(dot, row / dot->m, row % dot->m);
        char *to = run->out + out * (int64_t)cpu->out_bytes;
        for (int64_t i = 0; (run->bias || dot->adds) && i < dot->n; i++) {
            double third = run->bias ? tg_element_get(cpu->bias_dtype, run->bias, i) : tg_element_get(dot->out_dtype, to, i);
            tg_element_set(cpu->sum_dtype, from, i, tg_element_get(cpu->sum_dtype, from, i) + third);
        }
        if (cpu->sum_dtype == DT_F64)
            memcpy(to, from, (size_t)dot->n * cpu->sum_bytes);
        else
            tg_cpu_narrow(dot->out_dtype, (const float *)(const void *)from, to, dot->n);
    }
}

/* A sum over nothing: zeros, the bias, or what is there. */
static void fill_empty(const DotRun *run) {
    const PlanDot *dot = &run->dot->dot;
    for (int64_t row = 0; !dot->adds && row < dot->groups * dot->m; row++)
        for (int64_t i = 0; i < dot->n; i++)
            tg_element_set(dot->out_dtype, run->out, out_row(dot, row / dot->m, row % dot->m) + i,
                           run->bias ? tg_element_get(run->dot->bias_dtype, run->bias, i) : 0);
}

static DotRun run_of(const CpuDevice *device, const CpuDot *cpu, void *const *buffers) {
    const PlanDot *dot = &cpu->dot;
    return (DotRun){.device = device,
                    .dot = cpu,
                    .a = buffers[0],
                    .b = buffers[1],
                    .bias = dot->bias ? buffers[2] : NULL,
                    .out = buffers[2 + dot->bias],
                    .scratch = dot->pieces > 1 ? buffers[3 + dot->bias] : NULL};
}

void tg_cpu_dot_tasks(CpuDevice *device, TgDeviceDot *prepared, void *const *buffers, int thread, int64_t first, int64_t last) {
    DotRun run = run_of(device, (const CpuDot *)(const void *)prepared, buffers);
    run_tasks(&run, thread, first, last);
}

void tg_cpu_dot(TgDevice *base, TgDeviceDot *prepared, void *const *buffers) {
    CpuDevice *device = (CpuDevice *)(void *)base;
    const CpuDot *cpu = (const CpuDot *)(const void *)prepared;
    const PlanDot *dot = &cpu->dot;
    DotRun run = run_of(device, cpu, buffers);
    if (cpu->tasks == 0)
        return;
    if (dot->k == 0) {
        fill_empty(&run);
        return;
    }
    bool split = cpu->split && device->pool;
    if (split)
        tg_pool_run(device->pool, run_tasks, &run, cpu->tasks);
    else
        run_tasks(&run, 0, 0, cpu->tasks);
    if (dot->pieces == 1 || dot->open)
        return;
    if (split)
        tg_pool_run(device->pool, combine_rows, &run, dot->groups * dot->m);
    else
        combine_rows(&run, 0, 0, dot->groups * dot->m);
}
