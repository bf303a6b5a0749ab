#include "tests/runtime/plan_maker.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void with_arena(void (*body)(Arena *arena)) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("no memory");
    }
    body(&arena);
    tg_arena_deinit(&arena);
}

/* Numbers in [-1, 1) that depend on index and salt alone. */
static double number(int64_t index, uint64_t salt) {
    uint64_t x = (uint64_t)index * 0x9E3779B97F4A7C15u + salt * 0xD1B54A32D192ED03u;
    x ^= x >> 29, x *= 0xBF58476D1CE4E5B9u, x ^= x >> 32;
    return (double)(int64_t)(x & 0xFFFF) / 32768 - 1;
}

static void fill(TgExec *exec, uint32_t buffer, DType dtype, int64_t count, uint64_t salt) {
    for (int64_t i = 0; i < count; i++)
        tg_element_set(dtype, tg_exec_address(exec, buffer, 0), i, number(i, salt));
}

/* A bias has the result's type in these tests: f32 beside bf16 operands too. */
static DType bias_dtype(const PlanDot *dot) { return dot->out_dtype; }

/* Computes the dot and gives its output (arena memory); operands hold `number`s. */
static void *compute(Arena *arena, PlanDot dot, int threads, bool as_is, int64_t a_count, int64_t b_count) {
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t a = maker_buffer(&maker, PLAN_INPUT, dot.dtype, a_count, 1),
             b = maker_buffer(&maker, PLAN_INPUT, dot.dtype, b_count, 1);
    uint32_t bias = maker_buffer(&maker, PLAN_INPUT, bias_dtype(&dot), dot.n, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    uint32_t out = (as_is ? maker_dot_as_is : maker_dot)(&maker, dot, a, b, bias);
    TgExec *exec = maker_open(&maker, threads, true);
    fill(exec, a, dot.dtype, a_count, 1);
    fill(exec, b, dot.dtype, b_count, 2);
    fill(exec, bias, bias_dtype(&dot), dot.n, 3);
    if (dot.adds)
        fill(exec, out, dot.out_dtype, dot.groups * dot.m * dot.n, 4);
    tg_exec_run(exec, &maker.funcs.at[0], 0);
    size_t bytes = (size_t)(dot.groups * dot.m * dot.n) * tg_dtype(dot.out_dtype)->bytes;
    void *result = tg_arena_copy(arena, tg_exec_address(exec, out, 0), bytes);
    tg_exec_close(exec);
    return result;
}

static double operand(DType dtype, int64_t index, uint64_t salt) { return tg_round_to(dtype, number(index, salt)); }

/* Largest error, relative to the sum of magnitudes and one rounding of the result. */
static double worst_error(const PlanDot *dot, const void *out) {
    double worst = 0, unit = dot->out_dtype == DT_BF16 ? 0x1p-8 : dot->out_dtype == DT_F16 ? 0x1p-11 : 0x1p-24;
    for (int64_t g = 0; g < dot->groups; g++)
        for (int64_t i = 0; i < dot->m; i++)
            for (int64_t j = 0; j < dot->n; j++) {
                int64_t at = g * dot->out_group + i * dot->out_m + j;
                double sum = dot->bias ? operand(bias_dtype(dot), j, 3) : dot->adds ? operand(dot->out_dtype, at, 4) : 0;
                double scale = fabs(sum);
                for (int64_t k = 0; k < dot->k; k++) {
                    double product = operand(dot->dtype, g * dot->a_group + i * dot->a_m + k * dot->a_k, 1) *
                                     operand(dot->dtype, g * dot->b_group + k * dot->b_k + j * dot->b_n, 2);
                    sum += product, scale += fabs(product);
                }
                double got = tg_element_get(dot->out_dtype, out, at);
                double error = fabs(got - sum), allowed = fabs(sum) * unit + scale * 0x1p-21 + 1e-30;
                if (!(error <= worst * allowed))
                    worst = error / allowed;
            }
    return worst;
}

static void against_a_plain_loop(Arena *arena) {
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 10, 7},    {3, 5, 2},      {32, 128, 64},
                                       {32, 10, 128}, {10, 128, 32}, {17, 33, 65},   {0, 5, 3},
                                       {5, 0, 3},     {5, 3, 0},     {70, 66, 40}, {9, 1, 31}};
    static const DType types[][2] = {{DT_F32, DT_F32}, {DT_BF16, DT_BF16}, {DT_BF16, DT_F32}, {DT_F16, DT_F16},
                                     {DT_F16, DT_F32}, {DT_F64, DT_F64},   {DT_F64, DT_F32}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int flags = 0; flags < 32; flags++) {
                PlanDot dot =
                    maker_matrix_dot(types[t][0], sizes[s][0], sizes[s][1], sizes[s][2], flags & 1, flags & 2);
                dot.out_dtype = types[t][1];
                dot.bias = flags & 4;
                dot.rows_m = flags & 8;
                dot.adds = flags & 16;
                if (dot.adds && dot.bias)
                    continue;
                if (dot.rows_m && dot.dtype != DT_F32 && dot.dtype != DT_BF16)
                    continue; /* the choice is the same */
                const void *out = compute(arena, dot, 1, false, dot.m * dot.k, dot.k * dot.n);
                CU_ASSERT(worst_error(&dot, out) <= 1);
            }
}

static void groups_and_strides(Arena *arena) {
    /* [B, T, H, D] times its transpose by head, as attention does it. */
    enum { T = 24, H = 4, D = 16, B = 3 };
    PlanDot heads = {.dtype = DT_F32,
                     .out_dtype = DT_F32,
                     .groups = H,
                     .inner = 1,
                     .m = T,
                     .n = T,
                     .k = D,
                     .a_group = D,
                     .a_m = H * D,
                     .a_k = 1,
                     .b_group = D,
                     .b_k = 1,
                     .b_n = H * D,
                     .out_group = T * T,
                     .out_m = T,
                     .pieces = 1};
    CU_ASSERT(worst_error(&heads, compute(arena, heads, 2, false, T * H * D, T * H * D)) <= 1);
    /* No stride is 1, and one matrix for all groups. */
    PlanDot odd = {.dtype = DT_F32,
                   .out_dtype = DT_F32,
                   .groups = B,
                     .inner = 1,
                   .m = 7,
                   .n = 5,
                   .k = 6,
                   .a_group = 100,
                   .a_m = 14,
                   .a_k = 2,
                   .b_group = 0,
                   .b_k = 3,
                   .b_n = 18,
                   .out_group = 35,
                   .out_m = 5,
                   .pieces = 1};
    CU_ASSERT_EQUAL(tg_dnn_variant(&odd, 0).variant, DNN_CONVERT);
    CU_ASSERT(worst_error(&odd, compute(arena, odd, 1, false, 300, 120)) <= 1);
}

static void tiles_and_threads(Arena *arena) {
    static const struct {
        DType dtype;
        DnnVariant variant;
        bool bias;
        int64_t pieces;
        bool adds;
    } cases[] = {{DT_F32, DNN_MATMUL, false, 1, true}, {DT_F32, DNN_SGEMM, false, 1, true},
                 {DT_F32, DNN_SGEMM, false, 5, true},  {DT_BF16, DNN_GEMM_BF16, false, 1, true},
                 {DT_F32, DNN_MATMUL, true, 1, false},  {DT_F32, DNN_SGEMM, true, 1, false},       {DT_F32, DNN_SGEMM, true, 5, false},
                 {DT_BF16, DNN_MATMUL, true, 1, false}, {DT_BF16, DNN_GEMM_BF16, false, 2, false}, {DT_F16, DNN_CONVERT, true, 4, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        PlanDot dot = maker_matrix_dot(cases[c].dtype, 150, 90, 400, c % 2, c % 3);
        dot.variant = cases[c].variant;
        dot.bias = cases[c].bias;
        dot.pieces = cases[c].pieces;
        dot.adds = cases[c].adds;
        dot.tile_m = 64, dot.tile_n = 40;
        dot.out_dtype = dot.variant == DNN_MATMUL ? dot.dtype : DT_F32;
        const void *one = compute(arena, dot, 1, true, dot.m * dot.k, dot.k * dot.n);
        CU_ASSERT(worst_error(&dot, one) <= 1);
        for (int threads = 2; threads <= 3; threads++)
            CU_ASSERT_EQUAL(memcmp(one, compute(arena, dot, threads, true, dot.m * dot.k, dot.k * dot.n),
                                   (size_t)(dot.m * dot.n) * tg_dtype(dot.out_dtype)->bytes),
                            0);
    }
}

static void choices(Arena *arena) {
    (void)arena;
    for (int64_t rows = 1; rows < 100000; rows *= 7)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            PlanDot dot = maker_matrix_dot(bf16 ? DT_BF16 : DT_F32, rows, 128, 64, false, true);
            dot.rows_m = true;
            DnnChoice choice = tg_dnn_variant(&dot, 0);
            CU_ASSERT_EQUAL(choice.variant, DNN_MATMUL);
            CU_ASSERT(choice.tile_m >= 1 && choice.tile_m <= rows);
        }
    PlanDot low = maker_matrix_dot(DT_BF16, 64, 64, 64, true, false);
    CU_ASSERT_EQUAL(tg_dnn_variant(&low, 0).variant, DNN_MATMUL);
    PlanDot column = maker_matrix_dot(DT_F32, 64, 1, 64, false, true);
    CU_ASSERT_EQUAL(tg_dnn_variant(&column, 0).variant, DNN_COLUMN);
    PlanDot across = maker_matrix_dot(DT_F32, 64, 1, 64, true, true);
    CU_ASSERT_NOT_EQUAL(tg_dnn_variant(&across, 0).variant, DNN_COLUMN);
    PlanDot half = maker_matrix_dot(DT_F16, 64, 64, 64, true, false);
    CU_ASSERT_EQUAL(tg_dnn_variant(&half, 0).variant, DNN_CONVERT);
    PlanDot halves = maker_matrix_dot(DT_F16, 768, 512, 128, false, true);
    halves.rows_m = true;
    CU_ASSERT_EQUAL(tg_dnn_variant(&halves, 0).variant, DNN_CONVERT);
    CU_ASSERT(tg_dnn_variant(&halves, 0).tile_m < 768);
    PlanDot exact = maker_matrix_dot(DT_F64, 0, 64, 64, true, false);
    CU_ASSERT_EQUAL(tg_dnn_variant(&exact, 0).variant, DNN_PLAIN);
    CU_ASSERT_EQUAL(tg_dnn_variant(&exact, 0).tile_m, 1);
}

/* Large dots are cut into equal shares, those over rows across by the other operand's size alone. */
static void tiles(Arena *arena) {
    (void)arena;
    static const struct {
        bool rows_m, a_transposed, b_transposed;
        int64_t m, n, k, tile_m, tile_n;
    } cases[] = {{true, false, true, 768, 128, 128, 192, 128},   {true, false, true, 256, 768, 3072, 256, 192},
                 {true, false, true, 2048, 704, 256, 512, 352},  {true, false, false, 256, 768, 3072, 64, 384},
                 {true, false, false, 2048, 256, 704, 256, 128}, {false, true, false, 704, 256, 2048, 176, 128},
                 {false, true, false, 128, 128, 768, 32, 128},   {false, true, false, 128, 512, 768, 64, 256},
                 {false, true, false, 64, 256, 2048, 32, 128},   {false, true, false, 768, 3072, 256, 192, 1024}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        PlanDot dot = maker_matrix_dot(DT_F32, cases[c].m, cases[c].n, cases[c].k, cases[c].a_transposed, cases[c].b_transposed);
        dot.rows_m = cases[c].rows_m;
        DnnChoice choice = tg_dnn_variant(&dot, cases[c].rows_m ? 64 : 0);
        CU_ASSERT_EQUAL(choice.tile_m, cases[c].tile_m);
        CU_ASSERT_EQUAL(choice.tile_n, cases[c].tile_n);
    }
    for (int64_t rows = 1; rows < 100000; rows *= 3) {
        PlanDot dot = maker_matrix_dot(DT_F32, rows, 768, 3072, false, true);
        dot.rows_m = true;
        CU_ASSERT_EQUAL(tg_dnn_variant(&dot, rows).tile_n, 192);
    }
}

/* Micro-batches: the rows of a rows_m dot have the same bits in a batch of any size. */
static void rows_keep_their_bits(Arena *arena) {
    static const int64_t shapes[][2] = {{128, 64}, {10, 128}, {128, 10}, {1, 33}, {128, 512}, {7, 1}};
    static const int64_t batches[] = {1, 2, 3, 8, 16, 31, 32, 33, 100};
    static const DType types[] = {DT_F32, DT_BF16, DT_F16};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int flags = 0; flags < 4; flags++) {
                int64_t n = shapes[s][0], k = shapes[s][1];
                const void *all = NULL;
                for (int i = -1; i < (int)(sizeof batches / sizeof *batches); i++) {
                    PlanDot dot = maker_matrix_dot(types[t], i < 0 ? 768 : batches[i], n, k, false, flags & 1);
                    dot.bias = flags & 2;
                    dot.rows_m = true;
                    const void *out = compute(arena, dot, 1, false, dot.m * k, k * n);
                    if (i < 0)
                        all = out;
                    else
                        CU_ASSERT_EQUAL(memcmp(all, out, (size_t)(dot.m * n) * tg_dtype(types[t])->bytes), 0);
                }
            }
}

/* A contraction over the batch in 4 pieces has the bits of 4 micro-batches whose results a tree adds. */
static void pieces_are_micro_batches(Arena *arena) {
    enum { M = 10, N = 128, K = 32, PIECES = 4, PART = K / PIECES };
    PlanDot dot = maker_matrix_dot(DT_F32, M, N, K, true, false);
    dot.rows_k = true;
    dot.pieces = PIECES;
    const float *whole = compute(arena, dot, 1, false, M * K, N * K);
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t a = maker_buffer(&maker, PLAN_INPUT, DT_F32, M * PART, 1),
             b = maker_buffer(&maker, PLAN_INPUT, DT_F32, N * PART, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    PlanDot part = maker_matrix_dot(DT_F32, M, N, PART, true, false);
    part.rows_k = true;
    uint32_t out = maker_dot(&maker, part, a, b, 0);
    TgExec *exec = maker_open(&maker, 1, false);
    float *parts[PIECES];
    for (int64_t p = 0; p < PIECES; p++) {
        for (int64_t i = 0; i < M * PART; i++)
            ((float *)tg_exec_address(exec, a, 0))[i] = (float)number(p * M * PART + i, 1);
        for (int64_t i = 0; i < N * PART; i++)
            ((float *)tg_exec_address(exec, b, 0))[i] = (float)number(p * N * PART + i, 2);
        tg_exec_run(exec, &maker.funcs.at[0], 0);
        parts[p] = tg_arena_copy(arena, tg_exec_address(exec, out, 0), M * N * sizeof(float));
    }
    tg_exec_close(exec);
    int wrong = 0;
    for (int64_t i = 0; i < M * N; i++)
        wrong += whole[i] != (parts[0][i] + parts[1][i]) + (parts[2][i] + parts[3][i]);
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Two dots of one shape, whose results have rows at other distances, are two calls of the library. */
static void distances(Arena *arena) {
    enum { M = 5, N = 33, K = 17, WIDE = 40 };
    PlanDot dots[2];
    uint32_t out[2];
    PlanMaker maker;
    maker_init(&maker, arena);
    uint32_t a = maker_buffer(&maker, PLAN_INPUT, DT_F32, M * K, 1), b = maker_buffer(&maker, PLAN_INPUT, DT_F32, K * N, 1);
    maker_func(&maker, PLAN_MICRO, "micro");
    for (int i = 0; i < 2; i++) {
        dots[i] = maker_matrix_dot(DT_F32, M, N, K, false, false);
        dots[i].out_m = i ? WIDE : N;
        out[i] = maker_dot(&maker, dots[i], a, b, 0);
        maker.buffers.at[out[i]].bytes = M * WIDE * 4;
        maker.buffers.at[out[i]].dims[0] = M * WIDE;
        (void)maker_buffer(&maker, PLAN_TEMP, DT_F32, M * WIDE, 1); /* room for the distance */
    }
    TgExec *exec = maker_open(&maker, 1, true);
    fill(exec, a, DT_F32, M * K, 1);
    fill(exec, b, DT_F32, K * N, 2);
    tg_exec_run(exec, &maker.funcs.at[0], 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT(worst_error(&dots[i], tg_exec_address(exec, out[i], 0)) <= 1);
    tg_exec_close(exec);
}

/* Two dots that add to each other piece by piece have the bits of micro-batches that add up both, whose results a tree adds. */
static void pieces_go_on(Arena *arena) {
    enum { M = 10, N = 128, K = 32, PIECES = 4, PART = K / PIECES, SUM = M * N };
    float *lanes[PIECES] = {NULL}, *whole = NULL;
    for (int64_t p = -1; p < PIECES; p++) { /* -1: all in one */
        int64_t k = p < 0 ? K : PART, first = p < 0 ? 0 : p * PART;
        PlanMaker maker;
        maker_init(&maker, arena);
        maker_func(&maker, PLAN_MICRO, "micro");
        PlanDot dot = maker_matrix_dot(DT_F32, M, N, k, true, false);
        dot.rows_k = true;
        dot.pieces = p < 0 ? PIECES : 1;
        uint32_t in[4];
        for (int i = 0; i < 4; i++)
            in[i] = maker_buffer(&maker, PLAN_INPUT, DT_F32, i % 2 ? N * k : M * k, 1);
        dot.open = p < 0;
        uint32_t out = maker_dot(&maker, dot, in[0], in[1], 0);
        dot.open = false;
        dot.continues = p < 0, dot.adds = p >= 0;
        maker_dot(&maker, dot, in[2], in[3], 0);
        PlanOperand *operands = maker.operands.at + maker.steps.at[1].buffer_first;
        operands[2].buffer = out;
        if (p < 0)
            operands[3].buffer = maker.operands.at[3].buffer;
        TgExec *exec = maker_open(&maker, 1, true);
        for (int i = 0; i < 4; i++)
            for (int64_t e = 0; e < (i % 2 ? N : M) * k; e++)
                ((float *)tg_exec_address(exec, in[i], 0))[e] = (float)number(first * (i % 2 ? N : M) + e, (uint64_t)i);
        tg_exec_run(exec, &maker.funcs.at[0], 0);
        float *sums = tg_arena_copy(arena, tg_exec_address(exec, out, 0), SUM * sizeof(float));
        *(p < 0 ? &whole : &lanes[p]) = sums;
        tg_exec_close(exec);
    }
    int wrong = 0;
    for (int64_t i = 0; i < SUM; i++)
        wrong += whole[i] != (lanes[0][i] + lanes[1][i]) + (lanes[2][i] + lanes[3][i]);
    CU_ASSERT_EQUAL(wrong, 0);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { with_arena(name); }
TEST(against_a_plain_loop)
TEST(groups_and_strides)
TEST(tiles_and_threads)
TEST(choices)
TEST(tiles)
TEST(rows_keep_their_bits)
TEST(pieces_are_micro_batches)
TEST(distances)
TEST(pieces_go_on)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("dnn", NULL, NULL);
    CU_add_test(suite, "every type and size against a plain loop", run_against_a_plain_loop);
    CU_add_test(suite, "groups and strides", run_groups_and_strides);
    CU_add_test(suite, "tiles, pieces, 1 to 3 threads: equal bits", run_tiles_and_threads);
    CU_add_test(suite, "choices", run_choices);
    CU_add_test(suite, "tiles", run_tiles);
    CU_add_test(suite, "rows keep their bits in any batch", run_rows_keep_their_bits);
    CU_add_test(suite, "pieces are micro-batches", run_pieces_are_micro_batches);
    CU_add_test(suite, "rows at another distance", run_distances);
    CU_add_test(suite, "pieces go on", run_pieces_go_on);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
