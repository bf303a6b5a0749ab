#include "runtime/data.h"
#include "runtime/program.h"
#include "runtime/safetensors.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/tiny_program.h"

#include <CUnit/Basic.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Outcome {
    int code;
    char *out, *err;
} Outcome;

enum { MOST_ARGUMENTS = 12 };

static Outcome run(Scratch *scratch, const TgHost *host, const char *const *arguments) {
    TgProgram program = tiny_program(scratch->arena, scratch->folder);
    char *argv[MOST_ARGUMENTS + 2] = {(char *)(uintptr_t)scratch_path(scratch, "tiny")};
    int argc = 1;
    while (arguments[argc - 1] != NULL) {
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
        argc++;
    }
    Outcome outcome = {0};
    size_t out_bytes, err_bytes;
    FILE *out = open_memstream(&outcome.out, &out_bytes), *err = tmpfile();
    outcome.code = tg_program_main(&program, host, argc, argv, out, err);
    fclose(out);
    err_bytes = (size_t)ftell(err);
    rewind(err);
    outcome.err = tg_arena_alloc(scratch->arena, err_bytes + 1);
    CU_ASSERT_EQUAL(fread(outcome.err, 1, err_bytes, err), err_bytes);
    fclose(err);
    char *kept = tg_arena_str(scratch->arena, outcome.out, strlen(outcome.out));
    free(outcome.out);
    outcome.out = kept;
    return outcome;
}
#define RUN(...) run(scratch, tg_host(), (const char *[]){__VA_ARGS__, NULL})

static void check_says(const char *text, const char *part) {
    bool says = strstr(text, part) != NULL;
    if (!says)
        printf("\n'%s' lacks '%s'\n", text, part);
    CU_ASSERT(says);
}

static void check_fails(Outcome outcome, int code, const char *part) {
    CU_ASSERT_EQUAL(outcome.code, code);
    CU_ASSERT_STRING_EQUAL(outcome.out, "");
    check_says(outcome.err, part);
}

/* 20 records, y = 3 x, x from -1 to 0.9. */
static void write_data(Scratch *scratch) {
    Str text = tg_str(scratch->arena);
    tg_str_printf(&text, "x,y\n");
    for (int i = 0; i < 20; i++)
        tg_str_printf(&text, "%g,%g\n", (i - 10) / 10.0, 3 * (i - 10) / 10.0);
    scratch_text(scratch, "data.csv", text.text);
}

static json_t *parse(Outcome outcome) {
    if (outcome.code != 0)
        printf("\n%s\n", outcome.err);
    CU_ASSERT_EQUAL(outcome.code, 0);
    json_t *document = json_loads(outcome.out, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    return document;
}

static double number(const json_t *document, const char *outer, const char *inner) {
    return json_number_value(inner == NULL ? json_object_get(document, outer)
                                           : json_object_get(json_object_get(document, outer), inner));
}

static void train(Scratch *scratch) {
    write_data(scratch);
    const char *out = scratch_path(scratch, "run"), *weights = scratch_path(scratch, "run/weights.safetensors");
    json_t *result = parse(RUN("train", "--json", "--trace", "--epochs=60", "--set", "optimizer.lr=0.5", "--out", out));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(result, "steps")), 240);
    CU_ASSERT(number(result, "val", "loss") < 1e-6);
    CU_ASSERT(number(result, "train", "loss") < 1e-6);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(result, "trace"), "loss")), 240);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(result, "history")), 60);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(result, "weights")), weights);
    json_decref(result);
    TensorFile file;
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, weights, &file, &why), TG_OK);
    float w;
    CU_ASSERT_EQUAL(file.tensors.count, 1);
    memcpy(&w, tg_tensor_find(&file, "net.w")->values, sizeof w);
    CU_ASSERT(fabsf(w - 3) < 1e-3f);
    json_t *manifest = json_load_file(scratch_path(scratch, "run/manifest.json"), 0, NULL);
    const json_t *settings = json_object_get(manifest, "settings"), *setting;
    size_t i;
    int checked = 0;
    json_array_foreach(settings, i, setting) {
        const char *name = json_string_value(json_object_get(setting, "name"));
        const char *origin = json_string_value(json_object_get(setting, "origin"));
        checked += strcmp(name, "optimizer.lr") == 0 && strcmp(origin, "--set") == 0;
        checked += strcmp(name, "hidden") == 0 && strcmp(origin, "tiny.tg:1") == 0;
        checked += strcmp(name, "epochs") == 0 && strcmp(origin, "--epochs") == 0;
    }
    CU_ASSERT_EQUAL(checked, 3);
    json_decref(manifest);
    json_t *eval = parse(RUN("eval", "--json", "--weights", weights));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(eval, "records")), 4);
    CU_ASSERT(number(eval, "val", "loss") < 1e-6);
    json_decref(eval);
    json_t *all = parse(RUN("eval", "--json", "--split", "train", "--weights", weights));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(all, "records")), 16);
    json_decref(all);
}

/* The loss of the first step with w = 0 is the mean of y^2 of its batch; a resumed run starts where the weights are. */
static void exact(Scratch *scratch) {
    write_data(scratch);
    const char *out = scratch_path(scratch, "run"), *weights = scratch_path(scratch, "run/weights.safetensors");
    json_t *one = parse(RUN("train", "--json", "--trace", "--steps", "1", "--set", "shuffle=false", "--out", out));
    PlanSplit splits[] = {{"train", 0.8}, {"test", 0.2}};
    int64_t count = 0, *records = tg_data_split(scratch->arena, 20, splits, 2, 0, false, &count);
    double expected = 0;
    for (int i = 0; i < 4; i++)
        expected += pow(3 * ((double)records[i] - 10) / 10, 2) / 4;
    double first = json_number_value(json_array_get(json_object_get(json_object_get(one, "trace"), "loss"), 0));
    CU_ASSERT_DOUBLE_EQUAL(first, expected, 1e-6);
    double validation = number(one, "val", "loss");
    json_decref(one);
    json_t *eval = parse(RUN("eval", "--json", "--weights", weights));
    CU_ASSERT_EQUAL(number(eval, "val", "loss"), validation);
    json_decref(eval);
    json_t *rest = parse(RUN("train", "--json", "--steps=1", "--set=optimizer.lr=0", "--init", weights, "--out", out));
    CU_ASSERT_EQUAL(number(rest, "val", "loss"), validation);
    json_decref(rest);
}

static void predict(Scratch *scratch) {
    write_data(scratch);
    const char *out = scratch_path(scratch, "run"), *weights = scratch_path(scratch, "run/weights.safetensors");
    json_decref(parse(RUN("train", "--json", "--epochs=60", "--set", "optimizer.lr=0.5", "--out", out)));
    json_t *result = parse(RUN("predict", "scale", "--json", "--weights", weights));
    json_t *y = json_object_get(json_object_get(result, "outputs"), "y");
    CU_ASSERT_EQUAL(json_array_size(y), 4);
    json_decref(result);
    float values[5] = {1, 2, 3, 4, 5};
    DataArray array = {.dtype = DT_F32, .rank = 1, .dims = {5}, .values = (unsigned char *)values}, back;
    char message[256];
    const char *why = NULL, *in = scratch_path(scratch, "in.npy"), *to = scratch_path(scratch, "out.npy");
    CU_ASSERT_EQUAL(tg_npy_write(tg_host(), in, &array, message, sizeof message), TG_OK);
    Outcome table = RUN("predict", "scale", in, "--weights", weights);
    CU_ASSERT_EQUAL(table.code, 0);
    check_says(table.out, "record");
    Outcome file = RUN("predict", "scale", in, "--weights", weights, "--out", to);
    CU_ASSERT_EQUAL(file.code, 0);
    CU_ASSERT_EQUAL_FATAL(tg_read_npy(scratch->arena, &(DataRequest){.path = to, .columns = ""}, &back, &why), TG_OK);
    CU_ASSERT(back.rank == 1 && back.dims[0] == 5);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_DOUBLE_EQUAL(((float *)back.values)[i], 3 * values[i], 0.01);
    json_t *single = parse(RUN("predict", "scale", "2", "--json", "--weights", weights));
    CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(single, "outputs"), "y")), 1);
    json_decref(single);
    json_t *shifted = parse(RUN("predict", "shift", in, "-5", "--records", "3", "--json", "--weights", weights));
    y = json_object_get(json_object_get(shifted, "outputs"), "y");
    CU_ASSERT_EQUAL(json_array_size(y), 3);
    CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_array_get(y, 2)), 3 * 3 - 5, 0.01);
    json_decref(shifted);
    check_fails(RUN("predict", "shift", in, "0.5", "--weights", weights), 2,
                "argument 'by': 0.5 is not a value of i32");
    check_fails(RUN("predict", "shift", in, in, "--weights", weights), 3,
                "holds f32 values, but the program wants i32");
    check_fails(RUN("predict", "shift", "--weights", weights), 2, "the data has no field for argument 'by' of shift");
    check_fails(RUN("predict", "--weights", weights), 2, "name the function to run: scale, shift");
    check_fails(RUN("predict", "scael", "--weights", weights), 2, "there is no export fn 'scael'");
    check_fails(RUN("predict", "scale", in, in, "--weights", weights), 2,
                "scale takes 1 arguments (x: f32 per record), 2 are given");
    check_fails(RUN("predict", "scale", "--draw", "--weights", weights), 2,
                "--draw: scale takes no u8[height, width] image");
}

static void information(Scratch *scratch) {
    json_t *info = parse(RUN("info", "--json"));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(info, "parameter_count")), 1);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(info, "functions")), 8);
    json_decref(info);
    Outcome text = RUN("info");
    CU_ASSERT_EQUAL(text.code, 0);
    check_says(text.out, "net.w");
    check_says(text.out, "hidden                           8                    tiny.tg:1  (recompiles)");
    write_data(scratch);
    json_t *bench = parse(RUN("bench", "--steps", "9", "--json"));
    static const char *const keys[] = {"step_ms", "floor_ms", "realistic_floor_ms", "ratio",
                                       "records_per_s", "peak_bytes", "plan_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CU_ASSERT_PTR_NOT_NULL(json_object_get(bench, keys[i]));
    CU_ASSERT(number(bench, "step_ms", NULL) > 0);
    CU_ASSERT(number(bench, "realistic_floor_ms", NULL) > number(bench, "floor_ms", NULL));
    json_decref(bench);
}

static void failures(Scratch *scratch) {
    const char *out = scratch_path(scratch, "run");
    check_fails(RUN("train", "--out", out), 4, "tiny.tg:2: field 'x': there is no file");
    scratch_text(scratch, "data.csv", "x,y\n1,2\n3,4\n5,6\n");
    check_fails(RUN("train", "--out", out), 3, "a batch has 4 records, but the training set D.train has only 2");
    check_fails(RUN("train", "--data-root", "/nowhere", "--out", out), 4, "'data.csv' in /nowhere, from --data-root");
    write_data(scratch);
    check_fails(RUN("train", "--set", "hidden=9"), 2, "needs recompiling");
    check_fails(RUN("train", "--epochs", "none"), 2, "epochs: 'none' is not a whole number");
    check_fails(RUN("train", "--out", scratch_text(scratch, "file", "")), 4, "file");
    check_fails(RUN("train", "--threads", "0", "--out", out), 2, "--threads");
    check_fails(RUN("eval", "--weights", scratch_path(scratch, "none")), 4, "none: No such file");
    check_fails(RUN("eval", "--weights", scratch_text(scratch, "short", "abc")), 3, "not a safetensors file");
    TensorFile file = {0};
    const char *why = NULL, *wrong = scratch_path(scratch, "wrong.safetensors");
    tg_push(scratch->arena, &file.tensors, (Tensor){.name = "net.v", .dtype = DT_F32, .values = "abcd", .bytes = 4});
    CU_ASSERT_EQUAL(tg_tensors_write(scratch->arena, wrong, &file, &why), TG_OK);
    check_fails(RUN("eval", "--weights", wrong), 3, "the model has no parameter 'net.v'; did you mean 'net.w'?");
    file.tensors.at[0] =
        (Tensor){.name = "net.w", .dtype = DT_F32, .rank = 1, .dims = {1}, .values = "abcd", .bytes = 4};
    CU_ASSERT_EQUAL(tg_tensors_write(scratch->arena, wrong, &file, &why), TG_OK);
    check_fails(RUN("eval", "--weights", wrong), 3, "'net.w' is f32[1], but the model has f32");
}

static void not_finite(Scratch *scratch) {
    write_data(scratch);
    const char *out = scratch_path(scratch, "run"), *dump = scratch_path(scratch, "run/nonfinite.safetensors");
    check_fails(RUN("train", "--set", "optimizer.lr=1e30", "--out", out), 7, "loss is not finite at step 2 (epoch 1)");
    TensorFile file;
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, dump, &file, &why), TG_OK);
    const Tensor *x = tg_tensor_find(&file, "batch.x"), *count = tg_tensor_find(&file, "optimizer.net.w.count");
    CU_ASSERT_FATAL(x != NULL && count != NULL && tg_tensor_find(&file, "net.w") != NULL);
    float updates;
    memcpy(&updates, count->values, sizeof updates);
    CU_ASSERT(x->dims[0] == 4 && updates == 1);
    bool noted = false;
    for (uint32_t i = 0; i < file.notes.count; i++)
        noted |= strcmp(file.notes.at[i].name, "step") == 0 && strcmp(file.notes.at[i].text, "2") == 0;
    CU_ASSERT(noted);
    CU_ASSERT_NOT_EQUAL(access(scratch_path(scratch, "run/weights.safetensors"), F_OK), 0);
}

/* Whatever allocation fails, the program says so and leaves nothing behind. */
static void no_memory(Scratch *scratch) {
    write_data(scratch);
    const char *const arguments[] = {
        "train", "--steps", "2", "--save-every", "1", "--out", scratch_path(scratch, "run"), NULL};
    int fails_at = 0;
    Outcome outcome;
    do {
        FailingHost failing;
        failing_host_init(&failing, 0, ++fails_at);
        outcome = run(scratch, &failing.host, arguments);
        if (outcome.code != 0) {
            CU_ASSERT_EQUAL(outcome.code, 5);
            CU_ASSERT(strstr(outcome.err, "memory") != NULL);
        }
    } while (outcome.code != 0 && fails_at < 1000);
    CU_ASSERT(fails_at > 3 && fails_at < 1000);
}

/* Whatever write fails, the old weights stay whole, and there is a checkpoint to go on from. */
static void full_disk(Scratch *scratch) {
    write_data(scratch);
    const char *out = scratch_path(scratch, "run"), *weights = scratch_path(scratch, "run/weights.safetensors"),
               *why = NULL;
    const char *const arguments[] = {"train", "--steps", "2", "--save-every", "1", "--keep", "1", "--out", out, NULL};
    CU_ASSERT_EQUAL(RUN("train", "--steps", "1", "--save-every", "1", "--out", out).code, 0);
    int fails_at = 0;
    Outcome outcome;
    do {
        FailingHost failing;
        TensorFile file;
        failing_host_init(&failing, ++fails_at, 0);
        outcome = run(scratch, &failing.host, arguments);
        if (outcome.code != 0)
            check_fails(outcome, 4, "No space left on device");
        CU_ASSERT_EQUAL(tg_tensors_read(scratch->arena, weights, &file, &why), TG_OK);
        CU_ASSERT_EQUAL(RUN("train", "--steps", "4", "--resume", out, "--out", scratch_path(scratch, "rest")).code, 0);
    } while (outcome.code != 0 && fails_at < 100);
    CU_ASSERT(fails_at > 3 && fails_at < 100);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(train)
TEST(exact)
TEST(predict)
TEST(information)
TEST(failures)
TEST(not_finite)
TEST(no_memory)
TEST(full_disk)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("program", NULL, NULL);
    CU_add_test(suite, "train, then evaluate", run_train);
    CU_add_test(suite, "losses are exact", run_exact);
    CU_add_test(suite, "predict", run_predict);
    CU_add_test(suite, "info and bench", run_information);
    CU_add_test(suite, "failures", run_failures);
    CU_add_test(suite, "a step that is not finite", run_not_finite);
    CU_add_test(suite, "no memory", run_no_memory);
    CU_add_test(suite, "a full disk", run_full_disk);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
