#include "runtime/roof.h"

#include "ir/plan/dnn.h"

#include <math.h>
#include <string.h>

/* Sizes of copies are SMALLEST, and GROWTH times the one before. A rate is the best of ROUNDS, each as long as ROUND_NANOSECONDS or
   one run; they go through all sizes in turn, so that what else the machine does spoils none. */
enum {
    SMALLEST = 16 << 10,
    GROWTH = 4,
    COPY_TILE = 4 << 10,
    SIDE = 512, /* of the matrices that are multiplied: they lie in a core's cache */
    ROUNDS = 12,
    ROUND_NANOSECONDS = 500000
};

typedef struct Measure {
    TgDevice *device;
    int64_t copy_bytes; /* KERNEL: read and written */
    TgDeviceDot *dot;   /* NULL: a copy */
    bool split;
    void *buffers[3];
    double best; /* runs a second */
} Measure;

static void copy_tiles(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last) {
    (void)scalars;
    for (int64_t i = first; i < last; i++)
        memcpy((char *)buffers[1] + i * COPY_TILE, (const char *)buffers[0] + i * COPY_TILE, COPY_TILE);
}

static void run_once(const Measure *m) {
    static const TgScalars none = {0};
    if (m->dot)
        m->device->ops->dot(m->device, m->dot, m->buffers);
    else
        m->device->ops->launch(m->device, copy_tiles, m->buffers, &none, m->copy_bytes / 2 / COPY_TILE, m->split);
}

static void run_round(Measure *m) {
    int64_t begin = tg_nanoseconds(), now, runs = 0;
    do {
        run_once(m);
        runs++;
        now = tg_nanoseconds();
    } while (now - begin < ROUND_NANOSECONDS);
    m->best = fmax(m->best, 1e9 * (double)runs / (double)(now - begin));
}

/* Sizes of copies, up to the first that no step of the plan exceeds. */
static void choose_sizes(const TgPlan *plan, Roof *roof) {
    double most = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        most = fmax(most, plan->steps[i].bytes);
    roof->copy[0].bytes = SMALLEST;
    roof->count = 1;
    while (roof->count < TG_ROOF_SIZES && roof->copy[roof->count - 1].bytes < most) {
        roof->copy[roof->count].bytes = GROWTH * roof->copy[roof->count - 1].bytes;
        roof->count++;
    }
}

/* Of one task, so that one thread runs it. */
static Status prepare_dot(TgDevice *device, TgDeviceDot **dot) {
    const PlanDot plan = {.dtype = DT_F32, .out_dtype = DT_F32, .groups = 1, .m = SIDE, .n = SIDE, .k = SIDE, .inner = 1,
                          .a_m = SIDE, .a_k = 1, .b_k = SIDE, .b_n = 1, .out_m = SIDE, .pieces = 1,
                          .tile_m = SIDE, .tile_n = SIDE, .variant = DNN_MATMUL};
    return device->ops->dot_prepare(device, &plan, DT_F32, dot);
}

Status tg_roof_measure(TgDevice *device, const TgDeviceOptions *options, const TgPlan *plan, Roof *roof) {
    *roof = (Roof){0};
    choose_sizes(plan, roof);
    Measure dot = {.device = device};
    size_t bytes = (size_t)roof->copy[roof->count - 1].bytes, matrix = SIDE * SIDE * sizeof(float);
    if (plan->dot_count)
        TG_TRY(prepare_dot(device, &dot.dot));
    (void)device->ops->splits(device, &(PlanStep){.bytes = (double)bytes}, 1); /* so that there are threads, as for the plan */
    char *memory;
    TG_TRY(device->ops->allocate(device, bytes > 3 * matrix ? bytes : 3 * matrix, &memory));
    Measure copies[TG_ROOF_SIZES];
    for (uint32_t i = 0; i < roof->count; i++) {
        double copied = roof->copy[i].bytes;
        copies[i] = (Measure){.device = device, .copy_bytes = (int64_t)copied, .split = device->ops->splits(device, &(PlanStep){.bytes = copied}, 1),
                              .buffers = {memory, memory + (size_t)copied / 2}};
    }
    for (int i = 0; i < 3; i++)
        dot.buffers[i] = memory + (size_t)i * matrix;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < roof->count; i++)
            run_round(&copies[i]);
        if (dot.dot)
            run_round(&dot);
    }
    for (uint32_t i = 0; i < roof->count; i++)
        roof->copy[i].rate = roof->copy[i].bytes * copies[i].best;
    roof->flops = 2.0 * SIDE * SIDE * SIDE * options->threads * dot.best;
    return TG_OK;
}

/* Between two sizes the rate goes with the logarithm. */
static double copy_rate(const Roof *roof, double bytes) {
    const RoofCopy *copy = roof->copy;
    uint32_t i = 0;
    while (i < roof->count && copy[i].bytes < bytes)
        i++;
    if (i == 0 || i == roof->count)
        return copy[i ? i - 1 : 0].rate;
    double part = log(bytes / copy[i - 1].bytes) / log(copy[i].bytes / copy[i - 1].bytes);
    return copy[i - 1].rate + part * (copy[i].rate - copy[i - 1].rate);
}

double tg_roof_seconds(const Roof *roof, double bytes, double flops) {
    double move = bytes / copy_rate(roof, bytes), compute = roof->flops > 0 ? flops / roof->flops : 0;
    return move > compute ? move : compute;
}
