/* tgc profile TRACE: where the time of training steps goes, by line of the source, by operation and by kind. */
#include "driver/trace.h"
#include "driver/units.h"
#include "ir/base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Microseconds, bytes and so on of one training step. */
typedef struct Row {
    const char *name;
    double time, roof, bytes, flops, calls;
} Row;

typedef struct Table {
    const char *title;
    Map known; /* name -> 1 + index */
    Vec(Row) rows;
} Table;

typedef struct Profiler {
    Pipeline *p;
    Trace trace;
    int64_t limit;
    int (*order)(const void *, const void *);
    bool color;
    size_t width; /* columns of the terminal; 0: any number */
} Profiler;

/* ---- tables ---- */

static void add(Arena *arena, Table *table, const char *name, const TraceRun *run, double part) {
    uint64_t *known = tg_map_put(&table->known, name, strlen(name), NULL);
    if (*known == 0) {
        tg_push(arena, &table->rows, (Row){.name = name});
        *known = table->rows.count;
    }
    Row *row = &table->rows.at[*known - 1];
    row->time += part * run->time;
    row->roof += part * run->roof;
    row->bytes += part * run->bytes;
    row->flops += part * run->flops;
    row->calls += run->calls;
}

/* A kernel of several lines counts in equal parts. */
static void add_by_line(Arena *arena, Table *table, const TraceRun *run) {
    for (uint32_t i = 0; i < run->line_count; i++)
        add(arena, table, run->lines[i], run, 1.0 / run->line_count);
    if (run->line_count == 0)
        add(arena, table, "(no line)", run, 1);
}

static void add_by_op(Arena *arena, Table *table, const TraceRun *run) {
    add(arena, table, run->shape[0] ? tg_arena_printf(arena, "%s %s", run->op, run->shape) : run->op, run, 1);
}

static void add_by_kind(Arena *arena, Table *table, const TraceRun *run) { add(arena, table, run->kind, run, 1); }

static void add_data_apart(Arena *arena, Table *table, const Trace *trace) {
    add(arena, table, "(wait for the batch)", &(TraceRun){.time = trace->waited, .calls = 1}, 1);
    add(arena, table, "(copy the batch)", &(TraceRun){.time = trace->gathered, .calls = 1}, 1);
}

static void add_data(Arena *arena, Table *table, const Trace *trace) {
    add(arena, table, "data", &(TraceRun){.time = trace->waited + trace->gathered, .calls = 1}, 1);
}

typedef struct TableRow {
    const char *by, *title, *between;
    void (*add)(Arena *arena, Table *table, const TraceRun *run);
    void (*data)(Arena *arena, Table *table, const Trace *trace);
} TableRow;

static const TableRow tables[] = {
    {"line", "line", "(between kernels)", add_by_line, add_data_apart},
    {"op", "operation", "(between kernels)", add_by_op, add_data_apart},
    {"kind", "kind", "between kernels", add_by_kind, add_data},
};
enum { TABLES = sizeof tables / sizeof *tables };

static Table make_table(const Profiler *profiler, const TableRow *how) {
    Arena *arena = profiler->p->arena;
    const Trace *trace = &profiler->trace;
    Table table = {.title = how->title, .known = tg_map(arena)};
    for (uint32_t i = 0; i < trace->run_count; i++)
        how->add(arena, &table, &trace->runs[i]);
    how->data(arena, &table, trace);
    add(arena, &table, how->between, &(TraceRun){.time = trace->between, .calls = 1}, 1);
    qsort(table.rows.at, table.rows.count, sizeof *table.rows.at, profiler->order);
    return table;
}

/* ---- orders ---- */

static int by_name(const void *a, const void *b) { return strcmp(((const Row *)a)->name, ((const Row *)b)->name); }

/* The greatest first. */
static int compare(double x, double y, const void *a, const void *b) { return x > y ? -1 : x < y ? 1 : by_name(a, b); }

#define BY(key)                                                                                                        \
    static int by_##key(const void *a, const void *b) {                                                                \
        return compare(((const Row *)a)->key, ((const Row *)b)->key, a, b);                                            \
    }
BY(time)
BY(bytes)
BY(flops)
BY(calls)
#undef BY

static double roof_share(const Row *row) { return row->time > 0 ? row->roof / row->time : 0; }

/* The farthest below the roof first; what has none, last. */
static int by_roof(const void *a, const void *b) {
    double x = roof_share(a), y = roof_share(b);
    return compare(x > 0 ? -x : -1e9, y > 0 ? -y : -1e9, a, b);
}

static const struct {
    const char *name;
    int (*order)(const void *, const void *);
} orders[] = {{"time", by_time},   {"roof", by_roof},   {"bytes", by_bytes},
              {"flops", by_flops}, {"calls", by_calls}, {"name", by_name}};
enum { ORDERS = sizeof orders / sizeof *orders };

/* ---- text ---- */

static const char *bold(const Profiler *profiler) { return profiler->color ? "\033[1m" : ""; }
static const char *plain(const Profiler *profiler) { return profiler->color ? "\033[0m" : ""; }

static const char *step_time(const Profiler *profiler, double time) {
    return trace_time(profiler->p->arena, &profiler->trace, time);
}

static const char *rate(const Profiler *profiler, double amount, double time) {
    return amount > 0 && time > 0 ? tg_arena_printf(profiler->p->arena, "%.1f", 1e-3 * amount / time) : "";
}

/* As many columns of it as there are; cut between characters. */
static int fitting(const Profiler *profiler, const char *text, size_t used) {
    size_t room = profiler->width > used ? profiler->width - used : 0, columns = 0, length = 0;
    if (profiler->width == 0)
        return (int)strlen(text);
    while (text[length]) {
        columns += ((unsigned char)text[length] & 0xc0) != 0x80;
        if (columns > room)
            break;
        length++;
    }
    return (int)length;
}

/* "models/gpt.tg:20" -> "gpt.tg:20". */
static const char *short_name(const char *name) {
    const char *slash = strrchr(name, '/'), *colon = strrchr(name, ':');
    return slash && colon && slash < colon && name[0] != '<' && !strchr(name, ' ') ? slash + 1 : name;
}

enum { NUMBERS = 55 }; /* columns before the name */

static void print_row(const Profiler *profiler, const Row *row, size_t name_width) {
    const Trace *trace = &profiler->trace;
    const char *text = trace_text(trace, row->name), *name = short_name(row->name);
    const char *roof = row->roof > 0 ? tg_arena_printf(profiler->p->arena, "%.0f %%", 100 * roof_share(row)) : "";
    printf("%6.1f %% %10s %6s %8s %9s %6.4g  ", 100 * row->time / trace->time, step_time(profiler, row->time), roof,
           rate(profiler, row->bytes, row->time), rate(profiler, row->flops, row->time), row->calls);
    if (text[0])
        printf("%-*s  %.*s\n", (int)name_width, name, fitting(profiler, text, NUMBERS + name_width + 2), text);
    else
        printf("%s\n", name);
}

static void print_table(const Profiler *profiler, const Table *table) {
    uint32_t count = table->rows.count, shown = count;
    if (profiler->limit > 0 && profiler->limit < count)
        shown = (uint32_t)profiler->limit;
    size_t name_width = 0;
    for (uint32_t i = 0; i < shown; i++) {
        size_t length = strlen(short_name(table->rows.at[i].name));
        if (trace_text(&profiler->trace, table->rows.at[i].name)[0] && length > name_width)
            name_width = length;
    }
    const char *unit = trace_in_microseconds(&profiler->trace) ? " µs a step" : " ms a step";
    printf("\n%s%8s %s %6s %8s %9s %6s  %s%s\n", bold(profiler), "share", unit, "roof", "GB/s", "GFLOP/s", "calls", table->title, plain(profiler));
    Row rest = {0}, all = {.name = "all"};
    for (uint32_t i = 0; i < count; i++) {
        const Row *row = &table->rows.at[i];
        Row *sums[] = {&all, &rest};
        for (int s = 0; s < (i < shown ? 1 : 2); s++) {
            sums[s]->time += row->time, sums[s]->roof += row->roof, sums[s]->bytes += row->bytes, sums[s]->flops += row->flops;
            sums[s]->calls += row->calls;
        }
        if (i < shown)
            print_row(profiler, row, name_width);
    }
    rest.name = tg_arena_printf(profiler->p->arena, "%u more (--limit=0 shows all)", count - shown);
    if (shown < count)
        print_row(profiler, &rest, name_width);
    printf("%6.1f %% %10s\n", 100 * all.time / profiler->trace.time, step_time(profiler, all.time));
}

/* As a part of a step: what medians of its parts may miss without a word. */
static const double SPREAD = 0.05;

static void print_head(const Profiler *profiler) {
    const Trace *trace = &profiler->trace;
    Arena *arena = profiler->p->arena;
    double flops = 0;
    for (uint32_t i = 0; i < trace->run_count; i++)
        flops += trace->runs[i].flops;
    printf("%s%s%s: %lld step%s of %lld records on %lld thread%s\n", bold(profiler), trace->model, plain(profiler),
           (long long)trace->steps, trace->steps == 1 ? "" : "s", (long long)trace->batch, (long long)trace->threads,
           trace->threads == 1 ? "" : "s");
    printf("step     %s, median (%s to %s), %.0f records/s, %.1f GFLOP/s\n", units_time(arena, trace->step),
           units_time(arena, trace->least), units_time(arena, trace->most), 1e6 * (double)trace->batch / trace->step,
           1e-3 * flops / trace->step);
    if (trace->step > (1 + SPREAD) * trace->time)
        printf("spread   %s of it are interruptions, which hit other kernels in each step: the times below are without them\n",
               units_time(arena, trace->step - trace->time));
    printf("roof    ");
    for (uint32_t i = 0; i < trace->roof.count; i++)
        if (i == 0 || i + 1 == trace->roof.count)
            printf("%s %.1f GB/s copying %s", i ? "," : "", 1e-9 * trace->roof.copy[i].rate, tg_bytes_text(arena, trace->roof.copy[i].bytes));
    if (trace->roof.flops > 0)
        printf(", %.0f GFLOP/s in dots", 1e-9 * trace->roof.flops);
    printf("\nthreads ");
    for (int64_t i = 0; i < trace->threads; i++)
        printf(" %.1f %%", 100 * trace->busy[i] / trace->time);
    double whole = trace->time * (double)trace->threads;
    printf(" busy\n");
    if (trace->threads > 1)
        printf("idle     %.1f %% waits for other threads' shares, %.1f %% while one thread works alone, %.1f %% between kernels\n",
               100 * trace->imbalance / whole, 100 * trace->alone / whole, 100 * trace->outside / whole);
}

/* ---- JSON ---- */

static json_t *row_json(const Profiler *profiler, const Row *row) {
    const Trace *trace = &profiler->trace;
    json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "name", row->name, "share", row->time / trace->time, "ms",
                               1e-3 * row->time, "bytes", row->bytes, "flops", row->flops, "calls", row->calls);
    if (row->roof > 0)
        json_object_set_new(object, "roof", json_real(roof_share(row)));
    if (trace_text(trace, row->name)[0])
        json_object_set_new(object, "text", json_string(trace_text(trace, row->name)));
    return object;
}

static json_t *table_json(const Profiler *profiler, const Table *table) {
    json_t *rows = json_array();
    for (uint32_t i = 0; i < table->rows.count && (profiler->limit == 0 || i < profiler->limit); i++)
        json_array_append_new(rows, row_json(profiler, &table->rows.at[i]));
    return rows;
}

static json_t *head_json(const Trace *trace) {
    json_t *busy = json_array();
    double whole = trace->time * (double)trace->threads;
    for (int64_t i = 0; i < trace->threads; i++)
        json_array_append_new(busy, json_real(trace->busy[i] / trace->time));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:{s:f, s:f, s:f, s:f}, s:O, s:o, s:{s:f, s:f, s:f}}", "model", trace->model,
                     "program", trace->program, "steps", (json_int_t)trace->steps, "batch", (json_int_t)trace->batch,
                     "threads", (json_int_t)trace->threads, "step_ms", "median", 1e-3 * trace->step, "least",
                     1e-3 * trace->least, "most", 1e-3 * trace->most, "parts", 1e-3 * trace->time, "roof", trace->roof_json, "busy", busy, "idle",
                     "imbalance", trace->imbalance / whole, "alone", trace->alone / whole, "between", trace->outside / whole);
}

/* ---- the command ---- */

static Status read_options(Profiler *profiler) {
    const char *const *value = profiler->p->cli->value;
    Diags *diags = profiler->p->diags;
    profiler->order = by_time;
    profiler->limit = value[CLI_JSON] ? 0 : 20;
    if (value[CLI_SORT]) {
        profiler->order = NULL;
        for (int i = 0; i < ORDERS; i++)
            if (strcmp(orders[i].name, value[CLI_SORT]) == 0)
                profiler->order = orders[i].order;
        if (profiler->order == NULL) {
            tg_error(diags, (Loc){0}, "--sort is time, roof, bytes, flops, calls or name, not '%s'", value[CLI_SORT]);
            return TG_USAGE;
        }
    }
    if (value[CLI_LIMIT]) {
        char *end;
        errno = 0;
        profiler->limit = strtoll(value[CLI_LIMIT], &end, 10);
        if (end == value[CLI_LIMIT] || *end || errno || profiler->limit < 0) {
            tg_error(diags, (Loc){0}, "--limit is a number of rows, 0 for all, not '%s'", value[CLI_LIMIT]);
            return TG_USAGE;
        }
    }
    bool known = value[CLI_BY] == NULL;
    for (int i = 0; i < TABLES && !known; i++)
        known = strcmp(tables[i].by, value[CLI_BY]) == 0;
    if (!known) {
        tg_error(diags, (Loc){0}, "--by is line, op or kind, not '%s'", value[CLI_BY]);
        return TG_USAGE;
    }
    return TG_OK;
}

static void look_at_terminal(Profiler *profiler) {
    struct winsize size;
    const char *no_color = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO);
    profiler->color = terminal && (no_color == NULL || no_color[0] == '\0');
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        profiler->width = size.ws_col;
}

static void print_tables(const Profiler *profiler) {
    const char *by = profiler->p->cli->value[CLI_BY];
    json_t *document = profiler->p->cli->value[CLI_JSON] ? head_json(&profiler->trace) : NULL;
    if (document == NULL)
        print_head(profiler);
    for (int i = 0; i < TABLES; i++) {
        if (by && strcmp(by, tables[i].by) != 0)
            continue;
        Table table = make_table(profiler, &tables[i]);
        if (document)
            json_object_set_new(document, tables[i].by, table_json(profiler, &table));
        else
            print_table(profiler, &table);
    }
    if (document) {
        json_dumpf(document, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        printf("\n");
    }
    json_decref(document);
}

Status command_profile(Pipeline *p) {
    Profiler profiler = {.p = p};
    TG_TRY(read_options(&profiler));
    look_at_terminal(&profiler);
    TG_TRY(trace_open(p, trace_path(p, p->cli->arguments.at[0]), &profiler.trace));
    print_tables(&profiler);
    trace_close(&profiler.trace);
    return TG_OK;
}
