/* Lines of bf16 and f16 to f32 and back are element by element what ir/plan/dtype.h says. */
#include "runtime/cpu/cpu.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <string.h>

enum { LINE = 1037, PATTERN_STEP = 10007 }; /* no multiple of a vector; prime */

static const DType types[] = {DT_BF16, DT_F16};

static bool equal_f32(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

/* All 65,536 values. */
static void test_widen(void) {
    for (int t = 0; t < 2; t++)
        for (uint32_t first = 0; first < 65536; first += LINE) {
            uint16_t line[LINE];
            float got[LINE + 1];
            int64_t count = 65536 - first < LINE ? 65536 - first : LINE, wrong = 0;
            for (int64_t i = 0; i < count; i++)
                line[i] = (uint16_t)(first + i);
            got[count] = 7;
            tg_cpu_widen(types[t], line, got, count);
            for (int64_t i = 0; i < count; i++)
                wrong += !equal_f32(got[i], (float)tg_element_get(types[t], line, i));
            CU_ASSERT_EQUAL(wrong, 0);
            CU_ASSERT_EQUAL(got[count], 7);
        }
}

static bool equal_low(DType type, const void *a, const void *b, int64_t i) {
    double x = tg_element_get(type, a, i), y = tg_element_get(type, b, i);
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

static int64_t wrongly_narrowed(DType type, const float *line, int64_t count) {
    uint16_t got[LINE + 1], wanted[LINE];
    int64_t wrong = 0;
    got[count] = 7;
    tg_cpu_narrow(type, line, got, count);
    for (int64_t i = 0; i < count; i++)
        tg_element_set(type, wanted, i, (double)line[i]);
    for (int64_t i = 0; i < count; i++)
        wrong += !equal_low(type, got, wanted, i);
    return wrong + (got[count] != 7);
}

/* Values all over f32, and all halfway between neighbours of the type and beside those. */
static void test_narrow(void) {
    for (int t = 0; t < 2; t++) {
        float line[LINE];
        int64_t wrong = 0, count = 0;
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += PATTERN_STEP) {
            uint32_t pattern = (uint32_t)bits;
            memcpy(&line[count++], &pattern, sizeof pattern);
            if (count == LINE)
                wrong += wrongly_narrowed(types[t], line, count), count = 0;
        }
        for (uint32_t half = 0; half < 65535; half++) {
            const uint16_t pair[2] = {(uint16_t)half, (uint16_t)(half + 1)};
            float between = (float)((tg_element_get(types[t], pair, 0) + tg_element_get(types[t], pair, 1)) / 2);
            const float near[3] = {between, nextafterf(between, INFINITY), nextafterf(between, -INFINITY)};
            for (int i = 0; i < 3; i++)
                line[count++] = near[i];
            if (count + 3 > LINE)
                wrong += wrongly_narrowed(types[t], line, count), count = 0;
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

static void test_same_type(void) {
    const float line[3] = {1, -0.0f, 3};
    float out[3];
    tg_cpu_widen(DT_F32, line, out, 3);
    CU_ASSERT_EQUAL(memcmp(line, out, sizeof line), 0);
    tg_cpu_narrow(DT_F32, out, out, 0);
    tg_cpu_narrow(DT_F32, line, out, 3);
    CU_ASSERT_EQUAL(memcmp(line, out, sizeof line), 0);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("cast", NULL, NULL);
    CU_add_test(suite, "every value of a low type", test_widen);
    CU_add_test(suite, "rounding to a low type", test_narrow);
    CU_add_test(suite, "f32 to f32", test_same_type);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
