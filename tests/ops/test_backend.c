/* Every op on the CPU against the evaluator: fusion, plan, loops, machine code and executor, in every type that the op takes, at
   the sizes that the generator makes; B with and without padding. */
#include "generate.h"

#include "tests/ops/backend.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, LONG_SEEDS = 200, ROOM = 8192 };

typedef struct Trial {
    OpCase c;
    Op op;
    DType dtype;
    uint64_t seed;
    Lowered lowered;
    uint32_t first_kernel;
} Trial;

typedef struct Trials {
    Arena arena;
    Diags diags;
    Str messages;
    Trial *at;
    uint32_t count;
    Lowered all; /* every trial's kernels */
    BackendCode code;
} Trials;

static bool is_built(Op op) {
    static const char *const emit_of[] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen) #emit,
#include "ir/ops.def"
#undef OP
    };
    return strcmp(emit_of[op], "unbuilt") != 0 || op == OP_dot;
}

static bool add_trial(Trials *t, Op op, DType dtype, uint64_t seed) {
    Trial *trial = &t->at[t->count];
    *trial = (Trial){.op = op, .dtype = dtype, .seed = seed, .first_kernel = t->all.kernels.count};
    if (!tg_op_case(&t->arena, op, dtype, seed, &trial->c))
        return false;
    int64_t padding = seed % 2 ? 3 : 0, rows = trial->c.rows + padding;
    trial->c.graph->training.micro = trial->c.graph->training.batch = rows > 0 ? rows : 1;
    trial->c.graph->training.lanes = 1;
    trial->c.graph->training.clip_scalar = -1;
    if (backend_lower(&t->arena, &t->diags, trial->c.graph, &trial->lowered) != TG_OK) {
        Str text = tg_str(&t->arena);
        tg_func_print(&text, trial->c.graph, trial->c.func);
        fprintf(stderr, "%s", text.text);
        fprintf(stderr, "%s %s seed %llu does not lower: %s\n", tg_op(op)->name, tg_dtype(dtype)->name,
                (unsigned long long)seed, t->messages.text);
        CU_FAIL("does not lower");
        t->messages = tg_str(&t->arena);
        return false;
    }
    for (uint32_t i = 0; i < trial->lowered.kernels.count; i++) {
        LoopKernel *k = trial->lowered.kernels.at[i];
        k->name = tg_arena_printf(&t->arena, "t%u_%s", t->count, k->name);
        tg_push(&t->arena, &t->all.kernels, k);
    }
    t->count++;
    return true;
}

static bool compile_all(Trials *t) {
    Status status = backend_compile(&t->arena, &t->diags, &t->all, &t->code);
    if (status != TG_OK)
        fprintf(stderr, "%s\n", t->messages.text);
    CU_ASSERT_EQUAL(status, TG_OK);
    return status == TG_OK;
}

/* How far a value of the type may be off: maths functions and sums are rounded at other places than the evaluator's. */
static double tolerance_of(DType dtype, double size) {
    switch (dtype) {
    case DT_F64: return 1e-12 * size;
    case DT_F32: return 4e-6 * size;
    case DT_F16: return 2e-3 * size;
    case DT_BF16: return 1.6e-2 * size;
    default: return 0;
    }
}

static double largest(const Tensor *tensor) {
    double size = 1;
    for (int64_t i = 0; i < tensor->count; i++)
        if (isfinite(tensor->at[i]) && fabs(tensor->at[i]) > size)
            size = fabs(tensor->at[i]);
    return size;
}

static bool agrees(double got, double wanted, double tolerance) {
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return wanted == got;
    return fabs(got - wanted) <= tolerance;
}

static void complain(const Trial *trial, const char *what, int64_t index, double got, double wanted) {
    fprintf(stderr, "%s %s seed %llu (%lld rows): %s at %lld: %.9g, not %.9g\n", tg_op(trial->op)->name,
            tg_dtype(trial->dtype)->name, (unsigned long long)trial->seed, (long long)trial->c.rows, what, (long long)index, got,
            wanted);
    CU_FAIL("differs from the evaluator");
}

static void fill(TgExec *exec, const TgPlan *plan, const PlanFunc *func, const OpCase *c) {
    for (uint32_t i = 0; i < func->input_count; i++)
        backend_write(exec, plan, plan->inputs[func->input_first + i], c->args[i].at, c->args[i].count);
}

/* B is the major dimension of all that has it, so that rows are a prefix; other generated shapes have no padding. */
static void compare(Trials *t, const Trial *trial, TgExec *exec, const PlanFunc *func) {
    EvalState state = {.arena = &t->arena, .mode = EVAL_TYPED, .rows = trial->c.rows, .args = trial->c.args, .seed = 1};
    Tensor wanted;
    CU_ASSERT_EQUAL_FATAL(tg_eval_func(&state, trial->c.graph, trial->c.func, &t->diags, &wanted), TG_OK);
    const TgPlan *plan = trial->lowered.plan;
    uint32_t index = plan->results[func->result_first].buffer;
    const PlanBuffer *buffer = &plan->buffers[index];
    const void *got = tg_exec_address(exec, index, 0);
    double tolerance = tolerance_of(buffer->dtype, largest(&wanted));
    for (int64_t k = 0; k < wanted.count; k++) {
        double value = tg_element_get(buffer->dtype, got, k);
        if (!agrees(value, wanted.at[k], tolerance)) {
            complain(trial, "value", k, value, wanted.at[k]);
            return;
        }
    }
    int64_t count = buffer->bytes / tg_dtype(buffer->dtype)->bytes;
    for (int64_t k = wanted.count; buffer->batch_axis == 0 && trial->op != OP_dot && k < count; k++)
        if (tg_element_get(buffer->dtype, got, k) != 0) {
            complain(trial, "padding", k, tg_element_get(buffer->dtype, got, k), 0);
            return;
        }
}

static bool batch_is_major(const Trial *trial) {
    for (uint32_t i = 0; i < trial->lowered.plan->buffer_count; i++)
        if (trial->lowered.plan->buffers[i].batch_axis > 0)
            return false;
    return true;
}

static void run_trial(Trials *t, const Trial *trial) {
    const TgPlan *plan = trial->lowered.plan;
    if (!batch_is_major(trial) && trial->c.rows != plan->micro)
        return;
    TgExec *exec;
    CU_ASSERT_EQUAL_FATAL(backend_open(&t->arena, &trial->lowered, t->code.kernels + trial->first_kernel, 1, &exec), TG_OK);
    const PlanFunc *func = backend_export(plan);
    fill(exec, plan, func, &trial->c);
    tg_exec_scalars(exec)->rows = trial->c.rows;
    tg_exec_scalars(exec)->seed = 1;
    tg_exec_run(exec, func, 0);
    compare(t, trial, exec, func);
    tg_exec_close(exec);
}

static void run_kind(Op first, Op last) {
    Trials *t = calloc(1, sizeof *t);
    Sources sources = {0};
    tg_arena_init(&t->arena, tg_host());
    if (setjmp(t->arena.guard))
        CU_FAIL_FATAL("out of memory");
    tg_diags_init(&t->diags, &t->arena, &sources, NULL);
    t->messages = tg_str(&t->arena);
    t->diags.capture = &t->messages;
    t->at = TG_ALLOC(&t->arena, Trial, ROOM);
    uint64_t seeds = getenv("TG_LONG") ? LONG_SEEDS : SEEDS;
    for (Op op = first; op < last; op++)
        for (int dtype = 0; is_built(op) && tg_op_has_case(op) && dtype < DT_COUNT; dtype++)
            for (uint64_t seed = 0; seed < seeds && t->count < ROOM; seed++)
                if (!add_trial(t, op, (DType)dtype, seed))
                    break;
    if (t->count && compile_all(t)) {
        for (uint32_t i = 0; i < t->count; i++)
            run_trial(t, &t->at[i]);
        backend_free(&t->code);
    }
    printf("%u trials, %u kernels ", t->count, t->all.kernels.count);
    tg_arena_deinit(&t->arena);
    free(t);
}

static void test_leaves(void) { run_kind(0, OP_neg); }
static void test_unary(void) { run_kind(OP_neg, OP_add); }
static void test_binary(void) { run_kind(OP_add, OP_reshape); }
static void test_views(void) { run_kind(OP_reshape, OP_reduce_sum); }
static void test_reductions(void) { run_kind(OP_reduce_sum, OP_dot); }
static void test_dot(void) { run_kind(OP_dot, OP_take); }
static void test_tables(void) { run_kind(OP_take, OP_COUNT); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("backend", NULL, NULL);
    CU_add_test(suite, "leaves", test_leaves);
    CU_add_test(suite, "unary", test_unary);
    CU_add_test(suite, "binary and select", test_binary);
    CU_add_test(suite, "views", test_views);
    CU_add_test(suite, "reductions", test_reductions);
    CU_add_test(suite, "dot", test_dot);
    CU_add_test(suite, "tables", test_tables);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
