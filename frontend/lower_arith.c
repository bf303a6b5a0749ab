/* Arithmetic: numbers while compiling, nodes for what is known only at run time. Broadcasting and casts are made explicit. */
#include "frontend/value.h"

#include <math.h>
#include <string.h>

void lower_at(Lower *l, const Ast *at) {
    LocsId locs = tg_locs_one(l->graph, at->loc);
    if (lower_in_std(l, at->loc) && l->user_loc.line)
        locs = tg_locs_union(l->graph, tg_locs_one(l->graph, l->user_loc), locs);
    lower_builder(l)->locs = locs;
}

NodeId lower_emit(Lower *l, const Ast *at, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId wanted) {
    for (uint32_t i = 0; i < count; i++)
        if (!operands[i])
            return 0;
    lower_at(l, at);
    const char *why = NULL;
    Attr none = {0};
    TypeId type = tg_infer(l->graph, l->func->func, op, attr ? attr : &none, operands, count, wanted, &why);
    if (!type) {
        lower_fail(l, at->loc, "%s: %s", tg_op(op)->name, why ? why : "the operands do not fit");
        return 0;
    }
    if (!lower_check_type(l, at->loc, tg_type_of(&l->graph->types, type)))
        return 0;
    return tg_build(lower_builder(l), op, attr ? attr : &none, operands, count, type);
}

static NodeId emit1(Lower *l, const Ast *at, Op op, NodeId x) { return lower_emit(l, at, op, NULL, &x, 1, 0); }
static NodeId emit2(Lower *l, const Ast *at, Op op, NodeId x, NodeId y) {
    return lower_emit(l, at, op, NULL, (NodeId[]){x, y}, 2, 0);
}

/* ---- operands ---- */

static TypeId scalar_type(Lower *l, DType dtype) { return tg_type(&l->graph->types, &(Type){.dtype = dtype}); }

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

/* The f64 node of a number or run-time scalar. */
static NodeId scalar_node(Lower *l, const Ast *at, Value value) {
    lower_at(l, at);
    if (value.kind == VAL_TENSOR)
        return value.tensor->node;
    if (value.runtime && value.runtime->func == l->func->func)
        return value.runtime->node;
    return number_node(l, at, value, scalar_type(l, DT_F64));
}

static bool is_runtime_number(Lower *l, Value v) {
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
            lower_fail(l, at->loc, "a list that is used as a tensor holds numbers only, not %s", lower_kind_text(l, item));
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
    case VAL_ERROR: return 0;
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
        if (is_runtime_number(l, value) && tg_is_float(dtype))
            return dtype == DT_F64 ? value.runtime->node : tg_convert(lower_builder(l), value.runtime->node, dtype);
        return number_node(l, at, value, scalar_type(l, dtype));
    case VAL_BOOL:
        if (dtype == DT_BOOL)
            return number_node(l, at, value, scalar_type(l, dtype));
        break;
    case VAL_LIST: return list_node(l, at, value.list, dtype);
    default: break;
    }
    lower_fail(l, at->loc, "%s is no tensor", lower_kind_text(l, value));
    return 0;
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
    if ((lower_is_number(value) && !is_runtime_number(l, value)) || (value.kind == VAL_BOOL && type->dtype == DT_BOOL)) {
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
            if (is_runtime_number(l, values[i]))
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

/* ---- numbers ---- */

static const RuntimeForm *joined_form(Lower *l, const RuntimeForm *x, const RuntimeForm *y, NodeId node) {
    RuntimeForm *form = TG_ALLOC(l->arena, RuntimeForm, 1);
    uint32_t count = (x ? x->setting_count : 0) + (y ? y->setting_count : 0), at = 0;
    const char **settings = TG_ALLOC(l->arena, const char *, count);
    for (uint32_t i = 0; x && i < x->setting_count; i++)
        settings[at++] = x->settings[i];
    for (uint32_t i = 0; y && i < y->setting_count; i++)
        settings[at++] = y->settings[i];
    *form = (RuntimeForm){l->func->func, node, settings, count};
    return form;
}

static double fold_unary(Op op, double x) {
    switch (op) {
    case OP_neg: return -x;
    case OP_abs: return fabs(x);
    case OP_sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case OP_floor: return floor(x);
    case OP_ceil: return ceil(x);
    case OP_round: return nearbyint(x);
    case OP_exp: return exp(x);
    case OP_expm1: return expm1(x);
    case OP_log: return log(x);
    case OP_log1p: return log1p(x);
    case OP_sqrt: return sqrt(x);
    case OP_rsqrt: return 1 / sqrt(x);
    case OP_sin: return sin(x);
    case OP_cos: return cos(x);
    case OP_tanh: return tanh(x);
    case OP_erf: return erf(x);
    case OP_sigmoid: return 1 / (1 + exp(-x));
    default: return x;
    }
}

Value lower_unary(Lower *l, const Ast *at, Op op, Value x) {
    if (lower_is_error(x))
        return x;
    if (x.kind == VAL_INT && x.batch)
        return lower_fail(l, at->loc, "the batch size B stands in shapes only; it is no number to compute with");
    if (op == OP_is_finite && lower_is_number(x))
        return lower_bool(isfinite(lower_number(x)));
    if (x.kind == VAL_BOOL && op == OP_not) {
        Value result = lower_bool(!x.truth);
        result.runtime = x.runtime;
        return result;
    }
    if (lower_is_number(x)) {
        bool whole = x.kind == VAL_INT && (op == OP_neg || op == OP_abs || op == OP_sign || op == OP_floor ||
                                           op == OP_ceil || op == OP_round || op == OP_detach);
        double folded = fold_unary(op, lower_number(x));
        Value result = whole ? lower_int((int64_t)folded) : lower_float(folded);
        if (whole && op == OP_detach)
            result.integer = x.integer;
        if (is_runtime_number(l, x)) {
            NodeId node = op == OP_detach ? x.runtime->node : emit1(l, at, op, x.runtime->node);
            result.runtime = joined_form(l, x.runtime, NULL, node);
        }
        return result;
    }
    if (x.kind == VAL_LIST)
        x = lower_tensor(l, lower_operand(l, at, x, DT_F32), NULL);
    if (x.kind != VAL_TENSOR)
        return lower_is_error(x) ? x : lower_fail(l, at->loc, "'%s' of %s", tg_op(op)->name, lower_kind_text(l, x));
    if (lower_is_scalar(x))
        return lower_scalar(l, emit1(l, at, op, x.tensor->node));
    return lower_tensor(l, emit1(l, at, op, x.tensor->node), x.tensor);
}

static Value fold_int(Lower *l, const Ast *at, Op op, int64_t x, int64_t y) {
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case OP_add: over = __builtin_add_overflow(x, y, &result); break;
    case OP_sub: over = __builtin_sub_overflow(x, y, &result); break;
    case OP_mul: over = __builtin_mul_overflow(x, y, &result); break;
    case OP_maximum: result = x > y ? x : y; break;
    case OP_minimum: result = x < y ? x : y; break;
    case OP_div:
    case OP_mod:
        if (y == 0 || (x == INT64_MIN && y == -1))
            return lower_fail(l, at->loc, "division of %lld by %lld", (long long)x, (long long)y);
        if (op == OP_mod)
            return lower_int((x % y + y) % y);
        if (x % y)
            return lower_fail(l, at->loc, "%lld / %lld is not exact; int division must be (write a decimal point for a "
                              "fraction)", (long long)x, (long long)y);
        result = x / y;
        break;
    default: return lower_error_value();
    }
    if (over)
        return lower_fail(l, at->loc, "the result does not fit 64 bits");
    return lower_int(result);
}

static double fold_float(Op op, double x, double y) {
    switch (op) {
    case OP_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul: return x * y;
    case OP_div: return x / y;
    case OP_mod: return x - floor(x / y) * y;
    case OP_pow: return pow(x, y);
    case OP_maximum: return isnan(x) || x > y ? x : y;
    case OP_minimum: return isnan(x) || x < y ? x : y;
    default: return NAN;
    }
}

static bool is_comparison(Op op) { return op >= OP_eq && op <= OP_ge; }

static bool fold_compare(Op op, double x, double y) {
    switch (op) {
    case OP_eq: return x == y;
    case OP_ne: return x != y;
    case OP_lt: return x < y;
    case OP_le: return x <= y;
    case OP_gt: return x > y;
    default: return x >= y;
    }
}

static Value fold_numbers(Lower *l, const Ast *at, Op op, Value x, Value y) {
    Value result;
    if (is_comparison(op))
        result = lower_bool(fold_compare(op, lower_number(x), lower_number(y)));
    else if (x.kind == VAL_INT && y.kind == VAL_INT && op != OP_pow && !x.runtime && !y.runtime)
        return fold_int(l, at, op, x.integer, y.integer);
    else
        result = lower_float(fold_float(op, lower_number(x), lower_number(y)));
    bool runtime = is_runtime_number(l, x) || is_runtime_number(l, y);
    if (runtime) {
        NodeId node = emit2(l, at, op, scalar_node(l, at, x), scalar_node(l, at, y));
        result.runtime = joined_form(l, x.runtime, y.runtime, node);
    }
    return result;
}

/* `B * n` and `n * B`: the only arithmetic with B. */
static Value batch_product(Lower *l, const Ast *at, Op op, Value x, Value y) {
    int64_t product;
    if (op == OP_mul && x.kind == VAL_INT && y.kind == VAL_INT && !(x.batch && y.batch) &&
        !__builtin_mul_overflow(x.integer, y.integer, &product)) {
        Value result = lower_int(product);
        result.batch = true;
        return result;
    }
    return lower_fail(l, at->loc, "the batch size B stands in shapes only ('[B, T]', 'B * T'); it is no number to compute "
                      "with");
}

Value lower_binary(Lower *l, const Ast *at, Op op, Value x, Value y) {
    if (lower_is_error(x) || lower_is_error(y))
        return lower_error_value();
    if ((x.kind == VAL_INT && x.batch) || (y.kind == VAL_INT && y.batch))
        return batch_product(l, at, op, x, y);
    if (lower_is_number(x) && lower_is_number(y))
        return fold_numbers(l, at, op, x, y);
    bool x_scalar = lower_is_scalar(x) || lower_is_number(x), y_scalar = lower_is_scalar(y) || lower_is_number(y);
    if (x_scalar && y_scalar)
        return lower_scalar(l, emit2(l, at, op, scalar_node(l, at, x), scalar_node(l, at, y)));
    Value values[2] = {x, y};
    NodeId nodes[2];
    TensorValue names;
    if (!lower_unify(l, at, values, 2, nodes, &names))
        return lower_error_value();
    return lower_tensor(l, emit2(l, at, op, nodes[0], nodes[1]), &names);
}

Value lower_power(Lower *l, const Ast *at, Value x, Value y) {
    if (lower_is_error(x) || lower_is_error(y))
        return lower_error_value();
    bool whole = y.kind == VAL_INT && !y.batch && !y.runtime;
    if (x.kind == VAL_INT && !x.batch && !x.runtime && whole && y.integer >= 0) {
        Value result = lower_int(1);
        for (int64_t i = 0; i < y.integer && !lower_is_error(result); i++) {
            result = fold_int(l, at, OP_mul, result.integer, x.integer);
            if (!lower_is_error(result) && (result.integer == 0 || result.integer == 1) && x.integer == result.integer)
                break;
        }
        return result;
    }
    if (!lower_is_tensor(x) || !whole || y.integer < 0 || y.integer > 8) {
        if (lower_is_tensor(x) && y.kind == VAL_FLOAT && !y.runtime && y.number == 0.5)
            return lower_unary(l, at, OP_sqrt, x);
        return lower_binary(l, at, OP_pow, x, y);
    }
    if (y.integer == 0)
        return lower_tensor(l, lower_filled(l, at, lower_int(1), lower_type(l, x)), x.tensor);
    Value square = x, result = lower_none();
    for (int64_t n = y.integer; n > 0 && !lower_is_error(square); n >>= 1) {
        if (n & 1)
            result = result.kind == VAL_NONE ? square : lower_binary(l, at, OP_mul, result, square);
        if (n > 1)
            square = lower_binary(l, at, OP_mul, square, square);
    }
    return lower_is_error(square) ? square : result;
}

static Value joined_lists(Lower *l, const Ast *at, Value x, Value y) {
    if (x.kind != VAL_LIST || y.kind != VAL_LIST)
        return lower_fail(l, at->loc, "'++' joins two lists, not %s and %s", lower_kind_text(l, x), lower_kind_text(l, y));
    Vec(Value) all = {0};
    for (uint32_t i = 0; i < x.list->count; i++)
        tg_push(l->arena, &all, x.list->at[i]);
    for (uint32_t i = 0; i < y.list->count; i++)
        tg_push(l->arena, &all, y.list->at[i]);
    return lower_list(l, all.at, all.count);
}

static Value logic(Lower *l, const Ast *at, Op op, Value x, Value y) {
    if (x.kind == VAL_BOOL && y.kind == VAL_BOOL) {
        Value result = lower_bool(op == OP_and ? x.truth && y.truth : x.truth || y.truth);
        if (x.runtime || y.runtime)
            result.runtime = joined_form(l, x.runtime, y.runtime, 0);
        return result;
    }
    Value values[2] = {x, y};
    NodeId nodes[2];
    TensorValue names;
    for (int i = 0; i < 2; i++)
        if (values[i].kind != VAL_BOOL && !(values[i].kind == VAL_TENSOR && lower_type(l, values[i])->dtype == DT_BOOL))
            return lower_fail(l, at->loc, "'%s' of %s", tg_op(op)->name, lower_kind_text(l, values[i]));
    if (!lower_unify(l, at, values, 2, nodes, &names))
        return lower_error_value();
    return lower_tensor(l, emit2(l, at, op, nodes[0], nodes[1]), &names);
}

Value lower_operator(Lower *l, const Ast *at, int op, Value x, Value y) {
    static const struct {
        int source;
        Op op;
    } table[] = {{'+', OP_add},    {'-', OP_sub},    {'*', OP_mul},    {'/', OP_div},    {'<', OP_lt},
                 {'>', OP_gt},     {AST_LE, OP_le},  {AST_GE, OP_ge},  {AST_EQ, OP_eq},  {AST_NE, OP_ne},
                 {AST_AND, OP_and}, {AST_OR, OP_or}};
    if (lower_is_error(x) || lower_is_error(y))
        return lower_error_value();
    if (op == '^')
        return lower_power(l, at, x, y);
    if (op == '@')
        return lower_matmul(l, at, x, y);
    if (op == AST_CONCAT)
        return joined_lists(l, at, x, y);
    if (op == '+' && x.kind == VAL_STRING && y.kind == VAL_STRING)
        return lower_string(tg_arena_printf(l->arena, "%s%s", x.text, y.text));
    bool numeric = (x.kind == VAL_TENSOR || y.kind == VAL_TENSOR) || (lower_is_number(x) && lower_is_number(y));
    if ((op == AST_EQ || op == AST_NE) && !numeric && !(x.kind == VAL_INT && x.batch))
        return lower_bool(lower_same(x, y) == (op == AST_EQ));
    if ((op == AST_EQ || op == AST_NE) && (x.kind == VAL_NONE || y.kind == VAL_NONE))
        return lower_bool(op == AST_NE);
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].source == op) {
            if (op == AST_AND || op == AST_OR)
                return logic(l, at, table[i].op, x, y);
            return lower_binary(l, at, table[i].op, x, y);
        }
    return lower_error_value();
}

/* ---- casts ---- */

Value lower_cast(Lower *l, const Ast *at, Value x, DType dtype) {
    if (lower_is_error(x))
        return x;
    if (is_runtime_number(l, x))
        return lower_tensor(l, lower_emit(l, at, OP_convert, NULL, (NodeId[]){scalar_node(l, at, x)}, 1,
                                          scalar_type(l, dtype)), NULL);
    if (lower_is_number(x)) {
        double value = tg_round_to(dtype, lower_number(x));
        if (dtype == DT_BOOL)
            return lower_bool(value != 0);
        return tg_is_float(dtype) ? lower_float(value) : lower_int((int64_t)value);
    }
    if (x.kind == VAL_BOOL)
        return dtype == DT_BOOL ? x : tg_is_float(dtype) ? lower_float(x.truth) : lower_int(x.truth);
    if (x.kind == VAL_LIST)
        return lower_tensor(l, lower_operand(l, at, x, dtype), NULL);
    if (x.kind != VAL_TENSOR)
        return lower_fail(l, at->loc, "%s cannot be cast to %s", lower_kind_text(l, x), tg_dtype(dtype)->name);
    if (lower_type(l, x)->dtype == dtype)
        return lower_tensor(l, x.tensor->node, x.tensor);
    Type type = *lower_type(l, x);
    type.dtype = dtype;
    return lower_tensor(l, lower_emit(l, at, OP_convert, NULL, &x.tensor->node, 1, tg_type(&l->graph->types, &type)),
                        x.tensor);
}
