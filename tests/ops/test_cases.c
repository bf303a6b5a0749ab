/* Singular points and other faults from the field (cases C01, C03, C04, C05, C07, C13), through autodiff and the
   evaluator, in f32 and f64, folded and not, in both modes of the evaluator and on the CPU. */
#include "ir/eval.h"
#include "passes/passes.h"
#include "tests/ops/backend.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <string.h>

enum { MOST_PARAMS = 2, MOST_VALUES = 16, MOST_RESULTS = 2 + MOST_PARAMS };
enum { ON_CPU = EVAL_TYPED + 1 }; /* beside the evaluator's modes */

/* A model whose loss is the sum of a value; each parameter holds its point. */
typedef struct Case {
    Arena *arena;
    Builder b;
    DType dtype;
    int mode;
    uint32_t params;
    Tensor points[MOST_PARAMS];
    Tensor mask; /* an argument of bool, for selects */
    Op hidden;   /* the operation that hidden_point hides */
    double value[MOST_VALUES], gradient[MOST_PARAMS][MOST_VALUES];
} Case;

static TypeId shaped(Case *c, DType dtype, int rank, const int64_t *sizes) {
    Type type = {.dtype = dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.dims[i].size = sizes[i];
    return tg_type(&c->b.graph->types, &type);
}

static NodeId param_shaped(Case *c, int rank, const int64_t *sizes, const double *values) {
    TypeId type = shaped(c, c->dtype, rank, sizes);
    int64_t count = tg_type_count(tg_type_of(&c->b.graph->types, type), 1);
    const char *name = tg_arena_printf(c->arena, "p%u", c->params);
    uint32_t buffer = tg_buffer_add(c->b.graph, (Buffer){.name = name, .type = type, .class = BUFFER_PARAM});
    c->points[c->params++] = (Tensor){type, count, tg_arena_copy(c->arena, values, (size_t)count * sizeof *values)};
    return tg_load(&c->b, buffer);
}

static NodeId param(Case *c, int64_t count, const double *values) { return param_shaped(c, 1, &count, values); }
#define PARAM(c, ...) param((c), sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static NodeId number(Case *c, NodeId like, double value) {
    return tg_const(&c->b, tg_node(c->b.func, like)->type, value);
}
static NodeId unary(Case *c, Op op, NodeId x) { return tg_unary(&c->b, op, x); }
static NodeId binary(Case *c, Op op, NodeId x, NodeId y) { return tg_binary(&c->b, op, x, y); }
static NodeId sum(Case *c, NodeId x) { return tg_reduce(&c->b, OP_reduce_sum, x, (int64_t[]){0}, 1, 0); }
static NodeId spread(Case *c, NodeId x, NodeId like) {
    return tg_broadcast_like(&c->b, x, tg_node(c->b.func, like)->type);
}

static NodeId total(Case *c, NodeId x) {
    while (tg_node_type(c->b.graph, c->b.func, x)->rank > 0)
        x = sum(c, x);
    return x;
}

/* The results of the differentiated objective by the evaluator. */
static void evaluate(Case *c, const Graph *graph, const Func *func, Diags *diags, Tensor *results) {
    EvalState state = {
        .arena = c->arena, .mode = (EvalMode)c->mode, .rows = 1, .buffers = c->points, .args = &c->mask};
    CU_ASSERT_EQUAL_FATAL(tg_eval_func(&state, graph, func, diags, results), TG_OK);
}

static NodeId without_detach(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)context;
    return tg_node(copy->from, id)->op == OP_detach ? operands[0] : 0;
}

/* The same function as an export of a step. */
static Graph *exported(Case *c, const Graph *graph, const Func *func, Diags *diags) {
    Graph *step = tg_graph_like(c->arena, graph, LEVEL_STEP);
    step->training = (Training){.batch = 1, .micro = 1, .lanes = 1, .clip_scalar = -1};
    Builder b = tg_builder(step, tg_func_new(step, FUNC_EXPORT, "case"), c->b.fold);
    Copy copy = tg_copy(c->arena, &b, graph, func);
    copy.replace = without_detach;
    for (uint32_t i = 0; i < func->results.count; i++)
        tg_copy_need(&copy, func->results.at[i].node);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    CU_ASSERT_EQUAL_FATAL(tg_builder_status(&b, diags), TG_OK);
    return step;
}

/* And by its kernels. */
static void run_kernels(Case *c, const Graph *graph, const Func *func, Diags *diags, Tensor *results) {
    Lowered lowered = {0};
    BackendCode code;
    TgExec *exec;
    CU_ASSERT_EQUAL_FATAL(backend_lower(c->arena, diags, exported(c, graph, func, diags), &lowered), TG_OK);
    CU_ASSERT_EQUAL_FATAL(backend_compile(c->arena, diags, &lowered, &code), TG_OK);
    CU_ASSERT_EQUAL_FATAL(backend_open(c->arena, &lowered, code.kernels, 1, &exec), TG_OK);
    const TgPlan *plan = lowered.plan;
    const PlanFunc *run = backend_export(plan);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].class == PLAN_PARAM) {
            const Tensor *point = &c->points[plan->buffers[i].name[1] - '0'];
            backend_write(exec, plan, i, point->at, point->count);
        }
    if (run->input_count)
        backend_write(exec, plan, plan->inputs[run->input_first], c->mask.at, c->mask.count);
    tg_exec_scalars(exec)->rows = 1;
    tg_exec_run(exec, run, 0);
    for (uint32_t i = 0; i < run->result_count; i++) {
        int64_t count = tg_type_count(tg_node_type(graph, func, func->results.at[i].node), 1);
        results[i] = (Tensor){.count = count, .at = TG_ALLOC(c->arena, double, count)};
        backend_read(exec, plan, plan->results[run->result_first + i].buffer, results[i].at, count);
    }
    tg_exec_close(exec);
    backend_free(&code);
}

/* Differentiates the sum of `y` and evaluates it all: c->value, c->gradient. */
static void solve(Case *c, NodeId y, Diags *diags) {
    Graph *graph = c->b.graph, *differentiated;
    tg_result_value(&c->b, "value", y);
    tg_result_value(&c->b, "loss", total(c, y));
    graph->training.loss = "loss";
    CU_ASSERT_EQUAL_FATAL(tg_builder_status(&c->b, diags), TG_OK);
    PassContext context = {.arena = c->arena, .diags = diags, .fold = c->b.fold};
    CU_ASSERT_EQUAL_FATAL(run_autodiff(&context, graph, &differentiated), TG_OK);
    const Func *func = tg_func_find(differentiated, FUNC_OBJECTIVE, NULL);
    Tensor results[MOST_RESULTS];
    CU_ASSERT_EQUAL_FATAL(func->results.count, 2 + c->params);
    (c->mode == ON_CPU ? run_kernels : evaluate)(c, differentiated, func, diags, results);
    memcpy(c->value, results[0].at, (size_t)results[0].count * sizeof(double));
    for (uint32_t i = 0; i < c->params; i++)
        memcpy(c->gradient[i], results[2 + i].at, (size_t)results[2 + i].count * sizeof(double));
}

static void expect(const double *got, const double *want, uint32_t count, double tolerance, int line) {
    for (uint32_t i = 0; i < count; i++) {
        bool same = isnan(want[i]) ? isnan(got[i]) : got[i] == want[i] || fabs(got[i] - want[i]) <= tolerance;
        if (!same)
            printf("\n    line %d, element %u: %.17g, not %.17g\n", line, i, got[i], want[i]);
        CU_ASSERT_TRUE(same);
    }
}
#define WANT(got, tolerance, ...)                                                                                      \
    expect((got), (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (tolerance), __LINE__)

typedef void Body(Case *c, Diags *diags);

static void run_one(Body *body, Op hidden, DType dtype, bool fold, int mode) {
    static const Sources no_sources;
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL("out of memory");
        return;
    }
    Diags diags;
    tg_diags_init(&diags, &arena, &no_sources, stderr);
    Graph *graph = tg_graph_new(&arena, &no_sources, LEVEL_MODEL);
    Case c = {.arena = &arena, .dtype = dtype, .mode = mode, .hidden = hidden};
    c.b = tg_builder(graph, tg_func_new(graph, FUNC_OBJECTIVE, "objective"), fold);
    body(&c, &diags);
    tg_arena_deinit(&arena);
}

static void run_with(Body *body, Op hidden) {
    for (int dtype = DT_F32; dtype <= DT_F64; dtype++)
        for (int fold = 0; fold < 2; fold++)
            for (int mode = EVAL_REAL; mode <= ON_CPU; mode++)
                run_one(body, hidden, (DType)dtype, fold, mode);
}

static void run(Body *body) { run_with(body, OP_COUNT); }

/* C01: the branch of a select that is not taken. */
static void exp_not_taken(Case *c, Diags *diags) {
    NodeId a = PARAM(c, 100.0, 1000.0), zero = number(c, a, 0), one = number(c, a, 1);
    NodeId grown = unary(c, OP_exp, a), line = binary(c, OP_add, one, a);
    solve(c, tg_select(&c->b, binary(c, OP_le, a, zero), grown, line), diags);
    WANT(c->value, 0, 101, 1001);
    WANT(c->gradient[0], 0, 1, 1);
}

static void sqrt_not_taken(Case *c, Diags *diags) {
    NodeId x = PARAM(c, -1.0, -4.0, 4.0);
    solve(c, tg_select(&c->b, binary(c, OP_gt, x, number(c, x, 0)), unary(c, OP_sqrt, x), x), diags);
    WANT(c->value, 0, -1, -4, 2);
    WANT(c->gradient[0], 0, 1, 1, 0.25);
}

static NodeId mask_argument(Case *c, NodeId like, double value) {
    Type type = *tg_node_type(c->b.graph, c->b.func, like);
    type.dtype = DT_BOOL;
    c->mask = (Tensor){tg_type(&c->b.graph->types, &type), tg_type_count(&type, 1), NULL};
    c->mask.at = TG_ALLOC(c->arena, double, c->mask.count);
    for (int64_t i = 0; i < c->mask.count; i++)
        c->mask.at[i] = value;
    return tg_arg(&c->b, 0, "mask", c->mask.type);
}

/* Nothing leaks from any pointwise operation at any point: select(false, op(x), x) has gradient 1. */
static void hidden_point(Case *c, Diags *diags) {
    NodeId x = PARAM(c, -1.0, 0.0, -0.0, 1.0, 1e38, -1e38, INFINITY, -INFINITY, NAN, 1e-38);
    NodeId bad = PARAM(c, 0.0, 0.0, 0.0, -0.0, INFINITY, NAN, INFINITY, 0.0, 1.0, -1e38);
    NodeId y = tg_op(c->hidden)->min_operands == 1 ? unary(c, c->hidden, x) : binary(c, c->hidden, x, bad);
    NodeId both = binary(c, OP_add, x, bad);
    solve(c, tg_select(&c->b, mask_argument(c, x, 0), y, both), diags);
    for (int i = 0; i < 2; i++)
        WANT(c->gradient[i], 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

static void test_hidden(void) {
    static const Op ops[] = {OP_neg,   OP_abs, OP_exp, OP_expm1,   OP_log,     OP_log1p,   OP_sqrt,
                             OP_rsqrt, OP_sin, OP_cos, OP_tanh,    OP_erf,     OP_sigmoid, OP_add,
                             OP_sub,   OP_mul, OP_div, OP_maximum, OP_minimum, OP_pow};
    for (uint32_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        run_with(hidden_point, ops[i]);
}

static void test_c01(void) {
    run(exp_not_taken);
    run(sqrt_not_taken);
    test_hidden();
}

/* C03: singular points. */
static void norm_of_zeros(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 0.0, 0.0, 0.0);
    solve(c, unary(c, OP_sqrt, sum(c, binary(c, OP_mul, x, x))), diags);
    WANT(c->value, 0, 0);
    WANT(c->gradient[0], 0, 0, 0, 0);
}

static NodeId centred(Case *c, NodeId x, double count) {
    NodeId s = sum(c, x);
    return binary(c, OP_sub, x, spread(c, binary(c, OP_div, s, number(c, s, count)), x));
}

static void deviation_of_equals(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 1.0, 1.0), d = centred(c, x, 2);
    solve(c, unary(c, OP_sqrt, sum(c, binary(c, OP_mul, d, d))), diags);
    WANT(c->value, 0, 0);
    WANT(c->gradient[0], 0, 0, 0);
}

static void power_of_zero(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 0.0, 1.0);
    solve(c, binary(c, OP_pow, x, number(c, x, 0)), diags);
    WANT(c->value, 0, 1, 1);
    WANT(c->gradient[0], 0, 0, 0);
}

static void power_by_exponent(Case *c, Diags *diags) {
    NodeId b = PARAM(c, 1.0, 1.0);
    NodeId base = tg_build(&c->b, OP_const, &(Attr){.dense = (double[]){0, 2}}, NULL, 0, tg_node(c->b.func, b)->type);
    solve(c, binary(c, OP_pow, base, b), diags);
    WANT(c->value, 0, 0, 2);
    WANT(c->gradient[0], 1e-6, 0, 1.3862943611);
}

static void square(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 0.0, -3.0);
    solve(c, binary(c, OP_pow, x, number(c, x, 2)), diags);
    WANT(c->gradient[0], 0, 0, -6);
}

static void kinks(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 0.0, 2.0, -2.0), zero = number(c, x, 0);
    NodeId relu = tg_select(&c->b, binary(c, OP_gt, x, zero), x, zero);
    solve(c, binary(c, OP_add, unary(c, OP_abs, x), relu), diags);
    WANT(c->gradient[0], 0, 0, 2, -1);
}

static void test_c03(void) {
    run(norm_of_zeros);
    run(deviation_of_equals);
    run(power_of_zero);
    run(power_by_exponent);
    run(square);
    run(kinks);
}

/* C04: ties. */
static void tied_reduction(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 3.0, 3.0, 1.0);
    NodeId low = tg_reduce(&c->b, OP_reduce_min, unary(c, OP_neg, x), (int64_t[]){0}, 1, 0);
    NodeId high = tg_reduce(&c->b, OP_reduce_max, x, (int64_t[]){0}, 1, 0);
    solve(c, binary(c, OP_sub, high, low), diags);
    WANT(c->value, 0, 6);
    WANT(c->gradient[0], 0, 1, 1, 0);
}

static void tied_pair(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 2.0, 1.0), y = PARAM(c, 2.0, 5.0);
    solve(c, binary(c, OP_maximum, x, y), diags);
    WANT(c->value, 0, 2, 5);
    WANT(c->gradient[0], 0, 0.5, 0);
    WANT(c->gradient[1], 0, 0.5, 1);
}

static void tied_minimum(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 2.0, 1.0), y = PARAM(c, 2.0, 5.0);
    solve(c, binary(c, OP_minimum, x, y), diags);
    WANT(c->gradient[0], 0, 0.5, 1);
    WANT(c->gradient[1], 0, 0.5, 0);
}

static void test_c04(void) {
    run(tied_reduction);
    run(tied_pair);
    run(tied_minimum);
}

/* C05: log-softmax as it is lowered: x - max - log sum exp(x - max). */
static NodeId log_softmax(Case *c, NodeId x) {
    NodeId top = unary(c, OP_detach, tg_reduce(&c->b, OP_reduce_max, x, (int64_t[]){0}, 1, 0));
    NodeId shifted = binary(c, OP_sub, x, spread(c, top, x));
    return binary(c, OP_sub, shifted, spread(c, unary(c, OP_log, sum(c, unary(c, OP_exp, shifted))), x));
}

static void distant_logits(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 0.0, -200.0);
    solve(c, log_softmax(c, x), diags);
    WANT(c->value, 0, 0, -200);
    WANT(c->gradient[0], 1e-30, -1, 1);
}

static void huge_logits(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 1e8, 1e8);
    solve(c, unary(c, OP_neg, log_softmax(c, x)), diags);
    WANT(c->value, 1e-6, 0.69314718, 0.69314718);
    WANT(c->gradient[0], 0, 0, 0);
}

static void test_c05(void) {
    run(distant_logits);
    run(huge_logits);
}

/* C07: the gradient of a broadcast is a sum. */
static void outer_sum(Case *c, Diags *diags) {
    NodeId x = param_shaped(c, 2, (int64_t[]){2, 1}, (double[]){1, 2});
    NodeId y = param_shaped(c, 2, (int64_t[]){1, 3}, (double[]){1, 2, 3});
    TypeId full = shaped(c, c->dtype, 2, (int64_t[]){2, 3});
    int64_t dims[2] = {0, 1};
    solve(c, binary(c, OP_add, tg_broadcast(&c->b, x, dims, 2, full), tg_broadcast(&c->b, y, dims, 2, full)), diags);
    WANT(c->value, 0, 2, 3, 4, 3, 4, 5);
    WANT(c->gradient[0], 0, 3, 3);
    WANT(c->gradient[1], 0, 2, 2, 2);
}

static void scalar_product(Case *c, Diags *diags) {
    double values[12];
    double all = 0;
    for (int i = 0; i < 12; i++)
        all += values[i] = i - 3.5;
    NodeId s = param_shaped(c, 0, NULL, (double[]){2}), m = param_shaped(c, 2, (int64_t[]){3, 4}, values);
    solve(c, binary(c, OP_mul, spread(c, s, m), m), diags);
    WANT(c->gradient[0], 0, all);
    WANT(c->gradient[1], 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
}

static void minus_mean(Case *c, Diags *diags) {
    NodeId x = PARAM(c, 1.0, 2.0, 4.0, 9.0);
    solve(c, centred(c, x, 4), diags);
    WANT(c->value, 0, -3, -2, 0, 5);
    WANT(c->gradient[0], 0, 0, 0, 0, 0);
}

static void test_c07(void) {
    run(outer_sum);
    run(scalar_product);
    run(minus_mean);
}

/* C13: NaN in max and argmax. */
static void nan_in_maximum(Case *c, Diags *diags) {
    NodeId x = PARAM(c, -0.09);
    solve(c, binary(c, OP_maximum, x, unary(c, OP_sqrt, x)), diags);
    WANT(c->value, 0, NAN);
}

static NodeId argmax(Case *c, NodeId x) {
    NodeId i = tg_build(&c->b, OP_argmax, &(Attr){.list = {{(int64_t[]){0}, 1}}}, &x, 1, 0);
    return tg_convert(&c->b, i, c->dtype);
}

/* The parameter reaches the loss beside the argmax, which has no gradient. */
static void nan_in_argmax(Case *c, Diags *diags) {
    NodeId x = PARAM(c, NAN, 4.6), y = PARAM(c, 0.0, 1.0, 1.0, 1.0);
    NodeId zero = binary(c, OP_mul, sum(c, y), number(c, sum(c, y), 0));
    NodeId hundred = binary(c, OP_mul, argmax(c, x), number(c, argmax(c, x), 100));
    NodeId reached = tg_select(&c->b, binary(c, OP_ge, zero, zero), zero, sum(c, x));
    solve(c, binary(c, OP_add, reached, binary(c, OP_add, hundred, argmax(c, y))), diags);
    WANT(c->value, 0, 1);
}

static void test_c13(void) {
    run(nan_in_maximum);
    run(nan_in_argmax);
}

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return CU_get_error();
    CU_pSuite suite = CU_add_suite("cases", NULL, NULL);
    CU_add_test(suite, "C01 select", test_c01);
    CU_add_test(suite, "C03 singular points", test_c03);
    CU_add_test(suite, "C04 ties", test_c04);
    CU_add_test(suite, "C05 log-softmax", test_c05);
    CU_add_test(suite, "C07 broadcast", test_c07);
    CU_add_test(suite, "C13 NaN", test_c13);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
