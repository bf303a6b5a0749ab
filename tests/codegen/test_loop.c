/* The kernel IR's text form, its rules, and the order of its reductions. */
#include "codegen/loop_info.h"
#include "ir/base/file.h"
#include "tests/codegen/interpret.h"
#include "tests/codegen/lowered.h"

#include <CUnit/Basic.h>

#include <math.h>
#include <string.h>

typedef struct World {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages;
} World;

static void world_init(World *w) {
    *w = (World){0};
    tg_arena_init(&w->arena, tg_host());
    tg_diags_init(&w->diags, &w->arena, &w->sources, NULL);
    w->messages = tg_str(&w->arena);
    w->diags.capture = &w->messages;
}

static Status parse(World *w, const char *text, LoopKernel **k) {
    w->messages.length = 0;
    LoopKernels kernels;
    uint16_t source = tg_source_add(&w->sources, &w->arena, "k.loop", text, strlen(text));
    Status status = tg_loop_parse(&w->arena, &w->diags, source, &kernels);
    CU_ASSERT_TRUE(kernels.count == 1 || status != TG_OK);
    *k = kernels.at[0];
    return status;
}

static const char *print(World *w, const LoopKernel *k) {
    Str text = tg_str(&w->arena);
    tg_loop_print(&text, k);
    return text.text;
}

static const char EVERYTHING[] = "kernel every.thing {\n"
                                 "  buffer 0 in f32[64]\n"
                                 "  buffer 1 in bool[64]\n"
                                 "  buffer 2 out f32[64]\n"
                                 "  buffer 3 scratch i32[64]\n"
                                 "  %1 = const i64 0\n"
                                 "  %2 = const i64 4\n"
                                 "  %3 = for tile %1 to %2 extent 4 {\n"
                                 "    %4 = const f32 -0\n"
                                 "    %5 = const f32 inf\n"
                                 "    %6 = const f32 nan\n"
                                 "    %7 = const i32 -2147483648\n"
                                 "    %8 = scalar f64 2\n"
                                 "    %9 = rows i64\n"
                                 "    %10 = libm f64 pow %8, %8\n"
                                 "    %11 = libm f64 cos %10\n"
                                 "    %12 = convert f32 %11\n"
                                 "    %13 = for serial %1 to %9 extent 64 {\n"
                                 "      %14 = load f32 0[%13]\n"
                                 "      %15 = reduce_argmax i32 %14\n"
                                 "    }\n"
                                 "    store 3[%3], %15\n"
                                 "    %18 = for vector %1 to %9 extent 64 {\n"
                                 "      %19 = load f32 0[%1 + 1 * v]\n"
                                 "      %20 = load bool 1[%1 + -1 * v]\n"
                                 "      %21 = fma f32 %19, %12, %4\n"
                                 "      %22 = select f32 %20, %21, %5\n"
                                 "      %23 = bits i32 %22\n"
                                 "      %24 = fle bool %22, %6\n"
                                 "      %25 = reduce_sum f32 %22\n"
                                 "    }\n"
                                 "    store 2[%1], %25\n"
                                 "  }\n"
                                 "}\n";

static void test_identity(void) {
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    LoopKernel *k;
    CU_ASSERT_EQUAL_FATAL(parse(&w, EVERYTHING, &k), TG_OK);
    CU_ASSERT_STRING_EQUAL(print(&w, k), EVERYTHING);
    CU_ASSERT_EQUAL(tg_loop_verify(k, &w.diags), TG_OK);
    CU_ASSERT_EQUAL(k->tiles, 4);
    tg_arena_deinit(&w.arena);
}

/* Names of values need only be unique: places take over. */
static void test_renumbering(void) {
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    LoopKernel *k;
    CU_ASSERT_EQUAL_FATAL(parse(&w, "kernel k { // a comment\n %7 = const i64 1 %3 = iadd i64 %7, %7 }", &k), TG_OK);
    CU_ASSERT_STRING_EQUAL(print(&w, k), "kernel k {\n  %1 = const i64 1\n  %2 = iadd i64 %1, %1\n}\n");
    tg_arena_deinit(&w.arena);
}

static void test_lowered_identity(void) {
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    LoweredCase c = {"softmax",
                     "%x: f32[B, 11]",
                     "%1 : f32[B, 11] = arg index=0 \"x\" %2 : f32[B] = reduce_max %1 axes=1 "
                     "%3 : f32[B, 11] = broadcast %2 dims=0 %4 : f32[B, 11] = sub %1, %3 %5 : f32[B, 11] = tanh %4 "
                     "%6 : f32[B, 11] = pow %5, %4 %7 : f32[B, 11] = sin %6 return y %7",
                     64,
                     1,
                     0};
    const char *text = print(&w, lower_text(&w.arena, &c));
    LoopKernel *k;
    CU_ASSERT_EQUAL_FATAL(parse(&w, text, &k), TG_OK);
    CU_ASSERT_STRING_EQUAL(print(&w, k), text);
    tg_arena_deinit(&w.arena);
}

/* The example of docs/ir.md. */
static void test_documented(void) {
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    char *text;
    const char *why;
    size_t length;
    LoopKernel *k;
    CU_ASSERT_EQUAL_FATAL(tg_file_read(&w.arena, TGC_SOURCE_DIR "/docs/ir.md", &text, &length, &why), TG_OK);
    char *begin = strstr(text, "kernel mean {"), *end = begin ? strstr(begin, "```") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    *end = '\0';
    CU_ASSERT_EQUAL_FATAL(parse(&w, begin, &k), TG_OK);
    CU_ASSERT_STRING_EQUAL(print(&w, k), begin);
    CU_ASSERT_EQUAL(tg_loop_verify(k, &w.diags), TG_OK);
    tg_arena_deinit(&w.arena);
}

typedef struct Bad {
    const char *text, *message;
} Bad;

static void test_syntax(void) {
    static const Bad BAD[] = {
        {"kernel k { %1 = const i64 }", "k.loop:1:27: error: expected an integer"},
        {"kernel k {\n  %1 = nothing i64 %2\n}", "k.loop:2:15: error: no such instruction"},
        {"kernel k { %1 = fneg f32 %2 }", "no such value above"},
        {"kernel k { %1 = const q8 1 }", "no such element type"},
        {"kernel k { buffer 1 in f32[2] }", "numbered from 0"},
        {"kernel k { %1 = const i64 0 %1 = const i64 0 }", "taken"},
        {"kernel k { %1 = const i64 0 %2 = load f32 0[%1] }", "no such buffer"},
        {"kernel k { %1 = const i64 0", "expected '%'"},
        {"kernel k { } more", "expected 'kernel'"},
    };
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        LoopKernel *k;
        CU_ASSERT_EQUAL(parse(&w, BAD[i].text, &k), TG_MODEL);
        if (strstr(w.messages.text, BAD[i].message) == NULL)
            printf("\n  %s\n  gives: %s", BAD[i].text, w.messages.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(w.messages.text, BAD[i].message));
    }
    tg_arena_deinit(&w.arena);
}

#define KERNEL(body)                                                                                                   \
    "kernel k { buffer 0 in f32[64] buffer 1 out f32[64] %1 = const i64 0 %2 = const i64 1 %3 = for tile %1 to %2 "    \
    "extent 1 { "                                                                                                      \
    "%4 = const f32 1 " body " } }"

static void test_rules(void) {
    static const Bad BAD[] = {
        {"kernel k { }", "a kernel is one tile loop"},
        {KERNEL("%5 = for serial %1 to %2 extent 1 { %6 = load f32 0[%5] } %7 = fneg f32 %6"), "not visible"},
        {KERNEL("%5 = for serial %1 to %2 extent 1 { %6 = reduce_sum f32 %4 %7 = fneg f32 %6 }"),
         "before its loop ends"},
        {KERNEL("%5 = reduce_sum f32 %4"), "stands in no loop"},
        {KERNEL("%5 = for parallel %1 to %2 extent 1 { %6 = reduce_sum f32 %4 }"), "stands in a parallel loop"},
        {"kernel k { buffer 0 out f32[1] buffer 1 scratch f32[1] %1 = const i64 0 %2 = const i64 1 %3 = for tile %1 to %2 "
         "extent 1 { %4 = const f32 1 %5 = for parallel %1 to %2 extent 1 { store 1[%1], %4 } %8 = load f32 1[%1] store "
         "0[%1], %8 } }",
         "scratch of a parallel loop's iterations is used elsewhere"},
        {KERNEL("%5 = load f32 0[%1 + 1 * v]"), "outside of a vector loop"},
        {KERNEL("store 0[%1], %4"), "a store to an input"},
        {KERNEL("store 1[%1], %1"), "type is not the buffer's"},
        {KERNEL("store 1[%4], %4"), "index is not i64"},
        {KERNEL("%5 = fadd f32 %4, %1"), "two types"},
        {KERNEL("%5 = iadd f32 %4, %4"), "wrong kind"},
        {KERNEL("%5 = convert bf16 %4 %6 = fneg bf16 %5"), "do not compute"},
        {KERNEL("%5 = bits i64 %4"), "another width"},
        {KERNEL("%5 = select f32 %4, %4, %4"), "not bool"},
        {KERNEL("%5 = for vector %1 to %2 extent 1 { %6 = for vector %1 to %2 extent 1 { } }"), "inside a vector loop"},
    };
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        LoopKernel *k;
        CU_ASSERT_EQUAL_FATAL(parse(&w, BAD[i].text, &k), TG_OK);
        CU_ASSERT_EQUAL(tg_loop_verify(k, &w.diags), TG_INTERNAL);
        if (strstr(w.messages.text, BAD[i].message) == NULL)
            printf("\n  %s\n  gives: %s", BAD[i].text, w.messages.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(w.messages.text, BAD[i].message));
    }
    tg_arena_deinit(&w.arena);
}

/* ---- reductions: against the order written down here once more ---- */

enum { LENGTH = 300, LONG = 70000 };

static void fill(float *x, int count) {
    uint32_t state = 12345;
    for (int i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = ldexpf((float)(state >> 8) / 0x1p24f - 0.5f, (int)(state >> 4 & 15));
    }
}

static float vector_sum(const float *x, int count, int extent) {
    float lanes[64] = {0};
    int width = extent < 256 ? 16 : 64;
    for (int i = 0; i < count; i++)
        lanes[i % width] += x[i];
    for (int half = width / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static float chunk_sum(const float *x, int count, int extent, int stride) {
    static float chunks[LONG / 32 + 1];
    memset(chunks, 0, sizeof chunks);
    int number = (extent + 31) / 32;
    for (int c = 0; c < number; c++)
        for (int i = 32 * c; i < 32 * c + 32 && i < count && i < extent; i++)
            chunks[c] = i == 32 * c ? x[(size_t)i * (size_t)stride] : chunks[c] + x[(size_t)i * (size_t)stride];
    for (; number > 1; number = (number + 1) / 2) {
        for (int i = 0; i < number / 2; i++)
            chunks[i] = chunks[2 * i] + chunks[2 * i + 1];
        if (number % 2)
            chunks[number / 2] = chunks[number - 1];
    }
    return chunks[0];
}

static void run_sum(World *w, const char *args, const char *body, int64_t capacity, int64_t rows, float *x, float *y) {
    LoweredCase c = {"sum", args, body, capacity, rows, 0};
    LoopKernel *k = lower_text(&w->arena, &c);
    TgScalars scalars = {.rows = rows};
    const char *why = interpret(&w->arena, k, (void *[]){x, y}, &scalars, 0, k->tiles);
    CU_ASSERT_PTR_NULL(why);
}

static void test_order_of_vectors(void) {
    static float x[LENGTH], y[1];
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    fill(x, LENGTH);
    const char *sum = "%1 : f32[B] = arg index=0 \"x\" %2 : f32 = reduce_sum %1 axes=0 return y %2";
    static const int SIZES[][2] = {{LENGTH, LENGTH}, {LENGTH, 77}, {255, 255}, {17, 16}, {16, 1}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        run_sum(&w, "%x: f32[B]", sum, SIZES[i][0], SIZES[i][1], x, y);
        CU_ASSERT_EQUAL(y[0], vector_sum(x, SIZES[i][1], SIZES[i][0]));
    }
    tg_arena_deinit(&w.arena);
}

static void test_order_of_columns(void) {
    static float x[LONG * 3], y[3];
    World w;
    world_init(&w);
    if (setjmp(w.arena.guard))
        return;
    fill(x, LONG * 3);
    static const int SIZES[][2] = {{LENGTH, LENGTH}, {LENGTH, 97}, {128, 128},    {33, 33},       {32, 32},
                                   {5, 2},           {LENGTH, 1},  {LONG, 69990}, {65536, 65536}, {32769, 32769}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        int extent = SIZES[i][0], rows = SIZES[i][1];
        run_sum(&w, "%x: f32[B, 3]",
                "%1 : f32[B, 3] = arg index=0 \"x\" %2 : f32[3] = reduce_sum %1 axes=0 return y %2", extent, rows, x,
                y);
        for (int column = 0; column < 3; column++)
            CU_ASSERT_EQUAL(y[column], chunk_sum(x + column, rows, extent, 3));
    }
    run_sum(&w, "%x: f32[B, 3]",
            "%1 : f32[B, 3] = arg index=0 \"x\" %2 : f32[3] = reduce_sum %1 axes=0 split=2 return y %2", 200, 150, x,
            y);
    for (int column = 0; column < 3; column++)
        CU_ASSERT_EQUAL(y[column], chunk_sum(x + column, 100, 100, 3) + chunk_sum(x + 300 + column, 50, 100, 3));
    tg_arena_deinit(&w.arena);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("loop", NULL, NULL);
    CU_add_test(suite, "print, parse, print is the identity", test_identity);
    CU_add_test(suite, "numbers are places", test_renumbering);
    CU_add_test(suite, "lowered kernels too", test_lowered_identity);
    CU_add_test(suite, "the documented example", test_documented);
    CU_add_test(suite, "errors of the text form", test_syntax);
    CU_add_test(suite, "what verify refuses", test_rules);
    CU_add_test(suite, "order of sums of vectors", test_order_of_vectors);
    CU_add_test(suite, "order of sums of columns", test_order_of_columns);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
