#include "tests/runtime/plan_maker.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

void maker_init(PlanMaker *maker, Arena *arena) { *maker = (PlanMaker){.arena = arena}; }

uint32_t maker_buffer(PlanMaker *maker, PlanBufferClass class, DType dtype, int64_t count, int64_t lanes) {
    int64_t bytes = (count * tg_dtype(dtype)->bytes + 63) / 64 * 64;
    PlanBuffer buffer = {.name = "",
                         .class = class,
                         .dtype = dtype,
                         .rank = 1,
                         .dims = {count},
                         .batch_axis = -1,
                         .offset = maker->plan.arena_bytes,
                         .bytes = bytes,
                         .lanes = lanes,
                         .lane_bytes = lanes > 1 ? bytes : 0};
    maker->plan.arena_bytes += bytes * lanes;
    tg_push(maker->arena, &maker->buffers, buffer);
    return maker->buffers.count - 1;
}

void maker_func(PlanMaker *maker, PlanFuncKind kind, const char *name) {
    PlanFunc func = {.kind = kind, .name = name, .step_first = maker->steps.count};
    tg_push(maker->arena, &maker->funcs, func);
}

void maker_step(PlanMaker *maker, PlanStepKind kind, uint32_t index, int64_t tiles, double flops, uint32_t count,
                const PlanOperand *operands) {
    PlanStep step = {.kind = kind,
                     .label = "",
                     .index = index,
                     .tiles = tiles,
                     .buffer_first = maker->operands.count,
                     .buffer_count = count,
                     .flops = flops};
    for (uint32_t i = 0; i < count; i++)
        tg_push(maker->arena, &maker->operands, operands[i]);
    tg_push(maker->arena, &maker->steps, step);
    maker->funcs.at[maker->funcs.count - 1].step_count++;
}

void maker_kernel(PlanMaker *maker, TgKernel *kernel, int64_t tiles, double flops, uint32_t count,
                  const PlanOperand *operands) {
    tg_push(maker->arena, &maker->kernels, kernel);
    maker_step(maker, STEP_KERNEL, maker->kernels.count - 1, tiles, flops, count, operands);
}

uint32_t maker_dot_as_is(PlanMaker *maker, PlanDot dot, uint32_t a, uint32_t b, uint32_t bias) {
    uint32_t out = maker_buffer(maker, PLAN_OUTPUT, dot.out_dtype, dot.groups * dot.m * dot.n, 1);
    PlanOperand operands[5] = {{.buffer = a}, {.buffer = b}};
    uint32_t count = 2;
    if (dot.bias)
        operands[count++].buffer = bias;
    operands[count++].buffer = out;
    if (dot.pieces > 1)
        operands[count++].buffer = maker_buffer(maker, PLAN_SCRATCH, dot.out_dtype == DT_F64 ? DT_F64 : DT_F32,
                                                dot.pieces * dot.groups * dot.m * dot.n, 1);
    tg_push(maker->arena, &maker->dots, dot);
    maker_step(maker, STEP_DOT, maker->dots.count - 1, 0, 0, count, operands);
    return out;
}

uint32_t maker_dot(PlanMaker *maker, PlanDot dot, uint32_t a, uint32_t b, uint32_t bias) {
    DnnChoice choice = tg_dnn_variant(&dot, 0);
    dot.variant = choice.variant;
    dot.tile_m = choice.tile_m;
    dot.tile_n = choice.tile_n;
    return maker_dot_as_is(maker, dot, a, b, bias);
}

TgExec *maker_open(PlanMaker *maker, int threads, bool poison) {
    TgPlan *plan = &maker->plan;
#define TAKE(list, number) plan->list = maker->list.at, plan->number = maker->list.count
    TAKE(buffers, buffer_count);
    TAKE(steps, step_count);
    TAKE(dots, dot_count);
    TAKE(chains, chain_count);
    TAKE(funcs, func_count);
    TAKE(results, result_count);
    TAKE(scalars, scalar_count);
#undef TAKE
    plan->step_buffers = maker->operands.at;
    plan->step_buffer_count = maker->operands.count;
    plan->kernel_count = maker->kernels.count;
    maker->program =
        (TgProgram){.abi = TG_ABI_VERSION, .kernel_count = maker->kernels.count, .kernels = maker->kernels.at};
    const ExecOptions options = {.threads = threads, .poison = poison, .library_directory = TGC_BINARY_DIR "/lib"};
    TgExec *exec = NULL;
    const char *why = "";
    Status status = tg_exec_open(&options, maker->arena, &maker->program, plan, &exec, &why);
    if (status != TG_OK)
        fprintf(stderr, "%s\n", why);
    CU_ASSERT_EQUAL_FATAL(status, TG_OK);
    return exec;
}

PlanDot maker_matrix_dot(DType dtype, int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
    return (PlanDot){.dtype = dtype,
                     .out_dtype = dtype,
                     .groups = 1,
                     .inner = 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a_group = m * k,
                     .a_m = a_transposed ? 1 : k,
                     .a_k = a_transposed ? m : 1,
                     .b_group = k * n,
                     .b_k = b_transposed ? 1 : n,
                     .b_n = b_transposed ? k : 1,
                     .out_group = m * n,
                     .out_m = n,
                     .pieces = 1,
                     .tile_m = m ? m : 1,
                     .tile_n = n ? n : 1};
}
