#include "runtime/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

/* A step shorter than this stays on the calling thread: handing out and collecting work costs about a microsecond, and
   more after a pause. The rates are of one core, in its cache. */
enum { LEAST_MICROSECONDS = 20, KERNEL_FLOPS_A_MICROSECOND = 20000, KERNEL_BYTES_A_MICROSECOND = 20000 };

static CpuDevice *cpu_of(TgDevice *device) { return (CpuDevice *)(void *)device; }

bool tg_cpu_splits(CpuDevice *device, double microseconds) {
    bool splits = device->options.threads > 1 && microseconds >= LEAST_MICROSECONDS;
    device->wants_pool |= splits;
    return splits;
}

static bool cpu_splits(TgDevice *base, double flops, double bytes) {
    double compute = flops / KERNEL_FLOPS_A_MICROSECOND, memory = bytes / KERNEL_BYTES_A_MICROSECOND;
    return tg_cpu_splits(cpu_of(base), compute > memory ? compute : memory);
}

static void cpu_close(TgDevice *base) {
    CpuDevice *device = cpu_of(base);
    tg_pool_close(device->pool);
    tg_cpu_library_close(device);
    tg_cpu_arena_close(&device->memory);
}

static Status cpu_allocate(TgDevice *base, size_t bytes, char **memory) {
    CpuDevice *device = cpu_of(base);
    const TgDeviceOptions *options = &device->options;
    size_t scratch_bytes = (size_t)options->threads * device->scratch_bytes;
    char *scratch = tg_arena_alloc(options->arena, scratch_bytes + 64);
    device->scratch = scratch + (64 - (uintptr_t)scratch % 64) % 64;
    if (device->wants_pool)
        TG_TRY(tg_pool_open(options->arena, options->threads, device->dnn ? device->dnn->enter_thread : NULL,
                            &device->pool, options->why, TG_DEVICE_WHY));
    Status status = tg_cpu_arena_open(&device->memory, options->arena->host, device->pool, bytes, options->poison);
    if (status != TG_OK)
        snprintf(options->why, TG_DEVICE_WHY,
                 "no memory left: the buffers take %.1f MiB; a smaller model, or a smaller 'micro', needs less",
                 (double)bytes / 1048576);
    *memory = device->memory.memory;
    return status;
}

static size_t cpu_touched(const TgDevice *base) {
    return tg_cpu_arena_touched(&((const CpuDevice *)(const void *)base)->memory);
}

static void cpu_write(TgDevice *device, void *to, const void *from, size_t bytes) {
    (void)device;
    memcpy(to, from, bytes);
}

static void cpu_copy(TgDevice *device, void *to, const void *from, size_t bytes) {
    (void)device;
    memmove(to, from, bytes);
}

typedef struct KernelRun {
    TgKernel *kernel;
    void *const *buffers;
    const TgScalars *scalars;
} KernelRun;

static void run_tiles(void *context, int thread, int64_t first, int64_t last) {
    (void)thread;
    const KernelRun *run = context;
    run->kernel(run->buffers, run->scalars, first, last);
}

static void cpu_launch(TgDevice *base, TgKernel *kernel, void *const *buffers, const TgScalars *scalars, int64_t tiles,
                       bool split) {
    CpuDevice *device = cpu_of(base);
    if (split && tiles > 1 && device->pool)
        tg_pool_run(device->pool, run_tiles, &(KernelRun){kernel, buffers, scalars}, tiles);
    else
        kernel(buffers, scalars, 0, tiles);
}

static void cpu_watch(TgDevice *base, const TgWatch *watch) {
    CpuDevice *device = cpu_of(base);
    if (device->pool)
        tg_pool_watch(device->pool, watch);
}

static const TgDeviceOps cpu_ops = {
    .name = "cpu",
    .close = cpu_close,
    .splits = cpu_splits,
    .dot_prepare = tg_cpu_dot_prepare,
    .allocate = cpu_allocate,
    .touched = cpu_touched,
    .write = cpu_write,
    .copy = cpu_copy,
    .launch = cpu_launch,
    .dot = tg_cpu_dot,
    .attention_prepare = tg_cpu_attention_prepare,
    .attention = tg_cpu_attention,
    .watch = cpu_watch,
};

Status tg_cpu_device_open(const TgDeviceOptions *options, TgDevice **device) {
    CpuDevice *cpu = TG_ALLOC(options->arena, CpuDevice, 1);
    cpu->base.ops = &cpu_ops;
    cpu->options = *options;
    *device = &cpu->base;
    return TG_OK;
}
