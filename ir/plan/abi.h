/* What generated code and the runtime agree on. */
#ifndef TG_ABI_H
#define TG_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { TG_ABI_VERSION = 1 };

/* Run-time values that kernels read. */
typedef struct TgScalars {
    int64_t rows;       /* B: records really in this micro-batch */
    int64_t first_row;  /* global batch position of row 0 */
    uint64_t iteration; /* batches drawn: counter of random ops */
    uint64_t seed;
    const double *values; /* one per TgPlan.scalars */
} TgScalars;

/* Runs tiles [first, last). `buffers` as the plan's step names them. */
typedef void TgKernel(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last);

/* The one symbol that a compiled program's object exports: `tg_program`. */
typedef struct TgProgram {
    uint32_t abi; /* TG_ABI_VERSION */
    uint32_t kernel_count;
    const void *plan; /* ir/plan/plan.h, serialised */
    size_t plan_bytes;
    TgKernel *const *kernels;
} TgProgram;

#endif
