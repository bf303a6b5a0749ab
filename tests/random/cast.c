/* Mixed precision over random graphs, value by value: with every value as a result, each lies within the roundings that the pass may
   add of what the evaluator gives for the values that it reads. */
#include "near.h"
#include "trial.h"

#include "passes/copy.h"

/* The function with every value as a result. */
static Graph *spread_of(Suite *s, const Graph *graph, const Func *from) {
    Graph *spread = tg_graph_like(&s->arena, graph, LEVEL_MODEL);
    Builder b = tg_builder(spread, tg_func_new(spread, FUNC_EXPORT, from->name), false);
    b.func->args = from->args;
    Copy copy = tg_copy(&s->arena, &b, graph, from);
    for (NodeId id = 1; id < from->nodes.count; id++)
        tg_copy_need(&copy, id);
    tg_copy_run(&copy);
    for (NodeId id = 1; id < b.func->nodes.count; id++)
        tg_result_value(&b, tg_arena_printf(&s->arena, "n%u", id), id);
    return spread;
}

static bool check_value(Suite *s, const Trial *t, const Graph *graph, NodeId id, const Tensor *got) {
    const Func *func = graph->funcs.at[0];
    const Node *node = tg_node(func, id);
    EvalState state = tg_random_graph_state(&s->arena, &t->r, t->r.rows);
    Tensor *operands = TG_ALLOC(&s->arena, Tensor, node->operand_count + 1);
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = got[tg_operand(func, node, i) - 1];
    double wanted = 0;
    int64_t wrong = tg_first_wrong(&state, graph, func, id, operands, &got[id - 1], graph->training.precision, &wanted);
    if (wrong < 0)
        return true;
    Str text = tg_str(&s->arena);
    tg_node_print(&text, graph, func, id);
    trial_complain(s, t, "pass autocast: element %lld of %s is %.9g, not %.9g", (long long)wrong, text.text, got[id - 1].at[wrong], wanted);
    return false;
}

static bool check_func(Suite *s, const Trial *t, const Graph *in, const Func *func) {
    Graph *cast, *spread = spread_of(s, in, func);
    if (!trial_passes(s, t, "autocast", false, true, spread, &cast))
        return false;
    const Func *to = cast->funcs.at[0];
    Tensor *got = TG_ALLOC(&s->arena, Tensor, to->results.count + 1);
    EvalState state = tg_random_graph_state(&s->arena, &t->r, t->r.rows);
    trial_count(s, (Kind)PASS_autocast);
    if (tg_eval_func(&state, cast, to, &s->diags, got) != TG_OK) {
        trial_complain(s, t, "the evaluator fails");
        return false;
    }
    s->report->casts += to->nodes.count - spread->funcs.at[0]->nodes.count;
    for (NodeId id = 1; id < spread->funcs.at[0]->nodes.count; id++)
        if (!check_value(s, t, spread, id, got))
            return false;
    return true;
}

bool trial_cast(Suite *s, const Trial *t, const Graph *in, Graph **out) {
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *func = in->funcs.at[f];
        if ((func->kind == FUNC_OBJECTIVE || func->kind == FUNC_EXPORT) && !check_func(s, t, in, func))
            return false;
    }
    s->report->mixed[in->training.precision == DT_F16]++;
    return trial_passes(s, t, "autocast", t->seed % 2 != 0, true, in, out);
}
