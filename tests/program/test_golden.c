/* Models of models/ against PyTorch: from the same weights and batches the same losses, and weights as near to an f64 run. */
#include "runtime/safetensors.h"
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *big_data; /* $TG_DATA as this program was started */

/* `key`: losses of the file, `bound`: how far ours may lie from them, as a share. */
static void golden_losses(const json_t *golden, const char *key, double bound, const json_t *result) {
    const json_t *wanted = json_object_get(golden, key), *value;
    const json_t *got = json_object_get(json_object_get(result, "trace"), "loss");
    CU_ASSERT_EQUAL(json_array_size(got), json_array_size(wanted));
    CU_ASSERT_EQUAL(json_array_size(wanted), 20);
    size_t i;
    json_array_foreach(wanted, i, value) {
        double loss = json_number_value(value), ours = json_number_value(json_array_get(got, i));
        CU_ASSERT_DOUBLE_EQUAL(ours, loss, bound * loss);
    }
}

static double distance(const Tensor *single, const Tensor *exact) {
    double sum = 0;
    CU_ASSERT_FATAL(single->dtype == DT_F32 && exact->dtype == DT_F64 && 2 * single->bytes == exact->bytes);
    for (size_t i = 0; i < single->bytes / sizeof(float); i++) {
        float ours;
        double theirs;
        memcpy(&ours, (const char *)single->values + i * sizeof ours, sizeof ours);
        memcpy(&theirs, (const char *)exact->values + i * sizeof theirs, sizeof theirs);
        sum += (ours - theirs) * (ours - theirs);
    }
    return sqrt(sum);
}

static TensorFile tensors(Scratch *scratch, const char *path) {
    TensorFile file;
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, path, &file, &why), TG_OK);
    return file;
}

/* No further from an f64 run than 4 times what PyTorch's own f32 run is. */
static void golden_weights(Scratch *scratch, const char *model, json_t *golden) {
    TensorFile ours = tensors(scratch, scratch_path(scratch, "golden/weights.safetensors"));
    TensorFile exact =
        tensors(scratch, tg_arena_printf(scratch->arena, "%s/tests/golden/%s.after.safetensors", TGC_SOURCE_DIR, model));
    const char *name;
    json_t *theirs;
    CU_ASSERT(ours.tensors.count >= exact.tensors.count);
    json_object_foreach(json_object_get(golden, "distance_f32_to_f64"), name, theirs) {
        const Tensor *a = tg_tensor_find(&ours, name), *b = tg_tensor_find(&exact, name);
        CU_ASSERT_FATAL(a != NULL && b != NULL);
        double away = distance(a, b);
        if (away > 4 * json_number_value(theirs))
            printf("\n%s: %s is %g away, PyTorch %g\n", model, name, away, json_number_value(theirs));
        CU_ASSERT(away <= 4 * json_number_value(theirs));
    }
}

static const char *sizes_of(Scratch *scratch, json_t *golden) {
    Str sets = tg_str(scratch->arena);
    const char *name;
    json_t *size;
    json_object_foreach(json_object_get(golden, "sizes"), name, size)
        tg_str_printf(&sets, " --set %s=%lld", name, (long long)json_integer_value(size));
    return sets.text;
}

static json_t *run_model(Scratch *scratch, const char *model, json_t *golden, const char *precision, const char *data_root) {
    return shell_json(
        scratch, tg_arena_printf(scratch->arena,
                                 "$tgc train $source/models/%s.tg%s --init $source/tests/golden/%s.init.safetensors "
                                 "-p %s -Wno-emulated-type --steps 20 --seed %lld --trace --json --out golden%s",
                                 model, sizes_of(scratch, golden), model, precision,
                                 (long long)json_integer_value(json_object_get(golden, "seed")), data_root));
}

/* With the same casts in PyTorch, where tests/golden/low.py has the model. */
static void check_low(Scratch *scratch, const char *model, json_t *golden, const char *precision, double bound, const char *data_root) {
    const char *key = tg_arena_printf(scratch->arena, "losses_%s", precision);
    if (json_object_get(golden, key) == NULL)
        return;
    json_t *result = run_model(scratch, model, golden, precision, data_root);
    golden_losses(golden, key, bound, result);
    /* The first is nearer to theirs than either is to f32's only if every forward cast stands in the same place. */
    double theirs = json_number_value(json_array_get(json_object_get(golden, key), 0));
    CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_array_get(json_object_get(json_object_get(result, "trace"), "loss"), 0)), theirs, 1e-6 * theirs);
    json_decref(result);
}

static void check_model(Scratch *scratch, const char *model, const char *data_root) {
    const char *path = tg_arena_printf(scratch->arena, "%s/tests/golden/%s.json", TGC_SOURCE_DIR, model);
    json_t *golden = json_load_file(path, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
    json_t *result = run_model(scratch, model, golden, "f32", data_root);
    golden_losses(golden, "losses", 1e-4, result);
    golden_weights(scratch, model, golden);
    json_decref(result);
    check_low(scratch, model, golden, "bf16", 2e-2, data_root);
    check_low(scratch, model, golden, "f16", 5e-3, data_root);
    json_decref(golden);
}

/* tinyshakespeare is not in the repository. */
static void check_text_model(Scratch *scratch, const char *model) {
    if (big_data == NULL) {
        printf("skipped: TG_DATA does not name the folder that holds data/ ");
        return;
    }
    check_model(scratch, model, tg_arena_printf(scratch->arena, " --data-root %s", big_data));
}

static void digits(Scratch *scratch) { check_model(scratch, "digits", ""); }
static void custom(Scratch *scratch) { check_model(scratch, "custom", ""); }
static void gpt(Scratch *scratch) { check_text_model(scratch, "gpt"); }
static void llama(Scratch *scratch) { check_text_model(scratch, "llama"); }
static void lstm(Scratch *scratch) { check_text_model(scratch, "lstm"); }

static void run_digits(void) { scratch_run(digits); }
static void run_custom(void) { scratch_run(custom); }
static void run_gpt(void) { scratch_run(gpt); }
static void run_llama(void) { scratch_run(llama); }
static void run_lstm(void) { scratch_run(lstm); }

int main(void) {
    big_data = getenv("TG_DATA");
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("golden", NULL, NULL);
    CU_add_test(suite, "digits", run_digits);
    CU_add_test(suite, "custom", run_custom);
    CU_add_test(suite, "gpt", run_gpt);
    CU_add_test(suite, "llama", run_llama);
    CU_add_test(suite, "lstm", run_lstm);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
