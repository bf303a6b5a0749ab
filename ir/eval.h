/* The reference evaluator: one plain rule per op, over f64 values. The oracle of the tests and the folder's arithmetic;
   never the way a model runs. */
#ifndef TG_EVAL_H
#define TG_EVAL_H

#include "ir/graph.h"

typedef enum EvalMode {
    EVAL_REAL,  /* everything in f64; only `convert` rounds, to the types that the program names (f32 counts as real) */
    EVAL_TYPED, /* every result is rounded to its type; integers are exact */
} EvalMode;

/* A value: row-major f64 elements (i64 values beyond 2^53 are not represented). */
typedef struct Tensor {
    TypeId type;
    int64_t count;
    double *at;
} Tensor;

typedef struct EvalState {
    Arena *arena;
    EvalMode mode;
    int64_t rows;       /* B */
    int64_t first_row;  /* global batch position of row 0: the counter of random ops */
    uint64_t iteration; /* batches drawn so far: counter of random ops */
    uint64_t seed;
    const double *scalars; /* one per Graph.scalars */
    Tensor *buffers;       /* one per Graph.buffers; BUFFER_SUM ones hold all lanes, one after the other */
    int64_t lane;          /* the current one: of BUFFER_SUM buffers it is read by a load that names no lane */
    const Tensor *args;
    const Tensor *gradients; /* one per Graph.buffers: what `gradient` leaves give; NULL: they have no value */
} EvalState;

/* Evaluates `func`: one tensor per Func.results, in arena memory. Stores are not applied: the caller does, all at once. */
TG_CHECKED Status tg_eval_func(EvalState *state, const Graph *graph, const Func *func, Diags *diags, Tensor *results);

/* One node from its operands' values; used by folding. A call has none: TG_INTERNAL. */
TG_CHECKED Status tg_eval_node(EvalState *state, const Graph *graph, const Func *func, NodeId node,
                               const Tensor *operands, Tensor *result);

/* The value in [0, 1) of `random`: the upper 24 bits of the first word of Philox 4x32-10. Its key is (key ^ seed), low
   word first; its counter is the low words of iteration and row, then the index, low word first. */
void tg_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
float tg_random(uint64_t seed, uint64_t key, uint64_t iteration, uint64_t row, uint64_t index);

#endif
