/* The CPU as a device: what its files share. */
#ifndef TG_CPU_CPU_H
#define TG_CPU_CPU_H

#include "ir/base/vec.h"
#include "runtime/cpu/arena.h"
#include "runtime/cpu/dnn.h"
#include "runtime/cpu/pool.h"
#include "runtime/device.h"

/* A prepared call of the library: the same shape is prepared once. */
typedef struct CpuCall {
    DnnShape shape;
    TgDnnCall *call;
    size_t scratch_bytes;
} CpuCall;

typedef struct CpuDevice {
    TgDevice base;
    TgDeviceOptions options;
    TgPool *pool;    /* NULL: nothing is shared out */
    bool wants_pool; /* some step is worth it */
    const TgWatch *watch;
    CpuArena memory;
    void *plugin;     /* of dlopen */
    const TgDnn *dnn; /* NULL until a dot needs it */
    TgDnnLibrary *library;
    Vec(CpuCall) calls;
    size_t scratch_bytes; /* of each thread: the most that a call needs */
    char *scratch;        /* [threads][scratch_bytes] */
} CpuDevice;

/* Opens the plugin if it is not open. (library.c) */
TG_CHECKED Status tg_cpu_library(CpuDevice *device);
void tg_cpu_library_close(CpuDevice *device);

/* (dot.c) */
Status tg_cpu_dot_prepare(TgDevice *device, const PlanDot *dot, DType bias, TgDeviceDot **prepared);
void tg_cpu_dot(TgDevice *device, TgDeviceDot *dot, void *const *buffers);
/* Tasks [first, last) of a dot in one piece, on this thread. */
void tg_cpu_dot_tasks(CpuDevice *device, TgDeviceDot *dot, void *const *buffers, int thread, int64_t first, int64_t last);

/* The prepared call of a product; TG_MODEL: the library has no such call on this machine. (dot.c) */
TG_CHECKED Status tg_cpu_find_call(CpuDevice *device, const DnnShape *shape, uint32_t *index);
/* Each thread will have so much scratch, aligned to 64. (dot.c) */
void tg_cpu_need_scratch(CpuDevice *device, size_t bytes);

/* (attention.c) */
Status tg_cpu_attention_prepare(TgDevice *device, const PlanAttention *attention, TgKernel *weights, TgKernel *score_gradient,
                                TgDeviceAttention **prepared);
void tg_cpu_attention(TgDevice *device, TgDeviceAttention *attention, void *const *buffers, const TgScalars *scalars,
                      bool dots_only);
/* Tasks [first, last), on this thread. */
void tg_cpu_attention_tasks(CpuDevice *device, TgDeviceAttention *attention, void *const *buffers, const TgScalars *scalars,
                            bool dots_only, int thread, int64_t first, int64_t last);

/* Whether a step is long enough for several threads: microseconds of work by its cost on one. (device.c) */
bool tg_cpu_splits(CpuDevice *device, double microseconds);

/* `count` elements in a line, any float type but f64 to f32, and f32 rounded to any: tg_element_get and tg_element_set. (cast.c) */
void tg_cpu_widen(DType from, const void *line, float *to, int64_t count);
void tg_cpu_narrow(DType to, const float *line, void *out, int64_t count);

/* A dot's tile through packed f32 copies of its operands. (convert.c) */
size_t tg_cpu_convert_bytes(const DnnShape *shape, size_t inner_scratch_bytes);
void tg_cpu_convert(const CpuDevice *device, const CpuCall *inner, const DnnShape *shape, int thread,
                    const DnnTask *task);
/* The packed f32 product that tg_cpu_convert computes inside. */
DnnShape tg_cpu_convert_inner(const DnnShape *shape);
/* A dot's tile of f64 operands. */
void tg_cpu_plain(const DnnShape *shape, const DnnTask *task);
/* One column of f32 operands. */
void tg_cpu_column(const DnnShape *shape, const DnnTask *task);

#endif
