/* Trials of one function: without passes, after each pass, after passes in random order and cut into kernels it has
   equal bits in the evaluator; on the CPU fused equals unfused to the bit with one and two threads, and each operation
   is near the evaluator's. */
#include "near.h"
#include "trial.h"

#include "passes/copy.h"

#include <math.h>
#include <string.h>

static Func *func_of(const Graph *graph) { return tg_func_find(graph, FUNC_MICRO, NULL); }

/* ---- in the evaluator ---- */

static Tensor *evaluate(Suite *s, const Trial *t, const Graph *graph, int64_t rows, Kind kind) {
    const Func *func = func_of(graph);
    Tensor *results = TG_ALLOC(&s->arena, Tensor, func->results.count + 1);
    EvalState state = tg_random_graph_state(&s->arena, &t->r, rows);
    trial_count(s, kind);
    if (tg_eval_func(&state, graph, func, &s->diags, results) == TG_OK)
        return results;
    trial_complain(s, t, "the evaluator fails");
    return NULL;
}

static const char *name_of(const Trial *t, const Result *result) {
    return result->kind == RESULT_VALUE ? result->name : t->base->buffers.at[result->buffer].name;
}

static bool same_results(Suite *s, const Trial *t, const char *what, const Func *func, const Tensor *a,
                         const Tensor *b) {
    for (uint32_t i = 0; a && b && i < func->results.count; i++) {
        if (a[i].count != b[i].count) {
            trial_complain(s, t, "%s: result %s has another size", what, name_of(t, &func->results.at[i]));
            return false;
        }
        for (int64_t k = 0; k < a[i].count; k++)
            if (!tg_same_value(a[i].at[k], b[i].at[k])) {
                trial_complain(s, t, "%s: element %lld of %s is %.17g, not %.17g", what, (long long)k,
                               name_of(t, &func->results.at[i]), b[i].at[k], a[i].at[k]);
                return false;
            }
    }
    return a && b;
}

static void check_kind(Suite *s, const Trial *t, Kind kind, const char *names, bool fold, bool fuse, const Graph *in,
                       const Tensor *wanted) {
    Graph *out;
    if (!trial_passes(s, t, names, fold, fuse, in, &out))
        return;
    const char *what =
        tg_arena_printf(&s->arena, "passes %s%s%s", names, fold ? ", folded" : "", fuse ? "" : ", unfused");
    same_results(s, t, what, func_of(in), wanted, evaluate(s, t, out, t->r.rows, kind));
}

static void check_passes(Suite *s, const Trial *t, const char *names, bool fold, bool fuse, const Graph *in,
                         const Tensor *wanted) {
    check_kind(s, t, trial_kind(names), names, fold, fuse, in, wanted);
}

static void check_orders(Suite *s, const Trial *t, const Tensor *wanted) {
    uint64_t random = t->seed;
    for (int i = 0; i < TRIAL_ORDERS; i++) {
        bool fold, fuse;
        const char *names = trial_order(s, &random, &fold, &fuse);
        check_kind(s, t, KIND_ORDER, names, fold, fuse, t->base, wanted);
    }
}

/* The same function at another level: simplify works at graph@model. */
static Graph *at_level(Suite *s, const Graph *graph, Level level) {
    Graph *copy = tg_graph_like(&s->arena, graph, level);
    const Func *from = func_of(graph);
    Builder b = tg_builder(copy, tg_func_new(copy, from->kind, from->name), false);
    tg_copy_func(&s->arena, &b, graph, from);
    return copy;
}

/* The same function, every value a result "nID". */
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

/* Attention becomes dots, which round: the results that are its own are near, what comes before keeps its bits. */
static bool without_attention(Suite *s, Trial *t) {
    Graph *dots, *spread = spread_of(s, t->base);
    if (!trial_passes(s, t, "attention", false, true, t->base, &dots))
        return false;
    const Func *func = func_of(spread);
    uint32_t own = func_of(t->base)->results.count;
    Tensor *got = evaluate(s, t, dots, t->r.rows, (Kind)PASS_attention);
    Tensor *wanted = evaluate(s, t, spread, t->r.rows, KIND_PLAIN);
    EvalState state = tg_random_graph_state(&s->arena, &t->r, t->r.rows);
    for (uint32_t i = 0; got && wanted && i < own; i++) {
        NodeId id = func->results.at[i].node;
        const Node *node = tg_node(func, id);
        if (node->op != OP_attention)
            continue;
        Tensor operands[4];
        double exact = 0;
        for (uint32_t k = 0; k < node->operand_count; k++)
            operands[k] = wanted[own + tg_operand(func, node, k) - 1];
        int64_t wrong = tg_first_wrong(&state, spread, func, id, operands, &got[i], DT_F32, &exact);
        if (wrong >= 0) {
            trial_complain(s, t, "pass attention: element %lld is %.9g, not %.9g", (long long)wrong, got[i].at[wrong], exact);
            return false;
        }
    }
    t->base = dots;
    return got && wanted;
}

static bool has_attention(const Func *func) {
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (tg_node(func, id)->op == OP_attention)
            return true;
    return false;
}

/* Every pass that reads such a graph and keeps values, with folding and without; to the evaluator a merged row is the same sum. */
static void check_each(Suite *s, const Trial *t, const Graph *in, const Tensor *wanted) {
    for (int i = 0; i < PASS_COUNT; i++) {
        const PassInfo *pass = tg_pass(i);
        if (pass->from != in->level || (pass->effect != EFFECT_KEEPS && i != PASS_merge))
            continue;
        check_passes(s, t, pass->name, false, true, in, wanted);
        check_passes(s, t, pass->name, true, pass->to != LEVEL_KERNEL, in, wanted);
    }
}

/* What mixed precision makes of it. It casts functions of a model, and this is one of a step. */
static bool cast_function(Suite *s, Trial *t) {
    Graph *cast = at_level(s, t->base, LEVEL_MODEL);
    cast->funcs.at[0]->kind = FUNC_EXPORT;
    if (!trial_cast(s, t, cast, &cast))
        return false;
    cast->funcs.at[0]->kind = FUNC_MICRO;
    t->base = at_level(s, cast, LEVEL_STEP);
    return true;
}

bool trial_check_function(Suite *s, Trial *t) {
    if (tg_is_mixed(&t->base->training) && !cast_function(s, t))
        return false;
    if (tg_graph_verify(t->base, &s->diags) != TG_OK) {
        trial_complain(s, t, "the graph breaks a rule");
        return false;
    }
    uint64_t failures = s->report->failures;
    Tensor *wanted = evaluate(s, t, t->base, t->r.rows, KIND_PLAIN);
    if (wanted == NULL)
        return false;
    check_each(s, t, at_level(s, t->base, LEVEL_MODEL), wanted);
    if (has_attention(func_of(t->base))) {
        if (!without_attention(s, t))
            return false;
        wanted = evaluate(s, t, t->base, t->r.rows, KIND_PLAIN);
    }
    check_each(s, t, t->base, wanted);
    check_passes(s, t, "clean,layout,fuse", true, true, t->base, wanted);
    check_orders(s, t, wanted);
    return failures == s->report->failures;
}

/* ---- on the CPU ---- */

/* Half of the graphs are what the passes make of them. */
void trial_lower_function(Suite *s, Trial *t) {
    Graph *base;
    bool clean = t->seed / 4 % 2 != 0;
    if (!trial_passes(s, t, clean ? "merge,clean,layout" : "layout", clean, true, t->base, &base))
        return;
    t->base = base;
    t->spread = spread_of(s, base);
    t->lowered = trial_lower(s, t, t->base, true, &t->fused) && trial_lower(s, t, t->spread, false, &t->unfused);
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
            trial_write(exec, plan, index, &t->r.buffers[i], rows);
    }
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
        results[i] = trial_read(s, exec, plan, index, tg_type_of(&t->base->types, type), type, rows);
    }
    return results;
}

static Tensor *run_variant(Suite *s, const Trial *t, const Variant *v, const Func *func, int64_t rows, int threads,
                           Kind kind) {
    TgExec *exec;
    const TgPlan *plan = v->lowered.plan;
    if (!trial_open(s, t, v, threads, &exec))
        return NULL;
    EvalState state = tg_random_graph_state(&s->arena, &t->r, rows);
    const PlanFunc *run = tg_plan_func(plan, PLAN_MICRO, NULL);
    for (uint32_t i = 0; i < run->input_count; i++)
        trial_write(exec, plan, plan->inputs[run->input_first + i], &state.args[i], rows);
    write_states(exec, t, plan, rows);
    tg_exec_scalars(exec)->rows = rows;
    tg_exec_scalars(exec)->seed = 1;
    tg_exec_run(exec, run, 0);
    trial_count(s, kind);
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
        int64_t wrong = tg_first_wrong(&state, t->spread, func, id, operands, &values[id], DT_F32, &wanted);
        if (wrong >= 0) {
            Str text = tg_str(&s->arena);
            tg_node_print(&text, t->spread, func, id);
            trial_complain(s, t, "on the CPU, %lld of %lld rows: element %lld of %s is %.17g, not %.17g",
                           (long long)rows, (long long)t->r.rows, (long long)wrong, text.text, values[id].at[wrong],
                           wanted);
            return;
        }
    }
}

static void run_rows(Suite *s, const Trial *t, int64_t rows) {
    const Func *func = func_of(t->base);
    const char *what = rows < t->r.rows ? "padded rows" : "all rows";
    Tensor *unfused = run_variant(s, t, &t->unfused, func_of(t->spread), rows, 1, KIND_UNFUSED);
    Tensor *fused = run_variant(s, t, &t->fused, func, rows, 1, KIND_FUSED);
    if (!same_results(s, t, tg_arena_printf(&s->arena, "fused on the CPU, %s", what), func, unfused, fused))
        return;
    Tensor *parallel = run_variant(s, t, &t->fused, func, rows, 2, KIND_THREADS);
    if (same_results(s, t, tg_arena_printf(&s->arena, "two threads, %s", what), func, fused, parallel))
        check_nodes(s, t, unfused, rows);
}

void trial_run_function(Suite *s, const Trial *t) {
    run_rows(s, t, t->r.rows);
    if (t->r.rows > 1)
        run_rows(s, t, 1 + (int64_t)(t->seed % (uint64_t)(t->r.rows - 1)));
}
