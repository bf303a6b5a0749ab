/* Types of values: element type x dimensions x sharding x scaled. Interned per graph: equality of TypeIds is equality. */
#ifndef TG_TYPE_H
#define TG_TYPE_H

#include "ir/base/map.h"
#include "ir/base/str.h"
#include "ir/base/vec.h"
#include "ir/plan/dtype.h"

enum { TG_MAX_RANK = 8 };

/* size x 1, or size x B with B major: B is the number of records really there, known only at run time. */
typedef struct Dim {
    int64_t size; /* >= 0; at least 1 when `batch` */
    bool batch;
} Dim;

typedef struct Type {
    DType dtype;
    uint8_t rank;
    bool scaled;       /* multiplied by the loss scale */
    uint32_t sharding; /* 0: whole on every rank */
    Dim dims[TG_MAX_RANK];
} Type;

typedef uint32_t TypeId; /* 0: no value */

typedef struct Types {
    Arena *arena;
    Vec(Type) all; /* all.at[0] is no type */
    Map ids;
} Types;

void tg_types_init(Types *types, Arena *arena);
TypeId tg_type(Types *types, const Type *type);
static inline const Type *tg_type_of(const Types *types, TypeId id) { return &types->all.at[id]; }

/* Elements with B = `rows`; -1 when the product passes 2^63 - 1. */
int64_t tg_type_count(const Type *type, int64_t rows);
/* The dimension that holds B, or -1. A type has at most one. */
int tg_type_batch_axis(const Type *type);
static inline bool tg_dim_equal(Dim a, Dim b) { return a.size == b.size && a.batch == b.batch; }
bool tg_shape_equal(const Type *a, const Type *b);

/* "f32[B, 64]", "f32[B*128]" (64 elements of B: B major), "scaled f32[3]", "f64[]" is written "f64". */
void tg_type_print(Str *to, const Type *type);

#endif
