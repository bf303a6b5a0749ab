/* Which library call and which tiles a dot gets: by its type, its strides and its size alone (codegen/dnn.def). */
#ifndef TG_CODEGEN_DNN_H
#define TG_CODEGEN_DNN_H

#include "ir/plan/dnn.h"
#include "ir/plan/plan.h"

typedef struct DnnChoice {
    DnnVariant variant;
    int64_t tile_m, tile_n; /* at most m, n; 1 where those are 0 */
} DnnChoice;

/* Reads all of `dot` but variant, tile_m and tile_n. `record_rows`: rows of m that one record has, 0 if m has no B. A rows_m dot gets a variant in which a row's bits do not depend on
   the number of rows, so micro-batches of any size agree. Leaves `pieces` to the caller: 1, or what the dot's attribute
   `split` says. The scratch of a dot with several pieces is f32, or f64 if its result is. A bias may have any float
   type. */
DnnChoice tg_dnn_variant(const PlanDot *dot, int64_t record_rows);

#endif
