/* The order in which a plan's functions run: one training step, a pass over a validation set, one run of an export. */
#ifndef TG_RUNTIME_LOOP_H
#define TG_RUNTIME_LOOP_H

#include "runtime/data.h"
#include "runtime/exec.h"

/* A function with the memory of its inputs. */
typedef struct LoopFunc {
    const PlanFunc *func; /* NULL: the plan has none */
    unsigned char **inputs;
    uint32_t *fields; /* per input: the set's field that fills it */
} LoopFunc;

/* Values of a function's results. */
typedef struct LoopFields {
    uint32_t count;
    const char **names;
    uint32_t *buffers;
    double *values;
} LoopFields;

/* A set that is evaluated, and what the last evaluation gave. */
typedef struct LoopSet {
    const char *as; /* its name among several; "": the only one */
    const RecordSet *data;
    LoopFunc micro;
    LoopFields fields;
} LoopSet;

/* Where training stands: what the built-in scalars of the next step are. */
typedef struct LoopPlace {
    int64_t step;      /* from 1: applied updates and this one */
    int64_t iteration; /* batches drawn before this one */
    int64_t epoch;     /* from 0 */
} LoopPlace;

typedef struct Loop {
    Arena *arena;
    const TgPlan *plan;
    TgExec *exec;
    TgScalars *scalars;
    double *values;
    double ignored; /* stands in for built-ins that the plan does not read */
    double *step, *total_steps, *epoch, *records, *lane_start;
    LoopFunc *pre;
    uint32_t pre_count;
    LoopFunc micro;
    const PlanFunc *tail, *after; /* `after`: the function `fields` */
    LoopFields fields;
    LoopSet *sets;
    uint32_t set_count;
    const unsigned char *finite, *open, *overflowed; /* what the tail says of a step; NULL: the plan does not tell */
    const float *loss_scale, *skipped_steps;         /* of f16: the step's, and those left out so far; or NULL */
    int64_t micros, lanes, micros_per_lane;
} Loop;

/* `train` may be NULL, `set_count` 0 when those functions will not run. TG_INTERNAL: the plan does not fit together. */
TG_CHECKED Status tg_loop_open(Loop *loop, Arena *arena, const TgPlan *plan, TgExec *exec, const RecordSet *train,
                               const RecordSet *sets, uint32_t set_count, const char **why);
/* Where the program reads the built-in scalar; a place that nothing reads if it does not. */
double *tg_loop_builtin(Loop *loop, const char *name);
/* What became of a step. Unless it is done it changed nothing: a value was not finite, or it overflowed in f16 and the next has a
   smaller loss scale, or the loss was over nothing. */
typedef enum StepEnd { STEP_DONE, STEP_NOT_FINITE, STEP_OVERFLOWED, STEP_EMPTY } StepEnd;
/* Runs one update; fields.values are those of this batch. */
TG_CHECKED StepEnd tg_loop_step(Loop *loop, const Batch *batch, const LoopPlace *place);
/* Fills the fields of every set: exact over the whole set, each record once. */
void tg_loop_evaluate(Loop *loop);
/* Only the dots of one step. */
void tg_loop_step_dots(Loop *loop);
/* The least that a step's other work takes: what every kernel before the update moves, at the speed of a copy of as many bytes;
   and in one copy what any update moves, which reads gradients (twice if they are clipped), parameters and optimizer states, and
   writes the latter two. */
double tg_loop_copy_seconds(const Loop *loop, const Roof *roof);

#endif
