/* Index maps: transpose, broadcast, slice, reverse, pad, concat. */
#include "ir/eval_rules.h"

static Ints list(const EvalCall *call, int i) { return call->node->attr->list[i]; }

/* result[c] = operand[base + c . step] */
static Status gather(EvalCall *call, const Extents *result, int64_t base, const int64_t *step) {
    eval_copy_strided(result, call->result->at, 0, result->stride, call->operands[0].at, base, step);
    return TG_OK;
}

Status eval_transpose(EvalCall *call) {
    Extents from = eval_extents(call, call->operands[0].type), to = eval_extents(call, call->node->type);
    int64_t step[TG_MAX_RANK];
    for (int i = 0; i < to.rank; i++)
        step[i] = from.stride[list(call, 0).at[i]];
    return gather(call, &to, 0, step);
}

Status eval_broadcast(EvalCall *call) {
    Extents from = eval_extents(call, call->operands[0].type), to = eval_extents(call, call->node->type);
    int64_t step[TG_MAX_RANK] = {0};
    Ints dims = list(call, 0);
    for (int i = 0; i < from.rank; i++)
        step[dims.at[i]] = from.at[i] == 1 ? 0 : from.stride[i];
    return gather(call, &to, 0, step);
}

Status eval_slice(EvalCall *call) {
    Extents from = eval_extents(call, call->operands[0].type), to = eval_extents(call, call->node->type);
    int64_t base = 0, step[TG_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        base += list(call, 0).at[i] * from.stride[i];
        step[i] = list(call, 2).at[i] * from.stride[i];
    }
    return gather(call, &to, base, step);
}

Status eval_reverse(EvalCall *call) {
    Extents extents = eval_extents(call, call->node->type);
    int64_t base = 0, step[TG_MAX_RANK];
    for (int i = 0; i < extents.rank; i++)
        step[i] = extents.stride[i];
    for (uint32_t i = 0; i < list(call, 0).count; i++) {
        int64_t axis = list(call, 0).at[i];
        base += (extents.at[axis] - 1) * extents.stride[axis];
        step[axis] = -extents.stride[axis];
    }
    return gather(call, &extents, base, step);
}

Status eval_pad(EvalCall *call) {
    Extents from = eval_extents(call, call->operands[0].type), to = eval_extents(call, call->node->type);
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = call->node->attr->number;
    int64_t base = 0, step[TG_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        base += list(call, 0).at[i] * to.stride[i];
        step[i] = (list(call, 2).at[i] + 1) * to.stride[i];
    }
    eval_copy_strided(&from, call->result->at, base, step, call->operands[0].at, 0, from.stride);
    return TG_OK;
}

Status eval_concat(EvalCall *call) {
    Extents to = eval_extents(call, call->node->type);
    int64_t axis = eval_int(call, 0, 0), start = 0;
    for (uint32_t k = 0; k < call->node->operand_count; k++) {
        Extents from = eval_extents(call, call->operands[k].type);
        eval_copy_strided(&from, call->result->at, start * to.stride[axis], to.stride, call->operands[k].at, 0,
                          from.stride);
        start += from.at[axis];
    }
    return TG_OK;
}
