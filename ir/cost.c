#include "ir/cost.h"

#include "ir/axes.h"

/* Operations for each point that an op runs over (tg_axes_points), by the cost column. */
enum {
    COST_free = 0,
    COST_one = 1,
    COST_root = 4,      /* division and square root: as long as so many additions */
    COST_maths = 20,    /* the degree of the polynomials */
    COST_random = 60,   /* ten rounds of Philox */
    COST_dot = 2,       /* multiply, add */
    COST_attention = 4, /* scores and values: two dots */
    COST_call = 0,      /* its kernel's */
    COST_scatter = 255, /* one for each element of the rows that are added */
};

static double kernel_flops(const Graph *graph, const Func *kernel, int64_t rows) {
    double flops = 0;
    for (NodeId id = 1; id < kernel->nodes.count; id++)
        flops += tg_node_flops(graph, kernel, id, rows);
    return flops;
}

double tg_node_flops(const Graph *graph, const Func *func, NodeId id, int64_t rows) {
    static const uint8_t costs[] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, ...) COST_##cost,
#include "ir/ops.def"
#undef OP
    };
    const Node *node = tg_node(func, id);
    if (node->op == OP_call)
        return kernel_flops(graph, graph->funcs.at[node->attr->ref], rows);
    if (costs[node->op] == COST_scatter)
        return (double)tg_type_count(tg_node_type(graph, func, tg_operand(func, node, 1)), rows);
    if (costs[node->op] == 0)
        return 0;
    return costs[node->op] * tg_axes_points(tg_node_axes(graph->arena, graph, func, id), rows);
}

static double value_bytes(const Graph *graph, const Func *func, NodeId id, int64_t rows) {
    const Type *type = tg_node_type(graph, func, id);
    return (double)tg_type_count(type, rows) * tg_dtype(type->dtype)->bytes;
}

double tg_node_bytes(const Graph *graph, const Func *func, NodeId id, int64_t rows) {
    const Node *node = tg_node(func, id);
    if (tg_op((Op)node->op)->fuse == FUSE_leaf || node->op == OP_result)
        return 0;
    double bytes = node->type ? value_bytes(graph, func, id, rows) : 0;
    for (uint32_t i = 0; i < node->operand_count; i++)
        bytes += value_bytes(graph, func, tg_operand(func, node, i), rows);
    if (node->op != OP_call)
        return bytes;
    const Func *kernel = graph->funcs.at[node->attr->ref];
    for (uint32_t i = 0; i < kernel->results.count; i++)
        bytes += value_bytes(graph, kernel, kernel->results.at[i].node, rows);
    return bytes;
}
