/* Times every step of a training step by itself, and each function as a whole:

       tgc compile MODEL.tg --emit=kernel | steps [--threads=N]

   One line a step: nanoseconds, what it is, the line of the model. Inputs are made up: small whole numbers, which any
   model that reads classes or pixels takes. Times are the medians of interleaved rounds. */
#include "codegen/codegen.h"
#include "ir/base/file.h"
#include "ir/graph.h"
#include "runtime/exec.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, MOST_REPEATS = 200 };
static const double round_ns = 1e6; /* repeats of a step fill this, if they can */

/* What a step of training runs, in order. */
static const PlanFuncKind kinds[] = {PLAN_SCALARS, PLAN_PRE, PLAN_MICRO, PLAN_TAIL, PLAN_FIELDS};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_runs(TgExec *exec, const PlanFunc *func, int repeats) {
    double begin = now();
    for (int i = 0; i < repeats; i++)
        tg_exec_run(exec, func, 0);
    return now() - begin;
}

/* Nanoseconds of one run of `func`. */
static double time_func(TgExec *exec, const PlanFunc *func) {
    double once = time_runs(exec, func, 1);
    int repeats = once < round_ns / MOST_REPEATS ? MOST_REPEATS : (int)(round_ns / once);
    return repeats > 1 ? time_runs(exec, func, repeats) / repeats : once;
}

typedef struct Timed {
    PlanFunc func; /* of one step, or whole */
    const PlanStep *step; /* NULL: whole */
    double times[ROUNDS];
} Timed;

typedef Vec(Timed) Timeds;

static void add_func(Arena *arena, const TgPlan *plan, const PlanFunc *func, Timeds *timeds) {
    for (uint32_t i = 0; i < func->step_count; i++) {
        Timed one = {.func = *func, .step = &plan->steps[func->step_first + i]};
        one.func.step_first += i;
        one.func.step_count = 1;
        tg_push(arena, timeds, one);
    }
    tg_push(arena, timeds, (Timed){.func = *func});
}

static void measure(TgExec *exec, const PlanFunc *init, Timeds *timeds) {
    if (init)
        tg_exec_run(exec, init, 0);
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < timeds->count; i++)
            timeds->at[i].times[round] = time_func(exec, &timeds->at[i].func);
}

static void print(const TgPlan *plan, Timeds *timeds) {
    double total = 0, dots = 0;
    for (uint32_t i = 0; i < timeds->count; i++) {
        Timed *timed = &timeds->at[i];
        qsort(timed->times, ROUNDS, sizeof timed->times[0], by_value);
        double time = timed->times[ROUNDS / 2];
        const PlanStep *step = timed->step;
        if (!step) {
            printf("%8.0f  %s\n\n", time, timed->func.name);
            total += time;
            continue;
        }
        dots += step->kind == STEP_DOT ? time : 0;
        printf("%8.0f    step %td %s", time, step - plan->steps, step->label);
        if (step->line_count)
            printf("  %s:%" PRIu32, step->lines[0].file, step->lines[0].line);
        printf("\n");
    }
    printf("%8.0f  ns in all\n%8.0f  ns of them dots\n", total, dots);
}

static void make_inputs(TgExec *exec, const TgPlan *plan) {
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        int64_t count = buffer->bytes / tg_dtype(buffer->dtype)->bytes;
        for (int64_t k = 0; buffer->class == PLAN_INPUT && k < count; k++)
            tg_element_set(buffer->dtype, tg_exec_address(exec, i, 0), k, (double)(k % 2));
    }
    for (uint32_t i = 0; i < plan->scalar_count; i++)
        if (plan->scalars[i].class == PLAN_SCALAR_BUILTIN)
            tg_exec_values(exec)[i] = (double)plan->batch;
    tg_exec_scalars(exec)->rows = plan->micro;
}

static Status compile(Arena *arena, Diags *diags, Sources *sources, Lowered *lowered, TgProgram *program) {
    char *text;
    size_t length;
    const char *why;
    Graph *graph;
    const LlvmModule *llvm;
    TgKernel **kernels;
    void *handle;
    Status status = tg_file_read(arena, "-", &text, &length, &why);
    if (status != TG_OK) {
        tg_error(diags, (Loc){0}, "%s", why);
        return status;
    }
    TG_TRY(tg_graph_parse(arena, diags, sources, "<stdin>", text, length, &graph));
    TG_TRY(tg_plan_build(arena, diags, graph, "", lowered));
    TG_TRY(tg_llvm_open(arena, diags, &llvm));
    kernels = TG_ALLOC(arena, TgKernel *, lowered->kernels.count);
    LlvmRequest request = {.lowered = lowered, .cpu = "", .optimize = 3};
    TG_TRY(llvm->jit(arena, diags, &request, kernels, &handle)); /* until the process ends */
    *program = (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = lowered->kernels.count, .kernels = kernels};
    return TG_OK;
}

static Status run(Arena *arena, Diags *diags, Sources *sources, int threads) {
    Lowered lowered = {0};
    TgProgram program;
    TgExec *exec;
    const char *why;
    TG_TRY(compile(arena, diags, sources, &lowered, &program));
    const TgPlan *plan = lowered.plan;
    ExecOptions options = {.threads = threads, .library_directory = tg_library_directory(arena)};
    Status status = tg_exec_open(&options, arena, &program, plan, &exec, &why);
    if (status != TG_OK) {
        tg_error(diags, (Loc){0}, "%s", why);
        return status;
    }
    Timeds timeds = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t i = 0; i < plan->func_count; i++)
            if (plan->funcs[i].kind == kinds[k])
                add_func(arena, plan, &plan->funcs[i], &timeds);
    make_inputs(exec, plan);
    measure(exec, tg_plan_func(plan, PLAN_INIT, NULL), &timeds);
    print(plan, &timeds);
    tg_exec_close(exec);
    return TG_OK;
}

int main(int argc, char **argv) {
    static const char option[] = "--threads=";
    int threads = argc == 2 && strncmp(argv[1], option, strlen(option)) == 0 ? atoi(argv[1] + strlen(option)) : 0;
    if (argc > 2 || (argc == 2 && threads < 1)) {
        fprintf(stderr, "usage: tgc compile MODEL.tg --emit=kernel | steps [--threads=N]\n");
        return TG_USAGE;
    }
    Arena arena;
    Sources sources = {0};
    Diags diags;
    tg_arena_init(&arena, tg_host());
    Status status = TG_MEMORY;
    if (!setjmp(arena.guard)) {
        tg_diags_init(&diags, &arena, &sources, stderr);
        status = run(&arena, &diags, &sources, threads);
    } else
        fputs("steps: error: no memory left\n", stderr);
    tg_arena_deinit(&arena);
    return (int)status;
}
