/* Kernels as CUDA C, from the same loops as machine code: nothing but a CUDA compiler, or a host compiler with a few
   definitions (support.cu says which), is needed to take the text. Bits are those of codegen/loop.h; f64 functions of the C
   library (LOOP_libm) are CUDA's own. No atomics: equal calls give equal bits.

   A kernel's parameters: its IN and OUT buffers in order, aligned to 16 bytes; `const TgScalars *scalars`; `i64 first, last`, the
   tiles to run; and, where `workspace` is not 0, `char *workspace` of that many bytes a block. Any number of blocks of `threads`
   threads runs them; as many blocks as tiles is right. */
#ifndef TG_CUDA_H
#define TG_CUDA_H

#include "codegen/codegen.h"
#include "ir/base/vec.h"

typedef struct CudaLaunch {
    int64_t threads;   /* of a block */
    int64_t workspace; /* bytes a block, in global memory */
    int64_t shared;    /* bytes a block, declared in the kernel */
} CudaLaunch;

/* What kernels share, to be printed once before them. */
extern const char *const tg_cuda_support;
/* One kernel, which has passed tg_loop_verify. */
CudaLaunch tg_cuda_kernel(Arena *arena, const LoopKernel *k, Str *to);
/* All of it: the shared part, the plan's steps as a comment (plan may be NULL), the kernels. */
void tg_cuda_print(Arena *arena, const Lowered *lowered, Str *to);

/* What ptxas says of a kernel; bytes. */
typedef struct CudaUsage {
    const char *kernel;
    int registers, spilled, stack, shared; /* spilled: stores and loads */
} CudaUsage;

typedef struct CudaBinary {
    Str cubin;
    Vec(CudaUsage) kernels;
} CudaBinary;

/* The architectures that are tested. */
extern const char *const tg_cuda_archs[];

/* Whether NVRTC is there: in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, or where the loader looks. */
bool tg_cuda_has_compiler(Arena *arena);
/* The text of tg_cuda_print as machine code for `arch` ("sm_90"). No NVRTC: TG_IO; an architecture that it does not know: TG_USAGE.
   (nvrtc.c) */
TG_CHECKED Status tg_cuda_compile(Arena *arena, Diags *diags, const Str *text, const char *arch, CudaBinary *out);

#endif
