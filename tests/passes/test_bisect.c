/* tgc bisect's search, on passes of the test's own that go wrong at one rewrite, at none, in what they cannot do without, or in what the
   builder folds. */
#include "passes/bisect.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

#include <CUnit/Basic.h>
#include <string.h>

static const char chain[] = "graph @model {\n"
                            "  file 0 \"a.tg\"\n"
                            "  func @f export(%x: f32[3]) {\n"
                            "    %1 : f32[3] = arg index=0 \"x\"\n"
                            "    %2 : f32[3] = neg %1 loc(0:2:1-2)\n"
                            "    %3 : f32[3] = exp %2 loc(0:3:1-2)\n"
                            "    %4 : f32[3] = neg %3 loc(0:4:1-2)\n"
                            "    %5 : f32[3] = tanh %4 loc(0:5:1-2)\n"
                            "    %6 : f32[3] = neg %5 loc(0:6:1-2)\n"
                            "    %7 : f32[3] = exp %6 loc(0:7:1-2)\n"
                            "    return y %7 loc(0:8:1-2)\n"
                            "  }\n"
                            "}\n";

/* 0 - x is -x but for zeros; a negation whose operand is a tanh is lost. */
static NodeId lose_third(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Node *node = tg_node(copy->from, id);
    if (node->op != OP_neg || !tg_rewrite(context, "negation", node->locs))
        return 0;
    bool third = tg_node(copy->b->func, operands[0])->op == OP_tanh;
    return third ? operands[0] : tg_binary(copy->b, OP_sub, tg_const(copy->b, node->type, -0.0), operands[0]);
}

static NodeId lose_needed(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Node *node = tg_node(copy->from, id);
    bool asks = node->op == OP_exp && tg_needed_rewrite(context, "exponential", node->locs);
    return asks && tg_node(copy->from, tg_operand(copy->from, node, 0))->locs == tg_node(copy->from, 6)->locs ? operands[0] : 0;
}

/* Without asking. */
static NodeId lose_tanh(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)context;
    return tg_node(copy->from, id)->op == OP_tanh ? operands[0] : 0;
}

static Status copy_all(PassContext *context, const Graph *in, Graph **out,
                       NodeId (*replace)(void *, const Copy *, NodeId, const NodeId *)) {
    *out = tg_graph_like(context->arena, in, in->level);
    return tg_copy_replacing(context, in, in->funcs.at[0], *out, replace, context);
}
static Status run_third(PassContext *context, const Graph *in, Graph **out) { return copy_all(context, in, out, lose_third); }
static Status run_needed(PassContext *context, const Graph *in, Graph **out) { return copy_all(context, in, out, lose_needed); }
static Status run_tanh(PassContext *context, const Graph *in, Graph **out) { return copy_all(context, in, out, lose_tanh); }

typedef struct Hunt {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages;
    Graph *graph, *out;
    int64_t asked;
    Bisection found;
} Hunt;

static void hunt(Hunt *h, PassRun *run) {
    const PassInfo pass = {.name = "wrong", .run = run, .effect = EFFECT_KEEPS};
    PassInfo *kept;
    *h = (Hunt){.asked = 10};
    tg_arena_init(&h->arena, tg_host());
    CU_ASSERT_FATAL(setjmp(h->arena.guard) == 0);
    tg_diags_init(&h->diags, &h->arena, &h->sources, NULL);
    h->messages = tg_str(&h->arena);
    h->diags.capture = &h->messages;
    CU_ASSERT_EQUAL_FATAL(tg_graph_parse(&h->arena, &h->diags, &h->sources, "chain", chain, sizeof chain - 1, &h->graph), TG_OK);
    PassContext context = {.arena = &h->arena, .diags = &h->diags};
    PassOptions options = tg_pass_options();
    kept = tg_arena_copy(&h->arena, &pass, sizeof pass);
    CU_ASSERT_EQUAL(tg_bisect_pass(&context, &options, kept, h->graph, &h->asked, &h->out, &h->found), TG_OK);
}

static bool says(const Hunt *h, const char *text) { return strstr(h->messages.text, text) != NULL; }

static void test_rewrite(void) {
    Hunt h;
    hunt(&h, run_third);
    CU_ASSERT_EQUAL(h.asked, 14); /* three, and -0 is shared once */
    CU_ASSERT_PTR_NOT_NULL_FATAL(h.found.pass);
    CU_ASSERT_EQUAL(h.found.rewrite, 14);
    CU_ASSERT_STRING_EQUAL(h.found.rule, "negation");
    CU_ASSERT_EQUAL(h.found.loc.line, 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(h.found.value.func);
    CU_ASSERT_EQUAL(h.found.value.value, 6);
    CU_ASSERT_EQUAL(h.found.value.expected, -h.found.value.got);
    CU_ASSERT(says(&h, "pass wrong changed element 0 of 'y' in @f"));
    tg_arena_deinit(&h.arena);
}

static void test_needed(void) {
    Hunt h;
    hunt(&h, run_needed);
    CU_ASSERT_PTR_NOT_NULL_FATAL(h.found.pass);
    CU_ASSERT_EQUAL(h.found.rewrite, 12);
    CU_ASSERT_STRING_EQUAL(h.found.rule, "exponential");
    CU_ASSERT_EQUAL(h.found.value.value, 7);
    tg_arena_deinit(&h.arena);
}

static void test_no_rewrite(void) {
    Hunt h;
    hunt(&h, run_tanh);
    CU_ASSERT_PTR_NOT_NULL_FATAL(h.found.pass);
    CU_ASSERT_EQUAL(h.found.rewrite, 0);
    CU_ASSERT_EQUAL(h.found.value.value, 5);
    tg_arena_deinit(&h.arena);
}

static void test_right(void) {
    Hunt h;
    hunt(&h, run_simplify);
    CU_ASSERT_PTR_NULL(h.found.pass);
    CU_ASSERT_EQUAL(h.asked, 10);
    CU_ASSERT_EQUAL(h.messages.length, 0);
    tg_arena_deinit(&h.arena);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("bisect", NULL, NULL);
    CU_add_test(suite, "a rewrite", test_rewrite);
    CU_add_test(suite, "a rewrite that codegen needs", test_needed);
    CU_add_test(suite, "no rewrite", test_no_rewrite);
    CU_add_test(suite, "nothing", test_right);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
