/* simplify: rewrites that keep every value's bits, and no node that no result needs. clean: the same at graph@step.

   dot(transpose(x), y)       -> dot(x, y) over the axes of x, where the free axes keep their order
   transpose(dot(x, y))       -> dot(y, x), where the transpose only swaps the free axes of x with those of y
   concat(slice(x) ...)       -> x or one slice of it, where the slices lie one behind the other along the concatenated axis */
#include "passes/passes.h"
#include "passes/rewrite.h"

/* The copy of a rewritten node, or 0: no rule fires. `operands` are already copies in b->func. */
typedef NodeId Rewrite(PassContext *context, Builder *b, const Node *node, const NodeId *operands);

static bool contains(Ints list, int64_t value) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] == value)
            return true;
    return false;
}

static Ints mapped(Arena *arena, Ints list, Ints perm) {
    int64_t *at = TG_ALLOC(arena, int64_t, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        at[i] = perm.at[list.at[i]];
    return (Ints){at, list.count};
}

/* The free axes of a transposed operand, seen on what it transposes, still ascend. */
static bool free_axes_ascend(Ints perm, Ints batch, Ints contract) {
    int64_t last = -1;
    for (int64_t axis = 0; axis < (int64_t)perm.count; axis++) {
        if (contains(batch, axis) || contains(contract, axis))
            continue;
        if (perm.at[axis] < last)
            return false;
        last = perm.at[axis];
    }
    return true;
}

static NodeId dot_of_transpose(PassContext *context, Builder *b, const Node *node, const NodeId *operands) {
    Attr attr = *node->attr;
    NodeId inputs[3] = {operands[0], operands[1], node->operand_count == 3 ? operands[2] : 0};
    bool fired = false;
    for (int side = 0; side < 2; side++) {
        const Node *input = tg_node(b->func, inputs[side]);
        if (input->op != OP_transpose)
            continue;
        Ints perm = input->attr->list[0];
        Ints *batch = &attr.list[side], *contract = &attr.list[2 + side];
        if (!free_axes_ascend(perm, *batch, *contract) || !tg_rewrite(context, "dot_of_transpose", node->locs))
            continue;
        *batch = mapped(context->arena, *batch, perm);
        *contract = mapped(context->arena, *contract, perm);
        inputs[side] = tg_operand(b->func, input, 0);
        fired = true;
    }
    return fired ? tg_build(b, OP_dot, &attr, inputs, node->operand_count, node->type) : 0;
}

/* perm keeps the batch axes in front and swaps the two blocks of free axes behind them. */
static bool swaps_free_blocks(Ints perm, uint32_t batch, uint32_t free_x, uint32_t free_y) {
    for (uint32_t i = 0; i < perm.count; i++) {
        uint32_t from = i < batch ? i : i < batch + free_y ? i + free_x : i - free_y;
        if (perm.at[i] != (int64_t)from)
            return false;
    }
    return true;
}

static NodeId transpose_of_dot(PassContext *context, Builder *b, const Node *node, const NodeId *operands) {
    const Node *dot = tg_node(b->func, operands[0]);
    if (dot->op != OP_dot || dot->operand_count != 2)
        return 0;
    const Func *func = b->func;
    const Graph *graph = b->graph;
    NodeId x = tg_operand(func, dot, 0), y = tg_operand(func, dot, 1);
    const Attr *old = dot->attr;
    uint32_t batch = old->list[0].count, contract = old->list[2].count;
    uint32_t free_x = tg_node_type(graph, func, x)->rank - batch - contract;
    uint32_t free_y = tg_node_type(graph, func, y)->rank - batch - contract;
    if (!swaps_free_blocks(node->attr->list[0], batch, free_x, free_y) ||
        !tg_rewrite(context, "transpose_of_dot", node->locs))
        return 0;
    Attr attr = *old;
    attr.list[0] = old->list[1];
    attr.list[1] = old->list[0];
    attr.list[2] = old->list[3];
    attr.list[3] = old->list[2];
    return tg_build(b, OP_dot, &attr, (NodeId[]){y, x}, 2, node->type);
}

/* `node` is a slice of axis `axis` alone, without gaps. */
static bool cuts_axis(const Builder *b, const Node *node, int64_t axis) {
    if (node->op != OP_slice)
        return false;
    const Type *from = tg_node_type(b->graph, b->func, tg_operand(b->func, node, 0));
    for (int64_t i = 0; i < from->rank; i++) {
        const Ints *list = node->attr->list;
        if (list[2].at[i] != 1 || (i != axis && (list[0].at[i] != 0 || list[1].at[i] != from->dims[i].size)))
            return false;
    }
    return true;
}

static NodeId concat_of_slices(PassContext *context, Builder *b, const Node *node, const NodeId *operands) {
    int64_t axis = node->attr->list[0].at[0];
    const Node *first = tg_node(b->func, operands[0]);
    if (!cuts_axis(b, first, axis))
        return 0;
    NodeId whole = tg_operand(b->func, first, 0);
    int64_t end = first->attr->list[0].at[axis];
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const Node *piece = tg_node(b->func, operands[i]);
        if (!cuts_axis(b, piece, axis) || tg_operand(b->func, piece, 0) != whole || piece->attr->list[0].at[axis] != end)
            return 0;
        end = piece->attr->list[1].at[axis];
    }
    if (!tg_rewrite(context, "concat_of_slices", node->locs))
        return 0;
    Attr attr = *first->attr;
    int64_t limit[TG_MAX_RANK];
    for (uint32_t i = 0; i < attr.list[1].count; i++)
        limit[i] = i == axis ? end : attr.list[1].at[i];
    attr.list[1].at = limit;
    return tg_build(b, OP_slice, &attr, &whole, 1, 0); /* all of it: `whole` */
}

static Rewrite *rule_of(uint16_t op) {
    switch (op) {
    case OP_dot: return dot_of_transpose;
    case OP_transpose: return transpose_of_dot;
    case OP_concat: return concat_of_slices;
    default: return NULL;
    }
}

static NodeId simplified(void *pass_context, const Copy *copy, NodeId id, const NodeId *operands) {
    PassContext *context = pass_context;
    const Node *node = tg_node(copy->from, id);
    Rewrite *rule = context->fold ? rule_of(node->op) : NULL;
    return rule ? rule(context, copy->b, node, operands) : 0;
}

static uint64_t dead_nodes(const Copy *copy) {
    uint64_t dead = 0;
    for (NodeId id = 1; id < copy->from->nodes.count; id++)
        dead += !copy->needed[id];
    return dead;
}

static Status simplify_func(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Builder b = tg_pass_builder(context, out, tg_func_new(out, from->kind, from->name));
    b.func->args = from->args;
    Copy copy = tg_copy(context->arena, &b, in, from);
    copy.replace = simplified;
    copy.context = context;
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    tg_pass_map(context, from, b.func, copy.map);
    tg_counted(context, "dead", dead_nodes(&copy));
    return tg_builder_status(&b, context->diags);
}

Status run_simplify(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(simplify_func(context, in, in->funcs.at[f], *out));
    return TG_OK;
}

Status run_clean(PassContext *context, const Graph *in, Graph **out) { return run_simplify(context, in, out); }
