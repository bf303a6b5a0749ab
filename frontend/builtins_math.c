/* Builtins that compute: element by element, reductions, contractions. */
#include "frontend/value.h"

#include <string.h>

Value builtin_cast(Lower *l, Env *env, const Ast *call, Value *arguments, int dtype) {
    (void)env;
    return lower_cast(l, call, arguments[0], (DType)dtype);
}

Value builtin_unary(Lower *l, Env *env, const Ast *call, Value *arguments, int op) {
    (void)env;
    return lower_unary(l, call, (Op)op, arguments[0]);
}

Value builtin_binary(Lower *l, Env *env, const Ast *call, Value *arguments, int op) {
    (void)env;
    if (op == OP_pow)
        return lower_power(l, call, arguments[0], arguments[1]);
    return lower_binary(l, call, (Op)op, arguments[0], arguments[1]);
}

/* ---- select ---- */

Value builtin_select(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value condition = arguments[0];
    if (condition.kind == VAL_BOOL && condition.runtime && condition.runtime->node &&
        condition.runtime->func == l->func->func)
        condition = lower_scalar(l, condition.runtime->node);
    if (!lower_force(l, &condition))
        return condition;
    if (condition.kind == VAL_BOOL)
        return arguments[condition.truth ? 1 : 2];
    if (condition.kind != VAL_TENSOR || lower_type(l, condition)->dtype != DT_BOOL)
        return lower_fail(l, call->loc, "the condition of 'select' is a bool, not %s", lower_show(l, condition));
    DType dtype = DT_COUNT;
    for (int i = 1; i < 3; i++)
        if (lower_is_tensor(arguments[i]) && dtype == DT_COUNT)
            dtype = lower_type(l, arguments[i])->dtype;
    bool scalar = dtype == DT_COUNT && lower_is_scalar(condition);
    if (dtype == DT_COUNT)
        dtype = arguments[1].kind == VAL_BOOL ? DT_BOOL : scalar ? DT_F64 : DT_F32;
    Value values[3] = {condition, arguments[1], arguments[2]};
    Type shape = {0};
    TensorValue names;
    if (!lower_joined_shape(l, call, values, 3, &shape, &names))
        return lower_error_value();
    NodeId nodes[3];
    for (int i = 0; i < 3; i++) {
        shape.dtype = i ? dtype : DT_BOOL;
        nodes[i] = lower_filled(l, call, values[i], &shape);
    }
    NodeId node = lower_emit(l, call, OP_select, NULL, nodes, 3, 0);
    return scalar ? lower_scalar(l, node) : lower_tensor(l, node, &names);
}

/* sum / count, and 0 where nothing counts. */
Value builtin_over(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    Value some = lower_operator(l, call, '>', arguments[1], lower_int(0));
    Value divisor =
        lower_is_error(some) ? some : builtin_select(l, env, call, (Value[]){some, arguments[1], lower_int(1)}, detail);
    Value mean = lower_operator(l, call, '/', arguments[0], divisor);
    bool single = lower_is_tensor(mean) && lower_is_tensor(arguments[1]) && !lower_type(l, mean)->rank &&
                  !lower_type(l, arguments[1])->rank;
    if (single)
        tg_push(l->arena, &l->func->overs, (Over){mean.tensor->node, arguments[1].tensor->node});
    return mean;
}

Value builtin_bounded(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    int64_t bounds[3] = {0};
    for (int i = 1; i < 4; i++) {
        if (!lower_force(l, &arguments[i]))
            return lower_error_value();
        if (arguments[i].kind == VAL_INT && !arguments[i].batch)
            bounds[i - 1] = arguments[i].integer;
        else if (arguments[i].kind != VAL_NONE)
            return lower_fail(l, call->loc, "the bounds are integers known when compiling, not %s",
                              lower_kind_text(l, arguments[i]));
    }
    if (!lower_is_tensor(arguments[0]))
        return arguments[0];
    if (!tg_is_integer(lower_type(l, arguments[0])->dtype))
        return lower_fail(l, call->loc, "indices and labels are integers, not %s", lower_show(l, arguments[0]));
    int64_t low = bounds[1], high = bounds[0], also = bounds[2];
    Attr attr = {.list = {{&low, 1}, {&high, 1}, {&also, arguments[3].kind == VAL_INT}}};
    return lower_tensor(l, lower_emit(l, call, OP_bounded, &attr, &arguments[0].tensor->node, 1, 0),
                        arguments[0].tensor);
}

/* ---- reductions ---- */

static bool one_axis(Lower *l, const Ast *call, Value value, const Type *type, int64_t *axis) {
    if (!lower_force(l, &value) || lower_is_error(value))
        return false;
    if (value.kind != VAL_INT || value.batch) {
        lower_fail(l, call->loc, "an axis is an integer, not %s", lower_kind_text(l, value));
        return false;
    }
    *axis = value.integer < 0 ? value.integer + type->rank : value.integer;
    if (*axis >= 0 && *axis < type->rank)
        return true;
    lower_fail(l, call->loc, "%s has no axis %lld", lower_type_text(l, type), (long long)value.integer);
    return false;
}

static bool axes_of(Lower *l, const Ast *call, Value axis, const Type *type, bool *axes) {
    memset(axes, 0, TG_MAX_RANK * sizeof *axes);
    int64_t at;
    if (axis.kind == VAL_NONE) {
        for (uint32_t i = 0; i < type->rank; i++)
            axes[i] = true;
        return true;
    }
    uint32_t count = axis.kind == VAL_LIST ? axis.list->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        if (!one_axis(l, call, axis.kind == VAL_LIST ? axis.list->at[i] : axis, type, &at))
            return false;
        axes[at] = true;
    }
    return true;
}

static bool keeps(Lower *l, const Ast *call, Value keep, bool *result) {
    *result = keep.kind == VAL_BOOL && keep.truth;
    if (keep.kind == VAL_BOOL || keep.kind == VAL_NONE)
        return true;
    lower_fail(l, call->loc, "'keep' is true or false, not %s", lower_kind_text(l, keep));
    return false;
}

/* The result with the reduced axes left out, or with size 1. */
static Value reduced_value(Lower *l, const Ast *call, NodeId node, Value x, const bool *axes, bool keep) {
    if (!node)
        return lower_error_value();
    Type type = *lower_type(l, x), kept = type;
    TensorValue names = {0};
    kept.rank = 0;
    for (uint32_t i = 0; i < type.rank; i++) {
        if (axes[i] && !keep)
            continue;
        names.names[kept.rank] = axes[i] ? NULL : x.tensor->names[i];
        kept.dims[kept.rank++] = axes[i] ? (Dim){1, false} : type.dims[i];
    }
    return lower_tensor(l, keep ? lower_reshape(l, call, node, &kept) : node, &names);
}

Value builtin_reduce(Lower *l, Env *env, const Ast *call, Value *arguments, int op) {
    (void)env;
    static const char *const names[] = {"sum", "max", "min"};
    bool axes[TG_MAX_RANK], keep;
    Value x = arguments[0];
    if (!lower_as_tensor(l, call, &x, names[op - OP_reduce_sum]) || !keeps(l, call, arguments[2], &keep) ||
        !axes_of(l, call, arguments[1], lower_type(l, x), axes))
        return lower_error_value();
    if (lower_type(l, x)->dtype == DT_BOOL)
        return lower_fail(l, call->loc, "'%s' of bools: cast them, 'f32(...)'", names[op - OP_reduce_sum]);
    return reduced_value(l, call, lower_reduce(l, call, (Op)op, x.tensor->node, axes), x, axes, keep);
}

/* How many elements one result of a reduction takes: a number, or a run-time scalar when B is among them. */
static Value element_count(Lower *l, const Ast *call, const Type *type, const bool *axes) {
    int64_t count = 1;
    bool batch = false;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (!axes[i])
            continue;
        count *= type->dims[i].size;
        batch |= type->dims[i].batch;
    }
    if (!batch)
        return lower_int(count);
    Value records = lower_runtime_scalar(l, "records", SCALAR_BUILTIN, 0, call->loc);
    return count == 1 ? records : lower_binary(l, call, OP_mul, records, lower_int(count));
}

Value builtin_mean(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    bool axes[TG_MAX_RANK], keep;
    Value x = arguments[0];
    if (!lower_as_tensor(l, call, &x, "mean") || !keeps(l, call, arguments[2], &keep) ||
        !axes_of(l, call, arguments[1], lower_type(l, x), axes))
        return lower_error_value();
    if (!tg_is_float(lower_type(l, x)->dtype))
        return lower_fail(l, call->loc, "'mean' of %s: cast it, 'f32(...)'", lower_show(l, x));
    Value count = element_count(l, call, lower_type(l, x), axes);
    Value sum = reduced_value(l, call, lower_reduce(l, call, OP_reduce_sum, x.tensor->node, axes), x, axes, keep);
    return lower_binary(l, call, OP_div, sum, count);
}

Value builtin_count(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    bool axes[TG_MAX_RANK];
    if (!lower_as_tensor(l, call, &arguments[0], "count") ||
        !axes_of(l, call, arguments[1], lower_type(l, arguments[0]), axes))
        return lower_error_value();
    return element_count(l, call, lower_type(l, arguments[0]), axes);
}

static bool own_axis(Lower *l, const Ast *call, Value x, Value axis, const char *what, int64_t *at) {
    const Type *type = lower_type(l, x);
    if (!type->rank) {
        lower_fail(l, call->loc, "'%s' of a single number", what);
        return false;
    }
    if (!one_axis(l, call, axis.kind == VAL_NONE ? lower_int(-1) : axis, type, at))
        return false;
    if (!type->dims[*at].batch)
        return true;
    lower_fail(l, call->loc, "'%s' along the batch B of %s: no program can see the order of a batch", what,
               lower_show(l, x));
    return false;
}

Value builtin_argmax(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0];
    int64_t axis;
    bool keep, axes[TG_MAX_RANK] = {0};
    if (!lower_as_tensor(l, call, &x, "argmax") || !keeps(l, call, arguments[2], &keep) ||
        !own_axis(l, call, x, arguments[1], "argmax", &axis))
        return lower_error_value();
    axes[axis] = true;
    Attr attr = {.list = {{&axis, 1}}};
    return reduced_value(l, call, lower_emit(l, call, OP_argmax, &attr, &x.tensor->node, 1, 0), x, axes, keep);
}

Value builtin_cumsum(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0];
    int64_t axis, back = arguments[2].kind == VAL_BOOL && arguments[2].truth;
    if (!lower_as_tensor(l, call, &x, "cumsum") || !own_axis(l, call, x, arguments[1], "cumsum", &axis))
        return lower_error_value();
    Attr attr = {.list = {{&axis, 1}, {&back, 1}}};
    return lower_tensor(l, lower_emit(l, call, OP_cumsum, &attr, &x.tensor->node, 1, 0), x.tensor);
}

/* ---- contractions ---- */

Value builtin_linear(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0], weight = arguments[1], bias = arguments[2];
    if (!lower_as_tensor(l, call, &x, "linear") || !lower_as_tensor(l, call, &weight, "linear") ||
        (bias.kind != VAL_NONE && !lower_as_tensor(l, call, &bias, "linear")))
        return lower_error_value();
    const Type *tx = lower_type(l, x), *tw = lower_type(l, weight);
    if (tx->rank < 1 || tw->rank != 2 || !tg_dim_equal(tx->dims[tx->rank - 1], tw->dims[1]) || tx->dtype != tw->dtype)
        return lower_fail(l, call->loc, "'linear' of %s with the weights %s, which are [out, in]", lower_show(l, x),
                          lower_show(l, weight));
    TensorValue names = *x.tensor;
    names.names[tx->rank - 1] = weight.tensor->names[0];
    return lower_tensor(l,
                        lower_dot(l, call, x.tensor->node, weight.tensor->node, NULL, NULL, 0, tx->rank - 1, 1,
                                  bias.kind == VAL_NONE ? 0 : bias.tensor->node),
                        &names);
}

/* bool [..., T, S]: where both tokens have the same number in `segments` [..., T]. */
static Value same_segment(Lower *l, const Ast *call, Value segments, const Type *mask) {
    Type rows = *mask;
    rows.rank--;
    if (!lower_is_tensor(segments) || !tg_is_integer(lower_type(l, segments)->dtype)) {
        return lower_fail(l, call->loc, "'segments' numbers the tokens' parts with integers, not %s",
                          lower_show(l, segments));
    }
    rows.dtype = lower_type(l, segments)->dtype;
    if (!tg_dim_equal(mask->dims[rows.rank - 1u], mask->dims[rows.rank]))
        return lower_fail(l, call->loc, "'segments' are for as many keys as queries; give a 'mask'");
    Type down = *mask, along = *mask;
    down.dtype = along.dtype = rows.dtype;
    down.dims[rows.rank] = along.dims[rows.rank - 1u] = (Dim){1, false};
    NodeId numbers = lower_filled(l, call, segments, &rows);
    if (!numbers)
        return lower_error_value();
    Value query = lower_tensor(l, lower_reshape(l, call, numbers, &down), NULL);
    return lower_binary(l, call, OP_eq, query, lower_tensor(l, lower_reshape(l, call, numbers, &along), NULL));
}

/* The operand of attention that `mask` and `segments` make together. */
static NodeId visible_keys(Lower *l, const Ast *call, const Value *arguments) {
    const Type *query = lower_type(l, arguments[0]);
    Type mask = {.dtype = DT_BOOL}, key = *lower_type(l, arguments[1]);
    if (key.rank != query->rank) {
        lower_fail(l, call->loc, "'attention' of %s and %s", lower_show(l, arguments[0]), lower_show(l, arguments[1]));
        return 0;
    }
    for (uint32_t i = 0; i + 3u < query->rank; i++)
        mask.dims[mask.rank++] = query->dims[i];
    mask.dims[mask.rank++] = query->dims[query->rank - 2];
    mask.dims[mask.rank++] = key.dims[key.rank - 2];
    Value visible = arguments[5], segment = arguments[6];
    if (segment.kind != VAL_NONE)
        segment = same_segment(l, call, segment, &mask);
    if (lower_is_error(segment))
        return 0;
    NodeId nodes[2] = {0};
    if (visible.kind != VAL_NONE && !(nodes[0] = lower_filled(l, call, visible, &mask)))
        return 0;
    if (segment.kind != VAL_NONE && !(nodes[1] = lower_filled(l, call, segment, &mask)))
        return 0;
    return nodes[0] && nodes[1] ? lower_emit(l, call, OP_and, NULL, nodes, 2, 0) : nodes[0] ? nodes[0] : nodes[1];
}

Value builtin_attention(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    for (int i = 0; i < 3; i++)
        if (!lower_as_tensor(l, call, &arguments[i], "attention"))
            return lower_error_value();
    const Type *query = lower_type(l, arguments[0]);
    if (query->rank < 3)
        return lower_fail(l, call->loc, "'attention' takes queries [..., H, T, D], not %s",
                          lower_show(l, arguments[0]));
    for (int i = 3; i < 5; i++)
        if (!lower_force(l, &arguments[i]))
            return lower_error_value();
    Value scale = arguments[4].kind == VAL_NONE
                      ? lower_unary(l, call, OP_rsqrt, lower_int(query->dims[query->rank - 1].size))
                      : arguments[4];
    if (!lower_is_number(scale) || (arguments[3].kind != VAL_BOOL && arguments[3].kind != VAL_NONE))
        return lower_fail(l, call->loc, "'scale' is a number and 'causal' a bool, both known when compiling");
    int64_t causal = arguments[3].kind == VAL_BOOL && arguments[3].truth;
    Attr attr = {.list = {{&causal, 1}}, .number = lower_number(scale)};
    NodeId operands[4] = {arguments[0].tensor->node, arguments[1].tensor->node, arguments[2].tensor->node};
    bool masked = arguments[5].kind != VAL_NONE || arguments[6].kind != VAL_NONE;
    if (masked && !(operands[3] = visible_keys(l, call, arguments)))
        return lower_error_value();
    return lower_tensor(l, lower_emit(l, call, OP_attention, &attr, operands, masked ? 4 : 3, 0), arguments[0].tensor);
}
