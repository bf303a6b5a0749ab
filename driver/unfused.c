#include "driver/unfused.h"

Status unfused_make(Pipeline *p, const Graph *step, const char *text, Unfused *made) {
    *made = (Unfused){0};
    PassContext context = {.arena = p->arena, .diags = p->diags};
    PassOptions options = tg_pass_options();
    options.no_fold = options.no_fuse = true;
    TG_TRY(tg_passes_run(&context, &options, "fuse", step, &made->kernel));
    TG_TRY(tg_plan_build(p->arena, p->diags, made->kernel, text, LOOPS_CPU, &made->lowered));
    TG_TRY(tg_llvm_open(p->arena, p->diags, &made->module));
    uint32_t count = made->lowered.kernels.count;
    TgKernel **kernels = TG_ALLOC(p->arena, TgKernel *, count + 1);
    LlvmRequest request = {.lowered = &made->lowered, .cpu = "", .optimize = 1};
    TG_TRY(made->module->jit(p->arena, p->diags, &request, kernels, &made->code));
    made->program = (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = count, .kernels = kernels};
    return TG_OK;
}

void unfused_free(Unfused *unfused) {
    if (unfused->code)
        unfused->module->jit_free(unfused->code);
}

uint32_t unfused_first_output(const Lowered *lowered, const PlanStep *step) {
    const TgPlan *plan = lowered->plan;
    if (step->kind == STEP_DOT)
        return 2 + plan->dots[step->index].bias + plan->dots[step->index].open;
    if (step->kind == STEP_ATTENTION)
        return plan->attentions[step->index].backward ? 4 : 3;
    if (step->kind == STEP_COPY)
        return 1;
    uint32_t inputs = 0;
    const LoopKernel *kernel = lowered->kernels.at[step->index];
    for (uint32_t i = 0; i < kernel->buffers.count; i++)
        inputs += kernel->buffers.at[i].role == ROLE_IN;
    return inputs;
}
