/* Where NVRTC is found: the kernels of every model that trains compile for every tested architecture, and nothing spills. */
#include "codegen/cuda/cuda.h"

#include <CUnit/Basic.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static FILE *run_tgc(const char *arguments, const char *model) {
    char command[1024];
    snprintf(command, sizeof command, "%s/bin/tgc compile %s %s/models/%s.tg 2>&1", TGC_BINARY_DIR, arguments, TGC_SOURCE_DIR, model);
    return popen(command, "r");
}

typedef struct Seen {
    int kernels, spilled, archs;
} Seen;

/* Rows of --emit=ptxas: arch, kernel, registers, spilled, ... */
static Seen read_table(FILE *table, const char *model) {
    Seen seen = {0};
    char line[512], arch[64], kernel[256], last[64] = "";
    int registers, spilled;
    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "%63s %255s %d %d", arch, kernel, &registers, &spilled) != 4) {
            if (seen.kernels != 0 || strncmp(line, "arch", 4) != 0)
                fprintf(stderr, "%s: %s", model, line);
            continue;
        }
        seen.archs += strcmp(arch, last) != 0;
        strcpy(last, arch);
        seen.kernels++;
        if (spilled != 0)
            fprintf(stderr, "\n  %s, %s on %s: %d bytes of spills, %d registers\n", model, kernel, arch, spilled, registers);
        seen.spilled += spilled;
    }
    return seen;
}

static void check_model(const char *model) {
    FILE *table = run_tgc("--emit=ptxas", model);
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    Seen seen = read_table(table, model);
    CU_ASSERT_EQUAL(pclose(table), 0);
    CU_ASSERT(seen.kernels > 0);
    CU_ASSERT_EQUAL(seen.archs, 3);
    CU_ASSERT_EQUAL(seen.spilled, 0);
}

static void test_digits(void) { check_model("digits"); }
static void test_custom(void) { check_model("custom"); }
static void test_gpt(void) { check_model("gpt"); }
static void test_llama(void) { check_model("llama"); }
static void test_lstm(void) { check_model("lstm"); }

static void test_unknown(void) {
    char line[512] = "";
    FILE *output = run_tgc("--emit=ptxas --arch=sm_1", "custom");
    CU_ASSERT_PTR_NOT_NULL_FATAL(output);
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, output));
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "this CUDA compiler does not know 'sm_1', but sm_"));
    while (fgets(line, sizeof line, output))
        continue;
    CU_ASSERT_EQUAL(pclose(output) >> 8, 2);
}

static bool has_compiler(void) {
    Arena arena;
    volatile bool found = false;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard) == 0)
        found = tg_cuda_has_compiler(&arena);
    tg_arena_deinit(&arena);
    return found;
}

int main(void) {
    if (!has_compiler()) {
        printf("SKIPPED: there is no NVRTC (CUDA_HOME, CUDA_PATH, /usr/local/cuda): kernels are not compiled for GPUs\n");
        return 0;
    }
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("kernels compile for GPUs", NULL, NULL);
    CU_add_test(suite, "digits", test_digits);
    CU_add_test(suite, "custom", test_custom);
    CU_add_test(suite, "gpt", test_gpt);
    CU_add_test(suite, "llama", test_llama);
    CU_add_test(suite, "lstm", test_lstm);
    CU_add_test(suite, "an unknown architecture", test_unknown);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned int failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
