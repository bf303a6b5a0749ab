/* Reductions and contractions. */
#include "frontend/value.h"

#include <string.h>

static NodeId reduce_one(Lower *l, const Ast *at, Op op, NodeId x, uint32_t axis) {
    int64_t axes[1] = {axis};
    lower_at(l, at);
    return tg_reduce(lower_builder(l), op, x, axes, 1, 0);
}

/* Runs of reduced axes without B become one axis each. */
static NodeId merge_axes(Lower *l, const Ast *at, NodeId x, bool *axes) {
    Type type = *tg_node_type(l->graph, l->func->func, x), merged = type;
    bool merged_axes[TG_MAX_RANK] = {0};
    merged.rank = 0;
    for (uint32_t i = 0; i < type.rank; i++) {
        bool joins = i > 0 && axes[i] && axes[i - 1] && !type.dims[i].batch && !type.dims[i - 1].batch;
        if (joins) {
            merged.dims[merged.rank - 1].size *= type.dims[i].size;
            continue;
        }
        merged_axes[merged.rank] = axes[i];
        merged.dims[merged.rank++] = type.dims[i];
    }
    memcpy(axes, merged_axes, sizeof merged_axes);
    return merged.rank == type.rank ? x : lower_reshape(l, at, x, &merged);
}

NodeId lower_reduce(Lower *l, const Ast *at, Op op, NodeId x, const bool *reduced) {
    bool axes[TG_MAX_RANK];
    memcpy(axes, reduced, sizeof axes);
    x = merge_axes(l, at, x, axes);
    int batch = tg_type_batch_axis(tg_node_type(l->graph, l->func->func, x));
    uint32_t rank = tg_node_type(l->graph, l->func->func, x)->rank;
    int removed_before_batch = 0;
    for (int i = (int)rank - 1; i >= 0; i--) {
        if (!axes[i] || i == batch)
            continue;
        x = reduce_one(l, at, op, x, (uint32_t)i);
        removed_before_batch += i < batch;
    }
    if (batch >= 0 && axes[batch])
        x = reduce_one(l, at, op, x, (uint32_t)(batch - removed_before_batch));
    return x;
}

NodeId lower_dot(Lower *l, const Ast *at, NodeId x, NodeId y, const int64_t *batch_x, const int64_t *batch_y,
                 uint32_t batch_count, int64_t contract_x, int64_t contract_y, NodeId bias) {
    static const int64_t no_split[1] = {0};
    Attr attr = {
        .list = {{batch_x, batch_count}, {batch_y, batch_count}, {&contract_x, 1}, {&contract_y, 1}, {no_split, 0}}};
    NodeId operands[3] = {x, y, bias};
    return lower_emit(l, at, OP_dot, &attr, operands, bias ? 3 : 2, 0);
}

/* Looks through a transpose: the node under it and, per dimension, where that dimension lies there. */
static NodeId under_transpose(Lower *l, NodeId node, int64_t *where) {
    const Func *func = l->func->func;
    const Node *n = tg_node(func, node);
    uint32_t rank = tg_node_type(l->graph, func, node)->rank;
    for (uint32_t i = 0; i < rank; i++)
        where[i] = n->op == OP_transpose ? n->attr->list[0].at[i] : i;
    return n->op == OP_transpose ? tg_operand(func, n, 0) : node;
}

static Value contract_mismatch(Lower *l, const Ast *at, Value x, Value y) {
    lower_fail(l, at->loc, "%s @ %s: the last dimension of the first is not the %s of the second", lower_show(l, x),
               lower_show(l, y), lower_type(l, y)->rank > 1 ? "second last" : "only one");
    if (at->kind == AST_BINARY) {
        lower_note(l, at->kid[0]->loc, "this is %s", lower_show(l, x));
        lower_note(l, at->kid[1]->loc, "this is %s", lower_show(l, y));
    }
    return lower_error_value();
}

/* Both with leading dimensions: these are broadcast against each other first. */
static bool lead_together(Lower *l, const Ast *at, Value *x, Value *y) {
    Type tx = *lower_type(l, *x), ty = *lower_type(l, *y);
    uint32_t lead_x = tx.rank - 2, lead_y = ty.rank - 2, lead = lead_x > lead_y ? lead_x : lead_y;
    Type shape = {.rank = (uint8_t)lead};
    for (uint32_t i = 0; i < lead; i++) {
        Dim dx = i + lead_x >= lead ? tx.dims[i + lead_x - lead] : (Dim){1, false};
        Dim dy = i + lead_y >= lead ? ty.dims[i + lead_y - lead] : (Dim){1, false};
        bool x_one = dx.size == 1 && !dx.batch, y_one = dy.size == 1 && !dy.batch;
        if (!tg_dim_equal(dx, dy) && !x_one && !y_one) {
            lower_fail(l, at->loc, "%s @ %s: their leading dimensions do not broadcast", lower_show(l, *x),
                       lower_show(l, *y));
            return false;
        }
        shape.dims[i] = x_one ? dy : dx;
    }
    Value *both[2] = {x, y};
    for (int v = 0; v < 2; v++) {
        Type own = *lower_type(l, *both[v]), full = shape;
        full.dtype = own.dtype;
        full.dims[lead] = own.dims[own.rank - 2];
        full.dims[lead + 1] = own.dims[own.rank - 1];
        full.rank = (uint8_t)(lead + 2);
        if (!tg_shape_equal(&own, &full))
            *both[v] = lower_tensor(l, lower_filled(l, at, *both[v], &full), NULL);
        if (lower_is_error(*both[v]))
            return false;
    }
    return true;
}

Value lower_matmul(Lower *l, const Ast *at, Value x, Value y) {
    Value *both[2] = {&x, &y};
    for (int i = 0; i < 2; i++) {
        if (both[i]->kind == VAL_LIST)
            *both[i] = lower_tensor(l, lower_operand(l, at, *both[i], DT_F32), NULL);
        if (lower_is_error(*both[i]))
            return *both[i];
        if (!lower_is_tensor(*both[i]) || lower_type(l, *both[i])->rank == 0)
            return lower_fail(l, at->loc, "'@' of %s", lower_kind_text(l, *both[i]));
    }
    if (lower_type(l, x)->dtype != lower_type(l, y)->dtype)
        return lower_fail(l, at->loc, "%s @ %s: two element types need a cast", lower_show(l, x), lower_show(l, y));
    if (lower_type(l, y)->rank > 2 && lower_type(l, x)->rank > 1 && !lead_together(l, at, &x, &y))
        return lower_error_value();
    const Type *tx = lower_type(l, x), *ty = lower_type(l, y);
    uint32_t contract_x = tx->rank - 1u, contract_y = ty->rank > 1 ? ty->rank - 2u : 0;
    if (!tg_dim_equal(tx->dims[contract_x], ty->dims[contract_y]))
        return contract_mismatch(l, at, x, y);
    uint32_t batch = ty->rank > 2 && tx->rank > 1 ? ty->rank - 2u : 0;
    int64_t where_x[TG_MAX_RANK], where_y[TG_MAX_RANK];
    /* A transpose is absorbed where its free dimensions keep their order: always, with one free dimension a side. */
    NodeId nx = tx->rank == 2 ? under_transpose(l, x.tensor->node, where_x) : x.tensor->node;
    NodeId ny = ty->rank == 2 ? under_transpose(l, y.tensor->node, where_y) : y.tensor->node;
    int64_t lead[TG_MAX_RANK];
    for (uint32_t i = 0; i < batch; i++)
        lead[i] = i;
    int64_t cx = tx->rank == 2 ? where_x[contract_x] : contract_x,
            cy = ty->rank == 2 ? where_y[contract_y] : contract_y;
    TensorValue names = {0};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < contract_x; i++)
        names.names[rank++] = x.tensor->names[i];
    for (uint32_t i = batch; i < ty->rank; i++)
        if (i != contract_y)
            names.names[rank++] = y.tensor->names[i];
    return lower_tensor(l, lower_dot(l, at, nx, ny, lead, lead, batch, cx, cy, 0), &names);
}
