#include "ir/axes.h"

#include "ir/dot.h"

#include <assert.h>

typedef struct Rule {
    Axes *out;
    const Graph *graph;
    const Func *func;
    const Node *node;
    const Type *result;
} Rule;

static const Type *operand_type(const Rule *r, uint32_t i) {
    return tg_node_type(r->graph, r->func, tg_operand(r->func, r->node, i));
}

static DimParts *parts_of(Rule *r, uint32_t value, int dim) {
    return &r->out->values[value * TG_MAX_RANK + (uint32_t)dim];
}

static uint8_t new_axis(Rule *r, Dim size, AxisRole role) {
    assert(r->out->axis_count < TG_MAX_AXES);
    r->out->axes[r->out->axis_count] = (Axis){size, role};
    return (uint8_t)r->out->axis_count++;
}

static void add_part(Rule *r, uint32_t value, int dim, Part part) {
    DimParts *parts = parts_of(r, value, dim);
    assert(parts->count < TG_MAX_PARTS);
    parts->parts[parts->count++] = part;
}

static void add_axis(Rule *r, uint32_t value, int dim, uint8_t axis) {
    add_part(r, value, dim, (Part){.kind = PART_AXIS, .axis = axis, .stride = 1});
}

static void add_whole(Rule *r, uint32_t value, int dim, Dim size) {
    add_part(r, value, dim, (Part){.kind = PART_WHOLE, .axis = new_axis(r, size, AXIS_WHOLE), .stride = 1});
}

/* One axis per dimension of the result. */
static void result_axes(Rule *r) {
    for (int d = 0; d < r->result->rank; d++)
        add_axis(r, 0, d, new_axis(r, r->result->dims[d], AXIS_FREE));
}

/* ---- pointwise, leaves, views ---- */

static void axes_leaf(Rule *r) { result_axes(r); }

static void axes_call(Rule *r) { result_axes(r); }

static void axes_pointwise(Rule *r) {
    result_axes(r);
    for (uint32_t i = 0; i < r->node->operand_count; i++)
        for (int d = 0; d < r->result->rank; d++)
            add_axis(r, 1 + i, d, (uint8_t)d);
}

static void axes_transpose(Rule *r) {
    result_axes(r);
    for (int d = 0; d < r->result->rank; d++)
        add_axis(r, 1, (int)r->node->attr->list[0].at[d], (uint8_t)d);
}

static void axes_broadcast(Rule *r) {
    const Type *from = operand_type(r, 0);
    result_axes(r);
    for (int d = 0; d < from->rank; d++) {
        int64_t to = r->node->attr->list[0].at[d];
        if (tg_dim_equal(from->dims[d], r->result->dims[to]))
            add_axis(r, 1, d, (uint8_t)to);
    }
}

/* slice: operand index = start + stride * result; pad: result index = low + (interior + 1) * operand. */
static void axes_offset(Rule *r) {
    const Type *from = operand_type(r, 0);
    bool pad = r->node->op == OP_pad;
    const Ints *list = r->node->attr->list;
    for (int d = 0; d < from->rank; d++) {
        uint8_t axis = new_axis(r, pad ? from->dims[d] : r->result->dims[d], AXIS_FREE);
        Part moved = {.kind = PART_OFFSET,
                      .axis = axis,
                      .offset = list[0].at[d],
                      .stride = pad ? list[2].at[d] + 1 : list[2].at[d]};
        if (tg_dim_equal(from->dims[d], r->result->dims[d]))
            moved = (Part){.kind = PART_AXIS, .axis = axis, .stride = 1};
        add_axis(r, pad ? 1 : 0, d, axis);
        add_part(r, pad ? 0 : 1, d, moved);
    }
}

static void axes_concat(Rule *r) {
    int64_t along = r->node->attr->list[0].at[0], offset = 0;
    result_axes(r);
    for (uint32_t i = 0; i < r->node->operand_count; i++) {
        const Type *from = operand_type(r, i);
        for (int d = 0; d < from->rank; d++) {
            if (d == along)
                add_part(r, 1 + i, d, (Part){.kind = PART_OFFSET, .axis = (uint8_t)d, .offset = -offset, .stride = 1});
            else
                add_axis(r, 1 + i, d, (uint8_t)d);
        }
        offset += from->dims[along].size;
    }
}

/* reverse, cumsum: the dimensions that `axis` or `axes` names stay whole. */
static void axes_whole(Rule *r) {
    Ints along = r->node->attr->list[0];
    for (int d = 0; d < r->result->rank; d++) {
        bool whole = false;
        for (uint32_t i = 0; i < along.count; i++)
            whole |= along.at[i] == d;
        uint8_t axis = new_axis(r, r->result->dims[d], whole ? AXIS_WHOLE : AXIS_FREE);
        add_axis(r, 0, d, axis);
        add_part(r, 1, d, (Part){.kind = whole ? PART_WHOLE : PART_AXIS, .axis = axis, .stride = 1});
    }
}

/* ---- reshape ---- */

typedef struct Run {
    const Type *type;
    int from, to; /* dimensions [from, to) */
} Run;

/* The positions in a run where a dimension begins, as the number of elements behind it, per B; ends with 1. */
static int boundaries(Run run, int64_t *at) {
    int count = 0;
    int64_t behind = 1;
    at[count++] = 1;
    for (int d = run.to - 1; d >= run.from; d--) {
        behind *= run.type->dims[d].size;
        at[count++] = behind;
    }
    return count;
}

/* Both lists merged, ascending, each once; 0: some boundary does not divide the next. */
static int merge_boundaries(const int64_t *a, int na, const int64_t *b, int nb, int64_t *merged) {
    int count = 0, i = 0, j = 0;
    while (i < na || j < nb) {
        int64_t next = j == nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
        if (count > 0 && merged[count - 1] == next)
            continue;
        if (count > 0 && next % merged[count - 1] != 0)
            return 0;
        merged[count++] = next;
    }
    return count;
}

/* The factors of dimension `d` of a run: the axes between its boundaries; B, if it is there, is one of its own, in
 * front. */
static void factor_dims(Rule *r, uint32_t value, Run run, const int64_t *merged, int count, const uint8_t *axes,
                        uint8_t batch) {
    int64_t behind = 1;
    for (int d = run.to - 1; d >= run.from; d--) {
        int64_t before = behind * run.type->dims[d].size;
        if (run.type->dims[d].batch)
            add_axis(r, value, d, batch);
        for (int i = count - 2; i >= 0; i--)
            if (merged[i] >= behind && merged[i + 1] <= before)
                add_axis(r, value, d, axes[i]);
        behind = before;
    }
}

static bool one_dim(Run run) { return run.to - run.from == 1; }

/* Relates two runs of equally many elements. */
static void relate_runs(Rule *r, Run result, Run operand) {
    if (one_dim(result) && one_dim(operand) &&
        tg_dim_equal(result.type->dims[result.from], operand.type->dims[operand.from])) {
        uint8_t axis = new_axis(r, result.type->dims[result.from], AXIS_FREE);
        add_axis(r, 0, result.from, axis);
        add_axis(r, 1, operand.from, axis);
        return;
    }
    int64_t a[TG_MAX_RANK + 1], b[TG_MAX_RANK + 1], merged[2 * TG_MAX_RANK + 2];
    int count = merge_boundaries(a, boundaries(result, a), b, boundaries(operand, b), merged);
    uint8_t axes[2 * TG_MAX_RANK + 2], batch = 0;
    bool has_batch = false;
    for (int d = result.from; d < result.to; d++)
        has_batch |= result.type->dims[d].batch;
    if (has_batch)
        batch = new_axis(r, (Dim){1, true}, AXIS_FREE);
    for (int i = count - 2; i >= 0; i--)
        axes[i] = new_axis(r, (Dim){merged[i + 1] / merged[i], false}, AXIS_FREE);
    if (count > 0) {
        factor_dims(r, 0, result, merged, count, axes, batch);
        factor_dims(r, 1, operand, merged, count, axes, batch);
        return;
    }
    for (int d = result.from; d < result.to; d++)
        add_whole(r, 0, d, result.type->dims[d]);
    for (int d = operand.from; d < operand.to; d++)
        add_whole(r, 1, d, operand.type->dims[d]);
}

/* Elements of a run with one row; a run that ends before B counts apart from one that holds it. */
static int64_t run_count(Run run) {
    int64_t count = 1;
    for (int d = run.from; d < run.to; d++)
        count *= run.type->dims[d].size;
    return count;
}

static bool run_has_batch(Run run) {
    for (int d = run.from; d < run.to; d++)
        if (run.type->dims[d].batch)
            return true;
    return false;
}

/* The coarsest common factors: walks both shapes to the next place where equally many elements have passed. */
static void axes_reshape(Rule *r) {
    Run to = {r->result, 0, 0}, from = {operand_type(r, 0), 0, 0};
    if (tg_type_count(to.type, 1) == 0) {
        result_axes(r);
        for (int d = 0; d < from.type->rank; d++)
            add_whole(r, 1, d, from.type->dims[d]);
        return;
    }
    while (to.to < to.type->rank || from.to < from.type->rank) {
        int64_t a = run_count(to), b = run_count(from);
        bool batch_a = run_has_batch(to), batch_b = run_has_batch(from);
        if (to.to < to.type->rank && (to.to == to.from || a < b || (a == b && !batch_a && batch_b)))
            to.to++;
        else if (from.to < from.type->rank && (from.to == from.from || b < a || (a == b && !batch_b && batch_a)))
            from.to++;
        else if (to.to < to.type->rank)
            to.to++;
        else
            from.to++;
        bool met = run_count(to) == run_count(from) && run_has_batch(to) == run_has_batch(from) && to.to > to.from &&
                   from.to > from.from;
        if (met && (to.to < to.type->rank) == (from.to < from.type->rank)) {
            relate_runs(r, to, from);
            to.from = to.to;
            from.from = from.to;
        }
    }
    if (to.to > to.from || from.to > from.from)
        relate_runs(r, to, from);
}

/* ---- reductions and contractions ---- */

static bool listed(Ints list, int64_t axis) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] == axis)
            return true;
    return false;
}

static void reduce_axes(Rule *r, AxisRole role) {
    const Type *from = operand_type(r, 0);
    int to = 0;
    for (int d = 0; d < from->rank; d++) {
        bool reduced = listed(r->node->attr->list[0], d);
        uint8_t axis = new_axis(r, from->dims[d], reduced ? role : AXIS_FREE);
        add_axis(r, 1, d, axis);
        if (!reduced)
            add_axis(r, 0, to++, axis);
    }
}

static void axes_reduce(Rule *r) { reduce_axes(r, AXIS_REDUCED); }

static void axes_argmax(Rule *r) { reduce_axes(r, AXIS_WHOLE); }

static void axes_dot(Rule *r) {
    const Ints *list = r->node->attr->list;
    const Type *types[2] = {operand_type(r, 0), operand_type(r, 1)};
    bool adds = tg_dot_adds(r->graph, r->func, r->node), biased = r->node->operand_count == 3 && !adds;
    int to = 0, bias = 0;
    for (uint32_t kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < list[2 * kind].count; i++) {
            int64_t a = list[2 * kind].at[i], b = list[2 * kind + 1].at[i];
            uint8_t axis = new_axis(r, types[0]->dims[a], kind == 0 ? AXIS_FREE : AXIS_REDUCED);
            add_axis(r, 1, (int)a, axis);
            add_axis(r, 2, (int)b, axis);
            if (kind == 0)
                add_axis(r, 0, to++, axis);
        }
    for (uint32_t side = 0; side < 2; side++)
        for (int d = 0; d < types[side]->rank; d++) {
            if (listed(list[side], d) || listed(list[2 + side], d))
                continue;
            uint8_t axis = new_axis(r, types[side]->dims[d], AXIS_FREE);
            add_axis(r, 1 + side, d, axis);
            add_axis(r, 0, to++, axis);
            if (side == 1 && biased)
                add_axis(r, 3, bias++, axis);
        }
    for (int d = 0; adds && d < to; d++)
        add_axis(r, 3, d, parts_of(r, 0, d)->parts[0].axis);
}

/* ---- tables ---- */

/* `table` and `rows` are values; the table's dimension `along` is whole, in its place rows have those of the indices. `same` lies as
   the table; 0: there is none. */
static void table_axes(Rule *r, uint32_t table, uint32_t indices, uint32_t rows, uint32_t same, AxisRole index_role) {
    const Type *types[3];
    for (uint32_t v = 0; v < 3; v++)
        types[v] = v == 0 ? r->result : operand_type(r, v - 1);
    int64_t along = r->node->attr->list[0].at[0];
    int at = 0;
    for (int d = 0; d < types[table]->rank; d++) {
        if (d == along) {
            uint8_t whole = new_axis(r, types[table]->dims[d], AXIS_WHOLE);
            add_part(r, table, d, (Part){.kind = PART_WHOLE, .axis = whole, .stride = 1});
            if (same)
                add_part(r, same, d, (Part){.kind = PART_WHOLE, .axis = whole, .stride = 1});
            for (int i = 0; i < types[indices]->rank; i++) {
                uint8_t axis = new_axis(r, types[indices]->dims[i], index_role);
                add_axis(r, indices, i, axis);
                add_axis(r, rows, at++, axis);
            }
            continue;
        }
        uint8_t axis = new_axis(r, types[table]->dims[d], AXIS_FREE);
        add_axis(r, table, d, axis);
        add_axis(r, rows, at++, axis);
        if (same)
            add_axis(r, same, d, axis);
    }
}

static void axes_take(Rule *r) { table_axes(r, 1, 2, 0, 0, AXIS_FREE); }

static void axes_scatter(Rule *r) { table_axes(r, 0, 1, 2, r->node->operand_count == 3 ? 3 : 0, AXIS_REDUCED); }

/* ---- attention ---- */

/* Queries and keys: their axes by letter. */
typedef struct AttentionAxes {
    int lead;
    uint8_t leads[TG_MAX_RANK], head, group, queries, keys, features;
} AttentionAxes;

/* Query heads are key heads times the group that shares them, key heads major. */
static void attention_value(Rule *r, uint32_t value, const AttentionAxes *a, bool is_query) {
    for (int d = 0; d < a->lead; d++)
        add_axis(r, value, d, a->leads[d]);
    add_axis(r, value, a->lead, a->head);
    if (is_query)
        add_axis(r, value, a->lead, a->group);
    add_axis(r, value, a->lead + 1, is_query ? a->queries : a->keys);
    add_axis(r, value, a->lead + 2, a->features);
}

static void axes_attention(Rule *r) {
    const Type *q = operand_type(r, 0), *k = operand_type(r, 1);
    bool gradient = r->node->op != OP_attention, of_query = !gradient || r->node->op == OP_attention_dq;
    AttentionAxes a = {.lead = q->rank - 3};
    for (int d = 0; d < a.lead; d++)
        a.leads[d] = new_axis(r, q->dims[d], AXIS_FREE);
    int64_t heads = k->dims[a.lead].size;
    a.head = new_axis(r, (Dim){heads, false}, AXIS_FREE);
    a.group = new_axis(r, (Dim){q->dims[a.lead].size / heads, false}, of_query ? AXIS_FREE : AXIS_REDUCED);
    a.queries = new_axis(r, q->dims[a.lead + 1], of_query ? AXIS_FREE : AXIS_REDUCED);
    a.keys = new_axis(r, k->dims[a.lead + 1], AXIS_WHOLE);
    a.features = new_axis(r, q->dims[a.lead + 2], AXIS_WHOLE);
    uint32_t mask = gradient ? 5 : 4;
    attention_value(r, 0, &a, of_query);
    attention_value(r, 1, &a, true);
    attention_value(r, 2, &a, false);
    attention_value(r, 3, &a, false);
    if (gradient)
        attention_value(r, 4, &a, true);
    if (r->node->operand_count < mask)
        return;
    for (int d = 0; d < a.lead; d++)
        add_axis(r, mask, d, a.leads[d]);
    add_axis(r, mask, a.lead, a.queries);
    add_axis(r, mask, a.lead + 1, a.keys);
}

/* ---- the way in ---- */

const Axes *tg_node_axes(Arena *arena, const Graph *graph, const Func *func, NodeId id) {
    static void (*const rules[])(Rule *) = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, ...) axes_##axes,
#include "ir/ops.def"
#undef OP
    };
    const Node *node = tg_node(func, id);
    Axes *axes = TG_ALLOC(arena, Axes, 1);
    axes->value_count = 1u + node->operand_count;
    axes->values = TG_ALLOC(arena, DimParts, axes->value_count * TG_MAX_RANK);
    Rule rule = {axes, graph, func, node, tg_type_of(&graph->types, node->type)};
    rules[node->op](&rule);
    return axes;
}

double tg_axes_points(const Axes *axes, int64_t rows) {
    double points = 1;
    for (uint32_t i = 0; i < axes->axis_count; i++)
        points *= (double)axes->axes[i].size.size * (axes->axes[i].size.batch ? (double)rows : 1);
    return points;
}
