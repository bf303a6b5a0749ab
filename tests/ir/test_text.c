/* The text form: print -> parse -> print is the identity, over graphs in which every operation stands. */
#include "tests/ir/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char model_text[] =
    "graph @model path=\"models/digits.tg\" {\n"
    "  file 0 \"models/digits.tg\"\n"
    "  file 1 \"odd \\\"name\\\\\\x07\"\n"
    "  buffer @net.fc1.weight : f32[128, 64] param loc(0:3:1-9)\n"
    "  buffer @\"odd name\" : scaled bf16[3] state frozen\n"
    "  buffer @optimizer.net.fc1.weight.m : f32[128, 64] optimizer\n"
    "  buffer @sum.0 : f32 sum lanes=1\n"
    "  scalar $step builtin 0\n"
    "  scalar $optimizer.warmup setting 50\n"
    "  scalar $optimizer.lr.peak setting 0.01 loc(1:7:2-2)\n"
    "  scalar $lr computed nan\n"
    "  setting \"batch\" value=\"32\" origin=\"digits.tg:39\" runtime\n"
    "  setting \"seed\"\n"
    "  train batch=32 micro=16 lanes=2 steps=0 epochs=30 validate_every=250 clip_norm=1.5 clip_scalar=1 seed=18446744073709551615 "
    "loss=\"loss\" shuffle\n"
    "  data train \"Digits\" split=\"train\" runs by=\"label\" stratify=\"label\" {\n"
    "    field \"image\" : u8[B, 8, 8] reader=\"idx\" path=\"data/x.idx.gz\" loc(0:9:3-8)\n"
    "    field \"label\" : i32[B] reader=\"csv\" path=\"data/y.csv\" columns=[\"a\", \"b c\"] "
    "options=\"missing=0\\x0acategories=true\"\n"
    "    part \"train\" 0.8\n"
    "    part \"\" 0.2\n"
    "  }\n"
    "  data validate \"Digits\" as=\"test\" split=\"test\" {\n"
    "  }\n"
    "  data validate \"Digits\" as=\"hard\" {\n"
    "  }\n"
    "  func @update update() {\n"
    "    %1 : f32[128, 64] = gradient @net.fc1.weight\n"
    "    store @net.fc1.weight %1 loc(0:1:1-2 1:2:3-4)\n"
    "  }\n"
    "}\n";

static const char step_text[] =
    "graph @step {\n"
    "  file 0 \"model.tg\"\n"
    "  buffer @w : f32[4, 3] param\n"
    "  buffer @sum.0 : f32[3] sum lanes=4\n"
    "  scalar $step builtin 0\n"
    "  func @micro micro(%x: f32[B, 3] loc(0:1:1-4), %i: i32[B], %\"odd name\": bool[B, 3]) {\n"
    "    %1 : f32[B, 3] = arg index=0 \"x\" loc(0:1:2-3 0:2:1-1)\n"
    "    %2 : i32[B] = arg index=1 \"i\"\n"
    "    %3 : bool[B, 3] = arg index=2 \"odd name\"\n"
    "    %4 : f32[B, 3] = const value=-0\n"
    "    %5 : f32[4] = const values=[1, nan, -inf, -0]\n"
    "    %6 : f32[4, 3] = load @w\n"
    "    %7 : f32[3] = load @sum.0 lane=2\n"
    "    %8 : f64 = scalar $step\n"
    "    %9 : i32[2, 3] = iota axis=1\n"
    "    %10 : f32[B, 3] = random key=0x00000000deadbeef\n"
    "    %11 : f32[B, 3] = neg %1\n"
    "    %12 : f32[B, 3] = abs %1\n"
    "    %13 : f32[B, 3] = sign %1\n"
    "    %14 : f32[B, 3] = floor %1\n"
    "    %15 : f32[B, 3] = ceil %1\n"
    "    %16 : f32[B, 3] = round %1\n"
    "    %17 : f32[B, 3] = exp %1\n"
    "    %18 : f32[B, 3] = expm1 %1\n"
    "    %19 : f32[B, 3] = log %1\n"
    "    %20 : f32[B, 3] = log1p %1\n"
    "    %21 : f32[B, 3] = sqrt %1\n"
    "    %22 : f32[B, 3] = rsqrt %1\n"
    "    %23 : f32[B, 3] = sin %1\n"
    "    %24 : f32[B, 3] = cos %1\n"
    "    %25 : f32[B, 3] = tanh %1\n"
    "    %26 : f32[B, 3] = erf %1\n"
    "    %27 : f32[B, 3] = sigmoid %1\n"
    "    %28 : bool[B, 3] = not %3\n"
    "    %29 : bool[B, 3] = is_finite %1\n"
    "    %30 : bf16[B, 3] = convert %1\n"
    "    %31 : f32[B, 3] = detach %1\n"
    "    %32 : i32[B] = bounded %2 low=0 high=4 also=-100\n"
    "    %33 : f32[B, 3] = add %1, %4\n"
    "    %34 : f32[B, 3] = sub %1, %4\n"
    "    %35 : f32[B, 3] = mul %1, %4\n"
    "    %36 : f32[B, 3] = div %1, %4\n"
    "    %37 : f32[B, 3] = mod %1, %4\n"
    "    %38 : f32[B, 3] = pow %1, %4\n"
    "    %39 : f32[B, 3] = maximum %1, %4\n"
    "    %40 : f32[B, 3] = minimum %1, %4\n"
    "    %41 : bool[B, 3] = and %3, %28\n"
    "    %42 : bool[B, 3] = or %3, %28\n"
    "    %43 : bool[B, 3] = eq %1, %4\n"
    "    %44 : bool[B, 3] = ne %1, %4\n"
    "    %45 : bool[B, 3] = lt %1, %4\n"
    "    %46 : bool[B, 3] = le %1, %4\n"
    "    %47 : bool[B, 3] = gt %1, %4\n"
    "    %48 : bool[B, 3] = ge %1, %4\n"
    "    %49 : f32[B, 3] = select %3, %1, %4\n"
    "    %50 : f32[B*3] = reshape %1\n"
    "    %51 : f32[3, B] = transpose %1 perm=[1, 0]\n"
    "    %52 : f32[B, 2, 3] = broadcast %1 dims=[0, 2]\n"
    "    %53 : f32[2] = slice %5 start=1 limit=4 stride=2\n"
    "    %54 : f32[4] = reverse %5 axes=0\n"
    "    %55 : f32[7] = pad %5 low=1 high=2 interior=0 value=inf\n"
    "    %56 : f32[11] = concat %5, %55 axis=0\n"
    "    %57 : f32[3] = reduce_sum %1 axes=0 split=4\n"
    "    %58 : f32 = reduce_max %1 axes=[0, 1]\n"
    "    %59 : f32[B] = reduce_min %1 axes=1\n"
    "    %60 : i32[B] = argmax %1 axis=1\n"
    "    %61 : f32[B, 3] = cumsum %1 axis=1 reverse=1\n"
    "    %62 : f32[B, 4] = dot %1, %6, %5 contract_a=1 contract_b=1\n"
    "    %63 : f32[3, 3] = dot %1, %1 contract_a=0 contract_b=0 split=2\n"
    "    %64 : f32[B, 3] = take %6, %32 axis=0\n"
    "    %65 : f32[4, 3] = scatter_add %32, %64 axis=0\n"
    "    %66 : f32[B, 2, 3, 1] = reshape %52\n"
    "    %67 : f32[B, 2, 3, 1] = attention %66, %66, %66 causal=1 scale=0.25\n"
    "    %68 : bool[B, 3, 3] = const value=1\n"
    "    %69 : f32[B, 2, 3, 1] = attention_dq %66, %66, %66, %67 scale=0.25\n"
    "    %70 : f32[B, 2, 3, 1] = attention_dk %66, %66, %66, %67, %68 scale=0.25\n"
    "    %71 : f32[B, 2, 3, 1] = attention_dv %66, %66, %66, %67 scale=0.1\n"
    "    %72 : f32[B, 3] = again %1 at=1\n"
    "    return loss %58 loc(0:2:1-4)\n"
    "    return \"odd name\" %60\n"
    "    return val/loss %8\n"
    "    store @w %65\n"
    "    store @sum.0 %57\n"
    "  }\n"
    "  func @tail tail() {\n"
    "  }\n"
    "}\n";

static const char kernel_text[] = "graph @kernel {\n"
                                  "  buffer @w : f32[4] param\n"
                                  "  func @micro micro(%x: f32[B, 4]) {\n"
                                  "    %1 : f32[B, 4] = arg index=0 \"x\"\n"
                                  "    %2 : f32[4] = load @w\n"
                                  "    %3 = call @kernel.0 %1, %2\n"
                                  "    %4 : f32[B, 4] = result %3 index=0\n"
                                  "    %5 : f32[4] = result %3 index=1\n"
                                  "    %6 = call @kernel.1\n"
                                  "    %7 : f32 = result %6 index=0\n"
                                  "    return y %4\n"
                                  "    return z %7\n"
                                  "    store @w %5\n"
                                  "  }\n"
                                  "  func @kernel.0 kernel(%a: f32[B, 4], %b: f32[4]) {\n"
                                  "    %1 : f32[B, 4] = arg index=0 \"a\"\n"
                                  "    %2 : f32[4] = arg index=1 \"b\"\n"
                                  "    %3 : f32[B, 4] = broadcast %2 dims=1\n"
                                  "    %4 : f32[B, 4] = add %1, %3\n"
                                  "    %5 : f32[4] = reduce_sum %4 axes=0\n"
                                  "    return 0 %4\n"
                                  "    return 1 %5\n"
                                  "  }\n"
                                  "  func @kernel.1 kernel() {\n"
                                  "    %1 : f32 = const value=1e-08\n"
                                  "    return 0 %1\n"
                                  "  }\n"
                                  "}\n";

static void expect_identity(const char *text) {
    World w;
    world_init(&w, LEVEL_MODEL);
    Graph *graph = parsed(&w, text);
    if (graph == NULL)
        printf("%s\n", w.messages.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_OK);
    CU_ASSERT_STRING_EQUAL(printed(&w, graph), text);
    Graph *again = parsed(&w, printed(&w, graph));
    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    CU_ASSERT_STRING_EQUAL(printed(&w, again), text);
    world_deinit(&w);
}

static void test_model(void) { expect_identity(model_text); }
static void test_step(void) { expect_identity(step_text); }
static void test_kernel(void) { expect_identity(kernel_text); }

static void test_every_op(void) {
    for (int op = 0; op < OP_COUNT; op++) {
        char word[64];
        snprintf(word, sizeof word, "= %s", tg_op((Op)op)->name);
        bool found = false;
        const char *texts[] = {model_text, step_text, kernel_text};
        for (int t = 0; t < 3; t++)
            for (const char *at = texts[t]; (at = strstr(at, word)) != NULL; at++)
                found |= at[strlen(word)] == ' ' || at[strlen(word)] == '\n';
        CU_ASSERT(found);
        if (!found)
            printf("no %s in the texts\n", tg_op((Op)op)->name);
    }
}

static void test_plain(void) {
    World w;
    world_init(&w, LEVEL_MODEL);
    Graph *graph = parsed(&w, model_text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    Str text = tg_str(&w.arena);
    tg_graph_print_plain(&text, graph);
    CU_ASSERT_PTR_NULL(strstr(text.text, "loc("));
    CU_ASSERT_PTR_NULL(strstr(text.text, "file "));
    CU_ASSERT_PTR_NOT_NULL(parsed(&w, text.text));
    world_deinit(&w);
}

/* Layout and comments do not matter. */
static void test_layout(void) {
    World w;
    world_init(&w, LEVEL_MODEL);
    Graph *graph =
        parsed(&w, "// a test\ngraph @step{func @f micro(%a:f32){%a:f32=arg index=[0]\"a\"%b:f32=neg %a // minus\n"
                   "%c:f32=const value=0x1p-3 return r %b}}");
    if (graph == NULL)
        printf("%s\n", w.messages.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CU_ASSERT_STRING_EQUAL(printed(&w, graph), "graph @step {\n"
                                               "  func @f micro(%a: f32) {\n"
                                               "    %1 : f32 = arg index=0 \"a\"\n"
                                               "    %2 : f32 = neg %1\n"
                                               "    %3 : f32 = const value=0.125\n"
                                               "    return r %2\n"
                                               "  }\n"
                                               "}\n");
    world_deinit(&w);
}

static const struct {
    const char *text, *message;
} broken[] = {
    {"", "1:1: error: expected `graph`"},
    {"graph @stepp {}", "expected the level of the graph"},
    {"graph @step {\n  function\n}", "2:3: error: expected `func`"},
    {"graph @step { func @f micro() {", "the function has no end"},
    {"graph @step { func @f micro() { %1 : f32 = adds } }", "there is no operation `adds`"},
    {"graph @step { func @f micro() { %1 : f32 = neg %2 } }", "there is no value `%2` before this"},
    {"graph @step { func @f micro() { %1 : f31 = const value=1 } }", "expected an element type"},
    {"graph @step { func @f micro() { %1 : f32 = const valeu=1 } }", "const has no attribute `valeu`"},
    {"graph @step { func @f micro() { %1 : f32[2] = const values=[1] } }", "1 values for a type of 2 elements"},
    {"graph @step { func @f micro() { %1 : f32 = load @w } }", "there is no buffer `w`"},
    {"graph @step { func @f micro() { %1 : f32[1,1,1,1,1,1,1,1,1] = const value=1 } }", "at most 8 dimensions"},
    {"graph @step { func @f micro() { %1 : f32[9223372036854775807, 2] = const value=1 } }", "more than 2^63"},
    {"graph @step { func @f micro() { %1 : f32[99999999999999999999] = const value=1 } }", "does not fit 64 bits"},
    {"graph @step { func @f micro() { %1 : f32[B, B] = const value=1 } }", "in one dimension only"},
    {"graph @step { func @f micro() { %1 : f32 = const value=1 loc(0:1:1-1) } }", "there is no file 0"},
    {"graph @step { func @f micro() { %1 : f32 = const value=1 %1 : f32 = neg %1 } }", "there are two values `%1`"},
    {"graph @step { func @f micro() { } func @f tail() { } }", "there are two functions `f`"},
    {"graph @step { buffer @b : f32 sum buffer @b : f32 sum }", "there are two buffers `b`"},
    {"graph @step { train batch=99999999999999999999 }", "expected an integer below 2^63"},
    {"graph @step { train clip_scalar=3 }", "there is no scalar 3"},
    {"graph @step { setting \"a }", "the string has no end"},
    {"graph @step { } x", "expected nothing after the graph"},
};

static void test_broken(void) {
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        World w;
        world_init(&w, LEVEL_MODEL);
        CU_ASSERT_PTR_NULL(parsed(&w, broken[i].text));
        bool said = strstr(w.messages.text, broken[i].message) != NULL;
        CU_ASSERT(said);
        CU_ASSERT_EQUAL(w.diags.errors, 1);
        if (!said)
            printf("%s: %s\n", broken[i].text, w.messages.text);
        world_deinit(&w);
    }
}

/* Every text that is cut off somewhere is refused, none is read past its end. */
static void test_cut_off(void) {
    size_t length = strlen(kernel_text);
    for (size_t cut = 0; cut + 2 < length; cut++) {
        World w;
        world_init(&w, LEVEL_MODEL);
        char *text = malloc(cut ? cut : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        memcpy(text, kernel_text, cut);
        Graph *graph;
        CU_ASSERT_EQUAL(tg_graph_parse(&w.arena, &w.diags, &w.sources, "cut", text, cut, &graph), TG_MODEL);
        free(text);
        world_deinit(&w);
    }
}

int main(void) {
    static const TestCase cases[] = {
        {"model", test_model}, {"step", test_step},     {"kernel", test_kernel}, {"every op", test_every_op},
        {"plain", test_plain}, {"layout", test_layout}, {"broken", test_broken}, {"cut off", test_cut_off},
    };
    return run_tests("text", cases, sizeof cases / sizeof *cases);
}
