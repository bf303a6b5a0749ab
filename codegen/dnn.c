#include "codegen/dnn.h"

typedef enum BatchPlace { ROWS_M, OTHER } BatchPlace;
/* Which operand is transposed; both: as TN. */
typedef enum Layout { NN, NT, TN } Layout;

typedef struct ChoiceRow {
    DType dtype;
    BatchPlace place;
    Layout layout;
    double least_mflop;
    DnnVariant variant;
    int64_t tile_m, tile_n;
} ChoiceRow;

static const ChoiceRow choices[] = {
#define DNN_CHOICE(dtype, place, layout, least_mflop, variant, tile_m, tile_n)                                         \
    {DT_##dtype, place, layout, least_mflop, DNN_##variant, tile_m, tile_n},
#include "codegen/dnn.def"
#undef DNN_CHOICE
};

/* Lines of `columns` elements, one after the other. */
static bool is_by_rows(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    return (column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1);
}

/* A matrix the library takes as it is. */
static bool is_dense(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    return is_by_rows(rows, columns, row_stride, column_stride) || is_by_rows(columns, rows, column_stride, row_stride);
}

static Layout layout_of(const PlanDot *dot, int64_t k) {
    if (!is_by_rows(dot->m, k, dot->a_m, dot->a_k))
        return TN;
    return is_by_rows(k, dot->n, dot->b_k, dot->b_n) ? NN : NT;
}

static int64_t tile_of(int64_t wanted, int64_t size) {
    if (size == 0)
        return 1;
    return wanted == 0 || wanted > size ? size : wanted;
}

/* A task is the least that a core takes: few cores idle where a dot has `TASKS_WANTED` of them, and a call of `LEAST_MFLOP` is worth
   its own cost. Halves stay whole vectors. Across, bits may change with the cut, so it must not depend on the batch: where rows are in
   m, columns are halved by the size of the other operand alone, more readily where a record has one row (a step of a loop over time, with
   few rows in all), and pieces, which other micro-batches have as dots of their own, do not count. */
enum { TASKS_WANTED = 4, LEAST_TILE = 32, LEAST_HALVED = 1 << 16 };
static const double LEAST_MFLOP = 1;

static int64_t half(int64_t tile) { return (tile / 2 + LEAST_TILE - 1) / LEAST_TILE * LEAST_TILE; }

static void share_out(DnnChoice *choice, const PlanDot *dot, int64_t k, int64_t record_rows) {
    int64_t least_n = record_rows == 1 ? 4 * LEAST_TILE : 8 * LEAST_TILE;
    if (dot->rows_m && choice->tile_n == dot->n && dot->n >= least_n && dot->n * k >= LEAST_HALVED)
        choice->tile_n = half(dot->n);
    for (;;) {
        int64_t down = (dot->m + choice->tile_m - 1) / choice->tile_m, across = (dot->n + choice->tile_n - 1) / choice->tile_n;
        double tasks = (double)(down * across) * (double)dot->groups;
        double mflop = 2e-6 * (double)choice->tile_m * (double)choice->tile_n * (double)k;
        int64_t *side = choice->tile_n >= choice->tile_m && !dot->rows_m ? &choice->tile_n : &choice->tile_m;
        if (tasks >= TASKS_WANTED || mflop < 2 * LEAST_MFLOP || *side < 2 * LEAST_TILE)
            return;
        *side = half(*side);
    }
}

DnnChoice tg_dnn_variant(const PlanDot *dot, int64_t record_rows) {
    DnnChoice choice = {DNN_CONVERT, tile_of(0, dot->m), tile_of(0, dot->n)};
    int64_t k = dot->pieces > 1 ? dot->k / dot->pieces : dot->k;
    if (dot->dtype == DT_F64)
        choice.variant = DNN_PLAIN;
    if (!is_dense(dot->m, k, dot->a_m, dot->a_k) || !is_dense(k, dot->n, dot->b_k, dot->b_n))
        return choice;
    /* The library's matmul takes tens of times as long, and its gemm's bits depend on the number of rows. */
    if (dot->n == 1 && dot->dtype == DT_F32 && dot->out_dtype == DT_F32 && dot->a_k == 1)
        choice.variant = DNN_COLUMN;
    Layout layout = layout_of(dot, k);
    BatchPlace place = dot->rows_m ? ROWS_M : OTHER;
    double mflop = 2e-6 * (double)dot->m * (double)dot->n * (double)k;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const ChoiceRow *row = &choices[i];
        if (row->dtype != dot->dtype || row->place != place || row->layout != layout || mflop < row->least_mflop)
            continue;
        bool gives_f32_only = row->variant == DNN_GEMM_BF16 && dot->pieces <= 1;
        if (choice.variant != DNN_COLUMN)
            choice.variant = gives_f32_only && dot->out_dtype != DT_F32 ? DNN_MATMUL : row->variant;
        choice.tile_m = tile_of(row->tile_m, dot->m);
        choice.tile_n = tile_of(row->tile_n, dot->n);
        share_out(&choice, dot, k, record_rows);
        return choice;
    }
    return choice;
}
