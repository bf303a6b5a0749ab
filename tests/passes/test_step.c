/* The passes over a whole step: every way to run it gives the same values, and the right ones. */
#include "ir/base/file.h"
#include "passes/pass.h"
#include "passes/step.h"
#include "passes/validate.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <string.h>

enum { RECORDS = 8, SHORT = 7, MOST_VALUES = 256 };

typedef struct Outcome {
    double values[MOST_VALUES]; /* fields, then buffers that persist */
    uint32_t count;
    bool finite;
    Status status;
    const char *messages;
} Outcome;

typedef struct Way {
    int64_t micro, lanes, records;
    bool no_fold, no_fuse;
    const char *until;
    EvalMode mode;
    double poison; /* added to one input: NaN closes the gate */
} Way;

static Graph *read_graph(Arena *arena, Diags *diags, Sources *sources, const char *name) {
    const char *path = tg_arena_printf(arena, "%s/tests/passes/Inputs/%s", TGC_SOURCE_DIR, name), *why;
    char *text;
    size_t length;
    Graph *graph = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_file_read(arena, path, &text, &length, &why), TG_OK);
    CU_ASSERT_EQUAL(tg_graph_parse(arena, diags, sources, path, text, length, &graph), TG_OK);
    return graph;
}

static void fill_fields(Arena *arena, const Graph *graph, int64_t records, double poison, Tensor *fields) {
    const Func *objective = tg_func_find(graph, FUNC_OBJECTIVE, NULL);
    for (uint32_t i = 0; i < objective->args.count; i++) {
        const Type *type = tg_type_of(&graph->types, objective->args.at[i].type);
        fields[i].count = tg_type_count(type, records);
        fields[i].at = TG_ALLOC(arena, double, fields[i].count);
        for (int64_t k = 0; k < fields[i].count; k++)
            fields[i].at[k] = (float)(2 * tg_random(5, i, 0, 0, (uint64_t)k) - 1.2);
    }
    fields[0].at[1] += poison;
}

static void keep(Outcome *out, const double *values, int64_t count) {
    memcpy(out->values + out->count, values, (size_t)count * sizeof *values);
    out->count += (uint32_t)count;
}

static void run_step(Arena *arena, const Way *way, const Graph *model, Diags *diags, Outcome *out) {
    Graph *graph;
    PassContext context = {.arena = arena, .diags = diags};
    PassOptions options = tg_pass_options();
    options.no_fold = way->no_fold;
    options.no_fuse = way->no_fuse;
    options.validate = !way->no_fold;
    out->status = tg_phases_run(&context, &options, way->until, model, &graph);
    if (out->status != TG_OK)
        return;
    EvalState state;
    tg_random_state(arena, graph, tg_func_find(graph, FUNC_SCALARS, NULL), 1, &state);
    state.mode = way->mode;
    tg_step_set_scalar(&state, graph, "step", 2);
    Tensor tensors[4];
    fill_fields(arena, model, way->records, way->poison, tensors);
    StepRecords records = {tensors, 0, way->records};
    StepFields logged, evaluated;
    CU_ASSERT_EQUAL_FATAL(tg_step_init(&state, diags, graph), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_step_run(&state, diags, graph, &records, &logged), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_step_evaluate(&state, diags, graph, &records, &evaluated), TG_OK);
    out->finite = logged.finite;
    keep(out, logged.values, logged.count);
    keep(out, evaluated.values, evaluated.count);
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        if (graph->buffers.at[i].class != BUFFER_SUM)
            keep(out, state.buffers[i].at, state.buffers[i].count);
}

static Outcome outcome_of(const char *input, Way way, char *messages, size_t room) {
    Outcome out = {0};
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("out of memory");
    }
    Sources sources = {0};
    Diags diags;
    tg_diags_init(&diags, &arena, &sources, NULL);
    Str captured = tg_str(&arena);
    diags.capture = &captured;
    Graph *model = read_graph(&arena, &diags, &sources, input);
    if (model) {
        model->training.micro = way.micro;
        model->training.lanes = way.lanes;
        run_step(&arena, &way, model, &diags, &out);
    }
    if (messages)
        snprintf(messages, room, "%s", captured.text);
    else
        fputs(captured.text, stderr);
    tg_arena_deinit(&arena);
    return out;
}

static bool same_bits(const Outcome *a, const Outcome *b) {
    return a->status == TG_OK && b->status == TG_OK && a->count == b->count && a->count > 0 && a->finite == b->finite &&
           memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

static bool nearly_same(const Outcome *a, const Outcome *b, double tolerance) {
    bool same = a->count == b->count && a->count > 0;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = fabs(a->values[i] - b->values[i]) <= tolerance * (1 + fabs(a->values[i]));
    return same;
}

static const Way whole = {.micro = RECORDS, .lanes = 1, .records = RECORDS, .mode = EVAL_TYPED};

static Outcome run_way(Way way) { return outcome_of("weighted.tgir", way, NULL, 0); }

static void test_fusion_and_folding_keep_bits(void) {
    Outcome fused = run_way(whole);
    Way way = whole;
    way.no_fuse = true;
    Outcome unfused = run_way(way);
    CU_ASSERT_TRUE(same_bits(&fused, &unfused));
    way.no_fold = true;
    Outcome plain = run_way(way);
    CU_ASSERT_TRUE(same_bits(&fused, &plain));
    way = whole;
    way.until = "clean";
    Outcome step = run_way(way);
    CU_ASSERT_TRUE(same_bits(&fused, &step));
}

/* In f64 every split of the batch is the same step; what differs is rounding alone. */
static void test_micro_batches(void) {
    for (int64_t records = SHORT; records <= RECORDS; records++) {
        Way way = whole;
        way.mode = EVAL_REAL;
        way.records = records;
        Outcome one = run_way(way);
        static const int64_t splits[][2] = {{4, 1}, {4, 2}, {2, 1}, {2, 2}, {2, 4}, {3, 1}, {8, 4}, {4, 4}};
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
            way.micro = splits[i][0], way.lanes = splits[i][1];
            Outcome many = run_way(way);
            CU_ASSERT_EQUAL(many.status, TG_OK);
            CU_ASSERT_TRUE(nearly_same(&one, &many, 1e-12));
        }
    }
}

static void test_values(void) {
    Way way = whole;
    way.mode = EVAL_REAL;
    Outcome out = run_way(way);
    /* rms is the root of the loss; the mean of x is the state mu. */
    CU_ASSERT_DOUBLE_EQUAL(out.values[1], sqrt(out.values[0]), 1e-15);
    double sum = 0;
    for (int r = 0; r < RECORDS; r++)
        sum += (float)(2 * tg_random(5, 0, 0, 0, (uint64_t)(4 * r)) - 1.2);
    CU_ASSERT_DOUBLE_EQUAL(out.values[out.count - 4], sum / RECORDS, 1e-12);
}

static void test_gate(void) {
    Way way = whole;
    way.poison = NAN;
    Outcome closed = run_way(way);
    CU_ASSERT_EQUAL(closed.status, TG_OK);
    CU_ASSERT_FALSE(closed.finite);
    way.poison = 0;
    Outcome open = run_way(way);
    CU_ASSERT_TRUE(open.finite);
    /* After the three fields: w, bias, m, mu; m and mu began as zeros and stayed so. */
    for (uint32_t i = closed.count - 16; i < closed.count; i++)
        CU_ASSERT_EQUAL(closed.values[i], 0);
    CU_ASSERT_NOT_EQUAL(open.values[open.count - 5], 0);
}

static void test_uneven_lanes(void) {
    char messages[512];
    Way way = whole;
    way.micro = 2, way.lanes = 3;
    Outcome out = outcome_of("weighted.tgir", way, messages, sizeof messages);
    CU_ASSERT_EQUAL(out.status, TG_MODEL);
    CU_ASSERT_PTR_NOT_NULL(strstr(messages, "lanes = 3"));
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("step", NULL, NULL);
    CU_add_test(suite, "fusion and folding keep bits", test_fusion_and_folding_keep_bits);
    CU_add_test(suite, "micro-batches", test_micro_batches);
    CU_add_test(suite, "values", test_values);
    CU_add_test(suite, "gate", test_gate);
    CU_add_test(suite, "uneven lanes", test_uneven_lanes);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
