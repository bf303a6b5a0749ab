/* Contractions and attention, as plain loops. */
#include "ir/dot.h"
#include "ir/eval_rules.h"

#include <math.h>

/* Offsets of all coordinates along some axes of one operand, in row-major order of the axes as listed. */
typedef struct Offsets {
    int64_t count;
    int64_t *at;
} Offsets;

static Offsets offsets_of(EvalCall *call, const Extents *extents, const int64_t *axes, uint32_t count) {
    Offsets offsets = {.count = 1};
    for (uint32_t i = 0; i < count; i++)
        offsets.count *= extents->at[axes[i]];
    offsets.at = TG_ALLOC(call->state->arena, int64_t, offsets.count + 1);
    for (int64_t k = 0; k < offsets.count; k++) {
        int64_t rest = k;
        for (uint32_t i = count; i-- > 0;) {
            offsets.at[k] += rest % extents->at[axes[i]] * extents->stride[axes[i]];
            rest /= extents->at[axes[i]];
        }
    }
    return offsets;
}

static bool has(Ints list, int64_t value) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] == value)
            return true;
    return false;
}

static Offsets free_offsets(EvalCall *call, const Extents *extents, Ints batch, Ints contract) {
    int64_t axes[TG_MAX_RANK];
    uint32_t count = 0;
    for (int i = 0; i < extents->rank; i++)
        if (!has(batch, i) && !has(contract, i))
            axes[count++] = i;
    return offsets_of(call, extents, axes, count);
}

Status eval_dot(EvalCall *call) {
    const Ints *lists = call->node->attr->list;
    Extents a = eval_extents(call, call->operands[0].type), b = eval_extents(call, call->operands[1].type);
    Offsets batch_a = offsets_of(call, &a, lists[0].at, lists[0].count);
    Offsets batch_b = offsets_of(call, &b, lists[1].at, lists[1].count);
    Offsets contract_a = offsets_of(call, &a, lists[2].at, lists[2].count);
    Offsets contract_b = offsets_of(call, &b, lists[3].at, lists[3].count);
    Offsets free_a = free_offsets(call, &a, lists[0], lists[2]), free_b = free_offsets(call, &b, lists[1], lists[3]);
    const double *third = call->node->operand_count == 3 ? call->operands[2].at : NULL;
    bool adds = third && tg_dot_adds(call->graph, call->func, call->node);
    double *to = call->result->at;
    for (int64_t n = 0; n < batch_a.count; n++)
        for (int64_t i = 0; i < free_a.count; i++)
            for (int64_t j = 0; j < free_b.count; j++) {
                const double *x = call->operands[0].at + batch_a.at[n] + free_a.at[i];
                const double *y = call->operands[1].at + batch_b.at[n] + free_b.at[j];
                double sum = 0;
                for (int64_t k = 0; k < contract_a.count; k++)
                    sum += x[contract_a.at[k]] * y[contract_b.at[k]];
                *to = third ? sum + third[adds ? to - call->result->at : j] : sum;
                to++;
            }
    return TG_OK;
}

typedef struct Attention {
    int64_t outer, heads, kv_heads, queries, keys, depth, value_depth;
    double scale;
    bool causal;
    DType dtype; /* of the operands */
    const double *q, *k, *v, *mask; /* mask NULL: all visible */
    double *weights;                /* one query's, per key */
    double penalty;                 /* NaN where a mask lets the query see a value that is not finite, else 0 */
} Attention;

static Attention attention_of(EvalCall *call, uint32_t mask_operand) {
    Extents q = eval_extents(call, call->operands[0].type), k = eval_extents(call, call->operands[1].type);
    Extents v = eval_extents(call, call->operands[2].type);
    Attention a = {.outer = 1, .heads = q.at[q.rank - 3], .kv_heads = k.at[k.rank - 3]};
    for (int i = 0; i < q.rank - 3; i++)
        a.outer *= q.at[i];
    a.queries = q.at[q.rank - 2];
    a.keys = k.at[k.rank - 2];
    a.depth = q.at[q.rank - 1];
    a.value_depth = v.at[v.rank - 1];
    a.causal = eval_int(call, 0, 0) != 0;
    a.dtype = eval_type(call, call->operands[0].type)->dtype;
    a.scale = tg_round_to(a.dtype == DT_F64 ? DT_F64 : DT_F32, call->node->attr->number); /* as the scores */
    a.q = call->operands[0].at;
    a.k = call->operands[1].at;
    a.v = call->operands[2].at;
    a.mask = call->node->operand_count > mask_operand ? call->operands[mask_operand].at : NULL;
    a.weights = TG_ALLOC(call->state->arena, double, a.keys + 1);
    return a;
}

/* One query of one head: places of its row in q (and the cotangent's), and of its head in k and v. */
typedef struct Query {
    int64_t outer, row, kv_head, t;
} Query;

static bool visible(const Attention *a, const Query *query, int64_t s) {
    return (!a->causal || s <= query->t) &&
           (!a->mask || a->mask[(query->outer * a->queries + query->t) * a->keys + s] != 0);
}

static double product(const double *x, const double *y, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* What meets values, keys and queries has their type, if that is a low one. */
static double lowered(const Attention *a, double value) {
    return tg_is_low(a->dtype) ? tg_round_to(a->dtype, value) : value;
}

/* Behind a mask keys and values are not read; what `causal` hides is, with weight 0. */
static bool is_read(const Attention *a, const Query *query, int64_t s) { return !a->mask || visible(a, query, s); }

/* Softmax over the visible keys; false: there is none, and all are 0. */
static bool weigh(Attention *a, const Query *query) {
    double greatest = -INFINITY, sum = 0;
    bool any = false;
    a->penalty = 0;
    for (int64_t s = 0; s < a->keys; s++) {
        a->weights[s] = -INFINITY;
        if (!visible(a, query, s))
            continue;
        const double *key = a->k + (query->kv_head * a->keys + s) * a->depth;
        a->weights[s] = a->scale * product(a->q + query->row * a->depth, key, a->depth);
        greatest = eval_maximum(greatest, a->weights[s]);
        for (int64_t d = 0; a->mask && d < a->value_depth; d++)
            a->penalty += 0 * a->v[(query->kv_head * a->keys + s) * a->value_depth + d];
        any = true;
    }
    for (int64_t s = 0; s < a->keys; s++)
        sum += a->weights[s] = any ? exp(a->weights[s] - greatest) : 0;
    for (int64_t s = 0; any && s < a->keys; s++)
        a->weights[s] = lowered(a, a->weights[s] / sum);
    return any;
}

static void for_each_query(EvalCall *call, Attention *a,
                           void (*visit)(EvalCall *, const Attention *, const Query *)) {
    int64_t group = a->kv_heads ? a->heads / a->kv_heads : 1;
    for (int64_t outer = 0; outer < a->outer; outer++)
        for (int64_t head = 0; head < a->heads; head++)
            for (int64_t t = 0; t < a->queries; t++) {
                Query query = {outer, (outer * a->heads + head) * a->queries + t, outer * a->kv_heads + head / group,
                               t};
                if (weigh(a, &query))
                    visit(call, a, &query);
            }
}

static void add_values(EvalCall *call, const Attention *a, const Query *query) {
    double *to = call->result->at + query->row * a->value_depth;
    for (int64_t d = 0; d < a->value_depth; d++)
        to[d] = a->penalty;
    for (int64_t s = 0; s < a->keys; s++)
        for (int64_t d = 0; is_read(a, query, s) && d < a->value_depth; d++)
            to[d] += a->weights[s] * a->v[(query->kv_head * a->keys + s) * a->value_depth + d];
}

Status eval_attention(EvalCall *call) {
    Attention a = attention_of(call, 3);
    for_each_query(call, &a, add_values);
    return TG_OK;
}

/* g . v_s; of a value that is not read 0 or, with g, NaN. */
static double weight_gradient(const Attention *a, const Query *query, const double *g, int64_t s) {
    const double *value = a->v + (query->kv_head * a->keys + s) * a->value_depth;
    double sum = a->penalty;
    for (int64_t d = 0; d < a->value_depth; d++)
        sum += g[d] * (is_read(a, query, s) ? value[d] : 0);
    return sum;
}

/* Part of a key in a gradient: with a mask, what is not finite as 0. A row that sees NaN is NaN by its weights. */
static double key_at(const Attention *a, int64_t index) { return a->mask && !isfinite(a->k[index]) ? 0 : a->k[index]; }

/* Gradients, with p the weights and g the cotangent's row:
   dv_s += p_s g;  ds_s = p_s (g . v_s - sum_r p_r g . v_r);  dq += scale ds_s k_s;  dk_s += scale ds_s q */
static void add_gradients(EvalCall *call, const Attention *a, const Query *query) {
    const double *g = call->operands[3].at + query->row * a->value_depth;
    double mean = 0;
    for (int64_t s = 0; s < a->keys; s++)
        mean += a->weights[s] * weight_gradient(a, query, g, s);
    for (int64_t s = 0; s < a->keys; s++) {
        int64_t row = query->kv_head * a->keys + s;
        double factor = lowered(a, a->weights[s] * (weight_gradient(a, query, g, s) - mean) * a->scale);
        for (int64_t d = 0; call->node->op == OP_attention_dv && d < a->value_depth; d++)
            call->result->at[row * a->value_depth + d] += a->weights[s] * g[d];
        for (int64_t d = 0; call->node->op == OP_attention_dq && d < a->depth; d++)
            call->result->at[query->row * a->depth + d] += factor * key_at(a, row * a->depth + d);
        for (int64_t d = 0; call->node->op == OP_attention_dk && d < a->depth; d++)
            call->result->at[row * a->depth + d] += factor * a->q[query->row * a->depth + d];
    }
}

static Status attention_gradient(EvalCall *call) {
    Attention a = attention_of(call, 4);
    for_each_query(call, &a, add_gradients);
    return TG_OK;
}

Status eval_attention_dq(EvalCall *call) { return attention_gradient(call); }
Status eval_attention_dk(EvalCall *call) { return attention_gradient(call); }
Status eval_attention_dv(EvalCall *call) { return attention_gradient(call); }
