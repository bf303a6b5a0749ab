/* A contraction as a library sees it: groups of matrix products with one stride per role. */
#ifndef TG_DOT_H
#define TG_DOT_H

#include "ir/graph.h"

/* Sizes for `rows` records, strides in elements; the result is contiguous [groups, m, n]. */
typedef struct DotGeometry {
    int64_t groups, m, n, k;
    int64_t a_group, a_m, a_k, b_group, b_k, b_n;
    bool rows_groups, rows_m, rows_k; /* which size holds B; n never does unless rows_n */
    bool rows_n;
} DotGeometry;

/* Which operands have dimensions that no one stride describes, or no unit stride: 0 none, 1 the first, 2 the second, 3 both. */
int tg_dot_geometry(const Graph *graph, const Func *func, const Node *dot, int64_t rows, DotGeometry *geometry);

/* Axes of `type` in none of the two lists, ascending; returns how many. */
uint32_t tg_free_axes(const Type *type, Ints batch, Ints contract, int64_t out[TG_MAX_RANK]);

#endif
