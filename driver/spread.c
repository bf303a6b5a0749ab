#include "driver/spread.h"

#include <math.h>
#include <string.h>

/* Values round to the nearest, half way to even: f16 has 65504, and becomes infinite from 65520 on; e4m3 has 448, and no more behind
   464; e5m2 has 57344, up to 61440; bf16 rounds up its last place. What f32 has as a denormal is 0 in bf16. */
static const SpreadType types[SPREAD_TYPES] = {
    [SPREAD_F16] = {"f16", -25, -14, 15, 4, true},
    [SPREAD_BF16] = {"bf16", -126, -126, 127, 3, false},
    [SPREAD_E4M3] = {"e4m3", -10, -6, 8, 1, true},
    [SPREAD_E5M2] = {"e5m2", -17, -14, 15, 2, true},
};

const SpreadType *spread_type(SpreadTypeId id) { return &types[id]; }

/* Of the first 23 bits of a fraction. */
static int level_of(uint32_t fraction) {
    static const uint32_t begins[SPREAD_LEVELS] = {0, 0x680001, 0x700000, 0x7f8000, 0x7ff000};
    int level = 0;
    while (level + 1 < SPREAD_LEVELS && fraction >= begins[level + 1])
        level++;
    return level;
}

void spread_add(Spread *spread, double value) {
    if (value == 0) {
        spread->zeros++;
        return;
    }
    if (!isfinite(value)) {
        spread->infinite++;
        return;
    }
    double magnitude = fabs(value);
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    exponent = exponent < SPREAD_LEAST ? SPREAD_LEAST : exponent > SPREAD_MOST ? SPREAD_MOST : exponent;
    spread->counts[exponent - SPREAD_LEAST][level_of((uint32_t)(bits >> 29) & 0x7fffff)]++;
    if (spread->nonzero++ == 0)
        spread->least = spread->largest = magnitude;
    spread->least = magnitude < spread->least ? magnitude : spread->least;
    spread->largest = magnitude > spread->largest ? magnitude : spread->largest;
}

static bool overflows(const SpreadType *type, int exponent, int level) {
    return exponent > type->top || (exponent == type->top && level >= type->level);
}

SpreadLoss spread_loss(const Spread *spread, const SpreadType *type, int shift) {
    SpreadLoss loss = {0};
    if (spread->nonzero == 0)
        return loss;
    for (int e = SPREAD_LEAST; e <= SPREAD_MOST; e++)
        for (int level = 0; level < SPREAD_LEVELS; level++) {
            double count = (double)spread->counts[e - SPREAD_LEAST][level];
            int exponent = e + shift;
            if (exponent < type->zero)
                loss.zero += count;
            else if (exponent < type->normal)
                loss.denormal += count;
            else if (overflows(type, exponent, level))
                loss.infinite += count;
        }
    double all = (double)spread->nonzero;
    return (SpreadLoss){loss.zero / all, loss.denormal / all, loss.infinite / all};
}

int spread_room(const Spread *spread, const SpreadType *type, int otherwise) {
    for (int e = SPREAD_MOST; e >= SPREAD_LEAST; e--)
        for (int level = SPREAD_LEVELS - 1; level >= 0; level--) {
            if (spread->counts[e - SPREAD_LEAST][level] == 0)
                continue;
            int room = type->top - e - (level >= type->level);
            return room < otherwise ? room : otherwise;
        }
    return otherwise;
}
