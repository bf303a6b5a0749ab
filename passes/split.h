/* Batch sums inside one micro-batch that is several lanes long. */
#ifndef TG_SPLIT_H
#define TG_SPLIT_H

#include "passes/pass.h"

/* The batch sum `id` of `from` over `operands`, as `split` sums over equal runs of the capacity, combined in a binary tree
   (neighbours first): the same bits as `split` micro-batches give. */
NodeId tg_split_sum(Builder *b, const Graph *graph, const Func *from, NodeId id, const NodeId *operands, int64_t split);

/* `in`, or a copy of it where no contraction of the batch holds a bias: that is added behind it, once, however the batch is cut. */
TG_CHECKED Status tg_split_bias(PassContext *context, const Graph *in, const Graph **out);

#endif
