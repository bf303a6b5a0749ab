/* What exec asks of a device: memory, kernels, dots, copies. One implementation a kind of device; runtime/cpu/device.c
 * is the CPU's. */
#ifndef TG_DEVICE_H
#define TG_DEVICE_H

#include "ir/plan/abi.h"
#include "ir/plan/plan.h"
#include "runtime/clock.h"

typedef struct TgDeviceOps TgDeviceOps;
typedef struct TgDeviceDot TgDeviceDot;
typedef struct TgDeviceAttention TgDeviceAttention;

/* The first member of every device. */
typedef struct TgDevice {
    const TgDeviceOps *ops;
} TgDevice;

/* A step of a chain, ready to run. */
typedef struct TgDeviceLink {
    PlanStepKind kind; /* not COPY */
    uint32_t step;     /* of the plan */
    TgKernel *kernel;
    TgDeviceDot *dot;
    TgDeviceAttention *attention;
    void *const *buffers;
    int64_t tasks; /* a multiple of the chain's parts */
} TgDeviceLink;

typedef struct TgDeviceChain {
    const TgDeviceLink *links;
    uint32_t count;
    int64_t parts;
} TgDeviceChain;

enum { TG_DEVICE_WHY = 1024 };

typedef struct TgDeviceOptions {
    Arena *arena;               /* for the device's own tables; outlives it */
    int threads;                /* at least 1 */
    bool poison;                /* the memory begins as bytes 255, else 0 */
    const char *directories[2]; /* where plugins lie, in the order to try; NULL: none */
    char *why;                  /* TG_DEVICE_WHY bytes: what to do after a failure */
} TgDeviceOptions;

/* The order of calls: open, for each step `splits`, `dot_prepare` or `attention_prepare`, `allocate` once, then any number of the rest, from
 * one thread. */
struct TgDeviceOps {
    const char *name;
    void (*close)(TgDevice *device);
    /* Whether these steps are together worth sharing out among the device's threads. */
    bool (*splits)(TgDevice *device, const PlanStep *steps, uint32_t count);
    /* The prepared dot lives as long as the device. `bias` is the bias's type, if the dot has one. */
    Status (*dot_prepare)(TgDevice *device, const PlanDot *dot, DType bias, TgDeviceDot **prepared);
    /* Likewise; the kernels are those that the attention names. */
    Status (*attention_prepare)(TgDevice *device, const PlanAttention *attention, TgKernel *weights, TgKernel *score_gradient,
                                TgDeviceAttention **prepared);
    /* The one block of all buffers, aligned to at least 64 bytes. */
    Status (*allocate)(TgDevice *device, size_t bytes, char **memory);
    /* One past the highest byte of the block that was written since `allocate`; 0 without poison. */
    size_t (*touched)(const TgDevice *device);
    void (*write)(TgDevice *device, void *to, const void *from, size_t bytes); /* from the program's memory */
    void (*copy)(TgDevice *device, void *to, const void *from, size_t bytes);  /* inside the block; may overlap */
    /* Tiles [0, tiles), shared out if `split`. */
    void (*launch)(TgDevice *device, TgKernel *kernel, void *const *buffers, const TgScalars *scalars, int64_t tiles,
                   bool split);
    /* Buffers: a, b, [bias], out, [scratch]. */
    void (*dot)(TgDevice *device, TgDeviceDot *dot, void *const *buffers);
    /* Buffers: as PlanAttention says. `dots_only`: what it costs without its row kernels, which leaves nothing meaningful. */
    void (*attention)(TgDevice *device, TgDeviceAttention *attention, void *const *buffers, const TgScalars *scalars,
                      bool dots_only);
    /* PlanChain: each thread runs its parts of all links, and only then is there any waiting. As above, `dots_only`. */
    void (*chain)(TgDevice *device, const TgDeviceChain *chain, const TgScalars *scalars, bool dots_only);
    /* Who is told of what each thread does in a launch or dot that is shared out; NULL: nobody, and no clock is asked. */
    void (*watch)(TgDevice *device, const TgWatch *watch);
};

TG_CHECKED Status tg_cpu_device_open(const TgDeviceOptions *options, TgDevice **device);

#endif
