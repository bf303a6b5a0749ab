/* Gradients of index maps, reductions and tables. */
#include "passes/vjp_rules.h"

static Ints ints(const int64_t *at, uint32_t count) { return (Ints){at, count}; }

/* Neighbouring axes that are both reduced and hold no B become one, so that each is one reduction. */
static NodeId merge_reduced(Vjp *v, NodeId x, bool reduced[TG_MAX_RANK]) {
    Type type = grad_type(v, x), merged = type;
    merged.rank = 0;
    bool merged_reduced[TG_MAX_RANK] = {false};
    for (int i = 0; i < type.rank; i++) {
        bool joins = i > 0 && reduced[i] && reduced[i - 1] && !type.dims[i].batch && !type.dims[i - 1].batch;
        if (joins) {
            merged.dims[merged.rank - 1].size *= type.dims[i].size;
            continue;
        }
        merged.dims[merged.rank] = type.dims[i];
        merged_reduced[merged.rank++] = reduced[i];
    }
    for (int i = 0; i < TG_MAX_RANK; i++)
        reduced[i] = merged_reduced[i];
    if (merged.rank == type.rank)
        return x;
    for (int i = merged.rank; i < TG_MAX_RANK; i++)
        merged.dims[i] = (Dim){0};
    return tg_reshape(v->b, x, tg_type(&v->b->graph->types, &merged));
}

NodeId grad_sum(Vjp *v, NodeId x, const bool marked[TG_MAX_RANK]) {
    bool reduced[TG_MAX_RANK] = {false};
    for (int i = 0; i < grad_type(v, x).rank; i++)
        reduced[i] = marked[i];
    x = merge_reduced(v, x, reduced);
    Type type = grad_type(v, x);
    int64_t batch = tg_type_batch_axis(&type);
    for (int64_t axis = type.rank - 1; axis >= 0; axis--) {
        if (!reduced[axis] || axis == batch)
            continue;
        x = tg_reduce(v->b, OP_reduce_sum, x, &axis, 1, 0);
        batch -= axis < batch;
    }
    bool sum_batch = false;
    for (int i = 0; i < type.rank; i++)
        sum_batch = sum_batch || (reduced[i] && type.dims[i].batch);
    return sum_batch ? tg_reduce(v->b, OP_reduce_sum, x, &batch, 1, 0) : x;
}

NodeId grad_expand(Vjp *v, NodeId x, Ints axes, TypeId full) {
    Type type = *tg_type_of(&v->b->graph->types, full);
    int64_t dims[TG_MAX_RANK];
    uint32_t kept = 0;
    for (int i = 0; i < type.rank; i++) {
        bool reduced = false;
        for (uint32_t k = 0; k < axes.count; k++)
            reduced = reduced || axes.at[k] == i;
        if (!reduced)
            dims[kept++] = i;
    }
    return tg_broadcast(v->b, x, dims, kept, full);
}

/* The type of an operand's gradient: the operand's, or f32 if the cotangent is (a low parameter's). */
static TypeId type_like(Vjp *v, NodeId operand) {
    return tg_type_with(v->b->graph, grad_type_id(v, operand), grad_type(v, v->cotangent).dtype);
}

void vjp_reshape(Vjp *v) { v->grad[0] = tg_reshape(v->b, v->cotangent, type_like(v, v->operand[0])); }

void vjp_transpose(Vjp *v) {
    Ints perm = grad_attr(v)->list[0];
    int64_t inverse[TG_MAX_RANK];
    for (uint32_t i = 0; i < perm.count; i++)
        inverse[perm.at[i]] = i;
    v->grad[0] = tg_transpose(v->b, v->cotangent, inverse, perm.count);
}

/* Sums over what the operand does not have; its axes of one element come back. */
void vjp_broadcast(Vjp *v) {
    Ints dims = grad_attr(v)->list[0];
    Type from = grad_type(v, v->operand[0]), to = grad_type(v, v->node);
    bool reduced[TG_MAX_RANK];
    for (int i = 0; i < TG_MAX_RANK; i++)
        reduced[i] = true;
    for (uint32_t i = 0; i < dims.count; i++)
        reduced[dims.at[i]] = !tg_dim_equal(from.dims[i], to.dims[dims.at[i]]);
    v->grad[0] = tg_reshape(v->b, grad_sum(v, v->cotangent, reduced), type_like(v, v->operand[0]));
}

static NodeId pad_zeros(Vjp *v, NodeId x, const int64_t *low, const int64_t *high, const int64_t *interior,
                        uint32_t rank) {
    Attr attr = {.list = {ints(low, rank), ints(high, rank), ints(interior, rank)}};
    return tg_build(v->b, OP_pad, &attr, &x, 1, 0);
}

static NodeId slice(Vjp *v, NodeId x, const int64_t *start, const int64_t *limit, const int64_t *stride,
                    uint32_t rank) {
    Attr attr = {.list = {ints(start, rank), ints(limit, rank), ints(stride, rank)}};
    return tg_build(v->b, OP_slice, &attr, &x, 1, 0);
}

/* Elements that were not read get 0. */
void vjp_slice(Vjp *v) {
    const Attr *attr = grad_attr(v);
    Type from = grad_type(v, v->operand[0]), to = grad_type(v, v->node);
    int64_t low[TG_MAX_RANK], high[TG_MAX_RANK], interior[TG_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        if (to.dims[i].size == 0) {
            from.dtype = to.dtype;
            from.scaled = grad_type(v, v->cotangent).scaled;
            v->grad[0] = tg_const(v->b, tg_type(&v->b->graph->types, &from), 0.0);
            return;
        }
        int64_t start = attr->list[0].at[i], stride = attr->list[2].at[i];
        low[i] = start;
        interior[i] = stride - 1;
        high[i] = from.dims[i].size - (start + (to.dims[i].size - 1) * stride + 1);
    }
    v->grad[0] = pad_zeros(v, v->cotangent, low, high, interior, to.rank);
}

void vjp_pad(Vjp *v) {
    const Attr *attr = grad_attr(v);
    Type from = grad_type(v, v->operand[0]);
    int64_t limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        stride[i] = attr->list[2].at[i] + 1;
        limit[i] = attr->list[0].at[i] + (from.dims[i].size ? (from.dims[i].size - 1) * stride[i] + 1 : 0);
    }
    v->grad[0] = slice(v, v->cotangent, attr->list[0].at, limit, stride, from.rank);
}

void vjp_concat(Vjp *v) {
    int64_t axis = grad_attr(v)->list[0].at[0], start[TG_MAX_RANK], limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    Type whole = grad_type(v, v->node);
    for (int i = 0; i < whole.rank; i++) {
        start[i] = 0;
        limit[i] = whole.dims[i].size;
        stride[i] = 1;
    }
    uint32_t count = tg_node(v->b->func, v->node)->operand_count;
    for (uint32_t k = 0; k < count; k++) {
        limit[axis] = start[axis] + grad_type(v, v->operand[k]).dims[axis].size;
        if (v->wanted[k])
            v->grad[k] = slice(v, v->cotangent, start, limit, stride, whole.rank);
        start[axis] = limit[axis];
    }
}

void vjp_reverse(Vjp *v) { v->grad[0] = tg_build(v->b, OP_reverse, grad_attr(v), &v->cotangent, 1, 0); }

void vjp_cumsum(Vjp *v) {
    const Attr *forward = grad_attr(v);
    int64_t reverse = !(forward->list[1].count && forward->list[1].at[0]);
    Attr attr = {.list = {forward->list[0], ints(&reverse, 1)}};
    v->grad[0] = tg_build(v->b, OP_cumsum, &attr, &v->cotangent, 1, 0);
}

void vjp_reduce_sum(Vjp *v) {
    v->grad[0] = grad_expand(v, v->cotangent, grad_attr(v)->list[0], grad_type_id(v, v->operand[0]));
}

/* Evenly to all elements that equal the extremum. */
static void reduce_extremum(Vjp *v) {
    Ints axes = grad_attr(v)->list[0];
    TypeId full = grad_type_id(v, v->operand[0]);
    NodeId hit = tg_binary(v->b, OP_eq, v->operand[0], grad_expand(v, v->node, axes, full));
    bool reduced[TG_MAX_RANK] = {false};
    for (uint32_t i = 0; i < axes.count; i++)
        reduced[axes.at[i]] = true;
    NodeId ties = grad_sum(v, tg_convert(v->b, hit, grad_type(v, v->node).dtype), reduced);
    NodeId share = tg_binary(v->b, OP_div, v->cotangent, ties);
    v->grad[0] = tg_select(v->b, hit, grad_expand(v, share, axes, full), tg_const(v->b, full, 0.0));
}

void vjp_reduce_max(Vjp *v) { reduce_extremum(v); }
void vjp_reduce_min(Vjp *v) { reduce_extremum(v); }

/* A row may be taken often: rows of a low type are added in f32, and rounded once. */
void vjp_take(Vjp *v) {
    NodeId operands[2] = {v->operand[1], v->cotangent};
    TypeId table = grad_type_id(v, v->operand[0]);
    DType dtype = grad_type(v, v->operand[0]).dtype;
    bool low = tg_is_low(dtype);
    TypeId sums = low ? tg_type_with(v->b->graph, table, DT_F32) : table;
    v->grad[0] = tg_build(v->b, OP_scatter_add, grad_attr(v), operands, 2, sums);
    if (low && !v->in_f32[0])
        v->grad[0] = tg_convert(v->b, v->grad[0], dtype);
}

void vjp_scatter_add(Vjp *v) {
    NodeId operands[2] = {v->cotangent, v->operand[0]};
    NodeId rows = tg_build(v->b, OP_take, grad_attr(v), operands, 2, 0);
    DType dtype = grad_type(v, v->operand[1]).dtype;
    v->grad[1] = grad_type(v, rows).dtype == dtype ? rows : tg_convert(v->b, rows, dtype);
    if (tg_node(v->b->func, v->node)->operand_count == 3)
        v->grad[2] = v->cotangent;
}
