#include "tests/llvm/harness.h"

#include "tests/codegen/interpret.h"
#include "tests/cuda/host.h"

#include <CUnit/Basic.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double special(uint64_t pick) {
    static const double values[] = {0,      -0.0,     1,    -1,    0.5,      1.5,      2.5,        -2.5,       1e-40,
                                    -1e-40, 0x1p-126, 3e38, -3e38, 65504,    65520,    1e10,       -1e10,      255,
                                    256,    127.5,    -128, -129,  0x1.01p0, 0x1.03p0, 0x1.fep127, 0x1.fffp127, 0x1.0100001p0, 0x1.0020001p0};
    static const double not_finite[] = {NAN, INFINITY, -INFINITY};
    size_t count = sizeof values / sizeof *values;
    return pick % 16 == 0 ? not_finite[pick / 16 % 3] : values[pick / 16 % count];
}

static uint64_t integer_bits(DType dtype, uint64_t random) {
    static const int64_t extremes[] = {0,         1,   -1,   INT64_MAX, INT64_MIN, INT32_MAX,
                                       INT32_MIN, 127, -128, 255,       32767,     65535};
    if (dtype == DT_BOOL)
        return random & 1;
    if (random % 4 == 0)
        return (uint64_t)extremes[random / 4 % (sizeof extremes / sizeof *extremes)];
    return random % 4 == 1 ? random >> 57 : random;
}

static void fill(DType dtype, char *at, int64_t count, uint64_t *state) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t random = next_random(state);
        uint32_t bytes = tg_dtype(dtype)->bytes;
        if (!tg_is_float(dtype)) {
            uint64_t bits = integer_bits(dtype, random);
            memcpy(at + i * bytes, &bits, bytes);
        } else if (random % 3 == 0) {
            tg_element_set(dtype, at, i, special(random / 3));
        } else {
            double value = ((double)(random >> 11) / 0x1p53 - 0.5) * 8;
            tg_element_set(dtype, at, i, value);
        }
    }
}

/* Index buffers are i64 inputs of kernels whose name begins with "index": elements below 16. */
static void make_indices(char *at, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t index;
        memcpy(&index, at + 8 * i, 8);
        index &= 15;
        memcpy(at + 8 * i, &index, 8);
    }
}

static size_t bytes_of(const LoopBuffer *b) { return (size_t)b->count * tg_dtype(b->dtype)->bytes; }

static void **make_buffers(Arena *arena, const LoopKernel *k) {
    void **buffers = TG_ALLOC(arena, void *, k->buffers.count);
    uint64_t state = 88172645463325252ull;
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *b = &k->buffers.at[i];
        if (b->role == ROLE_SCRATCH)
            continue;
        char *at = tg_arena_alloc(arena, bytes_of(b) + 3 * GUARD);
        at += (GUARD - (uintptr_t)at % GUARD) % GUARD;
        memset(at, 0xC3, bytes_of(b) + 2 * GUARD);
        if (b->role == ROLE_IN)
            fill(b->dtype, at + GUARD, b->count, &state);
        if (b->role == ROLE_IN && b->dtype == DT_I64 && strncmp(k->name, "index", 5) == 0)
            make_indices(at + GUARD, b->count);
        buffers[next++] = at + GUARD;
    }
    return buffers;
}

static bool same_element(DType dtype, const char *a, const char *b) {
    if (memcmp(a, b, tg_dtype(dtype)->bytes) == 0)
        return true;
    return tg_is_float(dtype) && isnan(tg_element_get(dtype, a, 0)) && isnan(tg_element_get(dtype, b, 0));
}

static void compare(const Case *c, const LoopBuffer *b, uint32_t index, const char *wanted, const char *got) {
    char text[256];
    if (memcmp(wanted - GUARD, got - GUARD, GUARD) != 0 ||
        memcmp(wanted + bytes_of(b), got + bytes_of(b), GUARD) != 0) {
        fprintf(stderr, "%s, rows %lld: bytes outside of buffer %u were written\n", c->k->name, (long long)c->rows,
                index);
        CU_FAIL("bytes outside of a buffer were written");
    }
    for (int64_t i = 0; i < b->count; i++) {
        uint32_t bytes = tg_dtype(b->dtype)->bytes;
        if (same_element(b->dtype, wanted + i * bytes, got + i * bytes))
            continue;
        snprintf(text, sizeof text, "%s, rows %lld, buffer %u element %lld: %.17g, not %.17g", c->k->name,
                 (long long)c->rows, index, (long long)i, tg_element_get(b->dtype, got, i),
                 tg_element_get(b->dtype, wanted, i));
        fprintf(stderr, "%s\n", text);
        CU_FAIL("machine code and interpreter differ");
        return;
    }
    CU_PASS("equal");
}

static void compare_all(const Case *c, void **wanted, void **got) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->k->buffers.count; i++)
        if (c->k->buffers.at[i].role != ROLE_SCRATCH) {
            compare(c, &c->k->buffers.at[i], i, wanted[next], got[next]);
            next++;
        }
}

static void check_case(Arena *arena, const Case *c, TgKernel *code, const HostCuda *cuda, uint32_t kernel) {
    const double values[] = {0.25, 2.5};
    TgScalars scalars = {
        .rows = c->rows, .first_row = 1000, .iteration = 7, .seed = 0x123456789abcdefull, .values = values};
    void **wanted = make_buffers(arena, c->k), **got = make_buffers(arena, c->k);
    const char *why = interpret(arena, c->k, wanted, &scalars, c->first, c->last);
    if (why) {
        fprintf(stderr, "%s: %s\n", c->k->name, why);
        CU_FAIL("the interpreter refuses a kernel");
        return;
    }
    code(got, &scalars, c->first, c->last);
    compare_all(c, wanted, got);
    for (int descending = 0; cuda != NULL && descending < 2; descending++) {
        got = make_buffers(arena, c->k);
        why = host_cuda_run(arena, cuda, kernel, got, &scalars, c->first, c->last, descending);
        CU_ASSERT_PTR_NULL_FATAL(why);
        compare_all(c, wanted, got);
    }
}

/* Cases that differ in their rows alone share a kernel. */
static uint32_t gather_kernels(Arena *arena, const Cases *cases, Lowered *lowered, uint32_t *index_of) {
    for (uint32_t i = 0; i < cases->count; i++) {
        bool again = i > 0 && cases->at[i].k == cases->at[i - 1].k;
        if (!again) {
            char *name = tg_arena_printf(arena, "%s_%u", cases->at[i].k->name, i);
            cases->at[i].k->name = name;
            tg_push(arena, &lowered->kernels, cases->at[i].k);
        }
        index_of[i] = lowered->kernels.count - 1;
    }
    return lowered->kernels.count;
}

void check_cases(Arena *arena, const Cases *cases, const char *cpu, int optimize) {
    Diags diags;
    tg_diags_init(&diags, arena, NULL, stderr);
    const LlvmModule *llvm;
    CU_ASSERT_EQUAL_FATAL(tg_llvm_open(arena, &diags, &llvm), TG_OK);
    Lowered lowered = {0};
    uint32_t *index_of = TG_ALLOC(arena, uint32_t, cases->count);
    TgKernel **code = TG_ALLOC(arena, TgKernel *, gather_kernels(arena, cases, &lowered, index_of));
    LlvmRequest request = {.lowered = &lowered, .cpu = cpu, .optimize = optimize};
    void *handle;
    CU_ASSERT_EQUAL_FATAL(llvm->jit(arena, &diags, &request, code, &handle), TG_OK);
    /* The CUDA text of a kernel does not depend on the CPU: once is enough. */
    HostCuda cuda = {0};
#ifdef TG_SANITIZE /* fibers are slow there */
    bool with_cuda = false;
#else
    bool with_cuda = optimize == 2 && cpu[0] == '\0';
#endif
    const char *why = with_cuda ? host_cuda_open(arena, &lowered.kernels, &cuda) : NULL;
    if (why)
        fprintf(stderr, "%s\n", why);
    CU_ASSERT_PTR_NULL_FATAL(why);
    for (uint32_t i = 0; i < cases->count; i++)
        check_case(arena, &cases->at[i], code[index_of[i]], with_cuda ? &cuda : NULL, index_of[i]);
    host_cuda_close(&cuda);
    llvm->jit_free(handle);
}

LoopId int64(LoopKernel *k, int64_t value) { return tg_loop_int(k, DT_I64, value); }

LoopId rows_of(LoopKernel *k) { return tg_loop_leaf(k, LOOP_rows, 0); }

LoopKernel *new_kernel(Arena *arena, const char *what) {
    LoopKernel *k = tg_loop_kernel(arena, what);
    tg_loop_for(k, MODE_TILE, int64(k, 0), int64(k, 1), 1);
    return k;
}

void add_case(Arena *arena, Cases *cases, LoopKernel *k, int64_t rows) {
    if (cases->count == 0 || cases->at[cases->count - 1].k != k) {
        Diags diags;
        tg_loop_end(k);
        tg_diags_init(&diags, arena, NULL, stderr);
        CU_ASSERT_EQUAL_FATAL(tg_loop_verify(k, &diags), TG_OK);
    }
    tg_push(arena, cases, (Case){.k = k, .rows = rows, .first = 0, .last = k->tiles});
}
