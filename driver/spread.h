/* How the magnitudes of a tensor's elements are spread, and what types of fewer bits would lose of them. */
#ifndef TG_SPREAD_H
#define TG_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

enum { SPREAD_LEAST = -160, SPREAD_MOST = 140, SPREAD_EXPONENTS = SPREAD_MOST - SPREAD_LEAST + 1, SPREAD_LEVELS = 5 };

/* Elements by the exponent of their magnitude, and within one by where types of that greatest exponent begin to overflow. */
typedef struct Spread {
    uint64_t counts[SPREAD_EXPONENTS][SPREAD_LEVELS];
    uint64_t zeros, nonzero, infinite; /* infinite: or no number. `nonzero` are the others */
    double least, largest;             /* magnitudes of those that are not 0; 0: there is none */
} Spread;

typedef enum SpreadTypeId { SPREAD_F16, SPREAD_BF16, SPREAD_E4M3, SPREAD_E5M2, SPREAD_TYPES } SpreadTypeId;

typedef struct SpreadType {
    const char *name;
    int zero;    /* magnitudes of lesser exponents become 0: less than half the least denormal */
    int normal;  /* those of lesser ones are denormal */
    int top, level; /* those of greater exponents become infinite, and of this one from the level on */
    bool scaled; /* gradients in it are: the exponents of f32 do not fit into it */
} SpreadType;

/* Shares of the elements that are not 0. */
typedef struct SpreadLoss {
    double zero, denormal, infinite;
} SpreadLoss;

const SpreadType *spread_type(SpreadTypeId id);
void spread_add(Spread *spread, double value);
/* Of all elements times 2^shift. */
SpreadLoss spread_loss(const Spread *spread, const SpreadType *type, int shift);
/* The greatest shift with which nothing becomes infinite; `otherwise` if that is greater, or there is nothing. */
int spread_room(const Spread *spread, const SpreadType *type, int otherwise);

#endif
