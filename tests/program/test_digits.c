/* models/digits.tg through the compiler and its program: equal bits, and accuracy. */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <jansson.h>
#include <string.h>

typedef struct Run {
    int group;
    const char *compile, *run;
} Run;

/* Runs of one group end with the same bytes; of different groups with different ones. */
static const Run runs[] = {
    {0, "", ""},
    {0, "", ""},
    {0, "", "--threads 1"},
    {0, "", "--threads 2"},
    {0, "", "--threads 3"},
    {0, "--no-fuse", ""},
    {0, "--no-fold", ""},
    {1, "--set lanes=4", ""},
    {1, "--set lanes=4 --set micro=16", ""},
    {1, "--set lanes=4 --set micro=8", ""},
    {1, "--set lanes=4 --set micro=8", "--threads 3"},
    {1, "--set lanes=4 --set micro=8 --no-fuse", "--threads 2"},
};
enum { RUNS = sizeof runs / sizeof *runs, GROUPS = 2 };

static const char *weights_of(Scratch *scratch, const char *model, const Run *run, size_t *bytes) {
    shell_expect(scratch, 0, "",
                 tg_arena_printf(scratch->arena,
                                 "rm -rf run; $tgc compile $source/models/%s -o program %s && "
                                 "./program train --epochs 4 --out run %s",
                                 model, run->compile, run->run));
    return shell_file(scratch, "run/weights.safetensors", bytes);
}

static void bits_of(Scratch *scratch, const char *model) {
    const char *first[GROUPS] = {NULL};
    size_t first_bytes[GROUPS], bytes;
    for (int i = 0; i < RUNS; i++) {
        const char *weights = weights_of(scratch, model, &runs[i], &bytes);
        int group = runs[i].group;
        if (first[group] == NULL) {
            first[group] = weights;
            first_bytes[group] = bytes;
        }
        bool same = bytes == first_bytes[group] && memcmp(weights, first[group], bytes) == 0;
        if (!same)
            printf("\n%s compiled with '%s', run with '%s': other bits\n", model, runs[i].compile, runs[i].run);
        CU_ASSERT(same);
    }
    CU_ASSERT_NOT_EQUAL(memcmp(first[0], first[1], bytes), 0);
}

/* The last batch of custom.tg has one record: most of its micro-batches have none. */
static void bits(Scratch *scratch) {
    bits_of(scratch, "digits.tg");
    bits_of(scratch, "custom.tg");
}

static void accuracy(Scratch *scratch) {
    enum { SEEDS = 5 };
    double sum = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        json_t *result = shell_json(
            scratch, tg_arena_printf(scratch->arena, "$tgc train $source/models/digits.tg --json --seed %d", seed));
        sum += json_number_value(json_object_get(json_object_get(result, "val"), "accuracy"));
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(result, "steps")),
                        30 * 45 /* of 1438 records, the last batch short */);
        json_decref(result);
    }
    if (sum / SEEDS < 0.97)
        printf("\nthe mean accuracy is %g\n", sum / SEEDS);
    CU_ASSERT(sum / SEEDS >= 0.97);
}

static void run_bits(void) { scratch_run(bits); }
static void run_accuracy(void) { scratch_run(accuracy); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("digits", NULL, NULL);
    CU_add_test(suite, "equal bits", run_bits);
    CU_add_test(suite, "accuracy", run_accuracy);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
