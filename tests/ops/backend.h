/* Graphs on the CPU: fusion, plan, loops, machine code and executor. What the evaluator is compared with. */
#ifndef TG_TEST_BACKEND_H
#define TG_TEST_BACKEND_H

#include "codegen/codegen.h"
#include "runtime/exec.h"

typedef struct BackendCode {
    const LlvmModule *module;
    void *handle;
    TgKernel **kernels; /* one per kernel that was compiled */
} BackendCode;

/* A graph@step to its plan; nothing is folded. */
TG_CHECKED Status backend_lower(Arena *arena, Diags *diags, Graph *graph, Lowered *lowered);
TG_CHECKED Status backend_compile(Arena *arena, Diags *diags, const Lowered *lowered, BackendCode *code);
void backend_free(BackendCode *code);

/* A poisoned arena. `kernels` are those of `lowered`. */
TG_CHECKED Status backend_open(Arena *arena, const Lowered *lowered, TgKernel **kernels, int threads, TgExec **exec);
/* The export's function that takes `micro` rows. */
const PlanFunc *backend_export(const TgPlan *plan);
/* The first `count` elements of a buffer; the others become 0. */
void backend_write(TgExec *exec, const TgPlan *plan, uint32_t buffer, const double *values, int64_t count);
void backend_read(TgExec *exec, const TgPlan *plan, uint32_t buffer, double *values, int64_t count);

#endif
