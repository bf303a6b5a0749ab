/* Which values of the forward half the backward half computes again. (recompute_choose.c decides, recompute.c builds)

   The forward half is what a function's fields and states are made of, the backward half what only its gradients are. A value of the
   first that the second reads is `wanted`: it lies in memory from the one to the other, unless it is computed again. */
#ifndef TG_RECOMPUTE_H
#define TG_RECOMPUTE_H

#include "passes/pass.h"

typedef enum Fate {
    FATE_FREE,  /* an argument, a parameter, or made of nothing but constants and parameters: there at any time */
    FATE_AGAIN, /* computed again where the backward half needs it */
    FATE_LOST,  /* not wanted, and dear: not to be had */
    /* stays in memory: */
    FATE_SMALL,
    FATE_CHECKPOINT,
    FATE_DEAR,     /* a dot or the like that may not be computed again */
    FATE_OPERANDS, /* made of something that is lost */
    FATE_SOURCE,   /* not wanted itself: kept in place of what is made of it, which takes no less */
    FATE_SOON,     /* read again so soon that no memory would be saved */
    FATE_REFUSED,  /* --opt-bisect-limit */
} Fate;

static inline bool tg_fate_stays(Fate fate) { return fate >= FATE_SMALL; }

typedef struct Fates {
    uint8_t *of;            /* per node of the forward half: a Fate */
    bool *live, *forward;   /* per node: something needs it; it belongs to the forward half */
    bool *wanted;
    double *bytes;          /* of the value */
    uint32_t candidates;    /* dots and the like that could be computed again with a gain */
} Fates;

/* As context->recompute says; every wanted value that is not kept is a rewrite (passes/rewrite.h). */
Fates tg_recompute_choose(PassContext *context, const Graph *graph, const Func *func);

#endif
