/* One training step by the reference evaluator, at graph@step or graph@kernel: the protocol of docs/training.md in a few lines. */
#ifndef TG_TEST_STEP_H
#define TG_TEST_STEP_H

#include "ir/eval.h"

/* `state` has buffers (replaced by what the step stores), scalars and mode; `fields` holds all the set's records (first dimension
   of each), `records` of them. `values` gets the fields' values in order. False: the gate closed, nothing is stored. */
bool step_run(EvalState *state, Diags *diags, const Graph *graph, const Tensor *fields, int64_t records, double *values);
/* The evaluation functions over `records` records, in micro-batches of the graph's size. */
void step_evaluate(EvalState *state, Diags *diags, const Graph *graph, const Tensor *fields, int64_t records, double *values);
/* Runs `init`. */
void step_init(EvalState *state, Diags *diags, const Graph *graph);
void step_set_scalar(EvalState *state, const Graph *graph, const char *name, double value);

#endif
