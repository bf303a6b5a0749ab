#include "tests/program/model.h"

#include "codegen/codegen.h"
#include "frontend/ast.h"
#include "passes/pass.h"

static Status compile(Arena *arena, Diags *diags, Sources *sources, const char *path, const LowerOptions *lower,
                      bool no_fuse, Lowered *lowered) {
    Unit *unit, *std;
    Graph *model, *step, *kernel;
    PassContext context = {.arena = arena, .diags = diags};
    PassOptions options = tg_pass_options();
    options.no_fuse = no_fuse;
    TG_TRY(tg_parse_std(arena, diags, sources, &std));
    TG_TRY(tg_parse_file(arena, diags, sources, path, &unit));
    TG_TRY(tg_sema(arena, diags, unit, std));
    TG_TRY(tg_lower(arena, diags, sources, unit, std, lower, &model));
    TG_TRY(tg_phases_run(&context, &options, "layout", model, &step));
    TG_TRY(tg_passes_run(&context, &options, "fuse", step, &kernel));
    return tg_plan_build(arena, diags, kernel, "", LOOPS_CPU, lowered);
}

Status model_compile(Arena *arena, const char *path, const char *const *sets, bool no_fuse, TestModel *model) {
    Sources *sources = TG_ALLOC(arena, Sources, 1);
    Diags *diags = TG_ALLOC(arena, Diags, 1);
    Lowered *lowered = TG_ALLOC(arena, Lowered, 1);
    LowerOptions lower = {.sets = sets, .fold = true};
    while (sets[lower.set_count])
        lower.set_count++;
    tg_diags_init(diags, arena, sources, stderr);
    TG_TRY(compile(arena, diags, sources, path, &lower, no_fuse, lowered));
    uint32_t count = lowered->kernels.count;
    TgKernel **kernels = TG_ALLOC(arena, TgKernel *, count + 1);
    LlvmRequest request = {.lowered = lowered, .cpu = "", .optimize = 1};
    const LlvmModule *llvm;
    TG_TRY(tg_llvm_open(arena, diags, &llvm));
    TG_TRY(llvm->jit(arena, diags, &request, kernels, &model->code));
    model->llvm = llvm;
    model->plan = lowered->plan;
    model->program = (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = count, .kernels = kernels};
    model->library_directory = tg_library_directory(arena);
    return TG_OK;
}

void model_free(TestModel *model) {
    const LlvmModule *llvm = model->llvm;
    llvm->jit_free(model->code);
}
