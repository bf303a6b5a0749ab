/* simplify: rewrites that keep every value's bits, and no node that no result needs. clean: the same at graph@step.

   dot(transpose(x), y)       -> dot(x, y) over the axes of x, where the free axes keep their order
   transpose(dot(x, y))       -> dot(y, x), where the transpose only swaps the free axes of x with those of y */
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct Rewriter {
    PassContext *context;
    Copy copy;
    Arena *arena;
} Rewriter;

/* The copy of a rewritten node, or 0: no rule fires. `operands` are already copies in b->func. */
typedef NodeId Rewrite(Rewriter *r, const Node *node, const NodeId *operands);

static const Node *made(const Rewriter *r, NodeId id) { return tg_node(r->copy.b->func, id); }

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

static NodeId dot_of_transpose(Rewriter *r, const Node *node, const NodeId *operands) {
    Attr attr = *node->attr;
    NodeId inputs[3] = {operands[0], operands[1], node->operand_count == 3 ? operands[2] : 0};
    bool fired = false;
    for (int side = 0; side < 2; side++) {
        const Node *input = made(r, inputs[side]);
        if (input->op != OP_transpose)
            continue;
        Ints perm = input->attr->list[0];
        Ints *batch = &attr.list[side], *contract = &attr.list[2 + side];
        if (!free_axes_ascend(perm, *batch, *contract) || !tg_rewrite(r->context, "dot_of_transpose", node->locs))
            continue;
        *batch = mapped(r->arena, *batch, perm);
        *contract = mapped(r->arena, *contract, perm);
        inputs[side] = tg_operand(r->copy.b->func, input, 0);
        fired = true;
    }
    return fired ? tg_build(r->copy.b, OP_dot, &attr, inputs, node->operand_count, node->type) : 0;
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

static NodeId transpose_of_dot(Rewriter *r, const Node *node, const NodeId *operands) {
    const Node *dot = made(r, operands[0]);
    if (dot->op != OP_dot || dot->operand_count != 2)
        return 0;
    const Func *func = r->copy.b->func;
    const Graph *graph = r->copy.b->graph;
    NodeId x = tg_operand(func, dot, 0), y = tg_operand(func, dot, 1);
    const Attr *old = dot->attr;
    uint32_t batch = old->list[0].count, contract = old->list[2].count;
    uint32_t free_x = tg_node_type(graph, func, x)->rank - batch - contract;
    uint32_t free_y = tg_node_type(graph, func, y)->rank - batch - contract;
    if (!swaps_free_blocks(node->attr->list[0], batch, free_x, free_y) ||
        !tg_rewrite(r->context, "transpose_of_dot", node->locs))
        return 0;
    Attr attr = *old;
    attr.list[0] = old->list[1];
    attr.list[1] = old->list[0];
    attr.list[2] = old->list[3];
    attr.list[3] = old->list[2];
    return tg_build(r->copy.b, OP_dot, &attr, (NodeId[]){y, x}, 2, node->type);
}

static Rewrite *rule_of(uint16_t op) {
    switch (op) {
    case OP_dot: return dot_of_transpose;
    case OP_transpose: return transpose_of_dot;
    default: return NULL;
    }
}

static Status simplify_func(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Func *func = tg_func_new(out, from->kind, from->name);
    func->args = from->args;
    Builder b = tg_builder(out, func, context->fold);
    Rewriter r = {.context = context, .copy = tg_copy(context->arena, &b, in, from), .arena = context->arena};
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&r.copy, from->results.at[i].node);
    for (NodeId id = from->nodes.count - 1; id > 0; id--)
        if (r.copy.needed[id])
            for (uint32_t i = 0; i < tg_node(from, id)->operand_count; i++)
                tg_copy_need(&r.copy, tg_operand(from, tg_node(from, id), i));
    NodeId *operands = TG_ALLOC(context->arena, NodeId, from->operands.count + 1);
    uint64_t dead = 0;
    for (NodeId id = 1; id < from->nodes.count; id++) {
        dead += !r.copy.needed[id];
        if (!r.copy.needed[id])
            continue;
        const Node *node = tg_node(from, id);
        tg_copy_operands(&r.copy, node, operands);
        Rewrite *rule = context->fold ? rule_of(node->op) : NULL;
        b.locs = node->locs;
        NodeId rewritten = rule ? rule(&r, node, operands) : 0;
        r.copy.map[id] = rewritten ? rewritten : tg_build_like(&b, in, from, id, operands);
    }
    tg_copy_results(&r.copy);
    tg_counted(context, "dead", dead);
    return tg_builder_status(&b, context->diags);
}

Status run_simplify(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(simplify_func(context, in, in->funcs.at[f], *out));
    return TG_OK;
}

Status run_clean(PassContext *context, const Graph *in, Graph **out) { return run_simplify(context, in, out); }
