/* --validate finds what a wrong pass does: the output of each pass, altered in one place. */
#include "ir/base/file.h"
#include "passes/pass.h"
#include "passes/validate.h"

#include <CUnit/Basic.h>
#include <string.h>

typedef struct Fault {
    int pass;
    const char *before;             /* the passes in front of it */
    const char *anchor, *from, *to; /* the first `from` behind `anchor` in the pass's output becomes `to` */
    const char *message;            /* NULL: nothing is wrong */
} Fault;

static const Fault faults[] = {
    {PASS_simplify, "", "func @objective ", "tanh", "sin", "pass simplify changed element 0 of 'loss' in @objective"},
    {PASS_simplify, "", "func @update ", "gradient @bias", "load @bias", "'bias' in @update"},
    {PASS_simplify, "", "func @init ", "value=0", "value=1", "'bias' in @init"},
    {PASS_simplify, "", "func @objective ", "value=0", "value=-0", NULL},
    {PASS_autodiff, "", "value=1", "= sub", "= add",
     "pass autodiff gives gradients along which the loss should change by"},
    {PASS_autodiff, "", "func @objective.eval", "= sub", "= add", "'loss' in @objective.eval"},
    {PASS_optimizer, "autodiff", "func @update ", "= sub", "= add",
     "pass optimizer changed element 0 of 'loss' in the second step"},
    {PASS_optimizer, "autodiff", "func @update ", "is_finite", "is_finite", NULL},
    {PASS_batch, "autodiff,optimizer", "func @micro ", "select %47, %42, %44", "select %47, %44, %42",
     "pass batch changed element 0 of 'loss' in the first step"},
    {PASS_batch, "autodiff,optimizer", "func @pre.0 ", "add %7, %6", "add %7, %7", "'w' in what two steps leave"},
    {PASS_batch, "autodiff,optimizer", "func @tail ", "@gradient.bias lane=1", "@gradient.bias lane=0",
     "'loss' in the second step"},
    {PASS_batch, "autodiff,optimizer", "func @eval.micro ", "= sub", "= add", "'loss' in the evaluation"},
    {PASS_attention, "autodiff,optimizer,batch", "func @micro ", "tanh", "sin", "pass attention changed element 0 of"},
    {PASS_clean, "autodiff,optimizer,batch", "func @tail ", "lane=1", "lane=0", "pass clean changed element 0 of"},
    {PASS_layout, "autodiff,optimizer,batch", "func @fields ", "sqrt", "abs", "'rms' in @fields"},
    {PASS_fuse, "autodiff,optimizer,batch", "func @kernel", "tanh", "sin", "pass fuse changed element 0 of"},
};

typedef struct Bench {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages;
} Bench;

static Graph *parse(Bench *b, const char *path, const char *text) {
    Graph *graph = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_graph_parse(&b->arena, &b->diags, &b->sources, path, text, strlen(text), &graph), TG_OK);
    return graph;
}

static Graph *read_model(Bench *b) {
    const char *path = TGC_SOURCE_DIR "/tests/passes/Inputs/weighted.tgir", *why;
    char *text;
    size_t length;
    CU_ASSERT_EQUAL_FATAL(tg_file_read(&b->arena, path, &text, &length, &why), TG_OK);
    Graph *graph = parse(b, path, text);
    graph->training.micro = 2;
    graph->training.lanes = 2;
    return graph;
}

static Graph *passed(Bench *b, const char *names, const Graph *in) {
    PassContext context = {.arena = &b->arena, .diags = &b->diags};
    PassOptions options = tg_pass_options();
    Graph *out = (Graph *)in;
    CU_ASSERT_EQUAL_FATAL(tg_passes_run(&context, &options, names, in, &out), TG_OK);
    return out;
}

static Graph *altered(Bench *b, const Fault *fault, const Graph *graph) {
    Str text = tg_str(&b->arena), other = tg_str(&b->arena);
    tg_graph_print(&text, graph);
    const char *anchor = strstr(text.text, fault->anchor), *at = anchor ? strstr(anchor, fault->from) : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    tg_str_printf(&other, "%.*s%s%s", (int)(at - text.text), text.text, fault->to, at + strlen(fault->from));
    return parse(b, "altered", other.text);
}

static void check(const Fault *fault) {
    Bench b = {0};
    tg_arena_init(&b.arena, tg_host());
    if (setjmp(b.arena.guard))
        CU_FAIL_FATAL("out of memory");
    tg_diags_init(&b.diags, &b.arena, &b.sources, NULL);
    b.messages = tg_str(&b.arena);
    b.diags.capture = &b.messages;
    const PassInfo *pass = tg_pass(fault->pass);
    Graph *before = passed(&b, fault->before, read_model(&b));
    Graph *after = altered(&b, fault, passed(&b, pass->name, before));
    PassContext context = {.arena = &b.arena, .diags = &b.diags};
    Status status = tg_validate(&context, pass, before, after);
    CU_ASSERT_EQUAL(status, fault->message ? TG_INTERNAL : TG_OK);
    bool said = fault->message ? strstr(b.messages.text, fault->message) != NULL : b.messages.length == 0;
    if (!said)
        printf("\n    %s, %s -> %s: %s\n", pass->name, fault->from, fault->to,
               b.messages.length ? b.messages.text : "nothing");
    CU_ASSERT_TRUE(said);
    tg_arena_deinit(&b.arena);
}

static void test_faults(void) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check(&faults[i]);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("validate", NULL, NULL);
    CU_add_test(suite, "faults", test_faults);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
