/* What a host compiler needs before a text of codegen/cuda: see tests/cuda/host.h. */
#include <math.h>
#include <stdbool.h>

typedef struct HostIndex {
    unsigned int x;
} HostIndex;
extern HostIndex threadIdx, blockIdx, gridDim;
void host_cuda_barrier(void);
void host_cuda_warp(unsigned int mask);
void host_cuda_exchange(unsigned int mask, const void *own, void *other, unsigned long bytes, int h);

#define __global__
#define __device__
#define __launch_bounds__(threads, blocks)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((section("tg_shared")))
#define __syncthreads() host_cuda_barrier()
#define __syncwarp(mask) host_cuda_warp(mask)
#define HOST_SWAP(type)                                                                                                \
    static inline type host_swap_##type(unsigned int mask, type x, int h) {                                            \
        type other;                                                                                                    \
        host_cuda_exchange(mask, &x, &other, sizeof x, h);                                                             \
        return other;                                                                                                  \
    }
typedef long long longlong;
HOST_SWAP(int)
HOST_SWAP(longlong)
HOST_SWAP(float)
HOST_SWAP(double)
#define __shfl_xor_sync(mask, x, h)                                                                                    \
    _Generic((x), int : host_swap_int, longlong : host_swap_longlong, float : host_swap_float, double : host_swap_double)( \
        mask, x, h)

__attribute__((used)) __shared__ char host_shared_is_never_empty;
extern char __start_tg_shared[], __stop_tg_shared[];
void host_cuda_spoil(void) {
    for (char *at = __start_tg_shared; at < __stop_tg_shared; at++)
        *at = (char)0xA5;
}
