/* Every gradient rule of ops.def against directional differences of the evaluator in f64: for a random direction d of
   one operand and a random cotangent c, <c, f(x + hd) - f(x - hd)> / 2h must be <vjp(c), d>. */
#include "passes/vjp.h"
#include "tests/ops/generate.h"

#include <CUnit/Basic.h>
#include <math.h>

enum { SEEDS = 32 };

typedef struct Check {
    Arena *arena;
    Diags *diags;
    OpCase c;
    NodeId grad[OP_CASE_ARGS];
    int32_t result_of[OP_CASE_ARGS]; /* which result is the gradient of the operand; -1: none */
    Tensor direction[OP_CASE_ARGS], cotangent;
    const char *where;
} Check;

/* In [-1, 1), never 0. */
static double pattern(int64_t i, int64_t salt) {
    uint64_t z = (uint64_t)i * 2654435761u + (uint64_t)salt * 40503u + 12345u;
    z = (z ^ (z >> 13)) * UINT64_C(0x9E3779B97F4A7C15);
    return ((double)(z >> 40) + 0.5) * 0x1p-23 - 1.0;
}

static Tensor patterned(Check *check, TypeId type, int64_t salt) {
    int64_t count = tg_type_count(tg_type_of(&check->c.graph->types, type), check->c.rows);
    Tensor tensor = {type, count, TG_ALLOC(check->arena, double, count + 1)};
    for (int64_t i = 0; i < count; i++)
        tensor.at[i] = pattern(i, salt);
    return tensor;
}

/* Appends the gradients as results; the cotangent becomes the last argument. */
static bool differentiate(Check *check) {
    OpCase *c = &check->c;
    Builder b = tg_builder(c->graph, c->func, true);
    TypeId type = tg_node(c->func, c->node)->type;
    NodeId cotangent = tg_arg(&b, c->arg_count, "cotangent", type);
    bool wanted[OP_CASE_ARGS], in_f32[OP_CASE_ARGS] = {false};
    for (uint32_t i = 0; i < OP_CASE_ARGS; i++)
        wanted[i] = true;
    Vjp v = {.b = &b, .func = c->func, .node = c->node, .cotangent = cotangent, .wanted = wanted, .in_f32 = in_f32, .grad = check->grad};
    tg_vjp(&v);
    for (uint32_t i = 0; i < c->arg_count; i++) {
        check->result_of[i] = check->grad[i] ? (int32_t)c->func->results.count : -1;
        if (!check->grad[i])
            continue;
        tg_result_value(&b, "gradient", check->grad[i]);
        CU_ASSERT_EQUAL(tg_node(c->func, check->grad[i])->type, c->args[i].type);
    }
    check->cotangent = patterned(check, type, 99);
    return tg_builder_status(&b, check->diags) == TG_OK;
}

/* All results at the arguments, with operand `moved` shifted by h along its direction. */
static bool evaluate(Check *check, uint32_t moved, double h, Tensor *results) {
    OpCase *c = &check->c;
    Tensor args[OP_CASE_ARGS + 1];
    for (uint32_t i = 0; i < c->arg_count; i++)
        args[i] = c->args[i];
    args[c->arg_count] = check->cotangent;
    Tensor *x = &args[moved];
    double *at = TG_ALLOC(check->arena, double, x->count + 1);
    for (int64_t i = 0; i < x->count; i++)
        at[i] = x->at[i] + h * check->direction[moved].at[i];
    x->at = at;
    EvalState state = {.arena = check->arena, .mode = EVAL_REAL, .rows = c->rows, .args = args};
    return tg_eval_func(&state, c->graph, c->func, check->diags, results) == TG_OK;
}

static double inner(const Tensor *x, const Tensor *y) {
    double sum = 0;
    for (int64_t i = 0; i < x->count; i++)
        sum += x->at[i] * y->at[i];
    return sum;
}

static void compare(Check *check, uint32_t operand) {
    Tensor up[OP_CASE_ARGS + 2], down[OP_CASE_ARGS + 2], here[OP_CASE_ARGS + 2];
    double h = 1e-5;
    check->direction[operand] = patterned(check, check->c.args[operand].type, operand);
    bool done =
        evaluate(check, operand, h, up) && evaluate(check, operand, -h, down) && evaluate(check, operand, 0, here);
    CU_ASSERT_TRUE(done);
    if (!done)
        return;
    double measured = 0;
    for (int64_t i = 0; i < up[0].count; i++)
        if (up[0].at[i] != down[0].at[i]) /* the maximum of nothing is infinite on both sides */
            measured += check->cotangent.at[i] * (up[0].at[i] - down[0].at[i]) / (2 * h);
    double given = inner(&here[check->result_of[operand]], &check->direction[operand]);
    double scale = 1.0;
    for (int64_t i = 0; i < check->cotangent.count && isfinite(here[0].at[i]); i++)
        scale += fabs(check->cotangent.at[i] * here[0].at[i]);
    bool close = fabs(measured - given) <= 2e-7 * scale + 2e-7 * fabs(given);
    if (!close)
        printf("\n    %s, operand %u: the gradient gives %.10g, differences %.10g\n", check->where, operand, given,
               measured);
    CU_ASSERT_TRUE(close);
}

/* Differences mean something only where nothing is rounded on the way. */
static bool is_wide(const Graph *graph, TypeId type) {
    DType dtype = tg_type_of(&graph->types, type)->dtype;
    return dtype == DT_F32 || dtype == DT_F64;
}

static bool check_case(Arena *arena, Diags *diags, Op op, DType dtype, uint64_t seed) {
    Check check = {.arena = arena, .diags = diags};
    if (!tg_op_case(arena, op, dtype, seed, &check.c) ||
        !is_wide(check.c.graph, tg_node(check.c.func, check.c.node)->type))
        return false;
    check.where = tg_arena_printf(arena, "%s %s, seed %u", tg_op(op)->name, tg_dtype(dtype)->name, (unsigned)seed);
    bool built = differentiate(&check);
    CU_ASSERT_TRUE(built);
    bool any = false;
    for (uint32_t i = 0; built && i < check.c.arg_count; i++) {
        if (check.result_of[i] < 0) {
            CU_ASSERT_FALSE(is_wide(check.c.graph, check.c.args[i].type));
            continue;
        }
        compare(&check, i);
        any = true;
    }
    return any;
}

typedef bool CaseCheck(Arena *arena, Diags *diags, Op op, DType dtype, uint64_t seed);

/* In an arena of its own. */
static bool run_case(CaseCheck *check, Op op, DType dtype, uint64_t seed) {
    static const Sources no_sources;
    Arena arena;
    Diags diags;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL("out of memory");
        return false;
    }
    tg_diags_init(&diags, &arena, &no_sources, stderr);
    bool made = check(&arena, &diags, op, dtype, seed);
    tg_arena_deinit(&arena);
    return made;
}

static void every_gradient(void) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (!tg_op_has_gradient((Op)op) || !tg_op_has_case((Op)op))
            continue;
        uint32_t checked = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            checked += run_case(check_case, (Op)op, seed & 8 ? DT_F32 : DT_F64, seed);
        if (!checked)
            printf("\n    %s was never checked\n", tg_op((Op)op)->name);
        CU_ASSERT_TRUE(checked > 0);
    }
}

/* Where differences say nothing: ends of domains, ties, a cotangent of 0 against an infinite factor. Scalars of f64. */
typedef struct Edge {
    Op op;
    double x, y, cotangent;
    double by_x, by_y;
} Edge;

static const Edge edges[] = {
    {OP_abs, 0, 0, 1, 0, 0},
    {OP_sqrt, 0, 0, 1, 0, 0},
    {OP_log, 0, 0, 0, 0, 0},
    {OP_rsqrt, 0, 0, 0, 0, 0},
    {OP_exp, INFINITY, 0, 0, 0, 0},
    {OP_mul, INFINITY, 3, 0, 0, 0},
    {OP_div, 3, 0, 0, 0, 0},
    {OP_pow, 0, 0, 1, 0, 0},
    {OP_pow, 3, 1, 1, 1, 3 * 1.0986122886681098},
    {OP_pow, 0, 2, 1, 0, 0},
    {OP_maximum, 2, 2, 1, 0.5, 0.5},
    {OP_maximum, 3, 2, 1, 1, 0},
    {OP_minimum, 2, 2, 1, 0.5, 0.5},
    {OP_minimum, 3, 2, 1, 0, 1},
};

static bool check_edge(Arena *arena, Diags *diags, const Edge *edge) {
    static const Sources no_sources;
    Graph *graph = tg_graph_new(arena, &no_sources, LEVEL_STEP);
    Builder b = tg_builder(graph, tg_func_new(graph, FUNC_EXPORT, "edge"), false);
    TypeId real = tg_type(&graph->types, &(Type){.dtype = DT_F64});
    NodeId operands[2] = {tg_arg(&b, 0, "x", real), tg_arg(&b, 1, "y", real)}, grad[2] = {0};
    uint32_t count = (uint32_t)tg_op(edge->op)->min_operands;
    NodeId node = tg_build(&b, edge->op, NULL, operands, count, 0);
    bool wanted[2] = {true, true}, in_f32[2] = {false};
    Vjp v = {.b = &b, .func = b.func, .node = node, .cotangent = tg_const(&b, real, edge->cotangent), .wanted = wanted, .in_f32 = in_f32, .grad = grad};
    tg_vjp(&v);
    for (uint32_t i = 0; i < count; i++)
        tg_result_value(&b, "gradient", grad[i]);
    double x = edge->x, y = edge->y;
    Tensor args[2] = {{real, 1, &x}, {real, 1, &y}}, results[2];
    EvalState state = {.arena = arena, .mode = EVAL_TYPED, .rows = 1, .args = args};
    if (tg_builder_status(&b, diags) != TG_OK || tg_eval_func(&state, graph, b.func, diags, results) != TG_OK)
        return false;
    return results[0].at[0] == edge->by_x && (count == 1 || results[1].at[0] == edge->by_y);
}

/* The square, which has a rule of its own, and the elements that share a maximum. */
static bool check_shared(Arena *arena, Diags *diags) {
    static const Sources no_sources;
    Graph *graph = tg_graph_new(arena, &no_sources, LEVEL_STEP);
    Builder b = tg_builder(graph, tg_func_new(graph, FUNC_EXPORT, "shared"), false);
    TypeId row = tg_type(&graph->types, &(Type){.dtype = DT_F64, .rank = 1, .dims = {{3, false}}});
    TypeId real = tg_type(&graph->types, &(Type){.dtype = DT_F64});
    NodeId x = tg_arg(&b, 0, "x", row), grad[2] = {0};
    int64_t axis = 0;
    NodeId nodes[2] = {tg_reduce(&b, OP_reduce_max, x, &axis, 1, 0), tg_binary(&b, OP_pow, x, tg_const(&b, row, 2))};
    for (int i = 0; i < 2; i++) {
        bool wanted[2] = {true, false}, in_f32[2] = {false};
        Vjp v = {.b = &b, .func = b.func, .node = nodes[i], .cotangent = tg_const(&b, i ? row : real, 1), .wanted = wanted, .in_f32 = in_f32, .grad = grad};
        tg_vjp(&v);
        tg_result_value(&b, "gradient", grad[0]);
    }
    double values[] = {2, 1, 2}, shares[] = {0.5, 0, 0.5}, twice[] = {4, 2, 4};
    Tensor arg = {row, 3, values}, results[2];
    EvalState state = {.arena = arena, .mode = EVAL_TYPED, .rows = 1, .args = &arg};
    bool right = tg_builder_status(&b, diags) == TG_OK && tg_eval_func(&state, graph, b.func, diags, results) == TG_OK;
    for (int i = 0; right && i < 3; i++)
        right = results[0].at[i] == shares[i] && results[1].at[i] == twice[i];
    return right;
}

static void every_edge(void) {
    static const Sources no_sources;
    Arena arena;
    Diags diags;
    tg_arena_init(&arena, tg_host());
    tg_diags_init(&diags, &arena, &no_sources, stderr);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        bool right = check_edge(&arena, &diags, &edges[i]);
        if (!right)
            printf("\n    %s at (%g, %g)\n", tg_op(edges[i].op)->name, edges[i].x, edges[i].y);
        CU_ASSERT_TRUE(right);
    }
    CU_ASSERT_TRUE(check_shared(&arena, &diags));
    tg_arena_deinit(&arena);
}

/* The evaluator in typed mode gives values of the result's type. */
static bool check_typed(Arena *arena, Diags *diags, Op op, DType dtype, uint64_t seed) {
    OpCase c;
    if (!tg_op_case(arena, op, dtype, seed, &c))
        return false;
    EvalState state = {.arena = arena, .mode = EVAL_TYPED, .rows = c.rows, .args = c.args};
    Tensor result = {0};
    CU_ASSERT_EQUAL(tg_eval_func(&state, c.graph, c.func, diags, &result), TG_OK);
    DType type = tg_type_of(&c.graph->types, result.type)->dtype;
    bool typed = true;
    for (int64_t i = 0; i < result.count; i++)
        typed = typed && (tg_round_to(type, result.at[i]) == result.at[i] || isnan(result.at[i]));
    CU_ASSERT_TRUE(typed);
    return true;
}

/* Each operation takes bool or f32, and what it takes has cases of all flavours. */
static void every_case(void) {
    for (int op = 0; op < OP_COUNT; op++) {
        uint32_t made[DT_COUNT] = {0};
        for (uint64_t seed = 0; tg_op_has_case((Op)op) && seed < SEEDS * DT_COUNT; seed++)
            made[seed / SEEDS] += run_case(check_typed, (Op)op, (DType)(seed / SEEDS), seed);
        if (!tg_op_has_case((Op)op))
            continue;
        bool enough = made[DT_BOOL] + made[DT_F32] + made[DT_I32] > 0;
        for (int dtype = 0; dtype < DT_COUNT; dtype++)
            enough = enough && (made[dtype] == 0 || made[dtype] >= SEEDS / 2);
        if (!enough)
            printf("\n    %s has no cases, or few in a type\n", tg_op((Op)op)->name);
        CU_ASSERT_TRUE(enough);
    }
}

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return CU_get_error();
    CU_pSuite suite = CU_add_suite("gradients", NULL, NULL);
    CU_add_test(suite, "every operation has cases in its types", every_case);
    CU_add_test(suite, "every gradient equals differences", every_gradient);
    CU_add_test(suite, "gradients where differences say nothing", every_edge);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
