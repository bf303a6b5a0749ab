#include "tests/codegen/lowered.h"

#include "ir/build.h"
#include "tests/codegen/interpret.h"
#include "tests/cuda/host.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct World {
    Arena arena;
    Sources sources;
    Diags diags;
    Graph *graph;
    const LoweredCase *c;
    Tensor *values; /* by node, unfused */
    void **memory;  /* by node, unfused: capacity */
    TgScalars scalars;
    double settings[2];
} World;

static const Type *type_of(const World *w, TypeId id) { return tg_type_of(&w->graph->types, id); }

static void complain(const World *w, const char *what) {
    printf("\n  %s (capacity %lld, rows %lld): %s\n", w->c->name, (long long)w->c->capacity, (long long)w->c->rows,
           what);
    CU_FAIL("a lowered kernel is wrong");
}

static Func *parse_case(World *w, Arena *arena, const LoweredCase *c) {
    tg_diags_init(&w->diags, arena, &w->sources, stdout);
    w->c = c;
    const char *text =
        tg_arena_printf(arena, "graph @kernel { scalar $lr setting 0.25 func @k kernel(%s) { %s } }", c->args, c->body);
    Status status = tg_graph_parse(arena, &w->diags, &w->sources, c->name, text, strlen(text), &w->graph);
    if (status != TG_OK)
        return NULL;
    return tg_func_find(w->graph, FUNC_KERNEL, NULL);
}

/* ---- memory ---- */

static int64_t extent(Dim dim, int64_t rows) { return dim.batch ? dim.size * rows : dim.size; }

/* The place in a buffer for `capacity` records of element `i` of a value of `rows` records. */
static int64_t placed(const Type *type, int64_t i, int64_t rows, int64_t capacity) {
    int64_t at = 0, stride = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        int64_t size = extent(type->dims[d], rows);
        at += i % size * stride;
        i /= size;
        stride *= extent(type->dims[d], capacity);
    }
    return at;
}

static void *new_memory(World *w, const Type *type, unsigned char fill, size_t *bytes) {
    *bytes = (size_t)tg_type_count(type, w->c->capacity) * tg_dtype(type->dtype)->bytes;
    return memset(tg_arena_alloc(&w->arena, *bytes + 1), fill, *bytes);
}

static void *memory_of(World *w, const Type *type, const Tensor *value) {
    size_t bytes;
    void *memory = new_memory(w, type, 0, &bytes);
    for (int64_t i = 0; i < value->count; i++)
        tg_element_set(type->dtype, memory, placed(type, i, w->c->rows, w->c->capacity), value->at[i]);
    return memory;
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static Tensor input(World *w, TypeId id, uint64_t seed) {
    const Type *type = type_of(w, id);
    Tensor value = {.type = id, .count = tg_type_count(type, w->c->rows)};
    value.at = TG_ALLOC(&w->arena, double, value.count + 1);
    for (int64_t i = 0; i < value.count; i++) {
        double unit = (double)next_random(&seed) / 0x1p31;
        double x = type->dtype == DT_BOOL       ? unit > 0.5
                   : tg_is_integer(type->dtype) ? floor(unit * 7) - (unit > 0.9 ? 3 : 0)
                                                : unit * 4 - 2;
        value.at[i] = tg_round_to(type->dtype, x);
    }
    return value;
}

/* ---- running ---- */

static bool run_kernel(World *w, const Func *func, void *const *buffers) {
    LoopKernel *k;
    if (tg_lower_kernel(&w->arena, &w->diags, w->graph, func, w->c->capacity, LOOPS_CPU, false, 0, "k", &k) != TG_OK) {
        complain(w, "it does not lower");
        return false;
    }
    for (int64_t tile = k->tiles - 1; tile >= 0; tile--) {
        const char *why = interpret(&w->arena, k, buffers, &w->scalars, tile, tile + 1);
        if (why != NULL) {
            Str text = tg_str(&w->arena);
            tg_loop_print(&text, k);
            printf("%s", text.text);
            complain(w, why);
            return false;
        }
    }
    return true;
}

/* Memory for results of a run of its own. */
static void **own_buffers(World *w, const Func *func, void *const *buffers) {
    uint32_t args = func->args.count, results = func->results.count;
    void **own = tg_arena_copy(&w->arena, buffers, (args + results + 1) * sizeof *buffers);
    size_t bytes;
    for (uint32_t i = 0; i < results; i++)
        own[args + i] = new_memory(w, type_of(w, tg_node(func, func->results.at[i].node)->type), 0xEE, &bytes);
    return own;
}

static void compare_results(World *w, const Func *func, void *const *buffers, void *const *own, const char *where) {
    uint32_t args = func->args.count;
    size_t bytes;
    for (uint32_t i = 0; i < func->results.count; i++) {
        (void)new_memory(w, type_of(w, tg_node(func, func->results.at[i].node)->type), 0, &bytes);
        if (memcmp(own[args + i], buffers[args + i], bytes) != 0)
            complain(w, tg_arena_printf(&w->arena, "output %u has other bits in %s", i, where));
    }
}

/* The same through the CUDA text, threads in one order and in the other. */
static void check_cuda(World *w, const Func *func, void *const *buffers, LoopTarget target) {
    HostCuda cuda = {0};
    LoopKernels kernels = {0};
    LoopKernel *k;
    const char *why = "it does not lower";
    if (tg_lower_kernel(&w->arena, &w->diags, w->graph, func, w->c->capacity, target, false, 0, "k", &k) == TG_OK) {
        tg_push(&w->arena, &kernels, k);
        why = host_cuda_open(&w->arena, &kernels, &cuda);
    }
    for (int descending = 0; why == NULL && descending < 2; descending++) {
        void **own = own_buffers(w, func, buffers);
        why = host_cuda_run(&w->arena, &cuda, 0, own, &w->scalars, 0, k->tiles, descending);
        if (why == NULL)
            compare_results(w, func, buffers, own, "CUDA text");
    }
    host_cuda_close(&cuda);
    if (why)
        complain(w, why);
}

static bool targets_differ(World *w, const Func *func) {
    Str text[2] = {tg_str(&w->arena), tg_str(&w->arena)};
    for (int target = LOOPS_CPU; target <= LOOPS_CUDA; target++) {
        LoopKernel *k;
        if (tg_lower_kernel(&w->arena, &w->diags, w->graph, func, w->c->capacity, (LoopTarget)target, false, 0, "k", &k) != TG_OK)
            return false;
        tg_loop_print(&text[target], k);
    }
    return strcmp(text[0].text, text[1].text) != 0;
}

/* The same through machine code: the bits are the interpreter's. */
static void check_machine_code(World *w, const Func *func, void *const *buffers) {
    const LlvmModule *llvm;
    Lowered lowered = {0};
    LlvmRequest request = {.lowered = &lowered, .cpu = "", .optimize = 2};
    LoopKernel *k;
    TgKernel *compiled[1];
    void *handle;
    if (tg_llvm_open(&w->arena, &w->diags, &llvm) != TG_OK ||
        tg_lower_kernel(&w->arena, &w->diags, w->graph, func, w->c->capacity, LOOPS_CPU, false, 0, "k", &k) != TG_OK) {
        complain(w, "there is no machine code");
        return;
    }
    tg_push(&w->arena, &lowered.kernels, k);
    if (llvm->jit(&w->arena, &w->diags, &request, compiled, &handle) != TG_OK) {
        complain(w, "it does not compile");
        return;
    }
    void **own = own_buffers(w, func, buffers);
    for (int64_t tile = 0; tile < k->tiles; tile++)
        compiled[0](own, &w->scalars, tile, tile + 1);
    compare_results(w, func, buffers, own, "machine code");
    check_cuda(w, func, buffers, LOOPS_CUDA);
    if (targets_differ(w, func))
        check_cuda(w, func, buffers, LOOPS_CPU);
    llvm->jit_free(handle);
}

/* Every node a kernel of its own; constants stay with their users, as fusion leaves them. */
static void *run_node(World *w, const Func *func, NodeId id) {
    const Node *node = tg_node(func, id);
    Func *single = tg_func_new(w->graph, FUNC_KERNEL, "single");
    Builder b = tg_builder(w->graph, single, false);
    void *buffers[16];
    NodeId operands[8];
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(func, node, i);
        TypeId type = tg_node(func, operand)->type;
        if (tg_node(func, operand)->op == OP_const) {
            operands[i] = tg_build_like(&b, w->graph, func, operand, NULL);
            continue;
        }
        tg_push(w->graph->arena, &single->args, (FuncArg){.name = "x", .type = type});
        operands[i] = tg_arg(&b, count, "x", type);
        buffers[count++] = w->memory[operand];
    }
    tg_result_value(&b, "y", tg_build_like(&b, w->graph, func, id, operands));
    size_t bytes;
    buffers[count] = new_memory(w, type_of(w, node->type), 0xEE, &bytes);
    return run_kernel(w, single, buffers) ? buffers[count] : NULL;
}

static bool run_unfused(World *w, const Func *func, void *const *inputs) {
    w->memory = TG_ALLOC(&w->arena, void *, func->nodes.count);
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        if (node->op == OP_arg)
            w->memory[id] = inputs[node->attr->list[0].count ? node->attr->list[0].at[0] : 0];
        else
            w->memory[id] = run_node(w, func, id);
        if (w->memory[id] == NULL)
            return false;
    }
    return true;
}

/* ---- comparing ---- */

static bool close_to(double x, double want, double tolerance) {
    if (isnan(want) || isnan(x))
        return isnan(want) && isnan(x);
    return x == want || fabs(x - want) <= tolerance * (1 + fabs(want));
}

static void compare(World *w, const Func *func, uint32_t result, const Tensor *want, const void *memory) {
    const Type *type = type_of(w, tg_node(func, func->results.at[result].node)->type);
    size_t bytes, whole;
    unsigned char *rest = new_memory(w, type, 0, &bytes);
    memcpy(rest, memory, bytes);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t at = placed(type, i, w->c->rows, w->c->capacity);
        double x = tg_element_get(type->dtype, memory, at);
        if (!close_to(x, want->at[i], w->c->tolerance)) {
            complain(w, tg_arena_printf(&w->arena, "output %u, element %lld: %.9g, not %.9g", result, (long long)i, x,
                                        want->at[i]));
            return;
        }
        tg_element_set(type->dtype, rest, at, 0);
    }
    const unsigned char *zeros = new_memory(w, type, 0, &whole);
    if (memcmp(rest, zeros, bytes) != 0)
        complain(w, tg_arena_printf(&w->arena, "output %u: padding is not zero", result));
}

static void check_world(World *w, const Func *func) {
    uint32_t args = func->args.count, results = func->results.count;
    Tensor *inputs = TG_ALLOC(&w->arena, Tensor, args + 1), *want = TG_ALLOC(&w->arena, Tensor, results + 1);
    void **buffers = TG_ALLOC(&w->arena, void *, args + results + 1);
    for (uint32_t i = 0; i < args; i++) {
        inputs[i] = input(w, func->args.at[i].type, i * 977 + 3);
        buffers[i] = memory_of(w, type_of(w, func->args.at[i].type), &inputs[i]);
    }
    size_t bytes;
    for (uint32_t i = 0; i < results; i++)
        buffers[args + i] = new_memory(w, type_of(w, tg_node(func, func->results.at[i].node)->type), 0xEE, &bytes);
    w->settings[0] = 0.25;
    w->scalars = (TgScalars){.rows = w->c->rows, .first_row = 5, .iteration = 7, .seed = 11, .values = w->settings};
    EvalState state = {.arena = &w->arena,
                       .mode = EVAL_TYPED,
                       .rows = w->c->rows,
                       .first_row = 5,
                       .iteration = 7,
                       .seed = 11,
                       .scalars = w->settings,
                       .args = inputs};
    if (tg_eval_func(&state, w->graph, func, &w->diags, want) != TG_OK) {
        complain(w, "the evaluator fails");
        return;
    }
    if (!run_kernel(w, func, buffers) || !run_unfused(w, func, buffers))
        return;
    check_machine_code(w, func, buffers);
    for (uint32_t i = 0; i < results; i++) {
        NodeId node = func->results.at[i].node;
        compare(w, func, i, &want[i], buffers[args + i]);
        size_t size = (size_t)tg_type_count(type_of(w, tg_node(func, node)->type), w->c->capacity) *
                      tg_dtype(type_of(w, tg_node(func, node)->type)->dtype)->bytes;
        if (memcmp(buffers[args + i], w->memory[node], size) != 0)
            complain(w, tg_arena_printf(&w->arena, "output %u has other bits when nothing is fused", i));
    }
}

void check_lowered(const LoweredCase *c) {
    World w = {0};
    tg_arena_init(&w.arena, tg_host());
    if (setjmp(w.arena.guard))
        exit(1);
    const Func *func = parse_case(&w, &w.arena, c);
    if (func == NULL)
        complain(&w, "it does not parse");
    else
        check_world(&w, func);
    tg_arena_deinit(&w.arena);
}

LoopKernel *lower_text(Arena *arena, const LoweredCase *c) {
    World *w = TG_ALLOC(arena, World, 1);
    const Func *func = parse_case(w, arena, c);
    LoopKernel *k = NULL;
    if (func == NULL || tg_lower_kernel(arena, &w->diags, w->graph, func, c->capacity, LOOPS_CPU, false, 0, "k", &k) != TG_OK)
        CU_FAIL("it does not lower");
    return k;
}
