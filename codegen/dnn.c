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
} ChoiceRow;

static const ChoiceRow choices[] = {
#define DNN_CHOICE(dtype, place, layout, least_mflop, variant) {DT_##dtype, place, layout, least_mflop, DNN_##variant},
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

/* Tiles are for many cores and for equal shares: few cores idle where a dot has TASKS_WANTED of them, and a call of `LEAST_MFLOP`
   is worth its own cost. They end on whole vectors. Across, bits may change with the cut, so it must not depend on the batch: where rows
   are in m, columns are cut by the size of the other operand alone, and pieces, which other micro-batches have as dots of their own, do
   not count. Where a record has one row (a step of a loop over time, with few rows in all) columns are cut more readily; but rows are
   instead, down to few, where each core can hold the other operand in its cache: a thread then keeps its records from step to step
   (plan_chains.c). */
enum { TASKS_WANTED = 4, LEAST_TILE = 32, LEAST_ROWS = 16, MOST_CACHED = 1 << 17, LEAST_HALVED = 1 << 16, LEAST_QUARTERED = 1 << 19, VECTOR = 16 };
static const double LEAST_MFLOP = 1;

/* Tiles of large dots, as measured (docs/performance.md). A call packs what of the second operand it reads, which for a transposed one
   few lines do not repay. `most_read`: elements of it that lie in the second cache; lines that are cut for that are to be longer. */
typedef struct Sharing {
    int64_t shortest, shortest_cut, longest; /* lines of m */
    int64_t most_read;
} Sharing;

static const Sharing sharing_of[2][3] = {
    [ROWS_M] = {[NN] = {64, 64, 256, INT64_MAX}, [NT] = {192, 192, 512, INT64_MAX}, [TN] = {64, 64, 256, INT64_MAX}},
    [OTHER] = {[NN] = {64, 64, 64, INT64_MAX}, [NT] = {128, 128, 128, INT64_MAX}, [TN] = {32, 64, 192, 380000}},
};

static int64_t rounded(int64_t size, int64_t parts) {
    int64_t part = (size + parts - 1) / parts, tile = (part + VECTOR - 1) / VECTOR * VECTOR;
    return tile < size ? tile : size;
}

/* Equal tiles, TASKS_WANTED of them or a multiple where none gets too short. */
static int64_t equal_tiles(int64_t size, int64_t shortest, int64_t longest) {
    int64_t parts = (size + TASKS_WANTED * longest - 1) / (TASKS_WANTED * longest) * TASKS_WANTED;
    if (parts * shortest > size)
        parts = size / shortest;
    return rounded(size, parts > 0 ? parts : 1);
}

static int64_t half(int64_t tile, int64_t least) { return (tile / 2 + least - 1) / least * least; }

static bool keeps_records(const PlanDot *dot, int64_t k, int64_t record_rows) {
    return dot->rows_m && record_rows == 1 && dot->n * k <= MOST_CACHED;
}

/* Columns of a tile where rows are in m. */
static int64_t columns_of_rows(const PlanDot *dot, Layout layout, int64_t k, int64_t record_rows) {
    int64_t least = record_rows == 1 ? 4 * LEAST_TILE : 8 * LEAST_TILE;
    if (dot->n < least || dot->n * k < LEAST_HALVED || keeps_records(dot, k, record_rows))
        return dot->n;
    return layout == NT && dot->n * k >= LEAST_QUARTERED ? rounded(dot->n, 4) : half(dot->n, LEAST_TILE);
}

static void share_out(DnnChoice *choice, const PlanDot *dot, Layout layout, int64_t k, int64_t record_rows, bool large) {
    const Sharing *sharing = &sharing_of[dot->rows_m ? ROWS_M : OTHER][layout];
    if (dot->rows_m)
        choice->tile_n = columns_of_rows(dot, layout, k, record_rows);
    else if (large)
        choice->tile_n = rounded(dot->n, (dot->n * k - 1) / sharing->most_read + 1);
    int64_t shortest = choice->tile_n < dot->n ? sharing->shortest_cut : sharing->shortest;
    if (large)
        choice->tile_m = equal_tiles(dot->m, shortest, sharing->longest);
    int64_t least = keeps_records(dot, k, record_rows) ? LEAST_ROWS : LEAST_TILE;
    for (;;) {
        int64_t down = (dot->m + choice->tile_m - 1) / choice->tile_m, across = (dot->n + choice->tile_n - 1) / choice->tile_n;
        double tasks = (double)(down * across) * (double)dot->groups;
        double mflop = 2e-6 * (double)choice->tile_m * (double)choice->tile_n * (double)k;
        bool cuts_m = dot->rows_m || choice->tile_n < choice->tile_m || (layout == TN && choice->tile_m >= 2 * LEAST_TILE);
        int64_t *side = cuts_m ? &choice->tile_m : &choice->tile_n;
        if (tasks >= TASKS_WANTED || mflop < 2 * LEAST_MFLOP || *side < 2 * least)
            return;
        *side = half(*side, least);
    }
}

/* The library's matmul does not add to what is there; its gemm does. */
static DnnVariant adding_variant(const PlanDot *dot) {
    return !dot->rows_m && dot->dtype == DT_F32 && dot->out_dtype == DT_F32 ? DNN_SGEMM : DNN_CONVERT;
}

DnnChoice tg_dnn_variant(const PlanDot *dot, int64_t record_rows) {
    DnnChoice choice = {DNN_CONVERT, dot->m > 0 ? dot->m : 1, dot->n > 0 ? dot->n : 1};
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
        if (choice.variant == DNN_MATMUL && (dot->adds || dot->continues))
            choice.variant = adding_variant(dot);
        if (dot->m > 0 && dot->n > 0)
            share_out(&choice, dot, layout, k, record_rows, row->least_mflop > 0);
        return choice;
    }
    return choice;
}
