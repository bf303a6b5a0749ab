/* What the shape rules of ops.def share: a rule `shape_X` sets `result` from operands and attributes, or says why there
   is none. Rules look at element types and dimensions; shape_scaled.c at scales. */
#ifndef TG_SHAPE_H
#define TG_SHAPE_H

#include "ir/build.h"

typedef struct Shape {
    Graph *graph;
    Op op;
    const Attr *attr;
    const Type **types; /* of the operands */
    const NodeId *operands;
    const Func *func;
    uint32_t count;
    const Type *wanted; /* NULL: none */
    Type result;
    bool no_value;
    const char *why;
} Shape;

/* Records why there is no result; always false. */
bool shape_fail(Shape *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *shape_show(Shape *s, const Type *type);
const char *shape_show_dim(Shape *s, Dim dim);

/* Each is true, or fails. */
bool shape_valid_axis(Shape *s, int64_t axis, const Type *type);
bool shape_not_along_batch(Shape *s, int64_t axis, const Type *type);
bool shape_plain_axis(Shape *s, const Type *type,
                      int64_t *axis); /* the attribute's one axis: of `type`, not the batch */
bool shape_ascending_axes(Shape *s, Ints axes, const Type *type);
bool shape_list_per_dim(Shape *s, int list, const char *name, const Type *type);
bool shape_good_split(Shape *s, bool over_batch);
bool shape_needs_wanted(Shape *s);
bool shape_is_kind(Shape *s, bool fits, const char *wanted); /* says that the first operand is not of `wanted` */
/* Whether the operands may be scaled as they are; marks the result. */
bool shape_apply_scaling(Shape *s);

#define OP(name, min, max, levels, attrs, shape, ...) bool shape_##shape(Shape *s);
#include "ir/ops.def"
#undef OP

#endif
