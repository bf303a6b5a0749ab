#include "tests/ir/support.h"

#include <math.h>
#include <string.h>

static bool same(double a, double b) { return isnan(b) ? isnan(a) : a == b && signbit(a) == signbit(b); }

#define ROUNDS(dtype, value, wanted) CU_ASSERT(same(tg_round_to(dtype, value), wanted))

static void test_f32(void) {
    ROUNDS(DT_F32, 1 + 0x1p-24, 1.0); /* a tie goes to even */
    ROUNDS(DT_F32, 1 + 3 * 0x1p-24, 1 + 0x1p-22);
    ROUNDS(DT_F32, 1e300, INFINITY);
    ROUNDS(DT_F32, -0.0, -0.0);
    ROUNDS(DT_F32, 0x1p-149, 0x1p-149);
    ROUNDS(DT_F32, 0x1p-150, 0.0);
}

static void test_f16(void) {
    ROUNDS(DT_F16, 65504, 65504.0);
    ROUNDS(DT_F16, 65519.99, 65504.0);
    ROUNDS(DT_F16, 65520, INFINITY);
    ROUNDS(DT_F16, -65520, -INFINITY);
    ROUNDS(DT_F16, 2049, 2048.0);
    ROUNDS(DT_F16, 2051, 2052.0);
    ROUNDS(DT_F16, 0x1p-24, 0x1p-24); /* the least denormal */
    ROUNDS(DT_F16, 0x1p-25, 0.0);     /* a tie with zero */
    ROUNDS(DT_F16, 1.01 * 0x1p-25, 0x1p-24);
    ROUNDS(DT_F16, -0x1p-26, -0.0);
    ROUNDS(DT_F16, 1023.5 * 0x1p-24, 0x1p-14); /* from denormal to normal */
    ROUNDS(DT_F16, NAN, NAN);
}

static void test_bf16(void) {
    ROUNDS(DT_BF16, 1 + 0x1p-8, 1.0);
    ROUNDS(DT_BF16, 1 + 3 * 0x1p-8, 1 + 0x1p-6);
    ROUNDS(DT_BF16, 3.0e-39, 0.0);
    ROUNDS(DT_BF16, -3.0e-39, -0.0);
    ROUNDS(DT_BF16, 0x1p-126, 0x1p-126);
    ROUNDS(DT_BF16, 0x1.fffffep127, INFINITY);
    ROUNDS(DT_BF16, 0x1.fep127, 0x1.fep127);
    ROUNDS(DT_BF16, -INFINITY, -INFINITY);
}

static void test_integers(void) {
    ROUNDS(DT_U8, 255.9, 255.0);
    ROUNDS(DT_U8, 300, 255.0);
    ROUNDS(DT_U8, -0.5, 0.0);
    ROUNDS(DT_U8, -7, 0.0);
    ROUNDS(DT_I8, -128.9, -128.0);
    ROUNDS(DT_I8, -200, -128.0);
    ROUNDS(DT_I32, 1e10, 2147483647.0);
    ROUNDS(DT_I32, -INFINITY, -2147483648.0);
    ROUNDS(DT_I32, NAN, 0.0);
    ROUNDS(DT_I64, 1e30, 0x1p63);
    ROUNDS(DT_BOOL, NAN, 1.0);
    ROUNDS(DT_BOOL, -0.0, 0.0);
}

/* Every bit pattern of the small types survives get and set. */
static void test_memory(void) {
    for (int d = 0; d < DT_COUNT; d++) {
        DType dtype = (DType)d;
        if (tg_dtype(dtype)->bytes > 2 || dtype == DT_BOOL)
            continue;
        for (uint32_t bits = 0; bits < 1u << (8 * tg_dtype(dtype)->bytes); bits++) {
            uint16_t memory = (uint16_t)bits, back = 0;
            double value = tg_element_get(dtype, &memory, 0);
            tg_element_set(dtype, &back, 0, value);
            bool flushed = dtype == DT_BF16 && (bits & 0x7f80) == 0;
            if (isnan(value))
                CU_ASSERT(isnan(tg_element_get(dtype, &back, 0)))
            else
                CU_ASSERT_EQUAL(back, flushed ? bits & 0x8000 : bits);
        }
    }
}

static void test_wide_memory(void) {
    int64_t memory[2] = {0, 0};
    tg_element_set(DT_I64, memory, 1, 1e30);
    CU_ASSERT_EQUAL(memory[1], INT64_MAX);
    tg_element_set(DT_I64, memory, 0, -5);
    CU_ASSERT_EQUAL(memory[0], -5);
    float f[3] = {0};
    tg_element_set(DT_F32, f, 2, 0.1);
    CU_ASSERT_EQUAL(f[2], 0.1f);
    CU_ASSERT_EQUAL(tg_element_get(DT_F32, f, 2), (double)0.1f);
    CU_ASSERT_EQUAL(tg_dtype_named("bf16"), DT_BF16);
    CU_ASSERT_EQUAL(tg_dtype_named("f8"), DT_COUNT);
}

int main(void) {
    static const TestCase cases[] = {
        {"f32", test_f32},           {"f16", test_f16},       {"bf16", test_bf16},
        {"integers", test_integers}, {"memory", test_memory}, {"wide memory", test_wide_memory},
    };
    return run_tests("dtype", cases, sizeof cases / sizeof *cases);
}
