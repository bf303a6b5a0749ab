/* Run-time scalars: f64 values that depend on settings, `step`, `total_steps` and `epoch` alone are computed once a step, by the
   function `scalars`, and read by kernels as scalars. */
#ifndef TG_HOIST_H
#define TG_HOIST_H

#include "passes/copy.h"

typedef struct Hoist {
    Arena *arena;
    Graph *out;
    Builder b;          /* of the function `scalars` */
    Map numbers;        /* of its values: computed scalar first + i */
    uint32_t first;     /* index of the first computed scalar in Graph.scalars */
} Hoist;

void tg_hoist_init(Hoist *hoist, PassContext *context, Graph *out);
/* Per node of `from`: 1 + the scalar that holds its value, or 0. */
uint32_t *tg_hoist_func(Hoist *hoist, const Graph *graph, const Func *from);

#endif
