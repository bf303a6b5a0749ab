/* Equal bits: fused and unfused, folded or not, any number of threads, runs, micro-batches under the same lanes. */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
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

/* A model at a size that trains in a moment: what it is compiled and run with besides. */
typedef struct Small {
    const char *model, *compile, *run;
    bool text; /* needs $TG_DATA */
} Small;

static const Small small[] = {
    {"digits.tg", "", "--epochs 4", false},
    {"custom.tg", "", "--epochs 4", false}, /* the last batch has one record: most of its micro-batches have none */
    {"gpt.tg", "--set T=16 --set L=2 --set H=2 --set C=32 --set batch=32 --set drop=0.1", "--steps 4", true},
    {"gpt.tg", "-p bf16 --set T=256 --set L=1 --set H=2 --set C=16 --set batch=32", "--steps 2", true}, /* attention by blocks */
    {"gpt.tg", "-p f16 --set T=256 --set L=1 --set H=2 --set C=16 --set batch=32", "--steps 2", true},
    {"gpt.tg", "-p bf16 --set T=16 --set L=1 --set H=2 --set C=32 --set batch=32", "--steps 2", true},
    {"llama.tg", "--set T=16 --set L=2 --set H=4 --set KV=2 --set C=32 --set F=48 --set batch=32", "--steps 4", true},
    {"lstm.tg", "--set T=8 --set C=24", "--steps 4", true},
};
enum { SMALL = sizeof small / sizeof *small };

static const char *big_data; /* $TG_DATA as this program was started */

static const char *weights_of(Scratch *scratch, const Small *of, const Run *run, size_t *bytes) {
    const char *root = of->text ? tg_arena_printf(scratch->arena, "--data-root %s", big_data) : "";
    shell_expect(scratch, 0, "",
                 tg_arena_printf(scratch->arena,
                                 "rm -rf run; $tgc compile $source/models/%s -o program %s %s && "
                                 "./program train %s --out run %s %s",
                                 of->model, of->compile, run->compile, of->run, run->run, root));
    return shell_file(scratch, "run/weights.safetensors", bytes);
}

static void bits_of(Scratch *scratch, const Small *of) {
    const char *first[GROUPS] = {NULL};
    size_t first_bytes[GROUPS], bytes;
    for (int i = 0; i < RUNS; i++) {
        /* Where loads are not shared, the gradient of a parameter that a loop reads is added up in another order. */
        if (of->text && strcmp(runs[i].compile, "--no-fold") == 0)
            continue;
        const char *weights = weights_of(scratch, of, &runs[i], &bytes);
        int group = runs[i].group;
        if (first[group] == NULL) {
            first[group] = weights;
            first_bytes[group] = bytes;
        }
        bool same = bytes == first_bytes[group] && memcmp(weights, first[group], bytes) == 0;
        if (!same)
            printf("\n%s compiled with '%s', run with '%s': other bits\n", of->model, runs[i].compile, runs[i].run);
        CU_ASSERT(same);
    }
    CU_ASSERT_NOT_EQUAL(memcmp(first[0], first[1], bytes), 0);
}

static void tables(Scratch *scratch) {
    for (int i = 0; i < SMALL; i++)
        if (!small[i].text)
            bits_of(scratch, &small[i]);
}

static void texts(Scratch *scratch) {
    if (big_data == NULL) {
        printf("skipped: TG_DATA does not name the folder that holds data/ ");
        return;
    }
    for (int i = 0; i < SMALL; i++)
        if (small[i].text)
            bits_of(scratch, &small[i]);
}

static void run_tables(void) { scratch_run(tables); }
static void run_texts(void) { scratch_run(texts); }

int main(void) {
    big_data = getenv("TG_DATA");
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("bits", NULL, NULL);
    CU_add_test(suite, "digits, custom", run_tables);
    CU_add_test(suite, "gpt, in bf16 and f16 too, llama, lstm", run_texts);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
