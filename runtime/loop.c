#include "runtime/loop.h"

#include <string.h>

double *tg_loop_builtin(Loop *loop, const char *name) {
    for (uint32_t i = 0; i < loop->plan->scalar_count; i++)
        if (loop->plan->scalars[i].class == PLAN_SCALAR_BUILTIN && strcmp(loop->plan->scalars[i].name, name) == 0)
            return &loop->values[i];
    return &loop->ignored;
}

static bool field_of(const RecordSet *set, const PlanFunc *func, uint32_t input, const char *name, uint32_t *field) {
    for (uint32_t i = 0; i < set->field_count; i++)
        if (strcmp(set->fields[i].name, name) == 0) {
            *field = i;
            return true;
        }
    *field = input;
    return func->input_count == set->field_count;
}

static Status open_func(Loop *loop, const PlanFunc *func, const RecordSet *set, LoopFunc *made, const char **why) {
    *made = (LoopFunc){.func = func};
    if (func == NULL || set == NULL)
        return TG_OK;
    made->inputs = TG_ALLOC(loop->arena, unsigned char *, func->input_count);
    made->fields = TG_ALLOC(loop->arena, uint32_t, func->input_count);
    for (uint32_t i = 0; i < func->input_count; i++) {
        uint32_t index = loop->plan->inputs[func->input_first + i];
        const PlanBuffer *buffer = &loop->plan->buffers[index];
        int64_t bytes = tg_data_bytes(buffer->dtype, buffer->rank, buffer->dims);
        if (!field_of(set, func, i, buffer->name, &made->fields[i]) ||
            bytes != (int64_t)set->record_bytes[made->fields[i]] * func->capacity) {
            *why = tg_arena_printf(loop->arena, "input '%s' of the plan's function '%s' fits no field of the data",
                                   buffer->name, func->name);
            return TG_INTERNAL;
        }
        made->inputs[i] = tg_exec_address(loop->exec, index, 0);
    }
    return TG_OK;
}

static void open_fields(Loop *loop, const PlanFunc *func, LoopFields *fields) {
    *fields = (LoopFields){0};
    if (func == NULL)
        return;
    fields->count = func->result_count;
    fields->names = TG_ALLOC(loop->arena, const char *, fields->count);
    fields->buffers = TG_ALLOC(loop->arena, uint32_t, fields->count);
    fields->values = TG_ALLOC(loop->arena, double, fields->count);
    for (uint32_t i = 0; i < fields->count; i++) {
        const PlanResult *result = &loop->plan->results[func->result_first + i];
        fields->names[i] = result->name;
        fields->buffers[i] = result->buffer;
    }
}

static Status open_sets(Loop *loop, const RecordSet *sets, uint32_t count, const char **why) {
    const PlanFunc *micro = tg_plan_func(loop->plan, PLAN_EVAL_MICRO, NULL);
    loop->set_count = micro != NULL ? count : 0;
    loop->sets = TG_ALLOC(loop->arena, LoopSet, loop->set_count + 1);
    for (uint32_t i = 0; i < loop->set_count; i++) {
        LoopSet *set = &loop->sets[i];
        *set = (LoopSet){.as = sets[i].plan->as, .data = &sets[i]};
        TG_TRY(open_func(loop, micro, set->data, &set->micro, why));
        open_fields(loop, tg_plan_func(loop->plan, PLAN_EVAL_FIELDS, NULL), &set->fields);
    }
    return TG_OK;
}

static const void *tail_value(const Loop *loop, const char *name) {
    for (uint32_t i = 0; loop->tail != NULL && i < loop->tail->result_count; i++) {
        const PlanResult *result = &loop->plan->results[loop->tail->result_first + i];
        if (strcmp(result->name, name) == 0)
            return tg_exec_address(loop->exec, result->buffer, 0);
    }
    return NULL;
}

static void open_gate(Loop *loop) {
    loop->finite = tail_value(loop, "finite");
    loop->open = tail_value(loop, "open");
    loop->overflowed = tail_value(loop, "overflowed");
    loop->loss_scale = tail_value(loop, "loss_scale");
    loop->skipped_steps = tail_value(loop, "skipped_steps");
}

Status tg_loop_open(Loop *loop, Arena *arena, const TgPlan *plan, TgExec *exec, const RecordSet *train,
                    const RecordSet *sets, uint32_t set_count, const char **why) {
    *loop = (Loop){
        .arena = arena, .plan = plan, .exec = exec, .scalars = tg_exec_scalars(exec), .values = tg_exec_values(exec)};
    loop->step = tg_loop_builtin(loop, "step");
    loop->total_steps = tg_loop_builtin(loop, "total_steps");
    loop->epoch = tg_loop_builtin(loop, "epoch");
    loop->records = tg_loop_builtin(loop, "records");
    loop->lane_start = tg_loop_builtin(loop, "lane_start");
    loop->micros = plan->micro > 0 ? (plan->batch + plan->micro - 1) / plan->micro : 1;
    loop->lanes = plan->lanes < loop->micros ? plan->lanes : loop->micros;
    if (loop->lanes < 1 || loop->micros % loop->lanes != 0) {
        *why = tg_arena_printf(arena, "the plan has %lld lanes for %lld micro-batches", (long long)plan->lanes,
                               (long long)loop->micros);
        return TG_INTERNAL;
    }
    loop->micros_per_lane = loop->micros / loop->lanes;
    loop->pre = TG_ALLOC(arena, LoopFunc, plan->func_count + 1);
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (plan->funcs[i].kind == PLAN_PRE)
            TG_TRY(open_func(loop, &plan->funcs[i], train, &loop->pre[loop->pre_count++], why));
    TG_TRY(open_func(loop, tg_plan_func(plan, PLAN_MICRO, NULL), train, &loop->micro, why));
    loop->tail = tg_plan_func(plan, PLAN_TAIL, NULL);
    loop->after = tg_plan_func(plan, PLAN_FIELDS, NULL);
    open_fields(loop, loop->after, &loop->fields);
    open_gate(loop);
    return open_sets(loop, sets, set_count, why);
}

static void read_fields(Loop *loop, LoopFields *fields) {
    for (uint32_t i = 0; i < fields->count; i++)
        fields->values[i] = tg_element_get(loop->plan->buffers[fields->buffers[i]].dtype,
                                           tg_exec_address(loop->exec, fields->buffers[i], 0), 0);
}

static void run_micro(Loop *loop, const LoopFunc *func, const Batch *batch, int64_t micro, int64_t lane,
                      bool lane_start) {
    int64_t capacity = func->func->capacity, first = micro * capacity, left = batch->count - first;
    int64_t rows = left < 0 ? 0 : left < capacity ? left : capacity;
    for (uint32_t i = 0; i < func->func->input_count; i++)
        tg_batch_copy(batch, func->fields[i], rows > 0 ? first : 0, rows, capacity, func->inputs[i]);
    loop->scalars->rows = rows;
    loop->scalars->first_row = first;
    *loop->lane_start = lane_start ? 1 : 0;
    tg_exec_run(loop->exec, func->func, lane);
}

/* Every micro-batch runs, those without records too: they add exact zeros. */
static void sweep(Loop *loop, const LoopFunc *func, const Batch *batch) {
    for (int64_t m = 0; m < loop->micros; m++)
        run_micro(loop, func, batch, m, m / loop->micros_per_lane, m % loop->micros_per_lane == 0);
}

StepEnd tg_loop_step(Loop *loop, const Batch *batch, const LoopPlace *place) {
    *loop->step = (double)place->step;
    *loop->epoch = (double)place->epoch;
    *loop->records = (double)batch->count;
    loop->scalars->iteration = (uint64_t)place->iteration;
    tg_exec_compute_scalars(loop->exec);
    for (uint32_t i = 0; i < loop->pre_count; i++)
        sweep(loop, &loop->pre[i], batch);
    sweep(loop, &loop->micro, batch);
    if (loop->after != NULL) /* before the update: fields may read parameters and states */
        tg_exec_run(loop->exec, loop->after, 0);
    if (loop->tail != NULL)
        tg_exec_run(loop->exec, loop->tail, 0);
    read_fields(loop, &loop->fields);
    if (loop->finite != NULL && *loop->finite == 0)
        return loop->overflowed != NULL && *loop->overflowed != 0 ? STEP_OVERFLOWED : STEP_NOT_FINITE;
    return loop->open == NULL || *loop->open != 0 ? STEP_DONE : STEP_EMPTY;
}

static void evaluate(Loop *loop, LoopSet *set) {
    Batch all = {.set = set->data, .records = set->data->records, .count = set->data->count};
    int64_t capacity = set->micro.func->capacity;
    int64_t micros = (all.count + capacity - 1) / capacity, lanes = loop->plan->lanes;
    if (micros < lanes) /* every lane is begun: eval.fields reads all */
        micros = lanes;
    *loop->records = (double)all.count;
    tg_exec_compute_scalars(loop->exec);
    for (int64_t m = 0; m < micros; m++)
        run_micro(loop, &set->micro, &all, m, m % lanes, m < lanes);
    const PlanFunc *after = tg_plan_func(loop->plan, PLAN_EVAL_FIELDS, NULL);
    if (after != NULL)
        tg_exec_run(loop->exec, after, 0);
    read_fields(loop, &set->fields);
}

void tg_loop_evaluate(Loop *loop) {
    for (uint32_t i = 0; i < loop->set_count; i++)
        evaluate(loop, &loop->sets[i]);
}

void tg_loop_step_dots(Loop *loop) {
    for (int64_t m = 0; m < loop->micros; m++) {
        for (uint32_t i = 0; i < loop->pre_count; i++)
            tg_exec_run_dots(loop->exec, loop->pre[i].func);
        tg_exec_run_dots(loop->exec, loop->micro.func);
    }
    if (loop->tail != NULL)
        tg_exec_run_dots(loop->exec, loop->tail);
    if (loop->after != NULL)
        tg_exec_run_dots(loop->exec, loop->after);
}

static double copy_seconds(const Loop *loop, const Roof *roof, const PlanFunc *func) {
    double seconds = 0;
    for (uint32_t i = 0; func != NULL && i < func->step_count; i++) {
        const PlanStep *step = &loop->plan->steps[func->step_first + i];
        seconds += step->kind != STEP_DOT ? tg_roof_seconds(roof, step->bytes, 0) : 0;
    }
    return seconds;
}

static double update_bytes(const TgPlan *plan) {
    double gradient_reads = plan->clip_setting[0] != '\0' ? 2 : 1, bytes = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class == PLAN_PARAM && !buffer->frozen)
            bytes += (2 + gradient_reads) * (double)buffer->bytes;
        if (buffer->class == PLAN_OPTIMIZER)
            bytes += 2 * (double)buffer->bytes;
    }
    return bytes;
}

double tg_loop_copy_seconds(const Loop *loop, const Roof *roof) {
    double micro = copy_seconds(loop, roof, loop->micro.func);
    for (uint32_t i = 0; i < loop->pre_count; i++)
        micro += copy_seconds(loop, roof, loop->pre[i].func);
    return (double)loop->micros * micro + copy_seconds(loop, roof, loop->after) +
           tg_roof_seconds(roof, update_bytes(loop->plan), 0);
}
