/* Random valid uses of every operation, from the `gen` column of ir/ops.def: what the op tests, of gradients and of
   backends, are driven by. Sizes are 0, 1, odd, broadcast and with B; all from the seed alone. */
#ifndef TG_TEST_GENERATE_H
#define TG_TEST_GENERATE_H

#include "ir/build.h"
#include "ir/eval.h"

enum { OP_CASE_ARGS = 8 };

/* A graph@step with one function `case`: its arguments are the operands, its only result is the operation's value,
   named "value". Values are distinct over all arguments of floats, so that nothing ties, and lie away from singular
   points. */
typedef struct OpCase {
    Graph *graph;
    Func *func;
    NodeId node;  /* the operation */
    int64_t rows; /* B */
    uint32_t arg_count;
    Tensor args[OP_CASE_ARGS];
} OpCase;

/* False: the operation does not take `dtype`, or its gen is `none`. Nothing is folded. */
bool tg_op_case(Arena *arena, Op op, DType dtype, uint64_t seed, OpCase *result);
/* Its gen is not `none`. */
bool tg_op_has_case(Op op);
/* Its grad is not `none`. */
bool tg_op_has_gradient(Op op);

#endif
