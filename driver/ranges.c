#include "driver/ranges.h"

#include "driver/unfused.h"
#include "runtime/session.h"
#include "runtime/weights.h"
#include "passes/scaler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, TOP = 10, MOST_STEPS = 1000000, PLACES = 8 };

/* The seed of the cotangents while they are measured: one that is not 1, so that their types tell them from other values. */
static const int seed_shift = 1;

typedef struct Measure {
    Ranges *ranges;
    Map low; /* keys of values that -p f16 stores in f16 */
    Graph *low_graph, *step;
    Unfused unfused;
    Range **of_step;   /* per step of the plan; NULL: it is not looked at */
    Range **of_buffer; /* per buffer of the plan: parameters, and sums that are gradients */
    Options options;
    Session session;
    Loop loop;
    RecordSet train;
} Measure;

/* ---- which values -p f16 stores in f16 ---- */

/* A value is known again in another graph of the same model by its last place, which is its own, by how many elements it has, and by
   whether a library makes it. */
typedef struct Key {
    int64_t elements;
    uint32_t line, instance;
    uint16_t file, column, end;
    uint8_t scaled, from_library;
} Key;

static Loc last_place(const Graph *graph, LocsId locs) {
    Loc places[PLACES] = {{0}};
    uint32_t count = tg_locs_list(graph, locs, places, PLACES);
    return places[count ? count - 1 : 0];
}

static bool is_library(const Node *node) { return tg_op((Op)node->op)->fuse == FUSE_library; }

/* What a library makes may be rounded behind it. */
static Key key_of(const Graph *graph, const Func *func, NodeId id) {
    enum { ROWS = 1009 }; /* in place of B: no size of a model */
    const Node *node = tg_node(func, id);
    const Type *type = tg_node_type(graph, func, id);
    Loc at = last_place(graph, node->locs);
    bool from_library = is_library(node) || (node->op == OP_convert && is_library(tg_node(func, tg_operand(func, node, 0))));
    return (Key){tg_type_count(type, ROWS), at.line, at.instance, at.file, at.column, at.end_column, type->scaled, from_library};
}

static bool is_measured(FuncKind kind) { return kind == FUNC_PRE || kind == FUNC_MICRO; }

/* Values stay whole: nothing runs in slices, no dots become one. */
static PassOptions pass_options(void) {
    PassOptions options = tg_pass_options();
    options.disable[options.disabled++] = "chunk";
    options.disable[options.disabled++] = "merge";
    return options;
}

static Status find_low(Measure *m) {
    Pipeline *p = m->ranges->p;
    PassContext context = {.arena = p->arena, .diags = p->diags};
    PassOptions options = pass_options();
    p->model->training.precision = DT_F16;
    TG_TRY(tg_phases_run(&context, &options, "layout", p->model, &m->low_graph));
    m->low = tg_map(p->arena);
    for (uint32_t f = 0; f < m->low_graph->funcs.count; f++) {
        const Func *func = m->low_graph->funcs.at[f];
        for (NodeId id = 1; is_measured(func->kind) && id < func->nodes.count; id++) {
            Key key = key_of(m->low_graph, func, id);
            if (tg_node_type(m->low_graph, func, id)->dtype == DT_F16)
                *tg_map_put(&m->low, &key, sizeof key, NULL) = 1;
        }
    }
    return TG_OK;
}

/* ---- the step in f32 ---- */

static Status make_step(Measure *m) {
    Pipeline *p = m->ranges->p;
    PassContext context = {.arena = p->arena, .diags = p->diags};
    PassOptions options = pass_options();
    Graph *unmarked;
    p->model->training.precision = DT_F32;
    TG_TRY(tg_passes_run(&context, &options, "autocast", p->model, &unmarked)); /* takes the user's marks away */
    unmarked->training.precision = DT_F16;
    unmarked->training.loss_scale = ldexp(1, seed_shift);
    options.disable[options.disabled++] = "autocast";
    TG_TRY(tg_phases_run(&context, &options, "layout", unmarked, &m->step));
    Str text = tg_str(p->arena);
    TG_TRY(unfused_make(p, m->step, "", &m->unfused));
    TgPlan *plan = m->unfused.lowered.plan;
    plan->library_directory = tg_library_directory(p->arena);
    TG_TRY(tg_plan_write(&text, plan));
    m->unfused.program.plan = text.text;
    m->unfused.program.plan_bytes = text.length;
    return TG_OK;
}

/* ---- what is looked at ---- */

static const char *shape_text(Arena *arena, const Type *type) {
    Str text = tg_str(arena);
    tg_type_print(&text, type);
    const char *bracket = strchr(text.text, '[');
    return bracket ? bracket : "[]";
}

static void add_instance(Arena *arena, Range *range, const char *path) {
    for (uint32_t i = 0; i < range->instances.count; i++)
        if (strcmp(range->instances.at[i], path) == 0)
            return;
    tg_push(arena, &range->instances, path);
}

static void add_instance_at(Measure *m, Range *range, Loc loc) {
    if (loc.instance)
        add_instance(m->ranges->p->arena, range, m->unfused.kernel->instances.at[loc.instance].path);
}

static Range *add_range(Measure *m, RangeKind kind, const char *name, LocsId locs, const Type *type) {
    const Graph *graph = m->unfused.kernel;
    Arena *arena = m->ranges->p->arena;
    Range *range = TG_ALLOC(arena, Range, 1);
    *range = (Range){.kind = kind, .name = name, .shape = shape_text(arena, type), .user = tg_locs_first(graph, locs),
                     .place = last_place(graph, locs)};
    tg_push(arena, &m->ranges->all, range);
    return range;
}

/* The node that a step of the plan makes; 0: what it makes is not looked at. */
static NodeId node_of(const Measure *m, const Func *func, uint32_t step) {
    NodeId id = m->unfused.lowered.nodes[step];
    if (id == 0 || tg_node(func, id)->op != OP_call)
        return id;
    for (NodeId result = id + 1; result < func->nodes.count; result++)
        if (tg_node(func, result)->op == OP_result && tg_operand(func, tg_node(func, result), 0) == id)
            return result;
    return 0;
}

static Op op_of(const Measure *m, const Func *func, NodeId id) {
    const Node *node = tg_node(func, id);
    if (node->op != OP_result)
        return (Op)node->op;
    const Func *kernel = m->unfused.kernel->funcs.at[tg_node(func, tg_operand(func, node, 0))->attr->ref];
    return (Op)tg_node(kernel, kernel->results.at[0].node)->op;
}

/* Its elements are those of its operand, or known when compiling. */
static bool gives_nothing_new(Op op) {
    FuseKind kind = tg_op(op)->fuse;
    return kind == FUSE_view || (kind == FUSE_leaf && op != OP_random) || op == OP_reverse || op == OP_pad || op == OP_concat ||
           op == OP_convert || op == OP_detach || op == OP_bounded;
}

/* What an operand of a dot was before it was moved. */
static NodeId moved_from(const Measure *m, const Func *func, NodeId id) {
    for (;;) {
        const Node *node = tg_node(func, id);
        Op op = op_of(m, func, id);
        const Node *reads = node->op == OP_result ? tg_node(func, tg_operand(func, node, 0)) : node;
        if (!gives_nothing_new(op) || reads->operand_count != 1 || node->op == OP_load || node->op == OP_arg)
            return id;
        id = tg_operand(func, reads, 0);
    }
}

static Range *range_of(const Measure *m, const Func *func, Range *const *of_node, NodeId id) {
    const Node *node = tg_node(func, id);
    return node->op == OP_load ? m->of_buffer[node->attr->ref] : of_node[id];
}

/* A value is low if it, or what only moves its elements, is. */
static void mark_low(Measure *m, const Func *func, Range *const *of_node) {
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Type *type = tg_node_type(m->unfused.kernel, func, id);
        Key key = key_of(m->unfused.kernel, func, id);
        Op op = tg_node(func, id)->op;
        if (op == OP_call || !tg_is_float(type->dtype) || tg_map_find(&m->low, &key, sizeof key) == NULL)
            continue;
        Range *range = of_node[moved_from(m, func, id)];
        if (range)
            range->is_low = true;
    }
}

/* Whose rules decide how a value is stored: those of the dots that make it or read it; without any, those of where it stands. */
static void find_instances(Measure *m, const Func *func, Range *const *of_node) {
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        if (of_node[id] && is_library(node))
            add_instance_at(m, of_node[id], of_node[id]->user);
        for (uint32_t i = 0; is_library(node) && i < node->operand_count; i++) {
            Range *range = range_of(m, func, of_node, moved_from(m, func, tg_operand(func, node, i)));
            if (range)
                add_instance_at(m, range, tg_locs_first(m->unfused.kernel, node->locs));
        }
    }
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (of_node[id] && of_node[id]->instances.count == 0)
            add_instance_at(m, of_node[id], of_node[id]->place);
}

static void list_func(Measure *m, const PlanFunc *plan_func, const Func *func) {
    const TgPlan *plan = m->unfused.lowered.plan;
    Range **of_node = TG_ALLOC(m->ranges->p->arena, Range *, func->nodes.count);
    for (uint32_t i = plan_func->step_first; i < plan_func->step_first + plan_func->step_count; i++) {
        const PlanStep *step = &plan->steps[i];
        NodeId id = node_of(m, func, i);
        const PlanOperand *out = &plan->step_buffers[step->buffer_first + unfused_first_output(&m->unfused.lowered, step)];
        if (id == 0 || gives_nothing_new(op_of(m, func, id)) || plan->buffers[out->buffer].class == PLAN_SUM)
            continue;
        const Type *type = tg_node_type(m->unfused.kernel, func, id);
        if (!tg_is_float(type->dtype))
            continue;
        RangeKind kind = type->scaled ? RANGE_COTANGENT : RANGE_VALUE;
        of_node[id] = m->of_step[i] = add_range(m, kind, tg_op(op_of(m, func, id))->name, tg_node(func, id)->locs, type);
    }
    mark_low(m, func, of_node);
    find_instances(m, func, of_node);
}

/* Parameters and their gradients: only those are sums that are scaled. */
static void list_buffers(Measure *m) {
    Graph *graph = m->unfused.kernel;
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        const Buffer *buffer = &graph->buffers.at[i];
        bool is_gradient = buffer->class == BUFFER_SUM && tg_type_of(&graph->types, buffer->type)->scaled;
        if (buffer->class != BUFFER_PARAM && !is_gradient)
            continue;
        RangeKind kind = is_gradient ? RANGE_GRADIENT : RANGE_PARAM;
        const char *path = buffer->name + (strncmp(buffer->name, "gradient.", 9) == 0 ? 9 : 0); /* a sum of several has no other name */
        Range *range = add_range(m, kind, path, tg_locs_one(graph, buffer->loc), tg_type_of(&graph->types, buffer->type));
        range->is_low = kind == RANGE_PARAM && tg_buffer_find(m->low_graph, tg_arena_printf(graph->arena, "copy.%s", path)) >= 0;
        m->of_buffer[i] = range;
    }
}

static void list_ranges(Measure *m) {
    const TgPlan *plan = m->unfused.lowered.plan;
    m->of_step = TG_ALLOC(m->ranges->p->arena, Range *, plan->step_count + 1);
    m->of_buffer = TG_ALLOC(m->ranges->p->arena, Range *, plan->buffer_count + 1);
    list_buffers(m);
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (plan->funcs[i].kind == PLAN_PRE || plan->funcs[i].kind == PLAN_MICRO)
            list_func(m, &plan->funcs[i], tg_func_find(m->unfused.kernel, plan->funcs[i].kind == PLAN_PRE ? FUNC_PRE : FUNC_MICRO,
                                                       plan->funcs[i].name));
}

/* ---- looking ---- */

static void add_elements(Spread *spread, DType dtype, const void *values, int64_t first, int64_t count, double factor) {
    for (int64_t i = first; i < first + count; i++)
        spread_add(spread, factor * tg_element_get(dtype, values, i));
}

static double factor_of(const Range *range) { return range_is_scaled(range) ? ldexp(1, -seed_shift) : 1; }

/* The records that are there. */
static void look_at(Measure *m, Range *range, uint32_t index, int64_t lane) {
    const PlanBuffer *buffer = &m->session.plan->buffers[index];
    const void *values = tg_exec_address(m->session.exec, index, lane);
    int64_t outer = 1, inner = 1, rows = tg_exec_scalars(m->session.exec)->rows;
    int axis = buffer->batch_axis < 0 ? 0 : buffer->batch_axis;
    for (int i = 0; i < axis; i++)
        outer *= buffer->dims[i];
    for (int i = axis + 1; i < buffer->rank; i++)
        inner *= buffer->dims[i];
    int64_t size = buffer->rank ? buffer->dims[axis] : 1, there = buffer->batch_axis < 0 ? size : rows * buffer->row_size;
    for (int64_t o = 0; o < outer; o++)
        add_elements(&range->spread, buffer->dtype, values, o * size * inner, there * inner, factor_of(range));
}

static void look(void *context, uint32_t index, int64_t lane) {
    Measure *m = context;
    const PlanStep *step = &m->session.plan->steps[index];
    for (uint32_t k = unfused_first_output(&m->unfused.lowered, step); m->of_step[index] && k < step->buffer_count; k++) {
        const PlanOperand *operand = &m->session.plan->step_buffers[step->buffer_first + k];
        if (m->session.plan->buffers[operand->buffer].class != PLAN_SCRATCH)
            look_at(m, m->of_step[index], operand->buffer, operand->lane == TG_LANE_CURRENT ? lane : operand->lane);
    }
}

static void look_at_params(Measure *m) {
    for (uint32_t i = 0; i < m->session.plan->buffer_count; i++)
        if (m->of_buffer[i] && m->of_buffer[i]->kind == RANGE_PARAM)
            look_at(m, m->of_buffer[i], i, 0);
}

/* A gradient is what its lanes give together. */
static void look_at_gradients(Measure *m) {
    for (uint32_t i = 0; i < m->session.plan->buffer_count; i++) {
        const PlanBuffer *buffer = &m->session.plan->buffers[i];
        Range *range = m->of_buffer[i];
        int64_t count = buffer->bytes / tg_dtype(buffer->dtype)->bytes;
        for (int64_t e = 0; range && range->kind == RANGE_GRADIENT && e < count; e++) {
            double sum = 0;
            for (int64_t lane = 0; lane < buffer->lanes; lane++)
                sum += tg_element_get(buffer->dtype, tg_exec_address(m->session.exec, i, lane), e);
            spread_add(&range->spread, factor_of(range) * sum);
        }
    }
}

/* ---- running ---- */

static Status failed(Measure *m, Status status) {
    if (status != TG_OK && m->session.why)
        tg_error(m->ranges->p->diags, (Loc){0}, "%s", m->session.why);
    return status;
}

/* Learning rates may depend on how long training will be. */
static double steps_of_training(const Measure *m) {
    const TgPlan *plan = m->session.plan;
    int64_t by_epochs = plan->epochs * ((m->train.count + plan->batch - 1) / plan->batch);
    return (double)(plan->epochs && (plan->steps_wanted == 0 || by_epochs < plan->steps_wanted) ? by_epochs : plan->steps_wanted);
}

static Status open(Measure *m) {
    const Cli *cli = m->ranges->p->cli;
    Session *session = &m->session;
    m->options.value[OPT_DATA_ROOT] = cli->value[CLI_DATA_ROOT];
    m->options.value[OPT_SEED] = cli->value[CLI_SEED];
    *session = (Session){.arena = m->ranges->p->arena, .options = &m->options, .path = "tgc", .name = "tgc", .out = stdout, .err = stderr};
    TG_TRY(tg_session_open(session, &m->unfused.program));
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_open_training(session, &m->loop, &m->train));
    if (cli->value[CLI_INIT])
        TG_TRY(tg_weights_load(session->exec, session->plan, session->arena, &session->files.vocabulary, cli->value[CLI_INIT], &session->why));
    *m->loop.total_steps = steps_of_training(m);
    return tg_session_open_feed(session, &m->train, 0);
}

static Status run_step(Measure *m, int64_t number) {
    const Batch *batch = tg_feed_next(m->session.feed);
    LoopPlace place = {.step = number, .iteration = number - 1, .epoch = batch->epoch};
    look_at_params(m);
    StepEnd end = tg_loop_step(&m->loop, batch, &place);
    look_at_gradients(m);
    m->ranges->records += batch->count;
    if (end != STEP_NOT_FINITE)
        return TG_OK;
    return tg_session_fail(&m->session, TG_NUMERIC, "step %lld is not finite in f32: 'tgc train %s' names the line", (long long)number,
                           m->ranges->p->cli->arguments.at[0]);
}

static Status run(Measure *m) {
    TG_TRY(open(m));
    tg_exec_watch(m->session.exec, look, m);
    for (int64_t i = 1; i <= m->ranges->steps; i++)
        TG_TRY(run_step(m, i));
    return TG_OK;
}

/* ---- the result ---- */

SpreadLoss range_loss(const Range *range, SpreadTypeId type, int shift) {
    const SpreadType *of = spread_type(type);
    return spread_loss(&range->spread, of, range_is_scaled(range) && of->scaled ? shift : 0);
}

bool range_is_bad(const Ranges *ranges, const Range *range) {
    SpreadLoss loss = range_loss(range, SPREAD_F16, ranges->shift);
    return range->is_low && (loss.infinite > 0 || loss.zero >= 0.1);
}

static void find_scale(Ranges *ranges, double asked) {
    ranges->fixed = asked != 0;
    ranges->first_shift = (int)lround(log2(ranges->fixed ? asked : TG_FIRST_SCALE));
    ranges->room = RANGES_MOST_SHIFT;
    for (uint32_t i = 0; i < ranges->all.count; i++)
        if (ranges->all.at[i]->kind == RANGE_COTANGENT && ranges->all.at[i]->is_low)
            ranges->room = spread_room(&ranges->all.at[i]->spread, spread_type(SPREAD_F16), ranges->room);
    int least = ranges->room < 0 ? 0 : ranges->room;
    ranges->shift = !ranges->fixed && least < ranges->first_shift ? least : ranges->first_shift;
}

static double badness(const Ranges *ranges, const Range *range, SpreadTypeId type) {
    SpreadLoss loss = range_loss(range, type, ranges->first_shift);
    return loss.infinite + loss.zero + 1e-3 * loss.denormal;
}

static int compare(const void *a, const void *b, void *context) {
    const Range *x = *(Range *const *)a, *y = *(Range *const *)b;
    if (x->is_low != y->is_low)
        return x->is_low ? -1 : 1;
    for (int t = 0; t < 3; t++) {
        static const SpreadTypeId order[] = {SPREAD_F16, SPREAD_E5M2, SPREAD_E4M3};
        double by = badness(context, y, order[t]) - badness(context, x, order[t]);
        if (by != 0)
            return by > 0 ? 1 : -1;
    }
    return x->user.line != y->user.line ? (x->user.line > y->user.line) - (x->user.line < y->user.line) : strcmp(x->name, y->name);
}

static Status measure(Measure *m) {
    Ranges *ranges = m->ranges;
    double loss_scale = ranges->p->model->training.loss_scale;
    TG_TRY(find_low(m));
    TG_TRY(make_step(m));
    list_ranges(m);
    Status status = failed(m, run(m));
    tg_session_close(&m->session);
    unfused_free(&m->unfused);
    TG_TRY(status);
    find_scale(ranges, loss_scale);
    qsort_r(ranges->all.at, ranges->all.count, sizeof *ranges->all.at, compare, ranges);
    return TG_OK;
}

static Status read_count(const Ranges *ranges, CliOption option, const char *name, int64_t least, int64_t *count) {
    const char *text = ranges->p->cli->value[option];
    if (text == NULL)
        return TG_OK;
    char *end;
    *count = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && *count >= least && *count <= MOST_STEPS)
        return TG_OK;
    tg_error(ranges->p->diags, (Loc){0}, "--%s is a whole number from %lld to %d, not '%s'", name, (long long)least, MOST_STEPS, text);
    return TG_USAGE;
}

Status command_ranges(Pipeline *p) {
    Ranges ranges = {.p = p, .steps = STEPS};
    Measure m = {.ranges = &ranges};
    int64_t top = TOP;
    TG_TRY(read_count(&ranges, CLI_STEPS, "steps", 1, &ranges.steps));
    TG_TRY(read_count(&ranges, CLI_TOP, "top", 0, &top));
    p->diags->state[WARN_loss_scale] = WARNING_OFF; /* f16 is looked at, if not computed in */
    TG_TRY(pipeline_run(p, STAGE_MODEL));
    if (p->model->training.loss == NULL || tg_func_find(p->model, FUNC_OBJECTIVE, NULL) == NULL) {
        tg_error(p->diags, (Loc){0}, "%s has no train { } block, so it cannot train", p->cli->arguments.at[0]);
        return TG_MODEL;
    }
    TG_TRY(measure(&m));
    RangeRules rules = ranges_rules(&ranges);
    if (p->cli->value[CLI_JSON])
        ranges_print_json(&ranges, &rules);
    else
        ranges_print(&ranges, &rules, top);
    if (p->cli->value[CLI_WRITE_AUTOCAST] == NULL)
        return TG_OK;
    Str text = tg_str(p->arena);
    TG_TRY(ranges_file(&ranges, &rules, &text));
    return write_text(p, p->cli->value[CLI_WRITE_AUTOCAST], &text);
}
