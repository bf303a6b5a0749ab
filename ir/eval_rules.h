/* What the files of the evaluator share: one rule per eval name of ir/ops.def. */
#ifndef TG_EVAL_RULES_H
#define TG_EVAL_RULES_H

#include "ir/eval.h"

/* One node being evaluated. `result` has its type, its count and zeroed memory; rules write it unrounded. */
typedef struct EvalCall {
    EvalState *state;
    const Graph *graph;
    const Func *func;
    const Node *node;
    const Tensor *operands;
    Tensor *result;
    Tensor *outputs; /* of `call`: set by its rule; of `result`: those of the call that it reads; NULL outside of
                        functions */
    Diags *diags;    /* may be NULL */
} EvalCall;

typedef Status EvalRule(EvalCall *call);

#define OP(name, min, max, levels, attrs, shape, eval, ...) TG_CHECKED Status eval_##eval(EvalCall *call);
#include "ir/ops.def"
#undef OP

/* A type's dimensions with the true number of rows, and the distance of neighbours along each in row-major order. */
typedef struct Extents {
    int rank;
    int64_t at[TG_MAX_RANK], stride[TG_MAX_RANK];
} Extents;

static inline const Type *eval_type(const EvalCall *call, TypeId id) { return tg_type_of(&call->graph->types, id); }
Extents eval_extents(const EvalCall *call, TypeId type);

/* `extents` seen around one axis: [outer, length, inner]. */
typedef struct Around {
    int64_t outer, length, inner;
} Around;
Around eval_around(const Extents *extents, int64_t axis);

/* Visits coordinates in row-major order: to[to_base + c . to_step] = from[from_base + c . from_step]. */
void eval_copy_strided(const Extents *extents, double *to, int64_t to_base, const int64_t *to_step, const double *from,
                       int64_t from_base, const int64_t *from_step);

static inline int64_t eval_int(const EvalCall *call, int list, int64_t otherwise) {
    Ints ints = call->node->attr ? call->node->attr->list[list] : (Ints){0};
    return ints.count ? ints.at[0] : otherwise;
}

/* IEEE 754-2019: NaN wins, -0 < +0. */
double eval_maximum(double x, double y);
double eval_minimum(double x, double y);

/* Reports an internal error at the node. */
Status eval_fail(EvalCall *call, const char *what);

#endif
