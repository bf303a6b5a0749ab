/* The library against PyTorch 2.15 (torch.optim, torch.nn.functional; muon with its iteration in f32) and definitions.
 */
#include "tests/lower/program.h"

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DATA                                                                                                           \
    "data D {\n    x: f32[4] from csv(\"a.csv\", columns = [\"a\", \"b\", \"c\", \"d\"])\n"                            \
    "    y: f32 from csv(\"a.csv\", columns = \"y\")\n}\n"
#define NET(shape)                                                                                                     \
    "module Net() {\n    param w: f32" shape " = ones\n    fn (x) { return x * sum(w) }\n}\nnet = Net()\n"
#define OBJECTIVE(loss) "fn objective(b: D) { return { loss: " loss " } }\n"
#define TRAIN(optimizer)                                                                                               \
    "train {\n data = D, objective = objective, batch = 8, steps = 10\n optimizer = " optimizer "\n}\n"

static TestProgram *good(const char *text) {
    TestProgram *program = program_text(text, NULL);
    if (program->status != TG_OK)
        fprintf(stderr, "\n%s\n%s\n", text, program->messages.text);
    CU_ASSERT_EQUAL_FATAL(program->status, TG_OK);
    return program;
}

static void expect_close(const char *what, double value, double right, double tolerance) {
    bool close = fabs(value - right) <= tolerance * (1 + fabs(right));
    if (!close)
        fprintf(stderr, "\n%s is %.9g, not %.9g\n", what, value, right);
    CU_ASSERT(close);
}

/* ---- values ---- */

#define LOGITS "f32([[1, -2, 0.5], [0.25, 3, -1], [2, 0, 1], [-1, 0.5, 0.75]])"
#define LABELS "[0, 1, 2, 1]"
#define Y      "f32([0.5, -1, 2, -3])"
#define T      "f32([1, 0, 0, 1])"
#define QKV                                                                                                            \
    "f32([[[[1, 0.5], [-1, 2], [0.3, 0.7]], [[0.2, -0.4], [1.5, 0.1], [-0.6, 0.9]]]]), "                               \
    "f32([[[[0.4, 1.2], [-0.3, 0.8], [1.1, -0.5]]]]), f32([[[[1, 2], [3, -1], [0.5, 4]]]])"
#define MASK(rows) "f32([" rows "]) > 0.5"

typedef struct Expression {
    const char *text;
    double value;
} Expression;

static const Expression values[] = {
    {"cross_entropy(" LOGITS ", " LABELS ")", 0.7275969982147217},
    {"cross_entropy(" LOGITS ", " LABELS ", ignore = 1)", 0.9561014175415039},
    {"cross_entropy(" LOGITS ", " LABELS ", weight = [1, 2, 0.5])", 0.5826855301856995},
    {"cross_entropy(" LOGITS ", " LABELS ", ignore = 1, weight = [1, 2, 0.5])", 0.8055999279022217},
    {"cross_entropy(" LOGITS ", " LABELS ", smoothing = 0.1)", 0.7275969982147217}, /* in training only */
    {"bce_with_logits(" Y ", " T ")", 1.4907135963439941},
    {"bce_with_logits(" Y ", " T ", pos_weight = 3)", 3.2520456314086914},
    {"bce_with_logits(f32([[-200]]), f32([[1]]), pos_weight = [2])", 400},
    {"mse(" Y ", " T ")", 5.3125},
    {"l1(" Y ", " T ")", 1.875},
    {"huber(" Y ", " T ", delta = 1.5)", 1.84375},
    {"kl(log_softmax(" LOGITS "), f32([[0.2, 0.3, 0.5], [0, 0.6, 0.4], [0.1, 0.1, 0.8], [1, 0, 0]]))",
     1.2046728134155273},
    {"attention(" QKV ", causal = true)[0, 0, 1, 0]", 1.964659333229065},
    {"attention(" QKV ", causal = true)[0, 1, 2, 1]", 0.855751097202301},
    {"attention(" QKV ", scale = 0.25)[0, 1, 1, 1]", 2.06907057762146},
    {"attention(" QKV ", mask = " MASK("[1, 0, 1], [0, 1, 1], [1, 1, 0]") ")[0, 0, 2, 0]", 1.828471302986145},
    {"attention(" QKV ", mask = " MASK("[1, 0, 1], [0, 1, 1], [1, 1, 0]") ")[0, 1, 1, 1]", 3.0053536891937256},
    {"attention(" QKV ", segments = i32([[0, 0, 1]]))[0, 1, 0, 0]", 2.007070779800415},
    {"attention(" QKV ", segments = i32([[0, 0, 1]]))[0, 0, 2, 1]", 4},
    {"attention(" QKV ", segments = i32([[0, 0, 1]]), mask = " MASK("[1, 0, 1], [1, 0, 1], [1, 0, 1]") ")[0, 0, 1, 0]",
     1},
    {"attention(" QKV ", segments = i32([[0, 0, 1]]), causal = true)[0, 0, 0, 0]", 1},
    {"accuracy(" LOGITS ", " LABELS ")", 0.5},
    {"accuracy(" LOGITS ", " LABELS ", ignore = 2)", 2.0 / 3},
    {"top_k(" LOGITS ", " LABELS ", k = 1)", 0.5},
    {"top_k(" LOGITS ", " LABELS ", k = 2)", 1},
    {"top_k(f32([[1, 1, 1], [1, 1, 1]]), [0, 2], k = 2)", 0.5},
    {"top_k(" LOGITS ", [0, 1, 2, -1], k = 1, ignore = -1)", 2.0 / 3},
    {"precision(" LOGITS ", i32(" LABELS "))", 0.5},
    {"recall(" LOGITS ", i32(" LABELS "))", 0.5},
    {"f1(" LOGITS ", i32(" LABELS "))", 0.4444444444444444},
    {"precision(f32([[1, 0, 0], [1, 0, 0]]), i32([0, 0]))", 1}, /* classes that never occur don't count */
    {"precision(" Y ", " T ")", 0.5},
    {"recall(" Y ", i32([0, 0, 1, 1]))", 0.5},
    {"f1(" Y ", i32([1, 0, 1, 1]))", 0.8},
    {"f1(" Y ", i32([0, 0, 0, 0]), threshold = 9)", 0},
    {"rms(f32([3, 4, 0, 0]))", 2.5},
    {"sum(einsum([f32([[1, 2], [3, 4]]), f32([[1, 10], [100, 1000]])], [[A, E], [E, C]] -> [A, C])[1])", 4433},
    {"einsum([f32([[1, 2], [3, 4]]), f32([[1, 10], [100, 1000]])], [[A, E], [E, C]] -> [C, A])[0, 1]", 403},
    {"einsum([f32([[1, 2], [3, 4]])], [[A, E]] -> [E])[1]", 6},
    {"einsum([f32([[1, 2], [3, 4]])], [[A, E]] -> [])", 10},
    {"einsum([f32([1, 2]), f32([10, 100])], [[A], [E]] -> [E, A])[1, 0]", 100},
    {"einsum([f32([1, 2]), f32([10, 100])], [[A], [A]] -> [A])[1]", 200},
    {"einsum([f32([1, 2]), f32([10, 100])], [[A], [E]] -> [])", 330},
    {"einsum([f32([[1, 2], [3, 4]]), f32([1, 10]), f32([1, 2])], [[A, C], [C], [A]] -> [])", 107},
    {"einsum([f32([[[1, 2]], [[3, 4]]]), f32([[1, 10], [2, 20]])], [[H, T, D], [H, D]] -> [H, T])[1, 0]", 86},
    {"einsum([f32([[1, 2], [3, 4]]), f32([[1, 10], [2, 20]])], [[A, C], [A, C]] -> [])", 107},
};

static void test_values(void) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 DATA NET("[4]") OBJECTIVE("mean(net(b.y))") TRAIN("Sgd()") "export fn f() { return { v: f32(%s) } }\n",
                 values[i].text);
        TestProgram *program = good(text);
        expect_close(values[i].text, program_value(program, "export.f", "v"), values[i].value, 3e-7);
        program_free(program);
    }
}

/* ---- functions over several steps ---- */

static double start(int64_t i) { return (double)(i + 1) / 10; }

/* The parameters are 0.1, 0.2, ..., everything else 0, each gradient equals its parameter. */
typedef struct Run {
    TestProgram *program;
    double *scalars;
    Tensor *buffers;
    int64_t step;
} Run;

static Run run_of(TestProgram *p) {
    const Graph *graph = p->graph;
    Run run = {p, TG_ALLOC(&p->arena, double, graph->scalars.count + 1),
               TG_ALLOC(&p->arena, Tensor, graph->buffers.count + 1), 0};
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        int64_t count = tg_type_count(tg_type_of(&graph->types, graph->buffers.at[i].type), 1);
        run.buffers[i] = (Tensor){graph->buffers.at[i].type, count, TG_ALLOC(&p->arena, double, count + 1)};
        for (int64_t k = 0; graph->buffers.at[i].class == BUFFER_PARAM && k < count; k++)
            run.buffers[i].at[k] = (float)start(k);
    }
    return run;
}

static Tensor *evaluate(Run *run, const Func *func, const Tensor *args) {
    TestProgram *p = run->program;
    for (uint32_t i = 0; i < p->graph->scalars.count; i++) {
        const Scalar *scalar = &p->graph->scalars.at[i];
        bool one = strcmp(scalar->name, "records") == 0;
        run->scalars[i] = strcmp(scalar->name, "step") == 0          ? (double)run->step
                          : strcmp(scalar->name, "total_steps") == 0 ? 100
                          : one                                      ? 1
                                                                     : scalar->value;
    }
    EvalState state = {.arena = &p->arena,
                       .mode = EVAL_TYPED,
                       .rows = 1,
                       .seed = 7,
                       .scalars = run->scalars,
                       .buffers = run->buffers,
                       .args = args};
    Tensor *results = TG_ALLOC(&p->arena, Tensor, func->results.count + 1);
    if (tg_eval_func(&state, p->graph, func, &p->diags, results) != TG_OK)
        fprintf(stderr, "%s\n", p->messages.text);
    return results;
}

static void update(Run *run) {
    const Graph *graph = run->program->graph;
    const Func *func = tg_func_find(graph, FUNC_UPDATE, NULL);
    for (uint32_t i = 1; i < func->nodes.count; i++)
        if (func->nodes.at[i].op == OP_gradient)
            func->nodes.at[i].op = OP_load;
    run->step++;
    Tensor *results = evaluate(run, func, NULL);
    for (uint32_t i = 0; i < func->results.count; i++)
        run->buffers[func->results.at[i].buffer] = results[i];
}

typedef struct Optimizer {
    const char *shape, *setting;
    double after[12]; /* two steps; 0: not checked */
} Optimizer;

static const Optimizer optimizers[] = {
    {"[2, 3]",
     "Adafactor(lr = 0.1, weight_decay = 0.1)",
     {0.05597086623311043, 0.1298540234565735, 0.2130240947008133, 0.31645312905311584, 0.41715478897094727,
      0.5175313949584961}},
    {"[3]", "Adafactor(lr = 0.1)", {0.06096675619482994, 0.1597699075937271, 0.25941842794418335}},
    {"[2, 2, 3]",
     "Adafactor(lr = 0.1)",
     {0.026789333671331406, 0.0805741399526596, 0.150803804397583, 0.25887981057167053, 0.3627556264400482,
      0.4665813148021698, 0.5661845207214355, 0.6623103618621826, 0.7591803669929504, 0.8595656156539917,
      0.9611360430717468, 1.0624566078186035}},
    {"[2, 3]",
     "Muon(lr = 0.1)",
     {0.21056830883026123, 0.18452304601669312, 0.15847796201705933, 0.28031620383262634, 0.40954864025115967,
      0.5387810468673706}},
    {"[3, 2]",
     "Muon(lr = 0.1, nesterov = false)",
     {0.1342090219259262, 0.1176823303103447, 0.2552397847175598, 0.30905866622924805, 0.37627384066581726,
      0.5004324913024902}},
    {"[3, 2]",
     "p -> if rank(p) == 2 then Muon(lr = 0.1, nesterov = false) else AdamW(lr = 0.1)",
     {0.1342090219259262, 0.1176823303103447}},
    {"[3]", "p -> if rank(p) == 2 then Muon(lr = 0.1) else Sgd(lr = 0.5)", {0.025, 0.05, 0.075}},
};

static void test_optimizers(void) {
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        char text[2048], what[256];
        snprintf(text, sizeof text, DATA NET("%s") OBJECTIVE("mean(net(b.y))") TRAIN("%s"), optimizers[i].shape,
                 optimizers[i].setting);
        Run run = run_of(good(text));
        update(&run);
        update(&run);
        const Tensor *w = &run.buffers[tg_buffer_find(run.program->graph, "net.w")];
        for (int64_t k = 0; k < w->count && optimizers[i].after[k] != 0; k++) {
            snprintf(what, sizeof what, "%s: element %d", optimizers[i].setting, (int)k);
            expect_close(what, w->at[k], optimizers[i].after[k], 1e-5);
        }
        program_free(run.program);
    }
}

static const Expression in_training[] = {
    {"cross_entropy(" LOGITS ", " LABELS ", smoothing = 0.1)", 0.8234303593635559},
    {"cross_entropy(" LOGITS ", " LABELS ", smoothing = 0.1, ignore = 1)", 1.014434814453125},
    {"cross_entropy(" LOGITS ", " LABELS ", smoothing = 0.1, weight = [1, 2, 0.5])", 0.6672130823135376},
    {"cross_entropy(" LOGITS ", " LABELS ", smoothing = 0.1, weight = [1, 2, 0.5], ignore = 1)", 1.034877896308899},
};

static void test_training(void) {
    for (size_t i = 0; i < sizeof in_training / sizeof *in_training; i++) {
        char text[2048];
        snprintf(text, sizeof text, DATA NET("[4]") OBJECTIVE("%s + 0 * sum(net.w)") TRAIN("Sgd()"),
                 in_training[i].text);
        Run run = run_of(good(text));
        const Func *objective = tg_func_find(run.program->graph, FUNC_OBJECTIVE, NULL);
        Tensor args[2];
        for (int k = 0; k < 2; k++)
            args[k] = (Tensor){objective->args.at[k].type, k ? 1 : 4, TG_ALLOC(&run.program->arena, double, 4)};
        expect_close(in_training[i].text, evaluate(&run, objective, args)[0].at[0], in_training[i].value, 3e-7);
        program_free(run.program);
    }
}

/* ---- schedules, over 100 steps ---- */

typedef struct Rate {
    const char *schedule;
    int64_t step;
    double rate;
} Rate;

/* OneCycleLR and StepLR as PyTorch has them; the others by their definition. */
static const Rate rates[] = {
    {"0.1", 7, 0.1},
    {"constant(0.1)", 7, 0.1},
    {"one_cycle(0.1)", 1, 0.004},
    {"one_cycle(0.1)", 10, 0.025063020862605645},
    {"one_cycle(0.1)", 30, 0.1},
    {"one_cycle(0.1)", 31, 0.09994965352845243},
    {"one_cycle(0.1)", 60, 0.06112620219362893},
    {"one_cycle(0.1)", 100, 4e-07},
    {"step_decay(0.1, every = 30, factor = 0.5)", 30, 0.1},
    {"step_decay(0.1, every = 30, factor = 0.5)", 31, 0.05},
    {"step_decay(0.1, every = 30, factor = 0.5)", 61, 0.025},
    {"warmup_cosine(0.1, warmup = 20, floor = 0.01)", 1, 0.005},
    {"warmup_cosine(0.1, warmup = 20, floor = 0.01)", 20, 0.1},
    {"warmup_cosine(0.1, warmup = 20, floor = 0.01)", 60, 0.055},
    {"warmup_cosine(0.1, warmup = 20, floor = 0.01)", 100, 0.01},
    {"warmup_linear(0.1, warmup = 20)", 10, 0.05},
    {"warmup_linear(0.1, warmup = 20)", 60, 0.05},
    {"warmup_linear(0.1, warmup = 20)", 100, 0},
};

static void test_schedules(void) {
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        char text[2048], what[256];
        snprintf(text, sizeof text, DATA NET("[2]") OBJECTIVE("mean(net(b.y))") TRAIN("Sgd(lr = %s)"),
                 rates[i].schedule);
        Run run = run_of(good(text));
        run.step = rates[i].step - 1;
        update(&run); /* 0.2 and its gradient 0.2: 0.2 * (1 - rate) */
        snprintf(what, sizeof what, "%s in step %d", rates[i].schedule, (int)rates[i].step);
        double after = run.buffers[tg_buffer_find(run.program->graph, "net.w")].at[1];
        expect_close(what, 1 - after / (float)0.2, rates[i].rate, 2e-7);
        program_free(run.program);
    }
}

/* ---- initialisers ---- */

typedef struct Spread {
    const char *initialiser;
    double low, high, deviation; /* bounds of all elements, and their standard deviation */
} Spread;

/* f32[300, 10, 20]: 200 inputs, 3000 outputs. */
static const Spread spreads[] = {
    {"zeros", 0, 0, 0},
    {"constant(3)", 3, 3, 0},
    {"uniform(-1, 2)", -1, 2, 0.8660254},
    {"normal(mean = 0, std = 2)", -12, 12, 2},
    {"xavier_uniform()", -0.0433013, 0.0433013, 0.025},
    {"xavier_normal(gain = 2)", -0.3, 0.3, 0.05},
    {"kaiming_uniform()", -0.1732051, 0.1732051, 0.1},
    {"kaiming_normal()", -0.6, 0.6, 0.1},
};

static void test_initialisers(void) {
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 DATA "module Net() {\n param w: f32[300, 10, 20] = %s\n fn (x) { return x * sum(w) }\n}\n"
                      "net = Net()\n" OBJECTIVE("mean(net(b.y))") TRAIN("Sgd()"),
                 spreads[i].initialiser);
        Run run = run_of(good(text));
        const Tensor w = evaluate(&run, tg_func_find(run.program->graph, FUNC_INIT, NULL), NULL)[0];
        double low = w.at[0], high = w.at[0], sum = 0, squares = 0;
        for (int64_t k = 0; k < w.count; k++) {
            low = fmin(low, w.at[k]);
            high = fmax(high, w.at[k]);
            sum += w.at[k];
            squares += w.at[k] * w.at[k];
        }
        double mean = sum / (double)w.count;
        CU_ASSERT(low >= spreads[i].low - 1e-6 && high <= spreads[i].high + 1e-6);
        expect_close(spreads[i].initialiser, sqrt(fmax(squares / (double)w.count - mean * mean, 0)),
                     spreads[i].deviation, 0.02 * spreads[i].deviation);
        program_free(run.program);
    }
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("std", NULL, NULL);
    CU_add_test(suite, "values", test_values);
    CU_add_test(suite, "optimizers", test_optimizers);
    CU_add_test(suite, "training", test_training);
    CU_add_test(suite, "schedules", test_schedules);
    CU_add_test(suite, "initialisers", test_initialisers);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
