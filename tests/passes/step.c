#include "step.h"

#include <CUnit/CUnit.h>
#include <string.h>

void step_set_scalar(EvalState *state, const Graph *graph, const char *name, double value) {
    int32_t index = tg_scalar_find(graph, name);
    if (index >= 0)
        ((double *)state->scalars)[index] = value;
}

static Tensor *run_func(EvalState *state, Diags *diags, const Graph *graph, const Func *func) {
    Tensor *results = TG_ALLOC(state->arena, Tensor, func->results.count + 1);
    CU_ASSERT_EQUAL_FATAL(tg_eval_func(state, graph, func, diags, results), TG_OK);
    return results;
}

/* Stores a function's results; a sum goes to `lane` of its buffer. */
static void store_results(EvalState *state, const Graph *graph, const Func *func, const Tensor *results, int64_t lane) {
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        if (result->kind != RESULT_STORE)
            continue;
        Tensor *to = &state->buffers[result->buffer];
        int64_t offset = graph->buffers.at[result->buffer].class == BUFFER_SUM ? lane * results[i].count : 0;
        memcpy(to->at + offset, results[i].at, (size_t)results[i].count * sizeof(double));
    }
}

static void compute_scalars(EvalState *state, Diags *diags, const Graph *graph) {
    const Func *func = tg_func_find(graph, FUNC_SCALARS, NULL);
    Tensor *results = run_func(state, diags, graph, func);
    for (uint32_t i = 0; i < func->results.count; i++)
        step_set_scalar(state, graph, func->results.at[i].name, results[i].at[0]);
}

/* Rows [first, first + rows) of every field as the function's arguments. */
static const Tensor *rows_of(EvalState *state, const Func *func, const Tensor *fields, int64_t records, int64_t first,
                             int64_t rows) {
    Tensor *args = TG_ALLOC(state->arena, Tensor, func->args.count);
    for (uint32_t i = 0; i < func->args.count; i++) {
        int64_t width = fields[i].count / records;
        args[i] = (Tensor){.type = func->args.at[i].type, .count = rows * width, .at = fields[i].at + first * width};
    }
    return args;
}

static void run_rows(EvalState *state, Diags *diags, const Graph *graph, const Func *func, const Tensor *fields,
                     int64_t records, int64_t micros, bool evaluates) {
    int64_t lanes = graph->training.lanes < micros || evaluates ? graph->training.lanes : micros;
    for (int64_t m = 0; m < micros; m++) {
        int64_t first = m * graph->training.micro, rows = records - first;
        rows = rows < 0 ? 0 : rows < graph->training.micro ? rows : graph->training.micro;
        first = rows ? first : 0;
        int64_t lane = evaluates ? m % lanes : m / (micros / lanes);
        bool starts = evaluates ? m < lanes : m % (micros / lanes) == 0;
        state->rows = rows;
        state->first_row = first;
        state->args = rows_of(state, func, fields, records, first, rows);
        state->lane = lane;
        step_set_scalar(state, graph, "lane_start", starts);
        store_results(state, graph, func, run_func(state, diags, graph, func), lane);
    }
}

static void read_fields(EvalState *state, Diags *diags, const Graph *graph, FuncKind kind, double *values) {
    const Func *func = tg_func_find(graph, kind, NULL);
    Tensor *results = run_func(state, diags, graph, func);
    for (uint32_t i = 0; i < func->results.count; i++)
        values[i] = results[i].at[0];
}

bool step_run(EvalState *state, Diags *diags, const Graph *graph, const Tensor *fields, int64_t records, double *values) {
    const Training *training = &graph->training;
    int64_t micros = (training->batch + training->micro - 1) / training->micro;
    step_set_scalar(state, graph, "records", (double)records);
    compute_scalars(state, diags, graph);
    for (uint32_t i = 0; i < graph->funcs.count; i++)
        if (graph->funcs.at[i]->kind == FUNC_PRE)
            run_rows(state, diags, graph, graph->funcs.at[i], fields, records, micros, false);
    run_rows(state, diags, graph, tg_func_find(graph, FUNC_MICRO, NULL), fields, records, micros, false);
    read_fields(state, diags, graph, FUNC_FIELDS, values); /* before the update: they may read parameters and states */
    const Func *tail = tg_func_find(graph, FUNC_TAIL, NULL);
    Tensor *results = run_func(state, diags, graph, tail);
    bool finite = true;
    for (uint32_t i = 0; i < tail->results.count; i++)
        if (tail->results.at[i].kind == RESULT_VALUE && strcmp(tail->results.at[i].name, "finite") == 0)
            finite = results[i].at[0] != 0;
    store_results(state, graph, tail, results, 0);
    return finite;
}

void step_evaluate(EvalState *state, Diags *diags, const Graph *graph, const Tensor *fields, int64_t records, double *values) {
    int64_t micros = (records + graph->training.micro - 1) / graph->training.micro;
    step_set_scalar(state, graph, "records", (double)records);
    compute_scalars(state, diags, graph);
    run_rows(state, diags, graph, tg_func_find(graph, FUNC_EVAL_MICRO, NULL), fields, records,
             micros < graph->training.lanes ? graph->training.lanes : micros, true);
    read_fields(state, diags, graph, FUNC_EVAL_FIELDS, values);
}

void step_init(EvalState *state, Diags *diags, const Graph *graph) {
    const Func *func = tg_func_find(graph, FUNC_INIT, NULL);
    store_results(state, graph, func, run_func(state, diags, graph, func), 0);
}
