/* What the files of generators share. */
#ifndef TG_TEST_GENERATE_RULES_H
#define TG_TEST_GENERATE_RULES_H

#include "tests/ops/generate.h"

/* What the sizes of a case are like; seeds take turns. */
typedef enum Flavour { FLAVOUR_ODD, FLAVOUR_BATCH, FLAVOUR_ONE, FLAVOUR_ZERO, FLAVOUR_COUNT } Flavour;

typedef enum Values {
    VALUES_ANY,      /* floats: distinct in (-2, 2); integers: small, of both signs if the type has them; bool: both */
    VALUES_POSITIVE, /* floats: distinct in (0.25, 3) */
    VALUES_NONZERO,  /* at least 0.5 away from 0 */
    VALUES_INDEX,    /* integers in [0, Gen.index_limit) */
} Values;

/* What chooses sizes, shapes and operands in place of the rules' own choice: tests/random, which has values to take them from. */
typedef struct Gen Gen;
typedef struct GenHost {
    int64_t (*size)(Gen *g, bool empty);
    Type (*shape)(Gen *g, DType dtype, int low, int high);
    NodeId (*operand)(Gen *g, const Type *type, Values values);
} GenHost;

struct Gen {
    Arena *arena;
    Builder b;
    Op op;
    DType dtype;
    Flavour flavour;
    uint64_t random;
    int64_t index_limit;
    OpCase *result;
    const GenHost *host; /* NULL: a case of one operation */
};

#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen) bool gen_##gen(Gen *g);
#include "ir/ops.def"
#undef OP

/* Runs the rule of g->op. */
bool gen_run(Gen *g);
/* In [0, limit). */
int64_t gen_below(Gen *g, int64_t limit);
/* A size of the flavour, at least 1 where `empty` is not allowed. */
int64_t gen_size(Gen *g, bool empty);
/* Rank in [low, high]; at most one dimension has B. */
Type gen_shape(Gen *g, DType dtype, int low, int high);
/* An axis without B, or -1. */
int gen_plain_axis(Gen *g, const Type *type);
/* A new argument. */
NodeId gen_operand(Gen *g, const Type *type, Values values);
/* Fills in a tensor of `type`, rounded to it. */
void gen_fill(Gen *g, DType dtype, Tensor *tensor, Values values);
/* Builds the operation; false where its shape rule refuses the type. `wanted` may be NULL. */
bool gen_finish(Gen *g, const Attr *attr, const NodeId *operands, uint32_t count, const Type *wanted);

static inline Type gen_with(Type type, DType dtype) {
    type.dtype = dtype;
    return type;
}
static inline Ints gen_ints(const int64_t *at, uint32_t count) { return (Ints){at, count}; }

#endif
