/* What tg_graph_verify refuses, and that it says which node, buffer or function. */
#include "tests/ir/support.h"

#include <string.h>

static const struct {
    const char *text, *message;
} refused[] = {
    {"graph @step { buffer @net.w : f32[2] param func @tail tail() {\n"
     "%1 : f32[2] = load @net.w store @net.w %1 store @net.w %1 } }",
     "in `tail`: `net.w` is updated twice"},
    {"graph @step { buffer @w : f32[B] param }", "w: a buffer cannot have the batch in its type"},
    {"graph @step { buffer @w : f32[2] param func @tail tail() { %1 : f32[3] = const value=1 store @w %1 } }",
     "f32[3] is stored to a buffer of f32[2]"},
    {"graph @step { buffer @w : f32[2] param func @tail tail() { %1 : f32[2] = gradient @w } }",
     "`%1 : f32[2] = gradient @w`: the operation cannot stand at this level"},
    {"graph @model { buffer @s : f32[2] state func @update update() { %1 : f32[2] = gradient @s } }",
     "only parameters have gradients"},
    {"graph @kernel { func @micro micro() { %1 : f32 = const value=1 } }", "cannot stand at this level"},
    {"graph @kernel { func @k kernel(%a: f32[2, 3], %b: f32[3, 4]) { %1 : f32[2, 3] = arg index=0\n"
     "%2 : f32[3, 4] = arg index=1 %3 : f32[2, 4] = dot %1, %2 contract_a=1 contract_b=0 } }",
     "the operation cannot stand in a kernel"},
    {"graph @kernel { func @k kernel(%a: f32[2, 3]) { %1 : f32[2, 3] = arg index=0 %2 : f32 = reduce_sum %1 axes=[0, "
     "1] } }",
     "a reduction in a kernel has one axis"},
    {"graph @step { func @k kernel() { } }", "there are no kernels at level step"},
    {"graph @kernel { func @a micro() { } func @b micro() { %1 = call @a } }", "only kernels are called"},
    {"graph @step { func @f micro() { %1 : f32 = arg index=1 } }", "the function has 0 arguments"},
    {"graph @step { func @f micro() { %1 : f32 = const value=1 return a %1 return a %1 } }",
     "there are two results `a`"},
};

static void test_refused(void) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        World w;
        world_init(&w, LEVEL_MODEL);
        Graph *graph = parsed(&w, refused[i].text);
        if (graph == NULL)
            printf("%s\n", w.messages.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
        CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_INTERNAL);
        bool said = strstr(w.messages.text, refused[i].message) != NULL;
        CU_ASSERT(said);
        if (!said)
            printf("%s\n%s", refused[i].text, w.messages.text);
        world_deinit(&w);
    }
}

/* Damage that text cannot express. */
static void test_damage(void) {
    World w;
    world_init(&w, LEVEL_STEP);
    Graph *graph =
        parsed(&w, "graph @step { func @f micro() { %1 : f32 = const value=1 %2 : f32 = neg %1 return a %2 } }");
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_OK);
    Func *func = graph->funcs.at[0];
    Node good = func->nodes.at[2];
    func->operands.at[0] = 2;
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_INTERNAL);
    func->operands.at[0] = 1;
    func->nodes.at[2].type = tg_type_with(graph, good.type, DT_F64);
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_INTERNAL);
    CU_ASSERT(strstr(w.messages.text, "its type should be f32") != NULL);
    func->nodes.at[2] = good;
    func->nodes.at[2].op = OP_COUNT;
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_INTERNAL);
    func->nodes.at[2] = good;
    func->nodes.at[1].attr = NULL;
    CU_ASSERT_EQUAL(tg_graph_verify(graph, &w.diags), TG_INTERNAL);
    world_deinit(&w);
}

int main(void) {
    static const TestCase cases[] = {{"refused", test_refused}, {"damage", test_damage}};
    return run_tests("verify", cases, sizeof cases / sizeof *cases);
}
