/* What must hold in a plan so that replaying it touches nothing outside the arena. */
#include "ir/base/vec.h"
#include "ir/plan/plan.h"

#include <stdlib.h>

typedef struct Checker {
    Arena *arena;
    const TgPlan *plan;
    const char *why;
} Checker;

__attribute__((format(printf, 3, 4))) static void require(Checker *c, bool holds, const char *format, ...) {
    if (holds || c->why)
        return;
    va_list args;
    va_start(args, format);
    c->why = tg_arena_printf(c->arena, "damaged plan: %s", tg_arena_vprintf(c->arena, format, args));
    va_end(args);
}

static bool in_range(uint64_t first, uint64_t count, uint64_t all) { return first <= all && count <= all - first; }

/* The product of non-negative sizes, or -1 when one is negative or the product passes 2^63 - 1. */
static int64_t product(const int64_t *sizes, uint32_t count, int64_t start) {
    int64_t all = start;
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] < 0 || __builtin_mul_overflow(all, sizes[i], &all))
            return -1;
    return all;
}

static void check_buffer(Checker *c, uint32_t index) {
    const PlanBuffer *b = &c->plan->buffers[index];
    require(c, b->rank <= TG_PLAN_RANK, "buffer %u has rank %u", index, b->rank);
    if (c->why)
        return;
    int64_t bytes = product(b->dims, b->rank, tg_dtype(b->dtype)->bytes);
    require(c, bytes >= 0 && bytes <= b->bytes, "buffer %u is smaller than its elements", index);
    require(c, b->batch_axis >= -1 && b->batch_axis < b->rank && b->row_size >= 0, "buffer %u has no such batch axis",
            index);
    require(c, b->offset >= 0 && b->offset % 64 == 0, "buffer %u has offset %lld", index, (long long)b->offset);
    bool lanes_fit = b->lanes >= 1 && (b->lanes == 1 || b->lane_bytes >= b->bytes);
    require(c, lanes_fit, "buffer %u has lanes that overlap", index);
    int64_t end;
    bool fits = lanes_fit && b->lane_bytes >= 0 && !__builtin_mul_overflow(b->lanes - 1, b->lane_bytes, &end) &&
                !__builtin_add_overflow(end, b->offset, &end) && !__builtin_add_overflow(end, b->bytes, &end) &&
                end <= c->plan->arena_bytes;
    require(c, fits, "buffer %u ends past the arena", index);
    if (b->class == PLAN_CONST)
        require(c, b->data_offset >= 0 && in_range((uint64_t)b->data_offset, (uint64_t)b->bytes, c->plan->data_bytes),
                "buffer %u has no such constant data", index);
}

static void check_operand(Checker *c, uint32_t index) {
    const PlanOperand *o = &c->plan->step_buffers[index];
    require(c, o->buffer < c->plan->buffer_count, "operand %u names no buffer", index);
    if (c->why)
        return;
    const PlanBuffer *b = &c->plan->buffers[o->buffer];
    require(c, o->lane >= TG_LANE_CURRENT && o->lane < b->lanes, "operand %u names no lane", index);
    require(c, o->byte_offset >= 0 && o->byte_offset <= b->bytes, "operand %u begins past its buffer", index);
}

/* Elements of `strides` steps over `sizes` lie inside the operand. */
static void check_reach(Checker *c, uint32_t step, const PlanOperand *o, DType dtype, const int64_t sizes[4],
                        const int64_t strides[4]) {
    int64_t last = 0;
    bool fits = true;
    for (int i = 0; i < 4; i++) {
        int64_t reach;
        if (sizes[i] == 0)
            return;
        fits = fits && strides[i] >= 0 && !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    int64_t bytes;
    fits = fits && !__builtin_add_overflow(last, 1, &last) &&
           !__builtin_mul_overflow(last, tg_dtype(dtype)->bytes, &bytes) &&
           bytes <= c->plan->buffers[o->buffer].bytes - o->byte_offset;
    require(c, fits, "step %u: a dot reaches past a buffer", step);
}

static void check_dot_step(Checker *c, uint32_t index) {
    const PlanStep *s = &c->plan->steps[index];
    const PlanDot *d = &c->plan->dots[s->index];
    uint32_t wanted = 3u + d->bias + (d->pieces > 1);
    require(c, s->buffer_count == wanted, "step %u: a dot with %u operands, not %u", index, s->buffer_count, wanted);
    if (c->why)
        return;
    const PlanOperand *o = &c->plan->step_buffers[s->buffer_first];
    int64_t outer = d->groups / d->inner;
    check_reach(c, index, &o[0], d->dtype, (int64_t[]){outer, d->inner, d->m, d->k},
                (int64_t[]){d->a_group, d->a_inner, d->a_m, d->a_k});
    check_reach(c, index, &o[1], d->dtype, (int64_t[]){outer, d->inner, d->k, d->n},
                (int64_t[]){d->b_group, d->b_inner, d->b_k, d->b_n});
    check_reach(c, index, &o[2 + d->bias], d->out_dtype, (int64_t[]){outer, d->inner, d->m, d->n},
                (int64_t[]){d->out_group, d->out_inner, d->out_m, 1});
}

static void check_attention_step(Checker *c, uint32_t index) {
    const PlanStep *s = &c->plan->steps[index];
    const PlanAttention *a = &c->plan->attentions[s->index];
    int64_t q[] = {a->keys, a->heads, a->queries, a->depth}, k[] = {a->keys, a->positions, a->depth, 1};
    int64_t v[] = {a->keys, a->positions, a->value_depth, 1}, out[] = {a->keys, a->heads, a->queries, a->value_depth};
    const int64_t *sizes[7] = {q, k, v, out};
    uint32_t wanted = 4;
    if (a->backward && a->dq)
        sizes[wanted++] = q;
    if (a->backward && a->dk)
        sizes[wanted++] = k;
    if (a->backward && a->dv)
        sizes[wanted++] = v;
    require(c, s->buffer_count == wanted, "step %u: an attention with %u operands, not %u", index, s->buffer_count, wanted);
    for (uint32_t i = 0; c->why == NULL && i < wanted; i++) {
        const PlanOperand *o = &c->plan->step_buffers[s->buffer_first + i];
        int64_t bytes = product(sizes[i], 4, tg_dtype(i < (a->backward ? 4 : 3) ? a->dtype : a->out_dtype)->bytes);
        require(c, bytes >= 0 && bytes <= c->plan->buffers[o->buffer].bytes - o->byte_offset,
                "step %u: an attention reaches past a buffer", index);
    }
}

static void check_attention(Checker *c, uint32_t index) {
    const PlanAttention *a = &c->plan->attentions[index];
    require(c, a->keys >= 0 && a->heads >= 1 && a->queries >= 1 && a->positions >= 1 && a->depth >= 1 && a->value_depth >= 1,
            "attention %u has an impossible size", index);
    require(c, (a->dtype == DT_F32 || tg_is_low(a->dtype)) && (a->out_dtype == a->dtype || a->out_dtype == DT_F32),
            "attention %u is of %s to %s, which cannot be", index, tg_dtype(a->dtype)->name, tg_dtype(a->out_dtype)->name);
    require(c, a->weights < c->plan->kernel_count && (!a->backward || a->score_gradient < c->plan->kernel_count),
            "attention %u has no such kernels", index);
}

static void check_dot(Checker *c, uint32_t index) {
    const PlanDot *d = &c->plan->dots[index];
    require(c, d->groups >= 0 && d->m >= 0 && d->n >= 0 && d->k >= 0, "dot %u has a negative size", index);
    require(c, d->inner >= 1 && d->groups % d->inner == 0, "dot %u has %lld groups in runs of %lld", index,
            (long long)d->groups, (long long)d->inner);
    require(c, d->pieces >= 1 && d->k % d->pieces == 0, "dot %u has %lld pieces", index, (long long)d->pieces);
    require(c, !(d->bias && (d->adds || d->continues)) && !(d->adds && d->continues) && (d->pieces > 1 || !(d->continues || d->open)),
            "dot %u adds to what cannot be", index);
    require(c, d->tile_m >= 1 && d->tile_n >= 1, "dot %u has tiles of %lld x %lld", index, (long long)d->tile_m,
            (long long)d->tile_n);
}

static void check_step(Checker *c, uint32_t index) {
    const PlanStep *s = &c->plan->steps[index];
    const uint32_t last[] = {[STEP_KERNEL] = c->plan->kernel_count, [STEP_DOT] = c->plan->dot_count,
                             [STEP_ATTENTION] = c->plan->attention_count, [STEP_COPY] = 1};
    require(c, s->kind == STEP_COPY || s->index < last[s->kind], "step %u has no such kernel, dot or attention", index);
    require(c, s->tiles >= 0, "step %u has %lld tiles", index, (long long)s->tiles);
    require(c,
            in_range(s->buffer_first, s->buffer_count, c->plan->step_buffer_count) &&
                s->buffer_count <= TG_PLAN_STEP_BUFFERS,
            "step %u has no such operands", index);
    require(c, s->line_count <= TG_PLAN_LINES, "step %u has %u lines", index, s->line_count);
    require(c, s->kind != STEP_COPY || s->buffer_count == 2, "step %u: a copy with %u operands", index,
            s->buffer_count);
    if (c->why == NULL && s->kind == STEP_DOT)
        check_dot_step(c, index);
    if (c->why == NULL && s->kind == STEP_ATTENTION)
        check_attention_step(c, index);
}

int64_t tg_plan_tasks(const TgPlan *plan, const PlanStep *step) {
    if (step->kind == STEP_KERNEL)
        return step->tiles;
    if (step->kind == STEP_DOT) {
        const PlanDot *d = &plan->dots[step->index];
        int64_t down = d->m / d->tile_m + (d->m % d->tile_m != 0), across = d->n / d->tile_n + (d->n % d->tile_n != 0);
        return product((int64_t[]){d->pieces, d->groups, down, across}, 4, 1);
    }
    if (step->kind == STEP_ATTENTION) {
        const PlanAttention *a = &plan->attentions[step->index];
        return a->backward ? a->keys : product((int64_t[]){a->keys, a->heads, tg_attention_blocks(a)}, 3, 1);
    }
    return -1;
}

/* Where a buffer of a chain lies. */
typedef struct Stretch {
    int64_t begin, end;
    uint32_t buffer;
} Stretch;

static int by_begin(const void *x, const void *y) {
    const Stretch *a = x, *b = y;
    return a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin) : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* Records one after the other. */
static bool is_by_records(const PlanBuffer *b) {
    for (int i = 0; i < b->batch_axis; i++)
        if (b->dims[i] != 1)
            return false;
    return b->batch_axis >= 0;
}

/* Buffers whose parts are the same bytes may take turns: a thread finds there only what is its own. */
static bool takes_turns(const PlanBuffer *a, const PlanBuffer *b) {
    return a->offset == b->offset && a->bytes == b->bytes && is_by_records(a) && is_by_records(b);
}

/* A thread may be any number of steps ahead of another: what one of them needs must not be overwritten. */
static void check_apart(Checker *c, uint32_t index, const PlanStep *steps, uint32_t count) {
    Vec(Stretch) used = {0};
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t i = 0; i < steps[s].buffer_count; i++) {
            uint32_t buffer = c->plan->step_buffers[steps[s].buffer_first + i].buffer;
            const PlanBuffer *b = &c->plan->buffers[buffer];
            require(c, b->class != PLAN_SUM && b->class != PLAN_SCRATCH, "chain %u uses buffer %u, which has no rows", index, buffer);
            tg_push(c->arena, &used, (Stretch){b->offset, b->offset + b->bytes, buffer});
        }
    if (used.count)
        qsort(used.at, used.count, sizeof *used.at, by_begin);
    const Stretch *last = NULL; /* that ends last */
    for (uint32_t i = 0; i < used.count; i++) {
        const Stretch *at = &used.at[i];
        require(c, last == NULL || last->end <= at->begin || at->end == at->begin ||
                       takes_turns(&c->plan->buffers[last->buffer], &c->plan->buffers[at->buffer]) || last->buffer == at->buffer,
                "chain %u uses buffers %u and %u at one place", index, last ? last->buffer : 0, at->buffer);
        last = last == NULL || at->end > last->end ? at : last;
    }
}

static bool is_of_one_func(const TgPlan *plan, const PlanChain *chain) {
    for (uint32_t i = 0; i < plan->func_count; i++) {
        const PlanFunc *f = &plan->funcs[i];
        if (chain->step_first >= f->step_first &&
            in_range(chain->step_first - f->step_first, chain->step_count, f->step_count))
            return true;
    }
    return false;
}

static void check_chain(Checker *c, uint32_t index) {
    const PlanChain *chain = &c->plan->chains[index];
    require(c, in_range(chain->step_first, chain->step_count, c->plan->step_count) && is_of_one_func(c->plan, chain),
            "chain %u has no such steps", index);
    require(c, chain->step_count >= 2 && chain->parts >= 2, "chain %u has %u steps in %lld parts", index, chain->step_count,
            (long long)chain->parts);
    const PlanChain *before = index ? chain - 1 : NULL;
    require(c, before == NULL || (uint64_t)before->step_first + before->step_count <= chain->step_first,
            "chain %u begins inside of the one before it", index);
    for (uint32_t i = 0; c->why == NULL && i < chain->step_count; i++) {
        const PlanStep *s = &c->plan->steps[chain->step_first + i];
        int64_t tasks = tg_plan_tasks(c->plan, s);
        require(c, tasks > 0 && tasks % chain->parts == 0 && (s->kind != STEP_DOT || c->plan->dots[s->index].pieces == 1),
                "chain %u: step %u is not of %lld parts", index, chain->step_first + i, (long long)chain->parts);
    }
    if (c->why == NULL)
        check_apart(c, index, c->plan->steps + chain->step_first, chain->step_count);
}

static void check_func(Checker *c, uint32_t index) {
    const PlanFunc *f = &c->plan->funcs[index];
    require(c, f->capacity >= 0, "function %u has capacity %lld", index, (long long)f->capacity);
    require(c, in_range(f->step_first, f->step_count, c->plan->step_count), "function %u has no such steps", index);
    require(c, in_range(f->input_first, f->input_count, c->plan->input_count), "function %u has no such inputs", index);
    require(c, in_range(f->result_first, f->result_count, c->plan->result_count), "function %u has no such results",
            index);
}

static void check_field(Checker *c, uint32_t index) {
    const PlanField *f = &c->plan->fields[index];
    require(c, f->rank <= TG_PLAN_RANK, "field %u has rank %u", index, f->rank);
    if (c->why == NULL)
        require(c, product(f->dims, f->rank, tg_dtype(f->dtype)->bytes) >= 0, "field %u is too large", index);
}

static void check_set(Checker *c, const PlanDataSet *set, const char *name) {
    require(c, in_range(set->field_first, set->field_count, c->plan->field_count), "the %s data has no such fields",
            name);
    require(c, in_range(set->split_first, set->split_count, c->plan->split_count), "the %s data has no such splits",
            name);
    require(c, set->by <= set->field_count && set->stratify <= set->field_count,
            "the %s data is split by a field that it has not", name);
}

static void check_plan(Checker *c) {
    const TgPlan *p = c->plan;
    require(c, p->arena_bytes >= 0 && p->persistent_bytes >= 0 && p->persistent_bytes <= p->arena_bytes,
            "its memory has impossible sizes");
    require(c, p->batch >= 0 && p->micro >= 0 && p->lanes >= 0 && p->steps_wanted >= 0 && p->epochs >= 0 &&
                   p->validate_every >= 0,
            "a size of the batch is negative");
    for (uint32_t i = 0; i < p->buffer_count; i++)
        check_buffer(c, i);
    for (uint32_t i = 0; i < p->step_buffer_count; i++)
        check_operand(c, i);
    for (uint32_t i = 0; i < p->dot_count; i++)
        check_dot(c, i);
    for (uint32_t i = 0; i < p->attention_count; i++)
        check_attention(c, i);
    for (uint32_t i = 0; i < p->step_count && c->why == NULL; i++)
        check_step(c, i);
    for (uint32_t i = 0; i < p->func_count; i++)
        check_func(c, i);
    for (uint32_t i = 0; i < p->chain_count && c->why == NULL; i++)
        check_chain(c, i);
    for (uint32_t i = 0; i < p->input_count; i++)
        require(c, p->inputs[i] < p->buffer_count, "input %u names no buffer", i);
    for (uint32_t i = 0; i < p->result_count; i++)
        require(c, p->results[i].buffer < p->buffer_count, "result %u names no buffer", i);
    for (uint32_t i = 0; i < p->field_count; i++)
        check_field(c, i);
    check_set(c, &p->train, "training");
    for (uint32_t i = 0; i < p->validate_count; i++)
        check_set(c, &p->validate[i], "validation");
}

Status tg_plan_check(Arena *arena, const TgPlan *plan, const char **why) {
    Checker c = {.arena = arena, .plan = plan};
    check_plan(&c);
    *why = c.why;
    return c.why ? TG_INTERNAL : TG_OK;
}
