/* Finds what makes a graph's values go wrong: the first pass after which the reference evaluator gives others (passes/validate.h), the
   first of its rewrites (passes/rewrite.h) with which it does, and the first value. */
#ifndef TG_BISECT_H
#define TG_BISECT_H

#include "passes/validate.h"

typedef struct Bisection {
    const PassInfo *pass; /* NULL: values stay as the passes say */
    int64_t rewrite;      /* its number over all passes, from 1, as --opt-bisect-limit counts; 0: all left out, it is still wrong */
    const char *rule;     /* of the rewrite */
    Loc loc;
    const Graph *before, *after; /* of the pass, with rewrites up to that one */
    ValueDiffers value;          /* func NULL: the pass does not say what its values were made of */
    bool too_large;              /* something had too many elements to be compared */
} Bisection;

/* One pass. `*asked`: rewrites of the passes before; then of this one too. */
TG_CHECKED Status tg_bisect_pass(PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in,
                                 int64_t *asked, Graph **out, Bisection *found);
/* Runs the named passes ("a,b"). What is wrong is reported to context->diags as an error once, by the pass and rewrite that are found. */
TG_CHECKED Status tg_bisect(PassContext *context, const PassOptions *options, const char *names, const Graph *in, Bisection *found);

#endif
