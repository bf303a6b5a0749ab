/* From graph@kernel to a plan, loops, machine code and a program. */
#ifndef TG_CODEGEN_H
#define TG_CODEGEN_H

#include "codegen/loop.h"
#include "ir/graph.h"
#include "ir/plan/abi.h"
#include "ir/plan/plan.h"

/* What loops are made for. It chooses the order in which memory is read, never a bit: both targets take loops of either. */
typedef enum LoopTarget { LOOPS_CPU, LOOPS_CUDA } LoopTarget;

/* One kernel body as loops, for `capacity` records in place of B. Buffers: the body's args, then its values. `in_place`: the table
   that its scatter_add adds to lies where the result is written. `parts`: 0, or tiles wanted, each of as many records, in whose rows
   alone it writes; a kernel that cannot be cut so is an internal error. (lower.c) */
TG_CHECKED Status tg_lower_kernel(Arena *arena, Diags *diags, const Graph *graph, const Func *kernel, int64_t capacity,
                                  LoopTarget target, bool in_place, int64_t parts, const char *name, LoopKernel **out);

/* What the plan's kernels are, in the order of PlanStep.index. */
typedef struct Lowered {
    TgPlan *plan;
    LoopKernels kernels;
    const NodeId *nodes; /* of each step of the plan: the call, dot or first attention of its function that it is; 0: a copy */
    LoopTarget target;
} Lowered;

/* Order, memory, dots and steps of every function of graph@kernel. `step_text`: graph@step, kept in the plan. (plan_build.c) */
TG_CHECKED Status tg_plan_build(Arena *arena, Diags *diags, const Graph *graph, const char *step_text, LoopTarget target,
                                Lowered *out);

/* The module that holds LLVM (codegen/llvm), opened by tg_llvm_open only when something must be compiled. */
typedef struct LlvmRequest {
    const Lowered *lowered; /* plan NULL: kernels only */
    const char *cpu;        /* "" : the host */
    int optimize;           /* 0 .. 3 */
} LlvmRequest;

typedef struct LlvmModule {
    /* An ELF object that exports tg_program (with the serialised plan), into `out`. */
    Status (*object)(Arena *arena, Diags *diags, const LlvmRequest *request, Str *out);
    /* LLVM IR (after optimisation) or assembly, as text. */
    Status (*text)(Arena *arena, Diags *diags, const LlvmRequest *request, int assembly, Str *out);
    /* Machine code in this process: `kernels` gets one pointer each. Free with jit_free. */
    Status (*jit)(Arena *arena, Diags *diags, const LlvmRequest *request, TgKernel **kernels, void **handle);
    void (*jit_free)(void *handle);
    /* The host's CPU name and features, as they stand in cache keys. */
    Status (*host_cpu)(Arena *arena, const char **text);
} LlvmModule;
TG_CHECKED Status tg_llvm_open(Arena *arena, Diags *diags, const LlvmModule **module);

/* The object of `lowered` linked with the runtime by the system's cc to the program `path`; through the cache: a hit copies the
   program and opens neither LLVM nor cc. `cache_hit` may be NULL. (program.c) */
TG_CHECKED Status tg_program_write(Arena *arena, Diags *diags, const LlvmRequest *request, const char *path, bool *cache_hit);
/* The cached program itself, compiled if need be: its path. */
TG_CHECKED Status tg_program_cached(Arena *arena, Diags *diags, const LlvmRequest *request, const char **path);

/* Where the compiler's own files lie: libtgrt_whole.a, libtgc_llvm.so, libtgrt_dnn.so (beside `tgc` in ../lib, or $TGC_LIB). */
const char *tg_library_directory(Arena *arena);

#endif
