/* Attention by blocks of queries, and as dots, and its gradients, on the CPU against the evaluator, in f32, bf16 and f16: whole blocks
   and a last short one, causal or not, heads that share a key, fewer queries than positions, one gradient alone; with one thread
   and with two, to the bit. */
#include "ir/build.h"
#include "ir/eval.h"
#include "passes/pass.h"
#include "tests/ops/backend.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

enum { RECORDS = 2, OPERANDS = 4, RESULTS = 4 };

typedef struct Sizes {
    int64_t keys, heads, queries, positions, depth, causal;
    uint32_t results; /* bits: out, dq, dk, dv */
} Sizes;

typedef struct Way {
    DType dtype;
    bool wide;     /* results are f32 */
    bool dots;     /* the pass makes dots of it */
    bool beside;   /* another one, in f32, of the same sizes */
    double spread; /* of queries and keys; scores are scaled down by as much */
} Way;

enum { BF16, F16, LOW_TYPES };
static const Way exact = {.dtype = DT_F32, .spread = 2};
static const Way low[LOW_TYPES] = {{.dtype = DT_BF16, .spread = 2}, {.dtype = DT_F16, .spread = 2}};

static const Op ops[RESULTS] = {OP_attention, OP_attention_dq, OP_attention_dk, OP_attention_dv};

typedef struct Test {
    Arena arena;
    Sources sources;
    Diags diags;
    Graph *graph;
    Func *func;
    Tensor args[OPERANDS];
} Test;

static TypeId operand_type(Test *t, DType dtype, int64_t heads, int64_t rows, int64_t depth) {
    Type type = {.dtype = dtype, .rank = 4, .dims = {{1, true}, {heads, false}, {rows, false}, {depth, false}}};
    return tg_type(&t->graph->types, &type);
}

static void build(Test *t, const Sizes *s, const Way *way) {
    static const char *const names[] = {"q", "k", "v", "gradient"};
    t->graph = tg_graph_new(&t->arena, &t->sources, LEVEL_STEP);
    t->graph->training = (Training){.batch = RECORDS, .micro = RECORDS, .lanes = 1, .clip_scalar = -1};
    t->func = tg_func_new(t->graph, FUNC_EXPORT, "attention");
    Builder b = tg_builder(t->graph, t->func, true);
    const TypeId q = operand_type(t, way->dtype, s->keys * s->heads, s->queries, s->depth),
                 k = operand_type(t, way->dtype, s->keys, s->positions, s->depth);
    const TypeId types[OPERANDS] = {q, k, k, q};
    NodeId operands[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++) {
        operands[i] = tg_arg(&b, i, names[i], types[i]);
        int64_t count = tg_type_count(tg_type_of(&t->graph->types, types[i]), RECORDS);
        t->args[i] = (Tensor){types[i], count, TG_ALLOC(&t->arena, double, count)};
        for (int64_t e = 0; e < count; e++)
            t->args[i].at[e] = tg_round_to(way->dtype, (i < 2 ? way->spread : 2) * (2 * tg_random(7, i, 0, 0, (uint64_t)e) - 1));
    }
    Attr attr = {.list = {{.at = &s->causal, .count = 1}}, .number = 4 / (way->spread * way->spread * sqrt((double)s->depth))};
    TypeId wanted = way->wide ? tg_type_with(t->graph, q, DT_F32) : q;
    for (uint32_t i = 0; i < RESULTS; i++)
        if (s->results & 1u << i)
            tg_result_value(&b, tg_op(ops[i])->name, tg_build(&b, ops[i], &attr, operands, i ? 4 : 3, wanted));
    for (uint32_t i = 0; way->beside && i < 3; i++)
        operands[i] = tg_convert(&b, operands[i], DT_F32);
    if (way->beside)
        tg_result_value(&b, "beside", tg_build(&b, OP_attention, &attr, operands, 3, 0));
    CU_ASSERT_EQUAL_FATAL(tg_builder_status(&b, &t->diags), TG_OK);
}

static void read_results(TgExec *exec, const TgPlan *plan, const PlanFunc *func, Tensor *results) {
    for (uint32_t i = 0; i < func->result_count; i++)
        backend_read(exec, plan, plan->results[func->result_first + i].buffer, results[i].at, results[i].count);
}

static void run(Test *t, const Lowered *lowered, TgKernel **kernels, int threads, Tensor *results) {
    TgExec *exec;
    CU_ASSERT_EQUAL_FATAL(backend_open(&t->arena, lowered, kernels, threads, &exec), TG_OK);
    const TgPlan *plan = lowered->plan;
    const PlanFunc *func = backend_export(plan);
    for (uint32_t i = 0; i < func->input_count; i++)
        backend_write(exec, plan, plan->inputs[func->input_first + i], t->args[i].at, t->args[i].count);
    tg_exec_scalars(exec)->rows = RECORDS;
    tg_exec_run(exec, func, 0);
    read_results(exec, plan, func, results);
    tg_exec_close(exec);
}

/* Near: within `unit` of the size, a rounding of the result, and `least`. */
static void expect(const Tensor *got, const Tensor *wanted, double unit, double least, const char *name) {
    for (int64_t i = 0; i < wanted->count; i++)
        if (!(fabs(got->at[i] - wanted->at[i]) <= unit * fabs(wanted->at[i]) + least)) {
            printf("\n    %s at %lld: %.9g, not %.9g\n", name, (long long)i, got->at[i], wanted->at[i]);
            CU_FAIL("differs");
            return;
        }
}

/* How far a result may lie from the evaluator's: `unit` of its size and `least`. A weight that lies between two of its type may be either. */
typedef struct Bound {
    double unit, least;
} Bound;

static Bound bound_of(const Way *way) {
    double unit = way->dtype == DT_BF16 ? 0x1p-8 : way->dtype == DT_F16 ? 0x1p-11 : 0;
    return (Bound){way->wide ? 0 : unit, 2e-5 + unit};
}

static Graph *expanded(Test *t, const Way *way) {
    if (!way->dots)
        return t->graph;
    PassContext context = {.arena = &t->arena, .diags = &t->diags};
    PassOptions options = tg_pass_options();
    Graph *graph = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_passes_run(&context, &options, "attention,clean", t->graph, &graph), TG_OK);
    return graph;
}

static void compare(Test *t, const Sizes *s, const Way *way) {
    build(t, s, way);
    Lowered lowered = {0};
    BackendCode code;
    CU_ASSERT_EQUAL_FATAL(backend_lower(&t->arena, &t->diags, expanded(t, way), &lowered), TG_OK);
    CU_ASSERT_EQUAL_FATAL(backend_compile(&t->arena, &t->diags, &lowered, &code), TG_OK);
    EvalState state = {.arena = &t->arena, .mode = EVAL_REAL, .rows = RECORDS, .args = t->args};
    Tensor wanted[RESULTS], one[RESULTS], two[RESULTS];
    CU_ASSERT_EQUAL_FATAL(tg_eval_func(&state, t->graph, t->func, &t->diags, wanted), TG_OK);
    uint32_t count = t->func->results.count;
    for (uint32_t i = 0; i < count; i++) {
        one[i] = two[i] = wanted[i];
        one[i].at = TG_ALLOC(&t->arena, double, wanted[i].count);
        two[i].at = TG_ALLOC(&t->arena, double, wanted[i].count);
    }
    run(t, &lowered, code.kernels, 1, one);
    run(t, &lowered, code.kernels, 2, two);
    Bound bound = bound_of(way);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = t->func->results.at[i].name;
        expect(&one[i], &wanted[i], bound.unit, bound.least, name);
        expect(&two[i], &one[i], 0, 0, name);
    }
    /* An export has a function for one record as well. */
    CU_ASSERT_EQUAL(lowered.plan->attention_count, way->dots ? 0 : 2 * ((s->results & 1) + (s->results > 1) + way->beside));
    backend_free(&code);
}

static void check_way(Sizes sizes, Way way) {
    Test *t = calloc(1, sizeof *t);
    tg_arena_init(&t->arena, tg_host());
    if (setjmp(t->arena.guard))
        CU_FAIL_FATAL("out of memory");
    tg_diags_init(&t->diags, &t->arena, &t->sources, NULL);
    compare(t, &sizes, &way);
    tg_arena_deinit(&t->arena);
    free(t);
}

static void check(Sizes sizes) {
    check_way(sizes, exact);
    for (int i = 0; i < LOW_TYPES; i++)
        check_way(sizes, low[i]);
}

static void test_blocks(void) { check((Sizes){2, 1, 256, 256, 16, 1, 15}); }
static void test_short_block(void) { check((Sizes){1, 1, 300, 300, 8, 1, 15}); }
static void test_shared_keys(void) { check((Sizes){2, 3, 140, 140, 4, 1, 15}); }
static void test_not_causal(void) { check((Sizes){1, 2, 200, 260, 8, 0, 15}); }
static void test_fewer_queries(void) { check((Sizes){1, 1, 130, 290, 8, 1, 15}); }
static void test_fewer_positions(void) { check((Sizes){1, 1, 290, 130, 8, 1, 15}); }
static void test_forward_alone(void) { check((Sizes){1, 1, 129, 129, 1, 1, 1}); }
static void test_one_gradient(void) {
    check((Sizes){1, 2, 150, 150, 8, 1, 2});
    check((Sizes){1, 2, 150, 150, 8, 1, 4});
    check((Sizes){1, 2, 150, 150, 8, 1, 8});
}

static void test_dots(void) {
    for (int i = 0; i < LOW_TYPES; i++) {
        Way way = low[i];
        way.dots = true;
        check_way((Sizes){2, 1, 40, 40, 16, 1, 15}, way);
        check_way((Sizes){2, 3, 17, 33, 5, 0, 15}, way);
        way.wide = true;
        check_way((Sizes){2, 2, 20, 20, 8, 1, 15}, way);
    }
}

static void test_wide_results(void) {
    for (int i = 0; i < LOW_TYPES; i++) {
        Way way = low[i];
        way.wide = true;
        check_way((Sizes){1, 2, 150, 150, 8, 1, 15}, way);
    }
}

static void test_two_types(void) {
    Way way = low[BF16];
    way.beside = true;
    check_way((Sizes){1, 1, 140, 140, 8, 1, 1}, way);
}

/* Products of queries and keys that f16 does not have. */
static void test_large_scores(void) {
    Way way = {.dtype = DT_F16, .spread = 256};
    check_way((Sizes){1, 1, 140, 140, 16, 1, 15}, way);
    way.dots = true;
    check_way((Sizes){1, 1, 40, 40, 16, 1, 15}, way);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("attention", NULL, NULL);
    CU_add_test(suite, "blocks", test_blocks);
    CU_add_test(suite, "a last short block", test_short_block);
    CU_add_test(suite, "heads that share a key", test_shared_keys);
    CU_add_test(suite, "not causal", test_not_causal);
    CU_add_test(suite, "fewer queries than positions", test_fewer_queries);
    CU_add_test(suite, "fewer positions than queries", test_fewer_positions);
    CU_add_test(suite, "forward alone", test_forward_alone);
    CU_add_test(suite, "one gradient alone", test_one_gradient);
    CU_add_test(suite, "dots of low types", test_dots);
    CU_add_test(suite, "f32 results of low types", test_wide_results);
    CU_add_test(suite, "two types in one function", test_two_types);
    CU_add_test(suite, "scores beyond f16", test_large_scores);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
