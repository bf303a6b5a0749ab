/* The sum of what the readers of a value send back, in the order in which the backward pass meets them, from the last node to
   the first. Some parts are put together instead of being added:
   - the gradients of slices that together are the whole value: they are concatenated;
   - products summed over B, as the steps of a loop give for a weight that all of them share: one product whose sum goes over
     the steps too;
   - the rows that readers of a table send back, and what else the whole table gets (a head that is the embedding's own weight): the
     rows are added to that, where they belong, and no table of zeros is filled and read again.
   Low parts that are added are added in f32, and rounded once.
   A loop of n steps then costs n small copies, not n passes over the whole value. */
#include "passes/cotangent.h"

#include <string.h>

static const Node *node_of(const Cotangents *c, NodeId id) { return tg_node(c->b->func, id); }
static const Type *type_of(const Cotangents *c, NodeId id) { return tg_node_type(c->b->graph, c->b->func, id); }

/* The one axis along which `pad` adds zeros around its operand, from `*low` to `*high`; -1: no such. */
static int64_t padded_axis(const Cotangents *c, NodeId id, int64_t *low, int64_t *high) {
    const Node *pad = node_of(c, id);
    if (pad->op != OP_pad || pad->attr->number != 0)
        return -1;
    const Type *from = type_of(c, tg_operand(c->b->func, pad, 0));
    int64_t axis = -1;
    for (int i = 0; i < from->rank; i++) {
        int64_t before = pad->attr->list[0].at[i], after = pad->attr->list[1].at[i];
        if (pad->attr->list[2].at[i] != 0 || before < 0 || after < 0 || ((before || after) && axis >= 0))
            return -1;
        if (before || after)
            axis = i;
    }
    if (axis >= 0) {
        *low = pad->attr->list[0].at[axis];
        *high = *low + from->dims[axis].size;
    }
    return axis;
}

/* The part that begins at `start` along `axis`; 0: none or several. */
static NodeId part_at(const Cotangents *c, const Parts *parts, int64_t axis, int64_t start, int64_t *end) {
    NodeId found = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        int64_t low, high;
        if (padded_axis(c, parts->at[i], &low, &high) != axis)
            return 0;
        if (low != start)
            continue;
        if (found)
            return 0;
        found = parts->at[i];
        *end = high;
    }
    return found;
}

/* All parts as one, if each is a slice's and they are the whole without gap or overlap; 0: they are not. */
static NodeId concatenate(const Cotangents *c, const Parts *parts) {
    int64_t low, high, end = 0;
    int64_t axis = padded_axis(c, parts->at[0], &low, &high);
    if (axis < 0)
        return 0;
    int64_t whole = type_of(c, parts->at[0])->dims[axis].size;
    NodeId *pieces = TG_ALLOC(c->arena, NodeId, parts->count);
    for (uint32_t i = 0; i < parts->count; i++) {
        NodeId part = end < whole ? part_at(c, parts, axis, end, &end) : 0;
        if (part == 0)
            return 0;
        pieces[i] = tg_operand(c->b->func, node_of(c, part), 0);
    }
    Attr attr = {.list = {{&axis, 1}}};
    return end == whole ? tg_build(c->b, OP_concat, &attr, pieces, parts->count, 0) : 0;
}

/* A product of two operands that begin with B, over B alone. */
static bool sums_over_batch(const Cotangents *c, NodeId id) {
    const Node *dot = node_of(c, id);
    if (dot->op != OP_dot || dot->operand_count != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const Type *type = type_of(c, tg_operand(c->b->func, dot, i));
        Ints contracted = dot->attr->list[2 + i];
        bool over_first = contracted.count == 1 && contracted.at[0] == 0;
        if (!over_first || dot->attr->list[i].count || tg_type_batch_axis(type) != 0 || type->rank == TG_MAX_RANK)
            return false;
    }
    return true;
}

static bool same_operands(const Cotangents *c, NodeId a, NodeId b) {
    for (uint32_t i = 0; i < 2; i++)
        if (node_of(c, tg_operand(c->b->func, node_of(c, a), i))->type !=
            node_of(c, tg_operand(c->b->func, node_of(c, b), i))->type)
            return false;
    return node_of(c, a)->type == node_of(c, b)->type;
}

/* Operand `which` of all dots as one value with the dots as its axis 1, the first of the forward pass first. */
static NodeId stack(const Cotangents *c, const Parts *dots, uint32_t which) {
    NodeId *pieces = TG_ALLOC(c->arena, NodeId, dots->count);
    Type type = *type_of(c, tg_operand(c->b->func, node_of(c, dots->at[0]), which));
    memmove(&type.dims[2], &type.dims[1], (size_t)(type.rank - 1) * sizeof type.dims[0]);
    type.dims[1] = (Dim){.size = 1};
    type.rank++;
    TypeId one = tg_type(&c->b->graph->types, &type);
    for (uint32_t i = 0; i < dots->count; i++)
        pieces[dots->count - 1 - i] = tg_reshape(c->b, tg_operand(c->b->func, node_of(c, dots->at[i]), which), one);
    int64_t axis = 1;
    Attr attr = {.list = {{&axis, 1}}};
    return tg_build(c->b, OP_concat, &attr, pieces, dots->count, 0);
}

/* The first part that is such a product takes those like it. */
static void merge_products(const Cotangents *c, Parts *parts) {
    Parts dots = {0};
    uint32_t kept = 0, place = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        bool joins = sums_over_batch(c, parts->at[i]) && (dots.count == 0 || same_operands(c, dots.at[0], parts->at[i]));
        if (joins && dots.count == 0)
            place = kept++;
        else if (!joins)
            parts->at[kept++] = parts->at[i];
        if (joins)
            tg_push(c->arena, &dots, parts->at[i]);
    }
    if (dots.count == 0)
        return;
    parts->count = kept;
    parts->at[place] = dots.at[0];
    if (dots.count == 1)
        return;
    static const int64_t axes[] = {0, 1};
    Attr attr = {.list = {{0}, {0}, {axes, 2}, {axes, 2}}};
    NodeId operands[] = {stack(c, &dots, 0), stack(c, &dots, 1)};
    parts->at[place] = tg_build(c->b, OP_dot, &attr, operands, 2, node_of(c, dots.at[0])->type);
}

static bool is_batch_sum(const Cotangents *c, NodeId id) {
    const Node *node = node_of(c, id);
    bool sums = false;
    for (uint32_t i = 0; i < node->operand_count; i++)
        sums |= tg_type_batch_axis(type_of(c, tg_operand(c->b->func, node, i))) >= 0;
    return sums && tg_type_batch_axis(type_of(c, id)) < 0;
}

static bool is_scatter(const Cotangents *c, NodeId id) {
    return node_of(c, id)->op == OP_scatter_add && node_of(c, id)->operand_count == 2;
}

/* What scatters may add to: the first batch sum that is none itself, or else the first scatter. What is no batch sum is added once a step
   and stays apart. `count`: there is nothing. */
static uint32_t find_base(const Cotangents *c, const Parts *parts) {
    uint32_t first = parts->count;
    for (uint32_t i = 0; i < parts->count; i++) {
        if (!is_batch_sum(c, parts->at[i]))
            continue;
        if (!is_scatter(c, parts->at[i]))
            return i;
        first = i < first ? i : first;
    }
    return first;
}

static void add_in_place(const Cotangents *c, Parts *parts) {
    uint32_t base = find_base(c, parts), kept = 0, place = 0;
    if (base == parts->count)
        return;
    NodeId sum = parts->at[base];
    for (uint32_t i = 0; i < parts->count; i++) {
        NodeId part = parts->at[i];
        const Node *node = node_of(c, part);
        if (i != base && is_scatter(c, part) && is_batch_sum(c, part)) {
            NodeId operands[3] = {tg_operand(c->b->func, node, 0), tg_operand(c->b->func, node, 1), sum};
            sum = tg_build(c->b, OP_scatter_add, node->attr, operands, 3, node->type);
            continue;
        }
        if (i == base)
            place = kept;
        parts->at[kept++] = part;
    }
    parts->at[place] = sum;
    parts->count = kept;
}

NodeId tg_cotangent_sum(const Cotangents *c, Parts *parts) {
    if (parts->count == 0)
        return 0;
    NodeId whole = parts->count > 1 ? concatenate(c, parts) : 0;
    if (whole)
        return whole;
    merge_products(c, parts);
    add_in_place(c, parts);
    DType dtype = type_of(c, parts->at[0])->dtype;
    bool is_low = parts->count > 1 && tg_is_low(dtype);
    NodeId sum = is_low ? tg_convert(c->b, parts->at[0], DT_F32) : parts->at[0];
    for (uint32_t i = 1; i < parts->count; i++)
        sum = tg_binary(c->b, OP_add, sum, is_low ? tg_convert(c->b, parts->at[i], DT_F32) : parts->at[i]);
    return tg_convert(c->b, sum, dtype);
}
