#include "ir/fold.h"

#include "ir/eval.h"

#include <math.h>
#include <string.h>

enum {
    MOST_RESULTS = 4096, /* larger constants stay an expression: they would only fill the program */
    MOST_OPERANDS = 65536,
};

/* By the cost column: what is exact in every arithmetic folds; polynomials and sums in a fixed order are the kernels'
 * own. */
enum {
    EXACT_free = 1,
    EXACT_one = 1,
    EXACT_root = 1,
    EXACT_maths = 0,
    EXACT_random = 0,
    EXACT_dot = 0,
    EXACT_attention = 0,
    EXACT_call = 0,
    EXACT_scatter = 0,
};

static bool folds(Op op) {
    static const bool exact[] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, ...)                              \
    EXACT_##cost && (FUSE_##fuse == FUSE_point || FUSE_##fuse == FUSE_view || FUSE_##fuse == FUSE_alone),
#include "ir/ops.def"
#undef OP
    };
    return exact[op] && op != OP_rsqrt && op != OP_cumsum && op != OP_bounded;
}

static const Node *node_of(const Builder *b, NodeId id) { return tg_node(b->func, id); }

static bool is_splat(const Builder *b, NodeId id) {
    const Node *node = node_of(b, id);
    return node->op == OP_const && node->attr->dense == NULL;
}

static bool is_number(const Builder *b, NodeId id, double number) {
    return is_splat(b, id) && memcmp(&node_of(b, id)->attr->number, &number, sizeof number) == 0;
}

/* ---- identities ---- */

static NodeId fold_transpose(Builder *b, const Attr *attr, NodeId x) {
    Ints perm = attr->list[0];
    bool identity = true;
    for (uint32_t i = 0; i < perm.count; i++)
        identity &= perm.at[i] == i;
    if (identity)
        return x;
    const Node *inner = node_of(b, x);
    if (inner->op != OP_transpose)
        return 0;
    int64_t both[TG_MAX_RANK];
    for (uint32_t i = 0; i < perm.count; i++)
        both[i] = inner->attr->list[0].at[perm.at[i]];
    return tg_transpose(b, tg_operand(b->func, inner, 0), both, perm.count);
}

static NodeId fold_broadcast(Builder *b, const Attr *attr, NodeId x, TypeId type) {
    const Node *inner = node_of(b, x);
    if (inner->type == type)
        return x;
    if (inner->op != OP_broadcast)
        return 0;
    int64_t both[TG_MAX_RANK];
    Ints dims = inner->attr->list[0];
    for (uint32_t i = 0; i < dims.count; i++)
        both[i] = attr->list[0].at[dims.at[i]];
    return tg_broadcast(b, tg_operand(b->func, inner, 0), both, dims.count, type);
}

static NodeId fold_reshape(Builder *b, NodeId x, TypeId type) {
    const Node *inner = node_of(b, x);
    if (inner->type == type)
        return x;
    return inner->op == OP_reshape ? tg_reshape(b, tg_operand(b->func, inner, 0), type) : 0;
}

static bool all_are(Ints list, int64_t value) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] != value)
            return false;
    return true;
}

/* x where the other operand is neutral: exact for every x, its zeros, infinities and NaN included. */
static NodeId fold_neutral(Builder *b, Op op, NodeId x, NodeId y) {
    bool whole = tg_is_integer(tg_node_type(b->graph, b->func, x)->dtype);
    double nothing = whole ? 0.0 : -0.0;
    switch (op) {
    case OP_add:
        return is_number(b, y, nothing) ? x : is_number(b, x, nothing) ? y : 0;
    case OP_sub:
        return is_number(b, y, 0.0) ? x : 0;
    case OP_mul:
        return is_number(b, y, 1) ? x : is_number(b, x, 1) ? y : 0;
    case OP_div:
        return is_number(b, y, 1) ? x : 0;
    case OP_and:
        return is_number(b, y, 1) || is_number(b, x, 0) ? x : is_number(b, x, 1) || is_number(b, y, 0) ? y : 0;
    case OP_or:
        return is_number(b, y, 0) || is_number(b, x, 1) ? x : is_number(b, x, 0) || is_number(b, y, 1) ? y : 0;
    default:
        return 0;
    }
}

static NodeId fold_select(Builder *b, const NodeId *operands) {
    if (operands[1] == operands[2])
        return operands[1];
    if (!is_splat(b, operands[0]))
        return 0;
    return node_of(b, operands[0])->attr->number != 0 ? operands[1] : operands[2];
}

/* Negating twice gives x back in floating point only: the least integer has no negative. */
static NodeId fold_twice(Builder *b, Op op, NodeId x) {
    const Node *inner = node_of(b, x);
    bool exact = op == OP_not || tg_is_float(tg_node_type(b->graph, b->func, x)->dtype);
    return inner->op == op && exact ? tg_operand(b->func, inner, 0) : 0;
}

static DType dtype_of(const Builder *b, NodeId id) { return tg_node_type(b->graph, b->func, id)->dtype; }

/* Holds every value of `from`. */
static bool is_wider(DType dtype, DType from) {
    return dtype == DT_F64 ? tg_is_float(from) && from != DT_F64 : dtype == DT_F32 && tg_is_low(from);
}

/* Conversion to bf16 takes a denormal as zero: only what was converted to it has none. */
static bool converts_to_itself(const Builder *b, NodeId id) {
    const Node *node = node_of(b, id);
    return dtype_of(b, id) != DT_BF16 || (node->op == OP_convert && dtype_of(b, tg_operand(b->func, node, 0)) != DT_BF16);
}

/* Of its own type, or a float that was made wider and is made what it was. */
static NodeId fold_convert(const Builder *b, NodeId x, TypeId type) {
    const Node *wide = node_of(b, x);
    if (wide->type == type || wide->op != OP_convert)
        return x;
    NodeId before = tg_operand(b->func, wide, 0);
    bool returns = node_of(b, before)->type == type && is_wider(dtype_of(b, x), dtype_of(b, before));
    return returns && converts_to_itself(b, before) ? before : x;
}

static NodeId identity(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type) {
    NodeId x = operands[0];
    switch (op) {
    case OP_reshape:
        return fold_reshape(b, x, type);
    case OP_transpose:
        return fold_transpose(b, attr, x);
    case OP_broadcast:
        return fold_broadcast(b, attr, x, type);
    case OP_convert:
        return fold_convert(b, x, type);
    case OP_slice:
        return x;
    case OP_reverse:
        return attr->list[0].count == 0 ? x : 0;
    case OP_pad:
        return all_are(attr->list[0], 0) && all_are(attr->list[1], 0) && all_are(attr->list[2], 0) ? x : 0;
    case OP_concat:
        return count == 1 ? x : 0;
    case OP_neg:
    case OP_not:
        return fold_twice(b, op, x);
    case OP_select:
        return fold_select(b, operands);
    default:
        return count == 2 ? fold_neutral(b, op, x, operands[1]) : 0;
    }
}

/* ---- constants ---- */

static bool same_bits(const double *values, int64_t count) {
    for (int64_t i = 1; i < count; i++)
        if (memcmp(&values[i], &values[0], sizeof *values) != 0)
            return false;
    return true;
}

NodeId tg_const_values(Builder *b, TypeId type, const double *values, int64_t count) {
    if (count == 0 || same_bits(values, count))
        return tg_const(b, type, count ? values[0] : 0);
    return tg_build(b, OP_const, &(Attr){.dense = values}, NULL, 0, type);
}

/* The value of a constant as the evaluator takes it, in the shape of `type`. */
static Tensor tensor_of(Builder *b, const Node *node, TypeId type) {
    int64_t count = tg_type_count(tg_type_of(&b->graph->types, type), 1);
    Tensor tensor = {.type = type, .count = count, .at = TG_ALLOC(b->graph->arena, double, count)};
    for (int64_t i = 0; i < count; i++)
        tensor.at[i] = node->attr->dense ? node->attr->dense[i] : node->attr->number;
    return tensor;
}

/* Evaluates the node in a function of its own, where its operands and result have the given types. */
static bool evaluate(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, const TypeId *types,
                     TypeId type, Tensor *result) {
    Arena *arena = b->graph->arena;
    Func alone = {.kind = b->func->kind, .name = b->func->name};
    Tensor *values = TG_ALLOC(arena, Tensor, count);
    tg_push(arena, &alone.nodes, (Node){0});
    for (uint32_t i = 0; i < count; i++) {
        const Node *from = node_of(b, operands[i]);
        values[i] = tensor_of(b, from, types[i]);
        tg_push(arena, &alone.nodes, (Node){.op = OP_const, .type = types[i], .attr = from->attr});
        tg_push(arena, &alone.operands, i + 1);
    }
    tg_push(arena, &alone.nodes,
            (Node){.op = (uint16_t)op, .operand_count = (uint16_t)count, .type = type, .attr = attr});
    EvalState state = {.arena = arena, .mode = EVAL_TYPED, .rows = 1};
    return tg_eval_node(&state, b->graph, &alone, count + 1, values, result) == TG_OK;
}

/* Integers past 2^53 are not exact in the evaluator's numbers. */
static bool exact_result(Builder *b, const Tensor *result) {
    if (tg_type_of(&b->graph->types, result->type)->dtype != DT_I64)
        return true;
    for (int64_t i = 0; i < result->count; i++)
        if (fabs(result->at[i]) > 0x1p53)
            return false;
    return true;
}

static TypeId scalar_of(Builder *b, TypeId id) {
    const Type *type = tg_type_of(&b->graph->types, id);
    return tg_type(&b->graph->types, &(Type){.dtype = type->dtype, .scaled = type->scaled});
}

/* All operands are one number each: so is the result, of any size, with the batch in it too. */
static NodeId fold_splats(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type) {
    if (tg_op(op)->fuse == FUSE_view || op == OP_reverse)
        return tg_const(b, type, node_of(b, operands[0])->attr->number);
    if (tg_op(op)->fuse != FUSE_point)
        return 0;
    TypeId types[3];
    for (uint32_t i = 0; i < count; i++)
        types[i] = scalar_of(b, node_of(b, operands[i])->type);
    Tensor result;
    if (!evaluate(b, op, attr, operands, count, types, scalar_of(b, type), &result) || !exact_result(b, &result))
        return 0;
    return tg_const(b, type, result.at[0]);
}

static NodeId fold_dense(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type) {
    const Type *result_type = tg_type_of(&b->graph->types, type);
    if (tg_type_batch_axis(result_type) >= 0 || tg_type_count(result_type, 1) > MOST_RESULTS)
        return 0;
    TypeId *types = TG_ALLOC(b->graph->arena, TypeId, count);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = node_of(b, operands[i])->type;
        const Type *operand = tg_type_of(&b->graph->types, types[i]);
        if (tg_type_batch_axis(operand) >= 0 || tg_type_count(operand, 1) > MOST_OPERANDS)
            return 0;
    }
    Tensor result;
    if (!evaluate(b, op, attr, operands, count, types, type, &result) || !exact_result(b, &result))
        return 0;
    return tg_const_values(b, type, result.at, result.count);
}

static NodeId fold_constant(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type) {
    if (!folds(op))
        return 0;
    bool splats = true;
    for (uint32_t i = 0; i < count; i++) {
        if (node_of(b, operands[i])->op != OP_const)
            return 0;
        splats &= is_splat(b, operands[i]);
    }
    NodeId folded = splats ? fold_splats(b, op, attr, operands, count, type) : 0;
    return folded ? folded : fold_dense(b, op, attr, operands, count, type);
}

NodeId tg_fold(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type) {
    if (count == 0)
        return 0;
    NodeId same = identity(b, op, attr, operands, count, type);
    if (same != 0 && node_of(b, same)->type == type)
        return same;
    return fold_constant(b, op, attr, operands, count, type);
}
