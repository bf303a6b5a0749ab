/* Shrinks a graph that shows a failure: delta debugging (Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
   2002) over functions, results, values, uses, declarations, sizes, element types and numbers. */
#ifndef TG_REDUCE_H
#define TG_REDUCE_H

#include "ir/graph.h"

typedef struct ReduceCounts {
    uint32_t funcs, nodes;
} ReduceCounts;
ReduceCounts tg_reduce_count(const Graph *graph);

/* What is still worth keeping, and who is told. `text` is a graph that tg_graph_verify accepts. */
typedef struct ReduceTest {
    bool (*is_interesting)(void *context, const char *text, size_t length);
    bool (*is_stopped)(void *context);                 /* give up: what there is so far is the result */
    void (*progress)(void *context, ReduceCounts now); /* something smaller was found */
    void *context;
} ReduceTest;

/* `*text`, in `arena`: a graph that is interesting and becomes uninteresting (or no smaller) by any single move of reduce_moves.c.
   `*minimal` is false if it was stopped. TG_USAGE: `graph` itself is not interesting. */
TG_CHECKED Status tg_shrink(Arena *arena, const Graph *graph, const ReduceTest *test, Str *text, bool *minimal);

#endif
