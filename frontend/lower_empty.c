/* When a loss is over nothing: no record of the batch counts in it, though its value, 0, is as good as any. What stands
   behind an `over(sum, count)` is empty where its count is 0; a sum is empty where all its terms are, terms of
   parameters alone aside; scaling changes nothing; anything else that reads the batch is never empty. */
#include "frontend/value.h"

#include <string.h>

/* Per node: whether it depends on the batch; the bool that says it is over nothing, 0 where it never is. */
typedef struct Empty {
    Lower *l;
    const Func *func;
    bool *reads;
    NodeId *when;
} Empty;

static NodeId joined(Empty *e, Op op, NodeId x, NodeId y) { return tg_binary(lower_builder(e->l), op, x, y); }

static NodeId count_is_zero(Empty *e, NodeId count) {
    Builder *b = lower_builder(e->l);
    return joined(e, OP_eq, count, tg_const(b, tg_node(e->func, count)->type, 0));
}

static NodeId empty_sum(Empty *e, NodeId x, NodeId y) {
    if (!e->reads[x] || !e->reads[y])
        return e->when[e->reads[x] ? x : y];
    return e->when[x] && e->when[y] ? joined(e, OP_and, e->when[x], e->when[y]) : 0;
}

static NodeId empty_product(Empty *e, NodeId x, NodeId y) {
    return e->when[x] && e->when[y] ? joined(e, OP_or, e->when[x], e->when[y]) : e->when[x] + e->when[y];
}

static NodeId empty_node(Empty *e, NodeId id) {
    const Node *node = tg_node(e->func, id);
    NodeId x = node->operand_count > 0 ? tg_operand(e->func, node, 0) : 0;
    NodeId y = node->operand_count > 1 ? tg_operand(e->func, node, 1) : 0;
    if (node->op == OP_add || node->op == OP_sub)
        return empty_sum(e, x, y);
    if (node->op == OP_mul)
        return empty_product(e, x, y);
    return node->op == OP_div || node->op == OP_neg || node->op == OP_convert ? e->when[x] : 0;
}

void lower_empty_loss(Lower *l) {
    const Func *func = l->func->func;
    NodeId loss = 0;
    for (uint32_t i = 0; i < func->results.count; i++)
        if (func->results.at[i].kind == RESULT_VALUE && strcmp(func->results.at[i].name, "loss") == 0)
            loss = func->results.at[i].node;
    if (!loss || !l->func->overs.count)
        return;
    Empty e = {l, func, TG_ALLOC(l->arena, bool, loss + 1), TG_ALLOC(l->arena, NodeId, loss + 1)};
    lower_builder(l)->locs = tg_node(func, loss)->locs;
    for (NodeId id = 1; id <= loss; id++) {
        e.reads[id] = tg_node(func, id)->op == OP_arg || tg_node(func, id)->op == OP_random;
        for (uint32_t i = 0; i < tg_node(func, id)->operand_count; i++)
            e.reads[id] |= e.reads[tg_operand(func, tg_node(func, id), i)];
        e.when[id] = empty_node(&e, id);
        for (uint32_t i = 0; i < l->func->overs.count; i++)
            if (l->func->overs.at[i].mean == id)
                e.when[id] = count_is_zero(&e, l->func->overs.at[i].count);
    }
    if (e.when[loss])
        tg_result_value(lower_builder(l), TG_EMPTY_LOSS, e.when[loss]);
}
