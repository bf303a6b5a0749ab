#include "runtime/exec.h"

#include "runtime/cpu/pool.h"
#include "runtime/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ExecStep {
    PlanStepKind kind;
    bool split;
    TgKernel *kernel;
    TgDeviceDot *dot;
    TgDeviceAttention *attention;
    int64_t tiles;
    size_t copy_bytes;
    void **pointers;     /* [lanes][buffers] */
    int64_t lane_stride; /* in pointers; 0: the same for every lane */
    TgDeviceChain *chain; /* that begins here and is worth sharing out, or NULL */
} ExecStep;

/* A COMPUTED scalar: where the function leaves it, and its place among the values. */
typedef struct ComputedScalar {
    double *value;
    const void *result;
    DType dtype;
} ComputedScalar;

struct TgExec {
    const TgHost *host;
    Arena memory;
    const TgProgram *program;
    const TgPlan *plan;
    TgDevice *device;
    int threads;
    char *arena;
    ExecStep *steps;
    TgScalars scalars;
    double *values;
    const PlanFunc *scalars_func;
    ComputedScalar *computed;
    uint32_t computed_count;
    Profile *profile; /* NULL: none */
    TgSeen *seen;     /* NULL: nobody is told */
    void *seen_context;
    char why[TG_DEVICE_WHY];
};

const PlanFunc *tg_plan_func(const TgPlan *plan, PlanFuncKind kind, const char *name) {
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (plan->funcs[i].kind == kind && (!name || strcmp(plan->funcs[i].name, name) == 0))
            return &plan->funcs[i];
    return NULL;
}

static Status choose_threads(TgExec *exec, int wanted) {
    const char *text = getenv("TG_THREADS");
    if (wanted == 0 && text && *text) {
        char *end;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (errno || *end || value < 1 || value > TG_MOST_THREADS) {
            snprintf(exec->why, sizeof exec->why, "TG_THREADS=%s is not a number of threads (1 to %d)", text,
                     TG_MOST_THREADS);
            return TG_USAGE;
        }
        wanted = (int)value;
    }
    exec->threads = wanted > 0 ? wanted : tg_pool_cores();
    if (exec->threads > TG_MOST_THREADS)
        exec->threads = TG_MOST_THREADS;
    return TG_OK;
}

static int64_t bytes_of(const PlanBuffer *buffer) {
    int64_t bytes = tg_dtype(buffer->dtype)->bytes;
    for (int i = 0; i < buffer->rank; i++)
        bytes *= buffer->dims[i];
    return bytes;
}

static Status find_kernel(TgExec *exec, uint32_t index, TgKernel **kernel) {
    if (index >= exec->program->kernel_count) {
        snprintf(exec->why, sizeof exec->why, "the plan names kernel %u, the program has %u", index,
                 exec->program->kernel_count);
        return TG_INTERNAL;
    }
    *kernel = exec->program->kernels[index];
    return TG_OK;
}

/* What a step runs; its pointers come when there is memory. */
static Status prepare_step(TgExec *exec, const PlanStep *from, ExecStep *step) {
    const TgPlan *plan = exec->plan;
    step->kind = from->kind;
    step->tiles = from->tiles;
    switch (from->kind) {
    case STEP_KERNEL:
        TG_TRY(find_kernel(exec, from->index, &step->kernel));
        step->split = from->tiles > 1 && exec->device->ops->splits(exec->device, from, 1);
        return TG_OK;
    case STEP_DOT: {
        const PlanDot *dot = &plan->dots[from->index];
        DType bias = dot->bias ? plan->buffers[plan->step_buffers[from->buffer_first + 2].buffer].dtype : DT_F32;
        return exec->device->ops->dot_prepare(exec->device, dot, bias, &step->dot);
    }
    case STEP_ATTENTION: {
        const PlanAttention *attention = &plan->attentions[from->index];
        TgKernel *weights, *score_gradient = NULL;
        TG_TRY(find_kernel(exec, attention->weights, &weights));
        if (attention->backward)
            TG_TRY(find_kernel(exec, attention->score_gradient, &score_gradient));
        return exec->device->ops->attention_prepare(exec->device, attention, weights, score_gradient, &step->attention);
    }
    case STEP_COPY:
        step->copy_bytes = (size_t)bytes_of(&plan->buffers[plan->step_buffers[from->buffer_first + 1].buffer]);
    }
    return TG_OK;
}

static void *operand_address(const TgExec *exec, const PlanOperand *operand, int64_t lane) {
    const PlanBuffer *buffer = &exec->plan->buffers[operand->buffer];
    int64_t of = operand->lane == TG_LANE_CURRENT ? lane : operand->lane;
    return (char *)tg_plan_address(buffer, exec->arena, of < buffer->lanes ? of : 0) + operand->byte_offset;
}

static void resolve_pointers(TgExec *exec, const PlanStep *from, ExecStep *step) {
    const PlanOperand *operands = exec->plan->step_buffers + from->buffer_first;
    int64_t lanes = 1;
    for (uint32_t i = 0; i < from->buffer_count; i++) {
        int64_t has = exec->plan->buffers[operands[i].buffer].lanes;
        if (operands[i].lane == TG_LANE_CURRENT && has > lanes)
            lanes = has;
    }
    step->pointers = TG_ALLOC(&exec->memory, void *, lanes * from->buffer_count);
    step->lane_stride = lanes > 1 ? from->buffer_count : 0;
    for (int64_t lane = 0; lane < lanes; lane++)
        for (uint32_t i = 0; i < from->buffer_count; i++)
            step->pointers[lane * from->buffer_count + i] = operand_address(exec, &operands[i], lane);
}

/* A chain that is not worth sharing out is nothing but its steps. */
static void prepare_chain(TgExec *exec, const PlanChain *from) {
    const PlanStep *steps = exec->plan->steps + from->step_first;
    ExecStep *first = exec->steps + from->step_first;
    if (!exec->device->ops->splits(exec->device, steps, from->step_count))
        return;
    first->chain = TG_ALLOC(&exec->memory, TgDeviceChain, 1);
    *first->chain = (TgDeviceChain){.links = TG_ALLOC(&exec->memory, TgDeviceLink, from->step_count), .count = from->step_count, .parts = from->parts};
}

static void fill_chain(TgExec *exec, const PlanChain *from) {
    const ExecStep *steps = exec->steps + from->step_first;
    TgDeviceLink *links = steps->chain ? (TgDeviceLink *)(uintptr_t)steps->chain->links : NULL;
    for (uint32_t i = 0; links && i < from->step_count; i++)
        links[i] = (TgDeviceLink){.kind = steps[i].kind, .step = from->step_first + i, .kernel = steps[i].kernel, .dot = steps[i].dot,
                                  .attention = steps[i].attention, .buffers = steps[i].pointers,
                                  .tasks = tg_plan_tasks(exec->plan, &exec->plan->steps[from->step_first + i])};
}

static void fill_constants(TgExec *exec) {
    const TgPlan *plan = exec->plan;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class == PLAN_CONST)
            exec->device->ops->write(exec->device, exec->arena + buffer->offset, plan->data + buffer->data_offset,
                                     (size_t)bytes_of(buffer));
    }
}

static void prepare_scalars(TgExec *exec) {
    const TgPlan *plan = exec->plan;
    exec->values = TG_ALLOC(&exec->memory, double, plan->scalar_count + 1);
    exec->computed = TG_ALLOC(&exec->memory, ComputedScalar, plan->scalar_count + 1);
    exec->scalars.values = exec->values;
    exec->scalars.seed = plan->seed;
    exec->scalars_func = tg_plan_func(plan, PLAN_SCALARS, NULL);
    for (uint32_t i = 0; i < plan->scalar_count; i++)
        exec->values[i] = plan->scalars[i].value;
    for (uint32_t r = 0; exec->scalars_func && r < exec->scalars_func->result_count; r++) {
        const PlanResult *result = &plan->results[exec->scalars_func->result_first + r];
        for (uint32_t i = 0; i < plan->scalar_count; i++)
            if (plan->scalars[i].class == PLAN_SCALAR_COMPUTED && strcmp(plan->scalars[i].name, result->name) == 0)
                exec->computed[exec->computed_count++] = (ComputedScalar){
                    &exec->values[i], tg_exec_address(exec, result->buffer, 0), plan->buffers[result->buffer].dtype};
    }
}

/* On a device of its own, with the threads that the plan will have; exec holds it, so that a failure closes it. */
static Status measure_roof(TgExec *exec, const TgDeviceOptions *options, Roof *roof) {
    TG_TRY(tg_cpu_device_open(options, &exec->device));
    TG_TRY(tg_roof_measure(exec->device, options, exec->plan, roof));
    exec->device->ops->close(exec->device);
    exec->device = NULL;
    return TG_OK;
}

static Status prepare(TgExec *exec, const ExecOptions *options) {
    const TgPlan *plan = exec->plan;
    if (exec->program->abi != TG_ABI_VERSION) {
        snprintf(exec->why, sizeof exec->why,
                 "the program was compiled for version %u of the runtime, this is %d: compile it again",
                 exec->program->abi, TG_ABI_VERSION);
        return TG_INTERNAL;
    }
    TG_TRY(choose_threads(exec, options->threads));
    const TgDeviceOptions device_options = {
        .arena = &exec->memory,
        .threads = exec->threads,
        .poison = options->poison,
        .why = exec->why,
        .directories = {options->library_directory ? options->library_directory : plan->library_directory}};
    if (options->roof)
        TG_TRY(measure_roof(exec, &device_options, options->roof));
    TG_TRY(tg_cpu_device_open(&device_options, &exec->device));
    exec->steps = TG_ALLOC(&exec->memory, ExecStep, plan->step_count);
    for (uint32_t i = 0; i < plan->step_count; i++)
        TG_TRY(prepare_step(exec, &plan->steps[i], &exec->steps[i]));
    for (uint32_t i = 0; i < plan->chain_count; i++)
        prepare_chain(exec, &plan->chains[i]);
    TG_TRY(exec->device->ops->allocate(exec->device, (size_t)plan->arena_bytes, &exec->arena));
    for (uint32_t i = 0; i < plan->step_count; i++)
        resolve_pointers(exec, &plan->steps[i], &exec->steps[i]);
    for (uint32_t i = 0; i < plan->chain_count; i++)
        fill_chain(exec, &plan->chains[i]);
    fill_constants(exec);
    prepare_scalars(exec);
    return TG_OK;
}

static Status prepare_guarded(TgExec *exec, const ExecOptions *options) {
    if (setjmp(exec->memory.guard)) {
        snprintf(exec->why, sizeof exec->why, "no memory left");
        return TG_MEMORY;
    }
    return prepare(exec, options);
}

Status tg_exec_open(const ExecOptions *options, Arena *arena, const TgProgram *program, const TgPlan *plan,
                    TgExec **out, const char **why) {
    const TgHost *host = options->host ? options->host : tg_host();
    TgExec *exec = tg_new(host, sizeof *exec);
    if (!exec) {
        *why = "no memory left";
        return TG_MEMORY;
    }
    *exec = (TgExec){.host = host, .program = program, .plan = plan};
    tg_arena_init(&exec->memory, host);
    Status status = prepare_guarded(exec, options);
    if (status == TG_OK) {
        *out = exec;
        return TG_OK;
    }
    char text[TG_DEVICE_WHY];
    memcpy(text, exec->why, sizeof text);
    tg_exec_close(exec);
    *why = status == TG_MEMORY && !*text ? "no memory left" : tg_arena_str(arena, text, strlen(text));
    return status;
}

void tg_exec_close(TgExec *exec) {
    if (!exec)
        return;
    const TgHost *host = exec->host;
    if (exec->device)
        exec->device->ops->close(exec->device);
    tg_arena_deinit(&exec->memory);
    tg_free(host, exec);
}

int tg_exec_threads(const TgExec *exec) { return exec->threads; }

void *tg_exec_address(TgExec *exec, uint32_t buffer, int64_t lane) {
    return tg_plan_address(&exec->plan->buffers[buffer], exec->arena, lane);
}

TgScalars *tg_exec_scalars(TgExec *exec) { return &exec->scalars; }
double *tg_exec_values(TgExec *exec) { return exec->values; }

static inline void run_step(TgExec *exec, const ExecStep *step, int64_t lane) {
    TgDevice *device = exec->device;
    const TgDeviceOps *ops = device->ops;
    void *const *buffers = step->pointers + lane * step->lane_stride;
    switch (step->kind) {
    case STEP_KERNEL:
        ops->launch(device, step->kernel, buffers, &exec->scalars, step->tiles, step->split);
        break;
    case STEP_DOT:
        ops->dot(device, step->dot, buffers);
        break;
    case STEP_ATTENTION:
        ops->attention(device, step->attention, buffers, &exec->scalars, false);
        break;
    case STEP_COPY:
        ops->copy(device, buffers[1], buffers[0], step->copy_bytes);
        break;
    }
}

/* What is run at once: a chain or one step. */
static uint32_t steps_at(const ExecStep *step) { return step->chain ? step->chain->count : 1; }

static inline void run_steps(TgExec *exec, const ExecStep *step, int64_t lane) {
    if (step->chain)
        exec->device->ops->chain(exec->device, step->chain, &exec->scalars, false);
    else
        run_step(exec, step, lane);
}

static void run_profiled(TgExec *exec, const PlanFunc *func, int64_t lane) {
    tg_profile_enter(exec->profile, func);
    uint32_t count;
    for (uint32_t i = func->step_first; i < func->step_first + func->step_count; i += count) {
        count = steps_at(&exec->steps[i]);
        if (count == 1)
            tg_profile_run(exec->profile, i);
        run_steps(exec, &exec->steps[i], lane);
        tg_profile_ran(exec->profile);
    }
    tg_profile_leave(exec->profile);
}

static void run_watched(TgExec *exec, const PlanFunc *func, int64_t lane) {
    for (uint32_t i = func->step_first; i < func->step_first + func->step_count; i++) {
        run_step(exec, &exec->steps[i], lane);
        exec->seen(exec->seen_context, i, lane);
    }
}

void tg_exec_run(TgExec *exec, const PlanFunc *func, int64_t lane) {
    if (exec->seen != NULL) {
        run_watched(exec, func, lane);
        return;
    }
    if (exec->profile != NULL) {
        run_profiled(exec, func, lane);
        return;
    }
    const ExecStep *step = exec->steps + func->step_first, *end = step + func->step_count;
    for (; step < end; step += steps_at(step))
        run_steps(exec, step, lane);
}

void tg_exec_profile(TgExec *exec, Profile *profile) {
    exec->profile = profile;
    exec->device->ops->watch(exec->device, profile ? &profile->watch : NULL);
}

void tg_exec_watch(TgExec *exec, TgSeen *seen, void *context) {
    exec->seen = seen;
    exec->seen_context = context;
}

void tg_exec_run_dots(TgExec *exec, const PlanFunc *func) {
    const ExecStep *step = exec->steps + func->step_first, *end = step + func->step_count;
    for (; step < end; step += steps_at(step))
        if (step->chain)
            exec->device->ops->chain(exec->device, step->chain, &exec->scalars, true);
        else if (step->kind == STEP_DOT)
            exec->device->ops->dot(exec->device, step->dot, step->pointers);
        else if (step->kind == STEP_ATTENTION)
            exec->device->ops->attention(exec->device, step->attention, step->pointers, &exec->scalars, true);
}

void tg_exec_compute_scalars(TgExec *exec) {
    if (!exec->scalars_func)
        return;
    tg_exec_run(exec, exec->scalars_func, 0);
    for (uint32_t i = 0; i < exec->computed_count; i++)
        *exec->computed[i].value = tg_element_get(exec->computed[i].dtype, exec->computed[i].result, 0);
}

int64_t tg_exec_touched(const TgExec *exec) { return (int64_t)exec->device->ops->touched(exec->device); }
