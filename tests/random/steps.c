/* Trials of models: init, two steps of which the second is short, a validation and the exports, by the evaluator at
   each level and by the runtime's own loop on the CPU. What a pass keeps has equal bits over all of it; what it
   replaces or rounds is near in f64; gradients are near differences. On the CPU fused equals unfused to the bit, one
   thread two, and all lie near the evaluator. */
#include "near.h"
#include "trial.h"

#include "passes/copy.h"
#include "passes/step.h"
#include "passes/validate.h"
#include "runtime/loop.h"

#include <math.h>
#include <string.h>

enum { STEPS = 2 };

/* What a run leaves: fields, buffers, values of exports, by name. */
typedef struct Seen {
    const char *name;
    Tensor value;
} Seen;
typedef struct Outcome {
    Vec(Seen) seen;
    bool failed;
} Outcome;

static void see(Suite *s, Outcome *out, const char *when, const char *name, Tensor value) {
    value.at = tg_arena_copy(&s->arena, value.at, (size_t)value.count * sizeof *value.at);
    tg_push(&s->arena, &out->seen, (Seen){tg_arena_printf(&s->arena, "%s%s", name, when), value});
}

static const Tensor *find(const Outcome *out, const char *name) {
    for (uint32_t i = 0; i < out->seen.count; i++)
        if (strcmp(out->seen.at[i].name, name) == 0)
            return &out->seen.at[i].value;
    return NULL;
}

/* 0: equal bits. Else relative to the largest of the values, `floor` at the least. */
typedef struct Tolerance {
    double share, floor;
} Tolerance;

static double largest(const Tensor *x) {
    double most = 0;
    for (int64_t i = 0; i < x->count; i++)
        if (isfinite(x->at[i]))
            most = fmax(most, fabs(x->at[i]));
    return most;
}

static bool is_same(Tolerance tolerance, double most, double a, double b) {
    if (tg_same_value(a, b))
        return true;
    if (tolerance.share == 0 || !isfinite(a) || !isfinite(b))
        return tolerance.share != 0 && isnan(a) && isnan(b);
    return fabs(a - b) <= tolerance.share * fmax(most, tolerance.floor);
}

static bool same_outcome(Suite *s, const Trial *t, const char *what, const Outcome *a, const Outcome *b,
                         Tolerance tolerance) {
    for (uint32_t i = 0; !a->failed && !b->failed && i < a->seen.count; i++) {
        const Seen *seen = &a->seen.at[i];
        const Tensor *other = find(b, seen->name);
        if (other == NULL || other->count != seen->value.count) {
            trial_complain(s, t, "%s: %s is %s", what, seen->name, other ? "of another size" : "not there");
            return false;
        }
        double most = largest(&seen->value);
        for (int64_t k = 0; k < other->count; k++)
            if (!is_same(tolerance, most, seen->value.at[k], other->at[k])) {
                trial_complain(s, t, "%s: element %lld of %s is %.17g, not %.17g", what, (long long)k, seen->name,
                               other->at[k], seen->value.at[k]);
                return false;
            }
    }
    return !a->failed && !b->failed;
}

static const Tolerance bits = {0, 0}, real = {1e-6, 1}, narrow = {0.05, 1};

static bool any_node(const Graph *graph, bool (*has)(const Graph *, const Node *)) {
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (NodeId id = 1; id < graph->funcs.at[f]->nodes.count; id++)
            if (has(graph, tg_node(graph->funcs.at[f], id)))
                return true;
    return false;
}

/* A little rounding makes a step of it. */
static bool jumps(const Graph *graph, const Node *node) {
    static const bool ops[OP_COUNT] = {
        [OP_sign] = true, [OP_floor] = true, [OP_ceil] = true, [OP_round] = true, [OP_argmax] = true, [OP_mod] = true,
        [OP_eq] = true,   [OP_ne] = true,    [OP_lt] = true,   [OP_le] = true,    [OP_gt] = true,     [OP_ge] = true};
    return ops[node->op] || (node->op == OP_convert && !tg_is_float(tg_type_of(&graph->types, node->type)->dtype));
}

/* Conversions to it round in f64 too. */
static bool is_narrow(const Graph *graph, const Node *node) {
    DType dtype = tg_type_of(&graph->types, node->type)->dtype;
    return dtype == DT_BF16 || dtype == DT_F16;
}

/* Sums in another order, in f64. */
static bool near_in_f64(Suite *s, const Trial *t, const char *what, const Outcome *a, const Outcome *b) {
    bool rounds = any_node(t->r.graph, is_narrow) || tg_is_mixed(&t->r.graph->training);
    if (t->r.wild || (rounds && any_node(t->r.graph, jumps)))
        return !a->failed && !b->failed;
    return same_outcome(s, t, what, a, b, rounds ? narrow : real);
}

/* ---- in the evaluator ---- */

static const Func *rows_func(const Graph *graph) {
    return tg_func_find(graph, graph->level == LEVEL_MODEL ? FUNC_OBJECTIVE : FUNC_MICRO, NULL);
}

static void see_fields(Suite *s, Outcome *out, const char *when, const StepFields *fields) {
    for (uint32_t i = 0; i < fields->count; i++)
        see(s, out, when, fields->names[i], (Tensor){.count = 1, .at = &fields->values[i]});
}

static Status export_rows(Suite *s, EvalState *state, const Graph *graph, const Func *func, Outcome *out) {
    Tensor *results = TG_ALLOC(&s->arena, Tensor, func->results.count + 1);
    TG_TRY(tg_step_compute_scalars(state, &s->diags, graph));
    TG_TRY(tg_eval_func(state, graph, func, &s->diags, results));
    for (uint32_t i = 0; i < func->results.count; i++)
        see(s, out, tg_arena_printf(&s->arena, " of %lld rows", (long long)state->rows), func->results.at[i].name,
            results[i]);
    return TG_OK;
}

static StepRecords records_of(const Trial *t, int step) {
    int64_t batch = t->r.graph->training.batch;
    return (StepRecords){t->r.args, 0, step && batch > 1 ? batch - 1 : batch};
}

static Status evaluate_steps(Suite *s, const Trial *t, const Graph *graph, EvalState *state, Outcome *out) {
    static const char *const when[] = {" in step 1", " in step 2"};
    StepFields fields;
    TG_TRY(tg_step_init(state, &s->diags, graph));
    for (int step = 0; step < STEPS; step++) {
        StepRecords records = records_of(t, step);
        state->iteration = (uint64_t)step;
        tg_step_set_scalar(state, graph, "step", step + 1);
        TG_TRY(tg_step_run(state, &s->diags, graph, &records, &fields));
        see_fields(s, out, when[step], &fields);
        see(s, out, when[step], "finite", (Tensor){.count = 1, .at = &(double){fields.finite}});
    }
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        if (graph->buffers.at[i].class != BUFFER_SUM)
            see(s, out, "", graph->buffers.at[i].name, state->buffers[i]);
    StepRecords all = records_of(t, 0);
    TG_TRY(tg_step_evaluate(state, &s->diags, graph, &all, &fields));
    see_fields(s, out, " in validation", &fields);
    return TG_OK;
}

static void begin_rows(Suite *s, const Trial *t, const Graph *graph, int64_t rows, EvalState *state) {
    const Func *func = tg_func_find(graph, FUNC_EXPORT, NULL);
    Tensor *args = TG_ALLOC(&s->arena, Tensor, func->args.count + 1);
    for (uint32_t i = 0; i < func->args.count; i++) {
        args[i] = t->r.args[i];
        args[i].count = tg_type_count(tg_type_of(&graph->types, func->args.at[i].type), rows);
    }
    state->args = args;
    state->rows = rows;
    state->first_row = 0;
    tg_step_set_scalar(state, graph, "records", (double)rows);
}

static Outcome evaluate(Suite *s, const Trial *t, const Graph *graph, EvalMode mode, Kind kind) {
    Outcome out = {0};
    EvalState state;
    tg_random_state(&s->arena, graph, rows_func(graph), 0, &state);
    state.mode = mode;
    state.seed = 1;
    trial_count(s, kind);
    Status status = evaluate_steps(s, t, graph, &state, &out);
    int64_t sizes[] = {1, graph->training.micro};
    for (int i = 0; i < 2 && status == TG_OK; i++) {
        begin_rows(s, t, graph, sizes[i], &state);
        status = export_rows(s, &state, graph, tg_func_find(graph, FUNC_EXPORT, NULL), &out);
    }
    if (status != TG_OK) {
        trial_complain(s, t, "the evaluator fails");
        out.failed = true;
    }
    return out;
}

/* Each function by itself: before there are gradients there is no step. */
static Outcome evaluate_funcs(Suite *s, const Trial *t, const Graph *graph, Kind kind) {
    Outcome out = {0};
    EvalState state;
    tg_random_state(&s->arena, graph, rows_func(graph), 0, &state);
    memcpy((double *)state.scalars, t->r.scalars, sizeof(double) * graph->scalars.count);
    state.seed = 1;
    state.rows = t->r.rows;
    state.args = t->r.args;
    state.gradients = t->r.buffers;
    trial_count(s, kind);
    for (uint32_t f = 0; f < graph->funcs.count; f++) {
        const Func *func = graph->funcs.at[f];
        Tensor *results = TG_ALLOC(&s->arena, Tensor, func->results.count + 1);
        if (tg_eval_func(&state, graph, func, &s->diags, results) != TG_OK) {
            trial_complain(s, t, "the evaluator fails");
            out.failed = true;
            return out;
        }
        for (uint32_t i = 0; i < func->results.count; i++) {
            const Result *result = &func->results.at[i];
            const char *name = result->kind == RESULT_VALUE ? result->name : graph->buffers.at[result->buffer].name;
            see(s, &out, tg_arena_printf(&s->arena, " of @%s", func->name), name, results[i]);
        }
    }
    return out;
}

/* One pass that keeps values, or merges rows, over whole steps. */
static void check_steps(Suite *s, const Trial *t, Kind kind, const char *names, bool fold, bool fuse, const Graph *in,
                        const Outcome *wanted) {
    Graph *out;
    if (!trial_passes(s, t, names, fold, fuse, in, &out))
        return;
    const char *what =
        tg_arena_printf(&s->arena, "passes %s%s%s", names, fold ? ", folded" : "", fuse ? "" : ", unfused");
    Outcome got = evaluate(s, t, out, EVAL_TYPED, kind);
    same_outcome(s, t, what, wanted, &got, bits);
}

static void check_each(Suite *s, const Trial *t, const Graph *in) {
    Outcome wanted = evaluate(s, t, in, EVAL_TYPED, KIND_PLAIN);
    for (int i = 0; i < PASS_COUNT; i++) {
        const PassInfo *pass = tg_pass(i);
        if (pass->from != in->level || (pass->effect != EFFECT_KEEPS && i != PASS_merge))
            continue;
        check_steps(s, t, (Kind)i, pass->name, false, true, in, &wanted);
        check_steps(s, t, (Kind)i, pass->name, true, pass->to != LEVEL_KERNEL, in, &wanted);
    }
    if (in->level == LEVEL_MODEL)
        return;
    check_steps(s, t, KIND_ALL, "clean,recompute,layout,fuse", true, true, in, &wanted);
    uint64_t random = t->seed;
    for (int i = 0; i < TRIAL_ORDERS; i++) {
        bool fold, fuse;
        const char *names = trial_order(s, &random, &fold, &fuse);
        check_steps(s, t, KIND_ORDER, names, fold, fuse, in, &wanted);
    }
}

static bool check_gradients(Suite *s, const Trial *t, const Graph *before, const Graph *after) {
    PassContext context = {.arena = &s->arena, .diags = &s->diags, .recompute = {RECOMPUTE_ALL, 0}};
    if (t->r.wild)
        return true;
    uint32_t directions = 0;
    EvalState point = tg_random_graph_state(&s->arena, &t->r, t->r.rows);
    trial_count(s, KIND_DIFFERENCES);
    Status status = tg_validate_gradients(&context, tg_pass(PASS_autodiff), before, after, &point, &directions);
    s->report->directions += directions;
    if (status == TG_OK)
        return true;
    trial_complain(s, t, "gradients are not differences");
    return false;
}

/* The next graph of the pipeline, whose steps are near the ones before. */
static bool advance(Suite *s, const Trial *t, int pass, const Outcome *wanted, Graph **graph) {
    const char *name = tg_pass(pass)->name;
    if (!trial_passes(s, t, name, false, true, *graph, graph))
        return false;
    Outcome got = evaluate(s, t, *graph, EVAL_REAL, (Kind)pass);
    return near_in_f64(s, t, tg_arena_printf(&s->arena, "pass %s", name), wanted, &got);
}

static bool check_functions(Suite *s, const Trial *t, const Graph *model, Graph **joint) {
    Outcome wanted = evaluate_funcs(s, t, model, KIND_PLAIN);
    for (int fold = 0; fold < 2; fold++) {
        Graph *out;
        if (!trial_passes(s, t, "simplify", fold, true, model, &out))
            return false;
        Outcome got = evaluate_funcs(s, t, out, (Kind)PASS_simplify);
        if (!same_outcome(s, t, "pass simplify", &wanted, &got, bits) ||
            !trial_passes(s, t, "autodiff", fold, true, model, joint))
            return false;
        got = evaluate_funcs(s, t, *joint, (Kind)PASS_autodiff);
        if (!same_outcome(s, t, "pass autodiff", &wanted, &got, bits))
            return false;
    }
    return check_gradients(s, t, model, *joint);
}

/* Rounding makes stairs, which have no slope: with a scale and without roundings gradients are differences too. */
static bool check_scaled(Suite *s, const Trial *t, const Graph *model) {
    Graph *joint;
    return trial_passes(s, t, "autodiff", true, true, model, &joint) && check_gradients(s, t, model, joint);
}

/* A low copy is its parameter, rounded: the update wrote both. */
static bool copies_follow(Suite *s, const Trial *t, const char *what, const Graph *graph, const Outcome *seen) {
    for (uint32_t i = 0; !seen->failed && i < graph->buffers.count; i++) {
        const Buffer *buffer = &graph->buffers.at[i];
        if (buffer->class != BUFFER_COPY)
            continue;
        const Tensor *copy = find(seen, buffer->name), *param = find(seen, buffer->name + strlen("copy."));
        for (int64_t k = 0; k < copy->count; k++)
            if (!tg_same_value(copy->at[k], tg_round_to(tg_type_of(&graph->types, buffer->type)->dtype, param->at[k]))) {
                trial_complain(s, t, "%s: element %lld of %s is %.9g, of the parameter %.9g", what, (long long)k, buffer->name, copy->at[k],
                               param->at[k]);
                return false;
            }
    }
    return !seen->failed;
}

/* To the evaluator a copy has the bits of the cast. */
static bool make_copies(Suite *s, const Trial *t, Graph **graph) {
    Outcome wanted = evaluate(s, t, *graph, EVAL_TYPED, KIND_PLAIN);
    if (!trial_passes(s, t, "copies", t->seed % 2 != 0, true, *graph, graph))
        return false;
    Outcome got = evaluate(s, t, *graph, EVAL_TYPED, (Kind)PASS_copies);
    return same_outcome(s, t, "pass copies", &wanted, &got, bits) && copies_follow(s, t, "pass copies", *graph, &got);
}

/* Steps that a scale of f16 has made overflow. */
static void count_overflows(Suite *s, const Graph *graph, const Outcome *seen) {
    if (graph->training.precision == DT_F16 && graph->training.loss_scale != 1)
        for (int step = 0; step < STEPS; step++)
            s->report->overflows += find(seen, step ? "finite in step 2" : "finite in step 1")->at[0] == 0;
}

/* As a user compiles it, each pass validated but in mixed precision, whose roundings some losses make more of than --validate allows. */
static bool check_pipeline(Suite *s, const Trial *t, const Graph *model, const Outcome *wanted) {
    PassContext context = {.arena = &s->arena, .diags = &s->diags, .recompute = {RECOMPUTE_ALL, 0}};
    PassOptions options = tg_pass_options();
    options.validate = !t->r.wild && !tg_is_mixed(&model->training) && t->seed % 2 == 0;
    options.no_fuse = t->seed % 3 == 0;
    Graph *out;
    if (tg_phases_run(&context, &options, NULL, model, &out) != TG_OK) {
        trial_complain(s, t, "the pipeline fails");
        return false;
    }
    Outcome got = evaluate(s, t, out, EVAL_REAL, KIND_ALL);
    return near_in_f64(s, t, "the pipeline", wanted, &got);
}

bool trial_check_model(Suite *s, Trial *t) {
    Graph *graph;
    const Graph *model = t->r.graph;
    uint64_t failures = s->report->failures;
    if (tg_graph_verify(model, &s->diags) != TG_OK) {
        trial_complain(s, t, "the graph breaks a rule");
        return false;
    }
    const Graph *cast = model;
    if (tg_is_mixed(&model->training)) {
        Graph *out;
        if (!check_scaled(s, t, model) || !trial_cast(s, t, model, &out))
            return false;
        cast = out;
    }
    if (!check_functions(s, t, cast, &graph))
        return false;
    Outcome wanted = evaluate(s, t, graph, EVAL_REAL, KIND_PLAIN);
    if (!advance(s, t, PASS_optimizer, &wanted, &graph))
        return false;
    check_each(s, t, graph);
    if (!advance(s, t, PASS_batch, &wanted, &graph) || !make_copies(s, t, &graph) || !advance(s, t, PASS_attention, &wanted, &graph))
        return false;
    count_overflows(s, graph, &wanted);
    for (int step = 0; step < STEPS; step++)
        s->report->open_steps += find(&wanted, step ? "finite in step 2" : "finite in step 1")->at[0] != 0;
    s->report->steps += STEPS;
    check_each(s, t, graph);
    t->base = graph;
    return check_pipeline(s, t, model, &wanted) && failures == s->report->failures;
}

/* ---- on the CPU ---- */

void trial_lower_model(Suite *s, Trial *t) {
    bool fold = t->seed % 2 != 0;
    Graph *base;
    if (!trial_passes(s, t, fold ? "merge,clean,recompute,layout" : "recompute,layout", fold, true, t->base, &base))
        return;
    t->base = base;
    t->lowered = trial_lower(s, t, base, true, &t->fused) && trial_lower(s, t, base, false, &t->unfused);
}

static RecordSet record_set(Suite *s, const Trial *t) {
    static const PlanDataSet plan = {.name = "set", .as = "", .split = ""};
    uint32_t count = t->r.func->args.count;
    PlanField *fields = TG_ALLOC(&s->arena, PlanField, count + 1);
    RecordSet set = {
        .plan = &plan, .fields = fields, .field_count = count, .file_records = t->r.rows, .count = t->r.rows};
    set.values = TG_ALLOC(&s->arena, const unsigned char *, count + 1);
    set.record_bytes = TG_ALLOC(&s->arena, size_t, count + 1);
    set.records = TG_ALLOC(&s->arena, int64_t, set.count);
    for (int64_t i = 0; i < set.count; i++)
        set.records[i] = i;
    for (uint32_t i = 0; i < count; i++) {
        const Tensor *value = &t->r.args[i];
        DType dtype = tg_type_of(&t->r.graph->types, value->type)->dtype;
        size_t bytes = (size_t)value->count * tg_dtype(dtype)->bytes;
        unsigned char *at = tg_arena_alloc(&s->arena, bytes + 1);
        for (int64_t k = 0; k < value->count; k++)
            tg_element_set(dtype, at, k, value->at[k]);
        fields[i] = (PlanField){.name = t->r.func->args.at[i].name, .dtype = dtype};
        set.values[i] = at;
        set.record_bytes[i] = bytes / (size_t)set.count;
    }
    return set;
}

static void see_loop_fields(Suite *s, Outcome *out, const char *when, const LoopFields *fields) {
    for (uint32_t i = 0; i < fields->count; i++)
        see(s, out, when, fields->names[i], (Tensor){.count = 1, .at = &fields->values[i]});
}

static void see_buffers(Suite *s, const Trial *t, TgExec *exec, const TgPlan *plan, Outcome *out) {
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        int32_t buffer = plan->buffers[i].class <= PLAN_COPY ? tg_buffer_find(t->base, plan->buffers[i].name) : -1;
        if (buffer < 0)
            continue;
        TypeId type = t->base->buffers.at[buffer].type;
        see(s, out, "", plan->buffers[i].name,
            trial_read(s, exec, plan, i, tg_type_of(&t->base->types, type), type, 0));
    }
}

static void run_exports(Suite *s, const Trial *t, TgExec *exec, const TgPlan *plan, Outcome *out) {
    const Func *func = tg_func_find(t->base, FUNC_EXPORT, NULL);
    for (uint32_t f = 0; f < plan->func_count; f++) {
        const PlanFunc *run = &plan->funcs[f];
        if (run->kind != PLAN_EXPORT)
            continue;
        int64_t rows = run->capacity;
        EvalState state = {0};
        double none[RANDOM_SCALARS * 4] = {0};
        state.scalars = none;
        begin_rows(s, t, t->base, rows, &state);
        for (uint32_t i = 0; i < run->input_count; i++)
            trial_write(exec, plan, plan->inputs[run->input_first + i], &state.args[i], rows);
        tg_exec_scalars(exec)->rows = rows;
        tg_exec_scalars(exec)->first_row = 0;
        for (uint32_t i = 0; i < plan->scalar_count; i++)
            if (strcmp(plan->scalars[i].name, "records") == 0)
                tg_exec_values(exec)[i] = (double)rows;
        tg_exec_compute_scalars(exec);
        tg_exec_run(exec, run, 0);
        for (uint32_t i = 0; i < run->result_count; i++) {
            const PlanResult *result = &plan->results[run->result_first + i];
            TypeId type = tg_node(func, func->results.at[i].node)->type;
            see(s, out, tg_arena_printf(&s->arena, " of %lld rows", (long long)rows), result->name,
                trial_read(s, exec, plan, result->buffer, tg_type_of(&t->base->types, type), type, rows));
        }
    }
}

static void run_steps(Suite *s, const Trial *t, Loop *loop, const RecordSet *set, Outcome *out) {
    static const char *const when[] = {" in step 1", " in step 2"};
    *tg_loop_builtin(loop, "step") = 1;
    tg_exec_scalars(loop->exec)->seed = 1;
    tg_exec_scalars(loop->exec)->rows = 1;
    tg_exec_run(loop->exec, tg_plan_func(loop->plan, PLAN_INIT, NULL), 0);
    const PlanFunc *copies = tg_plan_func(loop->plan, PLAN_COPIES, NULL);
    if (copies != NULL)
        tg_exec_run(loop->exec, copies, 0);
    for (int step = 0; step < STEPS; step++) {
        Batch batch = {.set = set, .records = set->records, .count = records_of(t, step).count};
        StepEnd end = tg_loop_step(loop, &batch, &(LoopPlace){.step = step + 1, .iteration = step});
        see_loop_fields(s, out, when[step], &loop->fields);
        see(s, out, when[step], "finite", (Tensor){.count = 1, .at = &(double){end == STEP_DONE || end == STEP_EMPTY}});
    }
    see_buffers(s, t, loop->exec, loop->plan, out);
    tg_loop_evaluate(loop);
    for (uint32_t i = 0; i < loop->set_count; i++)
        see_loop_fields(s, out, " in validation", &loop->sets[i].fields);
}

static Outcome run(Suite *s, const Trial *t, const Variant *v, int threads, Kind kind) {
    Outcome out = {.failed = true};
    TgExec *exec;
    if (!trial_open(s, t, v, threads, &exec))
        return out;
    RecordSet set = record_set(s, t);
    Loop loop;
    const char *why;
    trial_count(s, kind);
    if (tg_loop_open(&loop, &s->arena, v->lowered.plan, exec, &set, &set, 1, &why) == TG_OK) {
        out.failed = false;
        run_steps(s, t, &loop, &set, &out);
        run_exports(s, t, exec, v->lowered.plan, &out);
    } else {
        trial_complain(s, t, "%s", why);
    }
    tg_exec_close(exec);
    return out;
}

/* A little rounding stays little. */
static bool is_smooth(const Graph *graph) { return !any_node(graph, jumps) && !any_node(graph, is_narrow); }

void trial_run_model(Suite *s, const Trial *t) {
    Outcome unfused = run(s, t, &t->unfused, 1, KIND_UNFUSED), fused = run(s, t, &t->fused, 1, KIND_FUSED);
    if (!same_outcome(s, t, "fused on the CPU", &unfused, &fused, bits))
        return;
    Outcome parallel = run(s, t, &t->fused, 2, KIND_THREADS);
    if (!same_outcome(s, t, "two threads", &fused, &parallel, bits) || !copies_follow(s, t, "on the CPU", t->base, &fused) || t->r.wild || !is_smooth(t->r.graph))
        return;
    Outcome wanted = evaluate(s, t, t->base, EVAL_TYPED, KIND_PLAIN);
    same_outcome(s, t, "on the CPU", &wanted, &fused, tg_is_mixed(&t->r.graph->training) ? narrow : (Tolerance){0.02, 1});
}
