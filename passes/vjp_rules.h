/* What the files of gradient rules share. A rule fills v->grad for the operands that are wanted. */
#ifndef TG_VJP_RULES_H
#define TG_VJP_RULES_H

#include "passes/vjp.h"

#define OP(name, min, max, levels, attrs, shape, eval, grad, ...) void vjp_##grad(Vjp *v);
#include "ir/ops.def"
#undef OP

/* By value: the arrays of the function and of the types grow while a rule builds. */
static inline Type grad_type(const Vjp *v, NodeId node) { return *tg_node_type(v->b->graph, v->b->func, node); }
static inline TypeId grad_type_id(const Vjp *v, NodeId node) { return tg_node(v->b->func, node)->type; }
static inline const Attr *grad_attr(const Vjp *v) { return tg_node(v->b->func, v->node)->attr; }

/* A constant of the cotangent's type, never scaled. */
static inline NodeId grad_number(Vjp *v, double value) {
    Type type = grad_type(v, v->cotangent);
    type.scaled = false;
    return tg_const(v->b, tg_type(&v->b->graph->types, &type), value);
}
static inline NodeId grad_mul(Vjp *v, NodeId x, NodeId y) { return tg_binary(v->b, OP_mul, x, y); }

/* `node` is a constant whose elements are all `*value`. */
bool grad_is_splat(const Vjp *v, NodeId node, double *value);
/* `gradient`, or 0 where the cotangent is 0. */
NodeId grad_guarded(Vjp *v, NodeId gradient);

/* The sum of `x` over the axes that `reduced` marks, which leave the type: the innermost first, the batch axis last. */
NodeId grad_sum(Vjp *v, NodeId x, const bool reduced[TG_MAX_RANK]);
/* `x`, a reduction over `axes`, repeated along them in the type `full`. */
NodeId grad_expand(Vjp *v, NodeId x, Ints axes, TypeId full);

#endif
