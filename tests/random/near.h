/* How far one operation's result on the CPU may lie from the evaluator's, operands being equal. */
#ifndef TG_TEST_NEAR_H
#define TG_TEST_NEAR_H

#include "ir/eval.h"

/* Equal bits; one NaN is any other. */
bool tg_same_value(double a, double b);

/* The first element of `got` that is too far from what node `id` gives for `operands`, or -1. `*wanted` is what it
 * gives there. `low`: BF16 or F16, to which mixed precision may have rounded the operands of a dot or an attention, and any
 * result in f32; another: it has not. */
int64_t tg_first_wrong(EvalState *state, const Graph *graph, const Func *func, NodeId id, const Tensor *operands,
                       const Tensor *got, DType low, double *wanted);

#endif
