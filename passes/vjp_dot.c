/* Gradients of contractions: each is a contraction of the cotangent with the other operand, and where its axes come out
   in another order than the operand's, a transpose that the strides of the library call absorb. */
#include "passes/vjp_rules.h"

#include "ir/dot.h"

/* One operand's view of the contraction. Pair i of batch or contract axes is batch.at[i] here and at[i] in the other.
 */
typedef struct Side {
    Ints batch, contract;
    int64_t free[TG_MAX_RANK];
    uint32_t free_count;
    int64_t first_free; /* axis of the result that holds free[0] */
} Side;

static bool has(Ints list, int64_t value) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] == value)
            return true;
    return false;
}

static Side side_of(Vjp *v, NodeId operand, Ints batch, Ints contract, int64_t first_free) {
    Side side = {.batch = batch, .contract = contract, .first_free = first_free};
    int rank = grad_type(v, operand).rank;
    for (int i = 0; i < rank; i++)
        if (!has(batch, i) && !has(contract, i))
            side.free[side.free_count++] = i;
    return side;
}

/* The operand's axes that the other operand's contracted axes pair with, in the order in which they come out free:
   ascending in the other operand. */
static void contracted_in_order(const Side *side, const Side *other, int64_t out[TG_MAX_RANK]) {
    uint32_t count = 0;
    for (int64_t axis = 0; axis < TG_MAX_RANK; axis++)
        for (uint32_t i = 0; i < other->contract.count; i++)
            if (other->contract.at[i] == axis)
                out[count++] = side->contract.at[i];
}

/* perm[i] is the place, in [batch, first, second], of axis i of the operand. Says whether they are in order. */
static bool order_of(const Side *side, const int64_t *first, uint32_t first_count, const int64_t *second,
                     uint32_t second_count, int64_t perm[TG_MAX_RANK]) {
    int64_t place = 0;
    for (uint32_t i = 0; i < side->batch.count; i++)
        perm[side->batch.at[i]] = place++;
    for (uint32_t i = 0; i < first_count; i++)
        perm[first[i]] = place++;
    for (uint32_t i = 0; i < second_count; i++)
        perm[second[i]] = place++;
    for (int64_t i = 0; i < place; i++)
        if (perm[i] != i)
            return false;
    return true;
}

static NodeId product(Vjp *v, bool in_f32, NodeId x, NodeId y, Ints batch_x, Ints batch_y, Ints contract_x, Ints contract_y) {
    Attr attr = {.list = {batch_x, batch_y, contract_x, contract_y}};
    Type type = {.dtype = in_f32 ? DT_F32 : grad_type(v, x).dtype};
    return tg_build(v->b, OP_dot, &attr, (NodeId[]){x, y}, 2, tg_type(&v->b->graph->types, &type));
}

/* The gradient of the operand `side` from the cotangent and `other_node`, whose free axes are contracted away. */
static NodeId dot_gradient(Vjp *v, bool in_f32, const Side *side, const Side *other, NodeId other_node) {
    int64_t batch[TG_MAX_RANK], contract[TG_MAX_RANK], back[TG_MAX_RANK], perm[TG_MAX_RANK];
    for (uint32_t i = 0; i < side->batch.count; i++)
        batch[i] = i;
    for (uint32_t i = 0; i < other->free_count; i++)
        contract[i] = other->first_free + i;
    contracted_in_order(side, other, back);
    Ints result_batch = {batch, side->batch.count}, result_contract = {contract, other->free_count};
    Ints other_contract = {other->free, other->free_count};
    uint32_t rank = side->batch.count + side->free_count + side->contract.count;
    if (order_of(side, back, side->contract.count, side->free, side->free_count, perm))
        return product(v, in_f32, other_node, v->cotangent, other->batch, result_batch, other_contract, result_contract);
    bool ordered = order_of(side, side->free, side->free_count, back, side->contract.count, perm);
    NodeId x = product(v, in_f32, v->cotangent, other_node, result_batch, other->batch, result_contract, other_contract);
    return ordered ? x : tg_transpose(v->b, x, perm, rank);
}

void vjp_dot(Vjp *v) {
    const Attr *attr = grad_attr(v);
    uint32_t batch_count = attr->list[0].count;
    Side a = side_of(v, v->operand[0], attr->list[0], attr->list[2], batch_count);
    Side b = side_of(v, v->operand[1], attr->list[1], attr->list[3], batch_count + a.free_count);
    if (v->wanted[0])
        v->grad[0] = dot_gradient(v, v->in_f32[0], &a, &b, v->operand[1]);
    if (v->wanted[1])
        v->grad[1] = dot_gradient(v, v->in_f32[1], &b, &a, v->operand[0]);
    const Node *node = tg_node(v->b->func, v->node);
    if (tg_dot_adds(v->b->graph, v->b->func, node)) {
        v->grad[2] = v->cotangent;
    } else if (node->operand_count == 3 && v->wanted[2]) {
        bool reduced[TG_MAX_RANK] = {false};
        for (uint32_t i = 0; i < batch_count + a.free_count; i++)
            reduced[i] = true;
        v->grad[2] = grad_sum(v, tg_convert(v->b, v->cotangent, grad_type(v, v->operand[2]).dtype), reduced);
    }
}

void vjp_attention(Vjp *v) {
    static const Op gradients[3] = {OP_attention_dq, OP_attention_dk, OP_attention_dv};
    uint32_t count = tg_node(v->b->func, v->node)->operand_count;
    DType dtype = grad_type(v, v->operand[0]).dtype;
    NodeId cotangent = grad_type(v, v->cotangent).dtype == dtype ? v->cotangent : tg_convert(v->b, v->cotangent, dtype);
    NodeId operands[5] = {v->operand[0], v->operand[1], v->operand[2], cotangent};
    if (count == 4)
        operands[4] = v->operand[3];
    for (int i = 0; i < 3; i++)
        if (v->wanted[i])
            v->grad[i] = tg_build(v->b, gradients[i], grad_attr(v), operands, count + 1, 0);
}
