/* attention: attention(q, k, v) and its gradients become dots and a softmax over rows of scores. All four share the weights P and
   their gradient, since the builder shares equal values: a function that has forward and backward computes them once.

       P = softmax(scale * q k')   over the visible keys; a row that sees none is 0      [N..., H, T, S]
       o = P v         dv = P' do
       dS = scale * P * (do v' - rowsum(P * (do v')))         dq = dS k         dk = dS' q

   H / KV query heads share a key head: they are an axis of the query side that dk and dv contract. With a mask, keys and values
   that are not finite may stand behind it: they are read as 0, and a visible one makes its row NaN. A query or a cotangent that is not
   finite makes the gradients of all keys NaN, unless its row sees none: then it is read as 0.

   Of bf16 and f16 operands the scores, P and dS are f32. P and dS are rounded to the operands' type, once, where dots read them; dS is
   made of the rounded P, which is what forward has to keep. */
#include "passes/passes.h"
#include "passes/rewrite.h"

#include "ir/attention.h"

#include <math.h>

typedef struct Attention {
    Builder *b;
    Graph *graph;
    Arena *arena;
    NodeId q, k, v, mask;  /* mask: 0 or bool [N..., T, S] */
    int64_t outer;         /* rank of N... and KV */
    int64_t groups;        /* H / KV */
    bool causal;
    double scale;
    DType dtype, result;   /* of the operands, and of the node */
    DType wide;            /* of scores: f32, or f64 */
    TypeId scores;         /* [N..., H, T, S], wide */
} Attention;

static Type type_of(const Attention *a, NodeId id) { return *tg_node_type(a->graph, a->b->func, id); }

static Ints axes_run(Arena *arena, int64_t first, int64_t count) {
    int64_t *at = TG_ALLOC(arena, int64_t, count);
    for (int64_t i = 0; i < count; i++)
        at[i] = first + i;
    return (Ints){at, (uint32_t)count};
}

/* [N..., H, X, Y] as [N..., KV, H / KV, X, Y]; as it is where every head has its own key. */
static NodeId grouped(const Attention *a, NodeId x) {
    if (a->groups == 1)
        return x;
    Type type = type_of(a, x), split = type;
    split.rank++;
    split.dims[a->outer - 1].size = type.dims[a->outer - 1].size / a->groups;
    split.dims[a->outer] = (Dim){a->groups, false};
    split.dims[a->outer + 1] = type.dims[type.rank - 2];
    split.dims[a->outer + 2] = type.dims[type.rank - 1];
    return tg_reshape(a->b, x, tg_type(&a->graph->types, &split));
}

/* And back. */
static NodeId merged(const Attention *a, NodeId x) {
    if (a->groups == 1)
        return x;
    Type type = type_of(a, x);
    type.dims[a->outer - 1].size *= a->groups;
    for (int i = (int)a->outer; i + 1 < type.rank; i++)
        type.dims[i] = type.dims[i + 1];
    type.rank--;
    type.dims[type.rank] = (Dim){0};
    return tg_reshape(a->b, x, tg_type(&a->graph->types, &type));
}

static NodeId as(const Attention *a, NodeId x, DType dtype) {
    return type_of(a, x).dtype == dtype ? x : tg_convert(a->b, x, dtype);
}

static NodeId dot(const Attention *a, NodeId x, NodeId y, Ints contract_x, Ints contract_y, DType result) {
    Ints batch = axes_run(a->arena, 0, a->outer);
    Attr attr = {.list = {batch, batch, contract_x, contract_y}};
    return tg_build(a->b, OP_dot, &attr, (NodeId[]){x, y}, 2, tg_type_with(a->graph, a->scores, result));
}

/* Over the last axis of the query side and axis `other` (from the end) of the key side: [N..., KV, (G), T, X]. */
static NodeId query_dot(const Attention *a, NodeId x, NodeId y, int64_t other, DType result) {
    NodeId left = grouped(a, x);
    Ints contract_x = axes_run(a->arena, type_of(a, left).rank - 1, 1);
    Ints contract_y = axes_run(a->arena, type_of(a, y).rank - other, 1);
    return merged(a, dot(a, left, y, contract_x, contract_y, result));
}

/* Over queries (and the heads that share a key): [N..., KV, S, X]. */
static NodeId key_dot(const Attention *a, NodeId scores, NodeId y) {
    Ints contract = axes_run(a->arena, a->outer, a->groups == 1 ? 1 : 2);
    return dot(a, grouped(a, scores), grouped(a, y), contract, contract, a->result);
}

static NodeId constant(const Attention *a, double value, TypeId type) { return tg_const(a->b, type, value); }

/* A value per row beside the scores: [N..., H, T] -> [N..., H, T, S]. */
static NodeId along_row(const Attention *a, NodeId row) {
    Type type = type_of(a, row);
    return tg_broadcast(a->b, row, axes_run(a->arena, 0, type.rank).at, type.rank,
                        tg_type_with(a->graph, a->scores, type.dtype));
}

static NodeId row_reduce(const Attention *a, Op op, NodeId x) {
    int64_t last = type_of(a, x).rank - 1;
    return tg_reduce(a->b, op, x, &last, 1, 0);
}

/* bool [N..., H, T, S], or 0: every key is visible. */
static NodeId visible(const Attention *a) {
    const Type scores = *tg_type_of(&a->graph->types, a->scores);
    int64_t rank = scores.rank;
    NodeId seen = 0;
    if (a->causal) {
        Type square = {.dtype = DT_I32, .rank = 2, .dims = {scores.dims[rank - 2], scores.dims[rank - 1]}};
        TypeId type = tg_type(&a->graph->types, &square);
        NodeId past = tg_binary(a->b, OP_le, tg_iota(a->b, type, 1), tg_iota(a->b, type, 0));
        seen = tg_broadcast(a->b, past, axes_run(a->arena, rank - 2, 2).at, 2, tg_type_with(a->graph, a->scores, DT_BOOL));
    }
    if (a->mask) {
        int64_t dims[TG_MAX_RANK];
        uint32_t mask_rank = type_of(a, a->mask).rank;
        for (uint32_t i = 0; i < mask_rank; i++)
            dims[i] = i + 2 < mask_rank ? i : i + 1; /* H is missing */
        NodeId mask = tg_broadcast(a->b, a->mask, dims, mask_rank, tg_type_with(a->graph, a->scores, DT_BOOL));
        seen = seen ? tg_binary(a->b, OP_and, seen, mask) : mask;
    }
    return seen;
}

/* bool [N..., H, T]: the row sees no key. */
static NodeId sees_none(const Attention *a) {
    NodeId seen = tg_select(a->b, visible(a), constant(a, 0, a->scores), constant(a, -INFINITY, a->scores));
    NodeId most = row_reduce(a, OP_reduce_max, seen);
    return tg_binary(a->b, OP_eq, most, constant(a, -INFINITY, tg_node(a->b->func, most)->type));
}

/* [N..., H, T, X] with 0 in the rows that see no key, which without a mask there are not. */
static NodeId seeing(const Attention *a, NodeId x) {
    if (!a->mask)
        return x;
    Type type = type_of(a, x);
    TypeId id = tg_node(a->b->func, x)->type;
    NodeId none = tg_broadcast(a->b, sees_none(a), axes_run(a->arena, 0, type.rank - 1).at, type.rank - 1u,
                               tg_type_with(a->graph, id, DT_BOOL));
    return tg_select(a->b, none, constant(a, 0, id), x);
}

/* With a mask: what is not finite as 0. */
static NodeId readable(const Attention *a, NodeId x) {
    if (!a->mask)
        return x;
    return tg_select(a->b, tg_unary(a->b, OP_is_finite, x), x, constant(a, 0, tg_node(a->b->func, x)->type));
}

/* P, rounded to the operands' type. */
static NodeId weights(const Attention *a) {
    NodeId seen = visible(a);
    NodeId scores = tg_binary(a->b, OP_mul, query_dot(a, a->q, a->k, 1, a->wide), constant(a, a->scale, a->scores));
    if (seen)
        scores = tg_select(a->b, seen, scores, constant(a, -INFINITY, a->scores));
    NodeId most = row_reduce(a, OP_reduce_max, scores);
    NodeId exp = tg_unary(a->b, OP_exp, tg_binary(a->b, OP_sub, scores, along_row(a, most)));
    NodeId sum = row_reduce(a, OP_reduce_sum, exp);
    NodeId one = constant(a, 1, tg_node(a->b->func, sum)->type);
    NodeId p = tg_binary(a->b, OP_mul, exp, along_row(a, tg_binary(a->b, OP_div, one, sum)));
    return as(a, seeing(a, p), a->dtype);
}

/* 0 for every row, or NaN where a visible key's value is not finite. */
static NodeId penalty(const Attention *a) {
    int64_t last = type_of(a, a->v).rank - 1;
    NodeId v = as(a, a->v, a->wide), zeros = tg_binary(a->b, OP_mul, v, constant(a, 0, tg_node(a->b->func, v)->type));
    NodeId bad = tg_reduce(a->b, OP_reduce_sum, zeros, &last, 1, 0); /* [N..., KV, S]: 0 or NaN */
    Type heads = type_of(a, bad);
    int64_t dims[TG_MAX_RANK];
    NodeId wide = bad;
    if (a->groups > 1) {
        Type split = heads;
        split.rank++;
        split.dims[a->outer + 1] = heads.dims[a->outer];
        split.dims[a->outer] = (Dim){a->groups, false};
        for (int64_t i = 0; i < heads.rank; i++)
            dims[i] = i < a->outer ? i : i + 1;
        wide = tg_broadcast(a->b, bad, dims, heads.rank, tg_type(&a->graph->types, &split));
        split.dims[a->outer - 1].size *= a->groups;
        split.dims[a->outer] = split.dims[a->outer + 1];
        split.rank--;
        split.dims[split.rank] = (Dim){0};
        wide = tg_reshape(a->b, wide, tg_type(&a->graph->types, &split));
    }
    for (int64_t i = 0; i < heads.rank; i++)
        dims[i] = i < a->outer ? i : i + 1;
    NodeId beside = tg_broadcast(a->b, wide, dims, heads.rank, a->scores);
    return row_reduce(a, OP_reduce_sum, tg_select(a->b, visible(a), beside, constant(a, 0, a->scores)));
}

static NodeId with_penalty(const Attention *a, NodeId x) {
    if (!a->mask)
        return x;
    Type type = type_of(a, x);
    NodeId extra = as(a, penalty(a), type.dtype);
    if (type.scaled) { /* 0 and NaN are what they are with any scale */
        Type scaled = type_of(a, extra);
        scaled.scaled = true;
        extra = tg_build(a->b, OP_convert, NULL, &extra, 1, tg_type(&a->graph->types, &scaled));
    }
    extra = tg_broadcast(a->b, extra, axes_run(a->arena, 0, type.rank - 1).at, type.rank - 1u, tg_node(a->b->func, x)->type);
    return tg_binary(a->b, OP_add, x, extra);
}

static NodeId output(const Attention *a) {
    return with_penalty(a, query_dot(a, weights(a), readable(a, a->v), 2, a->result));
}

/* dS, rounded to the operands' type. */
static NodeId score_gradient(const Attention *a, NodeId cotangent) {
    NodeId p = as(a, weights(a), a->wide);
    NodeId dp = with_penalty(a, query_dot(a, seeing(a, cotangent), readable(a, a->v), 1, a->wide));
    NodeId sum = row_reduce(a, OP_reduce_sum, tg_binary(a->b, OP_mul, p, dp));
    NodeId ds = tg_binary(a->b, OP_mul, p, tg_binary(a->b, OP_sub, dp, along_row(a, sum)));
    return as(a, tg_binary(a->b, OP_mul, ds, constant(a, a->scale, a->scores)), a->dtype);
}

static Attention attention_of(PassContext *context, const Copy *copy, const Node *node, const NodeId *operands) {
    DType dtype = tg_node_type(copy->graph, copy->from, tg_operand(copy->from, node, 0))->dtype;
    bool forward = node->op == OP_attention;
    uint32_t mask = forward ? 3 : 4;
    Attention a = {.b = copy->b, .graph = copy->b->graph, .arena = context->arena, .q = operands[0], .k = operands[1],
                   .v = operands[2], .mask = node->operand_count > mask ? operands[mask] : 0,
                   .causal = tg_attr_int(node->attr, 0, 0) != 0, .scale = node->attr->number, .dtype = dtype,
                   .wide = dtype == DT_F64 ? DT_F64 : DT_F32, .result = tg_type_of(&copy->graph->types, node->type)->dtype};
    Type q = type_of(&a, a.q), k = type_of(&a, a.k);
    a.outer = q.rank - 2;
    a.groups = q.dims[a.outer - 1].size / k.dims[a.outer - 1].size;
    Type scores = q;
    scores.dims[q.rank - 1] = k.dims[k.rank - 2];
    scores.dtype = a.wide;
    a.scores = tg_type(&a.graph->types, &scores);
    return a;
}

/* Long ones stay as they are: a target computes them by blocks of queries, and stores no scores (PlanAttention). */
static bool stays(const Copy *copy, const Node *node) {
    enum { LEAST_POSITIONS = 256 };
    const Type *k = tg_node_type(copy->graph, copy->from, tg_operand(copy->from, node, 1));
    return k->dims[k->rank - 2].size >= LEAST_POSITIONS && tg_attention_is_by_blocks(copy->graph, copy->from, node);
}

static NodeId expand(void *pass_context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Node *node = tg_node(copy->from, id);
    if (node->op < OP_attention || node->op > OP_attention_dv || stays(copy, node) ||
        !tg_needed_rewrite(pass_context, tg_op((Op)node->op)->name, node->locs))
        return 0;
    Attention a = attention_of(pass_context, copy, node, operands);
    switch (node->op) {
    case OP_attention: return output(&a);
    case OP_attention_dq: return query_dot(&a, score_gradient(&a, operands[3]), readable(&a, a.k), 2, a.result);
    case OP_attention_dk: return key_dot(&a, score_gradient(&a, operands[3]), seeing(&a, a.q));
    default: return key_dot(&a, weights(&a), seeing(&a, operands[3]));
    }
}

Status run_attention(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++)
        TG_TRY(tg_copy_replacing(context, in, in->funcs.at[f], *out, expand, context));
    return TG_OK;
}
