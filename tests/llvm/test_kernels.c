/* Machine code against the interpreter, to the bit: every operation, type, size, reduction and form of access. */
#include "tests/llvm/harness.h"

#include "codegen/loop_info.h"

#include <CUnit/Basic.h>

#include <setjmp.h>
#include <string.h>

enum { CAPACITY = 100 };
static const int64_t sizes[] = {0, 1, 15, 16, 17, CAPACITY};
#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct Test {
    Arena *arena;
    Cases cases;
} Test;

static void add_sizes(Test *t, LoopKernel *k) {
    for (size_t i = 0; i < COUNT(sizes); i++)
        add_case(t->arena, &t->cases, k, sizes[i]);
}

static void with_test(void (*build)(Test *t), const char *cpu, int optimize) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL("out of memory");
    } else {
        Test t = {.arena = &arena};
        build(&t);
        check_cases(&arena, &t.cases, cpu, optimize);
    }
    tg_arena_deinit(&arena);
}

static LoopId input(LoopKernel *k, DType dtype) {
    return tg_loop_load(k, tg_loop_buffer(k, ROLE_IN, dtype, CAPACITY), int64(k, 0), 1);
}

static void output(LoopKernel *k, LoopId value) {
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, (DType)k->instrs.at[value].type, CAPACITY);
    tg_loop_store(k, out, int64(k, 0), 1, value);
}

/* A whole number between -250 and 250. */
static LoopId exponent(LoopKernel *k, LoopId b) {
    LoopId low = tg_loop_number(k, DT_F32, -249), high = tg_loop_number(k, DT_F32, 249);
    b = tg_loop_op(k, LOOP_select, tg_loop_op(k, LOOP_fgt, b, low, 0), b, low);
    b = tg_loop_op(k, LOOP_select, tg_loop_op(k, LOOP_flt, b, high, 0), b, high);
    return tg_loop_op(k, LOOP_fround, b, 0, 0);
}

/* Divisors are odd and small, shifts below the width. */
static LoopId fit_operand(LoopKernel *k, LoopOp op, DType type, LoopId b) {
    if (op >= LOOP_shl && op <= LOOP_ashr)
        return tg_loop_op(k, LOOP_and, b, tg_loop_int(k, type, 8 * tg_dtype(type)->bytes - 1), 0);
    if (op == LOOP_idiv || op == LOOP_irem || op == LOOP_udiv || op == LOOP_urem) {
        LoopId small = tg_loop_op(k, LOOP_and, b, tg_loop_int(k, type, 0x3f), 0);
        return tg_loop_op(k, LOOP_or, small, tg_loop_int(k, type, 1), 0);
    }
    return op == LOOP_fscale ? exponent(k, b) : b;
}

static void add_op(Test *t, LoopOp op, DType type) {
    LoopKernel *k =
        new_kernel(t->arena, tg_arena_printf(t->arena, "%s_%s", tg_loop_op_info(op)->name, tg_dtype(type)->name));
    tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    LoopId operands[3] = {0, 0, 0};
    for (int i = 0; i < tg_loop_op_info(op)->operands; i++)
        operands[i] = input(k, op == LOOP_select && i == 0 ? DT_BOOL : type);
    if (operands[1])
        operands[1] = fit_operand(k, op, type, operands[1]);
    output(k, tg_loop_op(k, op, operands[0], operands[1], operands[2]));
    tg_loop_end(k);
    add_sizes(t, k);
}

static bool float_op(LoopOp op) { return (op >= LOOP_fadd && op <= LOOP_fscale) || (op >= LOOP_feq && op <= LOOP_fge); }

static bool takes(LoopOp op, DType type) {
    if (op == LOOP_select)
        return true;
    if (type == DT_BF16 || type == DT_F16)
        return false;
    if (op == LOOP_fscale)
        return type == DT_F32;
    if (type == DT_BOOL)
        return op >= LOOP_and && op <= LOOP_not;
    return float_op(op) == tg_is_float(type);
}

static void all_ops(Test *t) {
    for (int op = LOOP_fadd; op <= LOOP_select; op++)
        for (int type = 0; type < DT_COUNT; type++)
            if (takes((LoopOp)op, (DType)type))
                add_op(t, (LoopOp)op, (DType)type);
}

static void add_conversion(Test *t, LoopOp op, DType from, DType to) {
    const char *name =
        tg_arena_printf(t->arena, "%s_%s_%s", tg_loop_op_info(op)->name, tg_dtype(from)->name, tg_dtype(to)->name);
    LoopKernel *k = new_kernel(t->arena, name);
    tg_loop_for(k, MODE_VECTOR, int64(k, 0), int64(k, CAPACITY), CAPACITY);
    output(k, tg_loop_convert(k, op, input(k, from), to));
    tg_loop_end(k);
    uint32_t in = tg_loop_buffer(k, ROLE_IN, from, CAPACITY), out = tg_loop_buffer(k, ROLE_OUT, to, CAPACITY);
    LoopId i = tg_loop_for(k, MODE_SERIAL, int64(k, 0), int64(k, CAPACITY), CAPACITY);
    tg_loop_store(k, out, i, 0, tg_loop_convert(k, op, tg_loop_load(k, in, i, 0), to));
    tg_loop_end(k);
    add_case(t->arena, &t->cases, k, 0);
}

static void all_conversions(Test *t) {
    for (int from = 0; from < DT_COUNT; from++)
        for (int to = 0; to < DT_COUNT; to++) {
            bool integers = !tg_is_float((DType)from) && !tg_is_float((DType)to);
            add_conversion(t, LOOP_convert, (DType)from, (DType)to);
            if (integers) {
                add_conversion(t, LOOP_wrap, (DType)from, (DType)to);
                add_conversion(t, LOOP_zero, (DType)from, (DType)to);
            }
        }
    add_conversion(t, LOOP_bits, DT_F32, DT_I32);
    add_conversion(t, LOOP_bits, DT_I32, DT_F32);
    add_conversion(t, LOOP_bits, DT_F64, DT_I64);
    add_conversion(t, LOOP_bits, DT_I64, DT_F64);
    add_conversion(t, LOOP_bits, DT_I16, DT_U16);
}

/* One reduction over `extent` elements in a loop of `mode`, its bound known or not; the result is stored. */
static void add_reduction(Test *t, LoopOp op, DType type, LoopMode mode, int64_t extent, bool known) {
    const char *name = tg_arena_printf(t->arena, "%s_%s_%d_%lld", tg_loop_op_info(op)->name, tg_dtype(type)->name,
                                       (int)mode, (long long)extent);
    LoopKernel *k = new_kernel(t->arena, name);
    uint32_t in = tg_loop_buffer(k, ROLE_IN, type, extent);
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, op == LOOP_reduce_argmax ? DT_I32 : type, 1);
    LoopId i = tg_loop_for(k, mode, int64(k, 0), known ? int64(k, extent) : rows_of(k), extent);
    LoopId element = tg_loop_load(k, in, mode == MODE_VECTOR ? int64(k, 0) : i, mode == MODE_VECTOR);
    LoopId result = tg_loop_op(k, op, element, 0, 0);
    tg_loop_end(k);
    tg_loop_store(k, out, int64(k, 0), 0, result);
    add_case(t->arena, &t->cases, k, extent);
    const int64_t rows[] = {1, 63, 64, 65, extent - 1};
    for (size_t r = 0; !known && r < COUNT(rows); r++)
        if (rows[r] > 0 && rows[r] <= extent)
            add_case(t->arena, &t->cases, k, rows[r]);
}

static void all_reductions(Test *t) {
    static const DType types[] = {DT_U8, DT_I8, DT_I32, DT_I64, DT_F32, DT_F64};
    static const int64_t extents[] = {1, 15, 16, 17, 100, 255, 256, 300, 1000};
    for (int op = LOOP_reduce_sum; op <= LOOP_reduce_argmax; op++)
        for (size_t type = 0; type < COUNT(types); type++)
            for (size_t e = 0; e < COUNT(extents); e++) {
                bool known = (e + type) % 2;
                add_reduction(t, (LoopOp)op, types[type], MODE_VECTOR, extents[e], types[type] == DT_F32 || known);
                if (types[type] == DT_F32)
                    add_reduction(t, (LoopOp)op, types[type], MODE_VECTOR, extents[e], false);
                if (e % 3 == 1)
                    add_reduction(t, (LoopOp)op, types[type], MODE_SERIAL, extents[e], known);
            }
}

/* Sums of nothing, and of -0 alone. */
static void zero_sums(Test *t) {
    for (int mode = MODE_SERIAL; mode <= MODE_VECTOR; mode++) {
        LoopKernel *k = new_kernel(t->arena, "zero_sum");
        uint32_t out = tg_loop_buffer(k, ROLE_OUT, DT_F32, 2);
        tg_loop_for(k, (LoopMode)mode, int64(k, 0), rows_of(k), CAPACITY);
        LoopId sum = tg_loop_op(k, LOOP_reduce_sum, tg_loop_number(k, DT_F32, -0.0), 0, 0);
        LoopId most = tg_loop_op(k, LOOP_reduce_max, tg_loop_number(k, DT_F32, -0.0), 0, 0);
        tg_loop_end(k);
        tg_loop_store(k, out, int64(k, 0), 0, sum);
        tg_loop_store(k, out, int64(k, 1), 0, most);
        add_sizes(t, k);
    }
}

/* Serial reductions inside a vector loop: over columns of [12, 100]. */
static void column_reductions(Test *t) {
    for (int op = LOOP_reduce_sum; op <= LOOP_reduce_argmax; op++)
        for (int known = 0; known < 2; known++) {
            LoopKernel *k = new_kernel(t->arena, "columns");
            uint32_t in = tg_loop_buffer(k, ROLE_IN, DT_F32, 12 * CAPACITY);
            uint32_t out = tg_loop_buffer(k, ROLE_OUT, op == LOOP_reduce_argmax ? DT_I32 : DT_F32, CAPACITY);
            LoopId rows = rows_of(k), limit = tg_loop_op(k, LOOP_imin, rows, int64(k, 12), 0);
            tg_loop_for(k, MODE_VECTOR, int64(k, 0), known ? int64(k, CAPACITY) : rows, CAPACITY);
            LoopId row = tg_loop_for(k, MODE_SERIAL, int64(k, 0), known ? int64(k, 12) : limit, 12);
            LoopId at = tg_loop_op(k, LOOP_imul, row, int64(k, CAPACITY), 0);
            LoopId result = tg_loop_op(k, (LoopOp)op, tg_loop_load(k, in, at, 1), 0, 0);
            tg_loop_end(k);
            tg_loop_store(k, out, int64(k, 0), 1, result);
            tg_loop_end(k);
            add_sizes(t, k);
        }
}

/* Rows of 3 tiles, each normalised by two reductions through a scratch row: the shape of a softmax. */
static void row_kernel(Test *t) {
    static const int64_t widths[] = {1, 10, 16, 64, 77, 300};
    for (size_t w = 0; w < COUNT(widths); w++) {
        int64_t n = widths[w];
        LoopKernel *k = tg_loop_kernel(t->arena, "row");
        uint32_t in = tg_loop_buffer(k, ROLE_IN, DT_F32, 3 * n), out = tg_loop_buffer(k, ROLE_OUT, DT_BF16, 3 * n);
        uint32_t row = tg_loop_buffer(k, ROLE_SCRATCH, DT_F32, n);
        LoopId tile = tg_loop_for(k, MODE_TILE, int64(k, 0), int64(k, 3), 3),
               base = tg_loop_op(k, LOOP_imul, tile, int64(k, n), 0);
        tg_loop_for(k, MODE_VECTOR, int64(k, 0), int64(k, n), n);
        LoopId x = tg_loop_load(k, in, base, 1),
               finite = tg_loop_op(k, LOOP_flt, tg_loop_op(k, LOOP_fabs, x, 0, 0), tg_loop_number(k, DT_F32, 1e9), 0);
        LoopId clean = tg_loop_op(k, LOOP_select, finite, x, tg_loop_number(k, DT_F32, 0.5));
        tg_loop_store(k, row, int64(k, 0), 1, clean);
        LoopId most = tg_loop_op(k, LOOP_reduce_max, clean, 0, 0);
        tg_loop_end(k);
        tg_loop_for(k, MODE_VECTOR, int64(k, 0), int64(k, n), n);
        LoopId shifted = tg_loop_op(k, LOOP_fsub, tg_loop_load(k, row, int64(k, 0), 1), most, 0);
        LoopId square = tg_loop_op(k, LOOP_fma, shifted, shifted, tg_loop_number(k, DT_F32, 0.125));
        tg_loop_store(k, row, int64(k, 0), 1, square);
        LoopId sum = tg_loop_op(k, LOOP_reduce_sum, square, 0, 0);
        tg_loop_end(k);
        tg_loop_for(k, MODE_VECTOR, int64(k, 0), int64(k, n), n);
        LoopId share = tg_loop_op(k, LOOP_fdiv, tg_loop_load(k, row, int64(k, 0), 1), sum, 0);
        tg_loop_store(k, out, base, 1, tg_loop_convert(k, LOOP_convert, share, DT_BF16));
        tg_loop_end(k);
        add_case(t->arena, &t->cases, k, 0);
        tg_push(t->arena, &t->cases, (Case){.k = k, .first = 1, .last = 2});
    }
}

/* Rows stored past the cache: of whole vectors, with a rest, and of a width that leaves most rows unaligned. */
static void streamed_rows(Test *t, DType type) {
    static const int64_t widths[] = {64, 80, 100, 48};
    for (size_t w = 0; w < COUNT(widths); w++) {
        int64_t n = widths[w];
        LoopKernel *k = tg_loop_kernel(t->arena, tg_arena_printf(t->arena, "streamed_%s_%d", tg_dtype(type)->name, (int)n));
        uint32_t in = tg_loop_buffer(k, ROLE_IN, type, 3 * n), out = tg_loop_buffer(k, ROLE_OUT, type, 3 * n);
        k->buffers.at[out].streamed = true;
        LoopId tile = tg_loop_for(k, MODE_TILE, int64(k, 0), int64(k, 3), 3);
        LoopId base = tg_loop_op(k, LOOP_imul, tile, int64(k, n), 0);
        tg_loop_for(k, MODE_VECTOR, int64(k, 0), int64(k, n), n);
        tg_loop_store(k, out, base, 1, tg_loop_load(k, in, base, 1));
        tg_loop_end(k);
        tg_loop_for(k, MODE_VECTOR, int64(k, 3), rows_of(k), n);
        tg_loop_store(k, out, base, 1, tg_loop_load(k, in, tg_loop_op(k, LOOP_iadd, base, int64(k, -1), 0), 1));
        tg_loop_end(k);
        add_case(t->arena, &t->cases, k, 40);
    }
}

static void strided(Test *t, DType type, int64_t stride) {
    LoopKernel *k =
        new_kernel(t->arena, tg_arena_printf(t->arena, "stride_%s_%d", tg_dtype(type)->name, (int)stride + 9));
    uint32_t in = tg_loop_buffer(k, ROLE_IN, type, 3 * CAPACITY + 1),
             out = tg_loop_buffer(k, ROLE_OUT, type, 3 * CAPACITY + 1);
    tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    LoopId start = int64(k, stride < 0 ? -stride * CAPACITY : 0);
    LoopId value = tg_loop_load(k, in, start, stride);
    tg_loop_store(k, out, start, stride, value);
    tg_loop_end(k);
    add_sizes(t, k);
}

/* out[index[i]] = in[index[i] + 3], with equal indices among them: the last one stays. */
static void indexed(Test *t, DType type) {
    LoopKernel *k = new_kernel(t->arena, "index");
    uint32_t at = tg_loop_buffer(k, ROLE_IN, DT_I64, CAPACITY), in = tg_loop_buffer(k, ROLE_IN, type, CAPACITY + 19);
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, type, 16), all = tg_loop_buffer(k, ROLE_OUT, type, CAPACITY);
    tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    LoopId index = tg_loop_load(k, at, int64(k, 0), 1);
    LoopId value = tg_loop_load(k, in, tg_loop_op(k, LOOP_iadd, index, int64(k, 3), 0), 1);
    tg_loop_store(k, out, index, 0, value);
    tg_loop_store(k, all, int64(k, 0), 1, value);
    tg_loop_end(k);
    add_sizes(t, k);
}

/* Values made of the loop variable, through every linear form, and an index of them. */
static void variables(Test *t) {
    LoopKernel *k = new_kernel(t->arena, "variable");
    uint32_t in = tg_loop_buffer(k, ROLE_IN, DT_F32, 2 * CAPACITY + 5);
    LoopId i = tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    LoopId twice = tg_loop_op(k, LOOP_imul, i, int64(k, 2), 0), more = tg_loop_op(k, LOOP_iadd, twice, int64(k, 5), 0);
    LoopId less = tg_loop_op(k, LOOP_isub, more, i, 0), none = tg_loop_op(k, LOOP_isub, less, i, 0);
    output(k, tg_loop_load(k, in, less, 0));
    output(k, tg_loop_load(k, in, twice, 0));
    output(k, tg_loop_load(k, in, none, 0));
    output(k, more);
    output(k, tg_loop_convert(k, LOOP_convert, tg_loop_convert(k, LOOP_wrap, twice, DT_I32), DT_F32));
    output(k, tg_loop_convert(k, LOOP_wrap, more, DT_U8));
    LoopId seed = tg_loop_convert(k, LOOP_wrap, tg_loop_leaf(k, LOOP_seed, 0), DT_I32);
    output(k, tg_loop_op(k, LOOP_imul, tg_loop_convert(k, LOOP_wrap, i, DT_I32), seed, 0));
    output(k, tg_loop_convert(k, LOOP_convert, tg_loop_leaf(k, LOOP_scalar, 1), DT_F32));
    output(k, tg_loop_op(k, LOOP_iadd, i, tg_loop_leaf(k, LOOP_first_row, 0), 0));
    output(k, tg_loop_leaf(k, LOOP_iteration, 0));
    LoopId where = tg_loop_op(k, LOOP_irem, i, int64(k, 7), 0);
    output(k, tg_loop_load(k, in, where, 1));
    tg_loop_end(k);
    add_sizes(t, k);
}

/* Uniform stores in a vector loop, constants of all types, bounds that begin late or never. */
static void corners(Test *t) {
    LoopKernel *k = new_kernel(t->arena, "corner");
    uint32_t one = tg_loop_buffer(k, ROLE_OUT, DT_I32, 1), last = tg_loop_buffer(k, ROLE_OUT, DT_I64, 1);
    LoopId i = tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    tg_loop_store(k, one, int64(k, 0), 0, tg_loop_int(k, DT_I32, 77));
    tg_loop_store(k, last, int64(k, 0), 0, i);
    for (int type = 0; type < DT_COUNT; type++)
        output(k, tg_loop_number(k, (DType)type, 1.0078125));
    tg_loop_end(k);
    tg_loop_for(k, MODE_VECTOR, rows_of(k), int64(k, CAPACITY - 1), CAPACITY);
    output(k, tg_loop_number(k, DT_F32, 3));
    tg_loop_end(k);
    tg_loop_for(k, MODE_VECTOR, int64(k, 3), int64(k, 90), CAPACITY);
    output(k, tg_loop_number(k, DT_F32, 4));
    tg_loop_end(k);
    add_sizes(t, k);
}

/* Vector loops over one element, with a serial reduction inside. */
static void singles(Test *t) {
    LoopKernel *k = new_kernel(t->arena, "single");
    uint32_t in = tg_loop_buffer(k, ROLE_IN, DT_F32, 3 * CAPACITY), out = tg_loop_buffer(k, ROLE_OUT, DT_F32, CAPACITY);
    LoopId i = tg_loop_for(k, MODE_VECTOR, int64(k, 5), int64(k, 6), 1);
    LoopId row = tg_loop_for(k, MODE_SERIAL, int64(k, 0), rows_of(k), CAPACITY);
    LoopId sum =
        tg_loop_op(k, LOOP_reduce_sum, tg_loop_load(k, in, tg_loop_op(k, LOOP_imul, row, int64(k, 2), 0), 3), 0, 0);
    tg_loop_end(k);
    tg_loop_store(k, out, int64(k, 1), 2, sum);
    tg_loop_store(k, out, i, 0, tg_loop_convert(k, LOOP_convert, i, DT_F32));
    tg_loop_end(k);
    add_sizes(t, k);
}

static void library_calls(Test *t) {
    LoopKernel *k = new_kernel(t->arena, "libm");
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, DT_F64, 2);
    LoopId x = tg_loop_leaf(k, LOOP_scalar, 1);
    tg_loop_store(k, out, int64(k, 0), 0, tg_loop_libm(k, "cos", x, 0));
    tg_loop_store(k, out, int64(k, 1), 0, tg_loop_libm(k, "pow", x, tg_loop_leaf(k, LOOP_scalar, 0)));
    tg_loop_for(k, MODE_VECTOR, int64(k, 0), rows_of(k), CAPACITY);
    output(k, tg_loop_libm(k, "exp", input(k, DT_F64), 0));
    tg_loop_end(k);
    add_sizes(t, k);
}

static void all_accesses(Test *t) {
    static const DType streamed[] = {DT_BOOL, DT_U8, DT_BF16, DT_I32, DT_F32, DT_F64};
    for (size_t i = 0; i < COUNT(streamed); i++)
        streamed_rows(t, streamed[i]);
    static const int64_t strides[] = {1, 2, 3, -1};
    for (int type = 0; type < DT_COUNT; type++) {
        for (size_t s = 0; s < COUNT(strides); s++)
            strided(t, (DType)type, strides[s]);
        if (type != DT_I64)
            indexed(t, (DType)type);
    }
    variables(t);
    corners(t);
    singles(t);
    library_calls(t);
}

static void shapes(Test *t) {
    zero_sums(t);
    column_reductions(t);
    row_kernel(t);
}

static void test_ops(void) { with_test(all_ops, "", 2); }
static void test_conversions(void) { with_test(all_conversions, "", 2); }
static void test_reductions(void) { with_test(all_reductions, "", 2); }
static void test_accesses(void) { with_test(all_accesses, "", 2); }
static void test_shapes(void) { with_test(shapes, "", 2); }
static void test_unoptimised(void) { with_test(shapes, "", 0); }
static void test_plain_cpu(void) {
    with_test(shapes, "x86-64-v3", 2);
    with_test(all_conversions, "x86-64-v3", 2);
}

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("llvm kernels", NULL, NULL);
    CU_add_test(suite, "operations", test_ops);
    CU_add_test(suite, "conversions", test_conversions);
    CU_add_test(suite, "reductions", test_reductions);
    CU_add_test(suite, "accesses", test_accesses);
    CU_add_test(suite, "nests", test_shapes);
    CU_add_test(suite, "nests without optimisation", test_unoptimised);
#if defined(__x86_64__)
    CU_add_test(suite, "a CPU without AVX-512", test_plain_cpu);
#endif
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
