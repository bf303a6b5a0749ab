#include "bench/jit.h"

#include "ir/base/file.h"
#include "ir/graph.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* Uniform in [-1, 1) (Steele, Lea, Flood 2014: SplitMix). */
static double random_number(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static void make_inputs(TgExec *exec, const TgPlan *plan) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        int64_t count = buffer->bytes / tg_dtype(buffer->dtype)->bytes;
        for (int64_t k = 0; buffer->class == PLAN_INPUT && k < count; k++) {
            double number = random_number(&state);
            tg_element_set(buffer->dtype, tg_exec_address(exec, i, 0), k, tg_is_float(buffer->dtype) ? number : number > 0);
        }
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
    TG_TRY(tg_plan_build(arena, diags, graph, "", LOOPS_CPU, lowered));
    TG_TRY(tg_llvm_open(arena, diags, &llvm));
    kernels = TG_ALLOC(arena, TgKernel *, lowered->kernels.count);
    LlvmRequest request = {.lowered = lowered, .cpu = "", .optimize = 3};
    TG_TRY(llvm->jit(arena, diags, &request, kernels, &handle)); /* until the process ends */
    *program = (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = lowered->kernels.count, .kernels = kernels};
    return TG_OK;
}

static Status run(Arena *arena, Diags *diags, Sources *sources, int threads, JitAction *action) {
    Lowered lowered = {0};
    TgProgram program;
    TgExec *exec;
    const char *why;
    TG_TRY(compile(arena, diags, sources, &lowered, &program));
    ExecOptions options = {.threads = threads, .library_directory = tg_library_directory(arena)};
    Status status = tg_exec_open(&options, arena, &program, lowered.plan, &exec, &why);
    if (status != TG_OK) {
        tg_error(diags, (Loc){0}, "%s", why);
        return status;
    }
    make_inputs(exec, lowered.plan);
    const PlanFunc *init = tg_plan_func(lowered.plan, PLAN_INIT, NULL);
    if (init)
        tg_exec_run(exec, init, 0);
    tg_exec_compute_scalars(exec);
    status = action(arena, exec, &lowered);
    tg_exec_close(exec);
    return status;
}

int bench_jit_main(int argc, char **argv, const char *name, JitAction *action) {
    static const char option[] = "--threads=";
    int threads = argc == 2 && strncmp(argv[1], option, strlen(option)) == 0 ? atoi(argv[1] + strlen(option)) : 0;
    if (argc > 2 || (argc == 2 && threads < 1)) {
        fprintf(stderr, "usage: tgc compile MODEL.tg --emit=kernel | %s [--threads=N]\n", name);
        return TG_USAGE;
    }
    Arena arena;
    Sources sources = {0};
    Diags diags;
    tg_arena_init(&arena, tg_host());
    Status status = TG_MEMORY;
    if (!setjmp(arena.guard)) {
        tg_diags_init(&diags, &arena, &sources, stderr);
        status = run(&arena, &diags, &sources, threads, action);
    } else
        fprintf(stderr, "%s: error: no memory left\n", name);
    tg_arena_deinit(&arena);
    return (int)status;
}
