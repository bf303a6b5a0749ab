/* Operands: numbers, lists and tensors become nodes of one type and shape. Broadcasting is made explicit. */
#include "frontend/value.h"

#include <string.h>

void lower_at(Lower *l, const Ast *at) {
    Loc place = at->loc, user = l->user_loc;
    place.instance = user.instance = l->instance;
    LocsId locs = tg_locs_one(l->graph, place);
    if (lower_in_std(l, at->loc) && user.line)
        locs = tg_locs_union(l->graph, tg_locs_one(l->graph, user), locs);
    lower_builder(l)->locs = locs;
}

NodeId lower_emit(Lower *l, const Ast *at, Op op, const Attr *attr, const NodeId *operands, uint32_t count,
                  TypeId wanted) {
    for (uint32_t i = 0; i < count; i++)
        if (!operands[i])
            return 0;
    lower_at(l, at);
    const char *why = NULL;
    Attr none = {0};
    TypeId type = tg_infer(l->graph, l->func->func, op, attr ? attr : &none, operands, count, wanted, &why);
    if (!type) {
        lower_fail(l, at->loc, "%s", why ? why : tg_arena_printf(l->arena, "%s of what does not fit", tg_op(op)->name));
        return 0;
    }
    if (!lower_check_type(l, at->loc, tg_type_of(&l->graph->types, type)))
        return 0;
    return tg_build(lower_builder(l), op, attr ? attr : &none, operands, count, type);
}

/* ---- operands ---- */

TypeId lower_scalar_type(Lower *l, DType dtype) { return tg_type(&l->graph->types, &(Type){.dtype = dtype}); }

static bool fits(Lower *l, const Ast *at, Value number, DType dtype) {
    double value = lower_number(number);
    if (tg_is_float(dtype))
        return true;
    if (tg_round_to(dtype, value) == value)
        return true;
    lower_fail(l, at->loc, "%s is no %s; cast one side", lower_kind_text(l, number), tg_dtype(dtype)->name);
    return false;
}

static NodeId number_node(Lower *l, const Ast *at, Value number, TypeId type) {
    DType dtype = tg_type_of(&l->graph->types, type)->dtype;
    if (number.kind == VAL_BOOL)
        return tg_const(lower_builder(l), type, number.truth);
    if (number.kind == VAL_INT && number.batch) {
        lower_fail(l, at->loc, "the batch size B stands in shapes only; it is no number to compute with");
        return 0;
    }
    if (!fits(l, at, number, dtype))
        return 0;
    return tg_const(lower_builder(l), type, tg_round_to(dtype, lower_number(number)));
}

NodeId lower_scalar_node(Lower *l, const Ast *at, Value value) {
    lower_at(l, at);
    if (value.kind == VAL_TENSOR)
        return value.tensor->node;
    if (value.runtime && value.runtime->func == l->func->func)
        return value.runtime->node;
    return number_node(l, at, value, lower_scalar_type(l, DT_F64));
}

bool lower_is_runtime(Lower *l, Value v) {
    return lower_is_scalar(v) || (lower_is_number(v) && v.runtime && l->func && v.runtime->func == l->func->func);
}

static bool list_shape(const ListValue *list, Type *type, uint32_t depth) {
    if (depth >= TG_MAX_RANK)
        return false;
    type->dims[depth] = (Dim){list->count, false};
    if (list->count && list->at[0].kind == VAL_LIST)
        return list_shape(list->at[0].list, type, depth + 1);
    type->rank = (uint8_t)(depth + 1);
    return list->count > 0;
}

static bool list_fill(Lower *l, const Ast *at, const ListValue *list, const Type *type, uint32_t depth, double **to) {
    if ((int64_t)list->count != type->dims[depth].size) {
        lower_fail(l, at->loc, "the rows of this list have different lengths");
        return false;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        Value item = list->at[i];
        if (item.kind == VAL_LIST && depth + 1u < type->rank) {
            if (!list_fill(l, at, item.list, type, depth + 1, to))
                return false;
        } else if ((lower_is_number(item) || item.kind == VAL_BOOL) && depth + 1u == type->rank) {
            if (item.kind != VAL_BOOL && !fits(l, at, item, type->dtype))
                return false;
            *(*to)++ = item.kind == VAL_BOOL ? item.truth : tg_round_to(type->dtype, lower_number(item));
        } else {
            lower_fail(l, at->loc, "a list that is used as a tensor holds numbers only, not %s",
                       lower_kind_text(l, item));
            return false;
        }
    }
    return true;
}

static NodeId list_node(Lower *l, const Ast *at, const ListValue *list, DType dtype) {
    Type type = {.dtype = dtype};
    if (!list_shape(list, &type, 0)) {
        lower_fail(l, at->loc, "an empty list is no tensor");
        return 0;
    }
    int64_t count = tg_type_count(&type, 1);
    double *dense = TG_ALLOC(l->arena, double, count), *to = dense;
    if (!list_fill(l, at, list, &type, 0, &to))
        return 0;
    Attr attr = {.dense = dense};
    return lower_emit(l, at, OP_const, &attr, NULL, 0, tg_type(&l->graph->types, &type));
}

NodeId lower_operand(Lower *l, const Ast *at, Value value, DType dtype) {
    lower_at(l, at);
    switch ((ValueKind)value.kind) {
    case VAL_ERROR:
        return 0;
    case VAL_TENSOR:
        if (lower_type(l, value)->dtype == dtype)
            return value.tensor->node;
        if (value.tensor->scalar && tg_is_float(dtype))
            return tg_convert(lower_builder(l), value.tensor->node, dtype);
        lower_fail(l, at->loc, "%s meets %s: two element types need a cast, '%s(...)'", lower_kind_text(l, value),
                   tg_dtype(dtype)->name, tg_dtype(dtype)->name);
        return 0;
    case VAL_INT:
    case VAL_FLOAT:
        if (lower_is_runtime(l, value) && tg_is_float(dtype))
            return dtype == DT_F64 ? value.runtime->node : tg_convert(lower_builder(l), value.runtime->node, dtype);
        return number_node(l, at, value, lower_scalar_type(l, dtype));
    case VAL_BOOL:
        if (dtype == DT_BOOL)
            return number_node(l, at, value, lower_scalar_type(l, dtype));
        break;
    case VAL_LIST:
        return list_node(l, at, value.list, dtype);
    default:
        break;
    }
    lower_fail(l, at->loc, "%s is no tensor", lower_kind_text(l, value));
    return 0;
}

bool lower_as_tensor(Lower *l, const Ast *at, Value *x, const char *what) {
    if (x->kind == VAL_LIST)
        *x = lower_tensor(l, lower_operand(l, at, *x, DT_F32), NULL);
    if (lower_is_tensor(*x))
        return true;
    if (!lower_is_error(*x))
        lower_fail(l, at->loc, "'%s' of %s, which is no tensor", what, lower_kind_text(l, *x));
    return false;
}

static NodeId broadcast_to(Lower *l, const Ast *at, NodeId node, const Type *shape) {
    Type type = *shape;
    type.dtype = tg_node_type(l->graph, l->func->func, node)->dtype;
    if (tg_shape_equal(tg_node_type(l->graph, l->func->func, node), &type))
        return node;
    lower_at(l, at);
    return tg_broadcast_like(lower_builder(l), node, tg_type(&l->graph->types, &type));
}

NodeId lower_filled(Lower *l, const Ast *at, Value value, const Type *type) {
    if ((lower_is_number(value) && !lower_is_runtime(l, value)) || (value.kind == VAL_BOOL && type->dtype == DT_BOOL)) {
        lower_at(l, at);
        return number_node(l, at, value, tg_type(&l->graph->types, type));
    }
    NodeId node = lower_operand(l, at, value, type->dtype);
    if (!node)
        return 0;
    const Type *own = tg_node_type(l->graph, l->func->func, node);
    bool fits_in = own->rank <= type->rank;
    for (uint32_t i = 0; fits_in && i < own->rank; i++) {
        Dim to = type->dims[type->rank - own->rank + i];
        fits_in = tg_dim_equal(own->dims[i], to) || (own->dims[i].size == 1 && !own->dims[i].batch);
    }
    if (!fits_in) {
        lower_fail(l, at->loc, "%s does not broadcast to %s", lower_type_text(l, own), lower_type_text(l, type));
        return 0;
    }
    return broadcast_to(l, at, node, type);
}

/* ---- broadcasting ---- */

static bool join_dim(Dim *to, const char **name, Dim dim, const char *dim_name) {
    bool to_one = to->size == 1 && !to->batch, one = dim.size == 1 && !dim.batch;
    if (to_one && !one) {
        *to = dim;
        *name = dim_name;
        return true;
    }
    if (!one && !tg_dim_equal(*to, dim))
        return false;
    if (!*name && !one)
        *name = dim_name;
    return true;
}

static bool named_twice(const TensorValue *names, uint32_t rank, const char **twice) {
    for (uint32_t i = 0; i < rank; i++)
        for (uint32_t j = 0; j < i; j++)
            if (names->names[i] && names->names[j] && strcmp(names->names[i], names->names[j]) == 0) {
                *twice = names->names[i];
                return true;
            }
    return false;
}

bool lower_joined_shape(Lower *l, const Ast *at, const Value *values, uint32_t count, Type *shape, TensorValue *names) {
    memset(names, 0, sizeof *names);
    bool twice_before = false, more_than_one = false;
    const char *twice = NULL;
    for (uint32_t v = 0; v < count; v++) {
        if (values[v].kind != VAL_TENSOR)
            continue;
        const Type *type = lower_type(l, values[v]);
        twice_before |= named_twice(values[v].tensor, type->rank, &twice);
        if (type->rank > shape->rank) {
            uint32_t more = type->rank - shape->rank;
            memmove(shape->dims + more, shape->dims, shape->rank * sizeof *shape->dims);
            memmove(names->names + more, names->names, shape->rank * sizeof *names->names);
            for (uint32_t i = 0; i < more; i++) {
                shape->dims[i] = (Dim){1, false};
                names->names[i] = NULL;
            }
            shape->rank = type->rank;
        }
        for (uint32_t i = 0; i < type->rank; i++) {
            uint32_t to = shape->rank - type->rank + i;
            if (!join_dim(&shape->dims[to], &names->names[to], type->dims[i], values[v].tensor->names[i])) {
                Value other = values[v ? 0 : 1];
                lower_fail(l, at->loc, "%s and %s do not broadcast: dimension %u is %lld%s there and %lld%s here",
                           lower_show(l, other), lower_show(l, values[v]), i, (long long)shape->dims[to].size,
                           shape->dims[to].batch ? " * B" : "", (long long)type->dims[i].size,
                           type->dims[i].batch ? " * B" : "");
                return false;
            }
        }
        more_than_one |= v > 0;
    }
    uint32_t batches = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        batches += shape->dims[i].batch;
    if (batches > 1) {
        lower_fail(l, at->loc, "the result would have the batch B in two dimensions; often a lost axis [-Wbroadcast]");
        for (uint32_t v = 0; v < count; v++)
            if (values[v].kind == VAL_TENSOR && at->kind == AST_BINARY && v < at->kid_count)
                lower_note(l, at->kid[v]->loc, "this is %s", lower_show(l, values[v]));
        return false;
    }
    if (more_than_one && !twice_before && named_twice(names, shape->rank, &twice))
        lower_warn(l, WARN_broadcast, at->loc, "the result has the dimension '%s' twice; often a lost axis", twice);
    return true;
}

bool lower_unify(Lower *l, const Ast *at, Value *values, uint32_t count, NodeId *nodes, TensorValue *names) {
    DType dtype = DT_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        if (lower_is_error(values[i]))
            return false;
        if (!lower_is_tensor(values[i]))
            continue;
        DType own = lower_type(l, values[i])->dtype;
        if (dtype != DT_COUNT && own != dtype) {
            lower_fail(l, at->loc, "%s meets %s: two element types need a cast", lower_kind_text(l, values[0]),
                       lower_kind_text(l, values[i]));
            return false;
        }
        dtype = own;
    }
    if (dtype == DT_COUNT)
        for (uint32_t i = 0; i < count; i++)
            if (lower_is_runtime(l, values[i]))
                dtype = DT_F64;
    if (dtype == DT_COUNT)
        for (uint32_t i = 0; i < count; i++)
            if (values[i].kind == VAL_LIST)
                dtype = DT_F32;
    if (dtype == DT_COUNT) {
        lower_fail(l, at->loc, "%s is no tensor", lower_kind_text(l, values[0]));
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (values[i].kind == VAL_LIST) {
            values[i] = lower_tensor(l, lower_operand(l, at, values[i], dtype), NULL);
            if (lower_is_error(values[i]))
                return false;
        }
    Type shape = {.dtype = dtype};
    if (!lower_joined_shape(l, at, values, count, &shape, names))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = lower_filled(l, at, values[i], &shape);
        if (!nodes[i])
            return false;
    }
    return true;
}
