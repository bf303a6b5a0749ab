#include "tests/cuda/host.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_THREADS = 512, STACK = 64 << 10, WARP = 32 };

HostIndex threadIdx, blockIdx, gridDim;

typedef enum Wait { READY, AT_BARRIER, AT_WARP, DONE } Wait;

typedef struct Fiber {
    ucontext_t context;
    Wait wait;
    unsigned int mask; /* AT_WARP: who must come */
    int turn;          /* which of its values the next exchange gives */
    union {
        char bytes[8];
    } given[2];
} Fiber;

typedef void Thunk(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last, char *workspace);

/* The block that runs. */
typedef struct Block {
    ucontext_t scheduler;
    Fiber *fibers;
    unsigned int count, current;
    Thunk *thunk;
    void *const *buffers;
    const TgScalars *scalars;
    int64_t first, last;
    char *workspace;
} Block;

static Block block;

/* ---- what kernels call ---- */

static void yield(Wait wait, unsigned int mask) {
    Fiber *own = &block.fibers[block.current];
    own->wait = wait;
    own->mask = mask;
    swapcontext(&own->context, &block.scheduler);
}

void host_cuda_barrier(void) { yield(AT_BARRIER, 0); }
void host_cuda_warp(unsigned int mask) { yield(AT_WARP, mask); }

void host_cuda_exchange(unsigned int mask, const void *own, void *other, unsigned long bytes, int h) {
    unsigned int self = block.current;
    Fiber *fiber = &block.fibers[self];
    int turn = fiber->turn;
    memcpy(fiber->given[turn].bytes, own, bytes);
    yield(AT_WARP, mask);
    memcpy(other, block.fibers[self ^ (unsigned int)h].given[turn].bytes, bytes);
    fiber->turn = !turn;
}

/* ---- the scheduler ---- */

static void thread_main(void) {
    block.thunk(block.buffers, block.scalars, block.first, block.last, block.workspace);
    block.fibers[block.current].wait = DONE;
    setcontext(&block.scheduler);
}

static void run_ready(bool descending) {
    for (unsigned int i = 0; i < block.count; i++) {
        block.current = descending ? block.count - 1 - i : i;
        threadIdx.x = block.current;
        if (block.fibers[block.current].wait == READY)
            swapcontext(&block.scheduler, &block.fibers[block.current].context);
    }
}

static bool all_wait_at_barrier(void) {
    for (unsigned int i = 0; i < block.count; i++)
        if (block.fibers[i].wait != AT_BARRIER)
            return false;
    return true;
}

/* The threads of `mask` in the warp of `self` have all come with that mask. */
static bool team_is_there(unsigned int self) {
    unsigned int base = self / WARP * WARP, mask = block.fibers[self].mask;
    for (unsigned int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            const Fiber *fiber = &block.fibers[base + lane];
            if (base + lane >= block.count || fiber->wait != AT_WARP || fiber->mask != mask)
                return false;
        }
    return mask >> (self % WARP) & 1;
}

static bool release(void) {
    bool some = false;
    bool all = all_wait_at_barrier();
    for (unsigned int i = 0; i < block.count; i++) {
        Fiber *fiber = &block.fibers[i];
        if (all || (fiber->wait == AT_WARP && team_is_there(i))) {
            unsigned int base = i / WARP * WARP;
            for (unsigned int lane = 0; !all && lane < WARP; lane++)
                if (fiber->mask >> lane & 1)
                    block.fibers[base + lane].wait = READY;
            fiber->wait = READY;
            some = true;
        }
    }
    return some;
}

static bool all_done(void) {
    for (unsigned int i = 0; i < block.count; i++)
        if (block.fibers[i].wait != DONE)
            return false;
    return true;
}

static void start(Fiber *fiber, char *stack) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK;
    fiber->context.uc_link = NULL;
    fiber->wait = READY;
    fiber->turn = 0;
    makecontext(&fiber->context, thread_main, 0);
}

static const char *run_block(bool descending, char *stacks) {
    for (unsigned int i = 0; i < block.count; i++)
        start(&block.fibers[i], stacks + (size_t)i * STACK);
    for (;;) {
        run_ready(descending);
        if (all_done())
            return NULL;
        if (!release())
            return "threads wait for one another";
    }
}

const char *host_cuda_run(Arena *arena, const HostCuda *cuda, uint32_t kernel, void *const *buffers, const TgScalars *scalars,
                          int64_t first, int64_t last, bool descending) {
    const CudaLaunch *launch = &cuda->launches[kernel];
    const char *name = cuda->kernels->at[kernel]->name;
    int64_t blocks = last - first > 1 ? last - first - 1 : 1;
    block = (Block){.buffers = buffers, .scalars = scalars, .first = first, .last = last};
    block.count = (unsigned int)launch->threads;
    block.fibers = TG_ALLOC(arena, Fiber, launch->threads);
    *(void **)&block.thunk = dlsym(cuda->library, tg_arena_printf(arena, "run_%s", name));
    void (*spoil)(void);
    *(void **)&spoil = dlsym(cuda->library, "host_cuda_spoil");
    if (block.thunk == NULL || spoil == NULL || launch->threads > MOST_THREADS)
        return "no such kernel";
    size_t bytes = (size_t)(launch->workspace * blocks);
    block.workspace = memset(tg_arena_alloc(arena, bytes + 16), 0xA5, bytes + 16);
    block.workspace += -(intptr_t)block.workspace & 15;
    char *stacks = malloc((size_t)launch->threads * STACK);
    if (stacks == NULL)
        return "no memory for stacks";
    const char *why = NULL;
    gridDim.x = (unsigned int)blocks;
    for (int64_t i = 0; i < blocks && why == NULL; i++) {
        blockIdx.x = (unsigned int)(descending ? blocks - 1 - i : i);
        spoil();
        why = run_block(descending, stacks);
    }
    free(stacks);
    return why;
}

/* ---- compiling ---- */

/* The kernel, called with what a CPU's kernel is called with. */
static void print_thunk(Str *to, const LoopKernel *k, const CudaLaunch *launch) {
    tg_str_printf(to, "void run_%s(void *const *b, const TgScalars *scalars, i64 first, i64 last, char *workspace) {\n    %s(",
                  k->name, k->name);
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++)
        if (k->buffers.at[i].role != ROLE_SCRATCH)
            tg_str_printf(to, "b[%u], ", next++);
    tg_str_printf(to, "scalars, first, last%s);\n}\n", launch->workspace ? ", workspace" : "");
}

static bool write_file(const char *path, const Str *text) {
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    bool written = fwrite(text->text, 1, text->length, file) == text->length;
    return fclose(file) == 0 && written;
}

const char *host_cuda_open(Arena *arena, const LoopKernels *kernels, HostCuda *out) {
    char folder[] = "/tmp/tg-cuda-XXXXXX";
    *out = (HostCuda){.kernels = kernels, .launches = TG_ALLOC(arena, CudaLaunch, kernels->count)};
    Str text = tg_str(arena);
    tg_str_printf(&text, "#include \"%s/tests/cuda/prelude.h\"\n%s", TGC_SOURCE_DIR, tg_cuda_support);
    for (uint32_t i = 0; i < kernels->count; i++) {
        out->launches[i] = tg_cuda_kernel(arena, kernels->at[i], &text);
        print_thunk(&text, kernels->at[i], &out->launches[i]);
    }
    if (mkdtemp(folder) == NULL)
        return "no temporary folder";
    const char *source = tg_arena_printf(arena, "%s/k.c", folder), *library = tg_arena_printf(arena, "%s/k.so", folder);
    const char *command = tg_arena_printf(
        arena, "cc -std=c17 -O1 -w -ffp-contract=off -fwrapv -fno-strict-aliasing -fPIC -shared -o %s %s -lm", library, source);
    const char *why = NULL;
    if (!write_file(source, &text))
        why = "the text cannot be written";
    else if (system(command) != 0)
        why = tg_arena_printf(arena, "cc does not take %s", source);
    else if ((out->library = dlopen(library, RTLD_NOW)) == NULL)
        why = tg_arena_printf(arena, "%s", dlerror());
    unlink(library);
    if (why == NULL)
        unlink(source);
    rmdir(folder);
    return why;
}

void host_cuda_close(HostCuda *cuda) {
    if (cuda->library)
        dlclose(cuda->library);
}
