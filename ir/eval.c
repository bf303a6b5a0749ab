#include "ir/eval_rules.h"

#include <math.h>
#include <string.h>

static EvalRule *const rules[OP_COUNT] = {
#define OP(name, min, max, levels, attrs, shape, eval, ...) [OP_##name] = eval_##eval,
#include "ir/ops.def"
#undef OP
};

Status eval_fail(EvalCall *call, const char *what) {
    if (call->diags) {
        Loc loc = call->graph ? tg_locs_first(call->graph, call->node->locs) : (Loc){0};
        tg_error(call->diags, loc, "internal error: evaluator: %s: %s", tg_op((Op)call->node->op)->name, what);
    }
    return TG_INTERNAL;
}

Extents eval_extents(const EvalCall *call, TypeId id) {
    const Type *type = eval_type(call, id);
    Extents extents = {.rank = type->rank};
    int64_t stride = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        extents.at[i] = type->dims[i].size * (type->dims[i].batch ? call->state->rows : 1);
        extents.stride[i] = stride;
        stride *= extents.at[i];
    }
    return extents;
}

Around eval_around(const Extents *extents, int64_t axis) {
    Around around = {1, extents->at[axis], 1};
    for (int64_t i = 0; i < axis; i++)
        around.outer *= extents->at[i];
    for (int64_t i = axis + 1; i < extents->rank; i++)
        around.inner *= extents->at[i];
    return around;
}

void eval_copy_strided(const Extents *extents, double *to, int64_t to_base, const int64_t *to_step, const double *from,
                       int64_t from_base, const int64_t *from_step) {
    int64_t place[TG_MAX_RANK] = {0};
    for (int i = 0; i < extents->rank; i++)
        if (extents->at[i] == 0)
            return;
    for (;;) {
        to[to_base] = from[from_base];
        int axis = extents->rank - 1;
        for (; axis >= 0; axis--) {
            to_base += to_step[axis];
            from_base += from_step[axis];
            if (++place[axis] < extents->at[axis])
                break;
            to_base -= to_step[axis] * extents->at[axis];
            from_base -= from_step[axis] * extents->at[axis];
            place[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* The low bits of an integer, as machines keep them; what is no integer (x / 0) is 0. */
static double wrapped(DType dtype, double value) {
    if (!isfinite(value))
        return 0.0;
    value = trunc(value) + 0.0; /* no -0 */
    int bits = tg_dtype(dtype)->bytes * 8;
    if (bits == 64)
        return value;
    double span = ldexp(1.0, bits);
    bool is_signed = tg_dtype(dtype)->kind == KIND_SIGNED;
    double low = is_signed ? -span / 2 : 0.0;
    if (value >= low && value < low + span)
        return value;
    value = fmod(value, span) + 0.0;
    if (value < low)
        value += span;
    return value >= low + span ? value - span : value;
}

/* Results become values of their type: integers always, floats in typed mode. */
static void settle(EvalMode mode, DType dtype, Tensor *result) {
    if (tg_is_integer(dtype)) {
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = wrapped(dtype, result->at[i]);
    } else if (mode == EVAL_TYPED && dtype == DT_F32) {
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = (float)result->at[i];
    } else if (mode == EVAL_TYPED && dtype != DT_F64 && dtype != DT_BOOL) {
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = tg_round_to(dtype, result->at[i]);
    }
}

static Status evaluate(EvalCall *call) {
    const Type *type = eval_type(call, call->node->type);
    int64_t count = tg_type_count(type, call->state->rows);
    if (count < 0)
        return eval_fail(call, "too many elements");
    *call->result = (Tensor){call->node->type, count, TG_ALLOC(call->state->arena, double, count + 1)};
    TG_TRY(rules[call->node->op](call));
    settle(call->state->mode, type->dtype, call->result);
    return TG_OK;
}

Status tg_eval_node(EvalState *state, const Graph *graph, const Func *func, NodeId node, const Tensor *operands,
                    Tensor *result) {
    EvalCall call = {state, graph, func, tg_node(func, node), operands, result, NULL, NULL};
    return evaluate(&call);
}

/* Nodes that a result needs. */
static bool *live_nodes(Arena *arena, const Func *func) {
    bool *live = TG_ALLOC(arena, bool, func->nodes.count + 1);
    for (uint32_t i = 0; i < func->results.count; i++)
        live[func->results.at[i].node] = true;
    for (NodeId id = func->nodes.count; id-- > 1;) {
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; live[id] && i < node->operand_count; i++)
            live[tg_operand(func, node, i)] = true;
    }
    return live;
}

Status tg_eval_func(EvalState *state, const Graph *graph, const Func *func, Diags *diags, Tensor *results) {
    bool *live = live_nodes(state->arena, func);
    Tensor *values = TG_ALLOC(state->arena, Tensor, func->nodes.count + 1);
    Tensor **outputs = TG_ALLOC(state->arena, Tensor *, func->nodes.count + 1);
    uint32_t most = 1;
    for (NodeId id = 1; id < func->nodes.count; id++)
        most = tg_node(func, id)->operand_count > most ? tg_node(func, id)->operand_count : most;
    Tensor *operands = TG_ALLOC(state->arena, Tensor, most);
    for (NodeId id = 1; id < func->nodes.count; id++) {
        if (!live[id])
            continue;
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = values[tg_operand(func, node, i)];
        EvalCall call = {state, graph, func, node, operands, &values[id], NULL, diags};
        if (node->op == OP_result)
            call.outputs = outputs[tg_operand(func, node, 0)];
        TG_TRY(evaluate(&call));
        outputs[id] = call.outputs;
    }
    for (uint32_t i = 0; i < func->results.count; i++)
        results[i] = values[func->results.at[i].node];
    return TG_OK;
}

Status eval_call(EvalCall *call) {
    const Func *kernel = call->graph->funcs.at[call->node->attr->ref];
    call->outputs = TG_ALLOC(call->state->arena, Tensor, kernel->results.count + 1);
    EvalState inner = *call->state;
    /* A copy: `operands` is the caller's scratch. */
    inner.args = tg_arena_copy(call->state->arena, call->operands, call->node->operand_count * sizeof(Tensor));
    return tg_eval_func(&inner, call->graph, kernel, call->diags, call->outputs);
}

Status eval_result(EvalCall *call) {
    if (!call->outputs)
        return eval_fail(call, "not the result of a call");
    *call->result = call->outputs[eval_int(call, 0, 0)];
    return TG_OK;
}
