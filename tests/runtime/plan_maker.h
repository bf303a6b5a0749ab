/* Hand-made plans for the tests of the executor: buffers are laid out one after the other, steps as they are added. */
#ifndef TG_TESTS_PLAN_MAKER_H
#define TG_TESTS_PLAN_MAKER_H

#include "codegen/dnn.h"
#include "ir/base/vec.h"
#include "runtime/exec.h"

typedef struct PlanMaker {
    Arena *arena;
    TgPlan plan;
    Vec(PlanBuffer) buffers;
    Vec(PlanStep) steps;
    Vec(PlanOperand) operands;
    Vec(PlanDot) dots;
    Vec(PlanChain) chains;
    Vec(PlanFunc) funcs;
    Vec(PlanResult) results;
    Vec(PlanScalar) scalars;
    Vec(TgKernel *) kernels;
    TgProgram program;
} PlanMaker;

void maker_init(PlanMaker *maker, Arena *arena);
/* Elements of one lane; its index. */
uint32_t maker_buffer(PlanMaker *maker, PlanBufferClass class, DType dtype, int64_t count, int64_t lanes);
/* Steps from now on belong to it. */
void maker_func(PlanMaker *maker, PlanFuncKind kind, const char *name);
void maker_step(PlanMaker *maker, PlanStepKind kind, uint32_t index, int64_t tiles, double flops, uint32_t count,
                const PlanOperand *operands);
void maker_kernel(PlanMaker *maker, TgKernel *kernel, int64_t tiles, double flops, uint32_t count,
                  const PlanOperand *operands);
/* Variant and tiles as codegen chooses them. Adds out and scratch buffers; gives out's index. bias: ~0u: none. */
uint32_t maker_dot(PlanMaker *maker, PlanDot dot, uint32_t a, uint32_t b, uint32_t bias);
/* As maker_dot, but with the variant and tiles that `dot` has. */
uint32_t maker_dot_as_is(PlanMaker *maker, PlanDot dot, uint32_t a, uint32_t b, uint32_t bias);

/* Fills plan and program; opens with `threads`, checks that it works. */
TgExec *maker_open(PlanMaker *maker, int threads, bool poison);

/* Row-major a[m][k], b[k][n], transposed if said so. */
PlanDot maker_matrix_dot(DType dtype, int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed);

#endif
