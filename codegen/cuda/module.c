/* Kernels and the text around them. */
#include "codegen/cuda/emit.h"

#include <inttypes.h>

static void parameters(Emit *e) {
    for (uint32_t i = 0; i < e->k->buffers.count; i++) {
        const LoopBuffer *buffer = &e->k->buffers.at[i];
        if (buffer->role != ROLE_SCRATCH)
            tg_str_printf(e->out, "%s%s *b%u, ", buffer->role == ROLE_IN ? "const " : "", tg_cuda_memory_type(buffer->dtype), i);
    }
    tg_str_printf(e->out, "const TgScalars *scalars, i64 first, i64 last%s)", e->work ? ", char *workspace" : "");
}

/* Scratch of the block; what each team has for itself is bound in its nest. */
static void scratch(Emit *e) {
    if (e->work != 0)
        tg_cuda_line(e, "workspace += (i64)blockIdx.x * %" PRId64 ";", e->work);
    for (uint32_t i = 0; i < e->k->buffers.count; i++) {
        const LoopBuffer *buffer = &e->k->buffers.at[i];
        const Storage *storage = &e->storage[i];
        const char *type = tg_cuda_memory_type(buffer->dtype);
        int64_t teams = storage->owner ? e->nests[storage->owner].teams : 1;
        if (storage->space == SPACE_SHARED)
            tg_cuda_line(e, "__shared__ __align__(16) %s %s%u[%" PRId64 "];", type, storage->owner ? "s" : "b", i,
                         teams * tg_cuda_bytes(buffer) / tg_dtype(buffer->dtype)->bytes);
        else if (storage->space == SPACE_WORK && storage->owner == 0)
            tg_cuda_line(e, "%s *const b%u = (%s *)(workspace + %" PRId64 ");", type, i, type, storage->offset);
    }
}

CudaLaunch tg_cuda_kernel(Arena *arena, const LoopKernel *k, Str *to) {
    uint32_t count = k->instrs.count;
    Emit e = {.arena = arena,
              .k = k,
              .out = to,
              .facts = TG_ALLOC(arena, Fact, count),
              .shapes = TG_ALLOC(arena, Shape, count),
              .nests = TG_ALLOC(arena, Nest, count),
              .storage = TG_ALLOC(arena, Storage, k->buffers.count),
              .j = "0",
              .store = "threadIdx.x == 0"};
    tg_cuda_facts(&e);
    tg_cuda_shape(&e);
    tg_str_printf(to, "\n/* %" PRId64 " %s of %" PRId64 " threads", k->tiles, k->tiles == 1 ? "tile" : "tiles", e.threads);
    if (e.work != 0)
        tg_str_printf(to, ", %" PRId64 " bytes of workspace a block", e.work);
    tg_str_printf(to, " */\nTG_KERNEL __launch_bounds__(%" PRId64 ", 1) %s(", e.threads, k->name);
    parameters(&e);
    tg_str_printf(to, " {\n");
    e.indent++;
    scratch(&e);
    tg_cuda_range(&e, 1, count);
    tg_cuda_close(&e);
    return (CudaLaunch){.threads = e.threads, .workspace = e.work, .shared = e.shared};
}

/* ---- the plan ---- */

static void print_step(Str *to, const Lowered *lowered, uint32_t index) {
    const PlanStep *step = &lowered->plan->steps[index];
    tg_str_printf(to, "//   step %u: ", index);
    if (step->kind == STEP_KERNEL) {
        tg_str_printf(to, "%s", lowered->kernels.at[step->index]->name);
    } else if (step->kind == STEP_DOT) {
        const PlanDot *dot = &lowered->plan->dots[step->index];
        tg_str_printf(to, "a library call, dot %s %" PRId64 " x [%" PRId64 ", %" PRId64 "] x [%" PRId64 ", %" PRId64 "]%s",
                      tg_dtype(dot->dtype)->name, dot->groups, dot->m, dot->k, dot->k, dot->n, dot->bias ? " + bias" : dot->adds ? " + out" : "");
    } else if (step->kind == STEP_ATTENTION) {
        const PlanAttention *a = &lowered->plan->attentions[step->index];
        tg_str_printf(to, "%s by blocks, library calls with k%u between", step->label, a->weights);
        if (a->backward)
            tg_str_printf(to, " and k%u", a->score_gradient);
    } else {
        tg_str_printf(to, "a copy");
    }
    const PlanLine *line = &step->lines[0];
    if (step->line_count != 0 && line->line != 0)
        tg_str_printf(to, " (%s:%u)", line->file, line->line);
    tg_str_printf(to, "\n");
}

/* A comment for each function: which kernel, library call or copy its steps are. */
static void print_plan(Str *to, const Lowered *lowered) {
    for (uint32_t i = 0; i < lowered->plan->func_count; i++) {
        const PlanFunc *func = &lowered->plan->funcs[i];
        tg_str_printf(to, "\n// %s, for %" PRId64 " %s:\n", func->name, func->capacity,
                      func->capacity == 1 ? "record" : "records");
        for (uint32_t step = 0; step < func->step_count; step++)
            print_step(to, lowered, func->step_first + step);
    }
}

void tg_cuda_print(Arena *arena, const Lowered *lowered, Str *to) {
    tg_str_printf(to, "%s", tg_cuda_support);
    if (lowered->plan != NULL)
        print_plan(to, lowered);
    for (uint32_t i = 0; i < lowered->kernels.count; i++)
        (void)tg_cuda_kernel(arena, lowered->kernels.at[i], to);
}
