#include "codegen/dnn.h"

typedef enum BatchPlace { ROWS_M, OTHER } BatchPlace;

typedef struct ChoiceRow {
    DType dtype;
    BatchPlace place;
    double least_mflop;
    DnnVariant variant;
    int64_t tile_m, tile_n;
} ChoiceRow;

static const ChoiceRow choices[] = {
#define DNN_CHOICE(dtype, place, least_mflop, variant, tile_m, tile_n) \
    {DT_##dtype, place, least_mflop, DNN_##variant, tile_m, tile_n},
#include "codegen/dnn.def"
#undef DNN_CHOICE
};

/* A matrix the library takes as it is: one stride 1, the other at least the length of a line. */
static bool is_dense(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    bool by_rows = (column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1);
    bool by_columns = (row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1);
    return by_rows || by_columns;
}

static int64_t tile_of(int64_t wanted, int64_t size) {
    if (size == 0)
        return 1;
    return wanted == 0 || wanted > size ? size : wanted;
}

DnnChoice tg_dnn_variant(const PlanDot *dot) {
    DnnChoice choice = {DNN_CONVERT, tile_of(0, dot->m), tile_of(0, dot->n)};
    int64_t k = dot->pieces > 1 ? dot->k / dot->pieces : dot->k;
    if (dot->dtype == DT_F64)
        choice.variant = DNN_PLAIN;
    if (!is_dense(dot->m, k, dot->a_m, dot->a_k) || !is_dense(k, dot->n, dot->b_k, dot->b_n))
        return choice;
    double mflop = 2e-6 * (double)dot->m * (double)dot->n * (double)k;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const ChoiceRow *row = &choices[i];
        if (row->dtype != dot->dtype || row->place != (dot->rows_m ? ROWS_M : OTHER) || mflop < row->least_mflop)
            continue;
        bool gives_f32_only = row->variant == DNN_GEMM_BF16 && dot->pieces <= 1;
        choice.variant = gives_f32_only && dot->out_dtype != DT_F32 ? DNN_MATMUL : row->variant;
        choice.tile_m = tile_of(row->tile_m, dot->m);
        choice.tile_n = tile_of(row->tile_n, dot->n);
        return choice;
    }
    return choice;
}
