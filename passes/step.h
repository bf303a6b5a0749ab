/* A training step by the reference evaluator, at every level: the protocol of docs/training.md in a few lines.

   At graph@step and graph@kernel the step's functions run as a program runs them, micro-batch by micro-batch. At
   graph@model, behind autodiff, the objective sees the whole batch at once; clipping and the gate are done here while
   the update does not do them itself. Both must give the same values, but for the rounding of sums. */
#ifndef TG_STEP_H
#define TG_STEP_H

#include "ir/eval.h"

/* The graph has what a step takes: micro, fields and tail, or an objective with its gradients and an update; a batch, and records
   of which all arguments are made. */
bool tg_step_is_whole(const Graph *graph);

/* Records [first, first + count) of `fields`, which hold the objective's arguments in order, B being their first
 * dimension. */
typedef struct StepRecords {
    const Tensor *fields;
    int64_t first, count;
} StepRecords;

/* What a step logs. */
typedef struct StepFields {
    const char **names;
    LocsId *locs;
    double *values;
    uint32_t count;
    bool finite; /* else the gate closed */
} StepFields;

/* `state` has buffers (they are replaced by what the step stores), scalars, seed, iteration and mode. */
TG_CHECKED Status tg_step_run(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records,
                              StepFields *fields);
/* The evaluation functions, in micro-batches of the graph's size. None: no fields. */
TG_CHECKED Status tg_step_evaluate(EvalState *state, Diags *diags, const Graph *graph, const StepRecords *records,
                                   StepFields *fields);
/* Runs `init`, if there is one. */
TG_CHECKED Status tg_step_init(EvalState *state, Diags *diags, const Graph *graph);
/* Low copies as their parameters are, which may have come from elsewhere. A step begins with it. */
TG_CHECKED Status tg_step_copies(EvalState *state, Diags *diags, const Graph *graph);
/* Runs `scalars`, if there is one, and sets what it computes. */
TG_CHECKED Status tg_step_compute_scalars(EvalState *state, Diags *diags, const Graph *graph);
/* The run-time scalar, if the graph has it. */
void tg_step_set_scalar(EvalState *state, const Graph *graph, const char *name, double value);

#endif
