#include "passes/validate.h"

#include <math.h>
#include <string.h>

enum { ROWS = 3, MOST_ELEMENTS = 1 << 22 };

static Tensor random_tensor(Arena *arena, const Types *types, TypeId id, int64_t rows, int64_t copies, uint64_t seed) {
    const Type *type = tg_type_of(types, id);
    int64_t count = tg_type_count(type, rows) * copies;
    Tensor tensor = {.type = id, .count = count, .at = TG_ALLOC(arena, double, count)};
    for (int64_t i = 0; i < count; i++) {
        double unit = tg_random(seed, 1, 0, 0, (uint64_t)i);
        tensor.at[i] = tg_is_float(type->dtype)    ? tg_round_to(type->dtype, 2 * unit - 1)
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
}

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

static bool same(double a, double b) { return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b); }

static Status compare(PassContext *context, const PassInfo *pass, const Graph *graph, const Func *before, const Func *after,
                      const Tensor *old, const Tensor *fresh) {
    for (uint32_t i = 0; i < before->results.count; i++) {
        const Result *result = &before->results.at[i], *other = counterpart(after, result);
        if (other == NULL)
            continue;
        const Tensor *a = &old[i], *b = &fresh[other - after->results.at];
        const char *name = result->kind == RESULT_VALUE ? result->name : graph->buffers.at[result->buffer].name;
        for (int64_t k = 0; k < a->count; k++) {
            if (b->count == a->count && same(a->at[k], b->at[k]))
                continue;
            char text[2][TG_NUMBER_TEXT];
            tg_error(context->diags, tg_locs_first(graph, result->locs),
                     "pass %s changed element %lld of '%s' in @%s from %s to %s", pass->name, (long long)k, name, before->name,
                     tg_number_text(a->at[k], text[0]), b->count == a->count ? tg_number_text(b->at[k], text[1]) : "nothing");
            return TG_INTERNAL;
        }
    }
    return TG_OK;
}

static bool is_large(const Graph *graph, const Func *func) {
    int64_t total = 0;
    for (NodeId id = 1; id < func->nodes.count; id++)
        total += tg_type_count(tg_node_type(graph, func, id), ROWS);
    return total > MOST_ELEMENTS;
}

Status tg_validate(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after) {
    if (pass->effect == EFFECT_ROUNDS)
        return TG_OK;
    for (uint32_t f = 0; f < before->funcs.count; f++) {
        const Func *old = before->funcs.at[f];
        const Func *fresh = old->kind == FUNC_KERNEL ? NULL : tg_func_find(after, old->kind, old->name);
        bool replaced = pass->effect == EFFECT_REPLACES && (!fresh || fresh->args.count != old->args.count);
        if (fresh == NULL || replaced || is_large(before, old) || old->kind == FUNC_UPDATE)
            continue;
        EvalState state;
        tg_random_state(context->arena, before, old, ROWS, &state);
        Tensor *results = TG_ALLOC(context->arena, Tensor, old->results.count);
        TG_TRY(tg_eval_func(&state, before, old, context->diags, results));
        tg_random_state(context->arena, after, fresh, ROWS, &state);
        Tensor *others = TG_ALLOC(context->arena, Tensor, fresh->results.count);
        TG_TRY(tg_eval_func(&state, after, fresh, context->diags, others));
        TG_TRY(compare(context, pass, before, old, fresh, results, others));
    }
    return TG_OK;
}
