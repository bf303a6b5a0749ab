/* What this machine can do at the most: how fast it copies, and how fast it multiplies. Measured, when a profile is taken. */
#ifndef TG_ROOF_H
#define TG_ROOF_H

#include "runtime/device.h"

enum { TG_ROOF_SIZES = 8 };

/* A copy's bytes, those read and those written, and how many of them a second. */
typedef struct RoofCopy {
    double bytes, rate;
} RoofCopy;

typedef struct Roof {
    RoofCopy copy[TG_ROOF_SIZES]; /* ascending; what fits a cache is copied faster */
    uint32_t count;
    double flops; /* a second, of dots in f32: what one thread does, times the threads; 0: the plan has none */
} Roof;

/* Copies with the device's threads, on a device that is used for nothing else; copies up to the size of the plan's largest step.
   `options`: those that it was opened with. */
TG_CHECKED Status tg_roof_measure(TgDevice *device, const TgDeviceOptions *options, const TgPlan *plan, Roof *roof);
/* No step that moves so many bytes and computes so much is done sooner. */
double tg_roof_seconds(const Roof *roof, double bytes, double flops);

#endif
