#include "driver/trace.h"
#include "ir/base/file.h"
#include "ir/base/map.h"
#include "runtime/exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Times of one thing by training step. */
typedef double *Times;

typedef struct Reader {
    Pipeline *p;
    Trace *trace;
    const json_t *events;
    double *begins;     /* of the training steps */
    Times steps, waited, gathered, between;
    Map known;          /* number of the plan's step -> 1 + index into runs */
    Vec(TraceRun) runs;
    Vec(Times) times;   /* per run */
    Vec(Times *) shares; /* per run and thread; NULL: none had one */
} Reader;

static const char file_name[] = "profile.json";

const char *trace_path(Pipeline *p, const char *named) {
    struct stat found;
    size_t length = strlen(named);
    if (length > 3 && strcmp(named + length - 3, ".tg") == 0) {
        const char *slash = strrchr(named, '/'), *name = slash ? slash + 1 : named;
        return tg_arena_printf(p->arena, "%.*s.run/%s", (int)(strlen(name) - 3), name, file_name);
    }
    if (stat(named, &found) == 0 && S_ISDIR(found.st_mode))
        return tg_arena_printf(p->arena, "%s%s%s", named, named[length - 1] == '/' ? "" : "/", file_name);
    return named;
}

const char *trace_text(const Trace *trace, const char *line) {
    const char *text = json_string_value(json_object_get(trace->texts, line));
    return text ? text : "";
}

bool trace_in_microseconds(const Trace *trace) { return trace->time < 1e4; }

const char *trace_time(Arena *arena, const Trace *trace, double time) {
    return tg_arena_printf(arena, "%.3f", trace_in_microseconds(trace) ? time : 1e-3 * time);
}

static Status refuse(Reader *r, const char *what) {
    tg_error(r->p->diags, (Loc){0}, "%s is no trace of 'train --profile': %s", r->trace->path, what);
    return TG_MODEL;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double number_of(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static Times new_times(const Reader *r) { return TG_ALLOC(r->p->arena, double, r->trace->steps); }

static double median(Reader *r, const Times times) {
    int64_t count = r->trace->steps;
    double *sorted = tg_arena_copy(r->p->arena, times, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* The run of an event's step of the plan, made if it is new; its index. */
static uint32_t run_of(Reader *r, const json_t *args) {
    json_int_t step = json_integer_value(json_object_get(args, "plan_step"));
    uint64_t *known = tg_map_put(&r->known, &step, sizeof step, NULL);
    if (*known)
        return (uint32_t)*known - 1;
    TraceRun run = {.plan_step = (uint32_t)step, .op = text_of(args, "op"), .shape = text_of(args, "shape"), .kind = text_of(args, "kind"),
                    .function = text_of(args, "function"), .bytes = number_of(args, "bytes"), .flops = number_of(args, "flops")};
    const json_t *lines = json_object_get(args, "lines");
    run.lines = TG_ALLOC(r->p->arena, const char *, json_array_size(lines) + 1);
    for (size_t i = 0; i < json_array_size(lines); i++)
        if (json_is_string(json_array_get(lines, i)))
            run.lines[run.line_count++] = json_string_value(json_array_get(lines, i));
    tg_push(r->p->arena, &r->runs, run);
    tg_push(r->p->arena, &r->times, new_times(r));
    tg_push(r->p->arena, &r->shares, NULL);
    *known = r->runs.count;
    return r->runs.count - 1;
}

static void add_share(Reader *r, uint32_t run, int64_t thread, int64_t step, double time) {
    Times **shares = &r->shares.at[run];
    if (*shares == NULL) {
        *shares = TG_ALLOC(r->p->arena, Times, r->trace->threads);
        for (int64_t i = 0; i < r->trace->threads; i++)
            (*shares)[i] = new_times(r);
    }
    (*shares)[thread][step] += time;
}

/* The training step that an event lies in: the last that begins before it. */
static int64_t step_at(const Reader *r, double when) {
    int64_t low = 0, high = r->trace->steps;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (r->begins[middle] <= when)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_span(const json_t *event) { return strcmp(text_of(event, "ph"), "X") == 0; }
static bool is_step(const json_t *event) { return is_span(event) && strcmp(text_of(event, "cat"), "step") == 0; }

static void add_event(Reader *r, const json_t *event) {
    const json_t *args = json_object_get(event, "args");
    double time = number_of(event, "dur");
    int64_t step = step_at(r, number_of(event, "ts"));
    if (strcmp(text_of(event, "cat"), "data") == 0) {
        bool waits = strncmp(text_of(event, "name"), "wait", 4) == 0;
        (waits ? r->waited : r->gathered)[step] += time;
        return;
    }
    if (json_object_get(args, "plan_step") == NULL)
        return;
    uint32_t run = run_of(r, args);
    if (strcmp(text_of(event, "cat"), "share") == 0) {
        add_share(r, run, json_integer_value(json_object_get(event, "tid")), step, time);
        return;
    }
    r->runs.at[run].calls++;
    r->times.at[run][step] += time;
}

static Status check_event(Reader *r, const json_t *event) {
    json_int_t thread = json_integer_value(json_object_get(event, "tid"));
    const json_t *begin = json_object_get(event, "ts"), *time = json_object_get(event, "dur");
    if (json_is_number(begin) && json_is_number(time) && json_number_value(time) >= 0 && thread >= 0 && thread < r->trace->threads)
        return TG_OK;
    return refuse(r, "an event has no duration or an unknown thread");
}

static Status find_steps(Reader *r) {
    size_t i;
    const json_t *event;
    json_array_foreach(r->events, i, event) {
        if (is_span(event))
            TG_TRY(check_event(r, event));
        r->trace->steps += is_step(event);
    }
    if (r->trace->steps == 0)
        return refuse(r, "it holds no training step");
    r->begins = new_times(r), r->steps = new_times(r);
    r->waited = new_times(r), r->gathered = new_times(r), r->between = new_times(r);
    int64_t at = 0;
    json_array_foreach(r->events, i, event)
        if (is_step(event)) {
            r->begins[at] = number_of(event, "ts");
            r->steps[at++] = number_of(event, "dur");
        }
    return TG_OK;
}

static void add_run(Reader *r, uint32_t index) {
    Trace *trace = r->trace;
    TraceRun *run = &r->runs.at[index];
    run->calls /= (double)trace->steps;
    run->roof = 1e6 * run->calls * tg_roof_seconds(&trace->roof, run->bytes, run->flops);
    run->call_bytes = run->bytes;
    run->bytes *= run->calls;
    run->flops *= run->calls;
    run->time = median(r, r->times.at[index]);
    run->shared = r->shares.at[index] != NULL;
    trace->time += run->time;
    for (int64_t i = 0; i < trace->steps; i++)
        r->between[i] -= r->times.at[index][i];
    if (!run->shared) {
        trace->alone += (double)(trace->threads - 1) * run->time;
        trace->busy[0] += run->time;
        return;
    }
    trace->imbalance += (double)trace->threads * run->time;
    for (int64_t t = 0; t < trace->threads; t++) {
        double share = median(r, r->shares.at[index][t]);
        trace->busy[t] += share;
        trace->imbalance -= share;
    }
}

static void add_up(Reader *r) {
    Trace *trace = r->trace;
    trace->step = median(r, r->steps);
    trace->least = trace->most = r->steps[0];
    for (int64_t i = 0; i < trace->steps; i++) {
        trace->least = fmin(trace->least, r->steps[i]);
        trace->most = fmax(trace->most, r->steps[i]);
        r->between[i] = r->steps[i] - r->waited[i] - r->gathered[i];
    }
    for (uint32_t i = 0; i < r->runs.count; i++)
        add_run(r, i);
    trace->runs = r->runs.at;
    trace->run_count = r->runs.count;
    trace->waited = median(r, r->waited);
    trace->gathered = median(r, r->gathered);
    trace->between = fmax(0, median(r, r->between));
    trace->time += trace->waited + trace->gathered + trace->between;
    trace->busy[0] += trace->gathered + trace->between;
    trace->outside = (double)(trace->threads - 1) * (trace->gathered + trace->between) + (double)trace->threads * trace->waited;
}

static Status read_roof(Reader *r) {
    Roof *roof = &r->trace->roof;
    size_t i;
    const json_t *copy;
    json_array_foreach(json_object_get(r->trace->roof_json, "copy"), i, copy)
        if (roof->count < TG_ROOF_SIZES)
            roof->copy[roof->count++] = (RoofCopy){number_of(copy, "bytes"), number_of(copy, "bytes_per_s")};
    roof->flops = number_of(r->trace->roof_json, "flops_per_s");
    return roof->count && roof->copy[0].rate > 0 ? TG_OK : refuse(r, "it does not say how fast the machine copies");
}

static Status read_document(Reader *r) {
    Trace *trace = r->trace;
    const json_t *events = json_object_get(trace->document, "traceEvents"), *other = json_object_get(trace->document, "otherData");
    if (!json_is_array(events) || json_integer_value(json_object_get(other, "tgc_trace")) != 1)
        return refuse(r, "it is a JSON document of something else");
    trace->model = text_of(other, "model");
    trace->program = text_of(other, "program");
    trace->threads = (int64_t)number_of(other, "threads");
    trace->batch = (int64_t)number_of(other, "batch");
    trace->roof_json = json_object_get(other, "roof");
    trace->texts = json_object_get(other, "lines");
    if (trace->threads < 1 || trace->threads > TG_MOST_THREADS)
        return refuse(r, "it does not say how many threads ran");
    trace->busy = TG_ALLOC(r->p->arena, double, trace->threads);
    r->events = events;
    TG_TRY(read_roof(r));
    TG_TRY(find_steps(r));
    size_t i;
    const json_t *event;
    json_array_foreach(events, i, event)
        if (is_span(event))
            add_event(r, event);
    add_up(r);
    return TG_OK;
}

Status trace_open(Pipeline *p, const char *path, Trace *trace) {
    char *text;
    size_t length;
    const char *why;
    json_error_t error;
    *trace = (Trace){.path = path};
    Reader r = {.p = p, .trace = trace, .known = tg_map(p->arena)};
    if (tg_file_read(p->arena, path, &text, &length, &why) != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s; 'tgc train FILE.tg --profile=20' makes a trace", why);
        return TG_IO;
    }
    trace->document = json_loadb(text, length, 0, &error);
    if (trace->document == NULL)
        return refuse(&r, tg_arena_printf(p->arena, "line %d: %s", error.line, error.text));
    Status status = read_document(&r);
    if (status != TG_OK)
        trace_close(trace);
    return status;
}

void trace_close(Trace *trace) {
    json_decref(trace->document);
    trace->document = NULL;
}
