/* Equal bits: fused and unfused, folded or not, with values computed again, any number of threads, runs, micro-batches under the same lanes. */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

typedef struct Run {
    int group;
    const char *compile, *run;
} Run;

/* Runs of one group end with the same bytes; of different groups with different ones. */
static const Run batch_runs[] = {
    {0, "", ""},
    {0, "", ""},
    {0, "", "--threads 1"},
    {0, "", "--threads 2"},
    {0, "", "--threads 3"},
    {0, "", "--threads 4"},
    {0, "--no-fuse", ""},
    {0, "--no-fold", ""},
    {0, "--recompute auto", ""},
    {0, "--recompute full", "--threads 1"},
    {0, "--recompute full --no-fuse", ""},
    {1, "--set lanes=4", ""},
    {1, "--set lanes=4 --set micro=16", ""},
    {1, "--set lanes=4 --set micro=8", ""},
    {1, "--set lanes=4 --set micro=8", "--threads 3"},
    {1, "--set lanes=4 --set micro=8 --no-fuse", "--threads 2"},
    {1, "--set lanes=4 --set micro=8 --recompute full", ""},
};
enum { RUNS = sizeof batch_runs / sizeof *batch_runs, GROUPS = 2, MOST_GROUPS = 3 };

/* Of a head that runs in slices; each lane's are its own. */
static const Run slice_runs[] = {
    {0, "", "--threads 1"},
    {0, "", "--threads 3"},
    {0, "--no-fuse", ""},
    {1, "--set lanes=2", ""},
    {1, "--set lanes=2 --set micro=64", ""},
    {1, "--set lanes=2 --no-fuse", "--threads 3"},
    {2, "--disable-pass=chunk", ""},
};
enum { SLICE_RUNS = sizeof slice_runs / sizeof *slice_runs, SLICE_GROUPS = 3 };

/* A model at a size that trains in a moment: what it is compiled and run with besides. */
typedef struct Small {
    const char *model, *compile, *run; /* model: its place in the source */
    bool text; /* needs $TG_DATA */
} Small;

static const Small small[] = {
    {"models/digits.tg", "", "--epochs 4", false},
    {"models/custom.tg", "", "--epochs 4", false}, /* the last batch has one record: most of its micro-batches have none */
    {"models/gpt.tg", "--set T=16 --set L=2 --set H=2 --set C=32 --set batch=32 --set drop=0.1", "--steps 4", true},
    {"models/gpt.tg", "-p bf16 --set T=256 --set L=1 --set H=2 --set C=16 --set batch=32", "--steps 2", true}, /* attention by blocks */
    {"models/gpt.tg", "-p f16 --set T=256 --set L=1 --set H=2 --set C=16 --set batch=32", "--steps 2", true},
    {"models/llama.tg", "--set T=16 --set L=2 --set H=4 --set KV=2 --set C=32 --set F=48 --set batch=32", "--steps 4", true},
    {"models/lstm.tg", "--set T=8 --set C=24", "--steps 4", true},
};
enum { SMALL = sizeof small / sizeof *small };

/* In the low types; with dropout where a model has it. */
static const Run low_runs[] = {
    {0, "", "--threads 1"},
    {0, "", "--threads 3"},
    {0, "--no-fuse", "--threads 2"},
    {0, "--recompute full", ""},
    {1, "--set lanes=4", ""},
    {1, "--set lanes=4 --set micro=8 --no-fuse", "--threads 3"},
};
enum { LOW_RUNS = sizeof low_runs / sizeof *low_runs, LOW_GROUPS = 2 };

#define LOW_GPT "--set T=16 --set L=2 --set H=2 --set C=32 --set batch=32 --set drop=0.1"
#define LOW_LLAMA "--set T=16 --set L=2 --set H=4 --set KV=2 --set C=32 --set F=48 --set batch=32"
static const Small low[] = {
    {"models/digits.tg", "-p bf16", "--epochs 1", false},
    {"models/digits.tg", "-p f16", "--epochs 1", false},
    {"models/gpt.tg", "-p bf16 " LOW_GPT, "--steps 2", true},
    {"models/gpt.tg", "-p f16 " LOW_GPT, "--steps 2", true},
    {"models/llama.tg", "-p bf16 " LOW_LLAMA, "--steps 2", true},
    {"models/llama.tg", "-p f16 " LOW_LLAMA, "--steps 2", true},
    {"models/lstm.tg", "-p bf16 --set T=8 --set C=24 --set batch=32", "--steps 2", true},
};
enum { LOW = sizeof low / sizeof *low };

static const char *big_data; /* $TG_DATA as this program was started */

static const char *weights_of(Scratch *scratch, const Small *of, const Run *run, size_t *bytes) {
    const char *root = of->text ? tg_arena_printf(scratch->arena, "--data-root %s", big_data) : "";
    shell_expect(scratch, 0, "",
                 tg_arena_printf(scratch->arena,
                                 "rm -rf run; $tgc compile $source/%s -o program %s %s && "
                                 "./program train %s --out run %s %s",
                                 of->model, of->compile, run->compile, of->run, run->run, root));
    return shell_file(scratch, "run/weights.safetensors", bytes);
}

static void bits_of(Scratch *scratch, const Small *of, const Run *runs, int count, int groups) {
    const char *first[MOST_GROUPS] = {NULL};
    size_t first_bytes[MOST_GROUPS], bytes;
    for (int i = 0; i < count; i++) {
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
    for (int i = 0; i < groups; i++)
        for (int k = 0; k < i; k++)
            CU_ASSERT_NOT_EQUAL(memcmp(first[i], first[k], bytes), 0);
}

static void tables(Scratch *scratch) {
    for (int i = 0; i < SMALL; i++)
        if (!small[i].text)
            bits_of(scratch, &small[i], batch_runs, RUNS, GROUPS);
}

static void texts(Scratch *scratch) {
    if (big_data == NULL) {
        printf("skipped: TG_DATA does not name the folder that holds data/ ");
        return;
    }
    for (int i = 0; i < SMALL; i++)
        if (small[i].text)
            bits_of(scratch, &small[i], batch_runs, RUNS, GROUPS);
}

static void lows(Scratch *scratch) {
    for (int i = 0; i < LOW; i++)
        if (!low[i].text || big_data != NULL)
            bits_of(scratch, &low[i], low_runs, LOW_RUNS, LOW_GROUPS);
}

static void slices(Scratch *scratch) {
    static const Small head = {"tests/program/Inputs/head.tg", "", "", false};
    bits_of(scratch, &head, slice_runs, SLICE_RUNS, SLICE_GROUPS);
}

static void run_lows(void) { scratch_run(lows); }
static void run_slices(void) { scratch_run(slices); }
static void run_tables(void) { scratch_run(tables); }
static void run_texts(void) { scratch_run(texts); }

int main(void) {
    big_data = getenv("TG_DATA");
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("bits", NULL, NULL);
    CU_add_test(suite, "digits, custom", run_tables);
    CU_add_test(suite, "gpt, in bf16 and f16 too, llama, lstm", run_texts);
    CU_add_test(suite, "digits, gpt, llama, lstm in bf16 and f16", run_lows);
    CU_add_test(suite, "a head in slices", run_slices);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
