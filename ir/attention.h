/* Which attentions a target computes by blocks of queries, without all scores in memory. */
#ifndef TG_ATTENTION_H
#define TG_ATTENTION_H

#include "ir/graph.h"

/* `node`: attention or a gradient of it. f32, bf16 or f16, without a mask, nothing empty, and B neither in queries nor in positions. */
bool tg_attention_is_by_blocks(const Graph *graph, const Func *func, const Node *node);

#endif
