/* Random graphs: without passes, after each pass, after passes in random order and cut into kernels they have equal
   bits in the evaluator; on the CPU fused equals unfused to the bit with one and two threads, and each operation is
   near the evaluator's.

   TG_LONG=1: 100,000 executions. TG_SEED=N: one seed alone. A failure writes random-N.tgir. */
#include "near.h"
#include "random.h"

#include "passes/copy.h"
#include "passes/pass.h"
#include "tests/ops/backend.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXECUTIONS = 3000, LONG_EXECUTIONS = 100000, TOGETHER = 32, ORDERS = 5 };

typedef struct Variant {
    Lowered lowered;
    uint32_t first_kernel;
} Variant;

typedef struct Trial {
    uint64_t seed;
    RandomGraph r;
    Graph *base;   /* what the CPU runs: without attention */
    Graph *spread; /* the same, every value a result "nID" */
    Variant fused, unfused;
    bool lowered;
} Trial;

typedef struct Suite {
    Arena arena;
    Diags diags;
    Str messages;
    Trial trials[TOGETHER];
    Lowered all; /* every variant's kernels */
    BackendCode code;
} Suite;

static struct {
    uint64_t executions, graphs, failures, cpu;
    volatile uint64_t seed;
} total;

static Func *func_of(const Graph *graph) { return tg_func_find(graph, FUNC_MICRO, NULL); }

/* ---- failures ---- */

static void write_reproducer(const Trial *t, const char *what, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "random-%llu.tgir", (unsigned long long)t->seed);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return;
    fprintf(file, "// TG_SEED=%llu random_test_random: %s\n%s", (unsigned long long)t->seed, what, text);
    fclose(file);
    fprintf(stderr, "the graph is in %s; replay it with TG_SEED=%llu\n", path, (unsigned long long)t->seed);
}

static void complain(Suite *s, const Trial *t, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void complain(Suite *s, const Trial *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = tg_arena_vprintf(&s->arena, format, args);
    va_end(args);
    Str text = tg_str(&s->arena);
    tg_graph_print_plain(&text, t->base ? t->base : t->r.graph);
    fprintf(stderr, "\nseed %llu: %s\n%s%s", (unsigned long long)t->seed, what,
            s->messages.length ? s->messages.text : "", text.text);
    write_reproducer(t, what, text.text);
    s->messages = tg_str(&s->arena);
    total.failures++;
    CU_FAIL("a random graph fails");
}

static void on_crash(int number) {
    char text[96];
    int length = snprintf(text, sizeof text, "\nseed %llu: signal %d\n", (unsigned long long)total.seed, number);
    if (write(STDERR_FILENO, text, (size_t)length) != length)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- in the evaluator ---- */

static bool run_passes(Suite *s, const Trial *t, const char *names, bool fold, bool fuse, const Graph *in,
                       Graph **out) {
    PassContext context = {.arena = &s->arena, .diags = &s->diags};
    PassOptions options = tg_pass_options();
    options.no_fold = !fold;
    options.no_fuse = !fuse;
    if (tg_passes_run(&context, &options, names, in, out) == TG_OK)
        return true;
    complain(s, t, "passes %s fail", names);
    return false;
}

static Tensor *evaluate(Suite *s, const Trial *t, const Graph *graph, int64_t rows) {
    const Func *func = func_of(graph);
    Tensor *results = TG_ALLOC(&s->arena, Tensor, func->results.count + 1);
    EvalState state = tg_random_graph_state(&s->arena, &t->r, rows);
    total.executions++;
    if (tg_eval_func(&state, graph, func, &s->diags, results) == TG_OK)
        return results;
    complain(s, t, "the evaluator fails");
    return NULL;
}

static const char *name_of(const Trial *t, const Result *result) {
    return result->kind == RESULT_VALUE ? result->name : t->base->buffers.at[result->buffer].name;
}

static bool same_results(Suite *s, const Trial *t, const char *what, const Func *func, const Tensor *a,
                         const Tensor *b) {
    for (uint32_t i = 0; a && b && i < func->results.count; i++) {
        if (a[i].count != b[i].count) {
            complain(s, t, "%s: result %s has another size", what, name_of(t, &func->results.at[i]));
            return false;
        }
        for (int64_t k = 0; k < a[i].count; k++)
            if (!tg_same_value(a[i].at[k], b[i].at[k])) {
                complain(s, t, "%s: element %lld of %s is %.17g, not %.17g", what, (long long)k,
                         name_of(t, &func->results.at[i]), b[i].at[k], a[i].at[k]);
                return false;
            }
    }
    return a && b;
}

static void check_passes(Suite *s, const Trial *t, const char *names, bool fold, bool fuse, const Graph *in,
                         const Tensor *wanted) {
    Graph *out;
    if (!run_passes(s, t, names, fold, fuse, in, &out))
        return;
    const char *what =
        tg_arena_printf(&s->arena, "passes %s%s%s", names, fold ? ", folded" : "", fuse ? "" : ", unfused");
    same_results(s, t, what, func_of(in), wanted, evaluate(s, t, out, t->r.rows));
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void check_orders(Suite *s, const Trial *t, const Tensor *wanted) {
    static const char *const names[] = {"clean", "layout"};
    uint64_t random = t->seed;
    for (int i = 0; i < ORDERS; i++) {
        Str list = tg_str(&s->arena);
        int count = 2 + (int)(next_random(&random) % 4);
        for (int k = 0; k < count; k++)
            tg_str_printf(&list, "%s%s", k ? "," : "", names[next_random(&random) % 2]);
        if (next_random(&random) % 2)
            tg_str_printf(&list, ",fuse");
        bool fold = next_random(&random) % 2, fuse = next_random(&random) % 2;
        check_passes(s, t, list.text, fold, fuse, t->base, wanted);
    }
}

/* The same functions one level up, where simplify works. */
static Graph *at_model_level(Suite *s, const Graph *graph) {
    Graph *model = tg_graph_like(&s->arena, graph, LEVEL_MODEL);
    const Func *from = func_of(graph);
    Builder b = tg_builder(model, tg_func_new(model, from->kind, from->name), false);
    tg_copy_func(&s->arena, &b, graph, from);
    return model;
}

/* Attention becomes dots, which round: the results that are its own are near, what comes before keeps its bits. */
static bool without_attention(Suite *s, Trial *t, const Tensor *wanted) {
    Graph *dots;
    if (!run_passes(s, t, "attention", false, true, t->base, &dots))
        return false;
    const Func *func = func_of(t->base);
    Tensor *got = evaluate(s, t, dots, t->r.rows);
    for (uint32_t i = 0; got && i < func->results.count; i++) {
        const Node *node = tg_node(func, func->results.at[i].node);
        DType dtype = tg_type_of(&t->base->types, node->type)->dtype;
        double tolerance = dtype == DT_F64 ? 1e-9 : dtype == DT_F32 ? 1e-3 : 0.1;
        for (int64_t k = 0; node->op == OP_attention && k < wanted[i].count; k++) {
            double size = fmax(1, fabs(wanted[i].at[k]));
            if (!(fabs(got[i].at[k] - wanted[i].at[k]) <= tolerance * size)) {
                complain(s, t, "pass attention: element %lld is %.9g, not %.9g", (long long)k, got[i].at[k],
                         wanted[i].at[k]);
                return false;
            }
        }
    }
    t->base = dots;
    return got != NULL;
}

static bool has_attention(const Func *func) {
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (tg_node(func, id)->op == OP_attention)
            return true;
    return false;
}

static bool check_in_evaluator(Suite *s, Trial *t) {
    if (tg_graph_verify(t->base, &s->diags) != TG_OK) {
        complain(s, t, "the graph breaks a rule");
        return false;
    }
    Tensor *wanted = evaluate(s, t, t->base, t->r.rows);
    if (wanted == NULL)
        return false;
    Graph *model = at_model_level(s, t->base);
    check_passes(s, t, "simplify", false, true, model, wanted);
    check_passes(s, t, "simplify", true, true, model, wanted);
    if (has_attention(func_of(t->base))) {
        if (!without_attention(s, t, wanted))
            return false;
        wanted = evaluate(s, t, t->base, t->r.rows);
    }
    check_passes(s, t, "clean", false, true, t->base, wanted);
    check_passes(s, t, "clean", true, true, t->base, wanted);
    check_passes(s, t, "layout", false, true, t->base, wanted);
    check_passes(s, t, "fuse", false, true, t->base, wanted);
    check_passes(s, t, "fuse", false, false, t->base, wanted);
    check_passes(s, t, "clean,layout,fuse", true, true, t->base, wanted);
    check_orders(s, t, wanted);
    return true;
}

/* ---- on the CPU ---- */

static Graph *spread_of(Suite *s, const Graph *graph) {
    Graph *spread = tg_graph_like(&s->arena, graph, graph->level);
    const Func *from = func_of(graph);
    Builder b = tg_builder(spread, tg_func_new(spread, from->kind, from->name), false);
    b.func->args = from->args;
    Copy copy = tg_copy(&s->arena, &b, graph, from);
    for (NodeId id = 1; id < from->nodes.count; id++)
        tg_copy_need(&copy, id);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    for (NodeId id = 1; id < b.func->nodes.count; id++)
        tg_result_value(&b, tg_arena_printf(&s->arena, "n%u", id), id);
    return spread;
}

static bool lower(Suite *s, Trial *t, const Graph *graph, bool fuse, Variant *variant) {
    Graph *kernel;
    if (!run_passes(s, t, "fuse", false, fuse, graph, &kernel))
        return false;
    if (tg_plan_build(&s->arena, &s->diags, kernel, "", LOOPS_CPU, &variant->lowered) != TG_OK) {
        complain(s, t, "no plan");
        return false;
    }
    variant->first_kernel = s->all.kernels.count;
    for (uint32_t i = 0; i < variant->lowered.kernels.count; i++) {
        LoopKernel *k = variant->lowered.kernels.at[i];
        k->name = tg_arena_printf(&s->arena, "t%u_%s", s->all.kernels.count, k->name);
        tg_push(&s->arena, &s->all.kernels, k);
    }
    return true;
}

/* Half of the graphs are what the passes make of them. */
static void lower_trial(Suite *s, Trial *t) {
    Graph *base;
    bool clean = t->seed / 4 % 2 != 0;
    if (!run_passes(s, t, clean ? "clean,layout" : "layout", clean, true, t->base, &base))
        return;
    t->base = base;
    t->spread = spread_of(s, base);
    t->lowered = lower(s, t, t->base, true, &t->fused) && lower(s, t, t->spread, false, &t->unfused);
}

/* Element `index` of `rows` rows, in a buffer for the plan's capacity. */
static int64_t place_of(const PlanBuffer *buffer, int64_t rows, int64_t index) {
    if (buffer->batch_axis < 0)
        return index;
    int64_t inner = 1, here = rows * buffer->row_size;
    for (int d = buffer->batch_axis + 1; d < buffer->rank; d++)
        inner *= buffer->dims[d];
    int64_t outer = index / inner / here, along = index / inner % here;
    return (outer * buffer->dims[buffer->batch_axis] + along) * inner + index % inner;
}

static void write_rows(TgExec *exec, const TgPlan *plan, uint32_t index, const Tensor *value, int64_t rows) {
    const PlanBuffer *buffer = &plan->buffers[index];
    void *to = tg_exec_address(exec, index, 0);
    memset(to, 0, (size_t)buffer->bytes);
    for (int64_t i = 0; i < value->count; i++)
        tg_element_set(buffer->dtype, to, place_of(buffer, rows, i), value->at[i]);
}

static uint32_t state_of(const TgPlan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].class == PLAN_STATE && strcmp(plan->buffers[i].name, name) == 0)
            return i;
    return plan->buffer_count;
}

static void write_states(TgExec *exec, const Trial *t, const TgPlan *plan, int64_t rows) {
    for (uint32_t i = 0; i < t->base->buffers.count; i++) {
        uint32_t index = state_of(plan, t->base->buffers.at[i].name);
        if (index < plan->buffer_count)
            write_rows(exec, plan, index, &t->r.buffers[i], rows);
    }
}

static Tensor read_rows(Suite *s, TgExec *exec, const TgPlan *plan, uint32_t index, const Type *type, TypeId id,
                        int64_t rows) {
    const void *from = tg_exec_address(exec, index, 0);
    int64_t count = tg_type_count(type, rows);
    Tensor value = {id, count, TG_ALLOC(&s->arena, double, count + 1)};
    for (int64_t k = 0; k < count; k++)
        value.at[k] = tg_element_get(plan->buffers[index].dtype, from, place_of(&plan->buffers[index], rows, k));
    return value;
}

/* What the function has left, in the order of its results. */
static Tensor *read_results(Suite *s, TgExec *exec, const Trial *t, const TgPlan *plan, const Func *func,
                            int64_t rows) {
    const PlanResult *next = plan->results + tg_plan_func(plan, PLAN_MICRO, NULL)->result_first;
    Tensor *results = TG_ALLOC(&s->arena, Tensor, func->results.count + 1);
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        TypeId type = tg_node(func, result->node)->type;
        bool stored = result->kind == RESULT_STORE;
        uint32_t index = stored ? state_of(plan, t->base->buffers.at[result->buffer].name) : next++->buffer;
        results[i] = read_rows(s, exec, plan, index, tg_type_of(&t->base->types, type), type, rows);
    }
    return results;
}

static Tensor *run_variant(Suite *s, const Trial *t, const Variant *v, const Func *func, int64_t rows, int threads) {
    TgExec *exec;
    const TgPlan *plan = v->lowered.plan;
    if (backend_open(&s->arena, &v->lowered, s->code.kernels + v->first_kernel, threads, &exec) != TG_OK) {
        complain(s, t, "the plan does not open");
        return NULL;
    }
    EvalState state = tg_random_graph_state(&s->arena, &t->r, rows);
    const PlanFunc *run = tg_plan_func(plan, PLAN_MICRO, NULL);
    for (uint32_t i = 0; i < run->input_count; i++)
        write_rows(exec, plan, plan->inputs[run->input_first + i], &state.args[i], rows);
    write_states(exec, t, plan, rows);
    tg_exec_scalars(exec)->rows = rows;
    tg_exec_scalars(exec)->seed = 1;
    tg_exec_run(exec, run, 0);
    total.executions++;
    total.cpu++;
    Tensor *results = read_results(s, exec, t, plan, func, rows);
    tg_exec_close(exec);
    return results;
}

/* Every value of the unfused run, from its operands' values in that run. */
static void check_nodes(Suite *s, const Trial *t, const Tensor *results, int64_t rows) {
    const Func *func = func_of(t->spread);
    const Tensor *values = results + func_of(t->base)->results.count - 1; /* of node 1: the first behind the results */
    EvalState state = tg_random_graph_state(&s->arena, &t->r, rows);
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        Tensor operands[8];
        double wanted = 0;
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = values[tg_operand(func, node, i)];
        int64_t wrong = tg_first_wrong(&state, t->spread, func, id, operands, &values[id], &wanted);
        if (wrong >= 0) {
            Str text = tg_str(&s->arena);
            tg_node_print(&text, t->spread, func, id);
            complain(s, t, "on the CPU, %lld of %lld rows: element %lld of %s is %.17g, not %.17g", (long long)rows,
                     (long long)t->r.rows, (long long)wrong, text.text, values[id].at[wrong], wanted);
            return;
        }
    }
}

static void run_trial(Suite *s, const Trial *t, int64_t rows) {
    const Func *func = func_of(t->base);
    const char *what = rows < t->r.rows ? "padded rows" : "all rows";
    Tensor *unfused = run_variant(s, t, &t->unfused, func_of(t->spread), rows, 1);
    Tensor *fused = run_variant(s, t, &t->fused, func, rows, 1);
    if (!same_results(s, t, tg_arena_printf(&s->arena, "fused on the CPU, %s", what), func, unfused, fused))
        return;
    Tensor *parallel = run_variant(s, t, &t->fused, func, rows, 2);
    if (same_results(s, t, tg_arena_printf(&s->arena, "two threads, %s", what), func, fused, parallel))
        check_nodes(s, t, unfused, rows);
}

/* ---- many graphs ---- */

static void run_together(const uint64_t *seeds, uint32_t count, bool cpu) {
    Suite *s = calloc(1, sizeof *s);
    Sources sources = {0};
    tg_arena_init(&s->arena, tg_host());
    if (setjmp(s->arena.guard))
        CU_FAIL_FATAL("out of memory");
    tg_diags_init(&s->diags, &s->arena, &sources, NULL);
    s->messages = tg_str(&s->arena);
    s->diags.capture = &s->messages;
    for (uint32_t i = 0; i < count; i++) {
        Trial *t = &s->trials[i];
        *t = (Trial){.seed = total.seed = seeds[i]};
        tg_random_graph(&s->arena, t->seed, &t->r);
        t->base = t->r.graph;
        total.graphs++;
        if (check_in_evaluator(s, t) && cpu)
            lower_trial(s, t);
    }
    if (s->all.kernels.count && backend_compile(&s->arena, &s->diags, &s->all, &s->code) != TG_OK)
        complain(s, &s->trials[0], "one of %u graphs from this one does not compile", count);
    for (uint32_t i = 0; s->code.handle && i < count; i++) {
        const Trial *t = &s->trials[i];
        total.seed = t->seed;
        if (t->lowered)
            run_trial(s, t, t->r.rows);
        if (t->lowered && t->r.rows > 1)
            run_trial(s, t, 1 + (int64_t)(t->seed % (uint64_t)(t->r.rows - 1)));
    }
    if (s->code.handle)
        backend_free(&s->code);
    tg_arena_deinit(&s->arena);
    free(s);
}

/* In CI two of three groups run on the CPU; of a long run one of nine does. */
static void test_graphs(void) {
    const char *given = getenv("TG_SEED");
    bool is_long = getenv("TG_LONG") != NULL;
    uint64_t wanted = is_long ? LONG_EXECUTIONS : EXECUTIONS, seeds[TOGETHER], next = 1;
    if (given) {
        seeds[0] = strtoull(given, NULL, 10);
        run_together(seeds, 1, true);
        return;
    }
    for (uint64_t group = 0; total.executions < wanted && total.failures < 5; group++) {
        for (int i = 0; i < TOGETHER; i++)
            seeds[i] = next++;
        run_together(seeds, TOGETHER, is_long ? group % 9 == 0 : group % 3 != 1);
        if (is_long)
            fprintf(stderr, "\r%llu of %llu executions", (unsigned long long)total.executions,
                    (unsigned long long)wanted);
    }
    CU_ASSERT(total.executions >= wanted);
    printf("%llu graphs, %llu executions, %llu on the CPU ", (unsigned long long)total.graphs,
           (unsigned long long)total.executions, (unsigned long long)total.cpu);
}

int main(void) {
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    signal(SIGFPE, on_crash);
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("random graphs", NULL, NULL);
    CU_add_test(suite, "graphs", test_graphs);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
