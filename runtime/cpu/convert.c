#include "runtime/cpu/cpu.h"

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

DnnShape tg_cpu_convert_inner(const DnnShape *s) {
    return (DnnShape){.variant = DNN_MATMUL,
                      .dtype = DT_F32,
                      .out_dtype = DT_F32,
                      .bias = s->bias,
                      .bias_dtype = DT_F32,
                      .m = s->m,
                      .n = s->n,
                      .k = s->k,
                      .a_m = s->k,
                      .a_k = 1,
                      .b_k = s->n,
                      .b_n = 1,
                      .out_m = s->n};
}

size_t tg_cpu_convert_bytes(const DnnShape *s, size_t inner_scratch_bytes) {
    size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
    return aligned(4 * m * k) + aligned(4 * k * n) + aligned(4 * n) + aligned(4 * m * n) + aligned(inner_scratch_bytes);
}

static float *take(char **free, size_t count) {
    float *memory = (float *)(void *)*free;
    *free += aligned(4 * count);
    return memory;
}

static void gather(float *to, DType dtype, const void *from, int64_t rows, int64_t columns, int64_t row_stride,
                   int64_t column_stride) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            *to++ = (float)tg_element_get(dtype, from, i * row_stride + j * column_stride);
}

void tg_cpu_convert(const CpuDevice *device, const CpuCall *inner, const DnnShape *s, int thread, const DnnTask *task) {
    char *free = task->scratch;
    float *a = take(&free, (size_t)(s->m * s->k)), *b = take(&free, (size_t)(s->k * s->n));
    float *bias = take(&free, (size_t)s->n), *out = take(&free, (size_t)(s->m * s->n));
    gather(a, s->dtype, task->a, s->m, s->k, s->a_m, s->a_k);
    gather(b, s->dtype, task->b, s->k, s->n, s->b_k, s->b_n);
    if (s->bias)
        gather(bias, s->bias_dtype, task->bias, 1, s->n, 0, 1);
    device->dnn->run(inner->call, thread, &(DnnTask){.a = a, .b = b, .bias = bias, .out = out, .scratch = free});
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            tg_element_set(s->out_dtype, task->out, i * s->out_m + j, out[i * s->n + j]);
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
    for (int64_t i = 0; i < s->m; i++)
        out[i * s->out_m] = line_times_column(a + i * s->a_m, b, s->k, s->b_k) + bias;
}
