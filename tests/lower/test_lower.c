/* What programs mean: values of the language and of its library by the reference evaluator, settings, parameters. */
#include "tests/lower/program.h"

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DATA                                                                                                           \
    "data D {\n    x: f32[4] from csv(\"a.csv\", columns = [\"a\", \"b\", \"c\", \"d\"])\n"                            \
    "    y: f32 from csv(\"a.csv\", columns = \"y\")\n}\n"
#define TRAIN(optimizer)                                                                                               \
    "train {\n data = D, objective = objective, batch = 8, steps = 10\n optimizer = " optimizer "\n}\n"
#define ONE_WEIGHT                                                                                                     \
    "module Net() {\n    param w: f32[4] = ones\n    fn (x: f32[B, 4]) -> f32[B] { return x @ w }\n}\nnet = Net()\n"   \
    "fn objective(b: D) { return { loss: mse(net(b.x), b.y) } }\n"

static TestProgram *good(const char *text, const char *const *sets) {
    TestProgram *program = program_text(text, sets);
    if (program->status != TG_OK)
        fprintf(stderr, "\n%s\n%s\n", text, program->messages.text);
    CU_ASSERT_EQUAL_FATAL(program->status, TG_OK);
    return program;
}

static void expect_close(const char *what, double value, double right, double tolerance) {
    bool close = isnan(right) ? isnan(value) : value == right || fabs(value - right) <= tolerance * (1 + fabs(right));
    if (!close)
        fprintf(stderr, "\n%s is %.9g, not %.9g\n", what, value, right);
    CU_ASSERT(close);
}

/* ---- expressions ---- */

typedef struct Expression {
    const char *text;
    double value;
} Expression;

static const Expression language[] = {
    {"-2 ^ 2", -4},
    {"2 ^ -1", 0.5},
    {"2 ^ 3 ^ 2", 512},
    {"7 - 2 - 1", 4},
    {"6 / 3 * 2", 4},
    {"7 / 2.0", 3.5},
    {"len([1, 2] ++ [3])", 3},
    {"[10, 20, 30][-1]", 30},
    {"[i * i for i in 0..5 if i > 2][0]", 9},
    {"if true or undefined_branch() then 1 else 2", 1},
    {"{ a: 1, b: { c: 5 } }.b.c", 5},
    {"rank(zeros([2, 3]))", 2},
    {"shape(zeros([2, 3]))[1]", 3},
    {"sum(f32([[1, 2], [3, 4]]) @ f32([[1, 0], [0, 2]]))", 16},
    {"(f32([1, 2, 3]) @ f32([4, 5, 6]))", 32},
    {"f32([[1, 2], [3, 4]])[1, 0]", 3},
    {"sum(f32([[1, 2, 3], [4, 5, 6]])[:, ::2])", 14},
    {"f32([[1, 2, 3], [4, 5, 6]])[..., -1][1]", 6},
    {"sum(f32([1, 2, 3]) * f32([[1], [10]]))", 66},
    {"mean(f32([1, 2, 3, 6]))", 3},
    {"max(f32([[1, 5], [7, 2]]), axis = 0)[1]", 5},
    {"argmax(f32([0, 1, 1, 1]))", 1},
    {"take(f32([10, 20, 30]), 2)", 30},
    {"concat([f32([1, 2]), f32([3])])[2]", 3},
    {"stack([f32([1, 2]), f32([3, 4])], axis = 1)[0, 1]", 3},
    {"split(f32([1, 2, 3, 4]), 2)[1][0]", 3},
    {"cumsum(f32([1, 2, 3]))[2]", 6},
    {"f32([2]) [0] ^ 3", 8},
    {"f32(bf16(f32([1.00390625])))[0]", 1},
    {"i32(f32([2.9]))[0]", 2},
    {"select(f32([1, -1]) > 0, 5, 7)[1]", 7},
    {"over(sum(f32([1, 2])), sum(f32([1, 3])))", 0.75},
    {"over(sum(f32([0, 0])), sum(f32([0, 0])))", 0},
    {"over(6, 4.0)", 1.5},
    {"sum(iota(4))", 6},
    {"pad(f32([1, 2]), [1], [2], value = 9)[0]", 9},
    {"reverse(f32([1, 2, 3]), 0)[0]", 3},
};

static const Expression library[] = {
    {"cross_entropy(f32([[1e8, 1e8]]), [0])", 0.69314718},
    {"cross_entropy(f32([[1, 2], [3, 4], [5, 6]]), [-1, -1, -1], ignore = -1)", 0},
    {"cross_entropy(f32([[0, 0], [0, 100]]), [0, 1])", 0.34657359},
    {"cross_entropy(f32([[0, 0], [0, 100]]), [0, -1], ignore = -1)", 0.69314718},
    {"cross_entropy(f32([[0, 0], [0, 100]]), [0, 1], weight = [3, 1])", 0.51986039},
    {"log_softmax(f32([0, -200]))[1]", -200},
    {"softmax(f32([1e8, 1e8]))[0]", 0.5},
    {"relu(f32([-1, 2]))[0]", 0},
    {"relu(f32([nan]))[0]", NAN},
    {"gelu(f32([1]))[0]", 0.84134475},
    {"gelu_tanh(f32([1]))[0]", 0.84119199},
    {"silu(f32([1]))[0]", 0.73105858},
    {"softplus(f32([1000]))[0]", 1000},
    {"softplus(f32([0]))[0]", 0.69314718},
    {"mse(f32([1, 2]), f32([3, 5]))", 6.5},
    {"l1(f32([1, 2]), f32([3, 5]))", 2.5},
    {"huber(f32([0, 0]), f32([0.5, 3]))", 1.3125},
    {"bce_with_logits(f32([100, 0]), f32([1, 1]))", 0.34657359},
    {"kl(log(f32([[0.5, 0.5]])), f32([[1, 0]]))", 0.69314718},
    {"std(f32([1, 1]))", 0},
    {"std(f32([1, 2, 3, 4]))", 1.29099445},
    {"var(f32([1, 2, 3, 4]), correction = 0)", 1.25},
    {"norm(f32([0, 0, 0]))", 0},
    {"norm(f32([3, 4]))", 5},
    {"mix(2, 4, 0.25)", 2.5},
    {"accuracy(f32([[0, 1], [1, 0]]), [1, 1])", 0.5},
    {"dropout(f32([3]), 0.5)[0]", 3},
};

static void test_expressions(const Expression *table, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 DATA ONE_WEIGHT TRAIN("Sgd()") "fn undefined_branch() { return 1 }\n"
                                                "export fn f() { return { v: f32(%s) } }\n",
                 table[i].text);
        TestProgram *program = good(text, NULL);
        expect_close(table[i].text, program_value(program, "export.f", "v"), table[i].value, 3e-7);
        program_free(program);
    }
}

static void test_language(void) { test_expressions(language, sizeof language / sizeof *language); }
static void test_library(void) { test_expressions(library, sizeof library / sizeof *library); }

static void test_rearrange(void) {
    TestProgram *program = good(
        DATA ONE_WEIGHT TRAIN("Sgd()") "fn heads(x: f32[T, 4], H) { return rearrange(x, [T, (H, D)] -> [H, T, D]) }\n"
                                       "export fn f() { return { v: heads(f32([[1, 2, 3, 4]]), 2)[1, 0, 0] } }\n",
        NULL);
    expect_close("rearrange", program_value(program, "export.f", "v"), 3, 0);
    program_free(program);
}

/* ---- optimizers ---- */

typedef struct Update {
    const char *optimizer;
    double value; /* of the parameter and of its gradient */
    double right; /* the parameter after the first step */
} Update;

static const Update updates[] = {
    {"AdamW(lr = 0.1, weight_decay = 0.1)", 1, 0.89},
    {"AdamW(lr = 1, weight_decay = 0)", 1e-8, 1e-8 - 0.5},
    {"AdamW(lr = 1, weight_decay = 0)", 0, 0},
    {"Adam(lr = 0.1)", 2, 1.9},
    {"Sgd(lr = 0.5)", 2, 1},
    {"Sgd(lr = 0.5, momentum = 0.9, nesterov = true)", 2, 0.1},
    {"Sgd(lr = 0.5, weight_decay = 0.1)", 1, 0.45},
    {"Lion(lr = 0.1, weight_decay = 0.5)", 1, 0.85},
    {"Sgd(lr = warmup_cosine(0.8, warmup = 4))", 1, 0.8},
    {"Sgd(lr = warmup_linear(0.8, warmup = 8))", 1, 0.9},
    {"Sgd(lr = step_decay(0.8, every = 1, factor = 0.5))", 1, 0.2},
    {"Sgd(lr = 0.5, weight_decay = p -> if rank(p) > 1 then 1 else 0)", 1, 0.5},
    {"p -> if name(p) == \"net.w\" then Sgd(lr = 0.25) else Adam()", 1, 0.75},
};

static void test_optimizers(void) {
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        char text[2048];
        snprintf(text, sizeof text, DATA ONE_WEIGHT TRAIN("%s"), updates[i].optimizer);
        TestProgram *program = good(text, NULL);
        expect_close(updates[i].optimizer, program_update(program, "net.w", updates[i].value), updates[i].right, 1e-6);
        program_free(program);
    }
}

/* ---- settings ---- */

static const Setting *setting(const TestProgram *program, const char *name) {
    for (uint32_t i = 0; i < program->graph->settings.count; i++)
        if (strcmp(program->graph->settings.at[i].name, name) == 0)
            return &program->graph->settings.at[i];
    return NULL;
}

static void expect_setting(const TestProgram *program, const char *name, const char *value, bool runtime) {
    const Setting *found = setting(program, name);
    CU_ASSERT_PTR_NOT_NULL(found);
    if (!found)
        return;
    CU_ASSERT_STRING_EQUAL(found->value, value);
    CU_ASSERT_EQUAL(found->runtime, runtime);
    CU_ASSERT_EQUAL(tg_scalar_find(program->graph, name) >= 0, runtime);
}

static void test_settings(void) {
    const char *const text = DATA ONE_WEIGHT TRAIN("Sgd(lr = warmup_cosine(0.8, warmup = 4), momentum = 0.9)");
    TestProgram *program = good(text, NULL);
    expect_setting(program, "optimizer.lr.peak", "0.8", true);
    expect_setting(program, "optimizer.lr.warmup", "4", true);
    expect_setting(program, "optimizer.lr.floor", "0", true);
    expect_setting(program, "optimizer.weight_decay", "0", true);
    expect_setting(program, "optimizer.momentum", "0.9", false); /* the guard of a state needs it */
    expect_setting(program, "batch", "8", false);
    CU_ASSERT_EQUAL(program->graph->training.micro, 8);
    CU_ASSERT_EQUAL(program->graph->training.steps, 10);
    program_free(program);

    program =
        good(text, (const char *const[]){"optimizer.momentum=0", "optimizer.lr=0.25", "batch=16", "micro=4", NULL});
    expect_setting(program, "optimizer.lr", "0.25", true);
    CU_ASSERT_PTR_NULL(setting(program, "optimizer.lr.peak"));
    CU_ASSERT_EQUAL(tg_buffer_find(program->graph, "optimizer.net.w.m"), -1);
    CU_ASSERT_EQUAL(program->graph->training.batch, 16);
    CU_ASSERT_EQUAL(program->graph->training.micro, 4);
    program_free(program);

    program = program_text(text, (const char *const[]){"optimizer.momentun=0", NULL});
    CU_ASSERT_EQUAL(program->status, TG_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(program->messages.text, "did you mean 'optimizer.momentum'?"));
    program_free(program);
}

/* ---- the models ---- */

static const Func *func(const TestProgram *program, FuncKind kind) {
    const Func *found = tg_func_find(program->graph, kind, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return found;
}

static uint32_t count_op(const Func *in, Op op) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < in->nodes.count; i++)
        count += in->nodes.at[i].op == op;
    return count;
}

static void test_digits(void) {
    TestProgram *program = program_file(TGC_SOURCE_DIR "/models/digits.tg", NULL);
    CU_ASSERT_EQUAL_FATAL(program->status, TG_OK);
    const char *const paths[] = {
        "net.fc1.weight",          "net.fc1.bias", "net.fc2.weight", "net.fc2.bias", "optimizer.net.fc1.weight.m",
        "optimizer.net.fc2.bias.v"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        CU_ASSERT(tg_buffer_find(program->graph, paths[i]) >= 0);
    const Func *objective = func(program, FUNC_OBJECTIVE);
    CU_ASSERT_EQUAL(objective->args.count, 2);
    CU_ASSERT_STRING_EQUAL(objective->results.at[0].name, "loss");
    CU_ASSERT_STRING_EQUAL(objective->results.at[1].name, "accuracy");
    CU_ASSERT_EQUAL(count_op(objective, OP_dot), 2);
    CU_ASSERT_EQUAL(count_op(objective, OP_take), 0);
    for (uint32_t i = 1; i < objective->nodes.count; i++)
        if (objective->nodes.at[i].op == OP_dot) /* the bias is the dot's own */
            CU_ASSERT_EQUAL(objective->nodes.at[i].operand_count, 3);
    CU_ASSERT_EQUAL(func(program, FUNC_INIT)->results.count, program->graph->buffers.count);
    CU_ASSERT_EQUAL(func(program, FUNC_UPDATE)->results.count, program->graph->buffers.count);
    /* Every node has a place, in the user's file where there is one. */
    for (uint32_t i = 1; i < objective->nodes.count; i++) {
        Loc loc = tg_locs_first(program->graph, objective->nodes.at[i].locs);
        CU_ASSERT(loc.line > 0);
        CU_ASSERT(strncmp(program->sources.files.at[loc.file].path, "<std>", 5) != 0);
    }
    program_free(program);
}

static void test_all_models(void) {
    const char *const models[] = {"custom", "gpt", "llama", "lstm"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[512];
        snprintf(path, sizeof path, TGC_SOURCE_DIR "/models/%s.tg", models[i]);
        TestProgram *program = program_file(path, NULL);
        if (program->status != TG_OK)
            fprintf(stderr, "%s\n", program->messages.text);
        CU_ASSERT_EQUAL(program->status, TG_OK);
        CU_ASSERT_EQUAL(program->messages.length, 0);
        program_free(program);
    }
}

/* A training run sees dropout, evaluation and exports do not; keys differ from call to call. */
static void test_random(void) {
    TestProgram *program =
        good(DATA "module Net() {\n    param w: f32[4] = normal()\n"
                  "    fn (x: f32[B, 4]) { return dropout(dropout(x, 0.1), 0.2) @ w }\n}\nnet = Net()\n"
                  "fn objective(b: D) { return { loss: mse(net(b.x) + net(b.x), b.y) } }\n" TRAIN(
                      "Sgd()") "export fn f(x: f32[B, 4]) { return net(x) }\n",
             NULL);
    const Func *objective = func(program, FUNC_OBJECTIVE);
    CU_ASSERT_EQUAL(count_op(objective, OP_random), 4);
    CU_ASSERT_EQUAL(count_op(func(program, FUNC_OBJECTIVE_EVAL), OP_random), 0);
    CU_ASSERT_EQUAL(count_op(func(program, FUNC_EXPORT), OP_random), 0);
    for (uint32_t i = 1; i < objective->nodes.count; i++)
        for (uint32_t k = 1; k < i; k++)
            if (objective->nodes.at[i].op == OP_random && objective->nodes.at[k].op == OP_random)
                CU_ASSERT_NOT_EQUAL(objective->nodes.at[i].attr->key, objective->nodes.at[k].attr->key);
    program_free(program);
}

static void test_shared_and_frozen(void) {
    TestProgram *program =
        good(DATA "module Wrap(inner) {\n    layer = inner\n    fn (x) { return layer(x) }\n}\n"
                  "one = Linear(4, 4)\ntwo = Wrap(one)\nthree = Wrap(Linear(4, 1)) frozen\n"
                  "fn objective(b: D) { return { loss: mse(three(two(one(b.x)))[:, 0], b.y) } }\n" TRAIN("Sgd()"),
             NULL);
    CU_ASSERT(tg_buffer_find(program->graph, "one.weight") >= 0);
    CU_ASSERT_EQUAL(tg_buffer_find(program->graph, "two.layer.weight"), -1);
    CU_ASSERT(tg_buffer_find(program->graph, "three.inner.weight") >= 0);
    CU_ASSERT_EQUAL(program->graph->buffers.count, 4);
    CU_ASSERT_EQUAL(func(program, FUNC_UPDATE)->results.count, 2);
    program_free(program);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("lower", NULL, NULL);
    CU_add_test(suite, "language", test_language);
    CU_add_test(suite, "library", test_library);
    CU_add_test(suite, "rearrange", test_rearrange);
    CU_add_test(suite, "optimizers", test_optimizers);
    CU_add_test(suite, "settings", test_settings);
    CU_add_test(suite, "digits", test_digits);
    CU_add_test(suite, "models", test_all_models);
    CU_add_test(suite, "random", test_random);
    CU_add_test(suite, "shared", test_shared_and_frozen);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
