/* tgc reduce: the smallest graph for which a test script still says that the failure is there. */
#include "driver/script.h"
#include "passes/reduce.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct Reduction {
    Pipeline *p;
    Script script;
    const char *file; /* of the candidate */
    ReduceCounts before, now;
    double start, said; /* seconds */
    ScriptEnd end;      /* of the last run */
    int code;
    Status status; /* of writing candidates */
} Reduction;

/* Nobody will miss it: no need to sync. */
static bool write_candidate(Reduction *r, const char *text, size_t length) {
    FILE *file = fopen(r->file, "w");
    bool ok = file && fwrite(text, 1, length, file) == length;
    ok = file && fclose(file) == 0 && ok;
    if (ok)
        return true;
    tg_error(r->p->diags, (Loc){0}, "cannot write %s: %s", r->file, strerror(errno));
    r->status = TG_IO;
    return false;
}

static bool is_interesting(void *context, const char *text, size_t length) {
    Reduction *r = context;
    if (r->status != TG_OK || !write_candidate(r, text, length))
        return false;
    r->end = script_run(&r->script, r->file, &r->code);
    return r->end == SCRIPT_EXITED && r->code == 0;
}

static bool is_stopped(void *context) { return script_is_stopped() || ((Reduction *)context)->status != TG_OK; }

static void say(const Reduction *r, const char *before, const char *after) {
    fprintf(stderr, "%sreduce: %u -> %u nodes, %u -> %u functions, %u tests%s", before, r->before.nodes, r->now.nodes,
            r->before.funcs, r->now.funcs, r->script.runs, after);
}

/* One line that is drawn again on a terminal, else a line from time to time. */
static void progress(void *context, ReduceCounts now) {
    enum { EVERY = 2 };
    Reduction *r = context;
    bool terminal = isatty(2);
    double seconds = pipeline_seconds();
    r->now = now;
    if (r->p->diags->json || (!terminal && seconds < r->said + EVERY))
        return;
    r->said = seconds;
    say(r, terminal ? "\r" : "", terminal ? "\033[K" : "\n");
}

static void say_end(const Reduction *r, bool minimal, const char *output) {
    if (r->p->diags->json)
        return;
    say(r, isatty(2) ? "\r" : "", "");
    if (r->script.late)
        fprintf(stderr, " (%u took too long)", r->script.late);
    fprintf(stderr, ", %.1f s%s\nwrote %s\n", pipeline_seconds() - r->start,
            minimal ? "" : "; interrupted, so a smaller one may be there", output);
}

static const char *output_of(Pipeline *p) {
    const char *path = p->cli->arguments.at[0], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (p->cli->value[CLI_REDUCED])
        return p->cli->value[CLI_REDUCED];
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".tgir") == 0)
        length -= 5;
    return strcmp(name, "-") == 0 ? "reduced.tgir" : tg_arena_printf(p->arena, "%.*s.reduced.tgir", (int)length, name);
}

static Status reduce(Reduction *r, const Graph *graph, Str *text, bool *minimal) {
    r->file = tg_arena_printf(r->p->arena, "%s/graph.tgir", r->script.folder);
    ReduceTest test = {is_interesting, is_stopped, progress, r};
    Status status = tg_shrink(r->p->arena, graph, &test, text, minimal);
    unlink(r->file);
    if (status != TG_USAGE || r->status != TG_OK)
        return r->status != TG_OK ? r->status : status;
    const char *path = r->p->cli->arguments.at[0];
    tg_error(r->p->diags, (Loc){0}, "the failure is not there in %s itself: %s %s", path, r->p->cli->value[CLI_TEST],
             script_end_text(r->p->arena, &r->script, r->end, r->code));
    tg_note(r->p->diags, (Loc){0}, "it gets the graph's file as its argument and exits 0 if the failure is there");
    return TG_USAGE;
}

Status command_reduce(Pipeline *p) {
    Reduction r = {.p = p, .start = pipeline_seconds(), .said = pipeline_seconds()};
    Graph *graph;
    if (p->cli->value[CLI_TEST] == NULL) {
        tg_error(p->diags, (Loc){0}, "which test? --test=SCRIPT names a program that exits 0 for a graph's file if the failure is there");
        return TG_USAGE;
    }
    TG_TRY(read_graph(p, p->cli->arguments.at[0], &graph));
    TG_TRY(script_open(p, p->cli->value[CLI_TEST], &r.script));
    r.before = r.now = tg_reduce_count(graph);
    Str text;
    bool minimal;
    Status status = reduce(&r, graph, &text, &minimal);
    script_close(&r.script);
    TG_TRY(status);
    const char *output = output_of(p);
    TG_TRY(write_text(p, output, &text));
    say_end(&r, minimal, output);
    return TG_OK;
}
