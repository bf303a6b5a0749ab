/* Random graphs of many operations, from a seed alone: valid by construction, since each operation comes from its rule
   of ir/ops.def (tests/ops/generate.h) over values that are already there. */
#ifndef TG_TEST_RANDOM_H
#define TG_TEST_RANDOM_H

#include "ir/build.h"
#include "ir/eval.h"

enum { RANDOM_ARGS = 16, RANDOM_BUFFERS = 32, RANDOM_SCALARS = 8 };

/* A graph@step with one function. Every value that nothing reads is a result, and so are some others. */
typedef struct RandomGraph {
    Graph *graph;
    Func *func;
    int64_t rows; /* B: arguments have so many */
    bool wild;    /* NaN, infinities, -0 and overflow are sought; else avoided, by search */
    Tensor args[RANDOM_ARGS];
    Tensor buffers[RANDOM_BUFFERS];
    double scalars[RANDOM_SCALARS];
} RandomGraph;

void tg_random_graph(Arena *arena, uint64_t seed, RandomGraph *result);

/* A graph@model that trains: `func` is its objective, whose loss every trained parameter reaches; it has batch sums of
   all kinds, states, an update with states of its own, an `init` of all buffers, fields, often an objective for
   evaluation and an export. `rows` is the batch; with several micro-batches no row depends on a sum that depends on
   parameters. */
void tg_random_model(Arena *arena, uint64_t seed, RandomGraph *result);

/* The state that evaluates it for its first `rows` rows. */
EvalState tg_random_graph_state(Arena *arena, const RandomGraph *of, int64_t rows);

#endif
