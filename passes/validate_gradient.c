#include "passes/validate.h"

#include "passes/scaler.h"
#include "passes/vjp.h"

#include <math.h>
#include <string.h>

enum { DIRECTIONS = 3 };

typedef struct Differences {
    const Graph *graph;
    const Func *func;
    EvalState state; /* at the point */
    uint64_t seed;   /* of the direction */
    NodeId loss;
    Tensor *held; /* values at the point: where gradients stop, differences do */
} Differences;

static bool is_trained(const Buffer *buffer) { return buffer->class == BUFFER_PARAM && !buffer->frozen; }

static double direction(const Differences *d, uint32_t buffer, int64_t element) {
    return 2 * tg_random(d->seed, buffer, 0, 0, (uint64_t)element) - 1;
}

/* All values of the function, `h` along the direction away from the point. */
static Status forward(const Differences *d, double h, const Tensor *held, Tensor *values) {
    EvalState state = d->state;
    state.buffers = tg_arena_copy(state.arena, state.buffers, d->graph->buffers.count * sizeof(Tensor));
    for (uint32_t i = 0; i < d->graph->buffers.count; i++) {
        Tensor *buffer = &state.buffers[i];
        if (!is_trained(&d->graph->buffers.at[i]))
            continue;
        buffer->at = tg_arena_copy(state.arena, buffer->at, (size_t)buffer->count * sizeof(double));
        for (int64_t k = 0; k < buffer->count; k++)
            buffer->at[k] += h * direction(d, i, k);
    }
    Tensor *operands = TG_ALLOC(state.arena, Tensor, d->func->operands.count + 1);
    for (NodeId id = 1; id < d->func->nodes.count; id++) {
        const Node *node = tg_node(d->func, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = values[tg_operand(d->func, node, i)];
        bool stops = tg_vjp_stops((Op)node->op) || !tg_is_float(tg_node_type(d->graph, d->func, id)->dtype);
        if (held && stops)
            values[id] = held[id];
        else
            TG_TRY(tg_eval_node(&state, d->graph, d->func, id, operands, &values[id]));
    }
    return TG_OK;
}

static Status loss_at(const Differences *d, double h, double *loss) {
    Tensor *values = TG_ALLOC(d->state.arena, Tensor, d->func->nodes.count);
    TG_TRY(forward(d, h, d->held, values));
    *loss = values[d->loss].at[0];
    return TG_OK;
}

/* The slope along the direction, and whether it is one: at a kink the slopes to both sides stay apart as h shrinks. */
static Status measure(const Differences *d, double *slope, double *doubt, bool *smooth) {
    double h = 1e-4, here, at[2][2], central[2], apart[2];
    TG_TRY(loss_at(d, 0, &here));
    for (int i = 0; i < 2; i++) {
        double step = h / (1 + i);
        TG_TRY(loss_at(d, step, &at[i][0]));
        TG_TRY(loss_at(d, -step, &at[i][1]));
        central[i] = (at[i][0] - at[i][1]) / (2 * step);
        apart[i] = fabs(at[i][0] - 2 * here + at[i][1]) / step;
    }
    *slope = (4 * central[1] - central[0]) / 3;
    double noise = 1e-7 * (1 + fabs(here) + fabs(*slope));
    *doubt = fabs(central[0] - central[1]) + 10 * noise;
    *smooth =
        isfinite(*slope) && *doubt <= 1e-3 * (1 + fabs(*slope)) + 10 * noise && apart[1] <= 0.6 * apart[0] + noise;
    return TG_OK;
}

/* The gradients' slope along the direction; the first of their places. */
static double given_slope(const Differences *d, const Func *func, const Tensor *results, LocsId *locs) {
    double slope = 0;
    *locs = 0;
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        if (result->kind != RESULT_VALUE || strncmp(result->name, "gradient.", 9) != 0)
            continue;
        uint32_t buffer = (uint32_t)tg_buffer_find(d->graph, result->name + 9);
        for (int64_t k = 0; k < results[i].count; k++)
            slope += results[i].at[k] * direction(d, buffer, k);
        *locs = *locs ? *locs : result->locs;
    }
    return slope;
}

/* Rounding makes stairs, which have no slope. */
static bool rounds(const Graph *graph, const Func *func) {
    for (NodeId id = 1; id < func->nodes.count; id++) {
        DType dtype = tg_node_type(graph, func, id)->dtype;
        if (dtype == DT_BF16 || dtype == DT_F16)
            return true;
    }
    return false;
}

/* Buffers that the pass has added: the scale of the loss, on which gradients do not depend. */
static Tensor *with_added(const Differences *d, const Graph *after) {
    Arena *arena = d->state.arena;
    Tensor *buffers = TG_ALLOC(arena, Tensor, after->buffers.count + 1);
    for (uint32_t i = 0; i < after->buffers.count; i++) {
        TypeId type = after->buffers.at[i].type;
        int64_t count = tg_type_count(tg_type_of(&after->types, type), d->state.rows);
        if (i < d->graph->buffers.count) {
            buffers[i] = d->state.buffers[i];
            continue;
        }
        buffers[i] = (Tensor){type, count, TG_ALLOC(arena, double, count + 1)};
        for (int64_t k = 0; k < count; k++)
            buffers[i].at[k] = TG_FIRST_SCALE;
    }
    return buffers;
}

Status tg_validate_gradients(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after,
                             const EvalState *point, uint32_t *checked) {
    const Func *func = tg_func_find(before, FUNC_OBJECTIVE, NULL), *joint = tg_func_find(after, FUNC_OBJECTIVE, NULL);
    *checked = 0;
    Differences d = {.graph = before, .func = func, .state = *point};
    for (uint32_t i = 0; i < func->results.count; i++)
        if (tg_is_loss(before, &func->results.at[i]))
            d.loss = func->results.at[i].node;
    if (d.loss == 0 || rounds(before, func))
        return TG_OK;
    Arena *scratch = point->arena;
    d.state.mode = EVAL_REAL;
    Tensor *held = TG_ALLOC(scratch, Tensor, func->nodes.count),
           *results = TG_ALLOC(scratch, Tensor, joint->results.count);
    TG_TRY(forward(&d, 0, NULL, held));
    d.held = held;
    EvalState state = d.state;
    state.buffers = with_added(&d, after);
    TG_TRY(tg_eval_func(&state, after, joint, context->diags, results));
    for (d.seed = 41; d.seed < 41 + DIRECTIONS; d.seed++) {
        LocsId locs;
        double slope, doubt, given = given_slope(&d, joint, results, &locs);
        bool smooth;
        TG_TRY(measure(&d, &slope, &doubt, &smooth));
        if (!smooth || !isfinite(given))
            continue;
        ++*checked;
        if (fabs(slope - given) <= doubt)
            continue;
        char text[2][TG_NUMBER_TEXT];
        tg_error(context->diags, tg_locs_first(after, locs),
                 "pass %s gives gradients along which the loss should change by %s, but it changes by %s", pass->name,
                 tg_number_text(given, text[0]), tg_number_text(slope, text[1]));
        return TG_INTERNAL;
    }
    return TG_OK;
}
