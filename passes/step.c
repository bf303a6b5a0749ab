#include "passes/step.h"

#include "passes/scaler.h"

#include <math.h>
#include <string.h>

static const char gradient_prefix[] = "gradient.";

static bool is_value(const Result *result, const char *name) {
    return result->kind == RESULT_VALUE && strcmp(result->name, name) == 0;
}

static bool is_gradient(const Result *result) {
    return result->kind == RESULT_VALUE && strncmp(result->name, gradient_prefix, strlen(gradient_prefix)) == 0;
}

static bool has_gradients(const Func *objective) {
    for (uint32_t i = 0; objective && i < objective->results.count; i++)
        if (is_gradient(&objective->results.at[i]))
            return true;
    return false;
}

/* A record is an element of every argument's first dimension. */
static bool takes_records(const Graph *graph, const Func *func) {
    for (uint32_t i = 0; func && i < func->args.count; i++)
        if (tg_type_batch_axis(tg_type_of(&graph->types, func->args.at[i].type)) != 0)
            return false;
    return func != NULL;
}

bool tg_step_is_whole(const Graph *graph) {
    if (!tg_has_batch(&graph->training))
        return false;
    if (!takes_records(graph, tg_func_find(graph, graph->level == LEVEL_MODEL ? FUNC_OBJECTIVE : FUNC_MICRO, NULL)))
        return false;
    if (graph->level == LEVEL_MODEL)
        return has_gradients(tg_func_find(graph, FUNC_OBJECTIVE, NULL)) && tg_func_find(graph, FUNC_UPDATE, NULL);
    return tg_func_find(graph, FUNC_TAIL, NULL) && tg_func_find(graph, FUNC_FIELDS, NULL);
}

void tg_step_set_scalar(EvalState *state, const Graph *graph, const char *name, double value) {
    int32_t index = tg_scalar_find(graph, name);
    if (index >= 0)
        ((double *)state->scalars)[index] = value;
}

static Status run_func(EvalState *state, Diags *diags, const Graph *graph, const Func *func, Tensor **results) {
    *results = TG_ALLOC(state->arena, Tensor, func->results.count + 1);
    return tg_eval_func(state, graph, func, diags, *results);
}

/* Stores a function's results; a sum goes to the current lane of its buffer. */
static void store_results(EvalState *state, const Graph *graph, const Func *func, const Tensor *results) {
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        if (result->kind != RESULT_STORE)
            continue;
        Tensor *to = &state->buffers[result->buffer];
        int64_t offset = graph->buffers.at[result->buffer].class == BUFFER_SUM ? state->lane * results[i].count : 0;
        memcpy(to->at + offset, results[i].at, (size_t)results[i].count * sizeof(double));
    }
}

static void set_records(EvalState *state, const Graph *graph, const Func *func, const StepRecords *records,
                        int64_t first, int64_t rows) {
    Tensor *args = TG_ALLOC(state->arena, Tensor, func->args.count);
    for (uint32_t i = 0; i < func->args.count; i++) {
        int64_t width = tg_type_count(tg_type_of(&graph->types, func->args.at[i].type), 1);
        args[i] = (Tensor){.type = func->args.at[i].type,
                           .count = rows * width,
                           .at = records->fields[i].at + (records->first + first) * width};
    }
    state->args = args;
    state->rows = rows;
    state->first_row = first;
}

static StepFields new_fields(EvalState *state, const Func *func) {
    StepFields fields = {.finite = true};
    fields.names = TG_ALLOC(state->arena, const char *, func->results.count + 1);
    fields.locs = TG_ALLOC(state->arena, LocsId, func->results.count + 1);
    fields.values = TG_ALLOC(state->arena, double, func->results.count + 1);
    return fields;
}

static void read_fields(const Func *func, const Tensor *results, StepFields *fields) {
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        if (result->kind != RESULT_VALUE || is_gradient(result) || is_value(result, TG_EMPTY_LOSS))
            continue;
        fields->names[fields->count] = result->name;
        fields->locs[fields->count] = result->locs;
        fields->values[fields->count++] = results[i].at[0];
    }
}

/* ---- graph@model ---- */

static bool all_finite(const Tensor *x) {
    for (int64_t i = 0; i < x->count; i++)
        if (!isfinite(x->at[i]))
            return false;
    return true;
}

/* torch.nn.utils.clip_grad_norm_ */
static void clip(EvalState *state, const Training *training, Tensor *gradients, uint32_t count) {
    double squares = 0, most = training->clip_scalar >= 0 ? state->scalars[training->clip_scalar] : training->clip_norm;
    for (uint32_t i = 0; i < count; i++)
        for (int64_t k = 0; k < gradients[i].count; k++)
            squares += gradients[i].at[k] * gradients[i].at[k];
    double factor = fmin(most / (sqrt(squares) + 1e-6), 1);
    for (uint32_t i = 0; i < count; i++)
        for (int64_t k = 0; k < gradients[i].count; k++)
            gradients[i].at[k] *= factor;
}

/* Gradients by buffer, as the leaves of an update read them that the pass optimizer has or has not `gated`. */
static void bind_gradients(EvalState *state, const Graph *graph, const Func *objective, const Tensor *results,
                           bool gated, bool *finite) {
    Tensor *gradients = TG_ALLOC(state->arena, Tensor, graph->buffers.count + 1);
    for (uint32_t i = 0; i < objective->results.count; i++) {
        const Result *result = &objective->results.at[i];
        if (!is_gradient(result))
            continue;
        int32_t buffer = tg_buffer_find(graph, result->name + strlen(gradient_prefix));
        Tensor *gradient = &gradients[buffer];
        *gradient = results[i];
        gradient->at = tg_arena_copy(state->arena, results[i].at, (size_t)results[i].count * sizeof(double));
        *finite = *finite && all_finite(gradient);
    }
    if (!gated && (graph->training.clip_norm > 0 || graph->training.clip_scalar >= 0))
        clip(state, &graph->training, gradients, graph->buffers.count);
    state->gradients = gradients;
}

static Tensor *result_named(const Func *func, Tensor *results, const char *name) {
    for (uint32_t i = 0; i < func->results.count; i++)
        if (is_value(&func->results.at[i], name))
            return &results[i];
    return NULL;
}

/* As the pass optimizer does it. */
static void move_scale(EvalState *state, const Graph *graph, bool finite) {
    int32_t at = tg_buffer_find(graph, TG_SCALE_STATE);
    if (at < 0)
        return;
    double *scale = state->buffers[at].at, *good = state->buffers[tg_buffer_find(graph, TG_GOOD_STATE)].at;
    state->buffers[tg_buffer_find(graph, TG_SKIPPED_STATE)].at[0] += !finite;
    *good = finite ? *good + 1 : 0;
    if (!finite)
        *scale = fmax(*scale / 2, 1);
    if (*good < TG_GOOD_STEPS)
        return;
    *good = 0;
    *scale = fmin(*scale * 2, TG_MOST_SCALE);
}

static Status run_model(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records,
                        StepFields *fields) {
    const Func *objective = tg_func_find(graph, FUNC_OBJECTIVE, NULL), *update = tg_func_find(graph, FUNC_UPDATE, NULL);
    Tensor *forward, *updated;
    set_records(state, graph, objective, records, 0, records->count);
    TG_TRY(run_func(state, diags, graph, objective, &forward));
    *fields = new_fields(state, objective);
    read_fields(objective, forward, fields);
    const Tensor *loss = result_named(objective, forward, graph->training.loss);
    const Tensor *empty = result_named(objective, forward, TG_EMPTY_LOSS);
    bool gated = update->args.count > 0;
    fields->finite = loss && isfinite(loss->at[0]);
    bind_gradients(state, graph, objective, forward, gated, &fields->finite);
    Tensor args[2] = {loss ? *loss : (Tensor){0}, empty ? *empty : (Tensor){0}};
    state->args = args;
    TG_TRY(run_func(state, diags, graph, update, &updated));
    state->args = NULL;
    bool open = fields->finite && !(empty && empty->at[0] != 0);
    if (open)
        store_results(state, graph, objective, forward);
    if (open || gated)
        store_results(state, graph, update, updated);
    if (!gated)
        move_scale(state, graph, fields->finite);
    return TG_OK;
}

static Status evaluate_model(EvalState *state, Diags *diags, const Graph *graph, const Func *func,
                             const StepRecords *records, StepFields *fields) {
    Tensor *results;
    set_records(state, graph, func, records, 0, records->count);
    TG_TRY(run_func(state, diags, graph, func, &results));
    read_fields(func, results, fields);
    return TG_OK;
}

/* ---- graph@step, graph@kernel ---- */

Status tg_step_compute_scalars(EvalState *state, Diags *diags, const Graph *graph) {
    const Func *func = tg_func_find(graph, FUNC_SCALARS, NULL);
    Tensor *results;
    if (func == NULL)
        return TG_OK;
    TG_TRY(run_func(state, diags, graph, func, &results));
    for (uint32_t i = 0; i < func->results.count; i++)
        tg_step_set_scalar(state, graph, func->results.at[i].name, results[i].at[0]);
    return TG_OK;
}

Status tg_step_copies(EvalState *state, Diags *diags, const Graph *graph) {
    const Func *func = tg_func_find(graph, FUNC_COPIES, NULL);
    Tensor *results;
    if (func == NULL)
        return TG_OK;
    TG_TRY(run_func(state, diags, graph, func, &results));
    store_results(state, graph, func, results);
    return TG_OK;
}

/* Micro-batches without records run too. */
static Status run_rows(EvalState *state, Diags *diags, const Graph *graph, const Func *func, const StepRecords *records,
                       int64_t micros, bool evaluates) {
    const Training *training = &graph->training;
    int64_t lanes = training->lanes < micros || evaluates ? training->lanes : micros;
    for (int64_t m = 0; m < micros; m++) {
        int64_t first = m * training->micro, rows = records->count - first;
        rows = rows < 0 ? 0 : rows < training->micro ? rows : training->micro;
        set_records(state, graph, func, records, rows ? first : 0, rows);
        state->first_row = first;
        state->lane = evaluates ? m % lanes : m / (micros / lanes);
        bool starts = evaluates ? m < lanes : m % (micros / lanes) == 0;
        tg_step_set_scalar(state, graph, "lane_start", starts);
        Tensor *results;
        TG_TRY(run_func(state, diags, graph, func, &results));
        store_results(state, graph, func, results);
    }
    state->lane = 0;
    return TG_OK;
}

static Status run_fields(EvalState *state, Diags *diags, const Graph *graph, FuncKind kind, StepFields *fields) {
    const Func *func = tg_func_find(graph, kind, NULL);
    Tensor *results;
    *fields = new_fields(state, func);
    TG_TRY(run_func(state, diags, graph, func, &results));
    read_fields(func, results, fields);
    return TG_OK;
}

static Status run_functions(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records,
                            StepFields *fields) {
    const Training *training = &graph->training;
    int64_t micros = (training->batch + training->micro - 1) / training->micro;
    TG_TRY(tg_step_compute_scalars(state, diags, graph));
    TG_TRY(tg_step_copies(state, diags, graph));
    for (uint32_t i = 0; i < graph->funcs.count; i++)
        if (graph->funcs.at[i]->kind == FUNC_PRE)
            TG_TRY(run_rows(state, diags, graph, graph->funcs.at[i], records, micros, false));
    TG_TRY(run_rows(state, diags, graph, tg_func_find(graph, FUNC_MICRO, NULL), records, micros, false));
    /* Before the update: they may read parameters and states. */
    TG_TRY(run_fields(state, diags, graph, FUNC_FIELDS, fields));
    const Func *tail = tg_func_find(graph, FUNC_TAIL, NULL);
    Tensor *results;
    TG_TRY(run_func(state, diags, graph, tail, &results));
    const Tensor *finite = result_named(tail, results, "finite");
    fields->finite = !finite || finite->at[0] != 0;
    store_results(state, graph, tail, results);
    return TG_OK;
}

Status tg_step_run(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records, StepFields *fields) {
    tg_step_set_scalar(state, graph, "records", (double)records->count);
    return graph->level == LEVEL_MODEL ? run_model(state, diags, graph, records, fields)
                                       : run_functions(state, diags, graph, records, fields);
}

Status tg_step_evaluate(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records,
                        StepFields *fields) {
    *fields = (StepFields){.finite = true};
    bool is_model = graph->level == LEVEL_MODEL;
    const Func *func = tg_func_find(graph, is_model ? FUNC_OBJECTIVE_EVAL : FUNC_EVAL_MICRO, NULL);
    if (func == NULL)
        return TG_OK;
    tg_step_set_scalar(state, graph, "records", (double)records->count);
    if (is_model) {
        *fields = new_fields(state, func);
        return evaluate_model(state, diags, graph, func, records, fields);
    }
    int64_t micros = (records->count + graph->training.micro - 1) / graph->training.micro;
    TG_TRY(tg_step_compute_scalars(state, diags, graph));
    TG_TRY(tg_step_copies(state, diags, graph));
    TG_TRY(run_rows(state, diags, graph, func, records, micros < graph->training.lanes ? graph->training.lanes : micros,
                    true));
    return run_fields(state, diags, graph, FUNC_EVAL_FIELDS, fields);
}

Status tg_step_init(EvalState *state, Diags *diags, const Graph *graph) {
    const Func *func = tg_func_find(graph, FUNC_INIT, NULL);
    Tensor *results;
    if (func == NULL)
        return TG_OK;
    TG_TRY(tg_step_compute_scalars(state, diags, graph));
    TG_TRY(run_func(state, diags, graph, func, &results));
    store_results(state, graph, func, results);
    return TG_OK;
}
