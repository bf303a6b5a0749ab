#include "tests/ops/backend.h"

#include "passes/pass.h"

#include <string.h>

Status backend_lower(Arena *arena, Diags *diags, Graph *graph, Lowered *lowered) {
    PassContext context = {.arena = arena, .diags = diags};
    PassOptions options = tg_pass_options();
    options.no_fold = true;
    Graph *kernel;
    TG_TRY(tg_passes_run(&context, &options, "layout,fuse", graph, &kernel));
    return tg_plan_build(arena, diags, kernel, "", LOOPS_CPU, lowered);
}

Status backend_compile(Arena *arena, Diags *diags, const Lowered *lowered, BackendCode *code) {
    code->kernels = TG_ALLOC(arena, TgKernel *, lowered->kernels.count + 1);
    LlvmRequest request = {.lowered = lowered, .cpu = "", .optimize = 1};
    TG_TRY(tg_llvm_open(arena, diags, &code->module));
    return code->module->jit(arena, diags, &request, code->kernels, &code->handle);
}

void backend_free(BackendCode *code) { code->module->jit_free(code->handle); }

Status backend_open(Arena *arena, const Lowered *lowered, TgKernel **kernels, int threads, TgExec **exec) {
    TgProgram *program = TG_ALLOC(arena, TgProgram, 1);
    *program = (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = lowered->kernels.count, .kernels = kernels};
    ExecOptions options = {
        .host = tg_host(), .threads = threads, .library_directory = tg_library_directory(arena), .poison = true};
    const char *why = NULL;
    Status status = tg_exec_open(&options, arena, program, lowered->plan, exec, &why);
    if (status != TG_OK)
        fprintf(stderr, "%s\n", why);
    return status;
}

const PlanFunc *backend_export(const TgPlan *plan) {
    const PlanFunc *func = tg_plan_func(plan, PLAN_EXPORT, NULL);
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (plan->funcs[i].kind == PLAN_EXPORT && plan->funcs[i].capacity == plan->micro)
            func = &plan->funcs[i];
    return func;
}

void backend_write(TgExec *exec, const TgPlan *plan, uint32_t buffer, const double *values, int64_t count) {
    const PlanBuffer *of = &plan->buffers[buffer];
    void *to = tg_exec_address(exec, buffer, 0);
    memset(to, 0, (size_t)of->bytes);
    for (int64_t i = 0; i < count; i++)
        tg_element_set(of->dtype, to, i, values[i]);
}

void backend_read(TgExec *exec, const TgPlan *plan, uint32_t buffer, double *values, int64_t count) {
    const void *from = tg_exec_address(exec, buffer, 0);
    for (int64_t i = 0; i < count; i++)
        values[i] = tg_element_get(plan->buffers[buffer].dtype, from, i);
}
