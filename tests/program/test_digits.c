/* models/digits.tg through the compiler and its program: how well it learns. */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <jansson.h>

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

static void run_accuracy(void) { scratch_run(accuracy); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("digits", NULL, NULL);
    CU_add_test(suite, "accuracy", run_accuracy);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
