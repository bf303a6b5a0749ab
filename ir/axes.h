/* The axes rule of a node: how each dimension of its operands and of its result relates to the axes that the op runs
   over. Fusion, sharding, costs and reports read it; nothing restates it.

   A node runs over `axes`. Value 0 is the result, value 1 + i operand i. A dimension is a row-major product of parts,
   the major one first; most have one. A dimension of size 1 that stands for a whole axis (broadcast) has no parts. */
#ifndef TG_AXES_H
#define TG_AXES_H

#include "ir/graph.h"

enum { TG_MAX_AXES = 4 * TG_MAX_RANK, TG_MAX_PARTS = TG_MAX_RANK + 1 };

typedef enum PartKind {
    PART_AXIS,   /* index = the axis */
    PART_OFFSET, /* index = offset + stride * the axis, where that lies in the dimension (slice, pad, concat) */
    PART_WHOLE,  /* any index: the op reads all of it for each result (a table, a scan) */
} PartKind;

typedef struct Part {
    uint8_t kind;
    uint8_t axis; /* WHOLE: an axis of this dimension's size */
    int64_t offset, stride;
} Part;

typedef struct DimParts {
    uint8_t count;
    Part parts[TG_MAX_PARTS];
} DimParts;

typedef enum AxisRole {
    AXIS_FREE,    /* in the result */
    AXIS_REDUCED, /* summed (or maximised): a result that is split along it is a partial one */
    AXIS_WHOLE,   /* must not be split */
} AxisRole;

typedef struct Axis {
    Dim size;
    AxisRole role;
} Axis;

typedef struct Axes {
    uint32_t axis_count, value_count;
    Axis axes[TG_MAX_AXES];
    DimParts *values; /* [value_count][TG_MAX_RANK] */
} Axes;

/* In `arena`. Leaves and calls run over their results' dimensions. */
const Axes *tg_node_axes(Arena *arena, const Graph *graph, const Func *func, NodeId node);
static inline const DimParts *tg_dim_parts(const Axes *axes, uint32_t value, uint32_t dim) {
    return &axes->values[value * TG_MAX_RANK + dim];
}
/* Points that the op runs over: the product of its axes with B = `rows`. In f64: an estimate for costs. */
double tg_axes_points(const Axes *axes, int64_t rows);

#endif
