/* The runner: verifies, times, dumps and blames, so that passes need not. */
#include "passes/diff.h"
#include "passes/passes.h"
#include "passes/validate.h"

#include "ir/base/file.h"

#include <regex.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const PassInfo *tg_pass(int pass) {
    static const PassInfo table[] = {
#define PASS(name, from, to, effect, summary) {#name, summary, run_##name, LEVEL_##from, LEVEL_##to, EFFECT_##effect},
#include "passes/passes.def"
#undef PASS
    };
    return &table[pass];
}

int tg_pass_named(const char *name) {
    for (int pass = 0; pass < PASS_COUNT; pass++)
        if (strcmp(tg_pass(pass)->name, name) == 0)
            return pass;
    return -1;
}

Status tg_pass_match(Arena *arena, const char *pattern, bool set[PASS_COUNT], const char **why) {
    regex_t regex;
    int error = regcomp(&regex, tg_arena_printf(arena, "^(%s)$", pattern), REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
        char text[128];
        regerror(error, &regex, text, sizeof text);
        *why = tg_arena_printf(arena, "'%s' is no regular expression: %s", pattern, text);
        return TG_USAGE;
    }
    bool any = false;
    for (int pass = 0; pass < PASS_COUNT; pass++)
        if (regexec(&regex, tg_pass(pass)->name, 0, NULL, 0) == 0)
            set[pass] = any = true;
    regfree(&regex);
    if (any)
        return TG_OK;
    *why = tg_arena_printf(arena, "no pass is named '%s'", pattern);
    return TG_USAGE;
}

PassOptions tg_pass_options(void) {
    return (PassOptions){.verify_each = true, .dump = stderr, .crash_directory = ".", .bisect_limit = -1};
}

bool tg_pass_is_disabled(const PassOptions *options, const PassInfo *pass) {
    for (uint32_t i = 0; i < options->disabled; i++)
        if (strcmp(options->disable[i], pass->name) == 0)
            return true;
    return false;
}

static bool asks_for(const char *wanted, const char *name) {
    return wanted && (strcmp(wanted, name) == 0 || strcmp(wanted, "all") == 0);
}

static Str text_of(Arena *arena, const Graph *graph) {
    Str text = tg_str(arena);
    tg_graph_print(&text, graph);
    return text;
}

static void dump_after(const PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in,
                       const Graph *out) {
    bool always = asks_for(options->print_after, pass->name);
    bool on_change = asks_for(options->print_after_change, pass->name);
    if (!always && !on_change)
        return;
    Str after = text_of(context->arena, out);
    if (!always && strcmp(text_of(context->arena, in).text, after.text) == 0)
        return;
    fprintf(options->dump, "// after %s\n%s", pass->name, after.text);
}

static void print_diff(const PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in,
                       const Graph *out) {
    Str text = tg_str(context->arena);
    tg_graph_diff(&text, in, out);
    if (text.length)
        fprintf(options->dump, "--- before %s\n+++ after %s\n%s", pass->name, pass->name, text.text);
}

/* The graph before the failure, with the command that replays it as its first line. */
static void write_reproducer(const PassContext *context, const PassOptions *options, const char *remaining,
                             const Graph *in) {
    const char *path = tg_arena_printf(context->arena, "%s/tgc-crash-%ld.tgir", options->crash_directory, (long)getpid());
    Str text = tg_str(context->arena);
    tg_str_printf(&text, "// tgc opt --passes=%s %s\n", remaining, path);
    tg_graph_print(&text, in);
    TgFileWriter file;
    if (tg_file_begin(&file, context->arena->host, path, 0666) == TG_OK &&
        tg_file_write(&file, text.text, text.length) == TG_OK && tg_file_commit(&file) == TG_OK)
        tg_note(context->diags, (Loc){0}, "replay it with: tgc opt --passes=%s %s", remaining, path);
    else
        tg_note(context->diags, (Loc){0}, "no reproducer: %s", file.why);
    tg_file_abandon(&file);
}

/* Of this process's own work: a pass waits for nothing. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t node_count(const Graph *graph) {
    uint64_t count = 0;
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        count += graph->funcs.at[f]->nodes.count - 1;
    return count;
}

Status tg_pass_run(PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in, Graph **out) {
    if (in->level != pass->from) {
        tg_error(context->diags, (Loc){0}, "pass %s reads another level of graph", pass->name);
        return TG_USAGE;
    }
    context->options = options;
    context->pass = pass;
    context->in = in;
    context->maps.count = 0;
    double start = seconds();
    TG_TRY(pass->run(context, in, out));
    if (options->time_report)
        fprintf(options->dump, "%-12s %8.3f ms %8llu nodes\n", pass->name, 1e3 * (seconds() - start),
                (unsigned long long)node_count(*out));
    if (options->verify_each)
        TG_TRY(tg_graph_verify(*out, context->diags));
    if (options->validate)
        TG_TRY(tg_validate(context, pass, in, *out));
    dump_after(context, options, pass, in, *out);
    if (options->print_diff)
        print_diff(context, options, pass, in, *out);
    return TG_OK;
}

Status tg_pass_find(PassContext *context, const char *name, const PassInfo **pass) {
    int index = tg_pass_named(name);
    if (index >= 0) {
        *pass = tg_pass(index);
        return TG_OK;
    }
    const char *known[PASS_COUNT];
    for (int i = 0; i < PASS_COUNT; i++)
        known[i] = tg_pass(i)->name;
    const char *closest = tg_closest(name, known, PASS_COUNT);
    tg_error(context->diags, (Loc){0}, "no pass is named '%s'%s%s", name, closest ? "; did you mean " : "",
             closest ? closest : "");
    return TG_USAGE;
}

Status tg_passes_run(PassContext *context, const PassOptions *options, const char *names, const Graph *in, Graph **out) {
    context->fold = !options->no_fold;
    context->fuse = !options->no_fuse;
    Graph *graph = (Graph *)in;
    for (const char *rest = names; *rest;) {
        size_t length = strcspn(rest, ",");
        const PassInfo *pass;
        TG_TRY(tg_pass_find(context, tg_arena_str(context->arena, rest, length), &pass));
        if (!tg_pass_is_disabled(options, pass)) {
            const Graph *before = graph;
            Status status = tg_pass_run(context, options, pass, before, &graph);
            if (status == TG_INTERNAL) {
                tg_note(context->diags, (Loc){0}, "in pass %s", pass->name);
                write_reproducer(context, options, rest, before);
            }
            TG_TRY(status);
        }
        rest += length + (rest[length] == ',');
    }
    *out = graph;
    return TG_OK;
}
