/* How random graphs grow: what tests/random/random.c and model.c share. */
#ifndef TG_TEST_GROWTH_H
#define TG_TEST_GROWTH_H

#include "random.h"

#include "tests/ops/generate_rules.h"

enum { GROWN_BUFFERS = 8, GROWN_SIZES = 3 };

/* A graph while it grows. `g` comes first: the rules hand it back. */
typedef struct Growth Growth;
struct Growth {
    Gen g;
    OpCase ignored;
    RandomGraph *r;
    EvalState state;
    Vec(Tensor) values; /* per node */
    int64_t sizes[GROWN_SIZES];
    DType dtype;                                                /* of most values */
    int64_t most;                                               /* elements of a value */
    bool attention;                                             /* there is one */
    Op last;                                                    /* shall be there, whatever chance says; 0: none */
    NodeId (*leaf)(Growth *w, const Type *type, Values values); /* NULL: args, loads, constants as they come */
    bool (*accepts)(Growth *w, NodeId id);                      /* asked for each new node in order; NULL: all */
};

/* Chooses types and sizes. `result` has its graph and its function. */
void grow_start(Growth *w, Arena *arena, uint64_t seed, RandomGraph *result);
/* Some operations; result->rows is set. */
void grow_operations(Growth *w);
bool grow_chance(Growth *w, int64_t percent);
/* Before operations grow: the graph is in mixed precision, in f32 for most of its values. */
void grow_mixed(Growth *w);
/* Afterwards: some values get marks, as f32(x) sets them. */
void grow_marks(Growth *w);

/* Evaluates the nodes that are new; false: one of them is not wanted. */
bool grow_evaluate(Growth *w);
typedef struct GrowthMark {
    uint32_t nodes, operands, args, buffers;
} GrowthMark;
GrowthMark grow_mark(const Growth *w);
/* Takes back what came after the mark. */
void grow_back(Growth *w, GrowthMark mark);

NodeId grow_arg(Growth *w, const Type *type, Values values);
NodeId grow_load(Growth *w, const Type *type, Values values, BufferClass class);
NodeId grow_const(Growth *w, const Type *type, Values values);
/* A run-time scalar in the type. */
NodeId grow_scalar(Growth *w, const Type *type);
/* A value that is there, the newer the likelier. */
NodeId grow_any_value(Growth *w);
/* A value that is there, made to fit the type; 0: none fits. */
NodeId grow_from_values(Growth *w, const Type *type);

#endif
