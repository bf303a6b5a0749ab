/* tgc explain FILE.tg:LINE: the shapes of a line, its casts, the kernels and calls that it became, and what they cost. */
#include "driver/explain.h"

#include "driver/trace.h"
#include "driver/units.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 8 };

/* Steps of the plan that are alike: the same function, kernel or dot of one shape, and lines. */
typedef struct KernelRow {
    const PlanFunc *func;
    const PlanStep *step; /* the first of them */
    int64_t calls;
    double bytes, flops, time, roof; /* time, roof: microseconds of a training step */
} KernelRow;

typedef struct Explain {
    Pipeline *p;
    uint16_t file;
    uint32_t line, lines; /* lines: of the file */
    Vec(KernelRow) rows;
    Trace trace;          /* document NULL: none */
    const TraceRun **runs; /* of each step of the plan; NULL without a trace or if it never ran */
    const char *untimed;   /* why a trace that is there says nothing; NULL: it does, or there is none */
} Explain;

/* ---- places ---- */

static bool is_there(const Explain *e, Loc loc) { return loc.file == e->file && loc.line == e->line; }

static bool node_is_there(const Explain *e, const Graph *graph, LocsId locs) {
    Loc places[PLACES];
    uint32_t count = tg_locs_list(graph, locs, places, PLACES);
    for (uint32_t i = 0; i < count; i++)
        if (is_there(e, places[i]))
            return true;
    return false;
}

static const char *source_path(const Explain *e) { return e->p->sources->files.at[e->file].path; }

static const char *source_line(const Explain *e, uint32_t line, int *length) {
    const char *at = e->p->sources->files.at[e->file].text;
    for (uint32_t i = 1; i < line; i++)
        at = strchr(at, '\n') + 1;
    at += strspn(at, " \t");
    *length = (int)strcspn(at, "\r\n");
    return at;
}

static uint32_t count_lines(const Source *source) {
    uint32_t count = 0;
    for (size_t i = 0; i < source->length; i++)
        count += source->text[i] == '\n';
    return count + (source->length && source->text[source->length - 1] != '\n');
}

/* ---- shapes, parameters, values, casts ---- */

static const char *type_text(const Explain *e, const Type *type) {
    Str text = tg_str(e->p->arena);
    tg_type_print(&text, type);
    return text.text;
}

/* The function of graph@model that shows the line: the objective, or the first that has something of it. */
static const Func *showing_func(const Explain *e) {
    const Graph *graph = e->p->model;
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (NodeId id = 1; id < graph->funcs.at[f]->nodes.count; id++) {
            const Node *node = tg_node(graph->funcs.at[f], id);
            if (tg_op((Op)node->op)->fuse != FUSE_leaf && node_is_there(e, graph, node->locs))
                return graph->funcs.at[f];
        }
    return NULL;
}

/* Operations of one type of result. */
typedef struct ValueRow {
    TypeId type;
    uint32_t ops[OP_COUNT];
} ValueRow;
typedef Vec(ValueRow *) ValueRows;

static ValueRows find_values(const Explain *e, const Func *func) {
    ValueRows rows = {0};
    for (NodeId id = 1; func && id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        if (tg_op((Op)node->op)->fuse == FUSE_leaf || !node_is_there(e, e->p->model, node->locs))
            continue;
        uint32_t at = 0;
        while (at < rows.count && rows.at[at]->type != node->type)
            at++;
        if (at == rows.count) {
            tg_push(e->p->arena, &rows, TG_ALLOC(e->p->arena, ValueRow, 1));
            rows.at[at]->type = node->type;
        }
        rows.at[at]->ops[node->op]++;
    }
    return rows;
}

/* "dot x4, add" */
static const char *ops_text(const Explain *e, const ValueRow *row) {
    Str text = tg_str(e->p->arena);
    for (int op = 0; op < OP_COUNT; op++)
        if (row->ops[op]) {
            tg_str_printf(&text, "%s%s", text.length ? ", " : "", tg_op((Op)op)->name);
            if (row->ops[op] > 1)
                tg_str_printf(&text, " x%u", row->ops[op]);
        }
    return text.text;
}

static const char *row_type(const Explain *e, const ValueRow *row) { return type_text(e, tg_type_of(&e->p->model->types, row->type)); }

typedef struct CastRow {
    const char *from, *to, *rule, *place;
    uint32_t count;
} CastRow;
typedef Vec(CastRow) CastRows;

/* Where a cast stands if not in the line itself: in the library. */
static const char *cast_place(const Explain *e, LocsId locs) {
    Loc places[PLACES];
    uint32_t count = tg_locs_list(e->p->model, locs, places, PLACES);
    for (uint32_t i = 0; i < count; i++)
        if (places[i].file != e->file)
            return tg_arena_printf(e->p->arena, "%s:%u", e->p->sources->files.at[places[i].file].path, places[i].line);
    return "this line";
}

static void add_cast(const Explain *e, CastRows *rows, CastRow row) {
    uint32_t at = 0;
    while (at < rows->count && (strcmp(rows->at[at].from, row.from) || strcmp(rows->at[at].to, row.to) ||
                                strcmp(rows->at[at].rule, row.rule) || strcmp(rows->at[at].place, row.place)))
        at++;
    if (at == rows->count)
        tg_push(e->p->arena, rows, row);
    rows->at[at].count++;
}

static const char *type_with(const Explain *e, TypeId type, DType dtype) {
    Type other = *tg_type_of(&e->p->model->types, type);
    other.dtype = dtype;
    return type_text(e, &other);
}

/* Those in the source, and those that mixed precision adds. */
static CastRows find_casts(const Explain *e, const Func *func) {
    const Graph *graph = e->p->model;
    CastRows rows = {0};
    for (NodeId id = 1; func && id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        if (node->op == OP_convert && node_is_there(e, graph, node->locs))
            add_cast(e, &rows, (CastRow){type_text(e, tg_node_type(graph, func, tg_operand(func, node, 0))),
                                         type_text(e, tg_node_type(graph, func, id)), "written", cast_place(e, node->locs), 0});
    }
    for (uint32_t i = 0; i < e->p->ran->casts.count; i++) {
        const PassCast *cast = &e->p->ran->casts.at[i];
        if (cast->func == func && node_is_there(e, graph, cast->locs))
            add_cast(e, &rows, (CastRow){type_with(e, cast->type, cast->from), type_with(e, cast->type, cast->to), cast->rule,
                                         cast_place(e, cast->locs), 0});
    }
    return rows;
}

static void print_values(const Explain *e, const Func *func) {
    ValueRows rows = find_values(e, func);
    if (rows.count)
        printf("\nvalues (%s)\n", func->name);
    for (uint32_t i = 0; i < rows.count; i++)
        printf("  %-20s %s\n", row_type(e, rows.at[i]), ops_text(e, rows.at[i]));
}

static void print_casts(const Explain *e, const Func *func) {
    CastRows rows = find_casts(e, func);
    if (rows.count)
        printf("\ncasts\n");
    for (uint32_t i = 0; i < rows.count; i++) {
        const CastRow *row = &rows.at[i];
        printf("  %s -> %s, %s%s in %s", row->from, row->to, row->rule, strcmp(row->rule, "written") ? "," : "", row->place);
        if (row->count > 1)
            printf(" (%u times)", row->count);
        printf("\n");
    }
}

static const char *const class_names[] = {[BUFFER_PARAM] = "parameter", [BUFFER_STATE] = "state"};

static bool is_declared_there(const Explain *e, const Buffer *buffer) {
    return (buffer->class == BUFFER_PARAM || buffer->class == BUFFER_STATE) && is_there(e, buffer->loc);
}

static double buffer_bytes(const Explain *e, const Buffer *buffer) {
    const Type *type = tg_type_of(&e->p->model->types, buffer->type);
    return (double)tg_type_count(type, 1) * tg_dtype(type->dtype)->bytes;
}

static void print_buffers(const Explain *e) {
    const Graph *graph = e->p->model;
    bool any = false;
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        const Buffer *buffer = &graph->buffers.at[i];
        if (!is_declared_there(e, buffer))
            continue;
        if (!any)
            printf("\ndeclared\n");
        any = true;
        printf("  %-10s %-20s %10s  %s%s\n", class_names[buffer->class], type_text(e, tg_type_of(&graph->types, buffer->type)),
               tg_bytes_text(e->p->arena, buffer_bytes(e, buffer)), buffer->name, buffer->frozen ? ", frozen" : "");
    }
}

/* ---- kernels and calls ---- */

static bool has_line(const PlanStep *step, const PlanLine *line) {
    for (uint32_t i = 0; i < step->line_count; i++)
        if (step->lines[i].line == line->line && strcmp(step->lines[i].file, line->file) == 0)
            return true;
    return false;
}

static bool same_lines(const PlanStep *a, const PlanStep *b) {
    bool same = a->line_count == b->line_count;
    for (uint32_t i = 0; i < a->line_count && same; i++)
        same = has_line(b, &a->lines[i]);
    return same;
}

static bool are_alike(const TgPlan *plan, const PlanStep *a, const PlanStep *b) {
    if (a->kind != b->kind || !same_lines(a, b))
        return false;
    if (a->kind == STEP_ATTENTION)
        return plan->attentions[a->index].backward == plan->attentions[b->index].backward && a->flops == b->flops;
    if (a->kind != STEP_DOT)
        return a->kind == STEP_COPY || a->index == b->index;
    const PlanDot *x = &plan->dots[a->index], *y = &plan->dots[b->index];
    return x->groups == y->groups && x->m == y->m && x->n == y->n && x->k == y->k;
}

static bool step_is_there(const Explain *e, const PlanStep *step) {
    return has_line(step, &(PlanLine){.file = source_path(e), .line = e->line});
}

static void add_step(Explain *e, const PlanFunc *func, uint32_t index) {
    const TgPlan *plan = e->p->lowered.plan;
    const PlanStep *step = &plan->steps[index];
    uint32_t at = 0;
    while (at < e->rows.count && (e->rows.at[at].func != func || !are_alike(plan, e->rows.at[at].step, step)))
        at++;
    if (at == e->rows.count)
        tg_push(e->p->arena, &e->rows, (KernelRow){.func = func, .step = step});
    KernelRow *row = &e->rows.at[at];
    row->calls++;
    row->bytes += step->bytes;
    row->flops += step->flops;
    if (e->runs && e->runs[index]) {
        row->time += e->runs[index]->time;
        row->roof += e->runs[index]->roof;
    }
}

static void find_steps(Explain *e) {
    const TgPlan *plan = e->p->lowered.plan;
    for (uint32_t f = 0; f < plan->func_count; f++)
        for (uint32_t i = 0; i < plan->funcs[f].step_count; i++)
            if (step_is_there(e, &plan->steps[plan->funcs[f].step_first + i]))
                add_step(e, &plan->funcs[f], plan->funcs[f].step_first + i);
}

static const char *func_name(const Explain *e, const PlanFunc *func) {
    return func->kind == PLAN_EXPORT ? tg_arena_printf(e->p->arena, "%s, B = %lld", func->name, (long long)func->capacity) : func->name;
}

static const char *operation(const Explain *e, const PlanStep *step) {
    if (step->kind == STEP_COPY)
        return "";
    if (step->kind == STEP_KERNEL)
        return tg_arena_printf(e->p->arena, "k%u %s", step->index, step->label);
    if (step->kind == STEP_ATTENTION) {
        const PlanAttention *a = &e->p->lowered.plan->attentions[step->index];
        return tg_arena_printf(e->p->arena, "%lld x [%lld,%lld] by blocks", (long long)(a->keys * a->heads), (long long)a->queries,
                               (long long)a->positions);
    }
    const PlanDot *dot = &e->p->lowered.plan->dots[step->index];
    const char *groups = dot->groups > 1 ? tg_arena_printf(e->p->arena, "%lld x ", (long long)dot->groups) : "";
    return tg_arena_printf(e->p->arena, "%s[%lld,%lld]@[%lld,%lld]", groups, (long long)dot->m, (long long)dot->k,
                           (long long)dot->k, (long long)dot->n);
}

/* "with 44, 45, <std>/nn.tg:28" */
static const char *shared_lines(const Explain *e, const PlanStep *step) {
    Str text = tg_str(e->p->arena);
    for (uint32_t i = 0; i < step->line_count; i++) {
        const PlanLine *line = &step->lines[i];
        bool own = strcmp(line->file, source_path(e)) == 0;
        if (own && line->line == e->line)
            continue;
        tg_str_printf(&text, "%s", text.length ? ", " : "with ");
        if (!own)
            tg_str_printf(&text, "%s:", line->file);
        tg_str_printf(&text, "%u", line->line);
    }
    return text.text;
}

static void print_time(const Explain *e, const KernelRow *row) {
    printf(" %11s %5.1f %% %4.0f %%", trace_time(e->p->arena, &e->trace, row->time), 100 * row->time / e->trace.time,
           100 * row->roof / row->time);
}

static void print_kernels(const Explain *e) {
    Arena *arena = e->p->arena;
    bool timed = e->runs != NULL;
    KernelRow all = {0};
    const PlanFunc *func = NULL;
    size_t width = 9;
    for (uint32_t i = 0; i < e->rows.count; i++) {
        size_t length = strlen(operation(e, e->rows.at[i].step));
        width = length > width ? length : width;
    }
    printf("\n%-13s %6s %10s %9s", "kernels", "calls", "bytes", "FLOP");
    if (timed)
        printf("   %s %7s %6s", trace_in_microseconds(&e->trace) ? "µs a step" : "ms a step", "share", "roof");
    printf("  %-*s  %s\n", (int)width, "operation", "fused");
    for (uint32_t i = 0; i < e->rows.count; i++) {
        const KernelRow *row = &e->rows.at[i];
        if (row->func != func)
            printf("  %s\n", func_name(e, row->func));
        func = row->func;
        printf("    %-13s %4lld %10s %9s", tg_plan_kind(func, row->step), (long long)row->calls, tg_bytes_text(arena, row->bytes),
               units_count(arena, row->flops));
        if (row->time > 0)
            print_time(e, row);
        else if (timed)
            printf(" %27s", "");
        printf("  %-*s  %s\n", (int)width, operation(e, row->step), shared_lines(e, row->step));
        all.time += row->time, all.roof += row->roof;
    }
    if (timed && all.time > 0) {
        printf("%42s", "in a training step");
        print_time(e, &all);
        printf("\n");
    }
}

/* ---- JSON ---- */

static json_t *values_json(const Explain *e, const Func *func) {
    json_t *list = json_array();
    ValueRows rows = find_values(e, func);
    for (uint32_t i = 0; i < rows.count; i++) {
        json_t *ops = json_object();
        for (int op = 0; op < OP_COUNT; op++)
            if (rows.at[i]->ops[op])
                json_object_set_new(ops, tg_op((Op)op)->name, json_integer(rows.at[i]->ops[op]));
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", row_type(e, rows.at[i]), "ops", ops));
    }
    return list;
}

static json_t *casts_json(const Explain *e, const Func *func) {
    json_t *list = json_array();
    CastRows rows = find_casts(e, func);
    for (uint32_t i = 0; i < rows.count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:i}", "from", rows.at[i].from, "to", rows.at[i].to, "rule",
                                              rows.at[i].rule, "place", rows.at[i].place, "count", (int)rows.at[i].count));
    return list;
}

static json_t *buffers_json(const Explain *e) {
    const Graph *graph = e->p->model;
    json_t *list = json_array();
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        const Buffer *buffer = &graph->buffers.at[i];
        if (is_declared_there(e, buffer))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "name", buffer->name, "class", class_names[buffer->class],
                                                  "type", type_text(e, tg_type_of(&graph->types, buffer->type)), "bytes",
                                                  (json_int_t)buffer_bytes(e, buffer)));
    }
    return list;
}

static json_t *kernels_json(const Explain *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < e->rows.count; i++) {
        const KernelRow *row = &e->rows.at[i];
        json_t *lines = json_array();
        for (uint32_t k = 0; k < row->step->line_count; k++)
            json_array_append_new(lines, json_string(tg_arena_printf(e->p->arena, "%s:%u", row->step->lines[k].file, row->step->lines[k].line)));
        json_t *object = json_pack("{s:s, s:I, s:s, s:s, s:I, s:f, s:f, s:o}", "function", row->func->name, "rows",
                                   (json_int_t)row->func->capacity, "kind", tg_plan_kind(row->func, row->step), "operation",
                                   operation(e, row->step), "calls", (json_int_t)row->calls, "bytes", row->bytes, "flops", row->flops,
                                   "lines", lines);
        if (row->time > 0) {
            json_object_set_new(object, "ms", json_real(1e-3 * row->time));
            json_object_set_new(object, "share", json_real(row->time / e->trace.time));
            json_object_set_new(object, "roof", json_real(row->roof / row->time));
        }
        json_array_append_new(list, object);
    }
    return list;
}

static void print_json(const Explain *e, const char *text, int length, const char *shapes, const Func *func) {
    json_t *document = json_pack("{s:s, s:i, s:s#, s:s, s:o, s:o, s:o, s:o}", "file", source_path(e), "line", (int)e->line, "text", text,
                                 length, "shapes", shapes, "declared", buffers_json(e), "values", values_json(e, func), "casts",
                                 casts_json(e, func), "kernels", kernels_json(e));
    if (e->runs)
        json_object_set_new(document, "trace", json_string(e->trace.path));
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(document);
}

/* ---- the trace ---- */

static bool is_newer(const char *path, const char *than) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(than, &b) == 0 &&
           (a.st_mtim.tv_sec > b.st_mtim.tv_sec ||
            (a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec >= b.st_mtim.tv_nsec));
}

/* Its steps are those of the plan: the same model, settings and compiler. */
static bool fits(const Explain *e) {
    const TgPlan *plan = e->p->lowered.plan;
    for (uint32_t i = 0; i < e->trace.run_count; i++) {
        const TraceRun *run = &e->trace.runs[i];
        if (run->plan_step >= plan->step_count || strcmp(plan->steps[run->plan_step].label, run->op) != 0 ||
            (int64_t)plan->steps[run->plan_step].bytes != (int64_t)run->call_bytes)
            return false;
    }
    return true;
}

/* The one that is named, or the newest of the run that is named after the model, if there is one. */
static Status open_trace(Explain *e) {
    const char *named = e->p->cli->value[CLI_TRACE], *model = e->p->cli->arguments.at[0];
    const char *path = trace_path(e->p, named ? named : model);
    if (named == NULL && access(path, F_OK) != 0)
        return TG_OK;
    if (named == NULL && !is_newer(path, model)) {
        e->untimed = tg_arena_printf(e->p->arena, "%s is older than the model", path);
        return TG_OK;
    }
    TG_TRY(trace_open(e->p, path, &e->trace));
    if (!fits(e)) {
        trace_close(&e->trace);
        e->untimed = tg_arena_printf(e->p->arena, "%s is of other settings", path);
        if (named == NULL)
            return TG_OK;
        tg_error(e->p->diags, (Loc){0}, "%s is of another program than %s: of other settings, or of another version of it; 'tgc train %s "
                 "--profile=20' makes a new one", path, model, model);
        return TG_MODEL;
    }
    e->runs = TG_ALLOC(e->p->arena, const TraceRun *, e->p->lowered.plan->step_count);
    for (uint32_t i = 0; i < e->trace.run_count; i++)
        e->runs[e->trace.runs[i].plan_step] = &e->trace.runs[i];
    return TG_OK;
}

/* ---- lines without operations ---- */

static bool has_operations(Explain *e, uint32_t line) {
    Explain other = *e;
    other.line = line;
    const TgPlan *plan = e->p->lowered.plan;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (step_is_there(&other, &plan->steps[i]))
            return true;
    return showing_func(&other) != NULL;
}

static Loc loc_of(const Explain *e, uint32_t line) {
    int length;
    const char *start = e->p->sources->files.at[e->file].text;
    for (uint32_t i = 1; i < line; i++)
        start = strchr(start, '\n') + 1;
    const char *text = source_line(e, line, &length);
    uint16_t column = (uint16_t)(text - start + 1);
    return (Loc){.file = e->file, .column = column, .end_column = (uint16_t)(column + length), .line = line};
}

static Status say_nearest(Explain *e) {
    tg_error(e->p->diags, (Loc){.file = e->file, .line = e->line, .column = 1, .end_column = 1}, "the line has no operations");
    uint32_t before = e->line, after = e->line;
    do
        before--;
    while (before && !has_operations(e, before));
    do
        after++;
    while (after <= e->lines && !has_operations(e, after));
    if (before)
        tg_note(e->p->diags, loc_of(e, before), "the nearest before it that has some is line %u", before);
    if (after <= e->lines)
        tg_note(e->p->diags, loc_of(e, after), "the nearest after it is line %u", after);
    return TG_MODEL;
}

/* ---- the command ---- */

bool explain_is_line(const char *argument) { return strstr(argument, ".tg") || strchr(argument, ':'); }

/* ":20", and ":20:9" as a message has it, off the end of a path; where it begins. */
static const char *line_suffix(const char *argument, long *line) {
    const char *end = argument + strlen(argument), *found = NULL;
    for (int i = 0; i < 2; i++) {
        const char *colon = end;
        while (colon > argument && colon[-1] >= '0' && colon[-1] <= '9')
            colon--;
        if (colon == end || colon < argument + 2 || colon[-1] != ':')
            break;
        *line = strtol(colon, NULL, 10);
        found = end = colon - 1;
    }
    return found;
}

static Status split_argument(Pipeline *p, const char *argument, const char **path, uint32_t *line) {
    long number = 0;
    const char *suffix = line_suffix(argument, &number), *colon = strchr(argument, ':');
    if (suffix == NULL || number < 1 || number > UINT32_MAX) {
        tg_error(p->diags, (Loc){0}, "which line? tgc explain %.*s:LINE; they count from 1",
                 (int)(colon ? colon - argument : (long)strlen(argument)), argument);
        return TG_USAGE;
    }
    *path = tg_arena_str(p->arena, argument, (size_t)(suffix - argument));
    *line = (uint32_t)number;
    return TG_OK;
}

/* The pipeline compiles what its command line names. */
static Status compile(Pipeline *p, const char *path) {
    Cli *cli = tg_arena_copy(p->arena, p->cli, sizeof *cli);
    cli->arguments = (Texts){0};
    tg_push(p->arena, &cli->arguments, path);
    p->cli = cli;
    for (int w = 0; w < WARNING_COUNT; w++)
        p->diags->state[w] = WARNING_OFF;
    return pipeline_run(p, STAGE_PLAN);
}

static Status print_line(Explain *e) {
    int length;
    const char *text = source_line(e, e->line, &length), *shapes = shapes_of_line(e->p, e->line);
    const Func *func = showing_func(e);
    find_steps(e);
    bool declares = false;
    for (uint32_t i = 0; i < e->p->model->buffers.count; i++)
        declares = declares || is_declared_there(e, &e->p->model->buffers.at[i]);
    if (func == NULL && e->rows.count == 0 && !declares)
        return say_nearest(e);
    if (e->p->cli->value[CLI_JSON]) {
        print_json(e, text, length, shapes, func);
        return TG_OK;
    }
    printf("%s:%u  %.*s\n", source_path(e), e->line, length, text);
    if (shapes[0])
        printf("\nshapes\n  %s\n", shapes);
    print_buffers(e);
    print_values(e, func);
    print_casts(e, func);
    if (e->rows.count)
        print_kernels(e);
    else
        printf("\nno kernel: what it gives is computed when compiling, or read where it stands\n");
    if (e->untimed)
        printf("\nno times: %s\n", e->untimed);
    return TG_OK;
}

Status explain_line(Pipeline *p) {
    Explain e = {.p = p};
    const char *path;
    TG_TRY(split_argument(p, p->cli->arguments.at[0], &path, &e.line));
    TG_TRY(compile(p, path));
    e.file = p->unit->file->loc.file;
    e.lines = count_lines(&p->sources->files.at[e.file]);
    if (e.line > e.lines) {
        tg_error(p->diags, (Loc){0}, "%s has %u lines, not %u", path, e.lines, e.line);
        return TG_MODEL;
    }
    TG_TRY(open_trace(&e));
    Status status = print_line(&e);
    trace_close(&e.trace);
    return status;
}
