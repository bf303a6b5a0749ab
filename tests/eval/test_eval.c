/* The reference evaluator against values derived by hand (of random: the published vectors of Random123). */
#include "ir/build.h"
#include "ir/eval.h"

#include <CUnit/Basic.h>
#include <math.h>

enum { MOST_ARGS = 6 };

/* One function over arguments whose values are given. */
typedef struct Fixture {
    Arena *arena;
    Diags *diags;
    Builder b;
    EvalState state;
    Tensor args[MOST_ARGS];
    uint32_t count;
} Fixture;

static TypeId type_of(Fixture *f, DType dtype, int rank, const Dim *dims) {
    Type type = {.dtype = dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    return tg_type(&f->b.graph->types, &type);
}
#define DIMS(...)                                                                                                      \
    (int)(sizeof((Dim[]){__VA_ARGS__}) / sizeof(Dim)), (Dim[]) { __VA_ARGS__ }
#define N(size)                                                                                                        \
    { size, false }
#define B(size)                                                                                                        \
    { size, true }

static NodeId given(Fixture *f, DType dtype, int rank, const Dim *dims, const double *values) {
    TypeId type = type_of(f, dtype, rank, dims);
    int64_t count = tg_type_count(tg_type_of(&f->b.graph->types, type), f->state.rows);
    f->args[f->count] = (Tensor){type, count, tg_arena_copy(f->arena, values, (size_t)count * sizeof *values)};
    uint32_t index = f->count++;
    return tg_arg(&f->b, index, tg_arena_printf(f->arena, "x%u", index), type);
}
#define V(...)                                                                                                         \
    (double[]) { __VA_ARGS__ }
#define VECTOR(f, dtype, ...) given((f), (dtype), DIMS(N(sizeof V(__VA_ARGS__) / sizeof(double))), V(__VA_ARGS__))
#define LIST(...)                                                                                                      \
    { (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t) }

static NodeId node(Fixture *f, Op op, Attr attr, TypeId wanted, uint32_t count, const NodeId *operands) {
    return tg_build(&f->b, op, &attr, operands, count, wanted);
}

/* Evaluates `id` as the function's only result. */
static Tensor value_of(Fixture *f, NodeId id) {
    f->b.func->results.count = 0;
    tg_result_value(&f->b, "value", id);
    f->state.args = f->args;
    Tensor result = {0};
    CU_ASSERT_EQUAL_FATAL(tg_builder_status(&f->b, f->diags), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_eval_func(&f->state, f->b.graph, f->b.func, f->diags, &result), TG_OK);
    return result;
}

static void expect(Fixture *f, NodeId id, const double *want, int64_t count, double tolerance, int line) {
    Tensor got = value_of(f, id);
    CU_ASSERT_EQUAL(got.count, count);
    for (int64_t i = 0; i < count && i < got.count; i++) {
        bool same = isnan(want[i]) ? isnan(got.at[i])
                                   : (got.at[i] == want[i] && signbit(got.at[i]) == signbit(want[i])) ||
                                         (tolerance > 0 && fabs(got.at[i] - want[i]) <= tolerance);
        if (!same)
            printf("\n    line %d, element %d: %.17g, not %.17g\n", line, (int)i, got.at[i], want[i]);
        CU_ASSERT_TRUE(same);
    }
}
#define WANT(f, id, ...)                                                                                               \
    expect((f), (id), V(__VA_ARGS__), (int64_t)(sizeof V(__VA_ARGS__) / sizeof(double)), 0, __LINE__)
#define NEAR(f, id, ...)                                                                                               \
    expect((f), (id), V(__VA_ARGS__), (int64_t)(sizeof V(__VA_ARGS__) / sizeof(double)), 1e-12, __LINE__)

static NodeId unary(Fixture *f, Op op, NodeId x) { return tg_unary(&f->b, op, x); }
static NodeId binary(Fixture *f, Op op, NodeId x, NodeId y) { return tg_binary(&f->b, op, x, y); }

typedef void Body(Fixture *f);

static void run_rows(Body *body, int64_t rows, EvalMode mode) {
    static const Sources no_sources;
    Arena arena;
    Diags diags;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL("out of memory");
        return;
    }
    tg_diags_init(&diags, &arena, &no_sources, stderr);
    Graph *graph = tg_graph_new(&arena, &no_sources, LEVEL_KERNEL);
    Fixture f = {.arena = &arena, .diags = &diags};
    f.b = tg_builder(graph, tg_func_new(graph, FUNC_EXPORT, "test"), false);
    f.state = (EvalState){.arena = &arena, .mode = mode, .rows = rows};
    body(&f);
    tg_arena_deinit(&arena);
}
static void run(Body *body) { run_rows(body, 3, EVAL_REAL); }

/* Pointwise. */
static void unary_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_F64, -1.5, -0.0, 0.5, 2.5);
    WANT(f, unary(f, OP_neg, x), 1.5, 0.0, -0.5, -2.5);
    WANT(f, unary(f, OP_abs, x), 1.5, 0.0, 0.5, 2.5);
    WANT(f, unary(f, OP_sign, x), -1, 0, 1, 1);
    WANT(f, unary(f, OP_floor, x), -2, -0.0, 0, 2);
    WANT(f, unary(f, OP_ceil, x), -1, -0.0, 1, 3);
    WANT(f, unary(f, OP_round, x), -2, -0.0, 0, 2);
    NEAR(f, unary(f, OP_exp, x), 0.22313016014843, 1, 1.6487212707001282, 12.182493960703473);
    NEAR(f, unary(f, OP_expm1, x), -0.77686983985157, 0, 0.6487212707001282, 11.182493960703473);
    NEAR(f, unary(f, OP_sin, x), -0.9974949866040544, 0, 0.479425538604203, 0.5984721441039565);
    NEAR(f, unary(f, OP_cos, x), 0.0707372016677029, 1, 0.8775825618903728, -0.8011436155469337);
    NEAR(f, unary(f, OP_tanh, x), -0.9051482536448664, 0, 0.46211715726000976, 0.9866142981514303);
    NEAR(f, unary(f, OP_erf, x), -0.9661051464753108, 0, 0.5204998778130465, 0.999593047982555);
    NEAR(f, unary(f, OP_sigmoid, x), 0.18242552380635635, 0.5, 0.6224593312018546, 0.9241418199787566);
    NodeId y = VECTOR(f, DT_F64, 0.25, 1, 4, -1);
    NEAR(f, unary(f, OP_log, y), -1.3862943611198906, 0, 1.3862943611198906, NAN);
    NEAR(f, unary(f, OP_log1p, y), 0.22314355131420976, 0.6931471805599453, 1.6094379124341003, -INFINITY);
    WANT(f, unary(f, OP_sqrt, y), 0.5, 1, 2, NAN);
    WANT(f, unary(f, OP_rsqrt, y), 2, 1, 0.5, NAN);
    WANT(f, unary(f, OP_is_finite, VECTOR(f, DT_F64, 1, NAN, INFINITY, -INFINITY)), 1, 0, 0, 0);
    WANT(f, unary(f, OP_not, VECTOR(f, DT_BOOL, 1, 0)), 0, 1);
}
static void test_unary(void) { run(unary_values); }

static void binary_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_F64, 7, -7, 0.0, NAN), y = VECTOR(f, DT_F64, 2, 2, -0.0, 1);
    WANT(f, binary(f, OP_add, x, y), 9, -5, 0, NAN);
    WANT(f, binary(f, OP_sub, x, y), 5, -9, 0, NAN);
    WANT(f, binary(f, OP_mul, x, y), 14, -14, -0.0, NAN);
    WANT(f, binary(f, OP_div, x, y), 3.5, -3.5, NAN, NAN);
    WANT(f, binary(f, OP_mod, x, y), 1, 1, NAN, NAN);
    WANT(f, binary(f, OP_pow, x, y), 49, 49, 1, NAN);
    WANT(f, binary(f, OP_maximum, x, y), 7, 2, 0.0, NAN);
    WANT(f, binary(f, OP_maximum, y, x), 7, 2, 0.0, NAN);
    WANT(f, binary(f, OP_minimum, x, y), 2, -7, -0.0, NAN);
    WANT(f, binary(f, OP_minimum, y, x), 2, -7, -0.0, NAN);
    WANT(f, binary(f, OP_eq, x, y), 0, 0, 1, 0);
    WANT(f, binary(f, OP_ne, x, y), 1, 1, 0, 1);
    WANT(f, binary(f, OP_lt, x, y), 0, 1, 0, 0);
    WANT(f, binary(f, OP_ge, x, y), 1, 0, 1, 0);
}
static void logic_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_BOOL, 0, 0, 1, 1), y = VECTOR(f, DT_BOOL, 0, 1, 0, 1);
    WANT(f, binary(f, OP_and, x, y), 0, 0, 0, 1);
    WANT(f, binary(f, OP_or, x, y), 0, 1, 1, 1);
    NodeId yes = VECTOR(f, DT_F32, 1, 2, 3, 4), no = VECTOR(f, DT_F32, -1, NAN, -3, NAN);
    WANT(f, tg_select(&f->b, x, yes, no), -1, NAN, 3, 4);
}
static void test_binary(void) {
    run(binary_values);
    run(logic_values);
}

/* Integers wrap as machines do, in both modes; division goes toward zero. */
static void integer_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_U8, 200, 3, 7), y = VECTOR(f, DT_U8, 100, 5, 0);
    WANT(f, binary(f, OP_add, x, y), 44, 8, 7);
    WANT(f, binary(f, OP_sub, x, y), 100, 254, 7);
    WANT(f, binary(f, OP_mul, x, y), 32, 15, 0);
    WANT(f, binary(f, OP_div, x, y), 2, 0, 0);
    NodeId a = VECTOR(f, DT_I8, -128, -7), b = VECTOR(f, DT_I8, -1, 2);
    WANT(f, binary(f, OP_add, a, b), 127, -5);
    WANT(f, binary(f, OP_div, a, b), -128, -3);
    WANT(f, binary(f, OP_mod, a, b), 0, 1);
    WANT(f, unary(f, OP_neg, a), -128, 7);
}
static void test_integers(void) {
    run(integer_values);
    run_rows(integer_values, 1, EVAL_TYPED);
}

/* C14: f32(bf16(1 + 2^-8)) is 1 in both modes; an f32 sum is rounded in typed mode alone. */
static void cast_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_F32, 1.00390625, 65520, 1e-40, -2.7, NAN);
    WANT(f, tg_convert(&f->b, tg_convert(&f->b, x, DT_BF16), DT_F32), 1, 65536, 0, -2.703125, NAN);
    WANT(f, tg_convert(&f->b, x, DT_I8), 1, 127, 0, -2, 0);
    WANT(f, tg_convert(&f->b, x, DT_U8), 1, 255, 0, 0, 0);
    WANT(f, tg_convert(&f->b, x, DT_BOOL), 1, 1, 1, 1, 1);
}
static void half_values(Fixture *f) {
    NodeId x = VECTOR(f, DT_F32, 1.0004882812, 65520, 65519);
    WANT(f, tg_convert(&f->b, x, DT_F16), 1, INFINITY, 65504);
}
static void rounded_sum(Fixture *f) {
    NodeId x = VECTOR(f, DT_F32, 1, 1), y = VECTOR(f, DT_F32, 0x1p-25, 0x1p-23);
    if (f->state.mode == EVAL_TYPED)
        WANT(f, binary(f, OP_add, x, y), 1, 1 + 0x1p-23);
    else
        WANT(f, binary(f, OP_add, x, y), 1 + 0x1p-25, 1 + 0x1p-23);
}
static void test_rounding(void) {
    for (int mode = EVAL_REAL; mode <= EVAL_TYPED; mode++) {
        run_rows(cast_values, 1, (EvalMode)mode);
        run_rows(half_values, 1, (EvalMode)mode);
        run_rows(rounded_sum, 1, (EvalMode)mode);
    }
}

/* Index maps. */
static void shape_values(Fixture *f) {
    NodeId x = given(f, DT_F32, DIMS(N(2), N(3)), V(1, 2, 3, 4, 5, 6));
    WANT(f, tg_reshape(&f->b, x, type_of(f, DT_F32, DIMS(N(3), N(2)))), 1, 2, 3, 4, 5, 6);
    WANT(f, tg_transpose(&f->b, x, (int64_t[]){1, 0}, 2), 1, 4, 2, 5, 3, 6);
    WANT(f, node(f, OP_slice, (Attr){.list = {LIST(0, 0), LIST(2, 3), LIST(1, 2)}}, 0, 1, &x), 1, 3, 4, 6);
    WANT(f, node(f, OP_slice, (Attr){.list = {LIST(1, 1), LIST(2, 3), LIST(1, 1)}}, 0, 1, &x), 5, 6);
    WANT(f, node(f, OP_reverse, (Attr){.list = {LIST(1)}}, 0, 1, &x), 3, 2, 1, 6, 5, 4);
    WANT(f, node(f, OP_reverse, (Attr){.list = {LIST(0, 1)}}, 0, 1, &x), 6, 5, 4, 3, 2, 1);
    NodeId padded = node(f, OP_pad, (Attr){.list = {LIST(0, 1), LIST(1, 0), LIST(0, 1)}, .number = 9}, 0, 1, &x);
    WANT(f, padded, 9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9, 9, 9, 9, 9, 9);
    NodeId y = given(f, DT_F32, DIMS(N(2), N(1)), V(7, 8)), both[2] = {x, y};
    WANT(f, node(f, OP_concat, (Attr){.list = {LIST(1)}}, 0, 2, both), 1, 2, 3, 7, 4, 5, 6, 8);
    WANT(f, tg_broadcast(&f->b, y, (int64_t[]){0, 1}, 2, type_of(f, DT_F32, DIMS(N(2), N(2)))), 7, 7, 8, 8);
    NodeId row = VECTOR(f, DT_F32, 1, 2);
    WANT(f, tg_broadcast(&f->b, row, (int64_t[]){1}, 1, type_of(f, DT_F32, DIMS(B(1), N(2)))), 1, 2, 1, 2, 1, 2);
    WANT(f, tg_iota(&f->b, type_of(f, DT_I32, DIMS(N(2), N(3))), 1), 0, 1, 2, 0, 1, 2);
    WANT(f, tg_iota(&f->b, type_of(f, DT_I32, DIMS(N(2), N(3))), 0), 0, 0, 0, 1, 1, 1);
}
static void test_shape(void) { run(shape_values); }

/* Reductions. */
static void reduce_values(Fixture *f) {
    NodeId x = given(f, DT_F32, DIMS(N(2), N(3)), V(1, 5, 3, 4, NAN, 6));
    WANT(f, tg_reduce(&f->b, OP_reduce_sum, x, (int64_t[]){1}, 1, 0), 9, NAN);
    WANT(f, tg_reduce(&f->b, OP_reduce_sum, x, (int64_t[]){0}, 1, 0), 5, NAN, 9);
    WANT(f, tg_reduce(&f->b, OP_reduce_max, x, (int64_t[]){0}, 1, 0), 4, NAN, 6);
    WANT(f, tg_reduce(&f->b, OP_reduce_min, x, (int64_t[]){1}, 1, 0), 1, NAN);
    NodeId rows = given(f, DT_F64, DIMS(B(1), N(2)), V(1, 2, 3, 4, 5, 6));
    WANT(f, tg_reduce(&f->b, OP_reduce_sum, rows, (int64_t[]){0}, 1, 0), 9, 12);
    NodeId none = given(f, DT_F32, DIMS(N(2), N(0)), V(0));
    WANT(f, tg_reduce(&f->b, OP_reduce_sum, none, (int64_t[]){1}, 1, 0), 0, 0);
    WANT(f, tg_reduce(&f->b, OP_reduce_max, none, (int64_t[]){1}, 1, 0), -INFINITY, -INFINITY);
    NodeId bytes = given(f, DT_I8, DIMS(N(1), N(0)), V(0));
    WANT(f, tg_reduce(&f->b, OP_reduce_max, bytes, (int64_t[]){1}, 1, 0), -128);
    WANT(f, tg_reduce(&f->b, OP_reduce_min, bytes, (int64_t[]){1}, 1, 0), 127);
}
static NodeId argmax(Fixture *f, NodeId x) { return node(f, OP_argmax, (Attr){.list = {LIST(0)}}, 0, 1, &x); }
static void argmax_values(Fixture *f) {
    WANT(f, argmax(f, VECTOR(f, DT_F32, NAN, 4.6)), 0);
    WANT(f, argmax(f, VECTOR(f, DT_F32, 4.6, 7, NAN, NAN)), 2);
    WANT(f, argmax(f, VECTOR(f, DT_F32, 0, 1, 1, 1)), 1);
    WANT(f, argmax(f, given(f, DT_F32, DIMS(N(2), N(2)), V(1, 8, 3, 4))), 1, 0);
}
static void cumsum_values(Fixture *f) {
    NodeId x = given(f, DT_F32, DIMS(N(2), N(3)), V(1, 2, 3, 4, 5, 6));
    WANT(f, node(f, OP_cumsum, (Attr){.list = {LIST(1), LIST(0)}}, 0, 1, &x), 1, 3, 6, 4, 9, 15);
    WANT(f, node(f, OP_cumsum, (Attr){.list = {LIST(1), LIST(1)}}, 0, 1, &x), 6, 5, 3, 15, 11, 6);
    WANT(f, node(f, OP_cumsum, (Attr){.list = {LIST(0), LIST(0)}}, 0, 1, &x), 1, 2, 3, 5, 7, 9);
}
static void test_reduce(void) {
    run(reduce_values);
    run(argmax_values);
    run(cumsum_values);
}

/* Tables; C08: rows [0, 0, 2] of 3. */
static void table_values(Fixture *f) {
    NodeId table = given(f, DT_F32, DIMS(N(3), N(2)), V(1, 2, 3, 4, 5, 6)), rows = VECTOR(f, DT_I32, 2, 0, 3, -1);
    NodeId ones = VECTOR(f, DT_F32, 1, 1, 1, 1), index = VECTOR(f, DT_I32, 0, 0, 2, 3);
    TypeId three = type_of(f, DT_F32, DIMS(N(3)));
    WANT(f, node(f, OP_take, (Attr){.list = {LIST(0)}}, 0, 2, (NodeId[]){table, rows}), 5, 6, 1, 2, NAN, NAN, NAN, NAN);
    WANT(f, node(f, OP_scatter_add, (Attr){.list = {LIST(0)}}, three, 2, (NodeId[]){index, ones}), 2, 0, 1);
    NodeId column = VECTOR(f, DT_I32, 1, 1);
    WANT(f, node(f, OP_take, (Attr){.list = {LIST(1)}}, 0, 2, (NodeId[]){table, column}), 2, 2, 4, 4, 6, 6);
}
static void test_tables(void) { run(table_values); }

/* Contractions. */
static void dot_values(Fixture *f) {
    NodeId x = given(f, DT_F32, DIMS(N(2), N(3)), V(1, 2, 3, 4, 5, 6));
    NodeId y = given(f, DT_F32, DIMS(N(3), N(2)), V(1, 0, 0, 1, 2, 2)), bias = VECTOR(f, DT_F32, 10, 20);
    Attr plain = {.list = {{0}, {0}, LIST(1), LIST(0)}};
    WANT(f, node(f, OP_dot, plain, 0, 2, (NodeId[]){x, y}), 7, 8, 16, 17);
    WANT(f, node(f, OP_dot, plain, 0, 3, (NodeId[]){x, y, bias}), 17, 28, 26, 37);
    Attr crossed = {.list = {{0}, {0}, LIST(0), LIST(1)}};
    WANT(f, node(f, OP_dot, crossed, 0, 2, (NodeId[]){x, y}), 1, 4, 10, 2, 5, 14, 3, 6, 18);
    Attr batched = {.list = {LIST(0), LIST(1), LIST(1), LIST(0)}};
    WANT(f, node(f, OP_dot, batched, 0, 2, (NodeId[]){x, y}), 7, 17);
}
static void test_dot(void) { run(dot_values); }

/* C09: a query that sees no key gives 0, and a masked key's NaN is not read. Weights are 1/2 and 1/2 at equal scores.
 */
static void attention_values(Fixture *f) {
    NodeId q = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(1, 1)),
           k = given(f, DT_F32, DIMS(N(1), N(3), N(1)), V(2, 2, NAN));
    NodeId v = given(f, DT_F32, DIMS(N(1), N(3), N(1)), V(3, 5, NAN));
    NodeId mask = given(f, DT_BOOL, DIMS(N(2), N(3)), V(1, 1, 0, 0, 0, 0)),
           g = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(1, 1));
    Attr attr = {.list = {LIST(0)}, .number = 1};
    NodeId forward[4] = {q, k, v, mask}, backward[5] = {q, k, v, g, mask};
    WANT(f, node(f, OP_attention, attr, 0, 4, forward), 4, 0);
    WANT(f, node(f, OP_attention_dq, attr, 0, 5, backward), 0, 0);
    WANT(f, node(f, OP_attention_dk, attr, 0, 5, backward), -0.5, 0.5, 0);
    WANT(f, node(f, OP_attention_dv, attr, 0, 5, backward), 0.5, 0.5, 0);
}
static void causal_attention(Fixture *f) {
    NodeId q = given(f, DT_F32, DIMS(N(2), N(2), N(1)), V(0, 0, 0, 0)),
           k = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(1, 1));
    NodeId v = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(2, 4)), all[3] = {q, k, v};
    WANT(f, node(f, OP_attention, (Attr){.list = {LIST(1)}, .number = 1}, 0, 3, all), 2, 3, 2, 3);
}
/* Heads 0 and 1 share the first key, 2 and 3 the second. */
static void shared_heads(Fixture *f) {
    NodeId q = given(f, DT_F32, DIMS(N(4), N(1), N(1)), V(1, 1, 1, 1)), k = given(f, DT_F32, DIMS(N(2), N(1), N(1)), V(1, 1));
    NodeId v = given(f, DT_F32, DIMS(N(2), N(1), N(1)), V(2, 4)), all[3] = {q, k, v};
    WANT(f, node(f, OP_attention, (Attr){.list = {LIST(0)}, .number = 1}, 0, 3, all), 2, 2, 4, 4);
}
/* NaN wins in a row that sees a key, in the gradients of all keys; behind a mask and in a row that sees none it is not read. */
static void attention_of_nan(Fixture *f) {
    NodeId q = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(NAN, NAN)), k = given(f, DT_F32, DIMS(N(1), N(3), N(1)), V(1, 1, 1));
    NodeId v = given(f, DT_F32, DIMS(N(1), N(3), N(1)), V(3, 5, 7)), g = given(f, DT_F32, DIMS(N(1), N(2), N(1)), V(1, 1));
    NodeId blind = given(f, DT_BOOL, DIMS(N(2), N(3)), V(0, 0, 0, 0, 0, 0));
    Attr causal = {.list = {LIST(1)}, .number = 1};
    NodeId all[4] = {q, k, v, g}, none[5] = {q, k, v, g, blind};
    WANT(f, node(f, OP_attention_dk, causal, 0, 4, all), NAN, NAN, NAN);
    WANT(f, node(f, OP_attention_dv, causal, 0, 4, all), NAN, NAN, NAN);
    WANT(f, node(f, OP_attention_dk, causal, 0, 5, none), 0, 0, 0);
    WANT(f, node(f, OP_attention_dq, causal, 0, 5, none), 0, 0);
}
static void test_attention(void) {
    run(shared_heads);
    run(attention_of_nan);
    run(attention_values);
    run(causal_attention);
}

static void test_philox(void) {
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        tg_philox(known[i].counter, known[i].key, out);
        for (int k = 0; k < 4; k++)
            CU_ASSERT_EQUAL(out[k], known[i].out[k]);
    }
    CU_ASSERT_EQUAL(tg_random(7, 7, 0, 0, 0), 0x6627e8 * 0x1p-24f);
}

/* The same number for the same record, wherever it stands in a micro-batch; B is major in its dimension. */
static void random_values(Fixture *f) {
    f->state.first_row = 10;
    f->state.iteration = 4;
    f->state.seed = 5;
    NodeId x = node(f, OP_random, (Attr){.key = 99}, type_of(f, DT_F32, DIMS(N(2), B(3))), 0, NULL);
    Tensor got = value_of(f, x);
    for (int64_t outer = 0; outer < 2; outer++)
        for (int64_t row = 0; row < 3; row++)
            for (int64_t i = 0; i < 3; i++)
                CU_ASSERT_EQUAL(got.at[outer * 9 + row * 3 + i],
                                tg_random(5, 99, 4, (uint64_t)(10 + row), (uint64_t)(outer * 3 + i)));
    NodeId whole = node(f, OP_random, (Attr){.key = 99}, type_of(f, DT_F32, DIMS(N(2))), 0, NULL);
    WANT(f, whole, tg_random(5, 99, 4, 0, 0), tg_random(5, 99, 4, 0, 1));
}
static void test_random(void) { run(random_values); }

/* Functions: leaves, kernels, errors. */
static void leaf_values(Fixture *f) {
    Graph *graph = f->b.graph;
    TypeId pair = type_of(f, DT_F32, DIMS(N(2)));
    uint32_t p = tg_buffer_add(graph, (Buffer){.name = "p", .type = pair, .class = BUFFER_PARAM});
    uint32_t s = tg_buffer_add(graph, (Buffer){.name = "s", .type = pair, .class = BUFFER_SUM});
    uint32_t rate = tg_scalar_add(graph, (Scalar){.name = "rate", .class = SCALAR_SETTING});
    Tensor buffers[2] = {{pair, 2, V(1, 2)}, {pair, 6, V(1, 2, 3, 4, 5, 6)}};
    f->state.buffers = buffers;
    f->state.scalars = V(0.5);
    f->state.lane = 1;
    WANT(f, tg_load(&f->b, p), 1, 2);
    WANT(f, tg_load_lane(&f->b, s, 2), 5, 6);
    WANT(f, tg_scalar(&f->b, rate), 0.5);
}
static void call_values(Fixture *f) {
    Graph *graph = f->b.graph;
    Builder kernel = tg_builder(graph, tg_func_new(graph, FUNC_KERNEL, "kernel.0"), false);
    TypeId pair = type_of(f, DT_F32, DIMS(N(2)));
    NodeId a = tg_arg(&kernel, 0, "a", pair), b = tg_arg(&kernel, 1, "b", pair);
    tg_result_value(&kernel, "sum", tg_binary(&kernel, OP_add, a, b));
    tg_result_value(&kernel, "difference", tg_binary(&kernel, OP_sub, a, b));
    NodeId x[2] = {VECTOR(f, DT_F32, 1, 2), 0};
    x[1] = VECTOR(f, DT_F32, 10, 30);
    NodeId call = node(f, OP_call, (Attr){.ref = graph->funcs.count - 1}, 0, 2, x);
    NodeId first = node(f, OP_result, (Attr){.list = {LIST(0)}}, pair, 1, &call);
    NodeId second = node(f, OP_result, (Attr){.list = {LIST(1)}}, pair, 1, &call);
    WANT(f, binary(f, OP_mul, first, second), -99, -896);
}
/* A gradient leaf has no value, an argument must have its size; what no result needs is not evaluated. */
static void evaluation_errors(Fixture *f) {
    TypeId pair = type_of(f, DT_F32, DIMS(N(2)));
    uint32_t p = tg_buffer_add(f->b.graph, (Buffer){.name = "p", .type = pair, .class = BUFFER_PARAM});
    NodeId x = VECTOR(f, DT_F32, 1, 2), leaf = node(f, OP_gradient, (Attr){.ref = p}, 0, 0, NULL);
    WANT(f, x, 1, 2);
    Tensor result;
    f->diags->out = NULL;
    f->b.func->results.count = 0;
    tg_result_value(&f->b, "value", leaf);
    CU_ASSERT_EQUAL(tg_eval_func(&f->state, f->b.graph, f->b.func, f->diags, &result), TG_INTERNAL);
    CU_ASSERT_EQUAL(f->diags->errors, 1);
    f->b.func->results.at[0].node = x;
    f->args[0].count = 1;
    CU_ASSERT_EQUAL(tg_eval_func(&f->state, f->b.graph, f->b.func, f->diags, &result), TG_INTERNAL);
}
static void test_functions(void) {
    run(leaf_values);
    run(call_values);
    run(evaluation_errors);
}

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return CU_get_error();
    CU_pSuite suite = CU_add_suite("eval", NULL, NULL);
    CU_add_test(suite, "one operand", test_unary);
    CU_add_test(suite, "two operands", test_binary);
    CU_add_test(suite, "integers", test_integers);
    CU_add_test(suite, "rounding", test_rounding);
    CU_add_test(suite, "index maps", test_shape);
    CU_add_test(suite, "reductions", test_reduce);
    CU_add_test(suite, "tables", test_tables);
    CU_add_test(suite, "dot", test_dot);
    CU_add_test(suite, "attention", test_attention);
    CU_add_test(suite, "Philox", test_philox);
    CU_add_test(suite, "random", test_random);
    CU_add_test(suite, "functions", test_functions);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
