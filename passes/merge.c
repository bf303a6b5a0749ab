/* merge: dots of few rows with one second operand that do not depend on each other become one dot over their rows,

       dot(x_1, w) ... dot(x_n, w)   ->   y = dot(stack(x_1 ... x_n), w), and y's slices

   as the steps of an unrolled loop give: each reads the whole weight for a few rows, and one of them is too small to be shared among
   threads. The steps are axis 1 of the stack, so that what was cut out of a sequence along that axis is the sequence (clean), and the
   stack is the one that the weight's gradient reads (cotangent.c).

   The nodes are brought into an order in which all rows of a dot are there before it. Merging some dots may tie others: dots that are
   merged are one place in the order, and the dots of each weight are judged in the order that the weights before have left. A dot's
   depth is the most dots of its weight on a path that leads to it; equal depths do not depend on each other, and merging them leaves
   the order free of cycles. One weight takes linear time; MOST_WEIGHTS bounds how many are tried. */
#include "passes/passes.h"
#include "passes/rewrite.h"

#include "ir/base/map.h"
#include "ir/dot.h"

#include <string.h>

enum { LEAST_ROWS = 128, MOST_WEIGHTS = 64 }; /* dots of LEAST_ROWS are large enough by themselves */

typedef Vec(NodeId) Dots;

typedef struct Merge {
    PassContext *context;
    const Graph *graph;
    const Func *func;
    const bool *needed;
    NodeId *order; /* the nodes that are needed, operands first; dots that are merged side by side */
    uint32_t count; /* 0: nothing can be merged, and the order is the graph's */
    uint32_t *merged; /* per node: 1 + its place in `sets` */
    Vec(Dots) sets;
} Merge;

/* ---- candidates ---- */

/* [rows, k] by a whole operand, without groups. */
static bool is_candidate(const Merge *m, NodeId id) {
    const Node *node = tg_node(m->func, id);
    if (node->op != OP_dot || !m->needed[id] || node->attr->list[0].count || node->attr->list[2].count != 1 ||
        tg_dot_adds(m->graph, m->func, node))
        return false;
    const Type *x = tg_node_type(m->graph, m->func, tg_operand(m->func, node, 0));
    bool by_rows = x->rank == 2 && node->attr->list[2].at[0] == 1 && !x->dims[1].batch;
    return by_rows && x->dims[0].size > 0 && tg_type_of(&m->graph->types, node->type)->rank < TG_MAX_RANK &&
           x->dims[0].size * (x->dims[0].batch ? m->graph->training.micro : 1) < LEAST_ROWS;
}

/* The candidates by what is equal where they are merged, in the order of the graph; those alone too. */
static void find_weights(const Merge *m, Map *known, Dots *weights, uint32_t *count) {
    for (NodeId id = 1; id < m->func->nodes.count; id++) {
        if (!is_candidate(m, id))
            continue;
        const Node *node = tg_node(m->func, id);
        uint32_t bias = node->operand_count == 3 ? tg_operand(m->func, node, 2) : 0;
        int64_t key[] = {tg_operand(m->func, node, 1), bias, tg_node(m->func, tg_operand(m->func, node, 0))->type, node->type,
                         node->attr->list[3].at[0]};
        uint64_t *place = tg_map_put(known, key, sizeof key, NULL);
        if (*place == 0 && *count == MOST_WEIGHTS)
            continue;
        if (*place == 0)
            *place = ++*count;
        tg_push(m->context->arena, &weights[*place - 1], id);
    }
}

/* ---- order ---- */

/* What has one place in the order: a node, or all dots of a set. */
static const NodeId *unit_of(const Merge *m, const NodeId *id, uint32_t *count) {
    const Dots *set = m->merged[*id] ? &m->sets.at[m->merged[*id] - 1] : NULL;
    *count = set ? set->count : 1;
    return set ? set->at : id;
}

typedef struct Visit {
    NodeId node;
    uint32_t member, operand;
} Visit;

/* The next operand of the unit that is not placed yet; 0: there is none. */
static NodeId next_operand(const Merge *m, Visit *visit, const bool *placed) {
    uint32_t count;
    const NodeId *unit = unit_of(m, &visit->node, &count);
    for (; visit->member < count; visit->member++, visit->operand = 0) {
        const Node *node = tg_node(m->func, unit[visit->member]);
        while (visit->operand < node->operand_count) {
            NodeId operand = tg_operand(m->func, node, visit->operand++);
            if (!placed[operand])
                return operand;
        }
    }
    return 0;
}

/* Each node after its operands, else as in the graph. */
static void put_in_order(Merge *m) {
    Arena *arena = m->context->arena;
    bool *placed = TG_ALLOC(arena, bool, m->func->nodes.count);
    Vec(Visit) open = {0};
    m->count = 0;
    for (NodeId id = 1; id < m->func->nodes.count; id++) {
        if (m->needed[id] && !placed[id])
            tg_push(arena, &open, (Visit){.node = id});
        while (open.count) {
            Visit *visit = &open.at[open.count - 1];
            NodeId operand = next_operand(m, visit, placed);
            if (operand) {
                tg_push(arena, &open, (Visit){.node = operand});
                continue;
            }
            uint32_t count;
            const NodeId *unit = unit_of(m, &visit->node, &count);
            open.count--;
            for (uint32_t i = 0; i < count; i++) {
                placed[unit[i]] = true;
                m->order[m->count++] = unit[i];
            }
        }
    }
}

/* depth[n]: the most of `dots`, which `chosen` marks, on a path to node n, itself included. */
static void find_depths(const Merge *m, const bool *chosen, uint32_t *depth) {
    for (uint32_t at = 0, count; at < m->count; at += count) {
        const NodeId *unit = unit_of(m, &m->order[at], &count);
        uint32_t deepest = 0;
        for (uint32_t i = 0; i < count; i++) {
            const Node *node = tg_node(m->func, unit[i]);
            for (uint32_t k = 0; k < node->operand_count; k++) {
                uint32_t below = depth[tg_operand(m->func, node, k)];
                deepest = below > deepest ? below : deepest;
            }
        }
        for (uint32_t i = 0; i < count; i++)
            depth[unit[i]] = deepest + chosen[unit[i]];
    }
}

/* Makes sets of the dots of one weight; says whether there are any. */
static bool merge_weight(Merge *m, const Dots *dots, bool *chosen, uint32_t *depth) {
    Arena *arena = m->context->arena;
    for (uint32_t i = 0; i < dots->count; i++)
        chosen[dots->at[i]] = true;
    find_depths(m, chosen, depth);
    Dots *by_depth = TG_ALLOC(arena, Dots, dots->count + 1);
    for (uint32_t i = 0; i < dots->count; i++) {
        chosen[dots->at[i]] = false;
        tg_push(arena, &by_depth[depth[dots->at[i]]], dots->at[i]);
    }
    bool any = false;
    for (uint32_t d = 1; d <= dots->count; d++) {
        if (by_depth[d].count < 2 || !tg_rewrite(m->context, "rows", tg_node(m->func, by_depth[d].at[0])->locs))
            continue;
        tg_push(arena, &m->sets, by_depth[d]);
        for (uint32_t i = 0; i < by_depth[d].count; i++)
            m->merged[by_depth[d].at[i]] = m->sets.count;
        any = true;
    }
    return any;
}

/* ---- the order of steps in a stack ---- */

/* The place of `x` along axis 1 of a value that holds it as one step: what it is cut out of, or a stack that the graph makes. */
typedef struct Step {
    NodeId whole; /* 0: none is known */
    int64_t at;
} Step;

static Step cut_from(const Func *func, NodeId x) {
    const Node *node = tg_node(func, x);
    if (node->op == OP_reshape)
        node = tg_node(func, tg_operand(func, node, 0));
    if (node->op != OP_slice || node->attr->list[0].count < 2)
        return (Step){0};
    return (Step){tg_operand(func, node, 0), node->attr->list[0].at[1]};
}

/* Per node: where it stands in the last stack of steps that holds it. */
static Step *find_steps(const Merge *m) {
    Step *steps = TG_ALLOC(m->context->arena, Step, m->func->nodes.count);
    for (NodeId id = 1; id < m->func->nodes.count; id++) {
        const Node *node = tg_node(m->func, id);
        for (uint32_t i = 0; node->op == OP_concat && node->attr->list[0].at[0] == 1 && i < node->operand_count; i++) {
            const Node *piece = tg_node(m->func, tg_operand(m->func, node, i));
            if (piece->op == OP_reshape)
                steps[tg_operand(m->func, piece, 0)] = (Step){id, i};
        }
    }
    return steps;
}

/* A loop backwards meets the steps from the last to the first: they are stacked as they are elsewhere. */
static void turn(const Merge *m, const Step *steps, Dots *set) {
    NodeId first = tg_operand(m->func, tg_node(m->func, set->at[0]), 0);
    NodeId last = tg_operand(m->func, tg_node(m->func, set->at[set->count - 1]), 0);
    Step a = cut_from(m->func, first), b = cut_from(m->func, last);
    if (a.whole == 0)
        a = steps[first], b = steps[last];
    if (a.whole == 0 || a.whole != b.whole || a.at < b.at)
        return;
    for (uint32_t i = 0, j = set->count - 1; i < j; i++, j--) {
        NodeId swapped = set->at[i];
        set->at[i] = set->at[j];
        set->at[j] = swapped;
    }
}

static void merge_weights(Merge *m) {
    Arena *arena = m->context->arena;
    Dots weights[MOST_WEIGHTS] = {0};
    Map known = tg_map(arena);
    uint32_t count = 0;
    find_weights(m, &known, weights, &count);
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any |= weights[i].count > 1;
    if (!any)
        return;
    bool *chosen = TG_ALLOC(arena, bool, m->func->nodes.count);
    uint32_t *depth = TG_ALLOC(arena, uint32_t, m->func->nodes.count);
    put_in_order(m);
    for (uint32_t i = 0; i < count; i++)
        if (weights[i].count > 1 && merge_weight(m, &weights[i], chosen, depth))
            put_in_order(m);
    Step *steps = find_steps(m);
    for (uint32_t i = 0; i < m->sets.count; i++)
        turn(m, steps, &m->sets.at[i]);
}

/* ---- the new function ---- */

/* `type` with `size` as its dimension 1, which is new. */
static TypeId with_steps(Graph *graph, TypeId from, int64_t size) {
    Type type = *tg_type_of(&graph->types, from);
    memmove(&type.dims[2], &type.dims[1], (size_t)(type.rank - 1) * sizeof type.dims[0]);
    type.dims[1] = (Dim){.size = size};
    type.rank++;
    return tg_type(&graph->types, &type);
}

static NodeId stack(const Merge *m, const Copy *copy, const Dots *set) {
    NodeId *pieces = TG_ALLOC(m->context->arena, NodeId, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        NodeId x = copy->map[tg_operand(m->func, tg_node(m->func, set->at[i]), 0)];
        pieces[i] = tg_reshape(copy->b, x, with_steps(copy->b->graph, tg_node(copy->b->func, x)->type, 1));
    }
    int64_t axis = 1;
    return tg_build(copy->b, OP_concat, &(Attr){.list = {{&axis, 1}}}, pieces, set->count, 0);
}

/* Step `at` of `y`, in `type`, which has no steps. */
static NodeId step_of(const Copy *copy, NodeId y, int64_t at, TypeId type) {
    Type whole = *tg_node_type(copy->b->graph, copy->b->func, y);
    int64_t start[TG_MAX_RANK] = {0, at}, limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    for (int i = 0; i < whole.rank; i++) {
        limit[i] = i == 1 ? at + 1 : whole.dims[i].size;
        stride[i] = 1;
    }
    uint32_t rank = (uint32_t)whole.rank;
    Attr attr = {.list = {{start, rank}, {limit, rank}, {stride, rank}}};
    return tg_reshape(copy->b, tg_build(copy->b, OP_slice, &attr, &y, 1, 0), type);
}

/* The first dot of a set builds all. */
static NodeId merged_dot(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Merge *m = context;
    if (m->merged[id] == 0)
        return 0;
    const Dots *set = &m->sets.at[m->merged[id] - 1];
    const Node *node = tg_node(m->func, id);
    Builder *b = copy->b;
    for (uint32_t i = 0; i < set->count; i++)
        b->locs = tg_locs_union(b->graph, b->locs, tg_node(m->func, set->at[i])->locs);
    NodeId inputs[3] = {stack(m, copy, set), operands[1], node->operand_count == 3 ? operands[2] : 0};
    Attr attr = *node->attr;
    int64_t contracted = 2;
    attr.list[2] = (Ints){&contracted, 1};
    NodeId y = tg_build(b, OP_dot, &attr, inputs, node->operand_count, with_steps(b->graph, node->type, set->count));
    for (uint32_t i = 0; i < set->count; i++)
        copy->map[set->at[i]] = step_of(copy, y, i, node->type);
    return copy->map[id];
}

static Status merge_func(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Builder b = tg_builder(out, tg_func_new(out, from->kind, from->name), context->fold);
    b.func->args = from->args;
    Copy copy = tg_copy(context->arena, &b, in, from);
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_mark(&copy);
    Merge m = {.context = context, .graph = in, .func = from, .needed = copy.needed};
    m.order = TG_ALLOC(context->arena, NodeId, from->nodes.count);
    m.merged = TG_ALLOC(context->arena, uint32_t, from->nodes.count);
    merge_weights(&m);
    copy.replace = merged_dot;
    copy.context = &m;
    copy.order = m.count ? m.order : NULL;
    copy.ordered = m.count;
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    return tg_builder_status(&b, context->diags);
}

Status run_merge(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(merge_func(context, in, in->funcs.at[f], *out));
    return TG_OK;
}
