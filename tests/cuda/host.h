/* CUDA C on the host: kernels are compiled by the system's cc after the definitions of prelude.h, and run with a fiber a thread,
   which meet at barriers and in shuffles. Blocks run one after another, their threads in ascending or in descending order: bits
   that depend on it show a race. Shared memory and workspace begin with bytes 0xA5. */
#ifndef TG_TEST_CUDA_HOST_H
#define TG_TEST_CUDA_HOST_H

#include "codegen/cuda/cuda.h"

typedef struct HostCuda {
    void *library;
    const LoopKernels *kernels;
    CudaLaunch *launches;
} HostCuda;

/* Prints the kernels, compiles and opens them. NULL: done; or what went wrong. */
const char *host_cuda_open(Arena *arena, const LoopKernels *kernels, HostCuda *out);
void host_cuda_close(HostCuda *cuda);
/* Tiles [first, last) of a kernel, by as many blocks less one. NULL, or what went wrong. */
const char *host_cuda_run(Arena *arena, const HostCuda *cuda, uint32_t kernel, void *const *buffers, const TgScalars *scalars,
                          int64_t first, int64_t last, bool descending);

/* What the prelude declares. */
typedef struct HostIndex {
    unsigned int x;
} HostIndex;
extern HostIndex threadIdx, blockIdx, gridDim;
void host_cuda_barrier(void);
void host_cuda_warp(unsigned int mask);
void host_cuda_exchange(unsigned int mask, const void *own, void *other, unsigned long bytes, int h);

#endif
