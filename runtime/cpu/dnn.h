/* What the plugin libtgrt_dnn.so offers: one matrix product through oneDNN, on the thread that asks for it. */
#ifndef TG_CPU_DNN_H
#define TG_CPU_DNN_H

#include "ir/base/host.h"
#include "ir/base/status.h"
#include "ir/plan/dnn.h"
#include "ir/plan/dtype.h"

#include <stdbool.h>

enum { TG_DNN_ABI = 3 };

typedef struct TgDnnLibrary TgDnnLibrary;
typedef struct TgDnnCall TgDnnCall;

/* out[m][n] = a[m][k] * b[k][n] (+ bias[n], MATMUL only), strides in elements; a and b each have a stride of 1. */
typedef struct DnnShape {
    DnnVariant variant;     /* MATMUL, SGEMM or GEMM_BF16 */
    DType dtype, out_dtype; /* of a and b; of out */
    bool bias;
    DType bias_dtype;
    int64_t m, n, k, a_m, a_k, b_k, b_n, out_m;
    bool adds; /* onto what out holds; not MATMUL */
} DnnShape;

typedef struct DnnTask {
    const void *a, *b, *bias;
    void *out, *scratch; /* scratch: the call's scratch_bytes, aligned to 64, the thread's own */
} DnnTask;

typedef struct TgDnn {
    uint32_t abi;                              /* TG_DNN_ABI */
    void (*version)(char *text, size_t bytes); /* "oneDNN 2.6.3" */
    /* Calls will come from threads 0 .. threads - 1. */
    Status (*open)(const TgHost *host, int threads, TgDnnLibrary **library);
    void (*close)(TgDnnLibrary *library);
    /* Every thread that calls `prepare` or `run` does this first. */
    void (*enter_thread)(void);
    /* TG_MODEL: the library cannot compute this shape on this machine. */
    Status (*prepare)(TgDnnLibrary *library, const DnnShape *shape, TgDnnCall **call, size_t *scratch_bytes);
    void (*run)(TgDnnCall *call, int thread, const DnnTask *task);
} TgDnn;

/* The plugin's one symbol. */
#define TG_DNN_SYMBOL "tg_dnn"
extern const TgDnn tg_dnn;

#endif
