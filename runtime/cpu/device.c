#include "runtime/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

/* A step shorter than this stays on the calling thread: handing out and collecting work costs about a microsecond, and
   more after a pause. The rates are of one core, in its cache. */
enum { LEAST_MICROSECONDS = 20, BYTES_A_MICROSECOND = 20000 };
static const double flops_a_microsecond[] = {[STEP_KERNEL] = 20000, [STEP_DOT] = 100000, [STEP_ATTENTION] = 100000, [STEP_COPY] = 1};

static CpuDevice *cpu_of(TgDevice *device) { return (CpuDevice *)(void *)device; }

bool tg_cpu_splits(CpuDevice *device, double microseconds) {
    bool splits = device->options.threads > 1 && microseconds >= LEAST_MICROSECONDS;
    device->wants_pool |= splits;
    return splits;
}

static double microseconds_of(const PlanStep *step) {
    double compute = step->flops / flops_a_microsecond[step->kind], memory = step->bytes / BYTES_A_MICROSECOND;
    return compute > memory ? compute : memory;
}

static bool cpu_splits(TgDevice *base, const PlanStep *steps, uint32_t count) {
    double microseconds = 0;
    for (uint32_t i = 0; i < count; i++)
        microseconds += microseconds_of(&steps[i]);
    return tg_cpu_splits(cpu_of(base), microseconds);
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

/* One run of a chain. */
typedef struct ChainRun {
    CpuDevice *device;
    const TgDeviceChain *chain;
    const TgScalars *scalars;
    bool dots_only;
} ChainRun;

static void run_link(const ChainRun *run, const TgDeviceLink *link, int thread, int64_t first, int64_t last) {
    switch (link->kind) {
    case STEP_DOT:
        tg_cpu_dot_tasks(run->device, link->dot, link->buffers, thread, first, last);
        break;
    case STEP_ATTENTION:
        tg_cpu_attention_tasks(run->device, link->attention, link->buffers, run->scalars, run->dots_only, thread, first, last);
        break;
    default:
        if (!run->dots_only)
            link->kernel(link->buffers, run->scalars, first, last);
    }
}

static void run_links(void *context, int thread, int64_t first, int64_t last) {
    const ChainRun *run = context;
    const TgWatch *watch = run->device->watch;
    for (uint32_t i = 0; i < run->chain->count; i++) {
        const TgDeviceLink *link = &run->chain->links[i];
        int64_t each = link->tasks / run->chain->parts, begin = watch ? tg_nanoseconds() : 0;
        run_link(run, link, thread, first * each, last * each);
        if (watch)
            watch->ran_link(watch->context, thread, link->step, begin, tg_nanoseconds());
    }
}

static void cpu_chain(TgDevice *base, const TgDeviceChain *chain, const TgScalars *scalars, bool dots_only) {
    CpuDevice *device = cpu_of(base);
    tg_pool_watch(device->pool, NULL);
    tg_pool_run(device->pool, run_links, &(ChainRun){device, chain, scalars, dots_only}, chain->parts);
    tg_pool_watch(device->pool, device->watch);
}

static void cpu_watch(TgDevice *base, const TgWatch *watch) {
    CpuDevice *device = cpu_of(base);
    device->watch = watch;
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
    .chain = cpu_chain,
    .watch = cpu_watch,
};

Status tg_cpu_device_open(const TgDeviceOptions *options, TgDevice **device) {
    CpuDevice *cpu = TG_ALLOC(options->arena, CpuDevice, 1);
    cpu->base.ops = &cpu_ops;
    cpu->options = *options;
    *device = &cpu->base;
    return TG_OK;
}
