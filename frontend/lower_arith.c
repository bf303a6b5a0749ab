/* Arithmetic: numbers while compiling, nodes for what is known only at run time. Casts are made explicit. */
#include "frontend/value.h"

#include <math.h>
#include <string.h>

static NodeId emit1(Lower *l, const Ast *at, Op op, NodeId x) { return lower_emit(l, at, op, NULL, &x, 1, 0); }
static NodeId emit2(Lower *l, const Ast *at, Op op, NodeId x, NodeId y) {
    return lower_emit(l, at, op, NULL, (NodeId[]){x, y}, 2, 0);
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
    case OP_neg:
        return -x;
    case OP_abs:
        return fabs(x);
    case OP_sign:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    case OP_floor:
        return floor(x);
    case OP_ceil:
        return ceil(x);
    case OP_round:
        return nearbyint(x);
    case OP_exp:
        return exp(x);
    case OP_expm1:
        return expm1(x);
    case OP_log:
        return log(x);
    case OP_log1p:
        return log1p(x);
    case OP_sqrt:
        return sqrt(x);
    case OP_rsqrt:
        return 1 / sqrt(x);
    case OP_sin:
        return sin(x);
    case OP_cos:
        return cos(x);
    case OP_tanh:
        return tanh(x);
    case OP_erf:
        return erf(x);
    case OP_sigmoid:
        return 1 / (1 + exp(-x));
    default:
        return x;
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
        if (lower_is_runtime(l, x)) {
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
    case OP_add:
        over = __builtin_add_overflow(x, y, &result);
        break;
    case OP_sub:
        over = __builtin_sub_overflow(x, y, &result);
        break;
    case OP_mul:
        over = __builtin_mul_overflow(x, y, &result);
        break;
    case OP_maximum:
        result = x > y ? x : y;
        break;
    case OP_minimum:
        result = x < y ? x : y;
        break;
    case OP_div:
    case OP_mod:
        if (y == 0 || (x == INT64_MIN && y == -1))
            return lower_fail(l, at->loc, "division of %lld by %lld", (long long)x, (long long)y);
        if (op == OP_mod)
            return lower_int((x % y + y) % y);
        if (x % y)
            return lower_fail(l, at->loc,
                              "%lld / %lld is not exact; int division must be (write a decimal point for a "
                              "fraction)",
                              (long long)x, (long long)y);
        result = x / y;
        break;
    default:
        return lower_error_value();
    }
    if (over)
        return lower_fail(l, at->loc, "the result does not fit 64 bits");
    return lower_int(result);
}

static double fold_float(Op op, double x, double y) {
    switch (op) {
    case OP_add:
        return x + y;
    case OP_sub:
        return x - y;
    case OP_mul:
        return x * y;
    case OP_div:
        return x / y;
    case OP_mod:
        return x - floor(x / y) * y;
    case OP_pow:
        return pow(x, y);
    case OP_maximum:
        return isnan(x) || x > y ? x : y;
    case OP_minimum:
        return isnan(x) || x < y ? x : y;
    default:
        return NAN;
    }
}

static bool is_comparison(Op op) { return op >= OP_eq && op <= OP_ge; }

static bool fold_compare(Op op, double x, double y) {
    switch (op) {
    case OP_eq:
        return x == y;
    case OP_ne:
        return x != y;
    case OP_lt:
        return x < y;
    case OP_le:
        return x <= y;
    case OP_gt:
        return x > y;
    default:
        return x >= y;
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
    bool runtime = lower_is_runtime(l, x) || lower_is_runtime(l, y);
    if (runtime) {
        NodeId node = emit2(l, at, op, lower_scalar_node(l, at, x), lower_scalar_node(l, at, y));
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
    return lower_fail(l, at->loc,
                      "the batch size B stands in shapes only ('[B, T]', 'B * T'); it is no number to compute "
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
        return lower_scalar(l, emit2(l, at, op, lower_scalar_node(l, at, x), lower_scalar_node(l, at, y)));
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
        return lower_fail(l, at->loc, "'++' joins two lists, not %s and %s", lower_kind_text(l, x),
                          lower_kind_text(l, y));
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
    if (!lower_is_tensor(x) && !lower_is_tensor(y))
        return lower_scalar(l, emit2(l, at, op, lower_operand(l, at, x, DT_BOOL), lower_operand(l, at, y, DT_BOOL)));
    if (!lower_unify(l, at, values, 2, nodes, &names))
        return lower_error_value();
    return lower_tensor(l, emit2(l, at, op, nodes[0], nodes[1]), &names);
}

Value lower_operator(Lower *l, const Ast *at, int op, Value x, Value y) {
    static const struct {
        int source;
        Op op;
    } table[] = {{'+', OP_add},   {'-', OP_sub},   {'*', OP_mul},     {'/', OP_div},
                 {'<', OP_lt},    {'>', OP_gt},    {AST_LE, OP_le},   {AST_GE, OP_ge},
                 {AST_EQ, OP_eq}, {AST_NE, OP_ne}, {AST_AND, OP_and}, {AST_OR, OP_or}};
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
    if (lower_is_runtime(l, x))
        return lower_tensor(l,
                            lower_emit(l, at, OP_convert, NULL, (NodeId[]){lower_scalar_node(l, at, x)}, 1,
                                       lower_scalar_type(l, dtype)),
                            NULL);
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
    if (lower_type(l, x)->dtype == dtype && dtype == DT_F32)
        lower_mark_value(l, at, x);
    if (lower_type(l, x)->dtype == dtype)
        return lower_tensor(l, x.tensor->node, x.tensor);
    Type type = *lower_type(l, x);
    type.dtype = dtype;
    return lower_tensor(l, lower_emit(l, at, OP_convert, NULL, &x.tensor->node, 1, tg_type(&l->graph->types, &type)),
                        x.tensor);
}
