/* --validate: the reference evaluator runs before and after a pass and compares, as the pass declares to behave
   (PassEffect).

   - Every function that both graphs have, on random arguments and buffers.
   - Whole steps, where the graph has what they take (step.h): init, two steps of which the second is short, an
   evaluation; so what one function leaves to the next counts too. At graph@model the step is evaluated from the
   objective as it stands, so that the pass batch is compared with something that knows no micro-batches.
   - Gradients, when a pass adds them: against differences of the loss.

   Values that a pass keeps have equal bits, with rounding as in a program; what it may round is compared in f64. */
#ifndef TG_VALIDATE_H
#define TG_VALIDATE_H

#include "ir/eval.h"
#include "passes/pass.h"

/* Functions and results that only one of the graphs has are passed over where the pass adds or replaces some. The first
   difference is reported with the pass, what it is in, both values and its source line: TG_INTERNAL. What has too many
   elements for the evaluator is left out, with a note. */
TG_CHECKED Status tg_validate(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after);

/* The objective's results gradient.PATH in `after` against central differences of its loss in `before`, in f64, along
 * random directions over all parameters, at `point`. Where the loss is not smooth nothing is said; `*checked`
 * directions were compared. */
TG_CHECKED Status tg_validate_gradients(PassContext *context, const PassInfo *pass, const Graph *before,
                                        const Graph *after, const EvalState *point, uint32_t *checked);

/* The first value of a function that its copy differs from. */
typedef struct ValueDiffers {
    const Func *func; /* NULL: none does */
    NodeId value, copy;
    int64_t element;
    double expected, got;
} ValueDiffers;
/* Where the pass says what became of its values. Nothing is reported. */
void tg_validate_values(PassContext *context, const PassInfo *pass, const Graph *before, const Graph *after, const PassMap *map,
                        ValueDiffers *differs);

/* Random tensors for a function of `graph`: values in [-1, 1], small integers; `state` gets buffers, scalars (1) and args for
   `rows` records. Deterministic. */
void tg_random_state(Arena *arena, const Graph *graph, const Func *func, int64_t rows, EvalState *state);

#endif
