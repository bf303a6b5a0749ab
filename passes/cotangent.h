/* Inside of autodiff: what the readers of one value send back, and its sum. */
#ifndef TG_COTANGENT_H
#define TG_COTANGENT_H

#include "ir/build.h"

typedef Vec(NodeId) Parts;

typedef struct Cotangents {
    Arena *arena;
    Builder *b;
} Cotangents;

/* The sum; 0: there are no parts. Rearranges `parts`. (cotangent.c) */
NodeId tg_cotangent_sum(const Cotangents *c, Parts *parts);

#endif
