#include "codegen/attention.h"

#include "codegen/scalar.h"

/* What a kernel of one query needs to know. */
typedef struct Row {
    LoopKernel *k;
    LoopId base;      /* of the row */
    LoopId seen, end; /* positions: the query sees [0, seen), its block has [0, end) */
    int64_t positions;
    LoopId scale;
} Row;

static LoopId integer(LoopKernel *k, int64_t value) { return tg_loop_int(k, DT_I64, value); }

static Row begin(LoopKernel *k, const PlanAttention *a, double scale) {
    k->tiles = a->queries;
    LoopId query = tg_loop_for(k, MODE_TILE, integer(k, 0), integer(k, a->queries), a->queries);
    LoopId block = integer(k, TG_ATTENTION_BLOCK), positions = integer(k, a->positions), one = integer(k, 1);
    Row r = {.k = k, .positions = a->positions, .seen = positions, .end = positions};
    r.base = tg_loop_op(k, LOOP_imul, query, positions, 0);
    if (a->causal) {
        LoopId next = tg_loop_op(k, LOOP_iadd, tg_loop_op(k, LOOP_idiv, query, block, 0), one, 0);
        r.seen = tg_loop_op(k, LOOP_imin, tg_loop_op(k, LOOP_iadd, query, one, 0), positions, 0);
        r.end = tg_loop_op(k, LOOP_imin, tg_loop_op(k, LOOP_imul, next, block, 0), positions, 0);
    }
    r.scale = tg_loop_number(k, DT_F32, scale);
    return r;
}

static void over_seen(const Row *r) { (void)tg_loop_for(r->k, MODE_VECTOR, integer(r->k, 0), r->seen, r->positions); }

static LoopId load(const Row *r, uint32_t buffer) { return scalar_convert(r->k, tg_loop_load(r->k, buffer, r->base, 1), DT_F32); }

static void store(const Row *r, uint32_t buffer, LoopId value) {
    tg_loop_store(r->k, buffer, r->base, 1, scalar_convert(r->k, value, r->k->buffers.at[buffer].dtype));
}

/* Zeros from what the query sees to its block's end, and the end of the kernel. */
static LoopKernel *finish(const Row *r, uint32_t buffer) {
    (void)tg_loop_for(r->k, MODE_VECTOR, r->seen, r->end, r->positions);
    store(r, buffer, tg_loop_number(r->k, DT_F32, 0));
    tg_loop_end(r->k);
    tg_loop_end(r->k);
    return r->k;
}

LoopKernel *tg_attention_weights(Arena *arena, const char *name, const PlanAttention *a, double scale) {
    LoopKernel *k = tg_loop_kernel(arena, name);
    uint32_t scores = tg_loop_buffer(k, ROLE_OUT, DT_F32, a->queries * a->positions), weights = scores;
    if (a->dtype != DT_F32)
        weights = tg_loop_buffer(k, ROLE_OUT, a->dtype, a->queries * a->positions);
    Row r = begin(k, a, scale);
    over_seen(&r);
    LoopId most = tg_loop_op(k, LOOP_reduce_max, scalar_mul(k, DT_F32, load(&r, scores), r.scale), 0, 0);
    tg_loop_end(k);
    over_seen(&r);
    LoopId score = scalar_mul(k, DT_F32, load(&r, scores), r.scale);
    LoopId exp = scalar_exp(k, DT_F32, scalar_sub(k, DT_F32, score, most));
    store(&r, scores, exp);
    LoopId sum = tg_loop_op(k, LOOP_reduce_sum, exp, 0, 0);
    tg_loop_end(k);
    LoopId share = scalar_div(k, DT_F32, tg_loop_number(k, DT_F32, 1), sum);
    over_seen(&r);
    store(&r, weights, scalar_mul(k, DT_F32, load(&r, scores), share));
    tg_loop_end(k);
    return finish(&r, weights);
}

LoopKernel *tg_attention_score_gradient(Arena *arena, const char *name, const PlanAttention *a, double scale) {
    LoopKernel *k = tg_loop_kernel(arena, name);
    bool low = a->dtype != DT_F32;
    uint32_t weights = tg_loop_buffer(k, ROLE_IN, a->dtype, a->queries * a->positions);
    uint32_t gradient = tg_loop_buffer(k, low ? ROLE_IN : ROLE_OUT, DT_F32, a->queries * a->positions), scores = gradient;
    if (low)
        scores = tg_loop_buffer(k, ROLE_OUT, a->dtype, a->queries * a->positions);
    Row r = begin(k, a, scale);
    over_seen(&r);
    LoopId sum = tg_loop_op(k, LOOP_reduce_sum, scalar_mul(k, DT_F32, load(&r, weights), load(&r, gradient)), 0, 0);
    tg_loop_end(k);
    over_seen(&r);
    LoopId beyond = scalar_sub(k, DT_F32, load(&r, gradient), sum);
    store(&r, scores, scalar_mul(k, DT_F32, scalar_mul(k, DT_F32, load(&r, weights), beyond), r.scale));
    tg_loop_end(k);
    return finish(&r, scores);
}
