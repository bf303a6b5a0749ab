/* Errors of the maths functions, in ulp of f32, against f64 (long double where f64 is too coarse to judge), in machine
   code: over every 509th f32; with TG_LONG=1 over all 2^32. */
#include "codegen/codegen.h"
#include "codegen/scalar.h"

#include <CUnit/Basic.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 14 };

typedef struct Function {
    const char *name;
    ScalarUnary *rule;
    double (*exact)(double);
    double bound; /* ulp */
} Function;

static double exact_rsqrt(double x) { return 1 / sqrt(x); }
static double exact_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static const Function FUNCTIONS[] = {
    {"exp", scalar_exp, exp, 1},
    {"log", scalar_log, log, 1},
    {"expm1", scalar_expm1, expm1, 2},
    {"log1p", scalar_log1p, log1p, 2},
    {"sin", scalar_sin, sin, 2},
    {"cos", scalar_cos, cos, 2},
    {"tanh", scalar_tanh, tanh, 2},
    {"erf", scalar_erf, erf, 2},
    {"sigmoid", scalar_sigmoid, exact_sigmoid, 2},
    {"rsqrt", scalar_rsqrt, exact_rsqrt, 2},
};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof *FUNCTIONS };

typedef struct Compiled {
    Arena arena;
    Sources sources;
    Diags diags;
    const LlvmModule *llvm;
    TgKernel *kernels[FUNCTION_COUNT + 1]; /* the last: pow */
    void *handle;
} Compiled;

static Compiled compiled;

/* out[i] = f(a[i], b[i]) */
static LoopKernel *kernel_of(Arena *arena, const char *name, ScalarUnary *unary, ScalarBinary *binary) {
    LoopKernel *k = tg_loop_kernel(arena, name);
    uint32_t a = tg_loop_buffer(k, ROLE_IN, DT_F32, CHUNK), b = tg_loop_buffer(k, ROLE_IN, DT_F32, CHUNK);
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, DT_F32, CHUNK);
    LoopId zero = tg_loop_int(k, DT_I64, 0), end = tg_loop_int(k, DT_I64, CHUNK);
    tg_loop_for(k, MODE_TILE, zero, tg_loop_int(k, DT_I64, 1), 1);
    tg_loop_for(k, MODE_VECTOR, zero, end, CHUNK);
    LoopId x = tg_loop_load(k, a, zero, 1), y = tg_loop_load(k, b, zero, 1);
    tg_loop_store(k, out, zero, 1, unary ? unary(k, DT_F32, x) : binary(k, DT_F32, x, y));
    tg_loop_end(k);
    tg_loop_end(k);
    return k;
}

static int compile_all(void) {
    tg_arena_init(&compiled.arena, tg_host());
    if (setjmp(compiled.arena.guard))
        return 1;
    tg_diags_init(&compiled.diags, &compiled.arena, &compiled.sources, stderr);
    Lowered lowered = {0};
    for (int i = 0; i < FUNCTION_COUNT; i++)
        tg_push(&compiled.arena, &lowered.kernels,
                kernel_of(&compiled.arena, FUNCTIONS[i].name, FUNCTIONS[i].rule, NULL));
    tg_push(&compiled.arena, &lowered.kernels, kernel_of(&compiled.arena, "pow", NULL, scalar_pow));
    LlvmRequest request = {.lowered = &lowered, .cpu = "", .optimize = 2};
    if (tg_llvm_open(&compiled.arena, &compiled.diags, &compiled.llvm) != TG_OK)
        return 1;
    return compiled.llvm->jit(&compiled.arena, &compiled.diags, &request, compiled.kernels, &compiled.handle) != TG_OK;
}

static int release_all(void) {
    compiled.llvm->jit_free(compiled.handle);
    tg_arena_deinit(&compiled.arena);
    return 0;
}

static void run(int kernel, const float *a, const float *b, float *out) {
    const TgScalars scalars = {0};
    compiled.kernels[kernel]((void *[]){(void *)a, (void *)b, out}, &scalars, 0, 1);
}

/* Distance in units of the last place that the exact value has as f32 (of the least normal number's, below it);
   overflow counts from 2^128. */
static double ulps(float x, double exact) {
    if (isnan(exact) || isnan(x))
        return isnan(exact) && isnan(x) ? 0 : INFINITY;
    if (x == exact || x == (float)exact)
        return !signbit(x) == !signbit(exact) ? 0 : INFINITY;
    double value = isinf(x) ? copysign(0x1p128, x) : x, want = fabs(exact) > 0x1p128 ? copysign(0x1p128, exact) : exact;
    int exponent;
    frexp(want, &exponent);
    return fabs(value - want) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void measure(int f, uint64_t stride) {
    static float a[CHUNK], out[CHUNK];
    double worst = 0;
    float worst_at = 0, worst_value = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
        int count = 0;
        for (; count < CHUNK && bits < UINT64_C(1) << 32; bits += stride)
            a[count++] = float_of((uint32_t)bits);
        run(f, a, a, out);
        for (int i = 0; i < count; i++) {
            double error = ulps(out[i], FUNCTIONS[f].exact(a[i]));
            if (error > worst) {
                worst = error;
                worst_at = a[i];
                worst_value = out[i];
            }
        }
    }
    printf("\n    %-8s at most %.3f ulp, at %a (%.9g)", FUNCTIONS[f].name, worst, (double)worst_at, (double)worst_at);
    if (worst > FUNCTIONS[f].bound)
        printf(": %.9g, not %.17g", (double)worst_value, FUNCTIONS[f].exact(worst_at));
    CU_ASSERT(worst <= FUNCTIONS[f].bound);
}

static void test_all_inputs(void) {
    const char *is_long = getenv("TG_LONG");
    uint64_t stride = is_long && strcmp(is_long, "0") != 0 ? 1 : 509;
    for (int f = 0; f < FUNCTION_COUNT; f++)
        measure(f, stride);
}

/* Where polynomials meet, ends of domains, denormals. */
static void test_edges(void) {
    static const float edges[] = {
        0,           1,           0.5f,        2,           0.625f,          0.925f,    4.05f,
        0x1p-149f,   0x1p-126f,   0x1p-25f,    0.70710678f, 1.41421356f,     88.72283f, 88.72284f,
        103.97208f,  87.33655f,   0x1p41f,     0x1p127f,    0x1.fffffep127f, INFINITY,  NAN,
        3.14159265f, 1.57079633f, 16367173.0f, 5.0e9f,      0x1.921fb6p99f};
    static float a[CHUNK], out[CHUNK];
    int count = 0;
    for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int step = -40; step <= 40; step++) {
                uint32_t bits;
                memcpy(&bits, &edges[e], sizeof bits);
                a[count++] = (float)sign * float_of(bits + (uint32_t)step);
            }
    CU_ASSERT_FATAL(count <= CHUNK);
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        run(f, a, a, out);
        for (int i = 0; i < count; i++) {
            double error = ulps(out[i], FUNCTIONS[f].exact(a[i]));
            if (error > FUNCTIONS[f].bound)
                printf("\n    %s(%a) is %.9g, not %.17g", FUNCTIONS[f].name, (double)a[i], (double)out[i],
                       FUNCTIONS[f].exact(a[i]));
            CU_ASSERT(error <= FUNCTIONS[f].bound);
        }
    }
}

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void check_pow(const float *a, const float *b, int count, double *worst) {
    static float out[CHUNK];
    run(FUNCTION_COUNT, a, b, out);
    for (int i = 0; i < count; i++) {
        double error = ulps(out[i], pow(a[i], b[i]));
        *worst = error > *worst ? error : *worst;
        if (error > 2)
            printf("\n    pow(%a, %a) is %.9g, not %.17g", (double)a[i], (double)b[i], (double)out[i], pow(a[i], b[i]));
        CU_ASSERT_FATAL(error <= 2);
    }
}

static void test_pow(void) {
    static const float special[] = {0,
                                    -0.0f,
                                    1,
                                    -1,
                                    2,
                                    -2,
                                    3,
                                    -3,
                                    0.5f,
                                    -0.5f,
                                    0.3333f,
                                    1e-40f,
                                    -1e-40f,
                                    0x1p24f,
                                    0x1p25f,
                                    16777215.0f,
                                    -16777215.0f,
                                    0x1.fffffep127f,
                                    -0x1.fffffep127f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    0.99999994f,
                                    1.0000001f,
                                    7.5f,
                                    -7,
                                    127,
                                    128,
                                    -149,
                                    -150,
                                    1e30f};
    enum { SPECIAL = sizeof special / sizeof *special };
    static float a[CHUNK], b[CHUNK];
    double worst = 0;
    for (int i = 0; i < SPECIAL * SPECIAL; i++) {
        a[i] = special[i / SPECIAL];
        b[i] = special[i % SPECIAL];
    }
    check_pow(a, b, SPECIAL * SPECIAL, &worst);
    uint64_t state = 1;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < CHUNK; i++) {
            a[i] = float_of(next_random(&state));
            b[i] = float_of(next_random(&state));
            if (i % 3 != 0) /* where the result is neither 0 nor inf */
                b[i] = (float)((double)next_random(&state) / 0x1p32 * 300 - 150) / log2f(fabsf(a[i]));
            if (i % 3 == 2)
                b[i] = rintf(b[i]);
        }
        check_pow(a, b, CHUNK, &worst);
    }
    printf("\n    pow      at most %.3f ulp", worst);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("maths", compile_all, release_all);
    CU_add_test(suite, "errors over the inputs", test_all_inputs);
    CU_add_test(suite, "edges", test_edges);
    CU_add_test(suite, "pow", test_pow);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures != 0;
}
