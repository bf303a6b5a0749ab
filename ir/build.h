/* The only way to append nodes. Infers the result's type by the op's shape rule, shares equal nodes, folds constants (through
   the evaluator's typed mode) and plain identities that never change a value (x + 0 is not one: -0 + 0 is 0).

   A builder call that breaks a shape rule is a bug in its caller: the frontend checks first with tg_infer and reports to the
   user. Then the builder records `error` (first one) and returns node 0; a pass ends with tg_builder_status. */
#ifndef TG_BUILD_H
#define TG_BUILD_H

#include "ir/graph.h"

/* Asked before a node is folded or shared; "no" leaves it as it is. */
typedef struct BuilderGate {
    bool (*may)(void *context, const char *rule, Loc loc);
    void *context;
} BuilderGate;

typedef struct Builder {
    Graph *graph;
    Func *func;
    bool fold;        /* off: nothing is folded or shared: the baseline of "no passes" */
    const BuilderGate *gate; /* NULL: nobody is asked */
    LocsId locs;      /* given to nodes as they are made */
    Precision precision; /* likewise */
    Map shared;
    Str scratch;
    const char *error;
    LocsId error_locs;
} Builder;

Builder tg_builder(Graph *graph, Func *func, bool fold);
TG_CHECKED Status tg_builder_status(const Builder *builder, Diags *diags);

/* The result's type by the shape rule, or 0 with `*why` (arena text: both shapes, the dimensions that differ).
   `wanted` is needed where the result's type is part of the node: leaves, convert, reshape, broadcast, scatter_add; dot and
   attention take its element type, others ignore it. A call has no type: 0, and `*why` is NULL.
   Whether the result is scaled follows from the operands; only a leaf and a convert say it themselves. */
TypeId tg_infer(Graph *graph, const Func *func, Op op, const Attr *attr, const NodeId *operands, uint32_t count,
                TypeId wanted, const char **why);

/* Any op. `attr` is copied. */
NodeId tg_build(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId wanted);
/* A copy of `node` of `from` (another function or graph with equal types, buffers and scalars) over new operands. */
NodeId tg_build_like(Builder *b, const Graph *from_graph, const Func *from, NodeId node, const NodeId *operands);

NodeId tg_const(Builder *b, TypeId type, double value);
NodeId tg_arg(Builder *b, uint32_t index, const char *name, TypeId type);
NodeId tg_load(Builder *b, uint32_t buffer);
NodeId tg_load_lane(Builder *b, uint32_t buffer, int64_t lane);
NodeId tg_scalar(Builder *b, uint32_t scalar);
NodeId tg_iota(Builder *b, TypeId type, int64_t axis);
NodeId tg_unary(Builder *b, Op op, NodeId x);
NodeId tg_binary(Builder *b, Op op, NodeId x, NodeId y);
NodeId tg_select(Builder *b, NodeId condition, NodeId yes, NodeId no);
NodeId tg_convert(Builder *b, NodeId x, DType dtype);
NodeId tg_reshape(Builder *b, NodeId x, TypeId type);
NodeId tg_transpose(Builder *b, NodeId x, const int64_t *perm, uint32_t rank);
/* dims[i] is the result dimension of operand dimension i; operand dimensions have the result's size or 1. */
NodeId tg_broadcast(Builder *b, NodeId x, const int64_t *dims, uint32_t rank, TypeId type);
/* `x`, a scalar or of a shape that NumPy's rules broadcast, in the shape of `type` (with x's dtype). */
NodeId tg_broadcast_like(Builder *b, NodeId x, TypeId type);
NodeId tg_reduce(Builder *b, Op op, NodeId x, const int64_t *axes, uint32_t count, int64_t split);
NodeId tg_dot(Builder *b, NodeId x, NodeId y, Ints batch_x, Ints batch_y, Ints contract_x, Ints contract_y, NodeId bias);

void tg_result_value(Builder *b, const char *name, NodeId node);
void tg_result_store(Builder *b, uint32_t buffer, NodeId node);

/* A type like `type` with another element type. */
TypeId tg_type_with(Graph *graph, TypeId type, DType dtype);

#endif
