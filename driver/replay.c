/* tgc replay PROGRAM DUMP: runs the step that a program dumped once more, every operation a kernel of its own (the bits are the
   same), and names the first value that is not finite on the way to the loss. */
#include "driver/unfused.h"
#include "ir/base/file.h"
#include "ir/plan/plan_codec.h"
#include "runtime/safetensors.h"
#include "runtime/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Replay {
    Pipeline *p;
    const TgPlan *recorded; /* of the program */
    TensorFile dump;
    Unfused unfused;
    TgExec *exec;
    uint32_t *writer; /* per buffer: 1 + the step that wrote it */
    bool *bad;        /* per step: something that it wrote is not finite */
} Replay;

/* The plan lies in the program's file as it was written; its head says how long it is. */
static Status find_plan(Replay *r, const char *path) {
    char *text;
    size_t length;
    const char *why = NULL;
    if (tg_file_read(r->p->arena, path, &text, &length, &why) != TG_OK) {
        tg_error(r->p->diags, (Loc){0}, "%s", why);
        return TG_IO;
    }
    for (char *at = text; (at = memmem(at, length - (size_t)(at - text), PLAN_MAGIC, strlen(PLAN_MAGIC))); at++) {
        size_t rest = length - (size_t)(at - text);
        uint64_t bytes = 0;
        if (rest < PLAN_HEAD)
            break;
        memcpy(&bytes, at + PLAN_HEAD_BYTES, sizeof bytes);
        TgPlan *plan;
        if (bytes <= rest - PLAN_HEAD && tg_plan_read(r->p->arena, at, PLAN_HEAD + bytes, &plan, &why) == TG_OK) {
            r->recorded = plan;
            return TG_OK;
        }
    }
    tg_error(r->p->diags, (Loc){0}, "%s is no program of tgc%s%s", path, why ? ": " : "", why ? why : "");
    return TG_MODEL;
}

/* Source lines are shown if the file is still there. */
static void find_source(Replay *r) {
    const char *path = r->recorded->source_path, *why;
    char *text;
    size_t length;
    if (tg_file_read(r->p->arena, path, &text, &length, &why) == TG_OK)
        tg_source_add(r->p->sources, r->p->arena, path, text, length);
}

static Status compile(Replay *r) {
    Pipeline *p = r->p;
    Graph *step;
    const char *text = r->recorded->model_text;
    find_source(r);
    TG_TRY(tg_graph_parse(p->arena, p->diags, p->sources, "the program's graph", text, strlen(text), &step));
    return unfused_make(p, step, text, &r->unfused);
}

static const char *note_of(const Replay *r, const char *name) {
    for (uint32_t i = 0; i < r->dump.notes.count; i++)
        if (strcmp(r->dump.notes.at[i].name, name) == 0)
            return r->dump.notes.at[i].text;
    return "0";
}

static Status restore(Replay *r) {
    const TgPlan *plan = r->unfused.lowered.plan;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class != PLAN_PARAM && buffer->class != PLAN_STATE && buffer->class != PLAN_OPTIMIZER)
            continue;
        const Tensor *tensor = tg_tensor_find(&r->dump, buffer->name);
        if (tensor == NULL || tensor->bytes != (size_t)buffer->bytes) {
            tg_error(r->p->diags, (Loc){0}, "%s does not fit the program: '%s' is %s", r->dump.path, buffer->name,
                     tensor ? "of another size" : "missing");
            return TG_MODEL;
        }
        memcpy(tg_exec_address(r->exec, i, 0), tensor->values, tensor->bytes);
    }
    tg_weights_copy(r->exec, plan);
    for (uint32_t i = 0; i < plan->scalar_count; i++)
        tg_exec_values(r->exec)[i] = strtod(note_of(r, tg_arena_printf(r->p->arena, "scalar.%s", plan->scalars[i].name)), NULL);
    TgScalars *scalars = tg_exec_scalars(r->exec);
    scalars->iteration = strtoull(note_of(r, "iteration"), NULL, 10);
    scalars->seed = strtoull(note_of(r, "seed"), NULL, 10);
    return TG_OK;
}

static bool is_finite(const Replay *r, const PlanOperand *operand, int64_t lane) {
    const PlanBuffer *buffer = &r->unfused.lowered.plan->buffers[operand->buffer];
    if (tg_dtype(buffer->dtype)->kind != KIND_FLOAT)
        return true;
    int64_t at = operand->lane == TG_LANE_CURRENT ? lane : operand->lane;
    const void *values = tg_exec_address(r->exec, operand->buffer, at < buffer->lanes ? at : 0);
    int64_t count = buffer->bytes / tg_dtype(buffer->dtype)->bytes;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(tg_element_get(buffer->dtype, values, i)))
            return false;
    return true;
}

/* What a step has written. */
static void look(void *context, uint32_t index, int64_t lane) {
    Replay *r = context;
    const TgPlan *plan = r->unfused.lowered.plan;
    const PlanStep *step = &plan->steps[index];
    for (uint32_t k = unfused_first_output(&r->unfused.lowered, step); k < step->buffer_count; k++) {
        const PlanOperand *operand = &plan->step_buffers[step->buffer_first + k];
        bool scratch = plan->buffers[operand->buffer].class == PLAN_SCRATCH;
        if (!scratch)
            r->writer[operand->buffer] = 1 + index;
        r->bad[index] |= !scratch && !is_finite(r, operand, lane);
    }
}

static const PlanOperand *bad_input(const Replay *r, const PlanStep *step, int64_t lane) {
    const PlanOperand *operands = r->unfused.lowered.plan->step_buffers + step->buffer_first;
    for (uint32_t k = 0; k < unfused_first_output(&r->unfused.lowered, step); k++) {
        uint32_t writer = r->writer[operands[k].buffer];
        if (writer ? r->bad[writer - 1] : !is_finite(r, &operands[k], lane))
            return &operands[k];
    }
    return NULL;
}

static const char *kind_of(PlanBufferClass class) {
    return class == PLAN_INPUT ? "the data's field" : class == PLAN_PARAM ? "parameter" : "state";
}

/* From a bad sum back to where all that went in was finite. */
static void blame(Replay *r, uint32_t index, int64_t lane) {
    const TgPlan *plan = r->unfused.lowered.plan;
    for (;;) {
        const PlanStep *step = &plan->steps[index];
        const PlanOperand *input = bad_input(r, step, lane);
        const PlanLine *line = &step->lines[0];
        const char *file = step->line_count ? line->file : "";
        if (input == NULL) {
            printf("%s:%u:%u: %s gives a value that is not finite here, from finite ones\n", file,
                   step->line_count ? line->line : 0, step->line_count ? line->column : 0, step->label);
            return;
        }
        const PlanBuffer *buffer = &plan->buffers[input->buffer];
        uint32_t writer = r->writer[input->buffer];
        if (writer == 0 || writer == 1 + index) {
            printf("%s:%u:%u: %s '%s' is not finite; it is read here\n", file, step->line_count ? line->line : 0,
                   step->line_count ? line->column : 0, kind_of(buffer->class), buffer->name);
            return;
        }
        index = writer - 1;
    }
}

static void fill_inputs(Replay *r, const PlanFunc *func, int64_t first, int64_t rows) {
    const TgPlan *plan = r->unfused.lowered.plan;
    for (uint32_t i = 0; i < func->input_count; i++) {
        uint32_t index = plan->inputs[func->input_first + i];
        const PlanBuffer *buffer = &plan->buffers[index];
        const Tensor *tensor = tg_tensor_find(&r->dump, tg_arena_printf(r->p->arena, "batch.%s", buffer->name));
        size_t row = func->capacity ? (size_t)(buffer->bytes / func->capacity) : 0;
        char *to = tg_exec_address(r->exec, index, 0);
        memset(to, 0, (size_t)buffer->bytes);
        if (tensor && ((size_t)first + (size_t)rows) * row <= tensor->bytes)
            memcpy(to, (const char *)tensor->values + (size_t)first * row, (size_t)rows * row);
    }
}

/* Every micro-batch of a function over rows; the lane of the first one that gave something bad, or -1. */
static int64_t run_rows(Replay *r, const PlanFunc *func, int64_t records) {
    const TgPlan *plan = r->unfused.lowered.plan;
    int64_t micros = (plan->batch + plan->micro - 1) / plan->micro;
    int64_t lanes = plan->lanes < micros ? plan->lanes : micros;
    for (int64_t m = 0; m < micros; m++) {
        int64_t first = m * plan->micro, rows = records - first;
        rows = rows < 0 ? 0 : rows < plan->micro ? rows : plan->micro;
        TgScalars *scalars = tg_exec_scalars(r->exec);
        scalars->rows = rows;
        scalars->first_row = first;
        for (uint32_t i = 0; i < plan->scalar_count; i++)
            if (strcmp(plan->scalars[i].name, "lane_start") == 0)
                tg_exec_values(r->exec)[i] = m % (micros / lanes) == 0;
        fill_inputs(r, func, rows ? first : 0, rows);
        int64_t lane = m / (micros / lanes);
        tg_exec_run(r->exec, func, lane);
        for (uint32_t i = 0; i < func->step_count; i++)
            if (r->bad[func->step_first + i])
                return lane;
    }
    return -1;
}

/* The step that made the first bad sum: a field's before a gradient's, since gradients inherit. UINT32_MAX: none. */
static uint32_t bad_sum(const Replay *r) {
    const TgPlan *plan = r->unfused.lowered.plan;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        uint32_t writer = r->writer[i];
        if (plan->buffers[i].class != PLAN_SUM || writer == 0 || !r->bad[writer - 1])
            continue;
        if (strncmp(plan->buffers[i].name, "field.", 6) == 0)
            return writer - 1;
        found = found == UINT32_MAX ? writer - 1 : found;
    }
    return found;
}

static bool search(Replay *r) {
    const TgPlan *plan = r->unfused.lowered.plan;
    int64_t records = strtoll(note_of(r, "records"), NULL, 10), lane = -1;
    for (uint32_t i = 0; i < plan->func_count && lane < 0; i++)
        if (plan->funcs[i].kind == PLAN_PRE || plan->funcs[i].kind == PLAN_MICRO)
            lane = run_rows(r, &plan->funcs[i], records);
    uint32_t sum = bad_sum(r);
    if (sum != UINT32_MAX) {
        blame(r, sum, lane < 0 ? 0 : lane);
        return true;
    }
    const PlanFunc *tail = tg_plan_func(plan, PLAN_TAIL, NULL);
    tg_exec_run(r->exec, tail, 0);
    for (uint32_t i = 0; i < tail->step_count; i++)
        if (r->bad[tail->step_first + i]) {
            blame(r, tail->step_first + i, 0);
            return true;
        }
    return false;
}

static Status replay(Replay *r) {
    Pipeline *p = r->p;
    TG_TRY(compile(r));
    const TgPlan *plan = r->unfused.lowered.plan;
    ExecOptions options = {.host = p->arena->host, .threads = 1, .library_directory = tg_library_directory(p->arena)};
    const char *why;
    Status status = tg_exec_open(&options, p->arena, &r->unfused.program, plan, &r->exec, &why);
    if (status != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s", why);
        return status;
    }
    r->writer = TG_ALLOC(p->arena, uint32_t, plan->buffer_count);
    r->bad = TG_ALLOC(p->arena, bool, plan->step_count);
    status = restore(r);
    tg_exec_watch(r->exec, look, r);
    bool found = status == TG_OK && search(r);
    tg_exec_close(r->exec);
    unfused_free(&r->unfused);
    if (status == TG_OK && !found) {
        tg_error(p->diags, (Loc){0}, "every value of this step is finite");
        return TG_MODEL;
    }
    return status;
}

Status command_replay(Pipeline *p) {
    if (p->cli->arguments.count != 2) {
        tg_error(p->diags, (Loc){0}, "tgc replay takes a program and the file that it dumped");
        return TG_USAGE;
    }
    Replay r = {.p = p};
    TG_TRY(find_plan(&r, p->cli->arguments.at[0]));
    const char *why;
    Status status = tg_tensors_read(p->arena, p->cli->arguments.at[1], &r.dump, &why);
    if (status != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s", why);
        return status;
    }
    return replay(&r);
}
