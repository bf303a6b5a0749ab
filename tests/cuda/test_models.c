/* Every kernel of every model that trains: its CUDA text, run on the host, gives the bits of its machine code. */
#include "ir/base/file.h"
#include "tests/cuda/host.h"

#include <CUnit/Basic.h>

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

typedef struct Model {
    Arena *arena;
    const char *name, *settings;
    LoopKernels kernels;
    int64_t *capacity; /* by kernel: the most rows */
    TgKernel **code;
    HostCuda cuda;
} Model;

static void complain(const Model *m, const LoopKernel *k, const char *what) {
    fprintf(stderr, "\n  %s, %s: %s\n", m->name, k ? k->name : "kernels", what);
    CU_FAIL("a model's CUDA text is wrong");
}

/* ---- the kernels ---- */

static char *output_of(Model *m, const char *arguments, size_t *length) {
    const char *command = tg_arena_printf(m->arena, "%s/bin/tgc compile %s %s %s/models/%s.tg", TGC_BINARY_DIR, arguments,
                                          m->settings, TGC_SOURCE_DIR, m->name);
    FILE *pipe = popen(command, "r");
    Str text = tg_str(m->arena);
    char part[4096];
    for (size_t got; pipe != NULL && (got = fread(part, 1, sizeof part, pipe)) > 0;)
        tg_str_add(&text, part, got);
    *length = text.length;
    return pipe != NULL && pclose(pipe) == 0 && text.length > 0 ? text.text : NULL;
}

/* From the plan's text: each function's capacity, and the kernels of its steps. */
static void read_capacities(Model *m, char *plan) {
    int64_t capacity = 1;
    m->capacity = TG_ALLOC(m->arena, int64_t, m->kernels.count);
    for (char *line = strtok(plan, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *found = strncmp(line, "func ", 5) == 0 ? strstr(line, " capacity ") : NULL;
        if (found)
            capacity = strtoll(found + strlen(" capacity "), NULL, 10);
        found = strncmp(line, "  step ", 7) == 0 ? strstr(line, " kernel ") : NULL;
        if (found) {
            long kernel = strtol(found + strlen(" kernel "), NULL, 10);
            CU_ASSERT_FATAL(kernel >= 0 && (uint32_t)kernel < m->kernels.count);
            int64_t known = m->capacity[kernel];
            m->capacity[kernel] = known == 0 || capacity < known ? capacity : known;
        }
    }
}

static bool read_model(Model *m, Diags *diags, Sources *sources) {
    size_t length, plan_length;
    char *loops = output_of(m, "--target=cuda --emit=loops", &length),
         *plan = output_of(m, "--target=cuda --emit=plan", &plan_length);
    if (loops == NULL || plan == NULL)
        return false;
    uint16_t source = tg_source_add(sources, m->arena, m->name, loops, length);
    if (tg_loop_parse(m->arena, diags, source, &m->kernels) != TG_OK)
        return false;
    read_capacities(m, plan);
    return true;
}

/* ---- running ---- */

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void fill(const LoopBuffer *buffer, char *memory, uint64_t seed) {
    for (int64_t i = 0; i < buffer->count; i++) {
        double unit = (double)next_random(&seed) / 0x1p31;
        double x = buffer->dtype == DT_BOOL       ? unit > 0.5
                   : tg_is_integer(buffer->dtype) ? floor(unit * 7) - (unit > 0.9 ? 3 : 0)
                                                  : unit * 4 - 2;
        tg_element_set(buffer->dtype, memory, i, x);
    }
}

static void **make_buffers(Model *m, const LoopKernel *k) {
    void **buffers = TG_ALLOC(m->arena, void *, k->buffers.count);
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *buffer = &k->buffers.at[i];
        if (buffer->role == ROLE_SCRATCH)
            continue;
        size_t bytes = (size_t)buffer->count * tg_dtype(buffer->dtype)->bytes;
        char *memory = tg_arena_alloc(m->arena, bytes + 64);
        memory += -(intptr_t)memory & 63;
        memset(memory, 0xEE, bytes);
        if (buffer->role == ROLE_IN)
            fill(buffer, memory, i * 977 + 3);
        buffers[next++] = memory;
    }
    return buffers;
}

static bool same_element(DType type, const char *a, const char *b) {
    if (memcmp(a, b, tg_dtype(type)->bytes) == 0)
        return true;
    return tg_is_float(type) && isnan(tg_element_get(type, a, 0)) && isnan(tg_element_get(type, b, 0));
}

static void compare(const Model *m, const LoopKernel *k, void **want, void **got) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *buffer = &k->buffers.at[i];
        if (buffer->role == ROLE_SCRATCH)
            continue;
        const char *a = want[next], *b = got[next];
        next++;
        for (int64_t at = 0; at < buffer->count; at++) {
            int64_t byte = at * tg_dtype(buffer->dtype)->bytes;
            if (same_element(buffer->dtype, a + byte, b + byte))
                continue;
            complain(m, k, tg_arena_printf(m->arena, "buffer %u, element %" PRId64 ": %.9g, not %.9g", i, at,
                                           tg_element_get(buffer->dtype, b, at), tg_element_get(buffer->dtype, a, at)));
            return;
        }
    }
    CU_PASS("equal");
}

static void check_kernel(Model *m, uint32_t index, int64_t rows, bool descending) {
    const double values[64] = {0.25, 2.5, 0.5, 100, 3, 0.9, 0.99, 1e-8, 0.1, 17, 5, 0.75};
    const LoopKernel *k = m->kernels.at[index];
    TgScalars scalars = {.rows = rows, .first_row = 40, .iteration = 7, .seed = 0x123456789abcdefull, .values = values};
    void **want = make_buffers(m, k), **got = make_buffers(m, k);
    m->code[index](want, &scalars, 0, k->tiles);
    const char *why = host_cuda_run(m->arena, &m->cuda, index, got, &scalars, 0, k->tiles, descending);
    if (why)
        complain(m, k, why);
    else
        compare(m, k, want, got);
}

static void check_kernels(Model *m, Arena *each) {
    for (uint32_t i = 0; i < m->kernels.count; i++) {
        Arena *arena = m->arena;
        int64_t rows = m->capacity[i] ? m->capacity[i] : 1;
        m->arena = each;
        check_kernel(m, i, rows, false);
        check_kernel(m, i, rows - rows / 3, true);
        m->arena = arena;
        tg_arena_deinit(each);
        tg_arena_init(each, tg_host());
    }
}

static void check_model(Arena *arena, Arena *each, const char *name, const char *settings) {
    Model m = {.arena = arena, .name = name, .settings = settings};
    Diags diags;
    Sources sources = {0};
    tg_diags_init(&diags, arena, &sources, stderr);
    if (!read_model(&m, &diags, &sources)) {
        complain(&m, NULL, "tgc does not print them");
        return;
    }
    Lowered lowered = {.kernels = m.kernels};
    LlvmRequest request = {.lowered = &lowered, .cpu = "", .optimize = 1};
    const LlvmModule *llvm;
    void *handle;
    m.code = TG_ALLOC(arena, TgKernel *, m.kernels.count);
    if (tg_llvm_open(arena, &diags, &llvm) != TG_OK || llvm->jit(arena, &diags, &request, m.code, &handle) != TG_OK) {
        complain(&m, NULL, "there is no machine code");
        return;
    }
    const char *why = host_cuda_open(arena, &m.kernels, &m.cuda);
    if (why)
        complain(&m, NULL, why);
    else
        check_kernels(&m, each);
    host_cuda_close(&m.cuda);
    llvm->jit_free(handle);
}

static void with_model(const char *name, const char *settings) {
    Arena arena, each;
    tg_arena_init(&arena, tg_host());
    tg_arena_init(&each, tg_host());
    if (setjmp(arena.guard) || setjmp(each.guard)) {
        CU_FAIL("out of memory");
    } else {
        check_model(&arena, &each, name, settings);
    }
    tg_arena_deinit(&each);
    tg_arena_deinit(&arena);
}

static void test_digits(void) { with_model("digits", ""); }
static void test_custom(void) { with_model("custom", ""); }
static void test_gpt(void) { with_model("gpt", ""); }
/* Sums of columns longer than four runs, and rows of more than 16 lanes. */
static void test_long_gpt(void) { with_model("gpt", "--set T=300 --set L=1 --set batch=2"); }
static void test_llama(void) { with_model("llama", ""); }
static void test_lstm(void) { with_model("lstm", ""); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("CUDA text of models", NULL, NULL);
    CU_add_test(suite, "digits", test_digits);
    CU_add_test(suite, "custom", test_custom);
    CU_add_test(suite, "gpt", test_gpt);
    CU_add_test(suite, "gpt on longer texts", test_long_gpt);
    CU_add_test(suite, "llama", test_llama);
    CU_add_test(suite, "lstm", test_lstm);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned int failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
