#include "passes/validate.h"

#include "passes/step.h"

#include <math.h>
#include <string.h>

enum { ROWS = 3, MOST_ELEMENTS = 1 << 22 };

static Tensor random_tensor(Arena *arena, const Types *types, TypeId id, int64_t rows, int64_t copies, uint64_t seed) {
    const Type *type = tg_type_of(types, id);
    int64_t count = tg_type_count(type, rows) * copies;
    Tensor tensor = {.type = id, .count = count, .at = TG_ALLOC(arena, double, count)};
    for (int64_t i = 0; i < count; i++) {
        double unit = tg_random(seed, 1, 0, 0, (uint64_t)i);
        tensor.at[i] = tg_is_float(type->dtype) ? tg_round_to(type->dtype, 2 * unit - 1)
                       : type->dtype == DT_BOOL ? unit < 0.5
                                                : floor(unit * 4);
    }
    return tensor;
}

void tg_random_state(Arena *arena, const Graph *graph, const Func *func, int64_t rows, EvalState *state) {
    *state = (EvalState){.arena = arena, .mode = EVAL_TYPED, .rows = rows, .seed = 7};
    state->buffers = TG_ALLOC(arena, Tensor, graph->buffers.count);
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        const Buffer *buffer = &graph->buffers.at[i];
        int64_t copies = buffer->lanes ? buffer->lanes : 1;
        state->buffers[i] = random_tensor(arena, &graph->types, buffer->type, rows, copies, 100 + i);
    }
    double *scalars = TG_ALLOC(arena, double, graph->scalars.count);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        scalars[i] = graph->scalars.at[i].value != 0 ? graph->scalars.at[i].value : 1;
    state->scalars = scalars;
    Tensor *args = TG_ALLOC(arena, Tensor, func->args.count);
    for (uint32_t i = 0; i < func->args.count; i++)
        args[i] = random_tensor(arena, &graph->types, func->args.at[i].type, rows, 1, 1000 + i);
    state->args = args;
    Diags quiet;
    tg_diags_init(&quiet, arena, graph->sources, NULL);
    (void)!tg_step_copies(state, &quiet, graph); /* what fails will fail again where it is compared */
}

/* ---- comparing ---- */

/* Two graphs and how far values may lie apart. */
typedef struct Comparison {
    PassContext *context;
    const PassInfo *pass;
    const Graph *before, *after;
    Arena *scratch;
    bool near;        /* in f64; else to the bit, rounded as a program rounds */
    double tolerance; /* of near values: conversions to bf16 and f16, and constants, round in f64 too */
} Comparison;

static bool has_narrow_types(const Graph *graph) {
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (NodeId id = 1; id < graph->funcs.at[f]->nodes.count; id++) {
            DType dtype = tg_node_type(graph, graph->funcs.at[f], id)->dtype;
            if (dtype == DT_BF16 || dtype == DT_F16)
                return true;
        }
    return false;
}

static double tolerance_of(const Graph *graph, PassEffect effect) {
    return has_narrow_types(graph) || tg_is_mixed(&graph->training) ? 0.05 : effect == EFFECT_ROUNDS ? 1e-6 : 1e-9;
}

static bool same(const Comparison *c, double a, double b) {
    if (c->near && isfinite(a) && isfinite(b))
        return fabs(a - b) <= c->tolerance * (1 + fabs(a));
    return a == b ? c->near || signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

static Status compare(const Comparison *c, const char *name, const char *where, LocsId locs, const Tensor *a,
                      const Tensor *b) {
    for (int64_t k = 0; k < a->count; k++) {
        if (b->count == a->count && same(c, a->at[k], b->at[k]))
            continue;
        char text[2][TG_NUMBER_TEXT];
        tg_error(c->context->diags, tg_locs_first(c->before, locs),
                 "pass %s changed element %lld of '%s' in %s from %s to %s", c->pass->name, (long long)k, name, where,
                 tg_number_text(a->at[k], text[0]),
                 b->count == a->count ? tg_number_text(b->at[k], text[1]) : "nothing");
        return TG_INTERNAL;
    }
    return TG_OK;
}

static bool is_large(const Graph *graph, const Func *func, int64_t rows) {
    int64_t total = 0;
    for (NodeId id = 1; func && id < func->nodes.count; id++)
        total += tg_type_count(tg_node_type(graph, func, id), rows);
    return total > MOST_ELEMENTS;
}

static void leave_out(const Comparison *c, const char *what) {
    if (!c->context->too_large)
        tg_note(c->context->diags, (Loc){0},
                "%s has too many elements for --validate, which leaves it out; give it smaller sizes "
                "(--set)",
                what);
    c->context->too_large = true;
}

/* ---- function by function ---- */

static const Result *counterpart(const Func *func, const Result *wanted) {
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        if (result->kind != wanted->kind)
            continue;
        if (result->kind == RESULT_STORE ? result->buffer == wanted->buffer : strcmp(result->name, wanted->name) == 0)
            return result;
    }
    return NULL;
}

static Status run_alone(const Comparison *c, const Graph *graph, const Func *func, Tensor **results) {
    EvalState state;
    tg_random_state(c->scratch, graph, func, ROWS, &state);
    state.mode = c->near ? EVAL_REAL : EVAL_TYPED;
    Tensor *gradients = TG_ALLOC(c->scratch, Tensor, graph->buffers.count);
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        gradients[i] = random_tensor(c->scratch, &graph->types, graph->buffers.at[i].type, ROWS, 1, 2000 + i);
    state.gradients = gradients;
    TG_TRY(tg_step_compute_scalars(&state, c->context->diags, graph));
    *results = TG_ALLOC(c->scratch, Tensor, func->results.count + 1);
    return tg_eval_func(&state, graph, func, c->context->diags, *results);
}

static Status compare_func(const Comparison *c, const Func *old, const Func *fresh) {
    Tensor *a, *b;
    TG_TRY(run_alone(c, c->before, old, &a));
    TG_TRY(run_alone(c, c->after, fresh, &b));
    for (uint32_t i = 0; i < old->results.count; i++) {
        const Result *result = &old->results.at[i], *other = counterpart(fresh, result);
        const char *name = result->kind == RESULT_VALUE ? result->name : c->before->buffers.at[result->buffer].name;
        if (other)
            TG_TRY(compare(c, name, tg_arena_printf(c->scratch, "@%s", old->name), result->locs, &a[i],
                           &b[other - fresh->results.at]));
    }
    return TG_OK;
}

static Status compare_funcs(const Comparison *c) {
    for (uint32_t f = 0; f < c->before->funcs.count; f++) {
        const Func *old = c->before->funcs.at[f];
        const Func *fresh = old->kind == FUNC_KERNEL ? NULL : tg_func_find(c->after, old->kind, old->name);
        if (fresh == NULL || (c->pass->effect == EFFECT_REPLACES && fresh->args.count != old->args.count))
            continue;
        if (is_large(c->before, old, ROWS))
            leave_out(c, tg_arena_printf(c->scratch, "@%s", old->name));
        else
            TG_TRY(compare_func(c, old, fresh));
    }
    return TG_OK;
}

/* ---- whole steps ---- */

enum { STEPS = 2 };

typedef struct Run {
    EvalState state;
    StepFields fields[STEPS + 1]; /* the last: of the evaluation */
} Run;

static const char *const times[STEPS + 1] = {"the first step", "the second step", "the evaluation"};

static const Func *rows_func(const Graph *graph) {
    return tg_func_find(graph, graph->level == LEVEL_MODEL ? FUNC_OBJECTIVE : FUNC_MICRO, NULL);
}

/* The second step has fewer records, if that is possible. */
static Status run_steps(const Comparison *c, const Graph *graph, Run *run) {
    Diags *diags = c->context->diags;
    int64_t batch = graph->training.batch, all = batch;
    tg_random_state(c->scratch, graph, rows_func(graph), STEPS * batch, &run->state);
    run->state.mode = c->near ? EVAL_REAL : EVAL_TYPED;
    tg_step_set_scalar(&run->state, graph, "total_steps", 10);
    StepRecords records = {.fields = run->state.args};
    TG_TRY(tg_step_init(&run->state, diags, graph));
    for (int step = 0; step < STEPS; step++) {
        records.first = step * batch;
        records.count = step && batch > 1 ? batch - 1 : batch;
        all = records.first + records.count;
        run->state.iteration = (uint64_t)step;
        tg_step_set_scalar(&run->state, graph, "step", step + 1);
        TG_TRY(tg_step_run(&run->state, diags, graph, &records, &run->fields[step]));
    }
    records.first = 0;
    records.count = all;
    return tg_step_evaluate(&run->state, diags, graph, &records, &run->fields[STEPS]);
}

static Status compare_fields(const Comparison *c, const StepFields *a, const StepFields *b, const char *when) {
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            if (strcmp(a->names[i], b->names[k]) == 0)
                TG_TRY(compare(c, a->names[i], when, a->locs[i], &(Tensor){.count = 1, .at = &a->values[i]},
                               &(Tensor){.count = 1, .at = &b->values[k]}));
    double finite[2] = {a->finite, b->finite};
    return compare(c, "finite", when, 0, &(Tensor){.count = 1, .at = &finite[0]},
                   &(Tensor){.count = 1, .at = &finite[1]});
}

static Status compare_steps(const Comparison *c) {
    if (!tg_step_is_whole(c->before) || !tg_step_is_whole(c->after))
        return TG_OK;
    const Func *rows = rows_func(c->before);
    if (is_large(c->before, rows, STEPS * c->before->training.batch)) {
        leave_out(c, "a step");
        return TG_OK;
    }
    Run *a = TG_ALLOC(c->scratch, Run, 1), *b = TG_ALLOC(c->scratch, Run, 1);
    TG_TRY(run_steps(c, c->before, a));
    TG_TRY(run_steps(c, c->after, b));
    for (int i = 0; i < STEPS; i++)
        TG_TRY(compare_fields(c, &a->fields[i], &b->fields[i], times[i]));
    for (uint32_t i = 0; i < c->before->buffers.count; i++) {
        const Buffer *buffer = &c->before->buffers.at[i];
        int32_t other = tg_buffer_find(c->after, buffer->name);
        if (buffer->class != BUFFER_SUM && other >= 0)
            TG_TRY(compare(c, buffer->name, "what two steps leave", 0, &a->state.buffers[i], &b->state.buffers[other]));
    }
    return compare_fields(c, &a->fields[STEPS], &b->fields[STEPS], times[STEPS]);
}

/* ---- a pass ---- */

static bool has_gradients(const Graph *graph) { return graph->level == LEVEL_MODEL && tg_step_is_whole(graph); }

static Status compare_gradients(const Comparison *c) {
    EvalState point;
    uint32_t checked;
    const Func *objective = rows_func(c->before);
    if (is_large(c->after, rows_func(c->after), ROWS))
        return TG_OK;
    tg_random_state(c->scratch, c->before, objective, ROWS, &point);
    return tg_validate_gradients(c->context, c->pass, c->before, c->after, &point, &checked);
}

static Status compare_all(Comparison *c) {
    PassEffect effect = c->pass->effect;
    c->tolerance = tolerance_of(c->before, effect);
    c->near = effect == EFFECT_ROUNDS;
    TG_TRY(compare_funcs(c));
    if (!has_gradients(c->before) && has_gradients(c->after))
        return compare_gradients(c);
    c->near = effect == EFFECT_ROUNDS || effect == EFFECT_REPLACES;
    return compare_steps(c);
}

Status tg_validate(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after) {
    Arena scratch;
    tg_arena_init(&scratch, context->arena->host);
    Comparison c = {.context = context, .pass = pass, .before = before, .after = after, .scratch = &scratch};
    Status status = setjmp(scratch.guard) ? TG_MEMORY : compare_all(&c);
    tg_arena_deinit(&scratch);
    return status;
}

/* ---- value by value ---- */

/* The function, giving all of its values. */
static Func all_values(Arena *arena, const Func *func) {
    Func all = *func;
    memset(&all.results, 0, sizeof all.results);
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (tg_node(func, id)->type)
            tg_push(arena, &all.results, (Result){.kind = RESULT_VALUE, .node = id, .name = ""});
    return all;
}

static Tensor *values_of(const Comparison *c, const Graph *graph, const Func *func) {
    Func all = all_values(c->scratch, func);
    Tensor *results, *values = TG_ALLOC(c->scratch, Tensor, func->nodes.count);
    if (run_alone(c, graph, &all, &results) != TG_OK)
        return NULL;
    for (uint32_t i = 0; i < all.results.count; i++)
        values[all.results.at[i].node] = results[i];
    return values;
}

static void find_value(const Comparison *c, const PassMap *map, ValueDiffers *differs) {
    if (is_large(c->before, map->from, ROWS) || is_large(c->after, map->to, ROWS))
        return;
    const Tensor *old = values_of(c, c->before, map->from), *fresh = values_of(c, c->after, map->to);
    for (NodeId id = 1; old && fresh && id < map->from->nodes.count; id++) {
        NodeId copy = map->map[id];
        if (copy == 0 || copy >= map->to->nodes.count || old[id].at == NULL || fresh[copy].count != old[id].count)
            continue;
        for (int64_t k = 0; k < old[id].count; k++)
            if (!same(c, old[id].at[k], fresh[copy].at[k])) {
                *differs = (ValueDiffers){map->from, id, copy, k, old[id].at[k], fresh[copy].at[k]};
                return;
            }
    }
}

void tg_validate_values(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after, const PassMap *map,
                        ValueDiffers *differs) {
    Arena scratch;
    tg_arena_init(&scratch, context->arena->host);
    Comparison c = {.context = context, .pass = pass, .before = before, .after = after, .scratch = &scratch,
                    .near = pass->effect == EFFECT_ROUNDS, .tolerance = tolerance_of(before, pass->effect)};
    if (setjmp(scratch.guard) == 0)
        find_value(&c, map, differs);
    tg_arena_deinit(&scratch);
}
