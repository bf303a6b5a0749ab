/* layout: an operand of a dot whose axes no stride walks is transposed first, to [batch, free, contracted]. A pass of its
   own, so that fusion sees the transpose as any other value. */
#include "passes/passes.h"
#include "passes/rewrite.h"

#include "ir/dot.h"

static Ints run_of(Arena *arena, int64_t first, uint32_t count) {
    int64_t *at = TG_ALLOC(arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        at[i] = first + i;
    return (Ints){at, count};
}

static NodeId regular_dot(void *pass_context, const Copy *copy, NodeId id, const NodeId *operands) {
    PassContext *context = pass_context;
    Arena *arena = context->arena;
    const Node *node = tg_node(copy->from, id);
    DotGeometry geometry;
    int irregular = node->op == OP_dot ? tg_dot_geometry(copy->graph, copy->from, node, NULL, copy->graph->training.micro, &geometry) : 0;
    if (irregular == 0 || !tg_needed_rewrite(context, "transpose_of_operand", node->locs))
        return 0;
    Attr attr = *node->attr;
    NodeId inputs[3] = {operands[0], operands[1], node->operand_count == 3 ? operands[2] : 0};
    for (uint32_t side = 0; side < 2; side++) {
        if (!(irregular & 1 << side))
            continue;
        const Type *type = tg_node_type(copy->graph, copy->from, tg_operand(copy->from, node, side));
        Ints batch = node->attr->list[side], contract = node->attr->list[2 + side];
        int64_t perm[TG_MAX_RANK], free_axes[TG_MAX_RANK];
        uint32_t free_count = tg_free_axes(type, batch, contract, free_axes), rank = 0;
        for (uint32_t i = 0; i < batch.count; i++)
            perm[rank++] = batch.at[i];
        for (uint32_t i = 0; i < free_count; i++)
            perm[rank++] = free_axes[i];
        for (uint32_t i = 0; i < contract.count; i++)
            perm[rank++] = contract.at[i];
        inputs[side] = tg_transpose(copy->b, inputs[side], perm, rank);
        attr.list[side] = run_of(arena, 0, batch.count);
        attr.list[2 + side] = run_of(arena, batch.count + free_count, contract.count);
    }
    return tg_build(copy->b, OP_dot, &attr, inputs, node->operand_count, node->type);
}

Status run_layout(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(tg_copy_replacing(context, in, in->funcs.at[f], *out, regular_dot, context));
    return TG_OK;
}
