/* A profile as a trace in Chrome's format, which Perfetto and `tgc profile` read: an event a line. */
#include "ir/base/file.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "runtime/json.h"
#include "runtime/profile.h"

#include <string.h>

enum { PROCESS = 1, TIME_DIGITS = 15 };

typedef struct Writer {
    const Profile *profile;
    Arena *arena;
    TgFileWriter file;
    int64_t origin;  /* nanoseconds of the trace's time 0 */
    json_t **steps;  /* per step of the plan: name, category and arguments of its events; NULL: none so far */
    json_t *texts;   /* "models/gpt.tg:20" -> the line */
    Map sources;     /* path -> 1 + index into `files` */
    Vec(const char *) files; /* texts; NULL: not to be read */
    const char *separator;
} Writer;

/* ---- lines of the source ---- */

static const char *source_text(Writer *w, const char *path) {
    uint64_t *known = tg_map_put(&w->sources, path, strlen(path), NULL);
    if (*known == 0) {
        char *text;
        size_t length;
        const char *why;
        if (tg_file_read(w->arena, path, &text, &length, &why) != TG_OK)
            text = NULL;
        tg_push(w->arena, &w->files, text);
        *known = w->files.count;
    }
    return w->files.at[*known - 1];
}

/* Without the space around it; NULL: there is no such line. */
static json_t *line_text(Writer *w, const PlanLine *line) {
    const char *at = source_text(w, line->file);
    for (uint32_t i = 1; at && i < line->line; i++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (at == NULL)
        return NULL;
    at += strspn(at, " \t");
    size_t length = strcspn(at, "\r\n");
    while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    return json_stringn(at, length);
}

static bool is_listed(const json_t *lines, const char *place) {
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
        if (strcmp(json_string_value(line), place) == 0)
            return true;
    return false;
}

/* Each line once; "<std>" stands for the library's, which say nothing that the user's own do not. */
static json_t *lines_of(Writer *w, const PlanStep *step) {
    json_t *lines = json_array();
    for (int library = 0; library < 2 && json_array_size(lines) == 0; library++)
        for (uint32_t i = 0; i < step->line_count; i++) {
            const PlanLine *line = &step->lines[i];
            const char *place = tg_arena_printf(w->arena, "%s:%u", line->file, line->line);
            if ((line->file[0] == '<') != (library == 1) || is_listed(lines, place))
                continue;
            json_array_append_new(lines, json_string(place));
            json_t *text = json_object_get(w->texts, place) ? NULL : line_text(w, line);
            if (text)
                json_object_set_new(w->texts, place, text);
        }
    return lines;
}

/* ---- events ---- */

static const char *dot_shape(Writer *w, const PlanDot *dot) {
    const char *groups = dot->groups > 1 ? tg_arena_printf(w->arena, "%lld x ", (long long)dot->groups) : "";
    return tg_arena_printf(w->arena, "%s[%lld,%lld]@[%lld,%lld]", groups, (long long)dot->m, (long long)dot->k,
                           (long long)dot->k, (long long)dot->n);
}

static const PlanFunc *func_of(const TgPlan *plan, uint32_t step) {
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (step - plan->funcs[i].step_first < plan->funcs[i].step_count)
            return &plan->funcs[i];
    return plan->funcs;
}

/* What all events of a step of the plan have in common. */
static json_t *describe_step(Writer *w, uint32_t index) {
    const TgPlan *plan = w->profile->plan;
    const PlanStep *step = &plan->steps[index];
    const PlanFunc *func = func_of(plan, index);
    json_t *lines = lines_of(w, step), *args = json_object();
    const char *name = step->label;
    if (json_array_size(lines)) {
        const char *first = json_string_value(json_array_get(lines, 0));
        json_object_set_new(args, "line", json_string(first));
        json_object_set(args, "text", json_object_get(w->texts, first));
    }
    json_object_set_new(args, "lines", lines);
    json_object_set_new(args, "op", json_string(step->label));
    if (step->kind == STEP_DOT) {
        const char *shape = dot_shape(w, &plan->dots[step->index]);
        json_object_set_new(args, "shape", json_string(shape));
        name = tg_arena_printf(w->arena, "%s %s", step->label, shape);
    }
    json_object_set_new(args, "kind", json_string(tg_plan_kind(func, step)));
    json_object_set_new(args, "function", json_string(func->name));
    json_object_set_new(args, "plan_step", json_integer(index));
    json_object_set_new(args, "bytes", json_integer((json_int_t)step->bytes));
    json_object_set_new(args, "flops", json_integer((json_int_t)step->flops));
    return json_pack("{s:s, s:s, s:o}", "name", name, "cat", tg_plan_kind(func, step), "args", args);
}

static json_t *step_event(Writer *w, const ProfileSpan *span) {
    const PlanStep *step = &w->profile->plan->steps[span->index];
    json_t **known = &w->steps[span->index];
    if (*known == NULL)
        *known = describe_step(w, span->index);
    json_t *event = json_copy(*known), *args = json_copy(json_object_get(event, "args"));
    double seconds = 1e-9 * (double)(span->end - span->begin);
    if (span->kind == SPAN_RUN && seconds > 0) {
        double least = tg_roof_seconds(w->profile->roof, step->bytes, step->flops);
        json_object_set_new(args, "roof", json_real((double)(int64_t)(1e4 * least / seconds + 0.5) / 1e4));
    }
    json_object_set_new(event, "args", args);
    if (span->kind == SPAN_SHARE)
        json_object_set_new(event, "cat", json_string("share"));
    return event;
}

static json_t *event_of(Writer *w, const ProfileSpan *span) {
    switch (span->kind) {
    case SPAN_STEP:
        return json_pack("{s:s, s:s, s:{s:I}}", "name", tg_arena_printf(w->arena, "step %u", span->index), "cat", "step",
                         "args", "step", (json_int_t)span->index);
    case SPAN_WAIT:
        return json_pack("{s:s, s:s}", "name", "wait for the batch", "cat", "data");
    case SPAN_GATHER:
        return json_pack("{s:s, s:s}", "name", "copy the batch", "cat", "data");
    case SPAN_FUNC:
        return json_pack("{s:s, s:s}", "name", w->profile->plan->funcs[span->index].name, "cat", "function");
    case SPAN_RUN:
    case SPAN_SHARE:
        break;
    }
    return step_event(w, span);
}

static Status put(Writer *w, json_t *value) {
    const char *text =
        tg_json_text(w->arena, value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(TIME_DIGITS));
    return tg_file_write(&w->file, text, strlen(text));
}

static Status put_text(Writer *w, const char *text) { return tg_file_write(&w->file, text, strlen(text)); }

/* Frees it. */
static Status put_event(Writer *w, json_t *event, const char *phase, int thread) {
    json_object_set_new(event, "ph", json_string(phase));
    json_object_set_new(event, "pid", json_integer(PROCESS));
    json_object_set_new(event, "tid", json_integer(thread));
    Status status = put_text(w, w->separator);
    w->separator = ",\n";
    if (status == TG_OK)
        return put(w, event);
    json_decref(event);
    return status;
}

/* Viewers want spans to nest to the nanosecond, and find nanoseconds by multiplying and cutting off. */
static json_t *microseconds(int64_t nanoseconds) {
    double time = (double)nanoseconds / 1000;
    return json_real((int64_t)(time * 1000) == nanoseconds ? time : time + 1e-4);
}

static Status put_span(Writer *w, const ProfileSpan *span, int thread) {
    json_t *event = event_of(w, span);
    json_object_set_new(event, "ts", microseconds(span->begin - w->origin));
    json_object_set_new(event, "dur", microseconds(span->end - span->begin));
    return put_event(w, event, "X", thread);
}

static Status put_names(Writer *w, const char *name) {
    TG_TRY(put_event(w, json_pack("{s:s, s:{s:s}}", "name", "process_name", "args", "name", name), "M", 0));
    for (int i = 0; i < w->profile->threads; i++) {
        const char *thread = i ? tg_arena_printf(w->arena, "pool thread %d", i) : "steps (thread 0)";
        TG_TRY(put_event(w, json_pack("{s:s, s:{s:s}}", "name", "thread_name", "args", "name", thread), "M", i));
        TG_TRY(put_event(w, json_pack("{s:s, s:{s:i}}", "name", "thread_sort_index", "args", "sort_index", i), "M", i));
    }
    return TG_OK;
}

/* ---- the file ---- */

static json_t *describe(const Writer *w, const char *name) {
    const Profile *profile = w->profile;
    const TgPlan *plan = profile->plan;
    json_t *copies = json_array();
    for (uint32_t i = 0; i < profile->roof->count; i++) {
        const RoofCopy *copy = &profile->roof->copy[i];
        json_array_append_new(copies, json_pack("{s:I, s:I}", "bytes", (json_int_t)copy->bytes, "bytes_per_s",
                                                (json_int_t)copy->rate));
    }
    return json_pack("{s:i, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:{s:o, s:I}, s:O}", "tgc_trace", 1, "program", name, "model",
                     plan->source_path, "threads", profile->threads, "steps", (json_int_t)profile->recorded, "batch",
                     (json_int_t)plan->batch, "micro", (json_int_t)plan->micro, "lanes", (json_int_t)plan->lanes, "roof",
                     "copy", copies, "flops_per_s", (json_int_t)profile->roof->flops, "lines", w->texts);
}

static Status write_trace(Writer *w, const char *name) {
    const Profile *profile = w->profile;
    TG_TRY(put_text(w, "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n"));
    TG_TRY(put_names(w, name));
    for (int thread = 0; thread < profile->threads; thread++)
        for (uint32_t i = 0; i < profile->tracks[thread]->count; i++)
            TG_TRY(put_span(w, &profile->tracks[thread]->spans[i], thread));
    TG_TRY(put_text(w, "\n],\n\"otherData\": "));
    TG_TRY(put(w, describe(w, name)));
    return put_text(w, "}\n");
}

static Status write_file(Writer *w, const char *name, const char *path) {
    const Profile *profile = w->profile;
    w->sources = tg_map(w->arena);
    w->separator = "";
    w->origin = profile->tracks[0]->count ? profile->tracks[0]->spans[0].begin : 0;
    w->steps = TG_ALLOC(w->arena, json_t *, profile->plan->step_count);
    w->texts = json_object();
    TG_TRY(tg_file_begin(&w->file, w->arena->host, path, 0666));
    TG_TRY(write_trace(w, name));
    return tg_file_commit(&w->file);
}

Status tg_profile_write(const Profile *profile, Arena *arena, const char *name, const char *path, const char **why) {
    Writer *w = TG_ALLOC(arena, Writer, 1);
    Arena own; /* with no memory left the file is still given up */
    tg_arena_init(&own, arena->host);
    Arena *const json = tg_json_memory(&own);
    *w = (Writer){.profile = profile, .arena = &own, .file.fd = -1};
    Status status = setjmp(own.guard) ? TG_MEMORY : write_file(w, name, path);
    tg_file_abandon(&w->file);
    (void)tg_json_memory(json);
    tg_arena_deinit(&own);
    if (status != TG_OK)
        *why = status == TG_MEMORY ? "no memory left" : tg_arena_str(arena, w->file.why, strlen(w->file.why));
    return status;
}
