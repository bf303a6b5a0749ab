/* --validate: the reference evaluator runs every function before and after a pass, on random arguments and buffers, and compares
   what both give. */
#ifndef TG_VALIDATE_H
#define TG_VALIDATE_H

#include "ir/eval.h"
#include "passes/pass.h"

/* Functions and results that only one of the graphs has are passed over where the pass adds or replaces some. The first
   difference is reported with the function, the result, both values and its source line: TG_INTERNAL. */
TG_CHECKED Status tg_validate(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after);

/* Random tensors for a function of `graph`: values in [-1, 1], small integers; `state` gets buffers, scalars (1) and args for
   `rows` records. Deterministic. */
void tg_random_state(Arena *arena, const Graph *graph, const Func *func, int64_t rows, EvalState *state);

#endif
