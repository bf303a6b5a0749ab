#include "runtime/cpu/cpu.h"

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* How a copy of an operand lies: lines of the operand's own that have stride 1, or its rows. */
static bool is_by_columns(int64_t row_stride, int64_t column_stride) { return column_stride != 1 && row_stride == 1; }

static void pack_strides(int64_t rows, int64_t columns, int64_t *row_stride, int64_t *column_stride) {
    bool by_columns = is_by_columns(*row_stride, *column_stride);
    *row_stride = by_columns ? 1 : columns;
    *column_stride = by_columns ? rows : 1;
}

/* A result in f32 is written where it belongs, another one in scratch first, and so is one that is added. */
static bool needs_room(const DnnShape *s) { return s->out_dtype != DT_F32 || s->adds; }

DnnShape tg_cpu_convert_inner(const DnnShape *s) {
    DnnShape inner = *s;
    inner.variant = DNN_MATMUL;
    inner.dtype = inner.out_dtype = inner.bias_dtype = DT_F32;
    pack_strides(s->m, s->k, &inner.a_m, &inner.a_k);
    pack_strides(s->k, s->n, &inner.b_k, &inner.b_n);
    inner.adds = false;
    if (needs_room(s))
        inner.out_m = s->n;
    return inner;
}

size_t tg_cpu_convert_bytes(const DnnShape *s, size_t inner_scratch_bytes) {
    size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k, out = needs_room(s) ? m * n : 0;
    return aligned(4 * m * k) + aligned(4 * k * n) + aligned(4 * n) + aligned(4 * out) + aligned(inner_scratch_bytes);
}

static float *take(char **free, int64_t count) {
    float *memory = (float *)(void *)*free;
    *free += aligned(4 * (size_t)count);
    return memory;
}

static void pack_line(float *to, DType dtype, const void *from, int64_t first, int64_t count, int64_t stride) {
    if (stride == 1)
        tg_cpu_widen(dtype, (const char *)from + first * tg_dtype(dtype)->bytes, to, count);
    for (int64_t i = 0; stride != 1 && i < count; i++)
        to[i] = (float)tg_element_get(dtype, from, first + i * stride);
}

static const float *pack(char **free, DType dtype, const void *from, int64_t rows, int64_t columns, int64_t row_stride,
                         int64_t column_stride) {
    float *to = take(free, rows * columns);
    bool by_columns = is_by_columns(row_stride, column_stride);
    int64_t lines = by_columns ? columns : rows, count = by_columns ? rows : columns;
    for (int64_t i = 0; i < lines; i++)
        pack_line(to + i * count, dtype, from, i * (by_columns ? column_stride : row_stride), count,
                  by_columns ? row_stride : column_stride);
    return to;
}

void tg_cpu_convert(const CpuDevice *device, const CpuCall *inner, const DnnShape *s, int thread, const DnnTask *task) {
    char *free = task->scratch;
    DnnTask product = {.out = task->out};
    product.a = pack(&free, s->dtype, task->a, s->m, s->k, s->a_m, s->a_k);
    product.b = pack(&free, s->dtype, task->b, s->k, s->n, s->b_k, s->b_n);
    if (s->bias)
        product.bias = pack(&free, s->bias_dtype, task->bias, 1, s->n, 0, 1);
    float *out = NULL;
    if (needs_room(s))
        product.out = out = take(&free, s->m * s->n);
    product.scratch = free;
    device->dnn->run(inner->call, thread, &product);
    for (int64_t i = 0; out && i < s->m; i++) {
        char *to = (char *)task->out + i * s->out_m * tg_dtype(s->out_dtype)->bytes;
        for (int64_t j = 0; s->adds && j < s->n; j++)
            out[i * s->n + j] += (float)tg_element_get(s->out_dtype, to, j);
        tg_cpu_narrow(s->out_dtype, out + i * s->n, to, s->n);
    }
}

void tg_cpu_plain(const DnnShape *s, const DnnTask *task) {
    const double *a = task->a, *b = task->b;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < s->k; k++)
                sum += a[i * s->a_m + k * s->a_k] * b[k * s->b_k + j * s->b_n];
            if (s->bias)
                sum += tg_element_get(s->bias_dtype, task->bias, j);
            if (s->adds)
                sum += tg_element_get(s->out_dtype, task->out, i * s->out_m + j);
            tg_element_set(s->out_dtype, task->out, i * s->out_m + j, sum);
        }
}

enum { COLUMN_LANES = 16 };

/* Element k goes to sum k mod 16, in order; then the upper half of the sums is added to the lower until one is left. */
static float line_times_column(const float *line, const float *column, int64_t count, int64_t stride) {
    float sums[COLUMN_LANES] = {0};
    int64_t k = 0;
    for (; stride == 1 && k + COLUMN_LANES <= count; k += COLUMN_LANES)
        for (int lane = 0; lane < COLUMN_LANES; lane++)
            sums[lane] += line[k + lane] * column[k + lane];
    for (; k < count; k++)
        sums[k % COLUMN_LANES] += line[k] * column[k * stride];
    for (int half = COLUMN_LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            sums[lane] += sums[lane + half];
    return sums[0];
}

void tg_cpu_column(const DnnShape *s, const DnnTask *task) {
    const float *a = task->a, *b = task->b;
    float *out = task->out, bias = s->bias ? (float)tg_element_get(s->bias_dtype, task->bias, 0) : 0;
    for (int64_t i = 0; i < s->m; i++) {
        float sum = line_times_column(a + i * s->a_m, b, s->k, s->b_k) + bias;
        out[i * s->out_m] = s->adds ? out[i * s->out_m] + sum : sum;
    }
}
