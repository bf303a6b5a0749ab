/* Builtins that move elements or make them from a shape. */
#include "frontend/value.h"

#include <string.h>

static bool axis_of(Lower *l, const Ast *call, Value value, int64_t standard, int64_t rank, int64_t *axis) {
    if (!lower_force(l, &value) || lower_is_error(value))
        return false;
    if (value.kind == VAL_NONE)
        value = lower_int(standard);
    if (value.kind != VAL_INT || value.batch) {
        lower_fail(l, call->loc, "an axis is an integer, not %s", lower_kind_text(l, value));
        return false;
    }
    *axis = value.integer < 0 ? value.integer + rank : value.integer;
    if (*axis >= 0 && *axis < rank)
        return true;
    lower_fail(l, call->loc, "there is no axis %lld among %lld", (long long)value.integer, (long long)rank);
    return false;
}

static bool without_batch(Lower *l, const Ast *call, Value x, int64_t axis, const char *what) {
    if (!lower_type(l, x)->dims[axis].batch)
        return true;
    lower_fail(l, call->loc, "'%s' along the batch B of %s: no program can see the order of a batch", what,
               lower_show(l, x));
    return false;
}

/* Dimensions of a shape that is written out as a list are named as they are written: reshape(x, [T, 1]). */
static TensorValue written_names(const Ast *call, const char *name, uint32_t position, uint32_t rank) {
    TensorValue names = {0};
    const Ast *shape = NULL;
    for (uint32_t i = 1, at = 0; i < call->kid_count; i++) {
        const Ast *argument = call->kid[i];
        if (argument->kind == AST_NAMED ? strcmp(argument->name, name) == 0 : at++ == position)
            shape = argument->kind == AST_NAMED ? argument->kid[0] : argument;
    }
    for (uint32_t i = 0; shape && shape->kind == AST_LIST && shape->kid_count == rank && i < rank; i++)
        if (shape->kid[i]->kind == AST_NAME)
            names.names[i] = shape->kid[i]->name;
    return names;
}

Value builtin_reshape(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Type type = {.dtype = DT_F32};
    if (!lower_as_tensor(l, call, &arguments[0], "reshape") || !lower_dims(l, call->loc, arguments[1], &type))
        return lower_error_value();
    const Type *own = lower_type(l, arguments[0]);
    bool batch = tg_type_batch_axis(own) >= 0;
    if (batch != (tg_type_batch_axis(&type) >= 0) || tg_type_count(own, 1) != tg_type_count(&type, 1)) {
        type.dtype = own->dtype;
        return lower_fail(l, call->loc, "%s does not reshape to %s: %lld%s elements, not %lld%s",
                          lower_show(l, arguments[0]), lower_type_text(l, &type), (long long)tg_type_count(own, 1),
                          batch ? " * B" : "", (long long)tg_type_count(&type, 1),
                          tg_type_batch_axis(&type) >= 0 ? " * B" : "");
    }
    TensorValue names = written_names(call, "shape", 1, type.rank);
    return lower_tensor(l, lower_reshape(l, call, arguments[0].tensor->node, &type), &names);
}

Value builtin_transpose(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0], axes = arguments[1];
    if (!lower_as_tensor(l, call, &x, "transpose"))
        return lower_error_value();
    uint32_t rank = lower_type(l, x)->rank;
    int64_t perm[TG_MAX_RANK];
    TensorValue names = {0};
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    if (axes.kind == VAL_NONE) {
        if (rank < 2)
            return lower_fail(l, call->loc, "'transpose' of %s: it has less than two dimensions", lower_show(l, x));
        perm[rank - 1] = rank - 2;
        perm[rank - 2] = rank - 1;
    } else {
        bool used[TG_MAX_RANK] = {0};
        if (axes.kind != VAL_LIST || axes.list->count != rank)
            return lower_fail(l, call->loc, "'axes' lists all %u dimensions in their new order", rank);
        for (uint32_t i = 0; i < rank; i++) {
            if (!axis_of(l, call, axes.list->at[i], 0, rank, &perm[i]))
                return lower_error_value();
            if (used[perm[i]])
                return lower_fail(l, call->loc, "'axes' names dimension %lld twice", (long long)perm[i]);
            used[perm[i]] = true;
        }
    }
    for (uint32_t i = 0; i < rank; i++)
        names.names[i] = x.tensor->names[perm[i]];
    Attr attr = {.list = {{perm, rank}}};
    return lower_tensor(l, lower_emit(l, call, OP_transpose, &attr, &x.tensor->node, 1, 0), &names);
}

static const Ast *pattern_of(const Ast *call) {
    const Ast *pattern = NULL;
    for (uint32_t i = 1; i < call->kid_count; i++)
        if (call->kid[i]->kind == AST_PATTERN)
            pattern = call->kid[i];
    return pattern;
}

Value builtin_rearrange(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)detail;
    const Ast *pattern = pattern_of(call);
    if (!pattern)
        return lower_fail(l, call->loc, "'rearrange' takes a pattern: rearrange(x, [B, T, (H, D)] -> [B, H, T, D])");
    if (!lower_as_tensor(l, call, &arguments[0], "rearrange"))
        return lower_error_value();
    return lower_rearrange(l, env, call, arguments[0], pattern);
}

Value builtin_einsum(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)detail;
    const Ast *pattern = pattern_of(call);
    if (!pattern || arguments[0].kind != VAL_LIST || !arguments[0].list->count)
        return lower_fail(
            l, call->loc,
            "'einsum' takes a list of tensors and a pattern: einsum([x, w], [[B, T, C], [C, D]] -> [B, T, D])");
    return lower_einsum(l, env, call, arguments[0].list, pattern);
}

Value builtin_broadcast(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Type type = {.dtype = DT_F32};
    if (!lower_dims(l, call->loc, arguments[1], &type))
        return lower_error_value();
    type.dtype = lower_is_tensor(arguments[0]) ? lower_type(l, arguments[0])->dtype : DT_F32;
    TensorValue names = written_names(call, "shape", 1, type.rank);
    return lower_tensor(l, lower_filled(l, call, arguments[0], &type), &names);
}

/* ---- joining and cutting ---- */

static bool same_but(Lower *l, const Ast *call, Value first, Value other, int64_t axis, const char *what) {
    const Type *x = lower_type(l, first), *y = lower_type(l, other);
    bool same = x->rank == y->rank && x->dtype == y->dtype;
    for (uint32_t i = 0; same && i < x->rank; i++)
        same = i == axis || tg_dim_equal(x->dims[i], y->dims[i]);
    if (!same)
        lower_fail(l, call->loc, "'%s' of %s and %s: they differ in more than dimension %lld", what,
                   lower_show(l, first), lower_show(l, other), (long long)axis);
    return same;
}

Value builtin_concat(Lower *l, Env *env, const Ast *call, Value *arguments, int stack) {
    (void)env;
    const char *what = stack ? "stack" : "concat";
    if (arguments[0].kind != VAL_LIST || !arguments[0].list->count)
        return lower_fail(l, call->loc, "'%s' takes a list of tensors, not %s", what,
                          arguments[0].kind == VAL_LIST ? "an empty one" : lower_kind_text(l, arguments[0]));
    uint32_t count = arguments[0].list->count;
    Value *items = TG_ALLOC(l->arena, Value, count);
    NodeId *nodes = TG_ALLOC(l->arena, NodeId, count);
    int64_t axis = 0;
    for (uint32_t i = 0; i < count; i++) {
        items[i] = arguments[0].list->at[i];
        if (!lower_as_tensor(l, call, &items[i], what))
            return lower_error_value();
        uint32_t rank = lower_type(l, items[0])->rank;
        if (i == 0 && !axis_of(l, call, arguments[1], 0, rank + stack, &axis))
            return lower_error_value();
        if (!same_but(l, call, items[0], items[i], stack ? -1 : axis, what) ||
            (!stack && !without_batch(l, call, items[i], axis, what)))
            return lower_error_value();
        nodes[i] = items[i].tensor->node;
        if (!stack)
            continue;
        Type type = *lower_type(l, items[i]);
        memmove(type.dims + axis + 1, type.dims + axis, (size_t)(rank - axis) * sizeof *type.dims);
        type.dims[axis] = (Dim){1, false};
        type.rank++;
        if (rank + 1 > TG_MAX_RANK)
            return lower_fail(l, call->loc, "the result would have more than %d dimensions", TG_MAX_RANK);
        nodes[i] = lower_reshape(l, call, nodes[i], &type);
    }
    Attr attr = {.list = {{&axis, 1}}};
    return lower_tensor(l, lower_emit(l, call, OP_concat, &attr, nodes, count, 0), stack ? NULL : items[0].tensor);
}

Value builtin_split(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0], parts = arguments[1];
    int64_t axis;
    if (!lower_as_tensor(l, call, &x, "split") || !axis_of(l, call, arguments[2], 0, lower_type(l, x)->rank, &axis) ||
        !without_batch(l, call, x, axis, "split") || !lower_force(l, &parts))
        return lower_error_value();
    Type type = *lower_type(l, x);
    if (parts.kind != VAL_INT || parts.batch || parts.integer < 1 || type.dims[axis].size % parts.integer)
        return lower_fail(l, call->loc, "'split' of %s into %s: dimension %lld is not a multiple of it",
                          lower_show(l, x), lower_kind_text(l, parts), (long long)axis);
    int64_t start[TG_MAX_RANK] = {0}, limit[TG_MAX_RANK], stride[TG_MAX_RANK],
            size = type.dims[axis].size / parts.integer;
    for (uint32_t i = 0; i < type.rank; i++) {
        limit[i] = type.dims[i].size;
        stride[i] = 1;
    }
    Value *values = TG_ALLOC(l->arena, Value, parts.integer);
    TensorValue names = *x.tensor;
    names.names[axis] = NULL;
    for (int64_t i = 0; i < parts.integer; i++) {
        start[axis] = i * size;
        limit[axis] = (i + 1) * size;
        Attr attr = {.list = {{start, type.rank}, {limit, type.rank}, {stride, type.rank}}};
        values[i] = lower_tensor(l, lower_emit(l, call, OP_slice, &attr, &x.tensor->node, 1, 0), &names);
        if (lower_is_error(values[i]))
            return values[i];
    }
    return lower_list(l, values, (uint32_t)parts.integer);
}

Value builtin_reverse(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0];
    int64_t axis;
    if (!lower_as_tensor(l, call, &x, "reverse") ||
        !axis_of(l, call, arguments[1], -1, lower_type(l, x)->rank, &axis) ||
        !without_batch(l, call, x, axis, "reverse"))
        return lower_error_value();
    Attr attr = {.list = {{&axis, 1}}};
    return lower_tensor(l, lower_emit(l, call, OP_reverse, &attr, &x.tensor->node, 1, 0), x.tensor);
}

static bool pad_amounts(Lower *l, const Ast *call, Value value, uint32_t rank, int64_t *amounts) {
    if (value.kind != VAL_LIST || value.list->count != rank) {
        lower_fail(l, call->loc, "'pad' takes two lists of %u integers: what is added in front and behind", rank);
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        Value amount = value.list->at[i];
        if (amount.kind != VAL_INT || amount.batch || amount.integer < 0) {
            lower_fail(l, call->loc, "'pad' adds an integer from 0, not %s", lower_kind_text(l, amount));
            return false;
        }
        amounts[i] = amount.integer;
    }
    return true;
}

Value builtin_pad(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value x = arguments[0];
    int64_t low[TG_MAX_RANK], high[TG_MAX_RANK], interior[TG_MAX_RANK] = {0};
    if (!lower_as_tensor(l, call, &x, "pad"))
        return lower_error_value();
    const Type *type = lower_type(l, x);
    if (!pad_amounts(l, call, arguments[1], type->rank, low) || !pad_amounts(l, call, arguments[2], type->rank, high))
        return lower_error_value();
    for (uint32_t i = 0; i < type->rank; i++)
        if ((low[i] || high[i]) && !without_batch(l, call, x, i, "pad"))
            return lower_error_value();
    Value value = arguments[3].kind == VAL_NONE ? lower_int(0) : arguments[3];
    if (!lower_force(l, &value) || !lower_is_number(value))
        return lower_fail(l, call->loc, "'pad' fills with a number known when compiling");
    Attr attr = {.list = {{low, type->rank}, {high, type->rank}, {interior, type->rank}},
                 .number = lower_number(value)};
    return lower_tensor(l, lower_emit(l, call, OP_pad, &attr, &x.tensor->node, 1, 0), NULL);
}

Value builtin_take(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value table = arguments[0], index = arguments[1];
    int64_t axis;
    if (!lower_as_tensor(l, call, &table, "take") ||
        !axis_of(l, call, arguments[2], 0, lower_type(l, table)->rank, &axis) ||
        !without_batch(l, call, table, axis, "take"))
        return lower_error_value();
    int64_t low = 0, high = lower_type(l, table)->dims[axis].size;
    if (index.kind == VAL_INT || index.kind == VAL_LIST)
        index = lower_tensor(l, lower_operand(l, call, index, DT_I32), NULL);
    if (lower_is_error(index))
        return index;
    if (!lower_is_tensor(index) || !tg_is_integer(lower_type(l, index)->dtype))
        return lower_fail(l, call->loc, "'take' looks up integers, not %s", lower_show(l, index));
    Attr bounds = {.list = {{&low, 1}, {&high, 1}}}, attr = {.list = {{&axis, 1}}};
    NodeId operands[2] = {table.tensor->node, lower_emit(l, call, OP_bounded, &bounds, &index.tensor->node, 1, 0)};
    return lower_tensor(l, lower_emit(l, call, OP_take, &attr, operands, 2, 0), NULL);
}

/* ---- made from a shape ---- */

Value builtin_fill(Lower *l, Env *env, const Ast *call, Value *arguments, int number) {
    (void)env;
    Type type = {.dtype = l->initial ? l->initial->dtype : DT_F32};
    if (!lower_dims(l, call->loc, arguments[0], &type))
        return lower_error_value();
    return lower_tensor(l, lower_filled(l, call, lower_int(number), &type), NULL);
}

Value builtin_full(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Type type = {.dtype = DT_F32};
    if (!lower_dims(l, call->loc, arguments[1], &type))
        return lower_error_value();
    return lower_tensor(l, lower_filled(l, call, arguments[0], &type), NULL);
}

Value builtin_iota(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Type type = {.dtype = DT_I32};
    int64_t axis;
    if (!lower_dims(l, call->loc, arguments[0], &type) || !axis_of(l, call, arguments[1], 0, type.rank, &axis))
        return lower_error_value();
    if (type.dims[axis].batch)
        return lower_fail(l, call->loc, "'iota' along the batch B: no program can see the order of a batch");
    type.dtype = DT_I32;
    Attr attr = {.list = {{&axis, 1}}};
    return lower_tensor(l, lower_emit(l, call, OP_iota, &attr, NULL, 0, tg_type(&l->graph->types, &type)), NULL);
}

Value builtin_random(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Type type = {.dtype = DT_F32};
    if (!lower_dims(l, call->loc, arguments[0], &type))
        return lower_error_value();
    type.dtype = DT_F32;
    uint32_t ordinal;
    uint64_t base;
    if (l->frame) {
        ordinal = l->frame->ordinal++;
        base = l->frame->key;
    } else {
        ordinal = (uint32_t)(*tg_map_put(&l->func->calls, "", 0, NULL))++;
        base = 0;
    }
    Attr attr = {.key = tg_hash(&ordinal, sizeof ordinal, base)};
    return lower_tensor(l, lower_emit(l, call, OP_random, &attr, NULL, 0, tg_type(&l->graph->types, &type)), NULL);
}
