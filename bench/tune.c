/* Measures every way of computing a dot, by shape class, on one thread of this machine, and prints codegen/dnn.def:

       tune DIRECTORY-OF-libtgrt_dnn.so > codegen/dnn.def

   A class whose rows are the batch's takes matmul only, in which a row's bits do not depend on the number of rows; this
   program checks that they do not. Times are the medians of interleaved rounds; the table keeps them as comments. */
#include "ir/base/vec.h"
#include "ir/plan/dnn.h"
#include "runtime/cpu/dnn.h"
#include "runtime/exec.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What libraries do differently: operand type, where the batch is, which operands are transposed, size. */
typedef struct Class {
    const char *dtype_name, *place, *layout;
    DType dtype;
    bool rows_m, a_transposed, b_transposed, bias;
    double least_mflop;
    int64_t shapes[4][3]; /* m, n, k; ends with 0 */
} Class;

#define SMALL_AND_LARGE(type, place, layout, rows_m, ta, tb, bias, small, large)                                       \
    {#type, #place, #layout, DT_##type, rows_m, ta, tb, bias, 16, UNPACK large}, {                                     \
#type, #place, #layout, DT_##type, rows_m, ta, tb, bias, 0, UNPACK small                                       \
    }
#define UNPACK(...)                                                                                                    \
    { __VA_ARGS__ }

#define CLASSES_OF(type)                                                                                               \
    SMALL_AND_LARGE(type, ROWS_M, NT, true, false, true, true, ({32, 128, 64}, {32, 10, 128}),                         \
                    ({768, 128, 128}, {768, 512, 128}, {768, 128, 512}, {768, 256, 128})),                             \
        SMALL_AND_LARGE(type, ROWS_M, NN, true, false, false, false, ({32, 128, 10}, {32, 64, 128}),                   \
                        ({768, 128, 128}, {768, 512, 128}, {768, 128, 512}, {768, 128, 256})),                         \
        SMALL_AND_LARGE(type, OTHER, TN, false, true, false, false, ({10, 128, 32}, {128, 64, 32}, {64, 32, 64}),      \
                        ({128, 128, 768}, {512, 128, 768}, {128, 512, 768}, {256, 128, 768})),                         \
        SMALL_AND_LARGE(type, OTHER, NT, false, false, true, false, ({64, 64, 32}, {128, 128, 32}),                    \
                        ({256, 256, 128})),                                                                            \
        SMALL_AND_LARGE(type, OTHER, NN, false, false, false, false, ({64, 32, 64}, {128, 32, 128}),                   \
                        ({256, 128, 256}))

static const Class classes[] = {CLASSES_OF(F32), CLASSES_OF(BF16), CLASSES_OF(F16)};

/* A tile must leave work for several threads where the dot is large. */
static const int64_t large_tiles[][2] = {{64, 0}, {128, 0}, {192, 0}, {256, 0}, {64, 128}, {128, 128}, {256, 128}};
static const int64_t small_tiles[][2] = {{0, 0}};

/* ROUNDS of about ROUND_MICROSECONDS each, interleaved over the ways. */
enum { ROUNDS = 15, ROUND_MICROSECONDS = 3000, MOST_WAYS = 32 };
/* The gemm calls generate all their kernels at their first use, 28 ms here,
   a matmul its own, 0.3 ms: small dots alone are not worth that below SMALL_GAIN. */
#define SMALL_GAIN 0.1

static const char *const variant_names[] = {
#define X(name, text) #name,
    TG_DNN_VARIANTS(X)
#undef X
};

typedef struct Way {
    DnnVariant variant;
    int64_t tile_m, tile_n;
    double log_time; /* summed over the class's shapes */
    double microseconds[4];
} Way;

/* A plan of one dot. */
typedef struct OneDot {
    PlanBuffer buffers[4];
    PlanOperand operands[4];
    PlanDot dot;
    PlanStep step;
    PlanFunc func;
    TgPlan plan;
    TgProgram program;
    TgExec *exec;
} OneDot;

static double microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void add_buffer(OneDot *one, DType dtype, int64_t count) {
    uint32_t index = one->plan.buffer_count++;
    int64_t bytes = (count * tg_dtype(dtype)->bytes + 63) / 64 * 64;
    one->buffers[index] = (PlanBuffer){.name = "",
                                       .class = PLAN_INPUT,
                                       .dtype = dtype,
                                       .rank = 1,
                                       .dims = {count},
                                       .offset = one->plan.arena_bytes,
                                       .bytes = bytes,
                                       .lanes = 1};
    one->operands[index].buffer = index;
    one->plan.arena_bytes += bytes;
}

static Status open_dot(Arena *arena, const char *directory, PlanDot dot, OneDot *one) {
    *one = (OneDot){.dot = dot,
                    .step = {.kind = STEP_DOT, .label = "dot"},
                    .func = {.kind = PLAN_MICRO, .name = "micro", .step_count = 1}};
    add_buffer(one, dot.dtype, dot.m * dot.k);
    add_buffer(one, dot.dtype, dot.k * dot.n);
    if (dot.bias)
        add_buffer(one, dot.dtype, dot.n);
    add_buffer(one, dot.out_dtype, dot.m * dot.n);
    one->step.buffer_count = one->plan.buffer_count;
    one->plan.buffers = one->buffers;
    one->plan.steps = &one->step, one->plan.step_count = 1;
    one->plan.step_buffers = one->operands, one->plan.step_buffer_count = one->plan.buffer_count;
    one->plan.dots = &one->dot, one->plan.dot_count = 1;
    one->plan.funcs = &one->func, one->plan.func_count = 1;
    one->program.abi = TG_ABI_VERSION;
    const ExecOptions options = {.threads = 1, .library_directory = directory};
    const char *why = "";
    Status status = tg_exec_open(&options, arena, &one->program, &one->plan, &one->exec, &why);
    if (status != TG_OK) {
        fprintf(stderr, "tune: %s\n", why);
        return status;
    }
    for (uint32_t b = 0; b < one->plan.buffer_count; b++)
        for (int64_t i = 0; i < one->buffers[b].dims[0]; i++)
            tg_element_set(one->buffers[b].dtype, tg_exec_address(one->exec, b, 0), i, sin((double)(i * 7 + b)));
    return TG_OK;
}

static PlanDot dot_of(const Class *class, const int64_t shape[3], const Way *way) {
    int64_t m = shape[0], n = shape[1], k = shape[2];
    return (PlanDot){.dtype = class->dtype,
                     .out_dtype = class->rows_m ? class->dtype : DT_F32,
                     .groups = 1,
                     .inner = 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a_m = class->a_transposed ? 1 : k,
                     .a_k = class->a_transposed ? m : 1,
                     .b_k = class->b_transposed ? 1 : n,
                     .b_n = class->b_transposed ? k : 1,
                     .out_m = n,
                     .bias = class->bias,
                     .rows_m = class->rows_m,
                     .pieces = 1,
                     .tile_m = way->tile_m && way->tile_m < m ? way->tile_m : m,
                     .tile_n = way->tile_n && way->tile_n < n ? way->tile_n : n,
                     .variant = way->variant};
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Times all ways of one shape, in turns. */
static Status measure(Arena *arena, const char *directory, const Class *class, int shape, Way *ways, int count) {
    OneDot *dots = TG_ALLOC(arena, OneDot, count);
    double(*times)[ROUNDS] = tg_arena_alloc(arena, (size_t)count * sizeof *times);
    int repeats[MOST_WAYS];
    for (int w = 0; w < count; w++) {
        TG_TRY(open_dot(arena, directory, dot_of(class, class->shapes[shape], &ways[w]), &dots[w]));
        tg_exec_run_dots(dots[w].exec, &dots[w].func);
        double begin = microseconds();
        tg_exec_run_dots(dots[w].exec, &dots[w].func);
        repeats[w] = 1 + (int)(ROUND_MICROSECONDS / (microseconds() - begin + 0.1));
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int w = 0; w < count; w++) {
            double begin = microseconds();
            for (int i = 0; i < repeats[w]; i++)
                tg_exec_run_dots(dots[w].exec, &dots[w].func);
            times[w][round] = (microseconds() - begin) / repeats[w];
        }
    for (int w = 0; w < count; w++) {
        qsort(times[w], ROUNDS, sizeof(double), by_value);
        ways[w].microseconds[shape] = times[w][ROUNDS / 2];
        ways[w].log_time += log(times[w][ROUNDS / 2]);
        tg_exec_close(dots[w].exec);
    }
    return TG_OK;
}

/* The variant in which a row's bits do not depend on the number of rows. */
static DnnVariant by_rows(const Class *class) { return class->dtype == DT_F16 ? DNN_CONVERT : DNN_MATMUL; }

static bool takes(const Class *class, DnnVariant variant) {
    bool gemm = variant == DNN_SGEMM ? class->dtype == DT_F32 : variant == DNN_GEMM_BF16 && class->dtype == DT_BF16;
    return variant == by_rows(class) || (gemm && !class->rows_m);
}

/* That the first rows have the same bits in a batch of few rows. */
static Status check_rows(Arena *arena, const char *directory, const Class *class, const int64_t *shape, int64_t rows) {
    const Way way = {.variant = by_rows(class)};
    const int64_t few[3] = {rows, shape[1], shape[2]};
    OneDot all, part;
    TG_TRY(open_dot(arena, directory, dot_of(class, shape, &way), &all));
    TG_TRY(open_dot(arena, directory, dot_of(class, few, &way), &part));
    tg_exec_run_dots(all.exec, &all.func);
    tg_exec_run_dots(part.exec, &part.func);
    uint32_t out = all.plan.buffer_count - 1;
    bool equal = memcmp(tg_exec_address(all.exec, out, 0), tg_exec_address(part.exec, out, 0),
                        (size_t)(rows * shape[1]) * tg_dtype(all.dot.out_dtype)->bytes) == 0;
    tg_exec_close(all.exec);
    tg_exec_close(part.exec);
    if (!equal)
        fprintf(stderr, "tune: %s: the bits of a row depend on the number of rows\n", class->dtype_name);
    return equal ? TG_OK : TG_NUMERIC;
}

static int list_ways(const Class *class, Way *ways) {
    const int64_t(*tiles)[2] = class->least_mflop > 0 ? large_tiles : small_tiles;
    size_t tile_count = class->least_mflop > 0 ? sizeof large_tiles / sizeof *large_tiles : 1;
    int count = 0;
    for (DnnVariant v = 0; v < DNN_VARIANT_COUNT; v++)
        for (size_t t = 0; takes(class, v) && t < tile_count; t++)
            ways[count++] = (Way){.variant = v, .tile_m = tiles[t][0], .tile_n = tiles[t][1]};
    return count;
}

static const Way *fastest(const Way *ways, int count, DnnVariant variant) {
    const Way *best = NULL;
    for (int w = 0; w < count; w++)
        if (ways[w].variant == variant && (!best || ways[w].log_time < best->log_time))
            best = &ways[w];
    return best;
}

/* A gemm call only where it gains enough. */
static const Way *best_of(const Class *class, const Way *ways, int count, int shapes) {
    const Way *best = fastest(ways, count, by_rows(class));
    double gain = class->least_mflop > 0 ? 0 : shapes * log(1 + SMALL_GAIN);
    for (DnnVariant v = 0; v < DNN_VARIANT_COUNT; v++) {
        const Way *way = fastest(ways, count, v);
        if (way && way->log_time + gain < best->log_time)
            best = way;
    }
    return best;
}

static Status tune_class(Arena *arena, const char *directory, const Class *class) {
    Way ways[MOST_WAYS];
    int count = list_ways(class, ways), shapes = 0;
    for (; shapes < 4 && class->shapes[shapes][0]; shapes++) {
        for (int64_t rows = 1; class->rows_m && rows <= 8; rows += 7)
            TG_TRY(check_rows(arena, directory, class, class->shapes[shapes], rows));
        TG_TRY(measure(arena, directory, class, shapes, ways, count));
    }
    for (DnnVariant v = 0; v < DNN_VARIANT_COUNT; v++) {
        const Way *way = fastest(ways, count, v);
        for (int s = 0; way && s < shapes; s++)
            printf("%s%s%s%lldx%lldx%lld %.2f us%s", s ? ", " : "/* ", s ? "" : variant_names[v], s ? "" : ": ",
                   (long long)class->shapes[s][0], (long long)class->shapes[s][1], (long long)class->shapes[s][2],
                   way->microseconds[s], s == shapes - 1 ? " */\n" : "");
    }
    const Way *best = best_of(class, ways, count, shapes);
    printf("DNN_CHOICE(%s, %s, %s, %g, %s)\n", class->dtype_name, class->place, class->layout, class->least_mflop,
           variant_names[best->variant]);
    fflush(stdout);
    return TG_OK;
}

static void print_version(const char *directory) {
    char path[4096], version[64] = "unknown";
    snprintf(path, sizeof path, "%s/libtgrt_dnn.so", directory);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const TgDnn *dnn = plugin ? dlsym(plugin, TG_DNN_SYMBOL) : NULL;
    if (dnn)
        dnn->version(version, sizeof version);
    bool avx512 = __builtin_cpu_supports("avx512f"), bf16 = __builtin_cpu_supports("avx512bf16");
    printf("/* The best library call of a dot on one thread, by shape class: %s, %s. Written by bench/tune.\n", version,
           bf16     ? "avx512_core_bf16"
           : avx512 ? "avx512_core"
                    : "avx2 or less");
    printf("   DNN_CHOICE(operand type, where the batch is, operands transposed (N no, T yes), least MFLOP, variant);\n"
           "   the first row that fits; its tiles are codegen/dnn.c's. Comments: m x n x k and the time of each variant at its best "
           "tile. */\n");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: tune DIRECTORY-OF-libtgrt_dnn.so > codegen/dnn.def\n");
        return TG_USAGE;
    }
    print_version(argv[1]);
    Status status = TG_OK;
    for (size_t i = 0; status == TG_OK && i < sizeof classes / sizeof *classes; i++) {
        Arena arena;
        tg_arena_init(&arena, tg_host());
        if (setjmp(arena.guard)) {
            fprintf(stderr, "tune: no memory left\n");
            return TG_MEMORY;
        }
        status = tune_class(&arena, argv[1], &classes[i]);
        tg_arena_deinit(&arena);
    }
    return status;
}
