/* One kernel of loops to one LLVM function. Vectors are written out: a vector loop runs `groups` vectors of LOOP_LANES
   elements an iteration, and what is left under a mask. */
#ifndef TG_LLVM_EMIT_H
#define TG_LLVM_EMIT_H

#include "codegen/loop_info.h"
#include "ir/base/map.h"
#include "ir/plan/abi.h"

#include <llvm-c/Core.h>

enum { EMIT_GROUPS = 4 };

/* What a module's kernels share. */
typedef struct EmitModule {
    Arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    const char *cpu, *features;
    bool bf16;   /* the CPU rounds f32 to bf16 */
    bool avx512; /* it has AVX-512F */
    bool global; /* kernels are visible outside of the module */
    Map bodies;  /* that kernels share: what a kernel is but its keys -> the function */
} EmitModule;

/* Constants of a kernel that are arguments of its function. */
typedef struct EmitKeys {
    uint32_t *of; /* per instruction: 1 + which one, or 0 */
    uint32_t count;
} EmitKeys;

/* An instruction's value. Linear: lane l of group g has first + coefficient * (LOOP_LANES * g + l); a coefficient of 0
   is a value that does not vary over the vector loop. Otherwise one vector a group. */
typedef struct EmitValue {
    LLVMValueRef first; /* NULL: not linear */
    int64_t coefficient;
    LLVMValueRef group[EMIT_GROUPS];
} EmitValue;

/* Partial results of a reduction, in stack slots: one a group, or one for all. */
typedef struct EmitPartial {
    LLVMValueRef value[EMIT_GROUPS], index[EMIT_GROUPS]; /* index: of argmax */
    uint32_t count;
    bool vector;
} EmitPartial;

typedef struct Emit {
    EmitModule *shared;
    const LoopKernel *k;
    const EmitKeys *keys;
    LLVMContextRef context;
    LLVMValueRef function, buffers_argument, scalars;
    LLVMBuilderRef builder, entry; /* entry: stack slots and what never changes */
    LLVMTypeRef i1, i32, i64, pointer;
    EmitValue *values;
    EmitPartial *partials;
    LoopId *match;        /* per LOOP_for: its end */
    bool *varies;         /* per value: over its vector loop */
    uint8_t *factor;      /* per i64 value: a power of two up to 64 that divides it (of a vector loop: a group's first) */
    LLVMValueRef *buffer; /* per buffer: its address */

    /* The vector loop that is being written; 0: none. */
    LoopId vector;
    LoopId variable; /* the last vector loop entered: its variable is what strides multiply */
    uint32_t groups;
    LLVMValueRef mask[EMIT_GROUPS]; /* NULL: all lanes */
    LoopId around;                  /* the innermost loop */
} Emit;

/* The kernel must have passed tg_loop_verify. (share.c) */
LLVMValueRef tg_emit_kernel(EmitModule *shared, const LoopKernel *k);

/* A function that begins with a kernel's arguments (emit.c) */
LLVMValueRef tg_emit_declare(EmitModule *shared, const char *name, LLVMTypeRef type, bool global);
void tg_emit_body(EmitModule *shared, const LoopKernel *k, LLVMValueRef function, const EmitKeys *keys);

/* loops.c */
void tg_emit_analyse(Emit *e); /* fills `match`, `varies` and `factor` */
void tg_emit_range(Emit *e, LoopId first, LoopId end);

/* types and values (value.c) */
LLVMTypeRef tg_emit_type(const Emit *e, DType type); /* bool: i1; bf16, f16: i16 */
LLVMTypeRef tg_emit_memory_type(const Emit *e, DType type);
LLVMTypeRef tg_emit_like(const Emit *e, LLVMTypeRef element, LLVMValueRef shape); /* a vector of it if `shape` is one */
LLVMValueRef tg_emit_int(const Emit *e, int64_t value);
LLVMValueRef tg_emit_constant(const Emit *e, LLVMTypeRef type,
                              uint64_t bits); /* splat if the type is a vector; floats: by bits */
LLVMValueRef tg_emit_real(const Emit *e, LLVMTypeRef type, double value);
LLVMValueRef tg_emit_splat(Emit *e, LLVMValueRef value, uint32_t lanes);
LLVMValueRef tg_emit_vector(Emit *e, LoopId id, uint32_t group); /* the value of a group as a vector */
LLVMValueRef tg_emit_uniform(Emit *e, LoopId id);                /* of a value that does not vary */
LLVMValueRef tg_emit_iota(const Emit *e, LLVMTypeRef element, int64_t first, int64_t step);
bool tg_emit_is_uniform(const Emit *e, LoopId id);
void tg_emit_set_uniform(Emit *e, LoopId id, LLVMValueRef value);
LLVMValueRef tg_emit_slot(Emit *e, LLVMTypeRef type);
LLVMValueRef tg_emit_intrinsic(Emit *e, const char *name, LLVMTypeRef *overloads, uint32_t overload_count,
                               LLVMValueRef *arguments, uint32_t argument_count);

/* One operation on scalars or vectors; `mask` NULL: all lanes (scalar.c, convert.c) */
LLVMValueRef tg_emit_op(Emit *e, const LoopInstr *instr, LLVMValueRef operands[3], LLVMValueRef mask);
LLVMValueRef tg_emit_convert(Emit *e, LLVMValueRef value, DType from, DType to);
LLVMValueRef tg_emit_extremum(Emit *e, DType type, bool maximum, LLVMValueRef a, LLVMValueRef b);

/* memory.c */
void tg_emit_load(Emit *e, LoopId id);
void tg_emit_store(Emit *e, LoopId id);
void tg_emit_fence(Emit *e); /* at the kernel's end: what was stored past the cache is there for every thread */

/* reduce.c: before the loop, at the instruction, after the loop */
void tg_emit_reduce_begin(Emit *e, LoopId loop);
void tg_emit_reduce(Emit *e, LoopId id);
void tg_emit_reduce_end(Emit *e, LoopId loop);

#endif
