#include "trial.h"

#include <CUnit/Basic.h>
#include <string.h>

/* ---- failures ---- */

static void write_reproducer(const Trial *t, const char *what, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "random-%llu.tgir", (unsigned long long)t->seed);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return;
    fprintf(file, "// TG_SEED=%llu random_test_random: %s\n%s", (unsigned long long)t->seed, what, text);
    fclose(file);
    fprintf(stderr, "the graph is in %s; replay it with TG_SEED=%llu\n", path, (unsigned long long)t->seed);
}

void trial_complain(Suite *s, const Trial *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = tg_arena_vprintf(&s->arena, format, args);
    va_end(args);
    Str text = tg_str(&s->arena);
    tg_graph_print_plain(&text, t->base ? t->base : t->r.graph);
    fprintf(stderr, "\nseed %llu: %s\n%s%s", (unsigned long long)t->seed, what,
            s->messages.length ? s->messages.text : "", text.text);
    write_reproducer(t, what, text.text);
    s->messages = tg_str(&s->arena);
    s->diags.errors = 0; /* passes look at it */
    s->report->failures++;
    CU_FAIL("a random graph fails");
}

void trial_count(Suite *s, Kind kind) {
    s->report->executions++;
    s->report->by[kind]++;
}

void trial_note(const Graph *graph, uint64_t *ops) {
    bool seen[OP_COUNT] = {false};
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (NodeId id = 1; id < graph->funcs.at[f]->nodes.count; id++)
            seen[tg_node(graph->funcs.at[f], id)->op] = true;
    for (int op = 0; op < OP_COUNT; op++)
        ops[op] += seen[op];
}

/* ---- passes ---- */

static uint32_t dots_of(const Graph *graph) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (NodeId id = 1; id < graph->funcs.at[f]->nodes.count; id++)
            count += tg_node(graph->funcs.at[f], id)->op == OP_dot;
    return count;
}

bool trial_passes(Suite *s, const Trial *t, const char *names, bool fold, bool fuse, const Graph *in, Graph **out) {
    PassContext context = {.arena = &s->arena, .diags = &s->diags, .recompute = {RECOMPUTE_ALL, 0}};
    PassOptions options = tg_pass_options();
    options.no_fold = !fold;
    options.no_fuse = !fuse;
    if (tg_passes_run(&context, &options, names, in, out) == TG_OK) {
        trial_note(*out, s->report->ops);
        s->report->merges += strcmp(names, "merge") == 0 && fold && dots_of(*out) < dots_of(in);
        return true;
    }
    trial_complain(s, t, "passes %s fail", names);
    return false;
}

Kind trial_kind(const char *names) {
    int pass = tg_pass_named(names);
    return pass < 0 ? KIND_ALL : (Kind)pass;
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

const char *trial_order(Suite *s, uint64_t *random, bool *fold, bool *fuse) {
    static const char *const names[] = {"merge", "clean", "recompute", "layout"};
    Str list = tg_str(&s->arena);
    int count = 2 + (int)(next_random(random) % 4);
    for (int k = 0; k < count; k++)
        tg_str_printf(&list, "%s%s", k ? "," : "", names[next_random(random) % 4]);
    if (next_random(random) % 2)
        tg_str_printf(&list, ",fuse");
    *fold = next_random(random) % 2;
    *fuse = next_random(random) % 2;
    return list.text;
}

/* ---- on the CPU ---- */

bool trial_lower(Suite *s, Trial *t, const Graph *graph, bool fuse, Variant *variant) {
    Graph *kernel;
    if (!trial_passes(s, t, "fuse", false, fuse, graph, &kernel))
        return false;
    if (tg_plan_build(&s->arena, &s->diags, kernel, "", LOOPS_CPU, &variant->lowered) != TG_OK) {
        trial_complain(s, t, "no plan");
        return false;
    }
    variant->first_kernel = s->all.kernels.count;
    for (uint32_t i = 0; i < variant->lowered.kernels.count; i++) {
        LoopKernel *k = variant->lowered.kernels.at[i];
        k->name = tg_arena_printf(&s->arena, "t%u_%s", s->all.kernels.count, k->name);
        tg_push(&s->arena, &s->all.kernels, k);
    }
    return true;
}

bool trial_open(Suite *s, const Trial *t, const Variant *v, int threads, TgExec **exec) {
    if (backend_open(&s->arena, &v->lowered, s->code.kernels + v->first_kernel, threads, exec) == TG_OK)
        return true;
    trial_complain(s, t, "the plan does not open");
    return false;
}

/* Element `index` of `rows` rows, in a buffer for the plan's capacity. */
static int64_t place_of(const PlanBuffer *buffer, int64_t rows, int64_t index) {
    if (buffer->batch_axis < 0)
        return index;
    int64_t inner = 1, here = rows * buffer->row_size;
    for (int d = buffer->batch_axis + 1; d < buffer->rank; d++)
        inner *= buffer->dims[d];
    int64_t outer = index / inner / here, along = index / inner % here;
    return (outer * buffer->dims[buffer->batch_axis] + along) * inner + index % inner;
}

void trial_write(TgExec *exec, const TgPlan *plan, uint32_t index, const Tensor *value, int64_t rows) {
    const PlanBuffer *buffer = &plan->buffers[index];
    void *to = tg_exec_address(exec, index, 0);
    memset(to, 0, (size_t)buffer->bytes);
    for (int64_t i = 0; i < value->count; i++)
        tg_element_set(buffer->dtype, to, place_of(buffer, rows, i), value->at[i]);
}

Tensor trial_read(Suite *s, TgExec *exec, const TgPlan *plan, uint32_t index, const Type *type, TypeId id,
                  int64_t rows) {
    const void *from = tg_exec_address(exec, index, 0);
    int64_t count = tg_type_count(type, rows);
    Tensor value = {id, count, TG_ALLOC(&s->arena, double, count + 1)};
    for (int64_t k = 0; k < count; k++)
        value.at[k] = tg_element_get(plan->buffers[index].dtype, from, place_of(&plan->buffers[index], rows, k));
    return value;
}
