/* Kernels run by the interpreter and by machine code: the same bytes in every buffer. */
#ifndef TG_TEST_LLVM_HARNESS_H
#define TG_TEST_LLVM_HARNESS_H

#include "codegen/codegen.h"

typedef struct Case {
    LoopKernel *k;
    int64_t rows;
    int64_t first, last; /* tiles */
} Case;

typedef Vec(Case) Cases;

/* Compiles all kernels at once for `cpu` ("": the host) and compares; complains through CUnit. */
void check_cases(Arena *arena, const Cases *cases, const char *cpu, int optimize);

/* A kernel of one tile: opens its loop. */
LoopKernel *new_kernel(Arena *arena, const char *what);
void add_case(Arena *arena, Cases *cases, LoopKernel *k, int64_t rows); /* closes the tile loop; verifies */
LoopId int64(LoopKernel *k, int64_t value);
LoopId rows_of(LoopKernel *k);

#endif
