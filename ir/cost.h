/* What a node costs: for the plan's steps, for reports, for decisions that compare. */
#ifndef TG_COST_H
#define TG_COST_H

#include "ir/graph.h"

/* Floating-point operations with B = `rows`; a multiply-add is two, a maths function counts as its polynomial. A call's
   are those of its kernel. `arena` is for scratch. */
double tg_node_flops(const Graph *graph, const Func *func, NodeId node, int64_t rows);
/* Bytes that it reads and writes when nothing is fused: its operands and its result. Leaves: 0. */
double tg_node_bytes(const Graph *graph, const Func *func, NodeId node, int64_t rows);

#endif
