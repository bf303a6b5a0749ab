/* What the builder makes of a node before it appends it; none of it changes a value. */
#ifndef TG_FOLD_H
#define TG_FOLD_H

#include "ir/build.h"

/* The node that `op` over `operands` is equal to (an operand, a constant, a shorter chain), or 0: it is itself. */
NodeId tg_fold(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId type);
/* `count` values of `type` as a constant: one number where all have the same bits. */
NodeId tg_const_values(Builder *b, TypeId type, const double *values, int64_t count);

#endif
