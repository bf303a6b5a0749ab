#include "passes/split.h"

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
