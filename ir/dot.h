/* A contraction as a library sees it: groups of matrix products with one stride per role. */
#ifndef TG_DOT_H
#define TG_DOT_H

#include "ir/graph.h"

/* Group g = o * inner + i lies o * x_group + i * x_inner elements into operand x. */
typedef struct DotStrides {
    int64_t group, inner;
} DotStrides;

/* Sizes for `rows` records, strides in elements. */
typedef struct DotGeometry {
    int64_t groups, inner, m, n, k; /* inner divides groups; 1: one stride walks all groups */
    DotStrides a, b, out;
    int64_t a_m, a_k, b_k, b_n, out_m; /* n of the result has stride 1 */
    bool rows_m, rows_k;               /* which size holds B, if not groups */
} DotGeometry;

/* What no such strides describe: the first operand, the second, the result in the order that `transpose` gives it. */
enum { DOT_IRREGULAR_A = 1, DOT_IRREGULAR_B = 2, DOT_IRREGULAR_OUT = 4 };

/* `transpose`: the node that reads the dot and says in which order the result is written, or NULL. Returns DOT_IRREGULAR_ bits. */
int tg_dot_geometry(const Graph *graph, const Func *func, const Node *dot, const Node *transpose, int64_t rows,
                    DotGeometry *geometry);

/* The third operand is no bias, but as large as the result: what the products are added to. */
bool tg_dot_adds(const Graph *graph, const Func *func, const Node *dot);

/* Axes of `type` in none of the two lists, ascending; returns how many. */
uint32_t tg_free_axes(const Type *type, Ints batch, Ints contract, int64_t out[TG_MAX_RANK]);

#endif
