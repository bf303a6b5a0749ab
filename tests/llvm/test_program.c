/* From a plan and kernels to a program file: the cache, the linker and their failures. */
#include "codegen/codegen.h"
#include "ir/base/file.h"

#include <CUnit/Basic.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Test {
    Arena *arena;
    Diags diags;
    Str said;
    const char *folder, *temporary, *output;
    Lowered lowered;
    LlvmRequest request;
} Test;

/* out[i] = `number`, 8 times. */
static LoopKernel *constant_kernel(Arena *arena, double number) {
    LoopKernel *k = tg_loop_kernel(arena, "constant");
    uint32_t out = tg_loop_buffer(k, ROLE_OUT, DT_F32, 8);
    LoopId zero = tg_loop_int(k, DT_I64, 0);
    tg_loop_for(k, MODE_TILE, zero, tg_loop_int(k, DT_I64, 1), 1);
    tg_loop_for(k, MODE_VECTOR, zero, tg_loop_int(k, DT_I64, 8), 8);
    tg_loop_store(k, out, zero, 1, tg_loop_number(k, DT_F32, number));
    tg_loop_end(k);
    tg_loop_end(k);
    return k;
}

static TgPlan *small_plan(Arena *arena) {
    TgPlan *p = TG_ALLOC(arena, TgPlan, 1);
    p->arena_bytes = 64, p->kernel_count = 1, p->micro = 1, p->lanes = 1;
    p->buffer_count = 1, p->buffers = TG_ALLOC(arena, PlanBuffer, 1);
    p->buffers[0] = (PlanBuffer){.name = "out",
                                 .class = PLAN_OUTPUT,
                                 .dtype = DT_F32,
                                 .rank = 1,
                                 .dims = {8},
                                 .batch_axis = -1,
                                 .bytes = 32,
                                 .lanes = 1};
    p->step_buffer_count = 1, p->step_buffers = TG_ALLOC(arena, PlanOperand, 1);
    p->step_count = 1, p->steps = TG_ALLOC(arena, PlanStep, 1);
    p->steps[0] = (PlanStep){.kind = STEP_KERNEL, .label = "const", .tiles = 1, .buffer_count = 1};
    return p;
}

static void new_lowered(Test *t, double number) {
    t->lowered = (Lowered){.plan = small_plan(t->arena)};
    tg_push(t->arena, &t->lowered.kernels, constant_kernel(t->arena, number));
    t->request = (LlvmRequest){.lowered = &t->lowered, .cpu = "", .optimize = 2};
}

static void remove_files(const char *folder) {
    DIR *dir = opendir(folder);
    char path[4400];
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlink(path) != 0)
            remove_files(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static int files_in(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static void with_test(void (*test)(Test *t)) {
    Arena arena;
    char folder[] = "/tmp/tgc-test-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL("out of memory");
    } else {
        Test t = {.arena = &arena, .folder = folder};
        tg_diags_init(&t.diags, &arena, NULL, NULL);
        t.said = tg_str(&arena);
        t.diags.capture = &t.said;
        t.temporary = tg_arena_printf(&arena, "%s/tmp", folder);
        t.output = tg_arena_printf(&arena, "%s/model", folder);
        mkdir(t.temporary, 0700);
        setenv("TMPDIR", t.temporary, 1);
        setenv("TGC_CACHE", tg_arena_printf(&arena, "%s/cache", folder), 1);
        unsetenv("CC");
        new_lowered(&t, 1);
        test(&t);
        CU_ASSERT_EQUAL(files_in(t.temporary), 0);
        unsetenv("CC");
    }
    tg_arena_deinit(&arena);
    remove_files(folder);
}

static bool same_files(Test *t, const char *a, const char *b) {
    char *x, *y;
    size_t m, n;
    const char *why;
    return tg_file_read(t->arena, a, &x, &m, &why) == TG_OK && tg_file_read(t->arena, b, &y, &n, &why) == TG_OK &&
           m == n && memcmp(x, y, n) == 0;
}

static void missed_and_hit(Test *t) {
    bool hit = true;
    const char *second = tg_arena_printf(t->arena, "%s/second", t->folder), *cached;
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, &hit), TG_OK);
    CU_ASSERT_FALSE(hit);
    CU_ASSERT_EQUAL(access(t->output, X_OK), 0);
    setenv("CC", "/nonexistent/cc", 1); /* a hit needs none */
    new_lowered(t, 1);
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, second, &hit), TG_OK);
    CU_ASSERT_TRUE(hit);
    CU_ASSERT_TRUE(same_files(t, t->output, second));
    new_lowered(t, 1);
    CU_ASSERT_EQUAL_FATAL(tg_program_cached(t->arena, &t->diags, &t->request, &cached), TG_OK);
    CU_ASSERT_TRUE(same_files(t, t->output, cached));
    CU_ASSERT_EQUAL(access(cached, X_OK), 0);
    CU_ASSERT_STRING_EQUAL(t->said.text, "");
}

static void other_contents_miss(Test *t) {
    bool hit = true;
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, NULL), TG_OK);
    new_lowered(t, 2);
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, &hit), TG_OK);
    CU_ASSERT_FALSE(hit);
    new_lowered(t, 1);
    t->lowered.plan->seed = 5;
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, &hit), TG_OK);
    CU_ASSERT_FALSE(hit);
}

static void no_cache(Test *t) {
    bool hit = true;
    const char *path;
    setenv("TGC_CACHE", "/proc/nowhere", 1);
    CU_ASSERT_EQUAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, &hit), TG_OK);
    CU_ASSERT_FALSE(hit);
    CU_ASSERT_EQUAL_FATAL(tg_program_cached(t->arena, &t->diags, &t->request, &path), TG_OK);
    CU_ASSERT_TRUE(same_files(t, t->output, path));
    unlink(path);
    *strrchr((char *)(uintptr_t)path, '/') = '\0';
    rmdir(path);
}

static void refused(Test *t, const char *output, const char *said) {
    CU_ASSERT_EQUAL(tg_program_write(t->arena, &t->diags, &t->request, output, NULL), TG_IO);
    if (strstr(t->said.text, said) == NULL) {
        fprintf(stderr, "%s", t->said.text);
        CU_FAIL("another message");
    }
}

static void no_compiler(Test *t) {
    setenv("CC", "/nonexistent/cc -m64", 1);
    refused(t, t->output, "there is no C compiler '/nonexistent/cc'");
    CU_ASSERT_PTR_NOT_NULL(strstr(t->said.text, "install"));
    CU_ASSERT_NOT_EQUAL(access(t->output, F_OK), 0);
}

static void failing_compiler(Test *t) {
    setenv("CC", "ls --no-such-option", 1);
    refused(t, t->output, "'ls' ended with status");
    CU_ASSERT_PTR_NOT_NULL(strstr(t->said.text, "no-such-option"));
    CU_ASSERT_NOT_EQUAL(access(t->output, F_OK), 0);
}

static void bad_outputs(Test *t) {
    refused(t, t->folder, "it is a directory");
    refused(t, "/dev/full", "it is not a plain file");
    refused(t, "/nonexistent/model", "/nonexistent/model: No such file or directory");
}

static void unknown_cpu(Test *t) {
    t->request.cpu = "znver33";
    CU_ASSERT_EQUAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, NULL), TG_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(t->said.text, "did you mean 'znver3'?"));
}

static void damaged_plan(Test *t) {
    t->lowered.plan->steps[0].index = 1;
    CU_ASSERT_EQUAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, NULL), TG_INTERNAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(t->said.text, "no such kernel"));
}

static void runs(Test *t) {
    CU_ASSERT_EQUAL_FATAL(tg_program_write(t->arena, &t->diags, &t->request, t->output, NULL), TG_OK);
    int status = system(tg_arena_printf(t->arena, "%s --help >%s/help 2>&1", t->output, t->folder));
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name)                                                                                                     \
    static void test_##name(void) { with_test(name); }
TEST(missed_and_hit)
TEST(other_contents_miss)
TEST(no_cache)
TEST(no_compiler)
TEST(failing_compiler)
TEST(bad_outputs)
TEST(unknown_cpu)
TEST(damaged_plan)
TEST(runs)

int main(void) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("program", NULL, NULL);
    CU_add_test(suite, "a miss, then hits", test_missed_and_hit);
    CU_add_test(suite, "other contents miss", test_other_contents_miss);
    CU_add_test(suite, "no cache", test_no_cache);
    CU_add_test(suite, "no compiler", test_no_compiler);
    CU_add_test(suite, "a failing compiler", test_failing_compiler);
    CU_add_test(suite, "bad outputs", test_bad_outputs);
    CU_add_test(suite, "an unknown CPU", test_unknown_cpu);
    CU_add_test(suite, "a damaged plan", test_damaged_plan);
    CU_add_test(suite, "the program runs", test_runs);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
