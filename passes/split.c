#include "passes/split.h"

#include "ir/dot.h"
#include "passes/copy.h"

static NodeId with_list(Builder *b, const Node *node, const NodeId *operands, int list, int64_t split) {
    Attr attr = *node->attr;
    attr.list[list] = (Ints){&split, 1};
    return tg_build(b, node->op, &attr, operands, node->operand_count, node->type);
}

/* bool, of the updates' shape: do the rows lie in run `lane` of `split`? */
static NodeId rows_of_lane(Builder *b, TypeId updates, int64_t lane, int64_t split) {
    Type type = *tg_type_of(&b->graph->types, updates);
    int64_t axis = tg_type_batch_axis(&type), run = b->graph->training.micro / split * type.dims[axis].size;
    type.dtype = DT_I64;
    type.scaled = false;
    TypeId position = tg_type(&b->graph->types, &type);
    NodeId at = tg_iota(b, position, axis);
    NodeId begun = tg_binary(b, OP_ge, at, tg_const(b, position, (double)(lane * run)));
    NodeId open = tg_binary(b, OP_lt, at, tg_const(b, position, (double)((lane + 1) * run)));
    return tg_binary(b, OP_and, begun, open);
}

/* A run's rows alone: the others add +0, which changes no sum that began with +0. */
static NodeId scatter_of_lane(Builder *b, const Node *node, const NodeId *operands, int64_t lane, int64_t split) {
    TypeId updates = tg_node(b->func, operands[1])->type;
    NodeId mine = tg_select(b, rows_of_lane(b, updates, lane, split), operands[1], tg_const(b, updates, 0));
    return tg_build(b, OP_scatter_add, node->attr, (NodeId[]){operands[0], mine}, 2, node->type);
}

static NodeId scatter_tree(Builder *b, const Node *node, const NodeId *operands, int64_t first, int64_t count, int64_t split) {
    if (count == 1)
        return scatter_of_lane(b, node, operands, first, split);
    int64_t half = 1;
    while (2 * half < count)
        half *= 2;
    NodeId left = scatter_tree(b, node, operands, first, half, split);
    return tg_binary(b, OP_add, left, scatter_tree(b, node, operands, first + half, count - half, split));
}

NodeId tg_split_sum(Builder *b, const Graph *graph, const Func *from, NodeId id, const NodeId *operands, int64_t split) {
    const Node *node = tg_node(from, id);
    if (split > 1 && node->op == OP_dot)
        return with_list(b, node, operands, 4, split);
    if (split > 1 && node->op == OP_scatter_add)
        return scatter_tree(b, node, operands, 0, split, split);
    if (split > 1 && tg_op((Op)node->op)->fuse == FUSE_reduce && node->op != OP_argmax)
        return with_list(b, node, operands, 1, split);
    return tg_build_like(b, graph, from, id, operands);
}

static bool is_over_rows(const Graph *graph, const Func *func, const Node *node) {
    return node->op == OP_dot && tg_type_batch_axis(tg_type_of(&graph->types, node->type)) < 0 &&
           tg_type_batch_axis(tg_node_type(graph, func, tg_operand(func, node, 0))) >= 0;
}

/* What a dot over rows adds to may be a sum over them too, which then is one with it. */
static bool is_one_sum(const Graph *graph, const Func *func, const Node *node) {
    while (node->operand_count == 3 && tg_dot_adds(graph, func, node)) {
        node = tg_node(func, tg_operand(func, node, 2));
        if (!is_over_rows(graph, func, node))
            return false;
    }
    return node->operand_count < 3;
}

static bool is_biased_sum(const Graph *graph, const Func *func, NodeId id) {
    const Node *node = tg_node(func, id);
    return is_over_rows(graph, func, node) && !is_one_sum(graph, func, node);
}

static bool has_biased_sum(const Graph *graph, const Func *func) {
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (is_biased_sum(graph, func, id))
            return true;
    return false;
}

static NodeId bias_behind(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)context;
    if (!is_biased_sum(copy->graph, copy->from, id))
        return 0;
    Builder *b = copy->b;
    const Node *node = tg_node(copy->from, id);
    NodeId sum = tg_build(b, OP_dot, node->attr, operands, 2, node->type);
    NodeId bias = tg_convert(b, operands[2], tg_node_type(copy->graph, copy->from, id)->dtype);
    return tg_binary(b, OP_add, sum, tg_broadcast_like(b, bias, node->type));
}

/* Not a rewrite to be asked for or shown: without it sums over micro-batches are wrong. */
static Status copy_func(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Builder b = tg_builder(out, tg_func_new(out, from->kind, from->name), context->fold);
    b.func->args = from->args;
    Copy copy = tg_copy(context->arena, &b, in, from);
    copy.replace = from->kind == FUNC_EXPORT ? NULL : bias_behind;
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    return tg_builder_status(&b, context->diags);
}

Status tg_split_bias(PassContext *context, const Graph *in, const Graph **out) {
    bool any = false;
    for (uint32_t f = 0; f < in->funcs.count; f++)
        any |= in->funcs.at[f]->kind != FUNC_EXPORT && has_biased_sum(in, in->funcs.at[f]);
    *out = in;
    if (!any)
        return TG_OK;
    Graph *copy = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(copy_func(context, in, in->funcs.at[f], copy));
    *out = copy;
    return TG_OK;
}
