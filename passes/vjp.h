/* Gradient rules: one per grad name of ir/ops.def. A rule appends to the function that it differentiates.

   A factor that is not finite never meets a cotangent of 0: where the cotangent is 0 the gradient is 0, so that a
   branch of a select that is not taken leaks nothing. Singular points are those of docs/policies.md: ties of max and
   min split evenly, and sqrt at 0, abs at 0, x^0 at 0 and 0^b (b >= 0) by b have gradient 0. */
#ifndef TG_VJP_H
#define TG_VJP_H

#include "ir/build.h"

typedef struct Vjp {
    Builder *b;
    const Func *func;      /* b->func: forward nodes and cotangents live in it */
    NodeId node;           /* forward node */
    NodeId cotangent;      /* of the node's type */
    const NodeId *operand; /* the node's operands; set by tg_vjp */
    bool *wanted;          /* per operand: needs a gradient */
    const bool *in_f32;    /* per operand: a gradient in f32 is wanted, though the operand is low */
    NodeId *grad;          /* out, per operand, of the operand's type or in f32; 0: none */
} Vjp;

/* Sets every element of `grad`. Errors of building are left in the builder. */
void tg_vjp(Vjp *v);
/* Gradients stop at the operation: its rule is `none`. */
bool tg_vjp_stops(Op op);

#endif
